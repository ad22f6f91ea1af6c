/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of a policy whose limits have expired, or drain: what is left out, what has room, and
 * what is refused.
 */
#include "changed.h"

#include "plan/resting.h"
#include "short.h"

/* --- what has expired ----------------------------------------------------------------------- */

#define SECONDS(n) "{key: src, packets: 9, window: " #n "s, entries: 64}"
#define FIVE	   SECONDS(1) ", " SECONDS(2) ", " SECONDS(3) ", " SECONDS(4) ", " SECONDS(5)
#define THREE	   SECONDS(6) ", " SECONDS(7) ", " SECONDS(8)
#define FOUR	   THREE ", " SECONDS(9)

/* The rate that comes back begins when what the trial's one let through is over: its burst is spent
 * then.
 */
static void test_a_trial_of_a_rate(void **unused)
{
	const struct pacer_limiter *tried;
	uint64_t end_ns;

	(void)unused;
	begin(SMALL RULE("{key: src, rate: 10/m, burst: 50}"));
	try_out(SMALL RULE("{key: src, rate: 20/m, burst: 50}"));
	tried = &in_force()->rule[0].limiter[0];
	end_ns = kernel_now_ns + TRIAL_NS + compile_limiter_memory_ns(tried);
	assert_int_equal(rule_before()->n_limiters, 2);
	assert_true(rule_before()->limiter[0].rate.begin_ns == end_ns);
	assert_true(rule_before()->limiter[1].until_ns == end_ns);
	/* and that of the trial when the one before is over */
	assert_int_equal(in_force()->rule[0].n_limiters, 2);
	assert_true(tried->rate.begin_ns == in_force()->rule[0].limiter[1].until_ns);
	assert_true(tried->rate.begin_ns > kernel_now_ns + 300 * SECOND);
	/* it has come back, and builds its bursts */
	kernel_now_ns = end_ns + 300 * SECOND;
	assert_int_equal(change_apply(&pacer, SMALL RULE("{key: src, rate: 30/m, burst: 50}"), NULL,
				      TRIAL_NS, &plan, &error),
			 -1);
	assert_non_null(strstr(error.text, "builds its bursts"));
	kernel_now_ns++;
	try_out(SMALL RULE("{key: src, rate: 30/m, burst: 50}"));
}

/* It can begin but once: the short one of two that it waits for ends with the long one. */
static void test_a_trial_of_two_rates(void **unused)
{
	const struct pacer_rule *rule;
	uint64_t end_ns;

	(void)unused;
	begin(SMALL RULE("{key: src, rate: 100/s, burst: 100}"));
	try_out(
	    SMALL RULE("{key: src, rate: 200/s, burst: 10}, {key: src, rate: 20/s, burst: 200}"));
	end_ns =
	    kernel_now_ns + TRIAL_NS + compile_limiter_memory_ns(&in_force()->rule[0].limiter[1]);
	rule = rule_before();
	assert_int_equal(rule->n_limiters, 3);
	assert_true(rule->limiter[0].rate.begin_ns == end_ns);
	assert_true(rule->limiter[1].until_ns == end_ns && rule->limiter[2].until_ns == end_ns);
}

/* The trial's rate has begun without its burst, or will have: so it does where it is needed on. */
static void test_a_trials_rate_begins_but_once(void **unused)
{
	(void)unused;
	begin(SMALL RULE("{key: src, rate: 100/s, burst: 100}"));
	try_out(SMALL RULE("{key: src, rate: 10/s, burst: 100}"));
	assert_true(in_force()->rule[0].limiter[0].rate.begin_ns < kernel_now_ns + TRIAL_NS);
	assert_true(rule_before()->limiter[1].rate.begin_ns ==
		    in_force()->rule[0].limiter[0].rate.begin_ns);
	end(NULL);
	/* not before the trial ends: the one before has counted all */
	begin(SMALL RULE("{key: src, rate: 1/s, burst: 100}"));
	try_out(SMALL RULE("{key: src, rate: 10/s, burst: 100}"));
	assert_true(in_force()->rule[0].limiter[0].rate.begin_ns > kernel_now_ns + TRIAL_NS);
	assert_int_equal(rule_before()->limiter[1].rate.begin_ns, 0);
	end(NULL);
	/* its tool is killed before it says when: at the trial's end at the latest */
	begin(SMALL RULE("{key: src, rate: 100/s, burst: 100}"));
	grace_hook = refuse_after_it;
	assert_int_equal(change_apply(&pacer, SMALL RULE("{key: src, rate: 10/s, burst: 100}"),
				      NULL, TRIAL_NS, &plan, &error),
			 CHANGE_LASTS);
	assert_true(in_force()->rule[0].limiter[0].rate.begin_ns == COMPILE_UNTIL_SET);
	assert_true(rule_before()->limiter[1].rate.begin_ns == kernel_now_ns + TRIAL_NS);
}

/* The slower rate was not asked on trial, and the other's burst grows when it comes back. */
static void test_a_burst_grows_after_a_trial(void **unused)
{
	(void)unused;
	begin(SMALL RULE(
	    "{key: src, rate: 1000/s, burst: 1000}, {key: src, rate: 10/s, burst: 100}"));
	try_out(SMALL RULE("{key: src, rate: 1000/s, burst: 10}"));
	assert_int_equal(plan.limit[0].state, PLAN_KEPT);
	assert_int_equal(rule_before()->n_limiters, 2);
	assert_int_equal(rule_before()->limiter[0].rate.begin_ns, 0);
	assert_true(rule_before()->limiter[1].rate.begin_ns == kernel_now_ns + TRIAL_NS);
	end(NULL);
	/* it would grow while it builds: too early */
	begin(SMALL RULE("{key: src, rate: 10/s, burst: 50}"));
	change_to(SMALL RULE("{key: src, rate: 1/s, burst: 40}"));
	assert_int_equal(change_apply(&pacer, SMALL RULE("{key: src, rate: 1/s, burst: 39}"), NULL,
				      TRIAL_NS, &plan, &error),
			 -1);
	assert_non_null(strstr(error.text, "builds its bursts"));
	try_out(SMALL RULE("{key: src, rate: 1/s, burst: 40}"));
	end(NULL);
	/* it would be all there when the trial ends, and is not yet */
	begin(SMALL RULE("{key: src, rate: 10/s, burst: 50}"));
	change_to(SMALL RULE("{key: src, rate: 1/s, burst: 40}"));
	kernel_now_ns = in_force()->rule[0].limiter[0].rate.begin_ns + 40 * SECOND;
	assert_int_equal(change_apply(&pacer, SMALL RULE("{key: src, rate: 1/s, burst: 20}"), NULL,
				      TRIAL_NS, &plan, &error),
			 -1);
	assert_non_null(strstr(error.text, "builds its bursts"));
	kernel_now_ns++;
	try_out(SMALL RULE("{key: src, rate: 1/s, burst: 20}"));
}

/* Another value is of the same state: nothing has to wait. */
static void test_a_trial_of_a_burst(void **unused)
{
	(void)unused;
	begin(SMALL RULE("{key: src, rate: 10/s, burst: 5}"));
	try_out(SMALL RULE("{key: src, rate: 10/s, burst: 9}"));
	assert_int_equal(rule_before()->n_limiters, 1);
	assert_int_equal(rule_before()->limiter[0].rate.begin_ns, 0);
	assert_int_equal(in_force()->rule[0].limiter[0].rate.begin_ns, 0);
}

#define OF_TWO "{key: src, rate: 2/s, burst: 10}"
#define DENIES SMALL "rules:\n- {name: a, verdict: drop}\n"

/* The limits that rest in the policy before, of those that drain on trial. */
static uint32_t rest_as_long(uint64_t until_ns)
{
	struct pacer_policy *old = &copies[copies_in_force(&pacer) ^ 1].policy;
	const struct pacer_rule *rests = resting_of(old, compile_name_id("a"));
	const struct pacer_rule *tried = &in_force()->rule[0];
	uint32_t n = 0;

	assert_non_null(rests);
	for (size_t k = 0; k < tried->n_limiters; k++)
		for (size_t i = 0; tried->limiter[k].until_ns && i < rests->n_limiters; i++)
			n += rests->limiter[i].base == tried->limiter[k].base &&
			     rests->limiter[i].until_ns == until_ns;
	return n;
}

/* The trial's rate relies on what drains on trial: so will the change that is made once it is over.
 */
static void test_what_drains_on_trial_lasts_after_it(void **unused)
{
	uint64_t until_ns;

	(void)unused;
	begin(SMALL RULE(OF_TWO ", {key: src, rate: 50/s, burst: 700}"));
	change_to(DENIES);
	kernel_now_ns += 2 * SECOND; /* it ends in more than 10 s, the other one sooner */
	try_out(SMALL RULE(OF_TWO));
	until_ns = in_force()->rule[0].limiter[0].rate.begin_ns;
	assert_true(until_ns > kernel_now_ns + 10 * SECOND);
	assert_int_equal(in_force()->rule[0].n_limiters, 3);
	assert_int_equal(rest_as_long(until_ns), 2);
}

#define HUNDRED	 "{key: src, rate: 2/s, burst: 100}"
#define SHORT_OF "{key: src, rate: 50/s, burst: 50}"

/* So does one whose end is not known until the trial is in force, or nobody ever says it. */
static void test_what_drains_without_an_end_lasts(void **unused)
{
	(void)unused;
	for (int killed = 0; killed < 2; killed++) {
		const struct pacer_rule *tried, *old;

		begin(SMALL RULE(HUNDRED ", " SHORT_OF));
		change_to(SMALL RULE(HUNDRED));
		graces = 0;
		grace_hook = killed ? refuse_after_it : NULL;
		assert_int_equal(change_apply(&pacer,
					      SMALL RULE("{key: src, rate: 1/s, burst: 50}"), NULL,
					      TRIAL_NS, &plan, &error),
				 killed ? CHANGE_LASTS : 0);
		tried = &in_force()->rule[0];
		old = rule_before();
		assert_int_equal(old->limiter[1].base, tried->limiter[2].base);
		assert_true(old->limiter[1].until_ns == tried->limiter[2].until_ns);
		assert_int_equal(tried->limiter[2].until_ns == COMPILE_UNTIL_SET, killed);
		grace_hook = NULL;
		end(NULL);
	}
	begin(SMALL RULE(OF_TWO));
}

/* What a trial left behind counts from its beginning on, and what came back from its end on. */
static void test_what_a_trial_left_is_the_older(void **unused)
{
	(void)unused;
	begin(ROUGHLY RULE("{key: src, rate: 2/s, burst: 100}"));
	try_out(ROUGHLY RULE("{key: src, rate: 100/s, burst: 100}"));
	kernel_now_ns += TRIAL_NS + 51 * MS;
	change_to(
	    ROUGHLY RULE("{key: src, rate: 2/s, burst: 100}, {key: src, rate: 100/s, burst: 200}"));
	assert_int_equal(plan.limit[0].state, PLAN_KEPT);
	assert_int_equal(plan.limit[1].state, PLAN_NEW);
	end(NULL);
	begin(DENIES);
	try_out(ROUGHLY RULE(OF_TWO));
	assert_false(compile_rates_begin(
	    resting_of(&copies[copies_in_force(&pacer) ^ 1].policy, compile_name_id("a"))));
}

/* One begin cannot serve both: a burst that grows as the trial ends, and a rate that drains then.
 */
static void test_a_trial_that_wants_two_begins(void **unused)
{
	(void)unused;
	begin(
	    SMALL RULE("{key: src, rate: 1000/s, burst: 200}, {key: src, rate: 50/s, burst: 100}"));
	assert_int_equal(
	    change_apply(&pacer,
			 SMALL RULE("{key: src, rate: 1000/s, burst: 100}, {key: src, rate: 10/s, "
				    "burst: 1000}"),
			 NULL, TRIAL_NS, &plan, &error),
	    -1);
	assert_non_null(strstr(error.text, "one after the other"));
	assert_int_equal(in_force()->rule[0].n_limiters, 2);
}

/* A trial needs room in the policy before: not what draining limits take that matter no more. */
static void test_a_trial_beside_what_has_expired(void **unused)
{
	uint64_t serial;

	(void)unused;
	begin(SMALL RULE(FIVE));
	change_to(SMALL RULE(TO_DST));
	assert_int_equal(in_force()->rule[0].n_limiters, 6);
	assert_int_equal(change_apply(&pacer, SMALL RULE(FOUR), NULL, TRIAL_NS, &plan, &error), -1);
	assert_int_equal(in_force()->rule[0].n_limiters, 6);
	serial = in_force()->serial;
	kernel_now_ns += 60 * SECOND;
	try_out(SMALL RULE(FOUR));
	assert_int_equal(rule_before()->n_limiters, 5);
	assert_int_equal(rule_before()->limiter[0].until_ns, 0);
	assert_true(in_force()->serial == serial + 1);
}

/* The lines of a limit that has expired may be another's in the policy tried: that one is draining
 * should the policy give way, and not the one before in its lines.
 */
static void test_a_trial_in_the_lines_of_what_has_expired(void **unused)
{
	const struct pacer_limiter *t;
	uint32_t base;

	(void)unused;
	begin("memory: 64K\nclock: exact\n" RULE(WINDOW ", " SECONDS(2)));
	base = in_force()->rule[0].limiter[1].base;
	change_to("memory: 64K\nclock: exact\n" RULE(WINDOW));
	kernel_now_ns += 60 * SECOND;
	try_out("memory: 64K\nclock: exact\n" RULE(WINDOW ", " TO_DST));
	assert_int_equal(in_force()->rule[0].limiter[1].base, base);
	assert_int_equal(rule_before()->n_limiters, 2);
	t = &rule_before()->limiter[1];
	assert_int_equal(t->mask4[0], 0);
	assert_int_equal(t->mask4[1], 0xffffffff);
	assert_true(t->until_ns == kernel_now_ns + TRIAL_NS + compile_limiter_memory_ns(t));
}

/* With a weak secret they stay, so that there may be no room: a change without a trial draws a
 * better one. */
static void test_a_trial_without_room(void **unused)
{
	(void)unused;
	begin(SMALL RULE(FIVE));
	change_to(SMALL RULE(TO_DST));
	kernel_now_ns += 60 * SECOND;
	control->secret_ready = 0;
	assert_int_equal(change_apply(&pacer, SMALL RULE(THREE), NULL, TRIAL_NS, &plan, &error),
			 -1);
	assert_non_null(strstr(error.text, "would hold more than 8 limits after"));
	assert_int_equal(in_force()->rule[0].n_limiters, 6);
	assert_int_equal(in_force()->serial, 2);
	change_to(SMALL RULE(THREE));
	assert_int_equal(in_force()->rule[0].n_limiters, 4);
	assert_int_equal(in_force()->serial, 3); /* what was refused has none */
}

/* The briefs have a secret in them, and the short way asks for no other. */
static void test_a_trial_before_a_packet(void **unused)
{
	static const __u64 none[PACER_SECRETS];
	static struct pacer_policy again;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	control->secret_ready = PACER_SECRET_NONE;
	try_out(SMALL RULE("{key: src, gap: 20s}"));
	assert_false(plan.rotated);
	assert_int_equal(control->secret_ready, PACER_SECRET_OF_TOOLS);
	assert_memory_not_equal(control->secret[0], none, sizeof(none));
	again = *in_force();
	assert_int_equal(again.secret, 0);
	pacer_short_arm(&again, control, copies_in_force(&pacer));
	assert_memory_equal(&again, in_force(), sizeof(again));
}

#define RATE(key, n) "{key: " key ", rate: " #n "/m, burst: 50}"

/* The rate of another key has not been changed, and waits for nothing; nor does one that drains. */
static void test_a_trial_of_one_of_two_rates(void **unused)
{
	const struct pacer_rule *rule;

	(void)unused;
	begin(SMALL RULE(
	    RATE("src/24,56", 10) ", " RATE("dst", 10) ", " RATE("src", 10) ", " WINDOW));
	change_to(SMALL RULE(RATE("dst", 10) ", " RATE("src", 10) ", " WINDOW));
	assert_int_equal(in_force()->rule[0].n_limiters, 4);
	try_out(SMALL RULE(RATE("dst", 10) ", " RATE("src", 20) ", " WINDOW));
	rule = rule_before();
	assert_int_equal(rule->n_limiters, 5);
	for (size_t k = 0; k < rule->n_limiters; k++)
		if (pacer_limiter_kind_of(&rule->limiter[k]) == PACER_LIMITER_RATE)
			assert_int_equal(rule->limiter[k].rate.begin_ns > kernel_now_ns, k == 1);
}

/* A rule that lets its packets pass, or denies them, has nothing to make up for. */
static void test_a_trial_of_a_verdict(void **unused)
{
	(void)unused;
	begin(SMALL "rules:\n- {name: a, verdict: drop}\n");
	try_out(SMALL RULE(WINDOW));
	assert_int_equal(rule_before()->n_limiters, 0);
	assert_int_equal(in_force()->rule[0].n_limiters, 1);
}

/* What is admitted on trial counts, though the rule denies again: when it has limits once more. */
static void test_a_trial_rests(void **unused)
{
	static const char denies[] = SMALL "rules:\n- {name: a, verdict: drop}\n";
	static const char gone[] = SMALL "else: drop\nrules: []\n";
	const struct pacer_rule *rests;
	uint32_t base;

	(void)unused;
	for (int k = 0; k < 2; k++) {
		begin(k ? gone : denies);
		try_out(SMALL RULE(WINDOW));
		base = in_force()->rule[0].limiter[0].base;
		kernel_now_ns += TRIAL_NS;
		rests = resting_of(in_force(), compile_name_id("a"));
		assert_non_null(rests);
		assert_true(rests->limiter[0].until_ns ==
			    kernel_now_ns + compile_limiter_memory_ns(&rests->limiter[0]));
		kernel_now_ns++;
		/* on trial once more, and so it has to last longer, and be no looser */
		try_out(SMALL RULE("{key: src, packets: 5, window: 1s, entries: 64}"));
		assert_int_equal(in_force()->rule[0].limiter[0].base, base);
		assert_int_equal(plan.limit[0].state, PLAN_KEPT);
		kernel_now_ns += TRIAL_NS;
		rests = resting_of(in_force(), compile_name_id("a"));
		assert_int_equal(rests->n_limiters, 1);
		assert_int_equal(kind_of_limiter(&rests->limiter[0])->value(&rests->limiter[0]), 5);
		assert_true(rests->limiter[0].until_ns ==
			    kernel_now_ns + compile_limiter_memory_ns(&rests->limiter[0]));
		change_to(SMALL RULE(WINDOW));
		assert_int_equal(plan.limit[0].state, PLAN_KEPT);
		end(NULL);
	}
	begin(denies);
}

/* When CPUs have done with what they leased of a throttle before is said once none leases more. */
static void test_leases_are_timed(void **unused)
{
	static const char less[] = SMALL RULE("{key: all, uses: 4000, cooldown: 10s}");

	(void)unused;
	begin(SMALL RULE("{key: all, uses: 400000, cooldown: 10s}"));
	assert_int_equal(in_force()->rule[0].limiter[0].throttle.lease, 256);
	graces = 0;
	change_to(less);
	assert_int_equal(plan.limit[0].state, PLAN_KEPT);
	assert_int_equal(graces, 2);
	assert_false(throttle_leases_last(in_force()));
	assert_int_equal(
	    throttle_leased(&in_force()->rule[0].limiter[0], kernel_now_ns + 100 * MS + RESOLUTION),
	    256);
	assert_int_equal(throttle_leased(&in_force()->rule[0].limiter[0], kernel_now_ns + 300 * MS),
			 in_force()->rule[0].limiter[0].throttle.lease);
}

/* What is leased on trial fits into the limit that comes back, and into those that follow it. */
static void test_leases_of_a_trial(void **unused)
{
	const struct pacer_limiter *t, *was;

	(void)unused;
	begin(SMALL RULE("{key: all, uses: 300, cooldown: 10s}"));
	try_out(SMALL RULE("{key: all, uses: 400000, cooldown: 10s}"));
	assert_int_equal(plan.limit[0].state, PLAN_KEPT);
	t = &in_force()->rule[0].limiter[0];
	was = &rule_before()->limiter[0];
	assert_int_equal(t->throttle.lease, 1 + 300 / KERNEL_CPUS);
	assert_int_equal(throttle_leased(was, kernel_now_ns + TRIAL_NS + 100 * MS),
			 t->throttle.lease);
	assert_int_equal(throttle_leased(was, kernel_now_ns + TRIAL_NS + 300 * MS),
			 was->throttle.lease);
	assert_int_equal(change_confirm(&pacer, &error), 0);
	change_to(SMALL RULE("{key: all, uses: 400000, cooldown: 10s}"));
	assert_int_equal(in_force()->rule[0].limiter[0].throttle.lease, 256);
}

/* Since when a new rate counts is said once all packets are judged by it, though nothing retires.
 */
static void test_rates_begin_when_in_force(void **unused)
{
	(void)unused;
	begin(SMALL RULE("{key: src, rate: 2/s, burst: 50}"));
	graces = 0;
	change_to(SMALL RULE("{key: src, rate: 2/s, burst: 50}, {key: src, rate: 1/s, burst: 9}"));
	assert_int_equal(graces, 2);
	assert_int_equal(plan.n_draining, 0);
	assert_false(compile_rates_begin(&in_force()->rule[0]));
}

/* It ends, and what it took is free, when the limits of a rule that asks none are over. */
static void test_what_rests_is_tidied(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(SMALL "rules:\n- {name: a, verdict: drop}\n");
	assert_non_null(resting_of(in_force(), compile_name_id("a")));
	change_tidy(&pacer);
	assert_non_null(resting_of(in_force(), compile_name_id("a")));
	kernel_now_ns =
	    resting_of(in_force(), compile_name_id("a"))->limiter[0].until_ns + RESOLUTION + 1;
	control->secret_ready = PACER_SECRET_OF_TOOLS;
	change_tidy(&pacer);
	assert_null(resting_of(in_force(), compile_name_id("a")));
}

/* A change that does not say since when its policy is in force. */
static void cut_off(const char *from, const char *to)
{
	begin(from);
	grace_hook = refuse_after_it;
	assert_int_equal(change_apply(&pacer, to, NULL, 0, &plan, &error), CHANGE_LASTS);
	grace_hook = NULL;
	assert_true(draining()->until_ns == COMPILE_UNTIL_SET);
}

/* A limit that drains for longer lasts no shorter for a trial that brings it back. */
static void test_a_trial_of_what_lasts(void **unused)
{
	uint64_t end_ns;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(SMALL RULE(TO_DST));
	end_ns = kernel_now_ns + 3600 * SECOND;
	in_force()->rule[0].limiter[1].until_ns = end_ns;
	assert_true(draining()->until_ns == end_ns);
	try_out(SMALL RULE(WINDOW));
	assert_true(rule_before()->limiter[1].until_ns == end_ns);
}

/* What holds until the next change holds no trial off for longer: it is timed first. */
static void test_a_trial_after_what_was_cut_off(void **unused)
{
	uint64_t built_ns;

	(void)unused;
	cut_off(SMALL RULE(RATE("src", 10)), SMALL RULE(RATE("src", 20)));
	kernel_now_ns += 3600 * SECOND;
	assert_int_equal(
	    change_apply(&pacer, SMALL RULE(RATE("src", 30)), NULL, TRIAL_NS, &plan, &error), -1);
	assert_non_null(strstr(error.text, "hold until the next change"));
	kernel_refuses = 0;
	built_ns = kernel_now_ns + (300 + 150 + 1) * SECOND; /* the old burst, the new one */
	assert_int_equal(
	    change_apply(&pacer, SMALL RULE(RATE("src", 30)), NULL, TRIAL_NS, &plan, &error), -1);
	assert_non_null(strstr(error.text, "builds its bursts"));
	kernel_now_ns = built_ns;
	try_out(SMALL RULE(RATE("src", 30)));
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_a_trial_without_room),
	    CASE(test_a_trial_before_a_packet),
	    CASE(test_a_trial_of_one_of_two_rates),
	    CASE(test_a_trial_of_a_verdict),
	    CASE(test_a_trial_of_what_lasts),
	    CASE(test_a_trial_after_what_was_cut_off),
	    CASE(test_a_trial_rests),
	    CASE(test_what_rests_is_tidied),
	    CASE(test_leases_are_timed),
	    CASE(test_leases_of_a_trial),
	    CASE(test_rates_begin_when_in_force),
	    CASE(test_a_trial_of_a_rate),
	    CASE(test_a_trial_of_two_rates),
	    CASE(test_a_trials_rate_begins_but_once),
	    CASE(test_a_burst_grows_after_a_trial),
	    CASE(test_a_trial_of_a_burst),
	    CASE(test_what_drains_on_trial_lasts_after_it),
	    CASE(test_what_drains_without_an_end_lasts),
	    CASE(test_what_a_trial_left_is_the_older),
	    CASE(test_a_trial_that_wants_two_begins),
	    CASE(test_a_trial_beside_what_has_expired),
	    CASE(test_a_trial_in_the_lines_of_what_has_expired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
