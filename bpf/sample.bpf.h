/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the sampler's way in the packet path: the packet is judged, and is of those that the
 * policy samples. A policy that samples comes into force with memory for it.
 *
 * Concurrency: a CPU's own sampler and heads; their readers work on copies (sampler.h).
 */
#ifndef PACER_SAMPLE_BPF_H
#define PACER_SAMPLE_BPF_H

#include "maps.bpf.h"
#include "clock.bpf.h"
#include "pace.h"
#include "sampler.h"

/* What became of a packet, as an argument. */
static __always_inline __u32 fate_of(__u32 reason, __u32 tier, __u32 rule)
{
	return reason | tier << 8 | rule << 16;
}

/* The rule's number, and the hash of the key that was judged: of the tier that denied, or of the
 * first. 0: there is none.
 */
static __always_inline void fill_judged(struct pacer_sample_item *item,
					const struct pacer_walk *walk, __u32 fate)
{
	__u32 rule = fate >> 16, tier = pacer_opaque(fate >> 8) & (PACER_TIERS_MAX - 1);
	const struct pacer_rule *judged;

	item->reason = fate;
	item->rule = 0;
	item->key = 0;
	if (rule >= PACER_RULES_MAX)
		return;
	judged = &PACER_POLICY_OF(walk)->rule[pacer_opaque(rule) & (PACER_RULES_MAX - 1)];
	item->rule = judged->counter;
	item->key = pacer_tier_hash(&judged->tier[tier], &walk->pkt,
				    PACER_SECRET_AT(walk, judged->tier[tier].secret))
			.place;
}

__attribute__((noinline)) int fill_item(const struct pacer_walk *walk, __u32 fate,
					struct pacer_sample_item *item)
{
	const struct pacer_packet *pkt;
	__u32 i, ports;

	if (!walk || !item)
		return 0;
	pkt = &walk->pkt;
	ports = pkt->key[PACER_WORD_PORTS];
	for (i = 0; i < 4; i++) {
		item->saddr[i] = pkt->key[PACER_WORD_SADDR + i];
		item->daddr[i] = pkt->key[PACER_WORD_DADDR + i];
	}
	item->sport = ports >> 16;
	item->dport = ports;
	item->len_bytes = pkt->len_bytes;
	item->family = pkt->family | (pkt->fragment == PACER_FRAG_LATER ? PACER_SAMPLER_LATER : 0);
	item->proto = pkt->proto;
	fill_judged(item, walk, fate);
	return 0;
}

/* The frame's first bytes, 1 to PACER_SNAP_MAX of them. Verifiers want to see that they are. */
static __always_inline void load_head(struct xdp_md *ctx, struct pacer_heads *heads, __u32 len)
{
	len = (pacer_opaque(len - 1) & (PACER_SNAP_MAX - 1)) + 1;
	bpf_xdp_load_bytes(ctx, 0, heads->last, len);
}

/* They are kept beside every sample that took the packet. */
__attribute__((noinline)) int keep_head(struct xdp_md *ctx, const struct pacer_sampler *s,
					__u32 len)
{
	struct pacer_heads *heads;
	__u64 left;
	__u32 i;

	if (!s || !len)
		return 0;
	heads = pacer_map_heads(bpf_get_smp_processor_id());
	if (!heads)
		return 0;
	load_head(ctx, heads, len);
	left = s->took;
	PACER_ROLLED
	for (i = 0; i < PACER_SAMPLE_K && left; i++) {
		__u32 place = pacer_sampler_place(s, pacer_sampler_lowest(left));

		left &= left - 1;
		__builtin_memcpy(heads->at[place], heads->last, PACER_SNAP_MAX / 2);
		if (len > PACER_SNAP_MAX / 2)
			__builtin_memcpy(&heads->at[place][PACER_SNAP_MAX / 16],
					 &heads->last[PACER_SNAP_MAX / 16], PACER_SNAP_MAX / 2);
	}
	return 0;
}

/* Of a packet that is to be taken. */
__attribute__((noinline)) int take_sample(struct xdp_md *ctx, const struct pacer_walk *walk,
					  __u32 fate, __u64 now_ns, struct pacer_sampler *s)
{
	struct pacer_sample_item item = {.time_ns = now_ns};
	const struct pacer_sampling *by;

	if (!walk || !s)
		return 0;
	by = &PACER_POLICY_OF(walk)->sampling;
	fill_item(walk, fate, &item);
	pacer_sample_write_begin(&s->seq);
	pacer_sampler_take(s, by, &item);
	if (by->snap)
		keep_head(ctx, s, walk->pkt.len_bytes < by->snap ? walk->pkt.len_bytes : by->snap);
	pacer_sample_write_end(&s->seq);
	return 0;
}

/* A packet that was parsed and judged. Most are only counted. */
__attribute__((noinline)) int sample(struct xdp_md *ctx, const struct pacer_walk *walk, __u32 fate)
{
	const struct pacer_policy *policy;
	struct pacer_sampler *s;
	__u64 now_ns;

	if (!walk)
		return 0;
	policy = PACER_POLICY_OF(walk);
	s = pacer_map_sampler(bpf_get_smp_processor_id());
	if (!s)
		return 0;
	/* Who is on the allow-list is let through without a look at the clock. */
	now_ns = walk->now_ns;
	if (!now_ns)
		now_ns = pacer_clock(!!(policy->flags & PACER_CLOCK_EXACT));
	if (pacer_sampler_due(s, &policy->sampling, now_ns))
		take_sample(ctx, walk, fate, now_ns, s);
	return 0;
}

#endif
