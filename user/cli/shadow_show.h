/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: what a shadow has found, as text and as JSON. */
#ifndef PACER_SHADOW_SHOW_H
#define PACER_SHADOW_SHOW_H

#include "live/attached.h"

/* A line; what was counted, by rule and reason; that of one that was promoted, with what its limits
 * have not counted; and the keys with it. JSON has the keys unless only counts are asked for.
 */
enum shadow_part { SHADOW_LINE, SHADOW_COUNTS, SHADOW_PROMOTED, SHADOW_WHOLE };

/* Emits an object of that name. 0, or -1 with *error filled and nothing emitted. */
int shadow_show(const struct attached *shadow, const char *name, enum shadow_part part,
		struct policy_error *error);
/* The same of the pacer's shadow, as "shadow"; null where it has none. */
void shadow_show_of(const struct attached *a, enum shadow_part part);

#endif
