/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/json.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * jansson 2.14 writes behind the end of a string for which its buffer could not grow. So what first
 * fails while it reads gets memory of our own, untouched until then; the text ends there, and what
 * was read is thrown away. That buffer grows to twice the text at most; SLACK is for the value that
 * it was in.
 */
#define RESERVE (4u << 20)
#define SLACK	(64u << 10)

static _Alignas(max_align_t) char short_reserve[RESERVE];
static char *reserve = short_reserve;
static size_t reserve_size = RESERVE, reserved; /* of it */
static bool lacked, reading;

/*
 * Empty values take 80 times the length of their text, and who sends it chooses them. Decisions and
 * a store's answers take 11 times their length at most.
 */
#define MEMORY_PER_BYTE 16u
#define MEMORY_ANYWAY	(1u << 20)

static size_t allowed; /* that what is read may yet take */
static bool crowded;   /* it wanted more */

static void *allowed_memory(size_t size)
{
	if (!reading)
		return malloc(size);
	crowded |= size > allowed;
	if (crowded)
		return NULL;
	allowed -= size;
	return malloc(size);
}

static void *counted(size_t size)
{
	void *at = allowed_memory(size);
	size_t rest = reserve_size - reserved;

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
	if ((uintptr_t)at - (uintptr_t)reserve >= reserve_size)
		free(at);
}

void json_count_failures(void)
{
	json_set_alloc_funcs(counted, uncount);
	lacked = false;
}

struct rest {
	const char *text;
	size_t len;
};

/* One byte at a time, so that nothing more is read once memory has run out. */
static size_t next_byte(void *to, size_t room, void *arg)
{
	struct rest *rest = arg;

	(void)room;
	if (!rest->len || lacked)
		return 0;
	*(char *)to = *rest->text++;
	rest->len--;
	return 1;
}

static bool reserve_for(size_t len)
{
	size_t size = 2 * len + SLACK;

	if (size <= RESERVE)
		return true;
	reserve = malloc(size);
	reserve_size = size;
	if (reserve)
		return true;
	reserve = short_reserve;
	reserve_size = RESERVE;
	return false;
}

static void reserve_again(void)
{
	if (reserve != short_reserve)
		free(reserve);
	reserve = short_reserve;
	reserve_size = RESERVE;
	reserved = 0;
}

json_t *json_read(const char *text, size_t len, size_t flags, json_error_t *why)
{
	struct rest rest = {text, len};
	bool before = json_lacked();
	json_t *value = NULL;

	lacked = !reserve_for(len);
	crowded = false;
	if (!lacked) {
		allowed = MEMORY_PER_BYTE * len + MEMORY_ANYWAY;
		reading = true;
		value = json_load_callback(next_byte, &rest, flags, why);
		reading = false;
	}
	if (lacked) {
		json_decref(value);
		value = NULL;
	}
	if (crowded) {
		lacked = false;
		if (why) {
			why->line = -1;
			snprintf(why->text, sizeof(why->text), "it has more values than text");
		}
	}
	reserve_again();
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
