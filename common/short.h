/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the short way of a packet, for the policy that most machines have: one rule for all
 * packets, with one limit a source that is enforced. What it needs of the policy is side by side in
 * a few lines (struct pacer_short), the kind of the limit is a constant, and nothing of the frame
 * is read but what decides. All that is out of the ordinary is left to the way for all (path.h).
 *
 * A refusal is one expression: both entries of the key's set are compared at once (record.h,
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

/* Of which kind is the short way of packets under this policy? */
PACER_INLINE enum pacer_short_kind pacer_short_kind_of(const struct pacer_policy *policy)
{
	const struct pacer_rule *rule = &policy->rule[0];
	const struct pacer_limiter *t = &rule->limiter[0];

	if (!(policy->rules & 1) || policy->dims || policy->sampling.reasons || !rule->plain ||
	    rule->n_limiters != 1 || !t->src_only || t->until_ns || !t->sets ||
	    t->secret != policy->secret)
		return PACER_SHORT_NONE;
	if (t->kind == PACER_LIMITER_RATE)
		return PACER_SHORT_RATE;
	if (t->kind != PACER_LIMITER_WINDOW)
		return PACER_SHORT_NONE;
	if (t->units == PACER_NARROW_UNITS)
		return t->gap_ns ? PACER_SHORT_NARROW_GAP : PACER_SHORT_NARROW;
	return t->units == PACER_LINE_UNITS ? PACER_SHORT_WIDE : PACER_SHORT_NONE;
}

/* What has to be thought of beside the limit. For whoever changes the rule's bans at work, too. */
PACER_INLINE __u8 pacer_short_bans_of(const struct pacer_policy *policy)
{
	const struct pacer_rule *rule = &policy->rule[0];

	if (rule->plain == PACER_PLAIN && !(policy->flags & PACER_SOURCES_BANNED))
		return 0;
	return PACER_SHORT_WATCH | (rule->ban_ns ? PACER_SHORT_BANS : 0);
}

/*
 * Fills policy->brief. For whoever puts a policy in force, once all else of it is written, and
 * before packets are judged by it. secret: that which policy->secret says. raw_ip: 1 where frames
 * begin with the IP header.
 */
PACER_INLINE void pacer_short_arm(struct pacer_policy *policy, const __u64 secret[PACER_SECRETS],
				  int raw_ip)
{
	const struct pacer_limiter *t = &policy->rule[0].limiter[0];
	const __u64 *a = pacer_hash_member(secret, 0);
	const __u64 *b = pacer_hash_member(secret, 1);

	policy->brief = (struct pacer_short){
	    .kind = raw_ip ? PACER_SHORT_NONE : pacer_short_kind_of(policy),
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
	    .bans = pacer_short_bans_of(policy),
	    .exact = !!(policy->flags & PACER_CLOCK_EXACT),
	};
}

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

PACER_INLINE __u32 pacer_short_units(__u32 kind)
{
	if (kind == PACER_SHORT_RATE)
		return 1;
	return kind == PACER_SHORT_WIDE ? PACER_LINE_UNITS : PACER_NARROW_UNITS;
}

/* Finds the first entry of the key's set. 0: its line is not in the table. */
PACER_INLINE int pacer_short_find(const struct pacer_short *s, __u32 kind,
				  const struct pacer_ask *q, struct pacer_ring *r)
{
	__u32 set = pacer_reduce(q->hash.home, s->sets), unit = 0;

	r->table = q->table;
	r->narrow = q->units == PACER_NARROW_UNITS;
	if (kind == PACER_SHORT_RATE) {
		unit = (set & 1) * 2;
		set >>= 1;
	} else if (kind == PACER_SHORT_WIDE) {
		set *= 2;
	}
	r->line = PACER_LINE_AT(q->table, s->base + set);
	if (!r->line)
		return 0;
	r->index = (s->base + set) * PACER_LINE_UNITS + unit;
	r->head = &r->line->unit[unit].entry;
	return 1;
}

/* Is the packet refused by what stands beside the tags of its key's set? A reason; PACER_ADMIT
 * where that does not tell.
 */
PACER_INLINE enum pacer_reason pacer_short_closed(const struct pacer_short *s, __u32 kind,
						  const struct pacer_ask *q,
						  const struct pacer_ring *r)
{
	__u64 key = s->key | pacer_tag(q->hash) << 16, left_ns;
	struct pacer_closed closed = {0, 0};

	if (kind == PACER_SHORT_RATE) {
		left_ns = pacer_rate_left(&q->limiter->rate, q->now_ns, q->len_bytes);
		pacer_rate_closed(r->head, key, left_ns, &closed);
		pacer_rate_closed(r->head + 1, key, left_ns, &closed);
		return closed.window >> 63 ? PACER_DENY_RATE : PACER_ADMIT;
	}
	if (kind == PACER_SHORT_NARROW || (kind == PACER_SHORT_WIDE && !s->gap_ns)) {
		pacer_record_closed(s, 0, r->head, key, q->now_ns, &closed);
		if (kind != PACER_SHORT_WIDE)
			pacer_record_closed(s, 0, r->head + PACER_NARROW_UNITS, key, q->now_ns,
					    &closed);
		return closed.window >> 63 ? PACER_DENY_WINDOW : PACER_ADMIT;
	}
	pacer_record_closed(s, 1, r->head, key, q->now_ns, &closed);
	if (kind != PACER_SHORT_WIDE)
		pacer_record_closed(s, 1, r->head + PACER_NARROW_UNITS, key, q->now_ns, &closed);
	if (!((closed.gap | closed.window) >> 63))
		return PACER_ADMIT;
	return closed.gap >> 63 ? PACER_DENY_GAP : PACER_DENY_WINDOW;
}

/*
 * Judges a packet of len_bytes from an IPv4 source, masked, by the limit, and counts it there: a
 * reason, or undecided with nothing done.
 */
PACER_INLINE __u32 pacer_short_pass(const struct pacer_policy *policy, struct pacer_table *table,
				    __u32 kind, __u32 source, __u64 now_ns, __u32 len_bytes)
{
	const struct pacer_short *s = &policy->brief;
	struct pacer_ask q = {table,
			      &policy->rule[0].limiter[0],
			      now_ns,
			      pacer_short_hash(s, source),
			      len_bytes,
			      kind == PACER_SHORT_RATE ? PACER_LIMITER_RATE : PACER_LIMITER_WINDOW,
			      pacer_short_units(kind)};
	enum pacer_reason reason;
	struct pacer_found f;

	if (!pacer_short_find(s, kind, &q, &f.ring))
		return PACER_UNDECIDED;
	reason = pacer_short_closed(s, kind, &q, &f.ring);
	if (reason != PACER_ADMIT)
		return reason;
	f.word = pacer_load(&f.ring.head->lock);
	return pacer_entry_pass_on(&q, &f);
}

#endif
