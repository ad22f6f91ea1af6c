/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document.h"
#include "config/headers.h"
#include "config/limits.h"
#include "config/rules.h"
#include "parse.h"
#include "sample_burst.h"

/* The text of a field with one value. */
#define WRITER(name, struct_name, is_there, format, ...)                             \
	static bool write_##name(const void *from, size_t i, char *buf, size_t size) \
	{                                                                            \
		const struct struct_name *p = from;                                  \
                                                                                     \
		if (i || !(is_there))                                                \
			return false;                                                \
		snprintf(buf, size, format, __VA_ARGS__);                            \
		return true;                                                         \
	}

#define WRITE_NUMBER(name, struct_name, is_there, value) \
	WRITER(name, struct_name, is_there, "%llu", (unsigned long long)(value))
#define WRITE_TIME(name, struct_name, is_there, ns) \
	WRITER(name, struct_name, is_there, "%s",   \
	       units_duration_text(ns, (char[FIELD_TEXT]){0}, FIELD_TEXT))

/* match */

static int one_prefix(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct prefix *prefix = into, host;
	const char *text, *slash;
	char buf[64];

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (!units_prefix(text, prefix)) {
		if (!units_prefix_mapped(prefix, &host))
			return 0;
		return doc_fail(
		    s, doc_line(node), at,
		    "%s is an IPv4 address in the form of IPv6, and no packet has it: write %s",
		    doc_shown(text).text, units_prefix_text(&host, buf, sizeof(buf)));
	}
	if (!units_prefix_masked(text, &host))
		return doc_fail(s, doc_line(node), at, "%s has bits beyond its length: write %s",
				doc_shown(text).text, units_prefix_text(&host, buf, sizeof(buf)));
	slash = strchr(text, '/');
	if (slash) {
		snprintf(buf, sizeof(buf), "%.*s", (int)doc_smallest((size_t)(slash - text), 63),
			 text);
		if (!units_prefix(buf, &host))
			return doc_fail(s, doc_line(node), at, "%s: the length is 0 to %u",
					doc_shown(text).text, host.len);
	}
	return doc_fail(s, doc_line(node), at,
			"\"%s\" is not a prefix: write 192.0.2.0/24, 192.0.2.1 or 2001:db8::/32",
			doc_shown(text).text);
}

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

/* An item of src or dst: a prefix, or a set. */
struct address {
	struct prefix prefix;
	struct policy_set_use use; /* name[0] is 0: a prefix */
};

static int MUST_USE read_name_of(struct source *s, const struct place *at, int line,
				 const char *text, char name[POLICY_NAME_MAX]);

/* "drop" or "geo=XY" */
static int MUST_USE read_set_use(struct source *s, const struct place *at, int line,
				 const char *text, struct policy_set_use *use)
{
	size_t n = strcspn(text, "=");
	char name[2 * POLICY_NAME_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name)), text);
	if (read_name_of(s, at, line, name, use->name))
		return -1;
	if (!text[n])
		return 0;
	if (!text[n + 1] || strlen(text + n + 1) >= POLICY_VALUE_MAX)
		return doc_fail(s, line, at,
				"\"@%s\" will not do: a value has 1 to %d bytes: @%s=XX",
				doc_shown(text).text, POLICY_VALUE_MAX - 1, use->name);
	snprintf(use->value, sizeof(use->value), "%s", text + n + 1);
	return 0;
}

static int one_address(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	struct address *address = into;
	const char *text;

	*address = (struct address){.use = {.line = doc_line(node)}};
	if (doc_scalar(s, at, node, &text))
		return -1;
	address->use.not = *text == '!';
	text += address->use.not ;
	if (*text == '@')
		return read_set_use(s, at, doc_line(node), text + 1, &address->use);
	if (address->use.not )
		return doc_fail(
		    s, doc_line(node), at,
		    "\"!%s\" is not a set: '!' is written before sets alone, as !@office",
		    doc_shown(text).text);
	return one_prefix(s, at, node, &address->prefix);
}

static int MUST_USE read_addresses(struct source *s, const struct place *at,
				   const yaml_node_t *node, struct policy_match *m, bool dst)
{
	struct address item[POLICY_LIST_MAX];
	struct prefix *prefix = dst ? m->dst : m->src;
	size_t n = 0, *n_prefixes = dst ? &m->n_dst : &m->n_src;
	struct list list = {one_address, item, sizeof(*item), POLICY_LIST_MAX, &n};

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

#define WRITE_LIST(name, struct_name, list, text)                                    \
	static bool write_##name(const void *from, size_t i, char *buf, size_t size) \
	{                                                                            \
		const struct struct_name *p = from;                                  \
                                                                                     \
		if (i < p->n_##list)                                                 \
			text(&p->list[i], buf, size);                                \
		return i < p->n_##list;                                              \
	}

static void use_text(const struct policy_set_use *use, char *buf, size_t size)
{
	snprintf(buf, size, "%s@%s%s%s", use->not ? "!" : "", use->name, use->value[0] ? "=" : "",
		 use->value);
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
			use_text(&m->set[k], buf, size);
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

static int read_match(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const yaml_node_t *seen[MATCH_FIELDS] = {0};
	struct policy_match *m = &((struct policy_rule *)into)->match;
	int src, dst;

	if (doc_fields(s, at, node, rules_part(POLICY_MATCH), m, seen))
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

/* rules */

static int MUST_USE read_name_of(struct source *s, const struct place *at, int line,
				 const char *text, char name[POLICY_NAME_MAX])
{
	static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789_-";

	if (!*text || text[strspn(text, letters)] || strlen(text) >= POLICY_NAME_MAX)
		return doc_fail(s, line, at,
				"\"%s\" will not do: 1 to %d letters, digits, '_' and '-'",
				doc_shown(text).text, POLICY_NAME_MAX - 1);
	memcpy(name, text, strlen(text) + 1);
	return 0;
}

static int read_name(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	return read_name_of(s, at, doc_line(node), text, ((struct policy_rule *)into)->name);
}

static int MUST_USE read_action(struct source *s, const struct place *at, const yaml_node_t *node,
				enum pacer_over *over, char pool_name[POLICY_NAME_MAX])
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (!strcmp(text, "pool"))
		return doc_fail(s, doc_line(node), at, "which pool is missing: write pool NAME");
	if (!strncmp(text, "pool ", 5)) {
		*over = PACER_OVER_POOL;
		return read_name_of(s, at, doc_line(node), text + 5 + strspn(text + 5, " "),
				    pool_name);
	}
	if (strcmp(text, "drop") && strcmp(text, "pass"))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is not known: write drop, pass or pool NAME",
				doc_shown(text).text);
	*over = *text == 'd' ? PACER_OVER_DROP : PACER_OVER_PASS;
	return 0;
}

static int read_over(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_rule *rule = into;

	rule->over_line = doc_line(node);
	return read_action(s, at, node, &rule->over, rule->pool_name);
}

/* What passes is not denied first. */
static int MUST_USE read_says(struct source *s, const struct place *at, const yaml_node_t *node,
			      enum pacer_says *says, enum pacer_over *over,
			      char pool_name[POLICY_NAME_MAX])
{
	if (read_action(s, at, node, over, pool_name))
		return -1;
	*says = *over == PACER_OVER_PASS ? PACER_SAYS_PASS : PACER_SAYS_DENY;
	if (*over == PACER_OVER_PASS)
		*over = PACER_OVER_DROP;
	return 0;
}

static int read_verdict(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct policy_rule *rule = into;

	rule->over_line = doc_line(node);
	rule->limit[0].key = KEY_SRC(32, 128);
	return read_says(s, at, node, &rule->says, &rule->over, rule->pool_name);
}

static int read_ban_for(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	return doc_duration(s, at, node, &((struct policy_rule *)into)->ban_ns);
}

static const char *action_name(enum pacer_over over)
{
	return over == PACER_OVER_POOL ? "pool " : over == PACER_OVER_PASS ? "pass" : "drop";
}

WRITER(over, policy_rule, !p->says, "%s%s", action_name(p->over),
       p->over == PACER_OVER_POOL ? p->pool_name : "")
WRITER(verdict, policy_rule, p->says, "%s%s",
       p->says == PACER_SAYS_PASS ? "pass" : action_name(p->over),
       p->over == PACER_OVER_POOL ? p->pool_name : "")

/* As it is written: a time, or how it grows, and whose it is. */
static bool write_ban(const void *from, size_t i, char *buf, size_t size)
{
	const struct policy_rule *p = from;
	char first[32], up_to[32], forget[32], grow[128] = "";

	if (i || !p->ban_ns)
		return false;
	units_duration_text(p->ban_ns, first, sizeof(first));
	units_duration_text(p->ban_max_ns, up_to, sizeof(up_to));
	units_duration_text(p->ban_forget_ns, forget, sizeof(forget));
	if (p->ban_grow)
		snprintf(grow, sizeof(grow), ", grow: x%u, up_to: %s, forget: %s", p->ban_grow,
			 up_to, forget);
	if (p->ban_grow || p->ban_fleet)
		snprintf(buf, size, "{for: %s%s%s}", first, grow,
			 p->ban_fleet ? ", fleet: yes" : "");
	else
		snprintf(buf, size, "%s", first);
	return true;
}

static int read_grow(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_rule *rule = into;
	struct range range;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (*text != 'x' || units_range(text + 1, PACER_BAN_GROW_MAX, &range) ||
	    range.low != range.high || range.low < 2)
		return doc_fail(s, doc_line(node), at, "\"%s\" will not do: write x2 to x%u",
				doc_shown(text).text, PACER_BAN_GROW_MAX);
	rule->ban_grow = range.low;
	return 0;
}

static int read_up_to(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return doc_duration(s, at, node, &((struct policy_rule *)into)->ban_max_ns);
}

static int read_forget(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	return doc_duration(s, at, node, &((struct policy_rule *)into)->ban_forget_ns);
}

/* yes or no */
static int MUST_USE read_yes(struct source *s, const struct place *at, const yaml_node_t *node,
			     bool *into)
{
	static const struct choice choices[] = {{"yes", 1}, {"no", 0}, {NULL, 0}};
	int yes;

	if (doc_choose(s, at, node, choices, &yes))
		return -1;
	*into = yes;
	return 0;
}

static int read_ban_fleet(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	return read_yes(s, at, node, &((struct policy_rule *)into)->ban_fleet);
}

enum ban_field { BAN_FOR, BAN_GROW, BAN_UP_TO, BAN_FORGET, BAN_FLEET, BAN_FIELDS };

static const struct field ban_field[BAN_FIELDS] = {
    [BAN_FOR] = {.name = "for", .read = read_ban_for},
    [BAN_GROW] = {.name = "grow", .read = read_grow},
    [BAN_UP_TO] = {.name = "up_to", .read = read_up_to},
    [BAN_FORGET] = {.name = "forget", .read = read_forget},
    [BAN_FLEET] = {.name = "fleet", .read = read_ban_fleet},
};

/* A time, or {for: 30s, grow: x4, up_to: 1d, forget: 7d, fleet: yes}. */
static int read_ban(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct fields fields = {"a ban", ban_field, BAN_FIELDS};
	const yaml_node_t *seen[BAN_FIELDS] = {0};
	const struct policy_rule *rule = into;
	char up_to[32], first[32];

	if (node->type != YAML_MAPPING_NODE)
		return read_ban_for(s, at, node, into);
	if (doc_fields(s, at, node, &fields, into, seen))
		return -1;
	if (!seen[BAN_FOR])
		return doc_fail(s, doc_line(node), at, "the time is missing: write for: 30s");
	if (!seen[BAN_GROW] != !seen[BAN_UP_TO] || !seen[BAN_GROW] != !seen[BAN_FORGET])
		return doc_fail(s, doc_line(node), at,
				"grow, up_to and forget go together: write {for: 30s, grow: x4, "
				"up_to: 1d, forget: 7d}");
	if (!seen[BAN_GROW] || rule->ban_max_ns > rule->ban_ns)
		return 0;
	units_duration_text(rule->ban_max_ns, up_to, sizeof(up_to));
	units_duration_text(rule->ban_ns, first, sizeof(first));
	return doc_fail(s, doc_line(seen[BAN_UP_TO]), at,
			"up_to %s is not more than for %s: no ban would grow", up_to, first);
}

enum rule_field {
	FIELD_NAME,
	FIELD_MATCH,
	FIELD_LIMITS,
	FIELD_VERDICT,
	FIELD_OVER,
	FIELD_BAN,
	RULE_FIELDS
};

static const struct field rule_field[RULE_FIELDS] = {
    [FIELD_NAME] = {"name", read_name, "NAME",
		    "for people, counters and `set`: 1 to 31 letters, digits, _ and -", 0,
		    FIELD_NEEDED, NULL},
    [FIELD_MATCH] = {"match", read_match, "MATCH",
		     "what of a packet has to be so; every packet unless said", 0, 0, NULL},
    [FIELD_LIMITS] = {"limits", limits_read, "[LIMIT...]",
		      "1 to 8, all of which a packet has to be within; or a verdict", 0, 0, NULL},
    [FIELD_VERDICT] = {"verdict", read_verdict, "drop|pass|pool NAME",
		       "what is done with every packet of the rule, without limits", 0, 0,
		       write_verdict},
    [FIELD_OVER] = {"over", read_over, "drop|pass|pool NAME",
		    "what is done with a packet over a limit; drop unless said", 0, 0, write_over},
    [FIELD_BAN] = {"ban", read_ban, "TIME|BAN",
		   "a key that a limit denies is denied everything for so long", 0, 0, write_ban},
};

/* The family that has one key: 4, 6, or 0. */
static int one_key_of(const struct policy_key *key)
{
	if (key->parts & ~(KEY_PART_SRC | KEY_PART_DST))
		return 0; /* also of values: there are some of either */
	if (!key->src4 && !key->dst4)
		return 4;
	return !key->src6 && !key->dst6 ? 6 : 0;
}

/* A ban is of a key: one that is the same for all would ban everybody. */
static int MUST_USE check_ban(struct source *s, const struct place *at, const yaml_node_t *ban,
			      const struct policy_rule *rule)
{
	struct place place = {at, "ban", 0};
	size_t i, keyed = 0;

	for (i = 0; i < rule->n_limits && ban; i++) {
		const struct policy_key *key = &rule->limit[i].key;

		if (!key->parts)
			continue;
		keyed++;
		if (one_key_of(key))
			return doc_fail(
			    s, doc_line(ban), &place,
			    "limits[%u] has one key for all of IPv%d, whom it would ban "
			    "together: give that a length above 0",
			    rule->limit[i].item, one_key_of(key));
	}
	if (!ban || keyed)
		return 0;
	return doc_fail(
	    s, doc_line(ban), &place,
	    "every limit of the rule has the key all, whose denials ban nobody: add a limit "
	    "by src, say");
}

/* What is not IP has no addresses to be told apart by. */
static int MUST_USE check_keys(struct source *s, const struct place *at,
			       const struct policy_rule *rule)
{
	struct place list = {at, "limits", 0}, item = {&list, NULL, 0};

	for (size_t i = 0; i < rule->n_limits && headers_of_frames(&rule->match); i++) {
		item.index = rule->limit[i].item;
		if (rule->limit[i].key.parts & ~KEY_PART_VLAN)
			return doc_fail(
			    s, rule->limit[i].line, &item,
			    "ether_type names frames that are not IP, which have no "
			    "addresses: write key: all, or a verdict in place of limits");
	}
	return 0;
}

static int read_rule(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const enum rule_field of_limits[] = {FIELD_LIMITS, FIELD_OVER, FIELD_BAN};
	const yaml_node_t *seen[RULE_FIELDS] = {0};
	struct policy_rule *rule = into, *other = rule - at->index;
	struct place place = {at, "name", 0};

	rule->line = doc_line(node);
	if (doc_fields(s, at, node, rules_part(POLICY_RULE), rule, seen))
		return -1;
	if (!seen[FIELD_NAME])
		return doc_fail(s, rule->line, at,
				"the name is missing: write name: dns, for example");
	if (!seen[FIELD_LIMITS] && !seen[FIELD_VERDICT])
		return doc_fail(s, rule->line, at,
				"the limits are missing: write limits: and a list, or verdict: "
				"drop or pass");
	for (size_t f = 0; seen[FIELD_VERDICT] && f < ARRAY(of_limits); f++)
		if (seen[of_limits[f]])
			return doc_fail(s, doc_line(seen[of_limits[f]]), at,
					"%s and verdict are both written: a rule with a verdict "
					"has no limits, nor what follows from them",
					rule_field[of_limits[f]].name);
	for (; other < rule; other++)
		if (!strcmp(other->name, rule->name))
			return doc_fail(s, doc_line(seen[FIELD_NAME]), &place,
					"\"%s\" is the name of the rule in line %d, too",
					rule->name, other->line);
	return check_keys(s, at, rule) ? -1 : check_ban(s, at, seen[FIELD_BAN], rule);
}

static int read_rules(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	struct list list = {read_rule, NULL, sizeof(policy->rule[0]), PACER_RULES_MAX,
			    &policy->n_rules};
	int result;

	if (node->type != YAML_SEQUENCE_NODE)
		return doc_fail(s, doc_line(node), at, "expected a list of rules, or [] for none");
	result = doc_list_new(s, at, node, &list);
	policy->rule = list.items;
	return result;
}

/* pools */

enum pool_field {
	FIELD_POOL_NAME,
	FIELD_TARGETS,
	FIELD_EACH,
	FIELD_POOL_COOLDOWN,
	FIELD_POOL_MAX_COOLDOWN,
	FIELD_POOL_THRESHOLD,
	POOL_FIELDS
};

static int read_pool_name(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	return read_name_of(s, at, doc_line(node), text, ((struct policy_pool *)into)->name);
}

/* The kernel takes any other byte in an interface's name. */
static bool names_interface(const char *text)
{
	return !text[strcspn(text, "/: \t\n\v\f\r")] && strcmp(text, ".") && strcmp(text, "..");
}

static int one_target(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_target *target = into;
	unsigned int most = POLICY_TARGET_MAX;
	struct range number;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (!strncmp(text, "cpu:", 4) || !strncmp(text, "xsk:", 4)) {
		target->kind = *text == 'c' ? PACER_TARGET_CPU : PACER_TARGET_SOCKET;
		if (target->kind == PACER_TARGET_SOCKET)
			most = PACER_SOCKETS_MAX - 1;
		if (units_range(text + 4, most, &number) || number.low != number.high)
			return doc_fail(s, doc_line(node), at,
					"\"%s\" will not do: write %.4s0 to %.4s%u",
					doc_shown(text).text, text, text, most);
		target->number = number.low;
		return 0;
	}
	if (!names_interface(text))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is no target: write an interface, cpu:1 or xsk:0",
				doc_shown(text).text);
	if (strlen(text) >= POLICY_TARGET_NAME)
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is too long for an interface: at most %d",
				doc_shown(text).text, POLICY_TARGET_NAME - 1);
	memcpy(target->name, text, strlen(text) + 1);
	return 0;
}

static int read_targets(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct policy_pool *pool = into;
	struct list list = {one_target, pool->target, sizeof(pool->target[0]), PACER_TARGETS_MAX,
			    &pool->n};

	if (doc_list(s, at, node, &list))
		return -1;
	if (!pool->n)
		return doc_fail(s, doc_line(node), at,
				"the list is empty: a pool has 1 to %u targets", PACER_TARGETS_MAX);
	return 0;
}

#define POOL_FIELD(name, how, field)                                                              \
	static int read_##name(struct source *s, const struct place *at, const yaml_node_t *node, \
			       void *into)                                                        \
	{                                                                                         \
		return how(s, at, node, &((struct policy_pool *)into)->field);                    \
	}

POOL_FIELD(each, limits_uses, each)
POOL_FIELD(pool_threshold, limits_uses, throttle.threshold)
POOL_FIELD(pool_cooldown, doc_duration, throttle.cooldown_ns)
POOL_FIELD(pool_max_cooldown, doc_duration, throttle.max_cooldown_ns)

static bool write_targets(const void *from, size_t i, char *buf, size_t size)
{
	const struct policy_pool *pool = from;

	if (i < pool->n)
		policy_target_text(&pool->target[i], buf, size);
	return i < pool->n;
}

WRITE_NUMBER(each, policy_pool, true, p->each)
WRITE_TIME(pool_cooldown, policy_pool, true, p->throttle.cooldown_ns)
WRITE_TIME(pool_max_cooldown, policy_pool, p->throttle.max_cooldown_ns != UINT64_MAX,
	   p->throttle.max_cooldown_ns)
WRITE_NUMBER(pool_threshold, policy_pool, true, p->throttle.threshold)

static const struct field pool_field[POOL_FIELDS] = {
    [FIELD_POOL_NAME] = {"name", read_pool_name, "NAME", "that rules name behind over: pool", 0,
			 FIELD_NEEDED, NULL},
    [FIELD_TARGETS] = {"targets", read_targets, "TARGET...",
		       "1 to 32 interfaces, or CPUs as cpu:1, or sockets as xsk:0", 0, FIELD_NEEDED,
		       write_targets},
    [FIELD_EACH] = {"each", read_each, "N", "packets that a target gets in any cooldown, at most",
		    0, FIELD_NEEDED, write_each},
    [FIELD_POOL_COOLDOWN] = {"cooldown", read_pool_cooldown, "TIME",
			     "after which a use of a target is free again", 0, FIELD_NEEDED,
			     write_pool_cooldown},
    [FIELD_POOL_MAX_COOLDOWN] = {"max_cooldown", read_pool_max_cooldown, "TIME", "as of a throttle",
				 0, 0, write_pool_max_cooldown},
    [FIELD_POOL_THRESHOLD] = {"threshold", read_pool_threshold, "N",
			      "as of a throttle; of all targets together", 0, 0,
			      write_pool_threshold},
};

const char *policy_target_text(const struct policy_target *target, char *buf, size_t size)
{
	if (target->kind == PACER_TARGET_INTERFACE)
		snprintf(buf, size, "%s", target->name);
	else
		snprintf(buf, size, "%s:%u", target->kind == PACER_TARGET_CPU ? "cpu" : "xsk",
			 target->number);
	return buf;
}

static bool same_target(const struct policy_target *a, const struct policy_target *b)
{
	return a->kind == b->kind && a->number == b->number && !strcmp(a->name, b->name);
}

/* All of one kind, and each in no other place, of this pool or one before it. */
static int MUST_USE check_targets(struct source *s, const struct place *at,
				  const yaml_node_t *targets, const struct policy_pool *pool)
{
	static const char *const kinds[] = {"an interface", "a CPU", "a socket"};
	const struct policy_pool *other;
	struct place list = {at, "targets", 0}, item = {&list, NULL, 0};
	char text[32];
	size_t i, k;

	for (i = 0; i < pool->n; i++) {
		item.index = i;
		policy_target_text(&pool->target[i], text, sizeof(text));
		if (pool->target[i].kind != pool->target[0].kind)
			return doc_fail(s, doc_line(targets), &item,
					"%s is %s, and the first target %s: a pool is of one kind",
					text, kinds[pool->target[i].kind],
					kinds[pool->target[0].kind]);
		for (other = pool - at->index; other <= pool; other++)
			for (k = 0; k < (other == pool ? i : other->n); k++)
				if (same_target(&other->target[k], &pool->target[i]))
					return doc_fail(
					    s, doc_line(targets), &item,
					    "%s is a target of pool %s already: a target "
					    "is in one place of one pool",
					    text, other->name);
	}
	return 0;
}

static int MUST_USE check_pool(struct source *s, const struct place *at, const yaml_node_t **seen,
			       const struct policy_pool *pool)
{
	static const char *const example[POOL_FIELDS] = {
	    [FIELD_POOL_NAME] = "scrub",
	    [FIELD_TARGETS] = "[veth1, veth2]",
	    [FIELD_EACH] = "500",
	    [FIELD_POOL_COOLDOWN] = "10m",
	};
	const struct policy_pool *other = pool - at->index;
	struct place place = {at, "name", 0};
	enum pool_field f;

	for (f = 0; f < POOL_FIELDS; f++)
		if (example[f] && !seen[f])
			return doc_fail(s, pool->line, at,
					"%s is missing: write %s: %s, for example",
					pool_field[f].name, pool_field[f].name, example[f]);
	for (; other < pool; other++)
		if (!strcmp(other->name, pool->name))
			return doc_fail(s, doc_line(seen[FIELD_POOL_NAME]), &place,
					"\"%s\" is the name of the pool in line %d, too",
					pool->name, other->line);
	return 0;
}

static int read_pool(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const yaml_node_t *seen[POOL_FIELDS] = {0};
	struct policy_pool *pool = into;
	struct place each = {at, "each", 0};

	pool->line = doc_line(node);
	if (doc_fields(s, at, node, rules_part(POLICY_POOL), pool, seen) ||
	    check_pool(s, at, seen, pool) || check_targets(s, at, seen[FIELD_TARGETS], pool))
		return -1;
	pool->throttle.uses = pool->n * pool->each;
	if (pool->throttle.uses > POLICY_USES_MAX)
		return doc_fail(
		    s, doc_line(seen[FIELD_EACH]), &each,
		    "%llu of all targets together are more than can be counted: at most "
		    "%llu",
		    (unsigned long long)pool->throttle.uses, POLICY_USES_MAX);
	limits_complete_throttle(&pool->throttle);
	return limits_check_throttle(s, at, &pool->throttle, doc_line(seen[FIELD_POOL_THRESHOLD]),
				     doc_line(seen[FIELD_POOL_MAX_COOLDOWN]));
}

static int read_pools(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	struct list list = {read_pool, policy->pool, sizeof(policy->pool[0]), PACER_POOLS_MAX,
			    &policy->n_pools};

	if (node->type != YAML_SEQUENCE_NODE)
		return doc_fail(s, doc_line(node), at, "expected a list of pools, or [] for none");
	return doc_list(s, at, node, &list);
}

static size_t pool_named(const struct policy *policy, const char *name)
{
	size_t i = 0;

	while (i < policy->n_pools && strcmp(policy->pool[i].name, name))
		i++;
	return i;
}

/* What is to be done names a pool: which one? */
static int MUST_USE find_pool(struct source *s, const struct policy *policy, int line,
			      const struct place *at, const char *name, size_t *pool)
{
	char names[200] = "";
	size_t i;

	for (i = 0; i < policy->n_pools; i++)
		doc_append(names, sizeof(names), "%s%s", i ? ", " : "", policy->pool[i].name);
	*pool = pool_named(policy, name);
	if (*pool < policy->n_pools)
		return 0;
	return doc_fail(s, line, at, "there is no pool %s: %s%s", name,
			i ? "there are " : "add it to pools:", names);
}

/* The pools that rules and else name; they may stand behind the rules. */
static int MUST_USE find_pools(struct source *s, struct policy *policy)
{
	struct place rules = {NULL, "rules", 0}, at = {&rules, NULL, 0}, over = {&at, NULL, 0};
	struct place other = {NULL, "else", 0};

	for (size_t r = 0; r < policy->n_rules; r++) {
		struct policy_rule *rule = &policy->rule[r];

		at.index = r;
		over.name = rule->says ? "verdict" : "over";
		if (rule->over == PACER_OVER_POOL &&
		    find_pool(s, policy, rule->over_line, &over, rule->pool_name, &rule->pool))
			return -1;
	}
	if (policy->else_over != PACER_OVER_POOL)
		return 0;
	return find_pool(s, policy, policy->else_line, &other, policy->else_pool_name,
			 &policy->else_pool);
}

/* sets */

enum set_field {
	FIELD_SET_NAME,
	FIELD_FILE,
	FIELD_VALUE,
	FIELD_SET_OF,
	FIELD_SET_FLEET,
	SET_FIELDS
};

static int read_set_name(struct source *s, const struct place *at, const yaml_node_t *node,
			 void *into)
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	return read_name_of(s, at, doc_line(node), text, ((struct policy_set *)into)->name);
}

static int read_file(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_set *set = into;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (!strcmp(text, "-") || strlen(text) >= POLICY_PATH_MAX)
		return doc_fail(s, doc_line(node), at,
				"\"%s\" will not do: name a file, in at most %d bytes",
				doc_shown(text).text, POLICY_PATH_MAX - 1);
	memcpy(set->file, text, strlen(text) + 1);
	return 0;
}

static int read_value(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	uint64_t field;

	if (doc_count(s, at, node, &field))
		return -1;
	if (field < 2 || field > 64)
		return doc_fail(
		    s, doc_line(node), at,
		    "%llu will not do: the field of the file that is its value, 2 to 64",
		    (unsigned long long)field);
	((struct policy_set *)into)->value = (uint32_t)field;
	return 0;
}

static int read_set_of(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	struct policy_set *set = into;
	struct list list = {one_prefix, set->of, sizeof(set->of[0]), POLICY_LIST_MAX, &set->n_of};

	return doc_list(s, at, node, &list);
}

static int read_set_fleet(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	return read_yes(s, at, node, &((struct policy_set *)into)->fleet);
}

WRITER(file, policy_set, *p->file, "%s", p->file)
WRITER(value, policy_set, p->value, "%u", p->value)
WRITER(set_fleet, policy_set, p->fleet, "%s", "yes")
WRITE_LIST(set_of, policy_set, of, units_prefix_text)

static const struct field set_field[SET_FIELDS] = {
    [FIELD_SET_NAME] = {"name", read_set_name, "NAME", "for matches: src: \"@NAME\"", 0,
			FIELD_NEEDED, NULL},
    [FIELD_FILE] = {"file", read_file, "FILE", "of prefixes, one a line; or `of`", 0, 0,
		    write_file},
    [FIELD_VALUE] =
	{"value", read_value, "N",
	 "the field of the file that is a prefix's value, for @NAME=VALUE; none unless said", 0, 0,
	 write_value},
    [FIELD_SET_OF] = {"of", read_set_of, "PREFIX...", "the prefixes themselves; or `file`", 0, 0,
		      write_set_of},
    [FIELD_SET_FLEET] =
	{"fleet", read_set_fleet, "yes|no",
	 "the hosts of the fleet share its elements and their values; no unless said", 0, 0,
	 write_set_fleet},
};

static int read_set(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const yaml_node_t *seen[SET_FIELDS] = {0};
	struct policy_set *set = into, *other = set - at->index;
	struct place place = {at, "name", 0};

	set->line = doc_line(node);
	if (doc_fields(s, at, node, rules_part(POLICY_SET), set, seen))
		return -1;
	if (!seen[FIELD_SET_NAME])
		return doc_fail(s, set->line, at,
				"the name is missing: write name: drop, for example");
	if (!seen[FIELD_FILE] == !seen[FIELD_SET_OF])
		return doc_fail(s, set->line, at,
				"%s: write file: /etc/xdp-pacer/drop.txt, or of: and a list",
				seen[FIELD_FILE] ? "it is of a file and of a list"
						 : "what it is of is missing");
	if (seen[FIELD_VALUE] && !seen[FIELD_FILE])
		return doc_fail(
		    s, doc_line(seen[FIELD_VALUE]), at,
		    "value is a field of a file, and it has none: write file:, or leave "
		    "value out");
	for (; other < set; other++)
		if (!strcmp(other->name, set->name))
			return doc_fail(s, doc_line(seen[FIELD_SET_NAME]), &place,
					"\"%s\" is the name of the set in line %d, too", set->name,
					other->line);
	return 0;
}

static int read_sets(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	struct list list = {read_set, NULL, sizeof(policy->set[0]), PACER_SETS_MAX,
			    &policy->n_sets};
	int result;

	if (node->type != YAML_SEQUENCE_NODE)
		return doc_fail(s, doc_line(node), at, "expected a list of sets, or [] for none");
	result = doc_list_new(s, at, node, &list);
	policy->set = list.items;
	return result;
}

static size_t set_named(const struct policy *policy, const char *name)
{
	size_t i = 0;

	while (i < policy->n_sets && strcmp(policy->set[i].name, name))
		i++;
	return i;
}

/* The number of the value that it names, a new one for the first who does. */
static int MUST_USE number_value(struct source *s, struct policy *policy, const struct place *at,
				 struct policy_set_use *use)
{
	struct policy_set_value *value = policy->set_value;

	if (!policy->set[use->set].value)
		return doc_fail(
		    s, use->line, at,
		    "set %s has no values: add value: and the field of its file, as value: 2",
		    use->name);
	for (size_t i = 0; i < policy->n_set_values; i++, value++)
		if (value->set == use->set) {
			use->number++;
			if (!strcmp(value->name, use->value))
				return 0;
		}
	if (policy->n_set_values == PACER_SET_VALUES_MAX)
		return doc_fail(s, use->line, at, "a policy names %u values of sets at the most",
				PACER_SET_VALUES_MAX);
	use->number++;
	*value = (struct policy_set_value){.line = use->line, .set = use->set};
	memcpy(value->name, use->value, sizeof(value->name));
	policy->n_set_values++;
	return 0;
}

/* Which of the policy's sets it names. */
static int MUST_USE find_set(struct source *s, struct policy *policy, const struct place *at,
			     struct policy_set_use *use)
{
	char names[200] = "";
	size_t i;

	use->set = set_named(policy, use->name);
	if (use->set < policy->n_sets)
		return use->value[0] ? number_value(s, policy, at, use) : 0;
	for (i = 0; i < policy->n_sets; i++)
		doc_append(names, sizeof(names), "%s%s", i ? ", " : "", policy->set[i].name);
	return doc_fail(s, use->line, at, "there is no set %s: %s%s", use->name,
			i ? "there are " : "add it to sets:", names);
}

/* The sets whose values the keys of a rule's limits have. */
static int MUST_USE find_key_sets(struct source *s, struct policy *policy, const struct place *at,
				  const struct policy_rule *rule)
{
	struct place limits = {at, "limits", 0}, item = {&limits, NULL, 0};
	struct place field = {&item, "key", 0};
	const char *named[3] = {NULL, NULL, NULL};
	bool of_dst[3] = {false, false, false};
	size_t n = 0;

	for (size_t i = 0; i < rule->n_limits; i++)
		for (int dst = 0; dst < 2; dst++) {
			struct policy_set_use use = {.line = rule->limit[i].line};
			const char *set = rule->limit[i].key.set[dst];
			size_t k = 0;

			item.index = i;
			if (!*set)
				continue;
			memcpy(use.name, set, sizeof(use.name));
			if (find_set(s, policy, &field, &use))
				return -1;
			if (!policy->set[use.set].value)
				return doc_fail(s, use.line, &field,
						"set %s has no values: add value: and the field of "
						"its file, as value: 2",
						set);
			while (k < n && (strcmp(named[k], set) != 0 || of_dst[k] != dst))
				k++;
			if (k < n)
				continue;
			named[n] = set;
			of_dst[n++] = dst;
			if (n > 2)
				return doc_fail(s, use.line, &field,
						"the limits of a rule count by two values at the "
						"most: make two rules, or leave one out");
		}
	return 0;
}

/* The sets that matches, keys and the allow-list name; they may stand behind these. */
static int MUST_USE find_sets(struct source *s, struct policy *policy)
{
	struct place rules = {NULL, "rules", 0}, at = {&rules, NULL, 0}, match = {&at, "match", 0};
	struct place allow = {NULL, "allow", 0};

	for (size_t i = 0; i < policy->n_allow_sets; i++)
		if (find_set(s, policy, &allow, &policy->allow_set[i]))
			return -1;
	for (size_t r = 0; r < policy->n_rules; r++) {
		struct policy_match *m = &policy->rule[r].match;

		at.index = r;
		for (size_t k = 0; k < m->n_sets; k++) {
			struct place field = {&match, m->set[k].dst ? "dst" : "src", 0};

			if (find_set(s, policy, &field, &m->set[k]))
				return -1;
		}
		if (find_key_sets(s, policy, &at, &policy->rule[r]))
			return -1;
	}
	return 0;
}

/* sample */

enum sample_field {
	FIELD_OF,
	FIELD_K,
	FIELD_LAST,
	FIELD_WITHIN,
	FIELD_REPLACEMENT,
	FIELD_SNAP,
	SAMPLE_FIELDS
};

static int read_of(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct choice ofs[] = {{"denied", SAMPLE_DENIED},
					    {"admitted", SAMPLE_ADMITTED},
					    {"all", SAMPLE_ALL},
					    {NULL, 0}};
	struct policy_sample *sample = into;
	int of;

	if (doc_choose(s, at, node, ofs, &of))
		return -1;
	sample->of = (enum policy_sampled)of;
	return 0;
}

static int read_k(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return doc_whole(s, at, node, 1, PACER_SAMPLE_K, &((struct policy_sample *)into)->k);
}

static int read_last(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	uint64_t packets;

	if (doc_count(s, at, node, &packets))
		return -1;
	if (packets >= PACER_SAMPLE_BURST_C_MAX)
		return doc_fail(s, doc_line(node), at,
				"%llu is more than a sample's window: at most %u",
				(unsigned long long)packets, PACER_SAMPLE_BURST_C_MAX - 1);
	((struct policy_sample *)into)->packets = (uint32_t)packets;
	return 0;
}

static int read_within(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	return doc_duration(s, at, node, &((struct policy_sample *)into)->window_ns);
}

static int read_replacement(struct source *s, const struct place *at, const yaml_node_t *node,
			    void *into)
{
	static const struct choice replacements[] = {{"with", 0}, {"without", 1}, {NULL, 0}};
	struct policy_sample *sample = into;
	int without;

	if (doc_choose(s, at, node, replacements, &without))
		return -1;
	sample->without_replacement = without;
	return 0;
}

static int read_snap(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return doc_whole(s, at, node, 0, POLICY_SNAP_MAX,
			 &((struct policy_sample *)into)->snap_bytes);
}

WRITER(of, policy_sample, p->on, "%s",
       p->of == SAMPLE_DENIED	  ? "denied"
       : p->of == SAMPLE_ADMITTED ? "admitted"
				  : "all")
WRITE_NUMBER(k, policy_sample, p->on, p->k)
WRITE_NUMBER(last, policy_sample, p->on && p->packets, p->packets)
WRITE_TIME(within, policy_sample, p->on && !p->packets, p->window_ns)
WRITE_NUMBER(snap, policy_sample, p->on, p->snap_bytes)

static const struct field sample_field[SAMPLE_FIELDS] = {
    [FIELD_OF] = {"of", read_of, "denied|admitted|all", "which packets are sampled", 0,
		  FIELD_NEEDED, write_of},
    [FIELD_K] = {"k", read_k, "1-64", "packets in the sample", 0, FIELD_NEEDED, write_k},
    [FIELD_LAST] = {"packets", read_last, "N", "of the last so many packets, or", 0, 0, write_last},
    [FIELD_WITHIN] = {"window", read_within, "TIME", "of those of so long", 0, 0, write_within},
    [FIELD_REPLACEMENT] = {"replacement", read_replacement, "with|without",
			   "with of a window, without of packets; may be left out", 0, 0, NULL},
    [FIELD_SNAP] = {"snap", read_snap, "0-128",
		    "bytes kept of the head of each frame; 0 unless said", 0, 0, write_snap},
};

static int read_sample(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	struct place place = {at, "replacement", 0};
	const yaml_node_t *seen[SAMPLE_FIELDS] = {0};
	struct policy_sample *sample = &((struct policy *)into)->sample;

	if (doc_fields(s, at, node, rules_part(POLICY_SAMPLE), sample, seen))
		return -1;
	sample->on = true;
	sample->line = doc_line(node);
	if (!seen[FIELD_OF])
		return doc_fail(s, sample->line, at,
				"what is sampled is missing: write of: denied, admitted or all");
	if (!seen[FIELD_K])
		return doc_fail(s, sample->line, at, "its size is missing: write k: 1 to %d",
				PACER_SAMPLE_K);
	if (seen[FIELD_LAST] && seen[FIELD_WITHIN])
		return doc_fail(s, doc_line(seen[FIELD_WITHIN]), at,
				"packets and window are both written: a sample has one of them");
	if (!seen[FIELD_LAST] && !seen[FIELD_WITHIN])
		return doc_fail(
		    s, sample->line, at,
		    "of what it is a sample is missing: write window: 60s or packets: 1M");
	if (seen[FIELD_REPLACEMENT] && sample->without_replacement != !!sample->packets)
		return doc_fail(
		    s, doc_line(seen[FIELD_REPLACEMENT]), &place,
		    sample->packets
			? "the last packets are sampled without replacement only: write "
			  "without, or leave it out"
			: "a window of time is sampled with replacement only: write "
			  "packets instead of window, or with");
	sample->without_replacement = sample->packets;
	return 0;
}

/* fleet */

enum fleet_field {
	FIELD_STORE,
	FIELD_FLEET_NAME,
	FIELD_CERT,
	FIELD_CERT_KEY,
	FIELD_CA,
	FIELD_CUT_OFF,
	FIELD_FLEET_BANS,
	FLEET_FIELDS
};

static int one_store(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const char *text, *host;
	size_t len;

	if (doc_scalar(s, at, node, &text))
		return -1;
	host = strstr(text, "://");
	len = strlen(text);
	if (!host || (strncmp(text, "http://", 7) && strncmp(text, "https://", 8)) || !host[3] ||
	    strpbrk(host + 3, " @?#") || len >= POLICY_PATH_MAX)
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is no address of a store: write https://10.0.0.1:2379",
				doc_shown(text).text);
	memcpy(into, text, len + 1);
	return 0;
}

static int read_store(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_fleet *fleet = into;
	struct list list = {one_store, fleet->store, sizeof(fleet->store[0]), POLICY_STORES_MAX,
			    &fleet->n_stores};

	if (doc_list(s, at, node, &list))
		return -1;
	return fleet->n_stores ? 0
			       : doc_fail(s, doc_line(node), at,
					  "the list is empty: write https://10.0.0.1:2379, say");
}

static int read_fleet_name(struct source *s, const struct place *at, const yaml_node_t *node,
			   void *into)
{
	struct policy_fleet *fleet = into;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	return read_name_of(s, at, doc_line(node), text, fleet->name);
}

static int MUST_USE read_fleet_file(struct source *s, const struct place *at,
				    const yaml_node_t *node, char into[POLICY_PATH_MAX])
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (strlen(text) >= POLICY_PATH_MAX)
		return doc_fail(s, doc_line(node), at, "a file's name has 1 to %d bytes",
				POLICY_PATH_MAX - 1);
	snprintf(into, POLICY_PATH_MAX, "%s", text);
	return 0;
}

#define FLEET_FILE(name)                                                                          \
	static int read_##name(struct source *s, const struct place *at, const yaml_node_t *node, \
			       void *into)                                                        \
	{                                                                                         \
		return read_fleet_file(s, at, node, ((struct policy_fleet *)into)->name);         \
	}

FLEET_FILE(cert)
FLEET_FILE(key)
FLEET_FILE(ca)

static int read_cut_off(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	static const struct choice choices[] = {{"deny", 0}, {"local", 1}, {NULL, 0}};
	int local;

	if (doc_choose(s, at, node, choices, &local))
		return -1;
	((struct policy_fleet *)into)->local = local;
	return 0;
}

static int read_fleet_bans(struct source *s, const struct place *at, const yaml_node_t *node,
			   void *into)
{
	return read_yes(s, at, node, &((struct policy_fleet *)into)->bans);
}

static bool write_store(const void *from, size_t i, char *buf, size_t size)
{
	const struct policy_fleet *p = from;

	if (i >= p->n_stores)
		return false;
	snprintf(buf, size, "%s", p->store[i]);
	return true;
}

WRITER(fleet_name, policy_fleet, p->on, "%s", p->name)
WRITER(cert, policy_fleet, *p->cert, "%s", p->cert)
WRITER(key, policy_fleet, *p->key, "%s", p->key)
WRITER(ca, policy_fleet, *p->ca, "%s", p->ca)
WRITER(cut_off, policy_fleet, p->on, "%s", p->local ? "local" : "deny")
WRITER(fleet_bans, policy_fleet, p->bans, "%s", "yes")

static const struct field fleet_field[FLEET_FIELDS] = {
    [FIELD_STORE] = {"store", read_store, "URL...", "where the client URLs of an etcd are", 0,
		     FIELD_NEEDED, write_store},
    [FIELD_FLEET_NAME] = {"name", read_fleet_name, "NAME", "of the fleet, in the store", 0,
			  FIELD_NEEDED, write_fleet_name},
    [FIELD_CERT] = {"cert", read_cert, "FILE", "the host's certificate, where the store wants one",
		    0, 0, write_cert},
    [FIELD_CERT_KEY] = {"key", read_key, "FILE", "the certificate's key, without a pass phrase", 0,
			0, write_key},
    [FIELD_CA] =
	{"ca", read_ca, "FILE",
	 "the certificates by which alone the store's is judged; the machine's list unless "
	 "said",
	 0, 0, write_ca},
    [FIELD_CUT_OFF] = {"cut_off", read_cut_off, "deny|local",
		       "what a host does that cannot reach the store: local keeps a sixteenth of "
		       "each limit for it, and of more than 8 hosts less; deny unless said",
		       0, 0, write_cut_off},
    [FIELD_FLEET_BANS] = {"bans", read_fleet_bans, "yes|no",
			  "the hosts share bans of sources, those of `ban add` without a rule; no "
			  "unless said",
			  0, 0, write_fleet_bans},
};

static int read_fleet(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const yaml_node_t *seen[FLEET_FIELDS] = {0};
	struct policy_fleet *fleet = &((struct policy *)into)->fleet;

	if (doc_fields(s, at, node, rules_part(POLICY_FLEET), fleet, seen))
		return -1;
	fleet->on = true;
	fleet->line = doc_line(node);
	if (!seen[FIELD_STORE])
		return doc_fail(s, fleet->line, at,
				"the store is missing: write store: [https://10.0.0.1:2379]");
	if (!seen[FIELD_FLEET_NAME])
		return doc_fail(s, fleet->line, at,
				"its name is missing: write name: edge, the same on every host");
	if (!seen[FIELD_CERT] != !seen[FIELD_CERT_KEY])
		return doc_fail(s, fleet->line, at,
				"cert and key belong together: write both or neither");
	return 0;
}

/* Limits, bans and sets of a fleet need one. */
static int MUST_USE find_fleet(struct source *s, const struct policy *policy)
{
	static const char missing[] = "the policy names no store of a fleet: write "
				      "fleet: {store: [https://10.0.0.1:2379], name: edge}";

	for (size_t r = 0; r < policy->n_rules && !policy->fleet.on; r++) {
		struct place rules = {NULL, "rules", 0}, rule = {&rules, NULL, r};
		struct place limits = {&rule, "limits", 0}, ban = {&rule, "ban", 0};
		const struct policy_rule *of = &policy->rule[r];

		for (size_t i = 0; i < of->n_limits; i++) {
			struct place limit = {&limits, NULL, of->limit[i].item};
			struct place at = {&limit, "fleet", 0};

			if (of->limit[i].fleet)
				return doc_fail(s, of->limit[i].line, &at, "%s", missing);
		}
		if (of->ban_fleet)
			return doc_fail(s, of->line, &ban, "%s", missing);
	}
	for (size_t i = 0; i < policy->n_sets && !policy->fleet.on; i++) {
		struct place sets = {NULL, "sets", 0}, set = {&sets, NULL, i};
		struct place at = {&set, "fleet", 0};

		if (policy->set[i].fleet)
			return doc_fail(s, policy->set[i].line, &at, "%s", missing);
	}
	return 0;
}

/* The whole */

static int read_mode(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct choice modes[] = {{"enforce", 0}, {"monitor", 1}, {NULL, 0}};
	struct policy *policy = into;
	int monitor;

	if (doc_choose(s, at, node, modes, &monitor))
		return -1;
	policy->monitor = monitor;
	return 0;
}

static int read_unparsed(struct source *s, const struct place *at, const yaml_node_t *node,
			 void *into)
{
	static const struct choice verdicts[] = {{"pass", 0}, {"drop", 1}, {NULL, 0}};
	struct policy *policy = into;
	int drop;

	if (doc_choose(s, at, node, verdicts, &drop))
		return -1;
	policy->unparsed_drop = drop;
	return 0;
}

static int read_clock(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct choice clocks[] = {
	    {"auto", CLOCK_AUTO}, {"exact", CLOCK_EXACT}, {"coarse", CLOCK_COARSE}, {NULL, 0}};
	struct policy *policy = into;
	int value;

	if (doc_choose(s, at, node, clocks, &value))
		return -1;
	policy->clock = (enum policy_clock)value;
	return 0;
}

static int read_else(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;

	policy->else_line = doc_line(node);
	return read_says(s, at, node, &policy->else_says, &policy->else_over,
			 policy->else_pool_name);
}

static int read_memory(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	struct policy *policy = into;
	const char *text;
	char most[32];

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (units_size(text, &policy->memory_bytes))
		return doc_fail(s, doc_line(node), at, "\"%s\" is not a size: write 64Mi or 1Gi",
				doc_shown(text).text);
	if (policy->memory_bytes > POLICY_MEMORY_MAX)
		return doc_fail(s, doc_line(node), at, "%s is too much: at most %s",
				doc_shown(text).text,
				units_size_text(POLICY_MEMORY_MAX, most, sizeof(most)));
	return doc_more_than_zero(s, at, node, policy->memory_bytes);
}

static int read_withstand(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	struct policy *policy = into;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (units_rate(text, &policy->withstand))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is no number of packets a second: write 10Mpps",
				doc_shown(text).text);
	if (policy->withstand > POLICY_WITHSTAND_MAX)
		return doc_fail(s, doc_line(node), at, "%s is too much: at most %uGpps",
				doc_shown(text).text,
				(unsigned int)(POLICY_WITHSTAND_MAX / 1000000000));
	return doc_more_than_zero(s, at, node, policy->withstand);
}

static int read_count(struct source *s, const struct place *at, const yaml_node_t *node,
		      unsigned int most, uint64_t *n)
{
	if (doc_count(s, at, node, n))
		return -1;
	if (*n > most)
		return doc_fail(s, doc_line(node), at, "%llu is too much: at most %u",
				(unsigned long long)*n, most);
	return 0;
}

static int read_bans(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;

	policy->bans_said = true;
	return read_count(s, at, node, POLICY_BANS_MAX, &policy->bans);
}

bool policy_bans(const struct policy *policy)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		if (policy->rule[r].ban_ns)
			return true;
	return policy->bans_said;
}

static int read_flows(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_count(s, at, node, POLICY_FLOWS_MAX, &((struct policy *)into)->flows);
}

static int read_flow_idle(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	return doc_duration(s, at, node, &((struct policy *)into)->flow_idle_ns);
}

bool policy_rule_opens(const struct policy_rule *rule)
{
	for (size_t i = 0; i < rule->n_limits; i++)
		if (rule->limit[i].of_new)
			return true;
	return false;
}

/* What matches on flags is TCP. */
static bool is_of_tcp(const struct policy_match *m)
{
	for (size_t i = 0; i < m->n_proto; i++)
		if (m->proto[i].low != PACER_IPPROTO_TCP || m->proto[i].high != PACER_IPPROTO_TCP)
			return m->n_flags;
	return m->n_proto || m->n_flags;
}

bool policy_rule_keeps_flows(const struct policy_rule *rule)
{
	return policy_rule_opens(rule) && !is_of_tcp(&rule->match);
}

bool policy_flows(const struct policy *policy)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		if (policy_rule_keeps_flows(&policy->rule[r]))
			return true;
	return false;
}

/* Prefixes and sets, as they come. */
static int MUST_USE split_allow(struct source *s, const struct place *at,
				const struct address *item, size_t n, struct policy *policy)
{
	for (size_t i = 0; i < n; i++) {
		const struct policy_set_use *use = &item[i].use;

		if (!use->name[0])
			policy->allow[policy->n_allow++] = item[i].prefix;
		else if (use->not )
			return doc_fail(s, use->line, at,
					"\"!@%s\" will not do: the list has who is let through: "
					"write @%s, or leave it out",
					use->name, use->name);
		else if (policy->n_allow_sets == PACER_SETS_MAX)
			return doc_fail(s, use->line, at, "it names %u sets at the most",
					PACER_SETS_MAX);
		else
			policy->allow_set[policy->n_allow_sets++] = *use;
	}
	return 0;
}

static int read_allow(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	size_t n = 0;
	struct list list = {one_address, NULL, sizeof(struct address), POLICY_ALLOW_MAX, &n};
	int result = doc_list_new(s, at, node, &list);

	if (!result) {
		policy->allow = calloc(n ? n : 1, sizeof(*policy->allow));
		result =
		    policy->allow ? split_allow(s, at, list.items, n, policy) : doc_no_memory(s);
	}
	free(list.items);
	return result;
}

static bool write_allow(const void *from, size_t i, char *buf, size_t size)
{
	const struct policy *p = from;

	if (i < p->n_allow)
		units_prefix_text(&p->allow[i], buf, size);
	else if (i - p->n_allow < p->n_allow_sets)
		use_text(&p->allow_set[i - p->n_allow], buf, size);
	else
		return false;
	return true;
}

WRITER(mode, policy, true, "%s", p->monitor ? "monitor" : "enforce")
WRITER(unparsed, policy, true, "%s", p->unparsed_drop ? "drop" : "pass")
WRITER(else, policy, true, "%s%s",
       p->else_says == PACER_SAYS_DENY ? action_name(p->else_over) : "pass",
       p->else_over == PACER_OVER_POOL ? p->else_pool_name : "")
WRITER(clock, policy, true, "%s",
       p->clock == CLOCK_EXACT	  ? "exact"
       : p->clock == CLOCK_COARSE ? "coarse"
				  : "auto")
WRITER(memory, policy, !p->withstand, "%s",
       units_size_text(p->memory_bytes, (char[FIELD_TEXT]){0}, FIELD_TEXT))
WRITER(withstand, policy, p->withstand, "%s",
       units_rate_text(&(struct units_rate){p->withstand, 1000000000, 0}, (char[FIELD_TEXT]){0},
		       FIELD_TEXT))
WRITE_NUMBER(bans, policy, policy_bans(p), p->bans)
WRITE_NUMBER(flows, policy, policy_flows(p), p->flows)
WRITE_TIME(flow_idle, policy, policy_flows(p), p->flow_idle_ns)

enum whole_field {
	FIELD_MODE,
	FIELD_ALLOW,
	FIELD_UNPARSED,
	FIELD_ELSE,
	FIELD_CLOCK,
	FIELD_MEMORY,
	FIELD_WITHSTAND,
	FIELD_RULES,
	FIELD_POOLS,
	FIELD_SETS,
	FIELD_BANS,
	FIELD_FLOWS,
	FIELD_FLOW_IDLE,
	FIELD_SAMPLE,
	FIELD_OF_FLEET,
	POLICY_FIELDS
};

static const struct field whole_field[POLICY_FIELDS] = {
    [FIELD_MODE] = {"mode", read_mode, "enforce|monitor",
		    "monitor counts what it would deny, and denies nothing; enforce unless said", 0,
		    0, write_mode},
    [FIELD_ALLOW] = {"allow", read_allow, "PREFIX|@NAME...", "sources that no rule limits", 0, 0,
		     write_allow},
    [FIELD_UNPARSED] = {"unparsed", read_unparsed, "drop|pass",
			"what is done with truncated frames and bad headers; drop unless said", 0,
			0, write_unparsed},
    [FIELD_ELSE] =
	{"else", read_else, "drop|pass|pool NAME",
	 "what is done with IPv4 and IPv6 packets that no rule matches; pass unless said", 0, 0,
	 write_else},
    [FIELD_CLOCK] = {"clock", read_clock, "auto|exact|coarse",
		     "auto takes the exact one where the policy needs it; auto unless said", 0, 0,
		     write_clock},
    [FIELD_MEMORY] = {"memory", read_memory, "SIZE", "of state, taken at load; 64Mi unless said", 0,
		      0, write_memory},
    [FIELD_WITHSTAND] = {"withstand", read_withstand, "Npps",
			 "packets a second of a flood of spoofed sources, which the memory is made "
			 "for; in place of memory",
			 0, 0, write_withstand},
    [FIELD_RULES] = {"rules", read_rules, "[RULE...]",
		     "of which the first that matches judges the packet, up to 256", 0,
		     FIELD_NEEDED, NULL},
    [FIELD_POOLS] = {"pools", read_pools, "[POOL...]", "targets to which packets over a limit go",
		     0, 0, NULL},
    [FIELD_SETS] = {"sets", read_sets, "[SET...]", "addresses that matches name as @NAME", 0, 0,
		    NULL},
    [FIELD_BANS] = {"bans", read_bans, "N",
		    "keys that can be banned at once; 16384 where a rule bans", 0, 0, write_bans},
    [FIELD_FLOWS] = {"flows", read_flows, "N",
		     "flows that limits of new ones remember; 65536 unless said", 0, 0,
		     write_flows},
    [FIELD_FLOW_IDLE] = {"flow_idle", read_flow_idle, "TIME",
			 "of silence after which a flow is a new one; 2m unless said", 0, 0,
			 write_flow_idle},
    [FIELD_SAMPLE] = {"sample", read_sample, "SAMPLE",
		      "a sample of the packets that is kept for `sample` and `estimate`", 0, 0,
		      NULL},
    [FIELD_OF_FLEET] = {"fleet", read_fleet, "FLEET",
			"the store by which hosts divide the limits that say fleet: yes", 0, 0,
			NULL},
};

/* The tables of the others are above, each beside its reader. */
const struct fields *rules_part(enum policy_part part)
{
	static const struct fields parts[POLICY_PARTS] = {
	    [POLICY_WHOLE] = {"a policy", whole_field, POLICY_FIELDS},
	    [POLICY_RULE] = {"a rule", rule_field, RULE_FIELDS},
	    [POLICY_MATCH] = {"a match", match_field, MATCH_FIELDS},
	    [POLICY_POOL] = {"a pool", pool_field, POOL_FIELDS},
	    [POLICY_SET] = {"a set", set_field, SET_FIELDS},
	    [POLICY_SAMPLE] = {"a sample", sample_field, SAMPLE_FIELDS},
	    [POLICY_FLEET] = {"a fleet", fleet_field, FLEET_FIELDS},
	};

	return part == POLICY_LIMIT ? &limits_fields : &parts[part];
}

static int MUST_USE read_root(struct source *s, struct policy *policy)
{
	const yaml_node_t *root = yaml_document_get_root_node(&s->doc);
	const yaml_node_t *seen[POLICY_FIELDS] = {0};

	policy->memory_bytes = POLICY_MEMORY_DEFAULT;
	policy->bans = POLICY_BANS_DEFAULT;
	policy->flows = POLICY_FLOWS_DEFAULT;
	policy->flow_idle_ns = POLICY_FLOW_IDLE_NS;
	if (doc_fields(s, NULL, root, rules_part(POLICY_WHOLE), policy, seen))
		return -1;
	if (!seen[FIELD_RULES])
		return doc_fail(s, doc_line(root), NULL,
				"the rules are missing: write rules: and a list, or rules: []");
	if (seen[FIELD_WITHSTAND] && seen[FIELD_MEMORY])
		return doc_fail(s, doc_line(seen[FIELD_MEMORY]), NULL,
				"memory and withstand both say how much state there is: write one");
	return find_pools(s, policy) || find_sets(s, policy) ? -1 : find_fleet(s, policy);
}

struct policy *policy_parse(const char *text, size_t len, struct policy_error *error)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	struct source s;
	int result;

	if (doc_open(&s, text, len, error)) {
		free(policy);
		return NULL;
	}
	if (policy) {
		policy->unparsed_drop = true; /* no host takes such frames */
		result = read_root(&s, policy);
	} else {
		result = doc_no_memory(&s);
	}
	doc_close(&s);
	if (!result)
		return policy;
	policy_free(policy);
	return NULL;
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	free(policy->rule);
	free(policy->allow);
	free(policy->set);
	free(policy);
}

static const struct policy_key_part_name parts[] = {
    {KEY_PART_SRC, "src"},     {KEY_PART_DST, "dst"},	  {KEY_PART_PROTO, "proto"},
    {KEY_PART_SPORT, "sport"}, {KEY_PART_DPORT, "dport"}, {KEY_PART_VLAN, "vlan"},
    {KEY_PART_TTL, "ttl"},
};

/* Before the others, as they stand in the place of src and dst. */
static size_t values_text(const struct policy_key *key, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = 0;
	for (int i = 0; i < 2; i++)
		if (key->parts & (i ? KEY_PART_DST_VALUE : KEY_PART_SRC_VALUE))
			len += (size_t)snprintf(buf + len, size - len, "%svalue(%s, %s)",
						len ? "+" : "", key->set[i][0] ? key->set[i] : "?",
						i ? "dst" : "src");
	return len;
}

bool policy_set_keyed(const struct policy *policy, const char *set)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t i = 0; i < policy->rule[r].n_limits; i++) {
			const struct policy_key *key = &policy->rule[r].limit[i].key;

			if (!strcmp(key->set[0], set) || !strcmp(key->set[1], set))
				return true;
		}
	return false;
}

bool policy_set_named(const struct policy *policy, const struct policy_set *set)
{
	return (set->fleet && set->value) || set->counted || policy_set_keyed(policy, set->name);
}

const struct policy_key_part_name *policy_key_part_named(const char *name)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(parts[i].name, name))
			return &parts[i];
	return NULL;
}

const char *policy_key_text(const struct policy_key *key, char *buf, size_t size)
{
	static const struct policy_key flow = KEY_FLOW;
	bool whole = policy_key_same(key, &flow);
	char text[POLICY_KEY_TEXT] = "";
	size_t len = values_text(key, text, sizeof(text));

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !whole; i++) {
		enum policy_key_part part = parts[i].part;

		if (!(key->parts & part))
			continue;
		len +=
		    snprintf(text + len, sizeof(text) - len, "%s%s", len ? "+" : "", parts[i].name);
		if (part == KEY_PART_SRC || part == KEY_PART_DST)
			len += snprintf(text + len, sizeof(text) - len, "/%u,%u",
					part == KEY_PART_SRC ? key->src4 : key->dst4,
					part == KEY_PART_SRC ? key->src6 : key->dst6);
	}
	snprintf(buf, size, "%s", whole ? "flow" : len ? text : "all");
	return buf;
}

/* Setting a value: where it stands in the text, and what the text then is. */
