/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: files that are written whole, and outlast a power failure: their names, too.
 *
 * Error: a file system that has nothing to write for a folder (EINVAL) has written it.
 *
 * Concurrency: of processes that make one file at once, one gives it its name; all succeed.
 */
#ifndef PACER_DURABLE_H
#define PACER_DURABLE_H

#include <signal.h>
#include <stddef.h>

/* Interrupt, end, hang-up and quit wait from here on, until the mask before is set again: nothing
 * removes what one of them leaves beside a file. Not for long, and not while others are waited for.
 */
void durable_block_stops(sigset_t *before);
/* Makes a file of mode 0600, whole before it has its name; one of that name stays as it is.
 * 0; -1: see errno, and nothing is left but, where only the folder fails, the file. */
__attribute__((warn_unused_result)) int durable_make(const char *path, const void *from,
						     size_t bytes);
/* Writes all of it: a write that stops short is gone on with, so that errno says why it stopped.
 * 0; -1: see errno, and a part may be written. */
__attribute__((warn_unused_result)) int write_whole(int fd, const void *from, size_t bytes);
/* Syncs the folder that the path lies in. 0; -1: see errno. */
int durable_name(const char *path);

#endif
