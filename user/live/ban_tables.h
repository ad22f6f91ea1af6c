/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the tables of bans that a change by hand is made to: of the policy in force and, during
 * a trial, of the one before. Who uses them holds the lock (copies.h).
 *
 * Memory: the policies, parsed, until ban_tables_close.
 */
#ifndef PACER_BAN_TABLES_H
#define PACER_BAN_TABLES_H

#include "live/attached.h"

struct ban_tables {
	uint32_t n, copy[2];
	struct policy *policy[2];
};

/* 0, or -1 with *error filled. */
int ban_tables_open(const struct attached *a, struct ban_tables *t, struct policy_error *error);
void ban_tables_close(struct ban_tables *t);
/* Is the i-th the same table as that of a copy before? */
bool ban_tables_shared(const struct attached *a, const struct ban_tables *t, uint32_t i);
/* Has each policy say anew what its table holds (ban_notes.h). */
void ban_tables_note(struct attached *a, const struct ban_tables *t);

#endif
