/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy.h"
#include "window.h"

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))
#define SECOND	 1000000000ull

static const char example[] = "mode: enforce                      # enforce | monitor\n"
			      "allow: [192.0.2.0/24, 2001:db8::/32]\n"
			      "unparsed: pass                     # pass | drop\n"
			      "rules:\n"
			      "  - name: dns\n"
			      "    match: {dst: 198.51.100.0/24, proto: udp, dport: 53}\n"
			      "    limits:\n"
			      "      - {key: src/32,64, gap: 1ms}\n"
			      "      - {key: src/32,64, packets: 300, window: 1s, slots: 10}\n"
			      "      - {key: src/24,56, bytes: 20M, window: 10s, slots: 16}\n"
			      "    over: drop                     # drop | pass\n";

static struct policy *parse(const char *text)
{
	struct policy_error error = {-1, ""};
	struct policy *policy = policy_parse(text, strlen(text), &error);

	if (!policy)
		fail_msg("%d: %s\n%s", error.line, error.text, text);
	return policy;
}

/* The text of a policy with one rule with one limit. */
static const char *with_limit(char *buf, size_t size, const char *limit)
{
	snprintf(buf, size, "rules:\n- name: a\n  limits:\n  - {%s}\n", limit);
	return buf;
}

static const char *with_match(char *buf, size_t size, const char *match)
{
	snprintf(buf, size, "rules:\n- name: a\n  match: {%s}\n  limits: [{key: src, gap: 1ms}]\n",
		 match);
	return buf;
}

static void assert_prefix(const struct prefix *prefix, const char *text)
{
	char buf[64];

	assert_string_equal(units_prefix_text(prefix, buf, sizeof(buf)), text);
}

static void assert_range(const struct range *range, uint32_t low, uint32_t high)
{
	assert_int_equal(range->low, low);
	assert_int_equal(range->high, high);
}

static void assert_key(const struct policy_key *key, const char *text)
{
	char buf[32];

	assert_string_equal(policy_key_text(key, buf, sizeof(buf)), text);
}

static void the_example(void **state)
{
	struct policy *policy = parse(example);
	const struct policy_rule *rule = policy->rule;

	(void)state;
	assert_false(policy->monitor);
	assert_false(policy->unparsed_drop);
	assert_int_equal(policy->clock, CLOCK_AUTO);
	assert_int_equal(policy->memory_bytes, 64 << 20);
	assert_int_equal(policy->n_allow, 2);
	assert_prefix(&policy->allow[0], "192.0.2.0/24");
	assert_prefix(&policy->allow[1], "2001:db8::/32");
	assert_int_equal(policy->n_rules, 1);
	assert_string_equal(rule->name, "dns");
	assert_int_equal(rule->line, 5);
	assert_int_equal(rule->over, PACER_OVER_DROP);
	assert_int_equal(rule->match.n_dst, 1);
	assert_prefix(rule->match.dst, "198.51.100.0/24");
	assert_int_equal(rule->match.n_proto, 1);
	assert_range(rule->match.proto, 17, 17);
	assert_int_equal(rule->match.n_dport, 1);
	assert_range(rule->match.dport, 53, 53);
	assert_int_equal(rule->match.n_src + rule->match.n_sport + rule->match.n_vlan, 0);
	assert_int_equal(rule->n_limits, 3);
	assert_key(&rule->limit[0].key, "src/32,64");
	assert_int_equal(rule->limit[0].line, 8);
	assert_int_equal(rule->limit[0].kind, LIMIT_GAP);
	assert_int_equal(rule->limit[0].gap_ns, 1000000);
	assert_int_equal(rule->limit[0].rows, 2);
	assert_int_equal(rule->limit[1].kind, LIMIT_WINDOW);
	assert_int_equal(rule->limit[1].cost, PACER_COST_PACKETS);
	assert_int_equal(rule->limit[1].limit, 300);
	assert_int_equal(rule->limit[1].window_ns, SECOND);
	assert_int_equal(rule->limit[1].slots, 10);
	assert_key(&rule->limit[2].key, "src/24,56");
	assert_int_equal(rule->limit[2].cost, PACER_COST_BYTES);
	assert_int_equal(rule->limit[2].limit, 20000000);
	assert_int_equal(rule->limit[2].window_ns, 10 * SECOND);
	assert_int_equal(rule->limit[2].slots, 16);
	policy_free(policy);
}

static void every_field(void **state)
{
	struct policy *policy =
	    parse("mode: monitor\nunparsed: drop\nclock: coarse\nmemory: 1GiB\n"
		  "allow: 10.0.0.1\n"
		  "rules:\n"
		  "- name: one\n"
		  "  over: pass\n"
		  "  match:\n"
		  "    src: [10.0.0.0/8, 2001:db8::/32]\n"
		  "    dst: ::1\n"
		  "    proto: [tcp, 17, icmpv6, sctp]\n"
		  "    sport: 1024-65535\n"
		  "    dport: [53, 80-90]\n"
		  "    vlan: [none, 0, 100-200]\n"
		  "  limits:\n"
		  "  - key: dst\n"
		  "    gap: 1us\n"
		  "    rows: 1\n"
		  "    ceiling: 2Mpps\n"
		  "    entries: 20k\n"
		  "  - {key: all, bytes: 1G, window: 2s}\n"
		  "- {name: two, limits: [{key: flow, packets: 1, window: 1s}]}\n");
	const struct policy_match *m = &policy->rule[0].match;
	const struct policy_limit *limit = policy->rule[0].limit;

	(void)state;
	assert_true(policy->monitor);
	assert_true(policy->unparsed_drop);
	assert_int_equal(policy->clock, CLOCK_COARSE);
	assert_int_equal(policy->memory_bytes, 1 << 30);
	assert_int_equal(policy->n_allow, 1);
	assert_int_equal(policy->n_rules, 2);
	assert_int_equal(policy->rule[0].over, PACER_OVER_PASS);
	assert_int_equal(m->n_src, 2);
	assert_prefix(&m->src[1], "2001:db8::/32");
	assert_prefix(m->dst, "::1");
	assert_int_equal(m->n_proto, 4);
	assert_range(&m->proto[0], 6, 6);
	assert_range(&m->proto[3], 132, 132);
	assert_range(m->sport, 1024, 65535);
	assert_range(&m->dport[1], 80, 90);
	assert_int_equal(m->n_vlan, 3);
	assert_range(&m->vlan[0], PACER_VLAN_NONE, PACER_VLAN_NONE);
	assert_range(&m->vlan[2], 100, 200);
	assert_key(&limit[0].key, "dst");
	assert_int_equal(limit[0].rows, 1);
	assert_int_equal(limit[0].ceiling, 2000000);
	assert_int_equal(limit[0].entries, 20000);
	assert_int_equal(limit[1].limit, 1000000000);
	assert_int_equal(limit[1].slots, 10);
	assert_int_equal(policy->rule[1].line, 23);
	assert_int_equal(policy->rule[1].match.n_src, 0);
	policy_free(policy);
}

static void keys(void **state)
{
	static const struct {
		const char *fields, *text;
		enum policy_key_kind kind;
		unsigned int len4, len6;
	} c[] = {
	    {"key: flow, gap: 1ms", "flow", KEY_FLOW, 32, 128},
	    {"key: src, gap: 1ms", "src", KEY_SRC, 32, 128},
	    {"key: src/24, gap: 1ms", "src/24", KEY_SRC, 24, 128},
	    {"key: src/32,64, gap: 1ms", "src/32,64", KEY_SRC, 32, 64},
	    {"key: src/32, 64, gap: 1ms", "src/32,64", KEY_SRC, 32, 64},
	    {"gap: 1ms, key: src/32,64", "src/32,64", KEY_SRC, 32, 64},
	    {"key: 'src/32,64', gap: 1ms", "src/32,64", KEY_SRC, 32, 64},
	    {"key: \"src/32,64\", gap: 1ms", "src/32,64", KEY_SRC, 32, 64},
	    {"key: src/32,128, gap: 1ms", "src", KEY_SRC, 32, 128},
	    {"key: src/0,64, gap: 1ms", "src/0,64", KEY_SRC, 0, 64},
	    {"key: dst/16,48, gap: 1ms", "dst/16,48", KEY_DST, 16, 48},
	    {"key: dst, gap: 1ms", "dst", KEY_DST, 32, 128},
	    {"key: src+dport, gap: 1ms", "src+dport", KEY_SRC_DPORT, 32, 128},
	    {"key: src/24+dport, gap: 1ms", "src/24+dport", KEY_SRC_DPORT, 24, 128},
	    {"key: src/24,56+dport, gap: 1ms", "src/24,56+dport", KEY_SRC_DPORT, 24, 56},
	    {"key: all, gap: 1ms", "all", KEY_ALL, 32, 128},
	};
	char buf[256];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(c); i++) {
		struct policy *policy = parse(with_limit(buf, sizeof(buf), c[i].fields));
		const struct policy_key *key = &policy->rule->limit[0].key;

		assert_key(key, c[i].text);
		assert_int_equal(key->kind, c[i].kind);
		assert_int_equal(key->len4, c[i].len4);
		assert_int_equal(key->len6, c[i].len6);
		policy_free(policy);
		snprintf(buf, sizeof(buf),
			 "rules:\n- name: a\n  limits:\n  - key: %s\n    gap: 1ms\n", c[i].text);
		policy = parse(buf); /* in block style, too */
		assert_key(&policy->rule->limit[0].key, c[i].text);
		policy_free(policy);
	}
}

static void accepted(void **state)
{
	static const char *const text[] = {
	    "rules: []",
	    "{rules: []}",
	    "\xef\xbb\xbfrules: []\r\n",
	    "\xef\xbb\xbfmode: enforce\r\nrules: []\r\n",
	    "---\nrules: []\n...\n",
	    "%YAML 1.1\n---\nrules: []\n",
	    "allow: []\nrules: []",
	    "memory: 1\nrules: []",
	    "# f\xc3\xbcr\nrules: []\n",
	    "rules:\n- {name: a, match: {}, limits: [{key: src, gap: 1ns}]}",
	    "rules:\n- name: \"a\"\n  limits: [{\"key\":\"src\",\"gap\":\"1ms\"}]",
	    "rules:\n- name: abcdefghijklmnopqrstuvwxyz-_123\n  limits: [{key: all, gap: 1ms}]",
	    "rules:\n- name: a\n  limits: &l [{key: src, gap: 1ms}]\n- name: b\n  limits: *l",
	    "rules:\n- name: a\n  limits: [{key: src, packets: 2147483647, window: 1s}]",
	    "rules:\n- name: a\n  limits: [{key: src, bytes: 140737488355327, window: 1s}]",
	    "rules:\n- name: a\n  limits: [{key: src, packets: 1, window: 20015h, slots: 58}]",
	    "rules:\n- name: a\n  limits: [{key: src, packets: 1, window: 72057594037927936ns}]",
	    "rules:\n- name: a\n  limits: [{key: src, gap: 72057594037927936ns}]",
	    "rules:\n- name: a\n  limits: [{key: src, packets: 1, window: 10ns}]",
	    "rules:\n- name: a\n  limits: [{key: all, packets: 1, window: 1ns, slots: 1}]",
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(text); i++)
		policy_free(parse(text[i]));
}

struct wrong {
	const char *text;
	int line;
	const char *says;
};

static void refuse(const char *text, size_t len, int line, const char *says)
{
	struct policy_error error = {-1, ""};
	struct policy *policy = policy_parse(text, len, &error);

	if (policy || error.line != line || !strstr(error.text, says))
		fail_msg("%.*s\nis %d: %s\nnot %d: %s", (int)len, text, error.line,
			 policy ? "accepted" : error.text, line, says);
}

static void refuse_all(const struct wrong *w, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		refuse(w[i].text, strlen(w[i].text), w[i].line, w[i].says);
}

static const struct wrong wrong_document[] = {
    {"rules: [[[[[[[[[[[[[[[]]]]]]]]]]]]]]]", 1, "rules[0]: expected a rule"},
    {"rules: [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", 1, "nested too deep: at most 16 levels"},
    {"", 1, "empty: write rules: []"},
    {"# only a comment\n", 1, "empty"},
    {"~", 1, "expected a policy: fields"},
    {"rules", 1, "expected a policy: fields"},
    {"- rules", 1, "expected a policy: fields"},
    {"\nmode: enforce\n", 2, "rules are missing"},
    {"rules: []\n---\nrules: []\n", 3, "second document"},
    {"rules: []\n---\n- [\n", 3, "not YAML"},
    {"rules: [\n\n", 2, "not YAML: while parsing a flow node"},
    {"rules: []\nmode: 'x\n", 2, "in line 2: found unexpected end of stream"},
    {"rules: []\n\tmode: x", 2, "spaces, not tabs"},
    {"rules: []\nallow: [::1]", 2, "quote an address that begins or ends"},
    {"rules: []\nallow: [2001:db8::]", 2, "quote an address that begins or ends"},
    {"rules: []\nallow:\n- 2001:db8::\n", 3, "allow[0]: expected one value, found fields"},
    {"rules: []\nmode: *x", 2, "undefined alias"},
    {"rules: []\nmode: \x01", 2, "control characters"},
    {"rules: []\n\xff", 2, "UTF-8"},
    {"rules: []\n mode: x", 2, "not YAML"},
    {"? [a]\n: b", 1, "expected the name of a field"},
    {"? {a: b}\n: b", 1, "expected the name of a field"},
    {"mod: enforce\nrules: []", 1,
     "unknown field \"mod\": did you mean \"mode\"? a policy has mode, allow, unparsed, "
     "clock, memory, rules"},
    {"rules: []\nxyzzy: 1", 2, "unknown field \"xyzzy\": a policy has mode"},
    {"rules: []\n<<: 1", 2, "unknown field \"<<\""},
    {"rules: []\n'': 1", 2, "unknown field \"\""},
    {"rules: []\n\"a\\nb\": 1", 2, "unknown field \"a?b\""},
    {"mode: enforce\nrules: []\nmode: monitor", 3, "mode: written twice, first in line 1"},
    {"mode: maybe\nrules: []", 1, "mode: \"maybe\" is not known: write enforce or monitor"},
    {"mode:\nrules: []", 1, "mode: the value is missing"},
    {"mode: \"enforce\\0\"\nrules: []", 1, "mode: the value has a NUL"},
    {"mode: [enforce]\nrules: []", 1, "mode: expected one value, found a list"},
    {"mode: {a: b}\nrules: []", 1, "mode: expected one value, found fields"},
    {"mode: Enforce\nrules: []", 1, "is not known"},
    {"unparsed: yes\nrules: []", 1, "unparsed: \"yes\" is not known: write pass or drop"},
    {"clock: fine\nrules: []", 1, "write auto, exact or coarse"},
    {"memory: lots\nrules: []", 1, "memory: \"lots\" is not a size"},
    {"memory: 0\nrules: []", 1, "memory: 0 is no limit"},
    {"memory: 256G\nrules: []", 1, "memory: 256G is too much: at most 255GiB"},
    {"memory: -1M\nrules: []", 1, "not a size"},
    {"pools: []\nrules: []", 1, "pools: this version has no pools"},
    {"rules: []\nsample: {of: denied}", 2, "sample: this version has no samples"},
    {"allow: [192.0.2.1/24]\nrules: []", 1,
     "allow[0]: 192.0.2.1/24 has bits beyond its length: write 192.0.2.0/24"},
    {"allow:\n- 10.0.0.1\n- 10.0.0.0/33\nrules: []", 3,
     "allow[1]: 10.0.0.0/33: the length is 0 to 32"},
    {"allow: ['::/129']\nrules: []", 1, "the length is 0 to 128"},
    {"allow: [10.0.0.0/]\nrules: []", 1, "the length is 0 to 32"},
    {"allow: [host]\nrules: []", 1, "allow[0]: \"host\" is not a prefix"},
    {"allow: [[10.0.0.1]]\nrules: []", 1, "allow[0]: expected one value, found a list"},
    {"allow: &a [*a]\nrules: []", 1, "allow[0]: expected one value, found a list"},
    {"&r rules: *r", 1, "rules: expected a list of rules"},
    {"&r\nrules: [*r]", 2, "rules[0]: unknown field \"rules\": a rule has name"},
    {"allow: [b\xc3\xb6se]\nrules: []", 1, "\"b\xc3\xb6se\" is not a prefix"},
    {"allow: [aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xb6xxxxxxxx]\nrules: []", 1,
     "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" is not"},
};

static void wrong_documents(void **state)
{
	static char deep[PACER_DOC_MAX - 1];

	(void)state;
	refuse_all(wrong_document, ARRAY(wrong_document));
	memset(deep, '[', sizeof(deep));
	refuse(deep, sizeof(deep), 1, "nested too deep: at most 16 levels");
	refuse("rules: []\0", 10, 1, "control characters");
	refuse("rules: []\nmode: x", 9 + 8, 2, "is not known");
}

static void wrong_rules(void **state)
{
#define LIMITS "limits: [{key: src, gap: 1ms}]"
	static const struct wrong w[] = {
	    {"rules:", 1, "rules: expected a list of rules, or [] for none"},
	    {"rules: {name: a}", 1, "rules: expected a list"},
	    {"rules:\n- a\n", 2, "rules[0]: expected a rule: fields"},
	    {"rules:\n- [a]\n", 2, "rules[0]: expected a rule"},
	    {"rules: &r [*r]\n", 1, "rules[0]: expected a rule"},
	    {"rules:\n- " LIMITS, 2, "rules[0]: the name is missing"},
	    {"rules:\n- name: a\n", 2, "rules[0]: the limits are missing"},
	    {"rules:\n- name: ''\n  " LIMITS, 2, "rules[0].name: the value is missing"},
	    {"rules:\n- " LIMITS "\n  name: a b\n", 3, "rules[0].name: \"a b\" will not do"},
	    {"rules:\n- " LIMITS "\n  name: a.b\n", 3, "rules[0].name: \"a.b\" will not do"},
	    {"rules:\n- " LIMITS "\n  name: abcdefghijklmnopqrstuvwxyz-_1234\n", 3,
	     "will not do: 1 to 31 letters"},
	    {"rules:\n- name: a\n  " LIMITS "\n- name: b\n  " LIMITS "\n- " LIMITS "\n  name: a\n",
	     7, "rules[2].name: \"a\" is the name of the rule in line 2, too"},
	    {"rules:\n- name: a\n  name: b\n", 3, "rules[0].name: written twice, first in line 2"},
	    {"rules:\n- name: a\n  limit: []\n", 3,
	     "rules[0]: unknown field \"limit\": did you mean \"limits\"? a rule has name, match, "
	     "limits, over"},
	    {"rules:\n- name: a\n  " LIMITS "\n  ban: 30s\n", 4,
	     "rules[0].ban: this version has no bans"},
	    {"rules:\n- name: a\n  " LIMITS "\n  over: pool scrub\n", 4,
	     "rules[0].over: this version has no pools: write drop or pass"},
	    {"rules:\n- name: a\n  " LIMITS "\n  over: deny\n", 4,
	     "rules[0].over: \"deny\" is not known: write drop or pass"},
	    {"rules:\n- name: a\n  limits:\n", 3, "rules[0].limits: expected a list of limits"},
	    {"rules:\n- name: a\n  limits: []\n", 3, "rules[0].limits: the list is empty"},
	    {"rules:\n- name: a\n  limits: {key: src, gap: 1ms}\n", 3, "expected a list of limits"},
	    {"rules:\n- name: a\n  limits: [1ms]\n", 3, "rules[0].limits[0]: expected a limit"},
	    {"rules:\n- name: a\n  limits: [{}, {}, {}, {}, {}, {}, {}, {}, {}]\n", 3,
	     "rules[0].limits: 9 items: at most 8"},
	    {"rules:\n- name: a\n  match: tcp\n", 3, "rules[0].match: expected a match"},
	    {"rules:\n- name: a\n  match:\n  " LIMITS, 3, "rules[0].match: expected a match"},
	};
	char text[8192] = "rules:\n";
	size_t i, end;

	(void)state;
	refuse_all(w, ARRAY(w));
	for (i = 0; i < PACER_RULES_MAX; i++) {
		end = strlen(text);
		snprintf(text + end, sizeof(text) - end, "- {name: r%zu, " LIMITS "}\n", i);
	}
	policy_free(parse(text));
	end = strlen(text);
	snprintf(text + end, sizeof(text) - end, "- {name: r64, " LIMITS "}\n");
	refuse(text, strlen(text), 2, "rules: 65 items: at most 64");
#undef LIMITS
}

static const char *some_ports(char *buf, size_t size, size_t n)
{
	size_t i;

	snprintf(buf, size, "dport: [");
	for (i = 0; i < n; i++)
		snprintf(buf + strlen(buf), size - strlen(buf), "%zu%s", i, i + 1 < n ? ", " : "]");
	return buf;
}

static void wrong_matches(void **state)
{
	static const struct {
		const char *match, *says;
	} c[] = {
	    {"source: 10.0.0.0/8",
	     "unknown field \"source\": a match has src, dst, proto, sport, "},
	    {"dprot: 53", "did you mean \"dport\"?"},
	    {"src: 10.0.0.1/8", "rules[0].match.src: 10.0.0.1/8 has bits beyond its length: write "
				"10.0.0.0/8"},
	    {"dst: [10.0.0.1, '2001:db8::1/32']",
	     "rules[0].match.dst[1]: 2001:db8::1/32 has bits beyond its length: write "
	     "2001:db8::/32"},
	    {"src: 10.0.0.0/40", "match.src: 10.0.0.0/40: the length is 0 to 32"},
	    {"src: []", "rules[0].match.src: an empty list matches nothing"},
	    {"src: ", "rules[0].match.src: the value is missing"},
	    {"proto: tpc", "rules[0].match.proto: \"tpc\" is not a protocol: write 0 to 255"},
	    {"proto: 256", "\"256\" is not a protocol"},
	    {"proto: -1", "\"-1\" is not a protocol"},
	    {"proto: [tcp, UDP]", "match.proto[1]: \"UDP\" is not a protocol"},
	    {"dport: 65536", "rules[0].match.dport: \"65536\" is not a port"},
	    {"dport: 90-80", "\"90-80\" is not a port"},
	    {"sport: http", "rules[0].match.sport: \"http\" is not a port"},
	    {"vlan: 4096", "rules[0].match.vlan: \"4096\" is not a VLAN"},
	    {"vlan: any", "or none"},
	    {"vlan: {}", "expected one value"},
	    {"src: 10.0.0.0/8, dst: 2001:db8::/32",
	     "rules[0].match: src is IPv4 and dst is IPv6: no packet can match"},
	    {"src: ['::1', '::2'], dst: [10.0.0.0/8, 11.0.0.0/8]",
	     "rules[0].match: src is IPv6 and dst is IPv4"},
	    {"src: 10.0.0.0/8, src: 10.0.0.0/8", "rules[0].match.src: written twice"},
	};
	char buf[1024], list[512];
	struct policy *policy;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(c); i++) {
		with_match(buf, sizeof(buf), c[i].match);
		refuse(buf, strlen(buf), 3, c[i].says);
	}
	policy_free(parse(with_match(buf, sizeof(buf), "src: 10.0.0.0/8, dst: ['::1', 11.0.0.1]")));
	policy = parse(with_match(buf, sizeof(buf), some_ports(list, sizeof(list), 64)));
	assert_int_equal(policy->rule->match.n_dport, 64);
	assert_range(&policy->rule->match.dport[63], 63, 63);
	policy_free(policy);
	with_match(buf, sizeof(buf), some_ports(list, sizeof(list), 65));
	refuse(buf, strlen(buf), 3, "rules[0].match.dport: 65 items: at most 64");
}

static const struct {
	const char *limit, *says;
} wrong_limit[] = {
    {"", "rules[0].limits[0]: the key is missing"},
    {"gap: 1ms", "rules[0].limits[0]: the key is missing"},
    {"key: src", "rules[0].limits[0]: nothing is limited: write gap, packets or bytes"},
    {"key: src, window: 1s", "nothing is limited"},
    {"key: sorce, gap: 1ms", "rules[0].limits[0].key: \"sorce\" is not a key: write flow"},
    {"key: source, gap: 1ms", "is not a key"},
    {"key: srcx, gap: 1ms", "is not a key"},
    {"key: s, gap: 1ms", "is not a key"},
    {"key: src/, gap: 1ms", "\"\" is no prefix length"},
    {"key: src/x, gap: 1ms", "\"x\" is no prefix length"},
    {"key: src/24-25, gap: 1ms", "\"24-25\" is no prefix length"},
    {"key: src/64, gap: 1ms", "64 is too long for IPv4, whose length stands first: write "
			      "/32,64"},
    {"key: src/129, gap: 1ms", "no prefix length"},
    {"key: src/24,129, gap: 1ms", "\"129\" is no prefix length of IPv6"},
    {"key: 'src/24,', gap: 1ms", "\"\" is no prefix length of IPv6"},
    {"key: 'src/24,56,64', gap: 1ms", "no prefix length"},
    {"key: src/24,56,64, gap: 1ms", "unknown field \"64\""},
    {"key: src/0,0, gap: 1ms", "all have one key: write all"},
    {"key: dst+dport, gap: 1ms", "\"dst+dport\" is not a key"},
    {"key: src+sport, gap: 1ms", "\"src+sport\" is not a key"},
    {"key: src/24,56+sport, gap: 1ms", "\"src/24,56+sport\" is not a key"},
    {"key: flow/24, gap: 1ms", "is not a key"},
    {"key: all+dport, gap: 1ms", "is not a key"},
    {"key: src+, gap: 1ms", "is not a key"},
    {"key: [src, dst], gap: 1ms", "limits[0].key: expected one value, found a list"},
    {"key: src/24,000000000000000000000000000000000000000000056, gap: 1ms", "not a key"},
    {"key: src/000000000000000000000000000000000000000000000024, gap: 1ms", "not a key"},
    {"key: src, 64, gap: 1ms", "is not a key"},
    {"key: src, gap: 1ms, 64", "unknown field \"64\""},
    {"key: src, gap: 1ms, key: dst", "rules[0].limits[0].key: written twice"},
    {"key: src, gap: 0", "rules[0].limits[0].gap: 0 is no limit: it must be more"},
    {"key: src, gap: 0s", "0 is no limit"},
    {"key: src, gap: -1ms", "rules[0].limits[0].gap: -1ms is negative"},
    {"key: src, gap: 10", "limits[0].gap: 10 has no unit: write 10ms, 10s ..."},
    {"key: src, gap: 1.5", "1.5 has no unit: write 1.5ms, 1.5s ..."},
    {"key: src, gap: 10 ms", "\"10 ms\" is not a duration: write 250us"},
    {"key: src, gap: 10pps", "\"10pps\" is not a duration"},
    {"key: src, gap: 0.1ns", "is not a duration"},
    {"key: src, gap: fast", "is not a duration"},
    {"key: src, gap: ", "limits[0].gap: the value is missing"},
    {"key: src, gap: 72057594037927937ns", "is too long: at most 20015h"},
    {"key: src, gap: 100000d", "is not a duration"},
    {"key: src, gap: 1ms, window: 1s",
     "limits[0].window: belongs to packets or bytes, and this limit is a gap"},
    {"key: src, gap: 1ms, slots: 4", "limits[0].slots: belongs to packets or bytes"},
    {"key: src, gap: 1ms, packets: 4", "limits[0].packets: beside gap"},
    {"key: src, bytes: 1, gap: 1ms", "limits[0].bytes: beside gap"},
    {"key: src, packets: 1, bytes: 4, window: 1s", "limits[0].bytes: beside packets"},
    {"key: src, packets: 1", "limits[0]: packets is written, but not the window"},
    {"key: src, bytes: 1", "limits[0]: bytes is written, but not the window"},
    {"key: src, packets: 1, window: 1s, rows: 1", "limits[0].rows: belongs to a gap"},
    {"key: src, packets: 1, window: 1s, ceiling: 1pps", "ceiling: belongs to a gap"},
    {"key: src, packets: 0, window: 1s", "limits[0].packets: 0 is no limit"},
    {"key: src, packets: -5, window: 1s", "limits[0].packets: -5 is negative"},
    {"key: src, packets: 5pps, window: 1s", "\"5pps\" is not a count: write 300, 20k"},
    {"key: src, packets: 2147483648, window: 1s",
     "limits[0].packets: 2147483648 is more than can be counted: at most 2147483647"},
    {"key: src, bytes: 140737488355328, window: 1s", "at most 140737488355327"},
    {"key: src, bytes: 99999999999999999999, window: 1s", "is not a count"},
    {"key: src, packets: 1, window: 0", "limits[0].window: 0 is no limit"},
    {"key: src, packets: 1, window: 1", "limits[0].window: 1 has no unit"},
    {"key: src, packets: 1, window: 20016h", "window: 20016h is too long"},
    {"key: src, packets: 1, window: 9ns", "window: 9ns cannot be divided into 10 slots"},
    {"key: src, packets: 1, window: 1s, slots: 0", "slots: \"0\" will not do: write 1 to 58"},
    {"key: src, packets: 1, window: 1s, slots: 59", "slots: \"59\" will not do"},
    {"key: src, packets: 1, window: 1s, slots: 1-4", "slots: \"1-4\" will not do"},
    {"key: src, gap: 1ms, rows: 0", "limits[0].rows: \"0\" will not do: write 1 to 2"},
    {"key: src, gap: 1ms, rows: 3", "limits[0].rows: \"3\" will not do"},
    {"key: src, gap: 1ms, entries: 0", "limits[0].entries: 0 is no limit"},
    {"key: src, gap: 1ms, entries: many", "limits[0].entries: \"many\" is not a count"},
    {"key: src, gap: 1ms, ceiling: 5", "limits[0].ceiling: \"5\" is not a rate: write 500k"},
    {"key: src, gap: 1ms, ceiling: 0pps", "limits[0].ceiling: 0 is no limit"},
    {"key: all, gap: 1ms, entries: 5", "limits[0].entries: the key \"all\" has one entry"},
    {"key: all, gap: 1ms, ceiling: 5pps", "limits[0].ceiling: the key \"all\" has one"},
    {"key: all, gap: 1ms, rows: 1", "limits[0].rows: the key \"all\" has one entry"},
    {"key: all, packets: 1, window: 1s, entries: 5", "limits[0].entries: the key \"all\""},
    {"key: all, uses: 5", "limits[0].uses: this version has no throttle limits"},
    {"key: all, cooldown: 5s", "limits[0].cooldown: this version has no throttle"},
    {"key: all, max_cooldown: 5s", "limits[0].max_cooldown: this version has no"},
    {"key: all, threshold: 5", "limits[0].threshold: this version has no throttle"},
    {"key: src, gpa: 1ms", "rules[0].limits[0]: unknown field \"gpa\": did you mean \"gap\"? "
			   "a limit has key, gap, packets, bytes, window, slots, "},
    {"key: src, packet: 1", "did you mean \"packets\"?"},
    {"key: src, Window: 1", "did you mean \"window\"?"},
    {"key:src, gap: 1ms", "unknown field \"key:src\": a space has to follow its ':'"},
    {"key: src, interval: 1", "unknown field \"interval\": a limit has key, gap"},
};

static void wrong_limits(void **state)
{
	static const struct wrong block[] = {
	    {"rules:\n- name: a\n  limits:\n  - key: src\n    gap: 1ms\n    slots: 3\n", 6,
	     "limits[0].slots: belongs to packets or bytes"},
	    {"rules:\n- name: a\n  limits:\n  - key: src\n    gap:\n      1\n", 6,
	     "limits[0].gap: 1 has no unit"},
	    {"rules:\n- name: a\n  limits:\n  - key: src/24\n    64:\n    gap: 1ms\n", 5,
	     "unknown field \"64\""},
	};
	char buf[512];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(wrong_limit); i++) {
		with_limit(buf, sizeof(buf), wrong_limit[i].limit);
		refuse(buf, strlen(buf), 4, wrong_limit[i].says);
	}
	refuse_all(block, ARRAY(block));
}

static void too_long(void **state)
{
	char *text = malloc(PACER_DOC_MAX + 1);
	struct policy_error error;

	(void)state;
	memset(text, '#', PACER_DOC_MAX);
	memcpy(text, "rules: []\n", 10);
	policy_free(policy_parse(text, PACER_DOC_MAX - 1, &error));
	refuse(text, PACER_DOC_MAX, 0, "65536 bytes: a policy has at most 65535");
	text[PACER_DOC_MAX - 1] = 0;
	assert_null(policy_set(text, PACER_DOC_MAX - 1, "mode", "monitor", &error));
	assert_non_null(strstr(error.text, "65549 bytes: at most 65535"));
	free(text);
}

/* policy_set: the text before and after. */
#define LIMIT "limits: [{key: src/24,56, gap: 1ms}]"
static const struct {
	const char *text, *path, *value, *result;
} set_case[] = {
    {"mode: enforce  # c\nrules: []\n", "mode", "monitor", "mode: monitor  # c\nrules: []\n"},
    {"mode: 'enforce' # c\nrules: []", "mode", "monitor", "mode: monitor # c\nrules: []"},
    {"rules: []\nmode:   # c\n", "mode", "monitor", "rules: []\nmode: monitor   # c\n"},
    {"rules: []\nmode:", "mode", "monitor", "rules: []\nmode: monitor"},
    {"{rules: []}", "mode", "monitor", "{mode: monitor, rules: []}"},
    {"{}", "clock", "exact", "{clock: exact}"},
    {"rules: []\n", "clock", "exact", "clock: exact\nrules: []\n"},
    {"# the edge\nrules: []\n", "unparsed", "drop", "# the edge\nunparsed: drop\nrules: []\n"},
    {"# f\xc3\xbcr\n---\n  rules: [] # \xc3\xbc\n", "unparsed", "drop",
     "# f\xc3\xbcr\n---\n  unparsed: drop\n  rules: [] # \xc3\xbc\n"},
    {"\xef\xbb\xbfrules: []\r\n", "unparsed", "drop",
     "\xef\xbb\xbfunparsed: drop\r\nrules: []\r\n"},
    {"\xef\xbb\xbfmode: x\n# \xc3\xa9\nrules: []\n", "clock", "y",
     "\xef\xbb\xbf"
     "clock: y\nmode: x\n# \xc3\xa9\nrules: []\n"},
    {"\xef\xbb\xbfmode: x # \xc3\xa9\nrules: []\n", "mode", "y",
     "\xef\xbb\xbfmode: y # \xc3\xa9\nrules: []\n"},
    {"# \xe2\x82\xac \xf0\x9f\x98\x80\nrules:\n- name: a # \xc3\xbc\n  " LIMIT " # t\n", "a.gap",
     "5ms",
     "# \xe2\x82\xac \xf0\x9f\x98\x80\nrules:\n- name: a # \xc3\xbc\n"
     "  limits: [{key: src/24,56, gap: 5ms}] # t\n"},
    {"rules:\n- name: a # c\n  " LIMIT "\n", "a.over", "pass",
     "rules:\n- name: a # c\n  over: pass\n  " LIMIT "\n"},
    {"rules:\r\n  -   name: a\r\n      " LIMIT "\r\n", "a.over", "pass",
     "rules:\r\n  -   name: a\r\n      over: pass\r\n      " LIMIT "\r\n"},
    {"rules:\n- " LIMIT "\n  name: a", "a.over", "pass",
     "rules:\n- " LIMIT "\n  name: a\n  over: pass"},
    {"rules: [{name: a, " LIMIT "}]", "a.over", "pass",
     "rules: [{name: a, over: pass, " LIMIT "}]"},
    {"rules: [{name: a, over: drop, " LIMIT "}]", "a.over", "pass",
     "rules: [{name: a, over: pass, " LIMIT "}]"},
    {"rules: [{name: a, " LIMIT "}, {name: b, " LIMIT "}]", "b.gap", "2ms",
     "rules: [{name: a, " LIMIT "}, {name: b, limits: [{key: src/24,56, gap: 2ms}]}]"},
    {"rules: [{name: a, " LIMIT "}]", "a.limits[0].gap", "2ms",
     "rules: [{name: a, limits: [{key: src/24,56, gap: 2ms}]}]"},
    {"rules:\n- name: a\n  limits:\n  - key: src\n    gap:   1ms   # c\n  - key: dst\n"
     "    gap: 3ms\n",
     "a.limits[1].gap", "250us",
     "rules:\n- name: a\n  limits:\n  - key: src\n    gap:   1ms   # c\n  - key: dst\n"
     "    gap: 250us\n"},
    {"rules: [{\"name\":\"a\",\"limits\":[{\"key\":\"src\",\"gap\":\"1ms\"}]}]", "a.gap", "2ms",
     "rules: [{\"name\":\"a\",\"limits\":[{\"key\":\"src\",\"gap\":2ms}]}]"},
    {"rules: [{\"name\":\"a\",\"limits\":[{\"key\":\"src\",\"gap\":\"1ms\"}]}]", "a.over", "pass",
     "rules: [{\"name\":\"a\", over: "
     "pass,\"limits\":[{\"key\":\"src\",\"gap\":\"1ms\"}]}]"},
    {"mode: &m enforce\nrules: []", "mode", "monitor", "mode: monitor\nrules: []"},
    {"mode: !!str enforce\nrules: []", "mode", "monitor", "mode: monitor\nrules: []"},
};

static void sets(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(set_case); i++) {
		struct policy_error error = {-1, ""};
		char *result = policy_set(set_case[i].text, strlen(set_case[i].text),
					  set_case[i].path, set_case[i].value, &error);

		if (!result)
			fail_msg("%s\n%s: %s", set_case[i].text, set_case[i].path, error.text);
		assert_string_equal(result, set_case[i].result);
		free(result);
	}
}

static const char two[] = "rules:\n- name: a\n  limits:\n  - {key: src, gap: 1ms}\n"
			  "  - {key: dst, gap: 1ms}\n- name: b\n  limits:\n"
			  "  - {key: src, packets: 1, window: 1s}\n";
static const struct {
	const char *text, *path, *value;
	int line;
	const char *says;
} wrong_set[] = {
    {two, "a.gap", "2ms", 2,
     "a.gap: 2 limits have this field: write one of a.limits[0].gap, a.limits[1].gap"},
    {two, "c.gap", "2ms", 0, "c.gap: no such rule: there are a, b"},
    {"rules: []", "c.gap", "2ms", 0, "c.gap: no such rule: there is none"},
    {"mode: x", "c.gap", "2ms", 0, "c.gap: no such rule: there is none"},
    {two, "b.gap", "2ms", 6,
     "b.gap: no such field that can be set; there are over, packets, window"},
    {two, "b.slots", "2", 6, "b.slots: no such field that can be set; there are over, p"},
    {two, "b.key", "dst", 6, "b.key: no such field"},
    {two, "b.name", "dst", 6, "b.name: no such field"},
    {two, "b.", "dst", 6, "b.: no such field"},
    {two, "b.limits[0].gap", "2ms", 8,
     "b.limits[0].gap: no such field that can be set; there are packets, window"},
    {two, "b.limits[0].key", "dst", 8, "no such field that can be set"},
    {two, "b.limits[1].gap", "2ms", 6, "no such limit: the rule has 1, counted from 0"},
    {two, "b.limits[9999].gap", "2ms", 0, "write RULE.limits[N].FIELD"},
    {two, "b.limits[0]", "2ms", 0, "write RULE.limits[N].FIELD"},
    {two, "b.limits[].gap", "2ms", 0, "write RULE.limits[N].FIELD"},
    {two, "b.limits[-1].gap", "2ms", 0, "write RULE.limits[N].FIELD"},
    {two, "b.limits", "2ms", 6, "no such field"},
    {two, "memory", "1G", 0, "memory: no such field that can be set: write mode, unparsed"},
    {two, "", "1G", 0, "no such field"},
    {two, ".gap", "1G", 0, "no such rule"},
    {two, "mode", "", 0, "mode: \"\" will not do"},
    {two, "mode", "a b", 0, "mode: \"a b\" will not do"},
    {two, "mode", "a\nb", 0, "will not do"},
    {two, "mode", "a#b", 0, "will not do"},
    {two, "mode", "a:", 0, "will not do"},
    {two, "mode", "a,b", 0, "will not do"},
    {two, "mode", "{", 0, "will not do"},
    {two, "mode", "]", 0, "will not do"},
    {two, "mode", "*a", 0, "will not do"},
    {two, "mode", "\xc3\xbc", 0, "will not do"},
    {two, "mode", "-", 1, "mode: cannot be set in this text as it is laid out"},
    {two, "mode", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0,
     "will not do: 1 to 64"},
    {"mode: [x]\nrules: []", "mode", "y", 1, "mode: not written as one value"},
    {"mode: |\n  x\nrules: []", "mode", "y", 1, "mode: not written as one value"},
    {"? rules\n: []", "mode", "y", 1, "mode: cannot be set in this text"},
    {"&r {rules: []}", "mode", "y", 1, "mode: cannot be set in this text"},
    {"mode: &m x\nclock: *m", "mode", "y", 1, "mode: shared with another place"},
    {"mode: &m x\nclock: *m", "clock", "y", 1, "clock: shared with another place"},
    {"rules:\n- name: a\n  limits: &l [{key: src, gap: 1ms}]\n- name: b\n  limits: *l", "b.gap",
     "2ms", 3, "b.gap: shared with another place by an alias"},
    {"rules:\n- name: a\n  limits: &l [{key: src, gap: 1ms}]\n- name: b\n  limits: *l", "a.gap",
     "2ms", 3, "a.gap: shared with another place by an alias"},
    {"rules: [", "mode", "y", 1, "not YAML"},
    {"", "mode", "y", 1, "empty"},
    {"[]", "mode", "y", 1, "cannot be set in this text"},
    {"x", "mode", "y", 1, "cannot be set in this text"},
};

static void wrong_sets(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(wrong_set); i++) {
		struct policy_error error = {-1, ""};
		char *result = policy_set(wrong_set[i].text, strlen(wrong_set[i].text),
					  wrong_set[i].path, wrong_set[i].value, &error);

		if (result || error.line != wrong_set[i].line ||
		    !strstr(error.text, wrong_set[i].says))
			fail_msg("%s\n%s=%s: %d: %s", wrong_set[i].text, wrong_set[i].path,
				 wrong_set[i].value, error.line, result ? result : error.text);
	}
}

/* Setting a value changes that value in the policy, and nothing else in it or in the text. */
static void set_of_the_example(void **state)
{
	struct policy *before = parse(example), *after;
	struct policy_error error;
	char *text = policy_set(example, strlen(example), "dns.packets", "250", &error);
	char *more = policy_set(text, strlen(text), "dns.limits[2].window", "20s", &error);
	char expected[sizeof(example)];

	(void)state;
	memcpy(expected, example, sizeof(example));
	memcpy(strstr(expected, "300"), "250", 3);
	assert_string_equal(text, expected);
	memcpy(strstr(expected, "10s"), "20s", 3);
	assert_string_equal(more, expected);
	after = parse(more);
	before->rule[0].limit[1].limit = 250;
	before->rule[0].limit[2].window_ns = 20 * SECOND;
	assert_memory_equal(before->rule, after->rule, sizeof(before->rule[0]));
	policy_free(before);
	policy_free(after);
	free(text);
	free(more);
}

static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed * 0x2545f4914f6cdd1dull >> 16;
}

/* One change: a byte, a byte more or less, a piece repeated elsewhere, or a token of YAML's. */
static size_t mutate(char *text, size_t len, size_t size, uint64_t *seed)
{
	static const char *const token[] = {
	    "[",  "]", "{",  "}", ": ", "- ", "\n", "#", "&a",	  "*a ",      "!!",   "|",
	    "\"", "'", "? ", "0", "-",	",",  "\t", "%", "---\n", "\xc3\xbc", "\xff", "\r"};
	size_t at = len ? draw(seed) % len : 0, n, to;
	const char *piece;
	char copy[40];

	switch (draw(seed) % 5) {
	case 0:
		if (len)
			text[at] = (char)draw(seed);
		return len;
	case 1:
		n = len - at < 20 ? len - at : draw(seed) % 20;
		memmove(text + at, text + at + n, len - at - n);
		return len - n;
	case 2:
		n = len - at < sizeof(copy) ? len - at : draw(seed) % sizeof(copy);
		to = len ? draw(seed) % len : 0;
		if (len + n > size)
			return len;
		memcpy(copy, text + at, n);
		memmove(text + to + n, text + to, len - to);
		memcpy(text + to, copy, n);
		return len + n;
	default:
		piece = token[draw(seed) % ARRAY(token)];
		n = strlen(piece);
		if (len + n > size)
			return len;
		memmove(text + at + n, text + at, len - at);
		memcpy(text + at, piece, n);
		return len + n;
	}
}

static void assert_sound(const struct policy *policy)
{
	struct pacer_window window;
	size_t r, i;

	assert_true(policy->n_rules <= PACER_RULES_MAX && policy->n_allow <= POLICY_ALLOW_MAX);
	assert_true(policy->memory_bytes > 0);
	for (r = 0; r < policy->n_rules; r++) {
		assert_true(policy->rule[r].n_limits >= 1 && policy->rule[r].n_limits <= 8);
		assert_true(strlen(policy->rule[r].name) >= 1 && policy->rule[r].line > 0);
		for (i = 0; i < policy->rule[r].n_limits; i++) {
			const struct policy_limit *l = &policy->rule[r].limit[i];

			if (l->kind == LIMIT_GAP)
				assert_true(l->gap_ns > 0 && l->rows >= 1 && l->rows <= 2);
			else
				assert_int_equal(pacer_window_profile(&window, l->cost, l->limit,
								      l->window_ns, l->slots, 0),
						 PACER_WINDOW_OK);
		}
	}
}

/* Whatever the text: a policy, or an error with a text and a line of it. */
static void any_text(void **state)
{
	static const char *const path[] = {"mode",    "clock",	     "dns.over",
					   "dns.gap", "dns.packets", "dns.limits[2].slots"};
	uint64_t seed = 88172645463325252ull;
	size_t i, n, len, good = 0, set = 0;
	struct policy *policy;
	char text[2048], *result;

	(void)state;
	for (i = 0; i < 40000; i++) {
		struct policy_error error = {-1, ""};

		len = strlen(example);
		memcpy(text, example, len);
		for (n = 1 + draw(&seed) % 4; n; n--)
			len = mutate(text, len, sizeof(text), &seed);
		policy = policy_parse(text, len, &error);
		if (policy)
			assert_sound(policy);
		else
			assert_true(*error.text && error.line >= 0 && error.line < 100);
		good += !!policy;
		result = policy_set(text, len, path[i % ARRAY(path)], "7s", &error);
		assert_true(result || *error.text);
		set += !!result;
		policy_free(policy);
		free(result);
	}
	print_message("%zu policies, %zu set\n", good, set);
	assert_true(good > 1000 && set > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_example),
	    cmocka_unit_test(every_field),
	    cmocka_unit_test(keys),
	    cmocka_unit_test(accepted),
	    cmocka_unit_test(wrong_documents),
	    cmocka_unit_test(wrong_rules),
	    cmocka_unit_test(wrong_matches),
	    cmocka_unit_test(wrong_limits),
	    cmocka_unit_test(too_long),
	    cmocka_unit_test(sets),
	    cmocka_unit_test(wrong_sets),
	    cmocka_unit_test(set_of_the_example),
	    cmocka_unit_test(any_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
