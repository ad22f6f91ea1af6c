/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: what the estimators (user/estimate/estimator.h) need beside samples of a stream, in
 * integers:
 *
 * 	pacer_estimate_counts	how often a sample's key has come since the sample was taken
 * 	pacer_estimate_watches	which triangles have closed on a sample's edge since
 * 	pacer_estimate_ticks	the number of elements of a time window
 * 	pacer_estimate_step	which of several windows a step-biased sample is drawn from
 *
 * Source: "Succinct Sampling on Streams", section 6. Corollary 6.1 carries a sampling algorithm
 * over to sliding windows. It holds for the following ones, since all that they keep of a sampled
 * element p comes from elements after p. While p is active, so are these, and a sliding window has
 * nothing to take back. The algorithms that the corollaries cite:
 *
 * 	6.2	Alon, Matias, Szegedy: p uniform among n elements, r the occurrences of its value
 * 		from p on; n (r^k - (r-1)^k) has mean F_k.
 * 	6.3	Buriol, Frahling, Leonardi, Marchetti-Spaccamela, Sohler: an edge (a, b), a third
 * 		vertex v, and whether (a, v) and (b, v) come later.
 * 	6.4	Chakrabarti, Cormode, McGregor: r as in 6.2; the mean of f(r) - f(r-1), f(r) =
 * 		(r / n) log(n / r), n times, is the entropy.
 *
 * The section leaves four things open. Here they are solved so. (a) Of a time window n is not
 * known, and the means above are in proportion to it: pacer_estimate_ticks counts it exactly, a
 * word a tick. (b) Edges repeat: a sample that is not its edge's last occurrence in the window
 * counts for nothing, so that each different edge is chosen with probability 1 / n, and a triangle
 * is found by the edge whose last occurrence is the first. (c) The set of vertices is not known: v
 * is drawn as one of C classes of hashes, and all vertices of the class are watched, up to
 * PACER_ESTIMATE_SLOTS. A class takes a vertex with probability 1 / C as a draw among C vertices
 * would. (d) Step-biased samples too need the windows' n.
 *
 * Concurrency: one thread, which writes and reads.
 *
 * Error: counts and n are exact, except that keys and vertices are 64-bit hashes: two with the same
 * hash count as one. If an edge has more than PACER_ESTIMATE_SLOTS vertices of a class, the rest is
 * not watched. `more` says so, and the estimate is too low. For the variances see estimator.h.
 *
 * Memory: arrays of the caller, with as many entries as the samplers have places, so it is fixed.
 * An element costs one look-up of its key. An edge costs three, and a step for each watch that they
 * find.
 */
#ifndef PACER_ESTIMATE_H
#define PACER_ESTIMATE_H

#include "sample_burst.h"

/* A finaliser: each bit of the result depends on each bit of x. */
PACER_INLINE __u64 pacer_estimate_mix(__u64 x)
{
	struct pacer_sample_rng rng = {x};

	return pacer_sample_random(&rng);
}

/* ---- What was stored -------------------------------------------------------------------------
 * A sampler's places have numbers. Of a pacer_sample_skip: j of X[0], PACER_SAMPLE_K + j of X[1].
 */

#define PACER_ESTIMATE_SEQ_PLACES (2 * PACER_SAMPLE_K)

/* Takes the item, and lists the places that it went to. Returns their number. */
PACER_INLINE __u32 pacer_estimate_seq_take(struct pacer_sample_skip *s,
					   struct pacer_sample_rng *rng,
					   const struct pacer_sample_item *item,
					   __u16 stored[PACER_SAMPLE_K])
{
	__u32 j, v, got = 0;

	pacer_sample_skip_take(s, rng, item);
	v = s->seq.v & 1;
	for (j = 0; j < PACER_SAMPLE_K && j < s->seq.k; j++)
		if (s->seq.X[v][j].index == s->seq.N)
			stored[got++ & (PACER_SAMPLE_K - 1)] = v * PACER_SAMPLE_K + j;
	return got;
}

/*
 * The same for the burst form. A reservoir that took the element has drawn a later next one. If its
 * next has not changed, it did not take the element.
 */
PACER_INLINE __u32 pacer_estimate_time_take(struct pacer_sample_burst *s,
					    struct pacer_sample_rng *rng, __u64 tick,
					    const struct pacer_sample_item *item,
					    __u16 stored[PACER_SAMPLE_K])
{
	__u32 next[PACER_SAMPLE_K], j, open, got = 0;

	for (j = 0; j < PACER_SAMPLE_K; j++)
		next[j] = s->next[j];
	pacer_sample_burst_take(s, rng, tick, item);
	open = pacer_sample_burst_nth(s, s->len);
	for (j = 0; j < PACER_SAMPLE_K && j < s->k; j++)
		if (s->count == 1 || s->next[j] != next[j])
			stored[got++ & (PACER_SAMPLE_K - 1)] = s->R[open][j];
	return got;
}

/* The places of a sample of the window. Return their number: k, or 0 for an empty window. */
PACER_INLINE __u32 pacer_estimate_seq_draw(const struct pacer_sample_skip *s,
					   __u16 place[PACER_SAMPLE_K])
{
	__u32 j;

	if (!s->seq.N)
		return 0;
	for (j = 0; j < PACER_SAMPLE_K && j < s->seq.k; j++)
		place[j] = pacer_sample_seq_pick(&s->seq, j) - &s->seq.X[0][0];
	return j;
}

/* ---- Occurrences from a sample on ------------------------------------------------------------
 * A key that some place holds has an entry, which counts its occurrences since it was made; a place
 * remembers where the count stood. So an element costs one look-up, however many places hold its
 * key.
 */

struct pacer_estimate_key {
	__u64 key;
	__u32 count; /* modulo 2^32 */
	__u32 refs;  /* places that hold it; 0: free */
	__u32 next;  /* in its chain, or among the free; 0: none */
	__u32 unused;
};

/* One for each place. entry 0: it holds nothing. */
struct pacer_estimate_ref {
	__u32 entry;
	__u32 mark;
};

struct pacer_estimate_counts {
	struct pacer_estimate_key *entry; /* n + 1, the first of no use */
	__u32 *head;			  /* mask + 1 */
	__u32 n;			  /* as many as there are places */
	__u32 mask;
	__u32 free;
	__u32 unused;
	__u64 seed;
};

/* entry and head are zeroed arrays of n + 1 and, a power of two, `heads`. */
PACER_INLINE void pacer_estimate_counts_init(struct pacer_estimate_counts *c,
					     struct pacer_estimate_key *entry, __u32 n, __u32 *head,
					     __u32 heads, __u64 seed)
{
	__u32 i;

	c->entry = entry;
	c->head = head;
	c->n = n;
	c->mask = heads - 1;
	c->free = n ? 1 : 0;
	c->seed = seed;
	for (i = 1; i < n; i++)
		entry[i].next = i + 1;
}

PACER_INLINE __u32 *pacer_estimate_chain(const struct pacer_estimate_counts *c, __u64 key)
{
	return &c->head[pacer_estimate_mix(key ^ c->seed) & c->mask];
}

PACER_INLINE __u32 pacer_estimate_find(const struct pacer_estimate_counts *c, __u64 key)
{
	__u32 i = *pacer_estimate_chain(c, key);

	while (i && c->entry[i].key != key)
		i = c->entry[i].next;
	return i;
}

/* Call it for every element before it is stored anywhere. */
PACER_INLINE void pacer_estimate_seen(struct pacer_estimate_counts *c, __u64 key)
{
	__u32 i = pacer_estimate_find(c, key);

	if (i)
		c->entry[i].count++;
}

PACER_INLINE void pacer_estimate_release(struct pacer_estimate_counts *c,
					 struct pacer_estimate_ref *ref)
{
	struct pacer_estimate_key *e = &c->entry[ref->entry];
	__u32 *at;

	if (!ref->entry || --e->refs)
		return;
	at = pacer_estimate_chain(c, e->key);
	while (*at != ref->entry)
		at = &c->entry[*at].next;
	*at = e->next;
	e->next = c->free;
	c->free = ref->entry;
}

/*
 * Stores the last element seen in the place. There is a free entry: the place gives up its own, and
 * there are as many entries as places.
 */
PACER_INLINE void pacer_estimate_hold(struct pacer_estimate_counts *c,
				      struct pacer_estimate_ref *ref, __u64 key)
{
	__u32 i;

	pacer_estimate_release(c, ref);
	i = pacer_estimate_find(c, key);
	if (!i) {
		__u32 *chain = pacer_estimate_chain(c, key);

		i = c->free;
		c->free = c->entry[i].next;
		c->entry[i].key = key;
		c->entry[i].count = 1;
		c->entry[i].refs = 0;
		c->entry[i].next = *chain;
		*chain = i;
	}
	c->entry[i].refs++;
	ref->entry = i;
	ref->mark = c->entry[i].count;
}

/* r: the occurrences of the key from the place's element on, itself included. */
PACER_INLINE __u32 pacer_estimate_r(const struct pacer_estimate_counts *c,
				    const struct pacer_estimate_ref *ref)
{
	return c->entry[ref->entry].count - ref->mark + 1;
}

/* ---- Triangles that close on a sampled edge ---------------------------------------------------
 */

#define PACER_ESTIMATE_SLOTS 4

enum pacer_estimate_side { PACER_ESTIMATE_A = 1, PACER_ESTIMATE_B = 2, PACER_ESTIMATE_BOTH = 3 };

/*
 * One for each place: its edge, the class of third vertices, and which of them were seen beside a
 * and b.
 */
struct pacer_estimate_watch {
	__u64 end[2];
	__u64 vertex[PACER_ESTIMATE_SLOTS];
	__u8 side[PACER_ESTIMATE_SLOTS]; /* of vertex[]: enum pacer_estimate_side; 0: free */
	__u32 class;
	__u8 on;   /* the edge has not come again */
	__u8 more; /* vertices were seen for which there was no slot */
	__u8 unused[6];
};

/* Three of a place: (a, class), (b, class), and the edge. Number 3 * place + which + 1. */
struct pacer_estimate_link {
	__u32 next; /* 0: none */
	__u32 *at;  /* what points to it */
};

struct pacer_estimate_watches {
	struct pacer_estimate_watch *watch; /* one a place */
	struct pacer_estimate_link *link;   /* three a place, and the first of no use */
	__u32 *head;			    /* mask + 1 */
	__u32 mask;
	__u32 classes; /* C, a power of two */
	__u64 seed;
};

PACER_INLINE __u32 pacer_estimate_class(const struct pacer_estimate_watches *w, __u64 vertex)
{
	return pacer_estimate_mix(vertex ^ ~w->seed) >> 32 & (w->classes - 1);
}

PACER_INLINE __u32 *pacer_estimate_head(const struct pacer_estimate_watches *w, __u64 a, __u64 b)
{
	return &w->head[pacer_estimate_mix(pacer_estimate_mix(a ^ w->seed) + b) & w->mask];
}

/* The chain of an edge, whichever way it is written. */
PACER_INLINE __u32 *pacer_estimate_edge(const struct pacer_estimate_watches *w, __u64 a, __u64 b)
{
	return a < b ? pacer_estimate_head(w, a, ~b) : pacer_estimate_head(w, b, ~a);
}

PACER_INLINE void pacer_estimate_link(struct pacer_estimate_watches *w, __u32 i, __u32 *head)
{
	struct pacer_estimate_link *l = &w->link[i];

	l->next = *head;
	l->at = head;
	if (*head)
		w->link[*head].at = &l->next;
	*head = i;
}

PACER_INLINE void pacer_estimate_unlink(struct pacer_estimate_watches *w, __u32 i)
{
	struct pacer_estimate_link *l = &w->link[i];

	*l->at = l->next;
	if (l->next)
		w->link[l->next].at = l->at;
}

PACER_INLINE void pacer_estimate_stop(struct pacer_estimate_watches *w, __u32 place)
{
	__u32 which;

	if (!w->watch[place].on)
		return;
	w->watch[place].on = 0;
	for (which = 1; which <= 3; which++)
		pacer_estimate_unlink(w, 3 * place + which);
}

/* Notes that the vertex was seen beside an end of the edge. */
PACER_INLINE void pacer_estimate_mark(struct pacer_estimate_watch *p, __u64 vertex, __u8 side)
{
	__u32 i;

	for (i = 0; i < PACER_ESTIMATE_SLOTS && p->side[i]; i++) {
		if (p->vertex[i] != vertex)
			continue;
		p->side[i] |= side;
		return;
	}
	if (i == PACER_ESTIMATE_SLOTS) {
		p->more = 1;
		return;
	}
	p->vertex[i] = vertex;
	p->side[i] = side;
}

/* Notes edge (x, y) in the watches that have x as an end and y in their class. */
PACER_INLINE void pacer_estimate_beside(struct pacer_estimate_watches *w, __u64 x, __u64 y)
{
	__u32 class = pacer_estimate_class(w, y), i;

	for (i = *pacer_estimate_head(w, x, class); i; i = w->link[i].next) {
		struct pacer_estimate_watch *p = &w->watch[(i - 1) / 3];
		__u32 which = (i - 1) % 3;

		if (which < 2 && p->end[which] == x && p->class == class && p->end[!which] != y)
			pacer_estimate_mark(p, y, which ? PACER_ESTIMATE_B : PACER_ESTIMATE_A);
	}
}

/* Call it for every edge before it is stored anywhere. x = y is no edge. */
PACER_INLINE void pacer_estimate_edge_seen(struct pacer_estimate_watches *w, __u64 x, __u64 y)
{
	__u32 i, next;

	if (x == y)
		return;
	for (i = *pacer_estimate_edge(w, x, y); i; i = next) {
		const struct pacer_estimate_watch *p = &w->watch[(i - 1) / 3];

		next = w->link[i].next;
		if ((i - 1) % 3 == 2 &&
		    ((p->end[0] == x && p->end[1] == y) || (p->end[0] == y && p->end[1] == x))) {
			/* next may be a link of the same place, in the same chain by chance. */
			while (next && (next - 1) / 3 == (i - 1) / 3)
				next = w->link[next].next;
			pacer_estimate_stop(w, (i - 1) / 3);
		}
	}
	pacer_estimate_beside(w, x, y);
	pacer_estimate_beside(w, y, x);
}

/* Stores the last edge seen in the place. */
PACER_INLINE void pacer_estimate_watch_edge(struct pacer_estimate_watches *w,
					    struct pacer_sample_rng *rng, __u32 place, __u64 x,
					    __u64 y)
{
	struct pacer_estimate_watch *p = &w->watch[place];

	pacer_estimate_stop(w, place);
	*p = (struct pacer_estimate_watch){.end = {x, y}, .on = x != y};
	if (!p->on)
		return;
	p->class = pacer_sample_below(rng, w->classes);
	pacer_estimate_link(w, 3 * place + 1, pacer_estimate_head(w, x, p->class));
	pacer_estimate_link(w, 3 * place + 2, pacer_estimate_head(w, y, p->class));
	pacer_estimate_link(w, 3 * place + 3, pacer_estimate_edge(w, x, y));
}

/*
 * Beta: the triangles that closed, of one class of third vertices. The mean of n C beta is the
 * number of triangles.
 */
PACER_INLINE __u32 pacer_estimate_closed(const struct pacer_estimate_watch *p)
{
	__u32 i, closed = 0;

	for (i = 0; i < PACER_ESTIMATE_SLOTS; i++)
		closed += p->on && p->side[i] == PACER_ESTIMATE_BOTH;
	return closed;
}

/* ---- The number of elements of a time window ------------------------------------------------- */

#define PACER_ESTIMATE_TICKS 2048 /* the longest window; a power of two */

struct pacer_estimate_ticks {
	__u64 tick; /* the latest seen */
	__u64 t0;   /* at most PACER_ESTIMATE_TICKS */
	__u64 n;    /* elements of the t0 ticks up to it */
	__u32 count[PACER_ESTIMATE_TICKS];
};

/* Moves on to `tick` and subtracts from n what has left the window. */
PACER_INLINE void pacer_estimate_ticks_to(struct pacer_estimate_ticks *c, __u64 tick)
{
	bool all = tick > c->tick && tick - c->tick >= c->t0;
	__u32 i;

	for (i = 0; i < PACER_ESTIMATE_TICKS && (all || c->tick < tick); i++) {
		__u64 first = c->tick + 1 - c->t0;
		__u32 *left = &c->count[(all ? i : first) & (PACER_ESTIMATE_TICKS - 1)];

		c->n -= *left;
		*left = 0;
		c->tick += !all;
	}
	if (all)
		c->tick = tick;
}

PACER_INLINE void pacer_estimate_ticks_add(struct pacer_estimate_ticks *c, __u64 tick)
{
	pacer_estimate_ticks_to(c, tick);
	c->count[c->tick & (PACER_ESTIMATE_TICKS - 1)]++;
	c->n++;
}

/* ---- Step-biased samples ----------------------------------------------------------------------
 * Windows 0 .. steps - 1, each within the next; an element that is in window i but not in i - 1
 * shall have a chance in proportion to weight[i], which falls with i. A draw from window i gives
 * each of its n[i] elements 1 / n[i]; so window i is taken in proportion to n[i] times what the
 * weight falls by behind it, and an element has the sum of what it falls by from its step on.
 */
#define PACER_ESTIMATE_STEPS	  8
#define PACER_ESTIMATE_WEIGHT_MAX (1u << 20)

struct pacer_estimate_step {
	__u32 weight;
	__u64 n; /* below 2^40 */
};

/* The window to draw from; `steps` if all are empty. */
PACER_INLINE __u32 pacer_estimate_step(const struct pacer_estimate_step *step, __u32 steps,
				       struct pacer_sample_rng *rng)
{
	__u64 mass[PACER_ESTIMATE_STEPS], sum = 0, at;
	__u32 i;

	for (i = 0; i < PACER_ESTIMATE_STEPS && i < steps; i++) {
		__u32 behind = i + 1 < steps ? step[i + 1].weight : 0;

		mass[i] = (__u64)(step[i].weight - behind) * step[i].n;
		sum += mass[i];
	}
	if (!sum)
		return steps;
	at = pacer_sample_below(rng, sum);
	for (i = 0; i < PACER_ESTIMATE_STEPS && i < steps; i++) {
		if (at < mass[i])
			break;
		at -= mass[i];
	}
	return i;
}

#endif
