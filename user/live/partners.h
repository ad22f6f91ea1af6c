/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: which interfaces share the state of a pacer (`load --shared`): those of this network
 * namespace by name, and whether there is one in another.
 *
 * Functions return -1 with *error filled with one line: what, where, what to do. One thread: they
 * may look into other network namespaces.
 */
#ifndef PACER_PARTNERS_H
#define PACER_PARTNERS_H

#include "live/attached.h"

/*
 * Calls `each` for every other interface of this network namespace that shares its state, until it
 * returns other than 0, and returns that. -1 also where an interface of another network namespace
 * shares it, which is looked for where the state was loaded for several; or where one cannot be
 * looked at: then it may share it. One that has just gone does not.
 */
int partners_each(const struct attached *a, int (*each)(const char *ifname, void *arg), void *arg,
		  struct policy_error *error);
/*
 * Those of this network namespace alone: all but `but`, by a map that is of the state alone (0: it
 * is not known).
 */
int partners_here(const char *but, uint32_t map_id, int (*each)(const char *ifname, void *arg),
		  void *arg, struct policy_error *error);
/*
 * Does an interface of the machine, in whichever network namespace, carry a program with the map of
 * this number? 1, 0; -1: it cannot be told.
 */
int partners_carried(uint32_t map_id);

#endif
