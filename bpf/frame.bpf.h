/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hooks of path.h: what a frame is here, who is on the allow-list, whom other tools ban, and
 * where this CPU counts and samples.
 */
#ifndef PACER_FRAME_BPF_H
#define PACER_FRAME_BPF_H

#include <bpf/bpf_endian.h>

#include "maps.bpf.h"
#include "clock.bpf.h"
#include "limit.h"

static __always_inline int on_trie(struct pacer_allow_value *value, int exact)
{
	return value && (!value->until_ns || pacer_clock(exact) < value->until_ns);
}

static __attribute__((noinline)) int allowed(const struct pacer_packet *pkt, __u32 copy, int exact)
{
	const __u32 *saddr = &pkt->key[PACER_WORD_SADDR];

	if (pkt->family == PACER_FAMILY_4) {
		struct {
			__u32 prefixlen, copy, addr;
		} key = {PACER_ALLOW_COPY_BITS + 32, copy, bpf_htonl(saddr[0])};

		return on_trie(bpf_map_lookup_elem(&pacer_allow4, &key), exact);
	}
	if (pkt->family == PACER_FAMILY_6) {
		struct {
			__u32 prefixlen, copy, addr[4];
		} key = {PACER_ALLOW_COPY_BITS + 128,
			 copy,
			 {bpf_htonl(saddr[0]), bpf_htonl(saddr[1]), bpf_htonl(saddr[2]),
			  bpf_htonl(saddr[3])}};

		return on_trie(bpf_map_lookup_elem(&pacer_allow6, &key), exact);
	}
	return 0;
}

/* Does another tool ban the packet's source? The longest prefix counts. */
__attribute__((noinline)) int banned_by_tool(const struct pacer_walk *w)
{
	const struct pacer_tools_value *value;
	__u32 key[5], i;

	if (!w)
		return 0;
	key[0] = w->pkt.family == PACER_FAMILY_4 ? 32 : 128;
	for (i = 0; i < 4; i++)
		key[1 + i] = bpf_htonl(w->pkt.key[PACER_WORD_SADDR + i]);
	if (w->pkt.family == PACER_FAMILY_4)
		value = bpf_map_lookup_elem(&pacer_banned4, key);
	else
		value = bpf_map_lookup_elem(&pacer_banned6, key);
	return value && (!value->until_ns || w->now_ns < value->until_ns);
}

/* Of what is in the first buffer, where the frame has many. */
static __always_inline int parse(struct xdp_md *ctx, struct pacer_packet *pkt)
{
	void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	__u32 len_bytes = bpf_xdp_get_buff_len(ctx);

	return pacer_built.raw_ip ? pacer_parse_raw(data, data_end, len_bytes, pkt)
				  : pacer_parse(data, data_end, len_bytes, pkt);
}

#define PACER_FRAME		       struct xdp_md
#define PACER_FRAME_PARSE(ctx, pkt)    parse(ctx, pkt)
#define PACER_FRAME_DATA(ctx)	       ((const __u8 *)(long)(ctx)->data)
#define PACER_FRAME_END(ctx)	       ((const __u8 *)(long)(ctx)->data_end)
#define PACER_FRAME_LEN(ctx)	       bpf_xdp_get_buff_len(ctx)
#define PACER_FRAME_LOAD(ctx, to, len) bpf_xdp_load_bytes(ctx, 0, to, len)
#define PACER_FRAME_NOW(ctx, exact)    ((void)(ctx), pacer_clock(exact))
#define PACER_IS_ALLOWED(ctx, walk, exact)                           \
	((void)(ctx), pacer_control.allowed[(walk)->copy & 1].any && \
			  allowed(&(walk)->pkt, (walk)->copy, exact))
#define PACER_BANNED_BY_TOOL(walk)    banned_by_tool(walk)
#define PACER_COUNTERS_AT(walk, slot) ((void)(walk), pacer_map_counters(slot))
#define PACER_SAMPLER_OF(walk)	      ((void)(walk), pacer_map_sampler(bpf_get_smp_processor_id()))
#define PACER_HEADS_OF(walk)	      ((void)(walk), pacer_map_heads(bpf_get_smp_processor_id()))
#define PACER_LOG_OF(walk)	      ((void)(walk), pacer_map_log())
#define PACER_TO_POOL(ctx, walk)      to_pool(ctx, walk)

#endif
