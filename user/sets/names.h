/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: names of a set's values, numbered as they come. Memory: freed with set_names_free. */
#ifndef PACER_SET_NAMES_H
#define PACER_SET_NAMES_H

#include "sets/range.h"

#define SET_NAME_MAX 63 /* bytes of a name */

/* What the values stand for: value i + 1 is name[i]. None in a plain set. */
struct set_names {
	char **name;
	uint32_t n;
	uint32_t *place; /* by hash: a value, or 0 */
	uint32_t places; /* a power of two */
};

#define SET_NAME_TODO \
	"it has 1 to 63 bytes of UTF-8, of which none is a '\"' or a control character"

_Static_assert(SET_NAME_MAX == 63, "SET_NAME_TODO says so, and a fleet's and a policy's errors");

/*
 * May a value have that name, without the blanks around it (set_trim)? It is shown as it is, on
 * terminals, too.
 */
bool set_name_fits(struct set_word name);
/* The name's value, a new one if there is none. -1: no memory (errno), or 65535 names (EFBIG). */
int set_names_add(struct set_names *names, struct set_word word);
/* The value of that name, or 0. */
uint16_t set_names_find(const struct set_names *names, const char *name);
void set_names_free(struct set_names *names);

#endif
