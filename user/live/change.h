/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: change what a pacer at work does, in place: its policy, whole and at once, and its
 * allow-list. Killed at any instruction, a change has happened or has not; what is half written
 * lies in the copy that is not in force.
 *
 * An allow-list belongs to each of the two copies of the policy, and comes into force and goes back
 * with it.
 *
 * Changes of several processes wait for each other (a lock file in /run). Functions return 0, or -1
 * with *error filled: then what is in force is what was.
 */
#ifndef PACER_CHANGE_H
#define PACER_CHANGE_H

#include "live/allowlist.h"
#include "live/loader.h"

/*
 * What keeps other changes out, of a pacer that is still there: a descriptor to be closed, or -1.
 */
int change_lock(const struct attached *a, struct policy_error *error);

/* The copy in force now: 0 or 1. */
uint32_t change_in_force(const struct attached *a);
/* Its text, parsed again: to be freed with policy_free; NULL if there is no memory. */
struct policy *change_policy(const struct attached *a);
/* The same of either copy. */
struct policy *change_policy_of(const struct attached *a, uint32_t copy);
/* Nanoseconds until an unconfirmed policy gives way; 0: nothing is pending. */
uint64_t change_pending(const struct attached *a);

/* Done, and in force; but *error says what of it ends only with the next change. */
#define CHANGE_LASTS 1

/*
 * Put the policy of `text` in force in place of the present one, keeping state as compile.h says;
 * confirm_ns not 0: until then, unless confirmed.
 */
int change_apply(struct attached *a, const char *text, uint64_t confirm_ns, struct plan *plan,
		 struct policy_error *error);
/*
 * Write "RULE.FIELD=VALUE"s into the text in force and apply that. CHANGE_WRONG, with *error
 * filled, where one of them is not right; nothing is changed then.
 */
#define CHANGE_WRONG (-2)
int change_set(struct attached *a, char *const *assignments, int n, struct plan *plan,
	       struct policy_error *error);
int change_confirm(struct attached *a, struct policy_error *error);

/*
 * Put another secret of the hash in force: every limit and every ban goes on, as compile.h and
 * rotate.h say. Refused while a policy waits to be confirmed, and until the last one's old secret
 * is needed no more. Cut off at any moment, one of the two secrets is in force with all that is
 * counted under it; a later change finishes what is left to do.
 */
int change_rotate(struct attached *a, struct plan *plan, struct policy_error *error);
/*
 * Was the secret in force drawn by the program itself, without a tool (hash.h says what that is
 * worth)? change_apply and change_set replace it then, but for a policy that may roll back, and
 * where there is no room for that.
 */
bool change_weak_secret(const struct attached *a);

/* By hand: `entry` for its hand_until_ns; what the policy lists stays listed. During a trial, for
 * both policies.
 */
int change_allow_add(struct attached *a, const struct allow_entry *entry,
		     struct policy_error *error);
/* Off the list, whoever put it there: until a policy that lists it is applied. */
int change_allow_del(struct attached *a, const struct prefix *prefix, struct policy_error *error);
/* Call `each` for every entry in force that has not lapsed at now_ns, in order. */
int change_allow_each(const struct attached *a,
		      void (*each)(const struct allow_entry *, uint64_t now_ns, void *), void *arg,
		      struct policy_error *error);
/*
 * Does the list in force let this address (a prefix of all its bits) through, and by which entry?
 * 1, 0, or -1 with *error filled. As packets do, it goes by the longest prefix, lapsed or not.
 */
int change_allow_find(const struct attached *a, const struct prefix *address,
		      struct allow_entry *found, struct policy_error *error);
/* How many there are, those that have lapsed included. */
uint32_t change_allowed(const struct attached *a);

#endif
