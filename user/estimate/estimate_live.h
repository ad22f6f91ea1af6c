/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: reads the samples of all CPUs of a pacer at work, for `estimate`.
 *
 * Concurrency, error, memory: those of drawn.h and pooled.h.
 */
#ifndef PACER_ESTIMATE_LIVE_H
#define PACER_ESTIMATE_LIVE_H

#include "estimate/drawn.h"
#include "estimate/estimate_want.h"

#define LIVE_KEYS 5 /* at most, to be shown */

struct estimate_live {
	const struct estimate_want *want;
	const struct attached *a;
	const struct policy_sample *sample; /* of the policy in force */
	struct drawn drawn;
	uint64_t bytes; /* memory of the samplers */
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
