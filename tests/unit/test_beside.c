/* SPDX-License-Identifier: GPL-2.0-only */
/* How packets fare under a shadow, and where they are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "beside.h"

static struct pacer_changes changes, expected;

static void test_two_verdicts(void **unused)
{
	(void)unused;
	assert_int_equal(pacer_change_of(0, 0), PACER_CHANGE_NONE);
	assert_int_equal(pacer_change_of(1, 1), PACER_CHANGE_NONE);
	assert_int_equal(pacer_change_of(4, 1), PACER_CHANGE_NONE); /* any but 0 lets through */
	assert_int_equal(pacer_change_of(1, 0), PACER_CHANGE_DENY);
	assert_int_equal(pacer_change_of(0, 4), PACER_CHANGE_ADMIT);
}

/* Each change and each reason has a place of its own. */
static void test_counts(void **unused)
{
	(void)unused;
	for (uint32_t change = 0; change < PACER_CHANGE_COUNT; change++)
		for (uint32_t reason = 0; reason < PACER_REASON_COUNT; reason++) {
			memset(&changes, 0, sizeof(changes));
			memset(&expected, 0, sizeof(expected));
			pacer_changes_count(&changes, change, reason, 60);
			pacer_changes_count(&changes, change, reason, 1500);
			expected.by[change][reason].packets = 2;
			expected.by[change][reason].bytes = 1560;
			assert_memory_equal(&changes, &expected, sizeof(changes));
		}
}

/* What is no change is not counted; a reason beyond them stays within the counts. */
static void test_beyond(void **unused)
{
	(void)unused;
	memset(&changes, 0, sizeof(changes));
	memset(&expected, 0, sizeof(expected));
	pacer_changes_count(&changes, PACER_CHANGE_COUNT, 0, 60);
	pacer_changes_count(&changes, (enum pacer_change) ~0u, 0, 60);
	assert_memory_equal(&changes, &expected, sizeof(changes));
	pacer_changes_count(&changes, PACER_CHANGE_DENY, ~0u, 60);
	expected.by[PACER_CHANGE_DENY][PACER_CHANGE_REASONS - 1].packets = 1;
	expected.by[PACER_CHANGE_DENY][PACER_CHANGE_REASONS - 1].bytes = 60;
	assert_memory_equal(&changes, &expected, sizeof(changes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_two_verdicts),
	    cmocka_unit_test(test_counts),
	    cmocka_unit_test(test_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
