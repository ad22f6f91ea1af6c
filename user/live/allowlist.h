/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: an allow-list as a value. It computes the next list from a policy and the list before.
 * Pure; allow_maps.h writes it.
 *
 * A prefix can be on a list for two independent reasons. The policy lists it, for as long as that
 * policy is in force. Or the operator put it there by hand, for ever or for a time.
 *
 * A source may be in several prefixes of a list, and is let through until the last of them ends.
 * The packet path looks at the longest alone. So that one has there the latest end of those that
 * hold it.
 *
 * Memory: room for PACER_ALLOW_MAX prefixes of each family, freed with allowlist_free.
 */
#ifndef PACER_ALLOWLIST_H
#define PACER_ALLOWLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/policy.h"

struct allow_entry {
	struct prefix prefix;
	bool of_policy, by_hand;
	uint64_t hand_until_ns; /* by_hand: monotonic, 0 for ever */
};

struct allowlist {
	struct allow_entry *entry; /* by family, address, length, once sorted */
	size_t n, room;
};

/* Until when it stands by itself; 0: for ever. */
uint64_t allow_until_ns(const struct allow_entry *entry);
bool allow_has_lapsed(const struct allow_entry *entry, uint64_t now_ns);

/* 0, or -1 without memory. */
int allowlist_init(struct allowlist *list);
void allowlist_free(struct allowlist *list);
/* False: no room. */
bool allowlist_append(struct allowlist *list, const struct allow_entry *entry);
void allowlist_sort(struct allowlist *list);

/* Searches a sorted list. NULL: it is not there. */
const struct allow_entry *allowlist_find(const struct allowlist *list, const struct prefix *prefix);
/* Until when packets of a prefix of a sorted list are let through, by any entry; 0: for ever. */
uint64_t allowlist_until_ns(const struct allowlist *list, const struct prefix *listed);
/* Puts an entry on a sorted list, in the place of the one of its prefix. False: no room. */
bool allowlist_put(struct allowlist *list, const struct allow_entry *entry);
void allowlist_take(struct allowlist *list, const struct prefix *prefix);
size_t allowlist_count(const struct allowlist *list, int family);

/*
 * Makes the sorted list of `policy`. Entries that the operator put on the sorted list `now` stay
 * until their time is over. Returns 0, or a family that has more than PACER_ALLOW_MAX prefixes.
 */
int allowlist_next(const struct policy *policy, const struct allowlist *now, uint64_t now_ns,
		   struct allowlist *next);

/* Combines `entry`, made by hand, with the entry `old` of the same prefix (NULL: none). */
struct allow_entry allow_by_hand(const struct allow_entry *entry, const struct allow_entry *old);

/* The time left in its two greatest units, rounded up: "59m 30s". */
const char *allow_left_text(uint64_t left_ns, char *buf, size_t size);

#endif
