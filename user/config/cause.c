/* SPDX-License-Identifier: GPL-2.0-only */
#include "config/cause.h"

#include <stddef.h>
#include <string.h>

/* The digits of "31 ms" and the like; 0: none are here, or they tell of something else. */
static size_t measured(const char *text)
{
	static const char *const units[] = {" ms", " milliseconds", " out of ", " bytes"};
	size_t n = strspn(text, "0123456789");

	for (size_t i = 0; n && i < sizeof(units) / sizeof(*units); i++)
		if (!strncmp(text + n, units[i], strlen(units[i])))
			return n;
	return 0;
}

bool cause_same(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += measured(a);
		b += measured(b);
		if (*a != *b)
			return false;
		if (!*a)
			return true;
	}
}
