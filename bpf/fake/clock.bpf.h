/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A clock and a length that are given. It replaces bpf/clock in an object for captures. Each packet
 * has its time, and the length that the frame had if the capture has only its beginning.
 */
#ifndef PACER_CLOCK_BPF_H
#define PACER_CLOCK_BPF_H

#include <bpf/bpf_helpers.h>

volatile __u64 pacer_fake_ns SEC(".data.clock") = 1;
volatile __u64 pacer_fake_len SEC(".data.length") = 0; /* 0: the length of the packet */

static __always_inline __u64 pacer_clock(int exact)
{
	(void)exact;
	return pacer_fake_ns;
}

static __always_inline __u64 pacer_clock_anew(void)
{
	return pacer_clock(1);
}

static __always_inline __u64 fake_len(struct xdp_md *ctx)
{
	__u64 len = pacer_fake_len;

	return len ? len : bpf_xdp_get_buff_len(ctx);
}

#define bpf_xdp_get_buff_len(ctx) fake_len(ctx)

#endif
