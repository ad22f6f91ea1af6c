/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a new pacer begins with what one before held. The state is put on this machine's clock
 * (carry.h), and the policy is compiled as a change of the saved one (compile.h): a limit that
 * keeps its rule, key and shape keeps its state, and what it does not keep drains beside the new
 * one. So no limit is passed that the saved one would have held.
 *
 * The table is as large as the saved one at least, and larger by what tables of bans or flows of
 * another size lack (plan/lay.c). Bans go on, in such a table too, as far as that has room.
 * Counters go on by the rule's name. What is on the allow-list by hand for a time goes on only as
 * far as that time can be told (absence.h).
 *
 * Functions return 0, or -1 with *error filled with one line. One thread.
 */
#ifndef PACER_RESTORE_H
#define PACER_RESTORE_H

#include "live/state.h"
#include "plan/compile.h"

struct bpf_map;

/* What became of what was saved. */
struct restored {
	struct absence absence;
	size_t limits_kept, limits_new, limits_draining;
	size_t limits_left_out;		  /* by the caller, with restore_forget */
	size_t bans, bans_left_out;	  /* that run; for which there is no room */
	size_t allowed, allowed_left_out; /* by hand */
	size_t counters_left_out;	  /* of rules that are no more */
};

/* The maps that a restored pacer begins with. */
struct restore_maps {
	struct bpf_map *lines, *throttles, *counts, *set_counts, *allow4, *allow6;
};

/*
 * Compiles `policy` to go on from *s, at `now`. Changes *s to what the new pacer begins with: its
 * lines, throttles, counters, secrets, and its allow-list as a whole.
 */
int restore_plan(struct state *s, const struct policy *policy, const struct clocks *now,
		 const struct compile_host *host, struct pacer_policy *bin, struct plan *plan,
		 struct restored *what, struct policy_error *error);

/*
 * Before that: forgets limits of *s that count by values of sets which the policy does not have, as
 * they cannot be gone on with. Their entries are cleared. Returns how many. Error: what these would
 * have denied is let through, as by a pacer with new state; who calls it says that they are left
 * out.
 */
size_t restore_forget(struct state *s, const struct policy *policy);
/*
 * The same of all limits of those rules with which the policy cannot go on from *s: their new
 * limits and those that would drain beside them are too many. The other rules keep theirs.
 */
size_t restore_forget_unfit(struct state *s, const struct policy *policy,
			    const struct compile_host *host);

/* Fills maps of an object that is opened and not loaded yet, and `control`, before any packet. */
int restore_fill(const struct state *s, const struct restore_maps *maps,
		 struct pacer_control *control, struct policy_error *error);
/*
 * Puts what restore_plan has left of a later state of the same pacer, and *bin, into one that was
 * filled for the same policy before, and to which no packet has come. Its allow-list stays. Fails,
 * and writes nothing, where the state has more lines than that one has.
 */
int restore_again(const struct state *s, const struct pacer_policy *bin, struct attached *a,
		  struct policy_error *error);

#endif
