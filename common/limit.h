/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: what a limit does with a packet, whatever its kind: check (read only),
 * reserve (lock the key's state and judge), and commit or cancel. Each step is one
 * switch over the kinds: a kind that is missing in one does not compile. Limits
 * whose state is an entry of the table can also do all of it in one pass, where no
 * other limit has a say.
 *
 * A throttle has no lock to hold between reserving and committing: it takes the
 * use at once, and cancelling hands it back.
 *
 * Concurrency: any number of CPUs; table.h says how locks are taken. A reader's
 * finding is a ground to deny. To admit, it is compared again under the lock.
 *
 * Error: that of the limiters and of table.h. Memory: none of its own.
 */
#ifndef PACER_LIMIT_H
#define PACER_LIMIT_H

#include "abi.h"
#include "gap.h"
#include "key.h"
#include "outcome.h"
#include "rate.h"
#include "record.h"
#include "rules.h"
#include "share.h"
#include "table.h"
#include "throttle.h"

/* --- entries of the table, whatever they hold ------------------------------------------------ */

/*
 * Does the entry, whose lock word is given, admit the packet? Nothing is changed. *seen is whole
 * where it does.
 */
PACER_INLINE enum pacer_reason pacer_entry_judge(const struct pacer_ask *q,
						 const struct pacer_ring *r, __u32 word,
						 struct pacer_seen *seen)
{
	switch ((enum pacer_limiter_kind)q->kind) {
	case PACER_LIMITER_WINDOW:
		return pacer_record_judge(q, r, word, seen);
	case PACER_LIMITER_RATE:
		return pacer_rate_judge(q, r, seen);
	case PACER_LIMITER_GAP:
		*seen = (struct pacer_seen){0};
		return pacer_sketch_judge(q, r->line);
	case PACER_LIMITER_NONE:
	case PACER_LIMITER_THROTTLE:
		break;
	}
	return PACER_DENY_NO_STATE;
}

/* Under the lock: does the entry still hold what the judgement rests on? */
PACER_INLINE int pacer_entry_same(const struct pacer_ask *q, const struct pacer_ring *r,
				  const struct pacer_seen *seen)
{
	switch ((enum pacer_limiter_kind)q->kind) {
	case PACER_LIMITER_WINDOW:
		return pacer_record_same(r, seen);
	case PACER_LIMITER_RATE:
		return pacer_rate_same(r, seen);
	case PACER_LIMITER_NONE:
	case PACER_LIMITER_GAP:
	case PACER_LIMITER_THROTTLE:
		break;
	}
	return 0;
}

/* Count the packet, as judged. Returns the lock word to release with. By the holder. */
PACER_INLINE PACER_MUST_USE __u32 pacer_entry_admit(const struct pacer_ask *q,
						    const struct pacer_ring *r,
						    const struct pacer_seen *seen, __u32 word)
{
	switch ((enum pacer_limiter_kind)q->kind) {
	case PACER_LIMITER_WINDOW:
		return pacer_record_admit(q, r, seen, word);
	case PACER_LIMITER_RATE:
		pacer_rate_admit(q, r, seen);
		break;
	case PACER_LIMITER_GAP:
		pacer_recency_raise(r->line, pacer_sketch_mark(q), q->limiter->rows, q->now_ns);
		break;
	case PACER_LIMITER_NONE:
	case PACER_LIMITER_THROTTLE:
		break;
	}
	return word;
}

/* A reader's judgement of the entry found: a reason, or PACER_UNDECIDED where the entry is just
 * being changed.
 */
PACER_INLINE PACER_MUST_USE __u32 pacer_entry_read(const struct pacer_ask *q,
						   const struct pacer_found *f,
						   struct pacer_seen *seen)
{
	enum pacer_reason reason;

	if (!pacer_ring_whole(q->limiter, &f->ring))
		return PACER_DENY_NO_STATE;
	PACER_BARRIER();
	reason = pacer_entry_judge(q, &f->ring, f->word, seen);
	PACER_BARRIER();
	if (f->word & PACER_LOCK_HELD)
		return PACER_UNDECIDED;
	if (reason != PACER_ADMIT && pacer_load(&f->ring.head->lock) != f->word)
		return PACER_UNDECIDED;
	return reason;
}

/*
 * Would the entry admit the packet? Read only; ADMIT is provisional, a denial is not. hold->index
 * is where it looked, which pacer_entry_reserve begins with.
 */
PACER_INLINE enum pacer_reason pacer_entry_check(const struct pacer_ask *q, struct pacer_hold *hold)
{
	struct pacer_found f;
	struct pacer_seen seen;
	__u32 outcome;

	if (q->kind == PACER_LIMITER_GAP)
		return pacer_sketch_check(q, hold);
	pacer_record_locate(q, &f);
	hold->index = f.ring.index;
	outcome = pacer_entry_read(q, &f, &seen);
	return outcome == PACER_UNDECIDED ? PACER_ADMIT : pacer_outcome_reason(outcome);
}

/*
 * Count a packet that pacer_entry_read has admitted, in the key's entry, if that is still what was
 * read. The lock word alone would not tell: it is the same again after 512 changes. PACER_ADMIT,
 * or PACER_UNDECIDED with nothing done; nothing is held.
 */
PACER_INLINE PACER_MUST_USE __u32 pacer_entry_commit_seen(const struct pacer_ask *q,
							  const struct pacer_found *f,
							  const struct pacer_seen *seen)
{
	__u32 *lock = &f->ring.head->lock;

	if (pacer_cas(lock, f->word, f->word | PACER_LOCK_HELD) != f->word)
		return PACER_UNDECIDED;
	if (!pacer_entry_same(q, &f->ring, seen)) {
		pacer_lock_cancel(lock, f->word);
		return PACER_UNDECIDED;
	}
	pacer_lock_release(lock, pacer_entry_admit(q, &f->ring, seen, f->word));
	return PACER_ADMIT;
}

/*
 * All steps in one, for a packet that no other limit has to judge, where the key has an entry that
 * nobody else is changing: read, lock what was read, and count. Returns a reason, with nothing
 * held, or PACER_UNDECIDED with nothing done: then the steps have to be taken.
 */
PACER_INLINE PACER_MUST_USE __u32 pacer_entry_pass(const struct pacer_ask *q)
{
	struct pacer_seen seen = {0};
	struct pacer_found f;
	__u32 outcome;

	pacer_record_locate(q, &f);
	outcome = pacer_entry_read(q, &f, &seen);
	if (outcome != PACER_ADMIT)
		return outcome;
	if (q->limiter->sets && pacer_lock_tag(f.word) != pacer_tag(q->hash))
		return PACER_UNDECIDED; /* it has none yet */
	return pacer_entry_commit_seen(q, &f, &seen);
}

/* The same of a gap alone, in the line of its sketch. */
PACER_INLINE PACER_MUST_USE __u32 pacer_sketch_pass(const struct pacer_ask *q,
						    struct pacer_line *line)
{
	enum pacer_reason reason;
	__u32 word = 0;

	if (pacer_lock_try(&line->lock, PACER_LOCK_ANY, &word) != PACER_LOCK_TAKEN)
		return PACER_UNDECIDED;
	reason = pacer_sketch_judge(q, line);
	if (reason != PACER_ADMIT) {
		pacer_lock_cancel(&line->lock, word);
		return reason;
	}
	pacer_recency_raise(line, pacer_sketch_mark(q), q->limiter->rows, q->now_ns);
	pacer_lock_release(&line->lock, word);
	return PACER_ADMIT;
}

/* Lock the key's entry. TAKEN: hold->index and hold->word are its. */
PACER_INLINE enum pacer_lock_result pacer_entry_take(const struct pacer_ask *q,
						     struct pacer_hold *hold)
{
	struct pacer_entry *head;

	if (q->kind != PACER_LIMITER_GAP)
		return pacer_record_take(q, hold);
	head = pacer_entry_at(q->table, hold->index);
	return head ? pacer_lock_take(&head->lock, PACER_LOCK_ANY, &hold->word) : PACER_LOCK_OTHER;
}

/*
 * Judge by the entry that was taken, or not, as `result` says. ADMIT: the lock is held and has to
 * be committed or cancelled. Otherwise nothing is held.
 */
PACER_INLINE enum pacer_reason pacer_entry_judge_taken(const struct pacer_ask *q,
						       struct pacer_hold *hold,
						       enum pacer_lock_result result)
{
	enum pacer_reason reason;
	struct pacer_seen seen;
	struct pacer_ring r;

	if (result != PACER_LOCK_TAKEN)
		return result == PACER_LOCK_BUSY ? PACER_DENY_CONTENDED : PACER_DENY_NO_STATE;
	if (!pacer_ring_begin(q->table, pacer_ask_narrow(q), hold->index, &r))
		return PACER_DENY_NO_STATE; /* then there is no lock to be held */
	if (!pacer_ring_whole(q->limiter, &r)) {
		pacer_lock_cancel(&r.head->lock, hold->word);
		return PACER_DENY_NO_STATE;
	}
	reason = q->part ? pacer_entry_judge(q, &r, hold->word, &seen) : PACER_DENY_SHARE;
	if (reason != PACER_ADMIT)
		pacer_lock_cancel(&r.head->lock, hold->word);
	return reason;
}

/* Both: lock the key's entry and judge. */
PACER_INLINE enum pacer_reason pacer_entry_reserve(const struct pacer_ask *q,
						   struct pacer_hold *hold)
{
	return pacer_entry_judge_taken(q, hold, pacer_entry_take(q, hold));
}

/* Count the packet in the entry that is held, and let go of it. */
PACER_INLINE void pacer_entry_commit(const struct pacer_ask *q, const struct pacer_hold *hold)
{
	struct pacer_seen seen = {0};
	struct pacer_ring r;

	if (!pacer_ring_at(q->table, q->limiter, hold->index, &r))
		return;
	(void)pacer_entry_judge(q, &r, hold->word, &seen);
	pacer_lock_release(&r.head->lock, pacer_entry_admit(q, &r, &seen, hold->word));
}

/* Let go of the entry that is held, uncounted. */
PACER_INLINE void pacer_entry_cancel(const struct pacer_ask *q, const struct pacer_hold *hold)
{
	struct pacer_entry *head = pacer_entry_at(q->table, hold->index);

	if (head)
		pacer_lock_cancel(&head->lock, hold->word);
}

/* --- limits of every kind -------------------------------------------------------------------- */

/* Where the keys of all limits of a rule were looked for; and a bit for each limit. */
struct pacer_holds {
	struct pacer_hold at[PACER_LIMITERS_MAX];
	struct pacer_seen seen[PACER_LIMITERS_MAX]; /* of those in quick: what was judged */
	__u32 quick; /* its state is an entry of the table that the key has, as was read */
};

/* Of the packet that is looked at, by one CPU: the stack has no room for it. */
struct pacer_scratch {
	struct pacer_uses uses;
	struct pacer_rules inner; /* rules for what is in its tunnel */
	struct pacer_holds holds;
};

/* What a packet is judged by. A host that keeps these elsewhere defines the two macros below. */
struct pacer_state {
	struct pacer_table table;
	const struct pacer_policy *policy;
	const __u64 *secret; /* PACER_SECRETS of them, and of a second, if limits have it */
	struct pacer_throttle_state *throttle; /* PACER_THROTTLES of them */
	struct pacer_throttle_lease *lease;    /* as many, this CPU's */
	struct pacer_counters *counters; /* PACER_COUNTERS_MAX of them; NULL: nothing is counted */
	struct pacer_sampler *sampler;	 /* NULL: nothing is sampled */
	struct pacer_heads *heads;	 /* NULL: no heads are kept */
	struct pacer_log *log;		 /* NULL: no bans are noted */
	const struct pacer_set *set;	 /* PACER_SETS_MAX of them; NULL: none */
	const struct pacer_set *hand;	 /* as many, added by hand, or of no line; NULL: none */
	struct pacer_set_count *set_count; /* PACER_SET_COUNTERS of them; NULL: not counted */
	const struct pacer_share *share; /* PACER_SHARES of them; NULL: all of each limit is here */
	const struct pacer_lanes *lanes; /* as many; NULL: no key has a share of its own */
	struct pacer_scratch scratch;	 /* of the packet that is looked at */
};

/* A host that keeps all of that elsewhere has no such word. */
#ifndef PACER_WALK_STATE
#define PACER_WALK_STATE struct pacer_state *state;
#endif

/* A packet on its way through the limits of its rule. The caller fills all but `rule`. */
struct pacer_walk {
	PACER_WALK_STATE
	__u32 value[2]; /* those of its rule, if that has some; 0: none is known */
	__u64 now_ns;	/* not 0 */
	__u32 copy;	/* of the policy, where the host has two */
	__u32 rule;
	struct pacer_packet pkt;
};

#ifndef PACER_RULE_OF
#define PACER_POLICY_OF(walk)	       ((walk)->state->policy)
#define PACER_RULE_OF(walk)	       (&PACER_POLICY_OF(walk)->rule[(walk)->rule])
#define PACER_SECRET_AT(walk, which)   ((walk)->state->secret + ((which)&1) * PACER_SECRETS)
#define PACER_TABLE_OF(walk)	       (&(walk)->state->table)
#define PACER_THROTTLE_AT(walk, index) (&(walk)->state->throttle[(index) & (PACER_THROTTLES - 1)])
#define PACER_LEASE_AT(walk, index)    (&(walk)->state->lease[(index) & (PACER_THROTTLES - 1)])
#define PACER_SET_OF(walk, number) \
	((walk)->state->set ? &(walk)->state->set[(number) & (PACER_SETS_MAX - 1)] : 0)
#define PACER_SET_HAND_OF(walk, number) \
	((walk)->state->hand ? &(walk)->state->hand[(number) & (PACER_SETS_MAX - 1)] : 0)
#define PACER_SET_COUNT_AT(walk, number) \
	((walk)->state->set_count ? &(walk)->state->set_count[number] : 0)
#define PACER_SCRATCH_OF(walk) (&(walk)->state->scratch)
#define PACER_SHARE_AT(walk, number) \
	((walk)->state->share ? &(walk)->state->share[(number) & (PACER_SHARES - 1)] : 0)
#define PACER_LANES_AT(walk, number) \
	((walk)->state->lanes ? &(walk)->state->lanes[(number) & (PACER_SHARES - 1)] : 0)
#endif

/* Is the limit in force at now_ns, or draining and still needed? */
PACER_INLINE int pacer_limiter_asked(const struct pacer_limiter *t, __u64 now_ns)
{
	return t->kind != PACER_LIMITER_NONE && (!t->until_ns || now_ns < t->until_ns);
}

/* Is the limit asked of the packet? One of new flows is not of those that open none. */
PACER_INLINE int pacer_walk_asks(const struct pacer_walk *w, const struct pacer_limiter *t)
{
	__u32 known = w->pkt.key[PACER_WORD_META] / (PACER_META_KNOWN / PACER_LIMITER_NEW);

	return pacer_limiter_asked(t, w->now_ns) && !(t->kind & known & PACER_LIMITER_NEW);
}

/* Word i of the packet's key under any limit, as of IPv6; of IPv4 words 1 to 3 and 5 to 7 are 0. */
PACER_INLINE __u32 pacer_walk_key_word(const struct pacer_walk *w, const struct pacer_limiter *t,
				       __u32 i)
{
	__u32 end = (i >> 2) & 1; /* of words 0 and 4: whose address it is */
	__u32 mask = t->mask6[i];

	if (i == PACER_WORD_SADDR || i == PACER_WORD_DADDR) {
		if (t->value[end])
			return w->value[(t->value[end] - 1) & 1];
		if (w->pkt.family != PACER_FAMILY_6)
			mask = t->mask4[end];
	}
	return w->pkt.key[i] & mask;
}

/* Has the packet's key the words of an IPv4 key? */
PACER_INLINE int pacer_walk_key_is4(const struct pacer_walk *w, const struct pacer_limiter *t)
{
	return w->pkt.family != PACER_FAMILY_6 ||
	       (pacer_limiter_valued(t) && pacer_limiter_of_both(t));
}

/*
 * The hash of the packet's key under any limit, by one of the two secrets: home << 32 | mark. A
 * function that verifiers look at once, and with little stack: it sums up as it goes.
 */
PACER_GLOBAL __u64 pacer_walk_key_hash(const struct pacer_walk *w, const struct pacer_limiter *t,
				       __u32 secret)
{
	const __u64 *of;
	__u64 home, mark;
	__u32 i, n = PACER_KEY_WORDS, family = PACER_HASH_FAMILY6;

	if (!w || !t)
		return 0;
	if (pacer_walk_key_is4(w, t)) {
		n = 4;
		family = PACER_HASH_FAMILY4;
	}
	of = PACER_SECRET_AT(w, secret);
	home = of[family];
	mark = of[PACER_KEY_WORDS + 2 + family];
	PACER_ROLLED
	for (i = 0; i < PACER_KEY_WORDS && i < n; i++) {
		/* Of IPv4 words 0, 4, 8 and 9. */
		__u32 at = n == 4 ? (i < 2 ? 4 * i : i + 6) : i;
		__u32 word = pacer_walk_key_word(w, t, at < PACER_KEY_WORDS ? at : 0);

		home += of[i] * word;
		mark += of[PACER_KEY_WORDS + 2 + i] * word;
	}
	return (__u64)(pacer_hash_fold(home >> 32) * PACER_HASH_ODD) << 32 |
	       pacer_hash_fold(mark >> 32);
}

/* The same, where most limits spare the call. */
PACER_INLINE struct pacer_hash pacer_walk_hash(const struct pacer_walk *w,
					       const struct pacer_limiter *t, __u32 secret)
{
	__u64 both;

	if (!pacer_limiter_valued(t))
		return pacer_limiter_hash(t, &w->pkt, PACER_SECRET_AT(w, secret));
	both = pacer_walk_key_hash(w, t, secret);
	return (struct pacer_hash){both >> 32, (__u32)both};
}

PACER_INLINE struct pacer_ask pacer_walk_ask(const struct pacer_walk *w,
					     const struct pacer_limiter *t, struct pacer_hash hash)
{
	return pacer_ask_of(PACER_TABLE_OF(w), t, w->now_ns, hash, w->pkt.len_bytes);
}

/* 1 if they differ. Not by a branch: verifiers would go both ways for each word of each lane. */
PACER_INLINE __u32 pacer_words_differ(__u32 a, __u32 b)
{
	__u64 differs = a ^ b;

	differs = 0 - differs;
	__asm__("" : "+r"(differs)); /* it is no comparison to the compiler */
	return differs >> 63;
}

/* Which of the lanes is the key's: its bit of `used`; 0: none. With little stack. */
PACER_INLINE __u32 pacer_walk_lane(const struct pacer_walk *w, const struct pacer_limiter *t,
				   const struct pacer_lanes *lanes, __u32 used)
{
	__u32 i, k;

	PACER_ROLLED
	for (k = 0; k <= PACER_KEY_WORDS; k++) {
		__u32 word = k < PACER_KEY_WORDS	? pacer_walk_key_word(w, t, k)
			     : pacer_walk_key_is4(w, t) ? PACER_FAMILY_4
							: PACER_FAMILY_6;

		PACER_ROLLED
		for (i = 0; i < PACER_LANES; i++)
			used &= ~(pacer_words_differ(lanes->key[k][i], word) << i);
	}
	return used;
}

/*
 * The share that this host has now of a limit that a fleet divides: that of the packet's key, if it
 * has one of its own. 0: none. A function that verifiers look at once.
 */
PACER_GLOBAL __u32 pacer_walk_share(const struct pacer_walk *w, const struct pacer_limiter *t)
{
	const struct pacer_share *share;
	const struct pacer_lanes *lanes;
	__u32 used, i;
	__u64 word;

	PACER_ARGUMENT(w);
	if (!w || !t)
		return 0;
	share = PACER_SHARE_AT(w, t->share);
	lanes = PACER_LANES_AT(w, t->share);
	if (!share)
		return PACER_SHARE_WHOLE;
	used = lanes ? pacer_load(&lanes->used) : 0;
	if (used)
		used = pacer_walk_lane(w, t, lanes, used);
	word = pacer_load64(&share->word);
	PACER_ROLLED
	for (i = 0; used && i < PACER_LANES; i++)
		if (used >> i & 1)
			word = pacer_load64(&lanes->word[i]);
	return pacer_share_now(share, t->share_id, word, w->now_ns);
}

/*
 * PACER_SHARE_WHOLE of a limit that no fleet divides: its id is 0. Any other value of one that a
 * fleet does: the lower half of its id is not 0. It is read from there, since verifiers would go
 * all ways twice with a constant: it says no more to them than a share.
 */
PACER_INLINE __u32 pacer_limiter_whole(const struct pacer_limiter *t)
{
	return ~(__u32)t->share_id;
}

/* What counts in place of the limit's value: mostly that. */
PACER_INLINE __u32 pacer_walk_part(const struct pacer_walk *w, const struct pacer_limiter *t)
{
	return t->kind & PACER_LIMITER_FLEET ? pacer_walk_share(w, t) : pacer_limiter_whole(t);
}

PACER_INLINE struct pacer_ask pacer_walk_ask_part(const struct pacer_walk *w,
						  const struct pacer_limiter *t,
						  struct pacer_hash hash, __u32 part)
{
	struct pacer_ask q = pacer_walk_ask(w, t, hash);

	q.kind = pacer_limiter_kind_of(t);
	q.part = part;
	return q;
}

PACER_INLINE enum pacer_reason pacer_throttle_reason(enum pacer_throttle_result result)
{
	switch (result) {
	case PACER_THROTTLE_ADMIT:
		return PACER_ADMIT;
	case PACER_THROTTLE_BUSY:
		return PACER_DENY_CONTENDED;
	case PACER_THROTTLE_FULL:
	case PACER_THROTTLE_MANY:
		break;
	}
	return PACER_DENY_THROTTLE;
}

/* The uses of the throttle that count: a share may be of more. */
PACER_INLINE __u32 pacer_throttle_part(const struct pacer_limiter *t, __u32 part)
{
	return part < t->throttle.limit ? part : t->throttle.limit;
}

/* Would the throttle refuse? Its steps are functions apart, since the stack has to hold the deepest
 * of what one of them could call.
 */
PACER_SUBPROG enum pacer_reason pacer_walk_throttle_check(const struct pacer_walk *w,
							  const struct pacer_limiter *t, __u32 part)
{
	struct pacer_throttle_state *state = PACER_THROTTLE_AT(w, t->base);
	struct pacer_throttle_lease *lease = PACER_LEASE_AT(w, t->base);

	if (!state || !lease)
		return PACER_DENY_NO_STATE;
	return pacer_throttle_refuses_of(&t->throttle, pacer_throttle_part(t, part), state, lease,
					 w->now_ns)
		   ? PACER_DENY_THROTTLE
		   : PACER_ADMIT;
}

PACER_INLINE enum pacer_reason
pacer_walk_throttle_reserve(const struct pacer_walk *w, const struct pacer_limiter *t, __u32 part)
{
	struct pacer_throttle_state *state = PACER_THROTTLE_AT(w, t->base);
	struct pacer_throttle_lease *lease = PACER_LEASE_AT(w, t->base);

	if (!state || !lease)
		return PACER_DENY_NO_STATE;
	return pacer_throttle_reason(pacer_throttle_take_of(
	    &t->throttle, pacer_throttle_part(t, part), state, lease, w->now_ns, 1));
}

/* The share of a limit whose packets all have one key, as a throttle's have: of that are no lanes.
 */
PACER_INLINE __u32 pacer_share_alone(const struct pacer_walk *w, const struct pacer_limiter *t,
				     __u64 now_ns)
{
	const struct pacer_share *share = PACER_SHARE_AT(w, t->share);

	return share ? pacer_share_now(share, t->share_id, pacer_load64(&share->word), now_ns)
		     : PACER_SHARE_WHOLE;
}

/* Both: a reason, for the short way, which has no walk in the kernel. */
PACER_GLOBAL __u32 pacer_throttle_pass(const struct pacer_walk *w, const struct pacer_limiter *t,
				       __u64 now_ns)
{
	__u32 limit;
	struct pacer_throttle_state *state;
	struct pacer_throttle_lease *lease;

	PACER_ARGUMENT(w);
	if (!t)
		return PACER_DENY_NO_STATE;
	state = PACER_THROTTLE_AT(w, t->base);
	lease = PACER_LEASE_AT(w, t->base);
	if (!state || !lease)
		return PACER_DENY_NO_STATE;
	limit = t->throttle.limit;
	if (t->kind & PACER_LIMITER_FLEET) {
		limit = pacer_throttle_part(t, pacer_share_alone(w, t, now_ns));
		if (!limit)
			return PACER_DENY_SHARE;
	}
	if (pacer_throttle_refuses_of(&t->throttle, limit, state, lease, now_ns))
		return PACER_DENY_THROTTLE;
	return pacer_throttle_reason(
	    pacer_throttle_take_of(&t->throttle, limit, state, lease, now_ns, 1));
}

PACER_INLINE void pacer_walk_throttle_cancel(const struct pacer_walk *w,
					     const struct pacer_limiter *t)
{
	struct pacer_throttle_state *state = PACER_THROTTLE_AT(w, t->base);
	struct pacer_throttle_lease *lease = PACER_LEASE_AT(w, t->base);

	if (state && lease)
		pacer_throttle_undo(&t->throttle, state, lease);
}

/*
 * Would the limit, of this kind, admit the packet, if `part` counts in place of its value? plain: a
 * constant, 1 if its key has no values of sets.
 */
PACER_INLINE enum pacer_reason pacer_limit_check_as(const struct pacer_walk *w,
						    const struct pacer_limiter *t,
						    struct pacer_hold *hold, __u32 kind, __u32 part,
						    int plain)
{
	struct pacer_hash hash;
	struct pacer_ask q;

	switch ((enum pacer_limiter_kind)kind) {
	case PACER_LIMITER_GAP:
	case PACER_LIMITER_WINDOW:
	case PACER_LIMITER_RATE:
		hash = plain ? pacer_limiter_hash(t, &w->pkt, PACER_SECRET_AT(w, t->secret))
			     : pacer_walk_hash(w, t, t->secret);
		pacer_hold_key(hold, hash);
		q = pacer_walk_ask_part(w, t, hash, part);
		q.kind = kind;
		return pacer_entry_check(&q, hold);
	case PACER_LIMITER_THROTTLE:
		return pacer_walk_throttle_check(w, t, part);
	case PACER_LIMITER_NONE:
		break;
	}
	return PACER_DENY_NO_STATE;
}

/*
 * A limit is asked of a packet at each step or at none: its time may be put off between two steps.
 * hold->index says so. No entry has that index.
 */
#define PACER_HOLD_NOT_ASKED 0xffffffffu

_Static_assert(1ull * PACER_LINES_MAX * PACER_LINE_UNITS <= PACER_HOLD_NOT_ASKED,
	       "nor can it have");

/* Is the limit asked of the packet, as was found when its key was looked for? */
PACER_INLINE int pacer_hold_asked(const struct pacer_hold *hold)
{
	return hold->index != PACER_HOLD_NOT_ASKED;
}

/*
 * Would the limit admit the packet? Read only; ADMIT is provisional, a denial is not. Later steps
 * go by what the hold says of whether it is asked.
 */
PACER_INLINE enum pacer_reason pacer_limit_check(const struct pacer_walk *w,
						 const struct pacer_limiter *t,
						 struct pacer_hold *hold)
{
	__u32 part;

	if (!pacer_walk_asks(w, t)) {
		hold->index = PACER_HOLD_NOT_ASKED;
		return PACER_ADMIT;
	}
	part = pacer_walk_part(w, t);
	return part ? pacer_limit_check_as(w, t, hold, pacer_limiter_kind_of(t), part, 0)
		    : PACER_DENY_SHARE;
}

/* The same of one that no fleet divides, that asks all packets, and whose key has no values. */
PACER_INLINE enum pacer_reason pacer_limit_check_plain(const struct pacer_walk *w,
						       const struct pacer_limiter *t,
						       struct pacer_hold *hold)
{
	return pacer_limiter_asked(t, w->now_ns)
		   ? pacer_limit_check_as(w, t, hold, t->kind, PACER_SHARE_WHOLE, 1)
		   : PACER_ADMIT;
}

/* Where the packet's key is looked for first, if the limit is asked of it. */
PACER_INLINE struct pacer_hold pacer_limit_home(const struct pacer_walk *w,
						const struct pacer_limiter *t)
{
	struct pacer_hold hold = {0};
	struct pacer_hash hash;

	if (!pacer_walk_asks(w, t)) {
		hold.index = PACER_HOLD_NOT_ASKED;
		return hold;
	}
	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_GAP:
		hash = pacer_walk_hash(w, t, t->secret);
		pacer_hold_key(&hold, hash);
		hold.index = pacer_sketch_index(t, hash);
		break;
	case PACER_LIMITER_WINDOW:
	case PACER_LIMITER_RATE:
		hash = pacer_walk_hash(w, t, t->secret);
		pacer_hold_key(&hold, hash);
		hold.index = pacer_set_index(t, hash);
		break;
	case PACER_LIMITER_THROTTLE:
	case PACER_LIMITER_NONE:
		break;
	}
	return hold;
}

/* Lock the limit's state, if it has a lock. hold is as pacer_limit_check left it. */
PACER_INLINE enum pacer_lock_result
pacer_limit_take(const struct pacer_walk *w, const struct pacer_limiter *t, struct pacer_hold *hold)
{
	struct pacer_ask q;

	if (!pacer_hold_asked(hold) || pacer_limiter_kind_of(t) == PACER_LIMITER_THROTTLE)
		return PACER_LOCK_TAKEN;
	q = pacer_walk_ask(w, t, pacer_hold_hash(hold));
	q.kind = pacer_limiter_kind_of(t);
	return pacer_entry_take(&q, hold);
}

/*
 * Judge the packet for good, after pacer_limit_take, whose result is given. ADMIT: the limit's
 * state waits to be committed or cancelled.
 */
PACER_INLINE enum pacer_reason pacer_limit_judge_taken(const struct pacer_walk *w,
						       const struct pacer_limiter *t,
						       struct pacer_hold *hold,
						       enum pacer_lock_result taken)
{
	struct pacer_ask q;
	__u32 part;

	if (!pacer_hold_asked(hold))
		return PACER_ADMIT;
	part = pacer_walk_part(w, t);
	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_GAP:
	case PACER_LIMITER_WINDOW:
	case PACER_LIMITER_RATE:
		q = pacer_walk_ask_part(w, t, pacer_hold_hash(hold), part);
		return pacer_entry_judge_taken(&q, hold, taken);
	case PACER_LIMITER_THROTTLE:
		return part ? pacer_walk_throttle_reserve(w, t, part) : PACER_DENY_SHARE;
	case PACER_LIMITER_NONE:
		break;
	}
	return PACER_DENY_NO_STATE;
}

/* Count the packet that was reserved. */
PACER_INLINE void pacer_limit_commit(const struct pacer_walk *w, const struct pacer_limiter *t,
				     const struct pacer_hold *hold)
{
	struct pacer_ask q;
	__u32 part;

	if (!pacer_hold_asked(hold))
		return;
	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_GAP:
	case PACER_LIMITER_WINDOW:
	case PACER_LIMITER_RATE: /* the others count alike, whatever their share */
		part = (t->kind & ~PACER_LIMITER_NEW) == (PACER_LIMITER_RATE | PACER_LIMITER_FLEET)
			   ? pacer_walk_share(w, t)
			   : pacer_limiter_whole(t);
		q = pacer_walk_ask_part(w, t, pacer_hold_hash(hold), part);
		pacer_entry_commit(&q, hold);
		break;
	case PACER_LIMITER_THROTTLE: /* it was counted when it was reserved */
	case PACER_LIMITER_NONE:
		break;
	}
}

/* Undo the reservation. */
PACER_INLINE void pacer_limit_cancel(const struct pacer_walk *w, const struct pacer_limiter *t,
				     const struct pacer_hold *hold)
{
	struct pacer_ask q;

	if (!pacer_hold_asked(hold))
		return;
	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_GAP:
	case PACER_LIMITER_WINDOW:
	case PACER_LIMITER_RATE:
		q = pacer_walk_ask(w, t, pacer_hold_hash(hold));
		pacer_entry_cancel(&q, hold);
		break;
	case PACER_LIMITER_THROTTLE:
		pacer_walk_throttle_cancel(w, t);
		break;
	case PACER_LIMITER_NONE:
		break;
	}
}

/* --- when ------------------------------------------------------------------------------------ */

/* As pacer_limit_when_from, of a limit that is asked, by what it holds alone. */
PACER_INLINE __u64 pacer_limit_when_asked(const struct pacer_walk *w, const struct pacer_limiter *t,
					  __u64 from_ns)
{
	struct pacer_throttle_state *state;
	struct pacer_throttle_lease *lease;
	struct pacer_found f;
	struct pacer_ask q;
	__u32 part;

	part = pacer_walk_part(w, t);
	if (!part)
		return PACER_NEVER;
	q = pacer_walk_ask_part(w, t, pacer_walk_hash(w, t, t->secret), part);
	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_GAP:
		return pacer_sketch_when(&q);
	case PACER_LIMITER_WINDOW:
		pacer_record_locate(&q, &f);
		return pacer_ring_whole(t, &f.ring) ? pacer_record_when(&q, &f.ring, f.word)
						    : PACER_NEVER;
	case PACER_LIMITER_RATE:
		pacer_record_locate(&q, &f);
		return f.ring.line ? pacer_rate_when_fits(&t->rate, pacer_rate_read(&f.ring),
							  from_ns, pacer_rate_asked(&q))
				   : PACER_NEVER;
	case PACER_LIMITER_THROTTLE:
		state = PACER_THROTTLE_AT(w, t->base);
		lease = PACER_LEASE_AT(w, t->base);
		return state && lease
			   ? pacer_throttle_when_of(&t->throttle, pacer_throttle_part(t, part),
						    state, lease, from_ns)
			   : PACER_NEVER;
	case PACER_LIMITER_NONE:
		break;
	}
	return PACER_NEVER; /* of no kind that is known: it denies */
}

/*
 * The earliest time from from_ns on, which is not before w->now_ns, at which the limit would admit
 * the packet, if nothing else came. It is exact for every kind, but for uses that other CPUs hold
 * on lease, which may come back before. 0: at once; PACER_NEVER: at none. It may deny again after
 * that time: a rate that begins then, a throttle of which a lease ends, and a limit of new flows,
 * of a packet that opens none now, but does from opens_ns on (PACER_NEVER: never). Read only; the
 * share that a fleet's limit has is w->now_ns's. Next to writers what is read may be of two
 * moments. Not for the packet path.
 */
PACER_INLINE __u64 pacer_limit_when_from(const struct pacer_walk *w, const struct pacer_limiter *t,
					 __u64 from_ns, __u64 opens_ns)
{
	__u64 when_ns;

	if (!pacer_limiter_asked(t, w->now_ns))
		return 0;
	if (from_ns < opens_ns && !pacer_walk_asks(w, t))
		return 0;
	when_ns = pacer_limit_when_asked(w, t, from_ns);
	return t->until_ns && when_ns > t->until_ns ? t->until_ns : when_ns;
}

/* The same from w->now_ns on, of what is asked now. */
PACER_INLINE __u64 pacer_limit_when(const struct pacer_walk *w, const struct pacer_limiter *t)
{
	return pacer_limit_when_from(w, t, w->now_ns, PACER_NEVER);
}

#endif
