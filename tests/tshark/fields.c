// SPDX-License-Identifier: GPL-2.0-only
/*
 * Purpose: what the parser reads of each frame of a capture file, a line a frame.
 *
 *   fields [--inner] FILE [OUT.pcap]
 *
 * --inner: of the packets in its tunnels.
 *
 * FILE is of Ethernet frames; or of bare IP packets or of frames of another link
 * type that names what it carries by an Ethernet type or a family: each of these
 * gets an Ethernet header, and OUT.pcap is what was parsed. Exit code 3: the link
 * type is of neither kind, nothing was parsed. Exit code 4: OUT.pcap was written.
 */
#include <arpa/inet.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inner.h"
#include "more.h"
#include "parse.h"

static bool inner;

enum { DONE, FAILED, USAGE, OTHER_LINK, REFRAMED };

#define ETHERNET 14

static const char *const results[] = {
    [PACER_PARSED] = "parsed",
    [PACER_PARSE_NOT_IP] = "not-ip",
    [PACER_PARSE_TRUNCATED] = "truncated",
    [PACER_PARSE_BAD_HEADER] = "bad-header",
    [PACER_PARSE_TOO_DEEP] = "too-deep",
};

static const char *const fragments[] = {
    [PACER_FRAG_NONE] = "none",
    [PACER_FRAG_FIRST] = "first",
    [PACER_FRAG_LATER] = "later",
};

static void print_address(const struct pacer_packet *pkt, const __u32 *words)
{
	__u32 net[4];
	char text[INET6_ADDRSTRLEN];
	int i;

	for (i = 0; i < 4; i++)
		net[i] = htonl(words[i]);
	inet_ntop(pkt->family == PACER_FAMILY_4 ? AF_INET : AF_INET6, net, text, sizeof(text));
	printf("\t%s", text);
}

/* Its ports, and mostly its protocol, lie beyond what is read. */
static int is_part(enum pacer_parse_result result, const struct pacer_packet *pkt)
{
	return result == PACER_PARSED && pkt->key[PACER_WORD_META] & PACER_META_PART;
}

static void print_ports(const struct pacer_packet *pkt)
{
	__u32 word = pkt->key[PACER_WORD_PORTS];

	if (pkt->fragment == PACER_FRAG_LATER)
		printf("\t-\t-\t%u", word);
	else if (pkt->proto == 6 || pkt->proto == 17 || pkt->proto == 132)
		printf("\t%u\t%u\t-", word >> 16, word & 0xffff);
	else
		printf("\t-\t-\t-");
}

static void print_row(__u32 row)
{
	if (row < PACER_MORE_ABSENT)
		printf("\t%u", row);
	else
		printf("\t%s", row == PACER_MORE_ABSENT ? "-" : "?");
}

/* TTL, DSCP, options, TCP flags, type and code of ICMP, length of the payload */
static void print_more(const struct pacer_frame *frame, const struct pacer_packet *pkt)
{
	bool four = pkt->family == PACER_FAMILY_4;
	__u32 family = four ? PACER_FAMILY_4 : PACER_FAMILY_6, icmp = four ? 1 : 58;
	struct pacer_walk walk = {.pkt = *pkt};
	struct pacer_parts parts;

	print_row(pacer_more_ttl(frame, pkt));
	print_row(pacer_more_dscp(frame, pkt));
	printf("\t%u", pkt->options);
	print_row(pacer_more_l4(frame, &walk, 0, 6, 13));
	print_row(pacer_more_l4(frame, &walk, family, icmp, 0));
	print_row(pacer_more_l4(frame, &walk, family, icmp, 1));
	pacer_more_parts(frame, &walk, &parts);
	if (parts.payload == PACER_NOWHERE || parts.end == PACER_NOWHERE)
		printf("\t?\n");
	else
		printf("\t%u\n", parts.end > parts.payload ? parts.end - parts.payload : 0);
}

/* frame, result, VLAN, family, source, destination, protocol, ports, datagram, fragment; and more
 */
static void print_line(unsigned long frame, enum pacer_parse_result result,
		       const struct pacer_packet *pkt, const struct pacer_frame *bytes)
{
	printf("%lu\t%s\t", frame, is_part(result, pkt) ? "part" : results[result]);
	if (pkt->vlan == PACER_VLAN_NONE)
		printf("-");
	else
		printf("%u", pkt->vlan);
	if (result != PACER_PARSED) {
		printf("\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\n");
		return;
	}
	printf("\t%d", pkt->family == PACER_FAMILY_4 ? 4 : 6);
	print_address(pkt, pkt->key + PACER_WORD_SADDR);
	print_address(pkt, pkt->key + PACER_WORD_DADDR);
	if (is_part(result, pkt)) {
		printf("\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\n");
		return;
	}
	printf("\t%u", pkt->proto);
	print_ports(pkt);
	printf("\t%s", fragments[pkt->fragment]);
	print_more(bytes, pkt);
}

/* The packet in the tunnel of one that was parsed with this result: in its place. */
static enum pacer_parse_result go_in(const struct pacer_frame *frame,
				     enum pacer_parse_result result, struct pacer_packet *pkt)
{
	struct pacer_walk walk = {.pkt = *pkt};
	struct pacer_tunnel t = {0, 0, 0, PACER_PARSED};

	if (result != PACER_PARSED && result != PACER_PARSE_NOT_IP)
		return result;
	pacer_tunnel_find(frame, &walk, &t);
	if (t.said == PACER_PARSED)
		t.said = pacer_inner_parse(frame, &walk, &t);
	*pkt = walk.pkt;
	return (enum pacer_parse_result)t.said;
}

/* The frame's first n bytes, in memory that ends where they do. */
static void parse_frame(unsigned long frame, const __u8 *b, __u32 n, __u32 len_bytes)
{
	enum pacer_parse_result result;
	struct pacer_packet pkt;
	struct pacer_frame bytes;
	__u8 *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	memcpy(copy, b, n);
	bytes = (struct pacer_frame){copy, copy + n, len_bytes, 1};
	result = pacer_parse(copy, copy + n, len_bytes, &pkt);
	if (inner)
		result = go_in(&bytes, result, &pkt);
	print_line(frame, result, &pkt, &bytes);
	free(copy);
}

/* Bytes of the link layer's header, less than 0 for those that are not read. */
static int link_bytes(int link)
{
	switch (link) {
	case DLT_RAW:
	case DLT_IPV4:
	case DLT_IPV6:
		return 0;
	case DLT_NULL:
	case DLT_LOOP:
		return 4;
	case DLT_LINUX_SLL:
		return 16;
	case DLT_LINUX_SLL2:
		return 20;
	default:
		return -1;
	}
}

/* The Ethernet type of what a frame of another link type carries; 0 where it names none. */
static __u16 ethernet_type(int link, const __u8 *b)
{
	if (link == DLT_LINUX_SLL)
		return pacer_be16(b + 14);
	if (link == DLT_LINUX_SLL2)
		return pacer_be16(b);
	b += link_bytes(link);
	return *b >> 4 == 4 ? PACER_ETH_IP4 : *b >> 4 == 6 ? PACER_ETH_IP6 : 0;
}

/* Put the frame under an Ethernet header, into out. Returns its captured length. */
static __u32 reframe(int link, const __u8 *b, const struct pcap_pkthdr *h, __u8 *out)
{
	__u32 skip = link_bytes(link), n = h->caplen > skip ? h->caplen - skip : 0;
	__u16 type = n ? ethernet_type(link, b) : 0;

	memset(out, 2, 12);
	out[12] = type >> 8;
	out[13] = type;
	if (n)
		memcpy(out + ETHERNET, b + skip, n);
	return ETHERNET + n;
}

static void parse_reframed(unsigned long frame, int link, const struct pcap_pkthdr *from,
			   const __u8 *b, pcap_dumper_t *dump)
{
	struct pcap_pkthdr h = *from;
	__u32 skip = link_bytes(link);
	__u8 *out = malloc(ETHERNET + from->caplen);

	if (!out)
		abort();
	h.caplen = reframe(link, b, from, out);
	h.len = ETHERNET + (from->len > skip ? from->len - skip : 0);
	pcap_dump((u_char *)dump, &h, out);
	parse_frame(frame, out, h.caplen, h.len);
	free(out);
}

static int parse_all(pcap_t *in, pcap_dumper_t *dump)
{
	struct pcap_pkthdr *h;
	const __u8 *b;
	unsigned long frame = 0;
	int got;

	while ((got = pcap_next_ex(in, &h, &b)) == 1) {
		frame++;
		if (dump)
			parse_reframed(frame, pcap_datalink(in), h, b, dump);
		else
			parse_frame(frame, b, h->caplen, h->len);
	}
	if (got == PCAP_ERROR)
		fprintf(stderr, "fields: after frame %lu: %s\n", frame, pcap_geterr(in));
	return dump ? REFRAMED : DONE;
}

static int parse_other(pcap_t *in, const char *path)
{
	pcap_t *dead;
	pcap_dumper_t *dump;
	int status;

	if (!path || link_bytes(pcap_datalink(in)) < 0)
		return OTHER_LINK;
	dead = pcap_open_dead(DLT_EN10MB, 1 << 18);
	dump = dead ? pcap_dump_open(dead, path) : NULL;
	if (!dump) {
		fprintf(stderr, "fields: %s: cannot write\n", path);
		return FAILED;
	}
	status = parse_all(in, dump);
	pcap_dump_close(dump);
	pcap_close(dead);
	return status;
}

int main(int argc, char **argv)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *in;
	int status;

	inner = argc > 1 && !strcmp(argv[1], "--inner");
	argc -= inner;
	argv += inner;
	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: fields [--inner] FILE [OUT.pcap]\n");
		return USAGE;
	}
	in = pcap_open_offline(argv[1], error);
	if (!in) {
		fprintf(stderr, "fields: %s\n", error);
		return FAILED;
	}
	if (pcap_datalink(in) == DLT_EN10MB)
		status = parse_all(in, NULL);
	else
		status = parse_other(in, argv[2]);
	pcap_close(in);
	return status;
}
