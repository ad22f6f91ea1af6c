/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program itself, but what it lets through is dropped after it was counted. So an admitted
 * packet can be measured on real frames without what the stack behind it costs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "judge.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("xdp.frags") int pacer(struct xdp_md *ctx)
{
	int verdict = judge(ctx);

	return verdict == XDP_PASS ? XDP_DROP : verdict;
}
