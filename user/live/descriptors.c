/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>

static struct rlimit before;
static bool raised;

static void let_wait(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && (flags & O_NONBLOCK))
		(void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

/* What is closed is opened in the way that is of no use: a read or a write fails as before. */
bool descriptors_open_standard(void)
{
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
			return false;
		let_wait(fd);
	}
	return true;
}

void descriptors_raise(void)
{
	struct rlimit all;

	if (getrlimit(RLIMIT_NOFILE, &before))
		return;
	all = (struct rlimit){before.rlim_max, before.rlim_max};
	raised = !setrlimit(RLIMIT_NOFILE, &all);
}

void descriptors_restore(void)
{
	if (raised)
		(void)setrlimit(RLIMIT_NOFILE, &before);
}
