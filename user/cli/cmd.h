/* SPDX-License-Identifier: GPL-2.0-only */
/* What the verbs share. A verb returns the exit code: 0 done, 1 failed, 2 usage or policy error. */
#ifndef PACER_CMD_H
#define PACER_CMD_H

#include <jansson.h>
#include <stdio.h>

#include "live/attach.h"
#include "live/ends.h"

enum exit_code { EXIT_DONE, EXIT_FAILED, EXIT_WRONG };

/* --- options (option.c) --------------------------------------------------------------------- */

/* The values of the options of all verbs. Each verb has a table of those that it takes. */
struct options {
	const char *policy, *compare;
	struct attach_options load; /* its mode is read by `load` */
	const char *mode;
	bool monitor, shared, json, watch, once, verdicts, kernel, wait, exact, triangles, inner;
	bool follow, journal;
	uint64_t confirm_ns, for_ns, quiet_ns, over_ns;
	const char *rule, *replay, *at, *frame;
	const char *pcap, *plot, *plot_rule, *plot_key;
	const char *deny_share, *window, *window_packets, *max_window, *key, *keys, *max;
	const char *threshold, *state, *moment, *samples, *every, *step, *seed;
	const char *listen, *textfile, *diff, *save;
	const char *least, *exec;
	const char *restore;
	bool and_unload, dry_run, promote, stop;
	uint64_t every_ns;
	char **args; /* what is not an option */
	int n_args;
	bool many; /* they are several, or `all`: the result is of several, even of one */
};

enum option_kind { OPTION_IS_FLAG, OPTION_IS_TEXT, OPTION_IS_TIME };

/* The parser, the usage line and the help use the same rows. */
struct option_row {
	const char *name;     /* without its dashes; NULL: the table's end */
	int letter;	      /* 0: none */
	const char *argument; /* NULL: a flag */
	const char *help;
	size_t at; /* in struct options */
	enum option_kind kind;
	bool needed; /* shown in the usage line; the verb itself checks it */
};

#define OPTION_FLAG(field) .at = offsetof(struct options, field), .kind = OPTION_IS_FLAG
#define OPTION_TEXT(field) .at = offsetof(struct options, field), .kind = OPTION_IS_TEXT
#define OPTION_TIME(field) .at = offsetof(struct options, field), .kind = OPTION_IS_TIME
#define OPTION_POLICY                                                                          \
	{                                                                                      \
		"policy", 'c', "POLICY", "the policy's file; - is stdin", OPTION_TEXT(policy), \
		    .needed = true                                                             \
	}

#define OPTION_CONFIRM(help)                                               \
	{                                                                  \
		"confirm-within", 0, "TIME", help, OPTION_TIME(confirm_ns) \
	}

/* What may follow the interface. A word in capitals stands for a value. */
struct word_row {
	const char *name, *arguments, *help; /* name NULL: the table's end */
	bool shows;			     /* and changes nothing */
};

/* By task, in the order in which the help lists them. */
enum verb_group { VERBS_FIND, VERBS_ARG, VERBS_LOOK, VERBS_CHANGE, VERBS_SCRIPT };

/*
 * Its arguments are the names of interfaces, or begin with some: then it can be told several, and
 * `all` (several.h). A verb of none sees to its interfaces itself.
 */
enum verb_interfaces { INTERFACES_NONE, INTERFACES_ONLY, INTERFACES_LEAD };

struct verb {
	const char *name, *arguments, *summary; /* arguments: what is not an option */
	const struct option_row *options;	/* beside --json and --help; NULL: none */
	int (*run)(struct options *o);
	enum verb_group group;
	const struct word_row *words; /* NULL: none */
	const char *example;	      /* a line for the shell */
	enum verb_interfaces interfaces;
	bool takes_several; /* the names that several.h has found; it is run once for all */
	bool any_version;   /* it changes pacers, also those that other versions loaded */
};

extern const struct verb *const verbs[]; /* main.c's list of all, by group; ends with NULL */

extern const struct verb verb_load, verb_unload, verb_status, verb_stats, verb_check, verb_apply,
    verb_confirm, verb_set, verb_rotate, verb_allow, verb_ban, verb_why, verb_sample, verb_replay,
    verb_estimate, verb_suggest, verb_keys, verb_export, verb_events, verb_save, verb_upgrade,
    verb_serve, verb_fleet, verb_clean, verb_top, verb_show, verb_sets, verb_shadow;

enum parsed { PARSED, PARSED_HELP, PARSED_WRONG /* and it has been said */ };

/* argv[0] is the verb. Options and arguments may be mixed; behind "--" nothing is an option. */
enum parsed options_parse(const struct verb *verb, int argc, char **argv, struct options *options);
/* Says that it is none of the verb's words. Returns EXIT_WRONG. */
int no_word(const struct verb *verb, const char *wrong);
/* Prints all that the verb's tables say, in lines of at most 80 characters. */
void options_help(const struct verb *verb);
/* A summary of all verbs. */
void verbs_help(FILE *to);
/* The fields of a limit, and of all of a policy. */
void limits_help(void);
void policy_help(void);
/* The verb's own options, the options of every verb, and NULL. Valid until the next call. */
const struct option_row *const *option_tables(const struct verb *verb);

/* Prints a completion script for `bash` or `zsh` (complete.c). Returns the exit code. */
int complete(const char *shell);

/* --- what is said (say.c) ------------------------------------------------------------------- */

/*
 * Names the verb, for messages about its result, and the command, for notes of what was done: its
 * text is kept, as reading the options moves the arguments. Call it before anything is printed.
 */
void say_begin(const char *verb, char *const *arguments);
/*
 * Of several interfaces, the one that the verb is run for from now on; NULL: all of them. Of what
 * is said of the verb it is named, and a line that was said for the one before is not said again.
 */
void say_of(const char *ifname);
/* "xdp-pacer: ..." on stderr. It is one line, whatever characters the names in it have. */
void complaint(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * One line on stderr, of the error's own file if it has one, else of `file`; NULL: of none. Returns
 * EXIT_WRONG where a file is to be mended, else EXIT_FAILED.
 */
int complain(const char *file, const struct policy_error *error);
/* "xdp-pacer VERB: ..." and how to get help, on stderr; returns EXIT_WRONG. */
int misused(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, of "-" in the place of a state's file; 0: it is another. */
int misused_stream(const char *verb, const char *file);
/* "xdp-pacer: VERB: WHAT" on stderr; returns EXIT_FAILED. */
int gave_up(const char *verb, const char *what);

/* The verb has changed something. If its result cannot be written, the error says so. */
void change_made(void);
/* The same of a pacer, which gets a note of who had what done: the command as it was given. */
void change_noted(struct attached *a);
/* Of a pacer that was put on, where a frame may be several packets: one line on stderr. */
void joined_noted(const struct attached *a);
/* The same where its policy asks for VLANs, and tags may be kept where XDP does not see them. */
void tags_noted(const struct attached *a);
/*
 * The same where the policy asks for another size of its state, which is that of the load, or, of
 * one that was restored, as large as it was saved at least. file: from which a service restores it;
 * NULL: not known, or one that was named for this load.
 */
void memory_noted(const struct attached *a, const struct policy *policy, const char *file,
		  bool restored);
/* There was no memory for a part of the result. It is a failure, and no JSON is printed. */
void result_lacks(void);
/* A part of the result cannot be read: says why, and is as above. */
void result_failed(const struct policy_error *error);
/*
 * A part of the result cannot be told, and the rest can: says why. It is a failure, unless the verb
 * has changed something: that is done.
 */
void result_unsure(const struct policy_error *error);
/* Ask this after each part of a long output: after a failure the rest would be in vain. */
bool stdout_failed(void);
/* Writes what was printed so far. False: it could not be written, and nothing more can. */
bool flushed(void);
/*
 * Ends every verb. Returns `code`. If the output could not be written, it says so in one line and
 * returns EXIT_FAILED; a reader that went away gets no line.
 */
int written(int code);

/* --- verbs that go on until they are ended ---------------------------------------------------- */

/*
 * From now on the signals that end it wait (live/ends.h), and what is printed gives way to them. 0,
 * or EXIT_FAILED after it was said.
 */
int until_ended(enum ends_of of);
/* From now on nobody who does not read stdout or stderr keeps an end from what it is to end. */
void output_gives_way(void);

/* A name as JSON, as text_name() writes it where it is not UTF-8. */
json_t *json_text(const char *name);
/*
 * Prints the value and frees it. If it is NULL, or if there was no memory for any part of it,
 * nothing is printed. So no other result of jansson's has to be checked.
 */
int print_json(json_t *value);
int print_json_line(json_t *value);

/* --- what verbs have in common (main.c) ----------------------------------------------------- */

/* Finds the pacer of the interface in the first argument and calls `run`. Returns the exit code. */
int with_pacer(const struct options *options,
	       int (*run)(struct attached *a, const struct options *options));

/* "native", "skb", "hw"; NULL leaves *mode. Returns 0, or EXIT_WRONG after it was said. */
int read_site_mode(const char *verb, const char *text, enum site_mode *mode);

/* Reads the file ("-": stdin). The caller frees *text and *policy. Returns 0 or the exit code. */
int read_policy(const char *file, char **text, struct policy **policy);

/* Shows what `status` says; `load` uses it, too. */
int show_status(struct attached *a, const struct options *options);

#endif
