/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The store's client, where a name has several addresses, or another one than before: by libcurl
 * itself, over loopback. The lookup is this program's. An address is silent whose listener has no
 * room for who comes: the kernel drops what they send.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fleet/store.h"

#define ADDRESSES  3
#define TIMEOUT_MS 2000
#define TIMELY_MS  (TIMEOUT_MS + 1000) /* of a machine that does other things, too */
#define WAIT_MS	   100

#define BODY	"{\"header\":{\"revision\":\"9\"},\"TTL\":\"7\",\"grantedTTL\":\"10\"}"
#define CHANGED "{\"result\":{\"watch_id\":\"1\",\"events\":[{}]}}\n"

/* ---- the lookup ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *addresses[ADDRESSES + 1];
static unsigned int lookups;

static struct addrinfo *address(const char *text, const char *port)
{
	struct {
		struct addrinfo info;
		struct sockaddr_in in;
	} *one = calloc(1, sizeof(*one));

	one->in.sin_family = AF_INET;
	one->in.sin_port = htons((uint16_t)strtoul(port ? port : "0", NULL, 10));
	inet_pton(AF_INET, text, &one->in.sin_addr);
	one->info = (struct addrinfo){.ai_family = AF_INET,
				      .ai_socktype = SOCK_STREAM,
				      .ai_protocol = IPPROTO_TCP,
				      .ai_addrlen = sizeof(one->in),
				      .ai_addr = (struct sockaddr *)&one->in};
	return &one->info;
}

/* libcurl calls it by a thread of its own. */
int getaddrinfo(const char *name, const char *port, const struct addrinfo *hints,
		struct addrinfo **all)
{
	struct addrinfo **last = all;

	(void)name;
	(void)hints;
	*all = NULL;
	pthread_mutex_lock(&lock);
	lookups++;
	for (size_t i = 0; addresses[i]; i++) {
		*last = address(addresses[i], port);
		last = &(*last)->ai_next;
	}
	pthread_mutex_unlock(&lock);
	return *all ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *all)
{
	while (all) {
		struct addrinfo *next = all->ai_next;

		free(all);
		all = next;
	}
}

static void it_is_at(const char *first, const char *second, const char *third)
{
	pthread_mutex_lock(&lock);
	addresses[0] = first;
	addresses[1] = second;
	addresses[2] = third;
	lookups = 0;
	pthread_mutex_unlock(&lock);
}

/* ---- who is there ---- */

static uint16_t port; /* the same of all */

static struct sockaddr_in at(const char *text)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	return in;
}

static int listen_at(const char *text, int room)
{
	struct sockaddr_in in = at(text);
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	port = ntohs(in.sin_port);
	assert_int_equal(listen(fd, room), 0);
	return fd;
}

/* A listener that has one in its queue already, and room for no other. */
struct silent {
	int fd, first, second;
};

static struct silent silent_at(const char *text)
{
	struct silent s = {.fd = listen_at(text, 0)};
	struct sockaddr_in in = at(text);

	s.first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(s.first, (struct sockaddr *)&in, sizeof(in)), 0);
	s.second = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(s.second, (struct sockaddr *)&in, sizeof(in)), -1);
	assert_int_equal(errno, EINPROGRESS);
	return s;
}

static void silent_end(const struct silent *s)
{
	close(s->second);
	close(s->first);
	close(s->fd);
}

/* Answers whoever comes, one after the other. A watch is told of a change, and stays open. */
struct server {
	int fd;
	unsigned int came; /* connections */
	bool hangs_up;	   /* after each answer */
	pthread_t thread;
};

static void answer(int fd, bool hangs_up)
{
	char got[4096], said[sizeof(BODY) + 200];
	ssize_t n;

	while ((n = read(fd, got, sizeof(got) - 1)) > 0) {
		got[n] = 0;
		if (strstr(got, "/v3/watch"))
			n = snprintf(said, sizeof(said),
				     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
				     "%zx\r\n%s\r\n",
				     strlen(CHANGED), CHANGED);
		else if (strstr(got, "POST"))
			n = snprintf(said, sizeof(said),
				     "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n%s\r\n%s",
				     strlen(BODY), hangs_up ? "Connection: close\r\n" : "", BODY);
		else
			continue; /* the rest of a request */
		if (write(fd, said, (size_t)n) != n || hangs_up)
			break;
	}
}

static void *serve(void *arg)
{
	struct server *s = arg;
	int fd;

	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		__atomic_add_fetch(&s->came, 1, __ATOMIC_RELAXED);
		answer(fd, s->hangs_up);
		close(fd);
	}
	return NULL;
}

static void serve_at(struct server *s, const char *text)
{
	*s = (struct server){.fd = listen_at(text, 8)};
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

/* Once its client has hung up. */
static void serve_end(struct server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

/* ---- the client ---- */

static struct store *open_it(void)
{
	static char url[60];
	static struct store_options options = {.endpoint = {url},
					       .endpoints = 1,
					       .prefix = "/p/",
					       .first = "limit/",
					       .last = "member/",
					       .timeout_ms = TIMEOUT_MS};
	char why[STORE_WHY];
	struct store *s;

	snprintf(url, sizeof(url), "http://store.test:%u", port);
	s = store_etcd.open(&options, why);
	assert_non_null(s);
	return s;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static enum store_result ask(struct store *s)
{
	uint64_t age_ns, left_ns, begun_ms = now_ms();
	enum store_result result = store_etcd.age(s, 77, &age_ns, &left_ns);

	assert_in_range(now_ms() - begun_ms, 0, TIMELY_MS);
	return result;
}

/* As the agent does, a short time each. -1: it cannot be watched; 0: it has not told by then. */
static int watch(struct store *s, uint32_t wait_ms)
{
	static const struct store_under what[] = {{"limit/", false}};
	uint64_t end_ms = now_ms() + TIMELY_MS;
	int seen = 0;

	while (!seen && now_ms() < end_ms)
		seen = store_etcd.watch(s, what, 1, 7, wait_ms);
	return seen;
}

#define SILENT_1 "127.0.0.2"
#define SILENT_2 "127.0.0.3"
#define THERE	 "127.0.0.4"
#define MOVED	 "127.0.0.5"

static struct silent first, second;
static struct server server;

static void begin(void)
{
	port = 0;
	first = silent_at(SILENT_1);
	second = silent_at(SILENT_2);
	serve_at(&server, THERE);
}

static void end(struct store *s)
{
	store_etcd.close(s);
	serve_end(&server);
	silent_end(&second);
	silent_end(&first);
}

/* A call goes on to the next within its time, and the next call by the same connection. */
static void test_a_call_by_the_next_address(void **unused)
{
	struct store *s;

	(void)unused;
	begin();
	s = open_it();
	it_is_at(SILENT_1, THERE, NULL);
	assert_int_equal(ask(s), STORE_DONE);
	assert_int_equal(ask(s), STORE_DONE);
	assert_int_equal(server.came, 1);
	assert_int_equal(lookups, 1);
	end(s);
	begin();
	s = open_it();
	it_is_at(SILENT_1, SILENT_2, THERE);
	assert_int_equal(ask(s), STORE_DONE);
	end(s);
}

static void test_a_watch_by_the_next_address(void **unused)
{
	static const uint32_t waits_ms[] = {WAIT_MS, TIMEOUT_MS};
	struct store *s;

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		begin();
		s = open_it();
		it_is_at(SILENT_1, THERE, NULL);
		assert_int_equal(watch(s, waits_ms[i]), 1);
		assert_int_equal(server.came, 1);
		end(s);
	}
}

/* It takes no longer than a call may, and is said. */
static void test_all_are_silent(void **unused)
{
	struct store *s;

	(void)unused;
	begin();
	s = open_it();
	it_is_at(SILENT_1, SILENT_2, NULL);
	assert_int_equal(ask(s), STORE_UNKNOWN);
	assert_non_null(strstr(store_etcd.why(s), ": no answer within 2000 ms: "));
	assert_int_equal(watch(s, WAIT_MS), -1);
	assert_int_equal(server.came, 0);
	end(s);
}

/* Who connects anew asks for the name anew. */
static void test_a_name_that_moves(void **unused)
{
	struct server other;
	struct store *s;

	(void)unused;
	begin();
	serve_at(&other, MOVED);
	s = open_it();
	it_is_at(THERE, NULL, NULL);
	assert_int_equal(watch(s, WAIT_MS), 1);
	store_etcd.hang_up(s);
	it_is_at(MOVED, NULL, NULL);
	assert_int_equal(watch(s, WAIT_MS), 1);
	assert_int_equal(other.came, 1);
	store_etcd.hang_up(s);
	it_is_at(THERE, NULL, NULL);
	server.hangs_up = true;
	assert_int_equal(ask(s), STORE_DONE);
	assert_int_equal(server.came, 2);
	it_is_at(MOVED, NULL, NULL);
	assert_int_equal(ask(s), STORE_DONE);
	assert_int_equal(other.came, 2);
	assert_int_equal(server.came, 2);
	it_is_at(THERE, NULL, NULL); /* as long as a connection lasts it is not asked for */
	assert_int_equal(ask(s), STORE_DONE);
	assert_int_equal(lookups, 0);
	end(s);
	serve_end(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_call_by_the_next_address),
	    cmocka_unit_test(test_a_watch_by_the_next_address),
	    cmocka_unit_test(test_all_are_silent),
	    cmocka_unit_test(test_a_name_that_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
