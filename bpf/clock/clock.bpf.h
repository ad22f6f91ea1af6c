/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the kernel's clocks. Replays are built with another file of this name, whose clock is
 * given.
 *
 * The coarse clock is counted in jiffies, which cost a load where the kernel's function costs a
 * tenth of a packet. The tick that brings a jiffy is the one that brings the coarse clock forward,
 * and jiffies are whole periods of the monotonic clock: so both stand still for as long, and they
 * differ by less than a jiffy.
 *
 * Error: monotonic time is at most a tick, and what that is late, ahead of the coarse clock.
 *
 * Concurrency: any CPU. The first to come finds the difference, for all.
 */
#ifndef PACER_CLOCK_BPF_H
#define PACER_CLOCK_BPF_H

#include <bpf/bpf_helpers.h>

#include "maps.bpf.h"

/* Find the difference between the clocks. Returns the coarse clock. */
__attribute__((noinline)) __u64 pacer_clock_begin(void)
{
	struct pacer_control *control = &pacer_control;
	__u64 now_ns = bpf_ktime_get_coarse_ns();

	if (control->resolution_ns)
		(void)pacer_cas64(&control->jiffies_ns, 0,
				  now_ns - bpf_jiffies64() * control->resolution_ns);
	return now_ns;
}

/* Monotonic ns, never 0; the coarse clock is that of the last tick. */
static __always_inline __u64 pacer_clock(int exact)
{
	__u64 now_ns, jiffies_ns = *(volatile __u64 *)&pacer_control.jiffies_ns;

	if (exact)
		now_ns = bpf_ktime_get_ns();
	else if (jiffies_ns)
		now_ns = bpf_jiffies64() * pacer_control.resolution_ns + jiffies_ns;
	else
		now_ns = pacer_clock_begin();
	return now_ns ? now_ns : 1;
}

#endif
