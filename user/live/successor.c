/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/successor.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "live/allow_maps.h"
#include "live/ban_notes.h"
#include "live/ban_tables.h"
#include "live/copies.h"
#include "live/grace.h"
#include "live/host.h"
#include "live/secret.h"
#include "live/sets_maps.h"
#include "plan/compile.h"
#include "plan/keymask.h"
#include "plan/shares.h"
#include "plan/throttles.h"
#include "record.h"
#include "short.h"

static bool counter_in(const struct pacer_policy *p, uint32_t id)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (p->rule[r].counter == id)
			return true;
	return false;
}

static void clear_bans(struct attached *a, const struct pacer_bans *bans)
{
	memset(&a->lines[bans->base], 0, (size_t)bans->sets * PACER_BAN_WAYS * sizeof(*a->lines));
	memset(&a->lines[bans->filter], 0, (bans->filter_mask + 2ull) * sizeof(*a->lines));
}

/* Of a set that the present policy has not. */
static int clear_set_counters(struct attached *a, const struct successor *s,
			      struct policy_error *error)
{
	int cpus = host_cpus(error), result = 0;
	struct pacer_set_count *zero = cpus < 1 ? NULL : calloc(cpus, sizeof(*zero));

	if (!zero)
		return cpus < 1 ? -1 : policy_fail(error, 0, "%s: no memory", a->ifname);
	for (uint32_t i = 0; i < s->n_sets && !result; i++) {
		uint32_t id = s->bin->set_counter[i];

		if (s->old_set[i] < 0 && bpf_map_update_elem(a->set_hits_fd, &id, zero, 0))
			result = policy_fail(error, 0, "%s: its sets' counters cannot be written",
					     a->ifname);
	}
	free(zero);
	return result;
}

static int clear_counters(struct attached *a, const struct pacer_policy *old,
			  const struct pacer_policy *new, struct policy_error *error)
{
	int cpus = host_cpus(error), result = 0;
	struct pacer_counters *zero = cpus < 1 ? NULL : calloc(cpus, sizeof(*zero));

	if (!zero)
		return cpus < 1 ? -1 : policy_fail(error, 0, "%s: no memory", a->ifname);
	for (size_t r = 0; r < PACER_RULES_MAX && !result; r++) {
		uint32_t id = new->rule[r].counter;

		if (id && !counter_in(old, id) && bpf_map_update_elem(a->counts_fd, &id, zero, 0))
			result =
			    policy_fail(error, 0, "%s: its counters cannot be written", a->ifname);
	}
	free(zero);
	return result;
}

/* A throttle that nobody asks: its state, and what CPUs had leased of it. */
static int clear_throttle(struct attached *a, uint32_t index, struct policy_error *error)
{
	int cpus = host_cpus(error), result = 0;
	struct pacer_throttle_lease *zero = cpus < 1 ? NULL : calloc(cpus, sizeof(*zero));

	if (!zero)
		return cpus < 1 ? -1 : policy_fail(error, 0, "%s: no memory", a->ifname);
	memset(&a->throttle[index], 0, sizeof(a->throttle[index]));
	if (bpf_map_update_elem(a->leases_fd, &index, zero, 0))
		result = policy_fail(error, 0, "%s: its leases cannot be written", a->ifname);
	free(zero);
	return result;
}

static int begin_targets(struct attached *a, const struct pacer_policy *new,
			 const struct plan *plan, struct policy_error *error)
{
	for (size_t i = 0; i < plan->n_pools; i++)
		for (size_t k = 0; k < plan->pool[i].n; k++) {
			uint32_t state = new->pool[i].state[k];

			if (plan->pool[i].state[k] != PLAN_NEW)
				continue;
			if (clear_throttle(a, state, error))
				return -1;
			if (plan->pool[i].spent[k])
				throttle_spend(&a->throttle[state], &new->pool[i].throttle,
					       host_now_ns());
		}
	return 0;
}

/* What the new policy uses and the present one does not begins at zero. */
static int clear_new(struct attached *a, const struct pacer_policy *old,
		     const struct pacer_policy *new, const struct plan *plan,
		     struct policy_error *error)
{
	int result = clear_counters(a, old, new, error);

	for (size_t i = 0; i < plan->n_limits && !result; i++) {
		const struct plan_limit *l = &plan->limit[i];
		const struct pacer_limiter *t = &new->rule[l->rule].limiter[l->limiter];

		if (l->state != PLAN_NEW)
			continue;
		if (!compile_in_lines(t))
			result = clear_throttle(a, t->base, error);
		else
			memset(&a->lines[t->base], 0, compile_limiter_lines(t) * sizeof(*a->lines));
	}
	if (!result)
		result = begin_targets(a, new, plan, error);
	if (!result && new->bans.sets && plan->bans == PLAN_NEW)
		clear_bans(a, &new->bans);
	if (!result && new->flows.sets && plan->flows == PLAN_NEW)
		memset(&a->lines[new->flows.base], 0,
		       compile_flow_lines(&new->flows) * sizeof(*a->lines));
	return result;
}

/* The limiter that had this one's lines before. NULL: none. */
static const struct pacer_limiter *limiter_before(const struct pacer_policy *old,
						  const struct pacer_limiter *t)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < old->rule[r].n_limiters; k++)
			if (old->rule[r].limiter[k].kind == t->kind &&
			    old->rule[r].limiter[k].base == t->base)
				return &old->rule[r].limiter[k];
	return NULL;
}

/* A packet holds an entry for less than a microsecond, unless its CPU is interrupted. */
#define HELD_LOOKS 100000

static int forget_generation(struct attached *a, const struct pacer_limiter *t,
			     struct policy_error *error)
{
	uint32_t n = 2 * t->sets + t->shared, looks = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = t->base * PACER_LINE_UNITS + i * t->units;
		union pacer_unit *unit =
		    &a->lines[at / PACER_LINE_UNITS].unit[at % PACER_LINE_UNITS];

		while (!pacer_record_forget(&unit->entry, t->generation)) {
			if (++looks == HELD_LOOKS)
				return policy_fail(error, 0,
						   "%s: an entry stays held: is the machine "
						   "overloaded? Try again",
						   a->ifname);
			sched_yield();
		}
	}
	return 0;
}

/* Entries may still have the generation from three values ago: it must not speak for this one. */
static int forget_generations(struct attached *a, const struct pacer_policy *old,
			      const struct pacer_policy *new, struct policy_error *error)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < new->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &new->rule[r].limiter[k];
			const struct pacer_limiter *before = limiter_before(old, t);

			if (pacer_limiter_kind_of(t) == PACER_LIMITER_WINDOW && before &&
			    before->generation != t->generation && forget_generation(a, t, error))
				return -1;
		}
	return 0;
}

static int put_targets(struct attached *a, uint32_t copy, const struct plan *plan,
		       struct policy_error *error)
{
	struct policy_error why = {0};

	if (!targets_put(&a->targets, copy, plan, &why))
		return 0;
	return policy_fail(error, 0, "%s: %.300s", a->ifname, why.text);
}

static int make_samples(struct attached *a, const struct pacer_sampling *sampling,
			struct samples_made *made, struct policy_error *error)
{
	struct policy_error why = {0};
	int cpus = host_cpus(error);

	if (cpus < 1)
		return -1;
	if (!samples_make(&a->samples, sampling, cpus, made, &why))
		return 0;
	return policy_fail(error, 0, "%s: %.300s", a->ifname, why.text);
}

/* Which of the sets in force each of the new policy is. */
static int find_sets(const struct attached *a, const struct policy *old, const struct policy *new,
		     struct successor *s, struct policy_error *error)
{
	s->n_sets = (uint32_t) new->n_sets;
	for (size_t i = 0; i < new->n_sets; i++) {
		size_t k = 0;

		while (k < old->n_sets && strcmp(old->set[k].name, new->set[i].name))
			k++;
		if (k == old->n_sets && !s->sets)
			return policy_fail(error, new->set[i].line,
					   "%s: the policy in force has no set %s: apply a policy",
					   a->ifname, new->set[i].name);
		if (s->sets && policy_set_named(new, &new->set[i]) && new->set[i].value &&
		    !s->sets->text[i].list.about)
			return policy_fail(error, 0,
					   "%s: set %s was read while another change came, which "
					   "counts by its values: try again",
					   a->ifname, new->set[i].name);
		if (!s->sets && policy_set_named(new, &new->set[i]) &&
		    !policy_set_named(old, &old->set[k]))
			return policy_fail(error, new->set[i].line,
					   "%s: set %s was read without its values, as neither a "
					   "key nor a fleet had them: apply a policy",
					   a->ifname, new->set[i].name);
		s->old_set[i] = k < old->n_sets ? (int)k : -1;
		s->valued[i] = k < old->n_sets && policy_set_named(old, &old->set[k]) ? (int)k : -1;
	}
	return 0;
}

/* The places of the copy that no packet is judged by. Those of the other stay as they are. */
static int put_sets(const struct attached *a, uint32_t next, const struct successor *s,
		    struct policy_error *error)
{
	uint32_t were = (uint32_t)a->copy[next].policy.sets;
	int err = 0;

	/* If this fails, the next one clears those that are there by then. */
	if (were < s->n_sets)
		a->copy[next].policy.sets = s->n_sets;
	for (uint32_t i = 0; (i < s->n_sets || i < were) && i < PACER_SETS_MAX && !err; i++) {
		if (i >= s->n_sets)
			err = sets_maps_clear(a, next, i);
		else if (s->sets)
			err = sets_maps_renew(a, next, i, s->old_set[i], &s->sets->text[i].list,
					      &s->sets->text[i].about);
		else
			err = sets_maps_share(a, next, i, (uint32_t)s->old_set[i]);
	}
	return err ? policy_fail(error, 0, "%s: its sets cannot be written: %s", a->ifname,
				 sets_maps_why())
		   : 0;
}

/* With another secret where that is asked for, or where the present one is weak and it can be. */
static int compile(struct attached *a, const struct policy *new, struct compile_previous *previous,
		   bool rotate, bool trial, struct pacer_policy *bin, struct plan *plan,
		   struct policy_error *error)
{
	int cpus = host_cpus(error);
	struct compile_host host = {copies_resolution_ns(a), host_now_ns(), cpus};
	struct policy_error why;

	if (cpus < 1)
		return -1;
	previous->rotate = rotate || (!trial && secret_is_weak(a));
	if (!compile_policy(new, previous, &host, bin, plan, rotate ? error : &why))
		return 0;
	previous->rotate = false;
	return rotate ? -1 : compile_policy(new, previous, &host, bin, plan, error);
}

/*
 * What is in force again after a trial has a smaller one than the trial had. The same policy keeps
 * its serial unless that would bring the trial's back with the next change.
 */
static uint64_t next_serial(const struct attached *a, enum successor_how how)
{
	uint64_t is = a->copy[copies_in_force(a)].policy.serial, last = copies_last_serial(a);

	return how == SUCCESSOR_BY_ITSELF && is == last ? is : last + 1;
}

/*
 * What was taken off the list by hand stays off until a policy that lists it is applied. That is
 * none which has the sets as they are, and lists what the one in force does.
 */
static bool keeps_list(const struct policy *old, const struct policy *new,
		       const struct successor *s)
{
	return !s->sets && old->n_allow == new->n_allow &&
	       (!new->n_allow ||
		!memcmp(old->allow, new->allow, new->n_allow * sizeof(*new->allow)));
}

int successor_plan(struct attached *a, const char *text, enum successor_how how, bool trial,
		   struct successor *s, struct policy_error *error)
{
	uint32_t now = copies_in_force(a);
	struct policy *old = copies_policy(a, now, error);
	struct policy *new = old ? policy_parse(text, strlen(text), error) : NULL;
	struct compile_previous previous = {old,  &a->copy[now].policy, a->n_lines, false, trial,
					    false};
	int result = -1;

	s->list = (struct allowlist){0};
	s->bin = malloc(sizeof(*s->bin));
	if (!s->bin)
		policy_explain(error, 0, "%s: no memory", a->ifname);
	else if (new)
		result = compile(a, new, &previous, how == SUCCESSOR_ROTATED, trial, s->bin,
				 s->plan, error);
	if (!result) {
		s->other_fleet = shares_fleet(&old->fleet) ^ shares_fleet(&new->fleet);
		s->no_fleet = !old->fleet.on;
		s->forgets = new->fleet.on ? s->other_fleet != 0 : !trial;
		keymask_keep_values(new, s->bin);
		result = find_sets(a, old, new, s, error);
	}
	if (!result)
		s->bin->serial = next_serial(a, how);
	if (!result)
		result = keeps_list(old, new, s) ? allow_maps_read(a, now, &s->list, error)
						 : allow_maps_next(a, new, &s->list, error);
	policy_free(old);
	policy_free(new);
	if (result)
		successor_free(s);
	return result;
}

/* The briefs have the secret in them: it has to be there before the first packet asks for it. */
static int put_secret(struct attached *a, const struct successor *s, struct policy_error *error)
{
	return s->plan->rotated ? secret_draw(a, s->bin->secret, error) : secret_ready(a, error);
}

/* Into a table of another size, which is empty or has some of them. */
static size_t carry_bans(struct attached *a, const struct pacer_policy *old,
			 const struct pacer_policy *new)
{
	struct pacer_table table = {a->lines, (uint32_t)a->n_lines};

	return ban_tables_carry(&a->lines[old->bans.base], (size_t)old->bans.sets * PACER_BAN_WAYS,
				&table, new, (const __u64 *)a->control->secret[new->secret & 1],
				host_now_ns(), NULL);
}

int successor_write(struct attached *a, const char *text, struct successor *s,
		    struct policy_error *error)
{
	uint32_t now = copies_in_force(a), next = now ^ 1;

	if (grace(a->ifname, error) || put_secret(a, s, error) ||
	    clear_new(a, &a->copy[now].policy, s->bin, s->plan, error) ||
	    clear_set_counters(a, s, error) ||
	    forget_generations(a, &a->copy[now].policy, s->bin, error) ||
	    put_targets(a, next, s->plan, error) || put_sets(a, next, s, error) ||
	    allow_maps_write(a, next, &s->list, error) ||
	    make_samples(a, &s->bin->sampling, &s->made, error))
		return -1;
	if (s->plan->bans == PLAN_NEW)
		(void)carry_bans(a, &a->copy[now].policy, s->bin);
	ban_notes_write(a->lines, s->bin, host_now_ns());
	pacer_short_arm(s->bin, a->control, next);
	s->serial_before = a->copy[next].policy.serial;
	a->copy[next].policy = *s->bin;
	memset(a->copy[next].text, 0, PACER_DOC_MAX);
	memcpy(a->copy[next].text, text, strlen(text));
	return 0;
}

void successor_settle(struct attached *a, struct plan *plan)
{
	uint32_t now = copies_in_force(a);
	const struct pacer_policy *old = &a->copy[now ^ 1].policy;
	struct pacer_policy *new = &a->copy[now].policy;
	struct policy_error unused;

	if (plan->bans == PLAN_KEPT || !old->bans.sets)
		return;
	if (new->bans.sets) /* else nobody is banned any more, whenever it was */
		(void)grace(a->ifname, &unused);
	plan->bans_left_out = carry_bans(a, old, new);
	if (!plan->bans_left_out) /* it is as good as the one before */
		new->bans.begun = old->bans.begun;
	else if (new->bans.begun <= old->bans.begun) /* of changes that follow at once */
		new->bans.begun = old->bans.begun + 1;
	ban_notes_write(a->lines, new, host_now_ns());
	pacer_short_reshape(new, a->control, now);
}

void successor_undo(const struct attached *a, const struct successor *s)
{
	a->copy[copies_in_force(a) ^ 1].policy.serial = s->serial_before;
	samples_undo(&a->samples, &s->made);
}

void successor_free(struct successor *s)
{
	allowlist_free(&s->list);
	free(s->bin);
	s->bin = NULL;
}
