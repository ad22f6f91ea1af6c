/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a policy says of the bans from outside that its table holds. The packet path looks
 * for such bans only where it says that there are some, so that others cost nothing.
 *
 * Concurrency: beside packets that are judged by the policy; one writer at a time. Memory: none.
 */
#ifndef PACER_BAN_NOTES_H
#define PACER_BAN_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "ban.h"

/* A consistent copy of the entry, if it holds a ban that runs. */
bool ban_notes_read(const struct pacer_line *line, uint64_t now_ns, struct pacer_line *copy);

/* Say it anew, by what the table holds. Before the policy is in force, or while. */
void ban_notes_write(const struct pacer_line *lines, struct pacer_policy *p, uint64_t now_ns);

/*
 * Has the policy say that its table holds this ban from outside, too. 1: it says so now; 0: it did
 * already; -1: prefixes of too many other lengths are banned.
 */
int ban_notes_expect(const struct pacer_line *lines, struct pacer_policy *p,
		     const struct pacer_ban_key *key, uint64_t now_ns);

/* The lengths of prefixes that are banned, into arrays that are all 0. */
void ban_notes_lengths(const struct pacer_line *lines, const struct pacer_policy *p,
		       uint64_t now_ns, uint8_t len4[PACER_BAN_LENGTHS],
		       uint8_t len6[PACER_BAN_LENGTHS]);
/* Does a packet of the banned source ask for this entry, one of PACER_BAN_SOURCE? */
bool ban_notes_asked_for(const struct pacer_policy *p, const struct pacer_line *entry);
/* One more. False: there are others, as many as can be. */
bool ban_notes_put(uint8_t len[PACER_BAN_LENGTHS], uint8_t wanted);

#endif
