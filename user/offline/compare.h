/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a capture under two policies: which packets and which keys fare differently. A packet's
 * key is that of the limit that denied it; limits of both policies with the same key in rules of
 * the same name count as one. Compared is what was judged, whatever monitor and over: pass make of
 * it.
 *
 * Concurrency: one thread.
 *
 * Error: keys are counted from their first denial by either policy on, exactly, up to the table's
 * room; what came of further keys is told as one number.
 *
 * Memory: the tables of both policies and that of the keys; nothing grows with the capture.
 */
#ifndef PACER_COMPARE_H
#define PACER_COMPARE_H

#include "offline/capture.h"
#include "cli/cmd.h"
#include "offline/judge.h"

/* Read and show. Returns the exit code. */
int compare_capture(struct capture *c, struct judge judge[2], const struct options *o);

#endif
