/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What CrowdSec's local API is asked: never for more than the operator wants. Nothing is sent here:
 * libcurl's part is this program's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "bouncer/lapi.h"
#include "starved.h"

#define URL "http://127.0.0.1:8080"

static char asked[4096]; /* the last URL; "": none */
static bool no_memory;
static struct policy_error error;

/* What becomes of a transfer. */
static struct {
	CURLMcode add, perform, poll;
	int turns; /* before it has ended */
	bool stop, no_message;
	CURLcode result;
	const char *why;
	long status;
	size_t bytes;			  /* of an answer, */
	uint64_t took_ns, part_ns;	  /* until it began, and for each MiB of it */
} as = {.perform = CURLM_INTERNAL_ERROR}; /* nothing can be sent */

static size_t (*keep)(char *from, size_t size, size_t n, void *arg);
static void *kept_by;
static char *why;
static CURLoption lacks;
static long limit_ms;
static const char *folder; /* of whom is trusted, too: libcurl's unless it is taken away */
static long kept_s;	   /* for so long it has the file of whom it trusts */
static long sessions;	   /* of TLS: one that goes on judges no certificate again */
static struct {
	const char *proxy, *encoding, *protocols, *agent;
	const struct curl_slist *headers;
	long connect_s, stall_s, stall_bytes, no_signal;
} set;		  /* of what else there is to say */
static int added; /* of the questions, that were not taken back */
static int meanwhiles;
static uint64_t now_ns = 5000000000;

uint64_t host_now_ns(void)
{
	return now_ns;
}

static void keep_text(CURLoption option, const char *text)
{
	if (option == CURLOPT_PROXY)
		set.proxy = text;
	else if (option == CURLOPT_ACCEPT_ENCODING)
		set.encoding = text;
	else if (option == CURLOPT_PROTOCOLS_STR)
		set.protocols = text;
	else if (option == CURLOPT_USERAGENT)
		set.agent = text;
	else if (option == CURLOPT_HTTPHEADER)
		set.headers = (const struct curl_slist *)(const void *)text;
}

static void keep_number(CURLoption option, long number)
{
	if (option == CURLOPT_CONNECTTIMEOUT)
		set.connect_s = number;
	else if (option == CURLOPT_LOW_SPEED_TIME)
		set.stall_s = number;
	else if (option == CURLOPT_LOW_SPEED_LIMIT)
		set.stall_bytes = number;
	else if (option == CURLOPT_NOSIGNAL)
		set.no_signal = number;
}

#undef curl_easy_setopt
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	va_list more;

	(void)easy;
	if (option == lacks)
		return CURLE_OUT_OF_MEMORY;
	va_start(more, option);
	if (option == CURLOPT_URL)
		snprintf(asked, sizeof(asked), "%s", va_arg(more, const char *));
	else if (option == CURLOPT_WRITEFUNCTION)
		keep = va_arg(more, size_t(*)(char *, size_t, size_t, void *));
	else if (option == CURLOPT_WRITEDATA)
		kept_by = va_arg(more, void *);
	else if (option == CURLOPT_TIMEOUT_MS)
		limit_ms = va_arg(more, long);
	else if (option == CURLOPT_CAPATH)
		folder = va_arg(more, const char *);
	else if (option == CURLOPT_CA_CACHE_TIMEOUT)
		kept_s = va_arg(more, long);
	else if (option == CURLOPT_SSL_SESSIONID_CACHE)
		sessions = va_arg(more, long);
	else if (option == CURLOPT_ERRORBUFFER)
		why = va_arg(more, char *);
	else if (option < CURLOPTTYPE_OBJECTPOINT)
		keep_number(option, va_arg(more, long));
	else
		keep_text(option, va_arg(more, const char *));
	va_end(more);
	return CURLE_OK;
}

char *curl_easy_escape(CURL *easy, const char *text, int len)
{
	(void)easy;
	(void)len;
	return no_memory ? NULL : strdup(text);
}

void curl_free(void *p)
{
	free(p);
}

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
	static char some[1 << 20];
	size_t left = as.bytes;

	(void)multi;
	*running = as.turns-- > 0;
	now_ns += as.took_ns;
	while (!*running && left) {
		size_t n = left < sizeof(some) ? left : sizeof(some);

		if (keep(some, 1, n, kept_by) != n) {
			as.result = CURLE_WRITE_ERROR;
			break;
		}
		left -= n;
		now_ns += as.part_ns;
	}
	if (as.why)
		strcpy(why, as.why);
	return as.perform;
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd extra[], unsigned int n, int ms,
			  int *some)
{
	(void)multi;
	(void)n;
	(void)ms;
	(void)some;
	extra->revents = as.stop ? CURL_WAIT_POLLIN : 0;
	return as.poll;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	(void)multi;
	(void)easy;
	assert_int_equal(added, 0); /* libcurl has it already */
	added += !as.add;
	return as.add;
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
	(void)multi;
	(void)easy;
	added--;
	return CURLM_OK;
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
	static CURLMsg message;

	(void)multi;
	*left = 0;
	message = (CURLMsg){.msg = CURLMSG_DONE, .data.result = as.result};
	return as.no_message ? NULL : &message;
}

#undef curl_easy_getinfo
CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
	va_list more;

	(void)easy;
	(void)info;
	va_start(more, info);
	*va_arg(more, long *) = as.status;
	va_end(more);
	return CURLE_OK;
}

static int ask(const struct lapi_options *options, bool whole)
{
	struct lapi *l = lapi_open(options, &error);
	struct lapi_answer answer;
	int result;

	assert_non_null(l);
	*asked = 0;
	result = lapi_ask(l, whole, -1, &answer, &error);
	assert_int_equal(added, 0);
	lapi_close(l);
	return result;
}

static void test_what_is_asked(void **unused)
{
	struct lapi_options options = {.url = URL "/", .shown = URL, .key = "k", .stall_s = 1};

	(void)unused;
	no_memory = false;
	assert_int_equal(ask(&options, true), -1);
	assert_string_equal(error.text, URL ": libcurl cannot ask");
	assert_string_equal(asked, URL "/v1/decisions/stream?startup=true&dedup=false");
	options.url = URL;
	options.origins = "cscli,lists";
	assert_int_equal(ask(&options, false), -1);
	assert_string_equal(asked, URL
			    "/v1/decisions/stream?startup=false&dedup=false&origins=cscli,lists");
}

/* The decisions of all origins would be bans. */
static void test_no_memory_for_the_origins(void **unused)
{
	const struct lapi_options options = {.url = "http://me:pass@127.0.0.1:8080",
					     .shown = URL,
					     .key = "k",
					     .origins = "cscli",
					     .stall_s = 1};

	(void)unused;
	no_memory = true;
	assert_int_equal(ask(&options, true), -1);
	assert_string_equal(error.text, URL ": no memory for the question");
	assert_string_equal(asked, "");
}

static void test_an_address_that_is_too_long(void **unused)
{
	char long_one[5000];
	const struct lapi_options options = {
	    .url = long_one, .shown = URL, .key = "k", .stall_s = 1};

	(void)unused;
	no_memory = false;
	memset(long_one, 'a', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = 0;
	assert_int_equal(ask(&options, true), -1);
	assert_non_null(strstr(error.text, ": the address is too long"));
	assert_string_equal(asked, "");
}

static void meanwhile(void *arg)
{
	assert_ptr_equal(arg, &meanwhiles);
	meanwhiles++;
}

static const struct lapi_options plain = {.url = URL,
					  .shown = URL,
					  .key = "k",
					  .ca_file = "ca.pem",
					  .stall_s = 1,
					  .meanwhile = meanwhile,
					  .arg = &meanwhiles};

/* Nothing else is to be done while it is waited for. */
static void test_nothing_meanwhile(void **unused)
{
	struct lapi_options options = plain;
	int were = meanwhiles;

	(void)unused;
	no_memory = false;
	options.meanwhile = NULL;
	as = (typeof(as)){.status = 200, .turns = 2};
	assert_int_equal(ask(&options, true), 0);
	assert_int_equal(meanwhiles, were);
}

static void test_what_becomes_of_it(void **unused)
{
	static const struct {
		typeof(as) is;
		int result;
		const char *error;
	} rows[] = {
	    {{.status = 200, .turns = 2}, 0, NULL},
	    {{.status = 200, .bytes = LAPI_MAX / 2}, 0, NULL},
	    {{.status = 200, .bytes = LAPI_MAX}, 0, NULL},
	    {{.status = 200, .bytes = LAPI_MAX + 1}, -1, "the answer is longer than 32 MiB"},
	    {{.status = 200, .turns = 1, .stop = true}, 1, NULL},
	    {{.status = 200, .turns = 1, .poll = CURLM_OUT_OF_MEMORY}, -1, "libcurl cannot ask"},
	    {{.status = 200, .no_message = true}, -1, "libcurl cannot ask"},
	    {{.add = CURLM_OUT_OF_MEMORY}, -1, "libcurl cannot ask"},
	    {{.result = CURLE_COULDNT_CONNECT, .why = "nobody there"}, -1, ": nobody there"},
	    {{.result = CURLE_COULDNT_CONNECT}, -1, ": "},
	    {{.result = CURLE_OPERATION_TIMEDOUT, .why = "too slow", .took_ns = 9899999999},
	     -1,
	     ": too slow"},
	    {{.result = CURLE_OPERATION_TIMEDOUT, .why = "timed out", .took_ns = 9900000000},
	     -1,
	     ": the answer took longer than 10 s, 10 times timeout"},
	    {{.result = CURLE_COULDNT_CONNECT, .why = "nobody", .took_ns = 10000000000},
	     -1,
	     ": nobody"},
	    {{.status = 401}, -1, "it does not know the api_key (HTTP status 401)"},
	    {{.status = 403}, -1, "it does not know the api_key (HTTP status 403)"},
	    {{.status = 500}, -1, "HTTP status 500: is it CrowdSec's local API?"},
	    {{.status = 302}, -1, "HTTP status 302: is it CrowdSec's local API?"},
	    {{.status = 204}, -1, "HTTP status 204: is it CrowdSec's local API?"},
	};

	(void)unused;
	no_memory = false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		as = rows[i].is;
		assert_int_equal(ask(&plain, true), rows[i].result);
		if (rows[i].error && !strstr(error.text, rows[i].error))
			fail_msg("%zu: %s", i, error.text);
	}
}

/* A year, too, is a number of milliseconds for libcurl. */
static void test_how_long_an_answer_may_take(void **unused)
{
	static const struct {
		long stall_s, limit_ms;
	} rows[] = {{1, 10000}, {60, 600000}, {214748, 2147480000}, {31536000, 2147483000}};
	struct lapi_options options = {.url = URL, .key = "k"};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		options.stall_s = rows[i].stall_s;
		lapi_close(lapi_open(&options, &error));
		assert_int_equal(limit_ms, rows[i].limit_ms);
	}
}

/* Whoever waits for an answer has other things to do, until it is there. */
static void test_what_is_done_meanwhile(void **unused)
{
	(void)unused;
	no_memory = false;
	meanwhiles = 0;
	as = (typeof(as)){.status = 200, .turns = 3};
	assert_int_equal(ask(&plain, true), 0);
	assert_int_equal(meanwhiles, 3);
	as = (typeof(as)){.status = 200, .turns = 3, .stop = true};
	assert_int_equal(ask(&plain, true), 1);
	assert_int_equal(meanwhiles, 3);
}

/* What became of one answer says nothing of the next. */
static void test_one_after_the_other(void **unused)
{
	struct lapi *l = lapi_open(&plain, &error);
	struct lapi_answer answer;

	(void)unused;
	assert_non_null(l);
	no_memory = false;
	as = (typeof(as)){.status = 200, .bytes = LAPI_MAX + 1, .why = "it was cut off"};
	assert_int_equal(lapi_ask(l, true, -1, &answer, &error), -1);
	as = (typeof(as)){.status = 200, .bytes = 5};
	assert_int_equal(lapi_ask(l, true, -1, &answer, &error), 0);
	assert_int_equal(answer.len, 5);
	as = (typeof(as)){.result = CURLE_COULDNT_CONNECT};
	assert_int_equal(lapi_ask(l, true, -1, &answer, &error), -1);
	assert_null(strstr(error.text, "cut off"));
	lapi_close(l);
}

/* The key goes to the API, by no proxy of the environment; what stands still is given up. */
static void test_how_it_is_asked(void **unused)
{
	struct lapi *l;

	(void)unused;
	memset(&set, 0, sizeof(set));
	l = lapi_open(&plain, &error);
	assert_non_null(l);
	assert_string_equal(set.headers->data, "X-Api-Key: k");
	assert_null(set.headers->next);
	assert_string_equal(set.agent, "xdp-pacer-crowdsec/v" PACER_VERSION);
	assert_non_null(set.proxy);
	assert_string_equal(set.proxy, "");
	assert_string_equal(set.protocols, "http,https");
	assert_string_equal(set.encoding, ""); /* whatever libcurl can take apart */
	assert_int_equal(set.connect_s, LAPI_CONNECT_S);
	assert_int_equal(set.stall_s, plain.stall_s);
	assert_int_equal(set.stall_bytes, 1);
	assert_int_equal(set.no_signal, 1);
	lapi_close(l);
}

/* What is left of a decision is left of it then, however long the answer takes to come. */
static void test_when_an_answer_begins(void **unused)
{
	static const struct {
		uint64_t took_ns, part_ns, begun_ns;
	} rows[] = {{0, 0, 0}, {7000000000, 0, 7000000000}, {7000000000, 200, 7000000000}};
	struct lapi *l = lapi_open(&plain, &error);
	struct lapi_answer answer;

	(void)unused;
	assert_non_null(l);
	no_memory = false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t asked_ns = now_ns;

		as = (typeof(as)){.status = 200,
				  .bytes = 5 << 20,
				  .took_ns = rows[i].took_ns,
				  .part_ns = rows[i].part_ns};
		assert_int_equal(lapi_ask(l, true, -1, &answer, &error), 0);
		assert_int_equal(answer.len, 5 << 20);
		assert_int_equal(answer.begun_ns - asked_ns, rows[i].begun_ns);
	}
	lapi_close(l);
}

/* The key is for whom the file vouches for, as it is now. */
static void test_whom_else_it_trusts(void **unused)
{
	const struct lapi_options any = {.url = URL, .key = "k", .stall_s = 1};

	(void)unused;
	folder = "libcurl's";
	kept_s = 86400;
	sessions = 1;
	lapi_close(lapi_open(&any, &error));
	assert_string_equal(folder, "libcurl's");
	lapi_close(lapi_open(&plain, &error));
	assert_null(folder);
	assert_int_equal(kept_s, 0);
	assert_int_equal(sessions, 0);
}

/* Without the certificate it is to trust, or its key, it asks nobody. */
static void test_no_memory_to_begin(void **unused)
{
	static const CURLoption needed[] = {CURLOPT_CAINFO, CURLOPT_CAPATH,
					    CURLOPT_CA_CACHE_TIMEOUT, CURLOPT_SSL_SESSIONID_CACHE};
	uint32_t n;

	(void)unused;
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		lacks = needed[i];
		assert_null(lapi_open(&plain, &error));
		assert_string_equal(error.text, "libcurl cannot be set up: is there memory left?");
	}
	lacks = 0;
	assert_int_equal(curl_global_init(CURL_GLOBAL_DEFAULT), CURLE_OK);
	starved_from(0, false);
	memory.on = true;
	lapi_close(lapi_open(&plain, &error));
	n = memory.n;
	for (uint32_t i = 1; i <= n; i++) {
		starved_from(i, false);
		memory.on = true;
		assert_null(lapi_open(&plain, &error));
	}
	memory.on = false;
	lapi_close(NULL);
	curl_global_cleanup();
}

static void test_no_memory_for_the_answer(void **unused)
{
	struct lapi *l = lapi_open(&plain, &error);
	struct lapi_answer answer;

	(void)unused;
	assert_non_null(l);
	no_memory = false;
	as = (typeof(as)){.status = 200, .bytes = 100, .why = "no room"};
	starved_from(1, true);
	memory.on = true;
	assert_int_equal(lapi_ask(l, true, -1, &answer, &error), -1);
	memory.on = false;
	assert_string_equal(error.text, URL ": no room");
	assert_int_equal(answer.len, 0);
	as = (typeof(as)){.status = 200, .bytes = 100};
	assert_int_equal(lapi_ask(l, true, -1, &answer, &error), 0);
	assert_int_equal(answer.len, 100);
	lapi_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_is_asked),
	    cmocka_unit_test(test_no_memory_for_the_origins),
	    cmocka_unit_test(test_an_address_that_is_too_long),
	    cmocka_unit_test(test_nothing_meanwhile),
	    cmocka_unit_test(test_what_becomes_of_it),
	    cmocka_unit_test(test_how_long_an_answer_may_take),
	    cmocka_unit_test(test_what_is_done_meanwhile),
	    cmocka_unit_test(test_one_after_the_other),
	    cmocka_unit_test(test_how_it_is_asked),
	    cmocka_unit_test(test_when_an_answer_begins),
	    cmocka_unit_test(test_whom_else_it_trusts),
	    cmocka_unit_test(test_no_memory_to_begin),
	    cmocka_unit_test(test_no_memory_for_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
