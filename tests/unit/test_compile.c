/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From policies as their operators write them to what the packet path reads: keys, limits and their
 * places, and what one change of policy keeps and retires.
 */
#include "applied.h"
#include "classified.h"
#include "limit_texts.h"
#include "plan/carry.h"
#include "plan/kinds.h"
#include "rule.h"
#include "table.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	    TEST(test_bytes),
	    TEST(test_pools_of_rules),
	    TEST(test_counters_of_sets),
	    TEST(test_changes),
	    TEST(test_gap_beyond_the_record),
	    TEST(test_modes_are_values),
	    TEST(test_draining_and_back),
	    TEST(test_draining_and_looser),
	    TEST(test_end_of_the_draining),
	    TEST(test_too_many_limiters),
	    TEST(test_no_room_beside),
	    TEST(test_limit_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
