/* SPDX-License-Identifier: GPL-2.0-only */
/* What the next allow-list holds, of a policy and of the list before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "live/allowlist.h"

#define NOW 1000u

static struct allowlist now, next;
static struct prefix listed[PACER_ALLOW_MAX + 1];
static struct policy policy = {.allow = listed};

/* 10.0.x.y, or fd00::xy */
static struct prefix prefix(int family, uint32_t number)
{
	struct prefix p = {family, family == 4 ? 32 : 128, {0}};

	p.addr[0] = family == 4 ? 10 : 0xfd;
	p.addr[2] = number >> 8;
	p.addr[3] = number;
	return p;
}

static void had(struct prefix p, bool of_policy, bool by_hand, uint64_t hand_until_ns)
{
	struct allow_entry entry = {p, of_policy, by_hand, hand_until_ns};

	assert_true(allowlist_append(&now, &entry));
}

static void lists(struct prefix p)
{
	listed[policy.n_allow++] = p;
}

static int made(void)
{
	allowlist_sort(&now);
	return allowlist_next(&policy, &now, NOW, &next);
}

static void is(struct prefix p, bool of_policy, bool by_hand, uint64_t hand_until_ns)
{
	const struct allow_entry *e = allowlist_find(&next, &p);

	assert_non_null(e);
	assert_int_equal(e->of_policy, of_policy);
	assert_int_equal(e->by_hand, by_hand);
	assert_int_equal(e->hand_until_ns, hand_until_ns);
}

static int setup(void **unused)
{
	(void)unused;
	policy.n_allow = 0;
	return allowlist_init(&now) || allowlist_init(&next);
}

static int teardown(void **unused)
{
	(void)unused;
	allowlist_free(&now);
	allowlist_free(&next);
	return 0;
}

/* Each row: on the list before (of the policy, by hand, until), listed by the new one; then what.
 */
static void test_one_prefix(void **unused)
{
	static const struct {
		bool of_policy, by_hand;
		uint64_t until_ns;
		bool lists, stays, then_of_policy, then_by_hand;
		uint64_t then_until_ns, packets_until_ns;
	} row[] = {
	    {false, false, 0, true, true, true, false, 0, 0},
	    {true, false, 0, true, true, true, false, 0, 0},
	    {true, false, 0, false, false, false, false, 0, 0},
	    {false, true, 0, false, true, false, true, 0, 0},
	    {false, true, 0, true, true, true, true, 0, 0},
	    {true, true, 0, false, true, false, true, 0, 0},
	    {false, true, NOW + 1, false, true, false, true, NOW + 1, NOW + 1},
	    {false, true, NOW + 1, true, true, true, true, NOW + 1, 0},
	    {true, true, NOW + 1, true, true, true, true, NOW + 1, 0},
	    {true, true, NOW + 1, false, true, false, true, NOW + 1, NOW + 1},
	    {false, true, NOW, false, false, false, false, 0, 0},
	    {false, true, NOW, true, true, true, false, 0, 0},
	    {true, true, NOW, true, true, true, false, 0, 0},
	    {true, true, NOW, false, false, false, false, 0, 0},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct prefix p = prefix(i % 2 ? 4 : 6, 1);

		now.n = policy.n_allow = 0;
		had(prefix(4, 9), false, true, 0);
		if (row[i].of_policy || row[i].by_hand)
			had(p, row[i].of_policy, row[i].by_hand, row[i].until_ns);
		if (row[i].lists)
			lists(p);
		assert_int_equal(made(), 0);
		assert_int_equal(next.n, 1 + row[i].stays);
		is(prefix(4, 9), false, true, 0);
		if (!row[i].stays)
			continue;
		is(p, row[i].then_of_policy, row[i].then_by_hand, row[i].then_until_ns);
		assert_int_equal(allow_until_ns(allowlist_find(&next, &p)),
				 row[i].packets_until_ns);
	}
}

/* As one would look for them. */
static void test_order(void **unused)
{
	struct prefix net = prefix(4, 0x100);
	static const struct {
		uint8_t family, len, last;
	} row[] = {{4, 32, 0}, {4, 24, 1}, {4, 32, 1}, {4, 32, 2}, {6, 128, 1}};

	(void)unused;
	net.len = 24;
	had(prefix(6, 0x100), false, true, 0);
	had(prefix(4, 0x200), false, true, 0);
	had(prefix(4, 0x100), false, true, 0);
	had(net, false, true, 0);
	had(prefix(4, 0), false, true, 0);
	allowlist_sort(&now);
	for (size_t i = 0; i < now.n; i++) {
		assert_int_equal(now.entry[i].prefix.family, row[i].family);
		assert_int_equal(now.entry[i].prefix.len, row[i].len);
		assert_int_equal(now.entry[i].prefix.addr[2], row[i].last);
		assert_ptr_equal(allowlist_find(&now, &now.entry[i].prefix), &now.entry[i]);
	}
}

/* A policy that says it twice has it once. */
static void test_twice(void **unused)
{
	(void)unused;
	lists(prefix(4, 1));
	lists(prefix(6, 1));
	lists(prefix(4, 1));
	assert_int_equal(made(), 0);
	assert_int_equal(next.n, 2);
	assert_int_equal(allowlist_count(&next, 4), 1);
	assert_int_equal(allowlist_count(&next, 6), 1);
}

/* Full is full, of each family by itself; what lapses or is replaced takes no room. */
static void test_full(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i < PACER_ALLOW_MAX; i++) {
		had(prefix(4, i), true, false, 0);
		had(prefix(6, i), i % 2, true, 0);
		lists(prefix(4, 0x8000 + i));
	}
	assert_int_equal(made(), 0);
	assert_int_equal(allowlist_count(&next, 4), PACER_ALLOW_MAX);
	assert_int_equal(allowlist_count(&next, 6), PACER_ALLOW_MAX);
	now.entry[0].by_hand = true;
	now.entry[0].hand_until_ns = NOW;
	assert_int_equal(made(), 0);
	now.entry[0].hand_until_ns = NOW + 1;
	assert_int_equal(made(), 4);
	now.entry[0].by_hand = false;
	policy.n_allow--;
	lists(prefix(6, 0x8000));
	assert_int_equal(made(), 6);
}

static void test_by_hand(void **unused)
{
	struct allow_entry entry = {.prefix = prefix(4, 1), .hand_until_ns = NOW};
	struct allow_entry old = {.prefix = prefix(4, 1), .of_policy = true}, made;

	(void)unused;
	made = allow_by_hand(&entry, NULL);
	assert_true(made.by_hand && !made.of_policy && allow_until_ns(&made) == NOW);
	assert_true(allow_has_lapsed(&made, NOW));
	assert_false(allow_has_lapsed(&made, NOW - 1));
	made = allow_by_hand(&entry, &old);
	assert_true(made.by_hand && made.of_policy && made.hand_until_ns == NOW);
	assert_false(allow_has_lapsed(&made, NOW));
	old = (struct allow_entry){.prefix = prefix(4, 1), .by_hand = true};
	made = allow_by_hand(&entry, &old);
	assert_true(made.by_hand && !made.of_policy && made.hand_until_ns == NOW);
}

/* A prefix lasts as all that hold it do, of its own family and bits. */
static void test_within(void **unused)
{
	struct prefix p = prefix(4, 0x100), other = prefix(4, 0x200), all = {4, 0, {0}};
	struct prefix long6 = prefix(6, 0x180), net6 = prefix(6, 0x180);

	(void)unused;
	net6.len = 121; /* its last bit is set */
	p.len = 30;
	had(p, false, true, 20);
	p.len = 24;
	had(p, false, true, 30);
	other.len = 24;
	had(other, false, true, 90);
	had(long6, false, true, 40);
	allowlist_sort(&now);
	p.len = 30;
	assert_int_equal(allowlist_until_ns(&now, &p), 30);
	p.len = 24;
	assert_int_equal(allowlist_until_ns(&now, &p), 30);
	assert_int_equal(allowlist_until_ns(&now, &long6), 40);
	assert_true(allowlist_put(&now, &(struct allow_entry){net6, false, true, 50}));
	assert_int_equal(allowlist_until_ns(&now, &long6), 50);
	assert_true(allowlist_put(&now, &(struct allow_entry){all, true, true, 9}));
	assert_int_equal(now.n, 6);
	p.len = 30;
	assert_int_equal(allowlist_until_ns(&now, &p), 0);
	assert_int_equal(allowlist_until_ns(&now, &long6), 50);
	allowlist_take(&now, &all);
	allowlist_take(&now, &all); /* it is not there */
	assert_int_equal(allowlist_until_ns(&now, &p), 30);
	p.len = 24;
	assert_true(allowlist_put(&now, &(struct allow_entry){p, false, true, 10}));
	assert_int_equal(now.n, 5);
	p.len = 30;
	assert_int_equal(allowlist_until_ns(&now, &p), 20);
	for (size_t i = 0; i < now.n; i++)
		assert_ptr_equal(allowlist_find(&now, &now.entry[i].prefix), &now.entry[i]);
}

static void test_left(void **unused)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} row[] = {
	    {1, "1s"},
	    {999999999, "1s"},
	    {1000000000, "1s"},
	    {1000000001, "2s"},
	    {59000000001, "1m"},
	    {61000000000, "1m 1s"},
	    {3599000000000, "59m 59s"},
	    {3600000000000, "1h"},
	    {3659000000000, "1h"},
	    {5400000000000, "1h 30m"},
	    {90000000000000, "1d 1h"},
	    {UINT64_MAX, "213503d 23h"},
	};
	char text[32];

	(void)unused;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		assert_string_equal(allow_left_text(row[i].ns, text, sizeof(text)), row[i].text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* A prefix is of another where that has all of it, not where both begin at one address. */
static void test_holds(void **unused)
{
	static const struct {
		const char *prefix, *other;
		bool holds;
	} row[] = {
	    {"10.0.0.0/8", "10.1.2.3/32", true},       {"10.0.0.0/8", "10.0.0.0/8", true},
	    {"10.0.0.0/24", "10.0.0.0/23", false},     {"10.0.0.0/32", "10.0.0.0/8", false},
	    {"10.0.0.0/23", "10.0.1.0/24", true},      {"10.0.0.0/23", "10.0.2.0/24", false},
	    {"0.0.0.0/0", "10.0.0.0/8", true},	       {"0.0.0.0/0", "::/0", false},
	    {"2001:db8::/32", "2001:db8::/48", true},  {"2001:db8::/48", "2001:db8::/32", false},
	    {"2001:db8::/128", "2001:db8::/128", true}};

	(void)unused;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct prefix prefix, other;

		assert_int_equal(units_prefix(row[i].prefix, &prefix), 0);
		assert_int_equal(units_prefix(row[i].other, &other), 0);
		if (units_prefix_holds(&prefix, &other) != row[i].holds)
			fail_msg("%s of %s", row[i].other, row[i].prefix);
	}
}

/* Without room nothing is put but what is there. */
static void test_put_without_room(void **unused)
{
	struct allow_entry entry = {prefix(4, 1), false, true, 0};

	(void)unused;
	had(entry.prefix, false, true, NOW + 1);
	now.room = now.n;
	assert_true(allowlist_put(&now, &entry));
	assert_int_equal(allowlist_find(&now, &entry.prefix)->hand_until_ns, 0);
	entry.prefix = prefix(4, 2);
	assert_false(allowlist_put(&now, &entry));
	assert_int_equal(now.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_one_prefix), TEST(test_order), TEST(test_twice),	TEST(test_full),
	    TEST(test_by_hand),	   TEST(test_left),  TEST(test_within), TEST(test_put_without_room),
	    TEST(test_holds)};

	return cmocka_run_group_tests_name("allowlist", tests, NULL, NULL);
}
