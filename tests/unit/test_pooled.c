/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * user/estimate/pooled.c, on samples that the packet path's samplers draw of made streams on
 * several CPUs, with fixed seeds: over many runs the mean is the exact value, no interval misses it
 * more often than stated, and a planted fault is seen.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chi.h"
#include "estimate/pooled.h"
#include "sample_merge.h"
#include "sampler.h"

#define CPUS   3
#define LENGTH 1500
#define KEYS   2048
#define RUNS   120
#define DELTA  0.05
#define SIGMAS 5.5 /* a true mean is farther off once in 26 million */

static struct pacer_sample_rng rng;

static uint64_t below(uint64_t n)
{
	return pacer_sample_below(&rng, n);
}

/* ---- Streams ---------------------------------------------------------------------------------
 */

static uint32_t uniform(uint32_t i)
{
	(void)i;
	return below(20);
}

static uint32_t zipf(uint32_t i)
{
	(void)i;
	return KEYS / (1 + below(KEYS));
}

static uint32_t flood(uint32_t i)
{
	return below(10) < 3 ? 1 : i;
}

static uint32_t single(uint32_t i)
{
	return i;
}

static uint32_t one(uint32_t i)
{
	(void)i;
	return 7;
}

static uint32_t by_key(uint32_t key)
{
	return key * 2654435761u % CPUS;
}

static uint32_t by_chance(uint32_t key)
{
	(void)key;
	return below(10) < 7 ? 0 : below(20) ? 1 : 2;
}

static const struct {
	const char *name;
	uint32_t (*key)(uint32_t i);
	uint32_t (*cpu)(uint32_t key);
} streams[] = {
    {"uniform, of any CPU", uniform, by_chance},
    {"uniform, a key's CPU", uniform, by_key},
    {"Zipf, of any CPU", zipf, by_chance},
    {"Zipf, a key's CPU", zipf, by_key},
    {"a flood over one source", flood, by_chance},
    {"single-packet sources", single, by_key},
    {"one source", one, by_chance},
};

#define FOR_EACH_STREAM(i) for (uint32_t i = 0; i < sizeof(streams) / sizeof(*streams); i++)

static struct element {
	uint32_t key, cpu;
} stream[LENGTH];

static void make(uint32_t which)
{
	rng.state = 100 + which;
	for (uint32_t i = 0; i < LENGTH; i++) {
		stream[i].key = streams[which].key(i);
		stream[i].cpu = streams[which].cpu(stream[i].key);
	}
}

/* ---- Samples of them -------------------------------------------------------------------------
 */

static const struct pacer_sampling forms[] = {
    {.id = 1, .k = 64, .form = PACER_SAMPLE_TIME, .window = 60, .tick_shift = 4},
    {.id = 1, .k = 33, .form = PACER_SAMPLE_TIME, .window = 30, .tick_shift = 5},
    {.id = 1, .k = 40, .form = PACER_SAMPLE_LAST, .window = 400},
    {.id = 1, .k = 64, .form = PACER_SAMPLE_LAST, .window = 50},
};

#define FOR_EACH_FORM(i) for (uint32_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)

struct drawn {
	struct pooled_part part[CPUS];
	uint64_t key[CPUS][PACER_SAMPLE_K];
	struct pacer_sample_item item[CPUS][PACER_SAMPLE_K];
};

static struct pacer_sampler *samplers[CPUS];

static void feed(const struct pacer_sampling *by, uint64_t seed)
{
	for (uint32_t c = 0; c < CPUS; c++) {
		memset(samplers[c], 0, sizeof(*samplers[c]));
		pacer_sampler_init(samplers[c], seed * CPUS + c);
	}
	for (uint32_t i = 0; i < LENGTH; i++) {
		struct pacer_sample_item item = {.time_ns = i, .saddr = {stream[i].key}};
		struct pacer_sampler *s = samplers[stream[i].cpu];

		if (pacer_sampler_due(s, by, i))
			pacer_sampler_take(s, by, &item);
	}
}

static void shuffle(uint64_t *key, uint32_t k)
{
	for (uint32_t j = k; j > 1; j--) {
		uint32_t i = below(j);
		uint64_t swap = key[i];

		key[i] = key[j - 1];
		key[j - 1] = swap;
	}
}

static void draw(const struct pacer_sampling *by, uint64_t seed, struct drawn *d)
{
	uint64_t tick = pacer_sampler_tick_of(by, LENGTH - 1);

	feed(by, seed);
	rng.state = seed;
	for (uint32_t c = 0; c < CPUS; c++) {
		struct pooled_part *p = &d->part[c];

		p->n = pacer_sampler_n(samplers[c], by, tick);
		p->k = p->n ? pacer_sampler_draw(samplers[c], by, &rng, tick, d->item[c]) : 0;
		p->key = d->key[c];
		for (uint32_t j = 0; j < p->k; j++)
			d->key[c][j] = d->item[c][j].saddr[0];
		shuffle(d->key[c], p->k);
	}
}

/* ---- The truth -------------------------------------------------------------------------------
 */

struct truth {
	uint64_t n, of[CPUS];
	uint32_t k[CPUS];
	double times[KEYS], cpu[CPUS][KEYS];
	double f2, f3, entropy, single;
};

static bool in_window(const struct pacer_sampling *by, uint32_t i)
{
	uint32_t after = 0;

	if (by->form == PACER_SAMPLE_TIME)
		return ((LENGTH - 1) >> by->tick_shift) - (i >> by->tick_shift) < by->window;
	for (uint32_t j = i + 1; j < LENGTH; j++)
		after += stream[j].cpu == stream[i].cpu;
	return after < by->window;
}

/* The chance that a sample's key is that of no other sample: with replacement. */
static double alone(const struct truth *t, uint32_t key)
{
	double sum = 0;

	for (uint32_t c = 0; c < CPUS; c++) {
		double none = t->cpu[c][key] / (double)t->n;

		for (uint32_t d = 0; d < CPUS && none > 0; d++)
			if (t->of[d])
				none *=
				    pow(1 - t->cpu[d][key] / (double)t->of[d], t->k[d] - (c == d));
		sum += none;
	}
	return sum;
}

static void know(const struct pacer_sampling *by, struct truth *t)
{
	*t = (struct truth){0};
	for (uint32_t i = 0; i < LENGTH; i++) {
		if (!in_window(by, i))
			continue;
		t->n++;
		t->of[stream[i].cpu]++;
		t->times[stream[i].key]++;
		t->cpu[stream[i].cpu][stream[i].key]++;
	}
	for (uint32_t c = 0; c < CPUS; c++)
		t->k[c] = by->k;
	for (uint32_t x = 0; x < KEYS; x++) {
		double share = t->times[x] / (double)t->n;

		t->f2 += pow(t->times[x], 2);
		t->f3 += pow(t->times[x], 3);
		t->entropy -= share > 0 ? share * log2(share) : 0;
		t->single += share > 0 ? alone(t, x) : 0;
	}
}

/* ---- Many runs -------------------------------------------------------------------------------
 */

struct mean {
	uint32_t n;
	double sum, squares;
};

static void mean_add(struct mean *m, double x)
{
	m->n++;
	m->sum += x;
	m->squares += x * x;
}

static double variance(const struct mean *m)
{
	return fmax(0, m->squares - m->sum * m->sum / m->n) / (m->n - 1);
}

/* In how many sigmas it is off. */
static double off(const struct mean *m, double truth)
{
	double far = fabs(m->sum / m->n - truth), sigma = sqrt(variance(m) / m->n);

	return far <= 1e-9 * truth ? 0 : sigma > 0 ? far / sigma : INFINITY;
}

static void assert_mean(const char *what, const char *where, const struct mean *m, double truth)
{
	if (off(m, truth) > SIGMAS)
		fail_msg("%s, %s: the mean is %g, not %g: %.1f sigmas", what, where, m->sum / m->n,
			 truth, off(m, truth));
}

/* More misses than these have a chance of 1e-6. */
static uint32_t misses_max(void)
{
	double tail = 1, p = pow(1 - DELTA, RUNS);
	uint32_t c;

	for (c = 0; tail > 1e-6; c++) {
		tail -= p;
		p *= (double)(RUNS - c) / (c + 1) * DELTA / (1 - DELTA);
	}
	return c;
}

static bool misses(const struct pooled_value *v, double truth)
{
	double slack = 1e-9 * fabs(truth) + 1e-12;

	assert_true(v->low <= v->high);
	return truth < v->low - slack || truth > v->high + slack;
}

enum quantity { F2, F3, H2, ENTROPY, SINGLE, SHARES, QUANTITIES };

static const char *const names[] = {"F2", "F3", "H2", "entropy", "single", "shares"};

static bool misses_share(const struct pooled *p, const struct drawn *d, const struct truth *t)
{
	struct pooled_key key[CPUS * PACER_SAMPLE_K];
	uint32_t n = pooled_keys(p, DELTA, key, CPUS * PACER_SAMPLE_K);
	bool missed = false;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t x = d->key[key[i].part][key[i].item];

		assert_true(!i || key[i].share.value <= key[i - 1].share.value);
		missed |= misses(&key[i].share, t->times[x] / (double)t->n);
	}
	return missed;
}

struct runs {
	uint32_t missed[QUANTITIES];
	struct mean f2, f3, single;
};

static void add_run(struct runs *r, const struct drawn *d, bool wor, const struct truth *t)
{
	struct pooled *p = pooled_open(d->part, CPUS, wor);
	struct pooled_values v = pooled_read(p, 2, DELTA), third = pooled_read(p, 3, DELTA);

	assert_int_equal(v.n, t->n);
	r->missed[F2] += misses(&v.moment, t->f2);
	r->missed[F3] += misses(&third.moment, t->f3);
	r->missed[H2] += misses(&v.h2, -log2(t->f2 / pow((double)t->n, 2)));
	r->missed[ENTROPY] += misses(&v.entropy, t->entropy);
	r->missed[SINGLE] += !wor && misses(&v.single, t->single);
	r->missed[SHARES] += misses_share(p, d, t);
	mean_add(&r->f2, v.moment.value);
	mean_add(&r->f3, third.moment.value);
	mean_add(&r->single, v.single.value);
	pooled_close(p);
}

static void check_runs(const struct runs *r, bool wor, const char *where, const struct truth *t)
{
	assert_mean("F2", where, &r->f2, t->f2);
	assert_mean("F3", where, &r->f3, t->f3);
	if (!wor)
		assert_mean("single", where, &r->single, t->single);
	for (int q = 0; q < QUANTITIES; q++)
		if (r->missed[q] > misses_max())
			fail_msg("%s: %s lies outside its bounds in %u of %u runs", where, names[q],
				 r->missed[q], RUNS);
}

static void test_bounds_and_means(void **state)
{
	static struct drawn d;
	static struct truth t;

	(void)state;
	FOR_EACH_STREAM(s)
	{
		make(s);
		FOR_EACH_FORM(f)
		{
			bool wor = forms[f].form == PACER_SAMPLE_LAST;
			struct runs r = {0};

			know(&forms[f], &t);
			for (uint32_t run = 1; run <= RUNS; run++) {
				draw(&forms[f], run, &d);
				add_run(&r, &d, wor, &t);
			}
			check_runs(&r, wor, streams[s].name, &t);
		}
	}
}

static double f2_of(const struct pooled_part *part, uint32_t parts)
{
	struct pooled *p = pooled_open(part, parts, false);
	double f2 = pooled_read(p, 2, DELTA).moment.value;

	pooled_close(p);
	return f2;
}

/* A planted fault: CPUs count the same, whatever they saw. */
static void test_equal_weights_are_seen(void **state)
{
	static struct drawn d;
	static struct truth t;
	struct mean m = {0};

	(void)state;
	make(0);
	for (uint32_t i = 0; i < LENGTH; i++) /* the smallest one has a key of its own */
		if (stream[i].cpu == 2)
			stream[i].key = 999;
	know(&forms[0], &t);
	for (uint32_t run = 1; run <= RUNS; run++) {
		draw(&forms[0], run, &d);
		for (uint32_t c = 0; c < CPUS; c++)
			d.part[c].n = t.n / CPUS;
		mean_add(&m, f2_of(d.part, CPUS));
	}
	assert_true(off(&m, t.f2) > SIGMAS);
}

/* F2 of one sample of all CPUs. */
static double merged(const struct drawn *d)
{
	struct pacer_sample_item out[PACER_SAMPLE_K];
	struct pacer_sample_part part[CPUS];
	uint64_t key[PACER_SAMPLE_K], n = 0;

	for (uint32_t c = 0; c < CPUS; c++) {
		part[c] = (struct pacer_sample_part){d->part[c].n, d->part[c].k,
						     (struct pacer_sample_item *)d->item[c]};
		n += part[c].n;
	}
	assert_int_equal(pacer_sample_merge(part, CPUS, &rng, PACER_SAMPLE_K, out), PACER_SAMPLE_K);
	for (uint32_t j = 0; j < PACER_SAMPLE_K; j++)
		key[j] = out[j].saddr[0];
	return f2_of(&(struct pooled_part){n, PACER_SAMPLE_K, key}, 1);
}

/* Keys by CPU, so that the three CPUs are of about one size. */
static void test_pooling_beats_merging(void **state)
{
	static struct drawn d;
	struct mean pool = {0}, merge = {0};

	(void)state;
	make(1);
	for (uint32_t run = 1; run <= 300; run++) {
		draw(&forms[0], run, &d);
		mean_add(&pool, f2_of(d.part, CPUS));
		mean_add(&merge, merged(&d));
	}
	print_message("variance of F2, pooled over merged: %.3f\n",
		      variance(&pool) / variance(&merge));
	assert_true(variance(&pool) < variance(&merge) / 3);
}

/* ---- Known ones ------------------------------------------------------------------------------
 */

static void assert_near(double got, double want)
{
	if (fabs(got - want) > 1e-9 * fmax(1, fabs(want)))
		fail_msg("%.12g, not %.12g", got, want);
}

static void assert_exact(const struct pooled_value *v, double want)
{
	assert_near(v->value, want);
	assert_near(v->low, want);
	assert_near(v->high, want);
}

static void test_whole_windows_are_exact(void **state)
{
	const uint64_t one_[] = {1, 1, 2}, two[] = {1, 3, 4, 4, 4};
	const struct pooled_part part[] = {{3, 3, one_}, {0, 0, NULL}, {5, 5, two}};
	struct pooled *p = pooled_open(part, 3, true);
	struct pooled_values v = pooled_read(p, 2, DELTA), fifth = pooled_read(p, 5, DELTA);
	struct pooled_key key[9];

	(void)state;
	assert_int_equal(v.n, 8);
	assert_int_equal(v.distinct, 4);
	assert_exact(&v.moment, 20);
	assert_exact(&fifth.moment, 488);
	assert_exact(&v.h2, log2(64 / 20.0));
	assert_exact(&v.entropy, 2 * .375 * log2(8 / 3.0) + 2 * .125 * 3);
	assert_exact(&v.single, .25);
	assert_int_equal(pooled_keys(p, DELTA, key, 9), 4);
	assert_int_equal(key[0].part, 0);
	assert_int_equal(key[0].times, 3);
	assert_exact(&key[0].share, .375);
	assert_int_equal(pooled_keys(p, DELTA, key, 1), 1);
	pooled_close(p);
}

/* By hand: weights 1/4 and 3/4; pairs within: 1/3 and 1/1; across: of 3 x 2, two. */
static void test_coincidences_by_hand(void **state)
{
	const uint64_t one_[] = {1, 1, 2}, two[] = {2, 2}, six[] = {1, 1, 1, 2, 2, 5};
	const struct pooled_part part[] = {{100, 3, one_}, {300, 2, two}}, alone_ = {100, 6, six};
	struct pooled *p = pooled_open(part, 2, false);
	double c = 1 / 16. / 3 + 9 / 16. + 2 * 3 / 16. * 2 / 6;

	(void)state;
	assert_near(pooled_read(p, 2, DELTA).moment.value, 160000 * c);
	assert_near(pooled_read(p, 2, DELTA).h2.value, -log2(c));
	assert_near(pooled_read(p, 1, DELTA).moment.low, 400);
	assert_true(isnan(pooled_read(p, 3, DELTA).moment.value));
	assert_near(pooled_read(p, 2, DELTA).worth, 2 / .75);
	pooled_close(p);
	p = pooled_open(&alone_, 1, false); /* 3 + 1 of 15 pairs agree, and 1 of 20 triples */
	assert_near(pooled_read(p, 2, DELTA).moment.value, 1e4 * 4 / 15);
	assert_near(pooled_read(p, 3, DELTA).moment.value, 1e6 / 20);
	pooled_close(p);
}

static void fill(uint64_t key[64], uint64_t step)
{
	for (uint32_t j = 0; j < 64; j++)
		key[j] = j * step;
}

/* What 64 samples tell of many keys, and of one; and of four CPUs' that are alike. */
static void test_what_samples_can_tell(void **state)
{
	uint64_t key[4][64];
	struct pooled_part part[4];
	struct pooled_values v;
	struct pooled *p;

	(void)state;
	for (uint32_t c = 0; c < 4; c++) {
		fill(key[c], 1);
		for (uint32_t j = 0; j < 64; j++)
			key[c][j] += 64 * c;
		part[c] = (struct pooled_part){250000, 64, key[c]};
	}
	p = pooled_open(part, 1, false);
	v = pooled_read(p, 2, DELTA);
	assert_true(isnan(v.h2.value));
	assert_true(v.entropy.low > 5.3 && v.entropy.high == log2(250000));
	pooled_close(p);
	p = pooled_open(part, 4, false);
	v = pooled_read(p, 2, DELTA);
	assert_true(v.entropy.low > 8 && v.worth == 256);
	pooled_close(p);
	fill(key[0], 0);
	p = pooled_open(part, 1, false);
	v = pooled_read(p, 2, DELTA);
	assert_near(v.h2.value, 0);
	assert_true(v.h2.high < .4 && v.entropy.low == 0 && v.entropy.high < 3.5);
	pooled_close(p);
}

/* The divergence at which terms of at most `most` with this sum and mean are told apart. */
static double told_apart(double terms, double most, double sum, double mean)
{
	double p = sum / (terms * most), u = mean / (terms * most);

	return terms * (p * log(p / u) + (1 - p) * log((1 - p) / (1 - u)));
}

/* A key's bounds are where its weights would be by as small a chance as the header says, of CPUs
 * that weigh differently, and no closer or wider ones. */
static void test_bounds_of_keys(void **state)
{
	uint64_t key[2][64];
	const struct pooled_part part[] = {{900000, 64, key[0]}, {100000, 32, key[1]}};
	double b = .9 / 64, terms = 96;
	struct pooled_key out[4];
	struct pooled *p;
	uint32_t n;

	(void)state;
	for (uint32_t j = 0; j < 64;
	     j++) { /* half of them; a quarter; three of one CPU; the rest */
		key[0][j] = j % 2 ? 1 : j % 4 ? 2 : 4;
		key[1][j] = j < 3 ? 3 : 4;
	}
	p = pooled_open(part, 2, false);
	n = pooled_keys(p, DELTA, out, 4);
	assert_int_equal(n, 4);
	for (uint32_t i = 0; i < n; i++) {
		const struct pooled_value *v = &out[i].share;

		assert_true(v->low < v->value && v->value < v->high && v->high < 1);
		assert_near(told_apart(terms, b, v->value, v->high), log(2 / (DELTA * v->high)));
		if (v->value <
		    b) /* less than a sample of the other CPU: it may be next to nothing */
			assert_near(v->low, 1e-6);
		else
			assert_near(told_apart(terms, b, v->value, v->low),
				    log(2 / (DELTA * v->low)));
	}
	assert_true(out[3].share.value < b);
	pooled_close(p);
}

/* The entropy is at most that of the first half's keys, and of all others as far apart as can be.
 */
static void test_entropy_by_hand(void **state)
{
	uint64_t key[64];
	const struct pooled_part part = {1000000, 64, key};
	double unseen = 2 / 32., g = unseen, high = 1;
	struct pooled *p;

	(void)state;
	for (uint32_t j = 0; j < 64; j++) /* two keys, and two more that only the second half has */
		key[j] = j < 62 ? j % 2 : j;
	for (int i = 0; i < 60; i++) {
		double m = (g + high) / 2;

		if (told_apart(32, 1 / 32., unseen, m) < log(9 / DELTA)) /* one of nine events */
			g = m;
		else
			high = m;
	}
	p = pooled_open(&part, 1, false);
	assert_near(pooled_read(p, 2, DELTA).entropy.high,
		    (1 - g) * log2(2 / (1 - g)) + g * log2(1e6));
	pooled_close(p);
}

static void test_degenerate(void **state)
{
	const uint64_t key[] = {5};
	const struct pooled_part part[] = {{0, 0, NULL}, {9, 1, key}};
	struct pooled *none = pooled_open(part, 1, false), *single_ = pooled_open(part, 2, false);
	struct pooled *without = pooled_open(part, 2, true);
	struct pooled_values v = pooled_read(none, 2, DELTA);

	(void)state;
	assert_int_equal(v.n, 0);
	assert_int_equal(pooled_keys(none, DELTA, NULL, 0), 0);
	v = pooled_read(single_, 2, DELTA);
	assert_true(isnan(v.moment.value) && v.moment.low >= 9 && v.moment.high <= 81);
	assert_true(v.entropy.low <= v.entropy.high && v.entropy.high <= log2(9) + 1e-9);
	v = pooled_read(without, 2, DELTA); /* one of nine tells of no pair, either */
	assert_true(isnan(v.moment.value) && isnan(v.h2.value));
	assert_true(v.moment.low >= 9 && v.moment.high <= 81);
	pooled_close(none);
	pooled_close(single_);
	pooled_close(without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bounds_and_means),
	    cmocka_unit_test(test_equal_weights_are_seen),
	    cmocka_unit_test(test_pooling_beats_merging),
	    cmocka_unit_test(test_whole_windows_are_exact),
	    cmocka_unit_test(test_coincidences_by_hand),
	    cmocka_unit_test(test_what_samples_can_tell),
	    cmocka_unit_test(test_bounds_of_keys),
	    cmocka_unit_test(test_entropy_by_hand),
	    cmocka_unit_test(test_degenerate),
	};

	for (uint32_t c = 0; c < CPUS; c++)
		samplers[c] = aligned_alloc(64, sizeof(*samplers[c]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
