/* SPDX-License-Identifier: GPL-2.0-only */
/* What `estimate` is asked for, about a capture (estimate_run.h) or about live traffic. */
#ifndef PACER_ESTIMATE_WANT_H
#define PACER_ESTIMATE_WANT_H

#include "estimate.h"
#include "estimate/estimate_key.h"

struct estimate_step {
	uint64_t window;
	uint32_t weight;
};

struct estimate_want {
	const char *name; /* a file, "-", or an interface */
	struct estimate_key key;
	bool by_time, exact, triangles, watch;
	uint64_t window, every_ns, seed;
	uint32_t moment, samples;
	struct estimate_step step[PACER_ESTIMATE_STEPS];
	uint32_t steps;
};

#endif
