/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a rule's limits on their way from the policy to the packet path: made from limits
 * (compile.c), given the state of those before (migrate.c), and laid (lay.c).
 */
#ifndef PACER_DRAFT_H
#define PACER_DRAFT_H

#include "plan/kinds.h"

struct draft {
	struct pacer_limiter limiter;
	const struct policy_limit *from; /* NULL: a draining one */
	int limit, guest; /* indices in the rule: of `from`, and of a gap that is with it; or -1 */
	int line;
	uint64_t lines; /* that `from` asks for; 0: a share of the memory */
	enum plan_state state;
};

struct draft_rule {
	struct draft at[PACER_LIMITERS_MAX];
	size_t n;
};

/* A change of policy, as far as it decides what goes on. */
struct change {
	const struct compile_previous *previous; /* NULL: a load */
	uint64_t now_ns;
	bool exact;	/* the clock that the new policy asks for */
	bool was_exact; /* ... the previous one's, whatever it has beside what drains */
	const struct compile_host *host;
	uint8_t secret;	      /* the previous policy's */
	bool rotate;	      /* to the other one */
	uint64_t other_fleet; /* in ids of shares: shares_move */
};

static inline uint64_t draft_wanted(const struct draft *d, const struct pacer_limiter *t)
{
	const struct limit_kind *kind = limit_kind_of(d->from);

	return kind->wanted ? kind->wanted(d->from, t) : 0;
}

/* The rule of this name in the policy before; NULL: there is none. */
const struct pacer_rule *migrate_previous(const struct compile_previous *previous,
					  const char *name);

/* Has the limit, of the policy before, not expired? */
bool migrate_still_counts(const struct change *change, const struct pacer_limiter *t);

/* Which of the rule's drafts go on with the state of its limits before, and which of these retire.
 */
int migrate_rule(const struct change *change, struct draft_rule *d, const struct policy_rule *rule,
		 struct plan *plan, struct policy_error *error);

/* Where the table of bans and the lines of new limits lie, beside what is in use. */
int lay(const struct policy *policy, const struct compile_previous *previous,
	struct draft_rule *drafts, struct pacer_policy *bin, struct plan *plan,
	struct policy_error *error);

#endif
