/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the descriptors that a program begins with, and how many it may have. A pacer that is
 * open takes some fourteen, and the usual soft limit of 1024 is for programs that call select(),
 * which this is not.
 *
 * Error: none; where the limit cannot be raised, what does not fit is an error of whoever opens it.
 * One thread.
 */
#ifndef PACER_DESCRIPTORS_H
#define PACER_DESCRIPTORS_H

#include <stdbool.h>

/*
 * Before anything is opened, in each program: what is opened while stdin, stdout or stderr is
 * closed takes its number, and what is said would go there. The three wait for their other end from
 * then on, as they do in a shell, also where another program has made them non-blocking. False:
 * there is no /dev/null.
 */
bool descriptors_open_standard(void);
/* As many as the hard limit allows, from now on: once, as a program begins. */
void descriptors_raise(void);
/* As it was before: in a child that becomes another program, which may call select(). */
void descriptors_restore(void);

#endif
