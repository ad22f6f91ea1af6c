/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the pacers of some interfaces, or of all, for somebody who looks again and again while
 * pacers and interfaces come and go.
 *
 * A pacer is found once, and again only where the interface's program is another: each time, libxdp
 * keeps a descriptor where it has a dispatcher. Of all interfaces, those are watched that have had
 * a pacer since, for as long as they exist.
 *
 * Memory: what is held of a pacer that is gone is let go by the next watch_look or watch_tidy; for
 * a caller with `left`, by the look after that. One thread.
 */
#ifndef PACER_WATCH_H
#define PACER_WATCH_H

#include "live/attached.h"

struct watched {
	char ifname[IF_NAMESIZE];
	bool shown; /* it was named, or has had a pacer */
	bool found; /* `a` is its pacer */
	struct attached a;
	bool has_last; /* `last` is the pacer that was there before, without its files */
	struct attached last;
	struct policy_error error; /* else: why not */
	bool unopened;		   /* not found, though its program is a pacer, or may be one */
	int64_t passed; /* the interface's program, where that is no pacer that can be read */
	bool told;	/* for the caller: he has said why not */
};

struct watch {
	struct watched *at;
	size_t n;
	bool all;
	/*
	 * For the caller, after watch_begin; NULL, both of them: nothing. watch_look and watch_tidy
	 * call `leaving` where a pacer is there no more: what it holds can be read, and may be the
	 * next one's. A tool says that it took a pacer off only when it has done so. So what is
	 * mapped of the pacer is kept as `last` until the next watch_look, which calls `left`
	 * before it lets go. Of an interface that is gone itself nothing is kept.
	 */
	void (*leaving)(struct watched *at, void *arg);
	void (*left)(struct watched *at, void *arg);
	void *arg;
};

/*
 * Of these interfaces, of which some may come later, by names shorter than IF_NAMESIZE; n 0: of
 * all. -1: no memory.
 */
int watch_begin(struct watch *watch, char *const *ifnames, size_t n);
void watch_end(struct watch *watch);

/* Find what there is now. -1 with *error filled where the interfaces cannot be listed. */
int watch_look(struct watch *watch, struct policy_error *error);
/* Only let go of what is not there any more. */
void watch_tidy(struct watch *watch);

#endif
