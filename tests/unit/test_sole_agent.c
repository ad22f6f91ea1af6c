/* SPDX-License-Identifier: GPL-2.0-only */
/* One agent for each state, whatever it is found by; and changes do not wait for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/copies.h"
#include "live/sole_agent.h"

static char file[] = "/tmp/pacer-sole-XXXXXX";
static bool gone, no_locks;
static int gone_as; /* the file, for who looks */

/* The file, locked as who changes something locks it. */
int copies_lock_of(struct attached *a, struct policy_error *error)
{
	int fd;

	if (gone)
		return policy_fail(error, 0, "%s: it is gone", a->ifname);
	fd = open(file, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	return fd;
}

int copies_lock_look(void)
{
	return gone ? gone_as : open(file, O_RDONLY | O_CLOEXEC);
}

int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);
int __wrap_flock(int fd, int how)
{
	if (!no_locks || how != LOCK_UN)
		return __real_flock(fd, how);
	errno = ENOLCK;
	return -1;
}

static struct policy_error error;

static int agent_of(const char *ifname, uint32_t control_id)
{
	struct attached a = {.control_id = control_id};

	strcpy(a.ifname, ifname);
	error = (struct policy_error){0};
	return sole_agent(&a, &error);
}

/* Can one who changes something do so now? */
static bool a_change_is_free(void)
{
	int fd = open(file, O_RDWR | O_CLOEXEC), result;

	assert_true(fd >= 0);
	result = flock(fd, LOCK_EX | LOCK_NB);
	close(fd);
	return !result;
}

static enum sole_agent_seen seen(uint32_t control_id)
{
	const struct attached a = {.control_id = control_id};

	return sole_agent_seen(&a);
}

static void test_one_for_a_state(void **unused)
{
	int first, other, next;

	(void)unused;
	assert_int_equal(seen(7), SOLE_AGENT_NONE);
	first = agent_of("e0", 7);
	assert_true(first >= 0);
	assert_int_equal(seen(7), SOLE_AGENT_RUNS);
	assert_int_equal(seen(8), SOLE_AGENT_NONE);
	assert_true(a_change_is_free());
	assert_int_equal(agent_of("e1", 7), -1);
	assert_string_equal(error.text, "e1: another agent runs for its state: one is enough for "
					"all interfaces that share it: end that first");
	assert_true(a_change_is_free());
	other = agent_of("e2", 8); /* beside it */
	assert_true(other >= 0);
	assert_int_equal(agent_of("e0", 7), -1);
	next = agent_of("e3", UINT32_MAX);
	assert_true(next >= 0);
	close(next);
	close(first);
	next = agent_of("e1", 7);
	assert_true(next >= 0);
	close(next);
	close(other);
}

/* In another process, by whatever that ends. */
static void test_of_another_process(void **unused)
{
	int begun[2], status, fd;
	char byte;
	pid_t child;

	(void)unused;
	assert_int_equal(pipe(begun), 0);
	child = fork();
	if (!child) {
		(void)!write(begun[1], agent_of("e0", 7) < 0 ? "n" : "y", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(begun[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	assert_int_equal(agent_of("e1", 7), -1);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	fd = agent_of("e1", 7);
	assert_true(fd >= 0);
	close(fd);
	close(begun[0]);
	close(begun[1]);
}

static void test_it_fails(void **unused)
{
	int before = dup(0), after;

	(void)unused;
	close(before);
	gone = true;
	assert_int_equal(agent_of("e0", 7), -1);
	assert_string_equal(error.text, "e0: it is gone");
	gone_as = -1;
	assert_int_equal(seen(7), SOLE_AGENT_UNSEEN);
	gone_as = COPIES_NO_LOCK; /* so nobody holds it */
	assert_int_equal(seen(7), SOLE_AGENT_NONE);
	gone = false;
	no_locks = true;
	assert_int_equal(agent_of("e0", 7), -1);
	assert_string_equal(error.text,
			    "e0: its state cannot be locked for its agent: No locks available");
	no_locks = false;
	after = dup(0);
	assert_int_equal(after, before); /* none is left open */
	close(after);
}

static int begin(void **unused)
{
	int fd = mkstemp(file);

	(void)unused;
	return fd < 0 ? -1 : close(fd);
}

static int end(void **unused)
{
	(void)unused;
	return unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_for_a_state),
	    cmocka_unit_test(test_of_another_process),
	    cmocka_unit_test(test_it_fails),
	};

	return cmocka_run_group_tests_name("sole_agent", tests, begin, end);
}
