/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: scenarios for the explorer in which virtual CPUs hand the uses of one
 * or two throttles over to each other, by leases that they use, let lapse, hand
 * back and undo; by the throttle's own functions, or through the judgement of a
 * packet whose rule has a window as well.
 *
 * What holds at the end of every schedule:
 * - G1 on the clock of use (throttle.h), whatever the clocks: at most `limit`
 *   uses in any (t - cooldown - resolution, t].
 * - G1 on the real clock: at most `limit` uses in any (t - cooldown, t], a use
 *   being made when the clock that is furthest ahead is read; in schedules in which
 *   no use was behind that by more than the resolution.
 * - A denial has its ground within throttle.h's bound: in uses made, and in those
 *   that other CPUs were just making.
 * - The state holds exactly the uses that were made and what CPUs have on lease,
 *   bucket by bucket. The window's record holds the packets that were admitted.
 */
#ifndef PACER_LEASE_H
#define PACER_LEASE_H

#include "scenario.h"

#define LEASE_THROTTLES 2
#define LEASE_PACKETS	4
#define LEASE_AROUND	10
#define LEASE_WINDOW_NS 100 /* of the window beside the throttles, in one slot */

struct lease_packet {
	uint64_t now_ns; /* 0 ends a list */
	uint32_t cpu;	 /* of a packet before or after; else its list's */
	bool undo;	 /* by the throttles' own functions: the uses are made and undone */
};

struct lease_scenario {
	const char *name;
	struct pacer_throttle_params throttle[LEASE_THROTTLES]; /* limit 0: none */
	uint32_t window;					/* packets; 0: none */
	bool pace; /* judge by the path, else by the throttles alone */
	enum planted fault;
	struct lease_packet before[LEASE_AROUND];
	struct lease_packet cpu[CPUS][LEASE_PACKETS];
	struct lease_packet after[LEASE_AROUND];
	unsigned int most, smallest; /* as in struct scenario */
	bool still;		     /* all are denied by reading */
	uint64_t states_min;
	const char *finds; /* the fault that has to be found; NULL: none */
};

void lease_explore(const struct lease_scenario *scenario, struct outcome *outcome);

extern const struct lease_scenario lease_sound[], lease_faulty[];
extern const size_t lease_sound_n, lease_faulty_n;

#endif
