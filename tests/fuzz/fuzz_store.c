/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers of a fleet's store, or of whatever sits at its address: they are refused with a reason,
 * or what lies there is whole and under the prefix that was asked for. In place of libcurl are
 * functions that answer each call with the next text, so nothing is sent.
 */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdarg.h>

#include "fleet/store.h"
#include "fuzz.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

#define GRANTED "{\"header\":{\"revision\":\"5\"},\"ID\":\"7\",\"TTL\":\"10\"}"

struct easy {
	curl_write_callback write;
	void *to;
	bool watches;
};

static struct fuzz_input *input;
static bool granting;	      /* the next call asks for a lease, and gets one */
static struct easy *watching; /* of which nothing has been said yet */
static struct easy *calling;  /* NULL: nothing is asked */
static CURLcode called;

static CURLcode answer(struct easy *easy, const char *text, size_t len)
{
	char *copy = fuzz_copy(text, len);
	size_t half = len / 2; /* it comes in parts */
	bool taken;

	taken = easy->write(copy, 1, half, easy->to) == half &&
		easy->write(copy + half, 1, len - half, easy->to) == len - half;
	free(copy);
	return taken ? CURLE_OK : CURLE_WRITE_ERROR;
}

static CURLcode answer_next(struct easy *easy)
{
	char *text = fuzz_text(input);
	CURLcode code = answer(easy, text, strlen(text));

	free(text);
	return code;
}

CURL *curl_easy_init(void)
{
	return calloc(1, sizeof(struct easy));
}

void curl_easy_cleanup(CURL *curl)
{
	free(curl);
}

CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
	struct easy *easy = curl;
	va_list args;

	va_start(args, option);
	if (option == CURLOPT_WRITEFUNCTION)
		easy->write = va_arg(args, curl_write_callback);
	else if (option == CURLOPT_WRITEDATA)
		easy->to = va_arg(args, void *);
	easy->watches |= option == CURLOPT_POSTFIELDS;
	va_end(args);
	return CURLE_OK;
}

static CURLcode call(struct easy *easy)
{
	if (!granting)
		return answer_next(easy);
	granting = false;
	return answer(easy, GRANTED, strlen(GRANTED));
}

CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
	va_list args;

	(void)curl;
	va_start(args, info);
	if (info == CURLINFO_RESPONSE_CODE)
		*va_arg(args, long *) = 200;
	else
		*va_arg(args, curl_off_t *) = 0;
	va_end(args);
	return CURLE_OK;
}

CURLM *curl_multi_init(void)
{
	return calloc(1, 1);
}

CURLMcode curl_multi_cleanup(CURLM *multi)
{
	free(multi);
	return CURLM_OK;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *curl)
{
	struct easy *easy = curl;

	(void)multi;
	if (easy->watches)
		watching = easy;
	else
		calling = easy;
	return CURLM_OK;
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *curl)
{
	(void)multi;
	if (curl == watching)
		watching = NULL;
	else
		calling = NULL;
	return CURLM_OK;
}

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
	(void)multi;
	*running = !calling && watching && input->left;
	if (calling)
		called = call(calling);
	else if (*running)
		(void)answer_next(watching);
	return CURLM_OK;
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
	static CURLMsg said;

	(void)multi;
	*left = 0;
	said = (CURLMsg){.msg = CURLMSG_DONE, .data.result = called};
	return calling ? &said : NULL;
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd *extra, unsigned int n, int timeout_ms,
			  int *ready)
{
	(void)multi;
	(void)extra;
	(void)n;
	(void)timeout_ms;
	(void)ready;
	return CURLM_OK;
}

static void is_told(struct store *s)
{
	const char *why = store_etcd.why(s);

	HOLDS(*why && memchr(why, 0, STORE_WHY));
	for (; *why; why++)
		HOLDS((unsigned char)*why >= ' ' && *why != 127);
}

static void is_whole(struct store *s, enum store_result result, struct store_snapshot *now)
{
	if (result == STORE_UNKNOWN) {
		HOLDS(!now->n);
		is_told(s);
	}
	for (size_t i = 0; i < now->n; i++) {
		const struct store_entry *e = &now->at[i];

		HOLDS(e->key && e->value && !e->value[e->len] && e->created && e->revision);
		HOLDS(!e->key[e->key_len]);
		HOLDS(store_is_of(e, e->key) == (strlen(e->key) == e->key_len));
		HOLDS(!store_is_of(e, e->key) || store_find(now, e->key));
	}
	store_snapshot_free(now);
}

/* Answers, one after the other, with zero bytes between them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct store_options options = {.endpoint = {"http://10.0.0.1:2379"},
						     .endpoints = 1,
						     .prefix = "p/",
						     .first = "limit/",
						     .last = "member/",
						     .timeout_ms = 1};
	static const struct store_under what[] = {{"limit/", false}, {"member/", true}};
	struct fuzz_input in = {data, size};
	char why[STORE_WHY];
	struct store *s = store_etcd.open(&options, why);
	const struct store_news news = {"member/a", 3, 2};
	struct store_snapshot now;
	enum store_result result;
	uint64_t revision;

	HOLDS(s);
	input = &in;
	is_whole(s, store_etcd.read(s, &news, &now), &now);
	granting = true;
	result = store_etcd.hold(s, "member/a", "x", 1, 10, &now);
	is_whole(s, result, &now);
	if (store_etcd.write(s, "limit/a", "x", 1, "member/a", 1, &revision) == STORE_UNKNOWN)
		is_told(s);
	if (store_etcd.drop(s, "member/a", 1) == STORE_UNKNOWN)
		is_told(s);
	(void)store_etcd.hold(s, "member/a", "x", 1, 10,
			      &now); /* as long as it grants what it says */
	store_snapshot_free(&now);
	while (in.left)
		if (store_etcd.watch(s, what, 2, 1, 0) < 0)
			break;
	store_etcd.close(s);
	return 0;
}
