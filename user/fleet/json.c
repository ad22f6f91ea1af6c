/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/json.h"

#include <stdlib.h>

static bool lacked;

static void *counted(size_t size)
{
	void *at = malloc(size);

	lacked |= !at;
	return at;
}

void json_count_failures(void)
{
	json_set_alloc_funcs(counted, free);
	lacked = false;
}

bool json_lacked(void)
{
	bool was = lacked;

	lacked = false;
	return was;
}

char *json_whole(const json_t *value, size_t flags)
{
	size_t size = value ? json_dumpb(value, NULL, 0, flags) : 0;
	char *text = size ? malloc(size + 1) : NULL;

	if (!text)
		return NULL;
	if (json_dumpb(value, text, size, flags) != size) {
		free(text);
		return NULL;
	}
	text[size] = 0;
	return text;
}
