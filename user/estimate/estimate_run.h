/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a capture for `estimate`. A listener shows the readings. */
#ifndef PACER_ESTIMATE_RUN_H
#define PACER_ESTIMATE_RUN_H

#include "offline/capture.h"
#include "estimate/estimate_want.h"
#include "estimate/estimator.h"
#include "estimate/exact.h"
#include "estimate/track.h"

#define ESTIMATE_STEP_SAMPLES 64

struct estimate_run;
struct estimate_reading;

/* Shows the readings; `arg` is passed on to it. */
struct estimate_listener {
	void (*reading)(const struct estimate_run *run, const struct estimate_reading *r,
			void *arg);
	bool (*enough)(void); /* stop: nobody reads the output any more */
	void *arg;
};

struct estimate_run {
	const struct estimate_listener *listener;
	const struct estimate_want *want;
	struct capture capture;
	struct track *track;
	struct track *step[PACER_ESTIMATE_STEPS]; /* one for each want->step */
	struct exact *exact;
	uint64_t packets, others, first_ns, last_ns, every_ns, next_ns;
	uint64_t since; /* packets since the last reading */
};

enum quantity { ENTROPY, NORM, MOMENT, TRIANGLES, QUANTITIES };

/* One reading of the window. */
struct estimate_reading {
	uint64_t at_ns, n, distinct;
	struct estimate of[QUANTITIES];
	double exact[QUANTITIES];
	uint32_t dropped;
};

/* A run that is all zero is closed. 0, or -1 with *error filled. Close it in either case. */
int estimate_run_open(struct estimate_run *run, const struct estimate_want *want,
		      const struct estimate_listener *listener, struct policy_error *error);
/* Reads the opened capture to its end; *last is the last reading. */
int estimate_run_read(struct estimate_run *run, struct estimate_reading *last,
		      struct policy_error *error);
void estimate_run_close(struct estimate_run *run);

/*
 * Draws the step-biased sample of what was read: ESTIMATE_STEP_SAMPLES items, or none if nothing
 * was read.
 */
uint32_t estimate_run_steps(struct estimate_run *run, struct pacer_sample_item *out);

#endif
