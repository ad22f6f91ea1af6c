/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/comes_back.h"

#include <string.h>

#include "cli/cmd.h"
#include "live/copies.h"
#include "live/fleet_bans.h"
#include "live/sole_agent.h"

static bool is_shared(const struct policy *policy, const char *set)
{
	struct fleet_bans bans = fleet_bans_of(policy);

	if (!set)
		return bans.n || bans.sources;
	for (size_t i = 0; i < policy->n_sets; i++)
		if (!strcmp(policy->set[i].name, set))
			return policy->set[i].fleet;
	return false;
}

void say_comes_back(struct attached *a, const char *set)
{
	struct policy_error unused;
	struct policy *policy = copies_policy(a, copies_in_force(a), &unused);

	if (policy && is_shared(policy, set) && sole_agent_lacks(a))
		complaint("%s: no agent of its fleet runs here: what other hosts have of it comes "
			  "back when one begins: lift it again then",
			  a->ifname);
	policy_free(policy);
}
