/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/freeze.h"

#include <string.h>

#include "live/allow_maps.h"
#include "live/copies.h"
#include "live/grace.h"
#include "live/host.h"
#include "live/sets_maps.h"
#include "short.h"

/*
 * What a target got is in the file, and what it would get from now on is not. Nor are the targets
 * of this copy those of its policy: they are the ones of an earlier policy.
 */
static uint8_t no_pool(uint8_t over)
{
	return over == PACER_OVER_POOL ? PACER_OVER_DROP : over;
}

/*
 * Each rule that has limits denies without them: an entry that no table has would have no number,
 * since the largest has all. No packet goes to a pool, whether by a limit, by its rule's verdict or
 * without a rule.
 */
static void deny_all(struct pacer_policy *p)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = &p->rule[r];

		rule->over = no_pool(rule->over);
		if (!rule->n_limiters)
			continue;
		memset(rule->limiter, 0, sizeof(rule->limiter));
		rule->n_limiters = 0;
		rule->says = PACER_SAYS_DENY;
		rule->plain = PACER_PLAIN_NOT;
		rule->ban_ns = 0;
	}
	p->else_over = no_pool(p->else_over);
}

/* The allow-list goes on. */
static int mirror_allowed(struct attached *a, uint32_t from, uint32_t to,
			  struct policy_error *error)
{
	struct allowlist list;
	int result;

	if (allow_maps_read(a, from, &list, error))
		return -1;
	result = allow_maps_write(a, to, &list, error);
	allowlist_free(&list);
	return result;
}

/* Rules and the allow-list ask the sets of their own copy. */
static int mirror_sets(const struct attached *a, uint32_t from, uint32_t to,
		       struct policy_error *error)
{
	uint32_t n = (uint32_t)a->copy[from].policy.sets, were = (uint32_t)a->copy[to].policy.sets;

	/* If this fails, the next change clears those that are there by then. */
	if (were < n)
		a->copy[to].policy.sets = n;
	for (uint32_t i = 0; (i < n || i < were) && i < PACER_SETS_MAX; i++)
		if (i < n ? sets_maps_share(a, to, i, i) : sets_maps_clear(a, to, i))
			return policy_fail(error, 0, "%s: its sets cannot be written: %s",
					   a->ifname, sets_maps_why());
	return 0;
}

int freeze(struct attached *a, struct policy_error *error)
{
	uint32_t now, next;

	if (copies_settle(a, error))
		return -1;
	now = copies_in_force(a);
	next = now ^ 1;
	/* Nobody is to be judged by the other copy while it is written. */
	if (grace(a->ifname, error) || mirror_allowed(a, now, next, error) ||
	    mirror_sets(a, now, next, error))
		return -1;
	a->copy[next] = a->copy[now];
	deny_all(&a->copy[next].policy);
	a->copy[next].policy.serial = 0; /* no policy that could be confirmed: frozen */
	/* Else the short way would go on by the limit that was there. */
	pacer_short_arm(&a->copy[next].policy, a->control, next);
	copies_put_in_force(a, next, host_now_ns() + FREEZE_NS);
	if (!grace(a->ifname, error))
		return 0;
	thaw(a);
	return -1;
}

int freeze_longer(struct attached *a, struct policy_error *error)
{
	uint64_t until_ns;
	uint32_t frozen = copies_put_last(a, &until_ns);

	if (copies_pending_ns(a)) {
		copies_put_in_force(a, frozen, host_now_ns() + FREEZE_NS);
		if (host_now_ns() < until_ns) /* it had not ended meanwhile */
			return 0;
	}
	return policy_fail(
	    error, 0,
	    "%s: it took too long, and packets have been let through again meanwhile: "
	    "try again",
	    a->ifname);
}

void thaw(struct attached *a)
{
	uint64_t until_ns;

	copies_put_in_force(a, copies_put_last(a, &until_ns) ^ 1, 0);
}
