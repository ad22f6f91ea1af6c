/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what another policy changes for a fleet's agent that runs: which limits are divided, and
 * what becomes of those that it has no more.
 *
 * A limit that a policy has no more goes on for its time (it drains), and so does its share. After
 * that no packet here is judged by it, and others get what this host had of it, but for its
 * reserve: the share is left (fleet/member.h), and only then forgotten. One that comes back
 * meanwhile begins anew, as if the agent did.
 *
 * A value of another size counts in other units, so its limit drains beside the new one. In the
 * store both are one: the new one's share is written, and the other is told the same.
 *
 * Concurrency: one caller at a time.
 *
 * Memory: the structs, and the member's shares.
 */
#ifndef PACER_FLEET_POLICY_H
#define PACER_FLEET_POLICY_H

#include "config/policy.h"
#include "fleet/heavy.h"
#include "fleet/talk.h"
#include "live/fleet_shares.h"

#define FLEET_DIVIDED (2 * PACER_SHARES) /* those of a policy, and as many that were of others */

/* The limits whose shares the member has, each in the same place as its share. */
struct fleet_divided {
	uint64_t member; /* its id */
	struct fleet_limit limit[FLEET_DIVIDED];
	uint64_t id[FLEET_DIVIDED]; /* in the store */
	struct fleet_demand demand[FLEET_DIVIDED];
	struct fleet_heavy heavy[FLEET_DIVIDED];
	size_t n, past; /* past: of the n, the last ones are of no policy any more */
	struct fleet_limit twin[PACER_SHARES]; /* they drain, and have the share of another */
	size_t twin_of[PACER_SHARES];	       /* which of the n */
	size_t twins;
	bool emptied;	  /* places of others were, and packets of before were not waited for */
	uint64_t look_ns; /* when to look whether one has become so, or was left */
};

/* Is its fleet another one: of another name, or of other endpoints? */
bool fleet_is_another(const struct policy_fleet *was, const struct policy_fleet *is);
/* Is the same fleet's store to be asked with other files for TLS? */
bool fleet_is_called_otherwise(const struct policy_fleet *was, const struct policy_fleet *is);

/*
 * The shares of the policy in force, which is of that fleet; what is known of one before stays.
 * fleet->local: each is to have a reserve. Places of other limits are emptied (fleet_settle). -1
 * with *error filled: there is no memory, and all is as before.
 */
int fleet_divide(struct fleet_divided *of, struct fleet_member *m, const struct attached *a,
		 const struct policy_fleet *fleet, struct policy_error *error);

/*
 * No packet is judged by what stood in places that were emptied. Call it before anything of a share
 * counts as applied. -1 with *error filled: that is not known.
 */
int fleet_settle(struct fleet_divided *of, const struct attached *a, struct policy_error *error);

/*
 * Tells the packets what the picture says, by the limit and its twins. -1 with *error filled: that
 * is not known of all, as of fleet_hold.
 */
int fleet_tell(const struct fleet_divided *of, const struct attached *a, uint32_t share,
	       const struct fleet_picture *p, struct policy_error *error);

/*
 * Of a limit that the policy has not, this host has units by the record (fleet/talk.h): its share
 * is left as that of one that the policy has no more, and lowers the limit of nobody. False: it is
 * known, the store has gone back, or there is no room or no memory for it; then it is found again
 * at the next look.
 */
bool fleet_give_back(struct fleet_divided *of, struct fleet_member *m,
		     const struct policy_fleet *fleet, const struct talk_lost *lost);

/*
 * The packets have nothing to use any more of any limit, nor if one comes back to a place that it
 * had. -1 with *error filled: that is not known of all.
 */
int fleet_tell_nothing(struct fleet_divided *of, const struct attached *a,
		       struct policy_error *error);

/* Notes for `status` what the store said, of each limit and its twins, as fleet_say. */
void fleet_say_all(const struct fleet_divided *of, const struct attached *a, uint32_t members,
		   uint64_t answered_ns);

/* Has a limit drained since, or a share been left? Then it is to be called again. It is looked at
 * once a second. */
bool fleet_is_over(struct fleet_divided *of, struct fleet_member *m, const struct attached *a);

#endif
