/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Real UDP packets from many sources at given rates, and the receiver that holds them to a limit.
 *
 *   traffic send DESTINATION PORT SECONDS SOURCE=PPS...
 *   traffic receive PORT SECONDS WINDOW_MS [--progress]
 *
 * `send` binds a socket to each source address, which has to be local. `receive` listens on both
 * families and prints, for each source, "SOURCE TOTAL WORST": packets, and the most of them in any
 * window of that length by the kernel's receive times; with --progress also each second's. SIGTERM
 * ends either early, but not without its result.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOURCES 256
#define SECOND	1000000000ull

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = signal;
}

static int die(const char *what)
{
	fprintf(stderr, "traffic: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static socklen_t address(const char *text, int port, struct sockaddr_storage *out)
{
	struct sockaddr_in *a4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &a4->sin_addr) == 1) {
		a4->sin_family = AF_INET;
		a4->sin_port = htons(port);
		return sizeof(*a4);
	}
	if (inet_pton(AF_INET6, text, &a6->sin6_addr) != 1)
		die(text);
	a6->sin6_family = AF_INET6;
	a6->sin6_port = htons(port);
	return sizeof(*a6);
}

struct sender {
	int fd;
	uint64_t gap_ns, next_ns;
};

static int open_sender(struct sender *s, char *spec, const char *to4, const char *to6, int port)
{
	struct sockaddr_storage from, to;
	char *equals = strchr(spec, '=');
	socklen_t len;

	if (!equals || atof(equals + 1) <= 0)
		return -1;
	*equals = 0;
	len = address(spec, 0, &from);
	s->fd = socket(from.ss_family, SOCK_DGRAM, 0);
	if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&from, len))
		die(spec);
	len = address(from.ss_family == AF_INET ? to4 : to6, port, &to);
	if (connect(s->fd, (struct sockaddr *)&to, len))
		die("connect");
	s->gap_ns = SECOND / atof(equals + 1);
	return 0;
}

/* DESTINATION is "IPV4,IPV6": each source sends to its own family's. */
static int send_all(char **argv, int argc)
{
	static struct sender s[SOURCES];
	char *to4 = strdup(argv[0]), *to6 = strchr(to4, ',');
	uint64_t start = now_ns(CLOCK_MONOTONIC), end = start + atof(argv[2]) * SECOND;
	uint64_t sent = 0;
	int n = argc - 3;

	if (to6)
		*to6++ = 0;
	for (int i = 0; i < n && i < SOURCES; i++) {
		if (open_sender(&s[i], argv[3 + i], to4, to6, atoi(argv[1])))
			return 2;
		s[i].next_ns = start + s[i].gap_ns * i / n;
	}
	for (;;) {
		uint64_t first = UINT64_MAX, now = now_ns(CLOCK_MONOTONIC);

		if (now >= end || stopped)
			break;
		for (int i = 0; i < n; i++) {
			for (; s[i].next_ns <= now; s[i].next_ns += s[i].gap_ns)
				sent += send(s[i].fd, "pacer", 5, 0) == 5;
			first = s[i].next_ns < first ? s[i].next_ns : first;
		}
		struct timespec until = {first / SECOND, first % SECOND};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	printf("%llu\n", (unsigned long long)sent);
	return 0;
}

struct source {
	char name[INET6_ADDRSTRLEN];
	uint64_t *at_ns;
	size_t n, room, shown;
};

static struct source sources[SOURCES];
static size_t n_sources;

static struct source *source_of(const struct sockaddr_in6 *from)
{
	char name[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED(&from->sin6_addr))
		inet_ntop(AF_INET, &from->sin6_addr.s6_addr[12], name, sizeof(name));
	else
		inet_ntop(AF_INET6, &from->sin6_addr, name, sizeof(name));
	for (size_t i = 0; i < n_sources; i++)
		if (!strcmp(sources[i].name, name))
			return &sources[i];
	if (n_sources == SOURCES)
		die("too many sources");
	memcpy(sources[n_sources].name, name, sizeof(name));
	return &sources[n_sources++];
}

static void receive_one(int fd)
{
	struct sockaddr_in6 from;
	char data[64], control[128];
	struct iovec part = {data, sizeof(data)};
	struct msghdr m = {.msg_name = &from,
			   .msg_namelen = sizeof(from),
			   .msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct source *s;
	uint64_t at = 0;

	if (recvmsg(fd, &m, 0) < 0)
		die("recvmsg");
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
			struct timespec ts;

			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			at = ts.tv_sec * SECOND + ts.tv_nsec;
		}
	s = source_of(&from);
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->at_ns = realloc(s->at_ns, s->room * sizeof(*s->at_ns));
		if (!s->at_ns)
			die("realloc");
	}
	s->at_ns[s->n++] = at;
}

static size_t worst(const struct source *s, uint64_t window_ns)
{
	size_t best = 0;

	for (size_t first = 0, last = 0; last < s->n; last++) {
		while (s->at_ns[last] - s->at_ns[first] > window_ns)
			first++;
		if (last - first + 1 > best)
			best = last - first + 1;
	}
	return best;
}

static void show_progress(int second)
{
	for (size_t i = 0; i < n_sources; i++) {
		printf("  second %-3d %-28s %6zu received\n", second, sources[i].name,
		       sources[i].n - sources[i].shown);
		sources[i].shown = sources[i].n;
	}
	fflush(stdout);
}

static int receive_all(char **argv, int argc)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(argv[0]))};
	uint64_t end = now_ns(CLOCK_MONOTONIC) + atof(argv[1]) * SECOND;
	uint64_t window_ns = atof(argv[2]) * 1000000, tick = now_ns(CLOCK_MONOTONIC) + SECOND;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), on = 1, room = 64 << 20, second = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&any, sizeof(any)))
		die("receive");
	printf("ready\n");
	fflush(stdout);
	for (uint64_t now; !stopped && (now = now_ns(CLOCK_MONOTONIC)) < end;) {
		struct pollfd p = {fd, POLLIN, 0};
		uint64_t wait = end < tick ? end - now : tick > now ? tick - now : 0;

		if (argc > 3 && now >= tick) {
			show_progress(second++);
			tick += SECOND;
		} else if (poll(&p, 1, wait / 1000000 + 1) > 0) {
			receive_one(fd);
		} else if (now >= tick) {
			tick += SECOND;
		}
	}
	for (size_t i = 0; i < n_sources; i++)
		printf("%s %zu %zu\n", sources[i].name, sources[i].n,
		       worst(&sources[i], window_ns));
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction on_term = {.sa_handler = stop};

	sigaction(SIGTERM, &on_term, NULL);
	if (argc >= 6 && !strcmp(argv[1], "send"))
		return send_all(argv + 2, argc - 2);
	if (argc >= 5 && !strcmp(argv[1], "receive"))
		return receive_all(argv + 2, argc - 2);
	fprintf(stderr, "usage: traffic send|receive ...\n");
	return 2;
}
