/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Was the machine calm while something was measured? Others' work takes CPU time from what is
 * measured, and caches and memory's bandwidth from all CPUs.
 */
#ifndef BENCH_CALM_H
#define BENCH_CALM_H

#include <stdint.h>

#define CALM_BUSY 0.05 /* of the machine's time; above it a figure is not to be believed */

struct calm {
	uint64_t wall_ns;
	uint64_t own_ns;    /* CPU time of this process, and of its softirqs in ksoftirqd */
	uint64_t busy_ns;   /* CPU time of everybody, all CPUs, in ticks */
	uint64_t stolen_ns; /* by the machine's own host */
	uint64_t tick_ns;
};

/* So often a measurement is made at most, until it was calm: BENCH_AGAIN of the environment, or 3.
 */
int calm_again(void);

/* Takes the time of now. -1: /proc cannot be read. `cpu`: the one whose softirqs are the caller's
 * doing. */
int calm_read(struct calm *now, int cpu);

/*
 * The share of a measurement that was others', 0 to 1, whatever is largest: CPU time that the
 * `cpus` CPUs which should have done nothing else lacked; time that the host took; CPU time of
 * others, of the time that all `of` CPUs have.
 */
double calm_busy(const struct calm *from, const struct calm *to, int cpus, int of);

/* CPU time of the CPU's softirq thread, which takes over where softirqs go on for long; 0: none. */
uint64_t calm_softirqd_ns(int cpu);

#endif
