/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the limits of a rule, from YAML: one table of their fields (name, value, help, kind),
 * which reading, `set`, `show --diff`, `help limits` and the man page go by, and for each kind what
 * its fields have to agree in. For the sources of this wing.
 */
#ifndef PACER_LIMITS_H
#define PACER_LIMITS_H

#include "config/document.h"

/* The field `limits` of a struct policy_rule. */
reader limits_read;

extern const struct fields limits_fields;
const char *limits_kind_of(const struct field *field); /* "gap"; "any" */

/* Fields of a limit that can be set, counted from 0: all but its key, which its state hangs on.
 * NULL: no more.
 */
const char *limits_field_to_set(size_t i);

/* Throttles, of pools as well. `threshold` and `max_cooldown` are the lines of these fields, 0
 * where they are not written.
 */
int MUST_USE limits_uses(struct source *s, const struct place *at, const yaml_node_t *node,
			 uint64_t *uses);
void limits_complete_throttle(struct policy_throttle *t);
int MUST_USE limits_check_throttle(struct source *s, const struct place *at,
				   const struct policy_throttle *t, int threshold,
				   int max_cooldown);

#endif
