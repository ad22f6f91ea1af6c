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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_less),
	    cmocka_unit_test(test_no_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
