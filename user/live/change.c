/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/change.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/allow_maps.h"
#include "live/ban_tables.h"
#include "live/copies.h"
#include "live/draining.h"
#include "live/fleet_shares.h"
#include "live/host.h"
#include "live/secret.h"
#include "live/successor.h"
#include "live/trial.h"

static int replace(struct attached *a, const char *text, const struct set_texts *sets,
		   uint64_t confirm_ns, enum successor_how how, struct plan *plan,
		   struct policy_error *error)
{
	uint32_t now = copies_in_force(a), next = now ^ 1;
	struct pacer_policy *old = &a->copy[now].policy, *new = &a->copy[next].policy;
	struct successor s = {.plan = plan, .sets = sets};
	uint64_t until_ns;
	int result;

	if (secret_move_bans(a, old, error) || successor_plan(a, text, how, confirm_ns, &s, error))
		return -1;
	result = successor_write(a, text, &s, error);
	if (!result) {
		const struct trial_of of = {s.valued, s.other_fleet, s.no_fleet};

		until_ns = confirm_ns ? host_now_ns() + confirm_ns : 0;
		result = until_ns ? trial_begin(a, old, new, &of, until_ns, error) : 0;
		if (result)
			successor_undo(a, &s);
	}
	if (!result && s.forgets)
		fleet_forget(a);
	/* At once, without a call in between: a trial's limits count in the old policy already. */
	if (!result)
		copies_put_in_force(a, next, until_ns);
	successor_free(&s);
	if (result)
		return -1;
	result = draining_time(a, new, error);
	if (until_ns)
		trial_timed(a, old, new, until_ns);
	if (copies_in_force(a) == next) /* a trial may be over already */
		successor_settle(a, plan);
	if (secret_move_bans(a, new, error) && !result)
		result = CHANGE_LASTS;
	if (until_ns && !copies_pending_ns(a))
		return policy_fail(error, 0, "%s: its trial is over already: give it longer",
				   a->ifname);
	return result;
}

/* The text in force again. */
static int replace_alike(struct attached *a, enum successor_how how, struct plan *plan,
			 struct policy_error *error)
{
	char *text = strndup(a->copy[copies_in_force(a)].text, PACER_DOC_MAX);
	int result;

	if (!text)
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	result = replace(a, text, NULL, 0, how, plan, error);
	free(text);
	return result;
}

/* What a change that was cut off has not timed. */
static int time_in_force(struct attached *a, struct policy_error *error)
{
	return draining_time(a, &a->copy[copies_in_force(a)].policy, error) ? -1 : 0;
}

/*
 * The same policy again, without the limits that have expired: they cost every packet of their rule
 * a look and a place among the 8. Not in place, as packets are being judged by them. Another secret
 * is another matter.
 */
static int drop_expired(struct attached *a, struct policy_error *error)
{
	static struct plan plan;

	if (secret_is_weak(a) || !draining_any_expired(a, &a->copy[copies_in_force(a)].policy))
		return 0;
	return replace_alike(a, SUCCESSOR_BY_ITSELF, &plan, error);
}

void change_tidy(struct attached *a)
{
	struct policy_error why;

	if (!copies_settle(a, &why))
		(void)drop_expired(a, &why);
}

/* The lock, with nothing pending; -1 if not. */
static int lock_settled(struct attached *a, struct policy_error *error)
{
	int fd = copies_lock_of(a, error);

	if (fd >= 0 && copies_settle(a, error)) {
		close(fd);
		return -1;
	}
	if (fd >= 0)
		ban_tables_free_held(a, &a->copy[copies_in_force(a)].policy.bans);
	return fd;
}

static int put_in_force(struct attached *a, const char *text, const struct set_texts *sets,
			uint64_t confirm_ns, struct plan *plan, struct policy_error *error)
{
	/*
	 * What a killed change left without an end gets it, also where there is no room for this
	 * one. A trial's limits have to find room in the policy before, whose rates know their
	 * time.
	 */
	if (time_in_force(a, error) || (confirm_ns && drop_expired(a, error) < 0))
		return -1;
	return replace(a, text, sets, confirm_ns, SUCCESSOR, plan, error);
}

int change_apply(struct attached *a, const char *text, const struct set_texts *sets,
		 uint64_t confirm_ns, struct plan *plan, struct policy_error *error)
{
	int fd = lock_settled(a, error), result;

	if (fd < 0)
		return -1;
	result = put_in_force(a, text, sets, confirm_ns, plan, error);
	close(fd);
	return result;
}

int change_rotate(struct attached *a, struct plan *plan, struct policy_error *error)
{
	int fd = lock_settled(a, error), result;

	if (fd < 0)
		return -1;
	result = time_in_force(a, error);
	if (!result)
		result = replace_alike(a, SUCCESSOR_ROTATED, plan, error);
	close(fd);
	return result;
}

/* The text with one more "PATH=VALUE" written into it; frees the text given. */
static char *assign(char *text, const char *assignment, struct policy_error *error)
{
	char *next = policy_assign(text, assignment, error);

	free(text);
	return next;
}

int change_set(struct attached *a, char *const *assignments, int n, uint64_t confirm_ns,
	       const struct change_first *first, struct plan *plan, struct policy_error *error)
{
	int fd = lock_settled(a, error), result = -1;
	struct policy *valid = NULL;
	char *text;

	if (fd < 0)
		return -1;
	if (load_trial_stands(a, error)) {
		close(fd);
		return -1;
	}
	text = strndup(a->copy[copies_in_force(a)].text, PACER_DOC_MAX);
	if (!text)
		policy_explain(error, POLICY_NO_MEMORY, "no memory for the policy");
	for (int i = 0; i < n && text; i++)
		text = assign(text, assignments[i], error);
	if (text)
		valid = policy_parse(text, strlen(text), error);
	if (!valid)
		result = error->line == POLICY_NO_MEMORY ? -1 : CHANGE_WRONG;
	else if (!first || !first->run(first->arg, error))
		result = put_in_force(a, text, NULL, confirm_ns, plan, error);
	policy_free(valid);
	free(text);
	close(fd);
	return result;
}

int change_confirm(struct attached *a, struct policy_error *error)
{
	int fd = copies_lock_of(a, error), result;

	if (fd < 0)
		return -1;
	result = trial_confirm(a, error);
	close(fd);
	return result;
}
