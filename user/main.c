/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

const struct verb verbs[] = {
    {"load", "IFACE -c POLICY [--mode native|skb|hw] [--monitor] [--direct]",
     "attach the pacer to an interface", cmd_load},
    {"unload", "IFACE", "detach it and remove what it left", cmd_unload},
    {"status", "[IFACE]", "what is attached where, and by which policy", cmd_status},
    {"stats", "IFACE [--watch]", "counters by rule and reason", cmd_stats},
    {"check", "-c POLICY", "validate a policy; print memory, ceilings and error bounds", cmd_check},
    {"apply", "IFACE -c POLICY [--confirm-within TIME]",
     "change the policy in place, keeping state", cmd_apply},
    {"confirm", "IFACE", "keep a policy that was applied --confirm-within", cmd_confirm},
    {"set", "IFACE RULE.FIELD=VALUE...", "change values of the policy in place", cmd_set},
    {"rotate", "IFACE", "draw another secret for the hash, keeping every limit", cmd_rotate},
    {"allow", "IFACE add|del|list [PREFIX] [--for TIME]", "sources that no rule limits", cmd_allow},
    {"unban", "IFACE KEY|all [RULE]", "lift bans before their time", cmd_unban},
    {"sample", "IFACE [--pcap FILE]", "packets of the last window, drawn at random", cmd_sample},
    {"replay", "-c POLICY FILE.pcap [--verdicts] [--kernel] [--compare POLICY2] [--plot FILE.svg]",
     "what the policy would have made of a capture; - is stdin", cmd_replay},
    {"estimate", "FILE.pcap|IFACE [--key src] [--watch] [--window 1s|--window-packets N] ...",
     "what a sample tells of a sliding window: entropy, moments, frequent keys", cmd_estimate},
    {"suggest", "FILE.pcap [--deny-share 1%] [--window 1s] [--key src/32,64]",
     "a policy that would deny at most a share of a capture's sources", cmd_suggest},
    {"keys", "--keys FILE|a,b,c --max N --window TIME [--wait] [--state FILE]",
     "a filter for scripts: a line in, a key that may be used now out", cmd_keys},
    {NULL, NULL, NULL, NULL},
};

int complain(const char *file, const struct policy_error *error)
{
	if (file && error->line)
		fprintf(stderr, "xdp-pacer: %s:%d: %s\n", file, error->line, error->text);
	else if (file)
		fprintf(stderr, "xdp-pacer: %s: %s\n", file, error->text);
	else
		fprintf(stderr, "xdp-pacer: %s\n", error->text);
	return file ? EXIT_WRONG : EXIT_FAILED;
}

int misused(const char *verb, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "xdp-pacer %s: ", verb);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": see `xdp-pacer help`\n");
	return EXIT_WRONG;
}

int gave_up(const char *verb, const char *what)
{
	fprintf(stderr, "xdp-pacer: %s: %s\n", verb, what);
	return EXIT_FAILED;
}

int written(const char *verb, int code)
{
	if (!fflush(stdout) && !ferror(stdout))
		return code;
	fprintf(stderr, "xdp-pacer: %s: the result cannot be written: %s\n", verb, strerror(errno));
	return EXIT_FAILED;
}

static const struct option all_options[] = {
    {"policy", required_argument, NULL, 'c'},
    {"mode", required_argument, NULL, 'm'},
    {"direct", no_argument, NULL, 'd'},
    {"monitor", no_argument, NULL, 'o'},
    {"json", no_argument, NULL, 'j'},
    {"watch", no_argument, NULL, 'w'},
    {"confirm-within", required_argument, NULL, 't'},
    {"for", required_argument, NULL, 'f'},
    {"verdicts", no_argument, NULL, 'v'},
    {"kernel", no_argument, NULL, 'k'},
    {"pcap", required_argument, NULL, 'p'},
    {"compare", required_argument, NULL, 'C'},
    {"plot", required_argument, NULL, 'P'},
    {"plot-rule", required_argument, NULL, 'R'},
    {"plot-key", required_argument, NULL, 'K'},
    {"deny-share", required_argument, NULL, 'S'},
    {"window", required_argument, NULL, 'W'},
    {"key", required_argument, NULL, 'Y'},
    {"keys", required_argument, NULL, 'e'},
    {"max", required_argument, NULL, 'x'},
    {"max-window", required_argument, NULL, 'X'},
    {"threshold", required_argument, NULL, 'T'},
    {"state", required_argument, NULL, 's'},
    {"wait", no_argument, NULL, 'i'},
    {NULL, 0, NULL, 0},
};

/* Where an option's text goes that its verb reads by itself; NULL: it is another kind. */
static const char **text_option(int letter, struct options *o)
{
	switch (letter) {
	case 'c':
		return &o->policy;
	case 'p':
		return &o->pcap;
	case 'C':
		return &o->compare;
	case 'P':
		return &o->plot;
	case 'R':
		return &o->plot_rule;
	case 'K':
		return &o->plot_key;
	case 'S':
		return &o->deny_share;
	case 'W':
		return &o->window;
	case 'Y':
		return &o->key;
	case 'e':
		return &o->keys;
	case 'x':
		return &o->max;
	case 'X':
		return &o->max_window;
	case 'T':
		return &o->threshold;
	case 's':
		return &o->state;
	}
	return NULL;
}

static int take_option(const char *verb, int letter, struct options *o)
{
	static const char *const modes[] = {"native", "skb", "hw"};

	if (text_option(letter, o)) {
		*text_option(letter, o) = optarg;
		return 0;
	}
	switch (letter) {
	case 'd':
		o->load.direct = true;
		return 0;
	case 'o':
		o->monitor = true;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'w':
		o->watch = true;
		return 0;
	case 'v':
		o->verdicts = true;
		return 0;
	case 'k':
		o->kernel = true;
		return 0;
	case 'i':
		o->wait = true;
		return 0;
	case 't':
	case 'f':
		if (units_duration(optarg, letter == 't' ? &o->confirm_ns : &o->for_ns) ||
		    !(letter == 't' ? o->confirm_ns : o->for_ns))
			return misused(verb, "%s is not a duration such as 90s or 10m", optarg);
		return 0;
	case 'm':
		for (int i = 0; i < 3; i++)
			if (!strcmp(optarg, modes[i])) {
				o->load.mode = i;
				return 0;
			}
		return misused(verb, "there is no mode %s: native, skb or hw", optarg);
	}
	return EXIT_WRONG;
}

int parse_options(int argc, char **argv, const char *letters, struct options *o)
{
	int letter, code;

	*o = (struct options){0};
	optind = 1;
	opterr = 0;
	while ((letter = getopt_long(argc, argv, ":c:", all_options, NULL)) != -1) {
		if (letter == ':')
			return misused(argv[0], "%s wants a value", argv[optind - 1]);
		if (letter == '?' || (letter != 'j' && !strchr(letters, letter)))
			return misused(argv[0], "it has no option %s", argv[optind - 1]);
		code = take_option(argv[0], letter, o);
		if (code)
			return code;
	}
	o->args = argv + optind;
	o->n_args = argc - optind;
	return 0;
}

int with_pacer(const struct options *o,
	       int (*run)(struct attached *a, const struct options *options))
{
	struct policy_error error = {0};
	struct attached a;
	int code;

	if (loader_find(o->args[0], &a, &error))
		return complain(NULL, &error);
	code = run(&a, o);
	loader_release(&a);
	return code;
}

/* As much of a file as tells a text that is too long; *len is its length. NULL: see errno. */
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

int read_policy(const char *file, char **text, struct policy **policy)
{
	struct policy_error error = {0};
	FILE *f = strcmp(file, "-") ? fopen(file, "r") : stdin;
	size_t len = 0;

	*policy = NULL;
	*text = f ? read_all(f, &len) : NULL;
	if (!*text)
		policy_explain(&error, 0, "%s", strerror(errno));
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

int print_json(json_t *value)
{
	int failed = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));

	putchar('\n');
	json_decref(value);
	return failed || fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
}

static int help(FILE *to)
{
	fprintf(to, "usage: xdp-pacer VERB ... [--json]\n\n");
	for (const struct verb *v = verbs; v->name; v++)
		fprintf(to, "  %-9s%s\n           %s\n", v->name, v->arguments, v->summary);
	fprintf(to, "\nExit codes: 0 done, 1 failed, 2 usage or policy error. See xdp-pacer(8).\n");
	return to == stdout ? EXIT_DONE : EXIT_WRONG;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return help(stderr);
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(stdout);
	if (!strcmp(argv[1], "--version")) {
		printf("xdp-pacer %s, ABI %u\n", PACER_VERSION, PACER_ABI_VERSION);
		return EXIT_DONE;
	}
	for (const struct verb *v = verbs; v->name; v++)
		if (!strcmp(v->name, argv[1]))
			return v->run(argc - 1, argv + 1);
	fprintf(stderr, "xdp-pacer: there is no verb %s: see `xdp-pacer help`\n", argv[1]);
	return EXIT_WRONG;
}
