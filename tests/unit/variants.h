/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: policies as an oracle knows them that judges changes from one to another: what each
 * says, as text, and what it admits at most in any time.
 */
#ifndef PACER_TEST_VARIANTS_H
#define PACER_TEST_VARIANTS_H

#include "applied.h"

#include <inttypes.h>
#include <math.h>

#define VARIANT_LIMITS	4u
#define VARIANT_POOLS	2u
#define VARIANT_TARGETS 3u
#define VARIANTS	128u
#define PACKET_BYTES	100u
#define RULE_PORT	7u /* packets to it are rule a's own; to the next, rule c's */
#define NO_RULE		2u
#define POOL_PORT	21u /* packets to it are the first pool's; to the next, the second's */

enum by { BY_SOURCE, BY_PREFIX, BY_DESTINATION, BY_TARGET }; /* all have one destination */
enum says { ASKS, DENIES, GONE }; /* the rule asks its limits, denies, or is not there */
enum of { OF_WINDOW, OF_RATE, OF_GAP, OF_USES, OF_TARGETS };

struct limit {
	enum policy_limit_kind kind;
	enum by by;
	bool wider_key; /* of another text, which tells the same packets apart */
	bool roomy;	/* four times the entries */
	bool bytes;	/* not packets, of a window or a rate */
	bool of_new;	/* of packets that open a flow, no others */
	uint32_t rule;	/* 0: a, 1: c */
	uint64_t value; /* packets, the burst, ms of the gap, uses */
	uint64_t speed; /* of a rate, a second */
	uint64_t window_ms, slots;
	uint64_t threshold; /* of uses */
};

struct pool {
	uint64_t each, cooldown_ms, threshold;
	uint32_t targets; /* a bit for each */
};

/* Of rule a. */
struct bans {
	uint64_t for_ms, grow, up_to_ms, forget_ms; /* for_ms 0: none; grow 0: all are as long */
};

/* Rule c. */
struct second {
	bool there;
	enum says says;
	bool first;  /* before a */
	bool of_all; /* packets, and not of its port alone */
};

struct variant {
	enum says says; /* rule a */
	bool coarse;
	bool narrow; /* rule a is of its port alone */
	struct second second;
	struct bans bans;
	uint32_t bans_room; /* of the table; 0: what it is without a word */
	uint32_t n, n_pools;
	struct limit limit[VARIANT_LIMITS];
	struct pool pool[VARIANT_POOLS];
	uint64_t
	    beside; /* slots of another rule's window, for whose state others make room; 0: none */
};

static struct variant variant[VARIANTS];
static uint32_t n_variants;

static enum says says_of(const struct variant *v, uint32_t rule)
{
	if (!rule)
		return v->says;
	return v->second.there ? v->second.says : GONE;
}

static bool has_limits(const struct variant *v, uint32_t rule)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (v->limit[i].rule == rule)
			return true;
	return false;
}

static bool is_there(const struct variant *v, uint32_t rule)
{
	enum says says = says_of(v, rule);

	return says == DENIES || (says == ASKS && has_limits(v, rule));
}

/* Which of both a packet to the port falls under. */
static uint32_t rule_for(const struct variant *v, uint32_t port)
{
	for (uint32_t i = 0; i < NO_RULE; i++) {
		uint32_t rule = v->second.first ? 1 - i : i;
		bool of_all = rule ? v->second.of_all : !v->narrow;

		if (is_there(v, rule) && (of_all || port == RULE_PORT + rule))
			return rule;
	}
	return NO_RULE;
}

/* --- as text ------------------------------------------------------------------------------------
 */

static void say_limit(const struct limit *l)
{
	static const char *const keys[3][2] = {
	    {"src", "src+dst"}, {"src/31,64", "src/31,64+dst"}, {"dst", "dst+proto"}};
	const char *key = keys[l->by][l->wider_key], *of = l->of_new ? ", of: new" : "";
	unsigned int entries = l->roomy ? 256 : 64;
	uint64_t unit = l->bytes ? PACKET_BYTES : 1;

	switch (l->kind) {
	case LIMIT_WINDOW:
		say("  - {key: %s, %s: %" PRIu64 ", window: %" PRIu64 "ms, slots: %" PRIu64
		    ", entries: %u%s}\n",
		    key, l->bytes ? "bytes" : "packets", l->value * unit, l->window_ms, l->slots,
		    entries, of);
		break;
	case LIMIT_RATE:
		say("  - {key: %s, rate: %" PRIu64 "%s/s, burst: %" PRIu64 ", entries: %u%s}\n",
		    key, l->speed * unit, l->bytes ? "B" : "", l->value * unit, entries, of);
		break;
	case LIMIT_GAP:
		say("  - {key: %s, gap: %" PRIu64 "ms%s}\n", key, l->value, of);
		break;
	default:
		say("  - {key: all, uses: %" PRIu64 ", cooldown: %" PRIu64
		    "ms, max_cooldown: %" PRIu64 "ms, threshold: %" PRIu64 "}\n",
		    l->value, l->window_ms, 2 * l->window_ms, l->threshold);
	}
}

static void say_pool_rules(const struct variant *v)
{
	for (uint32_t i = 0; i < v->n_pools; i++)
		say("- {name: p%u, match: {dport: %u}, verdict: pool p%u}\n", i, POOL_PORT + i, i);
}

static void say_pools(const struct variant *v)
{
	for (uint32_t i = 0; i < v->n_pools; i++) {
		const struct pool *p = &v->pool[i];

		say("%s- {name: p%u, each: %" PRIu64 ", cooldown: %" PRIu64
		    "ms, threshold: %" PRIu64 ", targets: [",
		    i ? "" : "pools:\n", i, p->each, p->cooldown_ms, p->threshold);
		for (uint32_t t = 0, n = 0; t < VARIANT_TARGETS; t++)
			if (p->targets & 1u << t)
				say("%sxsk:%u", n++ ? ", " : "", t);
		say("]}\n");
	}
}

static void say_bans(const struct bans *b)
{
	if (b->grow)
		say("  ban: {for: %" PRIu64 "ms, grow: x%" PRIu64 ", up_to: %" PRIu64
		    "ms, forget: %" PRIu64 "ms}\n",
		    b->for_ms, b->grow, b->up_to_ms, b->forget_ms);
	else if (b->for_ms)
		say("  ban: %" PRIu64 "ms\n", b->for_ms);
}

static void say_rule(const struct variant *v, uint32_t rule)
{
	bool of_all = rule ? v->second.of_all : !v->narrow;

	if (!is_there(v, rule))
		return;
	say("- name: %s\n", rule ? "c" : "a");
	if (!of_all)
		say("  match: {dport: %u}\n", RULE_PORT + rule);
	if (!rule && v->says == ASKS)
		say_bans(&v->bans);
	say(says_of(v, rule) == DENIES ? "  verdict: drop\n" : "  limits:\n");
	for (uint32_t i = 0; i < v->n && says_of(v, rule) == ASKS; i++)
		if (v->limit[i].rule == rule)
			say_limit(&v->limit[i]);
}

static void say_rules(const struct variant *v)
{
	if (v->says == ASKS)
		say_pool_rules(v);
	say_rule(v, v->second.first);
	say_rule(v, !v->second.first);
	if (!v->beside)
		return;
	say("- name: b\n  match: {dport: 9}\n  limits:\n");
	say_limit(&(struct limit){
	    .kind = LIMIT_WINDOW, .value = 9, .window_ms = 1000, .slots = v->beside});
}

/* Its number stands in the first line, so that a pacer says which one is in force. */
static const char *text_of(const struct variant *v)
{
	bool empty =
	    !v->beside && !is_there(v, 0) && !is_there(v, 1) && (v->says != ASKS || !v->n_pools);

	say_again();
	say("# %u\nmemory: 2M\nflows: 64\nclock: %s\nrules:%s\n", (unsigned int)(v - variant),
	    v->coarse ? "coarse" : "exact", empty ? " []" : "");
	say_rules(v);
	if (v->bans_room)
		say("bans: %u\n", v->bans_room);
	if (v->says == ASKS)
		say_pools(v);
	return doc.s;
}

/* --- what they admit ----------------------------------------------------------------------------
 */

#define TIMES 4u

/* What windows and cooldowns are long, and the windows that are looked at. */
static const uint64_t times_ns[TIMES] = {SECOND, 2 * SECOND, 3 * SECOND, 10 * SECOND};

/* Of packets of one key that fell under one rule, in any time as long as this. */
struct asked {
	enum of of;
	enum by by;
	bool of_new; /* those that opened a flow */
	uint32_t rule;
	uint32_t target; /* BY_TARGET */
	uint64_t span_ns;
};

/* A limit, and what it admits. */
struct most {
	uint32_t time; /* which of times_ns it has, or 0 */
	double most;   /* INFINITY: there is no limit */
	bool wider;    /* it counts more packets than are asked for */
};

static struct most most_counted(uint64_t value, uint64_t length_ms, uint64_t span_ns)
{
	uint64_t length_ns = length_ms * MS;
	struct most most = {.most = (double)(value * (1 + span_ns / length_ns))};

	while (times_ns[most.time] != length_ns)
		assert_true(++most.time < TIMES);
	if (length_ns >= span_ns)
		most.most = (double)value;
	return most;
}

static enum of of_limit(const struct limit *l)
{
	switch (l->kind) {
	case LIMIT_WINDOW:
		return OF_WINDOW;
	case LIMIT_RATE:
		return OF_RATE;
	case LIMIT_GAP:
		return OF_GAP;
	default:
		return OF_USES;
	}
}

static struct most most_of_limit(const struct limit *l, uint64_t span_ns)
{
	switch (l->kind) {
	case LIMIT_RATE:
		return (struct most){.most = (double)l->value +
					     (double)l->speed * (double)span_ns / 1e9};
	case LIMIT_GAP:
		return (struct most){.most = 1 + (double)(span_ns / (l->value * MS))};
	default:
		return most_counted(l->value, l->window_ms, span_ns);
	}
}

/* A target that is in no pool gets nothing. */
static struct most most_of_target(const struct variant *v, const struct asked *q)
{
	for (uint32_t i = 0; i < v->n_pools; i++)
		if (v->pool[i].targets & 1u << q->target)
			return most_counted(v->pool[i].each, v->pool[i].cooldown_ms, q->span_ns);
	return (struct most){0};
}

/* Those that count admit as much in any time of their own, or in one that is open where it begins.
 */
static bool has_this_time(const struct asked *q, struct most most)
{
	return q->of == OF_RATE || q->of == OF_GAP || most.most == 0 ||
	       times_ns[most.time] - q->span_ns <= 1;
}

/* Does the limit count them, whether or not it counts others of its rule, too? */
static bool bounds(const struct limit *l, const struct asked *q)
{
	return of_limit(l) == q->of && l->rule == q->rule && l->by >= q->by &&
	       (q->of_new || !l->of_new);
}

static bool is_wider(const struct limit *l, const struct asked *q)
{
	return l->by != q->by || l->of_new != q->of_new;
}

/* The limit of a policy that admits least of it. `alike`: of those of just so long a time. */
static struct most most_of(const struct variant *v, const struct asked *q, bool alike)
{
	struct most least = {.most = INFINITY}, most;

	if (says_of(v, q->rule) != ASKS)
		return (struct most){0};
	if (q->of == OF_TARGETS) {
		most = most_of_target(v, q);
		return alike && !has_this_time(q, most) ? least : most;
	}
	for (uint32_t i = 0; i < v->n; i++) {
		if (!bounds(&v->limit[i], q))
			continue;
		most = most_of_limit(&v->limit[i], q->span_ns);
		most.wider = is_wider(&v->limit[i], q);
		if (most.most < least.most && (!alike || has_this_time(q, most)))
			least = most;
	}
	return least;
}

#endif
