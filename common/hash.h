/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: a key's place in the tables, by a hash that is keyed with a secret.
 *
 * Source: the recency sketch asks for a hash that selects cells; the family is
 * Carter and Wegman's multilinear one: secret[0] + sum secret[i+1] * word[i]
 * modulo 2^64, of which the upper half is strongly universal for 32-bit words.
 * Two independent members give 64 bits. The sums of consecutive keys are evenly
 * spaced. Under some secrets this would put most of them into few sets. So each
 * half is folded upon itself, and the place is multiplied. Both are bijections
 * of 32 bits, so what is said below of the family still holds.
 *
 * Error: any two keys of one length agree in one half with a probability of
 * 2^-32 over the secret. Whoever does not learn the verdicts of chosen keys
 * cannot aim at a place. A source that sees which of its own packets pass may
 * find sources that share a place with it. The harm is shared denial, never
 * admission. IPv4 and IPv6 have first secrets of their own, so their keys are
 * just as independent.
 *
 * The secret: the loader draws it from the kernel's random numbers, and can draw
 * another at work (user/live/rotate.h, table.h). An object that was attached without it
 * has to draw its own, for which BPF offers little. bpf_get_prandom_u32 is no
 * secret: classic BPF's SKF_AD_RANDOM shows the same generator to any local user,
 * it is linear, and from a few values all of a CPU's are known, the past ones too.
 * Clocks, jiffies and addresses can be guessed or are shown elsewhere. What no
 * user can read is the key of the kernel's SYN cookies, so words are made of
 * cookies for addresses and ports that the generator, the clock and the cookies
 * before chose (bpf/pacer.bpf.c). What is left: a local user who is root in a
 * network namespace of his own can have cookies made for addresses and ports of
 * his choice; to draw the same he has to know the generator's state and the clock
 * of each of the draws to the nanosecond, and to ask within the minute after
 * which cookies change. The kernel's key itself is only as good as its boot was.
 * So such a secret is the CLI's to replace when it first changes the policy, and
 * `status` says so until then.
 *
 * Concurrency: pure. Memory: none.
 */
#ifndef PACER_HASH_H
#define PACER_HASH_H

#include "abi.h"

struct pacer_hash {
	__u32 home; /* selects the set, the line or the way */
	__u32 mark; /* has the tag's bits, and selects the shared record */
};

#define PACER_HASH_FAMILY4 PACER_KEY_WORDS	 /* index of IPv4's first secret */
#define PACER_HASH_FAMILY6 (PACER_KEY_WORDS + 1) /* and IPv6's */

/* One of the two members: which is 0 or 1. */
PACER_INLINE const __u64 *pacer_hash_member(const __u64 secret[PACER_SECRETS], unsigned int which)
{
	return secret + which * (PACER_KEY_WORDS + 2);
}

#define PACER_HASH_ODD 0x9e3779b1u /* the prime nearest to 2^32 times the golden ratio */

PACER_INLINE __u32 pacer_hash_fold(__u32 sum)
{
	return sum ^ sum >> 16;
}

/*
 * Hashes the first n words of a key. `family` is the index of its family's first secret. Words that
 * are 0 add nothing, so zeros at the end may be left out. n is a constant.
 */
PACER_INLINE struct pacer_hash pacer_hash_words(const __u64 secret[PACER_SECRETS],
						unsigned int family, const __u32 *w, unsigned int n)
{
	const __u64 *a = pacer_hash_member(secret, 0), *b = pacer_hash_member(secret, 1);
	__u64 home = a[family], mark = b[family];
	unsigned int i;

	for (i = 0; i < n; i++) {
		home += a[i] * w[i];
		mark += b[i] * w[i];
	}
	return (struct pacer_hash){pacer_hash_fold(home >> 32) * PACER_HASH_ODD,
				   pacer_hash_fold(mark >> 32)};
}

/* Maps a hash to one of n places, 0 to n - 1, without division. n is from 1 to 2^32 - 1. */
PACER_INLINE __u32 pacer_reduce(__u32 hash, __u32 n)
{
	return ((__u64)hash * n) >> 32;
}

#endif
