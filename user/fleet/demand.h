/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: how many units of a limit of all packets, or of one key, a member has use for, from what
 * came to it. Pure.
 *
 * A quarter more than came is asked for, and one, so that more can come; what is asked for falls by
 * a quarter a look at most, so that a pause costs few units. A change of an eighth or less is not
 * worth a write, but for one to all of the limit. Where a limit has fewer units than members, who
 * has seen nothing asks for none: it would keep the one from somebody who needs it.
 *
 * Concurrency: one caller at a time. Memory: the struct.
 */
#ifndef PACER_FLEET_DEMAND_H
#define PACER_FLEET_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

struct fleet_demand {
	uint64_t counted, at_ns; /* when it was looked at last; 0: never */
	uint64_t want;
};

/*
 * What to ask for, from what was asked for so far, at most `limit`. counted: units that came ever;
 * span_ns: the time in which the limit's units count; members: how many have the limit. It changes
 * once a second at most.
 */
uint64_t fleet_demand(struct fleet_demand *d, uint64_t asked, uint64_t counted, uint64_t span_ns,
		      uint64_t limit, uint32_t members, uint64_t now_ns);
/* When it is to be looked at: a second after the last look, and one more for each 64 members. */
bool fleet_demand_is_due(const struct fleet_demand *d, uint32_t members, uint64_t now_ns);

/*
 * The same of what came within the units' time, as somebody else counted it. Of a demand that is
 * new (all 0) it is asked for at once.
 */
uint64_t fleet_ask(struct fleet_demand *d, uint64_t asked, uint64_t units, uint64_t limit,
		   uint32_t members);

#endif
