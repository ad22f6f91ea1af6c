/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy beside another: random frames under pairs of policies, on one clock, meet three things.
 * A pacer of the one policy, a pacer of the other, and the two programs of a shadow. The shadow's
 * verdict is that of the first, packet by packet; what it counts is how the second's verdict was,
 * by that one's rule and reason; and what either holds is the same as of each alone, to the byte.
 */
#include <sched.h>

#include "prog.h"

#include "beside.h"
#include "sampler.h"

#define PAIRS	200
#define PACKETS 200 /* under each */

/* The two alone, and the two programs of the shadow. */
static struct prog alone[2], first, second;
static volatile uint64_t *clocks[4];
static struct pacer_sampler *differ;
static struct pacer_shadow *said;
static struct bpf_object *objects[4];
static int changes_fd, cpu;
static struct pacer_changes counted[PACER_COUNTERS_MAX];
static uint32_t seen[PACER_CHANGE_COUNT];

static const char *const policies[] = {
    "rules: [{name: a, limits: [{key: src, packets: 3, window: 1ms}]}]",
    "rules: [{name: a, limits: [{key: src, packets: 5, window: 1ms}]}]",
    "rules: [{name: a, limits: [{key: src, gap: 50us}]}]",
    "rules: [{name: a, limits: [{key: src, rate: 10K/s, burst: 2}]}]",
    "rules: [{name: a, limits: [{key: all, uses: 20, cooldown: 1ms}]}]",
    "mode: monitor\nrules: [{name: a, limits: [{key: src, packets: 1, window: 1s}]}]",
    "rules: [{name: a, over: pass, limits: [{key: src, packets: 1, window: 1s}]}]",
    "rules: []",
    "unparsed: pass\nrules: []",
    "else: drop\nrules: [{name: a, match: {proto: udp}, verdict: pass}]",
    "else: pass\nrules: [{name: a, match: {proto: udp}, verdict: drop}]",
    "rules:\n"
    "- {name: dns, match: {proto: udp, dport: 53}, limits: [{key: src, packets: 2, window: 1ms}]}\n"
    "- {name: tcp, match: {proto: tcp}, limits: [{key: flow, gap: 20us}]}\n",
    "bans: 64\nrules:\n"
    "- {name: x, match: {src: 10.0.0.0/30}, ban: 500us, limits: [{key: src, packets: 4, window: "
    "100us}]}\n"
    "- {name: y, limits: [{key: \"src/24,56\", bytes: 2k, window: 1ms}, {key: src, gap: 5us}]}\n",
    "sample: {of: all, k: 4, packets: 50}\n"
    "rules: [{name: a, limits: [{key: dst, packets: 30, window: 1ms}]}]",
};

#define POLICIES (sizeof(policies) / sizeof(*policies))

static void make_frame(struct frame *f)
{
	static const uint8_t protos[] = {17, 17, 6, 1, 50};
	struct recipe r = {.family = draw() % 3 ? 4 : 6, .payload = 8 + draw() % 200};

	r.proto = protos[draw() % sizeof(protos)];
	r.saddr[0] = r.family == 4 ? 0x0a000000 + draw() % 6 : 0x20010db8;
	r.saddr[3] = draw() % 4;
	r.daddr[0] = r.family == 4 ? 0xc6336401 : 0x20010db8;
	r.sport = 1000 + draw() % 3;
	r.dport = draw() % 2 ? 53 : 80;
	if (draw() % 20 == 0) {
		r.family = 0;
		r.type = 0x0806;
	}
	frame_build(f, &r);
	if (draw() % 20 == 0 && f->n > 30)
		f->n = 15 + draw() % 15; /* cut short */
}

/* What the shadow has counted so far, of all CPUs. */
static void assert_counted(void)
{
	static struct pacer_changes each[PROG_CPUS];

	for (uint32_t slot = 0; slot < PACER_COUNTERS_MAX; slot++) {
		struct pacer_changes sum = {0};

		assert_int_equal(bpf_map_lookup_elem(changes_fd, &slot, each), 0);
		for (uint32_t i = 0; i < alone[0].cpus; i++)
			for (int c = 0; c < PACER_CHANGE_COUNT; c++)
				for (uint32_t r = 0; r < PACER_CHANGE_REASONS; r++) {
					sum.by[c][r].packets += each[i].by[c][r].packets;
					sum.by[c][r].bytes += each[i].by[c][r].bytes;
				}
		assert_memory_equal(&sum, &counted[slot], sizeof(sum));
	}
}

static void assert_same_state(const struct prog *a, const struct prog *b)
{
	assert_memory_equal(a->lines, b->lines, a->n_lines * sizeof(*a->lines));
	assert_memory_equal(a->throttle, b->throttle, PACER_THROTTLES * sizeof(*a->throttle));
}

static void one_packet(uint64_t now_ns)
{
	struct prog_judged judged[2];
	enum pacer_change change;
	struct pacer_count *at;
	uint32_t verdict;
	struct frame f;

	make_frame(&f);
	for (int i = 0; i < 4; i++)
		*clocks[i] = now_ns;
	judged[0] = prog_judged(&alone[0], f.b, f.n);
	judged[1] = prog_judged(&alone[1], f.b, f.n);
	verdict = prog_run(&first, f.b, f.n);
	assert_int_equal(verdict, judged[0].verdict);
	change = pacer_change_of(judged[0].verdict == XDP_PASS, judged[1].verdict == XDP_PASS);
	at = &counted[judged[1].counter].by[change][pacer_outcome_reason(judged[1].outcome)];
	at->packets++;
	at->bytes += f.n;
	seen[change]++;
}

static void put_on(const char *in_force, const char *beside)
{
	prog_policy(&alone[0], in_force);
	prog_policy(&first, in_force);
	prog_policy(&alone[1], beside);
	prog_policy(&second, beside);
}

static void test_same_as_each_alone(void **unused)
{
	uint64_t now_ns = 1ull << 40;

	(void)unused;
	for (int pair = 0; pair < PAIRS; pair++) {
		const char *in_force = policies[draw() % POLICIES];
		const char *beside = policies[draw() % POLICIES];

		now_ns += 1ull << 36;
		put_on(in_force, beside);
		for (int i = 0; i < PACKETS; i++) {
			now_ns += draw() % 8 ? draw() % 30000 : draw() % 2000000;
			one_packet(now_ns);
		}
		assert_same_state(&alone[0], &first);
		assert_same_state(&alone[1], &second);
		assert_counted();
	}
	for (int c = 0; c < PACER_CHANGE_COUNT; c++)
		assert_true(seen[c] > 1000);
	assert_int_equal(differ[cpu].id, 7);
}

/* All that is in the sample by now: has it a key? How many that is. */
static uint32_t assert_keys(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 2 * PACER_SAMPLE_K; i++) {
		const struct pacer_sample_item *item =
		    pacer_sampler_item(&differ[cpu], &said->of, i);
		uint8_t family = item->family & ~PACER_SAMPLER_LATER;

		if (!item->time_ns)
			continue;
		assert_true(family == PACER_FAMILY_4 || family == PACER_FAMILY_6);
		assert_int_not_equal(pacer_verdict_of(item->reason), PACER_VERDICT_UNPARSED);
		n++;
	}
	return n;
}

/* A frame that is cut short fares differently, too, and is counted. It is nobody's. */
static void test_what_is_sampled_has_a_key(void **unused)
{
	const __u64 *cut = &counted[0].by[PACER_CHANGE_DENY][PACER_TRUNCATED].packets;
	uint64_t now_ns = 1ull << 49, before = *cut;
	uint32_t n = 0;

	(void)unused;
	said->of.id = 8; /* begins anew, with so many that a few frames are in it */
	said->of.k = PACER_SAMPLE_K;
	put_on("unparsed: pass\nelse: pass\nrules: []", "unparsed: drop\nelse: drop\nrules: []");
	for (int i = 0; i < PACKETS; i++) {
		one_packet(now_ns += 20000);
		n = assert_keys();
	}
	assert_counted();
	assert_int_equal(differ[cpu].id, 8);
	assert_true(*cut > before + 4 && n >= PACER_SAMPLE_K);
}

/* Nothing to go over to: the first's verdict stands, and nothing is counted. */
static void test_without_a_second(void **unused)
{
	uint32_t at = 0;

	(void)unused;
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(prog_map(objects[2], "pacer_next")), &at),
			 0);
	prog_policy(&alone[0], policies[0]);
	prog_policy(&first, policies[0]);
	for (int i = 0; i < PACKETS; i++) {
		uint64_t now_ns = (1ull << 50) + (uint64_t)i * 20000;
		struct frame f;

		make_frame(&f);
		*clocks[0] = *clocks[2] = now_ns;
		assert_int_equal(prog_run(&first, f.b, f.n),
				 prog_judged(&alone[0], f.b, f.n).verdict);
	}
	assert_counted();
}

static struct bpf_object *open_object(const char *name)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	struct bpf_object *obj;
	char path[300];

	snprintf(path, sizeof(path), "%s/prog/%s.bpf.o", build, name);
	obj = bpf_object__open_file(path, NULL);
	assert_non_null(obj);
	return obj;
}

static void leave_out(struct bpf_object *obj, const char *program)
{
	struct bpf_program *p = bpf_object__find_program_by_name(obj, program);

	assert_non_null(p);
	assert_int_equal(bpf_program__set_autoload(p, false), 0);
}

/* As live/shadow.c does. */
static void join(struct bpf_object *one, struct bpf_object *other)
{
	int next_fd, prog_fd;
	uint32_t at = 0;

	leave_out(other, "pacer");
	assert_int_equal(
	    bpf_program__set_flags(bpf_object__find_program_by_name(other, "pacer_shadow"),
				   BPF_F_XDP_HAS_FRAGS),
	    0);
	assert_int_equal(bpf_map__set_autocreate(prog_map(other, "pacer_next"), false), 0);
	assert_int_equal(
	    bpf_map__set_max_entries(prog_map(other, "pacer_differ"), libbpf_num_possible_cpus()),
	    0);
	prog_load(&second, other, PROG_LINES);
	leave_out(one, "pacer_shadow");
	assert_int_equal(bpf_map__reuse_fd(prog_map(one, "pacer_told"),
					   bpf_map__fd(prog_map(other, "pacer_told"))),
			 0);
	prog_load(&first, one, PROG_LINES);
	next_fd = bpf_map__fd(prog_map(one, "pacer_next"));
	prog_fd = bpf_program__fd(bpf_object__find_program_by_name(other, "pacer_shadow"));
	assert_int_equal(bpf_map_update_elem(next_fd, &at, &prog_fd, BPF_ANY), 0);
	changes_fd = bpf_map__fd(prog_map(other, "pacer_changes"));
}

static int setup(void **state)
{
	struct prog *all[] = {&alone[0], &alone[1], &first, &second};
	cpu_set_t one;

	CPU_ZERO(&one); /* leases are a CPU's own */
	cpu = sched_getcpu();
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	libbpf_set_print(prog_print);
	for (int i = 0; i < 4; i++)
		objects[i] = open_object(i < 2 ? "pacer_fake" : "shadow_fake");
	prog_load(&alone[0], objects[0], PROG_LINES);
	prog_load(&alone[1], objects[1], PROG_LINES);
	join(objects[2], objects[3]);
	oracle_seed(51);
	for (int i = 0; i < 4; i++) {
		clocks[i] = prog_mmap(objects[i], ".data.clock");
		memcpy(all[i]->control->secret, alone[0].control->secret,
		       sizeof(alone[0].control->secret));
	}
	differ = prog_mmap(objects[3], "pacer_differ");
	for (uint32_t i = 0; i < alone[0].cpus; i++)
		pacer_sampler_init(&differ[i], 1 + i);
	said = prog_mmap(objects[3], ".data.shadow");
	said->of = (struct pacer_sampling){
	    .id = 7, .window = 100, .k = 4, .reasons = 1, .form = PACER_SAMPLE_LAST};
	(void)state;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		bpf_object__close(objects[i]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same_as_each_alone),
	    cmocka_unit_test(test_what_is_sampled_has_a_key),
	    cmocka_unit_test(test_without_a_second),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
