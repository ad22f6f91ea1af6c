/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The machine's clocks, as the packet path reads them, from within a time namespace. The files of
 * /proc and the kernel's clocks are said here.
 */
#include "live/timens.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "live/host.h"

#define FIRST 4026531834u
#define S     1000000000ll

static struct {
	uint64_t own, children; /* the inodes of its namespaces */
	int unseen;		/* errno of looking at them, */
	int child_unseen;	/* or at that of children alone */
	bool no_proc;
	const char *offsets; /* NULL: they cannot be read */
	bool opened;
	struct timespec mono, boot, until;
	int interrupted; /* so many waits */
} on;

int __wrap_stat(const char *path, struct stat *st);
FILE *__wrap_fopen(const char *path, const char *how);
int __wrap_clock_gettime(clockid_t which, struct timespec *at);
int __wrap_clock_nanosleep(clockid_t which, int flags, const struct timespec *until,
			   struct timespec *left);

int __wrap_stat(const char *path, struct stat *st)
{
	bool own = !strcmp(path, "/proc/self/ns/time");

	if (!strcmp(path, "/proc/self/ns/mnt")) {
		errno = ENOENT;
		return on.no_proc ? -1 : 0;
	}
	assert_true(own || !strcmp(path, "/proc/self/ns/time_for_children"));
	errno = own ? on.unseen : on.child_unseen;
	*st = (struct stat){.st_ino = own ? on.own : on.children};
	return errno ? -1 : 0;
}

FILE *__wrap_fopen(const char *path, const char *how)
{
	assert_string_equal(path, "/proc/self/timens_offsets");
	assert_string_equal(how, "re");
	on.opened = true;
	errno = EACCES;
	return on.offsets ? fmemopen((void *)(uintptr_t)on.offsets, strlen(on.offsets), "r") : NULL;
}

int __wrap_clock_gettime(clockid_t which, struct timespec *at)
{
	assert_true(which == CLOCK_MONOTONIC || which == CLOCK_BOOTTIME);
	*at = which == CLOCK_MONOTONIC ? on.mono : on.boot;
	return 0;
}

int __wrap_clock_nanosleep(clockid_t which, int flags, const struct timespec *until,
			   struct timespec *left)
{
	assert_int_equal(which, CLOCK_MONOTONIC);
	assert_int_equal(flags, TIMER_ABSTIME);
	assert_null(left);
	on.until = *until;
	return on.interrupted-- > 0 ? EINTR : 0;
}

static void test_what_the_kernel_writes(void **unused)
{
	static const struct {
		const char *text;
		struct timens ahead;
	} rows[] = {
	    {"monotonic           0         0\nboottime            0         0\n", {0, 0}},
	    {"monotonic      -50000         0\nboottime            7         5\n",
	     {-50000 * S, 7 * S + 5}},
	    {"monotonic          -1 999999999\nboottime   9000000000         0\n",
	     {-1, 9000000000 * S}},
	};
	struct timens ahead;

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(timens_parse(rows[i].text, &ahead), 0);
		assert_true(ahead.monotonic_ns == rows[i].ahead.monotonic_ns);
		assert_true(ahead.boottime_ns == rows[i].ahead.boottime_ns);
	}
}

static void test_what_it_does_not(void **unused)
{
	static const char *const wrong[] = {
	    "",
	    "monotonic 1 0\n",
	    "boottime 1 0\n",
	    "monotonic 1 0\nboottime 1\n",
	    "monotonic x 0\nboottime 1 0\n",
	    "monotonic 1 -1\nboottime 1 0\n",
	    "monotonic 1 1000000000\nboottime 1 0\n",
	    "monotonic 9223372036 0\nboottime 1 0\n",
	    "monotonic 1 0\nboottime -9223372036 0\n",
	};
	struct timens ahead;

	(void)unused;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(timens_parse(wrong[i], &ahead), -1);
}

/* What the file says is of the namespace that children get. */
static void test_whose_clocks(void **unused)
{
	static const char there[] = "monotonic 3 0\nboottime 4 0\n";
	static const struct {
		uint64_t own, children;
		int unseen;
		const char *offsets;
		int64_t ahead_ns;
		const char *error;
		bool no_proc;
	} rows[] = {
	    {0, 0, ENOENT, NULL, 0, NULL, false}, /* a kernel without them */
	    {0, 0, ENOENT, there, 0,
	     "the time namespace cannot be told: /proc/self/ns: No such file or directory: mount "
	     "/proc",
	     true},
	    {FIRST, FIRST, 0, NULL, 0, NULL, false},
	    {7, 7, 0, there, 3 * S, NULL, false},
	    {0, 0, EACCES, there, 0,
	     "the time namespace cannot be told: /proc/self/ns: Permission denied", false},
	    {FIRST, 7, 0, there, 0,
	     "children would be in another time namespace, of other clocks: begin it by `unshare "
	     "--time --fork`",
	     false},
	    {7, 8, 0, there, 0,
	     "children would be in another time namespace, of other clocks: begin it by `unshare "
	     "--time --fork`",
	     false},
	    {7, 7, 0, NULL, 0,
	     "/proc/self/timens_offsets: Permission denied: how far the clocks of this time "
	     "namespace are ahead is not known",
	     false},
	    {7, 7, 0, "what", 0,
	     "/proc/self/timens_offsets: it does not say how far the clocks of this time namespace "
	     "are ahead",
	     false},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct timens ahead = {1, 1};
		struct policy_error error = {0};

		memset(&on, 0, sizeof(on));
		on.own = rows[i].own;
		on.children = rows[i].children;
		on.unseen = rows[i].unseen;
		on.no_proc = rows[i].no_proc;
		on.offsets = rows[i].offsets;
		assert_int_equal(timens_read(&ahead, &error), rows[i].error ? -1 : 0);
		assert_string_equal(error.text, rows[i].error ? rows[i].error : "");
		if (!rows[i].error)
			assert_true(ahead.monotonic_ns == rows[i].ahead_ns);
	}
}

/* That of children is what matters: its own says nothing of it. */
static void test_children_unknown(void **unused)
{
	struct policy_error error = {0};
	struct timens ahead;

	(void)unused;
	memset(&on, 0, sizeof(on));
	on.own = FIRST;
	on.child_unseen = EACCES;
	assert_int_equal(timens_read(&ahead, &error), -1);
	assert_string_equal(error.text, "the time namespace cannot be told: /proc/self/ns: "
					"Permission denied");
}

/* The machine's clocks are asked for, and waits end by the process's. */
static void test_the_machines(void **unused)
{
	static const struct {
		const char *offsets;
		struct timespec until; /* for 100.2 s of the machine */
	} rows[] = {
	    {"monotonic -50 500000000\nboottime -40 0\n", {50, 700000000}},
	    {"monotonic 50000 0\nboottime 60000 0\n", {50100, 200000000}},
	};
	struct policy_error error = {0};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct timens ahead = {0, 0};
		int64_t mono_ns, boot_ns;

		memset(&on, 0, sizeof(on));
		on.own = on.children = 7;
		on.offsets = rows[i].offsets;
		assert_int_equal(timens_parse(on.offsets, &ahead), 0);
		mono_ns = 100 * S + ahead.monotonic_ns;
		boot_ns = 200 * S + ahead.boottime_ns;
		on.mono = (struct timespec){mono_ns / S, mono_ns % S};
		on.boot = (struct timespec){boot_ns / S, boot_ns % S};
		assert_int_equal(host_begin(&error), 0);
		assert_true(host_now_ns() == 100 * S);
		assert_true(host_boot_ns() == 200 * S);
		on.interrupted = 1;
		host_wait_until(100 * S + S / 5);
		assert_int_equal(on.interrupted, -1);
		assert_int_equal(on.until.tv_sec, rows[i].until.tv_sec);
		assert_int_equal(on.until.tv_nsec, rows[i].until.tv_nsec);
	}
	on.offsets = NULL;
	assert_int_equal(host_begin(&error), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_the_kernel_writes), cmocka_unit_test(test_what_it_does_not),
	    cmocka_unit_test(test_whose_clocks),	   cmocka_unit_test(test_children_unknown),
	    cmocka_unit_test(test_the_machines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
