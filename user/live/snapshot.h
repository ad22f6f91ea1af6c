/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the sample of a pacer at work: a copy of each CPU's sampler, taken while packets go on,
 * and one sample of all of them.
 *
 * Concurrency: one thread. The packet path never waits. If it wrote during a copy, the copy is made
 * again, up to SNAPSHOT_TRIES times. After that the sample at the end of the last tick is taken
 * (sampler.h).
 *
 * Error: merging uses the exact number of packets in each CPU's window, so it adds no error
 * (sample_merge.h). CPUs are read one after the other, within read_ns, and the window of each ends
 * when it is read. For a CPU that is `behind`, the packets of the current tick are missing.
 *
 * Memory: a copy of one sampler and its heads, and PACER_SAMPLE_K rows for each CPU. All but the
 * result is freed before it returns.
 */
#ifndef PACER_SNAPSHOT_H
#define PACER_SNAPSHOT_H

#include "live/attached.h"

#define SNAPSHOT_TRIES	  50
#define SNAPSHOT_PAUSE_NS 20000

struct sample_row {
	struct pacer_sample_item item;
	uint32_t cpu;
	uint32_t head_len; /* bytes of the frame that were kept */
	uint8_t head[PACER_SNAP_MAX];
};

struct sample {
	const struct pacer_copy *copy; /* the policy that was in force */
	struct pacer_sampling by;      /* of it */
	uint64_t now_ns;	       /* monotonic, of the items' times */
	uint64_t read_ns;	       /* from the first copy to the last */
	uint32_t cpus, behind;
	uint64_t *window; /* packets in the window of each CPU */
	uint64_t n;	  /* their sum */
	uint32_t rows;
	struct sample_row row[PACER_SAMPLE_K]; /* newest first */
};

enum sample_copied { SAMPLE_TORN, SAMPLE_BEHIND, SAMPLE_WHOLE };

/* Copies a sampler that a CPU may be writing to. heads and its copy may be NULL. */
enum sample_copied sample_copy(const struct pacer_sampler *live, const struct pacer_heads *heads,
			       const struct pacer_sampling *by, struct pacer_sampler *copy,
			       struct pacer_heads *heads_copy);

/* 0, and sample_free frees the sample; or -1 with *error filled. seed: for the drawing. */
int sample_read(const struct attached *a, uint64_t seed, struct sample *sample,
		struct policy_error *error);
void sample_free(struct sample *sample);

#endif
