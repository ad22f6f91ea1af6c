/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: every interleaving of CPUs that lease from a pool of two targets (pool.h), hand back and
 * go on to the other.
 *
 * What holds at the end of every schedule: no target got more than `each` in any (t - cooldown, t]
 * on the clock of use, whatever the clocks; and once all has cooled down, every use is there again.
 */
#ifndef PACER_POOLS_H
#define PACER_POOLS_H

void test_pool_interleavings(void **state);
void test_pool_finds_faults(void **state);

#endif
