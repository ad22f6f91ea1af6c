/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: a minimum gap between the packets of a key, in a sketch: a table of
 * lines of last-seen times, of which the key's hash selects the line and the cells.
 *
 * Source, error, memory: recency.h's.
 *
 * Concurrency: pacer_sketch_check only reads. What it read is whole if the
 * line's lock word is the same afterwards. Otherwise it returns ADMIT, and
 * reserving decides.
 */
#ifndef PACER_GAP_H
#define PACER_GAP_H

#include "abi.h"
#include "lock.h"
#include "recency.h"
#include "table.h"

/*
 * The mark that selects the key's cells. IPv4 and IPv6 have different hashes, but the key `all` is
 * one key for both.
 */
PACER_INLINE __u32 pacer_sketch_mark(const struct pacer_ask *q)
{
	return q->limiter->key_id ? q->hash.mark : 0;
}

PACER_INLINE enum pacer_reason pacer_sketch_judge(const struct pacer_ask *q,
						  struct pacer_line *line)
{
	__u64 last_ns = pacer_recency_estimate(line, pacer_sketch_mark(q), q->limiter->rows);

	return pacer_gap_open(last_ns, q->now_ns, q->limiter->gap_ns) ? PACER_ADMIT
								      : PACER_DENY_GAP;
}

PACER_INLINE __u32 pacer_sketch_index(const struct pacer_limiter *t, struct pacer_hash hash)
{
	return PACER_LINE_UNITS * (t->base + pacer_reduce(hash.home, t->sets));
}

/* Would the key's gap admit the packet? Read only. hold->index is where it looked. */
PACER_INLINE enum pacer_reason pacer_sketch_check(const struct pacer_ask *q,
						  struct pacer_hold *hold)
{
	enum pacer_reason reason;
	struct pacer_line *line;
	__u32 word;

	hold->index = pacer_sketch_index(q->limiter, q->hash);
	line = PACER_LINE_AT(q->table, hold->index / PACER_LINE_UNITS);
	if (!line)
		return PACER_DENY_NO_STATE;
	word = pacer_load(&line->lock);
	PACER_BARRIER();
	reason = pacer_sketch_judge(q, line);
	PACER_BARRIER();
	if (word & PACER_LOCK_HELD || pacer_load(&line->lock) != word)
		return PACER_ADMIT;
	return reason;
}

/* The earliest time at which the key's gap is over, if nothing else comes: exact. 0: at any. */
PACER_INLINE __u64 pacer_sketch_when(const struct pacer_ask *q)
{
	struct pacer_line *line =
	    PACER_LINE_AT(q->table, pacer_sketch_index(q->limiter, q->hash) / PACER_LINE_UNITS);

	if (!line)
		return PACER_NEVER;
	return pacer_gap_when(pacer_recency_estimate(line, pacer_sketch_mark(q), q->limiter->rows),
			      q->limiter->gap_ns);
}

#endif
