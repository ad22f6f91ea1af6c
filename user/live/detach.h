/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: takes a pacer off an interface, and its pins with it.
 *
 * Functions return 0, or -1 with *error filled with one line: what, where, what to do. One thread.
 */
#ifndef PACER_DETACH_H
#define PACER_DETACH_H

#include "live/attached.h"
#include "live/pins.h"
#include "live/site.h"

/*
 * Detaches a pacer of any version and removes its pins. 0 also where some stay: then *left has one,
 * and whoever calls says so (detach_left).
 */
int detach_pacer(const char *ifname, struct pins_left *left, struct policy_error *error);
/* The same of this pacer alone: one that has taken its place stays. 0 also where it has gone. */
int detach_this(const struct attached *attached, struct policy_error *error);
/*
 * Each but the first that the dispatcher calls, and its pins: a replacement that was killed leaves
 * two. No limit is passed by that: the first has counted all that both let through.
 */
int detach_others(const char *ifname, int ifindex, struct policy_error *error);
/* 0: nothing is left; else -1 with *error filled: what, why, and how to be rid of it. */
int detach_left(const char *ifname, const struct pins_left *left, struct policy_error *error);
/* Of what is on the site: this program, from the dispatcher that calls it, or alone. < 0: -errno.
 */
int detach_program(const struct site *site, uint32_t id);

#endif
