/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: a tier's state, from a key's hash to the record that holds it, and the
 * three steps in which a packet asks it: peek (read only), take (claim and
 * judge), and commit or cancel; or, where no other tier has a say, all in one.
 *
 * Records (a window, with or without a gap) stand in sets of two, beside each
 * other in memory, tagged with 16 bits of their key's hash. A key that has no
 * record takes one of its set that is idle: that holds nothing any more which
 * could matter. Where neither is idle the key shares a record with others like
 * it. A record that is taken begins with what the shared record holds, so that
 * a key which was counted there brings its count along: nobody buys a fresh
 * allowance by filling the table, and a key with a record is not disturbed by
 * those without.
 *
 * Sketches (a gap alone) are recency.h's lines, selected by the hash.
 *
 * Concurrency: any number of CPUs. Who puts a key into a set, or counts it in
 * the shared record, holds the claim of the set's first record while it looks
 * for the key in both; so a key never has two. Claims are taken in one order:
 * first record, second record, shared record, then the next tier's. Each is
 * given up after PACER_SPINS looks, and the packet denied as contended.
 *
 * The clocks of two packets may disagree: one that was read before the other may
 * be judged after it. A key's own record makes up for that (a time that runs
 * backwards counts as the latest seen), but another key may have taken the record
 * meanwhile. So a record is idle only PACER_IDLE_SLACK_NS after its state has
 * ceased to matter (the loader adds it): G1 is exact as long as no packet is
 * judged later than that after its clock was read. Beyond that it is exact for a
 * key that keeps its record; one whose record was taken by another meanwhile
 * begins anew, and may get its limit once more at each such jump back. (replay
 * counts every frame at the latest time seen, and so is exact on that.)
 *
 * Error: on top of recency.h's and window.h's, a key is denied wrongly where it
 * shares: with a key of its set that has the same tag (2^-16 a pair), or, while
 * its set is full, with the others of its shared record; and, when it then gets
 * a record of its own, for as long as what it brought along lasts. A gap in a
 * record is prolonged by less than the unit of its last admission, 2^last_shift
 * ns, which the loader keeps to a sixteenth of the gap at most.
 *
 * While the hash's secret is changed, a rule has two tiers of one limit, which may
 * have the same lines: one that begins under the new secret, and the one before,
 * until its memory has run out. To each, the other's entries are those of other
 * keys, and both count every packet that is admitted, so no limit is passed, and
 * a table can be fuller by as many entries as there are sources meanwhile. Both agree on when a
 * record is idle. A packet claims for both, one after the other, so two CPUs may
 * wait for each other, until one gives up after PACER_SPINS looks; and a key whose
 * two places fall together cannot have both, and is denied as contended until the
 * old tier's end: where both are new in one set, want one shared record, or are in
 * one line of a sketch. Of n sets these are 1/n to 2/n of the keys.
 *
 * Memory: 32 bytes a narrow record (window.h), so that a set is a cache line;
 * 64 a wide one (128 to 256 above 10 slots); half as much again for the shared.
 */
#ifndef PACER_TABLE_H
#define PACER_TABLE_H

#include "abi.h"
#include "claim.h"
#include "hash.h"
#include "recency.h"
#include "window.h"

#define PACER_IDLE_SLACK_NS 250000000u

/* One packet's question to one tier. now_ns is not 0. */
struct pacer_ask {
	struct pacer_table *table;
	const struct pacer_tier *tier;
	__u64 now_ns;
	struct pacer_hash hash;
	__u32 len_bytes; /* the packet's */
};

/*
 * Where a key's state was looked for, and, once it is claimed, its claim's word. Small, since a
 * rule has as many of them on the stack as it has limits.
 */
struct pacer_hold {
	__u32 index;
	union {
		__u32 place; /* of the key's hash, until it is claimed */
		__u32 word;  /* from then on */
	};
	__u32 mark; /* of the key's hash */
};

/* The key's hash, whose place counts until the state is claimed. */
PACER_INLINE struct pacer_hash pacer_hold_hash(const struct pacer_hold *hold)
{
	return (struct pacer_hash){hold->place, hold->mark};
}

PACER_INLINE void pacer_hold_key(struct pacer_hold *hold, struct pacer_hash hash)
{
	hold->place = hash.place;
	hold->mark = hash.mark;
}

PACER_INLINE __u32 pacer_tag(struct pacer_hash hash)
{
	__u32 tag = hash.mark & 0xffff;

	return tag ? tag : 1;
}

/* From one entry to the next, in units, as everything below that is called an index. */
PACER_INLINE __u32 pacer_stride(const struct pacer_tier *t)
{
	return t->units;
}

/* Index of the first entry of the key's set. */
PACER_INLINE __u32 pacer_set_index(const struct pacer_tier *t, struct pacer_hash hash)
{
	return t->base * PACER_LINE_UNITS + pacer_place(hash.place, t->sets) * 2 * pacer_stride(t);
}

/* One for all keys of a set that have the same tag: they may come to count in one record. */
PACER_INLINE __u32 pacer_shared_index(const struct pacer_tier *t, struct pacer_hash hash)
{
	__u32 of = pacer_tag(hash) << 16 | (pacer_place(hash.place, t->sets) & 0xffff);

	/* Multiplied, so that tags that differ in few bits are far apart. */
	return t->base * PACER_LINE_UNITS +
	       (2 * t->sets + pacer_place(of * PACER_HASH_ODD, t->shared)) * pacer_stride(t);
}

/* The beginning of the entry at `index`, 0 if there is none. */
PACER_INLINE struct pacer_entry *pacer_entry_at(struct pacer_table *table, __u32 index)
{
	struct pacer_line *line = PACER_LINE_AT(table, index / PACER_LINE_UNITS);

	(void)table; /* where the host knows it by itself */
	return line ? &line->unit[index & (PACER_LINE_UNITS - 1)].entry : 0;
}

/* Does the table hold all lines of the record at r->index, whose first is r->line (0: none)? */
PACER_INLINE PACER_MUST_USE int pacer_ring_whole(const struct pacer_tier *t,
						 const struct pacer_ring *r)
{
	if (!r->line || t->units <= PACER_LINE_UNITS)
		return r->line != 0;
	return PACER_LINE_AT(r->table, (r->index + t->units - 1) / PACER_LINE_UNITS) != 0;
}

/* The record at `index`; 0 where the table does not hold its first line. */
PACER_INLINE PACER_MUST_USE int pacer_ring_begin(struct pacer_table *table, __u32 index,
						 struct pacer_ring *r)
{
	r->table = table;
	r->index = index;
	r->line = PACER_LINE_AT(table, index / PACER_LINE_UNITS);
	if (!r->line)
		return 0;
	r->head = &r->line->unit[index & (PACER_LINE_UNITS - 1)].entry;
	return 1;
}

/* The same; 0 where the table does not hold all of its lines. */
PACER_INLINE PACER_MUST_USE int pacer_ring_at(struct pacer_table *table, const struct pacer_tier *t,
					      __u32 index, struct pacer_ring *r)
{
	return pacer_ring_begin(table, index, r) && pacer_ring_whole(t, r);
}

PACER_INLINE int pacer_record_idle(const struct pacer_tier *t, const struct pacer_entry *head,
				   __u64 now_ns)
{
	__u64 head_ns = pacer_load64(&head->head_ns);

	return !head_ns || (now_ns > head_ns && now_ns - head_ns >= t->idle_ns);
}

/*
 * What a judgement rests on, read in whatever order.
 *
 * Of a record: while head_ns and cum are the same, nothing has been counted since cum was read, as
 * within a slot cum only grows, by no more than the limit, and slots do not come twice. While
 * last_off is the same, the last admission is that of then.
 * Of a rate: its TAT, as head_ns and last_off, which is all that it has.
 */
struct pacer_seen {
	__u64 head_ns;
	__u64 now_ns; /* the packet's time, or the latest seen */
	__u32 last_off;
	__u32 cum;
	__u32 passed; /* slots that the ring is behind now_ns */
};

/* An entry as a reader finds it. */
struct pacer_found {
	struct pacer_ring ring;
	__u32 word; /* the claim's, as found: the reader holds nothing */
};

/* Look at `index`. 0: there is no line. */
PACER_INLINE int pacer_record_look(const struct pacer_ask *q, __u32 index, struct pacer_found *f)
{
	if (!pacer_ring_begin(q->table, index, &f->ring))
		return 0;
	f->word = pacer_load(&f->ring.head->claim);
	return 1;
}

/*
 * Where the key stands as far as a reader can tell: its record, or the shared one. A key that has a
 * record has the first of its set unless that was taken, so this one is looked at alone: the second
 * would be a line more in the cache for every key.
 */
PACER_INLINE void pacer_record_locate(const struct pacer_ask *q, struct pacer_found *f)
{
	const struct pacer_tier *t = q->tier;
	__u32 index = pacer_set_index(t, q->hash), tag = pacer_tag(q->hash);

	if (t->sets) {
		if (pacer_record_look(q, index, f) && pacer_claim_tag(f->word) == tag)
			return;
		index += pacer_stride(t);
		if (pacer_record_look(q, index, f) && pacer_claim_tag(f->word) == tag)
			return;
	}
	pacer_record_look(q, pacer_shared_index(t, q->hash), f);
}

/* Claim the shared record. The holder of the set's first record, if there are sets. */
PACER_INLINE PACER_MUST_USE enum pacer_claim_result pacer_shared_take(const struct pacer_ask *q,
								      struct pacer_hold *hold)
{
	struct pacer_entry *head;

	hold->index = pacer_shared_index(q->tier, q->hash);
	head = pacer_entry_at(q->table, hold->index);
	if (!head)
		return PACER_CLAIM_OTHER;
	return pacer_claim_take(&head->claim, PACER_CLAIM_ANY, &hold->word);
}

/*
 * Fill the claimed record at hold->index with what the shared record holds, or with nothing where
 * that is idle. A shared record that a CPU of this key still writes to is held: it was claimed
 * before that CPU let go of the set.
 */
PACER_INLINE PACER_MUST_USE enum pacer_claim_result pacer_record_inherit(const struct pacer_ask *q,
									 struct pacer_hold *hold)
{
	enum pacer_claim_result result;
	struct pacer_ring to, from;
	__u32 word = 0;

	if (!pacer_ring_at(q->table, q->tier, hold->index, &to) ||
	    !pacer_ring_at(q->table, q->tier, pacer_shared_index(q->tier, q->hash), &from))
		return PACER_CLAIM_OTHER;
	pacer_store64(&to.head->head_ns, 0);
	pacer_store(&to.head->last_off, 0);
	if (!(pacer_acquire(&from.head->claim) & PACER_CLAIM_HELD) &&
	    pacer_record_idle(q->tier, from.head, q->now_ns))
		return PACER_CLAIM_TAKEN;
	result = pacer_claim_take(&from.head->claim, PACER_CLAIM_ANY, &word);
	if (result != PACER_CLAIM_TAKEN)
		return result;
	pacer_store(&to.head->last_off, pacer_load(&from.head->last_off));
	if (pacer_stride(q->tier) > 1) /* else that was all */
		pacer_ring_copy(&q->tier->window, &to, &from);
	pacer_store64(&to.head->head_ns, pacer_load64(&from.head->head_ns));
	hold->word =
	    pacer_claim_set(hold->word, pacer_claim_tag(hold->word), pacer_claim_cursor(word));
	pacer_claim_cancel(&from.head->claim, word);
	return PACER_CLAIM_TAKEN;
}

/* Make the claimed line, an idle record, the key's: the tag is seen before the claim is let go. */
PACER_INLINE PACER_MUST_USE enum pacer_claim_result
pacer_record_adopt(const struct pacer_ask *q, struct pacer_entry *head, struct pacer_hold *hold)
{
	enum pacer_claim_result result;

	hold->word = pacer_claim_set(hold->word, pacer_tag(q->hash), 0);
	pacer_store(&head->claim, hold->word);
	result = pacer_record_inherit(q, hold);
	if (result != PACER_CLAIM_TAKEN) {
		hold->word = pacer_claim_set(hold->word, 0, 0);
		pacer_claim_release(&head->claim, hold->word);
	}
	return result;
}

/* The second record of a set whose first is held, found not to be the key's: take it if idle. */
PACER_INLINE PACER_MUST_USE enum pacer_claim_result
pacer_second_adopt(const struct pacer_ask *q, struct pacer_entry *head, struct pacer_hold *hold)
{
	__u32 seen = pacer_load(&head->claim);

	if (seen & PACER_CLAIM_HELD || !pacer_record_idle(q->tier, head, q->now_ns) ||
	    pacer_cas(&head->claim, seen, seen | PACER_CLAIM_HELD) != seen)
		return PACER_CLAIM_OTHER;
	hold->word = seen | PACER_CLAIM_HELD;
	if (!pacer_record_idle(q->tier, head, q->now_ns)) {
		pacer_claim_cancel(&head->claim, hold->word);
		return PACER_CLAIM_OTHER;
	}
	return pacer_record_adopt(q, head, hold);
}

/*
 * Find the key in its set, or a record for it, or the shared record, and claim that. The set's
 * first record is claimed meanwhile.
 */
PACER_SUBPROG PACER_MUST_USE enum pacer_claim_result pacer_record_enter(const struct pacer_ask *q,
									struct pacer_hold *hold)
{
	const struct pacer_tier *t = q->tier;
	__u32 index = pacer_set_index(t, q->hash), tag = pacer_tag(q->hash), word = 0;
	struct pacer_entry *first = pacer_entry_at(q->table, index), *second;
	enum pacer_claim_result result;

	if (!first)
		return PACER_CLAIM_OTHER;
	result = pacer_claim_take(&first->claim, PACER_CLAIM_ANY, &word);
	if (result != PACER_CLAIM_TAKEN)
		return result;
	hold->index = index;
	hold->word = word;
	if (pacer_claim_tag(word) == tag)
		return PACER_CLAIM_TAKEN;
	hold->index = index + pacer_stride(t);
	second = pacer_entry_at(q->table, hold->index);
	if (!second) {
		pacer_claim_cancel(&first->claim, word);
		return PACER_CLAIM_OTHER;
	}
	result = pacer_claim_take(&second->claim, tag, &hold->word);
	if (result == PACER_CLAIM_OTHER) {
		if (pacer_record_idle(t, first, q->now_ns)) {
			hold->index = index;
			hold->word = word;
			return pacer_record_adopt(q, first, hold);
		}
		result = pacer_second_adopt(q, second, hold);
	}
	if (result == PACER_CLAIM_OTHER)
		result = pacer_shared_take(q, hold);
	pacer_claim_cancel(&first->claim, word);
	return result;
}

PACER_INLINE PACER_MUST_USE enum pacer_claim_result pacer_record_take(const struct pacer_ask *q,
								      struct pacer_hold *hold)
{
	const struct pacer_tier *t = q->tier;
	enum pacer_claim_result result;
	struct pacer_entry *head;

	if (!t->sets)
		return pacer_shared_take(q, hold);
	head = pacer_entry_at(q->table, hold->index);
	if (!head)
		return PACER_CLAIM_OTHER;
	result = pacer_claim_take(&head->claim, pacer_tag(q->hash), &hold->word);
	return result == PACER_CLAIM_OTHER ? pacer_record_enter(q, hold) : result;
}

#endif
