/* SPDX-License-Identifier: GPL-2.0-only */
/* A capture on its way through `estimate`: read by estimate_file.c, shown by the others. */
#ifndef PACER_ESTIMATE_RUN_H
#define PACER_ESTIMATE_RUN_H

#include <jansson.h>

#include "offline/capture.h"
#include "estimate/estimate_want.h"
#include "estimate/estimator.h"
#include "estimate/exact.h"
#include "estimate/track.h"

#define ESTIMATE_STEP_SAMPLES 64

struct estimate_run {
	const struct estimate_want *want;
	struct capture capture;
	struct track *track;
	struct track *step[PACER_ESTIMATE_STEPS]; /* of want->step */
	struct exact *exact;
	uint64_t packets, others, first_ns, last_ns, every_ns, next_ns;
	uint64_t since; /* packets since the last reading */
	json_t *intervals;
	bool headed;
};

enum quantity { ENTROPY, NORM, MOMENT, TRIANGLES, QUANTITIES };

/* One reading of the window. */
struct estimate_reading {
	uint64_t at_ns, n, distinct;
	struct estimate of[QUANTITIES];
	double exact[QUANTITIES];
	uint32_t dropped;
};

/* estimate_show.c */
json_t *estimate_reading_json(const struct estimate_run *run, const struct estimate_reading *r);
void estimate_print_row(struct estimate_run *run, const struct estimate_reading *r);
json_t *estimate_whole_json(struct estimate_run *run, const struct estimate_reading *r);
void estimate_print_whole(struct estimate_run *run, const struct estimate_reading *r);

/* estimate_steps.c: a step-biased sample of what was read. */
json_t *estimate_steps_json(struct estimate_run *run);
void estimate_print_steps(struct estimate_run *run);

#endif
