/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events on their way to the operator's command and to the journal: what is handed on is whole, and
 * what is not is counted, wherever a call or an allocation fails. Nothing is left open.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/events_pass.h"
#include "live/descriptors.h"
#include "live/ends.h"
#include "live/host.h"
#include "starved.h"

static struct {
	uint64_t ns, step_ns; /* and by how much it goes on at each look */
	bool no_pipe, no_fork, no_socket, refuses;
	unsigned int stands; /* so many calls find that the journal stands still */
	unsigned int sent;
	char fields[4096]; /* of the last entry, a line each */
} now;

static const struct event event = {.kind = EVENT_START,
				   .rule = "dns",
				   .key = "192.0.2.1",
				   .so_far = {.denied = 7, .denied_bytes = 70}};
static const struct event_place place = {"eth0", 0};

uint64_t host_now_ns(void)
{
	return now.ns += now.step_ns;
}

int access(const char *path, int mode)
{
	if (strcmp(path, "/run/systemd/journal/socket") != 0)
		return faccessat(AT_FDCWD, path, mode, 0);
	return now.no_socket ? -1 : 0;
}

int pipe2(int fd[2], int flags)
{
	if (now.no_pipe || pipe(fd))
		return -1;
	for (int i = 0; i < 2; i++)
		fcntl(fd[i], F_SETFD, flags & O_CLOEXEC ? FD_CLOEXEC : 0);
	return 0;
}

pid_t _Fork(void);

pid_t fork(void)
{
	return now.no_fork ? -1 : _Fork();
}

int sd_journal_sendv(const struct iovec *at, int n)
{
	const struct timespec long_enough = {.tv_sec = 5};
	size_t len = 0;

	now.sent++;
	if (now.stands) {
		now.stands--;
		return nanosleep(&long_enough, NULL) ? -EINTR : -ETIMEDOUT;
	}
	for (int i = 0; i < n; i++)
		len += snprintf(now.fields + len, sizeof(now.fields) - len, "%.*s\n",
				(int)at[i].iov_len, (const char *)at[i].iov_base);
	return now.refuses ? -ENOBUFS : 0;
}

static unsigned int files_open(void)
{
	DIR *at = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(at))
		n++;
	closedir(at);
	return n;
}

static int begin(void **unused)
{
	(void)unused;
	memset(&now, 0, sizeof(now));
	now.ns = 1000000000;
	return 0;
}

static void pass(struct events_pass *p, const char *json)
{
	events_pass(p, &event, &place, "a line", json);
}

/* Until all have ended and were buried. */
static void bury(struct events_pass *p)
{
	for (int i = 0; i < EVENTS_PASS_MAX; i++)
		while (p->running[i].pid)
			events_tidy(p);
}

/* The command gets the event as JSON, and its words in the environment; none of them is an older
 * one's. */
static void test_a_command(void **unused)
{
	char path[] = "/tmp/xdp-pacer-test.XXXXXX", command[256], text[512];
	struct events_pass p = {.command = command};
	int fd = mkstemp(path);
	ssize_t n;

	(void)unused;
	snprintf(command, sizeof(command),
		 "{ cat; env | grep XDP_PACER_ | sort; } >%s; echo to stderr", path);
	setenv("XDP_PACER_WHO", "x", 1);
	pass(&p, "{\"a\":1}");
	bury(&p);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = 0;
	assert_string_equal(text, "{\"a\":1}\n"
				  "XDP_PACER_EVENT=start\n"
				  "XDP_PACER_INTERFACE=eth0\n"
				  "XDP_PACER_KEY=192.0.2.1\n"
				  "XDP_PACER_RULE=dns\n"
				  "XDP_PACER_TEXT=a line\n"
				  "XDP_PACER_WHO=x\n");
	assert_int_equal(p.lost, 0);
	close(fd);
	unlink(path);
}

/* It begins with the signals as they are of themselves, whatever is ignored here. */
static void test_signals_of_a_command(void **unused)
{
	char path[] = "/tmp/xdp-pacer-test.XXXXXX", command[256], text[512];
	struct events_pass p = {.command = command};
	int fd = mkstemp(path);
	ssize_t n;

	(void)unused;
	snprintf(command, sizeof(command), "grep SigIgn: /proc/self/status >%s", path);
	signal(SIGXFSZ, SIG_IGN);
	pass(&p, "{}");
	bury(&p);
	signal(SIGXFSZ, SIG_DFL);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = 0;
	assert_true(strstr(text, "SigIgn:") == text);
	assert_false(strtoull(text + strlen("SigIgn:"), NULL, 16) >> (SIGXFSZ - 1) & 1);
	close(fd);
	unlink(path);
}

/* It may have as many descriptors as this had at first: it may call select(). */
static void test_descriptors_of_a_command(void **unused)
{
	char path[] = "/tmp/xdp-pacer-test.XXXXXX", command[256], text[64];
	struct events_pass p = {.command = command};
	int fd = mkstemp(path);
	struct rlimit had, is;
	ssize_t n;

	(void)unused;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
	is = (struct rlimit){64, had.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &is), 0);
	descriptors_raise();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &is), 0);
	assert_int_equal(is.rlim_cur, had.rlim_max);
	assert_int_equal(is.rlim_max, had.rlim_max);
	snprintf(command, sizeof(command), "ulimit -S -n >%s", path);
	pass(&p, "{}");
	bury(&p);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = 0;
	assert_string_equal(text, "64\n");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
	close(fd);
	unlink(path);
}

/* One that takes too long is ended, with what it has begun; meanwhile its place is taken. */
static void test_places(void **unused)
{
	struct events_pass p = {.command = "sleep 1000 & sleep 1000"};

	(void)unused;
	for (int i = 0; i < EVENTS_PASS_MAX + 2; i++)
		pass(&p, "{}");
	assert_int_equal(p.waiting, 2);
	events_stop(&p);
	assert_int_equal(p.lost, 2);
	p.command = "sleep 1000 & sleep 1000";
	now.ns += EVENTS_PASS_NS;
	events_tidy(&p);
	for (int i = 0; i < EVENTS_PASS_MAX; i++)
		assert_true(p.running[i].pid && !kill(-p.running[i].pid, 0));
	now.ns++;
	bury(&p);
	pass(&p, "{}");
	assert_int_equal(p.lost, 2);
	now.ns += EVENTS_PASS_NS + 1;
	bury(&p);
}

/* What waits for a place is handed on in the end, also where all places are of some that hang. */
static void test_waits_for_a_place(void **unused)
{
	char path[] = "/tmp/xdp-pacer-test.XXXXXX", command[256], text[8 * EVENTS_PASS_MAX];
	struct events_pass p = {.command = "sleep 1000", .patient = true};
	int fd = mkstemp(path);

	(void)unused;
	for (int i = 0; i < EVENTS_PASS_MAX; i++)
		pass(&p, "{}");
	now.step_ns = EVENTS_PASS_NS / 10;
	snprintf(command, sizeof(command), "sleep 0.01; echo >>%s", path);
	p.command = command;
	for (int i = 0; i < 3 * EVENTS_PASS_MAX; i++) {
		pass(&p, "{}");
		now.step_ns = 0; /* what hung has been ended */
	}
	bury(&p);
	assert_int_equal(p.lost, 0);
	assert_int_equal(pread(fd, text, sizeof(text), 0), 3 * EVENTS_PASS_MAX);
	close(fd);
	unlink(path);
}

static void hang(struct events_pass *p)
{
	p->command = "sleep 1000";
	for (int i = 0; i < EVENTS_PASS_MAX; i++)
		pass(p, "{}");
}

static void come(struct events_pass *p, enum event_kind kind, const char *json)
{
	struct event one = {.kind = kind, .rule = kind == EVENT_BAN ? "dns" : NULL};

	events_pass(p, &one, &place, "a line", json);
}

/* What came of it, a letter each. */
static const char *handed_on(int fd)
{
	static char text[2 * EVENTS_PASS_WAIT];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return text;
}

static void end_all(struct events_pass *p)
{
	for (int i = 0; i < EVENTS_PASS_MAX; i++)
		if (p->running[i].pid)
			kill(-p->running[i].pid, SIGKILL);
	bury(p);
}

/* All others go before bans and what was lost, and each of both in the order in which they came. */
static void test_those_that_wait(void **unused)
{
	char path[] = "/tmp/xdp-pacer-test.XXXXXX", command[256];
	struct events_pass p = {.command = NULL};
	int fd = mkstemp(path);

	(void)unused;
	snprintf(command, sizeof(command),
		 "{ cat; env | grep -c XDP_PACER_RULE; } | tr -d '\\n' >>%s", path);
	hang(&p);
	come(&p, EVENT_BAN, "a");
	come(&p, EVENT_START, "b");
	come(&p, EVENT_LOST, "c");
	come(&p, EVENT_BANS_FULL, "d");
	come(&p, EVENT_BAN, "e");
	come(&p, EVENT_END, "f");
	assert_int_equal(p.waiting, 6);
	p.command = command;
	kill(-p.running[0].pid, SIGKILL); /* one place for all: they go one after the other */
	while (p.waiting || p.running[0].pid)
		events_tidy(&p);
	assert_string_equal(handed_on(fd), "b0d0f0a1c0e1");
	assert_int_equal(p.lost, 0);
	end_all(&p);
	close(fd);
	unlink(path);
}

/* No more wait than there is room for; of bans half as many. */
static void test_room_to_wait(void **unused)
{
	char path[] = "/tmp/xdp-pacer-test.XXXXXX", command[256];
	struct events_pass p = {.command = NULL};
	size_t starts = 0, bans = 0;
	int fd = mkstemp(path);

	(void)unused;
	hang(&p);
	for (int i = 0; i <= EVENTS_PASS_WAIT / 2; i++)
		come(&p, EVENT_BAN, "b");
	assert_int_equal(p.lost, 1);
	for (int i = 0; i <= EVENTS_PASS_WAIT / 2; i++)
		come(&p, EVENT_START, "s");
	assert_int_equal(p.lost, 2);
	assert_int_equal(p.waiting, EVENTS_PASS_WAIT);
	snprintf(command, sizeof(command), "tr -d '\\n' >>%s", path);
	p.command = command;
	for (int i = 0; i < EVENTS_PASS_MAX; i++)
		kill(-p.running[i].pid, SIGKILL);
	while (p.waiting)
		events_tidy(&p);
	bury(&p);
	for (const char *at = handed_on(fd); *at; at++) {
		starts += *at == 's';
		bans += *at == 'b';
	}
	assert_int_equal(starts, EVENTS_PASS_WAIT / 2);
	assert_int_equal(bans, EVENTS_PASS_WAIT / 2);
	hang(&p);
	come(&p, EVENT_BAN, "b"); /* there is room again */
	come(&p, EVENT_START, "s");
	assert_int_equal(p.lost, 2);
	events_stop(&p);
	assert_int_equal(p.lost, 4);
	end_all(&p);
	close(fd);
	unlink(path);
}

/* One that cannot be begun in its turn is lost, and one that cannot be kept. */
static void test_waits_in_vain(void **unused)
{
	struct events_pass p = {.command = NULL};

	(void)unused;
	hang(&p);
	pass(&p, "{}");
	pass(&p, "{}");
	starved_from(1, false);
	memory.on = true;
	pass(&p, "{}");
	memory.on = false;
	assert_int_equal(p.waiting, 2);
	assert_int_equal(p.lost, 1);
	now.no_fork = true;
	end_all(&p);
	assert_int_equal(p.waiting, 0);
	assert_int_equal(p.lost, 3);
}

static void test_what_fails(void **unused)
{
	struct events_pass p = {.command = "true"};
	unsigned int before = files_open();
	char *json = malloc(1 << 20);

	(void)unused;
	now.no_pipe = true;
	pass(&p, "{}");
	assert_int_equal(p.lost, 1);
	now.no_pipe = false;
	now.no_fork = true;
	pass(&p, "{}");
	assert_int_equal(p.lost, 2);
	now.no_fork = false;
	memset(json, 'x', (1 << 20) - 1); /* more than a pipe holds */
	json[(1 << 20) - 1] = 0;
	pass(&p, json);
	assert_int_equal(p.lost, 3);
	json[65536] = 0; /* but for the end of its line */
	pass(&p, json);
	assert_int_equal(p.lost, 4);
	free(json);
	for (int i = 0; i < EVENTS_PASS_MAX; i++)
		assert_int_equal(p.running[i].pid, 0);
	assert_int_equal(files_open(), before);
}

static const char whole[] = "MESSAGE=a line\n"
			    "MESSAGE_ID=5628acfec8a048a39d04e3f80d0c1591\n"
			    "PRIORITY=4\n"
			    "SYSLOG_IDENTIFIER=xdp-pacer\n"
			    "XDP_PACER_EVENT=start\n"
			    "XDP_PACER_INTERFACE=eth0\n"
			    "XDP_PACER_RULE=dns\n"
			    "XDP_PACER_KEY=192.0.2.1\n"
			    "XDP_PACER_PACKETS=7\n"
			    "XDP_PACER_BYTES=70\n"
			    "XDP_PACER_JSON={}\n";

static void test_the_journal(void **unused)
{
	struct events_pass p = {.journal = true};
	struct event change = {.kind = EVENT_CHANGE, .who = "root"};

	(void)unused;
	pass(&p, "{}");
	assert_memory_equal(now.fields, whole,
			    strlen(whole)); /* and where in this program it was */
	events_pass(&p, &change, &place, "a line", "{}");
	assert_non_null(strstr(now.fields, "XDP_PACER_WHO=root\n"));
	assert_non_null(strstr(now.fields, "PRIORITY=5\n"));
	assert_null(strstr(now.fields, "XDP_PACER_RULE"));
	for (int kind = 0; kind < EVENT_KINDS; kind++) {
		static const bool alarms[EVENT_KINDS] = {
		    [EVENT_START] = true, [EVENT_KEY_START] = true, [EVENT_SHARING] = true,
		    [EVENT_LOST] = true,  [EVENT_BANS_FULL] = true, [EVENT_GONE] = true};
		struct event one = {.kind = kind};

		events_pass(&p, &one, &place, "a line", "{}");
		assert_non_null(strstr(now.fields, alarms[kind] ? "PRIORITY=4" : "PRIORITY=5"));
	}
	assert_int_equal(p.lost_journal, 0);
	now.refuses = true;
	pass(&p, "{}");
	assert_int_equal(p.lost_journal, 1);
	now.no_socket = true;
	pass(&p, "{}");
	assert_int_equal(p.lost_journal, 2);
	assert_int_equal(now.sent, 3 + EVENT_KINDS);
}

/* The clock is as it was, and so is what it does. */
static void nothing_interrupts(void)
{
	struct itimerval timer;
	struct sigaction action;

	assert_int_equal(getitimer(ITIMER_REAL, &timer), 0);
	assert_false(timer.it_value.tv_sec || timer.it_value.tv_usec);
	assert_int_equal(sigaction(SIGALRM, NULL, &action), 0);
	assert_ptr_equal(action.sa_handler, SIG_DFL);
}

/* A journal that stands still for a while gets it then. */
static void test_a_journal_that_stands_still(void **unused)
{
	struct events_pass p = {.journal = true};

	(void)unused;
	assert_int_equal(ends_hold(ENDS_OF_SERVICE), 0);
	now.stands = 3;
	pass(&p, "{}");
	assert_int_equal(now.sent, 4);
	assert_memory_equal(now.fields, whole, strlen(whole));
	assert_int_equal(p.lost_journal, 0);
	nothing_interrupts();
	ends_release();
}

/* It is not waited for once an end has come, and nothing more is sent: what was not is counted. */
static void test_a_journal_that_stands_still_at_the_end(void **unused)
{
	const struct timespec at_once = {0};
	struct events_pass p = {.journal = true};
	sigset_t ends;

	(void)unused;
	assert_int_equal(ends_hold(ENDS_OF_SERVICE), 0);
	pass(&p, "{}");
	raise(SIGTERM);
	pass(&p, "{}"); /* the journal is well */
	assert_int_equal(p.lost_journal, 0);
	now.stands = 100;
	pass(&p, "{}");
	assert_int_equal(now.sent, 3);
	assert_int_equal(p.lost_journal, 1);
	assert_true(ends_came()); /* for others, too */
	now.stands = 0;
	pass(&p, "{}");
	assert_int_equal(now.sent, 3);
	assert_int_equal(p.lost_journal, 2);
	nothing_interrupts();
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	assert_int_equal(sigtimedwait(&ends, NULL, &at_once), SIGTERM);
	ends_release();
}

/* Without memory for one of its fields, none of it is sent. */
static void test_no_memory(void **unused)
{
	struct events_pass p = {.journal = true};
	uint32_t n;

	(void)unused;
	starved_from(0, false);
	memory.on = true;
	pass(&p, "{}");
	memory.on = false;
	n = memory.n;
	assert_true(n >= 11);
	for (uint32_t i = 1; i <= n; i++) {
		starved_from(i, false);
		memory.on = true;
		pass(&p, "{}");
		memory.on = false;
		assert_int_equal(now.sent + p.lost_journal, i + 1);
		assert_memory_equal(now.fields, whole, strlen(whole));
	}
	assert_true(p.lost_journal >= 11 && now.sent > 0); /* some memory it can do without */
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_a_command),
	    TEST(test_signals_of_a_command),
	    TEST(test_descriptors_of_a_command),
	    TEST(test_places),
	    TEST(test_waits_for_a_place),
	    TEST(test_those_that_wait),
	    TEST(test_room_to_wait),
	    TEST(test_waits_in_vain),
	    TEST(test_what_fails),
	    TEST(test_the_journal),
	    TEST(test_a_journal_that_stands_still),
	    TEST(test_a_journal_that_stands_still_at_the_end),
	    TEST(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
