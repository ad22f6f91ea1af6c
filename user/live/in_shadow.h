/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what is said by hand (bans, allowed prefixes, elements of sets) is of the pacer,
 * whatever policy it will have. So it is done in force, and then in a shadow, too.
 *
 * Error: a shadow that has ended meanwhile needs nothing. Of one that cannot be read it is said
 * that the change is in force alone: it would be gone once the shadow is promoted.
 */
#ifndef PACER_IN_SHADOW_H
#define PACER_IN_SHADOW_H

#include "live/attached.h"

#define IN_SHADOW_FAILED (-3) /* done in force, and not in the shadow: *error says why */

/* 0: *shadow is it, to be released. 1: there is none. IN_SHADOW_FAILED: it cannot be read. */
int in_shadow_open(const struct attached *a, struct attached *shadow, struct policy_error *error);

/* It could not be done in the shadow for that reason. IN_SHADOW_FAILED. */
int in_shadow_fail(const struct policy_error *why, struct policy_error *error);

#endif
