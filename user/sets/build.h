/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a list of prefixes to the lines in which packets look (set.h). Pure.
 *
 * Memory: the lines, and 32 bytes for each cell while it builds; freed with set_lines_free. One
 * thread.
 */
#ifndef PACER_SET_BUILD_H
#define PACER_SET_BUILD_H

#include "set.h"
#include "sets/list.h"

struct set_lines {
	union pacer_set_line *line; /* at a page's begin */
	uint32_t n;
	size_t mapped; /* bytes */
};

/*
 * Build the lines of a sorted list. `seed` chooses the hash: any number; what sends packets should
 * not know it. 0; -1: no memory, or more lines than 2^28 (errno ENOMEM, EFBIG).
 */
int set_build(const struct set_list *list, uint64_t seed, struct set_lines *lines);
/* The number of the first of n more lines, all 0, behind those of a set; 0: as set_build. */
uint32_t set_lines_more(struct set_lines *lines, size_t n);
void set_lines_free(struct set_lines *lines);

/* The same lines for set.h's readers. */
static inline struct pacer_set set_lines_set(const struct set_lines *lines)
{
	return (struct pacer_set){lines->line, lines->n};
}

#endif
