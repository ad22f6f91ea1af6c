/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the first rule that a packet matches, at a cost that does not grow
 * with the rules.
 *
 * Source: bit vectors (Lakshman and Stiliadis): a field's values are cut into
 * the intervals in which the set of matching rules is the same; each interval
 * has that set as 64 bits; the sets of all fields are ANDed and the lowest bit
 * left is the first rule. An interval is found by a binary search without
 * branches, at most 8 steps for 255 bounds; that of a port stands in a table.
 *
 * A later fragment's ports are unknown, so the rules' ports do not exclude it:
 * fragments cannot slip by a rule on ports.
 *
 * Concurrency: pure. Memory: 3 KiB a field, 6 KiB an IPv6 address, 128 KiB for
 * the ports.
 */
#ifndef PACER_CLASSIFY_H
#define PACER_CLASSIFY_H

#include "abi.h"
#include "parse.h"

PACER_INLINE __u64 pacer_dim_match(const struct pacer_dim *d, __u32 value)
{
	__u32 i = 0, step = d->top;
	int k;

	for (k = 0; k < 8 && step; k++, step >>= 1) {
		__u32 at = (i + step - 1) & PACER_BOUNDS_MAX;

		/* 1 where bound <= value */
		i += step * (__u32)((((__u64)d->bound[at] - value - 1) >> 63) & 1);
	}
	return d->mask[i & PACER_BOUNDS_MAX];
}

/* Fill p->port_at from the bounds of the ports. For the loader, once the bounds are there. */
PACER_INLINE void pacer_classify_index(struct pacer_policy *p)
{
	const struct pacer_dim *d = &p->dim[PACER_DIM_SPORT];
	__u32 which, port, at;

	for (which = 0; which < 2; which++, d++) {
		if (!(p->dims & 1u << (PACER_DIM_SPORT + which)))
			continue;
		for (port = at = 0; port < 65536; port++) {
			while (at < PACER_BOUNDS_MAX && d->bound[at] <= port)
				at++;
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

/* Index of the lowest bit of a set that is not empty: binary descent, no instruction needed. */
PACER_INLINE __u32 pacer_lowest(__u64 set)
{
	__u64 bit = set & -set;

	return (!!(bit & 0xffffffff00000000ull) << 5) | (!!(bit & 0xffff0000ffff0000ull) << 4) |
	       (!!(bit & 0xff00ff00ff00ff00ull) << 3) | (!!(bit & 0xf0f0f0f0f0f0f0f0ull) << 2) |
	       (!!(bit & 0xccccccccccccccccull) << 1) | !!(bit & 0xaaaaaaaaaaaaaaaaull);
}

PACER_INLINE __u64 pacer_classify_ports(const struct pacer_policy *p,
					const struct pacer_packet *pkt)
{
	__u32 ports = pkt->key[PACER_WORD_PORTS];
	__u64 set = ~0ull;

	if (pkt->fragment == PACER_FRAG_LATER)
		return set;
	if (p->dims & 1u << PACER_DIM_SPORT)
		set &= p->dim[PACER_DIM_SPORT].mask[p->port_at[0][ports >> 16]];
	if (p->dims & 1u << PACER_DIM_DPORT)
		set &= p->dim[PACER_DIM_DPORT].mask[p->port_at[1][ports & 0xffff]];
	return set;
}

PACER_INLINE __u64 pacer_classify_addresses(const struct pacer_policy *p,
					    const struct pacer_packet *pkt)
{
	const __u32 *saddr = &pkt->key[PACER_WORD_SADDR], *daddr = &pkt->key[PACER_WORD_DADDR];
	__u64 set = ~0ull;

	if (pkt->family == PACER_FAMILY_4) {
		if (p->dims & 1u << PACER_DIM_SADDR4)
			set &= pacer_dim_match(&p->dim[PACER_DIM_SADDR4], *saddr);
		if (p->dims & 1u << PACER_DIM_DADDR4)
			set &= pacer_dim_match(&p->dim[PACER_DIM_DADDR4], *daddr);
	} else {
		if (p->dims & 1u << PACER_DIM_SADDR6)
			set &= pacer_dim6_match(&p->dim6[0], saddr);
		if (p->dims & 1u << PACER_DIM_DADDR6)
			set &= pacer_dim6_match(&p->dim6[1], daddr);
	}
	return set;
}

/* The rules that the parsed packet matches, one bit each; the lowest is the rule that counts. */
PACER_INLINE __u64 pacer_classify(const struct pacer_policy *p, const struct pacer_packet *pkt)
{
	__u64 set = p->rules;

	if (!p->dims)
		return set;
	set &= pacer_classify_addresses(p, pkt);
	set &= pacer_classify_ports(p, pkt);
	if (p->dims & 1u << PACER_DIM_PROTO)
		set &= pacer_dim_match(&p->dim[PACER_DIM_PROTO], pkt->proto);
	if (p->dims & 1u << PACER_DIM_VLAN)
		set &= pacer_dim_match(&p->dim[PACER_DIM_VLAN], pkt->vlan);
	return set;
}

#endif
