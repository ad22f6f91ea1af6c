/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: judgements with a fault each, for the explorer to find. They are the functions
 * of table.h and rule.h but for the step that each leaves out or does too early; those of
 * the other headers are planted in the headers themselves (planted.h).
 */
#ifndef PACER_FAULTS_H
#define PACER_FAULTS_H

#include "scenario.h"

/* Two rows: compare and swap the older cell, then raise the other. */
judge_fn fault_cas_oldest;
/* Read, judge, write: nothing is locked. */
judge_fn fault_no_lock;
/* The set's lock is given back before the shared record or an idle one is locked. */
judge_fn fault_inherit_unlocked;
/* An adopted record begins with nothing. */
judge_fn fault_inherit_nothing;
/* A record is adopted by what was seen before the set was locked. */
judge_fn fault_adopt_unseen;
/* The lock is given back, then the packet is counted. */
judge_fn fault_release_early;
/* A reader's denial stands although the record changed while it was read. */
judge_fn fault_torn_denial;
/* The first limit counts the packet before the second has judged it. */
judge_fn fault_charge_early;
/* The first limit stays held when the second denies. */
judge_fn fault_left_held;

/* A rate's fraction is written once its entry is given back. */
judge_fn fault_frac_late;
/* A reader's finding is counted under the lock without a look whether it still holds. */
judge_fn fault_same_unseen;
/* A rate's time goes on from the TAT, however long that is past. */
judge_fn fault_tat_kept;

/* The source's shortened window: the current slot and m - 1 more, where W is m slots. */
void fault_short_ring(struct pacer_rule *r);

#endif
