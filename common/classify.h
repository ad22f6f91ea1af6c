/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the first rule that a packet matches, at a cost that does not grow
 * with the rules.
 *
 * Source: bit vectors (Lakshman and Stiliadis): a field's values are cut into
 * the intervals in which the set of matching rules is the same; each interval
 * has that set as a bit a rule (rules.h); the sets of all fields are ANDed and
 * the lowest bit left is the first rule. An interval is found by a binary search
 * without branches among the bounds that share the value's highest bits: at most
 * PACER_BOUND_STEPS steps, and mostly none. For ports there is a table.
 *
 * The functions with `many` in their names are for policies of more than 64
 * rules, the others for those of fewer: these have one word for a set.
 *
 * If a packet's ports are unknown, as in a later fragment, it matches whatever
 * ports a rule has. The same holds for an unknown protocol. So nothing slips
 * past a rule that way. A rule that passes all of its packets, by a verdict or
 * since it only counts, is the exception: what is not known does not fall under
 * it. A protocol without ports matches no rule that asks for ports.
 *
 * Concurrency: pure. Memory: 37 KiB for each field, 48 KiB for each IPv6
 * address, 256 KiB for the ports.
 */
#ifndef PACER_CLASSIFY_H
#define PACER_CLASSIFY_H

#include "abi.h"
#include "parse.h"
#include "rules.h"

/* The bucket of a value is the value without this many of its lowest bits. */
#define PACER_BUCKET_ADDR4 24
#define PACER_BUCKET_PROTO 0
#define PACER_BUCKET_VLAN  5

_Static_assert(PACER_BOUNDS_MAX == 1023, "10 steps for 1023 bounds");
_Static_assert(sizeof(struct pacer_dim) == 37 << 10, "37 KiB a field");
_Static_assert(sizeof(struct pacer_dim6) == (48 << 10) + 8, "48 KiB an IPv6 address");
_Static_assert(sizeof(((struct pacer_policy *)0)->port_at) == 256 << 10, "256 KiB for the ports");

/* The rules that match `value`; `shift` is the field's. */
PACER_INLINE const struct pacer_rules *pacer_dim_rules(const struct pacer_dim *d, __u32 value,
						       __u32 shift)
{
	__u32 bucket = pacer_opaque(value >> shift) & (PACER_BUCKETS - 1);
	__u32 i = d->first[bucket], more = d->more[bucket];
	int k;

	/* Finds the interval, from i to i + more. */
	PACER_ROLLED
	for (k = 0; k < PACER_BOUND_STEPS && more; k++, more >>= 1) {
		__u32 half = (more + 1) >> 1, at = (i + half - 1) & PACER_BOUNDS_MAX;

		/* 1 where bound <= value */
		i += half * (__u32)((((__u64)d->bound[at] - value - 1) >> 63) & 1);
	}
	return &d->mask[i & PACER_BOUNDS_MAX];
}

/* Counts the bounds from number `from` on that are `value` or less. Unused bounds are 2^32 - 1. */
PACER_INLINE __u32 pacer_dim_count(const struct pacer_dim *d, __u32 from, __u32 value)
{
	while (from < PACER_BOUNDS_MAX && d->bound[from] <= value)
		from++;
	return from;
}

/* Fills d->first and d->more from d->bound. */
PACER_INLINE void pacer_dim_index(struct pacer_dim *d, __u32 shift)
{
	__u32 bucket, first = 0;

	for (bucket = 0; bucket < PACER_BUCKETS; bucket++) {
		__u32 from = bucket << shift;

		first = pacer_dim_count(d, first, from);
		d->first[bucket] = first;
		d->more[bucket] = pacer_dim_count(d, first, from + ((1u << shift) - 1)) - first;
	}
}

/* Fills all tables that depend on the bounds. For the loader, after it has set the bounds. */
PACER_INLINE void pacer_classify_index(struct pacer_policy *p)
{
	const struct pacer_dim *d = &p->dim[PACER_DIM_SPORT];
	__u32 which, port, at;

	pacer_dim_index(&p->dim[PACER_DIM_SADDR4], PACER_BUCKET_ADDR4);
	pacer_dim_index(&p->dim[PACER_DIM_DADDR4], PACER_BUCKET_ADDR4);
	pacer_dim_index(&p->dim[PACER_DIM_PROTO], PACER_BUCKET_PROTO);
	pacer_dim_index(&p->dim[PACER_DIM_VLAN], PACER_BUCKET_VLAN);
	for (which = 0; which < 2; which++, d++) {
		if (!(p->dims & 1u << (PACER_DIM_SPORT + which)))
			continue;
		for (port = at = 0; port < 65536; port++) {
			at = pacer_dim_count(d, at, port);
			p->port_at[which][port] = at;
		}
	}
}

PACER_INLINE const struct pacer_rules *pacer_dim6_rules(const struct pacer_dim6 *d,
							const __u32 addr[4])
{
	__u64 hi = (__u64)addr[0] << 32 | addr[1], lo = (__u64)addr[2] << 32 | addr[3];
	__u32 i = 0, step = d->top;
	int k;

	for (k = 0; k < PACER_BOUND_STEPS && step; k++, step >>= 1) {
		__u32 at = (i + step - 1) & PACER_BOUNDS_MAX;

		if (d->hi[at] < hi || (d->hi[at] == hi && d->lo[at] <= lo))
			i += step;
	}
	return &d->mask[i & PACER_BOUNDS_MAX];
}

/* The row of a port; `which` is 1 for the destination's. */
PACER_INLINE __u32 pacer_port_row(const struct pacer_policy *p, __u32 which, __u32 port)
{
	return p->port_at[which][port] & PACER_BOUNDS_MAX;
}

/* The fields that rules match on, without those that the packet lacks or that are unknown. */
PACER_INLINE __u32 pacer_classify_dims(const struct pacer_policy *p, __u8 ports)
{
	__u32 unknown = 1u << PACER_DIM_SPORT | 1u << PACER_DIM_DPORT;

	if (ports == PACER_PORTS_READ)
		return p->dims;
	if (ports == PACER_PORTS_ANY)
		unknown |= 1u << PACER_DIM_PROTO;
	return p->dims & ~unknown;
}

/* The rules that by their sets match a packet's source and destination, and those that do not. */
PACER_INLINE __u64 pacer_classify_addresses(const struct pacer_policy *p,
					    const struct pacer_packet *pkt, __u32 dims,
					    const struct pacer_set_use *by_sets)
{
	const __u32 *saddr = &pkt->key[PACER_WORD_SADDR], *daddr = &pkt->key[PACER_WORD_DADDR];
	__u64 src = ~0ull, dst = ~0ull;

	if (pkt->family == PACER_FAMILY_4) {
		if (dims & 1u << PACER_DIM_SADDR4)
			src = pacer_dim_rules(&p->dim[PACER_DIM_SADDR4], *saddr, PACER_BUCKET_ADDR4)
				  ->word[0];
		if (dims & 1u << PACER_DIM_DADDR4)
			dst = pacer_dim_rules(&p->dim[PACER_DIM_DADDR4], *daddr, PACER_BUCKET_ADDR4)
				  ->word[0];
	} else {
		if (dims & 1u << PACER_DIM_SADDR6)
			src = pacer_dim6_rules(&p->dim6[0], saddr)->word[0];
		if (dims & 1u << PACER_DIM_DADDR6)
			dst = pacer_dim6_rules(&p->dim6[1], daddr)->word[0];
	}
	return (src | by_sets->src_in) & ~by_sets->src_not & (dst | by_sets->dst_in) &
	       ~by_sets->dst_not;
}

/* The rules that the parsed packet matches, one bit each; the lowest is the rule that counts. */
PACER_INLINE __u64 pacer_classify_with(const struct pacer_policy *p, const struct pacer_packet *pkt,
				       const struct pacer_set_use *by_sets)
{
	__u32 ports = pkt->key[PACER_WORD_PORTS], dims = pacer_classify_dims(p, pkt->ports);
	__u64 set = p->rules.word[0];

	if (!p->dims)
		return set;
	set &= ~p->ruled_out[pkt->ports & 3].word[0];
	set &= pacer_classify_addresses(p, pkt, dims, by_sets);
	if (dims & 1u << PACER_DIM_SPORT)
		set &= p->dim[PACER_DIM_SPORT].mask[pacer_port_row(p, 0, ports >> 16)].word[0];
	if (dims & 1u << PACER_DIM_DPORT)
		set &= p->dim[PACER_DIM_DPORT].mask[pacer_port_row(p, 1, ports & 0xffff)].word[0];
	if (dims & 1u << PACER_DIM_PROTO)
		set &= pacer_dim_rules(&p->dim[PACER_DIM_PROTO], pkt->proto, PACER_BUCKET_PROTO)
			   ->word[0];
	if (dims & 1u << PACER_DIM_VLAN)
		set &=
		    pacer_dim_rules(&p->dim[PACER_DIM_VLAN], pkt->vlan, PACER_BUCKET_VLAN)->word[0];
	return set;
}

/* The same of a policy without sets. */
PACER_INLINE __u64 pacer_classify(const struct pacer_policy *p, const struct pacer_packet *pkt)
{
	struct pacer_set_use none = {0, 0, 0, 0};

	return pacer_classify_with(p, pkt, &none);
}

/* --- of many rules --------------------------------------------------------------------------- */

/* Takes out the rules whose prefixes the packet's source is not in, but for those with its sets. */
PACER_INLINE void pacer_keep_source(struct pacer_rules *set, const struct pacer_rules *by,
				    const struct pacer_uses *uses)
{
	__u32 i;

	for (i = 0; i < PACER_RULE_WORDS; i++)
		set->word[i] &= by->word[i] | (uses ? uses->word[i].src_in : 0);
}

PACER_INLINE void pacer_keep_destination(struct pacer_rules *set, const struct pacer_rules *by,
					 const struct pacer_uses *uses)
{
	__u32 i;

	for (i = 0; i < PACER_RULE_WORDS; i++)
		set->word[i] &= by->word[i] | (uses ? uses->word[i].dst_in : 0);
}

PACER_INLINE void pacer_keep_addresses(const struct pacer_policy *p, const struct pacer_packet *pkt,
				       __u32 dims, const struct pacer_uses *uses,
				       struct pacer_rules *set)
{
	const __u32 *saddr = &pkt->key[PACER_WORD_SADDR], *daddr = &pkt->key[PACER_WORD_DADDR];
	__u32 i;

	if (pkt->family == PACER_FAMILY_4) {
		if (dims & 1u << PACER_DIM_SADDR4)
			pacer_keep_source(
			    set,
			    pacer_dim_rules(&p->dim[PACER_DIM_SADDR4], *saddr, PACER_BUCKET_ADDR4),
			    uses);
		if (dims & 1u << PACER_DIM_DADDR4)
			pacer_keep_destination(
			    set,
			    pacer_dim_rules(&p->dim[PACER_DIM_DADDR4], *daddr, PACER_BUCKET_ADDR4),
			    uses);
	} else {
		if (dims & 1u << PACER_DIM_SADDR6)
			pacer_keep_source(set, pacer_dim6_rules(&p->dim6[0], saddr), uses);
		if (dims & 1u << PACER_DIM_DADDR6)
			pacer_keep_destination(set, pacer_dim6_rules(&p->dim6[1], daddr), uses);
	}
	for (i = 0; uses && i < PACER_RULE_WORDS; i++)
		set->word[i] &= ~(uses->word[i].src_not | uses->word[i].dst_not);
}

/*
 * Takes out of the set all rules that the parsed packet does not match. uses: 0 for a policy
 * without sets.
 */
PACER_INLINE void pacer_classify_many(const struct pacer_policy *p, const struct pacer_packet *pkt,
				      const struct pacer_uses *uses, struct pacer_rules *set)
{
	__u32 ports = pkt->key[PACER_WORD_PORTS], dims = pacer_classify_dims(p, pkt->ports);

	pacer_rules_drop(set, &p->ruled_out[pkt->ports & 3]);
	pacer_keep_addresses(p, pkt, dims, uses, set);
	if (dims & 1u << PACER_DIM_SPORT)
		pacer_rules_keep(set,
				 &p->dim[PACER_DIM_SPORT].mask[pacer_port_row(p, 0, ports >> 16)]);
	if (dims & 1u << PACER_DIM_DPORT)
		pacer_rules_keep(
		    set, &p->dim[PACER_DIM_DPORT].mask[pacer_port_row(p, 1, ports & 0xffff)]);
	if (dims & 1u << PACER_DIM_PROTO)
		pacer_rules_keep(
		    set, pacer_dim_rules(&p->dim[PACER_DIM_PROTO], pkt->proto, PACER_BUCKET_PROTO));
	if (dims & 1u << PACER_DIM_VLAN)
		pacer_rules_keep(
		    set, pacer_dim_rules(&p->dim[PACER_DIM_VLAN], pkt->vlan, PACER_BUCKET_VLAN));
}

/* --- on the short way ------------------------------------------------------------------------ */

/* A packet of which this is known (struct pacer_usual), as pacer_classify_usual has it. */
PACER_INLINE struct pacer_packet pacer_classify_packet(__u32 saddr, __u32 daddr, __u32 ports,
						       __u32 proto)
{
	return (struct pacer_packet){
	    .key = {[PACER_WORD_SADDR] = saddr,
		    [PACER_WORD_DADDR] = daddr,
		    [PACER_WORD_PORTS] = ports},
	    .vlan = PACER_VLAN_NONE,
	    .family = PACER_FAMILY_4,
	    .proto = proto,
	    .ports = proto >> 8,
	};
}

/*
 * The first rule that such a packet matches; PACER_RULES_MAX: none. Of a policy without sets and
 * more. proto: beside it, from bit 8, what is known of its ports.
 */
PACER_GLOBAL int pacer_classify_usual(const struct pacer_policy *p, __u32 saddr, __u32 daddr,
				      __u32 ports, __u32 proto)
{
	struct pacer_packet pkt = pacer_classify_packet(saddr, daddr, ports, proto);
	__u64 rules = p ? pacer_classify(p, &pkt) : 0;

	return rules ? pacer_lowest(rules) : PACER_RULES_MAX;
}

PACER_GLOBAL int pacer_classify_usual_many(const struct pacer_policy *p, __u32 saddr, __u32 daddr,
					   __u32 ports, __u32 proto)
{
	struct pacer_packet pkt = pacer_classify_packet(saddr, daddr, ports, proto);
	struct pacer_rules set;

	if (!p)
		return PACER_RULES_MAX;
	set = p->rules;
	pacer_classify_many(p, &pkt, 0, &set);
	return pacer_rules_lowest(&set);
}

#endif
