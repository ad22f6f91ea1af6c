/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: one key's window, with or without a gap, in one entry of the table.
 *
 * Source: window.h and recency.h. The last admission is kept beside the ring,
 * as the time since the current slot began, in units of 2^last_shift ns,
 * rounded up.
 *
 * Concurrency: pacer_record_judge only reads. It may run beside a writer if the
 * caller checks the lock word afterwards (lock.h). pacer_record_admit is
 * for the holder.
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
	__u32 total;

	seen->head_ns = last_ns;
	seen->last_off = pacer_load(&r->head->last_off);
	if (t->gap_ns) { /* without a gap last_off, rounded up, may be beyond the slot */
		last_ns += (__u64)seen->last_off << t->last_shift;
		if (!pacer_gap_open(last_ns, q->now_ns, t->gap_ns))
			return PACER_DENY_GAP;
	}
	seen->running = pacer_ring_running(&t->window, r);
	seen->now_ns = pacer_later(q->now_ns, last_ns);
	seen->passed = pacer_window_passed(&t->window, seen->head_ns, seen->now_ns);
	total =
	    pacer_window_since(&t->window, r, seen->running, pacer_lock_cursor(word), seen->passed);
	if ((__u64)total + pacer_window_cost(&t->window, q->len_bytes) > t->window.limit)
		return PACER_DENY_WINDOW;
	return PACER_ADMIT;
}

/* Under the lock: is the record still as it was when it was judged? */
PACER_INLINE int pacer_record_same(const struct pacer_limiter *t, const struct pacer_ring *r,
				   const struct pacer_seen *seen)
{
	return pacer_load64(&r->head->head_ns) == seen->head_ns &&
	       pacer_load(&r->head->last_off) == seen->last_off &&
	       pacer_ring_running(&t->window, r) == seen->running;
}

/* Counts the judged packet. Returns the word to release the lock with. Only for the holder. */
PACER_INLINE PACER_MUST_USE __u32 pacer_record_admit(const struct pacer_ask *q,
						     const struct pacer_ring *r,
						     const struct pacer_seen *seen, __u32 word)
{
	const struct pacer_limiter *t = q->limiter;
	__u64 unit = (1ull << t->last_shift) - 1, head_ns = seen->head_ns;

	if (seen->passed) {
		__u32 cursor = pacer_window_advance(&t->window, r, pacer_lock_cursor(word), head_ns,
						    seen->running, seen->passed, seen->now_ns);

		word = pacer_lock_set(word, pacer_lock_tag(word), cursor);
		head_ns = pacer_load64(&r->head->head_ns);
	}
	pacer_ring_count(&t->window, r,
			 seen->running + pacer_window_cost(&t->window, q->len_bytes));
	pacer_store(&r->head->last_off, (seen->now_ns - head_ns + unit) >> t->last_shift);
	return word;
}

/* The earliest time at which both the gap and the window of the record admit the packet. */
PACER_INLINE __u64 pacer_record_when(const struct pacer_ask *q, const struct pacer_ring *r,
				     __u32 word)
{
	const struct pacer_limiter *t = q->limiter;
	__u64 head_ns = pacer_load64(&r->head->head_ns), last_ns = head_ns;

	if (head_ns && t->gap_ns)
		last_ns += (__u64)pacer_load(&r->head->last_off) << t->last_shift;
	return pacer_later(pacer_gap_when(last_ns, t->gap_ns),
			   pacer_window_when(&t->window, r, pacer_lock_cursor(word), head_ns,
					     pacer_window_cost(&t->window, q->len_bytes)));
}

#endif
