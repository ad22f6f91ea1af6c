/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a sorted list of prefixes in few bytes (2 to 5 a prefix of IPv4 in large sets), and
 * back: what a set keeps of its prefixes beside the lines that packets read. Pure.
 *
 * A prefix is its distance from the one before, in units of its own size. Its length and value are
 * written where they change. Any bytes can be given to set_unpack.
 */
#ifndef PACER_SET_PACK_H
#define PACER_SET_PACK_H

#include "sets/list.h"

struct set_packed {
	uint8_t *byte;
	size_t n, room;
};

/* 0; -1: no memory. To be freed with set_packed_free. */
int set_pack(const struct set_list *list, struct set_packed *packed);
void set_packed_free(struct set_packed *packed);

/* Appends to *list what is packed. 0; -1: no memory (errno ENOMEM), or no such list (EBADMSG). */
int set_unpack(const uint8_t *byte, size_t n, struct set_list *list);

#endif
