/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Samples in the packet path. The kernel's sampler and user space's, fed with the same packets on
 * the same clock from the same seed, are the same to the byte, of every form; what is read of it is
 * a uniform sample of both CPUs' windows; and a reader gets whole copies while packets go on.
 */
#include <pthread.h>
#include <sched.h>

#include "prog.h"

#include "built.h"
#include "chi.h"
#include "path.h"
#include "live/host.h"
#include "live/snapshot.h"
#include "sampler.h"

#define PACKETS	 6000
#define HAMMERED 100000 /* packets while copies are made */
#define SNAP	 PACER_SNAP_MAX

static struct prog prog;
static struct attached attached;
static volatile uint64_t *fake_ns;
static uint32_t cpus;

static void reseed(void)
{
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		memset(&attached.sampler[cpu], 0, sizeof(*attached.sampler));
		memset(&attached.heads[cpu], 0, sizeof(*attached.heads));
		pacer_sampler_init(&attached.sampler[cpu], 1000 + cpu);
	}
}

static void on_cpu(uint32_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* ---- user space's own ---- */

static struct pacer_sampler mine;
static struct pacer_heads heads;
static struct pacer_line *lines;
static struct pacer_throttle_state throttles[PACER_THROTTLES];
static struct pacer_throttle_lease leases[PACER_THROTTLES];
static uint32_t took, counted;

/* The way of the frame in user space, its sample included. */
static void feed_mine(const struct frame *f, uint64_t now_ns)
{
	const struct pacer_policy *p = &prog.copy[0].policy;
	struct pacer_state state = {.table = {lines, prog.n_lines},
				    .policy = p,
				    .secret = prog.control->secret[0],
				    .throttle = throttles,
				    .lease = leases,
				    .sampler = &mine,
				    .heads = &heads};
	struct pacer_frame frame = {f->b, f->b + f->n, f->n, now_ns};
	struct pacer_walk walk = {.state = &state};
	uint32_t outcome, seq = mine.seq;

	(void)pacer_path(&frame, &walk, &outcome);
	counted += pacer_is_sampled(p, outcome);
	took += mine.seq != seq;
}

/* ---- the same in both ---- */

static void random_frame(struct frame *f)
{
	struct recipe r = {.family = draw() % 3 ? 4 : 6,
			   .proto = draw() % 4 ? 17 : 6,
			   .saddr = {0x0a000000 | draw() % 300, 0, 0, draw() % 5},
			   .daddr = {0x0a010000 | draw() % 3},
			   .sport = draw(),
			   .dport = draw() % 4 ? 53 : 80,
			   .id = draw() % 9,
			   .frag = draw() % 16 ? 0 : 0x20,
			   .payload = between(4, draw() % 4 ? 40 : 1000)};

	frame_build(f, &r);
	if (draw() % 32 == 0)
		f->n = between(14, f->n); /* some of these are unparsed */
}

static void same_as_mine(const char *what, uint32_t i)
{
	if (memcmp(&mine, &attached.sampler[0], sizeof(mine)))
		fail_msg("%s: the samplers differ after packet %u", what, i);
}

/* Each head that was stored since then, as far as it was kept. */
static void same_heads(const char *what, uint64_t begin_ns)
{
	const struct pacer_sampling *by = &prog.copy[0].policy.sampling;
	uint32_t n = by->form == PACER_SAMPLE_TIME ? PACER_SAMPLER_PLACES : 2 * PACER_SAMPLE_K;

	for (uint32_t p = 0; p < n; p++) {
		const struct pacer_sample_item *item = pacer_sampler_item(&mine, by, p);
		uint32_t len = item->time_ns > begin_ns ? item->len_bytes : 0;

		if (memcmp(heads.at[p], attached.heads[0].at[p], len < by->snap ? len : by->snap))
			fail_msg("%s: the head of place %u differs", what, p);
	}
}

#define RULES                                                                         \
	"rules:\n"                                                                    \
	"  - {name: dns, match: {proto: udp, dport: 53},\n"                           \
	"     limits: [{key: src, packets: 3, window: 1ms, entries: 64},\n"           \
	"              {key: 'src/24,56', packets: 40, window: 1ms, entries: 64}]}\n" \
	"  - {name: tcp, match: {proto: tcp}, limits: [{key: flow, gap: 20us, entries: 64}]}\n"

/* A step in time: mostly none or short, at times longer than any window. */
static uint64_t step_ns(void)
{
	switch (draw() % 64) {
	case 0:
		return between(100000, 1000000);
	case 1:
		return draw() % 8 ? 5000 : 30000000;
	default:
		return draw() % 3 * 700;
	}
}

static void run_form(const char *sample, uint64_t begin_ns)
{
	uint64_t now_ns = begin_ns;
	char text[1000];
	struct frame f;

	snprintf(text, sizeof(text), "clock: exact\n%ssample: %s\n", RULES, sample);
	prog_policy(&prog, text);
	memset(lines, 0, prog.n_lines * sizeof(*lines));
	took = counted = 0;
	for (uint32_t i = 0; i < PACKETS; i++) {
		/* Off for a while, and on under another id: it begins anew. */
		if (i == PACKETS / 2)
			prog.copy[0].policy.sampling.reasons = 0;
		if (i == PACKETS / 2 + 100) {
			prog_compile(&prog, text, &prog.copy[0].policy);
			prog.copy[0].policy.sampling.id++;
		}
		random_frame(&f);
		*fake_ns = now_ns += step_ns();
		prog_run(&prog, f.b, f.n);
		feed_mine(&f, now_ns);
		same_as_mine(sample, i);
	}
	same_heads(sample, begin_ns);
	assert_true(counted > PACKETS / 10 && took > 0);
}

static void test_same(void **unused)
{
	static const char *const samples[] = {
	    "{of: all, k: 64, window: 1ms, snap: 128}",
	    "{of: denied, k: 64, window: 20ms}",
	    "{of: admitted, k: 7, window: 3us, snap: 14}",
	    "{of: all, k: 1, window: 60s, snap: 64}",
	    "{of: all, k: 64, packets: 1000, snap: 128}",
	    "{of: denied, k: 64, packets: 50, snap: 1}",
	    "{of: admitted, k: 3, packets: 1, snap: 100}",
	    "{of: denied, k: 64, packets: 50, replacement: without}",
	    "{of: admitted, k: 5, packets: 100000, snap: 60}",
	};

	(void)unused;
	on_cpu(0);
	reseed();
	oracle_seed(61);
	memset(&mine, 0, sizeof(mine));
	pacer_sampler_init(&mine, 1000);
	for (uint32_t i = 0; i < ARRAY(samples); i++)
		run_form(samples[i], (i + 1ull) << 40);
}

/* ---- a sample of both CPUs ---- */

/* Source number `id` sends a packet on the CPU that it belongs to. */
static void send_from(uint32_t id)
{
	struct recipe r = {.family = 4,
			   .proto = 17,
			   .saddr = {0x0a000000 | id},
			   .daddr = {id * 2654435761u},
			   .sport = id,
			   .dport = 53,
			   .payload = 30};
	struct frame f;

	frame_build(&f, &r);
	prog_run(&prog, f.b, f.n);
}

struct stream {
	const char *what, *sample;
	uint32_t on[2]; /* packets of each CPU */
	uint32_t gap_ns;
	uint32_t from[2]; /* of those, the first that the window holds */
};

/* A third of the packets on one CPU, and a window that has left some of them behind. */
static void send_all(const struct stream *s, uint64_t begin_ns)
{
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		on_cpu(cpu);
		for (uint32_t i = 0; i < s->on[cpu]; i++) {
			*fake_ns = begin_ns + i * (uint64_t)s->gap_ns;
			send_from(i + cpu * s->on[0]);
		}
	}
}

static void check_rows(const struct sample *sample, const struct stream *s, struct tally *tally)
{
	uint32_t kept = s->on[0] - s->from[0];

	for (uint32_t j = 0; j < sample->rows; j++) {
		const struct sample_row *row = &sample->row[j];
		uint32_t id = row->item.saddr[0] & 0xffffff, cpu = id >= s->on[0];
		uint32_t at = id - cpu * s->on[0];

		assert_true(at >= s->from[cpu] && row->cpu == cpu);
		assert_int_equal(pacer_be32(row->head + 26), row->item.saddr[0]);
		tally_add(tally, cpu ? kept + at - s->from[1] : at - s->from[0]);
	}
}

static void run_stream(const struct stream *s, uint32_t runs)
{
	uint32_t kept[2] = {s->on[0] - s->from[0], s->on[1] - s->from[1]};
	struct policy_error error;
	struct tally tally;
	struct sample sample;
	char text[1000];

	snprintf(text, sizeof(text),
		 "rules: [{name: a, limits: [{key: all, packets: 10, window: 1s}]}]\n"
		 "clock: exact\nsample: %s\n",
		 s->sample);
	prog_policy(&prog, text);
	reseed();
	tally_start(&tally, kept[0] + kept[1]);
	for (uint32_t run = 0; run < runs; run++) {
		uint64_t span = (uint64_t)s->gap_ns * (s->on[0] > s->on[1] ? s->on[0] : s->on[1]);

		prog.copy[0].policy.sampling.id = run + 10;
		send_all(s, (host_now_ns() - span) >> 30 << 30);
		assert_int_equal(sample_read(&attached, run, &sample, &error), 0);
		assert_true(sample.window[0] == kept[0] && sample.window[1] == kept[1]);
		assert_true(sample.n == kept[0] + kept[1] && sample.behind == 0);
		assert_int_equal(sample.rows, sample.by.k);
		check_rows(&sample, s, &tally);
		sample_free(&sample);
	}
	assert_p(s->what, s->sample, tally_p(&tally));
	print_message("%s: %u cells, p = %.3f\n", s->what, tally.cells, tally_p(&tally));
}

static void test_uniform(void **unused)
{
	static const struct stream streams[] = {
	    {"time", "{of: all, k: 8, window: 3600s, snap: 64}", {30, 60}, 1000, {0, 0}},
	    {"packets", "{of: all, k: 8, packets: 20, snap: 64}", {30, 50}, 1000, {10, 30}},
	    {"packets, one CPU few",
	     "{of: all, k: 16, packets: 40, snap: 64}",
	     {5, 90},
	     10,
	     {0, 50}},
	};

	(void)unused;
	if (cpus < 2 || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	for (uint32_t i = 0; i < ARRAY(streams); i++)
		run_stream(&streams[i], 1500);
}

/* ---- the copy in force ---- */

#define SAMPLED(of)                                                            \
	"sample: {of: " of ", k: 4, packets: 20}\nrules: [{name: a, limits: [" \
	"{key: src, packets: 1, window: 1h}]}]\n"

/* A packet on its short way is sampled as the policy in force says, where that is the second. */
static void test_second_copy(void **unused)
{
	static struct pacer_sampler before;
	struct pacer_policy *second = &prog.copy[1].policy;

	(void)unused;
	on_cpu(0);
	prog_policy(&prog, SAMPLED("admitted"));
	prog_compile(&prog, SAMPLED("denied"), second);
	second->sampling.id = 7;
	pacer_short_arm(second, prog.control, 1);
	reseed();
	before = attached.sampler[0];
	prog.control->in_force = 1;
	send_from(1); /* it is admitted */
	assert_memory_equal(&before, &attached.sampler[0], sizeof(before));
	send_from(1); /* it is denied */
	assert_int_equal(attached.sampler[0].id, 7);
	prog.control->in_force = 0;
}

/* ---- copies ---- */

/* A writer that never leaves: of time, the last tick's end is whole, and nothing is of the rest. */
static void test_marks(void **unused)
{
	static struct pacer_sampler live, copy;
	struct pacer_sampling by = {
	    .id = 1, .reasons = 1, .form = PACER_SAMPLE_TIME, .k = 3, .window = 10};
	struct pacer_sample_item item = {0};

	(void)unused;
	pacer_sampler_init(&live, 1);
	for (item.time_ns = 1; item.time_ns < 8; item.time_ns++)
		if (pacer_sampler_due(&live, &by, item.time_ns))
			pacer_sampler_take(&live, &by, &item);
	assert_int_equal(sample_copy(&live, NULL, &by, &copy, NULL), SAMPLE_WHOLE);
	assert_int_equal(pacer_sampler_n(&copy, &by, 7), 7);
	live.seq++;
	assert_int_equal(sample_copy(&live, NULL, &by, &copy, NULL), SAMPLE_BEHIND);
	assert_int_equal(pacer_sampler_n(&copy, &by, 7), 6);
	live.burst.ticks++;
	assert_int_equal(sample_copy(&live, NULL, &by, &copy, NULL), SAMPLE_TORN);
	by.form = PACER_SAMPLE_LAST;
	assert_int_equal(sample_copy(&live, NULL, &by, &copy, NULL), SAMPLE_TORN);
	live.seq++;
	assert_int_equal(sample_copy(&live, NULL, &by, &copy, NULL), SAMPLE_WHOLE);
	live.wor.seq++;
	assert_int_equal(sample_copy(&live, NULL, &by, &copy, NULL), SAMPLE_TORN);
}

struct writer {
	pthread_t thread;
	volatile bool stop;
	volatile uint64_t packets;
};

static void *write_on(void *arg)
{
	struct writer *w = arg;

	on_cpu(1);
	for (; !w->stop; w->packets++) {
		*fake_ns = *fake_ns + 40;
		send_from(w->packets & 0xffffff);
	}
	return NULL;
}

/* Every field of an item is a function of its source. */
static void check_item(const struct pacer_sample_item *item)
{
	uint32_t id = item->saddr[0] & 0xffffff;

	assert_true(item->daddr[0] == id * 2654435761u && item->sport == (uint16_t)id);
	assert_true(item->dport == 53 && item->proto == 17 && item->len_bytes == 64);
}

static void check_copy(const struct pacer_sampler *copy, const struct pacer_heads *kept,
		       const struct pacer_sampling *by, struct pacer_sample_rng *rng)
{
	struct pacer_sample_item out[PACER_SAMPLE_K];
	uint64_t n = pacer_sampler_n(copy, by, 0);
	uint32_t got = pacer_sampler_draw(copy, by, rng, 0, out), places = 0;
	uint64_t seen[PACER_SAMPLER_PLACES / 64] = {0};

	assert_int_equal(got, n < by->k && by->form == PACER_SAMPLE_LAST ? n : n ? by->k : 0);
	for (uint32_t j = 0; j < got; j++)
		check_item(&out[j]);
	if (by->form != PACER_SAMPLE_TIME)
		return;
	for (uint32_t b = 0; b < PACER_SAMPLE_BURST_BUCKETS; b++)
		for (uint32_t j = 0; j < PACER_SAMPLE_K; j++) {
			uint32_t p = copy->burst.R[b][j];

			places += !(seen[p / 64] >> p % 64 & 1);
			seen[p / 64] |= 1ull << p % 64;
		}
	assert_int_equal(places, PACER_SAMPLER_PLACES);
	for (uint32_t i = 0; i < copy->burst.len; i++)
		for (uint32_t j = 0; j < by->k; j++) {
			uint32_t p = copy->burst.R[pacer_sample_burst_nth(&copy->burst, i)][j];

			assert_int_equal(pacer_be32((const uint8_t *)kept->at[p] + 26),
					 copy->burst.place[p].item.saddr[0]);
		}
}

static void hammer(const char *text, uint32_t reads)
{
	static struct pacer_sampler copy;
	static struct pacer_heads kept;
	struct pacer_sample_rng rng = {5};
	struct writer w = {.stop = false};
	const struct pacer_sampling *by = &prog.copy[0].policy.sampling;
	uint32_t of[3] = {0};

	prog_policy(&prog, text);
	reseed();
	*fake_ns = 1ull << 40;
	assert_int_equal(pthread_create(&w.thread, NULL, write_on, &w), 0);
	on_cpu(0);
	while (!((volatile struct pacer_sampler *)attached.sampler)[1].id)
		;
	for (uint32_t i = 0; i < reads || w.packets < HAMMERED; i++) {
		enum sample_copied copied =
		    sample_copy(&attached.sampler[1], &attached.heads[1], by, &copy, &kept);

		of[copied]++;
		if (copied != SAMPLE_TORN)
			check_copy(&copy, &kept, by, &rng);
	}
	w.stop = true;
	pthread_join(w.thread, NULL);
	print_message("%llu packets; copies: %u whole, %u behind, %u torn\n",
		      (unsigned long long)w.packets, of[SAMPLE_WHOLE], of[SAMPLE_BEHIND],
		      of[SAMPLE_TORN]);
	assert_true(of[SAMPLE_TORN] <= of[SAMPLE_WHOLE] + of[SAMPLE_BEHIND]);
}

static void test_copies(void **unused)
{
#define ALL "rules: [{name: a, limits: [{key: all, packets: 10, window: 1s}]}]\nclock: exact\n"
	(void)unused;
	if (cpus < 2 || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	hammer(ALL "sample: {of: all, k: 64, window: 10ms, snap: 64}", 2000);
	hammer(ALL "sample: {of: all, k: 64, window: 1ms, snap: 64}", 100);
	hammer(ALL "sample: {of: all, k: 64, packets: 1000, snap: 64}", 30000);
}

static int setup(void **state)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	struct bpf_object *obj;
	char path[300];

	snprintf(path, sizeof(path), "%s/prog/pacer_fake.bpf.o", build);
	libbpf_set_print(prog_print);
	obj = bpf_object__open_file(path, NULL);
	assert_non_null(obj);
	cpus = libbpf_num_possible_cpus();
	assert_int_equal(built_samples(obj, cpus, &attached.sampler, &attached.heads), 0);
	attached.n_samplers = cpus;
	prog_load(&prog, obj, PROG_LINES);
	oracle_seed(60); /* which keys fall together decides how many are denied */
	for (uint32_t i = 0; i < PACER_SECRETS; i++)
		prog.control->secret[0][i] = draw();
	attached.control = prog.control;
	attached.copy = prog.copy;
	fake_ns = prog_mmap(obj, ".data.clock");
	lines = aligned_alloc(64, prog.n_lines * sizeof(*lines));
	assert_non_null(lines);
	*state = obj;
	return 0;
}

static int teardown(void **state)
{
	bpf_object__close(*state);
	free(lines);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same),    cmocka_unit_test(test_second_copy),
	    cmocka_unit_test(test_uniform), cmocka_unit_test(test_marks),
	    cmocka_unit_test(test_copies),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
