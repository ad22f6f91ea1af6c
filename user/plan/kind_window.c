/* SPDX-License-Identifier: GPL-2.0-only */
/* A window, in records; a gap of its key may be with it. */
#include <inttypes.h>
#include <stdio.h>

#include "config/units.h"
#include "plan/drift.h"
#include "plan/figures.h"
#include "plan/flood.h"
#include "plan/kinds.h"
#include "record.h"
#include "rule.h"
#include "table.h"
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
	const struct pacer_window *w = beyond ? &beyond->window : NULL;

	limit->limit = value;
	if (w && (pacer_window_narrow(w) || from->cost == PACER_COST_BYTES))
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
static bool same_shape(struct pacer_limiter *t, const struct pacer_limiter *old,
		       const struct compile_host *host)
{
	struct pacer_window *w = &t->window;
	const struct pacer_window *v = &old->window;

	(void)host;
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

/* The limit first: what is full by the looser value is full by the other, too. */
static void take_value(struct pacer_limiter *t, const struct pacer_limiter *from)
{
	__atomic_store_n(&t->window.limit, from->window.limit, __ATOMIC_RELEASE);
	__atomic_store_n(&t->generation, from->generation, __ATOMIC_RELEASE);
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

static bool no_shorter(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	const struct pacer_window *w = &a->window, *v = &b->window;

	return w->cost == v->cost && drift_longer(w->slot_ns * (w->ring - 1)) + PACER_SLOTS_MAX >=
					 v->slot_ns * (v->ring - 1);
}

static uint64_t value(const struct pacer_limiter *t)
{
	return (uint64_t)allowance(t);
}

/* Its gap counts for all that share a record, too. */
static uint64_t flood(const struct pacer_limiter *t, uint64_t pps)
{
	double frame = t->window.cost == PACER_COST_BYTES ? POLICY_FRAME_MAX : 1;
	struct flood_terms window = {.live_ns = (double)t->idle_ns,
				     .span_ns = (double)t->window.ring_ns,
				     .allowed = (double)value(t) / frame};
	struct flood_terms gap = {
	    .live_ns = (double)t->idle_ns, .span_ns = (double)t->gap_ns, .allowed = 1};
	uint64_t lines = entries_flood(t, &window, pps);
	uint64_t more = t->gap_ns ? entries_flood(t, &gap, pps) : 0;

	return lines > more ? lines : more;
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

/* But for what the rounding up of slots adds, too. */
static bool is(const struct policy_limit *limit, const struct pacer_limiter *t,
	       uint64_t resolution_ns)
{
	const struct pacer_window *w = &t->window;
	uint64_t span_ns = w->slot_ns * (w->ring - 1);

	return w->ring == limit->slots + 1 && w->cost == limit->cost &&
	       (uint64_t)w->limit == limit->limit >> w->cost_shift && span_ns >= limit->window_ns &&
	       span_ns - limit->window_ns <= resolution_ns + limit->slots;
}

static void text(const struct policy_limit *limit, char *buf, size_t size)
{
	char time[32];

	snprintf(buf, size, "%" PRIu64 " %s in %s", limit->limit, limit_unit(limit),
		 units_duration_text(limit->window_ns, time, sizeof(time)));
}

static void silence(const struct pacer_limiter *t, uint64_t resolution_ns, struct facts *to)
{
	uint64_t kept = figures_kept_ns(t, resolution_ns);
	uint64_t newcomer = figures_newcomer_ns(t, resolution_ns);
	char text[32];

	if (!t->sets) {
		facts_null(to, "newcomer_after_ns");
		facts_null(to, "kept_ns");
		return;
	}
	facts_uint(to, "newcomer_after_ns", newcomer,
		   "    a key silent for longer than %s is a newcomer again: ",
		   units_duration_text(newcomer, text, sizeof(text)));
	facts_uint(to, "kept_ns", kept,
		   "its record is its own for %s after its last admitted packet\n",
		   units_duration_text(kept, text, sizeof(text)));
}

/*
 * What packets of POLICY_FRAME_MIN to POLICY_FRAME_MAX bytes can use of a limit: each costs whole
 * units, and one that does not fit leaves less than its cost.
 */
static double usable(const struct pacer_window *w)
{
	const uint32_t longest = pacer_window_cost(w, POLICY_FRAME_MAX);
	double least = 1;

	if (longest > w->limit)
		return 0;
	for (uint32_t len = POLICY_FRAME_MIN; len <= POLICY_FRAME_MAX; len++) {
		double part = len / (double)((uint64_t)pacer_window_cost(w, len) << w->cost_shift);

		if (part < least)
			least = part;
	}
	return least * (w->limit - longest + 1) / w->limit;
}

static void steady(const struct policy_limit *l, const struct pacer_limiter *t, struct facts *to)
{
	double sustained = (double)l->window_ns / t->window.ring_ns;

	if (l->cost == PACER_COST_PACKETS || l->of_new) {
		facts_real(to, "sustains", sustained, "a steady flow gets at least %.1f%%\n",
			   100 * sustained);
		return;
	}
	sustained *= usable(&t->window);
	if (sustained > 0)
		facts_real(to, "sustains", sustained,
			   "a steady flow of packets of %u to %u bytes gets at least %.1f%%\n",
			   POLICY_FRAME_MIN, POLICY_FRAME_MAX, 100 * sustained);
	else
		facts_real(to, "sustains", 0, "no packet of %u bytes fits\n", POLICY_FRAME_MAX);
}

static void facts(const struct kind_subject *of, struct facts *to)
{
	const struct policy_limit *l = of->limit;
	const struct pacer_limiter *t = of->limiter;
	uint32_t unit_bytes = 1u << t->window.cost_shift;
	const char *unit = limit_unit(l);
	char text[32];

	facts_uint(to, "limit", l->limit, "    never more than %" PRIu64 " ", l->limit);
	facts_string(to, "unit", unit, "%s in any ", unit);
	facts_uint(to, "window_ns", l->window_ns, "%s\n",
		   units_duration_text(l->window_ns, text, sizeof(text)));
	facts_uint(to, "slots", l->slots, NULL);
	facts_uint(to, "slot_ns", t->window.slot_ns, NULL);
	facts_uint(to, "unit_bytes", l->cost == PACER_COST_BYTES ? unit_bytes : 0,
		   t->window.cost_shift
		       ? "    counted in units of %u bytes, rounded up for each packet\n"
		       : NULL,
		   unit_bytes);
	facts_uint(to, "false_denial_beyond_ns", t->window.ring_ns,
		   "    a packet is denied wrongly only if it would not fit into %s%s; ",
		   units_duration_text(t->window.ring_ns, text, sizeof(text)),
		   t->window.cost_shift ? ", so counted" : "");
	steady(l, t, to);
	facts_uint(to, "records", 2ull * t->sets,
		   t->sets ? "    %llu records of %u bytes: exact for that many sources less "
			     "collisions; beyond, the rest "
			   : NULL,
		   2ull * t->sets, (unsigned int)sizeof(union pacer_unit) * t->units);
	facts_uint(to, "shared", t->shared, t->sets ? "share %u\n" : NULL, t->shared);
	silence(t, of->plan->resolution_ns, to);
}

static void held(const struct pacer_walk *w, const struct pacer_limiter *t, struct limit_held *held)
{
	static const char *const units[] = {
	    [PACER_COST_PACKETS] = "packets", [PACER_COST_BYTES] = "bytes"};
	struct pacer_ask q = pacer_walk_ask(w, t, pacer_walk_hash(w, t, t->secret));
	const struct pacer_window *v = &t->window;
	uint64_t head_ns, last_ns;
	struct pacer_found f = {0};
	uint32_t passed;

	if (!entries_find(&q, &f, held))
		return;
	head_ns = last_ns = pacer_load64(&f.ring.head->head_ns);
	if (head_ns && t->gap_ns) {
		last_ns = pacer_record_last(t, last_ns, pacer_load(&f.ring.head->last));
		held->last_ns = last_ns;
	}
	if (!pacer_ring_whole(t, &f.ring))
		return;
	passed = pacer_window_passed(v, head_ns, pacer_later(q.now_ns, last_ns));
	held->unit = units[v->cost];
	held->used = (uint64_t)pacer_window_since(v, &f.ring, pacer_ring_running(&f.ring),
						  pacer_lock_cursor(f.word), passed)
		     << v->cost_shift;
	held->max = value(t);
	held->asked = (uint64_t)pacer_window_cost(v, q.len_bytes) << v->cost_shift;
}

const struct limit_kind kind_window = {
    .name = "window",
    .limit = LIMIT_WINDOW,
    .limiter = PACER_LIMITER_WINDOW,
    .reason = PACER_DENY_WINDOW,
    .counts_bytes = true,
    .closed = true,
    .profile = profile,
    .fine_ns = fine_ns,
    .value_of = value_of,
    .span_ns = span_ns,
    .retune = retune,
    .is = is,
    .text = text,
    .facts = facts,
    .held = held,
    .finish = finish,
    .lines = entries_lines,
    .wanted = entries_wanted,
    .flood = flood,
    .size = entries_size,
    .hashed = entries_hashed,
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
