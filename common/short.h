/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the short way of a packet, for the policy that most machines have: one rule for all
 * packets, with one limit a source that is enforced. What it needs of the policy is side by side in
 * a few lines (struct pacer_short), the kind of the limit is a constant, and nothing of the frame
 * is read but what decides. All that is out of the ordinary is left to the way for all (path.h).
 *
 * A refusal is one expression: all that can speak for the key is compared at once (record.h,
 * rate.h), and there is one branch on what was read. So the processor has room for the packets that
 * follow, and asks for their lines while this one's is still on its way.
 *
 * Concurrency: any number of CPUs, as limit.h says.
 *
 * Error: that of the limit. Where it says nothing, nothing was done. Memory: 80 bytes a policy.
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

/* Of which kind is the short way of packets under this policy? */
PACER_INLINE enum pacer_short_kind pacer_short_kind_of(const struct pacer_policy *policy)
{
	const struct pacer_rule *rule = &policy->rule[0];
	const struct pacer_limiter *t = &rule->limiter[0];

	if (!(policy->rules & 1) || policy->dims || policy->sampling.reasons || !rule->plain ||
	    rule->says || rule->n_limiters != 1 || !t->src_only || t->until_ns || !t->sets ||
	    t->secret != policy->secret)
		return PACER_SHORT_NONE;
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

/* What of bans has to be thought of beside the limit. */
PACER_INLINE __u32 pacer_short_bans_of(const struct pacer_policy *policy)
{
	const struct pacer_rule *rule = &policy->rule[0];

	if (rule->plain == PACER_PLAIN && !(policy->flags & PACER_SOURCES_BANNED))
		return 0;
	return PACER_SHORT_WATCH | (rule->ban_ns ? PACER_SHORT_BANS : 0);
}

/* The shape of copy 0 or 1 of the policy, with its allow-list. */
PACER_INLINE __u32 pacer_short_shape_of(const struct pacer_policy *policy,
					const struct pacer_control *control, __u32 copy)
{
	__u32 kind = pacer_short_kind_of(policy);

	if (kind == PACER_SHORT_NONE || control->raw_ip || control->tools ||
	    control->allowed[copy].any)
		return PACER_SHORT_NONE;
	return kind | pacer_short_bans_of(policy) |
	       (policy->flags & PACER_CLOCK_EXACT ? PACER_SHORT_EXACT : 0);
}

/*
 * The same again, for whoever changes the rule's bans or the allow-list of a policy that packets
 * are judged by: before what is added there, and after what is removed.
 */
PACER_INLINE void pacer_short_reshape(struct pacer_policy *policy,
				      const struct pacer_control *control, __u32 copy)
{
	pacer_release(&policy->brief.shape, pacer_short_shape_of(policy, control, copy));
}

/*
 * Fills policy->brief, and says whether other tools ban sources. For whoever puts a policy in
 * force, as copy 0 or 1, once all else of it is written, and the control's secrets, allow-list and
 * whether there are such tools, and before packets are judged by it.
 */
PACER_INLINE void pacer_short_arm(struct pacer_policy *policy, const struct pacer_control *control,
				  __u32 copy)
{
	const struct pacer_limiter *t = &policy->rule[0].limiter[0];
	const __u64 *a = pacer_hash_member(control->secret[policy->secret], 0);
	const __u64 *b = pacer_hash_member(control->secret[policy->secret], 1);

	policy->flags = (policy->flags & ~PACER_TOOLS) | (control->tools ? PACER_TOOLS : 0);
	policy->brief = (struct pacer_short){
	    .shape = pacer_short_shape_of(policy, control, copy),
	    .mask = t->mask4[0],
	    .base = t->base,
	    .sets = t->sets,
	    .home_factor = a[0],
	    .home_first = a[PACER_HASH_FAMILY4],
	    .mark_factor = b[0],
	    .mark_first = b[PACER_HASH_FAMILY4],
	    .key = pacer_closed_of(t),
	    .slot_ns = t->window.slot_ns,
	    .gap_ns = t->gap_ns,
	    .counter = policy->rule[0].counter,
	    .last_shift = t->last_shift,
	    .rows = t->rows,
	};
}

/* --- the packet's key, and its place --------------------------------------------------------- */

/* A packet on the short way. */
struct pacer_brief {
	__u64 now_ns;
	__u32 source; /* masked */
	__u32 len_bytes;
};

PACER_INLINE struct pacer_hash pacer_short_hash(const struct pacer_short *s, __u32 source)
{
	return (struct pacer_hash){
	    pacer_hash_fold((s->home_first + s->home_factor * source) >> 32) * PACER_HASH_ODD,
	    pacer_hash_fold((s->mark_first + s->mark_factor * source) >> 32)};
}

/*
 * Is the source banned, as the key of the limit? 1; 0: it is not; undecided where other keys of it
 * may be. For when there are bans at all.
 */
PACER_SUBPROG __u32 pacer_short_banned(const struct pacer_policy *policy, struct pacer_table *table,
				       __u32 source, __u64 now_ns)
{
	struct pacer_ban_ask q = {table,
				  &policy->bans,
				  now_ns,
				  pacer_short_hash(&policy->brief, source),
				  {policy->rule[0].id, policy->rule[0].limiter[0].key_id, {source}},
				  0};

	if (policy->flags & PACER_SOURCES_BANNED || policy->bans.moving)
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
	if (kind == PACER_SHORT_RATE)
		set >>= 1;
	else if (kind == PACER_SHORT_WIDE)
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
PACER_INLINE enum pacer_reason pacer_short_closed(const struct pacer_policy *policy, __u32 kind,
						  struct pacer_line *line, __u32 set, __u32 mark,
						  const struct pacer_brief *b)
{
	const struct pacer_short *s = &policy->brief;
	__u64 key = s->key | pacer_tag((struct pacer_hash){0, mark}) << 16;

	switch ((enum pacer_short_kind)kind) {
	case PACER_SHORT_SKETCH:
		return pacer_short_sketch_closed(s, line, mark, b->now_ns);
	case PACER_SHORT_RATE:
		return pacer_short_rate_closed(&policy->rule[0].limiter[0],
					       &line->unit[(set & 1) * 2].entry, key, b);
	case PACER_SHORT_NARROW_GAP:
		return pacer_short_record_closed(s, 1, 1, &line->unit[0].entry, key, b->now_ns);
	case PACER_SHORT_WIDE:
		if (s->gap_ns)
			return pacer_short_record_closed(s, 1, 0, &line->unit[0].entry, key,
							 b->now_ns);
		return pacer_short_record_closed(s, 0, 0, &line->unit[0].entry, key, b->now_ns);
	case PACER_SHORT_NARROW:
	case PACER_SHORT_NONE:
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

/* The same wherever the key's entry is, its shared one too. */
PACER_GLOBAL __u32 pacer_short_elsewhere(const struct pacer_policy *policy,
					 struct pacer_table *table, __u32 source, __u64 now_ns,
					 __u32 len_bytes)
{
	struct pacer_ask q;

	PACER_ARGUMENT(table);
	if (!policy)
		return PACER_DENY_NO_STATE;
	q = pacer_ask_of(table, &policy->rule[0].limiter[0], now_ns,
			 pacer_short_hash(&policy->brief, source), len_bytes);
	return pacer_entry_pass(&q);
}

PACER_INLINE __u32 pacer_short_own(const struct pacer_policy *policy, __u32 kind,
				   struct pacer_line *line, __u32 set, __u32 mark,
				   const struct pacer_brief *b)
{
	const struct pacer_limiter *t = &policy->rule[0].limiter[0];
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

#endif
