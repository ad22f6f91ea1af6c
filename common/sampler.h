/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the sampler of one CPU in the packet path, across policies. It counts or takes each
 * packet. A reader draws from a copy of it.
 *
 * 	for a packet		pacer_sampler_due, and if it says so pacer_sampler_take
 * 	from a copy		pacer_sampler_n, pacer_sampler_draw
 *
 * Source: "Succinct Sampling on Streams"; the forms are pacer_sample_seq_wor of sample.h for the
 * last packets and pacer_sample_burst of sample_burst.h for those of a time. There is no form for
 * the last packets with replacement: a sample without it says more, for less work.
 *
 * A sampler has the id of the pacer_sampling that it belongs to. A packet that finds another id
 * begins the sampler anew, in constant time: 2 KiB of ticks are zeroed. So no tool has to remove
 * the packets of an old policy, and it does not matter if a tool is killed.
 *
 * Concurrency: one writer, its CPU. `seq` is odd while a packet is taken or the sampler begins
 * anew. A copy is whole if seq was even before it and is the same after it; for the last packets,
 * wor.seq, too. For the time form a reader may use the state at the end of the last tick:
 * burst.ticks is the same and even, id is the same, and count is set to 0 in the copy. Heads are
 * written with their samples, inside seq.
 *
 * Error: none of its own. The number of elements of a window is exact: of the last packets
 * because they are counted, of the time form because `tick` remembers what came before each tick of
 * it. A time window is its last `window` ticks, the current one included.
 *
 * Memory: 348,672 bytes, whatever the form. Heads take PACER_SNAP_MAX bytes more for each place.
 */
#ifndef PACER_SAMPLER_H
#define PACER_SAMPLER_H

#include "abi.h"
#include "sample_burst.h"

#define PACER_SAMPLER_TICKS  128u /* more than a window has; a power of two */
#define PACER_SAMPLER_PLACES PACER_SAMPLE_BURST_PLACES

/* In pacer_sample_item.family: a later fragment. It has no ports, and its datagram's identification
 * stands in their place.
 */
#define PACER_SAMPLER_LATER 0x80u

/* A tick that had packets, and how many came before it. */
struct pacer_sampler_tick {
	__u64 T;
	__u64 before;
};

/* No packet yet: all zero, except the permutations of pacer_sampler_init. */
struct pacer_sampler {
	__u64 id; /* pacer_sampling.id */
	struct pacer_sample_rng rng;
	__u32 seq;
	__u32 place;   /* of the last packets: that of the packet to be taken */
	__u64 took;    /* which samples took the last packet that was taken, a bit each */
	__u32 open;    /* and where they lie: in this bucket of burst */
	__u32 first;   /* or from this place on, X_U being the places from 0 or from K */
	__u32 in_open; /* all ones of the former, 0 of the latter */
	__u32 unused[5];
	struct pacer_sample_burst burst;
	struct pacer_sample_seq_wor wor;
	struct pacer_sampler_tick tick[PACER_SAMPLER_TICKS];
} __attribute__((aligned(64)));

/* What bpf_xdp_load_bytes wrote last, and the heads of the packets in the sampler's places. */
struct pacer_heads {
	__u64 last[PACER_SNAP_MAX / 8];
	__u64 at[PACER_SAMPLER_PLACES][PACER_SNAP_MAX / 8];
};

_Static_assert(sizeof(struct pacer_sampler) == 348672, "as the header says");

/* Call it before there is a writer. */
PACER_INLINE void pacer_sampler_init(struct pacer_sampler *s, __u64 seed)
{
	bool good = pacer_sample_burst_init(&s->burst, 1, 1);

	(void)good;
	s->id = 0;
	s->seq = 0;
	s->rng.state = seed;
}

/* ---- For a packet --------------------------------------------------------------------------- */

PACER_INLINE void pacer_sampler_begin_form(struct pacer_sampler *s, const struct pacer_sampling *by)
{
	bool good;

	if (by->form == PACER_SAMPLE_TIME)
		good = pacer_sample_burst_restart(&s->burst, by->window, by->k);
	else
		good = pacer_sample_seq_wor_init(&s->wor, by->window, by->k);
	(void)good; /* it is off if not */
}

PACER_SUBPROG int pacer_sampler_begin(struct pacer_sampler *s, const struct pacer_sampling *by)
{
	__u32 i;

	pacer_sample_write_begin(&s->seq);
	pacer_sample_write_begin(&s->burst.ticks);
	pacer_store64(&s->id, by->id);
	PACER_ROLLED
	for (i = 0; i < PACER_SAMPLER_TICKS; i++) {
		pacer_store64(&s->tick[i].T, 0);
		pacer_store64(&s->tick[i].before, 0);
	}
	pacer_sampler_begin_form(s, by);
	pacer_sample_write_end(&s->burst.ticks);
	pacer_sample_write_end(&s->seq);
	return 0;
}

PACER_INLINE __u64 pacer_sampler_tick_of(const struct pacer_sampling *by, __u64 now_ns)
{
	return now_ns >> (by->tick_shift & 63);
}

/* Counts the packet. If it returns true, the caller has to pacer_sampler_take it. */
PACER_INLINE PACER_MUST_USE bool pacer_sampler_due(struct pacer_sampler *s,
						   const struct pacer_sampling *by, __u64 now_ns)
{
	if (s->id != by->id)
		pacer_sampler_begin(s, by);
	if (by->form == PACER_SAMPLE_TIME)
		return pacer_sample_burst_due(&s->burst, pacer_sampler_tick_of(by, now_ns));
	s->place = pacer_sample_seq_wor_place(&s->wor, &s->rng);
	return s->place < s->wor.k;
}

PACER_INLINE void pacer_sampler_take_time(struct pacer_sampler *s, __u64 tick,
					  const struct pacer_sample_item *item)
{
	__u64 before = s->burst.N + s->burst.count;

	if (tick > s->burst.T || !before) {
		struct pacer_sampler_tick *at = &s->tick[tick & (PACER_SAMPLER_TICKS - 1)];

		at->T = tick;
		at->before = before;
	}
	pacer_sample_burst_take(&s->burst, &s->rng, tick, item);
}

/* Between pacer_sample_write_begin and _end of s->seq. */
PACER_INLINE void pacer_sampler_take(struct pacer_sampler *s, const struct pacer_sampling *by,
				     const struct pacer_sample_item *item)
{
	s->in_open = 0;
	if (by->form == PACER_SAMPLE_TIME) {
		pacer_sampler_take_time(s, pacer_sampler_tick_of(by, item->time_ns), item);
		s->took = s->burst.took;
		s->open = pacer_sample_burst_nth(&s->burst, s->burst.len);
		s->in_open = ~0u;
	} else {
		pacer_sample_seq_wor_store(&s->wor, s->place, item);
		s->took = 1ull << (s->place & (PACER_SAMPLE_K - 1));
		s->first = s->wor.v * PACER_SAMPLE_K;
	}
}

/*
 * The number of the lowest bit, by counting the bits below it. Every branch would double the work
 * of the kernel's verifier.
 */
PACER_INLINE __u32 pacer_sampler_lowest(__u64 set)
{
	__u64 x = (set & -set) - 1;

	x -= x >> 1 & 0x5555555555555555ull;
	x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (x * 0x0101010101010101ull >> 56) & (PACER_SAMPLE_K - 1);
}

/* Where sample j has put the last packet taken, if it took it. */
PACER_INLINE __u32 pacer_sampler_place(const struct pacer_sampler *s, __u32 j)
{
	__u32 r = s->burst.R[s->open & (PACER_SAMPLE_BURST_BUCKETS - 1)][j];

	return ((r & s->in_open) | ((s->first + j) & ~s->in_open)) & (PACER_SAMPLER_PLACES - 1);
}

/* ---- Of a copy ------------------------------------------------------------------------------ */

/* The exact number of elements in the window at `tick`. */
PACER_INLINE __u64 pacer_sampler_n_time(const struct pacer_sampler *s, __u64 tick)
{
	const struct pacer_sample_burst *b = &s->burst;
	__u64 t = tick > b->T ? tick : b->T, oldest = ~0ull, before = b->N + b->count;
	__u32 i;

	for (i = 0; i < PACER_SAMPLER_TICKS; i++) {
		const struct pacer_sampler_tick *at = &s->tick[i];

		/* In a copy, a tick may have begun that the rest of the copy lacks. */
		if (at->T > b->T || at->T >= oldest || pacer_sample_expired(at->T, t, b->t0))
			continue;
		oldest = at->T;
		before = at->before;
	}
	return b->N + b->count - before;
}

PACER_INLINE __u64 pacer_sampler_n(const struct pacer_sampler *s, const struct pacer_sampling *by,
				   __u64 tick)
{
	__u64 N = s->wor.N;

	if (s->id != by->id)
		return 0;
	if (by->form == PACER_SAMPLE_TIME)
		return pacer_sampler_n_time(s, tick);
	return N < by->window ? N : by->window;
}

/* Reads the items at their places. */
PACER_INLINE struct pacer_sample_item *
pacer_sampler_item(struct pacer_sampler *s, const struct pacer_sampling *by, __u32 place)
{
	__u32 in = place & (PACER_SAMPLE_K - 1), v = place / PACER_SAMPLE_K & 1;

	if (by->form == PACER_SAMPLE_TIME)
		return &s->burst.place[place & (PACER_SAMPLER_PLACES - 1)].item;
	return &s->wor.X[v][in].item;
}

/*
 * Draws a sample of the window at `tick`. Returns the number of items in out: k, or 0 for an empty
 * window. Without replacement it is the whole window if that has fewer than k.
 */
PACER_INLINE __u32 pacer_sampler_draw(const struct pacer_sampler *s,
				      const struct pacer_sampling *by, struct pacer_sample_rng *rng,
				      __u64 tick, struct pacer_sample_item *out)
{
	if (s->id != by->id)
		return 0;
	if (by->form == PACER_SAMPLE_TIME)
		return pacer_sample_burst_draw(&s->burst, rng, tick, out);
	return s->wor.N ? pacer_sample_seq_wor_draw(&s->wor, rng, out) : 0;
}

#endif
