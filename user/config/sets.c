/* SPDX-License-Identifier: GPL-2.0-only */
/* The sets, and who names them. */
#include <stdio.h>
#include <string.h>

#include "config/address.h"
#include "config/parts.h"
#include "config/units.h"
#include "config/writers.h"

enum set_field {
	FIELD_SET_NAME,
	FIELD_FILE,
	FIELD_VALUE,
	FIELD_SET_OF,
	FIELD_SET_FLEET,
	SET_FIELDS
};

static int read_set_name(struct source *s, const struct place *at, const yaml_node_t *node,
			 void *into)
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	return doc_name(s, at, doc_line(node), text, ((struct policy_set *)into)->name);
}

static int read_file(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_set *set = into;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (!strcmp(text, "-") || strlen(text) >= POLICY_PATH_MAX)
		return doc_fail(s, doc_line(node), at,
				"\"%s\" will not do: name a file, in at most %d bytes",
				doc_shown(text).text, POLICY_PATH_MAX - 1);
	memcpy(set->file, text, strlen(text) + 1);
	return 0;
}

static int read_value(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	uint64_t field;

	if (doc_count(s, at, node, &field))
		return -1;
	if (field < 2 || field > 64)
		return doc_fail(
		    s, doc_line(node), at,
		    "%llu will not do: the field of the file that is its value, 2 to 64",
		    (unsigned long long)field);
	((struct policy_set *)into)->value = (uint32_t)field;
	return 0;
}

static int read_set_of(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	struct policy_set *set = into;
	struct list list = {address_prefix, set->of, sizeof(set->of[0]), POLICY_LIST_MAX,
			    &set->n_of};

	return doc_list(s, at, node, &list);
}

static int read_set_fleet(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	return doc_yes(s, at, node, &((struct policy_set *)into)->fleet);
}

WRITER(file, policy_set, *p->file, "%s", p->file)
WRITER(value, policy_set, p->value, "%u", p->value)
WRITER(set_fleet, policy_set, p->fleet, "%s", "yes")
WRITE_LIST(set_of, policy_set, of, units_prefix_text)

static const struct field set_field[SET_FIELDS] = {
    [FIELD_SET_NAME] = {"name", read_set_name, "NAME", "for matches: src: \"@NAME\"", 0,
			FIELD_NEEDED, NULL},
    [FIELD_FILE] = {"file", read_file, "FILE", "of prefixes, one a line; or `of`", 0, 0,
		    write_file},
    [FIELD_VALUE] =
	{"value", read_value, "N",
	 "the field of the file that is a prefix's value, for @NAME=VALUE; none unless said", 0, 0,
	 write_value},
    [FIELD_SET_OF] = {"of", read_set_of, "PREFIX...", "the prefixes themselves; or `file`", 0, 0,
		      write_set_of},
    [FIELD_SET_FLEET] =
	{"fleet", read_set_fleet, "yes|no",
	 "the hosts of the fleet share its elements and their values; no unless said", 0, 0,
	 write_set_fleet},
};

const struct fields parts_set = {"a set", set_field, SET_FIELDS};

static int read_set(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const yaml_node_t *seen[SET_FIELDS] = {0};
	struct policy_set *set = into, *other = set - at->index;
	struct place place = {at, "name", 0};

	set->line = doc_line(node);
	if (doc_fields(s, at, node, &parts_set, set, seen))
		return -1;
	if (!seen[FIELD_SET_NAME])
		return doc_fail(s, set->line, at,
				"the name is missing: write name: drop, for example");
	if (!seen[FIELD_FILE] == !seen[FIELD_SET_OF])
		return doc_fail(s, set->line, at,
				"%s: write file: /etc/xdp-pacer/drop.txt, or of: and a list",
				seen[FIELD_FILE] ? "it is of a file and of a list"
						 : "what it is of is missing");
	if (seen[FIELD_VALUE] && !seen[FIELD_FILE])
		return doc_fail(
		    s, doc_line(seen[FIELD_VALUE]), at,
		    "value is a field of a file, and it has none: write file:, or leave "
		    "value out");
	for (; other < set; other++)
		if (!strcmp(other->name, set->name))
			return doc_fail(s, doc_line(seen[FIELD_SET_NAME]), &place,
					"\"%s\" is the name of the set in line %d, too", set->name,
					other->line);
	return 0;
}

int parts_read_sets(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	struct list list = {read_set, NULL, sizeof(policy->set[0]), PACER_SETS_MAX,
			    &policy->n_sets};
	int result;

	if (node->type != YAML_SEQUENCE_NODE)
		return doc_fail(s, doc_line(node), at, "expected a list of sets, or [] for none");
	result = doc_list_new(s, at, node, &list);
	policy->set = list.items;
	return result;
}

static size_t set_named(const struct policy *policy, const char *name)
{
	size_t i = 0;

	while (i < policy->n_sets && strcmp(policy->set[i].name, name))
		i++;
	return i;
}

/* The number of the value that it names, a new one for the first who does. */
static int MUST_USE number_value(struct source *s, struct policy *policy, const struct place *at,
				 struct policy_set_use *use)
{
	struct policy_set_value *value = policy->set_value;

	if (!policy->set[use->set].value)
		return doc_fail(
		    s, use->line, at,
		    "set %s has no values: add value: and the field of its file, as value: 2",
		    use->name);
	for (size_t i = 0; i < policy->n_set_values; i++, value++)
		if (value->set == use->set) {
			use->number++;
			if (!strcmp(value->name, use->value))
				return 0;
		}
	if (policy->n_set_values == PACER_SET_VALUES_MAX)
		return doc_fail(s, use->line, at, "a policy names %u values of sets at the most",
				PACER_SET_VALUES_MAX);
	use->number++;
	*value = (struct policy_set_value){.line = use->line, .set = use->set};
	memcpy(value->name, use->value, sizeof(value->name));
	policy->n_set_values++;
	return 0;
}

/* Which of the policy's sets it names. */
static int MUST_USE find_set(struct source *s, struct policy *policy, const struct place *at,
			     struct policy_set_use *use)
{
	char names[200] = "";
	size_t i;

	use->set = set_named(policy, use->name);
	if (use->set < policy->n_sets)
		return use->value[0] ? number_value(s, policy, at, use) : 0;
	for (i = 0; i < policy->n_sets; i++)
		doc_append(names, sizeof(names), "%s%s", i ? ", " : "", policy->set[i].name);
	return doc_fail(s, use->line, at, "there is no set %s: %s%s", use->name,
			i ? "there are " : "add it to sets:", names);
}

/* The sets whose values the keys of a rule's limits have. */
static int MUST_USE find_key_sets(struct source *s, struct policy *policy, const struct place *at,
				  const struct policy_rule *rule)
{
	struct place limits = {at, "limits", 0}, item = {&limits, NULL, 0};
	struct place field = {&item, "key", 0};
	const char *named[3] = {NULL, NULL, NULL};
	bool of_dst[3] = {false, false, false};
	size_t n = 0;

	for (size_t i = 0; i < rule->n_limits; i++)
		for (int dst = 0; dst < 2; dst++) {
			struct policy_set_use use = {.line = rule->limit[i].line};
			const char *set = rule->limit[i].key.set[dst];
			size_t k = 0;

			item.index = i;
			if (!*set)
				continue;
			memcpy(use.name, set, sizeof(use.name));
			if (find_set(s, policy, &field, &use))
				return -1;
			if (!policy->set[use.set].value)
				return doc_fail(s, use.line, &field,
						"set %s has no values: add value: and the field of "
						"its file, as value: 2",
						set);
			while (k < n && (strcmp(named[k], set) != 0 || of_dst[k] != dst))
				k++;
			if (k < n)
				continue;
			named[n] = set;
			of_dst[n++] = dst;
			if (n > 2)
				return doc_fail(s, use.line, &field,
						"the limits of a rule count by two values at the "
						"most: make two rules, or leave one out");
		}
	return 0;
}

/* The sets that matches, keys and the allow-list name; they may stand behind these. */
int parts_find_sets(struct source *s, struct policy *policy)
{
	struct place rules = {NULL, "rules", 0}, at = {&rules, NULL, 0}, match = {&at, "match", 0};
	struct place allow = {NULL, "allow", 0};

	for (size_t i = 0; i < policy->n_allow_sets; i++)
		if (find_set(s, policy, &allow, &policy->allow_set[i]))
			return -1;
	for (size_t r = 0; r < policy->n_rules; r++) {
		struct policy_match *m = &policy->rule[r].match;

		at.index = r;
		for (size_t k = 0; k < m->n_sets; k++) {
			struct place field = {&match, m->set[k].dst ? "dst" : "src", 0};

			if (find_set(s, policy, &field, &m->set[k]))
				return -1;
		}
		if (find_key_sets(s, policy, &at, &policy->rule[r]))
			return -1;
	}
	return 0;
}
