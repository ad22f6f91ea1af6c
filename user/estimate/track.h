/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: samples the sliding window of a stream, with all that the estimators need. It uses the
 * samplers of the packet path (common/sample_burst.h) and the counts of common/estimate.h.
 *
 * A time window is divided into ticks of a thousandth of it, at least a nanosecond. It consists of
 * whole ticks and ends with the tick of the reading. A time that runs backwards counts as the
 * latest one seen.
 *
 * Concurrency: one thread. Error: none of its own; two runs of one seed are the same. Memory: taken
 * by track_open; track_bytes says how much. An element costs a look-up and a comparison for each 64
 * samples. One that is stored costs more, and is rare.
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
	uint32_t samples; /* a multiple of 64, at most TRACK_SAMPLES_MAX */
	uint32_t classes; /* for third vertices, a power of two; 0: no triangles */
	uint64_t seed;
};

/* The hashes that an element counts as. */
struct track_element {
	uint64_t time_ns;
	uint64_t key;
	uint64_t ends[2]; /* the edge; none if both are equal */
	const struct pacer_sample_item *item;
};

struct track;

/* NULL: no memory. */
struct track *track_open(const struct track_config *config);
void track_close(struct track *t);
void track_add(struct track *t, const struct track_element *element);

/* Draws a sample of the window that ends at now_ns, valid until the next call. */
const struct estimate_view *track_view(struct track *t, uint64_t now_ns);
/* The k items of that sample, in the same order as its r. */
const struct pacer_sample_item *track_items(struct track *t, uint64_t now_ns);
/* Only the number of elements in the window. */
uint64_t track_n(struct track *t, uint64_t now_ns);
/* The length of the window, rounded to ticks. */
uint64_t track_window(const struct track *t);
uint64_t track_tick_ns(const struct track *t);
uint64_t track_bytes(const struct track *t);

#endif
