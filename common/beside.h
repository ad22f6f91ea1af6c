/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: a second policy beside the one in force, a shadow: it judges the same packets on state
 * of its own, and changes no verdict. What is told of it is how packets would fare differently.
 *
 * A packet fares differently where one of the two lets it through and the other does not. Whether
 * it is dropped or sent to a pool, and by which limit, is no difference; monitor mode and
 * `over: pass` let it through.
 *
 * Concurrency: any number of CPUs; counts are each CPU's own. Error: none. Memory: 768 bytes of
 * counts for a rule and a CPU.
 */
#ifndef PACER_BESIDE_H
#define PACER_BESIDE_H

#include "abi.h"

/* How a packet would fare under the shadow. X(NAME, name, text) */
#define PACER_CHANGES(X)                                        \
	X(CHANGE_NONE, "none", "fares alike")                   \
	X(CHANGE_DENY, "deny", "let through, and would not be") \
	X(CHANGE_ADMIT, "admit", "not let through, and would be")

enum pacer_change {
#define PACER_CHANGE_ENUM(name, id, text) PACER_##name,
	PACER_CHANGES(PACER_CHANGE_ENUM)
#undef PACER_CHANGE_ENUM
	    PACER_CHANGE_COUNT
};

#define PACER_CHANGE_REASONS 16u /* a mask of one less lets all reasons through */

_Static_assert(PACER_REASON_COUNT <= PACER_CHANGE_REASONS, "a reason has a place");

/* Packets of a rule of the shadow, by its reasons. */
struct pacer_changes {
	struct pacer_count by[PACER_CHANGE_COUNT][PACER_CHANGE_REASONS];
};

_Static_assert(sizeof(struct pacer_changes) == 768, "as the header says");

/* What is said of a shadow beside its policy and its state. */
struct pacer_shadow {
	__u64 since_ns;		  /* when its first packet could come; monotonic */
	struct pacer_sampling of; /* how packets that fare differently are sampled */
};

/* Passes: 1, the packet is let through; 0, it is not. */
PACER_INLINE enum pacer_change pacer_change_of(int passes, int would_pass)
{
	if (!passes == !would_pass)
		return PACER_CHANGE_NONE;
	return would_pass ? PACER_CHANGE_ADMIT : PACER_CHANGE_DENY;
}

/* Counts a packet of len_bytes. */
PACER_INLINE void pacer_changes_count(struct pacer_changes *c, enum pacer_change change,
				      __u32 reason, __u32 len_bytes)
{
	__u32 at = pacer_opaque(change);

	reason = pacer_opaque(reason) & (PACER_CHANGE_REASONS - 1);
	if (at >= PACER_CHANGE_COUNT)
		return;
	c->by[at][reason].packets++;
	c->by[at][reason].bytes += len_bytes;
}

#endif
