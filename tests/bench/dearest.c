/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the dearest single packets of a sampled path cost: those that are taken. Of a window of time
 * that is the first packet of each tick, which k = 64 samples take at once, and which also pays for
 * the tick's end. Of a window of packets one sample takes each.
 *
 *   dearest XDP_PACER SAMPLES
 *
 * A packet a call, by the kernel's own measure of it, with the caches as they are and with all of
 * them filled by other things before, until SAMPLES of those packets were seen. A line of JSON for
 * each case: the nanoseconds of each, and the median of packets that only count.
 */
#include "calm.h"
#include "tool.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/attached.h"

#define CACHE_BYTES (16u << 20)
#define BETWEEN	    16 /* packets from one look at the caches to the next */
#define FOUND_MAX   4096

struct kind {
	const char *name, *sample;
	bool anew; /* as after a change of policy, which the sampler notices by its id */
};

/* Ticks of 2 ms: the coarse clock's next moment is in another one. */
static const struct kind kinds[] = {
    {"by time", "{of: all, k: 64, window: 64ms}", false},
    {"by time, heads kept", "{of: all, k: 64, window: 64ms, snap: 128}", false},
    {"by time, begun anew", "{of: all, k: 64, window: 64ms}", true},
    {"by packets", "{of: all, k: 64, packets: 100}", false},
    {"by packets, heads kept", "{of: all, k: 64, packets: 100, snap: 128}", false},
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

static struct attached at[KINDS];

static void load_kind(size_t i, const char *cli)
{
	char command[700];
	struct policy_error error;

	snprintf(command, sizeof(command),
		 "ip link add p%zu type veth peer name q%zu && ip link set p%zu up && echo "
		 "'{memory: 1Mi, rules: [{name: a, limits: [{key: src, packets: 1, window: 1h}]}], "
		 "sample: %s}' | %s load p%zu -c - --direct >/dev/null",
		 i, i, i, kinds[i].sample, cli, i);
	errno = 0;
	if (system(command))
		die("the pacer that samples %s was not loaded", kinds[i].name);
	snprintf(command, sizeof(command), "p%zu", i);
	if (attached_find(command, &at[i], &error))
		die("%s", error.text);
}

/* Was a packet taken since, of a window of time by all 64 samples? It was if this has changed. */
static uint64_t turn_of(const struct attached *a, int cpu)
{
	const volatile struct pacer_sampler *s = &a->sampler[cpu];

	return s->burst.ticks + s->wor.seq;
}

static uint32_t run_one(const struct attached *a)
{
	struct bench_frame frame;
	uint8_t out[256];
	uint32_t ip_sum;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = &frame, .data_size_in = sizeof(frame),
		    .data_out = out, .data_size_out = sizeof(out), .repeat = 1);

	make_frame(&frame, BENCH_PORT, &ip_sum);
	if (bpf_prog_test_run_opts(a->prog_fd, &o))
		die("test run");
	return o.duration;
}

static void fill_caches(void)
{
	static uint8_t *other;

	if (!other)
		other = malloc(CACHE_BYTES);
	if (!other)
		die("memory");
	for (size_t i = 0; i < CACHE_BYTES; i += 64)
		((volatile uint8_t *)other)[i]++;
}

static int order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void print_found(const struct kind *kind, bool cold, double busy, uint32_t counted_ns,
			const uint32_t *dear, unsigned int n)
{
	printf("{\"part\": \"dearest\", \"name\": \"%s\", \"cold\": %s, \"busy\": [%.3f], "
	       "\"counted_ns\": %u, \"taken_ns\": [",
	       kind->name, cold ? "true" : "false", busy, counted_ns);
	for (unsigned int i = 0; i < n; i++)
		printf("%s%u", i ? ", " : "", dear[i]);
	printf("]}\n");
}

/* Returns how busy the machine was (calm.h). */
static double measure(const struct kind *kind, const struct attached *a, int cpu, bool cold,
		      unsigned int wanted, uint32_t *dear, uint32_t *counted_ns)
{
	static uint32_t cheap[FOUND_MAX];
	unsigned int n_dear = 0, n_cheap = 0;
	struct calm from, to;

	if (calm_read(&from, cpu))
		die("/proc/stat");

	for (unsigned int i = 0; n_dear < wanted; i++) {
		uint64_t before = turn_of(a, cpu);
		uint32_t ns;

		if (cold && i % BETWEEN == 0)
			fill_caches();
		a->copy[0].policy.sampling.id += kind->anew;
		ns = run_one(a);
		if (turn_of(a, cpu) != before)
			dear[n_dear++] = ns;
		else
			cheap[n_cheap++ % FOUND_MAX] = ns;
	}
	if (calm_read(&to, cpu))
		die("/proc/stat");
	n_cheap = n_cheap < FOUND_MAX ? n_cheap : FOUND_MAX;
	qsort(cheap, n_cheap, sizeof(*cheap), order);
	*counted_ns = n_cheap ? cheap[n_cheap / 2] : 0;
	return calm_busy(&from, &to, 1, cpu + 1);
}

/* Measures again where the machine was not calm. */
static void measure_calm(const struct kind *kind, const struct attached *a, int cpu, bool cold,
			 unsigned int wanted)
{
	static uint32_t dear[FOUND_MAX], best[FOUND_MAX];
	uint32_t counted_ns, best_counted_ns = 0;
	double busy = 2;

	for (int i = 0; i < calm_again() && busy > CALM_BUSY; i++) {
		double now = measure(kind, a, cpu, cold, wanted, dear, &counted_ns);

		if (now >= busy)
			continue;
		busy = now;
		best_counted_ns = counted_ns;
		memcpy(best, dear, wanted * sizeof(*best));
	}
	print_found(kind, cold, busy, best_counted_ns, best, wanted);
}

int dearest_main(int argc, char **argv)
{
	unsigned int wanted = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;

	if (!wanted || wanted > FOUND_MAX)
		die("usage: dearest XDP_PACER SAMPLES");
	if (unshare(CLONE_NEWNET))
		die("a network namespace");
	pin_alone(cpu);
	for (size_t i = 0; i < KINDS; i++)
		load_kind(i, argv[1]);
	for (size_t i = 0; i < KINDS; i++)
		for (int cold = 0; cold < 2; cold++)
			measure_calm(&kinds[i], &at[i], cpu, cold, wanted);
	return 0;
}
