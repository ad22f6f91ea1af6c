/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: bans follow the hash's secret. The place of a ban depends on the secret. After a
 * rotation each ban is entered in its new place and then removed from the old one.
 *
 * Concurrency: it runs while packets are judged by a policy that has bans.moving. A grace period
 * has passed since the switch, so nobody bans under the old secret any more. A packet asks under
 * the old secret first and then under the new one. A ban is in its new place before it leaves the
 * old one. So no packet misses a ban. A ban that is lifted meanwhile is lifted in both places.
 *
 * Error: no ban is lost, and none lasts longer than before. A ban whose new set is full stays where
 * it is until there is room or it ends. bans.moving stays set until then.
 *
 * Memory: none.
 */
#ifndef PACER_ROTATE_H
#define PACER_ROTATE_H

#include <stddef.h>

#include "abi.h"

/* Moves the bans to where secret `to` places them. Returns how many could not be moved yet. */
size_t rotate_bans(struct pacer_table *table, const struct pacer_bans *bans,
		   const __u64 secret[2][PACER_SECRETS], __u32 to, __u64 now_ns);

#endif
