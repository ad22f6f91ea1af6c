/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: limits that a change has retired stay in force until their memory has run out. Here they
 * get their end, once the change is in force, and are found out when it has passed.
 */
#ifndef PACER_DRAINING_H
#define PACER_DRAINING_H

#include "live/attached.h"

/* It is done, but until the next change more is denied than has to be; *error says what. */
#define DRAINING_LASTS 1

/*
 * The policy is in force: what drains is needed for as long as its state can matter. 0, or
 * DRAINING_LASTS where it is not known since when.
 */
int draining_time(const struct attached *a, struct pacer_policy *p, struct policy_error *error);

/* Is it draining, and nothing that it counted matters any more, by whatever clock? */
bool draining_expired(const struct attached *a, const struct pacer_limiter *t);
bool draining_any_expired(const struct attached *a, const struct pacer_policy *p);

#endif
