/* SPDX-License-Identifier: GPL-2.0-only */
#include "offline/least.h"

#include "rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/judge.h"
#include "window.h"

#define GAP_ANY	     (1ull << 62) /* longer than any capture */
#define READINGS_MAX 6		  /* values that move the state settle in two or three */

struct least {
	const struct policy *policy; /* the operator's */
	struct policy guess;	     /* the same with the limits that this reading is under */
	struct judge judge;
	bool beyond[PACER_RULES_MAX][POLICY_LIMITS_MAX]; /* more than the units can count */
	bool hopeless[PACER_RULES_MAX];			 /* a denial that no limit's value mends */
	bool idle[PACER_RULES_MAX][POLICY_LIMITS_MAX];	 /* a throttle that nothing came to */
	bool throttles; /* in the first reading they began at nothing, too */
	bool settled;
};

/* --- one reading ---------------------------------------------------------------------------- */

/* A rate's burst of so many units, on an exact clock. */
static void set_burst(struct pacer_rate *rate, uint64_t burst)
{
	unsigned __int128 unit = (unsigned __int128)rate->unit_ns << 32 | rate->unit_frac;
	unsigned __int128 span = unit * burst;

	rate->burst_ns = (uint64_t)(span >> 32);
	rate->burst_frac = (uint32_t)span;
}

static uint64_t burst_of(const struct pacer_rate *rate)
{
	unsigned __int128 unit = (unsigned __int128)rate->unit_ns << 32 | rate->unit_frac;
	unsigned __int128 span = (unsigned __int128)rate->burst_ns << 32 | rate->burst_frac;

	return unit ? (uint64_t)(span / unit) : 0;
}

/*
 * The tightest gaps and windows; and a denial must not be remembered. Throttles lease more uses the
 * more they have, so they begin with what the reading before has found.
 */
static void tighten(struct pacer_policy *bin)
{
	for (uint32_t i = 0; i < PACER_RULES_MAX; i++) {
		struct pacer_rule *rule = &bin->rule[i];

		rule->ban_ns = 0;
		for (uint32_t k = 0; k < rule->n_tiers; k++) {
			struct pacer_tier *t = &rule->tier[k];

			if (t->gap_ns)
				t->gap_ns = GAP_ANY;
			if (t->kind == PACER_TIER_RECORD)
				t->window.limit = 0;
			if (t->kind == PACER_TIER_RATE)
				set_burst(&t->rate, 0);
		}
	}
}

/* But for the first reading, which finds about how many it takes. */
static bool tighten_throttles(struct pacer_policy *bin)
{
	bool any = false;

	for (uint32_t i = 0; i < PACER_RULES_MAX; i++)
		for (uint32_t k = 0; k < bin->rule[i].n_tiers; k++)
			if (bin->rule[i].tier[k].kind == PACER_TIER_THROTTLE) {
				bin->rule[i].tier[k].throttle.limit = 0;
				any = true;
			}
	return any;
}

/* Is the packet denied for this reason by this tier alone? */
static bool denies(const struct least *l, const struct replay_frame *frame,
		   const struct replay_fate *fate)
{
	return replay_peek(l->judge.replay, &fate->pkt, pacer_outcome_rule(fate->outcome),
			   pacer_outcome_tier(fate->outcome),
			   frame->now_ns) == pacer_outcome_reason(fate->outcome);
}

/* The longest gap that is over by now. */
static bool loosen_gap(const struct least *l, const struct replay_frame *frame,
		       const struct replay_fate *fate, struct pacer_tier *t)
{
	uint64_t open = 0, shut = t->gap_ns;

	while (shut - open > 1) {
		t->gap_ns = open + (shut - open) / 2;
		if (denies(l, frame, fate))
			shut = t->gap_ns;
		else
			open = t->gap_ns;
	}
	t->gap_ns = open;
	return true;
}

/* The least that holds the packet as well: at most its cost more, for what came before fitted. */
static bool loosen_window(const struct least *l, const struct replay_frame *frame,
			  const struct replay_fate *fate, struct pacer_tier *t)
{
	uint64_t small = t->window.limit;
	uint64_t enough = small + pacer_window_cost(&t->window, frame->len_bytes);

	if (enough > pacer_window_limit_max(&t->window)) {
		enough = t->window.limit = pacer_window_limit_max(&t->window);
		if (denies(l, frame, fate)) {
			t->window.limit = small;
			return false;
		}
	}
	while (enough - small > 1) {
		t->window.limit = small + (enough - small) / 2;
		if (denies(l, frame, fate))
			small = t->window.limit;
		else
			enough = t->window.limit;
	}
	t->window.limit = enough;
	return true;
}

/* The same of a rate: its burst grows by the packet's cost at most. */
static bool loosen_rate(const struct least *l, const struct replay_frame *frame,
			const struct replay_fate *fate, struct pacer_tier *t)
{
	uint64_t small = burst_of(&t->rate);
	uint64_t enough = small + pacer_rate_cost(&t->rate, frame->len_bytes);

	if (enough > PACER_RATE_BURST_NS_MAX / (t->rate.unit_ns + 1) || enough >> 32)
		return false;
	while (enough - small > 1) {
		uint64_t burst = small + (enough - small) / 2;

		set_burst(&t->rate, burst);
		if (denies(l, frame, fate))
			small = burst;
		else
			enough = burst;
	}
	set_burst(&t->rate, enough);
	return true;
}

static bool loosen_throttle(struct pacer_tier *t)
{
	if (t->throttle.limit == UINT32_MAX)
		return false;
	t->throttle.limit++;
	return true;
}

static void loosen(struct least *l, const struct replay_frame *frame,
		   const struct replay_fate *fate)
{
	enum pacer_reason reason = pacer_outcome_reason(fate->outcome);
	uint32_t rule = pacer_outcome_rule(fate->outcome);
	struct pacer_tier *t = &l->judge.bin->rule[rule].tier[pacer_outcome_tier(fate->outcome)];
	bool done = false;

	if (reason == PACER_DENY_GAP && t->gap_ns)
		done = loosen_gap(l, frame, fate, t);
	else if (reason == PACER_DENY_WINDOW && t->kind == PACER_TIER_RECORD)
		done = loosen_window(l, frame, fate, t);
	else if (reason == PACER_DENY_RATE && t->kind == PACER_TIER_RATE)
		done = loosen_rate(l, frame, fate, t);
	else if (reason == PACER_DENY_THROTTLE && t->kind == PACER_TIER_THROTTLE)
		done = loosen_throttle(t);
	else
		l->hopeless[rule] = true;
	if (!done)
		l->beyond[rule][judge_limit_of(&l->judge, fate)] = true;
}

/* Each limit of the rule may deny in turn. */
int least_feed(struct least *l, const struct replay_frame *frame, struct policy_error *error)
{
	struct replay_fate fate;
	uint32_t rule = 0;

	for (int i = 0; i < 2 * POLICY_LIMITS_MAX; i++) {
		if (replay_judge(l->judge.replay, frame, &fate, error))
			return -1;
		rule = pacer_outcome_rule(fate.outcome);
		if (!judge_denied(&fate) || l->beyond[rule][judge_limit_of(&l->judge, &fate)])
			return 0;
		loosen(l, frame, &fate);
	}
	l->hopeless[rule] = true;
	return 0;
}

/* --- from reading to reading ---------------------------------------------------------------- */

/* The operator's limit, in ns, packets or bytes, as the last reading left it. */
static uint64_t value_of(const struct least *l, uint32_t rule, uint32_t limit)
{
	const struct pacer_tier *t = judge_tier(&l->judge, rule, limit);
	uint64_t longer_ns = l->judge.plan->resolution_ns;

	if (l->policy->rule[rule].limit[limit].kind == LIMIT_GAP)
		return t->gap_ns > longer_ns ? t->gap_ns - longer_ns : 0;
	if (t->kind == PACER_TIER_THROTTLE)
		return t->throttle.limit;
	if (t->kind == PACER_TIER_RATE)
		return burst_of(&t->rate);
	return (uint64_t)t->window.limit << t->window.cost_shift;
}

/* A threshold that was all of the uses, or the hundredth that is not written, goes with them. */
static void guess_throttle(const struct policy_throttle *from, uint64_t uses,
			   struct policy_throttle *to)
{
	to->uses = uses ? uses : from->uses;
	if (from->threshold == from->uses)
		to->threshold = to->uses;
	else if (from->threshold == (from->uses + 99) / 100)
		to->threshold = (to->uses + 99) / 100;
	else if (to->uses < to->threshold)
		to->uses = to->threshold;
}

/* What the next reading is under: what was found, and where that counted too small, more. */
static void guess_limit(struct least *l, uint32_t rule, uint32_t limit, struct policy_limit *to)
{
	const struct policy_limit *from = &l->policy->rule[rule].limit[limit];
	uint64_t value = value_of(l, rule, limit);

	if (from->kind == LIMIT_GAP) {
		to->gap_ns = value && value < GAP_ANY / 2 ? value : from->gap_ns;
		return;
	}
	if (from->kind == LIMIT_RATE) {
		to->burst = value ? value : from->burst;
		return;
	}
	if (from->kind == LIMIT_THROTTLE) {
		l->idle[rule][limit] |= !value;
		guess_throttle(&from->throttle, value, &to->throttle);
		return;
	}
	if (l->beyond[rule][limit]) {
		const struct pacer_window *w = &judge_tier(&l->judge, rule, limit)->window;

		if (pacer_window_narrow(w) || from->cost == PACER_COST_BYTES)
			value = (pacer_window_limit_max(w) + 1ull) << w->cost_shift;
	}
	to->limit = value ? value : from->limit;
}

static void guess(struct least *l)
{
	for (uint32_t rule = 0; rule < l->policy->n_rules; rule++)
		for (uint32_t k = 0; k < l->policy->rule[rule].n_limits; k++)
			guess_limit(l, rule, k, &l->guess.rule[rule].limit[k]);
}

/* What the readings change, but for throttles: these lease by their limits. */
static void erase(struct pacer_policy *bin)
{
	for (uint32_t i = 0; i < PACER_RULES_MAX; i++)
		for (uint32_t k = 0; k < PACER_TIERS_MAX; k++) {
			struct pacer_tier *t = &bin->rule[i].tier[k];

			t->gap_ns = 0;
			if (t->kind == PACER_TIER_RECORD)
				t->window.limit = 0;
			if (t->kind == PACER_TIER_RATE)
				set_burst(&t->rate, 0);
		}
	for (uint32_t i = 0; i < PACER_RULES_MAX; i++)
		bin->rule[i].ban_ns = 0;
}

/* Does the state lie in the same way, whatever the limits? */
static bool same_layout(const struct pacer_policy *a, const struct pacer_policy *b)
{
	static struct pacer_policy pair[2];
	const void *x, *y; /* their unused fields are 0 */

	pair[0] = *a;
	pair[1] = *b;
	erase(&pair[0]);
	erase(&pair[1]);
	x = pair[0].rule;
	y = pair[1].rule;
	return !memcmp(x, y, sizeof(pair[0].rule));
}

/* A judge under the guess in place of the last one; *settled: its state lies as that one's. */
static int open_next(struct least *l, bool *settled, struct policy_error *error)
{
	struct judge next;

	guess(l);
	if (judge_open(&next, NULL, &l->guess, false, error))
		return -1;
	*settled = !l->throttles && same_layout(next.bin, l->judge.bin);
	if (*settled) {
		judge_close(&next);
		return 0;
	}
	judge_close(&l->judge);
	l->judge = next;
	l->throttles = false;
	tighten(l->judge.bin);
	memset(l->beyond, 0, sizeof(l->beyond));
	memset(l->hopeless, 0, sizeof(l->hopeless));
	return 0;
}

static int read_again(struct least *l, struct capture *c, struct policy_error *error)
{
	struct replay_frame frame;

	if (capture_again(c, error))
		return -1;
	while (capture_next(c, &frame) == 1)
		if (least_feed(l, &frame, error))
			return -1;
	return 0;
}

int least_settle(struct least *l, struct capture *c, struct policy_error *error)
{
	for (int reading = 1; reading <= READINGS_MAX; reading++) {
		if (open_next(l, &l->settled, error))
			/* Where the guess does not fit the policy's memory, nothing is told. */
			return error->line == POLICY_NO_MEMORY ? -1 : 0;
		if (l->settled || !capture_repeats(c))
			return 0;
		if (read_again(l, c, error))
			return -1;
	}
	return 0;
}

/* --- what is asked for ---------------------------------------------------------------------- */

struct least_limit least_of(const struct least *l, uint32_t rule, uint32_t limit)
{
	bool gap = l->policy->rule[rule].limit[limit].kind == LIMIT_GAP;
	struct least_limit least = {LEAST_FOUND, value_of(l, rule, limit)};

	if (!l->settled)
		least.state = LEAST_UNSETTLED;
	else if (l->hopeless[rule] || l->beyond[rule][limit] || (gap && !least.value))
		least.state = LEAST_NONE;
	else if (l->idle[rule][limit] || (gap ? least.value >= GAP_ANY / 2 : !least.value))
		least.state = LEAST_ANY;
	return least;
}

struct least *least_open(const struct policy *policy, struct policy_error *error)
{
	struct least *l = calloc(1, sizeof(*l));
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
			tighten(l->judge.bin);
			l->throttles = tighten_throttles(l->judge.bin);
			return l;
		}
	}
	free(l->guess.rule);
	free(l);
	return NULL;
}

void least_close(struct least *l)
{
	if (!l)
		return;
	judge_close(&l->judge);
	free(l->guess.rule);
	free(l);
}
