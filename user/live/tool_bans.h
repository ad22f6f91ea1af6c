/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the sources that other tools ban (pinned.h, docs/pins.md), for people: each, the one
 * that holds a source, and lifting them. They are the tools' own: nothing here writes one.
 *
 * Concurrency: beside tools that write: what they add or delete meanwhile may be missed. Whoever
 * writes as fast as this reads, it ends: after twice as many steps as a trie has entries.
 *
 * Memory: tool_bans_each takes 32 bytes an entry meanwhile, 16 MiB a trie at most.
 */
#ifndef PACER_TOOL_BANS_H
#define PACER_TOOL_BANS_H

#include "live/attached.h"

struct tool_ban {
	struct prefix prefix;
	uint64_t until_ns; /* PACER_NEVER: until it is deleted */
};

/*
 * Calls each for every ban that runs, once and by prefix, without its host bits. Where the pacer
 * was not loaded for tools, there are none. 0, or -1 with *error filled: not all could be read, or
 * listed for want of memory.
 */
int tool_bans_each(const struct attached *a,
		   void (*each)(const struct tool_ban *ban, uint64_t now_ns, void *arg), void *arg,
		   struct policy_error *error);
/* 1: by *ban a packet of that source is denied. 0: by none. -1 as above. */
int tool_bans_find(const struct attached *a, const struct prefix *source, uint64_t now_ns,
		   struct tool_ban *ban, struct policy_error *error);
/*
 * Deletes the prefix, or with NULL all. *n: how many bans that ended. 0, or -1 as above: one cannot
 * be lifted, or not all could be read.
 */
int tool_bans_lift(const struct attached *a, const struct prefix *prefix, size_t *n,
		   struct policy_error *error);

#endif
