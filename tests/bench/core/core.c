/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * core: what a packet costs the core in user space, as replay runs it: asked for ahead, parse,
 * allow-list, classify, pace; reading aside. Frames of changing source and time, on one thread.
 *
 *	core ROUNDS MS		a line of JSON for each case, with the ns of each round
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calm.h"
#include "offline/capture.h"

#define BATCH	    4096u
#define ROUNDS_MAX  99
#define STEP_NS	    64u /* between two packets */
#define SADDR_AT    26
#define START_NS    1000000000000000000ull
#define FRAME_BYTES 64
#define NETWORK	    0x0a000000u /* 10.0.0.0/8 */

static const struct {
	const char *name, *limits;
} cases[] = {
    {"refused, gap and window",
     "{key: src, gap: 1h}, {key: src, packets: 1, window: 1h, slots: 10}"},
    {"admitted, window", "{key: src, packets: 2147483647, window: 1s, slots: 10}"},
    {"admitted, gap and window",
     "{key: src, gap: 1ns}, {key: src, packets: 2147483647, window: 1s, slots: 10}"},
};

static const uint32_t sizes[] = {1u << 10, 1u << 16, 1u << 20};

struct bench {
	struct policy *policy;
	struct pacer_policy *bin;
	struct plan *plan;
	struct replay *replay;
	uint8_t data[CAPTURE_AHEAD][FRAME_BYTES];
	struct replay_frame frame[CAPTURE_AHEAD];
	uint64_t time_ns;
	uint32_t sources, random;
	uint64_t denied, judged;
};

static void die(const char *what)
{
	fprintf(stderr, "core: %s\n", what);
	exit(1);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* IPv4, UDP, of 64 bytes. */
static void make_frame(struct bench *b)
{
	static const uint8_t head[] = {2,    0, 0,   0,	 0, 1, 2, 0, 0,	 0,  0, 2,  8,	0,
				       0x45, 0, 0,   50, 0, 1, 0, 0, 64, 17, 0, 0,  10, 0,
				       0,    0, 198, 18, 0, 1, 4, 0, 0,	 53, 0, 30, 0,	0};

	b->time_ns = START_NS;
	for (uint32_t i = 0; i < CAPTURE_AHEAD; i++) {
		memcpy(b->data[i], head, sizeof(head));
		b->frame[i] = (struct replay_frame){b->data[i], FRAME_BYTES, FRAME_BYTES, 0, 0};
	}
}

static void open_bench(struct bench *b, const char *limits, uint32_t sources)
{
	struct compile_host host = {.now_ns = 1, .cpus = 1};
	struct policy_error error = {0};
	char text[512];
	int len =
	    snprintf(text, sizeof(text), "memory: 256Mi\nrules: [{name: a, limits: [%s]}]", limits);

	*b = (struct bench){.sources = sources, .random = 1};
	b->policy = policy_parse(text, len, &error);
	b->bin = calloc(1, sizeof(*b->bin));
	b->plan = calloc(1, sizeof(*b->plan));
	if (!b->policy || !b->bin || !b->plan ||
	    compile_policy(b->policy, NULL, &host, b->bin, b->plan, &error))
		die(error.text);
	b->replay = replay_open(b->policy, b->bin, b->plan->lines, false, &error);
	if (!b->replay)
		die(error.text);
	make_frame(b);
}

static void close_bench(struct bench *b)
{
	replay_close(b->replay);
	policy_free(b->policy);
	free(b->bin);
	free(b->plan);
}

/* The frame that is the n-th from now, from this source. */
static void read_ahead(struct bench *b, uint32_t n, uint32_t source)
{
	struct replay_frame *frame = &b->frame[n % CAPTURE_AHEAD];

	/* In one store, as the parser loads it: see bench.bpf.c. */
	source = htonl(NETWORK | source);
	memcpy(b->data[n % CAPTURE_AHEAD] + SADDR_AT, &source, sizeof(source));
	b->time_ns += STEP_NS;
	frame->time_ns = frame->now_ns = b->time_ns;
	replay_ahead(b->replay, frame);
}

static void judge(struct bench *b, uint32_t n)
{
	struct policy_error error;
	struct replay_judged judged;

	(void)replay_judge(b->replay, &b->frame[n % CAPTURE_AHEAD], &judged, &error);
	b->denied += pacer_outcome_reason(judged.outcome) != PACER_ADMIT;
	b->judged++;
}

/* Every source once: its record is there, and what is to be refused will be. */
static void warm(struct bench *b)
{
	for (uint32_t i = 0; i < b->sources; i++) {
		read_ahead(b, i, i);
		judge(b, i);
	}
	b->denied = b->judged = 0;
}

static uint32_t random_source(struct bench *b)
{
	b->random = b->random * 1664525u + 1013904223u;
	return b->random >> 8 & (b->sources - 1);
}

static double round_ns(struct bench *b, uint64_t ms)
{
	uint64_t from_ns = cpu_ns(), passed_ns, n = 0;

	do {
		for (uint32_t i = 0; i < BATCH + CAPTURE_AHEAD; i++) {
			if (i >= CAPTURE_AHEAD)
				judge(b, i);
			if (i < BATCH)
				read_ahead(b, i, random_source(b));
		}
		n += BATCH;
		passed_ns = cpu_ns() - from_ns;
	} while (passed_ns < ms * 1000000);
	return (double)passed_ns / (double)n;
}

/* The same, and again where the machine was not calm. *busy: calm.h. */
static double round_calm(struct bench *b, uint64_t ms, double *busy)
{
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	double best = 0;

	*busy = 2;
	for (int i = 0; i < calm_again() && *busy > CALM_BUSY; i++) {
		struct calm from, to;
		double ns, share;

		if (calm_read(&from, cpu))
			die("/proc/stat");
		ns = round_ns(b, ms);
		if (calm_read(&to, cpu))
			die("/proc/stat");
		share = calm_busy(&from, &to, 1, cpu + 1);
		if (share < *busy) {
			*busy = share;
			best = ns;
		}
	}
	return best;
}

static void run(uint32_t at, uint32_t sources, int rounds, uint64_t ms)
{
	double busy[ROUNDS_MAX];
	struct bench b;

	open_bench(&b, cases[at].limits, sources);
	warm(&b);
	printf("{\"part\": \"core\", \"name\": \"%s\", \"sources\": %u, \"cpus\": 1, \"ns\": [",
	       cases[at].name, sources);
	for (int i = 0; i < rounds; i++)
		printf("%s%.2f", i ? ", " : "", round_calm(&b, ms, &busy[i]));
	printf("], \"busy\": [");
	for (int i = 0; i < rounds; i++)
		printf("%s%.3f", i ? ", " : "", busy[i]);
	printf("], \"admitted\": %.6f}\n", 1 - (double)b.denied / (double)b.judged);
	close_bench(&b);
}

/* To the last CPU, where the other parts are measured, too. */
static void pin(void)
{
	struct sched_param urgent = {.sched_priority = 1};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("its CPU is not to be had");
	/* Nobody else gets it, but for a twentieth that the kernel keeps for others. Where it may.
	 */
	(void)sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &urgent);
}

int main(int argc, char **argv)
{
	int rounds = argc == 3 ? atoi(argv[1]) : 0;
	int ms = argc == 3 ? atoi(argv[2]) : 0;

	if (rounds < 1 || rounds > ROUNDS_MAX || ms < 1) {
		fprintf(stderr, "usage: core ROUNDS MS\n");
		return 2;
	}
	pin();
	for (uint32_t c = 0; c < sizeof(cases) / sizeof(*cases); c++)
		for (uint32_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
			run(c, sizes[s], rounds, ms);
	return 0;
}
