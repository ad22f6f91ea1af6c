/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is in tunnels: a table of frames made by hand, each whole, padded, and cut at every byte by
 * the buffer and by the wire; and which rule, and key, such a frame falls under.
 */
#include <stdbool.h>
#include <stdio.h>

#include "oracle.h"

static uint32_t allowed_saddr, banned_saddr; /* 0: none */

#define PACER_IS_ALLOWED(frame, walk, exact) \
	((void)(frame), (void)(exact), allowed_saddr && (walk)->pkt.key[0] == allowed_saddr)
#define PACER_BANNED_BY_TOOL(walk) ((walk)->pkt.key[0] == banned_saddr)
#include "padded.h"
#include "path.h"
#include "plan/compile.h"

#define OUTER4	0xc0000201u /* 192.0.2.1 */
#define INNER4	0x0a000001u /* 10.0.0.1 */
#define OUTER6	0x20010db8u
#define INNER6	0xfd000000u
#define INNER_P (4000u << 16 | 53)
#define NONE	PACER_PARSE_NOT_IP
#define DEEP	PACER_PARSE_TOO_DEEP

struct frame {
	uint8_t b[33000];
	uint32_t n;
	uint32_t l3, l4; /* of the inner packet */
	uint32_t end;	 /* of the first header that has to be there to know of a tunnel */
};

static struct frame frame;

static void put(uint64_t value, int bytes)
{
	while (bytes--)
		frame.b[frame.n++] = bytes < 8 ? (uint8_t)(value >> 8 * bytes) : 0;
}

static void put_at(uint32_t at, uint32_t value)
{
	frame.b[at] = (uint8_t)(value >> 8);
	frame.b[at + 1] = (uint8_t)value;
}

static void put_hex(const char *hex)
{
	unsigned int byte;

	for (; *hex; hex += *hex == ' ' ? 1 : 2)
		if (*hex != ' ' && sscanf(hex, "%2x", &byte) == 1)
			put(byte, 1);
}

/* An IP header, whose length is not written yet. */
static void put_ip(int family, uint8_t proto, uint32_t saddr, uint16_t frag, uint8_t ttl)
{
	if (family == 4) {
		put(0x45000000, 4);
		put(frag, 4);
		put((uint32_t)ttl << 24 | (uint32_t)proto << 16, 4);
		put((uint64_t)saddr << 32 | (saddr + 1), 8);
		return;
	}
	put(0x60000000, 4);
	put((uint32_t)(frag ? 44 : proto) << 8 | ttl, 4);
	for (int i = 0; i < 2; i++) {
		put((uint64_t)saddr << 32, 8);
		put((uint64_t)i + 1, 8);
	}
	if (frag)
		put((uint64_t)proto << 56 | (uint64_t)(frag == 0x2000 ? 1 : 8) << 32 | 7, 8);
}

static void set_length(int family, uint32_t l3)
{
	put_at(l3 + (family == 4 ? 2 : 4), frame.n - l3 - (family == 4 ? 0 : 40));
}

static uint16_t type_of(int family)
{
	return family == 4 ? PACER_ETH_IP4 : PACER_ETH_IP6;
}

#define PPPOE 0 /* in the place of a family */

struct row {
	const char *name;
	int outer; /* 4, 6 or PPPOE */
	uint8_t proto;
	uint16_t dport;
	const char *hex; /* of the tunnel's header; lengths in it are filled in */
	int tags;	 /* -1: no Ethernet header is in it; else so many tags are */
	int inner;
	uint16_t frag;			/* of the outer packet, as in IPv4's header */
	enum pacer_parse_result wanted; /* PACER_PARSED: the inner packet */
};

#define GRE(name, hex, inner)                                   \
	{                                                       \
		name, 4, 47, 0, hex, -1, inner, 0, PACER_PARSED \
	}
#define NO_GRE(name, hex)                           \
	{                                           \
		name, 4, 47, 0, hex, -1, 4, 0, NONE \
	}
#define UDP(name, port, hex, tags)                               \
	{                                                        \
		name, 4, 17, port, hex, tags, 4, 0, PACER_PARSED \
	}
#define NO_UDP(name, port, hex)                        \
	{                                              \
		name, 4, 17, port, hex, -1, 4, 0, NONE \
	}
#define ROUTE	    "080000040a0a0a0a"
#define TAG	    "00008100"
#define FOUR(text)  text text text text
#define EIGHT(text) FOUR(text) FOUR(text)

static const struct row rows[] = {
    GRE("gre", "00000800", 4),
    GRE("gre, IPv6 in it", "000086dd", 6),
    GRE("gre, checksum", "80000800 ffff0000", 4),
    GRE("gre, key", "20000800 00000007", 4),
    GRE("gre, sequence", "10000800 00000001", 4),
    GRE("gre, all of them", "b0000800 ffff0000 00000007 00000001", 4),
    GRE("gre, no routes", "40000800 00000000 00000000", 4),
    GRE("gre, routes, key", "60000800 00000000 00000007" ROUTE ROUTE "00000000", 4),
    GRE("gre, seven routes",
	"40000800 00000000" ROUTE ROUTE ROUTE ROUTE ROUTE ROUTE ROUTE "00000000", 4),
    GRE("gre, recursion and flags that have no length", "07f80800", 4),
    GRE("gre, wccp", "0000883e", 4),
    GRE("gre, wccp with a header", "0000883e 01020304", 4),
    GRE("gre, a tag", "00008100 00000800", 4),
    GRE("gre, two tags, IPv6 in it", "000088a8 00648100 000086dd", 6),
    GRE("gre, sixteen tags", "00008100" EIGHT(TAG) FOUR(TAG) TAG TAG TAG "00000800", 4),
    {"gre over IPv6", 6, 47, 0, "00000800", -1, 4, 0, PACER_PARSED},
    {"gre over IPv6, wccp with a header", 6, 47, 0, "0000883e 01020304", -1, 6, 0, PACER_PARSED},
    {"gre, a frame in it", 4, 47, 0, "20006558 00000100", 0, 6, 0, PACER_PARSED},
    {"ipip", 4, 4, 0, "", -1, 4, 0, PACER_PARSED},
    {"6in4", 4, 41, 0, "", -1, 6, 0, PACER_PARSED},
    {"4in6", 6, 4, 0, "", -1, 4, 0, PACER_PARSED},
    {"6in6", 6, 41, 0, "", -1, 6, 0, PACER_PARSED},
    UDP("vxlan", 4789, "0800000000000100", 0),
    UDP("vxlan, Linux's port", 8472, "0800000000000100", 0),
    UDP("vxlan, group", 4789, "8800000700000100", 0),
    UDP("vxlan, two tags", 4789, "0800000000000100", 2),
    UDP("vxlan, sixteen tags", 4789, "0800000000000100", 16),
    {"vxlan over IPv6, IPv6 in it", 6, 17, 4789, "0800000000000100", 0, 6, 0, PACER_PARSED},
    UDP("geneve", 6081, "0000655800000100", 0),
    UDP("geneve, options", 6081, "0240655800000100 0102030000000000", 0),
    UDP("geneve, 252 bytes of options", 6081,
	"3f00655800000100" EIGHT(EIGHT("00000000")) /* less the last four */, 0),
    UDP("geneve, no frame in it", 6081, "0000080000000100", -1),
    UDP("gtpu", 2152, "30ff000000000001", -1),
    UDP("gtpu, sequence", 2152, "32ff000000000001 00010000", -1),
    UDP("gtpu, number, the next type unused", 2152, "31ff000000000001 00000185", -1),
    UDP("gtpu, an extension", 2152, "34ff000000000001 00000085 01100000", -1),
    UDP("gtpu, eight extensions", 2152,
	"34ff000000000001 00000085 01000085 01000085 01000085 02000000000000c0 010000c0 010000c0"
	"010000c0 01000000",
	-1),
    UDP("gtpu, the bit of GTP' in its flags", 2152, "20ff000000000001", -1),
    {"gtpu, IPv6 in it", 4, 17, 2152, "30ff000000000001", -1, 6, 0, PACER_PARSED},
    {"pppoe", PPPOE, 0, 0, "110000010000 0021", -1, 4, 0, PACER_PARSED},
    {"pppoe, IPv6", PPPOE, 0, 0, "110000010000 0057", -1, 6, 0, PACER_PARSED},
    {"pppoe, a protocol of one byte", PPPOE, 0, 0, "110000010000 21", -1, 4, 0, PACER_PARSED},
    {"a first fragment, gre", 4, 47, 0, "00000800", -1, 4, 0x2000, PACER_PARSED},
    {"a first fragment, vxlan over IPv6", 6, 17, 4789, "0800000000000100", 0, 4, 0x2000,
     PACER_PARSED},
    {"a first fragment, odd", 4, 47, 0, "00000800", -1, 4, 0x2000, DEEP},
    {"a later fragment, gre", 4, 47, 0, "00000800", -1, 4, 1, NONE},
    {"a later fragment, IPv6", 6, 47, 0, "00000800", -1, 4, 1, NONE},
    NO_GRE("pptp", "3001880b 00000007 00000001"),
    NO_GRE("gre, version 1 with IP's type", "00010800"),
    NO_GRE("gre, arp", "00000806"),
    NO_GRE("gre, no type", "00000000"),
    NO_GRE("gre, erspan", "100088be 00000001"),
    NO_GRE("gre, its type is of the other family", "000086dd"),
    NO_GRE("gre, a tag, arp", "00008100 00000806"),
    NO_GRE("gre, wccp with a key", "2000883e 00000007"),
    {"gre over IPv6, wccp", 6, 47, 0, "0000883e", -1, 6, 0, NONE}, /* Linux skips four bytes */
    {"gre over IPv6, wccp, IPv4 in it", 6, 47, 0, "0000883e", -1, 4, 0, NONE},
    {"gre over IPv6, wccp with a header, IPv4 in it", 6, 47, 0, "0000883e 01020304", -1, 4, 0,
     NONE},
    {"gre, eight routes", 4, 47, 0, "40000800 00000000" EIGHT(ROUTE) "00000000", -1, 4, 0, DEEP},
    NO_UDP("vxlan without its number", 4789, "0000000000000100 020000000001020000000002 0800"),
    NO_UDP("geneve, version 1", 6081, "4000080000000100"),
    NO_UDP("geneve, arp", 6081, "0000080600000100"),
    NO_UDP("gtpu, version 2", 2152, "50ff000000000001"),
    NO_UDP("gtp', no user's packet", 2152, "20f0000000000001"),
    NO_UDP("gtpu, echo request", 2152, "3001000000000001"),
    NO_UDP("gtpu, an extension of no length", 2152, "34ff000000000001 00000085 00000000"),
    {"gtpu, nine extensions", 4, 17, 2152, "34ff000000000001 00000085" EIGHT("01000085") "01000000",
     -1, 4, 0, DEEP},
    {"gtpu, a flag for extensions, and none", 4, 17, 2152, "34ff000000000001 00000000 01000000", -1,
     4, 0, DEEP},
    {"gre, seventeen tags", 4, 47, 0, "00008100" EIGHT(TAG) EIGHT(TAG) "00000800", -1, 4, 0, DEEP},
    {"vxlan, seventeen tags", 4, 17, 4789, "0800000000000100", 17, 4, 0, DEEP},
    NO_UDP("another port", 53, "0800000000000100"),
    {"tcp", 4, 6, 2152, "30ff000000000001", -1, 4, 0, NONE},
    {"pppoe, lcp", PPPOE, 0, 0, "110000010000 c021", -1, 4, 0, NONE},
};

/* The inner packet: UDP from port 4000 to 53, four bytes of payload, TTL 7. */
static void put_inner(const struct row *r)
{
	if (r->tags >= 0) {
		put(0x020000000001, 6);
		put(0x020000000002, 6);
		for (int i = 0; i < r->tags; i++)
			put(0x81000064, 4);
		put(type_of(r->inner), 2);
	}
	frame.l3 = frame.n;
	put_ip(r->inner, 17, r->inner == 4 ? INNER4 : INNER6, 0, 7);
	frame.l4 = frame.n;
	put(INNER_P, 4);
	put(12 << 16, 4);
	put(0xdeadbeef, 4);
	set_length(r->inner, frame.l3);
}

static void make(const struct row *r)
{
	uint32_t l3, l4, tunnel;

	memset(&frame, 0, sizeof(frame));
	put(0x0200000000ff, 6);
	put(0x0200000000fe, 6);
	put(0x81000007, 4);
	put(r->outer == PPPOE ? PACER_ETH_PPPOE : type_of(r->outer), 2);
	l3 = frame.n;
	if (r->outer != PPPOE)
		put_ip(r->outer, r->proto, r->outer == 4 ? OUTER4 : OUTER6, r->frag, 64);
	l4 = frame.n;
	if (r->dport)
		put(50000u << 16 | r->dport, 4);
	if (r->proto == 17)
		put(0, 4);
	tunnel = frame.n;
	put_hex(r->hex);
	if (strstr(r->name, "252"))
		frame.n -= 4;
	put_inner(r);
	while (r->frag == 0x2000 && r->wanted == PACER_PARSED && (frame.n - l4) % 8)
		put(0, 1);
	if (r->proto == 17)
		put_at(tunnel - 4, frame.n - tunnel + 8);
	if (r->dport == 2152)
		put_at(tunnel + 2, frame.n - tunnel - 8);
	if (r->outer == PPPOE)
		put_at(l3 + 4, frame.n - l3 - 6);
	else
		set_length(r->outer, l3);
	frame.end = tunnel;
}

/* What is said of the first n bytes, of a frame of len_bytes; *w->pkt is the inner packet then. */
static enum pacer_parse_result look(uint32_t n, uint32_t len_bytes, struct pacer_walk *w)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct pacer_frame f = {copy, copy + n, len_bytes, 1};
	struct pacer_tunnel t = {0, 0, 0, PACER_PARSED};
	enum pacer_parse_result result;

	assert_non_null(copy);
	memcpy(copy, frame.b, n);
	memset(w, 0, sizeof(*w));
	result = pacer_parse(f.data, f.end, len_bytes, &w->pkt);
	if (result == PACER_PARSED || result == PACER_PARSE_NOT_IP) {
		pacer_tunnel_find(&f, w, &t);
		result = t.said;
		if (result == PACER_PARSED)
			result = pacer_inner_parse(&f, w, &t);
	} else {
		result = PACER_PARSE_TRUNCATED; /* none of these rules is for it */
	}
	free(copy);
	return result;
}

static void inner_is(const struct row *r, const struct pacer_packet *pkt, bool ports, uint32_t len)
{
	uint32_t saddr = r->inner == 4 ? INNER4 : INNER6;

	assert_int_equal(pkt->family, r->inner == 4 ? PACER_FAMILY_4 : PACER_FAMILY_6);
	assert_int_equal(pkt->key[PACER_WORD_SADDR], saddr);
	assert_int_equal(pkt->key[PACER_WORD_DADDR + (r->inner == 4 ? 0 : 3)],
			 r->inner == 4 ? INNER4 + 1 : 2);
	assert_int_equal(pkt->proto, 17);
	assert_int_equal(pkt->key[PACER_WORD_PORTS], ports ? INNER_P : 0);
	assert_int_equal(pkt->ports, ports ? PACER_PORTS_READ : PACER_PORTS_UNKNOWN);
	assert_int_equal(pkt->fragment, PACER_FRAG_NONE);
	assert_int_equal(pkt->l3, frame.l3);
	assert_int_equal(pkt->l4, frame.l4);
	assert_int_equal(pkt->inner, 1);
	assert_int_equal(pkt->vlan, 7); /* the frame's */
	assert_int_equal(pkt->len_bytes, len);
}

static void test_rows(void **unused)
{
	struct pacer_walk w;

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		enum pacer_parse_result result;

		make(r);
		result = look(frame.n, frame.n, &w);
		if (result != r->wanted)
			fail_msg("%s: %d, not %d", r->name, result, r->wanted);
		if (result == PACER_PARSED)
			inner_is(r, &w.pkt, true, frame.n);
		result = look(frame.n + 30, frame.n + 30, &w); /* behind a first fragment is none */
		if (result != (r->frag == 0x2000 ? DEEP : r->wanted))
			fail_msg("%s, padded: %d", r->name, result);
	}
}

/* The buffer ends early: the addresses are known or not; the ports are known or not. */
static void test_buffer(void **unused)
{
	struct pacer_walk w;

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];

		if (r->wanted != PACER_PARSED)
			continue;
		make(r);
		for (uint32_t n = frame.end; n < frame.n; n++) {
			uint32_t addresses = frame.l3 + (r->inner == 4 ? 20 : 40);
			enum pacer_parse_result result = look(n, frame.n, &w);

			if (result != (n < addresses ? DEEP : PACER_PARSED))
				fail_msg("%s: %u bytes: %d", r->name, n, result);
			if (result == PACER_PARSED)
				inner_is(r, &w.pkt, n >= frame.l4 + 4, frame.n);
		}
	}
}

/* The frame ends early: no stack takes the outer packet; of a PPPoE session, what is in it. */
static void test_wire(void **unused)
{
	struct pacer_walk w;

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		make(&rows[i]);
		for (uint32_t n = 0; n < frame.n; n++)
			if (look(n, n, &w) == PACER_PARSED)
				fail_msg("%s: %u bytes are taken", rows[i].name, n);
	}
}

static const struct row *row_of(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	fail_msg("%s", name);
	return NULL;
}

/* Lengths that lie: the inner packet's, UDP's, GTP-U's, PPPoE's, an option's. */
static void test_lies(void **unused)
{
	static const struct {
		const char *name;
		int at; /* of a length, from the outer IP header, or less than 0: from the inner one
			 */
		int more;
		enum pacer_parse_result wanted;
	} lies[] = {
	    {"gre", -1, 1, NONE},
	    {"gre", -1, -1, PACER_PARSED}, /* padding behind it */
	    {"gre", -1, -13, NONE},	   /* no room for the header */
	    {"ipip", -1, 1000, NONE},
	    {"vxlan", 24, 1, NONE},  /* UDP's is beyond the packet */
	    {"vxlan", 24, -1, NONE}, /* ... ends within the inner packet */
	    {"gtpu", 24, -1, NONE},
	    {"gtpu", 30, 1, PACER_PARSED}, /* Linux does not look at it */
	    {"gtpu", 30, -1, PACER_PARSED},
	    {"gtpu", 30, 0xf000, PACER_PARSED},
	    {"pppoe", 4, 1, NONE},
	    {"pppoe", 4, -1, NONE},
	    {"geneve", -1, 1, NONE},
	    {"a first fragment, gre", -1, 1000, PACER_PARSED}, /* the rest is in another */
	};
	struct pacer_walk w;

	(void)unused;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		enum pacer_parse_result result;
		uint32_t at;

		make(row_of(lies[i].name));
		at = lies[i].at < 0 ? frame.l3 + 2 : 18 + (uint32_t)lies[i].at;
		put_at(at, pacer_be16(frame.b + at) + (uint32_t)lies[i].more);
		result = look(frame.n, frame.n, &w);
		if (result != lies[i].wanted)
			fail_msg("%s, %d at %d: %d", lies[i].name, lies[i].more, lies[i].at,
				 result);
	}
	make(row_of("vxlan"));
	put_at(18 + 24, 7); /* UDP's is less than its header */
	assert_int_equal(look(frame.n, frame.n, &w), NONE);
	put_at(18 + 24, 0); /* and none: IPv4 has no jumbograms */
	assert_int_equal(look(frame.n, frame.n, &w), NONE);
	make(row_of("vxlan over IPv6, IPv6 in it"));
	put_at(18 + 44, 0); /* none, as of a jumbogram: Linux takes what there is */
	assert_int_equal(look(frame.n, frame.n, &w), PACER_PARSED);
}

/* What is wrong behind the inner addresses, which a router does not see. */
static const struct wrong {
	const char *name;  /* of a row */
	int len, proto;	   /* of the inner packet behind its header */
	int options;	   /* bytes that its extension header says to have */
	bool known, first; /* the protocol is read; of a first fragment */
} behind[] = {
    {"gre", 3, 17, 0, true, false},	{"gre", 0, 6, 0, true, false},
    {"ipip", 2, 132, 0, true, true},	{"vxlan", 0, 17, 0, true, false},
    {"pppoe", 3, 6, 0, true, false},	{"6in4", 3, 17, 0, true, false},
    {"6in4", 7, 60, 8, false, false},	{"4in6", 3, 17, 0, true, false},
    {"6in6", 0, 43, 8, false, false},	{"6in6", 12, 60, 16, false, false},
    {"6in4", 11, 51, 12, false, false}, {"pppoe, IPv6", 12, 0, 2048, false, false},
};

static void make_wrong(const struct wrong *b)
{
	const struct row *r = row_of(b->name);

	make(r);
	if (r->inner == 4) {
		put_at(frame.l3 + 2, 20 + (uint32_t)b->len);
		frame.b[frame.l3 + 9] = (uint8_t)b->proto;
		put_at(frame.l3 + 6, b->first ? 0x2000 : 0);
	} else {
		put_at(frame.l3 + 4, (uint32_t)b->len);
		frame.b[frame.l3 + 6] = (uint8_t)b->proto;
		frame.b[frame.l4] = 17;
		frame.b[frame.l4 + 1] =
		    (uint8_t)(b->proto == 51 ? b->options / 4 - 2 : b->options / 8 - 1);
	}
}

static void test_wrong_behind(void **unused)
{
	struct pacer_walk w;

	(void)unused;
	for (size_t i = 0; i < sizeof(behind) / sizeof(*behind); i++) {
		const struct wrong *b = &behind[i];

		make_wrong(b);
		if (look(frame.n, frame.n, &w) != PACER_PARSED)
			fail_msg("%zu: %s", i, b->name);
		assert_true(w.pkt.key[0] == INNER4 || w.pkt.key[0] == INNER6);
		assert_int_equal(w.pkt.proto, b->known ? b->proto : 0);
		assert_int_equal(w.pkt.ports, b->known ? PACER_PORTS_UNKNOWN : PACER_PORTS_ANY);
		assert_int_equal(w.pkt.key[PACER_WORD_PORTS], 0);
		assert_int_equal(w.pkt.key[PACER_WORD_META],
				 PACER_META_PART | w.pkt.proto | pacer_meta_vlan(7));
	}
}

/* An inner packet as of a jumbogram, which has no length: it ends where the tunnel does. */
static void test_no_length(void **unused)
{
	struct pacer_walk w;
	uint32_t i;

	(void)unused;
	make(row_of("6in6"));
	put_at(frame.l3 + 4, 0);
	assert_int_equal(look(frame.n, frame.n, &w), PACER_PARSED);
	assert_int_equal(w.pkt.ports, PACER_PORTS_UNKNOWN); /* there is no room for them */
	for (i = 0; i < 2; i++) {
		make(row_of("6in6"));
		frame.b[frame.l3 + 6] = 0; /* options, in the place of its ports */
		memcpy(frame.b + frame.l4, "\x3b\0\1\4\0\0\0", 8);
		if (i)
			put_at(frame.l3 + 4, 0);
		assert_int_equal(look(frame.n, frame.n, &w), PACER_PARSED);
		assert_int_equal(w.pkt.proto, 59);
		/* The padding is none of it, and to know that it would have to know its length. */
		assert_int_equal(look(frame.n + 30, frame.n + 30, &w), i ? DEEP : PACER_PARSED);
	}
	make(row_of("ipip"));
	put_at(frame.l3 + 4, 0); /* of IPv4 it is the identification */
	frame.b[frame.l3 + 6] = 0;
	assert_int_equal(look(frame.n + 30, frame.n + 30, &w), PACER_PARSED);
}

/* So many bytes of destination options of IPv6, a multiple of 8, before this protocol. */
static void put_options(uint32_t bytes, uint8_t proto)
{
	while (bytes) {
		uint32_t n = bytes < 2048 ? bytes : 2048;

		bytes -= n;
		put(bytes ? 60 : proto, 1);
		put(n / 8 - 1, 1);
		frame.n += n - 2;
	}
}

/* Headers as long as headers can be. Beyond 32 KiB nothing could be read of what follows. */
static void test_far(void **unused)
{
	static const struct {
		uint32_t outer, inner;
		enum pacer_parse_result wanted;
	} far[] = {
	    {12184, 16384, PACER_PARSED},
	    {12192, 16384, DEEP}, /* what follows is beyond PACER_INNER_LAST */
	    {16272, 16384, DEEP}, /* ... and would be read at the frame's beginning */
	    {16320, 8, PACER_PARSED},
	    {16328, 8, DEEP}, /* the inner header is beyond PACER_INNER_DEEPEST */
	};
	struct pacer_walk w;

	(void)unused;
	for (size_t i = 0; i < sizeof(far) / sizeof(*far); i++) {
		memset(&frame, 0, sizeof(frame));
		put(PACER_ETH_IP6, 14);
		put_ip(6, 60, OUTER6, 0, 64);
		put_options(far[i].outer, 47);
		put(PACER_ETH_IP6, 4);
		frame.l3 = frame.n;
		put_ip(6, 60, INNER6, 0, 7);
		put_options(far[i].inner, 17);
		put(INNER_P, 4);
		put(8 << 16, 4);
		set_length(6, frame.l3);
		set_length(6, 14);
		assert_int_equal(look(frame.n, frame.n, &w), far[i].wanted);
		if (far[i].wanted == PACER_PARSED)
			assert_int_equal(w.pkt.key[PACER_WORD_PORTS], INNER_P);
	}
}

/* ---- rules ---- */

static struct pacer_policy bin;

static uint32_t pads; /* rules before each of the policy's */

static void compile(const char *rules)
{
	const char *text = padded(rules, pads);
	static struct plan plan;
	struct compile_host host = {0, 1, 1};
	struct policy_error error = {0};
	struct policy *policy = policy_parse(text, strlen(text), &error);

	if (!policy || compile_policy(policy, NULL, &host, &bin, &plan, &error))
		fail_msg("%s", error.text);
	policy_free(policy);
	allowed_saddr = banned_saddr = 0;
}

/* The rule that the first n bytes fall under; PACER_RULES_MAX: none. */
static uint32_t rule_of(uint32_t n, uint32_t *outcome, struct pacer_walk *w)
{
	struct pacer_state state = {.policy = &bin};
	struct pacer_frame f = {frame.b, frame.b + n, frame.n, 5};

	*w = (struct pacer_walk){.state = &state};
	*outcome = pacer_path_begin(&f, w, &bin);
	if (pacer_outcome_reason(*outcome) != PACER_ALLOWED)
		*outcome = pacer_path_rule(&f, w, *outcome);
	w->state = NULL;
	return pacer_outcome_undecided(*outcome) ? unpadded(w->pkt.found, pads, PACER_RULES_MAX)
						 : PACER_RULES_MAX;
}

#define LIMIT "limits: [{key: src/32,64, rate: 10/s, burst: 5}]}\n"

static const char three[] =
    "rules:\n"
    "- {name: a, match: {inner: yes, dport: 53, ttl: 7, vlan: 7}, " LIMIT
    "- {name: b, match: {proto: gre}, " LIMIT "- {name: c, match: {inner: yes}, " LIMIT;

/* The first rule counts, of the outer packet or of the inner. */
static void test_rules(void **unused)
{
	struct pacer_walk w;
	uint32_t outcome;

	(void)unused;
	compile(three);
	make(row_of("gre"));
	assert_int_equal(rule_of(frame.n, &outcome, &w), 0);
	assert_int_equal(w.pkt.key[0], INNER4);
	frame.b[frame.l4 + 3] = 54; /* another port: it is the outer packet's rule */
	assert_int_equal(rule_of(frame.n, &outcome, &w), 1);
	assert_int_equal(w.pkt.key[0], OUTER4);
	assert_int_equal(w.pkt.inner, 0);
	make_wrong(&behind[0]); /* its ports are not there, and exclude it from no rule */
	assert_int_equal(rule_of(frame.n, &outcome, &w), 0);
	assert_int_equal(w.pkt.key[0], INNER4);
	make(row_of("pppoe"));
	assert_int_equal(rule_of(frame.n, &outcome, &w), 0);
	assert_int_equal(w.now_ns, 5);
	frame.b[frame.l4 + 3] = 54;
	assert_int_equal(rule_of(frame.n, &outcome, &w), 2);
	make(row_of("pppoe, lcp"));
	assert_int_equal(rule_of(frame.n, &outcome, &w), PACER_RULES_MAX);
	assert_int_equal(outcome, PACER_NOT_IP);
	make(row_of("another port"));
	assert_int_equal(rule_of(frame.n, &outcome, &w), PACER_RULES_MAX);
	assert_int_equal(outcome, PACER_UNDECIDED); /* and then no rule */
	make(row_of("a later fragment, gre"));
	assert_int_equal(rule_of(frame.n, &outcome, &w), 1);
}

/* What may be in a tunnel, but is out of reach, is denied; not for a rule that passes. */
static void test_deep(void **unused)
{
	static const char *const others[] = {"vlan: 8", "vlan: none", "len: 1000-65535",
					     "ether_src: 02:00:00:00:00:01"};
	struct pacer_walk w;
	uint32_t outcome;
	char text[512];

	(void)unused;
	compile(three);
	make(row_of("gre, eight routes"));
	(void)rule_of(frame.n, &outcome, &w);
	assert_int_equal(outcome, PACER_TOO_DEEP);
	make(row_of("gre"));
	(void)rule_of(frame.l3 + 19, &outcome, &w);
	assert_int_equal(outcome, PACER_TOO_DEEP);
	(void)rule_of(frame.l3 - 2, &outcome, &w);
	assert_int_equal(outcome, PACER_TOO_DEEP);
	compile("rules:\n"
		"- {name: b, match: {proto: gre}, " LIMIT
		"- {name: c, match: {inner: yes}, " LIMIT);
	assert_int_equal(rule_of(frame.l3 + 19, &outcome, &w), 0); /* it comes before */
	/* Nor for one that the frame does not fall under. */
	for (size_t i = 0; i < ARRAY(others); i++) {
		snprintf(text, sizeof(text),
			 "rules:\n"
			 "- {name: c, match: {inner: yes, %s}, " LIMIT
			 "- {name: b, match: {proto: gre}, " LIMIT,
			 others[i]);
		compile(text);
		make(row_of("gre"));
		assert_int_equal(rule_of(frame.l3 + 19, &outcome, &w), 1);
		assert_int_equal(rule_of(frame.l3 - 2, &outcome, &w), 1); /* within GRE */
	}
	compile("rules:\n"
		"- {name: c, match: {inner: yes, dport: 53}, verdict: pass}\n"
		"- {name: b, match: {proto: gre}, " LIMIT);
	assert_int_equal(rule_of(frame.l3 + 19, &outcome, &w), 1);
	assert_int_equal(rule_of(frame.l4 + 3, &outcome, &w), 1); /* nor without its ports */
	assert_int_equal(rule_of(frame.l4 + 4, &outcome, &w), 0);
	make_wrong(&behind[0]);
	assert_int_equal(rule_of(frame.n, &outcome, &w), 1);
}

/* What the whole frame is asked for counts beside what is in the tunnel. */
static void test_frames(void **unused)
{
	struct pacer_walk w;
	uint32_t outcome;

	(void)unused;
	compile("rules:\n"
		"- {name: long, match: {inner: yes, len: 1000-65535}, " LIMIT
		"- {name: other, match: {inner: yes, ether_src: 02:00:00:00:00:01}, " LIMIT
		"- {name: short, match: {inner: yes, len: 0-999}, " LIMIT);
	make(row_of("gre"));
	assert_int_equal(rule_of(frame.n, &outcome, &w), 2);
	frame.b[11] = 1; /* its source address */
	assert_int_equal(rule_of(frame.n, &outcome, &w), 1);
	frame.n = 1000;
	assert_int_equal(rule_of(frame.n, &outcome, &w), 0);
}

/* A frame of which nothing says that there is a tunnel, and one of which that cannot be known. */
static void test_no_tunnel(void **unused)
{
	struct pacer_walk w;
	uint32_t l4, n;

	(void)unused;
	make(row_of("vxlan"));
	l4 = frame.end - 8;
	for (n = l4; n < l4 + 4; n++)
		assert_int_equal(look(n, frame.n, &w), DEEP); /* its ports are not there */
	put_at(16, 0x0806);
	assert_int_equal(look(frame.n, frame.n, &w), NONE);
	/* Behind more headers than are read. */
	memset(&frame, 0, sizeof(frame));
	put(0, 12);
	put(PACER_ETH_IP6, 2);
	put_ip(6, 60, OUTER6, 0, 64);
	for (n = 0; n < 40; n++)
		put((uint64_t)(n < 39 ? 60 : 47) << 56 | 0x00010400000000, 8);
	put_hex("00000800");
	set_length(6, 14);
	assert_int_equal(look(frame.n, frame.n, &w), DEEP);
	assert_int_equal(w.pkt.ports, PACER_PORTS_ANY);
}

/* Who is let through, and who is banned, by the outer source and by the inner one. */
static void test_sources(void **unused)
{
	struct pacer_walk w;
	uint32_t outcome;

	(void)unused;
	compile(three);
	make(row_of("gre"));
	allowed_saddr = OUTER4;
	(void)rule_of(frame.n, &outcome, &w);
	assert_int_equal(outcome, PACER_ALLOWED);
	allowed_saddr = INNER4; /* of the rules for what is in tunnels, and of no others */
	assert_int_equal(rule_of(frame.n, &outcome, &w), 1);
	allowed_saddr = 0;
	banned_saddr = OUTER4;
	bin.flags |= PACER_TOOLS;
	assert_int_equal(rule_of(frame.n, &outcome, &w), 1);
	w.state = &(struct pacer_state){.policy = &bin};
	assert_true(pacer_walk_source_denied(&w));
	banned_saddr = INNER4;
	assert_int_equal(rule_of(frame.n, &outcome, &w), 0);
	w.state = &(struct pacer_state){.policy = &bin};
	assert_true(pacer_walk_source_denied(&w));
	banned_saddr = 0;
	allowed_saddr = INNER4; /* so that *w is the outer packet */
	assert_int_equal(rule_of(frame.n, &outcome, &w), 1);
	allowed_saddr = 0;
	w.state = &(struct pacer_state){.policy = &bin};
	w.pkt.found = PACER_RULE_ALLOWED; /* a set of the allow-list has its source */
	assert_int_equal(
	    pacer_path_inner(&(struct pacer_frame){frame.b, frame.b + frame.n, frame.n, 1}, &w),
	    PACER_PARSED);
	assert_int_equal(w.pkt.found, PACER_RULE_ALLOWED);
}

/* ---- */

/* The same, where the rules are the 61st, the 122nd and the 183rd. */
static void test_many_rules(void **unused)
{
	pads = 60;
	test_rules(unused);
	test_deep(unused);
	test_frames(unused);
	test_sources(unused);
	pads = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),	 cmocka_unit_test(test_buffer),
	    cmocka_unit_test(test_wire),	 cmocka_unit_test(test_lies),
	    cmocka_unit_test(test_wrong_behind), cmocka_unit_test(test_rules),
	    cmocka_unit_test(test_deep),	 cmocka_unit_test(test_sources),
	    cmocka_unit_test(test_many_rules),	 cmocka_unit_test(test_frames),
	    cmocka_unit_test(test_no_tunnel),	 cmocka_unit_test(test_no_length),
	    cmocka_unit_test(test_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
