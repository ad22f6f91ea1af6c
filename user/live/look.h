/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the state of a pacer at work, as the core in user space asks it: one for each CPU, whose
 * leases are its own. To be read alone.
 *
 * Memory: the leases of all CPUs, copied when it is opened.
 */
#ifndef PACER_LOOK_H
#define PACER_LOOK_H

#include "live/attached.h"
#include "limit.h"
#include "sets/build.h"

struct look {
	const struct pacer_policy *policy; /* in force */
	uint32_t copy, cpus;
	uint64_t now_ns;		    /* by the clock that packets are judged on */
	struct pacer_throttle_lease *lease; /* PACER_THROTTLES of each CPU */
	const struct attached *a;
	struct set_lines lines[PACER_SETS_MAX]; /* of the policy's sets */
	struct pacer_set set[PACER_SETS_MAX];
	struct set_lines hand_lines[PACER_SETS_MAX]; /* of what was added to them by hand */
	struct pacer_set hand[PACER_SETS_MAX];
};

/* 0, or -1 with *error filled. */
int look_open(const struct attached *a, struct look *look, struct policy_error *error);
void look_close(struct look *look);
/* Of one CPU; `look` has to stay. */
struct pacer_state look_state(const struct look *look, uint32_t cpu);

#endif
