/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: what a packet's rule says of it: its limits, in all of them or in none,
 * and its bans.
 *
 * A packet is admitted only if every limit of its rule admits it. All limits are
 * first asked by reading alone, so a packet that is denied writes nothing that
 * is shared. Then their states are locked one after the other, judged again
 * under the lock, and counted only when the last has admitted: a denial by one
 * charges no other. A throttle holds no lock between judging and counting, but
 * hands a use back; so the loader puts throttles last, where that is rare. The
 * lines of all limits are asked for before the first is judged, and an entry that
 * its key has is locked as it was read, without another look for it. A rule
 * of one limit of records counts what it has read in one pass, if the lock finds
 * that unchanged.
 *
 * A source that is banned from outside is denied before a rule is looked for. Where
 * the rule bans, or keys may be banned under it from outside, a key of its limits
 * that is banned is denied first of all; where it bans, one that a limit denies is
 * banned from then on. A limit whose key is the same
 * for all bans nobody, nor does a denial for want of a lock or of state.
 *
 * Concurrency: any number of CPUs. Locks of a rule are taken in the order of
 * its limits and every limit has lines of its own, so no two CPUs wait for each
 * other in a circle; but for the two limiters of a limit whose secret is changed
 * (table.h), where they do so for PACER_SPINS looks. A walk is one CPU's, and its
 * leases are only that CPU's.
 *
 * Error: that of the limiters (recency.h, window.h, table.h, throttle.h, ban.h).
 * Contention beyond PACER_SPINS looks denies.
 */
#ifndef PACER_RULE_H
#define PACER_RULE_H

#include "abi.h"
#include "ban.h"
#include "classify.h"
#include "flow.h"
#include "limit.h"
#include "outcome.h"
#include "set.h"

/* Does another tool ban the packet's source, at its time? Only where the policy has PACER_TOOLS. A
 * host without such tools has no word for it.
 */
#ifndef PACER_BANNED_BY_TOOL
#define PACER_BANNED_BY_TOOL(walk) ((void)(walk), 0)
#endif

/* --- the limits of a rule ------------------------------------------------------------------- */

PACER_GLOBAL int pacer_walk_check(const struct pacer_walk *w, __u32 i, struct pacer_hold *hold)
{
	if (!w || !hold || i >= PACER_LIMITERS_MAX)
		return PACER_DENY_NO_STATE;
	return pacer_limit_check(w, &PACER_RULE_OF(w)->limiter[i], hold);
}

/* Taking a lock goes deep, so it is apart from what comes then, and has the stack to itself. */
PACER_GLOBAL int pacer_walk_take(const struct pacer_walk *w, __u32 i, struct pacer_hold *hold)
{
	if (!w || !hold || i >= PACER_LIMITERS_MAX)
		return PACER_LOCK_OTHER;
	return pacer_limit_take(w, &PACER_RULE_OF(w)->limiter[i], hold);
}

/* taken: what pacer_walk_take has returned. */
PACER_GLOBAL int pacer_walk_reserve(const struct pacer_walk *w, __u32 i, struct pacer_hold *hold,
				    int taken)
{
	if (!w || !hold || i >= PACER_LIMITERS_MAX)
		return PACER_DENY_NO_STATE;
	return pacer_limit_judge_taken(w, &PACER_RULE_OF(w)->limiter[i], hold, taken);
}

PACER_GLOBAL int pacer_walk_finish(const struct pacer_walk *w, __u32 i, struct pacer_hold *hold,
				   int commit)
{
	const struct pacer_limiter *t;

	if (!w || !hold || i >= PACER_LIMITERS_MAX)
		return 0;
	t = &PACER_RULE_OF(w)->limiter[i];
	if (commit)
		pacer_limit_commit(w, t, hold);
	else
		pacer_limit_cancel(w, t, hold);
	return 0;
}

/* What becomes of packets of a rule without limits: a reason. */
PACER_INLINE __u32 pacer_rule_reason(const struct pacer_rule *rule)
{
	return rule->says == PACER_SAYS_DENY ? PACER_DENY_VERDICT : PACER_ADMIT;
}

/* --- ... whose state is an entry of the table ------------------------------------------------- */

/* Is its state an entry that packets alone change, and its key one without values of sets? */
PACER_INLINE int pacer_limit_is_quick(const struct pacer_limiter *t)
{
	return (t->kind == PACER_LIMITER_WINDOW || t->kind == PACER_LIMITER_RATE) && !t->until_ns &&
	       !pacer_limiter_valued(t);
}

/* The hash of an IPv6 key, as home << 32 | mark. A function apart, since its words take stack. */
PACER_GLOBAL __u64 pacer_quick_hash6(const struct pacer_walk *w, const struct pacer_limiter *t)
{
	struct pacer_hash hash;

	if (!w || !t)
		return 0;
	hash = pacer_limiter_hash6(t, &w->pkt, PACER_SECRET_AT(w, t->secret));
	return (__u64)hash.home << 32 | hash.mark;
}

/* Of any key without values of sets. */
PACER_INLINE struct pacer_hash pacer_quick_hash(const struct pacer_walk *w,
						const struct pacer_limiter *t)
{
	__u64 both;

	if (w->pkt.family == PACER_FAMILY_4)
		return pacer_limiter_hash4(t, &w->pkt, PACER_SECRET_AT(w, t->secret));
	both = pacer_quick_hash6(w, t);
	return (struct pacer_hash){both >> 32, (__u32)both};
}

/* Where the limit's key is looked for first; and asks for that line. 0: it is none of these. */
PACER_INLINE int pacer_quick_request(const struct pacer_walk *w, const struct pacer_limiter *t,
				     struct pacer_hold *hold)
{
	struct pacer_entry *head;
	struct pacer_hash hash;

	if (!pacer_limit_is_quick(t)) {
		*hold = (struct pacer_hold){0};
		return 0;
	}
	hash = pacer_quick_hash(w, t);
	pacer_hold_key(hold, hash);
	hold->index = t->sets ? pacer_set_index(t, hash) : pacer_shared_index(t, hash);
	head = pacer_entry_at(PACER_TABLE_OF(w), hold->index);
	if (!head)
		return 0;
	pacer_request(head);
	return 1;
}

/*
 * What a packet asks a limit whose entries are of so many units, a constant: of a rate they have 1,
 * of a narrow window 2. Of a wide one it is the limit's number.
 */
PACER_INLINE struct pacer_ask pacer_quick_ask(const struct pacer_walk *w,
					      const struct pacer_limiter *t, __u32 units,
					      struct pacer_hash hash)
{
	struct pacer_ask q = pacer_walk_ask(w, t, hash);

	q.kind = units == PACER_RATE_UNITS ? PACER_LIMITER_RATE : PACER_LIMITER_WINDOW;
	q.units = units;
	return q;
}

/* Calls a function of these for a limit, with its units as a constant where these are few. */
#define PACER_QUICK_BY_UNITS(function, w, t, ...)                                             \
	((t)->units == PACER_RATE_UNITS	    ? function(w, t, PACER_RATE_UNITS, __VA_ARGS__)   \
	 : (t)->units == PACER_NARROW_UNITS ? function(w, t, PACER_NARROW_UNITS, __VA_ARGS__) \
	 : (t)->units == PACER_LINE_UNITS   ? function(w, t, PACER_LINE_UNITS, __VA_ARGS__)   \
					    : function(w, t, (t)->units, __VA_ARGS__))

PACER_INLINE __u32 pacer_quick_check_as(const struct pacer_walk *w, const struct pacer_limiter *t,
					__u32 units, struct pacer_hold *hold,
					struct pacer_seen *kept)
{
	struct pacer_ask q = pacer_quick_ask(w, t, units, pacer_hold_hash(hold));
	struct pacer_seen seen = {0};
	struct pacer_found f;
	__u32 outcome;

	(void)pacer_record_look(&q, hold->index, &f);
	if (t->sets)
		pacer_record_locate_on(&q, &f);
	outcome = pacer_entry_read(&q, &f, &seen);
	hold->index = f.ring.index;
	if (outcome != PACER_ADMIT)
		return outcome;
	if (t->sets && pacer_lock_tag(f.word) != pacer_tag(q.hash))
		return PACER_UNDECIDED; /* it has no entry, or shares one */
	hold->word = f.word;
	*kept = seen;
	return PACER_ADMIT;
}

/*
 * Would the limit admit the packet? Read only. If it admits, the hold has the entry's word, and
 * *seen what that rests on. Undecided: it may, but the key has no entry, or it is just being
 * changed; then the hold has its hash.
 */
PACER_GLOBAL int pacer_quick_check(const struct pacer_walk *w, const struct pacer_limiter *t,
				   struct pacer_hold *hold, struct pacer_seen *seen)
{
	PACER_ARGUMENT(w);
	if (!w || !t || !hold || !seen)
		return PACER_DENY_NO_STATE;
	return PACER_QUICK_BY_UNITS(pacer_quick_check_as, w, t, hold, seen);
}

PACER_INLINE __u32 pacer_quick_lock_as(const struct pacer_walk *w, const struct pacer_limiter *t,
				       __u32 units, struct pacer_hold *hold,
				       struct pacer_seen *seen, int last)
{
	struct pacer_ask q = pacer_quick_ask(w, t, units, (struct pacer_hash){0, 0});
	enum pacer_reason reason = PACER_ADMIT;
	__u32 word = hold->word;
	struct pacer_ring r;

	if (!pacer_ring_begin(q.table, pacer_ask_narrow(&q), hold->index, &r) ||
	    !pacer_ring_whole(t, &r) ||
	    pacer_cas(&r.head->lock, word, word | PACER_LOCK_HELD) != word) {
		*hold = pacer_limit_home(w, t);
		return PACER_UNDECIDED;
	}
	hold->word = word | PACER_LOCK_HELD;
	if (!pacer_entry_same(&q, &r, seen)) /* the word is the same again after 512 changes */
		reason = pacer_entry_judge(&q, &r, word, seen);
	if (reason != PACER_ADMIT)
		pacer_lock_cancel(&r.head->lock, word);
	else if (last)
		pacer_lock_release(&r.head->lock, pacer_entry_admit(&q, &r, seen, word));
	return reason;
}

/*
 * Locks the limit's entry, if its word is what was read, and judges for good. A reason: if it
 * admits, the entry is held, and *seen is what that rests on; or, if no limit is asked after this
 * one (last), the packet is counted in it and it is let go of. Undecided: it is not held, since
 * another CPU was here meanwhile; then the hold has the key's hash again.
 */
PACER_GLOBAL int pacer_quick_lock(const struct pacer_walk *w, const struct pacer_limiter *t,
				  struct pacer_hold *hold, struct pacer_seen *seen, int last)
{
	PACER_ARGUMENT(w);
	if (!w || !t || !hold || !seen)
		return PACER_DENY_NO_STATE;
	return PACER_QUICK_BY_UNITS(pacer_quick_lock_as, w, t, hold, seen, last);
}

PACER_INLINE int pacer_quick_commit_as(const struct pacer_walk *w, const struct pacer_limiter *t,
				       __u32 units, const struct pacer_hold *hold,
				       const struct pacer_seen *seen)
{
	struct pacer_ask q = pacer_quick_ask(w, t, units, (struct pacer_hash){0, 0});
	struct pacer_ring r;

	if (!pacer_ring_begin(q.table, pacer_ask_narrow(&q), hold->index, &r) ||
	    !pacer_ring_whole(t, &r))
		return 0;
	pacer_lock_release(&r.head->lock, pacer_entry_admit(&q, &r, seen, hold->word));
	return 0;
}

/* Counts the packet in the limit's entry, which pacer_quick_lock holds, and lets go of it. */
PACER_GLOBAL int pacer_quick_commit(const struct pacer_walk *w, const struct pacer_limiter *t,
				    const struct pacer_hold *hold, const struct pacer_seen *seen)
{
	PACER_ARGUMENT(w);
	if (!w || !t || !hold || !seen)
		return 0;
	return PACER_QUICK_BY_UNITS(pacer_quick_commit_as, w, t, hold, seen);
}

/* --- all limits of a rule --------------------------------------------------------------------- */

/*
 * Asks for the lines of all limits of the rule, before the first is judged: so a packet waits for
 * memory once.
 */
PACER_GLOBAL int pacer_limit_request(const struct pacer_walk *w, struct pacer_holds *holds)
{
	const struct pacer_rule *rule;
	__u32 i, n, quick = 0;

	if (!w || !holds)
		return 0;
	rule = PACER_RULE_OF(w);
	n = rule->n_limiters;
	PACER_ROLLED
	for (i = 0; i < PACER_LIMITERS_MAX && i < n; i++)
		quick |= (pacer_quick_request(w, &rule->limiter[i], &holds->at[i]) & 1) << i;
	holds->quick = quick;
	return 0;
}

/*
 * Would all limits of the rule, whose lines were asked for, admit the packet? Read only: an
 * outcome. A function apart from what comes then, which has no stack for it.
 */
PACER_GLOBAL __u32 pacer_limit_ask(const struct pacer_walk *w, struct pacer_holds *holds)
{
	__u32 i, n, said, outcome = PACER_ADMIT;
	const struct pacer_rule *rule;

	if (!w || !holds)
		return PACER_DENY_NO_STATE;
	rule = PACER_RULE_OF(w);
	n = rule->n_limiters;
	PACER_ROLLED
	for (i = 0; i < PACER_LIMITERS_MAX && i < n && outcome == PACER_ADMIT; i++) {
		said = holds->quick >> i & 1
			   ? pacer_quick_check(w, &rule->limiter[i], &holds->at[i], &holds->seen[i])
			   : pacer_walk_check(w, i, &holds->at[i]);
		holds->quick &= ~((__u32)(said == PACER_UNDECIDED) << i);
		if (said != PACER_ADMIT && said != PACER_UNDECIDED)
			outcome = pacer_outcome(pacer_outcome_reason(said), i);
	}
	return outcome;
}

/*
 * Locks the state of limit i, and judges for good: a reason. If it is the last, and quick, the
 * packet is counted in it.
 */
PACER_INLINE int pacer_walk_lock(const struct pacer_walk *w, const struct pacer_rule *rule, __u32 i,
				 int last, struct pacer_holds *holds)
{
	int said = holds->quick >> i & 1 ? pacer_quick_lock(w, &rule->limiter[i], &holds->at[i],
							    &holds->seen[i], last)
					 : PACER_UNDECIDED;

	if (said != PACER_UNDECIDED)
		return said;
	holds->quick &= ~(1u << i);
	said = pacer_walk_take(w, i, &holds->at[i]);
	return pacer_walk_reserve(w, i, &holds->at[i], said);
}

/*
 * Counts the packet in the first `held` limits, or lets go of them. Where all admitted it, the last
 * has counted it if that was quick.
 */
PACER_GLOBAL int pacer_limit_end(const struct pacer_walk *w, struct pacer_holds *holds, __u32 held,
				 int commit)
{
	const struct pacer_rule *rule;
	__u32 i;

	if (!w || !holds)
		return 0;
	rule = PACER_RULE_OF(w);
	held -= commit & holds->quick >> ((held - 1) & 31) & 1;
	PACER_ROLLED
	for (i = 0; i < PACER_LIMITERS_MAX && i < held; i++)
		if (commit && holds->quick >> i & 1)
			pacer_quick_commit(w, &rule->limiter[i], &holds->at[i], &holds->seen[i]);
		else
			pacer_walk_finish(w, i, &holds->at[i], commit);
	return 0;
}

/*
 * All limits of a rule: asked, then locked in their order, then counted in all or in none. Where
 * the rule has limits of new flows, the flow of what they admit is known from then on.
 */
PACER_GLOBAL __u32 pacer_limit_many(const struct pacer_walk *w)
{
	struct pacer_scratch *scratch = w ? PACER_SCRATCH_OF(w) : 0;
	const struct pacer_rule *rule;
	struct pacer_holds *holds;
	__u32 held, said, n;

	if (!w || !scratch)
		return PACER_DENY_NO_STATE;
	rule = PACER_RULE_OF(w);
	n = rule->n_limiters;
	if (!n)
		return pacer_rule_reason(rule);
	holds = &scratch->holds;
	pacer_limit_request(w, holds);
	said = pacer_limit_ask(w, holds);
	if (said != PACER_ADMIT)
		return said;
	PACER_ROLLED
	for (held = 0; held < PACER_LIMITERS_MAX && held < pacer_opaque(n); held++) {
		said = pacer_walk_lock(w, rule, held, held + 1 == n, holds);
		if (said != PACER_ADMIT)
			break;
	}
	pacer_limit_end(w, holds, held, said == PACER_ADMIT);
	if (said == PACER_ADMIT && rule->opens)
		pacer_flow_keep(w);
	return said == PACER_ADMIT ? said : pacer_outcome(pacer_outcome_reason(said), held);
}

/*
 * The same for the many rules that have one limit, as far as that goes in one pass; undecided where
 * pacer_limit_finish_one has the last word. plain: a constant, 1 if no fleet divides the limit, and
 * its key has no values of sets.
 */
PACER_INLINE __u32 pacer_limit_pass(const struct pacer_walk *w, const struct pacer_limiter *t,
				    int plain)
{
	struct pacer_hold hold = {0};
	enum pacer_reason reason;

	if ((t->kind == PACER_LIMITER_WINDOW || t->kind == PACER_LIMITER_RATE) && !t->until_ns) {
		struct pacer_hash hash =
		    plain ? pacer_limiter_hash(t, &w->pkt, PACER_SECRET_AT(w, t->secret))
			  : pacer_walk_hash(w, t, t->secret);
		struct pacer_ask q = pacer_walk_ask(w, t, hash);

		return pacer_entry_pass(&q);
	}
	reason = plain ? pacer_limit_check_plain(w, t, &hold) : pacer_limit_check(w, t, &hold);
	return reason == PACER_ADMIT ? PACER_UNDECIDED : (__u32)reason;
}

/*
 * A reason, for a packet that the rule's first limit may admit. A function of its own, and it looks
 * for the key anew: so what found that out need not be on the stack, nor what it found.
 */
PACER_GLOBAL __u32 pacer_limit_finish_one(const struct pacer_walk *w)
{
	const struct pacer_limiter *t;
	struct pacer_hold hold;
	enum pacer_reason reason;

	if (!w)
		return PACER_DENY_NO_STATE;
	t = &PACER_RULE_OF(w)->limiter[0];
	hold = pacer_limit_home(w, t);
	reason = pacer_limit_judge_taken(w, t, &hold, pacer_limit_take(w, t, &hold));
	if (reason == PACER_ADMIT)
		pacer_limit_commit(w, t, &hold);
	return reason;
}

PACER_GLOBAL __u32 pacer_limit_first(const struct pacer_walk *w)
{
	return w ? pacer_limit_pass(w, &PACER_RULE_OF(w)->limiter[0], 0)
		 : (__u32)PACER_DENY_NO_STATE;
}

/* Both steps. */
PACER_INLINE __u32 pacer_limit_one(const struct pacer_walk *w)
{
	__u32 outcome = pacer_limit_first(w);

	return pacer_outcome_undecided(outcome) ? pacer_limit_finish_one(w) : outcome;
}

/* Let every limit of the rule judge the packet, and count it in all of them or in none. */
PACER_INLINE __u32 pacer_limit(const struct pacer_walk *w)
{
	return PACER_RULE_OF(w)->n_limiters == 1 && !PACER_RULE_OF(w)->opens ? pacer_limit_one(w)
									     : pacer_limit_many(w);
}

/* --- its bans ------------------------------------------------------------------------------- */

/* The packet's key under a limit, as a ban has it. A function apart, for the stack. */
PACER_GLOBAL int pacer_walk_ban_key(const struct pacer_walk *w, const struct pacer_limiter *t,
				    struct pacer_ban_key *key)
{
	__u32 i;

	if (!w || !t || !key)
		return 0;
	key->rule = PACER_RULE_OF(w)->id;
	key->key_id = t->key_id;
	if (w->pkt.family != PACER_FAMILY_6 ||
	    (pacer_limiter_valued(t) && pacer_limiter_of_both(t))) {
		key->word[0] = pacer_walk_key_word(w, t, PACER_WORD_SADDR);
		key->word[1] = pacer_walk_key_word(w, t, PACER_WORD_DADDR);
		key->word[2] = pacer_walk_key_word(w, t, PACER_WORD_PORTS);
		key->word[3] = pacer_walk_key_word(w, t, PACER_WORD_META);
		for (i = 4; i < PACER_KEY_WORDS; i++)
			key->word[i] = 0;
		return 0;
	}
	key->key_id |= PACER_KEY_V6;
	for (i = 0; i < PACER_KEY_WORDS; i++)
		key->word[i] = pacer_walk_key_word(w, t, i);
	return 0;
}

PACER_INLINE struct pacer_ban_ask pacer_walk_ban_ask(const struct pacer_walk *w,
						     const struct pacer_limiter *t, __u32 secret)
{
	__u64 hash = pacer_walk_key_hash(w, t, secret);
	struct pacer_ban_ask q = {PACER_TABLE_OF(w), &PACER_POLICY_OF(w)->bans,
				  w->now_ns,	     {hash >> 32, (__u32)hash},
				  {0, 0, {0}},	     0};

	pacer_walk_ban_key(w, t, &q.key);
	return q;
}

/* Does the exact table say that the packet's key under this limit is banned? */
PACER_GLOBAL int pacer_walk_confirm(const struct pacer_walk *w, __u32 i, __u32 secret)
{
	struct pacer_ban_ask q;

	if (!w || i >= PACER_LIMITERS_MAX)
		return 0;
	q = pacer_walk_ban_ask(w, &PACER_RULE_OF(w)->limiter[i], secret);
	return pacer_ban_find(&q);
}

/* Is the packet's key banned under a limit of the rule, by this secret? An outcome. */
PACER_GLOBAL __u32 pacer_walk_banned(const struct pacer_walk *w, __u32 secret)
{
	const struct pacer_limiter *t;
	__u64 hash;
	__u32 i;

	if (!w)
		return PACER_ADMIT;
	PACER_ROLLED
	for (i = 0; i < PACER_LIMITERS_MAX && i < PACER_RULE_OF(w)->n_limiters; i++) {
		t = &PACER_RULE_OF(w)->limiter[i];
		if (!t->key_id)
			continue;
		hash = pacer_walk_key_hash(w, t, secret);
		if (pacer_ban_maybe(PACER_TABLE_OF(w), &PACER_POLICY_OF(w)->bans,
				    (struct pacer_hash){hash >> 32, (__u32)hash}, w->now_ns) &&
		    pacer_walk_confirm(w, i, secret))
			return pacer_outcome(PACER_DENY_BAN, i);
	}
	return PACER_ADMIT;
}

/* ... or, while bans are being moved, by the one before? That first, as bans come from there. */
PACER_INLINE __u32 pacer_walk_any_ban(const struct pacer_walk *w)
{
	__u32 secret = PACER_POLICY_OF(w)->secret, outcome = PACER_ADMIT;

	if (pacer_ban_none(PACER_TABLE_OF(w), &PACER_POLICY_OF(w)->bans, w->now_ns))
		return PACER_ADMIT;
	if (PACER_POLICY_OF(w)->bans.moving)
		outcome = pacer_walk_banned(w, secret ^ 1);
	return outcome == PACER_ADMIT ? pacer_walk_banned(w, secret) : outcome;
}

/* Is the packet's source banned from outside, by this secret? */
PACER_GLOBAL int pacer_walk_source(const struct pacer_walk *w, __u32 secret)
{
	const struct pacer_bans *bans;
	struct pacer_ban_ask q;
	__u32 i, len;

	if (!w)
		return 0;
	bans = &PACER_POLICY_OF(w)->bans;
	q = (struct pacer_ban_ask){PACER_TABLE_OF(w), bans, w->now_ns, {0, 0}, {0, 0, {0}}, 0};
	PACER_ROLLED
	for (i = 0; i < PACER_BAN_LENGTHS; i++) {
		len = w->pkt.family == PACER_FAMILY_4 ? bans->len4[i] : bans->len6[i];
		if (!len)
			continue;
		q.key = pacer_ban_source(w->pkt.family, &w->pkt.key[PACER_WORD_SADDR], len);
		q.hash = pacer_ban_hash(&q.key, PACER_SECRET_AT(w, secret));
		if (pacer_ban_maybe(q.table, bans, q.hash, q.now_ns) && pacer_ban_find(&q))
			return 1;
	}
	return 0;
}

/* ... by that of the policy or, while bans are being moved, by the one before? */
PACER_INLINE int pacer_walk_source_banned(const struct pacer_walk *w)
{
	__u32 secret = PACER_POLICY_OF(w)->secret;

	if (!(PACER_POLICY_OF(w)->flags & PACER_SOURCES_BANNED) ||
	    pacer_ban_none(PACER_TABLE_OF(w), &PACER_POLICY_OF(w)->bans, w->now_ns))
		return 0;
	return (PACER_POLICY_OF(w)->bans.moving && pacer_walk_source(w, secret ^ 1)) ||
	       pacer_walk_source(w, secret);
}

/* How many bans in a row the packet's key under this limit has had, if one begins now. */
PACER_GLOBAL __u32 pacer_walk_row(const struct pacer_walk *w, __u32 i)
{
	struct pacer_ban_ask q;

	if (!w || i >= PACER_LIMITERS_MAX)
		return 0;
	q = pacer_walk_ban_ask(w, &PACER_RULE_OF(w)->limiter[i], PACER_POLICY_OF(w)->secret);
	return pacer_ban_row(&q, PACER_RULE_OF(w));
}

/* The next two are apart from their caller, for the stack, and as verifiers would multiply paths.
 */
PACER_GLOBAL int pacer_walk_ban_raise(const struct pacer_walk *w, __u32 i, __u64 until_ns)
{
	struct pacer_ban_ask q;

	if (!w || i >= PACER_LIMITERS_MAX)
		return 0;
	q = pacer_walk_ban_ask(w, &PACER_RULE_OF(w)->limiter[i], PACER_POLICY_OF(w)->secret);
	return q.bans->sets && pacer_ban_raise(&q, until_ns);
}

PACER_GLOBAL int pacer_walk_ban_put(const struct pacer_walk *w, __u32 i, __u32 row)
{
	struct pacer_ban_ask q;
	__u64 until_ns;

	if (!w || i >= PACER_LIMITERS_MAX)
		return PACER_EVENT_COUNT;
	q = pacer_walk_ban_ask(w, &PACER_RULE_OF(w)->limiter[i], PACER_POLICY_OF(w)->secret);
	until_ns = PACER_RULE_OF(w)->ban_grow ? pacer_ban_grown(&q, PACER_RULE_OF(w), row)
					      : w->now_ns + PACER_RULE_OF(w)->ban_ns;
	return pacer_ban_put(&q, until_ns);
}

/*
 * Ban the packet's key under the limit that denied it; if the rule's bans grow, with `row` before
 * it. Returns what came of it, as an event.
 */
PACER_GLOBAL int pacer_walk_ban(const struct pacer_walk *w, __u32 i, __u32 row)
{
	__u64 until_ns;

	if (!w || i >= PACER_LIMITERS_MAX || !PACER_RULE_OF(w)->limiter[i].key_id)
		return PACER_EVENT_COUNT;
	until_ns = w->now_ns + (PACER_RULE_OF(w)->ban_grow ? pacer_ban_length(PACER_RULE_OF(w), row)
							   : PACER_RULE_OF(w)->ban_ns);
	return pacer_walk_ban_raise(w, i, until_ns) ? pacer_walk_ban_put(w, i, row)
						    : PACER_BANS_FULL;
}

/* Until when the packet's key under this limit is banned; 0: it is not. */
PACER_GLOBAL __u64 pacer_walk_key_until(const struct pacer_walk *w, __u32 i)
{
	struct pacer_ban_ask q;

	if (!w || i >= PACER_LIMITERS_MAX)
		return 0;
	q = pacer_walk_ban_ask(w, &PACER_RULE_OF(w)->limiter[i], PACER_POLICY_OF(w)->secret);
	return pacer_ban_until(&q);
}

/* Is a denial for this reason the key's own doing? */
PACER_INLINE int pacer_bans(enum pacer_reason reason)
{
	return reason == PACER_DENY_GAP || reason == PACER_DENY_WINDOW || reason == PACER_DENY_RATE;
}

/* --- a packet's rule, and what that says ---------------------------------------------------- */

/* And the values of the source, from bit 8, and of the destination, from bit 16: 0 to 255. */
enum pacer_in_set { PACER_SRC_IN = 1, PACER_DST_IN = 2, PACER_SET_UNKNOWN = 4 };

/* four: is the packet of IPv4? */
PACER_INLINE int pacer_walk_address_as(PACER_SET *set, const struct pacer_walk *w, __u32 word,
				       int four)
{
	return four ? pacer_set_find4(set, w->pkt.key[word & PACER_WORD_DADDR])
		    : pacer_set_find6(set, &w->pkt.key[word & PACER_WORD_DADDR]);
}

PACER_INLINE int pacer_walk_address_in(PACER_SET *set, const struct pacer_walk *w, __u32 word)
{
	return pacer_walk_address_as(set, w, word, w->pkt.family == PACER_FAMILY_4);
}

/* The same of what was added to the set by hand, at the packet's time. */
PACER_INLINE int pacer_walk_address_added(PACER_SET *set, const struct pacer_walk *w, __u32 number,
					  __u32 word, int four)
{
	PACER_SET *hand = PACER_SET_HAND_OF(w, number);
	int value;

	if (!hand || !pacer_set_is_of(hand, set))
		return 0;
	value = pacer_walk_address_as(hand, w, word, four);
	return value > 0 ? pacer_set_lasts(hand, value, w->now_ns) : value;
}

/*
 * What was added by hand to the set of that serial, which has values, says of the packet's address:
 * as pacer_set_given. It comes before what the set says. The serial is of the set that the packet
 * has: another may be in its place by now, to which this belongs no more.
 */
PACER_GLOBAL __u64 pacer_walk_given(const struct pacer_walk *w, __u32 number, __u32 word,
				    __u32 serial)
{
	PACER_SET *hand;
	int value;

	if (!w)
		return PACER_SET_UNREADABLE;
	hand = PACER_SET_HAND_OF(w, number);
	if (!hand || !pacer_set_has_serial(hand, serial))
		return 0;
	value = pacer_walk_address_in(hand, w, word);
	if (value < 0)
		return PACER_SET_UNREADABLE;
	return value ? pacer_set_given(hand, value, w->now_ns) : 0;
}

/*
 * The value of the packet's address, of which the set says `value`; what was added by hand has 255,
 * which no rule names.
 */
PACER_INLINE int pacer_walk_value(PACER_SET *set, const struct pacer_walk *w, __u32 number,
				  __u32 word, int four, int value)
{
	if (value)
		return value < 255 ? value : 255;
	value = pacer_walk_address_added(set, w, number, word, four);
	return value > 0 ? 255 : value;
}

/*
 * As pacer_walk_in_set. four: a constant, whether the packet is of IPv4; its source is looked for
 * in line then, since most packets are so, and a return costs more than that.
 */
PACER_INLINE int pacer_walk_in_set_as(const struct pacer_walk *w, __u32 number, int four)
{
	PACER_SET *set;
	int value, in = 0;

	if (!w)
		return PACER_SET_UNKNOWN;
	number &= PACER_SETS_MAX - 1;
	set = PACER_SET_OF(w, number);
	if (!set)
		return PACER_SET_UNKNOWN;
	if (PACER_POLICY_OF(w)->set_asks[number] & PACER_ASKS_SRC) {
		value = four ? pacer_set_value4(set, w->pkt.key[PACER_WORD_SADDR])
			     : pacer_set_find6(set, &w->pkt.key[PACER_WORD_SADDR]);
		value = pacer_walk_value(set, w, number, PACER_WORD_SADDR, four, value);
		if (value < 0)
			return PACER_SET_UNKNOWN;
		in = value ? value << 8 | PACER_SRC_IN : 0;
	}
	if (PACER_POLICY_OF(w)->set_asks[number] & PACER_ASKS_DST) {
		value = pacer_walk_address_as(set, w, PACER_WORD_DADDR, four);
		value = pacer_walk_value(set, w, number, PACER_WORD_DADDR, four, value);
		if (value < 0)
			return PACER_SET_UNKNOWN;
		in |= value ? value << 16 | PACER_DST_IN : 0;
	}
	return in;
}

PACER_GLOBAL int pacer_walk_in_set4(const struct pacer_walk *w, __u32 number)
{
	return pacer_walk_in_set_as(w, number, 1);
}

PACER_GLOBAL int pacer_walk_in_set6(const struct pacer_walk *w, __u32 number)
{
	return pacer_walk_in_set_as(w, number, 0);
}

/* Which of the packet's addresses that set has, which has no values: enum pacer_in_set. It is asked
 * for once, so both are looked for in the same one.
 */
PACER_INLINE int pacer_walk_in_set(const struct pacer_walk *w, __u32 number)
{
	return w->pkt.family == PACER_FAMILY_4 ? pacer_walk_in_set4(w, number)
					       : pacer_walk_in_set6(w, number);
}

/* The same of a set with values, but for what was added to it by hand; and from bit 32 on its
 * serial.
 */
PACER_GLOBAL __u64 pacer_walk_in_values(const struct pacer_walk *w, __u32 number)
{
	int value, in = 0;
	PACER_SET *set;

	if (!w)
		return PACER_SET_UNKNOWN;
	number &= PACER_SETS_MAX - 1;
	set = PACER_SET_OF(w, number);
	if (!set)
		return PACER_SET_UNKNOWN;
	if (PACER_POLICY_OF(w)->set_asks[number] & PACER_ASKS_SRC) {
		value = pacer_walk_address_in(set, w, PACER_WORD_SADDR);
		if (value < 0)
			return PACER_SET_UNKNOWN;
		value = value < 255 ? value : 255;
		in = value ? value << 8 | PACER_SRC_IN : 0;
	}
	if (PACER_POLICY_OF(w)->set_asks[number] & PACER_ASKS_DST) {
		value = pacer_walk_address_in(set, w, PACER_WORD_DADDR);
		if (value < 0)
			return PACER_SET_UNKNOWN;
		value = value < 255 ? value : 255;
		in |= value ? value << 16 | PACER_DST_IN : 0;
	}
	return (__u64)pacer_set_serial(set) << 32 | in;
}

/* The value of an address by what was added by hand, where the set itself has `value` for it. */
PACER_INLINE int pacer_value_given(__u64 given, int value)
{
	if (!(given & ~PACER_SET_GIVEN))
		return given && !value ? 255 : value;
	return given & 0xffff ? given & 255 : 255;
}

/* Which of the packet's addresses that set has, with what was added to it by hand. */
PACER_INLINE int pacer_walk_in(const struct pacer_walk *w, __u32 number)
{
	__u32 asks = PACER_POLICY_OF(w)->set_asks[number & (PACER_SETS_MAX - 1)];
	__u64 found, src = 0, dst = 0;
	int in, value;

	if (!(PACER_POLICY_OF(w)->sets_valued >> (number & (PACER_SETS_MAX - 1)) & 1))
		return pacer_walk_in_set(w, number);
	found = pacer_walk_in_values(w, number);
	in = (int)found;
	if (in & PACER_SET_UNKNOWN)
		return in;
	if (asks & PACER_ASKS_SRC)
		src = pacer_walk_given(w, number, PACER_WORD_SADDR, found >> 32);
	if (asks & PACER_ASKS_DST)
		dst = pacer_walk_given(w, number, PACER_WORD_DADDR, found >> 32);
	if (src == PACER_SET_UNREADABLE || dst == PACER_SET_UNREADABLE)
		return PACER_SET_UNKNOWN;
	value = pacer_value_given(src, in >> 8 & 255);
	in = (in & ~(255 << 8)) | value << 8 | (value ? PACER_SRC_IN : 0);
	value = pacer_value_given(dst, in >> 16 & 255);
	return (in & ~(255 << 16)) | value << 16 | (value ? PACER_DST_IN : 0);
}

/*
 * The word of the value of the packet's source, or destination, in a set, that a key has:
 * pacer_rule.value says which. 0: it cannot be known.
 */
PACER_GLOBAL __u32 pacer_walk_word(const struct pacer_walk *w, __u32 which)
{
	__u32 number = (which - 1) & (PACER_SETS_MAX - 1);
	__u32 word = which & PACER_VALUE_DST ? PACER_WORD_DADDR : PACER_WORD_SADDR;
	PACER_SET *set;
	__u64 given;
	int value;

	if (!w)
		return 0;
	set = PACER_SET_OF(w, number);
	if (!set)
		return 0;
	given = pacer_walk_given(w, number, word, pacer_set_serial(set));
	if (given == PACER_SET_UNREADABLE)
		return 0;
	if ((__u32)(given >> 16))
		return given >> 16;
	value = pacer_walk_address_in(set, w, word);
	return value < 0 ? 0 : pacer_set_word(set, value);
}

PACER_INLINE void pacer_walk_count_set(const struct pacer_walk *w, __u32 number)
{
	__u32 counter = PACER_POLICY_OF(w)->set_counter[number & (PACER_SETS_MAX - 1)];
	struct pacer_set_count *count = PACER_SET_COUNT_AT(w, counter & (PACER_SET_COUNTERS - 1));

	if (!count)
		return;
	count->packets++;
	count->bytes += w->pkt.len_bytes;
}

/* What a value of an address says of the rules, by word; NULL: nothing. */
PACER_INLINE const struct pacer_set_use *pacer_value_use(const struct pacer_policy *policy,
							 __u32 set, __u32 value)
{
	set &= PACER_SETS_MAX - 1;
	return value && value <= policy->n_values[set]
		   ? policy->set_value[(policy->first_value[set] + value - 1) &
				       (PACER_SET_VALUES_MAX - 1)]
		   : 0;
}

/* Does the allow-list have the source, by the set or its value? */
PACER_INLINE int pacer_set_allows(const struct pacer_policy *policy, __u32 number, __u32 in)
{
	__u32 value = in >> 8 & 255;

	number &= PACER_SETS_MAX - 1;
	if (!(in & PACER_SRC_IN))
		return 0;
	if (policy->allow_sets >> number & 1)
		return 1;
	return value && value <= policy->n_values[number] &&
	       policy->allow_values >> ((policy->first_value[number] + value - 1) & 63) & 1;
}

/* Adds to what the sets say of so many words of the source, what `use` says of it. */
PACER_INLINE void pacer_heed_src(struct pacer_set_use *by_sets, const struct pacer_set_use *use,
				 __u32 words)
{
	__u32 i;

	for (i = 0; i < words; i++) {
		by_sets[i].src_in |= use[i].src_in;
		by_sets[i].src_not |= use[i].src_not;
	}
}

PACER_INLINE void pacer_heed_dst(struct pacer_set_use *by_sets, const struct pacer_set_use *use,
				 __u32 words)
{
	__u32 i;

	for (i = 0; i < words; i++) {
		by_sets[i].dst_in |= use[i].dst_in;
		by_sets[i].dst_not |= use[i].dst_not;
	}
}

/*
 * What a set says of the rules of so many words, where `in` is what pacer_walk_in has said. Of
 * a set that cannot be read it counts as in it for rules that want that, and as not in it for rules
 * that do not: nothing slips past a rule. But a rule that passes does not match then. 1: the
 * allow-list has the source.
 */
PACER_INLINE int pacer_set_heed(const struct pacer_policy *policy, __u32 number, __u32 in,
				struct pacer_set_use *by_sets, __u32 words)
{
	const struct pacer_set_use *use, *src, *dst;

	number &= PACER_SETS_MAX - 1;
	if (in & PACER_SET_UNKNOWN) {
		use = policy->set_unknown[number];
		pacer_heed_src(by_sets, use, words);
		pacer_heed_dst(by_sets, use, words);
		return 0;
	}
	use = policy->set[number];
	src = pacer_value_use(policy, number, in >> 8 & 255);
	dst = pacer_value_use(policy, number, in >> 16 & 255);
	if (in & PACER_SRC_IN)
		pacer_heed_src(by_sets, use, words);
	if (in & PACER_DST_IN)
		pacer_heed_dst(by_sets, use, words);
	if (src)
		pacer_heed_src(by_sets, src, words);
	if (dst)
		pacer_heed_dst(by_sets, dst, words);
	return pacer_set_allows(policy, number, in);
}

/* The same of a packet's policy. */
PACER_GLOBAL int pacer_walk_heed(const struct pacer_walk *w, __u32 number, __u32 in,
				 struct pacer_set_use *by_sets)
{
	return w && by_sets ? pacer_set_heed(PACER_POLICY_OF(w), number, in, by_sets, 1) : 0;
}

/* And of many rules. */
PACER_GLOBAL int pacer_walk_heed_many(const struct pacer_walk *w, __u32 number, __u32 in,
				      struct pacer_uses *uses)
{
	return w && uses
		   ? pacer_set_heed(PACER_POLICY_OF(w), number, in, uses->word, PACER_RULE_WORDS)
		   : 0;
}

/* What all of the packet's sets say, as pacer_walk_heed. */
PACER_INLINE int pacer_walk_sets(const struct pacer_walk *w, struct pacer_set_use *by_sets)
{
	__u32 i;

	PACER_ROLLED
	for (i = 0; i < PACER_SETS_MAX && i < PACER_POLICY_OF(w)->sets; i++) {
		__u32 in = pacer_walk_in(w, i);

		if (in & (PACER_SRC_IN | PACER_DST_IN))
			pacer_walk_count_set(w, i);
		if (in && pacer_walk_heed(w, i, in, by_sets))
			return 1;
	}
	return 0;
}

/* The first rule that the packet matches, PACER_RULES_MAX if none; by what its sets say. */
PACER_GLOBAL int pacer_walk_classify_by(const struct pacer_walk *w,
					const struct pacer_set_use *by_sets, __u64 among)
{
	__u64 rules = w && by_sets ? pacer_classify_with(PACER_POLICY_OF(w), &w->pkt, by_sets) : 0;

	rules &= among;
	return rules ? pacer_lowest(rules) : PACER_RULES_MAX;
}

/* In the place of a rule: none is looked for. */
#define PACER_RULE_ALLOWED (PACER_RULES_MAX + 1)

/* The same of a policy with sets, or PACER_RULE_ALLOWED. What is deepest here has little stack
 * left. */
PACER_GLOBAL int pacer_walk_classify_sets(const struct pacer_walk *w, __u64 among)
{
	struct pacer_set_use by_sets = {0, 0, 0, 0};

	if (!w)
		return PACER_RULES_MAX;
	return pacer_walk_sets(w, &by_sets) ? (int)PACER_RULE_ALLOWED
					    : pacer_walk_classify_by(w, &by_sets, among);
}

/* And of one without. */
PACER_GLOBAL int pacer_walk_classify(const struct pacer_walk *w, __u64 among)
{
	__u64 rules = w ? pacer_classify(PACER_POLICY_OF(w), &w->pkt) & among : 0;

	return rules ? pacer_lowest(rules) : PACER_RULES_MAX;
}

/* What all of the packet's sets say of many rules, as pacer_walk_sets. */
PACER_INLINE int pacer_walk_sets_many(const struct pacer_walk *w, struct pacer_uses *uses)
{
	__u32 i;

	*uses = (struct pacer_uses){{{0, 0, 0, 0}}};
	PACER_ROLLED
	for (i = 0; i < PACER_SETS_MAX && i < PACER_POLICY_OF(w)->sets; i++) {
		__u32 in = pacer_walk_in(w, i);

		if (in & (PACER_SRC_IN | PACER_DST_IN))
			pacer_walk_count_set(w, i);
		if (in && pacer_walk_heed_many(w, i, in, uses))
			return 1;
	}
	return 0;
}

/* The first rule of these that the packet matches, PACER_RULES_MAX if none; by what its sets say.
 */
PACER_GLOBAL int pacer_walk_classify_by_many(const struct pacer_walk *w,
					     const struct pacer_uses *uses,
					     const struct pacer_rules *among)
{
	struct pacer_rules set;

	if (!w || !uses || !among)
		return PACER_RULES_MAX;
	set = *among;
	pacer_classify_many(PACER_POLICY_OF(w), &w->pkt, uses, &set);
	return pacer_rules_lowest(&set);
}

/* As pacer_walk_classify_sets, of many rules. */
PACER_GLOBAL int pacer_walk_classify_sets_many(const struct pacer_walk *w,
					       const struct pacer_rules *among)
{
	struct pacer_scratch *scratch;

	if (!w || !among)
		return PACER_RULES_MAX;
	scratch = PACER_SCRATCH_OF(w);
	if (!scratch) /* there is always one */
		return PACER_RULES_MAX;
	return pacer_walk_sets_many(w, &scratch->uses)
		   ? (int)PACER_RULE_ALLOWED
		   : pacer_walk_classify_by_many(w, &scratch->uses, among);
}

/* As pacer_walk_classify. Frames that are not IP match all of these. */
PACER_GLOBAL int pacer_walk_classify_many(const struct pacer_walk *w,
					  const struct pacer_rules *among)
{
	struct pacer_rules set;

	if (!w || !among)
		return PACER_RULES_MAX;
	set = *among;
	if (w->pkt.family != PACER_FAMILY_NONE)
		pacer_classify_many(PACER_POLICY_OF(w), &w->pkt, 0, &set);
	return pacer_rules_lowest(&set);
}

/* Either. */
PACER_INLINE __u32 pacer_walk_rule_of_many(const struct pacer_walk *w,
					   const struct pacer_policy *policy,
					   const struct pacer_rules *among)
{
	if (policy->dims & PACER_DIMS_SETS && w->pkt.family != PACER_FAMILY_NONE)
		return pacer_walk_classify_sets_many(w, among);
	return pacer_walk_classify_many(w, among);
}

/* The same, where most policies spare the call; of one that asks for no more than the packet says.
 */
PACER_INLINE __u32 pacer_walk_rule_by_packet(const struct pacer_walk *w,
					     const struct pacer_policy *policy)
{
	if (policy->dims & PACER_DIMS_MANY)
		return pacer_walk_rule_of_many(w, policy, &policy->rules);
	if (policy->dims & PACER_DIMS_SETS)
		return pacer_walk_classify_sets(w, ~0ull);
	return policy->dims || !(policy->rules.word[0] & 1) ? pacer_walk_classify(w, ~0ull) : 0;
}

/*
 * The same of any. Whether its rule was looked for is the packet's to say: a trial that begins just
 * then may have the policy ask for more than it did when that was decided.
 */
PACER_INLINE __u32 pacer_walk_rule(const struct pacer_walk *w, const struct pacer_policy *policy)
{
	return w->pkt.sought ? w->pkt.found : pacer_walk_rule_by_packet(w, policy);
}

/* The same among these rules, where they were looked for in the frame. */
PACER_INLINE __u32 pacer_walk_rule_among(const struct pacer_walk *w,
					 const struct pacer_policy *policy, __u64 among)
{
	if (w->pkt.family == PACER_FAMILY_NONE)
		return among ? pacer_lowest(among) : PACER_RULES_MAX;
	if (policy->dims & PACER_DIMS_SETS)
		return pacer_walk_classify_sets(w, among);
	return pacer_walk_classify(w, among);
}

/* What becomes of a packet of no rule: an outcome. */
PACER_INLINE __u32 pacer_walk_no_rule(const struct pacer_walk *w)
{
	if (w->rule == PACER_RULE_ALLOWED)
		return PACER_ALLOWED;
	if (w->pkt.family == PACER_FAMILY_NONE)
		return PACER_NOT_IP;
	return PACER_POLICY_OF(w)->else_says == PACER_SAYS_DENY ? PACER_DENY_VERDICT
								: PACER_NO_RULE;
}

/*
 * Looks for the values that the limits of this rule, PACER_RULES_MAX if none, count the packet by:
 * w->value is filled. 1: one of them cannot be known, and no limit can judge the packet.
 */
PACER_INLINE int pacer_walk_values(struct pacer_walk *w, __u32 rule)
{
	__u32 i, which;

	if (rule >= PACER_RULES_MAX)
		return 0;
	PACER_ROLLED
	for (i = 0; i < 2; i++) {
		which = PACER_POLICY_OF(w)->rule[rule & (PACER_RULES_MAX - 1)].value[i];
		if (!which)
			continue;
		w->value[i] = pacer_walk_word(w, which);
		if (!w->value[i])
			return 1;
	}
	return 0;
}

/* Judge w->pkt by the rule that it falls under, w->rule, at w->now_ns. */
PACER_INLINE __u32 pacer_judge_rule(const struct pacer_walk *w)
{
	__u64 ban_ns = PACER_RULE_OF(w)->ban_ns;
	int banning = ban_ns || PACER_RULE_OF(w)->outside;
	__u32 outcome = banning ? pacer_walk_any_ban(w) : PACER_ADMIT, i, row = 0;
	if (outcome == PACER_ADMIT)
		outcome = pacer_limit(w);
	if (ban_ns && pacer_bans(pacer_outcome_reason(outcome))) {
		i = pacer_outcome_limiter(outcome);
		if (PACER_RULE_OF(w)->ban_grow)
			row = pacer_walk_row(w, i);
		outcome = pacer_outcome_with(outcome, pacer_walk_ban(w, i, row));
	}
	return pacer_outcome_under(outcome, w->rule);
}

/* Does a set of the allow-list have the source? For who needs to know before a rule is looked for.
 */
PACER_GLOBAL int pacer_walk_is_allowed(const struct pacer_walk *w)
{
	__u32 i;

	if (!w || !(PACER_POLICY_OF(w)->allow_sets || PACER_POLICY_OF(w)->allow_values))
		return 0;
	PACER_ROLLED
	for (i = 0; i < PACER_SETS_MAX && i < PACER_POLICY_OF(w)->sets; i++)
		if (pacer_set_allows(PACER_POLICY_OF(w), i, pacer_walk_in(w, i)))
			return 1;
	return 0;
}

/*
 * Is its source banned from outside, by hand or by another tool, and in no set of the allow-list? A
 * function apart, as verifiers would multiply its paths with those of the judgement.
 */
PACER_GLOBAL int pacer_walk_source_denied(const struct pacer_walk *w)
{
	int banned;

	if (!w || w->pkt.family == PACER_FAMILY_NONE)
		return 0;
	banned = pacer_walk_source_banned(w);
	if (!banned && PACER_POLICY_OF(w)->flags & PACER_TOOLS)
		banned = PACER_BANNED_BY_TOOL(w);
	return banned && !pacer_walk_is_allowed(w);
}

/*
 * Judge w->pkt, for which no rule was looked yet: a source that is banned from outside is denied
 * before, unless a set of the allow-list has it. w->rule is filled; it is PACER_RULES_MAX before.
 */
PACER_INLINE __u32 pacer_judge(struct pacer_walk *w)
{
	if (pacer_walk_source_denied(w))
		return PACER_DENY_BAN;
	w->rule = pacer_walk_rule(w, PACER_POLICY_OF(w));
	return w->rule < PACER_RULES_MAX ? pacer_judge_rule(w) : pacer_walk_no_rule(w);
}

/* --- when ----------------------------------------------------------------------------------- */

/* Until when a key of the packet is banned under its rule, by this secret; 0: none is. */
PACER_INLINE __u64 pacer_walk_until(const struct pacer_walk *w, __u32 secret)
{
	const struct pacer_rule *rule = PACER_RULE_OF(w);
	__u64 until_ns = 0;
	__u32 i;

	for (i = 0; i < rule->n_limiters && PACER_POLICY_OF(w)->bans.sets; i++) {
		struct pacer_ban_ask q = pacer_walk_ban_ask(w, &rule->limiter[i], secret);

		if (rule->limiter[i].key_id && pacer_ban_maybe(q.table, q.bans, q.hash, q.now_ns))
			until_ns = pacer_later(until_ns, pacer_ban_until(&q));
	}
	return until_ns;
}

PACER_INLINE __u64 pacer_walk_banned_until(const struct pacer_walk *w)
{
	const struct pacer_policy *p = PACER_POLICY_OF(w);
	const struct pacer_rule *rule = PACER_RULE_OF(w);

	if (!rule->ban_ns && !rule->outside)
		return 0;
	return pacer_later(pacer_walk_until(w, p->secret),
			   p->bans.moving ? pacer_walk_until(w, p->secret ^ 1) : 0);
}

/* A limit is later at most so often while it waits for the others: before it begins and after, say.
 */
#define PACER_WHEN_LATER 2

/*
 * The earliest time from from_ns on at which all limits of the packet's rule, w->rule, would admit
 * it, if nothing else came. Each is asked again at the time that another one says, until none is
 * later: it may deny by then what it admits now. As pacer_limit_when_from.
 */
PACER_INLINE __u64 pacer_limits_when(const struct pacer_walk *w, __u64 from_ns)
{
	const struct pacer_rule *rule = PACER_RULE_OF(w);
	__u64 opens_ns = rule->opens ? pacer_flow_ends(w, rule->id) : PACER_NEVER;
	__u64 when_ns = from_ns, was_ns;
	__u32 i, rounds = 0;

	do {
		was_ns = when_ns;
		for (i = 0; i < rule->n_limiters; i++)
			when_ns = pacer_later(when_ns,
					      pacer_limit_when_from(w, &rule->limiter[i],
								    pacer_later(when_ns, w->now_ns),
								    opens_ns));
	} while (when_ns != was_ns && rounds++ < PACER_WHEN_LATER * PACER_LIMITERS_MAX);
	return when_ns;
}

/*
 * The earliest time at which the packet would be admitted under its rule, w->rule, if nothing else
 * came: as its limits say, and its bans. As pacer_limit_when.
 */
PACER_INLINE __u64 pacer_rule_when(const struct pacer_walk *w)
{
	const struct pacer_rule *rule = PACER_RULE_OF(w);

	if (rule->says)
		return rule->says == PACER_SAYS_PASS ? w->now_ns : PACER_NEVER;
	return pacer_limits_when(w, pacer_walk_banned_until(w));
}

#endif
