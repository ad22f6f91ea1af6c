/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * user/live/samples.h, over maps that are files: what the sampler needs is made where it is not
 * there, whole or not at all, whichever call fails; and what was there stays.
 */
#include "oracle.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "live/samples.h"

#define CPUS	 3
#define SAMPLERS 50 /* descriptors of maps of maps */
#define HEADS	 51

static struct {
	unsigned int n, at; /* calls so far; the one that fails, from 1; 0: none */
	int err;
} fault;

static bool there[2]; /* what the map of maps has */
static const struct sample_maps maps = {.samplers_fd = SAMPLERS, .heads_fd = HEADS};
static struct samples_made made;
static struct policy_error error;

static int falls(void)
{
	if (++fault.n != fault.at)
		return 0;
	errno = fault.err;
	return -1;
}

static bool *at(int fd)
{
	assert_true(fd == SAMPLERS || fd == HEADS);
	return &there[fd == HEADS];
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	(void)key;
	(void)value;
	errno = ENOENT;
	return *at(fd) ? 0 : -1;
}

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 max_entries, const struct bpf_map_create_opts *opts)
{
	int fd = falls() ? -1 : memfd_create(name, MFD_CLOEXEC);

	assert_true(type == BPF_MAP_TYPE_ARRAY && key_size == 4 && max_entries == CPUS);
	assert_true(opts->map_flags == (BPF_F_MMAPABLE | BPF_F_INNER_MAP));
	if (fd >= 0)
		assert_int_equal(ftruncate(fd, (off_t)value_size * max_entries), 0);
	return fd;
}

/* Each CPU's sampler has drawn its seed by the time that packets may use it. */
static void must_be_seeded(int fd)
{
	static struct pacer_sampler is, seeded;
	uint64_t seed;

	memset(&seed, 0x5a, sizeof(seed));
	pacer_sampler_init(&seeded, seed);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		assert_int_equal(pread(fd, &is, sizeof(is), cpu * (off_t)sizeof(is)), sizeof(is));
		assert_memory_equal(&is, &seeded, sizeof(is));
	}
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	(void)key;
	(void)flags;
	assert_true(*(const int *)value >= 0);
	if (fd == SAMPLERS)
		must_be_seeded(*(const int *)value);
	if (falls())
		return -1;
	*at(fd) = true;
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	(void)key;
	*at(fd) = false;
	return 0;
}

ssize_t getrandom(void *buf, size_t n, unsigned int flags)
{
	(void)flags;
	memset(buf, 0x5a, n);
	return falls() ? -1 : (ssize_t)n;
}

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* With or without the heads of packets; what is there before is said by two bits. */
static int make(bool snap, int before, unsigned int fault_at, int err)
{
	const struct pacer_sampling sampling = {.reasons = 1, .snap = snap ? 64 : 0};

	there[0] = before & 1;
	there[1] = before & 2;
	fault.n = 0;
	fault.at = fault_at;
	fault.err = err;
	return samples_make(&maps, &sampling, CPUS, &made, &error);
}

static void test_made_where_it_is_not(void **unused)
{
	(void)unused;
	for (int snap = 0; snap < 2; snap++)
		for (int before = 0; before < 4; before++) {
			bool heads = snap && !(before & 2);

			assert_int_equal(make(snap, before, 0, 0), 0);
			assert_true(made.samplers == !(before & 1) && made.heads == heads);
			assert_true(there[0] && there[1] == (snap || before & 2));
			samples_undo(&maps, &made);
			assert_true(there[0] == (before & 1) && there[1] == !!(before & 2));
		}
}

static void test_whole_or_not_at_all(void **unused)
{
	static const int errs[] = {ENOMEM, EPERM};

	(void)unused;
	for (int before = 0; before < 4; before++) {
		unsigned int n;

		assert_int_equal(make(true, before, 0, 0), 0);
		n = fault.n;
		for (unsigned int i = 1; i <= n; i++) {
			int files = open_files(), err = errs[i % 2];

			assert_int_equal(make(true, before, i, err), -1);
			assert_string_equal(
			    error.text,
			    err == ENOMEM ? "the samples of 3 CPUs cannot be made: Cannot allocate "
					    "memory: leave sample out"
					  : "the samples of 3 CPUs cannot be made: Operation not "
					    "permitted");
			assert_true(there[0] == (before & 1) && there[1] == !!(before & 2));
			assert_int_equal(open_files(), files);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_made_where_it_is_not),
	    cmocka_unit_test(test_whole_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
