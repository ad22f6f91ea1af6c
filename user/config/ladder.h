/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a line of `limits` that is a ladder: a limit for each of some prefix lengths, each wider
 * one larger. How it is written, and which limits it makes. For the sources of this wing.
 */
#ifndef PACER_LADDER_H
#define PACER_LADDER_H

#include "config/document.h"

/* Are these lengths of an address those of a ladder? "[32,24],[64,56]" */
bool ladder_has(const char *lengths);

/* Reads such lengths, of the address `part`, into *ladder. The text is cut up. */
int MUST_USE ladder_lengths(struct source *s, int line, const struct place *at, char *text,
			    const struct policy_key_part_name *part, struct policy_ladder *ladder);

/* The field `wider` of a struct policy_limit. */
reader ladder_read_wider;
writer ladder_write_wider;

/* Do the lengths and `wider` belong together? `wider` is the line of that, 0: it is not there. */
int MUST_USE ladder_settle(struct source *s, const struct place *at, int wider,
			   struct policy_limit *limit);

/*
 * Rung i of the line, from 0: its key and its value. Returns -1 where the value is more than can be
 * written down. A line that is no ladder has one rung, which is itself.
 */
int MUST_USE ladder_rung(const struct policy_limit *line, uint32_t i, struct policy_limit *rung);

#endif
