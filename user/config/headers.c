/* SPDX-License-Identifier: GPL-2.0-only */
#include "config/headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define WORD_MAX 64

/* Names of values; the last has none. */
struct name {
	const char *name;
	uint32_t value;
};

static const struct name flag_names[] = {
    {"fin", 0x01}, {"syn", 0x02}, {"rst", 0x04}, {"psh", 0x08}, {"ack", 0x10},
    {"urg", 0x20}, {"ece", 0x40}, {"cwr", 0x80}, {NULL, 0},
};

static const struct name icmp_types[] = {
    {"echo-reply", 0},		 {"destination-unreachable", 3},
    {"source-quench", 4},	 {"redirect", 5},
    {"echo-request", 8},	 {"router-advertisement", 9},
    {"router-solicitation", 10}, {"time-exceeded", 11},
    {"parameter-problem", 12},	 {"timestamp-request", 13},
    {"timestamp-reply", 14},	 {"info-request", 15},
    {"info-reply", 16},		 {"address-mask-request", 17},
    {"address-mask-reply", 18},	 {NULL, 0},
};

static const struct name icmpv6_types[] = {
    {"destination-unreachable", 1},
    {"packet-too-big", 2},
    {"time-exceeded", 3},
    {"parameter-problem", 4},
    {"echo-request", 128},
    {"echo-reply", 129},
    {"mld-listener-query", 130},
    {"mld-listener-report", 131},
    {"mld-listener-done", 132},
    {"nd-router-solicit", 133},
    {"nd-router-advert", 134},
    {"nd-neighbor-solicit", 135},
    {"nd-neighbor-advert", 136},
    {"nd-redirect", 137},
    {"router-renumbering", 138},
    {"mld2-listener-report", 143},
    {NULL, 0},
};

static const struct name dscps[] = {
    {"cs0", 0},	  {"cs1", 8},	{"cs2", 16},  {"cs3", 24},  {"cs4", 32},  {"cs5", 40},
    {"cs6", 48},  {"cs7", 56},	{"af11", 10}, {"af12", 12}, {"af13", 14}, {"af21", 18},
    {"af22", 20}, {"af23", 22}, {"af31", 26}, {"af32", 28}, {"af33", 30}, {"af41", 34},
    {"af42", 36}, {"af43", 38}, {"ef", 46},   {"va", 44},   {"lephb", 1}, {NULL, 0},
};

static const struct name ether_types[] = {
    {"ip", 0x0800},   {"arp", 0x0806},	  {"ip6", 0x86dd},    {"lldp", 0x88cc},
    {"mpls", 0x8847}, {"pppoes", 0x8864}, {"pppoed", 0x8863}, {NULL, 0},
};

static const struct name fragments[] = {
    {"none", PACER_FRAG_NONE}, {"first", PACER_FRAG_FIRST}, {"later", PACER_FRAG_LATER}, {NULL, 0}};

static const struct name yes_no[] = {{"no", 0}, {"yes", 1}, {NULL, 0}};

static int named(const struct name *names, const char *text, uint32_t *value)
{
	for (; names->name; names++)
		if (!strcmp(names->name, text)) {
			*value = names->value;
			return 0;
		}
	return -1;
}

static const char *name_of(const struct name *names, uint32_t value)
{
	for (; names->name; names++)
		if (names->value == value)
			return names->name;
	return NULL;
}

void headers_range_text(const struct range *range, char *buf, size_t size)
{
	if (range->low == range->high)
		snprintf(buf, size, "%u", range->low);
	else
		snprintf(buf, size, "%u-%u", range->low, range->high);
}

static void named_text(const struct name *names, const struct range *range, char *buf, size_t size)
{
	const char *name = range->low == range->high ? name_of(names, range->low) : NULL;

	headers_range_text(range, buf, size);
	if (name)
		snprintf(buf, size, "%s", name);
}

/* A name, a number or a range of them; with a `max` of 0 a name alone. */
static int read_named(const struct name *names, const char *text, uint32_t max, struct range *range)
{
	uint32_t value;

	if (named(names, text, &value))
		return max ? units_range(text, max, range) : -1;
	*range = (struct range){value, value};
	return 0;
}

/* --- TCP flags ------------------------------------------------------------------------------ */

int headers_read_flags(const char *text, uint8_t *flags)
{
	char word[WORD_MAX];
	uint32_t value;
	size_t len;

	*flags = 0;
	if (!strcmp(text, "none"))
		return 0;
	for (;; text += len + 1) {
		len = strcspn(text, ",");
		if (len >= WORD_MAX)
			return -1;
		memcpy(word, text, len);
		word[len] = 0;
		if (named(flag_names, word, &value))
			return -1;
		*flags |= value;
		if (!text[len])
			return 0;
	}
}

/* Without blanks, so that a list of flags is one word. */
static bool squeeze(const char *text, char buf[WORD_MAX])
{
	size_t n = 0;

	for (; *text; text++) {
		if (*text == ' ')
			continue;
		if (n + 1 == WORD_MAX)
			return false;
		buf[n++] = *text;
	}
	buf[n] = 0;
	return true;
}

static int read_flags(const char *text, struct policy_flags *flags)
{
	char buf[WORD_MAX], *mask;

	if (!squeeze(text, buf))
		return -1;
	mask = strchr(buf, '/');
	if (mask)
		*mask++ = 0;
	if (headers_read_flags(buf, &flags->value))
		return -1;
	flags->mask = flags->value;
	return mask ? headers_read_flags(mask, &flags->mask) : -!flags->value;
}

int headers_flags(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_flags *flags = into;
	bool item = !at->name;
	char whole[4 * WORD_MAX]; /* with blanks, and what is too long for them is refused */
	const char *text;
	int len;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (item && strchr(text, '/') && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return doc_fail(
		    s, doc_line(node), at,
		    "\"%s\": in a list flags with a slash stand in quotes, since YAML ends "
		    "them at the comma",
		    doc_shown(text).text);
	len = snprintf(whole, sizeof(whole), "%s%s", text, item ? "" : s->flags_tail);
	text = whole;
	if ((size_t)len >= sizeof(whole) || read_flags(text, flags))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" are no TCP flags: write those that are set / those that "
				"are looked at, as syn / syn,ack,fin,rst (fin, syn, rst, psh, ack, "
				"urg, ece, cwr, none)",
				doc_shown(text).text);
	if (flags->value & ~flags->mask)
		return doc_fail(s, doc_line(node), at,
				"\"%s\": a flag has to be set that is not looked at: no packet can "
				"match",
				doc_shown(text).text);
	return 0;
}

static void some_flags_text(uint8_t flags, char *buf, size_t size)
{
	*buf = 0;
	for (const struct name *n = flag_names; n->name; n++)
		if (flags & n->value)
			doc_append(buf, size, "%s%s", *buf ? "," : "", n->name);
	if (!flags)
		doc_append(buf, size, "none");
}

void headers_flags_text(const struct policy_flags *flags, char *buf, size_t size)
{
	char mask[WORD_MAX];

	some_flags_text(flags->value, buf, size);
	some_flags_text(flags->mask, mask, sizeof(mask));
	if (flags->value != flags->mask)
		doc_append(buf, size, " / %s", mask);
}

/* --- names and numbers ---------------------------------------------------------------------- */

#define NAMED_READER(field, names, max, ...)                                                   \
	int headers_##field(struct source *s, const struct place *at, const yaml_node_t *node, \
			    void *into)                                                        \
	{                                                                                      \
		const char *text;                                                              \
                                                                                               \
		if (doc_scalar(s, at, node, &text))                                            \
			return -1;                                                             \
		if (read_named(names, text, max, into))                                        \
			return doc_fail(s, doc_line(node), at, "\"%s\" " __VA_ARGS__,          \
					doc_shown(text).text);                                 \
		return 0;                                                                      \
	}

static const struct name no_names[] = {{NULL, 0}};

NAMED_READER(icmp_type, icmp_types, 255,
	     "is no ICMP type: write 0 to 255, a range, or echo-request, echo-reply, "
	     "destination-unreachable, time-exceeded ...")
NAMED_READER(icmpv6_type, icmpv6_types, 255,
	     "is no ICMPv6 type: write 0 to 255, a range, or echo-request, packet-too-big, "
	     "nd-neighbor-solicit ...")
NAMED_READER(code, no_names, 255, "is no code: write 0 to 255, or a range as 0-3")
NAMED_READER(ttl, no_names, 255, "is no TTL: write 0 to 255, or a range as 0-5")
NAMED_READER(dscp, dscps, 63, "is no DSCP: write 0 to 63, a range, or cs0 to cs7, af11 to af43, ef")
NAMED_READER(fragment, fragments, 0, "is not known: write first, later or none")
NAMED_READER(options, yes_no, 0, "is not known: write yes or no")
NAMED_READER(len, no_names, 65535, "is no length: write 0 to 65535 bytes, or a range as 0-100")

#define NAMED_TEXT(field, names)                                                       \
	void headers_##field##_text(const struct range *range, char *buf, size_t size) \
	{                                                                              \
		named_text(names, range, buf, size);                                   \
	}

NAMED_TEXT(icmp_type, icmp_types)
NAMED_TEXT(icmpv6_type, icmpv6_types)
NAMED_TEXT(dscp, dscps)
NAMED_TEXT(fragment, fragments)
NAMED_TEXT(options, yes_no)

int headers_read_type(const char *text, int family, uint32_t *type)
{
	struct range range;

	if (read_named(family == 4 ? icmp_types : icmpv6_types, text, 255, &range) ||
	    range.low != range.high)
		return -1;
	*type = range.low;
	return 0;
}

int headers_read_dscp(const char *text, uint32_t *dscp)
{
	struct range range;

	if (read_named(dscps, text, 63, &range) || range.low != range.high)
		return -1;
	*dscp = range.low;
	return 0;
}

/* --- EtherTypes, Ethernet addresses, bytes --------------------------------------------------- */

/* Up to so many hexadecimal digits; the end of them, or NULL where there are none or more. */
static const char *read_hex(const char *text, size_t most, uint32_t *value, size_t *n)
{
	*value = 0;
	for (*n = 0; *n <= most; ++*n, text++) {
		const char *digits = "0123456789abcdef";
		const char *digit =
		    *text ? strchr(digits, *text | (*text >= 'A' ? 0x20 : 0)) : NULL;

		if (!digit)
			return *n ? text : NULL;
		if (*n < most)
			*value = *value << 4 | (uint32_t)(digit - digits);
	}
	return NULL;
}

int headers_ether_type(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	struct range *range = into;
	const char *text, *end;
	size_t n;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (!strncmp(text, "0x", 2)) {
		end = read_hex(text + 2, 4, &range->low, &n);
		range->high = range->low;
		if (end && !strncmp(end, "-0x", 3))
			end = read_hex(end + 3, 4, &range->high, &n);
		if (end && !*end && range->low >= 0x600 && range->low <= range->high)
			return 0;
	} else if (!read_named(ether_types, text, 65535, range) && range->low >= 0x600) {
		return 0;
	}
	return doc_fail(
	    s, doc_line(node), at,
	    "\"%s\" is no EtherType: write 0x0600 to 0xffff, or ip, ip6, arp, lldp, mpls, "
	    "pppoes, pppoed",
	    doc_shown(text).text);
}

void headers_ether_type_text(const struct range *range, char *buf, size_t size)
{
	const char *name = name_of(ether_types, range->low);

	if (range->low != range->high)
		snprintf(buf, size, "0x%04x-0x%04x", range->low, range->high);
	else if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "0x%04x", range->low);
}

int headers_read_mac(const char *text, struct policy_mac *mac)
{
	size_t n = 0, digits;
	uint32_t byte;

	*mac = (struct policy_mac){0, 0};
	for (;; text++) {
		text = read_hex(text, 2, &byte, &digits);
		if (!text || digits != 2 || n == 6)
			return -1;
		mac->value |= (uint64_t)byte << (40 - 8 * n++);
		mac->len = 8 * n;
		if (!*text)
			return 0;
		if (*text != ':')
			return -1;
	}
}

int headers_mac(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (headers_read_mac(text, into))
		return doc_fail(
		    s, doc_line(node), at,
		    "\"%s\" is no Ethernet address: write \"02:00:5e:00:01:ff\", or how "
		    "it begins, as \"02:00:5e\"",
		    doc_shown(text).text);
	return 0;
}

void headers_mac_text(const struct policy_mac *mac, char *buf, size_t size)
{
	*buf = 0;
	for (unsigned int bit = 0; bit < mac->len; bit += 8)
		doc_append(buf, size, "%s%02x", bit ? ":" : "",
			   (unsigned int)(mac->value >> (40 - bit) & 0xff));
}

/* "AT=0xHEX", "AT=0xHEX/0xMASK": two digits a byte. */
static int read_bytes(const char *text, struct policy_bytes *bytes)
{
	char buf[WORD_MAX];
	struct range where;
	const char *hex;
	size_t n, of_mask;

	if (!squeeze(text, buf))
		return -1;
	hex = strchr(buf, '=');
	if (!hex || strncmp(hex, "=0x", 3))
		return -1;
	buf[hex - buf] = 0;
	if (units_range(buf, PACER_PROBE_AT_MAX, &where) || where.low != where.high)
		return -1;
	hex = read_hex(hex + 3, 8, &bytes->value, &n);
	if (!hex || n % 2)
		return -1;
	bytes->at = where.low;
	bytes->n = n / 2;
	bytes->mask = n == 8 ? UINT32_MAX : (1u << 4 * n) - 1;
	if (!*hex)
		return 0;
	if (strncmp(hex, "/0x", 3))
		return -1;
	hex = read_hex(hex + 3, 8, &bytes->mask, &of_mask);
	return hex && !*hex && of_mask == n && bytes->mask ? 0 : -1;
}

int headers_bytes(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_bytes *bytes = into;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (read_bytes(text, bytes))
		return doc_fail(
		    s, doc_line(node), at,
		    "\"%s\" are no bytes: write where in the payload, from 0 to %u, and 1 "
		    "to 4 bytes, as 3=0x2a, or with a mask of as many, as 2=0x8180/0x8180",
		    doc_shown(text).text, PACER_PROBE_AT_MAX);
	if (bytes->value & ~bytes->mask)
		return doc_fail(
		    s, doc_line(node), at,
		    "\"%s\": a bit has to be set that the mask leaves out: no packet can "
		    "match",
		    doc_shown(text).text);
	return 0;
}

void headers_bytes_text(const struct policy_bytes *bytes, char *buf, size_t size)
{
	uint32_t all = bytes->n == 4 ? UINT32_MAX : (1u << 8 * bytes->n) - 1;

	snprintf(buf, size, "%u=0x%0*x", bytes->at, 2 * bytes->n, bytes->value);
	if (bytes->mask != all)
		doc_append(buf, size, "/0x%0*x", 2 * bytes->n, bytes->mask);
}

/* --- together ------------------------------------------------------------------------------- */

static bool has_value(const struct range *list, size_t n, uint32_t value)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].low <= value && value <= list[i].high)
			return true;
	return !n;
}

/* 4 or 6 if all of the prefixes are of that family, else 0. */
static int family_of(const struct prefix *prefixes, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (prefixes[i].family != prefixes[0].family)
			return 0;
	return n ? prefixes[0].family : 0;
}

int headers_family(const struct policy_match *m, bool dst)
{
	for (size_t i = 0; i < m->n_sets; i++)
		if (m->set[i].dst == dst && !m->set[i].not )
			return 0;
	return dst ? family_of(m->dst, m->n_dst) : family_of(m->src, m->n_src);
}

bool headers_only_of(const struct policy_match *m, int family)
{
	return headers_family(m, false) == family || headers_family(m, true) == family;
}

bool headers_of_ip(const struct policy_match *m)
{
	return m->n_src || m->n_dst || m->n_sets || m->n_proto || m->n_sport || m->n_dport ||
	       m->n_flags || m->n_icmp_type || m->n_icmp_code || m->n_icmpv6_type ||
	       m->n_icmpv6_code || m->n_ttl || m->n_dscp || m->n_fragment || m->n_options ||
	       m->n_payload_len || m->n_payload;
}

bool headers_of_frames(const struct policy_match *m)
{
	for (size_t i = 0; i < m->n_ether_type && !headers_of_ip(m); i++) {
		const struct range *type = &m->ether_type[i];

		if (type->low != type->high ||
		    (type->low != PACER_ETH_IP4 && type->low != PACER_ETH_IP6))
			return true;
	}
	return false;
}

int headers_check(struct source *s, const struct place *at, int line, const struct policy_match *m)
{
	const struct {
		const char *name;
		size_t n;
		uint32_t proto;
		int family;
	} of[] = {
	    {"flags", m->n_flags, 6, 0},
	    {"icmp_type", m->n_icmp_type, 1, 4},
	    {"icmp_code", m->n_icmp_code, 1, 4},
	    {"icmpv6_type", m->n_icmpv6_type, 58, 6},
	    {"icmpv6_code", m->n_icmpv6_code, 58, 6},
	};
	const char *first = NULL;
	uint32_t proto = 0;

	for (size_t i = 0; i < ARRAY(of); i++) {
		const char *port = m->n_dport ? "dport" : "sport";

		if (!of[i].n)
			continue;
		if (first && proto != of[i].proto)
			return doc_fail(s, line, at,
					"%s and %s are of two protocols: no packet can match",
					first, of[i].name);
		first = of[i].name;
		proto = of[i].proto;
		if (!has_value(m->proto, m->n_proto, proto))
			return doc_fail(
			    s, line, at,
			    "%s is not of the protocol that proto names: no packet can match",
			    first);
		if ((m->n_dport || m->n_sport) && !pacer_has_ports((uint8_t)proto))
			return doc_fail(
			    s, line, at,
			    "%s is of a protocol without ports, and %s is written: no packet "
			    "can match",
			    first, port);
		if (of[i].family && headers_only_of(m, of[i].family == 4 ? 6 : 4))
			return doc_fail(s, line, at,
					"%s is of IPv%d, and %s is not: no packet can match", first,
					of[i].family, headers_family(m, false) ? "src" : "dst");
	}
	if (m->n_ether_type && m->n_inner)
		return doc_fail(
		    s, line, at,
		    "ether_type is of the frame, and inner: yes is for the IP packet in "
		    "its tunnel: leave one of them out");
	if (m->n_ether_type && headers_of_ip(m) &&
	    !has_value(m->ether_type, m->n_ether_type, PACER_ETH_IP4) &&
	    !has_value(m->ether_type, m->n_ether_type, PACER_ETH_IP6))
		return doc_fail(
		    s, line, at,
		    "ether_type is not of IP, and other fields are: no packet can match");
	return 0;
}
