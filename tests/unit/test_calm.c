/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a measurement of the benchmark was disturbed: of times that are given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../bench/calm.h"

#define MS   1000000ull
#define TICK (10 * MS)

/* A second on a machine of two CPUs, in ms. */
static const struct {
	const char *what;
	int cpus; /* that were measured */
	uint64_t own, busy, stolen;
	double share;
} cases[] = {
    {"nobody else", 1, 1000, 1000, 0, 0},
    {"a tick too much at both ends of both CPUs is the clock's", 1, 1000, 1040, 0, 0},
    {"another has a quarter of the CPU", 1, 750, 1000, 0, 0.25},
    {"another has half of the other CPU", 1, 1000, 1540, 0, 0.25},
    {"the host took a tenth of the CPU, unseen by its clocks", 1, 1000, 1000, 200, 0.1},
    {"two CPUs are measured, and another has half of one", 2, 1500, 2000, 0, 0.25},
    {"softirqs of the measured packets on another CPU", 1, 1200, 1200, 0, 0},
    {"nothing was measured", 1, 0, 0, 0, 1},
};

static void busy_is_whatever_is_largest(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct calm from = {7 * MS, 5 * MS, 3 * TICK, 2 * TICK, TICK}, to = from;
		double share;

		to.wall_ns += 1000 * MS;
		to.own_ns += cases[i].own * MS;
		to.busy_ns += cases[i].busy * MS;
		to.stolen_ns += cases[i].stolen * MS;
		share = calm_busy(&from, &to, cases[i].cpus, 2);
		if (share < cases[i].share - 1e-9 || share > cases[i].share + 1e-9)
			fail_msg("%s: %.3f, not %.3f", cases[i].what, share, cases[i].share);
	}
}

/* Here and now: it can be read, and no clock runs back. */
static void times_are_read(void **state)
{
	struct calm from, to;
	double busy;

	(void)state;
	assert_int_equal(calm_read(&from, 0), 0);
	do
		assert_int_equal(calm_read(&to, 0), 0);
	while (to.wall_ns - from.wall_ns < 5 * MS);
	assert_true(to.own_ns >= from.own_ns && to.busy_ns >= from.busy_ns);
	busy = calm_busy(&from, &to, 1, 1);
	assert_true(busy >= 0 && busy <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(busy_is_whatever_is_largest),
	    cmocka_unit_test(times_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
