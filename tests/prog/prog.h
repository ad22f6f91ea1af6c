/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the real object in the kernel, its maps in reach, and one packet at a time through it by
 * BPF_PROG_TEST_RUN. A policy is changed in place, the state zeroed: one load serves many policies.
 */
#ifndef PROG_H
#define PROG_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"

#include "plan/compile.h"
#include "frame.h"
#include "outcome.h"
#include "short.h"

#define PROG_LINES	   4096u
#define PROG_RESOLUTION_NS 4000000ull
#define PROG_CPUS	   64

struct prog {
	int tools4_fd, tools6_fd;
	int fd, counts_fd, allow4_fd, allow6_fd, leases_fd, pool_leases_fd, devices_fd, cpus_fd;
	uint32_t cpus; /* possible ones */
	struct pacer_control *control;
	struct pacer_copy *copy; /* two */
	struct pacer_line *lines;
	uint64_t n_lines;
	struct pacer_throttle_state *throttle; /* PACER_THROTTLES */
	struct pacer_log *log;
	struct pacer_counters *counts, *counts_before; /* [counter][cpu] */
	struct pacer_line *lines_before;
	uint32_t reasons_seen[PACER_REASON_COUNT];
	uint32_t events_seen[PACER_EVENT_COUNT + 1]; /* the last: none */
};

static inline int prog_print(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static inline struct bpf_map *prog_map(struct bpf_object *obj, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, name);

	if (!map)
		fail_msg("the object has no map %s", name);
	return map;
}

static inline void *prog_mmap(struct bpf_object *obj, const char *name)
{
	struct bpf_map *map = prog_map(obj, name);
	long page = sysconf(_SC_PAGESIZE);
	size_t len = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *at = mmap(NULL, (len + page - 1) & -page, PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_map__fd(map), 0);

	if (at == MAP_FAILED)
		fail_msg("%s: mmap: %s", name, strerror(errno));
	return at;
}

/* Reach into a loaded object. */
static inline void prog_open(struct prog *p, struct bpf_object *obj)
{
	struct bpf_program *program = bpf_object__find_program_by_name(obj, "pacer");
	size_t counts;

	assert_non_null(program);
	memset(p, 0, sizeof(*p));
	p->fd = bpf_program__fd(program);
	p->counts_fd = bpf_map__fd(prog_map(obj, "pacer_counts"));
	p->allow4_fd = bpf_map__fd(prog_map(obj, "pacer_allow4"));
	p->allow6_fd = bpf_map__fd(prog_map(obj, "pacer_allow6"));
	p->tools4_fd = bpf_map__fd(prog_map(obj, "pacer_banned4"));
	p->tools6_fd = bpf_map__fd(prog_map(obj, "pacer_banned6"));
	p->leases_fd = bpf_map__fd(prog_map(obj, "pacer_leases"));
	p->pool_leases_fd = bpf_map__fd(prog_map(obj, "pacer_pool_leases"));
	p->devices_fd = bpf_map__fd(prog_map(obj, "pacer_devices"));
	p->cpus_fd = bpf_map__fd(prog_map(obj, "pacer_cpus"));
	p->cpus = libbpf_num_possible_cpus();
	p->control = prog_mmap(obj, ".data.control");
	p->copy = prog_mmap(obj, ".data.policy");
	p->lines = prog_mmap(obj, "pacer_lines");
	p->n_lines = bpf_map__max_entries(prog_map(obj, "pacer_lines"));
	p->log = prog_mmap(obj, "pacer_log");
	p->throttle = prog_mmap(obj, "pacer_throttles");
	assert_true(p->cpus <= PROG_CPUS);
	counts = PACER_COUNTERS_MAX * p->cpus;
	p->counts = calloc(counts, sizeof(*p->counts));
	p->counts_before = calloc(counts, sizeof(*p->counts));
	p->lines_before = calloc(p->n_lines, sizeof(*p->lines));
	assert_true(p->counts && p->counts_before && p->lines_before);
}

/* Load an opened object with a table of `lines` and a secret, and reach into it. */
static inline void prog_load(struct prog *p, struct bpf_object *obj, uint32_t lines)
{
	assert_int_equal(bpf_map__set_max_entries(prog_map(obj, "pacer_lines"), lines), 0);
	if (bpf_object__load(obj))
		fail_msg("the object does not load: run as root; see the verifier's log");
	prog_open(p, obj);
	assert_int_equal(getrandom(p->control->secret, sizeof(p->control->secret), 0),
			 sizeof(p->control->secret));
	p->control->secret_ready = PACER_SECRET_OF_TOOLS;
}

/* Compile a policy's text for this table. 0, or -1 with *error filled. */
static inline int prog_try(struct prog *p, const char *text, struct pacer_policy *bin,
			   struct policy_error *error)
{
	struct compile_host host = {PROG_RESOLUTION_NS, 1, libbpf_num_possible_cpus()};
	struct policy *policy = policy_parse(text, strlen(text), error);
	static struct plan plan;
	int result;

	if (!policy)
		return -1;
	policy->memory_bytes = p->n_lines * sizeof(struct pacer_line);
	result = compile_policy(policy, NULL, &host, bin, &plan, error);
	policy_free(policy);
	return result;
}

static inline void prog_compile(struct prog *p, const char *text, struct pacer_policy *bin)
{
	struct policy_error error = {0};

	if (prog_try(p, text, bin, &error))
		fail_msg("policy:%d: %s\n%s", error.line, error.text, text);
}

/* No state at all. */
static inline void prog_clear(struct prog *p)
{
	static const struct pacer_throttle_lease zero[PROG_CPUS];
	static const struct pacer_pool_lease none[PROG_CPUS];
	uint32_t i;

	memset(p->lines, 0, p->n_lines * sizeof(*p->lines));
	memset(p->throttle, 0, PACER_THROTTLES * sizeof(*p->throttle));
	for (i = 0; i < PACER_THROTTLES; i++)
		assert_int_equal(bpf_map_update_elem(p->leases_fd, &i, zero, BPF_ANY), 0);
	for (i = 0; i < 2 * PACER_POOLS_MAX; i++)
		assert_int_equal(bpf_map_update_elem(p->pool_leases_fd, &i, none, BPF_ANY), 0);
}

/* Of this policy from now on, with no state at all. */
static inline void prog_policy(struct prog *p, const char *text)
{
	prog_compile(p, text, &p->copy[0].policy);
	p->control->allowed[0].any = 0;
	pacer_short_arm(&p->copy[0].policy, p->control, 0);
	prog_clear(p);
	p->control->in_force = 0;
}

static inline void prog_counts(struct prog *p, struct pacer_counters *counts)
{
	static uint32_t keys[PACER_COUNTERS_MAX];
	uint32_t n = PACER_COUNTERS_MAX, out;

	if (bpf_map_lookup_batch(p->counts_fd, NULL, &out, keys, counts, &n, NULL) &&
	    errno != ENOENT)
		fail_msg("the counters cannot be read: %s", strerror(errno));
	assert_int_equal(n, PACER_COUNTERS_MAX);
}

static inline struct pacer_counters *prog_counter(struct prog *p, struct pacer_counters *counts,
						  uint32_t counter, uint32_t cpu)
{
	return &counts[counter * p->cpus + cpu];
}

/* Run the frame's first n bytes: returns the verdict, after seeing that no byte was changed. */
static inline uint32_t prog_run(struct prog *p, const uint8_t *b, uint32_t n)
{
	static uint8_t out[FRAME_MAX + 64];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = b, .data_size_in = n, .data_out = out,
		    .data_size_out = sizeof(out), .repeat = 1);

	if (bpf_prog_test_run_opts(p->fd, &opts))
		fail_msg("test_run of %u bytes: %s", n, strerror(errno));
	assert_int_equal(opts.data_size_out, n);
	assert_memory_equal(out, b, n);
	return opts.retval;
}

/* What one packet did to the counters: exactly one cell of one CPU, by one packet of n bytes. */
static inline void prog_counted(struct prog *p, uint32_t *counter, uint32_t *reason, uint32_t n)
{
	uint32_t changed = 0, i, cpu, r;

	prog_counts(p, p->counts);
	for (i = 0; i < PACER_COUNTERS_MAX; i++)
		for (cpu = 0; cpu < p->cpus; cpu++)
			for (r = 0; r < PACER_REASON_COUNT; r++) {
				struct pacer_count now = prog_counter(p, p->counts, i, cpu)->by[r];
				struct pacer_count was =
				    prog_counter(p, p->counts_before, i, cpu)->by[r];

				if (now.packets == was.packets && now.bytes == was.bytes)
					continue;
				assert_int_equal(now.packets - was.packets, 1);
				assert_int_equal(now.bytes - was.bytes, n);
				*counter = i;
				*reason = r;
				changed++;
			}
	assert_int_equal(changed, 1);
}

struct prog_judged {
	uint32_t verdict, counter;
	uint32_t outcome; /* its reason and its event: the counters tell no more */
};

/* The one event of the rule that the packet counted for, if there was one. That it was read in part
 * may stand beside another, and is told where it stands alone.
 */
static inline uint32_t prog_event(struct prog *p, uint32_t counter)
{
	uint32_t event = PACER_EVENT_COUNT, part = 0, cpu, e;

	for (cpu = 0; cpu < p->cpus; cpu++)
		for (e = 0; e < PACER_EVENT_COUNT; e++) {
			uint64_t n = prog_counter(p, p->counts, counter, cpu)->events[e] -
				     prog_counter(p, p->counts_before, counter, cpu)->events[e];

			if (!n)
				continue;
			assert_int_equal(n, 1);
			if (e == PACER_READ_IN_PART) {
				part++;
				continue;
			}
			assert_int_equal(event, PACER_EVENT_COUNT);
			event = e;
		}
	return part && event == PACER_EVENT_COUNT ? PACER_READ_IN_PART : event;
}

/* One packet: what became of it. Unless it was admitted or has banned its key, no line of state has
 * changed.
 */
static inline struct prog_judged prog_judged(struct prog *p, const uint8_t *b, uint32_t n)
{
	size_t size = p->n_lines * sizeof(*p->lines);
	struct prog_judged judged = {0};
	uint32_t reason = 0, event;

	memcpy(p->lines_before, p->lines, size);
	prog_counts(p, p->counts_before);
	judged.verdict = prog_run(p, b, n);
	prog_counted(p, &judged.counter, &reason, n);
	event = prog_event(p, judged.counter);
	if (reason != PACER_ADMIT && event != PACER_BANNED && event != PACER_BANS_FULL &&
	    memcmp(p->lines_before, p->lines, size))
		fail_msg("a packet of reason %u has changed the state", reason);
	p->reasons_seen[reason]++;
	p->events_seen[event]++;
	judged.outcome = pacer_outcome_with(reason, event);
	return judged;
}

#endif
