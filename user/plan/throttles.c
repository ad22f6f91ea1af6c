/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/throttles.h"

#include "plan/kinds.h"

#include <stdio.h>
#include <string.h>

#include "pool.h"
#include "throttle.h"

#define LEASE_MAX	   256u
#define LEASE_H_DEN	   4u /* of the threshold that h may take */
#define LEASE_NS_MAX	   100000000ull
#define LEASE_COOLDOWN_DEN 100u
#define LEASE_TICKS	   4u

/* --- profiles ------------------------------------------------------------------------------- */

static uint32_t lease_of(const struct pacer_throttle_params *p)
{
	uint32_t most = pacer_throttle_lease_max(*p), lease;

	if (p->cpus == 1)
		return 1;
	lease = 1 + p->threshold / (LEASE_H_DEN * (p->cpus - 1));
	lease = lease < LEASE_MAX ? lease : LEASE_MAX;
	return lease < most ? lease : most;
}

static uint64_t lease_ns_of(const struct pacer_throttle_params *p)
{
	uint64_t ns = p->cooldown_ns / LEASE_COOLDOWN_DEN;
	uint64_t open_ns = p->max_cooldown_ns - p->cooldown_ns - 1;

	if (p->lease == 1)
		return 0;
	ns = ns < LEASE_NS_MAX ? ns : LEASE_NS_MAX;
	if (ns < LEASE_TICKS * p->resolution_ns)
		ns = LEASE_TICKS * p->resolution_ns;
	return ns < open_ns ? ns : open_ns;
}

/* What would do in place of too many buckets: the threshold alone, or max_cooldown alone. */
static int too_many_buckets(const struct pacer_throttle_params *p,
			    const struct throttle_ring_index *at, struct policy_error *error)
{
	uint64_t open_ns = p->max_cooldown_ns - p->cooldown_ns;
	uint64_t cool_ns = p->cooldown_ns + p->resolution_ns;
	uint64_t idle = pacer_throttle_div_up(cool_ns, open_ns);
	uint64_t full = pacer_throttle_div_up(p->limit, p->threshold);
	char text[32], threshold[64] = "", longer[64] = "";

	if (idle < PACER_THROTTLE_BUCKETS)
		snprintf(threshold, sizeof(threshold), "threshold: %llu or more",
			 (unsigned long long)pacer_throttle_div_up(p->limit,
								   PACER_THROTTLE_BUCKETS - idle) *
			     at->targets);
	if (full < PACER_THROTTLE_BUCKETS)
		snprintf(longer, sizeof(longer), "max_cooldown: %s or more",
			 units_duration_text(
			     p->cooldown_ns +
				 pacer_throttle_div_up(cool_ns, PACER_THROTTLE_BUCKETS - full),
			     text, sizeof(text)));
	return policy_fail(error, at->line,
			   "%s: %llu buckets would be needed and there are %u: write %s%s%s",
			   at->path, (unsigned long long)pacer_throttle_sum(idle, full),
			   PACER_THROTTLE_BUCKETS, threshold, *threshold && *longer ? ", or " : "",
			   *longer	? longer
			   : *threshold ? ""
					: "a larger threshold and a larger max_cooldown");
}

int throttle_profile(const struct policy_throttle *throttle, const struct throttle_ring_index *at,
		     uint32_t cpus, uint64_t resolution_ns, struct pacer_throttle_profile *profile,
		     struct policy_error *error)
{
	struct pacer_throttle_params p = {
	    .limit = throttle->uses,
	    .threshold = throttle->threshold,
	    .cpus = cpus,
	    .lease = 1,
	    .cooldown_ns = throttle->cooldown_ns,
	    .max_cooldown_ns = throttle->max_cooldown_ns,
	    .resolution_ns = resolution_ns,
	};
	enum pacer_throttle_error bad = pacer_throttle_configure(profile, &p);

	if (bad == PACER_THROTTLE_BAD_BUCKETS)
		return too_many_buckets(&p, at, error);
	if (bad == PACER_THROTTLE_OK) {
		p.lease = lease_of(&p);
		p.lease_ns = lease_ns_of(&p);
		bad = pacer_throttle_configure(profile, &p);
	}
	if (bad != PACER_THROTTLE_OK)
		return policy_fail(error, at->line,
				   "%s: this throttle cannot be represented: error %d", at->path,
				   (int)bad);
	return 0;
}

uint64_t throttle_fine_ns(const struct policy_throttle *throttle)
{
	uint64_t open_ns = throttle->max_cooldown_ns - throttle->cooldown_ns;

	return open_ns < throttle->cooldown_ns ? open_ns : throttle->cooldown_ns;
}

uint64_t throttle_memory_ns(const struct pacer_throttle_profile *profile)
{
	return pacer_throttle_sum(profile->cooldown_ns, profile->lease_ns);
}

uint32_t throttle_elsewhere(const struct pacer_throttle_profile *profile, uint32_t cpus)
{
	const struct pacer_throttle_params p = {.cpus = cpus, .lease = profile->lease};

	return pacer_throttle_elsewhere(&p);
}

/* --- leases of before ------------------------------------------------------------------------ */

#define LEASED_TICK_SHIFT 26	     /* 67 ms: a word of them lasts 9 years */
#define LEASED_SET	  UINT32_MAX /* it is still to be said */

/* In the bytes that are free in a limiter, which the packet path does not read. */
struct leased {
	uint32_t until;
	uint16_t lease;
};

_Static_assert(sizeof(((struct pacer_limiter *)0)->unused) == 6, "as struct leased is packed");

static struct leased leased_of(const struct pacer_limiter *t)
{
	struct leased of = {0};

	if (pacer_limiter_kind_of(t) != PACER_LIMITER_THROTTLE)
		return of;
	memcpy(&of.until, t->unused, sizeof(of.until));
	memcpy(&of.lease, t->unused + sizeof(of.until), sizeof(of.lease));
	return of;
}

static void put_leased(struct pacer_limiter *t, struct leased of)
{
	memcpy(t->unused, &of.until, sizeof(of.until));
	memcpy(t->unused + sizeof(of.until), &of.lease, sizeof(of.lease));
}

uint32_t throttle_leased(const struct pacer_limiter *t, uint64_t now_ns)
{
	struct leased of = leased_of(t);
	bool over = of.until != LEASED_SET && of.until <= now_ns >> LEASED_TICK_SHIFT;

	return over || of.lease < t->throttle.lease ? t->throttle.lease : of.lease;
}

void throttle_lease_lasts(struct pacer_limiter *t, uint32_t lease)
{
	put_leased(t, (struct leased){LEASED_SET, (uint16_t)lease});
}

void throttle_lease_over(struct pacer_limiter *t)
{
	put_leased(t, (struct leased){0});
}

bool throttle_leases_last(const struct pacer_policy *bin)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < bin->rule[r].n_limiters; k++)
			if (leased_of(&bin->rule[r].limiter[k]).until == LEASED_SET)
				return true;
	return false;
}

/* By the end of its last tick, with one for what the coarse clock may be behind. */
void throttle_time_leases(struct pacer_policy *bin, uint64_t now_ns)
{
	uint32_t until = (uint32_t)((now_ns + LEASE_NS_MAX) >> LEASED_TICK_SHIFT) + 2;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < bin->rule[r].n_limiters; k++) {
			struct leased of = leased_of(&bin->rule[r].limiter[k]);

			if (of.until == LEASED_SET)
				put_leased(&bin->rule[r].limiter[k],
					   (struct leased){until, of.lease});
		}
}

/* --- states --------------------------------------------------------------------------------- */

/* Do this target's uses of the time before its end still count? */
static bool counts(const struct pacer_draining *draining, uint64_t now_ns)
{
	return draining->until_ns > now_ns;
}

void throttle_survey(const struct pacer_policy *bin, uint64_t now_ns,
		     struct throttle_states *states)
{
	memset(states, 0, sizeof(*states));
	for (size_t r = 0; bin && r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < bin->rule[r].n_limiters; k++)
			if (!compile_in_lines(&bin->rule[r].limiter[k]))
				states->taken[bin->rule[r].limiter[k].base] = true;
	for (size_t i = 0; bin && i < PACER_POOLS_MAX; i++)
		for (size_t k = 0; k < bin->pool[i].n; k++)
			states->taken[bin->pool[i].state[k]] = true;
	for (size_t i = 0; bin && i < PACER_THROTTLES; i++)
		states->taken[i] |= counts(&bin->draining[i], now_ns);
}

int throttle_take(struct throttle_states *states, int line, struct policy_error *error)
{
	for (int i = 0; i < (int)PACER_THROTTLES; i++)
		if (!states->taken[i]) {
			states->taken[i] = true;
			return i;
		}
	return policy_fail(
	    error, line,
	    "more than %u throttles are needed: limits by uses, targets of pools, and "
	    "those of the policy before that have not cooled down yet: have fewer, or "
	    "apply it later",
	    PACER_THROTTLES);
}

/* --- pools ---------------------------------------------------------------------------------- */

/*
 * For how long a target's uses count. As long as a lease can be on top, and not as long as it is,
 * so that what lasts longer has the longer cooldown.
 */
static uint64_t counts_for_ns(const struct pacer_throttle_profile *each)
{
	return pacer_throttle_sum(each->cooldown_ns, LEASE_NS_MAX);
}

static uint32_t target_id(const struct policy_target *target)
{
	return target->kind == PACER_TARGET_INTERFACE ? compile_name_id(target->name)
						      : target->number;
}

/*
 * Uses that were made under a longer cooldown than the one that judges them since: they may have
 * been taken back too early. In a byte that the packet path does not read, as all of *draining.
 */
static bool is_shortened(const struct pacer_draining *draining)
{
	return draining->unused;
}

/* What a target got under the policy in force. */
struct target_state {
	int state;	    /* -1: it got nothing */
	uint64_t memory_ns; /* of its pool; 0: it is in none any more */
	bool shortened;	    /* the state may lack some that still counts */
};

static struct target_state state_of(const struct pacer_policy *old, uint8_t kind, uint32_t id,
				    uint64_t now_ns)
{
	struct target_state of = {-1, 0, false};

	for (size_t i = 0; old && i < PACER_POOLS_MAX && of.state < 0; i++)
		for (size_t k = 0; k < old->pool[i].n; k++)
			if (old->pool[i].kind == kind && old->pool[i].target[k] == id)
				of = (struct target_state){old->pool[i].state[k],
							   counts_for_ns(&old->pool[i].throttle),
							   false};
	for (size_t i = 0; old && i < PACER_THROTTLES; i++)
		if (old->draining[i].kind == kind && old->draining[i].target == id &&
		    counts(&old->draining[i], now_ns)) {
			/* a trial may have begun another one beside it: neither has all */
			of.shortened |= of.state >= 0 && of.state != (int)i;
			of.shortened |= is_shortened(&old->draining[i]);
			of.state = of.state < 0 ? (int)i : of.state;
		}
	return of;
}

/* For how long uses of the state count in the pool that has it; 0: none has. */
static uint64_t state_counts_for_ns(const struct pacer_policy *bin, uint32_t state)
{
	for (size_t i = 0; i < PACER_POOLS_MAX; i++)
		for (size_t k = 0; k < bin->pool[i].n; k++)
			if (bin->pool[i].state[k] == state)
				return counts_for_ns(&bin->pool[i].throttle);
	return 0;
}

static int pool_profile(const struct policy_pool *pool, size_t index,
			const struct compile_host *host, struct pacer_throttle_profile *profile,
			struct policy_error *error)
{
	struct policy_throttle each = pool->throttle;
	struct throttle_ring_index at = {pool->line, "", pool->n};

	snprintf(at.path, sizeof(at.path), "pools[%zu]", index);
	each.uses = pool->each;
	each.threshold = pacer_pool_threshold(pool->throttle.threshold, pool->n);
	/* Whatever the clock: states go on from policy to policy, and with them its times. */
	return throttle_profile(&each, &at, host->cpus, host->resolution_ns, profile, error);
}

/* The state that a target has; -1: it is in no pool. */
static int state_in(const struct pacer_policy *bin, uint8_t kind, uint32_t id)
{
	for (size_t i = 0; i < PACER_POOLS_MAX; i++)
		for (size_t k = 0; k < bin->pool[i].n; k++)
			if (bin->pool[i].kind == kind && bin->pool[i].target[k] == id)
				return bin->pool[i].state[k];
	return -1;
}

static bool has_target(const struct pacer_policy *bin, uint8_t kind, uint32_t id)
{
	return state_in(bin, kind, id) >= 0;
}

static int pool_targets(const struct policy_pool *pool, const struct pacer_policy *old,
			const struct pacer_policy *bin, uint64_t now_ns,
			struct throttle_states *states, struct pacer_pool *out,
			struct plan_pool *plan, struct policy_error *error)
{
	uint64_t memory_ns = counts_for_ns(&out->throttle);

	for (size_t k = 0; k < pool->n; k++) {
		struct target_state of;

		out->target[k] = target_id(&pool->target[k]);
		if (has_target(bin, out->kind, out->target[k]))
			return policy_fail(
			    error, pool->line,
			    "pools: the name %s has the same hash as another target's: "
			    "give one of them another name",
			    pool->target[k].name);
		of = state_of(old, out->kind, out->target[k], now_ns);
		plan->spent[k] = of.shortened && memory_ns > of.memory_ns;
		plan->state[k] = of.state < 0 || plan->spent[k] ? PLAN_NEW : PLAN_KEPT;
		if (plan->state[k] == PLAN_NEW)
			of.state = throttle_take(states, pool->line, error);
		if (of.state < 0)
			return -1;
		out->state[k] = (uint16_t)of.state;
		out->n = k + 1;
		plan->target[k] = pool->target[k];
	}
	return 0;
}

/* Whose turn it is in the pool of this name. Leases do not go on: each copy's pools have their own.
 */
static uint32_t turn_of(const struct policy_pool *pool, const struct compile_previous *previous)
{
	for (size_t i = 0; previous && i < previous->policy->n_pools; i++)
		if (!strcmp(previous->policy->pool[i].name, pool->name) &&
		    previous->bin->pool[i].turn < pool->n)
			return previous->bin->pool[i].turn;
	return 0;
}

/*
 * What is in no pool, or in one that remembers it for less time, is remembered in the place of its
 * state, for the longer of two times. A target that has another state began spent: by that it
 * remembers all that its pool does, but not what a longer cooldown would.
 */
static void leave(struct pacer_policy *bin, const struct pacer_draining *draining)
{
	struct pacer_draining next = *draining, *at;
	int has = state_in(bin, draining->kind, draining->target);
	uint64_t memory_ns;
	bool before;

	if (has >= 0)
		next.state = (uint16_t)has;
	at = &bin->draining[next.state];
	memory_ns = state_counts_for_ns(bin, next.state);
	before = at->until_ns && at->kind == next.kind && at->target == next.target;
	if (memory_ns && memory_ns >= next.memory_ns)
		return;
	if (memory_ns || (before && at->memory_ns > next.memory_ns))
		next.unused = true;
	if (before) {
		next.unused |= at->unused;
		next.until_ns = pacer_later(at->until_ns, next.until_ns);
		next.memory_ns = pacer_later(at->memory_ns, next.memory_ns);
	}
	*at = next;
}

/* The targets of *from that *bin does not have, or has for less time. until_ns as in plan.h. */
static void leave_all(struct pacer_policy *bin, const struct pacer_policy *from, uint64_t until_ns)
{
	for (size_t i = 0; i < PACER_POOLS_MAX; i++)
		for (size_t k = 0; k < from->pool[i].n; k++) {
			uint64_t memory_ns = counts_for_ns(&from->pool[i].throttle);

			leave(bin, &(struct pacer_draining){
				       .until_ns = pacer_throttle_sum(until_ns, memory_ns),
				       .memory_ns = memory_ns,
				       .target = from->pool[i].target[k],
				       .state = from->pool[i].state[k],
				       .kind = from->pool[i].kind,
				   });
		}
}

void throttle_leave_targets(const struct pacer_policy *old, uint64_t now_ns,
			    struct pacer_policy *bin)
{
	for (size_t i = 0; i < PACER_THROTTLES; i++)
		if (counts(&old->draining[i], now_ns))
			leave(bin, &old->draining[i]);
	leave_all(bin, old, COMPILE_UNTIL_SET);
}

void compile_keep_targets(struct pacer_policy *into, const struct pacer_policy *from,
			  uint64_t until_ns)
{
	leave_all(into, from, until_ns);
}

bool compile_shortens_targets(const struct pacer_policy *old, const struct pacer_policy *new)
{
	for (size_t i = 0; i < PACER_POOLS_MAX; i++)
		for (size_t k = 0; k < old->pool[i].n; k++) {
			const struct pacer_pool *pool = &old->pool[i];
			uint64_t memory_ns = state_counts_for_ns(new, pool->state[k]);

			if (memory_ns ? memory_ns < counts_for_ns(&pool->throttle)
				      : has_target(new, pool->kind, pool->target[k]))
				return true;
		}
	return false;
}

void throttle_spend(struct pacer_throttle_state *state,
		    const struct pacer_throttle_profile *profile, uint64_t now_ns)
{
	(void)pacer_throttle_open(profile, state, now_ns);
	pacer_throttle_put(state, now_ns, UINT32_MAX); /* as many as any policy may let through */
}

void compile_time_targets(struct pacer_policy *bin, uint64_t now_ns)
{
	for (size_t i = 0; i < PACER_THROTTLES; i++)
		if (bin->draining[i].until_ns == COMPILE_UNTIL_SET)
			bin->draining[i].until_ns =
			    pacer_throttle_sum(now_ns, bin->draining[i].memory_ns);
}

int throttle_pools(const struct policy *policy, const struct compile_previous *previous,
		   const struct compile_host *host, struct throttle_states *states,
		   struct pacer_policy *bin, struct plan *plan, struct policy_error *error)
{
	const struct pacer_policy *old = previous ? previous->bin : NULL;

	for (size_t i = 0; i < policy->n_pools; i++) {
		const struct policy_pool *pool = &policy->pool[i];
		struct pacer_pool *out = &bin->pool[i];

		out->kind = pool->target[0].kind;
		if (pool_profile(pool, i, host, &out->throttle, error) ||
		    pool_targets(pool, old, bin, host->now_ns, states, out, &plan->pool[i], error))
			return -1;
		snprintf(plan->pool[i].name, sizeof(plan->pool[i].name), "%s", pool->name);
		plan->pool[i].n = pool->n;
		out->turn = turn_of(pool, previous);
	}
	plan->n_pools = policy->n_pools;
	if (old)
		throttle_leave_targets(old, host->now_ns, bin);
	return 0;
}
