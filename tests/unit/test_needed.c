/* SPDX-License-Identifier: GPL-2.0-only */
/* The limit that would deny a key nothing, against values that were worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "episodes/needed.h"
#include "plan/keymask.h"

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))

/*
 * 1000 packets a second of 100 bytes are denied, half of them and at most all of one key. What the
 * limit lets through comes in addition; a window remembers a slot more than its time.
 */
static const struct {
	const char *limit;
	enum pacer_reason reason;
	const char *field;
	double value, enough;
	const char *text;
} cases[] = {
    {"{key: src, gap: 1ms}", PACER_DENY_GAP, "gap", 1e9 / 1500, 1e9 / 2031.25, "gap=492.307us"},
    {"{key: src, packets: 100, window: 1s, slots: 10}", PACER_DENY_WINDOW, "packets", 650, 1234.375,
     "packets=1235"},
    {"{key: src, bytes: 1000, window: 1s, slots: 10}", PACER_DENY_WINDOW, "bytes", 56000, 114437.5,
     "bytes=114438"},
    {"{key: src, rate: 100/s, burst: 5}", PACER_DENY_RATE, "rate", 600, 1131.25, "rate=1132/s"},
    {"{key: src, rate: 8Kbit/s, burst: 2000}", PACER_DENY_RATE, "rate", 51000, 104125,
     "rate=833000bit/s"},
    /* Of all: whoever is denied, it is all of it. */
    {"{key: all, uses: 10, cooldown: 2s}", PACER_DENY_THROTTLE, "uses", 2010, 2072.5, "uses=2073"},
};

static struct needed needed_of(const char *limit, enum pacer_reason reason, size_t rung,
			       struct policy **policy)
{
	struct crowd_key key = {.share = {0.5, 0.25, 1}, .len_bytes = 100};
	struct policy_error error;
	struct needed needed;
	char text[200];

	snprintf(text, sizeof(text), "rules: [{name: a, limits: [%s]}]", limit);
	*policy = policy_parse(text, strlen(text), &error);
	if (!*policy)
		fail_msg("%s: %s", limit, error.text);
	key.by = (*policy)->rule[0].limit[rung].key;
	key.limits = 1u << rung;
	needed_find(&needed, &(*policy)->rule[0], reason, &key, 1000);
	return needed;
}

static void test_of_each_kind(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		struct policy *policy;
		struct needed n = needed_of(cases[i].limit, cases[i].reason, 0, &policy);
		char text[64];

		assert_int_equal(n.limit, 0);
		assert_string_equal(n.field, cases[i].field);
		assert_float_equal(n.value, cases[i].value, 1e-6);
		assert_float_equal(n.enough, cases[i].enough, 1e-6);
		assert_string_equal(needed_text(&n, text, sizeof(text)), cases[i].text);
		policy_free(policy);
	}
}

/* A rung has a multiple of what its line says, and the line is what is set. */
static void test_of_a_rung(void **unused)
{
	struct policy *policy;
	struct needed n =
	    needed_of("{key: 'src/[32,24],64', packets: 100, window: 1s, slots: 10, wider: x4}",
		      PACER_DENY_WINDOW, 1, &policy);

	(void)unused;
	assert_int_equal(n.limit, 0);
	assert_float_equal(n.value, (400 + 550) / 4.0, 1e-6);
	assert_float_equal(n.enough, (400 + 1134.375) / 4.0, 1e-6);
	policy_free(policy);
}

/* No limit of the rule denies for that reason. */
static void test_of_none(void **unused)
{
	struct policy *policy;

	(void)unused;
	assert_int_equal(needed_of(cases[0].limit, PACER_DENY_WINDOW, 0, &policy).limit, -1);
	policy_free(policy);
}

/* A sample tells limits of one kind and key apart by nothing, those by a value as little. */
static void test_of_which(void **unused)
{
	static const char *const text =
	    "sets: [{name: geo, file: geo.csv, value: 3}, {name: as, file: as.csv, value: 2}]\n"
	    "rules: [{name: a, limits: [{key: src/32,64, packets: 1000, window: 1s}, "
	    "{key: src/32,64, packets: 100, window: 1m}, {key: src/24,64, packets: 9, window: 1s}, "
	    "{key: src/32,64, rate: 9/s, burst: 9}, {key: 'value(geo, src)', packets: 9, window: "
	    "1s}, {key: 'value(as, src)', packets: 9, window: 1s}]}]";
	static const struct {
		size_t limit;
		enum pacer_reason reason;
		uint32_t limits;
		int found;
	} rows[] = {
	    {0, PACER_DENY_WINDOW, 0x03, -1}, {1, PACER_DENY_WINDOW, 0x03, -1},
	    {2, PACER_DENY_WINDOW, 0x04, 2},  {0, PACER_DENY_RATE, 0x08, 3},
	    {4, PACER_DENY_WINDOW, 0x10, 4},  {5, PACER_DENY_WINDOW, 0x20, 5},
	    {0, PACER_DENY_BAN, 0, -1},
	};
	struct policy_error error;
	struct policy *policy = policy_parse(text, strlen(text), &error);

	(void)unused;
	if (!policy)
		fail_msg("%s", error.text);
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct crowd_key key = {.share = {0.5, 0.25, 1}, .len_bytes = 100};
		struct pacer_limiter by = {0};
		struct needed n;

		key.by = policy->rule[0].limit[rows[i].limit].key;
		key_masks(&key.by, &by);
		key.limits = needed_limits(&policy->rule[0], &by, rows[i].reason);
		assert_int_equal(key.limits, rows[i].limits);
		needed_find(&n, &policy->rule[0], rows[i].reason, &key, 1000);
		assert_int_equal(n.limit, rows[i].found);
	}
	policy_free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_of_each_kind),
	    cmocka_unit_test(test_of_a_rung),
	    cmocka_unit_test(test_of_none),
	    cmocka_unit_test(test_of_which),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
