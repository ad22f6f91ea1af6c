/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: whether frames that reach a pacer may be several packets each: those that the kernel has
 * joined (GRO) or has yet to cut (GSO). It counts such a frame once, and cannot tell.
 *
 * Source: rtnetlink, for what is below an interface, and ethtool. In native mode on a card, and in
 * skb mode on one, the kernel joins nothing.
 *
 * Error: what cannot be looked up is not said. One thread. Memory: of a call, all links.
 */
#ifndef PACER_JOINED_H
#define PACER_JOINED_H

#include <stdbool.h>

#define JOINED_TEXT 1280 /* bytes that suffice for a note */

/*
 * Where such frames come from, and what to do about it, to be put behind "IFACE: "; NULL: there is
 * nothing to say. skb: the pacer is in skb mode.
 */
const char *joined_note(const char *ifname, bool skb, char buf[JOINED_TEXT]);

#endif
