/* SPDX-License-Identifier: GPL-2.0-only */
#include "bouncer/lapi.h"

#include <curl/curl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/host.h"

#define URL_MAX	       4096 /* what settings.h takes, each byte of the origins escaped */
#define AGENT	       "xdp-pacer-crowdsec/v" PACER_VERSION
#define LOOK_MS	       1000
#define LIMIT_SLACK_NS 100000000ull
#define FIRST_MAX      65536 /* bytes: then twice that, and so on */

struct lapi {
	const struct lapi_options *options;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	char *text, why[CURL_ERROR_SIZE];
	size_t len, room;
	bool too_long;
	uint64_t asked_ns, begun_ns; /* the question, and the answer's first byte */
};

static size_t keep(char *from, size_t size, size_t n, void *arg)
{
	struct lapi *l = arg;
	size_t room = l->room ? l->room : FIRST_MAX;

	n *= size;
	if (!l->len)
		l->begun_ns = host_now_ns();
	while (room - l->len < n)
		room *= 2;
	if (room > LAPI_MAX) {
		l->too_long = true;
		return 0;
	}
	if (room > l->room) {
		char *more = realloc(l->text, room);

		if (!more)
			return 0;
		l->text = more;
		l->room = room;
	}
	memcpy(l->text + l->len, from, n);
	l->len += n;
	return n;
}

/* Of an answer as a whole. */
static long limit_s(const struct lapi *l)
{
	const long max_s = INT_MAX / 1000; /* libcurl counts it in milliseconds */
	long stall_s = l->options->stall_s;

	return stall_s <= max_s / LAPI_STALLS ? stall_s * LAPI_STALLS : max_s;
}

static bool set_options(struct lapi *l)
{
	const struct lapi_options *o = l->options;
	CURL *e = l->easy;
	bool failed = false;

	failed |= curl_easy_setopt(e, CURLOPT_HTTPHEADER, l->headers);
	failed |= curl_easy_setopt(e, CURLOPT_USERAGENT, AGENT);
	failed |= curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	failed |= curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "");
	failed |= curl_easy_setopt(e, CURLOPT_PROXY, "");
	failed |= curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	failed |= curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* a name may take a minute */
	failed |= curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)LAPI_CONNECT_S);
	failed |= curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
	failed |= curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, o->stall_s);
	failed |= curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, limit_s(l) * 1000);
	failed |= curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, keep);
	failed |= curl_easy_setopt(e, CURLOPT_WRITEDATA, l);
	failed |= curl_easy_setopt(e, CURLOPT_ERRORBUFFER, l->why);
	if (o->ca_file) { /* and nobody else, and as the file is at each connection */
		failed |= curl_easy_setopt(e, CURLOPT_CAINFO, o->ca_file);
		failed |= curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
		failed |= curl_easy_setopt(e, CURLOPT_CA_CACHE_TIMEOUT, 0L);
		failed |= curl_easy_setopt(e, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	}
	return !failed;
}

struct lapi *lapi_open(const struct lapi_options *options, struct policy_error *error)
{
	struct lapi *l = calloc(1, sizeof(*l));
	size_t size = strlen(options->key) + 16;
	char *header = malloc(size);

	if (l && header && !curl_global_init(CURL_GLOBAL_DEFAULT)) {
		l->options = options;
		l->multi = curl_multi_init();
		l->easy = curl_easy_init();
		snprintf(header, size, "X-Api-Key: %s", options->key);
		l->headers = curl_slist_append(NULL, header);
	}
	free(header);
	if (l && l->multi && l->easy && l->headers && set_options(l))
		return l;
	policy_explain(error, 0, "libcurl cannot be set up: is there memory left?");
	lapi_close(l);
	return NULL;
}

void lapi_close(struct lapi *l)
{
	if (!l)
		return;
	if (l->easy)
		curl_easy_cleanup(l->easy);
	if (l->multi)
		curl_multi_cleanup(l->multi);
	curl_slist_free_all(l->headers);
	free(l->text);
	free(l);
	curl_global_cleanup();
}

/* All decisions, not only the longest of each source: one may be deleted before another. */
static int set_url(struct lapi *l, bool whole, struct policy_error *error)
{
	const char *url = l->options->url, *origins = l->options->origins;
	size_t len = strlen(url);
	char *origins_escaped = origins ? curl_easy_escape(l->easy, origins, 0) : NULL;
	char text[URL_MAX];
	int n;

	if (origins && !origins_escaped) /* without them it would be asked for those of all */
		return policy_fail(error, POLICY_NO_MEMORY, "%.100s: no memory for the question",
				   l->options->shown);
	n = snprintf(text, sizeof(text), "%.*s/v1/decisions/stream?startup=%s&dedup=false%s%s",
		     (int)(len && url[len - 1] == '/' ? len - 1 : len), url,
		     whole ? "true" : "false", origins_escaped ? "&origins=" : "",
		     origins_escaped ? origins_escaped : "");
	curl_free(origins_escaped);
	if (n >= (int)sizeof(text) || curl_easy_setopt(l->easy, CURLOPT_URL, text))
		return policy_fail(error, 0, "%.100s: the address is too long", l->options->shown);
	return 0;
}

/* 0: it has ended, with its result in *code; 1: it is to stop; -1. */
static int transfer(struct lapi *l, int stop_fd, CURLcode *code)
{
	struct curl_waitfd stop = {.fd = stop_fd, .events = CURL_WAIT_POLLIN};
	CURLMsg *message;
	int running = 1, left;

	while (running) {
		if (curl_multi_perform(l->multi, &running))
			return -1;
		if (running && curl_multi_poll(l->multi, &stop, 1, LOOK_MS, NULL))
			return -1;
		if (stop.revents)
			return 1;
		if (running && l->options->meanwhile)
			l->options->meanwhile(l->options->arg);
	}
	message = curl_multi_info_read(l->multi, &left);
	if (!message || message->msg != CURLMSG_DONE)
		return -1;
	*code = message->data.result;
	return 0;
}

/* libcurl has the same code for an answer that stands still; its time may end a little before. */
static bool took_too_long(const struct lapi *l, CURLcode code)
{
	uint64_t limit_ns = (uint64_t)limit_s(l) * 1000000000;

	return code == CURLE_OPERATION_TIMEDOUT &&
	       host_now_ns() - l->asked_ns + LIMIT_SLACK_NS >= limit_ns;
}

static int no_answer(const struct lapi *l, CURLcode code, struct policy_error *error)
{
	const char *shown = l->options->shown;
	long status = 0;

	if (l->too_long)
		return policy_fail(error, 0, "%.100s: the answer is longer than %lu MiB", shown,
				   LAPI_MAX >> 20);
	if (took_too_long(l, code))
		return policy_fail(error, 0,
				   "%.100s: the answer took longer than %ld s, %d times timeout",
				   shown, limit_s(l), LAPI_STALLS);
	if (code)
		return policy_fail(error, 0, "%.100s: %.200s", shown,
				   *l->why ? l->why : curl_easy_strerror(code));
	curl_easy_getinfo(l->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 401 || status == 403)
		return policy_fail(error, 0,
				   "%.100s: it does not know the api_key (HTTP status %ld): make "
				   "one by `cscli bouncers add NAME`",
				   shown, status);
	if (status != 200)
		return policy_fail(error, 0,
				   "%.100s: it answers with HTTP status %ld: is it CrowdSec's "
				   "local API?",
				   shown, status);
	return 0;
}

int lapi_ask(struct lapi *l, bool whole, int stop_fd, struct lapi_answer *answer,
	     struct policy_error *error)
{
	CURLcode code = CURLE_OK;
	int result;

	l->len = 0;
	l->too_long = false;
	*l->why = 0;
	l->asked_ns = l->begun_ns = host_now_ns();
	if (set_url(l, whole, error))
		return -1;
	if (curl_multi_add_handle(l->multi, l->easy))
		return policy_fail(error, 0, "%.100s: libcurl cannot ask", l->options->shown);
	result = transfer(l, stop_fd, &code);
	if (result < 0)
		policy_explain(error, 0, "%.100s: libcurl cannot ask", l->options->shown);
	else if (!result)
		result = no_answer(l, code, error);
	curl_multi_remove_handle(l->multi, l->easy);
	*answer = (struct lapi_answer){l->text ? l->text : "", l->len, l->begun_ns};
	return result;
}
