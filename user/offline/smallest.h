/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: for each limit of a policy, the smallest that would have denied nothing of a capture: of
 * a window the least packets or bytes, of a gap the longest time. All of a rule's belong together:
 * with all of them it denies nothing, and with any one of them tighter by one it denies something.
 *
 * How: a second judge, whose limits begin at nothing, gets the same frames. What it denies changed
 * nothing of its state, so the limit that denied is loosened by as little as lets the frame in, and
 * the frame is judged again. Every frame is admitted in the end, as it would be under the limits
 * that are reached at last. So these are exact, collisions in the state included, provided that the
 * state lies as it will lie under them: where the values move it (a window of other units, a sketch
 * under a ceiling, a throttle, whose buckets depend on what they divide), the capture has to be
 * read again under what was found. A throttle's value is then seen to deny nothing, but a smaller
 * one might do as well; it is never below its threshold.
 *
 * Concurrency: one thread. Memory: the policy's table once more; nothing grows with the capture or
 * its keys.
 */
#ifndef PACER_SMALLEST_H
#define PACER_SMALLEST_H

#include "offline/capture.h"

enum smallest_state {
	SMALLEST_FOUND,
	SMALLEST_ANY,	   /* nothing came, or no two packets of a key: any limit denies nothing */
	SMALLEST_NONE,	   /* no limit can be so loose */
	SMALLEST_UNSETTLED /* the capture would have to be read again, and cannot be; or
			      smallest_unfit() */
};

struct smallest_limit {
	enum smallest_state state;
	uint64_t value; /* ns, packets, bytes or uses */
};

struct smallest;

/* NULL with *error filled. `policy` has to stay. */
struct smallest *smallest_open(const struct policy *policy, struct policy_error *error);
/* Its frames will be those of the capture: replay_ahead. */
void smallest_tell(const struct smallest *l, struct capture *c);
int smallest_feed(struct smallest *l, const struct replay_frame *frame, struct policy_error *error);

/* After the last frame; reads the capture again where it has to and can. 0, or -1 with
 * *error filled.
 */
int smallest_settle(struct smallest *l, struct capture *c, struct policy_error *error);

struct smallest_limit smallest_of(const struct smallest *l, uint32_t rule, uint32_t limit);
/* Why no policy has the limits that would do (they are too large, or want too much memory); NULL:
 * one has. */
const char *smallest_unfit(const struct smallest *l);
void smallest_close(struct smallest *l);

#endif
