/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "live/ends.h"
#include "live/host.h"

#define NS_PER_S 1000000000ull

#define LAST_S 2 /* for what is drawn last, for which a moment is enough */

/* Of those that end it the handler is called while something is drawn. */
static const int signals[] = {SIGWINCH, SIGCONT, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define RESIZING 2 /* so many of them let it go on */

static struct {
	bool begun, keys, modes; /* modes: `was` is known */
	struct termios was;
	int out, nowhere; /* stdout, and what is in its place once it is given up */
	sigset_t ends;	  /* of those signals, without what is ignored */
	sigset_t waiting; /* the mask while it waits */
	struct sigaction action[sizeof(signals) / sizeof(*signals)];
} now;

static volatile sig_atomic_t resized, given_up; /* given_up: by that signal */

static void note(int number)
{
	(void)number;
	resized = 1;
}

/* The write that waits is interrupted, and no other waits: there is no moment between the two. */
static void give_up(int number)
{
	int err = errno;

	given_up = number;
	dup2(now.nowhere, STDOUT_FILENO);
	errno = err;
}

/* --- what it is ----------------------------------------------------------------------------- */

bool terminal_has_screen(void)
{
	const char *term = getenv("TERM");

	return term && *term && strcmp(term, "dumb") != 0 && isatty(STDOUT_FILENO);
}

bool terminal_is_used(void)
{
	return terminal_has_screen() && isatty(STDIN_FILENO) &&
	       tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static int number_of(const char *name)
{
	const char *text = getenv(name);
	long n = text ? strtol(text, NULL, 10) : 0;

	return n > 0 && n < 10000 ? (int)n : 0;
}

struct terminal_size terminal_size(void)
{
	struct terminal_size size = {number_of("LINES"), number_of("COLUMNS")};
	struct winsize kernel = {0};

	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &kernel))
		kernel = (struct winsize){0};
	if (!size.rows)
		size.rows = kernel.ws_row;
	if (!size.columns)
		size.columns = kernel.ws_col;
	return size;
}

/* --- keys and signals ----------------------------------------------------------------------- */

static void set_keys(void)
{
	struct termios keys = now.was;

	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 1;
	keys.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &keys);
}

static void close_both(void)
{
	int err = errno;

	close(now.nowhere);
	close(now.out);
	errno = err;
}

int terminal_begin(bool keys_set)
{
	struct sigaction noted = {.sa_handler = note}, ending = {.sa_handler = give_up};
	sigset_t blocked;

	now.nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	now.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (now.nowhere < 0 || now.out < 0 || ends_hold(ENDS_OF_COMMAND)) {
		close_both();
		return -1;
	}
	sigemptyset(&blocked);
	sigemptyset(&now.ends);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		sigaction(signals[i], NULL, &now.action[i]);
		if (now.action[i].sa_handler == SIG_IGN)
			continue; /* nohup */
		sigaddset(i < RESIZING ? &blocked : &now.ends, signals[i]);
		sigaction(signals[i], i < RESIZING ? &noted : &ending, NULL);
	}
	sigprocmask(SIG_BLOCK, &blocked, &now.waiting);
	now.begun = true;
	now.modes = !tcgetattr(STDIN_FILENO, &now.was);
	now.keys = now.modes && !keys_set;
	if (now.keys)
		set_keys();
	return 0;
}

void terminal_end(void)
{
	if (!now.begun)
		return;
	now.begun = false;
	alarm(0);
	if (now.modes)
		tcsetattr(STDIN_FILENO, TCSANOW, &now.was);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &now.action[i], NULL);
	sigprocmask(SIG_SETMASK, &now.waiting, NULL);
	close_both();
	ends_release();
}

void terminal_draws(void)
{
	sigprocmask(SIG_UNBLOCK, &now.ends, NULL);
}

void terminal_draws_last(void)
{
	struct sigaction action = {.sa_handler = give_up};
	sigset_t late;

	dup2(now.out, STDOUT_FILENO);
	sigemptyset(&late);
	sigaddset(&late, SIGALRM);
	sigaction(SIGALRM, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &late, NULL);
	alarm(LAST_S);
}

/* An end that its handler took comes again, for those who wait for it. */
void terminal_drawn(void)
{
	sigprocmask(SIG_BLOCK, &now.ends, NULL);
	if (given_up && given_up != SIGALRM)
		raise(given_up);
	given_up = 0;
}

static struct timespec left_until(uint64_t until_ns)
{
	uint64_t now_ns = host_now_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;

	return (struct timespec){(time_t)(left_ns / NS_PER_S), (long)(left_ns % NS_PER_S)};
}

enum terminal_event terminal_wait(uint64_t until_ns)
{
	struct pollfd at[] = {{STDIN_FILENO, POLLIN, 0}, {ends_fd(), POLLIN, 0}};
	struct timespec left = left_until(until_ns);
	int n;

	if (!now.begun) {
		host_wait_until(until_ns);
		return TERMINAL_TIME;
	}
	n = ppoll(at, 2, &left, &now.waiting);
	/* One that is hung up has something to be read, too: its end, again and again. */
	if (n > 0 && (at[1].revents || at[0].revents & ~POLLIN))
		return TERMINAL_ENDED;
	if (resized) {
		resized = 0;
		if (now.keys)
			set_keys(); /* the shell had the terminal meanwhile */
		return TERMINAL_RESIZED;
	}
	return n > 0 ? TERMINAL_KEY : TERMINAL_TIME;
}

int terminal_key(void)
{
	unsigned char key;

	return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}

bool terminal_is_lost(void)
{
	return tcgetpgrp(STDIN_FILENO) != getpgrp();
}
