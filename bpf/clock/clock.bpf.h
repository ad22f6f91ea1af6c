/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's clocks. The object for replays has another file of this name, with a clock that is
 * given.
 */
#ifndef PACER_CLOCK_BPF_H
#define PACER_CLOCK_BPF_H

#include <bpf/bpf_helpers.h>

/* Monotonic ns, never 0; the coarse clock is that of the last tick. */
static __always_inline __u64 pacer_clock(int exact)
{
	__u64 now_ns = exact ? bpf_ktime_get_ns() : bpf_ktime_get_coarse_ns();

	return now_ns ? now_ns : 1;
}

#endif
