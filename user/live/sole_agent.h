/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: one agent of a fleet for each state. Interfaces may share one (`load --shared`), with
 * one word for each limit's share: of two agents each would write its own there, and the other's
 * would be nobody's.
 *
 * Source: a lock of one byte of the file by which changes wait for each other (copies.h), at the
 * kernel's number of the state's control map. So it is the same by whichever interface the state
 * was found, in whichever network namespace. It holds up no change: that lock is of another kind.
 *
 * Concurrency: among processes that see the same /run. It ends with the descriptor. Where the file
 * is removed meanwhile, another agent may begin.
 */
#ifndef PACER_SOLE_AGENT_H
#define PACER_SOLE_AGENT_H

#include "live/attached.h"

/* The lock, to be closed; -1: with *error filled. It waits for a change that is being made. */
int sole_agent(struct attached *a, struct policy_error *error);
enum sole_agent_seen { SOLE_AGENT_NONE, SOLE_AGENT_RUNS, SOLE_AGENT_UNSEEN };

/* Whether one runs for its state now. It waits for nobody, and needs the right to read that file.
 */
enum sole_agent_seen sole_agent_seen(const struct attached *a);

#endif
