/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: hands out the names of keys, each at most `max` times within `window`, in a fixed
 * rotation and under a throttle of its own (common/throttle.h; common/pool.h says why the rotation
 * may pass over spent keys), and keeps count in memory or in a file that processes share.
 *
 * Source: "Key usage coding challenge": get_next_key.
 *
 * Error: no key is handed out more than `max` times in any (t - window, t]. None is said only if
 * all uses of all keys lie within max_window and fewer than `threshold` are free in all: each key's
 * own threshold is threshold / keys. Not given, both are as fine as 240 buckets a key allow; up to
 * a max of 120 that is exact. A process that is killed after it counted a use and before it told of
 * it loses that use.
 *
 * Clock: it is passed in, and counts from the machine's start, sleep included (CLOCK_BOOTTIME). No
 * setting of the date moves it. Across a restart of the machine, of which the boot id tells, time
 * goes on where it was last looked at: the time that the machine was off counts as none, so keys
 * come back later than they might, never sooner. What had not reached the disk when the power
 * failed is not known: after a start without a sync at the end, no key is handed out until the
 * machine has been up for a window. Time namespaces with other clocks must not share a file.
 *
 * File: see struct keys_file in keys.c. It is made whole before it gets its name. A use is prepared
 * in a second copy of the key's throttle and comes into force by one store, so the file is right
 * whatever instruction a process was killed at. Keys are remembered by name: those that are taken
 * off the list keep their uses for when they come back, new ones begin with none. It holds the
 * names, so it is for its owner's eyes (mode 0600).
 *
 * Concurrency: processes exclude each other by a lock of the open file (F_OFD_SETLKW), which dies
 * with its holder. One thread at a time for one struct keys.
 *
 * Memory: 12,776 bytes a key, whatever max.
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
	uint8_t boot[16]; /* the machine's start that it counts from */
};

struct keys;

enum keys_opened { KEYS_OPEN, KEYS_REFUSED, KEYS_UNABLE };
enum keys_answer { KEYS_GIVEN, KEYS_NONE, KEYS_FAILED };

struct keys_given {
	const char *name; /* KEYS_GIVEN */
	uint64_t wait_ns; /* KEYS_NONE: until one may be free */
};

/*
 * The keys of a text, between commas or a line each; of lines, blank ones and those that begin with
 * # are none. 0, or -1 with *error filled (a line of 0: none). To be freed.
 */
int keys_parse(const char *text, size_t len, char separator, struct keys_list *list,
	       struct policy_error *error);
void keys_list_free(struct keys_list *list);

/* The throttle of each of n keys, or -1 with *error filled. Pure. */
int keys_profile(const struct keys_limits *limits, uint32_t n,
		 struct pacer_throttle_profile *profile, struct policy_error *error);

/*
 * With the state in the file of that name, which is made if there is none, or in memory (NULL).
 * What is passed in has to outlive *keys. REFUSED: the file, left as it was, is not of this
 * program, these limits or whole, or the limits are not sound; UNABLE: the system says no. Both
 * fill *error, the latter with the file's name.
 */
enum keys_opened keys_open(const struct keys_list *list, const struct keys_limits *limits,
			   const char *path, const struct keys_clock *clock, struct keys **keys,
			   struct policy_error *error);

enum keys_answer keys_next(struct keys *keys, struct keys_given *given, struct policy_error *error);

/* Brings the file to the disk. -1 with *error filled if that failed; it is closed all the same. */
int keys_close(struct keys *keys, struct policy_error *error);

#endif
