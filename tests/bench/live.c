/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Real frames: a generator on one end of a veth pair, by BPF_F_TEST_XDP_LIVE_FRAMES, and what the
 * other end is measured with. Everything that the generator's CPU does until the frame's end, the
 * peer's work in softirq included, happens in the generator's time: its CPU time over the frames is
 * the total of a packet.
 *
 *   flood IFACE MAC SOURCES FRAMES [BEFORE|sweep] as fast as can be; BEFORE: frames that are not
 *                                                 counted, to fill the caches; sweep: one source
 *                                                 after the other. With BEFORE it is measured again
 *                                                 where the machine was not calm
 *   stamp IFACE MAC SOURCES MILLISECONDS          the same, with the time of sending in each frame
 *   mix IFACE MAC SOURCES HONEST PPS QUIET FLOOD  honest sources for QUIET ms, then these and a
 *                                                 flood for FLOOD ms; a third into it as many new
 *                                                 honest ones
 *   attach IFACE PROGRAM [SET]                    a program of bench.bpf.c, natively, with a set of
 *                                                 members.c
 *   receive LIMIT WINDOW_MS MILLISECONDS          stamped frames: the most in a window, by source
 */
#include "calm.h"
#include "members.h"
#include "tool.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH	     64u
#define BURST	     1000000u /* frames a call where the time decides, not the count */
#define MS	     1000000ull
#define RECEIVED_MAX (1u << 24)

struct generator {
	struct bench_bpf *skel;
	struct bench_flow *flow;
	struct bench_frame frame;
	struct xdp_md ctx;
	uint64_t frames, wall_ns, cpu_ns;
	struct calm began;
	double busy; /* calm.h */
};

static void read_mac(const char *text, unsigned char mac[ETH_ALEN])
{
	unsigned int b[ETH_ALEN];

	if (sscanf(text, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]) != ETH_ALEN)
		die("%s is not a MAC address", text);
	for (int i = 0; i < ETH_ALEN; i++)
		mac[i] = b[i];
}

static int last_cpu(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) - 1;
}

static void open_generator(struct generator *g, char **argv)
{
	unsigned int ifindex = if_nametoindex(argv[1]);
	uint32_t sources = strtoul(argv[3], NULL, 10);

	if (!ifindex)
		die("%s", argv[1]);
	memset(g, 0, sizeof(*g));
	g->skel = open_bench("generate");
	g->flow = &g->skel->bss->flow;
	make_frame(&g->frame, BENCH_PORT, &g->flow->ip_sum);
	read_mac(argv[2], g->frame.eth.h_dest);
	g->frame.eth.h_source[0] = 2;
	g->ctx.ingress_ifindex = ifindex;
	g->ctx.data_end = sizeof(g->frame);
	g->flow->port_be = htons(BENCH_PORT);
	g->flow->honest_ns = 1;
	g->skel->bss->config.mask = sources - 1;
	pin(last_cpu());
}

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) + calm_softirqd_ns(last_cpu());
}

static void generate(struct generator *g, uint32_t frames)
{
	uint64_t wall = clock_ns(CLOCK_MONOTONIC), cpu = cpu_ns();
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = &g->frame, .data_size_in = sizeof(g->frame),
		    .ctx_in = &g->ctx, .ctx_size_in = sizeof(g->ctx), .repeat = frames,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);

	if (bpf_prog_test_run_opts(bpf_program__fd(g->skel->progs.generate), &o))
		die("live frames");
	g->wall_ns += clock_ns(CLOCK_MONOTONIC) - wall;
	g->cpu_ns += cpu_ns() - cpu;
	g->frames += frames;
}

static void generate_for(struct generator *g, uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + ns;

	while (clock_ns(CLOCK_MONOTONIC) < end)
		generate(g, BURST);
}

static void measure_begin(struct generator *g)
{
	g->frames = g->wall_ns = g->cpu_ns = 0;
	if (calm_read(&g->began, last_cpu()))
		die("/proc/stat");
}

static void measure_end(struct generator *g)
{
	struct calm now;

	if (calm_read(&now, last_cpu()))
		die("/proc/stat");
	g->busy = calm_busy(&g->began, &now, 1, last_cpu() + 1);
}

static void print_generated(const struct generator *g)
{
	printf("{\"frames\": %llu, \"wall_ns\": %llu, \"cpu_ns\": %llu, \"flood\": %llu, "
	       "\"honest\": %llu, \"late\": %llu, \"behind_ns\": %llu, \"busy\": %.3f}\n",
	       (unsigned long long)g->frames, (unsigned long long)g->wall_ns,
	       (unsigned long long)g->cpu_ns, (unsigned long long)g->flow->sent_flood,
	       (unsigned long long)g->flow->sent_honest, (unsigned long long)g->flow->sent_late,
	       (unsigned long long)(g->flow->behind * g->flow->honest_ns), g->busy);
	fflush(stdout);
}

int flood_main(int argc, char **argv)
{
	uint32_t before = argc > 5 ? strtoul(argv[5], NULL, 10) : 0;
	struct generator g, best = {.busy = 2};

	if (argc < 5)
		die("usage: flood IFACE MAC SOURCES FRAMES [BEFORE|sweep]");
	open_generator(&g, argv);
	g.flow->flood = 1;
	g.skel->bss->config.sweep = argc > 5 && !strcmp(argv[5], "sweep");
	for (int i = 0; i < (before ? calm_again() : 1) && best.busy > CALM_BUSY; i++) {
		if (before)
			generate(&g, before);
		measure_begin(&g);
		generate(&g, strtoul(argv[4], NULL, 10));
		measure_end(&g);
		if (g.busy < best.busy)
			best = g;
	}
	print_generated(&best);
	return 0;
}

int stamp_main(int argc, char **argv)
{
	struct generator g;

	if (argc != 5)
		die("usage: stamp IFACE MAC SOURCES MILLISECONDS");
	open_generator(&g, argv);
	g.flow->flood = 1;
	g.flow->stamp = 1;
	measure_begin(&g);
	generate_for(&g, strtoull(argv[4], NULL, 10) * MS);
	measure_end(&g);
	print_generated(&g);
	return 0;
}

/* The first line is of the quiet phase, the second of both. The phases have ports of their own. */
int mix_main(int argc, char **argv)
{
	struct generator g;

	if (argc != 8)
		die("usage: mix IFACE MAC SOURCES HONEST PPS QUIET_MS FLOOD_MS");
	open_generator(&g, argv);
	g.flow->honest = strtoul(argv[4], NULL, 10);
	g.flow->honest_ns = 1000000000ull / strtoull(argv[5], NULL, 10);
	g.flow->begin_ns = clock_ns(CLOCK_MONOTONIC);
	measure_begin(&g);
	generate_for(&g, strtoull(argv[6], NULL, 10) * MS);
	print_generated(&g);
	g.flow->port_be = htons(BENCH_PORT + 1);
	g.flow->flood = 1;
	measure_begin(&g);
	generate_for(&g, strtoull(argv[7], NULL, 10) * MS / 3);
	g.flow->late_from = g.flow->due;
	g.flow->late = 1;
	generate_for(&g, strtoull(argv[7], NULL, 10) * MS * 2 / 3);
	measure_end(&g);
	print_generated(&g);
	return 0;
}

int attach_main(int argc, char **argv)
{
	struct bench_bpf *skel;
	struct bpf_program *prog;

	if (argc != 3 && argc != 4)
		die("usage: attach IFACE PROGRAM [SET]");
	skel = open_bench(argv[2]);
	if (argc == 4)
		members_fill(skel, argv[3]);
	prog = bpf_object__find_program_by_name(skel->obj, argv[2]);
	if (!prog)
		die("there is no program %s", argv[2]);
	if (bpf_xdp_attach(if_nametoindex(argv[1]), bpf_program__fd(prog), XDP_FLAGS_DRV_MODE,
			   NULL))
		die("%s: attach", argv[1]);
	return 0;
}

/* --- the receiver of stamped frames --------------------------------------------------------- */

struct received {
	uint32_t source;
	uint64_t sent_ns;
};

static struct received *received;
static size_t n_received;

static int by_source_and_time(const void *a, const void *b)
{
	const struct received *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->sent_ns > y->sent_ns) - (x->sent_ns < y->sent_ns);
}

static void receive(int fd, uint64_t end_ns)
{
	struct bench_frame frame;
	struct sockaddr_in from;

	while (clock_ns(CLOCK_MONOTONIC) < end_ns && n_received < RECEIVED_MAX) {
		socklen_t len = sizeof(from);
		size_t size = sizeof(frame) - offsetof(struct bench_frame, sent_ns);
		ssize_t n = recvfrom(fd, &frame.sent_ns, size, 0, (struct sockaddr *)&from, &len);

		if (n == (ssize_t)size)
			received[n_received++] =
			    (struct received){ntohl(from.sin_addr.s_addr), frame.sent_ns};
	}
}

/* The most packets of one source that were sent within any window. */
static uint32_t worst_window(uint64_t window_ns, uint32_t limit, uint32_t *sources, uint32_t *over)
{
	uint32_t worst = 0;
	size_t first = 0, last;
	bool is_over = false;

	*sources = *over = 0;
	for (last = 0; last < n_received; last++) {
		bool next = !last || received[last].source != received[last - 1].source;

		if (next) {
			first = last;
			is_over = false;
			++*sources;
		}
		while (received[last].sent_ns - received[first].sent_ns > window_ns)
			first++;
		if (last - first + 1 > worst)
			worst = last - first + 1;
		if (last - first + 1 > limit && !is_over) {
			is_over = true;
			++*over;
		}
	}
	return worst;
}

int receive_main(int argc, char **argv)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(BENCH_PORT)};
	struct timeval timeout = {.tv_usec = 100000};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), size = 64 << 20;
	uint32_t sources, over, worst;

	if (argc != 4)
		die("usage: receive LIMIT WINDOW_MS MILLISECONDS");
	pin(0);
	received = calloc(RECEIVED_MAX, sizeof(*received));
	if (!received || bind(fd, (struct sockaddr *)&any, sizeof(any)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)))
		die("receiver");
	printf("ready\n");
	fflush(stdout);
	receive(fd, clock_ns(CLOCK_MONOTONIC) + strtoull(argv[3], NULL, 10) * MS);
	qsort(received, n_received, sizeof(*received), by_source_and_time);
	worst = worst_window(strtoull(argv[2], NULL, 10) * MS, strtoul(argv[1], NULL, 10), &sources,
			     &over);
	printf("{\"received\": %zu, \"sources\": %u, \"worst\": %u, \"over\": %u}\n", n_received,
	       sources, worst, over);
	return 0;
}
