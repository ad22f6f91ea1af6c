/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a set of prefixes as a list: put together in any order, then sorted, without duplicates.
 *
 * Memory: 24 bytes a prefix, and as much again while it grows or is sorted; freed with
 * set_list_free. One thread.
 */
#ifndef PACER_SET_LIST_H
#define PACER_SET_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/units.h"

#define SET_PREFIXES_MAX 10000000u
#define SET_VALUE_MAX	 65535u

/* A prefix, its host bits 0. An IPv4 address is the first 32 of the 128 bits. */
struct set_entry {
	uint64_t high, low;
	uint32_t line; /* of the file, from 1; 0: of none */
	uint16_t value;
	uint8_t family; /* 4 or 6 */
	uint8_t len;
};

struct set_about;

struct set_list {
	struct set_entry *entry; /* once sorted: by family, address, length */
	size_t n, room;
	uint64_t duplicates;	       /* that sorting removed */
	const struct set_about *about; /* where keys have its values (words.h); not its own */
};

/* Append a prefix. 0; -1: no memory, and the list is as it was. */
int set_list_add(struct set_list *list, const struct set_entry *entry);
/*
 * Sort, and remove all but the first of equal prefixes. 0; -1: no memory; 1: a prefix has two
 * values: *one is the first and *other the second. The list is to be freed then.
 */
int set_list_sort(struct set_list *list, struct set_entry *one, struct set_entry *other);
void set_list_free(struct set_list *list);

/* By the longest prefix: its value, or 0. Looks at every entry, sorted or not. */
uint16_t set_list_value(const struct set_list *list, int family, uint64_t high, uint64_t low);
/* The entry of exactly this prefix in a sorted list, or NULL. */
const struct set_entry *set_list_find(const struct set_list *list, const struct set_entry *prefix);

/* Below 0, 0 or above: one comes before the other, they are of one prefix, or it comes after. */
int set_entry_order(const struct set_entry *one, const struct set_entry *other);
/* The last address of an entry, as high and low. */
void set_entry_last(const struct set_entry *entry, uint64_t *high, uint64_t *low);
struct set_entry set_entry_of(const struct prefix *prefix, uint16_t value, uint32_t line);
struct prefix set_entry_prefix(const struct set_entry *entry);

#endif
