/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of policy at random, one upon the other: what each keeps, retires and numbers anew. Then
 * packets are paced across changes, against an oracle that keeps every admission.
 */
#include "applied.h"
#include "limit_texts.h"
#include "parsed.h"
#include "plan/carry.h"
#include "plan/resting.h"

/* ---- rules and their counters ---- */

static const struct pacer_rule *rule_named(const struct applied *a, const char *name)
{
	size_t r;

	for (r = 0; r < a->policy->n_rules; r++)
		if (!strcmp(a->policy->rule[r].name, name))
			return &a->bin.rule[r];
	return NULL;
}

static void test_rules_move(void **unused)
{
	(void)unused;
	assert_int_equal(load("rules:\n- {name: a, limits: [" WIN "]}\n"
			      "- {name: b, limits: [" GAP "]}\n"
			      "- {name: c, limits: [" NET "]}\n"),
			 0);
	assert_int_equal(apply("rules:\n- {name: c, limits: [" NET "]}\n"
			       "- {name: d, limits: [" GAP "]}\n"
			       "- {name: a, limits: [" WIN "]}\n"),
			 0);
	assert_string_equal(limiters_text(0), "Rw=");
	assert_string_equal(limiters_text(1), "Sg+"); /* renamed: another rule */
	assert_string_equal(limiters_text(2), "Rw=");
	assert_int_equal(now.plan.n_draining, 0);
	assert_int_equal(rule_named(&now, "a")->counter, rule_named(&before, "a")->counter);
	assert_int_equal(rule_named(&now, "c")->counter, rule_named(&before, "c")->counter);
	assert_int_equal(rule_named(&now, "a")->limiter[0].base,
			 rule_named(&before, "a")->limiter[0].base);
	assert_true(rule_named(&now, "d")->counter != rule_named(&before, "b")->counter);
	assert_true(rule_named(&now, "d")->limiter[0].base !=
		    rule_named(&before, "b")->limiter[0].base);
}

static void say_rules(const char *stem, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		say("- {name: %s%u, limits: [{key: all, gap: 1s}]}\n", stem, i);
}

static void assert_counters(void)
{
	size_t r, k;

	for (r = 0; r < now.policy->n_rules; r++) {
		const struct pacer_rule *rule = &now.bin.rule[r];
		const struct pacer_rule *old =
		    before.policy ? rule_named(&before, now.policy->rule[r].name) : NULL;

		assert_true(rule->counter > 0 && rule->counter < PACER_COUNTERS_MAX);
		for (k = 0; k < r; k++)
			assert_true(now.bin.rule[k].counter != rule->counter);
		if (old)
			assert_int_equal(old->counter, rule->counter);
		for (k = 0; !old && before.policy && k < before.policy->n_rules; k++)
			assert_true(before.bin.rule[k].counter != rule->counter);
	}
}

/* As many rules as there may be, all with other names than the ones in force. */
static void test_counters_run_out(void **unused)
{
	(void)unused;
	say_again();
	say("rules:\n");
	say_rules("old", PACER_RULES_MAX);
	assert_int_equal(load(doc.s), 0);
	assert_counters();
	say_again();
	say("rules:\n");
	say_rules("new", PACER_RULES_MAX);
	assert_int_equal(apply(doc.s), 0);
	assert_counters();
	say_again();
	say("rules:\n- {name: old7, limits: [{key: all, gap: 1s}]}\n");
	say_rules("new", PACER_RULES_MAX - 1);
	assert_int_equal(apply(doc.s), 0);
	assert_counters();
}

/* ---- any change upon any other ---- */

static const char *const limit_pool[] = {
    GAP,
    GAP5,
    WIN,
    WIN2,
    NET,
    "{key: src, packets: 100, window: 1s}",
    "{key: src, gap: 1ms, rows: 1}",
    "{key: src, gap: 2ms, ceiling: 100kpps}",
    "{key: flow, gap: 1s, entries: 500}",
    "{key: flow, packets: 7, window: 300ms, slots: 58, entries: 40}",
    "{key: dst, bytes: 1M, window: 10s, slots: 26}",
    "{key: dst, bytes: 9G, window: 10s, slots: 26}",
    "{key: src+dport, packets: 5, window: 1m, entries: 300}",
    "{key: src+dport, packets: 5, window: 1m, entries: 301}",
    "{key: all, gap: 10us}",
    "{key: all, packets: 1M, window: 1s}",
    "{key: all, packets: 1M, window: 1s, slots: 43}",
    "{key: \"src/24,56\", gap: 20s}",
    "{key: all, uses: 100, cooldown: 1s}",
    "{key: all, uses: 200, cooldown: 1s}",
    "{key: all, uses: 200, cooldown: 10s, threshold: 7}",
    RATE,
    RATE2,
    "{key: src, rate: 100/s, burst: 50}",
    "{key: all, rate: 10Mbit/s, burst: 64K}",
    "{key: flow, rate: 3/h, burst: 3, entries: 500}",
};

struct draft_rule {
	uint32_t name, n;
	uint8_t limit[POLICY_LIMITS_MAX];
};

static struct {
	struct draft_rule rule[12];
	uint32_t n, clock;
} draft;

static void change_rule(struct draft_rule *r)
{
	uint32_t at = draw() % r->n, kind = draw() % 6;

	if (kind == 0 && r->n < 6) {
		r->limit[r->n++] = draw() % ARRAY(limit_pool);
	} else if (kind == 1 && r->n > 1) {
		r->limit[at] = r->limit[--r->n];
	} else if (kind == 2) {
		uint8_t first = r->limit[0];

		r->limit[0] = r->limit[at];
		r->limit[at] = first;
	} else {
		r->limit[at] = draw() % ARRAY(limit_pool);
	}
}

static int name_taken(uint32_t name)
{
	uint32_t i;

	for (i = 0; i < draft.n; i++)
		if (draft.rule[i].name == name)
			return 1;
	return 0;
}

static void add_rule(void)
{
	struct draft_rule *r = &draft.rule[draft.n];
	uint32_t i;

	if (draft.n == ARRAY(draft.rule))
		return;
	*r = (struct draft_rule){.name = draw() % 30, .n = between(1, 4)};
	while (name_taken(r->name))
		r->name = draw() % 30;
	for (i = 0; i < r->n; i++)
		r->limit[i] = draw() % ARRAY(limit_pool);
	draft.n++;
}

static void change_draft(void)
{
	uint32_t changes = draw() % 4, i;

	for (i = 0; i < changes; i++) {
		uint32_t at = draft.n ? draw() % draft.n : 0, kind = draw() % 10;
		struct draft_rule r = draft.rule[at];

		if (kind == 0 || !draft.n) {
			add_rule();
		} else if (kind == 1) {
			draft.rule[at] = draft.rule[--draft.n];
		} else if (kind == 2) {
			draft.rule[at] = draft.rule[0];
			draft.rule[0] = r;
		} else if (kind == 3 && !name_taken(r.name + 1)) {
			draft.rule[at].name++;
		} else if (kind == 4) {
			draft.clock = draw() % 3;
		} else {
			change_rule(&draft.rule[at]);
		}
	}
}

static const char *draft_text(const char *memory)
{
	static const char *const clocks[] = {"auto", "exact", "coarse"};
	uint32_t i, k;

	say_again();
	say("memory: %s\nclock: %s\nrules:%s\n", memory, clocks[draft.clock], draft.n ? "" : " []");
	for (i = 0; i < draft.n; i++) {
		say("- name: r%u\n  limits:\n", draft.rule[i].name);
		for (k = 0; k < draft.rule[i].n; k++)
			say("  - %s\n", limit_pool[draft.rule[i].limit[k]]);
	}
	return doc.s;
}

static int same_place(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	return a->base == b->base && a->sets == b->sets && a->shared == b->shared &&
	       a->kind == b->kind;
}

static int overlap(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	bool throttle = a->kind == PACER_LIMITER_THROTTLE;

	if (throttle != (b->kind == PACER_LIMITER_THROTTLE))
		return 0;
	if (throttle)
		return a->base == b->base;
	return a->base < b->base + compile_limiter_lines(b) &&
	       b->base < a->base + compile_limiter_lines(a);
}

static void assert_place(const struct pacer_rule *rule, size_t k)
{
	const struct pacer_limiter *t = &rule->limiter[k];

	if (t->kind == PACER_LIMITER_THROTTLE) {
		assert_true(t->base < PACER_THROTTLES && !compile_limiter_lines(t));
		return;
	}
	assert_true(!k || rule->limiter[k - 1].kind != PACER_LIMITER_THROTTLE); /* they are last */
	assert_true(compile_limiter_lines(t) > 0);
	assert_true(t->base + compile_limiter_lines(t) <= now.plan.lines);
	assert_true(t->kind == PACER_LIMITER_GAP ? t->sets > 0 && !t->shared : t->shared > 0);
}

/* No line has two limits, and a new limit none of the policy before. */
static void assert_regions(void)
{
	uint64_t used = 0, old;
	size_t r, k, i, j;

	for (r = 0; r < now.policy->n_rules; r++)
		for (k = 0; k < now.bin.rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &now.bin.rule[r].limiter[k];

			used += compile_limiter_lines(t);
			assert_place(&now.bin.rule[r], k);
			for (i = 0; i < PACER_RULES_MAX; i++)
				for (j = 0; j < now.bin.rule[i].n_limiters; j++)
					assert_true((i == r && j == k) ||
						    !overlap(t, &now.bin.rule[i].limiter[j]));
			for (i = 0; i < PACER_RULES_MAX; i++)
				for (j = 0; j < before.bin.rule[i].n_limiters; j++) {
					old = overlap(t, &before.bin.rule[i].limiter[j]);
					assert_true(!old || plan_mark(&now, r, k) != '+');
				}
		}
	assert_int_equal(used, now.plan.lines_used);
	assert_true(used <= now.plan.lines);
}

/* Every limit that counts goes on where it was, in force or to its end. */
static void assert_limiter_goes_on(const struct pacer_limiter *old, const struct pacer_rule *rule,
				   uint32_t index)
{
	int found = 0;
	uint32_t k;

	for (k = 0; k < rule->n_limiters; k++) {
		const struct pacer_limiter *t = &rule->limiter[k];
		struct pacer_limiter timed = *old;

		if (!same_place(t, old))
			continue;
		found++;
		assert_memory_equal(t->mask4, old->mask4, sizeof(t->mask4));
		assert_memory_equal(t->mask6, old->mask6, sizeof(t->mask6));
		if (t->until_ns) {
			if (rule->counter)
				assert_int_equal(plan_mark(&now, index, k), '-');
			timed.until_ns = old->until_ns ? old->until_ns : COMPILE_UNTIL_SET;
			/* later, for another that ends with it */
			if (t->kind == PACER_LIMITER_RATE && t->until_ns > timed.until_ns)
				timed.until_ns = t->until_ns;
			assert_memory_equal(t, &timed, sizeof(timed));
			continue;
		}
		assert_int_equal(plan_mark(&now, index, k), '=');
		if (t->kind == PACER_LIMITER_THROTTLE) {
			assert_true(t->throttle.cooldown_ns == old->throttle.cooldown_ns);
			continue;
		}
		if (t->kind == PACER_LIMITER_RATE) {
			assert_true(t->rate.unit_ns == old->rate.unit_ns);
			assert_true(t->rate.unit_frac == old->rate.unit_frac);
			assert_true(t->rate.cost == old->rate.cost);
			continue;
		}
		assert_true(t->window.slot_ns == old->window.slot_ns);
		assert_true(t->window.ring == old->window.ring);
		assert_true(t->window.cost_shift == old->window.cost_shift);
		assert_true(t->kind != PACER_LIMITER_GAP || t->rows == old->rows);
		assert_true(t->gap_ns || !old->gap_ns);
	}
	assert_int_equal(found, 1);
}

static bool same_keys(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	return !memcmp(a->mask4, b->mask4, sizeof(a->mask4)) &&
	       !memcmp(a->mask6, b->mask6, sizeof(a->mask6));
}

/* What a limit is, but for its value; of windows alone in their records, and of sketches. */
static bool same_shapes(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	const struct pacer_window *w = &a->window, *v = &b->window;

	if (a->kind != b->kind || !same_keys(a, b) || a->secret != b->secret)
		return false;
	if (a->kind == PACER_LIMITER_GAP)
		return a->rows == b->rows && a->sets == b->sets;
	return a->kind == PACER_LIMITER_WINDOW && !a->gap_ns && !b->gap_ns &&
	       a->units == b->units && a->sets == b->sets && w->slot_ns == v->slot_ns &&
	       w->ring == v->ring && w->cost == v->cost && w->cost_shift == v->cost_shift;
}

/* Is there a tighter limit of the same key and time, so that this one has no effect? */
static bool has_no_effect(const struct pacer_limiter *t, const struct pacer_rule *rule)
{
	for (size_t i = 0; i < rule->n_limiters; i++) {
		const struct pacer_limiter *other = &rule->limiter[i];

		if (other == t || other->until_ns || !same_keys(other, t))
			continue;
		if (t->kind == PACER_LIMITER_GAP && other->gap_ns > t->gap_ns)
			return true;
		if (t->kind == PACER_LIMITER_WINDOW && other->kind == PACER_LIMITER_WINDOW &&
		    other->window.limit < t->window.limit)
			return true;
	}
	return false;
}

/* A draining limit may have times of the coarse clock, with which no exact one goes on. */
static bool of_another_clock(const struct pacer_limiter *old)
{
	return now.bin.flags & PACER_CLOCK_EXACT &&
	       (old->until_ns || !(before.bin.flags & PACER_CLOCK_EXACT));
}

/*
 * No limit begins anew beside one of its shape that goes, but a looser one that has no effect, or
 * of another clock.
 */
static void assert_kept(const struct pacer_limiter *old, const struct pacer_rule *rule,
			uint32_t index)
{
	for (uint32_t k = 0; k < rule->n_limiters; k++) {
		const struct pacer_limiter *t = &rule->limiter[k];

		if (plan_mark(&now, index, k) != '+' || !same_shapes(t, old))
			continue;
		assert_true(t->kind == PACER_LIMITER_GAP ? t->gap_ns < old->gap_ns
							 : t->window.limit > old->window.limit);
		assert_true(has_no_effect(t, rule) || of_another_clock(old));
	}
}

/* What a rule that is gone had counted rests. */
static void assert_rests(void)
{
	size_t n = 0;

	for (size_t r = 0; r < before.policy->n_rules; r++) {
		const char *name = before.policy->rule[r].name;
		const struct pacer_rule *to = resting_of(&now.bin, compile_name_id(name));
		const struct pacer_rule *rule = rule_named(&before, name);

		assert_true(!to || !rule_named(&now, name));
		for (size_t k = 0; !rule_named(&now, name) && k < rule->n_limiters; k++)
			if (!rule->limiter[k].until_ns || rule->limiter[k].until_ns > host.now_ns)
				assert_limiter_goes_on(&rule->limiter[k], to, 0);
	}
	for (size_t r = now.policy->n_rules; r < PACER_RULES_MAX; r++)
		n += now.bin.rule[r].n_limiters;
	assert_int_equal(n, now.plan.n_resting);
}

static void assert_succession(void)
{
	uint32_t r, k, draining = 0;

	for (r = 0; r < now.policy->n_rules; r++) {
		const struct pacer_rule *rule = &now.bin.rule[r];
		const char *name = now.policy->rule[r].name;
		const struct pacer_rule *old = rule_named(&before, name);

		if (!old)
			old = resting_of(&before.bin, compile_name_id(name));
		for (k = 0; k < rule->n_limiters; k++) {
			char mark = plan_mark(&now, r, k);

			assert_int_equal(mark == '-', rule->limiter[k].until_ns != 0);
			assert_true(rule->limiter[k].until_ns == 0 ||
				    rule->limiter[k].until_ns > host.now_ns);
			assert_true(old || mark == '+');
			draining += mark == '-';
		}
		for (k = 0; old && k < old->n_limiters; k++)
			if (!old->limiter[k].until_ns || old->limiter[k].until_ns > host.now_ns)
				assert_limiter_goes_on(&old->limiter[k], rule, r);
		for (k = 0; k < rule->n_limiters; k++)
			if (rule->limiter[k].until_ns && before.bin.flags == now.bin.flags)
				assert_kept(&rule->limiter[k], rule, r);
	}
	assert_int_equal(draining, now.plan.n_draining);
}

/* In a limit of its own, with the policy's rate and burst, the burst a tick of the clock shorter.
 */
static void assert_rate(const struct plan_limit *at, const struct policy_limit *l,
			const struct pacer_limiter *t)
{
	struct pacer_rate rate;

	assert_int_equal(
	    compile_limit_of(&now.plan, now.policy, at->rule, at->limiter, PACER_DENY_RATE),
	    at->limit);
	assert_int_equal(t->kind, PACER_LIMITER_RATE);
	assert_int_equal(t->gap_ns, 0);
	assert_int_equal(pacer_rate_profile(&rate, l->cost, l->rate.amount, l->rate.per_ns,
					    l->burst, now.plan.resolution_ns),
			 PACER_RATE_OK);
	rate.begin_ns = t->rate.begin_ns;
	memcpy(rate.unused, t->rate.unused, sizeof(rate.unused)); /* of a burst before */
	assert_memory_equal(&t->rate, &rate, sizeof(rate));
}

/* Every limit of the policy stands in one limit, of its key, with its value. */
static void assert_limits(void)
{
	size_t r, n = 0, i;

	for (r = 0; r < now.policy->n_rules; r++)
		n += now.policy->rule[r].n_limits;
	assert_int_equal(now.plan.n_limits, n);
	for (i = 0; i < n; i++) {
		const struct plan_limit *at = &now.plan.limit[i];
		const struct policy_limit *l = &now.policy->rule[at->rule].limit[at->limit];
		const struct pacer_limiter *t = &now.bin.rule[at->rule].limiter[at->limiter];
		int gap = l->kind == LIMIT_GAP;

		if (l->kind == LIMIT_THROTTLE) {
			assert_int_equal(compile_limit_of(&now.plan, now.policy, at->rule,
							  at->limiter, PACER_DENY_THROTTLE),
					 at->limit);
			assert_int_equal(t->throttle.limit, l->throttle.uses);
			assert_int_equal(t->throttle.cooldown_ns,
					 l->throttle.cooldown_ns + now.plan.resolution_ns);
			continue;
		}
		if (l->kind == LIMIT_RATE) {
			assert_rate(at, l, t);
			continue;
		}
		assert_int_equal(compile_limit_of(&now.plan, now.policy, at->rule, at->limiter,
						  gap ? PACER_DENY_GAP : PACER_DENY_WINDOW),
				 at->limit);
		if (gap)
			assert_int_equal(t->gap_ns, l->gap_ns + now.plan.resolution_ns);
		else
			assert_int_equal(t->window.limit, l->limit >> t->window.cost_shift);
		assert_int_equal(t->mask4[1] != 0, !!(l->key.parts & KEY_PART_DST));
		assert_true(t->kind == PACER_LIMITER_WINDOW || gap);
	}
}

static void test_any_changes(void **unused)
{
	static const char *const memory[] = {"64Mi", "1Mi", "200Ki", "40Ki"};
	uint32_t i, k, done = 0, failed = 0;

	(void)unused;
	for (i = 0; i < 60; i++) {
		for (draft.n = 0; draft.n < 1 + i % ARRAY(draft.rule);)
			add_rule();
		memset(&before.bin, 0, sizeof(before.bin));
		if (load(draft_text(memory[i % 4])))
			continue;
		policy_free(before.policy);
		before = (struct applied){0};
		assert_regions();
		for (k = 0; k < 50; k++) {
			typeof(draft) kept = draft;

			host.now_ns += magnitude(1, 30 * SECOND);
			change_draft();
			if (apply(draft_text("1Gi"))) {
				assert_true(strstr(error.text, "no room") ||
					    strstr(error.text, "a rule holds") ||
					    strstr(error.text, "throttles are needed"));
				draft = kept;
				failed++;
				continue;
			}
			assert_regions();
			assert_succession();
			assert_rests();
			assert_counters();
			assert_limits();
			time_draining();
			done++;
		}
	}
	assert_true(done > 1500 && failed > 20);
}

/* ---- packets across changes ---- */

#define PACED_LINES  1024u
#define PACED_EVENTS 4096u
#define PACED_SRC    6u

static struct pacer_line paced_lines[PACED_LINES];
static __u64 paced_secret[2][PACER_SECRETS];

#define PACED_BYTES 100u /* of a packet */

struct admission {
	uint64_t time_ns;
	uint32_t epoch;
};

static struct admission admitted[PACED_SRC][PACED_EVENTS];
static uint32_t n_admitted[PACED_SRC];

/* What each epoch's policy asks of a source: the largest gap, the least limit of each window. */
static const uint64_t paced_window_ns[] = {20 * MS, 50 * MS};

/* Its rates, of packets and of bytes; `burst`: the least of each, UINT64_MAX: none. */
static const struct units_rate paced_rate[] = {
    {30, SECOND, 0},
    {70, SECOND, 0},
    {3000, SECOND, 1},
};

struct epoch {
	uint64_t gap_ns, limit[2], burst[ARRAY(paced_rate)];
};

static struct epoch epochs[256];

static const char *const paced_pool[] = {
    "{key: src, gap: 1ms}",
    "{key: src, gap: 8ms}",
    "{key: src, gap: 60ms}",
    "{key: src, gap: 8ms, rows: 1}",
    "{key: src, gap: 30ms, ceiling: 10kpps}",
    "{key: src, packets: 5, window: 20ms, slots: 4}",
    "{key: src, packets: 9, window: 20ms, slots: 4}",
    "{key: src, packets: 6, window: 20ms, slots: 7}",
    "{key: src, packets: 7, window: 50ms, slots: 5}",
    "{key: src, packets: 12, window: 50ms, slots: 12}",
    "{key: src, packets: 12, window: 50ms, slots: 5, entries: 40}",
    "{key: src, packets: 7, window: 50ms, slots: 5, entries: 12}", /* too few to be moved */
    "{key: src, packets: 300, window: 20ms, slots: 4}",		   /* of wide records */
    "{key: src, packets: 300, window: 50ms, slots: 5}",
    "{key: src, rate: 30/s, burst: 3}",
    "{key: src, rate: 30/s, burst: 7}",
    "{key: src, rate: 1800/m, burst: 5, entries: 12}",
    "{key: src, rate: 70/s, burst: 2}",
    "{key: src, rate: 70/s, burst: 6}",
    "{key: src, rate: 3KB/s, burst: 1600}",
    "{key: src, rate: 24kbit/s, burst: 1540}",
};

/* Of the rates: which bursts the epoch has. */
static void begin_rates(struct epoch *epoch)
{
	for (size_t k = 0; k < ARRAY(paced_rate); k++)
		epoch->burst[k] = UINT64_MAX;
	for (size_t i = 0; i < now.plan.n_limits; i++) {
		const struct plan_limit *at = &now.plan.limit[i];
		const struct policy_limit *l = &now.policy->rule[0].limit[at->limit];

		for (size_t k = 0; l->kind == LIMIT_RATE && k < ARRAY(paced_rate); k++) {
			if (l->rate.bytes != paced_rate[k].bytes ||
			    l->rate.amount * paced_rate[k].per_ns !=
				l->rate.per_ns * paced_rate[k].amount)
				continue;
			if (l->burst < epoch->burst[k])
				epoch->burst[k] = l->burst;
		}
	}
}

static void begin_epoch(uint32_t e)
{
	const struct policy_rule *rule = &now.policy->rule[0];
	size_t i, k;

	epochs[e] = (struct epoch){.limit = {UINT64_MAX, UINT64_MAX}};
	begin_rates(&epochs[e]);
	for (i = 0; i < rule->n_limits; i++) {
		const struct policy_limit *l = &rule->limit[i];

		if (l->kind == LIMIT_GAP && l->gap_ns > epochs[e].gap_ns)
			epochs[e].gap_ns = l->gap_ns;
		for (k = 0; l->kind == LIMIT_WINDOW && k < 2; k++)
			if (l->window_ns == paced_window_ns[k] && l->limit < epochs[e].limit[k])
				epochs[e].limit[k] = l->limit;
	}
	for (i = 0; i < now.plan.n_limits; i++) {
		const struct plan_limit *l = &now.plan.limit[i];
		const struct pacer_limiter *t = &now.bin.rule[0].limiter[l->limiter];

		if (l->state == PLAN_NEW)
			memset(&paced_lines[t->base], 0,
			       compile_limiter_lines(t) * sizeof(*paced_lines));
	}
	time_draining();
}

static const char *paced_text(void)
{
	static const char *const clocks[] = {"exact", "coarse"};
	uint32_t n = between(1, 3), i;

	say_again();
	say("memory: 64Ki\nclock: %s\nrules:\n- name: a\n  limits:\n", clocks[draw() % 2]);
	for (i = 0; i < n; i++)
		say("  - %s\n", paced_pool[draw() % ARRAY(paced_pool)]);
	return doc.s;
}

/* Of all windows that end now: within the loosest of its epochs' bursts, which all have one. */
static void assert_rate_kept(const struct admission *a, uint32_t n, uint32_t epoch, size_t k)
{
	const struct units_rate *rate = &paced_rate[k];
	uint64_t cost = 0, most = epochs[epoch].burst[k];
	uint32_t e = epoch;

	for (uint32_t i = n; i; i--) {
		unsigned __int128 allowed;

		for (; e > a[i - 1].epoch; e--)
			most = epochs[e - 1].burst[k] > most ? epochs[e - 1].burst[k] : most;
		if (most == UINT64_MAX)
			return;
		cost += rate->bytes ? PACED_BYTES : 1;
		allowed = (unsigned __int128)(a[n - 1].time_ns - a[i - 1].time_ns) * rate->amount +
			  (unsigned __int128)most * rate->per_ns;
		if ((unsigned __int128)cost * rate->per_ns > allowed)
			fail_msg("rate %zu: %llu in %llu ns, epochs %u to %u, bursts of %llu\n%s",
				 k, (unsigned long long)cost,
				 (unsigned long long)(a[n - 1].time_ns - a[i - 1].time_ns),
				 a[i - 1].epoch, epoch, (unsigned long long)most, doc.s);
	}
}

/* What was admitted is within the strictest limit that all epochs it spans have. */
static void assert_admissions(const struct admission *a, uint32_t n, uint32_t epoch)
{
	uint64_t gap_ns = UINT64_MAX, now_ns = a[n - 1].time_ns;
	uint32_t i, e, k;

	for (e = n > 1 ? a[n - 2].epoch : epoch; e <= epoch; e++)
		gap_ns = epochs[e].gap_ns < gap_ns ? epochs[e].gap_ns : gap_ns;
	if (n > 1 && now_ns - a[n - 2].time_ns < gap_ns)
		fail_msg("%llu ns after, epoch %u after %u: the gap is %llu\n%s",
			 (unsigned long long)(now_ns - a[n - 2].time_ns), epoch, a[n - 2].epoch,
			 (unsigned long long)gap_ns, doc.s);
	for (k = 0; k < ARRAY(paced_rate); k++)
		assert_rate_kept(a, n, epoch, k);
	for (k = 0; k < 2; k++) {
		uint64_t most = 0;

		for (i = n; i && now_ns - a[i - 1].time_ns <= paced_window_ns[k]; i--)
			;
		for (e = a[i].epoch; e <= epoch; e++)
			most = epochs[e].limit[k] > most ? epochs[e].limit[k] : most;
		if (n - i > most)
			fail_msg("%u in window %u, epochs %u to %u: the limit is %llu\n%s", n - i,
				 k, a[i].epoch, epoch, (unsigned long long)most, doc.s);
	}
}

static uint32_t pace_for(uint32_t packets, uint32_t epoch)
{
	struct pacer_state state = {
	    .table = {paced_lines, PACED_LINES}, .policy = &now.bin, .secret = paced_secret[0]};
	struct pacer_packet pkt = {.family = PACER_FAMILY_4, .proto = 17, .len_bytes = PACED_BYTES};
	uint32_t i, n = 0;

	for (i = 0; i < packets; i++) {
		struct pacer_walk walk = {.state = &state, .pkt = pkt};
		uint32_t src = draw() % PACED_SRC;

		host.now_ns += draw() % 8 ? draw() % MS : draw() % (30 * MS);
		walk.pkt.key[PACER_WORD_SADDR] = src;
		walk.now_ns = host.now_ns;
		if (!(now.bin.flags & PACER_CLOCK_EXACT))
			walk.now_ns -= walk.now_ns % RESOLUTION;
		if (pacer_outcome_reason(judge_parsed(&walk)) != PACER_ADMIT)
			continue;
		assert_true(n_admitted[src] < PACED_EVENTS);
		admitted[src][n_admitted[src]++] = (struct admission){host.now_ns, epoch};
		assert_admissions(admitted[src], n_admitted[src], epoch);
		n++;
	}
	return n;
}

/* A gap longer than the window's ring is remembered for as long as it lasts, in a full set, too. */
static void test_gap_outlives_the_ring(void **unused)
{
	static const struct {
		uint64_t after_ns;
		uint32_t src;
		enum pacer_reason reason;
	} line[] = {
	    {0, 1, PACER_ADMIT},
	    {2 * SECOND, 2, PACER_ADMIT}, /* takes the other record of the set */
	    {2 * SECOND, 3, PACER_ADMIT}, /* shares */
	    {2 * SECOND, 1, PACER_DENY_GAP},
	    {10 * SECOND - 1, 1, PACER_DENY_GAP},
	    {10 * SECOND, 1, PACER_ADMIT},
	};
	struct pacer_state state = {
	    .table = {paced_lines, PACED_LINES}, .policy = &now.bin, .secret = paced_secret[0]};
	size_t i;

	(void)unused;
	memset(paced_lines, 0, sizeof(paced_lines));
	for (i = 0; i < PACER_SECRETS; i++)
		paced_secret[0][i] = draw();
	assert_int_equal(load(rule_of("clock: exact",
				      "{key: src, packets: 9, window: 1s, slots: 10, entries: 2}, "
				      "{key: src, gap: 10s}")),
			 0);
	assert_int_equal(now.bin.rule[0].limiter[0].sets, 1);
	for (i = 0; i < ARRAY(line); i++) {
		struct pacer_walk walk = {.state = &state, .now_ns = SECOND + line[i].after_ns};

		walk.pkt = (struct pacer_packet){.family = PACER_FAMILY_4, .len_bytes = 100};
		walk.pkt.key[PACER_WORD_SADDR] = line[i].src;
		assert_int_equal(pacer_outcome_reason(judge_parsed(&walk)), line[i].reason);
	}
}

/* Another policy, under another secret or not, or the same under another. */
static int change_paced(void)
{
	struct compile_previous previous = {now.policy, &now.bin, now.plan.lines,
					    false,	false,	  false};
	uint32_t i, kind = draw() % 4;

	if (kind == 3 && compile_drained_ns(&now.bin) + RESOLUTION < host.now_ns)
		for (i = 0; i < PACER_SECRETS; i++)
			paced_secret[!now.bin.secret][i] = draw();
	previous.rotate = kind > 1;
	return apply_after(kind == 3 ? doc.s : paced_text(), &previous);
}

/* One packet of source 1; is it admitted? */
static bool paced_one(uint64_t now_ns)
{
	struct pacer_state state = {
	    .table = {paced_lines, PACED_LINES}, .policy = &now.bin, .secret = paced_secret[0]};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};

	walk.pkt = (struct pacer_packet){.family = PACER_FAMILY_4, .len_bytes = 100};
	walk.pkt.key[PACER_WORD_SADDR] = 1;
	return pacer_outcome_reason(judge_parsed(&walk)) == PACER_ADMIT;
}

/*
 * A rate is kept that came later than the one that retires, of the same rate: it has not counted
 * the burst before it came, and must not let another through when the older one is over.
 */
static void test_a_young_rate_has_no_second_burst(void **unused)
{
	static const char old[] = "{key: src, rate: 10/s, burst: 50}";
	static const char young[] = "{key: src, rate: 10/s, burst: 40, entries: 40}";
	char both[128];
	uint32_t n = 0;

	(void)unused;
	snprintf(both, sizeof(both), "%s, %s", old, young);
	memset(paced_lines, 0, sizeof(paced_lines));
	assert_int_equal(load(rule_of("memory: 64Ki\nclock: exact", old)), 0);
	for (uint32_t i = 0; i < 60; i++)
		n += paced_one(host.now_ns);
	assert_int_equal(n, 50);
	assert_int_equal(apply(rule_of("clock: exact", both)), 0);
	time_draining();
	assert_int_equal(apply(rule_of("clock: exact", young)), 0);
	assert_string_equal(limiters_text(0), "G= G-");
	time_draining();
	for (uint32_t i = 1; i <= 10000; i++) { /* ten seconds, at ten times the rate */
		n += paced_one(host.now_ns + i * MS);
		assert_true(n <= 50 + i / 100);
	}
	assert_true(n >= 50 + 90);
}

/*
 * A rate that came shortly before one of another speed retires has not counted what that had let
 * through: to an old burst it must not add its own.
 */
static void test_a_young_rate_of_another_speed(void **unused)
{
	static const char old[] = "{key: src, rate: 100/s, burst: 50}";
	static const char both[] = "{key: src, rate: 100/s, burst: 50}, "
				   "{key: src, rate: 1/s, burst: 500}";
	static const char young[] = "{key: src, rate: 1/s, burst: 500}";
	uint64_t began_ns = host.now_ns;
	uint32_t n = 0;

	(void)unused;
	memset(paced_lines, 0, sizeof(paced_lines));
	assert_int_equal(load(rule_of("memory: 64Ki\nclock: exact", old)), 0);
	for (uint32_t i = 0; i < 4000; i++)
		n += paced_one(host.now_ns += MS);
	assert_in_range(n, 449, 450);
	assert_int_equal(apply(rule_of("clock: exact", both)), 0);
	time_draining();
	host.now_ns += 10 * MS;
	assert_int_equal(apply(rule_of("clock: exact", young)), 0);
	assert_string_equal(limiters_text(0), "G= G-");
	time_draining();
	for (uint32_t i = 0; i < 2000; i++)
		n += paced_one(host.now_ns += MS);
	assert_true(n <= 50 + 100 * (host.now_ns - began_ns) / SECOND);
}

/* Two rates of a key, of which the second comes and, after a while, stays alone. */
struct change_of_rates {
	uint32_t rate[2], burst[2];
	uint64_t end_ns; /* of the first */
	uint64_t at_ns[4096];
	uint32_t n;
};

static void admit_some(struct change_of_rates *c, uint64_t until_ns)
{
	while (host.now_ns < until_ns) {
		if (!(draw() % 16))
			host.now_ns += draw() % (4 * SECOND);
		else
			host.now_ns += draw() % (20 * MS);
		if (host.now_ns < until_ns && c->n < ARRAY(c->at_ns) && paced_one(host.now_ns))
			c->at_ns[c->n++] = host.now_ns;
	}
	host.now_ns = until_ns;
}

/* Of each window: what one of them alone would admit, or the first to its end, then the second. */
static void assert_both_rates(const struct change_of_rates *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		for (uint32_t k = i; k < c->n; k++) {
			uint64_t ns = c->at_ns[k] - c->at_ns[i], after_ns = 0;
			uint64_t cost = (uint64_t)(k - i + 1) * SECOND;

			if (c->at_ns[k] > c->end_ns && c->at_ns[i] < c->end_ns)
				after_ns = c->at_ns[k] - c->end_ns;
			if (cost > c->burst[0] * SECOND + c->rate[0] * ns &&
			    cost > c->burst[1] * SECOND + c->rate[1] * ns &&
			    (!after_ns || cost > c->burst[0] * SECOND +
						     c->rate[0] * (ns - after_ns) +
						     c->rate[1] * after_ns))
				fail_msg("%u in %llu ns, the last %llu of them after the end\n%s",
					 k - i + 1, (unsigned long long)ns,
					 (unsigned long long)after_ns, doc.s);
		}
}

static void test_two_rates_together(void **unused)
{
	static struct change_of_rates c;
	uint32_t waited = 0, runs = 150;

	(void)unused;
	for (uint32_t run = 0; run < runs; run++) {
		char one[2][64], both[160];

		c.n = 0;
		for (int i = 0; i < 2; i++) {
			c.rate[i] = (uint32_t)magnitude(1, 200);
			c.burst[i] = (uint32_t)between(1, 100);
			snprintf(one[i], sizeof(one[i]), "{key: src, rate: %u/s, burst: %u}",
				 c.rate[i], c.burst[i]);
		}
		snprintf(both, sizeof(both), "%s, %s", one[0], one[1]);
		memset(paced_lines, 0, sizeof(paced_lines));
		assert_int_equal(load(rule_of("memory: 64Ki\nclock: exact", one[0])), 0);
		admit_some(&c, host.now_ns + 2 * SECOND);
		assert_int_equal(apply(rule_of("clock: exact", both)), 0);
		time_draining();
		admit_some(&c, host.now_ns + draw() % (run & 1 ? 9 * SECOND : 100 * MS));
		assert_int_equal(apply(rule_of("clock: exact", one[1])), 0);
		time_draining();
		c.end_ns = UINT64_MAX;
		for (uint32_t k = 0; k < now.bin.rule[0].n_limiters; k++)
			if (now.bin.rule[0].limiter[k].until_ns)
				c.end_ns = now.bin.rule[0].limiter[k].until_ns;
		waited += now.bin.rule[0].limiter[0].rate.begin_ns != 0;
		admit_some(&c, host.now_ns + 2 * SECOND);
		if (c.end_ns != UINT64_MAX && host.now_ns < c.end_ns + 2 * SECOND)
			admit_some(&c, c.end_ns + 2 * SECOND);
		assert_both_rates(&c);
	}
	assert_in_range(waited, runs / 4, runs - 10);
}

/* Rates that came together, or have counted together for long, need not wait; but one that drained.
 */
static void test_rates_that_have_counted(void **unused)
{
	static const char first[] = "{key: src, rate: 100/s, burst: 50}";
	static const char both[] = "{key: src, rate: 100/s, burst: 50}, "
				   "{key: src, rate: 10/s, burst: 50}";
	static const char last[] = "{key: src, rate: 10/s, burst: 50}";
	const struct pacer_limiter *t = now.bin.rule[0].limiter;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", both)), 0);
	assert_int_equal(apply(rule_of("clock: exact", last)), 0);
	assert_int_equal(t[0].rate.begin_ns, 0);
	for (int cut_off = 0; cut_off < 2; cut_off++) {
		assert_int_equal(load(rule_of("clock: exact", first)), 0);
		assert_int_equal(apply(rule_of("clock: exact", both)), 0);
		assert_true(compile_rates_begin(&now.bin.rule[0]));
		if (!cut_off)
			time_draining();
		host.now_ns += SECOND; /* 50 take 1/90 s of the difference at least */
		assert_int_equal(apply(rule_of("clock: exact", last)), 0);
		assert_true(t[0].rate.begin_ns == (cut_off ? COMPILE_UNTIL_SET : 0));
	}
	/* it was draining, and may have ended before it is in force again */
	assert_int_equal(load(rule_of("clock: coarse", last)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", first)), 0);
	time_draining();
	host.now_ns += 10 * MS;
	assert_int_equal(apply(rule_of("clock: coarse", last)), 0);
	assert_string_equal(limiters_text(0), "G= G-");
	assert_true(t[0].rate.begin_ns == COMPILE_UNTIL_SET);
}

/* Since when a rate counts is a time as others are, on another clock, too. */
static void test_rates_count_on_another_clock(void **unused)
{
	static const struct {
		int64_t by_s;
		uint64_t now_s;
		bool waits;
	} cases[] = {
	    {1000, 2000, true},	 /* it has counted for as long as before */
	    {1000, 2100, false}, /* ... and for a hundred seconds more */
	    {-900, 100, true},	 {-900, 200, false},
	    {-2000, 1, true}, /* it began before the clock */
	    {-2000, 100, false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		host.now_ns = 1000 * SECOND;
		assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 50}")),
				 0);
		assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 50}, "
							       "{key: src, rate: 1/s, burst: 9}")),
				 0);
		time_draining();
		for (uint32_t k = 0; k < 2; k++)
			compile_carry_rate(&now.bin.rule[0].limiter[k],
					   cases[i].by_s * (int64_t)SECOND,
					   cases[i].now_s * SECOND);
		host.now_ns = cases[i].now_s * SECOND;
		assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 1/s, burst: 90}")),
				 0);
		assert_string_equal(limiters_text(0), "G= G-");
		assert_int_equal(now.bin.rule[0].limiter[0].rate.begin_ns != 0, cases[i].waits);
	}
}

#define FAST "{key: src, rate: 2/s, burst: 50}"
#define GAPS "{key: src, gap: 1ms, rows: 1}"

/* Of two that both came before this clock began, none is known to have counted for longer. */
static void test_rates_of_before_the_clock(void **unused)
{
	(void)unused;
	host.now_ns = 1000 * SECOND;
	assert_int_equal(load(rule_of("clock: exact", GAPS)), 0);
	assert_int_equal(apply(rule_of("clock: exact", GAPS ", " FAST)), 0);
	time_draining();
	host.now_ns += 100 * SECOND;
	assert_int_equal(
	    apply(rule_of("clock: exact", GAPS ", " FAST ", {key: src, rate: 1/s, burst: 9}")), 0);
	time_draining();
	for (uint32_t k = 0; k < now.bin.rule[0].n_limiters; k++)
		if (now.bin.rule[0].limiter[k].kind == PACER_LIMITER_RATE)
			compile_carry_rate(&now.bin.rule[0].limiter[k], -2000 * (int64_t)SECOND,
					   SECOND);
	host.now_ns = SECOND;
	assert_int_equal(apply(rule_of("clock: exact", GAPS ", {key: src, rate: 1/s, burst: 90}")),
			 0);
	assert_string_equal(limiters_text(0), "Sg= G= G-");
	assert_true(now.bin.rule[0].limiter[1].rate.begin_ns != 0);
}

/* One a second beside one of two, both in force. */
static void put_a_rate_beside(void)
{
	host.now_ns = 1000 * SECOND;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 50}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 50}, "
						       "{key: src, rate: 1/s, burst: 9}")),
			 0);
	time_draining();
}

/* Since when a rate counts is told up to the last tick of a clock, and beyond that as long ago. */
static void test_rates_count_up_to_the_last_tick(void **unused)
{
	static const uint8_t formerly[sizeof(now.bin.rule[0].limiter[0].unused)] = {1};
	struct pacer_limiter *t = &now.bin.rule[0].limiter[1];

	(void)unused;
	put_a_rate_beside();
	compile_carry_rate(t, INT64_MAX / 2 - 1001 * (int64_t)SECOND, host.now_ns);
	assert_memory_not_equal(t->unused, formerly, sizeof(formerly));
	compile_carry_rate(t, INT64_MAX, host.now_ns);
	assert_memory_equal(t->unused, formerly, sizeof(formerly));
}

/* What a rate of packets has counted says nothing of bytes: it waits for a rate of those. */
static void test_rates_of_another_cost_wait(void **unused)
{
	(void)unused;
	for (uint32_t bytes = 0; bytes < 2; bytes++) {
		const char *was = bytes ? "{key: src, rate: 90B/s, burst: 9K}"
					: "{key: src, rate: 2/s, burst: 50}";
		char both[128];

		snprintf(both, sizeof(both), "%s, {key: src, rate: 1/s, burst: 9}", was);
		host.now_ns = 1000 * SECOND;
		assert_int_equal(load(rule_of("clock: exact", was)), 0);
		assert_int_equal(apply(rule_of("clock: exact", both)), 0);
		time_draining();
		host.now_ns += 1000 * SECOND;
		assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 1/s, burst: 9}")),
				 0);
		assert_string_equal(limiters_text(0), "G= G-");
		assert_int_equal(now.bin.rule[0].limiter[0].rate.begin_ns != 0, bytes);
	}
}

/* One that is to count only when the other has ended has counted nothing beside it. */
static void test_rates_that_count_after_the_end_wait(void **unused)
{
	(void)unused;
	put_a_rate_beside();
	compile_carry_rate(&now.bin.rule[0].limiter[1], 2000 * (int64_t)SECOND, host.now_ns);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 1/s, burst: 9}")), 0);
	assert_string_equal(limiters_text(0), "G= G-");
	assert_int_not_equal(now.bin.rule[0].limiter[0].rate.begin_ns, 0);
}

/*
 * A change that was cut off says on another clock, too, that its rate is still to begin. Else
 * nobody tells it when, and it holds the key's packets to an end that has not come.
 */
static void test_a_rate_still_to_begin_on_another_clock(void **unused)
{
	static struct pacer_throttle_state throttle[PACER_THROTTLES];
	static const int64_t by_s[] = {1, -900, -2000};

	(void)unused;
	for (size_t i = 0; i < ARRAY(by_s); i++) {
		host.now_ns = 1000 * SECOND;
		assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 50}")),
				 0);
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 50}")), 0);
		assert_true(compile_rates_begin(&now.bin.rule[0]));
		memset(paced_lines, 0, sizeof(paced_lines));
		carry(&now.bin, paced_lines, PACED_LINES, throttle, by_s[i] * (int64_t)SECOND,
		      host.now_ns);
		assert_true(compile_rates_begin(&now.bin.rule[0]));
	}
}

/* On another clock a ban goes on, or is over; then its row goes on for as long as its rule says, if
 * there is one.
 */
static void test_bans_on_another_clock(void **unused)
{
	static struct pacer_throttle_state throttle[PACER_THROTTLES];
	static struct pacer_policy p;
	struct pacer_line line[PACER_BAN_WAYS + 2] = {0};

	(void)unused;
	p.bans = (struct pacer_bans){.sets = 1, .filter = PACER_BAN_WAYS};
	p.rule[3].id = 30;
	p.rule[3].ban_grow = 2;
	p.rule[3].ban_forget_ns = 300 * SECOND;
	p.rule[4].id = 40;
	for (uint32_t i = 0; i < 4; i++) {
		line[i].ban_until_ns = (i == 3 ? 900 : 100) * SECOND;
		line[i].ban_rule = 30 + 10 * i; /* none has the id 50 or 60 */
	}
	carry(&p, line, PACER_BAN_WAYS + 2, throttle, -200 * (int64_t)SECOND, SECOND);
	assert_int_equal(line[0].ban_until_ns, 1);
	assert_int_equal(line[1].ban_until_ns, 0);
	assert_int_equal(line[2].ban_until_ns, 0);
	assert_int_equal(line[3].ban_until_ns, 700 * SECOND);
}

#define DENIES "clock: exact\nmemory: 64Ki\nrules:\n- {name: a, verdict: drop}\n"

static const struct pacer_rule *resting(void)
{
	const struct pacer_rule *found = NULL;

	for (size_t r = now.policy->n_rules; r < PACER_RULES_MAX; r++)
		if (now.bin.rule[r].n_limiters) {
			assert_null(found);
			assert_int_equal(now.bin.rule[r].counter, 0);
			assert_false(pacer_rules_has(&now.bin.rules, r));
			found = &now.bin.rule[r];
		}
	return found;
}

/* A policy in which rule `a` admits nothing, for a minute, and then this one. */
static void deny_for_a_minute(const char *denies, const char *then)
{
	assert_int_equal(apply(denies), 0);
	if (now.policy->n_rules)
		assert_int_equal(now.bin.rule[0].n_limiters, 0);
	assert_non_null(resting());
	assert_true(resting()->limiter[0].until_ns == COMPILE_UNTIL_SET);
	time_draining();
	assert_true(resting()->limiter[0].until_ns ==
		    host.now_ns + compile_limiter_memory_ns(&resting()->limiter[0]));
	host.now_ns += 60 * SECOND;
	assert_int_equal(apply(then), 0);
	assert_null(resting());
	time_draining();
}

/* What its limits have counted is as true when it asks them again. */
static void test_a_rule_denies_and_asks_again(void **unused)
{
	static const char *const denies[] = {
	    DENIES,
	    ("clock: exact\nrules:\n- {name: a, verdict: pool p}\n"
	     "pools:\n- {name: p, targets: [veth1], each: 9, cooldown: 1s}\n"),
	    "clock: exact\nelse: drop\nrules: []\n",
	};
	static const char *const limits[] = {
	    "{key: src, packets: 100, window: 1h}",
	    "{key: src, gap: 1h}",
	    "{key: src, rate: 100/h, burst: 100}",
	    "{key: all, uses: 100, cooldown: 1h}",
	    "{key: src, packets: 100, window: 1h}, {key: dst, packets: 300, window: 2h}",
	};
	static const char *const marks[] = {"Rw=", "Sg=", "G+ G-", "T=", "Rw= Rw="};

	(void)unused;
	for (size_t i = 0; i < ARRAY(denies); i++)
		for (size_t k = 0; k < ARRAY(limits); k++) {
			const char *text = rule_of("memory: 64Ki\nclock: exact", limits[k]);
			struct pacer_limiter was;

			assert_int_equal(load(text), 0);
			was = now.bin.rule[0].limiter[0];
			deny_for_a_minute(denies[i], text);
			assert_string_equal(limiters_text(0), marks[k]);
			/* its times may have been the coarse clock's: nobody knows */
			was.unused[0] |= k == 1;
			if (k != 2)
				assert_memory_equal(&now.bin.rule[0].limiter[0], &was, sizeof(was));
		}
}

/* And no window has more of its packets for that. */
static void test_a_rule_that_denied_admits_no_more(void **unused)
{
	const char *text =
	    rule_of("memory: 64Ki\nclock: exact", "{key: src, packets: 100, window: 1h}");
	uint32_t n = 0;

	(void)unused;
	memset(paced_lines, 0, sizeof(paced_lines));
	assert_int_equal(load(text), 0);
	for (uint32_t i = 0; i < 150; i++)
		n += paced_one(host.now_ns + i);
	deny_for_a_minute(DENIES, text);
	begin_epoch(0);
	for (uint32_t i = 0; i < 150; i++)
		n += paced_one(host.now_ns + i);
	assert_int_equal(n, 100);
}

/* Of another shape, it has both; what does not count any more is gone; other rules keep off. */
static void test_what_rests_drains_and_ends(void **unused)
{
	const struct pacer_limiter *t;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	deny_for_a_minute("clock: exact\nelse: drop\nrules: []\n", rule_of("clock: exact", WIN));
	assert_string_equal(limiters_text(0), "Rw+"); /* it was over */
	assert_int_equal(load(rule_of("clock: exact", "{key: src, packets: 9, window: 1h}")), 0);
	assert_int_equal(apply(DENIES), 0);
	time_draining();
	assert_int_equal(apply("clock: exact\nrules:\n- {name: a, verdict: drop}\n"
			       "- {name: b, limits: [" WIN "]}\n"),
			 0);
	t = &resting()->limiter[0];
	assert_true(now.bin.rule[1].limiter[0].base >= t->base + compile_limiter_lines(t));
	assert_true(t->until_ns != COMPILE_UNTIL_SET);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, packets: 9, window: 2h}")), 0);
	assert_string_equal(limiters_text(0), "Rw+ Rw-");
	assert_int_equal(resting()->id, compile_name_id("b"));
	/* and an exact policy's limit is asked by an exact clock, whatever came between */
	assert_int_equal(load(rule_of("clock: exact", "{key: src, packets: 9, window: 1h}")), 0);
	assert_int_equal(apply("clock: coarse\nrules:\n- {name: a, verdict: drop}\n"), 0);
	assert_true(now.bin.flags & PACER_CLOCK_EXACT);
}

/* To pass is to have no limit: no window with that in it has one. */
static void test_a_rule_that_passes_keeps_nothing(void **unused)
{
	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, packets: 9, window: 1h}")), 0);
	assert_int_equal(apply("clock: exact\nrules:\n- {name: a, verdict: pass}\n"), 0);
	assert_null(resting());
}

/* A rule that denies has to have a place; one that is gone has one where there is any. */
static void test_no_place_to_rest(void **unused)
{
	(void)unused;
	say_again();
	say("rules:\n- {name: a, limits: [{key: all, gap: 1h}]}\n");
	say_rules("r", PACER_RULES_MAX - 1);
	assert_int_equal(load(doc.s), 0);
	say_again();
	say("rules:\n- {name: a, verdict: drop}\n");
	say_rules("r", PACER_RULES_MAX - 1);
	assert_int_equal(apply(doc.s), -1);
	assert_non_null(strstr(error.text, "there is no place for it"));
	say_again();
	say("rules:\n- {name: a, verdict: drop}\n");
	say_rules("r", PACER_RULES_MAX - 3);
	assert_int_equal(apply(doc.s), 0);
	assert_int_equal(now.plan.n_resting, 2);
	assert_non_null(resting_of(&now.bin, compile_name_id("a")));
}

#define USES_OF(n) rule_of("", "{key: all, uses: " #n ", cooldown: 10s}")

/*
 * CPUs may still hold what they leased two changes ago: so many uses the newest limit has to have.
 * A lease lasts for 100 ms of this throttle.
 */
static void test_leases_of_two_changes_ago(void **unused)
{
	uint64_t began_ns;

	(void)unused;
	host.cpus = 4;
	for (int cut_off = 0; cut_off < 2; cut_off++) {
		assert_int_equal(load(USES_OF(400000)), 0);
		assert_int_equal(now.bin.rule[0].limiter[0].throttle.lease, 256);
		assert_int_equal(apply(USES_OF(1020)), 0);
		assert_int_equal(now.bin.rule[0].limiter[0].throttle.lease, 1);
		assert_string_equal(limiters_text(0), "T=");
		began_ns = host.now_ns;
		if (!cut_off) /* else nobody knows when it began */
			time_draining();
		assert_int_equal(apply(USES_OF(1021)), 0);
		assert_string_equal(limiters_text(0), "T=");
		host.now_ns = began_ns + (cut_off ? 10 * SECOND : 100 * MS);
		assert_int_equal(apply(USES_OF(10)), 0);
		assert_string_equal(limiters_text(0), "T+ T-");
	}
	assert_int_equal(load(USES_OF(400000)), 0);
	assert_int_equal(apply(USES_OF(1020)), 0);
	time_draining();
	host.now_ns += 300 * MS;
	assert_int_equal(apply(USES_OF(10)), 0);
	assert_string_equal(limiters_text(0), "T=");
}

/* No CPU has a lease any more on another clock: what is lowered then goes on, and none drains. */
static void test_leases_end_with_the_clock(void **unused)
{
	static struct pacer_throttle_state state[PACER_THROTTLES];

	(void)unused;
	host.cpus = 4;
	for (int moves = 0; moves < 2; moves++) {
		host.now_ns = 1000 * SECOND;
		assert_int_equal(load(USES_OF(400000)), 0);
		assert_int_equal(apply(USES_OF(1020)), 0);
		time_draining();
		assert_int_equal(throttle_leased(&now.bin.rule[0].limiter[0], host.now_ns), 256);
		if (moves) {
			carry(&now.bin, NULL, 0, state, -999 * (int64_t)SECOND, SECOND);
			host.now_ns = SECOND;
		}
		assert_int_equal(apply(USES_OF(10)), 0);
		assert_string_equal(limiters_text(0), moves ? "T=" : "T+ T-");
	}
}

/* Limits hold across every change, on the real clock, whatever is kept, draining or begun anew. */
static void test_paced_across_changes(void **unused)
{
	uint32_t i, e, changes = 0, rotations = 0, moved = 0, n = 0;

	(void)unused;
	for (i = 0; i < 2 * PACER_SECRETS; i++)
		paced_secret[i / PACER_SECRETS][i % PACER_SECRETS] = draw();
	for (i = 0; i < 60; i++) {
		memset(paced_lines, 0, sizeof(paced_lines));
		memset(n_admitted, 0, sizeof(n_admitted));
		assert_int_equal(load(paced_text()), 0);
		begin_epoch(0);
		for (e = 0; e < 100;) {
			n += pace_for(draw() % 30, e);
			if (change_paced())
				continue;
			changes++;
			rotations += now.plan.rotated;
			moved += !!strchr(limiters_text(0), '~');
			begin_epoch(++e);
		}
	}
	assert_true(changes == 6000 && n > 20000);
	assert_true(rotations > 500 && moved > 200);
}

/* ---- denials, of one source, against an oracle that keeps every admission ---- */

static struct oracle_deque held;
static uint64_t last_ns;

static const struct pacer_limiter *limiter_with(bool gap)
{
	const struct pacer_rule *rule = &now.bin.rule[0];

	for (uint32_t i = 0; i < rule->n_limiters; i++)
		if (gap ? rule->limiter[i].gap_ns != 0
			: rule->limiter[i].kind == PACER_LIMITER_WINDOW)
			return &rule->limiter[i];
	fail_msg("no such tier: %s", doc.s);
	return NULL;
}

/* A denial beyond what its limit states of itself is a failure. */
static void assert_denial(enum pacer_reason reason, uint64_t time_ns)
{
	const struct pacer_limiter *gap = limiter_with(true), *window = limiter_with(false);
	uint64_t more_ns = compile_gap_more_ns(gap);

	assert_true(!more_ns || more_ns < gap->gap_ns / COMPILE_GAP_SHARE);
	if (reason == PACER_DENY_WINDOW) {
		assert_true(deque_total(&held, time_ns) + 1 > window->window.limit);
		return;
	}
	assert_int_equal(reason, PACER_DENY_GAP);
	if (!last_ns || time_ns - last_ns >= gap->gap_ns + more_ns)
		fail_msg(
		    "denied %llu ns after the last, the gap being %llu and up to %llu more\n%s",
		    (unsigned long long)(time_ns - last_ns), (unsigned long long)gap->gap_ns,
		    (unsigned long long)more_ns, doc.s);
}

/* A source, new, under limits of which the second is a gap. */
static void begin_source(void)
{
	assert_int_equal(load(doc.s), 0);
	memset(paced_lines, 0, sizeof(paced_lines));
	deque_free(&held);
	held.interval = limiter_with(false)->window.ring_ns - 1;
	last_ns = 0;
	host.now_ns = SECOND;
}

/* One packet of it, at the time as the policy's clock has it. */
static void one_packet(uint64_t time_ns)
{
	struct pacer_state state = {
	    .table = {paced_lines, PACED_LINES}, .policy = &now.bin, .secret = paced_secret[0]};
	struct pacer_walk walk = {.state = &state, .now_ns = time_ns};
	enum pacer_reason reason;

	walk.pkt = (struct pacer_packet){.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 100};
	reason = pacer_outcome_reason(judge_parsed(&walk));
	if (reason != PACER_ADMIT) {
		assert_denial(reason, time_ns);
		return;
	}
	assert_true(!last_ns || time_ns - last_ns >= now.policy->rule[0].limit[1].gap_ns);
	last_ns = time_ns;
	deque_add(&held, time_ns, 1);
}

/* A gap and a window of one key, of any lengths, on either clock. */
static void test_denials_are_bounded(void **unused)
{
	uint32_t run, i, n = 0, shared = 0;

	(void)unused;
	for (run = 0; run < 400; run++) {
		uint64_t gap_ns = magnitude(1, 3600 * SECOND);
		uint64_t window_ns = magnitude(58, 800ull * 86400 * SECOND);
		bool coarse = draw() & 1;

		say_again();
		say("clock: %s\nmemory: 64Ki\nrules:\n- name: a\n  limits:\n",
		    coarse ? "coarse" : "exact");
		say("  - {key: src, packets: %u, window: %lluns, slots: %u}\n",
		    (uint32_t)between(1, 300), (unsigned long long)window_ns,
		    (uint32_t)between(1, 58));
		say("  - {key: src, gap: %lluns}\n", (unsigned long long)gap_ns);
		begin_source();
		shared += compile_gap_more_ns(limiter_with(true)) != 0;
		for (i = 0; i < 400; i++) {
			host.now_ns += draw() % 3 ? between(0, 2 * gap_ns)
						  : limiter_with(true)->gap_ns + draw() % 9;
			one_packet(host.now_ns - (coarse ? host.now_ns % RESOLUTION : 0));
		}
		n += held.end;
	}
	deque_free(&held);
	assert_true(n > 10000 && shared > 20);
}

/* 200 packets 10 ms apart, and a gap of 1 ms: the longest window beside it denies none. */
static void test_gap_beside_a_long_window(void **unused)
{
	(void)unused;
	rule_of("clock: exact\nmemory: 64Ki",
		"{key: src, packets: 1k, window: 800d, slots: 1}, {key: src, gap: 1ms}");
	begin_source();
	for (uint32_t i = 0; i < 200; i++)
		one_packet(SECOND + i * 10 * MS);
	assert_int_equal(held.end, 200);
	deque_free(&held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_gap_outlives_the_ring),
	    TEST(test_rules_move),
	    TEST(test_counters_run_out),
	    TEST(test_any_changes),
	    TEST(test_a_young_rate_has_no_second_burst),
	    TEST(test_a_young_rate_of_another_speed),
	    TEST(test_two_rates_together),
	    TEST(test_rates_that_have_counted),
	    TEST(test_rates_count_on_another_clock),
	    TEST(test_rates_of_before_the_clock),
	    TEST(test_rates_count_up_to_the_last_tick),
	    TEST(test_rates_of_another_cost_wait),
	    TEST(test_rates_that_count_after_the_end_wait),
	    TEST(test_a_rate_still_to_begin_on_another_clock),
	    TEST(test_bans_on_another_clock),
	    TEST(test_a_rule_denies_and_asks_again),
	    TEST(test_a_rule_that_denied_admits_no_more),
	    TEST(test_what_rests_drains_and_ends),
	    TEST(test_a_rule_that_passes_keeps_nothing),
	    TEST(test_no_place_to_rest),
	    TEST(test_leases_of_two_changes_ago),
	    TEST(test_leases_end_with_the_clock),
	    TEST(test_paced_across_changes),
	    TEST(test_denials_are_bounded),
	    TEST(test_gap_beside_a_long_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
