/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "parse.h"
#include "config/policy.h"
#include "sample_burst.h"
#include "rate.h"
#include "window.h"

#define ARRAY(a)       (sizeof(a) / sizeof((a)[0]))
#define FORMAT(at)     __attribute__((format(printf, at, at + 1)))
#define MUST_USE       __attribute__((warn_unused_result))
#define FIELD_NAME_MAX 16u
#define MEMORY_MAX     (255ull << 30) /* of lines that 32 bits can count */
#define SLOTS_DEFAULT  10
#define KEY_LEN6       64 /* of an address without lengths */
#define ROWS_DEFAULT   2
#define DEPTH_MAX      16 /* of lists and fields in each other; a policy needs 7 */
#define VALUE_MAX      64 /* characters that policy_set takes */

/* A document being read, and where the first thing wrong with it is told. */
struct source {
	yaml_document_t doc;
	const char *text;
	size_t len, bom; /* bytes of text, and of the mark before it that is no part of it */
	struct policy_error *error;
	const char *key_tail; /* of the limit that is read, see limit_key_tail */
};

/* The path of a node, from the leaf up. */
struct place {
	const struct place *up;
	const char *name; /* NULL: item `index` of a list */
	size_t index;
};

typedef int reader(struct source *s, const struct place *at, const yaml_node_t *node, void *into);

/* A field of a mapping. */
struct field {
	const char *name;
	reader *read;
};

struct fields {
	const char *of;
	const struct field *field;
	size_t n;
};

struct choice {
	const char *name;
	int value;
};

/* Text of the operator's within an error: short, and on one line. */
struct shown {
	char text[52];
};

static struct shown shown(const char *text)
{
	struct shown s;
	size_t i;

	for (i = 0; text[i] && i < sizeof(s.text) - 4; i++)
		s.text[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	if (text[i]) {
		while (i && ((unsigned char)text[i] & 0xc0) == 0x80)
			i--;
		memcpy(&s.text[i], "...", 3);
		i += 3;
	}
	s.text[i] = 0;
	return s;
}

static int line_of(const yaml_node_t *node)
{
	return node ? (int)node->start_mark.line + 1 : 0;
}

/* Append to the text, which is cut where it is full. */
FORMAT(3) static void append(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

static void append_place(char *text, size_t size, const struct place *at)
{
	if (!at)
		return;
	append_place(text, size, at->up);
	if (at->name)
		append(text, size, "%s%s", *text ? "." : "", at->name);
	else
		append(text, size, "[%zu]", at->index);
}

static int failed(void)
{
	return -1;
}

/* Says what is wrong; the caller returns what this gives. */
#define fail(...) (say(__VA_ARGS__), failed())
FORMAT(4)
static void say(struct source *s, int line, const struct place *at, const char *format, ...)
{
	char *text = s->error->text;
	size_t size = sizeof(s->error->text), used;
	va_list args;

	s->error->line = line;
	*text = 0;
	append_place(text, size, at);
	if (*text)
		append(text, size, ": ");
	used = strlen(text);
	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

/* The text of a single value. */
static int MUST_USE scalar(struct source *s, const struct place *at, const yaml_node_t *node,
			   const char **text)
{
	if (node->type == YAML_SEQUENCE_NODE)
		return fail(s, line_of(node), at, "expected one value, found a list");
	if (node->type != YAML_SCALAR_NODE)
		return fail(s, line_of(node), at,
			    "expected one value, found fields (a text with \": \" in it or ':' at "
			    "its end has to be quoted)");
	*text = (const char *)node->data.scalar.value;
	if (strlen(*text) != node->data.scalar.length)
		return fail(s, line_of(node), at, "the value has a NUL in it");
	if (!**text)
		return fail(s, line_of(node), at, "the value is missing");
	return 0;
}

static int MUST_USE choose(struct source *s, const struct place *at, const yaml_node_t *node,
			   const struct choice *choices, int *value)
{
	char names[64] = "";
	const char *text;
	size_t i;

	if (scalar(s, at, node, &text))
		return -1;
	for (i = 0; choices[i].name; i++) {
		if (!strcmp(text, choices[i].name)) {
			*value = choices[i].value;
			return 0;
		}
		append(names, sizeof(names), "%s%s",
		       !i		     ? ""
		       : choices[i + 1].name ? ", "
					     : " or ",
		       choices[i].name);
	}
	return fail(s, line_of(node), at, "\"%s\" is not known: write %s", shown(text).text, names);
}

static int MUST_USE more_than_zero(struct source *s, const struct place *at,
				   const yaml_node_t *node, uint64_t value)
{
	if (!value)
		return fail(s, line_of(node), at, "0 is no limit: it must be more");
	return 0;
}

static int MUST_USE read_duration(struct source *s, const struct place *at, const yaml_node_t *node,
				  uint64_t *ns)
{
	const char *text;
	size_t digits;

	if (scalar(s, at, node, &text))
		return -1;
	if (*text == '-')
		return fail(s, line_of(node), at, "%s is negative", shown(text).text);
	digits = strspn(text, "0123456789.");
	if (!text[digits] && strspn(text, "0.") != digits)
		return fail(s, line_of(node), at, "%s has no unit: write %sms, %ss ...",
			    shown(text).text, shown(text).text, shown(text).text);
	if (units_duration(text, ns))
		return fail(s, line_of(node), at,
			    "\"%s\" is not a duration: write 250us, 1ms, 1.5s, 10m, 2h or 1d",
			    shown(text).text);
	if (*ns > PACER_WINDOW_NS_MAX)
		return fail(s, line_of(node), at, "%s is too long: at most %lluh", shown(text).text,
			    PACER_WINDOW_NS_MAX / 3600000000000ull);
	return more_than_zero(s, at, node, *ns);
}

static int MUST_USE read_count(struct source *s, const struct place *at, const yaml_node_t *node,
			       uint64_t *count)
{
	const char *text;

	if (scalar(s, at, node, &text))
		return -1;
	if (*text == '-')
		return fail(s, line_of(node), at, "%s is negative", shown(text).text);
	if (units_count(text, count))
		return fail(s, line_of(node), at, "\"%s\" is not a count: write 300, 20k or 1.5M",
			    shown(text).text);
	return more_than_zero(s, at, node, *count);
}

static int MUST_USE read_whole(struct source *s, const struct place *at, const yaml_node_t *node,
			       uint32_t min, uint32_t max, uint32_t *value)
{
	struct range range;
	const char *text;

	if (scalar(s, at, node, &text))
		return -1;
	if (units_range(text, max, &range) || range.low != range.high || range.low < min)
		return fail(s, line_of(node), at, "\"%s\" will not do: write %u to %u",
			    shown(text).text, min, max);
	*value = range.low;
	return 0;
}

/* Reads an item, or each item of a list, into an array. */
struct list {
	reader *read;
	void *items;
	size_t size, max, *n;
};

static int MUST_USE read_list(struct source *s, const struct place *at, const yaml_node_t *node,
			      const struct list *list)
{
	const yaml_node_item_t *item = node->data.sequence.items.start;
	size_t i, n;

	if (node->type != YAML_SEQUENCE_NODE) {
		*list->n = 1;
		return list->read(s, at, node, list->items);
	}
	n = (size_t)(node->data.sequence.items.top - item);
	if (n > list->max)
		return fail(s, line_of(node), at, "%zu items: at most %zu", n, list->max);
	for (i = 0; i < n; i++) {
		struct place place = {at, NULL, i};

		if (list->read(s, &place, yaml_document_get_node(&s->doc, item[i]),
			       (char *)list->items + i * list->size))
			return -1;
	}
	*list->n = n;
	return 0;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters to insert, remove, change or swap with the next to make one name the other. */
static size_t distance(const char *a, const char *b)
{
	size_t d[FIELD_NAME_MAX + 1][FIELD_NAME_MAX + 1], i, j, m = strlen(a), n = strlen(b);

	if (m > FIELD_NAME_MAX || n > FIELD_NAME_MAX)
		return SIZE_MAX;
	for (i = 0; i <= m; i++) {
		for (j = 0; j <= n; j++) {
			d[i][j] = i ? i : j;
			if (!i || !j)
				continue;
			d[i][j] = least(d[i - 1][j], d[i][j - 1]) + 1;
			d[i][j] = least(d[i][j], d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[m][n];
}

void policy_nearest(struct policy_nearest *nearest, const char *name)
{
	size_t found = distance(nearest->wrong, name);

	if (!nearest->best)
		nearest->best = 1 + least(strlen(nearest->wrong) / 2, 2);
	if (found >= nearest->best)
		return;
	nearest->best = found;
	nearest->name = name;
}

static int unknown_field(struct source *s, const struct place *at, const yaml_node_t *key,
			 const struct fields *fields)
{
	const char *name = (const char *)key->data.scalar.value;
	struct policy_nearest nearest = {.wrong = name};
	char names[160] = "", hint[48] = "";
	size_t i;

	for (i = 0; i < fields->n; i++) {
		append(names, sizeof(names), "%s%s", *names ? ", " : "", fields->field[i].name);
		policy_nearest(&nearest, fields->field[i].name);
	}
	if (strchr(name, ':'))
		append(hint, sizeof(hint), "a space has to follow its ':'; ");
	else if (nearest.name)
		append(hint, sizeof(hint), "did you mean \"%s\"? ", nearest.name);
	return fail(s, line_of(key), at, "unknown field \"%s\": %s%s has %s", shown(name).text,
		    hint, fields->of, names);
}

static const struct field *MUST_USE find_field(struct source *s, const struct place *at,
					       const yaml_node_t *key, const struct fields *fields)
{
	size_t i;

	if (key->type != YAML_SCALAR_NODE) {
		fail(s, line_of(key), at, "expected the name of a field");
		return NULL;
	}
	for (i = 0; i < fields->n; i++)
		if (!strcmp((const char *)key->data.scalar.value, fields->field[i].name))
			return &fields->field[i];
	unknown_field(s, at, key, fields);
	return NULL;
}

static int is_plain(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/*
 * Within {}, YAML ends `key: src/24,56` at the comma: what follows is then a field `56` with no
 * value. Returns it, NULL if the next field is an ordinary one.
 */
static const char *limit_key_tail(struct source *s, const yaml_node_t *mapping,
				  const yaml_node_pair_t *pair)
{
	const yaml_node_t *key, *value = yaml_document_get_node(&s->doc, pair->value);
	const char *text;
	size_t digits;

	if (mapping->data.mapping.style != YAML_FLOW_MAPPING_STYLE || !is_plain(value) ||
	    ++pair >= mapping->data.mapping.pairs.top)
		return NULL;
	key = yaml_document_get_node(&s->doc, pair->key);
	value = yaml_document_get_node(&s->doc, pair->value);
	if (!is_plain(key) || !is_plain(value) || value->data.scalar.length)
		return NULL;
	text = (const char *)key->data.scalar.value;
	digits = strspn(text, "0123456789");
	return digits && (!text[digits] || text[digits] == '+') ? text : NULL;
}

/* Read a mapping. `seen` gets the name's node of each field that there is, and has to be cleared.
 */
static int MUST_USE read_fields(struct source *s, const struct place *at, const yaml_node_t *node,
				const struct fields *fields, void *into, const yaml_node_t **seen)
{
	const yaml_node_pair_t *pair = node->data.mapping.pairs.start;

	if (node->type != YAML_MAPPING_NODE)
		return fail(s, line_of(node), at, "expected %s: fields with a name and a value",
			    fields->of);
	for (; pair < node->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_document_get_node(&s->doc, pair->key);
		const yaml_node_t *value = yaml_document_get_node(&s->doc, pair->value);
		const struct field *field = find_field(s, at, key, fields);
		struct place place = {at, NULL, 0};
		size_t i;

		if (!field)
			return -1;
		i = (size_t)(field - fields->field);
		place.name = field->name;
		if (seen[i])
			return fail(s, line_of(key), &place, "written twice, first in line %d",
				    line_of(seen[i]));
		seen[i] = key;
		s->key_tail = NULL;
		if (!strcmp(field->name, "key") && (s->key_tail = limit_key_tail(s, node, pair)))
			pair++;
		if (field->read(s, &place, value, into))
			return -1;
	}
	return 0;
}

/* match */

static int one_prefix(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct prefix *prefix = into, host;
	const char *text, *slash;
	char buf[64];

	if (scalar(s, at, node, &text))
		return -1;
	if (!units_prefix(text, prefix))
		return 0;
	if (!units_prefix_masked(text, &host))
		return fail(s, line_of(node), at, "%s has bits beyond its length: write %s",
			    shown(text).text, units_prefix_text(&host, buf, sizeof(buf)));
	slash = strchr(text, '/');
	if (slash) {
		snprintf(buf, sizeof(buf), "%.*s", (int)least((size_t)(slash - text), 63), text);
		if (!units_prefix(buf, &host))
			return fail(s, line_of(node), at, "%s: the length is 0 to %u",
				    shown(text).text, host.len);
	}
	return fail(s, line_of(node), at,
		    "\"%s\" is not a prefix: write 192.0.2.0/24, 192.0.2.1 or 2001:db8::/32",
		    shown(text).text);
}

static int one_port(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const char *text;

	if (scalar(s, at, node, &text))
		return -1;
	if (units_range(text, 65535, into))
		return fail(s, line_of(node), at,
			    "\"%s\" is not a port: write 0 to 65535, or a range as 1024-65535",
			    shown(text).text);
	return 0;
}

static int one_vlan(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct range *range = into;
	const char *text;

	if (scalar(s, at, node, &text))
		return -1;
	if (!strcmp(text, "none")) {
		*range = (struct range){PACER_VLAN_NONE, PACER_VLAN_NONE};
		return 0;
	}
	if (units_range(text, PACER_VLAN_NONE - 1, range) || !range->low)
		return fail(
		    s, line_of(node), at,
		    "\"%s\" is not a VLAN: write 1 to 4095, a range as 100-199, or none (as "
		    "which frames count whose tags are all of VLAN 0)",
		    shown(text).text);
	return 0;
}

static int one_proto(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct choice protos[] = {
	    {"icmp", 1},  {"igmp", 2},	 {"ipip", 4},	 {"tcp", 6},	{"egp", 8},
	    {"udp", 17},  {"dccp", 33},	 {"ipv6", 41},	 {"rsvp", 46},	{"gre", 47},
	    {"esp", 50},  {"ah", 51},	 {"icmpv6", 58}, {"eigrp", 88}, {"ospf", 89},
	    {"pim", 103}, {"vrrp", 112}, {"l2tp", 115},	 {"sctp", 132}, {"udplite", 136},
	};
	struct range *range = into;
	const char *text;
	size_t i;

	if (scalar(s, at, node, &text))
		return -1;
	for (i = 0; i < ARRAY(protos); i++) {
		if (!strcmp(text, protos[i].name)) {
			*range =
			    (struct range){(uint32_t)protos[i].value, (uint32_t)protos[i].value};
			return 0;
		}
	}
	if (units_range(text, 255, range))
		return fail(s, line_of(node), at,
			    "\"%s\" is not a protocol: write 0 to 255, or tcp, udp, icmp, icmpv6, "
			    "sctp, gre, esp, ah, igmp, ospf ...",
			    shown(text).text);
	return 0;
}

static int MUST_USE read_some(struct source *s, const struct place *at, const yaml_node_t *node,
			      const struct list *list)
{
	if (read_list(s, at, node, list))
		return -1;
	if (!*list->n)
		return fail(s, line_of(node), at,
			    "an empty list matches nothing: leave the field out to match all");
	return 0;
}

#define MATCH_FIELD(field, item)                                                                   \
	static int read_##field(struct source *s, const struct place *at, const yaml_node_t *node, \
				void *into)                                                        \
	{                                                                                          \
		struct policy_match *m = into;                                                     \
		struct list list = {item, m->field, sizeof(m->field[0]), POLICY_LIST_MAX,          \
				    &m->n_##field};                                                \
                                                                                                   \
		return read_some(s, at, node, &list);                                              \
	}

MATCH_FIELD(src, one_prefix)
MATCH_FIELD(dst, one_prefix)
MATCH_FIELD(sport, one_port)
MATCH_FIELD(dport, one_port)
MATCH_FIELD(proto, one_proto)
MATCH_FIELD(vlan, one_vlan)

/* 4 or 6 if all of the prefixes are of that family, else 0. */
static int family_of(const struct prefix *prefixes, size_t n)
{
	size_t i;

	for (i = 1; i < n; i++)
		if (prefixes[i].family != prefixes[0].family)
			return 0;
	return n ? prefixes[0].family : 0;
}

enum match_field {
	FIELD_SRC,
	FIELD_DST,
	FIELD_PROTO,
	FIELD_SPORT,
	FIELD_DPORT,
	FIELD_VLAN,
	MATCH_FIELDS
};

static const struct field match_field[MATCH_FIELDS] = {
    [FIELD_SRC] = {"src", read_src},	   [FIELD_DST] = {"dst", read_dst},
    [FIELD_PROTO] = {"proto", read_proto}, [FIELD_SPORT] = {"sport", read_sport},
    [FIELD_DPORT] = {"dport", read_dport}, [FIELD_VLAN] = {"vlan", read_vlan},
};

/* Is every packet of the prefixes of this family? No prefix: of either. */
static bool only_of(const struct policy_match *m, int family)
{
	return family_of(m->src, m->n_src) == family || family_of(m->dst, m->n_dst) == family;
}

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
			return fail(s, line_of(seen[FIELD_PROTO]), &item,
				    "protocol %u has no ports, and %s is written: no packet can "
				    "match: leave %s out, or write tcp, udp or sctp",
				    range->low, port, port);
		if ((icmp && only_of(m, 6)) || (is_proto(range, 58) && only_of(m, 4)))
			return fail(s, line_of(seen[FIELD_PROTO]), &item,
				    "%s is not of IPv%d, and %s is: no packet can match: write %s",
				    icmp ? "icmp" : "icmpv6", icmp ? 6 : 4,
				    family_of(m->src, m->n_src) ? "src" : "dst",
				    icmp ? "icmpv6" : "icmp");
	}
	return 0;
}

static int read_match(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct fields fields = {"a match", match_field, MATCH_FIELDS};
	const yaml_node_t *seen[MATCH_FIELDS] = {0};
	struct policy_match *m = &((struct policy_rule *)into)->match;
	int src, dst;

	if (read_fields(s, at, node, &fields, m, seen))
		return -1;
	src = family_of(m->src, m->n_src);
	dst = family_of(m->dst, m->n_dst);
	if (src && dst && src != dst)
		return fail(s, line_of(seen[FIELD_DST]), at,
			    "src is IPv%d and dst is IPv%d: no packet can match", src, dst);
	return check_protos(s, at, seen, m);
}

/* limits */

enum limit_field {
	FIELD_KEY,
	FIELD_GAP,
	FIELD_PACKETS,
	FIELD_BYTES,
	FIELD_WINDOW,
	FIELD_SLOTS,
	FIELD_RATE,
	FIELD_BURST,
	FIELD_ENTRIES,
	FIELD_ROWS,
	FIELD_CEILING,
	FIELD_USES,
	FIELD_COOLDOWN,
	FIELD_MAX_COOLDOWN,
	FIELD_THRESHOLD,
	LIMIT_FIELDS
};

#define KEY_TEXT 40

static int not_a_key(struct source *s, int line, const struct place *at, const char *text)
{
	return fail(s, line, at,
		    "\"%s\" is not a key: write flow, src, src/24,56, dst, dst/24,56, src+dport, "
		    "src/24,56+dport or all",
		    shown(text).text);
}

/* "24,56": of IPv4 and of IPv6. One alone would say nothing of the other. */
static int MUST_USE read_lengths(struct source *s, int line, const struct place *at, char *text,
				 struct policy_key *key)
{
	char *comma = strchr(text, ',');
	struct range len;

	if (comma)
		*comma = 0;
	if (units_range(text, 128, &len) || len.low != len.high)
		return fail(s, line, at, "\"%s\" is no prefix length: write src/24,56, say",
			    shown(text).text);
	if (len.low > 32)
		return fail(s, line, at,
			    "%u is too long for IPv4, whose length stands first: write /32,%u",
			    len.low, len.low);
	if (!comma)
		return fail(s, line, at,
			    "/%u is the length for IPv4, and that for IPv6 is missing: write "
			    "/%u,56, say",
			    len.low, len.low);
	key->len4 = (uint8_t)len.low;
	if (units_range(comma + 1, 128, &len) || len.low != len.high)
		return fail(s, line, at, "\"%s\" is no prefix length of IPv6: write 0 to 128",
			    shown(comma + 1).text);
	key->len6 = (uint8_t)len.low;
	return 0;
}

/*
 * flow | all | src[/L4,L6] | src[/L4,L6]+dport | dst[/L4,L6]
 *
 * Without lengths an address is a host's of IPv4 and a /64 of IPv6: of that a host has all
 * addresses at will, and would have as many allowances.
 */
static int MUST_USE parse_key(struct source *s, int line, const struct place *at, const char *text,
			      struct policy_key *key)
{
	size_t len = strcspn(text, "+");
	int ports = !strcmp(text + len, "+dport");
	char address[KEY_TEXT];

	*key = (struct policy_key){KEY_SRC, 32, 128};
	if (!strcmp(text, "flow") || !strcmp(text, "all")) {
		key->kind = *text == 'f' ? KEY_FLOW : KEY_ALL;
		return 0;
	}
	key->len6 = KEY_LEN6;
	snprintf(address, sizeof(address), "%.*s", (int)len, text);
	if (!strncmp(address, "dst", 3))
		key->kind = KEY_DST;
	else if (strncmp(address, "src", 3))
		return not_a_key(s, line, at, text);
	else if (ports)
		key->kind = KEY_SRC_DPORT;
	if (text[len] && key->kind != KEY_SRC_DPORT)
		return not_a_key(s, line, at, text);
	if (!address[3])
		return 0;
	if (address[3] != '/')
		return not_a_key(s, line, at, text);
	if (read_lengths(s, line, at, address + 4, key))
		return -1;
	if (!key->len4 && !key->len6)
		return fail(s, line, at, "with no bit of the address all have one key: write all");
	return 0;
}

static int read_key(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_limit *limit = into;
	const char *text, *tail = s->key_tail;
	char whole[KEY_TEXT];
	int len;

	if (scalar(s, at, node, &text))
		return -1;
	len = snprintf(whole, sizeof(whole), "%s%s%s", text, tail ? "," : "", tail ? tail : "");
	if (len < 0 || (size_t)len >= sizeof(whole))
		return not_a_key(s, line_of(node), at, text);
	return parse_key(s, line_of(node), at, whole, &limit->key);
}

static int read_gap(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_duration(s, at, node, &((struct policy_limit *)into)->gap_ns);
}

static int read_packets(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct policy_limit *limit = into;
	const char *text;

	limit->cost = PACER_COST_PACKETS;
	if (scalar(s, at, node, &text))
		return -1;
	limit->per_second = !units_rate(text, &limit->limit);
	return limit->per_second ? more_than_zero(s, at, node, limit->limit)
				 : read_count(s, at, node, &limit->limit);
}

static int read_bytes(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_limit *limit = into;
	const char *text;

	limit->cost = PACER_COST_BYTES;
	if (scalar(s, at, node, &text))
		return -1;
	if (*text == '-')
		return fail(s, line_of(node), at, "%s is negative", shown(text).text);
	limit->per_second = !units_bytes_rate(text, &limit->limit);
	if (!limit->per_second && units_bytes(text, &limit->limit))
		return fail(s, line_of(node), at,
			    "\"%s\" is no number of bytes: write 4096, 20M, 64Ki or 10Mbit, or a "
			    "rate as 10Mbit/s",
			    shown(text).text);
	return more_than_zero(s, at, node, limit->limit);
}

static int read_window(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	return read_duration(s, at, node, &((struct policy_limit *)into)->window_ns);
}

#define RATE_BYTES_MAX	 125000000000ull /* a second: 1 Tbit/s */
#define RATE_PACKETS_MAX 2000000000ull	 /* the smallest frames of that */

static int read_rate(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_limit *limit = into;
	const char *text;

	if (scalar(s, at, node, &text))
		return -1;
	if (*text == '-')
		return fail(s, line_of(node), at, "%s is negative", shown(text).text);
	if (units_rate_over(text, &limit->rate))
		return fail(s, line_of(node), at,
			    "\"%s\" is not a rate: write 1000/s, 10Mbit/s or 20MB/s, with /s, /m "
			    "or /h",
			    shown(text).text);
	limit->cost = limit->rate.bytes ? PACER_COST_BYTES : PACER_COST_PACKETS;
	return more_than_zero(s, at, node, limit->rate.amount);
}

/* Packets or bytes: the rate says which, and may stand behind it. */
static int read_burst(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_limit *limit = into;
	const char *text;

	if (scalar(s, at, node, &text))
		return -1;
	if (*text == '-')
		return fail(s, line_of(node), at, "%s is negative", shown(text).text);
	if (units_bytes(text, &limit->burst))
		return fail(s, line_of(node), at,
			    "\"%s\" is no burst: write a number of packets, as 50, or of bytes, as "
			    "64K",
			    shown(text).text);
	limit->burst_bytes = units_count(text, &limit->burst) != 0;
	return more_than_zero(s, at, node, limit->burst);
}

static int read_slots(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_whole(s, at, node, 1, PACER_SLOTS_MAX, &((struct policy_limit *)into)->slots);
}

static int read_rows(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_whole(s, at, node, 1, PACER_ROWS_MAX, &((struct policy_limit *)into)->rows);
}

static int read_entries(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	return read_count(s, at, node, &((struct policy_limit *)into)->entries);
}

static int read_ceiling(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct policy_limit *limit = into;
	const char *text;

	if (scalar(s, at, node, &text))
		return -1;
	if (units_rate(text, &limit->ceiling))
		return fail(s, line_of(node), at, "\"%s\" is not a rate: write 500kpps or 2Mpps",
			    shown(text).text);
	return more_than_zero(s, at, node, limit->ceiling);
}

/* throttles: of limits and of pools */

static int MUST_USE read_uses_of(struct source *s, const struct place *at, const yaml_node_t *node,
				 uint64_t *uses)
{
	if (read_count(s, at, node, uses))
		return -1;
	if (*uses > POLICY_USES_MAX)
		return fail(s, line_of(node), at, "%llu is more than can be counted: at most %llu",
			    (unsigned long long)*uses, POLICY_USES_MAX);
	return 0;
}

#define THROTTLE_FIELD(of, type, field, how)                                     \
	static int read_##of##field(struct source *s, const struct place *at,    \
				    const yaml_node_t *node, void *into)         \
	{                                                                        \
		return how(s, at, node, &((struct type *)into)->throttle.field); \
	}

THROTTLE_FIELD(, policy_limit, uses, read_uses_of)
THROTTLE_FIELD(, policy_limit, threshold, read_uses_of)
THROTTLE_FIELD(, policy_limit, cooldown_ns, read_duration)
THROTTLE_FIELD(, policy_limit, max_cooldown_ns, read_duration)
THROTTLE_FIELD(pool_, policy_pool, threshold, read_uses_of)
THROTTLE_FIELD(pool_, policy_pool, cooldown_ns, read_duration)
THROTTLE_FIELD(pool_, policy_pool, max_cooldown_ns, read_duration)

static uint64_t tenth_more(uint64_t cooldown_ns)
{
	return cooldown_ns + cooldown_ns / 10 + !(cooldown_ns / 10);
}

/* What was not written, see policy.h. */
static void complete_throttle(struct policy_throttle *t)
{
	bool bare = !t->threshold && !t->max_cooldown_ns;

	if (!t->threshold)
		t->threshold = bare ? (t->uses + 99) / 100 : t->uses;
	if (!t->max_cooldown_ns)
		t->max_cooldown_ns = bare ? tenth_more(t->cooldown_ns) : UINT64_MAX;
}

/* The lines are those of the fields, if these are written. */
static int MUST_USE check_throttle(struct source *s, const struct place *at,
				   const struct policy_throttle *t, int threshold, int max_cooldown)
{
	struct place place = {at, "threshold", 0};
	char cooldown[32], most[32], more[32];

	if (threshold && t->threshold > t->uses)
		return fail(s, threshold, &place, "%llu is above the limit: write 1 to %llu",
			    (unsigned long long)t->threshold, (unsigned long long)t->uses);
	place.name = "max_cooldown";
	if (max_cooldown && t->max_cooldown_ns <= t->cooldown_ns)
		return fail(s, max_cooldown, &place,
			    "%s is not above the cooldown of %s: write %s, say",
			    units_duration_text(t->max_cooldown_ns, most, sizeof(most)),
			    units_duration_text(t->cooldown_ns, cooldown, sizeof(cooldown)),
			    units_duration_text(tenth_more(t->cooldown_ns), more, sizeof(more)));
	return 0;
}

static const struct field limit_field[LIMIT_FIELDS] = {
    [FIELD_KEY] = {"key", read_key},
    [FIELD_GAP] = {"gap", read_gap},
    [FIELD_PACKETS] = {"packets", read_packets},
    [FIELD_BYTES] = {"bytes", read_bytes},
    [FIELD_WINDOW] = {"window", read_window},
    [FIELD_SLOTS] = {"slots", read_slots},
    [FIELD_RATE] = {"rate", read_rate},
    [FIELD_BURST] = {"burst", read_burst},
    [FIELD_ENTRIES] = {"entries", read_entries},
    [FIELD_ROWS] = {"rows", read_rows},
    [FIELD_CEILING] = {"ceiling", read_ceiling},
    [FIELD_USES] = {"uses", read_uses},
    [FIELD_COOLDOWN] = {"cooldown", read_cooldown_ns},
    [FIELD_MAX_COOLDOWN] = {"max_cooldown", read_max_cooldown_ns},
    [FIELD_THRESHOLD] = {"threshold", read_threshold},
};

/* The field, if it was written, is wrong for the reason given. */
static int MUST_USE refuse(struct source *s, const struct place *at, const yaml_node_t **seen,
			   enum limit_field field, const char *reason)
{
	struct place place = {at, limit_field[field].name, 0};

	return seen[field] ? fail(s, line_of(seen[field]), &place, "%s", reason) : 0;
}

/* A rate is what it comes to in the window, rounded down. */
static int MUST_USE settle_rate(struct source *s, const struct place *at, const yaml_node_t *field,
				struct policy_limit *limit)
{
	unsigned __int128 in_window = (unsigned __int128)limit->limit * limit->window_ns;

	if (!limit->per_second)
		return 0;
	in_window /= 1000000000;
	limit->limit = in_window > UINT64_MAX ? UINT64_MAX : (uint64_t)in_window;
	if (!limit->limit)
		return fail(s, line_of(field), at,
			    "this rate comes to less than 1 in the window: write a longer window");
	return 0;
}

static int MUST_USE check_window(struct source *s, const struct place *at, const yaml_node_t **seen,
				 struct policy_limit *limit)
{
	int packets = limit->cost == PACER_COST_PACKETS;
	enum limit_field field = packets ? FIELD_PACKETS : FIELD_BYTES;
	struct place place = {at, limit_field[field].name, 0};
	struct pacer_window window;

	if (!seen[FIELD_WINDOW])
		return fail(s, limit->line, at,
			    "%s is written, but not the window that it counts "
			    "in: write window: 1s",
			    place.name);
	if (settle_rate(s, &place, seen[field], limit))
		return -1;
	switch (pacer_window_profile(&window, limit->cost, limit->limit, limit->window_ns,
				     limit->slots, 0)) {
	case PACER_WINDOW_OK:
		return 0;
	case PACER_WINDOW_BAD_LIMIT:
		return fail(s, line_of(seen[field]), &place,
			    "%llu is more than can be counted: "
			    "at most %llu",
			    (unsigned long long)limit->limit,
			    packets ? PACER_LIMIT_MAX : PACER_LIMIT_BYTES);
	case PACER_WINDOW_BAD_TIME:
	case PACER_WINDOW_BAD_SLOTS:
		break;
	}
	place.name = limit_field[FIELD_WINDOW].name;
	return fail(s, line_of(seen[FIELD_WINDOW]), &place,
		    "%lluns cannot be divided into %u slots of 1ns or more",
		    (unsigned long long)limit->window_ns, limit->slots);
}

static int MUST_USE check_burst(struct source *s, const struct place *at, const yaml_node_t **seen,
				const struct policy_limit *limit)
{
	struct place place = {at, "burst", 0};

	if (!seen[FIELD_BURST])
		return fail(s, limit->line, at,
			    "rate is written, but not the burst that may come at once: write %s",
			    limit->rate.bytes ? "burst: 64K" : "burst: 50");
	if (limit->burst_bytes && !limit->rate.bytes)
		return fail(s, line_of(seen[FIELD_BURST]), &place,
			    "it is in bytes, and the rate is in packets: write burst: 50, say");
	if (limit->rate.bytes && limit->burst < POLICY_FRAME_MAX)
		return fail(s, line_of(seen[FIELD_BURST]), &place,
			    "%llu bytes are less than one frame of %u: write %u or more",
			    (unsigned long long)limit->burst, POLICY_FRAME_MAX, POLICY_FRAME_MAX);
	return 0;
}

static int MUST_USE check_rate(struct source *s, const struct place *at, const yaml_node_t **seen,
			       const struct policy_limit *limit)
{
	unsigned __int128 most = limit->rate.bytes ? RATE_BYTES_MAX : RATE_PACKETS_MAX;
	struct place place = {at, "rate", 0};
	struct pacer_rate rate;

	if (limit->rate.amount > most * limit->rate.per_ns / 1000000000)
		return fail(s, line_of(seen[FIELD_RATE]), &place,
			    "no line carries so much: write %s or less",
			    limit->rate.bytes ? "1000Gbit/s" : "2000Mpps");
	if (check_burst(s, at, seen, limit))
		return -1;
	switch (pacer_rate_profile(&rate, limit->cost, limit->rate.amount, limit->rate.per_ns,
				   limit->burst, 0)) {
	case PACER_RATE_OK:
	case PACER_RATE_BAD_CLOCK:
		return 0;
	case PACER_RATE_BAD_RATE:
		return fail(s, line_of(seen[FIELD_RATE]), &place,
			    "slower than one in 73 minutes: use a throttle of uses and cooldown");
	case PACER_RATE_BAD_BURST:
		break;
	}
	place.name = "burst";
	return fail(s, line_of(seen[FIELD_BURST]), &place,
		    "%llu are more than can be kept at this rate: write less",
		    (unsigned long long)limit->burst);
}

static int MUST_USE check_uses(struct source *s, const struct place *at, const yaml_node_t **seen,
			       struct policy_limit *limit)
{
	if (limit->key.kind != KEY_ALL &&
	    refuse(s, at, seen, FIELD_KEY,
		   "uses are of all packets of the rule together: write key: all"))
		return -1;
	if (!seen[FIELD_COOLDOWN])
		return fail(s, limit->line, at,
			    "uses is written, but not after how long each is free again: write "
			    "cooldown: 10s");
	complete_throttle(&limit->throttle);
	return check_throttle(s, at, &limit->throttle, line_of(seen[FIELD_THRESHOLD]),
			      line_of(seen[FIELD_MAX_COOLDOWN]));
}

/* The fields that make a limit what it is, and the one whose limit the others belong to. */
static const struct {
	enum policy_limit_kind kind;
	bool leads;
} field_kind[LIMIT_FIELDS] = {
    [FIELD_GAP] = {LIMIT_GAP, true},
    [FIELD_ROWS] = {LIMIT_GAP, false},
    [FIELD_CEILING] = {LIMIT_GAP, false},
    [FIELD_PACKETS] = {LIMIT_WINDOW, true},
    [FIELD_BYTES] = {LIMIT_WINDOW, true},
    [FIELD_WINDOW] = {LIMIT_WINDOW, false},
    [FIELD_SLOTS] = {LIMIT_WINDOW, false},
    [FIELD_RATE] = {LIMIT_RATE, true},
    [FIELD_BURST] = {LIMIT_RATE, false},
    [FIELD_USES] = {LIMIT_THROTTLE, true},
    [FIELD_COOLDOWN] = {LIMIT_THROTTLE, false},
    [FIELD_MAX_COOLDOWN] = {LIMIT_THROTTLE, false},
    [FIELD_THRESHOLD] = {LIMIT_THROTTLE, false},
};

/* Fields of a limit of another kind than the leading one's. */
static int MUST_USE check_kinds(struct source *s, const struct place *at, const yaml_node_t **seen,
				enum limit_field leading)
{
	static const char *const owner[] = {"a gap", "packets or bytes", "a rate", "uses"};
	static const char *const is[] = {"a gap", "a window", "a rate", "a throttle"};
	enum policy_limit_kind kind = field_kind[leading].kind;
	enum limit_field f;
	char why[80];

	for (f = FIELD_GAP; f < LIMIT_FIELDS; f++) {
		if (f == leading || f == FIELD_ENTRIES)
			continue;
		if (field_kind[f].leads)
			snprintf(why, sizeof(why), "beside %s: write it as a limit of its own",
				 limit_field[leading].name);
		else if (field_kind[f].kind != kind)
			snprintf(why, sizeof(why), "belongs to %s, and this limit is %s",
				 owner[field_kind[f].kind], is[kind]);
		else
			continue;
		if (refuse(s, at, seen, f, why))
			return -1;
	}
	return 0;
}

/* Fields that contradict each other, or are missing. */
static int MUST_USE check_limit(struct source *s, const struct place *at, const yaml_node_t **seen,
				struct policy_limit *limit)
{
	const char *of_all = "the key \"all\" has one entry: leave the field out";
	enum limit_field leading = FIELD_GAP;

	if (!seen[FIELD_KEY])
		return fail(s, limit->line, at, "the key is missing: write key: src, for example");
	while (leading < LIMIT_FIELDS && !(seen[leading] && field_kind[leading].leads))
		leading++;
	if (leading == LIMIT_FIELDS)
		return fail(s, limit->line, at,
			    "nothing is limited: write gap, packets, bytes, rate or uses");
	limit->kind = field_kind[leading].kind;
	if (check_kinds(s, at, seen, leading))
		return -1;
	if (limit->kind == LIMIT_THROTTLE && check_uses(s, at, seen, limit))
		return -1;
	if (limit->kind == LIMIT_RATE && check_rate(s, at, seen, limit))
		return -1;
	if (limit->key.kind == KEY_ALL &&
	    (refuse(s, at, seen, FIELD_ENTRIES, of_all) ||
	     refuse(s, at, seen, FIELD_CEILING, of_all) || refuse(s, at, seen, FIELD_ROWS, of_all)))
		return -1;
	return limit->kind == LIMIT_WINDOW ? check_window(s, at, seen, limit) : 0;
}

static int read_limit(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct fields fields = {"a limit", limit_field, LIMIT_FIELDS};
	const yaml_node_t *seen[LIMIT_FIELDS] = {0};
	struct policy_limit *limit = into;

	limit->line = line_of(node);
	limit->slots = SLOTS_DEFAULT;
	limit->rows = ROWS_DEFAULT;
	if (read_fields(s, at, node, &fields, limit, seen))
		return -1;
	return check_limit(s, at, seen, limit);
}

static int read_limits(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	struct policy_rule *rule = into;
	struct list list = {read_limit, rule->limit, sizeof(rule->limit[0]), POLICY_LIMITS_MAX,
			    &rule->n_limits};

	if (node->type != YAML_SEQUENCE_NODE)
		return fail(s, line_of(node), at,
			    "expected a list of limits: - {key: src, gap: 1ms}");
	if (read_list(s, at, node, &list))
		return -1;
	if (!rule->n_limits)
		return fail(s, line_of(node), at, "the list is empty: a rule has 1 to %d limits",
			    POLICY_LIMITS_MAX);
	return 0;
}

/* rules */

static int MUST_USE read_name_of(struct source *s, const struct place *at, int line,
				 const char *text, char name[POLICY_NAME_MAX])
{
	static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789_-";

	if (!*text || text[strspn(text, letters)] || strlen(text) >= POLICY_NAME_MAX)
		return fail(s, line, at, "\"%s\" will not do: 1 to %d letters, digits, '_' and '-'",
			    shown(text).text, POLICY_NAME_MAX - 1);
	memcpy(name, text, strlen(text) + 1);
	return 0;
}

static int read_name(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const char *text;

	if (scalar(s, at, node, &text))
		return -1;
	return read_name_of(s, at, line_of(node), text, ((struct policy_rule *)into)->name);
}

static int read_over(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_rule *rule = into;
	const char *text;

	if (scalar(s, at, node, &text))
		return -1;
	rule->over_line = line_of(node);
	if (!strcmp(text, "pool"))
		return fail(s, line_of(node), at, "which pool is missing: write pool NAME");
	if (!strncmp(text, "pool ", 5)) {
		rule->over = PACER_OVER_POOL;
		return read_name_of(s, at, line_of(node), text + 5 + strspn(text + 5, " "),
				    rule->pool_name);
	}
	if (strcmp(text, "drop") && strcmp(text, "pass"))
		return fail(s, line_of(node), at,
			    "\"%s\" is not known: write drop, pass or pool NAME", shown(text).text);
	rule->over = *text == 'd' ? PACER_OVER_DROP : PACER_OVER_PASS;
	return 0;
}

static int read_ban(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_duration(s, at, node, &((struct policy_rule *)into)->ban_ns);
}

enum rule_field { FIELD_NAME, FIELD_MATCH, FIELD_LIMITS, FIELD_OVER, FIELD_BAN, RULE_FIELDS };

static const struct field rule_field[RULE_FIELDS] = {
    [FIELD_NAME] = {"name", read_name},	      [FIELD_MATCH] = {"match", read_match},
    [FIELD_LIMITS] = {"limits", read_limits}, [FIELD_OVER] = {"over", read_over},
    [FIELD_BAN] = {"ban", read_ban},
};

/* A ban is of a key: one that is the same for all would ban everybody. */
static int MUST_USE check_ban(struct source *s, const struct place *at, const yaml_node_t *ban,
			      const struct policy_rule *rule)
{
	struct place place = {at, "ban", 0};
	size_t i, keyed = 0;

	for (i = 0; i < rule->n_limits && ban; i++) {
		const struct policy_key *key = &rule->limit[i].key;

		if (key->kind == KEY_ALL)
			continue;
		keyed++;
		if (!key->len4 || !key->len6)
			return fail(s, line_of(ban), &place,
				    "limits[%zu] has one key for all of IPv%d, whom it would ban "
				    "together: give that a length above 0",
				    i, key->len4 ? 6 : 4);
	}
	if (!ban || keyed)
		return 0;
	return fail(
	    s, line_of(ban), &place,
	    "every limit of the rule has the key all, whose denials ban nobody: add a limit "
	    "by src, say");
}

static int read_rule(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct fields fields = {"a rule", rule_field, RULE_FIELDS};
	const yaml_node_t *seen[RULE_FIELDS] = {0};
	struct policy_rule *rule = into, *other = rule - at->index;
	struct place place = {at, "name", 0};

	rule->line = line_of(node);
	if (read_fields(s, at, node, &fields, rule, seen))
		return -1;
	if (!seen[FIELD_NAME])
		return fail(s, rule->line, at, "the name is missing: write name: dns, for example");
	if (!seen[FIELD_LIMITS])
		return fail(s, rule->line, at, "the limits are missing: write limits: and a list");
	for (; other < rule; other++)
		if (!strcmp(other->name, rule->name))
			return fail(s, line_of(seen[FIELD_NAME]), &place,
				    "\"%s\" is the name of the rule in line %d, too", rule->name,
				    other->line);
	return check_ban(s, at, seen[FIELD_BAN], rule);
}

static int read_rules(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	struct list list = {read_rule, policy->rule, sizeof(policy->rule[0]), PACER_RULES_MAX,
			    &policy->n_rules};

	if (node->type != YAML_SEQUENCE_NODE)
		return fail(s, line_of(node), at, "expected a list of rules, or [] for none");
	return read_list(s, at, node, &list);
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

	if (scalar(s, at, node, &text))
		return -1;
	return read_name_of(s, at, line_of(node), text, ((struct policy_pool *)into)->name);
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

	if (scalar(s, at, node, &text))
		return -1;
	if (!strncmp(text, "cpu:", 4) || !strncmp(text, "xsk:", 4)) {
		target->kind = *text == 'c' ? PACER_TARGET_CPU : PACER_TARGET_SOCKET;
		if (target->kind == PACER_TARGET_SOCKET)
			most = PACER_SOCKETS_MAX - 1;
		if (units_range(text + 4, most, &number) || number.low != number.high)
			return fail(s, line_of(node), at,
				    "\"%s\" will not do: write %.4s0 to %.4s%u", shown(text).text,
				    text, text, most);
		target->number = number.low;
		return 0;
	}
	if (!names_interface(text))
		return fail(s, line_of(node), at,
			    "\"%s\" is no target: write an interface, cpu:1 or xsk:0",
			    shown(text).text);
	if (strlen(text) >= POLICY_TARGET_NAME)
		return fail(s, line_of(node), at, "\"%s\" is too long for an interface: at most %d",
			    shown(text).text, POLICY_TARGET_NAME - 1);
	memcpy(target->name, text, strlen(text) + 1);
	return 0;
}

static int read_targets(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct policy_pool *pool = into;
	struct list list = {one_target, pool->target, sizeof(pool->target[0]), PACER_TARGETS_MAX,
			    &pool->n};

	if (read_list(s, at, node, &list))
		return -1;
	if (!pool->n)
		return fail(s, line_of(node), at, "the list is empty: a pool has 1 to %u targets",
			    PACER_TARGETS_MAX);
	return 0;
}

static int read_each(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_uses_of(s, at, node, &((struct policy_pool *)into)->each);
}

static const struct field pool_field[POOL_FIELDS] = {
    [FIELD_POOL_NAME] = {"name", read_pool_name},
    [FIELD_TARGETS] = {"targets", read_targets},
    [FIELD_EACH] = {"each", read_each},
    [FIELD_POOL_COOLDOWN] = {"cooldown", read_pool_cooldown_ns},
    [FIELD_POOL_MAX_COOLDOWN] = {"max_cooldown", read_pool_max_cooldown_ns},
    [FIELD_POOL_THRESHOLD] = {"threshold", read_pool_threshold},
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
			return fail(s, line_of(targets), &item,
				    "%s is %s, and the first target %s: a pool is of one kind",
				    text, kinds[pool->target[i].kind], kinds[pool->target[0].kind]);
		for (other = pool - at->index; other <= pool; other++)
			for (k = 0; k < (other == pool ? i : other->n); k++)
				if (same_target(&other->target[k], &pool->target[i]))
					return fail(s, line_of(targets), &item,
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
			return fail(s, pool->line, at, "%s is missing: write %s: %s, for example",
				    pool_field[f].name, pool_field[f].name, example[f]);
	for (; other < pool; other++)
		if (!strcmp(other->name, pool->name))
			return fail(s, line_of(seen[FIELD_POOL_NAME]), &place,
				    "\"%s\" is the name of the pool in line %d, too", pool->name,
				    other->line);
	return 0;
}

static int read_pool(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct fields fields = {"a pool", pool_field, POOL_FIELDS};
	const yaml_node_t *seen[POOL_FIELDS] = {0};
	struct policy_pool *pool = into;
	struct place each = {at, "each", 0};

	pool->line = line_of(node);
	if (read_fields(s, at, node, &fields, pool, seen) || check_pool(s, at, seen, pool) ||
	    check_targets(s, at, seen[FIELD_TARGETS], pool))
		return -1;
	pool->throttle.uses = pool->n * pool->each;
	if (pool->throttle.uses > POLICY_USES_MAX)
		return fail(s, line_of(seen[FIELD_EACH]), &each,
			    "%llu of all targets together are more than can be counted: at most "
			    "%llu",
			    (unsigned long long)pool->throttle.uses, POLICY_USES_MAX);
	complete_throttle(&pool->throttle);
	return check_throttle(s, at, &pool->throttle, line_of(seen[FIELD_POOL_THRESHOLD]),
			      line_of(seen[FIELD_POOL_MAX_COOLDOWN]));
}

static int read_pools(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	struct list list = {read_pool, policy->pool, sizeof(policy->pool[0]), PACER_POOLS_MAX,
			    &policy->n_pools};

	if (node->type != YAML_SEQUENCE_NODE)
		return fail(s, line_of(node), at, "expected a list of pools, or [] for none");
	return read_list(s, at, node, &list);
}

static size_t pool_named(const struct policy *policy, const char *name)
{
	size_t i = 0;

	while (i < policy->n_pools && strcmp(policy->pool[i].name, name))
		i++;
	return i;
}

/* The pools that rules name; they may stand behind the rules. */
static int MUST_USE find_pools(struct source *s, struct policy *policy)
{
	struct place rules = {NULL, "rules", 0}, at = {&rules, NULL, 0}, over = {&at, "over", 0};
	char names[200] = "";
	size_t i, r;

	for (i = 0; i < policy->n_pools; i++)
		append(names, sizeof(names), "%s%s", i ? ", " : "", policy->pool[i].name);
	for (r = 0; r < policy->n_rules; r++) {
		struct policy_rule *rule = &policy->rule[r];

		if (rule->over != PACER_OVER_POOL)
			continue;
		rule->pool = pool_named(policy, rule->pool_name);
		at.index = r;
		if (rule->pool == policy->n_pools)
			return fail(s, rule->over_line, &over, "there is no pool %s: there %s%s",
				    rule->pool_name,
				    i ? "are " : "is none: add it to pools:", names);
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

	if (choose(s, at, node, ofs, &of))
		return -1;
	sample->of = (enum policy_sampled)of;
	return 0;
}

static int read_k(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_whole(s, at, node, 1, PACER_SAMPLE_K, &((struct policy_sample *)into)->k);
}

static int read_last(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	uint64_t packets;

	if (read_count(s, at, node, &packets))
		return -1;
	if (packets >= PACER_SAMPLE_BURST_C_MAX)
		return fail(s, line_of(node), at, "%llu is more than a sample's window: at most %u",
			    (unsigned long long)packets, PACER_SAMPLE_BURST_C_MAX - 1);
	((struct policy_sample *)into)->packets = (uint32_t)packets;
	return 0;
}

static int read_within(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	return read_duration(s, at, node, &((struct policy_sample *)into)->window_ns);
}

static int read_replacement(struct source *s, const struct place *at, const yaml_node_t *node,
			    void *into)
{
	static const struct choice replacements[] = {{"with", 0}, {"without", 1}, {NULL, 0}};
	struct policy_sample *sample = into;
	int without;

	if (choose(s, at, node, replacements, &without))
		return -1;
	sample->without_replacement = without;
	return 0;
}

static int read_snap(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_whole(s, at, node, 0, POLICY_SNAP_MAX,
			  &((struct policy_sample *)into)->snap_bytes);
}

static const struct field sample_field[SAMPLE_FIELDS] = {
    [FIELD_OF] = {"of", read_of},
    [FIELD_K] = {"k", read_k},
    [FIELD_LAST] = {"packets", read_last},
    [FIELD_WITHIN] = {"window", read_within},
    [FIELD_REPLACEMENT] = {"replacement", read_replacement},
    [FIELD_SNAP] = {"snap", read_snap},
};

static int read_sample(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	static const struct fields fields = {"a sample", sample_field, SAMPLE_FIELDS};
	struct place place = {at, "replacement", 0};
	const yaml_node_t *seen[SAMPLE_FIELDS] = {0};
	struct policy_sample *sample = &((struct policy *)into)->sample;

	if (read_fields(s, at, node, &fields, sample, seen))
		return -1;
	sample->on = true;
	sample->line = line_of(node);
	if (!seen[FIELD_OF])
		return fail(s, sample->line, at,
			    "what is sampled is missing: write of: denied, admitted or all");
	if (!seen[FIELD_K])
		return fail(s, sample->line, at, "its size is missing: write k: 1 to %d",
			    PACER_SAMPLE_K);
	if (seen[FIELD_LAST] && seen[FIELD_WITHIN])
		return fail(s, line_of(seen[FIELD_WITHIN]), at,
			    "packets and window are both written: a sample has one of them");
	if (!seen[FIELD_LAST] && !seen[FIELD_WITHIN])
		return fail(s, sample->line, at,
			    "of what it is a sample is missing: write window: 60s or packets: 1M");
	if (seen[FIELD_REPLACEMENT] && sample->without_replacement != !!sample->packets)
		return fail(s, line_of(seen[FIELD_REPLACEMENT]), &place,
			    sample->packets
				? "the last packets are sampled without replacement only: write "
				  "without, or leave it out"
				: "a window of time is sampled with replacement only: write "
				  "packets instead of window, or with");
	sample->without_replacement = sample->packets;
	return 0;
}

/* The whole */

static int read_mode(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct choice modes[] = {{"enforce", 0}, {"monitor", 1}, {NULL, 0}};
	struct policy *policy = into;
	int monitor;

	if (choose(s, at, node, modes, &monitor))
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

	if (choose(s, at, node, verdicts, &drop))
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

	if (choose(s, at, node, clocks, &value))
		return -1;
	policy->clock = (enum policy_clock)value;
	return 0;
}

static int read_memory(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	struct policy *policy = into;
	const char *text;
	char most[32];

	if (scalar(s, at, node, &text))
		return -1;
	if (units_size(text, &policy->memory_bytes))
		return fail(s, line_of(node), at, "\"%s\" is not a size: write 64Mi or 1Gi",
			    shown(text).text);
	if (policy->memory_bytes > MEMORY_MAX)
		return fail(s, line_of(node), at, "%s is too much: at most %s", shown(text).text,
			    units_size_text(MEMORY_MAX, most, sizeof(most)));
	return more_than_zero(s, at, node, policy->memory_bytes);
}

static int read_bans(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	uint64_t *bans = &((struct policy *)into)->bans;

	if (read_count(s, at, node, bans))
		return -1;
	if (*bans > POLICY_BANS_MAX)
		return fail(s, line_of(node), at, "%llu is too much: at most %u",
			    (unsigned long long)*bans, POLICY_BANS_MAX);
	return 0;
}

bool policy_bans(const struct policy *policy)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		if (policy->rule[r].ban_ns)
			return true;
	return false;
}

static int read_allow(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	struct list list = {one_prefix, policy->allow, sizeof(policy->allow[0]), POLICY_ALLOW_MAX,
			    &policy->n_allow};

	return read_list(s, at, node, &list);
}

enum policy_field {
	FIELD_MODE,
	FIELD_ALLOW,
	FIELD_UNPARSED,
	FIELD_CLOCK,
	FIELD_MEMORY,
	FIELD_RULES,
	FIELD_POOLS,
	FIELD_BANS,
	FIELD_SAMPLE,
	POLICY_FIELDS
};

static const struct field policy_field[POLICY_FIELDS] = {
    [FIELD_MODE] = {"mode", read_mode},
    [FIELD_ALLOW] = {"allow", read_allow},
    [FIELD_UNPARSED] = {"unparsed", read_unparsed},
    [FIELD_CLOCK] = {"clock", read_clock},
    [FIELD_MEMORY] = {"memory", read_memory},
    [FIELD_RULES] = {"rules", read_rules},
    [FIELD_POOLS] = {"pools", read_pools},
    [FIELD_BANS] = {"bans", read_bans},
    [FIELD_SAMPLE] = {"sample", read_sample},
};

static int MUST_USE read_policy(struct source *s, struct policy *policy)
{
	static const struct fields fields = {"a policy", policy_field, POLICY_FIELDS};
	const yaml_node_t *root = yaml_document_get_root_node(&s->doc);
	const yaml_node_t *seen[POLICY_FIELDS] = {0};

	policy->memory_bytes = POLICY_MEMORY_DEFAULT;
	policy->bans = POLICY_BANS_DEFAULT;
	if (read_fields(s, NULL, root, &fields, policy, seen))
		return -1;
	if (!seen[FIELD_RULES])
		return fail(s, line_of(root), NULL,
			    "the rules are missing: write rules: and a list, or rules: []");
	return find_pools(s, policy);
}

/* libyaml says so, or fails without a word. */
static bool is_out_of_memory(const yaml_parser_t *parser)
{
	return parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR ||
	       !parser->problem;
}

static int no_memory(struct source *s)
{
	return fail(s, POLICY_NO_MEMORY, NULL, "out of memory");
}

static int MUST_USE syntax_error(struct source *s, const yaml_parser_t *parser)
{
	const yaml_mark_t *mark = &parser->problem_mark;
	size_t i, line = mark->line + 1, lines = 1;
	char context[96] = "";
	const char *hint = "";

	if (is_out_of_memory(parser))
		return no_memory(s);
	for (i = 0; i < s->len; i++)
		lines += s->text[i] == '\n' && i + 1 < s->len;
	if (parser->error == YAML_READER_ERROR) {
		for (line = 1, i = 0; i < s->len && i < parser->problem_offset; i++)
			line += s->text[i] == '\n';
	} else if (parser->context) {
		append(context, sizeof(context), "%s in line %zu: ", parser->context,
		       least(parser->context_mark.line + 1, lines));
	}
	if (parser->problem && strstr(parser->problem, "cannot start any token"))
		hint = " (indent with spaces, not tabs; quote a text that begins with @ or `)";
	else if (strstr(context, "flow") || strstr(context, "plain scalar"))
		hint = " (within [] and {}, put a space behind a field's ':', and quote an "
		       "address that begins or ends with ':')";
	return fail(s, (int)least(line, lines), NULL, "not YAML: %s%s%s", context, parser->problem,
		    hint);
}

/* Load the only document of the parser's text into s->doc. */
static int MUST_USE load_document(struct source *s, yaml_parser_t *parser)
{
	const yaml_node_t *root;
	yaml_document_t second;
	int result = 0;

	if (!yaml_parser_load(parser, &s->doc))
		return syntax_error(s, parser);
	if (!yaml_document_get_root_node(&s->doc)) {
		result = fail(s, 1, NULL, "the policy is empty: write rules: [] to limit nothing");
	} else if (!yaml_parser_load(parser, &second)) {
		result = syntax_error(s, parser);
	} else {
		root = yaml_document_get_root_node(&second);
		if (root)
			result = fail(s, line_of(root), NULL, "a second document: a policy is one");
		yaml_document_delete(&second);
	}
	if (result)
		yaml_document_delete(&s->doc);
	return result;
}

static int MUST_USE start_parser(struct source *s, yaml_parser_t *parser)
{
	if (!yaml_parser_initialize(parser))
		return no_memory(s);
	yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(parser, (const unsigned char *)s->text, s->len);
	return 0;
}

/* Deep nesting costs libyaml quadratic time: seconds for a text of 64k. Other errors are left to
 * load_document.
 */
static int MUST_USE check_depth(struct source *s)
{
	int depth = 0, line = 0, done = 0, out_of_memory;
	yaml_parser_t parser;
	yaml_event_t event;

	if (start_parser(s, &parser))
		return -1;
	while (!done && yaml_parser_parse(&parser, &event)) {
		depth += event.type == YAML_SEQUENCE_START_EVENT ||
			 event.type == YAML_MAPPING_START_EVENT;
		depth -=
		    event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
		if (depth > DEPTH_MAX)
			line = (int)event.start_mark.line + 1;
		done = line || event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	out_of_memory = !done && is_out_of_memory(&parser);
	yaml_parser_delete(&parser);
	if (out_of_memory)
		return no_memory(s);
	if (line)
		return fail(s, line, NULL, "nested too deep: at most %d levels", DEPTH_MAX);
	return 0;
}

/* Open a text; close_source then frees what it holds. */
static int MUST_USE open_source(struct source *s, const char *text, size_t len,
				struct policy_error *error)
{
	yaml_parser_t parser;
	int result;

	*s = (struct source){.text = text, .len = len, .error = error};
	if (len > PACER_DOC_MAX - 1)
		return fail(s, 0, NULL, "%zu bytes: a policy has at most %u", len,
			    PACER_DOC_MAX - 1);
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		s->bom = 3;
		s->text += s->bom;
		s->len -= s->bom;
	}
	if (check_depth(s) || start_parser(s, &parser))
		return -1;
	result = load_document(s, &parser);
	yaml_parser_delete(&parser);
	return result;
}

static void close_source(struct source *s)
{
	yaml_document_delete(&s->doc);
}

struct policy *policy_parse(const char *text, size_t len, struct policy_error *error)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	struct source s;
	int result;

	if (open_source(&s, text, len, error)) {
		free(policy);
		return NULL;
	}
	if (policy) {
		policy->rule = calloc(PACER_RULES_MAX, sizeof(*policy->rule));
		policy->allow = calloc(POLICY_ALLOW_MAX, sizeof(*policy->allow));
		policy->unparsed_drop = true; /* no stack takes such frames */
	}
	if (policy && policy->rule && policy->allow)
		result = read_policy(&s, policy);
	else
		result = no_memory(&s);
	close_source(&s);
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
	free(policy);
}

const char *policy_key_text(const struct policy_key *key, char *buf, size_t size)
{
	static const char *const names[] = {
	    [KEY_FLOW] = "flow",     [KEY_SRC] = "src", [KEY_DST] = "dst",
	    [KEY_SRC_DPORT] = "src", [KEY_ALL] = "all",
	};
	char lengths[16] = "";

	if (key->kind != KEY_FLOW && key->kind != KEY_ALL)
		snprintf(lengths, sizeof(lengths), "/%u,%u", key->len4, key->len6);
	snprintf(buf, size, "%s%s%s", names[key->kind], lengths,
		 key->kind == KEY_SRC_DPORT ? "+dport" : "");
	return buf;
}

/* Setting a value: where it stands in the text, and what the text then is. */

/* What a path leads to. The ids are those of the document's nodes. */
struct target {
	const char *name;   /* of the field */
	int parent;	    /* the mapping that has it, or is to get it */
	int value;	    /* 0: absent */
	int rule, limits;   /* that it lies in; 0: a field of the whole */
	const char *behind; /* an absent field goes behind this one; NULL: before the first */
};

struct edit {
	size_t from, to; /* bytes of the text that give way to */
	char by[160];
};

static int id_of(const struct source *s, const yaml_node_t *node)
{
	return (int)(node - s->doc.nodes.start) + 1;
}

static yaml_node_t *node_of(struct source *s, int id)
{
	return yaml_document_get_node(&s->doc, id);
}

static const yaml_node_pair_t *find_pair(struct source *s, int mapping, const char *name)
{
	const yaml_node_t *node = node_of(s, mapping), *key;
	const yaml_node_pair_t *pair;

	if (!node || node->type != YAML_MAPPING_NODE)
		return NULL;
	for (pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		key = node_of(s, pair->key);
		if (key->type == YAML_SCALAR_NODE &&
		    !strcmp((const char *)key->data.scalar.value, name))
			return pair;
	}
	return NULL;
}

/* The value's node, 0 if there is none. */
static int find_value(struct source *s, int mapping, const char *name)
{
	const yaml_node_pair_t *pair = find_pair(s, mapping, name);

	return pair ? pair->value : 0;
}

/* The items of a list, none if it is no list. */
static size_t items_of(struct source *s, int list, const yaml_node_item_t **items)
{
	const yaml_node_t *node = node_of(s, list);

	if (!node || node->type != YAML_SEQUENCE_NODE)
		return 0;
	*items = node->data.sequence.items.start;
	return (size_t)(node->data.sequence.items.top - *items);
}

/* Fields of a limit that can be set: all but its key, which its state hangs on. */
static int is_settable(const char *name)
{
	enum limit_field i;

	for (i = FIELD_GAP; i < LIMIT_FIELDS; i++)
		if (!strcmp(limit_field[i].name, name))
			return 1;
	return 0;
}

/* The fields that can be set of limit `only`, or of any limit if that is SIZE_MAX. */
static int no_such_field(struct source *s, const char *path, int rule, size_t only)
{
	const yaml_node_item_t *limit = NULL;
	size_t i, n = items_of(s, find_value(s, rule, "limits"), &limit);
	char names[96] = "";
	enum limit_field f;

	if (only == SIZE_MAX)
		append(names, sizeof(names), "over, ban");
	for (f = FIELD_GAP; f < LIMIT_FIELDS; f++) {
		for (i = 0; i < n; i++) {
			if ((only != SIZE_MAX && only != i) ||
			    !find_pair(s, limit[i], limit_field[f].name))
				continue;
			append(names, sizeof(names), "%s%s", *names ? ", " : "",
			       limit_field[f].name);
			break;
		}
	}
	return fail(s, line_of(node_of(s, only == SIZE_MAX ? rule : limit[only])), NULL,
		    "%s: no such field that can be set; there are %s", shown(path).text, names);
}

/* The only limit that has the field. */
static int MUST_USE locate_in_any(struct source *s, const char *path, struct target *target)
{
	const yaml_node_item_t *limit = NULL;
	size_t i, n = items_of(s, target->limits, &limit), found = 0;
	size_t stem = strlen(path) - strlen(target->name);
	char paths[300] = "";

	for (i = 0; i < n && is_settable(target->name); i++) {
		int value = find_value(s, limit[i], target->name);

		if (!value)
			continue;
		append(paths, sizeof(paths), "%s%.*slimits[%zu].%s", found++ ? ", " : "", (int)stem,
		       path, i, target->name);
		target->parent = limit[i];
		target->value = value;
	}
	if (!found)
		return no_such_field(s, path, target->rule, SIZE_MAX);
	if (found > 1)
		return fail(s, line_of(node_of(s, target->rule)), NULL,
			    "%s: %zu limits have this field: write one of %s", shown(path).text,
			    found, paths);
	return 0;
}

/* "limits[N].FIELD", N and what follows it at `index`. */
static int MUST_USE locate_in_limit(struct source *s, const char *path, const char *index,
				    struct target *target)
{
	const yaml_node_item_t *limit = NULL;
	size_t n = items_of(s, target->limits, &limit);
	size_t digits = strspn(index, "0123456789"), i;

	if (!digits || digits > 3 || strncmp(index + digits, "].", 2))
		return fail(s, 0, NULL, "%s: write RULE.limits[N].FIELD", shown(path).text);
	i = strtoul(index, NULL, 10);
	if (i >= n)
		return fail(s, line_of(node_of(s, target->rule)), NULL,
			    "%s: no such limit: the rule has %zu, counted from 0", shown(path).text,
			    n);
	target->name = index + digits + 2;
	target->parent = limit[i];
	target->value = is_settable(target->name) ? find_value(s, limit[i], target->name) : 0;
	return target->value ? 0 : no_such_field(s, path, target->rule, i);
}

/* The rule or the pool whose name are the `len` bytes at `at` in the path, 0 if there is none. */
static int find_named(struct source *s, const char *path, const char *at, size_t len)
{
	bool pools = at != path;
	const yaml_node_t *root = yaml_document_get_root_node(&s->doc), *name;
	const yaml_node_item_t *item = NULL;
	size_t i, n = items_of(s, find_value(s, id_of(s, root), pools ? "pools" : "rules"), &item);
	char names[200] = "";

	for (i = 0; i < n; i++) {
		int id = find_value(s, item[i], "name");

		name = id ? node_of(s, id) : NULL;
		if (!name || name->type != YAML_SCALAR_NODE)
			continue;
		if (name->data.scalar.length == len && !memcmp(name->data.scalar.value, at, len))
			return item[i];
		append(names, sizeof(names), "%s%s", *names ? ", " : "",
		       shown((const char *)name->data.scalar.value).text);
	}
	fail(s, 0, NULL, "%s: no such %s: there %s%s", shown(path).text, pools ? "pool" : "rule",
	     *names ? "are " : "is none", names);
	return 0;
}

/* "pools.NAME.FIELD", which cannot be meant for a rule. NULL: not so; else NAME. */
static const char *path_of_pool(const char *path)
{
	return !strncmp(path, "pools.", 6) && strncmp(path + 6, "limits[", 7) &&
		       strchr(path + 6, '.')
		   ? path + 6
		   : NULL;
}

static int MUST_USE locate_in_pool(struct source *s, const char *path, const char *name,
				   struct target *target)
{
	const char *dot = strchr(name, '.');
	char names[96] = "";
	enum pool_field f;

	target->name = dot + 1;
	target->parent = find_named(s, path, name, (size_t)(dot - name));
	if (!target->parent)
		return -1;
	for (f = FIELD_EACH; f < POOL_FIELDS; f++) {
		int value = find_value(s, target->parent, pool_field[f].name);

		if (!value)
			continue;
		append(names, sizeof(names), "%s%s", *names ? ", " : "", pool_field[f].name);
		if (!strcmp(target->name, pool_field[f].name))
			target->value = value;
	}
	if (!target->value)
		return fail(s, line_of(node_of(s, target->parent)), NULL,
			    "%s: no such field that can be set; there are %s", shown(path).text,
			    names);
	return 0;
}

static int MUST_USE locate(struct source *s, const char *path, struct target *target)
{
	static const char *const top[] = {"mode", "unparsed", "clock", "bans"};
	const char *dot = strchr(path, '.'), *pool = path_of_pool(path);
	int root = id_of(s, yaml_document_get_root_node(&s->doc));
	size_t i;

	*target = (struct target){.name = dot ? dot + 1 : path, .parent = root};
	for (i = 0; !dot && i < ARRAY(top); i++) {
		if (strcmp(path, top[i]))
			continue;
		target->value = find_value(s, root, path);
		return 0;
	}
	if (!dot)
		return fail(s, 0, NULL,
			    "%s: no such field that can be set: write mode, unparsed, clock, bans, "
			    "RULE.FIELD, RULE.limits[N].FIELD or pools.NAME.FIELD",
			    shown(path).text);
	if (pool)
		return locate_in_pool(s, path, pool, target);
	target->rule = find_named(s, path, path, (size_t)(dot - path));
	if (!target->rule)
		return -1;
	if (!strcmp(target->name, "over") || !strcmp(target->name, "ban")) {
		target->parent = target->rule;
		target->value = find_value(s, target->rule, target->name);
		target->behind = "name";
		return 0;
	}
	target->limits = find_value(s, target->rule, "limits");
	if (!strncmp(target->name, "limits[", 7))
		return locate_in_limit(s, path, target->name + 7, target);
	return locate_in_any(s, path, target);
}

/* libyaml counts characters. */
static size_t byte_of(const struct source *s, size_t character)
{
	size_t i;

	for (i = 0; i < s->len; i++)
		if (((unsigned char)s->text[i] & 0xc0) != 0x80 && !character--)
			break;
	return i;
}

static int is_break(char c)
{
	return c == '\n' || c == '\r';
}

/* How the text ends its lines. */
static const char *line_end(const struct source *s)
{
	const char *end = memchr(s->text, '\n', s->len);

	return end && end > s->text && end[-1] == '\r' ? "\r\n" : "\n";
}

static int MUST_USE edit_value(struct source *s, const char *path, const char *value, int id,
			       struct edit *edit)
{
	const yaml_node_t *node = node_of(s, id);
	yaml_scalar_style_t style = node->data.scalar.style;

	if (node->type != YAML_SCALAR_NODE || style == YAML_LITERAL_SCALAR_STYLE ||
	    style == YAML_FOLDED_SCALAR_STYLE)
		return fail(s, line_of(node), NULL, "%s: not written as one value: edit it by hand",
			    shown(path).text);
	edit->from = byte_of(s, node->start_mark.index);
	edit->to = byte_of(s, node->end_mark.index);
	snprintf(edit->by, sizeof(edit->by), "%s%s", edit->from == edit->to ? " " : "", value);
	return 0;
}

/* A field behind another: in {} at once, else on a line of its own. */
static void edit_behind(struct source *s, const struct target *target, const char *value,
			struct edit *edit)
{
	const yaml_node_t *parent = node_of(s, target->parent);
	const yaml_node_pair_t *pair = find_pair(s, target->parent, target->behind);
	size_t column = least(node_of(s, pair->key)->start_mark.column, 64);

	edit->from = byte_of(s, node_of(s, pair->value)->end_mark.index);
	if (parent->data.mapping.style == YAML_FLOW_MAPPING_STYLE) {
		snprintf(edit->by, sizeof(edit->by), ", %s: %s", target->name, value);
	} else {
		while (edit->from < s->len && !is_break(s->text[edit->from]))
			edit->from++;
		snprintf(edit->by, sizeof(edit->by), "%s%*s%s: %s", line_end(s), (int)column, "",
			 target->name, value);
	}
	edit->to = edit->from;
}

/* A field before the first one of the whole: in {} at once, else on a line of its own. */
static void edit_first(struct source *s, const struct target *target, const char *value,
		       struct edit *edit)
{
	const yaml_node_t *root = node_of(s, target->parent);
	const yaml_node_pair_t *first = root->data.mapping.pairs.start;
	size_t start = root->start_mark.index, column = 0;
	int more = first < root->data.mapping.pairs.top;

	if (root->data.mapping.style == YAML_FLOW_MAPPING_STYLE) {
		edit->from = byte_of(s, start) + 1;
		snprintf(edit->by, sizeof(edit->by), "%s: %s%s", target->name, value,
			 more ? ", " : "");
	} else {
		if (more) {
			start = node_of(s, first->key)->start_mark.index;
			column = least(node_of(s, first->key)->start_mark.column, 64);
		}
		edit->from = byte_of(s, start);
		snprintf(edit->by, sizeof(edit->by), "%s: %s%s%*s", target->name, value,
			 line_end(s), (int)column, "");
	}
	edit->to = edit->from;
}

static char *splice(const struct source *s, const struct edit *edit)
{
	size_t before = s->bom + edit->from, by = strlen(edit->by), behind = s->len - edit->to;
	char *text = malloc(before + by + behind + 1);

	if (!text)
		return NULL;
	memcpy(text, s->text - s->bom, before);
	memcpy(text + before, edit->by, by);
	memcpy(text + before + by, s->text + edit->to, behind);
	text[before + by + behind] = 0;
	return text;
}

/* Lists and fields that refer to the node: more than one where an alias shares it. */
static size_t references(struct source *s, int id)
{
	const yaml_node_t *node;
	size_t n = 0;

	for (node = s->doc.nodes.start; node < s->doc.nodes.top; node++) {
		const yaml_node_item_t *item = node->data.sequence.items.start;
		const yaml_node_pair_t *pair = node->data.mapping.pairs.start;

		if (node->type == YAML_SEQUENCE_NODE)
			for (; item < node->data.sequence.items.top; item++)
				n += *item == id;
		else if (node->type == YAML_MAPPING_NODE)
			for (; pair < node->data.mapping.pairs.top; pair++)
				n += pair->key == id || pair->value == id;
	}
	return n;
}

/* An alias would carry the change to where it was not asked for. */
static int MUST_USE check_shared(struct source *s, const char *path, const struct target *target)
{
	int id[] = {target->value, target->parent, target->limits, target->rule};
	size_t i;

	for (i = 0; i < ARRAY(id); i++)
		if (id[i] && references(s, id[i]) > 1)
			return fail(s, line_of(node_of(s, id[i])), NULL,
				    "%s: shared with another place by an alias: edit it by hand",
				    shown(path).text);
	return 0;
}

/* Does the changed text have the value, and at the same place? Or -1, or *out_of_memory. */
static int MUST_USE check_edit(const char *text, const char *path, const char *value,
			       bool *out_of_memory)
{
	const yaml_node_t *node;
	struct policy_error error = {0};
	struct target target;
	struct source s;
	int result;

	if (open_source(&s, text, strlen(text), &error)) {
		*out_of_memory = error.line == POLICY_NO_MEMORY;
		return -1;
	}
	result = locate(&s, path, &target);
	if (!result) {
		node = target.value ? node_of(&s, target.value) : NULL;
		if (!node || node->type != YAML_SCALAR_NODE ||
		    strcmp((const char *)node->data.scalar.value, value))
			result = -1;
	}
	close_source(&s);
	return result;
}

static int MUST_USE check_value(struct source *s, const char *path, const char *value)
{
	static const char *const characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					      "0123456789._/-";

	const char *word = strncmp(value, "pool ", 5) ? value : value + 5;

	if (*word && !word[strspn(word, characters)] && strlen(value) <= VALUE_MAX)
		return 0;
	return fail(s, 0, NULL,
		    "%s: \"%s\" will not do: 1 to %d letters, digits, '.', '_', '/' and '-'",
		    shown(path).text, shown(value).text, VALUE_MAX);
}

static char *set_value(struct source *s, const char *path, const char *value)
{
	struct target target;
	struct edit edit;
	bool out_of_memory = false;
	char *text;

	if (check_value(s, path, value) || locate(s, path, &target) ||
	    check_shared(s, path, &target))
		return NULL;
	if (!target.value && target.behind)
		edit_behind(s, &target, value, &edit);
	else if (!target.value)
		edit_first(s, &target, value, &edit);
	else if (edit_value(s, path, value, target.value, &edit))
		return NULL;
	text = splice(s, &edit);
	if (!text) {
		no_memory(s);
	} else if (strlen(text) > PACER_DOC_MAX - 1) {
		fail(s, 0, NULL, "%s: the policy would have %zu bytes: at most %u",
		     shown(path).text, strlen(text), PACER_DOC_MAX - 1);
	} else if (check_edit(text, path, value, &out_of_memory)) {
		if (out_of_memory)
			no_memory(s);
		else
			fail(s, line_of(node_of(s, target.value ? target.value : target.parent)),
			     NULL,
			     "%s: cannot be set in this text as it is laid out: edit it by hand",
			     shown(path).text);
	} else {
		return text;
	}
	free(text);
	return NULL;
}

char *policy_set(const char *text, size_t len, const char *path, const char *value,
		 struct policy_error *error)
{
	struct source s;
	char *result;

	if (open_source(&s, text, len, error))
		return NULL;
	result = set_value(&s, path, value);
	close_source(&s);
	return result;
}
