/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that runs out while a policy is read, changed and compiled, at each allocation in turn,
 * libyaml's included: for once, or for good. What comes of it is all that it should be, or an error
 * that says so; never a crash, and nothing is left behind (the sanitizers tell).
 */
#include "applied.h"
#include "example.h"

/* Under the sanitizer its own, which this program's stand before; else the library's. */
void *__interceptor_malloc(size_t n) __attribute__((weak));
void *__interceptor_calloc(size_t n, size_t size) __attribute__((weak));
void *__interceptor_realloc(void *p, size_t n) __attribute__((weak));
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static struct {
	bool on, for_good;
	uint32_t n, fail_at; /* allocations so far; from 1, 0: never */
} memory;

static bool runs_out(void)
{
	if (!memory.on)
		return false;
	memory.n++;
	return memory.fail_at &&
	       (memory.for_good ? memory.n >= memory.fail_at : memory.n == memory.fail_at);
}

void *malloc(size_t n)
{
	if (runs_out())
		return NULL;
	return __interceptor_malloc ? __interceptor_malloc(n) : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	if (runs_out())
		return NULL;
	return __interceptor_calloc ? __interceptor_calloc(n, size) : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	if (runs_out())
		return NULL;
	return __interceptor_realloc ? __interceptor_realloc(p, n) : __libc_realloc(p, n);
}

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

static void begin(uint32_t fail_at, bool for_good)
{
	memory.n = 0;
	memory.fail_at = fail_at;
	memory.for_good = for_good;
}

static void test_reading(void **unused)
{
	uint32_t refused = 0, n;

	(void)unused;
	begin(0, false);
	assert_int_equal(read_and_compile(example, NULL), 0);
	whole = bin;
	n = memory.n;
	assert_true(n > 100);
	for (uint32_t i = 1; i <= n; i++)
		for (int for_good = 0; for_good < 2; for_good++) {
			begin(i, for_good);
			refused += read_and_compile(example, &whole) != 0;
		}
	assert_int_equal(refused, 2 * n); /* it needs every one of them */
	begin(n + 1, true);
	assert_int_equal(read_and_compile(example, &whole), 0);
}

static void test_setting(void **unused)
{
	struct policy_error wrong = {.line = -1};
	uint32_t refused = 0, n;
	char *expected;

	(void)unused;
	begin(0, false);
	memory.on = true;
	expected = policy_set(example, strlen(example), path, value, &wrong);
	memory.on = false;
	assert_non_null(expected);
	assert_non_null(strstr(expected, "packets: 400"));
	n = memory.n;
	for (uint32_t i = 1; i <= n; i++)
		for (int for_good = 0; for_good < 2; for_good++) {
			begin(i, for_good);
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
	begin(0, false);
	memory.on = true;
	expected = policy_set_allow(example, strlen(example), list, 2, &wrong);
	memory.on = false;
	assert_non_null(expected);
	n = memory.n;
	for (uint32_t i = 1; i <= n; i++) {
		begin(i, true);
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
	begin(0, false);
	memory.on = true;
	policy = policy_parse(deep, strlen(deep), &wrong);
	memory.on = false;
	assert_null(policy);
	assert_non_null(strstr(wrong.text, "nested too deep"));
	n = memory.n;
	for (uint32_t i = 1; i <= n; i++) {
		begin(i, false);
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
