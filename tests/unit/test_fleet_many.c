/* SPDX-License-Identifier: GPL-2.0-only */
/* Many hosts of one limit, on a virtual clock: all have their shares in time, whatever they ask. */
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

int main(void)
{
	static const uint32_t some = 30, many = 64, most = 120;
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_prestate(a_new_limit, (void *)&some),
	    cmocka_unit_test_prestate(a_new_limit, (void *)&many),
	    cmocka_unit_test_prestate(a_new_limit, (void *)&most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
