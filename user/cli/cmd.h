/* SPDX-License-Identifier: GPL-2.0-only */
/* What the verbs share. A verb returns the exit code: 0 done, 1 failed, 2 usage or policy error. */
#ifndef PACER_CMD_H
#define PACER_CMD_H

#include <jansson.h>
#include <stdio.h>

#include "live/change.h"

enum exit_code { EXIT_DONE, EXIT_FAILED, EXIT_WRONG };

/* --- options (option.c) --------------------------------------------------------------------- */

/* What the options of all verbs are read into; which of them a verb takes is its own table. */
struct options {
	const char *policy, *compare;
	struct loader_options load; /* its mode is read by `load` */
	const char *mode;
	bool monitor, json, watch, verdicts, kernel, wait, exact, triangles;
	uint64_t confirm_ns, for_ns;
	const char *pcap, *plot, *plot_rule, *plot_key;
	const char *deny_share, *window, *window_packets, *max_window, *key, *keys, *max;
	const char *threshold, *state, *moment, *samples, *every, *step, *seed;
	char **args; /* what is not an option */
	int n_args;
};

enum option_kind { OPTION_IS_FLAG, OPTION_IS_TEXT, OPTION_IS_TIME };

/* The parser, the usage and the help come of the same rows. */
struct option_row {
	const char *name;     /* without its dashes; NULL: the table's end */
	int letter;	      /* 0: it has none */
	const char *argument; /* NULL: of a flag */
	const char *help;
	size_t at; /* in struct options */
	enum option_kind kind;
	bool needed; /* for the usage: the verb itself says what it wants */
};

#define OPTION_FLAG(field) .at = offsetof(struct options, field), .kind = OPTION_IS_FLAG
#define OPTION_TEXT(field) .at = offsetof(struct options, field), .kind = OPTION_IS_TEXT
#define OPTION_TIME(field) .at = offsetof(struct options, field), .kind = OPTION_IS_TIME
#define OPTION_POLICY                                                                          \
	{                                                                                      \
		"policy", 'c', "POLICY", "the policy's file; - is stdin", OPTION_TEXT(policy), \
		    .needed = true                                                             \
	}

/* What may stand behind the interface. In capitals: what it stands for. */
struct word_row {
	const char *name, *arguments, *help; /* name NULL: the table's end */
};

/* By task, in the order of the help. */
enum verb_group { VERBS_FIND, VERBS_PLACE, VERBS_LOOK, VERBS_CHANGE, VERBS_SCRIPT };

struct verb {
	const char *name, *arguments, *summary; /* arguments: what is not an option */
	const struct option_row *options;	/* beside --json and --help; NULL: none */
	int (*run)(struct options *o);
	enum verb_group group;
	const struct word_row *words; /* NULL: none */
	const char *example;	      /* a line for the shell */
};

extern const struct verb *const verbs[]; /* main.c's list of all, by group; ends with NULL */

extern const struct verb verb_load, verb_unload, verb_status, verb_stats, verb_check, verb_apply,
    verb_confirm, verb_set, verb_rotate, verb_allow, verb_unban, verb_sample, verb_replay,
    verb_estimate, verb_suggest, verb_keys;

enum parsed { PARSED, PARSED_HELP, PARSED_WRONG /* and it has been said */ };

/* argv[0] is the verb. Options and arguments may be mixed; behind "--" nothing is an option. */
enum parsed options_parse(const struct verb *verb, int argc, char **argv, struct options *options);
/* EXIT_WRONG, and that is said, where it is none of the verb's words. */
int no_word(const struct verb *verb, const char *wrong);
/* All that the verb's tables say, in lines of at most 80 characters. */
void options_help(const struct verb *verb);
/* The same of all verbs, shortly. */
void verbs_help(FILE *to);
/* The verb's own options, then what every verb takes, then NULL; good until the next call. */
const struct option_row *const *option_tables(const struct verb *verb);

/* A script that completes by the tables, for `bash` or `zsh` (complete.c). The exit code. */
int complete(const char *shell);

/* --- what is said (say.c) ------------------------------------------------------------------- */

/* The verb at work, for what is said of its result. Call it before anything is printed. */
void say_begin(const char *verb);
/* "xdp-pacer: ..." on stderr, one line, whatever the names in it hold. */
void complaint(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One line on stderr; returns EXIT_FAILED, or EXIT_WRONG where `file` is not NULL. */
int complain(const char *file, const struct policy_error *error);
/* "xdp-pacer VERB: ..." with the way to the help; returns EXIT_WRONG. */
int misused(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "xdp-pacer: VERB: WHAT" on stderr; returns EXIT_FAILED. */
int gave_up(const char *verb, const char *what);

/* The verb has changed something: where its result cannot be shown, that is said. */
void change_made(void);
/* A part of the result found no memory: it is not printed as JSON, and it is a failure as text. */
void result_lacks(void);
/* Ask right after printing, where much is printed: what follows would be for nothing. */
bool stdout_failed(void);
/* Bring to stdout what was printed; false: it did not get there, and nothing more will. */
bool flushed(void);
/* The end of every verb: `code`, or EXIT_FAILED, said in one line (but quietly where nobody reads
 * any more), where not everything got to stdout.
 */
int written(int code);

/* A name as JSON, which is made of characters: bytes that are none are written \xHH. */
json_t *json_text(const char *name);
/*
 * Print and free. Not a byte is printed of a value that is not whole: one that is NULL, or for
 * which any part found no memory, which makes no other check of jansson's results necessary.
 */
int print_json(json_t *value);
int print_json_line(json_t *value);

/* --- what verbs have in common (main.c) ----------------------------------------------------- */

/* Find the pacer of the interface that is the first argument, for `run`. Returns the exit code. */
int with_pacer(const struct options *options,
	       int (*run)(struct attached *a, const struct options *options));

/* The file's text, to be freed, and its policy, to be freed; 0 or the exit code. "-" is stdin. */
int read_policy(const char *file, char **text, struct policy **policy);

/* What `status` says of it, for `load` too. */
int show_status(struct attached *a, const struct options *options);

#endif
