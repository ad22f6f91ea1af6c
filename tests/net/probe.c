/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames at exact times from any source and any CPU, and the receiver that holds them to limits.
 *
 *   probe send IFACE MAC SECONDS STREAM...
 *   probe receive RULE...
 *
 * A stream is a list of FIELD=VALUE, of UDP frames to 10.77.0.1 or fd77::1:
 *
 *   from     its first source, IPv4 or IPv6; sources: so many, one after the other (1)
 *   drawn=1  the source is drawn instead of taken in turn
 *   port     the destination's (9000)
 *   pps      frames a second; burst: so many at once, back to back (1)
 *   at_us    its first burst; bursts: so many and no more
 *   cpu      the CPU that sends it, which then also judges it where the device has a queue a CPU
 * (0)
 *
 * `send` prints what was sent of each stream, in one line.
 *
 * A rule is PORT:LIMIT:WINDOW_US[:all]: no source, or with `all` no port, may get more than LIMIT
 * frames through in any window of that length. Each frame carries the time at which it was sent,
 * and the kernel says when it came out behind the limiter. It was judged in between. So a window
 * counts frames of which the first was *sent*, and the last *received*, no further apart than its
 * length: a busy machine may hide an excess, and never makes one.
 *
 * `receive` prints "ready", an "over ..." for each of the first excesses, and answers the lines of
 * its stdin, of which each answer means that it is in force:
 *
 *   limit PORT N     another limit for what is sent from now on
 *   shut ADDRESS     nothing that is sent from now on may arrive
 *   free ADDRESS     no limit holds for it
 *   bound ADDRESS    the limits hold for what is sent from now on
 *   count            how many frames arrived, how many of them the socket lost
 *
 * At the end of its stdin it prints what it found as JSON.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND	   1000000000ull
#define STREAMS	   64
#define RULES	   16
#define KEYS	   (1u << 20) /* sources times ports, at most half of them */
#define SPECIALS   16
#define OVERS_TOLD 20
#define SPIN_NS	   100000 /* slept until so long before a frame's time, then waited */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

/* --- sending
 * -------------------------------------------------------------------------------------- */

struct load {
	uint64_t sent_ns;
	uint64_t filler;
} __attribute__((packed));

struct stream {
	uint8_t from[16];
	bool v6, drawn;
	unsigned long sources, port, burst, at_us, bursts, cpu;
	double pps;
	uint64_t next_ns, done, sent;
	uint64_t drawn_state;
};

static struct stream streams[STREAMS];
static int n_streams;
static unsigned int ifindex;
static uint8_t mac_to[6];
static uint64_t begin_ns, end_ns; /* CLOCK_REALTIME, as the kernel stamps what it receives */

static void parse_address(struct stream *s, const char *text)
{
	s->v6 = strchr(text, ':');
	if (inet_pton(s->v6 ? AF_INET6 : AF_INET, text, s->from + (s->v6 ? 0 : 12)) != 1)
		errx(2, "from=%s: not an address", text);
}

static void parse_stream(struct stream *s, char *text)
{
	static const char *const names[] = {"sources", "port", "burst", "at_us", "bursts", "cpu"};
	unsigned long *const into[] = {&s->sources, &s->port,	&s->burst,
				       &s->at_us,   &s->bursts, &s->cpu};
	char *rest = text, *item;

	*s = (struct stream){
	    .sources = 1, .port = 9000, .burst = 1, .pps = 1, .drawn_state = 88172645463325252ull};
	while ((item = strsep(&rest, ","))) {
		char *value = strchr(item, '=');
		size_t i = 0;

		if (!value)
			errx(2, "%s: not FIELD=VALUE", item);
		*value++ = 0;
		while (i < 6 && strcmp(item, names[i]))
			i++;
		if (i < 6)
			*into[i] = strtoul(value, NULL, 10);
		else if (!strcmp(item, "from"))
			parse_address(s, value);
		else if (!strcmp(item, "pps"))
			s->pps = atof(value);
		else if (!strcmp(item, "drawn"))
			s->drawn = atoi(value);
		else
			errx(2, "%s: unknown", item);
	}
	if (!s->sources || !s->burst || s->pps <= 0)
		errx(2, "sources, burst and pps have to be more than 0");
}

static uint32_t add16(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += p[i] << 8 | p[i + 1];
	return sum;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum);
}

/* The stream's next source, in the last four bytes of its address. */
static void next_source(struct stream *s, uint8_t address[16])
{
	uint64_t which = s->sent % s->sources;
	uint32_t low;

	if (s->drawn) {
		s->drawn_state ^= s->drawn_state << 13;
		s->drawn_state ^= s->drawn_state >> 7;
		s->drawn_state ^= s->drawn_state << 17;
		which = s->drawn_state % s->sources;
	}
	memcpy(address, s->from, 16);
	memcpy(&low, address + 12, 4);
	low = htonl(ntohl(low) + which);
	memcpy(address + 12, &low, 4);
}

static size_t build(const struct stream *s, const uint8_t from[16], uint8_t *out)
{
	struct ethhdr eth = {.h_source = {2, 0, 0, 0, 0xfa, 0xce},
			     .h_proto = htons(s->v6 ? ETH_P_IPV6 : ETH_P_IP)};
	struct udphdr udp = {htons(4000), htons(s->port), htons(sizeof(udp) + sizeof(struct load)),
			     0};
	struct load load = {.sent_ns = now_ns(CLOCK_REALTIME)};
	struct iphdr v4 = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP};
	struct ipv6hdr v6 = {
	    .version = 6, .hop_limit = 64, .nexthdr = IPPROTO_UDP, .payload_len = udp.len};
	size_t at = sizeof(eth);

	memcpy(eth.h_dest, mac_to, 6);
	memcpy(out, &eth, sizeof(eth));
	if (s->v6) {
		memcpy(&v6.saddr, from, 16);
		inet_pton(AF_INET6, "fd77::1", &v6.daddr);
		memcpy(out + at, &v6, sizeof(v6));
		at += sizeof(v6);
		udp.check = folded(add16(
		    add16(add16(IPPROTO_UDP + ntohs(udp.len), &v6.saddr, 32), &udp, sizeof(udp)),
		    &load, sizeof(load)));
		if (!udp.check)
			udp.check =
			    0xffff; /* 0 says that there is none, which IPv6 does not take */
	} else {
		memcpy(&v4.saddr, from + 12, 4);
		v4.daddr = inet_addr("10.77.0.1");
		v4.tot_len = htons(sizeof(v4) + ntohs(udp.len));
		v4.check = folded(add16(0, &v4, sizeof(v4)));
		memcpy(out + at, &v4, sizeof(v4));
		at += sizeof(v4);
	}
	memcpy(out + at, &udp, sizeof(udp));
	memcpy(out + at + sizeof(udp), &load, sizeof(load));
	return at + sizeof(udp) + sizeof(load);
}

static void send_burst(int fd, struct stream *s)
{
	uint8_t frame[128], from[16];

	for (unsigned long i = 0; i < s->burst; i++) {
		next_source(s, from);
		size_t len = build(s, from, frame);

		if (send(fd, frame, len, 0) == (ssize_t)len)
			s->sent++;
		else if (errno != ENOBUFS)
			err(1, "send");
	}
	s->done++;
	s->next_ns = s->bursts && s->done >= s->bursts
			 ? UINT64_MAX
			 : begin_ns + s->at_us * 1000 +
			       (uint64_t)((double)s->done * s->burst / s->pps * SECOND);
}

static void wait_until(uint64_t when_ns)
{
	uint64_t now = now_ns(CLOCK_REALTIME);

	if (when_ns > now + SPIN_NS) {
		uint64_t left = when_ns - now - SPIN_NS;
		struct timespec ts = {left / SECOND, left % SECOND};

		nanosleep(&ts, NULL);
	}
	while (now_ns(CLOCK_REALTIME) < when_ns)
		;
}

/* PACKET_QDISC_BYPASS takes the queue of the CPU, so that each CPU judges what it sends. */
static int open_raw(void)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_ifindex = ifindex};
	int fd = socket(AF_PACKET, SOCK_RAW, 0), on = 1;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)))
		err(1, "a packet socket");
	return fd;
}

static void *send_of_cpu(void *arg)
{
	unsigned long cpu = (uintptr_t)arg;
	int fd = open_raw();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %lu", cpu);
	for (;;) {
		struct stream *first = NULL;

		for (int i = 0; i < n_streams; i++)
			if (streams[i].cpu == cpu &&
			    (!first || streams[i].next_ns < first->next_ns))
				first = &streams[i];
		if (!first || first->next_ns >= end_ns)
			break;
		wait_until(first->next_ns);
		send_burst(fd, first);
	}
	close(fd);
	return NULL;
}

static int send_all(int argc, char **argv)
{
	pthread_t threads[STREAMS];
	unsigned int b[6];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	ifindex = if_nametoindex(argv[0]);
	if (!ifindex)
		err(1, "%s", argv[0]);
	if (sscanf(argv[1], "%x:%x:%x:%x:%x:%x", b, b + 1, b + 2, b + 3, b + 4, b + 5) != 6)
		errx(2, "%s: not a MAC address", argv[1]);
	for (int i = 0; i < 6; i++)
		mac_to[i] = b[i];
	for (n_streams = 0; n_streams < argc - 3 && n_streams < STREAMS; n_streams++)
		parse_stream(&streams[n_streams], argv[3 + n_streams]);
	begin_ns = now_ns(CLOCK_REALTIME) + SECOND / 50;
	end_ns = begin_ns + (uint64_t)(atof(argv[2]) * SECOND);
	for (int i = 0; i < n_streams; i++) {
		streams[i].next_ns = begin_ns + streams[i].at_us * 1000;
		streams[i].drawn_state += i;
		streams[i].cpu %= cpus;
	}
	if (cpus > STREAMS)
		cpus = STREAMS;
	for (long i = 0; i < cpus; i++)
		if (pthread_create(&threads[i], NULL, send_of_cpu, (void *)(uintptr_t)i))
			errx(1, "no thread");
	for (long i = 0; i < cpus; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < n_streams; i++)
		printf("%llu%c", (unsigned long long)streams[i].sent,
		       i + 1 < n_streams ? ' ' : '\n');
	return 0;
}

/* --- receiving
 * ------------------------------------------------------------------------------------ */

struct rule {
	unsigned long port, limit;
	uint64_t window_ns, since_ns, arrived, overs;
	bool all;
	size_t worst, sources;
	uint32_t epoch;
};

struct one {
	uint64_t sent_ns, came_ns;
};

/* What a key was let through in its last window, oldest first. */
struct key {
	uint8_t address[16];
	struct rule *rule;
	struct one *ring;
	uint32_t first, n, room, epoch;
};

struct special {
	uint8_t address[16];
	char mode; /* s(hut), f(ree), b(ound) */
	uint64_t since_ns;
};

static struct rule rules[RULES];
static struct key *keys;
static struct special specials[SPECIALS];
static size_t n_rules, n_keys, n_specials, n_overs;
static uint64_t arrived, lost, shut_arrived, strangers;

static struct key *key_of(struct rule *rule, const uint8_t address[16])
{
	static const uint8_t nobody[16];
	const uint8_t *a = rule->all ? nobody : address;
	uint64_t h = (uint64_t)(rule - rules + 1) * 0x9e3779b97f4a7c15ull;

	for (int i = 0; i < 16; i++)
		h = (h ^ a[i]) * 0x100000001b3ull;
	for (h ^= h >> 32;; h++) {
		struct key *k = &keys[h & (KEYS - 1)];

		if (k->rule == rule && !memcmp(k->address, a, 16))
			return k;
		if (k->rule)
			continue;
		if (++n_keys > KEYS / 2)
			errx(1, "too many sources");
		memcpy(k->address, a, 16);
		k->rule = rule;
		k->epoch = rule->epoch;
		rule->sources++;
		return k;
	}
}

static struct one *at(struct key *k, uint32_t i)
{
	return &k->ring[(k->first + i) & (k->room - 1)];
}

static void push(struct key *k, struct one new)
{
	if (k->n == k->room) {
		uint32_t room = k->room ? 2 * k->room : 4;
		struct one *ring = malloc(room * sizeof(*ring));

		if (!ring)
			err(1, "malloc");
		for (uint32_t i = 0; i < k->n; i++)
			ring[i] = *at(k, i);
		free(k->ring);
		k->ring = ring;
		k->room = room;
		k->first = 0;
	}
	*at(k, k->n++) = new;
	/* Of two CPUs' frames the later may have come first: none counts as sent after its
	 * successor. */
	for (uint32_t i = k->n - 1; i && at(k, i - 1)->sent_ns > new.sent_ns; i--)
		at(k, i - 1)->sent_ns = new.sent_ns;
}

static struct special *special_of(const uint8_t address[16])
{
	for (size_t i = 0; i < n_specials; i++)
		if (!memcmp(specials[i].address, address, 16))
			return &specials[i];
	return NULL;
}

static void tell_over(const struct rule *r, const uint8_t address[16], size_t n)
{
	char name[INET6_ADDRSTRLEN];

	if (n_overs++ >= OVERS_TOLD)
		return;
	inet_ntop(AF_INET6, address, name, sizeof(name));
	if (n)
		printf("over port %lu: %zu of %s, limit %lu\n", r->port, n, name, r->limit);
	else
		printf("over port %lu: one of %s, which is shut\n", r->port, name);
	fflush(stdout);
}

static void judge(struct rule *r, const uint8_t address[16], struct one new)
{
	struct special *s = special_of(address);
	uint64_t since_ns = r->since_ns;
	struct key *k;

	r->arrived++;
	if (s && s->mode == 's' && new.sent_ns >= s->since_ns) {
		shut_arrived++;
		tell_over(r, address, 0);
	}
	if (s && s->mode == 'f')
		return;
	if (s && s->mode == 'b' && s->since_ns > since_ns)
		since_ns = s->since_ns;
	if (new.sent_ns < since_ns)
		return;
	k = key_of(r, address);
	if (k->epoch != r->epoch) {
		k->epoch = r->epoch;
		k->n = 0;
	}
	push(k, new);
	while (k->n &&
	       (new.came_ns - at(k, 0)->sent_ns > r->window_ns || at(k, 0)->sent_ns < since_ns)) {
		k->first++;
		k->n--;
	}
	if (k->n > r->worst)
		r->worst = k->n;
	if (r->limit && k->n > r->limit) {
		r->overs++;
		tell_over(r, address, k->n);
	}
}

static struct rule *rule_of(unsigned long port)
{
	for (size_t i = 0; i < n_rules; i++)
		if (rules[i].port == port)
			return &rules[i];
	return NULL;
}

static int open_port(unsigned long port)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), on = 1, room = 256 << 20;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&any, sizeof(any)))
		err(1, "port %lu", port);
	return fd;
}

static void receive_port(int fd, struct rule *rule, uint32_t *lost_here)
{
	/* Not for ever, since the others and stdin wait. */
	for (int i = 0; i < 4096; i++) {
		struct sockaddr_in6 from;
		struct load load;
		char control[256];
		struct iovec part = {&load, sizeof(load)};
		struct msghdr m = {.msg_name = &from,
				   .msg_namelen = sizeof(from),
				   .msg_iov = &part,
				   .msg_iovlen = 1,
				   .msg_control = control,
				   .msg_controllen = sizeof(control)};
		struct one new = {0};

		if (recvmsg(fd, &m, MSG_DONTWAIT) != sizeof(load))
			return;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			struct timespec ts;

			if (c->cmsg_level != SOL_SOCKET)
				continue;
			if (c->cmsg_type == SO_TIMESTAMPNS) {
				memcpy(&ts, CMSG_DATA(c), sizeof(ts));
				new.came_ns = ts.tv_sec *SECOND + ts.tv_nsec;
			} else if (c->cmsg_type == SO_RXQ_OVFL) {
				memcpy(lost_here, CMSG_DATA(c), sizeof(*lost_here));
			}
		}
		new.sent_ns = load.sent_ns;
		arrived++;
		if (new.came_ns < new.sent_ns)
			strangers++; /* a clock was set meanwhile */
		else
			judge(rule, from.sin6_addr.s6_addr, new);
	}
}

static void set_special(char mode, const char *text)
{
	uint8_t address[16] = {[10] = 0xff, 0xff};
	struct special *s;

	if (inet_pton(AF_INET6, text, address) != 1 && inet_pton(AF_INET, text, address + 12) != 1)
		errx(2, "%s: not an address", text);
	s = special_of(address);
	if (!s) {
		if (n_specials == SPECIALS)
			errx(2, "too many addresses");
		s = &specials[n_specials++];
		memcpy(s->address, address, 16);
	}
	s->mode = mode;
	s->since_ns = now_ns(CLOCK_REALTIME);
}

static void obey(char *line)
{
	char word[16] = "", what[64] = "";
	unsigned long n = 0;
	struct rule *r;

	sscanf(line, "%15s %63s %lu", word, what, &n);
	if (!strcmp(word, "count")) {
		printf("%llu %llu\n", (unsigned long long)arrived, (unsigned long long)lost);
	} else if (!strcmp(word, "limit") && (r = rule_of(strtoul(what, NULL, 10)))) {
		r->limit = n;
		r->epoch++;
		r->since_ns = now_ns(CLOCK_REALTIME);
		puts("ok");
	} else if (!strcmp(word, "shut") || !strcmp(word, "free") || !strcmp(word, "bound")) {
		set_special(word[0], what);
		puts("ok");
	} else {
		errx(2, "%s: unknown", line);
	}
	fflush(stdout);
}

static void report(int64_t clock_moved_ns)
{
	printf("{\"arrived\": %llu, \"lost\": %llu, \"shut_arrived\": %llu, \"before_sent\": %llu, "
	       "\"clock_moved_us\": %lld, \"rules\": [",
	       (unsigned long long)arrived, (unsigned long long)lost,
	       (unsigned long long)shut_arrived, (unsigned long long)strangers,
	       (long long)(clock_moved_ns / 1000));
	for (size_t i = 0; i < n_rules; i++)
		printf("%s{\"port\": %lu, \"limit\": %lu, \"window_us\": %llu, \"arrived\": %llu, "
		       "\"worst\": %zu, "
		       "\"over\": %llu, \"sources\": %zu}",
		       i ? ", " : "", rules[i].port, rules[i].limit,
		       (unsigned long long)rules[i].window_ns / 1000,
		       (unsigned long long)rules[i].arrived, rules[i].worst,
		       (unsigned long long)rules[i].overs, rules[i].sources);
	puts("]}");
}

/* CLOCK_REALTIME less CLOCK_MONOTONIC, which only a clock that is set changes. */
static int64_t clock_apart_ns(void)
{
	return (int64_t)now_ns(CLOCK_REALTIME) - (int64_t)now_ns(CLOCK_MONOTONIC);
}

static void parse_rule(char *text)
{
	struct rule *r = &rules[n_rules++];
	unsigned long window_us;
	char all[4] = "";

	if (sscanf(text, "%lu:%lu:%lu:%3s", &r->port, &r->limit, &window_us, all) < 3)
		errx(2, "%s: not PORT:LIMIT:WINDOW_US", text);
	r->window_ns = window_us * 1000;
	r->all = !strcmp(all, "all");
}

static int receive_all(int argc, char **argv)
{
	struct pollfd p[RULES + 1] = {{STDIN_FILENO, POLLIN, 0}};
	uint32_t lost_of[RULES] = {0};
	int64_t apart = clock_apart_ns();
	char line[128];

	keys = calloc(KEYS, sizeof(*keys));
	if (!keys || argc > RULES)
		errx(1, "no memory, or too many rules");
	for (int i = 0; i < argc; i++) {
		parse_rule(argv[i]);
		p[i + 1] = (struct pollfd){open_port(rules[i].port), POLLIN, 0};
	}
	setvbuf(stdin, NULL, _IONBF, 0); /* what poll says holds for the line, too */
	puts("ready");
	fflush(stdout);
	for (;;) {
		poll(p, n_rules + 1, -1);
		for (size_t i = 0; i < n_rules; i++)
			receive_port(p[i + 1].fd, &rules[i], &lost_of[i]);
		lost = 0;
		for (size_t i = 0; i < n_rules; i++)
			lost += lost_of[i];
		if (!p[0].revents)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			break;
		obey(line);
	}
	report(clock_apart_ns() - apart);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 6 && !strcmp(argv[1], "send"))
		return send_all(argc - 2, argv + 2);
	if (argc >= 3 && !strcmp(argv[1], "receive"))
		return receive_all(argc - 2, argv + 2);
	fprintf(stderr, "usage: probe send|receive ...\n");
	return 2;
}
