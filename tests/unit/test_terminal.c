/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The terminal of what goes on until it is ended: what ends it, whatever else is ready. A process
 * of its own has the terminal, and an alarm ends it if it hangs.
 */
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <cmocka.h>

#include "cli/terminal.h"

#define HANGS_S 60
#define LONG	UINT64_MAX

static int master;

/* Nobody is told that it is gone: nohup, or who leads the session has ended by itself. */
static int hung_up(void)
{
	signal(SIGHUP, SIG_IGN);
	if (terminal_begin(false))
		return 1;
	close(master);
	return terminal_wait(LONG) == TERMINAL_ENDED && terminal_wait(LONG) == TERMINAL_ENDED ? 0
											      : 2;
}

static int a_key(void)
{
	if (terminal_begin(false) || write(master, "xy", 2) != 2)
		return 1;
	if (terminal_wait(LONG) != TERMINAL_KEY || terminal_key() != 'x')
		return 2;
	return terminal_wait(0) == TERMINAL_KEY && terminal_key() == 'y' &&
		       terminal_wait(0) == TERMINAL_TIME
		   ? 0
		   : 3;
}

static int resized(void)
{
	if (terminal_begin(false))
		return 1;
	raise(SIGWINCH);
	return terminal_wait(LONG) == TERMINAL_RESIZED && terminal_wait(0) == TERMINAL_TIME ? 0 : 2;
}

/* A key that nobody takes is there all the time. */
static int told_to_end(void)
{
	if (terminal_begin(false) || write(master, "x", 1) != 1 ||
	    terminal_wait(LONG) != TERMINAL_KEY)
		return 1;
	raise(SIGTERM);
	if (terminal_wait(LONG) != TERMINAL_ENDED)
		return 2;
	terminal_end();
	return 3;
}

static int ended(int (*is)(void))
{
	int slave, status;
	pid_t child = fork();

	if (!child) {
		alarm(HANGS_S);
		if (openpty(&master, &slave, NULL, NULL, NULL) || setsid() < 0 || login_tty(slave))
			_exit(9);
		_exit(is());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void test_what_comes(void **unused)
{
	(void)unused;
	assert_int_equal(ended(a_key), 0);
	assert_int_equal(ended(resized), 0);
}

static void test_what_ends_it(void **unused)
{
	(void)unused;
	assert_int_equal(ended(hung_up), 0);
	assert_int_equal(ended(told_to_end), SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_comes),
	    cmocka_unit_test(test_what_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
