/* SPDX-License-Identifier: GPL-2.0-only */
/* The parser, on frames built byte by byte, each cut at every byte, and on garbage. */
#include "oracle.h"

#include "parse.h"

#define SADDR4 0xc0000201u
#define DADDR4 0xc6336402u
#define SPORT  0x1234u
#define DPORT  0x0035u
#define ID4    0xbeefu
#define ID6    0xdecade01u
#define EXTS   10
#define TAGS   (PACER_PARSE_TAGS + 2)

/* What a frame is made of. */
struct recipe {
	uint16_t tag[TAGS]; /* ethertypes, 0: none */
	uint8_t priority;   /* so many of them, from the first on, are of VLAN 0 */
	uint8_t family;	    /* 4, 6, or 0: ARP */
	uint8_t options;    /* words of IPv4 options */
	uint16_t frag4;	    /* flags and offset as in the header */
	uint8_t n_ext, ext[EXTS], ext_len;
	uint16_t frag6; /* offset and M flag as in the header */
	uint8_t proto;
};

/* The frame, what is to be read from it, and how many of its bytes that takes; how many its
 * addresses take (`base`), and its protocol (`chain`).
 */
struct frame {
	uint8_t b[1024];
	uint32_t n, l3, base, chain, need;
	enum pacer_parse_result result;
	struct pacer_packet pkt;
};

static void put(struct frame *f, uint64_t v, int bytes)
{
	while (bytes--)
		f->b[f->n++] = v >> 8 * bytes;
}

static void need(struct frame *f, uint32_t more)
{
	f->need = f->n + more;
}

static void put_ethernet(struct frame *f, const struct recipe *r)
{
	uint16_t h_proto = r->family == 4 ? 0x0800 : r->family == 6 ? 0x86dd : 0x0806;
	int i;

	put(f, 0x020000000001, 6);
	put(f, 0x020000000002, 6);
	f->pkt.vlan = PACER_VLAN_NONE;
	need(f, 2);
	for (i = 0; i < (int)TAGS && r->tag[i]; i++) {
		uint16_t vlan = i < r->priority ? 0 : i == r->priority ? 0xabc : 0x111;

		put(f, r->tag[i], 2);
		if (i < PACER_PARSE_TAGS)
			need(f, 4);
		if (i < PACER_PARSE_TAGS && i == r->priority)
			f->pkt.vlan = 0xabc;
		put(f, 0xe000 | vlan, 2); /* priority and DEI are not the VLAN's */
	}
	put(f, h_proto, 2);
	f->l3 = f->pkt.l3 = f->n;
	f->base = f->chain = f->need;
	if (!r->family)
		f->result = PACER_PARSE_NOT_IP;
	if (i > PACER_PARSE_TAGS)
		f->result = PACER_PARSE_TOO_DEEP;
}

static uint32_t vlan_word(uint16_t vlan)
{
	return vlan == PACER_VLAN_NONE ? 0 : (uint32_t)vlan << 10;
}

static int has_ports(uint8_t proto)
{
	return proto == 6 || proto == 17 || proto == 132;
}

static void put_payload(struct frame *f, uint8_t proto, int later, uint32_t id)
{
	int ports = has_ports(proto);

	f->pkt.proto = proto;
	f->pkt.key[PACER_WORD_META] = vlan_word(f->pkt.vlan) | proto | (later ? 0x100 : 0);
	f->pkt.key[PACER_WORD_PORTS] = later ? id : ports ? SPORT << 16 | DPORT : 0;
	f->pkt.ports = !ports ? PACER_PORTS_NONE : later ? PACER_PORTS_UNKNOWN : PACER_PORTS_READ;
	f->chain = f->need;
	if (f->result == PACER_PARSED && ports && !later)
		need(f, 4);
	put(f, SPORT, 2);
	put(f, DPORT, 2);
	put(f, 0x1122334455667788, 8);
}

static void put_ip4(struct frame *f, const struct recipe *r)
{
	int later = r->frag4 & 0x1fff, i;

	if (f->result == PACER_PARSED)
		need(f, 20);
	f->base = f->need;
	put(f, 0x45 + r->options, 1);
	put(f, 0x10, 1);
	put(f, 20 + 4 * r->options + 12, 2);
	put(f, ID4, 2);
	put(f, r->frag4, 2);
	put(f, 64, 1);
	put(f, r->proto, 1);
	put(f, 0x5555, 2);
	put(f, SADDR4, 4);
	put(f, DADDR4, 4);
	for (i = 0; i < r->options; i++)
		put(f, 0x01010101, 4);
	f->pkt.family = PACER_FAMILY_4;
	f->pkt.options = r->options > 0;
	f->pkt.l4 = f->n;
	f->pkt.key[PACER_WORD_SADDR] = SADDR4;
	f->pkt.key[PACER_WORD_DADDR] = DADDR4;
	f->pkt.fragment = later ? PACER_FRAG_LATER : r->frag4 & 0x2000 ? PACER_FRAG_FIRST : 0;
	if (f->result == PACER_PARSED && has_ports(r->proto) && !later)
		need(f, 0); /* the options are passed over for the ports alone */
	put_payload(f, r->proto, later, ID4);
	f->chain = f->base;
}

/* The packet has more headers than are followed. */
static void read_in_part(struct pacer_packet *pkt, enum pacer_ports ports)
{
	if (ports == PACER_PORTS_ANY)
		pkt->proto = 0;
	pkt->ports = ports;
	pkt->key[PACER_WORD_META] = vlan_word(pkt->vlan) | 0x200 | pkt->proto;
	pkt->key[PACER_WORD_PORTS] = 0;
}

/* One extension header. Returns 1 where what follows is not looked at any more. */
static int put_extension(struct frame *f, const struct recipe *r, uint8_t type, uint8_t next)
{
	uint32_t len = type == 44 ? 8 : type == 51 ? 4 * (r->ext_len + 3) : 8 * (r->ext_len + 1);
	uint32_t end = f->n + len;

	if (f->result == PACER_PARSED)
		need(f, 8);
	put(f, next, 1);
	if (type == 44) {
		put(f, 0xff, 1); /* reserved: a length elsewhere */
		put(f, r->frag6, 2);
		put(f, ID6, 4);
		f->pkt.fragment = r->frag6 & 0xfff8 ? PACER_FRAG_LATER
				  : r->frag6 & 1    ? PACER_FRAG_FIRST
						    : f->pkt.fragment;
		f->pkt.proto = next;
		if (f->pkt.fragment != PACER_FRAG_LATER)
			f->pkt.l4 = f->n;
		return f->pkt.fragment == PACER_FRAG_LATER;
	}
	put(f, type == 51 ? r->ext_len + 1 : r->ext_len, 1);
	while (f->n < end)
		put(f, 0xee, 1);
	f->pkt.l4 = f->n;
	f->pkt.options |= type != 51;
	return 0;
}

static void put_ip6(struct frame *f, const struct recipe *r)
{
	uint32_t at = f->n, i, n, later = 0;

	if (f->result == PACER_PARSED)
		need(f, 40);
	f->base = f->need;
	put(f, 0x6a912345, 4);
	put(f, 0, 2); /* the payload's length, below */
	put(f, r->n_ext ? r->ext[0] : r->proto, 1);
	put(f, 64, 1);
	for (i = 0; i < 8; i++) {
		f->pkt.key[i] = 0x20010db8 + 0x01010101 * i;
		put(f, f->pkt.key[i], 4);
	}
	f->pkt.family = PACER_FAMILY_6;
	f->pkt.l4 = f->n;
	for (i = 0; i < r->n_ext && i < PACER_PARSE_HEADERS && !later; i++)
		later = put_extension(f, r, r->ext[i], i + 1 < r->n_ext ? r->ext[i + 1] : r->proto);
	n = f->need;
	put_payload(f, later ? f->pkt.proto : r->proto, later, ID6);
	if (later) { /* its protocol is the first fragment's to say */
		f->pkt.proto = 0;
		f->pkt.ports = PACER_PORTS_ANY;
		f->pkt.key[PACER_WORD_META] = vlan_word(f->pkt.vlan) | 0x100;
	}
	if (!later && i < r->n_ext) {
		read_in_part(&f->pkt, PACER_PORTS_ANY);
		f->need = n;
	}
	f->b[at + 4] = (f->n - at - 40) >> 8;
	f->b[at + 5] = f->n - at - 40;
}

static void build(struct frame *f, const struct recipe *r)
{
	memset(f, 0, sizeof(*f));
	put_ethernet(f, r);
	if (r->family == 4)
		put_ip4(f, r);
	else if (r->family == 6)
		put_ip6(f, r);
	else
		put(f, 0x0001080006040001, 8);
	f->pkt.len_bytes = f->n;
}

/* The first n bytes of b, where what lies beyond them is nobody's. */
static enum pacer_parse_result parse(const uint8_t *b, uint32_t n, uint32_t len_bytes,
				     struct pacer_packet *pkt)
{
	uint8_t *copy = malloc(n ? n : 1);
	enum pacer_parse_result result;

	assert_non_null(copy);
	memcpy(copy, b, n);
	memset(pkt, 0x5a, sizeof(*pkt));
	result = pacer_parse(copy, copy + n, len_bytes, pkt);
	free(copy);
	return result;
}

/* What is to be read where the buffer ends after n bytes of the frame. */
static enum pacer_parse_result in_buffer(const struct frame *f, uint32_t n,
					 struct pacer_packet *pkt)
{
	*pkt = f->pkt;
	if (n >= f->need)
		return f->result;
	if (n < f->base)
		return PACER_PARSE_TOO_DEEP;
	if (n < f->chain)
		pkt->fragment = PACER_FRAG_NONE;
	read_in_part(pkt, n < f->chain ? PACER_PORTS_ANY : PACER_PORTS_UNKNOWN);
	return PACER_PARSED;
}

/* What is to be read where the frame itself ends after n bytes. */
static enum pacer_parse_result on_wire(const struct frame *f, uint32_t n)
{
	uint32_t header = f->pkt.family == PACER_FAMILY_6 ? 40 : 20;

	if (f->result != PACER_PARSED)
		return n < f->need ? PACER_PARSE_TRUNCATED : f->result;
	if (n == f->n)
		return f->result;
	return n < f->l3 + header ? PACER_PARSE_TRUNCATED : PACER_PARSE_BAD_HEADER;
}

/*
 * Of a packet that is read in part, headers may lie before or behind the buffer's end: what they
 * say is then as in the whole packet, or not known.
 */
static void packet_is(struct pacer_packet *pkt, const struct pacer_packet *want)
{
	if (want->key[PACER_WORD_META] & PACER_META_PART) {
		assert_in_range(pkt->l4, want->l3 + 20, want->l4);
		assert_true(want->options || !pkt->options);
		pkt->l4 = want->l4;
		pkt->options = want->options;
		pkt->fragment = want->fragment;
	}
	assert_memory_equal(pkt, want, sizeof(*pkt));
}

/* Whole, cut by the buffer at every byte, cut by the wire at every byte, and padded. */
static void frame_is_read(const struct frame *f)
{
	struct pacer_packet pkt, want;
	struct frame padded = *f;
	uint32_t n;

	for (n = 0; n <= f->n; n++) {
		enum pacer_parse_result result = in_buffer(f, n, &want);

		assert_int_equal(parse(f->b, n, f->n, &pkt), result);
		if (result == PACER_PARSED)
			packet_is(&pkt, &want);
		assert_int_equal(parse(f->b, n, n, &pkt), on_wire(f, n));
		assert_int_equal(pkt.len_bytes, n);
	}
	padded.n += 30;
	assert_int_equal(parse(padded.b, padded.n, padded.n, &pkt), f->result);
	pkt.len_bytes = f->n;
	if (f->result == PACER_PARSED)
		packet_is(&pkt, &f->pkt);
}

static void recipe_is_read(const struct recipe *r, enum pacer_parse_result result)
{
	struct frame f;

	build(&f, r);
	assert_int_equal(f.result, result);
	frame_is_read(&f);
}

static const uint8_t protos[] = {6, 17, 132, 1, 2, 4, 41, 47, 50, 58, 59, 255};
static const uint8_t extensions[] = {0, 43, 60, 51, 44};

/* ---- frames ---- */

/* One by hand: what the builder says is checked by none of its own. */
static void test_by_hand(void **unused)
{
	static const uint8_t b[] = "\x02\0\0\0\0\1\x02\0\0\0\0\2\x81\0\x20\x64\x08\0"
				   "\x45\0\0\x1c\x12\x34\x40\0\x40\x11\0\0\x0a\1\2\3\xac\x10\0\1"
				   "\x04\xd2\0\x35\0\x08\0\0";
	struct pacer_packet pkt;

	(void)unused;
	assert_int_equal(parse(b, sizeof(b) - 1, sizeof(b) - 1, &pkt), PACER_PARSED);
	assert_int_equal(pkt.key[PACER_WORD_SADDR], 0x0a010203);
	assert_int_equal(pkt.key[PACER_WORD_DADDR], 0xac100001);
	assert_int_equal(pkt.key[PACER_WORD_PORTS], 1234u << 16 | 53);
	assert_int_equal(pkt.key[PACER_WORD_META], 100 << 10 | 17);
	assert_int_equal(
	    pkt.key[1] | pkt.key[2] | pkt.key[3] | pkt.key[5] | pkt.key[6] | pkt.key[7], 0);
	assert_int_equal(pkt.vlan, 100);
	assert_int_equal(pkt.len_bytes, 46);
	assert_int_equal(pkt.family, PACER_FAMILY_4);
	assert_int_equal(pkt.fragment, PACER_FRAG_NONE);
}

static void test_tags(void **unused)
{
	static const uint16_t type[] = {0x8100, 0x88a8};
	static const uint8_t family[] = {4, 6, 0};
	uint32_t tags, kinds, i;

	(void)unused;
	for (i = 0; i < ARRAY(family); i++)
		for (tags = 0; tags <= 4; tags++)
			for (kinds = 0; kinds < 1u << tags; kinds++) {
				struct recipe r = {.family = family[i], .proto = 17};
				uint32_t k;

				for (k = 0; k < tags; k++)
					r.tag[k] = type[kinds >> k & 1];
				recipe_is_read(&r, family[i] ? PACER_PARSED : PACER_PARSE_NOT_IP);
			}
}

/* The VLAN is that of the first tag that names one; tags of VLAN 0 alone are as none. */
static void test_many_tags(void **unused)
{
	uint32_t tags, priority, i;
	struct frame f;

	(void)unused;
	for (tags = 1; tags <= TAGS; tags++)
		for (priority = 0; priority <= tags; priority++)
			for (i = 4; i <= 6; i += 2) {
				struct recipe r = {.family = i, .proto = 17, .priority = priority};
				uint32_t k;

				for (k = 0; k < tags; k++)
					r.tag[k] = 0x8100;
				recipe_is_read(&r, tags > PACER_PARSE_TAGS ? PACER_PARSE_TOO_DEEP
									   : PACER_PARSED);
				build(&f, &r);
				if (tags <= PACER_PARSE_TAGS)
					assert_int_equal(
					    f.pkt.vlan, priority == tags ? PACER_VLAN_NONE : 0xabc);
			}
}

static void test_ip4(void **unused)
{
	/* none, don't, first, reserved bit, middle, last */
	static const uint16_t frag[] = {0, 0x4000, 0x2000, 0x8000, 0x2001, 0x3fff,
					1, 0x1fff, 0x1000, 0x3000, 0x0100};
	uint32_t options, i, k;

	(void)unused;
	for (options = 0; options <= 10; options++)
		for (i = 0; i < ARRAY(frag); i++)
			for (k = 0; k < ARRAY(protos); k++)
				recipe_is_read(&(struct recipe){.family = 4,
								.options = options,
								.frag4 = frag[i],
								.proto = protos[k]},
					       PACER_PARSED);
}

/* IPv4 does not follow extension headers: their numbers are protocols like any other. */
static void test_ip4_no_extensions(void **unused)
{
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(extensions); i++)
		recipe_is_read(&(struct recipe){.family = 4, .proto = extensions[i]}, PACER_PARSED);
}

static void test_ip6_protocols(void **unused)
{
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(protos); i++)
		recipe_is_read(&(struct recipe){.family = 6, .proto = protos[i]}, PACER_PARSED);
}

/* Chains of 1 to 9, of every kind: all 5 + 25 + 125 + 625 of up to four, others by chance. */
static void test_ip6_chains(void **unused)
{
	uint32_t n, pick, all, i, picks;

	(void)unused;
	oracle_seed(21);
	for (n = 1, all = 5; n <= 9; n++, all *= 5) {
		picks = n <= 4 ? all : 300;
		for (pick = 0; pick < picks; pick++) {
			struct recipe r = {.family = 6, .n_ext = n, .ext_len = draw() % 4};
			uint32_t v = n <= 4 ? pick : draw() % all;

			for (i = 0; i < n; i++, v /= 5)
				r.ext[i] = extensions[v % 5];
			r.proto = protos[draw() % ARRAY(protos)];
			r.frag6 = draw() % 4 ? 6 : 1; /* the reserved bits do not count */
			recipe_is_read(&r, PACER_PARSED);
		}
	}
}

static void test_ip6_fragments(void **unused)
{
	static const struct {
		uint16_t frag6;
		enum pacer_fragment fragment;
	} rows[] = {{0, PACER_FRAG_NONE},      {6, PACER_FRAG_NONE},  {1, PACER_FRAG_FIRST},
		    {8, PACER_FRAG_LATER},     {9, PACER_FRAG_LATER}, {0xfff8, PACER_FRAG_LATER},
		    {0xfff9, PACER_FRAG_LATER}};
	uint32_t at, i, k;
	struct frame f;

	(void)unused;
	for (i = 0; i < ARRAY(rows); i++)
		for (at = 0; at < 8; at++)
			for (k = 0; k < ARRAY(protos); k++) {
				struct recipe r = {.family = 6, .n_ext = 8, .proto = protos[k]};

				memset(r.ext, 60, 8);
				r.ext[at] = 44;
				r.frag6 = rows[i].frag6;
				build(&f, &r);
				assert_int_equal(f.pkt.fragment, rows[i].fragment);
				frame_is_read(&f);
			}
}

/* A later fragment: no ports, the datagram's identification and a mark that no port pair has. */
static void test_later_key(void **unused)
{
	struct frame f;

	(void)unused;
	build(&f, &(struct recipe){.family = 4, .frag4 = 0x2010, .proto = 17});
	frame_is_read(&f);
	assert_int_equal(f.pkt.key[PACER_WORD_PORTS], ID4);
	assert_int_equal(f.pkt.key[PACER_WORD_META], 0x100 | 17);
	build(&f, &(struct recipe){.family = 6, .n_ext = 1, .ext = {44}, .frag6 = 16, .proto = 6});
	frame_is_read(&f);
	assert_int_equal(f.pkt.key[PACER_WORD_PORTS], ID6);
	assert_int_equal(f.pkt.key[PACER_WORD_META], 0x100);
}

/* AH's length is in words of four, less two. */
static void test_ah_lengths(void **unused)
{
	uint32_t len;

	(void)unused;
	for (len = 0; len <= 60; len++)
		recipe_is_read(
		    &(struct recipe){
			.family = 6, .n_ext = 1, .ext = {51}, .ext_len = len, .proto = 6},
		    PACER_PARSED);
}

/* ---- frames that lie ---- */

/* The frame with one byte replaced (from the IP header on). */
static void lie(const struct recipe *r, uint32_t at, uint8_t byte, enum pacer_parse_result result)
{
	struct pacer_packet pkt;
	struct frame f;

	build(&f, r);
	f.b[f.l3 + at] = byte;
	assert_int_equal(parse(f.b, f.n, f.n, &pkt), result);
}

static void test_lies4(void **unused)
{
	struct recipe udp = {.family = 4, .proto = 17}, icmp = {.family = 4, .proto = 1};
	struct recipe options = {.family = 4, .proto = 17, .options = 3};
	uint32_t i;

	(void)unused;
	for (i = 0; i < 16; i++) {
		lie(&udp, 0, i << 4 | 5, i == 4 ? PACER_PARSED : PACER_PARSE_BAD_HEADER);
		lie(&udp, 0, 0x40 | i, /* 32 bytes in all */
		    i < 5 || i > 8 ? PACER_PARSE_BAD_HEADER
		    : i == 8	   ? PACER_PARSE_TRUNCATED
				   : PACER_PARSED);
		lie(&icmp, 0, 0x40 | i, i < 5 || i > 8 ? PACER_PARSE_BAD_HEADER : PACER_PARSED);
	}
	for (i = 0; i < 256; i++) { /* total length */
		lie(&udp, 3, i,
		    i < 20 || i > 32 ? PACER_PARSE_BAD_HEADER
		    : i < 24	     ? PACER_PARSE_TRUNCATED
				     : PACER_PARSED);
		lie(&options, 3, i,
		    i < 32 || i > 44 ? PACER_PARSE_BAD_HEADER
		    : i < 36	     ? PACER_PARSE_TRUNCATED
				     : PACER_PARSED);
		lie(&icmp, 3, i, i < 20 || i > 32 ? PACER_PARSE_BAD_HEADER : PACER_PARSED);
		if (i)
			lie(&udp, 2, i, PACER_PARSE_BAD_HEADER);
	}
}

static void test_lies6(void **unused)
{
	struct recipe udp = {.family = 6, .proto = 17}, icmp = {.family = 6, .proto = 58};
	struct recipe ext = {.family = 6, .n_ext = 1, .ext = {60}, .proto = 17};
	struct recipe ah = {.family = 6, .n_ext = 1, .ext = {51}, .proto = 17};
	uint32_t i;

	(void)unused;
	for (i = 0; i < 16; i++)
		lie(&udp, 0, i << 4, i == 6 ? PACER_PARSED : PACER_PARSE_BAD_HEADER);
	for (i = 0; i < 256; i++) { /* payload length, of 12 or of 20 */
		lie(&udp, 5, i,
		    i < 4    ? PACER_PARSE_TRUNCATED
		    : i > 12 ? PACER_PARSE_BAD_HEADER
			     : PACER_PARSED);
		lie(&icmp, 5, i, i > 12 ? PACER_PARSE_BAD_HEADER : PACER_PARSED);
		lie(&ext, 5, i,
		    i < 12   ? PACER_PARSE_TRUNCATED
		    : i > 20 ? PACER_PARSE_BAD_HEADER
			     : PACER_PARSED);
		/* the extension's own length: 8, 16, and then it is more than there is */
		lie(&ext, 41, i, i <= 1 ? PACER_PARSED : PACER_PARSE_BAD_HEADER);
		/* 8 to 20 of 24 bytes, 24 with no room for ports, then too much */
		lie(&ah, 41, i,
		    i <= 3   ? PACER_PARSED
		    : i == 4 ? PACER_PARSE_TRUNCATED
			     : PACER_PARSE_BAD_HEADER);
		if (i)
			lie(&udp, 4, i, PACER_PARSE_BAD_HEADER);
	}
}

/* The frame's length as the driver says it may be less than the buffer's. */
static void test_short_length(void **unused)
{
	struct pacer_packet pkt;
	struct frame f;
	uint32_t len;

	(void)unused;
	build(&f, &(struct recipe){.family = 4, .proto = 17});
	for (len = 0; len < f.n; len++)
		assert_int_equal(parse(f.b, f.n, len, &pkt),
				 len < f.l3 + 20 ? PACER_PARSE_TRUNCATED : PACER_PARSE_BAD_HEADER);
}

static void test_reasons(void **unused)
{
	(void)unused;
	assert_int_equal(pacer_parse_reason(PACER_PARSE_NOT_IP), PACER_NOT_IP);
	assert_int_equal(pacer_parse_reason(PACER_PARSE_TRUNCATED), PACER_TRUNCATED);
	assert_int_equal(pacer_parse_reason(PACER_PARSE_BAD_HEADER), PACER_BAD_HEADER);
	assert_int_equal(pacer_parse_reason(PACER_PARSE_TOO_DEEP), PACER_TOO_DEEP);
	assert_int_equal(pacer_verdict_of(PACER_NOT_IP), PACER_VERDICT_PASS);
	assert_int_equal(pacer_verdict_of(PACER_TRUNCATED), PACER_VERDICT_UNPARSED);
	assert_int_equal(pacer_verdict_of(PACER_BAD_HEADER), PACER_VERDICT_UNPARSED);
	assert_int_equal(pacer_verdict_of(PACER_TOO_DEEP), PACER_VERDICT_UNPARSED);
}

/* ---- headers that go on ---- */

/* All that a packet's flow key has, by hand: the addresses and the mark. */
static void test_part_key(void **unused)
{
	struct recipe r = {.family = 6, .n_ext = 9, .proto = 17};
	struct pacer_packet pkt, more;
	struct frame f;
	uint32_t i;

	(void)unused;
	memset(r.ext, 60, sizeof(r.ext));
	build(&f, &r);
	assert_int_equal(parse(f.b, f.n, f.n, &pkt), PACER_PARSED);
	for (i = 0; i < 8; i++)
		assert_int_equal(pkt.key[i], 0x20010db8 + 0x01010101 * i);
	assert_int_equal(pkt.key[PACER_WORD_PORTS], 0);
	assert_int_equal(pkt.key[PACER_WORD_META], 0x200);
	assert_int_equal(pkt.proto, 0);
	assert_int_equal(pkt.ports, PACER_PORTS_ANY);
	r.n_ext = 10; /* and so every longer chain, of whatever headers */
	memset(r.ext, 43, sizeof(r.ext));
	r.proto = 6;
	build(&f, &r);
	assert_int_equal(parse(f.b, f.n, f.n, &more), PACER_PARSED);
	assert_memory_equal(more.key, pkt.key, sizeof(pkt.key));
	build(&f, &(struct recipe){.family = 4, .options = 10, .proto = 6});
	assert_int_equal(parse(f.b, f.l3 + 60, f.n, &pkt), PACER_PARSED);
	assert_int_equal(pkt.key[PACER_WORD_META], 0x200 | 6);
	assert_int_equal(pkt.ports, PACER_PORTS_UNKNOWN);
}

/* A first fragment that ends within its headers: Linux puts the datagram together all the same. */
static void test_first_fragment_ends(void **unused)
{
	static const struct {
		uint16_t frag6;
		uint8_t payload,
		    ext; /* bytes behind the fragment header; the next header's length */
		enum pacer_parse_result result;
		enum pacer_ports ports;
	} rows[] = {
	    {1, 0, 0, PACER_PARSED, PACER_PORTS_ANY},
	    {1, 7, 0, PACER_PARSED, PACER_PORTS_ANY},
	    {1, 8, 0, PACER_PARSED, PACER_PORTS_UNKNOWN},
	    {1, 11, 0, PACER_PARSED, PACER_PORTS_UNKNOWN},
	    {1, 12, 0, PACER_PARSED, PACER_PORTS_READ},
	    {1, 8, 1, PACER_PARSED, PACER_PORTS_ANY},
	    {0, 0, 0, PACER_PARSE_TRUNCATED, 0},
	    {0, 8, 0, PACER_PARSE_TRUNCATED, 0},
	    {0, 8, 1, PACER_PARSE_BAD_HEADER, 0},
	    {8, 0, 0, PACER_PARSED, PACER_PORTS_ANY},
	};
	struct recipe r = {.family = 6, .n_ext = 2, .ext = {44, 60}, .proto = 17};
	struct pacer_packet pkt;
	struct frame f;
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(rows); i++) {
		r.frag6 = rows[i].frag6;
		build(&f, &r);
		f.b[f.l3 + 5] = 8 + rows[i].payload;
		f.b[f.l3 + 49] = rows[i].ext;
		assert_int_equal(parse(f.b, f.n, f.n, &pkt), rows[i].result);
		if (rows[i].result == PACER_PARSED)
			assert_int_equal(pkt.ports, rows[i].ports);
	}
}

/* A length of 0 before hop-by-hop options: Linux takes the frame's, with the jumbo option or
 * without. Before anything else it is what it says.
 */
static void test_no_length(void **unused)
{
	struct recipe r = {.family = 6, .n_ext = 1, .ext = {0}, .proto = 17};
	struct pacer_packet pkt;
	struct frame f;

	(void)unused;
	build(&f, &r);
	f.b[f.l3 + 4] = f.b[f.l3 + 5] = 0;
	assert_int_equal(parse(f.b, f.n, f.n, &pkt), PACER_PARSED);
	assert_memory_equal(&pkt, &f.pkt, sizeof(pkt));
	assert_int_equal(parse(f.b, f.l3 + 51, f.l3 + 51, &pkt), PACER_PARSE_TRUNCATED);
	assert_int_equal(parse(f.b, f.l3 + 52, f.l3 + 52, &pkt), PACER_PARSED);
	r.ext[0] = 60;
	build(&f, &r);
	f.b[f.l3 + 4] = f.b[f.l3 + 5] = 0;
	assert_int_equal(parse(f.b, f.n, f.n, &pkt), PACER_PARSE_TRUNCATED);
}

/* A later fragment of IPv6 may name any protocol: Linux goes by the first, so it is not known. */
static void test_later_ports(void **unused)
{
	static const struct {
		uint8_t family, proto;
		enum pacer_ports ports;
	} rows[] = {{4, 17, PACER_PORTS_UNKNOWN}, {4, 1, PACER_PORTS_NONE},
		    {4, 60, PACER_PORTS_NONE},	  {6, 6, PACER_PORTS_ANY},
		    {6, 50, PACER_PORTS_ANY},	  {6, 60, PACER_PORTS_ANY},
		    {6, 0, PACER_PORTS_ANY}};
	struct pacer_packet pkt;
	struct frame f;
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(rows); i++) {
		build(&f, &(struct recipe){.family = rows[i].family,
					   .frag4 = 1,
					   .n_ext = 1,
					   .ext = {44},
					   .frag6 = 8,
					   .proto = rows[i].proto});
		assert_int_equal(parse(f.b, f.n, f.n, &pkt), PACER_PARSED);
		assert_int_equal(pkt.fragment, PACER_FRAG_LATER);
		assert_int_equal(pkt.ports, rows[i].ports);
		assert_int_equal(pkt.proto, rows[i].family == 4 ? rows[i].proto : 0);
	}
}

/* With nothing before the IP header: the same, but for the bytes of Ethernet. */
static void test_raw(void **unused)
{
	static const uint8_t family[] = {4, 6};
	struct pacer_packet pkt, want;
	uint32_t i, k, n;
	struct frame f;

	(void)unused;
	for (i = 0; i < ARRAY(family); i++)
		for (k = 0; k < ARRAY(protos); k++) {
			struct recipe r = {.family = family[i], .proto = protos[k]};

			r.n_ext = k % 3;
			r.ext[0] = r.ext[1] = 60;
			build(&f, &r);
			for (n = 0; n <= f.n - f.l3; n++) {
				enum pacer_parse_result result = in_buffer(&f, n + f.l3, &want);

				want.len_bytes = f.n - f.l3;
				want.l3 = 0;
				want.l4 -= f.l3;
				assert_int_equal(
				    pacer_parse_raw(f.b + f.l3, f.b + f.l3 + n, f.n - f.l3, &pkt),
				    result);
				if (result == PACER_PARSED)
					packet_is(&pkt, &want);
				assert_int_equal(
				    pacer_parse_raw(f.b + f.l3, f.b + f.l3 + n, n, &pkt),
				    on_wire(&f, n + f.l3));
			}
			for (n = 0; n < 16; n++) {
				f.b[f.l3] = n << 4 | (f.b[f.l3] & 15);
				assert_int_equal(pacer_parse_raw(f.b + f.l3, f.b + f.n, f.n - f.l3,
								 &pkt) == PACER_PARSE_NOT_IP,
						 n != 4 && n != 6);
			}
		}
}

/* ---- garbage ---- */

/* What must hold of anything that was read. */
static void packet_is_sane(const struct pacer_packet *p, enum pacer_parse_result result)
{
	int later = p->fragment == PACER_FRAG_LATER;
	int part = p->key[PACER_WORD_META] >> 9 & 1;
	int ports = has_ports(p->proto);

	assert_in_range(result, PACER_PARSED, PACER_PARSE_TOO_DEEP);
	assert_true(p->vlan <= PACER_VLAN_NONE);
	if (result != PACER_PARSED)
		return;
	assert_true(p->family == PACER_FAMILY_4 || p->family == PACER_FAMILY_6);
	assert_int_equal(p->key[PACER_WORD_META], p->proto | (later ? 0x100u : 0) |
						      (part ? 0x200u : 0) | vlan_word(p->vlan));
	assert_false(later && part);
	assert_true(later || (ports && !part) || !p->key[PACER_WORD_PORTS]);
	assert_int_equal(p->ports == PACER_PORTS_READ, ports && !later && !part);
	assert_true(!part || p->ports >= PACER_PORTS_UNKNOWN);
	assert_true(p->ports != PACER_PORTS_NONE || !ports);
	assert_true(p->ports <= PACER_PORTS_ANY);
	if (p->family == PACER_FAMILY_4)
		assert_true(
		    !(p->key[1] | p->key[2] | p->key[3] | p->key[5] | p->key[6] | p->key[7]));
}

static void random_recipe(struct recipe *r)
{
	int i;

	*r = (struct recipe){.family = draw() & 1 ? 4 : 6,
			     .proto = draw(),
			     .options = draw() % 11,
			     .frag4 = draw() & 1 ? draw() : 0,
			     .n_ext = draw() % EXTS,
			     .ext_len = draw() % 8,
			     .frag6 = draw() & 1 ? draw() : 0};
	for (i = 0; i < EXTS; i++)
		r->ext[i] = extensions[draw() % ARRAY(extensions)];
	r->priority = draw() % 8;
	for (i = draw() % 8 ? draw() % 4 : draw() % (TAGS + 1); i; i--)
		r->tag[i - 1] = draw() & 1 ? 0x8100 : 0x88a8;
}

static void test_fuzz(void **unused)
{
	uint32_t seen[PACER_PARSE_TOO_DEEP + 1] = {0}, i, k, n, len;
	enum pacer_parse_result result;
	struct pacer_packet pkt;
	struct recipe r;
	struct frame f;

	(void)unused;
	oracle_seed(22);
	for (i = 0; i < 400000; i++) {
		random_recipe(&r);
		build(&f, &r);
		for (k = draw() % 6; k; k--)
			f.b[draw() % f.n] = draw();
		for (k = 0; i % 8 == 0 && k < f.n; k++)
			f.b[k] = draw();
		n = draw() % 3 ? f.n : draw() % (f.n + 1);
		len = draw() % 3 ? f.n : draw() & 1 ? n : draw();
		result = parse(f.b, n, len, &pkt);
		packet_is_sane(&pkt, result);
		seen[result]++;
	}
	for (i = 0; i < ARRAY(seen); i++)
		assert_true(seen[i] > 1000);
}

/* The frames that are read at once are read as header by header, to the byte, and no others are. */
static void test_fast(void **unused)
{
	uint32_t i, k, n, len, usual = 0, not_fast = 0, sources = 0;
	struct pacer_packet a, b;
	struct frame f;

	(void)unused;
	oracle_seed(23);
	for (i = 0; i < 400000; i++) {
		static const uint8_t protos[] = {6, 17, 132, 1, 50};
		struct recipe r = {.family = 4, .proto = protos[draw() % 5]};
		enum pacer_parse_result result;

		build(&f, &r);
		for (k = draw() % 3; k; k--)
			f.b[12 + draw() % 26] = draw();
		n = draw() % 3 ? f.n : draw() % (f.n + 1);
		len = draw() % 3 ? f.n : draw() % (f.n + 2);
		memset(&a, 0xa5, sizeof(a));
		memset(&b, 0x5a, sizeof(b));
		result = pacer_parse_any(f.b, f.b + n, len, &b);
		if (n <= len && pacer_parse_source4(f.b, f.b + n, len)) { /* no more is asked for */
			sources++;
			assert_int_equal(result, PACER_PARSED);
			assert_int_equal(b.key[PACER_WORD_SADDR], pacer_be32(f.b + PACER_SOURCE4));
		}
		if (!pacer_parse_fast(f.b, f.b + n, len, &a)) {
			not_fast++;
			for (k = 0; k < sizeof(a); k++)
				assert_int_equal(((uint8_t *)&a)[k], 0xa5);
			assert_false(result == PACER_PARSED && b.vlan == PACER_VLAN_NONE &&
				     f.b[14] == 0x45 && b.fragment == PACER_FRAG_NONE &&
				     b.ports == PACER_PORTS_READ);
			continue;
		}
		usual++;
		assert_int_equal(result, PACER_PARSED);
		assert_memory_equal(&a, &b, sizeof(a));
	}
	assert_true(usual > 50000 && not_fast > 50000 && sources > 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_by_hand),	  cmocka_unit_test(test_tags),
	    cmocka_unit_test(test_ip4),		  cmocka_unit_test(test_ip4_no_extensions),
	    cmocka_unit_test(test_ip6_protocols), cmocka_unit_test(test_ip6_chains),
	    cmocka_unit_test(test_ip6_fragments), cmocka_unit_test(test_later_key),
	    cmocka_unit_test(test_ah_lengths),	  cmocka_unit_test(test_lies4),
	    cmocka_unit_test(test_lies6),	  cmocka_unit_test(test_short_length),
	    cmocka_unit_test(test_reasons),	  cmocka_unit_test(test_fuzz),
	    cmocka_unit_test(test_fast),	  cmocka_unit_test(test_many_tags),
	    cmocka_unit_test(test_part_key),	  cmocka_unit_test(test_first_fragment_ends),
	    cmocka_unit_test(test_no_length),	  cmocka_unit_test(test_later_ports),
	    cmocka_unit_test(test_raw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
