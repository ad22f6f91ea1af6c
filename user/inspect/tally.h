/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a limit counts by, from packet to key to text; and a table of such keys with
 * something noted for each, for what has to be said about keys one by one.
 *
 * Concurrency: one thread.
 *
 * Error: keys are told apart exactly, up to the table's room. What comes of further keys is counted
 * in `lost`, and who shows the table says so.
 *
 * Memory: `places` times a key and its note, taken when the table is made, used as keys come.
 */
#ifndef PACER_TALLY_H
#define PACER_TALLY_H

#include "abi.h"
#include "parse.h"
#include "config/keyed.h"
#include "config/policy.h"

#define TALLY_TEXT 320 /* a key's text and its end */

struct tally_key {
	uint32_t word[PACER_KEY_WORDS]; /* the packet's, under the limit's masks */
	uint8_t family;			/* PACER_FAMILY_NONE: a free place */
	uint8_t limit;
	uint16_t rule;
};

struct tally {
	uint8_t *at;
	size_t note_size, stride;
	uint32_t places, n;
	struct keyed keyed;
	uint64_t lost; /* calls of tally_put that found no room */
};

/* The packet's key under this limit, which is the limit's. */
struct tally_key tally_key_of(const struct pacer_limiter *limiter, const struct policy_key *kind,
			      const struct pacer_packet *pkt);

/* "192.0.2.1", "192.0.2.0/24", "all", "src dport", "src>dst proto sport dport". Returns buf. */
const char *tally_key_text(const struct policy_key *kind, const struct pacer_packet *pkt, char *buf,
			   size_t size);

/*
 * The packet of a text that tally_key_text would write of it, or that names the same key; only what
 * the key has is filled in. -1: it names no key of that kind.
 */
int tally_key_read(const struct policy_key *kind, const char *text, struct pacer_packet *pkt);
/* Are its values, if it has some, of the limit's sets? Those that are bare numbers are. */
bool tally_key_fits(const struct pacer_limiter *limiter, const struct pacer_packet *pkt);

/* Room for 7/8 of `places` keys (a power of two) with a note of `note_size` each; -1: no
 * memory, or no random numbers. */
int tally_open(struct tally *t, uint32_t places, size_t note_size);
void tally_close(struct tally *t);

/* How many keys it can tell apart. */
uint32_t tally_room(const struct tally *t);

/* The key's note, NULL if it has none. */
void *tally_find(const struct tally *t, const struct tally_key *key);
/* The same; a key that has none gets one, all zero: NULL where there is no room, which counts. */
void *tally_put(struct tally *t, const struct tally_key *key);

/*
 * The notes, n of them, put together at the start of the table and sorted; each stands behind its
 * key. The table finds no keys any more.
 */
void tally_sort(struct tally *t, int (*order)(const void *a, const void *b));
const struct tally_key *tally_key_at(const struct tally *t, uint32_t i);
void *tally_note_at(const struct tally *t, uint32_t i);
/* For `order`: the key and the note of what it is given. */
const struct tally_key *tally_sorted_key(const void *at);
const void *tally_sorted_note(const void *at);

#endif
