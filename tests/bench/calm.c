/* SPDX-License-Identifier: GPL-2.0-only */
#include "calm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int calm_again(void)
{
	const char *text = getenv("BENCH_AGAIN");
	int n = text ? atoi(text) : 0;

	return n > 0 ? n : 3;
}

static uint64_t read_clock(int clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Its process is found by its name, once. */
static int find_softirqd(int cpu, char path[64])
{
	char name[32], found[64];

	snprintf(name, sizeof(name), "ksoftirqd/%d\n", cpu);
	for (int pid = 2; pid < 4096; pid++) {
		FILE *f;

		snprintf(found, sizeof(found), "/proc/%d/comm", pid);
		f = fopen(found, "r");
		if (f && fgets(found, sizeof(found), f) && !strcmp(found, name))
			snprintf(path, 64, "/proc/%d/schedstat", pid);
		if (f)
			fclose(f);
		if (*path)
			return 0;
	}
	return -1;
}

uint64_t calm_softirqd_ns(int cpu)
{
	static char path[64];
	static int of = -1;
	unsigned long long ns = 0;
	FILE *f;

	if (of != cpu) {
		of = cpu;
		*path = 0;
		(void)find_softirqd(cpu, path);
	}
	f = *path ? fopen(path, "r") : NULL;
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	fclose(f);
	return ns;
}

int calm_read(struct calm *now, int cpu)
{
	unsigned long long user, nice, system, idle, wait, irq, softirq, stolen;
	FILE *f = fopen("/proc/stat", "r");
	int n = f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
			   &idle, &wait, &irq, &softirq, &stolen)
		  : 0;

	if (f)
		fclose(f);
	if (n != 8)
		return -1;
	now->tick_ns = 1000000000ull / sysconf(_SC_CLK_TCK);
	now->busy_ns = (user + nice + system + irq + softirq) * now->tick_ns;
	now->stolen_ns = stolen * now->tick_ns;
	now->own_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID) + calm_softirqd_ns(cpu);
	now->wall_ns = read_clock(CLOCK_MONOTONIC);
	return 0;
}

static double share(uint64_t ns, double of_ns)
{
	double part = of_ns > 0 ? (double)ns / of_ns : 1;

	return part < 1 ? part : 1;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

double calm_busy(const struct calm *from, const struct calm *to, int cpus, int of)
{
	double wall_ns = (double)(to->wall_ns - from->wall_ns);
	uint64_t own_ns = to->own_ns - from->own_ns;
	uint64_t should_ns = (to->wall_ns - from->wall_ns) * cpus;
	uint64_t busy_ns = to->busy_ns - from->busy_ns;
	/* What is told in ticks may be a tick too much for each CPU, at both ends. */
	uint64_t most_ns = own_ns + 2 * to->tick_ns * of;
	double lacked = share(should_ns > own_ns ? should_ns - own_ns : 0, wall_ns * cpus);
	double stolen = share(to->stolen_ns - from->stolen_ns, wall_ns * of);
	double others = share(busy_ns > most_ns ? busy_ns - most_ns : 0, wall_ns * of);

	return larger(lacked, larger(stolen, others));
}
