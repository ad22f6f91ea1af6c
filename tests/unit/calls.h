/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what else of the tools a change of a pacer at work calls: the clock and the CPUs are
 * those of kernel.h; targets are put nowhere, and there are no samples. Any of these may fail.
 */
#ifndef PACER_TEST_CALLS_H
#define PACER_TEST_CALLS_H

#include "applied.h"
#include "kernel.h"
#include "live/host.h"
#include "live/samples.h"
#include "live/targets.h"

static uint64_t clock_step_ns; /* by which each look at the clock takes it on */

uint64_t host_now_ns(void)
{
	uint64_t now_ns = kernel_now_ns;

	kernel_now_ns += clock_step_ns;
	return now_ns;
}

uint64_t host_resolution_ns(void)
{
	return RESOLUTION;
}

void host_wait_until(uint64_t until_ns)
{
	if (kernel_now_ns < until_ns)
		kernel_now_ns = until_ns;
}

static unsigned int cpus_asked, cpus_fail_at; /* from 1; 0: never */

int host_cpus(struct policy_error *why)
{
	if (++cpus_asked == cpus_fail_at)
		return policy_fail(why, 0, "the number of CPUs is not known");
	return KERNEL_CPUS;
}

static bool targets_fail, samples_fail;
static unsigned int samples_undone;	    /* so often were those that were made given back */
static void (*targets_hook)(uint32_t copy); /* what is gone when they are put; NULL: nothing */

int targets_put(const struct target_maps *maps, uint32_t copy, const struct plan *wanted,
		struct policy_error *why)
{
	(void)maps;
	(void)wanted;
	if (targets_hook && !targets_fail)
		targets_hook(copy);
	return targets_fail ? policy_fail(why, 0, "no room for targets") : 0;
}

int samples_make(const struct sample_maps *maps, const struct pacer_sampling *sampling, int cpus,
		 struct samples_made *made, struct policy_error *why)
{
	(void)maps;
	(void)sampling;
	(void)cpus;
	*made = (struct samples_made){false, false};
	return samples_fail ? policy_fail(why, 0, "no memory for the samples") : 0;
}

void samples_undo(const struct sample_maps *maps, const struct samples_made *made)
{
	(void)maps;
	(void)made;
	samples_undone++;
}

#endif
