/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packet path in layers, by BPF_PROG_TEST_RUN: what a packet costs, over how many sources,
 * under which policy, on one CPU and on two.
 *
 * Pacers are put on interfaces of a network namespace of this process by the CLI itself, and their
 * programs are taken from there. Each figure is thread CPU time over many runs in one call; cases
 * take turns, so that what disturbs one round disturbs all of them.
 *
 *   layers XDP_PACER ROUNDS MILLISECONDS SOURCES_MAX
 *
 * A line of JSON for each case: its nanoseconds a packet, one figure a round, and the share of
 * packets that the pacer admitted.
 */
#include "calm.h"
#include "tool.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "live/attached.h"

#define CASES_MAX  128
#define ROUNDS_MAX 64
#define CPUS_MAX   2
#define REWARM_MAX 65536u /* sources that may be found in a cache again */
#define K	   1024u
#define M	   (1024u * 1024u)

/* A pacer under one policy. */
struct pacer {
	const char *name;    /* of the policy, in the tables */
	const char *memory;  /* as written in the policy */
	const char *options; /* further top-level lines */
	const char *rule;    /* its lines below its name and match */
	unsigned int rules;  /* the packet falls under the last; 0: one, without a match */
	uint32_t only;	     /* for this many sources; 0: for fewer than 16 M */
	bool two_cpus;	     /* measured on two CPUs, too */
	struct attached at;
};

#define ADDED	     "parse, one atomic addition, all on one line"
#define LIMITS(list) "limits: [" list "]"
#define NEVER	     "{key: src, packets: 2000000000, window: 1s, slots: 10}"
#define REFUSE	     LIMITS("{key: src, gap: 30m}, {key: src, packets: 1, window: 1h, slots: 10}")
#define NARROW	     "{key: src, packets: 255, window: 1s, slots: 10}" /* enough for 1 M sources */
#define ADMIT	     LIMITS(NEVER)
#define BAN(ttl)     "\n    ban: " ttl
#define OVER_POOL    "\n    over: pool p"
#define POOL(each)   "pools: [{name: p, targets: [lo, p0], " each "}]"

/* The policy's sample; none of the packets is admitted. */
#define SAMPLE(of, window) "sample: {of: " of ", k: 64, " window "}"

/* Refused: a source has one packet an hour, and has had it. Admitted: never near the limit. */
static struct pacer pacers[] = {
    {"refused, gap and window", "64Mi", "", REFUSE, 0, 0, true, {}},
    {"refused, gap alone", "64Mi", "", LIMITS("{key: src, gap: 30m}"), 0, 0, false, {}},
    {"refused, window alone",
     "64Mi",
     "",
     LIMITS("{key: src, packets: 1, window: 1h, slots: 10}"),
     0,
     0,
     false,
     {}},
    {"refused, exact clock", "64Mi", "clock: exact", REFUSE, 0, 0, false, {}},
    {"admitted, window", "64Mi", "", ADMIT, 0, 0, true, {}},
    {"admitted, narrow window", "64Mi", "", LIMITS(NARROW), 0, M, false, {}},
    {"admitted, gap of 1 ns and window, exact clock",
     "64Mi",
     "clock: exact",
     LIMITS("{key: src, gap: 1ns}, " NEVER),
     0,
     0,
     false,
     {}},
    {"refused, gap and window", "160Mi", "", REFUSE, 0, M, false, {}},
    {"admitted, window", "160Mi", "", ADMIT, 0, M, false, {}},
    {"refused, gap and window", "64Mi", "", REFUSE, 0, 16 * M, false, {}},
    {"admitted, window", "64Mi", "", ADMIT, 0, 16 * M, false, {}},
    {"refused, gap and window", "2560Mi", "", REFUSE, 0, 16 * M, false, {}},
    {"admitted, window", "2560Mi", "", ADMIT, 0, 16 * M, false, {}},
    {"not sampled", "64Mi", "", REFUSE, 0, K, false, {}},
    {"sampling others", "64Mi", SAMPLE("admitted", "window: 60s"), REFUSE, 0, K, false, {}},
    {"sampled by time", "64Mi", SAMPLE("all", "window: 60s"), REFUSE, 0, K, false, {}},
    {"sampled without replacement", "64Mi", SAMPLE("all", "packets: 10M"), REFUSE, 0, K, false, {}},
    {"sampled by time, heads kept",
     "64Mi",
     SAMPLE("all", "window: 60s, snap: 128"),
     REFUSE,
     0,
     K,
     false,
     {}},
    {"admitted, throttle",
     "8Mi",
     "",
     LIMITS(
	 "{key: all, uses: 2000000000, cooldown: 1s, max_cooldown: 1100ms, threshold: 20000000}"),
     0,
     1,
     true,
     {}},
    {"refused, throttle", "8Mi", "", LIMITS("{key: all, uses: 1, cooldown: 1h}"), 0, 1, true, {}},
    {"admitted, nobody banned", "64Mi", "", ADMIT BAN("1h"), 0, 0, false, {}},
    {"admitted, nobody banned, no filter", "64Mi", "", ADMIT BAN("1h"), 0, 0, false, {}},
    {"refused, banned", "8Mi", "", REFUSE BAN("1h"), 0, K, false, {}},
    {"refused, pool spent",
     "8Mi",
     POOL("each: 1, cooldown: 1h"),
     REFUSE OVER_POOL,
     0,
     K,
     false,
     {}},
    {"refused, redirected",
     "8Mi",
     POOL("each: 1000000000, cooldown: 1s, max_cooldown: 1100ms, threshold: 20000000"),
     REFUSE OVER_POOL,
     0,
     K,
     false,
     {}},
    {"refused, rules", "64Mi", "", REFUSE, 1, K, false, {}},
    {"refused, rules", "64Mi", "", REFUSE, 8, K, false, {}},
    {"refused, rules", "64Mi", "", REFUSE, 64, K, false, {}},
};

#define PACERS (sizeof(pacers) / sizeof(*pacers))

struct test {
	const char *name;
	const struct pacer *pacer; /* NULL: a layer */
	int prog_fd;
	uint32_t sources;
	int cpus;
	uint64_t repeat;			 /* of one measurement */
	double ns[ROUNDS_MAX], busy[ROUNDS_MAX]; /* calm.h */
	uint64_t packets, admitted;
};

static struct test tests[CASES_MAX];
static size_t n_tests;
static struct bench_bpf *bench;
static int n_cpus;

/* --- pacers --------------------------------------------------------------------------------- */

static void write_policy(FILE *f, const struct pacer *p)
{
	fprintf(f, "memory: %s\n%s\nrules:\n", p->memory, p->options);
	for (unsigned int i = 0; i + 1 < p->rules; i++)
		fprintf(f,
			"  - name: other%u\n    match: {src: 10.0.0.0/8, proto: udp, dport: %u}\n"
			"    limits: [{key: src, packets: 1, window: 1h, entries: 1000}]\n",
			i, BENCH_PORT + 1 + i);
	fprintf(f, "  - name: bench\n");
	if (p->rules)
		fprintf(f, "    match: {src: 10.0.0.0/8, proto: udp, dport: %u}\n", BENCH_PORT);
	fprintf(f, "    %s\n", p->rule);
}

/* Cells that never expire: the exact table is asked for every packet. */
static void fill_filter(struct attached *at)
{
	const struct pacer_bans *bans = &at->copy[0].policy.bans;

	for (uint32_t i = 0; i <= bans->filter_mask; i++)
		memset(at->lines[bans->filter + i].word64, 0xff, sizeof(struct pacer_line));
}

/* Put it on an interface of its own. */
static void load_pacer(struct pacer *p, size_t i, const char *cli)
{
	char path[] = "/tmp/pacer-bench-XXXXXX", command[400];
	struct policy_error error;
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f)
		die("%s", path);
	write_policy(f, p);
	fclose(f);
	snprintf(command, sizeof(command),
		 "ip link set lo up && "
		 "ip link add p%zu type veth peer name q%zu && ip link set p%zu up && "
		 "%s load p%zu -c %s --direct >/dev/null",
		 i, i, i, cli, i, path);
	errno = 0;
	if (system(command))
		die("the pacer with the policy \"%s\" was not loaded", p->name);
	unlink(path);
	snprintf(command, sizeof(command), "p%zu", i);
	if (attached_find(command, &p->at, &error))
		die("%s", error.text);
	if (strstr(p->name, "no filter"))
		fill_filter(&p->at);
}

/* Packets that the pacer admitted, and all that it judged. */
static void read_counts(const struct pacer *p, uint64_t *admitted, uint64_t *all)
{
	static struct pacer_counters counters[BENCH_CPUS * 16];
	int n = libbpf_num_possible_cpus();

	*admitted = *all = 0;
	for (uint32_t slot = 0; slot < PACER_COUNTERS_MAX; slot++) {
		if (bpf_map_lookup_elem(p->at.counts_fd, &slot, counters))
			die("counters");
		for (int cpu = 0; cpu < n; cpu++) {
			for (int r = 0; r < PACER_REASON_COUNT; r++)
				*all += counters[cpu].by[r].packets;
			*admitted += counters[cpu].by[PACER_ADMIT].packets;
		}
	}
}

/* --- running -------------------------------------------------------------------------------- */

struct thread {
	int cpu;
	uint64_t repeat;
	pthread_barrier_t *barrier;
	double ns;
};

static void *run_thread(void *arg)
{
	struct thread *t = arg;
	struct bench_frame frame;
	uint8_t out[256];
	uint32_t ip_sum;
	uint64_t begin;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = &frame, .data_size_in = sizeof(frame),
		    .data_out = out, .data_size_out = sizeof(out), .repeat = t->repeat);

	pin_alone(t->cpu);
	make_frame(&frame, BENCH_PORT, &ip_sum);
	pthread_barrier_wait(t->barrier);
	begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (bpf_prog_test_run_opts(bpf_program__fd(bench->progs.draw), &o))
		die("test run");
	t->ns = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / t->repeat;
	if (o.retval != XDP_DROP && o.retval != XDP_PASS && o.retval != XDP_REDIRECT)
		die("a program was not reached (verdict %u)", o.retval);
	return NULL;
}

/* Nanoseconds a packet, the mean over the CPUs. */
static double run(const struct test *test, uint64_t repeat, bool sweep)
{
	struct thread thread[CPUS_MAX];
	pthread_t id[CPUS_MAX];
	pthread_barrier_t barrier;
	uint32_t slot = 0;
	double ns = 0;

	if (bpf_map_update_elem(bpf_map__fd(bench->maps.subject), &slot, &test->prog_fd, 0))
		die("program array");
	bench->bss->config = (struct bench_config){test->sources - 1, sweep, 0};
	pthread_barrier_init(&barrier, NULL, test->cpus);
	for (int i = 0; i < test->cpus; i++) {
		thread[i] = (struct thread){n_cpus - 1 - i, repeat, &barrier, 0};
		if (pthread_create(&id[i], NULL, run_thread, &thread[i]))
			die("thread");
	}
	for (int i = 0; i < test->cpus; i++) {
		pthread_join(id[i], NULL);
		ns += thread[i].ns / test->cpus;
	}
	pthread_barrier_destroy(&barrier);
	return ns;
}

static double run_calm(const struct test *t, double *busy)
{
	struct calm from, to;
	double ns;

	if (calm_read(&from, n_cpus - 1))
		die("/proc/stat");
	ns = run(t, t->repeat, false);
	if (calm_read(&to, n_cpus - 1))
		die("/proc/stat");
	*busy = calm_busy(&from, &to, t->cpus, n_cpus);
	return ns;
}

static void measure(struct test *t, int round)
{
	uint64_t admitted[2] = {0}, all[2] = {0};

	if (t->pacer)
		read_counts(t->pacer, &admitted[0], &all[0]);
	t->busy[round] = 2;
	for (int i = 0; i < calm_again() && t->busy[round] > CALM_BUSY; i++) {
		double busy, ns;

		/* Other cases had the caches meanwhile. */
		run(t, t->sources <= REWARM_MAX ? K + 5 * t->sources : 20000, false);
		ns = run_calm(t, &busy);
		if (busy < t->busy[round]) {
			t->busy[round] = busy;
			t->ns[round] = ns;
		}
	}
	if (t->pacer)
		read_counts(t->pacer, &admitted[1], &all[1]);
	t->admitted += admitted[1] - admitted[0];
	t->packets += all[1] - all[0];
}

/* Let every source be seen, and find how many packets make a measurement. */
static void warm(struct test *t, uint64_t ns)
{
	double each;

	if (t->pacer && t->cpus == 1)
		run(t, t->sources < K ? K : t->sources, true);
	run(t, 20000, false);
	each = run(t, 50000, false);
	t->repeat = ns / (each > 1 ? each : 1);
}

/* --- the cases ------------------------------------------------------------------------------ */

static void add(const char *name, int prog_fd, const struct pacer *p, uint32_t sources, int cpus)
{
	if (n_tests == CASES_MAX)
		die("more cases than CASES_MAX");
	tests[n_tests++] = (struct test){
	    .name = name, .pacer = p, .prog_fd = prog_fd, .sources = sources, .cpus = cpus};
}

static void add_layer(const char *name, const struct bpf_program *prog, uint32_t sources, int cpus)
{
	add(name, bpf_program__fd(prog), NULL, sources, cpus);
}

static void add_pacer(const struct pacer *p, uint32_t sources, int cpus)
{
	add(p->name, p->at.prog_fd, p, sources, cpus);
}

static void add_cases(uint32_t sources)
{
	add_layer("bare drop", bench->progs.drop, sources, 1);
	add_layer("parse", bench->progs.layer_parse, sources, 1);
	if (sources <= K) {
		add_layer("parse, hash", bench->progs.layer_hash, sources, 1);
		add_layer("parse, coarse clock", bench->progs.layer_coarse, sources, 1);
		add_layer("parse, exact clock", bench->progs.layer_exact, sources, 1);
	}
	if (sources == 1)
		add_layer(ADDED, bench->progs.layer_add, sources, 1);
	add_layer("parse, hash, clock, one read of 64 MiB", bench->progs.layer_read, sources, 1);
	for (size_t i = 0; i < PACERS; i++)
		if (pacers[i].only ? pacers[i].only == sources : sources < 16 * M)
			add_pacer(&pacers[i], sources, 1);
	if (n_cpus < 2 || sources == K || sources > M)
		return;
	add_layer("parse", bench->progs.layer_parse, sources, 2);
	if (sources == 1)
		add_layer(ADDED, bench->progs.layer_add, sources, 2);
	for (size_t i = 0; i < PACERS; i++)
		if (pacers[i].two_cpus && (!pacers[i].only || pacers[i].only == sources))
			add_pacer(&pacers[i], sources, 2);
}

static void print_case(const struct test *t, int rounds)
{
	const struct pacer *p = t->pacer;

	printf("{\"part\": \"layers\", \"name\": \"%s\", \"sources\": %u, \"cpus\": %d", t->name,
	       t->sources, t->cpus);
	if (p)
		printf(", \"memory\": \"%s\", \"rules\": %u, \"admitted\": %.4f", p->memory,
		       p->rules ? p->rules : 1, t->packets ? (double)t->admitted / t->packets : 0);
	printf(", \"ns\": [");
	for (int i = 0; i < rounds; i++)
		printf("%s%.2f", i ? ", " : "", t->ns[i]);
	printf("], \"busy\": [");
	for (int i = 0; i < rounds; i++)
		printf("%s%.3f", i ? ", " : "", t->busy[i]);
	printf("]}\n");
}

/* In the order of the sources, so that few find their records before many come. */
static void run_all(int rounds, uint64_t ns)
{
	for (size_t i = 0; i < n_tests; i++)
		warm(&tests[i], ns);
	for (int round = 0; round < rounds; round++)
		for (size_t i = 0; i < n_tests; i++)
			measure(&tests[i], round);
	for (size_t i = 0; i < n_tests; i++)
		print_case(&tests[i], rounds);
}

int layers_main(int argc, char **argv)
{
	static const uint32_t sources[] = {1, K, 64 * K, M, 16 * M};
	int rounds = argc == 5 ? atoi(argv[2]) : 0;
	uint32_t most = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;

	if (rounds < 1 || rounds > ROUNDS_MAX || !most)
		die("usage: layers XDP_PACER ROUNDS MILLISECONDS SOURCES_MAX");
	n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (unshare(CLONE_NEWNET))
		die("a network namespace");
	bench = open_bench(NULL);
	for (size_t i = 0; i < PACERS; i++)
		if (pacers[i].only <= most)
			load_pacer(&pacers[i], i, argv[1]);
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		if (sources[i] <= most)
			add_cases(sources[i]);
	run_all(rounds, strtoull(argv[3], NULL, 10) * 1000000);
	return 0;
}
