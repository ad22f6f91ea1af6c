/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the places of a pacer's sets: of each of the two copies of the policy its sets, and what
 * was added to them by hand.
 *
 * Functions return 0, or -1 with errno. Who changes anything holds the lock (copies.h). A place is
 * written at once: who is killed has done so or not.
 */
#ifndef PACER_SETS_MAPS_H
#define PACER_SETS_MAPS_H

#include "live/attached.h"
#include "sets/set_maps.h"

/* Where set `number` of a copy is, and what was added to it. */
uint32_t sets_maps_place(uint32_t copy, uint32_t number);
uint32_t sets_maps_hand_place(uint32_t copy, uint32_t number);

/* Take both out. */
int sets_maps_clear(const struct attached *a, uint32_t copy, uint32_t number);
/* The other copy's set `from`, with what was added to it: both copies have it then. */
int sets_maps_share(const struct attached *a, uint32_t copy, uint32_t number, uint32_t from);
/*
 * A set of these prefixes; what was added by hand to the other copy's set `from` and has not come
 * to its end goes on. -1: it was none. about.set NULL: the set has no values.
 */
int sets_maps_renew(const struct attached *a, uint32_t copy, uint32_t number, int from,
		    const struct set_list *list, const struct set_about *about);
/*
 * What was added by hand to set `from` of a copy goes on in set `number` of a new pacer, whose
 * first copy has no such additions yet. about as above.
 */
int sets_maps_carry(const struct attached *a, uint32_t copy, uint32_t from, int sets_fd,
		    uint32_t number, const struct set_about *about);
/* What was added to a set by hand, appended, and counts: not to one that was replaced since. */
int sets_maps_hand(const struct attached *a, uint32_t copy, uint32_t number, struct set_hand *hand);
/*
 * Do rules or the allow-list ask for set `number` of this copy, whose policy this is? For one that
 * keys alone ask for no packets are counted.
 */
bool sets_maps_counted(const struct attached *a, uint32_t copy, uint32_t number,
		       const struct policy *policy);
/* Packets that had an address in a set, of all CPUs. */
int sets_maps_count(const struct attached *a, uint32_t copy, uint32_t number, int cpus,
		    struct pacer_set_count *sum);
/* The same of one of the PACER_SET_COUNTERS. */
int sets_maps_counter(const struct attached *a, uint32_t id, int cpus, struct pacer_set_count *sum);
/* Its prefixes, and those that were added by hand: also what has come to its end. */
int sets_maps_prefixes(const struct attached *a, uint32_t copy, uint32_t number,
		       uint64_t *prefixes);
/* Remembers the texts of a set's values, for keys that are shown; what cannot be read is not. */
void sets_maps_learn(const struct attached *a, uint32_t copy, uint32_t number, const char *name);
/* What errno says of a set that cannot be written. */
const char *sets_maps_why(void);

#endif
