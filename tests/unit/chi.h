/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pearson's chi-square test, for tests of samplers: the chance p that a true sampler does no
 * better. P_MIN is small enough that with fixed seeds a true one fails a file of tests once in tens
 * of thousands of choices of the seeds.
 */
#ifndef PACER_TEST_CHI_H
#define PACER_TEST_CHI_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define P_MIN	  1e-6
#define CELLS_MAX 4096

struct tally {
	uint32_t cells;
	uint64_t total;
	uint32_t seen[CELLS_MAX];
};

static inline void tally_start(struct tally *tally, uint32_t cells)
{
	assert_true(cells > 0 && cells <= CELLS_MAX);
	memset(tally, 0, sizeof(*tally));
	tally->cells = cells;
}

static inline void tally_add(struct tally *tally, uint32_t cell)
{
	assert_true(cell < tally->cells);
	tally->seen[cell]++;
	tally->total++;
}

/* The upper regularised incomplete gamma function, by its series or its continued fraction. */
static inline double gamma_q(double a, double x)
{
	double scale = exp(-x + a * log(x) - lgamma(a)), sum, term, b, c, d, h;

	if (x < a + 1) {
		sum = term = 1 / a;
		for (int i = 1; i < 10000 && term > sum * 1e-15; i++) {
			term *= x / (a + i);
			sum += term;
		}
		return 1 - sum * scale;
	}
	b = x + 1 - a;
	c = 1e300;
	h = d = 1 / b;
	for (int i = 1; i < 10000; i++) {
		double an = -i * (i - a);

		b += 2;
		d = 1 / (an * d + b);
		c = b + an / c;
		h *= d * c;
		if (fabs(d * c - 1) < 1e-15)
			break;
	}
	return h * scale;
}

/* expected: probabilities, or NULL for equal ones. */
static inline double tally_p_of(const struct tally *tally, const double *expected)
{
	double chi2 = 0;

	if (tally->cells == 1)
		return 1;
	for (uint32_t i = 0; i < tally->cells; i++) {
		double e = tally->total * (expected ? expected[i] : 1.0 / tally->cells);

		assert_true(e >= 5);
		chi2 += (tally->seen[i] - e) * (tally->seen[i] - e) / e;
	}
	return chi2 > 0 ? gamma_q((tally->cells - 1) / 2.0, chi2 / 2) : 1;
}

static inline double tally_p(const struct tally *tally)
{
	return tally_p_of(tally, NULL);
}

static inline void assert_p(const char *what, const char *where, double p)
{
	if (p < P_MIN)
		fail_msg("%s, %s: p = %g", what, where, p);
}

#endif
