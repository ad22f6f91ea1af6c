/* SPDX-License-Identifier: GPL-2.0-only */
#include "config/document.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "window.h"

#define FIELD_NAME_MAX 16u
#define DEPTH_MAX      16 /* of lists and fields in each other; a policy needs 7 */

struct doc_shown doc_shown(const char *text)
{
	struct doc_shown s;
	size_t i;

	for (i = 0; text[i] && i < sizeof(s.text) - 4; i++)
		s.text[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	if (text[i]) {
		while (i && ((unsigned char)text[i] & 0xc0) == 0x80)
			i--;
		memcpy(&s.text[i], "...", 3);
		i += 3;
	}
	s.text[i] = 0;
	return s;
}

int doc_line(const yaml_node_t *node)
{
	return node ? (int)node->start_mark.line + 1 : 0;
}

/* Append to the text, which is cut where it is full. */
void doc_append(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

static void append_place(char *text, size_t size, const struct place *at)
{
	if (!at)
		return;
	append_place(text, size, at->up);
	if (at->name)
		doc_append(text, size, "%s%s", *text ? "." : "", at->name);
	else
		doc_append(text, size, "[%zu]", at->index);
}

/* Says what is wrong; the caller returns what this gives. */
FORMAT(4)
void doc_say(struct source *s, int line, const struct place *at, const char *format, ...)
{
	char *text = s->error->text;
	size_t size = sizeof(s->error->text), used;
	va_list args;

	s->error->line = line;
	s->error->file = NULL;
	*text = 0;
	append_place(text, size, at);
	if (*text)
		doc_append(text, size, ": ");
	used = strlen(text);
	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

/* The text of a single value. */
int doc_scalar(struct source *s, const struct place *at, const yaml_node_t *node, const char **text)
{
	if (node->type == YAML_SEQUENCE_NODE)
		return doc_fail(s, doc_line(node), at, "expected one value, found a list");
	if (node->type != YAML_SCALAR_NODE)
		return doc_fail(
		    s, doc_line(node), at,
		    "expected one value, found fields (a text with \": \" in it or ':' at "
		    "its end has to be quoted)");
	*text = (const char *)node->data.scalar.value;
	if (strlen(*text) != node->data.scalar.length)
		return doc_fail(s, doc_line(node), at, "the value has a NUL in it");
	if (!**text)
		return doc_fail(s, doc_line(node), at, "the value is missing");
	return 0;
}

int doc_choose(struct source *s, const struct place *at, const yaml_node_t *node,
	       const struct choice *choices, int *value)
{
	char names[64] = "";
	const char *text;
	size_t i;

	if (doc_scalar(s, at, node, &text))
		return -1;
	for (i = 0; choices[i].name; i++) {
		if (!strcmp(text, choices[i].name)) {
			*value = choices[i].value;
			return 0;
		}
		doc_append(names, sizeof(names), "%s%s",
			   !i			 ? ""
			   : choices[i + 1].name ? ", "
						 : " or ",
			   choices[i].name);
	}
	return doc_fail(s, doc_line(node), at, "\"%s\" is not known: write %s",
			doc_shown(text).text, names);
}

int doc_yes(struct source *s, const struct place *at, const yaml_node_t *node, bool *into)
{
	static const struct choice choices[] = {{"yes", 1}, {"no", 0}, {NULL, 0}};
	int yes;

	if (doc_choose(s, at, node, choices, &yes))
		return -1;
	*into = yes;
	return 0;
}

int doc_name(struct source *s, const struct place *at, int line, const char *text,
	     char name[POLICY_NAME_MAX])
{
	static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789_-";

	if (!*text || text[strspn(text, letters)] || strlen(text) >= POLICY_NAME_MAX)
		return doc_fail(s, line, at,
				"\"%s\" will not do: 1 to %d letters, digits, '_' and '-'",
				doc_shown(text).text, POLICY_NAME_MAX - 1);
	memcpy(name, text, strlen(text) + 1);
	return 0;
}

int doc_more_than_zero(struct source *s, const struct place *at, const yaml_node_t *node,
		       uint64_t value)
{
	if (!value)
		return doc_fail(s, doc_line(node), at, "%s: it must be more", s->words->zero);
	return 0;
}

int doc_unsigned(struct source *s, const struct place *at, const yaml_node_t *node,
		 const char **text)
{
	if (doc_scalar(s, at, node, text))
		return -1;
	if (**text == '-')
		return doc_fail(s, doc_line(node), at, "%s is negative", doc_shown(*text).text);
	return 0;
}

int doc_duration(struct source *s, const struct place *at, const yaml_node_t *node, uint64_t *ns)
{
	const char *text;
	bool too_long;
	size_t digits;

	if (doc_unsigned(s, at, node, &text))
		return -1;
	too_long = units_duration_too_long(text);
	digits = strspn(text, "0123456789.");
	if (!text[digits] && strspn(text, "0.") != digits)
		return doc_fail(s, doc_line(node), at, "%s has no unit: write %sms, %ss ...",
				doc_shown(text).text, doc_shown(text).text, doc_shown(text).text);
	if (!too_long && units_duration(text, ns))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is not a duration: write 250us, 1ms, 1.5s, 10m, 2h or 1d",
				doc_shown(text).text);
	if (too_long || *ns > PACER_WINDOW_NS_MAX)
		return doc_fail(s, doc_line(node), at, "%s is too long: at most %lluh",
				doc_shown(text).text, PACER_WINDOW_NS_MAX / 3600000000000ull);
	return doc_more_than_zero(s, at, node, *ns);
}

int doc_count(struct source *s, const struct place *at, const yaml_node_t *node, uint64_t *count)
{
	const char *text;

	if (doc_unsigned(s, at, node, &text))
		return -1;
	if (units_count(text, count))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is not a count: write 300, 20k or 1.5M",
				doc_shown(text).text);
	return doc_more_than_zero(s, at, node, *count);
}

int doc_whole(struct source *s, const struct place *at, const yaml_node_t *node, uint32_t min,
	      uint32_t max, uint32_t *value)
{
	struct range range;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (units_range(text, max, &range) || range.low != range.high || range.low < min)
		return doc_fail(s, doc_line(node), at, "\"%s\" will not do: write %u to %u",
				doc_shown(text).text, min, max);
	*value = range.low;
	return 0;
}

int doc_list(struct source *s, const struct place *at, const yaml_node_t *node,
	     const struct list *list)
{
	const yaml_node_item_t *item = node->data.sequence.items.start;
	size_t i, n;

	if (node->type != YAML_SEQUENCE_NODE) {
		*list->n = 1;
		return list->read(s, at, node, list->items);
	}
	n = (size_t)(node->data.sequence.items.top - item);
	if (n > list->max)
		return doc_fail(s, doc_line(node), at, "%zu items: at most %zu", n, list->max);
	for (i = 0; i < n; i++) {
		struct place place = {at, NULL, i};

		if (list->read(s, &place, yaml_document_get_node(&s->doc, item[i]),
			       (char *)list->items + i * list->size))
			return -1;
	}
	*list->n = n;
	return 0;
}

int doc_list_new(struct source *s, const struct place *at, const yaml_node_t *node,
		 struct list *list)
{
	size_t n = 1;

	if (node->type == YAML_SEQUENCE_NODE)
		n = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
	list->items = calloc(n && n <= list->max ? n : 1, list->size);
	return list->items ? doc_list(s, at, node, list) : doc_no_memory(s);
}

size_t doc_smallest(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters to insert, remove, change or swap with the next to make one name the other. */
static size_t distance(const char *a, const char *b)
{
	size_t d[FIELD_NAME_MAX + 1][FIELD_NAME_MAX + 1], i, j, m = strlen(a), n = strlen(b);

	if (m > FIELD_NAME_MAX || n > FIELD_NAME_MAX)
		return SIZE_MAX;
	for (i = 0; i <= m; i++) {
		for (j = 0; j <= n; j++) {
			d[i][j] = i ? i : j;
			if (!i || !j)
				continue;
			d[i][j] = doc_smallest(d[i - 1][j], d[i][j - 1]) + 1;
			d[i][j] = doc_smallest(d[i][j], d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = doc_smallest(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[m][n];
}

void policy_nearest(struct policy_nearest *nearest, const char *name)
{
	size_t found = distance(nearest->wrong, name);

	if (!nearest->best)
		nearest->best = 1 + doc_smallest(strlen(nearest->wrong) / 2, 2);
	if (found >= nearest->best)
		return;
	nearest->best = found;
	nearest->name = name;
}

static int unknown_field(struct source *s, const struct place *at, const yaml_node_t *key,
			 const struct fields *fields)
{
	const char *name = (const char *)key->data.scalar.value;
	struct policy_nearest nearest = {.wrong = name};
	char names[360] = "", hint[48] = "";
	size_t i;

	for (i = 0; i < fields->n; i++) {
		doc_append(names, sizeof(names), "%s%s", *names ? ", " : "", fields->field[i].name);
		policy_nearest(&nearest, fields->field[i].name);
	}
	if (strchr(name, ':'))
		doc_append(hint, sizeof(hint), "a space has to follow its ':'; ");
	else if (nearest.name)
		doc_append(hint, sizeof(hint), "did you mean \"%s\"? ", nearest.name);
	return doc_fail(s, doc_line(key), at, "unknown field \"%s\": %s%s has %s",
			doc_shown(name).text, hint, fields->of, names);
}

static const struct field *MUST_USE find_field(struct source *s, const struct place *at,
					       const yaml_node_t *key, const struct fields *fields)
{
	size_t i;

	if (key->type != YAML_SCALAR_NODE ||
	    strlen((const char *)key->data.scalar.value) != key->data.scalar.length) {
		doc_say(s, doc_line(key), at, "expected the name of a field");
		return NULL;
	}
	for (i = 0; i < fields->n; i++)
		if (!strcmp((const char *)key->data.scalar.value, fields->field[i].name))
			return &fields->field[i];
	unknown_field(s, at, key, fields);
	return NULL;
}

static int is_fast(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/*
 * Does the text end with one prefix length, as "src/24" does: is the other one missing? Or within
 * the name of a value, as "value(geo" does?
 */
static bool wants_more(const char *text)
{
	const char *slash = strrchr(text, '/'), *open = strrchr(text, '(');

	if (open && !strchr(open, ')'))
		return true;
	return slash && slash[1] && !slash[1 + strspn(slash + 1, "0123456789")];
}

/* Is the pair no field, but what YAML cut off a key: digits or `src)` first, and no value? */
static bool is_key_tail(struct source *s, const yaml_node_pair_t *pair)
{
	const yaml_node_t *key = yaml_document_get_node(&s->doc, pair->key);
	const yaml_node_t *value = yaml_document_get_node(&s->doc, pair->value);
	const char *text = (const char *)key->data.scalar.value;
	size_t digits;

	if (!is_fast(key) || !is_fast(value) || value->data.scalar.length)
		return false;
	if (!strncmp(text, "src)", 4) || !strncmp(text, "dst)", 4))
		return !text[4] || text[4] == '+';
	digits = strspn(text, "0123456789");
	return digits && digits <= 3 && (!text[digits] || text[digits] == '+');
}

/*
 * Within {}, YAML ends `key: src/24,56+dst/24,56` at each comma: what follows is then a field
 * `56+dst/24` with no value. Puts such pieces together in s->key_tail. Returns how many pairs they
 * are.
 */
static size_t limit_key_tail(struct source *s, const yaml_node_t *mapping,
			     const yaml_node_pair_t *pair)
{
	const yaml_node_t *value = yaml_document_get_node(&s->doc, pair->value), *key;
	const char *text = (const char *)value->data.scalar.value;
	size_t n = 0, len = 0;

	s->key_tail[0] = 0;
	if (mapping->data.mapping.style != YAML_FLOW_MAPPING_STYLE || !is_fast(value))
		return 0;
	for (; wants_more(text) && ++pair < mapping->data.mapping.pairs.top; n++) {
		key = yaml_document_get_node(&s->doc, pair->key);
		if (!is_key_tail(s, pair))
			break;
		if (len + 1 + key->data.scalar.length >= sizeof(s->key_tail))
			break; /* a field of an unknown name, as it stands */
		s->key_tail[len++] = ',';
		memcpy(s->key_tail + len, key->data.scalar.value, key->data.scalar.length + 1);
		text = s->key_tail + len;
		len += key->data.scalar.length;
	}
	return n;
}

/* The same of `flags: syn / syn,ack`: fields `ack`... with no value. Returns how many there are. */
static size_t match_flags_tail(struct source *s, const yaml_node_t *mapping,
			       const yaml_node_pair_t *pair)
{
	size_t n = 0;

	s->flags_tail[0] = 0;
	if (mapping->data.mapping.style != YAML_FLOW_MAPPING_STYLE ||
	    !is_fast(yaml_document_get_node(&s->doc, pair->value)))
		return 0;
	for (pair++; pair < mapping->data.mapping.pairs.top; pair++, n++) {
		const yaml_node_t *key = yaml_document_get_node(&s->doc, pair->key);
		const yaml_node_t *value = yaml_document_get_node(&s->doc, pair->value);

		if (!is_fast(key) || !is_fast(value) || value->data.scalar.length ||
		    strlen(s->flags_tail) + 1 + key->data.scalar.length >= sizeof(s->flags_tail))
			break; /* a field of an unknown name, as it stands */
		doc_append(s->flags_tail, sizeof(s->flags_tail), ",%s",
			   (const char *)key->data.scalar.value);
	}
	return n;
}

/* Read a mapping. `seen` gets the name's node of each field that there is, and has to be cleared.
 */
int doc_fields(struct source *s, const struct place *at, const yaml_node_t *node,
	       const struct fields *fields, void *into, const yaml_node_t **seen)
{
	const yaml_node_pair_t *pair = node->data.mapping.pairs.start;

	if (node->type != YAML_MAPPING_NODE)
		return doc_fail(s, doc_line(node), at,
				"expected %s: fields with a name and a value", fields->of);
	for (; pair < node->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_document_get_node(&s->doc, pair->key);
		const yaml_node_t *value = yaml_document_get_node(&s->doc, pair->value);
		const struct field *field = find_field(s, at, key, fields);
		struct place place = {at, NULL, 0};
		size_t i;

		if (!field)
			return -1;
		i = (size_t)(field - fields->field);
		place.name = field->name;
		if (seen[i])
			return doc_fail(s, doc_line(key), &place, "written twice, first in line %d",
					doc_line(seen[i]));
		seen[i] = key;
		if (!strcmp(field->name, "key"))
			pair += limit_key_tail(s, node, pair);
		if (!strcmp(field->name, "flags"))
			pair += match_flags_tail(s, node, pair);
		if (field->read(s, &place, value, into))
			return -1;
	}
	return 0;
}

/* libyaml says so, or fails without a word. */
static bool is_out_of_memory(const yaml_parser_t *parser)
{
	return parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR ||
	       !parser->problem;
}

int doc_no_memory(struct source *s)
{
	return doc_fail(s, POLICY_NO_MEMORY, NULL, "out of memory");
}

static int MUST_USE syntax_error(struct source *s, const yaml_parser_t *parser)
{
	const yaml_mark_t *mark = &parser->problem_mark;
	size_t i, line = mark->line + 1, lines = 1;
	char context[96] = "";
	const char *hint = "";

	if (is_out_of_memory(parser))
		return doc_no_memory(s);
	for (i = 0; i < s->len; i++)
		lines += s->text[i] == '\n' && i + 1 < s->len;
	if (parser->error == YAML_READER_ERROR) {
		for (line = 1, i = 0; i < s->len && i < parser->problem_offset; i++)
			line += s->text[i] == '\n';
	} else if (parser->context) {
		doc_append(context, sizeof(context), "%s in line %zu: ", parser->context,
			   doc_smallest(parser->context_mark.line + 1, lines));
	}
	if (parser->problem && strstr(parser->problem, "cannot start any token"))
		hint = " (indent with spaces, not tabs; quote a text that begins with @ or `)";
	else if (strstr(context, "flow") || strstr(context, "plain scalar"))
		hint = " (within [] and {}, put a space behind a field's ':', and quote an "
		       "address that begins or ends with ':', or a key with [] in it)";
	return doc_fail(s, (int)doc_smallest(line, lines), NULL, "not YAML: %s%s%s", context,
			parser->problem, hint);
}

/* Load the only document of the parser's text into s->doc. */
static int MUST_USE load_document(struct source *s, yaml_parser_t *parser)
{
	const yaml_node_t *root;
	yaml_document_t second;
	int result = 0;

	if (!yaml_parser_load(parser, &s->doc))
		return syntax_error(s, parser);
	if (!yaml_document_get_root_node(&s->doc)) {
		result = doc_fail(s, 1, NULL, "%s", s->words->empty);
	} else if (!yaml_parser_load(parser, &second)) {
		result = syntax_error(s, parser);
	} else {
		root = yaml_document_get_root_node(&second);
		if (root)
			result = doc_fail(s, doc_line(root), NULL, "a second document: %s is one",
					  s->words->name);
		yaml_document_delete(&second);
	}
	if (result)
		yaml_document_delete(&s->doc);
	return result;
}

static int MUST_USE start_parser(struct source *s, yaml_parser_t *parser)
{
	if (!yaml_parser_initialize(parser))
		return doc_no_memory(s);
	yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(parser, (const unsigned char *)s->text, s->len);
	return 0;
}

/* The tag that the event's value has, as written or as YAML resolves it; NULL: none. */
static const char *tag_of(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return (const char *)event->data.scalar.tag;
	case YAML_SEQUENCE_START_EVENT:
		return (const char *)event->data.sequence_start.tag;
	case YAML_MAPPING_START_EVENT:
		return (const char *)event->data.mapping_start.tag;
	default:
		return NULL;
	}
}

/* A type of YAML's own, that a program may have written before the value. */
static bool is_type(const char *tag)
{
	static const char *const types[] = {"str", "int", "float", "bool", "null", "seq", "map"};
	static const char prefix[] = "tag:yaml.org,2002:";

	for (size_t i = 0; i < ARRAY(types); i++)
		if (!strncmp(tag, prefix, sizeof(prefix) - 1) &&
		    !strcmp(tag + sizeof(prefix) - 1, types[i]))
			return true;
	return false;
}

/*
 * What is wrong with a text though YAML takes it: -1. Deep nesting costs libyaml quadratic time:
 * seconds for a text of 64k. A tag is not seen in its document: "src: ! 10.0.0.0/8" would be the
 * prefix itself.
 */
static int MUST_USE check_event(struct source *s, const yaml_event_t *event, int *depth)
{
	const char *tag = tag_of(event);
	int line = (int)event->start_mark.line + 1;

	*depth +=
	    event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT;
	*depth -= event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT;
	if (*depth > DEPTH_MAX)
		return doc_fail(s, line, NULL, "nested too deep: at most %d levels", DEPTH_MAX);
	if (tag && !is_type(tag))
		return doc_fail(s, line, NULL,
				"\"%s\" is a tag of YAML, and says nothing in %s: quote a text "
				"that begins with !",
				doc_shown(tag).text, s->words->name);
	return 0;
}

/* Errors of YAML are left to load_document. */
static int MUST_USE check_events(struct source *s)
{
	int depth = 0, result = 0, done = 0, out_of_memory;
	yaml_parser_t parser;
	yaml_event_t event;

	if (start_parser(s, &parser))
		return -1;
	while (!done && yaml_parser_parse(&parser, &event)) {
		result = check_event(s, &event, &depth);
		done = result || event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	out_of_memory = !done && is_out_of_memory(&parser);
	yaml_parser_delete(&parser);
	return out_of_memory ? doc_no_memory(s) : result;
}

static int has_mark(const struct source *s)
{
	return s->len >= 3 && !memcmp(s->text, "\xef\xbb\xbf", 3);
}

int doc_open_as(struct source *s, const struct doc_words *words, const char *text, size_t len,
		struct policy_error *error)
{
	yaml_parser_t parser;
	int result;

	*s = (struct source){.words = words, .text = text, .len = len, .error = error};
	if (len > PACER_DOC_MAX - 1)
		return doc_fail(s, 0, NULL, "%zu or more bytes: %s has at most %u", len,
				words->name, PACER_DOC_MAX - 1);
	if (has_mark(s)) {
		s->bom = 3;
		s->text += s->bom;
		s->len -= s->bom;
	}
	if (has_mark(s)) /* YAML would pass over it here, and not behind a field that is set */
		return doc_fail(s, 1, NULL, "it begins with two byte order marks: leave one out");
	if (check_events(s) || start_parser(s, &parser))
		return -1;
	result = load_document(s, &parser);
	yaml_parser_delete(&parser);
	return result;
}

int doc_open(struct source *s, const char *text, size_t len, struct policy_error *error)
{
	static const struct doc_words words = {
	    "a policy", "the policy is empty: write rules: [] to limit nothing", "0 is no limit"};

	return doc_open_as(s, &words, text, len, error);
}

void doc_close(struct source *s)
{
	yaml_document_delete(&s->doc);
}
