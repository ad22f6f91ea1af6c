/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a text that takes a file's place, whole or not at all, and only once something else has
 * been done: the disk's errors come before that.
 *
 * Functions return 0, or an errno. One thread.
 */
#ifndef PACER_NEW_FILE_H
#define PACER_NEW_FILE_H

#include <limits.h>
#include <stdbool.h>

struct new_file {
	char name[PATH_MAX];	   /* that it will have */
	char beside[PATH_MAX + 8]; /* that it has now; "": none */
	bool written;		   /* it has its name, if perhaps not after a power failure */
};

/* Writes the text beside the file, with its owner and mode. A link is followed. */
int new_file_write(struct new_file *file, const char *name, const char *text);
/* Puts it in the file's place. */
int new_file_commit(struct new_file *file);
/* Removes it, if it is still beside the file. */
void new_file_drop(struct new_file *file);

#endif
