/* SPDX-License-Identifier: GPL-2.0-only */
#include "config/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void durable_block_stops(sigset_t *before)
{
	sigset_t stops;

	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGHUP);
	sigaddset(&stops, SIGQUIT);
	sigprocmask(SIG_BLOCK, &stops, before);
}

int durable_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";
	int fd, result, why;

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path),
			 path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	result = fsync(fd) && errno != EINVAL ? -1 : 0;
	why = errno;
	close(fd);
	errno = why;
	return result;
}

int write_whole(int fd, const void *from, size_t bytes)
{
	const char *rest = from;

	while (bytes) {
		ssize_t n = write(fd, rest, bytes);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			rest += n;
			bytes -= (size_t)n;
		}
	}
	return 0;
}

/* By way of a file whose name ends in XXXXXX. */
static int make_beside(const char *path, char *temporary, const void *from, size_t bytes)
{
	int fd = mkostemp(temporary, O_CLOEXEC), result, why; /* of mode 0600 */

	if (fd < 0)
		return -1;
	result = write_whole(fd, from, bytes) || fsync(fd) ||
		 (link(temporary, path) && errno != EEXIST) || durable_name(path);
	why = errno;
	unlink(temporary);
	close(fd);
	errno = why;
	return result ? -1 : 0;
}

int durable_make(const char *path, const void *from, size_t bytes)
{
	char temporary[PATH_MAX];
	sigset_t before;
	int result;

	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	durable_block_stops(&before);
	result = make_beside(path, temporary, from, bytes);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}
