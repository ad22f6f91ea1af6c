/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: which keys of an episode are heavy, when each began to be and when it no longer was,
 * from samples of what the rule denies. Pure.
 *
 * A key is heavy when it has HEAVY_SHARE of the denied packets or more, by the lower end of its
 * share's interval. It stays heavy until that has not been so for quiet_ns.
 *
 * Error: that of the intervals (user/estimate/pooled.h), which hold for all keys of a sample
 * together with 95 %. A sample is of a window, so an end is told as much later as the window is
 * long.
 *
 * Concurrency: one thread. Memory: HEAVY_KEYS keys; a key for which there is no place is counted.
 */
#ifndef PACER_HEAVY_H
#define PACER_HEAVY_H

#include <stdbool.h>
#include <stdint.h>

#include "inspect/tally.h"

#define HEAVY_SHARE 0.1
#define HEAVY_KEYS  16u

struct heavy_share {
	double value, low, high;
};

/* A key of a sample. */
struct heavy_seen {
	const char *key; /* as text */
	struct heavy_share share;
};

struct heavy_key {
	char key[TALLY_TEXT];	     /* "": a free place */
	uint64_t began_ns, heavy_ns; /* when it was first heavy, and last */
	int64_t day_ns;		     /* struct heavy's, when it was first */
	struct heavy_share share;    /* when it was last heavy */
};

/* All zero: none is heavy. */
struct heavy {
	struct heavy_key at[HEAVY_KEYS];
	uint64_t lost;	/* keys that were heavy and found no place */
	int64_t day_ns; /* for keys that begin: struct detector's; set before heavy_feed */
};

/* What is told of a key: it began, or it is over. */
typedef void heavy_tell(const struct heavy_key *key, bool began, void *arg);

/* A sample of an episode at now_ns, in which a key stands once. */
void heavy_feed(struct heavy *h, const struct heavy_seen *seen, uint32_t n, uint64_t now_ns,
		uint64_t quiet_ns, heavy_tell *tell, void *arg);
/* The episode is over, and so is every key. */
void heavy_stop(struct heavy *h, heavy_tell *tell, void *arg);

#endif
