// SPDX-License-Identifier: GPL-2.0-only
/*
 * udp NETNS SADDR DADDR DPORT COUNT GAP_US: sends COUNT datagrams from the network namespace NETNS
 * to this one, GAP_US apart, and prints how many arrived. One process holds both ends, so that
 * nothing is sent before the receiver listens, and nothing is counted twice.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	QUIET_MS = 500,		/* nothing more for so long: nothing more will come */
	RCVBUF_BYTES = 8 << 20, /* a frame that passed XDP is charged a whole page */
};

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};

	if (inet_pton(AF_INET, ip, &sin.sin_addr) != 1)
		errx(2, "%s is no IPv4 address", ip);
	return sin;
}

static int bound_socket(const char *ip, const char *port)
{
	struct sockaddr_in sin = address(ip, port);
	int size_bytes = RCVBUF_BYTES;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0)
		err(1, "socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size_bytes, sizeof(size_bytes)))
		err(1, "SO_RCVBUFFORCE");
	if (bind(fd, (struct sockaddr *)&sin, sizeof(sin)))
		err(1, "bind %s:%s", ip, port);
	return fd;
}

static void enter_namespace(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/var/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		err(1, "%s", path);
	close(fd);
}

static int receive(int fd, int wait_ms)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	char byte;
	int received = 0;

	while (poll(&readable, 1, wait_ms) == 1 && recv(fd, &byte, sizeof(byte), 0) >= 0)
		received++;
	return received;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to;
	int receiver, sender, received = 0, on = 1;

	if (argc != 7)
		errx(2, "usage: udp NETNS SADDR DADDR DPORT COUNT GAP_US");
	to = address(argv[3], argv[4]);
	receiver = bound_socket(argv[3], argv[4]);
	enter_namespace(argv[1]);
	sender = bound_socket(argv[2], "0");
	/* A frame that is redirected has to have its checksum, or none. */
	if (setsockopt(sender, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)))
		err(1, "SO_NO_CHECK");
	for (int i = atoi(argv[5]); i > 0; i--) {
		if (sendto(sender, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) != 1)
			err(1, "sendto %s:%s", argv[3], argv[4]);
		if (atoi(argv[6]) > 0)
			usleep(atoi(argv[6]));
		received += receive(receiver, 0);
	}
	printf("%d\n", received + receive(receiver, QUIET_MS));
	return 0;
}
