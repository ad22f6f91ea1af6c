/* SPDX-License-Identifier: GPL-2.0-only */
/* What a verifier's log tells of the stack: the words of Linux up to 7.2, and those since. */
#include "oracle.h"

#include "../prog/depths.h"

static unsigned int bytes[8];

static void told(const char *log, size_t n, unsigned int first, unsigned int last)
{
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(depths_read(log, bytes, n), 0);
	assert_int_equal(bytes[0], first);
	assert_int_equal(bytes[n - 1], last);
	assert_int_equal(bytes[n], ~0u);
}

static void test_a_line(void **unused)
{
	(void)unused;
	told("verification time 9 usec\nstack depth 96+112+8\nprocessed 77 insns\n", 3, 96, 8);
	told("stack depth 0\n", 1, 0, 0);
}

static void test_lines(void **unused)
{
	(void)unused;
	told("verification time 9 usec\n"
	     "subprog 0 (pacer) global insns_self 9 insns_total 99 stack 32\n"
	     "subprog 1 (a) static insns_self 8 insns_total 8 stack 0\n"
	     "subprog 2 (b) global insns_self 7 insns_total 7 stack 240\n"
	     "processed 99 insns (limit 1000000)\n",
	     3, 32, 240);
}

/* No number is made up for a function that a log lacks. */
static void test_nothing_told(void **unused)
{
	static const char *const logs[] = {
	    "",
	    "processed 77 insns\n",
	    "stack depth 96+112\n",
	    "stack depth 96+112+8+16\n",
	    "stack depth 96++8\n",
	    "subprog 0 (a) stack 32\nsubprog 1 (b) stack 8\n",
	    "subprog 0 (a) stack 32\nsubprog 2 (c) stack 8\n",
	    "subprog 0 (a) stack 32\nsubprog 1 (b) insns_self 8\nsubprog 2 (c) stack 8\n",
	    "subprog 0 (a) stack 32\nsubprog 1 (b) stack \nsubprog 2 (c) stack none\n",
	};
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(logs) / sizeof(logs[0]); i++)
		assert_int_equal(depths_read(logs[i], bytes, 3), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_line),
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_nothing_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
