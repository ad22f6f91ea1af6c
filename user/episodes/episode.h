/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: when a rule begins to deny more than is ordinary, and when that is over: from its
 * counters and the times at which they were read. Pure: it has no clock of its own.
 *
 * Source: Page, "Continuous inspection schemes", Biometrika 41 (1954): the cumulative sum. From
 * reading to reading, what was denied beyond the ordinary is added up, and the sum never falls
 * below 0. When it reaches `least`, an episode is told. It began at the last reading at which the
 * sum was 0. Ordinary is EPISODE_ORDINARY_PPS denials a second, and one in EPISODE_ORDINARY_SHARE
 * of the packets that the rule matched. An episode is over when for quiet_ns no second had more
 * denials than are ordinary.
 *
 * Error: of traffic with r denials a second beyond the ordinary, the start is told least / r
 * seconds after the first, rounded up to the next reading. An episode has at least `least` denials.
 * When it began is early by no more than the time between two readings, and 1 /
 * EPISODE_ORDINARY_PPS seconds for each packet that was denied shortly before; its end is late by
 * no more than EPISODE_BLOCK_NS and a reading. Its greatest rate is at most what was denied in a
 * second and the time between two readings, and at least that of a second less that time.
 *
 * Concurrency: one thread. Memory: that of the struct.
 */
#ifndef PACER_EPISODE_H
#define PACER_EPISODE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"

#define EPISODE_LEAST	       100u
#define EPISODE_QUIET_NS       10000000000ull
#define EPISODE_ORDINARY_PPS   10u
#define EPISODE_ORDINARY_SHARE 100u
#define EPISODE_BLOCK_NS       1000000000ull
/* The greatest rate is between readings that are at least so far apart. */
#define EPISODE_APART_NS (EPISODE_BLOCK_NS / 16)
#define EPISODE_RECENT	 32u /* a power of two, and more of them than begin in a second */
/* How an episode goes on is told after so long, then after twice as long, up to the second. */
#define EPISODE_NEWS_NS	     5000000000ull
#define EPISODE_NEWS_MOST_NS 300000000000ull

struct episode_settings {
	uint64_t least;	   /* packets beyond the ordinary, at least 1 */
	uint64_t quiet_ns; /* at least 1 */
};

enum episode_step {
	EPISODE_NOTHING,
	EPISODE_STARTS,
	EPISODE_GOES_ON, /* and there is news to be told */
	EPISODE_ENDS
};

/*
 * The greatest rate of denials in a second: between two readings that are a second apart, or a
 * little more where no two are exactly that. Less than a second counts as one.
 */
struct episode_peak {
	struct {
		uint64_t ns, denied;
	} recent[EPISODE_RECENT]; /* readings, by their number */
	uint32_t first, end;	  /* those of the last second, and the last one before it */
	double pps;
};

/* Of one rule. All zero before its first reading. */
struct episode {
	bool known, on;
	bool over; /* the last reading ended one */
	double sum;
	struct pacer_counters was; /* at the last reading */
	uint64_t was_ns;
	struct pacer_counters
	    began; /* when the sum was last 0, and from a start on when that was */
	uint64_t began_ns;
	struct pacer_counters block; /* at the beginning of the present second */
	uint64_t block_ns;
	uint64_t excess_ns;	    /* the end of the last second with more than is ordinary */
	struct pacer_counters told; /* when it was last told of */
	uint64_t told_ns, news_ns;
	struct episode_peak peak; /* since it began */
};

/* What was counted between two readings. */
struct episode_sum {
	uint64_t matched, denied, denied_bytes;
	enum pacer_reason most; /* the reason of most denials; ADMIT: there are none */
	uint64_t ns;
};

struct episode_sum episode_between(const struct pacer_counters *from, uint64_t from_ns,
				   const struct pacer_counters *to, uint64_t to_ns);

/*
 * The rule's counters as they are at now_ns, which is later than before. Counters that have fallen
 * are those of another pacer: an episode ends, and the next reading begins anew.
 */
enum episode_step episode_feed(struct episode *e, const struct episode_settings *by,
			       const struct pacer_counters *now, uint64_t now_ns);

/* Ends it now, whatever is denied. EPISODE_NOTHING: there is none. */
enum episode_step episode_stop(struct episode *e);

/* Since it began, up to the last reading; and since it was last told of. */
struct episode_sum episode_so_far(const struct episode *e);
struct episode_sum episode_lately(const struct episode *e);
/* Call it when it was told of. */
void episode_told(struct episode *e);

#endif
