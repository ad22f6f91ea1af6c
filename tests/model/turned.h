/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a limit whose secret is being changed: two limits that share their lines, of which each
 * finds the keys by a secret of its own. Every schedule ends (CPUs that wait for each other in a
 * circle give up), none admits more than the limit, and what is denied is over it or contended.
 */
#ifndef PACER_TURNED_H
#define PACER_TURNED_H

void test_turned(void **state);
void test_turned_finds_faults(void **state);

#endif
