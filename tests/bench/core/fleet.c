/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much of a fleet's limit its hosts use, and what that costs the store: user/fleet as it runs,
 * on a virtual clock, with a store that takes 2 ms for a call. So a run takes no time, and has the
 * same figures each time. Hosts use all of their shares: what a limiter's own slots cost is not in
 * it.
 *
 *   fleet            a row of JSON for each: how demand lies, and of how many hosts
 *   fleet HOSTS      so many hosts that join at once, then rest, and then one of them needs most
 *
 * It is built with room for one key alone, so that the records of many hosts are small.
 */
#include <inttypes.h>
#include <stdio.h>

#include "fleet_many.h"

#define STEP_NS	  (10 * MS) /* in which demand and use are counted */
#define SETTLE_NS (60 * S)  /* a new limit waits for its window and 20 s */
#define MOVE_NS	  (30 * S)

/* Of all packets, or of one key, which needs a lane. */
static enum lie { EVEN, SKEWED, MOVING, KEY_ALONE, KEY_SKEWED, KEY_MOVING } lie;

/* --- demand ------------------------------------------------------------------------------------
 */

/* Units a second that come to a host: twice the limit to all. */
static uint64_t twice(uint32_t i, uint64_t since_ns)
{
	bool moving = lie == MOVING || lie == KEY_MOVING;
	uint32_t heavy = moving ? since_ns / MOVE_NS % n_hosts : 0;

	if (lie == KEY_ALONE)
		return i == heavy ? 2 * LIMIT : 0;
	if (lie == EVEN || n_hosts == 1)
		return 2 * LIMIT / n_hosts;
	return i == heavy ? 2 * LIMIT * 9 / 10 : 2 * LIMIT / 10 / (n_hosts - 1);
}

static uint64_t step(uint64_t since_ns)
{
	return step_of(twice, since_ns, STEP_NS);
}

static void measure(const char *name, enum lie lies, uint32_t n)
{
	const uint64_t steps = 180 * S / STEP_NS;
	uint64_t used = 0, settled = 0, n_settled = 0, most_calls = 0, begun;

	lie = lies;
	by_key = lie >= KEY_ALONE;
	begin(n, 0);
	for (begun = now; now - begun < SETTLE_NS;)
		step(0);
	calls = 0;
	begun = now;
	for (uint64_t i = 0, before = 0; i < steps; i++) {
		uint64_t of = step(now - begun);

		used += of;
		if ((now - begun) % MOVE_NS > MOVE_NS / 2) {
			settled += of;
			n_settled++;
		}
		if (i % (S / STEP_NS) == S / STEP_NS - 1) {
			most_calls = calls - before > most_calls ? calls - before : most_calls;
			before = calls;
		}
	}
	printf("{\"part\":\"fleet\",\"name\":\"%s\",\"hosts\":%u,\"used\":%.4f,\"settled\":%.4f,"
	       "\"calls_per_s\":%.2f,\"most_calls_per_s\":%.2f}\n",
	       name, n, (double)used / steps / LIMIT, (double)settled / n_settled / LIMIT,

	       (double)calls / ((double)steps * STEP_NS / S) / n, (double)most_calls / n);
	fflush(stdout);
}

/* What many do, a second a step. */
struct many {
	uint64_t seconds, most_calls, used;
	double calls_per_s, MB_per_s;
};

/* Until `enough` of the limit is used, or for so many seconds. */
static struct many run_many(enum lie lies, uint64_t enough, uint64_t seconds)
{
	struct many m = {0};
	uint64_t before = 0;

	lie = lies;
	calls = bytes = 0;
	while (m.seconds < seconds && m.used < enough) {
		for (int i = 0; i < 20; i++)
			m.used = step_of(twice, 0, S / 20);
		m.seconds++;
		m.most_calls = calls - before > m.most_calls ? calls - before : m.most_calls;
		before = calls;
	}
	m.calls_per_s = (double)calls / (double)m.seconds / n_hosts;
	m.MB_per_s = (double)bytes / (double)m.seconds / 1e6;
	return m;
}

/* They begin within a third of a session's time. */
static void load(uint32_t n)
{
	struct many joined, rest, skewed;

	begin(n, 0);
	joined = run_many(EVEN, LIMIT, 600);
	(void)run_many(EVEN, UINT64_MAX, 60);
	rest = run_many(EVEN, UINT64_MAX, 30);
	skewed = run_many(SKEWED, LIMIT * 9 / 10, 1200);
	printf("{\"part\":\"fleet\",\"name\":\"many\",\"hosts\":%u,\"joined_s\":%" PRIu64
	       ",\"used\":%.4f,\"most_calls_per_s\":%" PRIu64
	       ",\"calls_per_s\":%.2f,\"MB_per_s\":%.3f,\"skewed_s\":%" PRIu64
	       ",\"skewed_used\":%.4f,\"skewed_calls_per_s\":%.2f,\"skewed_MB_per_s\":%.3f}\n",
	       n, joined.seconds, (double)joined.used / LIMIT, joined.most_calls, rest.calls_per_s,
	       rest.MB_per_s, skewed.seconds, (double)skewed.used / LIMIT, skewed.calls_per_s,
	       skewed.MB_per_s);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum lie lie;
	} rows[] = {{"even", EVEN},
		    {"skewed", SKEWED},
		    {"moving", MOVING},
		    {"a key, of one host", KEY_ALONE},
		    {"a key, skewed", KEY_SKEWED},
		    {"a key, moving", KEY_MOVING}};

	if (argc > 1) {
		load((uint32_t)atoi(argv[1]));
		end();
		return 0;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t n = 1; n <= 8; n *= 2)
			measure(rows[i].name, rows[i].lie, n);
	end();
	return 0;
}
