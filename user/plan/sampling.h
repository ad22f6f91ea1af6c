/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a policy's `sample` as the packet path reads it, and the memory that it takes. Pure.
 *
 * A window of time is cut into ticks of a power of two ns, 32 to 64 of them, so that the path only
 * shifts. Ticks are whole: the window is as long as was asked for, and up to two ticks longer.
 * With the coarse clock it is longer by that clock's resolution, too, as packets look that much
 * older than they are.
 *
 * A change of policy that leaves `sample` as it was keeps the samples; any other begins anew, and
 * so does one that brings a rule: it may have the number of an older one, which samples bear.
 *
 * Concurrency, memory: none.
 */
#ifndef PACER_SAMPLING_H
#define PACER_SAMPLING_H

#include "config/policy.h"

/* bin: whose rules have their numbers. previous: what is being replaced, or NULL. */
struct pacer_sampling sampling_compile(const struct policy_sample *sample,
				       const struct pacer_policy *bin,
				       const struct pacer_policy *previous, uint64_t resolution_ns,
				       uint64_t now_ns);

/* "denied", "admitted", "all". */
const char *sampling_of_text(enum policy_sampled of);

/* What a pacer takes for it at load, on so many CPUs. */
uint64_t sampling_bytes(const struct pacer_sampling *sampling, unsigned int cpus);

#endif
