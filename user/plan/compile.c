/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "key.h"
#include "plan/classifier.h"
#include "plan/draft.h"
#include "plan/drift.h"
#include "plan/more.h"
#include "plan/resting.h"
#include "plan/sampling.h"
#include "plan/shares.h"
#include "plan/throttles.h"

/* A coarse clock is good enough where a gap or a slot is at least this many of its ticks. */
#define COARSE_TICKS 16

uint64_t compile_drained_ns(const struct pacer_policy *bin)
{
	uint64_t until_ns = 0;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < bin->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &bin->rule[r].limiter[k];

			if (compile_hashed(t) && t->secret != bin->secret && t->until_ns > until_ns)
				until_ns = t->until_ns;
		}
	return until_ns;
}

/* --- a rule's limits -------------------------------------------------------------------------- */

/* Limits of a rule as limits of their own, and which of them is a guest in which. */
struct made {
	struct pacer_limiter limiter[POLICY_LIMITS_MAX];
	int host[POLICY_LIMITS_MAX], guest[POLICY_LIMITS_MAX]; /* -1: none */
};

static int make(const struct policy_rule *rule, size_t r, const struct terms *terms,
		struct made *made, struct policy_error *error)
{
	struct policy_limit room;
	char path[64];

	memset(made, 0, sizeof(*made));
	for (size_t i = 0; i < rule->n_limits; i++) {
		const struct limit_kind *kind = limit_kind_of(&rule->limit[i]);

		made->host[i] = made->guest[i] = -1;
		made->limiter[i].kind = kind->limiter;
		key_masks(&rule->limit[i].key, &made->limiter[i]);
		snprintf(path, sizeof(path), "rules[%zu].limits[%u]", r, rule->limit[i].item);
		if (kind->profile(drift_limit(&rule->limit[i], &room), terms, path,
				  &made->limiter[i], error))
			return -1;
		shares_tell(rule, i, terms->fleet, &made->limiter[i]);
		if (rule->limit[i].of_new)
			made->limiter[i].kind |= PACER_LIMITER_NEW;
	}
	return 0;
}

/*
 * A guest goes to the host with the shortest memory, wherever that stands in the rule: so that to
 * write a rule's limits in another order changes nothing.
 */
static void find_host(const struct policy_rule *rule, struct made *made, size_t i)
{
	const struct limit_kind *kind = limit_kind_of(&rule->limit[i]);
	struct pacer_limiter *t = made->limiter;
	int best = -1;

	for (size_t k = 0; kind->join && k < rule->n_limits; k++)
		if (keymask_same(&t[k], &t[i]) && !((t[k].kind ^ t[i].kind) & PACER_LIMITER_NEW) &&
		    kind->join(&rule->limit[i], &t[i], &t[k], true) &&
		    (best < 0 || t[k].window.ring_ns < t[best].window.ring_ns))
			best = k;
	if (best < 0)
		return;
	kind->join(&rule->limit[i], &t[i], &t[best], false);
	made->host[i] = best;
	made->guest[best] = i;
}

/* In the order of the limits. A guest stands where its host does. */
static int draft_rule(const struct policy_rule *rule, size_t r, const struct terms *terms,
		      struct draft_rule *d, struct policy_error *error)
{
	struct made made;

	if (make(rule, r, terms, &made, error))
		return -1;
	for (size_t i = 0; i < rule->n_limits; i++)
		find_host(rule, &made, i);
	d->n = 0;
	for (size_t i = 0; i < rule->n_limits; i++) {
		const struct limit_kind *kind = limit_kind_of(&rule->limit[i]);
		struct draft *to = &d->at[d->n];

		if (made.host[i] >= 0)
			continue;
		d->n++;
		*to = (struct draft){made.limiter[i], &rule->limit[i],	   i,
				     made.guest[i],   rule->limit[i].line, 0,
				     PLAN_NEW};
		if (kind->finish)
			kind->finish(&to->limiter);
		to->lines = draft_wanted(to, &to->limiter);
	}
	return 0;
}

/* --- all together --------------------------------------------------------------------------- */

static bool coarse_enough(const struct policy *policy, uint64_t resolution_ns)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t i = 0; i < policy->rule[r].n_limits; i++) {
			const struct policy_limit *l = &policy->rule[r].limit[i];

			if (limit_kind_of(l)->fine_ns(l) / COARSE_TICKS < resolution_ns)
				return false;
		}
	for (size_t i = 0; i < policy->n_pools; i++)
		if (throttle_fine_ns(&policy->pool[i].throttle) / COARSE_TICKS < resolution_ns)
			return false;
	return true;
}

static bool asks_exact(const struct policy *policy, uint64_t resolution_ns)
{
	return policy->clock == CLOCK_EXACT ||
	       (policy->clock == CLOCK_AUTO && !coarse_enough(policy, resolution_ns));
}

static bool counts_a_rule(const struct pacer_policy *bin, uint32_t id)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (bin->rule[r].counter == id)
			return true;
	return false;
}

/* A rule that keeps its name keeps its counter; there are enough for those of two policies. */
static void number_counters(const struct policy *policy, const struct compile_previous *previous,
			    struct pacer_policy *bin)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct pacer_rule *old = migrate_previous(previous, policy->rule[r].name);

		bin->rule[r].counter = old ? old->counter : 0;
	}
	for (size_t r = 0; r < policy->n_rules; r++) {
		uint32_t id = 1;

		if (bin->rule[r].counter)
			continue;
		while (counts_a_rule(bin, id) || (previous && counts_a_rule(previous->bin, id)))
			id++;
		bin->rule[r].counter = id;
	}
}

static bool counts_a_set(const struct pacer_policy *bin, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (bin->set_counter[i] == id)
			return true;
	return false;
}

/* A set that keeps its name keeps its counter; there are enough for those of two policies. */
static void number_sets(const struct policy *policy, const struct compile_previous *previous,
			struct pacer_policy *bin)
{
	size_t n_old = previous ? previous->policy->n_sets : 0;

	for (size_t i = 0; i < policy->n_sets; i++) {
		uint32_t id = 0;
		size_t k = 0;

		while (k < n_old && strcmp(previous->policy->set[k].name, policy->set[i].name))
			k++;
		if (k < n_old)
			id = previous->bin->set_counter[k];
		else
			while ((n_old && counts_a_set(previous->bin, n_old, id)) ||
			       counts_a_set(bin, i, id))
				id++;
		bin->set_counter[i] = (uint8_t)id;
	}
}

static void emit_rule(const struct policy_rule *rule, uint64_t resolution_ns,
		      struct pacer_rule *out)
{
	out->says = rule->says;
	out->over = rule->over;
	out->pool = rule->over == PACER_OVER_POOL ? rule->pool : 0;
	out->ban_ns = rule->ban_ns ? rule->ban_ns + resolution_ns : 0;
	out->ban_grow = rule->ban_grow;
	out->ban_tick_ns = rule->ban_ns ? resolution_ns : 0;
	out->ban_max_ns = rule->ban_max_ns;
	out->ban_forget_ns = rule->ban_grow ? rule->ban_forget_ns + resolution_ns : 0;
}

static enum pacer_plain plain_of(const struct pacer_policy *bin, const struct pacer_rule *rule)
{
	if (rule->says && rule->over == PACER_OVER_DROP && !(bin->flags & PACER_MONITOR))
		return PACER_PLAIN_VERDICT;
	if (rule->n_limiters != 1 ||
	    rule->limiter[0].kind & (PACER_LIMITER_FLEET | PACER_LIMITER_NEW) ||
	    rule->over != PACER_OVER_DROP || bin->flags & PACER_MONITOR ||
	    pacer_limiter_valued(&rule->limiter[0]))
		return PACER_PLAIN_NOT;
	return rule->ban_ns ? PACER_PLAIN_BANNING : PACER_PLAIN;
}

/* Are its lines those of a limit before it? */
static bool lines_are_shared(const struct draft_rule *d, size_t k)
{
	for (size_t i = 0; i < k; i++)
		if (compile_in_lines(&d->at[i].limiter) &&
		    d->at[i].limiter.base == d->at[k].limiter.base)
			return true;
	return false;
}

static void emit_limiter(const struct draft *d, size_t r, struct pacer_rule *rule,
			 struct plan *plan)
{
	struct plan_limit at = {r, 0, rule->n_limiters, d->state};

	rule->limiter[rule->n_limiters++] = d->limiter;
	at.limit = d->guest;
	if (d->guest >= 0)
		plan->limit[plan->n_limits++] = at;
	at.limit = d->limit;
	if (d->limit >= 0)
		plan->limit[plan->n_limits++] = at;
}

/* What has no lines comes last. */
static void emit(const struct policy *policy, struct draft_rule *drafts, struct pacer_policy *bin,
		 struct plan *plan)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct draft_rule *d = &drafts[r];
		struct pacer_rule *rule = &bin->rule[r];

		emit_rule(&policy->rule[r], plan->resolution_ns, rule);
		for (int last = 0; last < 2; last++)
			for (size_t k = 0; k < d->n; k++) {
				if (compile_in_lines(&d->at[k].limiter) == last)
					continue;
				emit_limiter(&d->at[k], r, rule, plan);
				if (!last && !lines_are_shared(d, k))
					plan->lines_used +=
					    compile_limiter_lines(&d->at[k].limiter);
			}
		rule->plain = plain_of(bin, rule);
		if (rule->says) /* of which sources its packets are is told all the same */
			key_masks(&policy->rule[r].limit[0].key, &rule->limiter[0]);
	}
}

/* --- values of sets in keys ------------------------------------------------------------------- */

/* The set of the policy that a limit names, also one of the policy before; -1: it has no such, or
 * none with values. */
static int set_of(const struct policy *policy, uint32_t name_id)
{
	for (size_t i = 0; i < policy->n_sets; i++)
		if (policy->set[i].value && compile_name_id(policy->set[i].name) == name_id)
			return (int)i;
	return -1;
}

/* Which of the rule's values a limit has, a new one for the first that has it. Its two limits at
 * the most are those of the policy, or of one before.
 */
static int place_value(const struct policy *policy, const struct policy_rule *named, int dst,
		       struct pacer_limiter *t, struct pacer_rule *rule, struct policy_error *error)
{
	int set = set_of(policy, t->value_set[dst]);
	uint32_t which = (uint32_t)(set + 1) | (dst ? PACER_VALUE_DST : 0), i = 0;

	if (set < 0)
		return policy_fail(error, named->line,
				   "rule %s: a limit that this change retires counts by the values "
				   "of a set until its window has passed: keep the set until "
				   "then, and apply again without it",
				   named->name);
	while (i < 2 && rule->value[i] && rule->value[i] != which)
		i++;
	if (i == 2)
		return policy_fail(error, named->line,
				   "rule %s: its limits count by two values at the most, and those "
				   "that this change retires stay until their windows have "
				   "passed: apply it in steps, or later",
				   named->name);
	rule->value[i] = (uint8_t)which;
	t->value[dst] = (uint8_t)(i + 1);
	return 0;
}

static int place_values(const struct policy *policy, struct draft_rule *drafts,
			struct pacer_policy *bin, struct policy_error *error)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t k = 0; k < drafts[r].n; k++)
			for (int dst = 0; dst < 2; dst++)
				if (drafts[r].at[k].limiter.value_set[dst] &&
				    place_value(policy, &policy->rule[r], dst,
						&drafts[r].at[k].limiter, &bin->rule[r], error))
					return -1;
	return 0;
}

bool compile_needs_more(const struct pacer_limiter *t)
{
	return t->kind & PACER_LIMITER_NEW || pacer_limiter_valued(t) || t->key_id & PACER_KEY_TTL;
}

/* What such limits ask of the policy. */
static void put_limits_more(const struct policy *policy, struct pacer_policy *bin)
{
	for (size_t i = 0; i < policy->n_sets; i++)
		bin->sets_valued |= (uint32_t) !!policy->set[i].value << i;
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t k = 0; k < bin->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &bin->rule[r].limiter[k];

			if (t->kind & PACER_LIMITER_NEW)
				bin->rule[r].opens = 1;
			if (!compile_needs_more(t))
				continue;
			bin->flags |= PACER_KEYS_MORE;
			bin->dims |= PACER_DIMS_MORE;
		}
}

/* A ban is remembered by its rule's name, as a number. */
static int number_rules(const struct policy *policy, struct pacer_policy *bin,
			struct policy_error *error)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		bin->rule[r].id = compile_name_id(policy->rule[r].name);
		for (size_t k = 0; k < r; k++)
			if (bin->rule[k].id == bin->rule[r].id)
				return policy_fail(
				    error, policy->rule[r].line,
				    "rule %s: its name and %s have the same hash: give one "
				    "of them another name",
				    policy->rule[r].name, policy->rule[k].name);
	}
	return 0;
}

static int draft_all(const struct policy *policy, const struct change *change,
		     const struct terms *terms, struct draft_rule *drafts, struct plan *plan,
		     struct policy_error *error)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		if (draft_rule(&policy->rule[r], r, terms, &drafts[r], error) ||
		    (!policy->rule[r].says &&
		     migrate_rule(change, &drafts[r], &policy->rule[r], plan, error)))
			return -1;
	return 0;
}

/* States for what lies in no lines, and has none yet; then for the targets of pools. */
static int take_states(const struct policy *policy, const struct compile_previous *previous,
		       const struct compile_host *host, struct draft_rule *drafts,
		       struct pacer_policy *bin, struct plan *plan, struct policy_error *error)
{
	struct throttle_states states;

	throttle_survey(previous ? previous->bin : NULL, host->now_ns, &states);
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t k = 0; k < drafts[r].n; k++) {
			struct draft *d = &drafts[r].at[k];
			int state;

			if (d->state != PLAN_NEW || compile_in_lines(&d->limiter))
				continue;
			state = throttle_take(&states, d->line, error);
			if (state < 0)
				return -1;
			d->limiter.base = state;
		}
	return throttle_pools(policy, previous, host, &states, bin, plan, error);
}

/* Is the secret that is to be the next one still that of the last rotation? */
static int may_rotate(const struct compile_previous *previous, const struct compile_host *host,
		      struct policy_error *error)
{
	uint64_t until_ns, now_ns = host->now_ns;

	if (!previous || !previous->rotate)
		return 0;
	if (previous->bin->bans.moving)
		return policy_fail(error, 0,
				   "bans of the last rotation wait for room in their table: "
				   "rotate when some have run out, or lift some");
	until_ns = compile_drained_ns(previous->bin);
	/* What the coarse clock reads as before the end may be later. */
	if (!until_ns || (until_ns != COMPILE_UNTIL_SET && until_ns + host->resolution_ns < now_ns))
		return 0;
	if (until_ns == COMPILE_UNTIL_SET)
		return policy_fail(error, 0,
				   "the last rotation was cut off: apply the policy again first");
	return policy_fail(error, 0,
			   "the secret before the last rotation is needed for another %.1f s: "
			   "rotate then",
			   (until_ns + host->resolution_ns - now_ns) / 1e9 + 0.1);
}

/* In 66 us no two changes are; the number comes again after 78 hours. */
#define BEGUN_SHIFT 16

int compile_policy(const struct policy *policy, const struct compile_previous *previous,
		   const struct compile_host *host, struct pacer_policy *bin, struct plan *plan,
		   struct policy_error *error)
{
	static struct draft_rule drafts[PACER_RULES_MAX];
	bool exact = asks_exact(policy, host->resolution_ns);
	struct terms terms = {exact ? 0 : host->resolution_ns, host->cpus,
			      shares_fleet(&policy->fleet)};
	struct change change = {.previous = previous,
				.exact = exact,
				.was_exact =
				    previous && asks_exact(previous->policy, host->resolution_ns),
				.now_ns = host->now_ns,
				.host = host,
				.secret = previous ? previous->bin->secret : 0,
				.rotate = previous && previous->rotate};

	if (previous)
		change.other_fleet = terms.fleet ^ shares_fleet(&previous->policy->fleet);
	memset(bin, 0, sizeof(*bin));
	memset(plan, 0, sizeof(*plan));
	if (may_rotate(previous, host, error))
		return -1;
	plan->rotated = change.rotate;
	bin->secret = change.secret ^ change.rotate;
	plan->resolution_ns = terms.resolution_ns;
	plan->cpus = host->cpus;
	if (compile_classifier(policy, bin, error) || compile_more(policy, bin, error) ||
	    number_rules(policy, bin, error) ||
	    draft_all(policy, &change, &terms, drafts, plan, error) ||
	    place_values(policy, drafts, bin, error) ||
	    shares_place(drafts, policy->n_rules, previous ? previous->bin : NULL,
			 change.other_fleet, error) ||
	    take_states(policy, previous, host, drafts, bin, plan, error) ||
	    lay(policy, previous, drafts, bin, plan, error))
		return -1;
	if (plan->bans == PLAN_NEW)
		bin->bans.begun = (uint32_t)(host->now_ns >> BEGUN_SHIFT);
	number_counters(policy, previous, bin);
	number_sets(policy, previous, bin);
	if (resting_keep(policy, &change, bin, plan, error))
		return -1;
	/*
	 * A draining limit of an exact policy does not include the coarse clock's resolution, nor
	 * does one that goes on with its state after a trial.
	 */
	exact |= previous && (previous->trial || plan_retired(plan)) &&
		 previous->bin->flags & PACER_CLOCK_EXACT;
	bin->flags = (policy->monitor ? PACER_MONITOR : 0) |
		     (policy->unparsed_drop ? PACER_UNPARSED_DROP : 0) |
		     (exact ? PACER_CLOCK_EXACT : 0);
	bin->else_says = policy->else_says;
	bin->else_over = policy->else_over;
	bin->else_pool = policy->else_pool;
	bin->serial = previous ? previous->bin->serial + 1 : 1;
	bin->sampling = sampling_compile(&policy->sample, bin, previous ? previous->bin : NULL,
					 terms.resolution_ns, host->now_ns);
	emit(policy, drafts, bin, plan);
	put_limits_more(policy, bin);
	return 0;
}

int compile_memory(const struct policy *policy, const struct compile_host *host, uint64_t *bytes,
		   struct policy_error *error)
{
	const struct compile_host coarsest = {10000000, 1, 1};
	struct pacer_policy *bin;
	struct plan *plan;
	int result = 0;

	*bytes = policy->memory_bytes;
	if (!policy->withstand)
		return 0;
	bin = malloc(sizeof(*bin));
	plan = malloc(sizeof(*plan));
	if (!bin || !plan)
		result = policy_fail(error, POLICY_NO_MEMORY, "out of memory");
	else
		result = compile_policy(policy, NULL, host ? host : &coarsest, bin, plan, error);
	if (!result)
		*bytes = plan->lines * sizeof(struct pacer_line);
	free(plan);
	free(bin);
	return result;
}

/* A denial for a reason of no kind is of the first limit in the limit. */
int compile_limit_of(const struct plan *plan, const struct policy *policy, size_t rule,
		     uint32_t limiter, enum pacer_reason reason)
{
	const struct limit_kind *of = kind_of_reason(reason);
	int found = -1;

	for (size_t i = 0; i < plan->n_limits; i++) {
		const struct plan_limit *at = &plan->limit[i];

		if (at->rule != rule || at->limiter != limiter ||
		    (of && limit_kind_of(&policy->rule[rule].limit[at->limit]) != of))
			continue;
		if (found < 0 || (int)at->limit < found)
			found = at->limit;
	}
	return found;
}
