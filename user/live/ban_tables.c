/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/ban_tables.h"

#include "live/ban_notes.h"
#include "live/copies.h"
#include "live/host.h"
#include "short.h"

void ban_tables_close(struct ban_tables *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		policy_free(t->policy[i]);
}

int ban_tables_open(const struct attached *a, struct ban_tables *t, struct policy_error *error)
{
	struct policy_error why;
	uint32_t copy[2], n = copies_to_change(a, copy);

	*t = (struct ban_tables){.copy = {copy[n - 1], copy[0]}};
	for (; t->n < n; t->n++) {
		t->policy[t->n] = copies_policy(a, t->copy[t->n], &why);
		if (!t->policy[t->n]) {
			ban_tables_close(t);
			return policy_fail(error, 0, "%s: no memory for its policy", a->ifname);
		}
	}
	return 0;
}

bool ban_tables_shared(const struct attached *a, const struct ban_tables *t, uint32_t i)
{
	const struct pacer_bans *bans = &a->copy[t->copy[i]].policy.bans;

	return i && bans->sets && a->copy[t->copy[0]].policy.bans.base == bans->base;
}

void ban_tables_note(struct attached *a, const struct ban_tables *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct pacer_policy *policy = &a->copy[t->copy[i]].policy;

		ban_notes_write(a->lines, policy, host_now_ns());
		pacer_short_reshape(policy, a->control, t->copy[i]);
	}
}
