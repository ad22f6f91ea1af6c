/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: hands an event to the operator's command and to the journal.
 *
 * A command is run by /bin/sh for each event, EVENTS_PASS_MAX of them at once and for
 * EVENTS_PASS_NS at most. On stdin it has the event as JSON; in its environment XDP_PACER_EVENT,
 * _INTERFACE, _RULE, _KEY, _TEXT. Its stdout is stderr. An event for which there is no place waits
 * for one, EVENTS_PASS_WAIT at the most; one for which there is no room to wait is not handed on,
 * which is counted. Events of single bans, and those that tell of what was lost, can come in
 * masses: they wait in half of the room, and behind all others.
 *
 * In the journal an event is an entry with the fields XDP_PACER_EVENT, _INTERFACE, _RULE, _KEY,
 * _SOURCES, _PACKETS, _BYTES, _WHO, _JSON, and a MESSAGE_ID of its kind.
 *
 * A journal that stands still is waited for until an end has come (ends.h): then nothing more is
 * sent to it, and what was not is counted.
 *
 * Concurrency: one thread. Whoever follows a pacer never waits for a command. SIGALRM is in use
 * while an entry is sent.
 */
#ifndef PACER_EVENTS_PASS_H
#define PACER_EVENTS_PASS_H

#include <sys/types.h>

#include "cli/events_show.h"

#define EVENTS_PASS_MAX	 8
#define EVENTS_PASS_NS	 60000000000ull
#define EVENTS_PASS_WAIT 256

struct events_waiting; /* an event, its texts copied */

struct events_pass {
	const char *command; /* NULL: none */
	bool journal;
	bool patient; /* it waits until there is a place: nothing is missed meanwhile */
	struct {
		pid_t pid; /* 0: none */
		uint64_t since_ns;
	} running[EVENTS_PASS_MAX];
	struct events_waiting *first; /* for a place, in the order in which they go */
	size_t waiting, masses;	      /* how many wait, and how many of them come in masses */
	bool journal_stood;	      /* when an end came: it gets no more */
	uint64_t lost, lost_journal;  /* not handed on, and not told so yet */
};

/* Is there a journal that takes entries? */
bool events_journal(void);
void events_pass(struct events_pass *p, const struct event *event, const struct event_place *place,
		 const char *text, const char *json);
/*
 * Buries commands that have ended, ends those that take too long, and hands on what waits where
 * there is a place. Call it now and then.
 */
void events_tidy(struct events_pass *p);
/* No more is handed on. What waits counts as lost. */
void events_stop(struct events_pass *p);

#endif
