/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: reads the samples of all CPUs of a pacer at work, for `estimate`.
 *
 * Concurrency: one thread; the packet path never waits (snapshot.h).
 *
 * Error: the number of packets in each CPU's window is exact. CPUs are read one after the other,
 * within read_ns. For a CPU that is `behind`, the current tick is missing.
 *
 * Memory: a copy of one sampler, and PACER_SAMPLE_K items for each CPU.
 */
#ifndef PACER_ESTIMATE_LIVE_H
#define PACER_ESTIMATE_LIVE_H

#include "estimate/estimate_want.h"
#include "live/attached.h"
#include "estimate/pooled.h"

#define LIVE_KEYS 5 /* at most, to be shown */

struct estimate_live {
	const struct estimate_want *want;
	const struct attached *a;
	const struct policy_sample *sample; /* of the policy in force */
	struct pacer_sampling by;	    /* of it */
	uint64_t now_ns, read_ns, bytes;    /* monotonic; bytes: memory of the samplers */
	uint32_t cpus, behind;
	struct pooled_part *part;	/* one per CPU */
	struct pacer_sample_item *item; /* PACER_SAMPLE_K per CPU */
	struct pooled_values values;
	struct pooled_key key[LIVE_KEYS];
	uint32_t keys;
};

/*
 * Reads and shows the samples: once, or every want->every_ns until `show` returns false. 0, or -1
 * with *error filled.
 */
int estimate_live(const struct estimate_want *want,
		  bool (*show)(const struct estimate_live *live, void *arg), void *arg,
		  struct policy_error *error);

#endif
