/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the allow-lists as the packet path has them: a trie for each family, with a part for
 * each copy of the policy. A list comes into force, and goes back, with its copy.
 *
 * Functions return 0, or -1 with *error filled, or errno set where they take no error. Who calls
 * them holds the lock (copies.h): a trie that is written to meanwhile is not read to its end.
 */
#ifndef PACER_ALLOW_MAPS_H
#define PACER_ALLOW_MAPS_H

#include "live/allowlist.h"
#include "live/attached.h"

/* The copy's list, sorted, lapsed entries included; to be freed. */
int allow_maps_read(const struct attached *a, uint32_t copy, struct allowlist *list,
		    struct policy_error *error);
/* The list that `policy` is to have in the place of the one in force, to be freed. */
int allow_maps_next(const struct attached *a, const struct policy *policy, struct allowlist *next,
		    struct policy_error *error);
/* Makes the list of the copy that is not in force this one. */
int allow_maps_write(struct attached *a, uint32_t copy, const struct allowlist *list,
		     struct policy_error *error);

/* Writes an entry of the copy's sorted list. */
int allow_maps_put(struct attached *a, uint32_t copy, const struct allowlist *list,
		   const struct allow_entry *entry);
/* The same of all others that a prefix holds, which are there: they may end with it. */
int allow_maps_put_within(struct attached *a, uint32_t copy, const struct allowlist *list,
			  const struct prefix *prefix);
int allow_maps_remove(struct attached *a, uint32_t copy, const struct prefix *prefix);
/* How many prefixes of each family the copy has: 0, and packets pass its trie by. */
void allow_maps_set_counts(struct attached *a, uint32_t copy, size_t n4, size_t n6);
/* The same, of this list. */
void allow_maps_count(struct attached *a, uint32_t copy, const struct allowlist *list);

/* The errors, of errno and of a family that is full. */
int allow_maps_failed(const struct attached *a, struct policy_error *error);
int allow_maps_full(const struct attached *a, int family, struct policy_error *error);

#endif
