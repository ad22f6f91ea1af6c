/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: those tests of a table whose names have one of the words of the command line. */
#ifndef PACER_NAMED_H
#define PACER_NAMED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Moves them to the front; returns how many they are. */
static inline size_t named_first(struct CMUnitTest *tests, size_t n, char *const *words)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; words[k]; k++)
			if (strstr(tests[i].name, words[k])) {
				tests[kept++] = tests[i];
				break;
			}
	return kept;
}

#endif
