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
	struct pacer_bans table; /* where the bans lie */
	struct fleet_sets sets;
	bool looked[PACER_SETS_MAX]; /* at a set, since this policy is in force */
	bool any;		     /* this policy shares something */
	uint64_t answered_ns;	     /* when the store answered this host last */
	uint64_t look_ns, store_ns;  /* when to look at the tables again, and to ask the store */
	uint64_t bans_lacked, set_lacked[PACER_SETS_MAX]; /* shared_counted, of each */
	uint64_t
	    again_ns[PACER_SETS_MAX]; /* of a set that could not be changed, when to try again */
};

/* Another policy is in force. */
void fleet_items_begin(struct fleet_items *items, struct attached *a, const struct policy *policy);
/* The store has forgotten what it had: what is here is told again, as when the agent begins. */
void fleet_items_anew(struct fleet_items *items);
void fleet_items_free(struct fleet_items *items);
/*
 * Does what is due; guard and created are of the host's session (0: it has none). False: the store
 * did not answer, or *error is filled.
 */
bool fleet_items_step(struct fleet_items *items, struct attached *a, const char *guard,
		      uint64_t created, struct policy_error *error);

#endif
