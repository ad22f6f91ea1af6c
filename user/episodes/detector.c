/* SPDX-License-Identifier: GPL-2.0-only */
#include "episodes/detector.h"

#include <stdio.h>
#include <string.h>

#define SAMPLE_NS 1000000000ull /* while an episode goes on, its keys are looked at as often */

const char *event_name(enum event_kind kind)
{
	switch (kind) {
#define EVENT_NAME(name, id, text) \
	case EVENT_##name:         \
		return #id;
		EVENTS(EVENT_NAME)
#undef EVENT_NAME
	case EVENT_KINDS:
		break;
	}
	return "?";
}

void detector_open(struct detector *d, const struct episode_settings *by, event_tell *tell,
		   void *arg)
{
	*d = (struct detector){.by = *by, .tell = tell, .arg = arg};
}

/* --- what is told ---------------------------------------------------------------------------- */

static const struct policy_rule *policy_rule(const struct detector *d,
					     const struct detector_rule *rule)
{
	return &d->policy->rule[rule - d->rule];
}

/* As the policy in force has it, which may be another than when the episode began. */
static const char *lets_through(const struct detector *d, const struct detector_rule *rule)
{
	if (d->policy->monitor)
		return "mode: monitor";
	return policy_rule(d, rule)->over == PACER_OVER_PASS ? "over: pass" : NULL;
}

static struct event event_of(const struct detector *d, const struct detector_rule *rule,
			     enum event_kind kind)
{
	const struct episode *e = &rule->episode;

	return (struct event){.kind = kind,
			      .told_ns = d->now_ns,
			      .rule = rule->name,
			      .began_ns = e->began_ns,
			      .began_day_ns = rule->day_ns,
			      .so_far = episode_so_far(e),
			      .lately = episode_lately(e),
			      .peak_pps = e->peak.pps,
			      .lets_through = lets_through(d, rule)};
}

struct telling {
	const struct detector *d;
	const struct detector_rule *rule;
};

static void tell_key(const struct heavy_key *key, bool began, void *arg)
{
	const struct telling *t = arg;
	struct event event = event_of(t->d, t->rule, began ? EVENT_KEY_START : EVENT_KEY_END);

	event.began_ns = key->began_ns;
	event.began_day_ns = key->day_ns;
	if (!began) /* it was sampled a little longer than it was denied */
		event.ended_ns = key->heavy_ns < t->rule->episode.excess_ns
				     ? key->heavy_ns
				     : pacer_later(t->rule->episode.excess_ns, key->began_ns);
	event.key = key->key;
	event.share = key->share;
	t->d->tell(&event, t->d->arg);
}

static void tell_lost(const struct detector *d, const struct detector_rule *rule)
{
	struct event event = {.kind = EVENT_LOST,
			      .told_ns = d->now_ns,
			      .rule = rule->name,
			      .what = "heavy keys",
			      .n = rule->heavy.lost};

	if (rule->heavy.lost)
		d->tell(&event, d->arg);
}

static double pps_of(const struct episode_sum *sum)
{
	return sum->ns ? sum->denied * 1e9 / sum->ns : 0;
}

/* Denials a second: lately, and in the end of all of it, but for the quiet at its end. */
static double pps_now(const struct detector_rule *rule, const struct event *event)
{
	struct episode_sum all = event->so_far;

	if (rule->step != EPISODE_ENDS)
		return pps_of(&event->lately);
	all.ns = rule->episode.excess_ns - rule->episode.began_ns;
	return pps_of(&all);
}

static void tell_step(struct detector *d, struct detector_rule *rule)
{
	static const enum event_kind kinds[] = {[EPISODE_STARTS] = EVENT_START,
						[EPISODE_GOES_ON] = EVENT_GOES_ON,
						[EPISODE_ENDS] = EVENT_END};
	struct event event = event_of(d, rule, kinds[rule->step]);
	struct telling t = {d, rule};
	struct needed needed = {.limit = -1};

	if (rule->crowd.kind != CROWD_UNKNOWN) {
		event.crowd = &rule->crowd;
		if (rule->crowd.keys)
			needed_find(&needed, policy_rule(d, rule), event.so_far.most,
				    &rule->crowd.key[0], pps_now(rule, &event));
	}
	if (needed.limit >= 0)
		event.needed = &needed;
	if (rule->step == EPISODE_ENDS) {
		tell_lost(d, rule);
		heavy_stop(&rule->heavy, tell_key, &t);
		event.ended_ns = rule->episode.excess_ns;
	}
	d->tell(&event, d->arg);
	episode_told(&rule->episode);
	if (rule->step == EPISODE_ENDS)
		rule->crowd.kind = CROWD_UNKNOWN;
	rule->step = EPISODE_NOTHING;
}

/* --- the policy ------------------------------------------------------------------------------ */

static const struct detector_rule *rule_before(const struct detector_rule *rule, size_t n,
					       const char *name, uint32_t counter)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(rule[i].name, name) && rule[i].counter == counter)
			return &rule[i];
	return NULL;
}

static bool stays(const struct policy *policy, const uint32_t *counter,
		  const struct detector_rule *rule)
{
	for (size_t i = 0; i < policy->n_rules; i++)
		if (!strcmp(policy->rule[i].name, rule->name) && counter[i] == rule->counter)
			return true;
	return false;
}

static void stop(struct detector *d, struct detector_rule *rule)
{
	rule->step = episode_stop(&rule->episode);
	if (rule->step)
		tell_step(d, rule);
}

void detector_policy(struct detector *d, const struct policy *policy, const uint32_t *counter)
{
	static struct detector_rule was[PACER_RULES_MAX]; /* large; one thread */
	size_t n = d->policy ? d->policy->n_rules : 0;

	for (size_t i = 0; i < n; i++)
		if (!stays(policy, counter, &d->rule[i]))
			stop(d, &d->rule[i]);
	memcpy(was, d->rule, sizeof(was));
	memset(d->rule, 0, sizeof(d->rule));
	memset(d->table, 0, sizeof(d->table));
	for (size_t i = 0; i < policy->n_rules; i++) {
		const struct detector_rule *before =
		    rule_before(was, n, policy->rule[i].name, counter[i]);

		if (before)
			d->rule[i] = *before;
		snprintf(d->rule[i].name, sizeof(d->rule[i].name), "%s", policy->rule[i].name);
		d->rule[i].counter = counter[i];
	}
	d->policy = policy;
}

/* --- counters and samples -------------------------------------------------------------------- */

bool detector_read(struct detector *d, const struct pacer_counters *counters, uint64_t now_ns)
{
	bool told = false, on = false;

	d->now_ns = now_ns;
	for (size_t i = 0; i < d->policy->n_rules; i++) {
		struct detector_rule *rule = &d->rule[i];

		rule->step = episode_feed(&rule->episode, &d->by, &counters[i], now_ns);
		if (rule->step == EPISODE_STARTS)
			rule->day_ns = d->day_ns;
		told |= rule->step != EPISODE_NOTHING;
		on |= rule->episode.on;
	}
	if (!told && !(on && now_ns - d->sampled_ns >= SAMPLE_NS))
		return false;
	d->sampled_ns = now_ns;
	return true;
}

/* Of the episode, or of what came right before: the packet's clock may be behind. */
static uint64_t sampled_from(const struct detector *d, const struct detector_rule *rule)
{
	uint64_t began_ns = rule->episode.began_ns;

	return began_ns > d->behind_ns ? began_ns - d->behind_ns : 0;
}

/* In the quiet before an end, the sample is of what was before. */
static bool denies(const struct detector *d, const struct detector_rule *rule)
{
	return rule->episode.on && d->now_ns - rule->episode.excess_ns <= 2 * EPISODE_BLOCK_NS;
}

static void feed_keys(struct detector *d, struct detector_rule *rule)
{
	const struct crowd *crowd = &rule->crowd;
	struct telling t = {d, rule};
	struct heavy_seen seen[CROWD_KEYS];

	for (uint32_t i = 0; i < crowd->keys; i++)
		seen[i] = (struct heavy_seen){crowd->key[i].key, crowd->key[i].share};
	rule->heavy.day_ns = d->day_ns;
	heavy_feed(&rule->heavy, seen, crowd->keys, d->now_ns, d->by.quiet_ns + 2 * SAMPLE_NS,
		   tell_key, &t);
}

/* A start comes before those of its keys. */
void detector_tell(struct detector *d, const struct crowd_packet *sample, uint32_t samples,
		   uint64_t n)
{
	for (size_t i = 0; i < d->policy->n_rules; i++) {
		struct detector_rule *rule = &d->rule[i];
		bool looked = sample && denies(d, rule);

		if (looked)
			crowd_read(&rule->crowd, sample, samples, n, i, sampled_from(d, rule));
		if (rule->step)
			tell_step(d, rule);
		if (looked)
			feed_keys(d, rule);
	}
}

/* --- tables ---------------------------------------------------------------------------------- */

void detector_table(struct detector *d, size_t rule, size_t limit, uint64_t used, uint64_t shared,
		    uint64_t capacity, uint64_t now_ns)
{
	struct detector_table *t = &d->table[rule][limit];
	const struct policy_limit *of = &policy_rule(d, &d->rule[rule])->limit[limit];
	struct event event = {.kind = EVENT_SHARING,
			      .told_ns = now_ns,
			      .rule = d->rule[rule].name,
			      .limit = of->item,
			      .rung = of->ladder.rungs ? of->rung + 1u : 0,
			      .used = used,
			      .shared = shared,
			      .capacity = capacity};
	bool shares = shared * DETECTOR_SHARING > used + shared, was = t->on;

	if (shares) {
		t->on = true;
		t->shared_ns = now_ns;
	} else if (t->on && now_ns - t->shared_ns >= d->by.quiet_ns) {
		t->on = false;
		event.kind = EVENT_SHARING_END;
	}
	if (t->on != was)
		d->tell(&event, d->arg);
}

void detector_stop(struct detector *d)
{
	for (size_t i = 0; i < d->policy->n_rules; i++)
		stop(d, &d->rule[i]);
}
