/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * common/sample_merge.h: a merged sample is a uniform sample of the union, however unequal the
 * CPUs' windows are, and what an inexact n costs is what the header and estimate_merge_error say.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chi.h"
#include "estimate/estimator.h"
#include "sample_merge.h"
#include "sample_oracle.h"

#define PARTS 4
#define K_MAX 8

static struct pacer_sample_rng rng;

/* Elements are numbered through all parts; part i has the n[i] from first[i] on. */
struct cpus {
	const char *name;
	uint32_t n[PARTS];
	uint32_t k;
};

static const struct cpus rows[] = {
    {"equal", {6, 6, 6, 6}, 3},
    {"unequal", {1, 2, 5, 20}, 4},
    {"one idle", {9, 0, 3, 4}, 3},
    {"all but one idle", {0, 0, 12, 0}, 4},
    {"fewer than k on some", {1, 2, 3, 17}, 5},
    {"fewer than k in all", {1, 1, 0, 2}, 6},
};

static uint32_t total(const struct cpus *c)
{
	return c->n[0] + c->n[1] + c->n[2] + c->n[3];
}

/* A sample of each part, by a sampler of sequence windows. */
static void sample_parts(const struct cpus *c, bool wor, struct pacer_sample_part *part,
			 struct pacer_sample_item item[PARTS][PACER_SAMPLE_K])
{
	static struct pacer_sample_seq seq;
	static struct pacer_sample_seq_wor seq_wor;
	uint32_t id = 0;

	for (uint32_t i = 0; i < PARTS; i++) {
		uint32_t n = c->n[i], window = n ? n : 1;

		assert_true(pacer_sample_seq_init(&seq, window, c->k) &&
			    pacer_sample_seq_wor_init(&seq_wor, window, c->k));
		/* As many again before, which have left. */
		for (uint32_t e = 0; e < 2 * n; e++) {
			struct pacer_sample_item it = {.saddr = {e < n ? 1u << 31 : id++}};

			if (wor)
				pacer_sample_seq_wor_add(&seq_wor, &rng, &it);
			else
				pacer_sample_seq_add(&seq, &rng, &it);
		}
		part[i] = (struct pacer_sample_part){.n = n, .item = item[i]};
		part[i].k = wor ? pacer_sample_seq_wor_draw(&seq_wor, &rng, item[i])
				: pacer_sample_seq_draw(&seq, item[i]);
	}
}

/* Every element has the same chance in each place, and places 0 and 1 are independent. */
static void test_with_replacement(void **state)
{
	static struct pacer_sample_item item[PARTS][PACER_SAMPLE_K];
	struct pacer_sample_part part[PARTS];
	struct pacer_sample_item out[K_MAX];
	static struct tally each, pair;

	(void)state;
	for (const struct cpus *c = rows; c < rows + sizeof(rows) / sizeof(*rows); c++) {
		uint32_t n = total(c);

		tally_start(&each, n);
		tally_start(&pair, n * n);
		for (rng.state = 0; each.total < 40000; rng.state = rng.state * 3 + 1) {
			sample_parts(c, false, part, item);
			assert_int_equal(pacer_sample_merge(part, PARTS, &rng, c->k, out), c->k);
			for (uint32_t j = 0; j < c->k; j++)
				tally_add(&each, out[j].saddr[0]);
			tally_add(&pair, out[0].saddr[0] * n + out[1].saddr[0]);
		}
		assert_p("with replacement", c->name, tally_p(&each));
		assert_p("with replacement, pairs", c->name, tally_p(&pair));
	}
}

static uint32_t choose(uint32_t n, uint32_t k)
{
	double c = 1;

	for (uint32_t i = 0; i < k; i++)
		c = c * (n - i) / (i + 1);
	return (uint32_t)(c + 0.5);
}

static int by_id(const void *a, const void *b)
{
	const struct pacer_sample_item *x = a, *y = b;

	return (x->saddr[0] > y->saddr[0]) - (x->saddr[0] < y->saddr[0]);
}

/* Every element has the same chance in each place, and so has every set of two. */
static void test_without_replacement(void **state)
{
	static struct pacer_sample_item item[PARTS][PACER_SAMPLE_K];
	struct pacer_sample_part part[PARTS];
	struct pacer_sample_item out[K_MAX];
	static struct tally each, sets;

	(void)state;
	for (const struct cpus *c = rows; c < rows + sizeof(rows) / sizeof(*rows); c++) {
		uint32_t n = total(c), k = c->k < n ? c->k : n;

		tally_start(&each, n);
		tally_start(&sets, choose(n, 2));
		for (rng.state = 7; sets.total < 20000; rng.state = rng.state * 3 + 1) {
			sample_parts(c, true, part, item);
			assert_int_equal(pacer_sample_merge_wor(part, PARTS, &rng, c->k, out), k);
			tally_add(&each, out[k - 1].saddr[0]);
			qsort(out, 2, sizeof(*out), by_id);
			assert_true(out[0].saddr[0] < out[1].saddr[0] && out[1].saddr[0] < n);
			tally_add(&sets, choose(out[1].saddr[0], 2) + out[0].saddr[0]);
		}
		assert_p("without replacement", c->name, tally_p(&each));
		assert_p("without replacement, sets", c->name, tally_p(&sets));
	}
}

/* The faults that are near at hand: each CPU alike, and CPUs by the size of their samples. */
static void test_mutants_are_caught(void **state)
{
	static struct pacer_sample_item item[PARTS][PACER_SAMPLE_K];
	const struct cpus *c = &rows[1];
	struct pacer_sample_part part[PARTS];
	struct pacer_sample_item out[K_MAX];
	static struct tally each;

	(void)state;
	for (int mutant = 0; mutant < 2; mutant++) {
		tally_start(&each, total(c));
		for (rng.state = 0; each.total < 40000; rng.state = rng.state * 3 + 1) {
			sample_parts(c, mutant, part, item);
			for (uint32_t i = 0; i < PARTS; i++)
				part[i].n = mutant ? part[i].k : 1;
			pacer_sample_merge(part, PARTS, &rng, c->k, out);
			for (uint32_t j = 0; j < c->k; j++)
				tally_add(&each, out[j].saddr[0]);
		}
		assert_true(tally_p(&each) < P_MIN);
	}
}

/* The share of a part whose n is too large by 1 + e among others too small by 1 - e. */
static double off_by(double p, double e)
{
	return p * (1 + e) / (p * (1 + e) + (1 - p) * (1 - e)) - p;
}

static void test_error_of_inexact_counts(void **state)
{
	const uint64_t none[] = {0, 0}, one[] = {5, 0};

	(void)state;
	/* One CPU alone: its share is all, however many it has. */
	assert_true(estimate_merge_error(none, one, one, 2) < 1e-12);
	for (double e = 0.01; e < 1; e += 0.07) {
		double bound = (1 - sqrt(1 - e * e)) / e, worst = 0;

		for (double p = 0.0005; p < 1; p += 0.0005)
			worst = fmax(worst, off_by(p, e));
		assert_true(worst <= bound + 1e-12 && worst > bound - 1e-4);
	}
	for (uint32_t run = 0; run < 2000; run++) {
		uint64_t truth[3], smallest[3], mean[3], most[3];
		double n = 0, counted = 0, over = 0;

		rng.state = run;
		for (int i = 0; i < 3; i++) {
			smallest[i] = pacer_sample_below(&rng, 50);
			truth[i] = smallest[i] + pacer_sample_below(&rng, 20);
			mean[i] = smallest[i] + pacer_sample_below(&rng, 20);
			most[i] = smallest[i] + 20;
			n += truth[i];
			counted += mean[i];
		}
		if (n == 0 || counted == 0)
			continue;
		for (int i = 0; i < 3; i++)
			over += fmax(0, mean[i] / counted - truth[i] / n);
		assert_true(over <= estimate_merge_error(smallest, mean, most, 3) + 1e-12);
		assert_true(estimate_merge_error(truth, truth, truth, 3) < 1e-12);
	}
}

/* What is chosen with an inexact n is off by no more than the bound: counted, not computed. */
static void test_inexact_counts_are_within_the_bound(void **state)
{
	static struct pacer_sample_item item[PARTS][PACER_SAMPLE_K];
	const struct cpus c = {"halves", {10, 10, 0, 0}, 4};
	struct pacer_sample_part part[PARTS];
	struct pacer_sample_item out[K_MAX];
	uint32_t first = 0, all = 0;

	(void)state;
	for (rng.state = 0; all < 80000; all += c.k, rng.state = rng.state * 3 + 1) {
		sample_parts(&c, false, part, item);
		part[0].n = 12; /* e = 0.2 */
		part[1].n = 8;
		pacer_sample_merge(part, PARTS, &rng, c.k, out);
		for (uint32_t j = 0; j < c.k; j++)
			first += out[j].saddr[0] < 10;
	}
	assert_true((double)first / all - 0.5 < (1 - sqrt(1 - 0.04)) / 0.2 + 0.01);
	assert_true((double)first / all - 0.5 > 0.09);
}

/*
 * Without replacement no item is there twice, and all have the same chance where each part has its
 * whole window, whatever the counts say.
 */
static void test_inexact_counts_without_replacement(void **state)
{
	uint32_t first = 0;

	(void)state;
	for (uint32_t run = 0; run < 1000; run++) {
		struct pacer_sample_item item[2][4] = {
		    {{.saddr = {0}}, {.saddr = {1}}},
		    {{.saddr = {2}}, {.saddr = {3}}, {.saddr = {4}}, {.saddr = {5}}}};
		struct pacer_sample_part part[2] = {{.n = 100, .k = 2, .item = item[0]},
						    {.n = 1, .k = 4, .item = item[1]}};
		struct pacer_sample_item out[4];
		uint32_t seen = 0;

		rng.state = run * 7919;
		assert_int_equal(pacer_sample_merge_wor(part, 2, &rng, 4, out), 4);
		for (uint32_t j = 0; j < 4; j++)
			seen |= 1u << out[j].saddr[0];
		assert_int_equal(__builtin_popcount(seen), 4);
		first += seen & 1;
	}
	assert_in_range(first, 600, 733); /* two thirds */
}

static void test_empty(void **state)
{
	struct pacer_sample_part part[2] = {{0, 0, NULL}, {0, 0, NULL}};
	struct pacer_sample_item out[1];

	(void)state;
	assert_int_equal(pacer_sample_merge(part, 2, &rng, 1, out), 0);
	assert_int_equal(pacer_sample_merge_wor(part, 2, &rng, 1, out), 0);
	assert_int_equal(pacer_sample_merge(part, 0, &rng, 1, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_with_replacement),
	    cmocka_unit_test(test_without_replacement),
	    cmocka_unit_test(test_mutants_are_caught),
	    cmocka_unit_test(test_error_of_inexact_counts),
	    cmocka_unit_test(test_inexact_counts_are_within_the_bound),
	    cmocka_unit_test(test_inexact_counts_without_replacement),
	    cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
