/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A change of policy. A limit that keeps its rule, key and shape keeps its state, and its new value
 * counts at once. Any other change leaves the old limit in force beside the new one (draining)
 * until its memory has run out.
 *
 * Why no window across a change admits more than the loosest of its policies would. Of the limits
 * of one key and time, let s be the tightest of the policy that was in force when the window began:
 * it has counted all that the window admitted. It stays in force for as long as that matters, kept
 * or draining, and is never looser than some policy's tightest limit of that key and time: for
 * where a tighter one stands beside it, a looser value is another change (outdone). In the policy
 * such a value has no effect, so nobody waits for it. And so it is where another limit comes with
 * it, of whatever key, which has not counted what s let through; and where a trial that lapses is
 * such a change.
 *
 * A rate bounds windows of all lengths, so it answers for rates of another speed or key, too: where
 * it has not counted long enough what one of its rule that drains let through, it begins without a
 * burst when that ends (rate.h). A window that follows a rate, or a throttle, does not: it has not
 * counted what the rate let through before the change, and has all of its own at the rate's end.
 * Nor does a rate, or a limit of a longer time, that follows one of those: in a time that is longer
 * than the window, or the cooldown, the old limit may come on top.
 */
#include "plan/compile.h"
#include "plan/draft.h"
#include "plan/keymask.h"
#include "plan/resting.h"
#include "plan/shares.h"

/* Tables of fewer sets than this get lines of their own for another secret. */
#ifndef COMPILE_MOVE_SETS
#define COMPILE_MOVE_SETS 4096
#endif

const struct pacer_rule *migrate_previous(const struct compile_previous *previous, const char *name)
{
	for (size_t r = 0; previous && r < previous->policy->n_rules; r++)
		if (!strcmp(previous->policy->rule[r].name, name))
			return &previous->bin->rule[r];
	return NULL;
}

bool migrate_still_counts(const struct change *change, const struct pacer_limiter *t)
{
	return !t->until_ns || t->until_ns > change->now_ns;
}

/*
 * The coarse clock's times lie up to its resolution before the truth. An exact policy goes on with
 * them only under a gap that is no smaller than the old one, which included that; and so does the
 * one after it: it has them still. That is marked in a byte which the packet path does not read; of
 * rates, and of throttles, which have no gap, it has another use.
 */
static bool has_coarse_times(const struct change *change, const struct pacer_limiter *old)
{
	bool kept = pacer_limiter_kind_of(old) != PACER_LIMITER_RATE && old->unused[0];

	return old->until_ns || !change->was_exact || kept;
}

static bool clock_differs(const struct change *change, const struct pacer_limiter *t,
			  const struct pacer_limiter *old)
{
	return change->exact && has_coarse_times(change, old) &&
	       (kind_of_limiter(old)->keeps_times || (t->gap_ns && t->gap_ns < old->gap_ns));
}

/* May the draft go on with the old limit's state? Then *as is what it becomes. */
static bool same_shape(const struct change *change, const struct draft *d,
		       const struct pacer_limiter *old, struct pacer_limiter *as)
{
	uint64_t lines;

	*as = d->limiter;
	if (as->kind != old->kind || !keymask_same(as, old) || clock_differs(change, as, old) ||
	    (old->secret != change->secret && compile_hashed(old)) ||
	    !kind_of_limiter(old)->same_shape(as, old, change->host))
		return false;
	lines = draft_wanted(d, as);
	if (old->gap_ns && !as->gap_ns) /* a gap that goes is a limit that goes */
		return false;
	/* One that comes on trial goes when that lapses, unless to what drains (trial.c). */
	if (change->previous->trial && !old->until_ns && as->gap_ns && !old->gap_ns)
		return false;
	if (lines && lines != compile_limiter_lines(old))
		return false;
	as->base = old->base;
	as->sets = old->sets;
	as->shared = old->shared;
	if (change->exact && as->gap_ns && has_coarse_times(change, old))
		as->unused[0] = 1;
	return true;
}

/* Is a looser than b (1), tighter (-1), or neither? Of one shape. */
static int compare(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	u128 x = kind_of_limiter(a)->allowance(a), y = kind_of_limiter(b)->allowance(b);

	if (x != y)
		return x > y ? 1 : -1;
	return a->gap_ns == b->gap_ns ? 0 : a->gap_ns < b->gap_ns ? 1 : -1;
}

/* Of two drafts of the old limit's shape: the loosest that is no looser than it, or the tightest.
 */
static bool nearer(const struct pacer_limiter *a, const struct pacer_limiter *b,
		   const struct pacer_limiter *old)
{
	bool looser = compare(a, old) > 0;

	if (looser != (compare(b, old) > 0))
		return !looser;
	return (compare(a, b) > 0) == !looser;
}

/* Of one kind, whatever their keys: is the time of the first one no shorter? */
static bool lasts_as_long(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	const struct limit_kind *kind = kind_of_limiter(b);

	return kind == kind_of_limiter(a) &&
	       (kind->same_time(a, b) || (kind->no_shorter && kind->no_shorter(a, b)));
}

/*
 * Does the draft count all that the limit, of its rule, has counted, for as long as it matters to
 * one that is raised? Its state goes on, or it begins beside that, which drains, and is no looser.
 * One that is lowered has to go on, which on trial it may not. Of a rate that is to be known
 * already; its time tells of all that came. Of others it forgets, where its time is shorter, what
 * fitted into its larger value, and admits the smaller one again and again. A gap that is longer
 * counts nothing from before.
 */
static bool follows(const struct change *change, const struct draft *d,
		    const struct pacer_limiter *was, const struct pacer_limiter *raised)
{
	const struct pacer_limiter *t = &d->limiter;
	const struct limit_kind *kind = kind_of_limiter(t);
	struct pacer_limiter as;
	bool looser;

	if (was->until_ns || was->kind != t->kind || !keymask_same(was, t) ||
	    t->gap_ns > was->gap_ns)
		return false;
	looser = kind->allowance(t) >= kind->allowance(was);
	if (kind->beside)
		return kind->same_time(was, t) && (d->state == PLAN_KEPT || looser);
	if (looser)
		return same_shape(change, d, was, &as) || kind->same_time(was, t);
	return !change->previous->trial && t->gap_ns == was->gap_ns && lasts_as_long(was, raised) &&
	       same_shape(change, d, was, &as);
}

/* Has the limit of the draft not counted what this one has let through? */
static bool is_fresh(const struct change *change, const struct pacer_rule *rule,
		     const struct draft *d, const struct pacer_limiter *old)
{
	const struct limit_kind *kind = kind_of_limiter(&d->limiter);
	bool rates = kind->beside && kind_of_limiter(old)->beside;
	struct pacer_limiter ends = *old;

	ends.until_ns = change->now_ns;
	for (size_t k = 0; k < rule->n_limiters; k++) {
		const struct pacer_limiter *was = &rule->limiter[k];

		if (was != old && follows(change, d, was, old) &&
		    !(rates && kind->is_younger(was, &ends, change->now_ns)))
			return false;
	}
	return true;
}

/* The draft that goes on with the limit, and is no looser, of those that are not `taken`. */
static size_t tried_as(const struct change *change, const struct draft_rule *d, uint32_t taken,
		       const struct pacer_limiter *was)
{
	struct pacer_limiter as;
	size_t k = 0;

	while (k < d->n &&
	       (taken >> k & 1 || !same_shape(change, &d->at[k], was, &as) ||
		kind_of_limiter(was)->allowance(&as) > kind_of_limiter(was)->allowance(was) ||
		as.gap_ns < was->gap_ns))
		k++;
	return k;
}

/*
 * Is one of the rule's others not in the policy on trial, or looser there? As that ends, it has not
 * counted what that let through. Of rates trial.c sees to it, and what drains grows no more.
 */
static bool any_is_missed(const struct change *change, const struct draft_rule *d,
			  const struct draft *of, const struct pacer_rule *rule,
			  const struct pacer_limiter *old)
{
	uint32_t taken = 1u << (of - d->at);

	if (!change->previous->trial || old->until_ns)
		return false;
	for (size_t i = 0; i < rule->n_limiters; i++) {
		const struct pacer_limiter *was = &rule->limiter[i];
		size_t k;

		if (was == old || was->until_ns ||
		    (kind_of_limiter(was)->beside && kind_of_limiter(old)->beside))
			continue;
		k = tried_as(change, d, taken, was);
		if (k == d->n)
			return true;
		taken |= 1u << k;
	}
	return false;
}

static bool alike(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	return !((a->kind ^ b->kind) & ~PACER_LIMITER_FLEET) && keymask_same(a, b);
}

/* Of one key and kind: is the first one tighter than the second, in that one's time or a longer? */
static bool is_tighter(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	const struct limit_kind *kind = kind_of_limiter(b);

	return alike(a, b) && kind->allowance(a) < kind->allowance(b) && lasts_as_long(a, b);
}

/* What the second one admits is within the first, whatever that has not counted. */
static bool is_no_tighter(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	const struct limit_kind *kind = kind_of_limiter(b);

	return alike(a, b) && kind->allowance(a) >= kind->allowance(b) && kind->same_time(a, b) &&
	       a->gap_ns <= b->gap_ns;
}

/*
 * Is a value of the draft looser than before, and one beside it the tighter, or one that has not
 * counted what this has let through? Or tighter, on trial, and one is not tried? Or is it a burst
 * that changes, and the larger of both still builds, or would if it had been as large from its
 * beginning on? What keys have taken meanwhile would not count. Or one that grows, while keys owe
 * to a larger one? None of them drains yet.
 */
static bool outdone(const struct change *change, const struct draft_rule *d,
		    const struct pacer_limiter *t, const struct draft *of,
		    const struct pacer_rule *rule, const struct pacer_limiter *old)
{
	const struct limit_kind *kind = kind_of_limiter(t);
	bool more = kind->allowance(t) > kind->allowance(old) || t->gap_ns < old->gap_ns;
	bool less = kind->allowance(t) < kind->allowance(old) || t->gap_ns > old->gap_ns;

	if (kind->beside && (more || less) &&
	    (!kind->has_waited(more ? t : old, change->now_ns) || (more && kind->owes(t))))
		return true;
	if (more && less) /* what one let through, the other has not counted */
		return true;
	if (less && any_is_missed(change, d, of, rule, old))
		return true;
	for (size_t k = 0; k < d->n; k++) {
		const struct pacer_limiter *other = &d->at[k].limiter;

		if (&d->at[k] == of)
			continue;
		if (more && (is_tighter(other, t) ||
			     (!is_no_tighter(other, t) && is_fresh(change, rule, &d->at[k], old))))
			return true;
		if (t->gap_ns < old->gap_ns && t->gap_ns < other->gap_ns &&
		    keymask_same(other, t) &&
		    !(other->kind & ~t->kind & PACER_LIMITER_NEW)) /* which counts fewer packets */
			return true;
	}
	return false;
}

/* The draft that goes on with the limit; NULL: none. */
static const struct draft *goes_on(const struct change *change, struct draft_rule *d,
				   const struct pacer_rule *rule, const struct pacer_limiter *old)
{
	struct draft *best = NULL;
	struct pacer_limiter as, found;

	for (size_t k = 0; k < d->n; k++) {
		struct draft *at = &d->at[k];

		if (at->state != PLAN_NEW || !same_shape(change, at, old, &as) ||
		    (best && !nearer(&as, &found, old)))
			continue;
		best = at;
		found = as;
	}
	if (!best || outdone(change, d, &found, best, rule, old))
		return NULL;
	best->limiter = found;
	best->lines = draft_wanted(best, &found);
	best->state = PLAN_KEPT;
	return best;
}

/* Is it what a rotation has left of that one, under the secret before? A gap it may not share. */
static bool is_twin(const struct change *change, const struct pacer_limiter *left,
		    const struct pacer_limiter *of)
{
	const struct limit_kind *kind = kind_of_limiter(left);
	struct pacer_limiter as = *of;

	return left->until_ns && left->secret != of->secret && left->kind == of->kind &&
	       compile_hashed(left) && keymask_same(left, of) && left->share_id == of->share_id &&
	       kind->same_shape(&as, left, change->host) &&
	       kind->allowance(left) == kind->allowance(of);
}

/*
 * Of each limit of the rule: the draft that goes on with it, or with its twin. False: there is a
 * limit that nothing goes on with, neither of them, or one that drains for another reason.
 */
static bool find_twins(const struct change *change, const struct pacer_rule *rule,
		       const struct draft *after[PACER_LIMITERS_MAX],
		       const struct draft *with[PACER_LIMITERS_MAX])
{
	uint32_t taken = 0;
	bool all = true;

	for (size_t i = 0; i < rule->n_limiters; i++) {
		const struct pacer_limiter *t = &rule->limiter[i];
		size_t k = 0;

		with[i] = after[i];
		if (after[i] || !migrate_still_counts(change, t))
			continue;
		while (k < rule->n_limiters &&
		       (!after[k] || taken >> k & 1 || !is_twin(change, t, &rule->limiter[k])))
			k++;
		if (k == rule->n_limiters) {
			all = false;
			continue;
		}
		taken |= 1u << k;
		with[i] = after[k];
	}
	return all;
}

/*
 * What a rotation has left has counted all that the limit in force has, and more. So it takes the
 * value that this one gets, which then counts for what came before the rotation as well. A looser
 * one only where each limit of the rule goes on so (`all`): else another one may count from the
 * rotation on, and be the tighter. A gap is needed for as long as it is. A rate waits for what was
 * left of it, and goes on with no other value (outdone).
 */
static void take_with(const struct change *change, struct pacer_limiter *left,
		      const struct draft *with, bool all)
{
	const struct limit_kind *kind = kind_of_limiter(left);
	uint64_t memory_ns = compile_limiter_memory_ns(left);
	struct pacer_limiter as = with->limiter;

	if (!kind->same_shape(&as, left, change->host))
		return;
	if (kind->take_value && (all || kind->allowance(&as) < kind->allowance(left)))
		kind->take_value(left, &as);
	if (left->gap_ns && as.gap_ns && !clock_differs(change, &as, left) &&
	    (all || as.gap_ns > left->gap_ns))
		left->gap_ns = as.gap_ns;
	left->idle_ns = pacer_later(left->idle_ns, as.idle_ns);
	if (left->until_ns != COMPILE_UNTIL_SET)
		left->until_ns += compile_limiter_memory_ns(left) - memory_ns;
}

static int full(const struct policy_rule *rule, bool rotate, struct policy_error *error)
{
	if (rotate)
		return policy_fail(
		    error, rule->line,
		    "rule %s: a rule holds up to %u limits, and a new secret wants two places "
		    "for each, those just retired included: use fewer, or unload and load, "
		    "which draws a secret, too",
		    rule->name, PACER_LIMITERS_MAX);
	return policy_fail(error, rule->line,
			   "rule %s: a rule holds up to %u limits, and those that this change "
			   "retires stay until their windows have passed: apply it in steps, or "
			   "later",
			   rule->name, PACER_LIMITERS_MAX);
}

static int retire(struct draft_rule *d, const struct pacer_limiter *old,
		  const struct policy_rule *rule, bool rotate, struct plan *plan,
		  struct policy_error *error)
{
	struct draft *to = &d->at[d->n];

	if (d->n == PACER_LIMITERS_MAX)
		return full(rule, rotate, error);
	*to = (struct draft){*old, NULL, -1, -1, rule->line, 0, PLAN_DRAINING};
	if (!to->limiter.until_ns)
		to->limiter.until_ns = COMPILE_UNTIL_SET;
	d->n++;
	plan->n_draining++;
	return 0;
}

/* Who chooses first among the new limits: what is in force, and the looser of one kind. */
static bool chooses_before(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	if (!a->until_ns != !b->until_ns)
		return !a->until_ns;
	return a->kind == b->kind ? compare(a, b) > 0 : a->kind < b->kind;
}

static void by_turn(const struct pacer_rule *old,
		    const struct pacer_limiter *turn[PACER_LIMITERS_MAX])
{
	for (size_t i = 0, k; i < old->n_limiters; i++) {
		for (k = i; k && chooses_before(&old->limiter[i], turn[k - 1]); k--)
			turn[k] = turn[k - 1];
		turn[k] = &old->limiter[i];
	}
}

/* Under another secret a limit goes on twice: as it was, draining, and as one that begins anew. */
static int rotate(const struct change *change, struct draft_rule *d, const struct policy_rule *rule,
		  struct plan *plan, struct policy_error *error)
{
	for (size_t k = 0, n = d->n; k < n; k++) {
		struct draft *at = &d->at[k];

		if (at->state == PLAN_DRAINING)
			continue;
		if (at->state == PLAN_KEPT && compile_hashed(&at->limiter)) {
			if (retire(d, &at->limiter, rule, true, plan, error))
				return -1;
			at->state = at->limiter.sets < COMPILE_MOVE_SETS ? PLAN_NEW : PLAN_MOVED;
			if (at->state == PLAN_NEW)
				at->lines = compile_limiter_lines(&at->limiter);
		}
		at->limiter.secret = change->secret ^ 1;
	}
	return 0;
}

/*
 * May the draining limit let through what this one, in force, has not counted or will let through?
 * By whatever key, and whether new flows or all: packets of their rule are both's.
 */
static bool waits(const struct change *change, const struct draft *d, const struct draft *draining)
{
	const struct limit_kind *kind = kind_of_limiter(&d->limiter);

	return kind->beside && d->state != PLAN_DRAINING && draining->state == PLAN_DRAINING &&
	       pacer_limiter_kind_of(&d->limiter) == pacer_limiter_kind_of(&draining->limiter) &&
	       (d->state != PLAN_KEPT ||
		kind->is_younger(&d->limiter, &draining->limiter, change->now_ns));
}

/*
 * A rate that goes on, and builds its bursts, would have them at once while it waits once more. So
 * it begins anew, and what it was lasts with the others. NULL: there is none.
 */
static struct draft *builds_and_waits(const struct change *change, struct draft_rule *d)
{
	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; d->at[i].state == PLAN_KEPT && k < d->n; k++)
			if (compile_rate_builds(&d->at[i].limiter, change->now_ns) &&
			    waits(change, &d->at[i], &d->at[k]))
				return &d->at[i];
	return NULL;
}

static int begin_once_more(const struct change *change, struct draft_rule *d,
			   const struct policy_rule *rule, struct plan *plan,
			   struct policy_error *error)
{
	struct draft *at;

	while ((at = builds_and_waits(change, d))) {
		if (retire(d, &at->limiter, rule, false, plan, error))
			return -1;
		at->state = PLAN_NEW;
	}
	return 0;
}

/* Limits in the same lines agree on when a record is idle. */
static void agree(struct draft_rule *d)
{
	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < d->n; k++) {
			struct pacer_limiter *a = &d->at[i].limiter, *b = &d->at[k].limiter;

			if (d->at[i].state != PLAN_NEW && d->at[k].state != PLAN_NEW &&
			    compile_in_lines(a) && compile_in_lines(b) && a->base == b->base &&
			    a->idle_ns < b->idle_ns)
				a->idle_ns = b->idle_ns;
		}
}

/* What ends so soon may do so before the change is in force, and is held for that long. */
#define SOON_NS 10000000000ull

/*
 * Who has to wait for others begins when the last of them is over. It can begin but once, so that
 * they are over together: when is known once the change is in force (compile_begin_rates), where
 * one of them has no end yet.
 */
static void wait_for_others(const struct change *change, struct draft_rule *d)
{
	for (size_t i = 0; i < d->n; i++) {
		struct pacer_limiter *t = &d->at[i].limiter;
		uint64_t end_ns = 0;

		for (size_t k = 0; k < d->n; k++)
			if (waits(change, &d->at[i], &d->at[k])) {
				end_ns = pacer_later(end_ns, d->at[k].limiter.until_ns);
				kind_of_limiter(t)->owe(t, &d->at[k].limiter);
			}
		for (size_t k = 0; end_ns && k < d->n; k++)
			if (waits(change, &d->at[i], &d->at[k]) &&
			    (end_ns != COMPILE_UNTIL_SET ||
			     d->at[k].limiter.until_ns < change->now_ns + SOON_NS))
				d->at[k].limiter.until_ns = end_ns;
		if (end_ns)
			kind_of_limiter(t)->beside(t, end_ns);
	}
}

int migrate_rule(const struct change *change, struct draft_rule *d, const struct policy_rule *rule,
		 struct plan *plan, struct policy_error *error)
{
	const struct pacer_rule *old = resting_before(change->previous, rule->name);
	const struct pacer_limiter *turn[PACER_LIMITERS_MAX];
	const struct draft *after[PACER_LIMITERS_MAX] = {NULL}, *with[PACER_LIMITERS_MAX];
	bool all;

	for (size_t k = 0; k < d->n; k++)
		d->at[k].limiter.secret = change->secret;
	if (old)
		by_turn(old, turn);
	for (size_t i = 0; old && i < old->n_limiters; i++)
		if (migrate_still_counts(change, turn[i]))
			after[turn[i] - old->limiter] = goes_on(change, d, old, turn[i]);
	all = old && find_twins(change, old, after, with);
	for (size_t i = 0; old && i < old->n_limiters; i++) {
		struct pacer_limiter was = old->limiter[i];

		if (after[i] || !migrate_still_counts(change, &was))
			continue;
		if (with[i])
			take_with(change, &was, with[i], all);
		shares_move(&was, change->other_fleet);
		if (retire(d, &was, rule, false, plan, error))
			return -1;
	}
	if (begin_once_more(change, d, rule, plan, error) ||
	    (change->rotate && rotate(change, d, rule, plan, error)))
		return -1;
	for (size_t k = 0; change->previous && k < d->n; k++)
		if ((d->at[k].state == PLAN_NEW || d->at[k].state == PLAN_MOVED) &&
		    kind_of_limiter(&d->at[k].limiter)->begins)
			kind_of_limiter(&d->at[k].limiter)->begins(&d->at[k].limiter);
	agree(d);
	wait_for_others(change, d);
	return 0;
}
