/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the parts of a policy, each in a file of its own: the table of its fields, which
 * reading, `set`, `show --diff`, `help policy` and the man page go by; what reads it; and what only
 * the whole policy can tell. For the sources of this wing. Limits are in limits.h.
 */
#ifndef PACER_PARTS_H
#define PACER_PARTS_H

#include "config/document.h"

extern const struct fields parts_match, parts_rule, parts_pool, parts_set, parts_sample,
    parts_fleet;

/* The fields of a part, in the order in which they are told. Valid for ever. */
const struct fields *parts_fields(enum policy_part part);

/* The field `match` of a struct policy_rule, and those of a struct policy. */
reader parts_read_match, parts_read_rules, parts_read_pools, parts_read_sets, parts_read_sample;
reader parts_read_fleet;

/* Lists of numbers that mean what the other match's mean are then the same lists: [81, 80] and
 * 80-81. */
void parts_match_agree(struct policy_match *m, const struct policy_match *other);

/*
 * Of a policy that was read: the pools and sets that its rules name, which may stand behind them;
 * and that there is a fleet where something is shared.
 */
int MUST_USE parts_find_pools(struct source *s, struct policy *policy);
int MUST_USE parts_find_sets(struct source *s, struct policy *policy);
int MUST_USE parts_find_fleet(struct source *s, const struct policy *policy);

/* What a rule with a verdict says, and `else`: drop, pass or pool NAME. What passes is not denied
 * first. */
int MUST_USE parts_read_says(struct source *s, const struct place *at, const yaml_node_t *node,
			     enum pacer_says *says, enum pacer_over *over,
			     char pool_name[POLICY_NAME_MAX]);
const char *parts_action_name(enum pacer_over over);

#endif
