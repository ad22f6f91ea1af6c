/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/new_file.h"
#include "config/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int new_file_write(struct new_file *file, const char *name, const char *text)
{
	struct stat was;
	int fd, err;

	file->beside[0] = 0;
	file->written = false;
	if (!realpath(name, file->name) || stat(file->name, &was))
		return errno;
	if (!S_ISREG(was.st_mode))
		return EINVAL;
	if (snprintf(file->beside, sizeof(file->beside), "%s.XXXXXX", file->name) >= PATH_MAX) {
		file->beside[0] = 0;
		return ENAMETOOLONG;
	}
	fd = mkostemp(file->beside, O_CLOEXEC);
	if (fd < 0) {
		file->beside[0] = 0;
		return errno;
	}
	err = write_whole(fd, text, strlen(text)) ? errno : 0;
	if (!err &&
	    (fchown(fd, was.st_uid, was.st_gid) || fchmod(fd, was.st_mode & 07777) || fsync(fd)))
		err = errno;
	if (close(fd) && !err)
		err = errno;
	if (err)
		new_file_drop(file);
	return err;
}

int new_file_commit(struct new_file *file)
{
	if (rename(file->beside, file->name)) {
		int err = errno;

		new_file_drop(file);
		return err;
	}
	file->beside[0] = 0;
	file->written = true;
	return durable_name(file->name) ? errno : 0;
}

void new_file_drop(struct new_file *file)
{
	if (file->beside[0])
		unlink(file->beside);
	file->beside[0] = 0;
}
