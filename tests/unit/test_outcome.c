/* SPDX-License-Identifier: GPL-2.0-only */
/* An outcome's parts come out as they went in, and what is no reason reads as a denial. */
#include "oracle.h"

#include "outcome.h"

#define RULES 256 /* that there is room for */

static void test_parts(void **unused)
{
	uint32_t reason, limiter, rule, event;

	(void)unused;
	for (reason = 0; reason < PACER_REASON_COUNT; reason++)
		for (limiter = 0; limiter < PACER_LIMITERS_MAX; limiter++)
			for (rule = 0; rule < RULES; rule++)
				for (event = 0; event <= PACER_EVENT_COUNT; event++) {
					uint32_t outcome = pacer_outcome_under(
					    pacer_outcome(reason, limiter), rule);

					outcome = pacer_outcome_with(outcome, event);
					assert_int_equal(pacer_outcome_reason(outcome), reason);
					assert_int_equal(pacer_outcome_limiter(outcome), limiter);
					assert_int_equal(pacer_outcome_rule(outcome), rule);
					assert_int_equal(pacer_outcome_event(outcome), event);
					assert_false(pacer_outcome_undecided(outcome));
				}
}

/* A reason alone is an outcome; a second event stands in the place of the first. */
static void test_less(void **unused)
{
	uint32_t outcome = PACER_TRUNCATED;

	(void)unused;
	assert_int_equal(pacer_outcome_reason(outcome), PACER_TRUNCATED);
	assert_int_equal(pacer_outcome_limiter(outcome), 0);
	assert_int_equal(pacer_outcome_rule(outcome), PACER_RULES_MAX);
	assert_int_equal(pacer_outcome_event(outcome), PACER_EVENT_COUNT);
	outcome = pacer_outcome_with(outcome, PACER_BANNED);
	outcome = pacer_outcome_with(outcome, PACER_REDIRECTED);
	assert_int_equal(pacer_outcome_event(outcome), PACER_REDIRECTED);
	assert_int_equal(pacer_outcome_with(outcome, PACER_EVENT_COUNT), PACER_TRUNCATED);
}

static void test_no_reason(void **unused)
{
	uint32_t value, reason;

	(void)unused;
	for (value = PACER_REASON_COUNT; value < 0x100; value++) {
		assert_int_equal(pacer_outcome_reason(value), PACER_DENY_NO_STATE);
		assert_true(pacer_outcome_denied(value));
		assert_int_equal(pacer_outcome_undecided(value), value == PACER_UNDECIDED);
	}
	for (reason = 0; reason < PACER_REASON_COUNT; reason++)
		assert_int_equal(pacer_outcome_denied(reason),
				 pacer_verdict_of(reason) == PACER_VERDICT_DENY);
	assert_true(pacer_outcome_undecided(pacer_outcome_under(PACER_UNDECIDED, 3)));
}

/* What each reason is, to whoever counts: as the documents say. */
static void test_verdicts(void **unused)
{
	static const enum pacer_verdict verdicts[PACER_REASON_COUNT] = {
	    [PACER_ADMIT] = PACER_VERDICT_ADMIT,
	    [PACER_NO_RULE] = PACER_VERDICT_PASS,
	    [PACER_ALLOWED] = PACER_VERDICT_PASS,
	    [PACER_NOT_IP] = PACER_VERDICT_PASS,
	    [PACER_TRUNCATED] = PACER_VERDICT_UNPARSED,
	    [PACER_BAD_HEADER] = PACER_VERDICT_UNPARSED,
	    [PACER_TOO_DEEP] = PACER_VERDICT_UNPARSED,
	    [PACER_DENY_GAP] = PACER_VERDICT_DENY,
	    [PACER_DENY_WINDOW] = PACER_VERDICT_DENY,
	    [PACER_DENY_RATE] = PACER_VERDICT_DENY,
	    [PACER_DENY_THROTTLE] = PACER_VERDICT_DENY,
	    [PACER_DENY_BAN] = PACER_VERDICT_DENY,
	    [PACER_DENY_CONTENDED] = PACER_VERDICT_DENY,
	    [PACER_DENY_NO_STATE] = PACER_VERDICT_DENY,
	    [PACER_DENY_VERDICT] = PACER_VERDICT_DENY,
	    [PACER_DENY_SHARE] = PACER_VERDICT_DENY,
	};

	(void)unused;
	for (uint32_t reason = 0; reason < PACER_REASON_COUNT; reason++)
		assert_int_equal(pacer_verdict_of(reason), verdicts[reason]);
	assert_int_equal(pacer_verdict_of(PACER_REASON_COUNT), PACER_VERDICT_DENY);
}

/* At its time, and not a moment later, the other copy takes over from one that nobody confirmed. */
static void test_in_force(void **unused)
{
	(void)unused;
	for (uint32_t copy = 0; copy < 2; copy++) {
		assert_int_equal(pacer_in_force(copy, 0), copy);
		assert_int_equal(pacer_in_force(copy, ~0ull), copy);
		assert_int_equal(pacer_in_force(1000 << 1 | copy, 999), copy);
		assert_int_equal(pacer_in_force(1000 << 1 | copy, 1000), !copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parts),     cmocka_unit_test(test_less),
	    cmocka_unit_test(test_no_reason), cmocka_unit_test(test_verdicts),
	    cmocka_unit_test(test_in_force),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
