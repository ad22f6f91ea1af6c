/* SPDX-License-Identifier: GPL-2.0-only */
/* A throttle of all packets of a rule: a state that CPUs share, and no line of the table. */
#include "plan/kinds.h"
#include "plan/throttles.h"

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

/* A threshold that was all of the uses, or the hundredth that is not written, goes with them. */
static void retune(struct policy_limit *limit, const struct policy_limit *from, uint64_t value,
		   const struct pacer_limiter *beyond)
{
	const struct policy_throttle *was = &from->throttle;
	struct policy_throttle *t = &limit->throttle;

	(void)beyond;
	t->uses = value;
	if (was->threshold == was->uses)
		t->threshold = value;
	else if (was->threshold == (was->uses + 99) / 100)
		t->threshold = (value + 99) / 100;
	else if (value < t->threshold)
		t->uses = t->threshold;
}

static uint64_t memory_ns(const struct pacer_limiter *t)
{
	return throttle_memory_ns(&t->throttle);
}

static bool same_time(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	return a->throttle.cooldown_ns == b->throttle.cooldown_ns;
}

/* Not where CPUs may hold more uses of the old one than the new one has. */
static bool same_shape(struct pacer_limiter *t, const struct pacer_limiter *old, uint32_t cpus)
{
	return same_time(t, old) && (uint64_t)cpus * (old->throttle.lease - 1) <= t->throttle.limit;
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

const struct limit_kind kind_throttle = {
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
    .memory_ns = memory_ns,
    .same_shape = same_shape,
    .allowance = allowance,
    .same_time = same_time,
    .value = value,
    .tune = tune,
    .most = most,
    .enough = enough,
};
