/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capacity: how much of its capacity a throttle reaches, by the burstiness of the requests and the
 * thresholds that its buckets are set aside by: the open question of "Key usage throttler". The
 * core itself (common/throttle.h) is driven.
 *
 * The article's case: 500 uses, each free again after 10 minutes, and 20 buckets, divided between
 * thresholds of time and of uses. Requests come in bursts, all of a burst at once; their sizes are
 * geometric about a mean, the bursts a Poisson process, so that the mean demand is a given share of
 * the capacity. What is refused is lost. Printed is a line for each demand, mean burst and kind:
 * the share that was used of `limit` uses a cooldown, and of what an exact account would admit.
 *
 *	capacity [COOLDOWNS]	how many cooldowns each figure is the mean of [4000]
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sample.h"
#include "throttle.h"

#define LIMIT	 500u
#define COOLDOWN 600000000000ull /* 10 min */
#define BUCKETS	 20u
#define WARM_UP	 5u /* cooldowns that are not counted */

/* Of the 20 buckets, one at least is for each requirement, which one alone leaves it without. */
static const struct kind {
	const char *name;
	uint32_t by_time; /* buckets; the rest are by uses */
} kinds[] = {
    {"time", BUCKETS - 1},
    {"both", BUCKETS / 2},
    {"uses", 1},
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* Uses that have not cooled down, each with its time: the truth. */
struct exact {
	uint64_t time_ns[LIMIT];
	uint32_t head, n;
};

static uint64_t wait_ns(struct pacer_sample_rng *rng, double mean_ns)
{
	double u = ((double)(pacer_sample_random(rng) >> 11) + 1) / 9007199254740993.0;

	return (uint64_t)(-log(u) * mean_ns);
}

/* 1 or more, of this mean. */
static uint32_t draw_size(struct pacer_sample_rng *rng, uint32_t mean)
{
	uint64_t size = mean == 1 ? 1 : 1 + wait_ns(rng, -1 / log(1 - 1.0 / mean));

	return size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

static int exact_use(struct exact *e, uint64_t now_ns)
{
	while (e->n && now_ns - e->time_ns[e->head] >= COOLDOWN) {
		e->head = (e->head + 1) % LIMIT;
		e->n--;
	}
	if (e->n == LIMIT)
		return 0;
	e->time_ns[(e->head + e->n++) % LIMIT] = now_ns;
	return 1;
}

static void configure(struct pacer_throttle_profile *profile, const struct kind *kind)
{
	uint32_t by_uses = BUCKETS - kind->by_time;
	struct pacer_throttle_params params = {
	    .limit = LIMIT,
	    .threshold = (LIMIT + by_uses - 1) / by_uses,
	    .cpus = 1,
	    .lease = 1,
	    .cooldown_ns = COOLDOWN,
	    .max_cooldown_ns = kind->by_time == 1
				   ? UINT64_MAX
				   : COOLDOWN + (COOLDOWN + kind->by_time - 1) / kind->by_time,
	};

	if (pacer_throttle_configure(profile, &params) != PACER_THROTTLE_OK ||
	    profile->buckets > BUCKETS) {
		fprintf(stderr, "capacity: %s: not 20 buckets\n", kind->name);
		exit(1);
	}
}

/* Uses that were admitted: by each kind, and last by the exact account. */
static void run(uint32_t burst, double demand, uint32_t cooldowns, uint64_t used[KINDS + 1])
{
	static struct pacer_throttle_state state[KINDS];
	struct pacer_throttle_profile profile[KINDS];
	struct exact exact = {.n = 0};
	struct pacer_sample_rng seed = {burst};
	uint64_t from_ns = WARM_UP * COOLDOWN, now_ns = 1;
	uint64_t to_ns = from_ns + cooldowns * COOLDOWN;
	double mean_ns = (double)COOLDOWN * burst / (LIMIT * demand);

	for (size_t k = 0; k < KINDS; k++) {
		state[k] = (struct pacer_throttle_state){0};
		configure(&profile[k], &kinds[k]);
	}
	for (; now_ns < to_ns; now_ns += wait_ns(&seed, mean_ns))
		for (uint32_t i = draw_size(&seed, burst); i; i--) {
			bool counts = now_ns >= from_ns;

			for (size_t k = 0; k < KINDS; k++)
				used[k] += (pacer_throttle_use(&profile[k], &state[k], now_ns, 1) ==
					    PACER_THROTTLE_ADMIT) &
					   counts;
			used[KINDS] += exact_use(&exact, now_ns) & counts;
		}
}

int main(int argc, char **argv)
{
	static const uint32_t bursts[] = {1,  2,  3,  5,   7,	10,  14,  20, 28,
					  40, 57, 80, 113, 160, 226, 320, 500};
	static const double demands[] = {1.0, 2.0};
	uint32_t cooldowns = argc > 1 ? strtoul(argv[1], NULL, 10) : 4000;

	if (!cooldowns) {
		fprintf(stderr, "usage: capacity [COOLDOWNS]\n");
		return 2;
	}
	printf("demand,burst,kind,of_capacity,of_exact\n");
	for (size_t d = 0; d < sizeof(demands) / sizeof(*demands); d++)
		for (size_t b = 0; b < sizeof(bursts) / sizeof(*bursts); b++) {
			uint64_t used[KINDS + 1] = {0};

			run(bursts[b], demands[d], cooldowns, used);
			for (size_t k = 0; k <= KINDS; k++)
				printf("%.1f,%u,%s,%.5f,%.5f\n", demands[d], bursts[b],
				       k < KINDS ? kinds[k].name : "exact",
				       (double)used[k] / ((double)LIMIT * cooldowns),
				       (double)used[k] / (double)used[KINDS]);
		}
	return 0;
}
