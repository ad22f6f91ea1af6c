/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what the operator does by hand to the allow-list of a pacer at work. What a policy lists
 * stays listed. During a trial the lists of both policies are changed, so what comes back is never
 * the narrower one.
 *
 * Functions return 0, or -1 with *error filled: then the list in force is what it was; or
 * IN_SHADOW_FAILED (in_shadow.h).
 */
#ifndef PACER_ALLOW_H
#define PACER_ALLOW_H

#include "live/allowlist.h"
#include "live/attached.h"

/* Lets the entry's prefix through until its hand_until_ns. */
int allow_add(struct attached *a, const struct allow_entry *entry, struct policy_error *error);
/* Off the list, whoever put it there: until a policy that lists it is applied. */
int allow_del(struct attached *a, const struct prefix *prefix, struct policy_error *error);
/* Calls `each` for every entry in force that has not lapsed at now_ns, in order. */
int allow_each(const struct attached *a,
	       void (*each)(const struct allow_entry *, uint64_t now_ns, void *), void *arg,
	       struct policy_error *error);
/*
 * Does the list in force let this address (a prefix of all its bits) through, and by which entry?
 * 1, 0, or -1 with *error filled. By the one that ends last; of several such by the longest.
 */
int allow_find(const struct attached *a, const struct prefix *address, struct allow_entry *found,
	       struct policy_error *error);
/* How many there are, those that have lapsed included. */
uint32_t allow_count(const struct attached *a);

#endif
