/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>

static struct rlimit before;
static bool raised;

/* Each in the way that is of no use, so that a read or a write fails as if it were closed. */
bool descriptors_open_standard(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
			return false;
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
