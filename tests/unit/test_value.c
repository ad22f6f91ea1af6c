/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keys that have the values of sets: what counts together, which text a key has and is read by, and
 * what a change of the policy makes of such limits.
 */
#include "oracle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "applied.h"
#include "path.h"
#include "inspect/tally.h"
#include "live/restore.h"
#include "plan/keymask.h"
#include "plan/kinds.h"
#include "sets/hand.h"
#include "sets/texts.h"

static struct pacer_set set[PACER_SETS_MAX], hand[PACER_SETS_MAX];

/* --- words ---------------------------------------------------------------------------------- */

static void test_words(void **unused)
{
	char text[SET_WORD_TEXT], other[SET_WORD_TEXT];
	size_t n = 0;

	(void)unused;
	assert_int_not_equal(set_word_of("geo", "XY"), set_word_of("geo", "AB"));
	assert_int_not_equal(set_word_of("geo", "XY"), set_word_of("asn", "XY"));
	assert_int_not_equal(set_word_of("ge", "oXY"), set_word_of("geo", "XY"));
	snprintf(other, sizeof(other), "value(#%08x)", set_word_of("land", "Q"));
	assert_string_equal(set_word_text(set_word_of("land", "Q"), text, sizeof(text)), other);
	assert_int_equal(set_word_read(other, &n), set_word_of("land", "Q"));
	assert_int_equal(n, strlen(other));
	set_words_learn("land", "Q");
	assert_string_equal(set_word_text(set_word_of("land", "Q"), text, sizeof(text)),
			    "value(land, Q)");
	assert_string_equal(set_word_set(set_word_of("land", "Q")), "land");
	n = 0;
	assert_int_equal(set_word_read("value(land,Q) 53", &n), set_word_of("land", "Q"));
	assert_int_equal(n, strlen("value(land,Q)"));
	n = 0;
	assert_int_equal(set_word_read("value(land, A (B) C)>x", &n), set_word_of("land", "A (B"));
	assert_int_equal(n, strlen("value(land, A (B)"));
	assert_int_equal(set_word_read("value(land, A (B) C)>x", &n),
			 set_word_of("land", "A (B) C"));
	assert_int_equal(n, strlen("value(land, A (B) C)"));
	assert_int_equal(set_word_read("value(land, A (B) C)>x", &n), 0);
	assert_int_equal(n, 0);
	/* No name has a blank at an end, so these say nothing. */
	assert_int_equal(set_word_read("value(land,   Q )", &n), set_word_of("land", "Q"));
	n = 0;
	assert_int_equal(set_word_read("value(land)", &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(set_word_read("value(#00000000)", &n), 0);
	assert_int_equal(set_word_read("value(, Q)", &n), 0);
	assert_int_equal(set_word_read("value(land, )", &n), 0);
	assert_int_equal(set_word_read("192.0.2.1", &n), 0);
	assert_int_equal(set_word_read("value(land, )x)", &n), set_word_of("land", ")x"));
	assert_int_equal(n, strlen("value(land, )x)"));
}

/* All names of a set, there and back; what is cut or written over is refused or another's. */
static void test_texts(void **unused)
{
	struct set_names names = {NULL, 0, NULL, 0}, back = {NULL, 0, NULL, 0};
	struct set_about about = {"geo", &names, 0};
	struct set_list list = {.about = &about};
	struct set_lines lines;
	struct pacer_set built;
	char name[16];

	(void)unused;
	for (uint32_t i = 0; i < 1000; i++) {
		struct set_entry e = {
		    .family = 4, .len = 24, .high = (uint64_t)i << 40, .value = (uint16_t)(i + 1)};

		snprintf(name, sizeof(name), "AS%u", i);
		assert_int_equal(set_names_add(&names, (struct set_word){name, strlen(name)}),
				 (int)i + 1);
		assert_int_equal(set_list_add(&list, &e), 0);
	}
	assert_int_equal(set_build(&list, 1, &lines), 0);
	assert_int_equal(set_words_put(&lines, &about), 0);
	built = set_lines_set(&lines);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(pacer_set_word(&built, (uint32_t)pacer_set_find4(&built, i << 8)),
				 set_word_of("geo", names.name[i]));
	assert_int_equal(pacer_set_word(&built, 0), set_word_of("geo", SET_WORD_NONE));
	assert_int_equal(set_words_take(&lines, &back), 0);
	assert_int_equal(back.n, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_string_equal(back.name[i], names.name[i]);
	set_names_free(&back);
	lines.n--; /* where the texts begin is in the line that is cut off */
	if (set_words_take(&lines, &back))
		assert_int_equal(errno, EBADMSG);
	set_names_free(&back);
	lines.n++;
	set_lines_free(&lines);
	set_list_free(&list);
	set_names_free(&names);
}

/* --- which keys count together -------------------------------------------------------------- */

static struct pacer_limiter limiter_of(const char *key)
{
	char text[300];

	snprintf(
	    text, sizeof(text),
	    "sets: [{name: geo, file: geo.csv, value: 2}, {name: asn, file: asn.csv, value: 2}]\n"
	    "rules: [{name: r, limits: [{key: \"%s\", gap: 1s}]}]\n",
	    key);
	assert_int_equal(load(text), 0);
	return now.bin.rule[0].limiter[0];
}

static struct pacer_packet packet(uint8_t family)
{
	struct pacer_packet pkt = {.family = family, .vlan = PACER_VLAN_NONE};

	for (uint32_t i = 0; i < PACER_KEY_WORDS; i++)
		if (family == PACER_FAMILY_6 || i == PACER_WORD_SADDR || i >= PACER_WORD_DADDR)
			pkt.key[i] = draw();
	if (family == PACER_FAMILY_4)
		pkt.key[5] = pkt.key[6] = pkt.key[7] = 0;
	return pkt;
}

static __u64 secret[2 * PACER_SECRETS];

static void draw_secret(void)
{
	for (size_t i = 0; i < 2 * PACER_SECRETS; i++)
		secret[i] = draw();
}

static uint64_t hash_of(const struct pacer_limiter *t, const struct pacer_packet *pkt, uint32_t src,
			uint32_t dst)
{
	struct pacer_state state = {.secret = secret};
	struct pacer_walk walk = {.state = &state, .value = {src, dst}, .pkt = *pkt};
	struct pacer_packet seen = pacer_limiter_sees(t, pkt, walk.value);
	__u32 back[2] = {0, 0};
	struct pacer_hash h;
	uint64_t both;

	pacer_limiter_saw(t, &seen, back);
	for (uint32_t i = 0; i < 2; i++)
		if (t->value[i])
			assert_int_equal(back[t->value[i] - 1], walk.value[t->value[i] - 1]);
	h = pacer_limiter_hash(t, &seen, secret);
	both = pacer_walk_key_hash(&walk, t, 0);
	assert_int_equal(both >> 32, h.home); /* the packet path's two ways to it */
	assert_int_equal((uint32_t)both, h.mark);
	return both;
}

static void test_together(void **unused)
{
	struct pacer_limiter src = limiter_of("value(geo, src)");
	struct pacer_limiter dport = limiter_of("value(geo, dst)+dport");
	struct pacer_limiter and = limiter_of("value(geo, src)+dst/24,56");
	struct pacer_limiter from = limiter_of("src/24,56+value(geo, dst)");
	struct pacer_limiter both = limiter_of("value(geo, src)+value(asn, dst)");

	(void)unused;
	oracle_seed(71);
	draw_secret();
	for (int i = 0; i < 200; i++) {
		struct pacer_packet a = packet(PACER_FAMILY_4), b = packet(PACER_FAMILY_6);
		struct pacer_packet c = packet(PACER_FAMILY_4);

		/* One key of both families. */
		assert_int_equal(hash_of(&src, &a, 7, 0), hash_of(&src, &b, 7, 0));
		assert_int_not_equal(hash_of(&src, &a, 7, 0), hash_of(&src, &a, 8, 0));
		assert_int_equal(hash_of(&both, &a, 7, 9), hash_of(&both, &b, 7, 9));
		assert_int_not_equal(hash_of(&both, &a, 7, 9), hash_of(&both, &a, 9, 7));
		c.key[PACER_WORD_PORTS] = a.key[PACER_WORD_PORTS] ^ 0x10000;
		c.key[PACER_WORD_META] = a.key[PACER_WORD_META];
		assert_int_equal(hash_of(&dport, &a, 7, 0), hash_of(&dport, &c, 7, 0));
		c.key[PACER_WORD_PORTS] ^= 1;
		assert_int_not_equal(hash_of(&dport, &a, 7, 0), hash_of(&dport, &c, 7, 0));
		/* With an address beside, each family has its own. */
		assert_int_not_equal(hash_of(&and, &a, 7, 0), hash_of(&and, &b, 7, 0));
		assert_int_not_equal(hash_of(&from, &a, 7, 0), hash_of(&from, &b, 7, 0));
		c = packet(PACER_FAMILY_4);
		c.key[PACER_WORD_DADDR] = a.key[PACER_WORD_DADDR] ^ 1;
		assert_int_equal(hash_of(&and, &a, 7, 0), hash_of(&and, &c, 7, 0));
		assert_int_not_equal(hash_of(&and, &a, 7, 0), hash_of(&and, &c, 6, 0));
		c = packet(PACER_FAMILY_6);
		memcpy(&c.key[PACER_WORD_DADDR], &b.key[PACER_WORD_DADDR], 16);
		c.key[PACER_WORD_DADDR + 3]++;
		assert_int_equal(hash_of(&and, &b, 7, 0), hash_of(&and, &c, 7, 0));
	}
}

/* What is written of a key is read again as that key. */
static void test_key_texts(void **unused)
{
	static const struct {
		const char *key, *text;
	} c[] = {
	    {"value(geo, src)", "value(geo, XY)"},
	    {"value(geo, dst)", "value(geo, XY)"},
	    {"value(geo, src)+value(asn, dst)", "value(geo, XY)>value(asn, AS 1)"},
	    {"value(geo, src)+dst", "value(geo, none)>192.0.2.7"},
	    {"src/24,56+value(geo, dst)", "192.0.2.0/24>value(geo, XY)"},
	    {"value(geo, src)+dport+vlan+ttl", "value(geo, XY) 53 vlan 9 ttl 64"},
	    {"value(geo, src)", "value(geo, O2 (UK) Ltd)"},
	    {"value(geo, src)", "value(geo, a)>b)"},
	    {"value(geo, src)", "value(geo, ) ) ))"},
	    {"value(geo, src)", "value(geo, A, B)"},
	    {"value(geo, src)+value(asn, dst)", "value(geo, (a)>b)>value(asn, O2 (UK) Ltd)"},
	    {"value(geo, src)+dst", "value(geo, a)>b)>192.0.2.7"},
	    {"src/24,56+value(geo, dst)", "192.0.2.0/24>value(geo, O2 (UK) 9)"},
	    {"value(geo, src)+dport+vlan+ttl", "value(geo, (A) 53 vlan 9) 53 vlan 9 ttl 64"},
	    {"value(geo, src)+dport+vlan+ttl", "value(geo, A) ? vlan 1) 53 vlan 9 ttl 64"},
	};
	char text[TALLY_TEXT];

	(void)unused;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct pacer_limiter t = limiter_of(c[i].key);
		struct policy_key by = compile_key_of(t.key_id);
		struct pacer_packet pkt;

		assert_int_equal(by.parts, now.policy->rule[0].limit[0].key.parts);
		assert_string_equal(
		    policy_key_text(&now.policy->rule[0].limit[0].key, text, sizeof(text)),
		    strstr(c[i].key, "+dst") && !strstr(c[i].key, "dst/")
			? "value(geo, src)+dst/32,64"
		    : strstr(c[i].key, "src/24") ? "value(geo, dst)+src/24,56"
						 : c[i].key);
		assert_int_equal(tally_key_read(&by, c[i].text, &pkt), 0);
		assert_string_equal(tally_key_text(&by, &pkt, text, sizeof(text)), c[i].text);
		assert_true(tally_key_fits(&t, &pkt));
		assert_int_equal(tally_key_read(&by, "value(geo", &pkt), -1);
	}
	{
		struct pacer_limiter t = limiter_of("value(geo, src)");
		struct policy_key by = compile_key_of(t.key_id);
		struct pacer_packet pkt;

		assert_int_equal(tally_key_read(&by, "value(asn, XY)", &pkt), 0);
		assert_false(tally_key_fits(&t, &pkt));
	}
}

/* --- several limits ------------------------------------------------------------------------- */

/*
 * Sources of one value are one key of its limit, whatever other limits their rule has and in which
 * order: they are admitted as often as the limit says, all together.
 */
static void expect_one_budget(const char *limits)
{
	struct pacer_state state = {.policy = &now.bin, .secret = secret};
	struct pacer_walk walk = {.state = &state, .now_ns = 100 * SECOND, .value = {7, 0}};
	struct pacer_line *lines;
	uint32_t admitted = 0;
	char text[400];

	snprintf(text, sizeof(text),
		 "memory: 1Mi\nsets: [{name: geo, file: geo.csv, value: 2}]\n"
		 "rules: [{name: r, limits: [%s]}]\n",
		 limits);
	assert_int_equal(load(text), 0);
	lines = aligned_alloc(64, now.plan.lines * sizeof(*lines));
	assert_non_null(lines);
	memset(lines, 0, now.plan.lines * sizeof(*lines));
	state.table = (struct pacer_table){lines, (uint32_t)now.plan.lines};
	for (int i = 0; i < 100; i++) {
		walk.pkt = packet(PACER_FAMILY_4);
		admitted += pacer_limit(&walk) == PACER_ADMIT;
	}
	free(lines);
	if (admitted != 5)
		fail_msg("%u admitted, not 5: %s", admitted, limits);
}

static void test_beside_others(void **unused)
{
	(void)unused;
	oracle_seed(72);
	draw_secret();
	expect_one_budget("{key: \"value(geo, src)\", packets: 5, window: 1s}");
	expect_one_budget("{key: src, packets: 9, window: 1s}, "
			  "{key: \"value(geo, src)\", packets: 5, window: 1s}");
	expect_one_budget("{key: \"value(geo, src)\", packets: 5, window: 1s}, "
			  "{key: all, packets: 50, window: 1s}");
	expect_one_budget("{key: src, gap: 1ms}, "
			  "{key: \"value(geo, src)\", rate: 1/s, burst: 5}");
}

/* --- what was given by hand ----------------------------------------------------------------- */

static struct set_entry entry(uint32_t addr, uint8_t len, uint16_t value)
{
	return (struct set_entry){
	    .family = 4, .len = len, .high = (uint64_t)addr << 32, .value = value};
}

static void expect_word(uint64_t now_ns, uint32_t addr, const char *value, int number)
{
	struct pacer_state state = {.policy = &now.bin, .set = set, .hand = hand};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};
	int in;

	walk.pkt.family = PACER_FAMILY_4;
	walk.pkt.key[PACER_WORD_SADDR] = walk.pkt.key[PACER_WORD_DADDR] = addr;
	assert_int_equal(pacer_walk_word(&walk, 1), set_word_of("geo", value));
	assert_int_equal(pacer_walk_word(&walk, 1 | PACER_VALUE_DST), set_word_of("geo", value));
	assert_false(pacer_walk_is_allowed(&walk)); /* no set of this policy allows */
	in = pacer_walk_in(&walk, 0);
	assert_int_equal(in >> 8 & 255, number);
	assert_int_equal(in >> 16 & 255, number);
	assert_int_equal(in & (PACER_SRC_IN | PACER_DST_IN),
			 number ? PACER_SRC_IN | PACER_DST_IN : 0);
}

static uint32_t word_of(uint64_t now_ns, uint32_t addr)
{
	struct pacer_state state = {.policy = &now.bin, .set = set, .hand = hand};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};

	walk.pkt.family = PACER_FAMILY_4;
	walk.pkt.key[PACER_WORD_SADDR] = addr;
	return pacer_walk_word(&walk, 1);
}

/* The set cannot be read. */
static void expect_unknown(void)
{
	struct pacer_state state = {.policy = &now.bin, .set = set};
	struct pacer_walk walk = {.state = &state, .now_ns = 1};

	walk.pkt.family = PACER_FAMILY_4;
	assert_int_equal(pacer_walk_word(&walk, 1), 0);
	assert_int_equal(pacer_walk_values(&walk, 0), 1);
	for (uint32_t asks = PACER_ASKS_SRC; asks <= PACER_ASKS_DST; asks++) {
		now.bin.set_asks[0] = (uint8_t)asks;
		assert_int_equal(pacer_walk_in(&walk, 0), PACER_SET_UNKNOWN);
	}
}

/* By hand comes before the file; the longest prefix counts, and when it ends the next wider one. */
static void test_by_hand(void **unused)
{
	struct set_names names = {NULL, 0, NULL, 0};
	struct set_about about = {"geo", &names, 1};
	struct set_list list = {.about = &about}, numbered;
	struct set_hand h = {.about = &about}, back = {.n = 0};
	struct set_entry e = entry(0x0a000000, 8, 1), f = entry(0x0b000000, 8, 2);
	struct set_lines lines, added;
	uint32_t ends;

	(void)unused;
	assert_int_equal(load("sets: [{name: geo, file: geo.csv, value: 2}]\n"
			      "rules: [{name: r, match: {src: \"@geo=XY\"}, "
			      "limits: [{key: value(geo, src), gap: 1s}]}, "
			      "{name: to, match: {dst: \"@geo=XY\"}, verdict: drop}]\n"),
			 0);
	assert_int_equal(now.bin.rule[0].value[0], 1);
	assert_int_equal(set_names_add(&names, (struct set_word){"XY", 2}), 1);
	assert_int_equal(set_names_add(&names, (struct set_word){"AB", 2}), 2);
	assert_false(set_list_add(&list, &e) || set_list_add(&list, &f));
	e = entry(0x0a010000, 16, 1); /* 10.1.0.0/16 AB for ever */
	assert_int_equal(set_hand_add_named(&h, &e, SET_HAND_STAYS, "AB"), 0);
	e = entry(0x0a010200, 24, 1); /* 10.1.2.0/24 ZZ until 100 */
	assert_int_equal(set_hand_add_named(&h, &e, 100, "ZZ"), 0);
	e = entry(0x0a010203, 32, 1); /* 10.1.2.3 XY until 50 */
	assert_int_equal(set_hand_add_named(&h, &e, 50, "XY"), 0);
	e = entry(0x0c000000, 8, 1); /* 12.0.0.0/8, of no value */
	assert_int_equal(set_hand_add_named(&h, &e, SET_HAND_STAYS, ""), 0);
	set_hand_settle(&h, 1);
	assert_int_equal(set_build(&list, 1, &lines), 0);
	assert_int_equal(set_words_put(&lines, &about), 0);
	assert_int_equal(set_hand_list(&h, &numbered), 0);
	assert_int_equal(set_hand_build(&h, &numbered, 1, &added), 0);
	set[0] = set_lines_set(&lines);
	hand[0] = set_lines_set(&added);
	expect_word(1, 0x0a000001, "XY", 1);
	expect_word(1, 0x0b000001, "AB", 2);
	expect_word(1, 0x0d000001, SET_WORD_NONE, 0);
	expect_word(1, 0x0c000001, SET_WORD_NONE, 255);
	expect_word(1, 0x0a010001, "AB", 255); /* no rule names AB */
	expect_word(99, 0x0a010201, "ZZ", 255);
	expect_word(100, 0x0a010201, "AB", 255);
	expect_word(49, 0x0a010203, "XY", 1);
	expect_word(50, 0x0a010203, "ZZ", 255);
	expect_word(100, 0x0a010203, "AB", 255);
	assert_int_equal(set_hand_take(&added, &numbered, &back), 0);
	assert_int_equal(back.n, h.n);
	for (size_t i = 0; i < h.n; i++) {
		const char *one = set_hand_value(&h, &h.entry[i]);
		const char *other = set_hand_value(&back, &back.entry[i]);

		assert_int_equal(!one, !other);
		if (one)
			assert_string_equal(one, other);
	}
	ends = added.line->head.ends;
	added.line->head.ends = 0;
	assert_int_equal(word_of(1, 0x0a010001), 0);
	added.line->head.ends = ends;
	lines.line->head.serial = 1; /* replaced since: what was beside it counts no more */
	expect_word(1, 0x0a010001, "XY", 1);
	hand[0] = (struct pacer_set){NULL, 0};
	lines.line->head.format = 0;
	expect_unknown();
	set_hand_free(&h);
	set_hand_free(&back);
	set_list_free(&list);
	set_list_free(&numbered);
	set_lines_free(&lines);
	set_lines_free(&added);
	set_names_free(&names);
}

/* Allowed by the value that a set has for the source. */
static void test_allowed(void **unused)
{
	struct set_names names = {NULL, 0, NULL, 0};
	struct set_about about = {"geo", &names, 1};
	struct set_list list = {.about = &about};
	struct set_entry e = entry(0x0a000000, 8, 2), f = entry(0x0b000000, 8, 1);
	struct pacer_state state = {.policy = &now.bin, .set = set, .hand = hand};
	struct pacer_walk walk = {.state = &state, .now_ns = 1, .pkt = {.family = PACER_FAMILY_4}};
	struct set_lines lines;

	(void)unused;
	assert_int_equal(load("sets: [{name: geo, file: geo.csv, value: 2}]\nallow: \"@geo=AB\"\n"
			      "rules: [{name: r, limits: [{key: src, gap: 1s}]}]\n"),
			 0);
	assert_int_equal(set_names_add(&names, (struct set_word){"AB", 2}), 1);
	assert_int_equal(set_names_add(&names, (struct set_word){"XY", 2}), 2);
	assert_false(set_list_add(&list, &e) || set_list_add(&list, &f));
	assert_int_equal(set_build(&list, 1, &lines), 0);
	assert_int_equal(set_words_put(&lines, &about), 0);
	set[0] = set_lines_set(&lines);
	walk.pkt.key[PACER_WORD_SADDR] = 0x0a000001;
	assert_false(pacer_walk_is_allowed(&walk));
	walk.pkt.key[PACER_WORD_SADDR] = 0x0b000001;
	walk.pkt.key[PACER_WORD_DADDR] = 0x0a000001;
	assert_true(pacer_walk_is_allowed(&walk));
	set_lines_free(&lines);
	set_list_free(&list);
	set_names_free(&names);
}

/* A set of what is known of 10.0.0.0/8, 11.0.0.0/8 and so on; 0: nothing. */
static void build_set(uint32_t number, const uint16_t *values, size_t n, struct set_lines *lines)
{
	struct set_list list = {.about = NULL};

	for (size_t i = 0; i < n; i++) {
		struct set_entry e = entry((uint32_t)(10 + i) << 24, 8, values[i]);

		assert_true(!values[i] || !set_list_add(&list, &e));
	}
	assert_int_equal(set_build(&list, 1, lines), 0);
	set[number] = set_lines_set(lines);
	set_list_free(&list);
}

static uint32_t rule_by(uint32_t src, uint32_t dst)
{
	struct pacer_state state = {.policy = &now.bin, .set = set, .hand = hand};
	struct pacer_walk walk = {.state = &state, .now_ns = 1, .pkt = {.family = PACER_FAMILY_4}};

	walk.pkt.key[PACER_WORD_SADDR] = src << 24;
	walk.pkt.key[PACER_WORD_DADDR] = dst << 24;
	return pacer_walk_rule(&walk, &now.bin);
}

#define TWO_SETS "sets: [{name: geo, file: g, value: 2}, {name: asn, file: a, value: 2}]\n"

/*
 * What the policy says of a value stands behind what it says of those of the set before. No value,
 * one that it does not name, and one beyond a byte are none of these.
 */
static void test_values_that_no_rule_names(void **unused)
{
	static const uint16_t geo[] = {1, 2, 257}, asn[] = {0, 0, 0, 1, 257};
	static const struct {
		uint32_t src, dst, rule, allowed;
	} rows[] = {
	    {10, 9, 0, 0},
	    {11, 9, PACER_RULES_MAX, PACER_RULES_MAX},
	    {12, 9, PACER_RULES_MAX, PACER_RULES_MAX},
	    {13, 9, 1, PACER_RULE_ALLOWED},
	    {14, 9, PACER_RULES_MAX, PACER_RULES_MAX},
	    {9, 13, 2, 1},
	    {9, 14, PACER_RULES_MAX, PACER_RULES_MAX},
	};
	struct set_lines lines[2];

	(void)unused;
	memset(hand, 0, sizeof(hand));
	build_set(0, geo, ARRAY(geo), &lines[0]);
	build_set(1, asn, ARRAY(asn), &lines[1]);
	assert_int_equal(load(TWO_SETS
			      "rules: [{name: x, match: {src: \"@geo=XY\"}, verdict: drop}, "
			      "{name: y, match: {src: \"@asn=AB\"}, verdict: drop}, "
			      "{name: z, match: {dst: \"@asn=AB\"}, verdict: drop}]\n"),
			 0);
	for (size_t i = 0; i < ARRAY(rows); i++)
		assert_int_equal(rule_by(rows[i].src, rows[i].dst), rows[i].rule);
	teardown(NULL);
	assert_int_equal(load(TWO_SETS
			      "allow: \"@asn=AB\"\n"
			      "rules: [{name: x, match: {src: \"@geo=XY\"}, verdict: drop}, "
			      "{name: z, match: {dst: \"@asn=AB\"}, verdict: drop}]\n"),
			 0);
	for (size_t i = 0; i < ARRAY(rows); i++)
		assert_int_equal(rule_by(rows[i].src, rows[i].dst), rows[i].allowed);
	for (size_t i = 0; i < ARRAY(lines); i++)
		set_lines_free(&lines[i]);
}

/* A set without values says nothing of those of the set before it. */
static void test_without_values(void **unused)
{
	static const uint16_t geo[] = {1}, few[] = {0, 1};
	struct set_lines lines[2];

	(void)unused;
	memset(hand, 0, sizeof(hand));
	build_set(0, geo, ARRAY(geo), &lines[0]);
	build_set(1, few, ARRAY(few), &lines[1]);
	assert_int_equal(load("sets: [{name: geo, file: g, value: 2}, {name: few, of: "
			      "[11.0.0.0/8]}]\nallow: \"@geo=XY\"\nrules: [{name: x, match: {src: "
			      "\"@geo=XY\", dst: \"@geo=XY\"}, verdict: drop}, {name: y, match: "
			      "{src: \"@few\"}, verdict: drop}, {name: z, match: {dst: \"@few\"}, "
			      "verdict: drop}]\n"),
			 0);
	assert_int_equal(rule_by(10, 9), PACER_RULE_ALLOWED);
	assert_int_equal(rule_by(11, 9), 1);
	assert_int_equal(rule_by(9, 11), 2);
	assert_int_equal(rule_by(11, 10), 1);
	for (size_t i = 0; i < ARRAY(lines); i++)
		set_lines_free(&lines[i]);
}

/* --- a change of the policy ----------------------------------------------------------------- */

#define SETS "{name: geo, file: g, value: 2}, {name: asn, file: a, value: 2}"

static int change(const char *sets, const char *limits)
{
	char text[400];

	snprintf(text, sizeof(text), "sets: [%s]\nrules: [{name: r, limits: [%s]}]\n", sets,
		 limits);
	return apply(text);
}

/* A limit that keeps its set keeps its state, wherever the set stands; another begins anew. */
static void test_change(void **unused)
{
	(void)unused;
	assert_int_equal(load("sets: [" SETS "]\nrules: [{name: r, limits: "
			      "[{key: \"value(geo, src)\", packets: 9, window: 1s}]}]\n"),
			 0);
	assert_int_equal(change("{name: asn, file: a, value: 2}, {name: geo, file: g, value: 2}",
				"{key: \"value(geo, src)\", packets: 7, window: 1s}"),
			 0);
	assert_int_equal(now.plan.limit[0].state, PLAN_KEPT);
	assert_int_equal(now.bin.rule[0].value[0], 2);
	assert_int_equal(change(SETS, "{key: \"value(asn, src)\", packets: 7, window: 1s}"), 0);
	assert_int_equal(now.plan.limit[0].state, PLAN_NEW);
	assert_int_equal(now.plan.n_draining, 1);
	assert_int_equal(now.bin.rule[0].n_limiters, 2);
	/* A third value has no place while the first drains. */
	assert_int_equal(change(SETS, "{key: \"value(asn, dst)\", packets: 7, window: 1s}"), -1);
	assert_non_null(strstr(error.text, "two values at the most"));
	/* Nor has a set that is still counted by. */
	assert_int_equal(change("{name: geo, file: g, value: 2}",
				"{key: \"value(geo, src)\", packets: 7, window: 1s}"),
			 -1);
	assert_non_null(strstr(error.text, "keep the set until then"));
}

#define MATCHED                                                                                 \
	"memory: 1Mi\nsets: [%s]\nrules: [{name: r, match: {src: '@geo'}, limits: [{key: src, " \
	"gap: 1s}]}]\n"

/* A set that no key names any more keeps its values' words for a limit that drains; it has to have
 * some. */
static void test_counted(void **unused)
{
	struct policy *next_policy;
	char text[600];

	(void)unused;
	assert_int_equal(
	    load("memory: 1Mi\nsets: [{name: asn, file: a, value: 2}, {name: geo, file: g, "
		 "value: 2}]\nrules: [{name: r, limits: [{key: 'value(geo, dst)', "
		 "packets: 9, window: 1s}]}]\n"),
	    0);
	snprintf(text, sizeof(text), MATCHED,
		 "{name: geo, file: g, value: 2}, {name: asn, file: a, value: 2}");
	next_policy = parse(text);
	assert_false(policy_set_named(next_policy, &next_policy->set[0]));
	keymask_keep_values(next_policy, &now.bin);
	assert_true(policy_set_named(next_policy, &next_policy->set[0]));
	assert_false(policy_set_named(next_policy, &next_policy->set[1]));
	policy_free(next_policy);
	assert_int_equal(apply(text), 0);
	assert_int_equal(now.bin.rule[0].n_limiters, 2);
	next_policy = parse(text); /* it drains */
	keymask_keep_values(next_policy, &now.bin);
	assert_true(policy_set_named(next_policy, &next_policy->set[0]));
	policy_free(next_policy);
	snprintf(text, sizeof(text), MATCHED, "{name: geo, file: g}");
	next_policy = parse(text);
	keymask_keep_values(next_policy, &now.bin);
	assert_false(policy_set_named(next_policy, &next_policy->set[0]));
	policy_free(next_policy);
	assert_int_equal(apply(text), -1);
	assert_non_null(strstr(error.text, "keep the set until then"));
}

#define BY_VALUE                                                                  \
	"sets: [{name: geo, file: /x, value: 2}]\nrules:\n- name: a\n  limits:\n" \
	"  - {key: src, packets: 1, window: 1s}\n"                                \
	"  - {key: 'value(geo, src)', packets: 1, window: 1s}\n"
#define NO_KEY                                                                    \
	"sets: [{name: geo, file: /x, value: 2}]\nrules:\n- name: a\n  limits:\n" \
	"  - {key: src, packets: 1, window: 1s}\n"
#define NO_SET "rules:\n- name: a\n  limits:\n  - {key: src, packets: 1, window: 1s}\n"

/* Limits that a saved state has by values which the policy has not, or has not read. */
static void test_lost_values(void **unused)
{
	static struct pacer_policy bin;
	static struct plan plan;
	struct compile_host host = {1, 1000000000, 1};
	struct policy *by_value = parse(BY_VALUE), *no_key = parse(NO_KEY), *no_set = parse(NO_SET);
	struct state s = {.bin = &bin};
	uint64_t n[2], gone;
	struct policy_error error;

	(void)unused;
	assert_int_equal(compile_policy(by_value, NULL, &host, &bin, &plan, &error), 0);
	s.lines = calloc(plan.lines, sizeof(*s.lines));
	assert_non_null(s.lines);
	memset(s.lines, 0xa5, plan.lines * sizeof(*s.lines));
	for (int i = 0; i < 2; i++)
		n[i] = compile_limiter_lines(&bin.rule[0].limiter[i]);
	gone = bin.rule[0].limiter[bin.rule[0].limiter[1].value_set[0] ? 1 : 0].base;
	assert_true(n[0] == n[1]);
	assert_int_equal(keymask_lost_values(by_value, &bin), -1);
	assert_int_equal(keymask_lost_values(no_set, &bin), -1);
	assert_int_equal(keymask_lost_values(no_key, &bin), 0);
	keymask_keep_values(no_key, &bin);
	assert_int_equal(keymask_lost_values(no_key, &bin), -1);
	assert_int_equal(restore_forget(&s, by_value), 0);
	assert_int_equal(restore_forget(&s, no_key), 0);
	assert_int_equal(bin.rule[0].n_limiters, 2);
	assert_int_equal(restore_forget(&s, no_set), 1);
	assert_int_equal(bin.rule[0].n_limiters, 1);
	assert_int_equal(bin.rule[0].limiter[0].value_set[0], 0);
	for (uint64_t i = 0; i < plan.lines; i++) { /* its own alone are cleared */
		bool its = i >= gone && i < gone + n[0];

		assert_int_equal(((unsigned char *)&s.lines[i])[7], its ? 0 : 0xa5);
	}
	free(s.lines);
	policy_free(by_value);
	policy_free(no_key);
	policy_free(no_set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_words), cmocka_unit_test(test_texts),
	    TEST(test_together),	  TEST(test_key_texts),
	    TEST(test_beside_others),	  TEST(test_by_hand),
	    TEST(test_allowed),		  TEST(test_values_that_no_rule_names),
	    TEST(test_without_values),	  TEST(test_change),
	    TEST(test_counted),		  TEST(test_lost_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
