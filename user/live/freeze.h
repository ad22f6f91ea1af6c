/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a pacer that admits nothing for a moment, so that what it holds can be copied to the
 * last packet before it is taken off.
 *
 * The copy of the policy that is not in force becomes the one in force with every rule that has
 * limits denying (verdict), and no packet goes to a pool; bans of sources, the allow-list, and what
 * no limit holds go on. It comes into force like a policy on trial, and gives way to the one before
 * by itself: a tool that is killed leaves no frozen pacer behind for longer than FREEZE_NS, nor
 * than until the next change, which ends it (copies_settle).
 *
 * Concurrency: the lock of changes (change.h) is held, from freeze to thaw or to the end. Functions
 * return 0, or -1 with *error filled with one line.
 */
#ifndef PACER_FREEZE_H
#define PACER_FREEZE_H

#include "live/attached.h"

#define FREEZE_NS 10000000000ull

/* Returns when no packet is judged by the policy before any more. */
int freeze(struct attached *a, struct policy_error *error);
/* For FREEZE_NS from now on. -1: it has given way meanwhile, and packets were admitted. */
int freeze_longer(struct attached *a, struct policy_error *error);
/* As it was. */
void thaw(struct attached *a);

#endif
