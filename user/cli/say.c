/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes errors and results, and checks that they were written. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "fleet/json.h"
#include "config/text.h"
#include "live/copies.h"
#include "live/ends.h"
#include "live/host.h"
#include "live/joined.h"
#include "live/notes.h"
#include "live/tags.h"
#include "plan/compile.h"

#define LINE_MAX_BYTES 8192 /* room for two paths */

static const char *at_work = "";
static const char *of_several;	      /* the interface that the verb is run for now */
static char command[PACER_SAID_TEXT]; /* the verb with its arguments, as they were given */
static bool changed;
static bool no_memory;	 /* ... for a part of the result */
static bool failed;	 /* to read one, which was said */
static bool unsure;	 /* of one, which was said */
static int stdout_error; /* the first errno; -1: not known */

/* --- complaints ----------------------------------------------------------------------------- */

static void say_line(const char *before, const char *format, va_list args, const char *after)
{
	static char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES], was[LINE_MAX_BYTES];
	size_t n = strlen(at_work);
	bool of_verb;

	vsnprintf(text, sizeof(text), format, args);
	of_verb = !strncmp(text, at_work, n) && !strncmp(text + n, ": ", 2);
	if (of_several && !of_verb && !strcmp(text, was)) /* it has to do with none of them */
		return;
	snprintf(was, sizeof(was), "%s", text);
	fprintf(stderr, "%s: ", before);
	if (of_several && of_verb)
		fprintf(stderr, "%s: ", text_escape(of_several, line, sizeof(line)));
	fprintf(stderr, "%s%s\n", text_escape(text, line, sizeof(line)), after);
}

void say_of(const char *ifname)
{
	of_several = ifname;
}

void complaint(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_line("xdp-pacer", format, args, "");
	va_end(args);
}

int complain(const char *file, const struct policy_error *error)
{
	if (error->file)
		file = error->file;
	if (file && error->line > 0)
		complaint("%s:%d: %s", file, error->line, error->text);
	else if (file)
		complaint("%s: %s", file, error->text);
	else
		complaint("%s", error->text);
	return file && error->line > POLICY_NO_MEMORY ? EXIT_WRONG : EXIT_FAILED;
}

int misused(const char *verb, const char *format, ...)
{
	char before[64], after[64];
	va_list args;

	snprintf(before, sizeof(before), "xdp-pacer %s", verb);
	snprintf(after, sizeof(after), ": see `xdp-pacer help %s`", verb);
	va_start(args, format);
	say_line(before, format, args, after);
	va_end(args);
	return EXIT_WRONG;
}

int misused_stream(const char *verb, const char *file)
{
	if (!*file)
		return misused(verb, "the name of the state's file is empty");
	return strcmp(file, "-") ? EXIT_DONE
				 : misused(verb, "a state is in a file, and - is none: write ./- "
						 "for a file of that name");
}

int gave_up(const char *verb, const char *what)
{
	complaint("%s: %s", verb, what);
	return EXIT_FAILED;
}

/* --- results -------------------------------------------------------------------------------- */

static void *json_malloc(size_t size)
{
	void *at = malloc(size);

	no_memory |= !at;
	return at;
}

void say_begin(const char *verb, char *const *arguments)
{
	size_t n = 0;

	at_work = verb;
	*command = 0;
	for (int i = 0; arguments[i] && n < sizeof(command); i++)
		n += snprintf(command + n, sizeof(command) - n, "%s%s", i ? " " : "", arguments[i]);
	json_set_alloc_funcs(json_malloc, free);
}

void result_lacks(void)
{
	no_memory = true;
}

void result_failed(const struct policy_error *error)
{
	if (!failed && changed)
		complaint("%s: the change was made all the same", error->text);
	else if (!failed)
		complain(NULL, error);
	failed = true;
}

void result_unsure(const struct policy_error *error)
{
	if (!unsure)
		complain(NULL, error);
	unsure = true;
}

void change_made(void)
{
	changed = true;
}

void change_noted(struct attached *a)
{
	char line[PACER_SAID_TEXT];

	change_made();
	notes_say(a, NOTE_CHANGE, text_escape(command, line, sizeof(line)));
}

void joined_noted(const struct attached *a)
{
	char text[JOINED_TEXT];

	if (joined_note(a->ifname, !strcmp(a->mode, "skb"), text))
		complaint("%s: %s", a->ifname, text);
}

void tags_noted(const struct attached *a)
{
	char text[TAGS_TEXT];

	if (tags_asked(&a->copy[copies_in_force(a)].policy) &&
	    tags_note(a->ifname, !strcmp(a->mode, "skb"), text))
		complaint("%s: %s", a->ifname, text);
}

/* What it has to begin without, to be smaller: nothing that is restored shrinks. */
static void say_larger(const struct attached *a, const char *file, bool restored)
{
	if (restored && !file)
		complaint("%s: memory: the state is as large as what was saved needs: to make it "
			  "smaller, unload, and load without --restore (what it has counted and "
			  "banned goes)",
			  a->ifname);
	else
		complaint("%s: memory: the state %s: to make it smaller, "
			  "unload, remove %s (what it has counted and banned goes with it), and "
			  "load",
			  a->ifname,
			  restored ? "is as large as what was saved needs"
				   : "stays as large as it was at load",
			  file ? file : "the file that a service saves it in");
}

/* What withstands a flood is too little, not too much. */
void memory_noted(const struct attached *a, const struct policy *policy, const char *file,
		  bool restored)
{
	struct compile_host host = {host_resolution_ns(), host_now_ns(), 1};
	struct policy_error ignored = {0}; /* the change itself says what is wrong */
	bool asked = policy->withstand || policy->memory_bytes != POLICY_MEMORY_DEFAULT;
	uint64_t bytes, lines;

	if ((!asked && !restored) || compile_memory(policy, &host, &bytes, &ignored))
		return;
	lines = bytes / sizeof(struct pacer_line);
	if (lines > a->n_lines)
		complaint("%s: %s: the state stays as large as it was at load: unload and load to "
			  "change it",
			  a->ifname, policy->withstand ? "withstand" : "memory");
	else if (lines < a->n_lines && !policy->withstand)
		say_larger(a, file, restored);
}

static int no_result(const char *why)
{
	complaint("%s: the result cannot be written%s%s%s", at_work, *why ? ": " : "", why,
		  changed ? ": the change was made all the same" : "");
	return EXIT_FAILED;
}

static void note_error(void)
{
	if (!stdout_error)
		stdout_error = errno ? errno : -1;
}

bool stdout_failed(void)
{
	if (ferror(stdout))
		note_error();
	return ferror(stdout);
}

bool flushed(void)
{
	errno = 0;
	if (fflush(stdout) || ferror(stdout))
		note_error();
	return !stdout_error;
}

int written(int code)
{
	if (flushed()) {
		errno = 0;
		if (fclose(stdout)) /* some file systems report errors only here */
			note_error();
	}
	if (!stdout_error && ends_blind() && !code) {
		complaint("%s: it ends, as it cannot wait any more: %s", at_work,
			  strerror(ends_blind()));
		return EXIT_FAILED;
	}
	if (!stdout_error && no_memory && !code)
		return no_result("no memory for a part of it");
	if (!stdout_error)
		return (failed || (unsure && !changed)) && !code ? EXIT_FAILED : code;
	if (stdout_error == EPIPE) /* quiet, as if SIGPIPE had ended it */
		return code ? code : EXIT_FAILED;
	if (stdout_error == EINTR)
		return no_result("it was ended while nobody read it");
	return no_result(stdout_error > 0 ? strerror(stdout_error) : "");
}

/* --- verbs that go on until they are ended -------------------------------------------------- */

/* Where there is no memory for that, it stays as it is. */
static FILE *giving_way(FILE *stream, int fd, int buffering)
{
	FILE *other = ends_stream(fd);

	if (!other)
		return stream;
	fflush(stream);
	setvbuf(other, NULL, buffering, BUFSIZ);
	return other;
}

void output_gives_way(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	stdout = giving_way(stdout, STDOUT_FILENO, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
	stderr = giving_way(stderr, STDERR_FILENO, _IONBF);
}

int until_ended(enum ends_of of)
{
	if (ends_hold(of)) {
		complaint("%s: signals cannot be waited for: %s", at_work, strerror(errno));
		return EXIT_FAILED;
	}
	output_gives_way();
	return EXIT_DONE;
}

json_t *json_text(const char *name)
{
	size_t size = TEXT_NAME(strlen(name));
	char *text = json_malloc(size);
	json_t *value = text ? json_string(text_name(name, text, size)) : NULL;

	free(text);
	return value;
}

/* A line. Of the controls JSON_ENSURE_ASCII leaves one as it is: DEL, which is ASCII. */
static bool put_line(const char *text, bool is_seen)
{
	const char *del;

	for (; is_seen && (del = strchr(text, 0x7f)); text = del + 1)
		printf("%.*s\\u007F", (int)(del - text), text);
	return puts(text) != EOF && !ferror(stdout);
}

/* To a terminal a name is written so that it does nothing there. */
static int print_as(json_t *value, size_t flags)
{
	bool is_seen = isatty(STDOUT_FILENO);
	size_t ascii = is_seen ? JSON_ENSURE_ASCII : 0;
	char *text = value && !no_memory && !failed ? json_whole(value, flags | ascii) : NULL;

	json_decref(value);
	if (failed)
		return EXIT_FAILED;
	if (!text || no_memory) {
		free(text);
		return no_result(no_memory ? "no memory" : "a name in it is not UTF-8");
	}
	errno = 0;
	if (!put_line(text, is_seen))
		note_error();
	free(text);
	return EXIT_DONE;
}

int print_json(json_t *value)
{
	return print_as(value, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
}

int print_json_line(json_t *value)
{
	return print_as(value, JSON_COMPACT);
}
