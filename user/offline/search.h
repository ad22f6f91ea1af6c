/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: the smallest limit of a window under which a packet would be admitted. */
#ifndef PACER_SEARCH_H
#define PACER_SEARCH_H

#include "offline/judge.h"

struct search {
	const struct judge *judge;
	uint32_t rule, limiter; /* a window's limit of that rule */
	const struct pacer_packet *pkt;
	uint64_t now_ns;
};

/* Would it be admitted under this limit? The limit's own limit stays. */
bool search_admits(const struct search *s, uint32_t limit);

/* The smallest of the limits above `small`, which is too small, up to `enough`, which is enough. */
uint32_t search_smallest(const struct search *s, uint32_t small, uint32_t enough);

#endif
