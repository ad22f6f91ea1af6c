/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why: what the random runs of tests/prog/test_fake.c seldom meet: uses that CPUs hold on lease.
 */
#include "oracle.h"

#include "inspect/why.h"

#define START	 1000000000ull
#define COOLDOWN 1000000000ull
#define POLICY	 "rules:\n- name: a\n  limits: [{key: all, uses: 100, cooldown: 1s, threshold: 40}]\n"

static struct pacer_policy bin;
static struct policy *policy;
static struct pacer_throttle_state throttle[PACER_THROTTLES];
static struct pacer_throttle_lease lease[2][PACER_THROTTLES];
static __u64 secret[2 * PACER_SECRETS];

static struct pacer_state state_of(uint32_t cpu)
{
	return (struct pacer_state){
	    .policy = &bin, .secret = secret, .throttle = throttle, .lease = lease[cpu]};
}

static struct pacer_walk walk_at(struct pacer_state *state, uint64_t now_ns)
{
	return (struct pacer_walk){
	    .state = state, .now_ns = now_ns, .pkt = {.family = PACER_FAMILY_4, .len_bytes = 60}};
}

static enum pacer_reason pace(uint32_t cpu, uint64_t now_ns)
{
	struct pacer_state state = state_of(cpu);
	struct pacer_walk walk = walk_at(&state, now_ns);

	walk.rule = PACER_RULES_MAX;
	return pacer_outcome_reason(pacer_judge(&walk));
}

/* And the state is what it was. */
static struct why ask(uint32_t cpu, uint64_t now_ns)
{
	static struct pacer_throttle_state before[PACER_THROTTLES];
	static struct pacer_throttle_lease leases_before[2][PACER_THROTTLES];
	struct pacer_state state = state_of(cpu);
	struct pacer_walk walk = walk_at(&state, now_ns);
	struct why why;

	memcpy(before, throttle, sizeof(before));
	memcpy(leases_before, lease, sizeof(lease));
	why_packet(&walk, policy, 0, &why);
	assert_memory_equal(before, throttle, sizeof(before));
	assert_memory_equal(leases_before, lease, sizeof(lease));
	return why;
}

static int setup(void **unused)
{
	struct compile_host host = {0, 1, 2};
	struct policy_error error = {0};
	static struct plan plan;

	(void)unused;
	memset(throttle, 0, sizeof(throttle));
	memset(lease, 0, sizeof(lease));
	policy = policy_parse(POLICY, strlen(POLICY), &error);
	assert_non_null(policy);
	assert_int_equal(compile_policy(policy, NULL, &host, &bin, &plan, &error), 0);
	assert_true(bin.rule[0].limiter[0].throttle.lease > 2);
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	policy_free(policy);
	return 0;
}

static void spend(uint64_t now_ns)
{
	while (pace(0, now_ns) == PACER_ADMIT)
		;
}

/* What one CPU has left is no other's. */
static void test_on_lease(void **unused)
{
	uint64_t when_ns;
	struct why why;

	(void)unused;
	assert_int_equal(pace(1, START), PACER_ADMIT);
	spend(START);
	why = ask(0, START);
	assert_int_equal(why.reason, PACER_DENY_THROTTLE);
	when_ns = why.when_ns; /* the uses on lease might be made until the lease ends */
	assert_true(when_ns >= START + COOLDOWN && when_ns < START + 2 * COOLDOWN);
	assert_int_equal(why.limit[0].held.used, why.limit[0].held.max);
	why = ask(1, START);
	assert_int_equal(why.reason, PACER_ADMIT);
	assert_int_equal(why.limit[0].when_ns, 0);
	assert_true(why.limit[0].held.leased > 0);
	assert_int_equal(why.limit[0].held.max - why.limit[0].held.used, why.limit[0].held.leased);
	assert_int_equal(pace(1, START), PACER_ADMIT);
	assert_int_equal(pace(0, when_ns - 1), PACER_DENY_THROTTLE);
	assert_int_equal(pace(0, when_ns), PACER_ADMIT);
}

/* Its lease is over, and what was left of it has cooled and is another's: only the try tells. */
static void test_after_a_lease(void **unused)
{
	uint64_t now_ns = START + 2 * COOLDOWN;
	struct why why;

	(void)unused;
	assert_int_equal(pace(1, START), PACER_ADMIT);
	spend(now_ns);
	why = ask(1, now_ns);
	assert_int_equal(why.reason, PACER_DENY_THROTTLE);
	assert_int_equal(why.limit[0].held.leased, 0);
	assert_true(why.when_ns > now_ns);
	assert_int_equal(pace(1, now_ns), PACER_DENY_THROTTLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_on_lease, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_after_a_lease, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
