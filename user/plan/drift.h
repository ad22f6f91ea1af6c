/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the bound on clocks of a fleet (docs/fleet.md). The clocks of two hosts, or of a host
 * and true time, differ by one part in 1,024 at most. So on each host a limit that is divided among
 * them counts for that much longer. Pure.
 */
#ifndef PACER_DRIFT_H
#define PACER_DRIFT_H

#include "config/policy.h"

#define DRIFT_SHIFT 10 /* as in fleet/record.h */

/* So long that it is `ns` for certain by any other clock. UINT64_MAX stays. */
uint64_t drift_longer(uint64_t ns);

/* The limit with its times as this host's clock has to count them; *room is filled if they differ.
 */
const struct policy_limit *drift_limit(const struct policy_limit *limit, struct policy_limit *room);

#endif
