/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: uniform random samples of the elements of a sliding window. The memory is fixed in the
 * worst case, not only in expectation. The paper has four samplers:
 *
 * 	section 2	the last n elements, k samples with replacement
 * 	section 3	the last n elements, k samples without replacement
 * 	section 4	the elements of the last t0, with replacement
 * 	section 5	the elements of the last t0, without replacement
 *
 * The sampler of section 3 does constant work for each element, and the packet path uses it as it
 * is: pacer_sample_seq_wor. The others do work in proportion to k for each element. sample_burst.h
 * has cheaper forms of sections 2 and 4. It shares the drawing and the coins with this header. The
 * tests compare them with the paper's own samplers (tests/unit/sample_oracle.h).
 *
 * Source: "Succinct Sampling on Streams" (Braverman, Ostrovsky, Zaniolo), sections 2 to 5 and the
 * appendix. Names are the paper's: bucket B(x, y) is the elements p_x .. p_(y-1), BS(x, y) its
 * structure, R and Q two independent samples of it with indexes r and q, zeta and Incr the
 * decomposition and its step, T a timestamp, N the number of elements, t0 the window, alpha and
 * beta the sizes of the partly expired bucket and of what follows it, gamma the unknown number of
 * active elements in the former. Where the paper counts from p_0, indexes here start at 1, so that
 * N is the index of the newest element and 0 means none.
 *
 * An element is active at t if t - T < t0. A timestamp that runs backwards counts as the latest
 * one seen.
 *
 * Concurrency: one writer for each sampler (one per CPU), no locks. A reader works on a copy. A
 * sampler's word `seq` is odd while the writer is inside. A copy is whole if seq was even before it
 * and is the same after it. Outside, a writer changes only a single word. A draw from a copy does
 * not disturb the sampler.
 *
 * Error: no sampler can fail. It uses integer arithmetic only. The one deviation from exact
 * uniformity is that of pacer_sample_below: a probability is off by a factor of at most 1 + n /
 * 2^64.
 *
 * Memory: fixed arrays, no allocation. With PACER_SAMPLE_K = 64, seq and seq_wor take 8,224 bytes
 * each, Theta(k).
 */
#ifndef PACER_SAMPLE_H
#define PACER_SAMPLE_H

#include <stdbool.h>
#include "port.h"

#define PACER_SAMPLE_K	       64	  /* the largest k; a power of two */
#define PACER_SAMPLE_SEQ_N_MAX (1u << 31) /* the longest sequence window */

/* What is kept of a packet. The samplers themselves use only time_ns. */
struct pacer_sample_item {
	__u64 time_ns;
	__u32 saddr[4]; /* as in parse.h's keys: host order, of IPv4 the first word */
	__u32 daddr[4];
	__u16 sport; /* host order */
	__u16 dport;
	__u32 len_bytes : 20; /* no frame has more */
	__u32 vlan : 12;      /* 0: it names none */
	__u32 key;	      /* hash of the key that was judged; 0: none */
	__u8 family;
	__u8 proto;
	__u16 rule : 10; /* pacer_rule.counter, kept across changes of policy; 0: none */
	__u16 reason : 6;
};

/* An element: p_index. */
struct pacer_sample_pick {
	struct pacer_sample_item item;
	__u64 index;
};

/*
 * SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014): a
 * counter and a finaliser, period 2^64, every seed good. It is statistical, not cryptographic:
 * whoever sees the seed can predict the sample.
 */
struct pacer_sample_rng {
	__u64 state;
};

PACER_INLINE __u64 pacer_sample_random(struct pacer_sample_rng *rng)
{
	__u64 z = rng->state + 0x9e3779b97f4a7c15ull;

	rng->state = z;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* The upper half of the product. It is computed in halves, since BPF has no 128-bit product. */
PACER_INLINE __u64 pacer_sample_mulhi(__u64 a, __u64 b)
{
	__u64 al = (__u32)a, ah = a >> 32, bl = (__u32)b, bh = b >> 32;
	__u64 mid = ah * bl + (al * bl >> 32);

	return ah * bh + (mid >> 32) + ((al * bh + (__u32)mid) >> 32);
}

/* Uniform in [0, n). Each value has floor or ceil(2^64 / n) of the 2^64 draws. */
PACER_INLINE __u64 pacer_sample_below(struct pacer_sample_rng *rng, __u64 n)
{
	return pacer_sample_mulhi(pacer_sample_random(rng), n);
}

/* True with probability num / den. */
PACER_INLINE bool pacer_sample_coin(struct pacer_sample_rng *rng, __u64 num, __u64 den)
{
	return pacer_sample_below(rng, den) < num;
}

/* t - T < t0 is active; a T in the future is active. */
PACER_INLINE bool pacer_sample_expired(__u64 T, __u64 t, __u64 t0)
{
	return t > T && t - T >= t0;
}

/* ---- Section 2: sequence-based windows, with replacement ---------------------------------- */

/*
 * The stream is divided into buckets of n elements. V = B(x, x + n) is the newest that has an
 * element, and U is the one before it. X_V and X_U are k reservoirs of one element each. A full V
 * stays V until the next element comes. All of U has expired then, so the paper's case without a
 * partial bucket needs no code.
 */
struct pacer_sample_seq {
	__u64 N;
	__u64 x;
	__u32 n;
	__u32 k;
	__u32 v; /* X[v] is X_V, X[v ^ 1] is X_U */
	__u32 seq;
	struct pacer_sample_pick X[2][PACER_SAMPLE_K];
};

_Static_assert(sizeof(struct pacer_sample_seq) == 8224, "as the header says");

/* False, and a sampler that is off, if n or k is out of bounds. */
PACER_INLINE PACER_MUST_USE bool pacer_sample_seq_init(struct pacer_sample_seq *s, __u32 n, __u32 k)
{
	bool good = n && n <= PACER_SAMPLE_SEQ_N_MAX && k && k <= PACER_SAMPLE_K;

	s->N = 0;
	s->x = 1;
	s->n = n;
	s->k = good ? k : 0;
	s->v = 0;
	s->seq = 0;
	return good;
}

/* A writer makes its changes between these two. */
PACER_INLINE void pacer_sample_write_begin(__u32 *seq)
{
	pacer_release(seq, *seq + 1);
	PACER_BARRIER();
}

PACER_INLINE void pacer_sample_write_end(__u32 *seq)
{
	pacer_release(seq, *seq + 1);
}

/* The j-th sample of a stream that is not empty: Z = X_U if it is not expired, otherwise X_V.
 * |V_a| = |U_e|, so that a sample is in V with the probability that it should be.
 */
PACER_INLINE const struct pacer_sample_pick *pacer_sample_seq_pick(const struct pacer_sample_seq *s,
								   __u32 j)
{
	const struct pacer_sample_pick *z = &s->X[(s->v ^ 1) & 1][j];

	if (s->x == 1 || pacer_sample_expired(z->index, s->N, s->n))
		z = &s->X[s->v & 1][j];
	return z;
}

/* Returns the number of samples in out: k, or 0 for an empty stream. */
PACER_INLINE __u32 pacer_sample_seq_draw(const struct pacer_sample_seq *s,
					 struct pacer_sample_item *out)
{
	__u32 j;

	if (!s->N)
		return 0;
	for (j = 0; j < PACER_SAMPLE_K && j < s->k; j++)
		out[j] = pacer_sample_seq_pick(s, j)->item;
	return j;
}

/* ---- Section 3: sequence-based windows, without replacement ------------------------------- */

/*
 * As above, but X_V and X_U are one reservoir of k elements each. Each element needs one draw, and
 * a packet that is not stored changes only N.
 */
struct pacer_sample_seq_wor {
	__u64 N;
	__u64 x;
	__u32 n;
	__u32 k;
	__u32 v;
	__u32 seq;
	struct pacer_sample_pick X[2][PACER_SAMPLE_K];
};

_Static_assert(sizeof(struct pacer_sample_seq_wor) == 8224, "as the header says");

PACER_INLINE PACER_MUST_USE bool pacer_sample_seq_wor_init(struct pacer_sample_seq_wor *s, __u32 n,
							   __u32 k)
{
	bool good = n && n <= PACER_SAMPLE_SEQ_N_MAX && k && k <= PACER_SAMPLE_K;

	s->N = 0;
	s->x = 1;
	s->n = n;
	s->k = good ? k : 0;
	s->v = 0;
	s->seq = 0;
	return good;
}

/*
 * The reservoir's place for the next element. If it is below k, the caller stores the element there
 * with pacer_sample_seq_wor_store. Otherwise the element is only counted.
 */
PACER_INLINE PACER_MUST_USE __u32 pacer_sample_seq_wor_place(struct pacer_sample_seq_wor *s,
							     struct pacer_sample_rng *rng)
{
	__u64 arrived = s->N + 1 - s->x;
	__u32 place;

	if (!s->k)
		return PACER_SAMPLE_K;
	if (arrived == s->n) {
		pacer_sample_write_begin(&s->seq);
		s->x = s->N + 1;
		s->v ^= 1;
		pacer_sample_write_end(&s->seq);
		arrived = 0;
	}
	place = arrived < s->k ? arrived : pacer_sample_below(rng, arrived + 1);
	if (place >= s->k)
		pacer_store64(&s->N, s->N + 1);
	return place;
}

PACER_INLINE void pacer_sample_seq_wor_store(struct pacer_sample_seq_wor *s, __u32 place,
					     const struct pacer_sample_item *item)
{
	struct pacer_sample_pick *x = &s->X[s->v & 1][place & (PACER_SAMPLE_K - 1)];

	pacer_sample_write_begin(&s->seq);
	s->N++;
	x->item = *item;
	x->index = s->N;
	pacer_sample_write_end(&s->seq);
}

/* X_V^i: any i of the m elements of X_V. The reservoir's places are no random order (its first k
 * elements lie as they came), so i places are drawn.
 */
PACER_INLINE __u32 pacer_sample_subset(const struct pacer_sample_pick *x, __u32 m, __u32 i,
				       struct pacer_sample_rng *rng, struct pacer_sample_item *out)
{
	__u8 place[PACER_SAMPLE_K];
	__u32 j;

	for (j = 0; j < PACER_SAMPLE_K; j++)
		place[j] = j;
	for (j = 0; j < PACER_SAMPLE_K && j < i; j++) {
		__u32 other = (j + (__u32)pacer_sample_below(rng, m - j)) & (PACER_SAMPLE_K - 1);
		__u8 chosen = place[other];

		place[other] = place[j];
		out[j] = x[chosen & (PACER_SAMPLE_K - 1)].item;
	}
	return j;
}

/* Z = (X_U and U_a) with X_V^i, i the expired elements of X_U. Returns the number of elements in
 * out: k, or all of the window if it holds fewer.
 */
PACER_INLINE __u32 pacer_sample_seq_wor_draw(const struct pacer_sample_seq_wor *s,
					     struct pacer_sample_rng *rng,
					     struct pacer_sample_item *out)
{
	const struct pacer_sample_pick *u = s->X[(s->v ^ 1) & 1];
	__u64 arrived = s->N + 1 - s->x;
	__u32 in_u = s->k < s->n ? s->k : s->n;
	__u32 in_v = s->k < arrived ? s->k : arrived;
	__u32 i = in_v, got = 0, j;

	if (s->x > 1) {
		for (j = 0; j < PACER_SAMPLE_K && j < in_u; j++) {
			if (pacer_sample_expired(u[j].index, s->N, s->n))
				continue;
			out[got & (PACER_SAMPLE_K - 1)] = u[j].item;
			got++;
		}
		i = in_u - got;
	}
	if (got == PACER_SAMPLE_K)
		return got;
	return got + pacer_sample_subset(s->X[s->v & 1], in_v, i, rng, out + got);
}

/* ---- Section 4: the coins of a partly expired bucket --------------------------------------- */

/* Lemma 4.3. H_i is one with probability alpha beta / ((beta + i)(beta + i - 1)): two coins, since
 * alpha <= beta + i, for a product of 64 bits.
 */
PACER_INLINE bool pacer_sample_h(struct pacer_sample_rng *rng, __u64 alpha, __u64 beta, __u64 i)
{
	bool first = pacer_sample_coin(rng, alpha, beta + i);

	return pacer_sample_coin(rng, beta, beta + i - 1) && first;
}

/* Lemmas 4.3 and 4.4. Q1 is p_(b-i). Y is Q1 if H_i is one and p_a, which is expired, otherwise; X
 * is one if Y is expired and S is one: with probability alpha / (beta + gamma), although gamma is
 * unknown.
 */
PACER_INLINE bool pacer_sample_x(struct pacer_sample_rng *rng, __u64 alpha, __u64 beta, __u64 i,
				 bool q_expired)
{
	bool y_is_q = i < alpha && pacer_sample_h(rng, alpha, beta, i);
	bool y_expired = !y_is_q || q_expired;

	return pacer_sample_coin(rng, alpha, beta) && y_expired;
}

#endif
