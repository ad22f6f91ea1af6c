/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bans and the allow-list are changed by hand while policies change: tried, confirmed, rolled back,
 * rotated, restarted, and beside a shadow. A model of a few lines says for each address whether it
 * is let through, banned, or neither. Each packet has to fare so, by the policy in force and by the
 * shadow's; and what the tool says it did, and lists, has to be so.
 *
 * In some walks one of the steps is killed as it writes: then each packet fares as before the step
 * or as after it, and the step can be done again.
 */
#include <stdbool.h>

struct pacer_walk;
static bool is_allowed(const struct pacer_walk *w);

#define PACER_IS_ALLOWED(frame, walk, exact) ((void)(frame), (void)(exact), is_allowed(walk))

#define WALKS  40u
#define SWEEPS 8u
#include "walks.h"
#include "banning.h"

#include "live/allow.h"
#include "live/bans.h"

#define STEPS	    40u
#define STEPS_KILLS 14u
#define BANS_MAX    40u /* so that a table of 64 has room for each */
#define LENGTHS	    4u	/* of prefixes that can be banned at once */

/* --- policies -----------------------------------------------------------------------------------
 */

#define RULES	2u /* a, of port 7, and b, of port 8 */
#define SOURCE	RULES
#define ADDRESS 0x0a000001u /* of the first source */
#define PLACE	0x0a000100u /* where all packets go */

#define LISTED_BY_POLICY (ADDRESS + 1)

/* What limits count by, and so the keys that can be banned. */
enum kind { BY_SRC, BY_PAIR, BY_PORT, BY_DST, KINDS };

static const char *const keys[KINDS] = {"src", "src/31,64", "src+dport", "dst"};

struct outline {
	uint32_t number, bans;
	bool has[RULES];
	uint32_t kinds[RULES]; /* a bit for each */
	bool bans_itself[RULES];
	bool allows; /* the second source */
};

static struct outline outlines[VARIANTS];
static uint32_t n_outlines;

static bool counts_by(const struct outline *t, uint32_t rule, enum kind kind)
{
	return t->has[rule] && t->kinds[rule] & 1u << kind;
}

static const struct outline *any_outline(void)
{
	static const uint32_t rooms[] = {0, 64, 64, 128};
	struct outline *t = &outlines[n_outlines];

	assert_true(n_outlines < ARRAY(outlines));
	*t = (struct outline){.number = n_outlines++, .bans = rooms[draw() % ARRAY(rooms)]};
	t->allows = draw() % 3 == 0;
	for (uint32_t r = 0; r < RULES; r++) {
		t->has[r] = draw() % 4 > 0;
		t->kinds[r] = 1 + draw() % ((1u << KINDS) - 1);
		t->bans_itself[r] = t->bans && draw() % 4 == 0;
	}
	return t;
}

static const char *said(const struct outline *t)
{
	say_again();
	say("# %" PRIu32 "\nmemory: 512Ki\nclock: exact\nrules:%s\n", t->number,
	    t->has[0] || t->has[1] ? "" : " []");
	for (uint32_t r = 0; r < RULES; r++) {
		if (!t->has[r])
			continue;
		say("- name: %c\n  match: {dport: %" PRIu32 "}\n", 'a' + r, RULE_PORT + r);
		if (t->bans_itself[r])
			say("  ban: 5s\n");
		say("  limits:\n");
		for (uint32_t k = 0; k < KINDS; k++)
			if (t->kinds[r] & 1u << k)
				say("  - {key: %s, packets: 1000000, window: 1s, entries: 64}\n",
				    keys[k]);
	}
	if (t->bans)
		say("bans: %" PRIu32 "\n", t->bans);
	if (t->allows)
		say("allow: [10.0.0.2]\n");
	return doc.s;
}

/* --- the model ----------------------------------------------------------------------------------
 */

/* A key: of a rule, or a source. */
struct key {
	uint32_t rule; /* or SOURCE */
	enum kind kind;
	uint32_t address, length, port; /* length: of a source; port: of BY_PORT */
};

struct banned {
	struct key key;
	uint64_t until_ns; /* by the oracle's clock; PACER_NEVER */
	/* Of a key that no limit of the policy has: is it listed as one that refuses? What is left
	 * of a limit of the policy before asks for it, for a time. */
	bool asked_for;
};

struct table {
	uint32_t n;
	struct banned at[2 * BANS_MAX];
};

struct let_through {
	uint32_t address, length;
	uint64_t until_ns;
};

struct list {
	uint32_t n;
	struct let_through at[32];
};

/* A policy with what belongs to it. */
struct side {
	bool there;
	const struct outline *outline;
	uint32_t table;	  /* which of struct model's */
	struct list list; /* what is on it by hand */
	bool allows;	  /* what its policy lists is on it */
};

static struct model {
	struct side now, before, shadow; /* before: what a trial gives way to */
	struct table table[3];		 /* the last is the shadow's */
} model;

static bool same_key(const struct key *a, const struct key *b)
{
	return a->rule == b->rule && a->kind == b->kind && a->address == b->address &&
	       a->length == b->length && a->port == b->port;
}

static bool runs(uint64_t until_ns)
{
	return until_ns > now_ns();
}

static struct banned *find(struct table *t, const struct key *key)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (same_key(&t->at[i].key, key) && runs(t->at[i].until_ns))
			return &t->at[i];
	return NULL;
}

static void enter(struct table *t, const struct key *key, uint64_t until_ns)
{
	struct banned *was = find(t, key);

	if (was) {
		was->until_ns = until_ns > was->until_ns ? until_ns : was->until_ns;
		return;
	}
	assert_true(t->n < ARRAY(t->at));
	t->at[t->n++] = (struct banned){.key = *key, .until_ns = until_ns};
}

static void drop_ended(struct table *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (runs(t->at[i].until_ns))
			t->at[n++] = t->at[i];
	t->n = n;
}

static bool is_within(uint32_t address, uint32_t prefix, uint32_t length)
{
	return !((address ^ prefix) & ~(uint32_t)(0xffffffffull >> length));
}

/* Is this a key of the packet under its rule? */
static bool is_of(const struct key *key, struct sent p)
{
	uint32_t address = ADDRESS + p.source;

	switch (key->kind) {
	case BY_SRC:
		return key->address == address;
	case BY_PAIR:
		return key->address == (address & ~1u);
	case BY_PORT:
		return key->address == address && key->port == p.port;
	default:
		return key->address == PLACE;
	}
}

enum fate { PASSES, ALLOWED, BANNED };

static enum fate fate_by(const struct side *s, const struct banned *b, struct sent p)
{
	uint32_t rule = p.port - RULE_PORT;

	if (!runs(b->until_ns))
		return PASSES;
	if (b->key.rule == SOURCE)
		return is_within(ADDRESS + p.source, b->key.address, b->key.length) ? BANNED
										    : PASSES;
	if (rule != b->key.rule || !s->outline->has[rule] || !is_of(&b->key, p))
		return PASSES;
	if (counts_by(s->outline, rule, b->key.kind))
		return BANNED;
	return b->asked_for ? BANNED : PASSES;
}

static enum fate fate_of(const struct model *m, const struct side *s, struct sent p)
{
	const struct table *t = &m->table[s->table];

	if (s->allows && ADDRESS + p.source == LISTED_BY_POLICY)
		return ALLOWED;
	for (uint32_t i = 0; i < s->list.n; i++)
		if (runs(s->list.at[i].until_ns) &&
		    is_within(ADDRESS + p.source, s->list.at[i].address, s->list.at[i].length))
			return ALLOWED;
	for (uint32_t i = 0; s->outline->bans && i < t->n; i++)
		if (fate_by(s, &t->at[i], p) == BANNED)
			return BANNED;
	return PASSES;
}

/* --- packets ------------------------------------------------------------------------------------
 */

/* The longest prefix that has the source in it, in the list of the copy in force. */
static bool is_allowed(const struct pacer_walk *w)
{
	const struct kernel_map_of *m = &kernel_maps[pacer.allow4_fd];
	const struct pacer_allow_value *found = NULL;
	uint32_t copy = copies_in_force(&pacer), longest = 0;

	if (!pacer.control->allowed[copy].any)
		return false;
	for (size_t i = 0; i < m->n; i++) {
		const struct pacer_allow4 *key = (const void *)m->at[i].key;
		uint32_t length = key->prefixlen - PACER_ALLOW_COPY_BITS;

		if (key->copy != copy || (found && length < longest) ||
		    !is_within(w->pkt.key[PACER_WORD_SADDR], pacer_be32(key->addr), length))
			continue;
		longest = length;
		found = m->at[i].value;
	}
	return found && (!found->until_ns || w->now_ns < found->until_ns);
}

/* A shadow, with all that it has of its own. */
static struct beside {
	struct attached a;
	struct pacer_copy *copies;
	struct pacer_throttle_state *throttles;
	struct pacer_control *control;
} beside;

/* The shadow's are what is judged by, until the next call. */
static void swap_sides(void)
{
	SWAP(pacer, beside.a);
	SWAP(copies, beside.copies);
	SWAP(throttles, beside.throttles);
	SWAP(control, beside.control);
}

static enum fate fares(struct sent p)
{
	enum pacer_reason reason = pacer_outcome_reason(judge(draw() % KERNEL_CPUS, p));

	return reason == PACER_ALLOWED ? ALLOWED : reason == PACER_DENY_BAN ? BANNED : PASSES;
}

static const char *fate_text(enum fate f)
{
	static const char *const texts[] = {"passes", "is on the allow-list", "is banned"};

	return texts[f];
}

/* After a step that was killed it may be as it was, and another model has how that is. */
static void check_packets(const struct model *was, bool shadow)
{
	for (uint32_t i = 0; i < SOURCES * (RULES + 1) && !work.broken; i++) {
		struct sent p = {i % SOURCES, RULE_PORT + i / SOURCES, FIRST_FLOW};
		const struct side *s = shadow ? &model.shadow : &model.now;
		enum fate is = fares(p), fate = fate_of(&model, s, p);

		if (is != fate &&
		    (!was || is != fate_of(was, shadow ? &was->shadow : &was->now, p)))
			break_it("a packet of 10.0.0.%" PRIu32 " to port %" PRIu32
				 "%s %s, which %s",
				 1 + p.source, p.port, shadow ? " by the shadow" : "",
				 fate_text(is), fate_text(fate));
	}
}

/* --- what is listed -----------------------------------------------------------------------------
 */

static const char *address_text(uint32_t address)
{
	static char text[2][16];
	static uint32_t turn;

	turn = !turn;
	snprintf(text[turn], sizeof(text[turn]), "%" PRIu32 ".%" PRIu32 ".%" PRIu32 ".%" PRIu32,
		 address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
	return text[turn];
}

static const char *key_text(const struct key *key)
{
	static char text[2][32];
	static uint32_t turn;
	char *to = text[turn = !turn];
	const char *address = address_text(key->address);

	if (key->rule == SOURCE && key->length < 32)
		snprintf(to, sizeof(text[0]), "%s/%" PRIu32, address, key->length);
	else if (key->rule != SOURCE && key->kind == BY_PAIR)
		snprintf(to, sizeof(text[0]), "%s/31", address);
	else if (key->rule != SOURCE && key->kind == BY_PORT)
		snprintf(to, sizeof(text[0]), "%s %" PRIu32, address, key->port);
	else
		snprintf(to, sizeof(text[0]), "%s", address);
	return to;
}

static const char *rule_name(uint32_t rule)
{
	static const char *const names[] = {"a", "b", ""};

	return names[rule];
}

static struct {
	size_t n;
	struct ban at[128];
} listed;

static void list_it(const struct ban *ban, void *unused)
{
	(void)unused;
	assert_true(listed.n < ARRAY(listed.at));
	listed.at[listed.n++] = *ban;
	tell("    %s of %s for %.9f s%s\n", ban->key, *ban->rule ? ban->rule : "all",
	     (double)ban->left_ns / 1e9, ban->in_force ? "" : ", refuses nobody");
}

/* Keys of two kinds may have one text, and bans of both one end: rather one that is so in force. */
static const struct ban *find_listed(const struct side *s, const struct banned *b, bool in_force)
{
	bool named = b->key.rule == SOURCE || s->outline->has[b->key.rule];
	const struct ban *found = NULL;

	for (size_t i = 0; i < listed.n; i++) {
		const struct ban *ban = &listed.at[i];
		uint64_t left_ns =
		    b->until_ns == PACER_NEVER ? PACER_NEVER : b->until_ns - now_ns();

		if ((!found || found->in_force != in_force) &&
		    !strcmp(ban->key, key_text(&b->key)) && ban->left_ns == left_ns &&
		    !strcmp(ban->rule, named ? rule_name(b->key.rule) : "?"))
			found = ban;
	}
	return found;
}

/* Does it say of each whether packets are asked for it? */
static void check_in_force(const struct side *s, struct banned *b)
{
	const struct key *key = &b->key;
	bool by = key->rule == SOURCE || counts_by(s->outline, key->rule, key->kind);
	const struct ban *ban = find_listed(s, b, by);

	if (!ban || !ban->outside)
		break_it("%s of %s is not listed, or not so", key_text(key), rule_name(key->rule));
	else if (by ? !ban->in_force : ban->in_force && !s->outline->has[key->rule])
		break_it("%s of %s is listed as one that %s", key_text(key), rule_name(key->rule),
			 by ? "refuses nobody" : "refuses");
	else
		b->asked_for = ban->in_force;
}

static void check_list(bool shadow)
{
	const struct side *s = shadow ? &model.shadow : &model.now;
	struct policy *policy = parse(copies[copies_in_force(&pacer)].text);
	struct table *t = &model.table[s->table];

	drop_ended(t);
	listed.n = 0;
	bans_each(&pacer, policy, list_it, NULL);
	policy_free(policy);
	for (uint32_t i = 0; i < t->n && s->outline->bans && !work.broken; i++)
		check_in_force(s, &t->at[i]);
	if (!work.broken && listed.n != (s->outline->bans ? t->n : 0))
		break_it("%zu bans are listed%s of %" PRIu32, listed.n,
			 shadow ? " of the shadow" : "", t->n);
}

static void check_side(const struct model *was, bool shadow)
{
	if (shadow)
		swap_sides();
	if (!was)
		check_list(shadow);
	if (!work.broken)
		check_packets(was, shadow);
	if (shadow)
		swap_sides();
}

/* Which policy is in force may change by itself. */
static void see_trial(void)
{
	if (in_force() != model.now.outline->number) {
		assert_true(model.before.there);
		assert_int_equal(in_force(), model.before.outline->number);
		model.now = model.before;
	}
	if (!copies_pending_ns(&pacer))
		model.before.there = false;
}

static void check(const struct model *was)
{
	if (work.broken)
		return;
	see_trial();
	check_side(was, false);
	if (model.shadow.there && !work.broken)
		check_side(was, true);
}

/* --- steps --------------------------------------------------------------------------------------
 */

/* What a step is to say. */
struct outcome {
	int result;
	bool either; /* or that it cannot */
	size_t done, left_out, before, in_shadow, of_shadow;
};

#define WISHES 3u

static struct step {
	struct outcome (*model)(void);
	int (*run)(void);
	uint32_t rule; /* or SOURCE: of no rule */
	uint32_t n;
	struct key wish[WISHES]; /* of length 0: everything, where bans are lifted */
	uint64_t for_ns;	 /* 0: until it is lifted */
	const struct outline *outline;
	uint64_t confirm_ns;
} step;

static struct bans_done banned;

static void begin_wishes(struct ban_wish wish[WISHES], char text[WISHES][32])
{
	for (uint32_t i = 0; i < step.n; i++) {
		snprintf(text[i], sizeof(text[i]), "%s", key_text(&step.wish[i]));
		wish[i] = (struct ban_wish){.key = text[i], .for_ns = step.for_ns};
	}
}

static const char *step_rule(void)
{
	return step.rule == SOURCE ? NULL : rule_name(step.rule);
}

static int run_add(void)
{
	struct ban_wish wish[WISHES];
	char text[WISHES][32];

	begin_wishes(wish, text);
	return bans_add(&pacer, step_rule(), wish, step.n, &banned, &error);
}

static int run_lift(void)
{
	struct ban_wish wish[WISHES];
	char text[WISHES][32];

	begin_wishes(wish, text);
	return bans_lift(&pacer, step_rule(), step.n ? wish : NULL, step.n, &banned, &error);
}

/* What an address is a key of, under the rule of a policy: of a source where it has a limit by
 * those. */
static bool read_as(const struct outline *t, struct key *key)
{
	if (key->rule == SOURCE)
		return true;
	if (key->kind == BY_SRC || key->kind == BY_DST)
		key->kind = counts_by(t, key->rule, BY_SRC) ? BY_SRC : BY_DST;
	return counts_by(t, key->rule, key->kind);
}

/* So many lengths of sources has the table, with these. */
static uint32_t lengths_with(const struct table *t, const struct key *more, uint32_t n)
{
	uint64_t lengths = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->at[i].key.rule == SOURCE && runs(t->at[i].until_ns))
			lengths |= 1ull << t->at[i].key.length;
	for (uint32_t i = 0; i < n; i++)
		lengths |= 1ull << more[i].length;
	return (uint32_t)__builtin_popcountll(lengths);
}

static bool fits(const struct side *s, const struct key *more, uint32_t n)
{
	return step.rule != SOURCE || !s->there || !s->outline->bans ||
	       lengths_with(&model.table[s->table], more, n) <= LENGTHS;
}

static uint64_t step_until_ns(void)
{
	return step.for_ns ? now_ns() + step.for_ns : PACER_NEVER;
}

/* True: it lacks there. */
static bool add_elsewhere(const struct side *s, const struct key *key)
{
	struct key there = *key;

	if (!s->there || (key->rule != SOURCE && !s->outline->has[key->rule]))
		return false;
	if (!s->outline->bans || !read_as(s->outline, &there) || there.kind != key->kind)
		return true;
	if (s->table == model.now.table)
		return false;
	if (!fits(s, key, 1))
		return true;
	enter(&model.table[s->table], key, step_until_ns());
	return false;
}

static struct outcome model_add(void)
{
	struct outcome o = {0};
	struct key as[WISHES];

	if (step.rule != SOURCE && !model.now.outline->has[step.rule])
		return (struct outcome){.result = BANS_WRONG};
	for (uint32_t i = 0; i < step.n; i++) {
		as[i] = step.wish[i];
		if (!read_as(model.now.outline, &as[i]) || !fits(&model.now, as, i + 1) ||
		    !fits(&model.before, as, i + 1))
			return (struct outcome){.result = BANS_WRONG};
	}
	if (!model.now.outline->bans)
		return (struct outcome){.result = -1};
	for (uint32_t i = 0; i < step.n; i++) {
		enter(&model.table[model.now.table], &as[i], step_until_ns());
		o.done++;
		o.before += add_elsewhere(&model.before, &as[i]);
		o.in_shadow += add_elsewhere(&model.shadow, &as[i]);
	}
	return o;
}

static bool is_wished(const struct banned *b)
{
	if (step.rule != SOURCE && b->key.rule != step.rule)
		return false;
	for (uint32_t i = 0; i < step.n; i++)
		if (!strcmp(key_text(&step.wish[i]), key_text(&b->key)))
			return true;
	return !step.n;
}

static size_t lift_from_table(uint32_t from, const struct side *unless, bool found[WISHES])
{
	struct table *t = &model.table[from];
	size_t lifted = 0;
	uint32_t n = 0;

	drop_ended(t);
	for (uint32_t i = 0; i < t->n; i++) {
		if (!is_wished(&t->at[i])) {
			t->at[n++] = t->at[i];
			continue;
		}
		lifted += !unless || !unless->outline->bans ||
			  !find(&model.table[unless->table], &t->at[i].key);
		for (uint32_t k = 0; k < step.n; k++)
			found[k] |= !strcmp(key_text(&step.wish[k]), key_text(&t->at[i].key));
	}
	t->n = n;
	return lifted;
}

static struct outcome model_lift(void)
{
	struct outcome o = {0};
	bool found[WISHES] = {false};

	if (model.before.there && model.before.outline->bans &&
	    model.before.table != model.now.table)
		o.done += lift_from_table(model.before.table, &model.now, found);
	if (model.now.outline->bans)
		o.done += lift_from_table(model.now.table, NULL, found);
	if (model.shadow.there && model.shadow.outline->bans)
		o.of_shadow = lift_from_table(model.shadow.table, NULL, found);
	for (uint32_t i = 0; i < step.n; i++)
		o.left_out += !found[i];
	return o;
}

/* The allow-list: step.wish[0] is the prefix. */

static struct allow_entry entry_of_step(void)
{
	struct allow_entry entry = {.prefix = {.family = 4, .len = (uint8_t)step.wish[0].length},
				    .by_hand = true,
				    .hand_until_ns = step.for_ns ? kernel_now_ns + step.for_ns : 0};

	for (uint32_t i = 0; i < 4; i++)
		entry.prefix.addr[i] = (uint8_t)(step.wish[0].address >> (24 - 8 * i));
	return entry;
}

static int run_allow(void)
{
	struct allow_entry entry = entry_of_step();

	return allow_add(&pacer, &entry, &error);
}

static int run_disallow(void)
{
	struct allow_entry entry = entry_of_step();

	return allow_del(&pacer, &entry.prefix, &error);
}

/* What has lapsed may still be there to be taken off, or not. */
static enum { NOT_LISTED, LAPSED, LISTED } take_off(struct list *l)
{
	uint32_t n = 0;
	int found = NOT_LISTED;

	for (uint32_t i = 0; i < l->n; i++) {
		if (l->at[i].address != step.wish[0].address ||
		    l->at[i].length != step.wish[0].length)
			l->at[n++] = l->at[i];
		else
			found = runs(l->at[i].until_ns) ? LISTED : LAPSED;
	}
	l->n = n;
	return found;
}

static void put_on_list(struct side *s)
{
	if (!s->there)
		return;
	(void)take_off(&s->list);
	assert_true(s->list.n < ARRAY(s->list.at));
	s->list.at[s->list.n++] =
	    (struct let_through){step.wish[0].address, step.wish[0].length, step_until_ns()};
}

static struct outcome model_allow(void)
{
	put_on_list(&model.now);
	put_on_list(&model.before);
	put_on_list(&model.shadow);
	return (struct outcome){0};
}

static struct outcome model_disallow(void)
{
	struct side *const sides[] = {&model.now, &model.before, &model.shadow};
	int found = NOT_LISTED;

	for (size_t i = 0; i < ARRAY(sides); i++)
		if (sides[i]->there) {
			int one = take_off(&sides[i]->list);

			if (sides[i]->allows && step.wish[0].address == LISTED_BY_POLICY &&
			    step.wish[0].length == 32) {
				sides[i]->allows = false;
				one = LISTED;
			}
			found = one > found ? one : found;
		}
	return (struct outcome){.result = found == NOT_LISTED ? -1 : 0, .either = found == LAPSED};
}

/* Changes of the policy. */

static const struct set_texts no_sets;

static int run_apply(void)
{
	return change_apply(&pacer, said(step.outline), &no_sets, step.confirm_ns, &plan, &error);
}

static struct outcome model_apply(void)
{
	struct side next = model.now;

	if (model.before.there)
		return (struct outcome){.result = -1};
	next.outline = step.outline;
	next.allows = step.outline->allows;
	if (next.outline->bans != model.now.outline->bans) {
		next.table = !model.now.table;
		model.table[next.table] = model.table[model.now.table];
		if (!next.outline->bans || !model.now.outline->bans)
			model.table[next.table].n = 0;
	}
	model.before = model.now;
	model.before.there = step.confirm_ns > 0;
	model.now = next;
	return (struct outcome){0};
}

static struct outcome model_confirm(void)
{
	struct outcome o = {.result = model.before.there ? 0 : -1};

	model.before.there = false;
	return o;
}

static struct outcome model_rotate(void)
{
	return (struct outcome){.result = model.before.there ? -1 : 0};
}

static int run_in_kill(const void *unused)
{
	(void)unused;
	return step.run();
}

static bool changes_policy(void)
{
	return step.run == run_apply || step.run == run_confirm || step.run == run_rotate;
}

/* Did it say so, and do as much as it was to? */
static bool is_as_said(int result, const struct outcome *o)
{
	if (result != o->result)
		return o->either && result == -1;
	if ((step.run != run_add && step.run != run_lift) || result)
		return true;
	return banned.done == o->done && banned.left_out == o->left_out &&
	       banned.before.n == o->before && banned.in_shadow.n == o->in_shadow &&
	       banned.of_shadow == o->of_shadow;
}

/* A change of the policy may be refused for want of room, and has changed nothing then. */
static void take_result(int result, const struct model *was, const struct outcome *o)
{
	work.done += result >= 0;
	work.refused += result < 0;
	tell("-> %d%s%s\n", result, result < 0 ? ": " : "", result < 0 ? error.text : "");
	if (changes_policy() && result == -1)
		model = *was;
	else if (changes_policy() ? o->result == -1 : !is_as_said(result, o))
		break_it("it says %d: %zu done, %zu left out, not before: %zu, not in the shadow: "
			 "%zu, of it: %zu; to be %d: %zu, %zu, %zu, %zu, %zu: %s",
			 result, banned.done, banned.left_out, banned.before.n, banned.in_shadow.n,
			 banned.of_shadow, o->result, o->done, o->left_out, o->before, o->in_shadow,
			 o->of_shadow, error.text);
}

/* A policy is in force or is not; what else was begun can be done again. */
static void after_kill(const struct model *was)
{
	struct model after = model;
	int result;

	work.killed++;
	tell("-> killed\n");
	if (changes_policy()) {
		if (in_force() != model.now.outline->number ||
		    (step.run == run_confirm && copies_pending_ns(&pacer)))
			model = *was;
		return;
	}
	check(was);
	model = after;
	result = step.run();
	tell("-> again: %d%s%s\n", result, result < 0 ? ": " : "", result < 0 ? error.text : "");
}

/* As soon as a policy is in force, all is as it says. */
static void look_meanwhile(void)
{
	if (in_force() == model.now.outline->number && !work.broken)
		check_side(NULL, false);
}

static void take_step(uint32_t kill)
{
	static struct model was;
	struct outcome o;
	int result = 0;
	bool done;

	see_trial();
	was = model;
	o = step.model();
	error.text[0] = 0;
	memset(&banned, 0, sizeof(banned));
	killed.lines = !changes_policy();
	grace_hook = step.run == run_apply ? look_meanwhile : NULL;
	done = !kill || !kill_in(kill, run_in_kill, NULL, &result);
	if (done && !kill)
		result = step.run();
	grace_hook = NULL;
	if (done)
		take_result(result, &was, &o);
	else
		after_kill(&was);
	check(NULL);
}

/* --- which steps --------------------------------------------------------------------------------
 */

static uint64_t any_time_ns(void)
{
	static const uint64_t times[] = {2 * SECOND, 7 * SECOND, 60 * SECOND, 0};

	return times[draw() % ARRAY(times)];
}

static struct key any_source(void)
{
	static const uint32_t lengths[] = {32, 32, 32, 31, 30, 24, 16};
	struct key key = {.rule = SOURCE, .length = lengths[draw() % ARRAY(lengths)]};

	key.address = ADDRESS + (uint32_t)(draw() % (SOURCES + 1));
	key.address &= ~(uint32_t)(0xffffffffull >> key.length);
	return key;
}

static struct key any_key(uint32_t rule)
{
	struct key key = {.rule = rule, .kind = (enum kind)(draw() % KINDS)};

	if (rule == SOURCE)
		return any_source();
	key.address = ADDRESS + (uint32_t)(draw() % SOURCES);
	if (key.kind == BY_PAIR)
		key.address &= ~1u;
	if (key.kind == BY_PORT)
		key.port = RULE_PORT + draw() % RULES;
	if (key.kind == BY_DST)
		key.address = PLACE;
	return key;
}

static void draw_wishes(void)
{
	step.rule = (uint32_t)(draw() % (RULES + 1));
	step.n = 1 + (uint32_t)(draw() % 4 == 0 ? draw() % WISHES : 0);
	for (uint32_t i = 0; i < step.n; i++) {
		step.wish[i] = any_key(step.rule);
		for (uint32_t k = 0; k < i; k++) /* each once */
			if (!strcmp(key_text(&step.wish[k]), key_text(&step.wish[i])))
				step.n = i;
		tell("  %s\n", key_text(&step.wish[i]));
	}
	step.for_ns = any_time_ns();
}

static bool is_full(void)
{
	for (size_t i = 0; i < ARRAY(model.table); i++)
		if (model.table[i].n + WISHES > BANS_MAX)
			return true;
	return false;
}

static void draw_add(void)
{
	step.model = model_add;
	step.run = run_add;
	tell("ban add\n");
	draw_wishes();
	tell("  under %s, for %.0f s\n", rule_name(step.rule), (double)step.for_ns / 1e9);
}

static void draw_lift(void)
{
	step.model = model_lift;
	step.run = run_lift;
	tell("ban del\n");
	draw_wishes();
	if (draw() % 8 == 0)
		step.n = 0;
	tell("  of %s%s\n", rule_name(step.rule), step.n ? "" : ", all");
}

static void draw_allow(void)
{
	bool add = draw() % 3 > 0;

	step.model = add ? model_allow : model_disallow;
	step.run = add ? run_allow : run_disallow;
	step.wish[0] = any_source();
	if (!add && model.now.allows && draw() % 2)
		step.wish[0] = (struct key){.address = LISTED_BY_POLICY, .length = 32};
	step.for_ns = any_time_ns();
	tell("allow %s %s/%" PRIu32 " for %.0f s\n", add ? "add" : "del",
	     address_text(step.wish[0].address), step.wish[0].length, (double)step.for_ns / 1e9);
}

static void draw_apply(void)
{
	step.model = model_apply;
	step.run = run_apply;
	step.outline = any_outline();
	step.confirm_ns = draw() % 2 ? 0 : 100 * MS + draw() % (20 * SECOND);
	tell("apply%s\n%s", step.confirm_ns ? " on trial" : "", said(step.outline));
}

static void draw_step(void)
{
	uint64_t which = draw() % 16;

	memset(&step, 0, sizeof(step));
	if (which < 5 && !is_full()) {
		draw_add();
	} else if (which < 8) {
		draw_lift();
	} else if (which < 10) {
		draw_allow();
	} else if (which < 13) {
		draw_apply();
	} else if (which < 15) {
		step.model = model_confirm;
		step.run = run_confirm;
		tell("confirm\n");
	} else {
		step.model = model_rotate;
		step.run = run_rotate;
		tell("rotate\n");
	}
}

/* --- a shadow -----------------------------------------------------------------------------------
 */

static void copy_allowed(void)
{
	kernel_map_new(KERNEL_SHADOW4, sizeof(struct pacer_allow4),
		       sizeof(struct pacer_allow_value));
	kernel_map_new(KERNEL_SHADOW6, sizeof(struct pacer_allow6),
		       sizeof(struct pacer_allow_value));
	for (size_t i = 0; i < kernel_maps[KERNEL_ALLOW4].n; i++)
		assert_int_equal(bpf_map_update_elem(KERNEL_SHADOW4,
						     kernel_maps[KERNEL_ALLOW4].at[i].key,
						     kernel_maps[KERNEL_ALLOW4].at[i].value, 0),
				 0);
}

static void end_shadow(void)
{
	if (!model.shadow.there)
		return;
	tell("the shadow ends\n");
	stays_shadow = NULL;
	pacer.shadow_id = 0;
	model.shadow.there = false;
	kernel_map_new(KERNEL_SHADOW4, 0, 0);
	kernel_map_new(KERNEL_SHADOW6, 0, 0);
	pages_free(beside.a.lines, lines_bytes);
	two_free(beside.copies, sizeof(*beside.copies));
	pages_free(beside.throttles, PACER_THROTTLES * sizeof(*beside.throttles));
	pages_free(beside.control, sizeof(*beside.control));
	memset(&beside, 0, sizeof(beside));
}

/* One that begins with what the pacer has, and another policy. */
static void begin_shadow(void)
{
	const struct outline *t = any_outline();
	int result;

	if (model.shadow.there || model.before.there)
		return;
	beside.a = pacer;
	beside.a.allow4_fd = KERNEL_SHADOW4;
	beside.a.allow6_fd = KERNEL_SHADOW6;
	beside.copies = two_new(sizeof(*copies));
	beside.throttles = pages_new(PACER_THROTTLES * sizeof(*throttles));
	beside.control = pages_new(sizeof(*control));
	memcpy(beside.copies, copies, 2 * sizeof(*copies));
	memcpy(beside.throttles, throttles, PACER_THROTTLES * sizeof(*throttles));
	*beside.control = *control;
	beside.a.copy = beside.copies;
	beside.a.throttle = beside.throttles;
	beside.a.control = beside.control;
	beside.a.lines = pages_new(lines_bytes);
	memcpy(beside.a.lines, pacer.lines, lines_bytes);
	copy_allowed();
	model.shadow = model.now;
	model.shadow.table = 2;
	model.table[2] = model.table[model.now.table];
	result = change_apply(&beside.a, said(t), &no_sets, 0, &plan, &error);
	tell("a shadow begins: %d\n%s", result, said(t));
	if (!result) {
		if (!t->bans || !model.now.outline->bans)
			model.table[2].n = 0;
		model.shadow.outline = t;
		model.shadow.allows = t->allows;
	}
	stays_shadow = &beside.a;
	pacer.shadow_id = 1;
	check(NULL);
}

/* --- walks --------------------------------------------------------------------------------------
 */

static void wait_a_while(void)
{
	uint64_t ns = draw() % 2 ? draw() % (3 * SECOND) : draw() % (30 * SECOND);

	kernel_now_ns += ns + 1;
	tell("%.3f s later\n", (double)ns / 1e9);
	check(NULL);
}

static void end_trial(void)
{
	kernel_now_ns += copies_pending_ns(&pacer) + 1;
	check(NULL);
}

static void restart_it(void)
{
	const struct outline *t = draw() % 2 ? any_outline() : model.now.outline;
	uint32_t bans = model.now.outline->bans;

	end_shadow();
	see_trial();
	restart_with(said(t), draw() % (3 * SECOND), draw() % 2 ? 50 * SECOND : 0);
	if (work.lost)
		return;
	model.before.there = false;
	model.now.outline = t;
	model.now.allows = t->allows;
	if (!bans || !t->bans)
		model.table[model.now.table].n = 0;
	check(NULL);
}

static void any_step(uint32_t kill)
{
	switch (kill ? 9 : draw() % 16) {
	case 0:
	case 1:
	case 2:
		wait_a_while();
		break;
	case 3:
		restart_it();
		break;
	case 4:
		begin_shadow();
		break;
	case 5:
		if (draw() % 2)
			end_shadow();
		break;
	default:
		draw_step();
		take_step(kill);
	}
}

/* True: nothing was other than the model says. */
static bool walk(uint64_t seed, uint32_t kill, bool told)
{
	uint32_t steps = kill ? STEPS_KILLS : STEPS;

	begin_walk("test_by_hand", seed, kill, told);
	memset(&model, 0, sizeof(model));
	n_outlines = 0;
	model.now = (struct side){.there = true, .outline = any_outline()};
	load_text(said(model.now.outline)); /* which writes no allow-list */
	for (uint32_t i = 0; i < steps && !work.broken && !work.lost; i++)
		any_step(kill && i + 1 == steps ? kill : 0);
	if (!work.lost)
		end_trial();
	end_shadow();
	(void)end(NULL);
	return !work.broken;
}

/* The state can be taken, as the next that is done, and has the ban. */
static void save_it(void)
{
	struct state s;
	size_t n = 0;

	put_leases();
	save_and_read(&s);
	for (size_t i = 0; i < (size_t)s.bin->bans.sets * PACER_BAN_WAYS; i++)
		n += s.lines[s.bin->bans.base + i].ban_until_ns > kernel_now_ns;
	assert_int_equal(n, 1);
	state_free(&s);
}

/*
 * A ban is made longer, and that is killed as it writes for the n-th time. It is listed, and
 * denies, until one of both ends; it is saved; another secret does not lose it; and it can be
 * lifted.
 */
static void kill_ban(bool saves)
{
	static const struct outline only = {.bans = 64, .has = {true}, .kinds = {1}};
	const struct key key = {.rule = SOURCE, .address = ADDRESS, .length = 32};

	work.killed = 1;
	for (uint32_t kill = 1; work.killed; kill++) {
		begin_work("test_a_killed_ban", false);
		memset(&model, 0, sizeof(model));
		model.now = (struct side){.there = true, .outline = &only};
		load_text(said(&only));
		step = (struct step){.rule = SOURCE, .n = 1, .wish = {key}, .for_ns = 60 * SECOND};
		step.model = model_add;
		step.run = run_add;
		take_step(0);
		step.for_ns = 0;
		killed.lines = true;
		if (kill_in(kill, run_in_kill, NULL, &(int){0}))
			work.killed++;
		listed.n = 0;
		bans_each(&pacer, NULL, list_it, NULL);
		assert_int_equal(listed.n, 1);
		assert_true(listed.at[0].in_force);
		model.table[0].at[0].until_ns = listed.at[0].left_ns == PACER_NEVER
						    ? PACER_NEVER
						    : now_ns() + listed.at[0].left_ns;
		assert_true(model.table[0].at[0].until_ns >= now_ns() + 60 * SECOND);
		if (saves)
			save_it();
		step.model = model_rotate;
		step.run = run_rotate;
		take_step(0);
		step.model = model_lift;
		step.run = run_lift;
		take_step(0);
		assert_false(work.broken);
		assert_int_equal(banned.done, 1);
		(void)end(NULL);
	}
}

static void test_a_killed_ban(void **unused)
{
	(void)unused;
	kill_ban(false);
	kill_ban(true);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
	    cmocka_unit_test(test_walks),
	    cmocka_unit_test(test_kills),
	    cmocka_unit_test(test_a_killed_ban),
	};

	return getenv("WALK") ? walk_again() : cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
	return with_saved(tests);
}
