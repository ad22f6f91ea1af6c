/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the events of a capture: it is judged, counted and sampled as in the packet path, and
 * the detector is fed every REPLAYED_EVERY_NS of the capture's time, as from a pacer at work. So
 * what a follower would have been told, and when, can be measured.
 *
 * The sample is the policy's if it has denied packets in it; else the last 10 s of them.
 *
 * Error: that of detector.h. Two runs over a capture tell the same. Concurrency: one thread.
 * Memory: beside the judge's a sampler, and what its packets were denied by: nothing grows with the
 * capture.
 */
#ifndef PACER_REPLAYED_H
#define PACER_REPLAYED_H

#include "episodes/detector.h"
#include "offline/capture.h"
#include "offline/judge.h"

#define REPLAYED_EVERY_NS 100000000ull

struct replayed {
	uint64_t packets, denied, first_ns, last_ns;
};

/* 0, or -1 with *error filled. Times of events are the capture's. */
int replayed_run(struct judge *judge, struct capture *capture, const struct episode_settings *by,
		 event_tell *tell, void *arg, struct replayed *sum, struct policy_error *error);

#endif
