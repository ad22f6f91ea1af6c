/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: one sample of what several samplers saw, one for each CPU: each element of the union of
 * their windows with the same chance.
 *
 *	pacer_sample_merge	samples with replacement: k independent ones
 *	pacer_sample_merge_wor	samples without replacement: any k of all with the same chance
 *
 * Source: "Succinct Sampling on Streams" has one stream; that a uniform sample of a union is one of
 * a part chosen in proportion to the parts' sizes is how theorem 4.6 draws from a decomposition,
 * and lemma 4.5 its R2.
 *
 * Concurrency: pure but for the random source; the reader's, on copies. No loop has a constant
 * bound: for user space.
 *
 * Error: none where the parts' n are exact. Where each is off by a factor of at most 1 +- e, the
 * chance of a part, and with it of any set of elements, is off by at most (1 - sqrt(1 - e^2)) / e,
 * which is e / 2 for small e: a part of share p, too large by 1 + e among others too small by
 * 1 - e, is chosen 2 e p (1 - p) / (1 + e (2 p - 1)) too often, and the maximum over p is that.
 * Every other error of the parts' samples stays what it is.
 *
 * Memory: the caller's arrays. n in all stays below 2^64.
 */
#ifndef PACER_SAMPLE_MERGE_H
#define PACER_SAMPLE_MERGE_H

#include "sample.h"

/* A CPU's sample: `k` items of a window of n elements; k = 0 only if it is empty. */
struct pacer_sample_part {
	__u64 n;
	__u32 k;
	struct pacer_sample_item *item;
};

/* An item of a merged sample: which part it is from, and which of its items. */
struct pacer_sample_origin {
	__u32 part;
	__u32 item;
};

/* A part that holds items, in proportion to its n; `parts` if all are empty. */
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

/* Where the j-th of a merged sample comes from: the j-th of a part. Those are independent, so that
 * these are. A part of fewer samples than are asked for repeats itself: then they are uniform, but
 * not independent. part == parts if all are empty.
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

/* Draws elements of the union one after the other: of a part in proportion to its elements not yet
 * drawn, and there any of its items left. Takes the parts apart: their n, k and the order of their
 * items change. A part of fewer than k items holds all its window, and n is their number. Returns
 * the number in out: k, or all there are.
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
