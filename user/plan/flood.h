/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: how much state withstands a flood of spoofed sources: each of its packets is of a key
 * that was never seen. Established sources keep their records whatever comes; the figures are of
 * those that come during the flood, and stay below half of their limit.
 *
 * A record is taken for as long as its key can still count. Keys that find both records of their
 * set taken share a third one, and a newcomer begins with what that holds. Of 1,000 newcomers'
 * packets 5 at most are to be denied for it. To limits that count bytes, each flood packet is a
 * frame of POLICY_FRAME_MAX bytes.
 *
 * Pure. Safe to call from any thread.
 */
#ifndef PACER_FLOOD_H
#define PACER_FLOOD_H

#include "plan/kinds.h"

#define FLOOD_DENIED 0.005 /* of a newcomer's packets, at most */

/* Lines that the limit wants against a flood of `pps` packets a second; LINES_NEVER: too many. */
uint64_t flood_lines(const struct pacer_limiter *t, uint64_t pps);
/* The largest flood that the limit's lines withstand, in packets a second. */
uint64_t flood_withstood(const struct pacer_limiter *t);

/* The largest x from 0 to `high` at which a function that rises is no more than `wanted`. */
double flood_solve(double (*of)(double x, const void *arg), const void *arg, double high,
		   double wanted);
/* Rounded up, LINES_NEVER at most. */
uint64_t flood_lines_of(double lines);

/* What entries_flood() has to know of a limit. */
struct flood_terms {
	double live_ns; /* one packet takes a record for so long */
	double span_ns; /* in so long a shared record lets so many packets through: */
	double allowed; /* of which a newcomer is to be left half */
	bool refills;	/* bit by bit, one in each span_ns; `allowed` is the burst */
};

/* Of a kind whose state is entries. */
uint64_t entries_flood(const struct pacer_limiter *t, const struct flood_terms *terms,
		       uint64_t pps);

#endif
