/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the time of day of a time of the packet path's clock. Somebody may set the clock of the
 * day, and it is read a moment after the other: what is told twice is asked for once.
 */
#ifndef PACER_DAY_H
#define PACER_DAY_H

#include <stdint.h>

/* Added to a time of host_now_ns, this gives the time since 1970. Any number of callers. */
int64_t day_minus_now_ns(void);

#endif
