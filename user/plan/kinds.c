/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/kinds.h"

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
		if (kinds[i]->limiter == (enum pacer_limiter_kind)t->kind)
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
