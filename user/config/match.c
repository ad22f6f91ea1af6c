/* SPDX-License-Identifier: GPL-2.0-only */
/* What a rule matches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/headers.h"
#include "config/parts.h"
#include "config/units.h"
#include "config/writers.h"
#include "parse.h"

static int one_port(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (units_range(text, 65535, into))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is not a port: write 0 to 65535, or a range as 1024-65535",
				doc_shown(text).text);
	return 0;
}

static int one_vlan(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct range *range = into;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (!strcmp(text, "none")) {
		*range = (struct range){PACER_VLAN_NONE, PACER_VLAN_NONE};
		return 0;
	}
	if (units_range(text, PACER_VLAN_NONE - 1, range) || !range->low)
		return doc_fail(
		    s, doc_line(node), at,
		    "\"%s\" is not a VLAN: write 1 to 4095, a range as 100-199, or none (as "
		    "which frames count whose tags are all of VLAN 0)",
		    doc_shown(text).text);
	return 0;
}

static const struct choice protos[] = {
    {"icmp", 1},  {"igmp", 2},	 {"ipip", 4},	 {"tcp", 6},	{"egp", 8},
    {"udp", 17},  {"dccp", 33},	 {"ipv6", 41},	 {"rsvp", 46},	{"gre", 47},
    {"esp", 50},  {"ah", 51},	 {"icmpv6", 58}, {"eigrp", 88}, {"ospf", 89},
    {"pim", 103}, {"vrrp", 112}, {"l2tp", 115},	 {"sctp", 132}, {"udplite", 136},
};

static int one_proto(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct range *range = into;
	const char *text;
	size_t i;

	if (doc_scalar(s, at, node, &text))
		return -1;
	for (i = 0; i < ARRAY(protos); i++) {
		if (!strcmp(text, protos[i].name)) {
			*range =
			    (struct range){(uint32_t)protos[i].value, (uint32_t)protos[i].value};
			return 0;
		}
	}
	if (units_range(text, 255, range))
		return doc_fail(
		    s, doc_line(node), at,
		    "\"%s\" is not a protocol: write 0 to 255, or tcp, udp, icmp, icmpv6, "
		    "sctp, gre, esp, ah, igmp, ospf ...",
		    doc_shown(text).text);
	return 0;
}

static int MUST_USE read_some(struct source *s, const struct place *at, const yaml_node_t *node,
			      const struct list *list)
{
	if (doc_list(s, at, node, list))
		return -1;
	if (!*list->n)
		return doc_fail(s, doc_line(node), at,
				"an empty list matches nothing: leave the field out to match all");
	return 0;
}

#define MATCH_FIELD(field, item, most)                                                             \
	static int read_##field(struct source *s, const struct place *at, const yaml_node_t *node, \
				void *into)                                                        \
	{                                                                                          \
		struct policy_match *m = into;                                                     \
		struct list list = {item, m->field, sizeof(m->field[0]), most, &m->n_##field};     \
                                                                                                   \
		return read_some(s, at, node, &list);                                              \
	}

static int MUST_USE read_addresses(struct source *s, const struct place *at,
				   const yaml_node_t *node, struct policy_match *m, bool dst)
{
	struct address item[POLICY_LIST_MAX];
	struct prefix *prefix = dst ? m->dst : m->src;
	size_t n = 0, *n_prefixes = dst ? &m->n_dst : &m->n_src;
	struct list list = {address_read, item, sizeof(*item), POLICY_LIST_MAX, &n};

	if (read_some(s, at, node, &list))
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (!item[i].use.name[0]) {
			prefix[(*n_prefixes)++] = item[i].prefix;
			continue;
		}
		if (m->n_sets == POLICY_SET_USES_MAX)
			return doc_fail(s, doc_line(node), at,
					"a match names %d sets at the most: put some into one file",
					POLICY_SET_USES_MAX);
		item[i].use.dst = dst;
		m->set[m->n_sets++] = item[i].use;
	}
	return 0;
}

static int read_src(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_addresses(s, at, node, into, false);
}

static int read_dst(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_addresses(s, at, node, into, true);
}

MATCH_FIELD(sport, one_port, POLICY_LIST_MAX)
MATCH_FIELD(dport, one_port, POLICY_LIST_MAX)
MATCH_FIELD(proto, one_proto, POLICY_LIST_MAX)
MATCH_FIELD(vlan, one_vlan, POLICY_LIST_MAX)
MATCH_FIELD(flags, headers_flags, POLICY_LIST_MAX)
MATCH_FIELD(icmp_type, headers_icmp_type, POLICY_LIST_MAX)
MATCH_FIELD(icmp_code, headers_code, POLICY_LIST_MAX)
MATCH_FIELD(icmpv6_type, headers_icmpv6_type, POLICY_LIST_MAX)
MATCH_FIELD(icmpv6_code, headers_code, POLICY_LIST_MAX)
MATCH_FIELD(len, headers_len, POLICY_LIST_MAX)
MATCH_FIELD(payload_len, headers_len, POLICY_LIST_MAX)
MATCH_FIELD(ttl, headers_ttl, POLICY_LIST_MAX)
MATCH_FIELD(dscp, headers_dscp, POLICY_LIST_MAX)
MATCH_FIELD(fragment, headers_fragment, POLICY_LIST_MAX)
MATCH_FIELD(options, headers_options, 1)
MATCH_FIELD(ether_type, headers_ether_type, POLICY_LIST_MAX)
MATCH_FIELD(ether_src, headers_mac, POLICY_LIST_MAX)
MATCH_FIELD(ether_dst, headers_mac, POLICY_LIST_MAX)
MATCH_FIELD(payload, headers_bytes, POLICY_PAYLOADS_MAX)
MATCH_FIELD(inner, headers_options, 1)

static void range_text(const struct range *range, char *buf, size_t size)
{
	if (range->low == range->high)
		snprintf(buf, size, "%u", range->low);
	else
		snprintf(buf, size, "%u-%u", range->low, range->high);
}

static void proto_text(const struct range *range, char *buf, size_t size)
{
	range_text(range, buf, size);
	for (size_t i = 0; i < ARRAY(protos); i++)
		if (range->low == range->high && (int)range->low == protos[i].value)
			snprintf(buf, size, "%s", protos[i].name);
}

static void vlan_text(const struct range *range, char *buf, size_t size)
{
	range_text(range, buf, size);
	if (range->low == PACER_VLAN_NONE)
		snprintf(buf, size, "none");
}

/* Prefixes, and then sets. */
static bool write_addresses(const struct policy_match *m, bool dst, size_t i, char *buf,
			    size_t size)
{
	size_t n = dst ? m->n_dst : m->n_src;

	if (i < n) {
		units_prefix_text(dst ? &m->dst[i] : &m->src[i], buf, size);
		return true;
	}
	for (size_t k = 0; k < m->n_sets; k++)
		if (m->set[k].dst == dst && n++ == i) {
			address_use_text(&m->set[k], buf, size);
			return true;
		}
	return false;
}

static bool write_src(const void *from, size_t i, char *buf, size_t size)
{
	return write_addresses(from, false, i, buf, size);
}

static bool write_dst(const void *from, size_t i, char *buf, size_t size)
{
	return write_addresses(from, true, i, buf, size);
}

WRITE_LIST(proto, policy_match, proto, proto_text)
WRITE_LIST(sport, policy_match, sport, range_text)
WRITE_LIST(dport, policy_match, dport, range_text)
WRITE_LIST(vlan, policy_match, vlan, vlan_text)
WRITE_LIST(flags, policy_match, flags, headers_flags_text)
WRITE_LIST(icmp_type, policy_match, icmp_type, headers_icmp_type_text)
WRITE_LIST(icmp_code, policy_match, icmp_code, headers_range_text)
WRITE_LIST(icmpv6_type, policy_match, icmpv6_type, headers_icmpv6_type_text)
WRITE_LIST(icmpv6_code, policy_match, icmpv6_code, headers_range_text)
WRITE_LIST(len, policy_match, len, headers_range_text)
WRITE_LIST(payload_len, policy_match, payload_len, headers_range_text)
WRITE_LIST(ttl, policy_match, ttl, headers_range_text)
WRITE_LIST(dscp, policy_match, dscp, headers_dscp_text)
WRITE_LIST(fragment, policy_match, fragment, headers_fragment_text)
WRITE_LIST(options, policy_match, options, headers_options_text)
WRITE_LIST(ether_type, policy_match, ether_type, headers_ether_type_text)
WRITE_LIST(ether_src, policy_match, ether_src, headers_mac_text)
WRITE_LIST(ether_dst, policy_match, ether_dst, headers_mac_text)
WRITE_LIST(payload, policy_match, payload, headers_bytes_text)
WRITE_LIST(inner, policy_match, inner, headers_options_text)

enum match_field {
	FIELD_SRC,
	FIELD_DST,
	FIELD_PROTO,
	FIELD_SPORT,
	FIELD_DPORT,
	FIELD_VLAN,
	FIELD_FLAGS,
	FIELD_ICMP_TYPE,
	FIELD_ICMP_CODE,
	FIELD_ICMPV6_TYPE,
	FIELD_ICMPV6_CODE,
	FIELD_LEN,
	FIELD_PAYLOAD_LEN,
	FIELD_TTL,
	FIELD_DSCP,
	FIELD_FRAGMENT,
	FIELD_OPTIONS,
	FIELD_ETHER_TYPE,
	FIELD_ETHER_SRC,
	FIELD_ETHER_DST,
	FIELD_PAYLOAD,
	FIELD_INNER,
	MATCH_FIELDS
};

static const struct field match_field[MATCH_FIELDS] = {
    [FIELD_SRC] = {"src", read_src, "PREFIX|@SET...", "where it comes from; any unless said", 0, 0,
		   write_src},
    [FIELD_DST] = {"dst", read_dst, "PREFIX|@SET...", "where it goes; any unless said", 0, 0,
		   write_dst},
    [FIELD_PROTO] = {"proto", read_proto, "PROTOCOL...",
		     "a name, as tcp, udp or icmpv6, or a number, or a range of them", 0, 0,
		     write_proto},
    [FIELD_SPORT] = {"sport", read_sport, "PORT...",
		     "of TCP, UDP and SCTP: a number, or a range as 1024-65535", 0, 0, write_sport},
    [FIELD_DPORT] = {"dport", read_dport, "PORT...", "the same of the destination", 0, 0,
		     write_dport},
    [FIELD_VLAN] = {"vlan", read_vlan, "VLAN...", "a number, a range as 100-199, or none", 0, 0,
		    write_vlan},
    [FIELD_FLAGS] = {"flags", read_flags, "FLAGS...",
		     "of TCP: those that are set / those that are looked at, as syn / syn,ack", 0,
		     0, write_flags},
    [FIELD_ICMP_TYPE] = {"icmp_type", read_icmp_type, "ICMP_TYPE...",
			 "of ICMP: a name, as echo-request, a number or a range", 0, 0,
			 write_icmp_type},
    [FIELD_ICMP_CODE] = {"icmp_code", read_icmp_code, "BYTE...", "of ICMP: a number or a range", 0,
			 0, write_icmp_code},
    [FIELD_ICMPV6_TYPE] = {"icmpv6_type", read_icmpv6_type, "ICMPV6_TYPE...",
			   "the same of ICMPv6, as nd-neighbor-solicit", 0, 0, write_icmpv6_type},
    [FIELD_ICMPV6_CODE] = {"icmpv6_code", read_icmpv6_code, "BYTE...",
			   "of ICMPv6: a number or a range", 0, 0, write_icmpv6_code},
    [FIELD_LEN] = {"len", read_len, "LENGTH...",
		   "bytes of the whole frame: a number, or a range as 0-100", 0, 0, write_len},
    [FIELD_PAYLOAD_LEN] = {"payload_len", read_payload_len, "LENGTH...",
			   "bytes behind the TCP, UDP, SCTP or ICMP header", 0, 0,
			   write_payload_len},
    [FIELD_TTL] = {"ttl", read_ttl, "BYTE...",
		   "TTL of IPv4, hop limit of IPv6: a number or a range", 0, 0, write_ttl},
    [FIELD_DSCP] = {"dscp", read_dscp, "DSCP...", "a name, as ef or cs1, a number or a range", 0, 0,
		    write_dscp},
    [FIELD_FRAGMENT] = {"fragment", read_fragment, "first|later|none...",
			"which fragments of a datagram", 0, 0, write_fragment},
    [FIELD_OPTIONS] =
	{"options", read_options, "yes|no",
	 "whether it has IP options (of IPv6: hop-by-hop, routing, destination headers)", 0, 0,
	 write_options},
    [FIELD_ETHER_TYPE] = {"ether_type", read_ether_type, "ETHER_TYPE...",
			  "behind VLAN tags: a name, as arp, or a number, as 0x88cc", 0, 0,
			  write_ether_type},
    [FIELD_ETHER_SRC] = {"ether_src", read_ether_src, "MAC...",
			 "Ethernet address, or how it begins, as \"02:00:5e\"", 0, 0,
			 write_ether_src},
    [FIELD_ETHER_DST] = {"ether_dst", read_ether_dst, "MAC...", "the same of the destination", 0, 0,
			 write_ether_dst},
    [FIELD_PAYLOAD] = {"payload", read_payload, "BYTES...",
		       "1 to 4 bytes of the payload: WHERE=0xHEX or WHERE=0xHEX/0xMASK, as 3=0x2a",
		       0, 0, write_payload},
    [FIELD_INNER] = {"inner", read_inner, "yes|no",
		     "what is in GRE, IP in IP, VXLAN, GENEVE, GTP-U or PPPoE, one level deep", 0,
		     0, write_inner},
};

const struct fields parts_match = {"a match", match_field, MATCH_FIELDS};

/* Of a range, one that has the ports. */
static bool has_ports(const struct range *range)
{
	for (uint32_t proto = range->low; proto <= range->high; proto++)
		if (pacer_has_ports((uint8_t)proto))
			return true;
	return false;
}

static bool is_proto(const struct range *range, uint32_t proto)
{
	return range->low == proto && range->high == proto;
}

/* Each protocol of the list has to be one that a packet with the rule's other fields can have. */
static int MUST_USE check_protos(struct source *s, const struct place *at, const yaml_node_t **seen,
				 const struct policy_match *m)
{
	struct place list = {at, "proto", 0}, item = {&list, NULL, 0};
	const char *port = m->n_dport ? "dport" : "sport";

	for (size_t i = 0; i < m->n_proto; i++) {
		const struct range *range = &m->proto[i];
		bool icmp = is_proto(range, 1);

		item.index = i;
		if ((m->n_dport || m->n_sport) && !has_ports(range))
			return doc_fail(
			    s, doc_line(seen[FIELD_PROTO]), &item,
			    "protocol %u has no ports, and %s is written: no packet can "
			    "match: leave %s out, or write tcp, udp or sctp",
			    range->low, port, port);
		if ((icmp && headers_only_of(m, 6)) ||
		    (is_proto(range, 58) && headers_only_of(m, 4)))
			return doc_fail(
			    s, doc_line(seen[FIELD_PROTO]), &item,
			    "%s is not of IPv%d, and %s is: no packet can match: write %s",
			    icmp ? "icmp" : "icmpv6", icmp ? 6 : 4,
			    headers_family(m, false) ? "src" : "dst", icmp ? "icmpv6" : "icmp");
	}
	return 0;
}

static int by_low(const void *a, const void *b)
{
	const struct range *one = a, *other = b;

	return one->low < other->low ? -1 : one->low > other->low;
}

/* In order, and what touches joined. Returns how many ranges there are. */
static size_t join(struct range *range, size_t n)
{
	size_t last = 0;

	if (n)
		qsort(range, n, sizeof(*range), by_low);
	for (size_t i = 1; i < n; i++) {
		if (range[i].low > range[last].high + 1)
			range[++last] = range[i];
		else if (range[i].high > range[last].high)
			range[last].high = range[i].high;
	}
	return n ? last + 1 : 0;
}

/* If both lists say the same numbers, the first is written in the one form that both have. */
static void agree(struct range *one, size_t *n, const struct range *other, size_t n_other)
{
	struct range joined[POLICY_LIST_MAX], joined_other[POLICY_LIST_MAX];
	size_t n_joined;

	memcpy(joined, one, *n * sizeof(*one));
	memcpy(joined_other, other, n_other * sizeof(*other));
	n_joined = join(joined, *n);
	if (n_joined != join(joined_other, n_other) ||
	    memcmp(joined, joined_other, n_joined * sizeof(*joined)))
		return;
	memcpy(one, joined, n_joined * sizeof(*joined));
	*n = n_joined;
}

#define AGREE(list) agree(m->list, &m->n_##list, other->list, other->n_##list)

void parts_match_agree(struct policy_match *m, const struct policy_match *other)
{
	AGREE(proto);
	AGREE(sport);
	AGREE(dport);
	AGREE(vlan);
	AGREE(icmp_type);
	AGREE(icmp_code);
	AGREE(icmpv6_type);
	AGREE(icmpv6_code);
	AGREE(len);
	AGREE(payload_len);
	AGREE(ttl);
	AGREE(dscp);
}

int parts_read_match(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const yaml_node_t *seen[MATCH_FIELDS] = {0};
	struct policy_match *m = &((struct policy_rule *)into)->match;
	int src, dst;

	if (doc_fields(s, at, node, &parts_match, m, seen))
		return -1;
	if (m->n_inner && !m->inner[0].low) /* as if it were not written */
		m->n_inner = 0;
	src = headers_family(m, false);
	dst = headers_family(m, true);
	if (src && dst && src != dst)
		return doc_fail(s, doc_line(seen[FIELD_DST]), at,
				"src is IPv%d and dst is IPv%d: no packet can match", src, dst);
	return check_protos(s, at, seen, m) ? -1 : headers_check(s, at, doc_line(node), m);
}
