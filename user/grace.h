/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: wait until no CPU still judges by what it read before now. What was in force then may be
 * written over from there on.
 *
 * Error: where the wait cannot be had, that is said, and nothing may be written over.
 */
#ifndef PACER_GRACE_H
#define PACER_GRACE_H

#include "policy.h"

/* 0, or -1 with *error filled. */
int grace(const char *ifname, struct policy_error *error);

#endif
