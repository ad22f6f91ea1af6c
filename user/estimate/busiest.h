/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the keys with the most denied and the most admitted packets of a pacer at work, by the
 * packet path's own sample: so they cost no packet anything beyond it.
 *
 * A key is the one that was judged: of the limit that denied, or of the rule's first limit. A
 * source that is banned whatever its rule is a key of its own, without a rule. Shares are of all
 * packets that the policy samples.
 *
 * Concurrency: one thread; the packet path never waits.
 *
 * Error: that of pooled.h; the intervals of all keys hold together, but for a chance of
 * ESTIMATE_DELTA. Keys are 32-bit hashes beside their rules; two of one hash count as one.
 *
 * Memory: that of drawn.h while it reads.
 */
#ifndef PACER_BUSIEST_H
#define PACER_BUSIEST_H

#include "estimate/drawn.h"
#include "inspect/tally.h"

#define BUSIEST_MAX 64 /* of each verdict */

struct busy_key {
	enum pacer_verdict verdict; /* ADMIT or DENY */
	char key[TALLY_TEXT];
	char source[64];	    /* as a prefix: the key's, or that of one of its packets */
	char rule[POLICY_NAME_MAX]; /* "": it was banned without one; "?": the rule is gone */
	uint8_t parts;		    /* of the key: enum policy_key_part */
	enum pacer_reason reason;   /* of one of its packets */
	uint32_t times;		    /* in the samples */
	struct pooled_value share;
};

struct busiest {
	bool sampled; /* else the policy samples nothing, and the rest is 0 */
	enum policy_sampled of;
	uint64_t window_ns, window_packets; /* one of them is 0 */
	uint64_t n;			    /* packets in the window */
	uint32_t samples, behind;
	size_t n_keys; /* those of one verdict by their share, the greatest first */
	struct busy_key key[2 * BUSIEST_MAX];
};

/* 0, or -1 with *error filled. A policy that samples nothing is no error. */
int busiest_read(const struct attached *a, struct busiest *busiest, struct policy_error *error);

#endif
