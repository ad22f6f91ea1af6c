/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what is added to a set by hand, each prefix with its end. It lies beside the set, so a
 * change of it costs the same whatever the size of the set.
 *
 * Memory: 40 bytes a prefix; freed with set_hand_free. One thread.
 */
#ifndef PACER_SET_HAND_H
#define PACER_SET_HAND_H

#include "sets/words.h"

#define SET_HAND_MAX   65535u /* prefixes, since each has a value of its own */
#define SET_HAND_STAYS UINT64_MAX

struct set_hand_entry {
	struct set_entry e;
	uint64_t until_ns; /* monotonic; SET_HAND_STAYS: it has no end */
	uint16_t named;	   /* its value, by its number among the names; 0: it has none */
};

struct set_hand {
	struct set_hand_entry *entry;
	size_t n, room;
	struct set_names names;
	const struct set_about *about; /* of the set, where elements have values; not its own */
};

/* Append a prefix with a value, "" or NULL: none. As set_hand_add; EFBIG: too many values. */
int set_hand_add_named(struct set_hand *hand, const struct set_entry *entry, uint64_t until_ns,
		       const char *value);
/* Its value; NULL: it has none. */
const char *set_hand_value(const struct set_hand *hand, const struct set_hand_entry *entry);
/* Append a prefix. 0; -1: no memory, and what there was is as it was. */
int set_hand_add(struct set_hand *hand, const struct set_entry *entry, uint64_t until_ns);
/* Sort; of equal prefixes the last one stays, and none whose end has come. */
void set_hand_settle(struct set_hand *hand, uint64_t now_ns);
/* The one of exactly this prefix, where they are settled, or NULL. */
struct set_hand_entry *set_hand_find(const struct set_hand *hand, const struct set_entry *prefix);
void set_hand_free(struct set_hand *hand);

/* Its prefixes as a list; the value of each is 1 + its number. 0; -1: no memory. */
int set_hand_list(const struct set_hand *hand, struct set_list *list);
/*
 * Build the lines of one that is settled, with the ends. A wider prefix that lasts longer holds
 * what lies in it. As set_build; more than SET_HAND_MAX: -1 (EFBIG).
 */
int set_hand_build(const struct set_hand *hand, const struct set_list *list, uint64_t seed,
		   struct set_lines *lines);
/*
 * What set_hand_list and set_hand_build have made of one, appended, whatever set it belonged to. 0;
 * -1: ENOMEM, EBADMSG.
 */
int set_hand_take(const struct set_lines *lines, const struct set_list *list,
		  struct set_hand *hand);

#endif
