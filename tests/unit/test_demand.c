/* SPDX-License-Identifier: GPL-2.0-only */
/* What a member asks for of a limit of all packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fleet/demand.h"

#define S     1000000000ull
#define LIMIT 1000

/* A second in which so many come, of a limit whose units count for two seconds. */
static uint64_t second(struct fleet_demand *d, uint64_t asked, uint64_t come, uint64_t *now)
{
	*now += S;
	return fleet_demand(d, asked, d->counted + come, 2 * S, LIMIT, 1, *now);
}

static void test_a_quarter_more_than_came(void **unused)
{
	struct fleet_demand d = {0};
	uint64_t now = 100 * S, asked = LIMIT;

	(void)unused;
	asked = second(&d, asked, 0, &now); /* the first look counts from nothing */
	assert_int_equal(asked, LIMIT);
	d.want = 100;
	asked = second(&d, 100, 100, &now);
	assert_int_equal(asked, 2 * 100 + 2 * 100 / 4 + 1);
	assert_int_equal(second(&d, asked, 100, &now), asked);
	assert_int_equal(second(&d, asked, 105, &now), asked); /* not worth a write */
	assert_int_equal(second(&d, asked, 5000, &now), LIMIT);
}

static void test_it_falls_by_a_quarter_a_second(void **unused)
{
	struct fleet_demand d = {.want = LIMIT, .at_ns = 100 * S};
	uint64_t now = 100 * S, asked = LIMIT, before;
	int seconds = 0;

	(void)unused;
	while (asked > 10) {
		before = asked;
		asked = second(&d, asked, 0, &now);
		assert_true(d.want >= before / 2 && asked <= before);
		seconds++;
	}
	assert_in_range(seconds, 10, 25);
}

/* A little short of all is not what is left for ever. */
static void test_all_of_it_is_asked_for(void **unused)
{
	struct fleet_demand d = {0};

	(void)unused;
	assert_int_equal(fleet_ask(&d, 0, 750, LIMIT, 1), 938);
	assert_int_equal(fleet_ask(&d, 938, 770, LIMIT, 1), 938);
	assert_int_equal(fleet_ask(&d, 938, 800, LIMIT, 1), LIMIT);
	assert_int_equal(fleet_ask(&d, LIMIT, 750, LIMIT, 1), LIMIT);
	assert_int_equal(fleet_ask(&d, LIMIT, 600, LIMIT, 1), 751);
}

/* What it asked for goes to those who have use for it, and it asks again as soon as something
 * comes.
 */
static void test_of_few_units_nobody_keeps_one_for_nothing(void **unused)
{
	struct fleet_demand d = {0};
	uint64_t now = 100 * S, asked = 3, counted = 0;

	(void)unused;
	for (int i = 0; i < 4; i++) {
		now += S;
		asked = fleet_demand(&d, asked, counted, S, 3, 4, now);
	}
	assert_int_equal(asked, 0);
	now += S;
	asked = fleet_demand(&d, asked, ++counted, S, 3, 4, now);
	assert_int_equal(asked, 2);
	for (int i = 0; i < 4; i++) { /* less than a unit comes, and has use for one */
		now += 10 * S;
		asked = fleet_demand(&d, asked, ++counted, S, 3, 4, now);
	}
	assert_int_equal(asked, 1);
	for (int i = 0; i < 4; i++) { /* there is one for each again */
		now += S;
		asked = fleet_demand(&d, asked, counted, S, 4, 4, now);
	}
	assert_int_equal(asked, 1);
}

static void test_a_look_within_the_second_changes_nothing(void **unused)
{
	struct fleet_demand d = {.want = 7, .at_ns = 100 * S, .counted = 3}, before = d;

	(void)unused;
	assert_int_equal(fleet_demand(&d, 7, 5000, S, LIMIT, 1, 101 * S - 1), 7);
	assert_memory_equal(&d, &before, sizeof(d));
}

/* All members of a large fleet look the less often, since each look may be a write. */
static void test_a_large_fleet_looks_seldom(void **unused)
{
	const struct fleet_demand d = {.at_ns = 100 * S};

	(void)unused;
	assert_false(fleet_demand_is_due(&d, 8, 101 * S - 1));
	assert_true(fleet_demand_is_due(&d, 8, 101 * S));
	assert_false(fleet_demand_is_due(&d, 1000, 116 * S - 1));
	assert_true(fleet_demand_is_due(&d, 1000, 116 * S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_quarter_more_than_came),
	    cmocka_unit_test(test_it_falls_by_a_quarter_a_second),
	    cmocka_unit_test(test_all_of_it_is_asked_for),
	    cmocka_unit_test(test_of_few_units_nobody_keeps_one_for_nothing),
	    cmocka_unit_test(test_a_look_within_the_second_changes_nothing),
	    cmocka_unit_test(test_a_large_fleet_looks_seldom),
	};

	return cmocka_run_group_tests_name("demand", tests, NULL, NULL);
}
