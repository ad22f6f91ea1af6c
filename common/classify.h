/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the first rule that a packet matches, at a cost that does not grow
 * with the rules.
 *
 * Source: bit vectors (Lakshman and Stiliadis): a field's values are cut into
 * the intervals in which the set of matching rules is the same; each interval
 * has that set as 64 bits; the sets of all fields are ANDed and the lowest bit
 * left is the first rule. An interval is found by a binary search without
 * branches among the bounds that share the value's highest bits: at most 8
 * steps for 255 bounds, and mostly none. For ports there is a table.
 *
 * If a packet's ports are unknown, as in a later fragment, it matches whatever
 * ports a rule has. The same holds for an unknown protocol. So nothing slips
 * past a rule that way. A rule that passes its packets by no limit is the
 * exception: what is not known does not fall under it. A protocol without ports
 * matches no rule that asks for ports.
 *
 * Concurrency: pure. Memory: 3.5 KiB for each field, 6 KiB for each IPv6
 * address, 128 KiB for the ports.
 */
#ifndef PACER_CLASSIFY_H
#define PACER_CLASSIFY_H

#include "abi.h"
#include "parse.h"

/* The bucket of a value is the value without this many of its lowest bits. */
#define PACER_BUCKET_ADDR4 24
#define PACER_BUCKET_PROTO 0
#define PACER_BUCKET_VLAN  5

_Static_assert(PACER_BOUNDS_MAX == 255, "8 steps for 255 bounds");
_Static_assert(sizeof(struct pacer_dim) == 3584, "3.5 KiB a field");
_Static_assert(sizeof(struct pacer_dim6) == 6144 + 8, "6 KiB an IPv6 address");
_Static_assert(sizeof(((struct pacer_policy *)0)->port_at) == 128 << 10, "128 KiB for the ports");

/* The rules that match `value`; `shift` is the field's. */
PACER_INLINE __u64 pacer_dim_match(const struct pacer_dim *d, __u32 value, __u32 shift)
{
	__u32 bucket = pacer_opaque(value >> shift) & (PACER_BUCKETS - 1);
	__u32 i = d->first[bucket], more = d->more[bucket];
	int k;

	/* Finds the interval, from i to i + more. */
	PACER_ROLLED
	for (k = 0; k < 8 && more; k++, more >>= 1) {
		__u32 half = (more + 1) >> 1, at = (i + half - 1) & PACER_BOUNDS_MAX;

		/* 1 where bound <= value */
		i += half * (__u32)((((__u64)d->bound[at] - value - 1) >> 63) & 1);
	}
	return d->mask[i & PACER_BOUNDS_MAX];
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

PACER_INLINE __u64 pacer_dim6_match(const struct pacer_dim6 *d, const __u32 addr[4])
{
	__u64 hi = (__u64)addr[0] << 32 | addr[1], lo = (__u64)addr[2] << 32 | addr[3];
	__u32 i = 0, step = d->top;
	int k;

	for (k = 0; k < 8 && step; k++, step >>= 1) {
		__u32 at = (i + step - 1) & PACER_BOUNDS_MAX;

		if (d->hi[at] < hi || (d->hi[at] == hi && d->lo[at] <= lo))
			i += step;
	}
	return d->mask[i & PACER_BOUNDS_MAX];
}

/*
 * Index of the lowest bit of a set that is not empty. It uses branches: they are predicted as for
 * the packet before, so nothing waits for a sum. The opaque values keep compilers from removing the
 * branches.
 */
PACER_INLINE __u32 pacer_lowest(__u64 set)
{
	__u32 i = 0, width;

	for (width = 32; width; width /= 2)
		if (!(set & ((1ull << width) - 1))) {
			set >>= width;
			i = pacer_opaque(i + width);
		}
	return i;
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
			src =
			    pacer_dim_match(&p->dim[PACER_DIM_SADDR4], *saddr, PACER_BUCKET_ADDR4);
		if (dims & 1u << PACER_DIM_DADDR4)
			dst =
			    pacer_dim_match(&p->dim[PACER_DIM_DADDR4], *daddr, PACER_BUCKET_ADDR4);
	} else {
		if (dims & 1u << PACER_DIM_SADDR6)
			src = pacer_dim6_match(&p->dim6[0], saddr);
		if (dims & 1u << PACER_DIM_DADDR6)
			dst = pacer_dim6_match(&p->dim6[1], daddr);
	}
	return (src | by_sets->src_in) & ~by_sets->src_not & (dst | by_sets->dst_in) &
	       ~by_sets->dst_not;
}

/* The rules that the parsed packet matches, one bit each; the lowest is the rule that counts. */
PACER_INLINE __u64 pacer_classify_with(const struct pacer_policy *p, const struct pacer_packet *pkt,
				       const struct pacer_set_use *by_sets)
{
	__u32 ports = pkt->key[PACER_WORD_PORTS], dims = pacer_classify_dims(p, pkt->ports);
	__u64 set = p->rules;

	if (!p->dims)
		return set;
	set &= ~p->ruled_out[pkt->ports & 3];
	set &= pacer_classify_addresses(p, pkt, dims, by_sets);
	if (dims & 1u << PACER_DIM_SPORT)
		set &= p->dim[PACER_DIM_SPORT].mask[p->port_at[0][ports >> 16]];
	if (dims & 1u << PACER_DIM_DPORT)
		set &= p->dim[PACER_DIM_DPORT].mask[p->port_at[1][ports & 0xffff]];
	if (dims & 1u << PACER_DIM_PROTO)
		set &= pacer_dim_match(&p->dim[PACER_DIM_PROTO], pkt->proto, PACER_BUCKET_PROTO);
	if (dims & 1u << PACER_DIM_VLAN)
		set &= pacer_dim_match(&p->dim[PACER_DIM_VLAN], pkt->vlan, PACER_BUCKET_VLAN);
	return set;
}

/* The same of a policy without sets. */
PACER_INLINE __u64 pacer_classify(const struct pacer_policy *p, const struct pacer_packet *pkt)
{
	struct pacer_set_use none = {0, 0, 0, 0};

	return pacer_classify_with(p, pkt, &none);
}

/*
 * The first rule that a packet matches of which this is known (struct pacer_usual);
 * PACER_RULES_MAX: none. Of a policy without sets and more. proto: beside it, from bit 8, what is
 * known of its ports.
 */
PACER_GLOBAL int pacer_classify_usual(const struct pacer_policy *p, __u32 saddr, __u32 daddr,
				      __u32 ports, __u32 proto)
{
	struct pacer_packet pkt = {
	    .key = {[PACER_WORD_SADDR] = saddr,
		    [PACER_WORD_DADDR] = daddr,
		    [PACER_WORD_PORTS] = ports},
	    .vlan = PACER_VLAN_NONE,
	    .family = PACER_FAMILY_4,
	    .proto = proto,
	    .ports = proto >> 8,
	};
	__u64 rules = p ? pacer_classify(p, &pkt) : 0;

	return rules ? pacer_lowest(rules) : PACER_RULES_MAX;
}

#endif
