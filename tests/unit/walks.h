/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: walks of a pacer at work beside the test's own model: each is what its seed makes of it.
 * In some one of the steps is killed as it writes for the n-th time (killed.h). One that fails says
 * how it is run again, alone, and is printed then. WALKS=5000 runs so many, from the seed FROM on
 * (`make sequences`).
 *
 * The test says how many there are without that (WALKS), for how many of them there is one that is
 * killed again and again (SWEEPS), and what is done in it.
 */
#ifndef PACER_TEST_WALKS_H
#define PACER_TEST_WALKS_H

#include "at_work.h"

/* kill 0: no step is killed. True: nothing was other than the model says. */
static bool walk(uint64_t seed, uint32_t kill, bool told);

#define SWAP(a, b)               \
	do {                     \
		typeof(a) c = a; \
		a = b;           \
		b = c;           \
	} while (0)

/* Something is not as the model says: the walk ends. */
__attribute__((format(printf, 1, 2))) static void break_it(const char *format, ...)
{
	va_list args;

	work.broken = true;
	va_start(args, format);
	printf("%.6f ", (double)now_ns() / 1e9);
	vprintf(format, args);
	va_end(args);
	printf("\nagain, alone: %s\n", work.name);
}

/* Steps that are the same whatever a walk is about. */

static int run_confirm(void)
{
	return change_confirm(&pacer, &error);
}

static int run_rotate(void)
{
	return change_rotate(&pacer, &plan, &error);
}

static void begin_walk(const char *test, uint64_t seed, uint32_t kill, bool told)
{
	static char name[80];

	snprintf(name, sizeof(name), "WALK='%" PRIu64 " %" PRIu32 "' build/unit/%s", seed, kill,
		 test);
	begin_work(name, told);
	oracle_seed(seed);
}

static void test_walks(void **unused)
{
	uint64_t from = from_environment("FROM", 1), n = from_environment("WALKS", WALKS);
	uint64_t done = 0, lost = 0, broken = 0;

	(void)unused;
	for (uint64_t seed = from; seed < from + n; seed++) {
		broken += !walk(seed, 0, false);
		done += work.done;
		lost += work.lost;
	}
	assert_int_equal(broken, 0);
	assert_true(done > 8 * n);
	assert_true(lost <= n / 10);
}

/* Each again and again, until its last step writes less often than that. */
static void test_kills(void **unused)
{
	uint64_t from = from_environment("FROM", 1), n = from_environment("WALKS", WALKS);
	uint64_t kills = 0, broken = 0;

	(void)unused;
	for (uint64_t seed = from; seed < from + (n + SWEEPS - 1) / SWEEPS; seed++)
		for (uint32_t kill = 1; !broken && (kill == 1 || work.killed);
		     kill += 1 + kill / 4) {
			broken += !walk(seed, kill, false);
			kills += work.killed;
		}
	assert_int_equal(broken, 0);
	if (!KILLED_AT_STORES)
		print_message("skipped: a change is killed at each store on x86-64 alone\n");
	else
		assert_true(kills >= n);
}

/* The walk that WALK names, told; its seed, and where it is killed. */
static int walk_again(void)
{
	uint32_t kill = 0;
	uint64_t seed;

	if (sscanf(getenv("WALK"), "%" SCNu64 " %" SCNu32, &seed, &kill) < 1)
		return 2;
	return !walk(seed, kill, true);
}

#endif
