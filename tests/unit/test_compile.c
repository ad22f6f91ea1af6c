/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From policies as their operators write them to what the packet path reads: the classifier against
 * a matcher that asks one rule after the other, keys, limits and their places, and what a change of
 * policy keeps, retires and numbers anew. The last tests pace packets across changes.
 */
#include "applied.h"
#include "classified.h"
#include "parsed.h"
#include "plan/kinds.h"
#include "plan/carry.h"
#include "plan/keymask.h"
#include "plan/resting.h"
#include "rate.h"

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

/* A rule that passes what it matches has no packet of which its part is not known. */
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

/* ---- keys ---- */

static void test_key_masks(void **unused)
{
	static const uint32_t all = ~0u, frag = 0x300, meta = 0x3ff; /* both marks */
	const struct {
		const char *key;
		uint32_t mask4[4], mask6[PACER_KEY_WORDS];
	} cases[] = {
	    {"flow", {all, all, all, meta}, {all, all, all, all, all, all, all, all, all, meta}},
	    {"src", {all, 0, 0, 0}, {all, all}},
	    {"src/32,128", {all, 0, 0, 0}, {all, all, all, all}},
	    {"src/24,56", {0xffffff00, 0, 0, 0}, {all, 0xffffff00}},
	    {"src/1,127", {1u << 31, 0, 0, 0}, {all, all, all, ~1u}},
	    {"src/0,1", {0, 0, 0, 0}, {1u << 31}},
	    {"src/32,0", {all, 0, 0, 0}, {0}},
	    {"src/31,32", {~1u, 0, 0, 0}, {all}},
	    {"src/8,33", {0xff000000, 0, 0, 0}, {all, 1u << 31}},
	    {"src/8,96", {0xff000000, 0, 0, 0}, {all, all, all}},
	    {"dst", {0, all, 0, 0}, {0, 0, 0, 0, all, all}},
	    {"dst/32,128", {0, all, 0, 0}, {0, 0, 0, 0, all, all, all, all}},
	    {"dst/16,48", {0, 0xffff0000, 0, 0}, {0, 0, 0, 0, all, 0xffff0000}},
	    {"src+dport", {all, 0, 0xffff, frag}, {all, all, 0, 0, 0, 0, 0, 0, 0xffff, frag}},
	    {"src/24,64+dport",
	     {0xffffff00, 0, 0xffff, frag},
	     {all, all, 0, 0, 0, 0, 0, 0, 0xffff, frag}},
	    {"all", {0, 0, 0, 0}, {0}},
	};
	char limit[64];
	uint32_t i, k;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++)
		for (k = 0; k < 2; k++) {
			const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];

			snprintf(limit, sizeof(limit), "{key: \"%s\", %s}", cases[i].key,
				 k ? "packets: 9, window: 1s" : "gap: 1ms");
			assert_int_equal(load(rule_of("", limit)), 0);
			assert_memory_equal(t->mask4, cases[i].mask4, sizeof(t->mask4));
			assert_memory_equal(t->mask6, cases[i].mask6, sizeof(t->mask6));
		}
}

/* A key is told by its number alone, but for the names of sets. */
static void test_keys_of_numbers(void **unused)
{
	static const char *const keys[] = {"all",	 "flow",     "src/24,0", "src/0,64",
					   "dst/24,0",	 "dst/0,64", "src+dst",	 "src/0,1+dst/1,0",
					   "dport+vlan", "proto+ttl"};
	char limit[64], text[POLICY_KEY_TEXT], again[POLICY_KEY_TEXT];

	(void)unused;
	for (size_t i = 0; i < ARRAY(keys); i++) {
		struct policy_key key;

		snprintf(limit, sizeof(limit), "{key: '%s', gap: 1s}", keys[i]);
		assert_int_equal(load(rule_of("", limit)), 0);
		key = compile_key_of(now.bin.rule[0].limiter[0].key_id);
		policy_key_text(&now.policy->rule[0].limit[0].key, text, sizeof(text));
		assert_string_equal(policy_key_text(&key, again, sizeof(again)), text);
	}
}

/* A later fragment is no flow of its datagram's number as ports, and none of another datagram. */
static void test_fragment_keys(void **unused)
{
	static __u64 secret[PACER_SECRETS];
	struct pacer_packet p = {.family = PACER_FAMILY_4, .proto = 17}, later, other;
	static const char *const keys[] = {"flow", "src+dport"};
	uint32_t i;

	(void)unused;
	for (i = 0; i < PACER_SECRETS; i++)
		secret[i] = draw();
	p.key[PACER_WORD_PORTS] = 77;
	p.key[PACER_WORD_META] = 17;
	later = p;
	later.fragment = PACER_FRAG_LATER;
	later.key[PACER_WORD_META] |= PACER_META_FRAGMENT;
	other = later;
	other.key[PACER_WORD_PORTS] = 78;
	for (i = 0; i < 2; i++) {
		const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];
		char limit[64];

		snprintf(limit, sizeof(limit), "{key: %s, gap: 1ms}", keys[i]);
		assert_int_equal(load(rule_of("", limit)), 0);
		for (p.family = later.family = other.family = PACER_FAMILY_4;
		     p.family <= PACER_FAMILY_6; p.family++, later.family++, other.family++) {
			struct pacer_hash a = pacer_limiter_hash(t, &p, secret);
			struct pacer_hash b = pacer_limiter_hash(t, &later, secret);
			struct pacer_hash c = pacer_limiter_hash(t, &other, secret);

			assert_true(a.mark != b.mark && b.mark != c.mark && a.mark != c.mark);
		}
	}
}

/* ---- limits ---- */

#define GAP    "{key: src, gap: 1ms}"
#define GAP5   "{key: src, gap: 5ms}"
#define WIN    "{key: src, packets: 9, window: 1s}"
#define WIN2   "{key: src, packets: 9, window: 2s}"
#define USES   "{key: all, uses: 100, cooldown: 1s}"
#define USES10 "{key: all, uses: 1000, cooldown: 10s}"
#define RATE   "{key: src, rate: 100/s, burst: 20}"
#define RATE2  "{key: src, rate: 5/m, burst: 5}"
#define RATE_AND(clock)                                                                  \
	"clock: " clock "\nrules:\n- {name: a, match: {dport: 7}, limits: [" RATE "]}\n" \
	"- {name: b, limits: [{key: src, packets: 9, window: 1s, slots: 5}]}\n"
#define NET "{key: \"src/24,56\", packets: 9, window: 1s}"

static void test_limiters(void **unused)
{
	static const struct {
		const char *limits, *limiters;
	} cases[] = {
	    {GAP, "Sg+"},
	    {WIN, "Rw+"},
	    {GAP ", " WIN, "Rgw+"},
	    {WIN ", " GAP, "Rgw+"},
	    {GAP ", " NET, "Sg+ Rw+"},
	    {WIN ", " WIN2, "Rw+ Rw+"},
	    {WIN ", " WIN2 ", " GAP, "Rgw+ Rw+"},
	    {GAP ", " WIN ", " WIN2, "Rgw+ Rw+"},
	    {WIN ", " GAP ", " GAP5, "Rgw+ Sg+"},
	    {"{key: src, gap: 1ms, rows: 1}, " WIN, "Sg+ Rw+"},
	    {WIN ", {key: src, gap: 1ms, rows: 1}", "Rw+ Sg+"},
	    {"{key: src, gap: 1ms, ceiling: 1Mpps}, " WIN, "Sg+ Rw+"},
	    {WIN ", {key: src, gap: 1ms, ceiling: 1Mpps}", "Rw+ Sg+"},
	    {"{key: src, gap: 1ms, entries: 99}, " WIN, "Sg+ Rw+"},
	    {WIN ", {key: src, gap: 1ms, entries: 99}", "Rw+ Sg+"},
	    {"{key: src, packets: 9, window: 1s, entries: 99}, " GAP, "Rgw+"},
	    {GAP ", {key: src, packets: 9, window: 1s, entries: 99}", "Rgw+"},
	    /* units of 2^29 ns, and of 2^16: more than a sixteenth of 1 ms; of 1h it is 2^15 */
	    {"{key: src, packets: 9, window: 800d}, " GAP, "Rw+ Sg+"},
	    {GAP ", {key: src, packets: 9, window: 800d}", "Sg+ Rw+"},
	    {GAP ", {key: src, packets: 9, window: 800d}, " WIN, "Rw+ Rgw+"},
	    {"{key: src, packets: 9, window: 800d}, " WIN ", " GAP, "Rw+ Rgw+"},
	    {"{key: src, packets: 9, window: 800d}, {key: src, gap: 8589934592ns}", "Rgw+"},
	    {"{key: src, packets: 9, window: 800d}, {key: src, gap: 8589934591ns}", "Rw+ Sg+"},
	    {"clock: exact\n", NULL},
	    {"{key: src, packets: 9, window: 1h}, " GAP, "Rgw+"},
	    {"{key: src, packets: 9, window: 3h}, " GAP, "Rw+ Sg+"},
	    {"{key: src, packets: 9, window: 160ms}, {key: src, gap: 1ns}", "Rgw+"},
	    {"{key: all, packets: 9, window: 800d}, {key: all, gap: 1ms}", "Rw+ Sg+"},
	    {"{key: all, gap: 1ms}, {key: all, packets: 9, window: 1s}", "Rgw+"},
	    {"{key: all, packets: 9, window: 1s}, {key: all, gap: 1ms}", "Rgw+"},
	    {"{key: src, gap: 1ms}, {key: dst, packets: 9, window: 1s}", "Sg+ Rw+"},
	};
	const char *head = "";
	uint32_t i;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++) {
		if (!cases[i].limiters) {
			head = cases[i].limits;
			continue;
		}
		assert_int_equal(load(rule_of(head, cases[i].limits)), 0);
		assert_string_equal(limiters_text(0), cases[i].limiters);
	}
}

static void test_one_record_for_all(void **unused)
{
	static const struct {
		const char *limits;
		uint32_t sets, shared, lines;
	} cases[] = {
	    {"{key: all, gap: 1ms}", 1, 0, 1},
	    {"{key: all, packets: 9, window: 1s}", 0, 1, 1},
	    {"{key: all, packets: 9, window: 1s}, {key: all, gap: 1ms}", 0, 1, 1},
	    {"{key: all, packets: 999, window: 1s}", 0, 1, 1},
	    {"{key: all, packets: 999, window: 1s}, {key: all, gap: 1ms}", 0, 1, 1},
	    {"{key: all, gap: 1ms}, {key: all, packets: 9, window: 1s, slots: 58}", 0, 1, 4},
	    {"{key: all, packets: 9, window: 1s, slots: 11}, {key: all, gap: 1ms}", 0, 1, 1},
	    {"{key: all, packets: 999, window: 1s, slots: 11}, {key: all, gap: 1ms}", 0, 1, 2},
	};
	uint32_t i;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++) {
		const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];

		assert_int_equal(load(rule_of("memory: 256", cases[i].limits)), 0);
		assert_int_equal(now.bin.rule[0].n_limiters, 1);
		assert_int_equal(t->sets, cases[i].sets);
		assert_int_equal(t->shared, cases[i].shared);
		assert_int_equal(compile_limiter_lines(t), cases[i].lines);
		assert_int_equal(now.plan.lines_used, cases[i].lines);
	}
}

static void test_widths(void **unused)
{
	static const struct {
		uint32_t packets, slots, units;
	} cases[] = {{256, 1, 4},   {256, 10, 4},  {256, 11, 8},  {256, 26, 8}, {256, 27, 12},
		     {256, 42, 12}, {256, 43, 16}, {256, 58, 16}, {255, 1, 2},	{255, 10, 2},
		     {255, 14, 2},  {255, 15, 8},  {9, 58, 16}};
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];
	char limit[128];
	uint32_t i, entries;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++)
		for (entries = 1; entries < 300; entries += 1 + entries / 3) {
			snprintf(limit, sizeof(limit),
				 "{key: src, packets: %u, window: 1s, slots: %u, entries: %u}",
				 cases[i].packets, cases[i].slots, entries);
			assert_int_equal(load(rule_of("", limit)), 0);
			assert_int_equal(t->window.ring, cases[i].slots + 1);
			assert_int_equal(t->units, cases[i].units);
			assert_true(2 * t->sets >= entries && 2 * t->sets <= entries + 1);
			/* and what else the last line holds */
			assert_in_range(t->shared, t->sets, t->sets + (t->units == 2));
			assert_int_equal(compile_limiter_lines(t),
					 ((2 * t->sets + t->shared) * cases[i].units + 3) / 4);
		}
}

static void test_ceiling(void **unused)
{
	static const struct {
		const char *gap, *ceiling;
		uint64_t gap_ns, per_s;
	} cases[] = {
	    {"1ms", "2Mpps", MS, 2000000},	  {"1ms", "7kpps", MS, 7000},
	    {"3ms", "100kpps", 3 * MS, 100000},	  {"1s", "7pps", SECOND, 7},
	    {"250us", "500kpps", MS / 4, 500000}, {"10s", "999pps", 10 * SECOND, 999},
	};
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];
	char limit[96];
	uint32_t i, k;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++)
		for (k = 0; k < 2; k++) {
			uint64_t cells;

			snprintf(limit, sizeof(limit), "{key: src, gap: %s, ceiling: %s}",
				 cases[i].gap, cases[i].ceiling);
			assert_int_equal(load(rule_of(k ? "clock: coarse" : "clock: exact", limit)),
					 0);
			cells = 7ull * t->sets;
			assert_true(cells * SECOND <= cases[i].per_s * cases[i].gap_ns);
			assert_true((cells + 7) * SECOND > cases[i].per_s * cases[i].gap_ns);
		}
	/* a line has seven cells: less is no sketch */
	assert_int_equal(load(rule_of("", "{key: src, gap: 1ms, ceiling: 6999pps}")), -1);
	assert_non_null(strstr(error.text, "limits[0].ceiling"));
	assert_non_null(strstr(error.text, "7000pps"));
	assert_int_equal(load(rule_of("", "{key: src, gap: 3ns, ceiling: 1pps}")), -1);
	assert_non_null(strstr(error.text, "2333333334pps"));
}

static void test_entries_of_a_sketch(void **unused)
{
	(void)unused;
	assert_int_equal(load(rule_of("", "{key: src, gap: 1ms, entries: 7}")), 0);
	assert_int_equal(now.bin.rule[0].limiter[0].sets, 1);
	assert_int_equal(load(rule_of("", "{key: src, gap: 1ms, entries: 8}")), 0);
	assert_int_equal(now.bin.rule[0].limiter[0].sets, 2);
}

/* ---- room ---- */

/* What does not fit is an error with a remedy, whatever the numbers. */
static void test_no_room(void **unused)
{
	static const struct {
		const char *head, *limits;
	} cases[] = {
	    {"memory: 64", GAP},
	    {"memory: 64", WIN},
	    {"memory: 128", "{key: all, gap: 1ms}, {key: dst, gap: 1s, entries: 8}"},
	    {"memory: 128", "{key: src, packets: 999, window: 1s, entries: 1}"},
	    {"memory: 64", "{key: src, packets: 1, window: 1s, entries: 1}"},
	    {"memory: 1Ki", WIN},
	    {"memory: 2Ki", WIN ", " NET},
	    {"memory: 192", "{key: all, packets: 1, window: 1s, slots: 58}"},
	    {"memory: 192", "{key: src, packets: 1, window: 1s, entries: 1}, {key: dst, gap: 1s}"},
	    {"", "{key: src, packets: 1, window: 1s, entries: 20G}"},
	    {"", "{key: src, gap: 1s, entries: 100G}"},
	    {"", "{key: src, gap: 1s, entries: 4611686018427387904}"},
	    {"", "{key: src, packets: 1, window: 1s, slots: 58, entries: 4611686018427387904}"},
	    {"", "{key: src, packets: 1, window: 1s, slots: 11, entries: 4099276460824344804}"},
	    {"", "{key: src, gap: 20000h, ceiling: 4611686018427387904pps}"},
	    {"memory: 64Gi", "{key: src, gap: 1s, entries: 4611686018427387904}"},
	};
	uint32_t i;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++) {
		assert_int_equal(load(rule_of(cases[i].head, cases[i].limits)), -1);
		assert_non_null(strstr(error.text, "no room"));
		assert_non_null(strstr(error.text, "rule a"));
		assert_non_null(strstr(error.text, "raise memory"));
		assert_int_equal(error.line, 4);
	}
	assert_int_equal(load("memory: 63\nrules: []\n"), -1);
	assert_non_null(strstr(error.text, "write 64 or more"));
	assert_int_equal(load("memory: 64\nrules: []\n"), 0);
	assert_int_equal(load(rule_of("memory: 2Ki", WIN)), 0);
	assert_int_equal(now.plan.lines_used, 32);
	assert_int_equal(
	    load(rule_of("memory: 192", "{key: src, packets: 1, window: 1s, entries: 1}")), 0);
	assert_int_equal(load(rule_of("memory: 64Gi", GAP)), 0);
	assert_true(now.plan.lines == PACER_LINES_MAX);
}

static void test_memory(void **unused)
{
	uint64_t bytes;

	(void)unused;
	for (bytes = 4096; bytes < 1ull << 34; bytes = bytes * 3 / 2 + 7) {
		uint64_t used = 0, k;

		say_again();
		say("memory: %llu\nrules:\n- name: a\n  limits: [" GAP ", " NET "]\n",
		    (unsigned long long)bytes);
		if (bytes < 6144) {
			assert_int_equal(load(doc.s), 0);
			continue;
		}
		assert_int_equal(load(doc.s), 0);
		assert_true(now.plan.lines * 64 <= bytes && (now.plan.lines + 1) * 64 > bytes);
		for (k = 0; k < now.bin.rule[0].n_limiters; k++)
			used += compile_limiter_lines(&now.bin.rule[0].limiter[k]);
		assert_int_equal(now.plan.lines_used, used);
		assert_true(used > now.plan.lines / 2 && used <= now.plan.lines);
	}
}

/* ---- the edges of windows ---- */

static void test_longest_window(void **unused)
{
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];

	(void)unused;
	assert_int_equal(load(rule_of("clock: coarse", "{key: src, packets: 2147483647, "
						       "window: 20015h, slots: 1}, "
						       "{key: src, gap: 20015h}")),
			 0);
	assert_true(t->window.ring_ns == 2 * (20015ull * 3600 * SECOND + RESOLUTION));
	assert_true(t->gap_ns == 20015ull * 3600 * SECOND + RESOLUTION);
	assert_true(t->window.slot_ns >> t->last_shift < PACER_LAST_OFF_MAX);
	assert_true(t->idle_ns >= t->window.ring_ns && t->idle_ns >= t->gap_ns);
	assert_true(compile_limiter_memory_ns(t) == t->idle_ns);
	assert_int_equal(load(rule_of("clock: exact", "{key: src, packets: 1, window: 2ns, "
						      "slots: 2}")),
			 0);
	assert_int_equal(t->window.slot_ns, 2);
	assert_int_equal(t->window.ring, 3);
}

/* From when on a record holds nothing: the window's ring and its gap have passed, and the slack. */
static void test_idle_time(void **unused)
{
	static const struct {
		const char *limits;
		uint64_t idle_ns;
	} cases[] = {
	    {"{key: src, packets: 9, window: 1s, slots: 10}", 1100 * MS},
	    {"{key: src, packets: 9, window: 1s, slots: 10}, {key: src, gap: 1ms}", 1100 * MS},
	    {"{key: src, packets: 9, window: 1s, slots: 10}, {key: src, gap: 1s}", 1100 * MS + 8},
	    {"{key: src, packets: 9, window: 1s, slots: 10}, {key: src, gap: 10s}", 10100 * MS + 8},
	};
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++) {
		assert_int_equal(load(rule_of("clock: exact", cases[i].limits)), 0);
		assert_int_equal(now.bin.rule[0].limiter[0].idle_ns,
				 cases[i].idle_ns + PACER_IDLE_SLACK_NS);
	}
}

static void test_bytes(void **unused)
{
	static const struct {
		const char *bytes;
		uint32_t limit, shift;
	} cases[] = {
	    {"1", 1, 0},
	    {"2147483647", 0x7fffffff, 0},
	    {"2147483648", 0x40000000, 1},
	    {"140737488355327", 0x7fffffff, 16},
	    {"20M", 20000000, 0},
	};
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];
	char limit[96];
	uint32_t i;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++) {
		snprintf(limit, sizeof(limit), "{key: src, bytes: %s, window: 1s}", cases[i].bytes);
		assert_int_equal(load(rule_of("", limit)), 0);
		assert_int_equal(t->window.cost, PACER_COST_BYTES);
		assert_int_equal(t->window.limit, cases[i].limit);
		assert_int_equal(t->window.cost_shift, cases[i].shift);
		assert_int_equal(pacer_window_cost(&t->window, 1), 1);
		assert_true(kind_of_limiter(t)->allowance(t) == (uint64_t)cases[i].limit
								    << cases[i].shift);
	}
}

/* Each rule's packets go to its own pool. */
static void test_pools_of_rules(void **unused)
{
	(void)unused;
	say_again();
	say("pools:\n");
	for (const char *name = "pq"; *name; name++)
		say("- {name: %c, targets: [veth%c], each: 9, cooldown: 1s, max_cooldown: 2s, "
		    "threshold: 9}\n",
		    *name, *name);
	say("rules:\n- {name: a, over: pool q, limits: [{key: src, gap: 1s}]}\n"
	    "- {name: b, over: pool p, limits: [{key: src, gap: 1s}]}\n");
	assert_int_equal(load(doc.s), 0);
	assert_int_equal(now.bin.rule[0].pool, 1);
	assert_int_equal(now.bin.rule[1].pool, 0);
}

/* A set keeps its counter wherever it stands, and a new one has none of those of two policies. */
static void test_counters_of_sets(void **unused)
{
	(void)unused;
	assert_int_equal(load("sets: [{name: a, of: [192.0.2.1]}, {name: b, of: [192.0.2.2]}]\n"
			      "rules: []\n"),
			 0);
	assert_true(now.bin.set_counter[0] == 0 && now.bin.set_counter[1] == 1);
	assert_int_equal(apply("sets: [{name: b, of: [192.0.2.2]}]\nrules: []\n"), 0);
	assert_int_equal(now.bin.set_counter[0], 1);
	assert_int_equal(apply("sets: [{name: c, of: [192.0.2.3]}, {name: b, of: [192.0.2.2]}]\n"
			       "rules: []\n"),
			 0);
	assert_true(now.bin.set_counter[0] == 0 && now.bin.set_counter[1] == 1);
	assert_int_equal(apply("sets: [{name: d, of: [192.0.2.4]}]\nrules: []\n"), 0);
	assert_int_equal(now.bin.set_counter[0], 2);
}

/* ---- the clock ---- */

static void test_clock(void **unused)
{
	static const struct {
		const char *head, *limits;
		bool exact;
	} cases[] = {
	    {"", "{key: src, gap: 64ms}", false},
	    {"", "{key: src, gap: 63999999ns}", true},
	    {"", "{key: src, packets: 9, window: 640ms, slots: 10}", false},
	    {"", "{key: src, packets: 9, window: 639ms, slots: 10}", true},
	    {"", "{key: src, packets: 9, window: 128ms, slots: 2}, {key: src, gap: 1s}", false},
	    {"", "{key: src, packets: 9, window: 128ms, slots: 2}, {key: src, gap: 10ms}", true},
	    {"", "{key: dst, gap: 1s}, {key: src, packets: 9, window: 1s, slots: 58}", true},
	    {"", "{key: src, rate: 1/h, burst: 1}", true}, /* the burst is to be whole */
	    {"", "{key: src, rate: 8Mbit/s, burst: 1G}", true},
	    {"clock: coarse", "{key: src, rate: 1k/s, burst: 5}", false},
	    {"clock: exact", "{key: src, gap: 10s}, {key: src, packets: 9, window: 1h}", true},
	    {"clock: coarse", "{key: src, gap: 1us}, {key: src, packets: 9, window: 1ms}", false},
	};
	uint32_t i, k;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++) {
		uint64_t add = cases[i].exact ? 0 : RESOLUTION;

		assert_int_equal(load(rule_of(cases[i].head, cases[i].limits)), 0);
		assert_int_equal(!!(now.bin.flags & PACER_CLOCK_EXACT), cases[i].exact);
		assert_int_equal(now.plan.resolution_ns, add);
		for (k = 0; k < now.plan.n_limits; k++) {
			const struct plan_limit *at = &now.plan.limit[k];
			const struct policy_limit *l = &now.policy->rule[0].limit[at->limit];
			const struct pacer_limiter *t = &now.bin.rule[0].limiter[at->limiter];

			if (l->kind == LIMIT_GAP)
				assert_int_equal(t->gap_ns, l->gap_ns + add);
			else if (l->kind == LIMIT_RATE)
				assert_int_equal(t->rate.burst_ns,
						 l->burst * l->rate.per_ns / l->rate.amount - add);
			else
				assert_int_equal(t->window.slot_ns,
						 (l->window_ns + add + l->slots - 1) / l->slots);
		}
	}
	assert_int_equal(load("rules: []\n"), 0);
	assert_int_equal(now.bin.flags & PACER_CLOCK_EXACT, 0);
	for (i = 0; i < 2; i++) { /* a pool's targets have a clock, too */
		say_again();
		say("else: pool p\nrules: []\npools:\n- {name: p, targets: [veth1], each: 9, "
		    "cooldown: %ums, max_cooldown: 2s, threshold: 9}\n",
		    i ? 63 : 64);
		assert_int_equal(load(doc.s), 0);
		assert_int_equal(!!(now.bin.flags & PACER_CLOCK_EXACT), i);
	}
	static const char *const shut[] = {"rate: 1k/s, burst: 4", "rate: 1k/h, burst: 1",
					   "rate: 1MB/s, burst: 5513", "rate: 1/h, burst: 1"};
	for (i = 0; i < ARRAY(shut); i++) {
		char limit[64];

		snprintf(limit, sizeof(limit), "{key: src, %s}", shut[i]);
		assert_int_equal(load(rule_of("clock: coarse", limit)), -1);
		assert_int_equal(error.line, 4);
		assert_string_equal(error.text,
				    "rules[0].limits[0].burst: a tick of the coarse clock shorter, "
				    "it lets no packet through: write more, or clock: exact");
	}
	assert_int_equal(load(rule_of("clock: coarse", "{key: src, rate: 1MB/s, burst: 5514}")), 0);
}

/* An entry is 16 bytes, four to a line: `entries` keys have one each, in sets of two. */
static void test_rate_lines(void **unused)
{
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];

	(void)unused;
	assert_int_equal(load(rule_of("", "{key: src, rate: 1/s, burst: 9, entries: 4000}")), 0);
	assert_int_equal(t->units, 1);
	assert_true(2 * t->sets >= 4000 && t->shared >= t->sets);
	assert_int_equal(compile_limiter_lines(t), (2 * t->sets + t->shared + 3) / 4);
	assert_int_equal(t->idle_ns, PACER_IDLE_SLACK_NS);
	assert_int_equal(load(rule_of("", "{key: all, rate: 1/s, burst: 9}")), 0);
	assert_true(t->sets == 0 && t->shared == 1 && t->base + 1 <= now.plan.lines);
	assert_int_equal(compile_limiter_lines(t), 1);
	assert_int_equal(load(rule_of("", RATE ", " RATE2)), 0);
	assert_string_equal(limiters_text(0), "G+ G+"); /* one a limit, though of one key */
}

/* A draining rate is asked for until the TAT of its last packet is past, and its entry idle. */
static void test_draining_rate(void **unused)
{
	static const char more[] = "{key: src, rate: 100/s, burst: 500}";

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", RATE)), 0);
	assert_int_equal(apply(rule_of("clock: exact", more)), 0);
	assert_string_equal(limiters_text(0), "G=");
	assert_int_equal(now.bin.rule[0].limiter[0].rate.burst_ns, 5 * SECOND);
	assert_int_equal(apply(rule_of("clock: exact", RATE2)), 0);
	assert_string_equal(limiters_text(0), "G+ G-");
	time_draining();
	assert_true(now.bin.rule[0].limiter[1].until_ns ==
		    host.now_ns + 5 * SECOND + 1 + PACER_IDLE_SLACK_NS);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 0, PACER_DENY_RATE), 0);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 1, PACER_DENY_RATE), -1);
	/* back: on the coarse clock; the exact one does not know which its times were of */
	assert_int_equal(apply(rule_of("clock: exact", RATE)), 0);
	assert_string_equal(limiters_text(0), "G+ G- G-");
	/* its burst, which is a tick shorter there, still builds */
	assert_int_equal(apply(rule_of("clock: coarse", RATE2)), 0);
	assert_string_equal(limiters_text(0), "G+ G- G- G-");
	/* one that has built goes on as it is */
	assert_int_equal(load(rule_of("clock: exact", RATE)), 0);
	assert_int_equal(apply(rule_of("clock: exact", RATE2)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", RATE)), 0);
	assert_string_equal(limiters_text(0), "G= G-");
	/* times of the coarse clock may lie before the truth */
	assert_int_equal(load(rule_of("clock: coarse", RATE)), 0);
	assert_int_equal(apply(rule_of("clock: exact", RATE)), 0);
	assert_string_equal(limiters_text(0), "G+ G-");
	assert_int_equal(load(rule_of("clock: exact", RATE)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", RATE)), 0);
	assert_string_equal(limiters_text(0), "G=");
	/* also where another rule's window, which drains, made it judge by the exact one */
	assert_int_equal(load(RATE_AND("exact")), 0);
	assert_int_equal(apply(RATE_AND("coarse")), 0);
	assert_true(now.bin.flags & PACER_CLOCK_EXACT);
	assert_string_equal(limiters_text(0), "G=");
	assert_int_equal(apply(RATE_AND("exact")), 0);
	assert_string_equal(limiters_text(0), "G+ G-");
}

/* A rate begins but once: all that it waits for ends together, the short ones with the long. */
static void test_draining_rates_end_together(void **unused)
{
	const struct pacer_limiter *t = now.bin.rule[0].limiter;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 50}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 20}")), 0);
	time_draining();
	assert_true(t[0].rate.begin_ns == t[1].until_ns);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 30/s, burst: 20}")), 0);
	assert_string_equal(limiters_text(0), "G+ G- G-");
	assert_true(t[0].rate.begin_ns == COMPILE_UNTIL_SET);
	time_draining();
	assert_true(t[0].rate.begin_ns == host.now_ns + 5 * SECOND + 1 + PACER_IDLE_SLACK_NS);
	assert_true(t[1].until_ns == t[0].rate.begin_ns && t[2].until_ns == t[0].rate.begin_ns);
	/* one of another key waits as well: packets of the rule are both's */
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 30/s, burst: 20}, "
						       "{key: dst, rate: 30/s, burst: 20}")),
			 0);
	assert_string_equal(limiters_text(0), "G= G+ G- G-");
	time_draining();
	assert_true(t[1].rate.begin_ns == t[2].until_ns && t[3].until_ns == t[2].until_ns);
	assert_true(t[0].rate.begin_ns == t[1].rate.begin_ns);
}

/* It waits for rates alone: a window that drains for longer holds up neither. */
static void test_a_rate_waits_for_no_window(void **unused)
{
	const struct pacer_limiter *t = now.bin.rule[0].limiter;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 50}, "
						      "{key: src, packets: 9, window: 1h}")),
			 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 20}")), 0);
	time_draining();
	assert_string_equal(limiters_text(0), "G+ G- Rw-");
	assert_true(t[0].rate.begin_ns == host.now_ns + 5 * SECOND + 1 + PACER_IDLE_SLACK_NS);
	assert_true(t[1].until_ns == t[0].rate.begin_ns);
	assert_true(t[2].until_ns > host.now_ns + 3600 * SECOND);
}

/* Whatever its key, whether of new flows or a fleet's: but one that has counted all keeps on. */
static void test_a_rate_of_other_packets_waits(void **unused)
{
	static const char *const limits[] = {
	    "{key: src, rate: 100/s, burst: 400}",
	    "{key: 'src/24,56', rate: 100/s, burst: 400}",
	    "{key: all, rate: 100/s, burst: 400}",
	    "{key: src, rate: 100/s, burst: 400, of: new}",
	    "{key: src, rate: 100/s, burst: 400, fleet: yes}",
	};
	static const char head[] = "clock: exact\nflows: 4096\n"
				   "fleet: {store: [\"http://127.0.0.1:2379\"], name: e}";
	const struct pacer_limiter *t = now.bin.rule[0].limiter;
	char both[256];

	(void)unused;
	for (size_t i = 0; i < ARRAY(limits); i++)
		for (size_t k = 0; k < ARRAY(limits); k++) {
			if (i == k)
				continue;
			assert_int_equal(load(rule_of(head, limits[i])), 0);
			assert_int_equal(apply(rule_of(head, limits[k])), 0);
			assert_true(t[0].rate.begin_ns == COMPILE_UNTIL_SET);
			time_draining();
			assert_true(t[0].rate.begin_ns == t[1].until_ns);
			teardown(NULL);
			snprintf(both, sizeof(both), "%s, %s", limits[i], limits[k]);
			assert_int_equal(load(rule_of(head, both)), 0);
			assert_int_equal(apply(rule_of(head, limits[k])), 0);
			assert_int_equal(now.bin.rule[0].n_limiters, 2);
			assert_int_equal(t[0].rate.begin_ns, 0);
			teardown(NULL);
		}
}

/* ... also where each has an end already, which is not the same. */
static void test_draining_rates_of_several_ends(void **unused)
{
	static const char both[] = "{key: src, rate: 10/s, burst: 20}, "
				   "{key: src, rate: 1/s, burst: 100}";
	const struct pacer_limiter *t = now.bin.rule[0].limiter;
	uint64_t end_ns;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", both)), 0);
	end_ns = host.now_ns + 100 * SECOND + 1 + PACER_IDLE_SLACK_NS;
	assert_int_equal(apply("clock: exact\nrules:\n- {name: a, verdict: drop}\n"), 0);
	time_draining();
	host.now_ns += SECOND;
	assert_int_equal(apply(rule_of("clock: exact", both)), 0);
	assert_string_equal(limiters_text(0), "G+ G+ G- G-");
	for (size_t k = 0; k < 4; k++)
		assert_true((k < 2 ? t[k].rate.begin_ns : t[k].until_ns) == end_ns);
}

/* What ends before the change is in force would end before anyone can say when the other begins. */
static void test_what_ends_soon_is_held(void **unused)
{
	const struct pacer_limiter *t = now.bin.rule[0].limiter;
	uint64_t end_ns;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 1/s, burst: 20}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 20}")), 0);
	time_draining();
	end_ns = t[1].until_ns;
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 3/s, burst: 20}")), 0);
	assert_string_equal(limiters_text(0), "G+ G- G-");
	assert_true(t[1].until_ns == COMPILE_UNTIL_SET && t[2].until_ns == end_ns);
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 1/s, burst: 20}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 20}")), 0);
	time_draining();
	host.now_ns = t[1].until_ns - SECOND;
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 3/s, burst: 20}")), 0);
	assert_string_equal(limiters_text(0), "G+ G- G-");
	assert_true(t[1].until_ns == COMPILE_UNTIL_SET && t[2].until_ns == COMPILE_UNTIL_SET);
}

/*
 * A burst that grows as a rate of another speed comes beside it begins anew, since that has not
 * counted what the burst before let through. Where it has, the burst grows in its place.
 */
static void test_a_burst_grows_beside_another_rate(void **unused)
{
	static const char less[] = "{key: src, rate: 1000/s, burst: 10}, "
				   "{key: src, rate: 10/s, burst: 100}";
	static const char more[] = "{key: src, rate: 1000/s, burst: 1000}, "
				   "{key: src, rate: 10/s, burst: 100}";

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 1000/s, burst: 10}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", more)), 0);
	assert_string_equal(limiters_text(0), "G+ G+ G-");
	assert_true(now.bin.rule[0].limiter[1].rate.begin_ns == COMPILE_UNTIL_SET);
	/* it came a moment before */
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 1000/s, burst: 10}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", less)), 0);
	assert_string_equal(limiters_text(0), "G= G+");
	time_draining();
	host.now_ns += MS;
	assert_int_equal(apply(rule_of("clock: exact", more)), 0);
	assert_string_equal(limiters_text(0), "G+ G= G-");
	/* it was there as long */
	assert_int_equal(load(rule_of("clock: exact", less)), 0);
	assert_int_equal(apply(rule_of("clock: exact", more)), 0);
	assert_string_equal(limiters_text(0), "G= G=");
}

/* It begins anew, too, where the other rate was looser, and may stay so until it ends. */
static void test_a_burst_grows_beside_one_that_is_lowered(void **unused)
{
	static const struct {
		const char *before, *after, *limiters;
	} cases[] = {
	    {"{key: src, rate: 25/s, burst: 3}, {key: src, rate: 60/s, burst: 100, entries: 64}",
	     "{key: src, rate: 25/s, burst: 200}, {key: src, rate: 60/s, burst: 2, entries: 256}",
	     "G+ G+ G- G-"},
	    {"{key: src, rate: 25/s, burst: 3}, {key: src, rate: 60/s, burst: 100}",
	     "{key: src, rate: 25/s, burst: 200}, {key: src, rate: 60/s, burst: 2}", "G= G="},
	    {"{key: src, rate: 25/s, burst: 3}, {key: src, rate: 60/s, burst: 2, entries: 64}",
	     "{key: src, rate: 25/s, burst: 200}, {key: src, rate: 60/s, burst: 2, entries: 256}",
	     "G= G+ G-"},
	    /* the other one's state goes on, which is seen later */
	    {"{key: src, rate: 25/s, burst: 3}, {key: src, rate: 60/s, burst: 3}",
	     "{key: src, rate: 25/s, burst: 200}, {key: src, rate: 60/s, burst: 2}", "G+ G= G-"},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		assert_int_equal(load(rule_of("clock: exact", cases[i].before)), 0);
		assert_int_equal(apply(rule_of("clock: exact", cases[i].after)), 0);
		assert_string_equal(limiters_text(0), cases[i].limiters);
	}
}

/*
 * A rate that came later waits as the one before it ends, until its speed has made up for a burst
 * that adds up: for the largest that a key may have had, though that was lowered since.
 */
static void test_a_burst_that_was_lowered_adds_up(void **unused)
{
#define QUICKER "{key: src, rate: 20/s, burst: 20}"
#define LOWERED "{key: src, rate: 10/s, burst: 9}"
#define BESIDE	"{key: src, rate: 12/s, burst: 9}"
	static const struct {
		const char *first, *both, *lowered, *left;
		uint32_t after_s[2]; /* it waits, and it does not */
	} cases[] = {
	    {QUICKER,
	     QUICKER ", {key: src, rate: 10/s, burst: 100}",
	     QUICKER ", " LOWERED,
	     LOWERED,
	     {8, 9}},
	    {"{key: src, rate: 10/s, burst: 100}",
	     "{key: src, rate: 10/s, burst: 100}, " BESIDE,
	     LOWERED ", " BESIDE,
	     BESIDE,
	     {40, 41}},
	};

	(void)unused;
	for (size_t i = 0; i < 2 * ARRAY(cases); i++) {
		bool waits = i % 2 == 0;

		assert_int_equal(load(rule_of("clock: exact", cases[i / 2].first)), 0);
		assert_int_equal(apply(rule_of("clock: exact", cases[i / 2].both)), 0);
		time_draining();
		assert_int_equal(apply(rule_of("clock: exact", cases[i / 2].lowered)), 0);
		assert_string_equal(limiters_text(0), "G= G=");
		time_draining();
		host.now_ns += cases[i / 2].after_s[!waits] * SECOND;
		assert_int_equal(apply(rule_of("clock: exact", cases[i / 2].left)), 0);
		assert_string_equal(limiters_text(0), "G= G-");
		assert_int_equal(now.bin.rule[0].limiter[0].rate.begin_ns == COMPILE_UNTIL_SET,
				 waits);
	}
}

/*
 * One that came later and still builds would have its burst at once while it waits for another that
 * is taken out: it begins anew. Not where it has not begun, or has built its burst.
 */
static void test_a_burst_that_builds_waits(void **unused)
{
#define OLDEST "{key: src, rate: 63/m, burst: 1000}"
#define LATER  "{key: src, rate: 66/m, burst: 10}"
	static const struct {
		int64_t begun_ns;
		const char *limiters;
	} cases[] = {{-(int64_t)SECOND, "G= G- G-"},
		     {0, "G+ G- G-"},
		     {9 * (int64_t)SECOND, "G+ G- G-"},
		     {10 * (int64_t)SECOND, "G= G-"}};
	const struct pacer_limiter *t = now.bin.rule[0].limiter;

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		uint64_t begin_ns;

		assert_int_equal(
		    load(rule_of("clock: exact", OLDEST ", {key: src, rate: 60/m, burst: 10}")), 0);
		assert_int_equal(apply(rule_of("clock: exact", OLDEST ", " LATER)), 0);
		assert_string_equal(limiters_text(0), "G= G+ G-");
		time_draining();
		begin_ns = t[1].rate.begin_ns;
		host.now_ns = begin_ns + (uint64_t)cases[i].begun_ns;
		assert_int_equal(apply(rule_of("clock: exact", LATER)), 0);
		assert_string_equal(limiters_text(0), cases[i].limiters);
		assert_true(t[0].rate.begin_ns == COMPILE_UNTIL_SET);
		if (t[1].rate.unit_ns == t[0].rate.unit_ns)
			assert_true(t[1].rate.begin_ns == begin_ns);
	}
}

/* One that came as another came back, which had counted before, has not counted all of that. */
static void test_a_rate_beside_one_that_came_back(void **unused)
{
#define CAME_BACK "{key: src, rate: 5/s, burst: 3}"
	const struct pacer_rule *rule = &now.bin.rule[0];

	(void)unused;
	for (int back = 0; back < 2; back++) {
		host.now_ns = 100 * SECOND;
		assert_int_equal(load(rule_of("clock: coarse", back ? CAME_BACK : WIN)), 0);
		host.now_ns += 5 * SECOND;
		assert_int_equal(apply(rule_of("clock: coarse", WIN)), 0);
		time_draining();
		assert_int_equal(
		    apply(rule_of("clock: coarse", "{key: src, rate: 5/s, burst: 20}, " CAME_BACK)),
		    0);
		time_draining();
		host.now_ns += 2 * SECOND;
		assert_int_equal(apply(rule_of("clock: coarse", CAME_BACK)), 0);
		assert_true((rule->limiter[0].rate.begin_ns == COMPILE_UNTIL_SET) == back);
	}
}

/*
 * Of a burst that still builds, more would be there at once: it begins anew. So does one that is
 * all there, but would not be if it had been as large: what was taken meanwhile would not count.
 */
static void test_a_burst_that_builds_grows(void **unused)
{
	static const char less[] = "{key: src, rate: 20/s, burst: 20}";
	static const char more[] = "{key: src, rate: 20/s, burst: 30}";
	const struct pacer_limiter *t = now.bin.rule[0].limiter;
	uint64_t begin_ns;

	(void)unused;
	for (uint64_t built = 0; built < 2; built++) {
		assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 9}")),
				 0);
		assert_int_equal(apply(rule_of("clock: exact", less)), 0);
		time_draining();
		begin_ns = t[0].rate.begin_ns;
		host.now_ns = begin_ns + 1500 * MS + built;
		assert_int_equal(apply(rule_of("clock: exact", more)), 0);
		assert_string_equal(limiters_text(0), built ? "G=" : "G+ G-");
	}
}

/*
 * One that is lowered while it builds begins anew, too. A key may have had as much as the larger
 * one lets through, and owes the difference: to be raised later, it begins anew once more.
 */
static void test_a_burst_that_builds_is_lowered(void **unused)
{
	const struct pacer_limiter *t = now.bin.rule[0].limiter;

	(void)unused;
	for (uint64_t built = 0; built < 2; built++) {
		assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 9}")),
				 0);
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 30}")), 0);
		time_draining();
		host.now_ns = t[0].rate.begin_ns + 1500 * MS + built;
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 20}")), 0);
		assert_string_equal(limiters_text(0), built ? "G=" : "G+ G-");
		time_draining();
		host.now_ns += 100 * SECOND;
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 25}")), 0);
		assert_string_equal(limiters_text(0), built ? "G=" : "G+ G-");
	}
}

#define EXACT  "clock: exact"
#define COARSE "clock: coarse"

/* What a key owes to a larger burst before: of a speed that does not make up for it. */
static void test_a_burst_grows_that_was_larger(void **unused)
{
	static const struct {
		const char *clock, *first, *then, *more; /* the clock at first */
		bool owes;
	} cases[] = {
	    {EXACT, "rate: 20/s, burst: 30, entries: 64", "rate: 20/s, burst: 20, entries: 128",
	     "rate: 20/s, burst: 25, entries: 128", true},
	    {EXACT, "rate: 20/s, burst: 20, entries: 64", "rate: 20/s, burst: 20, entries: 128",
	     "rate: 20/s, burst: 25, entries: 128", false},
	    {EXACT, "rate: 39/s, burst: 30", "rate: 20/s, burst: 20", "rate: 20/s, burst: 25",
	     true},
	    {EXACT, "rate: 40/s, burst: 30", "rate: 20/s, burst: 20", "rate: 20/s, burst: 25",
	     false},
	    {EXACT, "rate: 11/s, burst: 30", "rate: 20/s, burst: 20", "rate: 20/s, burst: 25",
	     true},
	    {EXACT, "rate: 10/s, burst: 30", "rate: 20/s, burst: 20", "rate: 20/s, burst: 25",
	     false},
	    {EXACT, "rate: 20kB/s, burst: 30kB", "rate: 20000/s, burst: 20",
	     "rate: 20000/s, burst: 25", true},
	    {EXACT, "rate: 2kB/s, burst: 2kB", "rate: 20/s, burst: 9", "rate: 20/s, burst: 10",
	     true},
	    /* a tick smaller, it was larger by a part of a packet */
	    {COARSE, "rate: 20/s, burst: 21", "rate: 20/s, burst: 20", "rate: 20/s, burst: 21",
	     true},
	    {COARSE, "rate: 20/s, burst: 20", "rate: 20/s, burst: 20", "rate: 20/s, burst: 21",
	     false},
	};
	char limit[128];

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		snprintf(limit, sizeof(limit), "{key: src, %s}", cases[i].first);
		assert_int_equal(load(rule_of(cases[i].clock, limit)), 0);
		snprintf(limit, sizeof(limit), "{key: src, %s}", cases[i].then);
		assert_int_equal(apply(rule_of(EXACT, limit)), 0);
		assert_string_equal(limiters_text(0), "G+ G-");
		time_draining();
		host.now_ns += 100 * SECOND;
		snprintf(limit, sizeof(limit), "{key: src, %s}", cases[i].more);
		assert_int_equal(apply(rule_of(EXACT, limit)), 0);
		assert_string_equal(limiters_text(0), cases[i].owes ? "G+ G-" : "G=");
		time_draining();
		host.now_ns += 100 * SECOND; /* and what one owes the next one does */
		snprintf(limit, sizeof(limit), "{key: src, %s}", cases[i].then);
		assert_int_equal(apply(rule_of(EXACT, limit)), 0);
		assert_string_equal(limiters_text(0), "G=");
		snprintf(limit, sizeof(limit), "{key: src, %s}", cases[i].more);
		assert_int_equal(apply(rule_of(EXACT, limit)), 0);
		assert_string_equal(limiters_text(0), cases[i].owes ? "G+ G-" : "G=");
	}
}

/* A rate that has begun has done so as long ago on another clock, as far as that can say. */
static void test_a_begun_rate_on_another_clock(void **unused)
{
	struct pacer_limiter *t = now.bin.rule[0].limiter;
	static const struct {
		int64_t by_s, from_begin_ms; /* when the burst is raised */
		bool in_place;
	} cases[] = {
	    {1000, 1499, false}, {1000, 1501, true},   {-900, 1499, false},
	    {-900, 1501, true},	 {-2000, 1499, false}, {-2000, 100000, false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		uint64_t begin_ns, built_ns;

		host.now_ns = 1000 * SECOND;
		assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 9}")),
				 0);
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 20}")), 0);
		time_draining();
		begin_ns = cases[i].by_s < -1000 ? 0 : t[0].rate.begin_ns + cases[i].by_s * SECOND;
		built_ns = begin_ns + 1200 * MS;
		compile_carry_rate(t, cases[i].by_s * (int64_t)SECOND, built_ns);
		assert_true(t[0].rate.begin_ns == begin_ns);
		host.now_ns = t[0].rate.begin_ns + cases[i].from_begin_ms * MS;
		t[1].until_ns = 1; /* it is over */
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 30}")), 0);
		assert_string_equal(limiters_text(0), cases[i].in_place ? "G=" : "G+ G-");
	}
	/* its burst has not come back to everybody: it does from the clock's beginning on */
	host.now_ns = 1000 * SECOND;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 9}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 20}")), 0);
	time_draining();
	compile_carry_rate(t, -(int64_t)t[0].rate.begin_ns, SECOND);
	assert_true(t[0].rate.begin_ns == 1);
}

/* A draining limit that was made for the exact clock is judged by it to its end. */
static void test_clock_of_the_draining(void **unused)
{
	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw+ Rw-");
	assert_true(now.bin.flags & PACER_CLOCK_EXACT);
	assert_int_equal(now.plan.resolution_ns, RESOLUTION);
	time_draining();
	host.now_ns += 1;
	assert_int_equal(apply(rule_of("clock: coarse", WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw= Rw-");
	assert_true(now.bin.flags & PACER_CLOCK_EXACT);
	host.now_ns += 10 * SECOND;
	assert_int_equal(apply(rule_of("clock: coarse", WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw=");
	assert_false(now.bin.flags & PACER_CLOCK_EXACT);
	/* a sketch goes on: its times were exact, and the gap now includes the resolution */
	assert_int_equal(load(rule_of("clock: exact", GAP)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", GAP)), 0);
	assert_string_equal(limiters_text(0), "Sg=");
	/* but not back: its times may lie before the truth */
	assert_int_equal(apply(rule_of("clock: exact", GAP)), 0);
	assert_string_equal(limiters_text(0), "Sg+ Sg-");
	assert_int_equal(now.bin.rule[0].limiter[1].gap_ns, MS + RESOLUTION);
	/* nor by way of a longer one, which goes on with them */
	assert_int_equal(load(rule_of("clock: coarse", GAP)), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, gap: 1s}")), 0);
	assert_string_equal(limiters_text(0), "Sg=");
	assert_int_equal(apply(rule_of("clock: exact", GAP)), 0);
	assert_string_equal(limiters_text(0), "Sg+ Sg-");
	/* of one that was never under that clock, they are the truth */
	assert_int_equal(load(rule_of("clock: exact", "{key: src, gap: 1s}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", GAP)), 0);
	assert_string_equal(limiters_text(0), "Sg=");
}

/*
 * A fast rate's time for a byte has a fraction of a nanosecond. Two that differ in it alone are two
 * rates: what the one counted would stand for a time that the other did not take.
 */
static void test_rates_apart_by_a_fraction(void **unused)
{
	const struct pacer_rate *rate = &now.bin.rule[0].limiter[0].rate;
	uint64_t unit_ns;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 1900Mbit/s, burst: 10M}")),
			 0);
	unit_ns = rate->unit_ns;
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 1700Mbit/s, burst: 10M}")),
			 0);
	assert_true(rate->unit_ns == unit_ns);
	assert_string_equal(limiters_text(0), "G+ G-");
}

/* ---- changes ---- */

/* One rule, then another of the same name: what becomes of its limits. */
static const struct {
	const char *from, *to, *limiters;
} changes[] = {
    /* values */
    {WIN, "{key: src, packets: 1, window: 1s}", "Rw="},
    {WIN, "{key: src, packets: 255, window: 1s}", "Rw="},
    {"{key: src, packets: 1000, window: 1s}", WIN, "Rw="},
    {"{key: src, packets: 1000, window: 1s, entries: 9}",
     "{key: src, packets: 2, window: 1s, entries: 9}", "Rw="},
    {GAP, GAP5, "Sg="},
    {GAP5 ", " WIN, WIN ", " GAP, "Rgw="},
    {"{key: src, gap: 1ms, entries: 70}", "{key: src, gap: 9ms, entries: 70}", "Sg="},
    {"{key: src, bytes: 1M, window: 1s}", "{key: src, bytes: 2G, window: 1s}", "Rw="},
    {"{key: all, gap: 1ms}", "{key: all, gap: 5ms}", "Sg="},
    {"{key: src, packets: 9, window: 1s, entries: 9}", WIN, "Rw="},
    /* shapes */
    {WIN, "{key: src, packets: 256, window: 1s}", "Rw+ Rw-"},
    {WIN, WIN2, "Rw+ Rw-"},
    {WIN, "{key: src, packets: 9, window: 1s, slots: 9}", "Rw+ Rw-"},
    {WIN, "{key: src, packets: 9, window: 900ms, slots: 9}", "Rw+ Rw-"},
    {WIN, "{key: src, bytes: 9, window: 1s}", "Rw+ Rw-"},
    {WIN, "{key: dst, packets: 9, window: 1s}", "Rw+ Rw-"},
    {WIN, NET, "Rw+ Rw-"},
    {WIN, "{key: src, packets: 9, window: 1s, entries: 9}", "Rw+ Rw-"},
    {"{key: src, packets: 9, window: 1s, entries: 9}",
     "{key: src, packets: 9, window: 1s, entries: 19}", "Rw+ Rw-"},
    {"{key: src, bytes: 2G, window: 1s}", "{key: src, bytes: 3G, window: 1s}", "Rw+ Rw-"},
    {GAP, "{key: src, gap: 1ms, rows: 1}", "Sg+ Sg-"},
    {GAP, "{key: dst, gap: 1ms}", "Sg+ Sg-"},
    {GAP, GAP ", " WIN, "Rgw+ Sg-"},
    {GAP, WIN, "Rw+ Sg-"},
    {WIN ", " GAP, GAP, "Sg+ Rgw-"},
    /* limits come and go beside those that stay */
    {WIN, WIN ", " NET, "Rw= Rw+"},
    {NET ", " WIN, WIN ", " NET, "Rw= Rw="},
    {NET ", " WIN, WIN, "Rw= Rw-"},
    /* a gap may come to a record; where it goes, it stays in force with its record */
    {WIN, WIN ", " GAP, "Rgw="},
    {WIN ", " GAP, WIN, "Rw+ Rgw-"},
    {WIN ", " GAP ", " NET, NET ", " WIN, "Rw= Rw+ Rgw-"},
    /* it is with the shortest window, in whatever order they are written */
    {WIN ", " GAP, WIN2 ", " WIN ", " GAP5, "Rw+ Rgw="},
    {WIN ", " WIN2 ", " GAP, WIN2 ", " WIN ", " GAP, "Rw= Rgw="},
    {WIN2 ", " GAP ", " WIN, GAP ", " WIN ", " WIN2, "Rgw= Rw="},
    {WIN2 ", " GAP, WIN2 ", " GAP ", " WIN, "Rw+ Rgw+ Rgw-"},
    /* where the gap goes on elsewhere, what knows its past stays */
    {WIN ", " GAP, WIN ", {key: src, gap: 1ms, rows: 1}", "Rw+ Sg+ Rgw-"},
    {WIN ", " GAP, WIN ", {key: \"src/24,56\", gap: 1ms}", "Rw+ Sg+ Rgw-"},
    {WIN ", " GAP ", " NET, WIN ", " NET ", {key: dst, gap: 1ms}", "Rw+ Rw= Sg+ Rgw-"},
    /* so where a looser limit stands beside a new one, which has not counted */
    {GAP5, GAP ", {key: src, gap: 5ms, rows: 1}", "Sg+ Sg+ Sg-"},
    {WIN, "{key: src, packets: 20, window: 1s}, " WIN2, "Rw+ Rw+ Rw-"},
    {WIN, "{key: src, packets: 20, window: 1s}, {key: src, packets: 9, window: 1s, slots: 9}",
     "Rw+ Rw+ Rw-"},
    {WIN, "{key: src, packets: 20, window: 1s}, {key: src, packets: 20, window: 1s, slots: 9}",
     "Rw= Rw+"},
    {WIN, "{key: src, packets: 20, window: 1s}, " NET, "Rw+ Rw+ Rw-"},
    {WIN, "{key: src, packets: 20, window: 1s}, " RATE, "Rw+ G+ Rw-"},
    {NET ", " WIN, NET ", {key: src, packets: 20, window: 1s}", "Rw= Rw="},
    {RATE, "{key: src, rate: 100/s, burst: 50}, " WIN2, "G+ Rw+ G-"},
    {WIN, "{key: src, packets: 8, window: 1s}, " WIN2, "Rw= Rw+"},
    {GAP ", " GAP5, GAP5 ", " GAP, "Sg= Sg="},
    {GAP5 ", {key: src, gap: 5ms, rows: 1}", GAP ", {key: src, gap: 5ms, rows: 1}", "Sg+ Sg= Sg-"},
    {WIN ", " WIN2, "{key: src, packets: 20, window: 1s}, " WIN2, "Rw+ Rw= Rw-"},
    /* ... or a lowered one, whose time is shorter: it forgets what it let through before */
    {WIN ", " WIN2, "{key: src, packets: 5, window: 1s}, {key: src, packets: 20, window: 2s}",
     "Rw= Rw+ Rw-"},
    {WIN2 ", " USES, "{key: src, packets: 20, window: 2s}, {key: all, uses: 90, cooldown: 1s}",
     "Rw+ Rw- T="},
    {WIN ", " NET,
     "{key: src, packets: 20, window: 1s}, {key: \"src/24,56\", packets: 5, window: 1s}",
     "Rw= Rw="},
    /* throttles: by value, by cooldown, in order; behind the others */
    {USES, USES, "T="},
    {USES, "{key: all, uses: 9, cooldown: 1s}", "T="},
    {USES, "{key: all, uses: 900, cooldown: 1s}", "T="},
    {USES, "{key: all, uses: 100, cooldown: 1s, threshold: 3}", "T="},
    {USES, "{key: all, uses: 100, cooldown: 5s, threshold: 3}", "T+ T-"},
    {USES, USES10, "T+ T-"},
    {USES, USES ", " WIN, "Rw+ T="},
    {USES ", " WIN, WIN, "Rw= T-"},
    {WIN ", " USES, GAP ", " USES, "Sg+ Rw- T="},
    {USES ", " USES10, USES10 ", " USES, "T= T="},
    {USES ", " USES10, USES10, "T= T-"},
    {USES, USES10 ", " USES, "T+ T="},
    {USES, USES10 ", {key: all, uses: 50, cooldown: 1s}", "T+ T="},
    /* loosened where another may be the one that it was */
    {USES10, USES ", " USES10, "T+ T="},
    {USES10, USES ", {key: all, uses: 2000, cooldown: 10s}", "T+ T+ T-"},
    {USES, "{key: all, uses: 900, cooldown: 1s}, {key: all, packets: 100, window: 1s}",
     "Rw+ T+ T-"},
    {USES, "{key: all, uses: 900, cooldown: 1s}, {key: all, uses: 500, cooldown: 1s}", "T+ T="},
    {USES, "{key: all, uses: 900, cooldown: 1s}, " WIN, "Rw+ T+ T-"},
    {"{key: all, packets: 100, window: 1s}", "{key: all, packets: 900, window: 1s}, " USES,
     "Rw+ Rw- T+"},
    {USES ", " USES10, "{key: all, uses: 200, cooldown: 1s}, " USES10, "T= T="},
    {USES ", " USES10, USES ", {key: all, uses: 2000, cooldown: 10s}", "T= T="},
    {USES ", {key: all, uses: 150, cooldown: 1s}",
     "{key: all, uses: 200, cooldown: 1s}, {key: all, uses: 150, cooldown: 1s}", "T+ T= T-"},
    {USES ", {key: all, uses: 150, cooldown: 1s}",
     "{key: all, uses: 200, cooldown: 1s}, {key: all, uses: 90, cooldown: 1s}", "T+ T= T-"},
    {USES ", {key: all, packets: 150, window: 1s}",
     "{key: all, uses: 200, cooldown: 1s}, {key: all, packets: 150, window: 1s}", "Rw= T="},
    {USES ", {key: all, packets: 50, window: 1s}", USES ", {key: all, packets: 150, window: 1s}",
     "Rw= T="},
    {"{key: all, packets: 100, window: 1s}", "{key: all, packets: 90, window: 1s}, " USES,
     "Rw= T+"},
    /* rates: the burst is a value; the rate is what the state is of */
    {RATE, RATE, "G="},
    {RATE, "{key: src, rate: 100/s, burst: 5}", "G="},
    {RATE, "{key: src, rate: 100/s, burst: 500}", "G="},
    {RATE, "{key: src, rate: 6000/m, burst: 20}", "G="}, /* the same, said otherwise */
    {RATE, "{key: src, rate: 101/s, burst: 20}", "G+ G-"},
    {RATE, "{key: src, rate: 100B/s, burst: 2K}", "G+ G-"},
    {RATE, "{key: dst, rate: 100/s, burst: 20}", "G+ G-"},
    {RATE, "{key: src, rate: 100/s, burst: 20, entries: 9}", "G+ G-"},
    {RATE, RATE ", " RATE2, "G= G+"},
    {RATE ", " RATE2, RATE2 ", " RATE, "G= G="},
    {RATE ", " RATE2, RATE2, "G= G-"},
    {RATE, GAP, "Sg+ G-"},
    {RATE, WIN, "Rw+ G-"},
    {WIN, RATE, "G+ Rw-"},
    {USES, RATE ", " USES, "G+ T="},
    {RATE ", " USES, USES, "G- T="},
    {RATE, RATE ", " GAP, "G= Sg+"}, /* a gap joins no rate */
    {"{key: all, rate: 10Mbit/s, burst: 64K}", "{key: all, rate: 10Mbit/s, burst: 1M}", "G="},
};

static const struct pacer_limiter *draining_limiter(void)
{
	for (uint32_t k = 0; k < now.bin.rule[0].n_limiters; k++)
		if (plan_mark(&now, 0, k) == '-')
			return &now.bin.rule[0].limiter[k];
	return NULL;
}

/* Whom the packet path may deal with in short: rules whose every word it then reads. */
static void test_plain(void **unused)
{
	static const struct {
		const char *top, *limits;
		int plain;
	} rows[] = {
	    {"", "{key: src, gap: 1s}", 1},
	    {"", WIN, 1},
	    {"", "{key: src, gap: 1s}, " WIN, 1}, /* of one key: one limit */
	    {"", "{key: all, uses: 10, cooldown: 1s}", 1},
	    {"", WIN ", {key: dst, gap: 1s}", 0},
	    {"", WIN ", {key: all, uses: 10, cooldown: 1s}", 0},
	    {"", WIN "]\n  ban: 1s #", PACER_PLAIN_BANNING},
	    {"", WIN "]\n  over: pass #", 0},
	    {"mode: monitor", WIN, 0},
	    {"", "{key: src, packets: 9, window: 1s, of: new}", 0},
	    {"sets: [{name: geo, file: geo.csv, value: 2}]",
	     "{key: 'value(geo, src)', packets: 9, window: 1s}",
	     0}, /* a value is to be looked up */
	    {"fleet: {store: 'http://a', name: f}",
	     "{key: src, packets: 9, window: 1s, fleet: yes}", 0}, /* its share is to be asked */
	};
	uint32_t i;

	(void)unused;
	for (i = 0; i < ARRAY(rows); i++) {
		assert_int_equal(load(rule_of(rows[i].top, rows[i].limits)), 0);
		assert_int_equal(now.bin.rule[0].plain, rows[i].plain);
	}
	assert_int_equal(load("rules: [{name: a, verdict: drop}]\n"), 0);
	assert_int_equal(now.bin.rule[0].plain, PACER_PLAIN_VERDICT);
	assert_int_equal(load("mode: monitor\nrules: [{name: a, verdict: drop}]\n"), 0);
	assert_int_equal(now.bin.rule[0].plain, PACER_PLAIN_NOT);
	assert_int_equal(load(rule_of("", "{key: src, gap: 1s}")), 0);
	assert_int_equal(apply(rule_of("", "{key: dst, gap: 1s}")), 0);
	assert_int_equal(now.bin.rule[0].n_limiters, 2); /* the new one, and one draining */
	assert_int_equal(now.bin.rule[0].plain, 0);
}

/* A ban lasts, and is remembered, a tick of the coarse clock longer, so that it is not too short.
 */
static void test_bans(void **unused)
{
	const struct pacer_rule *rule = &now.bin.rule[0];
	const char *const grows = WIN "]\n  ban: {for: 2s, grow: x3, up_to: 9s, forget: 5s} #";

	(void)unused;
	assert_int_equal(load(rule_of("clock: coarse", grows)), 0);
	assert_int_equal(rule->ban_ns, 2 * SECOND + RESOLUTION);
	assert_int_equal(rule->ban_tick_ns, RESOLUTION);
	assert_int_equal(rule->ban_grow, 3);
	assert_int_equal(rule->ban_max_ns, 9 * SECOND);
	assert_int_equal(rule->ban_forget_ns, 5 * SECOND + RESOLUTION);
	assert_int_equal(load(rule_of("clock: exact", grows)), 0);
	assert_int_equal(rule->ban_ns, 2 * SECOND);
	assert_int_equal(rule->ban_forget_ns, 5 * SECOND);
	assert_int_equal(load(rule_of("clock: coarse", WIN "]\n  ban: 2s #")), 0);
	assert_int_equal(rule->ban_ns, 2 * SECOND + RESOLUTION);
	assert_true(!rule->ban_grow && !rule->ban_forget_ns);
}

/* A table that begins anew, in the place of the one before or not, can be told from that. */
static void test_a_table_of_bans_began(void **unused)
{
	static const struct {
		const char *bans;
		bool anew;
	} rows[] = {{"bans: 64", true}, {"bans: 64", false}, {"bans: 128", true},
		    {"bans: 64", true}, {"bans: 64", false}, {"clock: exact", true},
		    {"bans: 64", true}};
	uint32_t before = 0;

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *text = rule_of(rows[i].bans, WIN);

		assert_int_equal(i ? apply(text) : load(text), 0);
		assert_int_equal(now.bin.bans.begun != before, rows[i].anew);
		before = now.bin.bans.begun;
		host.now_ns += SECOND / 1000;
	}
}

/*
 * Raised to more than its narrow records count to, a limit gets wide ones, and they stay when it is
 * lowered. That is another shape: until its window has passed, the old value holds, too.
 */
static void test_raised_beyond_narrow(void **unused)
{
	static const char more[] = "{key: src, packets: 1000, window: 1s}";
	const struct pacer_limiter *t;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	assert_int_equal(now.bin.rule[0].limiter[0].units, 2);
	assert_int_equal(apply(rule_of("clock: exact", more)), 0);
	assert_string_equal(limiters_text(0), "Rw+ Rw-");
	assert_int_equal(now.bin.rule[0].limiter[0].units, 4);
	t = draining_limiter();
	assert_int_equal(t->units, 2);
	assert_int_equal(t->window.limit, 9);
	time_draining();
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, packets: 2000, window: 1s}")),
			 0);
	assert_string_equal(limiters_text(0), "Rw= Rw-");
	assert_int_equal(draining_limiter()->window.limit, 9);
	time_draining();
	host.now_ns += 10 * SECOND;
	assert_int_equal(apply(rule_of("clock: exact", WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw=");
	assert_int_equal(now.bin.rule[0].limiter[0].window.limit, 9);
	assert_int_equal(now.bin.rule[0].limiter[0].units, 4);
}

static void test_changes(void **unused)
{
	uint32_t i;

	(void)unused;
	for (i = 0; i < ARRAY(changes); i++) {
		assert_int_equal(load(rule_of("clock: exact", changes[i].from)), 0);
		assert_int_equal(apply(rule_of("clock: exact", changes[i].to)), 0);
		if (strcmp(limiters_text(0), changes[i].limiters))
			fail_msg("%s -> %s: %s, not %s", changes[i].from, changes[i].to,
				 limiters_text(0), changes[i].limiters);
		/* the same again changes nothing */
		time_draining();
		assert_int_equal(apply(rule_of("clock: exact", changes[i].to)), 0);
		assert_null(strchr(limiters_text(0), '+'));
		assert_int_equal(before.bin.rule[0].n_limiters, now.bin.rule[0].n_limiters);
		assert_memory_equal(before.bin.rule[0].limiter, now.bin.rule[0].limiter,
				    sizeof(now.bin.rule[0].limiter));
	}
}

/* A gap is with the window that has the shortest memory, and that remembers it for as long. */
static void test_gap_beyond_the_record(void **unused)
{
	static const char one[] = "{key: src, packets: 9, window: 1h}, {key: src, gap: 1m}, "
				  "{key: src, packets: 9, window: 1s}";
	static const char two[] = "{key: src, packets: 9, window: 1s}, {key: src, gap: 1m}";

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", one)), 0);
	assert_string_equal(limiters_text(0), "Rw+ Rgw+");
	assert_true(now.bin.rule[0].limiter[1].idle_ns > 60 * SECOND);
	assert_int_equal(apply(rule_of("clock: exact", two)), 0);
	assert_string_equal(limiters_text(0), "Rgw= Rw-");
}

static void test_modes_are_values(void **unused)
{
	(void)unused;
	assert_int_equal(load("rules:\n- {name: a, limits: [" WIN "]}\n"), 0);
	assert_int_equal(now.bin.rule[0].over, PACER_OVER_DROP);
	assert_int_equal(apply("mode: monitor\nunparsed: drop\nmemory: 1Gi\nrules:\n"
			       "- {name: a, over: pass, limits: [" WIN "]}\n"),
			 0);
	assert_string_equal(limiters_text(0), "Rw=");
	assert_int_equal(now.bin.rule[0].over, PACER_OVER_PASS);
	assert_int_equal(now.bin.flags, PACER_MONITOR | PACER_UNPARSED_DROP);
	assert_int_equal(now.plan.lines, (64 << 20) / 64); /* the table that there is */
	assert_int_equal(now.bin.serial, 2);
}

static void test_draining_and_back(void **unused)
{
	struct pacer_limiter was, t;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	was = now.bin.rule[0].limiter[0];
	assert_int_equal(apply(rule_of("clock: exact", WIN2)), 0);
	t = now.bin.rule[0].limiter[1];
	assert_true(t.until_ns == COMPILE_UNTIL_SET);
	t.until_ns = 0;
	assert_memory_equal(&t, &was, sizeof(t));
	assert_int_equal(now.plan.n_draining, 1);
	/* a change that was cut off in between left it so: it is still to be timed */
	assert_int_equal(apply(rule_of("clock: exact", WIN2)), 0);
	assert_true(now.bin.rule[0].limiter[1].until_ns == COMPILE_UNTIL_SET);
	assert_int_equal(now.plan.n_draining, 1);
	time_draining();
	assert_true(now.bin.rule[0].limiter[1].until_ns ==
		    host.now_ns + 1100 * MS + PACER_IDLE_SLACK_NS);
	host.now_ns += SECOND;
	assert_int_equal(apply(rule_of("clock: exact", WIN2 ", " NET)), 0);
	assert_string_equal(limiters_text(0), "Rw= Rw+ Rw-");
	assert_true(now.bin.rule[0].limiter[2].until_ns ==
		    2 * SECOND + 100 * MS + PACER_IDLE_SLACK_NS);
	/* back: in force again where it was */
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, packets: 3, window: 1s}")), 0);
	assert_string_equal(limiters_text(0), "Rw= Rw- Rw-");
	t = now.bin.rule[0].limiter[0];
	assert_true(t.until_ns == 0 && t.base == was.base && t.sets == was.sets);
	assert_int_equal(t.window.limit, 3);
	time_draining();
	/* and what has passed is gone */
	host.now_ns += 10 * SECOND;
	assert_int_equal(apply(rule_of("clock: exact", WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw=");
	assert_int_equal(apply(rule_of("clock: exact", WIN2)), 0);
	assert_string_equal(limiters_text(0), "Rw+ Rw-");
}

/* Nor is a draining limit loosened where a tighter one of its key and time stands beside it. */
static void test_draining_and_looser(void **unused)
{
	static const char one_row[] = "{key: src, gap: 5ms, rows: 1}";
	char both[128];

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", GAP5)), 0);
	assert_int_equal(apply(rule_of("clock: exact", one_row)), 0);
	assert_string_equal(limiters_text(0), "Sg+ Sg-");
	time_draining();
	snprintf(both, sizeof(both), "%s, {key: src, gap: 6ms}", one_row);
	assert_int_equal(apply(rule_of("clock: exact", both)), 0);
	assert_string_equal(limiters_text(0), "Sg= Sg=");
	assert_int_equal(apply(rule_of("clock: exact", one_row)), 0);
	time_draining();
	snprintf(both, sizeof(both), "%s, " GAP, one_row);
	assert_int_equal(apply(rule_of("clock: exact", both)), 0);
	assert_string_equal(limiters_text(0), "Sg= Sg+ Sg-");
	assert_int_equal(now.bin.rule[0].limiter[2].gap_ns, 6 * MS);
	/* nor does it lose its gap */
	assert_int_equal(load(rule_of("clock: exact", WIN ", " GAP)), 0);
	assert_int_equal(apply(rule_of("clock: exact", WIN2 ", {key: dst, gap: 1ms}")), 0);
	assert_string_equal(limiters_text(0), "Rw+ Sg+ Rgw-");
	time_draining();
	assert_int_equal(apply(rule_of("clock: exact", WIN ", {key: dst, gap: 1ms}")), 0);
	assert_string_equal(limiters_text(0), "Rw+ Sg= Rw- Rgw-");
	/* a window that comes back alone may be any */
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	assert_int_equal(apply(rule_of("clock: exact", WIN2)), 0);
	time_draining();
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, packets: 20, window: 1s}")), 0);
	assert_string_equal(limiters_text(0), "Rw= Rw-");
}

/* A draining limit ends at until_ns, not before. */
static void test_end_of_the_draining(void **unused)
{
	uint64_t until_ns;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", GAP)), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: dst, gap: 1ms}")), 0);
	time_draining();
	until_ns = now.bin.rule[0].limiter[1].until_ns;
	assert_true(until_ns == host.now_ns + MS);
	host.now_ns = until_ns - 1;
	assert_int_equal(apply(rule_of("clock: exact", "{key: dst, gap: 2ms}")), 0);
	assert_string_equal(limiters_text(0), "Sg= Sg-");
	host.now_ns = until_ns;
	assert_int_equal(apply(rule_of("clock: exact", "{key: dst, gap: 3ms}")), 0);
	assert_string_equal(limiters_text(0), "Sg=");
}

static void test_too_many_limiters(void **unused)
{
	uint32_t i, k;

	(void)unused;
	for (k = 0; k < 2; k++) {
		int result;

		say_again();
		say("rules:\n- {name: other, limits: [" GAP "]}\n- name: a\n  limits:\n");
		for (i = 0; i < 5; i++)
			say("  - {key: src, packets: 9, window: %us}\n", 1 + i + 5 * k);
		result = k ? apply(doc.s) : load(doc.s);
		assert_int_equal(result, k ? -1 : 0);
	}
	assert_non_null(strstr(error.text, "rule a"));
	assert_non_null(strstr(error.text, "apply it in steps, or later"));
	assert_int_equal(error.line, 3);
	assert_int_equal(now.bin.serial, 1);
}

/* No room beside what is in force: what is in force is not touched. */
static void test_no_room_beside(void **unused)
{
	static const char small[] = "{key: src, packets: 999, window: 1s, entries: 99}";
	static const char large[] = "{key: src, packets: 999, window: 1s, entries: 101}";

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact\nmemory: 10Ki", small)), 0);
	assert_int_equal(apply(rule_of("clock: exact", large)), -1);
	assert_non_null(strstr(error.text, "no room"));
	assert_non_null(strstr(error.text, "fewer entries"));
	assert_int_equal(apply(rule_of("clock: exact", small)), 0);
	assert_string_equal(limiters_text(0), "Rw=");
}

static void count_region(const struct pacer_limiter *t, void *arg)
{
	*(uint64_t *)arg += compile_limiter_lines(t);
}

/* Limits that have the same lines, one under each secret, are one region: what moves them does so
 * once. */
static void test_regions(void **unused)
{
	uint64_t lines = 0;

	(void)unused;
	assert_int_equal(load(rule_of("", WIN ", " USES)), 0);
	assert_int_equal(rotate(), 0);
	assert_int_equal(now.bin.rule[0].n_limiters, 3);
	assert_int_equal(now.bin.rule[0].limiter[0].base, now.bin.rule[0].limiter[1].base);
	carry_each_region(&now.bin, count_region, &lines);
	assert_int_equal(lines, compile_limiter_lines(&now.bin.rule[0].limiter[0]));
	assert_int_equal(now.plan.lines_used, lines);
}

/* ---- rules and their counters ---- */

static const struct pacer_rule *rule_named(const struct applied *a, const char *name)
{
	size_t r;

	for (r = 0; r < a->policy->n_rules; r++)
		if (!strcmp(a->policy->rule[r].name, name))
			return &a->bin.rule[r];
	return NULL;
}

static void test_rules_move(void **unused)
{
	(void)unused;
	assert_int_equal(load("rules:\n- {name: a, limits: [" WIN "]}\n"
			      "- {name: b, limits: [" GAP "]}\n"
			      "- {name: c, limits: [" NET "]}\n"),
			 0);
	assert_int_equal(apply("rules:\n- {name: c, limits: [" NET "]}\n"
			       "- {name: d, limits: [" GAP "]}\n"
			       "- {name: a, limits: [" WIN "]}\n"),
			 0);
	assert_string_equal(limiters_text(0), "Rw=");
	assert_string_equal(limiters_text(1), "Sg+"); /* renamed: another rule */
	assert_string_equal(limiters_text(2), "Rw=");
	assert_int_equal(now.plan.n_draining, 0);
	assert_int_equal(rule_named(&now, "a")->counter, rule_named(&before, "a")->counter);
	assert_int_equal(rule_named(&now, "c")->counter, rule_named(&before, "c")->counter);
	assert_int_equal(rule_named(&now, "a")->limiter[0].base,
			 rule_named(&before, "a")->limiter[0].base);
	assert_true(rule_named(&now, "d")->counter != rule_named(&before, "b")->counter);
	assert_true(rule_named(&now, "d")->limiter[0].base !=
		    rule_named(&before, "b")->limiter[0].base);
}

static void say_rules(const char *stem, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		say("- {name: %s%u, limits: [{key: all, gap: 1s}]}\n", stem, i);
}

static void assert_counters(void)
{
	size_t r, k;

	for (r = 0; r < now.policy->n_rules; r++) {
		const struct pacer_rule *rule = &now.bin.rule[r];
		const struct pacer_rule *old =
		    before.policy ? rule_named(&before, now.policy->rule[r].name) : NULL;

		assert_true(rule->counter > 0 && rule->counter < PACER_COUNTERS_MAX);
		for (k = 0; k < r; k++)
			assert_true(now.bin.rule[k].counter != rule->counter);
		if (old)
			assert_int_equal(old->counter, rule->counter);
		for (k = 0; !old && before.policy && k < before.policy->n_rules; k++)
			assert_true(before.bin.rule[k].counter != rule->counter);
	}
}

/* As many rules as there may be, all with other names than the ones in force. */
static void test_counters_run_out(void **unused)
{
	(void)unused;
	say_again();
	say("rules:\n");
	say_rules("old", PACER_RULES_MAX);
	assert_int_equal(load(doc.s), 0);
	assert_counters();
	say_again();
	say("rules:\n");
	say_rules("new", PACER_RULES_MAX);
	assert_int_equal(apply(doc.s), 0);
	assert_counters();
	say_again();
	say("rules:\n- {name: old7, limits: [{key: all, gap: 1s}]}\n");
	say_rules("new", PACER_RULES_MAX - 1);
	assert_int_equal(apply(doc.s), 0);
	assert_counters();
}

/* ---- whose denial it was ---- */

static void test_limit_of(void **unused)
{
	(void)unused;
	assert_int_equal(
	    load(rule_of("clock: exact", "{key: dst, gap: 1s}, " WIN ", " NET ", " GAP)), 0);
	assert_string_equal(limiters_text(0), "Sg+ Rgw+ Rw+");
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 0, PACER_DENY_GAP), 0);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 1, PACER_DENY_GAP), 3);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 1, PACER_DENY_WINDOW), 1);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 2, PACER_DENY_WINDOW), 2);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 0, PACER_DENY_CONTENDED), 0);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 1, PACER_DENY_CONTENDED), 1);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 2, PACER_DENY_NO_STATE), 2);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 3, PACER_DENY_WINDOW), -1);
	assert_int_equal(load(rule_of("clock: exact", GAP ", " WIN)), 0);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 0, PACER_DENY_CONTENDED), 0);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 0, PACER_DENY_WINDOW), 1);
	assert_int_equal(
	    load(rule_of("clock: exact", "{key: dst, gap: 1s}, " WIN ", " NET ", " GAP)), 0);
	assert_int_equal(apply("clock: exact\nrules:\n- {name: b, limits: [" NET "]}\n"
			       "- {name: a, limits: [" WIN2 "]}\n"),
			 0);
	assert_string_equal(limiters_text(1), "Rw+ Sg- Rgw- Rw-");
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 1, 0, PACER_DENY_WINDOW), 0);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 1, 1, PACER_DENY_GAP), -1);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 1, 2, PACER_DENY_WINDOW), -1);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 1, 3, PACER_DENY_CONTENDED), -1);
	assert_int_equal(compile_limit_of(&now.plan, now.policy, 0, 0, PACER_DENY_WINDOW), 0);
}

/* ---- any change upon any other ---- */

static const char *const limit_pool[] = {
    GAP,
    GAP5,
    WIN,
    WIN2,
    NET,
    "{key: src, packets: 100, window: 1s}",
    "{key: src, gap: 1ms, rows: 1}",
    "{key: src, gap: 2ms, ceiling: 100kpps}",
    "{key: flow, gap: 1s, entries: 500}",
    "{key: flow, packets: 7, window: 300ms, slots: 58, entries: 40}",
    "{key: dst, bytes: 1M, window: 10s, slots: 26}",
    "{key: dst, bytes: 9G, window: 10s, slots: 26}",
    "{key: src+dport, packets: 5, window: 1m, entries: 300}",
    "{key: src+dport, packets: 5, window: 1m, entries: 301}",
    "{key: all, gap: 10us}",
    "{key: all, packets: 1M, window: 1s}",
    "{key: all, packets: 1M, window: 1s, slots: 43}",
    "{key: \"src/24,56\", gap: 20s}",
    "{key: all, uses: 100, cooldown: 1s}",
    "{key: all, uses: 200, cooldown: 1s}",
    "{key: all, uses: 200, cooldown: 10s, threshold: 7}",
    RATE,
    RATE2,
    "{key: src, rate: 100/s, burst: 50}",
    "{key: all, rate: 10Mbit/s, burst: 64K}",
    "{key: flow, rate: 3/h, burst: 3, entries: 500}",
};

struct draft_rule {
	uint32_t name, n;
	uint8_t limit[POLICY_LIMITS_MAX];
};

static struct {
	struct draft_rule rule[12];
	uint32_t n, clock;
} draft;

static void change_rule(struct draft_rule *r)
{
	uint32_t at = draw() % r->n, kind = draw() % 6;

	if (kind == 0 && r->n < 6) {
		r->limit[r->n++] = draw() % ARRAY(limit_pool);
	} else if (kind == 1 && r->n > 1) {
		r->limit[at] = r->limit[--r->n];
	} else if (kind == 2) {
		uint8_t first = r->limit[0];

		r->limit[0] = r->limit[at];
		r->limit[at] = first;
	} else {
		r->limit[at] = draw() % ARRAY(limit_pool);
	}
}

static int name_taken(uint32_t name)
{
	uint32_t i;

	for (i = 0; i < draft.n; i++)
		if (draft.rule[i].name == name)
			return 1;
	return 0;
}

static void add_rule(void)
{
	struct draft_rule *r = &draft.rule[draft.n];
	uint32_t i;

	if (draft.n == ARRAY(draft.rule))
		return;
	*r = (struct draft_rule){.name = draw() % 30, .n = between(1, 4)};
	while (name_taken(r->name))
		r->name = draw() % 30;
	for (i = 0; i < r->n; i++)
		r->limit[i] = draw() % ARRAY(limit_pool);
	draft.n++;
}

static void change_draft(void)
{
	uint32_t changes = draw() % 4, i;

	for (i = 0; i < changes; i++) {
		uint32_t at = draft.n ? draw() % draft.n : 0, kind = draw() % 10;
		struct draft_rule r = draft.rule[at];

		if (kind == 0 || !draft.n) {
			add_rule();
		} else if (kind == 1) {
			draft.rule[at] = draft.rule[--draft.n];
		} else if (kind == 2) {
			draft.rule[at] = draft.rule[0];
			draft.rule[0] = r;
		} else if (kind == 3 && !name_taken(r.name + 1)) {
			draft.rule[at].name++;
		} else if (kind == 4) {
			draft.clock = draw() % 3;
		} else {
			change_rule(&draft.rule[at]);
		}
	}
}

static const char *draft_text(const char *memory)
{
	static const char *const clocks[] = {"auto", "exact", "coarse"};
	uint32_t i, k;

	say_again();
	say("memory: %s\nclock: %s\nrules:%s\n", memory, clocks[draft.clock], draft.n ? "" : " []");
	for (i = 0; i < draft.n; i++) {
		say("- name: r%u\n  limits:\n", draft.rule[i].name);
		for (k = 0; k < draft.rule[i].n; k++)
			say("  - %s\n", limit_pool[draft.rule[i].limit[k]]);
	}
	return doc.s;
}

static int same_place(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	return a->base == b->base && a->sets == b->sets && a->shared == b->shared &&
	       a->kind == b->kind;
}

static int overlap(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	bool throttle = a->kind == PACER_LIMITER_THROTTLE;

	if (throttle != (b->kind == PACER_LIMITER_THROTTLE))
		return 0;
	if (throttle)
		return a->base == b->base;
	return a->base < b->base + compile_limiter_lines(b) &&
	       b->base < a->base + compile_limiter_lines(a);
}

static void assert_place(const struct pacer_rule *rule, size_t k)
{
	const struct pacer_limiter *t = &rule->limiter[k];

	if (t->kind == PACER_LIMITER_THROTTLE) {
		assert_true(t->base < PACER_THROTTLES && !compile_limiter_lines(t));
		return;
	}
	assert_true(!k || rule->limiter[k - 1].kind != PACER_LIMITER_THROTTLE); /* they are last */
	assert_true(compile_limiter_lines(t) > 0);
	assert_true(t->base + compile_limiter_lines(t) <= now.plan.lines);
	assert_true(t->kind == PACER_LIMITER_GAP ? t->sets > 0 && !t->shared : t->shared > 0);
}

/* No line has two limits, and a new limit none of the policy before. */
static void assert_regions(void)
{
	uint64_t used = 0, old;
	size_t r, k, i, j;

	for (r = 0; r < now.policy->n_rules; r++)
		for (k = 0; k < now.bin.rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &now.bin.rule[r].limiter[k];

			used += compile_limiter_lines(t);
			assert_place(&now.bin.rule[r], k);
			for (i = 0; i < PACER_RULES_MAX; i++)
				for (j = 0; j < now.bin.rule[i].n_limiters; j++)
					assert_true((i == r && j == k) ||
						    !overlap(t, &now.bin.rule[i].limiter[j]));
			for (i = 0; i < PACER_RULES_MAX; i++)
				for (j = 0; j < before.bin.rule[i].n_limiters; j++) {
					old = overlap(t, &before.bin.rule[i].limiter[j]);
					assert_true(!old || plan_mark(&now, r, k) != '+');
				}
		}
	assert_int_equal(used, now.plan.lines_used);
	assert_true(used <= now.plan.lines);
}

/* Every limit that counts goes on where it was, in force or to its end. */
static void assert_limiter_goes_on(const struct pacer_limiter *old, const struct pacer_rule *rule,
				   uint32_t index)
{
	int found = 0;
	uint32_t k;

	for (k = 0; k < rule->n_limiters; k++) {
		const struct pacer_limiter *t = &rule->limiter[k];
		struct pacer_limiter timed = *old;

		if (!same_place(t, old))
			continue;
		found++;
		assert_memory_equal(t->mask4, old->mask4, sizeof(t->mask4));
		assert_memory_equal(t->mask6, old->mask6, sizeof(t->mask6));
		if (t->until_ns) {
			if (rule->counter)
				assert_int_equal(plan_mark(&now, index, k), '-');
			timed.until_ns = old->until_ns ? old->until_ns : COMPILE_UNTIL_SET;
			/* later, for another that ends with it */
			if (t->kind == PACER_LIMITER_RATE && t->until_ns > timed.until_ns)
				timed.until_ns = t->until_ns;
			assert_memory_equal(t, &timed, sizeof(timed));
			continue;
		}
		assert_int_equal(plan_mark(&now, index, k), '=');
		if (t->kind == PACER_LIMITER_THROTTLE) {
			assert_true(t->throttle.cooldown_ns == old->throttle.cooldown_ns);
			continue;
		}
		if (t->kind == PACER_LIMITER_RATE) {
			assert_true(t->rate.unit_ns == old->rate.unit_ns);
			assert_true(t->rate.unit_frac == old->rate.unit_frac);
			assert_true(t->rate.cost == old->rate.cost);
			continue;
		}
		assert_true(t->window.slot_ns == old->window.slot_ns);
		assert_true(t->window.ring == old->window.ring);
		assert_true(t->window.cost_shift == old->window.cost_shift);
		assert_true(t->kind != PACER_LIMITER_GAP || t->rows == old->rows);
		assert_true(t->gap_ns || !old->gap_ns);
	}
	assert_int_equal(found, 1);
}

static bool same_keys(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	return !memcmp(a->mask4, b->mask4, sizeof(a->mask4)) &&
	       !memcmp(a->mask6, b->mask6, sizeof(a->mask6));
}

/* What a limit is, but for its value; of windows alone in their records, and of sketches. */
static bool same_shapes(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	const struct pacer_window *w = &a->window, *v = &b->window;

	if (a->kind != b->kind || !same_keys(a, b) || a->secret != b->secret)
		return false;
	if (a->kind == PACER_LIMITER_GAP)
		return a->rows == b->rows && a->sets == b->sets;
	return a->kind == PACER_LIMITER_WINDOW && !a->gap_ns && !b->gap_ns &&
	       a->units == b->units && a->sets == b->sets && w->slot_ns == v->slot_ns &&
	       w->ring == v->ring && w->cost == v->cost && w->cost_shift == v->cost_shift;
}

/* Is there a tighter limit of the same key and time, so that this one has no effect? */
static bool has_no_effect(const struct pacer_limiter *t, const struct pacer_rule *rule)
{
	for (size_t i = 0; i < rule->n_limiters; i++) {
		const struct pacer_limiter *other = &rule->limiter[i];

		if (other == t || other->until_ns || !same_keys(other, t))
			continue;
		if (t->kind == PACER_LIMITER_GAP && other->gap_ns > t->gap_ns)
			return true;
		if (t->kind == PACER_LIMITER_WINDOW && other->kind == PACER_LIMITER_WINDOW &&
		    other->window.limit < t->window.limit)
			return true;
	}
	return false;
}

/* A draining limit may have times of the coarse clock, with which no exact one goes on. */
static bool of_another_clock(const struct pacer_limiter *old)
{
	return now.bin.flags & PACER_CLOCK_EXACT &&
	       (old->until_ns || !(before.bin.flags & PACER_CLOCK_EXACT));
}

/*
 * No limit begins anew beside one of its shape that goes, but a looser one that has no effect, or
 * of another clock.
 */
static void assert_kept(const struct pacer_limiter *old, const struct pacer_rule *rule,
			uint32_t index)
{
	for (uint32_t k = 0; k < rule->n_limiters; k++) {
		const struct pacer_limiter *t = &rule->limiter[k];

		if (plan_mark(&now, index, k) != '+' || !same_shapes(t, old))
			continue;
		assert_true(t->kind == PACER_LIMITER_GAP ? t->gap_ns < old->gap_ns
							 : t->window.limit > old->window.limit);
		assert_true(has_no_effect(t, rule) || of_another_clock(old));
	}
}

/* What a rule that is gone had counted rests. */
static void assert_rests(void)
{
	size_t n = 0;

	for (size_t r = 0; r < before.policy->n_rules; r++) {
		const char *name = before.policy->rule[r].name;
		const struct pacer_rule *to = resting_of(&now.bin, compile_name_id(name));
		const struct pacer_rule *rule = rule_named(&before, name);

		assert_true(!to || !rule_named(&now, name));
		for (size_t k = 0; !rule_named(&now, name) && k < rule->n_limiters; k++)
			if (!rule->limiter[k].until_ns || rule->limiter[k].until_ns > host.now_ns)
				assert_limiter_goes_on(&rule->limiter[k], to, 0);
	}
	for (size_t r = now.policy->n_rules; r < PACER_RULES_MAX; r++)
		n += now.bin.rule[r].n_limiters;
	assert_int_equal(n, now.plan.n_resting);
}

static void assert_succession(void)
{
	uint32_t r, k, draining = 0;

	for (r = 0; r < now.policy->n_rules; r++) {
		const struct pacer_rule *rule = &now.bin.rule[r];
		const char *name = now.policy->rule[r].name;
		const struct pacer_rule *old = rule_named(&before, name);

		if (!old)
			old = resting_of(&before.bin, compile_name_id(name));
		for (k = 0; k < rule->n_limiters; k++) {
			char mark = plan_mark(&now, r, k);

			assert_int_equal(mark == '-', rule->limiter[k].until_ns != 0);
			assert_true(rule->limiter[k].until_ns == 0 ||
				    rule->limiter[k].until_ns > host.now_ns);
			assert_true(old || mark == '+');
			draining += mark == '-';
		}
		for (k = 0; old && k < old->n_limiters; k++)
			if (!old->limiter[k].until_ns || old->limiter[k].until_ns > host.now_ns)
				assert_limiter_goes_on(&old->limiter[k], rule, r);
		for (k = 0; k < rule->n_limiters; k++)
			if (rule->limiter[k].until_ns && before.bin.flags == now.bin.flags)
				assert_kept(&rule->limiter[k], rule, r);
	}
	assert_int_equal(draining, now.plan.n_draining);
}

/* In a limit of its own, with the policy's rate and burst, the burst a tick of the clock shorter.
 */
static void assert_rate(const struct plan_limit *at, const struct policy_limit *l,
			const struct pacer_limiter *t)
{
	struct pacer_rate rate;

	assert_int_equal(
	    compile_limit_of(&now.plan, now.policy, at->rule, at->limiter, PACER_DENY_RATE),
	    at->limit);
	assert_int_equal(t->kind, PACER_LIMITER_RATE);
	assert_int_equal(t->gap_ns, 0);
	assert_int_equal(pacer_rate_profile(&rate, l->cost, l->rate.amount, l->rate.per_ns,
					    l->burst, now.plan.resolution_ns),
			 PACER_RATE_OK);
	rate.begin_ns = t->rate.begin_ns;
	memcpy(rate.unused, t->rate.unused, sizeof(rate.unused)); /* of a burst before */
	assert_memory_equal(&t->rate, &rate, sizeof(rate));
}

/* Every limit of the policy stands in one limit, of its key, with its value. */
static void assert_limits(void)
{
	size_t r, n = 0, i;

	for (r = 0; r < now.policy->n_rules; r++)
		n += now.policy->rule[r].n_limits;
	assert_int_equal(now.plan.n_limits, n);
	for (i = 0; i < n; i++) {
		const struct plan_limit *at = &now.plan.limit[i];
		const struct policy_limit *l = &now.policy->rule[at->rule].limit[at->limit];
		const struct pacer_limiter *t = &now.bin.rule[at->rule].limiter[at->limiter];
		int gap = l->kind == LIMIT_GAP;

		if (l->kind == LIMIT_THROTTLE) {
			assert_int_equal(compile_limit_of(&now.plan, now.policy, at->rule,
							  at->limiter, PACER_DENY_THROTTLE),
					 at->limit);
			assert_int_equal(t->throttle.limit, l->throttle.uses);
			assert_int_equal(t->throttle.cooldown_ns,
					 l->throttle.cooldown_ns + now.plan.resolution_ns);
			continue;
		}
		if (l->kind == LIMIT_RATE) {
			assert_rate(at, l, t);
			continue;
		}
		assert_int_equal(compile_limit_of(&now.plan, now.policy, at->rule, at->limiter,
						  gap ? PACER_DENY_GAP : PACER_DENY_WINDOW),
				 at->limit);
		if (gap)
			assert_int_equal(t->gap_ns, l->gap_ns + now.plan.resolution_ns);
		else
			assert_int_equal(t->window.limit, l->limit >> t->window.cost_shift);
		assert_int_equal(t->mask4[1] != 0, !!(l->key.parts & KEY_PART_DST));
		assert_true(t->kind == PACER_LIMITER_WINDOW || gap);
	}
}

static void test_any_changes(void **unused)
{
	static const char *const memory[] = {"64Mi", "1Mi", "200Ki", "40Ki"};
	uint32_t i, k, done = 0, failed = 0;

	(void)unused;
	for (i = 0; i < 60; i++) {
		for (draft.n = 0; draft.n < 1 + i % ARRAY(draft.rule);)
			add_rule();
		memset(&before.bin, 0, sizeof(before.bin));
		if (load(draft_text(memory[i % 4])))
			continue;
		policy_free(before.policy);
		before = (struct applied){0};
		assert_regions();
		for (k = 0; k < 50; k++) {
			typeof(draft) kept = draft;

			host.now_ns += magnitude(1, 30 * SECOND);
			change_draft();
			if (apply(draft_text("1Gi"))) {
				assert_true(strstr(error.text, "no room") ||
					    strstr(error.text, "a rule holds") ||
					    strstr(error.text, "throttles are needed"));
				draft = kept;
				failed++;
				continue;
			}
			assert_regions();
			assert_succession();
			assert_rests();
			assert_counters();
			assert_limits();
			time_draining();
			done++;
		}
	}
	assert_true(done > 1500 && failed > 20);
}

/* ---- packets across changes ---- */

#define PACED_LINES  1024u
#define PACED_EVENTS 4096u
#define PACED_SRC    6u

static struct pacer_line paced_lines[PACED_LINES];
static __u64 paced_secret[2][PACER_SECRETS];

#define PACED_BYTES 100u /* of a packet */

struct admission {
	uint64_t time_ns;
	uint32_t epoch;
};

static struct admission admitted[PACED_SRC][PACED_EVENTS];
static uint32_t n_admitted[PACED_SRC];

/* What each epoch's policy asks of a source: the largest gap, the least limit of each window. */
static const uint64_t paced_window_ns[] = {20 * MS, 50 * MS};

/* Its rates, of packets and of bytes; `burst`: the least of each, UINT64_MAX: none. */
static const struct units_rate paced_rate[] = {
    {30, SECOND, 0},
    {70, SECOND, 0},
    {3000, SECOND, 1},
};

struct epoch {
	uint64_t gap_ns, limit[2], burst[ARRAY(paced_rate)];
};

static struct epoch epochs[256];

static const char *const paced_pool[] = {
    "{key: src, gap: 1ms}",
    "{key: src, gap: 8ms}",
    "{key: src, gap: 60ms}",
    "{key: src, gap: 8ms, rows: 1}",
    "{key: src, gap: 30ms, ceiling: 10kpps}",
    "{key: src, packets: 5, window: 20ms, slots: 4}",
    "{key: src, packets: 9, window: 20ms, slots: 4}",
    "{key: src, packets: 6, window: 20ms, slots: 7}",
    "{key: src, packets: 7, window: 50ms, slots: 5}",
    "{key: src, packets: 12, window: 50ms, slots: 12}",
    "{key: src, packets: 12, window: 50ms, slots: 5, entries: 40}",
    "{key: src, packets: 7, window: 50ms, slots: 5, entries: 12}", /* too few to be moved */
    "{key: src, packets: 300, window: 20ms, slots: 4}",		   /* of wide records */
    "{key: src, packets: 300, window: 50ms, slots: 5}",
    "{key: src, rate: 30/s, burst: 3}",
    "{key: src, rate: 30/s, burst: 7}",
    "{key: src, rate: 1800/m, burst: 5, entries: 12}",
    "{key: src, rate: 70/s, burst: 2}",
    "{key: src, rate: 70/s, burst: 6}",
    "{key: src, rate: 3KB/s, burst: 1600}",
    "{key: src, rate: 24kbit/s, burst: 1540}",
};

/* Of the rates: which bursts the epoch has. */
static void begin_rates(struct epoch *epoch)
{
	for (size_t k = 0; k < ARRAY(paced_rate); k++)
		epoch->burst[k] = UINT64_MAX;
	for (size_t i = 0; i < now.plan.n_limits; i++) {
		const struct plan_limit *at = &now.plan.limit[i];
		const struct policy_limit *l = &now.policy->rule[0].limit[at->limit];

		for (size_t k = 0; l->kind == LIMIT_RATE && k < ARRAY(paced_rate); k++) {
			if (l->rate.bytes != paced_rate[k].bytes ||
			    l->rate.amount * paced_rate[k].per_ns !=
				l->rate.per_ns * paced_rate[k].amount)
				continue;
			if (l->burst < epoch->burst[k])
				epoch->burst[k] = l->burst;
		}
	}
}

static void begin_epoch(uint32_t e)
{
	const struct policy_rule *rule = &now.policy->rule[0];
	size_t i, k;

	epochs[e] = (struct epoch){.limit = {UINT64_MAX, UINT64_MAX}};
	begin_rates(&epochs[e]);
	for (i = 0; i < rule->n_limits; i++) {
		const struct policy_limit *l = &rule->limit[i];

		if (l->kind == LIMIT_GAP && l->gap_ns > epochs[e].gap_ns)
			epochs[e].gap_ns = l->gap_ns;
		for (k = 0; l->kind == LIMIT_WINDOW && k < 2; k++)
			if (l->window_ns == paced_window_ns[k] && l->limit < epochs[e].limit[k])
				epochs[e].limit[k] = l->limit;
	}
	for (i = 0; i < now.plan.n_limits; i++) {
		const struct plan_limit *l = &now.plan.limit[i];
		const struct pacer_limiter *t = &now.bin.rule[0].limiter[l->limiter];

		if (l->state == PLAN_NEW)
			memset(&paced_lines[t->base], 0,
			       compile_limiter_lines(t) * sizeof(*paced_lines));
	}
	time_draining();
}

static const char *paced_text(void)
{
	static const char *const clocks[] = {"exact", "coarse"};
	uint32_t n = between(1, 3), i;

	say_again();
	say("memory: 64Ki\nclock: %s\nrules:\n- name: a\n  limits:\n", clocks[draw() % 2]);
	for (i = 0; i < n; i++)
		say("  - %s\n", paced_pool[draw() % ARRAY(paced_pool)]);
	return doc.s;
}

/* Of all windows that end now: within the loosest of its epochs' bursts, which all have one. */
static void assert_rate_kept(const struct admission *a, uint32_t n, uint32_t epoch, size_t k)
{
	const struct units_rate *rate = &paced_rate[k];
	uint64_t cost = 0, most = epochs[epoch].burst[k];
	uint32_t e = epoch;

	for (uint32_t i = n; i; i--) {
		unsigned __int128 allowed;

		for (; e > a[i - 1].epoch; e--)
			most = epochs[e - 1].burst[k] > most ? epochs[e - 1].burst[k] : most;
		if (most == UINT64_MAX)
			return;
		cost += rate->bytes ? PACED_BYTES : 1;
		allowed = (unsigned __int128)(a[n - 1].time_ns - a[i - 1].time_ns) * rate->amount +
			  (unsigned __int128)most * rate->per_ns;
		if ((unsigned __int128)cost * rate->per_ns > allowed)
			fail_msg("rate %zu: %llu in %llu ns, epochs %u to %u, bursts of %llu\n%s",
				 k, (unsigned long long)cost,
				 (unsigned long long)(a[n - 1].time_ns - a[i - 1].time_ns),
				 a[i - 1].epoch, epoch, (unsigned long long)most, doc.s);
	}
}

/* What was admitted is within the strictest limit that all epochs it spans have. */
static void assert_admissions(const struct admission *a, uint32_t n, uint32_t epoch)
{
	uint64_t gap_ns = UINT64_MAX, now_ns = a[n - 1].time_ns;
	uint32_t i, e, k;

	for (e = n > 1 ? a[n - 2].epoch : epoch; e <= epoch; e++)
		gap_ns = epochs[e].gap_ns < gap_ns ? epochs[e].gap_ns : gap_ns;
	if (n > 1 && now_ns - a[n - 2].time_ns < gap_ns)
		fail_msg("%llu ns after, epoch %u after %u: the gap is %llu\n%s",
			 (unsigned long long)(now_ns - a[n - 2].time_ns), epoch, a[n - 2].epoch,
			 (unsigned long long)gap_ns, doc.s);
	for (k = 0; k < ARRAY(paced_rate); k++)
		assert_rate_kept(a, n, epoch, k);
	for (k = 0; k < 2; k++) {
		uint64_t most = 0;

		for (i = n; i && now_ns - a[i - 1].time_ns <= paced_window_ns[k]; i--)
			;
		for (e = a[i].epoch; e <= epoch; e++)
			most = epochs[e].limit[k] > most ? epochs[e].limit[k] : most;
		if (n - i > most)
			fail_msg("%u in window %u, epochs %u to %u: the limit is %llu\n%s", n - i,
				 k, a[i].epoch, epoch, (unsigned long long)most, doc.s);
	}
}

static uint32_t pace_for(uint32_t packets, uint32_t epoch)
{
	struct pacer_state state = {
	    .table = {paced_lines, PACED_LINES}, .policy = &now.bin, .secret = paced_secret[0]};
	struct pacer_packet pkt = {.family = PACER_FAMILY_4, .proto = 17, .len_bytes = PACED_BYTES};
	uint32_t i, n = 0;

	for (i = 0; i < packets; i++) {
		struct pacer_walk walk = {.state = &state, .pkt = pkt};
		uint32_t src = draw() % PACED_SRC;

		host.now_ns += draw() % 8 ? draw() % MS : draw() % (30 * MS);
		walk.pkt.key[PACER_WORD_SADDR] = src;
		walk.now_ns = host.now_ns;
		if (!(now.bin.flags & PACER_CLOCK_EXACT))
			walk.now_ns -= walk.now_ns % RESOLUTION;
		if (pacer_outcome_reason(judge_parsed(&walk)) != PACER_ADMIT)
			continue;
		assert_true(n_admitted[src] < PACED_EVENTS);
		admitted[src][n_admitted[src]++] = (struct admission){host.now_ns, epoch};
		assert_admissions(admitted[src], n_admitted[src], epoch);
		n++;
	}
	return n;
}

/* A gap longer than the window's ring is remembered for as long as it lasts, in a full set, too. */
static void test_gap_outlives_the_ring(void **unused)
{
	static const struct {
		uint64_t after_ns;
		uint32_t src;
		enum pacer_reason reason;
	} line[] = {
	    {0, 1, PACER_ADMIT},
	    {2 * SECOND, 2, PACER_ADMIT}, /* takes the other record of the set */
	    {2 * SECOND, 3, PACER_ADMIT}, /* shares */
	    {2 * SECOND, 1, PACER_DENY_GAP},
	    {10 * SECOND - 1, 1, PACER_DENY_GAP},
	    {10 * SECOND, 1, PACER_ADMIT},
	};
	struct pacer_state state = {
	    .table = {paced_lines, PACED_LINES}, .policy = &now.bin, .secret = paced_secret[0]};
	size_t i;

	(void)unused;
	memset(paced_lines, 0, sizeof(paced_lines));
	for (i = 0; i < PACER_SECRETS; i++)
		paced_secret[0][i] = draw();
	assert_int_equal(load(rule_of("clock: exact",
				      "{key: src, packets: 9, window: 1s, slots: 10, entries: 2}, "
				      "{key: src, gap: 10s}")),
			 0);
	assert_int_equal(now.bin.rule[0].limiter[0].sets, 1);
	for (i = 0; i < ARRAY(line); i++) {
		struct pacer_walk walk = {.state = &state, .now_ns = SECOND + line[i].after_ns};

		walk.pkt = (struct pacer_packet){.family = PACER_FAMILY_4, .len_bytes = 100};
		walk.pkt.key[PACER_WORD_SADDR] = line[i].src;
		assert_int_equal(pacer_outcome_reason(judge_parsed(&walk)), line[i].reason);
	}
}

/* Another policy, under another secret or not, or the same under another. */
static int change_paced(void)
{
	struct compile_previous previous = {now.policy, &now.bin, now.plan.lines, false, false};
	uint32_t i, kind = draw() % 4;

	if (kind == 3 && compile_drained_ns(&now.bin) + RESOLUTION < host.now_ns)
		for (i = 0; i < PACER_SECRETS; i++)
			paced_secret[!now.bin.secret][i] = draw();
	previous.rotate = kind > 1;
	return apply_after(kind == 3 ? doc.s : paced_text(), &previous);
}

/* One packet of source 1; is it admitted? */
static bool paced_one(uint64_t now_ns)
{
	struct pacer_state state = {
	    .table = {paced_lines, PACED_LINES}, .policy = &now.bin, .secret = paced_secret[0]};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};

	walk.pkt = (struct pacer_packet){.family = PACER_FAMILY_4, .len_bytes = 100};
	walk.pkt.key[PACER_WORD_SADDR] = 1;
	return pacer_outcome_reason(judge_parsed(&walk)) == PACER_ADMIT;
}

/*
 * A rate is kept that came later than the one that retires, of the same rate: it has not counted
 * the burst before it came, and must not let another through when the older one is over.
 */
static void test_a_young_rate_has_no_second_burst(void **unused)
{
	static const char old[] = "{key: src, rate: 10/s, burst: 50}";
	static const char young[] = "{key: src, rate: 10/s, burst: 40, entries: 40}";
	char both[128];
	uint32_t n = 0;

	(void)unused;
	snprintf(both, sizeof(both), "%s, %s", old, young);
	memset(paced_lines, 0, sizeof(paced_lines));
	assert_int_equal(load(rule_of("memory: 64Ki\nclock: exact", old)), 0);
	for (uint32_t i = 0; i < 60; i++)
		n += paced_one(host.now_ns);
	assert_int_equal(n, 50);
	assert_int_equal(apply(rule_of("clock: exact", both)), 0);
	time_draining();
	assert_int_equal(apply(rule_of("clock: exact", young)), 0);
	assert_string_equal(limiters_text(0), "G= G-");
	time_draining();
	for (uint32_t i = 1; i <= 10000; i++) { /* ten seconds, at ten times the rate */
		n += paced_one(host.now_ns + i * MS);
		assert_true(n <= 50 + i / 100);
	}
	assert_true(n >= 50 + 90);
}

/*
 * A rate that came shortly before one of another speed retires has not counted what that had let
 * through: to an old burst it must not add its own.
 */
static void test_a_young_rate_of_another_speed(void **unused)
{
	static const char old[] = "{key: src, rate: 100/s, burst: 50}";
	static const char both[] = "{key: src, rate: 100/s, burst: 50}, "
				   "{key: src, rate: 1/s, burst: 500}";
	static const char young[] = "{key: src, rate: 1/s, burst: 500}";
	uint64_t began_ns = host.now_ns;
	uint32_t n = 0;

	(void)unused;
	memset(paced_lines, 0, sizeof(paced_lines));
	assert_int_equal(load(rule_of("memory: 64Ki\nclock: exact", old)), 0);
	for (uint32_t i = 0; i < 4000; i++)
		n += paced_one(host.now_ns += MS);
	assert_in_range(n, 449, 450);
	assert_int_equal(apply(rule_of("clock: exact", both)), 0);
	time_draining();
	host.now_ns += 10 * MS;
	assert_int_equal(apply(rule_of("clock: exact", young)), 0);
	assert_string_equal(limiters_text(0), "G= G-");
	time_draining();
	for (uint32_t i = 0; i < 2000; i++)
		n += paced_one(host.now_ns += MS);
	assert_true(n <= 50 + 100 * (host.now_ns - began_ns) / SECOND);
}

/* Two rates of a key, of which the second comes and, after a while, stays alone. */
struct change_of_rates {
	uint32_t rate[2], burst[2];
	uint64_t end_ns; /* of the first */
	uint64_t at_ns[4096];
	uint32_t n;
};

static void admit_some(struct change_of_rates *c, uint64_t until_ns)
{
	while (host.now_ns < until_ns) {
		if (!(draw() % 16))
			host.now_ns += draw() % (4 * SECOND);
		else
			host.now_ns += draw() % (20 * MS);
		if (host.now_ns < until_ns && c->n < ARRAY(c->at_ns) && paced_one(host.now_ns))
			c->at_ns[c->n++] = host.now_ns;
	}
	host.now_ns = until_ns;
}

/* Of each window: what one of them alone would admit, or the first to its end, then the second. */
static void assert_both_rates(const struct change_of_rates *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		for (uint32_t k = i; k < c->n; k++) {
			uint64_t ns = c->at_ns[k] - c->at_ns[i], after_ns = 0;
			uint64_t cost = (uint64_t)(k - i + 1) * SECOND;

			if (c->at_ns[k] > c->end_ns && c->at_ns[i] < c->end_ns)
				after_ns = c->at_ns[k] - c->end_ns;
			if (cost > c->burst[0] * SECOND + c->rate[0] * ns &&
			    cost > c->burst[1] * SECOND + c->rate[1] * ns &&
			    (!after_ns || cost > c->burst[0] * SECOND +
						     c->rate[0] * (ns - after_ns) +
						     c->rate[1] * after_ns))
				fail_msg("%u in %llu ns, the last %llu of them after the end\n%s",
					 k - i + 1, (unsigned long long)ns,
					 (unsigned long long)after_ns, doc.s);
		}
}

static void test_two_rates_together(void **unused)
{
	static struct change_of_rates c;
	uint32_t waited = 0, runs = 150;

	(void)unused;
	for (uint32_t run = 0; run < runs; run++) {
		char one[2][64], both[160];

		c.n = 0;
		for (int i = 0; i < 2; i++) {
			c.rate[i] = (uint32_t)magnitude(1, 200);
			c.burst[i] = (uint32_t)between(1, 100);
			snprintf(one[i], sizeof(one[i]), "{key: src, rate: %u/s, burst: %u}",
				 c.rate[i], c.burst[i]);
		}
		snprintf(both, sizeof(both), "%s, %s", one[0], one[1]);
		memset(paced_lines, 0, sizeof(paced_lines));
		assert_int_equal(load(rule_of("memory: 64Ki\nclock: exact", one[0])), 0);
		admit_some(&c, host.now_ns + 2 * SECOND);
		assert_int_equal(apply(rule_of("clock: exact", both)), 0);
		time_draining();
		admit_some(&c, host.now_ns + draw() % (run & 1 ? 9 * SECOND : 100 * MS));
		assert_int_equal(apply(rule_of("clock: exact", one[1])), 0);
		time_draining();
		c.end_ns = UINT64_MAX;
		for (uint32_t k = 0; k < now.bin.rule[0].n_limiters; k++)
			if (now.bin.rule[0].limiter[k].until_ns)
				c.end_ns = now.bin.rule[0].limiter[k].until_ns;
		waited += now.bin.rule[0].limiter[0].rate.begin_ns != 0;
		admit_some(&c, host.now_ns + 2 * SECOND);
		if (c.end_ns != UINT64_MAX && host.now_ns < c.end_ns + 2 * SECOND)
			admit_some(&c, c.end_ns + 2 * SECOND);
		assert_both_rates(&c);
	}
	assert_in_range(waited, runs / 4, runs - 10);
}

/* Rates that came together, or have counted together for long, need not wait; but one that drained.
 */
static void test_rates_that_have_counted(void **unused)
{
	static const char first[] = "{key: src, rate: 100/s, burst: 50}";
	static const char both[] = "{key: src, rate: 100/s, burst: 50}, "
				   "{key: src, rate: 10/s, burst: 50}";
	static const char last[] = "{key: src, rate: 10/s, burst: 50}";
	const struct pacer_limiter *t = now.bin.rule[0].limiter;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", both)), 0);
	assert_int_equal(apply(rule_of("clock: exact", last)), 0);
	assert_int_equal(t[0].rate.begin_ns, 0);
	for (int cut_off = 0; cut_off < 2; cut_off++) {
		assert_int_equal(load(rule_of("clock: exact", first)), 0);
		assert_int_equal(apply(rule_of("clock: exact", both)), 0);
		assert_true(compile_rates_begin(&now.bin.rule[0]));
		if (!cut_off)
			time_draining();
		host.now_ns += SECOND; /* 50 take 1/90 s of the difference at least */
		assert_int_equal(apply(rule_of("clock: exact", last)), 0);
		assert_true(t[0].rate.begin_ns == (cut_off ? COMPILE_UNTIL_SET : 0));
	}
	/* it was draining, and may have ended before it is in force again */
	assert_int_equal(load(rule_of("clock: coarse", last)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", first)), 0);
	time_draining();
	host.now_ns += 10 * MS;
	assert_int_equal(apply(rule_of("clock: coarse", last)), 0);
	assert_string_equal(limiters_text(0), "G= G-");
	assert_true(t[0].rate.begin_ns == COMPILE_UNTIL_SET);
}

/* Since when a rate counts is a time as others are, on another clock, too. */
static void test_rates_count_on_another_clock(void **unused)
{
	static const struct {
		int64_t by_s;
		uint64_t now_s;
		bool waits;
	} cases[] = {
	    {1000, 2000, true},	 /* it has counted for as long as before */
	    {1000, 2100, false}, /* ... and for a hundred seconds more */
	    {-900, 100, true},	 {-900, 200, false},
	    {-2000, 1, true}, /* it began before the clock */
	    {-2000, 100, false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		host.now_ns = 1000 * SECOND;
		assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 50}")),
				 0);
		assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 50}, "
							       "{key: src, rate: 1/s, burst: 9}")),
				 0);
		time_draining();
		for (uint32_t k = 0; k < 2; k++)
			compile_carry_rate(&now.bin.rule[0].limiter[k],
					   cases[i].by_s * (int64_t)SECOND,
					   cases[i].now_s * SECOND);
		host.now_ns = cases[i].now_s * SECOND;
		assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 1/s, burst: 90}")),
				 0);
		assert_string_equal(limiters_text(0), "G= G-");
		assert_int_equal(now.bin.rule[0].limiter[0].rate.begin_ns != 0, cases[i].waits);
	}
}

#define FAST "{key: src, rate: 2/s, burst: 50}"
#define GAPS "{key: src, gap: 1ms, rows: 1}"

/* Of two that both came before this clock began, none is known to have counted for longer. */
static void test_rates_of_before_the_clock(void **unused)
{
	(void)unused;
	host.now_ns = 1000 * SECOND;
	assert_int_equal(load(rule_of("clock: exact", GAPS)), 0);
	assert_int_equal(apply(rule_of("clock: exact", GAPS ", " FAST)), 0);
	time_draining();
	host.now_ns += 100 * SECOND;
	assert_int_equal(
	    apply(rule_of("clock: exact", GAPS ", " FAST ", {key: src, rate: 1/s, burst: 9}")), 0);
	time_draining();
	for (uint32_t k = 0; k < now.bin.rule[0].n_limiters; k++)
		if (now.bin.rule[0].limiter[k].kind == PACER_LIMITER_RATE)
			compile_carry_rate(&now.bin.rule[0].limiter[k], -2000 * (int64_t)SECOND,
					   SECOND);
	host.now_ns = SECOND;
	assert_int_equal(apply(rule_of("clock: exact", GAPS ", {key: src, rate: 1/s, burst: 90}")),
			 0);
	assert_string_equal(limiters_text(0), "Sg= G= G-");
	assert_true(now.bin.rule[0].limiter[1].rate.begin_ns != 0);
}

/* One a second beside one of two, both in force. */
static void put_a_rate_beside(void)
{
	host.now_ns = 1000 * SECOND;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 50}")), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 2/s, burst: 50}, "
						       "{key: src, rate: 1/s, burst: 9}")),
			 0);
	time_draining();
}

/* Since when a rate counts is told up to the last tick of a clock, and beyond that as long ago. */
static void test_rates_count_up_to_the_last_tick(void **unused)
{
	static const uint8_t formerly[sizeof(now.bin.rule[0].limiter[0].unused)] = {1};
	struct pacer_limiter *t = &now.bin.rule[0].limiter[1];

	(void)unused;
	put_a_rate_beside();
	compile_carry_rate(t, INT64_MAX / 2 - 1001 * (int64_t)SECOND, host.now_ns);
	assert_memory_not_equal(t->unused, formerly, sizeof(formerly));
	compile_carry_rate(t, INT64_MAX, host.now_ns);
	assert_memory_equal(t->unused, formerly, sizeof(formerly));
}

/* What a rate of packets has counted says nothing of bytes: it waits for a rate of those. */
static void test_rates_of_another_cost_wait(void **unused)
{
	(void)unused;
	for (uint32_t bytes = 0; bytes < 2; bytes++) {
		const char *was = bytes ? "{key: src, rate: 90B/s, burst: 9K}"
					: "{key: src, rate: 2/s, burst: 50}";
		char both[128];

		snprintf(both, sizeof(both), "%s, {key: src, rate: 1/s, burst: 9}", was);
		host.now_ns = 1000 * SECOND;
		assert_int_equal(load(rule_of("clock: exact", was)), 0);
		assert_int_equal(apply(rule_of("clock: exact", both)), 0);
		time_draining();
		host.now_ns += 1000 * SECOND;
		assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 1/s, burst: 9}")),
				 0);
		assert_string_equal(limiters_text(0), "G= G-");
		assert_int_equal(now.bin.rule[0].limiter[0].rate.begin_ns != 0, bytes);
	}
}

/* One that is to count only when the other has ended has counted nothing beside it. */
static void test_rates_that_count_after_the_end_wait(void **unused)
{
	(void)unused;
	put_a_rate_beside();
	compile_carry_rate(&now.bin.rule[0].limiter[1], 2000 * (int64_t)SECOND, host.now_ns);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, rate: 1/s, burst: 9}")), 0);
	assert_string_equal(limiters_text(0), "G= G-");
	assert_int_not_equal(now.bin.rule[0].limiter[0].rate.begin_ns, 0);
}

/*
 * A change that was cut off says on another clock, too, that its rate is still to begin. Else
 * nobody tells it when, and it holds the key's packets to an end that has not come.
 */
static void test_a_rate_still_to_begin_on_another_clock(void **unused)
{
	static struct pacer_throttle_state throttle[PACER_THROTTLES];
	static const int64_t by_s[] = {1, -900, -2000};

	(void)unused;
	for (size_t i = 0; i < ARRAY(by_s); i++) {
		host.now_ns = 1000 * SECOND;
		assert_int_equal(load(rule_of("clock: exact", "{key: src, rate: 10/s, burst: 50}")),
				 0);
		assert_int_equal(
		    apply(rule_of("clock: exact", "{key: src, rate: 20/s, burst: 50}")), 0);
		assert_true(compile_rates_begin(&now.bin.rule[0]));
		memset(paced_lines, 0, sizeof(paced_lines));
		carry(&now.bin, paced_lines, PACED_LINES, throttle, by_s[i] * (int64_t)SECOND,
		      host.now_ns);
		assert_true(compile_rates_begin(&now.bin.rule[0]));
	}
}

/* On another clock a ban goes on, or is over; then its row goes on for as long as its rule says, if
 * there is one.
 */
static void test_bans_on_another_clock(void **unused)
{
	static struct pacer_throttle_state throttle[PACER_THROTTLES];
	static struct pacer_policy p;
	struct pacer_line line[PACER_BAN_WAYS + 2] = {0};

	(void)unused;
	p.bans = (struct pacer_bans){.sets = 1, .filter = PACER_BAN_WAYS};
	p.rule[3].id = 30;
	p.rule[3].ban_grow = 2;
	p.rule[3].ban_forget_ns = 300 * SECOND;
	p.rule[4].id = 40;
	for (uint32_t i = 0; i < 4; i++) {
		line[i].ban_until_ns = (i == 3 ? 900 : 100) * SECOND;
		line[i].ban_rule = 30 + 10 * i; /* none has the id 50 or 60 */
	}
	carry(&p, line, PACER_BAN_WAYS + 2, throttle, -200 * (int64_t)SECOND, SECOND);
	assert_int_equal(line[0].ban_until_ns, 1);
	assert_int_equal(line[1].ban_until_ns, 0);
	assert_int_equal(line[2].ban_until_ns, 0);
	assert_int_equal(line[3].ban_until_ns, 700 * SECOND);
}

#define DENIES "clock: exact\nmemory: 64Ki\nrules:\n- {name: a, verdict: drop}\n"

static const struct pacer_rule *resting(void)
{
	const struct pacer_rule *found = NULL;

	for (size_t r = now.policy->n_rules; r < PACER_RULES_MAX; r++)
		if (now.bin.rule[r].n_limiters) {
			assert_null(found);
			assert_int_equal(now.bin.rule[r].counter, 0);
			assert_false(pacer_rules_has(&now.bin.rules, r));
			found = &now.bin.rule[r];
		}
	return found;
}

/* A policy in which rule `a` admits nothing, for a minute, and then this one. */
static void deny_for_a_minute(const char *denies, const char *then)
{
	assert_int_equal(apply(denies), 0);
	if (now.policy->n_rules)
		assert_int_equal(now.bin.rule[0].n_limiters, 0);
	assert_non_null(resting());
	assert_true(resting()->limiter[0].until_ns == COMPILE_UNTIL_SET);
	time_draining();
	assert_true(resting()->limiter[0].until_ns ==
		    host.now_ns + compile_limiter_memory_ns(&resting()->limiter[0]));
	host.now_ns += 60 * SECOND;
	assert_int_equal(apply(then), 0);
	assert_null(resting());
	time_draining();
}

/* What its limits have counted is as true when it asks them again. */
static void test_a_rule_denies_and_asks_again(void **unused)
{
	static const char *const denies[] = {
	    DENIES,
	    ("clock: exact\nrules:\n- {name: a, verdict: pool p}\n"
	     "pools:\n- {name: p, targets: [veth1], each: 9, cooldown: 1s}\n"),
	    "clock: exact\nelse: drop\nrules: []\n",
	};
	static const char *const limits[] = {
	    "{key: src, packets: 100, window: 1h}",
	    "{key: src, gap: 1h}",
	    "{key: src, rate: 100/h, burst: 100}",
	    "{key: all, uses: 100, cooldown: 1h}",
	    "{key: src, packets: 100, window: 1h}, {key: dst, packets: 300, window: 2h}",
	};
	static const char *const marks[] = {"Rw=", "Sg=", "G+ G-", "T=", "Rw= Rw="};

	(void)unused;
	for (size_t i = 0; i < ARRAY(denies); i++)
		for (size_t k = 0; k < ARRAY(limits); k++) {
			const char *text = rule_of("memory: 64Ki\nclock: exact", limits[k]);
			struct pacer_limiter was;

			assert_int_equal(load(text), 0);
			was = now.bin.rule[0].limiter[0];
			deny_for_a_minute(denies[i], text);
			assert_string_equal(limiters_text(0), marks[k]);
			/* its times may have been the coarse clock's: nobody knows */
			was.unused[0] |= k == 1;
			if (k != 2)
				assert_memory_equal(&now.bin.rule[0].limiter[0], &was, sizeof(was));
		}
}

/* And no window has more of its packets for that. */
static void test_a_rule_that_denied_admits_no_more(void **unused)
{
	const char *text =
	    rule_of("memory: 64Ki\nclock: exact", "{key: src, packets: 100, window: 1h}");
	uint32_t n = 0;

	(void)unused;
	memset(paced_lines, 0, sizeof(paced_lines));
	assert_int_equal(load(text), 0);
	for (uint32_t i = 0; i < 150; i++)
		n += paced_one(host.now_ns + i);
	deny_for_a_minute(DENIES, text);
	begin_epoch(0);
	for (uint32_t i = 0; i < 150; i++)
		n += paced_one(host.now_ns + i);
	assert_int_equal(n, 100);
}

/* Of another shape, it has both; what does not count any more is gone; other rules keep off. */
static void test_what_rests_drains_and_ends(void **unused)
{
	const struct pacer_limiter *t;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	deny_for_a_minute("clock: exact\nelse: drop\nrules: []\n", rule_of("clock: exact", WIN));
	assert_string_equal(limiters_text(0), "Rw+"); /* it was over */
	assert_int_equal(load(rule_of("clock: exact", "{key: src, packets: 9, window: 1h}")), 0);
	assert_int_equal(apply(DENIES), 0);
	time_draining();
	assert_int_equal(apply("clock: exact\nrules:\n- {name: a, verdict: drop}\n"
			       "- {name: b, limits: [" WIN "]}\n"),
			 0);
	t = &resting()->limiter[0];
	assert_true(now.bin.rule[1].limiter[0].base >= t->base + compile_limiter_lines(t));
	assert_true(t->until_ns != COMPILE_UNTIL_SET);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, packets: 9, window: 2h}")), 0);
	assert_string_equal(limiters_text(0), "Rw+ Rw-");
	assert_int_equal(resting()->id, compile_name_id("b"));
	/* and an exact policy's limit is asked by an exact clock, whatever came between */
	assert_int_equal(load(rule_of("clock: exact", "{key: src, packets: 9, window: 1h}")), 0);
	assert_int_equal(apply("clock: coarse\nrules:\n- {name: a, verdict: drop}\n"), 0);
	assert_true(now.bin.flags & PACER_CLOCK_EXACT);
}

/* To pass is to have no limit: no window with that in it has one. */
static void test_a_rule_that_passes_keeps_nothing(void **unused)
{
	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, packets: 9, window: 1h}")), 0);
	assert_int_equal(apply("clock: exact\nrules:\n- {name: a, verdict: pass}\n"), 0);
	assert_null(resting());
}

/* A rule that denies has to have a place; one that is gone has one where there is any. */
static void test_no_place_to_rest(void **unused)
{
	(void)unused;
	say_again();
	say("rules:\n- {name: a, limits: [{key: all, gap: 1h}]}\n");
	say_rules("r", PACER_RULES_MAX - 1);
	assert_int_equal(load(doc.s), 0);
	say_again();
	say("rules:\n- {name: a, verdict: drop}\n");
	say_rules("r", PACER_RULES_MAX - 1);
	assert_int_equal(apply(doc.s), -1);
	assert_non_null(strstr(error.text, "there is no place for it"));
	say_again();
	say("rules:\n- {name: a, verdict: drop}\n");
	say_rules("r", PACER_RULES_MAX - 3);
	assert_int_equal(apply(doc.s), 0);
	assert_int_equal(now.plan.n_resting, 2);
	assert_non_null(resting_of(&now.bin, compile_name_id("a")));
}

#define USES_OF(n) rule_of("", "{key: all, uses: " #n ", cooldown: 10s}")

/*
 * CPUs may still hold what they leased two changes ago: so many uses the newest limit has to have.
 * A lease lasts for 100 ms of this throttle.
 */
static void test_leases_of_two_changes_ago(void **unused)
{
	uint64_t began_ns;

	(void)unused;
	host.cpus = 4;
	for (int cut_off = 0; cut_off < 2; cut_off++) {
		assert_int_equal(load(USES_OF(400000)), 0);
		assert_int_equal(now.bin.rule[0].limiter[0].throttle.lease, 256);
		assert_int_equal(apply(USES_OF(1020)), 0);
		assert_int_equal(now.bin.rule[0].limiter[0].throttle.lease, 1);
		assert_string_equal(limiters_text(0), "T=");
		began_ns = host.now_ns;
		if (!cut_off) /* else nobody knows when it began */
			time_draining();
		assert_int_equal(apply(USES_OF(1021)), 0);
		assert_string_equal(limiters_text(0), "T=");
		host.now_ns = began_ns + (cut_off ? 10 * SECOND : 100 * MS);
		assert_int_equal(apply(USES_OF(10)), 0);
		assert_string_equal(limiters_text(0), "T+ T-");
	}
	assert_int_equal(load(USES_OF(400000)), 0);
	assert_int_equal(apply(USES_OF(1020)), 0);
	time_draining();
	host.now_ns += 300 * MS;
	assert_int_equal(apply(USES_OF(10)), 0);
	assert_string_equal(limiters_text(0), "T=");
}

/* No CPU has a lease any more on another clock: what is lowered then goes on, and none drains. */
static void test_leases_end_with_the_clock(void **unused)
{
	static struct pacer_throttle_state state[PACER_THROTTLES];

	(void)unused;
	host.cpus = 4;
	for (int moves = 0; moves < 2; moves++) {
		host.now_ns = 1000 * SECOND;
		assert_int_equal(load(USES_OF(400000)), 0);
		assert_int_equal(apply(USES_OF(1020)), 0);
		time_draining();
		assert_int_equal(throttle_leased(&now.bin.rule[0].limiter[0], host.now_ns), 256);
		if (moves) {
			carry(&now.bin, NULL, 0, state, -999 * (int64_t)SECOND, SECOND);
			host.now_ns = SECOND;
		}
		assert_int_equal(apply(USES_OF(10)), 0);
		assert_string_equal(limiters_text(0), moves ? "T=" : "T+ T-");
	}
}

/* Limits hold across every change, on the real clock, whatever is kept, draining or begun anew. */
static void test_paced_across_changes(void **unused)
{
	uint32_t i, e, changes = 0, rotations = 0, moved = 0, n = 0;

	(void)unused;
	for (i = 0; i < 2 * PACER_SECRETS; i++)
		paced_secret[i / PACER_SECRETS][i % PACER_SECRETS] = draw();
	for (i = 0; i < 60; i++) {
		memset(paced_lines, 0, sizeof(paced_lines));
		memset(n_admitted, 0, sizeof(n_admitted));
		assert_int_equal(load(paced_text()), 0);
		begin_epoch(0);
		for (e = 0; e < 100;) {
			n += pace_for(draw() % 30, e);
			if (change_paced())
				continue;
			changes++;
			rotations += now.plan.rotated;
			moved += !!strchr(limiters_text(0), '~');
			begin_epoch(++e);
		}
	}
	assert_true(changes == 6000 && n > 20000);
	assert_true(rotations > 500 && moved > 200);
}

/* ---- denials, of one source, against an oracle that keeps every admission ---- */

static struct oracle_deque held;
static uint64_t last_ns;

static const struct pacer_limiter *limiter_with(bool gap)
{
	const struct pacer_rule *rule = &now.bin.rule[0];

	for (uint32_t i = 0; i < rule->n_limiters; i++)
		if (gap ? rule->limiter[i].gap_ns != 0
			: rule->limiter[i].kind == PACER_LIMITER_WINDOW)
			return &rule->limiter[i];
	fail_msg("no such tier: %s", doc.s);
	return NULL;
}

/* A denial beyond what its limit states of itself is a failure. */
static void assert_denial(enum pacer_reason reason, uint64_t time_ns)
{
	const struct pacer_limiter *gap = limiter_with(true), *window = limiter_with(false);
	uint64_t more_ns = compile_gap_more_ns(gap);

	assert_true(!more_ns || more_ns < gap->gap_ns / COMPILE_GAP_SHARE);
	if (reason == PACER_DENY_WINDOW) {
		assert_true(deque_total(&held, time_ns) + 1 > window->window.limit);
		return;
	}
	assert_int_equal(reason, PACER_DENY_GAP);
	if (!last_ns || time_ns - last_ns >= gap->gap_ns + more_ns)
		fail_msg(
		    "denied %llu ns after the last, the gap being %llu and up to %llu more\n%s",
		    (unsigned long long)(time_ns - last_ns), (unsigned long long)gap->gap_ns,
		    (unsigned long long)more_ns, doc.s);
}

/* A source, new, under limits of which the second is a gap. */
static void begin_source(void)
{
	assert_int_equal(load(doc.s), 0);
	memset(paced_lines, 0, sizeof(paced_lines));
	deque_free(&held);
	held.interval = limiter_with(false)->window.ring_ns - 1;
	last_ns = 0;
	host.now_ns = SECOND;
}

/* One packet of it, at the time as the policy's clock has it. */
static void one_packet(uint64_t time_ns)
{
	struct pacer_state state = {
	    .table = {paced_lines, PACED_LINES}, .policy = &now.bin, .secret = paced_secret[0]};
	struct pacer_walk walk = {.state = &state, .now_ns = time_ns};
	enum pacer_reason reason;

	walk.pkt = (struct pacer_packet){.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 100};
	reason = pacer_outcome_reason(judge_parsed(&walk));
	if (reason != PACER_ADMIT) {
		assert_denial(reason, time_ns);
		return;
	}
	assert_true(!last_ns || time_ns - last_ns >= now.policy->rule[0].limit[1].gap_ns);
	last_ns = time_ns;
	deque_add(&held, time_ns, 1);
}

/* A gap and a window of one key, of any lengths, on either clock. */
static void test_denials_are_bounded(void **unused)
{
	uint32_t run, i, n = 0, shared = 0;

	(void)unused;
	for (run = 0; run < 400; run++) {
		uint64_t gap_ns = magnitude(1, 3600 * SECOND);
		uint64_t window_ns = magnitude(58, 800ull * 86400 * SECOND);
		bool coarse = draw() & 1;

		say_again();
		say("clock: %s\nmemory: 64Ki\nrules:\n- name: a\n  limits:\n",
		    coarse ? "coarse" : "exact");
		say("  - {key: src, packets: %u, window: %lluns, slots: %u}\n",
		    (uint32_t)between(1, 300), (unsigned long long)window_ns,
		    (uint32_t)between(1, 58));
		say("  - {key: src, gap: %lluns}\n", (unsigned long long)gap_ns);
		begin_source();
		shared += compile_gap_more_ns(limiter_with(true)) != 0;
		for (i = 0; i < 400; i++) {
			host.now_ns += draw() % 3 ? between(0, 2 * gap_ns)
						  : limiter_with(true)->gap_ns + draw() % 9;
			one_packet(host.now_ns - (coarse ? host.now_ns % RESOLUTION : 0));
		}
		n += held.end;
	}
	deque_free(&held);
	assert_true(n > 10000 && shared > 20);
}

/* 200 packets 10 ms apart, and a gap of 1 ms: the longest window beside it denies none. */
static void test_gap_beside_a_long_window(void **unused)
{
	(void)unused;
	rule_of("clock: exact\nmemory: 64Ki",
		"{key: src, packets: 1k, window: 800d, slots: 1}, {key: src, gap: 1ms}");
	begin_source();
	for (uint32_t i = 0; i < 200; i++)
		one_packet(SECOND + i * 10 * MS);
	assert_int_equal(held.end, 200);
	deque_free(&held);
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
	    TEST(test_key_masks),
	    TEST(test_keys_of_numbers),
	    TEST(test_fragment_keys),
	    TEST(test_limiters),
	    TEST(test_one_record_for_all),
	    TEST(test_widths),
	    TEST(test_plain),
	    TEST(test_bans),
	    TEST(test_a_table_of_bans_began),
	    TEST(test_regions),
	    TEST(test_raised_beyond_narrow),
	    TEST(test_ceiling),
	    TEST(test_entries_of_a_sketch),
	    TEST(test_no_room),
	    TEST(test_memory),
	    TEST(test_longest_window),
	    TEST(test_idle_time),
	    TEST(test_gap_outlives_the_ring),
	    TEST(test_bytes),
	    TEST(test_pools_of_rules),
	    TEST(test_counters_of_sets),
	    TEST(test_clock),
	    TEST(test_rate_lines),
	    TEST(test_draining_rate),
	    TEST(test_draining_rates_end_together),
	    TEST(test_a_rate_waits_for_no_window),
	    TEST(test_a_rate_of_other_packets_waits),
	    TEST(test_draining_rates_of_several_ends),
	    TEST(test_what_ends_soon_is_held),
	    TEST(test_a_burst_grows_beside_another_rate),
	    TEST(test_a_burst_grows_beside_one_that_is_lowered),
	    TEST(test_a_burst_that_was_lowered_adds_up),
	    TEST(test_a_burst_that_builds_waits),
	    TEST(test_a_rate_beside_one_that_came_back),
	    TEST(test_a_burst_that_builds_grows),
	    TEST(test_a_burst_that_builds_is_lowered),
	    TEST(test_a_burst_grows_that_was_larger),
	    TEST(test_a_begun_rate_on_another_clock),
	    TEST(test_clock_of_the_draining),
	    TEST(test_rates_apart_by_a_fraction),
	    TEST(test_changes),
	    TEST(test_gap_beyond_the_record),
	    TEST(test_modes_are_values),
	    TEST(test_draining_and_back),
	    TEST(test_draining_and_looser),
	    TEST(test_end_of_the_draining),
	    TEST(test_too_many_limiters),
	    TEST(test_no_room_beside),
	    TEST(test_rules_move),
	    TEST(test_counters_run_out),
	    TEST(test_limit_of),
	    TEST(test_any_changes),
	    TEST(test_a_young_rate_has_no_second_burst),
	    TEST(test_a_young_rate_of_another_speed),
	    TEST(test_two_rates_together),
	    TEST(test_rates_that_have_counted),
	    TEST(test_rates_count_on_another_clock),
	    TEST(test_rates_of_before_the_clock),
	    TEST(test_rates_count_up_to_the_last_tick),
	    TEST(test_rates_of_another_cost_wait),
	    TEST(test_rates_that_count_after_the_end_wait),
	    TEST(test_a_rate_still_to_begin_on_another_clock),
	    TEST(test_bans_on_another_clock),
	    TEST(test_a_rule_denies_and_asks_again),
	    TEST(test_a_rule_that_denied_admits_no_more),
	    TEST(test_what_rests_drains_and_ends),
	    TEST(test_a_rule_that_passes_keeps_nothing),
	    TEST(test_no_place_to_rest),
	    TEST(test_leases_of_two_changes_ago),
	    TEST(test_leases_end_with_the_clock),
	    TEST(test_paced_across_changes),
	    TEST(test_denials_are_bounded),
	    TEST(test_gap_beside_a_long_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
