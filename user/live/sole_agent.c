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

enum sole_agent_seen sole_agent_seen(const struct attached *a)
{
	enum sole_agent_seen seen = SOLE_AGENT_UNSEEN;
	struct flock byte = byte_of(a);
	int fd = copies_lock_look();

	if (fd < 0)
		return fd == COPIES_NO_LOCK ? SOLE_AGENT_NONE : SOLE_AGENT_UNSEEN;
	if (!fcntl(fd, F_OFD_GETLK, &byte))
		seen = byte.l_type == F_UNLCK ? SOLE_AGENT_NONE : SOLE_AGENT_RUNS;
	close(fd);
	return seen;
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
