/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: which keys of a limit a member asks to have lanes for (record.h), and how much of them,
 * from what its sample shows. Pure.
 *
 * A key needs a lane if more of it comes to one member than an equal part of the limit. The lane
 * stays while what some member asks for is more than that, a quarter more than comes (demand.h), so
 * a demand that changes a little opens and closes none. In a lane that is needed each member
 * asks for a sixteenth of an equal part at least: a sample does not show every key.
 *
 * Each look can cost a write, and all members a read. So members look the less often the more there
 * are.
 *
 * Error: a demand that the sample does not show gets that sixteenth. Keys beyond the lanes of a
 * limit have equal parts.
 *
 * Concurrency: one caller at a time. Memory: the struct.
 */
#ifndef PACER_FLEET_HEAVY_H
#define PACER_FLEET_HEAVY_H

#include "fleet/demand.h"
#include "fleet/member.h"

/* What came of a key within the time in which the limit's units count. */
struct fleet_seen {
	char key[FLEET_KEY_TEXT];
	uint64_t units;
};

/* Beside a share's want_key. */
struct fleet_heavy {
	struct fleet_demand demand[FLEET_LANES_MAX];
	uint64_t asked[FLEET_LANES_MAX];
	uint64_t due_ns; /* when to look again */
};

/* Says in s->want_key and s->want what the member asks for; `seen`: n keys, the heaviest first. */
void fleet_heavy(struct fleet_heavy *h, struct fleet_share *s, uint64_t member,
		 const struct fleet_seen *seen, size_t n, uint64_t now_ns);

#endif
