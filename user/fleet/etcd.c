/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * etcd's v3 API, as JSON over HTTP (its gateway; 3.4 and later). Source: etcd's api_reference_v3
 * and api_grpc_gateway.
 *
 * A session's key is renewed by a new lease each time, and never by LeaseKeepAlive. A lease is
 * granted by consensus, and a leader that has been deposed can grant none. But it can answer a
 * keep-alive that the new leader does not know of, and the lease ends before its holder thinks
 * (etcd names grant, revoke and put as linearizable, and not keep-alive: api_guarantees). Leases
 * that no key has any more end by themselves.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fleet/json.h"
#include "fleet/store.h"

#define URL_MAX	 512
#define SAID_MAX 100 /* bytes of what is said in place of changes */
#define NO_SPACE 8   /* gRPC's RESOURCE_EXHAUSTED */

/*
 * Of a name with several addresses, libcurl gives each but the last half of the time that is left.
 * It sees that this is over only when it is called: later than the whole time, if that is left to
 * curl_easy_perform.
 */
#define CONNECT_MS 50

/* Above it is no revision or term of etcd's: it counts them from 1 on, in 63 bits. */
#define NUMBER_MAX (INT64_MAX - 1)
#define TTL_MAX_S  9000000000ull /* etcd grants no lease for longer; in ns that has room */

/* What is sent; `once`: it may have been done, and is not to be done again. */
struct sending {
	const char *text;
	size_t len, at;
	bool once;
};

struct body {
	char *text;
	size_t len;
	bool overflow;
	bool lacks; /* memory for it */
};

struct store {
	struct store_options options;
	char *endpoint[STORE_ENDPOINTS_MAX];
	char *prefix, *first, *last, *ca, *cert, *key;
	size_t at; /* the endpoint that answered last */
	CURL *calls, *watch;
	CURLM *calling, *multi; /* of the one, and of the other */
	struct curl_slist *headers;
	char *watch_body;
	size_t watches; /* what `watch` has, of the caller's */
	bool failing;	/* a call has failed since it began: it may be dead, and not show it */
	bool forgot;	/* the store what was to be watched, and it has told of no change since */
	struct body watched;
	uint64_t term; /* of the last leader that was heard of: each begins all leases anew */
	char failed[CURL_ERROR_SIZE], watch_failed[CURL_ERROR_SIZE];
	char why[STORE_WHY];
	long status; /* of the last call's answer; 0: there was none */
};

/* --- base64, as JSON has bytes ---------------------------------------------------------------- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *encode(const char *text, size_t len)
{
	char *out = malloc((len + 2) / 3 * 4 + 1), *to = out;

	for (size_t i = 0; out && i < len; i += 3) {
		uint32_t n = (uint8_t)text[i] << 16;

		n |= i + 1 < len ? (uint8_t)text[i + 1] << 8 : 0;
		n |= i + 2 < len ? (uint8_t)text[i + 2] : 0;
		*to++ = digits[n >> 18];
		*to++ = digits[n >> 12 & 63];
		*to++ = i + 1 < len ? digits[n >> 6 & 63] : '=';
		*to++ = i + 2 < len ? digits[n & 63] : '=';
	}
	if (out)
		*to = 0;
	return out;
}

#define NO_BASE64 SIZE_MAX

/* NULL: no memory. Of what is no base64, *len is NO_BASE64. */
static char *decode(const char *text, size_t *len)
{
	size_t n = strlen(text);
	char *out = malloc(n / 4 * 3 + 4);
	uint32_t bits = 0, have = 0;

	*len = 0;
	for (size_t i = 0; out && i < n && text[i] != '='; i++) {
		const char *digit = strchr(digits, text[i]);

		if (!digit) {
			*len = NO_BASE64;
			return out;
		}
		bits = bits << 6 | (uint32_t)(digit - digits);
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[(*len)++] = (char)(bits >> have);
		}
	}
	if (out)
		out[*len] = 0;
	return out;
}

/* --- calls ------------------------------------------------------------------------------------ */

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	struct body *body = arg;
	char *grown;

	size *= n;
	if (body->len + size > STORE_BYTES_MAX) {
		body->overflow = true;
		return 0;
	}
	grown = realloc(body->text, body->len + size + 1);
	if (!grown) {
		body->lacks = true;
		return 0;
	}
	body->text = grown;
	memcpy(grown + body->len, data, size);
	body->len += size;
	grown[body->len] = 0;
	return size;
}

static size_t give(char *to, size_t size, size_t n, void *arg)
{
	struct sending *sending = arg;
	size_t left = sending->len - sending->at;

	n *= size;
	n = n < left ? n : left;
	memcpy(to, sending->text + sending->at, n);
	sending->at += n;
	return n;
}

/*
 * Where a connection of before ends without a byte of an answer, libcurl sends the request again by
 * itself, though it may have been done: from its beginning, if this lets it.
 */
static int give_again(void *arg, curl_off_t offset, int origin)
{
	struct sending *sending = arg;

	(void)offset;
	(void)origin;
	sending->at = 0;
	return sending->once ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

__attribute__((format(printf, 2, 3))) static enum store_result fail(struct store *s,
								    const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->why, sizeof(s->why), format, args);
	va_end(args);
	for (char *c = s->why; *c; c++) /* of what others say, one line */
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = ' ';
	return STORE_UNKNOWN;
}

/* False: no memory. Without one of these it would trust, or follow, whom it should not. */
static bool set_up(struct store *s, CURL *curl, char *failed)
{
	bool lacks = false;

	lacks |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	lacks |= curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L); /* a name may take a minute */
	lacks |= curl_easy_setopt(curl, CURLOPT_HTTPHEADER, s->headers);
	lacks |= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	lacks |= curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, failed);
	lacks |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	lacks |= curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	lacks |= curl_easy_setopt(curl, CURLOPT_PROXY, "");
	lacks |= curl_easy_setopt(curl, CURLOPT_DNS_CACHE_TIMEOUT, 0L); /* the store may move */
	lacks |= curl_easy_setopt(curl, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
	if (s->ca) { /* and nobody else, and as the file is at each connection */
		lacks |= curl_easy_setopt(curl, CURLOPT_CAINFO, s->ca);
		lacks |= curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
		lacks |= curl_easy_setopt(curl, CURLOPT_CA_CACHE_TIMEOUT, 0L);
		lacks |= curl_easy_setopt(curl, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	}
	if (s->cert)
		lacks |= curl_easy_setopt(curl, CURLOPT_SSLCERT, s->cert);
	if (s->key) { /* of one with a pass phrase nobody is asked, who may never answer */
		lacks |= curl_easy_setopt(curl, CURLOPT_SSLKEY, s->key);
		lacks |= curl_easy_setopt(curl, CURLOPT_KEYPASSWD, "");
	}
	return !lacks;
}

/* Of calls: no string, which libcurl would send again without asking. */
static bool set_up_calls(struct store *s)
{
	bool lacks = !set_up(s, s->calls, s->failed);

	lacks |= curl_easy_setopt(s->calls, CURLOPT_POST, 1L);
	lacks |= curl_easy_setopt(s->calls, CURLOPT_READFUNCTION, give);
	lacks |= curl_easy_setopt(s->calls, CURLOPT_SEEKFUNCTION, give_again);
	return !lacks;
}

static enum store_result tls_failed(struct store *s, CURLcode code)
{
	const char *at = s->endpoint[s->at];
	const char *said = s->failed[0] ? s->failed : curl_easy_strerror(code);

	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return fail(
		    s, "%s: its certificate is not right: %s: see fleet.ca, and the names in it",
		    at, said);
	return fail(s, "%s: no TLS with it: %s: see fleet.cert, fleet.key and fleet.ca", at, said);
}

static enum store_result unanswered(struct store *s, const char *said)
{
	return fail(s, "%s: %s: is etcd there, and may this host reach it?", s->endpoint[s->at],
		    said);
}

/*
 * Before a byte of an answer, after hands were shaken: a host whose certificate is not taken learns
 * so by an alert then, or by a connection that ends.
 */
static enum store_result shook_and_failed(struct store *s, CURLcode code, const char *said)
{
	if (strstr(said, "SSL routines") && !strstr(said, "unexpected eof"))
		return tls_failed(s, code);
	if (code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR)
		return fail(s,
			    "%s: %s: is etcd there, or does it want a certificate: see fleet.cert "
			    "and fleet.key",
			    s->endpoint[s->at], said);
	return unanswered(s, said);
}

static enum store_result call_failed(struct store *s, CURLcode code, long status,
				     const struct body *body)
{
	const char *at = s->endpoint[s->at];
	const char *said = s->failed[0] ? s->failed : curl_easy_strerror(code);
	curl_off_t shook = 0;

	if (body->overflow)
		return fail(s, "%s: an answer of more than %u MiB: look what lies under %s", at,
			    STORE_BYTES_MAX >> 20, s->prefix);
	switch (body->lacks ? CURLE_OUT_OF_MEMORY : code) {
	case CURLE_OUT_OF_MEMORY:
		return fail(s, "%s: no memory to ask it", at);
	case CURLE_OPERATION_TIMEDOUT:
		return fail(s, "%s: no answer within %u ms: look at its load, and at the way to it",
			    at, s->options.timeout_ms);
	case CURLE_SEND_FAIL_REWIND:
		return fail(
		    s,
		    "%s: it hung up before it answered: is etcd there, and what stands before it?",
		    at);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ENGINE_NOTFOUND:
		return tls_failed(s, code);
	default:
		break;
	}
	curl_easy_getinfo(s->calls, CURLINFO_APPCONNECT_TIME_T, &shook);
	return shook && !status ? shook_and_failed(s, code, said) : unanswered(s, said);
}

/* Of what stands before it. */
static bool is_of_proxy(long status)
{
	return status == 403 || status == 407 || status == 413 || status == 429 ||
	       (status >= 502 && status <= 504);
}

/* What etcd says in place of an answer. */
static enum store_result complaint(struct store *s, long status, const json_t *answer)
{
	const char *at = s->endpoint[s->at];
	const char *said = json_string_value(json_object_get(answer, "message"));

	if (!said)
		said = json_string_value(json_object_get(answer, "error"));
	if (!said && is_of_proxy(status))
		return fail(s,
			    "%s: HTTP status %ld, and not from etcd: look at the proxy or firewall "
			    "before it",
			    at, status);
	if (!said)
		return fail(
		    s,
		    "%s: this is no etcd with the v3 API: it says %ld: name the client URLs of "
		    "etcd 3.4 or later in fleet.store",
		    at, status);
	if (json_integer_value(json_object_get(answer, "code")) == NO_SPACE)
		return fail(s,
			    "%s: the store is full: %s: compact and defragment it, then `etcdctl "
			    "alarm disarm`",
			    at, said);
	return fail(s, "%s: the store says: %s", at, said);
}

static uint64_t number_of(const json_t *json, const char *field)
{
	const json_t *value = json_object_get(json, field);

	if (json_is_string(value))
		return strtoull(json_string_value(value), NULL, 10);
	return json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
}

static enum store_result no_numbers(struct store *s)
{
	return fail(s, "%s: it answers with revisions or a term that cannot be: is it etcd?",
		    s->endpoint[s->at]);
}

/* What would be believed, of these, would hide for ever what is true. */
static bool take_header(struct store *s, const json_t *header)
{
	uint64_t term = number_of(header, "raft_term");

	if (term > NUMBER_MAX || number_of(header, "revision") > NUMBER_MAX) {
		(void)no_numbers(s);
		return false;
	}
	s->term = term > s->term ? term : s->term;
	return true;
}

static json_t *answer_of(struct store *s, long status, const struct body *body)
{
	bool whole;
	json_t *answer;

	(void)json_lacked();
	answer = body->text ? json_read(body->text, body->len, 0, NULL) : NULL;
	if (json_lacked()) {
		json_decref(answer);
		(void)fail(s, "%s: no memory to read what it answers", s->endpoint[s->at]);
		return NULL;
	}
	whole = status == 200 && json_is_object(json_object_get(answer, "header"));
	if (whole && take_header(s, json_object_get(answer, "header")))
		return answer;
	if (!whole)
		(void)complaint(s, status, answer);
	json_decref(answer);
	return NULL;
}

static CURLcode perform(struct store *s)
{
	CURLcode code = CURLE_OUT_OF_MEMORY;
	const CURLMsg *said;
	int running, left;

	if (curl_multi_add_handle(s->calling, s->calls))
		return code;
	while (!curl_multi_perform(s->calling, &running) && running &&
	       !curl_multi_poll(s->calling, NULL, 0, CONNECT_MS, NULL))
		;
	said = curl_multi_info_read(s->calling, &left);
	if (said && said->msg == CURLMSG_DONE)
		code = said->data.result;
	curl_multi_remove_handle(s->calling, s->calls);
	return code;
}

static json_t *post(struct store *s, const char *path, json_t *request, bool once)
{
	char url[URL_MAX];
	struct body body = {0};
	char *text = json_whole(request, JSON_COMPACT);
	struct sending sending = {.text = text, .len = text ? strlen(text) : 0, .once = once};
	json_t *answer = NULL;
	CURLcode code = CURLE_OUT_OF_MEMORY;

	s->status = 0;
	snprintf(url, sizeof(url), "%s/v3/%s", s->endpoint[s->at], path);
	s->failed[0] = 0;
	curl_easy_setopt(s->calls, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)sending.len);
	curl_easy_setopt(s->calls, CURLOPT_READDATA, &sending);
	curl_easy_setopt(s->calls, CURLOPT_SEEKDATA, &sending);
	curl_easy_setopt(s->calls, CURLOPT_WRITEDATA, &body);
	curl_easy_setopt(s->calls, CURLOPT_TIMEOUT_MS, (long)s->options.timeout_ms);
	if (text && !curl_easy_setopt(s->calls, CURLOPT_URL, url)) /* else it is that of before */
		code = perform(s);
	curl_easy_getinfo(s->calls, CURLINFO_RESPONSE_CODE, &s->status);
	if (code == CURLE_OK)
		answer = answer_of(s, s->status, &body);
	else
		(void)call_failed(s, code, s->status, &body);
	if (!answer) { /* another one may do */
		s->at = (s->at + 1) % s->options.endpoints;
		s->failing = true;
	}
	free(body.text);
	free(text);
	json_decref(request);
	return answer;
}

/*
 * One call; NULL: it may have been done or not, and s->why says what failed. It may be done twice,
 * and is of what makes no difference then.
 */
static json_t *call(struct store *s, const char *path, json_t *request)
{
	return post(s, path, request, false);
}

/*
 * One that is done once, or not at all: a write that follows a revision would be refused by what it
 * has done itself. It costs a call that fails, and is tried later, where another kind is asked
 * again: a connection for each write would cost a shaking of hands each.
 */
static json_t *call_once(struct store *s, const char *path, json_t *request)
{
	return post(s, path, request, true);
}

/* --- what is asked ---------------------------------------------------------------------------- */

/* A request is whole, or there is none: without a part of it, it would ask for more, or write where
 * another has written. */
static json_t *if_whole(json_t *json, int lacks)
{
	if (!lacks)
		return json;
	json_decref(json);
	return NULL;
}

static json_t *bytes_of(const char *text, size_t len)
{
	char *encoded = encode(text, len);
	json_t *json = encoded ? json_string(encoded) : NULL; /* which no request is made of */

	free(encoded);
	return json;
}

static json_t *key_of(const struct store *s, const char *key)
{
	char whole[URL_MAX];
	int len = snprintf(whole, sizeof(whole), "%s%s", s->prefix, key);

	return bytes_of(whole, len);
}

/* Where the keys end that begin with it: its last byte is one more. */
static json_t *end_of(const struct store *s, const char *key)
{
	char whole[URL_MAX];
	int len = snprintf(whole, sizeof(whole), "%s%s", s->prefix, key);

	whole[len - 1]++;
	return bytes_of(whole, len);
}

static json_t *number(uint64_t n)
{
	return json_sprintf("%llu", (unsigned long long)n);
}

/* What lies under, as far as its `revision` (mod or create) is a later one. */
static json_t *range_after(const struct store *s, const char *under, const char *revision,
			   uint64_t after)
{
	json_t *range =
	    json_pack("{s:o,s:o}", "key", key_of(s, under), "range_end", end_of(s, under));

	int lacks = after ? json_object_set_new(range, revision, number(after + 1)) : 0;

	return json_pack("{s:o}", "request_range", if_whole(range, lacks));
}

/* Three requests, in this order, whose answers take_news reads. */
static json_t *range_own(const struct store *s, const char *own)
{
	return json_pack("{s:{s:o}}", "request_range", "key", key_of(s, own));
}

static json_t *range_first(const struct store *s, const struct store_news *news)
{
	return range_after(s, s->first, "min_mod_revision", news->first);
}

static json_t *range_last(const struct store *s, const struct store_news *news)
{
	return range_after(s, s->last, "min_create_revision", news->last);
}

static json_t *is_at(const struct store *s, const char *key, const char *target, const char *field,
		     uint64_t revision)
{
	return json_pack("{s:o,s:s,s:s,s:o}", "key", key_of(s, key), "result", "EQUAL", "target",
			 target, field, number(revision));
}

static enum store_result not_asked(struct store *s)
{
	return fail(s, "%s: it answers with keys that were not asked for: is it etcd?",
		    s->endpoint[s->at]);
}

static enum store_result no_memory(struct store *s)
{
	return fail(s, "no memory for what the store has");
}

static enum store_result take_entry(struct store *s, const json_t *kv, struct store_entry *entry)
{
	const char *value = json_string_value(json_object_get(kv, "value"));
	const char *key = json_string_value(json_object_get(kv, "key"));
	size_t len = 0, skip = strlen(s->prefix);
	enum store_result result;

	memset(entry, 0, sizeof(*entry));
	entry->key = decode(key ? key : "", &len);
	entry->value = decode(value ? value : "", &entry->len);
	entry->created = number_of(kv, "create_revision");
	entry->revision = number_of(kv, "mod_revision");
	entry->lease = number_of(kv, "lease");
	if (entry->key && entry->value && len != NO_BASE64 && entry->len != NO_BASE64 &&
	    len >= skip && entry->created && entry->revision &&
	    !memcmp(entry->key, s->prefix, skip)) {
		entry->key_len = len - skip;
		memmove(entry->key, entry->key + skip, entry->key_len + 1);
		return STORE_DONE;
	}
	result = entry->key && entry->value ? not_asked(s) : no_memory(s);
	free(entry->key);
	free(entry->value);
	return result;
}

/* A key is made first, then written, and the store has come as far as that, at least. */
static bool is_of_order(const struct store_entry *entry, const struct store_snapshot *now)
{
	return entry->created <= entry->revision && entry->revision <= now->revision;
}

/* Of a range's answer: into a snapshot that has room, and its revision. */
static enum store_result take_entries(struct store *s, const json_t *range,
				      struct store_snapshot *now)
{
	const json_t *kvs = json_object_get(range, "kvs"), *kv;
	size_t i;

	json_array_foreach(kvs, i, kv)
	{
		enum store_result result = take_entry(s, kv, &now->at[now->n]);

		if (result == STORE_DONE && !is_of_order(&now->at[now->n++], now))
			result = no_numbers(s);
		if (result != STORE_DONE) {
			store_snapshot_free(now);
			return STORE_UNKNOWN;
		}
	}
	return STORE_DONE;
}

/* Without one, it would look as if the store had forgotten all. */
static enum store_result take_revision(struct store *s, const json_t *answer,
				       struct store_snapshot *now)
{
	now->revision = number_of(json_object_get(answer, "header"), "revision");
	return now->revision ? STORE_DONE : no_numbers(s);
}

static enum store_result take_range(struct store *s, const json_t *answer, const json_t *range,
				    struct store_snapshot *now)
{
	memset(now, 0, sizeof(*now));
	if (take_revision(s, answer, now) != STORE_DONE)
		return STORE_UNKNOWN;
	now->at = calloc(json_array_size(json_object_get(range, "kvs")) + 1, sizeof(*now->at));
	if (!now->at)
		return no_memory(s);
	return take_entries(s, range, now);
}

void store_snapshot_free(struct store_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->n; i++) {
		free(snapshot->at[i].key);
		free(snapshot->at[i].value);
	}
	free(snapshot->at);
	memset(snapshot, 0, sizeof(*snapshot));
}

bool store_is_of(const struct store_entry *entry, const char *key)
{
	return entry->key_len == strlen(key) && !memcmp(entry->key, key, entry->key_len);
}

const struct store_entry *store_find(const struct store_snapshot *snapshot, const char *key)
{
	for (size_t i = 0; i < snapshot->n; i++)
		if (store_is_of(&snapshot->at[i], key))
			return &snapshot->at[i];
	return NULL;
}

/* --- the store ----------------------------------------------------------------------------------
 */

/* The key `own` is under `last`, too, and is there once. */
static void drop_own(const char *own, struct store_snapshot *now)
{
	for (size_t i = 1; i < now->n; i++)
		if (store_is_of(&now->at[i], own)) {
			free(now->at[i].key);
			free(now->at[i].value);
			now->at[i] = now->at[--now->n];
			return;
		}
}

/* Of a transaction's answer, whose three responses are of the ranges. */
static enum store_result take_news(struct store *s, const json_t *answer, const char *own,
				   struct store_snapshot *now)
{
	const json_t *parts = json_object_get(answer, "responses"), *range[3];
	size_t n = json_array_size(parts), room = 1;

	for (size_t i = 0; i < 3 && n >= 3; i++) {
		range[i] = json_object_get(json_array_get(parts, n - 3 + i), "response_range");
		room += json_array_size(json_object_get(range[i], "kvs"));
	}
	if (n < 3)
		return fail(s, "%s: it answers less than was asked for: is it etcd?",
			    s->endpoint[s->at]);
	if (take_revision(s, answer, now) != STORE_DONE)
		return STORE_UNKNOWN;
	now->at = calloc(room, sizeof(*now->at));
	if (!now->at)
		return no_memory(s);
	now->firsts = number_of(range[1], "count");
	now->lasts = number_of(range[2], "count");
	for (size_t i = 0; i < 3; i++)
		if (take_entries(s, range[i], now) != STORE_DONE)
			return STORE_UNKNOWN;
	drop_own(own, now);
	return STORE_DONE;
}

static enum store_result read_news(struct store *s, const struct store_news *news,
				   struct store_snapshot *now)
{
	json_t *answer = call(s, "kv/txn",
			      json_pack("{s:[o,o,o]}", "success", range_own(s, news->own),
					range_first(s, news), range_last(s, news)));
	enum store_result result = STORE_UNKNOWN;

	memset(now, 0, sizeof(*now));
	if (answer)
		result = take_news(s, answer, news->own, now);
	json_decref(answer);
	return result;
}

/* The first key behind another, which may have bytes of 0: that and one more. */
static json_t *next_of(const struct store *s, const char *key, size_t len)
{
	size_t skip = strlen(s->prefix);
	char *whole = calloc(1, skip + len + 1);
	json_t *json = NULL;

	if (whole) {
		memcpy(whole, s->prefix, skip);
		memcpy(whole + skip, key, len);
		json = bytes_of(whole, skip + len + 1);
	}
	free(whole);
	return json;
}

static json_t *list_request(const struct store *s, const struct store_list *list)
{
	json_t *request = json_pack(
	    "{s:o,s:o,s:o}", "key",
	    list->behind ? next_of(s, list->behind, list->behind_len) : key_of(s, list->under),
	    "range_end", end_of(s, list->under), "limit", number(STORE_PAGE));
	int lacks = !request;

	if (request && list->after)
		lacks |= json_object_set_new(request, "min_mod_revision", number(list->after + 1));
	if (request && list->at)
		lacks |= json_object_set_new(request, "revision", number(list->at));
	return if_whole(request, lacks);
}

static enum store_result list_under(struct store *s, const struct store_list *list,
				    struct store_snapshot *now)
{
	json_t *answer = call(s, "kv/range", list_request(s, list));
	enum store_result result = STORE_UNKNOWN;

	memset(now, 0, sizeof(*now));
	if (answer)
		result = take_range(s, answer, answer, now);
	if (result == STORE_DONE && list->at)
		now->revision = list->at;
	now->more = result == STORE_DONE && json_is_true(json_object_get(answer, "more"));
	json_decref(answer);
	if (!now->more || now->n)
		return result;
	store_snapshot_free(now);
	return not_asked(s); /* it would be asked for the same for ever */
}

/*
 * A new leader adds its election's time to each lease, and lets none end before it has begun: what
 * has more left than was granted is as new.
 */
static enum store_result age_of(struct store *s, uint64_t lease, uint64_t *age_ns,
				uint64_t *left_ns)
{
	json_t *answer = call(s, "lease/timetolive", json_pack("{s:o}", "ID", number(lease)));
	const char *left = json_string_value(json_object_get(answer, "TTL"));
	uint64_t granted = number_of(answer, "grantedTTL"), ttl = number_of(answer, "TTL");
	bool done = answer, gone = !left || *left == '-';

	ttl = ttl < granted ? ttl : granted;
	*age_ns = gone ? UINT64_MAX : (granted - ttl) * 1000000000ull;
	*left_ns = gone ? 0 : ttl * 1000000000ull;
	json_decref(answer);
	if (done && granted > TTL_MAX_S)
		return fail(s, "%s: it answers with a lease's time that cannot be: is it etcd?",
			    s->endpoint[s->at]);
	return done ? STORE_DONE : STORE_UNKNOWN;
}

static uint64_t grant(struct store *s, uint32_t ttl_s)
{
	json_t *answer = call(s, "lease/grant", json_pack("{s:o}", "TTL", number(ttl_s)));
	uint64_t lease = number_of(answer, "ID");

	if (answer && (!lease || number_of(answer, "TTL") < ttl_s)) {
		(void)fail(s, "%s: it grants no lease of %u s", s->endpoint[s->at], ttl_s);
		lease = 0;
	}
	json_decref(answer);
	return lease;
}

static enum store_result hold(struct store *s, const char *key, const char *value, uint64_t follows,
			      uint32_t ttl_s, struct store_snapshot *now)
{
	enum store_result result = STORE_UNKNOWN;
	uint64_t lease = grant(s, ttl_s);
	json_t *answer;

	memset(now, 0, sizeof(*now));
	if (!lease)
		return STORE_UNKNOWN;
	answer = call_once(s, "kv/txn",
			   json_pack("{s:[o],s:[{s:{s:o,s:o,s:o}},o],s:[o]}", "compare",
				     is_at(s, key, "MOD", "mod_revision", follows), "success",
				     "request_put", "key", key_of(s, key), "value",
				     bytes_of(value, strlen(value)), "lease", number(lease),
				     range_own(s, key), "failure", range_own(s, key)));
	if (answer) {
		bool done = json_is_true(json_object_get(answer, "succeeded"));
		json_t *part = json_array_get(json_object_get(answer, "responses"), done);

		result = take_range(s, answer, json_object_get(part, "response_range"), now);
		if (result == STORE_DONE && !done)
			result = STORE_REFUSED;
	}
	json_decref(answer);
	return result;
}

/* Without one, what was written would look as if it had not been there. */
static enum store_result take_written(struct store *s, const json_t *answer, uint64_t *revision)
{
	*revision = number_of(json_object_get(answer, "header"), "revision");
	return *revision ? STORE_DONE : no_numbers(s);
}

static enum store_result changed(struct store *s, json_t *request, uint64_t *revision)
{
	enum store_result result = STORE_UNKNOWN;
	json_t *answer = call_once(s, "kv/txn", request);

	if (answer)
		result = take_written(s, answer, revision);
	if (result == STORE_DONE && !json_is_true(json_object_get(answer, "succeeded")))
		result = STORE_REFUSED;
	json_decref(answer);
	return result;
}

static enum store_result write_key(struct store *s, const char *key, const char *value,
				   uint64_t follows, const char *guard, uint64_t created,
				   uint64_t *revision)
{
	return changed(s,
		       json_pack("{s:[o,o],s:[{s:{s:o,s:o}}]}", "compare",
				 is_at(s, key, "MOD", "mod_revision", follows),
				 is_at(s, guard, "CREATE", "create_revision", created), "success",
				 "request_put", "key", key_of(s, key), "value",
				 bytes_of(value, strlen(value))),
		       revision);
}

static enum store_result drop(struct store *s, const char *key, uint64_t follows)
{
	uint64_t revision;

	return changed(s,
		       json_pack("{s:[o],s:[{s:{s:o}}]}", "compare",
				 is_at(s, key, "MOD", "mod_revision", follows), "success",
				 "request_delete_range", "key", key_of(s, key)),
		       &revision);
}

/* Of each of the keys, what there is of it. */
static enum store_result take_ranges(struct store *s, const json_t *answer, size_t n,
				     struct store_snapshot *now)
{
	const json_t *parts = json_object_get(answer, "responses"), *part;
	size_t i;

	if (json_array_size(parts) != n)
		return not_asked(s);
	if (take_revision(s, answer, now) != STORE_DONE)
		return STORE_UNKNOWN;
	now->at = calloc(n + 1, sizeof(*now->at));
	if (!now->at)
		return no_memory(s);
	json_array_foreach(parts, i, part)
	{
		const json_t *range = json_object_get(part, "response_range");

		if (json_array_size(json_object_get(range, "kvs")) > 1)
			return not_asked(s);
		if (take_entries(s, range, now) != STORE_DONE)
			return STORE_UNKNOWN;
	}
	return STORE_REFUSED;
}

static json_t *put_request(const struct store *s, const struct store_put *puts, size_t n,
			   uint64_t lease, const char *guard, uint64_t created)
{
	json_t *compare = json_array(), *success = json_array(), *failure = json_array();
	int lacks =
	    json_array_append_new(compare, is_at(s, guard, "CREATE", "create_revision", created));

	for (size_t i = 0; i < n; i++) {
		lacks |= json_array_append_new(
		    compare, is_at(s, puts[i].key, "MOD", "mod_revision", puts[i].follows));
		lacks |= json_array_append_new(
		    success,
		    json_pack("{s:{s:o,s:o,s:o}}", "request_put", "key", key_of(s, puts[i].key),
			      "value", bytes_of(puts[i].value, strlen(puts[i].value)), "lease",
			      number(lease)));
		lacks |= json_array_append_new(failure, json_pack("{s:{s:o}}", "request_range",
								  "key", key_of(s, puts[i].key)));
	}
	return if_whole(
	    json_pack("{s:o,s:o,s:o}", "compare", compare, "success", success, "failure", failure),
	    lacks);
}

/*
 * By its lease a write is known that was done, though it is refused: the request came to the store
 * twice, as a proxy may have sent it. What another has written since comes as news.
 */
static enum store_result done_before(uint64_t lease, uint64_t *revision, struct store_snapshot *now)
{
	for (size_t i = 0; i < now->n && lease; i++) {
		if (now->at[i].lease != lease)
			continue;
		*revision = now->at[i].revision;
		store_snapshot_free(now);
		return STORE_DONE;
	}
	return STORE_REFUSED;
}

/* Not so of what timed out or was called off: that may have been done. */
static bool is_turned_away(long status)
{
	return status / 100 == 4 && status != 408 && status != 499;
}

/* The endpoint says that nothing was written with it. What the call before has told stays. */
static void revoke(struct store *s, uint64_t lease, size_t endpoint)
{
	char why[STORE_WHY];
	bool failing = s->failing;
	size_t at = s->at;

	memcpy(why, s->why, sizeof(why));
	s->at = endpoint; /* another one may be dead */
	json_decref(call(s, "lease/revoke", json_pack("{s:o}", "ID", number(lease))));
	memcpy(s->why, why, sizeof(why));
	s->failing = failing;
	s->at = at;
}

static enum store_result put_keys(struct store *s, const struct store_put *puts, size_t n,
				  uint32_t ttl_s, const char *guard, uint64_t created,
				  uint64_t *revision, struct store_snapshot *now)
{
	uint64_t lease = ttl_s ? grant(s, ttl_s) : 0;
	enum store_result result = STORE_UNKNOWN;
	size_t endpoint = s->at;
	json_t *answer;

	memset(now, 0, sizeof(*now));
	if (ttl_s && !lease)
		return STORE_UNKNOWN;
	answer = call_once(s, "kv/txn", put_request(s, puts, n, lease, guard, created));
	if (json_is_true(json_object_get(answer, "succeeded")))
		result = take_written(s, answer, revision);
	else if (answer)
		result = take_ranges(s, answer, n, now);
	if (result == STORE_REFUSED)
		result = done_before(lease, revision, now);
	json_decref(answer);
	/* or each try would leave one for as long as the items last */
	if (lease && (result == STORE_REFUSED || is_turned_away(s->status)))
		revoke(s, lease, endpoint);
	return result;
}

static enum store_result clear_under(struct store *s, const char *under, const char *guard,
				     uint64_t created)
{
	uint64_t revision;

	return changed(s,
		       json_pack("{s:[o],s:[{s:{s:o,s:o}}]}", "compare",
				 is_at(s, guard, "CREATE", "create_revision", created), "success",
				 "request_delete_range", "key", key_of(s, under), "range_end",
				 end_of(s, under)),
		       &revision);
}

/* --- watching -----------------------------------------------------------------------------------
 */

static void stop_watch(struct store *s)
{
	if (s->watch) {
		curl_multi_remove_handle(s->multi, s->watch);
		curl_easy_cleanup(s->watch);
	}
	s->watch = NULL;
	free(s->watch_body);
	s->watch_body = NULL;
	free(s->watched.text);
	memset(&s->watched, 0, sizeof(s->watched));
}

/* Its number is 1 and that of what is watched. */
static json_t *watch_of(const struct store *s, const struct store_under *what, size_t i,
			uint64_t after)
{
	json_t *create = json_pack("{s:o,s:o,s:o,s:o}", "key", key_of(s, what->under), "range_end",
				   end_of(s, what->under), "start_revision", number(after + 1),
				   "watch_id", number(i + 1));

	int lacks =
	    what->ends_only ? json_object_set_new(create, "filters", json_pack("[s]", "NOPUT")) : 0;

	return json_pack("{s:o}", "create_request", if_whole(create, lacks));
}

/* A line for each; NULL: no memory. */
static char *watch_lines(const struct store *s, const struct store_under *what, size_t n,
			 uint64_t after)
{
	char *lines = strdup("");

	for (size_t i = 0; i < n && lines; i++) {
		json_t *one = watch_of(s, &what[i], i, after);
		char *text = json_whole(one, JSON_COMPACT), *longer = NULL;

		json_decref(one);
		if (text && asprintf(&longer, "%s%s\n", lines, text) < 0)
			longer = NULL;
		free(text);
		free(lines);
		lines = longer;
	}
	return lines;
}

static bool start_watch(struct store *s, const struct store_under *what, size_t n, uint64_t after)
{
	char url[URL_MAX];

	snprintf(url, sizeof(url), "%s/v3/watch", s->endpoint[s->at]);
	s->watch = curl_easy_init();
	s->watch_body = watch_lines(s, what, n, after);
	if (!s->watch || !s->watch_body || !set_up(s, s->watch, s->watch_failed) ||
	    curl_easy_setopt(s->watch, CURLOPT_URL, url)) {
		(void)fail(s, "no memory to watch the store");
		stop_watch(s);
		return false;
	}
	curl_easy_setopt(s->watch, CURLOPT_POSTFIELDS, s->watch_body);
	curl_easy_setopt(s->watch, CURLOPT_WRITEDATA, &s->watched);
	curl_easy_setopt(s->watch, CURLOPT_CONNECTTIMEOUT_MS, (long)s->options.timeout_ms);
	curl_easy_setopt(s->watch, CURLOPT_FRESH_CONNECT, 1L); /* the one before may be dead, */
	curl_easy_setopt(s->watch, CURLOPT_FORBID_REUSE, 1L);  /* and is of no use to others */
	curl_multi_add_handle(s->multi, s->watch);
	s->watches = n;
	s->failing = false;
	return true;
}

/* What came in place of changes: an error, a page of a proxy. */
static void not_watched(struct store *s, const char *text, size_t len)
{
	long status = 0;

	curl_easy_getinfo(s->watch, CURLINFO_RESPONSE_CODE, &status);
	(void)fail(s, "%s: it cannot be watched: it says %ld%s%.*s", s->endpoint[s->at], status,
		   len ? ": " : "", (int)(len < SAID_MAX ? len : SAID_MAX), len ? text : "");
}

/* Of one line: a bit for what has changed, all where that is not clear. *over: it is watched no
 * more. */
static int change_of(struct store *s, const json_t *said, int all, bool *over)
{
	const json_t *result = json_object_get(said, "result");
	uint64_t id = number_of(result, "watch_id");

	*over = !result || json_is_true(json_object_get(result, "canceled"));
	if (*over && number_of(result, "compact_revision") && !s->forgot) {
		s->forgot = true; /* what is read then is not forgotten: once is enough */
		return all;
	}
	if (*over || !json_object_get(result, "events"))
		return 0;
	s->forgot = false;
	return id && id <= STORE_WATCHES_MAX ? 1 << (id - 1) & all : all;
}

/* What came, a line each: the answer to a request for a watch is none that says of a change. */
static int what_changed(struct store *s, int all, bool *over)
{
	struct body *body = &s->watched;
	char *line = body->text, *end;
	int change = 0;

	while (line && !*over && (end = memchr(line, '\n', body->text + body->len - line))) {
		json_t *said = json_read(line, end - line, 0, NULL);

		change |= change_of(s, said, all, over);
		json_decref(said);
		if (*over)
			not_watched(s, line, end - line);
		line = end + 1;
	}
	if (line) {
		body->len -= line - body->text;
		memmove(body->text, line, body->len + 1);
	}
	return change;
}

/* Has the watch ended? It never does by itself. */
static bool ended(struct store *s)
{
	int left;
	CURLMsg *said = curl_multi_info_read(s->multi, &left);

	if (!said || said->msg != CURLMSG_DONE)
		return false;
	if (said->data.result == CURLE_OK)
		not_watched(s, s->watched.text, s->watched.len);
	else
		(void)fail(s, "%s: it cannot be watched: %s", s->endpoint[s->at],
			   s->watch_failed[0] ? s->watch_failed
					      : curl_easy_strerror(said->data.result));
	return true;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* For how long it can be waited for, of so many ms. */
static int watch_ms(const struct store *s, uint64_t ms)
{
	curl_off_t connected = 0;

	curl_easy_getinfo(s->watch, CURLINFO_CONNECT_TIME_T, &connected);
	return ms > CONNECT_MS && !connected ? CONNECT_MS : (int)ms;
}

static int watch(struct store *s, const struct store_under *what, size_t n, uint64_t after,
		 uint32_t wait_ms)
{
	uint64_t end_ms = now_ms() + wait_ms, at_ms;
	int running = 0, change, all = (1 << n) - 1;
	bool over = false, other = s->watch && s->watches != n;

	if (s->watch && s->failing) {
		stop_watch(s);
		return -1;
	}
	if (other) /* some of what it would have told may be before `after` */
		stop_watch(s);
	if (!s->watch && !start_watch(s, what, n, after))
		return -1;
	if (other)
		return all;
	for (;;) {
		curl_multi_perform(s->multi, &running);
		change = what_changed(s, all, &over);
		at_ms = now_ms();
		if (change || over || !running || at_ms >= end_ms)
			break;
		curl_multi_poll(s->multi, NULL, 0, watch_ms(s, end_ms - at_ms), NULL);
	}
	if (over || ended(s) || !running) {
		stop_watch(s);
		return change ? all : -1; /* what came after the change may not be told */
	}
	return change;
}

/* A connection may be dead, and a node of the store stand still, while all calls are answered. */
static void hang_up(struct store *s)
{
	stop_watch(s);
	(void)fail(s,
		   "%s: it cannot be watched: it did not tell what this host wrote: look at its "
		   "nodes, and at what stands before them",
		   s->endpoint[s->at]);
	s->at = (s->at + 1) % s->options.endpoints;
}

/* --- opening and closing ------------------------------------------------------------------------
 */

static void close_store(struct store *s)
{
	if (!s)
		return;
	stop_watch(s);
	curl_easy_cleanup(s->calls);
	curl_multi_cleanup(s->calling);
	curl_multi_cleanup(s->multi);
	curl_slist_free_all(s->headers);
	for (size_t i = 0; i < STORE_ENDPOINTS_MAX; i++)
		free(s->endpoint[i]);
	free(s->prefix);
	free(s->first);
	free(s->last);
	free(s->ca);
	free(s->cert);
	free(s->key);
	free(s);
}

/* Without a file of the options there is no client: it would trust whom it should not. */
static char *copy(const char *text, bool *whole)
{
	char *copied = text ? strdup(text) : NULL;

	*whole &= !text || copied;
	return copied;
}

static struct store *open_store(const struct store_options *options, char why[STORE_WHY])
{
	struct store *s = calloc(1, sizeof(*s));
	bool whole = s && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;

	snprintf(why, STORE_WHY, "no memory for the store's client");
	if (!whole) {
		free(s);
		return NULL;
	}
	json_count_failures();
	s->options = *options;
	for (size_t i = 0; i < options->endpoints; i++) {
		s->endpoint[i] = strdup(options->endpoint[i]);
		whole &= s->endpoint[i] != NULL;
		while (s->endpoint[i] && *s->endpoint[i] && /* "https://a:2379/" is meant without */
		       s->endpoint[i][strlen(s->endpoint[i]) - 1] == '/')
			s->endpoint[i][strlen(s->endpoint[i]) - 1] = 0;
	}
	s->prefix = copy(options->prefix, &whole);
	s->first = copy(options->first, &whole);
	s->last = copy(options->last, &whole);
	s->ca = copy(options->ca, &whole);
	s->cert = copy(options->cert, &whole);
	s->key = copy(options->key, &whole);
	s->headers = curl_slist_append(NULL, "Content-Type: application/json");
	s->calls = curl_easy_init();
	s->calling = curl_multi_init();
	s->multi = curl_multi_init();
	if (!whole || !s->headers || !s->calls || !s->calling || !s->multi || !set_up_calls(s)) {
		close_store(s);
		return NULL;
	}
	return s;
}

static uint64_t term_of(const struct store *s)
{
	return s->term;
}

static const char *why_of(const struct store *s)
{
	return s->why;
}

const struct store_kind store_etcd = {
    .name = "etcd",
    .open = open_store,
    .close = close_store,
    .hold = hold,
    .read = read_news,
    .write = write_key,
    .drop = drop,
    .put = put_keys,
    .list = list_under,
    .age = age_of,
    .term = term_of,
    .clear = clear_under,
    .watch = watch,
    .hang_up = hang_up,
    .why = why_of,
};
