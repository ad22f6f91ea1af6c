/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Datagrams to a listening socket, packed as a stack still unpacks them, and how many arrive there.
 *
 *   past CLIENT SERVER KIND N     e.g. past a b headers=9 300
 *
 * They leave c0 of the namespace CLIENT for UDP port 9000 of 10.77.0.1 or fd77::1 in SERVER; or, of
 * the kind tun4 or tun6, they are written to the tun device t0 of SERVER, for 10.78.0.1 or fd78::1.
 *
 *   udp4, udp6    as they are
 *   headers=K     behind K destination options of IPv6
 *   priority=K    in K tags of VLAN 0
 *   nolength      behind hop-by-hop options, the length of the payload 0
 *   fragments     two of each, the first ending between two headers
 *   link=K        nothing: t0, which has to be down, is of the link type K (ARPHRD_...) from then
 * on
 *
 * Prints the arrivals. After a few goes a mark, a datagram to port 9001 that nothing limits, and
 * the next few only when that has arrived: what has not arrived by then was dropped.
 */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
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
#include <unistd.h>

#define BATCH	    32
#define PATIENCE_MS 5000
#define DATA	    16

struct ends {
	int out, socket, mark; /* frames go out; the datagrams and the marks arrive */
	int tun;
	uint8_t to[6];
	uint32_t marks;
};

struct frame {
	uint8_t b[1500];
	size_t n;
};

static void put(struct frame *f, uint64_t v, int bytes)
{
	while (bytes--)
		f->b[f->n++] = v >> 8 * bytes;
}

static uint32_t sum_of(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : p[i] << 8;
	return sum;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static void put_address(struct frame *f, int family, const char *text)
{
	if (inet_pton(family, text, f->b + f->n) != 1)
		errx(2, "%s: not an address", text);
	f->n += family == AF_INET ? 4 : 16;
}

/* UDP's header and DATA bytes, of which the first tell marks apart; `sum` is of the addresses. */
static void put_udp(struct frame *f, uint16_t port, uint32_t number, uint32_t sum)
{
	size_t at = f->n, len = 8 + DATA;

	put(f, 4000, 2);
	put(f, port, 2);
	put(f, len, 2);
	put(f, 0, 2);
	put(f, number, 4);
	memset(f->b + f->n, 0, DATA - 4);
	f->n += DATA - 4;
	sum = folded(sum_of(sum + 17 + len, f->b + at, len));
	f->b[at + 6] = sum >> 8;
	f->b[at + 7] = sum;
}

static void put_ip4(struct frame *f, int tun, uint16_t port, uint32_t number)
{
	size_t at = f->n;
	uint16_t sum;

	put(f, 0x4500, 2);
	put(f, 20 + 8 + DATA, 2);
	put(f, 0, 4);
	put(f, 0x4011, 2);
	put(f, 0, 2);
	put_address(f, AF_INET, tun ? "10.78.0.2" : "10.77.0.11");
	put_address(f, AF_INET, tun ? "10.78.0.1" : "10.77.0.1");
	sum = folded(sum_of(0, f->b + at, 20));
	f->b[at + 10] = sum >> 8;
	f->b[at + 11] = sum;
	put_udp(f, port, number, sum_of(0, f->b + at + 12, 8));
}

/* Behind so many headers of 8 bytes: hop-by-hop options first, where there is no length. */
static void put_ip6(struct frame *f, int tun, uint16_t port, uint32_t number, int headers,
		    int no_length)
{
	size_t at = f->n;

	put(f, 0x60000000, 4);
	put(f, no_length ? 0 : 8 * headers + 8 + DATA, 2);
	put(f, no_length ? 0 : headers ? 60 : 17, 1);
	put(f, 64, 1);
	put_address(f, AF_INET6, tun ? "fd78::2" : "fd77::11");
	put_address(f, AF_INET6, tun ? "fd78::1" : "fd77::1");
	for (int i = 0; i < headers; i++)
		put(f, (i + 1 < headers ? 60ull : 17ull) << 56 | 0x010400000000, 8);
	put_udp(f, port, number, sum_of(0, f->b + at + 8, 32));
}

static void begin(struct frame *f, const struct ends *e)
{
	f->n = 0;
	if (e->tun)
		return;
	memcpy(f->b, e->to, 6);
	memcpy(f->b + 6, "\2\0\0\0\xfa\xce", 6);
	f->n = 12;
}

static void type(struct frame *f, const struct ends *e, uint16_t h_proto)
{
	if (!e->tun)
		put(f, h_proto, 2);
}

static void transmit(const struct ends *e, const struct frame *f)
{
	if (write(e->out, f->b, f->n) != (ssize_t)f->n)
		err(3, "a frame of %zu bytes cannot be sent", f->n);
}

/* The datagram's first 8 bytes, a header and no more, in one fragment; the rest in another. */
static void send_fragments(const struct ends *e, struct frame *f, uint32_t number)
{
	struct frame whole = {.n = 0}, *w = &whole;
	size_t ip;

	put_ip6(w, e->tun, 9000, number, 2, 0);
	for (int last = 0; last < 2; last++) {
		size_t from = 40 + 8 * last, n = last ? w->n - from : 8;

		begin(f, e);
		type(f, e, 0x86dd);
		ip = f->n;
		memcpy(f->b + ip, w->b, 40);
		f->n += 40;
		put(f, 60ull << 56 | (uint64_t)(8 * last | !last) << 32 | number, 8);
		memcpy(f->b + f->n, w->b + from, n);
		f->n += n;
		f->b[ip + 4] = 0;
		f->b[ip + 5] = f->n - ip - 40;
		f->b[ip + 6] = 44;
		transmit(e, f);
	}
}

static void send_one(const struct ends *e, const char *kind, uint32_t number)
{
	const char *of = strchr(kind, '=');
	int k = of ? atoi(of + 1) : 0, i;
	int six = strchr(kind, '6') || !strncmp(kind, "headers", 7) || !strcmp(kind, "nolength");
	struct frame f;

	if (!strcmp(kind, "fragments")) {
		send_fragments(e, &f, number);
		return;
	}
	begin(&f, e);
	for (i = 0; i < k && !strncmp(kind, "priority", 8); i++)
		put(&f, 0x81000000, 4);
	type(&f, e, six ? 0x86dd : 0x0800);
	if (!six)
		put_ip4(&f, e->tun, 9000, number);
	else
		put_ip6(&f, e->tun, 9000, number, strcmp(kind, "nolength") ? k : 1,
			!strcmp(kind, "nolength"));
	transmit(e, &f);
}

/* ---- ends ---- */

static void enter(const char *netns)
{
	char path[256];
	int ns;

	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET))
		err(2, "%s", path);
	close(ns);
}

static int listener(uint16_t port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), room = 16 << 20, off = 0;

	if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)))
		err(2, "port %u", port);
	return fd;
}

static int out_of(const char *ifname)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	at.sll_ifindex = if_nametoindex(ifname);
	if (fd < 0 || !at.sll_ifindex || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		err(2, "%s", ifname);
	return fd;
}

static int out_of_tun(const char *ifname)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
		err(2, "%s", ifname);
	return fd;
}

static void set_link(const char *server, const char *type)
{
	enter(server);
	if (ioctl(out_of_tun("t0"), TUNSETLINK, strtoul(type, NULL, 10)))
		err(2, "t0: link type %s", type);
}

static void open_ends(struct ends *e, const char *client, const char *server)
{
	struct ifreq request = {.ifr_name = "s0"};

	enter(server);
	e->socket = listener(9000);
	e->mark = listener(9001);
	if (ioctl(e->socket, SIOCGIFHWADDR, &request))
		err(2, "s0");
	memcpy(e->to, request.ifr_hwaddr.sa_data, 6);
	if (e->tun) {
		e->out = out_of_tun("t0");
		return;
	}
	enter(client);
	e->out = out_of("c0");
}

static void mark_and_wait(struct ends *e)
{
	struct frame f;
	uint32_t number;

	begin(&f, e);
	type(&f, e, 0x0800);
	put_ip4(&f, e->tun, 9001, ++e->marks);
	transmit(e, &f);
	do {
		struct pollfd p = {e->mark, POLLIN, 0};

		if (poll(&p, 1, PATIENCE_MS) != 1)
			errx(3, "the mark behind the datagrams has not arrived");
		if (recv(e->mark, &number, sizeof(number), 0) < 4)
			err(3, "a mark");
	} while (ntohl(number) != e->marks);
}

int main(int argc, char **argv)
{
	struct ends e = {0};
	unsigned long n, arrived = 0;
	uint8_t data[DATA];

	if (argc != 5)
		errx(2, "usage: past CLIENT SERVER KIND N");
	if (!strncmp(argv[3], "link=", 5)) {
		set_link(argv[2], argv[3] + 5);
		return 0;
	}
	e.tun = !strncmp(argv[3], "tun", 3);
	open_ends(&e, argv[1], argv[2]);
	n = strtoul(argv[4], NULL, 10);
	for (unsigned long i = 0; i < n; i++) {
		send_one(&e, argv[3], i);
		if (i % BATCH == BATCH - 1)
			mark_and_wait(&e);
	}
	mark_and_wait(&e);
	while (recv(e.socket, data, sizeof(data), MSG_DONTWAIT) > 0)
		arrived++;
	printf("%lu\n", arrived);
	return 0;
}
