/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what else of the tools a change of a pacer at work calls: the clock and the CPUs are
 * those of kernel.h; there are no targets and no samples.
 */
#ifndef PACER_TEST_CALLS_H
#define PACER_TEST_CALLS_H

#include "applied.h"
#include "kernel.h"
#include "live/host.h"
#include "live/samples.h"
#include "live/targets.h"

uint64_t host_now_ns(void)
{
	return kernel_now_ns;
}

uint64_t host_resolution_ns(void)
{
	return RESOLUTION;
}

int host_cpus(struct policy_error *why)
{
	(void)why;
	return KERNEL_CPUS;
}

int targets_put(const struct target_maps *maps, uint32_t copy, const struct plan *wanted,
		struct policy_error *why)
{
	(void)maps;
	(void)copy;
	(void)wanted;
	(void)why;
	return 0;
}

int samples_make(const struct sample_maps *maps, const struct pacer_sampling *sampling, int cpus,
		 struct samples_made *made, struct policy_error *why)
{
	(void)maps;
	(void)sampling;
	(void)cpus;
	(void)why;
	*made = (struct samples_made){false, false};
	return 0;
}

void samples_undo(const struct sample_maps *maps, const struct samples_made *made)
{
	(void)maps;
	(void)made;
}

#endif
