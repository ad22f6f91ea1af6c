/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the signals that end what goes on until somebody ends it. They are blocked, and stay
 * pending once they have come: whoever waits for something else waits for them as well, and
 * whoever has much to do asks between two parts of it. Nothing that waits for others is to wait
 * without them: neither for input nor for room in a pipe or on a terminal that nobody reads.
 *
 * Concurrency: one thread. What is forked holds the same, and says so by ends_hold() anew. What is
 * executed would have them blocked: give it a mask of its own.
 *
 * Error: signals that come at once are one. Memory: a descriptor; of a stream two, and its buffer.
 */
#ifndef PACER_ENDS_H
#define PACER_ENDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define ENDS_STREAMS 2

enum ends_of {
	ENDS_OF_SERVICE, /* SIGTERM and SIGINT, also where they were ignored */
	ENDS_OF_COMMAND, /* and SIGHUP and SIGQUIT, but none that was ignored: nohup */
};

/* From now on they wait. 0; -1: see errno, and nothing is held. */
int ends_hold(enum ends_of of);
/* As before ends_hold(): one that has come ends the process here. */
void ends_release(void);

/* Has one come? */
bool ends_came(void);
/* Waits for so long at most, or until one comes: true. */
bool ends_wait(uint64_t ns);
/* Why none could be waited for, an errno, which counts as one that came; 0: all could. */
int ends_blind(void);
/* Readable when one has come, to be waited for beside others, and not to be read; -1: none is held.
 */
int ends_fd(void);

/*
 * What is written to it goes to fd. When an end has come, a write for which there is no room at
 * once fails (EINTR), and so do all that follow. Closing it closes fd. NULL: there is no memory, or
 * there are ENDS_STREAMS already.
 */
FILE *ends_stream(int fd);

#endif
