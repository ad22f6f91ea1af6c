/* SPDX-License-Identifier: GPL-2.0-only */
/* One key's record: its window and its gap, judged and counted together. */
#include "table_bench.h"

/* Without a gap, packets within one unit of the last admission do not push the ring's head into the
 * future.
 */
static void test_coarse_unit(void **unused)
{
	struct pacer_limiter t = records(10, 60 * SECOND, 1, 0, 1, 1);
	uint64_t edge = START + 2 * t.window.slot_ns - 1;
	struct bench b;

	(void)unused;
	assert_true(t.last_shift > 0);
	bench_up(&b, &t);
	assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), edge - 60 * SECOND, 7), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), edge, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), edge, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), edge, 1), PACER_DENY_WINDOW); /* 9, and 1 of the slot */
	assert_int_equal(ask(&b, key(1), edge + 1, 8), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), edge + 1, 1), PACER_DENY_WINDOW);
	bench_down(&b);
}

/* A clock that is behind what the record has seen counts as that. */
static void test_backward(void **unused)
{
	struct bench b;

	(void)unused;
	one_set(&b, 0);
	assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), START + 555, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), 1, 8), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), 1, 1), PACER_DENY_WINDOW);
	assert_int_equal(ask(&b, key(1), START + 1599, 2), PACER_DENY_WINDOW);
	assert_int_equal(ask(&b, key(1), START + 1600, 10), PACER_ADMIT);
	bench_down(&b);
	one_set(&b, 50);
	assert_int_equal(ask(&b, key(1), START + 555, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), 1, 1), PACER_DENY_GAP);
	assert_int_equal(ask(&b, key(1), START + 604, 1), PACER_DENY_GAP);
	assert_int_equal(ask(&b, key(1), START + 605, 1), PACER_ADMIT);
	bench_down(&b);
}

/* What a clock behind has left is no time to come, should a gap join the record. */
static void test_backward_before_a_gap_joins(void **unused)
{
	struct bench b;

	(void)unused;
	one_set(&b, 0);
	assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), START - 10, 1), PACER_ADMIT);
	b.limiter.gap_ns = 50;
	assert_int_equal(ask(&b, key(1), START + 49, 1), PACER_DENY_GAP);
	assert_int_equal(ask(&b, key(1), START + 50, 1), PACER_ADMIT);
	bench_down(&b);
}

/* What a judgement rests on is compared again under the lock: each part of it counts. */
static void test_same(void **unused)
{
	struct pacer_found f = {0};
	struct pacer_seen seen = {0};
	struct pacer_entry *e;
	struct pacer_ask q;
	struct bench b;

	(void)unused;
	one_set(&b, 5);
	assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(1), START + 7, 2), PACER_ADMIT);
	e = record(&b, 0);
	q = question(&b, key(1), START + 20, 1);
	pacer_record_locate(&q, &f);
	assert_int_equal(pacer_entry_read(&q, &f, &seen), PACER_ADMIT);
	assert_int_equal(seen.running, 3);
	assert_int_equal(seen.last >> PACER_LAST_OFF, 7);
	e->head_ns++;
	assert_int_equal(pacer_entry_commit_seen(&q, &f, &seen), PACER_UNDECIDED);
	e->head_ns--;
	e->last++;
	assert_int_equal(pacer_entry_commit_seen(&q, &f, &seen), PACER_UNDECIDED);
	e->last--;
	pacer_ring_count(&f.ring, 4);
	assert_int_equal(pacer_entry_commit_seen(&q, &f, &seen), PACER_UNDECIDED);
	pacer_ring_count(&f.ring, 3);
	assert_int_equal(pacer_entry_commit_seen(&q, &f, &seen), PACER_ADMIT);
	bench_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    EITHER(test_coarse_unit),
	    EITHER(test_backward),
	    EITHER(test_backward_before_a_gap_joins),
	    EITHER(test_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
