/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a text (YAML) as a tree whose every field is read by a function of a table, and what is
 * wrong with it said with its line and its path. For the sources of this wing.
 */
#ifndef PACER_DOCUMENT_H
#define PACER_DOCUMENT_H

#include <stdbool.h>
#include <yaml.h>

#include "config/policy.h"

#define ARRAY(a)   (sizeof(a) / sizeof((a)[0]))
#define FORMAT(at) __attribute__((format(printf, at, at + 1)))
#define MUST_USE   __attribute__((warn_unused_result))

#define DOC_KEY_TAIL 128

/* What a text is, in the words of what is wrong with it. */
struct doc_words {
	const char *name;  /* as "a policy" */
	const char *empty; /* of a text with nothing in it: what, and what to write */
	const char *zero;  /* of a 0 that would mean nothing */
};

/* A document being read, and where the first thing wrong with it is told. */
struct source {
	const struct doc_words *words;
	yaml_document_t doc;
	const char *text;
	size_t len, bom; /* bytes of text, and of the mark before it that is no part of it */
	struct policy_error *error;
	char key_tail[DOC_KEY_TAIL]; /* of the limit that is read, see limit_key_tail */
	char flags_tail[64];	     /* of the match that is read, see match_flags_tail */
};

/* The path of a node, from the leaf up. */
struct place {
	const struct place *up;
	const char *name; /* NULL: item `index` of a list */
	size_t index;
};

typedef int reader(struct source *s, const struct place *at, const yaml_node_t *node, void *into);
/* The text of value i of the field, as its reader takes it; false: there are no more. */
typedef bool writer(const void *from, size_t i, char *buf, size_t size);

#define FIELD_NEEDED 0x80 /* a flag: it has to be written */
#define FIELD_TEXT   224  /* of a value, with its NUL */

/* A field of a mapping. */
struct field {
	const char *name;
	reader *read;
	const char *value, *help; /* as "TIME", "PORT..." of one or a list; a line */
	uint8_t kind, flags;	  /* for whoever has a use for them */
	writer *write;		  /* NULL: it has fields of its own, or is told by another */
};

struct fields {
	const char *of;
	const struct field *field;
	size_t n;
};

struct choice {
	const char *name;
	int value;
};

/* Text of the operator's within an error: short, and on one line. */
struct doc_shown {
	char text[52];
};

/* Reads an item, or each item of a list, into an array. */
struct list {
	reader *read;
	void *items;
	size_t size, max, *n;
};

/* Open a text; doc_close then frees what it holds. That of a policy, or of what the words say. */
int MUST_USE doc_open(struct source *s, const char *text, size_t len, struct policy_error *error);
int MUST_USE doc_open_as(struct source *s, const struct doc_words *words, const char *text,
			 size_t len, struct policy_error *error);
void doc_close(struct source *s);

/* Says what is wrong; the caller returns what this gives. */
#define doc_fail(...) (doc_say(__VA_ARGS__), -1)
FORMAT(4)
void doc_say(struct source *s, int line, const struct place *at, const char *format, ...);
int doc_no_memory(struct source *s);

struct doc_shown doc_shown(const char *text);
int doc_line(const yaml_node_t *node); /* 0 of NULL */
/* Append to the text, which is cut where it is full. */
FORMAT(3) void doc_append(char *text, size_t size, const char *format, ...);
size_t doc_smallest(size_t a, size_t b);

/* The text of a single value. */
int MUST_USE doc_scalar(struct source *s, const struct place *at, const yaml_node_t *node,
			const char **text);
/* The same, of a quantity: what begins with a minus is refused. */
int MUST_USE doc_unsigned(struct source *s, const struct place *at, const yaml_node_t *node,
			  const char **text);
int MUST_USE doc_choose(struct source *s, const struct place *at, const yaml_node_t *node,
			const struct choice *choices, int *value);
int MUST_USE doc_yes(struct source *s, const struct place *at, const yaml_node_t *node, bool *yes);
/* A name that the policy gives to a rule, a pool or a set. */
int MUST_USE doc_name(struct source *s, const struct place *at, int line, const char *text,
		      char name[POLICY_NAME_MAX]);
int MUST_USE doc_more_than_zero(struct source *s, const struct place *at, const yaml_node_t *node,
				uint64_t value);
int MUST_USE doc_duration(struct source *s, const struct place *at, const yaml_node_t *node,
			  uint64_t *ns);
int MUST_USE doc_count(struct source *s, const struct place *at, const yaml_node_t *node,
		       uint64_t *count);
int MUST_USE doc_whole(struct source *s, const struct place *at, const yaml_node_t *node,
		       uint32_t min, uint32_t max, uint32_t *value);
int MUST_USE doc_list(struct source *s, const struct place *at, const yaml_node_t *node,
		      const struct list *list);
/*
 * The same, into items that it allocates, as many as there are, and one if there are none. The
 * caller frees list->items, also where it fails.
 */
int MUST_USE doc_list_new(struct source *s, const struct place *at, const yaml_node_t *node,
			  struct list *list);
/* Read a mapping. `seen` gets the name's node of each field that there is, and has to be cleared.
 */
int MUST_USE doc_fields(struct source *s, const struct place *at, const yaml_node_t *node,
			const struct fields *fields, void *into, const yaml_node_t **seen);

#endif
