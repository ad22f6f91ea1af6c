/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the samplers of sample.h with replacement, in a form that the packet path can afford.
 * The literal ones toss k coins for every element. Here a reservoir knows the number of its next
 * change, and most packets are only counted.
 *
 * 	pacer_sample_skip	the last n elements (section 2), same samples and same drawing
 * 	pacer_sample_burst	the elements of the last t0 ticks (section 4), a tick being a burst
 *
 * Source: "Succinct Sampling on Streams", sections 2 and 4, with the names of sample.h.
 *
 * The burst form. The paper's model lets elements share a timestamp; let T be the tick, and the
 * elements of a tick one burst. They expire together. Lemmas 4.3 to 4.5 use of the decomposition
 * only that R1 and Q1 are independent uniform samples of B1, that p_a is expired and p_b is not,
 * and that |B1| <= |B2|: so any division into buckets of whole bursts will do in which
 *
 * 	(1)  a bucket of more than one burst is no larger than all that follows it,
 *
 * for a bucket of one burst is never partly expired. At a tick's end its burst becomes the newest
 * bucket, and of the pairs of neighbours that (1) lets be united, the newest is: the last p with
 * s_p + s_(p+1) <= S_(p+2), where s_i is the size of bucket i and S_i = s_i + s_(i+1) + ... What
 * follows a bucket only grows until the bucket has expired, so that (1) stays true. (A pair that
 * begins with the partly expired bucket is no exception: the lemmas do not ask how many of B1 are
 * expired.)
 *
 * The number of buckets. Let M_i be the number of buckets from i on. Lock: always
 *
 * 	(2)  M_i <= 2 log2(S_i + 1) - 1   for every i.
 *
 * First, buckets from i on of which no pair can be united obey (2): then S_j >= 2 S_(j+2) + 1 for
 * each j >= i, so that the least possible S_i for M_i = 1, 2, 3, 4, 5, 6, 7 .. is 1, 2, 3, 5, 7,
 * 11, 15 .., that is 2^((M+1)/2) - 1 for odd M and 3 2^(M/2-1) - 1 for even M, at least
 * 2^((M+1)/2) - 1 both. Second, an end of tick keeps (2): adding a burst raises each M_i by one and
 * lowers no S_i. If (2) now fails for some i, then by the first step there is a pair within the
 * buckets from i on; the newest pair of all is within them too, whichever i it is, and uniting it
 * takes the one away again. Last, what expires is a bucket at the front, and (2) says nothing of
 * the others that involves it. So one union an end of tick is enough, for every arrival pattern.
 *
 * Only the first bucket can be partly expired. The others hold active elements only, n at most, so
 * there are no more than 2 log2(n + 1) closed buckets, and one that is open: 64 for n <= 2^32 - 2.
 * With the open burst's elements counted in n, that is 2 log2(n) + 1 structures in all, which is
 * within the paper's 3 log2 n for every n >= 2.
 *
 * Cost: a packet is counted, or the reservoirs whose turn it is store it. In a burst or bucket of c
 * elements this happens k (1 + ln c) times, each with a division and a look at all k. So the mean
 * falls with c. In a tick or window of few packets each packet costs more, but there are few. The
 * first packet of a tick is the most expensive: it is stored k times, and pays for the union, 2 k
 * coins, and k draws of Q. No loop depends on the traffic.
 *
 * A window of t0 ticks is the current tick and the t0 - 1 before it. To cover W nanoseconds of real
 * time it needs ceil(W / tick) + 1 ticks, and then covers up to a tick more.
 *
 * Concurrency: one writer for each sampler (one per CPU), no locks. A reader works on a copy. `seq`
 * is odd while the writer is inside. `ticks` is odd while the writer ends a tick. If `ticks` was
 * even before the copy and is the same after it, the closed buckets are whole. If the same holds
 * for `seq`, the open one is whole, too. A reader that cannot get the open one sets count to 0 in
 * its copy. That is the state at the last tick's end.
 *
 * Error: only the rounding of pacer_sample_below and of pacer_sample_skip_next: a probability is
 * off by a factor of at most 1 + 2^-31. Beyond 2^32 - 2 active elements the oldest bucket may be
 * dropped: `lost` counts its elements, and the sample is one of the rest. A tick of 2^30 elements
 * or more is divided into several bursts, without loss. A torn copy can give a wrong sample, never
 * an access outside it.
 *
 * Memory: with PACER_SAMPLE_K = 64, pacer_sample_burst takes 338,312 bytes and pacer_sample_skip
 * 8,496. A bucket's items stay where they were stored: uniting two buckets exchanges the numbers of
 * their places.
 */
#ifndef PACER_SAMPLE_BURST_H
#define PACER_SAMPLE_BURST_H

#include "sample.h"

/* A burst, and a bucket of pacer_sample_skip, has fewer elements than C_MAX. The number of buckets
 * is derived above; it is a power of two.
 */
#define PACER_SAMPLE_BURST_C_MAX   (1u << 30)
#define PACER_SAMPLE_BURST_BUCKETS 64
#define PACER_SAMPLE_BURST_PLACES  (PACER_SAMPLE_BURST_BUCKETS * PACER_SAMPLE_K)
#define PACER_SAMPLE_BURST_NO_PAIR 0xffffffffu

/* The next element that a reservoir of one takes after c elements, 1 <= c, and C_MAX for any from
 * there on. P(next > x) = c / x. In two steps, to keep 32 bits of relative precision however far
 * off it is: each doubling of c without a change has probability 1/2, a fair coin; and within
 * (C, 2C], P(next > x) = 2C / x - 1, so that next is 1 + floor(2C / (1 + V)), V uniform in (0, 1].
 */
PACER_INLINE __u32 pacer_sample_skip_next(struct pacer_sample_rng *rng, __u32 c)
{
	__u64 random = pacer_sample_random(rng);
	__u32 coins = (__u32)random | 1u << 31;
	__u64 C = (__u64)c * (coins & -coins);
	__u64 next;

	if (C >= PACER_SAMPLE_BURST_C_MAX)
		return PACER_SAMPLE_BURST_C_MAX;
	next = (C << 33) / ((1ull << 32) + (random >> 32) + 1) + 1;
	return next < PACER_SAMPLE_BURST_C_MAX ? next : PACER_SAMPLE_BURST_C_MAX;
}

/*
 * The loops below load what they compare anew in each turn, and keep their results in memory. The
 * kernel's verifier follows a path for each value in a register, but forgets what is in memory. So
 * its work grows with the length of a loop, and not with a power of it.
 */

/* ---- Section 2 ------------------------------------------------------------------------------ */

/*
 * Like pacer_sample_seq. For each sample it also has the place in V of the next element that it
 * takes.
 */
struct pacer_sample_skip {
	__u64 due;	/* the index of the first element that any of them takes */
	__u32 smallest; /* the same as a place in V */
	__u32 unused;
	__u32 next[PACER_SAMPLE_K];
	struct pacer_sample_seq seq;
};

_Static_assert(sizeof(struct pacer_sample_skip) == 8496, "as the header says");

/* Takes constant time, whatever was in it. */
PACER_INLINE PACER_MUST_USE bool pacer_sample_skip_init(struct pacer_sample_skip *s, __u32 n,
							__u32 k)
{
	s->due = 1;
	s->smallest = 1;
	s->unused = 0;
	return pacer_sample_seq_init(&s->seq, n < PACER_SAMPLE_BURST_C_MAX ? n : 0, k);
}

/* Counts the packet. If it returns true, the caller has to pacer_sample_skip_take it. */
PACER_INLINE PACER_MUST_USE bool pacer_sample_skip_due(struct pacer_sample_skip *s)
{
	__u64 index = s->seq.N + 1;

	if (!s->seq.k)
		return false;
	if (index >= s->due)
		return true;
	pacer_store64(&s->seq.N, index);
	return false;
}

PACER_SUBPROG void pacer_sample_skip_take(struct pacer_sample_skip *s, struct pacer_sample_rng *rng,
					  const struct pacer_sample_item *item)
{
	__u64 index = s->seq.N + 1;
	__u32 place, j;

	pacer_sample_write_begin(&s->seq.seq);
	if (index - s->seq.x >= s->seq.n) {
		s->seq.x = index;
		s->seq.v ^= 1;
	}
	place = index + 1 - s->seq.x;
	s->smallest = s->seq.n + 1;
	for (j = 0; j < PACER_SAMPLE_K && j < pacer_load(&s->seq.k); j++) {
		if (place == 1 || place == s->next[j]) {
			struct pacer_sample_pick *x = &s->seq.X[s->seq.v & 1][j];

			x->item = *item;
			x->index = index;
			s->next[j] = pacer_sample_skip_next(rng, place);
		}
		if (pacer_load(&s->next[j]) < pacer_load(&s->smallest))
			pacer_store(&s->smallest, s->next[j]);
	}
	s->seq.N = index;
	s->due = s->seq.x + s->smallest - 1;
	pacer_sample_write_end(&s->seq.seq);
}

/* ---- Section 4 ------------------------------------------------------------------------------ */

/* An R sample, and the tick that decides when it expires. */
struct pacer_sample_place {
	struct pacer_sample_item item;
	__u64 T;
};

/* A Q sample. */
struct pacer_sample_q {
	__u64 q;
	__u64 T;
};

/* BS(x, x + size), of whole bursts. */
struct pacer_sample_bucket {
	__u64 x;
	__u64 size;
	__u64 T_first;
	__u64 T_last;
};

/*
 * Buckets have fixed numbers below BUCKETS. order[head + i] for i < len are the closed buckets, the
 * oldest first. order[head + len] is the open one, and the rest are free. R[b][j] is the place of
 * the j-th R sample of bucket b. R as a whole is a permutation of the places. All zero means off.
 */
struct pacer_sample_burst {
	__u64 T;     /* the open burst's tick, the latest that was seen */
	__u32 count; /* elements of the open burst */
	__u32 due;   /* the first element of it that any sample takes next */
	__u32 k;
	__u32 head;
	__u32 len;
	__u32 seq;
	__u32 ticks;
	__u32 pair; /* see pacer_sample_burst_find */
	__u64 N;    /* elements before the open burst */
	__u64 t0;   /* the window, ticks */
	__u64 lost;
	__u8 order[PACER_SAMPLE_BURST_BUCKETS];
	__u32 next[PACER_SAMPLE_K];
	struct pacer_sample_bucket b[PACER_SAMPLE_BURST_BUCKETS];
	__u16 R[PACER_SAMPLE_BURST_BUCKETS][PACER_SAMPLE_K];
	struct pacer_sample_q Q[PACER_SAMPLE_BURST_BUCKETS][PACER_SAMPLE_K];
	struct pacer_sample_place place[PACER_SAMPLE_BURST_PLACES];
	__u64 took; /* which samples took the last element that was taken, a bit each */
};

_Static_assert(sizeof(struct pacer_sample_burst) == 338312, "as the header says");

/*
 * Empties an initialised sampler in constant time. The two permutations stay, since any will do. So
 * do the words that a reader compares.
 */
PACER_INLINE PACER_MUST_USE bool pacer_sample_burst_restart(struct pacer_sample_burst *s,
							    __u64 window_ticks, __u32 k)
{
	bool good = window_ticks && k && k <= PACER_SAMPLE_K;

	s->T = s->N = s->lost = s->took = 0;
	s->count = s->head = s->len = s->pair = 0;
	s->due = 1;
	s->k = good ? k : 0;
	s->t0 = window_ticks;
	return good;
}

/* If a parameter is out of bounds, it returns false and the sampler is off. */
PACER_INLINE PACER_MUST_USE bool pacer_sample_burst_init(struct pacer_sample_burst *s,
							 __u64 window_ticks, __u32 k)
{
	__u32 b, j;

	s->seq = s->ticks = 0;
	for (b = 0; b < PACER_SAMPLE_BURST_BUCKETS; b++) {
		s->order[b] = b;
		for (j = 0; j < PACER_SAMPLE_K; j++)
			s->R[b][j] = b * PACER_SAMPLE_K + j;
	}
	return pacer_sample_burst_restart(s, window_ticks, k);
}

/* The number of the i-th bucket from the oldest. For i = len it is the open one. */
PACER_INLINE __u32 pacer_sample_burst_nth(const struct pacer_sample_burst *s, __u32 i)
{
	__u32 mask = PACER_SAMPLE_BURST_BUCKETS - 1;

	return s->order[(s->head + i) & mask] & mask;
}

PACER_INLINE struct pacer_sample_place *pacer_sample_burst_r(struct pacer_sample_burst *s,
							     __u32 bucket, __u32 j)
{
	return &s->place[s->R[bucket][j] & (PACER_SAMPLE_BURST_PLACES - 1)];
}

/* Leaves in `pair` the last p with s_p + s_(p+1) <= S_(p+2), the open burst included, or none. */
PACER_INLINE void pacer_sample_burst_find(struct pacer_sample_burst *s)
{
	__u64 follow = s->count, newer = follow, size;
	__u32 i, p = pacer_load(&s->len);

	pacer_store(&s->pair, PACER_SAMPLE_BURST_NO_PAIR);
	for (i = 0; i < PACER_SAMPLE_BURST_BUCKETS && i < pacer_load(&s->len); i++) {
		p--;
		size = s->b[pacer_sample_burst_nth(s, p)].size;
		if (size + newer <= follow) {
			pacer_store(&s->pair, p);
			break;
		}
		follow += i ? newer : 0;
		newer = size;
	}
}

struct pacer_sample_union {
	struct pacer_sample_burst *s;
	struct pacer_sample_rng *rng;
	__u64 size_a, size;
	__u32 a, c;
};

/* The j-th R and Q samples of the union. */
PACER_STEP_OF int pacer_sample_burst_choose(__u32 j, void *arg)
{
	struct pacer_sample_union *u = arg;
	struct pacer_sample_burst *s = u->s;
	__u32 mask = PACER_SAMPLE_BURST_BUCKETS - 1, a = u->a & mask, c = u->c & mask;
	__u64 of_c;
	__u16 swap;

	if (j >= s->k)
		return 1;
	j &= PACER_SAMPLE_K - 1;
	of_c = ((pacer_sample_below(u->rng, u->size) - u->size_a) >> 63) - 1;
	swap = (s->R[a][j] ^ s->R[c][j]) & of_c;
	s->R[a][j] ^= swap;
	s->R[c][j] ^= swap;
	of_c = ((pacer_sample_below(u->rng, u->size) - u->size_a) >> 63) - 1;
	s->Q[a][j].q ^= (s->Q[a][j].q ^ s->Q[c][j].q) & of_c;
	s->Q[a][j].T ^= (s->Q[a][j].T ^ s->Q[c][j].T) & of_c;
	return 0;
}

/*
 * Unites buckets a and c. Both have uniform R samples. So a sample of the union is that of a with
 * probability |a| / (|a| + |c|), else that of c. The places that are not chosen go to c, which
 * becomes free. A mask of all ones chooses c, since a branch would be mispredicted half the time.
 */
PACER_INLINE void pacer_sample_burst_unite(struct pacer_sample_burst *s,
					   struct pacer_sample_union *u)
{
	u->a = pacer_sample_burst_nth(s, pacer_load(&s->pair));
	u->c = pacer_sample_burst_nth(s, pacer_load(&s->pair) + 1);
	u->size_a = s->b[u->a].size;
	u->size = u->size_a + s->b[u->c].size;
	s->b[u->a].size = u->size;
	s->b[u->a].T_last = s->b[u->c].T_last;
	PACER_REPEAT(PACER_SAMPLE_K, pacer_sample_burst_choose, u);
}

/* Moves the newer of the pair behind the open bucket in the order. */
PACER_INLINE void pacer_sample_burst_free(struct pacer_sample_burst *s)
{
	__u32 mask = PACER_SAMPLE_BURST_BUCKETS - 1, p = pacer_load(&s->pair) + 1, i;
	__u8 freed = s->order[(s->head + p) & mask];

	for (i = 0; i < PACER_SAMPLE_BURST_BUCKETS && p != pacer_load(&s->len); i++, p++)
		s->order[(s->head + p) & mask] = s->order[(s->head + p + 1) & mask];
	s->order[(s->head + p) & mask] = freed;
	s->len--;
}

/* Lemma 4.2 for whole bursts: afterwards at most the first bucket is partly expired. */
PACER_INLINE void pacer_sample_burst_expire(struct pacer_sample_burst *s, __u64 t)
{
	__u32 i;

	for (i = 0; i < PACER_SAMPLE_BURST_BUCKETS && pacer_load(&s->len); i++) {
		if (!pacer_sample_expired(s->b[pacer_sample_burst_nth(s, 0)].T_last, t, s->t0))
			break;
		s->head++;
		s->len--;
	}
}

/* The j-th Q sample of the open burst, u->a. */
PACER_STEP_OF int pacer_sample_burst_number(__u32 j, void *arg)
{
	struct pacer_sample_union *u = arg;
	struct pacer_sample_burst *s = u->s;
	struct pacer_sample_q *q;

	if (j >= s->k)
		return 1;
	q = &s->Q[u->a & (PACER_SAMPLE_BURST_BUCKETS - 1)][j & (PACER_SAMPLE_K - 1)];
	q->q = s->N + 1 + pacer_sample_below(u->rng, s->count);
	q->T = s->T;
	return 0;
}

/*
 * The open burst becomes a bucket. Its Q samples need no reservoir. Of a Q sample only the index
 * and the tick are used. The tick is that of the burst, and the size is known now.
 */
PACER_INLINE void pacer_sample_burst_close(struct pacer_sample_burst *s,
					   struct pacer_sample_rng *rng)
{
	struct pacer_sample_union u = {.s = s, .rng = rng};
	__u32 open;

	pacer_sample_burst_find(s);
	if (pacer_load(&s->pair) != PACER_SAMPLE_BURST_NO_PAIR) {
		pacer_sample_burst_unite(s, &u);
		pacer_sample_burst_free(s);
	} else if (pacer_load(&s->len) >= PACER_SAMPLE_BURST_BUCKETS - 1) {
		s->lost += s->b[pacer_sample_burst_nth(s, 0)].size;
		s->head++;
		s->len--;
	}
	open = pacer_sample_burst_nth(s, s->len);
	s->b[open].x = s->N + 1;
	s->b[open].size = s->count;
	s->b[open].T_first = s->b[open].T_last = s->T;
	u.a = open;
	PACER_REPEAT(PACER_SAMPLE_K, pacer_sample_burst_number, &u);
	s->len++;
}

/* Ends a tick, or a burst that has too many elements. */
PACER_SUBPROG void pacer_sample_burst_tick(struct pacer_sample_burst *s,
					   struct pacer_sample_rng *rng, __u64 tick)
{
	pacer_sample_write_begin(&s->ticks);
	pacer_sample_burst_expire(s, tick);
	if (s->count && !pacer_sample_expired(s->T, tick, s->t0))
		pacer_sample_burst_close(s, rng);
	s->N += s->count;
	s->count = 0;
	s->T = tick;
	pacer_sample_write_end(&s->ticks);
}

/* Counts the packet. If it returns true, the caller has to pacer_sample_burst_take it. */
PACER_INLINE PACER_MUST_USE bool pacer_sample_burst_due(struct pacer_sample_burst *s, __u64 tick)
{
	__u32 place = s->count + 1;

	if (!s->k)
		return false;
	if (place >= s->due || tick > s->T)
		return true;
	pacer_store(&s->count, place);
	return false;
}

struct pacer_sample_offer {
	struct pacer_sample_burst *s;
	struct pacer_sample_rng *rng;
	const struct pacer_sample_item *item;
	__u32 open, place;
};

/* Does sample j take the element? */
PACER_STEP_OF int pacer_sample_burst_offer(__u32 j, void *arg)
{
	struct pacer_sample_offer *o = arg;
	struct pacer_sample_burst *s = o->s;

	if (j >= s->k)
		return 1;
	j &= PACER_SAMPLE_K - 1;
	if (o->place == 1 || o->place == s->next[j]) {
		struct pacer_sample_place *r =
		    pacer_sample_burst_r(s, o->open & (PACER_SAMPLE_BURST_BUCKETS - 1), j);

		r->item = *o->item;
		r->T = s->T;
		s->next[j] = pacer_sample_skip_next(o->rng, o->place);
		s->took |= 1ull << j;
	}
	if (s->next[j] < s->due)
		s->due = s->next[j];
	return 0;
}

/* Offers the element after the last one to every sample. Its own stack does not lie under a tick's.
 */
PACER_SUBPROG void pacer_sample_burst_count(struct pacer_sample_burst *s,
					    struct pacer_sample_rng *rng,
					    const struct pacer_sample_item *item)
{
	struct pacer_sample_offer o = {s, rng, item, pacer_sample_burst_nth(s, s->len),
				       s->count + 1};

	s->due = PACER_SAMPLE_BURST_C_MAX;
	s->took = 0;
	PACER_REPEAT(PACER_SAMPLE_K, pacer_sample_burst_offer, &o);
	s->count = o.place;
}

/* A tick that runs backwards counts as the latest one seen. */
PACER_SUBPROG void pacer_sample_burst_take(struct pacer_sample_burst *s,
					   struct pacer_sample_rng *rng, __u64 tick,
					   const struct pacer_sample_item *item)
{
	pacer_sample_write_begin(&s->seq);
	if (tick > s->T || s->count + 1 >= PACER_SAMPLE_BURST_C_MAX)
		pacer_sample_burst_tick(s, rng, tick > s->T ? tick : s->T);
	pacer_sample_burst_count(s, rng, item);
	pacer_sample_write_end(&s->seq);
}

/* ---- Drawing, by the reader ----------------------------------------------------------------- */

/* A window of buckets at t: B1, if one is partly expired, and B2. */
struct pacer_sample_window {
	__u64 alpha; /* |B1|, 0 if there is none */
	__u64 beta;  /* |B2| */
	__u32 b1;    /* B1's number */
	__u32 first; /* of B2, counted from the oldest */
};

PACER_INLINE __u64 pacer_sample_burst_size(const struct pacer_sample_burst *s, __u32 i)
{
	return i < s->len ? s->b[pacer_sample_burst_nth(s, i)].size : s->count;
}

PACER_INLINE struct pacer_sample_window
pacer_sample_burst_window(const struct pacer_sample_burst *s, __u64 t)
{
	struct pacer_sample_window w = {.first = 0};
	__u32 i;

	for (i = 0; i < PACER_SAMPLE_BURST_BUCKETS && i <= s->len; i++) {
		__u32 b = pacer_sample_burst_nth(s, i);
		__u64 T_first = i < s->len ? s->b[b].T_first : s->T;
		__u64 T_last = i < s->len ? s->b[b].T_last : s->T;

		if (pacer_sample_expired(T_last, t, s->t0)) {
			w.first = i + 1;
		} else if (pacer_sample_expired(T_first, t, s->t0)) {
			w.alpha = s->b[b].size;
			w.b1 = b;
			w.first = i + 1;
		} else {
			w.beta += pacer_sample_burst_size(s, i);
		}
	}
	return w;
}

/* R2: the j-th R of a bucket drawn in proportion to the buckets' sizes. */
PACER_INLINE const struct pacer_sample_place *
pacer_sample_burst_r2(const struct pacer_sample_burst *s, __u32 first, __u64 offset, __u32 j)
{
	__u32 i, b;

	for (i = first; i < PACER_SAMPLE_BURST_BUCKETS && i < s->len; i++) {
		__u64 size = pacer_sample_burst_size(s, i);

		if (offset < size)
			break;
		offset -= size;
	}
	b = pacer_sample_burst_nth(s, i);
	return &s->place[s->R[b][j] & (PACER_SAMPLE_BURST_PLACES - 1)];
}

/* Lemma 4.5: the j-th sample of a window that is not empty. */
PACER_INLINE const struct pacer_sample_place *
pacer_sample_burst_pick(const struct pacer_sample_burst *s, struct pacer_sample_rng *rng,
			const struct pacer_sample_window *w, __u64 t, __u32 j)
{
	__u32 b1 = w->b1 & (PACER_SAMPLE_BURST_BUCKETS - 1);
	const struct pacer_sample_place *r1 =
	    &s->place[s->R[b1][j] & (PACER_SAMPLE_BURST_PLACES - 1)];
	const struct pacer_sample_q *q1 = &s->Q[b1][j];

	if (w->alpha &&
	    pacer_sample_x(rng, w->alpha, w->beta, s->b[b1].x + w->alpha - q1->q,
			   pacer_sample_expired(q1->T, t, s->t0)) &&
	    !pacer_sample_expired(r1->T, t, s->t0))
		return r1;
	return pacer_sample_burst_r2(s, w->first, pacer_sample_below(rng, w->beta), j);
}

/*
 * Draws k samples, as places in s->place. Returns their number: k, or 0 if the window is empty. A
 * tick before the latest one seen counts as that one.
 */
PACER_INLINE __u32 pacer_sample_burst_places(const struct pacer_sample_burst *s,
					     struct pacer_sample_rng *rng, __u64 tick,
					     __u16 place[PACER_SAMPLE_K])
{
	__u64 t = tick > s->T ? tick : s->T;
	struct pacer_sample_window w = pacer_sample_burst_window(s, t);
	__u32 j;

	if (!w.beta)
		return 0;
	for (j = 0; j < PACER_SAMPLE_K && j < s->k; j++)
		place[j] = pacer_sample_burst_pick(s, rng, &w, t, j) - s->place;
	return j;
}

/* The same, with the items themselves. */
PACER_INLINE __u32 pacer_sample_burst_draw(const struct pacer_sample_burst *s,
					   struct pacer_sample_rng *rng, __u64 tick,
					   struct pacer_sample_item *out)
{
	__u16 place[PACER_SAMPLE_K];
	__u32 k = pacer_sample_burst_places(s, rng, tick, place), j;

	for (j = 0; j < PACER_SAMPLE_K && j < k; j++)
		out[j] = s->place[place[j]].item;
	return j;
}

#endif
