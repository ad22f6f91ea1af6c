/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the shares of a pacer at work: which limits of its policy a fleet divides, what this
 * host may use of each, and how the agent tells the packets (common/share.h).
 *
 * Concurrency: packets are judged meanwhile. One agent at a time writes.
 */
#ifndef PACER_FLEET_SHARES_H
#define PACER_FLEET_SHARES_H

#include "live/attached.h"

/* A limit that a fleet divides, in force or draining. */
struct fleet_limit {
	uint64_t id; /* the same on every host */
	size_t rule;
	struct pacer_limiter limiter;
	uint32_t counter; /* of its rule */
	uint8_t at;	  /* its place among the shares */
	bool draining;
};

/* Fills `into`, which has room for PACER_SHARES, from the policy in force. Returns how many. */
size_t fleet_limits(const struct attached *a, struct fleet_limit *into);

/* What the packets of this host may use now of the limit: units (plan/shares.h). */
struct fleet_held {
	bool is; /* the place is the limit's */
	uint64_t units, floor;
	uint64_t until_ns;    /* of `units`, on the packets' clock */
	uint64_t answered_ns; /* the agent by the store last, 17 ms early at most; 0: never */
	uint32_t members;     /* as the agent said */
};

struct fleet_held fleet_held(const struct attached *a, const struct fleet_limit *limit);

/*
 * Tells the packets: `units` until until_ns, less what the coarse clock may be late, and then
 * `floor`. On return no packet is judged by what was there before. -1 with *error filled: that is
 * not known.
 */
int fleet_hold(const struct attached *a, const struct fleet_limit *limit, uint64_t units,
	       uint64_t until_ns, uint64_t floor, struct policy_error *error);

/* What the tools can say of it. */
void fleet_say(const struct attached *a, const struct fleet_limit *limit, uint32_t members,
	       uint64_t answered_ns);

#endif
