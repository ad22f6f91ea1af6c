/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: the smallest value of a limit under which a packet would be admitted. */
#ifndef PACER_SEARCH_H
#define PACER_SEARCH_H

#include "offline/judge.h"

struct search {
	const struct judge *judge;
	uint32_t rule, limiter; /* of that rule */
	const struct pacer_packet *pkt;
	uint64_t now_ns;
};

/* Would it be admitted under this value? The limit's own stays. */
bool search_admits(const struct search *s, uint64_t value);

/* The smallest of the values above `small`, which is too small, up to `enough`, which is enough. */
uint64_t search_smallest(const struct search *s, uint64_t small, uint64_t enough);

#endif
