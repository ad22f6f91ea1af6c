/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: a note of each ban that a rule makes, for whoever asks afterwards: counters tell how
 * many there were, and not whose. The notes are a ring of PACER_NOTES, of which the oldest is
 * written over. What tools did stands in a ring beside it (abi.h), which the packet path does not
 * touch.
 *
 * A rule may write PACER_NOTE_BURST notes at once and one each PACER_NOTE_EVERY_NS on average, as
 * GCRA has it. What is more is counted as lost, so a flood that bans a million sources does not
 * push out the bans of other rules faster than they can be read.
 *
 * Concurrency: any number of CPUs. A note's number is 0 while it is written. A reader reads the
 * number, the note, and the number again; a note that has another number by then is lost to him.
 * Two CPUs could write to one note only if one of them were delayed for PACER_NOTES notes.
 *
 * Error: two CPUs that want to note a ban of one rule at once: one of them may count it as lost. A
 * ban that is lifted or put off while it is noted may be noted with the rule's shortest time.
 *
 * Memory: struct pacer_log, once.
 */
#ifndef PACER_LOG_H
#define PACER_LOG_H

#include "abi.h"
#include "ban.h"

#define PACER_NOTE_BURST    32u
#define PACER_NOTE_EVERY_NS 62500000u /* 16 a second */

/* May the rule with this counter write a note now? If not, it is lost, and counted. */
PACER_INLINE PACER_MUST_USE int pacer_log_may(struct pacer_log *log, __u32 counter, __u64 now_ns)
{
	__u64 *at, was;

	if (counter >= PACER_COUNTERS_MAX)
		return 0;
	at = &log->open_ns[counter];
	was = pacer_load64(at);
	if (was <= now_ns + (__u64)(PACER_NOTE_BURST - 1) * PACER_NOTE_EVERY_NS &&
	    pacer_cas64(at, was, pacer_later(was, now_ns) + PACER_NOTE_EVERY_NS) == was)
		return 1;
	(void)pacer_add64(&log->lost[counter], 1);
	return 0;
}

/*
 * This key is banned since now_ns, until until_ns. Its rule may write a note: pacer_log_may() said
 * so.
 */
PACER_INLINE void pacer_log_ban(struct pacer_log *log, const struct pacer_ban_key *key,
				__u64 now_ns, __u64 until_ns)
{
	__u64 number = pacer_add64(&log->noted, 1);
	struct pacer_note *note;
	__u32 was, i;

	note = &log->note[number & (PACER_NOTES - 1)];
	was = pacer_cas(&note->number, pacer_load(&note->number), 0);
	(void)was; /* nobody else writes here */
	note->rule = key->rule;
	note->time_ns = now_ns;
	note->until_ns = until_ns;
	note->key_id = key->key_id;
	for (i = 0; i < PACER_KEY_WORDS; i++)
		note->key[i] = key->word[i];
	pacer_release(&note->number, (__u32)number + 1);
}

#endif
