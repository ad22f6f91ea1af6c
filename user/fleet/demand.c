/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/demand.h"

#define SECOND_NS    1000000000ull
#define MEMBERS_LOOK 64

/* A quarter more than came, and one for what may come. */
static uint64_t more_than(uint64_t units, uint64_t limit)
{
	uint64_t want = units < limit ? units + units / 4 + 1 : limit;

	return want < limit ? want : limit;
}

static uint64_t ask(struct fleet_demand *d, uint64_t asked, uint64_t want, uint64_t limit)
{
	if (want < d->want - (d->want + 3) / 4)
		want = d->want - (d->want + 3) / 4;
	if (want > asked + asked / 8 || want < asked - asked / 8 || want == limit)
		asked = want;
	d->want = want;
	return asked;
}

uint64_t fleet_ask(struct fleet_demand *d, uint64_t asked, uint64_t units, uint64_t limit,
		   uint32_t members)
{
	return ask(d, asked, units || limit >= members ? more_than(units, limit) : 0, limit);
}

bool fleet_demand_is_due(const struct fleet_demand *d, uint32_t members, uint64_t now_ns)
{
	return now_ns >= d->at_ns + SECOND_NS + members / MEMBERS_LOOK * SECOND_NS;
}

uint64_t fleet_demand(struct fleet_demand *d, uint64_t asked, uint64_t counted, uint64_t span_ns,
		      uint64_t limit, uint32_t members, uint64_t now_ns)
{
	uint64_t at_ns = d->at_ns, came = counted - d->counted, want;
	unsigned __int128 units;

	if (now_ns < at_ns + SECOND_NS)
		return asked;
	units = (unsigned __int128)came * span_ns / (now_ns - at_ns);
	/* What came may be less than a unit, and has use for one. */
	want = came || limit >= members ? more_than(units < limit ? (uint64_t)units : limit, limit)
					: 0;
	d->counted = counted;
	d->at_ns = now_ns;
	if (at_ns)
		return ask(d, asked, want, limit);
	d->want = want; /* counted from nothing */
	return asked;
}
