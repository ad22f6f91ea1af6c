/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "live/ends.h"

#define ROUND_MS     1000 /* from one call of `idle` to the next, at most */
#define MEMORY_BYTES 8192 /* of a connection: what a request's head may take */
#define PORT_TEXT    6

/* --- the address ---------------------------------------------------------------------------- */

struct place {
	char host[HTTP_TEXT], port[PORT_TEXT];
};

static bool split(const char *address, struct place *place)
{
	const char *colon = strrchr(address, ':');
	size_t len = colon ? (size_t)(colon - address) : 0;
	bool bracketed = len > 2 && address[0] == '[' && address[len - 1] == ']';

	if (!len || len >= sizeof(place->host) || strlen(colon + 1) >= sizeof(place->port) ||
	    !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
	    strtoul(colon + 1, NULL, 10) > UINT16_MAX)
		return false;
	address += bracketed;
	len -= 2 * bracketed;
	if (!bracketed && memchr(address, ':', len)) /* where does its port begin? */
		return false;
	memcpy(place->host, address, len);
	place->host[len] = 0;
	snprintf(place->port, sizeof(place->port), "%s", colon + 1);
	return true;
}

static int no_address(const char *address, struct policy_error *error)
{
	return policy_fail(error, 1,
			   "--listen %s is not ADDR:PORT, such as 127.0.0.1:10477 or "
			   "[::1]:10477",
			   address);
}

static int no_socket(const char *address, struct policy_error *error)
{
	if (errno == EADDRINUSE)
		return policy_fail(error, 0,
				   "%s: the port is taken: name another by --listen, or see "
				   "`ss -ltnp` for who has it",
				   address);
	return policy_fail(error, 0, "%s: nothing can listen there: %s", address, strerror(errno));
}

static void name_of(int fd, char bound[HTTP_TEXT])
{
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);
	struct place place;

	snprintf(bound, HTTP_TEXT, "?");
	if (!getsockname(fd, (struct sockaddr *)&at, &len) &&
	    !getnameinfo((struct sockaddr *)&at, len, place.host, sizeof(place.host), place.port,
			 sizeof(place.port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(bound, HTTP_TEXT, at.ss_family == AF_INET6 ? "[%.64s]:%s" : "%.64s:%s",
			 place.host, place.port);
}

int http_listen(const char *address, char bound[HTTP_TEXT], struct policy_error *error)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				 .ai_socktype = SOCK_STREAM};
	struct addrinfo *at;
	struct place place;
	int fd, on = 1;

	if (!split(address, &place) || getaddrinfo(place.host, place.port, &hints, &at))
		return no_address(address, error);
	fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, SOMAXCONN)) {
		(void)no_socket(address, error);
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(at);
	if (fd >= 0)
		name_of(fd, bound);
	if (fd >= 0 && ends_hold(ENDS_OF_SERVICE)) {
		policy_explain(error, 0, "signals cannot be waited for: %s", strerror(errno));
		close(fd);
		fd = -1;
	}
	return fd;
}

/* --- who is connected ----------------------------------------------------------------------- */

struct client {
	bool on;
	int fd;
	uint64_t since_ms; /* it connected, or its last request was answered */
};

struct server {
	const struct http_page *page;
	struct client clients[HTTP_CONNECTIONS];
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* There is room: the library takes no more of them. */
static void note_client(void *server, struct MHD_Connection *c, void **context,
			enum MHD_ConnectionNotificationCode what)
{
	struct client *client = ((struct server *)server)->clients;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		client = *context;
		client->on = false;
		return;
	}
	while (client->on)
		client++;
	*client = (struct client){
	    true, MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
	    now_ms()};
	*context = client;
}

static void note_answered(void *unused, struct MHD_Connection *c, void **begun,
			  enum MHD_RequestTerminationCode how)
{
	struct client *client =
	    MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

	(void)unused;
	(void)begun;
	(void)how;
	client->since_ms = now_ms();
}

/* The library's own timeout begins anew with each byte. It closes what it finds shut down. */
static void cut_off_slow(struct server *server)
{
	uint64_t now = now_ms();

	for (size_t i = 0; i < HTTP_CONNECTIONS; i++) {
		const struct client *client = &server->clients[i];

		if (client->on && now - client->since_ms > HTTP_REQUEST_S * 1000)
			(void)shutdown(client->fd, SHUT_RDWR);
	}
}

/* --- a request ------------------------------------------------------------------------------ */

static enum MHD_Result reply(struct MHD_Connection *c, unsigned int status,
			     struct MHD_Response *response, const char *header, const char *value)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO; /* which closes the connection */
	result = MHD_add_response_header(response, header, value);
	if (result == MHD_YES)
		result = MHD_queue_response(c, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned int status, const char *text,
			      const char *header, const char *value)
{
	return reply(
	    c, status,
	    MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT),
	    header, value);
}

static enum MHD_Result give(struct MHD_Connection *c, const struct http_page *page)
{
	const char *accept =
	    MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	const char *type = "";
	size_t len = 0;
	char *text = page->make(accept, &len, &type, page->arg);
	struct MHD_Response *response;

	if (!text)
		return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory: try again\n",
			      MHD_HTTP_HEADER_RETRY_AFTER, "10");
	response = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	return reply(c, MHD_HTTP_OK, response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
}

/* A path with an escaped NUL would be read up to there. It becomes none. */
static size_t unescape(void *unused, struct MHD_Connection *c, char *text)
{
	(void)unused;
	(void)c;
	if (MHD_http_unescape(text) != strlen(text))
		*text = 0;
	return strlen(text);
}

/* It is called when the head has been read, for each piece of a body, and once when that is over.
 */
static enum MHD_Result handle(void *arg, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *len, void **begun)
{
	static int once;

	(void)version;
	(void)body;
	if (strcmp(url, HTTP_PATH) != 0)
		return refuse(c, MHD_HTTP_NOT_FOUND, "there is nothing but " HTTP_PATH "\n",
			      MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD\n",
			      MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (!*begun || *len) { /* a body is not looked at */
		*begun = &once;
		*len = 0;
		return MHD_YES;
	}
	return give(c, ((const struct server *)arg)->page);
}

/* --- until the end -------------------------------------------------------------------------- */

static unsigned int connections(void)
{
	struct rlimit files = {1024, 1024};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur / 2 > HTTP_CONNECTIONS ? HTTP_CONNECTIONS : files.rlim_cur / 2;
}

/* When it has something to do again of its own accord. */
static int wait_ms(struct MHD_Daemon *daemon)
{
	MHD_UNSIGNED_LONG_LONG ms;

	return MHD_get_timeout(daemon, &ms) == MHD_YES && ms < ROUND_MS ? (int)ms : ROUND_MS;
}

static int work(struct MHD_Daemon *daemon, struct server *server)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd at[2] = {{.fd = ends_fd(), .events = POLLIN}, {.events = POLLIN}};
	uint64_t idle_ms = now_ms();

	if (!info)
		return -1;
	at[1].fd = info->epoll_fd;
	while (!at[0].revents) {
		if (poll(at, 2, wait_ms(daemon)) < 0 && errno != EINTR)
			return -1;
		if (MHD_run(daemon) != MHD_YES)
			return -1;
		if (now_ms() - idle_ms >= ROUND_MS) {
			server->page->idle(server->page->arg);
			cut_off_slow(server);
			idle_ms = now_ms();
		}
	}
	return 0;
}

int http_serve(int fd, const struct http_page *page, struct policy_error *error)
{
	struct server server = {.page = page};
	struct MHD_Daemon *daemon;
	int result = -1;

	daemon = MHD_start_daemon(
	    MHD_USE_EPOLL, 0, NULL, NULL, handle, &server, MHD_OPTION_LISTEN_SOCKET, fd,
	    MHD_OPTION_CONNECTION_LIMIT, connections(), MHD_OPTION_CONNECTION_TIMEOUT,
	    (unsigned int)HTTP_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_BYTES,
	    MHD_OPTION_NOTIFY_CONNECTION, note_client, &server, MHD_OPTION_NOTIFY_COMPLETED,
	    note_answered, NULL, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_END);
	if (daemon)
		result = work(daemon, &server);
	if (result)
		policy_explain(error, 0, "the server does not run: %s", strerror(errno));
	if (daemon)
		MHD_stop_daemon(daemon); /* the socket, too */
	else
		close(fd);
	return result;
}
