/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the bans that run on an interface, for people: which key, under which rule, for how
 * long; and lifting one. Read and lifted in the packet path's own table (common/ban.h), while it
 * works.
 */
#ifndef PACER_BANS_H
#define PACER_BANS_H

#include "live/loader.h"
#include "plan/tally.h"

struct ban {
	char rule[POLICY_NAME_MAX]; /* "?" of a rule that is not in the policy any more */
	char key[TALLY_TEXT];
	uint64_t left_ns; /* above 0 */
};

/*
 * Call `each` for every ban that runs under the policy in force, whose rules are named by `policy`.
 * Returns how many there are. What is banned or lifted meanwhile may or may not be among them.
 */
size_t bans_each(const struct attached *a, const struct policy *policy,
		 void (*each)(const struct ban *, void *), void *arg);

/* Lift the bans of the key as bans_each names it, under the rule or, with NULL, under all; with a
 * key of NULL, of all keys. Returns how many ran until then.
 */
size_t bans_lift(const struct attached *a, const struct policy *policy, const char *key,
		 const char *rule);

/* Entries of the table of bans, 0 where no rule bans. */
size_t bans_room(const struct attached *a);

#endif
