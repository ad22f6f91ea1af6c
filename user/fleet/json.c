/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/json.h"

#include <stddef.h>
#include <stdlib.h>

/*
 * jansson 2.14 writes behind the end of a string for which its buffer could not grow. So reading
 * ends on memory of its own, untouched until then, and what was read is thrown away.
 */
#define RESERVE (4u << 20)

static _Alignas(max_align_t) char reserve[RESERVE];
static size_t reserved; /* of it */
static bool lacked, reading;

static void *counted(size_t size)
{
	void *at = malloc(size);
	size_t rest = RESERVE - reserved;

	lacked |= !at;
	if (at || !reading || size > rest)
		return at;
	at = reserve + reserved;
	size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	reserved += size < rest ? size : rest;
	return at;
}

static void uncount(void *at)
{
	if ((char *)at < reserve || (char *)at >= reserve + RESERVE)
		free(at);
}

void json_count_failures(void)
{
	json_set_alloc_funcs(counted, uncount);
	lacked = false;
}

json_t *json_read(const char *text, size_t len, size_t flags, json_error_t *why)
{
	bool before = json_lacked();
	json_t *value;

	reading = true;
	value = json_loadb(text, len, flags, why);
	reading = false;
	if (lacked) {
		json_decref(value);
		value = NULL;
		reserved = 0;
	}
	lacked |= before;
	return value;
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
