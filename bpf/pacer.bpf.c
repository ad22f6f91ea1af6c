/* SPDX-License-Identifier: GPL-2.0-only */
/* The program. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xdp/xdp_helpers.h>

#include "judge.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Beside other programs of the interface: before most, and they see what is let through. */
struct {
	__uint(priority, 20);
	__uint(XDP_PASS, 1);
} XDP_RUN_CONFIG(pacer);

SEC("xdp.frags") int pacer(struct xdp_md *ctx)
{
	return judge(ctx);
}
