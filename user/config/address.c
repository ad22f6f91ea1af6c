/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>

#include "config/address.h"
#include "config/units.h"

int address_prefix(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct prefix *prefix = into, host;
	const char *text, *slash;
	char buf[64];

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (!units_prefix(text, prefix)) {
		if (!units_prefix_mapped(prefix, &host))
			return 0;
		return doc_fail(
		    s, doc_line(node), at,
		    "%s is an IPv4 address in the form of IPv6, and no packet has it: write %s",
		    doc_shown(text).text, units_prefix_text(&host, buf, sizeof(buf)));
	}
	if (!units_prefix_masked(text, &host))
		return doc_fail(s, doc_line(node), at, "%s has bits beyond its length: write %s",
				doc_shown(text).text, units_prefix_text(&host, buf, sizeof(buf)));
	slash = strchr(text, '/');
	if (slash) {
		snprintf(buf, sizeof(buf), "%.*s", (int)doc_smallest((size_t)(slash - text), 63),
			 text);
		if (!units_prefix(buf, &host))
			return doc_fail(s, doc_line(node), at, "%s: the length is 0 to %u",
					doc_shown(text).text, host.len);
	}
	return doc_fail(s, doc_line(node), at,
			"\"%s\" is not a prefix: write 192.0.2.0/24, 192.0.2.1 or 2001:db8::/32",
			doc_shown(text).text);
}

/* "drop" or "geo=XY" */
static int MUST_USE read_set_use(struct source *s, const struct place *at, int line,
				 const char *text, struct policy_set_use *use)
{
	size_t n = strcspn(text, "=");
	char name[2 * POLICY_NAME_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name)), text);
	if (doc_name(s, at, line, name, use->name))
		return -1;
	if (!text[n])
		return 0;
	if (!text[n + 1] || strlen(text + n + 1) >= POLICY_VALUE_MAX)
		return doc_fail(s, line, at,
				"\"@%s\" will not do: a value has 1 to %d bytes: @%s=XX",
				doc_shown(text).text, POLICY_VALUE_MAX - 1, use->name);
	snprintf(use->value, sizeof(use->value), "%s", text + n + 1);
	return 0;
}

int address_read(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct address *address = into;
	const char *text;

	*address = (struct address){.use = {.line = doc_line(node)}};
	if (doc_scalar(s, at, node, &text))
		return -1;
	address->use.not = *text == '!';
	text += address->use.not ;
	if (*text == '@')
		return read_set_use(s, at, doc_line(node), text + 1, &address->use);
	if (address->use.not )
		return doc_fail(
		    s, doc_line(node), at,
		    "\"!%s\" is not a set: '!' is written before sets alone, as !@office",
		    doc_shown(text).text);
	return address_prefix(s, at, node, &address->prefix);
}

void address_use_text(const struct policy_set_use *use, char *buf, size_t size)
{
	snprintf(buf, size, "%s@%s%s%s", use->not ? "!" : "", use->name, use->value[0] ? "=" : "",
		 use->value);
}
