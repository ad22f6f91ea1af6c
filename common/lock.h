/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: one word that locks a line of state. It says whose line it is, where
 * its ring stands, and whether a CPU is changing it.
 *
 *   bit 0       held
 *   bits 1-6    cursor: the ring's current slot
 *   bits 7-15   sequence, raised by every change
 *   bits 16-31  tag: a part of the key's hash; 0: no key has the line
 *
 * Concurrency: pacer_lock_take makes the caller the only writer until it
 * releases. Readers take no lock. They read the word, then the line, then the
 * word again. What they read was whole if the word is the same and not held.
 * The sequence has 9 bits: a reader that sleeps through exactly 512 changes does
 * not notice. So a reader may deny by what it found, but to admit it has to
 * compare again under the lock (pacer_entry_commit_seen). On machines that reorder
 * loads this can happen more often, with the same result.
 *
 * Error: if a lock cannot be had within PACER_SPINS looks, the packet is
 * denied as contended.
 */
#ifndef PACER_LOCK_H
#define PACER_LOCK_H

#include "abi.h"

#ifndef PACER_SPINS
#define PACER_SPINS 256
#endif

/*
 * Bits that are set beside HELD while a lock is held. A program that may be killed defines them
 * before it includes this, for locks without a tag: bits of the tag. So others can tell that it,
 * and no packet, held the lock. 0: none.
 */
#ifndef PACER_LOCK_MARK
#define PACER_LOCK_MARK 0u
#endif

#define PACER_LOCK_HELD	   1u
#define PACER_LOCK_CURSOR  0x7eu
#define PACER_LOCK_SEQ	   0xff80u
#define PACER_LOCK_SEQ_ONE 0x80u

_Static_assert((PACER_LOCK_HELD ^ PACER_LOCK_CURSOR ^ PACER_LOCK_SEQ) == 0xffff,
	       "the tag is above all of them");
_Static_assert(PACER_RING_MAX <= PACER_LOCK_CURSOR / 2 + 1, "every slot has a cursor");
_Static_assert(PACER_LOCK_SEQ / PACER_LOCK_SEQ_ONE + 1 == 512, "exactly 512 changes");

enum pacer_lock_result { PACER_LOCK_TAKEN, PACER_LOCK_OTHER, PACER_LOCK_BUSY };

PACER_INLINE __u32 pacer_lock_tag(__u32 word)
{
	return word >> 16;
}

PACER_INLINE __u32 pacer_lock_cursor(__u32 word)
{
	return (word & PACER_LOCK_CURSOR) >> 1;
}

/* The word with another tag (0 to 65535) and cursor (0 to 63). Nothing is written. */
PACER_INLINE __u32 pacer_lock_set(__u32 word, __u32 tag, __u32 cursor)
{
	return (word & (PACER_LOCK_SEQ | PACER_LOCK_HELD)) | (tag << 16) | (cursor << 1);
}

#define PACER_LOCK_ANY 0x10000u /* in place of a tag */

/* Is the word's tag another one? Without a branch, since verifiers would follow each anew. */
PACER_INLINE __u32 pacer_lock_differs(__u32 word, __u32 tag)
{
	return (pacer_lock_tag(word) ^ tag) & ((tag >> 16) - 1);
}

/*
 * Looks once, as pacer_lock_take does. OTHER: the line has another tag. BUSY: it is held, or
 * another CPU changed the word just now.
 */
PACER_INLINE PACER_MUST_USE enum pacer_lock_result pacer_lock_try(__u32 *lock, __u32 tag,
								  __u32 *word)
{
	__u32 seen = pacer_load(lock);

	if (pacer_lock_differs(seen, tag))
		return PACER_LOCK_OTHER;
	if (seen & PACER_LOCK_HELD ||
	    pacer_cas(lock, seen, seen | PACER_LOCK_HELD | PACER_LOCK_MARK) != seen)
		return PACER_LOCK_BUSY;
	*word = seen | PACER_LOCK_HELD | PACER_LOCK_MARK;
	return PACER_LOCK_TAKEN;
}

/*
 * Looks up to PACER_SPINS - 1 times more. A function of its own, since the verifier then checks the
 * loop once for all callers; so its result is an int (enum pacer_lock_result).
 */
PACER_GLOBAL PACER_MUST_USE int pacer_lock_spin(__u32 *lock, __u32 tag, __u32 *word)
{
	int i;

	if (!lock || !word)
		return PACER_LOCK_OTHER;
	for (i = 1; i < PACER_SPINS; i++) {
		enum pacer_lock_result result = pacer_lock_try(lock, tag, word);

		if (result != PACER_LOCK_BUSY)
			return result;
	}
	return PACER_LOCK_BUSY;
}

/*
 * Makes the caller the line's holder, if the line has this tag (0 to 65535; PACER_LOCK_ANY:
 * whatever its tag). Then *word is the word as it is in memory now, held. Any CPU may call it at
 * any time. OTHER: the line has another tag. BUSY: it was held at each of PACER_SPINS looks.
 */
PACER_INLINE PACER_MUST_USE enum pacer_lock_result pacer_lock_take(__u32 *lock, __u32 tag,
								   __u32 *word)
{
	int result = pacer_lock_try(lock, tag, word);

	if (result == PACER_LOCK_BUSY)
		result = pacer_lock_spin(lock, tag, word);
	if (result == PACER_LOCK_TAKEN)
		return PACER_LOCK_TAKEN;
	return result == PACER_LOCK_BUSY ? PACER_LOCK_BUSY : PACER_LOCK_OTHER;
}

/* The holder gives the line back as it was when it took it. */
PACER_INLINE void pacer_lock_cancel(__u32 *lock, __u32 word)
{
	pacer_release(lock, word & ~(PACER_LOCK_HELD | PACER_LOCK_MARK));
}

/* The word with the next sequence, modulo 512. Nothing is written. */
PACER_INLINE __u32 pacer_lock_next(__u32 word)
{
	return (word & ~PACER_LOCK_SEQ) | ((word + PACER_LOCK_SEQ_ONE) & PACER_LOCK_SEQ);
}

/* The holder gives the line back with this tag and cursor, and readers see that it was changed. */
PACER_INLINE void pacer_lock_release(__u32 *lock, __u32 word)
{
	pacer_release(lock, pacer_lock_next(word) & ~(PACER_LOCK_HELD | PACER_LOCK_MARK));
}

#endif
