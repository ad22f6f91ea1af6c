/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: from the operator's units (policy.h) to what the packet path reads (abi.h), with the
 * plan of where state lies and what every limit promises. Pure: the clock's resolution and the time
 * come in.
 *
 * A change of policy (migrate.c): a limit that keeps its rule (by name), key and shape keeps its
 * state, and its new value counts at once. Any other change leaves the old limit in force beside
 * the new one, draining, until its memory has run out. So no window across a change admits more
 * than the loosest of its policies would, but for three cases (docs/limits.md): a rate that another
 * of like speed follows, a limit that one of another kind follows, and a window or a throttle that
 * one of a longer time follows.
 *
 * A rule that denies all its packets, or is gone, asks no limit: those that it had rest, and are
 * the rule's limits before when it asks some again (resting.h).
 *
 * The shape is all but the value: of a window its length, slots, unit, the width of its entries and
 * their number where that is written; of a gap its rows and cells; of a rate the rate, and its
 * entries; of a throttle its cooldown. A tick of the coarse clock is a part of these times. Two
 * limits of one key stand together where a gap is kept in a window's entries: a gap that goes is
 * another shape of both.
 *
 * A looser value is another change, too, where a tighter limit of the same key and time stands
 * beside it (in the policy it has no effect then), where the state has times of the coarse clock
 * and the new policy the exact one, and where CPUs may hold more uses of a throttle than it has
 * now.
 *
 * Of a pool, each target has its own state, which goes with it from pool to pool: what it was sent
 * before counts, also if it was in no pool for a while. Leases of a pool end with each change.
 *
 * Bans go on as long as their table has the same size; where that is changed, or no rule banned,
 * they begin anew. After a saved policy tables of another size may lie where those before did, and
 * the table grows by what they lack (lay.c).
 *
 * A change of the hash's secret (`rotate`) goes with a change of policy, or with none: each limit
 * that goes on does so in two limits, one that begins anew under the new secret and, draining, its
 * own under the old one. A large table serves both: an entry of a key under one secret is to the
 * other that of some other key, so that sharing errs towards denial. What is counted from then on
 * is counted under both; so entries move as they are used, and the old ones, which nobody asks for
 * when the limit's memory has run out, are taken like any that are idle. While a packet holds its
 * entry under the one secret it cannot have the same line for the other: a key whose two places
 * fall together is denied as contended until then, at most one in COMPILE_MOVE_SETS / 2 (table.h).
 * So a smaller table begins anew in lines of its own. State that does not depend on the secret is
 * kept. Bans stay where they are and are moved by the tools (rotate.h); until that is done,
 * bans.moving has both secrets asked.
 */
#ifndef PACER_COMPILE_H
#define PACER_COMPILE_H

#include "plan/keymask.h"
#include "plan/kinds.h"

/*
 * Fill *bin and *plan from *policy; `previous` NULL: for a table made for it. Returns 0, or -1 with
 * *error filled (a window that the clock or the counters cannot hold, more ranges in a field than
 * PACER_BOUNDS_MAX, a ceiling below a sketch of one line, more state than the table has room for,
 * more limits of a rule, counters or throttles than there are beside those of the previous policy,
 * a throttle of too many buckets, a rotation while the last one's old secret is still needed).
 */
int compile_policy(const struct policy *policy, const struct compile_previous *previous,
		   const struct compile_host *host, struct pacer_policy *bin, struct plan *plan,
		   struct policy_error *error);

/*
 * How much state a policy takes that begins anew: as it says, or as much as withstands the flood
 * that it names. `host` NULL: of one with the coarsest of clocks, which is a little more. In
 * *bytes; 0, or -1 with *error filled.
 */
int compile_memory(const struct policy *policy, const struct compile_host *host, uint64_t *bytes,
		   struct policy_error *error);

/* Does the limit need the frame, a set, or whether a packet opens a flow, before it is asked? */
bool compile_needs_more(const struct pacer_limiter *t);

/* The table of bans and the filter before it, in lines. */
uint64_t compile_ban_lines(const struct pacer_bans *bans);
/* The same of the table of flows. */
uint64_t compile_flow_lines(const struct pacer_flows *flows);

/*
 * Until when, in monotonic time, the limits of *bin need the secret that is not bin->secret; 0:
 * none does, COMPILE_UNTIL_SET: a change that was cut off has not said. Bans may need it for
 * longer.
 */
uint64_t compile_drained_ns(const struct pacer_policy *bin);

/*
 * A change is in force since now_ns: says since when its new rates count, and sets when the rule's
 * draining rates end, and that those beside them begin then (rate.h). Call it before other draining
 * limits get their ends. Packets read what it writes.
 */
void compile_begin_rates(struct pacer_rule *rule, uint64_t now_ns);
/* Are there rates of which that is to say since when they count? */
bool compile_rates_begin(const struct pacer_rule *rule);
/* Should *from, on trial in the entries of *t, give way: its keys may be ahead by a larger burst.
 */
void compile_keep_peak(struct pacer_limiter *t, const struct pacer_limiter *from);
/* A rate has not counted all that its rule let through before. */
void compile_counts_from(struct pacer_limiter *t, uint64_t at_ns);
/* It counts from then on, if that is still to be said. */
void compile_say_since(struct pacer_limiter *t, uint64_t now_ns);
/*
 * Of a trial that ends at until_ns: does the limit, which is on trial, wait for others that drain,
 * so that it is not known yet when it begins? What it leaves in the policy before begins when the
 * trial ends then, and as the trial's did once that is known.
 */
bool compile_rate_waits(const struct pacer_limiter *t);
void compile_begin_by(struct pacer_limiter *t, uint64_t until_ns);
void compile_begin_as(struct pacer_limiter *t, const struct pacer_limiter *from, uint64_t until_ns);
/* Has it begun, with bursts that are not all there yet? */
bool compile_rate_builds(const struct pacer_limiter *t, uint64_t now_ns);
/* When a rate begins and since when it counts, on a clock that is by_ns ahead and says now_ns. */
void compile_carry_rate(struct pacer_limiter *t, int64_t by_ns, uint64_t now_ns);

/*
 * The limit of the rule that a denial by this limit for this reason comes from; -1 if a draining
 * one. What is neither the gap's nor the window's denial is said to be of the first limit in the
 * limit.
 */
int compile_limit_of(const struct plan *plan, const struct policy *policy, size_t rule,
		     uint32_t limiter, enum pacer_reason reason);

#endif
