/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the keys that would fare differently under a shadow, by the shadow's own sample of such
 * packets: those with the most of them first.
 *
 * A key is the one that the shadow judged: of the limit that denied, or of the rule's first. Of
 * what no rule of it judged, the source. Shares are of all packets that fared differently in the
 * window.
 *
 * Concurrency: one thread; the packet path never waits. Error: that of pooled.h; the intervals of
 * all keys hold together, but for a chance of ESTIMATE_DELTA. Memory: that of drawn.h while it
 * reads.
 */
#ifndef PACER_DIFFERING_H
#define PACER_DIFFERING_H

#include "beside.h"
#include "estimate/drawn.h"
#include "inspect/tally.h"

#define DIFFERING_MAX 64

struct differing_key {
	enum pacer_change change;
	char key[TALLY_TEXT];
	char rule[POLICY_NAME_MAX]; /* of the shadow; "": none judged it */
	enum pacer_reason reason;   /* of one of its packets, under the shadow */
	uint32_t times;		    /* in the samples */
	struct pooled_value share;
};

struct differing {
	uint64_t window_ns, n; /* packets in the window that fared differently */
	uint32_t samples;
	size_t n_keys;
	struct differing_key key[DIFFERING_MAX];
};

/* shadow: of attached_shadow. 0, or -1 with *error filled. */
int differing_read(const struct attached *shadow, struct differing *differing,
		   struct policy_error *error);

#endif
