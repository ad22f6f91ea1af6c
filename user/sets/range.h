/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: one element of a set as text: an address, a prefix or a range; and a range cut into
 * prefixes. Pure.
 */
#ifndef PACER_SET_RANGE_H
#define PACER_SET_RANGE_H

#include "sets/list.h"

/* Some text within another; no NUL behind it. */
struct set_word {
	const char *at;
	size_t n;
};

/* From the first to the last address, as in set_entry. */
struct set_range {
	uint64_t first_high, first_low, last_high, last_low;
	uint8_t family;
};

enum set_wrong {
	SET_RIGHT,
	SET_NO_ADDRESS,
	SET_NO_LENGTH, /* what follows the '/' */
	SET_NETMASK,   /* a netmask follows it */
	SET_HOST_BITS, /* *range is then the prefix that may be meant */
	SET_BACKWARDS, /* the range ends before it begins */
	SET_FAMILIES,  /* it ends in another family */
	SET_MAPPED,    /* ::ffff:192.0.2.1 */
};

enum set_wrong set_range_read(struct set_word word, struct set_range *range);
/* Are all addresses of b in a? */
bool set_range_within(const struct set_range *a, const struct set_range *b);
/* Is it an address alone? */
int set_is_address(struct set_word word);
/* "24": a number up to `most`. 0, or -1: it is none. */
int set_read_length(struct set_word word, unsigned int most, unsigned int *length);
/* To whole prefixes of that length (1 or more, that its family has): all that it has a part of. */
void set_range_widen(struct set_range *range, unsigned int length);
/* Append the range's prefixes, the fewest there are. 0; -1: no memory. */
int set_range_add(const struct set_range *range, uint16_t value, uint32_t line,
		  struct set_list *list);

/* Without blanks at its ends. */
struct set_word set_trim(struct set_word word);

#endif
