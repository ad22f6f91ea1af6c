/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the memory of samples. It hangs in two maps of one map each, which every pacer has, and
 * is made when the first policy that samples comes, at load or later: so that who never samples
 * spends none, and a pacer that no tool of ours loaded can sample, too.
 *
 * Memory: a sampler a CPU, and where heads are kept those (sampler.h). Once there it stays until
 * the pacer goes.
 */
#ifndef PACER_SAMPLES_H
#define PACER_SAMPLES_H

#include <stdbool.h>

#include "policy.h"
#include "sampler.h"

struct sample_maps {
	int samplers_fd, heads_fd;
};

/* Such a map, empty, where there is no object yet that brings it. -1: errno says why. */
int samples_outer(const char *name, size_t value_size);
/* That map of values; -1: there is none. To be closed. */
int samples_inner(int outer_fd);

/* What was made, so that it can be undone. */
struct samples_made {
	bool samplers, heads;
};

/* What a policy needs is there, for so many CPUs. 0, or -1 with *error filled and nothing made. */
int samples_make(const struct sample_maps *maps, const struct pacer_sampling *sampling, int cpus,
		 struct samples_made *made, struct policy_error *error);
void samples_undo(const struct sample_maps *maps, const struct samples_made *made);

#endif
