/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: one page over HTTP, until somebody ends it: GET and HEAD of HTTP_PATH, and nothing else.
 *
 * Concurrency: one thread, that of the caller. A client that is slow, or says nothing, holds a
 * connection and no more; HTTP_IDLE_S after its last byte that is closed, and HTTP_REQUEST_S after
 * it began, or its last request was answered, if the next one has not been by then. Where
 * HTTP_CONNECTIONS (or half of the descriptors that the process may have) are open, the next ones
 * wait.
 */
#ifndef PACER_HTTP_H
#define PACER_HTTP_H

#include <stddef.h>

#include "config/policy.h"

#define HTTP_PATH	 "/metrics"
#define HTTP_CONNECTIONS 1500
#define HTTP_IDLE_S	 10
#define HTTP_REQUEST_S	 30 /* to be asked and answered */
#define HTTP_TEXT	 80 /* of an address and port */

/* What is served, made anew for each request. */
struct http_page {
	/* To be freed, with its length and type; NULL: it cannot be had now. */
	char *(*make)(const char *accept, size_t *len, const char **type, void *arg);
	void (*idle)(void *arg); /* every second or so */
	void *arg;
};

/*
 * "127.0.0.1:80", "[::1]:80"; port 0 is any that is free. A socket that listens there, and in
 * `bound` where that is; or -1 with *error filled, its line 1 where the address is none. Whoever is
 * told where it is may end it: SIGTERM and SIGINT wait for http_serve() from then on.
 */
int http_listen(const char *address, char bound[HTTP_TEXT], struct policy_error *error);

/* Until SIGTERM or SIGINT; closes the socket. 0, or -1 with *error filled. */
int http_serve(int fd, const struct http_page *page, struct policy_error *error);

#endif
