/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what another policy changes for a fleet's agent that runs. Pure.
 */
#ifndef PACER_FLEET_POLICY_H
#define PACER_FLEET_POLICY_H

#include "config/policy.h"

/* Is its fleet another one, or its store to be asked in another way? */
bool fleet_is_another(const struct policy_fleet *was, const struct policy_fleet *is);

#endif
