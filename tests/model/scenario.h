/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: scenarios for the explorer in which virtual CPUs let packets be judged
 * by the very headers that the kernel runs, and what has to hold at the end of
 * every schedule.
 *
 * A packet's hash is chosen freely: `place` stands in its source address and
 * `mark` in its destination, and the secret is such that they come out unchanged.
 */
#ifndef PACER_SCENARIO_H
#define PACER_SCENARIO_H

#define PACER_STEP_HOOK
#ifndef PACER_SPINS
#define PACER_SPINS 2
#endif

#include <stdbool.h>
#include <stdint.h>

#include "explore.h"
#include "planted.h"
#include "parsed.h"

#define LIMITERS 2
#define KEYS	 8 /* 1 to 7; 0 ends a list */
#define CPUS	 3
#define PACKETS	 3
#define AROUND	 6
#define LINES	 8
#define LOG_MAX	 (AROUND + CPUS * PACKETS + AROUND)

/* In the operator's units. A rate: `limit` is its burst, and `amount` (0: one) come in window_ns.
 */
struct limits {
	enum pacer_limiter_kind kind;
	uint32_t rows, sets, shared;
	uint64_t gap_ns, window_ns;
	uint32_t limit, slots, amount;
	uint64_t slack_ns; /* added to the time after which a record is idle */
	enum pacer_cost cost;
	bool all;    /* one key for all */
	bool narrow; /* records are narrow where they may, else wide */
};

struct packet {
	uint32_t key;
	uint64_t now_ns;
	uint32_t len_bytes;
};

typedef __u32 judge_fn(struct pacer_walk *w);

struct scenario {
	const char *name;
	struct limits limiter[LIMITERS];
	struct pacer_hash key[KEYS];
	struct packet before[AROUND];	  /* admitted in turn, before the CPUs start */
	struct packet cpu[CPUS][PACKETS]; /* each CPU's, at once with the others' */
	struct packet after[AROUND];	  /* in turn, after each schedule */
	unsigned int most;     /* of the CPUs' packets are admitted by the best schedule */
	unsigned int smallest; /* and by the worst in which none is denied as contended */
	bool shares;	       /* keys may be denied on account of each other */
	bool still;	       /* all are denied by reading: nothing is written */
	bool ahead; /* a time counts as that of the clock furthest ahead, whichever key it judged */
	uint64_t states_min;
	judge_fn *judge;		     /* instead of judge_parsed */
	void (*spoil)(struct pacer_rule *r); /* the loader's work */
	const char *finds;		     /* the fault that has to be found; NULL: none */
};

struct outcome {
	struct explore_result explored;
	unsigned int in_turn[2]; /* admitted with the CPUs one after the other, from either end */
	unsigned int most, smallest; /* least: of the ends without contended denials */
	uint64_t contended;	     /* ends with them */
};

void scenario_explore(const struct scenario *scenario, struct outcome *outcome);

#endif
