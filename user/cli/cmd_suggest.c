/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * suggest: from a capture, a policy that would deny at most a given share of its sources. For each
 * source it finds the smallest limit that would have denied it nothing. It uses wide records, since
 * no limit is known yet. The share decides which of these limits is written down. A replay of the
 * whole policy has to confirm it.
 *
 * A key that is a ladder is a limit for each of its lengths, the narrowest first. Each is measured
 * with the narrower ones in force, since what these deny is charged to no wider one: else one
 * source that floods would have its whole network's limit made large enough for it.
 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/captured.h"
#include "cli/cmd.h"
#include "cli/emit.h"
#include "config/document.h"
#include "offline/capture.h"
#include "offline/judge.h"
#include "offline/search.h"
#include "inspect/tally.h"
#include "window.h"

#define PLACES	    (1u << 20) /* 7/8 of this many sources can be told apart */
#define TRIES_MAX   16
#define TEXT_MAX    4096
#define KEY_DEFAULT "src/32,64"
#define KEY_MAX	    100 /* of two lists of lengths */

/* Of one source, or of one prefix. */
struct note {
	uint32_t smallest; /* packets in a window: the smallest limit that denies it nothing */
	uint32_t denied;   /* the number of the last replay that denied it something */
};

/* One limit of what is suggested; a ladder has several. */
struct rung {
	char key[POLICY_KEY_TEXT];
	struct tally sources;
	uint32_t *smallest; /* of every source, the greatest first */
	uint32_t allowed;   /* sources */
	uint32_t limit, denied;
	uint64_t denied_packets;
};

struct measuring {
	struct judge judge;
	uint32_t from, to; /* the limits that are measured; those before are in force */
};

struct suggestion {
	const struct options *o;
	double share; /* of the sources that may be denied something */
	uint64_t window_ns;
	char key[POLICY_LINE_TEXT];
	struct capture capture;
	struct rung rung[POLICY_LIMITS_MAX];
	uint32_t rungs;
	uint64_t packets;
	uint32_t tries; /* replays */
	bool confirmed;
};

/* --- the policy ----------------------------------------------------------------------------- */

static void append_limit(const struct suggestion *s, const char *key, uint32_t limit,
			 const char *more, char *buf, size_t size)
{
	char window[32];

	units_duration_text(s->window_ns, window, sizeof(window));
	doc_append(buf, size, "      - {key: \"%s\", packets: %u, window: %s, slots: 10%s}\n", key,
		   limit, window, more);
}

static void begin_rules(const struct suggestion *s, char *buf, size_t size)
{
	snprintf(buf, size, "mode: enforce\nrules:\n  - name: suggested\n%s    limits:\n",
		 s->o->inner ? "    match: {inner: yes}\n" : "");
}

/* The policy as it is shown, without the comment above it. A ladder is written out, a limit a
 * length: in one line, all of its limits would have to be multiples of the first.
 */
static void rules_text(const struct suggestion *s, char *buf, size_t size)
{
	begin_rules(s, buf, size);
	for (uint32_t i = 0; i < s->rungs; i++)
		append_limit(s, s->rung[i].key, s->rung[i].limit, "", buf, size);
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
static bool open_judge(const struct suggestion *s, struct policy **policy, struct judge *judge,
		       int *code)
{
	struct policy_error error = {0};
	char text[TEXT_MAX];

	rules_text(s, text, sizeof(text));
	*policy = policy_parse(text, strlen(text), &error);
	if (*policy && !judge_open(judge, NULL, *policy, false, &error))
		return true;
	*code = no_policy(s, &error);
	return false;
}

/* --- the smallest limit of every source ----------------------------------------------------- */

static uint32_t limiter_of(const struct judge *j, uint32_t limit)
{
	return (uint32_t)(judge_limiter(j, 0, limit) - j->bin->rule[0].limiter);
}

/* The limit that the source needs for this packet. Mostly it is one more than before. */
static uint32_t need(const struct search *search, uint32_t smallest)
{
	uint32_t small = smallest, enough = smallest;

	for (uint64_t step = 1; enough != PACER_LIMIT_MAX && !search_admits(search, enough);
	     step *= 2) {
		small = enough;
		enough = enough + step < PACER_LIMIT_MAX ? enough + step : PACER_LIMIT_MAX;
	}
	return search_smallest(search, small, enough);
}

/* Does a limit that is in force deny the packet? */
static bool denied_before(const struct measuring *m, const struct pacer_packet *pkt,
			  uint64_t time_ns)
{
	for (uint32_t i = 0; i < m->from; i++)
		if (replay_peek(m->judge.replay, pkt, 0, limiter_of(&m->judge, i), time_ns) !=
		    PACER_ADMIT)
			return true;
	return false;
}

static void measure_limit(struct suggestion *s, const struct measuring *m, uint32_t limit,
			  const struct pacer_packet *pkt, uint64_t time_ns, bool denied)
{
	const struct judge *j = &m->judge;
	const struct policy_key *kind = &j->policy->rule[0].limit[limit].key;
	struct search search = {j, 0, limiter_of(j, limit), pkt, time_ns};
	struct tally_key key = tally_key_of(judge_limiter(j, 0, limit), kind, pkt);
	struct note *note = tally_put(&s->rung[limit].sources, &key);

	if (note && !denied)
		note->smallest = need(&search, note->smallest);
}

static void measure_frame(struct suggestion *s, const struct measuring *m,
			  const struct replay_frame *frame)
{
	struct policy_error error;
	struct pacer_packet pkt = {0};
	struct replay_judged judged;
	bool denied;

	if (!pacer_outcome_undecided(replay_begin(m->judge.replay, frame, &pkt)) ||
	    (s->o->inner && !pkt.inner))
		return;
	s->packets += !m->from;
	denied = denied_before(m, &pkt, frame->now_ns);
	for (uint32_t i = m->from; i < m->to; i++)
		measure_limit(s, m, i, &pkt, frame->now_ns, denied);
	(void)replay_judge(m->judge.replay, frame, &judged,
			   &error); /* in user space it cannot fail */
}

/* Those from the n-th on deny nothing. */
static void open_limits(const struct suggestion *s, const struct judge *j, uint32_t n)
{
	for (uint32_t i = n; i < s->rungs; i++) {
		struct pacer_limiter *t = judge_limiter(j, 0, i);

		kind_of_limiter(t)->tune(t, PACER_LIMIT_MAX);
	}
}

/* Reads the capture with the limits below `from` in force and all others open. */
static int measure(struct suggestion *s, uint32_t from, uint32_t to)
{
	struct measuring m = {.from = from, .to = to};
	struct replay_frame frame;
	struct policy *policy;
	int code = EXIT_DONE;

	if (open_judge(s, &policy, &m.judge, &code)) {
		open_limits(s, &m.judge, from);
		if (from)
			code = restart_capture(&s->capture);
		capture_tell(&s->capture, m.judge.replay);
		while (!code && capture_next(&s->capture, &frame) == 1)
			measure_frame(s, &m, &frame);
		judge_close(&m.judge);
	}
	policy_free(policy);
	return code;
}

/* --- a replay under the limits ---------------------------------------------------------------- */

static void count_frame(struct suggestion *s, const struct judge *j,
			const struct replay_frame *frame)
{
	struct policy_error error;
	struct replay_judged judged;
	struct tally_key key;
	struct note *note;
	struct rung *r;
	uint32_t limit;

	(void)replay_judge(j->replay, frame, &judged, &error);
	if (!judge_denied(&judged))
		return;
	limit = judge_limit_of(j, &judged);
	r = &s->rung[limit];
	r->denied_packets++;
	key = tally_key_of(judge_limiter(j, 0, limit), &j->policy->rule[0].limit[limit].key,
			   &judged.pkt);
	note = tally_find(&r->sources, &key);
	if (note && note->denied != s->tries) {
		note->denied = s->tries;
		r->denied++;
	}
}

/* Counts what the first `n` limits deny, all others being open. */
static int replay_try(struct suggestion *s, uint32_t n)
{
	struct replay_frame frame;
	struct policy *policy;
	struct judge judge;
	int code = EXIT_DONE;

	s->tries++;
	for (uint32_t i = 0; i < s->rungs; i++) {
		s->rung[i].denied = 0;
		s->rung[i].denied_packets = 0;
	}
	if (open_judge(s, &policy, &judge, &code)) {
		open_limits(s, &judge, n);
		code = restart_capture(&s->capture);
		capture_tell(&s->capture, judge.replay);
		while (!code && capture_next(&s->capture, &frame) == 1)
			count_frame(s, &judge, &frame);
		judge_close(&judge);
	}
	policy_free(policy);
	return code;
}

/* --- the limit that the share decides --------------------------------------------------------- */

static int greatest_first(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x < y) - (x > y);
}

/* A wider prefix never gets less than one in it, or that one's limit would say nothing. */
static void keep_order(struct suggestion *s)
{
	for (uint32_t i = 1; i < s->rungs; i++)
		if (s->rung[i].limit < s->rung[i - 1].limit)
			s->rung[i].limit = s->rung[i - 1].limit;
}

/* Chooses the limit: no more sources than the share allows need a greater one. */
static int choose(const struct suggestion *s, struct rung *r)
{
	uint32_t n = 0;

	if (!r->sources.n && capture_is_lost(&s->capture))
		return EXIT_FAILED;
	if (!r->sources.n) {
		complaint("%s: no IP packet in %s: there is nothing to suggest", s->capture.file,
			  s->o->inner ? "a tunnel of it" : "it");
		return EXIT_FAILED;
	}
	r->smallest = malloc(r->sources.n * sizeof(*r->smallest));
	if (!r->smallest)
		return gave_up("suggest", "no memory");
	for (uint32_t i = 0; i < r->sources.places; i++)
		if (tally_key_at(&r->sources, i)->family != PACER_FAMILY_NONE)
			r->smallest[n++] = ((struct note *)tally_note_at(&r->sources, i))->smallest;
	qsort(r->smallest, n, sizeof(*r->smallest), greatest_first);
	r->allowed = (uint32_t)floor(s->share * n * (1 + 4 * DBL_EPSILON)); /* 29% of 100 are 29 */
	r->limit = r->allowed < n ? r->smallest[r->allowed] : 1;
	if (!r->limit) /* all that came was denied by narrower ones */
		r->limit = 1;
	return EXIT_DONE;
}

/*
 * It was measured in wide records. The policy has narrow ones for a small limit, and twice as many,
 * so that fewer sources share one: a smaller limit may do. Mostly it does not, and the first try
 * says so.
 */
static int tighten(struct suggestion *s, uint32_t rung)
{
	struct rung *r = &s->rung[rung];
	uint32_t enough = r->limit, small = rung ? s->rung[rung - 1].limit - 1 : 0, step = 1;
	int code = EXIT_DONE;

	while (!code && enough <= PACER_NARROW_LIMIT && enough - small > 1) {
		r->limit = enough - small > step ? enough - step : small + 1;
		code = replay_try(s, rung + 1);
		if (r->denied <= r->allowed) {
			enough = r->limit;
			step *= 2;
		} else {
			small = r->limit;
			step = 1;
		}
	}
	r->limit = enough;
	return code;
}

/* A reading a limit, so that those before it can be in force; of what cannot be read again, one. */
static int find_limits(struct suggestion *s)
{
	uint32_t at_once = capture_repeats(&s->capture) ? 1 : s->rungs;
	int code = EXIT_DONE;

	for (uint32_t from = 0; !code && from < s->rungs; from += at_once) {
		code = measure(s, from, from + at_once);
		for (uint32_t i = from; !code && i < from + at_once; i++)
			code = choose(s, &s->rung[i]);
		keep_order(s);
		if (!code && capture_repeats(&s->capture))
			code = tighten(s, from);
	}
	return code;
}

/* --- the replay that has to confirm it ------------------------------------------------------ */

/* Takes the next greater limit that a source needs. */
static void raise_limit(struct rung *r)
{
	uint32_t i = r->sources.n;

	while (i && r->smallest[i - 1] <= r->limit)
		i--;
	r->limit = i ? r->smallest[i - 1] : r->limit + 1;
}

/* Raises the limits that denied something to more sources than they may. Was there none? */
static bool all_within(struct suggestion *s)
{
	bool within = true;

	for (uint32_t i = 0; i < s->rungs; i++) {
		struct rung *r = &s->rung[i];

		if (r->denied <= r->allowed)
			continue;
		within = false;
		raise_limit(r);
	}
	keep_order(s);
	return within;
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
		int code = replay_try(s, s->rungs);

		if (code)
			return code;
		s->confirmed = all_within(s);
		if (s->confirmed)
			return EXIT_DONE;
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

static uint64_t packets_denied(const struct suggestion *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->rungs; i++)
		n += s->rung[i].denied_packets;
	return n;
}

/* The comment above a policy of one limit. */
static void emit_summary(const struct suggestion *s)
{
	const struct rung *r = &s->rung[0];
	char sources[64], packets[64];
	uint32_t n = r->sources.n;

	emit_text("# Suggested by xdp-pacer from a capture, to deny at most %.6g%% of its "
		  "sources.\n# Of %s sources (%s) ",
		  100 * s->share, thousands(n).text, r->key);
	if (s->confirmed)
		emit_text("it denies something to %s, of %s packets %s: replayed.\n",
			  share_text(r->denied, n, sources, sizeof(sources)),
			  thousands(s->packets).text,
			  share_text(r->denied_packets, s->packets, packets, sizeof(packets)));
	else
		emit_text("it should deny something to %s at most. Not replayed: stdin or a "
			  "pipe\n# cannot be read again.\n",
			  thousands(r->allowed).text);
}

/* And of one that has a limit for each length of a ladder. */
static void emit_ladder_summary(const struct suggestion *s)
{
	char text[64];

	emit_text("# Suggested by xdp-pacer from a capture, to deny at most %.6g%% of the "
		  "prefixes of each length.\n",
		  100 * s->share);
	for (uint32_t i = 0; i < s->rungs; i++) {
		const struct rung *r = &s->rung[i];

		emit_text("# Of %s prefixes (%s) it %s something to %s%s\n",
			  thousands(r->sources.n).text, r->key,
			  s->confirmed ? "denies" : "should deny",
			  share_text(s->confirmed ? r->denied : r->allowed, r->sources.n, text,
				     sizeof(text)),
			  s->confirmed ? "." : " at most.");
	}
	if (s->confirmed)
		emit_text("# Of %s packets it denies %s: replayed.\n", thousands(s->packets).text,
			  share_text(packets_denied(s), s->packets, text, sizeof(text)));
	else
		emit_text("# Not replayed: stdin or a pipe cannot be read again. Each length was "
			  "measured by itself.\n");
}

static void emit_count(const struct suggestion *s, const char *name, uint64_t n)
{
	if (s->confirmed)
		emit_uint(name, n, NULL);
	else
		emit_null(name, NULL);
}

static void emit_limits(const struct suggestion *s)
{
	emit_array("limits");
	for (uint32_t i = 0; i < s->rungs; i++) {
		const struct rung *r = &s->rung[i];

		emit_object(NULL);
		emit_string("key", r->key, NULL);
		emit_uint("packets_in_window", r->limit, NULL);
		emit_uint("sources", r->sources.n, NULL);
		emit_count(s, "sources_denied", r->denied);
		emit_count(s, "packets_denied", r->denied_packets);
		emit_close();
	}
	emit_close();
}

/* Of several limits the first stands for itself, but for the packets that all deny. */
static int show(const struct suggestion *s)
{
	const struct rung *first = &s->rung[0];
	char rules[TEXT_MAX];

	rules_text(s, rules, sizeof(rules));
	if (first->sources.lost)
		complaint("suggest: %u sources are told apart; %" PRIu64
			  " packets of further ones were not counted: a wider --key has fewer",
			  tally_room(&first->sources), first->sources.lost);
	emit_begin(s->o->json);
	emit_object("");
	if (s->rungs > 1)
		emit_ladder_summary(s);
	else
		emit_summary(s);
	emit_string("policy", rules, "%s", rules);
	emit_string("key", s->key, NULL);
	emit_uint("window_ns", s->window_ns, NULL);
	emit_uint("packets_in_window", first->limit, NULL);
	emit_uint("packets", s->packets, NULL);
	emit_uint("sources", first->sources.n, NULL);
	emit_real("deny_share", s->share, NULL);
	emit_flag("confirmed", s->confirmed, NULL);
	emit_count(s, "sources_denied", first->denied);
	emit_count(s, "packets_denied", packets_denied(s));
	emit_uint("packets_of_further_sources", first->sources.lost, NULL);
	emit_limits(s);
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

/* Writes the keys with both prefix lengths, so that the policy explains itself. */
static int spell_keys(struct suggestion *s, const char *key)
{
	struct policy_error error = {0};
	const struct policy_rule *rule;
	struct policy *policy;
	char text[TEXT_MAX];

	begin_rules(s, text, sizeof(text));
	append_limit(s, key, 1, strchr(key, '[') ? ", wider: x1" : "", text, sizeof(text));
	policy = policy_parse(text, strlen(text), &error);
	if (!policy)
		return no_policy(s, &error);
	rule = &policy->rule[0];
	policy_line_key_text(&rule->limit[0], s->key, sizeof(s->key));
	s->rungs = (uint32_t)rule->n_limits;
	for (uint32_t i = 0; i < s->rungs; i++) {
		policy_key_text(&rule->limit[i].key, s->rung[i].key, sizeof(s->rung[i].key));
		s->rung[i].limit = PACER_NARROW_LIMIT + 1; /* until it is found */
	}
	policy_free(policy);
	return EXIT_DONE;
}

static int read_usage(struct suggestion *s)
{
	const struct options *o = s->o;
	const char *key = o->key ? o->key : KEY_DEFAULT;

	if (o->n_args != 1)
		return misused("suggest", "it wants one capture");
	if (!strncmp(key, "value(", 6))
		return misused(
		    "suggest",
		    "--key %s counts by a set, which a suggested policy has not: write the "
		    "policy, and `xdp-pacer replay` says what the limit would have to be",
		    key);
	if (strlen(key) > KEY_MAX ||
	    strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789+/,[]") != strlen(key))
		return misused("suggest", "--key %s is not a key such as src/32,64", key);
	snprintf(s->key, sizeof(s->key), "%s", key);
	if (!o->window)
		s->window_ns = 1000000000;
	else if (units_duration(o->window, &s->window_ns))
		return misused("suggest", "--window %s %s", o->window,
			       units_duration_wrong(o->window));
	else if (s->window_ns < 10)
		return misused("suggest", "--window %s is less than 10ns", o->window);
	if (read_share(o->deny_share, &s->share))
		return EXIT_WRONG;
	return spell_keys(s, key);
}

static int suggest(struct suggestion *s)
{
	int code = start_capture(&s->capture, s->o->args[0]), shown;

	if (code)
		return code;
	for (uint32_t i = 0; i < s->rungs; i++)
		if (tally_open(&s->rung[i].sources, PLACES, sizeof(struct note)))
			return gave_up("suggest", "no memory");
	code = find_limits(s);
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
	for (uint32_t i = 0; i < s.rungs; i++) {
		tally_close(&s.rung[i].sources);
		free(s.rung[i].smallest);
	}
	return code;
}

static const struct option_row suggest_options[] = {
    {"deny-share", 0, "1%", "of the sources that may be denied something", OPTION_TEXT(deny_share)},
    {"window", 0, "TIME", "of the limit: 1s unless said", OPTION_TEXT(window)},
    {"key", 0, "KEY",
     "of the limit: src/32,64 unless said; src/[32,24],[64,56] is a limit a length",
     OPTION_TEXT(key)},
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
