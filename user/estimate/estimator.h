/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: estimates from a sample of a window: entropy and entropy norm of its keys, frequency
 * moments, triangles. Pure: it turns a view of a merged sample into numbers with their error.
 *
 * Source: "Succinct Sampling on Streams", section 6, corollaries 6.2 to 6.4, and the algorithms
 * that they carry over (common/estimate.h names them). Each is the mean of K independent values X_j
 * with the right mean, one for each sample:
 *
 * 	moment		n (r^k - (r-1)^k)				F_k = sum x_i^k
 * 	entropy		r log(n/r) - (r-1) log(n/(r-1))			H = -sum x_i/n log x_i/n
 * 	norm		n (r log r - (r-1) log(r-1))			F_H = sum x_i log x_i
 * 	triangles	n C beta					triangles of the graph
 *
 * Logarithms are to base 2, so that entropy is in bits.
 *
 * Error: two of each.
 *
 * `prior` is what the paper's sources promise before any packet is seen. Moments: Var X is at most
 * k m^(1-1/k) F_k^2 (Alon, Matias, Szegedy), so that by Chebyshev the relative error is at most
 * sqrt(k m^(1-1/k) / (K delta)) but for a chance of delta; of m different keys it is only known
 * that m <= n. Entropy: X lies between -log e and log n, so that by Hoeffding the error is at most
 * (log n + log e) sqrt(ln(2/delta) / 2K) bits; a bound in proportion to H is not to be had from
 * these samples where H is near 0 (Chakrabarti, Cormode and McGregor draw a second sample from the
 * rest of the stream, without the first one's key; that is no uniform sample of the window).
 * Triangles: by Chernoff a relative error of sqrt(3 n C SLOTS ln(2/delta) / (K triangles)).
 * Not finite, or 1 and more where it is relative: it promises nothing.
 *
 * low .. high holds the truth with probability 1 - delta for every stream, too, but is measured:
 * the empirical Bernstein bound (Maurer and Pontil 2009, theorem 4; a quarter of delta each side)
 * or Hoeffding's (a quarter) with the range of X. That goes up to r = x_max, the number of the
 * window's most frequent key, and the sample tells an upper bound of it: if a share p of the K
 * samples has the most frequent key of the sample, no key's share exceeds the u > p at which
 * K kl(p, u) = ln(4/delta), but for the last quarter (Chernoff, of one key that does not depend on
 * the sample). `vacuous`: the interval says nothing: a relative error of 1 or more, or for the
 * entropy an error of log n or more. Each interval by itself has that probability, and those of one
 * window are not independent.
 *
 * The samples have to be independent: with replacement. n has to be exact; an n off by a factor of
 * 1 + e puts a moment, a norm and the triangles off by that factor, and the entropy by log(1 + e).
 * r has to count the whole stream from the sample on, which the packet path's samples do not bear:
 * these are user/estimate/pooled.h's.
 */
#ifndef PACER_ESTIMATOR_H
#define PACER_ESTIMATOR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define ESTIMATE_DELTA	    0.05
#define ESTIMATE_MOMENT_MAX 8

/* A sample of a window. */
struct estimate_view {
	uint64_t n;	       /* elements of the window */
	uint32_t k;	       /* samples; 0 only of an empty window */
	const uint32_t *r;     /* for each: how often its key occurs from it on */
	uint32_t most;	       /* how many samples have the most frequent key */
	const uint32_t *beta;  /* for each: the triangles that closed on it; NULL: not watched */
	uint32_t classes;      /* of third vertices */
	uint32_t beta_max;     /* at most, for one sample */
	uint32_t beta_dropped; /* samples with triangles that were not watched: too low */
};

struct estimate {
	double value, low, high;
	double prior; /* relative; of the entropy in bits */
	bool vacuous;
};

/*
 * The divergence of a share p from a share u, in nats. Chernoff's bound is exp(-samples *
 * divergence).
 */
static inline double estimate_divergence(double p, double u)
{
	double d = p > 0 ? p * log(p / u) : 0;

	return p < 1 ? d + (1 - p) * log((1 - p) / (1 - u)) : d;
}

/* Computes `most`; sorts the keys. */
uint32_t estimate_most(uint64_t *key, uint32_t k);
/* No key has a greater share of the window, except with a chance of `delta`. */
double estimate_share_max(uint32_t most, uint32_t k, double delta);

/* For an empty window everything is 0. moment is from 1 to ESTIMATE_MOMENT_MAX. */
struct estimate estimate_moment(const struct estimate_view *v, uint32_t moment, double delta);
struct estimate estimate_entropy(const struct estimate_view *v, double delta);
struct estimate estimate_norm(const struct estimate_view *v, double delta);
struct estimate estimate_triangles(const struct estimate_view *v, double delta);

/*
 * The greatest error of any set's share in a merged sample (common/sample_merge.h), if part i has
 * least[i] to most[i] elements and counts as mean[i].
 */
double estimate_merge_error(const uint64_t *smallest, const uint64_t *mean, const uint64_t *most,
			    uint32_t parts);

#endif
