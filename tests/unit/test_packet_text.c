/* SPDX-License-Identifier: GPL-2.0-only */
/* A packet as somebody writes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/packet_text.h"
#include "inspect/tally.h"
#include "path.h"

static const struct policy_key flow = KEY_FLOW;

/* As a flow, and what a flow does not say. */
static void reads(const char *text, const char *want, uint32_t len, uint16_t vlan, uint8_t ports)
{
	struct policy_error error;
	struct pacer_packet pkt;
	char buf[TALLY_TEXT];

	if (packet_text_read(text, false, &pkt, NULL, &error))
		fail_msg("%s", error.text);
	assert_string_equal(tally_key_text(&flow, &pkt, buf, sizeof(buf)), want);
	assert_int_equal(pkt.len_bytes, len);
	assert_int_equal(pkt.vlan, vlan);
	assert_int_equal(pacer_vlan_of(pkt.key[PACER_WORD_META]), vlan);
	assert_int_equal(pkt.ports, ports);
	assert_int_equal(pkt.fragment, PACER_FRAG_NONE);
}

static void test_read(void **state)
{
	(void)state;
	reads("udp 192.0.2.1:4000 > 192.0.2.2:53", "192.0.2.1>192.0.2.2 udp 4000 53", 60,
	      PACER_VLAN_NONE, PACER_PORTS_READ);
	reads("  udp 192.0.2.1:4000>192.0.2.2:53 len 1514 vlan 7 ",
	      "192.0.2.1>192.0.2.2 udp 4000 53", 1514, 7, PACER_PORTS_READ);
	/* A tag of VLAN 0 names none, as in frames. */
	reads("tcp [2001:db8::1]:1 > [2001:DB8:0::2]:65535 vlan 0",
	      "2001:db8::1>2001:db8::2 tcp 1 65535", 60, PACER_VLAN_NONE, PACER_PORTS_READ);
	reads("icmpv6 2001:db8::1 > [2001:db8::2]", "2001:db8::1>2001:db8::2 icmpv6 0 0", 60,
	      PACER_VLAN_NONE, PACER_PORTS_NONE);
	reads("47 192.0.2.1 > 192.0.2.2", "192.0.2.1>192.0.2.2 47 0 0", 60, PACER_VLAN_NONE,
	      PACER_PORTS_NONE);
	/* A header that others follow: no frame is made of it. */
	reads("44 2001:db8::1 > 2001:db8::2", "2001:db8::1>2001:db8::2 44 0 0", 60, PACER_VLAN_NONE,
	      PACER_PORTS_NONE);
	reads("44 2001:db8::1 > 2001:db8::2 vlan 0", "2001:db8::1>2001:db8::2 44 0 0", 60,
	      PACER_VLAN_NONE, PACER_PORTS_NONE);
	reads("44 2001:db8::1 > 2001:db8::2 vlan 7", "2001:db8::1>2001:db8::2 44 0 0", 60, 7,
	      PACER_PORTS_NONE);
	reads("192.0.2.1>192.0.2.2 sctp 7 8", "192.0.2.1>192.0.2.2 sctp 7 8", 60, PACER_VLAN_NONE,
	      PACER_PORTS_READ);
}

/* What is said of its headers, against bytes that were written by hand from the RFCs. */
static const struct {
	const char *text, *bytes; /* of the frame; the rest of it is 0 */
	uint8_t fragment;
} frames[] = {
    {"udp [2001:db8::1]:1 > [2001:db8::2]:2 options yes fragment first dscp ef ttl 3 payload 0a0B "
     "ether_dst 02:00:00:00:00:01 ether_src 02:00:00:00:00:02",
     "020000000001"
     "020000000002"
     "86dd"
     "6b800000"
     "001a"
     "00"
     "03"
     "20010db8000000000000000000000001"
     "20010db8000000000000000000000002"
     "2c00010400000000"
     "1100000100000001"
     "0001000200000000"
     "0a0b",
     PACER_FRAG_FIRST},
    {"tcp [2001:db8::1]:1 > [2001:db8::2]:2 fragment later options no flags syn,ack",
     "000000000000"
     "000000000000"
     "86dd"
     "60000000"
     "001c"
     "2c"
     "40"
     "20010db8000000000000000000000001"
     "20010db8000000000000000000000002"
     "0600000800000001"
     "000100020000000000000000"
     "5012000000000000",
     PACER_FRAG_LATER},
    {"icmp 192.0.2.1 > 192.0.2.2 type 3 code 1 options yes fragment later dscp 10 ttl 255",
     "000000000000"
     "000000000000"
     "0800"
     "4728002e"
     "00010001"
     "ff010000"
     "c0000201"
     "c0000202"
     "0101010101010101"
     "0301000000000000",
     PACER_FRAG_LATER},
    {"136 2001:db8::1 > 2001:db8::2 options yes payload FF",
     "000000000000"
     "000000000000"
     "86dd"
     "60000000"
     "0011"
     "00"
     "40"
     "20010db8000000000000000000000001"
     "20010db8000000000000000000000002"
     "8800010400000000"
     "0000000000000000"
     "ff",
     PACER_FRAG_NONE},
    {"udp 192.0.2.1:1 > 192.0.2.2:2 fragment first vlan 5",
     "000000000000"
     "000000000000"
     "8100"
     "0005"
     "0800"
     "4500002a"
     "00012000"
     "40110000"
     "c0000201"
     "c0000202"
     "0001000200000000",
     PACER_FRAG_FIRST},
};

static void test_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		struct policy_error error;
		struct packet_head head;
		struct pacer_packet pkt;
		char bytes[2 * PACKET_HEAD_MAX + 1];
		size_t n = strlen(frames[i].bytes);

		if (packet_text_read(frames[i].text, false, &pkt, &head, &error))
			fail_msg("%s", error.text);
		for (uint32_t k = 0; k < head.n; k++)
			snprintf(bytes + 2 * (size_t)k, 3, "%02x", head.data[k]);
		for (size_t k = n; bytes[k]; k++)
			assert_int_equal(bytes[k], '0');
		bytes[n] = 0;
		assert_string_equal(bytes, frames[i].bytes);
		assert_int_equal(pkt.fragment, frames[i].fragment);
	}
}

/* Where there is no Ethernet: the frame begins with the IP header, and is as long as is written. */
static void test_raw_ip(void **state)
{
	static const char *const plain[] = {
	    "udp 192.0.2.1:1 > 192.0.2.2:2 fragment first len 120 ttl 9",
	    "udp [2001:db8::1]:1 > [2001:db8::2]:2 options yes len 120",
	    "udp [2001:db8::1]:1 > [2001:db8::2]:2 len 120 in gre 192.0.2.1 > 192.0.2.2",
	    "tcp 10.0.0.1:1 > 10.0.0.2:2 len 120 in vxlan 2001:db8::1 > 2001:db8::2",
	};
	static const char *const ethernet[] = {
	    "udp 192.0.2.1:1 > 192.0.2.2:2 vlan 0",
	    "udp 192.0.2.1:1 > 192.0.2.2:2 ether_src 02:00:00:00:00:01",
	    "udp 192.0.2.1:1 > 192.0.2.2:2 ether_dst 02:00:00:00:00:01",
	    "udp 192.0.2.1:1 > 192.0.2.2:2 in pppoe",
	};
	struct policy_error error;
	struct packet_head head;
	struct pacer_packet pkt;

	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		if (packet_text_read(plain[i], true, &pkt, &head, &error))
			fail_msg("%s", error.text);
		assert_int_equal(pkt.l3, 0);
		assert_int_equal(pkt.vlan, PACER_VLAN_NONE);
		assert_int_equal(pkt.len_bytes, 120);
		assert_int_equal(head.n, 120);
		if (pkt.family == PACER_FAMILY_4)
			assert_int_equal(head.data[2] << 8 | head.data[3], 120);
		else
			assert_int_equal(head.data[4] << 8 | head.data[5], 120 - 40);
	}
	for (size_t i = 0; i < sizeof(ethernet) / sizeof(*ethernet); i++) {
		assert_int_equal(packet_text_read(ethernet[i], false, &pkt, &head, &error), 0);
		assert_int_equal(packet_text_read(ethernet[i], true, &pkt, &head, &error), -1);
		assert_non_null(strstr(error.text, "have no Ethernet header: leave out vlan"));
	}
}

/* What the packet is in: the frame has it, and the packet around it is what was parsed. */
static void tunnel(const char *in, const char *outer, uint32_t len)
{
	char text[400], buf[TALLY_TEXT];
	struct policy_error error;
	struct packet_head head;
	struct pacer_walk w = {.now_ns = 1};
	struct pacer_tunnel t = {0, 0, 0, PACER_PARSED};
	struct pacer_frame f = {head.data, head.data, 0, 1};

	snprintf(text, sizeof(text), "udp 10.0.0.1:4000 > 10.0.0.2:53 vlan 7 len %u ttl 9 in %s",
		 len, in);
	if (packet_text_read(text, false, &w.pkt, &head, &error))
		fail_msg("%s", error.text);
	assert_true(w.pkt.len_bytes >= len && w.pkt.len_bytes >= head.n);
	assert_int_equal(w.pkt.vlan, 7);
	if (outer)
		assert_string_equal(tally_key_text(&flow, &w.pkt, buf, sizeof(buf)), outer);
	else
		assert_int_equal(w.pkt.family, PACER_FAMILY_NONE);
	f.end += head.n;
	f.len_bytes = w.pkt.len_bytes;
	pacer_tunnel_find(&f, &w, &t);
	assert_int_equal(t.said, PACER_PARSED);
	assert_int_equal(pacer_inner_parse(&f, &w, &t), PACER_PARSED);
	assert_string_equal(tally_key_text(&flow, &w.pkt, buf, sizeof(buf)),
			    "10.0.0.1>10.0.0.2 udp 4000 53");
	assert_int_equal(pacer_more_ttl(&f, &w.pkt), 9);
	assert_int_equal(w.pkt.vlan, 7);
}

static void test_tunnels(void **state)
{
	(void)state;
	for (uint32_t len = 60; len < 5000; len += 997) {
		tunnel("gre 192.0.2.1 > 192.0.2.2", "192.0.2.1>192.0.2.2 47 0 0", len);
		tunnel("gre 2001:db8::1 > 2001:db8::2", "2001:db8::1>2001:db8::2 47 0 0", len);
		tunnel("ipip 192.0.2.1>192.0.2.2", "192.0.2.1>192.0.2.2 4 0 0", len);
		tunnel("vxlan 192.0.2.1 > 192.0.2.2", "192.0.2.1>192.0.2.2 udp 4789 4789", len);
		tunnel("geneve 2001:db8::1 > 2001:db8::2", "2001:db8::1>2001:db8::2 udp 6081 6081",
		       len);
		tunnel("gtpu 192.0.2.1 > 192.0.2.2", "192.0.2.1>192.0.2.2 udp 2152 2152", len);
		tunnel("gtpu 2001:db8::1 > 2001:db8::2", "2001:db8::1>2001:db8::2 udp 2152 2152",
		       len);
		tunnel("pppoe", NULL, len);
	}
}

/* IPv6 within: what is around it says so. */
static void test_six_within(void **state)
{
	static const struct {
		const char *in;
		uint16_t type;
		uint32_t at; /* where it is said that this is IPv6, and in how many bytes */
		uint32_t bytes, is;
	} each[] = {
	    {"ipip 192.0.2.1 > 192.0.2.2", 0x0800, 23, 1, 41},
	    {"gre 192.0.2.1 > 192.0.2.2", 0x0800, 36, 2, 0x86dd},
	    {"pppoe", 0x8864, 20, 2, 0x57},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
		struct policy_error error;
		struct packet_head head;
		struct pacer_packet pkt;
		uint32_t is = 0;
		char text[200];

		snprintf(text, sizeof(text), "udp [2001:db8::1]:1 > [2001:db8::2]:2 in %s",
			 each[i].in);
		if (packet_text_read(text, false, &pkt, &head, &error))
			fail_msg("%s", error.text);
		assert_int_equal(head.data[12] << 8 | head.data[13], each[i].type);
		for (uint32_t k = 0; k < each[i].bytes; k++)
			is = is << 8 | head.data[each[i].at + k];
		assert_int_equal(is, each[i].is);
	}
}

/* Whatever can be written has a frame, in which the parser finds it. */
static void test_each_has_a_frame(void **state)
{
	static const char *const more[] = {"",
					   " options yes",
					   " fragment first",
					   " fragment later options yes",
					   " len 65535 vlan 4095",
					   " in ipip 192.0.2.1 > 192.0.2.2",
					   " in pppoe"};

	(void)state;
	for (unsigned int proto = 0; proto < 256; proto++)
		for (size_t i = 0; i < 2 * sizeof(more) / sizeof(*more); i++) {
			bool ports = pacer_has_ports((uint8_t)proto);
			struct policy_error error;
			struct packet_head head;
			struct pacer_packet pkt;
			char text[200];

			snprintf(text, sizeof(text), "%u %s%s > %s%s%s", proto,
				 i % 2 ? "[2001:db8::1]" : "192.0.2.1", ports ? ":1" : "",
				 i % 2 ? "[2001:db8::2]" : "192.0.2.2", ports ? ":2" : "",
				 more[i / 2]);
			if (packet_text_read(text, false, &pkt, &head, &error))
				fail_msg("%s", error.text);
		}
}

static const char *const wrong[] = {
    "",
    ">",
    "udp",
    "udp 192.0.2.1:1 >",
    "udp 192.0.2.1:1 192.0.2.2:2",
    "udp 192.0.2.1 > 192.0.2.2:2",
    "udp 192.0.2.1:1 > 192.0.2.2",
    "udp 192.0.2.1: > 192.0.2.2:2",
    "udp [192.0.2.1: > 192.0.2.2:2",
    "udp [2001:db8::1]: > [2001:db8::2]:2",
    "udp [2001:db8::1]1 > [2001:db8::2]:2",
    "udp 2001:db8::1:1 > 2001:db8::2:2",
    "icmp 192.0.2.1:1 > 192.0.2.2:1",
    "udp 192.0.2.0/24:1 > 192.0.2.2:1",
    "udp 192.0.2.1:1 > 2001:db8::2",
    "udp 192.0.2.1:1 > 192.0.2.2:65536",
    "udp 192.0.2.1:1 > 192.0.2.2:1-2",
    "udp 192.0.2.1:? > 192.0.2.2:?",
    "udp 192.0.2.1:fragment > 192.0.2.2:7",
    "udp 192.0.2.1:1 > 192.0.2.2:2 in gre 192.0.2.1 > ?",
    "? [2001:db8::1]:? > [2001:db8::2]:?",
    "192.0.2.1>192.0.2.2 udp fragment 7",
    "256 192.0.2.1 > 192.0.2.2",
    "udp 192.0.2.1:1 > 192.0.2.2:2 len",
    "udp 192.0.2.1:1 > 192.0.2.2:2 len 59",
    "udp 192.0.2.1:1 > 192.0.2.2:2 len 65536",
    "udp 192.0.2.1:1 > 192.0.2.2:2 vlan 4096",
    "udp 192.0.2.1:1 > 192.0.2.2:2 ttl 256",
    "udp 192.0.2.1:1 > 192.0.2.2:2 dscp 64",
    "udp 192.0.2.1:1 > 192.0.2.2:2 dscp 1-2",
    "udp 192.0.2.1:1 > 192.0.2.2:2 fragment middle",
    "udp 192.0.2.1:1 > 192.0.2.2:2 options maybe",
    "udp 192.0.2.1:1 > 192.0.2.2:2 payload 1g",
    "udp 192.0.2.1:1 > 192.0.2.2:2 ether_dst 02:00:00:00:00:00:00",
    "icmp 192.0.2.1 > 192.0.2.2 code 256",
    "udp 192.0.2.1:1 > 192.0.2.2:2 flags syn",
    "tcp 192.0.2.1:1 > 192.0.2.2:2 flags sin",
    ("tcp 192.0.2.1:1 > 192.0.2.2:2 flags "
     "synsynsynsynsynsynsynsynsynsynsynsynsynsynsynsynsynsynsynsynsynsyn"),
    "tcp 192.0.2.1:1 > 192.0.2.2:2 type 8",
    "icmp 192.0.2.1 > 192.0.2.2 type nd-redirect",
    "udp 192.0.2.1:1 > 192.0.2.2:2 payload 123",
    "udp 192.0.2.1:1 > 192.0.2.2:2 ether_src 02:00",
    "udp 192.0.2.1:1 > 192.0.2.2:2 ether_dst 02:00",
    "udp 192.0.2.1:1 > 192.0.2.2:2 ttl 1 ttl 1",
    "udp 192.0.2.1:1 > 192.0.2.2:2 len 60 vlan 1 len 60 vlan 1",
    "192.0.2.1>192.0.2.2 udp 1 2 len 60",
    "udp 192.0.2.1:1 > 192.0.2.2:2 in",
    "udp 192.0.2.1:1 > 192.0.2.2:2 in pptp 192.0.2.1 > 192.0.2.2",
    "udp 192.0.2.1:1 > 192.0.2.2:2 in gre",
    "udp 192.0.2.1:1 > 192.0.2.2:2 in gre 192.0.2.1 > 2001:db8::1",
    "udp 192.0.2.1:1 > 192.0.2.2:2 in gre 192.0.2.1 > 192.0.2.2 len 80",
    "udp 192.0.2.1:1 > 192.0.2.2:2 in pppoe 192.0.2.1 > 192.0.2.2",
    "udp 192.0.2.1:1 > [192.0.2.2",
    "icmp 192.0.2.1 > 192.0.2.2:1",
    "udp 192.0.2.1:1 > 192.0.2.2:2 len x",
    "udp 192.0.2.1:1 > 192.0.2.2:2 len 60-70",
    "udp 192.0.2.1:1 > 192.0.2.2:2 ether_src 02:00:00:00:00:00/24",
    "udp 192.0.2.1:1 > 192.0.2.2:2 ether_dst 02:00:00:00:00:00/24",
    "icmp 192.0.2.1 > 192.0.2.2 typ 8",
    "udp 192.0.2.1:1 > 192.0.2.2:2 in gre 192.0.2.1 < 192.0.2.2",
    "udp 1 > 2 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7",
    "udp 11111111111111111111111111111111111111111111111111111111111111111:1 > 192.0.2.2:1",
};

/* What is said of the payload is all of it: a short frame is filled up behind the packet. */
static void test_payload_to_its_end(void **state)
{
	static const struct {
		const char *text;
		uint32_t len_bytes, ip_bytes;
		bool raw_ip;
	} c[] = {
	    {"udp 192.0.2.1:1 > 192.0.2.2:2 payload 01020304", 60, 32, false},
	    {"udp 192.0.2.1:1 > 192.0.2.2:2 payload 01020304 len 60", 60, 46, false},
	    {"udp 192.0.2.1:1 > 192.0.2.2:2 len 64 payload 01020304", 64, 50, false},
	    {"udp 192.0.2.1:1 > 192.0.2.2:2", 60, 46, false},
	    {"tcp 192.0.2.1:1 > 192.0.2.2:2 options yes payload 01", 63, 49, false},
	    {"udp 192.0.2.1:1 > 192.0.2.2:2 payload 01020304", 32, 32, true},
	    {"udp 192.0.2.1:1 > 192.0.2.2:2 payload 01020304 in gre 192.0.2.3 > 192.0.2.4", 56, 56,
	     true},
	    {"udp 192.0.2.1:1 > 192.0.2.2:2 payload 01020304 in gre 192.0.2.3 > 192.0.2.4", 70, 56,
	     false},
	};
	char text[64 + 2 * 1505 + 1] = "udp 192.0.2.1:1 > 192.0.2.2:2 payload ";
	const size_t begin = strlen(text);
	struct policy_error error;
	struct packet_head head;
	struct pacer_packet pkt;

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		const uint8_t *ip = c[i].raw_ip ? head.data : head.data + 14;

		assert_int_equal(packet_text_read(c[i].text, c[i].raw_ip, &pkt, &head, &error), 0);
		assert_int_equal(pkt.len_bytes, c[i].len_bytes);
		assert_int_equal(head.n, c[i].len_bytes);
		assert_int_equal(ip[2] << 8 | ip[3], c[i].ip_bytes);
	}
	assert_int_equal(packet_text_read("icmp 192.0.2.1 > 192.0.2.2 payload 010203 in pppoe",
					  false, &pkt, &head, &error),
			 0);
	assert_int_equal(head.n, 60);
	assert_int_equal(head.data[18] << 8 | head.data[19], 2 + 20 + 8 + 3);
	assert_int_equal(packet_text_read("udp [::1]:1 > [::2]:2 payload 01020304 len 65", false,
					  &pkt, NULL, &error),
			 -1);
	assert_int_equal(
	    packet_text_read("udp 192.0.2.1:1 > 192.0.2.2:2 payload 01020304 len 69 in "
			     "gre 192.0.2.3 > 192.0.2.4",
			     false, &pkt, NULL, &error),
	    -1);
	assert_int_equal(packet_text_read("udp [::1]:1 > [::2]:2 payload 01020304 len 66", false,
					  &pkt, NULL, &error),
			 0);
	memset(text + begin, 'a', 2 * 1504);
	assert_int_equal(packet_text_read(text, false, &pkt, &head, &error), 0);
	assert_int_equal(pkt.len_bytes, 14 + 20 + 8 + 1504);
	assert_int_equal(head.data[head.n - 1], 0xaa);
	strcat(text, " ttl 3");
	assert_int_equal(packet_text_read(text, false, &pkt, &head, &error), 0);
	assert_int_equal(head.data[22], 3);
	memset(text + begin, 'a', 2 * 1505);
	text[begin + 2 * 1505] = 0;
	assert_int_equal(packet_text_read(text, false, &pkt, &head, &error), -1);
	assert_non_null(strstr(error.text, "payload: 1504 bytes at most"));
}

/* A word that is no payload has up to 63 characters. */
static void test_a_long_word(void **state)
{
	struct policy_error error;
	struct pacer_packet pkt;
	char text[128];

	(void)state;
	snprintf(text, sizeof(text), "udp 192.0.2.1:1 > 192.0.2.2:2 len %063d", 99);
	assert_int_equal(packet_text_read(text, false, &pkt, NULL, &error), 0);
	assert_int_equal(pkt.len_bytes, 99);
	snprintf(text, sizeof(text), "udp 192.0.2.1:1 > 192.0.2.2:2 len %064d", 99);
	assert_int_equal(packet_text_read(text, false, &pkt, NULL, &error), -1);
}

static void test_wrong(void **state)
{
	struct policy_error error;
	struct pacer_packet pkt;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (!packet_text_read(wrong[i], false, &pkt, NULL, &error))
			fail_msg("%s was read", wrong[i]);
	assert_true(packet_text_is("udp 192.0.2.1:1>192.0.2.2:2"));
	assert_false(packet_text_is("192.0.2.1 53"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_read),
	    cmocka_unit_test(test_headers),
	    cmocka_unit_test(test_raw_ip),
	    cmocka_unit_test(test_tunnels),
	    cmocka_unit_test(test_six_within),
	    cmocka_unit_test(test_each_has_a_frame),
	    cmocka_unit_test(test_payload_to_its_end),
	    cmocka_unit_test(test_a_long_word),
	    cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
