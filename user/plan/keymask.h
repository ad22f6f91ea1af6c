/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: the operator's keys as the masks that the packet path hashes under (key.h). Pure. */
#ifndef PACER_KEYMASK_H
#define PACER_KEYMASK_H

#include <string.h>

#include "config/policy.h"

/* Fill mask4, mask6, key_id and src_only. */
void key_masks(const struct policy_key *key, struct pacer_limiter *t);

/* The key of a pacer_limiter.key_id, without the names of sets. */
struct policy_key compile_key_of(uint32_t key_id);

/*
 * Sets of the policy by whose values limits of *bin count, those that drain included, keep them.
 * Call it before they are read (sets/texts.h), where the policy is to follow *bin.
 */
void keymask_keep_values(struct policy *policy, const struct pacer_policy *bin);
/* The number of a set of the policy whose values limits of *bin count by, and whose values it does
 * not keep; -1: there is none. */
int keymask_lost_values(const struct policy *policy, const struct pacer_policy *bin);

static inline bool keymask_same(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	return !memcmp(a->mask4, b->mask4, sizeof(a->mask4)) &&
	       !memcmp(a->mask6, b->mask6, sizeof(a->mask6)) &&
	       !memcmp(a->value_set, b->value_set, sizeof(a->value_set));
}

#endif
