/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: an allow-list as a value: what the next one holds, of a policy and of the list before.
 * Pure; change.h writes it.
 *
 * A prefix can stand on a list for two reasons, each by itself: the policy lists it, for as long as
 * that is in force, and the operator put it there by hand, for ever or for a time.
 *
 * Memory: room for PACER_ALLOW_MAX prefixes of each family, freed with allowlist_free.
 */
#ifndef PACER_ALLOWLIST_H
#define PACER_ALLOWLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy.h"

struct allow_entry {
	struct prefix prefix;
	bool of_policy, by_hand;
	uint64_t hand_until_ns; /* by_hand: monotonic, 0 for ever */
};

struct allowlist {
	struct allow_entry *entry; /* by family, address, length, once sorted */
	size_t n, room;
};

/* Until when packets of it are let through; 0: for ever. */
uint64_t allow_until_ns(const struct allow_entry *entry);
bool allow_has_lapsed(const struct allow_entry *entry, uint64_t now_ns);

/* 0, or -1: no memory. */
int allowlist_init(struct allowlist *list);
void allowlist_free(struct allowlist *list);
/* False: there is no room. */
bool allowlist_append(struct allowlist *list, const struct allow_entry *entry);
void allowlist_sort(struct allowlist *list);

/* Of sorted lists. NULL: it is not there. */
const struct allow_entry *allowlist_find(const struct allowlist *list, const struct prefix *prefix);
size_t allowlist_count(const struct allowlist *list, int family);

/*
 * The list of `policy`, sorted, with what was put on the sorted list `now` by hand and has time
 * left. Returns 0, or the family of which that is more than PACER_ALLOW_MAX prefixes.
 */
int allowlist_next(const struct policy *policy, const struct allowlist *now, uint64_t now_ns,
		   struct allowlist *next);

/* What `entry`, by hand, makes of the entry `old` of the same prefix (NULL: there is none). */
struct allow_entry allow_by_hand(const struct allow_entry *entry, const struct allow_entry *old);

/* For how long, in the two units that tell, rounded up: "59m 30s". */
const char *allow_left_text(uint64_t left_ns, char *buf, size_t size);

#endif
