/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a stream, sampled over its sliding window with all that the estimators need of it, by
 * the samplers of the packet path (common/sample_burst.h) and the counts of common/estimate.h.
 *
 * A time window is cut into ticks of a thousandth of it, or a nanosecond, and is whole ticks: it
 * ends with the tick of the reading. A time that runs backwards counts as the latest one seen.
 *
 * Concurrency: one thread. Error: none of its own; two runs of one seed are the same.
 * Memory: taken by track_open; track_bytes says how much. One element costs a look-up and, for each
 * 64 samples, a comparison; what is stored costs more, and is rare.
 */
#ifndef PACER_TRACK_H
#define PACER_TRACK_H

#include <stddef.h>

#include "estimate/estimator.h"
#include "sample.h"

#define TRACK_TICKS	  1000
#define TRACK_SAMPLES_MAX 16384
#define TRACK_PACKETS_MAX ((1u << 30) - 1)

struct track_config {
	bool by_time;
	uint64_t window;  /* packets, at most TRACK_PACKETS_MAX, or ns, at most 2^62 */
	uint32_t samples; /* whole 64s, at most TRACK_SAMPLES_MAX */
	uint32_t classes; /* of third vertices, a power of two; 0: no triangles */
	uint64_t seed;
};

/* What an element is counted as: hashes. */
struct track_element {
	uint64_t time_ns;
	uint64_t key;
	uint64_t ends[2]; /* the edge; two equal ones are none */
	const struct pacer_sample_item *item;
};

struct track;

/* NULL: no memory. */
struct track *track_open(const struct track_config *config);
void track_close(struct track *t);
void track_add(struct track *t, const struct track_element *element);

/* A sample of the window that ends at now_ns; it lasts until the next call. */
const struct estimate_view *track_view(struct track *t, uint64_t now_ns);
/* The items of that sample, k of them, in the order of its r. */
const struct pacer_sample_item *track_items(struct track *t, uint64_t now_ns);
/* The window's number of elements alone. */
uint64_t track_n(struct track *t, uint64_t now_ns);
/* What the window is, rounded to ticks. */
uint64_t track_window(const struct track *t);
uint64_t track_tick_ns(const struct track *t);
uint64_t track_bytes(const struct track *t);

#endif
