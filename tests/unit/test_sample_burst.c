/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * common/sample_burst.h: the bookkeeping. That the samples are uniform is shown by test_sample.c;
 * here are the buckets, their number, and what a reader and a caller may rely on.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sample_oracle.h"

#define BUCKETS PACER_SAMPLE_BURST_BUCKETS

static struct pacer_sample_burst burst, copy;
static struct pacer_sample_rng rng;

/* ---- What holds after every end of tick ------------------------------------------------------ */

/* The least S_i for M_i buckets: 1, 2, 3, 5, 7, 11, 15 .. */
static uint64_t smallest_size(uint32_t buckets)
{
	return buckets < 3 ? buckets : 2 * smallest_size(buckets - 2) + 1;
}

static void check_permutations(const struct pacer_sample_burst *s)
{
	static uint8_t place[PACER_SAMPLE_BURST_PLACES];
	uint64_t bucket = 0;

	memset(place, 0, sizeof(place));
	for (uint32_t b = 0; b < BUCKETS; b++) {
		bucket |= 1ull << s->order[b];
		for (uint32_t j = 0; j < PACER_SAMPLE_K; j++)
			place[s->R[b][j]]++;
	}
	assert_true(bucket == ~0ull);
	for (uint32_t p = 0; p < PACER_SAMPLE_BURST_PLACES; p++)
		assert_int_equal(place[p], 1);
}

/* (1) and (2) of the header, the bound, and that buckets are whole bursts of one unbroken series.
 * Returns the number of elements in closed buckets that are active at s->T.
 */
static uint64_t check_buckets(const struct pacer_sample_burst *s)
{
	uint64_t follow = 0, next_x = s->N + 1;

	assert_true(s->len < BUCKETS);
	for (uint32_t m = 1; m <= s->len; m++) {
		const struct pacer_sample_bucket *b = &s->b[pacer_sample_burst_nth(s, s->len - m)];

		assert_true(b->size > 0 && b->x + b->size == next_x);
		assert_true(b->T_first <= b->T_last && b->T_last <= s->T);
		assert_true(b->T_first == b->T_last || b->size <= follow);
		assert_false(pacer_sample_expired(b->T_last, s->T, s->t0));
		if (m < s->len)
			assert_false(pacer_sample_expired(b->T_first, s->T, s->t0));
		assert_true(follow + b->size >= smallest_size(m));
		if (pacer_sample_expired(b->T_first, s->T, s->t0)) {
			assert_int_equal(m, s->len);
			break;
		}
		follow += b->size;
		next_x = b->x;
	}
	assert_true(s->len <= 2 * log2(follow + 1) + 1e-9);
	if (s->count && s->len)
		assert_true(s->len + 1 <= 3 * log2(follow + s->count) + 1e-9);
	return follow;
}

/* Takes a burst of any size for granted, whatever its elements. */
static void burst_of(struct pacer_sample_burst *s, uint64_t tick, uint32_t count)
{
	if (!count)
		return;
	pacer_sample_burst_tick(s, &rng, tick);
	s->count = count;
}

static void restart(struct pacer_sample_burst *s, uint64_t t0)
{
	s->T = s->N = s->lost = 0;
	s->count = s->len = 0;
	s->t0 = t0;
}

/* Every series of nine bursts of 0, 1, 2 or 5 elements, under several windows. */
static void test_every_short_series(void **state)
{
	static const uint32_t sizes[] = {0, 1, 2, 5};

	(void)state;
	assert_true(pacer_sample_burst_init(&burst, 1, 1));
	for (uint64_t t0 = 1; t0 <= 7; t0 += 3) {
		for (uint32_t series = 0; series < 1u << 18; series += 1 + (t0 == 1)) {
			restart(&burst, t0);
			for (uint64_t tick = 1; tick <= 9; tick++) {
				burst_of(&burst, tick, sizes[series >> 2 * (tick - 1) & 3]);
				check_buckets(&burst);
			}
		}
	}
	check_permutations(&burst);
}

/* Sizes up to the greatest, in falling and rising orders, with and without silence. */
static uint32_t size_at(int pattern, uint64_t tick)
{
	switch (pattern) {
	case 0:
		return 1 + pacer_sample_below(&rng, 1 << pacer_sample_below(&rng, 30));
	case 1:
		return 1u << (29 - tick % 30);
	case 2:
		return tick % 64 < 4 ? (1u << 30) - 1 : 1u << (29 - tick % 64 / 2 % 30);
	case 3:
		return tick % 500 < 100 ? 1 : tick % 500 == 100 ? 1 << 29 : tick % 7 ? 0 : 3;
	case 4:
		return (1u << 30) - 1;
	case 5:
		return 1;
	default:
		return tick < 31 ? 1u << (30 - tick) : 1;
	}
}

static void test_long_series(void **state)
{
	static const uint64_t windows[] = {1, 2, 3, 31, 64, 1000};
	uint32_t most = 0;

	(void)state;
	rng.state = 3;
	for (int pattern = 0; pattern < 7; pattern++) {
		for (uint32_t w = 0; w < 6; w++) {
			uint64_t n;

			assert_true(pacer_sample_burst_init(&burst, windows[w], 2));
			burst.head = 0xffffffe0u;
			for (uint64_t tick = 1; tick < 3000; tick++) {
				burst_of(&burst, tick, size_at(pattern, tick));
				n = check_buckets(&burst);
				if (n <= 0xfffffffeull)
					assert_true(burst.lost == 0 && burst.len < BUCKETS);
				if (burst.len > most)
					most = burst.len;
			}
			check_permutations(&burst);
		}
	}
	assert_true(most > 30);
}

/* The worst series there is: sizes of which no pair can ever be united, so that the bound is met.
 * 62 buckets hold 3 2^30 - 1 elements, and one more cannot be had below 2^32 - 1.
 */
static void test_bound_is_met(void **state)
{
	(void)state;
	assert_int_equal(smallest_size(7), 15);
	assert_int_equal(smallest_size(62), 3 * (1ull << 30) - 1);
	assert_int_equal(smallest_size(63), (1ull << 32) - 1);
	assert_true(pacer_sample_burst_init(&burst, 1000, 1));
	for (uint32_t m = 62; m > 0; m--) {
		uint64_t size = smallest_size(m) - (m > 1 ? smallest_size(m - 1) : 0);

		/* The greatest is more than a burst can be, but not more than a bucket. */
		burst.count = 0;
		burst.b[pacer_sample_burst_nth(&burst, burst.len)] = (struct pacer_sample_bucket){
		    .x = burst.N + 1, .size = size, .T_first = 63 - m, .T_last = 63 - m};
		burst.N += size;
		burst.T = 63 - m;
		burst.len++;
		assert_true(burst.len == 63 - m);
	}
	assert_true(check_buckets(&burst) == 3 * (1ull << 30) - 1);
	assert_int_equal(burst.len, 62);
	pacer_sample_burst_find(&burst);
	assert_true(burst.pair == PACER_SAMPLE_BURST_NO_PAIR);
	for (uint64_t tick = 63; tick < 900; tick++) {
		burst_of(&burst, tick, 1);
		check_buckets(&burst);
	}
	assert_true(burst.lost == 0);
	check_permutations(&burst);
}

/* Beyond 2^32 - 2 elements memory stays what it is, and what is dropped is counted. */
static void test_more_than_the_bound(void **state)
{
	uint64_t size = 1ull << 40;

	(void)state;
	assert_true(pacer_sample_burst_init(&burst, 1000, 1));
	for (uint32_t i = 0; i < 63; i++, size = size * 2 / 3 + 1) {
		burst.b[pacer_sample_burst_nth(&burst, burst.len)] = (struct pacer_sample_bucket){
		    .x = burst.N + 1, .size = size, .T_first = i + 1, .T_last = i + 1};
		burst.N += size;
		burst.T = i + 1;
		burst.len++;
	}
	for (uint64_t tick = 64; tick < 200; tick++) {
		burst_of(&burst, tick, 1);
		assert_true(burst.len < BUCKETS);
		assert_true(burst.N + burst.count >= burst.lost);
		for (uint32_t i = size = 0; i < burst.len; i++)
			size += pacer_sample_burst_size(&burst, i);
		assert_true(size + burst.lost == burst.N); /* each is in a bucket, or was counted */
	}
	assert_true(burst.lost > 0);
	check_permutations(&burst);
}

/* ---- Samples lie where they belong ------------------------------------------------------------
 */

static void check_samples(const struct pacer_sample_burst *s)
{
	for (uint32_t i = 0; i <= s->len; i++) {
		uint32_t n = pacer_sample_burst_nth(s, i);
		struct pacer_sample_bucket b = s->b[n];

		if (i == s->len)
			b = (struct pacer_sample_bucket){s->N + 1, s->count, s->T, s->T};
		for (uint32_t j = 0; j < s->k; j++) {
			const struct pacer_sample_place *r = &s->place[s->R[n][j]];
			uint64_t index = r->item.saddr[0];

			assert_true(index >= b.x && index < b.x + b.size);
			assert_true(r->T == r->item.time_ns && r->T >= b.T_first &&
				    r->T <= b.T_last);
			if (i == s->len)
				continue;
			assert_true(s->Q[n][j].q >= b.x && s->Q[n][j].q < b.x + b.size);
			assert_true(s->Q[n][j].T >= b.T_first && s->Q[n][j].T <= b.T_last);
		}
	}
}

static void test_samples_lie_in_their_buckets(void **state)
{
	uint64_t tick = 1;
	uint32_t id = 0;

	(void)state;
	rng.state = 17;
	assert_true(pacer_sample_burst_init(&burst, 40, 16));
	for (int round = 0; round < 2000; round++) {
		uint32_t count = 1 + pacer_sample_below(&rng, 1 << pacer_sample_below(&rng, 7));

		tick += 1 + (round % 300 == 0 ? 30 : pacer_sample_below(&rng, 2));
		for (uint32_t c = 0; c < count; c++) {
			struct pacer_sample_item item = {.time_ns = tick, .saddr = {++id}};

			pacer_sample_burst_add(&burst, &rng, tick, &item);
		}
		check_buckets(&burst);
		check_samples(&burst);
	}
	assert_true(burst.N + burst.count == id);
}

/* ---- For the caller ----------------------------------------------------------------------------
 */

static void test_all_zero_is_off(void **state)
{
	static struct pacer_sample_skip skip;
	struct pacer_sample_item out[PACER_SAMPLE_K];

	(void)state;
	memset(&copy, 0, sizeof(copy));
	assert_false(pacer_sample_burst_due(&copy, 5));
	assert_int_equal(pacer_sample_burst_draw(&copy, &rng, 5, out), 0);
	assert_false(pacer_sample_skip_due(&skip));
	assert_int_equal(pacer_sample_seq_draw(&skip.seq, out), 0);
}

/* Most packets only count: k (1 + ln c) changes in a burst, and no more packets than changes. */
static void test_most_packets_only_count(void **state)
{
	struct pacer_sample_item item = {.time_ns = 1};
	uint32_t taken = 0, bursts = 20, c = 1 << 15;

	(void)state;
	rng.state = 1;
	assert_true(pacer_sample_burst_init(&burst, 100, 64));
	for (uint64_t tick = 1; tick <= bursts; tick++) {
		for (uint32_t i = 0; i < c; i++) {
			if (!pacer_sample_burst_due(&burst, tick))
				continue;
			taken++;
			pacer_sample_burst_take(&burst, &rng, tick, &item);
		}
		assert_int_equal(burst.count, c);
	}
	assert_true(taken < bursts * 64 * (1 + log(c)));
	assert_true(taken > bursts * 64 * (log(c) - log(64)));
}

/* A burst of 2^30 elements is cut in two of one tick, which stay together. */
static void test_long_burst_is_cut(void **state)
{
	struct pacer_sample_item item = {.time_ns = 9};
	uint32_t b;

	(void)state;
	rng.state = 1;
	assert_true(pacer_sample_burst_init(&burst, 10, 1));
	pacer_sample_burst_add(&burst, &rng, 9, &item);
	burst.count = PACER_SAMPLE_BURST_C_MAX - 2;
	burst.due = burst.next[0] = PACER_SAMPLE_BURST_C_MAX;
	pacer_sample_burst_add(&burst, &rng, 9, &item);
	assert_int_equal(burst.count, PACER_SAMPLE_BURST_C_MAX - 1);
	assert_int_equal(burst.len, 0);
	pacer_sample_burst_add(&burst, &rng, 8, &item);
	assert_int_equal(burst.count, 1);
	assert_int_equal(burst.len, 1);
	b = pacer_sample_burst_nth(&burst, 0);
	assert_true(burst.b[b].size == PACER_SAMPLE_BURST_C_MAX - 1 && burst.b[b].T_last == 9);
	assert_true(burst.T == 9 && burst.N == PACER_SAMPLE_BURST_C_MAX - 1);
	check_buckets(&burst);
	assert_true(pacer_sample_burst_n(&burst, 18).mean == PACER_SAMPLE_BURST_C_MAX);
	assert_true(pacer_sample_burst_n(&burst, 19).mean == 0);
}

/* ---- For the reader ----------------------------------------------------------------------------
 */

/* `ticks` changes at ticks' ends alone, `seq` with every change but counting, both are even after;
 * and a copy without the open burst is a sample of what came before it.
 */
static void test_a_copy_is_a_sample(void **state)
{
	struct pacer_sample_item item = {0}, out[PACER_SAMPLE_K];
	uint32_t ticks = 0, seq = 0, got;

	(void)state;
	rng.state = 8;
	assert_true(pacer_sample_burst_init(&burst, 5, 8));
	for (item.time_ns = 1; item.time_ns < 200; item.time_ns++) {
		for (uint32_t c = 0; c < 50; c++) {
			bool due = pacer_sample_burst_due(&burst, item.time_ns);

			if (due)
				pacer_sample_burst_take(&burst, &rng, item.time_ns, &item);
			seq += due ? 2 : 0;
			ticks += c ? 0 : 2;
			assert_true(burst.seq == seq && burst.ticks == ticks);
		}
		copy = burst;
		copy.count = 0;
		got = pacer_sample_burst_draw(&copy, &rng, item.time_ns, out);
		assert_int_equal(got, item.time_ns > 1 ? 8 : 0);
		for (uint32_t j = 0; j < got; j++) {
			assert_true(out[j].time_ns < item.time_ns);
			assert_true(item.time_ns - out[j].time_ns < 5);
		}
	}
}

/* n is within its bounds, and mean is its mean, at every moment of a window that runs empty. */
static void test_number_of_elements(void **state)
{
	static const uint32_t counts[] = {5, 9, 2, 1, 1, 7, 3, 3, 2, 4, 1, 1, 2, 6};
	enum { BURSTS = 14, T0 = 12, RUNS = 4000 };
	double sum[T0 + 1] = {0}, most[T0 + 1] = {0};

	(void)state;
	for (uint32_t run = 0; run < RUNS; run++) {
		rng.state = run;
		assert_true(pacer_sample_burst_init(&burst, T0, 4));
		for (uint64_t tick = 1; tick <= BURSTS; tick++) {
			struct pacer_sample_item item = {.time_ns = tick};

			for (uint32_t c = 0; c < counts[tick - 1]; c++)
				pacer_sample_burst_add(&burst, &rng, tick, &item);
		}
		for (uint64_t t = 0; t <= T0; t++) {
			struct pacer_sample_size n = pacer_sample_burst_n(&burst, BURSTS + t);
			struct pacer_sample_window w =
			    pacer_sample_burst_window(&burst, BURSTS + t);
			uint64_t truth = 0;

			for (uint64_t tick = BURSTS + t - T0 + 1; tick <= BURSTS; tick++)
				truth += counts[tick - 1];
			assert_true(n.smallest <= truth && truth <= n.most && w.alpha <= w.beta);
			assert_true(n.smallest <= n.mean + 1 && n.mean <= n.most + 1);
			/* mean is rounded down: 3/8 is what that takes away at most, with k = 4. */
			sum[t] += n.mean - (double)truth;
			most[t] = w.alpha;
		}
	}
	for (uint64_t t = 0; t <= T0; t++) {
		double deviation = most[t] / (2 * sqrt(4)) / sqrt(RUNS);

		assert_true(sum[t] / RUNS < 6 * deviation + 1e-9);
		assert_true(sum[t] / RUNS > -6 * deviation - 0.75 - 1e-9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_short_series),
	    cmocka_unit_test(test_long_series),
	    cmocka_unit_test(test_bound_is_met),
	    cmocka_unit_test(test_more_than_the_bound),
	    cmocka_unit_test(test_samples_lie_in_their_buckets),
	    cmocka_unit_test(test_all_zero_is_off),
	    cmocka_unit_test(test_most_packets_only_count),
	    cmocka_unit_test(test_long_burst_is_cut),
	    cmocka_unit_test(test_a_copy_is_a_sample),
	    cmocka_unit_test(test_number_of_elements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
