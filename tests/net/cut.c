/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Run a command and kill it, end it by a signal, or hold it up, at a chosen point.
 *
 *   cut SYSCALL COUNT US HOLD_MS COMMAND...
 *
 * The point: from where the command first enters SYSCALL (execve, socket, flock, membarrier, clone
 * or fsync), COUNT more system calls entered, and then US microseconds of running. HOLD_MS 0:
 * killed there by SIGKILL; -N: signal N comes to it there; else it stands still for so long, and
 * goes on.
 *
 * The first socket of xdp-pacer comes before all that it changes; some 500 calls before it are of
 * the dynamic linker.
 *
 * What a build for coverage writes as it ends is no work of the command, and takes two thousand
 * calls: from the first of its files on, no point is reached any more.
 *
 * Exit code: 100 if the point was reached (and a command that was held up ended well, or the signal
 * ended it), else the command's own.
 */
#include <err.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/ptrace.h>

#define REACHED 100

static int code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void pause_us(long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&t, NULL);
}

/* Does the call that was entered open a file that counts what was run? */
static bool opens_counts(pid_t pid, const struct ptrace_syscall_info *info)
{
	struct iovec to, from = {(void *)(uintptr_t)info->entry.args[1], 1};
	const char *dot;
	char name[512];

	if (info->entry.nr != SYS_openat)
		return false;
	for (size_t n = 0; n < sizeof(name); n++) { /* the next page may not be there */
		to = (struct iovec){name + n, 1};
		if (process_vm_readv(pid, &to, 1, &from, 1, 0) != 1)
			return false;
		if (!name[n]) {
			dot = strrchr(name, '.');
			return dot && !strcmp(dot, ".gcda");
		}
		from.iov_base = (char *)from.iov_base + 1;
	}
	return false;
}

/* Run on until the next system call is entered; its number. Leaves with the command if that ends.
 */
static long next_entry(pid_t pid)
{
	for (;;) {
		struct ptrace_syscall_info info;
		int status;

		if (ptrace(PTRACE_SYSCALL, pid, 0, 0) || waitpid(pid, &status, 0) != pid)
			err(2, "ptrace");
		if (!WIFSTOPPED(status))
			exit(code_of(status));
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY) {
			if (!opens_counts(pid, &info))
				return info.entry.nr;
			if (ptrace(PTRACE_DETACH, pid, 0, 0) || waitpid(pid, &status, 0) != pid)
				err(2, "wait");
			exit(code_of(status));
		}
	}
}

static pid_t start(char **command)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		err(2, "fork");
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(command[0], command);
		err(2, "%s", command[0]);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		err(2, "%s", command[0]);
	if (ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD))
		err(2, "ptrace");
	return pid;
}

int main(int argc, char **argv)
{
	int first = argc < 6			     ? -2
		    : !strcmp(argv[1], "execve")     ? -1
		    : !strcmp(argv[1], "socket")     ? SYS_socket
		    : !strcmp(argv[1], "flock")	     ? SYS_flock
		    : !strcmp(argv[1], "clone")	     ? SYS_clone
		    : !strcmp(argv[1], "fsync")	     ? SYS_fsync
		    : !strcmp(argv[1], "membarrier") ? SYS_membarrier
						     : -2;
	long us, hold_ms;
	int status;
	pid_t pid;

	if (first == -2)
		errx(2, "usage: cut SYSCALL COUNT US HOLD_MS COMMAND...");
	us = atol(argv[3]);
	hold_ms = atol(argv[4]);
	pid = start(argv + 5);
	while (first >= 0 && next_entry(pid) != first)
		;
	for (int i = atoi(argv[2]); i > 0; i--)
		next_entry(pid);
	if (us) {
		if (ptrace(PTRACE_DETACH, pid, 0, 0))
			err(2, "ptrace");
		pause_us(us);
		if (waitpid(pid, &status, WNOHANG) == pid)
			return code_of(status);
		kill(pid, hold_ms ? SIGSTOP : SIGKILL);
	} else if (!hold_ms) {
		kill(pid, SIGKILL);
	}
	if (hold_ms < 0) {
		kill(pid, (int)-hold_ms);
		ptrace(PTRACE_DETACH, pid, 0, 0);
	} else if (hold_ms) {
		pause_us(hold_ms * 1000);
		if (us)
			kill(pid, SIGCONT);
		else
			ptrace(PTRACE_DETACH, pid, 0, 0);
	}
	if (waitpid(pid, &status, 0) != pid)
		err(2, "wait");
	if (hold_ms < 0)
		return WIFSIGNALED(status) ? REACHED : code_of(status);
	if (hold_ms && code_of(status))
		return code_of(status);
	return REACHED;
}
