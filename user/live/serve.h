/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a service does with an interface's pacer: puts one there that goes on with what was
 * saved, or takes over the one that is there, and saves it.
 *
 * One thread.
 */
#ifndef PACER_SERVE_H
#define PACER_SERVE_H

#include "live/attach.h"
#include "live/restore.h"

struct set_texts;

enum served {
	SERVED_LOADED,	  /* with new state */
	SERVED_RESTORED,  /* with what was saved */
	SERVED_TAKEN_OVER /* it was there already */
};

/*
 * Of a policy, with its sets. `why` is filled (its text, else "") where the saved state, or all of
 * its limits, could not be gone on with, a pacer of another ABI was replaced, or a policy is on
 * trial, so that the service's own is not put in force: it paces all the same. A file that is not
 * there is no reason. Of SERVED_RESTORED, *restored is what became of it; of SERVED_TAKEN_OVER it
 * has the bans that found no room. 0, or -1 with *error filled: its line is not 0 where the policy
 * is wrong. An interface that is down is put up.
 */
int serve_begin(const char *ifname, const struct attach_options *options, const char *text,
		const struct policy *policy, const struct set_texts *sets, const char *file,
		struct attached *a, enum served *served, struct restored *restored,
		struct policy_error *why, struct policy_error *error);

#endif
