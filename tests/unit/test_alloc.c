/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that runs out while a policy is read, changed and compiled, at each allocation in turn,
 * libyaml's included: for once, or for good. What comes of it is all that it should be, or an error
 * that says so; never a crash, and nothing is left behind (the sanitizers tell).
 */
#include "applied.h"
#include "example.h"
#include "starved.h"

/* ---- what is done ---- */

static const char deep[] = "rules: [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\n";
static const char path[] = "dns.packets", value[] = "400";

static struct pacer_policy whole, bin;
static struct plan plan;

/* 0: done, and as it should be. -1: refused, for want of memory. */
static int read_and_compile(const char *text, const struct pacer_policy *expected)
{
	struct policy_error wrong = {.line = -1};
	struct policy *policy;
	int result = -1;

	memory.on = true;
	policy = policy_parse(text, strlen(text), &wrong);
	if (policy)
		result = compile_policy(policy, NULL, &host, &bin, &plan, &wrong);
	policy_free(policy);
	memory.on = false;
	if (result)
		assert_string_equal(wrong.text, "out of memory");
	else if (expected)
		assert_memory_equal(&bin, expected, sizeof(bin));
	return result;
}

static int set(const char *expected)
{
	struct policy_error wrong = {.line = -1};
	char *text;

	memory.on = true;
	text = policy_set(example, strlen(example), path, value, &wrong);
	memory.on = false;
	if (!text) {
		assert_string_equal(wrong.text, "out of memory");
		return -1;
	}
	assert_string_equal(text, expected);
	free(text);
	return 0;
}

static void test_reading(void **unused)
{
	uint32_t refused = 0, n;

	(void)unused;
	starved_from(0, false);
	assert_int_equal(read_and_compile(example, NULL), 0);
	whole = bin;
	n = memory.n;
	assert_true(n > 100);
	for (uint32_t i = 1; i <= n; i++)
		for (int for_good = 0; for_good < 2; for_good++) {
			starved_from(i, for_good);
			refused += read_and_compile(example, &whole) != 0;
		}
	assert_int_equal(refused, 2 * n); /* it needs every one of them */
	starved_from(n + 1, true);
	assert_int_equal(read_and_compile(example, &whole), 0);
}

static void test_setting(void **unused)
{
	struct policy_error wrong = {.line = -1};
	uint32_t refused = 0, n;
	char *expected;

	(void)unused;
	starved_from(0, false);
	memory.on = true;
	expected = policy_set(example, strlen(example), path, value, &wrong);
	memory.on = false;
	assert_non_null(expected);
	assert_non_null(strstr(expected, "packets: 400"));
	n = memory.n;
	for (uint32_t i = 1; i <= n; i++)
		for (int for_good = 0; for_good < 2; for_good++) {
			starved_from(i, for_good);
			refused += set(expected) != 0;
		}
	assert_int_equal(refused, 2 * n);
	free(expected);
}

/* Not every allocation is needed here: what comes out is whole, or it is said. */
static void test_setting_a_list(void **unused)
{
	static const struct prefix list[] = {{4, 8, {10}}, {6, 8, {0xfd}}};
	struct policy_error wrong = {.line = -1};
	uint32_t refused = 0, n;
	char *expected, *text;

	(void)unused;
	starved_from(0, false);
	memory.on = true;
	expected = policy_set_allow(example, strlen(example), list, 2, &wrong);
	memory.on = false;
	assert_non_null(expected);
	n = memory.n;
	for (uint32_t i = 1; i <= n; i++) {
		starved_from(i, true);
		memory.on = true;
		text = policy_set_allow(example, strlen(example), list, 2, &wrong);
		memory.on = false;
		assert_string_equal(text ? text : wrong.text, text ? expected : "out of memory");
		refused += !text;
		free(text);
	}
	assert_in_range(refused, n / 2, n);
	free(expected);
}

/* The look at the depth is not passed over where memory runs out in it. */
static void test_depth(void **unused)
{
	struct policy_error wrong;
	struct policy *policy;
	uint32_t n;

	(void)unused;
	starved_from(0, false);
	memory.on = true;
	policy = policy_parse(deep, strlen(deep), &wrong);
	memory.on = false;
	assert_null(policy);
	assert_non_null(strstr(wrong.text, "nested too deep"));
	n = memory.n;
	for (uint32_t i = 1; i <= n; i++) {
		starved_from(i, false);
		wrong = (struct policy_error){.line = -1};
		memory.on = true;
		policy = policy_parse(deep, strlen(deep), &wrong);
		memory.on = false;
		assert_null(policy);
		if (!strstr(wrong.text, "nested too deep"))
			assert_string_equal(wrong.text, "out of memory");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_reading),
	    TEST(test_setting),
	    TEST(test_setting_a_list),
	    TEST(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
