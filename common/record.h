/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: one key's window, with or without a gap, in one entry of the table.
 *
 * Source: window.h and recency.h. The last admission is kept beside the ring,
 * in one word:
 *
 *   bits 0-1    generation of the limit, and 1 more; 0: the rest says nothing
 *   bits 2-7    for so many slots from the current one on the window stays full
 *   bits 8-31   when it was: the time since the current slot began, in units of
 *               2^last_shift ns, rounded up
 *
 * Of a window that a fleet divides, which has no gap, bits 8-31 say how much it
 * holds for so many slots from the current one on: as much as the share was, which
 * changes without another generation (share.h).
 *
 * With this word a refusal is one expression (pacer_record_closed). It reads an
 * entry's first 16 bytes, and nothing it reads chooses an address or a branch,
 * so the processor goes on to the next packet while the line is on its way. It
 * refuses only what pacer_record_judge refuses: the gap is compared as there,
 * and the window is full until a slot that holds something is forgotten. Where
 * the limit's value changes, full may mean another thing: then the limit gets
 * another generation, and whoever changes it removes that generation from all
 * entries before (pacer_record_forget).
 *
 * Concurrency: pacer_record_judge only reads. It may run beside a writer if the
 * caller checks the lock word afterwards (lock.h). pacer_record_closed may run
 * beside a writer as it is. pacer_record_admit is for the holder.
 *
 * Error: window.h's. A gap is prolonged by less than one unit of last_shift.
 *
 * Memory: window.h's.
 */
#ifndef PACER_RECORD_H
#define PACER_RECORD_H

#include "abi.h"
#include "recency.h"
#include "table.h"
#include "window.h"

#define PACER_LAST_GENERATION 3u /* its bits */
#define PACER_LAST_FULL	      2	 /* the lowest of its bits */
#define PACER_LAST_OFF	      8
#define PACER_LAST_FULL_MAX   63u
#define PACER_LAST_OFF_MAX    0xffffffu /* the longest slot, in units of 2^last_shift ns */

#define PACER_GENERATIONS PACER_LAST_GENERATION /* of a limit, one after the other */

_Static_assert(PACER_RING_MAX <= PACER_LAST_FULL_MAX, "a ring can be full for all its slots");

/* The most slots that are looked at to see how long a window stays full. */
#define PACER_FULL_LOOK 16u

/* The unit of last admissions in slots of this length: 2^so many ns. For the loader. */
PACER_INLINE __u8 pacer_last_shift(__u64 slot_ns)
{
	__u8 shift = 0;

	while (slot_ns >> shift >= PACER_LAST_OFF_MAX)
		shift++;
	return shift;
}

/* When a record's key was last admitted: its slot began at head_ns, `last` is its word. */
PACER_INLINE __u64 pacer_record_last(const struct pacer_limiter *t, __u64 head_ns, __u32 last)
{
	return head_ns + ((__u64)(last >> PACER_LAST_OFF) << t->last_shift);
}

/*
 * Is the entry the key's, and closed at now_ns? 0 in both bits says nothing. Read only, by
 * arithmetic alone, and also beside a writer: head_ns never goes back, and is read first. So a word
 * that is newer counts from too early a time, which refuses too little. gap: a constant, 1 if the
 * limit has one.
 */
PACER_INLINE void pacer_record_closed(const struct pacer_short *s, int gap,
				      struct pacer_entry *entry, __u64 key, __u64 now_ns,
				      struct pacer_closed *closed)
{
	__u64 since_ns = now_ns - pacer_load64(&entry->head_ns), words, full_ns, mine;

	PACER_BARRIER();
	words = pacer_halves(pacer_load64(&entry->words));
	mine = ((words & PACER_CLOSED_BITS) ^ key) - 1; /* the highest bit where it was 0 */
	full_ns = (words >> (32 + PACER_LAST_FULL) & PACER_LAST_FULL_MAX) * s->slot_ns;
	closed->window |= (since_ns - full_ns) & mine;
	if (gap)
		closed->gap |=
		    (since_ns - s->gap_ns - (words >> (32 + PACER_LAST_OFF) << s->last_shift)) &
		    mine;
}

/*
 * The same of a window that a fleet divides, of which `part` counts here: the entry's word says how
 * much the window holds for how long, and that is compared with what counts now.
 */
PACER_INLINE void pacer_record_closed_of(const struct pacer_short *s, __u32 part,
					 struct pacer_entry *entry, __u64 key, __u64 now_ns,
					 struct pacer_closed *closed)
{
	__u64 since_ns = now_ns - pacer_load64(&entry->head_ns), words, full_ns, mine;

	PACER_BARRIER();
	words = pacer_halves(pacer_load64(&entry->words));
	mine = ((words & PACER_CLOSED_BITS) ^ key) - 1;
	full_ns = (words >> (32 + PACER_LAST_FULL) & PACER_LAST_FULL_MAX) * s->slot_ns;
	closed->window |=
	    (since_ns - full_ns) & mine & (part - (words >> (32 + PACER_LAST_OFF)) - 1);
}

/* What counts of the window's limit: a share may be of a larger one. */
PACER_INLINE __u32 pacer_record_limit(const struct pacer_ask *q)
{
	__u32 limit = q->limiter->window.limit;

	return q->part < limit ? q->part : limit;
}

/*
 * Does the record admit the packet? `word` is its lock word. Read only. If it admits, *seen is
 * complete.
 */
PACER_INLINE enum pacer_reason pacer_record_judge(const struct pacer_ask *q,
						  const struct pacer_ring *r, __u32 word,
						  struct pacer_seen *seen)
{
	const struct pacer_limiter *t = q->limiter;
	__u64 last_ns = pacer_load64(&r->head->head_ns);

	seen->head_ns = last_ns;
	seen->last = pacer_load(&r->head->last);
	if (t->gap_ns) { /* without a gap the last admission, rounded up, may be beyond the slot */
		last_ns = pacer_record_last(t, last_ns, seen->last);
		if (!pacer_gap_open(last_ns, q->now_ns, t->gap_ns))
			return PACER_DENY_GAP;
	}
	seen->running = pacer_ring_running(r);
	seen->now_ns = pacer_later(q->now_ns, last_ns);
	seen->passed = pacer_window_passed(&t->window, seen->head_ns, seen->now_ns);
	seen->total =
	    pacer_window_since(&t->window, r, seen->running, pacer_lock_cursor(word), seen->passed);
	if ((__u64)seen->total + pacer_window_cost(&t->window, q->len_bytes) >
	    pacer_record_limit(q))
		return PACER_DENY_WINDOW;
	return PACER_ADMIT;
}

/* Under the lock: is the record still as it was when it was judged? */
PACER_INLINE int pacer_record_same(const struct pacer_ring *r, const struct pacer_seen *seen)
{
	return pacer_load64(&r->head->head_ns) == seen->head_ns &&
	       pacer_load(&r->head->last) == seen->last && pacer_ring_running(r) == seen->running;
}

/* For how many slots of the ring, from the current one on, nothing fits into it. */
PACER_INLINE __u32 pacer_ring_full(const struct pacer_ring *r, __u64 stretch, __u32 limit)
{
	__u32 cursor = stretch >> 16 & 63, ring = stretch >> 8 & 0xff, passed;

	PACER_ROLLED
	for (passed = 1; passed < PACER_FULL_LOOK && passed < ring; passed++)
		if (pacer_ring_since(r, ring, stretch >> 32, cursor, passed) < limit)
			break;
	return passed;
}

/* Functions apart, as those that begin slots (window.h). */
PACER_GLOBAL __u32 pacer_ring_full_narrow(union pacer_unit *cells, __u64 stretch, __u32 limit)
{
	struct pacer_ring r = {0, 0, 0, cells, 0, 1};

	return cells ? pacer_ring_full(&r, stretch, limit) : 0;
}

PACER_GLOBAL __u32 pacer_ring_full_wide(struct pacer_table *table, struct pacer_line *line,
					__u32 index, __u64 stretch, __u32 limit)
{
	struct pacer_ring r = {table, line, 0, 0, index, 0};

	PACER_ARGUMENT(table);
	return line ? pacer_ring_full(&r, stretch, limit) : 0;
}

/*
 * For how many slots from the current one on the ring, which holds `total` units, `cost` of them
 * just counted, holds as many as the limit or more; 0: it does not. It may be too few: not all
 * slots are looked at.
 */
PACER_INLINE __u32 pacer_record_full(const struct pacer_window *w, const struct pacer_ring *r,
				     __u32 cursor, __u32 running, __u32 total, __u32 cost,
				     __u32 limit)
{
	__u64 stretch;

	if (total < limit)
		return 0;
	if (total == cost) /* all of it is in the current slot */
		return w->ring;
	stretch = pacer_ring_stretch(w, cursor, 0, running);
	return r->narrow ? pacer_ring_full_narrow(r->cells, stretch, limit)
			 : pacer_ring_full_wide(r->table, r->line, r->index, stretch, limit);
}

/* The record's word: its last admission was at now_ns, and it is full for so many slots. */
PACER_INLINE __u32 pacer_record_word(const struct pacer_limiter *t, __u64 head_ns, __u64 now_ns,
				     __u32 full)
{
	__u64 unit = (1ull << t->last_shift) - 1;
	__u32 off = (now_ns - head_ns + unit) >> t->last_shift;
	__u32 generation = t->gap_ns || full ? t->generation + 1 : 0;

	return off << PACER_LAST_OFF | full << PACER_LAST_FULL | generation;
}

/*
 * The same of a window that a fleet divides: it holds as much as `level` for so many slots. That
 * is true whatever the share is by then. One that is too large for the word is not said.
 */
PACER_INLINE __u32 pacer_record_word_of(const struct pacer_limiter *t, __u32 level, __u32 full)
{
	if (!full || level > PACER_LAST_OFF_MAX)
		return 0;
	return level << PACER_LAST_OFF | full << PACER_LAST_FULL | (t->generation + 1u);
}

/* Counts the judged packet. Returns the word to release the lock with. Only for the holder. */
PACER_INLINE PACER_MUST_USE __u32 pacer_record_admit(const struct pacer_ask *q,
						     const struct pacer_ring *r,
						     const struct pacer_seen *seen, __u32 word)
{
	const struct pacer_limiter *t = q->limiter;
	__u32 cost = pacer_window_cost(&t->window, q->len_bytes), cursor = pacer_lock_cursor(word);
	__u32 full, last;
	__u64 head_ns = seen->head_ns;

	if (seen->passed) {
		cursor = pacer_window_advance(&t->window, r, cursor, head_ns, seen->running,
					      seen->passed, seen->now_ns);
		word = pacer_lock_set(word, pacer_lock_tag(word), cursor);
		head_ns = pacer_load64(&r->head->head_ns);
	}
	pacer_ring_count(r, seen->running + cost);
	full = pacer_record_full(&t->window, r, cursor, seen->running + cost, seen->total + cost,
				 cost, pacer_record_limit(q));
	if (q->part == PACER_SHARE_WHOLE)
		last = pacer_record_word(t, head_ns, seen->now_ns, full);
	else
		last = pacer_record_word_of(t, pacer_record_limit(q), full); /* it has no gap */
	pacer_store(&r->head->last, last);
	return word;
}

/* The earliest time at which both the gap and the window of the record admit the packet. */
PACER_INLINE __u64 pacer_record_when(const struct pacer_ask *q, const struct pacer_ring *r,
				     __u32 word)
{
	const struct pacer_limiter *t = q->limiter;
	__u64 head_ns = pacer_load64(&r->head->head_ns), last_ns = head_ns;

	if (head_ns && t->gap_ns)
		last_ns = pacer_record_last(t, head_ns, pacer_load(&r->head->last));
	return pacer_later(pacer_gap_when(last_ns, t->gap_ns),
			   pacer_window_when_of(&t->window, pacer_record_limit(q), r,
						pacer_lock_cursor(word), head_ns,
						pacer_window_cost(&t->window, q->len_bytes)));
}

/*
 * The entry's word no longer speaks for this generation. For whoever changes a limit's value, for
 * all its entries, before the limit gets the generation; packets may be judged by the others
 * meanwhile. 0: a CPU holds the entry. Try again: it takes no longer than a packet.
 */
PACER_INLINE PACER_MUST_USE int pacer_record_forget(struct pacer_entry *entry, __u8 generation)
{
	__u64 words = pacer_load64(&entry->words), halves = pacer_halves(words);
	__u64 bits = (__u64)PACER_LAST_GENERATION << 32;

	if ((halves & bits) >> 32 != generation + 1u)
		return 1;
	return !(halves & PACER_LOCK_HELD) &&
	       pacer_cas64(&entry->words, words, pacer_halves(halves & ~bits)) == words;
}

#endif
