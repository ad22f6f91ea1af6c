/* SPDX-License-Identifier: GPL-2.0-only */
#include "inspect/occupancy.h"

#include "plan/kinds.h"
#include "table.h"

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

const struct pacer_limiter *occupancy_limiter(const struct pacer_rule *rule,
					      const struct policy_limit *limit,
					      uint64_t resolution_ns)
{
	if (limit_kind_of(limit)->lines != entries_lines)
		return NULL;
	for (size_t k = 0; k < rule->n_limiters && k < PACER_LIMITERS_MAX; k++)
		if (limit_is(limit, &rule->limiter[k], resolution_ns))
			return &rule->limiter[k];
	return NULL;
}
