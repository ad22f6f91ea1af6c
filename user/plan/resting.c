/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/resting.h"

#include <string.h>

#include "plan/shares.h"

struct pacer_rule *resting_of(struct pacer_policy *bin, uint32_t id)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = &bin->rule[r];

		if (!rule->counter && rule->n_limiters && rule->id == id)
			return rule;
	}
	return NULL;
}

static bool is_free(const struct pacer_rule *rule)
{
	return !rule->counter && !rule->n_limiters;
}

size_t resting_free(const struct pacer_policy *bin)
{
	size_t n = 0;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		n += is_free(&bin->rule[r]);
	return n;
}

/* As a rule that denies: one of that kind keeps none of the others from their short way. */
struct pacer_rule *resting_place(struct pacer_policy *bin, uint32_t id)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = &bin->rule[r];

		if (!is_free(rule))
			continue;
		memset(rule, 0, sizeof(*rule));
		rule->id = id;
		rule->says = PACER_SAYS_DENY;
		rule->plain = PACER_PLAIN_VERDICT;
		return rule;
	}
	return NULL;
}

const struct pacer_rule *resting_before(const struct compile_previous *previous, const char *name)
{
	const struct pacer_rule *rule = migrate_previous(previous, name);

	if (!previous || (rule && rule->n_limiters))
		return rule;
	return resting_of((struct pacer_policy *)previous->bin, compile_name_id(name));
}

/* -1: there is no place. */
static int rest(const struct change *change, const struct pacer_rule *from,
		struct pacer_policy *bin, struct plan *plan)
{
	struct pacer_rule *to = NULL;

	for (size_t k = 0; from && k < from->n_limiters; k++) {
		struct pacer_limiter t = from->limiter[k];

		if (!migrate_still_counts(change, &t))
			continue;
		if (!to)
			to = resting_place(bin, from->id);
		if (!to)
			return -1;
		if (!t.until_ns)
			t.until_ns = COMPILE_UNTIL_SET;
		shares_move(&t, change->other_fleet);
		to->limiter[to->n_limiters++] = t;
		plan->n_resting++;
	}
	return 0;
}

static bool has_rule(const struct policy *policy, const struct pacer_policy *bin, uint32_t id)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		if (bin->rule[r].id == id)
			return true;
	return false;
}

int resting_keep(const struct policy *policy, const struct change *change, struct pacer_policy *bin,
		 struct plan *plan, struct policy_error *error)
{
	const struct compile_previous *previous = change->previous;

	for (size_t r = 0; r < policy->n_rules; r++)
		if (policy->rule[r].says == PACER_SAYS_DENY &&
		    rest(change, resting_before(previous, policy->rule[r].name), bin, plan))
			return policy_fail(
			    error, policy->rule[r].line,
			    "rule %s: what its limits have counted until now still matters, and "
			    "beside %u rules there is no place for it: use fewer, or apply again "
			    "later",
			    policy->rule[r].name, PACER_RULES_MAX);
	for (size_t r = 0; previous && r < PACER_RULES_MAX; r++)
		if (!has_rule(policy, bin, previous->bin->rule[r].id) &&
		    rest(change, &previous->bin->rule[r], bin, plan))
			break;
	return 0;
}
