/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: sends packets over a rule's limits to the targets of its pool, in turns, and those
 * of a rule, or of none, whose verdict is a pool. If no target
 * can take a packet, it is dropped.
 *
 * Concurrency: pool.h's. The turn is in the policy's copy, beside its pool.
 *
 * Error: if the target is gone when a packet is redirected, the use is lost.
 */
#ifndef PACER_POOL_BPF_H
#define PACER_POOL_BPF_H

#include "maps.bpf.h"
#include "limit.h"
#include "pool.h"

/* A socket takes only packets of the queue that it is bound to. The kernel drops others. */
static __always_inline int to_socket(struct xdp_md *ctx, __u32 number)
{
	struct bpf_xdp_sock *socket = bpf_map_lookup_elem(&pacer_sockets, &number);

	if (!socket || socket->queue_id != ctx->rx_queue_index)
		return XDP_DROP;
	return bpf_redirect_map(&pacer_sockets, number, XDP_DROP);
}

static __always_inline int to_target(struct xdp_md *ctx, const struct pacer_walk *walk,
				     const struct pacer_pool *pool, __u32 number, __u32 target)
{
	__u32 of = pool->target[target & (PACER_TARGETS_MAX - 1)];

	if (pacer_built.beside) /* the kernel knows it when it loads the program */
		return XDP_REDIRECT;
	switch (pool->kind) {
	case PACER_TARGET_INTERFACE:
		return bpf_redirect_map(
		    &pacer_devices, pacer_target_index(walk->copy & 1, number, target), XDP_DROP);
	case PACER_TARGET_CPU:
		return bpf_redirect_map(&pacer_cpus, of, XDP_DROP);
	case PACER_TARGET_SOCKET:
		return to_socket(ctx, of);
	}
	return XDP_DROP;
}

/*
 * Sends the packet to the target of the rule's pool whose turn it is. Returns what happened, an
 * enum pacer_event.
 */
__attribute__((noinline)) int to_pool(struct xdp_md *ctx, const struct pacer_walk *walk)
{
	const struct pacer_policy *policy;
	struct pacer_pool_lease *lease;
	struct pacer_pool *pool;
	__u32 number, index;

	if (!walk)
		return PACER_POOL_SPENT;
	policy = PACER_POLICY_OF(walk);
	number = policy->else_pool;
	if (walk->rule < PACER_RULES_MAX)
		number = policy->rule[pacer_opaque(walk->rule) & (PACER_RULES_MAX - 1)].pool;
	number &= PACER_POOLS_MAX - 1;
	index = (walk->copy & 1) * PACER_POOLS_MAX + number;
	lease = bpf_map_lookup_elem(&pacer_pool_leases, &index);
	pool = &pacer_copies[walk->copy & 1].policy.pool[number];
	if (!lease || pacer_pool_next(&pool->throttle, pool->n, pool, lease, walk->now_ns) !=
			  PACER_THROTTLE_ADMIT)
		return PACER_POOL_SPENT;
	return to_target(ctx, walk, pool, number, lease->target) == XDP_REDIRECT
		   ? PACER_REDIRECTED
		   : PACER_TARGET_GONE;
}

#endif
