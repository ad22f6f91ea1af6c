/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every state of a small fleet (world.h), by the code that runs. A row of the first table is a
 * truth of all of them; one of the second, of many runs at random, of fleets that are too large for
 * that. The third table plants faults, and each has to be found.
 *
 *   test_fleet [WORD...]     only those whose names have one of the words
 *   test_fleet --long        larger ones, too: long, and gigabytes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../named.h"
#include "world.h"

/* The tables leave out what is 0, */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Woverride-init" /* a row may say otherwise than TWO does */

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Two hosts of which one clock is slow and one is fast, and a store whose clock is fast: by as much
 * as they may be. ttl and memory are those at which nothing is to spare: a session ends in the tick
 * in which its holder counts it ended, and what cools has cooled in the tick in which it is
 * counted.
 */
#define TWO .hosts = 2, .limit = 2, .rate = {3, 5}, .store_rate = 5, .ttl = 10, .memory = 3
#define THREE                                                                               \
	.hosts = 3, .limit = 5, .rate = {3, 5, 4}, .store_rate = 5, .ttl = 10, .memory = 3, \
	.walks = 5000
#define ROUGH .lost = 5, .late = 5, .doubled = 5, .restarts = 3, .reboots = 2, .wants = 8

static const struct world_scenario sound[] = {
    {.name = "two members", TWO, .states_min = 400000},
    {.name = "a longer memory", TWO, .memory = 4, .states_min = 1000000},
    {.name = "clocks alike, reads wait",
     TWO,
     .rate = {4, 4},
     .store_rate = 4,
     .paced = true,
     .states_min = 300000},
    {.name = "a reserve", TWO, .limit = 3, .reserve = 1, .states_min = 300000},
    {.name = "a reserve falls where another joins",
     TWO,
     .limit = 3,
     .reserve = 2,
     .states_min = 300000},
    {.name = "a reserve is lowered",
     TWO,
     .limit = 3,
     .reserve = 1,
     .turns = 2,
     .lost = 1,
     .deep = 14,
     .states_min = 100000},
    {.name = "a smaller limit of one", TWO, .limit = 3, .smaller = 2, .states_min = 300000},
    {.name = "a limit is forgone",
     TWO,
     .ttl = 30,
     .slow = true,
     .restarts = 1,
     .drops = 1,
     .deep = 14,
     .states_min = 100000},
    {.name = "the store seems to go back",
     TWO,
     .limit = 3,
     .reserve = 1,
     .backs = 1,
     .lost = 1,
     .restarts = 1,
     .deep = 13,
     .states_min = 100000},
};

static const struct world_scenario larger[] = {
    {.name = "a memory longer still", TWO, .memory = 5, .states_min = 1000000},
    {.name = "a request is lost", TWO, .lost = 1, .states_min = 500000},
    {.name = "a request is late", TWO, .lost = 1, .late = 1, .states_min = 500000},
    {.name = "a request is done twice", TWO, .doubled = 1, .states_min = 1000000},
    {.name = "answers are late", TWO, .slow = true, .states_min = 1000000},
    {.name = "an agent begins anew", TWO, .restarts = 1, .late = 1, .states_min = 1000000},
    {.name = "a datapath begins anew", TWO, .reboots = 1, .states_min = 1000000},
    {.name = "a demand changes", TWO, .wants = 2, .states_min = 1000000},
    {.name = "cold units are back at once", TWO, .hot = true, .wants = 1, .states_min = 100000},
    {.name = "a lane", TWO, .lane = true, .wants = 2, .deep = 19, .states_min = 500000},
    {.name = "the record is taken away", TWO, .removals = 1, .states_min = 1000000},
    {.name = "an agent leaves", TWO, .leaves = 1, .states_min = 1000000},
    {.name = "a policy without it", TWO, .drops = 1, .states_min = 1000000},
};

static const struct world_scenario at_random[] = {
    {.name = "two, roughly", TWO, ROUGH, .leaves = 2, .paced = true, .walks = 5000},
    {.name = "two, policies without it",
     TWO,
     ROUGH,
     .reserve = 1,
     .limit = 4,
     .drops = 3,
     .walks = 5000},
    {.name = "two and a lane, answers late",
     TWO,
     ROUGH,
     .limit = 4,
     .reserve = 1,
     .lane = true,
     .slow = true,
     .walks = 5000},
    {.name = "three, roughly", THREE, ROUGH, .reserve = 1, .leaves = 2},
    {.name = "three, agents that wait, cold units back at once",
     THREE,
     ROUGH,
     .hot = true,
     .lazy = true},
    {.name = "three, the record is taken away", THREE, ROUGH, .removals = 2, .paced = true},
    {.name = "two, policies change",
     TWO,
     ROUGH,
     .limit = 4,
     .reserve = 1,
     .turns = 6,
     .leaves = 1,
     .drops = 1,
     .walks = 5000},
    {.name = "three, a limit is lowered",
     THREE,
     ROUGH,
     .limit = 6,
     .reserve = 2,
     .lowered = 3,
     .lowered_reserve = 1,
     .turns = 6,
     .leaves = 1},
    {.name = "two and a lane, a limit is lowered",
     TWO,
     ROUGH,
     .limit = 6,
     .reserve = 2,
     .lowered = 4,
     .lowered_reserve = 1,
     .lane = true,
     .slow = true,
     .turns = 6,
     .walks = 5000},
    {.name = "three, reserves by how many there are",
     THREE,
     ROUGH,
     .limit = 6,
     .reserve = 3,
     .leaves = 2},
    {.name = "three, the store seems to go back",
     THREE,
     ROUGH,
     .limit = 6,
     .reserve = 1,
     .backs = 3,
     .leaves = 1},
    {.name = "three and a lane", THREE, ROUGH, .lane = true, .leaves = 2, .paced = true},
};

#define FAULT(f) .name = "fault: " #f, .fault = FAULT_##f

static const struct world_scenario faulty[] = {
    {FAULT(BEGIN_EMPTY), TWO, .removals = 1, .walks = 1000},
    {FAULT(LOWER_COLD), TWO},
    {FAULT(END_COLD), TWO},
    {FAULT(END_TAKES_RESERVE), TWO, .reserve = 1},
    {FAULT(COOLS_FAST), TWO, .memory = 5},
    {FAULT(COOLS_SINCE_SENT), TWO},
    {FAULT(COOLS_BY_UNITS), TWO, .wants = 2},
    {FAULT(CLOCKS_EQUAL), TWO, .memory = 5},
    {FAULT(END_FROM_ANSWER), TWO},
    {FAULT(RAISE_IN_DOUBT), TWO, .restarts = 1, .late = 1, .leaves = 1, .deep = 15},
    {FAULT(START_TRUSTING), TWO, .restarts = 1, .late = 1, .leaves = 1, .deep = 15},
    {FAULT(GIVE_UNAPPLIED), TWO, .lost = 1, .wants = 1, .deep = 16},
    {FAULT(RAISE_OVER), TWO},
    {FAULT(RAISE_ONE_LANE), TWO, .lane = true, .wants = 2, .walks = 20000},
    {FAULT(LANE_COLD), TWO, .lane = true, .wants = 2, .deep = 14},
    {FAULT(STEP_OUT_FULL), TWO, .rate = {4, 4}, .store_rate = 4, .lane = true, .wants = 1,
     .deep = 20},
    {FAULT(RESUME_CELLS), TWO, .reboots = 2, .walks = 10000},
    {FAULT(RESERVE_ON_CREDIT), TWO, .limit = 3, .reserve = 1},
    {FAULT(RESERVE_UNCLEAN), TWO, .reserve = 1, .reboots = 1},
    {FAULT(RESERVE_LOWERED_FIRST), TWO, .limit = 3, .reserve = 1, .lost = 1, .turns = 1,
     .deep = 15},
    {FAULT(RESERVE_FORGOTTEN), TWO, ROUGH, .limit = 4, .reserve = 1, .turns = 4, .walks = 20000},
    {FAULT(BACK_TRUSTING), TWO, .backs = 1, .lost = 1, .deep = 16},
    {FAULT(RESERVE_RAISED_AGAIN), TWO, .limit = 3, .reserve = 1, .lost = 1, .turns = 2, .deep = 16},
};

static struct world_result result;

static void explore(const struct world_scenario *sc)
{
	clock_t begun = clock();

	world_explore(sc, &result);
	printf("# %s: %llu states, %llu steps, %.1f s\n", sc->name,
	       (unsigned long long)result.states, (unsigned long long)result.steps,
	       (double)(clock() - begun) / CLOCKS_PER_SEC);
}

static void test_sound(void **state)
{
	const struct world_scenario *sc = *state;

	explore(sc);
	if (result.fault[0])
		fail_msg("%s, after\n%s", result.fault, result.trace);
	assert_true(result.states >= sc->states_min);
	assert_int_equal(result.used, sc->limit); /* and it is used */
}

static void test_fault(void **state)
{
	explore(*state);
	assert_string_not_equal(result.fault, "");
}

static void test_all_planted(void **state)
{
	bool found[FAULT_COUNT] = {true};

	(void)state;
	for (size_t i = 0; i < ARRAY(faulty); i++)
		found[faulty[i].fault] = true;
	for (int i = 0; i < FAULT_COUNT; i++)
		if (!found[i])
			fail_msg("no row plants fault %d", i);
}

#define TESTS_MAX 64

static struct CMUnitTest tests[TESTS_MAX];
static size_t n_tests;

static void add(const struct world_scenario *rows, size_t n, CMUnitTestFunction test)
{
	for (size_t i = 0; i < n; i++) {
		assert_true(n_tests < TESTS_MAX);
		tests[n_tests++] =
		    (struct CMUnitTest){rows[i].name, test, NULL, NULL, (void *)&rows[i]};
	}
}

int main(int argc, char **argv)
{
	bool long_one = argc > 1 && !strcmp(argv[1], "--long");

	setvbuf(stdout, NULL, _IOLBF, 0);
	add(sound, ARRAY(sound), test_sound);
	if (long_one || argc > 1)
		add(larger, ARRAY(larger), test_sound);
	add(at_random, ARRAY(at_random), test_sound);
	add(faulty, ARRAY(faulty), test_fault);
	if (argc > 1 && !long_one)
		n_tests = named_first(tests, n_tests, argv + 1);
	else
		tests[n_tests++] = (struct CMUnitTest){"every fault of the code is planted",
						       test_all_planted, NULL, NULL, NULL};
	if (!n_tests) {
		fprintf(stderr, "test_fleet: no test's name has %s\n", argv[1]);
		return 2;
	}
	return _cmocka_run_group_tests("fleet", tests, n_tests, NULL, NULL);
}
