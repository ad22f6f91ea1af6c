/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a match asks for of a packet's headers and payload, as it is written: TCP flags,
 * ICMP types, lengths, TTL, DSCP, fragments, EtherTypes, Ethernet addresses, bytes. For the sources
 * of this wing, and for whoever has to read such words elsewhere.
 *
 * A reader takes one item, into a value of its own type; a text is what its reader takes. Pure.
 */
#ifndef PACER_HEADERS_H
#define PACER_HEADERS_H

#include "config/document.h"

reader headers_flags, headers_icmp_type, headers_icmpv6_type, headers_code, headers_ttl;
reader headers_dscp, headers_fragment, headers_options, headers_len, headers_ether_type;
reader headers_mac, headers_bytes;

void headers_flags_text(const struct policy_flags *flags, char *buf, size_t size);
void headers_icmp_type_text(const struct range *range, char *buf, size_t size);
void headers_icmpv6_type_text(const struct range *range, char *buf, size_t size);
void headers_dscp_text(const struct range *range, char *buf, size_t size);
void headers_fragment_text(const struct range *range, char *buf, size_t size);
void headers_options_text(const struct range *range, char *buf, size_t size);
void headers_ether_type_text(const struct range *range, char *buf, size_t size);
void headers_mac_text(const struct policy_mac *mac, char *buf, size_t size);
void headers_bytes_text(const struct policy_bytes *bytes, char *buf, size_t size);
void headers_range_text(const struct range *range, char *buf, size_t size);

/* Of words, 0 or -1: "syn,ack"; a name or a number of a type; "02:00:5e:00:01:ff". */
int headers_read_flags(const char *text, uint8_t *flags);
int headers_read_type(const char *text, int family, uint32_t *type);
int headers_read_dscp(const char *text, uint32_t *dscp);
int headers_read_mac(const char *text, struct policy_mac *mac);

/*
 * Fields that no packet can have together are an error, and so is what a protocol that is written
 * beside them does not have. `line` is the match's.
 */
int MUST_USE headers_check(struct source *s, const struct place *at, int line,
			   const struct policy_match *m);
/*
 * 4 or 6: the one family that the match's sources, or destinations, are of. 0: they may be of
 * either, as where none is written, or a set beside the prefixes, which has what it has.
 */
int headers_family(const struct policy_match *m, bool dst);
/* Is every packet of its sources, or of its destinations, of this family, which is 4 or 6? */
bool headers_only_of(const struct policy_match *m, int family);
/* Does the match ask for what only IP packets have? */
bool headers_of_ip(const struct policy_match *m);
/* Does it ask for frames that are not IP, by their EtherType? */
bool headers_of_frames(const struct policy_match *m);

#endif
