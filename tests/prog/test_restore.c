/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A reboot in the kernel: the real object on a clock that is given, its state saved to a file, the
 * object gone, another one on a clock that begins anew and goes on with that file. Exact lists of
 * what was admitted, on a time that goes on over the boots, say that no limit is passed; and that
 * what is owed is admitted in the end.
 */
#include <sched.h>

#include "prog.h"

#include "live/restore.h"
#include "live/state_file.h"

#define MS	   1000000ull
#define SECOND	   (1000 * MS)
#define BOOTS	   6
#define PACKETS	   3000 /* a boot */
#define SOURCES	   4
#define EVENTS_MAX (BOOTS * PACKETS)
#define LINES	   4096u

/* Of each source: 20 in 4 s, 1 in 10 ms, 10/s with 8 at once. Of all together: 150 in 3 s. */
static const char *const text =
    "clock: exact\nmemory: 256Ki\nrules:\n- name: w\n  match: {proto: udp, dport: 1}\n"
    "  limits: [{key: src, packets: 20, window: 4s, slots: 10, entries: 256}]\n"
    "- name: g\n  match: {proto: udp, dport: 2}\n  limits: [{key: src, gap: 10ms}]\n"
    "- name: r\n  match: {proto: udp, dport: 3}\n"
    "  limits: [{key: src, rate: 10/s, burst: 8, entries: 256}]\n"
    "- name: u\n  match: {proto: udp, dport: 4}\n"
    "  limits: [{key: all, uses: 150, cooldown: 3s, threshold: 10}]\n";

static struct prog prog;
static struct bpf_object *obj;
static volatile uint64_t *fake_ns;
static uint64_t base_ns;
static struct {
	uint64_t at;
	uint32_t port, source;
} events[EVENTS_MAX];
static size_t n_events, n_of[5];

static struct bpf_object *open_object(void)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	char path[300];

	snprintf(path, sizeof(path), "%s/prog/pacer_fake.bpf.o", build);
	libbpf_set_print(prog_print);
	return bpf_object__open_file(path, NULL);
}

/* ---- the oracle ---- */

static uint64_t admitted(uint32_t port, uint32_t source, uint64_t from)
{
	uint64_t n = 0;

	for (size_t i = n_events; i-- > 0 && events[i].at >= from;)
		n += events[i].port == port && (source == SOURCES || events[i].source == source);
	return n;
}

static uint64_t back(uint64_t at, uint64_t ns)
{
	return at > ns ? at - ns : 0;
}

static bool over_rate(uint32_t source, uint64_t now_at)
{
	uint64_t tat = 0, unit = 100 * MS;

	for (size_t i = 0; i < n_events; i++)
		if (events[i].port == 3 && events[i].source == source)
			tat = (tat > events[i].at ? tat : events[i].at) + unit;
	return (tat > now_at ? tat : now_at) + unit - now_at > 8 * unit;
}

static bool over(uint32_t port, uint32_t source, uint64_t now_at)
{
	switch (port) {
	case 1:
		return admitted(1, source, back(now_at, 4 * SECOND)) >= 20;
	case 2:
		return admitted(2, source, back(now_at, 10 * MS) + 1) > 0;
	case 3:
		return over_rate(source, now_at);
	}
	return admitted(4, SOURCES, back(now_at, 3 * SECOND) + 1) >= 150;
}

/* ---- the kernel ---- */

static void one_packet(void)
{
	uint32_t port = 1 + draw() % 4, source = draw() % SOURCES;
	struct recipe recipe = {.family = 4,
				.proto = 17,
				.saddr = {0x0a000001 + source},
				.daddr = {0x0a000101},
				.sport = 1000,
				.dport = port,
				.payload = 20};
	uint64_t at = base_ns + *fake_ns;
	static struct frame frame;

	frame_build(&frame, &recipe);
	if (prog_run(&prog, frame.b, frame.n) != XDP_PASS) {
		if (port == 3) /* a rate is exact over every boot */
			assert_true(over_rate(source, at));
		return;
	}
	if (over(port, source, at))
		fail_msg("port %u: passed at %llu", port, (unsigned long long)at);
	events[n_events].at = at;
	events[n_events].port = port;
	events[n_events++].source = source;
	n_of[port]++;
}

static struct clocks clocks_at(uint64_t boot)
{
	struct clocks c = {.mono_ns = *fake_ns, .boot_ns = *fake_ns, .real_ns = 1, .believed = 1};

	snprintf(c.boot_id, sizeof(c.boot_id), "boot %llu", (unsigned long long)boot);
	return c;
}

static void save(const char *file, uint64_t boot)
{
	struct attached a = {.ifname = "prog",
			     .counts_fd = prog.counts_fd,
			     .set_hits_fd = bpf_map__fd(prog_map(obj, "pacer_set_hits")),
			     .control = prog.control,
			     .copy = prog.copy,
			     .lines = prog.lines,
			     .n_lines = prog.n_lines,
			     .throttle = prog.throttle};
	struct policy_error error = {0};
	struct state s;
	uint64_t bytes;

	assert_int_equal(state_init(&s, prog.n_lines), 0);
	if (state_take(&a, 0, &s, &error))
		fail_msg("%s", error.text);
	s.clocks = clocks_at(boot);
	if (state_write(file, &s, &bytes, &error))
		fail_msg("%s", error.text);
	state_free(&s);
}

/* What the loader does, with the object on a clock that is given. `now_ns` is that of the new boot.
 */
static void boot(const char *file, uint64_t number, uint64_t now_ns)
{
	struct compile_host host = {PROG_RESOLUTION_NS, now_ns, libbpf_num_possible_cpus()};
	struct policy_error error = {0};
	struct pacer_control control = {0};
	static struct pacer_policy bin;
	struct restored what;
	struct policy *policy = policy_parse(text, strlen(text), &error);
	static struct plan plan;
	struct clocks at;
	struct state s;

	*fake_ns = now_ns;
	at = clocks_at(number);
	bpf_object__close(obj);
	obj = open_object();
	assert_true(policy && obj);
	if (state_read(file, &s, &error) ||
	    restore_plan(&s, policy, &at, &host, &bin, &plan, &what, &error) ||
	    restore_fill(&s,
			 &(struct restore_maps){
			     prog_map(obj, "pacer_lines"), prog_map(obj, "pacer_throttles"),
			     prog_map(obj, "pacer_counts"), prog_map(obj, "pacer_set_hits"),
			     prog_map(obj, "pacer_allow4"), prog_map(obj, "pacer_allow6")},
			 &control, &error))
		fail_msg("%s", error.text);
	assert_int_equal(what.limits_kept, 4);
	if (bpf_object__load(obj))
		fail_msg("the object does not load");
	prog_open(&prog, obj);
	fake_ns = prog_mmap(obj, ".data.clock");
	*fake_ns = now_ns;
	memcpy(prog.control->secret, control.secret, sizeof(control.secret));
	prog.control->secret_ready = control.secret_ready;
	prog.copy[0].policy = bin;
	memcpy(prog.copy[0].text, text, strlen(text));
	state_free(&s);
	policy_free(policy);
}

static void counters_go_on(uint64_t packets)
{
	uint64_t n = 0;

	prog_counts(&prog, prog.counts);
	for (size_t i = 0; i < PACER_COUNTERS_MAX * prog.cpus; i++)
		for (size_t r = 0; r < PACER_REASON_COUNT; r++)
			n += prog.counts[i].by[r].packets;
	assert_int_equal(n, packets);
}

static void test_reboots(void **unused)
{
	char file[] = "/tmp/pacer-reboot-XXXXXX";
	int fd = mkstemp(file);

	(void)unused;
	assert_true(fd >= 0);
	close(fd);
	*fake_ns = 50 * SECOND;
	prog_policy(&prog, text);
	memcpy(prog.copy[0].text, text, strlen(text));
	for (uint64_t number = 0;; number++) {
		for (int i = 0; i < PACKETS; i++) {
			*fake_ns += draw() % (4 * MS);
			one_packet();
		}
		counters_go_on((number + 1) * PACKETS);
		if (number + 1 == BOOTS)
			break;
		save(file, number);
		base_ns += *fake_ns; /* the new boot's clock begins where this one stopped */
		boot(file, number + 1, 1 + magnitude(1, 2 * SECOND));
	}
	unlink(file);
	/* In 36 s: what is owed is let through, but for what comes back at the boot. */
	if (n_of[1] < SOURCES * 20 * 7 || n_of[2] < 1000 || n_of[3] < SOURCES * 10 * 28 ||
	    n_of[4] < 150 * 6)
		fail_msg("admitted: %zu %zu %zu %zu", n_of[1], n_of[2], n_of[3], n_of[4]);
}

static int setup(void **unused)
{
	cpu_set_t one;

	(void)unused;
	CPU_ZERO(&one); /* leases are a CPU's own */
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	oracle_seed(51);
	obj = open_object();
	assert_non_null(obj);
	prog_load(&prog, obj, LINES);
	fake_ns = prog_mmap(obj, ".data.clock");
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	bpf_object__close(obj);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_reboots),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
