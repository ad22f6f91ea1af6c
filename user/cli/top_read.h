/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: reads a pacer at work for `top`, again and again, whatever becomes of it: another
 * policy, another pacer in its place, none, another name of its interface.
 *
 * Concurrency: one thread. Memory: that of the reading, its trend, and the pacer's maps.
 */
#ifndef PACER_TOP_READ_H
#define PACER_TOP_READ_H

#include "cli/top.h"
#include "live/watch.h"

struct top_reader {
	char ifname[IF_NAMESIZE]; /* what it is called now */
	unsigned int ifindex;	  /* 0: there is no such interface */
	struct watch watch;
	struct top_reading now;
};

/* The name is shorter than IF_NAMESIZE. 0, or -1 with *error filled: no memory. */
int top_read_begin(struct top_reader *reader, const char *ifname, struct policy_error *error);
/* The next reading, in reader->now. 0, or -1 with *error filled: no memory. */
int top_read_next(struct top_reader *reader, struct policy_error *error);
void top_read_end(struct top_reader *reader);

#endif
