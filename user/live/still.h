/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a copy, beside packets, of state that begins with a lock word (lock.h), as it was at one
 * moment.
 *
 * Error: false where it never stood still.
 *
 * Concurrency: beside any number of CPUs. Memory: none.
 */
#ifndef PACER_STILL_H
#define PACER_STILL_H

#include <stdbool.h>
#include <stddef.h>

/* bytes: a multiple of 8. */
bool still_copy(const void *from, void *to, size_t bytes);
/* Each word as it was at some moment: for what packets change by a word. */
void still_words(const void *from, void *to, size_t bytes);

#endif
