/* SPDX-License-Identifier: GPL-2.0-only */
/* A lock that somebody holds: the wait ends with it, or with the program, and says who it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config/file_lock.h"

#define OTHERS 64

static struct {
	char path[64];
	int other[OTHERS], n_others; /* locked files of no matter */
	pid_t holder;
	int fd;
	int read;	    /* the clock, so often; each time a second has passed */
	int releases_after; /* so many of those */
	int asked;	    /* whether the program is to end */
	int ends_after;	    /* so many of those; -1: never */
	char said[512];
	int n_said;
	int said_at; /* when the clock had been read so often */
} t;

static void end_holder(void)
{
	if (t.holder > 0) {
		kill(t.holder, SIGKILL);
		waitpid(t.holder, NULL, 0);
	}
	t.holder = 0;
}

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int result = __real_clock_gettime(clock, now);

	now->tv_sec += t.read++;
	if (t.read == t.releases_after)
		end_holder();
	return result;
}

static bool ended(void)
{
	return ++t.asked == t.ends_after;
}

static void held(const char *line)
{
	t.n_said++;
	t.said_at = t.read;
	snprintf(t.said, sizeof(t.said), "%s", line);
}

static const struct file_lock_listener listener = {ended, held};

/* Another process has it, and is stopped. */
static void hold(enum file_lock_kind kind)
{
	int status;

	t.holder = fork();
	assert_true(t.holder >= 0);
	if (!t.holder) {
		int fd = open(t.path, O_RDWR);

		_exit(file_lock(fd, kind, t.path) || raise(SIGSTOP));
	}
	assert_int_equal(waitpid(t.holder, &status, WUNTRACED), t.holder);
	assert_true(WIFSTOPPED(status));
}

static int setup(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	strcpy(t.path, "/tmp/pacer-lock-XXXXXX");
	t.fd = mkstemp(t.path);
	t.ends_after = -1;
	file_lock_listen(&listener);
	return t.fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	end_holder();
	while (t.n_others)
		close(t.other[--t.n_others]);
	file_lock_listen(NULL);
	file_lock_ends_after(FILE_LOCK_LONG_MS);
	file_lock_briefly(false);
	close(t.fd);
	return unlink(t.path);
}

static void test_a_free_lock_is_taken_at_once(void **state)
{
	(void)state;
	assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), 0);
	assert_int_equal(t.asked, 0);
}

static void test_those_that_read_do_not_wait_for_each_other(void **state)
{
	(void)state;
	hold(LOCK_TO_READ);
	assert_int_equal(file_lock(t.fd, LOCK_TO_READ, t.path), 0);
	assert_int_equal(t.asked, 0);
}

static void wait_for(enum file_lock_kind kind, enum file_lock_kind theirs)
{
	hold(theirs);
	t.releases_after = FILE_LOCK_LONG_MS / 1000;
	t.ends_after = 1;
	assert_int_equal(file_lock(t.fd, kind, t.path), 0);
	assert_true(t.read >= t.releases_after);
	assert_int_equal(t.asked, 0);
	assert_int_equal(t.n_said, 0);
}

static void test_it_waits_for_the_lock(void **state)
{
	(void)state;
	wait_for(LOCK_TO_CHANGE, LOCK_TO_READ);
}

static void test_who_reads_waits_for_a_change(void **state)
{
	(void)state;
	wait_for(LOCK_TO_READ, LOCK_TO_CHANGE);
}

static void test_it_waits_for_a_lock_of_records(void **state)
{
	(void)state;
	wait_for(LOCK_RECORDS, LOCK_RECORDS);
}

static void test_a_long_wait_names_who_is_stopped_once(void **state)
{
	char line[256];

	(void)state;
	hold(LOCK_TO_CHANGE);
	snprintf(line, sizeof(line),
		 "%s: waiting for process %d (test_file_lock), which has it locked and is stopped: "
		 "`kill "
		 "-CONT %d` lets it go on",
		 t.path, t.holder, t.holder);
	t.releases_after = 12;
	assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), 0);
	assert_int_equal(t.n_said, 1);
	assert_string_equal(t.said, line);
}

/* Another process has it, and is not stopped: it sleeps. */
static void hold_asleep(void)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	t.holder = fork();
	if (!t.holder) {
		int fd = open(t.path, O_RDWR);

		if (flock(fd, LOCK_EX) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
}

/* /proc/locks has those of each CPU together, the newest first. */
static void lock_others(void)
{
	cpu_set_t all, one;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && t.n_others < OTHERS; cpu++) {
		char path[] = "/tmp/pacer-lock-XXXXXX";

		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		t.other[t.n_others] = mkstemp(path);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(flock(t.other[t.n_others++], LOCK_EX), 0);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void test_a_long_wait_names_who_has_it(void **state)
{
	char line[256];

	(void)state;
	lock_others();
	hold_asleep();
	lock_others();
	snprintf(line, sizeof(line),
		 "%s: waiting for process %d (test_file_lock), which has it locked", t.path,
		 t.holder);
	t.ends_after = 3;
	assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(t.n_said, 1);
	assert_string_equal(t.said, line);
}

/* What is done last, after the end of the program came. */
static void test_the_last_wait_is_longer(void **state)
{
	(void)state;
	hold_asleep();
	file_lock_ends_after(10000);
	t.ends_after = 1;
	t.releases_after = 9;
	assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), 0);
	assert_int_equal(t.n_said, 1);
	assert_int_equal(t.asked, 0);
}

static void test_the_last_wait_ends(void **state)
{
	(void)state;
	hold_asleep();
	file_lock_ends_after(10000);
	t.releases_after = 20;
	t.ends_after = 1;
	assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), -1);
	assert_int_equal(errno, EINTR);
	assert_in_range(t.read, 10, 12);
}

static void test_the_last_wait_is_for_nobody_who_is_stopped(void **state)
{
	(void)state;
	hold(LOCK_TO_CHANGE);
	file_lock_ends_after(10000);
	t.ends_after = 1;
	assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(t.said_at, t.read);
}

/* Nor is who has another file locked. */
static void test_of_records_no_process_is_named(void **state)
{
	char line[256], other[] = "/tmp/pacer-other-XXXXXX";
	int fd = mkstemp(other);

	(void)state;
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(unlink(other), 0);
	hold(LOCK_RECORDS);
	snprintf(line, sizeof(line), "%s: waiting for another process, which has it locked",
		 t.path);
	t.ends_after = 3;
	assert_int_equal(file_lock(t.fd, LOCK_RECORDS, t.path), -1);
	assert_int_equal(errno, EINTR);
	assert_string_equal(t.said, line);
	close(fd);
}

/* Of the bytes of a file each is another's. */
static void test_it_waits_for_a_byte(void **state)
{
	(void)state;
	hold(LOCK_BYTE);
	assert_int_equal(lseek(t.fd, (off_t)1 << 32, SEEK_SET), (off_t)1 << 32);
	assert_int_equal(file_lock(t.fd, LOCK_BYTE, t.path), 0);
	assert_int_equal(t.read, 0);
	end_holder();
	lseek(t.fd, 0, SEEK_SET);
	wait_for(LOCK_BYTE, LOCK_BYTE);
}

/* Who has the whole file is not who has its byte. */
static void test_of_a_byte_no_process_is_named(void **state)
{
	char line[512];

	(void)state;
	assert_int_equal(flock(t.fd, LOCK_EX), 0);
	hold(LOCK_BYTE);
	t.ends_after = 1;
	assert_int_equal(file_lock(t.fd, LOCK_BYTE, t.path), -1);
	assert_int_equal(errno, EINTR);
	snprintf(line, sizeof(line), "%s: waiting for another process, which has it locked",
		 t.path);
	assert_string_equal(t.said, line);
}

/* What a parent process left blocked, its own alarm, and its timer. */
static void test_it_leaves_the_alarm_as_it_was(void **state)
{
	struct itimerval is = {{0, 0}, {3600, 0}};
	struct sigaction action;
	sigset_t mask, alarm;

	(void)state;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	setitimer(ITIMER_REAL, &is, NULL);
	hold(LOCK_TO_CHANGE);
	t.releases_after = 4;
	assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), 0);
	getitimer(ITIMER_REAL, &is);
	assert_true(is.it_value.tv_sec > 3000);
	assert_int_equal(is.it_interval.tv_usec, 0);
	sigaction(SIGALRM, NULL, &action);
	assert_true(action.sa_handler == SIG_DFL);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	assert_true(sigismember(&mask, SIGALRM));
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	sigprocmask(SIG_UNBLOCK, &alarm, NULL);
}

static void test_where_nobody_listens_it_waits(void **state)
{
	int status;

	(void)state;
	hold(LOCK_TO_CHANGE);
	file_lock_listen(NULL);
	if (!fork()) { /* once it waits */
		usleep(1000);
		kill(t.holder, SIGKILL);
		_exit(0);
	}
	assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), 0);
	while (wait(&status) > 0)
		;
	t.holder = 0;
}

static void test_a_wait_within_a_time(void **state)
{
	(void)state;
	hold(LOCK_TO_CHANGE);
	assert_int_equal(file_lock_within(t.fd, LOCK_TO_CHANGE, t.path, 10000), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(t.n_said, 1);
	assert_in_range(t.read, 10, 13);
	t.read = 0; /* and no other wait is so short */
	t.releases_after = 30;
	assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), 0);
	assert_int_equal(flock(t.fd, LOCK_UN), 0);
	t.read = 0;
	hold(LOCK_TO_CHANGE);
	t.releases_after = 5;
	assert_int_equal(file_lock_within(t.fd, LOCK_TO_CHANGE, t.path, 10000), 0);
}

/* It is given up for now; who has it is said when that has gone on for long, and once. */
static void test_a_brief_wait_is_given_up(void **state)
{
	(void)state;
	file_lock_briefly(true);
	for (int times = 1; times <= 2; times++) {
		hold(LOCK_TO_CHANGE);
		for (int i = 0; i < 9; i++) {
			assert_int_equal(
			    file_lock(t.fd, i % 2 ? LOCK_TO_CHANGE : LOCK_TO_READ, t.path), -1);
			assert_int_equal(errno, EAGAIN);
			assert_true(file_lock_given_up());
			assert_false(file_lock_given_up());
			assert_true(i ? t.n_said >= times - 1 : t.n_said == times - 1);
		}
		assert_int_equal(t.n_said, times);
		assert_non_null(strstr(t.said, "(test_file_lock), which has it locked"));
		end_holder();
		assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), 0);
		assert_false(file_lock_given_up());
		assert_int_equal(flock(t.fd, LOCK_UN), 0);
	}
	assert_int_equal(t.asked, 0);
}

/* It may come free meanwhile. */
static void test_a_brief_wait_has_the_lock(void **state)
{
	(void)state;
	file_lock_briefly(true);
	hold(LOCK_TO_CHANGE);
	t.releases_after = 1;
	assert_int_equal(file_lock(t.fd, LOCK_TO_CHANGE, t.path), 0);
	assert_false(file_lock_given_up());
}

/* What cannot be locked at all is no lock of somebody's. */
static void test_what_cannot_be_locked_is_not_given_up(void **state)
{
	(void)state;
	file_lock_briefly(true);
	assert_int_equal(file_lock(-1, LOCK_TO_CHANGE, t.path), -1);
	assert_int_equal(errno, EBADF);
	assert_false(file_lock_given_up());
}

static void test_what_cannot_be_locked_is_not_waited_for(void **state)
{
	(void)state;
	assert_int_equal(file_lock(-1, LOCK_TO_CHANGE, t.path), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(t.asked, 0);
}

#define test_of(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    test_of(test_a_free_lock_is_taken_at_once),
	    test_of(test_those_that_read_do_not_wait_for_each_other),
	    test_of(test_it_waits_for_the_lock),
	    test_of(test_who_reads_waits_for_a_change),
	    test_of(test_it_waits_for_a_lock_of_records),
	    test_of(test_a_long_wait_names_who_is_stopped_once),
	    test_of(test_a_long_wait_names_who_has_it),
	    test_of(test_the_last_wait_is_longer),
	    test_of(test_the_last_wait_ends),
	    test_of(test_the_last_wait_is_for_nobody_who_is_stopped),
	    test_of(test_of_records_no_process_is_named),
	    test_of(test_it_waits_for_a_byte),
	    test_of(test_of_a_byte_no_process_is_named),
	    test_of(test_it_leaves_the_alarm_as_it_was),
	    test_of(test_where_nobody_listens_it_waits),
	    test_of(test_what_cannot_be_locked_is_not_waited_for),
	    test_of(test_a_wait_within_a_time),
	    test_of(test_a_brief_wait_is_given_up),
	    test_of(test_a_brief_wait_has_the_lock),
	    test_of(test_what_cannot_be_locked_is_not_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
