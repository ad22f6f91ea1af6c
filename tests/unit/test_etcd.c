/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The store's client without memory for what libcurl keeps: whom it trusts, and whom it asks. It
 * asks nobody then, and says why. Nothing is sent here: libcurl's part is this program's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "fleet/store.h"

#define AT "https://127.0.0.1:2379"

static CURLoption lacks; /* for which there is no memory; 0: none */
static unsigned int asked, watched;

#undef curl_easy_setopt
CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
	(void)curl;
	return option == lacks ? CURLE_OUT_OF_MEMORY : CURLE_OK;
}

CURLcode curl_easy_perform(CURL *curl)
{
	(void)curl;
	asked++;
	return CURLE_COULDNT_CONNECT;
}

/* As after a call before, of which hands were shaken. */
#undef curl_easy_getinfo
CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
	va_list more;

	(void)curl;
	va_start(more, info);
	if (info == CURLINFO_APPCONNECT_TIME_T)
		*va_arg(more, curl_off_t *) = 1;
	va_end(more);
	return CURLE_OK;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *curl)
{
	(void)multi;
	(void)curl;
	watched++;
	return CURLM_OK;
}

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
	asked = watched = 0;
	s = store_etcd.open(&options, why);
	if (!s)
		assert_string_equal(why, "no memory for the store's client");
	return s;
}

static void test_it_knows_whom_to_trust(void **unused)
{
	static const CURLoption needed[] = {CURLOPT_CAINFO, CURLOPT_SSLCERT,
					    CURLOPT_SSLKEY, CURLOPT_PROTOCOLS_STR,
					    CURLOPT_PROXY,  CURLOPT_SSLVERSION};
	struct store *s = open_with(0);

	(void)unused;
	assert_non_null(s);
	store_etcd.close(s);
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		assert_null(open_with(needed[i]));
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
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		struct store *s = open_with(0);

		assert_non_null(s);
		lacks = needed[i];
		assert_int_equal(store_etcd.watch(s, what, 1, 7, 1), -1);
		assert_int_equal(watched, 0);
		assert_string_equal(store_etcd.why(s), "no memory to watch the store");
		store_etcd.close(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_it_knows_whom_to_trust),
	    cmocka_unit_test(test_it_knows_whom_it_asks),
	    cmocka_unit_test(test_nor_watches_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
