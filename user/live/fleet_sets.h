/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the sets of a pacer that its fleet shares: their elements, and changes of them by other
 * hosts, which are put in and taken out as by hand (sets.h). Of a set with values, what another
 * host's file has is put into the set itself, so that what lies within what counts on all hosts
 * alike: what is beside a set counts before it.
 *
 * Concurrency: beside packets. Changes wait for those of the tools (copies.h).
 */
#ifndef PACER_FLEET_SETS_H
#define PACER_FLEET_SETS_H

#include "live/attached.h"
#include "sets/hand.h"

#define FLEET_ELEMENT_TEXT (POLICY_NAME_MAX + 64) /* "drop/192.0.2.0/24" */

/* Which are shared, and what was seen of them last. */
struct fleet_sets {
	struct {
		char name[POLICY_NAME_MAX];
		uint32_t number;  /* in the policy */
		bool values;	  /* its elements have some */
		uint32_t serial;  /* of the set that was told last; 0: none was */
		uint32_t seen[2]; /* the kernel's ids of what lay there; 0: nothing */
		uint32_t looks;	  /* at that: one may miss what is being moved (shared.h) */
		uint64_t
		    again_ns; /* when one beside the set ends: what it has within counts again */
	} set[PACER_SETS_MAX];
	size_t n;
};

struct fleet_sets fleet_sets_of(const struct policy *policy);

/* Reads "drop/192.0.2.0/24", of a set that is shared; *set is its number here. False: it is none.
 */
bool fleet_sets_read(const struct fleet_sets *sets, const char *text, size_t *set,
		     struct set_entry *entry);

/* That of what lies there now; 0: it cannot be read. A set that is made anew has another one. */
uint32_t fleet_sets_serial(const struct attached *a, const struct fleet_sets *sets, size_t i);

struct fleet_element {
	const char *text;  /* "drop/192.0.2.0/24" */
	const char *value; /* "": by hand and without one; NULL: the set has none */
	uint64_t until_ns;
	bool by_hand; /* it lies beside the set alone */
};

/*
 * Calls `each` for every element of the i-th set. 1: it is what it was the last two times that this
 * was called, and none was told; 0; -1: it cannot be read now.
 */
int fleet_sets_each(const struct attached *a, struct fleet_sets *sets, size_t i,
		    void (*each)(const struct fleet_element *element, void *arg), void *arg);

/* Elements of one set, with their ends, and prefixes that are no element any more. */
struct fleet_elements {
	struct set_hand add;
	struct set_hand put; /* into the set itself; these have no ends */
	struct set_list del;
};

void fleet_elements_free(struct fleet_elements *elements);

/*
 * It was changed since it was looked at (fleet_sets_each), and stays so. Error: what a tool changes
 * just as this is found out, before the lock is had, is not noticed.
 */
#define FLEET_SETS_CHANGED 1

/*
 * 0, FLEET_SETS_CHANGED, or -1 with *error filled: then some of it may have been done. *elements is
 * emptied.
 */
int fleet_sets_set(struct attached *a, const struct fleet_sets *sets, size_t i,
		   struct fleet_elements *elements, struct policy_error *error);

#endif
