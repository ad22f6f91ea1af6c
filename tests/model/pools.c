/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "scenario.h"
#include "pool.h"
#include "pools.h"

#define TARGETS 2u
#define CALLS	4
#define SEEN	PACER_THROTTLE_BLOCK /* buckets that are touched, beside the last */
#define FAR	100000u

struct pool_scenario {
	const char *name;
	struct pacer_throttle_params each;
	uint64_t before_ns[CPUS];     /* a call of each before they start; 0: none */
	uint64_t now_ns[CPUS][CALLS]; /* at once; 0 ends a list */
	enum planted fault;
	const char *finds;
};

static union {
	struct pacer_pool_state pool;
	uint8_t bytes[sizeof(struct pacer_pool_state) + TARGETS * sizeof(struct pacer_pool_target)];
} memory;

static struct {
	const struct pool_scenario *scenario;
	struct pacer_throttle_profile each;
	struct pacer_pool_lease lease[CPUS]; /* as they start with */
	struct explore_note
	    note[CPUS + EXPLORE_NOTES_MAX]; /* of what was before, then of the CPUs */
	int before;
	unsigned int most, smallest; /* uses in all */
} p;

static struct explore_result result;

/* What a call came to, and all that the CPU's lease is from then on. */
struct call {
	uint64_t result, target, seen_ns, left, until_ns, bucket, resume_ns, unused;
};

_Static_assert(sizeof(struct call) == EXPLORE_NOTE_WORDS * sizeof(uint64_t), "a note's words");

static struct call next(struct pacer_pool_lease *lease, uint64_t now_ns)
{
	struct call call = {0};

	call.result = pacer_pool_next(&p.each, TARGETS, &memory.pool, lease, now_ns);
	call.target = lease->target;
	call.seen_ns = lease->lease.seen_ns;
	call.left = lease->lease.left;
	call.until_ns = lease->lease.until_ns;
	call.bucket = lease->lease.bucket;
	call.resume_ns = lease->resume_ns;
	return call;
}

static void run(void *arg, int cpu)
{
	struct pacer_pool_lease lease = p.lease[cpu];

	(void)arg;
	for (int i = 0; i < CALLS && p.scenario->now_ns[cpu][i]; i++) {
		struct call call = next(&lease, p.scenario->now_ns[cpu][i]);

		explore_note((const uint64_t *)&call, 0);
		explore_forget();
	}
}

static void run_before(void)
{
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct call call;

		if (!p.scenario->before_ns[cpu])
			continue;
		call = next(&p.lease[cpu], p.scenario->before_ns[cpu]);
		memcpy(p.note[p.before++].word, &call, sizeof(call));
	}
}

/* The uses of a target in (t - cooldown, t] of the latest of them. */
static unsigned int uses(const struct explore_note *notes, int n, uint64_t target, uint64_t t)
{
	unsigned int sum = 0;

	for (int i = 0; i < n; i++) {
		const struct call *call = (const struct call *)notes[i].word;

		sum += call->result == PACER_THROTTLE_ADMIT && call->target == target &&
		       call->seen_ns <= t && t - call->seen_ns < p.each.cooldown_ns;
	}
	return sum;
}

static const char *check(void *arg, const struct explore_note *notes, int n)
{
	struct pacer_pool_lease lease = {0};
	unsigned int all = 0;

	(void)arg;
	memcpy(p.note + p.before, notes, (size_t)n * sizeof(*notes));
	n += p.before;
	for (int i = 0; i < n; i++) {
		const struct call *call = (const struct call *)p.note[i].word;

		if (call->result != PACER_THROTTLE_ADMIT)
			continue;
		all++;
		if (uses(p.note, n, call->target, call->seen_ns) > p.each.limit)
			return "a target got too many";
	}
	p.most = all > p.most ? all : p.most;
	p.smallest = all < p.smallest ? all : p.smallest;
	for (unsigned int i = 0; i < TARGETS * p.each.limit; i++)
		if (pacer_pool_next(&p.each, TARGETS, &memory.pool, &lease, FAR) !=
		    PACER_THROTTLE_ADMIT)
			return "uses have been lost";
	if (pacer_pool_next(&p.each, TARGETS, &memory.pool, &lease, FAR) != PACER_THROTTLE_FULL)
		return "there are uses too many";
	return NULL;
}

static void follow(const struct pool_scenario *scenario)
{
	static const struct explore_span spans[] = {
#define OF_TARGET(i)                                                       \
	{offsetof(struct pacer_pool_state, target[i]),                     \
	 offsetof(struct pacer_throttle_state, bucket[SEEN])},             \
	    {offsetof(struct pacer_pool_state,                             \
		      target[i].throttle.bucket[PACER_THROTTLE_RING - 1]), \
	     sizeof(struct pacer_throttle_bucket)}
	    {0, sizeof(struct pacer_pool_state)},
	    OF_TARGET(0),
	    OF_TARGET(1),
	    {0, 0},
	};
	struct explore_model model = {
	    .name = scenario->name,
	    .cpus = scenario->now_ns[2][0] ? 3 : 2,
	    .memory = &memory,
	    .bytes = sizeof(memory),
	    .spans = spans,
	    .run = run,
	    .check = check,
	};

	memset(&memory, 0, sizeof(memory));
	memset(&p, 0, sizeof(p));
	p.scenario = scenario;
	p.smallest = ~0u;
	assert_int_equal(pacer_throttle_configure(&p.each, &scenario->each), PACER_THROTTLE_OK);
	plant(scenario->fault);
	run_before();
	explore(&model, &result);
	plant(FAULT_NONE);
	printf("  %s: %llu states, ", scenario->name, (unsigned long long)result.states);
	if (result.faults)
		printf("%llu faulty: %s\n", (unsigned long long)result.faults, result.fault);
	else
		printf("%u to %u uses\n", p.smallest, p.most);
}

void test_pool_interleavings(void **state)
{
	/* limit, threshold, cpus, lease, cooldown, max_cooldown, lease_ns, resolution */
	static const struct pool_scenario sound[] = {
	    {"one use each", {1, 1, 2, 1, 100, 200, 0, 0}, {0}, {{1000, 1100}, {1001}}, 0, 0},
	    {"leases", {2, 2, 2, 2, 100, 200, 20, 0}, {0}, {{1000, 1010}, {1005}}, 0, 0},
	    {"a rest is handed back",
	     {2, 2, 2, 2, 100, 200, 20, 0},
	     {1000},
	     {{1030}, {1035}},
	     0,
	     0},
	    {"two rests", {2, 2, 2, 2, 100, 200, 20, 0}, {1000, 1001}, {{1030}, {1035}}, 0, 0},
	    {"a rest comes late",
	     {2, 2, 2, 2, 100, 150, 20, 0},
	     {1000, 1001},
	     {{1121}, {1120}},
	     0,
	     0},
	    {"clocks apart", {2, 2, 2, 2, 100, 200, 20, 0}, {1000, 1001}, {{1030}, {1121}}, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sound) / sizeof(*sound); i++) {
		follow(&sound[i]);
		if (result.faults)
			explore_print(stdout, &result.shortest);
		assert_int_equal(result.faults, 0);
		fflush(stdout);
		assert_true(result.states > 100);
	}
}

void test_pool_finds_faults(void **state)
{
	static const struct pool_scenario faulty[] = {
	    {"handed back to the other target",
	     {2, 2, 2, 2, 100, 200, 20, 0},
	     {1000, 1001},
	     {{1030}, {1005}},
	     FAULT_POOL_TO_OTHER,
	     "a target got too many"},
	    {"handed back without a claim",
	     {3, 3, 2, 2, 100, 200, 20, 0},
	     {1000, 1001},
	     {{1030}, {1030}},
	     FAULT_POOL_UNLOCKED,
	     "uses have been lost"},
	    {"used after its end",
	     {2, 2, 2, 2, 100, 200, 20, 0},
	     {1000},
	     {{1130}, {1121, 1122, 1123, 1124}},
	     FAULT_POOL_NO_END,
	     "a target got too many"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faulty) / sizeof(*faulty); i++) {
		follow(&faulty[i]);
		assert_true(result.faults > 0);
		assert_string_equal(result.fault, faulty[i].finds);
	}
}
