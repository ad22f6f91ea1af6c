/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the sets of prefixes of a pacer at work: a map of maps, with a place for each set of
 * each copy of the policy. A set is put in its place whole and at once: a packet has the old one or
 * the new one, and whoever is killed has put it there or not. Its prefixes lie behind the lines
 * that packets read, so they come and go with them.
 *
 * Functions return 0, or -1 with errno. One thread; changes of several processes wait for each
 * other elsewhere (change.h).
 */
#ifndef PACER_SET_MAPS_H
#define PACER_SET_MAPS_H

#include "sets/hand.h"

/* An empty map of maps of that many places, before an object is loaded: its descriptor, or -1. */
int set_maps_make(uint32_t places);
/* The lines that a set takes with its list, 64 bytes each; 0: errno. It builds them and lets go. */
uint64_t set_maps_lines(const struct set_list *list);

/*
 * A map with a sorted list, in no place yet: its descriptor, to be closed; -1. The serial is any
 * number: two sets that follow each other should not have the same by chance. ENOMEM: the kernel
 * has no room for it.
 */
int set_maps_new(const struct set_list *list, uint32_t serial);
/* The same of what is added by hand to the set of that serial; settled. EFBIG: too much. */
int set_maps_new_hand(const struct set_hand *hand, uint32_t serial);
/* A serial by chance, of a set that a policy brings; 0: errno. */
uint32_t set_maps_serial(void);

#define SET_MAPS_REPLACED 0xfu /* of a serial: how often the set was replaced, modulo 16 */

/* The serial of what replaces a set under the same policy. */
static inline uint32_t set_maps_next_serial(uint32_t serial)
{
	return (serial & ~SET_MAPS_REPLACED) | ((serial + 1) & SET_MAPS_REPLACED);
}

/* Are both of the set that one policy brought, however often that was replaced? */
static inline bool set_maps_goes_on(uint32_t before, uint32_t serial)
{
	return before && serial && !((before ^ serial) & ~SET_MAPS_REPLACED);
}

/* The map at a place: a descriptor, to be closed. ENOENT: there is none. */
int set_maps_at(int fd, uint32_t place);
/*
 * Put a map in a place; -1: leave it empty. On return no packet has what was there before. To put
 * one in a second place, too, is no copy.
 */
int set_maps_move(int fd, uint32_t place, int inner_fd);
/*
 * Put maps in n places by one call of the kernel, which no signal ends: who is killed has put all
 * of them there or none. Packets may for a moment have the first ones only. -1: some may be there.
 */
int set_maps_move_all(int fd, const uint32_t *place, const int *inner_fd, uint32_t n);
/* set_maps_new, and put in its place. */
int set_maps_put(int fd, uint32_t place, const struct set_list *list);
/* Put the set of one place into another, too. ENOENT: there is none, and the other is empty now. */
int set_maps_share(int fd, uint32_t from, uint32_t to);

/* The head of the set at a place. ENOENT: there is none. */
int set_maps_head(int fd, uint32_t place, struct pacer_set_head *head);
/* Its lines, as packets read them: to be freed with set_lines_free. ENOENT; EBADMSG. */
int set_maps_lines_of(int fd, uint32_t place, struct set_lines *lines);
/* Its prefixes, sorted: appended to *list. ENOENT; EBADMSG: what is there is no set. */
int set_maps_list(int fd, uint32_t place, struct set_list *list);
/* What is there by hand, appended: nothing where there is none. EBADMSG. */
int set_maps_hand(int fd, uint32_t place, struct set_hand *hand);

#endif
