/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/reach.h"

#include "live/allowlist.h"
#include "rule.h"

enum reach reach_of_set(const struct policy_set_use *set, const struct pacer_walk *walk,
			const struct prefix *source)
{
	uint32_t in, whole = source->family == 4 ? 32 : 128;

	if (source->len != whole)
		return REACH_SOME;
	in = pacer_walk_in(walk, set->set);
	if (in & PACER_SET_UNKNOWN)
		return REACH_SOME;
	if (!(in & PACER_SRC_IN) || (set->number && (in >> 8 & 0xff) != set->number))
		return REACH_NONE;
	return REACH_ALL;
}

static enum reach larger(enum reach a, enum reach b)
{
	return a > b ? a : b;
}

/* By the match's src alone: one of its prefixes and sets has it, and none of those behind a "!". */
static enum reach of_source(const struct policy_match *m, const struct pacer_walk *walk,
			    const struct prefix *source)
{
	enum reach in = REACH_NONE, out = REACH_NONE;
	bool any = !m->n_src;

	for (size_t i = 0; i < m->n_src; i++)
		in = larger(in, units_prefix_holds(&m->src[i], source)	 ? REACH_ALL
				: units_prefix_holds(source, &m->src[i]) ? REACH_SOME
									 : REACH_NONE);
	for (size_t i = 0; i < m->n_sets; i++) {
		const struct policy_set_use *set = &m->set[i];
		enum reach reach = set->dst ? REACH_NONE : reach_of_set(set, walk, source);

		if (set->not )
			out = larger(out, reach);
		else
			in = larger(in, reach);
		any &= set->dst || set->not ;
	}
	if (any)
		in = REACH_ALL;
	if (out == REACH_ALL)
		return REACH_NONE;
	return out == REACH_SOME && in ? REACH_SOME : in;
}

static bool asks_more(const struct policy_match *m)
{
	size_t packet = m->n_dst + m->n_proto + m->n_sport + m->n_dport + m->n_vlan + m->n_ttl +
			m->n_dscp + m->n_fragment + m->n_options + m->n_len + m->n_payload_len;
	size_t frame = m->n_ether_type + m->n_ether_src + m->n_ether_dst + m->n_payload;
	size_t headers =
	    m->n_flags + m->n_icmp_type + m->n_icmp_code + m->n_icmpv6_type + m->n_icmpv6_code;

	for (size_t i = 0; i < m->n_sets; i++)
		packet += m->set[i].dst;
	return packet + frame + headers > 0;
}

enum reach reach_of_rule(const struct policy_rule *rule, const struct pacer_walk *walk,
			 const struct prefix *source)
{
	enum reach reach = of_source(&rule->match, walk, source);

	return reach == REACH_ALL && asks_more(&rule->match) ? REACH_SOME : reach;
}
