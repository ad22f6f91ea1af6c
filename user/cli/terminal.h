/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the terminal of verbs that go on until somebody ends them: its size, its keys one by
 * one, and the signals that end or resize it.
 *
 * Concurrency: one thread; one terminal. Signals that resize it are blocked but while terminal_wait
 * waits, and those that end it until terminal_end but while something is drawn, so none is missed.
 * Memory: three descriptors.
 */
#ifndef PACER_TERMINAL_H
#define PACER_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

enum terminal_event {
	TERMINAL_TIME,	  /* it is until_ns */
	TERMINAL_KEY,	  /* there is something to be read from stdin */
	TERMINAL_RESIZED, /* or it is the foreground's again */
	TERMINAL_ENDED,	  /* by a signal, or the terminal is gone */
};

struct terminal_size {
	int rows, columns; /* 0: not known */
};

/* Is stdout a terminal that can do more than print line after line (TERM)? */
bool terminal_has_screen(void);
/* Is that so, and does somebody type there, who means this process? */
bool terminal_is_used(void);
/* Of stdout, unless LINES and COLUMNS say another. */
struct terminal_size terminal_size(void);

/*
 * Of a terminal that is used: from now on its keys come one by one and are not shown, and signals
 * end terminal_wait. keys_set: somebody else sees to the keys until terminal_end. 0; -1: see errno,
 * and it is as it was.
 */
int terminal_begin(bool keys_set);
/* As it was before. If it was a signal that ended it, the process ends by it here. */
void terminal_end(void);
/*
 * Between these somebody draws on stdout by writes that wait for room, and may be stopped (ctrl-S)
 * or not read: once an end comes, what is not written by then goes nowhere, as does all that is
 * drawn after it. terminal_wait says that it has come. What is drawn last is written whether or not
 * one has come, and goes nowhere where it takes longer than LAST_S seconds.
 */
void terminal_draws(void);
void terminal_draws_last(void);
void terminal_drawn(void);
/* Waits for the first of these, until host_now_ns is until_ns. Without terminal_begin, for that. */
enum terminal_event terminal_wait(uint64_t until_ns);
/* The next key; -1: there is none. */
int terminal_key(void);
/*
 * Are the keys another's? Asked where one was told and none came: read fails for who is in the
 * background, and is not stopped for it, as nobody is left who could let it go on. What is typed
 * then would be told again and again.
 */
bool terminal_is_lost(void);

#endif
