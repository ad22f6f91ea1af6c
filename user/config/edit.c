/* SPDX-License-Identifier: GPL-2.0-only */
/* Setting a value: where it stands in the text, and what the text then is. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document.h"
#include "config/limits.h"

#define VALUE_MAX 64 /* characters that policy_set takes */

/* What a path leads to. The ids are those of the document's nodes. */
struct target {
	const char *name;   /* of the field */
	int parent;	    /* the mapping that has it, or is to get it */
	int value;	    /* 0: absent */
	int rule, limits;   /* that it lies in; 0: a field of the whole */
	const char *behind; /* an absent field goes behind this one; NULL: before the first */
};

struct edit {
	size_t from, to; /* bytes of the text that give way to */
	char *by;	 /* NULL: no memory */
};

FORMAT(2) static void write_edit(struct edit *edit, const char *format, ...)
{
	va_list args;

	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	edit->by = malloc((size_t)len + 1);
	if (!edit->by)
		return;
	va_start(args, format);
	vsnprintf(edit->by, (size_t)len + 1, format, args);
	va_end(args);
}

static int id_of(const struct source *s, const yaml_node_t *node)
{
	return (int)(node - s->doc.nodes.start) + 1;
}

static yaml_node_t *node_of(struct source *s, int id)
{
	return yaml_document_get_node(&s->doc, id);
}

static const yaml_node_pair_t *find_pair(struct source *s, int mapping, const char *name)
{
	const yaml_node_t *node = node_of(s, mapping), *key;
	const yaml_node_pair_t *pair;

	if (!node || node->type != YAML_MAPPING_NODE)
		return NULL;
	for (pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		key = node_of(s, pair->key);
		if (key->type == YAML_SCALAR_NODE &&
		    !strcmp((const char *)key->data.scalar.value, name))
			return pair;
	}
	return NULL;
}

/* The value's node, 0 if there is none. */
static int find_value(struct source *s, int mapping, const char *name)
{
	const yaml_node_pair_t *pair = find_pair(s, mapping, name);

	return pair ? pair->value : 0;
}

/* The items of a list, none if it is no list. */
static size_t items_of(struct source *s, int list, const yaml_node_item_t **items)
{
	const yaml_node_t *node = node_of(s, list);

	*items = NULL;
	if (!node || node->type != YAML_SEQUENCE_NODE)
		return 0;
	*items = node->data.sequence.items.start;
	return (size_t)(node->data.sequence.items.top - *items);
}

static bool is_settable(const char *name)
{
	const char *field;

	for (size_t i = 0; (field = limits_field_to_set(i)); i++)
		if (!strcmp(field, name))
			return true;
	return false;
}

/* The fields that can be set of limit `only`, or of any limit if that is SIZE_MAX. */
static int no_such_field(struct source *s, const char *path, int rule, size_t only)
{
	const yaml_node_item_t *limit = NULL;
	size_t i, n = items_of(s, find_value(s, rule, "limits"), &limit);
	char names[96] = "";
	const char *field;

	if (only == SIZE_MAX)
		doc_append(names, sizeof(names), "over, ban");
	for (size_t f = 0; (field = limits_field_to_set(f)); f++) {
		for (i = 0; i < n; i++) {
			if ((only != SIZE_MAX && only != i) || !find_pair(s, limit[i], field))
				continue;
			doc_append(names, sizeof(names), "%s%s", *names ? ", " : "", field);
			break;
		}
	}
	return doc_fail(s, doc_line(node_of(s, only < n ? limit[only] : rule)), NULL,
			"%s: no such field that can be set; there are %s", doc_shown(path).text,
			names);
}

/* The only limit that has the field. */
static int MUST_USE locate_in_any(struct source *s, const char *path, struct target *target)
{
	const yaml_node_item_t *limit = NULL;
	size_t i, n = items_of(s, target->limits, &limit), found = 0;
	size_t stem = strlen(path) - strlen(target->name);
	char paths[300] = "";

	for (i = 0; i < n && is_settable(target->name); i++) {
		int value = find_value(s, limit[i], target->name);

		if (!value)
			continue;
		doc_append(paths, sizeof(paths), "%s%.*slimits[%zu].%s", found++ ? ", " : "",
			   (int)stem, path, i, target->name);
		target->parent = limit[i];
		target->value = value;
	}
	if (!found)
		return no_such_field(s, path, target->rule, SIZE_MAX);
	if (found > 1)
		return doc_fail(s, doc_line(node_of(s, target->rule)), NULL,
				"%s: %zu limits have this field: write one of %s",
				doc_shown(path).text, found, paths);
	return 0;
}

/* "limits[N].FIELD", N and what follows it at `index`. */
static int MUST_USE locate_in_limit(struct source *s, const char *path, const char *index,
				    struct target *target)
{
	const yaml_node_item_t *limit = NULL;
	size_t n = items_of(s, target->limits, &limit);
	size_t digits = strspn(index, "0123456789"), i;

	if (!digits || digits > 3 || strncmp(index + digits, "].", 2))
		return doc_fail(s, 0, NULL, "%s: write RULE.limits[N].FIELD", doc_shown(path).text);
	i = strtoul(index, NULL, 10);
	if (i >= n)
		return doc_fail(s, doc_line(node_of(s, target->rule)), NULL,
				"%s: no such limit: the rule has %zu, counted from 0",
				doc_shown(path).text, n);
	target->name = index + digits + 2;
	target->parent = limit[i];
	target->value = is_settable(target->name) ? find_value(s, limit[i], target->name) : 0;
	return target->value ? 0 : no_such_field(s, path, target->rule, i);
}

/* The rule or the pool whose name are the `len` bytes at `at` in the path, 0 if there is none. */
static int find_named(struct source *s, const char *path, const char *at, size_t len)
{
	bool pools = at != path;
	const yaml_node_t *root = yaml_document_get_root_node(&s->doc), *name;
	const yaml_node_item_t *item = NULL;
	size_t i, n = items_of(s, find_value(s, id_of(s, root), pools ? "pools" : "rules"), &item);
	char names[200] = "";

	for (i = 0; i < n; i++) {
		int id = find_value(s, item[i], "name");

		name = id ? node_of(s, id) : NULL;
		if (!name || name->type != YAML_SCALAR_NODE)
			continue;
		if (name->data.scalar.length == len && !memcmp(name->data.scalar.value, at, len))
			return item[i];
		doc_append(names, sizeof(names), "%s%s", *names ? ", " : "",
			   doc_shown((const char *)name->data.scalar.value).text);
	}
	doc_say(s, 0, NULL, "%s: no such %s: there %s%s", doc_shown(path).text,
		pools ? "pool" : "rule", *names ? "are " : "is none", names);
	return 0;
}

/* "pools.NAME.FIELD", which cannot be meant for a rule. NULL: not so; else NAME. */
static const char *path_of_pool(const char *path)
{
	return !strncmp(path, "pools.", 6) && strncmp(path + 6, "limits[", 7) &&
		       strchr(path + 6, '.')
		   ? path + 6
		   : NULL;
}

static int MUST_USE locate_in_pool(struct source *s, const char *path, const char *name,
				   struct target *target)
{
	const char *dot = strchr(name, '.');
	static const char *const fields[] = {"each", "cooldown", "max_cooldown", "threshold"};
	char names[96] = "";

	target->name = dot + 1;
	target->parent = find_named(s, path, name, (size_t)(dot - name));
	if (!target->parent)
		return -1;
	for (size_t f = 0; f < ARRAY(fields); f++) {
		int value = find_value(s, target->parent, fields[f]);

		if (!value)
			continue;
		doc_append(names, sizeof(names), "%s%s", *names ? ", " : "", fields[f]);
		if (!strcmp(target->name, fields[f]))
			target->value = value;
	}
	if (!target->value)
		return doc_fail(s, doc_line(node_of(s, target->parent)), NULL,
				"%s: no such field that can be set; there are %s",
				doc_shown(path).text, names);
	return 0;
}

/* "RULE.ban.FIELD", of a ban that is written in fields. */
static int MUST_USE locate_in_ban(struct source *s, const char *path, struct target *target)
{
	static const char *const fields[] = {"for", "grow", "up_to", "forget"};
	int ban = find_value(s, target->rule, "ban");

	target->name += strlen("ban.");
	target->parent = ban;
	for (size_t f = 0; ban && f < ARRAY(fields); f++)
		if (!strcmp(target->name, fields[f]))
			target->value = find_value(s, ban, fields[f]);
	if (!target->value)
		return doc_fail(
		    s, doc_line(node_of(s, ban ? ban : target->rule)), NULL,
		    "%s: no such field that can be set; a ban that grows has for, grow, "
		    "up_to and forget",
		    doc_shown(path).text);
	return 0;
}

static int MUST_USE locate(struct source *s, const char *path, struct target *target)
{
	static const char *const top[] = {"mode", "unparsed", "clock",
					  "bans", "flows",    "flow_idle"};
	const char *dot = strchr(path, '.'), *pool = path_of_pool(path);
	int root = id_of(s, yaml_document_get_root_node(&s->doc));
	char names[96] = "";
	size_t i;

	*target = (struct target){.name = dot ? dot + 1 : path, .parent = root};
	for (i = 0; !dot && i < ARRAY(top); i++) {
		doc_append(names, sizeof(names), "%s, ", top[i]);
		if (strcmp(path, top[i]))
			continue;
		target->value = find_value(s, root, path);
		return 0;
	}
	if (!dot)
		return doc_fail(s, 0, NULL,
				"%s: no such field that can be set: write %sRULE.FIELD, "
				"RULE.limits[N].FIELD or pools.NAME.FIELD",
				doc_shown(path).text, names);
	if (pool)
		return locate_in_pool(s, path, pool, target);
	target->rule = find_named(s, path, path, (size_t)(dot - path));
	if (!target->rule)
		return -1;
	if (!strncmp(target->name, "ban.", 4))
		return locate_in_ban(s, path, target);
	if (!strcmp(target->name, "over") || !strcmp(target->name, "ban")) {
		target->parent = target->rule;
		target->value = find_value(s, target->rule, target->name);
		target->behind = "name";
		return 0;
	}
	target->limits = find_value(s, target->rule, "limits");
	if (!strncmp(target->name, "limits[", 7))
		return locate_in_limit(s, path, target->name + 7, target);
	return locate_in_any(s, path, target);
}

/* libyaml counts characters. */
static size_t byte_of(const struct source *s, size_t character)
{
	size_t i;

	for (i = 0; i < s->len; i++)
		if (((unsigned char)s->text[i] & 0xc0) != 0x80 && !character--)
			break;
	return i;
}

static int is_break(char c)
{
	return c == '\n' || c == '\r';
}

/* How the text ends its lines. */
static const char *line_end(const struct source *s)
{
	const char *end = memchr(s->text, '\n', s->len);

	return end && end > s->text && end[-1] == '\r' ? "\r\n" : "\n";
}

static int MUST_USE edit_value(struct source *s, const char *path, const char *value, int id,
			       struct edit *edit)
{
	const yaml_node_t *node = node_of(s, id);
	yaml_scalar_style_t style = node->data.scalar.style;

	if (node->type != YAML_SCALAR_NODE || style == YAML_LITERAL_SCALAR_STYLE ||
	    style == YAML_FOLDED_SCALAR_STYLE)
		return doc_fail(s, doc_line(node), NULL,
				"%s: not written as one value: edit it by hand",
				doc_shown(path).text);
	edit->from = byte_of(s, node->start_mark.index);
	edit->to = byte_of(s, node->end_mark.index);
	write_edit(edit, "%s%s", edit->from == edit->to ? " " : "", value);
	return 0;
}

/* A field behind another: in {} at once, else on a line of its own. */
static void edit_behind(struct source *s, const struct target *target, const char *value,
			struct edit *edit)
{
	const yaml_node_t *parent = node_of(s, target->parent);
	const yaml_node_pair_t *pair = find_pair(s, target->parent, target->behind);
	size_t column = doc_smallest(node_of(s, pair->key)->start_mark.column, 64);

	edit->from = byte_of(s, node_of(s, pair->value)->end_mark.index);
	if (parent->data.mapping.style == YAML_FLOW_MAPPING_STYLE) {
		write_edit(edit, ", %s: %s", target->name, value);
	} else {
		while (edit->from < s->len && !is_break(s->text[edit->from]))
			edit->from++;
		write_edit(edit, "%s%*s%s: %s", line_end(s), (int)column, "", target->name, value);
	}
	edit->to = edit->from;
}

/* A field before the first one of the whole: in {} at once, else on a line of its own. */
static void edit_first(struct source *s, const struct target *target, const char *value,
		       struct edit *edit)
{
	const yaml_node_t *root = node_of(s, target->parent);
	const yaml_node_pair_t *first = root->data.mapping.pairs.start;
	size_t start = root->start_mark.index, column = 0;
	int more = first < root->data.mapping.pairs.top;

	if (root->data.mapping.style == YAML_FLOW_MAPPING_STYLE) {
		edit->from = byte_of(s, start) + 1;
		write_edit(edit, "%s: %s%s", target->name, value, more ? ", " : "");
	} else {
		if (more) {
			start = node_of(s, first->key)->start_mark.index;
			column = doc_smallest(node_of(s, first->key)->start_mark.column, 64);
		}
		edit->from = byte_of(s, start);
		write_edit(edit, "%s: %s%s%*s", target->name, value, line_end(s), (int)column, "");
	}
	edit->to = edit->from;
}

/* Frees what the edit writes. */
static char *splice(const struct source *s, const struct edit *edit)
{
	size_t before = s->bom + edit->from, by = edit->by ? strlen(edit->by) : 0;
	size_t behind = s->len - edit->to;
	char *text = edit->by ? malloc(before + by + behind + 1) : NULL;

	if (text) {
		memcpy(text, s->text - s->bom, before);
		memcpy(text + before, edit->by, by);
		memcpy(text + before + by, s->text + edit->to, behind);
		text[before + by + behind] = 0;
	}
	free(edit->by);
	return text;
}

/* Lists and fields that refer to the node: more than one where an alias shares it. */
static size_t references(struct source *s, int id)
{
	const yaml_node_t *node;
	size_t n = 0;

	for (node = s->doc.nodes.start; node < s->doc.nodes.top; node++) {
		const yaml_node_item_t *item = node->data.sequence.items.start;
		const yaml_node_pair_t *pair = node->data.mapping.pairs.start;

		if (node->type == YAML_SEQUENCE_NODE)
			for (; item < node->data.sequence.items.top; item++)
				n += *item == id;
		else if (node->type == YAML_MAPPING_NODE)
			for (; pair < node->data.mapping.pairs.top; pair++)
				n += pair->key == id || pair->value == id;
	}
	return n;
}

/* An alias would carry the change to where it was not asked for. */
static int MUST_USE check_shared(struct source *s, const char *path, const struct target *target)
{
	int id[] = {target->value, target->parent, target->limits, target->rule};
	size_t i;

	for (i = 0; i < ARRAY(id); i++)
		if (id[i] && references(s, id[i]) > 1)
			return doc_fail(
			    s, doc_line(node_of(s, id[i])), NULL,
			    "%s: shared with another place by an alias: edit it by hand",
			    doc_shown(path).text);
	return 0;
}

/* Does the changed text have the value, and at the same place? Or -1, or *out_of_memory. */
static int MUST_USE check_edit(const char *text, const char *path, const char *value,
			       bool *out_of_memory)
{
	const yaml_node_t *node;
	struct policy_error error = {0};
	struct target target;
	struct source s;
	int result;

	if (doc_open(&s, text, strlen(text), &error)) {
		*out_of_memory = error.line == POLICY_NO_MEMORY;
		return -1;
	}
	result = locate(&s, path, &target);
	if (!result) {
		node = target.value ? node_of(&s, target.value) : NULL;
		if (!node || node->type != YAML_SCALAR_NODE ||
		    strcmp((const char *)node->data.scalar.value, value))
			result = -1;
	}
	doc_close(&s);
	return result;
}

static int MUST_USE check_value(struct source *s, const char *path, const char *value)
{
	static const char *const characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					      "0123456789._/-";

	const char *word = strncmp(value, "pool ", 5) ? value : value + 5;

	if (*word && !word[strspn(word, characters)] && strlen(value) <= VALUE_MAX)
		return 0;
	return doc_fail(s, 0, NULL,
			"%s: \"%s\" will not do: 1 to %d letters, digits, '.', '_', '/' and '-'",
			doc_shown(path).text, doc_shown(value).text, VALUE_MAX);
}

static char *set_value(struct source *s, const char *path, const char *value)
{
	struct target target;
	struct edit edit;
	bool out_of_memory = false;
	char *text;

	if (locate(s, path, &target) || check_value(s, path, value) ||
	    check_shared(s, path, &target))
		return NULL;
	if (!target.value && target.behind)
		edit_behind(s, &target, value, &edit);
	else if (!target.value)
		edit_first(s, &target, value, &edit);
	else if (edit_value(s, path, value, target.value, &edit))
		return NULL;
	text = splice(s, &edit);
	if (!text) {
		doc_no_memory(s);
	} else if (strlen(text) > PACER_DOC_MAX - 1) {
		doc_say(s, 0, NULL, "%s: the policy would have %zu bytes: at most %u",
			doc_shown(path).text, strlen(text), PACER_DOC_MAX - 1);
	} else if (check_edit(text, path, value, &out_of_memory)) {
		if (out_of_memory)
			doc_no_memory(s);
		else
			doc_say(s,
				doc_line(node_of(s, target.value ? target.value : target.parent)),
				NULL,
				"%s: cannot be set in this text as it is laid out: edit it by hand",
				doc_shown(path).text);
	} else {
		return text;
	}
	free(text);
	return NULL;
}

char *policy_set(const char *text, size_t len, const char *path, const char *value,
		 struct policy_error *error)
{
	struct source s;
	char *result;

	if (doc_open(&s, text, len, error))
		return NULL;
	result = set_value(&s, path, value);
	doc_close(&s);
	return result;
}

char *policy_assign(const char *text, const char *assignment, struct policy_error *error)
{
	const char *equals = strchr(assignment, '=');
	char path[128];

	if (!equals || (size_t)(equals - assignment) >= sizeof(path)) {
		policy_explain(error, 0, "%s: is not RULE.FIELD=VALUE, such as dns.packets=300",
			       assignment);
		return NULL;
	}
	memcpy(path, assignment, (size_t)(equals - assignment));
	path[equals - assignment] = 0;
	return policy_set(text, strlen(text), path, equals + 1, error);
}

/* --- the allow-list ------------------------------------------------------------------------- */

#define LIST_WIDTH 76

/* "[192.0.2.1/32, "fd00::/8"]", in lines that are not too long; NULL: no memory. */
static void put_set(FILE *f, const char *before, const struct policy_set_use *use)
{
	fprintf(f, "%s\"@%s%s", before, use->name, use->value[0] ? "=" : "");
	for (const char *c = use->value; *c; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', f);
		fputc(*c, f);
	}
	fputc('"', f);
}

/* YAML may take a ':' for that behind a key, at an end even here. */
static bool wants_quotes(const char *prefix, bool bare)
{
	return strchr(prefix, ':') &&
	       (!bare || *prefix == ':' || prefix[strlen(prefix) - 1] == ':');
}

/* `bare`: without quotes where none are needed. */
static char *list_text(const struct prefix *prefix, size_t n, const struct policy *policy,
		       const char *end, bool bare)
{
	char *text = NULL, one[64];
	size_t len = 0, column = 0;
	FILE *f = open_memstream(&text, &len);
	bool failed;

	if (!f)
		return NULL;
	fputc('[', f);
	for (size_t i = 0; i < n; i++) {
		const char *quote;

		units_prefix_text(&prefix[i], one, sizeof(one));
		quote = wants_quotes(one, bare) ? "\"" : "";
		if (i && column + strlen(one) > LIST_WIDTH) {
			fprintf(f, ",%s  ", end);
			column = 0;
		} else if (i) {
			fputs(", ", f);
		}
		column += strlen(one) + 4;
		fprintf(f, "%s%s%s", quote, one, quote);
	}
	for (size_t i = 0; i < policy->n_allow_sets; i++)
		put_set(f, n + i ? ", " : "", &policy->allow_set[i]);
	fputc(']', f);
	failed = ferror(f);
	if (fclose(f) || failed) {
		free(text);
		return NULL;
	}
	return text;
}

/* What an alias shares, or what is made of it, is not rewritten. */
static bool stands_alone(struct source *s, int value)
{
	const yaml_node_item_t *item = NULL;
	size_t n = items_of(s, value, &item);

	if (references(s, value) > 1)
		return false;
	for (size_t i = 0; i < n; i++)
		if (references(s, item[i]) > 1 || node_of(s, item[i])->type != YAML_SCALAR_NODE)
			return false;
	return true;
}

/* From behind the field's ':' to the end of the value: of lines with dashes, of the last one. */
static int MUST_USE edit_list(struct source *s, const struct target *target, const char *value,
			      struct edit *edit)
{
	const yaml_node_pair_t *pair = find_pair(s, target->parent, target->name);
	const yaml_node_t *node = node_of(s, target->value), *last = node;
	const yaml_node_item_t *item = NULL;
	size_t n = items_of(s, target->value, &item);

	if (!stands_alone(s, target->value))
		return doc_fail(
		    s, doc_line(node), NULL,
		    "allow: shared with another place by an alias: see `xdp-pacer allow "
		    "IFACE list` for what is allowed");
	if (n && node->data.sequence.style != YAML_FLOW_SEQUENCE_STYLE)
		last = node_of(s, item[n - 1]);
	edit->from = byte_of(s, node_of(s, pair->key)->end_mark.index);
	while (edit->from < s->len && s->text[edit->from++] != ':')
		;
	edit->to = byte_of(s, last->end_mark.index);
	write_edit(edit, " %s", value);
	return 0;
}

static char *set_allow(struct source *s, const struct policy *policy, const struct prefix *prefix,
		       size_t n, bool bare)
{
	int root = id_of(s, yaml_document_get_root_node(&s->doc));
	struct target target = {.name = "allow", .parent = root};
	char *value = list_text(prefix, n, policy, line_end(s), bare), *text;
	struct edit edit;
	int failed = 0;

	if (!value) {
		doc_no_memory(s);
		return NULL;
	}
	target.value = find_value(s, root, "allow");
	if (target.value)
		failed = edit_list(s, &target, value, &edit);
	else
		edit_first(s, &target, value, &edit);
	free(value);
	if (failed)
		return NULL;
	text = splice(s, &edit);
	if (!text)
		doc_no_memory(s);
	return text;
}

/* It is a policy, and has that many, and as many sets as it had. */
static bool has_allowed(const char *text, size_t n, size_t n_sets, struct policy_error *error)
{
	struct policy *policy = policy_parse(text, strlen(text), error);
	bool right = policy && policy->n_allow == n && policy->n_allow_sets == n_sets;

	if (policy && !right)
		policy_explain(error, 0,
			       "allow: cannot be written into this text as it is laid out");
	policy_free(policy);
	return right;
}

char *policy_set_allow(const char *text, size_t len, const struct prefix *prefix, size_t n,
		       struct policy_error *error)
{
	struct policy *policy = policy_parse(text, len, error);
	struct source s;
	char *result;

	if (!policy || doc_open(&s, text, len, error)) {
		policy_free(policy);
		return NULL;
	}
	result = set_allow(&s, policy, prefix, n, false);
	if (result && strlen(result) >= PACER_DOC_MAX) {
		free(result);
		result = set_allow(&s, policy, prefix, n, true);
	}
	doc_close(&s);
	if (result && strlen(result) < PACER_DOC_MAX &&
	    !has_allowed(result, n, policy->n_allow_sets, error)) {
		free(result);
		result = NULL;
	}
	policy_free(policy);
	return result;
}
