/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exact numbers of frames through a veth pair, and how many of each arrive behind its XDP program.
 *
 *   shots CLIENT SERVER SHOT...     e.g. shots a b n=100,from=10.77.0.11 n=5,from=fd77::11,dport=53
 *
 * Frames leave c0 of the namespace CLIENT and are counted at s0 of SERVER, where the stack sees
 * them. A shot is a list of FIELD=VALUE:
 *
 *   n         frames (1)
 *   from, to  addresses (10.77.0.11 to 10.77.0.1, or fd77::1 for an IPv6 source)
 *   proto     IP protocol (17); sport (4000), dport (9000)
 *   vlan      a tag around it; twice: outer, then inner
 *   len       of the whole frame, in bytes (as short as it can be)
 *   gap_us    time between two frames; wait_ms: time before the first
 *   raw       the frame from its EtherType on, in hex, in place of all this
 *
 * SHOTS_PAIR=1 takes c1 and s1 in place of c0 and s0.
 *
 * Prints the arrivals of each shot, in one line. Nothing is waited for but what is sent: after a
 * few frames goes a mark (neither IPv4 nor IPv6, so it passes), and the next few only when it has
 * arrived. So no queue overflows, and a frame that has not arrived by then was dropped.
 */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX   1514
#define MARK_TYPE   0x88b5 /* for local experiments */
#define BATCH	    32
#define PATIENCE_MS 5000
#define SHOTS_MAX   256

static const uint8_t mac_to[6] = {2, 0, 0, 0, 0, 1};	     /* nobody's: nothing answers */
static const uint8_t mac_from[6] = {2, 0, 0, 0, 0xfa, 0xce}; /* tells our frames */

struct shot {
	const char *from, *to, *raw;
	unsigned long n, proto, sport, dport, len, gap_us, wait_ms;
	unsigned long vlan[2], n_vlan;
	unsigned long arrived;
};

struct ends {
	int client, server; /* packet sockets */
	uint32_t mark;
};

/* A protocol of 0 receives nothing. */
static int socket_in(const char *netns, const char *ifname, int protocol)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(protocol)};
	int room = 16 << 20, ns, fd;
	char path[256];

	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET))
		err(2, "%s", path);
	close(ns);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	at.sll_ifindex = if_nametoindex(ifname);
	if (fd < 0 || !at.sll_ifindex || bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		err(2, "%s of %s", ifname, netns);
	return fd;
}

static uint16_t sum_of(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static uint8_t *put16(uint8_t *p, unsigned int value)
{
	p[0] = value >> 8;
	p[1] = value;
	return p + 2;
}

static size_t from_hex(const char *hex, uint8_t *out, size_t room)
{
	unsigned int byte;
	size_t n = 0;

	for (; *hex; hex += 2) {
		if (n == room || sscanf(hex, "%2x", &byte) != 1)
			errx(2, "raw: not hex, or too long");
		out[n++] = byte;
	}
	return n;
}

/* UDP's header, or the ports alone where the protocol is another. */
static void put_ports(const struct shot *s, uint8_t *p, size_t len)
{
	memset(p, 0, len);
	put16(put16(p, s->sport), s->dport);
	if (s->proto == 17)
		put16(p + 4, len);
	if (s->proto == 6)
		p[12] = 0x50;
}

static size_t put_ip(const struct shot *s, uint8_t *p, size_t room)
{
	size_t ports = s->proto == 6 ? 20 : 8, header = strchr(s->from, ':') ? 40 : 20;
	const char *to = s->to ? s->to : header == 40 ? "fd77::1" : "10.77.0.1";
	size_t payload = room > header + ports ? room - header : ports;
	int family = header == 40 ? AF_INET6 : AF_INET;

	memset(p, 0, header);
	if (family == AF_INET) {
		p[0] = 0x45;
		put16(p + 2, header + payload);
		p[8] = 64;
		p[9] = s->proto;
	} else {
		p[0] = 0x60;
		put16(p + 4, payload);
		p[6] = s->proto;
		p[7] = 64;
	}
	if (inet_pton(family, s->from, p + (family == AF_INET ? 12 : 8)) != 1 ||
	    inet_pton(family, to, p + (family == AF_INET ? 16 : 24)) != 1)
		errx(2, "from=%s to=%s: not addresses of one family", s->from, to);
	if (family == AF_INET)
		put16(p + 10, sum_of(0, p, header));
	put_ports(s, p + header, payload);
	return header + payload;
}

static size_t build(const struct shot *s, uint8_t *frame)
{
	uint8_t *p = frame;
	size_t used;

	memcpy(p, mac_to, 6);
	memcpy(p + 6, mac_from, 6);
	p += 12;
	if (s->raw)
		return 12 + from_hex(s->raw, p, FRAME_MAX - 12);
	for (size_t i = 0; i < s->n_vlan; i++)
		p = put16(put16(p, s->n_vlan == 2 && !i ? 0x88a8 : 0x8100), s->vlan[i]);
	p = put16(p, strchr(s->from, ':') ? 0x86dd : 0x0800);
	used = p - frame;
	return used + put_ip(s, p, s->len > used ? s->len - used : 0);
}

static void parse(struct shot *s, char *text)
{
	static const char *const names[] = {"n",   "proto",  "sport",	"dport",
					    "len", "gap_us", "wait_ms", "vlan"};
	char *rest = text, *item;

	*s = (struct shot){.from = "10.77.0.11", .n = 1, .proto = 17, .sport = 4000, .dport = 9000};
	while ((item = strsep(&rest, ","))) {
		unsigned long *into[] = {&s->n,	  &s->proto,  &s->sport,   &s->dport,
					 &s->len, &s->gap_us, &s->wait_ms, &s->vlan[s->n_vlan & 1]};
		char *value = strchr(item, '=');
		size_t i = 0;

		if (!value)
			errx(2, "%s: not FIELD=VALUE", item);
		*value++ = 0;
		while (i < 8 && strcmp(item, names[i]))
			i++;
		if (i < 8)
			*into[i] = strtoul(value, NULL, 10);
		else if (!strcmp(item, "from"))
			s->from = value;
		else if (!strcmp(item, "to"))
			s->to = value;
		else if (!strcmp(item, "raw"))
			s->raw = value;
		else
			errx(2, "%s: there is no such field", item);
		s->n_vlan += i == 7;
	}
	if (s->len > FRAME_MAX || s->n_vlan > 2)
		errx(2, "too long, or too many tags");
}

/* Count our frames at the server until the last mark. */
static unsigned long drain(struct ends *e)
{
	unsigned long arrived = 0;
	uint8_t frame[FRAME_MAX];

	for (;;) {
		struct pollfd p = {e->server, POLLIN, 0};
		struct sockaddr_ll at;
		socklen_t len = sizeof(at);
		uint32_t mark;
		ssize_t n;

		if (poll(&p, 1, PATIENCE_MS) != 1)
			errx(3, "the mark behind the frames has not arrived");
		n = recvfrom(e->server, frame, sizeof(frame), 0, (struct sockaddr *)&at, &len);
		if (n < 12 || at.sll_pkttype == PACKET_OUTGOING || memcmp(frame + 6, mac_from, 6))
			continue;
		if (n < 18 || frame[12] != MARK_TYPE >> 8 || frame[13] != (MARK_TYPE & 0xff)) {
			arrived++;
			continue;
		}
		memcpy(&mark, frame + 14, sizeof(mark));
		if (mark == e->mark)
			return arrived;
	}
}

static void transmit(int fd, const uint8_t *frame, size_t len)
{
	if (send(fd, frame, len, 0) != (ssize_t)len)
		err(3, "a frame of %zu bytes cannot be sent", len);
}

static unsigned long mark_and_drain(struct ends *e)
{
	uint8_t frame[60] = {0};

	memcpy(frame, mac_to, 6);
	memcpy(frame + 6, mac_from, 6);
	put16(frame + 12, MARK_TYPE);
	e->mark++;
	memcpy(frame + 14, &e->mark, sizeof(e->mark));
	transmit(e->client, frame, sizeof(frame));
	return drain(e);
}

static void pause_us(unsigned long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	if (us)
		nanosleep(&t, NULL);
}

static void shoot(struct ends *e, struct shot *s)
{
	uint8_t frame[FRAME_MAX];
	size_t len = build(s, frame);

	pause_us(s->wait_ms * 1000);
	for (unsigned long i = 0; i < s->n; i++) {
		transmit(e->client, frame, len);
		if (i % BATCH == BATCH - 1)
			s->arrived += mark_and_drain(e);
		if (i + 1 < s->n)
			pause_us(s->gap_us);
	}
	s->arrived += mark_and_drain(e);
}

int main(int argc, char **argv)
{
	static struct shot shots[SHOTS_MAX];
	const char *pair = getenv("SHOTS_PAIR");
	struct ends e = {.mark = getpid()};
	char client[4], server[4];
	int n = argc - 3;

	if (n < 1 || n > SHOTS_MAX)
		errx(2, "usage: shots CLIENT SERVER SHOT...");
	for (int i = 0; i < n; i++)
		parse(&shots[i], argv[3 + i]);
	snprintf(client, sizeof(client), "c%.1s", pair ? pair : "0");
	snprintf(server, sizeof(server), "s%.1s", pair ? pair : "0");
	e.client = socket_in(argv[1], client, 0);
	e.server = socket_in(argv[2], server, ETH_P_ALL);
	for (int i = 0; i < n; i++)
		shoot(&e, &shots[i]);
	for (int i = 0; i < n; i++)
		printf("%lu%s", shots[i].arrived, i + 1 < n ? " " : "\n");
	return 0;
}
