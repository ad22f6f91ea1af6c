/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: how long a pacer was away between a save and a restore, as far as clocks can tell. Pure.
 *
 * The packet path's clock stops when the machine is off, and begins anew at the next boot. The
 * clock of the day goes on, but it may be wrong: it is believed only if the kernel has it from a
 * time server, at the save and at the restore, and then less what both may have been wrong by.
 * Otherwise only the time since the boot is certain. Limits and bans count the time that has
 * certainly passed (at_least_ns). What lets packets through for a time, an entry of the allow-list,
 * counts the time that may have passed (at_most_ns). So no error of a clock admits more.
 */
#ifndef PACER_ABSENCE_H
#define PACER_ABSENCE_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCKS_BOOT_ID 40

/* The clocks of the machine at one moment. */
struct clocks {
	char boot_id[CLOCKS_BOOT_ID]; /* of this boot: the kernel's random_id; "": not known */
	uint64_t mono_ns;	      /* the packet path's clock: stops when the machine sleeps */
	uint64_t boot_ns;	      /* since the boot, sleep included */
	uint64_t real_ns;	      /* of the day, since 1970 */
	uint64_t error_ns;	      /* of that, at most, where it is believed */
	uint64_t believed;	      /* 1: a time server has set it */
};

enum absence_by {
	ABSENCE_SAME_BOOT,  /* the packet path's clock has gone on: exact */
	ABSENCE_SINCE_BOOT, /* only the time since the boot is certain */
	ABSENCE_BY_DAY,	    /* the clock of the day is believed */
	ABSENCE_ANY_BOOT    /* nobody knows which boot it is: less is certain still */
};

struct absence {
	enum absence_by by;
	uint64_t at_least_ns, at_most_ns; /* UINT64_MAX: nobody knows */
	int64_t shift_ns; /* from a time on the clock at the save to that at the restore */
};

/* From a save at `then` to a restore at `now`. */
struct absence absence_between(const struct clocks *then, const struct clocks *now);

#endif
