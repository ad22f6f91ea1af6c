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

#include <jansson.h>

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

/* estimate_live_show.c */
json_t *estimate_live_json(const struct estimate_live *live);
void estimate_live_print(const struct estimate_live *live);
/* One line a reading; `first` has a heading. */
void estimate_live_print_row(const struct estimate_live *live, bool first);

#endif
