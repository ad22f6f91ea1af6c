/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: the terminal of `top`: ncurses draws its pictures, and gives its keys. */
#ifndef PACER_TOP_SCREEN_H
#define PACER_TOP_SCREEN_H

#include "cli/top_read.h"

/* Has the locale the characters of graphs? To be asked after setlocale. */
bool top_has_blocks(void);
/*
 * Reads every every_ns and shows it, until a key or a signal ends it. Returns the exit code. Both
 * are large: the caller has room for them.
 */
int top_screen(struct top_reader *reader, struct top_view *view, struct top_hand *hand,
	       uint64_t every_ns);

#endif
