/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/absence.h"

#include <string.h>

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* Of one boot. A clock that went back, as that of a virtual machine can, counts as one that stood.
 */
static struct absence same_boot(const struct clocks *then, const struct clocks *now)
{
	struct absence a = {.by = ABSENCE_SAME_BOOT};

	a.at_least_ns = less(now->mono_ns, then->mono_ns);
	a.at_most_ns = a.at_least_ns;
	a.shift_ns = now->mono_ns < then->mono_ns ? (int64_t)(now->mono_ns - then->mono_ns) : 0;
	return a;
}

/* Of this boot or of another, which nobody knows. The clock has gone on by no less in either. */
static struct absence any_boot(const struct clocks *then, const struct clocks *now)
{
	struct absence a = same_boot(then, now);

	a.by = ABSENCE_ANY_BOOT;
	a.at_most_ns = UINT64_MAX;
	return a;
}

struct absence absence_between(const struct clocks *then, const struct clocks *now)
{
	struct absence a = {ABSENCE_SINCE_BOOT, now->boot_ns, UINT64_MAX, 0};
	uint64_t error_ns = sum(then->error_ns, now->error_ns);
	uint64_t by_day_ns = less(now->real_ns, sum(then->real_ns, error_ns));

	if (!then->boot_id[0] || !now->boot_id[0])
		return any_boot(then, now);
	if (!strcmp(then->boot_id, now->boot_id))
		return same_boot(then, now);
	if (then->believed && now->believed && by_day_ns > a.at_least_ns) {
		a.by = ABSENCE_BY_DAY;
		a.at_least_ns = by_day_ns;
		a.at_most_ns = sum(less(now->real_ns, then->real_ns), error_ns);
	}
	a.shift_ns = (int64_t)(now->mono_ns - then->mono_ns - a.at_least_ns);
	return a;
}
