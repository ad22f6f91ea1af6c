/* SPDX-License-Identifier: GPL-2.0-only */
/* The numbers of a policy that no clock and no kernel is needed for, against what they are of. */
#include <math.h>

#include "applied.h"
#include "ban.h"
#include "plan/figures.h"
#include "recency.h"

/* The chance of a maybe, beside how often the filter says it. */
static void test_ban_maybe(void **unused)
{
	enum { LINES = 256, RUNS = 40, ASKED = 4000 };
	static struct pacer_line lines[LINES];
	static const uint32_t keys[] = {1, 30, 128, 256, 600, 2000};
	const struct pacer_bans bans = {.sets = 1, .filter_mask = LINES - 1};
	struct pacer_table table = {lines, LINES};

	(void)unused;
	for (size_t i = 0; i < ARRAY(keys); i++) {
		double maybe = 0, chance = figures_ban_maybe(&bans, keys[i]);

		for (uint32_t run = 0; run < RUNS; run++) {
			memset(lines, 0, sizeof(lines));
			for (uint32_t k = 0; k < keys[i]; k++) {
				struct pacer_hash hash = {draw(), draw()};

				assert_true(
				    pacer_ttl_raise(pacer_ban_filter(&table, &bans, hash)->word64,
						    7, pacer_ban_cells(hash), SECOND));
			}
			for (uint32_t k = 0; k < ASKED; k++) {
				struct pacer_hash hash = {draw(), draw()};

				maybe += pacer_ban_maybe(&table, &bans, hash, 1);
			}
		}
		maybe /= RUNS * ASKED;
		if (maybe > chance + 0.01 || maybe < chance - 0.01)
			fail_msg("%u keys: %f, and said is %f", keys[i], maybe, chance);
	}
	assert_true(figures_ban_maybe(&bans, 0) < 1e-9);
}

/* The two cells, of eight, that a key raises. */
static uint32_t pair_of(uint32_t mark)
{
	struct pacer_ttl_key k = pacer_ban_cells((struct pacer_hash){.mark = mark});

	return 1u << (k.first & 7) | 1u << (k.second & 7);
}

/* The same chance, from every pair of cells: how many pairs leave one of them, or both. */
static void test_ban_maybe_of_each_pair(void **unused)
{
	const struct pacer_bans bans = {.sets = 1, .filter_mask = 63};

	(void)unused;
	for (uint32_t keys = 0; keys < 1024; keys += 31) {
		double load = keys / 64.0, maybe = 0;

		for (uint32_t mark = 0; mark < 32; mark++) {
			uint32_t of = pair_of(mark), first = of & -of, without[3] = {0};

			for (uint32_t other = 0; other < 32; other++) {
				without[0] += !(pair_of(other) & first);
				without[1] += !(pair_of(other) & of & ~first);
				without[2] += !(pair_of(other) & of);
			}
			maybe += (1 - exp(-load * (1 - without[0] / 32.0)) -
				  exp(-load * (1 - without[1] / 32.0)) +
				  exp(-load * (1 - without[2] / 32.0))) /
				 32;
		}
		assert_true(fabs(figures_ban_maybe(&bans, keys) - maybe) < 1e-9);
	}
}

/* The chance of a false delay, beside how often a sketch delays a key that it never saw. */
static void test_false_delay(void **unused)
{
	enum { LINES = 64, RUNS = 100, ASKED = 1000 };
	static const uint32_t keys[] = {0, 5, 64, 200, 700};
	static struct pacer_line lines[LINES];

	(void)unused;
	for (size_t i = 0; i < 2 * ARRAY(keys); i++) {
		struct pacer_limiter t = {.sets = LINES, .rows = 1 + i % 2};
		double delayed = 0, chance = figures_false_delay(&t, keys[i / 2]);

		for (uint32_t run = 0; run < RUNS; run++) {
			memset(lines, 0, sizeof(lines));
			for (uint32_t k = 0; k < keys[i / 2]; k++)
				pacer_recency_raise(&lines[draw() % LINES], (uint32_t)draw(),
						    t.rows, SECOND);
			for (uint32_t k = 0; k < ASKED; k++)
				delayed += pacer_recency_estimate(&lines[draw() % LINES],
								  (uint32_t)draw(), t.rows) != 0;
		}
		delayed /= RUNS * ASKED;
		if (delayed > chance + 0.01 || delayed < chance - 0.01)
			fail_msg("%u keys in %u rows: %f, and said is %f", keys[i / 2], t.rows,
				 delayed, chance);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_ban_maybe),
	    TEST(test_ban_maybe_of_each_pair),
	    TEST(test_false_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
