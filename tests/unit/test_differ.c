/* SPDX-License-Identifier: GPL-2.0-only */
/* Two policies, field by field; and the allow-list of a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "example.h"
#include "config/policy.h"

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT	 4096

static struct policy *parse(const char *text)
{
	struct policy_error error = {.line = -1};
	struct policy *policy = policy_parse(text, strlen(text), &error);

	if (!policy)
		fail_msg("%d: %s\n%s", error.line, error.text, text);
	return policy;
}

static void add(const struct policy_difference *d, void *arg)
{
	char *text = arg;
	size_t used = strlen(text);

	snprintf(text + used, TEXT - used, "%s: %s|%s\n", d->field, d->one ? d->one : "-",
		 d->other ? d->other : "-");
}

static void assert_differ(const char *one, const char *other, const char *want)
{
	struct policy *a = parse(one), *b = parse(other);
	char got[TEXT] = "";

	assert_int_equal(policy_diff(a, b, add, got), 0);
	if (strcmp(got, want))
		fail_msg("got:\n%swanted:\n%sof:\n%s---\n%s", got, want, one, other);
	policy_free(a);
	policy_free(b);
}

static void count(const struct policy_difference *d, void *arg)
{
	(void)d;
	++*(int *)arg;
}

static int differences(const char *one, const char *other)
{
	struct policy *a = parse(one), *b = parse(other);
	int n = 0;

	assert_int_equal(policy_diff(a, b, count, &n), 0);
	policy_free(a);
	policy_free(b);
	return n;
}

/* --- every field ------------------------------------------------------------------------------ */

#define OF_NEW(a)     a "\nrules: [{name: r, limits: [{key: src, gap: 1ms, of: new}]}]\n"
#define WHOLE(a)      a "\nrules: [{name: r, limits: [{key: src, gap: 1ms}]}]\n"
#define RULE(a)	      "rules: [{name: r, " a ", limits: [{key: src, gap: 1ms}]}]\n"
#define MATCH(a)      RULE("match: {" a "}")
#define LIMIT(a)      "rules: [{name: r, limits: [{" a "}]}]\n"
#define LADDER(a)     LIMIT("key: 'src/[32,24,16],[64,48]', packets: 5, window: 1s, " a)
#define SET(of)	      WHOLE("sets: [{name: d, " of "}]")
#define POOL(a)	      WHOLE("pools: [{name: p, " a "}]")
#define FLEET(fields) "fleet: {" fields "}\n"
#define ONE_FLEET     FLEET("name: f, store: 'http://a'")
#define SAMPLE(a)     WHOLE("sample: {" a "}")

/* A field of a part, in one policy and in the other, and what is said of it. */
static const struct {
	enum policy_part part;
	const char *field, *one, *other, *want;
} field_case[] = {
    {POLICY_WHOLE, "mode", WHOLE(""), WHOLE("mode: monitor"), "mode: enforce|monitor\n"},
    {POLICY_WHOLE, "allow", WHOLE("allow: 192.0.2.1"), WHOLE("allow: ['fd00::/8', 192.0.2.0/24]"),
     "allow: 192.0.2.1|-\nallow: -|fd00::/8\nallow: -|192.0.2.0/24\n"},
    {POLICY_WHOLE, "unparsed", WHOLE(""), WHOLE("unparsed: pass"), "unparsed: drop|pass\n"},
    {POLICY_WHOLE, "clock", WHOLE(""), WHOLE("clock: exact"), "clock: auto|exact\n"},
    {POLICY_WHOLE, "memory", WHOLE(""), WHOLE("memory: 1Gi"), "memory: 64Mi|1Gi\n"},
    {POLICY_WHOLE, "withstand", "withstand: 1Mpps\nrules: []", "withstand: 2Mpps\nrules: []",
     "withstand: 1M/s|2M/s\n"},
    {POLICY_WHOLE, "rules", WHOLE(""), "rules: []", "rules: r|-\n"},
    {POLICY_WHOLE, "pools", WHOLE(""), POOL("targets: a, each: 5, cooldown: 1s"), "pools: -|p\n"},
    {POLICY_WHOLE, "sets", WHOLE(""), SET("of: 192.0.2.1"), "sets: -|d\n"},
    {POLICY_WHOLE, "bans", WHOLE(""), WHOLE("bans: 20k"), "bans: -|20000\n"},
    {POLICY_WHOLE, "flows", OF_NEW(""), OF_NEW("flows: 20k"), "flows: 65536|20000\n"},
    {POLICY_WHOLE, "flow_idle", OF_NEW(""), OF_NEW("flow_idle: 30s"), "flow_idle: 2m|30s\n"},
    {POLICY_WHOLE, "fleet", FLEET("name: f, store: 'http://a'") "rules: []", "rules: []",
     "fleet.store: http://a|-\nfleet.name: f|-\nfleet.cut_off: deny|-\n"},
    {POLICY_WHOLE, "sample", WHOLE(""), SAMPLE("of: all, k: 8, packets: 9"),
     "sample.of: -|all\nsample.k: -|8\nsample.packets: -|9\nsample.snap: -|0\n"},
    {POLICY_RULE, "name", WHOLE(""), "rules: [{name: s, limits: [{key: src, gap: 1ms}]}]",
     "rules: r|-\nrules: -|s\n"},
    {POLICY_RULE, "match", WHOLE(""), MATCH("dport: 53"), "r.match.dport: -|53\n"},
    {POLICY_RULE, "limits", WHOLE(""),
     "rules: [{name: r, limits: [{key: src, gap: 1ms}, {key: all, gap: 1us}]}]",
     "r.limits[1].key: -|all\nr.limits[1].gap: -|1us\nr.limits[1].rows: -|2\n"},
    {POLICY_WHOLE, "else", WHOLE(""), WHOLE("else: drop"), "else: pass|drop\n"},
    {POLICY_RULE, "verdict", "rules: [{name: r, verdict: drop}]",
     "rules: [{name: r, verdict: pass}]", "r.verdict: drop|pass\n"},
    {POLICY_RULE, "over", WHOLE(""), RULE("over: pass"), "r.over: drop|pass\n"},
    {POLICY_RULE, "ban", ONE_FLEET RULE("ban: 30s"),
     ONE_FLEET RULE("ban: {for: 1m, grow: x2, up_to: 8m, forget: 9m, fleet: yes}"),
     "r.ban: 30s|{for: 1m, grow: x2, up_to: 8m, forget: 9m, fleet: yes}\n"},
    {POLICY_MATCH, "src", MATCH("src: 10.0.0.0/8"), MATCH("src: [10.0.0.0/8, 192.0.2.1]"),
     "r.match.src: -|192.0.2.1\n"},
    {POLICY_MATCH, "dst", MATCH("dst: 10.0.0.0/8"), MATCH("dst: 11.0.0.0/8"),
     "r.match.dst: 10.0.0.0/8|11.0.0.0/8\n"},
    {POLICY_MATCH, "proto", MATCH("proto: 6"), MATCH("proto: 17-18"), "r.match.proto: tcp|17-18\n"},
    {POLICY_MATCH, "sport", MATCH("sport: 1-5"), MATCH("sport: 7"), "r.match.sport: 1-5|7\n"},
    {POLICY_MATCH, "dport", MATCH("dport: [1, 2]"), MATCH("dport: [2, 3]"), "r.match.dport: 1|3\n"},
    {POLICY_MATCH, "flags", MATCH("flags: syn"), MATCH("flags: syn / ack,syn, proto: tcp"),
     "r.match.flags: syn|syn / syn,ack\nr.match.proto: -|tcp\n"},
    {POLICY_MATCH, "icmp_type", MATCH("icmp_type: 8"), MATCH("icmp_type: 0-3"),
     "r.match.icmp_type: echo-request|0-3\n"},
    {POLICY_MATCH, "icmp_code", MATCH("icmp_code: 0"), MATCH("icmp_code: 1-3"),
     "r.match.icmp_code: 0|1-3\n"},
    {POLICY_MATCH, "icmpv6_type", MATCH("icmpv6_type: nd-redirect"), MATCH("icmpv6_type: 135"),
     "r.match.icmpv6_type: nd-redirect|nd-neighbor-solicit\n"},
    {POLICY_MATCH, "icmpv6_code", MATCH("icmpv6_code: 0"), MATCH("icmpv6_code: 1"),
     "r.match.icmpv6_code: 0|1\n"},
    {POLICY_MATCH, "ttl", MATCH("ttl: 0-5"), MATCH("ttl: 255"), "r.match.ttl: 0-5|255\n"},
    {POLICY_MATCH, "dscp", MATCH("dscp: 46"), MATCH("dscp: 1-7"), "r.match.dscp: ef|1-7\n"},
    {POLICY_MATCH, "fragment", MATCH("fragment: first"), MATCH("fragment: [first, later]"),
     "r.match.fragment: -|later\n"},
    {POLICY_MATCH, "options", MATCH("options: yes"), MATCH("options: no"),
     "r.match.options: yes|no\n"},
    {POLICY_MATCH, "len", MATCH("len: 60"), MATCH("len: 60-100"), "r.match.len: 60|60-100\n"},
    {POLICY_MATCH, "payload_len", MATCH("payload_len: 0"), MATCH("payload_len: 468"),
     "r.match.payload_len: 0|468\n"},
    {POLICY_MATCH, "ether_type", MATCH("ether_type: ip"), MATCH("ether_type: 0x86DD"),
     "r.match.ether_type: ip|ip6\n"},
    {POLICY_MATCH, "ether_src", MATCH("ether_src: '02:00:5E'"), MATCH("ether_src: '02'"),
     "r.match.ether_src: 02:00:5e|02\n"},
    {POLICY_MATCH, "ether_dst", MATCH("ether_dst: 'ff:ff:ff:ff:ff:ff'"), MATCH(""),
     "r.match.ether_dst: ff:ff:ff:ff:ff:ff|-\n"},
    {POLICY_MATCH, "payload", MATCH("payload: 3=0x2a"), MATCH("payload: 2 = 0x81FF / 0x81FF"),
     "r.match.payload: 3=0x2a|2=0x81ff/0x81ff\n"},
    {POLICY_MATCH, "inner", MATCH("inner: yes"), MATCH("inner: no"), "r.match.inner: yes|-\n"},
    {POLICY_MATCH, "vlan", MATCH("vlan: none"), MATCH("vlan: 100-199"),
     "r.match.vlan: none|100-199\n"},
    {POLICY_LIMIT, "key", LIMIT("key: src, gap: 1s"), LIMIT("key: flow, gap: 1s"),
     "r.limits[0].key: src/32,64|flow\n"},
    {POLICY_LIMIT, "gap", LIMIT("key: src, gap: 1s"), LIMIT("key: src, gap: 1500ms"),
     "r.limits[0].gap: 1s|1500ms\n"},
    {POLICY_LIMIT, "packets", LIMIT("key: src, packets: 5, window: 2s"),
     LIMIT("key: src, packets: 5pps, window: 2s"), "r.limits[0].packets: 5|10\n"},
    {POLICY_LIMIT, "bytes", LIMIT("key: src, bytes: 10Mbit, window: 1s"),
     LIMIT("key: src, packets: 5, window: 1s"),
     "r.limits[0].bytes: 1250000|-\nr.limits[0].packets: -|5\n"},
    {POLICY_LIMIT, "window", LIMIT("key: src, packets: 5, window: 1s"),
     LIMIT("key: src, packets: 5, window: 2s"), "r.limits[0].window: 1s|2s\n"},
    {POLICY_LIMIT, "slots", LIMIT("key: src, packets: 5, window: 1s"),
     LIMIT("key: src, packets: 5, window: 1s, slots: 8"), "r.limits[0].slots: 10|8\n"},
    {POLICY_LIMIT, "rate", LIMIT("key: src, rate: 10/s, burst: 5"),
     LIMIT("key: src, rate: 20/s, burst: 5"), "r.limits[0].rate: 10/s|20/s\n"},
    {POLICY_LIMIT, "burst", LIMIT("key: src, rate: 10/s, burst: 5"),
     LIMIT("key: src, rate: 10/s, burst: 6"), "r.limits[0].burst: 5|6\n"},
    {POLICY_LIMIT, "entries", LIMIT("key: src, gap: 1s"), LIMIT("key: src, gap: 1s, entries: 4k"),
     "r.limits[0].entries: -|4000\n"},
    {POLICY_LIMIT, "rows", LIMIT("key: src, gap: 1s"), LIMIT("key: src, gap: 1s, rows: 1"),
     "r.limits[0].rows: 2|1\n"},
    {POLICY_LIMIT, "ceiling", LIMIT("key: src, gap: 1ms"),
     LIMIT("key: src, gap: 1ms, ceiling: 2Mpps"), "r.limits[0].ceiling: -|2000000pps\n"},
    {POLICY_LIMIT, "uses", LIMIT("key: all, uses: 100, cooldown: 1s, threshold: 1"),
     LIMIT("key: all, uses: 200, cooldown: 1s, threshold: 1"), "r.limits[0].uses: 100|200\n"},
    {POLICY_LIMIT, "cooldown", LIMIT("key: all, uses: 9, cooldown: 1s, max_cooldown: 3s"),
     LIMIT("key: all, uses: 9, cooldown: 2s, max_cooldown: 3s"), "r.limits[0].cooldown: 1s|2s\n"},
    {POLICY_LIMIT, "max_cooldown", LIMIT("key: all, uses: 9, cooldown: 1s, max_cooldown: 3s"),
     LIMIT("key: all, uses: 9, cooldown: 1s, max_cooldown: 4s"),
     "r.limits[0].max_cooldown: 3s|4s\n"},
    {POLICY_LIMIT, "threshold", LIMIT("key: all, uses: 9, cooldown: 1s, threshold: 2"),
     LIMIT("key: all, uses: 9, cooldown: 1s, threshold: 3"), "r.limits[0].threshold: 2|3\n"},
    {POLICY_LIMIT, "of", LIMIT("key: src, gap: 1s, of: all"), LIMIT("key: src, gap: 1s, of: new"),
     "flows: -|65536\nflow_idle: -|2m\nr.limits[0].of: -|new\n"},
    {POLICY_LIMIT, "fleet",
     FLEET("name: f, store: 'http://a'") "rules: [{name: r, limits: [{key: src, rate: 1/s, burst: "
					 "5, fleet: yes}]}]",
     FLEET("name: f, store: 'http://a'") "rules: [{name: r, limits: [{key: src, rate: 1/s, burst: "
					 "5, fleet: no}]}]",
     "r.limits[0].fleet: yes|-\n"},
    {POLICY_LIMIT, "wider", LADDER("wider: x4"), LADDER("wider: [x4, x15]"),
     "r.limits[0].wider: x4|[x4, x15]\n"},
    {POLICY_POOL, "name", POOL("targets: a, each: 5, cooldown: 1s"),
     WHOLE("pools: [{name: q, targets: a, each: 5, cooldown: 1s}]"), "pools: p|-\npools: -|q\n"},
    {POLICY_POOL, "targets", POOL("targets: a, each: 5, cooldown: 1s, threshold: 1"),
     POOL("targets: b, each: 5, cooldown: 1s, threshold: 1"), "pools.p.targets: a|b\n"},
    {POLICY_POOL, "each", POOL("targets: a, each: 5, cooldown: 1s"),
     POOL("targets: a, each: 6, cooldown: 1s"), "pools.p.each: 5|6\n"},
    {POLICY_POOL, "cooldown", POOL("targets: a, each: 5, cooldown: 1s, max_cooldown: 1m"),
     POOL("targets: a, each: 5, cooldown: 2s, max_cooldown: 1m"), "pools.p.cooldown: 1s|2s\n"},
    {POLICY_POOL, "max_cooldown", POOL("targets: a, each: 5, cooldown: 1s, max_cooldown: 1m"),
     POOL("targets: a, each: 5, cooldown: 1s, max_cooldown: 2m"), "pools.p.max_cooldown: 1m|2m\n"},
    {POLICY_POOL, "threshold", POOL("targets: a, each: 5, cooldown: 1s, threshold: 1"),
     POOL("targets: a, each: 5, cooldown: 1s, threshold: 2"), "pools.p.threshold: 1|2\n"},
    {POLICY_SET, "name", SET("of: 192.0.2.1"), WHOLE("sets: [{name: e, of: 192.0.2.1}]"),
     "sets: d|-\nsets: -|e\n"},
    {POLICY_SET, "file", SET("file: /etc/drop"), SET("file: /etc/drop2"),
     "sets.d.file: /etc/drop|/etc/drop2\n"},
    {POLICY_SET, "value", SET("file: /etc/geo"), SET("file: /etc/geo, value: 2"),
     "sets.d.value: -|2\n"},
    {POLICY_SET, "of", SET("of: 192.0.2.1"), SET("of: 192.0.2.2"),
     "sets.d.of: 192.0.2.1|192.0.2.2\n"},
    {POLICY_SET, "fleet", ONE_FLEET SET("of: 192.0.2.1"),
     ONE_FLEET SET("of: 192.0.2.1, fleet: yes"), "sets.d.fleet: -|yes\n"},
    {POLICY_SAMPLE, "of", SAMPLE("of: all, k: 8, packets: 9"),
     SAMPLE("of: denied, k: 8, packets: 9"), "sample.of: all|denied\n"},
    {POLICY_SAMPLE, "k", SAMPLE("of: all, k: 8, packets: 9"), SAMPLE("of: all, k: 9, packets: 9"),
     "sample.k: 8|9\n"},
    {POLICY_SAMPLE, "packets", SAMPLE("of: all, k: 8, packets: 9"),
     SAMPLE("of: all, k: 8, packets: 1k"), "sample.packets: 9|1000\n"},
    {POLICY_SAMPLE, "window", SAMPLE("of: all, k: 8, window: 9s"),
     SAMPLE("of: all, k: 8, window: 60s"), "sample.window: 9s|1m\n"},
    {POLICY_SAMPLE, "replacement", SAMPLE("of: all, k: 8, packets: 9"),
     SAMPLE("of: all, k: 8, packets: 9, replacement: without"), ""}, /* says nothing else */
    {POLICY_SAMPLE, "snap", SAMPLE("of: all, k: 8, packets: 9"),
     SAMPLE("of: all, k: 8, packets: 9, snap: 64"), "sample.snap: 0|64\n"},
    {POLICY_FLEET, "store", FLEET("name: f, store: 'http://a'") "rules: []",
     FLEET("name: f, store: 'https://b:1'") "rules: []", "fleet.store: http://a|https://b:1\n"},
    {POLICY_FLEET, "name", FLEET("name: f, store: 'http://a'") "rules: []",
     FLEET("name: g, store: 'http://a'") "rules: []", "fleet.name: f|g\n"},
    {POLICY_FLEET, "cert", FLEET("name: f, store: 'http://a', cert: c, key: k") "rules: []",
     FLEET("name: f, store: 'http://a', cert: d, key: k") "rules: []", "fleet.cert: c|d\n"},
    {POLICY_FLEET, "key", FLEET("name: f, store: 'http://a', cert: c, key: k") "rules: []",
     FLEET("name: f, store: 'http://a', cert: c, key: l") "rules: []", "fleet.key: k|l\n"},
    {POLICY_FLEET, "ca", FLEET("name: f, store: 'http://a'") "rules: []",
     FLEET("name: f, store: 'http://a', ca: a") "rules: []", "fleet.ca: -|a\n"},
    {POLICY_FLEET, "cut_off", FLEET("name: f, store: 'http://a'") "rules: []",
     FLEET("name: f, store: 'http://a', cut_off: local") "rules: []",
     "fleet.cut_off: deny|local\n"},
    {POLICY_FLEET, "bans", FLEET("name: f, store: 'http://a'") "rules: []",
     FLEET("name: f, store: 'http://a', bans: yes") "rules: []", "fleet.bans: -|yes\n"},
};

static void test_each_field(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY(field_case); i++) {
		assert_differ(field_case[i].one, field_case[i].other, field_case[i].want);
		assert_differ(field_case[i].one, field_case[i].one, "");
		assert_differ(field_case[i].other, field_case[i].other, "");
	}
}

/* What else a field may hold. */
static void test_other_values(void **state)
{
#define TWO_SETS "sets: [{name: d, of: 192.0.2.1}, {name: g, file: f, value: 2}]\n"
#define OPENING(proto) \
	"rules: [{name: r, match: {proto: " proto "}, limits: [{key: src, gap: 1s, of: new}]}]"
#define POOLED "pools: [{name: p, targets: a, each: 5, cooldown: 1s}]\n"
	static const struct {
		const char *one, *other, *want;
	} cases[] = {
	    {TWO_SETS MATCH("src: ['@d', 10.0.0.1]"), TWO_SETS MATCH("src: ['!@g=x', 10.0.0.1]"),
	     "r.match.src: @d|!@g=x\n"},
	    {TWO_SETS MATCH("dst: '@d'"), TWO_SETS MATCH("dst: 10.0.0.1"),
	     "r.match.dst: @d|10.0.0.1\n"},
	    {TWO_SETS WHOLE("allow: ['@d', 10.0.0.1]"), TWO_SETS WHOLE("allow: [10.0.0.1, '@g=x']"),
	     "allow: @d|@g=x\n"},
	    {"rules: [{name: r, verdict: drop, match: {ether_type: 0x0600-0x0700}}]",
	     "rules: [{name: r, verdict: drop, match: {ether_type: 0x1234}}]",
	     "r.match.ether_type: 0x0600-0x0700|0x1234\n"},
	    {MATCH("flags: none / syn"), MATCH("flags: fin"), "r.match.flags: none / syn|fin\n"},
	    {POOLED RULE("over: pool p"), POOLED RULE("over: drop"), "r.over: pool p|drop\n"},
	    {POOLED "rules: []\nelse: pool p", POOLED "rules: []\nelse: drop",
	     "else: pool p|drop\n"},
	    {POOLED "rules: [{name: r, verdict: pool p}]",
	     POOLED "rules: [{name: r, verdict: drop}]", "r.verdict: pool p|drop\n"},
	    {ONE_FLEET RULE("ban: 30s"), ONE_FLEET RULE("ban: {for: 30s, fleet: yes}"),
	     "r.ban: 30s|{for: 30s, fleet: yes}\n"},
	    {WHOLE("clock: coarse"), WHOLE("clock: exact"), "clock: coarse|exact\n"},
	    {TWO_SETS LIMIT("key: 'value(g, src)', gap: 1s"),
	     TWO_SETS LIMIT("key: 'value(g, dst)+src', gap: 1s"),
	     "r.limits[0].key: value(g, src)|value(g, dst)+src/32,64\n"},
	    {MATCH("payload: 1=0x01020304"), MATCH("payload: 1=0x01020000/0xffff0000"),
	     "r.match.payload: 1=0x01020304|1=0x01020000/0xffff0000\n"},
	    {RULE("ban: {for: 1s, grow: x2, up_to: 4s, forget: 5s}"), RULE("ban: 1s"),
	     "r.ban: {for: 1s, grow: x2, up_to: 4s, forget: 5s}|1s\n"},
	    {SAMPLE("of: admitted, k: 8, packets: 9"), SAMPLE("of: denied, k: 8, packets: 9"),
	     "sample.of: admitted|denied\n"},
	    {LIMIT("key: src, rate: 3600/h, burst: 5"), LIMIT("key: src, rate: 60/m, burst: 5"),
	     ""},
	    {LIMIT("key: src, rate: 8Mbit/s, burst: 64K"),
	     LIMIT("key: src, rate: 1MB/s, burst: 64K"), ""},
	    {LIMIT("key: src, rate: 64KiB/m, burst: 64K"), LIMIT("key: src, rate: 61/m, burst: 5"),
	     "r.limits[0].rate: 524288bit/m|61/m\nr.limits[0].burst: 64000|5\n"},
	    {LIMIT("key: src, rate: 7/h, burst: 5"), LIMIT("key: src, rate: 7/m, burst: 5"),
	     "r.limits[0].rate: 7/h|7/m\n"},
	    {WHOLE("allow: [10.0.0.0/8, 10.0.0.0/8]"), WHOLE("allow: 10.0.0.0/8"), ""},
	    {MATCH("sport: [7, 7]"), MATCH("sport: [8, 8]"), "r.match.sport: 7|8\n"},
	    {"withstand: 1Mpps\nrules: []", "rules: []", "withstand: 1M/s|-\nmemory: -|64Mi\n"},
	    {WHOLE("allow: ['fd00::/8', 192.0.2.0/24]"), WHOLE("allow: 192.0.2.1"),
	     "allow: fd00::/8|-\nallow: 192.0.2.0/24|-\nallow: -|192.0.2.1\n"},
	    {"rules: []", WHOLE(""), "rules: -|r\n"},
	    {OPENING("6-17"), OPENING("tcp"),
	     "flows: 65536|-\nflow_idle: 2m|-\nr.match.proto: 6-17|tcp\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		assert_differ(cases[i].one, cases[i].other, cases[i].want);
		assert_differ(cases[i].one, cases[i].one, "");
		assert_differ(cases[i].other, cases[i].other, "");
	}
}

/* A field that is new has to be told, too. */
static void test_no_field_is_left_out(void **state)
{
	struct policy_field field;

	(void)state;
	for (int part = 0; part < POLICY_PARTS; part++)
		for (size_t i = 0; policy_field((enum policy_part)part, i, &field); i++) {
			size_t found = 0;

			for (size_t k = 0; k < ARRAY(field_case); k++)
				found += (int)field_case[k].part == part &&
					 !strcmp(field_case[k].field, field.name);
			if (found != 1)
				fail_msg("%s of %s: %zu cases", field.name,
					 policy_part_name((enum policy_part)part), found);
			assert_true(*field.value && *field.help);
		}
}

static void test_the_same_in_other_words(void **state)
{
	(void)state;
	assert_differ(example, example, "");
	assert_differ(LIMIT("key: src, gap: 1s"), LIMIT("gap: 1000ms, rows: 2, key: 'src/32,64'"),
		      "");
	assert_differ(WHOLE("memory: 64Mi\nmode: enforce\nclock: auto\nunparsed: drop"), WHOLE(""),
		      "");
	assert_differ(WHOLE("allow: [192.0.2.0/24, 192.0.2.1]"),
		      WHOLE("allow: [192.0.2.1/32, 192.0.2.0/24]"), "");
	assert_differ(MATCH("proto: udp"), MATCH("proto: [17]"), "");
	assert_differ(LADDER("wider: x4"), LADDER("wider: [x4, x16]"), "");
}

/* Lists of numbers; where they say something else, an item is told as it was written. */
static void test_the_same_numbers(void **state)
{
	static const char *const field[] = {"proto",	   "sport",	  "dport", "vlan",
					    "icmp_type",   "icmp_code",	  "len",   "payload_len",
					    "icmpv6_type", "icmpv6_code", "ttl",   "dscp"};
	static const char text[] =
	    "rules: [{name: r, match: {%s: [%s]}, limits: [{key: src, gap: 1ms}]}]";
	char one[256], other[256];

	(void)state;
	for (size_t i = 0; i < ARRAY(field); i++) {
		snprintf(one, sizeof(one), text, field[i], "5, 4, 9, 2-7");
		snprintf(other, sizeof(other), text, field[i], "9, 2-3, 4-7, 3-4");
		assert_differ(one, other, "");
		snprintf(other, sizeof(other), text, field[i], "9, 2-3, 5-7");
		assert_int_not_equal(differences(one, other), 0);
	}
	assert_differ(MATCH("dport: [22, 23, 80, 81]"), MATCH("dport: [81, 22, 23, 80, 82]"),
		      "r.match.dport: -|82\n");
	assert_differ(MATCH("dport: 80-81"), MATCH("dport: [80]"), "r.match.dport: 80-81|80\n");
	assert_differ(MATCH("vlan: [none, 4095]"), MATCH("vlan: [4095, none, none]"), "");
	assert_differ(MATCH("vlan: [none, 4094]"), MATCH("vlan: [4094-4095, none]"),
		      "r.match.vlan: 4094|4094-4095\n");
	assert_differ(MATCH("dport: [4095, 4096]"), MATCH("dport: 4095-4096"), "");
}

/* A ladder is told as the one line that it is, and the limits behind it keep their numbers. */
static void test_ladders(void **state)
{
	(void)state;
	assert_differ(LADDER("wider: x4"),
		      LIMIT("key: 'src/[32,24],[64,56]', packets: 6, window: 1s, wider: x4"),
		      "r.limits[0].key: src/[32,24,16],[64,48]|src/[32,24],[64,56]\n"
		      "r.limits[0].packets: 5|6\n");
	assert_differ("rules: [{name: r, limits: [{key: 'src/[32,24],[64]+dport', rate: 5/s, "
		      "burst: 2, wider: x3}, {key: dst, gap: 1s}]}]",
		      "rules: [{name: r, limits: [{key: src+dport, rate: 5/s, burst: 2}, "
		      "{key: dst, gap: 2s}]}]",
		      "r.limits[0].key: src/[32,24],[64]+dport|src/32,64+dport\n"
		      "r.limits[0].wider: x3|-\nr.limits[1].gap: 1s|2s\n");
}

static void test_the_order_of_rules(void **state)
{
	static const char *const two = "rules:\n- {name: a, limits: [{key: src, gap: 1ms}]}\n"
				       "- {name: b, limits: [{key: src, gap: 2ms}]}\n";
	static const char *const turned = "rules:\n- {name: b, limits: [{key: src, gap: 2ms}]}\n"
					  "- {name: a, limits: [{key: src, gap: 3ms}]}\n";

	(void)state;
	assert_differ(two, turned, "a.limits[0].gap: 1ms|3ms\nrules' order: a, b|b, a\n");
}

/* --- the allow-list of a text ----------------------------------------------------------------- */

#define R    "rules: []\n"
#define SETS "sets: [{name: one, of: []}, {name: geo, file: geo.csv, value: 2}]\n"

/* The text, the list it is to have, and the text then. */
static const struct {
	const char *text, *list[3], *want;
} allow_case[] = {
    {R, {"192.0.2.1"}, "allow: [192.0.2.1]\n" R},
    {"# first\n" R, {"192.0.2.1"}, "# first\nallow: [192.0.2.1]\n" R},
    {"{rules: []}\n", {"192.0.2.1"}, "{allow: [192.0.2.1], rules: []}\n"},
    {"allow: [10.0.0.1] # us\n" R, {NULL}, "allow: [] # us\n" R},
    {"allow: 10.0.0.1 # us\n" R,
     {"10.0.0.1", "fd00::/8"},
     "allow: [10.0.0.1, \"fd00::/8\"] # us\n" R},
    {"allow:\n  - 10.0.0.1\n  - 10.0.0.2 # two\n# rules\n" R,
     {"10.0.0.2"},
     "allow: [10.0.0.2] # two\n# rules\n" R},
    {"allow:\n- 10.0.0.1\n" R, {"10.0.0.2"}, "allow: [10.0.0.2]\n" R},
    {R "allow:\n- 10.0.0.1", {"10.0.0.2"}, R "allow: [10.0.0.2]"},
    {"\"allow\" : [10.0.0.1]\n" R, {"10.0.0.2"}, "\"allow\" : [10.0.0.2]\n" R},
    {"\xef\xbb\xbf# \xc3\xa4\nallow: [10.0.0.1] # \xc3\xb6\n" R,
     {"10.0.0.2"},
     "\xef\xbb\xbf# \xc3\xa4\nallow: [10.0.0.2] # \xc3\xb6\n" R},
    {"{allow: [10.0.0.1], rules: []}", {"10.0.0.2"}, "{allow: [10.0.0.2], rules: []}"},
    {"allow: &us [10.0.0.1]\n" R, {"10.0.0.2"}, "allow: [10.0.0.2]\n" R},
    /* Its sets stay, behind the prefixes: with what a value has that YAML would take for more. */
    {SETS "allow: [\"@one\", 10.0.0.1]\n" R, {"10.0.0.2"}, SETS "allow: [10.0.0.2, \"@one\"]\n" R},
    {SETS "allow: ['@geo=a \"b\" \\', \"@one\"]\n" R,
     {NULL},
     SETS "allow: [\"@geo=a \\\"b\\\" \\\\\", \"@one\"]\n" R},
};

static size_t prefixes(const char *const list[3], struct prefix to[3])
{
	size_t n = 0;

	for (; n < 3 && list[n]; n++)
		assert_int_equal(units_prefix(list[n], &to[n]), 0);
	return n;
}

static void test_a_list_is_written(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY(allow_case); i++) {
		struct policy_error error = {0};
		struct prefix list[3];
		size_t n = prefixes(allow_case[i].list, list);
		const char *text = allow_case[i].text;
		char *got = policy_set_allow(text, strlen(text), list, n, &error);

		if (!got)
			fail_msg("%s: %s", text, error.text);
		assert_string_equal(got, allow_case[i].want);
		free(got);
	}
}

/* The longest list that there may be is broken into lines, and is read again. */
static void test_a_long_list(void **state)
{
	static struct prefix list[PACER_ALLOW_MAX];
	struct policy_error error = {0};
	struct policy *policy;
	char *text;

	(void)state;
	for (size_t i = 0; i < PACER_ALLOW_MAX - 1000; i++)
		list[i] = (struct prefix){4, 32, {10, (uint8_t)(i >> 8), (uint8_t)i, 1}};
	text = policy_set_allow("allow: []\n" R, strlen("allow: []\n" R), list,
				PACER_ALLOW_MAX - 1000, &error);
	assert_non_null(text);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_in_range(strcspn(line, "\n"), 0, 100);
	policy = parse(text);
	assert_int_equal(policy->n_allow, PACER_ALLOW_MAX - 1000);
	assert_memory_equal(policy->allow, list, (PACER_ALLOW_MAX - 1000) * sizeof(*list));
	policy_free(policy);
	free(text);
	for (size_t i = 0; i < PACER_ALLOW_MAX; i++)
		list[i] = (struct prefix){
		    6,
		    128,
		    {0xfd, 1, (uint8_t)(i >> 8), (uint8_t)i, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
	text = policy_set_allow(R, strlen(R), list, PACER_ALLOW_MAX, &error);
	assert_non_null(text); /* too long to be loaded, and whole */
	assert_true(strlen(text) >= PACER_DOC_MAX);
	assert_non_null(strstr(text, "fd01:fff:101:101:101:101:101:101]"));
	free(text);
}

/* Of prefixes as short as they can be written it has room for more: quotes are left out then. */
static void test_a_list_without_quotes(void **state)
{
	enum { N = 3200 };
	static struct prefix list[N];
	struct policy_error error = {0};
	struct policy *policy;
	char *text;

	(void)state;
	for (size_t i = 0; i < N; i++)
		list[i] =
		    (struct prefix){6, 48, {0x20, 0x01, 0x0d, 0xb8, (uint8_t)(i >> 8), (uint8_t)i}};
	list[0] = (struct prefix){6, 128, {0xfd}};
	list[N - 1] = (struct prefix){6, 16, {0}};
	text = policy_set_allow(R, strlen(R), list, N, &error);
	assert_non_null(text);
	assert_non_null(strstr(text, "[\"fd00::\", 2001:db8:1::/48, "));
	assert_non_null(strstr(text, " \"::/16\"]"));
	policy = parse(text);
	assert_int_equal(policy->n_allow, N);
	assert_memory_equal(policy->allow, list, sizeof(list));
	policy_free(policy);
	free(text);
}

static void test_a_list_that_is_shared(void **state)
{
	static const char *const shared[] = {
	    "allow: &us [10.0.0.1]\nrules: [{name: r, match: {src: *us}, limits: [{key: src, gap: "
	    "1s}]}]\n",
	    "rules: [{name: r, match: {src: &us [10.0.0.1]}, limits: [{key: src, gap: "
	    "1s}]}]\nallow: *us\n",
	    "rules: [{name: r, match: {src: &us 10.0.0.1}, limits: [{key: src, gap: "
	    "1s}]}]\nallow: [*us]\n",
	};
	struct prefix list[1] = {{4, 32, {10, 0, 0, 2}}};
	struct policy_error error = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY(shared); i++) {
		assert_null(policy_set_allow(shared[i], strlen(shared[i]), list, 1, &error));
		assert_non_null(strstr(error.text, "shared with another place by an alias"));
	}
}

static void test_an_assignment(void **state)
{
	struct policy_error error = {0};
	char *text = policy_assign(WHOLE("mode: enforce # yet"), "mode=monitor", &error);
	char long_path[160];

	(void)state;
	assert_string_equal(text, WHOLE("mode: monitor # yet"));
	free(text);
	assert_null(policy_assign(WHOLE(""), "mode", &error));
	assert_non_null(strstr(error.text, "mode: is not RULE.FIELD=VALUE"));
	snprintf(long_path, sizeof(long_path), "%0128d=monitor", 0);
	assert_null(policy_assign(WHOLE(""), long_path, &error));
	assert_non_null(strstr(error.text, "00=monitor: is not RULE.FIELD=VALUE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_field),
	    cmocka_unit_test(test_other_values),
	    cmocka_unit_test(test_no_field_is_left_out),
	    cmocka_unit_test(test_the_same_in_other_words),
	    cmocka_unit_test(test_the_same_numbers),
	    cmocka_unit_test(test_ladders),
	    cmocka_unit_test(test_the_order_of_rules),
	    cmocka_unit_test(test_a_list_is_written),
	    cmocka_unit_test(test_a_long_list),
	    cmocka_unit_test(test_a_list_without_quotes),
	    cmocka_unit_test(test_a_list_that_is_shared),
	    cmocka_unit_test(test_an_assignment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
