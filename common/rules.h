/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: a set of rules, a bit for each, 64 in a word. The first rule of a set is its lowest bit.
 *
 * Most policies have no more than 64 rules. Their sets are one word, which the functions that look
 * for a packet's rule have in a register (classify.h, more.h). Those with `many` in their names are
 * for policies with more rules, and for these alone: so few rules pay nothing for many.
 *
 * Concurrency: pure. Memory: 8 bytes for 64 rules.
 */
#ifndef PACER_RULES_H
#define PACER_RULES_H

#include "abi.h"

_Static_assert(sizeof(struct pacer_rules) * 8 == PACER_RULES_MAX, "a bit for each rule");

/*
 * Index of the lowest bit of a word that is not empty. It uses branches: they are predicted as for
 * the packet before, so nothing waits for a sum. The opaque values keep compilers from removing the
 * branches.
 */
PACER_INLINE __u32 pacer_lowest(__u64 set)
{
	__u32 i = 0, width;

	for (width = 32; width; width /= 2)
		if (!(set & ((1ull << width) - 1))) {
			set >>= width;
			i = pacer_opaque(i + width);
		}
	return i;
}

/* The bits of a word for the rules below `rule`. */
PACER_INLINE __u64 pacer_rules_below(__u32 word, __u32 rule)
{
	if (rule >= 64 * word + 64)
		return ~0ull;
	return rule > 64 * word ? (1ull << (rule & 63)) - 1 : 0;
}

PACER_INLINE int pacer_rules_has(const struct pacer_rules *set, __u32 rule)
{
	return set->word[rule / 64] >> (rule & 63) & 1;
}

/* Puts the rule in, if `in` is not 0. */
PACER_INLINE void pacer_rules_put(struct pacer_rules *set, __u32 rule, int in)
{
	set->word[rule / 64] |= (__u64) !!in << (rule & 63);
}

/* All rules below `n`. */
PACER_INLINE struct pacer_rules pacer_rules_first(__u32 n)
{
	struct pacer_rules set;
	__u32 i;

	for (i = 0; i < PACER_RULE_WORDS; i++)
		set.word[i] = pacer_rules_below(i, n);
	return set;
}

PACER_INLINE int pacer_rules_same(const struct pacer_rules *a, const struct pacer_rules *b)
{
	__u64 differ = 0;
	__u32 i;

	for (i = 0; i < PACER_RULE_WORDS; i++)
		differ |= a->word[i] ^ b->word[i];
	return !differ;
}

/* The row of range i of a wide field (struct pacer_span). */
PACER_INLINE __u32 pacer_span_row(__u32 i)
{
	return i < PACER_MORE_ABSENT ? i : i + PACER_BYTE_ROWS - PACER_MORE_ABSENT;
}

/* What a packet's sets say of the rules. */
struct pacer_uses {
	struct pacer_set_use word[PACER_RULE_WORDS];
};

/* Takes out what is not in `by`. */
PACER_INLINE void pacer_rules_keep(struct pacer_rules *set, const struct pacer_rules *by)
{
	__u32 i;

	for (i = 0; i < PACER_RULE_WORDS; i++)
		set->word[i] &= by->word[i];
}

/* Takes out what is in `by`. */
PACER_INLINE void pacer_rules_drop(struct pacer_rules *set, const struct pacer_rules *by)
{
	__u32 i;

	for (i = 0; i < PACER_RULE_WORDS; i++)
		set->word[i] &= ~by->word[i];
}

/* The first rule; PACER_RULES_MAX: there is none. */
PACER_INLINE __u32 pacer_rules_lowest(const struct pacer_rules *set)
{
	__u32 i;

	for (i = 0; i < PACER_RULE_WORDS; i++)
		if (set->word[i])
			return 64 * i + pacer_lowest(set->word[i]);
	return PACER_RULES_MAX;
}

#endif
