/* SPDX-License-Identifier: GPL-2.0-only */
/* To be preloaded: the map that UNREAD names is not read, by an error that says so. */
#include <bpf/bpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	static int (*real)(int fd, const void *key, void *value);
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	if (!bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, getenv("UNREAD"))) {
		errno = EFAULT;
		return -1;
	}
	if (!real)
		real = (int (*)(int, const void *, void *))dlsym(RTLD_NEXT, "bpf_map_lookup_elem");
	return real(fd, key, value);
}
