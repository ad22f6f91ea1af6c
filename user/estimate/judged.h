/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the key by which a sampled packet was judged, of a pacer at work.
 *
 * A sample has the packet's addresses and ports, and the hash of the key that was judged. The limit
 * that gives this hash has judged the packet. Where its key has more than the sample keeps, that is
 * found by the hash, too: a TTL by trying each, and the value of an address by the sets as they are
 * now.
 *
 * Error: what was judged by a value that the sets have no more is not found. Another key may have
 * the same hash with a chance of 2^-32 for each that is tried.
 *
 * Memory: that of look.h, if a limit has values. One thread.
 */
#ifndef PACER_JUDGED_H
#define PACER_JUDGED_H

#include "config/policy.h"
#include "live/look.h"

struct judged_by {
	const struct attached *a;
	const struct pacer_policy *bin;
	bool looked; /* at the sets */
	struct look look;
};

/* Looks at the sets, where limits of this policy, which is one of a's, have values of them. */
void judged_open(const struct attached *a, const struct pacer_policy *bin, struct judged_by *by);
void judged_close(struct judged_by *by);

/*
 * Did this limit of the rule with number `rule` judge the packet? Then *seen is the packet as the
 * limit sees it, as tally.h wants it.
 */
bool judged_limit(const struct judged_by *by, size_t rule, size_t limit,
		  const struct pacer_sample_item *item, struct pacer_packet *seen);
/*
 * The same, of the rule's limiter that did; -1: none did, and *seen stays as it is. A part of a key
 * that is 0 (no VLAN, the ports of ICMP) adds nothing to the hash: of two limits whose keys differ
 * by that alone it is the one that denies for the sample's reason, else the first.
 */
int judged_limiter(const struct judged_by *by, size_t rule, const struct pacer_sample_item *item,
		   struct pacer_packet *seen);
/*
 * How the key is told apart: of the limit that denied, or of the rule's first. False: it is a key
 * of none of the rule's limits; *key and *seen stay as they are.
 */
bool judged_key(const struct judged_by *by, size_t rule, const struct pacer_sample_item *item,
		struct policy_key *key, struct pacer_packet *seen);

#endif
