/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the policy that is to follow the one in force, made ready in the copy that no packet is
 * judged by.
 *
 * Functions return 0, or -1 with *error filled: then what is in force is what was. Who calls them
 * holds the lock (copies.h).
 *
 * Memory: a compiled policy and an allow-list, until successor_free.
 */
#ifndef PACER_SUCCESSOR_H
#define PACER_SUCCESSOR_H

#include "live/allowlist.h"
#include "live/attached.h"
#include "plan/plan.h"
#include "sets/texts.h"

/* By itself: the same policy, without what has expired. */
enum successor_how { SUCCESSOR, SUCCESSOR_ROTATED, SUCCESSOR_BY_ITSELF };

struct successor {
	struct plan *plan;	      /* the caller's: what becomes of the state */
	const struct set_texts *sets; /* the caller's; NULL: they stay as they are */
	int old_set[PACER_SETS_MAX];  /* which one each is now, by its name; -1: none */
	int valued[PACER_SETS_MAX];   /* the same, where its values are known to keys; else -1 */
	uint32_t n_sets;
	uint64_t
	    other_fleet; /* in ids of shares: what differs from the policy in force; 0: nothing */
	bool no_fleet;	 /* the policy in force is of none */
	bool forgets;	 /* what was told as shares is of another fleet, or of one that is gone for
			    good */
	struct pacer_policy *bin;
	struct allowlist list;
	struct samples_made made;
	uint64_t serial_before; /* of the copy that it is written to */
};

/* Compiles it: nothing of the pacer is changed. s->plan and s->sets are set before. */
int successor_plan(struct attached *a, const char *text, enum successor_how how, bool trial,
		   struct successor *s, struct policy_error *error);
/*
 * Writes it, and clears what it uses and the present one does not. Then it lies complete in the
 * other copy.
 */
int successor_write(struct attached *a, const char *text, struct successor *s,
		    struct policy_error *error);
/*
 * Once it is in force: a table of bans of another size has what the one before banned until then,
 * as far as it has room. Killed before, what packets were banned for just then is banned again as
 * they go on.
 */
void successor_settle(struct attached *a, struct plan *plan);
/* It does not come into force after all: gives back what was made for it alone. */
void successor_undo(const struct attached *a, const struct successor *s);
void successor_free(struct successor *s);

#endif
