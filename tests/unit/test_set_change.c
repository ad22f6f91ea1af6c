/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A set that is changed while a packet asks for it. Whichever look-up is the first to see the
 * change, the packet has what it had before or what it has after, where the change is of one place:
 * a set that is replaced, or what was added to it by hand. A change of both is two.
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#include "limit.h"

static const struct pacer_set *place(int by_hand);

#undef PACER_SET_OF
#undef PACER_SET_HAND_OF
#define PACER_SET_OF(walk, number)	((void)(walk), (void)(number), place(0))
#define PACER_SET_HAND_OF(walk, number) ((void)(walk), (void)(number), place(1))

#include "rule.h"
#include "sets/hand.h"
#include "sets/words.h"

#define WORDS (PACER_ASKS_SRC | PACER_ASKS_DST)

/* What is in the two places, before and after; and how many look-ups see the one before. */
static struct pacer_set places[2][2];
static uint32_t looked, before;

static const struct pacer_set *place(int by_hand)
{
	const struct pacer_set *at = &places[looked++ >= before][by_hand];

	return at->lines ? at : NULL;
}

static const char *const known[] = {"AB", "XY", "ZZ"}; /* two of which rules name */
static struct set_names names;
static const struct set_about about = {"geo", &names, 2};

static struct set_entry draw_entry(void)
{
	static const uint8_t lens[] = {8, 16, 24, 32};
	uint8_t len = lens[draw() & 3];
	uint64_t addr = 0x0a000000 | (draw() & 0x010101);

	return (struct set_entry){.family = 4,
				  .len = len,
				  .high = (addr >> (32 - len) << (32 - len)) << 32,
				  .value = (uint16_t)(1 + draw() % 3)};
}

static struct set_lines draw_set(uint32_t serial, bool valued)
{
	struct set_list list = {.about = valued ? &about : NULL};
	struct set_lines lines;

	for (uint64_t n = between(0, 4); n; n--) {
		struct set_entry e = draw_entry();

		e.value = valued ? e.value : 1;
		assert_int_equal(set_list_add(&list, &e), 0);
	}
	assert_int_equal(set_build(&list, draw(), &lines), 0);
	if (valued)
		assert_int_equal(set_words_put(&lines, &about), 0);
	lines.line->head.serial = serial;
	set_list_free(&list);
	return lines;
}

static struct set_lines draw_hand(uint32_t serial, bool valued)
{
	struct set_hand hand = {.about = valued ? &about : NULL};
	struct set_list numbered;
	struct set_lines lines;

	for (uint64_t n = between(0, 4); n; n--) {
		struct set_entry e = draw_entry();
		const char *value = valued && draw() & 3 ? known[e.value - 1] : "";
		uint64_t until_ns = draw() & 1 ? SET_HAND_STAYS : between(0, 200);

		e.value = 1;
		assert_int_equal(set_hand_add_named(&hand, &e, until_ns, value), 0);
	}
	set_hand_settle(&hand, 1);
	assert_int_equal(set_hand_list(&hand, &numbered), 0);
	assert_int_equal(set_hand_build(&hand, &numbered, draw(), &lines), 0);
	lines.line->head.serial = serial;
	set_list_free(&numbered);
	set_hand_free(&hand);
	return lines;
}

/* What a packet is told: of rules or, as a key has it, by word. */
static uint32_t told(struct pacer_walk *walk, bool word, uint32_t after)
{
	looked = 0;
	before = after;
	return word ? pacer_walk_word(walk, 1) : (uint32_t)pacer_walk_in(walk, 0);
}

static void one_packet(struct pacer_policy *policy, bool by_hand, bool word)
{
	struct pacer_state state = {.policy = policy};
	struct pacer_walk walk = {.state = &state, .now_ns = between(1, 200)};
	uint32_t was, is, n;

	walk.pkt.family = PACER_FAMILY_4;
	walk.pkt.key[PACER_WORD_SADDR] = 0x0a000000 | (draw() & 0x010101);
	walk.pkt.key[PACER_WORD_DADDR] = 0x0a000000 | (draw() & 0x010101);
	/* By hand two addresses are asked for one after the other. */
	policy->set_asks[0] = by_hand ? (draw() & 1 ? PACER_ASKS_SRC : PACER_ASKS_DST) : WORDS;
	is = told(&walk, word, 0);
	was = told(&walk, word, UINT32_MAX);
	n = looked;
	assert_true(n);
	for (uint32_t k = 1; k < n; k++) {
		uint32_t got = told(&walk, word, k);

		if (got != was && got != is)
			fail_msg("%s changed at look-up %u: %x, was %x, is %x",
				 by_hand ? "by hand" : "a set", k, got, was, is);
	}
}

static void one_change(bool valued, bool by_hand)
{
	static struct pacer_policy policy;
	struct set_lines set[2] = {draw_set(5, valued), draw_set(6, valued)};
	struct set_lines hand[2] = {draw_hand(5, valued), draw_hand(5, valued)};

	memset(&policy, 0, sizeof(policy));
	policy.sets = 1;
	policy.sets_valued = valued;
	for (int i = 0; i < 2; i++) {
		places[i][0] = set_lines_set(&set[by_hand ? 0 : i]);
		places[i][1] = set_lines_set(&hand[by_hand ? i : 0]);
	}
	for (int i = 0; i < 40; i++)
		one_packet(&policy, by_hand, valued && draw() & 1);
	for (int i = 0; i < 2; i++) {
		set_lines_free(&set[i]);
		set_lines_free(&hand[i]);
	}
}

static void changes(bool valued, bool by_hand)
{
	for (int i = 0; i < 500; i++)
		one_change(valued, by_hand);
}

static void test_replaced(void **unused)
{
	(void)unused;
	changes(false, false);
}

static void test_replaced_with_values(void **unused)
{
	(void)unused;
	changes(true, false);
}

static void test_by_hand(void **unused)
{
	(void)unused;
	changes(false, true);
}

static void test_by_hand_with_values(void **unused)
{
	(void)unused;
	changes(true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_replaced),
	    cmocka_unit_test(test_replaced_with_values),
	    cmocka_unit_test(test_by_hand),
	    cmocka_unit_test(test_by_hand_with_values),
	};
	int failed;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		(void)set_names_add(&names, (struct set_word){known[i], strlen(known[i])});
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	set_names_free(&names);
	return failed;
}
