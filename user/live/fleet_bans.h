/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the bans of a pacer that its fleet shares, as the packet path has them. A ban is told by
 * its rule's id, the kind of its key and the key's words, which are the same on every host whatever
 * its secret.
 *
 * Concurrency: beside packets that ban. Changes wait for those of the tools (copies.h).
 */
#ifndef PACER_FLEET_BANS_H
#define PACER_FLEET_BANS_H

#include "live/attached.h"
#include "ban.h"

#define FLEET_BAN_TEXT (16 + 8 * PACER_KEY_WORDS + 1)

/* Which are shared. */
struct fleet_bans {
	uint32_t rule[PACER_RULES_MAX]; /* ids, of which n */
	size_t n;
	bool sources; /* and those of sources, whatever the rule */
};

struct fleet_bans fleet_bans_of(const struct policy *policy);

/* The key as letters and digits, and back. False: it is none that could be shared. */
void fleet_bans_text(const struct pacer_ban_key *key, char text[FLEET_BAN_TEXT]);
bool fleet_bans_read(const struct fleet_bans *which, const char *text, struct pacer_ban_key *key);

/* Calls `each` for each that runs and is shared. One that is made or moved meanwhile may be missed.
 */
void fleet_bans_each(const struct attached *a, const struct fleet_bans *which,
		     void (*each)(const struct pacer_ban_key *key, uint64_t until_ns, void *arg),
		     void *arg);

struct fleet_ban {
	struct pacer_ban_key key;
	uint64_t until_ns; /* on the packets' clock; 0: it is to be lifted; PACER_NEVER */
	uint64_t was_ns;   /* its end as it was looked at; 0: it was not there */
	bool done;	   /* false: there is no room for it, or its rule has no such key */
	bool changed;	   /* lifted since it was looked at, or made longer: it stays so */
};

/* Has each ban end then. 0, or -1 with *error filled and nothing changed. */
int fleet_bans_set(struct attached *a, struct fleet_ban *ban, size_t n, struct policy_error *error);

#endif
