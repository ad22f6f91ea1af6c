/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: enters one ban from outside into a table of bans, for bans.h and fleet_bans.h. Who calls
 * it holds the lock (copies.h), has seen to the secret (secret.h), and has the policies say what
 * their tables hold afterwards (ban_tables_note). Killed in between, a ban that is there is asked
 * for: its policies say so before it is entered.
 */
#ifndef PACER_BAN_ENTER_H
#define PACER_BAN_ENTER_H

#include "ban.h"
#include "live/attached.h"
#include "live/ban_tables.h"

enum ban_entered {
	BAN_ENTERED,
	BAN_NO_ROOM,  /* or the policy keeps no table */
	BAN_NO_LENGTH /* prefixes of as many other lengths as there can be are banned */
};

/*
 * Into the i-th of the tables, which several of its policies may have, until until_ns or, if that
 * is later, until its end so far.
 */
enum ban_entered ban_enter(struct attached *a, const struct ban_tables *t, uint32_t i,
			   const struct pacer_ban_key *key, uint64_t until_ns);

#endif
