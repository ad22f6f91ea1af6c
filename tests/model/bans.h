/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: scenarios for the explorer in which virtual CPUs ban keys of one set of
 * entries, ask for them, and lift bans, all at once.
 *
 * At every state: an entry that bans a key is in the filter, and only keys that
 * somebody banned are in entries. At the end: who was told that a key is banned
 * was told of a ban that was asked for; who entered one finds it until its time, if
 * nobody lifted it, and not after that.
 */
#ifndef PACER_BANS_H
#define PACER_BANS_H

#include "scenario.h"

#define BAN_OPS	   3
#define BAN_AROUND 6
#define BAN_TTL_NS 100

/* BAN_GROW: as a rule whose bans grow by two, up to eight times BAN_TTL_NS. */
#define BAN_LONGEST_NS (8 * BAN_TTL_NS)

enum ban_op { BAN_NONE, BAN_ADD, BAN_GROW, BAN_FIND, BAN_LIFT };

/* Key 1 to 6 (see bans.c: what they have in common), at a time. */
struct ban_step {
	enum ban_op op;
	uint32_t key;
	uint64_t now_ns;
};

struct ban_scenario {
	const char *name;
	struct ban_step before[BAN_AROUND], cpu[CPUS][BAN_OPS];
	enum planted fault;
	unsigned int most, smallest;	 /* that are banned by the CPUs, in any schedule */
	uint32_t row;			 /* not 0: of key 1's ban, at the end of any schedule */
	uint64_t until_ns, until_max_ns; /* and between which times it ends */
	uint64_t states_min;
	const char *finds; /* the fault that has to be found; NULL: none */
};

void bans_explore(const struct ban_scenario *scenario, struct outcome *outcome);

extern const struct ban_scenario ban_sound[], ban_faulty[];
extern const size_t ban_sound_n, ban_faulty_n;

#endif
