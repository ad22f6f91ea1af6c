/* SPDX-License-Identifier: GPL-2.0-only */
/* replay: what a policy would have done with a capture, at the times in the capture. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "key.h"
#include "cli/captured.h"
#include "cli/cmd.h"
#include "cli/emit.h"
#include "config/text.h"
#include "offline/compare.h"
#include "offline/smallest.h"
#include "offline/plot.h"
#include "inspect/tally.h"

#define TOP_SHOWN    10
#define TOP_PLACES   65536u /* 7/8 of this many denied keys can be told apart */
#define PLOT_WINDOWS 6	    /* drawn of a longer capture, around the first denial */

/* What came of one key of one limit, from its first denial on. */
struct top {
	uint64_t denied, offered, first_ns, last_ns, closest_ns;
	uint64_t begin_ns, held, peak; /* in windows laid end to end */
	struct pacer_packet pkt;       /* of the first denial */
};

/* The key to be drawn. */
struct pick {
	bool found;
	uint32_t rule, limit;
	struct pacer_packet pkt;
	uint64_t time_ns; /* the picture is around it */
};

struct run {
	const struct options *o;
	struct capture capture;
	struct judge judge;
	const struct policy *policy; /* the judge's */
	struct smallest *smallest;   /* NULL: not asked for */
	uint64_t packets, first_ns, last_ns;
	uint64_t by[PACER_RULES_MAX + 1][PACER_REASON_COUNT]; /* the last: no rule */
	struct tally tops;
	struct pick pick;
};

/* --- the keys that were denied -------------------------------------------------------------- */

static struct tally_key key_of(const struct run *run, const struct replay_judged *judged,
			       uint32_t limit)
{
	uint32_t rule = pacer_outcome_rule(judged->outcome);
	struct pacer_packet seen = judge_seen(&run->judge, judged, rule, limit);
	struct tally_key key = tally_key_of(judge_limiter(&run->judge, rule, limit),
					    &run->policy->rule[rule].limit[limit].key, &seen);

	key.rule = rule;
	key.limit = limit;
	return key;
}

/* Measures how much came within one window, and how close two packets were. */
static void top_measure(struct top *top, const struct policy_limit *limit, uint64_t time_ns,
			uint32_t len_bytes)
{
	uint64_t cost = judge_cost(limit, len_bytes);

	if (top->offered && time_ns - top->last_ns < top->closest_ns)
		top->closest_ns = time_ns - top->last_ns;
	if (!top->offered++ || time_ns - top->begin_ns >= judge_span_ns(limit)) {
		top->begin_ns = time_ns;
		top->held = 0;
	}
	top->last_ns = time_ns;
	top->held += cost;
	if (top->held > top->peak)
		top->peak = top->held;
}

static void top_count(struct run *run, const struct replay_judged *judged, uint32_t limit,
		      uint64_t time_ns, bool denied)
{
	struct tally_key key = key_of(run, judged, limit);
	struct top *top = denied ? tally_put(&run->tops, &key) : tally_find(&run->tops, &key);

	if (!top)
		return;
	if (!top->offered) {
		top->pkt =
		    judge_seen(&run->judge, judged, pacer_outcome_rule(judged->outcome), limit);
		top->first_ns = time_ns;
		top->closest_ns = UINT64_MAX;
	}
	top->denied += denied;
	top_measure(top, &run->policy->rule[pacer_outcome_rule(judged->outcome)].limit[limit],
		    time_ns, judged->pkt.len_bytes);
}

static void tops_count(struct run *run, const struct replay_judged *judged, uint64_t time_ns)
{
	uint32_t of = judge_limit_of(&run->judge, judged);
	uint32_t rule = pacer_outcome_rule(judged->outcome);
	bool denied = judge_denied(judged);

	if (!run->tops.at || rule >= PACER_RULES_MAX || (!denied && !run->tops.n))
		return;
	if (run->policy->rule[rule].says && denied)
		top_count(run, judged, 0, time_ns, true);
	for (uint32_t i = 0; i < run->policy->rule[rule].n_limits; i++)
		top_count(run, judged, i, time_ns, denied && i == of);
}

static int most_denied(const void *a, const void *b)
{
	const struct top *x = tally_sorted_note(a), *y = tally_sorted_note(b);

	if (x->denied != y->denied)
		return x->denied < y->denied ? 1 : -1;
	return memcmp(tally_sorted_key(a), tally_sorted_key(b), sizeof(struct tally_key));
}

/* --- the key to be drawn -------------------------------------------------------------------- */

static bool is_wanted(const struct run *run, uint32_t rule, uint32_t limit,
		      const struct pacer_packet *pkt)
{
	char text[TALLY_TEXT];

	if (run->o->plot_rule && strcmp(run->policy->rule[rule].name, run->o->plot_rule))
		return false;
	return !run->o->plot_key ||
	       !strcmp(tally_key_text(&run->policy->rule[rule].limit[limit].key, pkt, text,
				      sizeof(text)),
		       run->o->plot_key);
}

static bool by_time(const struct policy_limit *limit)
{
	return limit_kind_of(limit)->by_time;
}

/* Until a key is denied, the first that fits is drawn. What counts is better than a gap. */
static void pick_first(struct run *run, const struct replay_judged *judged, uint64_t time_ns)
{
	uint32_t number = pacer_outcome_rule(judged->outcome);
	const struct policy_rule *rule = &run->policy->rule[number];

	for (uint32_t i = 0; i < rule->n_limits; i++) {
		bool better = run->pick.found && !by_time(&rule->limit[i]) &&
			      by_time(&rule->limit[run->pick.limit]);
		struct pacer_packet seen = judge_seen(&run->judge, judged, number, i);

		if ((!run->pick.found || better) && is_wanted(run, number, i, &seen))
			run->pick = (struct pick){true, number, i, seen, time_ns};
	}
}

/* The tallies are sorted: the first that fits was denied most. */
static void pick_denied(struct run *run)
{
	for (uint32_t i = 0; i < run->tops.n; i++) {
		const struct tally_key *key = tally_key_at(&run->tops, i);
		const struct top *top = tally_note_at(&run->tops, i);

		if (run->policy->rule[key->rule].says ||
		    !is_wanted(run, key->rule, key->limit, &top->pkt))
			continue;
		run->pick = (struct pick){true, key->rule, key->limit, top->pkt, top->first_ns};
		return;
	}
}

/* --- frames --------------------------------------------------------------------------------- */

static void print_row(const struct run *run, const struct replay_frame *frame,
		      const struct replay_judged *judged)
{
	enum pacer_reason reason = pacer_outcome_reason(judged->outcome);
	uint32_t number = pacer_outcome_rule(judged->outcome);
	enum pacer_verdict verdict = pacer_verdict_of(reason);
	const struct policy_rule *rule = NULL;
	const char *quote = "";
	char key[TALLY_TEXT] = "", open[24] = "";

	if (number < run->policy->n_rules) {
		uint32_t limit = judge_limit_of(&run->judge, judged);
		struct pacer_packet seen = judge_seen(&run->judge, judged, number, limit);

		rule = &run->policy->rule[number];
		tally_key_text(&rule->limit[limit].key, &seen, key, sizeof(key));
	}
	if (strchr(key, ',')) /* RFC 4180; no key has a quote in it */
		quote = "\"";
	if (judged->open_ns == PACER_NEVER)
		snprintf(open, sizeof(open), "never");
	else if (judged->open_ns)
		snprintf(open, sizeof(open), "%" PRIu64, judged->open_ns);
	printf("%" PRIu64 ",%" PRIu64 ",%s,%s%s%s,%s,%s,%s\n", run->packets, frame->time_ns,
	       rule ? rule->name : "", quote, key, quote,
	       verdict == PACER_VERDICT_ADMIT  ? "admit"
	       : verdict == PACER_VERDICT_DENY ? "deny"
					       : "pass",
	       pacer_reason_name(reason), open);
}

static int judge_frame(struct run *run, const struct replay_frame *frame)
{
	struct policy_error error = {0};
	struct replay_judged judged;

	if (replay_judge(run->judge.replay, frame, &judged, &error) ||
	    (run->smallest && smallest_feed(run->smallest, frame, &error)))
		return complain(NULL, &error);
	if (!run->packets++ || frame->time_ns < run->first_ns)
		run->first_ns = frame->time_ns;
	if (frame->time_ns > run->last_ns)
		run->last_ns = frame->time_ns;
	run->by[pacer_outcome_rule(judged.outcome)][pacer_outcome_reason(judged.outcome)]++;
	if (run->o->verdicts)
		print_row(run, frame, &judged);
	tops_count(run, &judged, frame->now_ns);
	if (run->o->plot && !run->pick.found &&
	    pacer_outcome_rule(judged.outcome) < PACER_RULES_MAX)
		pick_first(run, &judged, frame->now_ns);
	return EXIT_DONE;
}

/* Judges every frame that can be read. */
static int judge_all(struct run *run)
{
	struct policy_error error = {0};
	struct replay_frame frame;
	int code = EXIT_DONE;

	capture_tell(&run->capture, run->judge.replay);
	if (run->smallest)
		smallest_tell(run->smallest, &run->capture);
	while (!code && !stdout_failed() && capture_next(&run->capture, &frame) == 1)
		code = judge_frame(run, &frame);
	if (!code && run->smallest && smallest_settle(run->smallest, &run->capture, &error))
		code = complain(NULL, &error);
	return code ? code : run->capture.damaged ? EXIT_FAILED : EXIT_DONE;
}

/* --- the smallest limits that would have denied nothing ------------------------------------- */

/* Why it is not known, in `buf`. */
static const char *unsettled(const struct run *run, char *buf, size_t size)
{
	const char *unfit = smallest_unfit(run->smallest);

	snprintf(buf, size, "%s%s",
		 unfit ? "no policy can have the limits that would do: "
		 : capture_repeats(&run->capture)
		     ? "not settled in several readings: where its state lies depends on the limit"
		     : "the capture has to be read twice, and stdin or a pipe cannot be",
		 unfit ? unfit : "");
	return buf;
}

/* "gap 12us (is 1ms)", "412 packets in 1s (is 300)" */
static const char *found_text(const struct policy_limit *l, uint64_t value, char *buf, size_t size)
{
	const struct limit_kind *kind = limit_kind_of(l);
	char span[32], per[48], found[32];

	units_duration_text(judge_span_ns(l), span, sizeof(span));
	if (kind->by_time) {
		snprintf(buf, size, "%s %s (is %s)", kind->name,
			 units_duration_text(value, found, sizeof(found)), span);
		return buf;
	}
	snprintf(per, sizeof(per), " in %s", span);
	if (kind->per)
		kind->per(l, per, sizeof(per));
	snprintf(buf, size, "%s%s %s%s (is %s)", kind->value_is ? kind->value_is : "",
		 thousands(value).text, limit_unit(l), per, thousands(judge_capacity(l)).text);
	return buf;
}

static void emit_smallest(const struct run *run, uint32_t rule, uint32_t limit)
{
	static const char *const states[] = {[SMALLEST_FOUND] = "found",
					     [SMALLEST_ANY] = "any",
					     [SMALLEST_NONE] = "none",
					     [SMALLEST_UNSETTLED] = "unsettled"};
	const struct policy_limit *l = &run->policy->rule[rule].limit[limit];
	struct smallest_limit smallest = smallest_of(run->smallest, rule, limit);
	const struct limit_kind *kind = limit_kind_of(l);
	bool found = smallest.state == SMALLEST_FOUND;
	const char *unit = kind->by_time ? kind->name : limit_unit(l);
	char key[POLICY_KEY_TEXT], text[128], why[512];

	emit_object("");
	emit_uint("limit_index", l->item, NULL);
	if (l->ladder.rungs)
		emit_uint("rung", l->rung + 1u, NULL);
	else
		emit_null("rung", NULL);
	policy_key_text(&l->key, key, sizeof(key));
	emit_string("key", key, "    %s: ", key);
	snprintf(text, sizeof(text), "%s%s", unit, kind->by_time ? "_ns" : "");
	emit_string("unit", text, found ? NULL : "%s: ", unit);
	emit_uint("is", kind->by_time ? judge_span_ns(l) : judge_capacity(l), NULL);
	emit_string("state", states[smallest.state], found ? NULL : "%s\n",
		    smallest.state == SMALLEST_ANY    ? "any would do"
		    : smallest.state == SMALLEST_NONE ? "none would do"
						      : unsettled(run, why, sizeof(why)));
	if (found)
		emit_uint("least", smallest.value, "%s\n",
			  found_text(l, smallest.value, text, sizeof(text)));
	else
		emit_null("least", NULL);
	emit_close();
}

/* What the line of a ladder has to say, so that none of its rungs denies anything. */
static void emit_line(const struct run *run, uint32_t rule, uint32_t first)
{
	const struct policy_limit *l = &run->policy->rule[rule].limit[first];
	char key[POLICY_LINE_TEXT], text[128];
	uint64_t value = 0;

	for (uint32_t i = 0; i < l->ladder.rungs; i++) {
		struct smallest_limit s = smallest_of(run->smallest, rule, first + i);
		uint64_t times = l->ladder.times[i];

		if (s.state != SMALLEST_FOUND && s.state != SMALLEST_ANY)
			return;
		if (s.state == SMALLEST_FOUND && (s.value + times - 1) / times > value)
			value = (s.value + times - 1) / times;
	}
	if (value)
		emit_text("    %s, the ladder: %s\n", policy_line_key_text(l, key, sizeof(key)),
			  found_text(l, value, text, sizeof(text)));
}

static void emit_all_smallest(const struct run *run, uint32_t rule)
{
	const struct policy_rule *r = &run->policy->rule[rule];

	if (r->n_limits)
		emit_text("    the smallest limit%s that would have denied nothing%s:\n",
			  units_plural(r->n_limits), r->n_limits == 1 ? "" : ", together");
	emit_array("denies_nothing");
	for (uint32_t i = 0; i < r->n_limits; i++) {
		const struct policy_limit *l = &r->limit[i];

		emit_smallest(run, rule, i);
		if (l->ladder.rungs && l->rung + 1u == l->ladder.rungs)
			emit_line(run, rule, i - l->rung);
	}
	emit_close();
}

/* --- what is shown -------------------------------------------------------------------------- */

static uint64_t sum_of(const struct run *run, size_t from, size_t to, enum pacer_verdict verdict)
{
	uint64_t n = 0;

	for (size_t i = from; i < to; i++)
		for (int reason = 0; reason < PACER_REASON_COUNT; reason++)
			if (pacer_verdict_of(reason) == verdict)
				n += run->by[i][reason];
	return n;
}

static uint64_t sum_all(const struct run *run, enum pacer_verdict verdict)
{
	return sum_of(run, 0, PACER_RULES_MAX + 1, verdict);
}

/* "12 (gap 10, window 2)". `named`: the reasons are members of the JSON, too. */
static void emit_reasons(const struct run *run, size_t i, enum pacer_verdict verdict, bool named)
{
	const char *before = " (";

	emit_text("%s", thousands(sum_of(run, i, i + 1, verdict)).text);
	for (int reason = 0; reason < PACER_REASON_COUNT; reason++) {
		uint64_t n = run->by[i][reason];
		const char *name = pacer_reason_name(reason);

		if (reason == PACER_ADMIT || pacer_verdict_of(reason) != verdict)
			continue;
		emit_uint(named ? name : NULL, n, n ? "%s%s %s" : NULL, before, name,
			  thousands(n).text);
		before = n ? ", " : before;
	}
	if (before[0] == ',')
		emit_text(")");
}

static void emit_rule(const struct run *run, uint32_t i)
{
	const struct policy_rule *rule = &run->policy->rule[i];
	uint64_t admitted = sum_of(run, i, i + 1, PACER_VERDICT_ADMIT);
	uint64_t denied = sum_of(run, i, i + 1, PACER_VERDICT_DENY);

	emit_object("");
	emit_string("name", rule->name, "  rule %s: ", rule->name);
	emit_uint("matched", admitted + denied, NULL);
	emit_uint("admitted", admitted, "admitted %s, denied ", thousands(admitted).text);
	emit_object("denied");
	emit_reasons(run, i, PACER_VERDICT_DENY, true);
	emit_close();
	emit_text("%s\n", rule->over == PACER_OVER_PASS
			      ? " (over: pass: what is denied would pass, too)"
			      : "");
	emit_all_smallest(run, i);
	emit_close();
}

/* The most that came of the key after its first denial, and what its limit allows. */
static void emit_peak(const struct policy_rule *rule, const struct policy_limit *limit,
		      const struct top *top)
{
	char text[32], closest[32];

	if (rule->says) {
		emit_text("whatever its rate");
		return;
	}
	if (!by_time(limit)) {
		emit_text("at least %s %s in %s against %s", thousands(top->peak).text,
			  limit_unit(limit),
			  units_duration_text(judge_span_ns(limit), text, sizeof(text)),
			  thousands(judge_capacity(limit)).text);
		return;
	}
	units_duration_text(judge_span_ns(limit), text, sizeof(text));
	if (top->closest_ns == UINT64_MAX)
		emit_text("against a %s of %s", limit_kind_of(limit)->name, text);
	else
		emit_text("down to %s apart against a %s of %s",
			  units_duration_text(top->closest_ns, closest, sizeof(closest)),
			  limit_kind_of(limit)->name, text);
}

static void emit_top(const struct run *run, uint32_t i)
{
	const struct tally_key *of = tally_key_at(&run->tops, i);
	const struct top *top = tally_note_at(&run->tops, i);
	const struct policy_rule *rule = &run->policy->rule[of->rule];
	const struct policy_limit *limit = &rule->limit[of->limit];
	char key[TALLY_TEXT], kind[POLICY_KEY_TEXT];

	emit_row();
	emit_text("%s", rule->name);
	emit_text("%s", policy_key_text(&limit->key, kind, sizeof(kind)));
	emit_text("%s", tally_key_text(&limit->key, &top->pkt, key, sizeof(key)));
	emit_text("%s", thousands(top->denied).text);
	emit_text("%s", thousands(top->offered).text);
	emit_peak(rule, limit, top);
}

static void emit_tops(const struct run *run)
{
	static const struct emit_column columns[] = {{"RULE", false},
						     {"BY", false},
						     {"KEY", false},
						     {"DENIED", true},
						     {"OF", true},
						     {"CAME", false},
						     {0}};
	const struct tally *tops = &run->tops;

	if (tops->n)
		emit_text("denied most, of %s key%s; each from its first denial on\n",
			  thousands(tops->n).text, units_plural(tops->n));
	emit_table(columns, 2);
	for (uint32_t i = 0; i < tops->n && i < TOP_SHOWN; i++)
		emit_top(run, i);
	emit_table_end();
	if (tops->lost)
		emit_text("  and %s denials of further keys: %s are told apart\n",
			  thousands(tops->lost).text, thousands(tally_room(tops)).text);
}

static void emit_total(const char *name, uint64_t n, const char *between)
{
	emit_uint(name, n, "%s%s %s", between, name, thousands(n).text);
}

static int show_all(const struct run *run)
{
	emit_begin(run->o->json);
	emit_object("");
	emit_uint("packets", run->packets,
		  "%s: %s packets in %.6g s: ", printable(run->capture.file).text,
		  thousands(run->packets).text, (double)(run->last_ns - run->first_ns) / 1e9);
	emit_total("admitted", sum_all(run, PACER_VERDICT_ADMIT), "");
	emit_total("denied", sum_all(run, PACER_VERDICT_DENY), ", ");
	emit_total("unparsed", sum_all(run, PACER_VERDICT_UNPARSED), ", ");
	emit_total("passed", sum_all(run, PACER_VERDICT_PASS), ", ");
	emit_text("%s\n", run->policy->monitor ? " (monitor: what is denied would pass, too)" : "");
	emit_array("rules");
	for (uint32_t i = 0; i < run->policy->n_rules; i++)
		emit_rule(run, i);
	emit_close();
	emit_text("  no rule: passed ");
	emit_reasons(run, PACER_RULES_MAX, PACER_VERDICT_PASS, false);
	emit_text(", unparsed ");
	emit_reasons(run, PACER_RULES_MAX, PACER_VERDICT_UNPARSED, false);
	if (run->policy->else_says == PACER_SAYS_DENY) {
		emit_text(", denied ");
		emit_reasons(run, PACER_RULES_MAX, PACER_VERDICT_DENY, false);
	}
	emit_text("\n");
	emit_tops(run);
	emit_close();
	return emit_end();
}

static int show(const struct run *run)
{
	return run->o->verdicts ? EXIT_DONE : show_all(run);
}

/* --- the picture ---------------------------------------------------------------------------- */

/* The whole capture, or the windows around the first denial. */
static struct plot_view view_of(const struct run *run)
{
	const struct pick *pick = &run->pick;
	const struct policy_limit *limit = &run->policy->rule[pick->rule].limit[pick->limit];
	uint64_t span_ns = judge_span_ns(limit);
	struct replay_judged judged = {.outcome = pacer_outcome_under(PACER_ADMIT, pick->rule),
				       .pkt = pick->pkt};
	struct plot_view view = {.rule = pick->rule,
				 .limit = pick->limit,
				 .start_ns = run->first_ns,
				 .from_ns = run->first_ns,
				 .to_ns = run->last_ns};

	pacer_limiter_saw(judge_limiter(&run->judge, pick->rule, pick->limit), &pick->pkt,
			  judged.value);
	view.key = key_of(run, &judged, pick->limit);
	tally_key_text(&limit->key, &pick->pkt, view.key_text, sizeof(view.key_text));
	if ((run->last_ns - run->first_ns) / (PLOT_WINDOWS + 2) >= span_ns) {
		uint64_t into_ns = pick->time_ns - run->first_ns;

		view.from_ns += into_ns > 2 * span_ns ? into_ns - 2 * span_ns : 0;
		if (run->last_ns - view.from_ns < PLOT_WINDOWS * span_ns)
			view.from_ns = run->last_ns - PLOT_WINDOWS * span_ns;
		view.to_ns = view.from_ns + PLOT_WINDOWS * span_ns;
	}
	if (view.to_ns == view.from_ns)
		view.to_ns += span_ns;
	return view;
}

static int plot(struct run *run)
{
	struct policy_error error = {0};
	struct plot_view view;

	pick_denied(run);
	if (capture_is_lost(&run->capture))
		return EXIT_FAILED;
	if (!run->pick.found) {
		complaint("%s: no packet in it has the key to draw: choose another with "
			  "--plot-rule or --plot-key",
			  run->capture.file);
		return EXIT_FAILED;
	}
	view = view_of(run);
	if (plot_capture(&run->capture, &run->judge, &view, run->o->plot, &error))
		return complain(NULL, &error);
	return EXIT_DONE;
}

/* By whatever names. */
static bool is_same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return !stat(a, &of_a) && !stat(b, &of_b) && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

static int check_plot(const struct run *run)
{
	const struct options *o = run->o;
	bool known = !o->plot_rule;

	for (size_t i = 0; o->plot && i < run->policy->n_rules; i++)
		known |= o->plot_rule && !strcmp(run->policy->rule[i].name, o->plot_rule);
	if (o->plot && !known)
		return misused("replay", "%s has no rule %s", o->policy, o->plot_rule);
	if (o->plot && !capture_repeats(&run->capture))
		return misused("replay", "--plot reads the capture twice: write it to a file");
	if (o->plot && is_same_file(o->plot, o->args[0]))
		return misused("replay",
			       "--plot %s would be written over the capture: name "
			       "another file",
			       o->plot);
	if (o->plot && is_same_file(o->plot, o->policy))
		return misused("replay",
			       "--plot %s would be written over the policy: name "
			       "another file",
			       o->plot);
	return EXIT_DONE;
}

/* --- the verb ------------------------------------------------------------------------------- */

static int open_run(struct run *run)
{
	struct policy_error error = {0};

	if (!run->o->verdicts) {
		run->smallest = smallest_open(run->policy, &error);
		if (!run->smallest)
			return complain(NULL, &error);
	}
	if ((!run->o->json && !run->o->verdicts) || run->o->plot) {
		if (tally_open(&run->tops, TOP_PLACES, sizeof(struct top)))
			return gave_up("replay", "no memory");
	}
	return EXIT_DONE;
}

static int judge_and_show(struct run *run)
{
	int code = open_run(run), shown = EXIT_DONE;

	if (!code) {
		if (run->o->verdicts)
			puts("frame,time_ns,rule,key,verdict,reason,open_ns");
		code = judge_all(run);
		if (run->tops.at)
			tally_sort(&run->tops, most_denied);
		if (!code || run->capture.damaged) {
			shown = show(run);
			if (!shown && run->o->plot)
				shown = plot(run);
		}
	}
	smallest_close(run->smallest);
	tally_close(&run->tops);
	return code ? code : shown;
}

static int run_replay(struct run *run)
{
	int code = start_capture(&run->capture, run->o->args[0]);

	if (!code)
		code = start_judge(&run->judge, run->o->policy, run->policy, run->o->kernel);
	if (!code)
		code = check_plot(run);
	if (!code)
		code = judge_and_show(run);
	capture_close(&run->capture);
	judge_close(&run->judge);
	return code;
}

static int run_compare(const struct options *o, const struct policy *const policy[2])
{
	struct judge judge[2] = {{0}, {0}};
	struct capture capture = {0};
	int code = start_capture(&capture, o->args[0]);

	if (!code)
		code = start_judge(&judge[0], o->policy, policy[0], o->kernel);
	if (!code)
		code = start_judge(&judge[1], o->compare, policy[1], o->kernel);
	if (!code)
		code = compare_show(&capture, judge, o->json);
	capture_close(&capture);
	judge_close(&judge[0]);
	judge_close(&judge[1]);
	return code;
}

static int check_usage(const struct options *o)
{
	const char *const inputs[] = {o->policy, o->compare, o->n_args ? o->args[0] : NULL};
	int from_stdin = 0;

	if (o->n_args != 1 || !o->policy)
		return misused("replay", "it wants -c POLICY and one capture");
	if (o->json && o->verdicts)
		return misused("replay", "--json and --verdicts are two outputs: choose one");
	if (o->compare && (o->verdicts || o->plot))
		return misused("replay", "--compare shows keys: leave out --verdicts and --plot");
	if (!o->plot && (o->plot_rule || o->plot_key))
		return misused("replay", "--plot-rule and --plot-key want --plot FILE.svg");
	for (size_t i = 0; i < 3; i++)
		from_stdin += inputs[i] && !strcmp(inputs[i], "-");
	if (from_stdin > 1)
		return misused("replay", "only one of policy and capture can be stdin");
	return EXIT_DONE;
}

static int run_verb(struct options *o)
{
	struct policy *policy[2] = {NULL, NULL};
	char *text[2] = {NULL, NULL};
	int code = check_usage(o);

	if (!code)
		code = read_policy(o->policy, &text[0], &policy[0]);
	if (!code && o->compare)
		code = read_policy(o->compare, &text[1], &policy[1]);
	if (!code && o->compare) {
		code = run_compare(o, (const struct policy *const *)policy);
	} else if (!code) {
		struct run run = {.o = o, .policy = policy[0]};

		code = run_replay(&run);
	}
	for (int i = 0; i < 2; i++) {
		policy_free(policy[i]);
		free(text[i]);
	}
	return code;
}

static const struct option_row replay_options[] = {
    OPTION_POLICY,
    {"verdicts", 0, NULL, "a row for each packet, as CSV", OPTION_FLAG(verdicts)},
    {"kernel", 0, NULL, "judge by the object in the kernel", OPTION_FLAG(kernel)},
    {"compare", 0, "POLICY2", "the keys that fare differently under another policy",
     OPTION_TEXT(compare)},
    {"plot", 0, "FILE.svg", "draw a limit at work on one key", OPTION_TEXT(plot)},
    {"plot-rule", 0, "NAME", "of this rule", OPTION_TEXT(plot_rule)},
    {"plot-key", 0, "KEY", "and this key, as the summary writes it", OPTION_TEXT(plot_key)},
    {0},
};

const struct verb verb_replay = {"replay",
				 "FILE.pcap",
				 "what the policy would have made of a capture; - is stdin",
				 replay_options,
				 run_verb,
				 .group = VERBS_FIND,
				 .example = "xdp-pacer replay -c policy.yaml traffic.pcap"};
