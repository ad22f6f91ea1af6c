/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The classifier that a policy is compiled to, against a matcher that asks one rule after the
 * other, and what it has no room for.
 */
#include "applied.h"
#include "classified.h"
#include "parsed.h"

/* ---- the rule of a packet ---- */

static int in_prefix(const struct prefix *p, const struct pacer_packet *pkt, int at)
{
	int i;

	if (p->family != (pkt->family == PACER_FAMILY_4 ? 4 : 6))
		return 0;
	for (i = 0; i < p->len; i++) {
		int want = p->addr[i / 8] >> (7 - i % 8) & 1;

		if ((int)(pkt->key[at + i / 32] >> (31 - i % 32) & 1) != want)
			return 0;
	}
	return 1;
}

static int in_prefixes(const struct prefix *list, size_t n, const struct pacer_packet *pkt, int at)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (in_prefix(&list[i], pkt, at))
			return 1;
	return !n;
}

static int in_ranges(const struct range *list, size_t n, uint32_t value)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (list[i].low <= value && value <= list[i].high)
			return 1;
	return !n;
}

static int matches(const struct policy_match *m, const struct pacer_packet *pkt)
{
	uint32_t ports = pkt->key[PACER_WORD_PORTS];

	if (!in_prefixes(m->src, m->n_src, pkt, PACER_WORD_SADDR) ||
	    !in_prefixes(m->dst, m->n_dst, pkt, PACER_WORD_DADDR) ||
	    (!in_ranges(m->proto, m->n_proto, pkt->proto) && pkt->ports != PACER_PORTS_ANY) ||
	    !in_ranges(m->vlan, m->n_vlan, pkt->vlan))
		return 0;
	if (pkt->ports == PACER_PORTS_NONE)
		return !m->n_sport && !m->n_dport;
	return pkt->ports != PACER_PORTS_READ || (in_ranges(m->sport, m->n_sport, ports >> 16) &&
						  in_ranges(m->dport, m->n_dport, ports & 0xffff));
}

static void say_prefix(int family)
{
	struct prefix p = {.family = family};
	uint8_t bits = family == 4 ? 32 : 128;
	char text[64];
	uint32_t i;

	p.len = draw() % 3 ? bits - draw() % 6 : draw() % (bits + 1);
	for (i = 0; i < bits / 8u; i++) /* a few networks, so that prefixes meet */
		p.addr[i] = draw() % 4 ? 0x20 * (i < 3) : draw() % 6 ? draw() % 3 : draw();
	if (!(draw() % 20))
		memset(p.addr, 255, bits / 8);
	for (i = p.len; i < bits; i++)
		p.addr[i / 8] &= ~(0x80 >> i % 8);
	units_prefix_text(&p, text, sizeof(text));
	say("\"%s\"", text);
}

static void say_range(uint32_t max)
{
	uint32_t a = draw() % 6 ? draw() % 40 : max - draw() % 3, b;

	a = a > max ? max : a;
	a += max == 255 && a == 1; /* icmp is of one family */
	b = a + draw() % 20;
	if (draw() & 1)
		say("%u", a);
	else
		say("%u-%u", a, !(draw() % 8) || b > max ? max : b);
}

/* A field with a list of a few items, half the time. family: 0 is any. */
static void say_field(const char *name, uint32_t max, int family)
{
	uint32_t n = between(max || family ? 1 : 2, 3), i;

	if (draw() & 1)
		return;
	say("%s%s: [", doc.s[doc.n - 1] == '{' ? "" : ", ", name);
	for (i = 0; i < n; i++) {
		say("%s", i ? ", " : "");
		if (!max)
			say_prefix(family ? family : i & 1 ? 4 : 6);
		else if (max == 4095 && !(draw() % 3))
			say("none");
		else if (max == 4095)
			say("%u-%u", (uint32_t)between(1, 2000), (uint32_t)between(2000, max));
		else
			say_range(max);
	}
	say("]");
}

static const char *last_line(void)
{
	return strrchr(doc.s, '\n') + 1;
}

static void say_random_rules(uint32_t n)
{
	uint32_t i;

	say_again();
	say("rules:\n");
	for (i = 0; i < n; i++) {
		int family = draw() % 3 == 0 ? 0 : draw() & 1 ? 4 : 6;
		bool ported;

		say("- name: r%u\n  limits: [{key: all, gap: 1s}]\n  match: {", i);
		say_field("src", 0, family);
		say_field("dst", 0, family);
		ported = draw() & 1;
		if (!ported)
			say_field("proto", 255, 0);
		else
			say("%sproto: [6, 17-19, 132]", doc.s[doc.n - 1] == '{' ? "" : ", ");
		if (ported || !strstr(last_line(), "proto")) { /* others go with no ports */
			say_field("sport", 65535, 0);
			say_field("dport", 65535, 0);
		}
		say_field("vlan", 4095, 0);
		say("}\n");
	}
}

static uint32_t near_range(const struct range *list, size_t n, uint32_t max)
{
	const struct range *r = &list[n ? draw() % n : 0];
	uint32_t v;

	if (!n || !(draw() % 4))
		return draw() % 4 ? draw() % 64 : draw() % (max + 1);
	v = draw() & 1 ? r->low : r->high;
	v += draw() % 3 ? 0 : draw() & 1 ? 1 : -1;
	return v > max ? max : v;
}

/* An address at a prefix's first or last, or beside it. */
static void near_prefix(const struct prefix *list, size_t n, int family, __u32 *w)
{
	const struct prefix *p = &list[n ? draw() % n : 0];
	int words = family == 4 ? 1 : 4, i, step = draw() % 3 ? 0 : draw() & 1 ? 1 : -1;
	int last = draw() & 1;

	for (i = 0; i < words; i++)
		w[i] = draw() % 4 ? 0x20202020 : draw();
	if (!n || p->family != family || !(draw() % 4))
		return;
	for (i = 0; i < 32 * words; i++) {
		uint32_t bit = i < p->len ? p->addr[i / 8] >> (7 - i % 8) & 1 : (uint32_t)last;

		w[i / 32] = (w[i / 32] & ~(1u << (31 - i % 32))) | bit << (31 - i % 32);
	}
	for (i = words - 1; i >= 0 && step; i--) {
		w[i] += step;
		if (w[i] != (step > 0 ? 0 : ~0u))
			break;
	}
}

static struct pacer_packet near_packet(const struct policy *policy)
{
	const struct policy_match *m = &policy->rule[draw() % policy->n_rules].match;
	int family = draw() & 1 ? 4 : 6;
	struct pacer_packet p = {.family = family == 4 ? PACER_FAMILY_4 : PACER_FAMILY_6};

	near_prefix(m->src, m->n_src, family, &p.key[PACER_WORD_SADDR]);
	near_prefix(m->dst, m->n_dst, family, &p.key[PACER_WORD_DADDR]);
	p.ports = draw() % 4 ? PACER_PORTS_READ : draw() % 4;
	p.proto = near_range(m->proto, m->n_proto, 255);
	p.vlan = near_range(m->vlan, m->n_vlan, PACER_VLAN_NONE);
	p.key[PACER_WORD_PORTS] =
	    near_range(m->sport, m->n_sport, 65535) << 16 | near_range(m->dport, m->n_dport, 65535);
	return p;
}

static void test_random_matches(void **unused)
{
	uint32_t i, k, r, hits = 0, late = 0, misses = 0, beyond = 0;

	(void)unused;
	for (i = 0; i < 150; i++) {
		say_random_rules(i % 3	  ? between(1, 10)
				 : i % 2  ? 64
				 : i % 18 ? between(1, 64)
					  : between(65, PACER_RULES_MAX));
		if (load(doc.s)) {
			assert_non_null(strstr(error.text, "ranges"));
			assert_true(i % 3 == 0);
			continue;
		}
		for (k = 0; k < 400; k++) {
			struct pacer_packet p = near_packet(now.policy);
			struct pacer_rules set = classified(&now.bin, &p);

			for (r = 0; r < now.policy->n_rules; r++)
				if (matches(&now.policy->rule[r].match, &p))
					break;
			if (r == now.policy->n_rules) {
				assert_int_equal(first_of(set), PACER_RULES_MAX);
				misses++;
				continue;
			}
			assert_int_equal(first_of(set), r);
			hits++;
			late += r > 0;
			beyond += r >= 64;
		}
	}
	assert_true(hits > 10000 && late > 5000 && misses > 2000);
	assert_true(beyond > 100);
}

/* A rule with `n` values of a field that do not touch, from `first` on; 64 fit into a rule. */
static void say_values(const char *field, uint32_t n, uint32_t first)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (i % 64 == 0)
			say("%s- name: v%u\n  limits: [{key: all, gap: 1s}]\n  match: {%s: [",
			    i ? "]}\n" : "rules:\n", i, field);
		say("%s", i % 64 ? ", " : "");
		if (!strcmp(field, "src") || !strcmp(field, "dst"))
			say(first & 1 ? "10.0.%u.%u" : "\"2001:db8::%x:%x\"", (2 * i + first) / 256,
			    (2 * i + first) % 256);
		else
			say("%u", 2 * i + first);
	}
	say("]}\n");
}

/* 1023 bounds fit, 1024 are an error that says which field has them. */
static void test_too_many_bounds(void **unused)
{
	static const struct {
		const char *field, *name;
		uint32_t first, fit;
	} cases[] = {
	    {"src", "source prefixes", 1, 511},
	    {"dst", "destination prefixes", 2, 511},
	    {"sport", "source ports", 0, 512},
	    {"sport", "source ports", 1, 511},
	    {"dport", "destination ports", 7, 511},
	    {"vlan", "VLANs", 1, 511},
	    {"len", "their len", 1, 511},
	    {"payload_len", "their payload_len", 1, 511},
	    {"payload_len", "their payload_len", 0, 512},
	};
	uint32_t i;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++) {
		say_again();
		say_values(cases[i].field, cases[i].fit, cases[i].first);
		assert_int_equal(load(doc.s), 0);
		say_again();
		say_values(cases[i].field, cases[i].fit + 1, cases[i].first);
		assert_int_equal(load(doc.s), -1);
		assert_non_null(strstr(error.text, cases[i].name));
		assert_non_null(strstr(error.text, " cut the values into more than 1024 ranges: "
						   "use fewer"));
	}
}

/* Values are numbered through all sets: one of the second is none of the first. */
static void test_values_of_two_sets(void **unused)
{
#define OF(name, value) \
	"- {name: " name ", match: {src: '" value "'}, limits: [{key: all, gap: 1s}]}\n"
	(void)unused;
	assert_int_equal(
	    load("sets:\n- {name: a, file: x, value: 2}\n- {name: b, file: y, value: 2}\n"
		 "rules:\n" OF("r", "@a=XX") OF("s", "@b=YY") OF("t", "@b=ZZ")),
	    0);
#undef OF
	assert_true(now.bin.n_values[0] == 1 && now.bin.n_values[1] == 2);
	assert_true(now.bin.first_value[0] == 0 && now.bin.first_value[1] == 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(now.bin.set_value[i][0].src_in, 1 << i);
}

/* A rule that passes all that it matches has no packet of which its part is not known. */
static void test_unknown_parts(void **unused)
{
	(void)unused;
	assert_int_equal(load("rules:\n- {name: a, match: {proto: udp}, verdict: pass}\n"
			      "- {name: b, match: {sport: 1}, verdict: pass}\n"
			      "- {name: c, match: {proto: udp}, verdict: drop}\n"
			      "- {name: d, match: {dport: 1}, verdict: drop}\n"),
			 0);
	assert_int_equal(now.bin.ruled_out[PACER_PORTS_ANY].word[0], 3);
	assert_int_equal(now.bin.ruled_out[PACER_PORTS_UNKNOWN].word[0], 2);
	assert_int_equal(now.bin.ruled_out[PACER_PORTS_NONE].word[0], 10);
#define COUNTS "limits: [{key: all, packets: 1, window: 1s}], over: "
	assert_int_equal(load("sets: [{name: s, of: []}]\nrules:\n"
			      "- {name: a, match: {proto: udp, payload: 1=0x01}, " COUNTS "pass}\n"
			      "- {name: b, match: {sport: 1, src: '@s'}, " COUNTS "drop}\n"
			      "- {name: c, match: {dport: 1, src: '@s', ttl: 9}, " COUNTS "pass}\n"
			      "- {name: d, match: {dport: 1, ttl: 9}, " COUNTS "pool p}\n"
			      "- {name: e, match: {dport: 1, ttl: 9}, verdict: pool p}\n"
			      "pools: [{name: p, targets: [a0], each: 1, cooldown: 1s}]\n"),
			 0);
#undef COUNTS
	assert_int_equal(now.bin.ruled_out[PACER_PORTS_ANY].word[0], 5);
	assert_int_equal(now.bin.ruled_out[PACER_PORTS_UNKNOWN].word[0], 4);
	assert_int_equal(now.bin.more.passing.word[0], 5);
	assert_int_equal(now.bin.more.byte_rules[PACER_MORE_TTL][PACER_MORE_UNKNOWN].word[0] & 31,
			 27);
	assert_int_equal(now.bin.set_unknown[0][0].src_in, 2);
}

/* The same number in one byte and in two is not the same. */
static void test_bytes_of_payloads(void **unused)
{
	(void)unused;
	assert_int_equal(load("rules:\n- {name: a, match: {payload: 1=0x01}, verdict: drop}\n"
			      "- {name: b, match: {payload: 1=0x0001/0x00ff}, verdict: drop}\n"
			      "- {name: c, match: {payload: 1=0x01, vlan: 1}, verdict: drop}\n"),
			 0);
	assert_int_equal(now.bin.more.probes, 2);
	assert_int_equal(now.bin.more.probe[0].rules.word[0], 5);
	assert_int_equal(now.bin.more.probe[1].rules.word[0], 2);
}

/* So many different items of payload are looked at, and so many limits divided by a fleet. */
static void test_too_many_of_a_kind(void **unused)
{
	(void)unused;
	for (uint32_t more = 0; more < 2; more++) {
		say_again();
		say("rules:\n");
		for (uint32_t i = 0; i < PACER_PROBES_MAX + more; i++)
			say("- {name: r%u, match: {payload: 1=0x%02x}, verdict: drop}\n"
			    "- {name: s%u, match: {payload: 1=0x%02x, vlan: 1}, verdict: drop}\n",
			    i, i, i, i);
		assert_int_equal(load(doc.s), more ? -1 : 0);
		if (more)
			assert_non_null(strstr(error.text, "more than 16 different items of it"));
		say_again();
		say("fleet: {store: 'http://a', name: f}\nrules:\n");
		for (uint32_t i = 0; i < PACER_SHARES + more; i++)
			say("- {name: r%u, limits: [{key: src, packets: %u, window: 9s, entries: "
			    "64, "
			    "fleet: yes}]}\n",
			    i, 100 + i);
		assert_int_equal(load(doc.s), more ? -1 : 0);
		if (more)
			assert_non_null(strstr(error.text, "a fleet divides up to 64 limits"));
	}
}

static int by_id(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

#define TARGET	 "n%08x" /* whose digits have nothing of an order */
#define NAMED(k) ((uint32_t)(k)*2654435761u)

/* A target is known by a hash of its name: two of one hash are refused, in one pool and in two. */
static void test_targets_of_one_hash(void **unused)
{
	static uint64_t of[400000]; /* the hash, and the number that the name has */
	char name[16];
	size_t i = 1;

	(void)unused;
	for (size_t k = 0; k < ARRAY(of); k++) {
		snprintf(name, sizeof(name), TARGET, NAMED(k));
		of[k] = (uint64_t)compile_name_id(name) << 32 | k;
	}
	qsort(of, ARRAY(of), sizeof(*of), by_id);
	while (i < ARRAY(of) && of[i] >> 32 != of[i - 1] >> 32)
		i++;
	assert_true(i < ARRAY(of));
	for (int two = 0; two < 2; two++) {
		say_again();
		say("pools:\n- {name: p, targets: [" TARGET "%s", NAMED(of[i - 1]),
		    two ? "], each: 5, cooldown: 9s}\n- {name: q, targets: [" : ", ");
		say(TARGET "], each: 5, cooldown: 9s}\nrules: []\n", NAMED(of[i]));
		assert_int_equal(load(doc.s), -1);
		assert_non_null(strstr(error.text, "has the same hash as another target's"));
	}
}

/* Only values at which the set of rules changes are bounds. */
static void test_bounds_that_are_none(void **unused)
{
	struct pacer_packet p = {.family = PACER_FAMILY_4};
	uint32_t i;

	(void)unused;
	say_again();
	say_values("proto", 128, 0); /* 0, 2 ... 254: 255 bounds */
	assert_int_equal(load(doc.s), 0);
	say_again();
	say_values("proto", 127, 1);
	say("- name: last\n  limits: [{key: all, gap: 1s}]\n  match: {proto: 255}\n");
	assert_int_equal(load(doc.s), 0);
	p.proto = 255;
	assert_int_equal(pacer_lowest(pacer_classify(&now.bin, &p)), 2);
	say_again();
	say_values("dport", 510, 1);
	say("- name: last\n  limits: [{key: all, gap: 1s}]\n  match: {dport: 60000-65535}\n");
	assert_int_equal(load(doc.s), 0);
	say_again();
	say("rules:\n");
	for (i = 0; i < 40 * 64; i++) { /* adjacent ones are one */
		if (i % 64 == 0)
			say("%s- name: a%u\n  limits: [{key: all, gap: 1s}]\n  match: {src: [",
			    i ? "]}\n" : "", i);
		say("%s10.0.%u.%u", i % 64 ? ", " : "", i / 256, i % 256);
	}
	say("]}\n");
	assert_int_equal(load(doc.s), 0);
	p.key[PACER_WORD_SADDR] = 0x0a000000 + 40 * 64 - 1;
	assert_int_equal(pacer_lowest(pacer_classify(&now.bin, &p)), 39);
	p.key[PACER_WORD_SADDR]++;
	assert_true(!pacer_classify(&now.bin, &p));
}

static void test_no_rules(void **unused)
{
	struct pacer_packet p = {.family = PACER_FAMILY_4};

	(void)unused;
	assert_int_equal(load("rules: []\nmode: monitor\nunparsed: drop\n"), 0);
	assert_true(now.bin.rules.word[0] == 0 && now.bin.dims == 0);
	assert_true(!pacer_classify(&now.bin, &p));
	assert_int_equal(now.bin.flags, PACER_MONITOR | PACER_UNPARSED_DROP);
	assert_int_equal(now.plan.lines, (64 << 20) / 64);
	assert_int_equal(now.plan.lines_used, 0);
	assert_int_equal(now.plan.n_limits, 0);
	assert_int_equal(apply(rule_of("", "{key: src, gap: 1ms}")), 0);
	assert_true(now.bin.rules.word[0] == 1 && !now.bin.dims);
	assert_int_equal(now.bin.serial, 2);
	assert_int_equal(apply("rules: []\n"), 0);
	assert_int_equal(now.plan.n_draining, 0);
	assert_int_equal(now.plan.lines, (64 << 20) / 64);
}

static void test_all_rules(void **unused)
{
	struct pacer_packet p = {.family = PACER_FAMILY_6};
	uint32_t i;

	(void)unused;
	say_again();
	say("rules:\n");
	for (i = 0; i < PACER_RULES_MAX; i++)
		say("- {name: r%u, match: {dport: %u}, limits: [{key: src, gap: 1ms}]}\n", i, i);
	assert_int_equal(load(doc.s), 0);
	assert_true(now.bin.dims & PACER_DIMS_MANY);
	for (i = 0; i < PACER_RULES_MAX; i++) {
		struct pacer_rules set, want = {{0}};

		p.key[PACER_WORD_PORTS] = i;
		want.word[i / 64] = 1ull << i % 64;
		set = classified(&now.bin, &p);
		assert_memory_equal(&set, &want, sizeof(set));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_random_matches),
	    TEST(test_too_many_bounds),
	    TEST(test_values_of_two_sets),
	    TEST(test_unknown_parts),
	    TEST(test_bytes_of_payloads),
	    TEST(test_too_many_of_a_kind),
	    TEST(test_targets_of_one_hash),
	    TEST(test_bounds_that_are_none),
	    TEST(test_no_rules),
	    TEST(test_all_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
