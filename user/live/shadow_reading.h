/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a shadow has counted: how packets would have fared, by its rules and reasons
 * (common/beside.h). Nothing is changed by looking.
 *
 * Concurrency: one thread. Packets go on meanwhile, so two numbers may be of different moments.
 * Memory: its policy, until it is freed.
 */
#ifndef PACER_SHADOW_READING_H
#define PACER_SHADOW_READING_H

#include "beside.h"
#include "live/attached.h"

/* What a shadow has counted. */
struct shadow_reading {
	struct policy *policy;
	uint64_t since_ns, now_ns;			  /* monotonic */
	bool monitor;					  /* it would let through what it denies */
	struct pacer_changes rule[PACER_RULES_MAX], none; /* none: that no rule of it judged */
};

/* shadow: of attached_shadow. To be freed with shadow_reading_free. */
int shadow_read(const struct attached *shadow, struct shadow_reading *reading,
		struct policy_error *error);
void shadow_reading_free(struct shadow_reading *reading);

/* Of all rules and reasons, or of a rule's reasons. */
struct pacer_count shadow_sum(const struct shadow_reading *reading, enum pacer_change change);
struct pacer_count shadow_sum_of(const struct pacer_changes *changes, enum pacer_change change);
const char *shadow_change_name(enum pacer_change change);

/* Would a packet of that outcome pass, under the shadow's policy in force? */
bool shadow_passes(const struct pacer_policy *bin, size_t rule, enum pacer_reason reason);

#endif
