/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a policy on trial, and what it leaves in the one that it may give way to. A trial's
 * limits count in the policy before already when it comes into force. Otherwise it could give way,
 * its tool being dead, to a policy that does not know what it has admitted. A tool that is killed
 * in between leaves the policy before stricter than it says, by those limits, until they expire;
 * never the other way round.
 *
 * Functions return 0, or -1 with *error filled: then what is in force is what was. Who calls them
 * holds the lock (copies.h).
 */
#ifndef PACER_TRIAL_H
#define PACER_TRIAL_H

#include "live/attached.h"

/* What limits of the new policy are in the old one. */
struct trial_of {
	const int
	    *sets; /* of each set, which one it is there, if keys can have its values; or -1 */
	uint64_t other_fleet; /* by what ids of shares differ (plan/shares.h) */
	bool no_fleet;	      /* the old policy is of none */
};

/*
 * Readies `old`, which is in force, to follow `new` at until_ns, and has throttles of `new` lease
 * no more than is within those of the old one. Call it before `new` is put in force.
 */
int trial_begin(const struct attached *a, struct pacer_policy *old, struct pacer_policy *new,
		const struct trial_of *of, uint64_t until_ns, struct policy_error *error);
/* The new policy is in force, and what drains in it has its end. */
void trial_timed(const struct attached *a, struct pacer_policy *old, const struct pacer_policy *new,
		 uint64_t until_ns);
/* The policy on trial stays. */
int trial_confirm(struct attached *a, struct policy_error *error);

/* A policy that limits nothing, by which a load that was not confirmed is known, too. */
#define LOAD_NOTHING                                                          \
	"# The pacer was loaded on trial, and nobody confirmed it in time.\n" \
	"mode: monitor\n"                                                     \
	"unparsed: pass\n"                                                    \
	"rules: []\n"

/* Is that in force? */
bool load_trial_lapsed(const struct attached *a);
/* Will it be, unless the load is confirmed? */
bool load_trial_pending(const struct attached *a);
/* -1: it is in force, and no policy that could be added to. */
int load_trial_stands(const struct attached *a, struct policy_error *error);

#endif
