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

#define URL "http://127.0.0.1:8080"

static char asked[4096]; /* the last URL; "": none */
static bool no_memory;
static struct policy_error error;

#undef curl_easy_setopt
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	va_list more;

	(void)easy;
	va_start(more, option);
	if (option == CURLOPT_URL)
		snprintf(asked, sizeof(asked), "%s", va_arg(more, const char *));
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

/* Nothing can be sent. */
CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
	(void)multi;
	*running = 0;
	return CURLM_INTERNAL_ERROR;
}

static int ask(const struct lapi_options *options, bool whole)
{
	struct lapi *l = lapi_open(options, &error);
	const char *answer;
	size_t len;
	int result;

	assert_non_null(l);
	*asked = 0;
	result = lapi_ask(l, whole, -1, &answer, &len, &error);
	lapi_close(l);
	return result;
}

static void test_what_is_asked(void **unused)
{
	struct lapi_options options = {.url = URL "/", .key = "k", .stall_s = 1};

	(void)unused;
	no_memory = false;
	assert_int_equal(ask(&options, true), -1);
	assert_string_equal(error.text, URL "/: libcurl cannot ask");
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
	const struct lapi_options options = {
	    .url = URL, .key = "k", .origins = "cscli", .stall_s = 1};

	(void)unused;
	no_memory = true;
	assert_int_equal(ask(&options, true), -1);
	assert_string_equal(error.text, URL ": no memory for the question");
	assert_string_equal(asked, "");
}

static void test_an_address_that_is_too_long(void **unused)
{
	char long_one[3000];
	const struct lapi_options options = {.url = long_one, .key = "k", .stall_s = 1};

	(void)unused;
	no_memory = false;
	memset(long_one, 'a', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = 0;
	assert_int_equal(ask(&options, true), -1);
	assert_non_null(strstr(error.text, ": the address is too long"));
	assert_string_equal(asked, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_is_asked),
	    cmocka_unit_test(test_no_memory_for_the_origins),
	    cmocka_unit_test(test_an_address_that_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
