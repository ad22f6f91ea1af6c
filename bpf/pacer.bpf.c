/* SPDX-License-Identifier: GPL-2.0-only */
/* The packet path, top to bottom. What judges is in common/; this file finds it its state. */
#include <linux/bpf.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <xdp/xdp_helpers.h>

#include "maps.bpf.h"
#include "clock.bpf.h"
#include "pace.h"
#include "pool.bpf.h"
#include "sample.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Beside other programs of the interface: before most, and they see what is let through. */
struct {
	__uint(priority, 20);
	__uint(XDP_PASS, 1);
} XDP_RUN_CONFIG(pacer);

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

/* A packet that no rule is looked for: it has neither a time nor a rule. */
static __always_inline int unjudged(struct pacer_walk *walk, int reason)
{
	walk->now_ns = 0;
	walk->rule = PACER_RULES_MAX;
	return reason;
}

/* Of what is in the first buffer, where the frame has many. */
static __always_inline int parse(struct xdp_md *ctx, struct pacer_packet *pkt)
{
	void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	__u32 len_bytes = bpf_xdp_get_buff_len(ctx);

	return pacer_built.raw_ip ? pacer_parse_raw(data, data_end, len_bytes, pkt)
				  : pacer_parse(data, data_end, len_bytes, pkt);
}

/* What has to be known of a packet before a limit can be asked: a reason, where none will be, or
 * PACER_UNDECIDED and the rule.
 */
static __always_inline int approach(struct xdp_md *ctx, struct pacer_walk *walk,
				    const struct pacer_policy *policy)
{
	int exact = !!(policy->flags & PACER_CLOCK_EXACT);
	int result = parse(ctx, &walk->pkt);

	if (result != PACER_PARSED)
		return unjudged(walk, pacer_parse_reason(result));
	if (pacer_control.allowed[walk->copy & 1].any && allowed(&walk->pkt, walk->copy, exact))
		return unjudged(walk, PACER_ALLOWED);
	if (!pacer_control.secret_ready)
		draw_secret();
	walk->now_ns = pacer_clock(exact);
	walk->rule = pacer_walk_rule(walk, policy);
	return walk->rule < PACER_RULES_MAX ? PACER_UNDECIDED : PACER_NO_RULE;
}

static __always_inline struct pacer_counters *count(__u32 slot, enum pacer_reason reason,
						    __u32 len_bytes)
{
	struct pacer_counters *counters = bpf_map_lookup_elem(&pacer_counts, &slot);

	if (!counters || reason >= PACER_REASON_COUNT)
		return 0;
	counters->by[reason].packets++;
	counters->by[reason].bytes += len_bytes;
	return counters;
}

/* What became of the packet is of what the policy samples. */
static __always_inline int is_sampled(const struct pacer_policy *policy, __u32 reason)
{
	return policy->sampling.reasons >> (reason & 31) & 1;
}

/* Beside a reason: the packet is not done with. In its place: the rule's limits are still to be
 * asked, or only to be settled.
 */
#define FURTHER 0x100
#define ASK	PACER_REASON_COUNT
#define SETTLE	(PACER_REASON_COUNT + 1)

/*
 * All that most packets need, in one function, since calls would cost as much as the limits: the
 * reason, where the rule is a plain one and the packet is counted, or else FURTHER and more.
 * Static, since the kernels below would have a global function's caller write the walk that this
 * one is to fill.
 */
static __attribute__((noinline)) int begin(struct xdp_md *ctx, struct pacer_walk *walk,
					   const struct pacer_policy *policy)
{
	const struct pacer_rule *rule;
	__u32 reason;
	int result;

	result = approach(ctx, walk, policy);
	if (result != PACER_UNDECIDED)
		return FURTHER | result;
	rule = &policy->rule[walk->rule & (PACER_RULES_MAX - 1)];
	if (!rule->plain || walk->pkt.key[PACER_WORD_META] & PACER_META_PART)
		return FURTHER | ASK;
	result = pacer_limit_pass(walk, &rule->tier[0]);
	if (result == PACER_UNDECIDED)
		return FURTHER | SETTLE;
	reason = pacer_opaque(result);
	count(rule->counter, reason, walk->pkt.len_bytes);
	return reason;
}

static __always_inline struct pacer_judgement judge(struct pacer_walk *walk, __u32 reason)
{
	struct pacer_judgement j = {reason, PACER_RULES_MAX, 0, PACER_EVENT_COUNT};

	if (reason == ASK)
		return pacer_pace_rule(walk);
	if (reason == SETTLE) {
		j.reason = pacer_reason_of(pacer_limit_settle(walk));
		j.rule = walk->rule;
	}
	return j;
}

/* Where j->rule is one. Some verifiers want to see that by a mask. */
static __always_inline const struct pacer_rule *rule_of(const struct pacer_policy *policy,
							const struct pacer_judgement *j)
{
	return &policy->rule[pacer_opaque(j->rule) & (PACER_RULES_MAX - 1)];
}

static __always_inline struct pacer_counters *count_judged(const struct pacer_policy *policy,
							   const struct pacer_judgement *j,
							   const struct pacer_walk *walk)
{
	__u32 slot = j->rule < PACER_RULES_MAX ? rule_of(policy, j)->counter : 0;
	struct pacer_counters *counters = count(slot, j->reason, walk->pkt.len_bytes);
	__u32 event = pacer_opaque(j->event);

	if (counters && event < PACER_EVENT_COUNT)
		counters->events[event]++;
	if (counters && walk->pkt.key[PACER_WORD_META] & PACER_META_PART)
		counters->events[PACER_READ_IN_PART]++;
	return counters;
}

static __always_inline enum pacer_over over_of(const struct pacer_policy *policy,
					       const struct pacer_judgement *j)
{
	return j->rule < PACER_RULES_MAX ? rule_of(policy, j)->over : PACER_OVER_DROP;
}

static __always_inline int action(const struct pacer_policy *policy,
				  const struct pacer_judgement *j)
{
	switch (pacer_verdict_of(j->reason)) {
	case PACER_VERDICT_PASS:
	case PACER_VERDICT_ADMIT:
		return XDP_PASS;
	case PACER_VERDICT_UNPARSED:
		if (policy->flags & PACER_MONITOR)
			return XDP_PASS;
		/* The stack may take what is too deep: it passes by no limit. */
		return policy->flags & PACER_UNPARSED_DROP || j->reason == PACER_TOO_DEEP
			   ? XDP_DROP
			   : XDP_PASS;
	case PACER_VERDICT_DENY:
		break;
	}
	return policy->flags & PACER_MONITOR || over_of(policy, j) == PACER_OVER_PASS ? XDP_PASS
										      : XDP_DROP;
}

/* What is denied and enforced by a rule with a pool: XDP_REDIRECT, or the rule's verdict. */
static __always_inline int redirect(struct xdp_md *ctx, const struct pacer_walk *walk,
				    struct pacer_counters *counters)
{
	__u32 event = to_pool(ctx, walk);

	event = pacer_opaque(event);
	if (counters && event < PACER_EVENT_COUNT)
		counters->events[event]++;
	return event == PACER_REDIRECTED ? XDP_REDIRECT : XDP_DROP;
}

SEC("xdp.frags") int pacer(struct xdp_md *ctx)
{
	__u64 word = *(volatile __u64 *)&pacer_control.in_force;
	const struct pacer_policy *policy;
	struct pacer_counters *counters;
	struct pacer_judgement j;
	struct pacer_walk walk;
	int result, verdict;

	/* Not all of it is written on every path: kernels before 6.1.192 want to see that it is. */
	walk.state = 0;
	walk.rule = 0;
	walk.copy = word;
	if (word >> 1) /* an unconfirmed policy */
		walk.copy = pacer_in_force(word, pacer_clock(1));
	walk.copy &= 1;
	policy = PACER_POLICY_OF(&walk);
	result = begin(ctx, &walk, policy);
	if (!(result & FURTHER)) {
		if (is_sampled(policy, result))
			sample(ctx, &walk, fate_of(result, 0, walk.rule));
		return result == PACER_ADMIT ? XDP_PASS : XDP_DROP;
	}
	j = judge(&walk, result & ~FURTHER);
	counters = count_judged(policy, &j, &walk);
	if (is_sampled(policy, j.reason))
		sample(ctx, &walk, fate_of(j.reason, j.tier, j.rule));
	verdict = action(policy, &j);
	if (verdict == XDP_DROP && over_of(policy, &j) == PACER_OVER_POOL)
		verdict = redirect(ctx, &walk, counters);
	return verdict;
}
