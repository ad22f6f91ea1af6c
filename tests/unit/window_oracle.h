/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The source's two operations on a window, add(n) and check(now), of the parts that common/table.h
 * puts together in the packet path.
 */
#ifndef WINDOW_ORACLE_H
#define WINDOW_ORACLE_H

#include "window.h"

/*
 * Cost units that the window ending at now_ns holds: the source's check(now). The ring is not
 * changed. `cursor` is the ring's current slot, from the lock word.
 */
PACER_INLINE __u32 pacer_window_total(const struct pacer_window *w, const struct pacer_ring *r,
				      __u32 cursor, __u64 now_ns)
{
	__u64 head_ns = pacer_load64(&r->head->head_ns);

	return pacer_window_since(w, r, pacer_ring_running(r), cursor,
				  pacer_window_passed(w, head_ns, now_ns));
}

/*
 * Advance the ring to now_ns and add `cost` units: the source's add(n). Returns the new cursor.
 * The caller has seen that they fit.
 */
PACER_INLINE PACER_MUST_USE __u32 pacer_window_add(const struct pacer_window *w,
						   const struct pacer_ring *r, __u32 cursor,
						   __u64 now_ns, __u32 cost)
{
	__u64 head_ns = pacer_load64(&r->head->head_ns);
	__u32 running = pacer_ring_running(r);

	cursor = pacer_window_advance(w, r, cursor, head_ns, running,
				      pacer_window_passed(w, head_ns, now_ns), now_ns);
	pacer_ring_count(r, running + cost);
	return cursor;
}

#endif
