/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: puts the targets of a policy's pools into the maps that packets are redirected through.
 * Each copy of the policy has its own part of these maps. The part is filled before the copy comes
 * into force, so no packet sees half a list. The owner of an AF_XDP socket puts it into its map.
 */
#ifndef PACER_TARGETS_H
#define PACER_TARGETS_H

#include "plan/plan.h"

struct target_maps {
	int devices_fd, cpus_fd, leases_fd;
	uint32_t cpus_max; /* entries of the map of CPUs */
};

/*
 * Fills this copy's part from the plan, and clears the leases of its CPUs. Returns 0, or -1 with
 * *error filled if an interface is missing, down or no target, or if a CPU is missing.
 */
int targets_put(const struct target_maps *maps, uint32_t copy, const struct plan *plan,
		struct policy_error *error);

/* Why this machine cannot redirect packets to it now; NULL: it can. */
const char *targets_lack(const struct policy_target *target);

#endif
