/* SPDX-License-Identifier: GPL-2.0-only */
/* What `estimate` shows, as text or JSON. The first two functions return the exit code. */
#ifndef PACER_ESTIMATE_SHOW_H
#define PACER_ESTIMATE_SHOW_H

#include "estimate/estimate_live.h"
#include "estimate/estimate_run.h"

/* For a capture (estimate_show.c), and for live traffic (estimate_live_show.c). */
int estimate_show_file(const struct estimate_want *want, bool json);
int estimate_show_live(const struct estimate_want *want, bool json);

/* estimate_steps.c: a step-biased sample of what was read, as a part of the result. */
void estimate_show_steps(struct estimate_run *run);

#endif
