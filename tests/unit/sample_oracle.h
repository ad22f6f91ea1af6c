/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The paper's samplers as it writes them: what the forms of common/sample_burst.h are compared
 * with. "Succinct Sampling on Streams", sections 2 to 5, with the names of common/sample.h.
 *
 *	pacer_sample_seq_add	section 2: k coins for every element
 *	pacer_sample_time	section 4
 *	pacer_sample_time_wor	section 5
 *
 * A window of 2^32 elements or more is cut to its newest ones, a whole bucket at a time, and
 * pacer_sample_zeta.lost counts what was cut. Memory: with PACER_SAMPLE_K = 64, time takes 427,552
 * bytes and time_wor 432,160, Theta(k log n), which lemma 4.7 shows to be needed.
 *
 * Beside them: adding an element to a sampler in one call, and the size of a burst sampler's window
 * as far as its buckets tell it.
 */
#ifndef SAMPLE_ORACLE_H
#define SAMPLE_ORACLE_H

#include "sample.h"
#include "sample_burst.h"

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

/* ---- In one call --------------------------------------------------------------------------- */

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

PACER_INLINE void pacer_sample_seq_wor_add(struct pacer_sample_seq_wor *s,
					   struct pacer_sample_rng *rng,
					   const struct pacer_sample_item *item)
{
	__u32 place = pacer_sample_seq_wor_place(s, rng);

	if (place < s->k)
		pacer_sample_seq_wor_store(s, place, item);
}

PACER_INLINE void pacer_sample_skip_add(struct pacer_sample_skip *s, struct pacer_sample_rng *rng,
					const struct pacer_sample_item *item)
{
	if (pacer_sample_skip_due(s))
		pacer_sample_skip_take(s, rng, item);
}

PACER_INLINE void pacer_sample_burst_add(struct pacer_sample_burst *s, struct pacer_sample_rng *rng,
					 __u64 tick, const struct pacer_sample_item *item)
{
	if (pacer_sample_burst_due(s, tick))
		pacer_sample_burst_take(s, rng, tick, item);
}

/* The number of active elements: beta + gamma, gamma being unknown but for its bounds, and for its
 * mean: each Q1 is active with probability gamma / alpha. With k samples the standard deviation of
 * `mean` is at most alpha / (2 sqrt(k)), and alpha is less than n. A drawing from the same buckets
 * uses the same Q1, so that the two are not independent.
 */
struct pacer_sample_size {
	__u64 smallest;
	__u64 most;
	__u64 mean;
};

PACER_INLINE struct pacer_sample_size pacer_sample_burst_n(const struct pacer_sample_burst *s,
							   __u64 t)
{
	struct pacer_sample_window w = pacer_sample_burst_window(s, t);
	struct pacer_sample_size n = {w.beta, w.beta, w.beta};
	const struct pacer_sample_q *q;
	__u32 j, active = 0;

	if (!w.alpha)
		return n;
	q = s->Q[w.b1 & (PACER_SAMPLE_BURST_BUCKETS - 1)];
	for (j = 0; j < PACER_SAMPLE_K && j < s->k; j++)
		active += !pacer_sample_expired(q[j].T, t, s->t0);
	n.smallest += 1;
	n.most += w.alpha - 1;
	if (s->k)
		n.mean += w.alpha * active / s->k;
	return n;
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

_Static_assert(sizeof(struct pacer_sample_time) == 427552, "as said above");
_Static_assert(sizeof(struct pacer_sample_time_wor) == 432160, "as said above");

#endif
