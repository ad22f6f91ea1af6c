/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the memory of samples. Every pacer has two maps of maps with one entry each. The inner
 * maps are made for the first policy that samples, at load or later. So a pacer that never samples
 * spends no memory, and one that no tool of ours loaded can sample, too.
 *
 * Memory: a sampler for each CPU, and its heads if they are kept (sampler.h). It stays until the
 * pacer goes.
 */
#ifndef PACER_SAMPLES_H
#define PACER_SAMPLES_H

#include <stdbool.h>

#include "config/policy.h"
#include "sampler.h"

struct sample_maps {
	int samplers_fd, heads_fd;
};

/* Makes such a map, empty, before an object is loaded. -1: see errno. */
int samples_outer(const char *name, size_t value_size);
/* Opens the inner map; -1: there is none. */
int samples_inner(int outer_fd);

/* What was made, so that it can be undone. */
struct samples_made {
	bool samplers, heads;
};

/* Makes what the policy needs for so many CPUs. 0, or -1 with *error filled and nothing made. */
int samples_make(const struct sample_maps *maps, const struct pacer_sampling *sampling, int cpus,
		 struct samples_made *made, struct policy_error *error);
void samples_undo(const struct sample_maps *maps, const struct samples_made *made);

struct bpf_map;

/* A sampler for each CPU, in place of the map of an object that is not loaded yet. -1: see errno.
 */
int samples_replace(struct bpf_map *map, int cpus);

#endif
