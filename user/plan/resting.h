/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a rule's limits have counted, while the rule asks none of them: its verdict is to
 * deny, or the policy does not have it. Its packets are not admitted for that time, so what its
 * limits hold stays true; and should the rule ask limits again before their memory has run out,
 * they go on or drain, as in any other change (migrate.c). A rule whose verdict is to pass needs
 * none: no window with that in it has a limit.
 *
 * They lie in a place for a rule that the policy has no rule for. It has no counter, and no packet
 * comes to it; who looks for state in use, or for what has expired, finds it like any other.
 *
 * Error: rules that a policy does not have are forgotten where no place is left: where there are
 * more than PACER_RULES_MAX of both policies together.
 */
#ifndef PACER_RESTING_H
#define PACER_RESTING_H

#include "plan/plan.h"

struct change;

/* What rests of the rule with this id; NULL: nothing. */
struct pacer_rule *resting_of(struct pacer_policy *bin, uint32_t id);

/* A place for what rests of the rule with this id, empty; NULL: there is none. */
struct pacer_rule *resting_place(struct pacer_policy *bin, uint32_t id);

/* How many such places there are. */
size_t resting_free(const struct pacer_policy *bin);

/* The limits that the rule of this name has had to ask until now, or that rest; NULL: none. */
const struct pacer_rule *resting_before(const struct compile_previous *previous, const char *name);

/* Fills the places of *bin, whose rules are there. -1: one that denies has no place. */
int resting_keep(const struct policy *policy, const struct change *change, struct pacer_policy *bin,
		 struct plan *plan, struct policy_error *error);

#endif
