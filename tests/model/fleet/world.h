/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a fleet in small, and every state that it can come to: hosts that run user/fleet, a
 * store, and between them messages that are late, lost or doubled; clocks at different rates;
 * agents that begin anew, and hosts whose datapath begins anew; demand that changes at any time.
 *
 * A state is kept in a form of its own: times are told from now, and what is over is over;
 * revisions are told by their order. So states that differ in their age alone are one, and the
 * exploration ends by itself: what is true of all states that it met is true of runs of any length.
 *
 * What has to hold in each: in every lane, what all hosts may have admitted within the memory is at
 * most the limit. Of each host that is the largest value that its datapath had within that time.
 *
 * Where policies change, a run at random ends with all that are changed, and with time for each
 * host that has not left. Then it is at most the lower limit, and who has left has nothing.
 */
#ifndef PACER_FLEET_WORLD_H
#define PACER_FLEET_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "fleet_planted.h"

#define FLEET_MEMBERS_MAX  4 /* three, and what is nobody's */
#define FLEET_LANES_MAX	   2
#define FLEET_DRIFT_SHIFT  2 /* clocks differ by up to a quarter */
#define FLEET_KEY_TEXT	   8
#define FLEET_RESERVES_DEN 1
#define FLEET_READ_NS	   world_read_ns /* as the scenario says */

extern uint64_t world_read_ns;

#define WORLD_HOSTS 3
#define WORLD_FAULT 128
#define WORLD_TRACE 4096

struct world_scenario {
	const char *name;
	int hosts;
	uint64_t limit, smaller; /* smaller: of the last host's policy; 0: the same */
	uint64_t reserve;
	uint64_t lowered, lowered_reserve; /* what a policy that has turned says in place of both */
	uint8_t rate[WORLD_HOSTS];	   /* of each host's clock: 3 to 5 for 4 of true time */
	uint8_t store_rate;
	uint8_t ttl, memory; /* of the store's clock and of true time; 4 are a tick */
	bool lane;	     /* a key has a lane */
	bool hot;	     /* the datapath says what it has admitted */
	bool slow;	     /* answers are late, too, and not requests alone */
	bool paced;	     /* who has nothing to write does not read at once */
	bool lazy;	     /* an agent that has something to do may wait, for any time */
	/* How often in a run. */
	uint8_t lost;	  /* an agent waits no more: the request or its answer is lost */
	uint8_t late;	  /* of those: the request may be done later */
	uint8_t doubled;  /* a request is done twice */
	uint8_t restarts; /* an agent begins anew */
	uint8_t reboots;  /* a datapath begins anew */
	uint8_t removals; /* somebody takes the record away */
	uint8_t leaves;	  /* an agent is told to give all up */
	uint8_t wants;	  /* a demand changes */
	uint8_t drops;	  /* a policy has the limit no more; later it may have it again */
	uint8_t turns;	  /* a policy is changed, and back again */
	uint8_t backs;	  /* an agent believes that the store went back */
	uint8_t deep;	/* not 0: all runs of so many actions, from where all members have joined */
	uint32_t walks; /* not 0: so many runs at random, in place of all */
	uint64_t states_min; /* so that nothing passes by not being explored */
	enum planted fault;
};

struct world_result {
	uint64_t states, steps;
	uint32_t depth; /* the deepest run */
	uint64_t used;	/* the most units in the datapaths of one state */
	char fault[WORLD_FAULT];
	uint32_t trace_length;
	char trace[WORLD_TRACE];
};

/* Explores all states; result->fault is "" where each is sound. */
void world_explore(const struct world_scenario *scenario, struct world_result *result);

#endif
