/* SPDX-License-Identifier: GPL-2.0-only */
#include "offline/search.h"

#include "plan/kinds.h"

bool search_admits(const struct search *s, uint64_t value)
{
	struct pacer_limiter *t = &s->judge->bin->rule[s->rule].limiter[s->limiter];
	const struct limit_kind *kind = kind_of_limiter(t);
	uint64_t own = kind->value(t);
	bool admits;

	kind->tune(t, value);
	admits =
	    replay_peek(s->judge->replay, s->pkt, s->rule, s->limiter, s->now_ns) == PACER_ADMIT;
	kind->tune(t, own);
	return admits;
}

uint64_t search_smallest(const struct search *s, uint64_t small, uint64_t enough)
{
	while (enough - small > 1) {
		uint64_t middle = small + (enough - small) / 2;

		if (search_admits(s, middle))
			enough = middle;
		else
			small = middle;
	}
	return enough;
}
