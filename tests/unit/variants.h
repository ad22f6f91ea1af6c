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

#define VARIANT_LIMITS	3u
#define VARIANT_POOLS	2u
#define VARIANT_TARGETS 3u
#define VARIANTS	128u
#define PACKET_BYTES	100u
#define POOL_PORT	21u /* packets to it are the first pool's; to the next, the second's */

enum by { BY_SOURCE, BY_DESTINATION, BY_TARGET }; /* all packets have one destination */
enum says { ASKS, DENIES, GONE }; /* the rule asks its limits, denies, or is not there */
enum of { OF_WINDOW, OF_RATE, OF_GAP, OF_USES, OF_TARGETS };

struct limit {
	enum policy_limit_kind kind;
	enum by by;
	bool wider_key; /* of another text, which tells the same packets apart */
	bool roomy;	/* four times the entries */
	bool bytes;	/* not packets, of a window or a rate */
	uint64_t value; /* packets, the burst, ms of the gap, uses */
	uint64_t speed; /* of a rate, a second */
	uint64_t window_ms, slots;
	uint64_t threshold; /* of uses */
};

struct pool {
	uint64_t each, cooldown_ms, threshold;
	uint32_t targets; /* a bit for each */
};

struct variant {
	enum says says;
	bool coarse;
	uint32_t n, n_pools;
	struct limit limit[VARIANT_LIMITS];
	struct pool pool[VARIANT_POOLS];
	uint64_t
	    beside; /* slots of another rule's window, for whose state others make room; 0: none */
};

static struct variant variant[VARIANTS];
static uint32_t n_variants;

/* --- as text ------------------------------------------------------------------------------------
 */

static void say_limit(const struct limit *l)
{
	static const char *const keys[2][2] = {{"src", "src+dst"}, {"dst", "dst+proto"}};
	const char *key = keys[l->by == BY_DESTINATION][l->wider_key];
	unsigned int entries = l->roomy ? 256 : 64;
	uint64_t unit = l->bytes ? PACKET_BYTES : 1;

	switch (l->kind) {
	case LIMIT_WINDOW:
		say("  - {key: %s, %s: %" PRIu64 ", window: %" PRIu64 "ms, slots: %" PRIu64
		    ", entries: %u}\n",
		    key, l->bytes ? "bytes" : "packets", l->value * unit, l->window_ms, l->slots,
		    entries);
		break;
	case LIMIT_RATE:
		say("  - {key: %s, rate: %" PRIu64 "%s/s, burst: %" PRIu64 ", entries: %u}\n", key,
		    l->speed * unit, l->bytes ? "B" : "", l->value * unit, entries);
		break;
	case LIMIT_GAP:
		say("  - {key: %s, gap: %" PRIu64 "ms}\n", key, l->value);
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

static void say_rules(const struct variant *v)
{
	if (v->says == ASKS)
		say_pool_rules(v);
	if (v->says == DENIES)
		say("- name: a\n  verdict: drop\n");
	if (v->says == ASKS && v->n)
		say("- name: a\n  limits:\n");
	for (uint32_t i = 0; i < v->n && v->says == ASKS; i++)
		say_limit(&v->limit[i]);
	if (!v->beside)
		return;
	say("- name: b\n  match: {dport: 9}\n  limits:\n");
	say_limit(&(struct limit){
	    .kind = LIMIT_WINDOW, .value = 9, .window_ms = 1000, .slots = v->beside});
}

/* Its number stands in the first line, so that a pacer says which one is in force. */
static const char *text_of(const struct variant *v)
{
	bool empty = !v->beside && (v->says == GONE || (v->says == ASKS && !v->n && !v->n_pools));

	say_again();
	say("# %u\nmemory: 2M\nclock: %s\nrules:%s\n", (unsigned int)(v - variant),
	    v->coarse ? "coarse" : "exact", empty ? " []" : "");
	say_rules(v);
	if (v->says == ASKS)
		say_pools(v);
	return doc.s;
}

/* --- what they admit ----------------------------------------------------------------------------
 */

#define TIMES 4u

/* What windows and cooldowns are long, and the windows that are looked at. */
static const uint64_t times_ns[TIMES] = {SECOND, 2 * SECOND, 3 * SECOND, 10 * SECOND};

/* Of packets of one key, in any time as long as this. */
struct asked {
	enum of of;
	enum by by;
	uint32_t target; /* BY_TARGET */
	uint64_t span_ns;
};

/* A limit, and what it admits. */
struct most {
	uint32_t time; /* which of times_ns it has, or 0 */
	double most;   /* INFINITY: there is no limit */
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
		return (struct most){0,
				     (double)l->value + (double)l->speed * (double)span_ns / 1e9};
	case LIMIT_GAP:
		return (struct most){0, 1 + (double)(span_ns / (l->value * MS))};
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
	return (struct most){0, 0};
}

/* Those that count admit as much in any time of their own, or in one that is open where it begins.
 */
static bool has_this_time(const struct asked *q, struct most most)
{
	return q->of == OF_RATE || q->of == OF_GAP || most.most == 0 ||
	       times_ns[most.time] - q->span_ns <= 1;
}

/* The limit of a policy that admits least of it. `alike`: of those of just so long a time. */
static struct most most_of(const struct variant *v, const struct asked *q, bool alike)
{
	struct most least = {0, INFINITY}, most;

	if (v->says != ASKS)
		return (struct most){0, 0};
	if (q->of == OF_TARGETS) {
		most = most_of_target(v, q);
		return alike && !has_this_time(q, most) ? least : most;
	}
	for (uint32_t i = 0; i < v->n; i++) {
		if (of_limit(&v->limit[i]) != q->of || v->limit[i].by != q->by)
			continue;
		most = most_of_limit(&v->limit[i], q->span_ns);
		if (most.most < least.most && (!alike || has_this_time(q, most)))
			least = most;
	}
	return least;
}

#endif
