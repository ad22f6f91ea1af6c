/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the shares of a pacer at work: which limits of its policy a fleet divides, what this
 * host may use of each, and how the agent tells the packets (common/share.h).
 *
 * Concurrency: packets are judged meanwhile. One agent at a time writes.
 */
#ifndef PACER_FLEET_SHARES_H
#define PACER_FLEET_SHARES_H

#include "parse.h"
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

/* A key with a share of its own: only what the limit's key has of the packet is filled in. */
struct fleet_lane {
	bool is;
	struct pacer_packet key;
	uint64_t units;
};

/* What the packets of this host may use of the limit: units (plan/shares.h). */
struct fleet_held {
	bool is; /* the place is the limit's */
	uint64_t units, floor;
	uint64_t until_ns;    /* of `units` and of those of lanes, on the packets' clock */
	uint64_t answered_ns; /* the agent by the store last, 17 ms early at most; 0: never */
	uint32_t members;     /* as the agent said */
	uint64_t member;      /* whose reserve the floor is: its id; read back as 0 */
	struct fleet_lane lane[PACER_LANES];
};

struct fleet_held fleet_held(const struct attached *a, const struct fleet_limit *limit);

/* Do the packets have the same key under the limit? Its key has no values of sets. */
bool fleet_same_key(const struct fleet_limit *limit, const struct pacer_packet *a,
		    const struct pacer_packet *b);

/* What the packet is judged by under the limit as `held` says, of the time before its end. */
uint64_t fleet_judged_by(const struct fleet_limit *limit, const struct fleet_held *held,
			 const struct pacer_packet *pkt);

/*
 * Tells the packets what `to` says, but for members and answered_ns: units until until_ns, less
 * what the coarse clock may be late, and then the floor. On return no packet is judged by what was
 * there before, and meanwhile none by more than the greater of what both say of its key. The keys
 * of lanes are different. -1 with *error filled: that is not known, and until another call no key
 * has more than before, nor than `to` says.
 */
int fleet_hold(const struct attached *a, const struct fleet_limit *limit,
	       const struct fleet_held *to, struct policy_error *error);

/*
 * The shares are of another fleet than the policy's, or that is of none: nobody has any, and no
 * reserve, until an agent says so. An agent that runs may do that of the old one until it has seen
 * that; then it takes all back itself. Of a policy of none on trial they are left: the one before
 * may come back, and goes on by them.
 */
void fleet_forget(const struct attached *a);

/*
 * Empties the places whose share is not that of this id (0: of none), one for each place: a limit
 * that was there before, and comes back, finds nothing of what was told of it. For the agent.
 * Returns whether there was one: until grace() some packet may be judged by what was there.
 */
bool fleet_clear(const struct attached *a, const uint64_t id[PACER_SHARES]);

/*
 * Of a throttle, how many uses are not free again by now: those that were made, and those that CPUs
 * hold on lease. It is all that was admitted within its cool-down if packets have been counted by
 * this very limit for as long. UINT64_MAX: it is not known, or the limit is of another kind.
 */
uint64_t fleet_hot(const struct attached *a, const struct fleet_limit *limit);

/* What the tools can say of it. */
void fleet_say(const struct attached *a, const struct fleet_limit *limit, uint32_t members,
	       uint64_t answered_ns);

#endif
