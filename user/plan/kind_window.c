/* SPDX-License-Identifier: GPL-2.0-only */
/* A window, in records; a gap of its key may be with it. */
#include "plan/kinds.h"
#include "record.h"
#include "window.h"

static int profile(const struct policy_limit *limit, const struct terms *terms, const char *path,
		   struct pacer_limiter *t, struct policy_error *error)
{
	enum pacer_window_error bad =
	    pacer_window_profile(&t->window, limit->cost, limit->limit, limit->window_ns,
				 limit->slots, terms->resolution_ns);

	t->units = t->window.units;
	t->last_shift = pacer_last_shift(t->window.slot_ns);
	switch (bad) {
	case PACER_WINDOW_OK:
		return 0;
	case PACER_WINDOW_BAD_LIMIT:
		return policy_fail(error, limit->line,
				   "%s: its limit cannot be counted: use 1 to %u packets, or 1 to "
				   "%llu bytes",
				   path, PACER_LIMIT_MAX, PACER_LIMIT_BYTES);
	case PACER_WINDOW_BAD_TIME:
		return policy_fail(error, limit->line,
				   "%s: its window cannot be represented: use 1ns to %lluh", path,
				   PACER_WINDOW_NS_MAX / 3600000000000ull);
	case PACER_WINDOW_BAD_SLOTS:
		break;
	}
	return policy_fail(error, limit->line,
			   "%s: its window cannot be cut into these slots: use 1 to %u, of "
			   "1ns or more each",
			   path, PACER_SLOTS_MAX);
}

static uint64_t fine_ns(const struct policy_limit *limit)
{
	return limit->window_ns / limit->slots;
}

static uint64_t *value_of(struct policy_limit *limit)
{
	return &limit->limit;
}

static uint64_t span_ns(const struct policy_limit *limit)
{
	return limit->window_ns;
}

/* What counts in units that are too small for it gets larger ones, and narrow records wide ones. */
static void retune(struct policy_limit *limit, const struct policy_limit *from, uint64_t value,
		   const struct pacer_limiter *beyond)
{
	const struct pacer_window *w = &beyond->window;

	limit->limit = value;
	if (beyond && (pacer_window_narrow(w) || from->cost == PACER_COST_BYTES))
		limit->limit = (pacer_window_limit_max(w) + 1ull) << w->cost_shift;
}

/* From when on a record holds nothing. */
static void finish(struct pacer_limiter *t)
{
	uint64_t gap_ns = t->gap_ns + t->window.slot_ns + (1ull << t->last_shift);

	t->idle_ns = t->window.ring_ns;
	if (t->gap_ns && gap_ns > t->idle_ns)
		t->idle_ns = gap_ns;
	t->idle_ns += PACER_IDLE_SLACK_NS;
}

static uint64_t memory_ns(const struct pacer_limiter *t)
{
	return t->idle_ns;
}

/* Wide records serve limits that narrow ones would be enough for, too. */
static bool same_shape(struct pacer_limiter *t, const struct pacer_limiter *old, uint32_t cpus)
{
	struct pacer_window *w = &t->window;
	const struct pacer_window *v = &old->window;

	(void)cpus;
	if (w->slot_ns != v->slot_ns || w->ring != v->ring || w->cost != v->cost ||
	    w->cost_shift != v->cost_shift || t->units > old->units)
		return false;
	if (old->units > t->units) {
		pacer_window_widen(w);
		t->units = w->units;
	}
	t->generation = (old->generation + (w->limit != v->limit)) % PACER_GENERATIONS;
	return true;
}

/* In bytes, so that units of different sizes compare. */
static u128 allowance(const struct pacer_limiter *t)
{
	return (u128)t->window.limit << t->window.cost_shift;
}

/* As long, but for what the slots round up. */
static bool same_time(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	const struct pacer_window *w = &a->window, *v = &b->window;
	uint64_t x = w->slot_ns * (w->ring - 1), y = v->slot_ns * (v->ring - 1);

	return w->cost == v->cost && (x > y ? x - y : y - x) < PACER_SLOTS_MAX;
}

static uint64_t value(const struct pacer_limiter *t)
{
	return (uint64_t)allowance(t);
}

static void tune(struct pacer_limiter *t, uint64_t value)
{
	t->window.limit = value >> t->window.cost_shift;
}

static uint64_t most(const struct pacer_limiter *t)
{
	return (uint64_t)pacer_window_limit_max(&t->window) << t->window.cost_shift;
}

/* At most its cost more, as what came before fitted. */
static uint64_t enough(const struct pacer_limiter *t, uint32_t len_bytes)
{
	return value(t) +
	       ((uint64_t)pacer_window_cost(&t->window, len_bytes) << t->window.cost_shift);
}

const struct limit_kind kind_window = {
    .limit = LIMIT_WINDOW,
    .limiter = PACER_LIMITER_WINDOW,
    .reason = PACER_DENY_WINDOW,
    .counts_bytes = true,
    .profile = profile,
    .fine_ns = fine_ns,
    .value_of = value_of,
    .span_ns = span_ns,
    .retune = retune,
    .finish = finish,
    .lines = entries_lines,
    .wanted = entries_wanted,
    .size = entries_size,
    .hashed = entries_hashed,
    .memory_ns = memory_ns,
    .same_shape = same_shape,
    .allowance = allowance,
    .same_time = same_time,
    .value = value,
    .tune = tune,
    .most = most,
    .enough = enough,
};
