/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: hands out the names of keys in a fixed rotation, each at most `max` times within
 * `window`. Each key has a throttle of its own (common/throttle.h). common/pool.h says why the
 * rotation may skip exhausted keys. The count is in memory, or in a file that processes share.
 *
 * Source: "Key usage coding challenge": get_next_key.
 *
 * Error: no key is handed out more than `max` times in any (t - window, t]. It answers that there
 * is none only if all uses of all keys lie within max_window and fewer than `threshold` are free in
 * all. The threshold of one key is threshold / keys. If the two are not given, they are as fine as
 * 240 buckets for each key allow, which is exact up to a max of 120. If a process is ended after
 * it counted a use and before it answered, that use is lost.
 *
 * Clock: it is passed in and counts from the start of the machine, sleep included (CLOCK_BOOTTIME),
 * whatever the process's time namespace. Setting the date does not move it. The boot id shows a
 * restart of the machine. After one, time goes on from the last time seen, as if the machine had
 * not been off. So keys come back later than they might, never sooner. A power failure may lose
 * what had not reached the disk. So if there was no sync at the end, no key is handed out until the
 * machine has been up for a window.
 *
 * File: see struct keys_file in keys.c. It is complete before it gets its name. A use is prepared
 * in a second copy of the key's throttle and comes into force by one store. So the file is right at
 * whatever instruction a process is killed. Keys are remembered by name. A key that leaves the list
 * keeps its uses in case it comes back; a new key begins with none. The file has the names, so only
 * its owner may read it (mode 0600).
 *
 * Concurrency: processes exclude each other by a lock of the open file (F_OFD_SETLKW), which dies
 * with its holder. One thread at a time for one struct keys.
 *
 * Memory: 12,776 bytes for each key, whatever max is.
 */
#ifndef PACER_KEYS_H
#define PACER_KEYS_H

#include "config/policy.h"
#include "throttle.h"

#define KEYS_MAX      4096u
#define KEYS_NAME_MAX 255u
#define KEYS_TEXT_MAX (KEYS_MAX * (KEYS_NAME_MAX + 1))

struct keys_list {
	uint32_t n;
	char (*name)[KEYS_NAME_MAX + 1];
};

struct keys_limits {
	uint32_t max;
	uint32_t threshold; /* 0: not given */
	uint64_t window_ns;
	uint64_t max_window_ns; /* 0: not given */
};

struct keys_clock {
	uint64_t (*now)(void *arg);
	void *arg;
	uint8_t boot[16]; /* the boot id of the start that it counts from */
};

struct keys;

enum keys_opened { KEYS_OPEN, KEYS_REFUSED, KEYS_UNABLE };
enum keys_answer { KEYS_GIVEN, KEYS_NONE, KEYS_FAILED };

struct keys_given {
	const char *name; /* KEYS_GIVEN */
	uint64_t wait_ns; /* KEYS_NONE: the time until one may be free */
};

/*
 * Reads the keys of a text, separated by commas or one on a line. A comma may be at the end. Blank
 * lines and lines that begin with # are skipped, and so is a byte order mark before the first of
 * lines. 0, or -1 with *error filled (a line of 0: none). The list is to be freed.
 */
int keys_parse(const char *text, size_t len, char separator, struct keys_list *list,
	       struct policy_error *error);
void keys_list_free(struct keys_list *list);

/* Computes the throttle of each of n keys, or -1 with *error filled. Pure. */
int keys_profile(const struct keys_limits *limits, uint32_t n,
		 struct pacer_throttle_profile *profile, struct policy_error *error);

/*
 * The state is in the file of that name, which is made if there is none, or in memory (NULL). The
 * arguments have to outlive *keys. REFUSED: the limits are wrong, or the file is of another
 * program, has other limits or is damaged in them or in a throttle; it is not changed. UNABLE: the
 * system refuses. Both fill *error, the latter with the file's name.
 */
enum keys_opened keys_open(const struct keys_list *list, const struct keys_limits *limits,
			   const char *path, const struct keys_clock *clock, struct keys **keys,
			   struct policy_error *error);

enum keys_answer keys_next(struct keys *keys, struct keys_given *given, struct policy_error *error);

/* Syncs the file to the disk and closes. -1 with *error filled if the sync failed. */
int keys_close(struct keys *keys, struct policy_error *error);

#endif
