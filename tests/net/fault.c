/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Run a command in which chosen system calls do not happen.
 *
 *   fault CALL[,CALL...] N ERRNO|kill COMMAND...
 *
 * CALL: a system call's name, of those below; of bpf(2) "pacer" loads a program of that name, and
 * "bpf" does anything but load BTF: libbpf does without, and the verifier then takes half a minute
 * to refuse. N: the which of them, from 1; "all": each. It is not done, and returns ERRNO, a
 * number; 0: it returns 0; "kill": the command is killed there.
 *
 * Exit code: the command's own, and 100 more if a call failed so.
 */
#include <err.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED	  100
#define CALLS_MAX 8

enum kind { ANY, NO_BTF, PACER };

static const struct name {
	const char *name;
	int nr;
	enum kind kind;
} names[] = {
    {"bpf", SYS_bpf, NO_BTF},
    {"pacer", SYS_bpf, PACER},
    {"socket", SYS_socket, ANY},
    {"bind", SYS_bind, ANY},
    {"sendto", SYS_sendto, ANY},
    {"recvmsg", SYS_recvmsg, ANY},
    {"mmap", SYS_mmap, ANY},
    {"openat", SYS_openat, ANY},
    {"clock_nanosleep", SYS_clock_nanosleep, ANY},
    {"unlink", SYS_unlink, ANY},
    {"rmdir", SYS_rmdir, ANY},
};

static const struct name *calls[CALLS_MAX];
static int n_calls;

static void take_names(char *list)
{
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		size_t i = 0;

		while (i < sizeof(names) / sizeof(*names) && strcmp(name, names[i].name))
			i++;
		if (i == sizeof(names) / sizeof(*names) || n_calls == CALLS_MAX)
			errx(2, "%s: not known", name);
		calls[n_calls++] = &names[i];
	}
}

/* Ask about these calls; let the others be. The descriptor to be asked at. */
static int filter(void)
{
	struct sock_filter code[CALLS_MAX + 3];
	struct sock_fprog program = {0, code};
	int n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (int i = 0; i < n_calls; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i]->nr,
							 n_calls - i, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	program.len = n;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		       &program);
}

static int loads_pacer(const struct seccomp_notif *asked)
{
	union bpf_attr attr = {0};
	struct iovec here = {&attr, sizeof(attr)};
	struct iovec there = {(void *)(uintptr_t)asked->data.args[1], sizeof(attr)};

	if (asked->data.args[2] < sizeof(attr))
		there.iov_len = here.iov_len = asked->data.args[2];
	return asked->data.args[0] == BPF_PROG_LOAD &&
	       process_vm_readv(asked->pid, &here, 1, &there, 1, 0) > 0 &&
	       !strcmp(attr.prog_name, "pacer");
}

static int is_meant(const struct seccomp_notif *asked)
{
	int btf = asked->data.args[0] == BPF_BTF_LOAD;

	for (int i = 0; i < n_calls; i++)
		if (calls[i]->nr == asked->data.nr &&
		    (calls[i]->kind == ANY || (calls[i]->kind == NO_BTF && !btf) ||
		     (calls[i]->kind == PACER && loads_pacer(asked))))
			return 1;
	return 0;
}

static int answer(int fd, const char *which, const char *how)
{
	static int seen;
	struct seccomp_notif asked = {0};
	struct seccomp_notif_resp reply = {0};
	int fails;

	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked))
		return 0; /* its caller was killed meanwhile */
	fails = is_meant(&asked) && (++seen == atoi(which) || !strcmp(which, "all"));
	if (fails && !strcmp(how, "kill"))
		kill(asked.pid, SIGKILL);
	reply.id = asked.id;
	reply.error = fails ? -atoi(how) : 0;
	reply.flags = fails ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &reply);
	return fails;
}

int main(int argc, char **argv)
{
	int ready[2], fd, pidfd, status, failed = 0;
	struct pollfd p[2];
	pid_t pid;

	if (argc < 5)
		errx(2, "usage: fault CALL[,CALL...] N ERRNO|kill COMMAND...");
	take_names(argv[1]);
	if (pipe(ready))
		err(2, "pipe");
	/* One table of descriptors until the command begins: what asks is open here, too. */
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		err(2, "clone");
	if (!pid) {
		fd = filter();
		if (write(ready[1], &fd, sizeof(fd)) != sizeof(fd) || fd < 0)
			_exit(2);
		execvp(argv[4], argv + 4);
		_exit(127);
	}
	if (read(ready[0], &fd, sizeof(fd)) != sizeof(fd) || fd < 0)
		errx(2, "no filter");
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		err(2, "pidfd_open");
	do {
		p[0] = (struct pollfd){fd, POLLIN, 0};
		p[1] = (struct pollfd){pidfd, POLLIN, 0};
		if (poll(p, 2, -1) < 0)
			err(2, "poll");
		if (p[0].revents & POLLIN)
			failed |= answer(fd, argv[2], argv[3]);
	} while (!p[1].revents);
	if (waitpid(pid, &status, 0) != pid)
		err(2, "wait");
	return (WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)) +
	       (failed ? FAILED : 0);
}
