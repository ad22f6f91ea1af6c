/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the table of bans that a change by hand is made to, and the policies that have it: the
 * one in force and, during a trial, the one before, unless that is none: of a load. A trial has no
 * table of another size (plan/lay.c), so that there is never a second one. Who uses it holds the
 * lock (copies.h).
 *
 * Memory: the policies, parsed, until ban_tables_close.
 */
#ifndef PACER_BAN_TABLES_H
#define PACER_BAN_TABLES_H

#include "ban.h"
#include "live/attached.h"

struct ban_tables {
	uint32_t n, copy[2];
	struct policy *policy[2];
};

/* Before anything is done with a table: frees what killed tools held of it. */
void ban_tables_free_held(const struct attached *a, const struct pacer_bans *bans);

/* 0, or -1 with *error filled. */
int ban_tables_open(const struct attached *a, struct ban_tables *t, struct policy_error *error);
void ban_tables_close(struct ban_tables *t);
/* The policy whose table it is: the one in force, unless that has none and the one before has. */
uint32_t ban_tables_owner(const struct attached *a, const struct ban_tables *t);
/*
 * Empties the key's entries whose bans end at latest_ns or before, in its places under the policy's
 * secret and, while bans move, under the one before. The row of a key whose ban was lifted may be
 * kept in another of them, and ends so.
 */
void ban_tables_empty(struct attached *a, const struct pacer_policy *p,
		      const struct pacer_ban_key *key, uint64_t latest_ns);
/* When the key's ban ends, in those places; 0: it has none. */
uint64_t ban_tables_until(const struct attached *a, const struct pacer_policy *p,
			  const struct pacer_ban_key *key, uint64_t now_ns);
/*
 * Enters a ban into the table of q->bans, until until_ns or, if that is later, until its end so
 * far; another may move over to its other set for it. False: there is no room.
 */
bool ban_tables_put(struct pacer_ban_ask *q, const __u64 secret[PACER_SECRETS], uint64_t until_ns);
/*
 * Enters what one table's n entries ban into that of a policy, which lies in `table`, by the secret
 * that the policy has: keys with their ends, and whether they are from outside; first those that it
 * has limits for, or are sources. A ban that is there lasts until the later end. Packets may be
 * judged by either. Returns how many of those first ones have no room, which is all where the
 * policy has no table; *carried, if it is not NULL, how many have some.
 */
size_t ban_tables_carry(const struct pacer_line *from, size_t n, struct pacer_table *table,
			const struct pacer_policy *to, const __u64 secret[PACER_SECRETS],
			uint64_t now_ns, size_t *carried);
/* Has each policy say anew what its table holds (ban_notes.h). */
void ban_tables_note(struct attached *a, const struct ban_tables *t);

#endif
