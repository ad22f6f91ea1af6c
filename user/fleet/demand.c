/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/demand.h"

#define SECOND_NS    1000000000ull
#define MEMBERS_LOOK 64

/* A quarter more than came. Where not each can have a unit, nobody has one for what may come. */
static uint64_t more_than(const struct fleet_demand *d, uint64_t units, uint64_t limit)
{
	uint64_t want = units < limit ? units + units / 4 + 1 : limit;

	if (d->few && !units)
		return 0;

	return want < limit ? want : limit;
}

uint64_t fleet_ask(struct fleet_demand *d, uint64_t asked, uint64_t units, uint64_t limit)
{
	uint64_t want = more_than(d, units, limit);

	if (want < d->want - (d->want + 3) / 4)
		want = d->want - (d->want + 3) / 4;
	if (want > asked + asked / 8 || want < asked - asked / 8 || want == limit)
		asked = want;
	d->want = want;
	return asked;
}

bool fleet_demand_is_due(const struct fleet_demand *d, uint32_t members, uint64_t now_ns)
{
	return now_ns >= d->at_ns + SECOND_NS + members / MEMBERS_LOOK * SECOND_NS;
}

uint64_t fleet_demand(struct fleet_demand *d, uint64_t asked, uint64_t counted, uint64_t span_ns,
		      uint64_t limit, uint64_t now_ns)
{
	uint64_t at_ns = d->at_ns, came = counted - d->counted;
	unsigned __int128 units;

	if (now_ns < at_ns + SECOND_NS)
		return asked;
	units = (unsigned __int128)came * span_ns / (now_ns - at_ns);
	came = units < limit ? (uint64_t)units : limit;
	d->counted = counted;
	d->at_ns = now_ns;
	if (at_ns)
		return fleet_ask(d, asked, came, limit);
	d->want = more_than(d, came, limit); /* counted from nothing */
	return asked;
}
