/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: a frame's addresses, ports and fragment state. One parser for the
 * kernel and for user space.
 *
 * Read: Ethernet, up to PACER_PARSE_TAGS VLAN tags (802.1Q, 802.1ad), or nothing
 * before the IP header; IPv4 with options, IPv6 with up to PACER_PARSE_HEADERS
 * extension headers (hop-by-hop, routing, destination, fragment, AH), the ports of
 * TCP, UDP and SCTP. The outer IP header counts; tunnels are not opened.
 *
 * The VLAN is that of the first tag that names one. A tag of VLAN 0 (a priority
 * tag) names none: Linux removes it and goes on. So a frame with such tags
 * alone counts as untagged.
 *
 * A later fragment has no ports. Its key has the datagram's identification in
 * the place of the ports, and a mark that no pair of ports has. In IPv6 the
 * protocol of a later fragment is unknown, too, and is 0: the sender may write
 * anything there, since stacks use only that of the first fragment.
 *
 * A stack follows more headers than this parser, and sees more than the first
 * buffer of a frame. If the addresses are known but the headers go on, the
 * packet is read in part. It has no ports, a mark of its own in its key, and
 * the protocol 0 if that is not known. So no packet avoids a limit by its
 * headers.
 *
 * Error: a frame that is cut short or contradicts itself is reported so, and
 * nothing of it is used, since no host accepts it. A router that looks at the IP
 * header alone forwards it where the fault lies behind that header. If a stack
 * might accept a frame but no address is in reach, it is reported as too deep.
 * IPv4's checksum is not checked.
 *
 * Concurrency: pure. Memory: none.
 */
#ifndef PACER_PARSE_H
#define PACER_PARSE_H

#include "abi.h"

#define PACER_PARSE_TAGS    16
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
	PACER_WORD_META = 9   /* protocol, the marks and the VLAN */
};

#define PACER_META_PROTO    0xffu
#define PACER_META_FRAGMENT 0x100u /* a later fragment */
#define PACER_META_PART	    0x200u /* read in part: its ports are beyond what is read */
#define PACER_META_MARKS    (PACER_META_FRAGMENT | PACER_META_PART)
#define PACER_META_VLAN_AT  10u
#define PACER_META_VLAN	    (0xfffu << PACER_META_VLAN_AT) /* 0: it names none, as a tag of 0 does */
#define PACER_META_TTL_AT   22u
#define PACER_META_TTL	    (0xffu << PACER_META_TTL_AT) /* where a key has it (path.h); else 0 */
/* Of limits of new flows (path.h), and of no key: the packet opens none; and that need not be
 * noted. */
#define PACER_META_KNOWN (1u << 30)
#define PACER_META_FRESH (1u << 31)

PACER_INLINE __u32 pacer_meta_vlan(__u16 vlan)
{
	return (__u32)(vlan & (PACER_VLAN_NONE - 1)) << PACER_META_VLAN_AT;
}

/* Its inverse. PACER_VLAN_NONE: the frame names none. */
PACER_INLINE __u16 pacer_vlan_of(__u32 meta)
{
	__u32 vlan = (meta & PACER_META_VLAN) >> PACER_META_VLAN_AT;

	return vlan ? vlan : PACER_VLAN_NONE;
}

/* What is known about a packet's ports. */
enum pacer_ports {
	PACER_PORTS_READ,
	PACER_PORTS_NONE,    /* its protocol has none */
	PACER_PORTS_UNKNOWN, /* it has some */
	PACER_PORTS_ANY	     /* unknown, since the protocol is unknown */
};

struct pacer_packet {
	__u32 key[PACER_KEY_WORDS];
	__u32 len_bytes;   /* the whole frame's */
	__u16 vlan;	   /* of the first tag that names one, or PACER_VLAN_NONE */
	__u8 family;	   /* enum pacer_family */
	__u8 fragment;	   /* enum pacer_fragment */
	__u8 proto;	   /* that follows the last header read; 0 where that is not known */
	__u8 ports;	   /* enum pacer_ports */
	__u16 l3 : 14;	   /* bytes before the IP header */
	__u16 options : 1; /* 1: it has IP options (see pacer_is_option) */
	__u16 inner : 1;   /* 1: it was in the frame's tunnel (inner.h) */
	__u16 l4;	   /* ... before what follows the last header read, of packets in reach */
	__u16 found : 15;  /* its rule, where that was looked for in the frame (path.h) */
	__u16 sought : 1;  /* 1: it was */
} __attribute__((aligned(8))); /* so that it can be zeroed in 8-byte words */

/*
 * The position of the parser: `p`, in a buffer that ends at `end`. `left` bytes of IP follow,
 * perhaps more than the buffer has.
 */
struct pacer_cursor {
	const __u8 *p, *end;
	__u32 left;
};

#define PACER_ETH_IP4	 0x0800
#define PACER_ETH_IP6	 0x86dd
#define PACER_ETH_8021Q	 0x8100
#define PACER_ETH_8021AD 0x88a8

#define PACER_IPPROTO_TCP 6

PACER_INLINE int pacer_has_ports(__u8 proto)
{
	return proto == 6 || proto == 17 || proto == 132;
}

PACER_INLINE int pacer_is_tag(__u16 h_proto)
{
	return h_proto == PACER_ETH_8021Q || h_proto == PACER_ETH_8021AD;
}

PACER_INLINE enum pacer_parse_result pacer_parse_part(struct pacer_packet *pkt,
						      enum pacer_ports ports)
{
	if (ports == PACER_PORTS_ANY)
		pkt->proto = 0;
	pkt->ports = ports;
	pkt->key[PACER_WORD_META] = pacer_meta_vlan(pkt->vlan) | pkt->proto | PACER_META_PART;
	return PACER_PARSED;
}

/*
 * The datagram ends within its headers. If it is a first fragment, a later one may have the rest.
 */
PACER_INLINE enum pacer_parse_result pacer_parse_ended(struct pacer_packet *pkt,
						       enum pacer_ports ports,
						       enum pacer_parse_result otherwise)
{
	return pkt->fragment == PACER_FRAG_FIRST ? pacer_parse_part(pkt, ports) : otherwise;
}

/* Reads the ports, if the protocol has some. Not for later fragments. */
PACER_INLINE enum pacer_parse_result pacer_parse_ports(const struct pacer_cursor *c,
						       struct pacer_packet *pkt)
{
	pkt->key[PACER_WORD_META] = pacer_meta_vlan(pkt->vlan) | pkt->proto;
	if (!pacer_has_ports(pkt->proto)) {
		pkt->ports = PACER_PORTS_NONE;
		return PACER_PARSED;
	}
	if (c->left < 4)
		return pacer_parse_ended(pkt, PACER_PORTS_UNKNOWN, PACER_PARSE_TRUNCATED);
	if (c->p + 4 > c->end)
		return pacer_parse_part(pkt, PACER_PORTS_UNKNOWN);
	pkt->key[PACER_WORD_PORTS] = pacer_be32(c->p);
	return PACER_PARSED;
}

PACER_INLINE enum pacer_parse_result pacer_parse_later(struct pacer_packet *pkt, __u32 datagram,
						       enum pacer_ports ports)
{
	pkt->fragment = PACER_FRAG_LATER;
	pkt->ports = ports;
	pkt->key[PACER_WORD_META] = pacer_meta_vlan(pkt->vlan) | pkt->proto | PACER_META_FRAGMENT;
	pkt->key[PACER_WORD_PORTS] = datagram;
	return PACER_PARSED;
}

PACER_INLINE enum pacer_parse_result pacer_parse_ip4(struct pacer_cursor *c,
						     struct pacer_packet *pkt)
{
	__u32 header, total, frag;

	if (c->left < 20)
		return PACER_PARSE_TRUNCATED;
	if (c->p + 20 > c->end)
		return PACER_PARSE_TOO_DEEP;
	header = (c->p[0] & 0x0f) * 4u;
	total = pacer_be16(c->p + 2);
	/* Version 4 and at least 5 words: the first byte is 0x45 to 0x4f. */
	if (c->p[0] - 0x45u > 0x4f - 0x45u || total < header || total > c->left)
		return PACER_PARSE_BAD_HEADER;
	pkt->family = PACER_FAMILY_4;
	pkt->options = pacer_opaque((20 - header) >> 31);
	pkt->l4 = pkt->l3 + header;
	pkt->proto = c->p[9];
	pkt->key[PACER_WORD_SADDR] = pacer_be32(c->p + 12);
	pkt->key[PACER_WORD_DADDR] = pacer_be32(c->p + 16);
	frag = pacer_be16(c->p + 6);
	if (frag & 0x3fff) {
		if (frag & 0x1fff)
			return pacer_parse_later(pkt, pacer_be16(c->p + 4),
						 pacer_has_ports(pkt->proto) ? PACER_PORTS_UNKNOWN
									     : PACER_PORTS_NONE);
		pkt->fragment = PACER_FRAG_FIRST;
	}
	c->p += header;
	c->left = total - header;
	return pacer_parse_ports(c, pkt);
}

/*
 * One bit for each extension header that is followed: hop-by-hop options, routing, fragment,
 * authentication and destination options.
 */
#define PACER_EXTENSIONS (1ull << 0 | 1ull << 43 | 1ull << 44 | 1ull << 51 | 1ull << 60)

PACER_INLINE int pacer_is_extension(__u8 type)
{
	return type < 64 && PACER_EXTENSIONS >> type & 1;
}

/* 1 if the types are the same, else 0. By arithmetic, since a branch is one more path to verify. */
PACER_INLINE __u32 pacer_same_type(__u8 a, __u8 b)
{
	return pacer_opaque((a ^ b) - 1u) >> 31;
}

/*
 * Length of the extension header at c->p: 8 bytes, plus 8 for each unit in its second byte. In AH a
 * unit is 4 bytes. In a fragment header the second byte is no length, and adds nothing.
 */
PACER_INLINE __u32 pacer_extension_len(const struct pacer_cursor *c, __u8 type)
{
	__u32 ah = pacer_same_type(type, 51), fragment = pacer_same_type(type, 44);
	__u32 more = c->p[1] & (fragment - 1);

	/* At most 2048. The mask is for verifiers that do not follow the multiplication. */
	return pacer_opaque(8 + more * (8 - 4 * ah)) & 0xfff;
}

/* Options of IPv6 are hop-by-hop and destination options, and routing headers; of IPv4 all. */
PACER_INLINE __u32 pacer_is_option(__u8 type)
{
	return 1 ^ (pacer_same_type(type, 44) | pacer_same_type(type, 51));
}

PACER_INLINE enum pacer_parse_result pacer_parse_extensions(struct pacer_cursor *c,
							    struct pacer_packet *pkt)
{
	__u32 i, len, frag;

	for (i = 0; i < PACER_PARSE_HEADERS; i++) {
		if (!pacer_is_extension(pkt->proto))
			return pacer_parse_ports(c, pkt);
		/* Also where the header itself is beyond the fragment or the buffer. */
		pkt->options |= pacer_is_option(pkt->proto);
		if (c->left < 8)
			return pacer_parse_ended(pkt, PACER_PORTS_ANY, PACER_PARSE_TRUNCATED);
		if (c->p + 8 > c->end)
			break;
		len = pacer_extension_len(c, pkt->proto);
		if (pkt->proto == 44) {
			frag = pacer_be16(c->p + 2);
			pkt->proto = frag & 0xfff8 ? 0 : c->p[0];
			if (frag & 0xfff8)
				return pacer_parse_later(pkt, pacer_be32(c->p + 4),
							 PACER_PORTS_ANY);
			pkt->fragment |= pacer_opaque(frag & PACER_FRAG_FIRST);
		} else {
			pkt->proto = c->p[0];
		}
		if (len > c->left)
			return pacer_parse_ended(pkt, PACER_PORTS_ANY, PACER_PARSE_BAD_HEADER);
		c->p += len;
		c->left -= len;
		pkt->l4 += len;
	}
	return pacer_is_extension(pkt->proto) ? pacer_parse_part(pkt, PACER_PORTS_ANY)
					      : pacer_parse_ports(c, pkt);
}

PACER_INLINE enum pacer_parse_result pacer_parse_ip6(struct pacer_cursor *c,
						     struct pacer_packet *pkt)
{
	__u32 payload, i;

	if (c->left < 40)
		return PACER_PARSE_TRUNCATED;
	if (c->p + 40 > c->end)
		return PACER_PARSE_TOO_DEEP;
	payload = pacer_be16(c->p + 4);
	if (c->p[0] >> 4 != 6 || payload + 40 > c->left)
		return PACER_PARSE_BAD_HEADER;
	pkt->family = PACER_FAMILY_6;
	pkt->l4 = pkt->l3 + 40;
	pkt->proto = c->p[6];
	for (i = 0; i < 8; i++)
		pkt->key[PACER_WORD_SADDR + i] = pacer_be32(c->p + 8 + 4 * i);
	/* As in a jumbogram: Linux takes the length of the frame, even without the option. */
	if (!payload && !pkt->proto)
		payload = c->left - 40;
	c->p += 40;
	c->left = payload;
	return pacer_parse_extensions(c, pkt);
}

/*
 * Is it the usual frame: untagged, IPv4 without options, not fragmented, with ports? All its fields
 * are at fixed places, so one check of the length is enough.
 */
PACER_INLINE int pacer_parse_usual(const __u8 *p, const __u8 *end, __u32 len_bytes)
{
	__u32 total;

	/* The type and the IP header's first byte lie in one word, and the byte behind is any. */
	if (p + 14 + 20 + 4 > end || pacer_be32(p + 12) >> 8 != (PACER_ETH_IP4 << 8 | 0x45) ||
	    pacer_be16(p + 20) & 0x3fff)
		return 0;
	total = pacer_be16(p + 16);
	return total >= 20 + 4 && total + 14 <= len_bytes && pacer_has_ports(p[23]);
}

/*
 * Is the source all that has to be read of the frame: untagged, IPv4 without options, whole, with
 * room for ports? Whatever else it is, a fragment or not, it is read to the end. end - p is
 * len_bytes at most.
 */
PACER_INLINE int pacer_parse_source4(const __u8 *p, const __u8 *end, __u32 len_bytes)
{
	if (p + 14 + 20 + 4 > end || pacer_be32(p + 12) >> 8 != (PACER_ETH_IP4 << 8 | 0x45))
		return 0;
	/* From 24 bytes to what the frame has, in one comparison. */
	return pacer_be16(p + 16) - (20u + 4) <= len_bytes - (14 + 20 + 4);
}

#define PACER_SOURCE4 (14 + 12) /* where it is, then */

/* Such a frame that is no fragment: as struct pacer_packet has it. */
struct pacer_usual {
	__u32 saddr, daddr, ports;
	__u8 proto;
	__u8 of_ports; /* PACER_PORTS_READ or PACER_PORTS_NONE */
};

PACER_INLINE int pacer_parse_whole4(const __u8 *p, const __u8 *end, __u32 len_bytes,
				    struct pacer_usual *u)
{
	if (!pacer_parse_source4(p, end, len_bytes) || pacer_be16(p + 20) & 0x3fff)
		return 0;
	u->saddr = pacer_be32(p + PACER_SOURCE4);
	u->daddr = pacer_be32(p + 30);
	u->proto = p[23];
	u->ports = 0;
	u->of_ports = PACER_PORTS_NONE;
	if (pacer_has_ports(u->proto)) {
		u->ports = pacer_be32(p + 34);
		u->of_ports = PACER_PORTS_READ;
	}
	return 1;
}

/* Reads the usual frame. 0: it is another one, and nothing was written. */
PACER_INLINE int pacer_parse_fast(const __u8 *p, const __u8 *end, __u32 len_bytes,
				  struct pacer_packet *pkt)
{
	pacer_alias64 *out = (pacer_alias64 *)pkt;
	__u32 saddr, daddr, ports;
	__u8 proto;

	if (!pacer_parse_usual(p, end, len_bytes))
		return 0;
	proto = p[23];
	saddr = pacer_be32(p + PACER_SOURCE4);
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
	pkt->l3 = 14;
	pkt->l4 = 14 + 20;
	return 1;
}

PACER_INLINE void pacer_parse_nothing(struct pacer_packet *pkt, __u32 len_bytes)
{
	__builtin_memset(pkt, 0, sizeof(*pkt));
	pkt->len_bytes = len_bytes;
	pkt->vlan = PACER_VLAN_NONE;
}

/* Reads any frame, header by header. */
PACER_INLINE PACER_MUST_USE enum pacer_parse_result
pacer_parse_any(const void *data, const void *data_end, __u32 len_bytes, struct pacer_packet *pkt)
{
	struct pacer_cursor c = {.p = data, .end = data_end};
	__u32 i, l2 = 14, vlan = 0;
	__u16 h_proto;

	pacer_parse_nothing(pkt, len_bytes);
	if (len_bytes < 14)
		return PACER_PARSE_TRUNCATED;
	if (c.p + 14 > c.end)
		return PACER_PARSE_TOO_DEEP;
	h_proto = pacer_be16(c.p + 12);
	c.p += 14;
	PACER_ROLLED
	for (i = 0; i < PACER_PARSE_TAGS && pacer_is_tag(h_proto); i++) {
		l2 += 4;
		if (len_bytes < l2)
			return PACER_PARSE_TRUNCATED;
		if (c.p + 4 > c.end)
			return PACER_PARSE_TOO_DEEP;
		if (!vlan)
			vlan = pacer_be16(c.p) & 0x0fff;
		h_proto = pacer_be16(c.p + 2);
		c.p += 4;
	}
	if (vlan)
		pkt->vlan = vlan;
	/*
	 * The rest is the same after any number of tags. The kernel's verifier walks it only once
	 * if it does not know the number. Of a stack it knows what was stored at a multiple of 8.
	 */
	_Static_assert(__builtin_offsetof(struct pacer_packet, key[1]) % 8 == 4, "no multiple");
	pacer_store(&pkt->key[1], l2);
	l2 = pacer_load(&pkt->key[1]) & 0x7f;
	pkt->key[1] = 0;
	pkt->l3 = l2;
	c.p = (const __u8 *)data + l2;
	c.left = pacer_opaque(len_bytes) - l2; /* without it compilers add costly saturating code */
	if (h_proto == PACER_ETH_IP4)
		return pacer_parse_ip4(&c, pkt);
	if (h_proto == PACER_ETH_IP6)
		return pacer_parse_ip6(&c, pkt);
	return pacer_is_tag(h_proto) ? PACER_PARSE_TOO_DEEP : PACER_PARSE_NOT_IP;
}

/* Reads a packet that begins with its IP header, as tunnel devices pass it. */
PACER_INLINE PACER_MUST_USE enum pacer_parse_result
pacer_parse_raw(const void *data, const void *data_end, __u32 len_bytes, struct pacer_packet *pkt)
{
	struct pacer_cursor c = {.p = data, .end = data_end, .left = len_bytes};

	pacer_parse_nothing(pkt, len_bytes);
	if (!len_bytes)
		return PACER_PARSE_TRUNCATED;
	if (c.p + 1 > c.end)
		return PACER_PARSE_TOO_DEEP;
	if (c.p[0] >> 4 == 4)
		return pacer_parse_ip4(&c, pkt);
	return c.p[0] >> 4 == 6 ? pacer_parse_ip6(&c, pkt) : PACER_PARSE_NOT_IP;
}

/*
 * Reads a frame of `len_bytes`. data..data_end has its first bytes: all, or fewer if a capture or a
 * driver's first buffer has fewer. *pkt has what was read; all else in it is 0.
 */
PACER_INLINE PACER_MUST_USE enum pacer_parse_result
pacer_parse(const void *data, const void *data_end, __u32 len_bytes, struct pacer_packet *pkt)
{
	if (pacer_parse_fast(data, data_end, len_bytes, pkt))
		return PACER_PARSED;
	return pacer_parse_any(data, data_end, len_bytes, pkt);
}

/* The reason for a result other than PACER_PARSED. */
PACER_INLINE enum pacer_reason pacer_parse_reason(int result)
{
	if (result == PACER_PARSE_NOT_IP)
		return PACER_NOT_IP;
	if (result == PACER_PARSE_TRUNCATED)
		return PACER_TRUNCATED;
	return result == PACER_PARSE_TOO_DEEP ? PACER_TOO_DEEP : PACER_BAD_HEADER;
}

#endif
