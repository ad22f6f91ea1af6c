/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a packet is judged by the policy in force, and a secret is drawn where no loader did.
 * The way of a packet is path.h's; this finds it its policy and its secret.
 */
#ifndef PACER_JUDGE_BPF_H
#define PACER_JUDGE_BPF_H

#include <linux/bpf.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "maps.bpf.h"
#include "clock.bpf.h"
#include "pool.bpf.h"
#include "frame.bpf.h"
#include "path.h"

/* What a secret is drawn by: the addresses and ports of a connection that there is not. */
struct draw {
	struct iphdr ip;
	struct tcphdr tcp;
	__u32 last; /* what was drawn before */
};

/*
 * 24 bits or so that no other program can tell. The generator of bpf_get_prandom_u32 is no secret:
 * classic BPF's SKF_AD_RANDOM shows it to any user, and it runs backwards as well. But the kernel
 * hashes with a secret of its own for SYN cookies. It is asked for one of a connection which the
 * generator, the clock and the cookies before choose; how far that goes is said in hash.h.
 */
static __always_inline __u32 draw(struct draw *d)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 cookie;

	d->ip.saddr = bpf_get_prandom_u32() ^ d->last;
	d->ip.daddr ^= bpf_get_prandom_u32() ^ now_ns;
	d->tcp.source ^= d->last >> 16;
	d->tcp.dest ^= now_ns >> 32;
	cookie = bpf_tcp_raw_gen_syncookie_ipv4(&d->ip, &d->tcp, sizeof(d->tcp));
	d->last = cookie ^ bpf_get_prandom_u32();
	return d->last;
}

/*
 * Draw the hash's secret where no loader did. Every word is drawn once, by whichever CPU comes
 * first, and all use that one.
 */
__attribute__((noinline)) int draw_secret(void)
{
	__u64 *secret = pacer_control.secret[0];
	struct draw d = {.tcp.doff = sizeof(d.tcp) / 4};
	__u32 i;

	for (i = 0; i < PACER_SECRETS; i++) {
		__u64 word = (__u64)draw(&d) << 40 ^ (__u64)draw(&d) << 20 ^ draw(&d);

		if (!secret[i])
			(void)pacer_cas64(&secret[i], 0, word ? word : 1);
	}
	pacer_release(&pacer_control.secret_ready, PACER_SECRET_OF_PROGRAM);
	return 0;
}

_Static_assert((int)PACER_DROP == (int)XDP_DROP && (int)PACER_PASS == (int)XDP_PASS &&
		   (int)PACER_REDIRECT == (int)XDP_REDIRECT,
	       "an action is the program's verdict");

/*
 * By which copy of the policy packets are judged now: its last bit says. The copy that comes back
 * after a trial has limits that begin at the trial's end. So the clock is read anew: from then on
 * the coarse one, too, is at that end or later.
 */
static __always_inline __u32 copy_in_force(void)
{
	__u64 word = *(volatile __u64 *)&pacer_control.in_force;
	__u32 copy = word;

	if (word >> 1) /* an unconfirmed policy */
		copy = pacer_in_force(word, pacer_clock_anew());
	return copy;
}

static __always_inline const struct pacer_policy *policy_of(__u32 copy)
{
	return &pacer_copies[pacer_opaque(copy) & 1].policy;
}

/*
 * The walk of the packet that takes the long way. One for each CPU, which judges one packet after
 * the other: the stack has no room for it under the entry function's.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pacer_walk);
} pacer_walks SEC(".maps");

/* A walk of which nothing is known but the copy: all of it is written. */
static __always_inline void walk_anew(struct pacer_walk *walk, __u32 copy)
{
	__builtin_memset(walk, 0, sizeof(*walk));
	walk->copy = copy & 1;
}

/* The walk of a packet that takes the long way. There is always one. */
static __always_inline struct pacer_walk *walk_begin(__u32 copy)
{
	struct pacer_walk *walk = bpf_map_lookup_elem(&pacer_walks, &pacer_first);

	if (walk)
		walk_anew(walk, copy);
	if (!pacer_control.secret_ready)
		draw_secret();
	return walk;
}

/*
 * The short ways: a verdict, or 0 where they are not for the packet. That of most policies is a
 * part of the entry function: a processor that guards returns against speculation takes 8 ns for
 * each.
 */
static __always_inline int pacer_short(struct xdp_md *ctx, const struct pacer_rule *rule)
{
	__u32 outcome;

	PACER_AS_IT_IS(rule);
	outcome = pacer_path_short(ctx, 0, rule);
	return outcome == PACER_UNDECIDED ? 0 : (int)pacer_path_short_action(outcome);
}

static __attribute__((noinline)) int pacer_part(struct xdp_md *ctx, const struct pacer_rule *rule)
{
	__u32 outcome = pacer_path_short_part(ctx, 0, rule);

	return outcome == PACER_UNDECIDED ? 0 : (int)pacer_path_short_action(outcome);
}

static __attribute__((noinline)) int pacer_ruled(struct xdp_md *ctx,
						 const struct pacer_policy *policy)
{
	__u32 outcome = pacer_path_ruled(ctx, 0, policy);

	return outcome == PACER_UNDECIDED ? 0 : (int)pacer_path_short_action(outcome);
}

/* As pacer_path_short_allowed. */
__attribute__((noinline)) int pacer_allowed(struct xdp_md *ctx, __u32 copy)
{
	struct pacer_walk walk;

	walk_anew(&walk, copy);
	return pacer_path_short_allowed(ctx, &walk, PACER_POLICY_OF(&walk));
}

/* The same where the policy has more beside its rules: outcomes. Apart, so that others do not pay
 * for it.
 */
__attribute__((noinline)) int pacer_part_more(struct xdp_md *ctx, __u32 copy)
{
	return pacer_path_short_part(ctx, 0, &pacer_copies[copy & 1].policy.rule[0]);
}

__attribute__((noinline)) int pacer_ruled_more(struct xdp_md *ctx, __u32 copy)
{
	return pacer_path_ruled(ctx, 0, &pacer_copies[copy & 1].policy);
}

/* As pacer_path_many. */
__attribute__((noinline)) int pacer_many(struct xdp_md *ctx, __u32 copy)
{
	struct pacer_walk *walk = bpf_map_lookup_elem(&pacer_walks, &pacer_first);

	if (!walk) /* there is always one */
		return PACER_UNDECIDED;
	walk->copy = copy & 1;
	return pacer_path_many(ctx, walk, PACER_POLICY_OF(walk));
}

/*
 * That of them which is for packets of this shape. Most policies have one rule, whose way is a part
 * of the entry function here, too.
 */
static __always_inline __u32 any_more(struct xdp_md *ctx, __u32 copy, __u32 shape)
{
	__u32 outcome = PACER_ADMIT;

	if (shape & PACER_SHORT_ALLOWS)
		outcome = pacer_allowed(ctx, copy);
	if (outcome != PACER_ADMIT)
		return outcome;
	if (shape & PACER_SHORT_FIRST) {
		const struct pacer_rule *rule = &policy_of(copy)->rule[0];

		PACER_AS_IT_IS(rule);
		return pacer_path_short(ctx, 0, rule);
	}
	if (shape & PACER_SHORT_MANY)
		return pacer_many(ctx, copy);
	return shape & PACER_SHORT_PART ? pacer_part_more(ctx, copy) : pacer_ruled_more(ctx, copy);
}

/* What is left to do with a packet that a short way has counted. */
#define TO_TAKE	    1u /* the sampler takes it */
#define TO_PUT_OVER 2u /* it is denied, and goes to where the policy says */

/* Does what `more` names, and returns a verdict. A function apart, since few packets need it. */
__attribute__((noinline)) int pacer_short_end(struct xdp_md *ctx, __u32 copy, __u32 outcome,
					      __u32 more)
{
	const struct pacer_policy *policy;
	struct pacer_walk walk;

	walk_anew(&walk, copy);
	policy = PACER_POLICY_OF(&walk);
	walk.rule = pacer_outcome_rule(outcome);
	walk.now_ns = pacer_path_time(ctx, policy, 0);
	if (more & TO_TAKE)
		pacer_path_short_take(ctx, &walk, outcome);
	return more & TO_PUT_OVER ? pacer_path_act(ctx, &walk, policy, &outcome)
				  : pacer_path_short_action(outcome);
}

/*
 * A policy that has more beside its rules, or several limits: a verdict, or 0. Its shape was read
 * once for all. The sampler counts here, since a call would cost more. The policy is found anew
 * each time: there is no stack for it.
 */
static __always_inline int short_more(struct xdp_md *ctx, __u32 copy, __u32 shape)
{
	/* Opaque: else compilers repeat what follows for outcomes that they know. */
	__u32 outcome = pacer_opaque(any_more(ctx, copy, shape));
	__u32 more = pacer_path_short_over(shape, outcome) ? TO_PUT_OVER : 0;

	if (outcome == PACER_UNDECIDED)
		return 0;
	if (pacer_path_short_sampled(policy_of(copy), shape, outcome) &&
	    pacer_sample_due(0, policy_of(copy), pacer_path_time(ctx, policy_of(copy), 0)))
		more |= TO_TAKE;
	return more ? pacer_short_end(ctx, copy, outcome, more)
		    : (int)pacer_path_short_action(outcome);
}

/*
 * The end of the long way. A function of its own, since its caller has no stack to spare. counted:
 * pacer_path_fast has counted the packet.
 */
__attribute__((noinline)) int pacer_end(struct xdp_md *ctx, struct pacer_walk *w, __u32 outcome,
					__u32 counted)
{
	const struct pacer_policy *policy;

	if (!w)
		return XDP_DROP;
	policy = PACER_POLICY_OF(w);
	return counted ? pacer_path_end_fast(ctx, w, policy, outcome)
		       : pacer_path_end(ctx, w, policy, &outcome);
}

/* What it has left. Both are functions, so that neither has the other's stack. */
__attribute__((noinline)) int pacer_long(struct xdp_md *ctx, __u32 copy)
{
	struct pacer_walk *walk = walk_begin(copy);
	__u32 outcome, counted;

	if (!walk)
		return XDP_DROP;
	outcome = pacer_path_fast(ctx, walk, PACER_POLICY_OF(walk));
	counted = outcome >> 16;
	outcome = pacer_path_rest(ctx, walk, outcome);
	return pacer_end(ctx, walk, outcome, counted);
}

/* XDP's verdict on the packet. */
static __always_inline int judge(struct xdp_md *ctx)
{
	__u32 copy = copy_in_force();
	const struct pacer_policy *policy = &pacer_copies[copy & 1].policy;
	__u32 shape = policy->shape;
	int verdict = 0;

	if (shape & PACER_SHORT_ALONE)
		verdict = pacer_short(ctx, &policy->rule[0]);
	else if (shape & (PACER_SHORT_MORE | PACER_SHORT_MANY))
		verdict = short_more(ctx, copy, shape);
	else if (shape & PACER_SHORT_PART)
		verdict = pacer_part(ctx, &policy->rule[0]);
	else if (shape)
		verdict = pacer_ruled(ctx, policy);

	return verdict ? verdict : pacer_long(ctx, copy);
}

#endif
