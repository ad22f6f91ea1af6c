/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: puts a pacer on an interface, by itself or under libxdp's dispatcher, or in the place of
 * the one that is there.
 *
 * Functions return 0, or -1 with *error filled with one line: what, where, what to do. One thread.
 */
#ifndef PACER_ATTACH_H
#define PACER_ATTACH_H

#include "live/attached.h"
#include "live/object.h"
#include "live/pins.h"
#include "live/site.h"

struct attach_options {
	enum site_mode mode;
	bool mode_given; /* somebody asked for it: serve takes over none in another */
	bool direct;	 /* not through the libxdp dispatcher, even where the kernel has it */
	bool replace;	 /* replace a pacer of any version */
	bool pin;	 /* with pins for other tools (pinned.h) */
};

/* The pacer that was replaced; program_id 0: none. */
struct attach_replaced {
	uint32_t program_id, abi;
	uint32_t map_id; /* one of its maps that are of its state alone; 0: not known */
};

/*
 * Attaches a pacer to each of n interfaces, or replaces the one there, and finds it: a[i] and
 * replaced[i] are of ifnames[i]. Each has a state of its own, or (begin->shared) all have one. If
 * one fails, all interfaces are as they were before.
 */
int attach_pacers(const char *const *ifnames, size_t n, const struct attach_options *options,
		  const struct object_begin *begin, struct attached *a,
		  struct attach_replaced *replaced, struct policy_error *error);
/*
 * Puts this program in the place of the pacer's, over the same maps: its policy, what it holds and
 * its counters go on, and every packet is judged by the one or the other (under the libxdp
 * dispatcher, for a moment by both). Refused where the ABI differs. If it fails, the interface is
 * as it was before. `pin`: with pins for other tools; else it has them if it had some.
 */
int attach_upgrade(const char *ifname, bool pin, struct attached *attached,
		   struct attach_replaced *replaced, struct policy_error *error);
/* Loads a program that is opened. */
int attach_load(const char *ifname, struct object *object, struct policy_error *error);
/*
 * Puts a program that is opened and not loaded in the place of the pacer that is attached there,
 * and finds it. `ready`, if not NULL, is called once it is loaded and before any packet comes to
 * it, or under libxdp's dispatcher, right after. If anything fails, the interface is as it was
 * before.
 */
typedef int attach_ready(struct object *object, const char *ifname, int ifindex, void *arg,
			 struct policy_error *error);
int attach_instead(const char *ifname, struct object *object, attach_ready *ready, void *arg,
		   struct attached *attached, struct policy_error *error);

#endif
