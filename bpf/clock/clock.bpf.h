/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the kernel's clock, and a coarse one that costs packets no call. The object for replays
 * has another file of this name, with a clock that is given.
 *
 * The coarse clock is the exact one as this CPU read it when it was first asked in the kernel's
 * current tick (jiffies), or since then for a policy on trial. So it is behind by less than a tick,
 * which is its resolution, and no two CPUs differ by more: the limits include that. On one CPU it
 * does not run backwards.
 */
#ifndef PACER_CLOCK_BPF_H
#define PACER_CLOCK_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct pacer_tick {
	__u64 tick; /* which; 0: none yet */
	__u64 now_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pacer_tick);
} pacer_ticks SEC(".maps");

static const __u32 pacer_ticks_key = 0; /* not on the stack, of which there is little */

static __always_inline __u64 pacer_clock_coarse(void)
{
	__u64 tick = bpf_jiffies64(); /* before the clock: it may be the next one by then */
	struct pacer_tick *seen = bpf_map_lookup_elem(&pacer_ticks, &pacer_ticks_key);

	if (!seen)
		return bpf_ktime_get_ns();
	if (seen->tick != tick) {
		seen->now_ns = bpf_ktime_get_ns();
		seen->tick = tick;
	}
	return seen->now_ns;
}

/* The exact clock, never 0. From then on the coarse one is not before that on this CPU. */
static __always_inline __u64 pacer_clock_anew(void)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct pacer_tick *seen = bpf_map_lookup_elem(&pacer_ticks, &pacer_ticks_key);

	if (seen)
		seen->now_ns = now_ns;
	return now_ns ? now_ns : 1;
}

/* Monotonic ns, never 0. */
static __always_inline __u64 pacer_clock(int exact)
{
	__u64 now_ns = exact ? bpf_ktime_get_ns() : pacer_clock_coarse();

	return now_ns ? now_ns : 1;
}

#endif
