/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: what a key is made of, as data: which bits of a packet tell keys
 * apart.
 *
 * The key of a limit is a mask over the packet's words, one for IPv4 and one for
 * IPv6. The key's id says in one word which masks these are. So keys can be
 * compared, stored with a ban and shown to the operator.
 *
 * In the place of an address a key may have the address's value in a set: a word
 * that is made of the set's name and the value's text, whatever the file says at
 * the time. Then IPv4 and IPv6 count together, but where the other address is a
 * part, too.
 *
 * Error: two keys may have the same hash (hash.h). Concurrency: pure. Memory:
 * none.
 */
#ifndef PACER_KEY_H
#define PACER_KEY_H

#include "abi.h"
#include "hash.h"
#include "parse.h"

/* The first n words of the packet under the limit's mask, for IPv4 and for IPv6. n is a constant.
 */
PACER_INLINE void pacer_limiter_words4(const struct pacer_limiter *t,
				       const struct pacer_packet *pkt, __u32 *w, __u32 n)
{
	w[0] = pkt->key[PACER_WORD_SADDR] & t->mask4[0];
	if (n < 4)
		return;
	w[1] = pkt->key[PACER_WORD_DADDR] & t->mask4[1];
	w[2] = pkt->key[PACER_WORD_PORTS] & t->mask4[2];
	w[3] = pkt->key[PACER_WORD_META] & t->mask4[3];
}

PACER_INLINE void pacer_limiter_words6(const struct pacer_limiter *t,
				       const struct pacer_packet *pkt, __u32 *w, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		w[i] = pkt->key[i] & t->mask6[i];
}

/* Has the key values in the place of addresses? */
PACER_INLINE int pacer_limiter_valued(const struct pacer_limiter *t)
{
	return t->value[0] | t->value[1];
}

/* Is the key of an IPv6 packet under such a limit one of both families? It has no address then. */
PACER_INLINE int pacer_limiter_of_both(const struct pacer_limiter *t)
{
	return (t->value[0] || !t->mask6[PACER_WORD_SADDR]) &&
	       (t->value[1] || !t->mask6[PACER_WORD_DADDR]);
}

/*
 * The packet as such a limit counts it, where `value` are those of its rule: a packet with these
 * words for addresses, whose key under the limit's masks is the key.
 */
PACER_INLINE struct pacer_packet pacer_limiter_sees(const struct pacer_limiter *t,
						    const struct pacer_packet *pkt,
						    const __u32 value[2])
{
	struct pacer_packet seen = *pkt;
	__u32 i, k;

	if (pacer_limiter_of_both(t))
		seen.family = PACER_FAMILY_4;
	for (i = 0; i < 2; i++) {
		if (!t->value[i])
			continue;
		seen.key[4 * i] = value[(t->value[i] - 1) & 1];
		for (k = 1; k < 4; k++)
			seen.key[4 * i + k] = 0;
	}
	return seen;
}

/* The values of its rule, as far as the limit has them, of a packet that it sees. */
PACER_INLINE void pacer_limiter_saw(const struct pacer_limiter *t, const struct pacer_packet *seen,
				    __u32 value[2])
{
	__u32 i;

	for (i = 0; i < 2; i++)
		if (t->value[i])
			value[(t->value[i] - 1) & 1] = seen->key[4 * i];
}

/* The hash of an IPv4 packet's key under this limit, which has no values. */
PACER_INLINE struct pacer_hash pacer_limiter_hash4(const struct pacer_limiter *t,
						   const struct pacer_packet *pkt,
						   const __u64 secret[PACER_SECRETS])
{
	__u32 w[4];

	if (t->src_only) {
		pacer_limiter_words4(t, pkt, w, 1);
		return pacer_hash_words(secret, PACER_HASH_FAMILY4, w, 1);
	}
	pacer_limiter_words4(t, pkt, w, 4);
	return pacer_hash_words(secret, PACER_HASH_FAMILY4, w, 4);
}

/* Of an IPv6 packet's. */
PACER_INLINE struct pacer_hash pacer_limiter_hash6(const struct pacer_limiter *t,
						   const struct pacer_packet *pkt,
						   const __u64 secret[PACER_SECRETS])
{
	__u32 w[PACER_KEY_WORDS];

	if (t->src_only) {
		pacer_limiter_words6(t, pkt, w, 4);
		return pacer_hash_words(secret, PACER_HASH_FAMILY6, w, 4);
	}
	pacer_limiter_words6(t, pkt, w, PACER_KEY_WORDS);
	return pacer_hash_words(secret, PACER_HASH_FAMILY6, w, PACER_KEY_WORDS);
}

PACER_INLINE struct pacer_hash pacer_limiter_hash(const struct pacer_limiter *t,
						  const struct pacer_packet *pkt,
						  const __u64 secret[PACER_SECRETS])
{
	if (pkt->family == PACER_FAMILY_4)
		return pacer_limiter_hash4(t, pkt, secret);
	return pacer_limiter_hash6(t, pkt, secret);
}

#endif
