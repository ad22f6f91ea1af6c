/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the whole way of a packet, once for every host: parse, allow-list, rule, bans, limits,
 * count, sample, verdict. The kernel's program, replay and the tests run it; a host says by a few
 * macros where it keeps what a packet is judged by.
 *
 * Concurrency: any number of CPUs, as rule.h says. A walk is one CPU's, and its
 * leases, counters and sampler are only that CPU's.
 *
 * Error: that of the rule. What is not read to the end has a verdict of its own.
 */
#ifndef PACER_PATH_H
#define PACER_PATH_H

#include "abi.h"
#include "frame.h"
#include "inner.h"
#include "log.h"
#include "more.h"
#include "outcome.h"
#include "parse.h"
#include "rule.h"
#include "sampler.h"
#include "short.h"

/* What is done with a packet: XDP's numbers. */
enum pacer_action { PACER_DROP = 1, PACER_PASS = 2, PACER_REDIRECT = 4 };

/*
 * The host. One that has these elsewhere defines the macros below, a group of them at a time, and
 * those of frame.h. Here counters and samplers are the state's, nobody is on an allow-list, and no
 * pool has a target.
 */
#ifndef PACER_COUNTERS_AT
#define PACER_COUNTERS_AT(walk, slot) ((walk)->state->counters ? &(walk)->state->counters[slot] : 0)
#define PACER_SAMPLER_OF(walk)	      ((walk)->state->sampler)
#define PACER_HEADS_OF(walk)	      ((walk)->state->heads)
#define PACER_LOG_OF(walk)	      ((walk)->state->log)
#endif
#ifndef PACER_IS_ALLOWED
#define PACER_IS_ALLOWED(frame, walk, exact) ((void)(frame), (void)(walk), (void)(exact), 0)
#endif
#ifndef PACER_HIDES_INNER /* its source is banned: what is in its tunnel is not looked at */
#define PACER_HIDES_INNER(frame, walk) pacer_walk_source_denied(walk)
#endif
#ifndef PACER_TO_POOL
#define PACER_TO_POOL(frame, walk) ((void)(frame), (void)(walk), PACER_POOL_SPENT)
#endif

/* --- counters ------------------------------------------------------------------------------- */

/* A mask is one instruction, and verifiers follow it; what it lets through is in the counters. */
#define PACER_REASON_MASK 15u
_Static_assert(PACER_REASON_COUNT <= PACER_REASON_MASK + 1 &&
		   (PACER_REASON_MASK + 1) * sizeof(struct pacer_count) <=
		       sizeof(struct pacer_counters),
	       "a masked reason is in the counters");

PACER_INLINE struct pacer_counters *pacer_count(const struct pacer_walk *w, __u32 slot,
						__u32 outcome, __u32 len_bytes)
{
	struct pacer_counters *counters = PACER_COUNTERS_AT(w, slot);
	__u32 reason = pacer_opaque(outcome) & PACER_REASON_MASK;

	if (!counters)
		return 0;
	counters->by[reason].packets++;
	counters->by[reason].bytes += len_bytes;
	return counters;
}

PACER_INLINE void pacer_count_event(struct pacer_counters *counters, __u32 event)
{
	event = pacer_opaque(event);
	if (counters && event < PACER_EVENT_COUNT)
		counters->events[event]++;
}

/* With what happened to the packet beside. */
PACER_INLINE struct pacer_counters *pacer_count_all(const struct pacer_walk *w, __u32 outcome)
{
	__u32 slot = w->rule < PACER_RULES_MAX ? PACER_RULE_OF(w)->counter : 0;
	struct pacer_counters *counters = pacer_count(w, slot, outcome, w->pkt.len_bytes);

	pacer_count_event(counters, pacer_outcome_event(outcome));
	if (w->pkt.key[PACER_WORD_META] & PACER_META_PART)
		pacer_count_event(counters, PACER_READ_IN_PART);
	return counters;
}

/* --- notes ---------------------------------------------------------------------------------- */

/* Whom the packet's rule has banned: a key of the limit that denied the packet. */
PACER_GLOBAL int pacer_path_note(const struct pacer_walk *w, __u32 outcome)
{
	const struct pacer_rule *rule;
	struct pacer_ban_key key;
	struct pacer_log *log;
	__u64 until_ns;

	if (!w || w->rule >= PACER_RULES_MAX)
		return 0;
	log = PACER_LOG_OF(w);
	rule = PACER_RULE_OF(w);
	if (!log || !pacer_log_may(log, rule->counter, w->now_ns))
		return 0;
	until_ns = pacer_walk_key_until(w, pacer_outcome_limiter(outcome));
	pacer_walk_ban_key(w, &rule->limiter[pacer_outcome_limiter(outcome)], &key);
	pacer_log_ban(log, &key, w->now_ns, until_ns ? until_ns : w->now_ns + rule->ban_ns);
	return 0;
}

/* --- samples -------------------------------------------------------------------------------- */

/* Does the policy sample packets with such an outcome? */
PACER_INLINE int pacer_is_sampled(const struct pacer_policy *policy, __u32 outcome)
{
	return policy->sampling.reasons >> (outcome & 31) & 1;
}

/* The rule's number, and the hash of the key that was judged: of the limit that denied, or of the
 * first. 0: there is none.
 */
PACER_INLINE void pacer_sample_judged(struct pacer_sample_item *item, const struct pacer_walk *w,
				      __u32 outcome)
{
	__u32 limiter = pacer_opaque(outcome >> 8) & (PACER_LIMITERS_MAX - 1);
	__u32 rule = pacer_outcome_rule(outcome);
	const struct pacer_rule *judged;

	item->reason = outcome;
	item->rule = 0;
	item->key = 0;
	if (rule >= PACER_RULES_MAX)
		return;
	judged = &PACER_POLICY_OF(w)->rule[pacer_opaque(rule) & (PACER_RULES_MAX - 1)];
	item->rule = judged->counter;
	item->key =
	    pacer_walk_hash(w, &judged->limiter[limiter], judged->limiter[limiter].secret).home;
}

PACER_GLOBAL int pacer_sample_fill(const struct pacer_walk *w, __u32 outcome,
				   struct pacer_sample_item *item)
{
	const struct pacer_packet *pkt;
	__u32 i, ports;

	if (!w || !item)
		return 0;
	pkt = &w->pkt;
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
	item->vlan = pkt->key[PACER_WORD_META] >> PACER_META_VLAN_AT;
	pacer_sample_judged(item, w, outcome);
	return 0;
}

/* The frame's first bytes, 1 to PACER_SNAP_MAX of them. Verifiers want to see that they are. */
PACER_INLINE void pacer_head_load(PACER_FRAME *frame, struct pacer_heads *heads, __u32 len)
{
	len = (pacer_opaque(len - 1) & (PACER_SNAP_MAX - 1)) + 1;
	PACER_FRAME_LOAD(frame, heads->last, len);
}

/* They are kept beside every sample that took the packet. */
PACER_GLOBAL int pacer_head_keep(PACER_FRAME *frame, const struct pacer_walk *w,
				 const struct pacer_sampler *s, __u32 len)
{
	struct pacer_heads *heads;
	__u64 left;
	__u32 i;

	if (!w || !s || !len)
		return 0;
	heads = PACER_HEADS_OF(w);
	if (!heads)
		return 0;
	pacer_head_load(frame, heads, len);
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
PACER_GLOBAL int pacer_sample_take(PACER_FRAME *frame, const struct pacer_walk *w, __u32 outcome,
				   __u64 now_ns, struct pacer_sampler *s)
{
	struct pacer_sample_item item = {.time_ns = now_ns};
	const struct pacer_sampling *by;
	__u32 len;

	if (!w || !s)
		return 0;
	by = &PACER_POLICY_OF(w)->sampling;
	len = w->pkt.len_bytes < by->snap ? w->pkt.len_bytes : by->snap;
	pacer_sample_fill(w, outcome, &item);
	pacer_sample_write_begin(&s->seq);
	pacer_sampler_take(s, by, &item);
	if (by->snap)
		pacer_head_keep(frame, w, s, len);
	pacer_sample_write_end(&s->seq);
	return 0;
}

/* Reads all of the frame. A function apart, as it is for few. */
PACER_GLOBAL int pacer_path_read(PACER_FRAME *frame, struct pacer_walk *w)
{
	return w ? PACER_FRAME_PARSE(frame, &w->pkt) : 0;
}

/* Counts a packet that the policy samples: the sampler, if that has to take it; 0: it has not. */
PACER_INLINE struct pacer_sampler *pacer_sample_due(const struct pacer_walk *w,
						    const struct pacer_policy *policy, __u64 now_ns)
{
	struct pacer_sampler *s = PACER_SAMPLER_OF(w);

	return s && pacer_sampler_due(s, &policy->sampling, now_ns) ? s : 0;
}

/* now_ns; if it is 0, what the clock says: nobody has asked it yet for this packet. */
PACER_INLINE __u64 pacer_path_time(PACER_FRAME *frame, const struct pacer_policy *policy,
				   __u64 now_ns)
{
	return now_ns ? now_ns : PACER_FRAME_NOW(frame, !!(policy->flags & PACER_CLOCK_EXACT));
}

/* A packet that the policy samples. Most are only counted. */
PACER_GLOBAL int pacer_sample(PACER_FRAME *frame, struct pacer_walk *w, __u32 outcome)
{
	const struct pacer_policy *policy;
	struct pacer_sampler *s;
	__u64 now_ns;

	if (!w)
		return 0;
	policy = PACER_POLICY_OF(w);
	now_ns = pacer_path_time(frame, policy, w->now_ns);
	s = pacer_sample_due(w, policy, now_ns);
	if (s)
		pacer_sample_take(frame, w, outcome, now_ns, s);
	return 0;
}

/* --- the way -------------------------------------------------------------------------------- */

/* What the short way asks of a packet of the one rule, before the limit is. 0: it is not for it. */
PACER_INLINE int pacer_path_brief(PACER_FRAME *frame, const struct pacer_short *s,
				  struct pacer_brief *b)
{
	const __u8 *data = PACER_FRAME_DATA(frame);

	b->len_bytes = PACER_FRAME_LEN(frame);
	if (!pacer_parse_source4(data, PACER_FRAME_END(frame), b->len_bytes))
		return 0;
	b->source = pacer_be32(data + PACER_SOURCE4) & s->mask;
	b->now_ns = PACER_FRAME_NOW(frame, s->shape & PACER_SHORT_EXACT);
	return 1;
}

/*
 * Asks the limit: a reason, or undecided with nothing done. kind and alone are constants: of which
 * kind it is, and 1 if it is that of the one rule.
 */
PACER_INLINE __u32 pacer_path_short_as(struct pacer_table *table, const struct pacer_rule *rule,
				       __u32 kind, int alone, const struct pacer_brief *b)
{
	struct pacer_hash hash = alone ? pacer_short_hash(&rule->brief, b->source) : b->hash;
	__u32 set = pacer_reduce(hash.home, rule->brief.sets), outcome;
	struct pacer_line *line = pacer_short_line(&rule->brief, kind, table, set);

	if (!line)
		return PACER_UNDECIDED;
	outcome = pacer_short_closed(rule, kind, line, set, hash.mark, b);
	if (outcome == PACER_ADMIT)
		outcome = pacer_short_own(rule, kind, line, set, hash.mark, b);
	if (outcome != PACER_ELSEWHERE)
		return outcome;
	if (alone) /* again, so that it need not be kept till here */
		hash = pacer_short_hash(&rule->brief, pacer_opaque(b->source));
	return pacer_short_elsewhere(rule, table, (__u64)hash.home << 32 | hash.mark, b->now_ns,
				     b->len_bytes);
}

/* The same of the rule's limit, of the rule's shape. */
PACER_INLINE __u32 pacer_path_short_limit(struct pacer_table *table, const struct pacer_rule *rule,
					  __u32 shape, int alone, const struct pacer_brief *b)
{
	switch ((enum pacer_short_kind)(shape & PACER_SHORT_KIND)) {
	case PACER_SHORT_NARROW:
		return pacer_path_short_as(table, rule, PACER_SHORT_NARROW, alone, b);
	case PACER_SHORT_NARROW_GAP:
		return pacer_path_short_as(table, rule, PACER_SHORT_NARROW_GAP, alone, b);
	case PACER_SHORT_WIDE:
		return pacer_path_short_as(table, rule, PACER_SHORT_WIDE, alone, b);
	case PACER_SHORT_RATE:
		return pacer_path_short_as(table, rule, PACER_SHORT_RATE, alone, b);
	case PACER_SHORT_SKETCH:
		return pacer_path_short_as(table, rule, PACER_SHORT_SKETCH, alone, b);
	case PACER_SHORT_THROTTLE:
	case PACER_SHORT_VERDICT:
	case PACER_SHORT_NONE:
	case PACER_SHORT_PART_NARROW: /* pacer_path_part */
	case PACER_SHORT_PART_WIDE:
	case PACER_SHORT_PART_RATE:
		break;
	}
	return PACER_UNDECIDED;
}

/*
 * The same where there may be bans, which are of the source alone. A refusal that bans is left to
 * the way for all.
 */
PACER_INLINE __u32 pacer_path_watched_by(struct pacer_table *table,
					 const struct pacer_policy *policy,
					 const struct pacer_rule *rule, const struct pacer_brief *b)
{
	__u32 outcome = 0;

	if (rule->brief.shape & PACER_SHORT_WATCH &&
	    !pacer_ban_none(table, &policy->bans, b->now_ns))
		outcome = pacer_short_banned(policy, rule, table, b->source, b->now_ns);
	if (outcome)
		return outcome == 1 ? (__u32)PACER_DENY_BAN : PACER_UNDECIDED;
	outcome = pacer_path_short_limit(table, rule, rule->brief.shape, 1, b);
	return rule->brief.shape & PACER_SHORT_BANS && pacer_bans(outcome) ? PACER_UNDECIDED
									   : outcome;
}

/* The same as a function: source_len has the source, masked, and below it the packet's length. */
PACER_GLOBAL __u32 pacer_path_watched(struct pacer_table *table, const struct pacer_policy *policy,
				      const struct pacer_rule *rule, __u64 source_len, __u64 now_ns)
{
	struct pacer_brief b = {now_ns, (__u32)source_len, source_len >> 32, {0, 0}};

	PACER_ARGUMENT(table);
	if (!policy || !rule)
		return PACER_UNDECIDED;
	return pacer_path_watched_by(table, policy, rule, &b);
}

/* Its argument. */
PACER_INLINE __u64 pacer_brief_source_len(const struct pacer_brief *b)
{
	return (__u64)b->source << 32 | b->len_bytes;
}

/*
 * The short way of a policy that has one rule alone (PACER_SHORT_ALONE): an outcome, and the packet
 * is counted; or undecided with nothing done.
 */
PACER_INLINE __u32 pacer_path_short(PACER_FRAME *frame, const struct pacer_walk *w,
				    const struct pacer_rule *rule)
{
	struct pacer_brief b = {0};
	__u32 outcome;

	if (!pacer_path_brief(frame, &rule->brief, &b))
		return PACER_UNDECIDED;
	outcome = pacer_path_watched_by(PACER_TABLE_OF(w), pacer_short_policy(rule), rule, &b);
	if (outcome == PACER_UNDECIDED)
		return PACER_UNDECIDED;
	pacer_count(w, rule->brief.counter, outcome, b.len_bytes);
	return pacer_outcome_under(outcome, 0);
}

/* What bans say of the masked source: PACER_ADMIT, a denial, or undecided. */
PACER_GLOBAL __u32 pacer_path_bans(struct pacer_table *table, const struct pacer_policy *policy,
				   const struct pacer_rule *rule, __u32 source, __u64 now_ns)
{
	__u32 banned;

	PACER_ARGUMENT(table);
	if (!policy || !rule)
		return PACER_UNDECIDED;
	if (pacer_ban_none(table, &policy->bans, now_ns))
		return PACER_ADMIT;
	banned = pacer_short_banned(policy, rule, table, source, now_ns);
	if (!banned)
		return PACER_ADMIT;
	return banned == 1 ? (__u32)PACER_DENY_BAN : PACER_UNDECIDED;
}

/*
 * Asks a limit that a fleet divides, of a rule of this shape: as pacer_path_short_limit. k: the
 * packet's key, which may have a share of its own; its source is b->source, too. policy: for where
 * keys may be banned.
 */
PACER_INLINE __u32 pacer_path_part(const struct pacer_walk *w, const struct pacer_policy *policy,
				   const struct pacer_rule *rule, __u32 shape,
				   struct pacer_short_key k, struct pacer_brief *b)
{
	__u32 outcome = PACER_ADMIT, part;

	if (shape & PACER_SHORT_WATCH)
		outcome = pacer_path_bans(PACER_TABLE_OF(w), policy, rule, b->source, b->now_ns);
	if (outcome != PACER_ADMIT)
		return outcome;
	part = pacer_short_share(w, &rule->limiter[0], k, b->now_ns);
	if (!part)
		return PACER_DENY_SHARE;
	if (part == PACER_SHARE_WHOLE) /* a host without shares */
		return PACER_UNDECIDED;
	b->hash = pacer_short_hash_of(rule, &k, PACER_SECRET_AT(w, rule->limiter[0].secret));
	outcome = pacer_short_part_any(PACER_TABLE_OF(w), rule, shape & PACER_SHORT_KIND, part, b);
	return shape & PACER_SHORT_BANS && pacer_bans(outcome) ? PACER_UNDECIDED : outcome;
}

/* As pacer_path_short, of a policy that has one such rule alone (PACER_SHORT_PART). */
PACER_INLINE __u32 pacer_path_short_part(PACER_FRAME *frame, const struct pacer_walk *w,
					 const struct pacer_rule *rule)
{
	struct pacer_brief b = {0};
	__u32 outcome;

	if (!pacer_path_brief(frame, &rule->brief, &b))
		return PACER_UNDECIDED;
	outcome = pacer_path_part(w, pacer_short_policy(rule), rule, rule->brief.shape,
				  (struct pacer_short_key){(__u64)b.source << 32, 0}, &b);
	if (outcome == PACER_UNDECIDED)
		return PACER_UNDECIDED;
	pacer_count(w, rule->brief.counter, outcome, b.len_bytes);
	return pacer_outcome_under(outcome, 0);
}

/*
 * The same of one of several rules; its bans were asked. addresses: of the key, as in rest the
 * ports and the protocol; below these the packet's length in 24 bits.
 */
PACER_GLOBAL __u32 pacer_path_ruled_part(const struct pacer_walk *w, const struct pacer_rule *rule,
					 __u64 addresses, __u64 rest, __u64 now_ns)
{
	struct pacer_short_key k = {addresses, rest & ~(__u64)PACER_SHORT_LEN_MAX};
	struct pacer_brief b = {now_ns, rest & PACER_SHORT_LEN_MAX, addresses >> 32, {0, 0}};

	PACER_ARGUMENT(w);
	if (!rule)
		return PACER_UNDECIDED;
	return pacer_path_part(w, 0, rule, rule->brief.shape & PACER_SHORT_KIND, k, &b);
}

/* Of one with a window or a rate that a fleet divides. */
PACER_INLINE __u32 pacer_path_ruled_divided(PACER_FRAME *frame, const struct pacer_walk *w,
					    const struct pacer_policy *policy,
					    const struct pacer_rule *rule, __u32 shape,
					    const struct pacer_usual *u, __u32 len_bytes)
{
	struct pacer_brief b = {.len_bytes = len_bytes, .source = u->saddr & rule->brief.mask};
	struct pacer_short_key k = pacer_short_key_of(rule, u);
	__u32 outcome = PACER_ADMIT;

	if (len_bytes > PACER_SHORT_LEN_MAX)
		return PACER_UNDECIDED;
	b.now_ns = PACER_FRAME_NOW(frame, shape & PACER_SHORT_EXACT);
	if (shape & PACER_SHORT_WATCH)
		outcome = pacer_path_bans(PACER_TABLE_OF(w), policy, rule, b.source, b.now_ns);
	if (outcome != PACER_ADMIT)
		return outcome;
	outcome = pacer_path_ruled_part(w, rule, k.addresses, k.rest | len_bytes, b.now_ns);
	return shape & PACER_SHORT_BANS && pacer_bans(outcome) ? PACER_UNDECIDED : outcome;
}

/* Of one with a throttle or a verdict, or such a limit, and of none with a short way. */
PACER_INLINE __u32 pacer_path_ruled_other(PACER_FRAME *frame, const struct pacer_walk *w,
					  const struct pacer_policy *policy,
					  const struct pacer_rule *rule, __u32 shape,
					  const struct pacer_usual *u, __u32 len_bytes)
{
	if ((shape & PACER_SHORT_KIND) == PACER_SHORT_VERDICT)
		return pacer_rule_reason(rule);
	if ((shape & PACER_SHORT_KIND) == PACER_SHORT_THROTTLE)
		return shape & PACER_SHORT_WATCH
			   ? PACER_UNDECIDED
			   : pacer_throttle_pass(w, &rule->limiter[0],
						 PACER_FRAME_NOW(frame, shape & PACER_SHORT_EXACT));
	return shape ? pacer_path_ruled_divided(frame, w, policy, rule, shape, u, len_bytes)
		     : PACER_UNDECIDED;
}

/* What a rule says of the packet: a reason, or undecided with nothing done. */
PACER_INLINE __u32 pacer_path_ruled_by(PACER_FRAME *frame, const struct pacer_walk *w,
				       const struct pacer_policy *policy,
				       const struct pacer_rule *rule, const struct pacer_usual *u,
				       __u32 len_bytes)
{
	struct pacer_brief b = {.len_bytes = len_bytes, .source = u->saddr & rule->brief.mask};
	__u32 shape = rule->brief.shape;

	if ((shape & PACER_SHORT_KIND) - 1 >= PACER_SHORT_THROTTLE - 1)
		return pacer_path_ruled_other(frame, w, policy, rule, shape, u, len_bytes);
	if (!(shape & PACER_SHORT_WATCH))
		b.hash = pacer_short_hash_any(rule, u, PACER_SECRET_AT(w, policy->secret));
	b.now_ns = PACER_FRAME_NOW(frame, shape & PACER_SHORT_EXACT);
	if (shape & PACER_SHORT_WATCH)
		return pacer_path_watched(PACER_TABLE_OF(w), policy, rule,
					  pacer_brief_source_len(&b), b.now_ns);
	return pacer_path_short_limit(PACER_TABLE_OF(w), rule, shape, 0, &b);
}

/*
 * The short way of a policy whose rules say what a packet has to be asked (PACER_SHORT_RULED), as
 * pacer_path_short; the outcome has no rule where the packet has none.
 */
PACER_INLINE __u32 pacer_path_ruled(PACER_FRAME *frame, const struct pacer_walk *w,
				    const struct pacer_policy *policy)
{
	__u32 len_bytes = PACER_FRAME_LEN(frame), number = 0, outcome;
	const struct pacer_rule *rule;
	struct pacer_usual u;

	if (!pacer_parse_whole4(PACER_FRAME_DATA(frame), PACER_FRAME_END(frame), len_bytes, &u))
		return PACER_UNDECIDED;
	if (policy->dims & PACER_DIMS_MANY)
		number = pacer_classify_usual_many(policy, u.saddr, u.daddr, u.ports,
						   u.proto | u.of_ports << 8);
	else if (policy->dims)
		number = pacer_classify_usual(policy, u.saddr, u.daddr, u.ports,
					      u.proto | u.of_ports << 8);
	if (number >= PACER_RULES_MAX) {
		outcome = policy->else_says == PACER_SAYS_DENY ? PACER_DENY_VERDICT : PACER_NO_RULE;
		pacer_count(w, 0, outcome, len_bytes);
		return outcome;
	}
	rule = &policy->rule[number & (PACER_RULES_MAX - 1)];
	PACER_AS_IT_IS(rule);
	outcome = pacer_path_ruled_by(frame, w, policy, rule, &u, len_bytes);
	if (outcome == PACER_UNDECIDED)
		return PACER_UNDECIDED;
	pacer_count(w, rule->brief.counter, outcome, len_bytes);
	return pacer_outcome_under(outcome, number);
}

/*
 * The short way of a policy whose one rule has several limits (PACER_SHORT_MANY), as
 * pacer_path_short. w, of which the host has filled in what it judges by, becomes the packet's.
 */
PACER_INLINE __u32 pacer_path_many(PACER_FRAME *frame, struct pacer_walk *w,
				   const struct pacer_policy *policy)
{
	__u32 outcome;

	if (!pacer_parse_fast(PACER_FRAME_DATA(frame), PACER_FRAME_END(frame),
			      PACER_FRAME_LEN(frame), &w->pkt))
		return PACER_UNDECIDED;
	w->value[0] = 0;
	w->value[1] = 0;
	w->rule = 0;
	w->now_ns = PACER_FRAME_NOW(frame, !!(policy->flags & PACER_CLOCK_EXACT));
	outcome = pacer_limit_many(w);
	pacer_count(w, policy->rule[0].counter, outcome, w->pkt.len_bytes);
	return pacer_outcome_under(outcome, 0);
}

/*
 * Is the source of the usual frame on the allow-list? Allowed, and the packet is counted;
 * PACER_ADMIT: it is not; undecided: it is another frame. w->pkt has no more than the source then.
 */
PACER_INLINE __u32 pacer_path_short_allowed(PACER_FRAME *frame, struct pacer_walk *w,
					    const struct pacer_policy *policy)
{
	const __u8 *data = PACER_FRAME_DATA(frame);
	__u32 len_bytes = PACER_FRAME_LEN(frame);

	if (!pacer_parse_source4(data, PACER_FRAME_END(frame), len_bytes))
		return PACER_UNDECIDED;
	w->pkt.family = PACER_FAMILY_4;
	w->pkt.key[PACER_WORD_SADDR] = pacer_be32(data + PACER_SOURCE4);
	if (!PACER_IS_ALLOWED(frame, w, !!(policy->flags & PACER_CLOCK_EXACT)))
		return PACER_ADMIT;
	pacer_count(w, 0, PACER_ALLOWED, len_bytes);
	return PACER_ALLOWED;
}

/* What is done with a packet that either short way has an outcome of, if what is denied is dropped.
 */
PACER_INLINE enum pacer_action pacer_path_short_action(__u32 outcome)
{
	switch (outcome & 0xff) {
	case PACER_ADMIT:
	case PACER_NO_RULE:
	case PACER_ALLOWED:
		return PACER_PASS;
	}
	return PACER_DROP;
}

/* A packet that no rule is looked for: it has neither a time nor a rule. */
PACER_INLINE __u32 pacer_path_unjudged(struct pacer_walk *w, enum pacer_reason reason)
{
	w->now_ns = 0;
	w->rule = PACER_RULES_MAX;
	return reason;
}

#define PACER_TCP_FLAGS 13 /* where they are in its header */
#define PACER_TCP_SYN	0x02
#define PACER_TCP_ACK	0x10

/*
 * What is known of the packet's flow under this rule, below PACER_RULES_MAX: 0, if it opens one, as
 * what cannot be told does; or PACER_META_KNOWN, and perhaps PACER_META_FRESH.
 */
PACER_GLOBAL __u32 pacer_path_flow(PACER_FRAME *frame, const struct pacer_walk *w, __u32 rule)
{
	int flags;

	if (!w || !pacer_flow_told(&w->pkt))
		return 0;
	if (w->pkt.proto != PACER_IPPROTO_TCP)
		return pacer_flow_known(w,
					PACER_POLICY_OF(w)->rule[rule & (PACER_RULES_MAX - 1)].id);
	flags = pacer_more_l4(frame, w, 0, PACER_IPPROTO_TCP, PACER_TCP_FLAGS);
	if (flags >= (int)PACER_MORE_ABSENT ||
	    (flags & (PACER_TCP_SYN | PACER_TCP_ACK)) == PACER_TCP_SYN)
		return 0;
	return PACER_META_KNOWN;
}

/*
 * What limits of this rule ask of a packet that is not read yet: whether it opens a flow, the TTL,
 * and values of sets. PACER_RULES_MAX: of none. 1: a value cannot be known.
 */
PACER_GLOBAL int pacer_path_keys(PACER_FRAME *frame, struct pacer_walk *w, __u32 rule)
{
	__u32 ttl;

	if (!w)
		return 0;
	if (w->pkt.family != PACER_FAMILY_NONE) {
		ttl = pacer_more_ttl(frame, &w->pkt);
		w->pkt.key[PACER_WORD_META] |= (ttl & 0xff) << PACER_META_TTL_AT;
	}
	if (rule < PACER_RULES_MAX && PACER_POLICY_OF(w)->rule[rule & (PACER_RULES_MAX - 1)].opens)
		w->pkt.key[PACER_WORD_META] |= pacer_path_flow(frame, w, rule);
	return pacer_walk_values(w, rule);
}

/* Which of many rules the packet falls under. As pacer_path_look. */
PACER_GLOBAL int pacer_path_look_many(PACER_FRAME *frame, const struct pacer_walk *w)
{
	struct pacer_rules set;

	if (!w)
		return PACER_RULES_MAX;
	pacer_more_rules_many(frame, w, &set);
	return pacer_walk_rule_of_many(w, PACER_POLICY_OF(w), &set);
}

/*
 * Looks for the packet's rule in its frame, where rules ask for more than the packet says, after
 * pacer_path_begin, which has no stack for it. w->pkt.found is filled; not with a rule for what is
 * in tunnels.
 */
PACER_GLOBAL int pacer_path_look(PACER_FRAME *frame, struct pacer_walk *w)
{
	const struct pacer_policy *policy;

	if (!w)
		return 0;
	policy = PACER_POLICY_OF(w);
	w->pkt.sought = 1;
	if (policy->dims & PACER_DIMS_MANY)
		w->pkt.found = pacer_path_look_many(frame, w);
	else
		w->pkt.found = pacer_walk_rule_among(
		    w, policy, pacer_more_rules(frame, w) & ~policy->more.inner.word[0]);
	return 0;
}

/* The rules for what is in tunnels that come before the packet's own; NULL: there are none. */
PACER_INLINE struct pacer_rules *pacer_path_inner_rules(const struct pacer_walk *w)
{
	const struct pacer_policy *policy = PACER_POLICY_OF(w);
	struct pacer_scratch *scratch = PACER_SCRATCH_OF(w);
	__u64 any = 0;
	__u32 i;

	if (!scratch || w->pkt.found == PACER_RULE_ALLOWED)
		return 0;
	for (i = 0; i < PACER_RULE_WORDS && (!i || policy->dims & PACER_DIMS_MANY); i++) {
		scratch->inner.word[i] =
		    policy->more.inner.word[i] & pacer_rules_below(i, w->pkt.found);
		any |= scratch->inner.word[i];
	}
	return any ? &scratch->inner : 0;
}

/* Those of them that the frame falls under. */
PACER_INLINE void pacer_path_inner_frame(PACER_FRAME *frame, const struct pacer_walk *w,
					 struct pacer_rules *among)
{
	const struct pacer_policy *policy = PACER_POLICY_OF(w);

	if (!(policy->more.used & PACER_MORE_OF_FRAME))
		return;
	if (policy->dims & PACER_DIMS_MANY)
		pacer_more_many(frame, w, PACER_MORE_OF_FRAME, among);
	else
		among->word[0] &= pacer_more_frame(frame, w);
}

/*
 * Do any of them that the frame, w->pkt, falls under do more than pass their packets? A function
 * apart, for the stack.
 */
PACER_GLOBAL int pacer_path_inner_limits(PACER_FRAME *frame, const struct pacer_walk *w,
					 struct pacer_rules *among)
{
	const struct pacer_policy *policy;
	__u64 any = 0;
	__u32 i;

	if (!w || !among)
		return 1;
	policy = PACER_POLICY_OF(w);
	pacer_path_inner_frame(frame, w, among);
	if (policy->dims & 1u << PACER_DIM_VLAN)
		pacer_rules_keep(among, pacer_dim_rules(&policy->dim[PACER_DIM_VLAN], w->pkt.vlan,
							PACER_BUCKET_VLAN));
	for (i = 0; i < PACER_RULE_WORDS && (!i || policy->dims & PACER_DIMS_MANY); i++)
		any |= among->word[i] & ~policy->more.passing.word[i];
	return !!any;
}

/* Which of them the inner packet, w->pkt, falls under first; PACER_RULES_MAX or more: under none. A
 * source on the allow-list falls under none.
 */
PACER_GLOBAL int pacer_path_inner_rule(PACER_FRAME *frame, const struct pacer_walk *w,
				       struct pacer_rules *among)
{
	const struct pacer_policy *policy;

	if (!w || !among)
		return PACER_RULES_MAX;
	policy = PACER_POLICY_OF(w);
	if (PACER_IS_ALLOWED(frame, w, !!(policy->flags & PACER_CLOCK_EXACT)))
		return PACER_RULES_MAX;
	if (!(policy->dims & PACER_DIMS_MANY))
		return pacer_walk_rule_among(w, policy,
					     among->word[0] & pacer_more_packet(frame, w));
	pacer_more_many(frame, w, ~PACER_MORE_OF_FRAME, among);
	return pacer_walk_rule_of_many(w, policy, among);
}

/*
 * The same in the packet's tunnel, among the rules that ask for that and come before its own. Where
 * one matches, w->pkt is the inner packet with that rule; else it is left as it was. A source that
 * is banned from outside is not looked behind. PACER_PARSE_TOO_DEEP: what is in the tunnel is not
 * known, and a rule may be for it.
 */
PACER_GLOBAL int pacer_path_inner(PACER_FRAME *frame, struct pacer_walk *w)
{
	struct pacer_tunnel t = {0, 0, 0, PACER_PARSED};
	struct pacer_packet outer;
	struct pacer_rules *among;
	__u32 rule;

	if (!w)
		return PACER_PARSED;
	among = pacer_path_inner_rules(w);
	if (!among)
		return PACER_PARSED;
	pacer_tunnel_find(frame, w, &t);
	if (t.said == PACER_PARSED && !PACER_HIDES_INNER(frame, w)) {
		pacer_path_inner_frame(frame, w, among);
		outer = w->pkt;
		t.said = pacer_inner_parse(frame, w, &t);
		rule = PACER_RULES_MAX;
		if (t.said == PACER_PARSED)
			rule = pacer_path_inner_rule(frame, w, among);
		if (rule >= PACER_RULES_MAX) {
			w->pkt = outer;
		} else {
			w->pkt.found = rule;
			w->pkt.sought = 1;
		}
	}
	return t.said == PACER_PARSE_TOO_DEEP && pacer_path_inner_limits(frame, w, among)
		   ? PACER_PARSE_TOO_DEEP
		   : PACER_PARSED;
}

/*
 * What has to be known beside the rule that was found, or was not: `outcome` is what
 * pacer_path_begin said, undecided or not IP. Undecided, where the packet has to be judged; else
 * not IP, or denied as a value of its key cannot be known.
 */
PACER_GLOBAL int pacer_path_found(PACER_FRAME *frame, struct pacer_walk *w, __u32 outcome)
{
	const struct pacer_policy *policy;

	if (!w)
		return PACER_NOT_IP;
	policy = PACER_POLICY_OF(w);
	if (policy->flags & PACER_KEYS_MORE && pacer_path_keys(frame, w, w->pkt.found)) {
		w->rule = w->pkt.found;
		return pacer_outcome_under(PACER_DENY_NO_STATE, w->rule);
	}
	return outcome == PACER_NOT_IP && w->pkt.found >= PACER_RULES_MAX ? PACER_NOT_IP
									  : PACER_UNDECIDED;
}

/*
 * All of this, if there is need, of a packet of which pacer_path_begin has said `outcome`. Returns
 * an outcome: undecided, where the packet has to be judged.
 */
PACER_INLINE __u32 pacer_path_rule(PACER_FRAME *frame, struct pacer_walk *w, __u32 outcome)
{
	const struct pacer_policy *policy = PACER_POLICY_OF(w);

	if (!(policy->dims & PACER_DIMS_MORE) ||
	    (outcome != PACER_UNDECIDED && outcome != PACER_NOT_IP))
		return outcome;
	if (outcome == PACER_NOT_IP)
		w->now_ns = PACER_FRAME_NOW(frame, !!(policy->flags & PACER_CLOCK_EXACT));
	pacer_path_look(frame, w);
	if (policy->more.used & PACER_MORE_INNER &&
	    pacer_path_inner(frame, w) == PACER_PARSE_TOO_DEEP)
		return PACER_TOO_DEEP;
	return pacer_path_found(frame, w, outcome);
}

/*
 * What has to be known of a packet before a limit can be asked. Undecided, with w->rule, where the
 * rule's limits are to be; or with none, where the bans of sources are, and then the rules, or
 * where these want the frame: that is no work for here, where there is no stack for it. Else its
 * outcome.
 */
PACER_INLINE __u32 pacer_path_begin(PACER_FRAME *frame, struct pacer_walk *w,
				    const struct pacer_policy *policy)
{
	int exact = !!(policy->flags & PACER_CLOCK_EXACT);
	int result = PACER_FRAME_PARSE(frame, &w->pkt);

	if (result != PACER_PARSED)
		return pacer_path_unjudged(w, pacer_parse_reason(result));
	if (PACER_IS_ALLOWED(frame, w, exact))
		return pacer_path_unjudged(w, PACER_ALLOWED);
	w->now_ns = PACER_FRAME_NOW(frame, exact);
	w->rule = PACER_RULES_MAX;
	if (policy->flags & (PACER_SOURCES_BANNED | PACER_TOOLS) || policy->dims & PACER_DIMS_MORE)
		return PACER_UNDECIDED;
	w->rule = pacer_walk_rule_by_packet(w, policy);
	return w->rule < PACER_RULES_MAX ? PACER_UNDECIDED : pacer_walk_no_rule(w);
}

/* Is one pass over the packet's rule enough, if nobody is in the way? */
PACER_INLINE int pacer_path_plain(const struct pacer_walk *w, const struct pacer_rule *rule,
				  enum pacer_plain plain)
{
	return rule->plain == plain && !(w->pkt.key[PACER_WORD_META] & PACER_META_PART);
}

/*
 * All that most packets need, in one function, since calls would cost as much as the limits. An
 * outcome with a rule is the last word, and the packet is counted: its rule is a plain one. Static,
 * since old kernels would have a global function's caller write the walk that this one is to fill.
 */
PACER_SUBPROG __u32 pacer_path_fast(PACER_FRAME *frame, struct pacer_walk *w,
				    const struct pacer_policy *policy)
{
	__u32 outcome = pacer_path_begin(frame, w, policy);
	const struct pacer_rule *rule;

	if (outcome != PACER_UNDECIDED || w->rule >= PACER_RULES_MAX)
		return outcome;
	rule = &policy->rule[w->rule & (PACER_RULES_MAX - 1)];
	if (pacer_path_plain(w, rule, PACER_PLAIN_VERDICT))
		outcome = pacer_rule_reason(rule);
	else if (pacer_path_plain(w, rule, PACER_PLAIN))
		outcome = pacer_limit_pass(w, &rule->limiter[0], 1);
	if (outcome == PACER_UNDECIDED)
		return PACER_UNDECIDED;
	pacer_count(w, rule->counter, outcome, w->pkt.len_bytes);
	return pacer_outcome_under(outcome, w->rule);
}

/* The packet that is undecided: what has not been asked yet. */
PACER_INLINE __u32 pacer_path_judge(struct pacer_walk *w)
{
	if (w->rule >= PACER_RULES_MAX)
		return pacer_judge(w);
	if (pacer_path_plain(w, PACER_RULE_OF(w), PACER_PLAIN))
		return pacer_outcome_under(pacer_limit_finish_one(w), w->rule);
	return pacer_judge_rule(w);
}

/* All that pacer_path_fast, which said `told` of the packet, has left: its outcome. */
PACER_INLINE __u32 pacer_path_rest(PACER_FRAME *frame, struct pacer_walk *w, __u32 told)
{
	told = pacer_path_rule(frame, w, told);
	return told == PACER_UNDECIDED ? pacer_path_judge(w) : told;
}

/*
 * What is done with a packet that is denied: an enum pacer_over. Of no rule, banned sources are
 * dropped. A function of its own, as the one that asks has no stack for it.
 */
PACER_GLOBAL int pacer_over_of(const struct pacer_walk *w, __u32 outcome)
{
	if (!w)
		return PACER_OVER_DROP;
	if (w->rule < PACER_RULES_MAX)
		return PACER_RULE_OF(w)->over;
	return (outcome & 0xff) == PACER_DENY_VERDICT ? PACER_POLICY_OF(w)->else_over
						      : PACER_OVER_DROP;
}

PACER_INLINE enum pacer_action pacer_action_of(const struct pacer_walk *w,
					       const struct pacer_policy *policy, __u32 outcome)
{
	enum pacer_reason reason = pacer_outcome_reason(outcome);

	switch (pacer_verdict_of(reason)) {
	case PACER_VERDICT_PASS:
	case PACER_VERDICT_ADMIT:
		return PACER_PASS;
	case PACER_VERDICT_UNPARSED:
		if (policy->flags & PACER_MONITOR)
			return PACER_PASS;
		/* The stack may take what is too deep: it passes by no limit. */
		return policy->flags & PACER_UNPARSED_DROP || reason == PACER_TOO_DEEP ? PACER_DROP
										       : PACER_PASS;
	case PACER_VERDICT_DENY:
		break;
	}
	return policy->flags & PACER_MONITOR || pacer_over_of(w, outcome) == PACER_OVER_PASS
		   ? PACER_PASS
		   : PACER_DROP;
}

/*
 * What is done with a packet that was counted, with this outcome, which gets what happens to it in
 * a pool.
 */
PACER_INLINE enum pacer_action pacer_path_act(PACER_FRAME *frame, const struct pacer_walk *w,
					      const struct pacer_policy *policy, __u32 *outcome)
{
	enum pacer_action action = pacer_action_of(w, policy, *outcome);
	__u32 slot = w->rule < PACER_RULES_MAX ? PACER_RULE_OF(w)->counter : 0;

	if (action != PACER_DROP || pacer_over_of(w, *outcome) != PACER_OVER_POOL)
		return action;
	*outcome = pacer_outcome_with(*outcome, PACER_TO_POOL(frame, w));
	pacer_count_event(PACER_COUNTERS_AT(w, slot), pacer_outcome_event(*outcome));
	return pacer_outcome_event(*outcome) == PACER_REDIRECTED ? PACER_REDIRECT : PACER_DROP;
}

/* What comes after the outcome of a packet that pacer_path_fast has not counted. As pacer_path. */
PACER_INLINE enum pacer_action pacer_path_end(PACER_FRAME *frame, struct pacer_walk *w,
					      const struct pacer_policy *policy, __u32 *outcome)
{
	pacer_count_all(w, *outcome);
	if (pacer_outcome_event(*outcome) == PACER_BANNED)
		pacer_path_note(w, *outcome);
	if (pacer_is_sampled(policy, *outcome))
		pacer_sample(frame, w, *outcome);
	return pacer_path_act(frame, w, policy, outcome);
}

/* Is the packet, which a short way has counted, one that the policy samples? The shape is the one
 * that it was judged by: a tool may have changed the policy's since.
 */
PACER_INLINE int pacer_path_short_sampled(const struct pacer_policy *policy, __u32 shape,
					  __u32 outcome)
{
	return shape & PACER_SHORT_SAMPLES && pacer_is_sampled(policy, outcome);
}

/* Is it denied, where not all that is denied is dropped? */
PACER_INLINE int pacer_path_short_over(__u32 shape, __u32 outcome)
{
	return shape & PACER_SHORT_OVER && pacer_path_short_action(outcome) == PACER_DROP;
}

/* The sampler takes it. w has its rule and time, and gets the packet, which was not read. */
PACER_INLINE void pacer_path_short_take(PACER_FRAME *frame, struct pacer_walk *w, __u32 outcome)
{
	struct pacer_sampler *s = PACER_SAMPLER_OF(w);

	pacer_path_read(frame, w);
	if (s)
		pacer_sample_take(frame, w, outcome, w->now_ns, s);
}

/* The same of one that it has counted. */
PACER_INLINE enum pacer_action pacer_path_end_fast(PACER_FRAME *frame, struct pacer_walk *w,
						   const struct pacer_policy *policy, __u32 outcome)
{
	if (pacer_is_sampled(policy, outcome))
		pacer_sample(frame, w, outcome);
	return (outcome & 0xff) == PACER_ADMIT ? PACER_PASS : PACER_DROP;
}

/* The way of what the short one has left. As pacer_path. */
PACER_INLINE enum pacer_action pacer_path_long(PACER_FRAME *frame, struct pacer_walk *w,
					       __u32 *outcome)
{
	const struct pacer_policy *policy = PACER_POLICY_OF(w);
	__u32 told = pacer_path_fast(frame, w, policy);
	enum pacer_action action;

	if (told >> 16) { /* it has a rule */
		*outcome = told;
		return pacer_path_end_fast(frame, w, policy, told);
	}
	told = pacer_path_rest(frame, w, told);
	action = pacer_path_end(frame, w, policy, &told);
	*outcome = told;
	return action;
}

/* The short way that is for packets of this shape, if one is: as pacer_path_short. */
PACER_INLINE __u32 pacer_path_either(PACER_FRAME *frame, struct pacer_walk *w,
				     const struct pacer_policy *policy, __u32 shape)
{
	__u32 outcome = PACER_ADMIT;

	if (!shape)
		return PACER_UNDECIDED;
	if (shape & PACER_SHORT_ALLOWS)
		outcome = pacer_path_short_allowed(frame, w, policy);
	if (outcome != PACER_ADMIT)
		return outcome;
	if (shape & (PACER_SHORT_ALONE | PACER_SHORT_FIRST))
		return pacer_path_short(frame, w, &policy->rule[0]);
	if (shape & PACER_SHORT_MANY)
		return pacer_path_many(frame, w, policy);
	return shape & PACER_SHORT_PART ? pacer_path_short_part(frame, w, &policy->rule[0])
					: pacer_path_ruled(frame, w, policy);
}

/*
 * The way. w->copy and w->state say by what the packet is judged; the rest of *w, and *outcome, are
 * filled.
 */
PACER_INLINE enum pacer_action pacer_path(PACER_FRAME *frame, struct pacer_walk *w, __u32 *outcome)
{
	const struct pacer_policy *policy = PACER_POLICY_OF(w);
	__u32 shape = policy->shape;
	int sampled, over;

	*outcome = pacer_path_either(frame, w, policy, shape);
	if (*outcome == PACER_UNDECIDED)
		return pacer_path_long(frame, w, outcome);
	w->rule = pacer_outcome_rule(*outcome);
	sampled = pacer_path_short_sampled(policy, shape, *outcome);
	over = pacer_path_short_over(shape, *outcome);
	if (sampled | over)
		w->now_ns = pacer_path_time(frame, policy, 0);
	if (sampled && pacer_sample_due(w, policy, w->now_ns))
		pacer_path_short_take(frame, w, *outcome);
	return over ? pacer_path_act(frame, w, policy, outcome) : pacer_path_short_action(*outcome);
}

#endif
