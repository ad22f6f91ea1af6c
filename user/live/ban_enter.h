/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: enters one ban from outside into a table of bans, for bans.h and fleet_bans.h. Who calls
 * it holds the lock (copies.h), has seen to the secret (secret.h), and has the policies say what
 * their tables hold afterwards (ban_tables_note).
 */
#ifndef PACER_BAN_ENTER_H
#define PACER_BAN_ENTER_H

#include "live/attached.h"
#include "ban.h"

/*
 * Under the policy of this copy, until until_ns or, if that is later, until its end so far. False:
 * there is no room.
 */
bool ban_enter(struct attached *a, uint32_t copy, const struct pacer_ban_key *key,
	       uint64_t until_ns);

#endif
