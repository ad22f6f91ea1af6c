/* SPDX-License-Identifier: GPL-2.0-only */
#include "inspect/packet_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/headers.h"
#include "config/units.h"
#include "inner.h"
#include "inspect/tally.h"

#define WORDS_MAX   40
#define WORD_MAX    64	 /* with its NUL; but for the payload */
#define PAYLOAD_MAX 1504 /* what a policy may ask for (config/match.c) is within it */
#define LEN_MAX	    65535

static const struct policy_key flow = KEY_FLOW;

struct words {
	const char *at[WORDS_MAX];
	size_t n;
	char text[WORDS_MAX * WORD_MAX + 2 * PAYLOAD_MAX + 1]; /* of all, each with its NUL */
};

/* How long the next one may be. */
static size_t longest(const struct words *w)
{
	return w->n && !strcmp(w->at[w->n - 1], "payload") ? 2 * PAYLOAD_MAX : WORD_MAX - 1;
}

/* Between blanks; > is a word of its own. False: there are too many, or one is too long. */
static bool split(const char *text, struct words *w)
{
	char *next = w->text;

	w->n = 0;
	for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
		size_t len = *text == '>' ? 1 : strcspn(text, " \t>");

		if (w->n == WORDS_MAX || len > longest(w) ||
		    len >= (size_t)(w->text + sizeof(w->text) - next))
			return false;
		memcpy(next, text, len);
		next[len] = 0;
		w->at[w->n++] = next;
		next += len + 1;
		text += len;
	}
	return true;
}

/* "192.0.2.1:53", "[2001:db8::1]:53", "2001:db8::1" to an address and a port, "" for none. */
static bool cut_port(const char *text, char address[WORD_MAX], const char **port)
{
	const char *end = *text == '[' ? strchr(text, ']') : strchr(text, ':');

	*port = "";
	if (*text == '[') {
		if (!end || (end[1] && end[1] != ':'))
			return false;
		snprintf(address, WORD_MAX, "%.*s", (int)(end - text - 1), text + 1);
		*port = end[1] ? end + 2 : "";
		return !end[1] || end[2];
	}
	if (!end || strchr(end + 1, ':')) {
		snprintf(address, WORD_MAX, "%s", text);
		return true;
	}
	snprintf(address, WORD_MAX, "%.*s", (int)(end - text), text);
	*port = end + 1;
	return end[1];
}

/* What a packet can be in. */
struct tunnel {
	const char *name;
	uint8_t proto;	/* of the packet around it; 0: that of the inner family */
	uint16_t dport; /* of UDP */
	bool ethernet;	/* an Ethernet header is before it */
};

#define PPPOE "pppoe" /* no packet is around it */

static const struct tunnel tunnels[] = {
    {"gre", PACER_IPPROTO_GRE, 0, false},
    {"ipip", 0, 0, false},
    {"vxlan", PACER_IPPROTO_UDP, PACER_PORT_VXLAN, true},
    {"geneve", PACER_IPPROTO_UDP, PACER_PORT_GENEVE, true},
    {"gtpu", PACER_IPPROTO_UDP, PACER_PORT_GTPU, false},
    {PPPOE, 0, 0, false},
};

static bool is_pppoe(const struct tunnel *t)
{
	return !strcmp(t->name, PPPOE);
}

/* A packet that is written has its protocol and its ports, which a key may lack. */
static int read_flow(const char *text, struct pacer_packet *pkt)
{
	return tally_key_read(&flow, text, pkt) || pkt->ports != PACER_PORTS_READ ? -1 : 0;
}

/* As a flow's key: so that there is one reader of addresses, protocols and ports. */
static int read_ends(const struct words *w, struct pacer_packet *pkt)
{
	char src[WORD_MAX], dst[WORD_MAX], text[4 * WORD_MAX];
	const char *sport, *dport;

	if (!cut_port(w->at[1], src, &sport) || !cut_port(w->at[3], dst, &dport))
		return -1;
	snprintf(text, sizeof(text), "%s>%s %s %s %s", src, dst, w->at[0], *sport ? sport : "0",
		 *dport ? dport : "0");
	if (read_flow(text, pkt))
		return -1;
	return pacer_has_ports(pkt->proto) ? -!(*sport && *dport) : -(*sport || *dport);
}

/* What the rest of the words says of the headers. */
struct headers {
	uint32_t type, code, ttl, dscp, fragment, options;
	uint8_t flags, payload[PAYLOAD_MAX];
	size_t n_payload;
	bool of_len; /* the text has len: the payload goes on to the frame's end */
	struct policy_mac src, dst;
	bool of_tcp, of_icmp;	   /* it says what only these have */
	bool of_ethernet;	   /* ... and what only Ethernet has */
	bool raw_ip;		   /* its frame begins with the IP header */
	const struct tunnel *in;   /* NULL: it is in none */
	struct pacer_packet outer; /* around it, of a tunnel that has addresses */
};

static bool read_number(const char *text, uint32_t most, uint32_t *value)
{
	struct range range;

	if (units_range(text, most, &range) || range.low != range.high)
		return false;
	*value = range.low;
	return true;
}

/* One of the words, whose number it is. */
static bool read_choice(const char *text, const char *const *words, uint32_t *value)
{
	for (*value = 0; words[*value]; ++*value)
		if (!strcmp(text, words[*value]))
			return true;
	return false;
}

static bool read_payload(const char *text, struct headers *h)
{
	for (h->n_payload = 0; *text; text += 2) {
		const char two[] = {text[0], text[1], 0};

		if (strspn(two, "0123456789abcdefABCDEF") < 2)
			return false;
		h->payload[h->n_payload++] = (uint8_t)strtoul(two, NULL, 16);
	}
	return true;
}

static bool read_word(const char *name, const char *text, struct pacer_packet *pkt,
		      struct headers *h)
{
	static const char *const fragments[] = {"none", "first", "later", NULL};
	static const char *const answers[] = {"no", "yes", NULL};
	int family = pkt->family == PACER_FAMILY_4 ? 4 : 6;
	uint32_t value;

	h->of_len |= !strcmp(name, "len");
	if (!strcmp(name, "len"))
		return read_number(text, LEN_MAX, &pkt->len_bytes) &&
		       pkt->len_bytes >= PACKET_LEN_SMALLEST;
	h->of_ethernet |= !strcmp(name, "vlan") || !strncmp(name, "ether_", 6);
	if (!strcmp(name, "vlan")) {
		if (!read_number(text, PACER_VLAN_NONE - 1, &value))
			return false;
		pkt->vlan = (uint16_t)value;
		return true;
	}
	if (!strcmp(name, "ttl"))
		return read_number(text, 255, &h->ttl);
	if (!strcmp(name, "dscp"))
		return !headers_read_dscp(text, &h->dscp);
	if (!strcmp(name, "fragment"))
		return read_choice(text, fragments, &h->fragment);
	if (!strcmp(name, "options"))
		return read_choice(text, answers, &h->options);
	if (!strcmp(name, "payload"))
		return read_payload(text, h);
	if (!strcmp(name, "ether_src"))
		return !headers_read_mac(text, &h->src) && h->src.len == 48;
	if (!strcmp(name, "ether_dst"))
		return !headers_read_mac(text, &h->dst) && h->dst.len == 48;
	h->of_tcp |= !strcmp(name, "flags");
	if (!strcmp(name, "flags"))
		return !headers_read_flags(text, &h->flags);
	h->of_icmp = true;
	if (!strcmp(name, "type"))
		return !headers_read_type(text, family, &h->type);
	return !strcmp(name, "code") && read_number(text, 255, &h->code);
}

static bool is_icmp(const struct pacer_packet *pkt)
{
	return pkt->proto == (pkt->family == PACER_FAMILY_4 ? 1 : 58);
}

/* "in gre SRC > DST", "in pppoe": the last words. */
static int read_tunnel(const struct words *w, size_t at, const struct pacer_packet *pkt,
		       struct headers *h)
{
	char text[4 * WORD_MAX];

	for (size_t i = 0; i < sizeof(tunnels) / sizeof(*tunnels) && at + 1 < w->n; i++)
		if (!strcmp(w->at[at + 1], tunnels[i].name))
			h->in = &tunnels[i];
	if (!h->in)
		return -1;
	h->of_ethernet |= is_pppoe(h->in);
	if (is_pppoe(h->in))
		return at + 2 == w->n ? 0 : -1;
	if (at + 5 != w->n || strcmp(w->at[at + 3], ">") != 0)
		return -1;
	snprintf(text, sizeof(text), "%s>%s %u %u %u", w->at[at + 2], w->at[at + 4],
		 h->in->proto			 ? h->in->proto
		 : pkt->family == PACER_FAMILY_4 ? PACER_IPPROTO_IPIP
						 : PACER_IPPROTO_IPV6,
		 h->in->dport, h->in->dport);
	return read_flow(text, &h->outer);
}

static int read_more(const struct words *w, size_t from, struct pacer_packet *pkt,
		     struct headers *h)
{
	for (size_t i = from; i < w->n; i += 2) {
		if (!strcmp(w->at[i], "in")) {
			if (read_tunnel(w, i, pkt, h))
				return -1;
			break;
		}
		for (size_t k = from; k < i; k += 2)
			if (!strcmp(w->at[i], w->at[k]))
				return -1;
		if (i + 1 == w->n || !read_word(w->at[i], w->at[i + 1], pkt, h))
			return -1;
	}
	return (h->of_tcp && pkt->proto != 6) || (h->of_icmp && !is_icmp(pkt)) ? -1 : 0;
}

/* --- its frame ------------------------------------------------------------------------------ */

static void put(struct packet_head *head, uint64_t value, int bytes)
{
	while (bytes--)
		head->data[head->n++] = (uint8_t)(value >> 8 * bytes);
}

static uint16_t type_of(const struct pacer_packet *pkt)
{
	return pkt->family == PACER_FAMILY_4 ? PACER_ETH_IP4 : PACER_ETH_IP6;
}

static void put_ethernet(struct packet_head *head, uint16_t vlan, uint16_t type,
			 const struct headers *h)
{
	put(head, h->dst.value, 6);
	put(head, h->src.value, 6);
	if (vlan != PACER_VLAN_NONE) {
		put(head, PACER_ETH_8021Q, 2);
		put(head, vlan, 2);
	}
	put(head, type, 2);
}

/* The header behind those of IP, and then the payload. */
static void put_rest(struct packet_head *head, const struct pacer_packet *pkt,
		     const struct headers *h)
{
	if (pacer_has_ports(pkt->proto))
		put(head, pkt->key[PACER_WORD_PORTS], 4);
	if (pkt->proto == 6) {
		put(head, 0, 8);
		put(head, 0x50, 1);
		put(head, h->flags, 1);
		put(head, 0, 6);
	} else if (pkt->proto == 17 || pkt->proto == 136) {
		put(head, 0, pkt->proto == 17 ? 4 : 8);
	} else if (pkt->proto == 132) {
		put(head, 0, 8);
	} else if (is_icmp(pkt)) {
		put(head, h->type, 1);
		put(head, h->code, 1);
		put(head, 0, 6);
	}
	for (size_t i = 0; i < h->n_payload; i++)
		put(head, h->payload[i], 1);
}

#define IP4_HEADER 20
#define IP6_HEADER 40
#define EXTRA	   8 /* bytes of options, and of each IPv6 header that is put in */

/* The text has all of it, and what fills up a short frame is not of the packet. */
static bool ends_with_payload(const struct headers *h)
{
	return h->n_payload && !h->of_len;
}

/* Bytes behind the first IP header, at least those of `rest`, up to the packet's end. */
static uint32_t ip_bytes(const struct packet_head *head, const struct pacer_packet *pkt,
			 const struct headers *h, uint32_t header, const struct packet_head *rest)
{
	uint32_t all = pkt->len_bytes > head->n + header ? pkt->len_bytes - head->n - header : 0;

	return all > rest->n && !ends_with_payload(h) ? all : rest->n;
}

static void put_ip4(struct packet_head *head, const struct pacer_packet *pkt,
		    const struct headers *h, const struct packet_head *rest)
{
	uint32_t header = IP4_HEADER + (h->options ? EXTRA : 0);

	put(head, 0x40 | header / 4, 1);
	put(head, h->dscp << 2, 1);
	put(head, header + ip_bytes(head, pkt, h, header - 2, rest), 2);
	put(head, 1, 2);
	put(head, h->fragment == PACER_FRAG_FIRST ? 0x2000 : h->fragment ? 1 : 0, 2);
	put(head, h->ttl, 1);
	put(head, pkt->proto, 1);
	put(head, 0, 2);
	put(head, pkt->key[PACER_WORD_SADDR], 4);
	put(head, pkt->key[PACER_WORD_DADDR], 4);
	for (uint32_t i = IP4_HEADER; i < header; i++)
		put(head, 1, 1); /* no operation */
}

static void put_ip6(struct packet_head *head, const struct pacer_packet *pkt,
		    const struct headers *h, const struct packet_head *rest)
{
	uint32_t extra = (h->options ? EXTRA : 0) + (h->fragment ? EXTRA : 0);

	put(head, 0x60000000 | h->dscp << 22, 4);
	put(head, ip_bytes(head, pkt, h, IP6_HEADER - 4 + extra, rest) + extra, 2);
	put(head, h->options ? 0 : h->fragment ? 44 : pkt->proto, 1);
	put(head, h->ttl, 1);
	for (int i = 0; i < 8; i++)
		put(head, pkt->key[PACER_WORD_SADDR + i], 4);
	if (h->options) {
		put(head, h->fragment ? 44 : pkt->proto, 1);
		put(head, 0x0001040000000000 >> 8, 7);
	}
	if (h->fragment) {
		put(head, pkt->proto, 1);
		put(head, 0, 1);
		put(head, h->fragment == PACER_FRAG_FIRST ? 1 : 8, 2);
		put(head, 1, 4);
	}
}

/* Bytes from here to the frame's end. */
static uint32_t left(const struct packet_head *head, const struct pacer_packet *pkt)
{
	return pkt->len_bytes > head->n ? pkt->len_bytes - head->n : 0;
}

/* The tunnel's own header, and the UDP header before it. */
static void put_tunnel(struct packet_head *head, const struct pacer_packet *pkt,
		       const struct headers *h)
{
	static const struct headers none;

	if (h->in->dport) {
		put(head, h->outer.key[PACER_WORD_PORTS], 4);
		put(head, left(head, pkt) + 4, 2);
		put(head, 0, 2);
	}
	if (is_pppoe(h->in)) {
		put(head, 0x11000001, 4);
		put(head, left(head, pkt) - 2, 2); /* the smallest frame has room for all of it */
		put(head, pkt->family == PACER_FAMILY_4 ? 0x21 : 0x57, 2);
	} else if (h->in->proto == PACER_IPPROTO_GRE) {
		put(head, type_of(pkt), 4);
	} else if (h->in->dport == PACER_PORT_VXLAN) {
		put(head, 0x0800000000000100, 8);
	} else if (h->in->dport == PACER_PORT_GENEVE) {
		put(head, (uint64_t)PACER_ETH_FRAME << 32 | 0x100, 8);
	} else if (h->in->dport == PACER_PORT_GTPU) {
		put(head, 0x30ff, 2);
		put(head, left(head, pkt) > 6 ? left(head, pkt) - 6 : 0, 2);
		put(head, 1, 4);
	}
	if (h->in->ethernet)
		put_ethernet(head, PACER_VLAN_NONE, type_of(pkt), &none);
}

/* All that is around the packet. */
static void put_around(struct packet_head *head, const struct pacer_packet *pkt,
		       const struct headers *h)
{
	static const struct packet_head nothing;
	struct headers plain = {.ttl = 64};
	struct pacer_packet outer = h->outer;

	if (!h->raw_ip)
		put_ethernet(head, pkt->vlan, is_pppoe(h->in) ? PACER_ETH_PPPOE : type_of(&outer),
			     h);
	outer.len_bytes = pkt->len_bytes;
	if (outer.family == PACER_FAMILY_4)
		put_ip4(head, &outer, &plain, &nothing);
	else if (outer.family == PACER_FAMILY_6)
		put_ip6(head, &outer, &plain, &nothing);
	put_tunnel(head, pkt, h);
}

/* Zeros, up to so many bytes. */
static void fill_up(struct packet_head *head, uint32_t len_bytes)
{
	while (head->n < len_bytes && head->n < PACKET_HEAD_MAX)
		put(head, 0, 1);
}

/* The frame's first bytes. */
static void put_frame(struct packet_head *head, const struct pacer_packet *pkt,
		      const struct headers *h)
{
	struct packet_head rest = {.n = 0};

	head->n = 0;
	put_rest(&rest, pkt, h);
	if (h->in)
		put_around(head, pkt, h);
	else if (!h->raw_ip)
		put_ethernet(head, pkt->vlan, type_of(pkt), h);
	if (pkt->family == PACER_FAMILY_4)
		put_ip4(head, pkt, h, &rest);
	else
		put_ip6(head, pkt, h, &rest);
	memcpy(head->data + head->n, rest.data, rest.n);
	head->n += rest.n;
	fill_up(head, pkt->len_bytes);
}

/* The packet as it is read of its frame; that is as long as its headers want. */
static int build(struct pacer_packet *pkt, const struct headers *h, struct packet_head *head)
{
	uint32_t len_bytes, len;
	const uint8_t *end;
	int result;

	head->n = 0;
	if (pkt->family == PACER_FAMILY_6 && pacer_is_extension(pkt->proto)) {
		/* A header that others follow: here is said what the parser says of a VLAN. */
		pkt->vlan = pkt->vlan ? pkt->vlan : PACER_VLAN_NONE;
		pkt->key[PACER_WORD_META] |= pacer_meta_vlan(pkt->vlan);
		return 0;
	}
	if (ends_with_payload(h))
		pkt->len_bytes = 0; /* it is as long as that wants */
	put_frame(head, pkt, h);
	if (h->of_len && h->n_payload && pkt->len_bytes < head->n)
		return -1; /* what it says of its length has no room for that */
	if (h->in && pkt->len_bytes < head->n) {
		pkt->len_bytes = head->n;
		put_frame(head, pkt, h); /* the lengths around it are of that */
	}
	if (ends_with_payload(h) && !h->raw_ip)
		fill_up(head, PACKET_LEN_SMALLEST);
	len_bytes = pkt->len_bytes;
	len = len_bytes > head->n ? len_bytes : head->n;
	end = head->data + head->n;
	result = h->raw_ip ? pacer_parse_raw(head->data, end, len, pkt)
			   : pacer_parse(head->data, end, len, pkt);
	if (result != PACER_PARSED && !(h->in && result == PACER_PARSE_NOT_IP))
		return -1;
	pkt->len_bytes = ends_with_payload(h) ? len : len_bytes;
	return 0;
}

bool packet_text_is(const char *text)
{
	return strchr(text, '>');
}

/* A flow's key has no more to be read. */
static int read_any(const char *text, struct pacer_packet *pkt, struct headers *h)
{
	struct words w;

	if (!read_flow(text, pkt))
		return 0;
	if (!split(text, &w) || w.n < 4 || strcmp(w.at[2], ">") != 0 || read_ends(&w, pkt))
		return -1;
	pkt->len_bytes = PACKET_LEN_SMALLEST;
	h->type = pkt->family == PACER_FAMILY_4 ? 8 : 128; /* echo request */
	return read_more(&w, 4, pkt, h);
}

int packet_text_read(const char *text, bool raw_ip, struct pacer_packet *pkt,
		     struct packet_head *head, struct policy_error *error)
{
	struct headers h = {.ttl = 64, .flags = 0x10 /* ack */, .raw_ip = raw_ip};
	struct packet_head unused;

	if (read_any(text, pkt, &h))
		return policy_fail(
		    error, 0,
		    "%.120s is no packet, such as \"udp 203.0.113.9:4000 > "
		    "198.51.100.1:53 len 80\" or \"tcp [2001:db8::1]:7 > [2001:db8::2]:80 "
		    "flags syn ttl 3\" (len: %u to %u; payload: %u bytes at most), with \"in gre "
		    "192.0.2.1 > 192.0.2.2\" "
		    "behind it if it is in a tunnel (gre, ipip, vxlan, geneve, gtpu), or \"in "
		    "pppoe\"",
		    text, PACKET_LEN_SMALLEST, LEN_MAX, PAYLOAD_MAX);
	if (raw_ip && h.of_ethernet)
		return policy_fail(error, 0,
				   "%.120s: packets of this interface have no Ethernet header: "
				   "leave out vlan, ether_src, ether_dst and in pppoe",
				   text);
	if (!pkt->len_bytes)
		pkt->len_bytes = PACKET_LEN_SMALLEST;
	pkt->ports = pacer_has_ports(pkt->proto) ? PACER_PORTS_READ : PACER_PORTS_NONE;
	if (build(pkt, &h, head ? head : &unused))
		return policy_fail(error, 0, "%.120s: no frame can be made of that", text);
	return 0;
}
