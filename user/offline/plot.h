/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: draws a limit at work on one key, with gnuplot, as SVG. Uses and released uses are
 * rising lines over time. Between them are what is really free, what the limiter reports as free,
 * and the difference, where it denies wrongly.
 *
 * Source: the graphs of "Key usage throttler". A use is a packet or a byte that the limit admitted.
 * It is released when it has left the window or its gap is over.
 *
 * Concurrency: one thread; it waits for gnuplot, a process of its own.
 *
 * Error: times are exact to 1/1600 of the picture, and what is really free to 1/4096 of the window.
 *
 * Memory: a fixed number of points. It reads the capture again.
 */
#ifndef PACER_PLOT_H
#define PACER_PLOT_H

#include "offline/capture.h"
#include "offline/judge.h"
#include "inspect/tally.h"

struct plot_view {
	uint32_t rule, limit;
	struct tally_key key;
	char key_text[TALLY_TEXT];
	uint64_t start_ns, from_ns, to_ns; /* start_ns: of the capture */
};

/* Judges the capture again from its start and draws into `svg`. 0, or -1 with *error filled. */
int plot_capture(struct capture *c, const struct judge *like, const struct plot_view *view,
		 const char *svg, struct policy_error *error);

/* Writes what is in `from` to the file, all of it or nothing. 0, or an errno. */
int plot_write_file(int from, const char *file);

#endif
