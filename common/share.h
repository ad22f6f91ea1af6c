/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: what this host may use of a limit that a fleet divides: its share, until a time, and
 * from then on a floor. Whoever writes it may die: the packet path keeps to the end by itself.
 *
 * Source: docs/fleet.md. A share is a value of the limit: units of a window, uses of a throttle; of
 * a rate the time of a unit of cost. Its value and its end are in one word of 64 bits:
 *
 *   bits 0-30    the value; 0: nothing is admitted
 *   bits 31-63   the end, in units of 2^24 ns (17 ms), rounded down
 *
 * So a reader beside a writer has the old pair or the new one, and no third. The floor is a word of
 * its own. Of two words and two floors each is one that this host may use, so any two together are.
 *
 * A time of a rate is kept as 25 bits and a power of two, rounded up: at most 2^-24 slower. Only
 * the time of a unit changes, and not that of the burst: a share is a part of both the rate and its
 * burst. Why a rate whose parts move from host to host keeps its promise: let a host have the share
 * s of the rate at each time, and B be the burst's time. A key's theoretical arrival time is at
 * most B ahead, and an admission of cost c moves it by c / s. So within [a, b] the host admits at
 * most the integral of s, and B times the largest s of each stretch in which s is not 0. A unit of
 * the rate that moves to another host is nobody's for B before: with n owners in [a, b] it is
 * counted for at most b - a - (n - 1) B in the integrals and for n B beside: for b - a + B in all,
 * which is what one host would admit by it.
 *
 * Error: the share ends up to 17 ms early, and that may be a tick of a coarse clock late; whoever
 * writes it allows for that. A packet is judged by a share as it was when the packet came: whoever
 * lowers one waits until no CPU has a packet from before (grace.h) and takes that for done only
 * then.
 *
 * Keys with shares of their own have a word each (struct pacer_lanes), and the same floor. Whoever
 * writes these gives each key first the less of what it has and is to have, and then the latter: no
 * packet is judged by more than both, whichever of the words it finds.
 *
 * Concurrency: any number of readers, one writer. Memory: 32 bytes, and 424 for the lanes.
 */
#ifndef PACER_SHARE_H
#define PACER_SHARE_H

#include "abi.h"

#define PACER_SHARE_BITS      31u
#define PACER_SHARE_VALUE_MAX ((1u << PACER_SHARE_BITS) - 1)
#define PACER_SHARE_TICK      24u /* 2^24 ns */
#define PACER_SHARE_END_MAX \
	((1ull << (64 - PACER_SHARE_BITS + PACER_SHARE_TICK)) - 1) /* 4.5 years */
#define PACER_SHARE_WHOLE 0xffffffffu /* in the place of a value: the limit's own */

#define PACER_SHARE_TIME_BITS 25u /* of a rate's time; six more for the power of two */

_Static_assert(sizeof(struct pacer_share) == 32, "32 bytes");
_Static_assert(sizeof(struct pacer_lanes) == 424, "424 bytes");
_Static_assert(PACER_SHARE_TIME_BITS + 6 == PACER_SHARE_BITS, "a time is a value");

/* The word of a share of `value` (PACER_SHARE_VALUE_MAX at most) until until_ns. */
PACER_INLINE __u64 pacer_share_word(__u32 value, __u64 until_ns)
{
	if (until_ns > PACER_SHARE_END_MAX)
		until_ns = PACER_SHARE_END_MAX;
	return until_ns >> PACER_SHARE_TICK << PACER_SHARE_BITS | value;
}

PACER_INLINE __u32 pacer_share_value(__u64 word)
{
	return word & PACER_SHARE_VALUE_MAX;
}

/* When the share ends. */
PACER_INLINE __u64 pacer_share_until(__u64 word)
{
	return word >> PACER_SHARE_BITS << PACER_SHARE_TICK;
}

/* The value that counts at now_ns by the share's word, or a lane's, for the limit of this id; 0:
 * none.
 */
PACER_INLINE __u32 pacer_share_now(const struct pacer_share *share, __u64 id, __u64 word,
				   __u64 now_ns)
{
	if (pacer_load64(&share->id) != id)
		return 0;
	if (now_ns < pacer_share_until(word))
		return pacer_share_value(word);
	return pacer_share_value(pacer_load64(&share->floor));
}

/* Of a member of a fleet by its id, in the bits of a floor that packets do not look at. Not 0. */
PACER_INLINE __u64 pacer_share_mark(__u64 member)
{
	return member % ((1ull << (64 - PACER_SHARE_BITS)) - 1) + 1;
}

/* The word of a floor of `value` (PACER_SHARE_VALUE_MAX at most), a part of that member's reserve.
 */
PACER_INLINE __u64 pacer_share_floor(__u32 value, __u64 member)
{
	return value ? pacer_share_mark(member) << PACER_SHARE_BITS | value : 0;
}

/* Whose reserve a floor is a part of: pacer_share_mark; 0: nobody's, or it was not said. */
PACER_INLINE __u64 pacer_share_floor_of(__u64 floor)
{
	return pacer_share_value(floor) ? floor >> PACER_SHARE_BITS : 0;
}

/* What the agent says of a share: how many members there are, and when the store answered last. */
PACER_INLINE __u64 pacer_share_said(__u32 members, __u64 answered_ns)
{
	return answered_ns >> PACER_SHARE_TICK << 16 | (members & 0xffff);
}

/*
 * A span of ns and 2^-32 ns as a value, rounded up. Not 0; PACER_SHARE_VALUE_MAX: as long or
 * longer. Not for the packet path.
 */
PACER_INLINE __u32 pacer_share_of_time(__u64 ns, __u32 frac)
{
	__u64 high = ns >> 32, low = ns << 32 | frac;
	__u32 power = 0, lost = 0;

	if (!high && !low)
		low = 1;
	for (; high || low >> PACER_SHARE_TIME_BITS; power++) {
		lost |= low & 1;
		low = low >> 1 | high << 63;
		high >>= 1;
	}
	low += lost;
	if (low >> PACER_SHARE_TIME_BITS) {
		low >>= 1;
		power++;
	}
	return power > 63 ? PACER_SHARE_VALUE_MAX : power << PACER_SHARE_TIME_BITS | (__u32)low;
}

/* The span of such a value: the sum of *ns and 2^-32 * *frac. By arithmetic alone. */
PACER_INLINE __u64 pacer_share_time_ns(__u32 value)
{
	__u64 digits = value & ((1u << PACER_SHARE_TIME_BITS) - 1);
	__u32 power = (value >> PACER_SHARE_TIME_BITS) & 63;

	return digits << (power & 31) >> (32 - (power & 32));
}

PACER_INLINE __u32 pacer_share_time_frac(__u32 value)
{
	__u64 digits = value & ((1u << PACER_SHARE_TIME_BITS) - 1);
	__u32 power = (value >> PACER_SHARE_TIME_BITS) & 63;

	return (__u32)(digits << (power & 31)) & ((power >> 5) - 1);
}

#endif
