/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the machine's clocks and CPUs, as the packet path will find them: in a time namespace,
 * too, whose own clocks are others. Times are given to the kernel by host_wait_until alone, or by
 * how long it is until then. One thread.
 */
#ifndef PACER_HOST_H
#define PACER_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "config/policy.h"

/* The number of CPUs that may judge packets, or -1 with *error filled. It is read once. */
int host_cpus(struct policy_error *error);
/*
 * Before any clock is read, in each program: how far this process's are from the machine's. -1 with
 * *error filled: that cannot be told.
 */
int host_begin(struct policy_error *error);
/* The time of the exact clock, and the resolution of the coarse one (clock.bpf.h): a tick; in ns.
 */
uint64_t host_now_ns(void);
uint64_t host_resolution_ns(void);
/* Since the machine began, sleep included (CLOCK_BOOTTIME). */
uint64_t host_boot_ns(void);
/* Waits until host_now_ns is that, whatever signals come. */
void host_wait_until(uint64_t until_ns);
/* Has the process all of these capabilities (CAP_TO_MASK, of the first 32), over the machine? */
bool host_may(uint32_t capabilities);

#endif
