/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What another policy changes for a fleet's agent that runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli/fleet_policy.h"

/* Any difference alone makes it another, and no two of them make up for each other. */
static void test_another_fleet(void **unused)
{
	static const struct policy_fleet was = {
	    .store = {"http://b"}, .n_stores = 1, .name = "b", .ca = "b", .cert = "b", .key = "b"};
	static const char *const other[] = {"a", "c"};

	(void)unused;
	assert_false(fleet_is_another(&was, &was));
	for (int which = 1; which < 1 << 5; which++)
		for (int signs = 0; signs < 1 << 5; signs++) {
			struct policy_fleet is = was;
			char *const of[] = {&is.store[0][7], is.name, is.ca, is.cert, is.key};

			for (int i = 0; i < 5; i++)
				if (which >> i & 1)
					of[i][0] = other[signs >> i & 1][0];
			assert_true(fleet_is_another(&was, &is));
		}
}

static void test_the_same_fleet(void **unused)
{
	struct policy_fleet was = {.store = {"http://b"}, .n_stores = 1, .name = "b"}, is = was;

	(void)unused;
	is.line = 7;
	is.local = is.bans = true;
	assert_false(fleet_is_another(&was, &is));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_another_fleet),
	    cmocka_unit_test(test_the_same_fleet),
	};

	return cmocka_run_group_tests_name("fleet_policy", tests, NULL, NULL);
}
