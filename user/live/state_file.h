/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a pacer's state in a file: a header with the version, what the state holds, and a
 * checksum over both. Words are as this machine has them.
 *
 * The file has mode 0600, since it holds the hash's secret: who knows it can aim at other keys'
 * entries (hash.h). It is written beside its place, to the disk, and then renamed: there is the old
 * file, or the new one, whole.
 *
 * Error: CRC-32 finds every change of up to 32 adjacent bits, and misses one of 2^32 of the others.
 * It is no signature: who may write the file may write a right one. What it says is checked to lie
 * within the tables all the same.
 *
 * Functions return 0, or -1 with *error filled with one line. One thread.
 */
#ifndef PACER_STATE_FILE_H
#define PACER_STATE_FILE_H

#include "live/state.h"

#define STATE_FILE_VERSION 2u /* version 1 is read, too */

/* Writes it whole, or leaves what is there. *bytes is its length. */
int state_write(const char *file, const struct state *s, uint64_t *bytes,
		struct policy_error *error);
/* May the file have its name, and its folder be written to, as state_write has to? */
int state_place(const char *file, struct policy_error *error);
/*
 * Calls `each` for what killed saves left in the directory, and removes it unless `look` is true.
 * `cause`: why it stays (errno), or 0. -1: there is no such directory, or it cannot be read.
 */
int state_clean(const char *directory, bool look,
		void (*each)(const char *path, int cause, void *arg), void *arg,
		struct policy_error *error);
/* Reads one that state_free frees. */
int state_read(const char *file, struct state *s, struct policy_error *error);

#endif
