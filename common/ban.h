/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: keys that are banned for a while, under a rule, because the rule denied
 * them or somebody said so, or as sources, under every rule and under none: an exact
 * table, and the TTL filter before it, which spares every key that was never banned
 * the look into the table.
 *
 * Source: "RecencySketch", the second use: cells hold expiry times; "expired" is
 * certain, "live" is a maybe that the table confirms (recency.h). The two cells
 * of a key lie in one line.
 *
 * An entry is a line with the whole key in it, so nobody is banned for
 * another's hash. A key has two sets of four lines, by both halves of its hash.
 * A ban is entered in the set that has more room, in the first line that is the
 * key's own or has run out. So hardly a key finds no room in a table that is
 * three fifths full; with one set, every sixteenth would. If all eight lines
 * hold bans that still run, the key is not banned, which is counted. Its limits
 * hold it as before. So a full table never bans a key that did not earn it, nor
 * forgets a ban.
 *
 * Most of the time nobody is banned. So before all of it stands one time, in a
 * line of its own: the end of the last ban, rounded up. After it no key is
 * banned, for certain, and a packet looks no further.
 *
 * Bans of a rule may grow. A line keeps the end of its ban, and the ban's number in
 * a row, until another ban is written there. A ban that begins within the rule's
 * ban_forget_ns of the end of the key's last one is the next in the row, and lasts
 * for the rule's first length times ban_grow once for each before it, at most for
 * ban_max_ns. Of the lines that have run out, that is taken whose ban ended first.
 * A line that is lost to another key, or whose ban was lifted, begins a new row: its
 * key's next ban is a short one, and nobody is admitted for it whom a limit denies.
 *
 * Concurrency: any number of CPUs. An entry is written under its line's lock;
 * readers take none (lock.h). That time and the filter are raised before the
 * entry is written, so whoever sees the entry can see it in them, too. A ban is
 * lifted from outside by setting its time to 0, with a compare-and-swap.
 *
 * A row is read before its entry is locked: two CPUs that ban a key at once count one
 * ban, and end it at the later of both times. One that finds the entry held takes
 * another, and there begins a row; what ends later says how the row goes on.
 *
 * Error: a ban may begin a packet late while another CPU enters it. A packet
 * may miss it at the moment when another CPU extends it. Two CPUs may enter a
 * key twice. It never bans a wrong key, nor longer than asked for plus the
 * clock's resolution. It does not ban shorter either if CPUs have different
 * clocks.
 *
 * Memory: 64 bytes for each entry, and 64 for each 8 cells of the filter; and a
 * line.
 */
#ifndef PACER_BAN_H
#define PACER_BAN_H

#include "abi.h"
#include "lock.h"
#include "hash.h"
#include "parse.h"
#include "recency.h"

/* Finds a line; 0: none. A host that stores lines in another way defines it itself. */
#ifndef PACER_LINE_AT
#define PACER_LINE_AT(table, index) pacer_line_at(table, index)
#endif

/* The most lines that a key's entry may be in. */
#define PACER_BAN_PLACES (2 * PACER_BAN_WAYS)
#define PACER_BAN_TRIES	 4 /* lines that are locked for a ban, at most */

/* A key under a rule. It identifies an entry. */
struct pacer_ban_key {
	__u32 rule;   /* pacer_rule.id; PACER_BAN_SOURCE: a source, whatever the rule */
	__u32 key_id; /* pacer_limiter.key_id and the family */
	__u32 word[PACER_KEY_WORDS];
};

/* The i-th word of an address, of which the first `len` bits count. */
PACER_INLINE __u32 pacer_ban_masked(const __u32 *addr, __u32 i, __u32 len)
{
	__u32 bits = len > 32 * i ? len - 32 * i : 0;

	return bits >= 32 ? addr[i] : bits ? addr[i] & ~0u << (32 - bits) : 0;
}

/* The first `len` bits of a source's address, as a ban has them that is of no rule. */
PACER_INLINE struct pacer_ban_key pacer_ban_source(__u32 family, const __u32 *saddr, __u32 len)
{
	struct pacer_ban_key key = {PACER_BAN_SOURCE, PACER_KEY_ID(0, len, 0, 0, 0), {0}};
	__u32 i;

	key.word[0] = pacer_ban_masked(saddr, 0, len);
	if (family == PACER_FAMILY_4)
		return key;
	key.key_id = PACER_KEY_ID(0, 0, len, 0, 0) | PACER_KEY_V6;
	for (i = 1; i < 4; i++)
		key.word[i] = pacer_ban_masked(saddr, i, len);
	return key;
}

/* As the key's limit hashes it. Words that are 0 add nothing: it does not matter how many it takes.
 */
PACER_INLINE struct pacer_hash pacer_ban_hash(const struct pacer_ban_key *key,
					      const __u64 secret[PACER_SECRETS])
{
	return key->key_id & PACER_KEY_V6
		   ? pacer_hash_words(secret, PACER_HASH_FAMILY6, key->word, PACER_KEY_WORDS)
		   : pacer_hash_words(secret, PACER_HASH_FAMILY4, key->word, 4);
}

/* A question about a key. now_ns is not 0. */
struct pacer_ban_ask {
	struct pacer_table *table;
	const struct pacer_bans *bans;
	__u64 now_ns;
	struct pacer_hash hash;
	struct pacer_ban_key key;
	__u32 note; /* of the ban: pacer_line.ban_note */
};

PACER_INLINE struct pacer_ttl_key pacer_ban_cells(struct pacer_hash hash)
{
	__u32 first = hash.mark & 7;

	return (struct pacer_ttl_key){first, first + 1 + ((hash.mark >> 3) & 3)};
}

PACER_INLINE struct pacer_line *
pacer_ban_filter(struct pacer_table *table, const struct pacer_bans *bans, struct pacer_hash hash)
{
	return PACER_LINE_AT(table, bans->filter + (hash.home & bans->filter_mask));
}

/* The end of the last ban is rounded up to this, less 1: so it is seldom written. */
#define PACER_BAN_STEP_NS (1ull << 27)

/* Where that end is. 0: there is no table. */
PACER_INLINE __u64 *pacer_ban_last(struct pacer_table *table, const struct pacer_bans *bans)
{
	struct pacer_line *line =
	    bans->sets ? PACER_LINE_AT(table, bans->filter + bans->filter_mask + 1) : 0;

	return line ? line->word64 : 0;
}

/* Is no key and no source banned at now_ns? 1 is certain. Read only. */
PACER_INLINE int pacer_ban_none(struct pacer_table *table, const struct pacer_bans *bans,
				__u64 now_ns)
{
	__u64 *last_ns = pacer_ban_last(table, bans);

	return !last_ns || pacer_load64(last_ns) <= now_ns;
}

/* May the key be banned? 0 is certain. */
PACER_INLINE int pacer_ban_maybe(struct pacer_table *table, const struct pacer_bans *bans,
				 struct pacer_hash hash, __u64 now_ns)
{
	struct pacer_line *line = pacer_ban_filter(table, bans, hash);

	return line && pacer_ttl_expiry_live(line->word64, 7, pacer_ban_cells(hash), now_ns);
}

/* The first line of one of the key's two sets. They may be the same. */
PACER_INLINE __u32 pacer_ban_set(const struct pacer_bans *bans, struct pacer_hash hash, __u32 which)
{
	__u32 place = which ? hash.mark * PACER_HASH_ODD : hash.home;

	return bans->base + pacer_reduce(place, bans->sets) * PACER_BAN_WAYS;
}

/* The lines where the key's entry may stand: PACER_BAN_WAYS from each of two on. */
struct pacer_ban_places {
	__u32 set[2];
	__u32 n; /* of lines: those of sets that are the same count once */
};

PACER_INLINE struct pacer_ban_places pacer_ban_places(const struct pacer_bans *bans,
						      struct pacer_hash hash)
{
	struct pacer_ban_places p = {{pacer_ban_set(bans, hash, 0), pacer_ban_set(bans, hash, 1)},
				     PACER_BAN_PLACES};

	if (p.set[0] == p.set[1])
		p.n = PACER_BAN_WAYS;
	return p;
}

PACER_INLINE __u32 pacer_ban_place(const struct pacer_ban_places *p, __u32 i)
{
	return (i < PACER_BAN_WAYS ? p->set[0] : p->set[1]) + (i & (PACER_BAN_WAYS - 1));
}

/* Opaque, since compilers make a branch of each word's comparison, and verifiers follow them all.
 */
PACER_INLINE int pacer_ban_is(const struct pacer_line *line, const struct pacer_ban_key *key)
{
	__u32 differs = (pacer_load(&line->ban_rule) ^ key->rule) |
			(pacer_load(&line->ban_key_id) ^ key->key_id);
	__u32 i;

	for (i = 0; i < PACER_KEY_WORDS; i++)
		differs |= pacer_load(&line->ban_key[i]) ^ key->word[i];
	return !pacer_opaque(differs);
}

/*
 * In ban_lock beside PACER_LOCK_HELD: a tool holds the entry, and no packet. Tools define
 * PACER_LOCK_MARK as this.
 */
#define PACER_BAN_BY_TOOL 0x10000u

PACER_INLINE int pacer_ban_runs(struct pacer_line *line, __u64 now_ns)
{
	if (PACER_FAULT(BAN_EVICTS))
		return 0;
	return pacer_load64(&line->ban_until_ns) > now_ns;
}

/*
 * Is the key banned by this entry? 0 also while it is being written. The holder of the lock raises
 * its sequence and sets the time to 0 before it changes the key. So a held entry that still has the
 * same time and sequence is whole. The time alone is not enough: the ban may have been lifted, and
 * another key may have got the entry until the same time.
 */
PACER_INLINE int pacer_ban_holds(struct pacer_line *line, const struct pacer_ban_ask *q)
{
	__u32 word = pacer_load(&line->ban_lock), after;
	__u64 until_ns;

	PACER_BARRIER();
	until_ns = pacer_load64(&line->ban_until_ns);
	if (until_ns <= q->now_ns || !pacer_ban_is(line, &q->key))
		return 0;
	if (PACER_FAULT(BAN_READ_ONCE))
		return 1;
	PACER_BARRIER();
	if (pacer_load64(&line->ban_until_ns) != until_ns)
		return 0;
	if (PACER_FAULT(BAN_READ_BY_TIME))
		return 1;
	PACER_BARRIER();
	after = pacer_load(&line->ban_lock);
	return !((word ^ after) & ~(PACER_LOCK_HELD | PACER_BAN_BY_TOOL));
}

/* Is the key banned, by the exact table? Read only. */
PACER_INLINE int pacer_ban_find(const struct pacer_ban_ask *q)
{
	struct pacer_ban_places at = pacer_ban_places(q->bans, q->hash);
	__u32 i;

	PACER_ROLLED
	for (i = 0; i < PACER_BAN_PLACES && i < at.n; i++) {
		struct pacer_line *line = PACER_LINE_AT(q->table, pacer_ban_place(&at, i));

		if (line && pacer_ban_holds(line, q))
			return 1;
	}
	return 0;
}

/* Until when the key is banned, by the exact table; 0: it is not. Read only. */
PACER_INLINE __u64 pacer_ban_until(const struct pacer_ban_ask *q)
{
	struct pacer_ban_places at = pacer_ban_places(q->bans, q->hash);
	__u64 until_ns = 0;
	__u32 i;

	PACER_ROLLED
	for (i = 0; i < PACER_BAN_PLACES && i < at.n; i++) {
		struct pacer_line *line = PACER_LINE_AT(q->table, pacer_ban_place(&at, i));

		if (line && pacer_ban_holds(line, q))
			until_ns = pacer_later(until_ns, pacer_load64(&line->ban_until_ns));
	}
	return until_ns;
}

/*
 * The same for who enters a ban. A function of its own, since the verifier then checks it once, and
 * not for each line of each set; a packet that asks for a ban is spared the call.
 */
PACER_GLOBAL int pacer_ban_own(const struct pacer_line *line, const struct pacer_ban_key *key)
{
	return line && key ? pacer_ban_is(line, key) : 0;
}

/* Writes the key into this entry, if the entry is the key's own or has run out. */
PACER_INLINE PACER_MUST_USE int pacer_ban_enter(struct pacer_line *line,
						const struct pacer_ban_ask *q, __u64 until_ns)
{
	__u32 word, note, i;
	int own;

	if (PACER_FAULT(BAN_UNLOCKED))
		word = pacer_load(&line->ban_lock);
	else if (pacer_lock_take(&line->ban_lock, PACER_LOCK_ANY, &word) != PACER_LOCK_TAKEN)
		return 0;
	own = pacer_ban_own(line, &q->key);
	if (!PACER_FAULT(BAN_JUDGED_ONCE) &&
	    pacer_ban_runs(line, q->now_ns)) { /* the key's own ban: the later end counts */
		if (own && q->note & PACER_BAN_OUTSIDE)
			pacer_store(&line->ban_note,
				    pacer_load(&line->ban_note) | PACER_BAN_OUTSIDE);
		if (own && pacer_load64(&line->ban_until_ns) < until_ns)
			pacer_store64(&line->ban_until_ns, until_ns);
		pacer_lock_cancel(&line->ban_lock, word);
		return own;
	}
	note = q->note;
	if (own && note == PACER_BAN_OUTSIDE && pacer_load64(&line->ban_until_ns))
		note |= pacer_load(&line->ban_note); /* its row goes on */
	word = pacer_lock_next(word);
	pacer_store(&line->ban_lock, word);
	pacer_store64(&line->ban_until_ns, 0);
	pacer_store(&line->ban_rule, q->key.rule);
	pacer_store(&line->ban_key_id, q->key.key_id);
	pacer_store(&line->ban_note, note);
	for (i = 0; i < PACER_KEY_WORDS; i++)
		pacer_store(&line->ban_key[i], q->key.word[i]);
	pacer_store64(&line->ban_until_ns, until_ns);
	pacer_lock_release(&line->ban_lock, word);
	return 1;
}

/*
 * What stands before the table tells of the ban. 0: other CPUs were in the way; the key must not be
 * entered.
 */
PACER_INLINE PACER_MUST_USE int pacer_ban_raise(const struct pacer_ban_ask *q, __u64 until_ns)
{
	struct pacer_line *filter = pacer_ban_filter(q->table, q->bans, q->hash);
	__u64 *last_ns = pacer_ban_last(q->table, q->bans);

	return filter && last_ns &&
	       pacer_ttl_raise_cell(last_ns, until_ns | (PACER_BAN_STEP_NS - 1)) &&
	       pacer_ttl_raise(filter->word64, 7, pacer_ban_cells(q->hash), until_ns);
}

/* How full the set is for the key: 0 where it stands in it, else the bans that run, and 1. */
PACER_INLINE __u32 pacer_ban_fill(const struct pacer_ban_ask *q, __u32 set)
{
	__u32 way, n = 1;

	PACER_ROLLED
	for (way = 0; way < PACER_BAN_WAYS; way++) {
		struct pacer_line *line = PACER_LINE_AT(q->table, set + way);

		if (!line || !pacer_ban_runs(line, q->now_ns))
			continue;
		if (pacer_ban_own(line, &q->key))
			return 0;
		n++;
	}
	return n;
}

/* The set with more room comes first. */
PACER_INLINE struct pacer_ban_places pacer_ban_choose(const struct pacer_ban_ask *q)
{
	struct pacer_ban_places at = pacer_ban_places(q->bans, q->hash);
	__u32 first = at.set[0];

	if (at.n > PACER_BAN_WAYS && pacer_ban_fill(q, first) > pacer_ban_fill(q, at.set[1])) {
		at.set[0] = at.set[1];
		at.set[1] = first;
	}
	return at;
}

#define PACER_BAN_NOWHERE (~0u) /* no line has this number */

/*
 * The line of the set for the key's ban: its own, or of those that have run out that which did
 * first. PACER_BAN_NOWHERE: there is none. One that another CPU holds is passed over: it may hold
 * on to it. A function of its own for the verifier's sake, as pacer_ban_own.
 */
PACER_GLOBAL __u32 pacer_ban_way(struct pacer_table *table, const struct pacer_ban_key *key,
				 __u64 now_ns, __u32 set)
{
	__u64 first_ns = now_ns + 1;
	__u32 way, found = PACER_BAN_NOWHERE;

	PACER_ARGUMENT(table);
	PACER_ROLLED
	for (way = 0; way < PACER_BAN_WAYS; way++) {
		struct pacer_line *line = PACER_LINE_AT(table, set + way);
		__u64 until_ns;

		if (!line || pacer_load(&line->ban_lock) & PACER_LOCK_HELD)
			continue;
		until_ns = pacer_load64(&line->ban_until_ns);
		if (until_ns && pacer_ban_own(line, key))
			return set + way;
		if (PACER_FAULT(BAN_EVICTS))
			until_ns = 0;
		if (until_ns < first_ns) {
			first_ns = until_ns;
			found = set + way;
		}
	}
	return found;
}

/*
 * Enters a ban that what stands before the table tells of. Returns PACER_BANNED, or
 * PACER_BANS_FULL.
 */
PACER_INLINE PACER_MUST_USE enum pacer_event pacer_ban_put(const struct pacer_ban_ask *q,
							   __u64 until_ns)
{
	struct pacer_ban_places at = pacer_ban_choose(q);
	struct pacer_line *line;
	__u32 i, at_line;

	PACER_ROLLED
	for (i = 0; i < PACER_BAN_TRIES; i++) { /* each set again, if another CPU was in the way */
		at_line =
		    pacer_ban_way(q->table, &q->key, q->now_ns, i & 1 ? at.set[1] : at.set[0]);
		line = PACER_LINE_AT(q->table, at_line);
		if (line && pacer_ban_enter(line, q, until_ns))
			return PACER_BANNED;
	}
	return PACER_BANS_FULL;
}

/*
 * Bans the key until until_ns. Returns PACER_BANNED, or PACER_BANS_FULL if its sets have no room or
 * another CPU was in the way.
 */
PACER_INLINE PACER_MUST_USE enum pacer_event pacer_ban_add(const struct pacer_ban_ask *q,
							   __u64 until_ns)
{
	enum pacer_event event;

	if (!q->bans->sets || (!PACER_FAULT(BAN_FILTER_LATE) && !pacer_ban_raise(q, until_ns)))
		return PACER_BANS_FULL;
	event = pacer_ban_put(q, until_ns);
	if (PACER_FAULT(BAN_FILTER_LATE) && event == PACER_BANNED && !pacer_ban_raise(q, until_ns))
		return PACER_BANS_FULL;
	return event;
}

/* --- bans that grow -------------------------------------------------------------------------- */

/* How long the ban is with which so many came before it in a row. */
PACER_INLINE __u64 pacer_ban_length(const struct pacer_rule *rule, __u32 before)
{
	__u64 ns = rule->ban_ns - rule->ban_tick_ns;
	__u32 i;

	PACER_ROLLED
	for (i = 0; i < PACER_BAN_ROW_MAX && i < before && ns < rule->ban_max_ns; i++)
		ns *= rule->ban_grow; /* below 2^56 * 2^7 */
	return (ns < rule->ban_max_ns ? ns : rule->ban_max_ns) + rule->ban_tick_ns;
}

/* Where the entry is the key's, whole, and ended later than *until_ns: its row, and when it ended.
 */
PACER_INLINE void pacer_ban_note(struct pacer_line *line, const struct pacer_ban_ask *q,
				 __u64 *until_ns, __u32 *row)
{
	__u32 word = pacer_load(&line->ban_lock), note;
	__u64 ended_ns;

	PACER_BARRIER();
	ended_ns = pacer_load64(&line->ban_until_ns);
	note = pacer_load(&line->ban_note);
	if (ended_ns <= *until_ns || !pacer_ban_own(line, &q->key))
		return;
	PACER_BARRIER();
	if (word & PACER_LOCK_HELD || pacer_load(&line->ban_lock) != word)
		return;
	*until_ns = ended_ns;
	*row = note >> PACER_BAN_ROW;
}

/*
 * How many bans of the key came in a row before the rule's ban that begins now. A ban that runs has
 * been entered by another CPU just now: this is the same one.
 */
PACER_INLINE __u32 pacer_ban_row(const struct pacer_ban_ask *q, const struct pacer_rule *rule)
{
	struct pacer_ban_places at = pacer_ban_places(q->bans, q->hash);
	__u64 ended_ns = 0;
	__u32 i, row = 0;

	PACER_ROLLED
	for (i = 0; i < PACER_BAN_PLACES && i < at.n; i++) {
		struct pacer_line *line = PACER_LINE_AT(q->table, pacer_ban_place(&at, i));

		if (line)
			pacer_ban_note(line, q, &ended_ns, &row);
	}
	if (ended_ns > q->now_ns)
		return row - (row && !PACER_FAULT(BAN_ROW_TWICE));
	return q->now_ns - ended_ns >= rule->ban_forget_ns ? 0 : row;
}

/* Until when the ban lasts that begins now, with `row` before it; q->note says its number. */
PACER_INLINE __u64 pacer_ban_grown(struct pacer_ban_ask *q, const struct pacer_rule *rule,
				   __u32 row)
{
	q->note = (row < PACER_BAN_ROW_MAX ? row + 1 : PACER_BAN_ROW_MAX) << PACER_BAN_ROW;
	return q->now_ns + pacer_ban_length(rule, row);
}

/*
 * Lifts the ban of this entry if it is the key's. It may be called from outside the packet path at
 * any time: a reader sees the ban or does not. Returns 1 if it ended a ban.
 */
PACER_INLINE PACER_MUST_USE int pacer_ban_lift(struct pacer_line *line,
					       const struct pacer_ban_key *key, __u64 now_ns)
{
	__u64 until_ns = pacer_load64(&line->ban_until_ns);

	return until_ns > now_ns && pacer_ban_is(line, key) &&
	       pacer_cas64(&line->ban_until_ns, until_ns, 0) == until_ns;
}

/*
 * Lets an entry go that a tool held as it was killed. Whoever calls it is the one tool that enters
 * bans at this time. Wherever it was killed, the entry is whole or has no ban: its time is 0 while
 * its key is written. Packets may go on meanwhile; one that looks just then may miss the ban, as
 * when it is extended.
 */
PACER_INLINE void pacer_ban_free(struct pacer_line *line)
{
	__u32 word = pacer_load(&line->ban_lock);

	if (word & PACER_LOCK_HELD && word & PACER_BAN_BY_TOOL)
		pacer_release(&line->ban_lock,
			      pacer_lock_next(word) & ~(PACER_LOCK_HELD | PACER_BAN_BY_TOOL));
}

/*
 * Empties this entry if it is the key's, and its ban ends at latest_ns or before: of a ban that has
 * ended it keeps the row. From outside the packet path, like pacer_ban_lift.
 */
PACER_INLINE void pacer_ban_empty(struct pacer_line *line, const struct pacer_ban_key *key,
				  __u64 latest_ns)
{
	__u64 until_ns = pacer_load64(&line->ban_until_ns);

	if (until_ns <= latest_ns && pacer_ban_is(line, key))
		(void)!pacer_cas64(&line->ban_until_ns, until_ns, 0);
}

#endif
