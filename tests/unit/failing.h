/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: calls of the system that fail for a test's program, at the one that it chooses, or
 * before which something happens. While failing.on. To be linked with -Wl,--wrap= of each.
 */
#ifndef PACER_FAILING_H
#define PACER_FAILING_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

static struct {
	bool on;
	int cause;
	uint32_t n, fail_at;  /* calls so far; from 1, 0: never */
	const char *only;     /* NULL: any call */
	void (*before)(void); /* NULL: it fails */
} failing;

static void failing_from(uint32_t fail_at, int cause, const char *only)
{
	failing.n = 0;
	failing.fail_at = fail_at;
	failing.cause = cause;
	failing.only = only;
	failing.before = NULL;
}

static bool fails(const char *call)
{
	if (!failing.on || (failing.only && strcmp(failing.only, call) != 0) ||
	    ++failing.n != failing.fail_at)
		return false;
	if (failing.before) {
		failing.before();
		return false;
	}
	errno = failing.cause;
	return true;
}

/* TYPE NAME(PARAMETERS), which calls with ARGUMENTS and says FAILED where it fails. */
#define FAILING(type, name, parameters, arguments, failed) \
	type __real_##name parameters;                     \
	type __wrap_##name parameters;                     \
	type __wrap_##name parameters                      \
	{                                                  \
		if (fails(#name))                          \
			return failed;                     \
		return __real_##name arguments;            \
	}

FAILING(int, mkostemp, (char *path, int flags), (path, flags), -1)
FAILING(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), -1)
FAILING(int, fsync, (int fd), (fd), -1)
FAILING(int, fdatasync, (int fd), (fd), -1)
FAILING(int, link, (const char *from, const char *to), (from, to), -1)
FAILING(int, fstat, (int fd, struct stat *st), (fd, st), -1)
FAILING(void *, mmap, (void *at, size_t n, int prot, int flags, int fd, off_t offset),
	(at, n, prot, flags, fd, offset), MAP_FAILED)
FAILING(int, posix_fallocate, (int fd, off_t offset, off_t n), (fd, offset, n), failing.cause)

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	return fails("open") ? -1 : __real_open(path, flags, mode);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) /* that takes a pointer */
{
	va_list args;
	void *arg;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	return fails("fcntl") ? -1 : __real_fcntl(fd, command, arg);
}

#endif
