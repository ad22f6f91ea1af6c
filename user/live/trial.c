/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/trial.h"

#include <string.h>

#include "live/copies.h"
#include "live/draining.h"
#include "live/fleet_shares.h"
#include "live/host.h"
#include "plan/compile.h"
#include "plan/resting.h"
#include "plan/shares.h"
#include "plan/throttles.h"

/*
 * The rule's limit with the state of that one; NULL: it has none. The state of one that has expired
 * may be another's by now.
 */
static struct pacer_limiter *limiter_in(const struct attached *a, struct pacer_rule *rule,
					const struct pacer_limiter *t)
{
	bool lines = compile_in_lines(t);

	for (size_t k = 0; k < rule->n_limiters; k++)
		if (rule->limiter[k].base == t->base && !draining_expired(a, &rule->limiter[k]) &&
		    compile_in_lines(&rule->limiter[k]) == lines &&
		    (rule->limiter[k].secret == t->secret || !compile_hashed(t)))
			return &rule->limiter[k];
	return NULL;
}

static struct pacer_rule *rule_of_counter(struct pacer_policy *p, uint32_t id)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (id && p->rule[r].counter == id)
			return &p->rule[r];
	return NULL;
}

/* What a rule of the old policy becomes by limits that are put behind its own. */
struct grown {
	uint8_t n_limiters; /* 0: it stays as it is */
	uint8_t value[2];
	bool opens; /* it gets a limit of new flows */
	bool more;  /* ... that needs more of a packet than its headers' words (path.h) */
};

/*
 * Where values of sets are in the old rule that the limit, of a rule with values `from`, counts by.
 * False: it cannot, as the old policy has no such set, or two others. Then none of its own limits
 * has that key, and there is nothing to make up for.
 */
static bool place_values(const uint8_t from[2], const int *sets, uint8_t value[2],
			 struct pacer_limiter *t)
{
	uint8_t placed[2] = {value[0], value[1]};

	for (int end = 0; end < 2; end++) {
		uint32_t which = t->value[end] ? from[(t->value[end] - 1) & 1] : 0, i = 0;
		int set = which ? sets[(which - 1) & (PACER_SETS_MAX - 1)] : -1;

		if (!t->value[end])
			continue;
		if (set < 0)
			return false;
		which = (uint32_t)(set + 1) | (which & PACER_VALUE_DST);
		while (i < 2 && placed[i] && placed[i] != which)
			i++;
		if (i == 2)
			return false;
		placed[i] = (uint8_t)which;
		t->value[end] = (uint8_t)(i + 1);
	}
	memcpy(value, placed, sizeof(placed));
	return true;
}

/*
 * When a limit of the trial's rule is over that gives way at until_ns. Those that others have to
 * wait for are over together, as one can begin but once (kind_rate.c).
 */
static uint64_t end_in_old(const struct pacer_rule *from, const struct pacer_limiter *t,
			   uint64_t until_ns)
{
	uint64_t memory_ns = compile_limiter_memory_ns(t);

	for (size_t k = 0; kind_of_limiter(t)->beside && k < from->n_limiters; k++) {
		const struct pacer_limiter *other = &from->limiter[k];

		if (!other->until_ns && pacer_limiter_kind_of(other) == pacer_limiter_kind_of(t))
			memory_ns = pacer_later(memory_ns, compile_limiter_memory_ns(other));
	}
	return until_ns + memory_ns;
}

/* Puts the limits of a rule behind those of the one of the old policy. -1: there is no room. */
static int retire_in_rule(const struct attached *a, struct pacer_rule *rule,
			  const struct pacer_rule *from, const struct trial_of *of,
			  uint64_t until_ns, struct grown *grown)
{
	*grown = (struct grown){.n_limiters = rule->n_limiters,
				.value = {rule->value[0], rule->value[1]}};
	/* One that passes all of its packets, or none, has nothing to make up for. */
	for (size_t k = 0; !rule->says && k < from->n_limiters; k++) {
		struct pacer_limiter t = from->limiter[k];

		if (t.until_ns || limiter_in(a, rule, &t) ||
		    !place_values(from->value, of->sets, grown->value, &t))
			continue;
		if (grown->n_limiters == PACER_LIMITERS_MAX)
			return -1;
		compile_begin_by(&t, until_ns);
		compile_say_since(&t, host_now_ns());
		shares_move(&t, of->other_fleet);
		if (of->no_fleet) /* nobody would tell it a share: it counts here alone */
			shares_none(&t);
		t.until_ns = end_in_old(from, &t, until_ns);
		rule->limiter[grown->n_limiters++] = t;
		grown->opens |= !!(t.kind & PACER_LIMITER_NEW);
		grown->more |= compile_needs_more(&t);
	}
	return 0;
}

/*
 * Should the new policy give way at until_ns, then its limits are draining beside those of the old
 * one, which have not counted what was admitted meanwhile. They are put behind the limits that
 * packets are being judged by; to make them count is the caller's last step.
 */
static int retire_in_old(const struct attached *a, struct pacer_policy *old,
			 const struct pacer_policy *new, const struct trial_of *of,
			 uint64_t until_ns, struct grown grown[PACER_RULES_MAX])
{
	memset(grown, 0, PACER_RULES_MAX * sizeof(*grown));
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);

		if (rule &&
		    retire_in_rule(a, rule, &new->rule[r], of, until_ns, &grown[rule - old->rule]))
			return -1;
	}
	return 0;
}

/*
 * The limits count from the last store on. Before it comes what they need: the old policy may have
 * had no limit that asks whether a packet opens a flow, for its TTL or for values of sets, nor a
 * table of flows.
 */
static void count_in_old(struct pacer_policy *old, const struct pacer_policy *new,
			 const struct grown grown[PACER_RULES_MAX])
{
	bool more = false;

	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = &old->rule[r];

		if (grown[r].n_limiters > 1 || grown[r].more) {
			rule->plain = PACER_PLAIN_NOT;
			__atomic_store_n(&old->shape, PACER_SHORT_NONE, __ATOMIC_RELEASE);
		}
		if (grown[r].opens && !old->flows.sets)
			old->flows = new->flows;
		if (grown[r].opens)
			__atomic_store_n(&rule->opens, 1, __ATOMIC_RELEASE);
		if (grown[r].n_limiters)
			memcpy(rule->value, grown[r].value, sizeof(rule->value));
		more |= grown[r].more;
	}
	if (more) {
		__atomic_or_fetch(&old->flags, PACER_KEYS_MORE, __ATOMIC_RELEASE);
		__atomic_or_fetch(&old->dims, PACER_DIMS_MORE, __ATOMIC_RELEASE);
	}
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (grown[r].n_limiters)
			__atomic_store_n(&old->rule[r].n_limiters, grown[r].n_limiters,
					 __ATOMIC_RELEASE);
}

/*
 * A limit that drains in the old policy, or rests, and that the trial goes on with, comes back no
 * looser than it was on trial: it has counted all, but what it let through was within that.
 */
static void tighten(struct pacer_limiter *was, const struct pacer_limiter *t)
{
	const struct limit_kind *kind = kind_of_limiter(t);

	if (kind->allowance(t) < kind->allowance(was))
		kind->take_value(was, t);
	if (t->idle_ns > was->idle_ns)
		__atomic_store_n(&was->idle_ns, t->idle_ns, __ATOMIC_RELEASE);
	if (t->gap_ns > was->gap_ns)
		__atomic_store_n(&was->gap_ns, t->gap_ns, __ATOMIC_RELEASE);
}

/* It begins at end_ns, since the trial's lets packets through that it has not counted. */
static void wait_as(struct pacer_limiter *was, const struct pacer_limiter *t, uint64_t end_ns)
{
	kind_of_limiter(was)->beside(was, end_ns);
	kind_of_limiter(was)->owe(was, t);
}

#define KEPT 1 /* ns, by which what was there before is told from what is the trial's */

/* A limit of the new policy that was draining in the old one already has to last as long. */
static void extend_in_old(const struct attached *a, struct pacer_policy *old,
			  const struct pacer_policy *new, uint64_t until_ns)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);

		for (size_t k = 0; rule && k < new->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &new->rule[r].limiter[k];
			struct pacer_limiter *was = t->until_ns ? NULL : limiter_in(a, rule, t);
			uint64_t end_ns = end_in_old(&new->rule[r], t, until_ns);

			if (was && compile_rate_waits(t))
				wait_as(was, t, until_ns + KEPT);
			if (was)
				compile_keep_peak(was, t);
			if (!was || !was->until_ns)
				continue;
			tighten(was, t);
			if (was->until_ns < end_ns)
				__atomic_store_n(&was->until_ns, end_ns, __ATOMIC_RELEASE);
		}
	}
}

/* What no packet of the old policy asks rests behind the trial, if there is room. */
static void rest_in_old(const struct attached *a, struct pacer_policy *old,
			const struct pacer_rule *from, const struct trial_of *of, uint64_t until_ns)
{
	struct pacer_rule *to = resting_of(old, from->id);

	for (size_t k = 0; k < from->n_limiters; k++) {
		struct pacer_limiter t = from->limiter[k], *was = to ? limiter_in(a, to, &t) : NULL;

		if (t.until_ns)
			continue;
		if (was && compile_rate_waits(&t))
			wait_as(was, &t, until_ns + KEPT);
		compile_begin_by(&t, until_ns);
		compile_say_since(&t, host_now_ns());
		shares_move(&t, of->other_fleet);
		if (of->no_fleet)
			shares_none(&t);
		t.until_ns = end_in_old(from, &t, until_ns);
		if (was) {
			compile_keep_peak(was, &t);
			tighten(was, &t);
			was->until_ns = pacer_later(was->until_ns, t.until_ns);
			continue;
		}
		to = to ? to : resting_place(old, from->id);
		if (!to || to->n_limiters == PACER_LIMITERS_MAX)
			return;
		/* whoever is killed in between leaves no limit of no kind */
		to->limiter[to->n_limiters] = t;
		__atomic_store_n(&to->n_limiters, to->n_limiters + 1, __ATOMIC_RELEASE);
	}
}

/* The old policy has the rule of the trial's, and denies all of it. */
static bool denied_by(struct pacer_policy *old, const struct pacer_rule *from)
{
	const struct pacer_rule *rule = rule_of_counter(old, from->counter);

	return rule && rule->says == PACER_SAYS_DENY;
}

static int no_room(const struct attached *a, struct policy_error *error)
{
	return policy_fail(error, 0,
			   "%s: a rule would hold more than 8 limits after the new ones gave way, "
			   "those just retired included: apply without --confirm-within, or later",
			   a->ifname);
}

/* Is there room for the limits of rules that the old policy denies all of? Nothing is written. */
static int may_rest(const struct attached *a, struct pacer_policy *old,
		    const struct pacer_policy *new, struct policy_error *error)
{
	size_t free = resting_free(old);

	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		const struct pacer_rule *from = &new->rule[r];
		struct pacer_rule *to = resting_of(old, from->id);
		size_t n = 0;

		for (size_t k = 0; denied_by(old, from) && k < from->n_limiters; k++)
			n += !from->limiter[k].until_ns &&
			     !(to && limiter_in(a, to, &from->limiter[k]));
		if (to && to->n_limiters + n > PACER_LIMITERS_MAX)
			return no_room(a, error);
		if (n && !to && !free--)
			return policy_fail(
			    error, 0,
			    "%s: what a rule's new limits count would still matter after they "
			    "gave way, and beside %u rules there is no place for it: apply "
			    "without --confirm-within, or later",
			    a->ifname, PACER_RULES_MAX);
	}
	return 0;
}

/* Where its rule denies all, or else is not there: as with a change, then only if there is room. */
static void rest_all_in_old(const struct attached *a, struct pacer_policy *old,
			    const struct pacer_policy *new, const struct trial_of *of,
			    uint64_t until_ns)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (denied_by(old, &new->rule[r]))
			rest_in_old(a, old, &new->rule[r], of, until_ns);
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (new->rule[r].counter && !rule_of_counter(old, new->rule[r].counter))
			rest_in_old(a, old, &new->rule[r], of, until_ns);
}

/* Is it in force in the rule, too, so that it has counted all that this let through? */
static bool counts_in(const struct attached *a, struct pacer_rule *rule,
		      const struct pacer_limiter *t)
{
	const struct pacer_limiter *same = limiter_in(a, rule, t);

	return same && !same->until_ns;
}

/*
 * Up to when others that come back have to wait for a limit of the trial; 0: not at all. Its
 * stand-in ends then. One that was in force before, too, has counted all. But where its burst grows
 * as the trial ends, one of another speed beside it was the tighter.
 */
static uint64_t awaited_until(const struct attached *a, struct pacer_rule *rule,
			      const struct pacer_rule *from, const struct pacer_limiter *t,
			      uint64_t until_ns)
{
	const struct limit_kind *kind = kind_of_limiter(t);
	const struct pacer_limiter *was = limiter_in(a, rule, t);

	if (t->until_ns || !kind || !kind->beside)
		return 0;
	if (!was || was->until_ns)
		return end_in_old(from, t, until_ns);
	return kind->allowance(was) > kind->allowance(t) ? until_ns : 0;
}

/*
 * When `at`, which comes back after the trial, has to begin because of that limit of the trial; 0:
 * it has not to. One that the trial has as well has counted what the limit lets through, but for
 * what that had let through before it came, where it drained in the old policy.
 */
static uint64_t begin_after(const struct attached *a, struct pacer_rule *rule,
			    struct pacer_rule *from, const struct pacer_limiter *t,
			    const struct pacer_limiter *at, uint64_t until_ns)
{
	const struct pacer_limiter *was = limiter_in(a, rule, t);
	bool older = was && was->until_ns;

	if (at->until_ns || pacer_limiter_kind_of(at) != pacer_limiter_kind_of(t) ||
	    (!older && counts_in(a, from, at)))
		return 0;
	return awaited_until(a, rule, from, t, until_ns);
}

/* Would it have to begin as the trial ends, and later, too? It can begin but once. */
static bool begins_twice(const struct attached *a, struct pacer_rule *rule, struct pacer_rule *from,
			 const struct pacer_limiter *at, uint64_t until_ns)
{
	bool now = false, later = false;

	for (size_t k = 0; k < from->n_limiters; k++) {
		uint64_t end_ns = begin_after(a, rule, from, &from->limiter[k], at, until_ns);

		now |= end_ns == until_ns;
		later |= end_ns > until_ns;
	}
	return now && later;
}

/*
 * A burst of the trial grows as that ends, to what it was before: while one as large would still
 * build, more would be there at once.
 */
static bool grows_too_early(const struct pacer_limiter *was, const struct pacer_limiter *t,
			    uint64_t until_ns)
{
	struct pacer_limiter grown = *t;

	kind_of_limiter(t)->take_value(&grown, was);
	return !kind_of_limiter(t)->has_waited(&grown, until_ns);
}

/*
 * A limit that comes back after the trial has not counted what its stand-in of the trial let
 * through. It begins when that is over, if it has done with what it waited for before; else -1.
 * That it has to have by now: packets are being judged by it until the trial is in force, or for
 * good where whoever begins it is killed, and would have their bursts once more.
 * `try`: nothing is written.
 */
static int begin_in_rule(const struct attached *a, struct pacer_rule *rule, struct pacer_rule *from,
			 const struct pacer_limiter *t, uint64_t until_ns, bool try)
{
	uint64_t end_ns = awaited_until(a, rule, from, t, until_ns), now_ns = host_now_ns();

	if (try && end_ns == until_ns && grows_too_early(limiter_in(a, rule, t), t, until_ns))
		return -1;
	for (size_t i = 0; end_ns && i < rule->n_limiters; i++) {
		struct pacer_limiter *at = &rule->limiter[i];

		if (!begin_after(a, rule, from, t, at, until_ns))
			continue;
		if (try && !kind_of_limiter(at)->has_waited(at, now_ns))
			return -1;
		if (!try)
			wait_as(at, t, end_ns);
	}
	return 0;
}

static int begin_in_old(const struct attached *a, struct pacer_policy *old,
			struct pacer_policy *new, uint64_t until_ns, bool try)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);
		struct pacer_rule *from = &new->rule[r];

		for (size_t k = 0; rule && k < from->n_limiters; k++)
			if (begin_in_rule(a, rule, from, &from->limiter[k], until_ns, try))
				return -1;
	}
	return 0;
}

static bool begins_twice_in_old(const struct attached *a, struct pacer_policy *old,
				struct pacer_policy *new, uint64_t until_ns)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);

		for (size_t k = 0; rule && k < rule->n_limiters; k++)
			if (begins_twice(a, rule, &new->rule[r], &rule->limiter[k], until_ns))
				return true;
	}
	return false;
}

/*
 * A rate that the trial does not have counts from its end on: a later change has to know. One of a
 * rule that no limit of the trial lets packets through has missed nothing.
 */
static void count_anew_in_old(const struct attached *a, struct pacer_policy *old,
			      struct pacer_policy *new, uint64_t until_ns)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);

		if (!rule || !new->rule[r].n_limiters)
			continue;
		for (size_t k = 0; k < rule->n_limiters; k++)
			if (!rule->limiter[k].until_ns &&
			    !counts_in(a, &new->rule[r], &rule->limiter[k]))
				compile_counts_from(&rule->limiter[k], until_ns);
	}
}

/*
 * What CPUs have leased on trial they may use for a while after it gave way: so they lease no more
 * than the old limit has, and that says how much it may be.
 */
static void lease_for_old(const struct attached *a, struct pacer_policy *old,
			  struct pacer_policy *new, uint64_t until_ns)
{
	struct policy_error why;
	int cpus = host_cpus(&why);

	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);

		for (size_t k = 0; rule && k < new->rule[r].n_limiters; k++) {
			struct pacer_limiter *t = &new->rule[r].limiter[k];
			struct pacer_limiter *was = limiter_in(a, rule, t);
			uint32_t most;

			if (!was || pacer_limiter_kind_of(t) != PACER_LIMITER_THROTTLE)
				continue;
			most = 1 + (cpus > 0 ? was->throttle.limit / (uint32_t)cpus : 0);
			if (t->throttle.lease > most)
				t->throttle.lease = most;
			if (t->throttle.lease > throttle_leased(was, host_now_ns()))
				throttle_lease_lasts(was, t->throttle.lease);
		}
	}
	throttle_time_leases(old, until_ns);
}

/*
 * A limit that drains in the trial is relied on by its rates for as long, so that it lasts as long
 * in the policy before. Of one whose end is still to be set, trial_timed says when.
 */
static void last_in_old(const struct attached *a, struct pacer_rule *rule,
			const struct pacer_rule *from)
{
	for (size_t k = 0; rule && k < from->n_limiters; k++) {
		const struct pacer_limiter *t = &from->limiter[k];
		struct pacer_limiter *was = t->until_ns ? limiter_in(a, rule, t) : NULL;

		if (was && was->until_ns && was->until_ns < t->until_ns)
			__atomic_store_n(&was->until_ns, t->until_ns, __ATOMIC_RELEASE);
	}
}

static void last_all_in_old(const struct attached *a, struct pacer_policy *old,
			    const struct pacer_policy *new)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		const struct pacer_rule *from = &new->rule[r];

		if (!from->counter)
			continue;
		last_in_old(a, rule_of_counter(old, from->counter), from);
		last_in_old(a, resting_of(old, from->id), from);
	}
}

int trial_begin(const struct attached *a, struct pacer_policy *old, struct pacer_policy *new,
		const struct trial_of *of, uint64_t until_ns, struct policy_error *error)
{
	struct grown grown[PACER_RULES_MAX];

	if (begin_in_old(a, old, new, until_ns, true))
		return policy_fail(
		    error, 0,
		    "%s: a rate that has just been changed still builds its bursts: try it "
		    "later, or apply without --confirm-within",
		    a->ifname);
	if (begins_twice_in_old(a, old, new, until_ns))
		return policy_fail(
		    error, 0,
		    "%s: beside a rate that comes back when the trial ends, another one's burst "
		    "would grow, and a third would still be in force: try the lower burst and the "
		    "new rate one after the other",
		    a->ifname);
	if (compile_shortens_targets(old, new))
		return policy_fail(
		    error, 0,
		    "%s: a pool's cooldown that is shortened, or is long again too early, "
		    "cannot be tried: its targets would get more after the trial: apply it "
		    "without --confirm-within",
		    a->ifname);
	if (may_rest(a, old, new, error))
		return -1;
	if (retire_in_old(a, old, new, of, until_ns, grown))
		return no_room(a, error);
	rest_all_in_old(a, old, new, of, until_ns);
	lease_for_old(a, old, new, until_ns);
	(void)begin_in_old(a, old, new, until_ns, false);
	count_anew_in_old(a, old, new, until_ns);
	extend_in_old(a, old, new, until_ns);
	last_all_in_old(a, old, new);
	compile_keep_targets(old, new, until_ns);
	count_in_old(old, new, grown);
	return 0;
}

static void timed_in_old(const struct attached *a, struct pacer_rule *rule,
			 const struct pacer_rule *from, uint64_t until_ns)
{
	for (size_t k = 0; rule && k < from->n_limiters; k++) {
		const struct pacer_limiter *t = &from->limiter[k];
		struct pacer_limiter *was = limiter_in(a, rule, t);

		if (was && was->until_ns && !compile_rate_waits(t))
			compile_begin_as(was, t, until_ns);
		if (was && was->until_ns == COMPILE_UNTIL_SET && t->until_ns)
			__atomic_store_n(&was->until_ns, t->until_ns, __ATOMIC_RELEASE);
	}
}

void trial_timed(const struct attached *a, struct pacer_policy *old, const struct pacer_policy *new,
		 uint64_t until_ns)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		const struct pacer_rule *from = &new->rule[r];

		if (!from->counter)
			continue;
		timed_in_old(a, rule_of_counter(old, from->counter), from, until_ns);
		timed_in_old(a, resting_of(old, from->id), from, until_ns);
	}
	last_all_in_old(a, old, new);
}

static bool is_nothing(const struct attached *a, uint32_t copy)
{
	size_t len = strlen(LOAD_NOTHING);

	return strnlen(a->copy[copy].text, PACER_DOC_MAX) == len &&
	       !memcmp(a->copy[copy].text, LOAD_NOTHING, len);
}

bool load_trial_lapsed(const struct attached *a)
{
	return is_nothing(a, copies_in_force(a));
}

bool load_trial_pending(const struct attached *a)
{
	return copies_pending_ns(a) && is_nothing(a, copies_in_force(a) ^ 1);
}

int load_trial_stands(const struct attached *a, struct policy_error *error)
{
	if (!load_trial_lapsed(a))
		return 0;
	return policy_fail(error, 0,
			   "%s: its load was not confirmed in time, so that everything passes: "
			   "`xdp-pacer load %s -c POLICY` begins anew, `xdp-pacer unload %s` takes "
			   "it off",
			   a->ifname, a->ifname, a->ifname);
}

/* 0 where its time passed before it was kept: it has given way then, and stays so. */
static int keep(struct attached *a, uint64_t until_ns, uint32_t copy)
{
	if (!copies_pending_ns(a))
		return 0;
	copies_put_in_force(a, copy, 0);
	if (host_now_ns() < until_ns)
		return 1;
	copies_put_in_force(a, copy, until_ns);
	return 0;
}

/* Of a policy of no fleet nobody has a share, and the one before does not come back. */
static void forget_if_none(const struct attached *a, uint32_t copy)
{
	struct policy_error unused;
	struct policy *policy = copies_policy(a, copy, &unused);

	if (policy && !policy->fleet.on)
		fleet_forget(a);
	policy_free(policy);
}

int trial_confirm(struct attached *a, struct policy_error *error)
{
	uint64_t until_ns;
	uint32_t copy = copies_put_last(a, &until_ns);

	/* What a killed save left frozen is nobody's policy (freeze.h). */
	if (!until_ns || !a->copy[copy].policy.serial)
		return policy_fail(error, 0, "%s: no policy waits to be confirmed", a->ifname);
	if (keep(a, until_ns, copy)) {
		forget_if_none(a, copy);
		return 0;
	}
	if (load_trial_lapsed(a))
		return policy_fail(error, 0,
				   "%s: the time to confirm has passed, and everything passes "
				   "since: load the pacer once more",
				   a->ifname);
	return policy_fail(error, 0,
			   "%s: the time to confirm has passed and the policy before is in force "
			   "again: apply the new one once more",
			   a->ifname);
}
