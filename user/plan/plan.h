/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a policy is compiled from and what is told of it: shared by those who compile its
 * parts (compile.h, throttles.h) and those who show or carry out the plan.
 */
#ifndef PACER_PLAN_H
#define PACER_PLAN_H

#include "config/policy.h"

/* Moved: new, and in the lines of a draining one, under another secret. */
enum plan_state { PLAN_NEW, PLAN_KEPT, PLAN_DRAINING, PLAN_MOVED };

/* What became of one limit. */
struct plan_limit {
	size_t rule, limit; /* in the policy */
	uint32_t limiter;   /* of the rule */
	enum plan_state state;
};

/* A pool: what its targets are, and whether each begins with a state of its own. */
struct plan_pool {
	char name[POLICY_NAME_MAX];
	struct policy_target target[PACER_TARGETS_MAX];
	enum plan_state state[PACER_TARGETS_MAX]; /* new or kept */
	bool spent[PACER_TARGETS_MAX];		  /* new, and all is used (throttles.h) */
	size_t n;
};

struct plan {
	uint64_t lines;		/* of the table */
	uint64_t lines_used;	/* by this policy's limits, the draining ones included */
	uint64_t resolution_ns; /* that the limits include; 0 with the exact clock */
	struct plan_limit limit[PACER_RULES_MAX * POLICY_LIMITS_MAX];
	size_t n_limits;
	size_t n_draining;
	size_t n_resting;			/* of rules that ask none (resting.h) */
	struct plan_pool pool[PACER_POOLS_MAX]; /* as in the policy */
	size_t n_pools;
	enum plan_state bans;  /* of the table of bans, if there is one */
	size_t bans_left_out;  /* for which another table has no room, once it is in force */
	enum plan_state flows; /* of the table of flows, if there is one */
	bool rotated;  /* its limits are hashed with another secret than the previous one's */
	uint32_t cpus; /* that leases of throttles are shared out to */
};

/* The limits of the policy before that stay for a time, with those of rules that ask none. */
static inline size_t plan_retired(const struct plan *plan)
{
	return plan->n_draining + plan->n_resting;
}

/*
 * The end of a limit that a change retires, until the change is in force: only then can be said how
 * long the limit is needed, since what it admits before counts, too. A change that is cut off in
 * between leaves it in force.
 */
#define COMPILE_UNTIL_SET UINT64_MAX

/* The policy that is being replaced. */
struct compile_previous {
	const struct policy *policy;
	const struct pacer_policy *bin;
	uint64_t lines;
	bool rotate; /* to the other of the two secrets */
	bool trial;  /* it comes back, unless the new policy is confirmed */
	bool saved;  /* nobody judges by it: what goes on is put into a table that is made for it */
};

struct compile_host {
	uint64_t resolution_ns; /* of the coarse clock */
	uint64_t now_ns;	/* monotonic */
	uint32_t cpus;		/* that packets are judged on, at least 1 */
};

/* A name as a number that is not 0: a rule's id, an interface's. */
static inline uint32_t compile_name_id(const char *name)
{
	uint32_t id = 0x811c9dc5;

	for (; *name; name++)
		id = (id ^ (unsigned char)*name) * 0x01000193;
	return id ? id : 1;
}

#endif
