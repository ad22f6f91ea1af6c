/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the short way of a packet, for the policies that most machines have: rules that match on
 * addresses, ports, the protocol and the VLAN, each with one limit, or a verdict.
 * What it needs of a rule is side by side in a few lines (struct pacer_short), the kind of the
 * limit is a constant, and nothing of the frame is read but what decides. One rule for all packets
 * with one limit a source has a way of its own, which is shorter still. One rule for all packets
 * with several limits has one that spares what comes before these and after. All that is out of
 * the ordinary is left to the way for all (path.h). Windows and rates that a fleet divides have
 * functions apart, so that others pay nothing for them.
 *
 * A refusal is one expression: all that can speak for the key is compared at once (record.h,
 * rate.h), and there is one branch on what was read. So the processor has room for the packets that
 * follow, and asks for their lines while this one's is still on its way.
 *
 * Concurrency: any number of CPUs, as limit.h says.
 *
 * Error: that of the limit. Where it says nothing, nothing was done. Memory: 80 bytes a rule.
 */
#ifndef PACER_SHORT_H
#define PACER_SHORT_H

#include "abi.h"
#include "ban.h"
#include "limit.h"
#include "outcome.h"
#include "parse.h"

_Static_assert(sizeof(struct pacer_short) == 80, "80 bytes");

/* --- what it is made of ---------------------------------------------------------------------- */

/* The limit's. */
PACER_INLINE enum pacer_short_kind pacer_short_kind_of_limit(const struct pacer_limiter *t)
{
	if (t->kind == PACER_LIMITER_RATE)
		return PACER_SHORT_RATE;
	if (t->kind == PACER_LIMITER_GAP)
		return PACER_SHORT_SKETCH;
	if (t->kind != PACER_LIMITER_WINDOW)
		return PACER_SHORT_NONE;
	if (t->units == PACER_NARROW_UNITS)
		return t->gap_ns ? PACER_SHORT_NARROW_GAP : PACER_SHORT_NARROW;
	return t->units == PACER_LINE_UNITS ? PACER_SHORT_WIDE : PACER_SHORT_NONE;
}

/* That of a limit that a fleet divides, which has no gap. */
PACER_INLINE enum pacer_short_kind pacer_short_kind_of_part(const struct pacer_limiter *t)
{
	if (t->kind == (PACER_LIMITER_RATE | PACER_LIMITER_FLEET))
		return PACER_SHORT_PART_RATE;
	if (t->kind != (PACER_LIMITER_WINDOW | PACER_LIMITER_FLEET) || t->gap_ns)
		return PACER_SHORT_NONE;
	if (t->units == PACER_NARROW_UNITS)
		return PACER_SHORT_PART_NARROW;
	return t->units == PACER_LINE_UNITS ? PACER_SHORT_PART_WIDE : PACER_SHORT_NONE;
}

/* Is this shape that of such a window or rate? */
PACER_INLINE int pacer_short_is_part(__u32 shape)
{
	return (shape & PACER_SHORT_KIND) >= PACER_SHORT_PART_NARROW;
}

/* Of which kind is the short way of packets under this rule? */
PACER_INLINE enum pacer_short_kind pacer_short_kind_of(const struct pacer_policy *policy,
						       const struct pacer_rule *rule)
{
	const struct pacer_limiter *t = &rule->limiter[0];

	if (rule->plain == PACER_PLAIN_VERDICT || (rule->says && !rule->n_limiters))
		return PACER_SHORT_VERDICT;
	if (rule->says || rule->n_limiters != 1 || t->until_ns || pacer_limiter_valued(t))
		return PACER_SHORT_NONE;
	if ((t->kind & ~PACER_LIMITER_FLEET) == PACER_LIMITER_THROTTLE)
		return PACER_SHORT_THROTTLE;
	if (!t->sets || t->secret != policy->secret)
		return PACER_SHORT_NONE;
	return t->kind & PACER_LIMITER_FLEET ? pacer_short_kind_of_part(t)
					     : pacer_short_kind_of_limit(t);
}

/* May its packets fall under a ban? */
PACER_INLINE int pacer_short_watches(const struct pacer_rule *rule)
{
	return !rule->says && (rule->plain == PACER_PLAIN_BANNING || rule->ban_ns || rule->outside);
}

/* The rule's shape. Bans are looked for by the source alone. */
PACER_INLINE __u32 pacer_short_rule_shape_of(const struct pacer_policy *policy,
					     const struct pacer_rule *rule)
{
	__u32 kind = pacer_short_kind_of(policy, rule);

	if (kind == PACER_SHORT_NONE)
		return PACER_SHORT_NONE;
	if (policy->flags & PACER_CLOCK_EXACT)
		kind |= PACER_SHORT_EXACT;
	if (rule->over != PACER_OVER_DROP)
		kind |= PACER_SHORT_OVER;
	if (!pacer_short_watches(rule))
		return kind;
	if (!rule->limiter[0].src_only)
		return PACER_SHORT_NONE;
	return kind | PACER_SHORT_WATCH | (rule->ban_ns ? PACER_SHORT_BANS : 0);
}

/* Is what this rule says of its packets all that there is to be asked of a packet? */
PACER_INLINE int pacer_short_is_alone(const struct pacer_policy *policy,
				      const struct pacer_rule *rule)
{
	__u32 shape = pacer_short_rule_shape_of(policy, rule);

	return shape != PACER_SHORT_NONE && !policy->dims && rule->limiter[0].src_only &&
	       (shape & PACER_SHORT_KIND) != PACER_SHORT_VERDICT &&
	       (shape & PACER_SHORT_KIND) != PACER_SHORT_THROTTLE;
}

/*
 * Are the limits of this rule, which are several, all that there is to be asked of a packet? They
 * are asked as on the way for all, so they may be of any kind; but of the packet's own key.
 */
PACER_INLINE int pacer_short_is_many(const struct pacer_policy *policy,
				     const struct pacer_rule *rule)
{
	__u32 i;

	if (policy->dims || rule->n_limiters < 2 || rule->says || rule->opens ||
	    pacer_short_watches(rule))
		return 0;
	for (i = 0; i < PACER_LIMITERS_MAX && i < rule->n_limiters; i++)
		if (pacer_limiter_valued(&rule->limiter[i]) ||
		    rule->limiter[i].kind & PACER_LIMITER_NEW)
			return 0;
	return 1;
}

/* The policy of its first rule: so that few have to keep both. */
PACER_INLINE const struct pacer_policy *pacer_short_policy(const struct pacer_rule *first)
{
	return (const struct pacer_policy *)((const __u8 *)first -
					     __builtin_offsetof(struct pacer_policy, rule));
}

/* How many of the rules have a short way, less those that have none. */
PACER_INLINE int pacer_short_most(const struct pacer_policy *policy)
{
	int most = 0;
	__u32 i;

	for (i = 0; i < PACER_RULES_MAX; i++)
		if (policy->rule[i].n_limiters || policy->rule[i].says)
			most += pacer_short_rule_shape_of(policy, &policy->rule[i]) ? 1 : -1;
	return most;
}

/*
 * Is not all dropped that is denied? The rules are asked, and not their shapes: a rule whose short
 * way a ban takes for a while gets it back before the policy's shape is written again.
 */
PACER_INLINE int pacer_short_overs(const struct pacer_policy *policy)
{
	__u32 i;

	if (policy->flags & PACER_MONITOR ||
	    (policy->else_says == PACER_SAYS_DENY && policy->else_over != PACER_OVER_DROP))
		return 1;
	for (i = 0; i < PACER_RULES_MAX; i++)
		if (policy->rule[i].over != PACER_OVER_DROP)
			return 1;
	return 0;
}

/* What there is beside its rules. */
PACER_INLINE __u32 pacer_short_more_of(const struct pacer_policy *policy,
				       const struct pacer_control *control, __u32 copy)
{
	return (control->allowed[copy].any ? PACER_SHORT_ALLOWS : 0) |
	       (policy->sampling.reasons ? PACER_SHORT_SAMPLES : 0) |
	       (pacer_short_overs(policy) ? PACER_SHORT_OVER : 0);
}

/*
 * The shape of copy 0 or 1 of the policy, with its allow-list: that of its one rule, or
 * PACER_SHORT_MANY; or PACER_SHORT_RULED, if most of its rules have a short way. With what there is
 * beside them.
 */
PACER_INLINE __u32 pacer_short_shape_of(const struct pacer_policy *policy,
					const struct pacer_control *control, __u32 copy)
{
	__u32 more = pacer_short_more_of(policy, control, copy), alone;

	if (control->raw_ip || control->tools ||
	    policy->flags & (PACER_SOURCES_BANNED | PACER_KEYS_MORE) ||
	    policy->dims & (PACER_DIMS_SETS | PACER_DIMS_MORE | PACER_DIMS_FRAMES) ||
	    !(policy->rules.word[0] & 1))
		return PACER_SHORT_NONE;
	if (pacer_short_is_many(policy, &policy->rule[0]))
		return PACER_SHORT_MANY | more |
		       (policy->rule[0].over == PACER_OVER_DROP ? 0 : PACER_SHORT_OVER);
	if (!pacer_short_is_alone(policy, &policy->rule[0]))
		return pacer_short_most(policy) > 0 ? PACER_SHORT_RULED | more : PACER_SHORT_NONE;
	alone = pacer_short_rule_shape_of(policy, &policy->rule[0]);
	if (pacer_short_is_part(alone))
		return PACER_SHORT_PART | more | alone;
	return (more ? PACER_SHORT_FIRST : PACER_SHORT_ALONE) | more | alone;
}

/*
 * The same again, for whoever changes the rules' bans or the allow-list of a policy that packets
 * are judged by: before what is added there, and after what is removed. The policy that an object
 * has from its build is not armed: no key has its place by such briefs, so it has no short way.
 */
PACER_INLINE void pacer_short_reshape(struct pacer_policy *policy,
				      const struct pacer_control *control, __u32 copy)
{
	__u32 i;

	if (policy->rule[0].brief.counter != policy->rule[0].counter) /* not armed */
		return;
	for (i = 0; i < PACER_RULES_MAX; i++)
		pacer_release(&policy->rule[i].brief.shape,
			      pacer_short_rule_shape_of(policy, &policy->rule[i]));
	pacer_release(&policy->shape, pacer_short_shape_of(policy, control, copy));
}

PACER_INLINE void pacer_short_arm_rule(struct pacer_policy *policy, struct pacer_rule *rule,
				       const struct pacer_control *control)
{
	const struct pacer_limiter *t = &rule->limiter[0];
	const __u64 *a = pacer_hash_member(control->secret[policy->secret], 0);
	const __u64 *b = pacer_hash_member(control->secret[policy->secret], 1);
	/* As pacer_sketch_mark has it: the sketch of the key of all packets has no other. */
	int marked = t->key_id || t->kind != PACER_LIMITER_GAP;

	rule->brief = (struct pacer_short){
	    .mask = t->mask4[0],
	    .base = t->base,
	    .sets = t->sets,
	    .home_factor = a[0],
	    .home_first = a[PACER_HASH_FAMILY4],
	    .mark_factor = marked ? b[0] : 0,
	    .mark_first = marked ? b[PACER_HASH_FAMILY4] : 0,
	    .key = pacer_closed_of(t),
	    .slot_ns = t->window.slot_ns,
	    .gap_ns = t->gap_ns,
	    .counter = rule->counter,
	    .last_shift = t->last_shift,
	    .rows = t->rows,
	    .src_only = t->src_only,
	};
}

/*
 * Fills the briefs of its rules, and says whether other tools ban sources. For whoever puts a
 * policy in force, as copy 0 or 1, once all else of it is written, and the control's secrets,
 * allow-list and whether there are such tools, and before packets are judged by it.
 */
PACER_INLINE void pacer_short_arm(struct pacer_policy *policy, const struct pacer_control *control,
				  __u32 copy)
{
	__u32 i;

	policy->flags = (policy->flags & ~PACER_TOOLS) | (control->tools ? PACER_TOOLS : 0);
	for (i = 0; i < PACER_RULES_MAX; i++)
		pacer_short_arm_rule(policy, &policy->rule[i], control);
	pacer_short_reshape(policy, control, copy);
}

/* --- the packet's key, and its place --------------------------------------------------------- */

/* A packet on the short way. */
struct pacer_brief {
	__u64 now_ns;
	__u32 len_bytes;
	__u32 source;		/* masked; of the one rule's packets */
	struct pacer_hash hash; /* of its key; of others */
};

/* Of a key that is the source alone, which is masked. */
PACER_INLINE struct pacer_hash pacer_short_hash(const struct pacer_short *s, __u32 source)
{
	return (struct pacer_hash){
	    pacer_hash_fold((s->home_first + s->home_factor * source) >> 32) * PACER_HASH_ODD,
	    pacer_hash_fold((s->mark_first + s->mark_factor * source) >> 32)};
}

/* Of any key of the rule. */
PACER_INLINE struct pacer_hash pacer_short_hash_any(const struct pacer_rule *rule,
						    const struct pacer_usual *u,
						    const __u64 secret[PACER_SECRETS])
{
	const __u32 *mask = rule->limiter[0].mask4;
	__u32 word[4];

	if (rule->brief.src_only)
		return pacer_short_hash(&rule->brief, u->saddr & rule->brief.mask);
	word[0] = u->saddr & mask[0];
	word[1] = u->daddr & mask[1];
	word[2] = u->ports & mask[2];
	word[3] = u->proto & mask[3];
	return pacer_hash_words(secret, PACER_HASH_FAMILY4, word, 4);
}

/*
 * Is the source, which is masked, banned, as the key of the rule's limit? 1; 0: it is not;
 * undecided where other keys of it may be. For when there are bans at all.
 */
PACER_SUBPROG __u32 pacer_short_banned(const struct pacer_policy *policy,
				       const struct pacer_rule *rule, struct pacer_table *table,
				       __u32 source, __u64 now_ns)
{
	struct pacer_ban_ask q = {table,
				  &policy->bans,
				  now_ns,
				  pacer_short_hash(&rule->brief, source),
				  {rule->id, rule->limiter[0].key_id, {source}},
				  0};

	if (policy->bans.moving)
		return PACER_UNDECIDED;
	return pacer_ban_maybe(table, &policy->bans, q.hash, now_ns) && pacer_ban_find(&q);
}

/* The first line of the key's set, or its sketch's; of rates, two sets share a line. 0: it is not
 * in the table.
 */
PACER_INLINE struct pacer_line *pacer_short_line(const struct pacer_short *s, __u32 kind,
						 struct pacer_table *table, __u32 set)
{
	(void)table; /* where the host knows it by itself */
	if (kind == PACER_SHORT_RATE || kind == PACER_SHORT_PART_RATE)
		set >>= 1;
	else if (kind == PACER_SHORT_WIDE || kind == PACER_SHORT_PART_WIDE)
		set *= 2;
	return PACER_LINE_AT(table, s->base + set);
}

/* --- a refusal ------------------------------------------------------------------------------- */

/* Is the sketch's gap not over? As recency.h has it; times only go forward, so it needs no lock. */
PACER_INLINE enum pacer_reason pacer_short_sketch_closed(const struct pacer_short *s,
							 struct pacer_line *line, __u32 mark,
							 __u64 now_ns)
{
	__u64 last_ns = pacer_recency_estimate(line, mark, s->rows);
	__u64 ahead_ns = now_ns - s->gap_ns - last_ns;

	/* In their highest bits: it is not over, and there was one. */
	return (ahead_ns & -last_ns) >> 63 ? PACER_DENY_GAP : PACER_ADMIT;
}

/* Do the two entries, of a rate, refuse the packet? */
PACER_INLINE enum pacer_reason pacer_short_rate_closed(const struct pacer_limiter *t,
						       struct pacer_entry *first, __u64 key,
						       const struct pacer_brief *b)
{
	__u64 left_ns = pacer_rate_left(&t->rate, b->now_ns, b->len_bytes);
	struct pacer_closed closed = {0, 0};

	pacer_rate_closed(first, key, left_ns, &closed);
	pacer_rate_closed(first + 1, key, left_ns, &closed);
	return closed.window >> 63 ? PACER_DENY_RATE : PACER_ADMIT;
}

/* Does an entry of the set, of which a line has all or one? gap: a constant, 1 if there is one. */
PACER_INLINE enum pacer_reason pacer_short_record_closed(const struct pacer_short *s, int gap,
							 int both, struct pacer_entry *first,
							 __u64 key, __u64 now_ns)
{
	struct pacer_closed closed = {0, 0};

	pacer_record_closed(s, gap, first, key, now_ns, &closed);
	if (both)
		pacer_record_closed(s, gap, first + PACER_NARROW_UNITS, key, now_ns, &closed);
	if (!((closed.gap | closed.window) >> 63))
		return PACER_ADMIT;
	return closed.gap >> 63 ? PACER_DENY_GAP : PACER_DENY_WINDOW;
}

/* Is the packet refused by what stands beside the tags of its key's set? A reason; PACER_ADMIT
 * where that does not tell.
 */
PACER_INLINE enum pacer_reason pacer_short_closed(const struct pacer_rule *rule, __u32 kind,
						  struct pacer_line *line, __u32 set, __u32 mark,
						  const struct pacer_brief *b)
{
	const struct pacer_short *s = &rule->brief;
	__u64 key = s->key | pacer_tag((struct pacer_hash){0, mark}) << 16;

	switch ((enum pacer_short_kind)kind) {
	case PACER_SHORT_SKETCH:
		return pacer_short_sketch_closed(s, line, mark, b->now_ns);
	case PACER_SHORT_RATE:
		return pacer_short_rate_closed(&rule->limiter[0], &line->unit[(set & 1) * 2].entry,
					       key, b);
	case PACER_SHORT_NARROW_GAP:
		return pacer_short_record_closed(s, 1, 1, &line->unit[0].entry, key, b->now_ns);
	case PACER_SHORT_WIDE:
		if (s->gap_ns)
			return pacer_short_record_closed(s, 1, 0, &line->unit[0].entry, key,
							 b->now_ns);
		return pacer_short_record_closed(s, 0, 0, &line->unit[0].entry, key, b->now_ns);
	case PACER_SHORT_NARROW:
	case PACER_SHORT_THROTTLE:
	case PACER_SHORT_VERDICT:
	case PACER_SHORT_NONE:
	case PACER_SHORT_PART_NARROW: /* pacer_short_closed_of */
	case PACER_SHORT_PART_WIDE:
	case PACER_SHORT_PART_RATE:
		break;
	}
	return pacer_short_record_closed(s, 0, 1, &line->unit[0].entry, key, b->now_ns);
}

/* --- a packet that may pass ------------------------------------------------------------------ */

/* In place of an outcome: the key has no entry where it was looked for. */
#define PACER_ELSEWHERE (PACER_UNDECIDED + 1)

/*
 * Judges the packet by this entry of a set, of which lines have two or one, if it is the key's, and
 * counts it there. The hash has the tag alone.
 */
PACER_INLINE __u32 pacer_short_entry(const struct pacer_ask *q, struct pacer_entry *head)
{
	int narrow = q->units == PACER_NARROW_UNITS;
	struct pacer_found f = {{q->table, (struct pacer_line *)head, head,
				 narrow ? (union pacer_unit *)head + 1 : 0, 0, narrow},
				pacer_load(&head->lock)};
	struct pacer_seen seen = {0};
	__u32 outcome;

	if (pacer_lock_tag(f.word) != q->hash.mark)
		return PACER_ELSEWHERE;
	outcome = pacer_entry_read(q, &f, &seen);
	return outcome == PACER_ADMIT ? pacer_entry_commit_seen(q, &f, &seen) : outcome;
}

PACER_INLINE __u32 pacer_short_both(const struct pacer_ask *q, struct pacer_entry *first)
{
	__u32 outcome = pacer_short_entry(q, first);

	return outcome == PACER_ELSEWHERE ? pacer_short_entry(q, first + q->units) : outcome;
}

/*
 * Judges the packet by the entry that its key has in this line, and counts it there: a reason, or
 * undecided with nothing done. The functions of a kind each; first: the first entry of the set.
 */
PACER_SUBPROG __u32 pacer_short_own_narrow(const struct pacer_limiter *t, struct pacer_entry *first,
					   __u64 now_ns, __u32 len_bytes, __u32 tag)
{
	struct pacer_ask q = {0,
			      t,
			      now_ns,
			      {0, tag},
			      len_bytes,
			      PACER_LIMITER_WINDOW,
			      PACER_NARROW_UNITS,
			      PACER_SHARE_WHOLE};

	return pacer_short_both(&q, first);
}

PACER_SUBPROG __u32 pacer_short_own_wide(const struct pacer_limiter *t, struct pacer_entry *first,
					 __u64 now_ns, __u32 len_bytes, __u32 tag)
{
	struct pacer_ask q = {0,
			      t,
			      now_ns,
			      {0, tag},
			      len_bytes,
			      PACER_LIMITER_WINDOW,
			      PACER_LINE_UNITS,
			      PACER_SHARE_WHOLE};

	return pacer_short_entry(&q, first);
}

PACER_SUBPROG __u32 pacer_short_own_rate(const struct pacer_limiter *t, struct pacer_entry *first,
					 __u64 now_ns, __u32 len_bytes, __u32 tag)
{
	struct pacer_ask q = {
	    0, t, now_ns, {0, tag}, len_bytes, PACER_LIMITER_RATE, 1, PACER_SHARE_WHOLE};

	return pacer_short_both(&q, first);
}

PACER_SUBPROG __u32 pacer_short_own_sketch(const struct pacer_limiter *t, struct pacer_line *line,
					   __u64 now_ns, __u32 mark)
{
	struct pacer_ask q = {
	    0, t, now_ns, {0, mark}, 0, PACER_LIMITER_GAP, PACER_LINE_UNITS, PACER_SHARE_WHOLE};

	return pacer_sketch_pass(&q, line);
}

/* The same wherever the key's entry is, its shared one too. The hash: its place, then its mark. */
PACER_GLOBAL __u32 pacer_short_elsewhere(const struct pacer_rule *rule, struct pacer_table *table,
					 __u64 hash, __u64 now_ns, __u32 len_bytes)
{
	struct pacer_ask q;

	PACER_ARGUMENT(table);
	if (!rule)
		return PACER_DENY_NO_STATE;
	q = pacer_ask_of(table, &rule->limiter[0], now_ns,
			 (struct pacer_hash){hash >> 32, (__u32)hash}, len_bytes);
	return pacer_entry_pass(&q);
}

PACER_INLINE __u32 pacer_short_own(const struct pacer_rule *rule, __u32 kind,
				   struct pacer_line *line, __u32 set, __u32 mark,
				   const struct pacer_brief *b)
{
	const struct pacer_limiter *t = &rule->limiter[0];
	__u32 tag = pacer_tag((struct pacer_hash){0, mark});

	if (kind == PACER_SHORT_SKETCH)
		return pacer_short_own_sketch(t, line, b->now_ns, mark);
	if (kind == PACER_SHORT_RATE)
		return pacer_short_own_rate(t, &line->unit[(set & 1) * 2].entry, b->now_ns,
					    b->len_bytes, tag);
	if (kind == PACER_SHORT_WIDE)
		return pacer_short_own_wide(t, &line->unit[0].entry, b->now_ns, b->len_bytes, tag);
	return pacer_short_own_narrow(t, &line->unit[0].entry, b->now_ns, b->len_bytes, tag);
}

/* --- a limit that a fleet divides ------------------------------------------------------------- */

/* The key of an IPv4 packet under a limit, as functions in the kernel take it. */
struct pacer_short_key {
	__u64 addresses; /* source and destination */
	__u64 rest;	 /* ports and, from bit 24 on, the protocol */
};

#define PACER_SHORT_LEN_MAX 0xffffffu /* below it there is room for a length */

PACER_INLINE struct pacer_short_key pacer_short_key_of(const struct pacer_rule *rule,
						       const struct pacer_usual *u)
{
	const __u32 *mask = rule->limiter[0].mask4;

	return (struct pacer_short_key){(__u64)(u->saddr & mask[0]) << 32 | (u->daddr & mask[1]),
					(__u64)(u->ports & mask[2]) << 32 | (u->proto & mask[3])
										<< 24};
}

/* Which of two lanes side by side have another word, in the highest bit of each half, and more. */
PACER_INLINE __u64 pacer_short_lanes_differ(const struct pacer_lanes *lanes, __u32 word, __u32 pair,
					    __u32 is)
{
	__u64 both;

	__builtin_memcpy(&both, &lanes->key[word][2 * pair], sizeof(both));
	return both ^ ((__u64)is << 32 | is);
}

/*
 * Which of the lanes is the key's: its bit of 8; 0: none. By arithmetic alone. of_source: a
 * constant, 1 if the key is the source alone.
 */
PACER_INLINE __u32 pacer_short_lane(const struct pacer_lanes *lanes,
				    const struct pacer_short_key *k, int of_source)
{
	__u64 low = 0x7fffffff7fffffffull, differ;
	__u32 pair, others = 0;

	for (pair = 0; pair < PACER_LANES / 2; pair++) {
		differ =
		    pacer_short_lanes_differ(lanes, PACER_KEY_WORDS, pair, PACER_FAMILY_4) |
		    pacer_short_lanes_differ(lanes, PACER_WORD_SADDR, pair, k->addresses >> 32);
		if (!of_source)
			differ |=
			    pacer_short_lanes_differ(lanes, PACER_WORD_DADDR, pair,
						     (__u32)k->addresses) |
			    pacer_short_lanes_differ(lanes, PACER_WORD_PORTS, pair, k->rest >> 32) |
			    pacer_short_lanes_differ(lanes, PACER_WORD_META, pair,
						     (__u32)k->rest >> 24);
		differ |= (differ & low) + low;
		others |= (differ >> 31 & 1) << 2 * pair | differ >> 63 << (2 * pair + 1);
	}
	return ~others;
}

/* The number of the only bit that is set in 8. */
PACER_INLINE __u32 pacer_short_lane_number(__u32 bit)
{
	return ((bit & 0xaa) + 0xff) >> 8 | ((bit & 0xcc) + 0xff) >> 8 << 1 |
	       ((bit & 0xf0) + 0xff) >> 8 << 2;
}

_Static_assert(PACER_LANES == 8, "so many are compared, and have a number");

/* By which word the key is judged: its lane's, or the share's. For where lanes are used. */
PACER_GLOBAL __u64 pacer_short_lane_word(const struct pacer_walk *w, const struct pacer_limiter *t,
					 __u64 addresses, __u64 rest)
{
	const struct pacer_short_key k = {addresses, rest};
	const struct pacer_share *share;
	const struct pacer_lanes *lanes;
	__u32 mine;

	PACER_ARGUMENT(w);
	if (!t)
		return 0;
	share = PACER_SHARE_AT(w, t->share);
	lanes = PACER_LANES_AT(w, t->share);
	if (!share || !lanes)
		return 0;
	mine = pacer_load(&lanes->used);
	mine &= t->src_only ? pacer_short_lane(lanes, &k, 1) : pacer_short_lane(lanes, &k, 0);
	if (!mine)
		return pacer_load64(&share->word);
	mine = pacer_opaque(pacer_short_lane_number(mine)) & (PACER_LANES - 1);
	return pacer_load64(&lanes->word[mine]);
}

/* As pacer_walk_share, of a packet that is no walk. */
PACER_INLINE __u32 pacer_short_share(const struct pacer_walk *w, const struct pacer_limiter *t,
				     struct pacer_short_key k, __u64 now_ns)
{
	const struct pacer_share *share = PACER_SHARE_AT(w, t->share);
	const struct pacer_lanes *lanes = PACER_LANES_AT(w, t->share);

	if (!share)
		return PACER_SHARE_WHOLE;
	return pacer_share_now(share, t->share_id,
			       lanes && pacer_load(&lanes->used)
				   ? pacer_short_lane_word(w, t, k.addresses, k.rest)
				   : pacer_load64(&share->word),
			       now_ns);
}

PACER_INLINE struct pacer_hash pacer_short_hash_of(const struct pacer_rule *rule,
						   const struct pacer_short_key *k,
						   const __u64 secret[PACER_SECRETS])
{
	__u32 word[4] = {k->addresses >> 32, (__u32)k->addresses, k->rest >> 32,
			 (__u32)k->rest >> 24};

	return rule->brief.src_only ? pacer_short_hash(&rule->brief, word[0])
				    : pacer_hash_words(secret, PACER_HASH_FAMILY4, word, 4);
}

/* As pacer_short_closed, of a window or a rate of which `part` counts. */
PACER_INLINE enum pacer_reason pacer_short_closed_of(const struct pacer_rule *rule, __u32 kind,
						     struct pacer_line *line, __u32 set, __u32 part,
						     __u64 key, const struct pacer_brief *b)
{
	const struct pacer_short *s = &rule->brief;
	struct pacer_entry *first = &line->unit[0].entry;
	struct pacer_closed closed = {0, 0};
	struct pacer_ask q;
	__u64 left_ns;

	if (kind == PACER_SHORT_PART_RATE) {
		q = pacer_ask_of(0, &rule->limiter[0], b->now_ns, (struct pacer_hash){0, 0},
				 b->len_bytes);
		q.part = part;
		left_ns =
		    pacer_rate_left_by(&rule->limiter[0].rate, b->now_ns, pacer_rate_asked(&q));
		first = &line->unit[(set & 1) * 2].entry;
		pacer_rate_closed(first, key, left_ns, &closed);
		pacer_rate_closed(first + 1, key, left_ns, &closed);
		return closed.window >> 63 ? PACER_DENY_RATE : PACER_ADMIT;
	}
	pacer_record_closed_of(s, part, first, key, b->now_ns, &closed);
	if (kind == PACER_SHORT_PART_NARROW)
		pacer_record_closed_of(s, part, first + PACER_NARROW_UNITS, key, b->now_ns,
				       &closed);
	return closed.window >> 63 ? PACER_DENY_WINDOW : PACER_ADMIT;
}

/*
 * Judges the packet by the entry that its key has in this line, as pacer_short_own; part: what
 * counts of the limit. A function for all kinds, since these are asked by fewer. at: the set, 8
 * bits of the kind, and the tag. part_len: the part, and the packet's length.
 */
PACER_GLOBAL __u32 pacer_short_own_part(const struct pacer_limiter *t, struct pacer_line *line,
					__u64 now_ns, __u64 part_len, __u64 at)
{
	struct pacer_ask q = {0,
			      t,
			      now_ns,
			      {0, at & 0xffff},
			      (__u32)part_len,
			      PACER_LIMITER_WINDOW,
			      PACER_NARROW_UNITS,
			      part_len >> 32 & PACER_SHARE_VALUE_MAX};

	if (!t || !line || !q.part)
		return PACER_UNDECIDED;
	if ((at >> 16 & 0xff) == PACER_SHORT_PART_NARROW)
		return pacer_short_both(&q, &line->unit[0].entry);
	if ((at >> 16 & 0xff) == PACER_SHORT_PART_WIDE) {
		q.units = PACER_LINE_UNITS;
		return pacer_short_entry(&q, &line->unit[0].entry);
	}
	q.kind = PACER_LIMITER_RATE;
	q.units = 1;
	return pacer_short_both(&q, &line->unit[(at >> 32 & 1) * 2].entry);
}

/*
 * Asks a window or a rate that a fleet divides, of this kind, which is a constant: a reason, or
 * undecided with nothing done. part: what counts of it.
 */
PACER_INLINE __u32 pacer_short_part(struct pacer_table *table, const struct pacer_rule *rule,
				    __u32 kind, __u32 part, const struct pacer_brief *b)
{
	__u32 set = pacer_reduce(b->hash.home, rule->brief.sets), tag = pacer_tag(b->hash), outcome;
	struct pacer_line *line = pacer_short_line(&rule->brief, kind, table, set);
	__u64 part_len = (__u64)part << 32 | b->len_bytes;

	if (!line)
		return PACER_UNDECIDED;
	outcome =
	    pacer_short_closed_of(rule, kind, line, set, part, rule->brief.key | tag << 16, b);
	if (outcome == PACER_ADMIT)
		outcome = pacer_short_own_part(&rule->limiter[0], line, b->now_ns, part_len,
					       (__u64)set << 32 | kind << 16 | tag);
	return outcome == PACER_ELSEWHERE ? PACER_UNDECIDED : outcome;
}

/*
 * The same of any kind. Another than the three is what a tool has made of the rule's shape since
 * the packet was found to be under such a limit (pacer_short_reshape).
 */
PACER_INLINE __u32 pacer_short_part_any(struct pacer_table *table, const struct pacer_rule *rule,
					__u32 kind, __u32 part, const struct pacer_brief *b)
{
	if (kind == PACER_SHORT_PART_RATE)
		return pacer_short_part(table, rule, PACER_SHORT_PART_RATE, part, b);
	if (kind == PACER_SHORT_PART_NARROW)
		return pacer_short_part(table, rule, PACER_SHORT_PART_NARROW, part, b);
	return kind == PACER_SHORT_PART_WIDE
		   ? pacer_short_part(table, rule, PACER_SHORT_PART_WIDE, part, b)
		   : PACER_UNDECIDED;
}

#endif
