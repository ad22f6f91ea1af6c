/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: an upper bound for when a key was last seen, in fixed memory. It has
 * two uses: a minimum gap between a key's packets, and a filter before a table
 * of things that expire.
 *
 * Source: "RecencySketch". An array of times; a key's hash selects cells; the
 * estimate is the earliest of them and is never older than the truth.
 *
 * The gap. With two or more rows, a compare-and-swap on the oldest cell alone
 * admits too much. One CPU raises cell a. Before it raises b, another CPU finds
 * b old and admits the key again (tests/model finds it). Here all cells of a
 * key are in one line of seven cells, under the line's lock. Two CPUs with the
 * same key meet at the lock, so judging and raising are one step.
 *
 * The cells of a key are the pair {a, a + 1 + b} modulo 7, with a in 0..6 and b
 * in 0..5. They are two different cells, and every pair is equally likely.
 *
 * Error: a key is denied wrongly only if other keys have raised every one of
 * its cells within the gap. However many keys there are, each cell admits at
 * most one packet in a gap. If keys share no cells, it is one packet for each
 * `rows` cells.
 *
 * Concurrency: each function of the gap says its own. The functions of the TTL
 * filter are lock-free, for any number of callers.
 *
 * Memory: 64 bytes for 7 cells. 8 bytes for each cell of the filter.
 */
#ifndef PACER_RECENCY_H
#define PACER_RECENCY_H

#include "abi.h"
#include "lock.h"

/*
 * May a key last seen at last_ns (0: never) be admitted at now_ns? A time before last_ns counts as
 * last_ns, when only a gap of 0 is over.
 */
PACER_INLINE int pacer_gap_open(__u64 last_ns, __u64 now_ns, __u64 gap_ns)
{
	if (!last_ns)
		return 1;
	return now_ns < last_ns ? !gap_ns : now_ns - last_ns >= gap_ns;
}

/* The earliest time at which pacer_gap_open says so; 0: at any. */
PACER_INLINE __u64 pacer_gap_when(__u64 last_ns, __u64 gap_ns)
{
	return last_ns && gap_ns ? last_ns + gap_ns : 0;
}

_Static_assert(PACER_CELLS == 7, "seven cells to a line, and that is prime");
_Static_assert(sizeof(struct pacer_line) == 8 + 8 * PACER_CELLS, "64 bytes for 7 cells");

/* The cell of row 0 or 1 of the key with this mark. */
PACER_INLINE __u32 pacer_recency_cell(__u32 mark, __u32 row)
{
	__u32 a = ((mark & 0xffff) * PACER_CELLS) >> 16;
	__u32 b = a + 1 + (((mark >> 16) * (PACER_CELLS - 1)) >> 16);

	if (!row)
		return a;
	return b >= PACER_CELLS ? b - PACER_CELLS : b;
}

/* Cell i of a line, 0 to 6. The cells are all words but the first. */
PACER_INLINE __u64 *pacer_line_cell(struct pacer_line *line, __u32 i)
{
	return &line->word64[pacer_opaque(i + 1) & PACER_CELLS];
}

/*
 * The latest time at which the key may have been seen. It is never before the truth. rows: 1 or 2.
 */
PACER_INLINE __u64 pacer_recency_estimate(struct pacer_line *line, __u32 mark, __u32 rows)
{
	__u64 a = pacer_load64(pacer_line_cell(line, pacer_recency_cell(mark, 0)));
	__u64 b;

	if (rows < 2)
		return a;
	b = pacer_load64(pacer_line_cell(line, pacer_recency_cell(mark, 1)));
	return a < b ? a : b;
}

/* Raises the key's cells to now_ns. Only for the line's holder. */
PACER_INLINE void pacer_recency_raise(struct pacer_line *line, __u32 mark, __u32 rows, __u64 now_ns)
{
	__u32 row;

	for (row = 0; row < PACER_ROWS_MAX && row < rows; row++) {
		__u64 *cell = pacer_line_cell(line, pacer_recency_cell(mark, row));

		if (pacer_load64(cell) < now_ns)
			pacer_store64(cell, now_ns);
	}
}

/*
 * The second use: a filter for a time-based cache. "Expired" is certain. "Live" may come from
 * another key, and an exact table has to confirm it. `cells` is an array of mask + 1 times, a power
 * of two. The two halves of a key's hash select its cells.
 *
 * The source's two variants differ in what is raised and what is asked:
 *   insertion stored:  raise to now,        live if estimate + ttl > now (one TTL for all)
 *   expiry stored:     raise to now + ttl,  live if estimate > now       (a TTL an insertion)
 */
struct pacer_ttl_key {
	__u32 first, second;
};

PACER_INLINE PACER_MUST_USE int pacer_ttl_raise_cell(__u64 *cell, __u64 to_ns)
{
	int i;

	for (i = 0; i < PACER_SPINS; i++) {
		__u64 seen = pacer_load64(cell);

		if (PACER_FAULT(TTL_PLAIN_STORE) && seen < to_ns) {
			pacer_store64(cell, to_ns);
			return 1;
		}
		if (seen >= to_ns || pacer_cas64(cell, seen, to_ns) == seen)
			return 1;
	}
	return 0;
}

/*
 * Raises the key's cells to at least to_ns. 0 if other CPUs changed a cell PACER_SPINS times
 * meanwhile. Then the key may read as expired, and the caller must not enter it in its table.
 */
PACER_INLINE PACER_MUST_USE int pacer_ttl_raise(__u64 *cells, __u32 mask, struct pacer_ttl_key key,
						__u64 to_ns)
{
	return pacer_ttl_raise_cell(&cells[key.first & mask], to_ns) &&
	       pacer_ttl_raise_cell(&cells[key.second & mask], to_ns);
}

/* The time stored for the key, or a later one. */
PACER_INLINE __u64 pacer_ttl_estimate(const __u64 *cells, __u32 mask, struct pacer_ttl_key key)
{
	__u64 a = pacer_load64(&cells[key.first & mask]);
	__u64 b = pacer_load64(&cells[key.second & mask]);

	return a < b ? a : b;
}

/* Cells hold expiry times: may the key be live? 0 is certain. */
PACER_INLINE int pacer_ttl_expiry_live(const __u64 *cells, __u32 mask, struct pacer_ttl_key key,
				       __u64 now_ns)
{
	return pacer_ttl_estimate(cells, mask, key) > now_ns;
}

#endif
