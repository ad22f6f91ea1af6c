/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: a pacer of a test that stays where it is, and has no shadow unless the test gives it
 * one. */
#ifndef PACER_TEST_STAYS_H
#define PACER_TEST_STAYS_H

#include "live/attached.h"

static const struct attached *stays_shadow; /* NULL: none */
static bool stays_unread;		    /* it cannot be read */
static bool stays_replaced;		    /* by another pacer, while a lock was waited for */

int attached_shadow(const struct attached *attached, struct attached *shadow,
		    struct policy_error *why)
{
	(void)attached;
	if (stays_unread)
		return policy_fail(why, 0, "eth0: its maps cannot be read: no reason");
	if (!stays_shadow)
		return 1;
	*shadow = *stays_shadow;
	return 0;
}

void attached_release(struct attached *attached)
{
	(void)attached;
}

int attached_still(struct attached *attached, struct policy_error *why)
{
	(void)attached;
	return stays_replaced ? policy_fail(why, 0, "eth0: its pacer was replaced meanwhile") : 0;
}

bool attached_gone(const struct attached *attached)
{
	(void)attached;
	return false;
}

#endif
