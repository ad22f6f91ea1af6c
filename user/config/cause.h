/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: why what is tried again and again fails, which is to be told once. Pure.
 */
#ifndef PACER_CAUSE_H
#define PACER_CAUSE_H

#include <stdbool.h>

/* Are both the same cause, but for how long it took, and how many bytes had come? */
bool cause_same(const char *a, const char *b);

#endif
