/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the whole judgement of a packet: (policy, state, packet, time) ->
 * reason. It composes the limiters and is what the kernel and user space run.
 *
 * A packet is admitted only if every tier of its rule admits it. All tiers are
 * first asked by reading alone, so a packet that is denied writes nothing that
 * is shared. Then their states are claimed one after the other, judged again
 * under the claim, and counted only when the last has admitted: a denial by one
 * charges no other.
 *
 * Concurrency: any number of CPUs. Claims of a rule are taken in the order of
 * its tiers and every tier has lines of its own, so no two CPUs wait for each
 * other in a circle.
 *
 * Error: that of the limiters (recency.h, window.h, table.h). Contention beyond
 * PACER_SPINS looks denies.
 */
#ifndef PACER_PACE_H
#define PACER_PACE_H

#include "abi.h"
#include "classify.h"
#include "hash.h"
#include "parse.h"
#include "table.h"

/* A packet's fate: its reason, the rule it fell under, and the tier that denied. */
struct pacer_judgement {
	enum pacer_reason reason;
	__u32 rule; /* index in the policy; PACER_RULES_MAX: none */
	__u32 tier; /* of the rule; 0 where none denied */
};

/* What a packet is judged by. A host that keeps these elsewhere defines the two macros below. */
struct pacer_state {
	struct pacer_table table;
	const struct pacer_policy *policy;
	const __u64 *secret; /* PACER_SECRETS of them */
};

/* A packet on its way through the tiers of its rule. The caller fills what stands first. */
struct pacer_walk {
	struct pacer_state *state;
	struct pacer_packet pkt;
	__u64 now_ns; /* not 0 */
	__u32 copy;   /* of the policy, where the host has two */
	__u32 rule;
	struct pacer_hash hash[PACER_TIERS_MAX];
	struct pacer_hold hold[PACER_TIERS_MAX];
};

#ifndef PACER_RULE_OF
#define PACER_POLICY_OF(walk) ((walk)->state->policy)
#define PACER_RULE_OF(walk)   (&PACER_POLICY_OF(walk)->rule[(walk)->rule])
#define PACER_SECRET_OF(walk) ((walk)->state->secret)
#define PACER_TABLE_OF(walk)  (&(walk)->state->table)
#endif

/* What of the packet is this tier's key. */
PACER_INLINE struct pacer_hash pacer_tier_hash(const struct pacer_tier *t,
					       const struct pacer_packet *pkt,
					       const __u64 secret[PACER_SECRETS])
{
	__u32 w[PACER_KEY_WORDS];
	__u32 i;

	if (pkt->family == PACER_FAMILY_4) {
		w[0] = pkt->key[PACER_WORD_SADDR] & t->mask4[0];
		w[1] = pkt->key[PACER_WORD_DADDR] & t->mask4[1];
		w[2] = pkt->key[PACER_WORD_PORTS] & t->mask4[2];
		w[3] = pkt->key[PACER_WORD_META] & t->mask4[3];
		return (struct pacer_hash){pacer_hash4(pacer_hash_member(secret, 0), w),
					   pacer_hash4(pacer_hash_member(secret, 1), w)};
	}
	for (i = 0; i < PACER_KEY_WORDS; i++)
		w[i] = pkt->key[i] & t->mask6[i];
	return (struct pacer_hash){pacer_hash6(pacer_hash_member(secret, 0), w),
				   pacer_hash6(pacer_hash_member(secret, 1), w)};
}

PACER_INLINE int pacer_tier_asked(const struct pacer_tier *t, __u64 now_ns)
{
	return t->kind != PACER_TIER_NONE && (!t->until_ns || now_ns < t->until_ns);
}

PACER_INLINE struct pacer_ask pacer_walk_ask(struct pacer_walk *w, const struct pacer_tier *t,
					     __u32 i)
{
	return (struct pacer_ask){PACER_TABLE_OF(w), t, w->now_ns, w->hash[i],
				  pacer_window_cost(&t->window, w->pkt.len_bytes)};
}

PACER_GLOBAL int pacer_walk_peek(struct pacer_walk *w, __u32 i)
{
	const struct pacer_tier *t;
	struct pacer_ask q;

	if (!w || i >= PACER_TIERS_MAX)
		return PACER_DENY_NO_STATE;
	t = &PACER_RULE_OF(w)->tier[i];
	if (!pacer_tier_asked(t, w->now_ns))
		return PACER_ADMIT;
	w->hash[i] = pacer_tier_hash(t, &w->pkt, PACER_SECRET_OF(w));
	q = pacer_walk_ask(w, t, i);
	return pacer_tier_peek(&q);
}

PACER_GLOBAL int pacer_walk_take(struct pacer_walk *w, __u32 i)
{
	const struct pacer_tier *t;
	struct pacer_ask q;

	if (!w || i >= PACER_TIERS_MAX)
		return PACER_DENY_NO_STATE;
	t = &PACER_RULE_OF(w)->tier[i];
	if (!pacer_tier_asked(t, w->now_ns))
		return PACER_ADMIT;
	q = pacer_walk_ask(w, t, i);
	return pacer_tier_take(&q, &w->hold[i]);
}

PACER_GLOBAL int pacer_walk_leave(struct pacer_walk *w, __u32 i, int commit)
{
	const struct pacer_tier *t;
	struct pacer_ask q;

	if (!w || i >= PACER_TIERS_MAX)
		return 0;
	t = &PACER_RULE_OF(w)->tier[i];
	if (!pacer_tier_asked(t, w->now_ns))
		return 0;
	q = pacer_walk_ask(w, t, i);
	if (commit)
		pacer_tier_commit(&q, &w->hold[i]);
	else
		pacer_tier_cancel(&q, &w->hold[i]);
	return 0;
}

PACER_INLINE enum pacer_reason pacer_reason_of(int value)
{
	return value >= 0 && value < PACER_REASON_COUNT ? (enum pacer_reason)value
							: PACER_DENY_NO_STATE;
}

/* Let every tier of the rule judge the packet, and count it in all of them or in none. */
PACER_INLINE struct pacer_judgement pacer_limit(struct pacer_walk *w)
{
	struct pacer_judgement j = {PACER_ADMIT, w->rule, 0};
	__u32 i, held, n = PACER_RULE_OF(w)->n_tiers;

	for (i = 0; i < PACER_TIERS_MAX && i < n; i++) {
		j.reason = pacer_reason_of(pacer_walk_peek(w, i));
		j.tier = i;
		if (j.reason != PACER_ADMIT)
			return j;
	}
	for (held = 0; held < PACER_TIERS_MAX && held < n; held++) {
		j.reason = pacer_reason_of(pacer_walk_take(w, held));
		j.tier = held;
		if (j.reason != PACER_ADMIT)
			break;
	}
	for (i = 0; i < PACER_TIERS_MAX && i < held; i++)
		pacer_walk_leave(w, i, j.reason == PACER_ADMIT);
	if (j.reason == PACER_ADMIT)
		j.tier = 0;
	return j;
}

/* The first rule that the packet matches, PACER_RULES_MAX if none. */
PACER_GLOBAL int pacer_walk_classify(struct pacer_walk *w)
{
	__u64 rules = w ? pacer_classify(PACER_POLICY_OF(w), &w->pkt) : 0;

	return rules ? pacer_lowest(rules) : PACER_RULES_MAX;
}

/* Judge w->pkt, which was parsed and is not on the allow-list, at w->now_ns. */
PACER_INLINE struct pacer_judgement pacer_pace(struct pacer_walk *w)
{
	w->rule = pacer_walk_classify(w);
	if (w->rule >= PACER_RULES_MAX)
		return (struct pacer_judgement){PACER_NO_RULE, PACER_RULES_MAX, 0};
	return pacer_limit(w);
}

#endif
