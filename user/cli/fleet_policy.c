/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/fleet_policy.h"

#include <stdlib.h>
#include <string.h>

#include "cli/fleet_keys.h"
#include "live/grace.h"
#include "live/host.h"
#include "plan/shares.h"

#define LOCAL_DEN 16		/* of a limit, what a host keeps for when it is cut off */
#define LOOK_NS	  1000000000ull /* while a limit drains, or is left */

bool fleet_is_another(const struct policy_fleet *was, const struct policy_fleet *is)
{
	return memcmp(was->store, is->store, sizeof(was->store)) || strcmp(was->name, is->name);
}

bool fleet_is_called_otherwise(const struct policy_fleet *was, const struct policy_fleet *is)
{
	return strcmp(was->ca, is->ca) || strcmp(was->cert, is->cert) || strcmp(was->key, is->key);
}

/* What packets of any key may use: no more than of one that has a share of its own. */
static uint64_t least_of(const struct fleet_held *held)
{
	uint64_t units = held->units;

	for (uint32_t i = 0; i < PACER_LANES; i++)
		if (held->lane[i].is && held->lane[i].units < units)
			units = held->lane[i].units;
	return units;
}

/* A share that is new is what packets are judged by, as the agent before may have told them. */
static void open_share(struct fleet_share *s, const struct fleet_limit *limit,
		       const struct attached *a)
{
	const struct fleet_held held = fleet_held(a, limit);

	if (!held.is)
		return;
	s->applied.until_ns = held.until_ns;
	s->applied.floor = s->floor = held.floor;
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
		s->applied.value[k] = least_of(&held);
}

static void set_params(struct fleet_share *s, const struct fleet_limit *limit, bool local)
{
	uint64_t units = shares_units(&limit->limiter);

	if (s->params.limit != units)
		s->want[0] = units;
	s->params.limit = units;
	s->params.memory_ns = limit->limiter.share_ns;
	s->params.counts_hot = pacer_limiter_kind_of(&limit->limiter) == PACER_LIMITER_THROTTLE;
	s->params.reserve = local ? units / LOCAL_DEN : 0;
}

/* *k: its place among those of before, whose share goes on. */
static bool goes_on(const struct fleet_divided *was, const struct fleet_member *m,
		    const struct fleet_limit *limit, size_t *k)
{
	for (*k = 0; *k < was->n; ++*k)
		if (was->limit[*k].id == limit->id && was->limit[*k].at == limit->at)
			return !m->share[*k].leaving;
	return false;
}

/* But for the units, which are not told apart in the store. */
static uint64_t of_limit(uint64_t id)
{
	return id & ~(uint64_t)SHARES_UNIT_MASK;
}

/* *k: which has the same share in the store. */
static bool has(const struct fleet_divided *of, uint64_t id, size_t *k)
{
	for (*k = 0; *k < of->n; ++*k)
		if (of_limit(of->limit[*k].id) == of_limit(id))
			return true;
	return false;
}

/* Those that drain beside one of the same share: two that write it would undo each other's. */
static void split_twins(struct fleet_divided *of)
{
	size_t all = of->n, k;

	of->n = 0;
	for (size_t i = 0; i < all; i++) {
		const struct fleet_limit limit = of->limit[i];

		if (limit.draining && has(of, limit.id, &k)) {
			of->twin_of[of->twins] = k;
			of->twin[of->twins++] = limit;
		} else {
			of->limit[of->n++] = limit;
		}
	}
}

static void take_over(struct fleet_divided *of, struct fleet_share *share, size_t i,
		      const struct fleet_divided *was, const struct fleet_member *m, size_t k)
{
	share[i] = m->share[k];
	of->demand[i] = was->demand[k];
	of->heavy[i] = was->heavy[k];
}

/* Those that the policy has no more, behind the others, until they are left. */
static void keep_past(struct fleet_divided *of, struct fleet_share *share,
		      const struct fleet_divided *was, const struct fleet_member *m)
{
	size_t same;

	of->past = 0;
	for (size_t k = 0; k < was->n && of->n < FLEET_DIVIDED; k++) {
		if (has(of, was->limit[k].id, &same) || fleet_left(m, &m->share[k]))
			continue;
		of->limit[of->n] = was->limit[k];
		take_over(of, share, of->n, was, m, k);
		share[of->n].leaving = true;
		of->n++;
		of->past++;
	}
}

/*
 * The places of others than these limits, as of one that has another place by now, or is forgotten:
 * the agent writes there no more, so that what stands there would count again if the limit came
 * back to it.
 */
static void clear_others(struct fleet_divided *of, const struct attached *a)
{
	uint64_t id[PACER_SHARES] = {0};

	for (size_t i = of->n - of->past; i < of->n; i++)
		id[of->limit[i].at] = of->limit[i].id;
	for (size_t i = 0; i < of->twins; i++)
		id[of->twin[i].at] = of->twin[i].id;
	for (size_t i = of->n - of->past; i-- > 0;) /* those in force are first, and count */
		id[of->limit[i].at] = of->limit[i].id;
	of->emptied |= fleet_clear(a, id);
}

static uint64_t next_look(const struct fleet_divided *of)
{
	bool any = of->past || of->twins;

	for (size_t i = 0; i < of->n; i++)
		any |= of->limit[i].draining;
	return any ? host_now_ns() + LOOK_NS : UINT64_MAX;
}

bool fleet_is_over(struct fleet_divided *of, struct fleet_member *m, const struct attached *a)
{
	static struct fleet_limit now[PACER_SHARES];
	bool over = false;

	if (host_now_ns() < of->look_ns)
		return false;
	over = fleet_limits(a, now) != of->n - of->past + of->twins;
	for (size_t i = of->n - of->past; i < of->n; i++)
		over |= fleet_left(m, &m->share[i]);
	of->look_ns = next_look(of);
	return over;
}

int fleet_divide(struct fleet_divided *of, struct fleet_member *m, const struct attached *a,
		 const struct policy_fleet *fleet, struct policy_error *error)
{
	static struct fleet_divided was;
	struct fleet_share *share;
	size_t k;

	was = *of;
	memset(of, 0, sizeof(*of));
	of->member = m->id;
	of->n = fleet_limits(a, of->limit);
	split_twins(of);
	share = calloc(of->n + was.n + 1, sizeof(*share));
	if (!share) {
		*of = was;
		return policy_fail(error, POLICY_NO_MEMORY, "no memory for a fleet's limits");
	}
	for (size_t i = 0; i < of->n; i++) {
		if (goes_on(&was, m, &of->limit[i], &k))
			take_over(of, share, i, &was, m, k);
		else
			open_share(&share[i], &of->limit[i], a);
		set_params(&share[i], &of->limit[i], fleet->local);
	}
	keep_past(of, share, &was, m);
	for (size_t i = 0; i < of->n; i++)
		of->id[i] = of_limit(of->limit[i].id ^ shares_fleet(fleet));
	of->look_ns = next_look(of);
	free(m->share);
	m->share = share;
	m->shares = (uint32_t)of->n;
	of->emptied = was.emptied;
	clear_others(of, a);
	return 0;
}

/* No packet is judged by its id, so it has no place. */
bool fleet_give_back(struct fleet_divided *of, struct fleet_member *m,
		     const struct policy_fleet *fleet, const struct talk_lost *lost)
{
	size_t at = of->n;
	struct fleet_share *share;

	if (m->went_back || lost->id & SHARES_UNIT_MASK) /* which no host has written */
		return false;
	for (size_t i = 0; i < of->n; i++)
		if (of->id[i] == lost->id)
			return false;
	share = at < FLEET_DIVIDED ? realloc(m->share, (at + 1) * sizeof(*share)) : NULL;
	if (!share)
		return false;
	share[at] = (struct fleet_share){
	    .params = {.limit = FLEET_UNITS_MAX, .memory_ns = lost->memory_ns}, .leaving = true};
	of->limit[at] =
	    (struct fleet_limit){.id = lost->id ^ shares_fleet(fleet), .rule = PACER_RULES_MAX};
	of->id[at] = lost->id;
	memset(&of->demand[at], 0, sizeof(of->demand[at]));
	memset(&of->heavy[at], 0, sizeof(of->heavy[at]));
	of->n++;
	of->past++;
	of->look_ns = next_look(of);
	m->share = share;
	m->shares = (uint32_t)of->n;
	return true;
}

/* Who is told nothing has nothing to use from now on. */
static int end_share(const struct attached *a, const struct fleet_limit *limit,
		     struct policy_error *error)
{
	const struct fleet_held nothing = {0};

	return fleet_held(a, limit).is ? fleet_hold(a, limit, &nothing, error) : 0;
}

int fleet_tell_nothing(struct fleet_divided *of, const struct attached *a,
		       struct policy_error *error)
{
	int result = 0;

	clear_others(of, a);
	for (size_t i = 0; i < of->n; i++)
		result |= end_share(a, &of->limit[i], error);
	for (size_t i = 0; i < of->twins; i++)
		result |= end_share(a, &of->twin[i], error);
	return result;
}

int fleet_settle(struct fleet_divided *of, const struct attached *a, struct policy_error *error)
{
	if (of->emptied && grace(a->ifname, error))
		return -1;
	of->emptied = false;
	return 0;
}

/*
 * A limit that a trial left may drain at the place of another, which has it: one in force comes
 * first. It has no share then.
 */
static bool has_place(const struct fleet_divided *of, const struct fleet_limit *limit)
{
	for (size_t i = 0; i < of->n - of->past && &of->limit[i] != limit; i++)
		if (of->limit[i].at == limit->at)
			return false;
	return true;
}

static int tell_one(const struct fleet_divided *of, const struct attached *a,
		    const struct fleet_limit *limit, const struct fleet_picture *p,
		    struct policy_error *error)
{
	struct fleet_held to = fleet_keys_held(limit, p);

	to.member = of->member;
	return limit->draining && !has_place(of, limit) ? 0 : fleet_hold(a, limit, &to, error);
}

int fleet_tell(const struct fleet_divided *of, const struct attached *a, uint32_t share,
	       const struct fleet_picture *p, struct policy_error *error)
{
	if (tell_one(of, a, &of->limit[share], p, error))
		return -1;
	for (size_t i = 0; i < of->twins; i++)
		if (of->twin_of[i] == share && tell_one(of, a, &of->twin[i], p, error))
			return -1;
	return 0;
}

void fleet_say_all(const struct fleet_divided *of, const struct attached *a, uint32_t members,
		   uint64_t answered_ns)
{
	for (size_t i = 0; i < of->n; i++)
		fleet_say(a, &of->limit[i], members, answered_ns);
	for (size_t i = 0; i < of->twins; i++)
		fleet_say(a, &of->twin[i], members, answered_ns);
}
