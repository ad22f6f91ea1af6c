/* SPDX-License-Identifier: GPL-2.0-only */
/* estimate: what a sample of a sliding window says about a capture or about live traffic. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/estimate_show.h"
#include "live/device.h"

#define ESTIMATE_VERB	"estimate"
#define SAMPLES_DEFAULT 1024
#define TEXT_OF_(macro) #macro
#define TEXT_OF(macro)	TEXT_OF_(macro)
#define SECOND_NS	1000000000ull

_Static_assert(ESTIMATE_MOMENT_MAX == POOLED_MOMENT_MAX, "--moment goes as far for both");

/* --- what is asked -------------------------------------------------------------------------- */

static int read_duration(const char *what, const char *text, uint64_t *ns)
{
	if (text && (units_duration(text, ns) || !*ns))
		return misused(ESTIMATE_VERB, "--%s %s %s", what, text, units_duration_wrong(text));
	return EXIT_DONE;
}

static int read_count(const char *what, const char *text, uint64_t smallest, uint64_t most,
		      uint64_t *count)
{
	uint64_t n;

	if (!text)
		return EXIT_DONE;
	if (units_count(text, &n) || n < smallest || n > most)
		return misused(ESTIMATE_VERB,
			       "--%s %s is not a number from %" PRIu64 " to %" PRIu64, what, text,
			       smallest, most);
	*count = n;
	return EXIT_DONE;
}

static int read_numbers(const struct options *o, struct estimate_want *w)
{
	uint64_t moment = 2, samples = SAMPLES_DEFAULT;
	int code = read_duration("window", o->window, &w->window);

	if (!code)
		code = read_count("window-packets", o->window_packets, 1, TRACK_PACKETS_MAX,
				  &w->window);
	if (!code)
		code = read_duration("every", o->every, &w->every_ns);
	if (!code)
		code = read_count("moment", o->moment, 1, ESTIMATE_MOMENT_MAX, &moment);
	if (!code)
		code = read_count("samples", o->samples, 1, TRACK_SAMPLES_MAX, &samples);
	if (!code)
		code = read_count("seed", o->seed, 0, UINT64_MAX, &w->seed);
	w->moment = moment;
	w->samples = (samples + PACER_SAMPLE_K - 1) / PACER_SAMPLE_K * PACER_SAMPLE_K;
	return code;
}

/* One element of --step, such as "1s:8". */
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
		return misused(ESTIMATE_VERB, "--step: each window is longer than the one before, "
					      "and its weight is not greater");
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

/* If a file and an interface have the same name, it is the file. */
static bool is_interface(const char *name)
{
	return strcmp(name, "-") && access(name, F_OK) && device_named(name);
}

static int check_interface(const struct options *o)
{
	const struct {
		const char *name;
		bool given;
	} of_captures[] = {
	    {"window", o->window},   {"window-packets", o->window_packets},
	    {"samples", o->samples}, {"step", o->step},
	    {"exact", o->exact},     {"triangles", o->triangles},
	    {"seed", o->seed},
	};

	for (size_t i = 0; i < sizeof(of_captures) / sizeof(*of_captures); i++)
		if (of_captures[i].given)
			return misused(ESTIMATE_VERB,
				       "--%s is for captures: the window and the samples of an "
				       "interface are those of its policy",
				       of_captures[i].name);
	return EXIT_DONE;
}

static int check_source(const struct options *o, struct estimate_want *w)
{
	if (o->window && o->window_packets)
		return misused(ESTIMATE_VERB,
			       "--window and --window-packets are two windows: choose one");
	if (!is_interface(w->name))
		return w->watch ? misused(ESTIMATE_VERB, "--watch is for interfaces") : EXIT_DONE;
	w->watch |= w->every_ns != 0;
	w->every_ns = w->every_ns ? w->every_ns : SECOND_NS;
	return check_interface(o);
}

static int read_want(const struct options *o, struct estimate_want *w)
{
	int code;

	*w = (struct estimate_want){.key.text = o->key ? o->key : "src/32,64",
				    .by_time = !o->window_packets,
				    .window = SECOND_NS,
				    .exact = o->exact,
				    .triangles = o->triangles,
				    .watch = o->watch,
				    .seed = 1};
	code = read_numbers(o, w);
	if (code)
		return code;
	if (o->n_args != 1)
		return misused(ESTIMATE_VERB, "it wants one capture or interface");
	w->name = o->args[0];
	code = check_source(o, w);
	return code ? code : take_steps(w, o->step);
}

/* --- the verb ------------------------------------------------------------------------------- */

static int open_key(struct estimate_want *want)
{
	struct policy_error error = {0};

	if (!estimate_key_open(want->key.text, &want->key, &error))
		return EXIT_DONE;
	return error.line == POLICY_NO_MEMORY ? gave_up(ESTIMATE_VERB, error.text)
					      : misused(ESTIMATE_VERB, "%s", error.text);
}

static int run_estimate(struct options *o)
{
	struct estimate_want want;
	int code = read_want(o, &want);

	if (!code)
		code = open_key(&want);
	if (code)
		return code;
	code = is_interface(want.name) ? estimate_show_live(&want, o->json)
				       : estimate_show_file(&want, o->json);
	estimate_key_close(&want.key);
	return code;
}

static const struct option_row estimate_options[] = {
    {"key", 0, "KEY", "what packets are counted by, as in a policy: src unless said",
     OPTION_TEXT(key)},
    {"window", 0, "TIME", "of a capture: 1s unless said", OPTION_TEXT(window)},
    {"window-packets", 0, "N", "or so many packets", OPTION_TEXT(window_packets)},
    {"every", 0, "TIME", "a row each such time", OPTION_TEXT(every)},
    {"watch", 'w', NULL, "of an interface: a row a second", OPTION_FLAG(watch)},
    {"moment", 0, "K",
     "the power of the counts, 1 to " TEXT_OF(ESTIMATE_MOMENT_MAX) ": 2 unless said",
     OPTION_TEXT(moment)},
    {"samples", 0, "K", "held of a capture's window: " TEXT_OF(SAMPLES_DEFAULT) " unless said",
     OPTION_TEXT(samples)},
    {"step", 0, "WINDOW:WEIGHT,...", "draw a sample with newer packets more likely",
     OPTION_TEXT(step)},
    {"triangles", 0, NULL, "count triples of addresses that all sent to each other",
     OPTION_FLAG(triangles)},
    {"exact", 0, NULL, "show the exact values, too", OPTION_FLAG(exact)},
    {"seed", 0, "N", "of the random choices: 1 unless said", OPTION_TEXT(seed)},
    {0},
};

const struct verb verb_estimate = {
    "estimate",
    "FILE.pcap|IFACE...",
    "what a sample of the packets tells: entropy, moments, frequent keys",
    estimate_options,
    run_estimate,
    .group = VERBS_LOOK,
    .interfaces = INTERFACES_LEAD,
    .example = "xdp-pacer estimate traffic.pcap --window 10s --key src/24,48"};
