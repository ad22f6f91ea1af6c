/* SPDX-License-Identifier: GPL-2.0-only */
/* What the verbs share. A verb returns the exit code: 0 done, 1 failed, 2 usage or policy error. */
#ifndef PACER_CMD_H
#define PACER_CMD_H

#include <getopt.h>
#include <jansson.h>

#include "change.h"

enum exit_code { EXIT_DONE, EXIT_FAILED, EXIT_WRONG };

struct verb {
	const char *name, *arguments, *summary;
	int (*run)(int argc, char **argv);
};

extern const struct verb verbs[]; /* ends with a NULL name */

int cmd_load(int argc, char **argv);
int cmd_unload(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_apply(int argc, char **argv);
int cmd_confirm(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_rotate(int argc, char **argv);
int cmd_allow(int argc, char **argv);
int cmd_unban(int argc, char **argv);
int cmd_sample(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_estimate(int argc, char **argv);
int cmd_keys(int argc, char **argv);
int cmd_suggest(int argc, char **argv);

/* One line on stderr; returns EXIT_FAILED, or EXIT_WRONG where `file` is not NULL. */
int complain(const char *file, const struct policy_error *error);
/* "xdp-pacer VERB: ..." with the way to the help; returns EXIT_WRONG. */
int misused(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "xdp-pacer: VERB: WHAT" on stderr; returns EXIT_FAILED. */
int gave_up(const char *verb, const char *what);
/* What is on stdout has to have got there: returns `code`, or EXIT_FAILED with that said. */
int written(const char *verb, int code);

/* Options of the verbs; which of them a verb takes is its own string of letters. */
struct options {
	const char *policy;	    /* c */
	struct loader_options load; /* m, d */
	bool monitor;		    /* o */
	bool json;		    /* always */
	bool watch;		    /* w */
	uint64_t confirm_ns;	    /* t */
	uint64_t for_ns;	    /* f */
	bool verdicts;		    /* v */
	bool kernel;		    /* k */
	const char *pcap;	    /* p */
	const char *compare;	    /* C: a second policy */
	const char *plot;	    /* P */
	const char *plot_rule;	    /* R */
	const char *plot_key;	    /* K */
	const char *deny_share;	    /* S */
	const char *window;	    /* W */
	const char *key;	    /* Y */
	const char *keys;	    /* e */
	const char *max;	    /* x */
	const char *max_window;	    /* X */
	const char *threshold;	    /* T */
	const char *state;	    /* s */
	bool wait;		    /* i */
	char **args;		    /* what is not an option */
	int n_args;
};

/* 0, or the exit code to leave with. */
int parse_options(int argc, char **argv, const char *letters, struct options *options);

/* Find the pacer of the interface that is the first argument, for `run`. Returns the exit code. */
int with_pacer(const struct options *options,
	       int (*run)(struct attached *a, const struct options *options));

/* The file's text, to be freed, and its policy, to be freed; 0 or the exit code. "-" is stdin. */
int read_policy(const char *file, char **text, struct policy **policy);

/* What `status` says of it, for `load` too. */
int show_status(struct attached *a, const struct options *options);

/* Print and free. */
int print_json(json_t *value);

#endif
