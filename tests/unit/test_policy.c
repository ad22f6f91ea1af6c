/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "example.h"
#include "config/headers.h"
#include "config/policy.h"
#include "rate.h"
#include "window.h"

#define LADDER(key) "key: '" key "', packets: 5, window: 1s"
#define ARRAY(a)    (sizeof(a) / sizeof((a)[0]))
#define SECOND	    1000000000ull

static struct policy *parse(const char *text)
{
	struct policy_error error = {.line = -1};
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

static void assert_throttle(const struct policy_throttle *t, uint64_t uses, uint64_t threshold,
			    uint64_t cooldown_ns, uint64_t max_cooldown_ns)
{
	assert_int_equal(t->uses, uses);
	assert_int_equal(t->threshold, threshold);
	assert_int_equal(t->cooldown_ns, cooldown_ns);
	assert_int_equal(t->max_cooldown_ns, max_cooldown_ns);
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
	assert_int_equal(rule->n_limits, 4);
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
	assert_int_equal(rule->limit[3].kind, LIMIT_THROTTLE);
	assert_throttle(&rule->limit[3].throttle, 100000, 1000, 10 * SECOND, 11 * SECOND);
	assert_int_equal(rule->ban_ns, 30 * SECOND);
	assert_true(policy_bans(policy));
	assert_int_equal(policy->bans, 16384);
	assert_int_equal(policy->n_pools, 1);
	assert_true(policy->sample.on);
	policy_free(policy);
}

static void assert_targets(const struct policy_pool *pool, const char *names)
{
	char all[200] = "", one[32];

	for (size_t i = 0; i < pool->n; i++) {
		strcat(all, i ? " " : "");
		strcat(all, policy_target_text(&pool->target[i], one, sizeof(one)));
	}
	assert_string_equal(all, names);
}

static void pools(void **state)
{
	struct policy *policy =
	    parse("rules:\n"
		  "- {name: a, limits: [{key: src, gap: 1ms}], over: pool two}\n"
		  "- {name: b, limits: [{key: src, gap: 1ms}], over: 'pool   one'}\n"
		  "pools:\n"
		  "- {name: one, targets: [veth1, veth2], each: 500, cooldown: 10m,"
		  " max_cooldown: 11m, threshold: 50}\n"
		  "- {name: two, targets: [\"cpu:1\", cpu:0], each: 20k, cooldown: 1s}\n"
		  "- name: three\n"
		  "  targets: xsk:63\n"
		  "  each: 10\n"
		  "  cooldown: 1s\n"
		  "  threshold: 10\n"
		  "- {name: four, targets: [abcdefghijklmno], each: 1, cooldown: 1s,"
		  " max_cooldown: 2s}\n");
	const struct policy_pool *pool = policy->pool;

	(void)state;
	assert_int_equal(policy->n_pools, 4);
	assert_int_equal(policy->rule[0].over, PACER_OVER_POOL);
	assert_int_equal(policy->rule[0].pool, 1);
	assert_int_equal(policy->rule[1].pool, 0);
	assert_string_equal(pool[0].name, "one");
	assert_int_equal(pool[0].line, 5);
	assert_targets(&pool[0], "veth1 veth2");
	assert_int_equal(pool[0].each, 500);
	assert_throttle(&pool[0].throttle, 1000, 50, 600 * SECOND, 660 * SECOND);
	assert_targets(&pool[1], "cpu:1 cpu:0");
	assert_throttle(&pool[1].throttle, 40000, 400, SECOND, 11 * SECOND / 10);
	assert_targets(&pool[2], "xsk:63");
	assert_throttle(&pool[2].throttle, 10, 10, SECOND, UINT64_MAX);
	assert_targets(&pool[3], "abcdefghijklmno");
	assert_throttle(&pool[3].throttle, 1, 1, SECOND, 2 * SECOND);
	policy_free(policy);
}

/* Without a threshold it is the limit, without max_cooldown there is none; without both, see below.
 */
static void throttles(void **state)
{
	static const struct {
		const char *limit;
		uint64_t uses, threshold, cooldown_ns, max_cooldown_ns;
	} c[] = {
	    {"uses: 5000, cooldown: 10m, max_cooldown: 11m, threshold: 50", 5000, 50, 600 * SECOND,
	     660 * SECOND},
	    {"uses: 500, cooldown: 10s, max_cooldown: 11s", 500, 500, 10 * SECOND, 11 * SECOND},
	    {"uses: 500, cooldown: 10s, threshold: 7", 500, 7, 10 * SECOND, UINT64_MAX},
	    {"uses: 501, cooldown: 10s", 501, 6, 10 * SECOND, 11 * SECOND},
	    {"uses: 1, cooldown: 5ns", 1, 1, 5, 6},
	    {"uses: 2147483647, cooldown: 1s, threshold: 2147483647", INT32_MAX, INT32_MAX, SECOND,
	     UINT64_MAX},
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < ARRAY(c); i++) {
		struct policy *policy;

		snprintf(text, sizeof(text), "rules: [{name: a, limits: [{key: all, %s}]}]",
			 c[i].limit);
		policy = parse(text);
		assert_int_equal(policy->rule->limit->kind, LIMIT_THROTTLE);
		assert_throttle(&policy->rule->limit->throttle, c[i].uses, c[i].threshold,
				c[i].cooldown_ns, c[i].max_cooldown_ns);
		policy_free(policy);
	}
}

static void rates(void **state)
{
	static const struct {
		const char *limit;
		struct units_rate rate;
		uint64_t burst;
	} c[] = {
	    {"rate: 1000/s, burst: 50", {1000, SECOND, 0}, 50},
	    {"rate: 3/h, burst: 1", {3, 3600 * SECOND, 0}, 1},
	    {"rate: 2000Mpps, burst: 4294967295", {2000000000, SECOND, 0}, UINT32_MAX},
	    {"rate: 10Mbit/s, burst: 64K", {10000000, 8 * SECOND, 1}, 64000},
	    {"rate: 20MB/s, burst: 64KiB", {20000000, SECOND, 1}, 65536},
	    {"rate: 1000Gbit/s, burst: 1514", {1000000000000, 8 * SECOND, 1}, 1514},
	    {"rate: 1bit/s, burst: 9k", {1, 8 * SECOND, 1}, 9000},
	    {"burst: 50, rate: 2kpps", {2000, SECOND, 0}, 50},
	    {"burst: 16Kbit, rate: 1MB/m", {1000000, 60 * SECOND, 1}, 2000},
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < ARRAY(c); i++) {
		const struct policy_limit *l;
		struct policy *policy;

		snprintf(text, sizeof(text), "rules: [{name: a, limits: [{key: src, %s}]}]",
			 c[i].limit);
		policy = parse(text);
		l = policy->rule->limit;
		assert_int_equal(l->kind, LIMIT_RATE);
		assert_int_equal(l->cost, c[i].rate.bytes ? PACER_COST_BYTES : PACER_COST_PACKETS);
		assert_int_equal(l->rate.amount, c[i].rate.amount);
		assert_int_equal(l->rate.per_ns, c[i].rate.per_ns);
		assert_int_equal(l->burst, c[i].burst);
		policy_free(policy);
	}
}

static void every_field(void **state)
{
	struct policy *policy =
	    parse("mode: monitor\nunparsed: drop\nclock: coarse\nmemory: 1Gi\n"
		  "allow: 10.0.0.1\n"
		  "rules:\n"
		  "- name: one\n"
		  "  over: pass\n"
		  "  match:\n"
		  "    src: [10.0.0.0/8, 2001:db8::/32]\n"
		  "    dst: ::1\n"
		  "    proto: [tcp, 17, 0-20, sctp]\n"
		  "    sport: 1024-65535\n"
		  "    dport: [53, 80-90]\n"
		  "    vlan: [none, 1, 100-200]\n"
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
	assert_key(&limit[0].key, "dst/32,64");
	assert_int_equal(limit[0].rows, 1);
	assert_int_equal(limit[0].ceiling, 2000000);
	assert_int_equal(limit[0].entries, 20000);
	assert_int_equal(limit[1].limit, 1000000000);
	assert_int_equal(limit[1].slots, 10);
	assert_int_equal(policy->rule[1].line, 23);
	assert_int_equal(policy->rule[1].match.n_src, 0);
	policy_free(policy);
}

static void samples(void **state)
{
	struct policy *policy = parse("rules: []\nsample: {of: denied, k: 64, window: 60s}\n");
	const struct policy_sample *sample = &policy->sample;

	(void)state;
	assert_true(sample->on);
	assert_int_equal(sample->line, 2);
	assert_int_equal(sample->of, SAMPLE_DENIED);
	assert_int_equal(sample->k, 64);
	assert_int_equal(sample->window_ns, 60 * SECOND);
	assert_int_equal(sample->packets, 0);
	assert_int_equal(sample->snap_bytes, 0);
	assert_false(sample->without_replacement);
	policy_free(policy);
	policy = parse("sample: {of: all, k: 1, packets: 1073741823, snap: 128, "
		       "replacement: without}\nrules: []\n");
	sample = &policy->sample;
	assert_int_equal(sample->of, SAMPLE_ALL);
	assert_int_equal(sample->k, 1);
	assert_int_equal(sample->packets, (1 << 30) - 1);
	assert_int_equal(sample->window_ns, 0);
	assert_int_equal(sample->snap_bytes, 128);
	assert_true(sample->without_replacement);
	policy_free(policy);
	policy = parse("rules: []\nsample: {of: all, k: 1, packets: 5}\n");
	assert_true(policy->sample.without_replacement);
	policy_free(policy);
	policy = parse("sample: {of: admitted, k: 2, window: 1s, replacement: with, snap: 0}\n"
		       "rules: []\n");
	assert_int_equal(policy->sample.of, SAMPLE_ADMITTED);
	assert_false(policy->sample.without_replacement);
	policy_free(policy);
	policy = parse("rules: []\n");
	assert_true(policy->unparsed_drop);
	assert_false(policy->sample.on);
	policy_free(policy);
}

static void keys(void **state)
{
	static const struct {
		const char *fields, *text;
		struct policy_key key;
	} c[] = {
	    {"key: flow, gap: 1ms", "flow", KEY_FLOW},
	    {"key: src, gap: 1ms", "src/32,64", KEY_SRC(32, 64)},
	    {"key: src/24,56, gap: 1ms", "src/24,56", KEY_SRC(24, 56)},
	    {"key: src/32,64, gap: 1ms", "src/32,64", KEY_SRC(32, 64)},
	    {"key: src/32, 64, gap: 1ms", "src/32,64", KEY_SRC(32, 64)},
	    {"gap: 1ms, key: src/32,64", "src/32,64", KEY_SRC(32, 64)},
	    {"key: 'src/32,64', gap: 1ms", "src/32,64", KEY_SRC(32, 64)},
	    {"key: \"src/32,64\", gap: 1ms", "src/32,64", KEY_SRC(32, 64)},
	    {"key: src/32,128, gap: 1ms", "src/32,128", KEY_SRC(32, 128)},
	    {"key: src/0,64, gap: 1ms", "src/0,64", KEY_SRC(0, 64)},
	    {"key: dst/16,48, gap: 1ms", "dst/16,48", KEY_DST(16, 48)},
	    {"key: dst, gap: 1ms", "dst/32,64", KEY_DST(32, 64)},
	    {"key: src+dport, gap: 1ms",
	     "src/32,64+dport",
	     {KEY_PART_SRC | KEY_PART_DPORT, 32, 64, 0, 0, {{0}}}},
	    {"key: src/24,128+dport, gap: 1ms",
	     "src/24,128+dport",
	     {KEY_PART_SRC | KEY_PART_DPORT, 24, 128, 0, 0, {{0}}}},
	    {"key: dport+src/24,56, gap: 1ms",
	     "src/24,56+dport",
	     {KEY_PART_SRC | KEY_PART_DPORT, 24, 56, 0, 0, {{0}}}},
	    {"key: src/24,56+dst, gap: 1ms",
	     "src/24,56+dst/32,64",
	     {KEY_PART_SRC | KEY_PART_DST, 24, 56, 32, 64, {{0}}}},
	    {"key: dst/16,48+src/24,56, gap: 1ms",
	     "src/24,56+dst/16,48",
	     {KEY_PART_SRC | KEY_PART_DST, 24, 56, 16, 48, {{0}}}},
	    {"key: src/24,56+dst/16,48+vlan, gap: 1ms",
	     "src/24,56+dst/16,48+vlan",
	     {KEY_PART_SRC | KEY_PART_DST | KEY_PART_VLAN, 24, 56, 16, 48, {{0}}}},
	    {"key: dst+dport, gap: 1ms",
	     "dst/32,64+dport",
	     {KEY_PART_DST | KEY_PART_DPORT, 0, 0, 32, 64, {{0}}}},
	    {"key: src+dst+proto, gap: 1ms",
	     "src/32,64+dst/32,64+proto",
	     {KEY_PART_SRC | KEY_PART_DST | KEY_PART_PROTO, 32, 64, 32, 64, {{0}}}},
	    {"key: src/32,128+dst/32,128+proto+sport+dport, gap: 1ms", "flow", KEY_FLOW},
	    {"key: vlan, gap: 1ms", "vlan", {KEY_PART_VLAN, 0, 0, 0, 0, {{0}}}},
	    {"key: sport+proto, gap: 1ms",
	     "proto+sport",
	     {KEY_PART_PROTO | KEY_PART_SPORT, 0, 0, 0, 0, {{0}}}},
	    {"key: all, gap: 1ms", "all", KEY_ALL},
	    {"key: ttl+src, gap: 1ms",
	     "src/32,64+ttl",
	     {KEY_PART_SRC | KEY_PART_TTL, 32, 64, 0, 0, {{0}}}},
	};
	char buf[256];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(c); i++) {
		struct policy *policy = parse(with_limit(buf, sizeof(buf), c[i].fields));
		const struct policy_key *key = &policy->rule->limit[0].key;

		assert_key(key, c[i].text);
		assert_true(policy_key_same(key, &c[i].key));
		policy_free(policy);
		snprintf(buf, sizeof(buf),
			 "rules:\n- name: a\n  limits:\n  - key: %s\n    gap: 1ms\n", c[i].text);
		policy = parse(buf); /* in block style, too */
		assert_key(&policy->rule->limit[0].key, c[i].text);
		policy_free(policy);
	}
}

/* What a line makes: of each of its limits the key, and what it lets through. */
static void ladders(void **state)
{
	static const struct {
		const char *fields, *line, *limits;
	} c[] = {
	    {"key: 'src/[32,28,24],[128,64,56]', packets: 10, window: 1s, wider: x4",
	     "src/[32,28,24],[128,64,56]", "src/32,128=10 src/28,64=40 src/24,56=160 "},
	    {"key: 'dst/[32, 24], [64]', bytes: 1K/s, window: 2s, wider: x3", "dst/[32,24],[64]",
	     "dst/32,64=2000 dst/24,64=6000 "},
	    {"wider: [x3, x3, x100], rate: 2/s, burst: 5, key: 'dport+src/24,[64,56,48,32]+proto'",
	     "src/[24],[64,56,48,32]+proto+dport",
	     "src/24,64+proto+dport=2:5 src/24,56+proto+dport=6:15 src/24,48+proto+dport=6:15 "
	     "src/24,32+proto+dport=200:500 "},
	    {"key: 'src/[32,0],[128,32]+vlan', packets: 5, window: 1s, wider: x1",
	     "src/[32,0],[128,32]+vlan", "src/32,128+vlan=5 src/0,32+vlan=5 "},
	    {"key: 'dst+src/[2,1],[8,7]', packets: 5, window: 1s, wider: [x1000000]",
	     "src/[2,1],[8,7]+dst/32,64", "src/2,8+dst/32,64=5 src/1,7+dst/32,64=5000000 "},
	    {"key: 'src/[32,31,30,29,28,27,26,25],64', packets: 1, window: 1s, wider: x2",
	     "src/[32,31,30,29,28,27,26,25],[64]",
	     "src/32,64=1 src/31,64=2 src/30,64=4 src/29,64=8 src/28,64=16 src/27,64=32 "
	     "src/26,64=64 src/25,64=128 "},
	    {"key: src/24,56, packets: 7, window: 1s", "src/24,56", "src/24,56=7 "},
	};
	char buf[256], text[POLICY_LINE_TEXT], got[400];

	(void)state;
	for (size_t i = 0; i < ARRAY(c); i++) {
		struct policy *policy = parse(with_limit(buf, sizeof(buf), c[i].fields));
		const struct policy_rule *rule = policy->rule;

		*got = 0;
		for (size_t k = 0; k < rule->n_limits; k++) {
			const struct policy_limit *l = &rule->limit[k];
			size_t len = strlen(got);

			assert_int_equal(l->item, 0);
			assert_int_equal(l->rung, k);
			len += snprintf(got + len, sizeof(got) - len,
					"%s=", policy_key_text(&l->key, text, sizeof(text)));
			if (l->kind == LIMIT_RATE)
				snprintf(got + len, sizeof(got) - len, "%llu:%llu ",
					 (unsigned long long)l->rate.amount,
					 (unsigned long long)l->burst);
			else
				snprintf(got + len, sizeof(got) - len, "%llu ",
					 (unsigned long long)l->limit);
			policy_line_key_text(l, text, sizeof(text));
			assert_string_equal(text, c[i].line);
		}
		assert_string_equal(got, c[i].limits);
		policy_free(policy);
	}
}

/* The limits of the lines behind it. */
static void ladders_among_limits(void **state)
{
	struct policy *policy =
	    parse("rules:\n- name: a\n  limits:\n  - {key: src/24,56, gap: 1ms}\n"
		  "  - key: src/[32,28],[128,64]\n    wider: x2\n    rate: 1/s\n    burst: 3\n"
		  "  - {key: all, packets: 9, window: 1s}\n");
	static const uint8_t item[] = {0, 1, 1, 2}, rung[] = {0, 0, 1, 0};
	char text[64];

	(void)state;
	assert_int_equal(policy->rule->n_limits, ARRAY(item));
	for (size_t i = 0; i < ARRAY(item); i++) {
		assert_int_equal(policy->rule->limit[i].item, item[i]);
		assert_int_equal(policy->rule->limit[i].rung, rung[i]);
	}
	assert_string_equal(policy_rung_text(&policy->rule->limit[2], text, sizeof(text)),
			    ", rung 2 of 2");
	assert_string_equal(policy_rung_text(&policy->rule->limit[3], text, sizeof(text)), "");
	policy_free(policy);
}

/* What a limit of a window comes to. */
static void amounts(void **state)
{
	static const struct {
		const char *fields;
		uint64_t limit;
	} c[] = {
	    {"bytes: 20M, window: 1s", 20000000},      {"bytes: 20Mi, window: 1s", 20 << 20},
	    {"bytes: 10Mbit, window: 1s", 1250000},    {"bytes: 10Mbit, window: 100ms", 1250000},
	    {"bytes: 10Mbit/s, window: 1s", 1250000},  {"bytes: 10Mbit/s, window: 100ms", 125000},
	    {"window: 10s, bytes: 1.5MB/s", 15000000}, {"packets: 1kpps, window: 10ms", 10},
	    {"packets: 1k/s, window: 1999us", 1}, /* rounded down */
	    {"packets: 2Ki, window: 1s", 2048},
	};
	char buf[256], limit[128];

	(void)state;
	for (size_t i = 0; i < ARRAY(c); i++) {
		struct policy *policy;

		snprintf(limit, sizeof(limit), "key: src, %s", c[i].fields);
		policy = parse(with_limit(buf, sizeof(buf), limit));
		assert_int_equal(policy->rule->limit->limit, c[i].limit);
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
	    "!!map {mode: !!str enforce, bans: !!int 5, rules: !!seq []}",
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
	struct policy_error error = {.line = -1};
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
    {"\xef\xbb\xbf\xef\xbb\xbfrules: []\n", 1,
     "it begins with two byte order marks: leave one out"},
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
     "else, clock, memory, withstand, rules, pools, sets, bans, flows, flow_idle, sample"},
    {"rules: []\nxyzzy: 1", 2, "unknown field \"xyzzy\": a policy has mode"},
    {"rules: []\n<<: 1", 2, "unknown field \"<<\""},
    {"rules: []\n'': 1", 2, "unknown field \"\""},
    {"rules: []\n\"a\\nb\": 1", 2, "unknown field \"a?b\""},
    {"mode: enforce\nrules: []\nmode: monitor", 3, "mode: written twice, first in line 1"},
    {"mode: maybe\nrules: []", 1, "mode: \"maybe\" is not known: write enforce or monitor"},
    {"mode:\nrules: []", 1, "mode: the value is missing"},
    {"mode: \"enforce\\0\"\nrules: []", 1, "mode: the value has a NUL"},
    {"\"mode\\0x\": enforce\nrules: []", 1, "expected the name of a field"},
    {"rules: []\nallow: ! 10.0.0.0/8", 2, "\"!\" is a tag of YAML"},
    {"rules: []\nallow: !@office\n", 2, "\"!@office\" is a tag of YAML, and says nothing"},
    {"rules: []\nallow: ! [10.0.0.0/8]", 2, "quote a text that begins with !"},
    {"rules: []\nallow: [!!binary 10.0.0.0/8]", 2, "\"tag:yaml.org,2002:binary\" is a tag"},
    {"!policy {rules: []}", 1, "\"!policy\" is a tag"},
    {"mode: [enforce]\nrules: []", 1, "mode: expected one value, found a list"},
    {"mode: {a: b}\nrules: []", 1, "mode: expected one value, found fields"},
    {"mode: Enforce\nrules: []", 1, "is not known"},
    {"unparsed: yes\nrules: []", 1, "unparsed: \"yes\" is not known: write pass or drop"},
    {"clock: fine\nrules: []", 1, "write auto, exact or coarse"},
    {"memory: lots\nrules: []", 1, "memory: \"lots\" is not a size"},
    {"memory: 0\nrules: []", 1, "memory: 0 is no limit"},
    {"memory: 65Gi\nrules: []", 1, "memory: 65Gi is too much: at most 64Gi"},
    {"memory: -1M\nrules: []", 1, "not a size: write 64Mi or 1Gi"},
    {"memory: 64Mbit\nrules: []", 1, "not a size"},
    {"withstand: lots\nrules: []", 1,
     "withstand: \"lots\" is no number of packets a second: write"},
    {"withstand: 10Mbit/s\nrules: []", 1, "is no number of packets a second: write 10Mpps"},
    {"withstand: 0pps\nrules: []", 1, "withstand: 0 is no limit"},
    {"withstand: 2Tpps\nrules: []", 1, "withstand: 2Tpps is too much: at most 1000Gpps"},
    {"withstand: 1Mpps\nmemory: 64Mi\nrules: []", 2, "memory and withstand both say how much"},
    {"pools: scrub\nrules: []", 1, "pools: expected a list of pools, or [] for none"},
    {"bans: 0\nrules: []", 1, "bans: 0 is no limit"},
    {"bans: many\nrules: []", 1, "bans: \"many\" is not a count"},
    {"bans: 16777217\nrules: []", 1, "bans: 16777217 is too much: at most 16777216"},
    {"rules: []\nsample: {of: denied}", 2, "sample: its size is missing: write k: 1 to 64"},
    {"rules: []\nsample: {k: 64, window: 1s}", 2, "sample: what is sampled is missing"},
    {"rules: []\nsample: denied", 2, "sample: expected a sample: fields"},
    {"rules: []\nsample: {of: none}", 2,
     "sample.of: \"none\" is not known: write denied, admitted or all"},
    {"rules: []\nsample: {of: all, k: 0}", 2, "sample.k: \"0\" will not do: write 1 to 64"},
    {"rules: []\nsample: {of: all, k: 65}", 2, "sample.k: \"65\" will not do: write 1 to 64"},
    {"rules: []\nsample: {of: all, k: 1}", 2, "sample: of what it is a sample is missing"},
    {"rules: []\nsample: {of: all, k: 1,\n packets: 5,\n window: 1s}", 4,
     "sample: packets and window are both written"},
    {"rules: []\nsample: {of: all, k: 1, window: 5}", 2, "sample.window: 5 has no unit"},
    {"rules: []\nsample: {of: all, k: 1, packets: 1.1G}", 2,
     "sample.packets: 1100000000 is more than a sample's window: at most 1073741823"},
    {"rules: []\nsample: {of: all, k: 1, packets: 0}", 2, "sample.packets: 0 is no limit"},
    {"rules: []\nsample: {of: all, k: 1, packets: 1, snap: 129}", 2,
     "sample.snap: \"129\" will not do: write 0 to 128"},
    {"rules: []\nsample: {of: all, k: 1, packets: 1, replacement: no}", 2,
     "sample.replacement: \"no\" is not known: write with or without"},
    {"rules: []\nsample:\n  of: all\n  k: 1\n  window: 1s\n  replacement: without", 6,
     "sample.replacement: a window of time is sampled with replacement only: write packets"},
    {"rules: []\nsample:\n  of: all\n  k: 1\n  packets: 9\n  replacement: with", 6,
     "sample.replacement: the last packets are sampled without replacement only: write without, "
     "or leave it out"},
    {"rules: []\nsample: {off: all}", 2,
     "unknown field \"off\": did you mean \"of\"? a sample has of, k, packets, window, "},
    {"allow: [192.0.2.1/24]\nrules: []", 1,
     "allow[0]: 192.0.2.1/24 has bits beyond its length: write 192.0.2.0/24"},
    {"allow:\n- 10.0.0.1\n- 10.0.0.0/33\nrules: []", 3,
     "allow[1]: 10.0.0.0/33: the length is 0 to 32"},
    {"allow:\n- '::ffff:192.0.2.0/120'\nrules: []", 2,
     "allow[0]: ::ffff:192.0.2.0/120 is an IPv4 address in the form of IPv6, and no packet has it: "
     "write 192.0.2.0/24"},
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

#define LIMITS "limits: [{key: src, gap: 1ms}]"

static void wrong_over_and_ban(void **state)
{
	static const struct wrong w[] = {
	    {"rules:\n- name: a\n  " LIMITS "\n  ban: 30\n", 4,
	     "rules[0].ban: 30 has no unit: write 30ms, 30s"},
	    {"rules:\n- name: a\n  " LIMITS "\n  ban: 0\n", 4, "rules[0].ban: 0 is no limit"},
	    {"rules:\n- name: a\n  " LIMITS "\n  ban: {grow: x4}\n", 4,
	     "rules[0].ban: the time is missing: write for: 30s"},
	    {"rules:\n- name: a\n  " LIMITS "\n  ban: {for: 1s, grow: x4}\n", 4,
	     "rules[0].ban: grow, up_to and forget go together"},
	    {"rules:\n- name: a\n  " LIMITS "\n  ban: {for: 1s, up_to: 2s, forget: 1s}\n", 4,
	     "rules[0].ban: grow, up_to and forget go together"},
	    {"rules:\n- name: a\n  " LIMITS "\n  ban: {for: 1s, grow: x1, up_to: 2s, forget: 1s}\n",
	     4, "rules[0].ban.grow: \"x1\" will not do: write x2 to x100"},
	    {"rules:\n- name: a\n  " LIMITS "\n  ban: {for: 1s, grow: 4, up_to: 2s, forget: 1s}\n",
	     4, "rules[0].ban.grow: \"4\" will not do: write x2 to x100"},
	    {"rules:\n- name: a\n  " LIMITS
	     "\n  ban: {for: 1s, grow: x101, up_to: 2s, forget: 1s}\n",
	     4, "rules[0].ban.grow: \"x101\" will not do: write x2 to x100"},
	    {"rules:\n- name: a\n  " LIMITS
	     "\n  ban: {for: 10s, grow: x4, up_to: 2s, forget: 1s}\n",
	     4, "rules[0].ban: up_to 2s is not more than for 10s: no ban would grow"},
	    {"rules:\n- name: a\n  " LIMITS "\n  ban: {for: 1s, grow: x4, up_to: 2s, forget: 0}\n",
	     4, "rules[0].ban.forget: 0 is no limit"},
	    {"rules:\n- name: a\n  " LIMITS "\n  ban: {for: 1s, gorw: x4}\n", 4,
	     "rules[0].ban: unknown field \"gorw\": did you mean \"grow\"?"},
	    {"rules:\n- name: a\n  limits: [{key: all, gap: 1s}]\n  ban: 1s\n", 4,
	     "rules[0].ban: every limit of the rule has the key all, whose denials ban nobody: "
	     "add a limit by src, say"},
	    {"rules:\n- name: a\n  ban: 1s\n  limits: [{key: src, gap: 1s}, {key: src/24,0, gap: "
	     "1s}]",
	     3,
	     "rules[0].ban: limits[1] has one key for all of IPv6, whom it would ban together: "
	     "give that a length above 0"},
	    {"rules:\n- name: a\n  ban: 1s\n  limits: [{key: src/0,64, gap: 1s}]", 3,
	     "rules[0].ban: limits[0] has one key for all of IPv4"},
	    {"rules:\n- name: a\n  ban: 1s\n  limits: [{key: all, uses: 5, cooldown: 1s}]\n", 3,
	     "rules[0].ban: every limit of the rule has the key all"},
	    {"rules:\n- name: a\n  " LIMITS "\n  over: pool scrub\n", 4,
	     "rules[0].over: there is no pool scrub: add it to pools:"},
	    {"rules:\n- name: a\n  " LIMITS "\n  over: pool scrub\npools:\n"
	     "- {name: b, targets: [x], each: 1, cooldown: 1s}\n"
	     "- {name: c, targets: [y], each: 1, cooldown: 1s}\n",
	     4, "rules[0].over: there is no pool scrub: there are b, c"},
	    {"rules:\n- name: a\n  " LIMITS "\n  over: pool\n", 4,
	     "rules[0].over: which pool is missing: write pool NAME"},
	    {"rules:\n- name: a\n  " LIMITS "\n  over: pool a b\n", 4,
	     "rules[0].over: \"a b\" will not do: 1 to 31 letters"},
	    {"rules:\n- name: a\n  " LIMITS "\n  over: pools\n", 4,
	     "rules[0].over: \"pools\" is not known: write drop, pass or pool NAME"},
	    {"rules:\n- name: a\n  " LIMITS "\n  over: deny\n", 4,
	     "rules[0].over: \"deny\" is not known: write drop, pass or pool NAME"},
	};

	(void)state;
	refuse_all(w, ARRAY(w));
}

#define SHARED(fields) "rules:\n- name: a\n  limits:\n  - {" fields ", fleet: yes}\n"
#define FLEET(fields)  "fleet: {" fields "}\nrules: []\n"

static void wrong_flows(void **state)
{
	static const struct wrong w[] = {
	    {"rules:\n- name: a\n  limits:\n  - {key: src, gap: 1s, of: old}\n", 4,
	     "rules[0].limits[0].of: \"old\" is not known: write new or all"},
	    {"flows: 0\nrules: []\n", 1, "flows: 0 is no limit: it must be more"},
	    {"flows: many\nrules: []\n", 1, "flows: \"many\" is not a count"},
	    {"flows: 100M\nrules: []\n", 1, "flows: 100000000 is too much: at most 67108864"},
	    {"flow_idle: 5\nrules: []\n", 1, "flow_idle: 5 has no unit: write 5ms"},
	    {"flow_idle: 0s\nrules: []\n", 1, "flow_idle: 0 is no limit: it must be more"},
	};

	(void)state;
	refuse_all(w, ARRAY(w));
}

static void wrong_fleets(void **state)
{
	static const struct wrong w[] = {
	    {SHARED("key: src, gap: 1ms") "fleet: {store: 'http://a', name: f}\n", 4,
	     "rules[0].limits[0].fleet: a gap cannot be divided: two hosts would"},
	    {SHARED("key: src, rate: 5/s, burst: 5"), 4,
	     "rules[0].limits[0].fleet: the policy names no store of a fleet: write fleet: {store"},
	    {"rules:\n- name: a\n  limits:\n  - {key: src, rate: 5/s, burst: 5, fleet: maybe}\n", 4,
	     "rules[0].limits[0].fleet: \"maybe\" is not known: write yes or no"},
	    {"rules:\n- name: a\n  ban: {for: 9s, fleet: yes}\n  limits: [{key: src, gap: 1s}]\n",
	     2, "rules[0].ban: the policy names no store of a fleet: write fleet: {store"},
	    {"rules: []\nsets:\n- {name: d, of: [], fleet: yes}\n", 3,
	     "sets[0].fleet: the policy names no store of a fleet: write fleet: {store"},
	    {"rules: []\nsets:\n- {name: d, file: /f, value: 2, fleet: yes}\n", 3,
	     "sets[0].fleet: the policy names no store of a fleet: write fleet: {store"},
	    {"rules:\n- name: a\n  ban: {for: 9s, fleet: 1}\n  limits: [{key: src, gap: 1s}]\n", 3,
	     "rules[0].ban.fleet: \"1\" is not known: write yes or no"},
	    {FLEET("store: 'http://a', name: f, bans: all"), 1,
	     "fleet.bans: \"all\" is not known: write yes or no"},
	    {FLEET("name: f"), 1, "fleet: the store is missing: write store: [https://"},
	    {FLEET("store: 'http://a'"), 1, "fleet: its name is missing: write name: edge"},
	    {FLEET("store: [], name: f"), 1, "fleet.store: the list is empty"},
	    {FLEET("store: 10.0.0.1, name: f"), 1,
	     "fleet.store: \"10.0.0.1\" is no address of a store: write https://"},
	    {FLEET("store: ['http://a', 'ftp://a'], name: f"), 1,
	     "fleet.store[1]: \"ftp://a\" is no"},
	    {FLEET("store: 'http://', name: f"), 1, "fleet.store: \"http://\" is no address"},
	    {FLEET("store: 'http://u@a', name: f"), 1, "fleet.store: \"http://u@a\" is no address"},
	    {FLEET("store: 'http://a', name: a/b"), 1, "fleet.name: \"a/b\" will not do"},
	    {FLEET("store: 'http://a', name: f, cert: c"), 1,
	     "fleet: cert and key belong together: write both or neither"},
	    {FLEET("store: 'http://a', name: f, ca: ''"), 1, "fleet.ca: "},
	    {FLEET("store: 'http://a', name: f, cut_off: open"), 1,
	     "fleet.cut_off: \"open\" is not known: write deny or local"},
	    {FLEET("store: 'http://a', name: f, cutoff: deny"), 1,
	     "fleet: unknown field \"cutoff\""},
	};

	(void)state;
	refuse_all(w, ARRAY(w));
}

static void wrong_rules(void **state)
{
	static const struct wrong w[] = {
	    {"rules:", 1, "rules: expected a list of rules, or [] for none"},
	    {"rules: {name: a}", 1, "rules: expected a list"},
	    {"rules:\n- a\n", 2, "rules[0]: expected a rule: fields"},
	    {"rules:\n- [a]\n", 2, "rules[0]: expected a rule"},
	    {"rules: &r [*r]\n", 1, "rules[0]: expected a rule"},
	    {"rules:\n- " LIMITS, 2, "rules[0]: the name is missing"},
	    {"rules:\n- name: a\n", 2,
	     "rules[0]: the limits are missing: write limits: and a list, or verdict: drop"},
	    {"rules:\n- name: a\n  verdict: drop\n  " LIMITS, 4,
	     "rules[0]: limits and verdict are both written"},
	    {"rules:\n- name: a\n  verdict: drop\n  ban: 1s", 4,
	     "rules[0]: ban and verdict are both written"},
	    {"rules:\n- name: a\n  over: pass\n  verdict: drop", 3,
	     "rules[0]: over and verdict are both written"},
	    {"rules:\n- name: a\n  verdict: deny", 3,
	     "rules[0].verdict: \"deny\" is not known: write drop, pass or pool NAME"},
	    {"rules:\n- name: a\n  match: {ether_type: arp}\n  " LIMITS, 4,
	     "ether_type names frames that are not IP, which have no addresses"},
	    {"rules:\n- name: a\n  verdict: pool x", 3,
	     "rules[0].verdict: there is no pool x: add it to pools:"},
	    {"rules: []\nelse: pool x", 2, "else: there is no pool x"},
	    {"rules: []\nelse: [drop]", 2, "else: expected"},
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
	     "limits, verdict, over"},
	    {"rules:\n- name: a\n  limits:\n", 3, "rules[0].limits: expected a list of limits"},
	    {"rules:\n- name: a\n  limits: []\n", 3, "rules[0].limits: the list is empty"},
	    {"rules:\n- name: a\n  limits: {key: src, gap: 1ms}\n", 3, "expected a list of limits"},
	    {"rules:\n- name: a\n  limits: [1ms]\n", 3, "rules[0].limits[0]: expected a limit"},
	    {"rules:\n- name: a\n  limits: [{}, {}, {}, {}, {}, {}, {}, {}, {}]\n", 3,
	     "rules[0].limits: 9 items: at most 8"},
	    {"rules:\n- name: a\n  match: tcp\n", 3, "rules[0].match: expected a match"},
	    {"rules:\n- name: a\n  match:\n  " LIMITS, 3, "rules[0].match: expected a match"},
	};
	static char text[1 << 15] = "rules:\n";
	size_t i, end;

	(void)state;
	refuse_all(w, ARRAY(w));
	for (i = 0; i < PACER_RULES_MAX; i++) {
		end = strlen(text);
		snprintf(text + end, sizeof(text) - end, "- {name: r%zu, " LIMITS "}\n", i);
	}
	policy_free(parse(text));
	end = strlen(text);
	snprintf(text + end, sizeof(text) - end, "- {name: r256, " LIMITS "}\n");
	refuse(text, strlen(text), 2, "rules: 257 items: at most 256");
}

#undef LIMITS

static const char *some_ports(char *buf, size_t size, size_t n)
{
	size_t i;

	snprintf(buf, size, "dport: [");
	for (i = 0; i < n; i++)
		snprintf(buf + strlen(buf), size - strlen(buf), "%zu%s", i, i + 1 < n ? ", " : "]");
	return buf;
}

static void wrong_pools(void **state)
{
#define POOL "name: a, each: 5, cooldown: 1s"
	static const struct {
		const char *pool, *says;
	} w[] = {
	    {"each: 5, cooldown: 1s, targets: [a]",
	     "pools[0]: name is missing: write name: scrub, for example"},
	    {POOL, "pools[0]: targets is missing: write targets: [veth1, veth2], for example"},
	    {"name: a, cooldown: 1s, targets: [a]", "pools[0]: each is missing: write each: 500"},
	    {"name: a, each: 5, targets: [a]",
	     "pools[0]: cooldown is missing: write cooldown: 10m"},
	    {"name: a/b", "pools[0].name: \"a/b\" will not do: 1 to 31 letters"},
	    {"nam: a", "unknown field \"nam\": did you mean \"name\"? a pool has name, targets, "
		       "each, cooldown, max_cooldown, threshold"},
	    {POOL ", targets: []", "pools[0].targets: the list is empty: a pool has 1 to 32 targ"},
	    {POOL ", targets: [abcdefghijklmnop]",
	     "pools[0].targets[0]: \"abcdefghijklmnop\" is too "
	     "long for an interface: at most 15"},
	    {POOL ", targets: [a, b/c]", "pools[0].targets[1]: \"b/c\" is no target: write an "
					 "interface, cpu:1 or xsk:0"},
	    {POOL ", targets: [dev:1]", "\"dev:1\" is no target"},
	    {POOL ", targets: ['a b']", "\"a b\" is no target"},
	    {POOL ", targets: [..]", "\"..\" is no target"},
	    {POOL ", targets: [cpu:x]",
	     "pools[0].targets[0]: \"cpu:x\" will not do: write cpu:0 to cpu:4095"},
	    {POOL ", targets: [xsk:4096]", "\"xsk:4096\" will not do: write xsk:0 to xsk:63"},
	    {POOL ", targets: [cpu:1-2]", "\"cpu:1-2\" will not do"},
	    {POOL ", targets: [cpu:1, veth1]",
	     "pools[0].targets[1]: veth1 is an interface, and the "
	     "first target a CPU: a pool is of one kind"},
	    {POOL ", targets: [cpu:1, xsk:1]", "xsk:1 is a socket, and the first target a CPU"},
	    {POOL ", targets: [x, y, x]", "pools[0].targets[2]: x is a target of pool a already: a "
					  "target is in one place of one pool"},
	    {POOL ", targets: [x]}, {name: a, each: 5, cooldown: 1s, targets: [y]",
	     "pools[1].name: \"a\" is the name of the pool in line 2, too"},
	    {POOL ", targets: [x, y]}, {name: b, each: 5, cooldown: 1s, targets: [z, y]",
	     "pools[1].targets[1]: y is a target of pool a already"},
	    {"name: a, each: 0", "pools[0].each: 0 is no limit"},
	    {"name: a, each: 2147483647, cooldown: 1s, targets: [x, y]",
	     "pools[0].each: 4294967294 of all targets together are more than can be counted: at "
	     "most 2147483647"},
	    {POOL ", targets: [x, y], threshold: 11",
	     "pools[0].threshold: 11 is above the limit: write 1 to 10"},
	    {POOL ", targets: [x], max_cooldown: 1s",
	     "pools[0].max_cooldown: 1s is not above the cooldown of 1s: write 1100ms, say"},
	};
	char text[400];

	(void)state;
	for (size_t i = 0; i < ARRAY(w); i++) {
		snprintf(text, sizeof(text), "rules: []\npools: [{%s}]\n", w[i].pool);
		refuse(text, strlen(text), 2, w[i].says);
	}
	refuse("rules: []\npools:\n- " POOL, 18 + strlen(POOL), 3, "not YAML");
	refuse("rules: []\npools: [1,2,3,4,5,6,7,8,9]", 36, 2, "pools: 9 items: at most 8");
}

static const struct {
	const char *match, *says;
} wrong_match[] = {
    {"source: 10.0.0.0/8", "unknown field \"source\": a match has src, dst, proto, sport, "},
    {"dprot: 53", "did you mean \"dport\"?"},
    {"flags: sin", "match.flags: \"sin\" are no TCP flags: write those"},
    {"flags: [syn / syn,ack]", "\"syn / syn\": in a list flags with a slash stand in quotes"},
    {"flags: syn,proto", "\"syn,proto\" are no TCP flags"},
    {"flags: none", "\"none\" are no TCP flags"},
    {"flags: syn / ack", "a flag has to be set that is not looked at"},
    {"flags: syn, proto: udp", "flags is not of the protocol that proto names: no packet"},
    {"flags: syn, icmp_type: 8", "flags and icmp_type are of two protocols: no packet"},
    {"icmp_type: nd-redirect", "\"nd-redirect\" is no ICMP type"},
    {"icmp_type: 8, src: 2001:db8::/32", "icmp_type is of IPv4, and src is not: no packet"},
    {"icmpv6_type: 8, dport: 53", "icmpv6_type is of a protocol without ports"},
    {"icmpv6_type: 256", "\"256\" is no ICMPv6 type"},
    {"icmp_code: -1", "\"-1\" is no code"},
    {"ttl: 5-3", "\"5-3\" is no TTL"},
    {"dscp: 64", "\"64\" is no DSCP"},
    {"fragment: middle", "\"middle\" is not known: write first, later or none"},
    {"options: maybe", "\"maybe\" is not known: write yes or no"},
    {"len: 65536", "\"65536\" is no length"},
    {"ether_type: 0x5ff", "\"0x5ff\" is no EtherType"},
    {"ether_type: arp, ttl: 1", "ether_type is not of IP, and other fields are"},
    {"inner: gre", "\"gre\" is not known: write yes or no"},
    {"inner: [yes, no]", "inner"},
    {"inner: yes, ether_type: ip", "ether_type is of the frame, and inner: yes is for the IP"},
    {"ether_src: 2:0", "\"2:0\" is no Ethernet address"},
    {"ether_dst: '02:00:00:00:00:00:00'", "is no Ethernet address"},
    {"payload: 1501=0x00", "\"1501=0x00\" are no bytes"},
    {"payload: 1=0x123", "are no bytes"},
    {"payload: 0x12", "are no bytes"},
    {"payload: 1=12", "are no bytes"},
    {"payload: 1-2=0x12", "are no bytes"},
    {"payload: 1=0x12:0x34", "are no bytes"},
    {"payload: 1=0x12/0x00", "are no bytes"},
    {"payload: {}", "match.payload: expected one value, found fields"},
    {"ether_type: [[ip]]", "match.ether_type[0]: expected one value, found a list"},
    {"ether_type: 0x0800-0x07ff", "\"0x0800-0x07ff\" is no EtherType"},
    {"ether_type: 0x08000", "\"0x08000\" is no EtherType"},
    {"ether_type: 0x", "\"0x\" is no EtherType"},
    {"ether_type: 0x0800+1", "\"0x0800+1\" is no EtherType"},
    {"ether_src: {}", "match.ether_src: expected one value, found fields"},
    {"ether_src: 02-00", "\"02-00\" is no Ethernet address"},
    {"ether_src: '02:0g'", "\"02:0g\" is no Ethernet address"},
    {"flags: {}", "match.flags: expected one value, found fields"},
    {"flags: "
     "syn,"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaa",
     "unknown field \"aaaaaa"},
    {"flags: syn / syn,akc", "\"syn / syn,akc\" are no TCP flags"},
    {"payload: 1=0x12/0x1", "are no bytes"},
    {"payload: 1=0x0102030405", "are no bytes"},
    {"payload: 1=0x12/0x02", "a bit has to be set that the mask leaves out"},
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
    {"vlan: 0", "\"0\" is not a VLAN: write 1 to 4095, a range as 100-199, or none"},
    {"vlan: [5, 0-99]", "match.vlan[1]: \"0-99\" is not a VLAN"},
    {"vlan: {}", "expected one value"},
    {"src: 10.0.0.0/8, dst: 2001:db8::/32",
     "rules[0].match: src is IPv4 and dst is IPv6: no packet can match"},
    {"src: ['::1', '::2'], dst: [10.0.0.0/8, 11.0.0.0/8]",
     "rules[0].match: src is IPv6 and dst is IPv4"},
    {"src: 10.0.0.0/8, src: 10.0.0.0/8", "rules[0].match.src: written twice"},
    {"proto: icmp, dport: 1",
     "rules[0].match.proto[0]: protocol 1 has no ports, and dport is written: no packet "
     "can match: leave dport out, or write tcp, udp or sctp"},
    {"sport: 0-65535, proto: [udp, gre]",
     "match.proto[1]: protocol 47 has no ports, and sport is written"},
    {"proto: 20-131, dport: 1, sport: 1", "match.proto[0]: protocol 20 has no ports"},
    {"proto: icmp, dst: 'fd00::/8'",
     "rules[0].match.proto[0]: icmp is not of IPv6, and dst is: no packet can match: write "
     "icmpv6"},
    {"flags: 'syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,psh,fin'",
     "are no TCP flags"},
    {"icmp_type: 8, dst: '::1'", "icmp_type is of IPv4, and dst is not: no packet can match"},
    {"icmpv6_type: 135, src: 10.0.0.1", "icmpv6_type is of IPv6, and src is not"},
    {"icmp_type: 8, src: [10.0.0.1, '::1'], dst: '::1'", "icmp_type is of IPv4, and dst is not"},
    {"icmp_type: 8, sport: 7", "and sport is written: no packet can match"},
    {"ether_type: 0x0599", "is no EtherType"},
    {"ether_type: 1535", "\"1535\" is no EtherType"},
    {"payload: 1=0x12/0xg", "are no bytes"},
    {"flags: synsynsynsynsynsynsynsynsynsynsynsynsynsyn", "are no TCP flags"},
    {"src: {}", "match.src: expected one value, found fields"},
    {"ether_type: 1537-1538-1539", "is no EtherType"},
    {"payload: 1=0x12/0x00", "are no bytes"},
    {"payload: 1=0x12/0x1234", "are no bytes"},
    {"payload: 1=0x12/0x12x", "are no bytes"},
    {"flags: syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,psh,fin",
     "unknown field \"psh\""},
    {"proto: [tcp, 58], src: [10.0.0.0/8, 11.0.0.0/8]",
     "match.proto[1]: icmpv6 is not of IPv4, and src is: no packet can match: write icmp"},
};

/* What some packet can be: sources, or destinations, of either family, and no protocol but one that
 * fits. */
static const char *const right_match[] = {
    "src: 10.0.0.0/8, dst: ['::1', 11.0.0.1]",
    "proto: [0-255, sctp], sport: 1",
    "proto: [1, 58], src: ['::1', 11.0.0.1]",
    "proto: 0-255, dst: '::1'",
    "icmp_type: 8, src: ['::1', 11.0.0.1]",
    "icmp_type: 8, dst: ['::1', 11.0.0.1]",
    "icmp_type: 8, dst: [10.0.0.1, 11.0.0.1]",
    "ether_type: [0x1234, ip6], dst: '::1'",
    "ether_type: ip, sport: 7, dscp: 0, len: 60",
    "payload: 1=0x12345678 / 0xffffffff",
    "flags: ['syn / syn,ack'], ether_type: ip",
    "icmp_type: 8, src: ['@some', '::1']",
    "icmpv6_type: 135, dst: [10.0.0.1, '@some']",
    "proto: icmp, src: ['::1', '@some']",
    "proto: 1-5, src: '::1'",
    "proto: 58-60, dst: 10.0.0.1",
};

static void right_matches(void **state)
{
	char buf[1024], list[512];
	struct policy *policy;

	(void)state;
	for (size_t i = 0; i < ARRAY(right_match); i++) {
		with_match(buf, sizeof(buf), right_match[i]);
		strcat(buf, "sets: [{name: some, of: [192.0.2.0/24]}]\n");
		policy_free(parse(buf));
	}
	policy = parse(with_match(buf, sizeof(buf),
				  "flags: 'fin, syn, rst, psh, ack, urg, ece / "
				  "fin, syn, rst, psh, ack, urg, ece, cwr'"));
	assert_int_equal(policy->rule->match.flags[0].value, 0x7f);
	assert_int_equal(policy->rule->match.flags[0].mask, 0xff);
	policy_free(policy);
	policy = parse(with_match(buf, sizeof(buf), some_ports(list, sizeof(list), 64)));
	assert_int_equal(policy->rule->match.n_dport, 64);
	assert_range(&policy->rule->match.dport[63], 63, 63);
	policy_free(policy);
}

static void wrong_matches(void **state)
{
	static const char *const of_ip[] = {
	    "src: 10.0.0.1",  "dst: 10.0.0.1",	"src: '@some'", "proto: 17",	  "sport: 1",
	    "dport: 1",	      "flags: syn",	"icmp_type: 8", "icmp_code: 0",	  "icmpv6_type: 1",
	    "icmpv6_code: 0", "ttl: 1",		"dscp: ef",	"fragment: none", "options: no",
	    "payload_len: 0", "payload: 0=0x00"};
	char buf[1024], list[512];

	(void)state;
	for (size_t i = 0; i < ARRAY(of_ip); i++) {
		snprintf(list, sizeof(list), "%s, ether_type: arp", of_ip[i]);
		with_match(buf, sizeof(buf), list);
		refuse(buf, strlen(buf), 3, "ether_type is not of IP, and other fields are");
	}
	for (size_t i = 0; i < ARRAY(wrong_match); i++) {
		with_match(buf, sizeof(buf), wrong_match[i].match);
		refuse(buf, strlen(buf), 3, wrong_match[i].says);
	}
	with_match(buf, sizeof(buf), some_ports(list, sizeof(list), 65));
	refuse(buf, strlen(buf), 3, "rules[0].match.dport: 65 items: at most 64");
}

#define ZEROS "0000000000000000000000000000000000000000"

/* Sets, where they are named, and what of them keys have in the place of addresses. */
static void wrong_keys_of_sets(void **state)
{
#define GEO  "sets:\n- {name: geo, file: /g, value: 2}\n- {name: drop, file: /d}\n"
#define NAME "aaaaaaaaaabbbbbbbbbbccccccccccdd" /* too long by one */
#define KEYED(key) \
	GEO "rules:\n- name: a\n  limits:\n  - {key: '" key "', packets: 5, window: 1s}\n"
#define LONG	    ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS
#define MATCHED(of) GEO "rules:\n- name: a\n  verdict: drop\n  match: {src: '" of "'}\n"
	static const struct wrong w[] = {
	    {KEYED("value(geo)"), 7, "key: \"value(geo)\" is no value: write value(SET, src)"},
	    {KEYED("value(geo, src"), 7, "is no value"},
	    {KEYED("value(geo, src)x"), 7, "is no value"},
	    {KEYED("value(geo, srcs)"), 7, "is no value"},
	    {KEYED("value(geo, vlan)"), 7, "is no value"},
	    {KEYED("value(geo, abc)"), 7, "is no value"},
	    {KEYED("value(, src)"), 7, "key: value(, ...) names no set"},
	    {KEYED("value(" NAME ", src)"), 7, "names no set"},
	    {KEYED("value(geo, src)+value(drop, src)"), 7, "src stands twice in the key"},
	    {KEYED("src+value(geo, src)"), 7, "src stands twice in the key"},
	    {KEYED("value(geo, dst)+dst"), 7, "\"dst\" stands twice in the key"},
	    {KEYED("value(geo, src)+src"), 7, "\"src\" stands twice in the key"},
	    {KEYED("value(got, src)"), 7, "there is no set got: there are geo, drop"},
	    {KEYED("value(drop, src)"), 7, "set drop has no values: add value:"},
	    {GEO "allow: ['@got']\nrules: []\n", 4,
	     "allow: there is no set got: there are geo, drop"},
	    {MATCHED("@got"), 7, "there is no set got: there are geo, drop"},
	    {MATCHED("@drop=DE"), 7, "set drop has no values: add value:"},
	    {MATCHED("@geo="), 7, "\"@geo=\" will not do: a value has 1 to"},
	    {MATCHED("@geo=" ZEROS ZEROS), 7, "will not do: a value has 1 to"},
	    {MATCHED("@" NAME "=DE"), 7, "will not do: 1 to 31 letters"},
	    {MATCHED("@" ZEROS ZEROS), 7, "will not do: 1 to 31 letters"},
	    {MATCHED("@="), 7, "\"\" will not do: 1 to 31 letters"},
	    {"rules: []\nsets: [{name: a, file: '-'}]\n", 2,
	     "sets[0].file: \"-\" will not do: name a file"},
	    {"rules: []\nsets: [{name: a, file: ''}]\n", 2, "sets[0].file: "},
	    {"rules: []\nsets: [{name: a, file: {}}]\n", 2, "sets[0].file: expected one value"},
	    {"rules: []\nsets: [{name: a, of: [[x]]}]\n", 2,
	     "sets[0].of[0]: expected one value, found a list"},
	    {"rules: []\nsets: [{name: a, file: /f, value: 1}]\n", 2,
	     "sets[0].value: 1 will not do: the field of the file that is its value, 2 to 64"},
	    {"rules: []\nsets: [{name: a, file: /f, value: 65}]\n", 2, "65 will not do"},
	    {"rules: []\nsets: [{name: a, file: /f, value: x}]\n", 2, "sets[0].value: \"x\""},
	    {"rules:\n- name: a\n  match: {src: [[a]]}\n  verdict: drop\n", 3,
	     "match.src[0]: expected one value, found a list"},
	    {"rules:\n- name: a\n  limits: [{key: src, gap: 1s}]\n  ban: {for: 1s, grow: [x2]}\n",
	     4, "rules[0].ban.grow: expected one value"},
	    {"rules:\n- name: a\n  limits: [{key: src, gap: 1s}]\n  ban: {for: 1s, grow: x2-3, "
	     "up_to: 2s, forget: 1s}\n",
	     4, "\"x2-3\" will not do: write x2 to x100"},
	    {"rules:\n- name: a\n  limits: [{key: src, gap: 1s}]\n  ban: {for: 1s, grow: x2, "
	     "up_to: 2s}\n",
	     4, "grow, up_to and forget go together"},
	    {"rules:\n- name: a\n  limits:\n  - {key: 'src/[32,24],64', packets: 5, window: 1s, "
	     "wider: {}}\n",
	     4, "limits[0].wider: expected one value"},
	    {"rules:\n- name: a\n  limits:\n  - {key: 'src/[9,8,7,6,5,4,3,2],64', packets: 5, "
	     "window: 1s, wider: x2}\n  - {key: 'src/[9,8],64', packets: 5, window: 1s, wider: "
	     "x2}\n",
	     5, "its lengths make 10 limits of the rule: at most 8"},
	    {"rules:\n- name: a\n  limits: [{key: 'src/24,56-57', gap: 1s}]\n", 3,
	     "\"56-57\" is no prefix length of IPv6"},
	    {"rules: []\npools: [{name: a, targets: [.], each: 1, cooldown: 1s}]\n", 2,
	     "\".\" is no target"},
	    {"rules: []\nsets: [{name: a, file: " LONG "}]\n", 2, "name a file, in at most"},
	    {FLEET("store: 'http://a', name: f, ca: " LONG), 1, "a file's name has 1 to"},
	    {FLEET("store: 'http://" LONG "', name: f"), 1, "is no address of a store"},
	    {FLEET("store: 'mailto:a', name: f"), 1, "is no address of a store"},
	    {FLEET("store: [[a]], name: f"), 1, "fleet.store[0]: expected one value"},
	};
	static char text[PACER_SET_VALUES_MAX * 32 + 200];
	struct policy *policy;
	size_t i;

	(void)state;
	refuse_all(w, ARRAY(w));
	policy = parse(KEYED("value(geo, src)+dst/24,56"));
	assert_true(policy_set_keyed(policy, "geo") && !policy_set_keyed(policy, "drop"));
	assert_true(policy_set_named(policy, &policy->set[0]));
	assert_false(policy_set_named(policy, &policy->set[1]));
	policy_free(policy);
	policy = parse("fleet: {name: f, store: 'http://a'}\nrules: []\nsets:\n"
		       "- {name: a, file: /a, value: 2, fleet: yes}\n"
		       "- {name: b, of: [], fleet: yes}\n- {name: c, file: /c, value: 2}\n");
	assert_true(policy_set_named(policy, &policy->set[0]));
	assert_false(policy_set_named(policy, &policy->set[1]));
	assert_false(policy_set_named(policy, &policy->set[2]));
	policy_free(policy);
	policy =
	    parse("sets:\n- {name: a, file: /a, value: 2}\n- {name: b, file: /b, value: 3}\n"
		  "rules:\n- {name: r, verdict: drop, match: {src: ['@a=X', '@b=X', '@b=X', "
		  "'@b=Y']}}\n"
		  "- name: s\n  limits:\n  - {key: 'value(a, src)+value(b, dst)', gap: 1s}\n"
		  "  - {key: 'value(b, dst)', gap: 2s}\n  - {key: 'value(a, src)', gap: 2s}\n");
	assert_int_equal(policy->n_set_values, 3); /* those that are named twice once */
	assert_true(policy_set_keyed(policy, "a") && policy_set_keyed(policy, "b"));
	policy_free(policy);
	snprintf(text, sizeof(text),
		 GEO "rules:\n- name: a\n  verdict: drop\n  match:\n    src:\n");
	for (i = 0; i < POLICY_SET_USES_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "    - '@geo=V%zu'\n",
			 i);
	policy_free(parse(text));
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "    - '@geo'\n");
	refuse(text, strlen(text), 9, "rules[0].match.src: a match names 32 sets at the most");
#undef GEO
#undef NAME
#undef KEYED
#undef MATCHED
#undef LONG
}

static const struct {
	const char *limit, *says;
} wrong_limit[] = {
    {"", "rules[0].limits[0]: the key is missing"},
    {"gap: 1ms", "rules[0].limits[0]: the key is missing"},
    {"key: src", "rules[0].limits[0]: nothing is limited: write gap, packets, bytes, rate or uses"},
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
    {"key: src/24, gap: 1ms",
     "rules[0].limits[0].key: /24 is the length for IPv4, and that for IPv6 is missing: write "
     "/24,56, say"},
    {"key: dst/32, gap: 1ms", "/32 is the length for IPv4, and that for IPv6 is missing"},
    {"key: src/24+dport, gap: 1ms", "/24 is the length for IPv4, and that for IPv6 is missing"},
    {"key: src/24,129, gap: 1ms", "\"129\" is no prefix length of IPv6"},
    {"key: 'src/24,', gap: 1ms", "\"\" is no prefix length of IPv6"},
    {"key: 'src/24,56,64', gap: 1ms", "no prefix length"},
    {"key: src/24,56,64, gap: 1ms", "unknown field \"64\""},
    {"key: src/0,0, gap: 1ms", "all have one key: leave src out, or write all"},
    {"key: src+sprt, gap: 1ms", "\"src+sprt\" is not a key"},
    {"key: src+, gap: 1ms", "\"src+\" is not a key"},
    {"key: +src, gap: 1ms", "\"+src\" is not a key"},
    {"key: src+all, gap: 1ms", "\"src+all\" is not a key"},
    {"key: flow+vlan, gap: 1ms", "\"flow+vlan\" is not a key"},
    {"key: src+dport/24,56, gap: 1ms", "is not a key"},
    {"key: src+dport+src, gap: 1ms", "\"src\" stands twice in the key: write it once"},
    {"key: src+dst/0,0, gap: 1ms", "leave dst out, or write all"},
    {"key: src+dst/24, gap: 1ms", "the length for IPv4, and that for IPv6 is missing"},
    {"key: flow/24, gap: 1ms", "is not a key"},
    {"key: all+dport, gap: 1ms", "is not a key"},
    {"key: src+, gap: 1ms", "is not a key"},
    {"key: [src, dst], gap: 1ms", "limits[0].key: expected one value, found a list"},
    {"key: src/24," ZEROS ZEROS ZEROS ZEROS "56, gap: 1ms", "that for IPv6 is missing"},
    {LADDER("src/[32,24],[64,56]"),
     "rules[0].limits[0]: the key has several lengths: write how much more each wider one has, "
     "as wider: x4"},
    {LADDER("src/24,56") ", wider: x4",
     "rules[0].limits[0].wider: belongs to a key of several lengths, as src/[32,24],[64,56]"},
    {LADDER("src/[32,24]") ", wider: x4",
     "rules[0].limits[0].key: the lengths for IPv6 are missing: write src/[32,24],[64,56], say"},
    {LADDER("src/[32,24],[64,56") ", wider: x4", "\"[64,56\" has no ]"},
    {LADDER("src/[32,24],[64,56],8") ", wider: x4", "\"8\" is too much"},
    {LADDER("src/[32,24],[64,56]]") ", wider: x4", "\"]\" is too much"},
    {LADDER("src/[24,32],[64,56]") ", wider: x4",
     "/32 stands behind /24: write the longest first, each once"},
    {LADDER("src/[32,24],[64,64]") ", wider: x4", "/64 stands behind /64"},
    {LADDER("src/[32,],[64,56]") ", wider: x4", "\"\" is no prefix length of IPv4: write 0 to 32"},
    {LADDER("src/[],[64,56]") ", wider: x4", "\"\" is no prefix length of IPv4"},
    {LADDER("src/[32 24],[64,56]") ", wider: x4", "\"32 24\" is no prefix length"},
    {LADDER("src/[24-25,16],[64,56]") ", wider: x4", "\"24-25\" is no prefix length of IPv4"},
    {LADDER("src/[33,24],[64,56]") ", wider: x4", "\"33\" is no prefix length of IPv4"},
    {LADDER("src/[32,24],[129,56]") ", wider: x4", "\"129\" is no prefix length of IPv6"},
    {LADDER("src/[32,24],[64-56]") ", wider: x4", "\"64-56\" is no prefix length of IPv6"},
    {LADDER("src/[24],[56]") ", wider: x4", "one length is no ladder: write src/24,56"},
    {LADDER("src/[32,0],[64,0]") ", wider: x4", "with no bit of the address all have one key"},
    {LADDER("src/[32,24],[64,56]+dst/[32,24],[64,56]") ", wider: x4", "a ladder is of one"},
    {LADDER("src/[9,8,7,6,5,4,3,2,1],64") ", wider: x4", "a ladder has up to 8 lengths"},
    {LADDER("proto/[32,24],[64,56]") ", wider: x4", "is not a key"},
    {LADDER("src/[32,24],[64,56]") ", wider: 4", "\"4\" will not do: write x1 to x1000000"},
    {LADDER("src/[32,24],[64,56]") ", wider: x0", "\"x0\" will not do"},
    {LADDER("src/[32,24],[64,56]") ", wider: x1000001", "\"x1000001\" will not do"},
    {LADDER("src/[32,24],[64,56]") ", wider: x2-3", "\"x2-3\" will not do"},
    {LADDER("src/[32,24],[64,56]") ", wider: [x4, x8]",
     "rules[0].limits[0].wider: 2 values, and 2 lengths: write one for each length but the first"},
    {LADDER("src/[32,24,16],[64,56]") ", wider: []", "0 values, and 3 lengths"},
    {LADDER("src/[32,24,16],[64,56]") ", wider: [x4, x2]", "x2 stands behind x4: a wider prefix"},
    {LADDER("src/[32,24,16],[64,56]") ", wider: [x1,x2,x3,x4,x5,x6,x7,x8]", "8 items: at most 7"},
    {LADDER("src/[32,24,16],[64,56]") ", wider: x100000",
     "x10000000000 of it, for the widest, is more than can be counted: write less"},
    {LADDER("src/[9,8,7,6,5],64") ", wider: x1000000", "is more than can be counted: write less"},
    {"key: 'src/[32,24],[64,56]', rate: 1Gpps, burst: 5, wider: x4",
     "x4 of it, for the widest, is more than can be counted"},
    {"key: 'src/[32,24],[64,56]', gap: 1ms, wider: x4",
     "rules[0].limits[0].key: a ladder is of packets, bytes or a rate"},
    {"key: 'src/[32,24],[64,56]', uses: 5, cooldown: 1s, wider: x4", "a ladder is of packets"},
    {"key: all, uses: 5, cooldown: 1s, wider: x4", "belongs to a key of several lengths"},
    {"key: src/" ZEROS ZEROS ZEROS ZEROS "24, gap: 1ms", "not a key"},
    {"key: src, 64, gap: 1ms", "unknown field \"64\""},
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
    {"key: src, gap: 100000d", "100000d is too long: at most 20015h"},
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
    {"key: src, packets: 5qps, window: 1s", "\"5qps\" is not a count: write 300, 20k"},
    {"key: src, packets: 5pps, window: 100ms",
     "limits[0].packets: this rate comes to less than 1 in the window: write a longer window"},
    {"key: src, packets: 0/s, window: 1s", "limits[0].packets: 0 is no limit"},
    {"key: src, bytes: 0bit/s, window: 1s", "limits[0].bytes: 0 is no limit"},
    {"key: src, bytes: 100000T/s, window: 20000h", "limits[0].bytes: 18446744073709551615 is more"},
    {"key: src, bytes: 10Mbps, window: 1s",
     "limits[0].bytes: \"10Mbps\" is no number of bytes: write 4096, 20M, 64Ki or 10Mbit, or a "
     "rate as 10Mbit/s"},
    {"key: src, bytes: 12bit, window: 1s", "\"12bit\" is no number of bytes"},
    {"key: src, bytes: -1, window: 1s", "limits[0].bytes: -1 is negative"},
    {"key: src, packets: 2147483648, window: 1s",
     "limits[0].packets: 2147483648 is more than can be counted: at most 2147483647"},
    {"key: src, bytes: 140737488355328, window: 1s", "at most 140737488355327"},
    {"key: src, bytes: 99999999999999999999, window: 1s", "is no number of bytes"},
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
    {"key: all, uses: 5", "limits[0]: uses is written, but not after how long each is free again: "
			  "write cooldown: 10s"},
    {"key: all, cooldown: 5s",
     "limits[0]: nothing is limited: write gap, packets, bytes, rate or uses"},
    {"key: all, max_cooldown: 5s", "limits[0]: nothing is limited"},
    {"key: src, uses: 5, cooldown: 1s",
     "limits[0].key: uses are of all packets of the rule together: write key: all"},
    {"key: all, uses: 0, cooldown: 1s", "limits[0].uses: 0 is no limit"},
    {"key: all, uses: 2147483648, cooldown: 1s",
     "limits[0].uses: 2147483648 is more than can be counted: at most 2147483647"},
    {"key: all, uses: 5, cooldown: 0", "limits[0].cooldown: 0 is no limit"},
    {"key: all, uses: 5, cooldown: 5", "limits[0].cooldown: 5 has no unit"},
    {"key: all, uses: 5, cooldown: 1s, threshold: 6",
     "limits[0].threshold: 6 is above the limit: write 1 to 5"},
    {"key: all, uses: 5, cooldown: 1s, threshold: 0", "limits[0].threshold: 0 is no limit"},
    {"key: all, uses: 5, cooldown: 10s, max_cooldown: 10s",
     "limits[0].max_cooldown: 10s is not above the cooldown of 10s: write 11s, say"},
    {"key: all, uses: 5, cooldown: 10s, max_cooldown: 9s", "max_cooldown: 9s is not above"},
    {"key: all, uses: 5, cooldown: 1s, packets: 5",
     "limits[0].uses: beside packets: write it as a limit of its own"},
    {"key: all, uses: 5, cooldown: 1s, window: 1s",
     "limits[0].window: belongs to packets or bytes, and this limit is a throttle"},
    {"key: all, uses: 5, cooldown: 1s, rows: 1", "rows: belongs to a gap, and this limit is a t"},
    {"key: all, uses: 5, cooldown: 1s, entries: 9", "limits[0].entries: the key \"all\" has one"},
    {"key: all, gap: 1s, threshold: 5", "threshold: belongs to uses, and this limit is a gap"},
    {"key: all, gap: 1s, uses: 5", "limits[0].uses: beside gap: write it as a limit of its own"},
    {"key: src, packets: 5, window: 1s, cooldown: 1s",
     "limits[0].cooldown: belongs to uses, and this limit is a window"},
    {"key: src, packets: 5, window: 1s, max_cooldown: 1s", "max_cooldown: belongs to uses"},
    {"key: src, gpa: 1ms", "rules[0].limits[0]: unknown field \"gpa\": did you mean \"gap\"? "
			   "a limit has key, gap, packets, bytes, window, slots, "},
    {"key: src, packet: 1", "did you mean \"packets\"?"},
    {"key: src, Window: 1", "did you mean \"window\"?"},
    {"key:src, gap: 1ms", "unknown field \"key:src\": a space has to follow its ':'"},
    {"key: src, rate: 5/s", "rules[0].limits[0]: rate is written, but not the burst that may come "
			    "at once: write burst: 50"},
    {"key: src, rate: 5MB/s", "not the burst that may come at once: write burst: 64K"},
    {"key: src, rate: 313Gbit/s, burst: 64K, fleet: yes",
     "limits[0].rate: a fleet divides no rate that is so high: write 312Gbit/s or less"},
    {"key: src, burst: 5",
     "limits[0]: nothing is limited: write gap, packets, bytes, rate or uses"},
    {"key: src, rate: 0/s, burst: 5", "limits[0].rate: 0 is no limit: it must be more"},
    {"key: src, rate: 0bit/s, burst: 64K", "limits[0].rate: 0 is no limit: it must be more"},
    {"key: src, rate: -5/s, burst: 5", "limits[0].rate: -5/s is negative"},
    {"key: src, rate: 1000, burst: 5",
     "limits[0].rate: \"1000\" is not a rate: write 1000/s, 10Mbit/s or 20MB/s, with /s, /m or /h"},
    {"key: src, rate: 10Mbit, burst: 64K", "limits[0].rate: \"10Mbit\" is not a rate: write"},
    {"key: src, rate: 10Mbps, burst: 64K", "limits[0].rate: \"10Mbps\" is not a rate: write"},
    {"key: src, rate: 5/d, burst: 5", "limits[0].rate: \"5/d\" is not a rate: write"},
    {"key: src, rate: [5/s], burst: 5", "limits[0].rate: "},
    {"key: src, rate: , burst: 5", "limits[0].rate: "},
    {"key: src, rate: 5/s, burst: 0", "limits[0].burst: 0 is no limit"},
    {"key: src, rate: 5/s, burst: -5", "limits[0].burst: -5 is negative"},
    {"key: src, rate: 5/s, burst: many", "limits[0].burst: \"many\" is no burst: write a number of "
					 "packets, as 50, or of bytes, as 64K"},
    {"key: src, rate: 5/s, burst: 5/s", "limits[0].burst: \"5/s\" is no burst: write"},
    {"key: src, rate: 5/s, burst: 1s", "limits[0].burst: \"1s\" is no burst: write"},
    {"key: src, rate: 5/s, burst: 64KiB",
     "limits[0].burst: it is in bytes, and the rate is in packets: write burst: 50, say"},
    {"key: src, rate: 5/s, burst: 64KB", "limits[0].burst: it is in bytes, and the rate is in"},
    {"key: src, rate: 5MB/s, burst: 50",
     "limits[0].burst: 50 bytes are less than one frame of 1514: write 1514 or more"},
    {"key: src, rate: 5MB/s, burst: 12Kbit", "limits[0].burst: 1500 bytes are less than one frame"},
    {"key: src, rate: 5MB/s, burst: 1513", "limits[0].burst: 1513 bytes are less than one frame"},
    {"key: src, rate: 2001Mpps, burst: 5",
     "limits[0].rate: no line carries so much: write 2000Mpps or less"},
    {"key: src, rate: 1001Gbit/s, burst: 64K",
     "limits[0].rate: no line carries so much: write 1000Gbit/s or less"},
    {"key: src, rate: 18446744073709551615/s, burst: 5", "limits[0].rate: no line carries so much"},
    {"key: src, rate: 18446744073709551616/s, burst: 5", "is not a rate: write 1000/s"},
    {"key: src, rate: 1/h, burst: 100000",
     "limits[0].burst: 100000 are more than can be kept at this rate: write less"},
    {"key: src, rate: 5/s, burst: 4294967296",
     "limits[0].burst: 4294967296 are more than can be kept at this rate: write less"},
    {"key: src, rate: 1bit/h, burst: 1514",
     "limits[0].rate: slower than one in 73 minutes: use a throttle of uses and cooldown"},
    {"key: src, rate: 5/s, burst: 5, gap: 1s",
     "limits[0].rate: beside gap: write it as a limit of its own"},
    {"key: src, rate: 5/s, burst: 5, packets: 5, window: 1s",
     "limits[0].rate: beside packets: write it as a limit of its own"},
    {"key: src, rate: 5/s, burst: 5, window: 1s",
     "limits[0].window: belongs to packets or bytes, and this limit is a rate"},
    {"key: src, rate: 5/s, burst: 5, slots: 5",
     "limits[0].slots: belongs to packets or bytes, and this limit is a rate"},
    {"key: src, rate: 5/s, burst: 5, rows: 1", "rows: belongs to a gap, and this limit is a rate"},
    {"key: src, rate: 5/s, burst: 5, ceiling: 1kpps", "limits[0].ceiling: "},
    {"key: src, rate: 5/s, burst: 5, cooldown: 1s",
     "limits[0].cooldown: belongs to uses, and this limit is a rate"},
    {"key: all, rate: 5/s, burst: 5, uses: 5, cooldown: 1s", "beside rate: write it as a limit of"},
    {"key: all, rate: 5/s, burst: 5, entries: 9", "limits[0].entries: the key \"all\" has one"},
    {"key: src, gap: 1s, burst: 5", "limits[0].burst: belongs to a rate, and this limit is a gap"},
    {"key: src, packets: 5, window: 1s, burst: 5",
     "limits[0].burst: belongs to a rate, and this limit is a window"},
    {"key: all, uses: 5, cooldown: 1s, burst: 5",
     "limits[0].burst: belongs to a rate, and this limit is a throttle"},
    {"key: src, rat: 5/s, burst: 5", "did you mean \"rate\"?"},
    {"key: src, rate: 5/s, bursts: 5", "did you mean \"burst\"?"},
    {"key: src, interval: 1", "unknown field \"interval\": a limit has key, gap"},
};

static void wrong_limits(void **state)
{
	static const struct wrong block[] = {
	    {"rules:\n- name: a\n  limits:\n  - key: src\n    gap: 1ms\n    slots: 3\n", 6,
	     "limits[0].slots: belongs to packets or bytes"},
	    {"rules:\n- name: a\n  limits:\n  - key: src\n    gap:\n      1\n", 6,
	     "limits[0].gap: 1 has no unit"},
	    {"rules:\n- name: a\n  limits:\n  - key: src/24,64\n    64:\n    gap: 1ms\n", 5,
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
	char *text = malloc(PACER_DOC_MAX + 1), *set;
	struct policy_error error;

	(void)state;
	memset(text, '#', PACER_DOC_MAX);
	memcpy(text, "rules: []\n", 10);
	policy_free(policy_parse(text, PACER_DOC_MAX - 1, &error));
	refuse(text, PACER_DOC_MAX, 0, "65536 or more bytes: a policy has at most 65535");
	text[PACER_DOC_MAX - 1] = 0;
	assert_null(policy_set(text, PACER_DOC_MAX - 1, "mode", "monitor", &error));
	assert_non_null(strstr(error.text, "65549 bytes: at most 65535"));
	text[PACER_DOC_MAX - strlen("mode: monitor\n")] = 0;
	assert_null(policy_set(text, strlen(text), "mode", "monitor", &error));
	assert_non_null(strstr(error.text, "65536 bytes: at most 65535"));
	text[PACER_DOC_MAX - 1 - strlen("mode: monitor\n")] = 0;
	set = policy_set(text, strlen(text), "mode", "monitor", &error);
	assert_non_null(set);
	assert_int_equal(strlen(set), PACER_DOC_MAX - 1);
	free(set);
	free(text);
}

/* In the place of any value: a list in a list, fields, nothing, and more than there is room for. */
static void no_value_will_do(void **state)
{
	static const char *const place[] = {
	    "memory: %s\nrules: []\n",
	    "withstand: %s\nrules: []\n",
	    "bans: %s\nrules: []\n",
	    "mode: %s\nrules: []\n",
	    "clock: %s\nrules: []\n",
	    "else: %s\nrules: []\n",
	    "allow: [%s]\nrules: []\n",
	    "flow_idle: %s\nrules: []\n",
	    "fleet: {store: %s, name: f}\nrules: []\n",
	    "fleet: {store: 'http://a', name: %s}\nrules: []\n",
	    "fleet: {store: 'http://a', name: f, ca: %s}\nrules: []\n",
	    "sample: {of: %s, k: 1, window: 1s}\nrules: []\n",
	    "sample: {of: all, k: %s, window: 1s}\nrules: []\n",
	    "sample: {of: all, k: 1, window: %s}\nrules: []\n",
	    "sets: [{name: %s, file: f}]\nrules: []\n",
	    "sets: [{name: s, file: %s}]\nrules: []\n",
	    "sets: [{name: s, file: f, value: %s}]\nrules: []\n",
	    "pools: [{name: %s, targets: [a], each: 1, cooldown: 9s}]\nrules: []\n",
	    "pools: [{name: p, targets: [%s], each: 1, cooldown: 9s}]\nrules: []\n",
	    "pools: [{name: p, targets: [a], each: %s, cooldown: 9s}]\nrules: []\n",
	    "rules: [{name: %s, verdict: pass}]\n",
	    "rules: [{name: a, verdict: %s}]\n",
	    "rules: [{name: a, over: %s, limits: [{key: src, gap: 1s}]}]\n",
	    "rules: [{name: a, ban: %s, limits: [{key: src, gap: 1s}]}]\n",
	    "rules: [{name: a, ban: {for: 1s, grow: %s, up_to: 9s, forget: 9s}, limits: []}]\n",
	    "rules: [{name: a, ban: {for: 1s, grow: x2, up_to: %s, forget: 9s}, limits: []}]\n",
	    "rules: [{name: a, limits: [{key: %s, gap: 1s}]}]\n",
	    "rules: [{name: a, limits: [{key: src, gap: %s}]}]\n",
	    "rules: [{name: a, limits: [{key: src, gap: 1s, of: %s}]}]\n",
	    "rules: [{name: a, limits: [{key: src, gap: 1s, entries: %s}]}]\n",
	    "rules: [{name: a, limits: [{key: src, gap: 1s, ceiling: %s}]}]\n",
	    "rules: [{name: a, limits: [{key: src, packets: 1, window: %s}]}]\n",
	    "rules: [{name: a, limits: [{key: src, packets: 1, window: 9s, slots: %s}]}]\n",
	    "rules: [{name: a, limits: [{key: src, rate: %s, burst: 5}]}]\n",
	    "rules: [{name: a, limits: [{key: src, rate: 5/s, burst: %s}]}]\n",
	    "rules: [{name: a, limits: [{key: 'src/[9,8],9', rate: 9/s, burst: 9, wider: %s}]}]\n",
	    "rules: [{name: a, verdict: pass, match: {src: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {proto: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {dport: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {vlan: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {flags: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {icmp_type: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {icmpv6_type: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {icmp_type: 3, icmp_code: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {ttl: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {dscp: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {fragment: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {options: %s}}]\n",
	    "rules: [{name: a, verdict: pass, match: {len: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {ether_type: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {ether_src: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {payload: [%s]}}]\n",
	    "rules: [{name: a, verdict: pass, match: {inner: %s}}]\n",
	};
	static char text[2000], most[600];
	const char *const value[] = {"[[1]]", "{a: 1}", "\"\"", most};

	(void)state;
	memset(most, 'x', sizeof(most) - 1);
	for (size_t i = 0; i < ARRAY(place); i++)
		for (size_t k = 0; k < ARRAY(value); k++) {
			int n = snprintf(text, sizeof(text), place[i], value[k]);

			refuse(text, (size_t)n, 1, ": ");
		}
}

/* As many sets, and values of them, as there is room for, and one more. */
static void too_many_sets(void **state)
{
	static char text[PACER_DOC_MAX];
	static const struct {
		int rules, names;
		const char *head, *says;
	} w[] = {
	    {1, 32, NULL, NULL},
	    {1, 33, NULL, "a match names 32 sets at the most: put some into one file"},
	    {2, 32, NULL, NULL},
	    {3, 22, NULL, "a policy names 64 values of sets at the most"},
	    {0, 16, "allow", NULL},
	    {0, 17, "allow", "it names 16 sets at the most"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY(w); i++) {
		size_t n = (size_t)sprintf(text, "sets: [{name: s, file: f, value: 2}]\n");

		if (w[i].head)
			n += (size_t)sprintf(text + n, "%s: [", w[i].head);
		else
			n += (size_t)sprintf(text + n, "rules:\n");
		for (int r = 0; r < (w[i].rules ? w[i].rules : 1); r++) {
			if (w[i].rules)
				n += (size_t)sprintf(
				    text + n, "- {name: r%d, verdict: pass, match: {src: [", r);
			for (int k = 0; k < w[i].names; k++)
				n += (size_t)sprintf(text + n, "%s'@s=v%d'", k ? ", " : "",
						     r * w[i].names + k);
			n += (size_t)sprintf(text + n, w[i].rules ? "]}}\n" : "]\nrules: []\n");
		}
		if (w[i].says)
			refuse(text, n, w[i].rules + 2, w[i].says);
		else
			policy_free(parse(text));
	}
}

/* --- names, and the first and the last of what will do ---------------------------------------- */

/* What each name of a field stands for: where the field is in a match, and its names. */
static const struct {
	const char *field;
	size_t at;
	struct {
		const char *name;
		uint32_t value;
	} names[26];
} named[] = {
    {"proto",
     offsetof(struct policy_match, proto),
     {{"icmp", 1},  {"igmp", 2},   {"ipip", 4},	   {"tcp", 6},	  {"egp", 8},
      {"udp", 17},  {"dccp", 33},  {"ipv6", 41},   {"rsvp", 46},  {"gre", 47},
      {"esp", 50},  {"ah", 51},	   {"icmpv6", 58}, {"eigrp", 88}, {"ospf", 89},
      {"pim", 103}, {"vrrp", 112}, {"l2tp", 115},  {"sctp", 132}, {"udplite", 136}}},
    {"dscp",
     offsetof(struct policy_match, dscp),
     {{"cs0", 0},   {"cs1", 8},	  {"cs2", 16},	{"cs3", 24},  {"cs4", 32},  {"cs5", 40},
      {"cs6", 48},  {"cs7", 56},  {"af11", 10}, {"af12", 12}, {"af13", 14}, {"af21", 18},
      {"af22", 20}, {"af23", 22}, {"af31", 26}, {"af32", 28}, {"af33", 30}, {"af41", 34},
      {"af42", 36}, {"af43", 38}, {"ef", 46},	{"va", 44},   {"lephb", 1}}},
    {"icmp_type",
     offsetof(struct policy_match, icmp_type),
     {{"echo-reply", 0},
      {"destination-unreachable", 3},
      {"source-quench", 4},
      {"redirect", 5},
      {"echo-request", 8},
      {"router-advertisement", 9},
      {"router-solicitation", 10},
      {"time-exceeded", 11},
      {"parameter-problem", 12},
      {"timestamp-request", 13},
      {"timestamp-reply", 14},
      {"info-request", 15},
      {"info-reply", 16},
      {"address-mask-request", 17},
      {"address-mask-reply", 18}}},
    {"icmpv6_type",
     offsetof(struct policy_match, icmpv6_type),
     {{"destination-unreachable", 1},
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
      {"mld2-listener-report", 143}}},
    {"ether_type",
     offsetof(struct policy_match, ether_type),
     {{"ip", 0x0800},
      {"arp", 0x0806},
      {"ip6", 0x86dd},
      {"lldp", 0x88cc},
      {"mpls", 0x8847},
      {"pppoes", 0x8864},
      {"pppoed", 0x8863}}},
};

static void names(void **state)
{
	char buf[1024], match[128];

	(void)state;
	for (size_t i = 0; i < ARRAY(named); i++)
		for (size_t k = 0; named[i].names[k].name; k++) {
			struct policy *policy;
			uint32_t value = named[i].names[k].value;

			snprintf(match, sizeof(match), "%s: %s", named[i].field,
				 named[i].names[k].name);
			snprintf(buf, sizeof(buf),
				 "rules:\n- {name: a, verdict: drop, match: {%s}}\n", match);
			policy = parse(buf);
			assert_range((const struct range *)((const char *)&policy->rule->match +
							    named[i].at),
				     value, value);
			policy_free(policy);
		}
}

/* What `why` reads of a packet: one type of its family, one DSCP. */
static void one_value(void **state)
{
	uint32_t value;

	(void)state;
	assert_int_equal(headers_read_type("redirect", 4, &value), 0);
	assert_int_equal(value, 5);
	assert_int_equal(headers_read_type("nd-redirect", 6, &value), 0);
	assert_int_equal(value, 137);
	assert_int_equal(headers_read_type("nd-redirect", 4, &value), -1);
	assert_int_equal(headers_read_type("8-9", 4, &value), -1);
	assert_int_equal(headers_read_type("255", 4, &value), 0);
	assert_int_equal(headers_read_type("256", 4, &value), -1);
	assert_int_equal(headers_read_dscp("63", &value), 0);
	assert_int_equal(value, 63);
	assert_int_equal(headers_read_dscp("64", &value), -1);
	assert_int_equal(headers_read_dscp("1-2", &value), -1);
}

#define OF_SET(of)  "rules: []\nsets: [{name: a, " of "}]\n"
#define SAMPLED(of) "rules: []\nsample: {of: all, k: 9, " of "}\n"
#define BANNED(of)  "rules:\n- {name: a, limits: [{key: src, gap: 1s}], ban: {" of "}}\n"
#define BY_VALUES                                                                               \
	"sets: [{name: x, file: /x, value: 2}, {name: y, file: /y, value: 2}, {name: z, file: " \
	"/z, "                                                                                  \
	"value: 2}]\nrules:\n- name: a\n  limits:\n"
#define BY_VALUE(of) "  - {key: 'value(" of ")', packets: 5, window: 1s}\n"

static void the_last_that_will_do(void **state)
{
	static const char *const right[] = {
	    "memory: 64Gi\nrules: []\n",
	    "withstand: 1000Gpps\nrules: []\n",
	    SAMPLED("packets: 1073741823"),
	    BANNED("for: 2s, grow: x2, up_to: 2001ms, forget: 1s"),
	    "rules:\n- {name: a, match: {len: 65535}, verdict: drop}\n",
	    "rules:\n- {name: a, match: {ether_type: arp}, limits: [{key: vlan, gap: 1s}]}\n",
	    BY_VALUES BY_VALUE("x, src") BY_VALUE("x, dst") BY_VALUE("x, src"),
	};
	static const struct wrong w[] = {
	    {"memory: 65Gi\nrules: []\n", 1, "memory: 65Gi is too much: at most 64Gi"},
	    {"withstand: 1001Gpps\nrules: []\n", 1, "1001Gpps is too much: at most 1000Gpps"},
	    {SAMPLED("packets: 1073741824"), 2,
	     "1073741824 is more than a sample's window: at most 1073741823"},
	    {BANNED("for: 2s, grow: x2, up_to: 2s, forget: 1s"), 2,
	     "rules[0].ban: up_to 2s is not more than for 2s: no ban would grow"},
	    {"rules:\n- {name: a, match: {fragment: 1}, verdict: drop}\n", 2,
	     "\"1\" is not known: write first, later or none"},
	    {"rules:\n- {name: a, match: {fragment: 0}, verdict: drop}\n", 2,
	     "\"0\" is not known: write first, later or none"},
	    {"rules:\n- {name: a, match: {inner: 0-0}, verdict: drop}\n", 2,
	     "\"0-0\" is not known: write yes or no"},
	    {OF_SET("file: /f, of: []"), 2, "sets[0]: it is of a file and of a list: write file:"},
	    {OF_SET("value: 2"), 2, "sets[0]: what it is of is missing: write file:"},
	    {"rules: []\nallow: ['!@a']\nsets: [{name: a, of: []}]\n", 2,
	     "allow: \"!@a\" will not do: the list has who is let through"},
	    {"rules:\n- {name: a, match: {dst: '@b'}, verdict: drop}\n", 2,
	     "rules[0].match.dst: there is no set b: add it to sets:"},
	    {"fleet: {store: 'http://a/#', name: f}\nrules: []\n", 1, "is no address of a store"},
	    {"fleet: {store: 'http://a', name: f, key: k}\nrules: []\n", 1,
	     "fleet: cert and key belong together: write both or neither"},
	    {BY_VALUES BY_VALUE("x, src") BY_VALUE("x, dst") BY_VALUE("y, src"), 7,
	     "rules[0].limits[2].key: the limits of a rule count by two values at the most"},
	    {BY_VALUES BY_VALUE("x, src") BY_VALUE("y, src") BY_VALUE("z, src"), 7,
	     "the limits of a rule count by two values at the most"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY(right); i++)
		policy_free(parse(right[i]));
	refuse_all(w, ARRAY(w));
}

/* As many bytes as there is room for, and one more. */
static void the_longest_that_will_do(void **state)
{
	static const char flags[] = "syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn,syn";
	static const struct {
		const char *format;
		int most;
		const char *says;
	} w[] = {
	    {OF_SET("file: %.*s"), POLICY_PATH_MAX - 1, "in at most 255 bytes"},
	    {OF_SET("file: /f, value: 2") "allow: ['@a=%.*s']\n", POLICY_VALUE_MAX - 1,
	     "a value has 1 to 63 bytes"},
	};
	char text[1024], bytes[512];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	for (size_t i = 0; i < ARRAY(w); i++) {
		int n = snprintf(text, sizeof(text), w[i].format, w[i].most, bytes);

		policy_free(parse(text));
		n = snprintf(text, sizeof(text), w[i].format, w[i].most + 1, bytes);
		refuse(text, (size_t)n, 2 + (int)i, w[i].says);
	}
	snprintf(bytes, sizeof(bytes), "flags: 'syn,%s'", flags); /* 63 bytes */
	policy_free(parse(with_match(text, sizeof(text), bytes)));
	snprintf(bytes, sizeof(bytes), "flags: 'none/%s'", flags); /* 64 */
	with_match(text, sizeof(text), bytes);
	refuse(text, strlen(text), 3, "are no TCP flags");
}

/* Values are numbered from 1 in their set, in the order in which they are named. */
static void numbers_of_values(void **state)
{
	struct policy *policy = parse("sets: [{name: x, file: /x, value: 2}, {name: y, file: /y, "
				      "value: 2}]\nrules:\n- {name: a, verdict: drop, match: {src: "
				      "['@x=A', '@y=A', '@x=B', '@x=A', '@x']}}\n");
	static const uint32_t number[] = {1, 1, 2, 1, 0};
	const struct policy_match *m = &policy->rule->match;

	(void)state;
	assert_int_equal(m->n_sets, ARRAY(number));
	for (size_t i = 0; i < ARRAY(number); i++)
		assert_int_equal(m->set[i].number, number[i]);
	policy_free(policy);
}

/* policy_set: the text before and after. */
#define LIMIT	      "limits: [{key: src/24,56, gap: 1ms}]"
#define LONGEST_VALUE "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
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
    {"rules: []\n", "bans", "5", "bans: 5\nrules: []\n"},
    {"rules: []\n", "flows", "5", "flows: 5\nrules: []\n"},
    {"flow_idle: 1m # c\nrules: []\n", "flow_idle", "5s", "flow_idle: 5s # c\nrules: []\n"},
    {"rules: [{name: a, limits: [{key: src, gap: 1s, of: all}]}]", "a.of", "new",
     "rules: [{name: a, limits: [{key: src, gap: 1s, of: new}]}]"},
    {"rules: [{name: a, " LIMIT "}]", "a.over", "pool x-1",
     "rules: [{name: a, over: pool x-1, " LIMIT "}]"},
    {"rules:\n- name: a # c\n  " LIMIT "\n", "a.ban", "30s",
     "rules:\n- name: a # c\n  ban: 30s\n  " LIMIT "\n"},
    {"rules: [{name: a, " LIMIT ", ban: 1m}]", "a.ban", "30s",
     "rules: [{name: a, " LIMIT ", ban: 30s}]"},
    {"rules: [{name: a, " LIMIT ", ban: {for: 1m, grow: x2, up_to: 1h, forget: 1d}}]", "a.ban.grow",
     "x4", "rules: [{name: a, " LIMIT ", ban: {for: 1m, grow: x4, up_to: 1h, forget: 1d}}]"},
    {"rules: [{name: a, " LIMIT ", ban: {for: 1m, grow: x2, up_to: 1h, forget: 1d}}]",
     "a.ban.forget", "2d",
     "rules: [{name: a, " LIMIT ", ban: {for: 1m, grow: x2, up_to: 1h, forget: 2d}}]"},
    {"rules: [{name: a, limits: [{key: all, uses: 5, cooldown: 1s, threshold: 2}]}]", "a.uses", "6",
     "rules: [{name: a, limits: [{key: all, uses: 6, cooldown: 1s, threshold: 2}]}]"},
    {"rules: [{name: a, limits: [{key: all, uses: 5, cooldown: 1s, threshold: 2}]}]", "a.threshold",
     "3", "rules: [{name: a, limits: [{key: all, uses: 5, cooldown: 1s, threshold: 3}]}]"},
    {"rules: [{name: a, limits: [{key: all, uses: 5, cooldown: 1s, max_cooldown: 2s}]}]",
     "a.limits[0].max_cooldown", "3s",
     "rules: [{name: a, limits: [{key: all, uses: 5, cooldown: 1s, max_cooldown: 3s}]}]"},
    {"rules: [{name: a, limits: [{key: src, rate: 5/s, burst: 5}]}]", "a.burst", "9",
     "rules: [{name: a, limits: [{key: src, rate: 5/s, burst: 9}]}]"},
    {"rules: [{name: a, limits: [{key: src, rate: 5/s, burst: 5}]}]", "a.limits[0].rate", "7/m",
     "rules: [{name: a, limits: [{key: src, rate: 7/m, burst: 5}]}]"},
    {"rules: []\npools:\n- {name: a, each: 5}\n- name: b\n  each: 6 # c\n", "pools.b.each", "7",
     "rules: []\npools:\n- {name: a, each: 5}\n- name: b\n  each: 7 # c\n"},
    {"pools: [{name: a, each: 5, cooldown: 1s, max_cooldown: 2s, threshold: 2}]",
     "pools.a.max_cooldown", "3s",
     "pools: [{name: a, each: 5, cooldown: 1s, max_cooldown: 3s, threshold: 2}]"},
    {"pools: [{name: a, each: 5, cooldown: 1s, max_cooldown: 2s, threshold: 2}]",
     "pools.a.threshold", "3",
     "pools: [{name: a, each: 5, cooldown: 1s, max_cooldown: 2s, threshold: 3}]"},
    {"rules: [{name: pools, limits: [{key: src, gap: 1s}]}]", "pools.gap", "2s",
     "rules: [{name: pools, limits: [{key: src, gap: 2s}]}]"},
    {"rules: [{name: pools, limits: [{key: src, gap: 1s}]}]", "pools.limits[0].gap", "2s",
     "rules: [{name: pools, limits: [{key: src, gap: 2s}]}]"},
    {"mode: !!str enforce\nrules: []", "mode", "monitor", "mode: monitor\nrules: []"},
    {"mode: x\nrules: []", "mode", LONGEST_VALUE, "mode: " LONGEST_VALUE "\nrules: []"},
};

static void sets(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(set_case); i++) {
		struct policy_error error = {.line = -1};
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
static const char shared_limit[] = "rules:\n- name: a\n  limits: [&l {key: src, gap: 1ms}]\n"
				   "- name: b\n  limits: [*l]";
static const char shared_ban[] = "rules:\n- name: a\n  ban: &b {for: 1s, up_to: 1h}\n"
				 "- name: b\n  ban: *b";

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
     "b.gap: no such field that can be set; there are over, ban, packets, window"},
    {two, "b.slots", "2", 6, "b.slots: no such field that can be set; there are over, ban, p"},
    {two, "b.key", "dst", 6, "b.key: no such field"},
    {two, "b.name", "dst", 6, "b.name: no such field"},
    {two, "b.", "dst", 6, "b.: no such field"},
    {two, "b.limits[0].gap", "2ms", 8,
     "b.limits[0].gap: no such field that can be set; there are packets, window"},
    {two, "b.limits[0].key", "dst", 8, "no such field that can be set"},
    {"rules:\n- name: a\n  limits:\n  - {key: src, packets: 1, window: 1s}\n"
     "  - {key: src, gap: 1ms}\n",
     "a.limits[0].gap", "2ms", 4,
     "a.limits[0].gap: no such field that can be set; there are packets, window"},
    {two, "b.limits[0].key", "src/16,48", 8, "b.limits[0].key: no such field that can be set"},
    {two, "b.limits[1].gap", "2ms", 6, "no such limit: the rule has 1, counted from 0"},
    {two, "b.limits[9999].gap", "2ms", 0, "write RULE.limits[N].FIELD"},
    {two, "b.limits[0]", "2ms", 0, "write RULE.limits[N].FIELD"},
    {two, "b.limits[].gap", "2ms", 0, "write RULE.limits[N].FIELD"},
    {two, "b.limits[-1].gap", "2ms", 0, "write RULE.limits[N].FIELD"},
    {two, "b.limits", "2ms", 6, "no such field"},
    {two, "a.ban.for", "1m", 2, "a.ban.for: no such field that can be set; a ban that grows has"},
    {"rules:\n- name: a\n  ban: {for: 1m, fleet: yes}\n", "a.ban.fleet", "no", 3,
     "a.ban.fleet: no such field that can be set; a ban that grows has for, grow"},
    {two, "a.over", "pool ", 0, "a.over: \"pool \" will not do"},
    {two, "a.over", "pool a b", 0, "a.over: \"pool a b\" will not do"},
    {two, "pools.x.each", "1", 0, "pools.x.each: no such pool: there is none"},
    {"pools: [{name: x}, {name: y}]", "pools.z.each", "1", 0, "no such pool: there are x, y"},
    {"pools: [{name: x, each: 1, cooldown: 1s}]", "pools.x.targets", "z", 1,
     "pools.x.targets: no such field that can be set; there are each, cooldown"},
    {"pools: [{name: x, each: 1, cooldown: 1s}]", "pools.x.threshold", "1", 1,
     "there are each, cooldown"},
    {two, "memory", "1G", 0,
     "memory: no such field that can be set: write mode, unparsed, clock, bans, flows, flow_idle, "
     "RULE.FIELD, RULE.limits[N].FIELD or pools.NAME.FIELD"},
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
    {two, "mode", LONGEST_VALUE "a", 0, "will not do: 1 to 64"},
    {"mode: [x]\nrules: []", "mode", "y", 1, "mode: not written as one value"},
    {"mode: |\n  x\nrules: []", "mode", "y", 1, "mode: not written as one value"},
    {"mode: >\n  x\nrules: []", "mode", "y", 1, "mode: not written as one value"},
    {"? rules\n: []", "mode", "y", 1, "mode: cannot be set in this text"},
    {"&r {rules: []}", "mode", "y", 1, "mode: cannot be set in this text"},
    {"mode: &m x\nclock: *m", "mode", "y", 1, "mode: shared with another place"},
    {"mode: &m x\nclock: *m", "clock", "y", 1, "clock: shared with another place"},
    {"mode: &m x\n*m : y", "mode", "y", 1, "mode: shared with another place"},
    {"rules:\n- &r {name: a, limits: [{key: src, gap: 1ms}]}\n- *r", "a.gap", "2ms", 2,
     "a.gap: shared with another place by an alias"},
    {"rules:\n- name: a\n  limits: &l [{key: src, gap: 1ms}]\n- name: b\n  limits: *l", "b.gap",
     "2ms", 3, "b.gap: shared with another place by an alias"},
    {"rules:\n- name: a\n  limits: &l [{key: src, gap: 1ms}]\n- name: b\n  limits: *l", "a.gap",
     "2ms", 3, "a.gap: shared with another place by an alias"},
    {shared_limit, "a.gap", "2ms", 3, "a.gap: shared with another place by an alias"},
    {shared_limit, "b.limits[0].gap", "2ms", 3,
     "b.limits[0].gap: shared with another place by an alias"},
    {shared_ban, "a.ban.for", "2s", 3, "a.ban.for: shared with another place by an alias"},
    {shared_ban, "b.ban.up_to", "2h", 3, "b.ban.up_to: shared with another place by an alias"},
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
		struct policy_error error = {.line = -1};
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

static void assert_sound_throttle(const struct policy_throttle *t)
{
	assert_true(t->uses > 0 && t->uses <= POLICY_USES_MAX);
	assert_true(t->threshold > 0 && t->threshold <= t->uses);
	assert_true(t->cooldown_ns > 0 && t->max_cooldown_ns > t->cooldown_ns);
}

static void assert_sound(const struct policy *policy)
{
	struct pacer_window window;
	struct pacer_rate rate;
	size_t r, i;

	assert_true(policy->n_rules <= PACER_RULES_MAX && policy->n_allow <= POLICY_ALLOW_MAX);
	assert_true(policy->memory_bytes > 0);
	assert_true(policy->n_pools <= PACER_POOLS_MAX);
	assert_true(policy->bans > 0 && policy->bans <= POLICY_BANS_MAX);
	for (i = 0; i < policy->n_pools; i++) {
		assert_true(policy->pool[i].n > 0 && policy->pool[i].n <= PACER_TARGETS_MAX);
		assert_sound_throttle(&policy->pool[i].throttle);
	}
	for (r = 0; r < policy->n_rules; r++) {
		assert_true(policy->rule[r].n_limits >= 1 && policy->rule[r].n_limits <= 8);
		assert_true(strlen(policy->rule[r].name) >= 1 && policy->rule[r].line > 0);
		assert_true(policy->rule[r].over != PACER_OVER_POOL ||
			    policy->rule[r].pool < policy->n_pools);
		for (i = 0; i < policy->rule[r].n_limits; i++) {
			const struct policy_limit *l = &policy->rule[r].limit[i];

			if (l->kind == LIMIT_GAP)
				assert_true(l->gap_ns > 0 && l->rows >= 1 && l->rows <= 2);
			else if (l->kind == LIMIT_THROTTLE)
				assert_sound_throttle(&l->throttle);
			else if (l->kind == LIMIT_RATE)
				assert_int_equal(pacer_rate_profile(&rate, l->cost, l->rate.amount,
								    l->rate.per_ns, l->burst, 0),
						 PACER_RATE_OK);
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
	static const char *const path[] = {"mode",     "clock",	      "dns.over",
					   "dns.gap",  "dns.packets", "dns.limits[2].slots",
					   "dns.uses", "dns.ban",     "pools.scrub.each"};
	uint64_t seed = 88172645463325252ull;
	size_t i, n, len, good = 0, set = 0;
	struct policy *policy;
	char text[2048], *result;

	(void)state;
	for (i = 0; i < 40000; i++) {
		struct policy_error error = {.line = -1};

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
	    cmocka_unit_test(pools),
	    cmocka_unit_test(throttles),
	    cmocka_unit_test(rates),
	    cmocka_unit_test(samples),
	    cmocka_unit_test(keys),
	    cmocka_unit_test(ladders),
	    cmocka_unit_test(ladders_among_limits),
	    cmocka_unit_test(accepted),
	    cmocka_unit_test(amounts),
	    cmocka_unit_test(wrong_documents),
	    cmocka_unit_test(wrong_over_and_ban),
	    cmocka_unit_test(wrong_flows),
	    cmocka_unit_test(wrong_fleets),
	    cmocka_unit_test(wrong_rules),
	    cmocka_unit_test(wrong_matches),
	    cmocka_unit_test(right_matches),
	    cmocka_unit_test(wrong_sets),
	    cmocka_unit_test(wrong_keys_of_sets),
	    cmocka_unit_test(wrong_pools),
	    cmocka_unit_test(wrong_limits),
	    cmocka_unit_test(too_long),
	    cmocka_unit_test(too_many_sets),
	    cmocka_unit_test(no_value_will_do),
	    cmocka_unit_test(sets),
	    cmocka_unit_test(set_of_the_example),
	    cmocka_unit_test(names),
	    cmocka_unit_test(one_value),
	    cmocka_unit_test(the_last_that_will_do),
	    cmocka_unit_test(the_longest_that_will_do),
	    cmocka_unit_test(numbers_of_values),
	    cmocka_unit_test(any_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
