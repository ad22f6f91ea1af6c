/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/occupancy.h"

#include "plan/compile.h"
#include "rate.h"
#include "table.h"

#define CLOCK_COARSEST_NS 100000000u /* what a limit is longer by at most on a coarse clock */

/* The entry that begins at the unit; NULL: beyond the table. */
static const struct pacer_entry *entry_at(const struct pacer_line *lines, uint64_t n_lines,
					  uint64_t unit)
{
	uint64_t line = unit / PACER_LINE_UNITS;

	return line < n_lines ? &lines[line].unit[unit % PACER_LINE_UNITS].entry : NULL;
}

uint64_t occupancy_used(const struct pacer_limiter *t, const struct pacer_line *lines,
			uint64_t n_lines, uint64_t now_ns, bool shared, uint64_t *capacity)
{
	uint64_t places = shared ? t->shared : t->sets, each = shared ? 1 : 2, used = 0;
	uint64_t begin =
	    (uint64_t)t->base * PACER_LINE_UNITS + (shared ? 2ull * t->sets * t->units : 0);
	uint64_t looked = places < OCCUPANCY_SETS ? places : OCCUPANCY_SETS;

	*capacity = places * each;
	for (uint64_t i = 0; i < looked; i++) {
		uint64_t place = i * places / looked;

		for (uint64_t k = 0; k < each; k++) {
			const struct pacer_entry *entry =
			    entry_at(lines, n_lines, begin + (place * each + k) * t->units);

			used += entry && !pacer_record_idle(t, entry, now_ns);
		}
	}
	return looked ? used * places / looked : 0;
}

static bool same_key(const struct pacer_limiter *t, const struct policy_key *key)
{
	struct policy_key of = compile_key_of(t->key_id);

	return of.kind == key->kind &&
	       (key->kind == KEY_ALL || (of.len4 == key->len4 && of.len6 == key->len6));
}

/* But for what a coarse clock and the rounding up of slots add. */
static bool same_window(const struct pacer_window *w, const struct policy_limit *limit)
{
	uint64_t span_ns = w->slot_ns * (w->ring - 1);

	return w->ring == limit->slots + 1 && w->cost == limit->cost &&
	       (uint64_t)w->limit == limit->limit >> w->cost_shift && span_ns >= limit->window_ns &&
	       span_ns - limit->window_ns <= CLOCK_COARSEST_NS + limit->slots;
}

static bool same_rate(const struct pacer_rate *rate, const struct policy_limit *limit)
{
	struct pacer_rate wanted;

	return pacer_rate_profile(&wanted, limit->cost, limit->rate.amount, limit->rate.per_ns,
				  limit->burst, 0) == PACER_RATE_OK &&
	       rate->cost == wanted.cost && rate->unit_ns == wanted.unit_ns &&
	       rate->unit_frac == wanted.unit_frac && rate->burst_ns <= wanted.burst_ns &&
	       wanted.burst_ns - rate->burst_ns <= CLOCK_COARSEST_NS;
}

const struct pacer_limiter *occupancy_limiter(const struct pacer_rule *rule,
					      const struct policy_limit *limit)
{
	for (size_t k = 0; k < rule->n_limiters && k < PACER_LIMITERS_MAX; k++) {
		const struct pacer_limiter *t = &rule->limiter[k];

		if (t->until_ns || !same_key(t, &limit->key))
			continue;
		if (limit->kind == LIMIT_WINDOW && t->kind == PACER_LIMITER_WINDOW &&
		    same_window(&t->window, limit))
			return t;
		if (limit->kind == LIMIT_RATE && t->kind == PACER_LIMITER_RATE &&
		    same_rate(&t->rate, limit))
			return t;
	}
	return NULL;
}
