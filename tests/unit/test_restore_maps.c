/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps that a restored pacer begins with: all of the state is in them, or it is said which
 * could not be made, and no descriptor stays open. The kernel's maps are files in memory here, of
 * which any call may fail.
 */
#include "oracle.h"
#include "starved.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live/restore.h"

#define CPUS  3
#define LINES 64

/* In the place of libbpf's: what the object has, and what it is given. */
struct bpf_map {
	const char *name;
	uint32_t key_bytes, value_bytes, entries;
	int fd; /* -1: the object's own */
};

static struct bpf_map lines = {"lines", 4, sizeof(struct pacer_line), 1, -1};
static struct bpf_map throttles = {"throttles", 4, sizeof(struct pacer_throttle_state), 1, -1};
static struct bpf_map counts = {"counts", 4, sizeof(struct pacer_counters), PACER_COUNTERS_MAX, -1};
static struct bpf_map set_counts = {"set_counts", 4, sizeof(struct pacer_set_count),
				    PACER_SET_COUNTERS, -1};
static struct bpf_map allow4 = {"allow4", sizeof(struct pacer_allow4),
				sizeof(struct pacer_allow_value), 1, -1};
static struct bpf_map allow6 = {"allow6", sizeof(struct pacer_allow6),
				sizeof(struct pacer_allow_value), 1, -1};
static const struct restore_maps maps = {&lines,      &throttles, &counts,
					 &set_counts, &allow4,	  &allow6};
static struct bpf_map *const each_map[] = {&lines,	&throttles, &counts,
					   &set_counts, &allow4,    &allow6};

static uint32_t calls, fail_at; /* from 1; 0: none fails */
static int cause = EIO;		/* of the failure */
static bool unmappable;		/* what fails is the look at what the map holds */
static const char *made[64];	/* names, by descriptor */
static struct pacer_counters counted[PACER_COUNTERS_MAX];
static struct pacer_set_count counted_of_sets[PACER_SET_COUNTERS];
static struct pacer_allow6 allowed[2]; /* of IPv4, of IPv6 */
static struct pacer_allow_value allowed_value[2];
static uint32_t n_allowed[2];
static struct pacer_control control;
static struct policy_error error;
static struct state state;

static bool broken(void)
{
	if (++calls != fail_at)
		return false;
	errno = cause;
	return true;
}

const char *bpf_map__name(const struct bpf_map *map)
{
	return map->name;
}

__u32 bpf_map__key_size(const struct bpf_map *map)
{
	return map->key_bytes;
}

__u32 bpf_map__value_size(const struct bpf_map *map)
{
	return map->value_bytes;
}

__u32 bpf_map__max_entries(const struct bpf_map *map)
{
	return map->entries;
}

int bpf_map__reuse_fd(struct bpf_map *map, int fd)
{
	if (broken())
		return -EIO;
	map->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return map->fd < 0;
}

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 max_entries, const struct bpf_map_create_opts *opts)
{
	bool array = type == BPF_MAP_TYPE_ARRAY;
	int fd;

	(void)key_size;
	if (broken())
		return unmappable && array ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -EIO;
	assert_true(type == BPF_MAP_TYPE_PERCPU_ARRAY || opts->map_flags);
	fd = memfd_create(name, MFD_CLOEXEC);
	assert_in_range(fd, 0, 63);
	made[fd] = name;
	assert_int_equal(ftruncate(fd, array ? (off_t)value_size * max_entries : 1), 0);
	return fd;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const struct pacer_counters *count = value;
	const struct pacer_set_count *of_set = value;
	bool six = !strcmp(made[fd], "allow6");

	(void)flags;
	if (broken())
		return -EIO;
	if (!strcmp(made[fd], "counts")) {
		counted[*(const uint32_t *)key] = count[0];
		for (int cpu = 1; cpu < CPUS; cpu++) /* it is a sum */
			assert_int_equal(count[cpu].by[0].packets, 0);
		return 0;
	}
	if (!strcmp(made[fd], "set_counts")) {
		counted_of_sets[*(const uint32_t *)key] = of_set[0];
		for (int cpu = 1; cpu < CPUS; cpu++)
			assert_true(!of_set[cpu].packets && !of_set[cpu].bytes);
		return 0;
	}
	memcpy(&allowed[six], key, six ? sizeof(struct pacer_allow6) : sizeof(struct pacer_allow4));
	memcpy(&allowed_value[six], value, sizeof(*allowed_value));
	n_allowed[six]++;
	return 0;
}

static bool no_cpus; /* how many there are cannot be read */

int libbpf_num_possible_cpus(void)
{
	return no_cpus ? -ENOENT : CPUS;
}

/* --- a state ------------------------------------------------------------------------------- */

static const struct allow_entry entries[] = {
    {.prefix = {4, 16, {192, 0}}, .by_hand = true},
    {.prefix = {4, 24, {192, 0, 2}}, .by_hand = true, .hand_until_ns = 9},
    {.prefix = {6, 48, {0x20, 0x01, 0x0d, 0xb8}}, .by_hand = true},
};

static int begin(void **unused)
{
	(void)unused;
	assert_int_equal(state_init(&state, LINES), 0);
	memset(state.lines, 0x5a, LINES * sizeof(*state.lines));
	memset(state.throttle, 0x6b, PACER_THROTTLES * sizeof(*state.throttle));
	for (uint32_t i = 0; i < PACER_COUNTERS_MAX; i++)
		state.counter[i].by[0].packets = i + 1;
	for (uint32_t i = 0; i < PACER_SET_COUNTERS; i++)
		state.set_count[i] = (struct pacer_set_count){i + 5, i + 6};
	for (size_t i = 0; i < 3; i++)
		assert_true(allowlist_append(&state.allow, &entries[i]));
	state.secret_ready = PACER_SECRET_OF_TOOLS;
	memset(state.secret, 0x7c, sizeof(state.secret));
	return 0;
}

static void let_go(void)
{
	for (size_t i = 0; i < sizeof(each_map) / sizeof(*each_map); i++) {
		if (each_map[i]->fd >= 0)
			close(each_map[i]->fd);
		each_map[i]->fd = -1;
	}
}

static int end(void **unused)
{
	(void)unused;
	let_go();
	state_free(&state);
	return 0;
}

static int fill(uint32_t fails)
{
	calls = 0;
	fail_at = fails;
	memset(n_allowed, 0, sizeof(n_allowed));
	memset(counted, 0, sizeof(counted));
	memset(counted_of_sets, 0, sizeof(counted_of_sets));
	memset(&control, 0, sizeof(control));
	return restore_fill(&state, &maps, &control, &error);
}

static void assert_holds(const struct bpf_map *map, const void *bytes, size_t n)
{
	void *at = mmap(NULL, n, PROT_READ, MAP_SHARED, map->fd, 0);

	assert_true(at != MAP_FAILED);
	assert_memory_equal(at, bytes, n);
	munmap(at, n);
}

/* The lowest that is free. */
static int next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void test_all_is_there(void **unused)
{
	(void)unused;
	assert_int_equal(fill(0), 0);
	assert_holds(&lines, state.lines, LINES * sizeof(*state.lines));
	assert_holds(&throttles, state.throttle, PACER_THROTTLES * sizeof(*state.throttle));
	assert_memory_equal(counted, state.counter, sizeof(counted));
	assert_memory_equal(counted_of_sets, state.set_count, sizeof(counted_of_sets));
	assert_true(n_allowed[0] == 2 && n_allowed[1] == 1);
	assert_memory_equal(allowed[0].addr, entries[1].prefix.addr, 4);
	assert_memory_equal(allowed[1].addr, entries[2].prefix.addr, 16);
	assert_int_equal(allowed_value[0].hand_until_ns, 9);
	assert_int_equal(allowed_value[0].until_ns, 0); /* as the wider one says */
	assert_int_equal(allowed[0].prefixlen, PACER_ALLOW_COPY_BITS + 24);
	assert_int_equal(allowed[1].prefixlen, PACER_ALLOW_COPY_BITS + 48);
	assert_true(control.allowed[0].v4 == 2 && control.allowed[0].v6 == 1);
	assert_int_equal(control.secret_ready, PACER_SECRET_OF_TOOLS);
	assert_memory_equal(control.secret, state.secret, sizeof(control.secret));
}

/* One that was never drawn is not taken for one that nobody can guess. */
static void test_no_secret_to_go_on_with(void **unused)
{
	static const struct pacer_control none;

	(void)unused;
	state.secret_ready = PACER_SECRET_NONE;
	assert_int_equal(fill(0), 0);
	assert_int_equal(control.secret_ready, PACER_SECRET_NONE);
	assert_memory_equal(control.secret, none.secret, sizeof(none.secret));
}

/* A later state of the same, in maps that are mapped: all but the allow-list. */
static void test_once_more(void **unused)
{
	static struct pacer_line its_lines[LINES];
	static struct pacer_throttle_state its_throttles[PACER_THROTTLES];
	static struct pacer_copy copies[2];
	static struct pacer_policy bin = {.serial = 7};
	struct attached a = {.control = &control,
			     .copy = copies,
			     .lines = its_lines,
			     .n_lines = LINES,
			     .throttle = its_throttles};

	(void)unused;
	for (uint32_t late = 0; late < 2; late++) { /* the secret was drawn since, or never */
		assert_int_equal(fill(0), 0);
		a.counts_fd = counts.fd;
		a.set_hits_fd = set_counts.fd;
		made[counts.fd] = counts.name;
		made[set_counts.fd] = set_counts.name;
		memset(&control, 0, sizeof(control));
		state.secret_ready = late ? PACER_SECRET_OF_TOOLS : PACER_SECRET_NONE;
		state.counter[3].by[0].packets += 100;
		state.set_count[1].packets += 100;
		calls = 0;
		assert_int_equal(restore_again(&state, &bin, &a, &error), 0);
		assert_memory_equal(its_lines, state.lines, sizeof(its_lines));
		assert_memory_equal(its_throttles, state.throttle, sizeof(its_throttles));
		assert_memory_equal(counted, state.counter, sizeof(counted));
		assert_memory_equal(counted_of_sets, state.set_count, sizeof(counted_of_sets));
		assert_int_equal(copies[0].policy.serial, 7);
		assert_int_equal(control.secret_ready, state.secret_ready);
		assert_int_equal(copies[0].policy.rule[0].brief.home_factor,
				 late ? 0x7c7c7c7c7c7c7c7cull : 0);
		assert_true(n_allowed[0] == 2 && n_allowed[1] == 1);
		let_go();
	}
}

/* The table that was made for it is smaller: nothing is written beyond it, or into it. */
static void test_once_more_is_larger(void **unused)
{
	static struct pacer_line its_lines[LINES], none[LINES];
	struct attached a = {.ifname = "eth0", .lines = its_lines, .n_lines = LINES - 1};

	(void)unused;
	assert_int_equal(fill(0), 0);
	assert_int_equal(restore_again(&state, NULL, &a, &error), -1);
	assert_string_equal(error.text,
			    "eth0: a limit of the policy before has just ended: try again");
	assert_memory_equal(its_lines, none, sizeof(none));
	let_go();
}

static void test_once_more_fails(void **unused)
{
	static struct pacer_line its_lines[LINES], none[LINES];
	struct attached a = {.lines = its_lines, .n_lines = LINES};

	(void)unused;
	for (uint32_t of_sets = 0; of_sets < 2; of_sets++) {
		assert_int_equal(fill(0), 0);
		a.counts_fd = counts.fd;
		a.set_hits_fd = set_counts.fd;
		made[counts.fd] = counts.name;
		made[set_counts.fd] = set_counts.name;
		calls = 0;
		fail_at = of_sets ? PACER_COUNTERS_MAX + PACER_SET_COUNTERS : 1;
		assert_int_equal(restore_again(&state, NULL, &a, &error), -1);
		assert_string_equal(error.text,
				    "the counters cannot be carried over: Input/output error");
		assert_memory_equal(its_lines, none, sizeof(none));
		let_go();
	}
}

#define COUNT_MAPS 4 /* two are made, each by two calls */
#define COUNTS	   (COUNT_MAPS + PACER_COUNTERS_MAX + PACER_SET_COUNTERS)

/* What the failure of each call is. The counters are one call each. */
static const char *of_call(uint32_t n)
{
	return n <= 2		     ? "the map of state cannot be made: "
	       : n <= 4		     ? "the map of throttles cannot be made: "
	       : n <= 4 + COUNT_MAPS ? "the map of counters cannot be made: "
	       : n <= 4 + COUNTS     ? "the counters cannot be carried over: "
				     : "the map of the allow-list cannot be made: ";
}

static void must_fail(uint32_t n)
{
	const char *says = of_call(n);
	int free_fd;

	let_go();
	free_fd = next_fd();
	assert_int_equal(fill(n), -1);
	if (strncmp(error.text, says, strlen(says)) != 0)
		fail_msg("call %u: %s", n, error.text);
	let_go();
	assert_int_equal(next_fd(), free_fd);
}

static void test_each_call_fails(void **unused)
{
	uint32_t n, all;

	(void)unused;
	assert_int_equal(fill(0), 0);
	all = calls;
	assert_int_equal(all, 2 + 2 + COUNTS + 4 + 3);
	for (n = 1; n <= all; n++)
		if (n < 11 || n > all - PACER_SET_COUNTERS - 12)
			must_fail(n);
	unmappable = true; /* those that are mapped */
	must_fail(1);
	must_fail(3);
	unmappable = false;
}

static void test_no_memory_for_the_counters(void **unused)
{
	(void)unused;
	starved_from(1, false);
	memory.on = true;
	assert_int_equal(fill(0), -1);
	memory.on = false;
	assert_string_equal(error.text,
			    "the map of counters cannot be made: Cannot allocate memory");
}

static void test_no_cpus(void **unused)
{
	(void)unused;
	no_cpus = true;
	assert_int_equal(fill(0), -1);
	assert_non_null(strstr(error.text, "CPUs"));
	no_cpus = false;
}

static void test_not_permitted(void **unused)
{
	(void)unused;
	cause = EPERM;
	assert_int_equal(fill(1), -1);
	cause = EIO;
	assert_string_equal(error.text, "the map of state cannot be made: Operation not permitted: "
					"run as root");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_no_cpus), /* first, as it is read once */
	    CASE(test_all_is_there),
	    CASE(test_not_permitted),
	    CASE(test_no_secret_to_go_on_with),
	    CASE(test_once_more),
	    CASE(test_once_more_is_larger),
	    CASE(test_once_more_fails),
	    CASE(test_each_call_fails),
	    CASE(test_no_memory_for_the_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
