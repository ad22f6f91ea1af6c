/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: what more matches ask for, as the packet path looks it up (common/more.h). Pure. */
#ifndef PACER_PLAN_MORE_H
#define PACER_PLAN_MORE_H

#include "config/policy.h"

/*
 * Fills bin->more, and adds what it needs to bin->dims. 0, or -1 with *error filled: too many
 * ranges in a field, or too many different items of payload.
 */
int compile_more(const struct policy *policy, struct pacer_policy *bin, struct policy_error *error);

#endif
