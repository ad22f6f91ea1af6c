/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: how full the table of a limit is, from the lines that packets write. Pure.
 *
 * Error: exact of up to 2 * OCCUPANCY_SETS entries. Of a larger table so many sets are looked at,
 * evenly spaced, and stand for all. A key's set is chosen by a hash with a secret, so each is as
 * good as any other: the estimate is within 1.5 % of the capacity, 19 times out of 20 and at the
 * worst load.
 *
 * Concurrency: packets may go on. Each entry is read once.
 */
#ifndef PACER_OCCUPANCY_H
#define PACER_OCCUPANCY_H

#include "config/policy.h"

#define OCCUPANCY_SETS 16384u

/*
 * Entries of the limit's table that hold something at now_ns, and in *capacity how many there are:
 * of those that keys have for themselves, or of those that they share.
 */
uint64_t occupancy_used(const struct pacer_limiter *limiter, const struct pacer_line *lines,
			uint64_t n_lines, uint64_t now_ns, bool shared, uint64_t *capacity);

/* The limiter of the rule that carries out this limit in entries (limit_is); NULL: it has none. */
const struct pacer_limiter *occupancy_limiter(const struct pacer_rule *rule,
					      const struct policy_limit *limit,
					      uint64_t resolution_ns);

#endif
