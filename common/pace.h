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

/* A packet on its way through the tiers of its rule. The caller fills all but `rule`. */
struct pacer_walk {
	struct pacer_state *state;
	__u64 now_ns; /* not 0 */
	__u32 copy;   /* of the policy, where the host has two */
	__u32 rule;
	struct pacer_packet pkt;
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

PACER_INLINE struct pacer_ask pacer_walk_ask(const struct pacer_walk *w, const struct pacer_tier *t,
					     struct pacer_hash hash)
{
	return (struct pacer_ask){PACER_TABLE_OF(w), t, w->now_ns, hash,
				  pacer_window_cost(&t->window, w->pkt.len_bytes)};
}

PACER_INLINE enum pacer_reason pacer_reason_of(int value)
{
	return value >= 0 && value < PACER_REASON_COUNT ? (enum pacer_reason)value
							: PACER_DENY_NO_STATE;
}

PACER_INLINE enum pacer_reason pacer_walk_peek(const struct pacer_walk *w,
					       const struct pacer_tier *t, struct pacer_hold *hold)
{
	struct pacer_ask q;

	if (!pacer_tier_asked(t, w->now_ns))
		return PACER_ADMIT;
	hold->hash = pacer_tier_hash(t, &w->pkt, PACER_SECRET_OF(w));
	q = pacer_walk_ask(w, t, hold->hash);
	return pacer_tier_peek(&q, hold);
}

PACER_GLOBAL int pacer_walk_peek_at(const struct pacer_walk *w, __u32 i, struct pacer_hold *hold)
{
	if (!w || !hold || i >= PACER_TIERS_MAX)
		return PACER_DENY_NO_STATE;
	return pacer_walk_peek(w, &PACER_RULE_OF(w)->tier[i], hold);
}

PACER_GLOBAL int pacer_walk_take(const struct pacer_walk *w, __u32 i, struct pacer_hold *hold)
{
	const struct pacer_tier *t;
	struct pacer_ask q;

	if (!w || !hold || i >= PACER_TIERS_MAX)
		return PACER_DENY_NO_STATE;
	t = &PACER_RULE_OF(w)->tier[i];
	if (!pacer_tier_asked(t, w->now_ns))
		return PACER_ADMIT;
	q = pacer_walk_ask(w, t, hold->hash);
	return pacer_tier_take(&q, hold);
}

PACER_GLOBAL int pacer_walk_leave(const struct pacer_walk *w, __u32 i, struct pacer_hold *hold,
				  int commit)
{
	const struct pacer_tier *t;
	struct pacer_ask q;

	if (!w || !hold || i >= PACER_TIERS_MAX)
		return 0;
	t = &PACER_RULE_OF(w)->tier[i];
	if (!pacer_tier_asked(t, w->now_ns))
		return 0;
	q = pacer_walk_ask(w, t, hold->hash);
	if (commit)
		pacer_tier_commit(&q, hold);
	else
		pacer_tier_cancel(&q, hold);
	return 0;
}

/* A judgement in one word, as a function of its own returns it: the reason, and the tier above. */
PACER_INLINE int pacer_pack(enum pacer_reason reason, __u32 tier)
{
	return reason | tier << 8;
}

/* All tiers of a rule: asked, then claimed in their order, then counted in all or in none. */
PACER_GLOBAL int pacer_limit_many(const struct pacer_walk *w)
{
	struct pacer_hold hold[PACER_TIERS_MAX] = {0};
	enum pacer_reason reason = PACER_ADMIT;
	__u32 i, held, n;

	if (!w)
		return PACER_DENY_NO_STATE;
	n = PACER_RULE_OF(w)->n_tiers;
	PACER_ROLLED
	for (i = 0; i < PACER_TIERS_MAX && i < n; i++) {
		reason = pacer_reason_of(pacer_walk_peek_at(w, i, &hold[i]));
		if (reason != PACER_ADMIT)
			return pacer_pack(reason, i);
	}
	PACER_ROLLED
	for (held = 0; held < PACER_TIERS_MAX && held < n; held++) {
		reason = pacer_reason_of(pacer_walk_take(w, held, &hold[held]));
		if (reason != PACER_ADMIT)
			break;
	}
	PACER_ROLLED
	for (i = 0; i < PACER_TIERS_MAX && i < held; i++)
		pacer_walk_leave(w, i, &hold[i], reason == PACER_ADMIT);
	return pacer_pack(reason, reason == PACER_ADMIT ? 0 : held);
}

/* The same for the many rules that have one tier. */
PACER_GLOBAL int pacer_limit_one(const struct pacer_walk *w)
{
	struct pacer_hold hold = {0};
	enum pacer_reason reason;

	if (!w)
		return PACER_DENY_NO_STATE;
	reason = pacer_walk_peek(w, &PACER_RULE_OF(w)->tier[0], &hold);
	if (reason == PACER_ADMIT)
		reason = pacer_reason_of(pacer_walk_take(w, 0, &hold));
	if (reason == PACER_ADMIT)
		pacer_walk_leave(w, 0, &hold, 1);
	return reason;
}

/* Let every tier of the rule judge the packet, and count it in all of them or in none. */
PACER_INLINE int pacer_limit(const struct pacer_walk *w)
{
	return PACER_RULE_OF(w)->n_tiers == 1 ? pacer_limit_one(w) : pacer_limit_many(w);
}

/* The first rule that the packet matches, PACER_RULES_MAX if none. */
PACER_GLOBAL int pacer_walk_classify(const struct pacer_walk *w)
{
	__u64 rules = w ? pacer_classify(PACER_POLICY_OF(w), &w->pkt) : 0;

	return rules ? pacer_lowest(rules) : PACER_RULES_MAX;
}

/* Judge w->pkt, which was parsed and is not on the allow-list, at w->now_ns. */
PACER_INLINE struct pacer_judgement pacer_pace(struct pacer_walk *w)
{
	const struct pacer_policy *policy = PACER_POLICY_OF(w);
	int packed;

	w->rule = 0;
	if (policy->dims || !(policy->rules & 1))
		w->rule = pacer_walk_classify(w);
	if (w->rule >= PACER_RULES_MAX)
		return (struct pacer_judgement){PACER_NO_RULE, PACER_RULES_MAX, 0};
	packed = pacer_limit(w);
	return (struct pacer_judgement){pacer_reason_of(packed & 0xff), w->rule,
					(packed >> 8) & (PACER_TIERS_MAX - 1)};
}

#endif
