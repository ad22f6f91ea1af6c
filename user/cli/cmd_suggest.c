/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * suggest: from a capture, a policy that would deny at most a given share of its sources. For each
 * source it finds the smallest limit that would have denied it nothing. It uses wide records, since
 * no limit is known yet. The share decides which of these limits is written down. A replay of the
 * whole policy has to confirm it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/captured.h"
#include "cli/cmd.h"
#include "cli/emit.h"
#include "offline/capture.h"
#include "offline/judge.h"
#include "offline/search.h"
#include "inspect/tally.h"
#include "window.h"

#define PLACES	    (1u << 20) /* 7/8 of this many sources can be told apart */
#define TRIES_MAX   16
#define TEXT_MAX    4096
#define KEY_DEFAULT "src/32,64"

/* Of one source. */
struct note {
	uint32_t smallest; /* packets in a window: the smallest limit that denies it nothing */
	uint32_t denied;   /* the number of the last try that denied it something */
};

struct suggestion {
	const struct options *o;
	double share; /* of the sources that may be denied something */
	uint64_t window_ns;
	char key[48];
	struct capture capture;
	struct tally sources;
	uint32_t *smallest; /* of every source, the greatest first */
	uint64_t packets;
	uint32_t allowed; /* sources */
	uint32_t limit, denied;
	uint64_t denied_packets;
	bool confirmed;
};

/* --- the policy ----------------------------------------------------------------------------- */

/* The policy as it is shown, without the comment above it. */
static int rules_text(const struct suggestion *s, uint32_t limit, char *buf, size_t size)
{
	char window[32];

	units_duration_text(s->window_ns, window, sizeof(window));
	return snprintf(buf, size,
			"mode: enforce\nrules:\n  - name: suggested\n%s    limits:\n"
			"      - {key: \"%s\", packets: %u, window: %s, slots: 10}\n",
			s->o->inner ? "    match: {inner: yes}\n" : "", s->key, limit, window);
}

/* Says so. Returns the exit code. */
static int no_policy(const struct suggestion *s, const struct policy_error *error)
{
	if (error->line == POLICY_NO_MEMORY)
		(void)gave_up("suggest", "no memory");
	else
		(void)misused("suggest", "no policy can be made of --key %s and --window: %s",
			      s->key, error->text);
	return error->line == POLICY_NO_MEMORY ? EXIT_FAILED : EXIT_WRONG;
}

/* False: it has said why, and *code is the exit code. The caller frees *policy in either case. */
static bool open_judge(const struct suggestion *s, uint32_t limit, struct policy **policy,
		       struct judge *judge, int *code)
{
	struct policy_error error = {0};
	char text[TEXT_MAX];
	int len = rules_text(s, limit, text, sizeof(text));

	*policy = policy_parse(text, (size_t)len, &error);
	if (*policy && !judge_open(judge, NULL, *policy, false, &error))
		return true;
	*code = no_policy(s, &error);
	return false;
}

/* --- the smallest limit of every source ----------------------------------------------------- */

/* The limit that the source needs for this packet. Mostly it is one more than before. */
static uint32_t need(const struct judge *j, const struct pacer_packet *pkt, uint64_t time_ns,
		     uint32_t smallest)
{
	struct search search = {.judge = j, .pkt = pkt, .now_ns = time_ns};
	uint32_t small = smallest, enough = smallest;

	for (uint64_t step = 1; enough != PACER_LIMIT_MAX && !search_admits(&search, enough);
	     step *= 2) {
		small = enough;
		enough = enough + step < PACER_LIMIT_MAX ? enough + step : PACER_LIMIT_MAX;
	}
	return search_smallest(&search, small, enough);
}

static void measure_frame(struct suggestion *s, const struct judge *j,
			  const struct replay_frame *frame)
{
	const struct policy_key *kind = &j->policy->rule[0].limit[0].key;
	struct pacer_limiter *t = &j->bin->rule[0].limiter[0];
	struct policy_error error;
	struct pacer_packet pkt = {0};
	struct replay_judged judged;
	struct tally_key key;
	struct note *note;

	if (!pacer_outcome_undecided(replay_begin(j->replay, frame, &pkt)) ||
	    (s->o->inner && !pkt.inner))
		return;
	s->packets++;
	key = tally_key_of(t, kind, &pkt);
	note = tally_put(&s->sources, &key);
	if (note)
		note->smallest = need(j, &pkt, frame->now_ns, note->smallest);
	kind_of_limiter(t)->tune(t, PACER_LIMIT_MAX);
	(void)replay_judge(j->replay, frame, &judged, &error); /* in user space it cannot fail */
}

static int measure(struct suggestion *s)
{
	struct replay_frame frame;
	struct policy *policy;
	struct judge judge;
	int code = EXIT_DONE;

	if (open_judge(s, PACER_NARROW_LIMIT + 1, &policy, &judge, &code)) {
		while (capture_next(&s->capture, &frame) == 1)
			measure_frame(s, &judge, &frame);
		judge_close(&judge);
	}
	policy_free(policy);
	return code;
}

static int greatest_first(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x < y) - (x > y);
}

/* Chooses the limit: no more sources than the share allows need a greater one. */
static int choose(struct suggestion *s)
{
	uint32_t n = 0;

	if (!s->sources.n) {
		complaint("%s: no IP packet in %s: there is nothing to suggest", s->capture.file,
			  s->o->inner ? "a tunnel of it" : "it");
		return EXIT_FAILED;
	}
	s->smallest = malloc(s->sources.n * sizeof(*s->smallest));
	if (!s->smallest)
		return gave_up("suggest", "no memory");
	for (uint32_t i = 0; i < s->sources.places; i++)
		if (tally_key_at(&s->sources, i)->family != PACER_FAMILY_NONE)
			s->smallest[n++] = ((struct note *)tally_note_at(&s->sources, i))->smallest;
	qsort(s->smallest, n, sizeof(*s->smallest), greatest_first);
	s->allowed = (uint32_t)floor(s->share * n);
	s->limit = s->allowed < n ? s->smallest[s->allowed] : 1;
	return EXIT_DONE;
}

/* --- the replay that has to confirm it ------------------------------------------------------ */

static void count_frame(struct suggestion *s, const struct judge *j,
			const struct replay_frame *frame, uint32_t try)
{
	const struct policy_key *kind = &j->policy->rule[0].limit[0].key;
	struct policy_error error;
	struct replay_judged judged;
	struct tally_key key;
	struct note *note;

	(void)replay_judge(j->replay, frame, &judged, &error);
	if (!judge_denied(&judged))
		return;
	s->denied_packets++;
	key = tally_key_of(&j->bin->rule[0].limiter[0], kind, &judged.pkt);
	note = tally_find(&s->sources, &key);
	if (note && note->denied != try) {
		note->denied = try;
		s->denied++;
	}
}

static int replay_try(struct suggestion *s, uint32_t try)
{
	struct replay_frame frame;
	struct policy *policy;
	struct judge judge;
	int code = EXIT_DONE;

	s->denied = 0;
	s->denied_packets = 0;
	if (open_judge(s, s->limit, &policy, &judge, &code)) {
		code = restart_capture(&s->capture);
		while (!code && capture_next(&s->capture, &frame) == 1)
			count_frame(s, &judge, &frame, try);
		judge_close(&judge);
	}
	policy_free(policy);
	return code;
}

/* Takes the next greater limit that a source needs. */
static void raise_limit(struct suggestion *s)
{
	uint32_t i = s->sources.n;

	while (i && s->smallest[i - 1] <= s->limit)
		i--;
	s->limit = i ? s->smallest[i - 1] : s->limit + 1;
}

/*
 * Sources that share an entry disturb each other. Under a limit they do so a little differently
 * than without one. So the replay may deny one source more.
 */
static int confirm(struct suggestion *s)
{
	if (!capture_repeats(&s->capture))
		return EXIT_DONE;
	for (uint32_t try = 1; try <= TRIES_MAX; try++) {
		int code = replay_try(s, try);

		if (code)
			return code;
		s->confirmed = s->denied <= s->allowed;
		if (s->confirmed)
			return EXIT_DONE;
		raise_limit(s);
	}
	complaint(
	    "%s: no replay confirms a limit: its sources are more than the table holds: use a "
	    "wider --key",
	    s->capture.file);
	return EXIT_FAILED;
}

/* --- what is shown -------------------------------------------------------------------------- */

/* "12 (0.5%)" */
static const char *share_text(uint64_t n, uint64_t of, char *buf, size_t size)
{
	snprintf(buf, size, "%s (%.3g%%)", thousands(n).text, 100.0 * (double)n / (double)of);
	return buf;
}

/* The comment above the policy. */
static void emit_summary(const struct suggestion *s)
{
	char sources[64], packets[64];
	uint32_t n = s->sources.n;

	emit_text("# Suggested by xdp-pacer from a capture, to deny at most %.6g%% of its "
		  "sources.\n# Of %s sources (%s) ",
		  100 * s->share, thousands(n).text, s->key);
	if (s->confirmed)
		emit_text("it denies something to %s, of %s packets %s: replayed.\n",
			  share_text(s->denied, n, sources, sizeof(sources)),
			  thousands(s->packets).text,
			  share_text(s->denied_packets, s->packets, packets, sizeof(packets)));
	else
		emit_text("it should deny something to %s at most. Not replayed: stdin or a "
			  "pipe\n# cannot be read again.\n",
			  thousands(s->allowed).text);
}

static int show(const struct suggestion *s)
{
	char rules[TEXT_MAX];

	rules_text(s, s->limit, rules, sizeof(rules));
	if (s->sources.lost)
		complaint("suggest: %u sources are told apart; %" PRIu64
			  " packets of further ones were not counted: a wider --key has fewer",
			  tally_room(&s->sources), s->sources.lost);
	emit_begin(s->o->json);
	emit_object("");
	emit_summary(s);
	emit_string("policy", rules, "%s", rules);
	emit_string("key", s->key, NULL);
	emit_uint("window_ns", s->window_ns, NULL);
	emit_uint("packets_in_window", s->limit, NULL);
	emit_uint("packets", s->packets, NULL);
	emit_uint("sources", s->sources.n, NULL);
	emit_real("deny_share", s->share, NULL);
	emit_flag("confirmed", s->confirmed, NULL);
	if (s->confirmed) {
		emit_uint("sources_denied", s->denied, NULL);
		emit_uint("packets_denied", s->denied_packets, NULL);
	} else {
		emit_null("sources_denied", NULL);
		emit_null("packets_denied", NULL);
	}
	emit_uint("packets_of_further_sources", s->sources.lost, NULL);
	emit_close();
	return emit_end();
}

/* --- the verb ------------------------------------------------------------------------------- */

/* "1%", "0.5%" */
static int read_share(const char *text, double *share)
{
	char *end;

	*share = text ? strtod(text, &end) / 100 : 0.01;
	if (text && (end == text || strcmp(end, "%") || !(*share >= 0 && *share <= 1)))
		return misused("suggest", "--deny-share %s is not a share such as 1%% or 0.5%%",
			       text);
	return EXIT_DONE;
}

/* Writes the key with both prefix lengths, so that the policy explains itself. */
static int spell_key(struct suggestion *s)
{
	struct policy_error error = {0};
	struct policy *policy;
	char text[TEXT_MAX];
	int len = rules_text(s, 1, text, sizeof(text));

	policy = policy_parse(text, (size_t)len, &error);
	if (!policy)
		return no_policy(s, &error);
	policy_key_text(&policy->rule[0].limit[0].key, s->key, sizeof(s->key));
	policy_free(policy);
	return EXIT_DONE;
}

static int read_usage(struct suggestion *s)
{
	const struct options *o = s->o;
	const char *key = o->key ? o->key : KEY_DEFAULT;

	if (o->n_args != 1)
		return misused("suggest", "it wants one capture");
	if (strchr(key, '['))
		return misused(
		    "suggest",
		    "--key %s is a ladder: ask for each length by itself, as src/32,64 "
		    "and src/24,56: a ladder of their values has them as wider: [xN, ...]",
		    key);
	if (!strncmp(key, "value(", 6))
		return misused(
		    "suggest",
		    "--key %s counts by a set, which a suggested policy has not: write the "
		    "policy, and `xdp-pacer replay` says what the limit would have to be",
		    key);
	if (strlen(key) > 32 ||
	    strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789+/,") != strlen(key))
		return misused("suggest", "--key %s is not a key such as src/32,64", key);
	snprintf(s->key, sizeof(s->key), "%s", key);
	if (!o->window)
		s->window_ns = 1000000000;
	else if (units_duration(o->window, &s->window_ns) || s->window_ns < 10)
		return misused("suggest", "--window %s is not a duration such as 1s or 500ms",
			       o->window);
	if (read_share(o->deny_share, &s->share))
		return EXIT_WRONG;
	return spell_key(s);
}

static int suggest(struct suggestion *s)
{
	int code = start_capture(&s->capture, s->o->args[0]), shown;

	if (code)
		return code;
	if (tally_open(&s->sources, PLACES, sizeof(struct note)))
		return gave_up("suggest", "no memory");
	code = measure(s);
	if (!code)
		code = choose(s);
	if (!code)
		code = confirm(s);
	shown = code ? code : show(s);
	return s->capture.damaged && !shown ? EXIT_FAILED : shown;
}

static int run_suggest(struct options *o)
{
	struct suggestion s = {.o = o};
	int code = read_usage(&s);

	if (!code)
		code = suggest(&s);
	capture_close(&s.capture);
	tally_close(&s.sources);
	free(s.smallest);
	return code;
}

static const struct option_row suggest_options[] = {
    {"deny-share", 0, "1%", "of the sources that may be denied something", OPTION_TEXT(deny_share)},
    {"window", 0, "TIME", "of the limit: 1s unless said", OPTION_TEXT(window)},
    {"key", 0, "KEY", "of the limit: src/32,64 unless said", OPTION_TEXT(key)},
    {"inner", 0, NULL, "of the packets in tunnels", OPTION_FLAG(inner)},
    {0},
};

const struct verb verb_suggest = {"suggest",
				  "FILE.pcap",
				  "a policy that would deny at most a share of a capture's sources",
				  suggest_options,
				  run_suggest,
				  .group = VERBS_FIND,
				  .example = "xdp-pacer suggest traffic.pcap --deny-share 0.5%"};
