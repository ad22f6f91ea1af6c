/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: estimates from the samples of several CPUs together: frequency moments and collision
 * entropy by coincidences, bounds of the Shannon entropy, the share of keys seen once, and the
 * shares of keys. Pure. It is for the samples of the packet path, which do not count what came
 * after them. With such counts user/estimate/estimator.h can say more.
 *
 * Merging the CPUs' samples would keep k of them. Here each CPU's k count, with weights: CPU c has
 * the share w_c = n_c / n of the packets, exactly, so each of its samples stands for w_c / k_c of
 * them; b is the greatest of these, and 1 / b, which is never less than k, is how many samples of
 * one stream these are worth (`worth`). Shares are p, those of the sample q; C is the sum of p^2,
 * the chance that two packets are of one key.
 *
 * 	F_K		K! times the coefficient of z^K in the sum over keys of prod_c G_c(z),
 * 			G_c(z) = sum_a z^a / a! n_c^a (m)_a / (k_c)_a, m of the k_c samples having
 * 			the key and (m)_a = m (m-1) .. (m-a+1). (m)_a / (k_c)_a has the a-th power
 * 			of the key's share of the CPU as its mean, and CPUs are independent: each
 * 			term has the mean of the multinomial formula, so the whole has F_K. Without
 * 			replacement the mean is (x)_a / (n_c)_a of the x packets of the key instead;
 * 			x^a is sum_j S(a,j) (x)_j, with Stirling's numbers of the second kind.
 * 	H2		-log2 C, the collision (Renyi-2) entropy
 * 	single		the share of the sample whose key is in it once, which has as its mean what
 * 			another sample of this window would show
 *
 * Error: low .. high holds with probability 1 - delta for every stream. All bounds but that of
 * `single` come of one: K independent terms between 0 and t, whose sum is s and has the mean mu,
 * obey K kl(s / Kt, mu / Kt) < ln(1/d) on each side, but for a chance of d (Chernoff; terms of less
 * than t and of different means have no heavier tails; nor have draws without replacement,
 * Hoeffding 1963, theorem 4).
 *
 * 	keys		the sum q of each key's weights, t = b, d = p delta / 2: these add up to
 * 			delta over all keys, so that the intervals of all keys hold together, and
 * 			choosing some by the sample costs nothing
 * 	most		no key's share is more: the same of one key, the most frequent one
 * 	C		in two steps. The samples are halved; the first half fixed, the second tells
 * 			of the sum of q p over the first's samples, and the other way round: t is b
 * 			times the first half's greatest q. Then the sum of q p over all is one of
 * 			independent terms of at most b `most`, with the mean C. So where no key is
 * 			frequent the bounds are far closer than those of k / 2 pairs. Without
 * 			replacement a fixed half is taken off what the other one tells of.
 * 			Besides: C is at most `most`, at least the square of any share, 1 / n.
 * 	F_K		C^(K-1) <= F_K / n^K <= most^(K-2) C (Jensen)
 * 	entropy		Shannon's. H2 <= H. The keys of the first half are d in number, and G, the
 * 			share of packets of others, is bounded by the second half; as G n keys at
 * 			most share it, H <= (1-G) log2(d / (1-G)) + G log2 n.
 * 	single		another sample for one of CPU c moves it by w_c / k_c + b at most: McDiarmid
 *
 * C, F_K, H2 and the entropy hold together; `single` and the keys by themselves. Of 64 samples of
 * 64 keys the entropy is known to be 5.6 bits or more, whatever more it is; of 64 of one key, to be
 * 3.2 bits or less of a million packets. Four such CPUs say 9.5 or more, and 0.9 or less. An n that
 * is off by a factor of 1 + e puts F_K off by (1 + e)^K.
 *
 * Where all packets of the window are in the samples, everything is exact.
 *
 * Concurrency: none. Memory: two bytes for each different key and CPU, and 8 a sample.
 */
#ifndef PACER_POOLED_H
#define PACER_POOLED_H

#include <stdbool.h>
#include <stdint.h>

#define POOLED_MOMENT_MAX 8
#define POOLED_K_MAX	  255

/*
 * One CPU: k samples of a window of n packets. With replacement they are independent. Without it
 * they are different, and if the window has fewer than k, they are all of it. Their order must be
 * random.
 */
struct pooled_part {
	uint64_t n;
	uint32_t k; /* at most POOLED_K_MAX; 0 only for an empty window */
	const uint64_t *key;
};

/* value is NAN if there is none. It may lie outside the bounds. */
struct pooled_value {
	double value, low, high;
};

struct pooled_values {
	uint64_t n;
	uint32_t samples, distinct; /* of all CPUs, and of their keys */
	double worth;
	struct pooled_value moment, h2, entropy, single;
};

/* A key of the samples. */
struct pooled_key {
	uint32_t part, item; /* of the first sample with this key */
	uint32_t times;	     /* in all samples */
	struct pooled_value share;
};

struct pooled;

/* NULL: no memory. */
struct pooled *pooled_open(const struct pooled_part *part, uint32_t parts,
			   bool without_replacement);
void pooled_close(struct pooled *p);

/* moment is from 1 to POOLED_MOMENT_MAX. For an empty window everything is 0. */
struct pooled_values pooled_read(const struct pooled *p, uint32_t moment, double delta);
/* The most frequent keys, the most frequent first. Returns how many, at most `most`. */
uint32_t pooled_keys(const struct pooled *p, double delta, struct pooled_key *out, uint32_t most);

#endif
