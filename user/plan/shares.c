/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/shares.h"

#include <string.h>

#include "plan/drift.h"
#include "rate.h"
#include "share.h"

#define LEASE_NS      100000000ull	     /* the longest of a CPU (throttles.c) */
#define HOUR_NS	      3600000000000ull	     /* what a rate's units are counted in */
#define HASH_BEGIN    0xcbf29ce484222325ull  /* FNV-1a */
#define RATE_SHARE_NS PACER_RATE_UNIT_NS_MAX /* a smaller share of a rate is none */

/* --- which it is ----------------------------------------------------------------------------- */

/* In true time, for how long a unit counts on a host whose clock is slow. */
static uint64_t memory_ns(const struct policy_limit *limit)
{
	switch (limit->kind) {
	case LIMIT_WINDOW:
		return limit->window_ns;
	case LIMIT_RATE: /* until its burst is back */
		return drift_longer(drift_longer(limit_kind_of(limit)->span_ns(limit)));
	case LIMIT_THROTTLE:
		return drift_longer(drift_longer(limit->throttle.cooldown_ns) + LEASE_NS);
	case LIMIT_GAP:
		break;
	}
	return 0;
}

static uint64_t mix(uint64_t hash, const void *of, size_t len)
{
	const unsigned char *byte = of;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3;
	return hash;
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		hash = (hash ^ (number >> 8 * i & 0xff)) * 0x100000001b3;
	return hash;
}

static bool same_but_value(const struct policy_limit *a, const struct policy_limit *b)
{
	return a->fleet == b->fleet && a->of_new == b->of_new && a->kind == b->kind &&
	       a->cost == b->cost && policy_key_same(&a->key, &b->key) &&
	       memory_ns(a) == memory_ns(b);
}

static uint32_t unit_of_value(const struct policy_limit *limit, const struct pacer_limiter *t)
{
	return 1 + (limit->kind == LIMIT_WINDOW ? t->window.cost_shift : 0);
}

uint64_t shares_fleet(const struct policy_fleet *fleet)
{
	uint64_t id = HASH_BEGIN;

	if (!fleet->on)
		return 0;
	id = mix(id, fleet->name, strlen(fleet->name) + 1);
	for (size_t i = 0; i < fleet->n_stores; i++)
		id = mix(id, fleet->store[i], strlen(fleet->store[i]) + 1);
	return id & ~(uint64_t)SHARES_UNIT_MASK;
}

void shares_move(struct pacer_limiter *t, uint64_t other_fleet)
{
	if (t->share_id)
		t->share_id ^= other_fleet;
}

void shares_none(struct pacer_limiter *t)
{
	t->kind &= (uint8_t)~PACER_LIMITER_FLEET;
	t->share_id = 0;
	t->share = 0;
}

void shares_tell(const struct policy_rule *rule, size_t i, uint64_t fleet, struct pacer_limiter *t)
{
	const struct policy_limit *limit = &rule->limit[i];
	const char *kind = policy_limit_kind_name(limit->kind);
	char key[POLICY_KEY_TEXT];
	uint64_t id = HASH_BEGIN, before = 0;

	if (!limit->fleet)
		return;
	for (size_t k = 0; k < i; k++) /* its twins */
		before += same_but_value(&rule->limit[k], limit);
	policy_key_text(&limit->key, key, sizeof(key));
	id = mix(id, rule->name, strlen(rule->name) + 1);
	id = mix(id, kind, strlen(kind) + 1);
	id = mix(id, key, strlen(key) + 1);
	id = mix_number(mix_number(mix_number(id, limit->cost), memory_ns(limit)), before);
	if (limit->of_new) /* it counts others */
		id = mix_number(id, limit->of_new);
	t->kind |= PACER_LIMITER_FLEET;
	/* A share's value counts in the window's units: another size of these has another id. */
	t->share_id = ((id ^ fleet) & ~(uint64_t)SHARES_UNIT_MASK) | unit_of_value(limit, t);
	t->share_ns = memory_ns(limit);
}

/* --- where it is ----------------------------------------------------------------------------- */

/* The places of ids that differ in their units are apart, too. */
static bool place(struct pacer_limiter *t, uint64_t taken[PACER_SHARES], uint8_t first)
{
	for (uint32_t i = 0; i < PACER_SHARES; i++)
		if (taken[i] == t->share_id) {
			t->share = i;
			return true;
		}
	for (uint32_t i = 0; i < PACER_SHARES; i++) {
		uint32_t at = (first + i) & (PACER_SHARES - 1);

		if (taken[at])
			continue;
		taken[at] = t->share_id;
		t->share = at;
		return true;
	}
	return false;
}

static uint8_t place_before(const struct pacer_policy *previous, uint64_t id)
{
	for (size_t r = 0; previous && r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < previous->rule[r].n_limiters; k++)
			if (previous->rule[r].limiter[k].share_id == id)
				return previous->rule[r].limiter[k].share;
	return id >> 32 & (PACER_SHARES - 1);
}

int shares_place(struct draft_rule *drafts, size_t n_rules, const struct pacer_policy *previous,
		 uint64_t other_fleet, struct policy_error *error)
{
	uint64_t taken[PACER_SHARES] = {0};

	for (size_t r = 0; r < n_rules; r++)
		for (size_t k = 0; k < drafts[r].n; k++) {
			struct pacer_limiter *t = &drafts[r].at[k].limiter;

			/* What rested may find its own place taken. It is not asked yet. */
			if (drafts[r].at[k].state == PLAN_DRAINING && t->share_id)
				(void)place(t, taken, t->share);
		}
	for (size_t r = 0; r < n_rules; r++)
		for (size_t k = 0; k < drafts[r].n; k++) {
			struct pacer_limiter *t = &drafts[r].at[k].limiter;

			if (t->share_id &&
			    !place(t, taken, place_before(previous, t->share_id ^ other_fleet)))
				return policy_fail(
				    error, drafts[r].at[k].line,
				    "a fleet divides up to %u limits of a policy, those "
				    "that this change retires included: write fewer",
				    PACER_SHARES);
		}
	return 0;
}

/* --- units ----------------------------------------------------------------------------------- */

static u128 unit_of(const struct pacer_limiter *t)
{
	return (u128)t->rate.unit_ns << 32 | t->rate.unit_frac;
}

static u128 time_of(uint32_t value)
{
	return (u128)pacer_share_time_ns(value) << 32 | pacer_share_time_frac(value);
}

/* Of a rate, 0: there is no such share. */
static uint32_t value_of_time(u128 time)
{
	return time >> 32 < RATE_SHARE_NS
		   ? pacer_share_of_time((uint64_t)(time >> 32), (uint32_t)time)
		   : 0;
}

/* Is a packet within the burst, by a share of so long a time? Of bytes, the largest frame. */
static bool lets_by(const struct pacer_limiter *t, uint32_t value)
{
	uint32_t cost = t->rate.cost == PACER_COST_BYTES ? POLICY_FRAME_MAX : 1;

	return time_of(value) * cost <= ((u128)t->rate.burst_ns << 32 | t->rate.burst_frac);
}

/*
 * A burst of one packet has no room for a time that is rounded up. One that is rounded down is less
 * than the rate's own, which counts then (common/rate.h).
 */
static uint32_t value_of_all(const struct pacer_limiter *t)
{
	uint32_t value = value_of_time(unit_of(t));

	return value - !lets_by(t, value);
}

/* The parts of a rate: of more than 2^20, that these are many is all there is to say. */
static uint64_t rate_parts(const struct pacer_limiter *t)
{
	uint64_t parts = 0;

	for (uint64_t bit = 1u << 20; bit; bit >>= 1) {
		uint32_t value = value_of_time(unit_of(t) * (parts | bit));

		if (value && lets_by(t, value))
			parts |= bit;
	}
	return parts ? parts : 1;
}

uint64_t shares_parts(const struct pacer_limiter *t)
{
	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_WINDOW:
		return t->window.cost == PACER_COST_BYTES ? shares_units(t) / POLICY_FRAME_MAX
							  : shares_units(t);
	case PACER_LIMITER_RATE:
		return rate_parts(t);
	case PACER_LIMITER_THROTTLE:
	case PACER_LIMITER_GAP:
	case PACER_LIMITER_NONE:
		break;
	}
	return shares_units(t);
}

uint64_t shares_span_ns(const struct pacer_limiter *t)
{
	return pacer_limiter_kind_of(t) == PACER_LIMITER_RATE ? HOUR_NS : t->share_ns;
}

uint64_t shares_units(const struct pacer_limiter *t)
{
	uint64_t units;

	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_WINDOW:
		return (uint64_t)t->window.limit << t->window.cost_shift;
	case PACER_LIMITER_RATE: /* by a slow clock one an hour takes longer than that */
		units = (uint64_t)(((u128)HOUR_NS << 32) / unit_of(t));
		return units ? units : 1;
	case PACER_LIMITER_THROTTLE:
		return t->throttle.limit;
	case PACER_LIMITER_GAP:
	case PACER_LIMITER_NONE:
		break;
	}
	return 0;
}

/* Of a rate, the time of a unit of cost is that of an hour for so many. */
uint32_t shares_value(const struct pacer_limiter *t, uint64_t units)
{
	uint64_t all = shares_units(t);

	if (!units)
		return 0;
	if (units > all)
		units = all;
	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_WINDOW:
		return (uint32_t)(units >> t->window.cost_shift);
	case PACER_LIMITER_RATE:
		return units == all ? value_of_all(t)
				    : value_of_time((((u128)HOUR_NS << 32) + units - 1) / units);
	case PACER_LIMITER_THROTTLE:
		return (uint32_t)units;
	case PACER_LIMITER_GAP:
	case PACER_LIMITER_NONE:
		break;
	}
	return 0;
}

uint64_t shares_units_of(const struct pacer_limiter *t, uint32_t value)
{
	uint64_t all = shares_units(t), units;
	u128 time;

	if (!value)
		return 0;
	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_WINDOW:
		units = ((uint64_t)value + 1) << t->window.cost_shift;
		units = t->window.cost_shift ? units - 1 : value;
		break;
	case PACER_LIMITER_RATE:
		time = time_of(value);
		units = time ? (uint64_t)((((u128)HOUR_NS << 32) + time - 1) / time) : all;
		break;
	default:
		units = value;
	}
	return units < all ? units : all;
}
