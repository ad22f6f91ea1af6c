/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Run a command some of whose system calls fail.
 *
 *   refuse WHICH FROM COUNT ERRNO COMMAND...
 *
 * WHICH: membarrier; grace (that, and the making of BPF maps); or any (those and what else a change
 * asks the kernel for: bpf, memory, files, sockets). Of these calls, from the first flock of the
 * command on, those numbered FROM (from 0) to FROM + COUNT - 1 fail with that error number.
 *
 * Exit code: the command's own, and 100 more if a call failed so.
 */
#include <err.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define REFUSED 100

/* Looked at: the first, and those that may fail. */
static const int calls[] = {SYS_flock,	SYS_membarrier, SYS_bpf,    SYS_mmap,
			    SYS_openat, SYS_socket,	SYS_sendto, SYS_ioctl};

#define CALLS (sizeof(calls) / sizeof(*calls))

static int install(void)
{
	struct sock_filter code[2 * CALLS + 2];
	struct sock_fprog program = {0, code};

	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							   offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < CALLS; i++) {
		code[program.len++] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		code[program.len++] =
		    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		       &program);
}

/* Hand the listener over, `fd`, or, -1, take it. */
static int pass(int socket, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = {{0}};
	char byte = 0;
	struct iovec io = {&byte, 1};
	struct msghdr message = {.msg_iov = &io,
				 .msg_iovlen = 1,
				 .msg_control = control.room,
				 .msg_controllen = sizeof(control.room)};

	if (fd >= 0) {
		control.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
	}
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

static pid_t start(char **command, int *listener)
{
	int pair[2], fd;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		err(2, "socketpair");
	pid = fork();
	if (pid < 0)
		err(2, "fork");
	if (!pid) {
		fd = install();
		if (fd < 0 || pass(pair[1], fd))
			err(2, "seccomp");
		close(fd);
		execv(command[0], command);
		err(2, "%s", command[0]);
	}
	*listener = pass(pair[0], -1);
	if (*listener < 0)
		err(2, "no listener");
	return pid;
}

static bool is_of(const char *which, const struct seccomp_data *call)
{
	if (call->nr == SYS_flock)
		return false;
	if (!strcmp(which, "any") || call->nr == SYS_membarrier)
		return true;
	return !strcmp(which, "grace") && call->nr == SYS_bpf && call->args[0] == BPF_MAP_CREATE;
}

int main(int argc, char **argv)
{
	long from, count, number = 0;
	bool begun = false, refused = false;
	int listener, status;
	struct pollfd end;
	pid_t pid;

	if (argc < 6 ||
	    (strcmp(argv[1], "membarrier") && strcmp(argv[1], "grace") && strcmp(argv[1], "any")))
		errx(2, "usage: refuse WHICH FROM COUNT ERRNO COMMAND...");
	from = atol(argv[2]);
	count = atol(argv[3]);
	pid = start(argv + 5, &listener);
	end = (struct pollfd){listener, POLLIN, 0};
	while (poll(&end, 1, -1) == 1 && end.revents & POLLIN) {
		struct seccomp_notif call = {0};
		struct seccomp_notif_resp answer = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
			continue;
		answer.id = call.id;
		begun |= call.data.nr == SYS_flock;
		if (begun && is_of(argv[1], &call.data)) {
			if (number >= from && number < from + count) {
				answer.error = -atoi(argv[4]);
				answer.flags = 0;
				refused = true;
			}
			number++;
		}
		(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	if (waitpid(pid, &status, 0) != pid)
		err(2, "wait");
	return (WIFEXITED(status) ? WEXITSTATUS(status) : 99) + (refused ? REFUSED : 0);
}
