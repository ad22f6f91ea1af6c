/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: a packet that somebody writes: "udp 203.0.113.9:4000 > [2001:db8::1]:53 len 80". Pure.
 */
#ifndef PACER_PACKET_TEXT_H
#define PACER_PACKET_TEXT_H

#include "config/policy.h"
#include "parse.h"

#define PACKET_LEN_SMALLEST 60 /* of a frame, and what it is unless the text says more */

/* Is it a packet's text, rather than a key's? */
bool packet_text_is(const char *text);
/*
 * PROTO SRC[:PORT] > DST[:PORT] [vlan N] [len N], or a flow as tally_key_text writes it. 0, or -1
 * with *error filled.
 */
int packet_text_read(const char *text, struct pacer_packet *pkt, struct policy_error *error);

#endif
