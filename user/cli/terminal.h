/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the terminal of verbs that go on until somebody ends them: its size, its keys one by
 * one, and the signals that end or resize it.
 *
 * Concurrency: one thread; one terminal. Signals that resize it are blocked but while terminal_wait
 * waits, and those that end it until terminal_end, so none is missed. Memory: a descriptor.
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
 * end terminal_wait. keys_set: somebody else has seen to the keys. 0; -1: see errno, and it is as
 * it was.
 */
int terminal_begin(bool keys_set);
/* As it was before. If it was a signal that ended it, the process ends by it here. */
void terminal_end(void);
/* Waits for the first of these, until host_now_ns is until_ns. Without terminal_begin, for that. */
enum terminal_event terminal_wait(uint64_t until_ns);
/* The next key; -1: there is none. */
int terminal_key(void);

#endif
