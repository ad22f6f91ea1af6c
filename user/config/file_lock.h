/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: waits for the lock of a file that another process may hold for long, as it does where
 * somebody has stopped it. A long wait is said, and what ends the program ends it then. Before, it
 * does not; nor, for longer, where what is waited for is all that is left to do, such as to save.
 *
 * Concurrency: one thread. SIGALRM is in use while it waits.
 */
#ifndef PACER_FILE_LOCK_H
#define PACER_FILE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#define FILE_LOCK_BRIEF_MS 200u
#define FILE_LOCK_LONG_MS  5000u
#define FILE_LOCK_LAST_MS  40000u /* two of them within the 90 s that systemd gives a service */

enum file_lock_kind {
	LOCK_TO_CHANGE, /* flock(2) */
	LOCK_TO_READ,	/* the same, shared with others that read */
	LOCK_RECORDS,	/* F_OFD_SETLK of all its bytes */
	LOCK_BYTE	/* the same of the byte at its offset, which may be behind its end */
};

struct file_lock_listener {
	bool (*ended)(void);		/* is the program to end? */
	void (*held)(const char *line); /* who has it for FILE_LOCK_LONG_MS; once for a wait */
};

/* Before the first wait; NULL, as at first: nobody listens, and a wait ends with the lock. */
void file_lock_listen(const struct file_lock_listener *listener);
/* From when on `ended` ends a wait for who is not stopped: FILE_LOCK_LONG_MS, unless said. */
void file_lock_ends_after(uint64_t ms);
/*
 * From now on a lock that another process has is waited for FILE_LOCK_BRIEF_MS, and then given up
 * for now: errno is EAGAIN. For a program that has to do something else in time. Who has it is said
 * once all tries in a row have taken long.
 */
void file_lock_briefly(bool briefly);
/* Has a lock been given up so since this was asked last? */
bool file_lock_given_up(void);

/*
 * 0: the lock is held, until `fd` is closed. -1: see errno, which is EINTR where `ended` says so,
 * and EAGAIN where it was given up.
 * `name` is the file's, for the line.
 */
int file_lock(int fd, enum file_lock_kind kind, const char *name);

/* The same, for `ms` at most: then it is given up (EAGAIN). */
int file_lock_within(int fd, enum file_lock_kind kind, const char *name, uint64_t ms);

#endif
