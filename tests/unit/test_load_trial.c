/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The process behind a trial: it has nothing of who called it, follows its pacer for as long as the
 * trial goes on, and takes it off if that has lapsed. What it does it writes where the test sees
 * it.
 */
#include "oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "live/detach.h"
#include "live/copies.h"
#include "live/load_trial.h"

#define LOOKS 4 /* that a trial lasts, at most */

/* One for all processes. */
static struct shared {
	bool no_null, no_lock;
	int forks_left;	     /* until there is no room for a process; -1: there is */
	int64_t site[LOOKS]; /* what is on the interface at each look; -1: unknown */
	bool gone[LOOKS];    /* is the pacer, if that is looked for? */
	bool lapsed;	     /* at its end */
	unsigned int looks, slept, taken_off;
	bool closed;		  /* its files, whose numbers others may have */
	bool own[3];		  /* is that file the caller's? */
	uint32_t state[LOOKS];	  /* of the pacer that is found at each look; 0: none is */
	uint32_t program;	  /* that was taken off */
	char ifname[IF_NAMESIZE]; /* from there */
	bool renamed;
} * shared;

static struct policy_error error;

pid_t __real_fork(void);
pid_t __wrap_fork(void);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

pid_t __wrap_fork(void)
{
	if (shared->forks_left == 0) {
		errno = EAGAIN;
		return -1;
	}
	shared->forks_left--;
	return __real_fork();
}

/* What coverage counts is a file, too. */
int __wrap_open(const char *path, int flags, ...)
{
	va_list more;
	int mode;

	if (shared && shared->no_null && !strcmp(path, "/dev/null")) {
		errno = EMFILE;
		return -1;
	}
	va_start(more, flags);
	mode = flags & O_CREAT ? va_arg(more, int) : 0;
	va_end(more);
	return __real_open(path, flags, mode);
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	shared->slept++;
	return 0;
}

/* The trial lasts as long as there are looks. */
uint64_t copies_pending_ns(const struct attached *a)
{
	struct stat st;

	(void)a;
	for (int fd = 0; fd < 3; fd++)
		shared->own[fd] = !fstat(fd, &st) && S_ISFIFO(st.st_mode);
	return shared->looks < LOOKS ? 5000000000ull : 0;
}

int64_t site_id(int ifindex)
{
	(void)ifindex;
	return shared->site[shared->looks++];
}

bool attached_gone(const struct attached *a)
{
	(void)a;
	return shared->gone[shared->looks - 1];
}

#define STATE	30
#define PROGRAM 40 /* that was loaded; another is one more a look */
#define RENAMED "eth7"

int attached_find(const char *ifname, struct attached *a, struct policy_error *why)
{
	unsigned int look = shared->looks - 1;

	if (!shared->state[look])
		return policy_fail(why, 0, "it cannot be read");
	assert_string_equal(ifname, shared->renamed ? RENAMED : "eth0");
	*a = (struct attached){.control_id = shared->state[look], .prog_id = PROGRAM + look};
	return 0;
}

void attached_release(struct attached *a)
{
	(void)a;
}

void attached_close_files(struct attached *a)
{
	a->prog_fd = -1;
	shared->closed = true;
}

char *__wrap_if_indextoname(unsigned int ifindex, char *ifname);

char *__wrap_if_indextoname(unsigned int ifindex, char *ifname)
{
	assert_int_equal(ifindex, 1);
	return shared->renamed ? strcpy(ifname, RENAMED) : NULL;
}

int copies_lock_still(struct attached *a, struct policy_error *why)
{
	(void)a;
	return shared->no_lock ? policy_fail(why, 0, "no lock")
			       : __real_open("/", O_RDONLY | O_CLOEXEC);
}

bool load_trial_lapsed(const struct attached *a)
{
	(void)a;
	return shared->lapsed;
}

int detach_this(const struct attached *a, struct policy_error *why)
{
	(void)why;
	shared->taken_off++;
	shared->program = a->prog_id;
	snprintf(shared->ifname, sizeof(shared->ifname), "%s", a->ifname);
	return 0;
}

static struct attached pacer = {
    .ifname = "eth0", .site_id = 7, .ifindex = 1, .control_id = STATE, .prog_id = PROGRAM};

/* With a pipe for each of the first three files; this process is who waits for the other's end. */
static int watch(void)
{
	int was[3], ends[2], result, status;

	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	for (int fd = 0; fd < 3; fd++) {
		was[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
		dup2(ends[fd != 0], fd);
	}
	result = load_trial_watch(&pacer, &error);
	for (int fd = 0; fd < 3; fd++) {
		if (was[fd] >= 0)
			dup2(was[fd], fd);
		close(was[fd]);
	}
	close(ends[0]);
	close(ends[1]);
	while (waitpid(-1, &status, 0) > 0)
		assert_int_equal(status, 0);
	return result;
}

static void begin(void)
{
	memset(shared, 0, sizeof(*shared));
	shared->forks_left = -1;
	for (int i = 0; i < LOOKS; i++)
		shared->site[i] = pacer.site_id;
}

static void test_nothing_of_the_caller(void **unused)
{
	(void)unused;
	for (int no_null = 0; no_null < 2; no_null++) {
		begin();
		shared->no_null = no_null;
		assert_int_equal(watch(), 0);
		assert_int_equal(shared->looks, LOOKS);
		assert_true(shared->closed);
		assert_false(shared->own[0] || shared->own[1] || shared->own[2]);
	}
}

/* What is on the interface, whether the pacer is gone, and so many looks. */
static const struct {
	int64_t site[LOOKS];
	bool gone[LOOKS], lapsed;
	unsigned int looks, taken_off;
} courses[] = {
    {{7, 7, 7, 7}, {0}, true, LOOKS, 1},
    {{7, 7, 7, 7}, {[3] = true}, true, LOOKS, 0},	  /* at the last moment */
    {{7, 7, 7, 7}, {0}, false, LOOKS, 0},		  /* it was confirmed */
    {{7, -1, 7, 7}, {true, true, true}, true, LOOKS, 1},  /* it could not be looked at once */
    {{7, 8, 8, 8}, {false, false, true}, true, LOOKS, 1}, /* another dispatcher calls it */
    {{7, 0, 0, 0}, {false, true, true, true}, false, 2, 0},
};

static void test_courses(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(courses); i++) {
		begin();
		memcpy(shared->site, courses[i].site, sizeof(shared->site));
		memcpy(shared->gone, courses[i].gone, sizeof(shared->gone));
		shared->lapsed = courses[i].lapsed;
		assert_int_equal(watch(), 0);
		if (shared->looks != courses[i].looks || shared->taken_off != courses[i].taken_off)
			fail_msg("course %zu: %u looks, %u", i, shared->looks, shared->taken_off);
	}
}

/* Another name, and another program over the same state, or over other state. */
static void test_another(void **unused)
{
	(void)unused;
	for (int renamed = 0; renamed < 2; renamed++)
		for (int other = 0; other < 2; other++) {
			begin();
			shared->renamed = renamed;
			shared->lapsed = true;
			shared->site[1] = shared->site[2] = shared->site[3] = 8;
			for (int i = 0; i < LOOKS; i++)
				shared->state[i] = STATE + other;
			assert_int_equal(watch(), 0);
			assert_int_equal(shared->looks, other ? 2 : LOOKS);
			assert_int_equal(shared->taken_off, !other);
			if (other)
				continue;
			assert_int_equal(shared->program, PROGRAM + LOOKS - 1);
			assert_string_equal(shared->ifname, renamed ? RENAMED : "eth0");
		}
}

static void test_taken_off_under_the_lock(void **unused)
{
	(void)unused;
	begin();
	shared->lapsed = true;
	shared->no_lock = true;
	assert_int_equal(load_trial_take_off(&pacer, &error), -1);
	assert_int_equal(shared->taken_off, 0);
	shared->no_lock = false;
	shared->lapsed = false; /* another was faster */
	assert_int_equal(load_trial_take_off(&pacer, &error), 0);
	assert_int_equal(shared->taken_off, 0);
}

/* The first or the second process cannot be had. */
static void test_no_process(void **unused)
{
	(void)unused;
	for (int forks = 0; forks < 2; forks++) {
		begin();
		shared->forks_left = forks;
		assert_int_equal(watch(), -1);
		assert_ptr_equal(strstr(error.text, "eth0: no process waits for the trial to end"),
				 error.text);
		assert_int_equal(shared->looks, 0);
	}
	begin(); /* what is counted as this ends takes a process, too */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nothing_of_the_caller),
	    cmocka_unit_test(test_courses),
	    cmocka_unit_test(test_another),
	    cmocka_unit_test(test_taken_off_under_the_lock),
	    cmocka_unit_test(test_no_process),
	};

	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
