/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: counters over time: how much they grew between two readings, by rule and reason, for
 * rates and for graphs. Pure.
 *
 * What is known is what was read: a rate is that of the time between two readings, which is given
 * beside it (span_ns), and never more. Nothing is known of before the first reading.
 *
 * A rule is followed by its name: another policy may put it elsewhere. A rule that a policy brings
 * is known from the first reading that has it; one that a policy drops is forgotten. Another state
 * on the interface begins anew, and so does a counter that is less than it was; another program
 * over the same state (`upgrade`, `shadow`) goes on.
 *
 * Concurrency: one thread. Memory: the counters of TREND_POINTS readings of each rule: 174 KB.
 */
#ifndef PACER_TREND_H
#define PACER_TREND_H

#include "live/reading.h"

#define TREND_POINTS 640 /* readings that are kept: more than a minute of ten a second */

struct trend_row {
	char name[POLICY_NAME_MAX]; /* "": of the packets that no rule judged */
	struct pacer_counters
	    *at;	/* TREND_POINTS of them, a ring; of the number n % TREND_POINTS */
	uint64_t first; /* the number of the first reading that has it */
};

struct trend {
	uint64_t n; /* readings so far; the newest has the number n - 1 */
	uint64_t at_ns[TREND_POINTS];
	struct trend_row row[PACER_RULES_MAX + 1]; /* as the newest policy's rules, and "" */
	size_t rows;
	uint32_t control_id; /* of the state that the readings are of */
};

/* What was counted between two readings. */
struct trend_grown {
	uint64_t span_ns; /* 0: there is no earlier reading of it */
	struct pacer_counters by;
};

#define TREND_ALL SIZE_MAX /* for a row: the sum of all */

/* Begin with all of it 0. -1: no memory, and nothing was added. */
int trend_add(struct trend *trend, const struct reading *reading);
void trend_free(struct trend *trend);

/* How many readings there are to look back at, TREND_POINTS at most. */
size_t trend_kept(const struct trend *trend);
/* From the reading before the one that is `ago` readings back to that one; 0: the newest. */
struct trend_grown trend_step(const struct trend *trend, size_t row, size_t ago);
/* To the newest reading, from the oldest one that was at most span_ns before it, or the one before.
 */
struct trend_grown trend_over(const struct trend *trend, size_t row, uint64_t span_ns);

/* So many a second. 0 without a span. */
double trend_rate(const struct trend_grown *grown, uint64_t n);

#endif
