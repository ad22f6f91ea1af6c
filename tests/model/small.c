/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "scenario.h"
#include "small.h"

#define CELLS_N 4

static __u64 cells[CELLS_N];
static struct explore_result result;

/* Three CPUs, two accesses each to words of their own: 6! / 2!^3 interleavings, 3^3 states. */
static void run_apart(void *arg, int cpu)
{
	(void)arg;
	pacer_store64(&cells[cpu], 1);
	pacer_store64(&cells[cpu], 2);
}

void test_explorer_counts(void **state)
{
	struct explore_model model = {
	    .name = "words apart",
	    .cpus = 3,
	    .memory = cells,
	    .bytes = sizeof(cells),
	    .run = run_apart,
	};

	(void)state;
	memset(cells, 0, sizeof(cells));
	explore(&model, &result);
	assert_int_equal(result.faults, 0);
	assert_int_equal(result.states, 27);
	assert_int_equal(result.ends, 1);
	assert_true(result.interleavings == 90);
}

/* Two CPUs add 1 by a load and a store: of 6 interleavings 4 lose one. */
static void run_add(void *arg, int cpu)
{
	(void)arg;
	(void)cpu;
	pacer_store64(&cells[0], pacer_load64(&cells[0]) + 1);
}

static const char *check_add(void *arg, const struct explore_note *notes, int n)
{
	(void)arg;
	(void)notes;
	(void)n;
	return cells[0] == 2 ? NULL : "an addition is lost";
}

void test_explorer_finds_lost_update(void **state)
{
	struct explore_model model = {
	    .name = "lost update",
	    .cpus = 2,
	    .memory = cells,
	    .bytes = sizeof(cells),
	    .run = run_add,
	    .check = check_add,
	};

	(void)state;
	memset(cells, 0, sizeof(cells));
	explore(&model, &result);
	assert_true(result.interleavings == 6);
	assert_int_equal(result.shortest.steps, 4);
	assert_string_equal(result.fault, "an addition is lost");
}

/* Three keys in four cells, each sharing a cell with each neighbour; a time for each CPU's. */
static const struct pacer_ttl_key ttl_key[CPUS] = {{0, 1}, {1, 2}, {2, 1}};
static const __u64 ttl_ns[CPUS] = {120, 110, 130};

static void run_ttl(void *arg, int cpu)
{
	struct pacer_ttl_key key = ttl_key[cpu];
	uint64_t note[EXPLORE_NOTE_WORDS] = {0};

	(void)arg;
	note[0] = pacer_ttl_raise(cells, CELLS_N - 1, key, ttl_ns[cpu]);
	note[1] = pacer_ttl_expiry_live(cells, CELLS_N - 1, key, ttl_ns[cpu] - 1);
	explore_note(note, 0);
	explore_forget();
}

/* What was raised is live from then on; nobody's cell is later than the latest of its keys. */
static const char *check_ttl(void *arg, const struct explore_note *notes, int n)
{
	int i;

	(void)arg;
	for (i = 0; i < n; i++)
		if (notes[i].word[0] &&
		    (!notes[i].word[1] ||
		     pacer_ttl_estimate(cells, CELLS_N - 1, ttl_key[notes[i].cpu]) <
			 ttl_ns[notes[i].cpu]))
			return "a key reads as expired before it is";
	return cells[0] <= 120 && cells[1] <= 130 && cells[2] <= 130 && !cells[3]
		   ? NULL
		   : "a cell is later than its keys";
}

static void explore_ttl(enum planted fault)
{
	struct explore_model model = {
	    .name = "TTL filter",
	    .cpus = 3,
	    .memory = cells,
	    .bytes = sizeof(cells),
	    .run = run_ttl,
	    .check = check_ttl,
	};

	memset(cells, 0, sizeof(cells));
	cells[1] = 115;
	plant(fault);
	explore(&model, &result);
	plant(FAULT_NONE);
	printf("  %llu states, %llu faulty\n", (unsigned long long)result.states,
	       (unsigned long long)result.faults);
}

void test_ttl_keeps_later(void **state)
{
	(void)state;
	explore_ttl(FAULT_NONE);
	assert_int_equal(result.faults, 0);
	assert_true(result.states >= 200);
}

void test_ttl_finds_plain_store(void **state)
{
	(void)state;
	explore_ttl(FAULT_TTL_PLAIN_STORE);
	assert_true(result.faults > 0);
	explore_print(stdout, &result.shortest);
	assert_string_equal(result.fault, "a key reads as expired before it is");
}
