/* SPDX-License-Identifier: GPL-2.0-only */
/* All rules that a packet matches, as the packet path asks for few of them, and for many. */
#ifndef CLASSIFIED_H
#define CLASSIFIED_H

#include <stddef.h>

#include "classify.h"

static inline struct pacer_rules classified(const struct pacer_policy *p,
					    const struct pacer_packet *pkt)
{
	struct pacer_rules set = p->rules;

	pacer_classify_many(p, pkt, NULL, &set);
	/* Of few rules both have to say the same. */
	if (!(p->dims & PACER_DIMS_MANY) && pacer_classify(p, pkt) != set.word[0])
		set = (struct pacer_rules){{pacer_classify(p, pkt), ~0ull, ~0ull, ~0ull}};
	return set;
}

/* The first of a set; PACER_RULES_MAX: it is empty. */
static inline uint32_t first_of(struct pacer_rules set)
{
	return pacer_rules_lowest(&set);
}

#endif
