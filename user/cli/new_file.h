/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a text that takes a file's place, whole or not at all, and only once something else has
 * been done: the disk's errors come before that. Who makes it of what the file says holds the file
 * from before it is read: others that do so wait, and what anybody else writes meanwhile stays.
 *
 * Functions return 0, or an errno. One thread.
 */
#ifndef PACER_NEW_FILE_H
#define PACER_NEW_FILE_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

struct new_file {
	char name[PATH_MAX];	   /* that it will have */
	char beside[PATH_MAX + 8]; /* that it has now; "": none */
	bool written;		   /* it has its name, if perhaps not after a power failure */
	struct stat was;	   /* of the file, as it began to be held */
	int fd;			   /* which is open, and locked; -1: none */
	bool blocks;		   /* signals wait until it is over; before they did as here: */
	sigset_t before;
};

/*
 * A link is followed. Who has the file locked is waited for, for 10 s at most: new_file_commit
 * looks whether the file is as it was. Whatever it and the next two return, new_file_drop ends it.
 */
int new_file_hold(struct new_file *file, const char *name);
/*
 * Writes the text beside the file that is held, with its owner, mode, ACL and notes (user.*). From
 * here on a signal that would leave it there waits for new_file_drop: nothing may wait for others
 * in between.
 */
int new_file_write(struct new_file *file, const char *text);
/* Puts it in the file's place, and lets go of that. ESTALE: somebody else has written to it. */
int new_file_commit(struct new_file *file);
/* Removes it, if it is still beside the file. A signal that waited ends the process here. */
void new_file_drop(struct new_file *file);

#endif
