/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: what more of a packet rules may ask for than addresses, protocol, ports and VLAN: TCP
 * flags, ICMP types, lengths, TTL, DSCP, fragments, options, the Ethernet header, and bytes of the
 * payload. Only of policies that do (PACER_DIMS_MORE).
 *
 * Each field of the packet selects a row of a table that has, as a bit each, the rules which that
 * row falls under. A value below 256 is its own row. A larger one is found among up to 1023 bounds.
 * Two rows are for packets that have no such field, and for those of which it is not known what
 * they have, as of a later fragment: they fall under every rule that asks for the field, but for
 * rules that pass all of their packets. So the work is the same for any number of rules. Of a
 * first fragment it is not known what the next ones have of the payload: only UDP says how long
 * that is.
 *
 * Frames that are not IP are looked at for rules that ask for their EtherType, and fall under no
 * others.
 *
 * As in classify.h the functions with `many` in their names are for policies of more than 64 rules.
 *
 * Concurrency: pure. Memory: 268 KiB a policy.
 */
#ifndef PACER_MORE_H
#define PACER_MORE_H

#include "abi.h"
#include "classify.h"
#include "frame.h"
#include "limit.h"
#include "parse.h"
#include "rules.h"

#define PACER_MORE_UNREAD (~0ull) /* in the place of bytes that are not in the buffer */

#define PACER_IPPROTO_ICMP   1
#define PACER_IPPROTO_UDP    17
#define PACER_IPPROTO_ICMPV6 58
#define PACER_IPPROTO_SCTP   132
#define PACER_IPPROTO_LITE   136

/* The `n` bytes at this place of the frame, 1 to 4, as a number; PACER_MORE_UNREAD. */
PACER_GLOBAL __u64 pacer_more_bytes(PACER_FRAME *frame, __u32 at, __u32 n)
{
	const __u8 *p, *end;
	__u64 value = 0;
	__u32 i;

	p = PACER_FRAME_DATA(frame);
	end = PACER_FRAME_END(frame);
	p += pacer_opaque(at) & 0x7fff;
	if (p + 4 <= end)
		return pacer_be32(p) >> (32 - 8 * (((n - 1) & 3) + 1));
	for (i = 0; i < 3; i++) {
		if (i >= n)
			return value;
		if (p + i + 1 > end)
			return PACER_MORE_UNREAD;
		value = value << 8 | p[i];
	}
	return n > 3 ? PACER_MORE_UNREAD : value;
}

/* Which of the packet's row a field with so many bounds at `value` or below selects. */
PACER_GLOBAL int pacer_more_span(const struct pacer_walk *w, __u32 which, __u64 value)
{
	const struct pacer_span *s;
	__u32 i = 0, step, k;

	if (!w)
		return PACER_MORE_UNKNOWN;
	if (value == PACER_MORE_UNREAD)
		return PACER_MORE_UNKNOWN;
	s = &PACER_POLICY_OF(w)->more.span[which < PACER_SPANS ? which : 0];
	step = s->top;
	PACER_ROLLED
	for (k = 0; k < PACER_BOUND_STEPS && step; k++, step >>= 1)
		/* 1 where the bound is not above the value */
		i +=
		    step * (__u32)((s->bound[(i + step - 1) & PACER_BOUNDS_MAX] - value - 1) >> 63);
	return pacer_span_row(i & PACER_BOUNDS_MAX);
}

/* Where the parts of an IP packet are, in bytes from the frame's start. */
struct pacer_parts {
	__u32 here;    /* the end of the packet's bytes: behind it is padding */
	__u32 payload; /* behind the transport's header; PACER_NOWHERE: not known, or not its end */
	__u32 end;     /* of the payload; PACER_NOWHERE: it goes on in other fragments */
};

#define PACER_NOWHERE (~0u)

/* Is it known what stands behind the IP headers? */
PACER_INLINE int pacer_more_has_l4(const struct pacer_packet *pkt)
{
	return pkt->fragment != PACER_FRAG_LATER && pkt->ports != PACER_PORTS_ANY;
}

PACER_INLINE __u32 pacer_more_end(PACER_FRAME *frame, const struct pacer_packet *pkt)
{
	__u64 total;

	if (pkt->family == PACER_FAMILY_4) {
		total = pacer_more_bytes(frame, pkt->l3 + 2, 2);
		return total == PACER_MORE_UNREAD ? pkt->len_bytes : pkt->l3 + (__u32)total;
	}
	/* With the next header, since only before options no length is that of a jumbogram. */
	total = pacer_more_bytes(frame, pkt->l3 + 4, 3);
	return total == PACER_MORE_UNREAD || !total ? pkt->len_bytes
						    : pkt->l3 + 40 + (__u32)(total >> 8);
}

/* Of a first fragment IP stacks keep a multiple of 8 bytes: the next one has the rest. */
PACER_INLINE __u32 pacer_more_here(PACER_FRAME *frame, const struct pacer_packet *pkt)
{
	__u32 end = pacer_more_end(frame, pkt);

	if (pkt->fragment == PACER_FRAG_FIRST && end > pkt->l4)
		end -= (end - pkt->l4) & 7;
	return end;
}

PACER_INLINE __u32 pacer_more_payload(PACER_FRAME *frame, const struct pacer_packet *pkt,
				      __u32 here)
{
	__u64 words;

	if (!pacer_more_has_l4(pkt))
		return PACER_NOWHERE;
	switch (pkt->proto) {
	case PACER_IPPROTO_TCP:
		if (pkt->fragment == PACER_FRAG_FIRST && pkt->l4 + 12u >= here)
			return PACER_NOWHERE;
		words = pacer_more_bytes(frame, pkt->l4 + 12, 1);
		if (words == PACER_MORE_UNREAD)
			return PACER_NOWHERE;
		return pkt->l4 + (words >> 4 < 5 ? 20 : 4 * ((__u32)words >> 4));
	case PACER_IPPROTO_UDP:
	case PACER_IPPROTO_LITE:
	case PACER_IPPROTO_ICMP:
	case PACER_IPPROTO_ICMPV6:
		return pkt->l4 + 8;
	case PACER_IPPROTO_SCTP:
		return pkt->l4 + 12;
	}
	return pkt->l4;
}

/* Of what is behind UDP's length no stack delivers anything. One that cannot be says nothing. */
PACER_INLINE void pacer_more_udp(PACER_FRAME *frame, __u32 l4, struct pacer_parts *parts)
{
	__u64 len = pacer_more_bytes(frame, l4 + 4, 2);

	if (len == PACER_MORE_UNREAD)
		parts->payload = PACER_NOWHERE;
	else if (len >= 8 && l4 + len < parts->end)
		parts->end = l4 + len;
}

PACER_GLOBAL int pacer_more_parts(PACER_FRAME *frame, const struct pacer_walk *w,
				  struct pacer_parts *parts)
{
	if (!w || !parts)
		return 0;
	parts->here = pacer_more_here(frame, &w->pkt);
	parts->payload = pacer_more_payload(frame, &w->pkt, parts->here);
	parts->end = w->pkt.fragment == PACER_FRAG_FIRST ? PACER_NOWHERE : parts->here;
	if (w->pkt.proto == PACER_IPPROTO_UDP && parts->payload < parts->end &&
	    parts->payload <= parts->here)
		pacer_more_udp(frame, w->pkt.l4, parts);
	return 0;
}

/* The row of byte `at` of the header behind those of IP, of packets of this protocol. */
PACER_GLOBAL int pacer_more_l4(PACER_FRAME *frame, const struct pacer_walk *w, __u32 family,
			       __u32 proto, __u32 at)
{
	__u64 byte;

	if (!w)
		return PACER_MORE_UNKNOWN;
	if (w->pkt.family == PACER_FAMILY_NONE || (family && w->pkt.family != family))
		return PACER_MORE_ABSENT;
	if (w->pkt.ports == PACER_PORTS_ANY)
		return PACER_MORE_UNKNOWN;
	if (w->pkt.proto != proto)
		return PACER_MORE_ABSENT;
	if (!pacer_more_has_l4(&w->pkt) || w->pkt.l4 + at >= pacer_more_here(frame, &w->pkt))
		return PACER_MORE_UNKNOWN;
	byte = pacer_more_bytes(frame, w->pkt.l4 + at, 1);
	return byte == PACER_MORE_UNREAD ? PACER_MORE_UNKNOWN : (__u32)byte;
}

PACER_INLINE __u32 pacer_more_ttl(PACER_FRAME *frame, const struct pacer_packet *pkt)
{
	__u64 byte;

	if (pkt->family == PACER_FAMILY_NONE)
		return PACER_MORE_ABSENT;
	byte = pacer_more_bytes(frame, pkt->l3 + (pkt->family == PACER_FAMILY_4 ? 8 : 7), 1);
	return byte == PACER_MORE_UNREAD ? PACER_MORE_UNKNOWN : (__u32)byte;
}

/* The upper six bits of IPv4's second byte, and of the traffic class that IPv6 has 4 bits on. */
PACER_INLINE __u32 pacer_more_dscp(PACER_FRAME *frame, const struct pacer_packet *pkt)
{
	__u64 two;

	if (pkt->family == PACER_FAMILY_NONE)
		return PACER_MORE_ABSENT;
	two = pacer_more_bytes(frame, pkt->l3, 2);
	if (two == PACER_MORE_UNREAD)
		return PACER_MORE_UNKNOWN;
	return (__u32)two >> (pkt->family == PACER_FAMILY_4 ? 2 : 6) & 0x3f;
}

/*
 * Which fragment it is, and whether it has options. Beyond many headers nobody knows, and of a
 * first fragment that ends before them only what it has.
 */
PACER_INLINE __u32 pacer_more_shape(const struct pacer_packet *pkt)
{
	if (pkt->family == PACER_FAMILY_NONE)
		return PACER_MORE_ABSENT;
	if (pkt->ports == PACER_PORTS_ANY && (pkt->fragment == PACER_FRAG_NONE ||
					      (pkt->fragment == PACER_FRAG_FIRST && !pkt->options)))
		return PACER_MORE_UNKNOWN;
	return pkt->fragment | pkt->options << PACER_SHAPE_OPTIONS;
}

/* The rules of a row of a field. */
PACER_INLINE const struct pacer_rules *pacer_more_at(const struct pacer_walk *w, __u32 id,
						     __u32 row)
{
	const struct pacer_more *more = &PACER_POLICY_OF(w)->more;

	row = pacer_opaque(row);
	if (id < PACER_MORE_LEN)
		return &more->byte_rules[id][row < PACER_BYTE_ROWS ? row : PACER_MORE_UNKNOWN];
	return &more->span_rules[id - PACER_MORE_LEN]
				[row < PACER_SPAN_ROWS ? row : PACER_MORE_UNKNOWN];
}

/* --- of the headers ------------------------------------------------------------------------- */

/* Of a device that has Ethernet headers, the address at this place of it. */
PACER_INLINE __u32 pacer_more_mac(PACER_FRAME *frame, const struct pacer_walk *w, __u32 which,
				  __u32 at)
{
	__u64 high, low;

	if (!w->pkt.l3)
		return PACER_MORE_ABSENT;
	high = pacer_more_bytes(frame, at, 2);
	low = pacer_more_bytes(frame, at + 2, 4);
	if (high == PACER_MORE_UNREAD || low == PACER_MORE_UNREAD)
		return PACER_MORE_UNKNOWN;
	return pacer_more_span(w, which, high << 32 | low);
}

PACER_INLINE __u64 pacer_more_ether_type(PACER_FRAME *frame, const struct pacer_packet *pkt)
{
	if (pkt->family != PACER_FAMILY_NONE)
		return pkt->family == PACER_FAMILY_4 ? PACER_ETH_IP4 : PACER_ETH_IP6;
	return pkt->l3 ? pacer_more_bytes(frame, pkt->l3 - 2u, 2) : 0;
}

/* The row of the payload's length. */
PACER_INLINE __u32 pacer_more_long(const struct pacer_walk *w, const struct pacer_parts *parts)
{
	if (parts->payload == PACER_NOWHERE || parts->end == PACER_NOWHERE)
		return PACER_MORE_UNKNOWN;
	return pacer_more_span(w, PACER_SPAN_PAYLOAD_LEN,
			       parts->end > parts->payload ? parts->end - parts->payload : 0);
}

PACER_INLINE __u32 pacer_more_payload_len(PACER_FRAME *frame, const struct pacer_walk *w)
{
	struct pacer_parts parts = {0, PACER_NOWHERE, 0};

	if (w->pkt.family == PACER_FAMILY_NONE)
		return PACER_MORE_ABSENT;
	pacer_more_parts(frame, w, &parts);
	return pacer_more_long(w, &parts);
}

/* The packet's row of field `id`, an enum pacer_more_id. */
PACER_INLINE __u32 pacer_more_row(PACER_FRAME *frame, const struct pacer_walk *w, __u32 id)
{
	switch ((enum pacer_more_id)id) {
	case PACER_MORE_FLAGS:
		return pacer_more_l4(frame, w, 0, PACER_IPPROTO_TCP, 13);
	case PACER_MORE_ICMP_TYPE:
		return pacer_more_l4(frame, w, PACER_FAMILY_4, PACER_IPPROTO_ICMP, 0);
	case PACER_MORE_ICMP_CODE:
		return pacer_more_l4(frame, w, PACER_FAMILY_4, PACER_IPPROTO_ICMP, 1);
	case PACER_MORE_ICMPV6_TYPE:
		return pacer_more_l4(frame, w, PACER_FAMILY_6, PACER_IPPROTO_ICMPV6, 0);
	case PACER_MORE_ICMPV6_CODE:
		return pacer_more_l4(frame, w, PACER_FAMILY_6, PACER_IPPROTO_ICMPV6, 1);
	case PACER_MORE_TTL:
		return pacer_more_ttl(frame, &w->pkt);
	case PACER_MORE_DSCP:
		return pacer_more_dscp(frame, &w->pkt);
	case PACER_MORE_SHAPE:
		return pacer_more_shape(&w->pkt);
	case PACER_MORE_LEN:
		return pacer_more_span(w, PACER_SPAN_LEN, w->pkt.len_bytes);
	case PACER_MORE_PAYLOAD_LEN:
		return pacer_more_payload_len(frame, w);
	case PACER_MORE_ETHER_TYPE:
		return pacer_more_span(w, PACER_SPAN_ETHER_TYPE,
				       pacer_more_ether_type(frame, &w->pkt));
	case PACER_MORE_ETHER_SRC:
		return pacer_more_mac(frame, w, PACER_SPAN_ETHER_SRC, 6);
	case PACER_MORE_ETHER_DST:
		return pacer_more_mac(frame, w, PACER_SPAN_ETHER_DST, 0);
	case PACER_MORE_COUNT:
		break;
	}
	return PACER_MORE_UNKNOWN;
}

/* The rules that the packet falls under by a field that rules ask for. */
PACER_INLINE __u64 pacer_more_by(PACER_FRAME *frame, const struct pacer_walk *w, __u32 id)
{
	return pacer_more_at(w, id, pacer_more_row(frame, w, id))->word[0];
}

/* The rules that the packet's IP header, and the one behind, fall under. */
PACER_GLOBAL __u64 pacer_more_headers(PACER_FRAME *frame, const struct pacer_walk *w)
{
	__u64 set = ~0ull;
	__u32 used;

	if (!w)
		return 0;
	used = PACER_POLICY_OF(w)->more.used;
	if (used & 1u << PACER_MORE_FLAGS)
		set &= pacer_more_by(frame, w, PACER_MORE_FLAGS);
	if (used & 1u << PACER_MORE_ICMP_TYPE)
		set &= pacer_more_by(frame, w, PACER_MORE_ICMP_TYPE);
	if (used & 1u << PACER_MORE_ICMP_CODE)
		set &= pacer_more_by(frame, w, PACER_MORE_ICMP_CODE);
	if (used & 1u << PACER_MORE_ICMPV6_TYPE)
		set &= pacer_more_by(frame, w, PACER_MORE_ICMPV6_TYPE);
	if (used & 1u << PACER_MORE_ICMPV6_CODE)
		set &= pacer_more_by(frame, w, PACER_MORE_ICMPV6_CODE);
	if (used & 1u << PACER_MORE_TTL)
		set &= pacer_more_by(frame, w, PACER_MORE_TTL);
	if (used & 1u << PACER_MORE_DSCP)
		set &= pacer_more_by(frame, w, PACER_MORE_DSCP);
	if (used & 1u << PACER_MORE_SHAPE)
		set &= pacer_more_by(frame, w, PACER_MORE_SHAPE);
	return set;
}

/* The rules that the frame's length and its Ethernet header fall under. */
PACER_GLOBAL __u64 pacer_more_frame(PACER_FRAME *frame, const struct pacer_walk *w)
{
	__u64 set = ~0ull;
	__u32 used;

	if (!w)
		return 0;
	used = PACER_POLICY_OF(w)->more.used;
	if (used & 1u << PACER_MORE_LEN)
		set &= pacer_more_by(frame, w, PACER_MORE_LEN);
	if (used & 1u << PACER_MORE_ETHER_TYPE)
		set &= pacer_more_by(frame, w, PACER_MORE_ETHER_TYPE);
	if (used & 1u << PACER_MORE_ETHER_SRC)
		set &= pacer_more_by(frame, w, PACER_MORE_ETHER_SRC);
	if (used & 1u << PACER_MORE_ETHER_DST)
		set &= pacer_more_by(frame, w, PACER_MORE_ETHER_DST);
	return set;
}

/* --- of the payload ------------------------------------------------------------------------- */

enum pacer_probed { PACER_PROBE_NOT, PACER_PROBE_IS, PACER_PROBE_UNKNOWN };

/* Has the payload the bytes of probe i? An enum pacer_probed. */
PACER_GLOBAL int pacer_more_probe(PACER_FRAME *frame, const struct pacer_walk *w, __u32 i,
				  const struct pacer_parts *parts)
{
	const struct pacer_probe *probe;
	__u64 value;
	__u32 at;

	if (!w || !parts || i >= PACER_PROBES_MAX)
		return PACER_PROBE_NOT;
	probe = &PACER_POLICY_OF(w)->more.probe[i];
	if (parts->payload == PACER_NOWHERE)
		return PACER_PROBE_UNKNOWN;
	at = parts->payload + probe->at;
	if (at + probe->n > parts->end)
		return PACER_PROBE_NOT;
	if (at + probe->n > parts->here)
		return PACER_PROBE_UNKNOWN;
	value = pacer_more_bytes(frame, at, probe->n);
	if (value == PACER_MORE_UNREAD)
		return PACER_PROBE_UNKNOWN;
	return ((__u32)value & probe->mask) == probe->value ? PACER_PROBE_IS : PACER_PROBE_NOT;
}

/* The rules of a word that a packet with such an answer falls under. */
PACER_INLINE __u64 pacer_more_probed(const struct pacer_more *more, __u32 i, __u32 word, int said)
{
	__u64 rules = more->probe[i & (PACER_PROBES_MAX - 1)].rules.word[word];

	if (said == PACER_PROBE_NOT)
		return 0;
	return said == PACER_PROBE_UNKNOWN ? rules & ~more->passing.word[word] : rules;
}

/* The rules that the payload's length and bytes fall under. */
PACER_GLOBAL __u64 pacer_more_in_payload(PACER_FRAME *frame, const struct pacer_walk *w)
{
	const struct pacer_more *more;
	struct pacer_parts parts = {0, PACER_NOWHERE, 0};
	__u64 set = ~0ull, hit = 0;
	__u32 i;

	if (!w)
		return 0;
	more = &PACER_POLICY_OF(w)->more;
	if (w->pkt.family == PACER_FAMILY_NONE)
		return ~more->of_payload.word[0];
	pacer_more_parts(frame, w, &parts);
	if (more->used & 1u << PACER_MORE_PAYLOAD_LEN)
		set &=
		    pacer_more_at(w, PACER_MORE_PAYLOAD_LEN, pacer_more_long(w, &parts))->word[0];
	if (!more->probed.word[0])
		return set;
	PACER_ROLLED
	for (i = 0; i < PACER_PROBES_MAX && i < more->probes; i++)
		hit |= pacer_more_probed(more, i, 0, pacer_more_probe(frame, w, i, &parts));
	return set & (hit | ~more->probed.word[0]);
}

/* The rules that the packet falls under by what it has, whatever the frame around it. */
PACER_GLOBAL __u64 pacer_more_packet(PACER_FRAME *frame, const struct pacer_walk *w)
{
	const struct pacer_policy *policy;
	__u64 set = ~0ull;

	if (!w)
		return 0;
	policy = PACER_POLICY_OF(w);
	if (policy->more.used & PACER_MORE_OF_HEADERS)
		set &= pacer_more_headers(frame, w);
	if (policy->more.of_payload.word[0])
		set &= pacer_more_in_payload(frame, w);
	return set;
}

/* --- all together --------------------------------------------------------------------------- */

/*
 * The rules that the packet may fall under by what is here; all others it does not.
 * Of a frame that is not IP, those that it falls under. w->pkt was parsed of the frame, of which
 * there may be nothing left to read: then it falls under what it may fall under.
 */
PACER_GLOBAL __u64 pacer_more_rules(PACER_FRAME *frame, const struct pacer_walk *w)
{
	const struct pacer_policy *policy;
	__u64 set;

	if (!w)
		return 0;
	policy = PACER_POLICY_OF(w);
	set = policy->rules.word[0];
	if (w->pkt.family == PACER_FAMILY_NONE) {
		set &= policy->more.frames.word[0];
		if (policy->dims & 1u << PACER_DIM_VLAN)
			set &= pacer_dim_rules(&policy->dim[PACER_DIM_VLAN], w->pkt.vlan,
					       PACER_BUCKET_VLAN)
				   ->word[0];
	}
	if (policy->more.used & PACER_MORE_OF_FRAME)
		set &= pacer_more_frame(frame, w);
	return set & pacer_more_packet(frame, w);
}

/* --- of many rules --------------------------------------------------------------------------- */

/* pacer_more_row, where the field is no constant. */
PACER_GLOBAL int pacer_more_row_of(PACER_FRAME *frame, const struct pacer_walk *w, __u32 id)
{
	return w ? pacer_more_row(frame, w, id) : PACER_MORE_UNKNOWN;
}

/* Takes out of the set the rules whose bytes the payload does not have. */
PACER_GLOBAL int pacer_more_probes_many(PACER_FRAME *frame, const struct pacer_walk *w,
					struct pacer_rules *set)
{
	struct pacer_parts parts = {0, PACER_NOWHERE, 0};
	struct pacer_rules hit = {{0}};
	const struct pacer_more *more;
	__u32 i, k;
	int said;

	if (!w || !set)
		return 0;
	more = &PACER_POLICY_OF(w)->more;
	if (w->pkt.family != PACER_FAMILY_NONE) {
		pacer_more_parts(frame, w, &parts);
		PACER_ROLLED
		for (i = 0; i < PACER_PROBES_MAX && i < more->probes; i++) {
			said = pacer_more_probe(frame, w, i, &parts);
			for (k = 0; k < PACER_RULE_WORDS; k++)
				hit.word[k] |= pacer_more_probed(more, i, k, said);
		}
	}
	for (k = 0; k < PACER_RULE_WORDS; k++)
		set->word[k] &= hit.word[k] | ~more->probed.word[k];
	return 0;
}

/*
 * Takes out of the set the rules that the packet does not fall under by these fields: bits of
 * pacer_more.used.
 */
PACER_GLOBAL int pacer_more_many(PACER_FRAME *frame, const struct pacer_walk *w, __u32 fields,
				 struct pacer_rules *set)
{
	__u32 id;

	if (!w || !set)
		return 0;
	fields &= PACER_POLICY_OF(w)->more.used;
	PACER_ROLLED
	for (id = 0; id < PACER_MORE_COUNT && (fields & PACER_MORE_FIELDS) >> id; id++)
		if (fields >> id & 1)
			pacer_rules_keep(set,
					 pacer_more_at(w, id, pacer_more_row_of(frame, w, id)));
	if (fields & PACER_MORE_PROBED)
		pacer_more_probes_many(frame, w, set);
	return 0;
}

/*
 * The set is that of the rules that the packet may fall under, as pacer_more_rules: but for those
 * for what is in tunnels.
 */
PACER_INLINE void pacer_more_rules_many(PACER_FRAME *frame, const struct pacer_walk *w,
					struct pacer_rules *set)
{
	const struct pacer_policy *policy = PACER_POLICY_OF(w);

	*set = policy->rules;
	pacer_rules_drop(set, &policy->more.inner);
	if (w->pkt.family == PACER_FAMILY_NONE) {
		pacer_rules_keep(set, &policy->more.frames);
		if (policy->dims & 1u << PACER_DIM_VLAN)
			pacer_rules_keep(set, pacer_dim_rules(&policy->dim[PACER_DIM_VLAN],
							      w->pkt.vlan, PACER_BUCKET_VLAN));
	}
	pacer_more_many(frame, w, ~0u, set);
}

#endif
