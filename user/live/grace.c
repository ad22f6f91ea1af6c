/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/grace.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int map_of(int inner_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .inner_map_fd = inner_fd);
	enum bpf_map_type type = inner_fd < 0 ? BPF_MAP_TYPE_ARRAY : BPF_MAP_TYPE_ARRAY_OF_MAPS;

	return bpf_map_create(type, "pacer_grace", 4, 4, 1, inner_fd < 0 ? NULL : &options);
}

/*
 * Updating a map of maps returns only after all BPF programs that were running have ended. The
 * content does not matter, so a map of our own serves.
 */
static int wait_by_map(void)
{
	int inner_fd = map_of(-1), outer_fd = inner_fd < 0 ? -1 : map_of(inner_fd);
	uint32_t first = 0;
	int err = outer_fd < 0 ? -1 : bpf_map_update_elem(outer_fd, &first, &inner_fd, BPF_ANY);
	int cause = errno;

	if (outer_fd >= 0)
		close(outer_fd);
	if (inner_fd >= 0)
		close(inner_fd);
	errno = cause;
	return err;
}

/* Some kernels refuse the first way: they are built without it, or have CPUs without a tick. */
int grace(const char *ifname, struct policy_error *error)
{
	if (!syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) || !wait_by_map())
		return 0;
	return policy_fail(error, 0,
			   "%s: the kernel cannot tell when its CPUs are done with the old policy: "
			   "%s: run as root, where membarrier and bpf are not forbidden",
			   ifname, strerror(errno));
}
