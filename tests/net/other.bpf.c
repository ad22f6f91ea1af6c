// SPDX-License-Identifier: GPL-2.0-only
/* XDP programs of somebody else: one of another name, and one that is named like ours. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("xdp.other") int other(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("xdp.namesake") int pacer(struct xdp_md *ctx)
{
	return XDP_PASS;
}
