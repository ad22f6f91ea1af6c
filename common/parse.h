/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: a frame's addresses, ports and fragment state. One parser for the
 * kernel and for user space.
 *
 * Read: Ethernet, up to two VLAN tags (802.1Q, 802.1ad), IPv4 with options, IPv6
 * with up to PACER_PARSE_HEADERS extension headers (hop-by-hop, routing,
 * destination, fragment, AH), the ports of TCP, UDP and SCTP. The outer tag's
 * VLAN and the outer IP header count; tunnels are not opened.
 *
 * A later fragment has no ports. In its key the datagram's identification stands
 * where the ports would, and a mark keeps it apart from every port pair.
 *
 * Error: what is cut short or contradicts itself is said to be so and nothing of
 * it is used. IPv4's checksum is not looked at.
 *
 * Concurrency: pure. Memory: none.
 */
#ifndef PACER_PARSE_H
#define PACER_PARSE_H

#include "abi.h"

#define PACER_PARSE_TAGS    2
#define PACER_PARSE_HEADERS 8

enum pacer_family { PACER_FAMILY_NONE, PACER_FAMILY_4, PACER_FAMILY_6 };

enum pacer_fragment { PACER_FRAG_NONE, PACER_FRAG_FIRST, PACER_FRAG_LATER };

enum pacer_parse_result {
	PACER_PARSED,
	PACER_PARSE_NOT_IP,
	PACER_PARSE_TRUNCATED,
	PACER_PARSE_BAD_HEADER,
	PACER_PARSE_TOO_DEEP
};

/* Key words: addresses and ports in host order; IPv4 addresses in the first word of four. */
enum pacer_key_word {
	PACER_WORD_SADDR = 0,
	PACER_WORD_DADDR = 4,
	PACER_WORD_PORTS = 8, /* sport << 16 | dport, or a later fragment's identification */
	PACER_WORD_META = 9   /* protocol, and PACER_META_FRAGMENT */
};

#define PACER_META_PROTO    0xffu
#define PACER_META_FRAGMENT 0x100u

struct pacer_packet {
	__u32 key[PACER_KEY_WORDS];
	__u32 len_bytes; /* the whole frame's */
	__u16 vlan;	 /* of the outer tag, or PACER_VLAN_NONE */
	__u8 family;	 /* enum pacer_family */
	__u8 fragment;	 /* enum pacer_fragment */
	__u8 proto;	 /* that follows the last header read */
	__u8 unused[3];
} __attribute__((aligned(8))); /* so that it is zeroed by long words */

/* Where the parser stands: `p` in a buffer that ends at `end`, and `left` bytes of IP to come. */
struct pacer_cursor {
	const __u8 *p, *end;
	__u32 left;
};

#define PACER_ETH_IP4	 0x0800
#define PACER_ETH_IP6	 0x86dd
#define PACER_ETH_8021Q	 0x8100
#define PACER_ETH_8021AD 0x88a8

PACER_INLINE int pacer_has_ports(__u8 proto)
{
	return proto == 6 || proto == 17 || proto == 132;
}

PACER_INLINE int pacer_is_tag(__u16 h_proto)
{
	return h_proto == PACER_ETH_8021Q || h_proto == PACER_ETH_8021AD;
}

/* The ports, where the protocol has some, of anything but a later fragment. */
PACER_INLINE enum pacer_parse_result pacer_parse_ports(const struct pacer_cursor *c,
						       struct pacer_packet *pkt)
{
	pkt->key[PACER_WORD_META] = pkt->proto;
	if (!pacer_has_ports(pkt->proto))
		return PACER_PARSED;
	if (c->left < 4 || c->p + 4 > c->end)
		return PACER_PARSE_TRUNCATED;
	pkt->key[PACER_WORD_PORTS] = pacer_be32(c->p);
	return PACER_PARSED;
}

PACER_INLINE enum pacer_parse_result pacer_parse_later(struct pacer_packet *pkt, __u32 datagram)
{
	pkt->fragment = PACER_FRAG_LATER;
	pkt->key[PACER_WORD_META] = pkt->proto | PACER_META_FRAGMENT;
	pkt->key[PACER_WORD_PORTS] = datagram;
	return PACER_PARSED;
}

PACER_INLINE enum pacer_parse_result pacer_parse_ip4(struct pacer_cursor *c,
						     struct pacer_packet *pkt)
{
	__u32 header, total, frag;

	if (c->left < 20 || c->p + 20 > c->end)
		return PACER_PARSE_TRUNCATED;
	header = (c->p[0] & 0x0f) * 4u;
	total = pacer_be16(c->p + 2);
	/* Version 4, and 5 words or more: the first byte is 0x45 to 0x4f. */
	if (c->p[0] - 0x45u > 0x4f - 0x45u || total < header || total > c->left)
		return PACER_PARSE_BAD_HEADER;
	if (c->p + header > c->end)
		return PACER_PARSE_TRUNCATED;
	pkt->family = PACER_FAMILY_4;
	pkt->proto = c->p[9];
	pkt->key[PACER_WORD_SADDR] = pacer_be32(c->p + 12);
	pkt->key[PACER_WORD_DADDR] = pacer_be32(c->p + 16);
	frag = pacer_be16(c->p + 6);
	if (frag & 0x3fff) {
		if (frag & 0x1fff)
			return pacer_parse_later(pkt, pacer_be16(c->p + 4));
		pkt->fragment = PACER_FRAG_FIRST;
	}
	c->p += header;
	c->left = total - header;
	return pacer_parse_ports(c, pkt);
}

/* The extension headers that are followed: hop-by-hop options, routing, fragment, authentication
 * and destination options, a bit each.
 */
#define PACER_EXTENSIONS (1ull << 0 | 1ull << 43 | 1ull << 44 | 1ull << 51 | 1ull << 60)

PACER_INLINE int pacer_is_extension(__u8 type)
{
	return type < 64 && PACER_EXTENSIONS >> type & 1;
}

/* 1 where the types are the same, else 0, by arithmetic: a branch would be one more path to verify.
 */
PACER_INLINE __u32 pacer_same_type(__u8 a, __u8 b)
{
	return pacer_opaque((a ^ b) - 1u) >> 31;
}

/* Length of the extension header at c->p: 8 bytes, and as many times 8 more as its second byte
 * says; of AH as many times 4; of a fragment header none, its second byte is not a length.
 */
PACER_INLINE __u32 pacer_extension_len(const struct pacer_cursor *c, __u8 type)
{
	__u32 ah = pacer_same_type(type, 51), fragment = pacer_same_type(type, 44);
	__u32 more = c->p[1] & (fragment - 1);

	/* At most 2048; the mask says so to verifiers that do not follow the multiplication. */
	return pacer_opaque(8 + more * (8 - 4 * ah)) & 0xfff;
}

PACER_INLINE enum pacer_parse_result pacer_parse_extensions(struct pacer_cursor *c,
							    struct pacer_packet *pkt)
{
	__u32 i, len, frag;

	for (i = 0; i < PACER_PARSE_HEADERS; i++) {
		if (!pacer_is_extension(pkt->proto))
			return pacer_parse_ports(c, pkt);
		if (c->left < 8 || c->p + 8 > c->end)
			return PACER_PARSE_TRUNCATED;
		len = pacer_extension_len(c, pkt->proto);
		if (pkt->proto == 44) {
			frag = pacer_be16(c->p + 2);
			pkt->proto = c->p[0];
			if (frag & 0xfff8)
				return pacer_parse_later(pkt, pacer_be32(c->p + 4));
			if (frag & 1)
				pkt->fragment = PACER_FRAG_FIRST;
		} else {
			pkt->proto = c->p[0];
		}
		if (len > c->left)
			return PACER_PARSE_BAD_HEADER;
		c->p += len;
		c->left -= len;
	}
	return pacer_is_extension(pkt->proto) ? PACER_PARSE_TOO_DEEP : pacer_parse_ports(c, pkt);
}

PACER_INLINE enum pacer_parse_result pacer_parse_ip6(struct pacer_cursor *c,
						     struct pacer_packet *pkt)
{
	__u32 payload, i;

	if (c->left < 40 || c->p + 40 > c->end)
		return PACER_PARSE_TRUNCATED;
	payload = pacer_be16(c->p + 4);
	if (c->p[0] >> 4 != 6 || payload + 40 > c->left)
		return PACER_PARSE_BAD_HEADER;
	pkt->family = PACER_FAMILY_6;
	pkt->proto = c->p[6];
	for (i = 0; i < 8; i++)
		pkt->key[PACER_WORD_SADDR + i] = pacer_be32(c->p + 8 + 4 * i);
	c->p += 40;
	c->left = payload;
	return pacer_parse_extensions(c, pkt);
}

/*
 * What most frames are: untagged, IPv4 without options, in one piece, with ports. All of it lies at
 * places known beforehand and within one bound. 0: it is another one, and nothing was written.
 */
PACER_INLINE int pacer_parse_usual(const __u8 *p, const __u8 *end, __u32 len_bytes,
				   struct pacer_packet *pkt)
{
	pacer_alias64 *out = (pacer_alias64 *)pkt;
	__u32 saddr, daddr, ports, total;
	__u8 proto;

	if (p + 14 + 20 + 4 > end || pacer_be16(p + 12) != PACER_ETH_IP4 || p[14] != 0x45 ||
	    pacer_be16(p + 20) & 0x3fff)
		return 0;
	total = pacer_be16(p + 16);
	proto = p[23];
	if (total < 20 + 4 || total + 14 > len_bytes || !pacer_has_ports(proto))
		return 0;
	saddr = pacer_be32(p + 26);
	daddr = pacer_be32(p + 30);
	ports = pacer_be32(p + 34);
	out[0] = pacer_two_words(saddr, 0);
	out[1] = 0;
	out[2] = pacer_two_words(daddr, 0);
	out[3] = 0;
	out[4] = pacer_two_words(ports, proto);
	out[6] = 0;
	pkt->len_bytes = len_bytes;
	pkt->vlan = PACER_VLAN_NONE;
	pkt->family = PACER_FAMILY_4;
	pkt->fragment = PACER_FRAG_NONE;
	pkt->proto = proto;
	return 1;
}

/* Any frame, from header to header. */
PACER_INLINE PACER_MUST_USE enum pacer_parse_result
pacer_parse_any(const void *data, const void *data_end, __u32 len_bytes, struct pacer_packet *pkt)
{
	struct pacer_cursor c = {.p = data, .end = data_end};
	__u16 h_proto;
	__u32 i, l2 = 14;

	__builtin_memset(pkt, 0, sizeof(*pkt));
	pkt->len_bytes = len_bytes;
	pkt->vlan = PACER_VLAN_NONE;
	if (c.p + 14 > c.end)
		return PACER_PARSE_TRUNCATED;
	h_proto = pacer_be16(c.p + 12);
	c.p += 14;
	for (i = 0; i < PACER_PARSE_TAGS && pacer_is_tag(h_proto); i++) {
		if (c.p + 4 > c.end)
			return PACER_PARSE_TRUNCATED;
		if (!i)
			pkt->vlan = pacer_be16(c.p) & 0x0fff;
		h_proto = pacer_be16(c.p + 2);
		c.p += 4;
		l2 += 4;
	}
	if (len_bytes > l2)
		c.left = pacer_opaque(len_bytes) - l2; /* else compilers saturate, dearly */
	if (h_proto == PACER_ETH_IP4)
		return pacer_parse_ip4(&c, pkt);
	if (h_proto == PACER_ETH_IP6)
		return pacer_parse_ip6(&c, pkt);
	return pacer_is_tag(h_proto) ? PACER_PARSE_TOO_DEEP : PACER_PARSE_NOT_IP;
}

/*
 * Read the frame of `len_bytes` whose first bytes are data..data_end (all of them, or less where a
 * capture or a driver's first buffer holds less). *pkt is zeroed but for what was read.
 */
PACER_INLINE PACER_MUST_USE enum pacer_parse_result
pacer_parse(const void *data, const void *data_end, __u32 len_bytes, struct pacer_packet *pkt)
{
	if (pacer_parse_usual(data, data_end, len_bytes, pkt))
		return PACER_PARSED;
	return pacer_parse_any(data, data_end, len_bytes, pkt);
}

/* The reason that a result other than PACER_PARSED stands for. */
PACER_INLINE enum pacer_reason pacer_parse_reason(int result)
{
	if (result == PACER_PARSE_NOT_IP)
		return PACER_NOT_IP;
	if (result == PACER_PARSE_TRUNCATED)
		return PACER_TRUNCATED;
	return result == PACER_PARSE_TOO_DEEP ? PACER_TOO_DEEP : PACER_BAD_HEADER;
}

#endif
