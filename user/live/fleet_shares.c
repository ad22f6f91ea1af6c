/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/fleet_shares.h"

#include "live/copies.h"
#include "live/grace.h"
#include "live/host.h"
#include "plan/shares.h"
#include "share.h"
#include "table.h"

/* A packet is judged that long after its clock was read, at most (common/table.h). */
#define LATE_NS PACER_IDLE_SLACK_NS

static bool is_there(const struct fleet_limit *into, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (into[i].id == id)
			return true;
	return false;
}

size_t fleet_limits(const struct attached *a, struct fleet_limit *into)
{
	const struct pacer_policy *p = &a->copy[copies_in_force(a)].policy;
	uint64_t now_ns = host_now_ns();
	size_t n = 0;

	for (int draining = 0; draining < 2; draining++)
		for (size_t r = 0; r < PACER_RULES_MAX; r++)
			for (size_t k = 0; k < p->rule[r].n_limiters; k++) {
				const struct pacer_limiter *t = &p->rule[r].limiter[k];

				if (!(t->kind & PACER_LIMITER_FLEET) || !t->until_ns != !draining ||
				    (draining && t->until_ns <= now_ns) || n == PACER_SHARES ||
				    is_there(into, n, t->share_id))
					continue;
				into[n++] = (struct fleet_limit){
				    .id = t->share_id,
				    .at = t->share & (PACER_SHARES - 1),
				    .draining = draining,
				    .rule = r,
				    .counter = p->rule[r].counter,
				    .limiter = *t,
				};
			}
	return n;
}

static struct pacer_share *share_of(const struct attached *a, const struct fleet_limit *limit)
{
	return &a->control->share[limit->at];
}

struct fleet_held fleet_held(const struct attached *a, const struct fleet_limit *limit)
{
	const struct pacer_share *share = share_of(a, limit);
	uint64_t word = pacer_load64(&share->word), said = pacer_load64(&share->said);
	uint32_t floor = pacer_share_value(pacer_load64(&share->floor));

	if (pacer_load64(&share->id) != limit->id)
		return (struct fleet_held){.is = false};
	return (struct fleet_held){
	    .is = true,
	    .units = shares_units_of(&limit->limiter, pacer_share_value(word)),
	    .floor = shares_units_of(&limit->limiter, floor),
	    .until_ns = pacer_share_until(word),
	    .members = said & 0xffff,
	    .answered_ns = said >> 16 << PACER_SHARE_TICK,
	};
}

static void put(__u64 *to, uint64_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELEASE);
}

/* The place of another limit: nobody is judged by it any more before it is this one's. */
static int take_place(const struct attached *a, struct pacer_share *share, uint64_t id,
		      struct policy_error *error)
{
	if (share->id == id)
		return 0;
	put(&share->id, 0);
	put(&share->word, 0);
	put(&share->floor, 0);
	put(&share->said, 0);
	if (grace(a->ifname, error))
		return -1;
	put(&share->id, id);
	return 0;
}

int fleet_hold(const struct attached *a, const struct fleet_limit *limit, uint64_t units,
	       uint64_t until_ns, uint64_t floor, struct policy_error *error)
{
	struct pacer_share *share = share_of(a, limit);
	uint64_t early_ns = LATE_NS + copies_resolution_ns(a);

	if (take_place(a, share, limit->id, error))
		return -1;
	until_ns = until_ns > early_ns ? until_ns - early_ns : 0;
	put(&share->floor, shares_value(&limit->limiter, floor));
	put(&share->word, pacer_share_word(shares_value(&limit->limiter, units), until_ns));
	return grace(a->ifname, error);
}

void fleet_say(const struct attached *a, const struct fleet_limit *limit, uint32_t members,
	       uint64_t answered_ns)
{
	struct pacer_share *share = share_of(a, limit);

	if (pacer_load64(&share->id) == limit->id)
		put(&share->said, pacer_share_said(members, answered_ns));
}
