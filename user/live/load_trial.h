/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a pacer that is loaded on trial. If nobody confirms it in time, it lets everything pass
 * from then on, and is taken off.
 *
 * The first needs no process: its policy gives way, as any policy on trial does, to LOAD_NOTHING.
 * The second is done by a process that waits in the background. Where that was killed, the pacer
 * stays on its interface, lets everything pass, and the next load takes it off.
 *
 * Functions return 0, or -1 with *error filled with one line: what, where, what to do. One thread.
 */
#ifndef PACER_LOAD_TRIAL_H
#define PACER_LOAD_TRIAL_H

#include "live/trial.h"

/*
 * Waits in the background until the trial has ended, and takes the pacer off if it has lapsed. It
 * fails where no process can be had. Call it right after the load, which stands whatever it says.
 */
int load_trial_watch(const struct attached *a, struct policy_error *error);

/* Takes a pacer off that has lapsed, if it is still there. */
int load_trial_take_off(struct attached *a, struct policy_error *error);

/* Before a load: a pacer on the interface that nobody confirmed in time gives its place up. */
int load_trial_make_way(const char *ifname, struct policy_error *error);

#endif
