/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a kernel made of memory, for what of user/ changes a pacer at work: its maps, its clock,
 * its membarrier. What waits for the kernel waits here for grace_hook, so that the order of what is
 * written before and after can be seen, every time.
 *
 * To be linked with -Wl,--wrap=syscall,--wrap=open.
 */
#ifndef PACER_TEST_KERNEL_H
#define PACER_TEST_KERNEL_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "oracle.h"

#define KERNEL_CPUS    3
#define KERNEL_ENTRIES PACER_COUNTERS_MAX
#define KERNEL_KEY     24 /* bytes, at most */

enum kernel_map {
	KERNEL_COUNTS = 40,
	KERNEL_LEASES,
	KERNEL_ALLOW4,
	KERNEL_ALLOW6,
	KERNEL_SHADOW4,
	KERNEL_SHADOW6,
	KERNEL_SET_HITS,
	KERNEL_MAPS
};

/* Keys to values; an array's value is 0 until it is written. */
struct kernel_map_of {
	size_t key_bytes, value_bytes;
	size_t n;
	struct {
		uint8_t key[KERNEL_KEY];
		void *value;
	} at[KERNEL_ENTRIES];
};

static struct kernel_map_of kernel_maps[KERNEL_MAPS];
static uint64_t kernel_now_ns;
static unsigned int graces;
static void (*grace_hook)(void); /* befalls within a grace period; NULL: nothing */

static inline void kernel_map_new(enum kernel_map fd, size_t key_bytes, size_t value_bytes)
{
	struct kernel_map_of *m = &kernel_maps[fd];

	for (size_t i = 0; i < m->n; i++)
		free(m->at[i].value);
	*m = (struct kernel_map_of){.key_bytes = key_bytes, .value_bytes = value_bytes};
}

static inline struct kernel_map_of *kernel_map_at(int fd)
{
	assert_in_range(fd, KERNEL_COUNTS, KERNEL_MAPS - 1);
	assert_true(kernel_maps[fd].key_bytes > 0);
	return &kernel_maps[fd];
}

static inline size_t kernel_find(const struct kernel_map_of *m, const void *key)
{
	size_t i = 0;

	while (i < m->n && memcmp(m->at[i].key, key, m->key_bytes) != 0)
		i++;
	return i;
}

static inline void *kernel_value(int fd, const void *key)
{
	struct kernel_map_of *m = kernel_map_at(fd);
	size_t i = kernel_find(m, key);

	return i < m->n ? m->at[i].value : NULL;
}

static inline int kernel_missing(void)
{
	errno = ENOENT;
	return -ENOENT;
}

/* The map of counters that the packets count in, and the tools take whole: 0 in each. */
static inline void kernel_counters_new(enum kernel_map fd, size_t value_bytes, uint32_t n)
{
	struct kernel_map_of *m = &kernel_maps[fd];

	kernel_map_new(fd, sizeof(uint32_t), value_bytes);
	for (; m->n < n; m->n++) {
		uint32_t key = (uint32_t)m->n;

		memcpy(m->at[key].key, &key, sizeof(key));
		m->at[key].value = calloc(1, value_bytes);
		assert_non_null(m->at[key].value);
	}
}

/* How many ways to wait for CPUs the kernel refuses: membarrier, and then maps of maps. */
static int kernel_refuses;
static int kernel_map_of_maps = -1; /* the last that was made */

/* Maps are made to wait by, and for nothing else. The caller closes them. */
int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 max_entries, const struct bpf_map_create_opts *opts)
{
	int fd = kernel_refuses == 1 ? memfd_create(name, MFD_CLOEXEC) : -1;

	(void)key_size;
	(void)value_size;
	(void)max_entries;
	assert_int_equal(type == BPF_MAP_TYPE_ARRAY_OF_MAPS, opts != NULL);
	assert_true(kernel_refuses);
	if (opts)
		kernel_map_of_maps = fd;
	errno = EPERM;
	return fd < 0 ? -EPERM : fd;
}

static unsigned int kernel_changes, kernel_fails_at; /* a change of a map, from 1; 0: none fails */
static void (*kernel_changing)(void);		     /* befalls before each; NULL: nothing */

static inline bool kernel_fails(void)
{
	if (kernel_changing)
		kernel_changing();
	if (++kernel_changes != kernel_fails_at)
		return false;
	errno = EIO;
	return true;
}

static inline long kernel_waits(void)
{
	graces++;
	if (grace_hook)
		grace_hook();
	return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	struct kernel_map_of *m;
	size_t i;

	(void)flags;
	if (fd == kernel_map_of_maps)
		return (int)kernel_waits();
	if (kernel_fails())
		return -EIO;
	m = kernel_map_at(fd);
	i = kernel_find(m, key);
	if (i == m->n) {
		assert_true(m->n < KERNEL_ENTRIES);
		memcpy(m->at[i].key, key, m->key_bytes);
		m->at[i].value = malloc(m->value_bytes);
		if (!m->at[i].value)
			return -ENOMEM;
		m->n++;
	}
	memcpy(m->at[i].value, value, m->value_bytes);
	return 0;
}

/* Of maps that are the test's own; NULL: it has none. */
static int (*kernel_other_lookup)(int fd, const void *key, void *value);

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const void *found;

	if (kernel_other_lookup && fd < KERNEL_COUNTS)
		return kernel_other_lookup(fd, key, value);
	found = kernel_value(fd, key);
	if (!found)
		return kernel_missing();
	memcpy(value, found, kernel_map_at(fd)->value_bytes);
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	struct kernel_map_of *m = kernel_map_at(fd);
	size_t i = kernel_find(m, key);

	if (kernel_fails())
		return -EIO;
	if (i == m->n)
		return kernel_missing();
	free(m->at[i].value);
	m->at[i] = m->at[--m->n];
	return 0;
}

int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	struct kernel_map_of *m = kernel_map_at(fd);
	size_t i = key ? kernel_find(m, key) + 1 : 0;

	if (i >= m->n)
		return kernel_missing();
	memcpy(next, m->at[i].key, m->key_bytes);
	return 0;
}

int libbpf_num_possible_cpus(void)
{
	return KERNEL_CPUS;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* Only the barrier's: cmocka and the sanitizers call libc's own. */
long __wrap_syscall(long number, ...)
{
	assert_int_equal(number, __NR_membarrier);
	errno = ENOSYS;
	return kernel_refuses ? -1 : kernel_waits();
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

static int kernel_no_lock;		 /* an errno */
static int kernel_lock_flags;		 /* it was asked for with, last */
static int kernel_lock = -1;		 /* its descriptor, then */
static unsigned int kernel_locks;	 /* so often */
static unsigned int kernel_meanwhile_at; /* when somebody else does this; 0: never */
static void (*kernel_meanwhile)(void);

/* The lock of all changes on this machine is not this test's. Files of its own are read alone. What
 * coverage counts is written by the compiler's library, at the end. */
int __wrap_open(const char *path, int flags, ...)
{
	if (strstr(path, ".gcda")) {
		va_list more;
		int mode;

		va_start(more, flags);
		mode = va_arg(more, int);
		va_end(more);
		return __real_open(path, flags, mode);
	}
	if (!strncmp(path, "/tmp", 4)) {
		assert_int_equal(flags & O_CREAT, 0);
		return __real_open(path, flags);
	}
	assert_string_equal(path, "/run/xdp-pacer.lock");
	kernel_lock_flags = flags;
	if (++kernel_locks == kernel_meanwhile_at)
		kernel_meanwhile();
	errno = kernel_no_lock;
	if (kernel_no_lock)
		return -1;
	kernel_lock = memfd_create("lock", MFD_CLOEXEC);
	return kernel_lock;
}

static inline void kernel_fits_between(void)
{
	fail_msg("the lock is given back in the middle, and another change fits between");
}

/* From here on a command may take the lock once; until kernel_one_turn_ends. */
static inline void kernel_one_turn(void)
{
	kernel_locks = 0;
	kernel_meanwhile_at = 2;
	kernel_meanwhile = kernel_fits_between;
}

static inline void kernel_one_turn_ends(void)
{
	assert_int_equal(kernel_locks, 1);
	kernel_meanwhile_at = 0;
}

#endif
