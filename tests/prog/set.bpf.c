/* SPDX-License-Identifier: GPL-2.0-only */
/* A set of prefixes in the kernel (set.bpf.h), asked for what a packet's bytes say. */
#include "set.bpf.h"
#include "set_test.h"

char LICENSE[] SEC("license") = "GPL";

struct set_seen set_seen SEC(".data.seen");

static __always_inline int both(void *set, const __u32 addr[4])
{
	int pair = pacer_set_find4(set, addr[0]) * SET_PAIR;

	pair += pacer_set_find6(set, addr);
	if (pair == SET_PAIR + 1)
		__sync_fetch_and_add(&set_seen.one, 1);
	else if (pair == 2 * SET_PAIR + 2)
		__sync_fetch_and_add(&set_seen.two, 1);
	else
		__sync_fetch_and_add(&set_seen.other, 1);
	return pair;
}

SEC("xdp") int set_test(struct xdp_md *ctx)
{
	const struct set_question *q = (void *)(long)ctx->data;
	__u32 addr[4];
	void *set;

	if ((const void *)(q + 1) > (void *)(long)ctx->data_end)
		return SET_NONE;
	set = pacer_map_set(q->copy, q->set);
	if (!set)
		return SET_NONE;
	__builtin_memcpy(addr, q->addr, sizeof(addr));
	if (q->family == 4)
		return pacer_set_find4(set, addr[0]);
	return q->family == 6 ? pacer_set_find6(set, addr) : both(set, addr);
}
