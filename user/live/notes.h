/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: reads the notes that a pacer keeps of bans (common/log.h), and writes and reads what
 * tools did to it, and who had them do so.
 *
 * Of whom: the user who logged in, where the kernel knows that (audit's loginuid); else the one who
 * ran sudo; else the process's.
 *
 * Concurrency: beside packets and other tools. A note that is being written, or written over, while
 * it is read counts as lost. A tool that is stopped in the middle of a note while 256 others write
 * theirs may leave a mixed one.
 *
 * Error: who may write to the maps may write anything here: these notes are for people who look
 * after a machine together, and no evidence.
 *
 * Memory: none.
 */
#ifndef PACER_NOTES_H
#define PACER_NOTES_H

#include "config/policy.h"
#include "live/attached.h"
#include "inspect/tally.h"

/* What is said: a change, or an episode that somebody watched. */
enum note_what { NOTE_CHANGE, NOTE_START, NOTE_END };

struct note_ban {
	uint64_t time_ns, until_ns;
	char rule[POLICY_NAME_MAX]; /* "?" if the policy no longer has it */
	char key[TALLY_TEXT];
};

struct note_said {
	enum note_what what;
	uint64_t time_ns;
	uint32_t pid, uid;
	char text[PACER_SAID_TEXT];
};

/* How many were noted, and said, so far; the numbers below are of 0 to that less 1. */
uint64_t notes_noted(const struct attached *a);
uint64_t notes_said(const struct attached *a);
/* The first that may still be there. */
uint64_t notes_first(uint64_t n, uint64_t places);

/* False: it is not there any more, or not yet. */
bool notes_ban(const struct attached *a, const struct policy *policy, uint64_t number,
	       struct note_ban *ban);
bool notes_saying(const struct attached *a, uint64_t number, struct note_said *said);
/* Bans of the rule with this counter that were not noted. */
uint64_t notes_lost(const struct attached *a, uint32_t counter);

/* Says it, cut where it is long. */
void notes_say(struct attached *a, enum note_what what, const char *text);
/* The same, with this number; false, and nothing is said, where another note has it by now. */
bool notes_say_next(struct attached *a, uint64_t number, enum note_what what, const char *text);

#endif
