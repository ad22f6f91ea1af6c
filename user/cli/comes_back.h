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
 * A line on stderr, where the policy in force shares it and no agent runs for the state. set: the
 * set that an element was taken out of; NULL: bans were lifted.
 */
void say_comes_back(struct attached *a, const char *set);

#endif
