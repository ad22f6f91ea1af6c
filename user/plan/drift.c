/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/drift.h"

uint64_t drift_longer(uint64_t ns)
{
	return ns == UINT64_MAX ? ns : ns + (ns >> DRIFT_SHIFT) + 1;
}

const struct policy_limit *drift_limit(const struct policy_limit *limit, struct policy_limit *room)
{
	if (!limit->fleet)
		return limit;
	*room = *limit;
	room->window_ns = drift_longer(limit->window_ns);
	room->rate.per_ns = drift_longer(limit->rate.per_ns);
	room->throttle.cooldown_ns = drift_longer(limit->throttle.cooldown_ns);
	room->throttle.max_cooldown_ns = drift_longer(limit->throttle.max_cooldown_ns);
	return room;
}
