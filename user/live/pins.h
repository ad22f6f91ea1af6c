/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what is pinned in the BPF file system, and the removal of what a killed tool left there:
 * pins of a program that no interface carries. They would hold programs and their memory for ever.
 *
 * Under xdp/ those of libxdp's dispatchers. Under xdp-pacer/ one for each shadow at work: the map
 * by which the pacer goes over to it, which the kernel empties once neither a pin nor a process
 * holds it. That pin has the interface's index and the id of the pacer's program in its name, which
 * is longer than an interface's: those are of folders for other tools (pinned.h), in the same
 * place.
 *
 * Concurrency: it holds libxdp's own lock, so nobody else is half way. Error: removing the pins of
 * a dispatcher at work would detach it, and that of a shadow would end it. So it leaves alone what
 * another network namespace may use. If it cannot see all processes of the machine, it removes
 * nothing.
 */
#ifndef PACER_PINS_H
#define PACER_PINS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/policy.h"

#define PINS_OURS "xdp-pacer" /* the folder of all but libxdp's, in the BPF file system */

enum pins_of { PINS_DISPATCHERS, PINS_SHADOWS };

/*
 * Calls `each` for every unused dispatcher's directory, or every shadow's unused pin, whatever
 * interface it was for, and removes it unless `look` is true. `cause`: why it stays (errno), or 0.
 * EAGAIN: whether it is unused cannot be told now, or a process has its program open.
 */
void pins_clean(enum pins_of of, bool look, void (*each)(const char *path, int cause, void *arg),
		void *arg);

/*
 * What could not be removed, of what an interface leaves: the first of it, and errno; cause 0:
 * nothing.
 */
struct pins_left {
	char path[4096];
	int cause;
};

/*
 * Does no dispatcher that an interface carries call the program, by what libxdp has pinned of it?
 * No, where that cannot be told.
 */
bool pins_called_by_none(uint32_t prog_id);

/* Removes the unused pins of this interface's index. `left` may be NULL. */
void pins_sweep(int ifindex, struct pins_left *left);

/*
 * Of a shadow: for the interface and the pacer's program; prog_id 0: that could not be read, and is
 * an error (errno). 0, or -1 with *error filled.
 */
int pins_put_shadow(int map_fd, const char *ifname, int ifindex, uint32_t prog_id,
		    struct policy_error *error);
/*
 * It may be gone already. Where that cannot be seen, *left has it: so `left` is NULL where it had
 * none, or nobody asks.
 */
void pins_drop_shadow(int ifindex, uint32_t prog_id, struct pins_left *left);
/* Could it be removed, if it is there? 0, or -1 with *error filled. */
int pins_shadow_may_go(const char *ifname, int ifindex, uint32_t prog_id,
		       struct policy_error *error);
/* Can pins be seen at all, before a pacer that has some is replaced? 0, or -1 with *error filled.
 */
int pins_in_sight(const char *ifname, struct policy_error *error);
/* Could it go, what a pacer has at `path`, by the right to write into `folder`. */
int pins_may_go(const char *ifname, const char *path, const char *folder,
		struct policy_error *error);
/* Notes what stays, at folder/name, if nothing has been noted yet. EMEDIUMTYPE: it is hidden. */
void pins_note_left(struct pins_left *left, const char *folder, const char *name, int cause);

/* Where the BPF file system is, as libxdp has it. */
const char *pins_bpffs(void);
/* No BPF file system is there: what was pinned cannot be seen here, as within `ip netns exec`. */
bool pins_hidden(void);
/* Where a pin cannot be made, what to do, as ": TEXT"; "": that is not known. */
const char *pins_advice(int err);
/*
 * Opens a folder of the BPF file system and locks it, as libxdp does, until it is closed. -1 with
 * errno: EMEDIUMTYPE says that it is on another file system.
 */
int pins_open_locked(const char *folder);
/*
 * Calls `one` with each name in a folder that pins_open_locked() has opened, and returns the sum of
 * what it returned; -1: they cannot all be read. `one` may remove what it is called with.
 */
int pins_each(int fd, int (*one)(int fd, const char *name, void *arg), void *arg);
/*
 * Makes the folder `name` of parent_fd, which everybody may look into, whatever the umask: whose
 * pins are is said by their own modes. -1: errno says why, and it is not there or was there before.
 */
int pins_make_folder(int parent_fd, const char *name);
/*
 * Empties and removes the folder `name` of parent_fd, which has no folders. Of what has the name
 * and is none, such as a link, nothing else goes.
 */
bool pins_remove_folder(int parent_fd, const char *name);

#endif
