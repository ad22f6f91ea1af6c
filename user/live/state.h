/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a pacer holds, as a value: taken from one at work, written to a file and read from
 * it (state_file.h), put on another clock, and begun with by the next pacer (restore.h).
 *
 * What is in it: the policy in force with its limits' entries, throttles, bans, counters and what
 * is on the allow-list by hand; and the hash's secrets, without which no entry could be found
 * again.
 *
 * What a copy of a pacer at work means. Entries are copied one after the other, each whole, while
 * packets go on. All that was admitted before the copy began is in it. Of what was admitted since,
 * some is. A key may stand where it stood or where it has moved to, and both bring its count along,
 * since what several keys share is copied last. To miss nothing, freeze the pacer first (freeze.h).
 *
 * Concurrency: one thread; packets may go on. Error: an entry that is written to without pause is
 * not copied, and the whole fails. Memory: as the pacer's, as far as it was used.
 */
#ifndef PACER_STATE_H
#define PACER_STATE_H

#include "live/allowlist.h"
#include "live/clocks.h"
#include "live/attached.h"

struct state {
	struct clocks clocks; /* when the last entry had been copied */
	bool frozen;	      /* nothing was admitted since */
	char *text;
	struct policy *policy;
	struct pacer_policy *bin;
	uint32_t secret_ready; /* enum pacer_secret_of */
	uint64_t secret[2][PACER_SECRETS];
	uint64_t n_lines, room; /* lines, and how many there is memory for */
	struct pacer_line *lines;
	struct pacer_throttle_state *throttle; /* PACER_THROTTLES */
	struct pacer_counters *counter;	       /* PACER_COUNTERS_MAX */
	struct pacer_set_count set_count[PACER_SET_COUNTERS];
	struct allowlist allow; /* what is on it by hand */
};

/* An empty one with room for so many lines. -1: no memory. state_free frees either. */
int state_init(struct state *s, uint64_t n_lines);
void state_free(struct state *s);

/*
 * What is taken is of one moment to the tools: who takes it holds the lock of changes (change.h)
 * all the time. First the entries of the allow-list of a copy (0 or 1) that are there by hand.
 */
int state_take_allowed(const struct attached *a, uint32_t copy, struct state *s,
		       struct policy_error *error);
/*
 * All else, into an empty one: what packets are counted in by that copy of the policy, the one in
 * force or, of a frozen pacer, the one that was.
 */
int state_take(const struct attached *a, uint32_t copy, struct state *s,
	       struct policy_error *error);
/*
 * Both, of the copy in force. Of a frozen pacer, whose save was killed or has taken it off, of the
 * one before: a frozen copy has no limits, and nobody would find their entries again.
 */
int state_take_all(const struct attached *a, struct state *s, struct policy_error *error);

/* Does all that the policy says lie within the table and the throttles? Of a file of unknown
 * origin. */
bool state_is_sound(const struct state *s);

#endif
