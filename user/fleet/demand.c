/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/demand.h"

#define SECOND_NS 1000000000ull

uint64_t fleet_demand(struct fleet_demand *d, uint64_t asked, uint64_t counted, uint64_t span_ns,
		      uint64_t limit, uint64_t now_ns)
{
	unsigned __int128 units;
	uint64_t want;

	if (now_ns < d->at_ns + SECOND_NS)
		return asked;
	units = (unsigned __int128)(counted - d->counted) * span_ns / (now_ns - d->at_ns);
	units += units / 4 + 1;
	want = units < limit ? (uint64_t)units : limit;
	if (d->at_ns && want < d->want && want < d->want - d->want / 4)
		want = d->want - d->want / 4;
	if (d->at_ns && (want > asked + asked / 8 || want < asked / 2 + asked / 4))
		asked = want;
	d->want = want;
	d->counted = counted;
	d->at_ns = now_ns;
	return asked;
}
