/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the policy in force as a text that loads as it is: what was loaded or applied, with what
 * `set` and `allow` have changed since.
 *
 * Concurrency: it waits for a change that is under way. One thread.
 */
#ifndef PACER_SHOWN_H
#define PACER_SHOWN_H

#include "live/attached.h"

struct shown {
	char *text; /* ends with a line's end */
	uint64_t serial;
	uint64_t pending_ns; /* until it gives way unless confirmed; 0: it is confirmed */
	size_t n_timed;	     /* prefixes that are allowed for a time; the text is without them */
};

/* Returns 0 and a text to be freed, or -1 with *error filled. */
int shown_policy(const struct attached *a, struct shown *shown, struct policy_error *error);

#endif
