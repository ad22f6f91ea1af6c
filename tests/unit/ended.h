/* SPDX-License-Identifier: GPL-2.0-only */
/* What a signal ends that comes to it at a chosen place. */
#ifndef PACER_TEST_ENDED_H
#define PACER_TEST_ENDED_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const int ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
static int ends_by; /* what `run` raises; 0: nothing, and in nobody else */

/* Runs it in a process of its own. True: that ended by the signal. */
static bool ended_by(int number, void (*run)(void))
{
	const struct rlimit no_core = {0, 0};
	pid_t child = fork();
	int status = 0;

	if (!child) {
		signal(number, SIG_DFL); /* a shell's background ignores some */
		setrlimit(RLIMIT_CORE, &no_core);
		ends_by = number;
		run();
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
	       WTERMSIG(status) == number;
}

#endif
