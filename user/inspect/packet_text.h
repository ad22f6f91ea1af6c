/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: a packet that somebody writes: "udp 203.0.113.9:4000 > [2001:db8::1]:53 len 80". Pure.
 */
#ifndef PACER_PACKET_TEXT_H
#define PACER_PACKET_TEXT_H

#include "config/policy.h"
#include "parse.h"

#define PACKET_LEN_SMALLEST 60 /* of a frame, and what it is unless the text says more */

#define PACKET_HEAD_MAX 3072 /* bytes that are kept of a frame */

/* A frame's first bytes. */
struct packet_head {
	uint8_t data[PACKET_HEAD_MAX];
	uint32_t n;
};

/* Is it a packet's text, rather than a key's? */
bool packet_text_is(const char *text);
/*
 * PROTO SRC[:PORT] > DST[:PORT], and then in any order what is not to be as it mostly is: vlan N,
 * len N, flags ack, type echo-request, code 0, ttl 64, dscp 0, fragment none, options no, payload
 * HEX (with which the packet ends unless len is said; else zeros), ether_src and ether_dst MAC. At
 * the end it may say what it is in: "in gre SRC > DST", the same of ipip, vxlan, geneve and gtpu,
 * or "in pppoe"; then vlan, len and the MACs are of the frame, and *pkt is the packet around it, of
 * pppoe one without addresses. Or a flow as tally_key_text writes it. `head` gets the frame's first
 * bytes, where it is not NULL. With raw_ip that begins with the IP header, and what Ethernet has is
 * an error. 0, or -1 with *error filled.
 */
int packet_text_read(const char *text, bool raw_ip, struct pacer_packet *pkt,
		     struct packet_head *head, struct policy_error *error);

#endif
