/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `fleet` of several interfaces: whatever fails, no agent is left behind, and its end is told. The
 * agents are this test's: each is what its script says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "live/attached.h"

#define AGENTS_MAX 64

/* One agent each: '.' works until it is told to end, '!' is ready before, 'k' is killed at once,
 * 'f' fails at once, 'c' cannot be begun. 'r' is ready, and fails once all are; 't' tells the whole
 * to end, and works until it is told to. 'x' is '!', and fails as it ends. */
static const char *script;
static bool no_pipe;
static int ready;
/* The state of each interface, a letter each; '-': its pacer cannot be found. */
static const char *states;
static int held; /* pacers that were found, and not given back */
static int gone; /* so many looks at states find none, but for the first of each */
static int looks;
static int ended;
static uint64_t ended_ns;
static uint64_t paused_ns[20]; /* before each that was begun, since one ended */
static int told_after;	 /* so many ended: the next look tells the whole to end; 0: none does */
static int told_looks;	 /* ... or so many looks later */
static int told_fd = -1; /* where it comes that all are ready */
static uint64_t now_ns;
static size_t begun;
static size_t other_at;	  /* so many were begun when the states are others; 0: never */
static const char *other; /* these */

uint64_t __wrap_host_now_ns(void);
uint64_t __wrap_host_now_ns(void)
{
	return now_ns += 1000000000;
}

int __real_kill(pid_t pid, int signal);

int __wrap_attached_find(const char *ifname, struct attached *attached, struct policy_error *error);
int __wrap_attached_find(const char *ifname, struct attached *attached, struct policy_error *error)
{
	const char *now = other_at && begun >= other_at && ended ? other : states;
	char state = now[atoi(ifname + 1)];

	if (told_after && ended == told_after && told_looks-- <= 0) {
		told_after = 0;
		assert_int_equal(__real_kill(getpid(), SIGTERM), 0);
	}
	if (state == '-' || (looks++ >= (int)strlen(states) && gone-- > 0))
		return policy_fail(error, 0, "%s: it has no pacer", ifname);
	*attached = (struct attached){.control_id = (uint32_t)state};
	held++;
	return 0;
}

void __wrap_attached_release(struct attached *attached);
void __wrap_attached_release(struct attached *attached)
{
	(void)attached;
	held--;
}

int __real_pipe2(int ends[2], int flags);
int __wrap_pipe2(int ends[2], int flags);
int __wrap_pipe2(int ends[2], int flags)
{
	int result;

	if (no_pipe) {
		errno = EMFILE;
		return -1;
	}
	result = __real_pipe2(ends, flags);
	ready = ends[1];
	return result;
}

pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	pid_t result = __real_waitpid(pid, status, options);

	if (result > 0) {
		ended++;
		ended_ns = now_ns;
	}
	return result;
}

/* A mistake in what is tested must not end whoever else is there. */
int __wrap_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal)
{
	assert_true(pid > 1);
	return __real_kill(pid, signal);
}

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
	struct pollfd heard = {told_fd, POLLIN, 0};
	char is = *script++;
	sigset_t signals;
	pid_t child;
	int told;

	if (is == 'c') {
		errno = EAGAIN;
		return -1;
	}
	if (begun < sizeof(paused_ns) / sizeof(*paused_ns))
		paused_ns[begun++] = now_ns - ended_ns;
	child = __real_fork();
	if (child)
		return child;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	if (is == 'k')
		raise(SIGKILL);
	if (is == 'f')
		_exit(EXIT_FAILED);
	if ((is == '!' || is == 'x' || is == 'r') && write(ready, "", 1) != 1)
		_exit(EXIT_WRONG);
	if (is == 'r') /* several may wait for it: each by poll(), and it stays there */
		_exit(poll(&heard, 1, -1) == 1 ? EXIT_FAILED : EXIT_WRONG);
	if (is == 't')
		kill(getppid(), SIGTERM);
	sigwait(&signals, &told);
	_exit(is == 'x' ? EXIT_FAILED : EXIT_DONE);
}

/* What `fleet` of so many interfaces ends with, and what it says. */
static int fleet_of(int n_names, const char *agents, const char *state, char said[2000])
{
	static char *names[AGENTS_MAX + 1] = {"a0", "a1", "a2", "a3"};
	struct options o = {.args = names, .n_args = n_names, .state = (char *)state};
	FILE *f = tmpfile();
	int before = dup(STDERR_FILENO), code;
	size_t n;

	script = agents;
	looks = 0;
	begun = 0;
	ended = 0;
	assert_non_null(f);
	fflush(NULL);
	assert_true(dup2(fileno(f), STDERR_FILENO) >= 0);
	code = verb_fleet.run(&o);
	fflush(stderr);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	rewind(f);
	n = fread(said, 1, 1999, f);
	said[n] = 0;
	fclose(f);
	assert_int_equal(held, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left */
	assert_int_equal(errno, ECHILD);
	return code;
}

/* With a state each. */
static int fleet(const char *agents, const char *state, char said[2000])
{
	states = "abc";
	return fleet_of((int)strlen(agents), agents, state, said);
}

static void test_one_that_does_not_begin_ends_all(void **unused)
{
	static const struct {
		const char *agents, *said;
	} rows[] = {
	    {"..c", "Resource temporarily unavailable"},
	    {"c..", "Resource temporarily unavailable"},
	    {".k.", "a1: its agent was ended by signal 9"},
	    {"f..", ""},
	    {"!!f", ""},
	};
	char said[2000];

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(fleet(rows[i].agents, "/", said), EXIT_FAILED);
		assert_non_null(strstr(said, rows[i].said));
	}
	no_pipe = true;
	assert_int_equal(fleet("..", "/", said), EXIT_FAILED);
	assert_non_null(strstr(said, "Too many open files"));
	no_pipe = false;
}

static void test_told_to_end(void **unused)
{
	pid_t parent = getpid(), other;
	char said[2000];
	int status, told;

	(void)unused;
	for (int signal = SIGINT; signal; signal = signal == SIGINT ? SIGTERM : 0) {
		sigset_t signals;

		sigemptyset(&signals); /* as run_several() does, or it might come before */
		sigaddset(&signals, signal);
		sigprocmask(SIG_BLOCK, &signals, NULL);
		other = __real_fork();
		if (!other) {
			pid_t it = __real_fork(); /* whom nobody here waits for */

			if (!it)
				kill(parent, signal);
			_exit(0);
		}
		assert_int_equal(waitpid(other, &status, 0), other);
		assert_int_equal(fleet("!!", signal == SIGINT ? "/" : NULL, said), EXIT_DONE);
		assert_string_equal(said, "");
		assert_int_equal(sigwait(&signals, &told), 0); /* the next one is not to see it */
	}
}

/* Of two agents of one state each would write its own share there. */
static void test_one_agent_for_a_state(void **unused)
{
	static const struct {
		const char *states, *agents, *said;
	} rows[] = {
	    {"aa", "k",
	     "xdp-pacer: a1: has the pacer of a0: one agent is for both\n"
	     "xdp-pacer: a0: its agent was ended by signal 9\n"},
	    {"abab", ".k",
	     "xdp-pacer: a2: has the pacer of a0: one agent is for both\n"
	     "xdp-pacer: a3: has the pacer of a1: one agent is for both\n"
	     "xdp-pacer: a1: its agent was ended by signal 9\n"},
	    {"abb", "k.",
	     "xdp-pacer: a2: has the pacer of a1: one agent is for both\n"
	     "xdp-pacer: a0: its agent was ended by signal 9\n"},
	    {"--", ".k", "xdp-pacer: a1: its agent was ended by signal 9\n"}, /* each says why */
	};
	char said[2000];

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		states = rows[i].states;
		assert_int_equal(fleet_of((int)strlen(states), rows[i].agents, "/", said),
				 EXIT_FAILED);
		assert_string_equal(said, rows[i].said);
		assert_int_equal(*script, 0); /* no more were begun, and no less */
	}
}

/* What agents hear by that all are ready; and 't' is not to come before that is waited for. */
static void hear(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char name[sizeof(at.sun_path)];
	sigset_t signals;
	int len;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "test_agents.%d", (int)getpid());
	told_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(
	    bind(told_fd, (struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)),
	    0);
	snprintf(name, sizeof(name), "@%s", at.sun_path + 1);
	assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
}

/* told: it was told to end, and the next one is not to see that. */
static void hear_no_more(bool told)
{
	sigset_t signals;
	int signal;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	if (told)
		assert_int_equal(sigwait(&signals, &signal), 0);
	close(told_fd);
	unsetenv("NOTIFY_SOCKET");
}

/* One that fails is begun again, once there is a pacer, and ends no other, nor the whole. */
static void test_begun_again(void **unused)
{
	static const struct {
		const char *agents;
		int gone, code;
	} rows[] = {{"!rt", 0, EXIT_DONE},  {"r!t", 0, EXIT_DONE},   {"!rft", 0, EXIT_DONE},
		    {"!rt", 3, EXIT_DONE},  {"!rkct", 0, EXIT_DONE}, {"xrt", 0, EXIT_FAILED},
		    {"rr.t", 0, EXIT_DONE}, {"rr.t", 3, EXIT_DONE},  {"rrff.t", 0, EXIT_DONE}};
	char said[2000];

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		hear();
		gone = rows[i].gone;
		states = "ab";
		assert_int_equal(fleet_of(2, rows[i].agents, "/", said), rows[i].code);
		assert_string_equal(said, strchr(rows[i].agents, 'k')
					      ? "xdp-pacer: a1: its agent was ended by signal 9\n"
						"xdp-pacer: a1: its agent cannot be begun: "
						"Resource temporarily unavailable\n"
					      : "");
		assert_int_equal(*script, 0);
		assert_true(gone <= 0);
		hear_no_more(true);
	}
}

/* Where no interface has a pacer any more the whole ends, and who started it sees that. */
static void test_no_pacer_any_more(void **unused)
{
	char said[2000];

	(void)unused;
	hear();
	gone = INT_MAX;
	states = "ab";
	assert_int_equal(fleet_of(2, "rr", "/", said), EXIT_FAILED);
	assert_string_equal(said, "xdp-pacer: fleet: none of them has had a pacer of this version "
				  "for 10 s: load its policy, and start the agent again\n");
	assert_in_range(now_ns - ended_ns, 10000000000, 15000000000);
	hear_no_more(false);
	/* Told to end meanwhile it ends at once, and has not failed. */
	hear();
	told_after = 2;
	assert_int_equal(fleet_of(2, "rr", "/", said), EXIT_DONE);
	assert_string_equal(said, "");
	assert_in_range(now_ns - ended_ns, 0, 9000000000);
	gone = 0;
	hear_no_more(true);
}

/* Seconds until it is begun again; 3 of them are this clock's. */
static void assert_pause(size_t agent, uint64_t least_s, uint64_t most_s)
{
	assert_in_range(paused_ns[agent], least_s * 1000000000, (most_s + 3) * 1000000000);
}

/* One that fails each time is begun again ever later, but not too late, and soon at a new state. */
static void test_pauses(void **unused)
{
	char said[2000];

	(void)unused;
	hear();
	states = "ab";
	assert_int_equal(fleet_of(2, "!rffffft", "/", said), EXIT_DONE);
	assert_pause(3, 2, 2);
	assert_pause(4, 4, 4);
	for (size_t i = 5; i < 8; i++)
		assert_pause(i, 8, 8);
	hear_no_more(true);
	hear();
	other_at = 6;
	other = "cd";
	assert_int_equal(fleet_of(2, "!rffffft", "/", said), EXIT_DONE);
	assert_pause(5, 8, 8);
	assert_pause(6, 1, 1);
	assert_pause(7, 2, 2);
	other_at = 0;
	hear_no_more(true);
}

/* States are shared by others, or by none any more: each has one agent, and no interface is left.
 */
static void test_other_states(void **unused)
{
	static const struct {
		const char *states, *agents, *other;
		size_t at;
	} rows[] = {
	    {"aa", "r.t", "bc", 1},    /* each was replaced by one of its own */
	    {"aa", "r.t", "ba", 1},    /* the first alone: the other goes on with the state */
	    {"aa", "rt", "-a", 1},     /* it was taken off: the other has the state */
	    {"ab", "rrt", "cc", 2},    /* both, by one */
	    {"aba", "!r.t", "acd", 2}, /* one has left the state of one that has an agent, */
	    {"ab", "!r", "aa", 2},     /* ... or joined it: then that agent is for both */
	    {"ab", "r!", "bb", 2},
	};
	char said[2000];

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		hear();
		states = rows[i].states;
		other = rows[i].other;
		other_at = rows[i].at;
		told_after = strchr(rows[i].agents, 't') ? 0 : 1;
		told_looks = 6;
		assert_int_equal(fleet_of((int)strlen(states), rows[i].agents, "/", said),
				 EXIT_DONE);
		assert_string_equal(script, "");
		assert_int_equal(begun, strlen(rows[i].agents));
		hear_no_more(true);
	}
	other_at = told_looks = 0;
}

static void test_misused(void **unused)
{
	char said[2000], many[AGENTS_MAX + 2] = "";

	(void)unused;
	assert_int_equal(fleet("", NULL, said), EXIT_WRONG);
	assert_non_null(strstr(said, "up to 64"));
	memset(many, '.', AGENTS_MAX + 1);
	assert_int_equal(fleet(many, NULL, said), EXIT_WRONG);
	assert_non_null(strstr(said, "up to 64"));
	assert_int_equal(fleet("..", "/nowhere/at/all", said), EXIT_WRONG);
	assert_non_null(strstr(said, "--state names a folder that is there"));
	assert_int_equal(fleet("..", "/dev/null", said), EXIT_WRONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_that_does_not_begin_ends_all),
	    cmocka_unit_test(test_told_to_end),
	    cmocka_unit_test(test_one_agent_for_a_state),
	    cmocka_unit_test(test_begun_again),
	    cmocka_unit_test(test_no_pacer_any_more),
	    cmocka_unit_test(test_pauses),
	    cmocka_unit_test(test_other_states),
	    cmocka_unit_test(test_misused),
	};

	return cmocka_run_group_tests_name("agents", tests, NULL, NULL);
}
