/* SPDX-License-Identifier: GPL-2.0-only */
#include "estimate/estimator.h"

#include <stdlib.h>

/* The mean and the sum of squared deviations so far (Welford). */
struct mean {
	uint32_t k;
	double mean, m2;
};

static void mean_add(struct mean *m, double x)
{
	double off = x - m->mean;

	m->k++;
	m->mean += off / m->k;
	m->m2 += off * (x - m->mean);
}

/*
 * The half width of the interval, for values within `range`. It fails with a chance of 3/4 delta.
 */
static double half_width(const struct mean *m, double range, double delta)
{
	double hoeffding = range * sqrt(log(8 / delta) / (2.0 * m->k));
	double l = log(8 / delta), bernstein;

	if (m->k < 2)
		return hoeffding;
	bernstein = sqrt(2 * m->m2 / (m->k - 1) * l / m->k) + 7 * range * l / (3.0 * (m->k - 1));
	return fmin(hoeffding, bernstein);
}

static double limit(double x, double low, double high)
{
	return fmax(low, fmin(high, x));
}

/* ---- The most frequent key ------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

uint32_t estimate_most(uint64_t *key, uint32_t k)
{
	uint32_t most = 0, run = 0;

	if (!k)
		return 0;
	qsort(key, k, sizeof(*key), by_value);
	for (uint32_t j = 0; j < k; j++) {
		run = j && key[j] == key[j - 1] ? run + 1 : 1;
		if (run > most)
			most = run;
	}
	return most;
}

double estimate_share_max(uint32_t most, uint32_t k, double delta)
{
	double p = k ? (double)most / k : 1, low = p, high = 1;

	for (int i = 0; i < 60 && p < 1; i++) {
		double u = (low + high) / 2;

		if (k * estimate_divergence(p, u) < log(1 / delta))
			low = u;
		else
			high = u;
	}
	return high;
}

/* The greatest possible r. */
static double r_max(const struct estimate_view *v, double delta)
{
	double n = (double)v->n;

	return limit(floor(n * estimate_share_max(v->most, v->k, delta / 4)), 1, n);
}

/* ---- Corollary 6.2 --------------------------------------------------------------------------- */

/* r^k - (r-1)^k without a subtraction: r^k - q^k = (r - q)(r^(k-1) + .. + q^(k-1)). */
static double power_step(double r, uint32_t k)
{
	double sum = 0, power = 1;

	for (uint32_t i = 0; i < k; i++) {
		sum = sum * r + power;
		power *= r - 1;
	}
	return sum;
}

struct estimate estimate_moment(const struct estimate_view *v, uint32_t moment, double delta)
{
	double n = (double)v->n, top, most, half;
	struct mean m = {0};
	struct estimate e = {0};

	if (!v->n || !v->k)
		return e;
	for (uint32_t j = 0; j < v->k; j++)
		mean_add(&m, n * power_step(v->r[j], moment));
	top = r_max(v, delta);
	most = n * pow(top, moment - 1);
	half = half_width(&m, n * (power_step(top, moment) - 1), delta);
	e.value = m.mean;
	e.low = limit(m.mean - half, n, most);
	e.high = limit(m.mean + half, n, most);
	e.vacuous = half >= m.mean;
	if (moment > 1)
		e.prior = sqrt(moment * pow(n, 1 - 1.0 / moment) / (v->k * delta));
	return e;
}

/* ---- Corollary 6.4 --------------------------------------------------------------------------- */

static double xlog(double x)
{
	return x > 0 ? x * log2(x) : 0;
}

/* r log(n/r) - (r-1) log(n/(r-1)). It falls with r, from log n, and stays above -log e. */
static double entropy_step(double n, double r)
{
	return log2(n) - (xlog(r) - xlog(r - 1));
}

struct estimate estimate_entropy(const struct estimate_view *v, double delta)
{
	double n = (double)v->n, top, half;
	struct mean m = {0};
	struct estimate e = {0};

	if (!v->n || !v->k)
		return e;
	for (uint32_t j = 0; j < v->k; j++)
		mean_add(&m, entropy_step(n, v->r[j]));
	top = r_max(v, delta);
	half = half_width(&m, log2(n) - entropy_step(n, top), delta);
	e.value = limit(m.mean, 0, log2(n));
	e.low = limit(m.mean - half, log2(n / top), log2(n)); /* no share is above top / n */
	e.high = limit(m.mean + half, e.low, log2(n));
	e.vacuous = half >= log2(n) && n > 1;
	e.prior = (log2(n) + M_LOG2E) * sqrt(log(2 / delta) / (2.0 * v->k));
	return e;
}

struct estimate estimate_norm(const struct estimate_view *v, double delta)
{
	double n = (double)v->n, top, half;
	struct mean m = {0};
	struct estimate e = {0};

	if (!v->n || !v->k)
		return e;
	for (uint32_t j = 0; j < v->k; j++)
		mean_add(&m, n * (xlog(v->r[j]) - xlog(v->r[j] - 1.0)));
	top = r_max(v, delta);
	half = half_width(&m, n * (xlog(top) - xlog(top - 1)), delta);
	e.value = m.mean;
	e.low = limit(m.mean - half, 0, n * log2(top));
	e.high = limit(m.mean + half, e.low, n * log2(top));
	e.vacuous = half >= m.mean && half > 0;
	e.prior = n * (log2(n) + M_LOG2E) * sqrt(log(2 / delta) / (2.0 * v->k));
	e.prior = m.mean > 0 ? e.prior / m.mean : INFINITY;
	return e;
}

/* ---- Corollary 6.3 --------------------------------------------------------------------------- */

struct estimate estimate_triangles(const struct estimate_view *v, double delta)
{
	double n = (double)v->n, unit = n * v->classes, half;
	struct mean m = {0};
	struct estimate e = {0};

	if (!v->n || !v->k || !v->beta)
		return e;
	for (uint32_t j = 0; j < v->k; j++)
		mean_add(&m, unit * v->beta[j]);
	half = half_width(&m, unit * v->beta_max, delta);
	e.value = m.mean;
	e.low = fmax(0, m.mean - half);
	e.high = m.mean + half;
	e.vacuous = half >= m.mean || v->beta_dropped;
	e.prior =
	    m.mean > 0 ? sqrt(3 * unit * v->beta_max * log(2 / delta) / (v->k * m.mean)) : INFINITY;
	return e;
}

/* ---- Merging --------------------------------------------------------------------------------- */

/*
 * The worst set has all parts that count for too much. The true share of a part is least if it has
 * its least and all others have their most.
 */
double estimate_merge_error(const uint64_t *smallest, const uint64_t *mean, const uint64_t *most,
			    uint32_t parts)
{
	double all_smallest = 0, all_mean = 0, all_most = 0, over = 0, under = 0;

	for (uint32_t i = 0; i < parts; i++) {
		all_smallest += (double)smallest[i];
		all_mean += (double)mean[i];
		all_most += (double)most[i];
	}
	for (uint32_t i = 0; i < parts && all_mean > 0; i++) {
		double low = (double)smallest[i], high = (double)most[i];
		double share = (double)mean[i] / all_mean;

		if (low > 0)
			low /= low + (all_most - high);
		if (high > 0)
			high /= high + (all_smallest - (double)smallest[i]);
		over += fmax(0, share - low);
		under += fmax(0, high - share);
	}
	return fmin(1, fmin(over, under));
}
