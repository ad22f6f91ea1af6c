/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the keys of one limit of which most comes to a pacer at work, and how much, by the
 * packet path's own sample: so they cost no packet anything beyond it. Packets count that the limit
 * admitted or denied; those that were banned before it are not for it to admit.
 *
 * Concurrency: one thread; the packet path never waits.
 *
 * Error: that of a sample of so many packets: a key that is s of k samples has s / k of them, give
 * or take sqrt(s) / k. What is told is of the last seconds, at most HEAVIEST_SPAN_NS. Where the
 * policy samples denied packets alone, those that were admitted are not in it.
 *
 * Memory: that of drawn.h while it reads.
 */
#ifndef PACER_HEAVIEST_H
#define PACER_HEAVIEST_H

#include "parse.h"
#include "estimate/drawn.h"

#define HEAVIEST_MAX	 16
#define HEAVIEST_SPAN_NS 2000000000ull

struct heaviest_key {
	struct pacer_packet pkt; /* one of its packets */
	uint64_t units;		 /* packets or bytes that come within span_ns, rounded up */
};

/* Of which limit. */
struct heaviest_of {
	const struct pacer_limiter *limiter;
	uint32_t counter; /* of its rule */
	uint8_t cost;	  /* enum pacer_cost */
	uint64_t span_ns;
};

/* Are packets that are admitted in them? */
bool heaviest_of_admitted(const struct attached *a);
/*
 * The heaviest first. Returns how many, or -1 with *error filled. Keys by sets' values or the TTL,
 * and packets that open flows, are not known of samples: there are none of them, as where the
 * policy has no sample.
 */
int heaviest_read(const struct attached *a, const struct heaviest_of *of,
		  struct heaviest_key key[HEAVIEST_MAX], struct policy_error *error);

#endif
