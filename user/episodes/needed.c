/* SPDX-License-Identifier: GPL-2.0-only */
#include "episodes/needed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "config/units.h"
#include "plan/keymask.h"
#include "plan/kinds.h"

static const double second_ns = 1e9;

/* What was counted came a little late, and goes into a time by whole packets. */
#define MARGIN (1 + 1.0 / 32)

uint32_t needed_limits(const struct policy_rule *rule, const struct pacer_limiter *t,
		       enum pacer_reason reason)
{
	struct pacer_limiter by = {0};
	uint32_t limits = 0;

	for (size_t i = 0; i < rule->n_limits; i++) {
		key_masks(&rule->limit[i].key, &by);
		if (limit_kind_of(&rule->limit[i])->reason == reason && keymask_same(&by, t))
			limits |= 1u << i;
	}
	return limits;
}

/* The one of these that denies for this reason; -1: there is none, or more than one. */
static int limit_of(const struct policy_rule *rule, enum pacer_reason reason, uint32_t limits)
{
	int found = -1;

	for (size_t i = 0; i < rule->n_limits; i++) {
		if (!(limits >> i & 1) || limit_kind_of(&rule->limit[i])->reason != reason)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

/* Of a key that is denied so many packets a second of such a length. */
static double value_for(const struct policy_limit *l, double pps, double len_bytes)
{
	double each = l->cost == PACER_COST_BYTES ? len_bytes : 1;

	switch (l->kind) {
	case LIMIT_GAP:
		return second_ns / (second_ns / l->gap_ns + pps);
	case LIMIT_WINDOW:
		/* It remembers a slot more than its window. */
		return l->limit +
		       pps * each * (l->window_ns + (double)l->window_ns / l->slots) / second_ns;
	case LIMIT_RATE:
		return l->rate.amount * second_ns / l->rate.per_ns + pps * each;
	case LIMIT_THROTTLE:
		return l->throttle.uses + pps * l->throttle.cooldown_ns / second_ns;
	}
	return NAN;
}

/* What the line has to say, of which a rung of a ladder has a multiple. */
static double of_line(const struct policy_limit *l, double value)
{
	return l->ladder.rungs ? value / (double)l->ladder.times[l->rung] : value;
}

static const char *field_of(const struct policy_limit *l)
{
	switch (l->kind) {
	case LIMIT_GAP:
		return "gap";
	case LIMIT_WINDOW:
		return l->cost == PACER_COST_BYTES ? "bytes" : "packets";
	case LIMIT_RATE:
		return "rate";
	case LIMIT_THROTTLE:
		return "uses";
	}
	return "";
}

void needed_find(struct needed *needed, const struct policy_rule *rule, enum pacer_reason reason,
		 const struct crowd_key *key, double pps)
{
	const struct heavy_share whole = {1, 1, 1};
	const struct heavy_share *share = !key->by.parts ? &whole : &key->share;
	const struct policy_limit *l;

	*needed = (struct needed){.limit = limit_of(rule, reason, key->limits)};
	if (needed->limit < 0)
		return;
	l = &rule->limit[needed->limit];
	needed->limit = l->item;
	needed->of = l;
	needed->field = field_of(l);
	needed->value = of_line(l, value_for(l, pps * share->value, key->len_bytes));
	needed->enough = of_line(l, value_for(l, pps * share->high * MARGIN, key->len_bytes));
}

const char *needed_text(const struct needed *n, char *buf, size_t size)
{
	char gap[32];

	switch (n->of->kind) {
	case LIMIT_GAP:
		snprintf(buf, size, "gap=%s",
			 units_duration_text((uint64_t)n->enough, gap, sizeof(gap)));
		break;
	case LIMIT_RATE:
		if (n->of->cost == PACER_COST_BYTES)
			snprintf(buf, size, "rate=%.0fbit/s", ceil(n->enough * 8));
		else
			snprintf(buf, size, "rate=%.0f/s", ceil(n->enough));
		break;
	case LIMIT_WINDOW:
	case LIMIT_THROTTLE:
		snprintf(buf, size, "%s=%.0f", n->field, ceil(n->enough));
		break;
	}
	return buf;
}
