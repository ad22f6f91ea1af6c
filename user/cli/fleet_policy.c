/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/fleet_policy.h"

#include <string.h>

bool fleet_is_another(const struct policy_fleet *was, const struct policy_fleet *is)
{
	return memcmp(was->store, is->store, sizeof(was->store)) || strcmp(was->name, is->name) ||
	       strcmp(was->ca, is->ca) || strcmp(was->cert, is->cert) || strcmp(was->key, is->key);
}
