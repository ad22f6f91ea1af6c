// SPDX-License-Identifier: GPL-2.0-only
/* A pacer of another version, of which only the beginning of its control map is known. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__u32 magic, abi_version, rest[30];
} elder_control SEC(".data.control") = {.magic = 0x52434150, .abi_version = 1};

SEC("xdp.elder") int pacer(struct xdp_md *ctx)
{
	return elder_control.rest[0] ? XDP_DROP : XDP_PASS;
}
