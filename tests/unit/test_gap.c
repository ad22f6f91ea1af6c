/* SPDX-License-Identifier: GPL-2.0-only */
/* A gap in a sketch: the cells that a key's hash selects, against the last time of each key. */
#include "table_bench.h"

static void test_sketch(void **unused)
{
	struct pacer_hash k = {0, 0}, same_line = {0, 0xffffffff}, other_line = {~0u, 0};
	struct pacer_limiter t = sketch(100, 2, 2);
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	assert_int_equal(ask(&b, k, START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, k, START + 99, 1), PACER_DENY_GAP);
	assert_int_equal(ask(&b, k, 1, 1), PACER_DENY_GAP);
	assert_int_equal(ask(&b, same_line, START + 50, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, other_line, START + 99, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, k, START + 100, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, k, START + 199, 1), PACER_DENY_GAP);
	bench_down(&b);
}

static void test_sketch_runs(void **unused)
{
	static struct oracle_seen seen;
	uint64_t now, i, k, admitted = 0;
	struct bench b;

	(void)unused;
	oracle_seed(18);
	for (i = 0; i < 40; i++) {
		struct pacer_limiter t = sketch(between(1, 500), between(1, 2), between(1, 4));
		struct pacer_hash hash[50];

		for (k = 0; k < 50; k++)
			hash[k] = (struct pacer_hash){draw(), draw()};
		memset(&seen, 0, sizeof(seen));
		bench_up(&b, &t);
		for (now = START; now < START + 20000; now += draw() % 20) {
			k = draw() % 50;
			if (ask(&b, hash[k], now, 1) != PACER_ADMIT)
				continue;
			assert_true(!seen.last[k] || now - seen.last[k] >= t.gap_ns);
			seen.last[k] = now;
			admitted++;
		}
		bench_down(&b);
	}
	assert_true(admitted > 5000);
}

/* Of a key that is the same for all, no member of the hash selects the cells. */
static void test_all_alike(void **unused)
{
	struct pacer_limiter t = sketch(100, 2, 1);
	struct bench b;

	(void)unused;
	t.key_id = 0;
	bench_up(&b, &t);
	assert_int_equal(ask(&b, (struct pacer_hash){0, 7}, START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, (struct pacer_hash){~0u, ~0u}, START + 99, 1), PACER_DENY_GAP);
	assert_int_equal(ask(&b, (struct pacer_hash){~0u, ~0u}, START + 100, 1), PACER_ADMIT);
	bench_down(&b);
}

/* When a packet of the key passes: at any time, at the gap's end, or never where no line is. */
static void test_when(void **unused)
{
	struct pacer_limiter t = sketch(100, 2, 1);
	struct pacer_ask q;
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	q = question(&b, key(2), START, 1);
	assert_int_equal(pacer_sketch_when(&q), 0);
	assert_int_equal(ask(&b, key(2), START, 1), PACER_ADMIT);
	assert_int_equal(pacer_sketch_when(&q), START + 100);
	b.table.n = BASE;
	assert_true(pacer_sketch_when(&q) == PACER_NEVER);
	bench_down(&b);
}

/* ---- failures that have a verdict ---- */

static void test_missing(void **unused)
{
	struct pacer_limiter t = sketch(100, 2, 1);
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	b.table.n = BASE;
	assert_int_equal(ask(&b, key(2), START, 1), PACER_DENY_NO_STATE);
	assert_int_equal(take(&b, key(2), START, 1), PACER_DENY_NO_STATE);
	bench_down(&b);
}

static void test_held(void **unused)
{
	struct pacer_limiter t = sketch(100, 2, 1);
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	held_denies(&b, 0, key(2), START + 1);
	bench_down(&b);
}

static void test_nothing_changed(void **unused)
{
	struct pacer_limiter t = sketch(100, 2, 1);

	(void)unused;
	cancel_changes_nothing(&t);
	denial_changes_nothing(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sketch),	    cmocka_unit_test(test_sketch_runs),
	    cmocka_unit_test(test_all_alike),	    cmocka_unit_test(test_when),
	    cmocka_unit_test(test_missing),	    cmocka_unit_test(test_held),
	    cmocka_unit_test(test_nothing_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
