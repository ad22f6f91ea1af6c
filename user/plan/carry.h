/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the state of a pacer on another clock. The packet path's clock begins anew with each
 * boot, and the times in saved state are of the boot before. Here each becomes the time that the
 * new clock would have shown. Pure.
 *
 * Times before the new clock's beginning cannot be written. What was admitted then counts as
 * admitted at the beginning, so that it is forgotten later, never earlier:
 *   - a window: by less than a slot, since it first advances by whole slots;
 *   - a gap: no later than a gap after the beginning, and of a key that has a window beside it up
 * to that even where the gap was over;
 *   - the uses of a throttle: by what they are old, at most the cooldown;
 *   - a rate, and a ban: not at all, as what is theirs is a time to come; but a rate that a change
 *     began before the beginning counts as begun then, and has its burst for everybody only a
 *     burst's time later;
 *   - a row of bans that grow: by how long before the beginning its last ban ended.
 * What has ceased to matter before the beginning is forgotten.
 *
 * The limits may get another generation (record.h) after this: no entry's word speaks for one.
 *
 * Concurrency: on memory that nobody else uses. Memory: none.
 */
#ifndef PACER_CARRY_H
#define PACER_CARRY_H

#include "plan/kinds.h"

/* `t` on the new clock, by_ns later than on the old one (or, below 0, earlier): at least 1. 0
 * (never) stays, and so does UINT64_MAX, for ever.
 */
uint64_t carry_time(uint64_t t, int64_t by_ns);

/*
 * Carries what the policy says of times, the lines of its limits and bans, and its throttles'
 * states (PACER_THROTTLES of them). now_ns is of the new clock. Every limit has to lie within
 * n_lines.
 */
void carry(struct pacer_policy *p, struct pacer_line *lines, uint64_t n_lines,
	   struct pacer_throttle_state *throttle, int64_t by_ns, uint64_t now_ns);

/*
 * Calls `each` for every limit whose state lies in lines, once for those that have the same lines.
 */
void carry_each_region(const struct pacer_policy *p,
		       void (*each)(const struct pacer_limiter *t, void *arg), void *arg);

#endif
