/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what user/estimate/estimator.h estimates, counted: every element of the window is kept.
 * To hold estimates against, and for captures that are small enough.
 *
 * The window is track.h's: the last `window` elements, or whole ticks.
 *
 * Concurrency: one thread. Error: keys and vertices are 64-bit hashes, as there. Sums of powers are
 * rounded to a double's 53 bits.
 * Memory: 32 bytes an element of the window, taken as it grows up to EXACT_MAX elements (128 MiB),
 * and at a reading as much again.
 */
#ifndef PACER_EXACT_H
#define PACER_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#define EXACT_MAX (1u << 22)

struct exact;

/* tick_ns 0: the last `window` elements; else the last window / tick_ns ticks. NULL: no memory. */
struct exact *exact_open(uint64_t window, uint64_t tick_ns);
void exact_close(struct exact *e);
/* False if the window has no room for it: then it holds more than EXACT_MAX, or there is no memory.
 */
bool exact_add(struct exact *e, uint64_t time_ns, uint64_t key, const uint64_t ends[2]);

struct exact_values {
	uint64_t n, distinct;
	double moment, entropy, norm, triangles;
};

/* Of the window that ends at now_ns. False: no memory. Triangles only where asked for. */
bool exact_read(struct exact *e, uint64_t now_ns, uint32_t moment, bool triangles,
		struct exact_values *out);

#endif
