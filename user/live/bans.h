/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: lists the bans on an interface for people (which key, which rule, for how long), and
 * lifts bans. It works on the packet path's own table (common/ban.h), while packets go on.
 */
#ifndef PACER_BANS_H
#define PACER_BANS_H

#include "live/loader.h"
#include "plan/tally.h"

struct ban {
	char rule[POLICY_NAME_MAX]; /* "?" if the policy no longer has the rule */
	char key[TALLY_TEXT];
	uint64_t left_ns; /* above 0 */
};

/*
 * Calls `each` for every ban under the policy in force. `policy` gives the names of the rules.
 * Returns the number of bans. A ban that is made or lifted meanwhile may be missed.
 */
size_t bans_each(const struct attached *a, const struct policy *policy,
		 void (*each)(const struct ban *, void *), void *arg);

/*
 * Calls each for every ban with its pacer_rule.id and no more, for a caller that only counts them.
 */
void bans_count(const struct attached *a, void (*each)(uint32_t rule_id, void *), void *arg);

/*
 * Lifts the bans of a key, named as by bans_each, under a rule. A key of NULL means all keys, a
 * rule of NULL all rules. Returns how many bans it lifted.
 */
size_t bans_lift(const struct attached *a, const struct policy *policy, const char *key,
		 const char *rule);

/* The entries of the table of bans; 0 if no rule bans. */
size_t bans_room(const struct attached *a);

#endif
