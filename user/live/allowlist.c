/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/allowlist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for a policy and the list before it, both full in both families. */
#define ROOM (4 * (size_t)PACER_ALLOW_MAX + 2)

uint64_t allow_until_ns(const struct allow_entry *entry)
{
	return entry->of_policy ? 0 : entry->hand_until_ns;
}

bool allow_has_lapsed(const struct allow_entry *entry, uint64_t now_ns)
{
	return allow_until_ns(entry) && allow_until_ns(entry) <= now_ns;
}

int allowlist_init(struct allowlist *list)
{
	*list = (struct allowlist){calloc(ROOM, sizeof(*list->entry)), 0, ROOM};
	return list->entry ? 0 : -1;
}

void allowlist_free(struct allowlist *list)
{
	free(list->entry);
	*list = (struct allowlist){NULL, 0, 0};
}

bool allowlist_append(struct allowlist *list, const struct allow_entry *entry)
{
	if (list->n == list->room)
		return false;
	list->entry[list->n++] = *entry;
	return true;
}

/* Orders by family, address and length. */
static int by_prefix(const void *a, const void *b)
{
	const struct prefix *p = &((const struct allow_entry *)a)->prefix;
	const struct prefix *q = &((const struct allow_entry *)b)->prefix;
	int addr = memcmp(p->addr, q->addr, sizeof(p->addr));

	if (p->family != q->family)
		return p->family - q->family;
	return addr ? addr : p->len - q->len;
}

void allowlist_sort(struct allowlist *list)
{
	if (list->n)
		qsort(list->entry, list->n, sizeof(*list->entry), by_prefix);
}

const struct allow_entry *allowlist_find(const struct allowlist *list, const struct prefix *prefix)
{
	struct allow_entry key = {.prefix = *prefix};

	if (!list->n)
		return NULL;
	return bsearch(&key, list->entry, list->n, sizeof(key), by_prefix);
}

/* Each shorter prefix that holds this one is the last, without another of its bits. */
uint64_t allowlist_until_ns(const struct allowlist *list, const struct prefix *listed)
{
	struct prefix p = *listed;
	uint64_t until_ns = 1; /* nobody's: a time that is over */

	for (;; p.len--) {
		const struct allow_entry *e = allowlist_find(list, &p);
		uint64_t end_ns = e ? allow_until_ns(e) : until_ns;

		if (!end_ns)
			return 0;
		if (end_ns > until_ns)
			until_ns = end_ns;
		if (!p.len)
			return until_ns;
		p.addr[(p.len - 1) / 8] &= (uint8_t) ~(0x80 >> (p.len - 1) % 8);
	}
}

bool allowlist_put(struct allowlist *list, const struct allow_entry *entry)
{
	size_t i = 0;

	while (i < list->n && by_prefix(&list->entry[i], entry) < 0)
		i++;
	if (i == list->n || by_prefix(&list->entry[i], entry)) {
		if (!allowlist_append(list, entry))
			return false;
		memmove(&list->entry[i + 1], &list->entry[i],
			(list->n - 1 - i) * sizeof(*list->entry));
	}
	list->entry[i] = *entry;
	return true;
}

void allowlist_take(struct allowlist *list, const struct prefix *prefix)
{
	const struct allow_entry *e = allowlist_find(list, prefix);
	size_t i = e ? (size_t)(e - list->entry) : list->n;

	if (!e)
		return;
	list->n--;
	memmove(&list->entry[i], &list->entry[i + 1], (list->n - i) * sizeof(*list->entry));
}

size_t allowlist_count(const struct allowlist *list, int family)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		n += list->entry[i].prefix.family == family;
	return n;
}

/* Merges neighbouring entries of the same prefix. */
static void merge_equal(struct allowlist *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct allow_entry *e = &list->entry[i];
		struct allow_entry *last = n ? &list->entry[n - 1] : NULL;

		if (!last || by_prefix(last, e)) {
			list->entry[n++] = *e;
			continue;
		}
		last->of_policy |= e->of_policy;
		if (e->by_hand)
			last->hand_until_ns = e->hand_until_ns;
		last->by_hand |= e->by_hand;
	}
	list->n = n;
}

int allowlist_next(const struct policy *policy, const struct allowlist *now, uint64_t now_ns,
		   struct allowlist *next)
{
	next->n = 0;
	for (size_t i = 0; i < policy->n_allow; i++) {
		struct allow_entry entry = {.prefix = policy->allow[i], .of_policy = true};

		if (!allowlist_append(next, &entry))
			return entry.prefix.family;
	}
	for (size_t i = 0; i < now->n; i++) {
		struct allow_entry entry = now->entry[i];

		entry.of_policy = false;
		if (!entry.by_hand || allow_has_lapsed(&entry, now_ns))
			continue;
		if (!allowlist_append(next, &entry))
			return entry.prefix.family;
	}
	allowlist_sort(next);
	merge_equal(next);
	return allowlist_count(next, 4) > PACER_ALLOW_MAX   ? 4
	       : allowlist_count(next, 6) > PACER_ALLOW_MAX ? 6
							    : 0;
}

struct allow_entry allow_by_hand(const struct allow_entry *entry, const struct allow_entry *old)
{
	struct allow_entry result = *entry;

	result.by_hand = true;
	result.of_policy = old && old->of_policy;
	return result;
}

const char *allow_left_text(uint64_t left_ns, char *buf, size_t size)
{
	static const struct {
		uint64_t s;
		char name;
	} unit[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	uint64_t left_s = left_ns / 1000000000 + !!(left_ns % 1000000000);
	size_t i = 0;

	while (i < 3 && left_s < unit[i].s)
		i++;
	if (i < 3 && left_s % unit[i].s / unit[i + 1].s)
		snprintf(buf, size, "%llu%c %llu%c", (unsigned long long)(left_s / unit[i].s),
			 unit[i].name, (unsigned long long)(left_s % unit[i].s / unit[i + 1].s),
			 unit[i + 1].name);
	else
		snprintf(buf, size, "%llu%c", (unsigned long long)(left_s / unit[i].s),
			 unit[i].name);
	return buf;
}
