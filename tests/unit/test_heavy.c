/* SPDX-License-Identifier: GPL-2.0-only */
/* Which keys a member asks lanes for, from what its sample shows: when they begin and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/heavy.h"

#define S     1000000000ull
#define LIMIT 1600
#define ME    2

static struct fleet_share share;
static struct fleet_heavy heavy;
static struct fleet_seen seen[FLEET_LANES_MAX + 3];
static uint64_t now;

/* Four members, of whom I am the second: an equal part is 400. */
static int begin(void **unused)
{
	(void)unused;
	memset(&share, 0, sizeof(share));
	memset(&heavy, 0, sizeof(heavy));
	memset(seen, 0, sizeof(seen));
	share.params.limit = LIMIT;
	share.record.slots = 4;
	for (uint32_t i = 0; i < 4; i++) {
		share.record.slot[i].id = i + 1;
		share.record.slot[i].session = 10 + i;
		share.record.slot[i].limit = LIMIT;
	}
	now = 1000 * S;
	return 0;
}

static void look(size_t n)
{
	now += 2 * S;
	fleet_heavy(&heavy, &share, ME, seen, n, now);
}

static void is_seen(size_t i, const char *key, uint64_t units)
{
	memset(&seen[i], 0, sizeof(seen[i]));
	strcpy(seen[i].key, key);
	seen[i].units = units;
}

static uint32_t asked_for(void)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < FLEET_LANES_MAX; i++)
		n += share.want_key[i][0] != 0;
	return n;
}

static void more_than_an_equal_part_is_asked_for(void **unused)
{
	(void)unused;
	is_seen(0, "a", 401);
	is_seen(1, "b", 400);
	look(2);
	assert_int_equal(asked_for(), 1);
	assert_string_equal(share.want_key[1], "a");
	assert_int_equal(share.want[1], 401 + 401 / 4 + 1);
	is_seen(0, "a", 9000);
	look(2);
	assert_int_equal(share.want[1], LIMIT);
}

/* With one member there is nothing to divide, and without a record nothing to ask for. */
static void one_alone_asks_for_none(void **unused)
{
	(void)unused;
	is_seen(0, "a", 100000);
	share.record.slots = 0;
	look(1);
	share.record.slots = 1;
	share.record.slot[0].id = ME;
	is_seen(0, "a", LIMIT);
	look(1);
	assert_int_equal(asked_for(), 0);
}

static void a_little_less_ends_nothing(void **unused)
{
	uint32_t looks = 0;

	(void)unused;
	is_seen(0, "a", 500);
	look(1);
	for (uint32_t i = 0; i < 20; i++) {
		is_seen(0, "a", 330 + i % 2 * 60);
		look(1);
		assert_int_equal(asked_for(), 1);
		assert_true(share.want[1] > 400);
	}
	for (; asked_for(); looks++) /* nothing comes any more */
		look(0);
	assert_in_range(looks, 1, 6);
	assert_int_equal(share.want[1], 0);
}

/* Where another needs the lane, each says what it needs, and a sixteenth of its part at least. */
static void others_lanes_are_taken_part_in(void **unused)
{
	(void)unused;
	strcpy(share.record.key[3], "b");
	share.record.slot[3].cell[3].own = true;
	share.record.slot[3].cell[3].want = 401;
	look(0);
	assert_int_equal(asked_for(), 1);
	assert_string_equal(share.want_key[1], "b");
	assert_int_equal(share.want[1], 400 / 16);
	is_seen(0, "b", 80);
	look(1);
	assert_int_equal(share.want[1], 80 + 80 / 4 + 1);
	share.record.slot[3].cell[3].want = 400; /* it needs it no more */
	look(1);
	assert_int_equal(asked_for(), 0);
	share.record.slot[3].cell[3].want = 0;
	share.record.slot[1].cell[3].want = 1000; /* and what I asked for myself is no need */
	look(1);
	assert_int_equal(asked_for(), 0);
	share.record.slot[2].cell[3].want = 1000; /* nor is that of one who is gone */
	share.record.slot[2].session = 0;
	look(1);
	assert_int_equal(asked_for(), 0);
}

/* Of a part that has no sixteenth, one unit: who asks for none takes no part. */
static void a_small_part_is_a_unit(void **unused)
{
	(void)unused;
	share.params.limit = 40;
	for (uint32_t i = 0; i < 4; i++)
		share.record.slot[i].limit = 40;
	strcpy(share.record.key[3], "b");
	share.record.slot[3].cell[3].own = true;
	share.record.slot[3].cell[3].want = 11;
	look(0);
	assert_int_equal(share.want[1], 1);
}

/* Of fewer units than members, none: it would keep that from who needs it, and the lane open. */
static void of_few_units_none_is_kept(void **unused)
{
	(void)unused;
	share.params.limit = 3;
	for (uint32_t i = 0; i < 4; i++)
		share.record.slot[i].limit = 3;
	strcpy(share.record.key[3], "b");
	share.record.slot[3].cell[3].own = true;
	share.record.slot[3].cell[3].want = 3;
	look(0);
	assert_int_equal(asked_for(), 1);
	assert_int_equal(share.want[1], 0);
	is_seen(0, "b", 1);
	look(1);
	assert_int_equal(share.want[1], 2);
	share.record.slot[3].cell[3].want = 0;
	for (uint32_t i = 0; i < 4; i++)
		look(0);
	assert_int_equal(asked_for(), 0);
}

static void more_keys_than_lanes(void **unused)
{
	char key[] = "k0";

	(void)unused;
	for (uint32_t i = 0; i < FLEET_LANES_MAX + 3; i++) {
		key[1] = (char)('a' + i);
		is_seen(i, key, 1000 - i);
	}
	look(FLEET_LANES_MAX + 3);
	assert_int_equal(asked_for(), FLEET_LANES_MAX - 1);
	for (uint32_t i = 1; i < FLEET_LANES_MAX; i++)
		assert_string_equal(share.want_key[i], seen[i - 1].key);
}

/* The more members, the less often: a look can cost each of them a call of the store. */
static void not_before_it_is_due(void **unused)
{
	(void)unused;
	is_seen(0, "a", 500);
	look(1);
	assert_int_equal(heavy.due_ns, now + S + S / 2);
	is_seen(0, "a", 1200);
	fleet_heavy(&heavy, &share, ME, seen, 1, heavy.due_ns - 1);
	assert_int_equal(share.want[1], 500 + 125 + 1);
	fleet_heavy(&heavy, &share, ME, seen, 1, heavy.due_ns);
	assert_int_equal(share.want[1], 1200 + 300 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(more_than_an_equal_part_is_asked_for, begin),
	    cmocka_unit_test_setup(one_alone_asks_for_none, begin),
	    cmocka_unit_test_setup(a_little_less_ends_nothing, begin),
	    cmocka_unit_test_setup(others_lanes_are_taken_part_in, begin),
	    cmocka_unit_test_setup(a_small_part_is_a_unit, begin),
	    cmocka_unit_test_setup(of_few_units_none_is_kept, begin),
	    cmocka_unit_test_setup(more_keys_than_lanes, begin),
	    cmocka_unit_test_setup(not_before_it_is_due, begin),
	};

	return cmocka_run_group_tests_name("heavy", tests, NULL, NULL);
}
