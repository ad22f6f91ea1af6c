/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the agent's work on the bans and sets that its fleet shares: between what packets read
 * (live/fleet_bans.h, fleet_sets.h) and the store (fleet/exchange.h).
 */
#ifndef PACER_FLEET_ITEMS_H
#define PACER_FLEET_ITEMS_H

#include "fleet/exchange.h"
#include "live/fleet_bans.h"
#include "live/fleet_sets.h"

struct fleet_items {
	struct exchange exchange;
	struct fleet_bans bans;
	uint32_t copy;		 /* of the policy that this is of, */
	uint64_t serial;	 /* and its serial */
	struct pacer_bans table; /* where the bans lie */
	struct fleet_sets sets;
	bool table_stays;	     /* it lies where it lay under the policy before */
	bool unlooked;		     /* a tool had the lock, or another policy came, before that */
	bool bans_looked;	     /* at the bans, since another table is in force */
	bool looked[PACER_SETS_MAX]; /* at a set, since it was read anew */
	bool set_stays[PACER_SETS_MAX]; /* it lies there as it was under the policy before */
	bool any;			/* this policy shares something */
	bool busy;			/* a tool has the lock: the rest of this turn is left out */
	uint64_t answered_ns;		/* when the store answered this host last */
	uint64_t looked_ns, store_ns;	/* when the tables were looked at, and when to ask the store
					 * again */
	uint64_t bans_lacked, set_lacked[PACER_SETS_MAX]; /* shared_counted, of each */
	uint64_t
	    again_ns[PACER_SETS_MAX]; /* of a set that could not be changed, when to try again */
};

/* Another policy is in force: that of this copy, by this serial. */
void fleet_items_begin(struct fleet_items *items, struct attached *a, const struct policy *policy,
		       uint32_t copy, uint64_t serial);
/* The store has forgotten what it had: what is here is told again, as when the agent begins. */
void fleet_items_anew(struct fleet_items *items);
void fleet_items_free(struct fleet_items *items);
/*
 * Looks at what is here, where that is due: also while the store does not answer, since what goes
 * away before another policy comes was lifted. What was read while one came is no look.
 */
void fleet_items_look(struct fleet_items *items, const struct attached *a);
/*
 * Does what is due; guard and created are of the host's session (0: it has none). What would have
 * to wait for a tool's lock (file_lock_briefly) is left for the next time. False: the store did not
 * answer, or *error is filled.
 */
bool fleet_items_step(struct fleet_items *items, struct attached *a, const char *guard,
		      uint64_t created, struct policy_error *error);

#endif
