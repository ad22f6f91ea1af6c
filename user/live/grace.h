/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: waits until no CPU uses what it read before now. After that the old policy may be
 * overwritten.
 *
 * Error: if it cannot wait, it says so, and nothing may be overwritten.
 */
#ifndef PACER_GRACE_H
#define PACER_GRACE_H

#include "config/policy.h"

/* 0, or -1 with *error filled. */
int grace(const char *ifname, struct policy_error *error);

#endif
