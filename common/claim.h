/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: one word that locks a line of state. It says whose line it is, where
 * its ring stands, and whether a CPU is changing it.
 *
 *   bit 0       held
 *   bits 1-6    cursor: the ring's current slot
 *   bits 7-15   sequence, raised by every change
 *   bits 16-31  tag of the key; 0: nobody's
 *
 * Concurrency: pacer_claim_take makes the caller the only writer until it
 * releases. Readers take no claim. They read the word, then the line, then the
 * word again. What they read was whole if the word is the same and not held.
 * The sequence is short: a reader that sleeps through exactly 512 changes does
 * not notice. So a reader may deny by what it found, but to admit it has to
 * compare again under the claim (pacer_entry_settle). On machines that reorder
 * loads this can happen more often, with the same result.
 *
 * Error: if a claim cannot be had within PACER_SPINS looks, the packet is
 * denied as contended.
 */
#ifndef PACER_CLAIM_H
#define PACER_CLAIM_H

#include "abi.h"

#ifndef PACER_SPINS
#define PACER_SPINS 256
#endif

#define PACER_CLAIM_HELD    1u
#define PACER_CLAIM_CURSOR  0x7eu
#define PACER_CLAIM_SEQ	    0xff80u
#define PACER_CLAIM_SEQ_ONE 0x80u

_Static_assert((PACER_CLAIM_HELD ^ PACER_CLAIM_CURSOR ^ PACER_CLAIM_SEQ) == 0xffff,
	       "the tag is above all of them");
_Static_assert(PACER_RING_MAX <= PACER_CLAIM_CURSOR / 2 + 1, "every slot has a cursor");
_Static_assert(PACER_CLAIM_SEQ / PACER_CLAIM_SEQ_ONE + 1 == 512, "exactly 512 changes");

enum pacer_claim_result { PACER_CLAIM_TAKEN, PACER_CLAIM_OTHER, PACER_CLAIM_BUSY };

PACER_INLINE __u32 pacer_claim_tag(__u32 word)
{
	return word >> 16;
}

PACER_INLINE __u32 pacer_claim_cursor(__u32 word)
{
	return (word & PACER_CLAIM_CURSOR) >> 1;
}

/* Sets the tag (0 to 65535) and the cursor (0 to 63) in the word. */
PACER_INLINE __u32 pacer_claim_set(__u32 word, __u32 tag, __u32 cursor)
{
	return (word & (PACER_CLAIM_SEQ | PACER_CLAIM_HELD)) | (tag << 16) | (cursor << 1);
}

#define PACER_CLAIM_ANY 0x10000u /* instead of a tag: any tag */

/* One look: BUSY if the line is held, or if another CPU took it just now. */
PACER_INLINE PACER_MUST_USE enum pacer_claim_result pacer_claim_try(__u32 *claim, __u32 tag,
								    __u32 *word)
{
	__u32 seen = pacer_load(claim);

	if (tag != PACER_CLAIM_ANY && pacer_claim_tag(seen) != tag)
		return PACER_CLAIM_OTHER;
	if (seen & PACER_CLAIM_HELD || pacer_cas(claim, seen, seen | PACER_CLAIM_HELD) != seen)
		return PACER_CLAIM_BUSY;
	*word = seen | PACER_CLAIM_HELD;
	return PACER_CLAIM_TAKEN;
}

/* All looks after the first. */
PACER_GLOBAL PACER_MUST_USE int pacer_claim_spin(__u32 *claim, __u32 tag, __u32 *word)
{
	int i;

	if (!claim || !word)
		return PACER_CLAIM_OTHER;
	for (i = 1; i < PACER_SPINS; i++) {
		enum pacer_claim_result result = pacer_claim_try(claim, tag, word);

		if (result != PACER_CLAIM_BUSY)
			return result;
	}
	return PACER_CLAIM_BUSY;
}

/*
 * Takes the line if its tag is `tag`, or with any tag. *word is the word in memory then: the word
 * found, with the held bit set. BUSY after PACER_SPINS looks.
 */
PACER_INLINE PACER_MUST_USE enum pacer_claim_result pacer_claim_take(__u32 *claim, __u32 tag,
								     __u32 *word)
{
	int result = pacer_claim_try(claim, tag, word);

	if (result == PACER_CLAIM_BUSY)
		result = pacer_claim_spin(claim, tag, word);
	if (result == PACER_CLAIM_TAKEN)
		return PACER_CLAIM_TAKEN;
	return result == PACER_CLAIM_BUSY ? PACER_CLAIM_BUSY : PACER_CLAIM_OTHER;
}

/* Gives the line back unchanged. Only for its holder. */
PACER_INLINE void pacer_claim_cancel(__u32 *claim, __u32 word)
{
	pacer_release(claim, word & ~PACER_CLAIM_HELD);
}

/* Raises the sequence in the word. */
PACER_INLINE __u32 pacer_claim_next(__u32 word)
{
	return (word & ~PACER_CLAIM_SEQ) | ((word + PACER_CLAIM_SEQ_ONE) & PACER_CLAIM_SEQ);
}

/* Gives the line back changed, so that readers notice. Only for its holder. */
PACER_INLINE void pacer_claim_release(__u32 *claim, __u32 word)
{
	pacer_release(claim, pacer_claim_next(word) & ~PACER_CLAIM_HELD);
}

#endif
