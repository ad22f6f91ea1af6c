/* SPDX-License-Identifier: GPL-2.0-only */
/* A throttle of all packets of a rule: a state that CPUs share, and no line of the table. */
#include <inttypes.h>
#include <stdio.h>

#include "config/units.h"
#include "plan/drift.h"
#include "plan/kinds.h"
#include "plan/throttles.h"
#include "rule.h"

static int profile(const struct policy_limit *limit, const struct terms *terms, const char *path,
		   struct pacer_limiter *t, struct policy_error *error)
{
	struct throttle_ring_index at = {limit->line, "", 1};

	snprintf(at.path, sizeof(at.path), "%s", path);
	return throttle_profile(&limit->throttle, &at, terms->cpus, terms->resolution_ns,
				&t->throttle, error);
}

static uint64_t fine_ns(const struct policy_limit *limit)
{
	return throttle_fine_ns(&limit->throttle);
}

static uint64_t *value_of(struct policy_limit *limit)
{
	return &limit->throttle.uses;
}

static uint64_t span_ns(const struct policy_limit *limit)
{
	return limit->throttle.cooldown_ns;
}

/* A threshold that was not written goes with the uses; of one that was there are no fewer. */
static void retune(struct policy_limit *limit, const struct policy_limit *from, uint64_t value,
		   const struct pacer_limiter *beyond)
{
	struct policy_throttle *t = &limit->throttle;

	(void)from;
	(void)beyond;
	t->uses = value;
	if (t->threshold_is == THRESHOLD_WRITTEN && value < t->threshold)
		t->uses = t->threshold;
	policy_fill_threshold(t);
}

static uint64_t memory_ns(const struct pacer_limiter *t)
{
	return throttle_memory_ns(&t->throttle);
}

static bool same_time(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	return a->throttle.cooldown_ns == b->throttle.cooldown_ns;
}

static bool no_shorter(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	return drift_longer(a->throttle.cooldown_ns) >= b->throttle.cooldown_ns;
}

/*
 * Not where CPUs may hold more uses of the old one, or of one before that, than the new one has.
 */
static bool same_shape(struct pacer_limiter *t, const struct pacer_limiter *old,
		       const struct compile_host *host)
{
	uint32_t lease = throttle_leased(old, host->now_ns);

	if (lease > t->throttle.lease)
		throttle_lease_lasts(t, lease);
	return same_time(t, old) && (uint64_t)host->cpus * (lease - 1) <= t->throttle.limit;
}

/* Its buckets stay as they are: they say when uses come back, and not how many there are. */
static void take_value(struct pacer_limiter *t, const struct pacer_limiter *from)
{
	__atomic_store_n(&t->throttle.limit, from->throttle.limit, __ATOMIC_RELEASE);
}

static u128 allowance(const struct pacer_limiter *t)
{
	return t->throttle.limit;
}

static uint64_t value(const struct pacer_limiter *t)
{
	return t->throttle.limit;
}

static void tune(struct pacer_limiter *t, uint64_t value)
{
	t->throttle.limit = value;
}

static uint64_t most(const struct pacer_limiter *t)
{
	(void)t;
	return UINT32_MAX;
}

static uint64_t enough(const struct pacer_limiter *t, uint32_t len_bytes)
{
	(void)len_bytes;
	return t->throttle.limit + 1ull;
}

static bool is(const struct policy_limit *limit, const struct pacer_limiter *t,
	       uint64_t resolution_ns)
{
	return t->throttle.limit == limit->throttle.uses &&
	       (t->throttle.cooldown_ns == limit->throttle.cooldown_ns ||
		t->throttle.cooldown_ns == limit->throttle.cooldown_ns + resolution_ns);
}

static void text(const struct policy_limit *limit, char *buf, size_t size)
{
	char time[32];

	snprintf(buf, size, "%" PRIu64 " uses, each %s", limit->throttle.uses,
		 units_duration_text(limit->throttle.cooldown_ns, time, sizeof(time)));
}

void throttle_facts(const char *to_whom, const char *refused,
		    const struct policy_throttle *throttle, const struct pacer_throttle_profile *p,
		    uint32_t cpus, struct facts *to)
{
	bool within = throttle->max_cooldown_ns != UINT64_MAX, below = p->threshold < p->limit;
	uint64_t resolution_ns = p->cooldown_ns - throttle->cooldown_ns;
	uint32_t h = throttle_elsewhere(p, cpus);
	char text[64];

	facts_uint(to, "uses", p->limit, "    never more than %u packets%s in any ", p->limit,
		   to_whom);
	facts_uint(to, "cooldown_ns", throttle->cooldown_ns, "%s\n",
		   units_duration_text(throttle->cooldown_ns, text, sizeof(text)));
	facts_uint(to, "effective_cooldown_ns", p->cooldown_ns, NULL);
	facts_text(to, "    %s wrongly only while", refused);
	facts_uint(to, "threshold", p->threshold, NULL);
	facts_uint(to, "false_denial_free_below", p->threshold + h,
		   below ? " fewer than %u use%s free" : NULL, p->threshold + h,
		   p->threshold + h == 1 ? " is" : "s are");
	if (within)
		facts_uint(to, "max_cooldown_ns", throttle->max_cooldown_ns,
			   "%s %u or more lie within %s", below ? " and" : "", p->limit - h,
			   units_duration_text(throttle->max_cooldown_ns + 2 * resolution_ns, text,
					       sizeof(text)));
	else
		facts_null(to, "max_cooldown_ns");
	facts_uint(to, "lease", p->lease, "\n    a CPU leases %u at a time", p->lease);
	facts_uint(to, "lease_ns", p->lease_ns,
		   p->lease > 1 ? " for up to %s; these numbers include " : NULL,
		   units_duration_text(p->lease_ns, text, sizeof(text)));
	facts_uint(to, "leased_elsewhere", h,
		   p->lease > 1
		       ? "%u uses that other CPUs may hold, and a use may come back that much later"
		       : NULL,
		   h);
	facts_uint(to, "cpus", cpus, NULL);
	facts_uint(to, "buckets", p->buckets, "\n    up to %u buckets of ", p->buckets);
	facts_uint(to, "buckets_max", PACER_THROTTLE_BUCKETS, "the %u that there are\n",
		   PACER_THROTTLE_BUCKETS);
}

static void facts(const struct kind_subject *of, struct facts *to)
{
	throttle_facts("", "denied", &of->limit->throttle, &of->limiter->throttle, of->plan->cpus,
		       to);
}

static void held(const struct pacer_walk *w, const struct pacer_limiter *t, struct limit_held *held)
{
	const struct pacer_throttle_state *state = PACER_THROTTLE_AT(w, t->base);
	const struct pacer_throttle_lease *lease = PACER_LEASE_AT(w, t->base);
	uint32_t left;

	held->leases = true;
	if (w->now_ns <= lease->until_ns)
		held->leased = lease->left;
	left = pacer_throttle_free(&t->throttle, state, w->now_ns) + held->leased;
	held->unit = "uses";
	held->max = t->throttle.limit;
	held->used = left < held->max ? held->max - left : 0;
	held->asked = 1;
	held->by = HELD_BY_ONE;
}

const struct limit_kind kind_throttle = {
    .name = "throttle",
    .limit = LIMIT_THROTTLE,
    .limiter = PACER_LIMITER_THROTTLE,
    .reason = PACER_DENY_THROTTLE,
    .shaped_by_value = true,
    .unit = "uses",
    .profile = profile,
    .fine_ns = fine_ns,
    .value_of = value_of,
    .span_ns = span_ns,
    .retune = retune,
    .is = is,
    .text = text,
    .facts = facts,
    .held = held,
    .memory_ns = memory_ns,
    .same_shape = same_shape,
    .allowance = allowance,
    .take_value = take_value,
    .same_time = same_time,
    .no_shorter = no_shorter,
    .value = value,
    .tune = tune,
    .most = most,
    .enough = enough,
};
