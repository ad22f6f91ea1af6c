/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: waits for the lock of a file that another process may hold for long, as it does where
 * somebody has stopped it. A long wait is said, and what ends the program ends it then. Before, it
 * does not: what is done last, such as to save, waits for others, too.
 *
 * Concurrency: one thread. SIGALRM is in use while it waits.
 */
#ifndef PACER_FILE_LOCK_H
#define PACER_FILE_LOCK_H

#include <stdbool.h>

#define FILE_LOCK_LONG_MS 5000u

enum file_lock_kind {
	LOCK_TO_CHANGE, /* flock(2) */
	LOCK_TO_READ,	/* the same, shared with others that read */
	LOCK_RECORDS	/* F_OFD_SETLK of all its bytes */
};

struct file_lock_listener {
	bool (*ended)(void);		/* is the program to end? */
	void (*held)(const char *line); /* who has it for FILE_LOCK_LONG_MS; once for a wait */
};

/* Before the first wait; NULL, as at first: nobody listens, and a wait ends with the lock. */
void file_lock_listen(const struct file_lock_listener *listener);

/*
 * 0: the lock is held, until `fd` is closed. -1: see errno, which is EINTR where `ended` says so.
 * `name` is the file's, for the line.
 */
int file_lock(int fd, enum file_lock_kind kind, const char *name);

#endif
