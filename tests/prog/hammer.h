/* SPDX-License-Identifier: GPL-2.0-only */
/* What test_hammer.c and hammer.bpf.c share. */
#ifndef HAMMER_H
#define HAMMER_H

#include "limit.h"

#define HAMMER_CPUS    2u
#define HAMMER_KEYS    64u
#define HAMMER_LOOKS   256u	  /* in one run of the program */
#define HAMMER_LOG     (1u << 18) /* admissions of one CPU */
#define HAMMER_LINES   64u
#define HAMMER_TARGETS 4u
#define HAMMER_LATE    1024u
#define HAMMER_RUN_NS  60000u /* a run of the program that takes longer was interrupted */

enum hammer_kind { HAMMER_LIMITER, HAMMER_THROTTLE, HAMMER_POOL };

/* What is hammered: one limit, and how its keys are drawn; a throttle; or a pool's targets. */
struct hammer_plan {
	struct pacer_limiter limiter;
	struct pacer_throttle_profile throttle; /* of a pool's each target */
	__u32 kind;				/* enum hammer_kind */
	__u32 targets;
	__u32 turn;
	__u32 unused;
	struct pacer_hash hash[HAMMER_KEYS];
	__u64 skew_ns[HAMMER_CPUS]; /* of each CPU's clock */
	__u32 active;		    /* keys at one time, a power of two */
	__u32 keys;		    /* keys in all, a power of two */
	__u32 phase_log2;	    /* ns after which the active keys move on by one */
	__u32 cost_max;		    /* of a packet, a power of two */
	__u64 late_ns; /* one packet in HAMMER_LATE is judged so long after its clock */
};

/*
 * One admission, of a pool with its target as the key: the clock before it, the time that it counts
 * with, and the clock behind it. The second is the first, or what another CPU had read by then: it
 * lies between the other two.
 */
struct hammer_event {
	__u64 before_ns, at_ns, behind_ns;
	__u32 key, cost;
};

/* What a CPU has leased. */
struct hammer_lease {
	struct pacer_throttle_lease throttle;
	struct pacer_pool_lease pool;
} __attribute__((aligned(64)));

/* busy_ns: of the runs that were not interrupted, the time they took. */
struct hammer_cpu {
	__u64 n, looks, busy_ns, by[PACER_REASON_COUNT], chance;
} __attribute__((aligned(64)));

#endif
