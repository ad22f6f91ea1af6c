/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libcurl, once it is needed: see late.h. An option, and where an answer goes, is a pointer or a
 * long: the callers of curl_easy_setopt here use no other kind.
 */
#include <curl/curl.h>
#include <stdarg.h>

#include "cli/late.h"

static struct late_library curl = {.soname = "libcurl.so.4"};

#define CURL_FUNCTION(f) LATE(&curl, f)

#undef curl_easy_setopt
#undef curl_easy_getinfo

CURLcode curl_global_init(long flags)
{
	return CURL_FUNCTION(curl_global_init)(flags);
}

CURL *curl_easy_init(void)
{
	return CURL_FUNCTION(curl_easy_init)();
}

void curl_easy_cleanup(CURL *easy)
{
	CURL_FUNCTION(curl_easy_cleanup)(easy);
}

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	va_list more;
	void *value;

	va_start(more, option);
	value = va_arg(more, void *);
	va_end(more);
	return CURL_FUNCTION(curl_easy_setopt)(easy, option, value);
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
	va_list more;
	void *to;

	va_start(more, info);
	to = va_arg(more, void *);
	va_end(more);
	return CURL_FUNCTION(curl_easy_getinfo)(easy, info, to);
}

const char *curl_easy_strerror(CURLcode code)
{
	return CURL_FUNCTION(curl_easy_strerror)(code);
}

CURLM *curl_multi_init(void)
{
	return CURL_FUNCTION(curl_multi_init)();
}

CURLMcode curl_multi_cleanup(CURLM *multi)
{
	return CURL_FUNCTION(curl_multi_cleanup)(multi);
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	return CURL_FUNCTION(curl_multi_add_handle)(multi, easy);
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
	return CURL_FUNCTION(curl_multi_remove_handle)(multi, easy);
}

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
	return CURL_FUNCTION(curl_multi_perform)(multi, running);
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd extra[], unsigned int n, int timeout_ms,
			  int *some)
{
	return CURL_FUNCTION(curl_multi_poll)(multi, extra, n, timeout_ms, some);
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
	return CURL_FUNCTION(curl_multi_info_read)(multi, left);
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
	return CURL_FUNCTION(curl_slist_append)(list, text);
}

void curl_slist_free_all(struct curl_slist *list)
{
	CURL_FUNCTION(curl_slist_free_all)(list);
}
