/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: what the verbs show, as text and as JSON. */
#ifndef PACER_OUTPUT_H
#define PACER_OUTPUT_H

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

/* What a policy would take and promise: the fields of check, into the object that is open. */
void output_check(const struct policy *policy, const struct pacer_policy *bin,
		  const struct plan *plan);

/* All that the pacer takes at load, with so many lines of state. */
uint64_t output_memory_bytes(uint64_t lines);

/* -1 with *error filled where the policy wants more memory than this machine has free. */
int output_memory_error(const struct policy *policy, struct policy_error *error);

#endif
