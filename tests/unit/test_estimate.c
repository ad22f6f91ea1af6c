/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * common/estimate.h, and user/estimate/estimator.c, track.c and exact.c on it. What is kept of a
 * stream is held against the stream, element by element; each estimate against the exact value of
 * the window, over many seeded runs: the truth may lie outside the stated interval no more often
 * than stated, the mean of the runs must be the truth, and planted faults must fail one of the two.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "chi.h"
#include "estimate.h"
#include "estimate/estimator.h"
#include "estimate/exact.h"
#include "estimate/track.h"
#include "sample_oracle.h"

#define LENGTH	1600 /* elements of a stream */
#define WINDOW	600  /* packets, or units of time */
#define SAMPLES 128
#define RUNS	100
#define SIGMAS	5.5 /* a true mean is farther off once in 26 million */

static struct pacer_sample_rng rng;

/* ---- Streams ----------------------------------------------------------------------------------
 */

struct element {
	uint64_t time, key, ends[2];
};

struct stream {
	const char *name;
	uint64_t (*key)(uint32_t i);
	uint64_t (*time)(uint32_t i);
	struct element at[LENGTH];
};

static uint64_t below(uint64_t n)
{
	return pacer_sample_below(&rng, n);
}

static uint64_t uniform(uint32_t i)
{
	(void)i;
	return below(50);
}

/* P(key >= x) = 1 / x. */
static uint64_t zipf(uint32_t i)
{
	(void)i;
	return (1 << 16) / (1 + below(1 << 16));
}

static uint64_t heavy(uint32_t i)
{
	return below(10) ? 1 : 1000 + i;
}

static uint64_t single(uint32_t i)
{
	return i;
}

static uint64_t one(uint32_t i)
{
	(void)i;
	return 7;
}

/* Keys that change with the window: what is old must not count. */
static uint64_t shifting(uint32_t i)
{
	return i / 400 * 1000 + below(4 + i / 400 * 8);
}

static uint64_t steady(uint32_t i)
{
	return i;
}

/* Bursts and pauses; the last packets come so late that most of the window is empty. */
static uint64_t bursts(uint32_t i)
{
	return i / 40 * 40 + (i > LENGTH - 90 ? 380 : 0);
}

static struct stream streams[] = {
    {.name = "uniform", .key = uniform, .time = steady},
    {.name = "Zipf", .key = zipf, .time = bursts},
    {.name = "one heavy source", .key = heavy, .time = steady},
    {.name = "single-packet sources", .key = single, .time = bursts},
    {.name = "one source", .key = one, .time = steady},
    {.name = "sources that change", .key = shifting, .time = bursts},
};

#define FOR_EACH_STREAM(s) \
	for (struct stream *s = streams; s < streams + sizeof(streams) / sizeof(*streams); s++)

static void make(struct stream *s, uint64_t seed)
{
	rng.state = seed;
	for (uint32_t i = 0; i < LENGTH; i++)
		s->at[i] = (struct element){.time = s->time(i), .key = s->key(i)};
}

static struct track *open_track(bool by_time, uint32_t samples, uint32_t classes, uint64_t seed)
{
	struct track_config config = {by_time, WINDOW, samples, classes, seed};
	struct track *t = track_open(&config);

	assert_non_null(t);
	return t;
}

static void add(struct track *t, const struct element *e, uint32_t index)
{
	struct pacer_sample_item item = {.time_ns = e->time, .saddr = {index}};

	track_add(t, &(struct track_element){e->time, e->key, {e->ends[0], e->ends[1]}, &item});
}

static bool active(const struct stream *s, bool by_time, uint32_t i, uint32_t last)
{
	return by_time ? s->at[last].time - s->at[i].time < WINDOW : last - i < WINDOW;
}

/* ---- What is kept -----------------------------------------------------------------------------
 */

static uint32_t later(const struct stream *s, uint32_t i, uint32_t last)
{
	uint32_t r = 0;

	for (uint32_t j = i; j <= last; j++)
		r += s->at[j].key == s->at[i].key;
	return r;
}

static void check_view(struct track *t, const struct stream *s, bool by_time, uint32_t last)
{
	const struct estimate_view *v = track_view(t, s->at[last].time);
	const struct pacer_sample_item *item = track_items(t, s->at[last].time);
	uint32_t n = 0;

	for (uint32_t i = 0; i <= last; i++)
		n += active(s, by_time, i, last);
	assert_int_equal(v->n, n);
	assert_int_equal(v->k, SAMPLES);
	for (uint32_t j = 0; j < v->k; j++) {
		uint32_t i = item[j].saddr[0];

		assert_true(i <= last && active(s, by_time, i, last));
		assert_int_equal(v->r[j], later(s, i, last));
	}
}

/* r and n are exact, at every moment of every stream. */
static void test_counts_are_exact(void **state)
{
	(void)state;
	FOR_EACH_STREAM(s)
	{
		make(s, 1);
		for (int by_time = 0; by_time < 2; by_time++) {
			struct track *t = open_track(by_time, SAMPLES, 0, 5);

			for (uint32_t i = 0; i < LENGTH; i++) {
				add(t, &s->at[i], i);
				if (i % 37 == 0 || i > LENGTH - 45)
					check_view(t, s, by_time, i);
			}
			track_close(t);
		}
	}
}

/* Entries are as many as places, and each is given back. */
static void test_counts_do_not_leak(void **state)
{
	enum { PLACES = 5 };
	struct pacer_estimate_key entry[PLACES + 1] = {0};
	struct pacer_estimate_ref ref[PLACES] = {0};
	struct pacer_estimate_counts c;
	uint32_t head[8] = {0}, used, in_use;

	(void)state;
	pacer_estimate_counts_init(&c, entry, PLACES, head, 8, 3);
	rng.state = 4;
	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t key = below(9);

		pacer_estimate_seen(&c, key);
		if (below(3))
			continue;
		pacer_estimate_hold(&c, &ref[below(PLACES)], key);
		used = in_use = 0;
		for (uint32_t p = 0; p < PLACES; p++)
			used += ref[p].entry != 0;
		for (uint32_t e = 1; e <= PLACES; e++)
			in_use += entry[e].refs;
		assert_int_equal(used, in_use);
	}
	for (uint32_t p = 0; p < PLACES; p++)
		pacer_estimate_release(&c, &ref[p]);
	for (uint32_t h = 0; h < 8; h++)
		assert_int_equal(head[h], 0);
	for (used = 0; c.free; c.free = entry[c.free].next)
		used++;
	assert_int_equal(used, PLACES);
}

static void test_ticks(void **state)
{
	static const uint64_t windows[] = {1, 2, 7, 1000, PACER_ESTIMATE_TICKS};
	static struct pacer_estimate_ticks c;
	static uint64_t at[3000];

	(void)state;
	rng.state = 9;
	for (int w = 0; w < 5; w++) {
		uint64_t tick = 1;

		memset(&c, 0, sizeof(c));
		c.t0 = windows[w];
		for (uint32_t i = 0; i < 3000; i++) {
			uint64_t n = 0;

			tick += below(200) ? below(3) : below(3 * windows[w]);
			at[i] = tick;
			pacer_estimate_ticks_add(&c, tick);
			for (uint32_t j = 0; j <= i; j++)
				n += tick - at[j] < windows[w];
			assert_int_equal(c.n, n);
		}
		pacer_estimate_ticks_to(&c, tick + windows[w] - 1);
		assert_true(c.n >= 1);
		pacer_estimate_ticks_to(&c, tick + windows[w]);
		assert_int_equal(c.n, 0);
	}
}

/* With time alone what is in a window by time leaves it; what came late left with the rest. */
static void test_silence(void **state)
{
	enum { EACH = 10 };
	struct track *t = open_track(true, SAMPLES, 0, 5);
	uint64_t tick_ns = track_tick_ns(t);
	uint32_t before = EACH + 1;

	(void)state;
	assert_int_equal(track_n(t, 1), 0);
	for (uint32_t i = 0; i < EACH; i++) /* one a tick */
		add(t, &(struct element){.time = 1000 + i * tick_ns, .key = i % 3}, i);
	add(t, &(struct element){.time = 1, .key = 7}, EACH); /* at the latest time seen */
	assert_int_equal(track_n(t, 0), EACH + 1);
	assert_int_equal(track_view(t, 0)->n, EACH + 1);
	assert_int_equal(track_view(t, 0)->k, SAMPLES);
	for (uint32_t i = 0; i < EACH; i++) {
		uint64_t now_ns = 1000 + WINDOW + i * tick_ns;
		uint32_t left = EACH - i - 1;

		left += i < EACH - 1;
		assert_int_equal(track_n(t, now_ns - 1), before);
		assert_int_equal(track_n(t, now_ns), left);
		assert_int_equal(track_view(t, now_ns)->n, left);
		assert_int_equal(!track_view(t, now_ns)->k, !left);
		before = left;
	}
	track_close(t);
}

/* ---- The estimators, alone --------------------------------------------------------------------
 */

/* Every position of a window as a sample: the mean is then no estimate, but the truth. */
static void test_means_are_the_truth(void **state)
{
	static uint32_t r[WINDOW];

	(void)state;
	FOR_EACH_STREAM(s)
	{
		struct exact *e = exact_open(WINDOW, 0);
		struct exact_values truth;
		struct estimate_view v = {.n = WINDOW, .k = WINDOW, .r = r, .most = WINDOW};

		make(s, 2);
		for (uint32_t i = 0; i < LENGTH; i++)
			assert_true(exact_add(e, i, s->at[i].key, s->at[i].ends));
		for (uint32_t i = 0; i < WINDOW; i++)
			r[i] = later(s, LENGTH - WINDOW + i, LENGTH - 1);
		for (uint32_t k = 1; k <= ESTIMATE_MOMENT_MAX; k++) {
			assert_true(exact_read(e, 0, k, false, &truth));
			assert_true(fabs(estimate_moment(&v, k, 0.1).value / truth.moment - 1) <
				    1e-12);
		}
		assert_true(fabs(estimate_entropy(&v, 0.1).value - truth.entropy) < 1e-9);
		assert_true(fabs(estimate_norm(&v, 0.1).value - truth.norm) < 1e-9 * WINDOW);
		exact_close(e);
	}
}

static void test_known_values(void **state)
{
	static const uint32_t ones[] = {1, 1, 1, 1};
	struct estimate_view v = {.n = 4, .k = 4, .r = ones, .most = 1}, none = {0};
	struct estimate e = estimate_moment(&v, 2, 0.05);
	uint64_t keys[] = {3, 1, 3, 2, 3, 1};

	(void)state;
	assert_true(e.value == 4 && e.low == 4 && e.high >= 4);
	assert_true(estimate_entropy(&v, 0.05).value == 2);
	assert_true(estimate_norm(&v, 0.05).value == 0);
	assert_true(estimate_moment(&v, 1, 0.05).high == 4 &&
		    estimate_moment(&v, 1, 0.05).prior == 0);
	assert_true(estimate_moment(&none, 2, 0.05).high == 0);
	assert_true(estimate_entropy(&none, 0.05).high == 0);
	assert_true(estimate_norm(&none, 0.05).high == 0);
	assert_int_equal(estimate_most(keys, 6), 3);
	assert_int_equal(estimate_most(keys, 0), 0);
	/* sqrt(k m^(1-1/k) / (K delta)) = sqrt(2 * 1000 / (4000 * 0.05)) */
	v = (struct estimate_view){.n = 1000000, .k = 4, .r = ones, .most = 1};
	assert_true(fabs(estimate_moment(&v, 2, 0.05).prior - 100) < 1e-9);
	assert_true(estimate_moment(&v, 2, 0.05).vacuous);
	assert_true(fabs(estimate_entropy(&v, 0.05).prior - 14.5136) < 1e-3);
}

/* Triangles of which enough samples know, and the same where some were not watched. */
static void test_dropped_triangles(void **unused)
{
	static uint32_t beta[1000];
	struct estimate_view v = {.n = 1000, .k = 1000, .beta = beta, .classes = 1, .beta_max = 1};

	(void)unused;
	for (size_t i = 0; i < 1000; i++)
		beta[i] = 1;
	assert_false(estimate_triangles(&v, 0.05).vacuous);
	v.beta_dropped = 1;
	assert_true(estimate_triangles(&v, 0.05).vacuous);
}

/* The interval is the formula's, written out: its terms alone are rarely what coverage hangs on. */
static void test_widths(void **state)
{
	enum { K = 10000 };
	static uint32_t r[K];
	struct estimate_view v = {.n = 1000, .k = K, .r = r, .most = 5000};
	double l = log(8 / 0.05), top = floor(1000 * estimate_share_max(5000, K, 0.05 / 4));
	double range = 1000 * (2 * top - 2), variance = 4e6 * K / (K - 1);
	double bernstein = sqrt(2 * variance * l / K) + 7 * range * l / (3 * (K - 1));
	double hoeffding = range * sqrt(l / (2 * K));
	struct estimate e;

	(void)state;
	for (uint32_t j = 0; j < K; j++)
		r[j] = 1 + j % 2 * 2; /* X is 1000 or 5000 */
	e = estimate_moment(&v, 2, 0.05);
	assert_true(bernstein < hoeffding && fabs(e.value - 3000) < 1e-6);
	assert_true(fabs(e.high - 3000 - bernstein) < 1e-6);
	v.k = 20;
	v.most = 10;
	top = floor(1000 * estimate_share_max(10, 20, 0.05 / 4));
	hoeffding = 1000 * (2 * top - 2) * sqrt(l / 40);
	assert_true(fabs(estimate_moment(&v, 2, 0.05).high - 3000 - hoeffding) < 1e-6);
}

/* Chernoff's bound of the greatest share, against the binomial distribution itself. */
static void test_share_max(void **state)
{
	(void)state;
	assert_true(fabs(estimate_share_max(0, 100, 0.05) - (1 - pow(0.05, 0.01))) < 1e-12);
	assert_true(estimate_share_max(100, 100, 0.05) == 1);
	for (double share = 0.01; share < 1; share += 0.07) {
		double below_share = 0;

		for (uint32_t c = 0; c <= 50; c++)
			if (estimate_share_max(c, 50, 0.05) < share)
				below_share += exp(lgamma(51) - lgamma(c + 1) - lgamma(51 - c) +
						   c * log(share) + (50 - c) * log(1 - share));
		assert_true(below_share <= 0.05);
	}
}

/* ---- Estimates over sliding windows -----------------------------------------------------------
 */

/* What came of one quantity in many runs. */
struct score {
	double sum, squares;
	uint32_t runs, outside, vacuous;
};

static void score(struct score *s, const struct estimate *e, double truth)
{
	double off = e->value - truth, slack = 1e-9 * (1 + fabs(truth));

	assert_true(e->low <= e->high);
	s->sum += off;
	s->squares += off * off;
	s->outside += truth < e->low - slack || truth > e->high + slack;
	s->vacuous += e->vacuous;
	s->runs++;
}

/* How many of `runs` lie outside at least once in 10^6 where each does with probability delta. */
static uint32_t outside_max(uint32_t runs, double delta)
{
	double tail = 1;

	for (uint32_t c = 0; c <= runs; c++) {
		if (tail < 1e-6)
			return c;
		tail -= exp(lgamma(runs + 1.0) - lgamma(c + 1.0) - lgamma(runs - c + 1.0) +
			    c * log(delta) + (runs - c) * log(1 - delta));
	}
	return runs;
}

/* Of a true mean: how many standard errors it is off. An entropy's estimate is not below 0, which
 * at 0 is a bias; the norm is the same sum without that bound.
 */
static double sigmas(const struct score *s, double truth)
{
	double mean = s->sum / s->runs, variance = s->squares / s->runs - mean * mean;

	return fabs(mean) / (sqrt(fmax(variance, 0) / s->runs) + 1e-9 * (1 + fabs(truth)));
}

static void check_score(const struct score *s, double truth, const char *what, const char *where)
{
	if (s->outside > outside_max(s->runs, ESTIMATE_DELTA))
		fail_msg("%s, %s: %u of %u outside", what, where, s->outside, s->runs);
	if (truth != 0 && sigmas(s, truth) > SIGMAS)
		fail_msg("%s, %s: off by %g, %g sigmas", what, where, s->sum / s->runs,
			 sigmas(s, truth));
}

enum { F2, F3, ENTROPY, NORM, QUANTITIES };

static const char *const quantities[] = {"F2", "F3", "entropy", "norm"};

static void score_view(struct score *of, const struct estimate_view *v, const double *truth)
{
	struct estimate e[] = {
	    estimate_moment(v, 2, ESTIMATE_DELTA), estimate_moment(v, 3, ESTIMATE_DELTA),
	    estimate_entropy(v, ESTIMATE_DELTA), estimate_norm(v, ESTIMATE_DELTA)};

	for (int q = 0; q < QUANTITIES; q++)
		score(&of[q], &e[q], truth[q]);
}

static void truth_of(const struct stream *s, bool by_time, double *truth)
{
	struct exact *e = exact_open(WINDOW, by_time);
	struct exact_values three, two;

	for (uint32_t i = 0; i < LENGTH; i++)
		assert_true(exact_add(e, s->at[i].time, s->at[i].key, s->at[i].ends));
	assert_true(exact_read(e, 0, 3, false, &three) && exact_read(e, 0, 2, false, &two));
	truth[F2] = two.moment;
	truth[F3] = three.moment;
	truth[ENTROPY] = two.entropy;
	truth[NORM] = two.norm;
	exact_close(e);
}

static void test_estimates(void **state)
{
	double truth[QUANTITIES];

	(void)state;
	FOR_EACH_STREAM(s)
	{
		make(s, 3);
		for (int by_time = 0; by_time < 2; by_time++) {
			struct score of[QUANTITIES] = {0};

			truth_of(s, by_time, truth);
			for (uint32_t run = 0; run < RUNS; run++) {
				struct track *t = open_track(by_time, SAMPLES, 0, run);

				for (uint32_t i = 0; i < LENGTH; i++)
					add(t, &s->at[i], i);
				score_view(of, track_view(t, 0), truth);
				track_close(t);
			}
			for (int q = 0; q < QUANTITIES; q++)
				check_score(&of[q], truth[q], quantities[q], s->name);
		}
	}
}

/* A bound that holds because it is wide would be none: with 4096 samples these are the widths. */
static void test_bounds_say_something(void **state)
{
	static const struct {
		int stream;
		double f2, entropy; /* relative half width; in bits */
	} rows[] = {{0, 0.15, 0.25}, {2, 0.15, 0.3}, {4, 0.15, 0.3}};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct stream *s = &streams[rows[i].stream];
		struct track *t = open_track(false, 4096, 0, 1);
		struct estimate f2, entropy;

		make(s, 3);
		for (uint32_t j = 0; j < LENGTH; j++)
			add(t, &s->at[j], j);
		f2 = estimate_moment(track_view(t, 0), 2, ESTIMATE_DELTA);
		entropy = estimate_entropy(track_view(t, 0), ESTIMATE_DELTA);
		if ((f2.high - f2.low) / 2 > rows[i].f2 * f2.value ||
		    (entropy.high - entropy.low) / 2 > rows[i].entropy || f2.vacuous)
			fail_msg("%s: F2 %g..%g, entropy %g..%g", s->name, f2.low, f2.high,
				 entropy.low, entropy.high);
		track_close(t);
	}
}

/* ---- Planted faults ----------------------------------------------------------------------------
 */

enum fault {
	NONE,
	COUNT_KEPT,	/* a new sample goes on with the old one's count */
	COUNT_STOPPED,	/* a count ends with its sampler's bucket */
	COUNTED_TWICE,	/* the sample itself counts as later, too */
	WINDOW_STOOD,	/* n of all elements */
	EXPIRED_STAYED, /* samples are drawn from V alone */
	FAULTS
};

struct mini {
	enum fault fault;
	struct pacer_sample_skip skip;
	struct pacer_estimate_counts counts;
	struct pacer_estimate_key entry[PACER_ESTIMATE_SEQ_PLACES + 1];
	struct pacer_estimate_ref ref[PACER_ESTIMATE_SEQ_PLACES];
	uint32_t head[PACER_ESTIMATE_SEQ_PLACES];
	uint32_t stopped[PACER_ESTIMATE_SEQ_PLACES]; /* r when the bucket was full */
};

static void mini_add(struct mini *m, uint64_t key)
{
	struct pacer_sample_item item = {0};
	uint16_t stored[PACER_SAMPLE_K];
	uint64_t x = m->skip.seq.x;
	uint32_t got;

	pacer_estimate_seen(&m->counts, key);
	if (!pacer_sample_skip_due(&m->skip))
		return;
	got = pacer_estimate_seq_take(&m->skip, &rng, &item, stored);
	for (uint32_t j = 0; j < got; j++) {
		struct pacer_estimate_ref *ref = &m->ref[stored[j]], was = *ref;

		pacer_estimate_hold(&m->counts, ref, key);
		if (m->fault == COUNT_KEPT && was.entry)
			ref->mark -= 1 + m->counts.entry[was.entry].count - was.mark;
		if (m->fault == COUNTED_TWICE)
			ref->mark--;
	}
	for (uint32_t p = 0; m->skip.seq.x != x && p < PACER_ESTIMATE_SEQ_PLACES; p++)
		m->stopped[p] = pacer_estimate_r(&m->counts, &m->ref[p]);
}

static void mini_view(struct mini *m, uint32_t *r, struct estimate_view *v)
{
	uint16_t place[PACER_SAMPLE_K];

	v->n = m->fault == WINDOW_STOOD ? m->skip.seq.N : WINDOW;
	v->k = pacer_estimate_seq_draw(&m->skip, place);
	v->r = r;
	v->most = v->k;
	for (uint32_t j = 0; j < v->k; j++) {
		if (m->fault == EXPIRED_STAYED)
			place[j] = (m->skip.seq.v & 1) * PACER_SAMPLE_K + j;
		r[j] = pacer_estimate_r(&m->counts, &m->ref[place[j]]);
		if (m->fault == COUNT_STOPPED && place[j] / PACER_SAMPLE_K != (m->skip.seq.v & 1))
			r[j] = m->stopped[place[j]];
	}
}

static bool caught(enum fault fault, const struct stream *s, const double *truth)
{
	static struct mini m;
	struct score of[QUANTITIES] = {0};

	for (uint32_t run = 0; run < RUNS; run++) {
		uint32_t r[PACER_SAMPLE_K];
		struct estimate_view v = {0};

		memset(&m, 0, sizeof(m));
		m.fault = fault;
		rng.state = run;
		assert_true(pacer_sample_skip_init(&m.skip, WINDOW, PACER_SAMPLE_K));
		pacer_estimate_counts_init(&m.counts, m.entry, PACER_ESTIMATE_SEQ_PLACES, m.head,
					   PACER_ESTIMATE_SEQ_PLACES, run);
		for (uint32_t i = 0; i < LENGTH; i++)
			mini_add(&m, s->at[i].key);
		mini_view(&m, r, &v);
		score_view(of, &v, truth);
	}
	for (int q = 0; q < QUANTITIES; q++)
		if (sigmas(&of[q], truth[q]) > SIGMAS ||
		    of[q].outside > outside_max(RUNS, ESTIMATE_DELTA))
			return true;
	return false;
}

static void test_mutants_are_caught(void **state)
{
	static const int on[] = {0, 5}; /* uniform; sources that change */
	double truth[2][QUANTITIES];

	(void)state;
	for (int i = 0; i < 2; i++) {
		make(&streams[on[i]], 3);
		truth_of(&streams[on[i]], false, truth[i]);
	}
	for (int fault = 0; fault < FAULTS; fault++) {
		bool by_uniform = caught(fault, &streams[on[0]], truth[0]);
		bool by_change = caught(fault, &streams[on[1]], truth[1]);

		if ((by_uniform || by_change) != (fault != NONE))
			fail_msg("fault %d", fault);
	}
}

/* ---- Triangles ---------------------------------------------------------------------------------
 */

/* Vertices 1 to `vertices`; a packet is within a clique of `clique` of them, or anywhere. */
struct graph {
	const char *name;
	uint32_t vertices, clique, classes, share; /* of 8 within the clique */
};

static const struct graph graphs[] = {
    {"a clique in noise", 40, 8, 32, 5},
    {"a clique alone", 12, 12, 32, 8},
    {"one class", 6, 5, 1, 3},
    {"a star", 30, 0, 16, 0},
    {"more than the slots", 20, 20, 1, 8},
};

#define GRAPHS 5

static void make_graph(struct stream *s, const struct graph *g)
{
	rng.state = 12;
	for (uint32_t i = 0; i < LENGTH; i++) {
		bool in = below(8) < g->share;
		uint64_t n = in ? g->clique : g->vertices;

		s->at[i] = (struct element){.time = i, .ends = {1 + below(n), 1 + below(n)}};
		if (!g->clique)
			s->at[i].ends[0] = 1;
		s->at[i].key = s->at[i].ends[0];
	}
}

static double triangles_by_hand(const struct stream *s, uint32_t vertices)
{
	static uint8_t edge[64][64];
	uint32_t triangles = 0;

	memset(edge, 0, sizeof(edge));
	for (uint32_t i = LENGTH - WINDOW; i < LENGTH; i++)
		edge[s->at[i].ends[0]][s->at[i].ends[1]] =
		    edge[s->at[i].ends[1]][s->at[i].ends[0]] = 1;
	for (uint32_t a = 1; a <= vertices; a++)
		for (uint32_t b = a + 1; b <= vertices; b++)
			for (uint32_t c = b + 1; c <= vertices; c++)
				triangles += edge[a][b] && edge[a][c] && edge[b][c];
	return triangles;
}

/* A window of more than there is room for: that is said, and what was counted stays. */
static void test_exact_is_full(void **state)
{
	static const uint64_t ends[2] = {0};
	struct exact *e = exact_open(2 * EXACT_MAX, 0);
	struct exact_values out;

	(void)state;
	assert_non_null(e);
	for (uint32_t i = 0; i < EXACT_MAX; i++)
		if (!exact_add(e, i, 1, ends))
			fail_msg("element %u", i);
	errno = 0;
	assert_false(exact_add(e, EXACT_MAX, 1, ends));
	assert_int_equal(errno, EFBIG);
	assert_true(exact_read(e, EXACT_MAX, 1, false, &out));
	assert_int_equal(out.n, EXACT_MAX);
	assert_int_equal(out.distinct, 1);
	exact_close(e);
}

static void test_exact_triangles(void **state)
{
	static struct stream s;

	(void)state;
	for (int g = 0; g < GRAPHS; g++) {
		struct exact *e = exact_open(WINDOW, 0);
		struct exact_values truth;

		make_graph(&s, &graphs[g]);
		for (uint32_t i = 0; i < LENGTH; i++)
			assert_true(exact_add(e, i, s.at[i].key, s.at[i].ends));
		assert_true(exact_read(e, 0, 2, true, &truth));
		assert_true(truth.triangles == triangles_by_hand(&s, graphs[g].vertices));
		exact_close(e);
	}
}

/* Each sample has a class of its own: otherwise the samples of a run are not independent. */
static void test_classes(void **state)
{
	enum { C = 16 };
	struct pacer_estimate_watch watch[1] = {0};
	struct pacer_estimate_link link[4] = {0};
	uint32_t head[4] = {0};
	struct pacer_estimate_watches w = {watch, link, head, 3, C, 1};
	static struct tally tally;

	(void)state;
	rng.state = 3;
	tally_start(&tally, C * C);
	for (uint32_t before = 0; tally.total < 20000; before = watch->class) {
		pacer_estimate_watch_edge(&w, &rng, 0, 1, 2);
		tally_add(&tally, before * C + watch->class);
		for (uint32_t i = 0, links = 0; i < 4; i++) {
			for (uint32_t at = head[i]; at; at = link[at].next)
				links++;
			assert_true(i < 3 || links == 3);
		}
	}
	assert_p("classes", "pairs", tally_p(&tally));
}

/* The mean is the truth; it is below it where many vertices found no slot, as the view says. */
static void test_triangles(void **state)
{
	static struct stream s;

	(void)state;
	for (int g = 0; g < 2 * GRAPHS; g++) {
		const struct graph *graph = &graphs[g / 2];
		struct score of = {0};
		uint32_t dropped = 0;
		double truth;

		make_graph(&s, graph);
		truth = triangles_by_hand(&s, graph->vertices);
		for (uint32_t run = 0; run < RUNS; run++) {
			struct track *t = open_track(g % 2, SAMPLES, graph->classes, run * 7 + g);
			const struct estimate_view *v;
			struct estimate_view less;
			struct estimate e;

			for (uint32_t i = 0; i < LENGTH; i++)
				add(t, &s.at[i], i);
			v = track_view(t, 0);
			dropped += v->beta_dropped;
			e = estimate_triangles(v, ESTIMATE_DELTA);
			score(&of, &e, truth);
			less = *v;
			less.beta_dropped = 1; /* what was not watched may be any number */
			assert_true(estimate_triangles(&less, ESTIMATE_DELTA).vacuous);
			track_close(t);
		}
		if (graph->classes > 1 || graph->vertices - 2 <= PACER_ESTIMATE_SLOTS) {
			assert_true(dropped < SAMPLES * RUNS / 1000);
			check_score(&of, truth, "triangles", graph->name);
		} else {
			assert_true(dropped > SAMPLES && of.sum < -0.1 * truth * of.runs);
			assert_true(of.vacuous == of.runs);
		}
	}
}

/* ---- Step-biased samples ------------------------------------------------------------------------
 */

/* Three windows over one stream; an element of the first is as likely as weights say. */
static void test_step_biased(void **state)
{
	static const uint32_t windows[] = {10, 30, 40}, weights[] = {8, 3, 1};
	static struct tally tally;
	double expected[40], sum = 0;

	(void)state;
	for (uint32_t age = 0; age < 40; age++)
		sum += expected[age] = weights[(age >= 10) + (age >= 30)];
	for (uint32_t age = 0; age < 40; age++)
		expected[age] /= sum;
	tally_start(&tally, 40);
	for (uint32_t run = 0; tally.total < 40000; run++) {
		static struct pacer_sample_skip skip[3];
		struct pacer_estimate_step step[3];
		uint16_t place[PACER_SAMPLE_K];
		struct pacer_sample_item item;

		rng.state = run;
		for (uint32_t w = 0; w < 3; w++) {
			assert_true(pacer_sample_skip_init(&skip[w], windows[w], 4));
			for (item.time_ns = 1; item.time_ns <= 95; item.time_ns++)
				pacer_sample_skip_add(&skip[w], &rng, &item);
			step[w] = (struct pacer_estimate_step){weights[w], windows[w]};
		}
		for (uint32_t j = 0; j < 4; j++) {
			uint32_t w = pacer_estimate_step(step, 3, &rng);

			assert_true(w < 3);
			pacer_estimate_seq_draw(&skip[w], place);
			tally_add(
			    &tally,
			    95 - skip[w]
				     .seq.X[place[j] / PACER_SAMPLE_K][place[j] % PACER_SAMPLE_K]
				     .item.time_ns);
		}
	}
	assert_p("step-biased", "three steps", tally_p_of(&tally, expected));
	assert_true(tally_p(&tally) < P_MIN);
	assert_int_equal(pacer_estimate_step((struct pacer_estimate_step[]){{3, 0}}, 1, &rng), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_counts_are_exact),
	    cmocka_unit_test(test_counts_do_not_leak),
	    cmocka_unit_test(test_ticks),
	    cmocka_unit_test(test_silence),
	    cmocka_unit_test(test_exact_is_full),
	    cmocka_unit_test(test_means_are_the_truth),
	    cmocka_unit_test(test_known_values),
	    cmocka_unit_test(test_dropped_triangles),
	    cmocka_unit_test(test_widths),
	    cmocka_unit_test(test_share_max),
	    cmocka_unit_test(test_estimates),
	    cmocka_unit_test(test_bounds_say_something),
	    cmocka_unit_test(test_mutants_are_caught),
	    cmocka_unit_test(test_exact_triangles),
	    cmocka_unit_test(test_classes),
	    cmocka_unit_test(test_triangles),
	    cmocka_unit_test(test_step_biased),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
