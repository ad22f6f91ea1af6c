/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A clock that is given, and a length: in place of bpf/clock for an object whose every packet has
 * its time and, where a capture holds only its beginning, the length that it had.
 */
#ifndef PACER_CLOCK_BPF_H
#define PACER_CLOCK_BPF_H

#include <bpf/bpf_helpers.h>

volatile __u64 pacer_given_ns SEC(".data.clock") = 1;
volatile __u64 pacer_given_len SEC(".data.length") = 0; /* 0: as long as it is */

static __always_inline __u64 pacer_clock(int exact)
{
	(void)exact;
	return pacer_given_ns;
}

static __always_inline __u64 given_len(struct xdp_md *ctx)
{
	__u64 len = pacer_given_len;

	return len ? len : bpf_xdp_get_buff_len(ctx);
}

#define bpf_xdp_get_buff_len(ctx) given_len(ctx)

#endif
