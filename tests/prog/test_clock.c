/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The coarse clock as packets read it, on every CPU: never ahead of the exact one, not behind the
 * kernel's coarse one, which tells when the tick began, one time for all of a tick, and not
 * backwards. The kernel counts the tick just before it sets its coarse clock: hence half a tick.
 * While a policy is on trial, it is not behind at all. And a packet is sampled by the clock of the
 * policy in force.
 */
#include <sched.h>

#include "prog.h"

#include "built.h"
#include "pacer.skel.h"

#define TICKS	  12   /* that each CPU has to show the time of */
#define TICKS_MAX 5000 /* ... within so many, however rarely this runs on a busy machine */
#define LINES	  1024u

static struct prog prog;
static struct pacer_sampler *samplers; /* of each CPU */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static uint64_t tick_ns(void)
{
	struct timespec ts;

	clock_getres(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_nsec;
}

/* When the packet came that was admitted last: its time is in a sketch. */
static uint64_t newest_ns(void)
{
	uint64_t newest = 0;

	for (uint32_t i = 0; i < LINES; i++)
		for (uint32_t k = 0; k < PACER_CELLS; k++)
			newest = pacer_later(newest, prog.lines[i].cell[k]);
	return newest;
}

/* Is a packet of this source let through? Else its cells are other sources'. */
static int admitted(uint32_t source)
{
	const struct recipe r = {
	    .family = 4, .proto = 17, .saddr = {source}, .daddr = {1}, .payload = 20};
	struct frame f;

	frame_build(&f, &r);
	return prog_run(&prog, f.b, f.n) == XDP_PASS;
}

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void look_at(int cpu)
{
	uint64_t first = clock_ns(CLOCK_MONOTONIC_COARSE), before, after = first, at, last = 0,
		 times = 0;
	uint32_t source = 1;

	on_cpu(cpu);
	prog_policy(&prog, "rules: [{name: a, limits: [{key: src, gap: 1s}]}]");
	assert_false(prog.copy[0].policy.flags & PACER_CLOCK_EXACT);
	do {
		before = clock_ns(CLOCK_MONOTONIC_COARSE);
		if (!admitted(source++))
			continue;
		after = clock_ns(CLOCK_MONOTONIC);
		at = newest_ns();
		assert_in_range(at, before - tick_ns() / 2, after);
		assert_in_range(at, last, after);
		times += at != last;
		last = at;
	} while (times < TICKS && before - first < TICKS_MAX * tick_ns());
	assert_in_range(times, TICKS, (after - first) / tick_ns() + 2);
}

static void of_every_cpu(void **unused)
{
	cpu_set_t all;

	(void)unused;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all))
			look_at(cpu);
}

#define PAIRS 100

/*
 * A trial gives way by the exact clock, and so the limits that begin then have to be judged by a
 * time that is no earlier: the coarse clock's, too, also where the tick has begun before.
 */
static void exact_as_a_trial_ends(void **unused)
{
	uint32_t source = 1;
	int let_through = 0;

	(void)unused;
	on_cpu(sched_getcpu());
	prog_policy(&prog, "clock: coarse\nrules: [{name: a, limits: [{key: src, gap: 1s}]}]");
	prog_compile(&prog, "clock: coarse\nrules: [{name: a, verdict: drop}]",
		     &prog.copy[1].policy);
	for (int i = 0; i < PAIRS; i++) {
		uint64_t end_ns;

		prog.control->in_force = 0;
		(void)admitted(source++);
		end_ns = clock_ns(CLOCK_MONOTONIC);
		prog.control->in_force = end_ns << 1 | 1;
		if (!admitted(source++)) /* its cells are other sources' */
			continue;
		let_through++;
		assert_in_range(newest_ns(), end_ns, clock_ns(CLOCK_MONOTONIC));
	}
	prog.control->in_force = 0;
	assert_true(let_through > PAIRS / 2);
}

/* Is a packet taken that comes a sampler's tick after the last one, or later? By an exact clock. */
static bool is_taken_later(uint64_t tick_ns)
{
	const struct pacer_sampler *s = &samplers[sched_getcpu()];
	uint64_t from_ns = clock_ns(CLOCK_MONOTONIC);
	uint32_t seq = s->seq;

	while (clock_ns(CLOCK_MONOTONIC) < from_ns + tick_ns)
		;
	(void)admitted(1);
	return s->seq != seq;
}

/* The other copy of the policy asks the coarse clock, by which many packets are of one time. */
static void sampled_by_the_clock_in_force(void **unused)
{
#define SAMPLED                                                                                 \
	"sample: {of: all, k: 1, window: 1ms}\nrules: [{name: a, limits: [{key: src, packets: " \
	"1, window: 1h}]}]\n"
	struct pacer_policy *second = &prog.copy[1].policy;

	(void)unused;
	on_cpu(sched_getcpu());
	prog_policy(&prog, "clock: coarse\n" SAMPLED);
	assert_false(prog.copy[0].policy.flags & PACER_CLOCK_EXACT);
	prog_compile(&prog, "clock: exact\n" SAMPLED, second);
	second->sampling.id = 7;
	pacer_short_arm(second, prog.control, 1);
	prog.control->in_force = 1;
	(void)admitted(1);
	for (int i = 0; i < PAIRS; i++)
		assert_true(is_taken_later(1ull << second->sampling.tick_shift));
	prog.control->in_force = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(of_every_cpu),
	    cmocka_unit_test(exact_as_a_trial_ends),
	    cmocka_unit_test(sampled_by_the_clock_in_force),
	};
	struct pacer_heads *heads;
	struct pacer_bpf *skel;
	int failed;

	libbpf_set_print(prog_print);
	skel = pacer_bpf__open();
	assert_non_null(skel);
	assert_int_equal(built_samples(skel->obj, libbpf_num_possible_cpus(), &samplers, &heads),
			 0);
	prog_load(&prog, skel->obj, LINES);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	pacer_bpf__destroy(skel);
	return failed;
}
