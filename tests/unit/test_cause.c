/* SPDX-License-Identifier: GPL-2.0-only */
/* Causes that differ in what was measured alone are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/cause.h"

static void test_same(void **unused)
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
	    {"", "", true},
	    {"", "down", false},
	    {"down", "", false},
	    {"down", "down", true},
	    {"down", "downs", false},
	    {"refused after 3 ms", "refused after 31 ms", true},
	    {"refused after 3 ms: port 1", "refused after 31 ms: port 2", false},
	    {"refused after 3 ms", "refused after ms", false},
	    {"timed out after 60001 milliseconds with 0 bytes received",
	     "timed out after 60000 milliseconds with 12 bytes received", true},
	    {"0 out of 99 bytes received", "10 out of 9 bytes received", true},
	    {"port 2379 after 0 ms", "port 2380 after 0 ms", false},
	    {"HTTP status 500", "HTTP status 502", false},
	    {"3 s", "4 s", false},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(cause_same(cases[i].a, cases[i].b), cases[i].same);
		assert_int_equal(cause_same(cases[i].b, cases[i].a), cases[i].same);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_same)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
