/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: asks a CrowdSec local API over HTTP, by libcurl.
 *
 * Error: an answer that is not whole, of another status than 200, longer than LAPI_MAX, or that
 * stands still for as long as the options say, or takes LAPI_STALLS times that as a whole, is none.
 * A redirection is none either: the key is for that address alone. One thread.
 */
#ifndef PACER_LAPI_H
#define PACER_LAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/policy.h"

#define LAPI_MAX       (32ul << 20) /* bytes of an answer, once it is unpacked */
#define LAPI_CONNECT_S 5
#define LAPI_STALLS    10 /* by 60 s: 32 MiB at 56 kB/s */

struct lapi;

struct lapi_options {
	const char *url;     /* "http://127.0.0.1:8080/" */
	const char *shown;   /* what errors say of it */
	const char *key;     /* X-Api-Key */
	const char *ca_file; /* of who alone signs the API's certificate; NULL: the machine's */
	const char *origins; /* of which decisions are wanted, "a,b"; NULL: of all */
	long stall_s;	     /* at least 1 */
	/* Called while an answer is waited for, each second or more often; NULL: nothing is. */
	void (*meanwhile)(void *arg);
	void *arg;
};

/* NULL with *error filled. The options have to last. */
struct lapi *lapi_open(const struct lapi_options *options, struct policy_error *error);
void lapi_close(struct lapi *lapi);

struct lapi_answer {
	const char *text; /* until the next question */
	size_t len;
	uint64_t begun_ns; /* when its first byte came, by the clock of host.h */
};

/*
 * What is new since the last question; `whole`: all there is. 0, 1 where stop_fd can be read
 * before, or -1 with *error filled.
 */
int lapi_ask(struct lapi *lapi, bool whole, int stop_fd, struct lapi_answer *answer,
	     struct policy_error *error);

#endif
