/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Many hosts of one limit, on a virtual clock: all have their shares in time, whatever they ask,
 * and each has its reserve.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fleet_many.h"

static uint32_t without_share(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_hosts; i++)
		n += !share_of(&hosts[i]);
	return n;
}

/* Between 0.1 and 2.1 equal parts of twice the limit, drawn anew every 3 s. */
static uint64_t fluctuates(uint32_t i, uint64_t since_ns)
{
	uint64_t z = (i * 7919ull + since_ns / (3 * S)) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 29) * 0xbf58476d1ce4e5b9ull;
	z ^= z >> 32;
	return 2 * LIMIT / n_hosts / 10 + z % (4 * LIMIT / n_hosts);
}

static void run(comes *to, uint64_t seconds)
{
	for (uint64_t begun = now; now - begun < seconds * S;)
		step_of(to, now, 50 * MS);
}

/* A new limit waits for its window and 20 s: then all have shares, though all write all the time.
 */
static void a_new_limit(void **state)
{
	uint32_t n = *(const uint32_t *)*state;

	begin(n, 0);
	run(fluctuates, 20);
	assert_int_equal(without_share(), n);
	run(fluctuates, 10);
	assert_int_equal(without_share(), 0);
	assert_true(step_of(fluctuates, now, 50 * MS) > LIMIT * 8 / 10);
	end();
}

static uint64_t evenly(uint32_t i, uint64_t since_ns)
{
	(void)i;
	(void)since_ns;
	return 2 * LIMIT / n_hosts;
}

static uint64_t to_the_first(uint32_t i, uint64_t since_ns)
{
	(void)since_ns;
	return i ? 0 : 2 * LIMIT;
}

/* Each has its reserve, which is a sixteenth, or a quarter of an equal part at least; and half of
 * the limit is for who needs it. */
static void assert_reserves(void)
{
	uint64_t all = 0, least = n_hosts > 8 ? LIMIT / 4 / n_hosts : LIMIT / 16;

	for (uint32_t i = 0; i < n_hosts; i++) {
		uint64_t reserve = hosts[i].share.applied.floor;

		assert_in_range(reserve, least, LIMIT / 16);
		all += reserve;
	}
	assert_true(all <= LIMIT / 2);
}

/* `cut_off: local`: all have a reserve, and all of the limit is used. */
static void a_reserve_for_each(void **state)
{
	uint32_t n = *(const uint32_t *)*state;

	begin(n, LIMIT / 16);
	run(evenly, 40);
	assert_reserves();
	assert_int_equal(without_share(), 0);
	assert_int_equal(step_of(evenly, now, S), LIMIT);
	end();
}

static void join_one_that_needs_all(uint32_t n)
{
	begin(n, LIMIT / 16);
	for (uint32_t i = 1; i < n; i++) { /* the others begin when it has all */
		hosts[i].at_ns += 30 * S;
		due_ns[i] = hosts[i].at_ns;
	}
	run(to_the_first, 30);
	assert_true(share_of(&hosts[0]) == LIMIT);
	run(to_the_first, 30);
	assert_reserves();
	assert_true(share_of(&hosts[0]) >= LIMIT / 2);
	end();
}

/* So it is where all comes to one, before the others join and after. */
static void a_reserve_beside_one_that_needs_all(void **state)
{
	by_key = false;
	join_one_that_needs_all(*(const uint32_t *)*state);
}

/* Or all of a key, which has a lane when they join. */
static void a_reserve_beside_a_lane(void **state)
{
	by_key = true;
	join_one_that_needs_all(*(const uint32_t *)*state);
	by_key = false;
}

static uint64_t nothing(uint32_t i, uint64_t since_ns)
{
	(void)i;
	(void)since_ns;
	return 0;
}

/*
 * A renewal takes three calls, and is due again as it is answered where each takes 1.2 s. What
 * is to be written, and what hosts share beside, has its turn between two of them all the same.
 */
static void a_slow_store(void **unused)
{
	uint64_t waits[2];

	(void)unused;
	begin(2, 0);
	slow_ns = 1200 * MS;
	run(evenly, 120);
	for (int i = 0; i < 2; i++) {
		assert_true(share_of(&hosts[i]) >= LIMIT / 2 - 1);
		waits[i] = hosts[i].waits;
	}
	for (uint64_t begun = now; now - begun < 60 * S;) {
		step_of(nothing, now, 50 * MS);
		assert_true(share_of(&hosts[0]) && share_of(&hosts[1]));
	}
	slow_ns = 1600 * MS; /* a renewal and nothing else is done in time */
	run(fluctuates, 30);
	for (uint64_t begun = now; now - begun < 60 * S;) {
		step_of(fluctuates, now, 50 * MS);
		assert_true(share_of(&hosts[0]) && share_of(&hosts[1]));
	}
	assert_int_equal(joins, 2); /* neither has lost its session */
	for (int i = 0; i < 2; i++)
		assert_true(hosts[i].waits >= waits[i] + 2);
	slow_ns = 0;
	end();
}

int main(void)
{
	static const uint32_t two = 2, four = 4, eight = 8, nine = 9, twenty = 20, forty = 40,
			      hundred = 100;
	static const uint32_t some = 30, many = 64, most = 120;
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_prestate(a_new_limit, (void *)&some),
	    cmocka_unit_test_prestate(a_new_limit, (void *)&many),
	    cmocka_unit_test_prestate(a_new_limit, (void *)&most),
	    cmocka_unit_test_prestate(a_reserve_for_each, (void *)&two),
	    cmocka_unit_test_prestate(a_reserve_for_each, (void *)&nine),
	    cmocka_unit_test_prestate(a_reserve_for_each, (void *)&twenty),
	    cmocka_unit_test_prestate(a_reserve_for_each, (void *)&forty),
	    cmocka_unit_test_prestate(a_reserve_for_each, (void *)&hundred),
	    cmocka_unit_test_prestate(a_reserve_beside_one_that_needs_all, (void *)&four),
	    cmocka_unit_test_prestate(a_reserve_beside_one_that_needs_all, (void *)&eight),
	    cmocka_unit_test_prestate(a_reserve_beside_one_that_needs_all, (void *)&twenty),
	    cmocka_unit_test_prestate(a_reserve_beside_a_lane, (void *)&four),
	    cmocka_unit_test_prestate(a_reserve_beside_a_lane, (void *)&twenty),
	    cmocka_unit_test(a_slow_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
