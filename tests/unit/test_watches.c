/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * common/estimate.h: what a place counts from its element on, step by step beside what a list of
 * all elements says. That the estimates made of it have the true mean is shown by test_estimate.c.
 */
#include <stdbool.h>

#include "oracle.h"

#include "estimate.h"

#define PLACES 6
#define STEPS  4000

/* ---- occurrences ---- */

static struct pacer_estimate_key entry[PLACES + 1];
static uint32_t heads[64];

/* Keys come and are held in places at random: few chains, so that they are long. */
static void test_occurrences(void **unused)
{
	struct pacer_estimate_ref ref[PLACES] = {{0, 0}};
	uint64_t of[PLACES] = {0};
	uint32_t times[PLACES] = {0};
	struct pacer_estimate_counts c;

	(void)unused;
	oracle_seed(81);
	memset(entry, 0, sizeof(entry));
	memset(heads, 0, sizeof(heads));
	pacer_estimate_counts_init(&c, entry, PLACES, heads, 2, 5);
	for (uint32_t i = 0; i < STEPS; i++) {
		uint64_t key = draw() % 9;

		pacer_estimate_seen(&c, key);
		for (uint32_t p = 0; p < PLACES; p++) {
			if (draw() % 8 == 0) {
				pacer_estimate_hold(&c, &ref[p], key);
				of[p] = key;
				times[p] = 1;
			} else {
				times[p] += times[p] && of[p] == key;
			}
			if (times[p])
				assert_int_equal(pacer_estimate_r(&c, &ref[p]), times[p]);
		}
	}
}

/* Nobody who does not know the seed can make keys that meet in one chain. */
static void test_chains(void **unused)
{
	struct pacer_estimate_counts a, b;
	uint32_t same = 0;

	(void)unused;
	pacer_estimate_counts_init(&a, entry, 0, heads, 64, 1);
	pacer_estimate_counts_init(&b, entry, 0, heads, 64, 2);
	for (uint64_t key = 0; key < 64; key++)
		same += pacer_estimate_chain(&a, key) == pacer_estimate_chain(&b, key);
	assert_true(same < 10);
}

static void test_empty(void **unused)
{
	static struct pacer_sample_skip skip;
	uint16_t place[PACER_SAMPLE_K];

	(void)unused;
	assert_true(pacer_sample_skip_init(&skip, 9, PACER_SAMPLE_K));
	assert_int_equal(pacer_estimate_seq_draw(&skip, place), 0);
}

/* The places to which an item went are listed, of whichever of the two lists, and no others. */
static void test_stored(void **unused)
{
	static struct pacer_sample_skip skip;
	struct pacer_sample_rng rng = {7};
	uint32_t of_list[2] = {0, 0};

	(void)unused;
	assert_true(pacer_sample_skip_init(&skip, 9, 5));
	for (uint32_t i = 0; i < 200; i++) {
		struct pacer_sample_item item = {0};
		uint16_t stored[PACER_SAMPLE_K];
		uint32_t got, there = 0;

		if (!pacer_sample_skip_due(&skip))
			continue;
		got = pacer_estimate_seq_take(&skip, &rng, &item, stored);
		for (uint32_t p = 0; p < PACER_ESTIMATE_SEQ_PLACES; p++)
			there +=
			    skip.seq.X[p / PACER_SAMPLE_K][p % PACER_SAMPLE_K].index == skip.seq.N;
		assert_int_equal(got, there);
		for (uint32_t j = 0; j < got; j++) {
			uint32_t list = stored[j] / PACER_SAMPLE_K;

			assert_true(skip.seq.X[list][stored[j] % PACER_SAMPLE_K].index ==
				    skip.seq.N);
			of_list[list]++;
		}
	}
	assert_true(of_list[0] && of_list[1]);
}

/* ---- triangles ---- */

struct seen {
	uint64_t end[2];
	uint8_t side[16]; /* of each vertex */
	bool on;
};

static struct pacer_estimate_watch watch[PLACES];
static struct pacer_estimate_link links[3 * PLACES + 1];
static struct pacer_estimate_watches watches = {
    .watch = watch, .link = links, .head = heads, .mask = 3, .classes = 2, .seed = 7};

/* What the edge says to those who wait: their own again, or a vertex beside one of their ends. */
static void see(struct seen *s, uint64_t x, uint64_t y)
{
	for (uint32_t i = 0; i < 2 && s->on; i++) {
		if ((x == s->end[i] && y == s->end[!i]) || x == y)
			s->on = x == y;
		else if (x == s->end[i])
			s->side[y] |= i ? PACER_ESTIMATE_B : PACER_ESTIMATE_A;
		else if (y == s->end[i])
			s->side[x] |= i ? PACER_ESTIMATE_B : PACER_ESTIMATE_A;
	}
}

static void same_as(const struct pacer_estimate_watch *p, const struct seen *s)
{
	uint32_t of_class = 0, closed = 0;

	assert_int_equal(p->on, s->on);
	for (uint64_t v = 0; v < 16 && s->on; v++) {
		bool mine = s->side[v] && pacer_estimate_class(&watches, v) == p->class;

		of_class += mine;
		closed += mine && s->side[v] == PACER_ESTIMATE_BOTH;
	}
	assert_int_equal(p->more, s->on && of_class > PACER_ESTIMATE_SLOTS);
	if (!p->more)
		assert_int_equal(pacer_estimate_closed(p), closed);
}

/* A few vertices, so that edges repeat, and few chains, so that all kinds of links share them. */
static void test_triangles(void **unused)
{
	static struct seen seen[PLACES];
	struct pacer_sample_rng rng = {82};
	uint32_t full = 0, closed = 0;

	(void)unused;
	oracle_seed(82);
	memset(heads, 0, sizeof(heads));
	for (uint32_t i = 0; i < 10 * STEPS; i++) {
		uint32_t n = i % 2000 < 1000 ? 6 : 16;
		uint64_t x = draw() % n, y = draw() % n;

		pacer_estimate_edge_seen(&watches, x, y);
		for (uint32_t p = 0; p < PLACES; p++) {
			see(&seen[p], x, y);
			if (seen[p].on)
				same_as(&watch[p], &seen[p]);
			assert_int_equal(watch[p].on, seen[p].on);
			if (!seen[p].on)
				assert_int_equal(pacer_estimate_closed(&watch[p]), 0);
			full += watch[p].more;
			closed += pacer_estimate_closed(&watch[p]);
			if (draw() % 64)
				continue;
			pacer_estimate_watch_edge(&watches, &rng, p, x, y);
			seen[p] = (struct seen){.end = {x, y}, .on = x != y};
		}
	}
	assert_true(full > 100 && closed > 100);
}

/* Classes are of about one size, whatever the vertices, and others under another seed. */
static void test_classes(void **unused)
{
	struct pacer_estimate_watches a = {.classes = 4, .seed = 1}, b = {.classes = 4, .seed = 2};
	uint32_t of[4] = {0}, same = 0;

	(void)unused;
	for (uint64_t v = 0; v < 4000; v++) {
		of[pacer_estimate_class(&a, 4 * v)]++;
		same += pacer_estimate_class(&a, 4 * v) == pacer_estimate_class(&b, 4 * v);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_true(of[i] > 850 && of[i] < 1150);
	assert_true(same > 850 && same < 1150);
}

/* ---- elements of a time window, steps ---- */

static void test_ticks(void **unused)
{
	static struct pacer_estimate_ticks c;
	static uint64_t at[STEPS];
	uint64_t tick = 0, latest = 0;

	(void)unused;
	oracle_seed(83);
	c.t0 = 5;
	for (uint32_t i = 0; i < STEPS; i++) {
		uint64_t n = 0, back = draw() % 16 ? 0 : draw() % 3;

		tick += draw() % 8 ? draw() % 2 : draw() % 7;
		back = back < tick ? tick - back : tick;
		latest = back > latest ? back : latest; /* as one that runs backwards counts */
		pacer_estimate_ticks_add(&c, back);
		at[i] = latest;
		assert_true(c.tick == latest);
		for (uint32_t k = 0; k <= i; k++)
			n += c.tick - at[k] < c.t0;
		assert_true(c.n == n);
		pacer_estimate_ticks_to(&c, c.tick);
		assert_true(c.n == n);
	}
	pacer_estimate_ticks_to(&c, c.tick + 5);
	assert_true(c.n == 0);
}

/* How often each window is drawn: in proportion to its elements and to what the weight falls by. */
static void test_steps(void **unused)
{
	const struct pacer_estimate_step none[2] = {{5, 0}, {1, 0}};
	const struct pacer_estimate_step step[3] = {{6, 10}, {2, 20}, {1, 60}};
	const struct pacer_estimate_step two[3] = {{3, 0}, {2, 1}, {1, 1}};
	struct pacer_sample_rng rng = {84};
	uint32_t of[4] = {0}, of_two[4] = {0}, runs = 120000;

	(void)unused;
	assert_int_equal(pacer_estimate_step(none, 2, &rng), 2);
	for (uint32_t i = 0; i < runs; i++)
		of[pacer_estimate_step(step, 3, &rng)]++;
	/* 40, 20 and 60 of 120 */
	assert_true(of[0] > 39000 && of[0] < 41000);
	assert_true(of[1] > 19000 && of[1] < 21000);
	assert_int_equal(of[3], 0);
	for (uint32_t i = 0; i < 1000; i++)
		of_two[pacer_estimate_step(two, 3, &rng)]++;
	assert_int_equal(of_two[0] + of_two[3], 0);
	assert_true(of_two[1] > 400 && of_two[2] > 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_occurrences), cmocka_unit_test(test_chains),
	    cmocka_unit_test(test_empty),	cmocka_unit_test(test_stored),
	    cmocka_unit_test(test_triangles),	cmocka_unit_test(test_classes),
	    cmocka_unit_test(test_ticks),	cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
