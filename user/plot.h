/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the picture of a limit at work on one key: uses and released uses over time as rising
 * lines, between them what is really free, the limiter's own account of that, and the gap between
 * the two, in which it denies wrongly. Drawn by gnuplot, as SVG.
 *
 * Source: "Key usage throttler", whose graphs these are. A use is a packet or a byte that the limit
 * admitted; it is released when it has left the window (or the gap is over).
 *
 * Concurrency: one thread; gnuplot is a process of its own, waited for.
 *
 * Error: times are told to 1/1600 of the picture, and what is really free to 1/4096 of the window.
 *
 * Memory: a fixed number of points. The capture is read once more.
 */
#ifndef PACER_PLOT_H
#define PACER_PLOT_H

#include "capture.h"
#include "judge.h"
#include "tally.h"

struct plot_view {
	uint32_t rule, limit;
	struct tally_key key;
	char key_text[TALLY_TEXT];
	uint64_t start_ns, from_ns, to_ns; /* start: of the capture */
};

/* Judge the capture again, from its start, and draw into `svg`. 0, or the exit code. */
int plot_capture(struct capture *c, const struct judge *like, const struct plot_view *view,
		 const char *svg);

/* What is in `from`, to the file: whole, or as it was before. 0, or an errno. */
int plot_write_file(int from, const char *file);

#endif
