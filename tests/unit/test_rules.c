/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of rules, against an array of truth values: a bit at each side of each word, and at random.
 */
#include <stdbool.h>

#include "oracle.h"

#include "rules.h"

struct naive {
	bool has[PACER_RULES_MAX];
};

static struct pacer_rules set_of(const struct naive *n)
{
	struct pacer_rules set = {{0}};

	for (uint32_t i = 0; i < PACER_RULES_MAX; i++)
		pacer_rules_put(&set, i, n->has[i]);
	return set;
}

static void same(const struct pacer_rules *set, const struct naive *n)
{
	uint32_t first = PACER_RULES_MAX;

	for (uint32_t i = PACER_RULES_MAX; i-- > 0;) {
		assert_int_equal(pacer_rules_has(set, i), n->has[i]);
		if (n->has[i])
			first = i;
	}
	assert_int_equal(pacer_rules_lowest(set), first);
}

static void test_one_rule(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i < PACER_RULES_MAX; i++) {
		struct naive n = {{false}};
		struct pacer_rules set;

		n.has[i] = true;
		set = set_of(&n);
		same(&set, &n);
		assert_int_equal(pacer_lowest(set.word[i / 64]), i % 64);
	}
}

/* One rule is a difference, whichever it is. */
static void test_same(void **unused)
{
	const struct pacer_rules none = {{0}}, most = pacer_rules_first(PACER_RULES_MAX);

	(void)unused;
	assert_true(pacer_rules_same(&none, &none) && pacer_rules_same(&most, &most));
	for (uint32_t i = 0; i < PACER_RULES_MAX; i++) {
		struct pacer_rules one = none, but_one = most;

		pacer_rules_put(&one, i, 1);
		pacer_rules_drop(&but_one, &one);
		assert_false(pacer_rules_same(&one, &none) || pacer_rules_same(&none, &one));
		assert_false(pacer_rules_same(&but_one, &most) ||
			     pacer_rules_same(&most, &but_one));
	}
}

static void test_all_below(void **unused)
{
	struct pacer_rules most = pacer_rules_first(PACER_RULES_MAX);

	(void)unused;
	for (uint32_t n = 0; n <= PACER_RULES_MAX; n++) {
		struct pacer_rules set = pacer_rules_first(n);

		for (uint32_t i = 0; i < PACER_RULES_MAX; i++) {
			assert_int_equal(pacer_rules_has(&set, i), i < n);
			assert_int_equal(pacer_rules_below(i / 64, n) >> (i % 64) & 1, i < n);
		}
		assert_int_equal(pacer_rules_same(&set, &most), n == PACER_RULES_MAX);
	}
}

static void test_keep_and_drop(void **unused)
{
	uint64_t seed = 1;

	(void)unused;
	for (int run = 0; run < 200; run++) {
		struct naive a, b, both, first;
		struct pacer_rules of_a, of_b, kept, left;

		for (uint32_t i = 0; i < PACER_RULES_MAX; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			a.has[i] = seed >> 40 & 1;
			b.has[i] = seed >> 50 & 1;
			both.has[i] = a.has[i] && b.has[i];
			first.has[i] = a.has[i] && !b.has[i];
		}
		of_a = kept = left = set_of(&a);
		of_b = set_of(&b);
		pacer_rules_keep(&kept, &of_b);
		pacer_rules_drop(&left, &of_b);
		same(&of_a, &a);
		same(&kept, &both);
		same(&left, &first);
	}
}

/* Every range of a wide field has a row of its own, and none is that of what is absent or unknown.
 */
static void test_rows_of_spans(void **unused)
{
	bool taken[PACER_SPAN_ROWS] = {false};

	(void)unused;
	for (uint32_t i = 0; i <= PACER_BOUNDS_MAX; i++) {
		uint32_t row = pacer_span_row(i);

		assert_true(row < PACER_SPAN_ROWS && !taken[row]);
		assert_true(row != PACER_MORE_ABSENT && row != PACER_MORE_UNKNOWN);
		taken[row] = true;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_rule),	  cmocka_unit_test(test_same),
	    cmocka_unit_test(test_all_below),	  cmocka_unit_test(test_keep_and_drop),
	    cmocka_unit_test(test_rows_of_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
