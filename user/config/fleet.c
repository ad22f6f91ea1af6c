/* SPDX-License-Identifier: GPL-2.0-only */
/* The fleet: its store, and what a host does without it. */
#include <stdio.h>
#include <string.h>

#include "config/parts.h"
#include "config/writers.h"

enum fleet_field {
	FIELD_STORE,
	FIELD_FLEET_NAME,
	FIELD_CERT,
	FIELD_CERT_KEY,
	FIELD_CA,
	FIELD_CUT_OFF,
	FIELD_FLEET_BANS,
	FLEET_FIELDS
};

static int one_store(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const char *text, *host;
	size_t len;

	if (doc_scalar(s, at, node, &text))
		return -1;
	host = strstr(text, "://");
	len = strlen(text);
	if (!host || (strncmp(text, "http://", 7) && strncmp(text, "https://", 8)) || !host[3] ||
	    strpbrk(host + 3, " @?#") || len >= POLICY_PATH_MAX)
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is no address of a store: write https://10.0.0.1:2379",
				doc_shown(text).text);
	memcpy(into, text, len + 1);
	return 0;
}

static int read_store(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_fleet *fleet = into;
	struct list list = {one_store, fleet->store, sizeof(fleet->store[0]), POLICY_STORES_MAX,
			    &fleet->n_stores};

	if (doc_list(s, at, node, &list))
		return -1;
	return fleet->n_stores ? 0
			       : doc_fail(s, doc_line(node), at,
					  "the list is empty: write https://10.0.0.1:2379, say");
}

static int read_fleet_name(struct source *s, const struct place *at, const yaml_node_t *node,
			   void *into)
{
	struct policy_fleet *fleet = into;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	return doc_name(s, at, doc_line(node), text, fleet->name);
}

static int MUST_USE read_fleet_file(struct source *s, const struct place *at,
				    const yaml_node_t *node, char into[POLICY_PATH_MAX])
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (strlen(text) >= POLICY_PATH_MAX)
		return doc_fail(s, doc_line(node), at, "a file's name has 1 to %d bytes",
				POLICY_PATH_MAX - 1);
	snprintf(into, POLICY_PATH_MAX, "%s", text);
	return 0;
}

#define FLEET_FILE(name)                                                                          \
	static int read_##name(struct source *s, const struct place *at, const yaml_node_t *node, \
			       void *into)                                                        \
	{                                                                                         \
		return read_fleet_file(s, at, node, ((struct policy_fleet *)into)->name);         \
	}

FLEET_FILE(cert)
FLEET_FILE(key)
FLEET_FILE(ca)

static int read_cut_off(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	static const struct choice choices[] = {{"deny", 0}, {"local", 1}, {NULL, 0}};
	int local;

	if (doc_choose(s, at, node, choices, &local))
		return -1;
	((struct policy_fleet *)into)->local = local;
	return 0;
}

static int read_fleet_bans(struct source *s, const struct place *at, const yaml_node_t *node,
			   void *into)
{
	return doc_yes(s, at, node, &((struct policy_fleet *)into)->bans);
}

static bool write_store(const void *from, size_t i, char *buf, size_t size)
{
	const struct policy_fleet *p = from;

	if (i >= p->n_stores)
		return false;
	snprintf(buf, size, "%s", p->store[i]);
	return true;
}

WRITER(fleet_name, policy_fleet, p->on, "%s", p->name)
WRITER(cert, policy_fleet, *p->cert, "%s", p->cert)
WRITER(key, policy_fleet, *p->key, "%s", p->key)
WRITER(ca, policy_fleet, *p->ca, "%s", p->ca)
WRITER(cut_off, policy_fleet, p->on, "%s", p->local ? "local" : "deny")
WRITER(fleet_bans, policy_fleet, p->bans, "%s", "yes")

static const struct field fleet_field[FLEET_FIELDS] = {
    [FIELD_STORE] = {"store", read_store, "URL...", "where the client URLs of an etcd are", 0,
		     FIELD_NEEDED, write_store},
    [FIELD_FLEET_NAME] = {"name", read_fleet_name, "NAME", "of the fleet, in the store", 0,
			  FIELD_NEEDED, write_fleet_name},
    [FIELD_CERT] = {"cert", read_cert, "FILE", "the host's certificate, where the store wants one",
		    0, 0, write_cert},
    [FIELD_CERT_KEY] = {"key", read_key, "FILE", "the certificate's key, without a pass phrase", 0,
			0, write_key},
    [FIELD_CA] =
	{"ca", read_ca, "FILE",
	 "the certificates by which alone the store's is judged; the machine's list unless "
	 "said",
	 0, 0, write_ca},
    [FIELD_CUT_OFF] = {"cut_off", read_cut_off, "deny|local",
		       "what a host does that cannot reach the store: local keeps a sixteenth of "
		       "each limit for it, and of more than 8 hosts less; deny unless said",
		       0, 0, write_cut_off},
    [FIELD_FLEET_BANS] = {"bans", read_fleet_bans, "yes|no",
			  "the hosts share bans of sources, those of `ban add` without a rule; no "
			  "unless said",
			  0, 0, write_fleet_bans},
};

const struct fields parts_fleet = {"a fleet", fleet_field, FLEET_FIELDS};

int parts_read_fleet(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const yaml_node_t *seen[FLEET_FIELDS] = {0};
	struct policy_fleet *fleet = &((struct policy *)into)->fleet;

	if (doc_fields(s, at, node, &parts_fleet, fleet, seen))
		return -1;
	fleet->on = true;
	fleet->line = doc_line(node);
	if (!seen[FIELD_STORE])
		return doc_fail(s, fleet->line, at,
				"the store is missing: write store: [https://10.0.0.1:2379]");
	if (!seen[FIELD_FLEET_NAME])
		return doc_fail(s, fleet->line, at,
				"its name is missing: write name: edge, the same on every host");
	if (!seen[FIELD_CERT] != !seen[FIELD_CERT_KEY])
		return doc_fail(s, fleet->line, at,
				"cert and key belong together: write both or neither");
	return 0;
}

/* Limits, bans and sets of a fleet need one. */
int parts_find_fleet(struct source *s, const struct policy *policy)
{
	static const char missing[] = "the policy names no store of a fleet: write "
				      "fleet: {store: [https://10.0.0.1:2379], name: edge}";

	for (size_t r = 0; r < policy->n_rules && !policy->fleet.on; r++) {
		struct place rules = {NULL, "rules", 0}, rule = {&rules, NULL, r};
		struct place limits = {&rule, "limits", 0}, ban = {&rule, "ban", 0};
		const struct policy_rule *of = &policy->rule[r];

		for (size_t i = 0; i < of->n_limits; i++) {
			struct place limit = {&limits, NULL, of->limit[i].item};
			struct place at = {&limit, "fleet", 0};

			if (of->limit[i].fleet)
				return doc_fail(s, of->limit[i].line, &at, "%s", missing);
		}
		if (of->ban_fleet)
			return doc_fail(s, of->line, &ban, "%s", missing);
	}
	for (size_t i = 0; i < policy->n_sets && !policy->fleet.on; i++) {
		struct place sets = {NULL, "sets", 0}, set = {&sets, NULL, i};
		struct place at = {&set, "fleet", 0};

		if (policy->set[i].fleet)
			return doc_fail(s, policy->set[i].line, &at, "%s", missing);
	}
	return 0;
}
