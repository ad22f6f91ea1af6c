/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the packet in a frame's tunnel, one level deep, for rules with `inner: yes`.
 *
 * Read: GRE of version 0, with checksum, key, sequence number and routing, and WCCP in it; IPv4 and
 * IPv6 in either of them; VXLAN (UDP ports 4789 and 8472), GENEVE (6081) and GTP-U (2152); PPPoE
 * sessions. What these carry may begin with an Ethernet header, VLAN tags or both. The inner IP
 * packet is read as that of any frame (parse.h): w->pkt is the inner packet then, but for what is
 * of the frame, which are its length and its VLAN.
 *
 * There is no inner packet where the frame has no tunnel, where a tunnel's header or length, or the
 * inner IP header, contradicts itself, so that no stack takes it, and where it carries what is not
 * IP. A later fragment has none, and a first one that of its bytes.
 *
 * If a stack might find an inner packet where this does not look, it is reported as too deep: with
 * more than PACER_TUNNEL_PARTS extension headers of GTP-U or routes of GRE, PACER_PARSE_TAGS tags,
 * beyond PACER_INNER_DEEPEST bytes, PACER_INNER_LAST or the buffer; behind more outer headers than
 * are read; and in a first fragment that ends before the inner packet's addresses, has padding
 * behind it, or is no multiple of 8 bytes long, of which stacks take the last ones from the next.
 *
 * Source: RFC 2784, 2890 and 1701 (GRE), 2003 and 4213 (IP in IP), 7348 (VXLAN), 8926 (GENEVE),
 * 2516 (PPPoE); 3GPP TS 29.281 (GTP-U). Where Linux takes more than they say, so does this.
 *
 * Concurrency: pure. Memory: none.
 */
#ifndef PACER_INNER_H
#define PACER_INNER_H

#include "abi.h"
#include "frame.h"
#include "limit.h"
#include "more.h"
#include "parse.h"

#define PACER_INNER_DEEPEST 0x4000u  /* bytes before the inner IP header */
#define PACER_INNER_LAST    0x7000u  /* ... before what follows it: behind, 32 KiB are in reach */
#define PACER_TUNNEL_PARTS  8u	     /* of a header, that are followed */
#define PACER_TUNNEL_OPEN   0x1ffffu /* in the place of an end: of a first fragment */

#define PACER_IPPROTO_IPIP 4
#define PACER_IPPROTO_IPV6 41
#define PACER_IPPROTO_GRE  47

#define PACER_PORT_GTPU	  2152
#define PACER_PORT_VXLAN  4789
#define PACER_PORT_VXLAN0 8472 /* Linux's, unless told otherwise */
#define PACER_PORT_GENEVE 6081

#define PACER_ETH_WCCP	 0x883e
#define PACER_ETH_FRAME	 0x6558 /* an Ethernet header follows */
#define PACER_ETH_PPPOE	 0x8864
#define PACER_ETH_ANY_IP 0x10000 /* no type: IPv4 or IPv6, as its first byte says */

/* Where the tunnel's next header begins, as far as it was read. */
struct pacer_tunnel {
	__u32 at;   /* bytes from the frame's start */
	__u32 end;  /* of what it carries: behind it is padding */
	__u32 type; /* of what comes next: an Ethernet type, or PACER_ETH_ANY_IP */
	__u32 said; /* enum pacer_parse_result: PACER_PARSED as long as nothing is wrong */
};

/* The first thing that is wrong counts. */
PACER_INLINE void pacer_tunnel_say(struct pacer_tunnel *t, enum pacer_parse_result said)
{
	if (t->said == PACER_PARSED)
		t->said = said;
}

/* `n` bytes, 1 to 4, that are `at` bytes from where it is. 0, and that is said, if there are none.
 */
PACER_GLOBAL __u32 pacer_tunnel_read(PACER_FRAME *frame, struct pacer_tunnel *t, __u32 at, __u32 n)
{
	__u64 value = PACER_MORE_UNREAD;

	if (!t)
		return 0;
	at += t->at;
	if (at + n > t->end)
		pacer_tunnel_say(t, PACER_PARSE_NOT_IP);
	if (t->said != PACER_PARSED)
		return 0;
	if (at < PACER_INNER_DEEPEST)
		value = pacer_more_bytes(frame, at, n);
	if (value == PACER_MORE_UNREAD) {
		pacer_tunnel_say(t, PACER_PARSE_TOO_DEEP);
		return 0;
	}
	return value;
}

/* A header says that `len` bytes from where it is are all. */
PACER_INLINE void pacer_tunnel_ends(struct pacer_tunnel *t, __u32 len)
{
	if (t->end == PACER_TUNNEL_OPEN)
		return;
	if (t->at + len > t->end)
		pacer_tunnel_say(t, PACER_PARSE_NOT_IP);
	t->end = t->at + len;
}

/* The source routes behind a header of GRE: the last is empty. */
PACER_INLINE void pacer_tunnel_routes(PACER_FRAME *frame, struct pacer_tunnel *t)
{
	__u32 i, route = 1;

	PACER_ROLLED
	for (i = 0; i < PACER_TUNNEL_PARTS && route; i++) {
		route = pacer_tunnel_read(frame, t, 0, 4) & 0xffff00ff;
		t->at += 4 + (route & 0xff);
	}
	if (route)
		pacer_tunnel_say(t, PACER_PARSE_TOO_DEEP);
}

/* t->type says what WCCP carries: to Linux, what is around it. */
PACER_GLOBAL int pacer_tunnel_gre(PACER_FRAME *frame, struct pacer_tunnel *t)
{
	__u32 head, flags;

	if (!t)
		return 0;
	head = pacer_tunnel_read(frame, t, 0, 4);
	flags = head >> 16;
	if (flags & 7) /* its version */
		pacer_tunnel_say(t, PACER_PARSE_NOT_IP);
	t->at += 4 + (flags & 0xc000 ? 4 : 0) + (flags >> 11 & 4) + (flags >> 10 & 4);
	if (flags & 0x4000)
		pacer_tunnel_routes(frame, t);
	if (head != PACER_ETH_WCCP) /* without flags */
		t->type = head & 0xffff;
	else if (pacer_tunnel_read(frame, t, 0, 1) >> 4 != 4)
		t->at += 4;
	return 0;
}

PACER_GLOBAL int pacer_tunnel_geneve(PACER_FRAME *frame, struct pacer_tunnel *t)
{
	__u32 head;

	if (!t)
		return 0;
	head = pacer_tunnel_read(frame, t, 0, 4);
	if (head >> 30) /* its version */
		pacer_tunnel_say(t, PACER_PARSE_NOT_IP);
	t->type = head & 0xffff;
	t->at += 8 + 4 * (head >> 24 & 0x3f);
	return 0;
}

/*
 * Linux looks neither at the length, so that UDP's is the packet's end, nor at the bit that tells
 * GTP' apart. An extension follows where the next type says so, or, to some kernels, by the flag.
 */
PACER_GLOBAL int pacer_tunnel_gtpu(PACER_FRAME *frame, struct pacer_tunnel *t)
{
	__u32 head, i, len, next = 0;

	if (!t)
		return 0;
	head = pacer_tunnel_read(frame, t, 0, 4);
	if (head >> 29 != 1 || (head >> 16 & 0xff) != 255) /* version 1, a user's packet */
		pacer_tunnel_say(t, PACER_PARSE_NOT_IP);
	t->type = PACER_ETH_ANY_IP;
	t->at += 8;
	if (!(head >> 24 & 7))
		return 0;
	if (head >> 24 & 4) {
		next = pacer_tunnel_read(frame, t, 3, 1);
		if (!next)
			pacer_tunnel_say(t, PACER_PARSE_TOO_DEEP);
	}
	t->at += 4;
	PACER_ROLLED
	for (i = 0; i < PACER_TUNNEL_PARTS && next; i++) {
		len = 4 * pacer_tunnel_read(frame, t, 0, 1);
		if (!len)
			pacer_tunnel_say(t, PACER_PARSE_NOT_IP);
		next = pacer_tunnel_read(frame, t, len - 1, 1);
		t->at += len;
	}
	if (next)
		pacer_tunnel_say(t, PACER_PARSE_TOO_DEEP);
	return 0;
}

/* Linux looks neither at the version nor at the code, and takes a protocol of one byte, too. */
PACER_GLOBAL int pacer_tunnel_pppoe(PACER_FRAME *frame, struct pacer_tunnel *t)
{
	__u32 proto, len;

	if (!t)
		return 0;
	len = pacer_tunnel_read(frame, t, 4, 2);
	t->at += 6;
	pacer_tunnel_ends(t, len);
	proto = pacer_tunnel_read(frame, t, 0, 1);
	t->at += 1;
	if (!(proto & 1)) {
		proto = proto << 8 | pacer_tunnel_read(frame, t, 0, 1);
		t->at += 1;
	}
	if (proto == 0x21)
		t->type = PACER_ETH_IP4;
	else if (proto == 0x57)
		t->type = PACER_ETH_IP6;
	else
		pacer_tunnel_say(t, PACER_PARSE_NOT_IP);
	return 0;
}

PACER_INLINE void pacer_tunnel_vxlan(PACER_FRAME *frame, struct pacer_tunnel *t)
{
	if (!(pacer_tunnel_read(frame, t, 0, 1) & 8)) /* it has a network's number */
		pacer_tunnel_say(t, PACER_PARSE_NOT_IP);
	t->at += 8;
	t->type = PACER_ETH_FRAME;
}

/* What is behind a UDP header, by its destination port. */
PACER_INLINE void pacer_tunnel_udp(PACER_FRAME *frame, struct pacer_tunnel *t,
				   const struct pacer_packet *pkt)
{
	__u32 len = pacer_tunnel_read(frame, t, 4, 2), dport = pkt->key[PACER_WORD_PORTS] & 0xffff;

	if (len || pkt->family == PACER_FAMILY_4) { /* IPv6: 0 of a jumbogram */
		pacer_tunnel_ends(t, len);
		if (len < 8)
			pacer_tunnel_say(t, PACER_PARSE_NOT_IP);
	}
	t->at += 8;
	if (dport == PACER_PORT_GENEVE)
		pacer_tunnel_geneve(frame, t);
	else if (dport == PACER_PORT_GTPU)
		pacer_tunnel_gtpu(frame, t);
	else
		pacer_tunnel_vxlan(frame, t);
}

/* An Ethernet header, if one follows, and tags, which Linux takes off without one, too. */
PACER_GLOBAL int pacer_tunnel_ether(PACER_FRAME *frame, struct pacer_tunnel *t)
{
	__u32 i;

	if (!t)
		return 0;
	if (t->type == PACER_ETH_FRAME) {
		t->type = pacer_tunnel_read(frame, t, 12, 2);
		t->at += 14;
	}
	PACER_ROLLED
	for (i = 0; i < PACER_PARSE_TAGS && pacer_is_tag(t->type); i++) {
		t->type = pacer_tunnel_read(frame, t, 2, 2);
		t->at += 4;
	}
	if (pacer_is_tag(t->type))
		pacer_tunnel_say(t, PACER_PARSE_TOO_DEEP);
	return 0;
}

PACER_INLINE int pacer_is_tunnel_port(__u32 dport)
{
	return dport == PACER_PORT_VXLAN || dport == PACER_PORT_VXLAN0 ||
	       dport == PACER_PORT_GENEVE || dport == PACER_PORT_GTPU;
}

/* Is w->pkt the packet of a tunnel? PACER_PARSED; or what is said of it. */
PACER_INLINE enum pacer_parse_result pacer_tunnel_is(const struct pacer_packet *pkt)
{
	if (pkt->fragment == PACER_FRAG_LATER)
		return PACER_PARSE_NOT_IP;
	if (pkt->ports == PACER_PORTS_ANY)
		return PACER_PARSE_TOO_DEEP;
	if (pkt->proto == PACER_IPPROTO_IPIP || pkt->proto == PACER_IPPROTO_IPV6 ||
	    pkt->proto == PACER_IPPROTO_GRE)
		return PACER_PARSED;
	if (pkt->proto != PACER_IPPROTO_UDP)
		return PACER_PARSE_NOT_IP;
	if (pkt->ports == PACER_PORTS_UNKNOWN)
		return PACER_PARSE_TOO_DEEP;
	return pacer_is_tunnel_port(pkt->key[PACER_WORD_PORTS] & 0xffff) ? PACER_PARSED
									 : PACER_PARSE_NOT_IP;
}

/* Behind the headers of an IP packet. */
PACER_INLINE void pacer_tunnel_of_ip(PACER_FRAME *frame, const struct pacer_packet *pkt,
				     struct pacer_tunnel *t)
{
	t->at = pkt->l4;
	t->said = pacer_tunnel_is(pkt);
	if (t->said != PACER_PARSED)
		return;
	t->end = pacer_more_end(frame, pkt);
	if (pkt->fragment == PACER_FRAG_FIRST) {
		if (t->end != pkt->len_bytes || (t->end - pkt->l4) & 7)
			pacer_tunnel_say(t, PACER_PARSE_TOO_DEEP);
		t->end = PACER_TUNNEL_OPEN;
	}
	if (pkt->proto == PACER_IPPROTO_GRE) {
		t->type = pkt->family == PACER_FAMILY_4 ? PACER_ETH_IP4 : PACER_ETH_IP6;
		pacer_tunnel_gre(frame, t);
	} else if (pkt->proto == PACER_IPPROTO_UDP) {
		pacer_tunnel_udp(frame, t, pkt);
	} else {
		t->type = pkt->proto == PACER_IPPROTO_IPIP ? PACER_ETH_IP4 : PACER_ETH_IP6;
	}
}

/*
 * Where the inner IP header is, and of which type; t->said: PACER_PARSED, PACER_PARSE_NOT_IP if
 * there is none, PACER_PARSE_TOO_DEEP. w->pkt was parsed of the frame.
 */
PACER_GLOBAL int pacer_tunnel_find(PACER_FRAME *frame, const struct pacer_walk *w,
				   struct pacer_tunnel *t)
{
	if (!w || !t)
		return 0;
	if (w->pkt.family != PACER_FAMILY_NONE) {
		pacer_tunnel_of_ip(frame, &w->pkt, t);
	} else if (w->pkt.l3 && pacer_more_bytes(frame, w->pkt.l3 - 2u, 2) == PACER_ETH_PPPOE) {
		t->at = w->pkt.l3;
		t->end = w->pkt.len_bytes;
		pacer_tunnel_pppoe(frame, t);
	} else {
		t->said = PACER_PARSE_NOT_IP;
	}
	if (t->type == PACER_ETH_FRAME || pacer_is_tag(t->type))
		pacer_tunnel_ether(frame, t);
	if (t->type == PACER_ETH_ANY_IP) {
		t->type = PACER_ETH_IP4;
		if (pacer_tunnel_read(frame, t, 0, 1) >> 4 == 6)
			t->type = PACER_ETH_IP6;
	}
	if (t->type != PACER_ETH_IP4 && t->type != PACER_ETH_IP6)
		pacer_tunnel_say(t, PACER_PARSE_NOT_IP);
	if (t->at >= PACER_INNER_DEEPEST || t->at > t->end)
		pacer_tunnel_say(t, t->at > t->end ? PACER_PARSE_NOT_IP : PACER_PARSE_TOO_DEEP);
	return 0;
}

/* Of a packet as of a jumbogram, which has no length, more.h takes the frame's end for its own. */
PACER_INLINE int pacer_inner_ends(PACER_FRAME *frame, const struct pacer_walk *w,
				  const struct pacer_tunnel *t)
{
	return t->end >= w->pkt.len_bytes || t->type == PACER_ETH_IP4 ||
	       pacer_more_bytes(frame, w->pkt.l3 + 4, 3);
}

/*
 * Reads the inner packet that was found into w->pkt, in the place of the one around it: in part,
 * where what is wrong with it lies behind its addresses, since a router looks no further.
 * PACER_PARSE_NOT_IP: there is none, since no stack accepts it.
 */
PACER_GLOBAL int pacer_inner_parse(PACER_FRAME *frame, struct pacer_walk *w,
				   const struct pacer_tunnel *t)
{
	struct pacer_cursor c;
	int result;
	__u16 vlan;
	__u32 at;

	if (!w || !t)
		return PACER_PARSE_NOT_IP;
	at = pacer_opaque(t->at) & (PACER_INNER_DEEPEST - 1);
	c.p = PACER_FRAME_DATA(frame);
	c.p += at;
	c.end = PACER_FRAME_END(frame);
	c.left = t->end - t->at;
	vlan = w->pkt.vlan;
	pacer_parse_nothing(&w->pkt, w->pkt.len_bytes);
	w->pkt.vlan = vlan;
	w->pkt.l3 = at;
	w->pkt.inner = 1;
	result =
	    t->type == PACER_ETH_IP4 ? pacer_parse_ip4(&c, &w->pkt) : pacer_parse_ip6(&c, &w->pkt);
	if (result != PACER_PARSED && w->pkt.family != PACER_FAMILY_NONE)
		result = pacer_parse_part(&w->pkt, pacer_has_ports(w->pkt.proto) &&
							   result == PACER_PARSE_TRUNCATED
						       ? PACER_PORTS_UNKNOWN
						       : PACER_PORTS_ANY);
	if (result != PACER_PARSED && result != PACER_PARSE_TOO_DEEP)
		return PACER_PARSE_NOT_IP;
	if (w->pkt.l4 > PACER_INNER_LAST || !pacer_inner_ends(frame, w, t))
		return PACER_PARSE_TOO_DEEP;
	return result;
}

#endif
