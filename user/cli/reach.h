/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: how much of what a source sends can fall under a rule, by the rule's match. */
#ifndef CLI_REACH_H
#define CLI_REACH_H

#include "config/policy.h"
#include "limit.h"

enum reach {
	REACH_NONE,
	REACH_SOME, /* or it cannot be told */
	REACH_ALL   /* the match asks for nothing but the source, and has it */
};

/*
 * Does the set have the source? walk->pkt has its address, and the walk's policy the set, by
 * whose matches and allow-list `set` is used. A source that is no whole address, and a set that
 * cannot be read: REACH_SOME.
 */
enum reach reach_of_set(const struct policy_set_use *set, const struct pacer_walk *walk,
			const struct prefix *source);

/* The same of a rule; of one for what is in tunnels: of what has the source there. */
enum reach reach_of_rule(const struct policy_rule *rule, const struct pacer_walk *walk,
			 const struct prefix *source);

#endif
