/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: single keys of a limit that a fleet divides, between the text that the store has of them
 * and what packets are judged by. Pure.
 */
#ifndef PACER_FLEET_KEYS_H
#define PACER_FLEET_KEYS_H

#include "fleet/member.h"
#include "live/fleet_shares.h"

/*
 * The packet's key under the limit, as the store has it; all of `text` is written. False: the text
 * is too long, or would be read as another key, and *text is of no use.
 */
bool fleet_key_text(const struct fleet_limit *limit, const struct pacer_packet *pkt,
		    char text[FLEET_KEY_TEXT]);

/*
 * What packets are to be judged by: lane k of the picture is lane k - 1 of theirs. A key that is no
 * key here, as only somebody else can have written it, gets no lane, and no other key of the rest
 * more than it.
 */
struct fleet_held fleet_keys_held(const struct fleet_limit *limit, const struct fleet_picture *p);

#endif
