/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: whether VLAN tags may be kept beside the frame, where XDP does not see them: a card
 * takes them off (rx-vlan-offload), and a stack leaves it to the card to put them in
 * (tx-vlan-offload), which for a veth nobody does. Such a packet counts as untagged, and the pacer
 * cannot tell.
 *
 * Source: rtnetlink and ethtool; net/core/dev.c: a tag is taken off before an interface above has
 * the frame.
 *
 * Error: what cannot be looked up is not said. Drivers differ in whether a native program sees the
 * tag: it is said of all whose offload is on. One thread.
 */
#ifndef PACER_TAGS_H
#define PACER_TAGS_H

#include <stdbool.h>

#include "abi.h"

#define TAGS_TEXT 384 /* bytes that suffice for a note */

/* Does a rule or a key ask for the VLAN? */
bool tags_asked(const struct pacer_policy *policy);
/*
 * What to do about such tags, to be put behind "IFACE: "; NULL: there are none. skb: the pacer is
 * in skb mode.
 */
const char *tags_note(const char *ifname, bool skb, char buf[TAGS_TEXT]);

#endif
