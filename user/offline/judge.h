/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a policy that judges a capture: compiled for the capture's clock, with state of its own.
 *
 * Concurrency: one thread. Memory: the policy's table, and what it compiles to.
 */
#ifndef PACER_JUDGE_H
#define PACER_JUDGE_H

#include "offline/replay.h"

struct judge {
	const char *name; /* the policy's file */
	const struct policy *policy;
	struct pacer_policy *bin; /* whose limits may be changed between two frames */
	struct plan *plan;
	struct replay *replay;
};

/* 0, or -1 with *error filled; it is about the file `name` (NULL: none) where the policy is to
 * blame. `policy` has to stay.
 */
int judge_open(struct judge *j, const char *name, const struct policy *policy, bool kernel,
	       struct policy_error *error);
void judge_close(struct judge *j);

/* Of the rule that the frame fell under, the limit that denied it, or the first. */
uint32_t judge_limit_of(const struct judge *j, const struct replay_judged *judged);

/* The limit that a limit of a rule became. */
struct pacer_limiter *judge_limiter(const struct judge *j, uint32_t rule, uint32_t limit);

/* The packet as a limit of a rule counts it, where values of sets may stand for addresses. */
struct pacer_packet judge_seen(const struct judge *j, const struct replay_judged *judged,
			       uint32_t rule, uint32_t limit);

/* What a limit allows: so many packets, bytes or uses (one, of a gap), each free again so long
 * after. */
uint64_t judge_capacity(const struct policy_limit *limit);
uint64_t judge_span_ns(const struct policy_limit *limit);

/* What a packet of this length costs under it. */
uint64_t judge_cost(const struct policy_limit *limit, uint32_t len_bytes);

/* Was it denied? What monitor or over: pass make of that is another question. */
bool judge_denied(const struct replay_judged *judged);
/* Is it not let through, as in the packet path? What a pool would be sent is not. */
bool judge_stops(const struct judge *j, const struct replay_judged *judged);

#endif
