/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A flood of spoofed sources: UDP frames, each from another address, in batches a millisecond
 * apart.
 *
 *   flood IFACE PPS SECONDS [SEED]
 *
 * Frames go to 10.77.0.1, port 9000, from addresses of 10.128.0.0/9 that do not come again before
 * all of them have come: they follow a full-period generator. Prints how many were sent.
 */
#include <arpa/inet.h>
#include <err.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define BATCH_NS 1000000ull
#define SECOND	 1000000000ull
#define SOURCES	 (1u << 23) /* 10.128.0.0/9 */

struct frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	uint8_t data[22];
} __attribute__((packed));

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static int open_on(const char *ifname)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(ifname)};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0 || !to.sll_ifindex || bind(fd, (struct sockaddr *)&to, sizeof(to)))
		err(1, "%s", ifname);
	return fd;
}

static uint16_t checksum(const struct iphdr *ip)
{
	const uint16_t *word = (const uint16_t *)ip;
	uint32_t sum = 0;

	for (size_t i = 0; i < sizeof(*ip) / 2; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~((sum & 0xffff) + (sum >> 16));
}

static struct frame first_frame(void)
{
	struct frame f = {
	    .eth = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0xf1, 0x0d}, htons(ETH_P_IP)},
	    .ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP},
	    .udp = {htons(4000), htons(9000), htons(sizeof(f.udp) + sizeof(f.data)), 0}};

	f.ip.tot_len = htons(sizeof(f) - sizeof(f.eth));
	f.ip.daddr = inet_addr("10.77.0.1");
	return f;
}

/* Full period modulo a power of two: the multiplier is 1 modulo 4, the increment odd. */
static uint32_t next_source(uint32_t *state)
{
	*state = (*state * 1664525u + 1013904223u) & (SOURCES - 1);
	return htonl(0x0a800000u | *state);
}

static int send_one(int fd, struct frame *f, uint32_t *state)
{
	struct iphdr ip = f->ip; /* aligned */

	ip.saddr = next_source(state);
	ip.check = 0;
	ip.check = checksum(&ip);
	f->ip = ip;
	return send(fd, f, sizeof(*f), 0) == sizeof(*f);
}

int main(int argc, char **argv)
{
	uint64_t start = now_ns(), now = start, end, due, tried = 0, sent = 0;
	struct frame f = first_frame();
	uint32_t state;
	double pps;
	int fd;

	if (argc < 4)
		errx(2, "usage: flood IFACE PPS SECONDS [SEED]");
	fd = open_on(argv[1]);
	pps = atof(argv[2]);
	end = start + (uint64_t)(atof(argv[3]) * SECOND);
	state = argc > 4 ? strtoul(argv[4], NULL, 0) & (SOURCES - 1) : 1;
	while (now < end) { /* all that is due is sent, however late this is woken */
		uint64_t next = now + BATCH_NS;
		struct timespec until = {next / SECOND, next % SECOND};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		now = now_ns();
		due = (uint64_t)(pps * (double)((now < end ? now : end) - start) / SECOND);
		for (; tried < due; tried++)
			sent += send_one(fd, &f, &state);
	}
	printf("%llu\n", (unsigned long long)sent);
	return 0;
}
