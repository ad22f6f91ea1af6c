/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the samples of all CPUs of a pacer at work, drawn anew, each with the key that it is to
 * be counted by: what pooled.h makes numbers of.
 *
 * Concurrency: one thread; the packet path never waits (snapshot.h).
 *
 * Error: the number of packets in each CPU's window is exact. CPUs are read one after the other,
 * within read_ns. For a CPU that is `behind`, the current tick is missing.
 *
 * Memory: a copy of one sampler while it is read; PACER_SAMPLE_K items and keys for each CPU.
 */
#ifndef PACER_DRAWN_H
#define PACER_DRAWN_H

#include "estimate/pooled.h"
#include "live/attached.h"

struct drawn {
	struct pacer_sampling by;
	uint64_t now_ns, read_ns; /* monotonic */
	uint32_t cpus, behind;
	struct pooled_part *part;	/* one per CPU */
	struct pacer_sample_item *item; /* PACER_SAMPLE_K per CPU */
	uint64_t *key;			/* of each item */
};

/* Items of one key have one such number. */
typedef uint64_t drawn_key(const struct pacer_sample_item *item, const void *arg);

/* By a policy's sampling, which samples something. 0, or -1 with *error filled and nothing drawn.
 */
int drawn_take(const struct attached *a, const struct pacer_sampling *by, drawn_key *key,
	       const void *arg, struct drawn *drawn, struct policy_error *error);
void drawn_free(struct drawn *drawn);

/* The item that a key was found in. */
const struct pacer_sample_item *drawn_item(const struct drawn *drawn, const struct pooled_key *key);

#endif
