/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/draining.h"

#include "live/grace.h"
#include "live/host.h"
#include "plan/compile.h"
#include "plan/throttles.h"

bool draining_expired(const struct attached *a, const struct pacer_limiter *t)
{
	return t->until_ns && t->until_ns != COMPILE_UNTIL_SET &&
	       t->until_ns + a->control->resolution_ns < host_now_ns();
}

bool draining_any_expired(const struct attached *a, const struct pacer_policy *p)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters; k++)
			if (draining_expired(a, &p->rule[r].limiter[k]))
				return true;
	return false;
}

static bool retires(const struct pacer_policy *p)
{
	bool found = false;

	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		found |= compile_rates_begin(&p->rule[r]);
		for (size_t k = 0; k < p->rule[r].n_limiters; k++)
			found |= p->rule[r].limiter[k].until_ns == COMPILE_UNTIL_SET;
	}
	found |= throttle_leases_last(p);
	for (size_t i = 0; i < PACER_THROTTLES; i++)
		found |= p->draining[i].until_ns == COMPILE_UNTIL_SET;
	return found;
}

int draining_time(const struct attached *a, struct pacer_policy *p, struct policy_error *error)
{
	struct policy_error why;
	uint64_t now_ns;

	if (!retires(p))
		return 0;
	if (grace(a->ifname, &why)) {
		policy_explain(error, 0,
			       "%.300s: the policy is in force, but the limits that it retired "
			       "hold until the next change",
			       why.text);
		return DRAINING_LASTS;
	}
	now_ns = host_now_ns();
	compile_time_targets(p, now_ns);
	throttle_time_leases(p, now_ns);
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		compile_begin_rates(&p->rule[r], now_ns);
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters; k++) {
			struct pacer_limiter *t = &p->rule[r].limiter[k];

			if (t->until_ns == COMPILE_UNTIL_SET)
				__atomic_store_n(&t->until_ns,
						 now_ns + compile_limiter_memory_ns(t),
						 __ATOMIC_RELEASE);
		}
	return 0;
}
