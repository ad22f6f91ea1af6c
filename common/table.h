/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: finds the entry of a key by its hash. A packet asks a limit in three
 * steps: check (read only), reserve (lock and judge), and commit or cancel. If no
 * other limit has to judge the packet, it is all one step.
 *
 * Records (a window, with or without a gap) are in sets of two, side by side in
 * memory. A record has 16 bits of its key's hash as a tag. A key without a
 * record takes one of its set that is idle: nothing in it matters any more. If
 * neither is idle, the key shares a record with other keys of that kind. A
 * record that is taken begins with what the shared record holds. So a key that
 * was counted there brings its count along. Nobody buys a fresh allowance by
 * filling the table, and keys without a record do not disturb a key with one.
 *
 * Sketches (a gap alone) are recency.h's lines, selected by the hash.
 *
 * Concurrency: any number of CPUs. To put a key into a set, or to count it in
 * the shared record, a CPU holds the lock of the set's first record while it
 * looks for the key in both. So a key never has two records. Locks are taken
 * in one order: first record, second record, shared record, then those of the
 * next limit. After PACER_SPINS looks a CPU gives up, and the packet is denied
 * as contended.
 *
 * Two packets may be judged in another order than their clocks were read. A
 * key's own record makes up for that, since a time that runs backwards counts
 * as the latest seen. But another key may have taken the record meanwhile. So a
 * record is idle only PACER_IDLE_SLACK_NS after its state has ceased to matter
 * (the loader adds this time). G1 is exact if every packet is judged within
 * that time after its clock was read. Otherwise it is exact for a key that
 * keeps its record. A key that lost its record to another begins anew, and may
 * get its limit once more at each such jump back. (replay counts every frame at
 * the latest time seen, so there it is exact.)
 *
 * Error: beside the errors of recency.h and window.h, a key is denied wrongly
 * if it shares a record: with a key of its set that has the same tag (2^-16 for
 * a pair), or, while its set is full, with the others of its shared record. If
 * it then gets a record of its own, this lasts as long as what it brought
 * along. A gap in a record is prolonged by less than the unit of its last
 * admission, 2^last_shift ns. The loader keeps that to a sixteenth of the gap
 * at most.
 *
 * While the hash's secret changes, a rule has two limiters for one limit, which
 * may have the same lines. One begins under the new secret. The other goes on
 * under the old one until its memory has run out. To each limit, the other's
 * entries are those of other keys. Both count every packet that is admitted, so
 * no limit is passed. Meanwhile the table can be fuller by one entry for each
 * source. Both agree on when a record is idle. A packet locks for both, one
 * after the other. So two CPUs may wait for each other until one gives up after
 * PACER_SPINS looks. A key whose two places fall together cannot have both, and
 * is denied as contended until the old limit's end. That happens if both are new
 * in one set, want one shared record, or are in one line of a sketch. With n
 * sets it is 1/n to 2/n of the keys.
 *
 * Memory: 32 bytes for a narrow record (window.h), so a set is a cache line; 64
 * for a wide one, or 128 to 256 with more than 10 slots. The shared records
 * take half as much again.
 */
#ifndef PACER_TABLE_H
#define PACER_TABLE_H

#include "abi.h"
#include "lock.h"
#include "hash.h"
#include "recency.h"
#include "share.h"
#include "window.h"

#define PACER_IDLE_SLACK_NS 250000000u

/*
 * What one packet asks one limit. now_ns is not 0. The limiter's kind and units are here by value:
 * where a caller has compared them with constants, what is of another kind falls away.
 */
struct pacer_ask {
	struct pacer_table *table;
	const struct pacer_limiter *limiter;
	__u64 now_ns;
	struct pacer_hash hash;
	__u32 len_bytes; /* the packet's */
	__u32 kind, units;
	__u32 part; /* what counts in place of the limit's value; PACER_SHARE_WHOLE: that */
};

PACER_INLINE struct pacer_ask pacer_ask_of(struct pacer_table *table, const struct pacer_limiter *t,
					   __u64 now_ns, struct pacer_hash hash, __u32 len_bytes)
{
	return (struct pacer_ask){table,     t,	      now_ns,	hash,
				  len_bytes, t->kind, t->units, PACER_SHARE_WHOLE};
}

/* Are its entries narrow records? */
PACER_INLINE int pacer_ask_narrow(const struct pacer_ask *q)
{
	return q->units == PACER_NARROW_UNITS;
}

/*
 * Where a key's state was looked for. Once that is locked, the lock word. It is small, since
 * the stack has one for each limit of a rule.
 */
struct pacer_hold {
	__u32 index;
	union {
		__u32 home; /* of the key's hash, until it is locked */
		__u32 word; /* from then on */
	};
	__u32 mark; /* of the key's hash */
};

/* The key's hash, whose place counts until the state is locked. */
PACER_INLINE struct pacer_hash pacer_hold_hash(const struct pacer_hold *hold)
{
	return (struct pacer_hash){hold->home, hold->mark};
}

PACER_INLINE void pacer_hold_key(struct pacer_hold *hold, struct pacer_hash hash)
{
	hold->home = hash.home;
	hold->mark = hash.mark;
}

PACER_INLINE __u32 pacer_tag(struct pacer_hash hash)
{
	__u32 tag = hash.mark & 0xffff;

	return tag ? tag : 1;
}

/* The distance from one entry to the next, in units. Every index below is in units, too. */
PACER_INLINE __u32 pacer_stride(const struct pacer_limiter *t)
{
	return t->units;
}

/* Index of the first entry of the key's set. */
PACER_INLINE __u32 pacer_set_at(const struct pacer_limiter *t, __u32 units, struct pacer_hash hash)
{
	return t->base * PACER_LINE_UNITS + pacer_reduce(hash.home, t->sets) * 2 * units;
}

PACER_INLINE __u32 pacer_set_index(const struct pacer_limiter *t, struct pacer_hash hash)
{
	return pacer_set_at(t, t->units, hash);
}

/* The same for all keys of a set with the same tag, since they may come to count in one record. */
PACER_INLINE __u32 pacer_shared_at(const struct pacer_limiter *t, __u32 units,
				   struct pacer_hash hash)
{
	__u32 of = pacer_tag(hash) << 16 | (pacer_reduce(hash.home, t->sets) & 0xffff);

	/* The multiplication moves similar tags far apart. */
	return t->base * PACER_LINE_UNITS +
	       (2 * t->sets + pacer_reduce(of * PACER_HASH_ODD, t->shared)) * units;
}

PACER_INLINE __u32 pacer_shared_index(const struct pacer_limiter *t, struct pacer_hash hash)
{
	return pacer_shared_at(t, t->units, hash);
}

/* The beginning of the entry at `index`; 0: none. */
PACER_INLINE struct pacer_entry *pacer_entry_at(struct pacer_table *table, __u32 index)
{
	struct pacer_line *line = PACER_LINE_AT(table, index / PACER_LINE_UNITS);

	(void)table; /* where the host knows it by itself */
	return line ? &line->unit[index & (PACER_LINE_UNITS - 1)].entry : 0;
}

/* Does the table hold all lines of the record at r->index, whose first is r->line (0: none)? */
PACER_INLINE PACER_MUST_USE int pacer_ring_whole(const struct pacer_limiter *t,
						 const struct pacer_ring *r)
{
	if (!r->line || r->narrow || t->units <= PACER_LINE_UNITS)
		return r->line != 0;
	return PACER_LINE_AT(r->table, (r->index + t->units - 1) / PACER_LINE_UNITS) != 0;
}

/* The record at `index`; 0: its first line is not in the table. */
PACER_INLINE PACER_MUST_USE int pacer_ring_begin(struct pacer_table *table, int narrow, __u32 index,
						 struct pacer_ring *r)
{
	r->table = table;
	r->narrow = narrow;
	r->index = index;
	r->line = PACER_LINE_AT(table, index / PACER_LINE_UNITS);
	if (!r->line)
		return 0;
	r->head = &r->line->unit[index & (PACER_LINE_UNITS - 1)].entry;
	r->cells = pacer_line_unit(r->line, index + 1);
	return 1;
}

/* The same; 0: not all its lines are in the table. */
PACER_INLINE PACER_MUST_USE int pacer_ring_at(struct pacer_table *table,
					      const struct pacer_limiter *t, __u32 index,
					      struct pacer_ring *r)
{
	return pacer_ring_begin(table, t->units == PACER_NARROW_UNITS, index, r) &&
	       pacer_ring_whole(t, r);
}

PACER_INLINE int pacer_record_idle(const struct pacer_limiter *t, const struct pacer_entry *head,
				   __u64 now_ns)
{
	__u64 head_ns = pacer_load64(&head->head_ns);

	return !head_ns || (now_ns > head_ns && now_ns - head_ns >= t->idle_ns);
}

/*
 * What a judgement is based on, read in any order.
 *
 * Of a record: while head_ns and cum are the same, nothing has been counted since cum was read. For
 * within a slot cum only grows, by no more than the limit, and slots do not repeat. While `last`
 * is the same, so is the last admission. Of a rate: its TAT, in head_ns and `last`; it has
 * nothing else.
 */
struct pacer_seen {
	__u64 head_ns;
	__u64 now_ns; /* the packet's time, or the latest seen if that is later */
	__u32 last;
	__u32 running;
	__u32 passed; /* slots that the ring is behind now_ns */
	__u32 total;  /* in the window at now_ns */
};

/*
 * A refusal as one expression (record.h, rate.h): these bits of an entry's two words are compared
 * with those of a key of this tag, of the limit's generation.
 */
#define PACER_CLOSED_BITS ((3ull << 32) | 0xffff0000u | PACER_LOCK_HELD)

/* The key without a tag, for which bits 16 to 31 are. */
PACER_INLINE __u64 pacer_closed_of(const struct pacer_limiter *t)
{
	return pacer_limiter_kind_of(t) == PACER_LIMITER_RATE ? 0 : (t->generation + 1ull) << 32;
}

/* In their highest bits: does the gap or the window of an entry refuse the packet? Or its rate. */
struct pacer_closed {
	__u64 gap, window;
};

/* An entry as a reader found it. */
struct pacer_found {
	struct pacer_ring ring;
	__u32 word; /* the lock word as found; the reader holds no lock */
};

/*
 * Looks at `index`. 0: there is no line, and the word is 0: compilers may keep a word that nothing
 * was written to as whatever a register holds, and verifiers refuse to see a pointer cut to that.
 */
PACER_INLINE int pacer_record_look(const struct pacer_ask *q, __u32 index, struct pacer_found *f)
{
	f->word = 0;
	if (!pacer_ring_begin(q->table, pacer_ask_narrow(q), index, &f->ring))
		return 0;
	f->word = pacer_load(&f->ring.head->lock);
	return 1;
}

/* From the first entry of the key's set, which was looked at, to the second. 0: there is no line.
 */
PACER_INLINE int pacer_record_second(const struct pacer_ask *q, struct pacer_found *f)
{
	__u32 stride = q->units;

	if (stride >= PACER_LINE_UNITS)
		return pacer_record_look(q, f->ring.index + stride, f);
	if (!f->ring.line)
		return 0;
	f->ring.index += stride;
	f->ring.head = &pacer_line_unit(f->ring.line, f->ring.index)->entry;
	f->ring.cells = pacer_line_unit(f->ring.line, f->ring.index + 1);
	f->word = pacer_load(&f->ring.head->lock);
	return 1;
}

/*
 * Finds the key's record or the shared one, as far as a reader can tell; the first of its set was
 * looked at. Mostly it is that one. To look at both would touch another cache line for every key.
 */
PACER_INLINE void pacer_record_locate_on(const struct pacer_ask *q, struct pacer_found *f)
{
	__u32 tag = pacer_tag(q->hash);

	if ((f->ring.line && pacer_lock_tag(f->word) == tag) ||
	    (pacer_record_second(q, f) && pacer_lock_tag(f->word) == tag))
		return;
	pacer_record_look(q, pacer_shared_at(q->limiter, q->units, q->hash), f);
}

/* The same from the beginning. */
PACER_INLINE void pacer_record_locate(const struct pacer_ask *q, struct pacer_found *f)
{
	const struct pacer_limiter *t = q->limiter;

	if (!t->sets) {
		pacer_record_look(q, pacer_shared_at(t, q->units, q->hash), f);
		return;
	}
	(void)pacer_record_look(q, pacer_set_at(t, q->units, q->hash), f);
	pacer_record_locate_on(q, f);
}

/* Locks the shared record. If there are sets, the caller holds the set's first record. */
PACER_INLINE PACER_MUST_USE enum pacer_lock_result pacer_shared_take(const struct pacer_ask *q,
								     struct pacer_hold *hold)
{
	struct pacer_entry *head;

	hold->index = pacer_shared_at(q->limiter, q->units, q->hash);
	head = pacer_entry_at(q->table, hold->index);
	if (!head)
		return PACER_LOCK_OTHER;
	return pacer_lock_take(&head->lock, PACER_LOCK_ANY, &hold->word);
}

/*
 * Fills the locked record at hold->index with what the shared record holds, or with nothing if
 * that is idle. If another CPU still writes to the shared record for this key, it holds that
 * record: it locked it before it released the set.
 */
PACER_INLINE PACER_MUST_USE enum pacer_lock_result pacer_record_inherit(const struct pacer_ask *q,
									struct pacer_hold *hold)
{
	enum pacer_lock_result result;
	struct pacer_ring to, from;
	__u32 word = 0;

	if (!pacer_ring_at(q->table, q->limiter, hold->index, &to) ||
	    !pacer_ring_at(q->table, q->limiter, pacer_shared_at(q->limiter, q->units, q->hash),
			   &from))
		return PACER_LOCK_OTHER;
	pacer_store64(&to.head->head_ns, 0);
	pacer_store(&to.head->last, 0);
	if (!(pacer_acquire(&from.head->lock) & PACER_LOCK_HELD) &&
	    pacer_record_idle(q->limiter, from.head, q->now_ns))
		return PACER_LOCK_TAKEN;
	result = pacer_lock_take(&from.head->lock, PACER_LOCK_ANY, &word);
	if (result != PACER_LOCK_TAKEN)
		return result;
	pacer_store(&to.head->last, pacer_load(&from.head->last));
	if (q->units > 1) /* else that was all */
		pacer_ring_copy(&q->limiter->window, &to, &from);
	pacer_store64(&to.head->head_ns, pacer_load64(&from.head->head_ns));
	hold->word =
	    pacer_lock_set(hold->word, pacer_lock_tag(hold->word), pacer_lock_cursor(word));
	pacer_lock_cancel(&from.head->lock, word);
	return PACER_LOCK_TAKEN;
}

/* Gives the locked idle record to the key. Other CPUs see the tag before the lock is released. */
PACER_INLINE PACER_MUST_USE enum pacer_lock_result
pacer_record_adopt(const struct pacer_ask *q, struct pacer_entry *head, struct pacer_hold *hold)
{
	enum pacer_lock_result result;

	hold->word = pacer_lock_set(hold->word, pacer_tag(q->hash), 0);
	pacer_store(&head->lock, hold->word);
	result = pacer_record_inherit(q, hold);
	if (result != PACER_LOCK_TAKEN) {
		hold->word = pacer_lock_set(hold->word, 0, 0);
		pacer_lock_release(&head->lock, hold->word);
	}
	return result;
}

/*
 * The caller holds the first record of the set, and the second is not the key's. Takes the second
 * if it is idle.
 */
PACER_INLINE PACER_MUST_USE enum pacer_lock_result
pacer_second_adopt(const struct pacer_ask *q, struct pacer_entry *head, struct pacer_hold *hold)
{
	__u32 seen = pacer_load(&head->lock);

	if (seen & PACER_LOCK_HELD || !pacer_record_idle(q->limiter, head, q->now_ns) ||
	    pacer_cas(&head->lock, seen, seen | PACER_LOCK_HELD) != seen)
		return PACER_LOCK_OTHER;
	hold->word = seen | PACER_LOCK_HELD;
	if (!pacer_record_idle(q->limiter, head, q->now_ns)) {
		pacer_lock_cancel(&head->lock, hold->word);
		return PACER_LOCK_OTHER;
	}
	return pacer_record_adopt(q, head, hold);
}

/*
 * Finds the key in its set, or a record for it, or the shared record, and locks that. Meanwhile it
 * holds the set's first record.
 */
PACER_SUBPROG PACER_MUST_USE enum pacer_lock_result pacer_record_enter(const struct pacer_ask *q,
								       struct pacer_hold *hold)
{
	const struct pacer_limiter *t = q->limiter;
	__u32 index = pacer_set_at(t, q->units, q->hash), tag = pacer_tag(q->hash), word = 0;
	struct pacer_entry *first = pacer_entry_at(q->table, index), *second;
	enum pacer_lock_result result;

	if (!first)
		return PACER_LOCK_OTHER;
	result = pacer_lock_take(&first->lock, PACER_LOCK_ANY, &word);
	if (result != PACER_LOCK_TAKEN)
		return result;
	hold->index = index;
	hold->word = word;
	if (pacer_lock_tag(word) == tag)
		return PACER_LOCK_TAKEN;
	hold->index = index + q->units;
	second = pacer_entry_at(q->table, hold->index);
	if (!second) {
		pacer_lock_cancel(&first->lock, word);
		return PACER_LOCK_OTHER;
	}
	result = pacer_lock_take(&second->lock, tag, &hold->word);
	if (result == PACER_LOCK_OTHER) {
		if (pacer_record_idle(t, first, q->now_ns)) {
			hold->index = index;
			hold->word = word;
			return pacer_record_adopt(q, first, hold);
		}
		result = pacer_second_adopt(q, second, hold);
	}
	if (result == PACER_LOCK_OTHER)
		result = pacer_shared_take(q, hold);
	pacer_lock_cancel(&first->lock, word);
	return result;
}

PACER_INLINE PACER_MUST_USE enum pacer_lock_result pacer_record_take(const struct pacer_ask *q,
								     struct pacer_hold *hold)
{
	const struct pacer_limiter *t = q->limiter;
	enum pacer_lock_result result;
	struct pacer_entry *head;

	if (!t->sets)
		return pacer_shared_take(q, hold);
	head = pacer_entry_at(q->table, hold->index);
	if (!head)
		return PACER_LOCK_OTHER;
	result = pacer_lock_take(&head->lock, pacer_tag(q->hash), &hold->word);
	return result == PACER_LOCK_OTHER ? pacer_record_enter(q, hold) : result;
}

#endif
