/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Estimates without memory: each allocation of the samples and of the exact values fails in turn.
 * What was counted before stays as it was, nothing is left behind (ASan tells), and with memory
 * again the values are those that they would have been. And estimates of nothing.
 */
#include "oracle.h"
#include "starved.h"

#include "estimate/exact.h"
#include "estimate/track.h"

#define N      3000u
#define WINDOW 1000u

static uint64_t key_of(uint32_t i)
{
	return 1 + (uint64_t)i * 2654435761u % 400;
}

/* Adds all of them, each again until there is memory for it. How often there was none. */
static uint32_t add_all(struct exact *e)
{
	uint32_t failed = 0;

	for (uint32_t i = 0; i < N; i++) {
		const uint64_t ends[2] = {1 + i % 31, 100 + i % 37};

		while (!exact_add(e, i + 1, key_of(i), ends))
			assert_true(++failed < 50);
	}
	return failed;
}

static void exact_values(void **unused)
{
	struct exact_values want = {0};
	uint32_t failed = 0;

	(void)unused;
	for (uint32_t n = 0;; n++) { /* 0: none fails */
		struct exact_values got = {0};
		struct exact *e;
		uint32_t before = failed;

		memory.on = true;
		starved_from(n, false);
		e = exact_open(WINDOW, 0);
		failed += !e;
		if (e) {
			failed += add_all(e);
			while (!exact_read(e, N, 2, true, &got))
				assert_true(++failed < before + 2);
		}
		memory.on = false;
		exact_close(e);
		if (!n)
			want = got;
		if (e)
			assert_memory_equal(&got, &want, sizeof(got));
		if (memory.n < n) /* it needs no more; qsort() does without */
			break;
	}
	assert_true(want.n == WINDOW && want.distinct == 400);
	assert_true(failed >= 5);
}

static void samples(void **unused)
{
	const struct track_config config = {false, WINDOW, 128, 64, 7};
	uint32_t failed = 0;

	(void)unused;
	for (uint32_t n = 1;; n++) {
		struct track *t;

		memory.on = true;
		starved_from(n, n & 1);
		t = track_open(&config);
		memory.on = false;
		if (t) {
			assert_true(memory.n < n);
			track_close(t);
			break;
		}
		failed++;
	}
	assert_true(failed >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(exact_values),
	    cmocka_unit_test(samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
