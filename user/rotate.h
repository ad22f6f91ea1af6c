/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: bans follow the hash's secret. Where a ban stands depends on it, so after a rotation
 * each is entered anew where the new one has it, and then lifted where it stood.
 *
 * Concurrency: while packets are judged by a policy that has bans.moving, and nobody bans under the
 * old secret any more (a grace period has passed since the switch). A packet asks under the old
 * secret first and then under the new one, and a ban stands in its new place before it leaves the
 * old one: so none is missed. One that is lifted meanwhile is lifted in both places.
 *
 * Error: none is lost, none lasts longer than before. A ban whose new set is full of others stays
 * where it is, and bans.moving with it, until there is room or it has run out.
 *
 * Memory: none.
 */
#ifndef PACER_ROTATE_H
#define PACER_ROTATE_H

#include <stddef.h>

#include "abi.h"

/* Move the bans that run to where secret `to` has them. Returns how many could not be moved yet. */
size_t rotate_bans(struct pacer_table *table, const struct pacer_bans *bans,
		   const __u64 secret[2][PACER_SECRETS], __u32 to, __u64 now_ns);

#endif
