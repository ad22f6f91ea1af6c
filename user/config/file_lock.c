/* SPDX-License-Identifier: GPL-2.0-only */
#include "config/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 200u

static const struct file_lock_listener *listens;
static uint64_t ends_after_ms = FILE_LOCK_LONG_MS;
static uint64_t within_ms = UINT64_MAX; /* what is waited for at most */

/* Waits that are given up, and tried again. */
static struct {
	bool is_on, given_up;
	uint64_t since_ms; /* when the first in a row began; 0: the last lock was had */
	uint64_t last_ms;  /* when the last of them was given up */
	bool told;	   /* who has it */
} brief;

void file_lock_listen(const struct file_lock_listener *listener)
{
	listens = listener;
}

void file_lock_ends_after(uint64_t ms)
{
	ends_after_ms = ms;
}

void file_lock_briefly(bool briefly)
{
	memset(&brief, 0, sizeof(brief));
	brief.is_on = briefly;
}

bool file_lock_given_up(void)
{
	bool was = brief.given_up;

	brief.given_up = false;
	return was;
}

/* --- who holds it ----------------------------------------------------------------------------- */

static bool is_of_file(enum file_lock_kind kind)
{
	return kind == LOCK_TO_CHANGE || kind == LOCK_TO_READ;
}

/* 0: not known. Of a lock of records no process is told. */
static int holder_of(int fd, enum file_lock_kind kind)
{
	FILE *f = fopen("/proc/locks", "re");
	unsigned int major_is, minor_is;
	int holder = 0, pid;
	char line[256];
	struct stat is;
	uint64_t inode;

	while (is_of_file(kind) && f && !holder && !fstat(fd, &is) && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%" SCNu64, &pid, &major_is, &minor_is,
			   &inode) == 4 &&
		    pid > 0 && inode == is.st_ino && makedev(major_is, minor_is) == is.st_dev)
			holder = pid;
	if (f)
		fclose(f);
	return holder;
}

struct process {
	char name[64];
	char state; /* a letter, as in proc(5) */
};

static bool read_process(int pid, struct process *process)
{
	char path[32], line[256], *begin, *end;
	bool known;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	known = f && fgets(line, sizeof(line), f);
	if (f)
		fclose(f);
	begin = known ? strchr(line, '(') : NULL;
	end = begin ? strrchr(begin, ')') : NULL;
	if (!end || end[1] != ' ')
		return false;
	*end = 0;
	snprintf(process->name, sizeof(process->name), "%s", begin + 1);
	process->state = end[2];
	return true;
}

/* True: who has it is not stopped, as far as is known, and so may let it go. */
static bool tell(int fd, enum file_lock_kind kind, const char *name)
{
	struct process process;
	int pid = holder_of(fd, kind);
	bool known = pid && read_process(pid, &process);
	char line[512];

	if (!known)
		snprintf(line, sizeof(line), "%s: waiting for another process, which has it locked",
			 name);
	else if (process.state == 'T')
		snprintf(line, sizeof(line),
			 "%s: waiting for process %d (%s), which has it locked and is stopped: "
			 "`kill -CONT %d` lets it go on",
			 name, pid, process.name, pid);
	else
		snprintf(line, sizeof(line), "%s: waiting for process %d (%s), which has it locked",
			 name, pid, process.name);
	listens->held(line);
	return !known || process.state != 'T';
}

/* --- the wait --------------------------------------------------------------------------------- */

static int lock(int fd, enum file_lock_kind kind, bool waits)
{
	struct flock bytes = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (kind == LOCK_BYTE) {
		bytes.l_whence = SEEK_CUR;
		bytes.l_len = 1;
	}
	if (!is_of_file(kind))
		return fcntl(fd, waits ? F_OFD_SETLKW : F_OFD_SETLK, &bytes);
	return flock(fd, (kind == LOCK_TO_CHANGE ? LOCK_EX : LOCK_SH) | (waits ? 0 : LOCK_NB));
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* As wait_on, once. */
static int wait_briefly(int fd, enum file_lock_kind kind, const char *name)
{
	uint64_t at_ms = now_ms();

	if (!brief.since_ms ||
	    at_ms - brief.last_ms > FILE_LOCK_LONG_MS) { /* or it may be another */
		brief.since_ms = at_ms;
		brief.told = false;
	}
	do {
		if (!lock(fd, kind, true)) {
			brief.since_ms = 0;
			brief.told = false;
			return 0;
		}
	} while (errno == EINTR && now_ms() - at_ms < FILE_LOCK_BRIEF_MS);
	if (errno != EINTR)
		return -1;
	brief.last_ms = now_ms();
	if (listens && !brief.told && brief.last_ms - brief.since_ms >= FILE_LOCK_LONG_MS) {
		(void)tell(fd, kind, name);
		brief.told = true;
	}
	brief.given_up = true;
	errno = EAGAIN;
	return -1;
}

/* Something interrupts it each LOOK_MS. */
static int wait_on(int fd, enum file_lock_kind kind, const char *name)
{
	uint64_t began_ms = now_ms();
	bool told = false, hopes = false;

	do {
		uint64_t waited_ms = now_ms() - began_ms;
		bool is_long = listens && waited_ms >= FILE_LOCK_LONG_MS;

		if (is_long && !told)
			hopes = tell(fd, kind, name);
		told |= is_long;
		if (is_long && !(hopes && waited_ms < ends_after_ms) && listens->ended()) {
			errno = EINTR;
			return -1;
		}
		if (!lock(fd, kind, true))
			return 0;
		if (errno == EINTR && waited_ms >= within_ms)
			errno = EAGAIN;
	} while (errno == EINTR);
	return -1;
}

static void interrupt(int number)
{
	(void)number; /* without SA_RESTART what waits returns */
}

int file_lock(int fd, enum file_lock_kind kind, const char *name)
{
	const struct itimerval each = {{0, LOOK_MS * 1000}, {0, LOOK_MS * 1000}};
	const struct sigaction interrupts = {.sa_handler = interrupt};
	struct sigaction action_before;
	struct itimerval timer_before;
	sigset_t alarm, mask_before;
	int result, cause;

	if (!lock(fd, kind, false)) {
		brief.since_ms = 0;
		brief.told = false;
		return 0;
	}
	if (errno != EAGAIN && errno != EACCES && errno != EINTR)
		return -1;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigaction(SIGALRM, &interrupts, &action_before);
	sigprocmask(SIG_UNBLOCK, &alarm, &mask_before);
	setitimer(ITIMER_REAL, &each, &timer_before);
	result = brief.is_on ? wait_briefly(fd, kind, name) : wait_on(fd, kind, name);
	cause = errno;
	setitimer(ITIMER_REAL, &timer_before, NULL);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
	sigaction(SIGALRM, &action_before, NULL);
	errno = cause;
	return result;
}

int file_lock_within(int fd, enum file_lock_kind kind, const char *name, uint64_t ms)
{
	int result;

	within_ms = ms;
	result = file_lock(fd, kind, name);
	within_ms = UINT64_MAX;
	return result;
}
