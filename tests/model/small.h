/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: small models: what is known of the explorer by counting, and the TTL
 * filter's lock-free cells.
 */
#ifndef PACER_SMALL_H
#define PACER_SMALL_H

void test_explorer_counts(void **state);
void test_explorer_finds_lost_update(void **state);
void test_ttl_keeps_later(void **state);
void test_ttl_finds_plain_store(void **state);

#endif
