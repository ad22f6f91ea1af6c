/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/sole_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "live/copies.h"

static struct flock byte_of(const struct attached *a)
{
	return (struct flock){
	    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = a->control_id, .l_len = 1};
}

bool sole_agent_lacks(struct attached *a)
{
	struct flock byte = byte_of(a);
	struct policy_error unused;
	int fd = copies_lock_of(a, &unused);
	bool lacks = fd >= 0 && !fcntl(fd, F_OFD_GETLK, &byte) && byte.l_type == F_UNLCK;

	if (fd >= 0)
		close(fd);
	return lacks;
}

int sole_agent(struct attached *a, struct policy_error *error)
{
	struct flock byte = byte_of(a);
	int fd = copies_lock_of(a, error);
	int why;

	if (fd < 0)
		return -1;
	if (!fcntl(fd, F_OFD_SETLK, &byte) && !flock(fd, LOCK_UN))
		return fd;
	why = errno;
	close(fd);
	if (why == EAGAIN || why == EACCES)
		return policy_fail(error, 0,
				   "%s: another agent runs for its state: one is enough for all "
				   "interfaces that share it: end that first",
				   a->ifname);
	return policy_fail(error, 0, "%s: its state cannot be locked for its agent: %s", a->ifname,
			   strerror(why));
}
