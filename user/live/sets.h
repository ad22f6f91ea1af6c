/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what the operator does by hand to the sets of a pacer at work. What is added lies beside
 * the set and outlasts a change of the policy, as what is allowed by hand does. What is taken out,
 * and a replacement, last until a policy is applied that has the set, since its file is read then.
 * During a trial the sets of both policies are changed, and so is that of a shadow.
 *
 * Functions return 0, or -1 with *error filled: then the set is what it was, to its last prefix; or
 * IN_SHADOW_FAILED (in_shadow.h).
 * Who is killed has made the whole change or nothing of it, in both policies; a shadow's comes
 * second. Packets have the set from before or the one from after, and the same of what lies beside
 * it, for a moment not of both.
 */
#ifndef PACER_SETS_H
#define PACER_SETS_H

#include "live/attached.h"
#include "sets/hand.h"
#include "sets/texts.h"

/* A set in force. */
struct sets_info {
	const struct policy_set *set; /* until the callback returns */
	uint32_t prefixes[2];	      /* of IPv4 and IPv6, without what was added by hand */
	size_t added;		      /* by hand */
	uint64_t bytes;		      /* of memory */
	bool counted;		      /* not where keys alone ask for it */
	struct pacer_set_count count; /* of all CPUs */
};

/* What became of many. */
struct sets_done {
	size_t done;	  /* of the sets of the policy in force and the one before a trial */
	size_t left_out;  /* that no set had */
	size_t of_shadow; /* of its shadow's */
	size_t which;	  /* the first that was left out */
};

/* Calls `each` for every set in force, in the policy's order. */
int sets_each(const struct attached *a, void (*each)(const struct sets_info *info, void *arg),
	      void *arg, struct policy_error *error);
/* The prefixes of a set in force, and what was added to it and has not come to its end. */
int sets_take(const struct attached *a, const char *name, struct set_list *list,
	      struct set_hand *hand, struct policy_error *error);

/*
 * The same with the texts of the values of a set that keys have, or that a fleet shares: value i +
 * 1 of *list is name[i]. Of another there are none.
 */
int sets_take_named(const struct attached *a, const char *name, struct set_list *list,
		    struct set_names *names, struct set_hand *hand, struct policy_error *error);

/*
 * What became of the set of that name that a shadow has. It is none of its own where the shadow's
 * policy has no such set, or where a set with values is replaced: their numbers are a policy's own.
 */
enum sets_shadow { SETS_NO_SHADOW, SETS_IN_SHADOW, SETS_NOT_IN_SHADOW };

/* Adds these; one that was added before gets the new end. */
int sets_add(struct attached *a, const char *name, const struct set_hand *add,
	     enum sets_shadow *shadow, struct policy_error *error);
/*
 * Puts these, each with its value and without an end, into a set with values itself, as if its file
 * had them. What lay beside the set of the same prefixes is taken out.
 */
int sets_put(struct attached *a, const char *name, const struct set_hand *put,
	     enum sets_shadow *shadow, struct policy_error *error);
/* Takes these prefixes out, whoever put them in; of a shadow's set, too. *done counts them apart.
 */
int sets_del(struct attached *a, const char *name, const struct set_list *del,
	     struct sets_done *done, enum sets_shadow *shadow, struct policy_error *error);
/*
 * Nothing but this sorted list, at once; made for the policy in force that has this serial. Not
 * during a trial where the set has values in either policy.
 */
int sets_replace(struct attached *a, const char *name, const struct set_list *list,
		 uint64_t policy_serial, enum sets_shadow *shadow, struct policy_error *error);

/*
 * What was added by hand goes on in the sets of the same names of a shadow's policy, that are in
 * sets_fd. Who calls holds the lock.
 */
int sets_carry(const struct attached *a, const struct policy *policy, const struct set_texts *sets,
	       int sets_fd, struct policy_error *error);

#endif
