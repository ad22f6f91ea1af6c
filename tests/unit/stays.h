/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: a pacer of a test that stays where it is, and has no shadow. */
#ifndef PACER_TEST_STAYS_H
#define PACER_TEST_STAYS_H

#include "live/attached.h"

int attached_shadow(const struct attached *attached, struct attached *shadow,
		    struct policy_error *why)
{
	(void)attached;
	(void)shadow;
	(void)why;
	return -1;
}

void attached_release(struct attached *attached)
{
	(void)attached;
}

int attached_still(const struct attached *attached, struct policy_error *why)
{
	(void)attached;
	(void)why;
	return 0;
}

bool attached_gone(const struct attached *attached)
{
	(void)attached;
	return false;
}

#endif
