/* SPDX-License-Identifier: GPL-2.0-only */
#include "tool.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void die(const char *format, ...)
{
	int err = errno;
	va_list args;

	fprintf(stderr, "bench: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, err ? ": %s\n" : "\n", strerror(err));
	exit(1);
}

uint64_t clock_ns(int clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("CPU %d", cpu);
}

void pin_alone(int cpu)
{
	struct sched_param urgent = {.sched_priority = 1};

	pin(cpu);
	(void)sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &urgent);
}

void seed(struct bench_bpf *skel)
{
	for (uint64_t i = 0; i < BENCH_CPUS; i++)
		skel->bss->cpus[i] = (struct bench_cpu){(i + 1) * 0x9e3779b97f4a7c15ull, 0};
	for (uint64_t i = 0; i < PACER_SECRETS; i++)
		skel->bss->secret[i] = (i + 1) * 0xd1342543de82ef95ull;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN && getenv("BENCH_VERBOSE") ? vfprintf(stderr, format, args) : 0;
}

struct bench_bpf *open_bench(const char *only)
{
	struct bench_bpf *skel;
	struct bpf_program *prog;

	libbpf_set_print(quiet);
	skel = bench_bpf__open();
	if (!skel)
		die("the benchmark's programs cannot be opened");
	bpf_object__for_each_program(prog,
				     skel->obj) if (only && strcmp(bpf_program__name(prog), only))
	    bpf_program__set_autoload(prog, false);
	if (only && strncmp(only, "floor", 5))
		bpf_map__set_autocreate(skel->maps.lines, false);
	if (only && strncmp(only, "set", 3))
		bpf_map__set_autocreate(skel->maps.pacer_sets, false);
	if (bench_bpf__load(skel))
		die("the benchmark's programs do not load (BENCH_VERBOSE=1 says why)");
	seed(skel);
	return skel;
}

void make_frame(struct bench_frame *frame, uint16_t port, uint32_t *ip_sum)
{
	uint16_t word[10];

	memset(frame, 0, sizeof(*frame));
	frame->eth.h_proto = htons(ETH_P_IP);
	frame->ip.version = 4;
	frame->ip.ihl = 5;
	frame->ip.tot_len = htons(sizeof(*frame) - sizeof(frame->eth));
	frame->ip.ttl = 64;
	frame->ip.protocol = 17;
	frame->ip.daddr = htonl(BENCH_DEST);
	frame->udp.source = htons(1024);
	frame->udp.dest = htons(port);
	frame->udp.len = htons(sizeof(*frame) - sizeof(frame->eth) - sizeof(frame->ip));
	memcpy(word, &frame->ip, sizeof(word));
	*ip_sum = 0;
	for (int i = 0; i < 10; i++)
		*ip_sum += ntohs(word[i]);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int, char **);
	} verbs[] = {
	    {"layers", layers_main},   {"dearest", dearest_main}, {"flood", flood_main},
	    {"stamp", stamp_main},     {"mix", mix_main},	  {"attach", attach_main},
	    {"receive", receive_main},
	};

	for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	fprintf(stderr, "usage: bench layers|dearest|flood|stamp|mix|attach|receive ...: "
			"layers.c, dearest.c and live.c say how\n");
	return 2;
}
