/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: one word that owns a line of state: whose line it is, where its ring
 * stands, and whether a CPU is changing it.
 *
 *   bit 0       held
 *   bits 1-6    cursor: the ring's current slot
 *   bits 7-15   sequence, raised by every change
 *   bits 16-31  tag of the key; 0: nobody's
 *
 * Concurrency: pacer_claim_take makes the caller the only writer until it
 * releases. Readers take no claim: they read the word, then the line, then the
 * word again, and what they read was whole if the word is the same and not held.
 * The sequence is short, so a reader that sleeps through exactly 512 changes is
 * deceived; a reader's finding is therefore a ground to deny, and to admit only
 * where it is compared again under the claim (pacer_entry_settle).
 * On machines that reorder loads a reader may be deceived more often, in the
 * same direction.
 *
 * Error: a claim that is not had within PACER_SPINS looks is given up, and its
 * packet is denied as contended.
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

/* The word with a tag (0 to 65535) and a cursor (0 to 63) of the caller's. */
PACER_INLINE __u32 pacer_claim_set(__u32 word, __u32 tag, __u32 cursor)
{
	return (word & (PACER_CLAIM_SEQ | PACER_CLAIM_HELD)) | (tag << 16) | (cursor << 1);
}

#define PACER_CLAIM_ANY 0x10000u /* as a tag: whatever it is */

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

/* The looks after the first. */
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
 * Take the line if its tag is `tag`, or whatever its tag. *word is the word found, with the held
 * bit set, as it now stands in memory. BUSY after PACER_SPINS looks.
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

/* Give the line back unchanged. Only by its holder. */
PACER_INLINE void pacer_claim_cancel(__u32 *claim, __u32 word)
{
	pacer_release(claim, word & ~PACER_CLAIM_HELD);
}

/* The word with its sequence raised. */
PACER_INLINE __u32 pacer_claim_next(__u32 word)
{
	return (word & ~PACER_CLAIM_SEQ) | ((word + PACER_CLAIM_SEQ_ONE) & PACER_CLAIM_SEQ);
}

/* Give the line back changed: readers see that it was. Only by its holder. */
PACER_INLINE void pacer_claim_release(__u32 *claim, __u32 word)
{
	pacer_release(claim, pacer_claim_next(word) & ~PACER_CLAIM_HELD);
}

#endif
