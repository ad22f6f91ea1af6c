/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program itself, but what it lets through is dropped after it was counted. So an admitted
 * packet can be measured on real frames without what the stack behind it costs.
 */
#include <linux/bpf.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <xdp/xdp_helpers.h>

#include "maps.bpf.h"
#include "clock.bpf.h"
#include "pool.bpf.h"
#include "frame.bpf.h"
#include "path.h"

static __always_inline int dropped(int action)
{
	return action == XDP_PASS ? XDP_DROP : action;
}

/* From here on, as the headers above were read with the words' own meaning. */
#define XDP_PASS			    XDP_DROP
#define PACER_PASS			    PACER_DROP
#define pacer_path_long(ctx, walk, outcome) dropped(pacer_path_long(ctx, walk, outcome))

#include "../../bpf/pacer.bpf.c"
