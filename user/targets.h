/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the targets of a policy's pools, from their names to the maps that packets are
 * redirected through. Each copy of the policy has a part of its own of them, which is filled before
 * the copy is in force; so no packet goes by half a list. AF_XDP sockets are put into their map by
 * whoever owns them.
 */
#ifndef PACER_TARGETS_H
#define PACER_TARGETS_H

#include "compile.h"

struct target_maps {
	int devices_fd, cpus_fd, leases_fd;
	uint32_t cpus_max; /* entries of the map of CPUs */
};

/*
 * Fill this copy's part from the plan, and forget what its CPUs had leased. Returns 0, or -1 with
 * *error filled: an interface that is not there, is down or is no target, a CPU that there is not.
 */
int targets_put(const struct target_maps *maps, uint32_t copy, const struct plan *plan,
		struct policy_error *error);

/* Why packets cannot be redirected to it on this machine as it is; NULL: they can. */
const char *targets_lack(const struct policy_target *target);

#endif
