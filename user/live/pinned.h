/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: pins for other tools, of a pacer that they may ban sources with: a folder of the
 * interface's name under xdp-pacer/ in the BPF file system, with the two tries that they write
 * (abi.h, docs/pins.md). Nothing of ours is found by them: they tell other tools where the maps
 * are, and no more.
 *
 * The maps say whose a folder is: one of the two is enough, since the other may have been removed.
 * It has the pins where both are there. They stay for as long as the pacer's state does, whatever
 * program is over them, so that an upgrade, and a shadow that begins, ends or is promoted, leave
 * the pins as they are. Where no program of the machine has the maps, nobody uses the folder.
 *
 * A folder is made under another name, and gets its own in one step. Only folders with such maps
 * are ever removed, and empty ones, as whoever is killed while he removes one leaves.
 *
 * Concurrency: whoever makes or removes pins holds a lock on the folder of all. Error: where it
 * cannot be seen that no program has the maps, the pins stay.
 */
#ifndef PACER_PINNED_H
#define PACER_PINNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live/attached.h"
#include "live/pins.h"

#define PINNED_AT "/sys/fs/bpf/xdp-pacer" /* unless LIBXDP_BPFFS is set */

#define PINNED_PATH 4096

enum pinned_map { PINNED_4, PINNED_6, PINNED_MAPS };

/* Whose pins are: the ids of a pacer's maps; 0: it has none. */
struct pinned_ids {
	uint32_t of[PINNED_MAPS];
};

/* Both are there; by the name that the interface had before; one is missing, or another's. */
enum pinned_there { PINNED_GONE, PINNED_WHOLE, PINNED_RENAMED, PINNED_IN_PART };

/* Where the pins of an interface are. Returns path. */
const char *pinned_path(const char *ifname, char path[PINNED_PATH]);
/*
 * The same of those that lead to this pacer's maps: of an interface that was renamed, by its name
 * before. Who cannot read them is told where they were made, and that they are whole.
 */
enum pinned_there pinned_where(const struct attached *a, char path[PINNED_PATH]);
/* Whose the pins of that program's pacer are. 0, or -errno: it may have maps that could not be
 * read, and *ids has none. */
int pinned_ids_of(int prog_fd, struct pinned_ids *ids);
/*
 * May the interface have pins? Not where what has its name there is in use by another than
 * `instead`, or is no pacer's. 0, or -1 with *error filled. Before it refuses, unused shadows of
 * gone interfaces are removed, which may have what lies there. Then it waits for the kernel to end
 * their programs, three seconds at the most.
 */
int pinned_check(const char *ifname, const struct pinned_ids *instead, struct policy_error *error);
/*
 * Could the pins `ids` of the interface be removed? Asked before another pacer takes the place of
 * theirs: tools would go on to write into them, and ban nobody. 0, or -1 with *error filled.
 */
int pinned_may_go(const char *ifname, const struct pinned_ids *ids, struct policy_error *error);
/*
 * Pins of n pacers, all or none. They are made aside before these are attached, where all that can
 * be refused is; and put in place once they are. What was there of others that are in no use, or of
 * instead[i], gives way then, and so do pins of the pacer itself of which one is missing. Those
 * that are pinned stay. 0, or -1 with *error filled.
 *
 * From pinned_make(), if it returns 0, to pinned_end() nobody else makes or removes pins, and *a
 * stays. `keep`: they are put; else what gave way is there again. NULL: none was begun.
 */
struct pinning;
int pinned_make(const struct attached *a, const struct pinned_ids *instead, size_t n,
		struct pinning **pinning, struct policy_error *error);
int pinned_put(struct pinning *pinning, struct policy_error *error);
void pinned_end(struct pinning *pinning, bool keep);
/* All three for one pacer, which is attached. 0, or -1 with *error filled. */
int pinned_one(const struct attached *a, struct policy_error *error);
/* From here on packets are judged by what tools write, or not. Of a shadow, the same by itself. */
void pinned_heed(const struct attached *a, bool heeds);
/* Removes what lies under the interface's name and no program has, but `gone` (0: none). */
void pinned_sweep(const char *ifname, uint32_t gone);
/*
 * Removes the pins `ids` of the interface, whose program `gone` is detached, and those of another
 * name if nobody else uses them: an interface may have had another name. Partners that share them
 * keep theirs. Where it cannot be seen whether they are there, *left has them: so `left` is NULL
 * where it had none, or nobody asks.
 */
void pinned_remove(const char *ifname, const struct pinned_ids *ids, uint32_t gone,
		   struct pins_left *left);
/*
 * The same where pinned_ids_of() has failed with `err`: what lies under the interface's name goes
 * if nobody uses it. Where that cannot be told, it stays, and *left has it.
 */
void pinned_remove_unread(const char *ifname, int err, uint32_t gone, struct pins_left *left);
/*
 * Calls `each` for every folder that a killed tool or a gone interface left, and removes it unless
 * `look` is true. `cause`: why it stays (errno), or 0.
 */
void pinned_clean(bool look, void (*each)(const char *name, int cause, void *arg), void *arg);

#endif
