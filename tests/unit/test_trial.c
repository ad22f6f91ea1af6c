/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a trial leaves in the policy that it gives way to: its limits count there as they did in its
 * own, and none of them counts other packets or by another key.
 */
#include "applied.h"
#include "path.h"

#include "live/host.h"
#include "live/trial.h"

#define LINES	 8192u
#define TRIAL_NS (30 * SECOND)

static struct pacer_line lines[LINES];
static __u64 secret[2 * PACER_SECRETS];
static struct pacer_control control = {.resolution_ns = RESOLUTION};
static const struct attached pacer = {.ifname = "eth0", .control = &control};

/* --- a trial of `now` before `before` --------------------------------------------------------- */

static void begin(const char *text)
{
	assert_int_equal(load(text), 0);
	assert_true(now.plan.lines <= LINES);
	memset(lines, 0, sizeof(lines));
	for (size_t i = 0; i < ARRAY(secret); i++)
		secret[i] = draw();
}

/* sets: see struct trial_of. */
static void try_out(const char *text, const int *sets)
{
	const struct trial_of of = {sets, 0, false};

	assert_int_equal(apply(text), 0);
	assert_int_equal(
	    trial_begin(&pacer, &before.bin, &now.bin, &of, host.now_ns + TRIAL_NS, &error), 0);
}

static const int no_sets[PACER_SETS_MAX] = {-1, -1, -1, -1, -1, -1, -1, -1,
					    -1, -1, -1, -1, -1, -1, -1, -1};

/* What the policy says of a UDP packet from 192.0.2.1, with this port and TTL. */
static enum pacer_reason judged(const struct pacer_policy *p, uint16_t sport, uint8_t ttl,
				uint64_t now_ns)
{
	uint8_t b[60] = {[12] = 8,   [14] = 0x45, [17] = 46,	     [22] = ttl,	 [23] = 17,
			 [26] = 192, [28] = 2,	  [29] = 1,	     [30] = 198,	 [33] = 1,
			 [37] = 53,  [39] = 26,	  [34] = sport >> 8, [35] = sport & 0xff};
	struct pacer_state state = {.table = {lines, LINES}, .policy = p, .secret = secret};
	struct pacer_walk walk = {.state = &state};
	struct pacer_frame frame = {b, b + sizeof(b), sizeof(b), now_ns};
	__u32 outcome;

	(void)pacer_path(&frame, &walk, &outcome);
	return pacer_outcome_reason(outcome);
}

#define HEAD	 "memory: 256Ki\nclock: exact\n"
#define RULE(of) "rules:\n- name: a\n  limits: [" of "]\n"
#define ALL	 "{key: src, packets: 900, window: 1s, entries: 64}"
#define NEW	 "{key: src, packets: 2, window: 10m, of: new, entries: 64}"
#define BY_TTL	 "{key: ttl, packets: 2, window: 10m, entries: 64}"

/* It counts new flows, and no other packets, by the trial's table of flows. */
static void test_new_flows_alone(void **unused)
{
	uint64_t after_ns;

	(void)unused;
	begin(HEAD RULE(ALL));
	assert_false(before.bin.flows.sets || before.bin.rule[0].opens);
	try_out(HEAD "flows: 64\n" RULE(ALL ", " NEW), no_sets);
	assert_int_equal(before.bin.rule[0].n_limiters, 2);
	assert_memory_equal(&before.bin.flows, &now.bin.flows, sizeof(now.bin.flows));
	assert_int_equal(judged(&now.bin, 1, 64, host.now_ns), PACER_ADMIT);
	after_ns = host.now_ns + TRIAL_NS;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(judged(&before.bin, 1, 64, after_ns + i), PACER_ADMIT);
	assert_int_equal(judged(&before.bin, 2, 64, after_ns), PACER_ADMIT);
	assert_int_equal(judged(&before.bin, 3, 64, after_ns), PACER_DENY_WINDOW);
	assert_int_equal(judged(&before.bin, 2, 64, after_ns), PACER_ADMIT);
}

/* The table of flows that the old policy has goes on. */
static void test_flows_that_are_known(void **unused)
{
	struct pacer_flows were;

	(void)unused;
	begin(HEAD "flows: 64\n" RULE(NEW) "- {name: b, limits: [" ALL "]}\n");
	were = now.bin.flows;
	try_out(HEAD "flows: 128\n" RULE(NEW) "- {name: b, limits: [" ALL ", " NEW "]}\n", no_sets);
	assert_memory_equal(&before.bin.flows, &were, sizeof(were));
	assert_true(before.bin.rule[0].opens && before.bin.rule[1].opens);
}

static void test_by_ttl(void **unused)
{
	uint64_t after_ns;

	(void)unused;
	begin(HEAD RULE(ALL));
	assert_false(now.bin.dims & PACER_DIMS_MORE);
	try_out(HEAD RULE(ALL ", " BY_TTL), no_sets);
	assert_int_equal(judged(&now.bin, 1, 64, host.now_ns), PACER_ADMIT);
	after_ns = host.now_ns + TRIAL_NS;
	assert_int_equal(judged(&before.bin, 1, 64, after_ns), PACER_ADMIT);
	assert_int_equal(judged(&before.bin, 1, 64, after_ns), PACER_DENY_WINDOW);
	assert_int_equal(judged(&before.bin, 1, 63, after_ns), PACER_ADMIT);
	assert_false(before.bin.rule[0].opens);
}

/* What needs nothing more leaves the old policy's way as it is. */
static void test_of_the_packets_words(void **unused)
{
	(void)unused;
	begin(HEAD RULE(ALL));
	try_out(HEAD RULE(ALL ", {key: dst, packets: 9, window: 1s, entries: 64}"), no_sets);
	assert_int_equal(before.bin.rule[0].n_limiters, 2);
	assert_false(before.bin.dims & PACER_DIMS_MORE || before.bin.flags & PACER_KEYS_MORE);
}

/* --- values of sets --------------------------------------------------------------------------- */

#define GEO		     "{name: geo, file: geo.csv, value: 2}"
#define ASN		     "{name: asn, file: asn.csv, value: 2}"
#define SETS(of)	     HEAD "sets: [" of "]\n"
#define BY(key, slots)	     "{key: '" key "', packets: 9, window: 1h, entries: 64, slots: " #slots "}"
#define BY_VALUE(set, slots) BY("value(" set ", src)", slots)

static const struct pacer_rule *rule_before(void)
{
	return &before.bin.rule[0];
}

/* Under the number that the set has in the old policy, beside the value that the rule has. */
static void test_by_value(void **unused)
{
	static const int sets[PACER_SETS_MAX] = {1, 0};

	(void)unused;
	begin(SETS(GEO ", " ASN) RULE(ALL));
	assert_false(now.bin.dims & PACER_DIMS_MORE || now.bin.flags & PACER_KEYS_MORE);
	try_out(SETS(ASN ", " GEO)
		    RULE(ALL ", " BY_VALUE("asn", 4) ", " BY("value(geo, dst)+src", 4)),
		sets);
	assert_int_equal(rule_before()->n_limiters, 3);
	assert_int_equal(rule_before()->value[0], 2);
	assert_int_equal(rule_before()->value[1], 1 | PACER_VALUE_DST);
	assert_int_equal(rule_before()->limiter[1].value[0], 1);
	assert_int_equal(rule_before()->limiter[2].value[1], 2);
	assert_true(before.bin.dims & PACER_DIMS_MORE && before.bin.flags & PACER_KEYS_MORE);
}

/* The value that is the rule's second in the trial is the only one that the old policy has. */
static void test_by_the_second_value(void **unused)
{
	static const int sets[PACER_SETS_MAX] = {0, -1};

	(void)unused;
	begin(SETS(GEO) RULE(BY_VALUE("geo", 4)));
	try_out(SETS(GEO ", " ASN) RULE(BY_VALUE("asn", 4) ", " BY_VALUE("geo", 8)), sets);
	assert_int_equal(now.bin.rule[0].limiter[1].value[0], 2);
	assert_int_equal(rule_before()->n_limiters, 2);
	assert_int_equal(rule_before()->value[0], 1);
	assert_int_equal(rule_before()->value[1], 0);
	assert_int_equal(rule_before()->limiter[1].value_set[0], compile_name_id("geo"));
	assert_int_equal(rule_before()->limiter[1].value[0], 1);
}

/* A set of the trial alone is needed by nothing that comes back: so its values do not stay. */
static void test_by_a_set_of_the_trial(void **unused)
{
	(void)unused;
	begin(HEAD RULE(ALL));
	try_out(SETS(ASN) RULE(ALL ", " BY_VALUE("asn", 4)), no_sets);
	assert_int_equal(rule_before()->n_limiters, 1);
	assert_int_equal(rule_before()->value[0], 0);
	assert_false(before.bin.dims & PACER_DIMS_MORE);
}

/* Two values that the old rule counts by leave no place for a third. */
static void test_by_two_others(void **unused)
{
	static const int sets[PACER_SETS_MAX] = {0, 1};

	(void)unused;
	begin(SETS(GEO ", " ASN) RULE(ALL));
	now.bin.rule[0].value[0] = 1;
	now.bin.rule[0].value[1] = 1 | PACER_VALUE_DST;
	try_out(SETS(GEO ", " ASN) RULE(ALL ", " BY_VALUE("asn", 4)), sets);
	assert_int_equal(rule_before()->n_limiters, 1);
	assert_int_equal(rule_before()->value[0], 1);
	assert_int_equal(rule_before()->value[1], 1 | PACER_VALUE_DST);
}

/* --- rules that come to deny, and back ---------------------------------------------------------
 */

#define DENIED "rules:\n- {name: a, verdict: drop}\n"
#define MORE   "{key: dst, packets: 9, window: 1s, entries: 64}"

static int tried(void)
{
	const struct trial_of of = {no_sets, 0, false};

	return trial_begin(&pacer, &before.bin, &now.bin, &of, host.now_ns + TRIAL_NS, &error);
}

/* The rule of the old policy that nothing asks, of this number of limits. */
static struct pacer_rule *resting_before_trial(size_t n)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = &before.bin.rule[r];

		if (!rule->counter && rule->n_limiters == n)
			return rule;
	}
	fail_msg("none rests of %zu limits", n);
	return NULL;
}

/* What rested goes on to, for as long as its new use by the trial asks; what drains is not new. */
static void test_resting_again(void **unused)
{
	(void)unused;
	for (int longer = 0; longer < 2; longer++) {
		const struct pacer_rule *rests;
		uint64_t were[2];

		host.now_ns = host_now_ns();
		begin(HEAD RULE(ALL ", " MORE));
		assert_int_equal(apply(HEAD DENIED), 0);
		time_draining();
		assert_int_equal(apply(HEAD RULE(ALL)), 0);
		rests = resting_before_trial(2);
		for (size_t k = 0; k < 2; k++) {
			struct pacer_limiter *t = &resting_before_trial(2)->limiter[k];

			if (longer)
				t->until_ns = host.now_ns + 100000 * SECOND;
			were[k] = t->until_ns;
		}
		assert_int_equal(now.bin.rule[0].n_limiters, 2);
		assert_int_equal(tried(), 0);
		assert_int_equal(rests->n_limiters, 2);
		if (longer)
			assert_true(rests->limiter[0].until_ns == were[0]);
		else
			assert_true(rests->limiter[0].until_ns > were[0] + TRIAL_NS - SECOND);
		assert_true(rests->limiter[1].until_ns == were[1]);
		teardown(NULL);
	}
}

#define NO_ROOM	 "eth0: a rule would hold more than 8 limits after the new ones gave way"
#define NO_PLACE "and beside 256 rules there is no place for it"
#define TWO(of)	 "rules:\n- {name: a, " of "}\n- {name: b, " of "}\n"

/* The rule rests in a place of its own: there may be none, and it may be full. */
static void test_no_place_to_rest(void **unused)
{
	struct pacer_rule *rests;

	(void)unused;
	begin(HEAD DENIED);
	assert_int_equal(apply(HEAD RULE(ALL)), 0);
	for (size_t r = 1; r < PACER_RULES_MAX; r++)
		before.bin.rule[r].counter = 1000 + (uint32_t)r;
	assert_int_equal(tried(), -1);
	assert_non_null(strstr(error.text, NO_PLACE));
	teardown(NULL);
	begin(HEAD TWO("verdict: drop")); /* one place for two: nothing is written */
	assert_int_equal(apply(HEAD TWO("limits: [" ALL "]")), 0);
	for (size_t r = 3; r < PACER_RULES_MAX; r++)
		before.bin.rule[r].counter = 1000 + (uint32_t)r;
	assert_int_equal(tried(), -1);
	assert_non_null(strstr(error.text, NO_PLACE));
	assert_int_equal(before.bin.rule[2].n_limiters, 0);
	before.bin.rule[3].counter = 0;
	assert_int_equal(tried(), 0);
	assert_int_equal(before.bin.rule[2].n_limiters, 1);
	assert_int_equal(before.bin.rule[3].n_limiters, 1);
	teardown(NULL);
	begin(HEAD "rules:\n- {name: b, verdict: drop}\n"); /* who denies finds a place first */
	assert_int_equal(apply(HEAD TWO("limits: [" ALL "]")), 0);
	for (size_t r = 2; r < PACER_RULES_MAX; r++)
		before.bin.rule[r].counter = 1000 + (uint32_t)r;
	assert_int_equal(tried(), 0);
	assert_int_equal(before.bin.rule[1].id, now.bin.rule[1].id);
	teardown(NULL);
	begin(HEAD "rules:\n- {name: b, verdict: drop}\n"); /* a rule of the trial alone */
	assert_int_equal(apply(HEAD RULE(ALL)), 0);
	for (size_t r = 1; r < PACER_RULES_MAX; r++)
		before.bin.rule[r].counter = 1000 + (uint32_t)r;
	assert_int_equal(tried(), 0);
	teardown(NULL);
	begin(HEAD RULE(MORE));
	assert_int_equal(apply(HEAD DENIED), 0);
	assert_int_equal(apply(HEAD RULE(ALL)), 0);
	rests = resting_before_trial(1);
	for (; rests->n_limiters < PACER_LIMITERS_MAX; rests->n_limiters++)
		rests->limiter[rests->n_limiters] = rests->limiter[0];
	assert_int_equal(tried(), -1);
	assert_ptr_equal(strstr(error.text, NO_ROOM), error.text);
}

/* It rests where there is room for it and no more: that trial is not refused. */
static void test_just_room_to_rest(void **unused)
{
	struct pacer_rule *rests;

	(void)unused;
	begin(HEAD RULE(MORE));
	assert_int_equal(apply(HEAD DENIED), 0);
	assert_int_equal(apply(HEAD RULE(ALL)), 0);
	rests = resting_before_trial(1);
	for (; rests->n_limiters + 1u < PACER_LIMITERS_MAX; rests->n_limiters++)
		rests->limiter[rests->n_limiters] = rests->limiter[0];
	assert_int_equal(tried(), 0);
	assert_int_equal(rests->n_limiters, PACER_LIMITERS_MAX);
}

/*
 * A rate that waits for one which rests, when that has not been timed yet, as after a change that
 * was cut off: behind the trial it says when it begins. Else it never would once the trial lapses.
 */
static void test_a_rate_that_waits_for_what_rests(void **unused)
{
	static const char slow[] = HEAD RULE("{key: src, rate: 10/s, burst: 50}"),
			  fast[] = HEAD RULE("{key: src, rate: 20/s, burst: 50}");

	(void)unused;
	for (int timed = 0; timed < 2; timed++) {
		const struct pacer_rule *rests;

		host.now_ns = host_now_ns();
		begin(slow);
		assert_int_equal(apply(HEAD DENIED), 0);
		if (timed)
			time_draining();
		assert_int_equal(apply(fast), 0);
		assert_int_not_equal(now.bin.rule[0].limiter[0].rate.begin_ns, 0);
		assert_int_equal(tried(), 0);
		rests = resting_before_trial(2);
		for (size_t k = 0; k < 2; k++)
			assert_true(rests->limiter[k].rate.begin_ns != COMPILE_UNTIL_SET);
		teardown(NULL);
	}
}

/* One of a rule that the old policy has not, and for which there is no room, is left out. */
static void test_no_room_for_what_is_of_the_trial(void **unused)
{
	struct pacer_rule *rests;

	(void)unused;
	begin(HEAD RULE(MORE));
	assert_int_equal(apply(HEAD "rules:\n- {name: b, verdict: drop}\n"), 0);
	assert_int_equal(apply(HEAD RULE(ALL)), 0);
	rests = resting_before_trial(1);
	for (; rests->n_limiters < PACER_LIMITERS_MAX; rests->n_limiters++)
		rests->limiter[rests->n_limiters] = rests->limiter[0];
	assert_int_equal(tried(), 0);
	assert_int_equal(rests->n_limiters, PACER_LIMITERS_MAX);
}

/* What a change that was cut off has not timed rests on, without an end yet. */
static void test_what_rests_without_an_end(void **unused)
{
	(void)unused;
	begin(HEAD RULE(ALL));
	assert_int_equal(apply(HEAD DENIED), 0);
	assert_int_equal(apply(HEAD RULE(ALL)), 0);
	assert_int_equal(tried(), 0);
	trial_timed(&pacer, &before.bin, &now.bin, host.now_ns + TRIAL_NS);
	assert_true(resting_before_trial(1)->limiter[0].until_ns == COMPILE_UNTIL_SET);
}

/* The old rule holds as many limits as it can. */
static void test_no_room_in_the_rule(void **unused)
{
	struct pacer_rule *rule = &before.bin.rule[0];

	(void)unused;
	begin(HEAD RULE(ALL));
	assert_int_equal(apply(HEAD RULE(ALL ", " MORE)), 0);
	for (; rule->n_limiters < PACER_LIMITERS_MAX; rule->n_limiters++)
		rule->limiter[rule->n_limiters] = rule->limiter[0];
	assert_int_equal(tried(), -1);
	assert_ptr_equal(strstr(error.text, NO_ROOM), error.text);
	assert_int_equal(rule->n_limiters, PACER_LIMITERS_MAX);
}

/* --- which limit of the old policy is the trial's -----------------------------------------------
 */

/* One that has expired is not, though the trial's lies in its lines: they were another's. */
static void test_in_the_lines_of_what_has_expired(void **unused)
{
	struct pacer_rule *rule = &before.bin.rule[0];

	(void)unused;
	begin(HEAD RULE(ALL));
	assert_int_equal(apply(HEAD RULE(ALL)), 0);
	assert_int_equal(apply(HEAD RULE(ALL ", " MORE)), 0);
	rule->limiter[1] = rule->limiter[0];
	rule->limiter[1].base = now.bin.rule[0].limiter[1].base;
	rule->limiter[1].until_ns = 1;
	rule->n_limiters = 2;
	assert_int_equal(tried(), 0);
	assert_int_equal(rule->n_limiters, 3);
	assert_int_equal(rule->limiter[2].mask4[1], ~0u);
	assert_true(rule->limiter[2].until_ns > host.now_ns + TRIAL_NS);
}

static int rotated(const char *text)
{
	say_again();
	say("%s", text);
	return rotate();
}

/* Of the two that a rotation leaves in the same lines, it is the one of its secret. */
static void test_of_two_secrets(void **unused)
{
	struct pacer_limiter *left = &now.bin.rule[0].limiter[1];

	(void)unused;
	host.now_ns = host_now_ns();
	begin(HEAD RULE(ALL));
	assert_int_equal(rotated(HEAD RULE(ALL)), 0);
	time_draining();
	assert_int_equal(now.bin.rule[0].n_limiters, 2);
	assert_int_equal(left->base, now.bin.rule[0].limiter[0].base);
	assert_int_not_equal(left->secret, now.bin.rule[0].limiter[0].secret);
	left->until_ns = host.now_ns + 1000 * SECOND;
	assert_int_equal(apply(HEAD RULE(ALL)), 0);
	left->until_ns += SECOND;
	assert_int_equal(tried(), 0);
	assert_int_equal(before.bin.rule[0].n_limiters, 2);
	assert_int_equal(before.bin.rule[0].limiter[0].until_ns, 0);
	assert_true(before.bin.rule[0].limiter[1].until_ns == left->until_ns);
}

#define IN_ALL "{key: all, packets: 9, window: 600s}"

/* One without a hash is the same under each: that which drains is not put there once more. */
static void test_of_any_secret(void **unused)
{
	(void)unused;
	host.now_ns = host_now_ns();
	begin(HEAD RULE(ALL ", " IN_ALL));
	assert_int_equal(apply(HEAD RULE(ALL)), 0);
	time_draining();
	assert_int_equal(rotated(HEAD RULE(ALL)), 0);
	time_draining();
	assert_int_equal(now.bin.rule[0].n_limiters, 3);
	assert_int_equal(apply(HEAD RULE(ALL ", " IN_ALL)), 0);
	assert_int_equal(now.bin.rule[0].limiter[1].until_ns, 0);
	assert_int_equal(tried(), 0);
	assert_int_equal(before.bin.rule[0].n_limiters, 3);
}

/* --- leases -------------------------------------------------------------------------------------
 */

#define USES "{key: all, uses: 1M, cooldown: 1s}"

/* A CPU leases no more on trial than the old limit has for it, and that knows of what is more. */
static void test_leases(void **unused)
{
	static const struct {
		uint32_t limit, lease, old_lease; /* of the old policy's, the trial's */
		bool cut, told;
	} row[] = {
	    {1000000, 8, 8, false, false},
	    {1000000, 16, 8, false, true},
	    {0, 16, 8, true, false},
	    {0, 16, 0, true, true},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(row); i++) {
		struct pacer_limiter *was = &before.bin.rule[0].limiter[0];
		struct pacer_limiter *t = &now.bin.rule[0].limiter[0];

		begin(HEAD RULE(USES));
		assert_int_equal(apply(HEAD RULE(USES)), 0);
		was->throttle.limit = row[i].limit;
		was->throttle.lease = row[i].old_lease;
		t->throttle.lease = row[i].lease;
		assert_int_equal(tried(), 0);
		assert_int_equal(t->throttle.lease, row[i].cut ? 1 : row[i].lease);
		assert_int_equal(throttle_leased(was, host.now_ns),
				 row[i].told ? t->throttle.lease : row[i].old_lease);
		teardown(NULL);
	}
}

/* What CPUs still have of a lease that was larger, before the trial, is not forgotten by it. */
static void test_leases_from_before(void **unused)
{
	struct pacer_limiter *was = &before.bin.rule[0].limiter[0];

	(void)unused;
	begin(HEAD RULE(USES));
	assert_int_equal(apply(HEAD RULE(USES)), 0);
	now.bin.rule[0].limiter[0].throttle.lease = 16;
	was->throttle.lease = 8;
	throttle_lease_lasts(was, 32);
	assert_int_equal(tried(), 0);
	assert_int_equal(throttle_leased(was, host.now_ns), 32);
}

/* --- rates --------------------------------------------------------------------------------------
 */

#define COARSE "memory: 256Ki\nclock: coarse\n" /* what drains may go on */
#define SLOW   "{key: src, rate: 1/s, burst: 600, entries: 64}"
#define QUICK  "{key: src, rate: 1000/s, burst: 50, entries: 64}"

/* The packets of a source that are admitted, of one each ms. */
static uint32_t admitted(const struct pacer_policy *p, uint64_t *now_ns, uint64_t until_ns)
{
	uint32_t n = 0;

	for (; *now_ns < until_ns; *now_ns += MS)
		n += judged(p, 1, 64, *now_ns) == PACER_ADMIT;
	return n;
}

/* A rate that the trial has, too, has counted what the other one let through: it keeps its burst.
 */
static void test_a_rate_beside_the_trials(void **unused)
{
	uint64_t now_ns;

	(void)unused;
	begin(HEAD RULE(SLOW));
	try_out(HEAD RULE(SLOW ", " QUICK), no_sets);
	assert_int_equal(rule_before()->n_limiters, 2);
	assert_int_equal(rule_before()->limiter[0].rate.begin_ns, 0);
	now_ns = host.now_ns + TRIAL_NS + 2 * SECOND;
	assert_int_equal(admitted(&before.bin, &now_ns, now_ns + 100 * MS), 100);
}

/* But not where that one was there before: what it let through by then this one has not counted. */
static void test_a_rate_that_came_later(void **unused)
{
	(void)unused;
	host.now_ns = host_now_ns();
	begin(COARSE RULE(QUICK));
	assert_int_equal(apply(COARSE RULE(SLOW)), 0);
	time_draining();
	now.bin.rule[0].limiter[0].rate.begin_ns = 0; /* it would have waited */
	now.bin.rule[0].limiter[1].until_ns += 600 * SECOND;
	try_out(COARSE RULE(QUICK ", " SLOW), no_sets);
	assert_true(rule_before()->limiter[0].rate.begin_ns > host.now_ns + TRIAL_NS);
}

/* A rate comes back after one of other packets of its rule, which it has not counted. */
static void test_a_rate_after_one_of_another_key(void **unused)
{
	static const char *const tried[] = {"{key: dst, rate: 1/s, burst: 600, entries: 64}",
					    "{key: src, rate: 1/s, burst: 600, of: new}"};

	(void)unused;
	for (size_t i = 0; i < ARRAY(tried); i++) {
		char text[256];

		begin(HEAD "flows: 64\n" RULE(SLOW));
		snprintf(text, sizeof(text), HEAD "flows: 64\n" RULE("%s"), tried[i]);
		try_out(text, no_sets);
		assert_true(rule_before()->limiter[0].rate.begin_ns > host.now_ns + TRIAL_NS);
		teardown(NULL);
	}
}

#define BURST "{key: src, rate: 100/s, burst: 1000, entries: 64}"
#define FEW   "{key: src, rate: 300/s, burst: 10, entries: 64}"

/* What came back when a trial ended is younger than what the trial had, too: at the next change. */
static void test_a_rate_that_is_back(void **unused)
{
	uint64_t now_ns, from_ns, end_ns;
	uint32_t n;

	(void)unused;
	begin(HEAD RULE(BURST ", " FEW));
	try_out(HEAD RULE(FEW), no_sets);
	time_draining();
	now_ns = host.now_ns;
	end_ns = now_ns + TRIAL_NS;
	from_ns = end_ns - 2 * SECOND;
	(void)admitted(&now.bin, &now_ns, from_ns);
	n = admitted(&now.bin, &now_ns, end_ns);
	n += admitted(&before.bin, &now_ns, end_ns + SECOND / 2);
	host.now_ns = now_ns;
	next = before;
	before = now;
	now = next;
	next.policy = NULL;
	assert_int_equal(apply(HEAD RULE(BURST)), 0);
	assert_true(now.bin.rule[0].limiter[0].rate.begin_ns == COMPILE_UNTIL_SET);
	time_draining();
	n += admitted(&now.bin, &now_ns, from_ns + 4 * SECOND);
	assert_true(n <= 1000 + 4 * 100);
}

/* One that comes back after a trial with a larger burst: a key may owe the difference. */
static void test_a_burst_that_was_larger_on_trial(void **unused)
{
	(void)unused;
	for (size_t larger = 0; larger < 2; larger++) {
		begin(HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 64}"));
		try_out(larger ? HEAD RULE("{key: src, rate: 10/s, burst: 51, entries: 128}")
			       : HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 128}"),
			no_sets);
		assert_true(rule_before()->limiter[0].rate.begin_ns > host.now_ns + TRIAL_NS);
		assert_int_equal(kind_rate.owes(&rule_before()->limiter[0]), larger);
		teardown(NULL);
	}
}

/* One that begins on trial, and grows as that ends: by then as large a burst has to be there. */
static void test_a_burst_that_begins_on_trial_grows(void **unused)
{
	static const struct trial_of of = {no_sets, 0, false};

	(void)unused;
	for (uint64_t early = 0; early < 2; early++) {
		begin(HEAD RULE("{key: src, rate: 1/s, burst: 20, entries: 64}"));
		assert_int_equal(apply(HEAD RULE("{key: src, rate: 1/s, burst: 9, entries: 64}")),
				 0);
		now.bin.rule[0].limiter[0].rate.begin_ns =
		    host.now_ns + TRIAL_NS - 20 * SECOND - 1 + early;
		assert_int_equal(
		    trial_begin(&pacer, &before.bin, &now.bin, &of, host.now_ns + TRIAL_NS, &error),
		    early ? -1 : 0);
		if (early)
			assert_non_null(strstr(error.text, "builds its bursts"));
		teardown(NULL);
	}
}

/* A source that is never silent owes what it had of a larger burst, and gets it once. */
static void test_a_burst_that_grows_back(void **unused)
{
	static const char *const changes[] = {
	    HEAD RULE("{key: src, rate: 10/s, burst: 20, entries: 128}"), /* begins anew */
	    HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 128}"),
	    HEAD RULE("{key: src, rate: 10/s, burst: 20, entries: 128}"), /* while it builds */
	    HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 128}"),
	};
	uint64_t now_ns, from_ns;
	uint32_t n;

	(void)unused;
	begin(HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 64}"));
	now_ns = from_ns = host.now_ns;
	n = admitted(&now.bin, &now_ns, now_ns + 2 * SECOND);
	for (size_t i = 0; i < ARRAY(changes); i++) {
		host.now_ns = now_ns;
		assert_int_equal(apply(changes[i]), 0);
		time_draining();
		n += admitted(&now.bin, &now_ns, now_ns + (i == 1 ? 6 : 20) * SECOND);
	}
	assert_true(n <= 50 + 10 * (now_ns - from_ns) / SECOND);
	assert_true(n >= 10 * (now_ns - from_ns) / SECOND);
}

/* Lowered in its entries, and moved to others before its keys have paid: they owe it there. */
static void test_a_burst_that_was_lowered_before(void **unused)
{
	static const char *const changes[] = {
	    HEAD RULE("{key: src, rate: 10/s, burst: 10, entries: 64}"),
	    HEAD RULE("{key: src, rate: 10/s, burst: 10, entries: 128}"),
	    HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 128}"),
	};
	uint64_t now_ns, from_ns;
	uint32_t n;

	(void)unused;
	begin(HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 64}"));
	now_ns = from_ns = host.now_ns;
	n = admitted(&now.bin, &now_ns, now_ns + 2 * SECOND);
	for (size_t i = 0; i < ARRAY(changes); i++) {
		host.now_ns = now_ns;
		assert_int_equal(apply(changes[i]), 0);
		time_draining();
		n += admitted(&now.bin, &now_ns, now_ns + (i ? 20 * SECOND : 10 * MS));
	}
	assert_true(n <= 50 + 10 * (now_ns - from_ns) / SECOND);
}

/* Lowered in its entries, and no more there, or no more alone: it lasts as what its keys had. */
static void test_a_burst_that_was_lowered_lasts(void **unused)
{
	static const struct {
		const char *changes[3];
		uint32_t rate;
	} rows[] = {
	    {{HEAD RULE("{key: src, rate: 10/s, burst: 5, entries: 64}"),
	      HEAD RULE("{key: src, rate: 25/s, burst: 5, entries: 64}")},
	     25},
	    {{HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 64}, "
			"{key: src, rate: 25/s, burst: 5, entries: 64}"),
	      HEAD RULE("{key: src, rate: 10/s, burst: 5, entries: 64}, "
			"{key: src, rate: 25/s, burst: 5, entries: 64}"),
	      HEAD RULE("{key: src, rate: 25/s, burst: 5, entries: 64}")},
	     25},
	    {{HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 64}, "
			"{key: src, rate: 12/s, burst: 5, entries: 64}"),
	      HEAD RULE("{key: src, rate: 10/s, burst: 5, entries: 64}, "
			"{key: src, rate: 12/s, burst: 5, entries: 64}"),
	      HEAD RULE("{key: src, rate: 12/s, burst: 5, entries: 64}")},
	     12},
	};
	static const uint32_t at_s[] = {3, 6, 20};

	(void)unused;
	for (size_t k = 0; k < ARRAY(rows); k++) {
		uint64_t now_ns, from_ns;
		uint32_t n;

		begin(HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 64}"));
		now_ns = from_ns = host.now_ns;
		n = admitted(&now.bin, &now_ns, now_ns + 200 * MS);
		for (size_t i = 0; i < 3 && rows[k].changes[i]; i++) {
			host.now_ns = now_ns;
			assert_int_equal(apply(rows[k].changes[i]), 0);
			time_draining();
		}
		for (size_t i = 0; i < ARRAY(at_s); i++) {
			uint32_t first = 50 + 10 * at_s[i], last = 5 + rows[k].rate * at_s[i];

			n += admitted(&now.bin, &now_ns, from_ns + at_s[i] * SECOND);
			assert_true(n <= (at_s[i] > 3 && last > first ? last : first));
		}
		assert_true(n >= 50 + rows[k].rate * 14); /* it comes back */
		teardown(NULL);
	}
}

/* ... also where a trial that gave way had the larger one. */
static void test_a_burst_that_was_large_on_trial_lasts(void **unused)
{
	uint64_t now_ns, from_ns;
	uint32_t n;

	(void)unused;
	begin(HEAD RULE("{key: src, rate: 10/s, burst: 5, entries: 64}"));
	try_out(HEAD RULE("{key: src, rate: 10/s, burst: 500, entries: 64}"), no_sets);
	now_ns = from_ns = host.now_ns + TRIAL_NS - SECOND;
	n = admitted(&now.bin, &now_ns, now_ns + SECOND);
	now.bin = before.bin;
	host.now_ns = now_ns;
	assert_int_equal(apply(HEAD RULE("{key: src, rate: 25/s, burst: 5, entries: 64}")), 0);
	time_draining();
	n += admitted(&now.bin, &now_ns, from_ns + 6 * SECOND);
	assert_true(n > 500 && n <= 500 + 10 * 6);
	n += admitted(&now.bin, &now_ns, from_ns + 21 * SECOND);
	assert_true(n <= 500 + 10 * 21);
	teardown(NULL);
}

/* ... also one that a trial has lowered, and of a burst that is as long as there may be. */
static void test_a_burst_that_a_trial_lowers_lasts(void **unused)
{
	struct pacer_limiter t, less;

	(void)unused;
	begin(HEAD RULE("{key: src, rate: 10/s, burst: 50, entries: 64}"));
	t = less = now.bin.rule[0].limiter[0];
	kind_rate.tune(&less, 10);
	kind_rate.take_value(&t, &less);
	assert_int_equal(t.rate.burst_ns, SECOND);
	assert_true(kind_rate.memory_ns(&t) == 5 * SECOND + 1 + t.idle_ns);
	kind_rate.begins(&t);
	assert_true(kind_rate.memory_ns(&t) == SECOND + 1 + t.idle_ns);
	t.rate.burst_ns = PACER_RATE_BURST_NS_MAX;
	kind_rate.take_value(&t, &less);
	assert_true(kind_rate.memory_ns(&t) >= PACER_RATE_BURST_NS_MAX);
}

/* --- when they are over, and begin -------------------------------------------------------------
 */

#define TEN    "{key: src, rate: 10/s, burst: 50, entries: 64}"
#define TWENTY "{key: src, rate: 20/s, burst: 60, entries: 64}"
#define LONG   "{key: src, rate: 10/s, burst: 200, entries: 64}"

static const struct pacer_limiter *same_before(struct pacer_rule *rule,
					       const struct pacer_limiter *t)
{
	for (size_t k = 0; k < rule->n_limiters; k++)
		if (rule->limiter[k].base == t->base)
			return &rule->limiter[k];
	fail_msg("the limit is not there");
	return NULL;
}

/* One that drains, or rests, and comes back on trial to wait for another, waits for it there, too.
 */
static void test_a_rate_that_comes_back_to_wait(void **unused)
{
	static const char *const between[] = {COARSE RULE(TEN), COARSE DENIED};

	(void)unused;
	for (size_t i = 0; i < ARRAY(between); i++) {
		const struct pacer_limiter *t = &now.bin.rule[0].limiter[0], *was;

		host.now_ns = host_now_ns();
		begin(COARSE RULE(TEN ", " TWENTY));
		assert_int_equal(apply(between[i]), 0);
		assert_int_equal(apply(COARSE RULE(TWENTY)), 0);
		assert_true(t->rate.begin_ns == COMPILE_UNTIL_SET);
		was = same_before(i ? resting_before_trial(2) : &before.bin.rule[0], t);
		assert_int_equal(was->rate.begin_ns, 0);
		assert_int_equal(tried(), 0);
		assert_true(was->rate.begin_ns == host.now_ns + TRIAL_NS + 1);
		time_draining();
		assert_true(t->rate.begin_ns < host.now_ns + TRIAL_NS);
		trial_timed(&pacer, &before.bin, &now.bin, host.now_ns + TRIAL_NS);
		assert_true(was->rate.begin_ns == host.now_ns + TRIAL_NS + 1);
		teardown(NULL);
	}
}

/* What rests behind the trial begins when it does in the trial, if that is before the end. */
static void test_a_rate_that_rests_begins_as_on_trial(void **unused)
{
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[0], *was;

	(void)unused;
	host.now_ns = host_now_ns();
	begin(HEAD RULE(TEN));
	assert_int_equal(apply(HEAD DENIED), 0);
	assert_int_equal(apply(HEAD RULE(TWENTY)), 0);
	assert_int_equal(tried(), 0);
	was = same_before(resting_before_trial(2), t);
	assert_true(was->rate.begin_ns == host.now_ns + TRIAL_NS);
	time_draining();
	assert_true(t->rate.begin_ns < host.now_ns + TRIAL_NS);
	trial_timed(&pacer, &before.bin, &now.bin, host.now_ns + TRIAL_NS);
	assert_true(was->rate.begin_ns == t->rate.begin_ns);
}

/* What others wait for on trial is put off until they begin: behind the trial, too. */
static void test_what_is_put_off_on_trial(void **unused)
{
	const struct pacer_limiter *was, *t = NULL;

	(void)unused;
	host.now_ns = host_now_ns();
	begin(HEAD RULE(TEN ", " LONG));
	assert_int_equal(apply(HEAD RULE(LONG)), 0);
	time_draining();
	now.bin.rule[0].limiter[1].until_ns = host.now_ns + 12 * SECOND;
	assert_int_equal(apply(HEAD RULE(TWENTY)), 0);
	for (size_t k = 0; k < now.bin.rule[0].n_limiters; k++)
		if (now.bin.rule[0].limiter[k].until_ns == host.now_ns + 12 * SECOND)
			t = &now.bin.rule[0].limiter[k];
	assert_non_null(t);
	assert_int_equal(tried(), 0);
	was = same_before(&before.bin.rule[0], t);
	assert_true(was->until_ns == t->until_ns);
	time_draining();
	assert_true(t->until_ns > host.now_ns + 12 * SECOND);
	trial_timed(&pacer, &before.bin, &now.bin, host.now_ns + TRIAL_NS);
	assert_true(was->until_ns == t->until_ns);
}

/* Nobody waits for windows: each of the trial's is over behind it as soon as it remembers nothing.
 */
static void test_windows_end_each_alone(void **unused)
{
	const struct pacer_limiter *of = now.bin.rule[0].limiter;
	struct pacer_rule *rule;

	(void)unused;
	for (int resting = 0; resting < 2; resting++) {
		host.now_ns = host_now_ns();
		begin(resting ? HEAD DENIED : HEAD RULE(ALL));
		try_out(HEAD RULE(ALL ", {key: dst, packets: 9, window: 1s, entries: 64}, "
				      "{key: flow, packets: 9, window: 10m, entries: 64}"),
			no_sets);
		assert_int_equal(now.bin.rule[0].n_limiters, 3);
		rule = resting ? resting_before_trial(3) : &before.bin.rule[0];
		for (size_t k = 1; k < 3; k++)
			assert_true(same_before(rule, &of[k])->until_ns ==
				    host.now_ns + TRIAL_NS + compile_limiter_memory_ns(&of[k]));
		teardown(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_new_flows_alone),
	    TEST(test_flows_that_are_known),
	    TEST(test_by_ttl),
	    TEST(test_of_the_packets_words),
	    TEST(test_by_value),
	    TEST(test_by_the_second_value),
	    TEST(test_by_a_set_of_the_trial),
	    TEST(test_by_two_others),
	    TEST(test_resting_again),
	    TEST(test_no_place_to_rest),
	    TEST(test_just_room_to_rest),
	    TEST(test_a_rate_that_waits_for_what_rests),
	    TEST(test_no_room_for_what_is_of_the_trial),
	    TEST(test_what_rests_without_an_end),
	    TEST(test_no_room_in_the_rule),
	    TEST(test_in_the_lines_of_what_has_expired),
	    TEST(test_of_two_secrets),
	    TEST(test_of_any_secret),
	    TEST(test_leases),
	    TEST(test_leases_from_before),
	    TEST(test_a_rate_beside_the_trials),
	    TEST(test_a_rate_that_came_later),
	    TEST(test_a_rate_after_one_of_another_key),
	    TEST(test_a_rate_that_is_back),
	    TEST(test_a_burst_that_grows_back),
	    TEST(test_a_burst_that_was_lowered_before),
	    TEST(test_a_burst_that_was_lowered_lasts),
	    TEST(test_a_burst_that_was_large_on_trial_lasts),
	    TEST(test_a_burst_that_a_trial_lowers_lasts),
	    TEST(test_a_burst_that_begins_on_trial_grows),
	    TEST(test_a_burst_that_was_larger_on_trial),
	    TEST(test_a_rate_that_comes_back_to_wait),
	    TEST(test_a_rate_that_rests_begins_as_on_trial),
	    TEST(test_what_is_put_off_on_trial),
	    TEST(test_windows_end_each_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
