/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: what is written on the lines of stdin, each perhaps with a time of its own. */
#ifndef CLI_EACH_LINE_H
#define CLI_EACH_LINE_H

#include <stdbool.h>
#include <stdint.h>

#define EACH_LINE_MAX  65535	 /* bytes before its end: one without an end takes no more memory */
#define EACH_LINES_MAX (1 << 24) /* as many as there can be bans: input without an end has one */

/*
 * Takes one: the element lasts for for_ns (0: always), and is lost when this returns; the line
 * counts from 1. Returns 0, or the exit code after it has said why.
 */
typedef int (*line_taker)(void *to, const char *element, uint64_t for_ns, int line);

/*
 * Each line of stdin, without blanks around it, goes to take(to, ...). Empty lines and those that
 * begin with # are passed over. With `timed` a line can end with --for TIME; else, and where it
 * does not, for_ns (in ns; 0: always) holds. Ends at the first line that is wrong, longer than
 * EACH_LINE_MAX or not taken, and at the one after EACH_LINES_MAX.
 * Returns 0, or the exit code after it has said why. One caller at a time: it reads stdin.
 */
int each_line(bool timed, uint64_t for_ns, line_taker take, void *to);

#endif
