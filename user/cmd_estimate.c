/* SPDX-License-Identifier: GPL-2.0-only */
/* estimate: what a sample of a sliding window tells of the traffic of a capture, or of a pacer at
 * work.
 */
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "estimate_want.h"
#include "estimator.h"
#include "pooled.h"
#include "track.h"

#define SAMPLES_DEFAULT 1024
#define SECOND_NS	1000000000ull
#define OF_CAPTURES	"wnsSxtr" /* letters of options */

_Static_assert(ESTIMATE_MOMENT_MAX == POOLED_MOMENT_MAX, "--moment goes as far for both");

int estimate_failed(const char *what)
{
	fprintf(stderr, "xdp-pacer: " ESTIMATE_VERB ": %s\n", what);
	return EXIT_FAILED;
}

/* --- what is asked -------------------------------------------------------------------------- */

static const struct option all_options[] = {
    {"window", required_argument, NULL, 'w'},
    {"window-packets", required_argument, NULL, 'n'},
    {"key", required_argument, NULL, 'y'},
    {"moment", required_argument, NULL, 'm'},
    {"samples", required_argument, NULL, 's'},
    {"every", required_argument, NULL, 'e'},
    {"step", required_argument, NULL, 'S'},
    {"exact", no_argument, NULL, 'x'},
    {"triangles", no_argument, NULL, 't'},
    {"seed", required_argument, NULL, 'r'},
    {"watch", no_argument, NULL, 'W'},
    {"json", no_argument, NULL, 'j'},
    {NULL, 0, NULL, 0},
};

static int take_duration(const char *what, uint64_t *ns)
{
	if (units_duration(optarg, ns) || !*ns)
		return misused(ESTIMATE_VERB, "--%s %s is not a duration such as 1s or 250ms", what,
			       optarg);
	return EXIT_DONE;
}

static int take_count(const char *what, uint64_t least, uint64_t most, uint64_t *count)
{
	uint64_t n;

	if (units_count(optarg, &n) || n < least || n > most)
		return misused(ESTIMATE_VERB,
			       "--%s %s is not a number from %" PRIu64 " to %" PRIu64, what, optarg,
			       least, most);
	*count = n;
	return EXIT_DONE;
}

static int take_number(int letter, struct estimate_want *w)
{
	uint64_t n = 0;
	int code;

	if (letter == 'n') {
		w->by_time = false;
		return take_count("window-packets", 1, TRACK_PACKETS_MAX, &w->window);
	}
	if (letter == 'r')
		return take_count("seed", 0, UINT64_MAX, &w->seed);
	code = letter == 'm' ? take_count("moment", 1, ESTIMATE_MOMENT_MAX, &n)
			     : take_count("samples", 1, TRACK_SAMPLES_MAX, &n);
	if (letter == 'm')
		w->moment = n;
	else
		w->samples = (n + PACER_SAMPLE_K - 1) / PACER_SAMPLE_K * PACER_SAMPLE_K;
	return code;
}

static int take_option(int letter, struct estimate_want *w, const char **step)
{
	switch (letter) {
	case 'w':
		w->by_time = true;
		return take_duration("window", &w->window);
	case 'e':
		return take_duration("every", &w->every_ns);
	case 'y':
		w->key.text = optarg;
		return EXIT_DONE;
	case 'S':
		*step = optarg;
		return EXIT_DONE;
	case 'x':
		w->exact = true;
		return EXIT_DONE;
	case 't':
		w->triangles = true;
		return EXIT_DONE;
	case 'W':
		w->watch = true;
		return EXIT_DONE;
	case 'j':
		w->json = true;
		return EXIT_DONE;
	default:
		return take_number(letter, w);
	}
}

/* One "1s:8" of --step. */
static int take_step(struct estimate_want *w, char *text)
{
	char *colon = strchr(text, ':');
	struct estimate_step *s = &w->step[w->steps], *before = w->steps ? s - 1 : NULL;
	uint64_t weight;

	if (w->steps == PACER_ESTIMATE_STEPS)
		return misused(ESTIMATE_VERB, "--step has more than %d windows",
			       PACER_ESTIMATE_STEPS);
	if (colon)
		*colon = 0;
	if (!colon || units_count(colon + 1, &weight) || !weight ||
	    weight > PACER_ESTIMATE_WEIGHT_MAX ||
	    (w->by_time ? units_duration(text, &s->window) : units_count(text, &s->window)) ||
	    !s->window || (!w->by_time && s->window > TRACK_PACKETS_MAX))
		return misused(
		    ESTIMATE_VERB, "--step wants WINDOW:WEIGHT, such as %s, weights up to %u",
		    w->by_time ? "1s:8,10s:1" : "100:8,1000:1", PACER_ESTIMATE_WEIGHT_MAX);
	s->weight = weight;
	if (before && (s->window <= before->window || s->weight > before->weight))
		return misused(ESTIMATE_VERB,
			       "--step: windows rise and weights fall, from the newest on");
	w->steps++;
	return EXIT_DONE;
}

static int take_steps(struct estimate_want *w, const char *text)
{
	char copy[256], *at = copy, *part;
	int code = EXIT_DONE;

	if (!text)
		return EXIT_DONE;
	if (strlen(text) >= sizeof(copy))
		return misused(ESTIMATE_VERB, "--step is too long");
	memcpy(copy, text, strlen(text) + 1);
	while (!code && (part = strsep(&at, ",")))
		code = take_step(w, part);
	return code;
}

/* A file wins over an interface of its name. */
static bool is_interface(const char *name)
{
	return strcmp(name, "-") && access(name, F_OK) && if_nametoindex(name);
}

/* given: the letters of the options, in their order. */
static int check_given(const char *given, struct estimate_want *w)
{
	size_t first = strcspn(given, OF_CAPTURES);

	if (strchr(given, 'w') && strchr(given, 'n'))
		return misused(ESTIMATE_VERB,
			       "--window and --window-packets are two windows: choose one");
	if (!is_interface(w->name))
		return w->watch ? misused(ESTIMATE_VERB, "--watch is for interfaces") : EXIT_DONE;
	for (const struct option *o = all_options; given[first] && o->name; o++)
		if (o->val == given[first])
			return misused(ESTIMATE_VERB,
				       "--%s is for captures: the window and the samples of an "
				       "interface are those of its policy",
				       o->name);
	w->watch |= w->every_ns != 0;
	w->every_ns = w->every_ns ? w->every_ns : SECOND_NS;
	return EXIT_DONE;
}

static int parse(int argc, char **argv, struct estimate_want *w)
{
	const char *step = NULL;
	char given[64] = "";
	int letter, code = EXIT_DONE;

	*w = (struct estimate_want){.key.text = "src/32,64",
				    .by_time = true,
				    .window = SECOND_NS,
				    .moment = 2,
				    .samples = SAMPLES_DEFAULT,
				    .seed = 1};
	optind = 1;
	opterr = 0;
	while (!code && (letter = getopt_long(argc, argv, ":", all_options, NULL)) != -1) {
		if (letter == ':')
			return misused(ESTIMATE_VERB, "%s wants a value", argv[optind - 1]);
		if (letter == '?')
			return misused(ESTIMATE_VERB, "it has no option %s", argv[optind - 1]);
		if (!strchr(given, letter))
			given[strlen(given)] = (char)letter;
		code = take_option(letter, w, &step);
	}
	if (code)
		return code;
	if (argc - optind != 1)
		return misused(ESTIMATE_VERB, "it wants one capture or interface");
	w->name = argv[optind];
	code = check_given(given, w);
	return code ? code : take_steps(w, step);
}

/* --- the verb ------------------------------------------------------------------------------- */

int cmd_estimate(int argc, char **argv)
{
	struct estimate_want want;
	int code = parse(argc, argv, &want);

	if (!code)
		code = estimate_key_open(want.key.text, &want.key);
	if (code)
		return code;
	code = is_interface(want.name) ? estimate_live(&want) : estimate_file(&want);
	estimate_key_close(&want.key);
	return code;
}
