/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: which maps a program has, be it ours or another's.
 *
 * Functions return what they say, or -errno where that cannot be read. One thread.
 */
#ifndef PACER_PROG_MAPS_H
#define PACER_PROG_MAPS_H

#include <stddef.h>
#include <stdint.h>

#define PROG_MAPS_MAX 64 /* of the kernel: MAX_USED_MAPS */

/* The ids of its maps. Returns how many. */
int prog_maps_read(int prog_fd, uint32_t ids[PROG_MAPS_MAX]);
/* 1: it has one of the n maps, where an id of 0 is none; 0. That of a network card that is gone
 * has none. */
int prog_maps_has(int prog_fd, const uint32_t *map_id, size_t n);
/* The same, by its id. 0 also where it has gone. */
int prog_maps_id_has(uint32_t prog_id, const uint32_t *map_id, size_t n);

#endif
