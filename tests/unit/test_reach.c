/* SPDX-License-Identifier: GPL-2.0-only */
/* How much of what a source sends can fall under a rule: all, some or nothing of it, by sets, too.
 */
#include "applied.h"

#include <unistd.h>

#include "cli/reach.h"
#include "path.h"
#include "sets/hand.h"
#include "sets/texts.h"

static struct pacer_set set[PACER_SETS_MAX], hand[PACER_SETS_MAX];
static struct set_texts texts;
static struct set_lines lines[PACER_SETS_MAX];
static bool without_sets; /* they cannot be read */

static void open_sets(const char *sets, const char *match)
{
	char text[600];

	snprintf(text, sizeof(text),
		 "sets: [%s]\nrules: [{name: r, match: {%s}, limits: [{key: src, gap: 1s}]}]\n",
		 sets, match);
	assert_int_equal(load(text), 0);
	assert_int_equal(set_texts_read(now.policy, &texts, &error), 0);
	for (size_t i = 0; i < now.policy->n_sets; i++) {
		assert_int_equal(set_build(&texts.text[i].list, 1, &lines[i]), 0);
		set[i] = set_lines_set(&lines[i]);
	}
}

static void close_sets(void)
{
	for (size_t i = 0; i < now.policy->n_sets; i++)
		set_lines_free(&lines[i]);
	set_texts_free(&texts);
	memset(set, 0, sizeof(set));
}

static enum reach reach_of(const char *source)
{
	static const struct pacer_set none[PACER_SETS_MAX];
	struct pacer_state state = {
	    .policy = &now.bin, .set = without_sets ? none : set, .hand = hand};
	struct pacer_walk walk = {.state = &state, .now_ns = 1};
	struct prefix prefix;

	assert_int_equal(units_prefix(source, &prefix), 0);
	walk.pkt.family = prefix.family == 4 ? PACER_FAMILY_4 : PACER_FAMILY_6;
	for (int i = 0; i < (prefix.family == 4 ? 1 : 4); i++)
		walk.pkt.key[i] = pacer_be32(prefix.addr + 4 * i);
	return reach_of_rule(&now.policy->rule[0], &walk, &prefix);
}

#define SETS "{name: a, of: [10.0.0.0/8, '2001:db8::/32']}, {name: b, of: [10.1.0.0/16]}"

static const struct {
	const char *match, *source;
	enum reach reach;
} rows[] = {
    {"src: 10.0.0.0/8", "10.1.2.3", REACH_ALL},
    {"src: 10.0.0.0/8", "10.1.0.0/16", REACH_ALL},
    {"src: 10.0.0.0/8", "0.0.0.0/0", REACH_SOME},
    {"src: 10.0.0.0/8", "11.0.0.0/8", REACH_NONE},
    {"src: 10.0.0.0/24", "10.0.0.0/16", REACH_SOME}, /* which begin at one address */
    {"src: 10.0.0.0", "10.0.0.0/31", REACH_SOME},
    {"src: 10.0.0.0/8, dport: 53", "10.1.2.3", REACH_SOME},
    {"src: 10.0.0.0/8, dst: '@b'", "10.1.2.3", REACH_SOME},
    {"dst: '@b'", "10.1.2.3", REACH_SOME},
    {"dport: 53", "10.1.2.3", REACH_SOME},
    {"src: 10.0.0.0/8, inner: yes", "10.1.2.3", REACH_ALL}, /* of what is in tunnels */
    {"src: 10.0.0.0/8, inner: yes, dport: 53", "10.1.2.3", REACH_SOME},
    {"src: '@a'", "10.1.2.3", REACH_ALL},
    {"src: '@a'", "2001:db8::1", REACH_ALL},
    {"src: '@a'", "11.1.2.3", REACH_NONE},
    {"src: '@a'", "10.1.0.0/16", REACH_SOME}, /* a set is asked for addresses alone */
    {"src: ['@a', 11.0.0.0/8]", "11.1.2.3", REACH_ALL},
    {"src: '!@b'", "10.1.2.3", REACH_NONE},
    {"src: '!@b'", "10.2.2.3", REACH_ALL},
    {"src: '!@b'", "10.0.0.0/8", REACH_SOME},
    {"src: ['@a', '!@b']", "10.2.2.3", REACH_ALL},
    {"src: ['@a', '!@b']", "10.1.2.3", REACH_NONE},
    {"src: [10.0.0.0/8, '!@b']", "10.1.0.0/16", REACH_SOME},
    {"src: [10.0.0.0/8, '!@b']", "11.0.0.0/8", REACH_NONE},
};

static void test_rows(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		enum reach got;

		open_sets(SETS, rows[i].match);
		got = reach_of(rows[i].source);
		if (got != rows[i].reach)
			fail_msg("%s of %s: %d", rows[i].source, rows[i].match, got);
		close_sets();
	}
}

static struct set_lines by_hand;

/* The first set has it alone by hand. */
static void give_by_hand(const char *text, const char *value)
{
	struct set_hand one = {.about = &texts.text[0].about};
	struct set_list numbered;
	struct prefix prefix;
	struct set_entry e;

	set_lines_free(&by_hand);
	assert_int_equal(units_prefix(text, &prefix), 0);
	e = set_entry_of(&prefix, 1, 0);
	assert_int_equal(set_hand_add_named(&one, &e, SET_HAND_STAYS, value), 0);
	set_hand_settle(&one, 1);
	assert_int_equal(set_hand_list(&one, &numbered), 0);
	assert_int_equal(set_hand_build(&one, &numbered, 1, &by_hand), 0);
	by_hand.line->head.serial = lines[0].line->head.serial;
	hand[0] = set_lines_set(&by_hand);
	set_list_free(&numbered);
	set_hand_free(&one);
}

/* Of a set with values, one: only who has that value is meant, by the file or by hand. */
static void test_values(void **unused)
{
	static const char file[] = "10.1.0.0/16,XY\n10.2.0.0/16,AB\n";
	char name[] = "/dev/shm/xdp-pacer-reach-XXXXXX", sets[100];
	int fd = mkstemp(name);

	(void)unused;
	assert_true(fd >= 0 && write(fd, file, strlen(file)) == (ssize_t)strlen(file));
	close(fd);
	snprintf(sets, sizeof(sets), "{name: geo, file: %s, value: 2}", name);
	open_sets(sets, "src: '@geo=AB'");
	assert_int_equal(reach_of("10.2.3.4"), REACH_ALL);
	assert_int_equal(reach_of("10.1.3.4"), REACH_NONE);
	assert_int_equal(reach_of("10.3.3.4"), REACH_NONE);
	give_by_hand("10.1.3.4/32", "AB");
	assert_int_equal(reach_of("10.1.3.4"), REACH_ALL);
	assert_int_equal(reach_of("10.1.3.5"), REACH_NONE);
	give_by_hand("10.2.3.4/32", "XY");
	assert_int_equal(reach_of("10.2.3.4"), REACH_NONE);
	set_lines_free(&by_hand);
	hand[0] = (struct pacer_set){NULL, 0};
	close_sets();
	open_sets(sets, "src: '@geo'");
	assert_int_equal(reach_of("10.1.3.4"), REACH_ALL);
	close_sets();
	unlink(name);
}

/* What a set that cannot be read has, nobody can tell. */
static void test_unknown(void **unused)
{
	(void)unused;
	open_sets(SETS, "src: '@a'");
	without_sets = true;
	assert_int_equal(reach_of("10.1.2.3"), REACH_SOME);
	without_sets = false;
	close_sets();
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_rows), TEST(test_values), TEST(test_unknown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
