/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the options of a verb by its table, and describes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"

#define HELP_COLUMN 32
#define LINE_END    80

/* The options that every verb takes. */
static const struct option_row common[] = {
    {"json", 'j', NULL, "print JSON", OPTION_FLAG(json)},
    {"help", 'h', NULL, "print this", .kind = OPTION_IS_FLAG},
    {0},
};

static const struct option_row none[] = {{0}};

/* --- reading -------------------------------------------------------------------------------- */

struct reading {
	const struct verb *verb;
	char **argv;
	int argc, at; /* at: the index of the next argument */
	struct options *options;
};

static bool is_help(const struct option_row *row)
{
	return row->letter == 'h';
}

const struct option_row *const *option_tables(const struct verb *verb)
{
	static const struct option_row *tables[3];

	tables[0] = verb->options ? verb->options : none;
	tables[1] = common;
	return tables;
}

/* Finds an option by its name, or by a beginning that no other option has. */
static const struct option_row *find_name(const struct verb *verb, const char *name, size_t len)
{
	const struct option_row *found = NULL;
	int n = 0;

	for (const struct option_row *const *t = option_tables(verb); *t; t++)
		for (const struct option_row *row = *t; row->name; row++) {
			if (strncmp(row->name, name, len))
				continue;
			if (!row->name[len])
				return row;
			found = row;
			n++;
		}
	return n == 1 ? found : NULL; /* of no name at all, every one */
}

static const struct option_row *find_letter(const struct verb *verb, char letter)
{
	for (const struct option_row *const *t = option_tables(verb); *t; t++)
		for (const struct option_row *row = *t; row->name; row++)
			if (row->letter == letter)
				return row;
	return NULL;
}

static enum parsed no_option(const struct reading *r, const char *name, size_t len)
{
	char wrong[32];
	struct policy_nearest nearest = {.wrong = wrong};

	snprintf(wrong, sizeof(wrong), "%.*s", (int)(len < 31 ? len : 31), name);
	for (const struct option_row *const *t = option_tables(r->verb); *t; t++)
		for (const struct option_row *row = *t; row->name; row++)
			policy_nearest(&nearest, row->name);
	(void)misused(r->verb->name, "it has no option --%.*s%s%s%s", (int)len, name,
		      nearest.name ? " (did you mean --" : "", nearest.name ? nearest.name : "",
		      nearest.name ? "?)" : "");
	return PARSED_WRONG;
}

static enum parsed take_time(const struct reading *r, const struct option_row *row,
			     const char *text)
{
	uint64_t *ns = (uint64_t *)((char *)r->options + row->at);

	if (!units_duration(text, ns) && *ns)
		return PARSED;
	(void)misused(r->verb->name, "--%s %s %s", row->name, text, units_duration_wrong(text));
	return PARSED_WRONG;
}

/*
 * `value` comes from the same argument. If it is NULL and one is needed, the next argument is it.
 */
static enum parsed take(struct reading *r, const struct option_row *row, const char *value)
{
	char *field = (char *)r->options + row->at;

	if (is_help(row))
		return PARSED_HELP;
	if (row->kind == OPTION_IS_FLAG) {
		*(bool *)field = true;
		return PARSED;
	}
	if (!value && r->at == r->argc) {
		(void)misused(r->verb->name, "%s wants a value: %s", r->argv[r->at - 1],
			      row->argument);
		return PARSED_WRONG;
	}
	if (!value)
		value = r->argv[r->at++];
	if (!*value) { /* as of a variable that is not set: its error would name nothing */
		(void)misused(r->verb->name, "--%s wants a value: %s", row->name, row->argument);
		return PARSED_WRONG;
	}
	if (row->kind == OPTION_IS_TIME)
		return take_time(r, row, value);
	*(const char **)field = value;
	return PARSED;
}

/* --name, --name VALUE, --name=VALUE */
static enum parsed take_name(struct reading *r, const char *text)
{
	size_t len = strcspn(text, "=");
	const struct option_row *row = find_name(r->verb, text, len);

	if (!row)
		return no_option(r, text, len);
	if (row->kind == OPTION_IS_FLAG && text[len]) {
		(void)misused(r->verb->name, "--%s takes no value", row->name);
		return PARSED_WRONG;
	}
	return take(r, row, text[len] ? text + len + 1 : NULL);
}

/* -jw, -c VALUE, -cVALUE */
static enum parsed take_letters(struct reading *r, const char *text)
{
	enum parsed parsed = PARSED;

	for (const char *at = text; *at && parsed == PARSED; at++) {
		const struct option_row *row = find_letter(r->verb, *at);

		if (!row) {
			(void)misused(r->verb->name,
				      "it has no option -%c, as in -%s: a file of that name goes "
				      "behind --",
				      *at, text);
			return PARSED_WRONG;
		}
		if (row->kind != OPTION_IS_FLAG)
			return take(r, row, at[1] ? at + 1 : NULL);
		parsed = take(r, row, NULL);
	}
	return parsed;
}

enum parsed options_parse(const struct verb *verb, int argc, char **argv, struct options *options)
{
	struct reading r = {verb, argv, argc, 1, options};
	enum parsed parsed = PARSED;
	bool ended = false;

	*options = (struct options){.args = argv + 1};
	while (r.at < argc && parsed == PARSED) {
		char *text = argv[r.at++];

		if (ended || text[0] != '-' || !text[1])
			options->args[options->n_args++] = text;
		else if (text[1] != '-')
			parsed = take_letters(&r, text + 1);
		else if (text[2])
			parsed = take_name(&r, text + 2);
		else
			ended = true;
	}
	return parsed;
}

int no_word(const struct verb *verb, const char *wrong)
{
	struct policy_nearest nearest = {.wrong = wrong};

	for (const struct word_row *word = verb->words; word->name; word++) {
		if (!strcmp(word->name, wrong))
			return EXIT_DONE;
		policy_nearest(&nearest, word->name);
	}
	return misused(verb->name, "there is no word %s%s%s%s", wrong,
		       nearest.name ? " (did you mean " : "", nearest.name ? nearest.name : "",
		       nearest.name ? "?)" : "");
}

/* --- telling -------------------------------------------------------------------------------- */

/*
 * Prints the text from a column on, broken between words, and ends the line. The cursor is at `at`.
 */
static void print_words(FILE *to, int at, int column, const char *text)
{
	bool first = true;

	if (at >= column && column)
		at = fprintf(to, "\n") - 1;
	at += fprintf(to, "%*s", column - at, "");
	while (*text) {
		int len = (int)strcspn(text, " ");

		if (!first && at + 1 + len > LINE_END) {
			at = fprintf(to, "\n%*s", column, "") - 1;
			first = true;
		}
		at += fprintf(to, "%s%.*s", first ? "" : " ", len, text);
		first = false;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', to);
}

/* "[--mode native|skb|hw]", "-c POLICY" */
static int usage_text(const struct option_row *row, char *buf, size_t size)
{
	char name[32];

	if (row->needed && row->letter)
		snprintf(name, sizeof(name), "-%c", row->letter);
	else
		snprintf(name, sizeof(name), "--%s", row->name);
	return snprintf(buf, size, "%s%s%s%s%s", row->needed ? "" : "[", name,
			row->argument ? " " : "", row->argument ? row->argument : "",
			row->needed ? "" : "]");
}

static void print_usage(const struct verb *verb)
{
	int column = printf("usage: xdp-pacer %s%s%s", verb->name, *verb->arguments ? " " : "",
			    verb->arguments);

	for (const struct option_row *const *t = option_tables(verb); *t; t++)
		for (const struct option_row *row = *t; row->name; row++) {
			char text[80];
			int len = usage_text(row, text, sizeof(text));

			if (is_help(row))
				continue;
			if (column + 1 + len > LINE_END)
				column = printf("\n%*s", 16, "") - 1;
			column += printf(" %s", text);
		}
	putchar('\n');
}

static void print_row(const struct option_row *row)
{
	int at = row->letter ? printf("  -%c, ", row->letter) : printf("      ");

	at += printf("--%s%s%s", row->name, row->argument ? " " : "",
		     row->argument ? row->argument : "");
	print_words(stdout, at, HELP_COLUMN, row->help);
}

static void print_end(FILE *to)
{
	fprintf(to, "Exit codes: 0 done, 1 failed, 2 usage or policy error. See xdp-pacer(8).\n");
}

void options_help(const struct verb *verb)
{
	print_usage(verb);
	printf("\n%s\n\n", verb->summary);
	for (const struct word_row *word = verb->words; word && word->name; word++)
		print_words(stdout, printf("  %s %s", word->name, word->arguments), HELP_COLUMN,
			    word->help);
	if (verb->words)
		putchar('\n');
	for (const struct option_row *const *t = option_tables(verb); *t; t++)
		for (const struct option_row *row = *t; row->name; row++)
			print_row(row);
	printf("\nExample: %s\n", verb->example);
	print_end(stdout);
}

/* "*" stands before what has to be written. */
static void fields_help(enum policy_part part, const char *kind, const char *title)
{
	struct policy_field field;

	printf("\n%s\n", title);
	for (size_t i = 0; policy_field(part, i, &field); i++)
		if (!strcmp(field.kind, kind))
			print_words(
			    stdout,
			    printf(" %c%s %s", field.needed ? '*' : ' ', field.name, field.value),
			    HELP_COLUMN, field.help);
}

static void kinds_help(void)
{
	char title[32];

	fields_help(POLICY_LIMIT, "any", "of any limit");
	for (int kind = 0; kind < POLICY_LIMIT_KINDS; kind++) {
		const char *name = policy_limit_kind_name((enum policy_limit_kind)kind);

		snprintf(title, sizeof(title), "of a %s", name);
		fields_help(POLICY_LIMIT, name, title);
	}
}

void limits_help(void)
{
	printf("The fields of a limit, as {key: src/32,64, gap: 1ms}. It is of one kind. What\n"
	       "has a * has to be written.\n");
	kinds_help();
	printf("\n");
	print_end(stdout);
}

void policy_help(void)
{
	char title[32];

	printf("The fields of a policy. What has a * has to be written. PORT... is one or a\n"
	       "list, [RULE...] is a list.\n");
	for (int part = 0; part < POLICY_PARTS; part++) {
		snprintf(title, sizeof(title), "of %s", policy_part_name((enum policy_part)part));
		if (part == POLICY_LIMIT)
			kinds_help();
		else
			fields_help((enum policy_part)part, "any", title);
	}
	printf("\nxdp-pacer-policy(5) says more.\n");
	print_end(stdout);
}

void verbs_help(FILE *to)
{
	static const char *const tasks[] = {
	    [VERBS_FIND] = "find a policy and try it, without a pacer",
	    [VERBS_ARG] = "put it on an interface",
	    [VERBS_LOOK] = "see what it does",
	    [VERBS_CHANGE] = "change it at work",
	    [VERBS_SCRIPT] = "use its limiter in scripts",
	};

	fprintf(to, "usage: xdp-pacer VERB ... [--json]\n");
	for (const struct verb *const *v = verbs; *v; v++) {
		if (v == verbs || (*v)->group != v[-1]->group)
			fprintf(to, "\n%s\n", tasks[(*v)->group]);
		print_words(to, fprintf(to, "  %s", (*v)->name), 12, (*v)->summary);
	}
	fprintf(to, "\n`xdp-pacer help VERB` shows a verb's options and an example, `help policy` "
		    "the\nfields of a policy, `help limits` those of a limit, -V the version.\n");
	print_end(to);
}
