/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The terminal of what goes on until it is ended: what ends it, whatever else is ready. A process
 * of its own has the terminal, and an alarm ends both if it hangs.
 */
#include <errno.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
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

/* Of a group that nobody is left to let go on: who leads the session is of another. */
static int left_behind(int ready)
{
	char go;

	if (read(ready, &go, 1) != 1 || terminal_begin(true))
		return 1;
	if (terminal_wait(LONG) != TERMINAL_KEY || terminal_key() != -1)
		return 2;
	return terminal_is_lost() ? 0 : 3;
}

/* What is typed is another's, who does not read it. */
static int lost(void)
{
	int ready[2], done[2], code = 9;
	pid_t between;

	if (terminal_is_lost() || pipe(ready) || pipe(done))
		return 8;
	between = fork();
	if (!between) {
		if (setpgid(0, 0))
			_exit(1);
		if (fork())
			_exit(0);
		code = left_behind(ready[0]);
		_exit(write(done[1], &code, sizeof(code)) != sizeof(code));
	}
	if (waitpid(between, NULL, 0) != between || write(master, "x\n", 2) != 2 ||
	    write(ready[1], "", 1) != 1)
		return 7;
	return read(done[0], &code, sizeof(code)) == sizeof(code) ? code : 6;
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

/* As curses writes, to a terminal of which somebody typed ctrl-S. */
static void write_as_curses(const char *text)
{
	ssize_t n;

	do
		n = write(STDOUT_FILENO, text, strlen(text));
	while (n < 0 && errno == EINTR);
}

/* Whenever it comes, be it in the write or not. */
static void end_from_now_on(int number)
{
	pid_t drawing = getpid();

	if (fork())
		return;
	while (getppid() == drawing && !kill(drawing, number))
		usleep(1000);
	_exit(0);
}

static int stopped(void)
{
	if (terminal_begin(true) || tcflow(STDOUT_FILENO, TCOOFF))
		return 1;
	end_from_now_on(SIGTERM);
	terminal_draws();
	write_as_curses("a picture");
	terminal_drawn();
	if (terminal_wait(LONG) != TERMINAL_ENDED)
		return 2;
	terminal_draws_last();
	write_as_curses("a picture");
	terminal_drawn();
	terminal_end();
	return 3;
}

/* Nobody ends it but a key: it does not wait for long for what is drawn last, nor for its modes. */
static int stopped_at_last(void)
{
	struct termios was, is;

	if (tcgetattr(STDIN_FILENO, &was) || terminal_begin(true))
		return 1;
	is = was;
	is.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	if (tcsetattr(STDIN_FILENO, TCSANOW, &is) || tcflow(STDOUT_FILENO, TCOOFF))
		return 2;
	terminal_draws_last();
	write_as_curses("a picture");
	terminal_drawn();
	terminal_end();
	return tcgetattr(STDIN_FILENO, &is) || is.c_lflag != was.c_lflag ? 3 : 0;
}

/* What is drawn last is drawn, though an end came before or within a picture, which is cut off. */
static int drawn_at_last(void)
{
	char text[32] = "";

	if (terminal_begin(true))
		return 1;
	terminal_draws();
	write_as_curses("first,");
	raise(SIGTERM);
	write_as_curses("more");
	terminal_drawn();
	if (terminal_wait(0) != TERMINAL_ENDED)
		return 5;
	raise(SIGINT);
	terminal_draws_last();
	write_as_curses("last");
	terminal_drawn();
	for (size_t len = 0; !strstr(text, "last");) { /* it comes in parts */
		ssize_t n = read(master, text + len, sizeof(text) - 1 - len);

		if (n <= 0)
			return 2;
		len += (size_t)n;
	}
	if (strcmp(text, "first,last") != 0)
		return 4;
	terminal_end();
	return 3;
}

static int ended(int (*is)(void))
{
	int slave, status;
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (openpty(&master, &slave, NULL, NULL, NULL) || setsid() < 0 || login_tty(slave))
			_exit(9);
		_exit(is());
	}
	alarm(HANGS_S);
	assert_int_equal(waitpid(child, &status, 0), child);
	alarm(0);
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
	assert_int_equal(ended(lost), 0);
	assert_int_equal(ended(told_to_end), SIGTERM);
}

/* Of two that have come the process ends by one. */
static bool is_an_end(int status)
{
	return status == SIGTERM || status == SIGINT;
}

static void test_who_does_not_read(void **unused)
{
	(void)unused;
	assert_int_equal(ended(stopped), SIGTERM);
	assert_int_equal(ended(stopped_at_last), 0);
	assert_true(is_an_end(ended(drawn_at_last)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_comes),
	    cmocka_unit_test(test_what_ends_it),
	    cmocka_unit_test(test_who_does_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
