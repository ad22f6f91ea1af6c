/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: what a compiled policy takes and promises, in numbers that `check` prints. */
#ifndef PACER_FIGURES_H
#define PACER_FIGURES_H

#include "plan/compile.h"

/*
 * The chance that a key of a gap's sketch is delayed by others when `keys` of them were admitted
 * within the gap (recency.h: cells of a key in one line of seven).
 */
double figures_false_delay(const struct pacer_limiter *t, double keys);

/* For how long a silent key keeps its record for itself. */
uint64_t figures_kept_ns(const struct pacer_limiter *t, uint64_t resolution_ns);
/* After how long at the latest anybody may take the record of a silent key. */
uint64_t figures_newcomer_ns(const struct pacer_limiter *t, uint64_t resolution_ns);

/* Of one throttle, or of one target of a pool. */
uint64_t figures_throttle_bytes(uint32_t cpus);
/* 0 of a limit that is kept with another one, which counts it: of a gap in a window's record. */
uint64_t figures_limit_bytes(const struct policy_limit *l, const struct pacer_limiter *t,
			     uint32_t cpus);

/* How many keys can be banned at once. */
uint64_t figures_bans(const struct pacer_bans *bans);
/*
 * The chance that the filter sends a key that was never banned to the table, when that holds `keys`
 * bans (ban.h: two cells of a key in one line of eight).
 */
double figures_ban_maybe(const struct pacer_bans *bans, double keys);

#endif
