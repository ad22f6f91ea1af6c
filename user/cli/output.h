/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: what the verbs show, as text and as JSON. */
#ifndef PACER_OUTPUT_H
#define PACER_OUTPUT_H

#include <jansson.h>

#include "live/change.h"

/* The fields of status, into the object that is open. */
void output_status(const struct attached *a);

/* What rates are counted from; 0 before the first round. */
struct output_round {
	bool watched; /* there are further rounds */
	uint64_t before_ns, now_ns;
	struct pacer_count was[PACER_COUNTERS_MAX];
};

/* An object. With the rates since the round before, as text. */
void output_stats(const struct attached *a, struct output_round *round);

/* Text to stdout; returns the exit code. JSON: a new value. */
int output_check(const struct policy *policy, const struct pacer_policy *bin,
		 const struct plan *plan);
json_t *output_check_json(const struct policy *policy, const struct pacer_policy *bin,
			  const struct plan *plan);

/* All that the pacer takes at load, with so many lines of state. */
uint64_t output_memory_bytes(uint64_t lines);

/* -1 with *error filled where the policy wants more memory than this machine has free. */
int output_memory_error(const struct policy *policy, struct policy_error *error);

/*
 * The chance that a key of a gap's sketch is delayed by others when `keys` of them were admitted
 * within the gap (recency.h: cells of a key in one line of seven).
 */
double output_false_delay(const struct pacer_tier *tier, double keys);

/*
 * The chance that the filter sends a key that was never banned to the table, when that holds `keys`
 * bans (ban.h: two cells of a key in one line of eight).
 */
double output_ban_maybe(const struct pacer_bans *bans, double keys);

#endif
