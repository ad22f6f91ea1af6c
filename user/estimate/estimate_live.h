/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the samples of a pacer at work, of all CPUs, as `estimate` reads and shows them.
 *
 * Concurrency: one thread; the packet path never waits (snapshot.h).
 *
 * Error: each CPU counts with the exact number of its window's packets. CPUs are read one after the
 * other, within read_ns; of one that is `behind`, the current tick is left out.
 *
 * Memory: a copy of one sampler, and 64 items a CPU.
 */
#ifndef PACER_ESTIMATE_LIVE_H
#define PACER_ESTIMATE_LIVE_H

#include "estimate/estimate_want.h"
#include "live/loader.h"
#include "estimate/pooled.h"

#define LIVE_KEYS 5 /* that are shown */

struct estimate_live {
	const struct estimate_want *want;
	const struct attached *a;
	const struct policy_sample *sample; /* of the policy in force */
	struct pacer_sampling by;	    /* of it */
	uint64_t now_ns, read_ns, bytes;    /* monotonic; bytes: what the samplers take */
	uint32_t cpus, behind;
	struct pooled_part *part;	/* one a CPU */
	struct pacer_sample_item *item; /* PACER_SAMPLE_K a CPU */
	struct pooled_values values;
	struct pooled_key key[LIVE_KEYS];
	uint32_t keys;
};

/*
 * Read the samples and show them: once, or every want->every_ns until `show` says that nobody looks
 * any more. 0, or -1 with *error filled.
 */
int estimate_live(const struct estimate_want *want,
		  bool (*show)(const struct estimate_live *live, void *arg), void *arg,
		  struct policy_error *error);

#endif
