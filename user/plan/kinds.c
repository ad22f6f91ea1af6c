/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/kinds.h"

#include "plan/drift.h"
#include "plan/keymask.h"
#include "rule.h"

static const struct limit_kind *const kinds[POLICY_LIMIT_KINDS] = {
    [LIMIT_GAP] = &kind_gap,
    [LIMIT_WINDOW] = &kind_window,
    [LIMIT_RATE] = &kind_rate,
    [LIMIT_THROTTLE] = &kind_throttle,
};

const struct limit_kind *limit_kind_of(const struct policy_limit *limit)
{
	return kinds[limit->kind];
}

const struct limit_kind *kind_of_limiter(const struct pacer_limiter *t)
{
	for (size_t i = 0; i < POLICY_LIMIT_KINDS; i++)
		if (kinds[i]->limiter == pacer_limiter_kind_of(t))
			return kinds[i];
	return NULL;
}

const struct limit_kind *kind_of_reason(enum pacer_reason reason)
{
	for (size_t i = 0; i < POLICY_LIMIT_KINDS; i++)
		if (kinds[i]->reason == reason)
			return kinds[i];
	return NULL;
}

/* Does it count the same packets, by the same key? */
static bool same_packets(const struct policy_limit *limit, const struct pacer_limiter *t)
{
	struct pacer_limiter masks = {0};

	key_masks(&limit->key, &masks);
	return masks.key_id == t->key_id && keymask_same(&masks, t) &&
	       limit->of_new == !!(t->kind & PACER_LIMITER_NEW);
}

bool limit_is(const struct policy_limit *limit, const struct pacer_limiter *t,
	      uint64_t resolution_ns)
{
	const struct limit_kind *kind = limit_kind_of(limit);
	struct policy_limit room;

	return !t->until_ns && kind == kind_of_limiter(t) && same_packets(limit, t) &&
	       limit->fleet == !!t->share_id &&
	       kind->is(drift_limit(limit, &room), t, resolution_ns);
}

bool limit_is_guest(const struct policy_limit *limit, const struct pacer_limiter *t,
		    uint64_t resolution_ns)
{
	const struct limit_kind *kind = limit_kind_of(limit);

	return !t->until_ns && kind->join && kind != kind_of_limiter(t) && same_packets(limit, t) &&
	       kind->is(limit, t, resolution_ns);
}

const char *limit_unit(const struct policy_limit *limit)
{
	const struct limit_kind *kind = limit_kind_of(limit);

	if (kind->unit)
		return limit->of_new ? "uses by new flows" : kind->unit;
	if (limit->of_new)
		return kind->counts_bytes && limit->cost == PACER_COST_BYTES ? "bytes of new flows"
									     : "new flows";
	return kind->counts_bytes && limit->cost == PACER_COST_BYTES ? "bytes" : "packets";
}

uint64_t compile_limiter_lines(const struct pacer_limiter *t)
{
	const struct limit_kind *kind = kind_of_limiter(t);

	return kind && kind->lines ? kind->lines(t) : 0;
}

uint64_t compile_limiter_memory_ns(const struct pacer_limiter *t)
{
	const struct limit_kind *kind = kind_of_limiter(t);

	return kind ? kind->memory_ns(t) : 0;
}

bool compile_hashed(const struct pacer_limiter *t)
{
	const struct limit_kind *kind = kind_of_limiter(t);

	return kind && kind->hashed && kind->hashed(t);
}

bool compile_in_lines(const struct pacer_limiter *t)
{
	const struct limit_kind *kind = kind_of_limiter(t);

	return kind && kind->lines;
}

/* --- entries -------------------------------------------------------------------------------- */

static u128 units_lines(u128 units)
{
	return (units + PACER_LINE_UNITS - 1) / PACER_LINE_UNITS;
}

uint64_t entries_lines(const struct pacer_limiter *t)
{
	return (uint64_t)units_lines((2ull * t->sets + t->shared) * t->units);
}

uint64_t entries_wanted(const struct policy_limit *limit, const struct pacer_limiter *t)
{
	u128 sets = ((u128)limit->entries + 1) / 2, lines;

	/* of each set a shared one; of all packets one entry is all */
	lines = units_lines(t->key_id ? 3 * sets * t->units : t->units);
	return (uint64_t)(lines < LINES_NEVER ? lines : LINES_NEVER);
}

/*
 * A shared entry for each set. In a flood of more sources than there are entries, who comes new
 * shares at first, and the fewer others have been counted in his, the more of his packets pass.
 */
void entries_size(struct pacer_limiter *t, uint64_t lines)
{
	uint64_t entries = PACER_LINE_UNITS * lines / t->units;

	t->sets = t->key_id ? entries / 3 : 0;
	t->shared = t->key_id ? entries - 2ull * t->sets : 1;
}

/* One for all is found without it. */
bool entries_hashed(const struct pacer_limiter *t)
{
	return t->sets || t->shared != 1;
}

uint64_t entries_number(const struct pacer_limiter *t)
{
	return 2ull * t->sets + t->shared;
}

static bool looks_own(const struct pacer_ask *q, uint32_t index)
{
	struct pacer_found f = {0};

	return pacer_record_look(q, index, &f) && pacer_lock_tag(f.word) == pacer_tag(q->hash);
}

static bool is_idle(const struct pacer_ask *q, uint32_t index)
{
	const struct pacer_entry *head = pacer_entry_at(q->table, index);

	return head && pacer_record_idle(q->limiter, head, q->now_ns);
}

static enum held_by held_by(const struct pacer_ask *q)
{
	const struct pacer_limiter *t = q->limiter;
	uint32_t first = pacer_set_index(t, q->hash), second = first + pacer_stride(t);

	if (!t->sets)
		return t->key_id ? HELD_BY_SHARED : HELD_BY_ONE;
	if (looks_own(q, first))
		return is_idle(q, first) ? HELD_BY_NONE : HELD_BY_OWN;
	if (looks_own(q, second))
		return is_idle(q, second) ? HELD_BY_NONE : HELD_BY_OWN;
	return is_idle(q, pacer_shared_index(t, q->hash)) &&
		       (is_idle(q, first) || is_idle(q, second))
		   ? HELD_BY_NONE
		   : HELD_BY_SHARED;
}

bool entries_find(const struct pacer_ask *q, struct pacer_found *found, struct limit_held *held)
{
	pacer_record_locate(q, found);
	held->by = held_by(q);
	return found->ring.line;
}
