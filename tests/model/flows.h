/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: scenarios for the explorer in which virtual CPUs remember flows of one set of lines, and
 * ask for them, all at once.
 *
 * Who is told that a flow is known was told of one that somebody kept less than FLOW_IDLE_NS
 * before; at the end every line has such a flow, and none is held.
 */
#ifndef PACER_FLOWS_H
#define PACER_FLOWS_H

#include "scenario.h"

#define FLOW_OPS     2
#define FLOW_AROUND  4
#define FLOW_IDLE_NS 100

enum flow_op { FLOW_NONE, FLOW_KEEP, FLOW_ASK };

/* Flow 1 to 7 (see flows.c: what they have in common), at a time. */
struct flow_step {
	enum flow_op op;
	uint32_t flow;
	uint64_t now_ns;
};

struct flow_scenario {
	const char *name;
	struct flow_step before[FLOW_AROUND], cpu[CPUS][FLOW_OPS];
	enum planted fault;
	unsigned int most, smallest; /* that are known to the CPUs, in any schedule */
	uint64_t states_min;
	const char *finds; /* the fault that has to be found; NULL: none */
};

void flows_explore(const struct flow_scenario *scenario, struct outcome *outcome);

extern const struct flow_scenario flow_sound[], flow_faulty[];
extern const size_t flow_sound_n, flow_faulty_n;

#endif
