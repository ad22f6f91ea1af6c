/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * common/sample.h and common/sample_burst.h: the statistics. Every sampler, literal or not, has to
 * pass the same table of timelines. Each test draws from many seeded runs and asks for the chance p
 * that a true sampler does no better; seeds are fixed, and P_MIN is small enough that a true
 * sampler fails a test of this file once in tens of thousands of choices of the seeds.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "chi.h"
#include "sample_oracle.h"

/* The quantiles that any table gives. */
static void test_chi_square_of_tables(void **state)
{
	(void)state;
	assert_true(fabs(gamma_q(0.5, 3.841459 / 2) - 0.05) < 1e-6);
	assert_true(fabs(gamma_q(5, 18.307038 / 2) - 0.05) < 1e-6);
	assert_true(fabs(gamma_q(5, 2.558212 / 2) - 0.99) < 1e-6);
	assert_true(fabs(gamma_q(50, 149.449253 / 2) - 0.001) < 1e-6);
}

/* ---- The samplers under one interface ------------------------------------------------------ */

static struct pacer_sample_rng rng;
static struct pacer_sample_seq seq;
static struct pacer_sample_seq_wor seq_wor;
static struct pacer_sample_time time_wr;
static struct pacer_sample_time_wor time_wor;
static struct pacer_sample_skip skip;
static struct pacer_sample_burst burst;

static bool seq_init(uint32_t window, uint32_t k)
{
	return pacer_sample_seq_init(&seq, window, k);
}

static void seq_add(const struct pacer_sample_item *item)
{
	pacer_sample_seq_add(&seq, &rng, item);
}

static uint32_t seq_draw(uint64_t now, struct pacer_sample_item *out)
{
	(void)now;
	return pacer_sample_seq_draw(&seq, out);
}

static bool seq_wor_init(uint32_t window, uint32_t k)
{
	return pacer_sample_seq_wor_init(&seq_wor, window, k);
}

static void seq_wor_add(const struct pacer_sample_item *item)
{
	pacer_sample_seq_wor_add(&seq_wor, &rng, item);
}

static uint32_t seq_wor_draw(uint64_t now, struct pacer_sample_item *out)
{
	(void)now;
	return pacer_sample_seq_wor_draw(&seq_wor, &rng, out);
}

static bool time_wr_init(uint32_t window, uint32_t k)
{
	return pacer_sample_time_init(&time_wr, window, k);
}

static void time_wr_add(const struct pacer_sample_item *item)
{
	pacer_sample_time_add(&time_wr, &rng, item);
}

static uint32_t time_wr_draw(uint64_t now, struct pacer_sample_item *out)
{
	return pacer_sample_time_draw(&time_wr, &rng, now, out);
}

static bool time_wor_init(uint32_t window, uint32_t k)
{
	return pacer_sample_time_wor_init(&time_wor, window, k);
}

static void time_wor_add(const struct pacer_sample_item *item)
{
	pacer_sample_time_wor_add(&time_wor, &rng, item);
}

static uint32_t time_wor_draw(uint64_t now, struct pacer_sample_item *out)
{
	return pacer_sample_time_wor_draw(&time_wor, &rng, now, out);
}

static bool skip_init(uint32_t window, uint32_t k)
{
	return pacer_sample_skip_init(&skip, window, k);
}

static void skip_add(const struct pacer_sample_item *item)
{
	pacer_sample_skip_add(&skip, &rng, item);
}

static uint32_t skip_draw(uint64_t now, struct pacer_sample_item *out)
{
	(void)now;
	return pacer_sample_seq_draw(&skip.seq, out);
}

static bool burst_init(uint32_t window, uint32_t k)
{
	return pacer_sample_burst_init(&burst, window, k);
}

static void burst_add(const struct pacer_sample_item *item)
{
	pacer_sample_burst_add(&burst, &rng, item->time_ns, item);
}

static uint32_t burst_draw(uint64_t now, struct pacer_sample_item *out)
{
	return pacer_sample_burst_draw(&burst, &rng, now, out);
}

static const struct sampler {
	const char *name;
	bool by_time;
	bool without_replacement;
	bool (*init)(uint32_t window, uint32_t k);
	void (*add)(const struct pacer_sample_item *item);
	uint32_t (*draw)(uint64_t now, struct pacer_sample_item *out);
} samplers[] = {
    {"seq", false, false, seq_init, seq_add, seq_draw},
    {"seq_wor", false, true, seq_wor_init, seq_wor_add, seq_wor_draw},
    {"time", true, false, time_wr_init, time_wr_add, time_wr_draw},
    {"time_wor", true, true, time_wor_init, time_wor_add, time_wor_draw},
    {"skip", false, false, skip_init, skip_add, skip_draw},
    {"burst", true, false, burst_init, burst_add, burst_draw},
};

#define FOR_EACH_SAMPLER(s)                      \
	for (const struct sampler *s = samplers; \
	     s < samplers + sizeof(samplers) / sizeof(samplers[0]); s++)

/* ---- Timelines ----------------------------------------------------------------------------- */

#define ARRIVALS 40

/* `count` elements at `time`; the window is the last `window` elements, or units of time. */
struct timeline {
	const char *name;
	uint32_t window;
	uint32_t k;
	struct {
		uint64_t time;
		uint32_t count;
	} arrive[ARRIVALS];
	uint64_t now;
};

/* A timeline in one line: "3" is an element at 3, "3*4" are four, "3-5" is one at each of 3, 4, 5.
 */
struct row {
	const char *name;
	uint32_t window;
	uint32_t k;
	uint64_t now;
	const char *arrivals;
};

static struct timeline timeline_of(const struct row *row)
{
	struct timeline line = {
	    .name = row->name, .window = row->window, .k = row->k, .now = row->now};
	const char *at = row->arrivals;
	int i = 0;

	while (*at) {
		char *end;
		uint64_t from = strtoul(at, &end, 10), to = from;
		uint32_t count = *end == '*' ? strtoul(end + 1, &end, 10) : 1;

		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to; from++, i++) {
			assert_true(i < ARRIVALS);
			line.arrive[i].time = from;
			line.arrive[i].count = count;
		}
		at = end + (*end == ' ');
	}
	return line;
}

/* The active elements at `now`, which are always the last so many of those numbered from 0. */
struct active {
	uint32_t first;
	uint32_t n;
};

static struct active active_at(const struct timeline *line, bool by_time, uint64_t now)
{
	struct active active = {0, 0};
	uint32_t arrived = 0;

	for (int i = 0; i < ARRIVALS && line->arrive[i].count; i++) {
		if (line->arrive[i].time > now)
			break;
		arrived += line->arrive[i].count;
		if (by_time && now - line->arrive[i].time >= line->window)
			active.first = arrived;
	}
	if (!by_time && arrived > line->window)
		active.first = arrived - line->window;
	active.n = arrived - active.first;
	return active;
}

/* Adds what arrives after `from` and up to `to`; elements are numbered from `id`. */
static uint32_t play(const struct sampler *s, const struct timeline *line, uint64_t from,
		     uint64_t to, uint32_t id)
{
	for (int i = 0; i < ARRIVALS && line->arrive[i].count; i++) {
		struct pacer_sample_item item = {.time_ns = line->arrive[i].time};

		if (item.time_ns <= from || item.time_ns > to)
			continue;
		for (uint32_t c = 0; c < line->arrive[i].count; c++) {
			item.saddr[0] = id++;
			s->add(&item);
		}
	}
	return id;
}

/* Draws, and makes of the items their numbers among the active ones. */
static uint32_t draw(const struct sampler *s, const struct timeline *line, uint64_t now,
		     uint32_t *chosen)
{
	struct active active = active_at(line, s->by_time, now);
	struct pacer_sample_item out[PACER_SAMPLE_K];
	uint32_t got = s->draw(now, out);

	for (uint32_t j = 0; j < got; j++) {
		uint32_t id = out[j].saddr[0];

		if (id < active.first || id >= active.first + active.n)
			fail_msg("%s, %s: element %u is not active", s->name, line->name, id);
		chosen[j] = id - active.first;
	}
	return got;
}

static uint32_t choose(uint32_t n, uint32_t k)
{
	uint64_t c = 1;

	for (uint32_t i = 0; i < k; i++)
		c = c * (n - i) / (i + 1);
	return c;
}

/* The number of a set of k different elements among all of them, by the combinatorial number
 * system.
 */
static uint32_t subset_number(uint32_t *set, uint32_t k)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < k; i++) {
		for (uint32_t j = i + 1; j < k; j++) {
			uint32_t low = set[i] < set[j] ? set[i] : set[j];

			assert_int_not_equal(set[i], set[j]);
			set[j] = set[i] + set[j] - low;
			set[i] = low;
		}
		number += set[i] > i ? choose(set[i], i + 1) : 0;
	}
	return number;
}

/* ---- One window ---------------------------------------------------------------------------- */

static const struct row rows[] = {
    {"window full", 10, 3, 26, "1-26"},
    {"window and bucket full", 9, 3, 12, "1*5 2*7 3 4 11*3 12"},
    {"one after the bucket", 9, 3, 12, "1*5 2*7 3 4 11*3 12*2"},
    {"half filled", 10, 3, 5, "1-5"},
    {"first element", 10, 3, 7, "7"},
    {"bursts", 10, 2, 13, "1*7 2 4*9 5*2 6 9*4 13*3"},
    {"great burst and what follows", 8, 2, 9, "1*3 2*30 3 4 5*2 9"},
    {"great burst in the first bucket", 5, 2, 6, "1 2*12 3*14 4"},
    {"silence longer than the window", 10, 2, 51, "1*20 50*4 51*2"},
    {"silence before the reading", 10, 2, 17, "1-3 4*2 5*2 6 7 8*3 9-11 12*3"},
    {"k larger than the window", 4, 8, 6, "1*2 2 3*3 5 6*2"},
    {"k as large as the window", 5, 5, 8, "1-8"},
    {"k one less than the window", 6, 5, 8, "1-8"},
    {"lemma 4.7, t0 = 4", 4, 2, 8, "1*128 2*64 3*32 4*16 5*8 6*4 7*2 8"},
    {"lemma 4.7, its tail", 4, 2, 9, "1*64 2*32 3*16 4*8 5*4 6*2 7 8 9"},
    {"a clock that stands", 4, 2, 5, "5*9 5*4 5"},
};

static uint32_t runs_for(const struct timeline *line)
{
	return line->arrive[0].count >= 64 ? 4000 : 16000;
}

/* Every element has the same chance, and any two of the k samples are independent. */
static void check_with_replacement(const struct sampler *s, const struct timeline *line)
{
	static struct tally each, pair;
	struct active active = active_at(line, s->by_time, line->now);
	uint32_t chosen[PACER_SAMPLE_K];

	tally_start(&each, active.n);
	tally_start(&pair, active.n * active.n);
	for (uint32_t run = 0; run < runs_for(line); run++) {
		rng.state = run;
		assert_true(s->init(line->window, line->k));
		play(s, line, 0, line->now, 0);
		assert_int_equal(draw(s, line, line->now, chosen), line->k);
		for (uint32_t j = 0; j < line->k; j++)
			tally_add(&each, chosen[j]);
		tally_add(&pair, chosen[0] * active.n + chosen[1]);
	}
	assert_p(s->name, line->name, tally_p(&each));
	assert_p(s->name, line->name, tally_p(&pair));
}

/* Every set of k has the same chance; of a window of fewer elements all are drawn. */
static void check_without_replacement(const struct sampler *s, const struct timeline *line)
{
	static struct tally sets;
	struct active active = active_at(line, s->by_time, line->now);
	uint32_t k = line->k < active.n ? line->k : active.n;
	uint32_t chosen[PACER_SAMPLE_K];

	tally_start(&sets, choose(active.n, k));
	for (uint32_t run = 0; run < runs_for(line); run++) {
		rng.state = run;
		assert_true(s->init(line->window, line->k));
		play(s, line, 0, line->now, 0);
		assert_int_equal(draw(s, line, line->now, chosen), k);
		tally_add(&sets, subset_number(chosen, k));
	}
	assert_p(s->name, line->name, tally_p(&sets));
}

static void check_uniform(const struct timeline *line)
{
	FOR_EACH_SAMPLER(s)
	{
		if (s->without_replacement)
			check_without_replacement(s, line);
		else
			check_with_replacement(s, line);
	}
}

static void test_uniform(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct timeline line = timeline_of(&rows[i]);

		check_uniform(&line);
	}
}

/* Timelines that nobody chose. */
static void test_uniform_at_random(void **state)
{
	struct pacer_sample_rng dice = {20261120};

	(void)state;
	for (int round = 0; round < 10; round++) {
		struct timeline line = {.name = "random timeline"};
		uint64_t time = 0;

		line.window = 5 + pacer_sample_below(&dice, 8);
		line.k = 2;
		for (int i = 0; i < 12; i++) {
			time += pacer_sample_below(&dice, 3) + (i == 0);
			line.arrive[i].time = time;
			line.arrive[i].count = 1 + pacer_sample_below(&dice, 4);
		}
		line.now = time + pacer_sample_below(&dice, 4);
		check_uniform(&line);
	}
}

/* Bursts and windows of thousands, as in the packet path: 40 parts of the window, of one size. */
static const struct row thousands[] = {
    {"thousands, by ticks", 8, 64, 13, "1*40 2*700 4*900 6*2000 7*1 8*3000 9*999 10*2 12*1598"},
    {"thousands, by numbers", 4000, 64, 13, "1*2500 4*3000 7*1999 8*3 9*2000 13*1"},
};

static void test_thousands(void **state)
{
	static struct tally parts;
	uint32_t chosen[PACER_SAMPLE_K];

	(void)state;
	for (int by_time = 0; by_time < 2; by_time++) {
		struct timeline line = timeline_of(&thousands[!by_time]);
		const struct sampler *s = &samplers[by_time ? 5 : 4];
		struct active active = active_at(&line, by_time, line.now);

		assert_int_equal(active.n % 40, 0);
		tally_start(&parts, 40);
		for (uint32_t run = 0; run < 150; run++) {
			rng.state = run;
			assert_true(s->init(line.window, line.k));
			play(s, &line, 0, line.now, 0);
			for (uint32_t j = draw(s, &line, line.now, chosen); j > 0; j--)
				tally_add(&parts, chosen[j - 1] / (active.n / 40));
		}
		assert_p(s->name, line.name, tally_p(&parts));
	}
}

/* ---- Two windows --------------------------------------------------------------------------- */

/* Windows that end at 7 and at 11, at 6 and at 11; no bucket of any sampler ends at the former. */
static const struct row two = {"disjoint windows", 4, 2, 11, "1-11"};
static const struct row two_bursts = {"disjoint windows of bursts", 5, 2, 11,
				      "1*3 3 4*2 5 6 8*2 10*2 11"};

static void check_independent(const struct sampler *s, const struct timeline *line)
{
	static struct tally both;
	uint64_t then = line->now - line->window;
	struct active a = active_at(line, s->by_time, then);
	struct active b = active_at(line, s->by_time, line->now);
	uint32_t k = s->without_replacement ? line->k : 1;
	uint32_t cells = choose(b.n, k), chosen[PACER_SAMPLE_K], first, id;

	if (a.first + a.n > b.first)
		return; /* elements of bursts: the windows are not disjoint */
	tally_start(&both, choose(a.n, k) * cells);
	for (uint32_t run = 0; run < 40000; run++) {
		rng.state = run;
		assert_true(s->init(line->window, line->k));
		id = play(s, line, 0, then, 0);
		draw(s, line, then, chosen);
		first = subset_number(chosen, k);
		play(s, line, then, line->now, id);
		draw(s, line, line->now, chosen);
		tally_add(&both, first * cells + subset_number(chosen, k));
	}
	assert_p(s->name, line->name, tally_p(&both));
}

static void test_disjoint_windows_are_independent(void **state)
{
	struct timeline single = timeline_of(&two), bursts = timeline_of(&two_bursts);

	(void)state;
	FOR_EACH_SAMPLER(s)
	{
		check_independent(s, &single);
		if (s->by_time)
			check_independent(s, &bursts);
	}
}

/* ---- The pieces ---------------------------------------------------------------------------- */

static void test_random(void **state)
{
	static struct tally tally;
	struct pacer_sample_rng dice = {1234567};

	(void)state;
	/* The published SplitMix64, seed 1234567. */
	assert_true(pacer_sample_random(&dice) == 6457827717110365317ull);
	assert_true(pacer_sample_random(&dice) == 3203168211198807973ull);
	assert_true(pacer_sample_mulhi(~0ull, ~0ull) == ~0ull - 1);
	assert_true(pacer_sample_mulhi(1ull << 63, 6) == 3);
	for (int i = 0; i < 100000; i++) {
		uint64_t a = pacer_sample_random(&dice), b = pacer_sample_random(&dice) >> (i % 64);

		assert_true(pacer_sample_mulhi(a, b) == (uint64_t)((unsigned __int128)a * b >> 64));
	}
	assert_true(pacer_sample_below(&dice, 1) == 0);
	assert_true(pacer_sample_coin(&dice, 5, 5) && !pacer_sample_coin(&dice, 0, 5));
	tally_start(&tally, 60);
	for (int i = 0; i < 100000; i++)
		tally_add(&tally, pacer_sample_below(&dice, 60));
	assert_p("below", "60", tally_p(&tally));
}

/* P(next > x) = c / x: by cells of equal size in c / x, and by elements for the first few. */
static void test_skip(void **state)
{
	static const uint32_t from[] = {1, 2, 3, 7, 64, 1000, 1 << 20};
	static struct tally few, many;
	struct pacer_sample_rng dice = {99};

	(void)state;
	for (uint32_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		double c = from[i], p[16], left = 1;

		tally_start(&few, 16);
		tally_start(&many, 4);
		for (int run = 0; run < 400000; run++) {
			uint32_t next = pacer_sample_skip_next(&dice, from[i]);

			assert_true(next > from[i] && next <= PACER_SAMPLE_BURST_C_MAX);
			tally_add(&many, next > 4 * c	    ? 0
					 : next > 2 * c	    ? 1
					 : next > c * 4 / 3 ? 2
							    : 3);
			if (from[i] <= 64)
				tally_add(&few, next - from[i] < 16 ? next - from[i] - 1 : 15);
		}
		for (int x = 0; x < 15; left -= p[x++])
			p[x] = c / ((c + x) * (c + x + 1));
		p[15] = left;
		if (from[i] <= 64)
			assert_p("skip", "first elements", tally_p_of(&few, p));
		p[0] = c / floor(4 * c);
		p[1] = c / floor(2 * c) - p[0];
		p[2] = c / floor(c * 4 / 3) - p[0] - p[1];
		p[3] = 1 - p[0] - p[1] - p[2];
		if (p[3] > 0)
			assert_p("skip", "far ones", tally_p_of(&many, p));
	}
}

/* The rarest draws, 0 and 1; and a reservoir of all but one of the elements that there can be. */
static void test_skip_at_its_ends(void **state)
{
	const uint32_t last = PACER_SAMPLE_BURST_C_MAX - 1;
	struct pacer_sample_rng dice = {0x61c8864680b583eb};

	(void)state;
	/* No coin falls. */
	assert_true(pacer_sample_skip_next(&dice, 1) == PACER_SAMPLE_BURST_C_MAX);
	dice.state = 0xf8364607e9c949bd;
	assert_true(pacer_sample_skip_next(&dice, 1) == 2);
	dice.state = 0xf8364607e9c949bd;
	assert_true(pacer_sample_skip_next(&dice, last) == PACER_SAMPLE_BURST_C_MAX);
	for (int run = 0; run < 100; run++)
		assert_true(pacer_sample_skip_next(&dice, last) == PACER_SAMPLE_BURST_C_MAX);
}

/* Lemma 4.3 by its formula, lemma 4.4 for each number gamma of active elements in B1. */
static void test_lemmas_4_3_and_4_4(void **state)
{
	static const struct {
		uint64_t alpha, beta;
	} sizes[] = {
	    {1, 1}, {2, 2}, {5, 5}, {4, 9}, {7, 100},
	};
	static struct tally y, x;
	struct pacer_sample_rng dice = {7};

	(void)state;
	for (uint32_t c = 0; c < sizeof(sizes) / sizeof(sizes[0]); c++) {
		uint64_t alpha = sizes[c].alpha, beta = sizes[c].beta;
		double p[8] = {1};

		for (uint64_t i = 1; i < alpha; i++)
			p[0] -= p[i] = (double)beta / ((beta + i) * (beta + i - 1));
		tally_start(&y, alpha);
		for (int run = 0; run < 200000; run++) {
			uint64_t i = 1 + pacer_sample_below(&dice, alpha);

			tally_add(&y, i < alpha && pacer_sample_h(&dice, alpha, beta, i) ? i : 0);
		}
		assert_p("lemma 4.3", "Y", tally_p_of(&y, p));
		for (uint64_t gamma = 0; gamma < alpha; gamma++) {
			p[1] = (double)alpha / (beta + gamma);
			p[0] = 1 - p[1];
			tally_start(&x, 2);
			for (int run = 0; run < 100000; run++) {
				uint64_t i = 1 + pacer_sample_below(&dice, alpha);

				tally_add(&x, pacer_sample_x(&dice, alpha, beta, i, i > gamma));
			}
			if (p[0] > 0)
				assert_p("lemma 4.4", "X", tally_p_of(&x, p));
			else
				assert_int_equal(x.seen[0], 0);
		}
	}
}

/* ---- Mutations: faults that the statistics above must see ----------------------------------- */

enum mutant {
	TRUE_ONE,
	H_BIASED,
	H_ONE_COIN,
	H_ALWAYS,
	Y_NEVER_Q,
	S_BIASED,
	S_ALWAYS,
	S_NEVER,
	R1_UNCHECKED,
	EXPIRE_LATE,
	EXPIRE_EARLY,
	Q_IS_R,
	R2_BY_BUCKET,
	NEWEST,
	MUTANTS
};

/* Lemmas 4.3 to 4.5 over again, with one fault. */
static const struct pacer_sample_pick *mutant_draw(const struct pacer_sample_zeta *z, uint64_t t,
						   uint64_t t0, enum mutant m)
{
	const struct pacer_sample_bs *b1 = &z->b[0];
	uint64_t alpha = b1->y - b1->x, beta = z->b[z->len - 1].y - z->b[z->straddle].x;
	uint64_t i = b1->y - (m == Q_IS_R ? b1->R.index : b1->q);
	bool h, y_expired, s, r_expired;

	if (m == NEWEST)
		return &z->b[z->len - 1].R;
	t0 += (m == EXPIRE_LATE) - (m == EXPIRE_EARLY);
	if (z->straddle) {
		h = pacer_sample_coin(&rng, alpha, beta + i) &&
		    (m != H_BIASED || pacer_sample_coin(&rng, 9, 10)) &&
		    (m == H_ONE_COIN || pacer_sample_coin(&rng, beta, beta + i - 1));
		h = (h || m == H_ALWAYS) && i < alpha && m != Y_NEVER_Q;
		y_expired =
		    !h || pacer_sample_expired(m == Q_IS_R ? b1->R.item.time_ns : b1->T_q, t, t0);
		s = (pacer_sample_coin(&rng, alpha, beta) || m == S_ALWAYS) && m != S_NEVER;
		s = s && (m != S_BIASED || pacer_sample_coin(&rng, 9, 10));
		r_expired = pacer_sample_expired(b1->R.item.time_ns, t, t0) && m != R1_UNCHECKED;
		if (y_expired && s && !r_expired)
			return &b1->R;
	}
	if (m == R2_BY_BUCKET)
		return &z->b[z->straddle + pacer_sample_below(&rng, z->len - z->straddle)].R;
	return pacer_sample_zeta_r2(z, pacer_sample_below(&rng, beta));
}

/* B1 has 8 elements in both, of which 5 and 4 are active; B2 has 8 in the first, 16 in the second.
 */
static const struct row half_expired[] = {
    {"", 16, 1, 19, "1-16"},
    {"", 16, 1, 20, "1-16 20*8"},
};

/* The p of a mutant; 0 if it draws an expired element. */
static double mutant_p(enum mutant m, const struct row *row)
{
	static struct tally tally;
	struct timeline line = timeline_of(row);
	struct active active = active_at(&line, true, line.now);
	const struct sampler *s = &samplers[2];

	tally_start(&tally, active.n);
	for (uint32_t run = 0; run < 40000; run++) {
		const struct pacer_sample_pick *p;

		rng.state = run;
		assert_true(s->init(line.window, line.k));
		play(s, &line, 0, line.now, 0);
		pacer_sample_zeta_expire(&time_wr.z[0], line.now, line.window);
		assert_int_equal(time_wr.z[0].b[0].y - time_wr.z[0].b[0].x, 8);
		p = mutant_draw(&time_wr.z[0], line.now, line.window, m);
		if (p->index - 1 < active.first)
			return 0;
		tally_add(&tally, p->index - 1 - active.first);
	}
	return tally_p(&tally);
}

static void test_mutants_are_caught(void **state)
{
	(void)state;
	assert_true(mutant_p(TRUE_ONE, &half_expired[0]) > P_MIN);
	assert_true(mutant_p(TRUE_ONE, &half_expired[1]) > P_MIN);
	for (enum mutant m = TRUE_ONE + 1; m < MUTANTS; m++) {
		if (mutant_p(m, &half_expired[0]) > P_MIN && mutant_p(m, &half_expired[1]) > P_MIN)
			fail_msg("mutant %d is not caught", m);
	}
}

/* ---- The structures ------------------------------------------------------------------------- */

static uint32_t log2_floor(uint64_t x)
{
	return 63 - __builtin_clzll(x);
}

/* z is zeta(a, b) by the definition of section 4.2, with samples that lie in their buckets. */
static void check_zeta(const struct pacer_sample_zeta *z, uint64_t b, uint64_t t, uint64_t t0)
{
	const struct pacer_sample_bs *bs = &z->b[z->straddle];
	uint64_t a = bs->x, m = b + 1 - a, n = m;

	assert_true(z->len - z->straddle <= 2 * log2_floor(m) + 1);
	assert_true(z->len <= PACER_SAMPLE_ZETA);
	for (; bs < z->b + z->len; bs++) {
		uint64_t c = a == b ? b + 1 : a + (1ull << log2_floor(b + 1 - a)) / 2;

		assert_true(bs->x == a && bs->y == c);
		assert_true(bs->R.index >= a && bs->R.index < c && bs->q >= a && bs->q < c);
		assert_true(bs->R.item.time_ns >= bs->T_x && bs->T_q >= bs->T_x);
		a = c;
	}
	assert_true(a == b + 1);
	if (!z->straddle)
		return;
	bs = &z->b[0];
	assert_true(pacer_sample_expired(bs->T_x, t, t0) && bs->y == z->b[1].x);
	assert_true(!pacer_sample_expired(z->b[1].T_x, t, t0));
	assert_true(bs->y - bs->x <= b + 1 - bs->y);
	assert_true(z->len <= 3 * log2(n) || n == 1);
}

/* Lemma 4.1, from nothing. */
static void test_incr_is_zeta(void **state)
{
	static struct pacer_sample_zeta z;
	struct pacer_sample_rng dice = {5};
	uint32_t most = 0;

	(void)state;
	pacer_sample_zeta_init(&z);
	for (uint64_t b = 1; b < 1 << 14; b++) {
		struct pacer_sample_pick p = {.index = b};

		pacer_sample_zeta_incr(&z, &dice, &p);
		check_zeta(&z, b, 0, 1);
		if (z.len > most)
			most = z.len;
	}
	assert_int_equal(most, 2 * 13 + 1); /* the bound is met */
}

/* Arrivals a unit of time. */
static uint64_t arrivals(int pattern, uint64_t time, struct pacer_sample_rng *dice)
{
	switch (pattern) {
	case 0:
		return 1;
	case 1:
		return time % 37 ? 0 : 36;
	case 2:
		return 1ull << (11 - time % 12);
	case 3:
		return 1ull << (time % 10);
	case 4:
		return pacer_sample_below(dice, 4) ? 0 : 1ull << pacer_sample_below(dice, 9);
	case 5:
		return time % 400 < 20 ? (time % 20 ? 3 : 800) : 0;
	default:
		return time <= 12 ? 1ull << (12 - time) : 1; /* lemma 4.7 */
	}
}

/* Lemmas 4.2 and 5.1, and the bound on structures, after every element and every moment. */
static void test_structures_stay_within_bounds(void **state)
{
	static const uint64_t windows[] = {1, 2, 6, 50, 333};
	struct pacer_sample_rng dice = {11};

	(void)state;
	for (int pattern = 0; pattern < 7; pattern++) {
		for (uint32_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
			assert_true(pacer_sample_time_wor_init(&time_wor, windows[w], 2));
			for (uint64_t time = 0; time < 250; time++) {
				uint64_t count = arrivals(pattern, time, &dice);
				struct pacer_sample_item item = {.time_ns = time};

				for (uint64_t c = 0; c < count; c++) {
					pacer_sample_time_wor_add(&time_wor, &dice, &item);
					if (c < 8 || c % 64 == 0)
						check_zeta(&time_wor.z[0], time_wor.N, time,
							   windows[w]);
					if (time_wor.z[1].len && c % 64 == 0)
						check_zeta(&time_wor.z[1], time_wor.N - 1, time,
							   windows[w]);
				}
				pacer_sample_zeta_expire(&time_wor.z[0], time, windows[w]);
				if (time_wor.z[0].len)
					check_zeta(&time_wor.z[0], time_wor.N, time, windows[w]);
				assert_true(time_wor.z[0].lost == 0);
			}
		}
	}
}

/* Lemma 4.7: at t0 + i - 1 an element of time i is drawn more often than not, so that as many times
 * must be kept as there are in a window. They are: k drawings see them all within a run.
 */
static void test_lower_bound_stream(void **state)
{
	enum { T0 = 6 };
	uint32_t oldest = 0, seen = 0, runs = 300;
	struct pacer_sample_item out[PACER_SAMPLE_K];

	(void)state;
	for (uint32_t run = 0; run < runs; run++) {
		bool kept[2 * T0 + 1] = {false};

		rng.state = run;
		assert_true(pacer_sample_burst_init(&burst, T0, 1));
		for (uint64_t i = 0; i <= 2 * T0; i++) {
			struct pacer_sample_item item = {.time_ns = i + 1};

			for (uint64_t c = 0; c < 1ull << (2 * T0 - i); c++)
				pacer_sample_burst_add(&burst, &rng, i + 1, &item);
			if (i + 1 < T0)
				continue;
			assert_int_equal(pacer_sample_burst_draw(&burst, &rng, i + 1, out), 1);
			oldest += out[0].time_ns + T0 - 1 == i + 1;
			kept[out[0].time_ns - 1] = true;
		}
		for (int i = 0; i <= 2 * T0; i++)
			seen += kept[i];
	}
	/* 2^(t0-1) / (2^t0 - 1) of the T0 + 2 drawings, within six standard deviations. */
	assert_true(fabs(oldest / (double)(runs * (T0 + 2)) - 32.0 / 63) <
		    6 * 0.5 / sqrt(runs * 8));
	assert_true(seen >= runs * (T0 + 1) / 2);
}

/* ---- Corners --------------------------------------------------------------------------------- */

static void test_parameters(void **state)
{
	(void)state;
	FOR_EACH_SAMPLER(s)
	{
		struct pacer_sample_item item = {.time_ns = 1}, out[PACER_SAMPLE_K];

		assert_false(s->init(10, 0));
		assert_false(s->init(10, PACER_SAMPLE_K + 1));
		assert_false(s->init(0, 1));
		s->add(&item);
		assert_int_equal(s->draw(1, out), 0);
		assert_true(s->init(10, PACER_SAMPLE_K));
		assert_int_equal(s->draw(1, out), 0);
		for (int i = 0; i < 1000; i++)
			s->add(&item);
		assert_int_equal(s->draw(1, out), s->by_time		   ? 64
						  : s->without_replacement ? 10
									   : 64);
		assert_int_equal(s->draw(11, out), s->by_time		    ? 0
						   : s->without_replacement ? 10
									    : 64);
	}
	assert_true(seq_init(PACER_SAMPLE_SEQ_N_MAX, 1));
	assert_false(seq_init(PACER_SAMPLE_SEQ_N_MAX + 1, 1));
	assert_true(seq_wor_init(PACER_SAMPLE_SEQ_N_MAX, 1));
	assert_false(seq_wor_init(PACER_SAMPLE_SEQ_N_MAX + 1, 1));
	/* One that is off counts nothing, and stores nothing. */
	assert_int_equal(pacer_sample_seq_wor_place(&seq_wor, &rng), PACER_SAMPLE_K);
	assert_true(seq_wor.N == 0);
	assert_true(skip_init(PACER_SAMPLE_BURST_C_MAX - 1, 1));
	assert_false(skip_init(PACER_SAMPLE_BURST_C_MAX, 1));
}

/* The last moment of a window, and what is later than the moment that is asked for. */
static void test_expired(void **state)
{
	(void)state;
	assert_false(pacer_sample_expired(8, 10, 3));
	assert_true(pacer_sample_expired(7, 10, 3));
	assert_false(pacer_sample_expired(11, 10, 3));
	assert_false(pacer_sample_expired(~0ull, 0, 1));
}

/* A time that runs backwards counts as the latest one seen, in adding and in drawing. */
static void test_clock_runs_backwards(void **state)
{
	static const uint64_t times[] = {100, 40, 105, 104, 0, 109, 3};

	(void)state;
	FOR_EACH_SAMPLER(s)
	{
		struct pacer_sample_item out[PACER_SAMPLE_K];
		uint32_t seen = 0;

		if (!s->by_time)
			continue;
		rng.state = 1;
		assert_true(s->init(10, PACER_SAMPLE_K));
		for (uint32_t i = 0; i < 7; i++) {
			struct pacer_sample_item item = {.time_ns = times[i], .saddr = {i}};

			s->add(&item);
		}
		for (uint32_t j = s->draw(5, out); j > 0; j--)
			seen |= 1u << out[j - 1].saddr[0];
		assert_int_equal(seen, 0x7f);
		seen = 0;
		for (uint32_t j = s->draw(110, out); j > 0; j--)
			seen |= 1u << out[j - 1].saddr[0];
		assert_int_equal(seen, 0x7c); /* 100 and 40 have left, together */
	}
}

/* What the headers say of memory. */
static void test_memory(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct pacer_sample_item), 56);
	assert_int_equal(sizeof(seq), 8224);
	assert_int_equal(sizeof(seq_wor), 8224);
	assert_int_equal(sizeof(time_wr), 427552);
	assert_int_equal(sizeof(time_wor), 432160);
	assert_int_equal(sizeof(skip), 8496);
	assert_int_equal(sizeof(burst), 338312);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_chi_square_of_tables),
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_skip),
	    cmocka_unit_test(test_skip_at_its_ends),
	    cmocka_unit_test(test_lemmas_4_3_and_4_4),
	    cmocka_unit_test(test_uniform),
	    cmocka_unit_test(test_uniform_at_random),
	    cmocka_unit_test(test_thousands),
	    cmocka_unit_test(test_disjoint_windows_are_independent),
	    cmocka_unit_test(test_mutants_are_caught),
	    cmocka_unit_test(test_incr_is_zeta),
	    cmocka_unit_test(test_structures_stay_within_bounds),
	    cmocka_unit_test(test_lower_bound_stream),
	    cmocka_unit_test(test_parameters),
	    cmocka_unit_test(test_expired),
	    cmocka_unit_test(test_clock_runs_backwards),
	    cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
