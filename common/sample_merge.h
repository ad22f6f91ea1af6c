/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: one sample from several samplers, one of each CPU. Each element of the union of their
 * windows has the same chance.
 *
 * 	pacer_sample_merge	samples with replacement: k independent ones
 * 	pacer_sample_merge_wor	samples without replacement: any k of all with the same chance
 *
 * Source: "Succinct Sampling on Streams" has one stream. To sample a union, one chooses a part in
 * proportion to the sizes of the parts, and samples that. Theorem 4.6 draws from a decomposition in
 * this way, and lemma 4.5 draws its R2.
 *
 * Concurrency: pure, except for the random source. Readers use it on copies. The loops have no
 * constant bounds: it is for user space.
 *
 * Error: none if the n of all parts are exact. If each is off by a factor of at most 1 +- e, the
 * chance of a part, and so of any set of elements, is off by at most (1 - sqrt(1 - e^2)) / e. For
 * small e that is e / 2. For a part of share p, too large by 1 + e among others too small by 1 - e,
 * is chosen 2 e p (1 - p) / (1 + e (2 p - 1)) too often, and this is the maximum over p. Other
 * errors of the parts' samples do not change.
 *
 * Memory: the caller's arrays. n in all stays below 2^64.
 */
#ifndef PACER_SAMPLE_MERGE_H
#define PACER_SAMPLE_MERGE_H

#include "sample.h"

/* The sample of a CPU: `k` items of a window of n elements. k is 0 only if that is empty. */
struct pacer_sample_part {
	__u64 n;
	__u32 k;
	struct pacer_sample_item *item;
};

/* An item of a merged sample: its part, and its index in the part. */
struct pacer_sample_origin {
	__u32 part;
	__u32 item;
};

/* Chooses a part with items, in proportion to its n; `parts` if all are empty. */
PACER_INLINE __u32 pacer_sample_merge_part(const struct pacer_sample_part *part, __u32 parts,
					   struct pacer_sample_rng *rng)
{
	__u64 n = 0, at;
	__u32 i;

	for (i = 0; i < parts; i++)
		n += part[i].k ? part[i].n : 0;
	if (!n)
		return parts;
	at = pacer_sample_below(rng, n);
	for (i = 0; i < parts; i++) {
		__u64 size = part[i].k ? part[i].n : 0;

		if (at < size)
			break;
		at -= size;
	}
	return i;
}

/*
 * Item j of a merged sample is item j of a part. Those are independent, so these are, too. A part
 * with fewer samples than wanted repeats them. Then the samples are uniform but not independent.
 * part == parts if all are empty.
 */
PACER_INLINE struct pacer_sample_origin
pacer_sample_merge_origin(const struct pacer_sample_part *part, __u32 parts,
			  struct pacer_sample_rng *rng, __u32 j)
{
	struct pacer_sample_origin from = {.part = pacer_sample_merge_part(part, parts, rng)};

	if (from.part < parts)
		from.item = j % part[from.part].k;
	return from;
}

/* Returns the number in out: k, or 0 if all parts are empty. */
PACER_INLINE __u32 pacer_sample_merge(const struct pacer_sample_part *part, __u32 parts,
				      struct pacer_sample_rng *rng, __u32 k,
				      struct pacer_sample_item *out)
{
	__u32 j;

	for (j = 0; j < k; j++) {
		struct pacer_sample_origin from = pacer_sample_merge_origin(part, parts, rng, j);

		if (from.part == parts)
			return 0;
		out[j] = part[from.part].item[from.item];
	}
	return j;
}

/*
 * Draws elements of the union one after the other. It chooses a part in proportion to its elements
 * not yet drawn, and there any item that is left. It uses up the parts: their n, k and the order of
 * their items change. A part with fewer than k items has its whole window, and n is their number.
 * Returns the number in out: k, or all there are.
 */
PACER_INLINE __u32 pacer_sample_merge_wor(struct pacer_sample_part *part, __u32 parts,
					  struct pacer_sample_rng *rng, __u32 k,
					  struct pacer_sample_item *out)
{
	__u32 i, j;

	for (i = 0; i < parts; i++)
		if (part[i].k < k || part[i].n < part[i].k)
			part[i].n = part[i].k;
	for (j = 0; j < k; j++) {
		struct pacer_sample_part *p;
		__u32 chosen;

		i = pacer_sample_merge_part(part, parts, rng);
		if (i == parts)
			break;
		p = &part[i];
		chosen = pacer_sample_below(rng, p->k);
		out[j] = p->item[chosen];
		p->k--;
		p->n--;
		p->item[chosen] = p->item[p->k];
	}
	return j;
}

#endif
