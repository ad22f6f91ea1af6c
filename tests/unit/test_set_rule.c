/* SPDX-License-Identifier: GPL-2.0-only */
/* Rules that match on sets: a packet's rule is the one that the policy as it is written says. */
#include "oracle.h"

#include "padded.h"

#include "config/policy.h"
#include "plan/compile.h"
static int tool_bans; /* every source */
#define PACER_BANNED_BY_TOOL(walk) ((void)(walk), tool_bans)
#include "rule.h"
#include "sets/texts.h"

static struct pacer_policy bin;
static struct plan plan;
static struct set_texts texts;
static struct set_lines lines[PACER_SETS_MAX];
static struct pacer_set set[PACER_SETS_MAX];

/* NULL: its sets are of families that no packet can match. */
static struct policy *open_policy(const char *text)
{
	struct compile_host host = {0, 1, 1};
	struct policy_error error = {0};
	struct policy *policy = policy_parse(text, strlen(text), &error);

	if (!policy || compile_policy(policy, NULL, &host, &bin, &plan, &error))
		fail_msg("%d: %s\n%s", error.line, error.text, text);
	if (set_texts_read(policy, &texts, &error)) {
		if (!strstr(error.text, "no packet can match"))
			fail_msg("%d: %s\n%s", error.line, error.text, text);
		policy_free(policy);
		return NULL;
	}
	for (size_t i = 0; i < texts.n; i++) {
		assert_int_equal(set_build(&texts.text[i].list, i, &lines[i]), 0);
		set[i] = set_lines_set(&lines[i]);
	}
	return policy;
}

static void close_policy(struct policy *policy)
{
	for (size_t i = 0; i < texts.n; i++)
		set_lines_free(&lines[i]);
	set_texts_free(&texts);
	policy_free(policy);
}

static bool holds(const struct prefix *p, int family, const uint32_t addr[4])
{
	for (unsigned int bit = 0; bit < p->len; bit++)
		if ((p->addr[bit / 8] >> (7 - bit % 8) & 1) !=
		    (addr[bit / 32] >> (31 - bit % 32) & 1))
			return false;
	return p->family == family;
}

static bool in_set(const struct policy_set *s, int family, const uint32_t addr[4])
{
	for (size_t i = 0; i < s->n_of; i++)
		if (holds(&s->of[i], family, addr))
			return true;
	return false;
}

/* As xdp-pacer-policy(5) has it. */
static bool matches(const struct policy *policy, const struct policy_match *m, bool dst, int family,
		    const uint32_t addr[4])
{
	const struct prefix *list = dst ? m->dst : m->src;
	size_t n = dst ? m->n_dst : m->n_src;
	bool listed = n, hit = false;

	for (size_t i = 0; i < n; i++)
		hit |= holds(&list[i], family, addr);
	for (size_t i = 0; i < m->n_sets; i++) {
		bool in = in_set(&policy->set[m->set[i].set], family, addr);

		if (m->set[i].dst != dst)
			continue;
		if (m->set[i].not &&in)
			return false;
		listed |= !m->set[i].not ;
		hit |= !m->set[i].not &&in;
	}
	return hit || !listed;
}

static uint32_t wanted(const struct policy *policy, int family, const uint32_t src[4],
		       const uint32_t dst[4])
{
	for (uint32_t r = 0; r < policy->n_rules; r++)
		if (matches(policy, &policy->rule[r].match, false, family, src) &&
		    matches(policy, &policy->rule[r].match, true, family, dst))
			return r;
	return PACER_RULES_MAX;
}

static uint32_t found(int family, const uint32_t src[4], const uint32_t dst[4], bool sets)
{
	struct pacer_state state = {.policy = &bin, .set = sets ? set : NULL};
	struct pacer_walk walk = {.state = &state, .now_ns = 1};

	walk.pkt.family = family == 4 ? PACER_FAMILY_4 : PACER_FAMILY_6;
	memcpy(&walk.pkt.key[PACER_WORD_SADDR], src, 16);
	memcpy(&walk.pkt.key[PACER_WORD_DADDR], dst, 16);
	return pacer_walk_rule(&walk, &bin);
}

/* Few bits, so that prefixes and addresses meet. */
static void draw_prefix(char *text, size_t size)
{
	unsigned int len = between(0, 6);
	uint32_t high = draw() & 63 & (len ? ~0u << (6 - len) : 0);

	if (draw() & 1)
		snprintf(text, size, "%u.0.0.0/%u", high << 2, len);
	else
		snprintf(text, size, "\"%x::/%u\"", high << 10, len);
}

static void draw_items(char *text, size_t size, unsigned int sets)
{
	size_t n = 0;

	for (uint64_t k = between(1, 3); k; k--) {
		char item[64];

		if (draw() & 1)
			snprintf(item, sizeof(item), "\"%s@s%u\"", draw() & 1 ? "!" : "",
				 (unsigned int)(draw() % sets));
		else
			draw_prefix(item, sizeof(item));
		n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", item);
	}
}

static void draw_policy(char *text, size_t size)
{
	unsigned int sets = between(1, 16), rules = between(1, 12);
	size_t n = (size_t)snprintf(text, size, "memory: 1Mi\nsets:\n");

	for (unsigned int i = 0; i < sets; i++) {
		char one[64], two[64];

		draw_prefix(one, sizeof(one));
		draw_prefix(two, sizeof(two));
		n += (size_t)snprintf(text + n, size - n, "- {name: s%u, of: [%s, %s]}\n", i, one,
				      two);
	}
	n += (size_t)snprintf(text + n, size - n, "rules:\n");
	for (unsigned int r = 0; r < rules; r++) {
		char src[300], dst[300];

		draw_items(src, sizeof(src), sets);
		draw_items(dst, sizeof(dst), sets);
		n += (size_t)snprintf(text + n, size - n, "- name: r%u\n  match: {", r);
		if (draw() % 4)
			n += (size_t)snprintf(text + n, size - n, "src: [%s]", src);
		else
			n += (size_t)snprintf(text + n, size - n, "proto: [0-255]");
		if (draw() & 1)
			n += (size_t)snprintf(text + n, size - n, ", dst: [%s]", dst);
		n += (size_t)snprintf(text + n, size - n, "}\n  limits: [{key: all, gap: 1s}]\n");
	}
}

static void as_it_is_written(void **unused)
{
	static char text[1 << 16];
	uint32_t hits[PACER_RULES_MAX + 1] = {0}, many = 0;
	bool pads;

	(void)unused;
	oracle_seed(31);
	for (int i = 0; i < 400;) {
		struct policy_error error;
		struct policy *policy;

		draw_policy(text, sizeof(text));
		/* Some have rules that no packet can match, which is refused. */
		policy = policy_parse(text, strlen(text), &error);
		if (!policy) {
			if (!strstr(error.text, "no packet can match"))
				fail_msg("%d: %s\n%s", error.line, error.text, text);
			continue;
		}
		policy_free(policy);
		policy = open_policy(padded(text, i % 10 ? 0 : 20));
		if (!policy)
			continue;
		i++;
		pads = policy->n_rules > 64;
		for (int k = 0; k < 300; k++) {
			uint32_t src[4] = {draw(), draw(), 0, 0}, dst[4] = {draw(), 0, draw(), 0};
			int family = draw() & 1 ? 4 : 6;
			uint32_t want = wanted(policy, family, src, dst);

			if (found(family, src, dst, true) != want)
				fail_msg("IPv%d %08x %08x: %u and not %u\n%s", family, src[0],
					 dst[0], found(family, src, dst, true), want, text);
			hits[want]++;
			many += pads && want >= 64 && want < PACER_RULES_MAX;
		}
		close_policy(policy);
	}
	assert_true(hits[0] > 1000 && hits[3] > 1000 && hits[PACER_RULES_MAX] > 1000);
	assert_true(many > 500);
}

/* Of sets that are not there, no rule is passed by: neither one that wants them nor one that does
 * not.
 */
static void missing(void **unused)
{
	static const char *const wants[] = {"src: \"@a\"", "src: \"!@b\"", "dst: \"@a\"",
					    "dst: \"!@c\""};
	uint32_t src[4] = {0x0a000001}, dst[4] = {0x0b000001};
	char text[300];

	(void)unused;
	for (size_t i = 0; i < 8; i++) {
		uint32_t before = i / 4 * 70;
		struct policy *policy;

		snprintf(text, sizeof(text),
			 "sets: [{name: a, of: [192.0.2.0/24]}, {name: b, of: [10.0.0.0/8]}, "
			 "{name: c, of: [11.0.0.0/8]}]\nrules:\n"
			 "- {name: x, match: {%s}, limits: [{key: all, gap: 1s}]}\n",
			 wants[i % 4]);
		policy = open_policy(padded(text, before));
		assert_int_equal(found(4, src, dst, true), PACER_RULES_MAX);
		assert_int_equal(found(4, src, dst, false), before);
		for (size_t k = 0; k < policy->n_sets; k++)
			set[k].lines = 0; /* there, and none that can be read */
		assert_int_equal(found(4, src, dst, true), before);
		close_policy(policy);
	}
}

/* ... but no rule lets a packet through for a set that cannot be read. */
static void missing_of_a_pass(void **unused)
{
	static const char *const wants[] = {"@b", "!@a"};
	uint32_t src[4] = {0x0a000001}, dst[4] = {0x0b000001};
	char text[300];

	(void)unused;
	for (size_t i = 0; i < 4; i++) {
		struct policy *policy;

		snprintf(text, sizeof(text),
			 "sets: [{name: a, of: [192.0.2.0/24]}, {name: b, of: [10.0.0.0/8, "
			 "11.0.0.0/8]}]\n"
			 "rules:\n- {name: x, match: {%s: \"%s\"}, verdict: pass}\n"
			 "- {name: y, limits: [{key: all, gap: 1s}]}\n",
			 i / 2 ? "dst" : "src", wants[i % 2]);
		policy = open_policy(text);
		assert_int_equal(found(4, src, dst, true), 0);
		assert_int_equal(found(4, src, dst, false), 1);
		close_policy(policy);
	}
}

static uint32_t judged(uint32_t saddr)
{
	struct pacer_state state = {.policy = &bin, .set = set};
	struct pacer_walk walk = {.state = &state, .now_ns = 1, .rule = PACER_RULES_MAX};

	walk.pkt.family = PACER_FAMILY_4;
	walk.pkt.key[PACER_WORD_SADDR] = saddr;
	walk.rule = pacer_walk_rule(&walk, &bin);
	return walk.rule < PACER_RULES_MAX ? walk.rule + 100 : pacer_walk_no_rule(&walk);
}

/* The same by all of the way, which looks for bans of the source first. */
static uint32_t judged_banned(uint32_t saddr)
{
	struct pacer_state state = {.policy = &bin, .set = set};
	struct pacer_walk walk = {.state = &state, .now_ns = 1, .rule = PACER_RULES_MAX};

	walk.pkt.family = PACER_FAMILY_4;
	walk.pkt.key[PACER_WORD_SADDR] = saddr;
	return pacer_judge(&walk);
}

/* The allow-list, also by a set, goes before a ban of the source. */
static void allowed_and_banned(void **unused)
{
	struct policy *policy = open_policy("sets: [{name: a, of: [192.0.2.0/24]}, {name: b, of: "
					    "[198.51.100.0/24]}]\nallow: \"@a\"\nrules: []\n");

	(void)unused;
	tool_bans = 1;
	assert_int_equal(judged_banned(0x0a000001), PACER_NO_RULE);
	bin.flags |= PACER_TOOLS;
	assert_int_equal(judged_banned(0x0a000001), PACER_DENY_BAN);
	assert_int_equal(judged_banned(0xc6336401), PACER_DENY_BAN);
	assert_int_equal(judged_banned(0xc0000205), PACER_ALLOWED);
	set[0].lines = 0; /* unknown: it lets nobody through */
	assert_int_equal(judged_banned(0xc0000205), PACER_DENY_BAN);
	tool_bans = 0;
	assert_int_equal(judged_banned(0xc0000205), PACER_NO_RULE);
	close_policy(policy);
}

/* Sources of a set of the allow-list are asked of no rule, whatever the rules want, few or many. */
static void allowed(void **unused)
{
	(void)unused;
	for (uint32_t before = 0; before < 71; before += 70) {
		struct policy *policy = open_policy(
		    padded("sets: [{name: a, of: [192.0.2.0/24]}, {name: b, of: [10.0.0.0/8, "
			   "192.0.2.9]}]\n"
			   "allow: [\"@a\", 10.0.0.1]\nrules:\n"
			   "- {name: x, match: {src: \"@b\"}, limits: [{key: all, gap: 1s}]}\n",
			   before));

		assert_int_equal(policy->n_allow, 1);
		assert_int_equal(policy->n_allow_sets, 1);
		assert_int_equal(!!(bin.dims & PACER_DIMS_MANY), before > 0);
		assert_int_equal(judged(0xc0000205), PACER_ALLOWED);
		assert_int_equal(judged(0xc0000209), PACER_ALLOWED);
		assert_int_equal(judged(0x0a000002), 100 + before);
		assert_int_equal(judged(0x0b000002), PACER_NO_RULE);
		set[0].lines = 0; /* unknown: it lets nobody through */
		assert_int_equal(judged(0xc0000205), PACER_NO_RULE);
		assert_int_equal(judged(0xc0000209), 100 + before);
		close_policy(policy);
		policy = open_policy(
		    padded("sets: [{name: a, of: [192.0.2.0/24]}]\nallow: \"@a\"\nrules:\n"
			   "- {name: x, limits: [{key: all, gap: 1s}]}\n",
			   before));
		assert_int_equal(judged(0xc0000205), PACER_ALLOWED);
		assert_int_equal(judged(0x0a000002), 100 + before);
		close_policy(policy);
	}
}

/* What is not IP is of no rule, also where other packets of none are denied; a verdict has no end.
 */
static void without_limits(void **unused)
{
	static const char *const verdict[] = {"pass", "drop"};
	struct pacer_state state = {.policy = &bin, .set = set};
	struct pacer_walk walk = {.state = &state, .now_ns = 7, .rule = PACER_RULES_MAX};
	struct policy *policy = open_policy("rules: []\nelse: drop\n");
	char text[100];

	(void)unused;
	walk.pkt.family = PACER_FAMILY_NONE;
	assert_int_equal(pacer_walk_no_rule(&walk), PACER_NOT_IP);
	walk.pkt.family = PACER_FAMILY_4;
	assert_int_equal(pacer_walk_no_rule(&walk), PACER_DENY_VERDICT);
	close_policy(policy);
	walk.rule = 0;
	for (size_t i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "rules:\n- {name: x, verdict: %s}\n", verdict[i]);
		policy = open_policy(text);
		assert_true(pacer_rule_when(&walk) == (i ? PACER_NEVER : 7));
		close_policy(policy);
	}
}

#define KEY(key) "rules:\n- {name: x, limits: [{key: \"" key "\", gap: 1s}]}"

static const struct {
	const char *text, *want;
	int line;
} wrong[] = {
    {"sets: x\nrules: []", "sets: expected a list of sets, or [] for none", 1},
    {"sets: [{file: a}]\nrules: []", "sets[0]: the name is missing: write name: drop, for example",
     1},
    {"sets: [{name: a}]\nrules: []",
     "sets[0]: what it is of is missing: write file: /etc/xdp-pacer/drop.txt, or of: and a list",
     1},
    {"sets: [{name: a, file: x, of: []}]\nrules: []",
     "sets[0]: it is of a file and of a list: write file: /etc/xdp-pacer/drop.txt, or of: and a "
     "list",
     1},
    {"sets:\n- {name: a, of: []}\n- {name: a, of: []}\nrules: []",
     "sets[1].name: \"a\" is the name of the set in line 2, too", 3},
    {"sets: [{name: a, file: \"-\"}]\nrules: []",
     "sets[0].file: \"-\" will not do: name a file, in at most 255 bytes", 1},
    {"sets: [{name: a, of: [10.0.0.1/8]}]\nrules: []",
     "sets[0].of[0]: 10.0.0.1/8 has bits beyond its length: write 10.0.0.0/8", 1},
    {"rules:\n- {name: x, match: {src: \"@a\"}, limits: [{key: all, gap: 1s}]}",
     "rules[0].match.src: there is no set a: add it to sets:", 2},
    {"sets: [{name: b, of: []}]\nrules:\n- {name: x, match: {dst: [\"!@a\"]}, limits: [{key: all, "
     "gap: 1s}]}",
     "rules[0].match.dst: there is no set a: there are b", 3},
    {"allow: [\"@a\"]\nrules: []", "allow: there is no set a: add it to sets:", 1},
    {"sets: [{name: a, of: []}]\nallow: [10.0.0.1, \"!@a\"]\nrules: []",
     "allow: \"!@a\" will not do: the list has who is let through: write @a, or leave it out", 2},
    {"sets: [{name: a, of: []}]\nrules:\n- {name: x, match: {src: \"@a=XY\"}, limits: [{key: all, "
     "gap: 1s}]}",
     "rules[0].match.src: set a has no values: add value: and the field of its file, as value: 2",
     3},
    {"sets: [{name: a, file: x, value: 1}]\nrules: []",
     "sets[0].value: 1 will not do: the field of the file that is its value, 2 to 64", 1},
    {"sets: [{name: a, of: [], value: 2}]\nrules: []",
     "sets[0]: value is a field of a file, and it has none: write file:, or leave value out", 1},
    {"sets: [{name: a, file: x, value: 2}]\nallow: \"@a=\"\nrules: []",
     "allow: \"@a=\" will not do: a value has 1 to 63 bytes: @a=XX", 2},
    {"sets: [{name: a, file: x, value: [2]}]\nrules: []",
     "sets[0].value: expected one value, found a list", 1},
    {"sets: [{name: [a], of: []}]\nrules: []", "sets[0].name: expected one value, found a list", 1},
    {"sets: [{name: a, file: {}}]\nrules: []",
     "sets[0].file: expected one value, found fields (a text with \": \" in it or ':' at its end "
     "has to be quoted)",
     1},
    {"sets: [{name: a, file: x, value: 2}, {name: b, file: x, value: 2}, {name: c, file: x, value: "
     "2}]\n"
     "rules:\n- name: x\n  limits: [{key: \"value(a, src)\", gap: 1s}, {key: \"value(b, src)\", "
     "gap: 1s},\n"
     "           {key: \"value(b, dst)\", gap: 1s}]\n",
     "rules[0].limits[2].key: the limits of a rule count by two values at the most: make two "
     "rules, or leave "
     "one out",
     5},
    {"sets: [{name: b, of: []}]\nrules:\n- {name: x, limits: [{key: \"value(a, src)\", gap: 1s}]}",
     "rules[0].limits[0].key: there is no set a: there are b", 3},
    {KEY("value(, src)"), "rules[0].limits[0].key: value(, ...) names no set", 2},
    {KEY("value(a, vlan)"),
     "rules[0].limits[0].key: \"value(a, vlan)\" is no value: write value(SET, src) or value(SET, "
     "dst)",
     2},
    {KEY("value(a)"),
     "rules[0].limits[0].key: \"value(a)\" is no value: write value(SET, src) or value(SET, dst)",
     2},
    {KEY("src+value(a, src)"),
     "rules[0].limits[0].key: src stands twice in the key: its value stands in its place", 2},
    {KEY("value(a, dst)+value(a, dst)"),
     "rules[0].limits[0].key: dst stands twice in the key: its value stands in its place", 2},
    {"rules:\n- {name: x, match: {src: \"!10.0.0.0/8\"}, limits: [{key: all, gap: 1s}]}",
     "rules[0].match.src: \"!10.0.0.0/8\" is not a set: '!' is written before sets alone, as "
     "!@office",
     2},
};

static const struct {
	const char *match, *want;
} families[] = {
    {"src: \"@four\", dst: \"fd00::/8\"",
     "rule x: match.src is of IPv4 alone, as set @four is, "
     "and the rest of the match of IPv6: no packet can match: use a "
     "set of the other family"},
    {"src: 10.0.0.0/8, dst: \"@six\"",
     "rule x: match.dst is of IPv6 alone, as set @six is, and the "
     "rest of the match of IPv4: no packet can match: use a set of "
     "the other family"},
    {"src: \"@six\", proto: icmp",
     "rule x: match.src is of IPv6 alone, as set @six is, and the rest "
     "of the match of IPv4: no packet can match: use a set of the "
     "other family"},
    {"src: \"@six\", icmp_type: 8",
     "rule x: match.src is of IPv6 alone, as set @six is, and the rest "
     "of the match of IPv4: no packet can match: use a set of the "
     "other family"},
    {"src: \"@six\", icmp_code: 0",
     "rule x: match.src is of IPv6 alone, as set @six is, and the rest "
     "of the match of IPv4: no packet can match: use a set of the "
     "other family"},
    {"src: \"@four\", icmpv6_type: 135",
     "rule x: match.src is of IPv4 alone, as set @four is, and the rest "
     "of the match of IPv6: no packet can match: use a set of the "
     "other family"},
    {"src: \"@four\", icmpv6_code: 0",
     "rule x: match.src is of IPv4 alone, as set @four is, and the rest "
     "of the match of IPv6: no packet can match: use a set of the "
     "other family"},
    {"src: \"@six\", icmpv6_type: 135", NULL},
    {"src: \"@four\", dst: \"@six\"",
     "rule x: match.dst is of IPv6 alone, as set @six is, and the "
     "rest of the match of IPv4: no packet can match: use a set of "
     "the other family"},
    {"src: [\"@four\", \"fd00::/9\"], dst: \"@six\"", NULL},
    {"src: \"!@four\", dst: \"@six\"", NULL},
    {"src: \"@none\", dst: \"@six\"", NULL},
    {"src: \"@both\", dst: \"@six\", proto: [icmp, icmpv6]", NULL},
};

/* A set's family is known when it is read. */
static void wrong_families(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(families); i++) {
		struct policy_error error = {0};
		struct policy *policy;
		char text[1000];

		snprintf(
		    text, sizeof(text),
		    "sets:\n- {name: four, of: [10.0.0.0/8]}\n- {name: six, of: [\"fd00::/8\"]}\n"
		    "- {name: none, of: []}\n- {name: both, of: [10.0.0.0/8, \"fd00::/8\"]}\n"
		    "rules:\n- {name: x, match: {%s}, limits: [{key: all, gap: 1s}]}\n",
		    families[i].match);
		policy = policy_parse(text, strlen(text), &error);
		assert_non_null(policy);
		assert_int_equal(set_texts_read(policy, &texts, &error), families[i].want ? -1 : 0);
		if (families[i].want) {
			assert_string_equal(error.text, families[i].want);
			assert_int_equal(error.line, 7);
			assert_null(error.file);
		}
		set_texts_free(&texts);
		policy_free(policy);
	}
}

static void wrong_policies(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(wrong); i++) {
		struct policy_error error = {0};

		assert_null(policy_parse(wrong[i].text, strlen(wrong[i].text), &error));
		assert_string_equal(error.text, wrong[i].want);
		assert_int_equal(error.line, wrong[i].line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(as_it_is_written),	  cmocka_unit_test(missing),
	    cmocka_unit_test(missing_of_a_pass),  cmocka_unit_test(wrong_families),
	    cmocka_unit_test(allowed_and_banned), cmocka_unit_test(allowed),
	    cmocka_unit_test(without_limits),	  cmocka_unit_test(wrong_policies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
