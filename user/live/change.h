/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: change the policy of a pacer at work, whole and at once. Killed at any instruction, a
 * change has happened or has not; what is half written lies in the copy that is not in force.
 *
 * Changes of several processes wait for each other. Functions return 0, or -1 with *error filled:
 * then what is in force is what was.
 */
#ifndef PACER_CHANGE_H
#define PACER_CHANGE_H

#include "live/draining.h"
#include "plan/plan.h"
#include "sets/texts.h"

/* Done, and in force; but *error says what of it ends only with the next change. */
#define CHANGE_LASTS DRAINING_LASTS

/*
 * Puts the policy of `text` in force in place of the present one, keeping state as compile.h says;
 * confirm_ns not 0: until then, unless confirmed. A weak secret (secret.h) is replaced by the way,
 * but for a policy that may roll back, and where there is no room for that. `sets` are those of the
 * text's policy; NULL: it has those that are there, as they are.
 */
int change_apply(struct attached *a, const char *text, const struct set_texts *sets,
		 uint64_t confirm_ns, struct plan *plan, struct policy_error *error);
/* What is done once no other process is waited for any more, and before the change: 0; -1, with
 * *error filled: nothing is changed. */
struct change_first {
	int (*run)(void *arg, struct policy_error *error);
	void *arg;
};

/*
 * Writes "RULE.FIELD=VALUE"s into the text in force and applies that, as above. CHANGE_WRONG, with
 * *error filled, where one of them is not right; nothing is changed then. `first` may be NULL.
 */
#define CHANGE_WRONG (-2)
int change_set(struct attached *a, char *const *assignments, int n, uint64_t confirm_ns,
	       const struct change_first *first, struct plan *plan, struct policy_error *error);
/* A policy on trial stays. */
int change_confirm(struct attached *a, struct policy_error *error);

/*
 * Puts another secret of the hash in force: every limit and every ban goes on, as compile.h and
 * rotate.h say. Refused while a policy waits to be confirmed, and until the last one's old secret
 * is needed no more. Cut off at any moment, one of the two secrets is in force with all that is
 * counted under it; a later change finishes what is left to do.
 */
int change_rotate(struct attached *a, struct plan *plan, struct policy_error *error);

/*
 * After a change by hand, by whoever holds the lock: drops what has expired, unless a policy is on
 * trial. What does not work out waits for the next change.
 */
void change_tidy(struct attached *a);

#endif
