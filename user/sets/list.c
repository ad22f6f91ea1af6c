/* SPDX-License-Identifier: GPL-2.0-only */
#include "sets/list.h"

#include <stdlib.h>
#include <string.h>

int set_list_add(struct set_list *list, const struct set_entry *entry)
{
	if (list->n == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		struct set_entry *more = realloc(list->entry, room * sizeof(*more));

		if (!more)
			return -1;
		list->entry = more;
		list->room = room;
	}
	list->entry[list->n++] = *entry;
	return 0;
}

void set_list_free(struct set_list *list)
{
	free(list->entry);
	*list = (struct set_list){.n = 0};
}

static int by_prefix(const struct set_entry *a, const struct set_entry *b)
{
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	if (a->high != b->high)
		return a->high < b->high ? -1 : 1;
	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	return (a->len > b->len) - (a->len < b->len);
}

int set_entry_order(const struct set_entry *one, const struct set_entry *other)
{
	return by_prefix(one, other);
}

/* Merges the sorted halves of `from` into `to`; what is equal keeps its order. */
static void merge(const struct set_entry *from, size_t n, size_t half, struct set_entry *to)
{
	size_t a = 0, b = half;

	for (size_t i = 0; i < n; i++)
		to[i] = b >= n || (a < half && by_prefix(&from[a], &from[b]) <= 0) ? from[a++]
										   : from[b++];
}

static void insert_each(struct set_entry *entry, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct set_entry e = entry[i];
		size_t at = i;

		for (; at && by_prefix(&entry[at - 1], &e) > 0; at--)
			entry[at] = entry[at - 1];
		entry[at] = e;
	}
}

#define RUN 16 /* sorted by insertion */

/* By merging, with as much room again. */
static int sort(struct set_list *list)
{
	struct set_entry *from = list->entry, *to = malloc(list->n * sizeof(*to)), *swap;

	if (!to)
		return -1;
	for (size_t i = 0; i < list->n; i += RUN)
		insert_each(from + i, list->n - i < RUN ? list->n - i : RUN);
	for (size_t width = RUN; width < list->n; width *= 2) {
		for (size_t i = 0; i < list->n; i += 2 * width) {
			size_t n = list->n - i < 2 * width ? list->n - i : 2 * width;

			merge(from + i, n, n < width ? n : width, to + i);
		}
		swap = from;
		from = to;
		to = swap;
	}
	list->entry = from;
	list->room = list->n;
	free(to);
	return 0;
}

static bool is_sorted(const struct set_list *list)
{
	for (size_t i = 1; i < list->n; i++)
		if (by_prefix(&list->entry[i - 1], &list->entry[i]) > 0)
			return false;
	return true;
}

int set_list_sort(struct set_list *list, struct set_entry *one, struct set_entry *other)
{
	size_t n = 0;

	if (!is_sorted(list) && sort(list))
		return -1;
	for (size_t i = 0; i < list->n; i++) {
		struct set_entry *e = &list->entry[i], *last = n ? &list->entry[n - 1] : NULL;

		if (!last || by_prefix(last, e)) {
			list->entry[n++] = *e;
			continue;
		}
		if (last->value != e->value) {
			*one = *last;
			*other = *e;
			return 1;
		}
		list->duplicates++;
	}
	list->n = n;
	return 0;
}

static uint64_t ones(unsigned int n)
{
	return n >= 64 ? ~0ull : (1ull << n) - 1;
}

void set_entry_last(const struct set_entry *entry, uint64_t *high, uint64_t *low)
{
	unsigned int len = entry->len;

	*high = entry->high | (len < 64 ? ones(64 - len) : 0);
	*low = entry->low | ones(len < 64 ? 64 : 128 - len);
}

uint16_t set_list_value(const struct set_list *list, int family, uint64_t high, uint64_t low)
{
	const struct set_entry *longest = NULL;

	for (size_t i = 0; i < list->n; i++) {
		const struct set_entry *e = &list->entry[i];
		uint64_t last_high, last_low;

		if (e->family != family)
			continue;
		set_entry_last(e, &last_high, &last_low);
		if (high < e->high || (high == e->high && low < e->low) || high > last_high ||
		    (high == last_high && low > last_low))
			continue;
		if (!longest || e->len > longest->len)
			longest = e;
	}
	return longest ? longest->value : 0;
}

const struct set_entry *set_list_find(const struct set_list *list, const struct set_entry *prefix)
{
	size_t low = 0, high = list->n;

	while (low < high) {
		size_t at = low + (high - low) / 2;
		int order = by_prefix(&list->entry[at], prefix);

		if (!order)
			return &list->entry[at];
		if (order < 0)
			low = at + 1;
		else
			high = at;
	}
	return NULL;
}

struct set_entry set_entry_of(const struct prefix *prefix, uint16_t value, uint32_t line)
{
	struct set_entry e = {0, 0, line, value, prefix->family, prefix->len};
	size_t bytes = prefix->family == 4 ? 4 : 16;

	for (size_t i = 0; i < bytes && i < 8; i++)
		e.high |= (uint64_t)prefix->addr[i] << (56 - 8 * i);
	for (size_t i = 8; i < bytes; i++)
		e.low |= (uint64_t)prefix->addr[i] << (120 - 8 * i);
	return e;
}

struct prefix set_entry_prefix(const struct set_entry *entry)
{
	struct prefix p = {entry->family, entry->len, {0}};
	size_t bytes = entry->family == 4 ? 4 : 16;

	for (size_t i = 0; i < bytes; i++)
		p.addr[i] = i < 8 ? entry->high >> (56 - 8 * i) : entry->low >> (120 - 8 * i);
	return p;
}
