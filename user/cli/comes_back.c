/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/comes_back.h"

#include <string.h>

#include "cli/cmd.h"
#include "live/copies.h"
#include "live/fleet_bans.h"
#include "live/sole_agent.h"

static bool shares_bans(const struct policy *policy, const char *rule)
{
	struct fleet_bans bans = fleet_bans_of(policy);

	if (!rule)
		return bans.n || bans.sources;
	for (size_t i = 0; i < policy->n_rules; i++)
		if (!strcmp(policy->rule[i].name, rule))
			return policy->rule[i].ban_fleet;
	return bans.sources;
}

static bool shares_set(const struct policy *policy, const char *set)
{
	for (size_t i = 0; i < policy->n_sets; i++)
		if (!strcmp(policy->set[i].name, set))
			return policy->set[i].fleet;
	return false;
}

static void say(struct attached *a, bool (*shares)(const struct policy *, const char *),
		const char *what)
{
	struct policy_error unused;
	struct policy *policy = copies_policy(a, copies_in_force(a), &unused);

	if (policy && shares(policy, what) && sole_agent_seen(a) == SOLE_AGENT_NONE)
		complaint("%s: no agent of its fleet runs here: what other hosts have of it comes "
			  "back when one begins: lift it again then",
			  a->ifname);
	policy_free(policy);
}

void say_bans_come_back(struct attached *a, const char *rule)
{
	say(a, shares_bans, rule);
}

void say_set_comes_back(struct attached *a, const char *set)
{
	say(a, shares_set, set);
}
