/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preloaded: a program that has taken an XDP program off an interface stands still then, until
 * somebody opens the pipe HELD for writing.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct bpf_xdp_attach_opts;

int bpf_xdp_detach(int ifindex, uint32_t flags, const struct bpf_xdp_attach_opts *opts);
int bpf_xdp_detach(int ifindex, uint32_t flags, const struct bpf_xdp_attach_opts *opts)
{
	int (*next)(int, uint32_t, const struct bpf_xdp_attach_opts *);
	const char *pipe = getenv("HELD");
	int result, fd;

	*(void **)&next = dlsym(RTLD_NEXT, "bpf_xdp_detach");
	result = next(ifindex, flags, opts);
	fd = pipe ? open(pipe, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0)
		close(fd);
	return result;
}
