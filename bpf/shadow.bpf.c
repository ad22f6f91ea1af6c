/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two programs that judge a packet one after the other: `pacer` by the policy in force, and
 * `pacer_shadow`, on maps of its own, by another one that is tried beside it. The first leaves its
 * verdict and goes over to the second by a tail call. The second says how the packet would have
 * fared, and returns the verdict of the first. If there is no second, that verdict stands.
 *
 * A tool loads the object twice, one program of it at a time (live/shadow.c). `pacer` goes in the
 * place of the object's that has no shadow, on the same maps. So that one pays nothing for this.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xdp/xdp_helpers.h>

#include "judge.bpf.h"
#include "beside.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(priority, 20);
	__uint(XDP_PASS, 1);
} XDP_RUN_CONFIG(pacer);

/* The second program. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} pacer_next SEC(".maps");

/* The verdict of the first. Both programs have this map. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} pacer_told SEC(".maps");

/* By the counter of the shadow's rule. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PACER_COUNTERS_MAX);
	__type(key, __u32);
	__type(value, struct pacer_changes);
} pacer_changes SEC(".maps");

/* Packets that fare differently: a sampler for each CPU. The tool makes it that large. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pacer_sampler);
} pacer_differ SEC(".maps");

struct pacer_shadow pacer_shadowed SEC(".data.shadow") = {0};

static __always_inline __u32 *told_here(void)
{
	return bpf_map_lookup_elem(&pacer_told, &pacer_first);
}

SEC("xdp.frags") int pacer(struct xdp_md *ctx)
{
	int verdict = judge(ctx);
	__u32 *told = told_here();

	if (told) {
		*told = verdict;
		bpf_tail_call(ctx, &pacer_next, 0);
	}
	return verdict;
}

/* A packet that fares differently, and has a key. */
__attribute__((noinline)) int sample_change(const struct pacer_walk *w, __u32 outcome)
{
	const struct pacer_sampling *by = &pacer_shadowed.of;
	__u32 cpu = bpf_get_smp_processor_id();
	struct pacer_sample_item item = {0};
	struct pacer_sampler *s = bpf_map_lookup_elem(&pacer_differ, &cpu);

	if (!w || !s)
		return 0;
	item.time_ns = w->now_ns ? w->now_ns : pacer_clock(0);
	if (!pacer_sampler_due(s, by, item.time_ns))
		return 0;
	pacer_sample_fill(w, outcome, &item);
	pacer_sample_write_begin(&s->seq);
	pacer_sampler_take(s, by, &item);
	pacer_sample_write_end(&s->seq);
	return 0;
}

static __always_inline int has_key(enum pacer_reason reason)
{
	return pacer_verdict_of(reason) != PACER_VERDICT_UNPARSED && reason != PACER_NOT_IP;
}

static __always_inline int compare(const struct pacer_walk *w, __u32 outcome, int would_be)
{
	__u32 slot = w->rule < PACER_RULES_MAX ? PACER_RULE_OF(w)->counter : 0;
	struct pacer_changes *changes = bpf_map_lookup_elem(&pacer_changes, &slot);
	__u32 *told = told_here();
	enum pacer_change change;

	if (!told) /* there is always one */
		return XDP_DROP;
	change = pacer_change_of(*told == XDP_PASS, would_be == XDP_PASS);
	if (changes)
		pacer_changes_count(changes, change, outcome, w->pkt.len_bytes);
	if (change != PACER_CHANGE_NONE && has_key(pacer_outcome_reason(outcome)))
		sample_change(w, outcome);
	return *told;
}

/*
 * The end of the way, and the verdict of the first. A function of its own, since its caller has no
 * stack to spare. counted: pacer_path_fast has counted it.
 */
__attribute__((noinline)) int end(struct xdp_md *ctx, struct pacer_walk *w, __u32 outcome,
				  __u32 counted)
{
	const struct pacer_policy *policy;
	int would_be;

	if (!w)
		return XDP_DROP;
	policy = PACER_POLICY_OF(w);
	would_be = counted ? pacer_path_end_fast(ctx, w, policy, outcome)
			   : pacer_path_end(ctx, w, policy, &outcome);
	return compare(w, outcome, would_be);
}

/* The tool says that it is for frames of several buffers, if it says so of the first (object.c). */
SEC("xdp") int pacer_shadow(struct xdp_md *ctx)
{
	struct pacer_walk *walk = walk_begin(copy_in_force());
	__u32 outcome, counted;

	if (!walk)
		return XDP_DROP;
	outcome = pacer_path_fast(ctx, walk, PACER_POLICY_OF(walk));
	counted = outcome >> 16;
	outcome = pacer_path_rest(ctx, walk, outcome);
	return end(ctx, walk, outcome, counted);
}
