/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: lists the bans on an interface for people (which key, which rule, for how long), bans
 * from outside, and lifts bans. It works on the packet path's own table (common/ban.h), while
 * packets go on.
 *
 * A ban from outside is of a source (an address or a prefix) whatever the rule, or of a key under
 * one rule, whether that bans by itself or not. The packet path looks for such bans only if a
 * policy says that there are some (ban_notes.h).
 *
 * Changes wait for each other (copies.h). A policy on trial and the one before have one table, as
 * a trial changes no size (ban_tables.h).
 */
#ifndef PACER_BANS_H
#define PACER_BANS_H

#include "live/attached.h"
#include "inspect/tally.h"

struct ban {
	char rule[POLICY_NAME_MAX]; /* "": of a source; "?" if the policy no longer has the rule */
	char key[TALLY_TEXT];
	uint64_t left_ns; /* above 0; PACER_NEVER: until it is lifted */
	bool in_force; /* else nobody is refused by it: no limit of its rule has such a key now */
	bool outside;
	bool tool;    /* of another tool, in a trie of its own (tool_bans.h) */
	uint32_t row; /* its number in a row, of a rule whose bans grow; else 0 */
};

/*
 * Calls `each` for every ban under the policy in force. `policy` gives the names of the rules.
 * Returns the number of bans. A ban that is made or lifted meanwhile may be missed.
 */
size_t bans_each(const struct attached *a, const struct policy *policy,
		 void (*each)(const struct ban *, void *), void *arg);

/*
 * Calls each for every ban with its pacer_rule.id and no more, for a caller that only counts them.
 * A source's has PACER_BAN_SOURCE.
 */
void bans_count(const struct attached *a, void (*each)(uint32_t rule_id, void *), void *arg);

/* The text of a key that a ban or a note of one has: pacer_line.ban_key_id and its words. */
void bans_key_text(uint32_t key_id, const uint32_t words[PACER_KEY_WORDS], char *buf, size_t size);

/* A key that is to be banned or let off. Times are host_now_ns's. */
struct ban_wish {
	const char *key; /* as bans_each writes it, or another text that names the same key */
	uint64_t for_ns; /* 0: until it is lifted, if it has no until_ns */
	int line;	 /* for who wishes: where it was read */
	bool *left_out;	 /* true afterwards where there was no room to ban it; NULL: nobody asks */
	/* The end of its ban, in place of for_ns; lifted is only what ends by then. 0: none. */
	uint64_t until_ns;
};

/* Wishes that are banned in force, and not there. */
struct bans_lack {
	size_t n;
	size_t which;		 /* the first of them */
	struct policy_error why; /* ... is not banned there */
};

struct bans_done {
	size_t done;	 /* wishes that are banned, or bans that were lifted, in force or before */
	size_t left_out; /* wishes for which there was no room, or that were banned nowhere */
	size_t which;	 /* the first of them; of BANS_WRONG: the wish that is wrong, n: the rule */
	/* Under the policy that a trial would give way to, and in a shadow. */
	struct bans_lack before, in_shadow;
	size_t of_shadow; /* bans that were lifted there */
};

/* One of the wishes, or the rule, is not right: *error says what is not. Nothing is changed. */
#define BANS_WRONG (-2)

/*
 * Ban every key of n, under the rule or, with NULL, as sources. A ban that runs already lasts until
 * the later of both ends. 0, BANS_WRONG, or -1 with *error filled and nothing changed. What is
 * banned in force is banned under the policy before a trial and in a shadow, too, where that has
 * the rule and a table; so with those that are lifted. IN_SHADOW_FAILED: it is done in force, and
 * *done says what.
 */
int bans_add(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
	     struct bans_done *done, struct policy_error *error);

/*
 * Lift the bans of every key of n, under the rule or, with NULL, whatever the rule; with a wish of
 * NULL, of all keys. Of the table of bans, what ends after its wish's until_ns stays, as somebody
 * else made it; what other tools wrote is not asked for its end. 0, or -1 with *error filled: then
 * those of other tools may run on. IN_SHADOW_FAILED: those in force are lifted.
 */
int bans_lift(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
	      struct bans_done *done, struct policy_error *error);

/* The entries of the table of bans; 0 if there is none. */
size_t bans_room(const struct attached *a);
/* When it began: one that is empty, or has not all of the one before, has another number. */
uint32_t bans_begun(const struct attached *a);

#endif
