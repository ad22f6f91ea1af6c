/* SPDX-License-Identifier: GPL-2.0-only */
#include "offline/search.h"

bool search_admits(const struct search *s, uint32_t limit)
{
	struct pacer_limiter *t = &s->judge->bin->rule[s->rule].limiter[s->limiter];
	uint32_t own = t->window.limit;
	bool admits;

	t->window.limit = limit;
	admits =
	    replay_peek(s->judge->replay, s->pkt, s->rule, s->limiter, s->now_ns) == PACER_ADMIT;
	t->window.limit = own;
	return admits;
}

uint32_t search_smallest(const struct search *s, uint32_t small, uint32_t enough)
{
	while (enough - small > 1) {
		uint32_t middle = small + (enough - small) / 2;

		if (search_admits(s, middle))
			enough = middle;
		else
			small = middle;
	}
	return enough;
}
