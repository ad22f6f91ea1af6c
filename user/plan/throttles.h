/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: throttles (throttle.h) of limits and of the targets of pools: their profiles from the
 * operator's units, and which of the states each has. Pure.
 *
 * The lease. With h = (cpus - 1) * (lease - 1), leases let a denial be wrong with up to h more uses
 * free (throttle.h), and they save the shared line only until its cost is spread over enough uses.
 * So a lease is what keeps h within a quarter of the threshold, at most 256 uses, and at most what
 * the buckets have room for; of one CPU it is one use, and h is 0. It lasts a hundredth of the
 * cooldown, by which uses come back later, and 100 ms at most: a CPU that does not get through its
 * lease in that time has so few packets that the shared line is no burden. But it lasts four ticks
 * at least, so that a coarse clock does not end it at once.
 *
 * A throttle that goes on with another value may lease less. What CPUs have leased of it until then
 * they may use for as long as that lasts: so its limiter says how much that is, and until when.
 */
#ifndef PACER_THROTTLES_H
#define PACER_THROTTLES_H

#include "plan/facts.h"
#include "plan/plan.h"

/* Where a throttle stands in the policy: for an error, and for its units. */
struct throttle_ring_index {
	int line;
	char path[64];	  /* "rules[0].limits[3]" */
	uint32_t targets; /* that share its threshold; 1 but for a pool */
};

/* Fill *profile, or *error where too many buckets would be needed. */
int throttle_profile(const struct policy_throttle *throttle, const struct throttle_ring_index *at,
		     uint32_t cpus, uint64_t resolution_ns, struct pacer_throttle_profile *profile,
		     struct policy_error *error);

/* How long a bucket is open, or cools: what is shorter. */
uint64_t throttle_fine_ns(const struct policy_throttle *throttle);

/* After a use, for how long it can matter. */
uint64_t throttle_memory_ns(const struct pacer_throttle_profile *profile);

/* The uses beside its own that other CPUs may hold: h. */
uint32_t throttle_elsewhere(const struct pacer_throttle_profile *profile, uint32_t cpus);

/*
 * What `check` says of it: never more than its uses are admitted `to_whom`. Then: when a packet is
 * `refused` wrongly. throttle.h has the bound.
 */
void throttle_facts(const char *to_whom, const char *refused,
		    const struct policy_throttle *throttle, const struct pacer_throttle_profile *p,
		    uint32_t cpus, struct facts *to);

/*
 * So many uses a CPU may have leased of the limiter at once, under its policy or one before; and
 * the most that it may have of the one before where that is more than its own. Until when is said
 * by throttle_time_leases, when all packets are judged by this policy; does it have to be?
 */
uint32_t throttle_leased(const struct pacer_limiter *t, uint64_t now_ns);
void throttle_lease_lasts(struct pacer_limiter *t, uint32_t lease);
void throttle_lease_over(struct pacer_limiter *t); /* no CPU has one any more */
bool throttle_leases_last(const struct pacer_policy *bin);
void throttle_time_leases(struct pacer_policy *bin, uint64_t now_ns);

/* States that are taken. */
struct throttle_states {
	bool taken[PACER_THROTTLES];
};

/* All that the policy in force uses, or that still counts at now_ns; `bin` NULL: none. */
void throttle_survey(const struct pacer_policy *bin, uint64_t now_ns,
		     struct throttle_states *states);
/* A state that nobody has; -1 with *error if there is none. */
int throttle_take(struct throttle_states *states, int line, struct policy_error *error);

/* bin->pool, bin->former and plan->pool. */
int throttle_pools(const struct policy *policy, const struct compile_previous *previous,
		   const struct compile_host *host, struct throttle_states *states,
		   struct pacer_policy *bin, struct plan *plan, struct policy_error *error);

/*
 * *bin, which follows *old, remembers the targets of its pools, and those that count from before,
 * as far as it has none itself that remember as much.
 */
void throttle_leave_targets(const struct pacer_policy *old, uint64_t now_ns,
			    struct pacer_policy *bin);

/*
 * Targets that no pool has any more: after the switch to *bin, at now_ns, the end of those that it
 * gave up is set. Should *into come back in the place of *from at until_ns, the targets that only
 * *from had are added to those that *into has had.
 */
void compile_time_targets(struct pacer_policy *bin, uint64_t now_ns);
void compile_keep_targets(struct pacer_policy *into, const struct pacer_policy *from,
			  uint64_t until_ns);

/*
 * A target's state goes on in a pool of a shorter cooldown, which takes uses back earlier. Should a
 * longer cooldown come again while they count, the target begins with another state, in which all
 * is used: plan_pool.spent says so, and throttle_spend does it, to one that is empty. So a policy
 * that comes back by itself must not have had a longer one: does the change from *old to *new
 * shorten any, or begin any spent?
 */
bool compile_shortens_targets(const struct pacer_policy *old, const struct pacer_policy *new);
void throttle_spend(struct pacer_throttle_state *state,
		    const struct pacer_throttle_profile *profile, uint64_t now_ns);

#endif
