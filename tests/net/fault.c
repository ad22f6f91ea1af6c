/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Run a command in which chosen system calls do not happen.
 *
 *   fault [FIRST:]CALL[,CALL...] N[+MORE] ERRNO|kill COMMAND...
 *
 * CALL: a system call's name, of those below; of bpf(2) "pacer" loads a program of that name, "map"
 * makes a map, and "bpf" does anything but load BTF: libbpf does without, and the verifier then
 * takes half a minute to refuse; "change" is what changes anything; "inet" is a socket of AF_INET;
 * "any" is every system call.
 * FIRST: a call's name; none is counted before that was made. N: the which of them, from 1, and
 * MORE after it; "all": each. It is not done, and returns ERRNO, a number; 0: it returns 0; "kill":
 * the command is killed there. Memory (mmap, mremap) is refused with ENOMEM, whatever ERRNO says.
 *
 * SIGTERM is handed to the command: what serves until it is told to end can be told so.
 *
 * What a build for coverage writes as it ends is no work of the command: from the first of its
 * files on, no call fails any more.
 *
 * Exit code: the command's own, and 100 more if a call failed so. Which one it was is written to
 * the file that FAULT_SAYS names.
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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED	  100
#define CALLS_MAX 64
#define EVERY	  (-1)

enum kind { ANY, NO_BTF, NEW_MAP, PACER, CHANGE, INET };

static const struct name {
	const char *name;
	int nr;
	enum kind kind;
} names[] = {
    {"bpf", SYS_bpf, NO_BTF},
    {"map", SYS_bpf, NEW_MAP},
    {"change", SYS_bpf, CHANGE},
    {"pacer", SYS_bpf, PACER},
    {"socket", SYS_socket, ANY},
    {"inet", SYS_socket, INET},
    {"bind", SYS_bind, ANY},
    {"sendto", SYS_sendto, ANY},
    {"recvmsg", SYS_recvmsg, ANY},
    {"mmap", SYS_mmap, ANY},
    {"openat", SYS_openat, ANY},
    {"clock_nanosleep", SYS_clock_nanosleep, ANY},
    {"flock", SYS_flock, ANY},
    {"ioctl", SYS_ioctl, ANY},
    {"membarrier", SYS_membarrier, ANY},
    {"fcntl", SYS_fcntl, ANY},
    {"read", SYS_read, ANY},
    {"write", SYS_write, ANY},
    {"getdents64", SYS_getdents64, ANY},
    {"newfstatat", SYS_newfstatat, ANY},
    {"getrandom", SYS_getrandom, ANY},
    {"unlinkat", SYS_unlinkat, ANY},
    {"ftruncate", SYS_ftruncate, ANY},
    {"fsync", SYS_fsync, ANY},
    {"mremap", SYS_mremap, ANY},
    {"clone", SYS_clone, ANY},
    {"clone3", SYS_clone3, ANY},
    {"execve", SYS_execve, ANY},
    {"wait4", SYS_wait4, ANY},
    {"chdir", SYS_chdir, ANY},
    {"setsid", SYS_setsid, ANY},
    {"pipe2", SYS_pipe2, ANY},
    {"dup3", SYS_dup3, ANY},
    {"fchown", SYS_fchown, ANY},
    {"fchmod", SYS_fchmod, ANY},
    {"connect", SYS_connect, ANY},
    {"sendmsg", SYS_sendmsg, ANY},
    {"prctl", SYS_prctl, ANY},
#ifdef SYS_unlink
    {"unlink", SYS_unlink, ANY},
    {"rmdir", SYS_rmdir, ANY},
    {"rename", SYS_rename, ANY},
    {"mkdir", SYS_mkdir, ANY},
    {"dup2", SYS_dup2, ANY},
#else /* this machine has those with a directory's descriptor alone */
    {"unlink", SYS_unlinkat, ANY},
    {"rmdir", SYS_unlinkat, ANY},
    {"rename", SYS_renameat, ANY},
    {"mkdir", SYS_mkdirat, ANY},
    {"dup2", SYS_dup3, ANY},
#endif
    {"any", EVERY, ANY},
};

static const struct name *calls[CALLS_MAX];
static int n_calls;
static const struct name *first; /* NULL: all are counted */

static const struct name *known(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i].name))
			return &names[i];
	errx(2, "%s: not known", name);
}

static void take_names(char *list)
{
	char *colon = strchr(list, ':');

	if (colon) {
		*colon = '\0';
		first = known(list);
		list = colon + 1;
	}
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		if (n_calls == CALLS_MAX)
			errx(2, "%s: more than %d calls", name, CALLS_MAX);
		calls[n_calls++] = known(name);
	}
}

/* Ask about these calls, and about what opens a file; let the others be. The descriptor to be asked
 * at. */
static int filter(void)
{
	int nr[CALLS_MAX + 2] = {SYS_openat}, n = 0, asked = 1;
	struct sock_filter code[CALLS_MAX + 5];
	struct sock_fprog program = {0, code};

	if (first)
		nr[asked++] = first->nr;
	for (int i = 0; i < n_calls; i++)
		nr[asked++] = calls[i]->nr;

	if (calls[0]->nr == EVERY)
		asked = 0;
	else
		code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							 offsetof(struct seccomp_data, nr));
	for (int i = 0; i < asked; i++)
		code[n++] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr[i], asked - i, 0);
	if (asked)
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	program.len = n;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		       &program);
}

/* Does the call open a file that counts what was run? */
static int opens_counts(const struct seccomp_notif *asked)
{
	struct iovec to, from = {(void *)(uintptr_t)asked->data.args[1], 1};
	char name[512];

	for (size_t n = 0; asked->data.nr == SYS_openat && n < sizeof(name); n++) {
		to = (struct iovec){name + n, 1}; /* the next page may not be there */
		if (process_vm_readv(asked->pid, &to, 1, &from, 1, 0) != 1)
			return 0;
		if (!name[n])
			return n > 5 && !strcmp(name + n - 5, ".gcda");
		from.iov_base = (char *)from.iov_base + 1;
	}
	return 0;
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

static int changes(const struct seccomp_notif *asked)
{
	switch (asked->data.args[0]) {
	case BPF_MAP_LOOKUP_ELEM:
	case BPF_MAP_LOOKUP_BATCH:
	case BPF_MAP_GET_NEXT_KEY:
	case BPF_OBJ_GET:
	case BPF_OBJ_GET_INFO_BY_FD:
	case BPF_PROG_GET_FD_BY_ID:
	case BPF_PROG_GET_NEXT_ID:
	case BPF_MAP_GET_FD_BY_ID:
	case BPF_BTF_LOAD:
		return 0;
	}
	return 1;
}

static int is_meant(const struct seccomp_notif *asked)
{
	int btf = asked->data.args[0] == BPF_BTF_LOAD;
	int map = asked->data.args[0] == BPF_MAP_CREATE;

	for (int i = 0; i < n_calls; i++)
		if ((calls[i]->nr == asked->data.nr || calls[i]->nr == EVERY) &&
		    (calls[i]->kind == ANY || (calls[i]->kind == NO_BTF && !btf) ||
		     (calls[i]->kind == NEW_MAP && map) ||
		     (calls[i]->kind == CHANGE && changes(asked)) ||
		     (calls[i]->kind == INET && asked->data.args[0] == AF_INET) ||
		     (calls[i]->kind == PACER && loads_pacer(asked))))
			return 1;
	return 0;
}

static int is_next(const char *which)
{
	const char *more = strchr(which, '+');
	static int seen;

	if (!strcmp(which, "all"))
		return 1;
	seen++;
	return seen >= atoi(which) && seen <= atoi(which) + (more ? atoi(more) : 0);
}

/* Of these no other failure is ordinary. */
static int is_memory(int nr)
{
	return nr == SYS_mmap || nr == SYS_mremap;
}

/* The number of the call, and of bpf(2) what it was to do. */
static void say(const struct seccomp_notif *asked)
{
	const char *to = getenv("FAULT_SAYS");
	FILE *f = to ? fopen(to, "w") : NULL;

	if (!f)
		return;
	fprintf(f, "%d %llu\n", asked->data.nr, (unsigned long long)asked->data.args[0]);
	fclose(f);
}

static int answer(int fd, const char *which, const char *how)
{
	static int begun, over;
	struct seccomp_notif asked = {0};
	struct seccomp_notif_resp reply = {0};
	int fails;

	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked))
		return 0; /* its caller was killed meanwhile */
	over |= opens_counts(&asked);
	fails = !over && (begun || !first) && is_meant(&asked) && is_next(which);
	begun |= first && first->nr == asked.data.nr;
	if (fails)
		say(&asked);
	if (fails && !strcmp(how, "kill"))
		kill(asked.pid, SIGKILL);
	reply.id = asked.id;
	reply.error = !fails ? 0 : is_memory(asked.data.nr) ? -ENOMEM : -atoi(how);
	reply.flags = fails ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &reply);
	return fails;
}

/* What the command has left running goes on: its calls are done, by a process of our own. */
static void leave_the_rest(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};

	if (poll(&p, 1, 0) == 1 && p.revents & POLLHUP) /* nobody */
		return;
	if (fork())
		return;
	signal(SIGTERM, SIG_DFL);
	for (int i = 0; i < 3; i++)
		close(i);
	while (poll(&p, 1, -1) == 1 && !(p.revents & POLLHUP))
		(void)answer(fd, "0", "0");
	_exit(0);
}

static volatile pid_t command; /* 0: it has not begun */

static void hand_on(int signal)
{
	if (command)
		kill(command, signal);
}

int main(int argc, char **argv)
{
	int ready[2], fd, pidfd, status, failed = 0;
	struct pollfd p[2];
	pid_t pid;

	if (argc < 5)
		errx(2, "usage: fault [FIRST:]CALL[,CALL...] N[+MORE] ERRNO|kill COMMAND...");
	take_names(argv[1]);
	if (pipe(ready))
		err(2, "pipe");
	/* One table of descriptors until the command begins: what asks is open here, too. */
	pid = syscall(SYS_clone, CLONE_FILES | CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0);
	if (pid < 0)
		err(2, "clone");
	if (!pid) {
		/* Said before, as it will be the next one: "any" call is one of these, too. */
		fd = dup(0);
		close(fd);
		if (fd < 0 || write(ready[1], &fd, sizeof(fd)) != sizeof(fd) || filter() != fd)
			_exit(2);
		execvp(argv[4], argv + 4);
		_exit(127);
	}
	command = pid;
	signal(SIGTERM, hand_on);
	if (read(ready[0], &fd, sizeof(fd)) != sizeof(fd))
		errx(2, "no filter");
	do {
		p[0] = (struct pollfd){fd, POLLIN, 0};
		p[1] = (struct pollfd){pidfd, POLLIN, 0};
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			err(2, "poll");
		if (p[0].revents & POLLIN)
			failed |= answer(fd, argv[2], argv[3]);
	} while (!p[1].revents);
	if (waitpid(pid, &status, 0) != pid)
		err(2, "wait");
	leave_the_rest(fd);
	return (WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)) +
	       (failed ? FAILED : 0);
}
