/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: uniform random samples of the elements of a sliding window, in memory that is fixed in
 * the worst case and not in expectation. Four samplers, as the paper writes them:
 *
 *	pacer_sample_seq	the last n elements, k samples with replacement		section 2
 *	pacer_sample_seq_wor	the last n elements, k samples without replacement	section 3
 *	pacer_sample_time	the elements of the last t0, with replacement		section 4
 *	pacer_sample_time_wor	the elements of the last t0, without replacement	section 5
 *
 * pacer_sample_seq_wor does constant work an element and serves in the packet path as it is. The
 * others do work in proportion to k an element: they are the reference, and sample_burst.h has the
 * forms that the packet path can afford. Drawing is the reader's, in user space.
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
 * Concurrency: one writer for each sampler (one per CPU), no locks. A reader works on a copy. Where
 * a sampler has a word `seq`, it is odd while the writer is inside: a copy is whole if seq was even
 * before it and is the same after it, and what a writer changes outside is a single word. A draw
 * from a copy does not disturb the sampler.
 *
 * Error: no sampler has a chance of failure. Integer arithmetic only; the one deviation from exact
 * uniformity is that of pacer_sample_below: a probability is off by a factor of at most
 * 1 + n / 2^64. A window of 2^32 elements or more is cut to its newest ones, a whole bucket at a
 * time, and pacer_sample_zeta.lost counts what was cut.
 *
 * Memory: fixed arrays, no allocation. With PACER_SAMPLE_K = 64, seq and seq_wor take 8,224 bytes
 * each, Theta(k), time 427,552 and time_wor 432,160, Theta(k log n), which lemma 4.7 shows to be
 * needed.
 */
#ifndef PACER_SAMPLE_H
#define PACER_SAMPLE_H

#include <stdbool.h>
#include "port.h"

#define PACER_SAMPLE_K	       64	  /* the largest k; a power of two */
#define PACER_SAMPLE_SEQ_N_MAX (1u << 31) /* the longest sequence window */

/* Bucket structures for a window of fewer than 2^32 elements. Let m = b + 1 - a be the number of
 * elements in zeta(a, b) and i = floor(log2 m) >= 1. Its first bucket has 2^(i-1) elements, and so
 * has each next one until fewer than 2^i elements remain: at most two of them, because m < 2^(i+1),
 * and then at least 2^(i-1) remain. So there are at most two buckets for each i and one for the
 * last element: |zeta| <= 2 floor(log2 m) + 1. With BS(y, z) of lemma 4.2 that makes at most
 * 2 floor(log2 n) + 2 structures: 64 for n < 2^32, and no more than the paper's 3 log2 n from n = 4
 * on. For n = 2 and 3 it is 3 and 4 structures, which is within 3 log2 n too; for n = 1 it is two,
 * where 3 log2 n is none.
 */
#define PACER_SAMPLE_ZETA 64

/* What is kept of a packet. The samplers read and write time_ns and nothing else. */
struct pacer_sample_item {
	__u64 time_ns;
	__u32 saddr[4]; /* as in parse.h's keys: host order, of IPv4 the first word */
	__u32 daddr[4];
	__u16 sport; /* host order */
	__u16 dport;
	__u32 len_bytes;
	__u32 key; /* hash of the key that was judged; 0: none was */
	__u8 family;
	__u8 proto;
	__u8 rule; /* pacer_rule.counter, which a rule keeps across changes of policy; 0: none */
	__u8 reason;
};

/* An element: p_index. */
struct pacer_sample_pick {
	struct pacer_sample_item item;
	__u64 index;
};

/* SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014): a
 * counter and a finaliser, period 2^64, every seed good. Statistical, not cryptographic: whoever
 * must not predict the sample must not see the seed.
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

/* The upper half of the product, in halves because BPF has no 128-bit one. */
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

/* The stream is cut into buckets of n elements. V = B(x, x + n) is the newest that has an
 * element, U the one before it; X_V and X_U are k reservoirs of one element each. A full V
 * stays V until the next element: all of U is expired then, so that the paper's case of no partial
 * bucket needs no code.
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

/* A writer's changes stand between the two. */
PACER_INLINE void pacer_sample_write_begin(__u32 *seq)
{
	pacer_release(seq, *seq + 1);
	PACER_BARRIER();
}

PACER_INLINE void pacer_sample_write_end(__u32 *seq)
{
	pacer_release(seq, *seq + 1);
}

PACER_INLINE void pacer_sample_seq_add(struct pacer_sample_seq *s, struct pacer_sample_rng *rng,
				       const struct pacer_sample_item *item)
{
	__u32 j;

	if (!s->k)
		return;
	pacer_sample_write_begin(&s->seq);
	if (s->N + 1 - s->x == s->n) {
		s->x = s->N + 1;
		s->v ^= 1;
	}
	s->N++;
	for (j = 0; j < PACER_SAMPLE_K && j < s->k; j++) {
		struct pacer_sample_pick *x = &s->X[s->v & 1][j];

		if (!pacer_sample_coin(rng, 1, s->N + 1 - s->x))
			continue;
		x->item = *item;
		x->index = s->N;
	}
	pacer_sample_write_end(&s->seq);
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

/* Returns the number of samples in out: k, or 0 of an empty stream. */
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

/* As above, but X_V and X_U are one reservoir of k elements each. One draw an element, and a packet
 * that is not stored changes N alone.
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

/* The reservoir's place for the next element. Below k: the caller stores the element there with
 * pacer_sample_seq_wor_store. Otherwise it is counted, and that is all.
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

PACER_INLINE void pacer_sample_seq_wor_add(struct pacer_sample_seq_wor *s,
					   struct pacer_sample_rng *rng,
					   const struct pacer_sample_item *item)
{
	__u32 place = pacer_sample_seq_wor_place(s, rng);

	if (place < s->k)
		pacer_sample_seq_wor_store(s, place, item);
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

/* ---- Section 4: timestamp-based windows, with replacement --------------------------------- */

/* BS(x, y). Of p_x only T(x) is ever used, and of Q only when it came and which it was. */
struct pacer_sample_bs {
	__u64 x;
	__u64 y;
	__u64 T_x;
	struct pacer_sample_pick R;
	__u64 q;
	__u64 T_q;
};

/* What lemma 4.2 maintains for one sample: zeta(l(t), N(t)), or with `straddle` BS(y, z) in b[0]
 * and then zeta(z, N(t)).
 */
struct pacer_sample_zeta {
	__u32 len;
	__u32 straddle;
	__u64 T_last; /* of the newest element in b[] */
	__u64 lost;
	struct pacer_sample_bs b[PACER_SAMPLE_ZETA];
};

PACER_INLINE void pacer_sample_zeta_init(struct pacer_sample_zeta *z)
{
	z->len = 0;
	z->straddle = 0;
	z->T_last = 0;
	z->lost = 0;
}

PACER_INLINE void pacer_sample_zeta_drop(struct pacer_sample_zeta *z, __u32 first)
{
	__u32 i;

	for (i = 0; i < PACER_SAMPLE_ZETA && i + first < z->len; i++)
		z->b[i] = z->b[(i + first) & (PACER_SAMPLE_ZETA - 1)];
	z->len = i;
}

/* Lemma 4.2, cases 2.b and 3.b (all is expired), 2.c and 3.c (the last bucket whose first element
 * is expired becomes BS(y, z), and those before it go), 2.a and 3.a (nothing changes).
 */
PACER_INLINE void pacer_sample_zeta_expire(struct pacer_sample_zeta *z, __u64 t, __u64 t0)
{
	__u32 i, expired = 0;

	if (!z->len)
		return;
	if (pacer_sample_expired(z->T_last, t, t0)) {
		z->len = 0;
		z->straddle = 0;
		return;
	}
	for (i = 0; i < PACER_SAMPLE_ZETA && i < z->len; i++) {
		if (!pacer_sample_expired(z->b[i].T_x, t, t0))
			break;
		expired++;
	}
	if (!expired)
		return;
	if (expired > 1)
		pacer_sample_zeta_drop(z, expired - 1);
	z->straddle = 1;
}

/* BS(a, d) from BS(a, c) and BS(c, d), which are of one size: a fair coin each for R and Q. */
PACER_INLINE void pacer_sample_bs_unite(struct pacer_sample_bs *a, const struct pacer_sample_bs *c,
					struct pacer_sample_rng *rng)
{
	__u64 coins = pacer_sample_random(rng);

	a->y = c->y;
	if (coins & 1)
		a->R = c->R;
	if (coins & 2) {
		a->q = c->q;
		a->T_q = c->T_q;
	}
}

/* The unions of Incr(zeta(a, b)), in one walk: of a bucket whose suffix has b + 1 - a elements,
 * with the next one if that number plus one is a power of two (then the floors of the two
 * logarithms differ). Lemma 4.1 shows that zeta(a, b + 1) results.
 */
PACER_INLINE void pacer_sample_zeta_unite(struct pacer_sample_zeta *z, struct pacer_sample_rng *rng)
{
	__u32 mask = PACER_SAMPLE_ZETA - 1;
	__u64 end = z->b[(z->len - 1) & mask].y;
	__u32 in = z->straddle, out = z->straddle, step;

	for (step = 0; step < PACER_SAMPLE_ZETA && in < z->len; step++) {
		struct pacer_sample_bs *a = &z->b[out & mask];
		__u64 m;

		if (in != out)
			*a = z->b[in & mask];
		m = end - a->x;
		in++;
		if (m > 1 && !(m & (m + 1))) {
			pacer_sample_bs_unite(a, &z->b[in & mask], rng);
			in++;
		}
		out++;
	}
	z->len = out;
}

/* Incr, and the basic case of an empty window. */
PACER_INLINE void pacer_sample_zeta_incr(struct pacer_sample_zeta *z, struct pacer_sample_rng *rng,
					 const struct pacer_sample_pick *p)
{
	struct pacer_sample_bs *bs;

	if (z->len)
		pacer_sample_zeta_unite(z, rng);
	if (z->len >= PACER_SAMPLE_ZETA) {
		z->lost += z->b[0].y - z->b[0].x;
		z->straddle = 0;
		pacer_sample_zeta_drop(z, 1);
	}
	bs = &z->b[z->len & (PACER_SAMPLE_ZETA - 1)];
	bs->x = bs->q = p->index;
	bs->y = p->index + 1;
	bs->T_x = bs->T_q = p->item.time_ns;
	bs->R = *p;
	z->T_last = p->item.time_ns;
	z->len++;
}

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

/* R2, a sample of zeta(z, N): that of a bucket drawn in proportion to the buckets' sizes. */
PACER_INLINE const struct pacer_sample_pick *pacer_sample_zeta_r2(const struct pacer_sample_zeta *z,
								  __u64 offset)
{
	const struct pacer_sample_bs *b = &z->b[z->straddle & 1];
	__u64 index = b->x + offset;
	__u32 i;

	for (i = z->straddle; i < PACER_SAMPLE_ZETA && i < z->len; i++) {
		b = &z->b[i];
		if (index < b->y)
			break;
	}
	return &b->R;
}

/* Lemma 4.5 and theorem 4.6: V, a sample of the active elements of z, which must have been expired
 * to t and hold some.
 */
PACER_INLINE const struct pacer_sample_pick *
pacer_sample_zeta_draw(const struct pacer_sample_zeta *z, struct pacer_sample_rng *rng, __u64 t,
		       __u64 t0)
{
	const struct pacer_sample_bs *b1 = &z->b[0];
	__u64 end = z->b[(z->len - 1) & (PACER_SAMPLE_ZETA - 1)].y;
	__u64 beta = end - z->b[z->straddle & 1].x;
	bool x;

	if (z->straddle) {
		x = pacer_sample_x(rng, b1->y - b1->x, beta, b1->y - b1->q,
				   pacer_sample_expired(b1->T_q, t, t0));
		if (x && !pacer_sample_expired(b1->R.item.time_ns, t, t0))
			return &b1->R;
	}
	return pacer_sample_zeta_r2(z, pacer_sample_below(rng, beta));
}

/* "To create a k-random sample, we repeat the procedure k times, independently." */
struct pacer_sample_time {
	__u64 N;
	__u64 t; /* the latest time seen */
	__u64 t0;
	__u32 k;
	__u32 unused;
	struct pacer_sample_zeta z[PACER_SAMPLE_K];
};

PACER_INLINE PACER_MUST_USE bool pacer_sample_time_init(struct pacer_sample_time *s,
							__u64 window_ns, __u32 k)
{
	bool good = window_ns && k && k <= PACER_SAMPLE_K;
	__u32 j;

	s->N = 0;
	s->t = 0;
	s->t0 = window_ns;
	s->k = good ? k : 0;
	s->unused = 0;
	for (j = 0; j < PACER_SAMPLE_K; j++)
		pacer_sample_zeta_init(&s->z[j]);
	return good;
}

PACER_INLINE void pacer_sample_time_add(struct pacer_sample_time *s, struct pacer_sample_rng *rng,
					const struct pacer_sample_item *item)
{
	struct pacer_sample_pick p = {.item = *item, .index = s->N + 1};
	__u32 j;

	if (p.item.time_ns < s->t)
		p.item.time_ns = s->t;
	s->t = p.item.time_ns;
	s->N = p.index;
	for (j = 0; j < PACER_SAMPLE_K && j < s->k; j++) {
		pacer_sample_zeta_expire(&s->z[j], s->t, s->t0);
		pacer_sample_zeta_incr(&s->z[j], rng, &p);
	}
}

/* Returns the number of samples in out: k, or 0 if the window is empty. */
PACER_INLINE __u32 pacer_sample_time_draw(struct pacer_sample_time *s, struct pacer_sample_rng *rng,
					  __u64 now_ns, struct pacer_sample_item *out)
{
	__u32 j;

	if (now_ns < s->t)
		now_ns = s->t;
	for (j = 0; j < PACER_SAMPLE_K && j < s->k; j++) {
		pacer_sample_zeta_expire(&s->z[j], now_ns, s->t0);
		if (!s->z[j].len)
			return 0;
		out[j] = pacer_sample_zeta_draw(&s->z[j], rng, now_ns, s->t0)->item;
	}
	return j;
}

/* ---- Section 5: timestamp-based windows, without replacement ------------------------------ */

/* z[i] samples all active elements but the last i: an element enters it when i more have come.
 * late[] is the auxiliary array of the last elements, p_index at index % PACER_SAMPLE_K.
 */
struct pacer_sample_time_wor {
	__u64 N;
	__u64 t;
	__u64 t0;
	__u32 k;
	__u32 unused;
	__u64 chosen[PACER_SAMPLE_K]; /* indexes of a drawing's elements */
	struct pacer_sample_pick late[PACER_SAMPLE_K];
	struct pacer_sample_zeta z[PACER_SAMPLE_K];
};

PACER_INLINE PACER_MUST_USE bool pacer_sample_time_wor_init(struct pacer_sample_time_wor *s,
							    __u64 window_ns, __u32 k)
{
	bool good = window_ns && k && k <= PACER_SAMPLE_K;
	__u32 j;

	s->N = 0;
	s->t = 0;
	s->t0 = window_ns;
	s->k = good ? k : 0;
	s->unused = 0;
	for (j = 0; j < PACER_SAMPLE_K; j++) {
		pacer_sample_zeta_init(&s->z[j]);
		s->late[j].index = 0;
	}
	return good;
}

/* p_(N-i), or none. */
PACER_INLINE const struct pacer_sample_pick *
pacer_sample_late(const struct pacer_sample_time_wor *s, __u32 i)
{
	return &s->late[(s->N - i) & (PACER_SAMPLE_K - 1)];
}

/* Lemma 5.1: as lemma 4.2, but an element that expired while it was held back is skipped. All that
 * z[i] held is older, so that it is empty then and starts afresh.
 */
PACER_INLINE void pacer_sample_time_wor_add(struct pacer_sample_time_wor *s,
					    struct pacer_sample_rng *rng,
					    const struct pacer_sample_item *item)
{
	struct pacer_sample_pick *p;
	__u32 i;

	s->N++;
	p = &s->late[s->N & (PACER_SAMPLE_K - 1)];
	p->item = *item;
	if (p->item.time_ns < s->t)
		p->item.time_ns = s->t;
	p->index = s->N;
	s->t = p->item.time_ns;
	for (i = 0; i < PACER_SAMPLE_K && i < s->k; i++) {
		const struct pacer_sample_pick *e = pacer_sample_late(s, i);

		pacer_sample_zeta_expire(&s->z[i], s->t, s->t0);
		if (e->index && !pacer_sample_expired(e->item.time_ns, s->t, s->t0))
			pacer_sample_zeta_incr(&s->z[i], rng, e);
	}
}

/* Fewer than k active elements: they are all in the auxiliary array, and are the sample. */
PACER_INLINE __u32 pacer_sample_time_wor_few(const struct pacer_sample_time_wor *s, __u64 now_ns,
					     struct pacer_sample_item *out)
{
	__u32 i;

	for (i = 0; i < PACER_SAMPLE_K && i < s->k; i++) {
		const struct pacer_sample_pick *e = pacer_sample_late(s, i);

		if (!e->index || pacer_sample_expired(e->item.time_ns, now_ns, s->t0))
			break;
		out[i] = e->item;
	}
	return i;
}

/* Lemma 5.2: adds r, a sample of the first b + 1 active elements, to `got` of the first b: r, or if
 * that is there already the element b + 1.
 */
PACER_INLINE void pacer_sample_enlarge(struct pacer_sample_time_wor *s, __u32 got,
				       const struct pacer_sample_pick *r,
				       const struct pacer_sample_pick *next,
				       struct pacer_sample_item *out)
{
	__u32 j;

	for (j = 0; j < PACER_SAMPLE_K && j < got; j++) {
		if (s->chosen[j] == r->index)
			r = next;
	}
	out[got & (PACER_SAMPLE_K - 1)] = r->item;
	s->chosen[got & (PACER_SAMPLE_K - 1)] = r->index;
}

/* Lemma 5.3: lemma 5.2 from R_(k-1) down to R_0. Returns the number of elements in out: k, or all
 * of the window if it holds fewer.
 */
PACER_INLINE __u32 pacer_sample_time_wor_draw(struct pacer_sample_time_wor *s,
					      struct pacer_sample_rng *rng, __u64 now_ns,
					      struct pacer_sample_item *out)
{
	__u32 i, got;

	if (now_ns < s->t)
		now_ns = s->t;
	got = pacer_sample_time_wor_few(s, now_ns, out);
	if (got < s->k)
		return got;
	for (got = 0; got < PACER_SAMPLE_K && got < s->k; got++) {
		struct pacer_sample_zeta *z;

		i = (s->k - 1 - got) & (PACER_SAMPLE_K - 1);
		z = &s->z[i];
		pacer_sample_zeta_expire(z, now_ns, s->t0);
		pacer_sample_enlarge(s, got, pacer_sample_zeta_draw(z, rng, now_ns, s->t0),
				     pacer_sample_late(s, i), out);
	}
	return got;
}

#endif
