/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The store's client, where memory runs out, and where what answers is no etcd, or a strange one.
 * It asks nobody whom it should not, no request is sent in part, and it says why. Nothing is sent
 * here: libcurl's part is this program's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "fleet/store.h"
#include "starved.h"

#define ARRAY(a) (sizeof(a) / sizeof(*(a)))
#define AT	 "https://127.0.0.1:2379"

/* The library's does not ask this program's malloc(). */
char *strdup(const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = malloc(n);

	return copy ? memcpy(copy, text, n) : NULL;
}

/* ---- libcurl's part ---- */

static CURLoption lacks; /* for which there is no memory; 0: none */
static unsigned int asked, watched;
static char url[600];
static const char *folder; /* of whom is trusted, too: libcurl's unless it is taken away */
static long kept_s;	   /* for so long it has the file of whom it trusts */
static long sessions;	   /* of TLS: one that goes on judges no certificate again */
static const char *phrase; /* of the key; NULL: whoever is at the terminal is asked */

/* What a call gets, one after the other; then there is nobody. */
static struct answer {
	const char *text;
	long status;	  /* 0: 200, and without an answer none */
	CURLcode code;	  /* without an answer, or in the middle of one */
	const char *said; /* by libcurl */
	bool shook;	  /* hands, before it hung up */
	bool hung_up;	  /* without a byte, on a connection of before: libcurl asks again */
	size_t bytes;	  /* that the answer is said to have; 0: as many */
} script[4], *given;
static char sent[4][4000]; /* the requests */

static CURL *calls;    /* what calls are made by, */
static CURLM *calling; /* and by whom one is made; NULL: none is */
static CURLcode called;
static int looks;	/* until that is done */
static CURLMcode lost;	/* why none can be made */
static long kept_names; /* for so many seconds */

static long fresh, left; /* connections that are new, and that nobody uses again */
static size_t (*take)(char *data, size_t size, size_t n, void *arg);
static void *to, *watch_to;
static const char *posted;
static size_t (*give)(char *data, size_t size, size_t n, void *arg); /* what is posted, */
static int (*seek)(void *arg, curl_off_t offset, int origin);	     /* from there on */
static void *from, *seek_in;
static curl_off_t given_bytes;
static char *failed;

#undef curl_easy_setopt
CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
	va_list more;

	if (option == lacks)
		return CURLE_OUT_OF_MEMORY;
	va_start(more, option);
	if (option == CURLOPT_POST)
		calls = curl;
	else if (option == CURLOPT_DNS_CACHE_TIMEOUT)
		kept_names = va_arg(more, long);
	else if (option == CURLOPT_WRITEFUNCTION)
		take = va_arg(more, size_t(*)(char *, size_t, size_t, void *));
	else if (option == CURLOPT_WRITEDATA)
		to = va_arg(more, void *);
	else if (option == CURLOPT_POSTFIELDS)
		posted = va_arg(more, const char *);
	else if (option == CURLOPT_READFUNCTION)
		give = va_arg(more, size_t(*)(char *, size_t, size_t, void *));
	else if (option == CURLOPT_READDATA)
		from = va_arg(more, void *);
	else if (option == CURLOPT_SEEKFUNCTION)
		seek = va_arg(more, int (*)(void *, curl_off_t, int));
	else if (option == CURLOPT_SEEKDATA)
		seek_in = va_arg(more, void *);
	else if (option == CURLOPT_POSTFIELDSIZE_LARGE)
		given_bytes = va_arg(more, curl_off_t);
	else if (option == CURLOPT_ERRORBUFFER)
		failed = va_arg(more, char *);
	else if (option == CURLOPT_CAPATH)
		folder = va_arg(more, const char *);
	else if (option == CURLOPT_CA_CACHE_TIMEOUT)
		kept_s = va_arg(more, long);
	else if (option == CURLOPT_SSL_SESSIONID_CACHE)
		sessions = va_arg(more, long);
	else if (option == CURLOPT_KEYPASSWD)
		phrase = va_arg(more, const char *);
	else if (option == CURLOPT_FRESH_CONNECT)
		fresh += va_arg(more, long);
	else if (option == CURLOPT_FORBID_REUSE)
		left += va_arg(more, long);
	else if (option == CURLOPT_URL)
		snprintf(url, sizeof(url), "%s", va_arg(more, const char *));
	va_end(more);
	return CURLE_OK;
}

/* By pieces, as many bytes as were named. */
static void take_request(char *text, size_t room)
{
	size_t n = 0, piece = 7;

	while (piece && n < (size_t)given_bytes) {
		assert_true(n + 7 < room);
		piece = give(text + n, 1, 7, from);
		n += piece;
	}
	assert_int_equal(n, given_bytes);
	text[n] = 0;
}

/* By one that is no watch. */
static CURLcode answered(void)
{
	struct answer *is = given++;
	char *text = (char *)is->text;
	size_t n;

	take_request(sent[is - script], sizeof(*sent));
	asked++;
	if (is->hung_up)
		return seek(seek_in, 0, SEEK_SET) == CURL_SEEKFUNC_OK ? answered()
								      : CURLE_SEND_FAIL_REWIND;
	if (is->code || !is->text) {
		snprintf(failed, CURL_ERROR_SIZE, "%s", is->said ? is->said : "");
		return is->code ? is->code : CURLE_COULDNT_CONNECT;
	}
	n = is->bytes ? is->bytes : strlen(text);
	return n && take(text, 1, n, to) != n ? CURLE_WRITE_ERROR : CURLE_OK;
}

/* As after a call before, of which hands were shaken. */
#undef curl_easy_getinfo
CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
	const struct answer *is = given > script ? given - 1 : script;
	va_list more;

	(void)curl;
	va_start(more, info);
	if (info == CURLINFO_APPCONNECT_TIME_T)
		*va_arg(more, curl_off_t *) = is->shook;
	else
		*va_arg(more, long *) = is->status || is->code ? is->status : 200;
	va_end(more);
	return CURLE_OK;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *curl)
{
	if (curl == calls) {
		assert_null(calling); /* one at a time */
		if (lost)
			return lost;
		calling = multi;
		looks = 2;
		return CURLM_OK;
	}
	*failed = 0;
	watched++;
	watch_to = to;
	snprintf(sent[0], sizeof(*sent), "%s", posted);
	return CURLM_OK;
}

/* A part of what is watched comes at each look; NULL: nothing comes any more. */
static const char *parts[4], **part;
static bool hangs_up; /* when nothing comes any more, */
static CURLcode over; /* and by which error, if it is one */

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
	if (multi == calling) {
		*running = looks > 0;
		if (!looks)
			called = answered();
		return CURLM_OK;
	}
	*running = !hangs_up || *part;
	if (*part) {
		size_t n = strlen(*part);

		assert_int_equal(take((char *)*part, n, 1, watch_to), n);
		part++;
	}
	return CURLM_OK;
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd extra[], unsigned int n, int ms,
			  int *some)
{
	(void)extra;
	(void)n;
	(void)some;
	if (multi == calling) {
		assert_in_range(ms, 1, 100);
		looks--;
	}
	return CURLM_OK;
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
	static CURLMsg said;

	*left = 0;
	said = (CURLMsg){.msg = CURLMSG_DONE, .data.result = multi == calling ? called : over};
	if (multi == calling)
		return looks ? NULL : &said;
	return hangs_up && !*part ? &said : NULL;
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *curl)
{
	if (curl == calls) {
		assert_ptr_equal(multi, calling);
		calling = NULL;
	}
	return CURLM_OK;
}

/* ---- whom it trusts and asks ---- */

static struct store *open_with(CURLoption without)
{
	static const struct store_options options = {.endpoint = {AT},
						     .endpoints = 1,
						     .ca = "ca.pem",
						     .cert = "cert.pem",
						     .key = "key.pem",
						     .prefix = "/p/",
						     .first = "limit/",
						     .last = "member/",
						     .timeout_ms = 100};
	char why[STORE_WHY];
	struct store *s;

	lacks = without;
	lost = CURLM_OK;
	asked = watched = 0;
	memset(script, 0, sizeof(script));
	given = script;
	script[0].shook = true;
	s = store_etcd.open(&options, why);
	if (!s)
		assert_string_equal(why, "no memory for the store's client");
	return s;
}

static void test_it_knows_whom_to_trust(void **unused)
{
	static const CURLoption needed[] = {CURLOPT_CAINFO,
					    CURLOPT_CAPATH,
					    CURLOPT_CA_CACHE_TIMEOUT,
					    CURLOPT_SSL_SESSIONID_CACHE,
					    CURLOPT_SSLCERT,
					    CURLOPT_SSLKEY,
					    CURLOPT_PROTOCOLS_STR,
					    CURLOPT_PROXY,
					    CURLOPT_DNS_CACHE_TIMEOUT,
					    CURLOPT_SSLVERSION,
					    CURLOPT_KEYPASSWD,
					    CURLOPT_POST,
					    CURLOPT_READFUNCTION,
					    CURLOPT_SEEKFUNCTION};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	store_etcd.close(s);
	for (size_t i = 0; i < ARRAY(needed); i++)
		assert_null(open_with(needed[i]));
}

/* Of a key with one: an agent that asked would wait for ever, and no signal would end it. */
static void test_it_asks_for_no_pass_phrase(void **unused)
{
	struct store *s;

	(void)unused;
	phrase = NULL;
	s = open_with(0);
	assert_non_null(s);
	assert_non_null(phrase);
	assert_string_equal(phrase, "");
	store_etcd.close(s);
}

/* Its file is all that counts, as it is now: what libcurl has else goes only by that. */
static void test_whom_else_it_trusts(void **unused)
{
	static const struct store_options options = {
	    .endpoint = {AT}, .endpoints = 1, .prefix = "/p/", .first = "a/", .last = "b/"};
	static const struct store_under what[] = {{"limit/", false}};
	char why[STORE_WHY];
	struct store *s;

	(void)unused;
	lacks = 0;
	folder = "libcurl's";
	kept_s = 86400;
	kept_names = 60;
	sessions = 1;
	s = store_etcd.open(&options, why);
	assert_non_null(s);
	store_etcd.close(s);
	assert_string_equal(folder, "libcurl's");
	s = open_with(0);
	assert_non_null(s);
	assert_null(folder);
	assert_int_equal(kept_s, 0);
	assert_int_equal(sessions, 0);
	assert_int_equal(kept_names, 0);
	folder = "libcurl's";
	kept_s = 86400;
	kept_names = 60;
	memset(parts, 0, sizeof(parts));
	part = parts;
	hangs_up = false;
	assert_int_equal(store_etcd.watch(s, what, 1, 7, 0), 0);
	assert_null(folder);
	assert_int_equal(kept_s, 0);
	assert_int_equal(kept_names, 0);
	store_etcd.close(s);
}

/* What is to go to one address does not go to that of the call before. */
static void test_it_knows_whom_it_asks(void **unused)
{
	struct store *s = open_with(CURLOPT_URL);
	struct store_news news = {.own = "member/1"};
	struct store_snapshot now;

	(void)unused;
	assert_non_null(s);
	assert_int_equal(store_etcd.read(s, &news, &now), STORE_UNKNOWN);
	assert_int_equal(asked, 0);
	assert_string_equal(store_etcd.why(s), AT ": no memory to ask it");
	lacks = 0;
	lost = CURLM_OUT_OF_MEMORY;
	assert_int_equal(store_etcd.read(s, &news, &now), STORE_UNKNOWN);
	assert_int_equal(asked, 0);
	assert_string_equal(store_etcd.why(s), AT ": no memory to ask it");
	lost = CURLM_OK;
	assert_int_equal(store_etcd.read(s, &news, &now), STORE_UNKNOWN);
	assert_int_equal(asked, 1);
	assert_null(strstr(store_etcd.why(s), "memory"));
	store_etcd.close(s);
}

static void test_nor_watches_another(void **unused)
{
	static const struct store_under what[] = {{"limit/", false}};
	static const CURLoption needed[] = {CURLOPT_URL, CURLOPT_CAINFO};

	(void)unused;
	for (size_t i = 0; i < ARRAY(needed); i++) {
		struct store *s = open_with(0);

		assert_non_null(s);
		lacks = needed[i];
		assert_int_equal(store_etcd.watch(s, what, 1, 7, 1), -1);
		assert_int_equal(watched, 0);
		assert_string_equal(store_etcd.why(s), "no memory to watch the store");
		store_etcd.close(s);
	}
}

/* ---- what it is answered ---- */

#define HEADER "{\"header\":{\"revision\":\"9\"}"
#define KEY_A  "\"L3AvbGltaXQvYQ==\"" /* /p/limit/a */
#define KEY_M  "\"L3AvbWVtYmVyLzE=\"" /* /p/member/1 */
#define KV(key) \
	"{\"key\":" key ",\"value\":\"dg==\",\"create_revision\":\"3\",\"mod_revision\":\"4\"}"
#define RANGE(kvs)	 "{\"response_range\":{\"kvs\":[" kvs "],\"count\":\"1\"}}"
#define TXN(done, parts) HEADER ",\"succeeded\":" done ",\"responses\":[" parts "]}"
#define LEASE		 HEADER ",\"ID\":\"77\",\"TTL\":\"10\"}"

enum op { HOLD, READ, WRITE, DROP, PUT, PUT_STAYS, LIST, AGE, CLEAR, OPS };

/* As many as an array of jansson's has to grow for. */
static const struct store_put items[] = {
    {"item/1", "a", 1}, {"item/2", "b", 2}, {"item/3", "c", 3},
    {"item/4", "d", 4}, {"item/5", "e", 0}, {"item/6", "f", 6},
    {"item/7", "g", 7}, {"item/8", "h", 8}, {"item/9", "i", 9}};

static struct {
	struct store_snapshot now;
	uint64_t revision, age_ns, left_ns;
} got;

static struct store_list listed = {.under = "limit/", .after = 5};

static enum store_result ask(struct store *s, enum op op)
{
	static const struct store_news news = {.own = "member/1", .first = 5, .last = 6};
	bool stays = op == PUT_STAYS;

	memset(&got, 0, sizeof(got));
	given = script;
	switch (op) {
	case HOLD:
		return store_etcd.hold(s, "member/1", "v", 4, 10, &got.now);
	case READ:
		return store_etcd.read(s, &news, &got.now);
	case WRITE:
		return store_etcd.write(s, "limit/a", "v", 4, "member/1", 3, &got.revision);
	case DROP:
		return store_etcd.drop(s, "limit/a", 4);
	case PUT:
	case PUT_STAYS:
		return store_etcd.put(s, items, stays ? 2 : ARRAY(items), stays ? 0 : 10,
				      "member/1", 3, &got.revision, &got.now);
	case LIST:
		return store_etcd.list(s, &listed, &got.now);
	case AGE:
		return store_etcd.age(s, 77, &got.age_ns, &got.left_ns);
	case CLEAR:
		return store_etcd.clear(s, "item/", "member/1", 3);
	case OPS:
		break;
	}
	return STORE_UNKNOWN;
}

static const struct {
	struct answer answer[3];
	size_t n; /* keys that are there */
} well[OPS] = {
    [HOLD] = {{{.text = LEASE}, {.text = TXN("true", "{}," RANGE(KV(KEY_M)))}}, 1},
    [READ] = {{{.text = TXN("true", RANGE(KV(KEY_M)) "," RANGE(KV(KEY_A)) "," RANGE(KV(KEY_M)))}},
	      2},
    [WRITE] = {{{.text = TXN("true", "{}")}}, 0},
    [DROP] = {{{.text = TXN("true", "{}")}}, 0},
    [PUT] = {{{.text = LEASE}, {.text = TXN("true", "{}")}}, 0},
    [PUT_STAYS] = {{{.text = TXN("true", "{}")}}, 0},
    [LIST] = {{{.text = HEADER ",\"kvs\":[" KV(KEY_A) "]}"}}, 1},
    [AGE] = {{{.text = HEADER ",\"TTL\":\"7\",\"grantedTTL\":\"10\"}"}}, 0},
    [CLEAR] = {{{.text = TXN("true", "{}")}}, 0},
};

static void as_if(const struct answer *answer)
{
	memset(script, 0, sizeof(script));
	memcpy(script, answer, 3 * sizeof(*answer));
	memset(sent, 0, sizeof(sent));
}

static void test_answers(void **unused)
{
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	for (enum op op = 0; op < OPS; op++) {
		as_if(well[op].answer);
		assert_int_equal(ask(s, op), STORE_DONE);
		assert_int_equal(got.now.n, well[op].n);
		store_snapshot_free(&got.now);
	}
	as_if(well[AGE].answer);
	assert_int_equal(ask(s, AGE), STORE_DONE);
	assert_int_equal(got.age_ns, 3000000000);
	assert_int_equal(got.left_ns, 7000000000);
	store_etcd.close(s);
}

/* Wherever memory runs out: what is asked is asked whole, and what became of it is known. */
static void starve(struct store *s, enum op op, const struct answer *answer,
		   enum store_result expected, size_t keys)
{
	static char whole[2][sizeof(*sent)];
	uint32_t n;

	as_if(answer);
	starved_from(0, false);
	memory.on = true;
	assert_int_equal(ask(s, op), expected);
	memory.on = false;
	n = memory.n;
	store_snapshot_free(&got.now);
	memcpy(whole, sent, sizeof(whole));
	for (uint32_t i = 1; i <= 2 * n; i++) {
		enum store_result result;

		as_if(answer);
		starved_from((i + 1) / 2, i % 2);
		memory.on = true;
		result = ask(s, op);
		memory.on = false;
		if (result == expected)
			assert_int_equal(got.now.n, keys);
		else
			assert_non_null(strstr(store_etcd.why(s), "no memory"));
		assert_true(result == expected || result == STORE_UNKNOWN);
		for (int k = 0; k < 2; k++)
			if (*sent[k])
				assert_string_equal(sent[k], whole[k]);
		store_snapshot_free(&got.now);
	}
}

static void test_no_memory_to_ask(void **unused)
{
	static const struct answer refused[3] = {
	    {.text = TXN("false", RANGE(KV(KEY_A)) "," RANGE(""))}};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	for (enum op op = 0; op < OPS; op++)
		starve(s, op, well[op].answer, STORE_DONE, well[op].n);
	starve(s, PUT_STAYS, refused, STORE_REFUSED, 1);
	store_etcd.close(s);
}

static void test_no_memory_to_begin(void **unused)
{
	uint32_t n;

	(void)unused;
	curl_global_init(CURL_GLOBAL_DEFAULT); /* whose memory is not asked for anew */
	starved_from(0, false);
	memory.on = true;
	store_etcd.close(open_with(0));
	memory.on = false;
	n = memory.n;
	for (uint32_t i = 1; i <= n; i++) {
		starved_from(i, false);
		memory.on = true;
		assert_null(open_with(0));
		memory.on = false;
	}
	store_etcd.close(NULL);
}

#define ODD(key, rest) HEADER ",\"kvs\":[{\"key\":" key ",\"value\":\"dg==\"" rest "}]}"
#define MADE	       ",\"create_revision\":\"3\",\"mod_revision\":\"4\""
#define TTL(left, of)  HEADER ",\"TTL\":\"" left "\",\"grantedTTL\":\"" of "\"}"
#define NOT_ASKED      "keys that were not asked for"
#define NOT_SO	       "revisions or a term that cannot be: is it etcd?"
#define AS_OF(more)    "{\"header\":{" more "},\"succeeded\":true,\"responses\":["
#define THREE	       RANGE("") "," RANGE("") "," RANGE("") "]}"

static void test_strange_answers(void **unused)
{
	static const struct {
		enum op op;
		struct answer answer[3];
		const char *why; /* NULL: it is done; "": refused */
	} rows[] = {
	    {LIST, {{.text = ""}}, "no etcd with the v3 API: it says 200"},
	    {LIST, {{.text = "{}"}}, "no etcd with the v3 API: it says 200"},
	    {LIST, {{.text = "[]", .status = 404}}, "no etcd with the v3 API: it says 404"},
	    {LIST, {{.text = HEADER "}", .status = 500}}, "no etcd with the v3 API: it says 500"},
	    {LIST, {{.text = "too large", .status = 413}}, "HTTP status 413, and not from etcd"},
	    {LIST, {{.text = "", .status = 501}}, "no etcd with the v3 API: it says 501"},
	    {LIST, {{.text = "", .status = 502}}, "HTTP status 502, and not from etcd"},
	    {LIST, {{.text = "{}", .status = 504}}, "HTTP status 504, and not from etcd"},
	    {LIST, {{.text = "", .status = 505}}, "no etcd with the v3 API: it says 505"},
	    {LIST,
	     {{.text = "{\"error\":\"a\\nb\\u007fc\"}", .status = 400}},
	     "the store says: a b c"},
	    {LIST,
	     {{.text = "{\"message\":\"m\",\"code\":8}", .status = 429}},
	     "the store is full: m"},
	    {LIST,
	     {{.text = "x", .bytes = STORE_BYTES_MAX + 1u, .shook = true}},
	     "more than 16 MiB"},
	    {LIST,
	     {{.code = CURLE_COULDNT_CONNECT, .said = "nobody there"}},
	     "nobody there: is etcd there"},
	    {LIST,
	     {{.code = CURLE_RECV_ERROR,
	       .said = "error:0A000412:SSL routines::sslv3 alert bad certificate",
	       .shook = true}},
	     "no TLS with it: error:0A000412"},
	    {LIST,
	     {{.code = CURLE_RECV_ERROR,
	       .said = "error:0A000126:SSL routines::unexpected eof while reading",
	       .shook = true}},
	     "while reading: is etcd there, or does it want a certificate"},
	    {LIST,
	     {{.code = CURLE_GOT_NOTHING, .said = "an empty reply", .shook = true}},
	     "an empty reply: is etcd there, or does it want a certificate"},
	    {LIST,
	     {{.code = CURLE_SEND_ERROR, .said = "a broken pipe", .shook = true}},
	     "a broken pipe: is etcd there, or does it want a certificate"},
	    {LIST,
	     {{.code = CURLE_UNSUPPORTED_PROTOCOL, .said = "no HTTP", .shook = true}},
	     "no HTTP: is etcd there, and"},
	    {LIST,
	     {{.code = CURLE_RECV_ERROR, .said = "a reset", .shook = true, .status = 200}},
	     "a reset: is etcd there, and"},
	    {LIST,
	     {{.code = CURLE_RECV_ERROR, .said = "SSL routines", .shook = true, .status = 200}},
	     "SSL routines: is etcd there, and"},
	    {LIST, {{.code = CURLE_SSL_CERTPROBLEM, .said = "a file"}}, "no TLS with it: a file"},
	    {LIST, {{.code = CURLE_SSL_CACERT_BADFILE}}, "no TLS with it: "},
	    {LIST,
	     {{.code = CURLE_PEER_FAILED_VERIFICATION, .said = "not its"}},
	     "is not right: not its"},
	    {LIST, {{.code = CURLE_OPERATION_TIMEDOUT}}, "no answer within 100 ms"},
	    {LIST, {{.text = HEADER "}"}}, NULL},
	    {LIST, {{.text = HEADER ",\"kvs\":7}"}}, NULL},
	    {LIST, {{.text = HEADER ",\"more\":false}"}}, NULL},
	    {LIST, {{.text = ODD(KEY_A, MADE)}}, NULL},
	    {LIST, {{.text = ODD(KEY_A, ",\"create_revision\":3,\"mod_revision\":4")}}, NULL},
	    {LIST, {{.text = ODD("7", MADE)}}, NOT_ASKED},
	    {LIST, {{.text = ODD("\"L3A*\"", MADE)}}, NOT_ASKED},
	    {LIST, {{.text = ODD("\"L3A=\"", MADE)}}, NOT_ASKED},     /* /p */
	    {LIST, {{.text = ODD("\"L3EveA==\"", MADE)}}, NOT_ASKED}, /* /q/x */
	    {LIST, {{.text = ODD(KEY_A, ",\"create_revision\":\"3\"")}}, NOT_ASKED},
	    {LIST,
	     {{.text = ODD(KEY_A, ",\"create_revision\":[],\"mod_revision\":\"4\"")}},
	     NOT_ASKED},
	    {LIST,
	     {{.text = ODD(KEY_A, ",\"create_revision\":\"5\",\"mod_revision\":\"4\"")}},
	     NOT_SO},
	    {LIST,
	     {{.text = ODD(KEY_A, ",\"create_revision\":\"3\",\"mod_revision\":\"10\"")}},
	     NOT_SO},
	    {LIST, {{.text = ODD(KEY_A, ",\"create_revision\":9,\"mod_revision\":9")}}, NULL},
	    {LIST, {{.text = "{\"header\":{}}"}}, NOT_SO},
	    {LIST, {{.text = "{\"header\":{\"revision\":\"9223372036854775806\"}}"}}, NULL},
	    {LIST, {{.text = "{\"header\":{\"revision\":\"9223372036854775807\"}}"}}, NOT_SO},
	    {LIST, {{.text = "{\"header\":{\"revision\":-1}}"}}, NOT_SO},
	    {READ, {{.text = AS_OF("") THREE}}, NOT_SO},
	    {READ, {{.text = AS_OF("\"revision\":\"9223372036854775807\"") THREE}}, NOT_SO},
	    {READ, {{.text = AS_OF("\"revision\":\"9\"") THREE}}, NULL},
	    {WRITE, {{.text = AS_OF("\"revision\":\"9223372036854775807\"") "]}"}}, NOT_SO},
	    {WRITE, {{.text = AS_OF("") "]}"}}, NOT_SO},
	    {PUT_STAYS, {{.text = AS_OF("") "]}"}}, NOT_SO},
	    {PUT_STAYS,
	     {{.text = "{\"header\":{},\"responses\":[" RANGE("") "," RANGE("") "]}"}},
	     NOT_SO},
	    {LIST,
	     {{.text =
		   HEADER ",\"kvs\":[" KV(KEY_A) ",{\"key\":" KEY_M ",\"value\":\"*\"" MADE "}]}"}},
	     NOT_ASKED},
	    {READ, {{.text = TXN("true", RANGE("") "," RANGE(""))}}, "less than was asked for"},
	    {READ,
	     {{.text = TXN("true", RANGE("") "," RANGE(ODD("7", MADE)) "," RANGE(""))}},
	     NOT_ASKED},
	    {HOLD, {{.text = HEADER ",\"ID\":\"0\",\"TTL\":\"10\"}"}}, "grants no lease of 10 s"},
	    {HOLD, {{.text = HEADER ",\"ID\":\"77\",\"TTL\":\"9\"}"}}, "grants no lease of 10 s"},
	    {HOLD, {{.text = LEASE}, {.text = TXN("false", RANGE(""))}}, ""},
	    {HOLD, {{.text = LEASE}, {.text = NULL}}, "is etcd there"},
	    {PUT, {{.text = NULL}}, "is etcd there"},
	    {PUT, {{.text = LEASE}, {.text = TXN("false", RANGE(""))}}, NOT_ASKED},
	    {PUT_STAYS, {{.text = TXN("false", RANGE(KV(KEY_A)) "," RANGE(""))}}, ""},
	    {PUT_STAYS,
	     {{.text = TXN("false", RANGE(KV(KEY_A) "," KV(KEY_M)) "," RANGE(""))}},
	     NOT_ASKED},
	    {PUT_STAYS, {{.text = TXN("false", RANGE(ODD("7", MADE)) "," RANGE(""))}}, NOT_ASKED},
	    {WRITE, {{.text = TXN("false", "")}}, ""},
	    {AGE, {{.text = HEADER ",\"TTL\":\"-1\"}"}}, NULL},
	    {AGE, {{.text = HEADER "}"}}, NULL},
	    {AGE, {{.text = TTL("0", "9000000001")}}, "a lease's time that cannot be"},
	    {AGE, {{.text = TTL("1", "18446744073709551615")}}, "a lease's time that cannot be"},
	};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	for (size_t i = 0; i < ARRAY(rows); i++) {
		enum store_result result;

		as_if(rows[i].answer);
		result = ask(s, rows[i].op);
		assert_int_equal(result, !rows[i].why	? STORE_DONE
					 : *rows[i].why ? STORE_UNKNOWN
							: STORE_REFUSED);
		if (result == STORE_UNKNOWN) {
			if (!strstr(store_etcd.why(s), rows[i].why))
				fail_msg("%zu: %s", i, store_etcd.why(s));
			assert_int_equal(got.now.n, 0);
		}
		if (rows[i].op == AGE && !rows[i].why) /* it has gone */
			assert_true(got.age_ns == UINT64_MAX && got.left_ns == 0);
		store_snapshot_free(&got.now);
	}
	store_etcd.close(s);
}

#define NONE2 RANGE("") "," RANGE("")
#define NONE3 NONE2 "," RANGE("")

/* A lease that nothing was written with is given back; one that may be in use is not. */
static void test_a_lease_for_nothing(void **unused)
{
	static const struct {
		struct answer answer[3];
		enum store_result result;
		uint32_t asked;
	} rows[] = {
	    {{{.text = LEASE}, {.text = TXN("true", "{}")}}, STORE_DONE, 2},
	    {{{.text = LEASE},
	      {.text = TXN("false", NONE3 "," NONE3 "," NONE3)},
	      {.text = HEADER "}"}},
	     STORE_REFUSED,
	     3},
	    {{{.text = LEASE}, {.text = "too large", .status = 413}, {.text = HEADER "}"}},
	     STORE_UNKNOWN,
	     3},
	    {{{.text = LEASE}, {.text = "too large", .status = 413}, {.text = NULL}},
	     STORE_UNKNOWN,
	     3},
	    {{{.text = LEASE}, {.text = "gone", .status = 503}}, STORE_UNKNOWN, 2},
	    {{{.text = LEASE}, {.text = "called off", .status = 408}}, STORE_UNKNOWN, 2},
	    {{{.text = LEASE}, {.text = "called off", .status = 499}}, STORE_UNKNOWN, 2},
	    {{{.text = LEASE}, {.text = TXN("false", NONE3)}}, STORE_UNKNOWN, 2},
	    {{{.text = LEASE}, {.text = NULL}}, STORE_UNKNOWN, 2},
	};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	for (size_t i = 0; i < ARRAY(rows); i++) {
		asked = 0;
		as_if(rows[i].answer);
		assert_int_equal(ask(s, PUT), rows[i].result);
		assert_int_equal(asked, rows[i].asked);
		if (asked == 3) {
			assert_non_null(strstr(url, "/v3/lease/revoke"));
			assert_string_equal(sent[2], "{\"ID\":\"77\"}");
		}
		if (script[1].status == 413)
			assert_non_null(strstr(store_etcd.why(s), "413"));
		store_snapshot_free(&got.now);
	}
	store_etcd.close(s);
}

#define BY(lease)                                                                \
	RANGE("{\"key\":" KEY_A ",\"value\":\"dg==\",\"create_revision\":\"3\"," \
	      "\"mod_revision\":\"8\",\"lease\":\"" lease "\"}")
#define BY3(lease) BY(lease) "," BY(lease) "," BY(lease)

/*
 * The request came to it twice, and the first was done: the second is refused, and says by which
 * lease the keys go away. Where another has written since, that is news like all that comes later.
 */
static void test_written_by_a_request_before(void **unused)
{
	static const struct {
		struct answer answer[3];
		enum store_result result;
		uint32_t asked;
	} rows[] = {
	    {{{.text = LEASE}, {.text = TXN("false", BY3("77") "," BY3("77") "," BY3("77"))}},
	     STORE_DONE,
	     2},
	    {{{.text = LEASE}, {.text = TXN("false", NONE3 "," BY3("5") "," NONE2 "," BY("77"))}},
	     STORE_DONE,
	     2},
	    {{{.text = LEASE},
	      {.text = TXN("false", NONE3 "," BY3("0") "," BY3("5"))},
	      {.text = HEADER "}"}},
	     STORE_REFUSED,
	     3},
	};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	for (size_t i = 0; i < ARRAY(rows); i++) {
		asked = 0;
		as_if(rows[i].answer);
		assert_int_equal(ask(s, PUT), rows[i].result);
		assert_int_equal(asked, rows[i].asked);
		if (rows[i].result == STORE_DONE) {
			assert_int_equal(got.revision, 8);
			assert_int_equal(got.now.n, 0);
		}
		store_snapshot_free(&got.now);
	}
	store_etcd.close(s);
}

/* What stays has no lease that would tell: it is refused, and found as it is. */
static void test_what_stays_is_written_twice(void **unused)
{
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	asked = 0;
	as_if((struct answer[3]){{.text = TXN("false", BY("0") "," BY("0"))}});
	assert_int_equal(ask(s, PUT_STAYS), STORE_REFUSED);
	assert_int_equal(asked, 1);
	assert_int_equal(got.now.n, 2);
	store_snapshot_free(&got.now);
	store_etcd.close(s);
}

/*
 * libcurl asks again by itself where a connection ends before a byte of the answer. What was asked
 * may have been done: so what may be done once alone is not asked twice.
 */
static void test_what_is_asked_again(void **unused)
{
	static const struct {
		enum op op;
		int hangs_up; /* before that answer */
		bool again;
	} rows[] = {
	    {HOLD, 0, true},  {HOLD, 1, false},	 {READ, 0, true}, {WRITE, 0, false},
	    {DROP, 0, false}, {PUT, 0, true},	 {PUT, 1, false}, {PUT_STAYS, 0, false},
	    {LIST, 0, true},  {CLEAR, 0, false}, {AGE, 0, true},
	};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct answer answer[3] = {{.text = NULL}};
		int at = rows[i].hangs_up;

		asked = 0;
		memcpy(answer, well[rows[i].op].answer, at * sizeof(*answer));
		answer[at].hung_up = true;
		memcpy(answer + at + 1, well[rows[i].op].answer + at, (2 - at) * sizeof(*answer));
		as_if(answer);
		assert_int_equal(ask(s, rows[i].op), rows[i].again ? STORE_DONE : STORE_UNKNOWN);
		if (rows[i].again) {
			assert_string_equal(sent[at], sent[at + 1]);
			assert_true(*sent[at]);
		} else {
			assert_int_equal(asked, at + 1);
			assert_non_null(
			    strstr(store_etcd.why(s), AT ": it hung up before it answered: "));
		}
		store_snapshot_free(&got.now);
	}
	store_etcd.close(s);
}

/*
 * For as long as etcd grants a lease; and with more left than was granted, as just after another
 * leader was elected, it is as new, and has not gone.
 */
static void test_the_age_of_a_lease(void **unused)
{
	static const struct {
		struct answer answer[3];
		uint64_t age_s, left_s;
	} rows[] = {{{{.text = TTL("1", "9000000000")}}, 8999999999, 1},
		    {{{.text = TTL("10", "10")}}, 0, 10},
		    {{{.text = TTL("14", "10")}}, 0, 10},
		    {{{.text = TTL("9223372036", "10")}}, 0, 10}};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	for (size_t i = 0; i < ARRAY(rows); i++) {
		as_if(rows[i].answer);
		assert_int_equal(ask(s, AGE), STORE_DONE);
		assert_int_equal(got.age_ns, rows[i].age_s * 1000000000);
		assert_int_equal(got.left_ns, rows[i].left_s * 1000000000);
	}
	store_etcd.close(s);
}

/* One above all that there are would be the last that is heard of. */
static void test_a_term_that_cannot_be(void **unused)
{
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	as_if((struct answer[3]){
	    {.text = "{\"header\":{\"revision\":\"9\",\"raft_term\":\"18446744073709551615\"}}"}});
	assert_int_equal(ask(s, LIST), STORE_UNKNOWN);
	assert_non_null(strstr(store_etcd.why(s), NOT_SO));
	assert_int_equal(store_etcd.term(s), 0);
	store_etcd.close(s);
}

/* The leader's term, by whichever node: it does not go back. */
static void test_the_term(void **unused)
{
	static const char *const answers[] = {
	    "{\"header\":{\"revision\":\"9\",\"raft_term\":\"4\"}}",
	    "{\"header\":{\"revision\":\"9\",\"raft_term\":\"3\"}}",
	    "{\"header\":{\"revision\":\"9\"}}",
	    "{\"header\":{\"revision\":\"9\",\"raft_term\":5}}"};
	static const uint64_t terms[] = {4, 4, 4, 5};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	assert_int_equal(store_etcd.term(s), 0);
	for (size_t i = 0; i < ARRAY(answers); i++) {
		as_if((struct answer[3]){{.text = answers[i]}});
		assert_int_equal(ask(s, LIST), STORE_DONE);
		assert_int_equal(store_etcd.term(s), terms[i]);
		store_snapshot_free(&got.now);
	}
	store_etcd.close(s);
}

/* ---- what it watches ---- */

#define CREATED	  "{\"result\":{\"watch_id\":\"1\",\"created\":true}}\n"
#define FORGOT	  "{\"result\":{\"canceled\":true,\"compact_revision\":\"9\"}}\n"
#define EVENT(id) "{\"result\":{\"watch_id\":\"" id "\",\"events\":[{}]}}\n"

/* What is told by the first of three looks that tells something. */
static int look(struct store *s, const char *const *part_of)
{
	static const struct store_under what[] = {{"limit/", false}, {"member/", true}};
	int change = 0;

	memset(parts, 0, sizeof(parts));
	memcpy(parts, part_of, 3 * sizeof(*parts));
	part = parts;
	for (int k = 0; k < 3 && !change; k++)
		change = store_etcd.watch(s, what, ARRAY(what), 7, 0);
	return change;
}

static void test_what_changed(void **unused)
{
	static const struct {
		const char *part[3];
		bool hangs_up;
		int change;
	} rows[] = {
	    {{CREATED}, false, 0},
	    {{CREATED, EVENT("1")}, false, 1},
	    {{EVENT("2") EVENT("1")}, false, 3},
	    {{"{\"result\":{\"watch_id\":2,", "\"events\":[{}]}}\n"}, false, 2},
	    {{EVENT("0")}, false, 3}, /* what is not clear is all */
	    {{EVENT("3")}, false, 0},
	    {{EVENT("9")}, false, 3},
	    {{FORGOT}, false, 3},
	    {{EVENT("2") FORGOT}, true, 3},
	    {{EVENT("2") "no JSON\n"}, false, 3}, /* it ends, and has not told all */
	    {{EVENT("1")}, true, 3},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct store *s = open_with(0);
		int change;

		assert_non_null(s);
		hangs_up = rows[i].hangs_up;
		change = look(s, rows[i].part);
		if (change != rows[i].change)
			fail_msg("%zu: %d", i, change);
		store_etcd.close(s);
	}
}

/* In whichever way it is: nothing has changed, and whoever asks waits before it asks again. */
static void test_it_is_refused_to_watch(void **unused)
{
	static const struct {
		const char *part[3];
		bool hangs_up;
		CURLcode over;
		const char *why;
	} rows[] = {
	    {{NULL}, true, CURLE_RECV_ERROR, "Failure when receiving data from the peer"},
	    {{NULL}, true, CURLE_OK, "it says 404"},
	    {{"no line"}, true, CURLE_OK, "it says 404: no line"},
	    {{"404 page not found\n"}, true, CURLE_OK, "it says 404: 404 page not found"},
	    {{CREATED "no JSON\n" EVENT("1")}, false, CURLE_OK, "it says 404: no JSON"},
	    {{"{\"result\":{\"canceled\":true}}\n"},
	     false,
	     CURLE_OK,
	     "it says 404: {\"result\":{\"canceled\":true}}"},
	    {{"\n"}, false, CURLE_OK, "it says 404"},
	};
	const size_t begin = strlen(AT ": it cannot be watched: ");

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct store *s = open_with(0);
		int change;

		assert_non_null(s);
		script[0].status = 404;
		hangs_up = rows[i].hangs_up;
		over = rows[i].over;
		change = look(s, rows[i].part);
		if (change != -1)
			fail_msg("%zu: %d", i, change);
		assert_int_equal(strncmp(store_etcd.why(s), AT ": it cannot be watched: ", begin),
				 0);
		assert_string_equal(store_etcd.why(s) + begin, rows[i].why);
		store_etcd.close(s);
	}
}

/* A store that has forgotten what was to be watched is read once, and not without end. */
static void test_what_is_forgotten(void **unused)
{
	static const struct store_under what[] = {{"limit/", false}, {"member/", true}};
	static const struct {
		const char *part;
		int change;
	} rows[] = {{FORGOT, 3},	  {FORGOT, -1}, {FORGOT, -1},	       {EVENT("1"), 1},
		    {FORGOT, 3},	  {FORGOT, -1}, {"no JSON\n", -1},     {FORGOT, -1},
		    {CREATED FORGOT, -1}, {CREATED, 0}, {EVENT("2") FORGOT, 3}};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	memset(parts, 0, sizeof(parts));
	hangs_up = false;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		parts[0] = rows[i].part;
		part = parts;
		if (store_etcd.watch(s, what, ARRAY(what), 7, 0) != rows[i].change)
			fail_msg("%zu", i);
	}
	store_etcd.close(s);
}

/* Of what is watched none is left out. */
static void test_no_memory_to_watch(void **unused)
{
	static const struct store_under what[] = {{"limit/", false}, {"member/", true}};
	static char whole[sizeof(*sent)];
	uint32_t n = 0;

	(void)unused;
	memset(parts, 0, sizeof(parts));
	part = parts;
	hangs_up = false;
	for (uint32_t i = 0; i <= n; i++) {
		struct store *s = open_with(0);
		int change;

		assert_non_null(s);
		starved_from(i, false);
		memory.on = true;
		change = store_etcd.watch(s, what, ARRAY(what), 7, 0);
		memory.on = false;
		if (!i) {
			n = memory.n;
			strcpy(whole, sent[0]);
			assert_non_null(strstr(whole, "NOPUT"));
		}
		if (!change)
			assert_string_equal(sent[0], whole);
		else
			assert_string_equal(store_etcd.why(s), "no memory to watch the store");
		store_etcd.close(s);
	}
	assert_true(n > 30);
}

static unsigned int lines_of(const char *text)
{
	unsigned int n = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

/*
 * A policy begins to share items, or ends to, while the agent runs: then that is watched, too, and
 * what has changed meanwhile is read.
 */
static void test_more_is_watched(void **unused)
{
	static const struct store_under what[] = {{"limit/", false}, {"item/", false}};
	static const struct {
		size_t n;
		int change;
		unsigned int watched, lines;
	} rows[] = {{1, 0, 1, 1}, {2, 3, 2, 2}, {2, 0, 2, 2}, {1, 1, 3, 1}, {1, 0, 3, 1}};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	memset(parts, 0, sizeof(parts));
	part = parts;
	hangs_up = false;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		assert_int_equal(store_etcd.watch(s, what, rows[i].n, 7 + i, 0), rows[i].change);
		assert_int_equal(watched, rows[i].watched);
		assert_int_equal(lines_of(sent[0]), rows[i].lines);
	}
	assert_non_null(strstr(sent[0], "\"start_revision\":\"11\""));
	store_etcd.close(s);
}

/* A store that is cut off hangs up on nobody. Where a call to it fails, it is watched elsewhere. */
static void test_a_watch_that_may_be_dead(void **unused)
{
	static const struct store_options options = {.endpoint = {"http://a", "http://b"},
						     .endpoints = 2,
						     .prefix = "/p/",
						     .first = "limit/",
						     .last = "member/",
						     .timeout_ms = 100};
	static const struct store_under what[] = {{"limit/", false}};
	char why[STORE_WHY];
	struct store *s;

	(void)unused;
	lacks = 0;
	watched = 0;
	memset(parts, 0, sizeof(parts));
	part = parts;
	hangs_up = false;
	s = store_etcd.open(&options, why);
	assert_non_null(s);
	as_if((struct answer[3]){{.code = CURLE_OPERATION_TIMEDOUT}});
	assert_int_equal(ask(s, LIST), STORE_UNKNOWN); /* before anything is watched */
	assert_int_equal(store_etcd.watch(s, what, 1, 7, 0), 0);
	assert_string_equal(url, "http://b/v3/watch");
	as_if(well[LIST].answer);
	assert_int_equal(ask(s, LIST), STORE_DONE);
	store_snapshot_free(&got.now);
	assert_int_equal(store_etcd.watch(s, what, 1, 7, 0), 0);
	as_if((struct answer[3]){{.code = CURLE_OPERATION_TIMEDOUT}});
	assert_int_equal(ask(s, LIST), STORE_UNKNOWN);
	assert_int_equal(watched, 1);
	assert_int_equal(store_etcd.watch(s, what, 1, 7, 0), -1);
	assert_int_equal(store_etcd.watch(s, what, 1, 7, 0), 0);
	assert_int_equal(watched, 2);
	assert_string_equal(url, "http://a/v3/watch");
	store_etcd.close(s);
}

/* One that tells nothing is ended by who knows it: the next has a connection of its own. */
static void test_a_watch_is_hung_up(void **unused)
{
	static const struct store_under what[] = {{"limit/", false}};
	struct store *s = open_with(0);

	(void)unused;
	memset(parts, 0, sizeof(parts));
	part = parts;
	hangs_up = false;
	fresh = left = 0;
	store_etcd.hang_up(s); /* nothing is watched */
	for (unsigned int k = 1; k <= 2; k++) {
		assert_int_equal(store_etcd.watch(s, what, 1, 7, 0), 0);
		assert_int_equal(store_etcd.watch(s, what, 1, 7, 0), 0);
		assert_int_equal(watched, k);
		assert_int_equal(fresh, k);
		assert_int_equal(left, k);
		store_etcd.hang_up(s);
		assert_non_null(
		    strstr(store_etcd.why(s), AT ": it cannot be watched: it did not "));
	}
	store_etcd.close(s);
}

#define MORE HEADER ",\"more\":true,\"kvs\":["

/* Pages of one moment, from behind the last key: no answer is of any length. */
static void test_a_list_by_pages(void **unused)
{
	static const struct answer page[3] = {{.text = MORE KV(KEY_A) "]}"}},
				   empty[3] = {{.text = MORE "]}"}};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	listed = (struct store_list){.under = "limit/"};
	as_if(page);
	assert_int_equal(ask(s, LIST), STORE_DONE);
	assert_true(got.now.more);
	assert_int_equal(got.now.revision, 9);
	assert_string_equal(sent[0], "{\"key\":\"L3AvbGltaXQv\",\"range_end\":\"L3AvbGltaXQw\","
				     "\"limit\":\"4096\"}");
	store_snapshot_free(&got.now);
	listed = (struct store_list){"limit/", 5, "limit/a", strlen("limit/a"), 8};
	starve(s, LIST, page, STORE_DONE, 1);
	as_if(well[LIST].answer);
	assert_int_equal(ask(s, LIST), STORE_DONE);
	assert_false(got.now.more);
	assert_int_equal(got.now.revision, 8); /* of which it is */
	assert_string_equal(sent[0], "{\"key\":\"L3AvbGltaXQvYQA=\","
				     "\"range_end\":\"L3AvbGltaXQw\",\"limit\":\"4096\","
				     "\"min_mod_revision\":\"6\",\"revision\":\"8\"}");
	store_snapshot_free(&got.now);
	as_if(empty); /* it would never end */
	assert_int_equal(ask(s, LIST), STORE_UNKNOWN);
	assert_non_null(strstr(store_etcd.why(s), NOT_ASKED));
	listed = (struct store_list){.under = "limit/", .after = 5};
	store_etcd.close(s);
}

#define KEY_A0 "\"L3AvbGltaXQvYQB4\"" /* /p/limit/a, and behind a byte of 0 an x */

/* A key with a byte of 0 is not that of the name before it, and is no end of a list. */
static void test_a_key_with_a_byte_of_0(void **unused)
{
	static const struct answer alone[3] = {{.text = MORE KV(KEY_A0) "]}"}},
				   first[3] = {{.text = MORE KV(KEY_A0) "," KV(KEY_A) "]}"}};
	struct store *s = open_with(0);
	size_t len;

	(void)unused;
	assert_non_null(s);
	listed = (struct store_list){.under = "limit/"};
	as_if(first);
	assert_int_equal(ask(s, LIST), STORE_DONE);
	assert_ptr_equal(store_find(&got.now, "limit/a"), &got.now.at[1]);
	store_snapshot_free(&got.now);
	as_if(alone);
	assert_int_equal(ask(s, LIST), STORE_DONE);
	assert_null(store_find(&got.now, "limit/a"));
	len = got.now.at[0].key_len;
	assert_int_equal(len, strlen("limit/a") + 2);
	assert_memory_equal(got.now.at[0].key, "limit/a\0x", len + 1);
	store_snapshot_free(&got.now);
	listed = (struct store_list){"limit/", 0, "limit/a\0x", len, 8};
	as_if(well[LIST].answer);
	assert_int_equal(ask(s, LIST), STORE_DONE);
	assert_non_null(strstr(sent[0], "{\"key\":\"L3AvbGltaXQvYQB4AA==\","));
	store_snapshot_free(&got.now);
	listed = (struct store_list){.under = "limit/", .after = 5};
	store_etcd.close(s);
}

/* The own key is there once; another that begins so is another. */
static void test_own_with_a_byte_of_0(void **unused)
{
	static const struct answer news[3] = {
	    {.text = TXN("true", RANGE(KV(KEY_M)) "," RANGE("") "," RANGE(
				     KV("\"L3AvbWVtYmVyLzEAeA==\"") "," KV(KEY_M)))}};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	as_if(news);
	assert_int_equal(ask(s, READ), STORE_DONE);
	assert_int_equal(got.now.n, 2);
	assert_ptr_equal(store_find(&got.now, "member/1"), &got.now.at[0]);
	assert_memory_equal(got.now.at[1].key, "member/1\0x", sizeof("member/1\0x"));
	store_snapshot_free(&got.now);
	store_etcd.close(s);
}

/* Of addresses that end in slashes. */
static void test_an_address_is_joined(void **unused)
{
	static const struct store_options options = {.endpoint = {"http://a:2379//", ""},
						     .endpoints = 2,
						     .prefix = "/p/",
						     .first = "limit/",
						     .last = "member/",
						     .timeout_ms = 100};
	char why[STORE_WHY];
	struct store *s;

	(void)unused;
	lacks = 0;
	s = store_etcd.open(&options, why);
	assert_non_null(s);
	as_if(well[LIST].answer);
	assert_int_equal(ask(s, LIST), STORE_DONE);
	assert_string_equal(url, "http://a:2379/v3/kv/range");
	store_snapshot_free(&got.now);
	store_etcd.close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_it_knows_whom_to_trust),
	    cmocka_unit_test(test_it_asks_for_no_pass_phrase),
	    cmocka_unit_test(test_whom_else_it_trusts),
	    cmocka_unit_test(test_it_knows_whom_it_asks),
	    cmocka_unit_test(test_nor_watches_another),
	    cmocka_unit_test(test_answers),
	    cmocka_unit_test(test_no_memory_to_begin),
	    cmocka_unit_test(test_no_memory_to_ask),
	    cmocka_unit_test(test_strange_answers),
	    cmocka_unit_test(test_a_lease_for_nothing),
	    cmocka_unit_test(test_written_by_a_request_before),
	    cmocka_unit_test(test_what_stays_is_written_twice),
	    cmocka_unit_test(test_what_is_asked_again),
	    cmocka_unit_test(test_the_age_of_a_lease),
	    cmocka_unit_test(test_a_term_that_cannot_be),
	    cmocka_unit_test(test_the_term),
	    cmocka_unit_test(test_what_changed),
	    cmocka_unit_test(test_it_is_refused_to_watch),
	    cmocka_unit_test(test_what_is_forgotten),
	    cmocka_unit_test(test_no_memory_to_watch),
	    cmocka_unit_test(test_more_is_watched),
	    cmocka_unit_test(test_a_watch_that_may_be_dead),
	    cmocka_unit_test(test_a_watch_is_hung_up),
	    cmocka_unit_test(test_a_list_by_pages),
	    cmocka_unit_test(test_a_key_with_a_byte_of_0),
	    cmocka_unit_test(test_own_with_a_byte_of_0),
	    cmocka_unit_test(test_an_address_is_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
