/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: says of what was just lifted that the pacer's fleet has it still. The agent of this host
 * tells others what is lifted here; one that begins later does not know that it was here.
 *
 * Concurrency: any number of processes.
 */
#ifndef PACER_COMES_BACK_H
#define PACER_COMES_BACK_H

#include "live/attached.h"

/*
 * A line on stderr, where the policy in force shares it and no agent runs for the state: of bans
 * that were lifted, by that rule or, NULL, by any; of elements that were taken out of that set.
 */
void say_bans_come_back(struct attached *a, const char *rule);
void say_set_comes_back(struct attached *a, const char *set);

#endif
