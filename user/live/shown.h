/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the policy in force, and as a text that loads as it is: what was loaded or applied, with
 * what `set` and `allow` have changed since.
 *
 * Concurrency: it waits for a change that is under way. One thread.
 */
#ifndef PACER_SHOWN_H
#define PACER_SHOWN_H

#include "live/attached.h"

struct shown {
	struct policy *policy; /* with what `allow` has changed */
	char *text;  /* ends with a line's end, unless it is as long as a policy's may be */
	bool listed; /* the text has what `allow` has changed, too */
	uint64_t serial;
	uint64_t pending_ns; /* until it gives way unless confirmed; 0: it is confirmed */
	size_t n_timed;	     /* prefixes that are allowed for a time; the text is without them */
};

/* Returns 0 and what shown_free frees, or -1 with *error filled. */
int shown_policy(const struct attached *a, struct shown *shown, struct policy_error *error);
/*
 * The text gets what `allow` has changed. By that it can be longer than what loads. 0, or -1 with
 * *error filled (as policy_set_allow).
 */
int shown_text(struct shown *shown, struct policy_error *error);
void shown_free(struct shown *shown);

#endif
