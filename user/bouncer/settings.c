/* SPDX-License-Identifier: GPL-2.0-only */
#include "bouncer/settings.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/document.h"

#define NS_PER_S       1000000000ull
#define EVERY_NS       (10 * NS_PER_S)
#define EVERY_LEAST_NS 10000000ull
#define TIMEOUT_NS     (60 * NS_PER_S) /* a large API takes a while for all there is */

/* YAML's null. */
static bool is_null(const yaml_node_t *node, const char *text)
{
	return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!strcmp(text, "~") || !strcasecmp(text, "null"));
}

/* A text of one line, without blanks around it. */
static int read_text(struct source *s, const struct place *at, const yaml_node_t *node, char *into,
		     size_t size)
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (is_null(node, text))
		return doc_fail(s, doc_line(node), at, "the value is missing");
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return doc_fail(s, doc_line(node), at,
					"it has a blank or a control character in it");
	if (strlen(text) >= size)
		return doc_fail(s, doc_line(node), at, "it is longer than %zu characters",
				size - 1);
	snprintf(into, size, "%s", text);
	return 0;
}

/* Of an address: its host, behind who asks. */
static const char *host_of(const char *url, const char **end)
{
	const char *host = strstr(url, "//") + 2;

	*end = host + strcspn(host, "/?#");
	for (const char *c = host; c < *end; c++)
		if (*c == '@')
			host = c + 1;
	return host;
}

/* Has it a name or a number between http:// and what follows the host? */
static bool has_host(const char *url)
{
	const char *end, *host = host_of(url, &end);

	return host < end && *host != ':';
}

/* What libcurl finds wrong with it; NULL: nothing. */
static const char *wrong_part(const char *url)
{
	CURLU *parts = curl_url();
	CURLUcode code = parts ? curl_url_set(parts, CURLUPART_URL, url, 0) : CURLUE_OUT_OF_MEMORY;

	curl_url_cleanup(parts);
	return code ? curl_url_strerror(code) : NULL;
}

/* No error shows it: who asks may be in it, with a password. */
static int read_url(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct settings *to = into;
	const char *wrong, *host, *end;
	int line = doc_line(node);

	if (read_text(s, at, node, to->url, sizeof(to->url)))
		return -1;
	if (strncmp(to->url, "http://", 7) != 0 && strncmp(to->url, "https://", 8) != 0)
		return doc_fail(s, line, at, "it is no address: write http://127.0.0.1:8080/");
	if (!has_host(to->url))
		return doc_fail(s, line, at, "it names no host: write http://127.0.0.1:8080/");
	if (strpbrk(to->url, "?#"))
		return doc_fail(s, line, at,
				"it goes on after its path: leave out what is from "
				"the first ? or # on");
	host = host_of(to->url, &end);
	if (strchr(end, '@')) /* a password with a / would end there, and the rest be shown */
		return doc_fail(s, line, at,
				"it has an @ in its path: write %%40, and %%2F for a / of a "
				"password");
	wrong = wrong_part(to->url);
	if (wrong)
		return doc_fail(s, line, at, "it is no address: %s", wrong);
	snprintf(to->shown, sizeof(to->shown), "%.*s%s", (int)(strstr(to->url, "//") + 2 - to->url),
		 to->url, host);
	return 0;
}

static int read_key(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct settings *to = into;

	return read_text(s, at, node, to->key, sizeof(to->key));
}

static int read_ca(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct settings *to = into;

	return read_text(s, at, node, to->ca_file, sizeof(to->ca_file));
}

static int read_time(struct source *s, const struct place *at, const yaml_node_t *node,
		     uint64_t least_ns, uint64_t *ns)
{
	char least[32];

	if (doc_duration(s, at, node, ns))
		return -1;
	if (*ns < least_ns)
		return doc_fail(s, doc_line(node), at, "it is less than %s",
				units_duration_text(least_ns, least, sizeof(least)));
	return 0;
}

static int read_every(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct settings *to = into;

	return read_time(s, at, node, EVERY_LEAST_NS, &to->every_ns);
}

static int read_timeout(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct settings *to = into;

	return read_time(s, at, node, NS_PER_S, &to->timeout_ns);
}

/* The kernel refuses these. */
static bool is_no_name(const char *ifname)
{
	static const char *const none[] = {"", ".", "..", "all", "default"};

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		if (!strcmp(ifname, none[i]))
			return true;
	return strpbrk(ifname, "/:");
}

static int read_interface(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	if (read_text(s, at, node, into, IF_NAMESIZE))
		return -1;
	if (is_no_name(into))
		return doc_fail(s, doc_line(node), at, "no interface can have this name");
	return 0;
}

static int read_interfaces(struct source *s, const struct place *at, const yaml_node_t *node,
			   void *into)
{
	struct settings *to = into;
	struct list list = {read_interface, to->ifname, IF_NAMESIZE, SETTINGS_INTERFACES, &to->n};

	if (doc_list(s, at, node, &list))
		return -1;
	if (!to->n)
		return doc_fail(s, doc_line(node), at, "name at least one: [eth0]");
	return 0;
}

#define LACKS_ORIGINS "name at least one, [crowdsec], or leave it out for all"

static int read_origin(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	char *all = into;
	size_t used = strlen(all);
	const char *one;

	if (doc_scalar(s, at, node, &one))
		return -1;
	if (is_null(node, one))
		return doc_fail(s, doc_line(node), at, LACKS_ORIGINS);
	if (strpbrk(one, ", \t\r\n"))
		return doc_fail(s, doc_line(node), at,
				"it has a comma or a blank: write a list, [a, b]");
	if (used + strlen(one) + 2 > SETTINGS_TEXT)
		return doc_fail(s, doc_line(node), at,
				"together they are longer than %u characters", SETTINGS_TEXT - 2);
	doc_append(all, SETTINGS_TEXT, "%s%s", used ? "," : "", one);
	return 0;
}

static int read_origins(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct settings *to = into;
	size_t n;
	struct list list = {read_origin, to->origins, 0, 64, &n};

	if (doc_list(s, at, node, &list))
		return -1;
	if (!n) /* "" would ask for all */
		return doc_fail(s, doc_line(node), at, LACKS_ORIGINS);
	return 0;
}

enum {
	FIELD_URL,
	FIELD_KEY,
	FIELD_CA,
	FIELD_EVERY,
	FIELD_TIMEOUT,
	FIELD_INTERFACES,
	FIELD_ORIGINS,
	FIELDS
};

static const struct field field[FIELDS] = {
    [FIELD_URL] = {.name = "api_url", .read = read_url},
    [FIELD_KEY] = {.name = "api_key", .read = read_key},
    [FIELD_CA] = {.name = "ca_cert_path", .read = read_ca},
    [FIELD_EVERY] = {.name = "update_frequency", .read = read_every},
    [FIELD_TIMEOUT] = {.name = "timeout", .read = read_timeout},
    [FIELD_INTERFACES] = {.name = "interfaces", .read = read_interfaces},
    [FIELD_ORIGINS] = {.name = "origins", .read = read_origins},
};

static int missing(struct source *s, const yaml_node_t *root, const char *what)
{
	return doc_fail(s, doc_line(root), NULL, "%s is missing", what);
}

static int read_root(struct source *s, struct settings *to)
{
	static const struct fields fields = {"the file", field, FIELDS};
	const yaml_node_t *root = yaml_document_get_root_node(&s->doc);
	const yaml_node_t *seen[FIELDS] = {0};

	if (doc_fields(s, NULL, root, &fields, to, seen))
		return -1;
	if (!seen[FIELD_URL])
		return missing(s, root, "api_url, such as http://127.0.0.1:8080/,");
	if (!seen[FIELD_KEY])
		return missing(s, root, "api_key, as `cscli bouncers add NAME` prints it,");
	if (!seen[FIELD_INTERFACES])
		return missing(s, root, "interfaces, such as [eth0],");
	return 0;
}

int settings_read(struct settings *to, const char *text, size_t len, struct policy_error *error)
{
	static const struct doc_words words = {
	    "a file of settings", "the settings are empty: write api_url, api_key and interfaces",
	    "0 is no time"};
	struct source s;
	int result;

	*to = (struct settings){.every_ns = EVERY_NS, .timeout_ns = TIMEOUT_NS};
	if (doc_open_as(&s, &words, text, len, error))
		return -1;
	result = read_root(&s, to);
	doc_close(&s);
	return result;
}
