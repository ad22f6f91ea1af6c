/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: limits that a fleet divides (docs/fleet.md), as the packet path has them: for how long
 * they count, which share is theirs, and what a number of units is as a share's value. Pure.
 *
 * What a limit is divided in: units are packets or bytes of a window, uses of a throttle; of a
 * rate, packets or bytes an hour. They mean the same on hosts whose policies differ in the value,
 * so that the smaller holds. A share of a rate leaves its burst's time as it is and makes each
 * packet's longer: where that is longer than the burst's, it lets nothing through (shares_parts).
 */
#ifndef PACER_PLAN_SHARES_H
#define PACER_PLAN_SHARES_H

#include "plan/draft.h"

/* Of a share's id: what is not of the limit, but of the units of its value. */
#define SHARES_UNIT_MASK 31u

/*
 * What the id of a share has of its fleet, which is a name and a store: packets of one fleet's
 * limit find nothing in what was told them of another's. 0: of no fleet. That of the limit alone,
 * which is the same on all hosts however they reach the store, is what is left without it.
 */
uint64_t shares_fleet(const struct policy_fleet *fleet);
/* A limit of a policy goes on in one of another fleet: by what their shares_fleet differ. */
void shares_move(struct pacer_limiter *t, uint64_t other_fleet);

/* A limit is no fleet's any more: it goes on here by all of its value. */
void shares_none(struct pacer_limiter *t);

/* Says of limit i of the rule, made with times that are longer (drift.h), whose share is its own,
 * and for how long what it lets through counts. fleet: of its policy, as shares_fleet says.
 */
void shares_tell(const struct policy_rule *rule, size_t i, uint64_t fleet, struct pacer_limiter *t);

/*
 * Gives each share of the drafts a place: the same for one id, and that which it had before if that
 * is free. other_fleet: see shares_move. -1 with *error filled: there are too many.
 */
int shares_place(struct draft_rule *drafts, size_t n_rules, const struct pacer_policy *previous,
		 uint64_t other_fleet, struct policy_error *error);

/* All units of a limit that a fleet divides. */
uint64_t shares_units(const struct pacer_limiter *t);
/* The time within which so many come, if all of it is used. */
uint64_t shares_span_ns(const struct pacer_limiter *t);
/*
 * Among how many equal parts each lets a packet through, at most: of bytes, one of
 * POLICY_FRAME_MAX.
 */
uint64_t shares_parts(const struct pacer_limiter *t);
/* Of so many of them, the value of the share: rounded so that it is not more. 0: nothing. */
uint32_t shares_value(const struct pacer_limiter *t, uint64_t units);
/* Of a share's value, the units: rounded so that they are not fewer. */
uint64_t shares_units_of(const struct pacer_limiter *t, uint32_t value);

#endif
