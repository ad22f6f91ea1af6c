/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: cost admitted within a rolling window, in slots.
 *
 * Source: "Controlling Rate-Limited Events - Implementation", section "A Bounded
 * Approximation": slots of width T, advance and clear, one clear for a jump
 * longer than the ring. Two things differ:
 *
 * - The source shortens the window to make up for the slots (300 per 1.0 s kept as 300 per 0.9 s).
 * A ring of m slots of W/m forgets an event after W - T to W, so up to twice
 * the limit passes across an edge. Here the ring has m + 1 slots with m * T >=
 * W. An event in the slot that began at s, so at s <= e < s + T, is forgotten
 * at s + (m + 1) T > e + m T >= e + W.
 * - The source keeps a count for each slot, and a running total. Here the ring holds the running
 * total at the beginning of each slot. The total of the window is then one
 * subtraction, whatever the slots.
 *
 * Slots begin at the first event after the ring was empty, not at multiples of
 * T. So their widths are exact without a division. Time 0 is no time: a head of
 * 0 means that the ring was never used.
 *
 * Error: G1 is exact for the closed window [t-W, t]. A denial is false only if
 * the cost over (t - (m+1) T, t] would not fit, which is W + T where m divides W.
 * A sustained flow gets at least m / (m + 1) of its limit. Bytes beyond 2^31 a
 * window are counted in units of 2^cost_shift bytes, rounded up for each packet.
 * A time before the current slot counts as the slot's beginning.
 *
 * Concurrency: pacer_window_since only reads. It may run beside a writer if the
 * caller checks the lock word afterwards (lock.h). pacer_window_advance and
 * pacer_ring_count are for the line's holder. The source's add(n) and
 * check(now) are those together (tests/unit/window_oracle.h), as table.h has
 * them.
 *
 * Memory: 4 bytes for each slot and 24 more: one line up to 10 slots, two up to
 * 26. The ring never holds more than the limit. So for limits up to
 * PACER_NARROW_LIMIT the totals are kept modulo 2^8: a byte for each slot and
 * 18 more, half a line up to PACER_NARROW_SLOTS slots.
 */
#ifndef PACER_WINDOW_H
#define PACER_WINDOW_H

#include "abi.h"

#define PACER_WINDOW_NS_MAX (1ull << 56) /* 2.28 years */
#define PACER_LIMIT_MAX	    0x7fffffffu	 /* cost units */
#define PACER_NARROW_LIMIT  0xffu	 /* of a narrow record's window */
#define PACER_NARROW_SLOTS  (PACER_UNIT_CELLS - 2)
#define PACER_NARROW_UNITS  2
#define PACER_RATE_UNITS    1 /* of an entry of a rate (rate.h) */

#define PACER_COST_SHIFT_MAX 16u /* bytes are counted in units of 64 KiB at most */
#define PACER_LIMIT_BYTES    (((PACER_LIMIT_MAX + 1ull) << PACER_COST_SHIFT_MAX) - 1) /* the most */

_Static_assert(PACER_STARTS_LINE == 10 + 1, "one line up to 10 slots");
_Static_assert(PACER_STARTS_LINE + PACER_LINE_WORDS == 26 + 1, "two up to 26");
_Static_assert(sizeof(struct pacer_line) == 4 * 10 + 24, "4 bytes a slot and 24 beside");
_Static_assert(PACER_NARROW_UNITS * sizeof(union pacer_unit) == PACER_NARROW_SLOTS + 18,
	       "a byte a slot and 18 beside");
_Static_assert(2 * PACER_NARROW_UNITS * sizeof(union pacer_unit) == sizeof(struct pacer_line),
	       "half a line, so that a set of two is a line");

enum pacer_window_error {
	PACER_WINDOW_OK,
	PACER_WINDOW_BAD_LIMIT, /* 0, or more than can be counted */
	PACER_WINDOW_BAD_TIME,	/* 0, or longer than PACER_WINDOW_NS_MAX */
	PACER_WINDOW_BAD_SLOTS	/* 0, more than PACER_SLOTS_MAX, or more than the window has ns */
};

/* Finds a line; 0: none. A host that stores lines in another way defines it itself. */
#ifndef PACER_LINE_AT
#define PACER_LINE_AT(table, index) pacer_line_at(table, index)
#endif

/*
 * An entry: its first line, its beginning in that line, and its index in the table, in units. By
 * value here is also what compilers should know where they can.
 */
struct pacer_ring {
	struct pacer_table *table;
	struct pacer_line *line;
	struct pacer_entry *head;
	union pacer_unit *cells; /* of a narrow record: the unit behind its beginning */
	__u32 index;
	__u32 narrow; /* 1: of a narrow record */
};

PACER_INLINE int pacer_window_narrow(const struct pacer_window *w)
{
	return w->units == PACER_NARROW_UNITS;
}

/* Makes its records wide, whatever the limit. For the loader. */
PACER_INLINE void pacer_window_widen(struct pacer_window *w)
{
	w->extra_lines =
	    w->ring <= PACER_STARTS_LINE
		? 0
		: (w->ring - PACER_STARTS_LINE + PACER_LINE_WORDS - 1) / PACER_LINE_WORDS;
	w->units = PACER_LINE_UNITS * (1 + w->extra_lines);
}

/* The largest limit that a record of this width can count to. */
PACER_INLINE __u32 pacer_window_limit_max(const struct pacer_window *w)
{
	return pacer_window_narrow(w) ? PACER_NARROW_LIMIT : PACER_LIMIT_MAX;
}

/*
 * Fills *w from the operator's units: `limit` packets or bytes in any `window_ns`, with `slots`
 * slots, on a clock of `resolution_ns`. The window grows by the resolution, so that G1 holds in
 * real time. For the loader: it divides.
 */
PACER_INLINE PACER_MUST_USE enum pacer_window_error
pacer_window_profile(struct pacer_window *w, enum pacer_cost cost, __u64 limit, __u64 window_ns,
		     __u32 slots, __u64 resolution_ns)
{
	__u64 span = window_ns + resolution_ns;
	__u8 unit = 0, shift = 0;

	if (!window_ns || window_ns > PACER_WINDOW_NS_MAX || resolution_ns > PACER_WINDOW_NS_MAX)
		return PACER_WINDOW_BAD_TIME;
	if (!slots || slots > PACER_SLOTS_MAX || slots > window_ns)
		return PACER_WINDOW_BAD_SLOTS;
	while (cost == PACER_COST_BYTES && limit >> unit > PACER_LIMIT_MAX &&
	       unit < PACER_COST_SHIFT_MAX)
		unit++;
	if (!(limit >> unit) || limit >> unit > PACER_LIMIT_MAX)
		return PACER_WINDOW_BAD_LIMIT;
	w->slot_ns = (span + slots - 1) / slots;
	if (w->slot_ns < 2)
		w->slot_ns = 2;
	w->ring = slots + 1;
	w->ring_ns = w->slot_ns * w->ring;
	while (w->ring_ns >> shift >= 1ull << 31)
		shift++;
	w->shift = shift;
	w->mul = (1ull << (32 + shift)) / w->slot_ns;
	w->limit = limit >> unit;
	w->cost = cost;
	w->cost_shift = unit;
	pacer_window_widen(w);
	if (w->limit <= PACER_NARROW_LIMIT && slots <= PACER_NARROW_SLOTS) {
		w->extra_lines = 0;
		w->units = PACER_NARROW_UNITS;
	}
	return PACER_WINDOW_OK;
}

/* The cost of a packet of `len_bytes`, in the window's units. */
PACER_INLINE __u32 pacer_window_cost(const struct pacer_window *w, __u32 len_bytes)
{
	if (w->cost == PACER_COST_PACKETS)
		return 1;
	return (len_bytes + (1u << w->cost_shift) - 1) >> w->cost_shift;
}

/*
 * Whole slots in `ns`, at most w->ring. Exact: with D = ns >> shift < 2^31 and mul <= 2^(32+shift)
 * / slot_ns the product is never above ns / slot_ns, and below it by less than D / 2^32 + 2^shift /
 * slot_ns < 1 (the second term only where shift > 0, and slot_ns >> shift is then above 2^24): one
 * correction mends it.
 */
PACER_INLINE __u32 pacer_window_slots(const struct pacer_window *w, __u64 ns)
{
	__u64 n;

	if (ns < w->slot_ns) /* most packets of a busy key */
		return 0;
	if (ns >= w->ring_ns)
		return w->ring;
	n = ((ns >> w->shift) * w->mul) >> 32;
	if (ns - n * w->slot_ns >= w->slot_ns)
		n++;
	return n;
}

/* The word of slot i of a wide record: the start words go on into the lines that follow its first.
 */
PACER_INLINE __u32 *pacer_ring_word(const struct pacer_ring *r, __u32 i)
{
	__u32 at = (pacer_opaque(i) & 63) + PACER_LINE_WORDS - PACER_STARTS_LINE;
	struct pacer_line *line = r->line;

	if (at >= PACER_LINE_WORDS)
		line = PACER_LINE_AT(r->table, r->index / PACER_LINE_UNITS + at / PACER_LINE_WORDS);
	if (!line)
		line = r->line; /* not reached: the loader gives each record enough lines */
	return &line->word[at % PACER_LINE_WORDS];
}

/* The unit at this index, in units, which is in this line. */
PACER_INLINE union pacer_unit *pacer_line_unit(struct pacer_line *line, __u32 index)
{
	return &line->unit[pacer_opaque(index) & (PACER_LINE_UNITS - 1)];
}

/* The cell of slot i of a narrow record. */
PACER_INLINE __u8 *pacer_ring_cell(const struct pacer_ring *r, __u32 i)
{
	return &r->cells->cell[(pacer_opaque(i) + 1) & (PACER_UNIT_CELLS - 1)];
}

/* The running total: cost admitted so far, modulo 2^8 or 2^32. */
PACER_INLINE __u32 pacer_ring_running(const struct pacer_ring *r)
{
	return r->narrow ? pacer_load8(r->cells->cell) : pacer_load(&r->line->running);
}

PACER_INLINE void pacer_ring_count(const struct pacer_ring *r, __u32 running)
{
	if (r->narrow)
		pacer_store8(r->cells->cell, running);
	else
		pacer_store(&r->line->running, running);
}

/* Copies the totals of one record to another, line by line. Only for the holder of both. */
PACER_INLINE void pacer_ring_copy(const struct pacer_window *w, const struct pacer_ring *to,
				  const struct pacer_ring *from)
{
	__u32 left = w->ring, i = PACER_LINE_WORDS - PACER_STARTS_LINE, n;
	struct pacer_line *a = to->line, *b = from->line;

	if (to->narrow) {
		pacer_store64(&to->cells->cell64[0], pacer_load64(&from->cells->cell64[0]));
		pacer_store64(&to->cells->cell64[1], pacer_load64(&from->cells->cell64[1]));
		return;
	}
	pacer_store(&a->running, pacer_load(&b->running));
	for (n = 1; n <= PACER_EXTRA_MAX + 1 && a && b; n++) {
		for (; i < PACER_LINE_WORDS && left; i++, left--)
			pacer_store(&a->word[i], pacer_load(&b->word[i]));
		if (!left)
			return;
		a = PACER_LINE_AT(to->table, to->index / PACER_LINE_UNITS + n);
		b = PACER_LINE_AT(from->table, from->index / PACER_LINE_UNITS + n);
		i = 0;
	}
}

/*
 * A stretch of the ring, in one word, since functions that verifiers look at once have few
 * arguments: after which slot of how many it begins, how many it has, and the running total.
 */
PACER_INLINE __u64 pacer_ring_stretch(const struct pacer_window *w, __u32 cursor, __u32 slots,
				      __u32 running)
{
	return (__u64)running << 32 | cursor << 16 | w->ring << 8 | slots;
}

/* The next slot of this ring. By arithmetic, since every branch in a loop is one more path to
 * verify.
 */
PACER_INLINE __u32 pacer_ring_next(__u32 ring, __u32 cursor)
{
	__u32 beyond = pacer_opaque(cursor + 1 - ring);

	return (beyond + (ring & -(beyond >> 31))) & 63;
}

/* The next slot begins, with this total. Returns it. */
PACER_INLINE __u32 pacer_ring_begin_slot(const struct pacer_ring *r, __u32 ring, __u32 cursor,
					 __u32 running)
{
	cursor = pacer_ring_next(ring, cursor);
	if (r->narrow)
		pacer_store8(pacer_ring_cell(r, cursor), running);
	else
		pacer_store(pacer_ring_word(r, cursor), running);
	return cursor;
}

/* Every slot of the stretch begins. Returns the last one. */
PACER_INLINE __u32 pacer_ring_begin_slots(const struct pacer_ring *r, __u64 stretch, __u32 max)
{
	__u32 cursor = stretch >> 16 & 63, ring = stretch >> 8 & 0xff, slots = stretch & 0xff, i;

	for (i = 0; i < max && i < slots; i++)
		cursor = pacer_ring_begin_slot(r, ring, cursor, stretch >> 32);
	return cursor;
}

/* Functions apart, one a width, since verifiers look at each turn of a loop. */
PACER_GLOBAL __u32 pacer_ring_begin_narrow(union pacer_unit *cells, __u64 stretch)
{
	struct pacer_ring r = {0, 0, 0, cells, 0, 1};

	return cells ? pacer_ring_begin_slots(&r, stretch, PACER_NARROW_SLOTS + 1) : 0;
}

PACER_GLOBAL __u32 pacer_ring_begin_wide(struct pacer_table *table, struct pacer_line *line,
					 __u32 index, __u64 stretch)
{
	struct pacer_ring r = {table, line, 0, 0, index, 0};

	PACER_ARGUMENT(table);
	return line ? pacer_ring_begin_slots(&r, stretch, PACER_RING_MAX) : 0;
}

/* How many slots the ring has to advance to reach now_ns: all if it was never used. */
PACER_INLINE __u32 pacer_window_passed(const struct pacer_window *w, __u64 head_ns, __u64 now_ns)
{
	if (!head_ns)
		return w->ring;
	return now_ns > head_ns ? pacer_window_slots(w, now_ns - head_ns) : 0;
}

/* The cost units in the slots of the ring that are left, of `ring`, after `passed` ones. */
PACER_INLINE __u32 pacer_ring_since(const struct pacer_ring *r, __u32 ring, __u32 running,
				    __u32 cursor, __u32 passed)
{
	__u32 oldest = cursor + passed + 1;

	oldest -= ring & -((ring - 1 - oldest) >> 31); /* no branch, which verifiers would follow */
	if (r->narrow)
		return (running - pacer_load8(pacer_ring_cell(r, oldest))) & 0xff;
	return running - pacer_load(pacer_ring_word(r, oldest));
}

/* The cost units in the ring after it advances by `passed` slots. cum is its running total. */
PACER_INLINE __u32 pacer_window_since(const struct pacer_window *w, const struct pacer_ring *r,
				      __u32 running, __u32 cursor, __u32 passed)
{
	if (passed >= w->ring)
		return 0;
	return pacer_ring_since(r, w->ring, running, cursor, passed);
}

/*
 * Advances the ring by `passed` slots to now_ns. Its current slot began at head_ns, and its running
 * total is cum. Returns the new cursor.
 */
PACER_INLINE PACER_MUST_USE __u32 pacer_window_advance(const struct pacer_window *w,
						       const struct pacer_ring *r, __u32 cursor,
						       __u64 head_ns, __u32 running, __u32 passed,
						       __u64 now_ns)
{
	__u64 stretch;

	if (!passed)
		return cursor;
	/* Here, since most often it is the only one. */
	cursor = pacer_ring_begin_slot(r, w->ring, cursor, running);
	if (passed > 1) {
		stretch = pacer_ring_stretch(w, cursor, passed - 1, running);
		cursor = r->narrow ? pacer_ring_begin_narrow(r->cells, stretch)
				   : pacer_ring_begin_wide(r->table, r->line, r->index, stretch);
	}
	pacer_store64(&r->head->head_ns,
		      passed >= w->ring ? now_ns : head_ns + passed * w->slot_ns);
	return cursor;
}

/*
 * The earliest time at which `cost` units fit below `limit` if nothing else comes. The current slot
 * began at head_ns. The time is exact, since slots are forgotten as a whole. 0: at any time.
 * PACER_NEVER: the cost is above the limit. Not for the packet path: it looks at every slot.
 */
PACER_INLINE __u64 pacer_window_when_of(const struct pacer_window *w, __u32 limit,
					const struct pacer_ring *r, __u32 cursor, __u64 head_ns,
					__u32 cost)
{
	__u32 running = pacer_ring_running(r), passed;

	if (cost > limit)
		return PACER_NEVER;
	if (!head_ns)
		return 0;
	for (passed = 0; passed < w->ring; passed++)
		if ((__u64)pacer_window_since(w, r, running, cursor, passed) + cost <= limit)
			break;
	return passed ? head_ns + passed * w->slot_ns : 0;
}

/* The same by its own limit. */
PACER_INLINE __u64 pacer_window_when(const struct pacer_window *w, const struct pacer_ring *r,
				     __u32 cursor, __u64 head_ns, __u32 cost)
{
	return pacer_window_when_of(w, w->limit, r, cursor, head_ns, cost);
}

#endif
