/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/several.h"
#include "config/file_lock.h"
#include "live/attached.h"
#include "live/descriptors.h"
#include "live/ends.h"
#include "live/host.h"

const struct verb *const verbs[] = {
    &verb_check,   &verb_replay, &verb_suggest, &verb_load,   &verb_unload,   &verb_save,
    &verb_upgrade, &verb_serve,	 &verb_fleet,	&verb_clean,  &verb_status,   &verb_show,
    &verb_stats,   &verb_top,	 &verb_why,	&verb_sample, &verb_estimate, &verb_events,
    &verb_export,  &verb_apply,	 &verb_confirm, &verb_set,    &verb_shadow,   &verb_rotate,
    &verb_allow,   &verb_ban,	 &verb_sets,	&verb_keys,   NULL,
};

int with_pacer(const struct options *o,
	       int (*run)(struct attached *a, const struct options *options))
{
	struct policy_error error = {0};
	struct attached a;
	int code;

	if (attached_find(o->args[0], &a, &error))
		return complain(NULL, &error);
	code = run(&a, o);
	attached_release(&a);
	return code;
}

/* The file, or of one that is too long as much as shows it; *len is the length. NULL: see errno. */
static char *read_all(FILE *f, size_t *len)
{
	char *text = malloc(PACER_DOC_MAX + 1);

	if (!text)
		return NULL;
	*len = fread(text, 1, PACER_DOC_MAX, f);
	text[*len] = 0;
	if (!ferror(f))
		return text;
	free(text);
	return NULL;
}

static void explain_errno(struct policy_error *error)
{
	policy_explain(error, errno == ENOMEM ? POLICY_NO_MEMORY : 0, "%s", strerror(errno));
}

int read_policy(const char *file, char **text, struct policy **policy)
{
	struct policy_error error = {0};
	FILE *f = strcmp(file, "-") ? fopen(file, "r") : stdin;
	size_t len = 0;

	*policy = NULL;
	*text = f ? read_all(f, &len) : NULL;
	if (!*text)
		explain_errno(&error);
	if (f && f != stdin)
		fclose(f);
	if (*text)
		*policy = policy_parse(*text, len, &error);
	if (*policy)
		return 0;
	free(*text);
	*text = NULL;
	return complain(file, &error);
}

/* --- the verbs ------------------------------------------------------------------------------ */

static int help(FILE *to)
{
	verbs_help(to);
	return to == stdout ? EXIT_DONE : EXIT_WRONG;
}

static int version(void)
{
	printf("xdp-pacer %s, ABI %u\n", PACER_VERSION, PACER_ABI_VERSION);
	return EXIT_DONE;
}

/* If no verb has this name, it says so and returns NULL. */
static const struct verb *find_verb(const char *name)
{
	bool option = name[0] == '-';
	struct policy_nearest nearest = {.wrong = name};

	for (const struct verb *const *v = verbs; *v; v++) {
		if (!strcmp((*v)->name, name))
			return *v;
		policy_nearest(&nearest, (*v)->name);
	}
	policy_nearest(&nearest, option ? "--help" : "help");
	if (option)
		policy_nearest(&nearest, "--version");
	complaint("there is no %s %s%s%s%s: see `xdp-pacer help`", option ? "option" : "verb", name,
		  nearest.name ? " (did you mean " : "", nearest.name ? nearest.name : "",
		  nearest.name ? "?)" : "");
	return NULL;
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c)
{
	return !strcmp(text, a) || !strcmp(text, b) || !strcmp(text, c);
}

/* A word behind what takes none is no success that does something else. */
static int taken_no_word(const char *of, const char *word)
{
	complaint("%s takes no word %s: see `xdp-pacer help`", of, word);
	return EXIT_WRONG;
}

/* `more`: the arguments behind the name, which end with NULL. */
static int help_of(const char *name, char *const *more)
{
	bool completes = !strcmp(name, "--completion");
	const char *beyond = completes && *more ? more[1] : *more;
	const struct verb *verb;

	if (beyond)
		return taken_no_word("help", beyond);
	if (is_one_of(name, "help", "--help", "-h"))
		return help(stdout);
	if (completes)
		return complete(*more);
	if (!strcmp(name, "limits")) {
		limits_help();
		return EXIT_DONE;
	}
	if (!strcmp(name, "policy")) {
		policy_help();
		return EXIT_DONE;
	}
	verb = find_verb(name);
	if (!verb)
		return EXIT_WRONG;
	options_help(verb);
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	const struct verb *verb = find_verb(argv[0]);
	struct policy_error error = {0};
	struct options options;

	if (!verb)
		return EXIT_WRONG;
	switch (options_parse(verb, argc, argv, &options)) {
	case PARSED:
		return host_begin(&error) ? complain(NULL, &error) : several_run(verb, &options);
	case PARSED_HELP:
		options_help(verb);
		return EXIT_DONE;
	case PARSED_WRONG:
		break;
	}
	return EXIT_WRONG;
}

static int begin(int argc, char **argv)
{
	if (argc < 2)
		return help(stderr);
	say_begin(argv[1], argv + 1);
	if (is_one_of(argv[1], "help", "--help", "-h"))
		return argc > 2 ? help_of(argv[2], argv + 3) : help(stdout);
	if (is_one_of(argv[1], "version", "--version", "-V"))
		return argc > 2 ? taken_no_word("version", argv[2]) : version();
	return run(argc - 1, argv + 1);
}

static void held(const char *line)
{
	complaint("%s", line);
}

int main(int argc, char **argv)
{
	static const struct file_lock_listener listener = {ends_came, held};

	if (!descriptors_open_standard())
		return EXIT_FAILED;
	descriptors_raise();
	file_lock_listen(&listener);
	signal(SIGXFSZ, SIG_IGN); /* a file past the limit of its size is an error of the write */
	/* Or no child could be waited for, if who begins this ignores it. */
	signal(SIGCHLD, SIG_DFL);
	return written(begin(argc, argv));
}
