/* SPDX-License-Identifier: GPL-2.0-only */
/* All rules that a packet matches, as the packet path asks for few of them, and for many. */
#ifndef CLASSIFIED_H
#define CLASSIFIED_H

#include <stdbool.h>
#include <stddef.h>

#include "classify.h"

/* Does the short way say another first rule? It is asked of usual packets, of policies without sets
 * and more. */
static inline bool short_differs(const struct pacer_policy *p, const struct pacer_packet *pkt,
				 struct pacer_rules set)
{
	uint32_t first = pacer_rules_lowest(&set), proto = pkt->proto | (uint32_t)pkt->ports << 8;

	if (pkt->family != PACER_FAMILY_4 || pkt->vlan != PACER_VLAN_NONE || pkt->fragment ||
	    p->dims & (PACER_DIMS_SETS | PACER_DIMS_MORE | PACER_DIMS_FRAMES))
		return false;
	return (uint32_t)pacer_classify_usual_many(p, pkt->key[PACER_WORD_SADDR],
						   pkt->key[PACER_WORD_DADDR],
						   pkt->key[PACER_WORD_PORTS], proto) != first ||
	       (!(p->dims & PACER_DIMS_MANY) &&
		(uint32_t)pacer_classify_usual(
		    p, pkt->key[PACER_WORD_SADDR], pkt->key[PACER_WORD_DADDR],
		    pkt->key[PACER_WORD_PORTS], proto) != (first < 64 ? first : PACER_RULES_MAX));
}

static inline struct pacer_rules classified(const struct pacer_policy *p,
					    const struct pacer_packet *pkt)
{
	struct pacer_rules set = p->rules;

	pacer_classify_many(p, pkt, NULL, &set);
	/* Of few rules both have to say the same. */
	if (!(p->dims & PACER_DIMS_MANY) && pacer_classify(p, pkt) != set.word[0])
		set = (struct pacer_rules){{pacer_classify(p, pkt), ~0ull, ~0ull, ~0ull}};
	if (short_differs(p, pkt, set))
		set = (struct pacer_rules){{~0ull, ~0ull, ~0ull, ~0ull}};
	return set;
}

/* The first of a set; PACER_RULES_MAX: it is empty. */
static inline uint32_t first_of(struct pacer_rules set)
{
	return pacer_rules_lowest(&set);
}

#endif
