/* SPDX-License-Identifier: GPL-2.0-only */
#include "offline/smallest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/judge.h"
#include "plan/kinds.h"

#define READINGS_MAX 6 /* values that move the state settle in two or three */

struct smallest {
	const struct policy *policy; /* the operator's */
	struct policy guess;	     /* the same with the limits that this reading is under */
	struct judge judge;
	bool beyond[PACER_RULES_MAX][POLICY_LIMITS_MAX]; /* more than the units can count */
	bool hopeless[PACER_RULES_MAX];			 /* a denial that no limit's value mends */
	bool idle[PACER_RULES_MAX][POLICY_LIMITS_MAX];	 /* nothing has come to it yet */
	bool first; /* a reading in which what is shaped by its value began at nothing, too */
	bool came;  /* in this one something came to a limit to which nothing had */
	bool settled;
	struct policy_error
	    unfit; /* why the guess is no policy, where it is none; else without text */
};

/* --- one reading ---------------------------------------------------------------------------- */

/*
 * The tightest values; and a denial must not be remembered. What is shaped by its value (a throttle
 * leases more uses the more it has) begins with what the reading before has found. But for the
 * first reading to which something comes, which finds about how many it takes.
 */
static bool tighten(struct smallest *l, bool first)
{
	bool any = false;

	for (uint32_t i = 0; i < PACER_RULES_MAX; i++)
		l->judge.bin->rule[i].ban_ns = 0;
	for (size_t i = 0; i < l->judge.plan->n_limits; i++) {
		const struct plan_limit *at = &l->judge.plan->limit[i];
		const struct limit_kind *kind =
		    limit_kind_of(&l->policy->rule[at->rule].limit[at->limit]);
		struct pacer_limiter *t = &l->judge.bin->rule[at->rule].limiter[at->limiter];

		any |= kind->shaped_by_value;
		if (first || !kind->shaped_by_value || l->idle[at->rule][at->limit])
			kind->tune(t, kind->by_time ? kind->most(t) : 0);
	}
	return any;
}

/* Is the packet denied for this reason by this limit alone? */
static bool denies(const struct smallest *l, const struct replay_frame *frame,
		   const struct replay_judged *judged)
{
	return replay_peek(l->judge.replay, &judged->pkt, pacer_outcome_rule(judged->outcome),
			   pacer_outcome_limiter(judged->outcome),
			   frame->now_ns) == pacer_outcome_reason(judged->outcome);
}

/* The value nearest to what is denied that lets the packet in. False: there is none. */
static bool loosen_limiter(const struct smallest *l, const struct replay_frame *frame,
			   const struct replay_judged *judged, struct pacer_limiter *t,
			   const struct limit_kind *kind)
{
	uint64_t shut = kind->value(t), open = kind->enough(t, frame->len_bytes);

	if (open > kind->most(t)) {
		open = kind->most(t);
		kind->tune(t, open);
		if (open <= shut || denies(l, frame, judged)) {
			kind->tune(t, shut);
			return false;
		}
	}
	while ((open > shut ? open - shut : shut - open) > 1) {
		uint64_t between =
		    open > shut ? shut + (open - shut) / 2 : open + (shut - open) / 2;

		kind->tune(t, between);
		if (denies(l, frame, judged))
			shut = between;
		else
			open = between;
	}
	kind->tune(t, open);
	return true;
}

static void loosen(struct smallest *l, const struct replay_frame *frame,
		   const struct replay_judged *judged)
{
	uint32_t rule = pacer_outcome_rule(judged->outcome);
	struct pacer_limiter *t =
	    &l->judge.bin->rule[rule].limiter[pacer_outcome_limiter(judged->outcome)];
	const struct limit_kind *kind = kind_of_reason(pacer_outcome_reason(judged->outcome));

	if (!kind)
		l->hopeless[rule] = true;
	if (!kind || !loosen_limiter(l, frame, judged, t, kind))
		l->beyond[rule][judge_limit_of(&l->judge, judged)] = true;
}

/* Each limit of the rule may deny in turn. */
void smallest_tell(const struct smallest *l, struct capture *c)
{
	capture_tell(c, l->judge.replay);
}

int smallest_feed(struct smallest *l, const struct replay_frame *frame, struct policy_error *error)
{
	struct replay_judged judged;
	uint32_t rule = 0;

	for (int i = 0; i < 2 * POLICY_LIMITS_MAX; i++) {
		if (replay_judge(l->judge.replay, frame, &judged, error))
			return -1;
		rule = pacer_outcome_rule(judged.outcome);
		if (!judge_denied(&judged) || rule >= PACER_RULES_MAX ||
		    pacer_outcome_reason(judged.outcome) == PACER_DENY_VERDICT ||
		    l->beyond[rule][judge_limit_of(&l->judge, &judged)])
			return 0;
		loosen(l, frame, &judged);
	}
	l->hopeless[rule] = true;
	return 0;
}

/* --- from reading to reading ---------------------------------------------------------------- */

/* The operator's limit, in ns, packets or bytes, as the last reading left it. */
static uint64_t value_of(const struct smallest *l, uint32_t rule, uint32_t limit)
{
	return limit_kind_of(&l->policy->rule[rule].limit[limit])
	    ->value(judge_limiter(&l->judge, rule, limit));
}

/* Has nothing come to it, or no two packets of a key? */
static bool untouched(const struct limit_kind *kind, const struct pacer_limiter *t, uint64_t value)
{
	return kind->by_time ? value >= kind->most(t) / 2 : !value;
}

/* What the next reading is under: what was found, and where that counted too small, more. */
static void guess_limit(struct smallest *l, uint32_t rule, uint32_t limit, struct policy_limit *to)
{
	const struct policy_limit *from = &l->policy->rule[rule].limit[limit];
	const struct limit_kind *kind = limit_kind_of(from);
	const struct pacer_limiter *t = judge_limiter(&l->judge, rule, limit);
	uint64_t value = value_of(l, rule, limit);

	l->came |= l->idle[rule][limit] && value;
	l->idle[rule][limit] = kind->shaped_by_value && !value;
	if (!value || untouched(kind, t, value))
		value = *kind->value_of((struct policy_limit *)from);
	if (kind->retune)
		kind->retune(to, from, value, l->beyond[rule][limit] ? t : NULL);
	else
		*kind->value_of(to) = value;
}

static void guess(struct smallest *l)
{
	for (uint32_t rule = 0; rule < l->policy->n_rules; rule++)
		for (uint32_t k = 0; k < l->policy->rule[rule].n_limits; k++)
			guess_limit(l, rule, k, &l->guess.rule[rule].limit[k]);
}

/* What the readings change, but for what is shaped by its value. */
static void erase(struct pacer_rule *rule)
{
	rule->ban_ns = 0;
	for (uint32_t k = 0; k < PACER_LIMITERS_MAX; k++) {
		struct pacer_limiter *t = &rule->limiter[k];
		const struct limit_kind *kind = kind_of_limiter(t);

		t->gap_ns = 0;
		if (kind && !kind->shaped_by_value)
			kind->tune(t, 0);
	}
}

/* Does the state lie in the same way, whatever the limits? */
static bool same_layout(const struct pacer_policy *a, const struct pacer_policy *b)
{
	for (uint32_t i = 0; i < PACER_RULES_MAX; i++) {
		struct pacer_rule pair[2] = {a->rule[i], b->rule[i]};
		const void *x = &pair[0], *y = &pair[1]; /* their unused fields are 0 */

		erase(&pair[0]);
		erase(&pair[1]);
		if (memcmp(x, y, sizeof(pair[0])) != 0)
			return false;
	}
	return true;
}

/* What nothing has come to began at nothing: its state lies as by the guess all the same. */
static void show_idle(struct smallest *l)
{
	for (size_t i = 0; i < l->judge.plan->n_limits; i++) {
		const struct plan_limit *at = &l->judge.plan->limit[i];
		struct policy_limit *to = &l->guess.rule[at->rule].limit[at->limit];
		const struct limit_kind *kind = limit_kind_of(to);

		if (l->idle[at->rule][at->limit])
			kind->tune(&l->judge.bin->rule[at->rule].limiter[at->limiter],
				   *kind->value_of(to));
	}
}

/* A judge under the guess in place of the last one; *settled: its state lies as that one's. */
static int open_next(struct smallest *l, bool *settled, struct policy_error *error)
{
	struct judge next;

	l->came = false;
	guess(l);
	if (judge_open(&next, NULL, &l->guess, false, error))
		return -1;
	show_idle(l);
	*settled = !l->first && !l->came && same_layout(next.bin, l->judge.bin);
	if (*settled) {
		judge_close(&next);
		return 0;
	}
	judge_close(&l->judge);
	l->judge = next;
	l->first = false;
	(void)tighten(l, false);
	memset(l->beyond, 0, sizeof(l->beyond));
	memset(l->hopeless, 0, sizeof(l->hopeless));
	return 0;
}

static int read_again(struct smallest *l, struct capture *c, struct policy_error *error)
{
	struct replay_frame frame;

	if (capture_again(c, error))
		return -1;
	smallest_tell(l, c);
	while (capture_next(c, &frame) == 1)
		if (smallest_feed(l, &frame, error))
			return -1;
	return 0;
}

int smallest_settle(struct smallest *l, struct capture *c, struct policy_error *error)
{
	for (int reading = 1; reading <= READINGS_MAX; reading++) {
		if (open_next(l, &l->settled, error)) {
			if (error->line == POLICY_NO_MEMORY)
				return -1;
			l->unfit = *error;
			return 0;
		}
		if (l->settled || !capture_repeats(c))
			return 0;
		if (read_again(l, c, error))
			return -1;
	}
	return 0;
}

/* --- what is asked for ---------------------------------------------------------------------- */

struct smallest_limit smallest_of(const struct smallest *l, uint32_t rule, uint32_t limit)
{
	const struct limit_kind *kind = limit_kind_of(&l->policy->rule[rule].limit[limit]);
	struct smallest_limit smallest = {SMALLEST_FOUND, value_of(l, rule, limit)};

	if (!l->settled)
		smallest.state = SMALLEST_UNSETTLED;
	else if (l->hopeless[rule] || l->beyond[rule][limit] || (kind->by_time && !smallest.value))
		smallest.state = SMALLEST_NONE;
	else if (l->idle[rule][limit] ||
		 untouched(kind, judge_limiter(&l->judge, rule, limit), smallest.value))
		smallest.state = SMALLEST_ANY;
	else /* or the smallest above it that a policy can have */
		smallest.value = *kind->value_of(&l->guess.rule[rule].limit[limit]);
	return smallest;
}

const char *smallest_unfit(const struct smallest *l)
{
	return *l->unfit.text ? l->unfit.text : NULL;
}

struct smallest *smallest_open(const struct policy *policy, struct policy_error *error)
{
	struct smallest *l = calloc(1, sizeof(*l));
	size_t rules = policy->n_rules * sizeof(*policy->rule);

	*error = (struct policy_error){.text = "replay: no memory"};
	if (!l)
		return NULL;
	l->policy = policy;
	l->guess = *policy;
	l->guess.rule = malloc(rules ? rules : 1);
	if (l->guess.rule) {
		if (rules)
			memcpy(l->guess.rule, policy->rule, rules);
		if (!judge_open(&l->judge, NULL, policy, false, error)) {
			l->first = tighten(l, true);
			return l;
		}
	}
	free(l->guess.rule);
	free(l);
	return NULL;
}

void smallest_close(struct smallest *l)
{
	if (!l)
		return;
	judge_close(&l->judge);
	free(l->guess.rule);
	free(l);
}
