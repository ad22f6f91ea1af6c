/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: saves what a pacer holds: beside packets, or for good, with the pacer taken off. Then it
 * is frozen first (freeze.h), so that the file has every packet that it let through. If it cannot
 * be saved, it goes on as before.
 *
 * Error: a frozen pacer gives way after ten seconds. What it lets through while it is taken off is
 * in the file all the same, which is written again once it is off; where that fails, it is said.
 * Who is killed in between, having stood still for so long, leaves a file that lacks those packets:
 * a restore of it admits as many more. That alone is in the direction of admitting.
 *
 * Concurrency: saves to one file wait for each other, until the file has its name: one that is slow
 * on its disk does not put an older state over a newer one. Nothing else waits for that.
 *
 * Functions return 0, or -1 with *error filled with one line. One thread.
 */
#ifndef PACER_SAVE_H
#define PACER_SAVE_H

#include "live/attached.h"
#include "live/pins.h"

struct saved {
	uint64_t bytes;
	bool exact;	       /* nothing was let through since */
	struct pins_left left; /* it is off; what stays (detach_left) */
};

int save_running(struct attached *a, const char *file, struct saved *saved,
		 struct policy_error *error);
/* Of a pacer whose interface has gone: nothing comes to it any more. */
int save_gone(struct attached *a, const char *file, struct saved *saved,
	      struct policy_error *error);
int save_and_unload(struct attached *a, const char *file, struct saved *saved,
		    struct policy_error *error);

#endif
