/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is added to sets by hand: at each moment a packet's address is in the set if a prefix of the
 * set holds it, or one that was added and whose end has not come. The oracle looks at all of them.
 */
#include "set_oracle.h"

#include <errno.h>
#include <stdio.h>

#include "rule.h"
#include "sets/hand.h"
#include "sets/pack.h"

static struct pacer_policy bin;

/* Those that were added, in that order: of equal ones the last counts. */
static bool added(const struct set_hand_entry *all, size_t n, const struct set_asked *a,
		  uint64_t now_ns)
{
	for (size_t i = 0; i < n; i++) {
		struct set_list one = {(struct set_entry *)&all[i].e, 1, 1, 0, NULL};
		bool again = false;

		for (size_t k = i + 1; k < n; k++)
			again |= !set_entry_order(&all[i].e, &all[k].e);
		if (!again && all[i].until_ns > now_ns &&
		    set_list_value(&one, a->family, a->high, a->low))
			return true;
	}
	return false;
}

static int in_set(const struct pacer_set *set, const struct pacer_set *hand,
		  const struct set_asked *a, uint64_t now_ns, bool dst)
{
	struct pacer_state state = {.policy = &bin, .set = set, .hand = hand};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};

	memset(&bin, 0, sizeof(bin));
	bin.set[0][0].src_in = !dst;
	bin.set[0][0].dst_not = dst;
	bin.set_asks[0] = dst ? PACER_ASKS_DST : PACER_ASKS_SRC;
	walk.pkt.family = a->family == 4 ? PACER_FAMILY_4 : PACER_FAMILY_6;
	set_words(a, &walk.pkt.key[dst ? PACER_WORD_DADDR : PACER_WORD_SADDR]);
	return pacer_walk_in_set(&walk, 0) & 7;
}

static struct set_entry draw_entry(const struct set_drawn *d)
{
	struct set_list one = {0};
	struct set_entry e;

	set_draw(d, &one);
	e = one.entry[0];
	e.value = 1;
	set_list_free(&one);
	return e;
}

#define SERIAL 77

/* Built, in memory. */
struct built {
	struct set_lines lines, hand_lines;
	struct pacer_set set[PACER_SETS_MAX], hand[PACER_SETS_MAX];
};

static void build(const struct set_list *list, const struct set_hand *hand, struct built *b)
{
	struct set_list numbered;

	*b = (struct built){.lines = {NULL, 0, 0}};
	assert_int_equal(set_build(list, draw(), &b->lines), 0);
	assert_int_equal(set_hand_list(hand, &numbered), 0);
	assert_int_equal(set_hand_build(hand, &numbered, draw(), &b->hand_lines), 0);
	b->lines.line->head.serial = b->hand_lines.line->head.serial = SERIAL;
	b->set[0] = set_lines_set(&b->lines);
	b->hand[0] = set_lines_set(&b->hand_lines);
	set_list_free(&numbered);
}

static void free_built(struct built *b)
{
	set_lines_free(&b->lines);
	set_lines_free(&b->hand_lines);
}

static void ask(const struct set_list *list, const struct set_hand_entry *all, size_t n,
		const struct built *b, struct set_asked a, uint64_t now_ns)
{
	bool dst = draw() & 1;
	bool want = set_list_value(list, a.family, a.high, a.low) || added(all, n, &a, now_ns);
	int got = in_set(b->set, b->hand, &a, now_ns, dst);

	if (got != (want ? dst ? PACER_DST_IN : PACER_SRC_IN : 0))
		fail_msg("IPv%d %016llx %016llx at %llu: %d, and it is %s", a.family,
			 (unsigned long long)a.high, (unsigned long long)a.low,
			 (unsigned long long)now_ns, got, want ? "in" : "not in");
}

static void one_run(const struct set_drawn *d)
{
	struct set_hand_entry all[120];
	struct set_hand hand = {.n = 0};
	size_t n = between(1, 120);
	struct set_list list = {0};
	struct built b;

	set_draw(d, &list);
	for (size_t i = 0; i < list.n; i++)
		list.entry[i].value = 1;
	set_sorted(&list);
	for (size_t i = 0; i < n; i++) {
		uint64_t until_ns = draw() & 3 ? between(0, 1000) : SET_HAND_STAYS;
		bool again = i && draw() % 4 == 0;

		all[i] =
		    (struct set_hand_entry){again ? all[draw() % i].e : draw_entry(d), until_ns, 0};
		assert_int_equal(set_hand_add(&hand, &all[i].e, until_ns), 0);
	}
	set_hand_settle(&hand, 100);
	build(&list, &hand, &b);
	for (size_t i = 0; i < n; i++) {
		struct set_asked edge[4];
		uint64_t until_ns = all[i].until_ns;

		set_edges(&all[i].e, edge);
		for (int k = 0; k < 4; k++) {
			ask(&list, all, n, &b, edge[k], between(100, 1100));
			if (until_ns > 100 && until_ns != SET_HAND_STAYS) {
				ask(&list, all, n, &b, edge[k], until_ns - 1);
				ask(&list, all, n, &b, edge[k], until_ns);
			}
		}
	}
	free_built(&b);
	set_hand_free(&hand);
	set_list_free(&list);
}

static void as_the_oracle(void **unused)
{
	(void)unused;
	oracle_seed(41);
	for (int i = 0; i < 400; i++) {
		struct set_drawn d = {
		    .n = magnitude(1, 200),
		    .family = (int[]){0, 4, 6}[draw() % 3],
		    .clumps = magnitude(1, 20),
		    .near = between(1, 128),
		    .least = between(0, 128),
		    .values = 1,
		};

		d.most = between(d.least, 128);
		one_run(&d);
	}
}

/* What lies behind the lines is what was put there, and what would take it back is refused. */
static void taken_back(void **unused)
{
	struct set_drawn d = {
	    .n = 1, .clumps = 5, .near = 20, .least = 8, .most = 128, .values = 1};
	struct set_hand hand = {.n = 0}, back = {.n = 0};
	struct set_list numbered;
	struct set_lines lines;

	(void)unused;
	oracle_seed(42);
	for (int i = 0; i < 5000; i++) {
		struct set_entry e = draw_entry(&d);

		assert_int_equal(set_hand_add(&hand, &e, between(1, 100)), 0);
	}
	set_hand_settle(&hand, 50);
	assert_true(hand.n > 100);
	assert_int_equal(set_hand_list(&hand, &numbered), 0);
	assert_int_equal(set_hand_build(&hand, &numbered, 1, &lines), 0);
	assert_int_equal(set_hand_take(&lines, &numbered, &back), 0);
	assert_int_equal(back.n, hand.n);
	for (size_t i = 0; i < hand.n; i++) {
		const struct set_hand_entry *h = &hand.entry[i];

		assert_true(h->until_ns > 50);
		assert_int_equal(set_entry_order(&h->e, &back.entry[i].e), 0);
		assert_int_equal(h->until_ns, back.entry[i].until_ns);
		assert_ptr_equal(set_hand_find(&hand, &back.entry[i].e), h);
	}
	for (int k = 0; k < 3; k++) {
		lines.line->head.ends = (uint32_t[]){lines.n - 1, 0, lines.n + 1}[k];
		errno = 0;
		assert_int_equal(set_hand_take(&lines, &numbered, &back), -1);
		assert_int_equal(errno, EBADMSG);
	}
	set_lines_free(&lines);
	set_list_free(&numbered);
	set_hand_free(&hand);
	set_hand_free(&back);
}

/* Beside a set that has come in its place it counts no more; damaged, it passes no rule by. */
static void of_another(void **unused)
{
	struct set_list list = {0};
	struct set_hand hand = {.n = 0};
	struct set_entry e = {0x0a00000000000000ull, 0, 0, 1, 4, 8};
	struct set_asked ten = {0x0a01020300000000ull, 0, 4};
	struct built b;

	(void)unused;
	assert_int_equal(set_hand_add(&hand, &e, 100), 0);
	build(&list, &hand, &b);
	assert_int_equal(in_set(b.set, b.hand, &ten, 99, false), PACER_SRC_IN);
	assert_int_equal(in_set(b.set, b.hand, &ten, 100, false), 0);
	b.hand_lines.line->head.serial++;
	assert_int_equal(in_set(b.set, b.hand, &ten, 99, false), 0);
	b.hand_lines.line->head.serial--;
	assert_int_equal(in_set(b.set, NULL, &ten, 99, false), 0);
	b.hand_lines.line->head.ends = 0;
	assert_int_equal(in_set(b.set, b.hand, &ten, 99, false), PACER_SET_UNKNOWN);
	b.hand_lines.line->head.ends = b.hand_lines.n;
	assert_int_equal(in_set(b.set, b.hand, &ten, 99, false), PACER_SET_UNKNOWN);
	free_built(&b);
	set_hand_free(&hand);
}

static int with_value(const struct built *b, uint32_t addr, uint64_t now_ns, bool dst)
{
	struct pacer_state state = {.policy = &bin, .set = b->set, .hand = b->hand};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};

	memset(&bin, 0, sizeof(bin));
	bin.sets_valued = 1;
	bin.set_asks[0] = dst ? PACER_ASKS_DST : PACER_ASKS_SRC;
	walk.pkt.family = PACER_FAMILY_4;
	walk.pkt.key[dst ? PACER_WORD_DADDR : PACER_WORD_SADDR] = addr;
	return pacer_walk_in(&walk, 0);
}

/* Sources and destinations have the value that was given by hand; one that no rule names is 255. */
static void of_a_value(void **unused)
{
	struct set_names names = {NULL, 0, NULL, 0};
	struct set_about about = {"geo", &names, 1};
	struct set_list list = {0};
	struct set_hand hand = {.about = &about};
	struct set_entry named = {0x0a00000000000000ull, 0, 0, 1, 4, 8}, other = named;
	struct built b;

	(void)unused;
	other.high = 0x0b00000000000000ull;
	assert_true(set_names_add(&names, (struct set_word){"DE", 2}) >= 0);
	assert_int_equal(set_hand_add_named(&hand, &named, 100, "DE"), 0);
	assert_int_equal(set_hand_add_named(&hand, &other, 100, "XX"), 0);
	set_hand_settle(&hand, 1);
	build(&list, &hand, &b);
	for (int dst = 0; dst < 2; dst++) {
		int in = dst ? PACER_DST_IN : PACER_SRC_IN, at = dst ? 16 : 8;

		assert_int_equal(with_value(&b, 0x0a010203, 99, dst), in | 1 << at);
		assert_int_equal(with_value(&b, 0x0b010203, 99, dst), in | 255 << at);
		assert_int_equal(with_value(&b, 0x0c010203, 99, dst), 0);
		assert_int_equal(with_value(&b, 0x0a010203, 100, dst), 0);
	}
	b.hand_lines.line->head.ends = 0; /* damaged: nobody knows what it gave */
	assert_int_equal(with_value(&b, 0x0a010203, 99, false), PACER_SET_UNKNOWN);
	assert_int_equal(with_value(&b, 0x0a010203, 99, true), PACER_SET_UNKNOWN);
	assert_int_equal(with_value(&b, 0x0c010203, 99, false), 0);
	free_built(&b);
	set_hand_free(&hand);
	set_names_free(&names);
}

/* Of the values that rules name there are few; of those that a set knows more than a byte counts.
 * What has one that no rule names is not limited as if it had the first.
 */
static void of_a_value_beyond_the_known(void **unused)
{
	struct set_names names = {NULL, 0, NULL, 0};
	struct set_about about = {"geo", &names, 1};
	struct set_list list = {0};
	struct set_hand hand = {.about = &about};
	struct set_entry e = {0x0a00000000000000ull, 0, 0, 1, 4, 8};
	struct built b;
	char name[16];

	(void)unused;
	for (int i = 1; i <= 257; i++) {
		snprintf(name, sizeof(name), "v%d", i);
		assert_int_equal(set_names_add(&names, (struct set_word){name, strlen(name)}), i);
	}
	assert_int_equal(set_hand_add_named(&hand, &e, 100, "v257"), 0);
	e.high = 0x0b00000000000000ull;
	assert_int_equal(set_hand_add_named(&hand, &e, 100, "v1"), 0);
	set_hand_settle(&hand, 1);
	build(&list, &hand, &b);
	assert_int_equal(with_value(&b, 0x0a010203, 99, false), PACER_SRC_IN | 255 << 8);
	assert_int_equal(with_value(&b, 0x0b010203, 99, false), PACER_SRC_IN | 1 << 8);
	free_built(&b);
	set_hand_free(&hand);
	set_names_free(&names);
}

/* Of prefixes within each other, as many as there can be, the narrowest that lasts gives its value.
 */
static void narrowest_that_lasts(void **unused)
{
	enum { LENGTHS = 129 };
	struct set_names names = {NULL, 0, NULL, 0};
	struct set_about about = {"geo", &names, LENGTHS};
	struct set_list list = {0};
	struct set_hand hand = {.about = &about};
	struct built b;
	char name[8];

	(void)unused;
	for (uint32_t len = 0; len < LENGTHS; len++) {
		struct set_entry e = {.value = 1, .family = 6, .len = (uint8_t)len};

		snprintf(name, sizeof(name), "%u", len);
		assert_true(set_names_add(&names, (struct set_word){name, strlen(name)}) >= 0);
		assert_int_equal(set_hand_add_named(&hand, &e, 1000 - len, name), 0);
	}
	set_hand_settle(&hand, 1);
	build(&list, &hand, &b);
	for (uint32_t len = 0; len < LENGTHS; len++)
		assert_int_equal(pacer_set_given(b.hand, LENGTHS, 1000 - len - 1) & 0xffff,
				 len + 1);
	assert_int_equal(pacer_set_given(b.hand, LENGTHS, 1000), 0);
	free_built(&b);
	set_hand_free(&hand);
	set_names_free(&names);
}

/* Lines that end too early, as of a set that is just being replaced: what is read is right, or
 * none. */
static void cut_short(void **unused)
{
	struct set_list list = {0};
	struct set_hand hand = {.n = 0};
	struct built b;

	(void)unused;
	for (uint64_t i = 0; i < 60; i++) {
		struct set_entry e = {(i & 7) << 56 | i << 40, 0, 0, 1, 4, (uint8_t)(8 + i % 17)};

		assert_int_equal(set_hand_add(&hand, &e, 100 + i), 0);
	}
	set_hand_settle(&hand, 1);
	build(&list, &hand, &b);
	for (int named = 0; named < 2; named++)
		for (uint32_t n = 0; n <= b.hand_lines.n; n++) {
			union pacer_set_line *some = aligned_alloc(64, (n ? n : 1) * sizeof(*some));
			struct pacer_set whole = b.hand[0], cut = {some, n};

			assert_non_null(some);
			b.hand_lines.line->head.flags |= named ? PACER_SET_NAMED : 0;
			memcpy(some, b.hand_lines.line, n * sizeof(*some));
			assert_int_equal(pacer_set_serial(&cut), n ? SERIAL : 0);
			assert_int_equal(pacer_set_is_of(&cut, &whole), n != 0);
			for (uint32_t value = 0; value < 70; value++) {
				int lasts = pacer_set_lasts(&cut, value, 120);
				__u64 given = pacer_set_given(&cut, value, 120);
				__u32 word = pacer_set_word(&cut, value);

				if (n == whole.lines || lasts != PACER_SET_BROKEN)
					assert_int_equal(lasts,
							 pacer_set_lasts(&whole, value, 120));
				if (n == whole.lines || given != PACER_SET_UNREADABLE)
					assert_true(given == pacer_set_given(&whole, value, 120));
				if (n == whole.lines || word)
					assert_int_equal(word, pacer_set_word(&whole, value));
			}
			free(some);
		}
	free_built(&b);
	set_hand_free(&hand);
}

static void too_many(void **unused)
{
	struct set_hand hand = {.n = 0};
	struct set_list numbered;
	struct set_lines lines;

	(void)unused;
	for (uint64_t i = 0; i <= SET_HAND_MAX; i++) {
		struct set_entry e = {i << 40, 0, 0, 1, 4, 24};

		assert_int_equal(set_hand_add(&hand, &e, SET_HAND_STAYS), 0);
	}
	set_hand_settle(&hand, 1);
	assert_int_equal(set_hand_list(&hand, &numbered), -1);
	assert_int_equal(errno, EFBIG);
	hand.n--;
	assert_int_equal(set_hand_list(&hand, &numbered), 0);
	assert_int_equal(set_hand_build(&hand, &numbered, 1, &lines), 0);
	set_lines_free(&lines);
	set_list_free(&numbered);
	set_hand_free(&hand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(as_the_oracle),
	    cmocka_unit_test(taken_back),
	    cmocka_unit_test(of_another),
	    cmocka_unit_test(cut_short),
	    cmocka_unit_test(too_many),
	    cmocka_unit_test(of_a_value),
	    cmocka_unit_test(of_a_value_beyond_the_known),
	    cmocka_unit_test(narrowest_that_lasts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
