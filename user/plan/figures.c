/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/figures.h"

#include <math.h>

/*
 * The keys on a line are Poisson distributed. Each raises r of its seven cells (recency.h), and
 * leaves j given ones as they are with C(7-j, r) / C(7, r). The sum is over the subsets of a key's
 * r cells.
 */
double figures_false_delay(const struct pacer_limiter *t, double keys)
{
	double load = keys / (t->sets ? t->sets : 1);

	if (t->rows == 1)
		return 1 - exp(-load / PACER_CELLS);
	return 1 - 2 * exp(-load * (1 - 15.0 / 21)) + exp(-load * (1 - 10.0 / 21));
}

/*
 * A record is idle so long after its current slot began, and the last admission was in that slot.
 * The coarse clock may be behind by its resolution at either end.
 */
uint64_t figures_kept_ns(const struct pacer_limiter *t, uint64_t resolution_ns)
{
	return t->idle_ns - t->window.slot_ns - resolution_ns;
}

uint64_t figures_newcomer_ns(const struct pacer_limiter *t, uint64_t resolution_ns)
{
	return t->idle_ns + resolution_ns;
}

uint64_t figures_throttle_bytes(uint32_t cpus)
{
	return sizeof(struct pacer_throttle_state) + cpus * sizeof(struct pacer_throttle_lease);
}

uint64_t figures_limit_bytes(const struct policy_limit *l, const struct pacer_limiter *t,
			     uint32_t cpus)
{
	if (limit_kind_of(l) != kind_of_limiter(t))
		return 0;
	if (!compile_in_lines(t))
		return figures_throttle_bytes(cpus);
	return compile_limiter_lines(t) * sizeof(struct pacer_line);
}

/*
 * The banned keys of a line are Poisson distributed. Each raises two cells of its line, any of 32
 * pairs (ban.h). It leaves a given cell as it is with 3/4. It leaves two given cells with 17/32 if
 * they are one to three apart, and with 18/32 if they are four apart.
 */
double figures_ban_maybe(const struct pacer_bans *bans, double keys)
{
	double load = keys / (bans->filter_mask + 1.0);

	return 1 - 2 * exp(-load / 4) + 0.75 * exp(-load * 15 / 32) + 0.25 * exp(-load * 14 / 32);
}

uint64_t figures_bans(const struct pacer_bans *bans)
{
	return (uint64_t)bans->sets * PACER_BAN_WAYS;
}
