/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clock that a policy wants, and rates that are changed: what a limit's state takes, when the
 * rate before is over, and with what burst the next one begins.
 */
#include "applied.h"
#include "limit_texts.h"
#include "table.h"

/* ---- the clock ---- */

static void test_clock(void **unused)
{
	static const struct {
		const char *head, *limits;
		bool exact;
	} cases[] = {
	    {"", "{key: src, gap: 64ms}", false},
	    {"", "{key: src, gap: 63999999ns}", true},
	    {"", "{key: src, packets: 9, window: 640ms, slots: 10}", false},
	    {"", "{key: src, packets: 9, window: 639ms, slots: 10}", true},
	    {"", "{key: src, packets: 9, window: 128ms, slots: 2}, {key: src, gap: 1s}", false},
	    {"", "{key: src, packets: 9, window: 128ms, slots: 2}, {key: src, gap: 10ms}", true},
	    {"", "{key: dst, gap: 1s}, {key: src, packets: 9, window: 1s, slots: 58}", true},
	    {"", "{key: src, rate: 1/h, burst: 1}", true}, /* the burst is to be whole */
	    {"", "{key: src, rate: 8Mbit/s, burst: 1G}", true},
	    {"clock: coarse", "{key: src, rate: 1k/s, burst: 5}", false},
	    {"clock: exact", "{key: src, gap: 10s}, {key: src, packets: 9, window: 1h}", true},
	    {"clock: coarse", "{key: src, gap: 1us}, {key: src, packets: 9, window: 1ms}", false},
	};
	uint32_t i, k;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++) {
		uint64_t add = cases[i].exact ? 0 : RESOLUTION;

		assert_int_equal(load(rule_of(cases[i].head, cases[i].limits)), 0);
		assert_int_equal(!!(now.bin.flags & PACER_CLOCK_EXACT), cases[i].exact);
		assert_int_equal(now.plan.resolution_ns, add);
		for (k = 0; k < now.plan.n_limits; k++) {
			const struct plan_limit *at = &now.plan.limit[k];
			const struct policy_limit *l = &now.policy->rule[0].limit[at->limit];
			const struct pacer_limiter *t = &now.bin.rule[0].limiter[at->limiter];

			if (l->kind == LIMIT_GAP)
				assert_int_equal(t->gap_ns, l->gap_ns + add);
			else if (l->kind == LIMIT_RATE)
				assert_int_equal(t->rate.burst_ns,
						 l->burst * l->rate.per_ns / l->rate.amount - add);
			else
				assert_int_equal(t->window.slot_ns,
						 (l->window_ns + add + l->slots - 1) / l->slots);
		}
	}
	assert_int_equal(load("rules: []\n"), 0);
	assert_int_equal(now.bin.flags & PACER_CLOCK_EXACT, 0);
	for (i = 0; i < 2; i++) { /* a pool's targets have a clock, too */
		say_again();
		say("else: pool p\nrules: []\npools:\n- {name: p, targets: [veth1], each: 9, "
		    "cooldown: %ums, max_cooldown: 2s, threshold: 9}\n",
		    i ? 63 : 64);
		assert_int_equal(load(doc.s), 0);
		assert_int_equal(!!(now.bin.flags & PACER_CLOCK_EXACT), i);
	}
	static const char *const shut[] = {"rate: 1k/s, burst: 4", "rate: 1k/h, burst: 1",
					   "rate: 1MB/s, burst: 5513", "rate: 1/h, burst: 1"};
	for (i = 0; i < ARRAY(shut); i++) {
		char limit[64];

		snprintf(limit, sizeof(limit), "{key: src, %s}", shut[i]);
		assert_int_equal(load(rule_of("clock: coarse", limit)), -1);
		assert_int_equal(error.line, 4);
		assert_string_equal(error.text,
				    "rules[0].limits[0].burst: a tick of the coarse clock shorter, "
				    "it lets no packet through: write more, or clock: exact");
	}
	assert_int_equal(load(rule_of("clock: coarse", "{key: src, rate: 1MB/s, burst: 5514}")), 0);
}

/* An entry is 16 bytes, four to a line: `entries` keys have one each, in sets of two. */
static void test_rate_lines(void **unused)
{
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];

	(void)unused;
	assert_int_equal(load(rule_of("", "{key: src, rate: 1/s, burst: 9, entries: 4000}")), 0);
	assert_int_equal(t->units, 1);
	assert_true(2 * t->sets >= 4000 && t->shared >= t->sets);
	assert_int_equal(compile_limiter_lines(t), (2 * t->sets + t->shared + 3) / 4);
	assert_int_equal(t->idle_ns, PACER_IDLE_SLACK_NS);
	assert_int_equal(load(rule_of("", "{key: all, rate: 1/s, burst: 9}")), 0);
	assert_true(t->sets == 0 && t->shared == 1 && t->base + 1 <= now.plan.lines);
	assert_int_equal(compile_limiter_lines(t), 1);
	assert_int_equal(load(rule_of("", RATE ", " RATE2)), 0);
	assert_string_equal(limiters_text(0), "G+ G+"); /* one a limit, though of one key */
}

/* A draining rate is asked for until the TAT of its last packet is past, and its entry idle. */
static void test_draining_rate(void **unused)
{
	static const char more[] = "{key: src, rate: 100/s, burst: 500}";

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", RATE)), 0);
	assert_int_equal(apply(rule_of("clock: exact", more)), 0);
	assert_string_equal(limiters_text(0), "G=");
	assert_int_equal(now.bin.rule[0].limiter[0].rate.burst_ns, 5 * SECOND);
	assert_int_equal(apply(rule_of("clock: exact", RATE2)), 0);
	assert_string_equal(limiters_text(0), "G+ G-");
	time_draining();
	assert_true(now.bin.rule[0].limiter[1].until_ns ==
		    host.now_ns + 5 * SECOND + 1 + PACER_IDLE_SLACK_NS);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 0, PACER_DENY_RATE), 0);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 1, PACER_DENY_RATE), -1);
	/* back: on the coarse clock; the exact one does not know which its times were of */
	assert_int_equal(apply(rule_of("clock: exact", RATE)), 0);
	assert_string_equal(limiters_text(0), "G+ G- G-");
	/* its burst, which is a tick shorter there, still builds */
	assert_int_equal(apply(rule_of("clock: coarse", RATE2)), 0);
	assert_string_equal(limiters_text(0), "G+ G- G- G-");
	/* one that has built goes on as it is */
	assert_int_equal(load(rule_of("clock: exact", RATE)), 0);
	assert_int_equal(apply(rule_of("clock: exact", RATE2)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", RATE)), 0);
	assert_string_equal(limiters_text(0), "G= G-");
	/* times of the coarse clock may lie before the truth */
	assert_int_equal(load(rule_of("clock: coarse", RATE)), 0);
	assert_int_equal(apply(rule_of("clock: exact", RATE)), 0);
	assert_string_equal(limiters_text(0), "G+ G-");
	assert_int_equal(load(rule_of("clock: exact", RATE)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", RATE)), 0);
	assert_string_equal(limiters_text(0), "G=");
	/* also where another rule's window, which drains, made it judge by the exact one */
	assert_int_equal(load(RATE_AND("exact")), 0);
	assert_int_equal(apply(RATE_AND("coarse")), 0);
	assert_true(now.bin.flags & PACER_CLOCK_EXACT);
	assert_string_equal(limiters_text(0), "G=");
	assert_int_equal(apply(RATE_AND("exact")), 0);
	assert_string_equal(limiters_text(0), "G+ G-");
}

/* A rate begins but once: all that it waits for ends together, the short ones with the long. */
static void test_draining_rates_end_together(void **unused)
{
	const struct pacer_limiter *t = now.bin.rule[0].limiter;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 50}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 20}")), 0);
	time_draining();
	assert_true(t[0].rate.begin_ns == t[1].until_ns);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 30/s, burst: 20}")), 0);
	assert_string_equal(limiters_text(0), "G+ G- G-");
	assert_true(t[0].rate.begin_ns == COMPILE_UNTIL_SET);
	time_draining();
	assert_true(t[0].rate.begin_ns == host.now_ns + 5 * SECOND + 1 + PACER_IDLE_SLACK_NS);
	assert_true(t[1].until_ns == t[0].rate.begin_ns && t[2].until_ns == t[0].rate.begin_ns);
	/* one of another key waits as well: packets of the rule are both's */
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 30/s, burst: 20}, "
						       "{key: dst, rate: 30/s, burst: 20}")),
			 0);
	assert_string_equal(limiters_text(0), "G= G+ G- G-");
	time_draining();
	assert_true(t[1].rate.begin_ns == t[2].until_ns && t[3].until_ns == t[2].until_ns);
	assert_true(t[0].rate.begin_ns == t[1].rate.begin_ns);
}

/* It waits for rates alone: a window that drains for longer holds up neither. */
static void test_a_rate_waits_for_no_window(void **unused)
{
	const struct pacer_limiter *t = now.bin.rule[0].limiter;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 50}, "
						      "{key: src, packets: 9, window: 1h}")),
			 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 20}")), 0);
	time_draining();
	assert_string_equal(limiters_text(0), "G+ G- Rw-");
	assert_true(t[0].rate.begin_ns == host.now_ns + 5 * SECOND + 1 + PACER_IDLE_SLACK_NS);
	assert_true(t[1].until_ns == t[0].rate.begin_ns);
	assert_true(t[2].until_ns > host.now_ns + 3600 * SECOND);
}

/* Whatever its key, whether of new flows or a fleet's: but one that has counted all keeps on. */
static void test_a_rate_of_other_packets_waits(void **unused)
{
	static const char *const limits[] = {
	    "{key: src, rate: 100/s, burst: 400}",
	    "{key: 'src/24,56', rate: 100/s, burst: 400}",
	    "{key: all, rate: 100/s, burst: 400}",
	    "{key: src, rate: 100/s, burst: 400, of: new}",
	    "{key: src, rate: 100/s, burst: 400, fleet: yes}",
	};
	static const char head[] = "clock: exact\nflows: 4096\n"
				   "fleet: {store: [\"http://127.0.0.1:2379\"], name: e}";
	const struct pacer_limiter *t = now.bin.rule[0].limiter;
	char both[256];

	(void)unused;
	for (size_t i = 0; i < ARRAY(limits); i++)
		for (size_t k = 0; k < ARRAY(limits); k++) {
			if (i == k)
				continue;
			assert_int_equal(load(rule_of(head, limits[i])), 0);
			assert_int_equal(apply(rule_of(head, limits[k])), 0);
			assert_true(t[0].rate.begin_ns == COMPILE_UNTIL_SET);
			time_draining();
			assert_true(t[0].rate.begin_ns == t[1].until_ns);
			teardown(NULL);
			snprintf(both, sizeof(both), "%s, %s", limits[i], limits[k]);
			assert_int_equal(load(rule_of(head, both)), 0);
			assert_int_equal(apply(rule_of(head, limits[k])), 0);
			assert_int_equal(now.bin.rule[0].n_limiters, 2);
			assert_int_equal(t[0].rate.begin_ns, 0);
			teardown(NULL);
		}
}

/* ... also where each has an end already, which is not the same. */
static void test_draining_rates_of_several_ends(void **unused)
{
	static const char both[] = "{key: src, rate: 10/s, burst: 20}, "
				   "{key: src, rate: 1/s, burst: 100}";
	const struct pacer_limiter *t = now.bin.rule[0].limiter;
	uint64_t end_ns;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", both)), 0);
	end_ns = host.now_ns + 100 * SECOND + 1 + PACER_IDLE_SLACK_NS;
	assert_int_equal(apply("clock: exact\nrules:\n- {name: a, verdict: drop}\n"), 0);
	time_draining();
	host.now_ns += SECOND;
	assert_int_equal(apply(rule_of("clock: exact", both)), 0);
	assert_string_equal(limiters_text(0), "G+ G+ G- G-");
	for (size_t k = 0; k < 4; k++)
		assert_true((k < 2 ? t[k].rate.begin_ns : t[k].until_ns) == end_ns);
}

/* What ends before the change is in force would end before anyone can say when the other begins. */
static void test_what_ends_soon_is_held(void **unused)
{
	const struct pacer_limiter *t = now.bin.rule[0].limiter;
	uint64_t end_ns;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 1/s, burst: 20}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 20}")), 0);
	time_draining();
	end_ns = t[1].until_ns;
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 3/s, burst: 20}")), 0);
	assert_string_equal(limiters_text(0), "G+ G- G-");
	assert_true(t[1].until_ns == COMPILE_UNTIL_SET && t[2].until_ns == end_ns);
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 1/s, burst: 20}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 20}")), 0);
	time_draining();
	host.now_ns = t[1].until_ns - SECOND;
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 3/s, burst: 20}")), 0);
	assert_string_equal(limiters_text(0), "G+ G- G-");
	assert_true(t[1].until_ns == COMPILE_UNTIL_SET && t[2].until_ns == COMPILE_UNTIL_SET);
}

/*
 * A burst that grows as a rate of another speed comes beside it begins anew, since that has not
 * counted what the burst before let through. Where it has, the burst grows in its place.
 */
static void test_a_burst_grows_beside_another_rate(void **unused)
{
	static const char less[] = "{key: src, rate: 1000/s, burst: 10}, "
				   "{key: src, rate: 10/s, burst: 100}";
	static const char more[] = "{key: src, rate: 1000/s, burst: 1000}, "
				   "{key: src, rate: 10/s, burst: 100}";

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 1000/s, burst: 10}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", more)), 0);
	assert_string_equal(limiters_text(0), "G+ G+ G-");
	assert_true(now.bin.rule[0].limiter[1].rate.begin_ns == COMPILE_UNTIL_SET);
	/* it came a moment before */
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 1000/s, burst: 10}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", less)), 0);
	assert_string_equal(limiters_text(0), "G= G+");
	time_draining();
	host.now_ns += MS;
	assert_int_equal(apply(rule_of("clock: exact", more)), 0);
	assert_string_equal(limiters_text(0), "G+ G= G-");
	/* it was there as long */
	assert_int_equal(load(rule_of("clock: exact", less)), 0);
	assert_int_equal(apply(rule_of("clock: exact", more)), 0);
	assert_string_equal(limiters_text(0), "G= G=");
}

/* It begins anew, too, where the other rate was looser, and may stay so until it ends. */
static void test_a_burst_grows_beside_one_that_is_lowered(void **unused)
{
	static const struct {
		const char *before, *after, *limiters;
	} cases[] = {
	    {"{key: src, rate: 25/s, burst: 3}, {key: src, rate: 60/s, burst: 100, entries: 64}",
	     "{key: src, rate: 25/s, burst: 200}, {key: src, rate: 60/s, burst: 2, entries: 256}",
	     "G+ G+ G- G-"},
	    {"{key: src, rate: 25/s, burst: 3}, {key: src, rate: 60/s, burst: 100}",
	     "{key: src, rate: 25/s, burst: 200}, {key: src, rate: 60/s, burst: 2}", "G= G="},
	    {"{key: src, rate: 25/s, burst: 3}, {key: src, rate: 60/s, burst: 2, entries: 64}",
	     "{key: src, rate: 25/s, burst: 200}, {key: src, rate: 60/s, burst: 2, entries: 256}",
	     "G= G+ G-"},
	    /* the other one's state goes on, which is seen later */
	    {"{key: src, rate: 25/s, burst: 3}, {key: src, rate: 60/s, burst: 3}",
	     "{key: src, rate: 25/s, burst: 200}, {key: src, rate: 60/s, burst: 2}", "G+ G= G-"},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		assert_int_equal(load(rule_of("clock: exact", cases[i].before)), 0);
		assert_int_equal(apply(rule_of("clock: exact", cases[i].after)), 0);
		assert_string_equal(limiters_text(0), cases[i].limiters);
	}
}

/*
 * A rate that came later waits as the one before it ends, until its speed has made up for a burst
 * that adds up: for the largest that a key may have had, though that was lowered since.
 */
static void test_a_burst_that_was_lowered_adds_up(void **unused)
{
#define QUICKER "{key: src, rate: 20/s, burst: 20}"
#define LOWERED "{key: src, rate: 10/s, burst: 9}"
#define BESIDE	"{key: src, rate: 12/s, burst: 9}"
	static const struct {
		const char *first, *both, *lowered, *left;
		uint32_t after_s[2]; /* it waits, and it does not */
	} cases[] = {
	    {QUICKER,
	     QUICKER ", {key: src, rate: 10/s, burst: 100}",
	     QUICKER ", " LOWERED,
	     LOWERED,
	     {8, 9}},
	    {"{key: src, rate: 10/s, burst: 100}",
	     "{key: src, rate: 10/s, burst: 100}, " BESIDE,
	     LOWERED ", " BESIDE,
	     BESIDE,
	     {40, 41}},
	};

	(void)unused;
	for (size_t i = 0; i < 2 * ARRAY(cases); i++) {
		bool waits = i % 2 == 0;

		assert_int_equal(load(rule_of("clock: exact", cases[i / 2].first)), 0);
		assert_int_equal(apply(rule_of("clock: exact", cases[i / 2].both)), 0);
		time_draining();
		assert_int_equal(apply(rule_of("clock: exact", cases[i / 2].lowered)), 0);
		assert_string_equal(limiters_text(0), "G= G=");
		time_draining();
		host.now_ns += cases[i / 2].after_s[!waits] * SECOND;
		assert_int_equal(apply(rule_of("clock: exact", cases[i / 2].left)), 0);
		assert_string_equal(limiters_text(0), "G= G-");
		assert_int_equal(now.bin.rule[0].limiter[0].rate.begin_ns == COMPILE_UNTIL_SET,
				 waits);
	}
}

/*
 * One that came later and still builds would have its burst at once while it waits for another that
 * is taken out: it begins anew. Not where it has not begun, or has built its burst.
 */
static void test_a_burst_that_builds_waits(void **unused)
{
#define OLDEST "{key: src, rate: 63/m, burst: 1000}"
#define LATER  "{key: src, rate: 66/m, burst: 10}"
	static const struct {
		int64_t begun_ns;
		const char *limiters;
	} cases[] = {{-(int64_t)SECOND, "G= G- G-"},
		     {0, "G+ G- G-"},
		     {9 * (int64_t)SECOND, "G+ G- G-"},
		     {10 * (int64_t)SECOND, "G= G-"}};
	const struct pacer_limiter *t = now.bin.rule[0].limiter;

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		uint64_t begin_ns;

		assert_int_equal(
		    load(rule_of("clock: exact", OLDEST ", {key: src, rate: 60/m, burst: 10}")), 0);
		assert_int_equal(apply(rule_of("clock: exact", OLDEST ", " LATER)), 0);
		assert_string_equal(limiters_text(0), "G= G+ G-");
		time_draining();
		begin_ns = t[1].rate.begin_ns;
		host.now_ns = begin_ns + (uint64_t)cases[i].begun_ns;
		assert_int_equal(apply(rule_of("clock: exact", LATER)), 0);
		assert_string_equal(limiters_text(0), cases[i].limiters);
		assert_true(t[0].rate.begin_ns == COMPILE_UNTIL_SET);
		if (t[1].rate.unit_ns == t[0].rate.unit_ns)
			assert_true(t[1].rate.begin_ns == begin_ns);
	}
}

/* One that came as another came back, which had counted before, has not counted all of that. */
static void test_a_rate_beside_one_that_came_back(void **unused)
{
#define CAME_BACK "{key: src, rate: 5/s, burst: 3}"
	const struct pacer_rule *rule = &now.bin.rule[0];

	(void)unused;
	for (int back = 0; back < 2; back++) {
		host.now_ns = 100 * SECOND;
		assert_int_equal(load(rule_of("clock: coarse", back ? CAME_BACK : WIN)), 0);
		host.now_ns += 5 * SECOND;
		assert_int_equal(apply(rule_of("clock: coarse", WIN)), 0);
		time_draining();
		assert_int_equal(
		    apply(rule_of("clock: coarse", "{key: src, rate: 5/s, burst: 20}, " CAME_BACK)),
		    0);
		time_draining();
		host.now_ns += 2 * SECOND;
		assert_int_equal(apply(rule_of("clock: coarse", CAME_BACK)), 0);
		assert_true((rule->limiter[0].rate.begin_ns == COMPILE_UNTIL_SET) == back);
	}
}

/*
 * Of a burst that still builds, more would be there at once: it begins anew. So does one that is
 * all there, but would not be if it had been as large: what was taken meanwhile would not count.
 */
static void test_a_burst_that_builds_grows(void **unused)
{
	static const char less[] = "{key: src, rate: 20/s, burst: 20}";
	static const char more[] = "{key: src, rate: 20/s, burst: 30}";
	const struct pacer_limiter *t = now.bin.rule[0].limiter;
	uint64_t begin_ns;

	(void)unused;
	for (uint64_t built = 0; built < 2; built++) {
		assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 9}")),
				 0);
		assert_int_equal(apply(rule_of("clock: exact", less)), 0);
		time_draining();
		begin_ns = t[0].rate.begin_ns;
		host.now_ns = begin_ns + 1500 * MS + built;
		assert_int_equal(apply(rule_of("clock: exact", more)), 0);
		assert_string_equal(limiters_text(0), built ? "G=" : "G+ G-");
	}
}

/*
 * One that is lowered while it builds begins anew, too. A key may have had as much as the larger
 * one lets through, and owes the difference: to be raised later, it begins anew once more.
 */
static void test_a_burst_that_builds_is_lowered(void **unused)
{
	const struct pacer_limiter *t = now.bin.rule[0].limiter;

	(void)unused;
	for (uint64_t built = 0; built < 2; built++) {
		assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 9}")),
				 0);
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 30}")), 0);
		time_draining();
		host.now_ns = t[0].rate.begin_ns + 1500 * MS + built;
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 20}")), 0);
		assert_string_equal(limiters_text(0), built ? "G=" : "G+ G-");
		time_draining();
		host.now_ns += 100 * SECOND;
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 25}")), 0);
		assert_string_equal(limiters_text(0), built ? "G=" : "G+ G-");
	}
}

#define EXACT  "clock: exact"
#define COARSE "clock: coarse"

/* What a key owes to a larger burst before: of a speed that does not make up for it. */
static void test_a_burst_grows_that_was_larger(void **unused)
{
	static const struct {
		const char *clock, *first, *then, *more; /* the clock at first */
		bool owes;
	} cases[] = {
	    {EXACT, "rate: 20/s, burst: 30, entries: 64", "rate: 20/s, burst: 20, entries: 128",
	     "rate: 20/s, burst: 25, entries: 128", true},
	    {EXACT, "rate: 20/s, burst: 20, entries: 64", "rate: 20/s, burst: 20, entries: 128",
	     "rate: 20/s, burst: 25, entries: 128", false},
	    {EXACT, "rate: 39/s, burst: 30", "rate: 20/s, burst: 20", "rate: 20/s, burst: 25",
	     true},
	    {EXACT, "rate: 40/s, burst: 30", "rate: 20/s, burst: 20", "rate: 20/s, burst: 25",
	     false},
	    {EXACT, "rate: 11/s, burst: 30", "rate: 20/s, burst: 20", "rate: 20/s, burst: 25",
	     true},
	    {EXACT, "rate: 10/s, burst: 30", "rate: 20/s, burst: 20", "rate: 20/s, burst: 25",
	     false},
	    {EXACT, "rate: 20kB/s, burst: 30kB", "rate: 20000/s, burst: 20",
	     "rate: 20000/s, burst: 25", true},
	    {EXACT, "rate: 2kB/s, burst: 2kB", "rate: 20/s, burst: 9", "rate: 20/s, burst: 10",
	     true},
	    /* a tick smaller, it was larger by a part of a packet */
	    {COARSE, "rate: 20/s, burst: 21", "rate: 20/s, burst: 20", "rate: 20/s, burst: 21",
	     true},
	    {COARSE, "rate: 20/s, burst: 20", "rate: 20/s, burst: 20", "rate: 20/s, burst: 21",
	     false},
	};
	char limit[128];

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		snprintf(limit, sizeof(limit), "{key: src, %s}", cases[i].first);
		assert_int_equal(load(rule_of(cases[i].clock, limit)), 0);
		snprintf(limit, sizeof(limit), "{key: src, %s}", cases[i].then);
		assert_int_equal(apply(rule_of(EXACT, limit)), 0);
		assert_string_equal(limiters_text(0), "G+ G-");
		time_draining();
		host.now_ns += 100 * SECOND;
		snprintf(limit, sizeof(limit), "{key: src, %s}", cases[i].more);
		assert_int_equal(apply(rule_of(EXACT, limit)), 0);
		assert_string_equal(limiters_text(0), cases[i].owes ? "G+ G-" : "G=");
		time_draining();
		host.now_ns += 100 * SECOND; /* and what one owes the next one does */
		snprintf(limit, sizeof(limit), "{key: src, %s}", cases[i].then);
		assert_int_equal(apply(rule_of(EXACT, limit)), 0);
		assert_string_equal(limiters_text(0), "G=");
		snprintf(limit, sizeof(limit), "{key: src, %s}", cases[i].more);
		assert_int_equal(apply(rule_of(EXACT, limit)), 0);
		assert_string_equal(limiters_text(0), cases[i].owes ? "G+ G-" : "G=");
	}
}

/* A rate that has begun has done so as long ago on another clock, as far as that can say. */
static void test_a_begun_rate_on_another_clock(void **unused)
{
	struct pacer_limiter *t = now.bin.rule[0].limiter;
	static const struct {
		int64_t by_s, from_begin_ms; /* when the burst is raised */
		bool in_place;
	} cases[] = {
	    {1000, 1499, false}, {1000, 1501, true},   {-900, 1499, false},
	    {-900, 1501, true},	 {-2000, 1499, false}, {-2000, 100000, false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		uint64_t begin_ns, built_ns;

		host.now_ns = 1000 * SECOND;
		assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 9}")),
				 0);
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 20}")), 0);
		time_draining();
		begin_ns = cases[i].by_s < -1000 ? 0 : t[0].rate.begin_ns + cases[i].by_s * SECOND;
		built_ns = begin_ns + 1200 * MS;
		compile_carry_rate(t, cases[i].by_s * (int64_t)SECOND, built_ns);
		assert_true(t[0].rate.begin_ns == begin_ns);
		host.now_ns = t[0].rate.begin_ns + cases[i].from_begin_ms * MS;
		t[1].until_ns = 1; /* it is over */
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 30}")), 0);
		assert_string_equal(limiters_text(0), cases[i].in_place ? "G=" : "G+ G-");
	}
	/* its burst has not come back to everybody: it does from the clock's beginning on */
	host.now_ns = 1000 * SECOND;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 9}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 20}")), 0);
	time_draining();
	compile_carry_rate(t, -(int64_t)t[0].rate.begin_ns, SECOND);
	assert_true(t[0].rate.begin_ns == 1);
}

/* A draining limit that was made for the exact clock is judged by it to its end. */
static void test_clock_of_the_draining(void **unused)
{
	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw+ Rw-");
	assert_true(now.bin.flags & PACER_CLOCK_EXACT);
	assert_int_equal(now.plan.resolution_ns, RESOLUTION);
	time_draining();
	host.now_ns += 1;
	assert_int_equal(apply(rule_of("clock: coarse", WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw= Rw-");
	assert_true(now.bin.flags & PACER_CLOCK_EXACT);
	host.now_ns += 10 * SECOND;
	assert_int_equal(apply(rule_of("clock: coarse", WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw=");
	assert_false(now.bin.flags & PACER_CLOCK_EXACT);
	/* a sketch goes on: its times were exact, and the gap now includes the resolution */
	assert_int_equal(load(rule_of("clock: exact", GAP)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", GAP)), 0);
	assert_string_equal(limiters_text(0), "Sg=");
	/* but not back: its times may lie before the truth */
	assert_int_equal(apply(rule_of("clock: exact", GAP)), 0);
	assert_string_equal(limiters_text(0), "Sg+ Sg-");
	assert_int_equal(now.bin.rule[0].limiter[1].gap_ns, MS + RESOLUTION);
	/* nor by way of a longer one, which goes on with them */
	assert_int_equal(load(rule_of("clock: coarse", GAP)), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, gap: 1s}")), 0);
	assert_string_equal(limiters_text(0), "Sg=");
	assert_int_equal(apply(rule_of("clock: exact", GAP)), 0);
	assert_string_equal(limiters_text(0), "Sg+ Sg-");
	/* of one that was never under that clock, they are the truth */
	assert_int_equal(load(rule_of("clock: exact", "{key: src, gap: 1s}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", GAP)), 0);
	assert_string_equal(limiters_text(0), "Sg=");
}

/*
 * A fast rate's time for a byte has a fraction of a nanosecond. Two that differ in it alone are two
 * rates: what the one counted would stand for a time that the other did not take.
 */
static void test_rates_apart_by_a_fraction(void **unused)
{
	const struct pacer_rate *rate = &now.bin.rule[0].limiter[0].rate;
	uint64_t unit_ns;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 1900Mbit/s, burst: 10M}")),
			 0);
	unit_ns = rate->unit_ns;
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 1700Mbit/s, burst: 10M}")),
			 0);
	assert_true(rate->unit_ns == unit_ns);
	assert_string_equal(limiters_text(0), "G+ G-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_clock),
	    TEST(test_rate_lines),
	    TEST(test_draining_rate),
	    TEST(test_draining_rates_end_together),
	    TEST(test_a_rate_waits_for_no_window),
	    TEST(test_a_rate_of_other_packets_waits),
	    TEST(test_draining_rates_of_several_ends),
	    TEST(test_what_ends_soon_is_held),
	    TEST(test_a_burst_grows_beside_another_rate),
	    TEST(test_a_burst_grows_beside_one_that_is_lowered),
	    TEST(test_a_burst_that_was_lowered_adds_up),
	    TEST(test_a_burst_that_builds_waits),
	    TEST(test_a_rate_beside_one_that_came_back),
	    TEST(test_a_burst_that_builds_grows),
	    TEST(test_a_burst_that_builds_is_lowered),
	    TEST(test_a_burst_grows_that_was_larger),
	    TEST(test_a_begun_rate_on_another_clock),
	    TEST(test_clock_of_the_draining),
	    TEST(test_rates_apart_by_a_fraction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
