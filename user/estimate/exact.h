/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: counts exactly what user/estimate/estimator.h estimates. It keeps every element of the
 * window. It serves to check estimates, and for captures that are small enough.
 *
 * The window is track.h's: the last `window` elements, or whole ticks.
 *
 * Concurrency: one thread. Error: keys and vertices are 64-bit hashes, as there. Sums of powers
 * have the 53 bits of a double. Memory: 32 bytes for each element of the window. It grows up to
 * EXACT_MAX elements (128 MiB). A reading takes as much again.
 */
#ifndef PACER_EXACT_H
#define PACER_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#define EXACT_MAX (1u << 22)

struct exact;

/*
 * tick_ns 0: the window is the last `window` elements; else it is the last window / tick_ns ticks.
 * NULL: no memory.
 */
struct exact *exact_open(uint64_t window, uint64_t tick_ns);
void exact_close(struct exact *e);
/* False: no room. The window has more than EXACT_MAX elements (EFBIG), or there is no memory. */
bool exact_add(struct exact *e, uint64_t time_ns, uint64_t key, const uint64_t ends[2]);

struct exact_values {
	uint64_t n, distinct;
	double moment, entropy, norm, triangles;
};

/* Reads the window that ends at now_ns, with triangles if wanted. False: no memory. */
bool exact_read(struct exact *e, uint64_t now_ns, uint32_t moment, bool triangles,
		struct exact_values *out);

#endif
