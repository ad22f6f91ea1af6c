/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/new_file.h"
#include "config/durable.h"
#include "config/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define WAIT_MS	  (2 * FILE_LOCK_LONG_MS)
#define NAMES_MAX 65536 /* of the names, as of each value, the kernel has no more */

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Who had it before has put another file in its place. */
static int open_locked(const char *name, struct stat *is)
{
	for (;;) {
		int fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC), err;
		struct stat at;
		bool seen;

		if (fd < 0)
			return -1;
		/* Some file systems cannot, and whoever can read it can hold it for long: it is
		 * looked before the rename whether it is as it was. */
		(void)file_lock_within(fd, LOCK_TO_CHANGE, name, WAIT_MS);
		seen = !fstat(fd, is) && !stat(name, &at);
		if (seen && is_same(is, &at))
			return fd;
		err = errno;
		close(fd);
		errno = err;
		if (!seen)
			return -1;
	}
}

int new_file_hold(struct new_file *file, const char *name)
{
	file->beside[0] = 0;
	file->written = false;
	file->blocks = false;
	file->fd = -1;
	if (!realpath(name, file->name) || stat(file->name, &file->was))
		return errno;
	if (!S_ISREG(file->was.st_mode)) /* to open a pipe would be seen at its other end */
		return EINVAL;
	file->fd = open_locked(file->name, &file->was);
	return file->fd < 0 ? errno : 0;
}

#define ACL "system.posix_acl_access"

/* Who may read it beside its mode says, and notes; none of what is said of its content. */
static bool is_kept(const char *name)
{
	return !strcmp(name, ACL) || !strcmp(name, "system.nfs4_acl") || !strncmp(name, "user.", 5);
}

/* 0, or why it could not be kept. */
static int keep_attribute(int from, int to, const char *name)
{
	static char value[NAMES_MAX];
	ssize_t size = fgetxattr(from, name, value, sizeof(value));

	if (size < 0)
		return errno == ENODATA ? 0 : errno; /* it was taken off meanwhile */
	return fsetxattr(to, name, value, (size_t)size, 0) ? errno : 0;
}

/* The folder may give its files an ACL. A file system that has none has nothing to keep. */
static int keep_attributes(int from, int to)
{
	static char names[NAMES_MAX];
	ssize_t n = flistxattr(from, names, sizeof(names));
	int err = 0;

	if (n < 0)
		return errno == ENOTSUP ? 0 : errno;
	(void)fremovexattr(to, ACL);
	for (const char *name = names; !err && name < names + n; name += strlen(name) + 1)
		if (is_kept(name))
			err = keep_attribute(from, to, name);
	return err;
}

int new_file_write(struct new_file *file, const char *text)
{
	int fd, err;

	if (snprintf(file->beside, sizeof(file->beside), "%s.XXXXXX", file->name) >= PATH_MAX) {
		file->beside[0] = 0;
		return ENAMETOOLONG;
	}
	durable_block_stops(&file->before);
	file->blocks = true;
	fd = mkostemp(file->beside, O_CLOEXEC);
	if (fd < 0) {
		file->beside[0] = 0;
		return errno;
	}
	err = write_whole(fd, text, strlen(text)) ? errno : 0;
	if (!err && fchown(fd, file->was.st_uid, file->was.st_gid))
		err = errno;
	if (!err)
		err = keep_attributes(file->fd, fd);
	if (!err && (fchmod(fd, file->was.st_mode & 07777) || fsync(fd)))
		err = errno;
	if (close(fd) && !err)
		err = errno;
	return err;
}

/* Is it what it was as it was read? */
static bool is_as_it_was(const struct new_file *file)
{
	struct stat is;

	return !stat(file->name, &is) && is_same(&is, &file->was) &&
	       is.st_size == file->was.st_size && is.st_mtim.tv_sec == file->was.st_mtim.tv_sec &&
	       is.st_mtim.tv_nsec == file->was.st_mtim.tv_nsec;
}

static int put_in_place(struct new_file *file)
{
	if (!is_as_it_was(file))
		return ESTALE;
	if (rename(file->beside, file->name))
		return errno;
	file->beside[0] = 0;
	file->written = true;
	return durable_name(file->name) ? errno : 0;
}

/* Of the file that is held, and of what is still beside it. */
static void let_go(struct new_file *file)
{
	if (file->beside[0])
		unlink(file->beside);
	file->beside[0] = 0;
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

int new_file_commit(struct new_file *file)
{
	int err = put_in_place(file);

	let_go(file);
	return err;
}

void new_file_drop(struct new_file *file)
{
	let_go(file);
	if (file->blocks)
		sigprocmask(SIG_SETMASK, &file->before, NULL);
	file->blocks = false;
}
