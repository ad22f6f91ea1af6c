/* SPDX-License-Identifier: GPL-2.0-only */
/* events: when an attack began and ended, who sent it, and who changed what. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/captured.h"
#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/events_pass.h"
#include "cli/several.h"
#include "config/text.h"
#include "episodes/follow.h"
#include "episodes/replayed.h"
#include "live/day.h"
#include "live/host.h"
#include "live/watch.h"

#define LOOK_ROUNDS 10 /* of pacers that come and go, once a second */

struct telling {
	const struct options *o;
	struct event_place place;
	struct events_pass pass;
	uint64_t told;
};

static void show(const struct telling *t, const char *text, const char *json)
{
	emit_begin(false);
	emit_text("%s\n", t->o->json ? json : text);
	(void)emit_end();
}

static void tell(const struct event *event, void *arg)
{
	struct telling *t = arg;
	char text[EVENT_TEXT], line[EVENT_TEXT];
	char *json = event_json(event, &t->place);

	if (!json) {
		result_lacks();
		return;
	}
	event_text(event, &t->place, text, sizeof(text));
	text_escape(text, line, sizeof(line));
	t->told++;
	show(t, line, json);
	events_pass(&t->pass, event, &t->place, line, json);
	free(json);
}

/* What could not be handed on. */
static void tell_lost(struct events_pass *p, uint64_t now_ns,
		      void (*tell_it)(const struct event *event, void *arg), void *arg)
{
	const struct {
		const char *what;
		uint64_t n;
	} lost[] = {{"runs of --exec", p->lost}, {"entries of the journal", p->lost_journal}};

	for (size_t i = 0; i < sizeof(lost) / sizeof(*lost); i++) {
		struct event event = {
		    .kind = EVENT_LOST, .told_ns = now_ns, .what = lost[i].what, .n = lost[i].n};

		if (lost[i].n)
			tell_it(&event, arg);
	}
	p->lost = 0; /* nor that this could not be handed on either, which is known */
	p->lost_journal = 0;
}

static int read_settings(const struct options *o, struct episode_settings *by)
{
	*by =
	    (struct episode_settings){EPISODE_LEAST, o->quiet_ns ? o->quiet_ns : EPISODE_QUIET_NS};
	if (!o->least || (!units_count(o->least, &by->least) && by->least))
		return EXIT_DONE;
	return misused("events", "--least %s is not a number of packets, from 1", o->least);
}

/* --- of a capture ----------------------------------------------------------------------------- */

static int replay(struct judge *j, const struct options *o, const struct episode_settings *by)
{
	struct telling t = {
	    o, {o->replay, 0}, {.command = o->exec, .journal = o->journal, .patient = true}, 0};
	struct policy_error error = {0};
	struct capture c = {0};
	struct replayed sum;
	int code = start_capture(&c, o->replay);

	if (!code && replayed_run(j, &c, by, tell, &t, &sum, &error))
		code = complain(NULL, &error);
	else if (!code)
		tell_lost(&t.pass, sum.last_ns, tell, &t);
	capture_close(&c);
	if (code || o->json)
		return !code && c.damaged ? EXIT_FAILED : code;
	emit_begin(false);
	emit_text("%s: %" PRIu64 " event%s in %s packets of %.1f s, of which %s were denied%s\n",
		  printable(o->replay).text, t.told, units_plural(t.told),
		  thousands(sum.packets).text, (sum.last_ns - sum.first_ns) / 1e9,
		  thousands(sum.denied).text,
		  j->policy->monitor ? " (monitor: what is denied would pass, too)" : "");
	code = emit_end();
	return c.damaged ? EXIT_FAILED : code;
}

static int run_replay(const struct options *o, const struct episode_settings *by)
{
	struct policy *policy;
	struct judge j;
	char *text;
	int code;

	if (o->n_args || !o->policy)
		return misused("events", "with --replay it wants -c POLICY and no interface");
	code = read_policy(o->policy, &text, &policy);
	if (code)
		return code;
	code = start_judge(&j, o->policy, policy, false);
	if (!code)
		code = replay(&j, o, by);
	judge_close(&j);
	policy_free(policy);
	free(text);
	return code;
}

/* --- of a pacer at work ----------------------------------------------------------------------- */

/* An interface that is followed. */
struct followed {
	struct followed *next;
	char ifname[IF_NAMESIZE];
	int ifindex; /* of the interface whose pacer is followed */
	struct telling *t;
	struct follow follow;
	uint32_t control_id; /* of its pacer's state, whichever program is over it; 0: none */
	uint64_t there_ns;   /* when it was looked at last, and was there; 0: it never was */
	bool wrong;	     /* it cannot be read, which was said */
};

struct following {
	const struct options *o;
	struct episode_settings by;
	struct watch watch;
	struct telling t;
	struct followed *first;
	struct follow_states *states;
};

/* The clock may have been set since. */
static void tell_of(const struct event *event, void *arg)
{
	struct followed *at = arg;

	at->t->place = (struct event_place){at->ifname, day_minus_now_ns()};
	tell(event, at->t);
}

static struct followed *find(const struct following *f, const char *ifname)
{
	struct followed *at = f->first;

	while (at && strcmp(at->ifname, ifname) != 0)
		at = at->next;
	return at;
}

static struct followed *followed_of(struct following *f, const char *ifname)
{
	struct followed *at = find(f, ifname);

	if (at)
		return at;
	at = calloc(1, sizeof(*at));
	if (!at)
		return NULL;
	snprintf(at->ifname, sizeof(at->ifname), "%s", ifname);
	at->t = &f->t;
	at->next = f->first;
	return f->first = at;
}

/* Has the interface another name by now, and its pacer still? */
static bool is_renamed(const struct followed *at, char name[IF_NAMESIZE])
{
	struct policy_error unused;
	struct attached now;
	bool is = if_indextoname((unsigned int)at->ifindex, name) && strcmp(name, at->ifname) &&
		  !attached_find(name, &now, &unused);

	if (is) {
		is = now.control_id == at->control_id;
		attached_release(&now);
	}
	return is;
}

static void leave(struct following *f, struct followed *at)
{
	struct event event = {
	    .kind = EVENT_GONE, .told_ns = host_now_ns(), .what = "its pacer is gone"};
	char name[IF_NAMESIZE], renamed[128];

	if (is_renamed(at, name)) {
		snprintf(renamed, sizeof(renamed),
			 "its name is %.64s now, and its pacer goes on there",
			 printable(name).text);
		event.what = renamed;
	}
	follow_remember(f->states, at->control_id, &at->follow);
	follow_close(&at->follow);
	at->control_id = 0;
	tell_of(&event, at);
}

/* What was noted since the last round, before its notes are let go. */
static void read_last(struct watched *w, void *arg)
{
	struct followed *at = find(arg, w->ifname);

	if (!at || !at->control_id)
		return;
	at->follow.a = &w->a;
	follow_notes(&at->follow);
}

static bool is_followed(const struct following *f, uint32_t control_id)
{
	const struct followed *at = f->first;

	while (at && at->control_id != control_id)
		at = at->next;
	return at;
}

/* What was noted after it was let go: who took the pacer off. */
static void read_after(struct watched *w, void *arg)
{
	struct following *f = arg;
	struct followed *at = find(f, w->ifname);

	if (at && !is_followed(f, w->last.control_id))
		follow_changes_since(&w->last, f->states, tell_of, at);
}

static void enter(struct following *f, struct followed *at, struct attached *a)
{
	struct event event = {
	    .kind = EVENT_BACK, .told_ns = host_now_ns(), .what = "it has a pacer"};
	struct policy_error error = {0};

	if (follow_open(&at->follow, a, &f->by, tell_of, at, &error)) {
		if (!at->wrong)
			complain(NULL, &error);
		at->wrong = true;
		return;
	}
	/* Others may follow the same state, and have told more by now than when one left it. */
	for (struct followed *other = f->first; other; other = other->next)
		if (other->control_id == a->control_id)
			follow_remember(f->states, a->control_id, &other->follow);
	at->control_id = a->control_id;
	at->ifindex = a->ifindex;
	at->wrong = false;
	if (at->there_ns)
		tell_of(&event, at);
	if (!follow_go_on(&at->follow, f->states, a->control_id) && at->there_ns)
		follow_since(&at->follow, at->there_ns);
}

/* Those whose interfaces are gone, and are not watched any more. */
static void leave_forgotten(struct following *f)
{
	static struct attached none;

	for (struct followed *at = f->first; at; at = at->next) {
		size_t i = 0;

		while (i < f->watch.n && strcmp(f->watch.at[i].ifname, at->ifname) != 0)
			i++;
		if (i < f->watch.n || !at->control_id)
			continue;
		at->follow.a = &none;
		leave(f, at);
	}
}

/* Once, until it is found or gone. Of what is named, `begin` says so at first. */
static void tell_unopened(struct watched *w, bool expected)
{
	if (expected && w->unopened && !w->told)
		complain(NULL, &w->error);
	w->told = w->unopened;
}

/* Who has come, and who is gone. One whose state is the same has not gone: it is followed on. */
static int look(struct following *f)
{
	struct policy_error error = {0};
	uint64_t now_ns = host_now_ns();

	if (watch_look(&f->watch, &error))
		return complain(NULL, &error);
	leave_forgotten(f);
	for (size_t i = 0; i < f->watch.n; i++) {
		struct watched *w = &f->watch.at[i];
		struct followed *at = followed_of(f, w->ifname);

		if (!at)
			return gave_up("events", "no memory");
		at->follow.a = &w->a;
		if (at->control_id && (!w->found || w->a.control_id != at->control_id))
			leave(f, at);
		if (!at->control_id && w->found)
			enter(f, at, &w->a);
		if (at->control_id)
			at->there_ns = now_ns;
		tell_unopened(w, f->watch.all || at->there_ns);
	}
	return EXIT_DONE;
}

static void round_of_all(struct following *f)
{
	struct policy_error error = {0};

	for (struct followed *at = f->first; at; at = at->next) {
		bool wrong = at->control_id && follow_round(&at->follow, &error);

		if (wrong && !at->wrong)
			complain(NULL, &error);
		at->wrong = wrong;
	}
}

/* True: it is to end. */
static bool wait_until(uint64_t at_ns)
{
	uint64_t now_ns = host_now_ns();

	return ends_wait(at_ns > now_ns ? at_ns - now_ns : 0);
}

static int follow_all(struct following *f)
{
	uint64_t next_ns = host_now_ns();
	int code = EXIT_DONE;

	for (uint64_t n = 0; !code && flushed(); n++) {
		if (n % LOOK_ROUNDS == 0) {
			code = look(f);
			if (f->first)
				tell_lost(&f->t.pass, host_now_ns(), tell_of, f->first);
		}
		round_of_all(f);
		events_tidy(&f->t.pass);
		next_ns = pacer_later(next_ns + FOLLOW_EVERY_NS, host_now_ns());
		if (!flushed() || wait_until(next_ns))
			break;
	}
	return code;
}

/* Of those that are named, each has to have a pacer at first. */
static int begin(struct following *f)
{
	int code = look(f);

	for (size_t i = 0; i < f->watch.n && !code && !f->watch.all; i++)
		if (!f->watch.at[i].found)
			code = complain(NULL, &f->watch.at[i].error);
	if (code)
		return code;
	emit_begin(f->o->json);
	emit_text("events of %s", f->watch.all ? "all" : "");
	for (size_t i = 0; i < f->watch.n && !f->watch.all; i++)
		emit_text("%s%s", i ? ", " : "", printable(f->watch.at[i].ifname).text);
	emit_text(", from now on; ctrl-C ends it\n");
	return EXIT_DONE;
}

static int follow(const struct options *o, const struct episode_settings *by)
{
	bool all = o->n_args == 1 && several_all(o);
	static struct follow_states states;
	static struct following f;
	int code = several_all_alone("events", o, o->n_args);

	if (!code)
		code = until_ended(ENDS_OF_SERVICE);
	if (code)
		return code;
	f = (struct following){.o = o,
			       .by = *by,
			       .t = {o, {0}, {.command = o->exec, .journal = o->journal}, 0},
			       .states = &states};
	if (watch_begin(&f.watch, o->args, all ? 0 : (size_t)o->n_args))
		return gave_up("events", "no memory");
	f.watch.leaving = read_last;
	f.watch.left = read_after;
	f.watch.arg = &f;
	code = begin(&f);
	if (!code)
		code = follow_all(&f);
	events_stop(&f.t.pass);
	if (f.first)
		tell_lost(&f.t.pass, host_now_ns(), tell_of, f.first);
	while (f.first) {
		struct followed *next = f.first->next;

		policy_free(f.first->follow.policy);
		free(f.first);
		f.first = next;
	}
	watch_end(&f.watch);
	return code;
}

/* --- the past --------------------------------------------------------------------------------- */

static void emit_reach(const struct follow_past *past, const struct event_place *place)
{
	char time[EVENT_TIME];

	emit_text("%s: %" PRIu64 " ban%s and %" PRIu64 " change%s or episode%s noted",
		  printable(place->ifname).text, past->bans, units_plural(past->bans), past->said,
		  units_plural(past->said), units_plural(past->said));
	if (past->bans)
		emit_text("; bans since %s", event_time(place, past->bans_since_ns, time));
	if (past->said)
		emit_text("; the rest since %s", event_time(place, past->said_since_ns, time));
	if (past->bans_lost || past->said_lost)
		emit_text("; lost: %" PRIu64 " bans, %" PRIu64 " others", past->bans_lost,
			  past->said_lost);
	emit_text("\nof what was denied, only counters are kept unless somebody follows: "
		  "`xdp-pacer events %s --follow`\n",
		  printable(place->ifname).text);
}

struct looking_back {
	const struct event_place *place;
	bool json;
};

static void tell_past(const struct event *event, void *arg)
{
	const struct looking_back *l = arg;
	char text[EVENT_TEXT], line[EVENT_TEXT];

	if (!l->json)
		emit_text("%s\n", text_escape(event_text(event, l->place, text, sizeof(text)), line,
					      sizeof(line)));
	emit_object("");
	event_emit(event, l->place);
	emit_close();
}

static int show_past(struct attached *a, const struct options *o)
{
	struct event_place place = {a->ifname, day_minus_now_ns()};
	struct looking_back l = {&place, o->json};
	struct policy_error error = {0};
	struct follow_past past;

	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname, NULL);
	emit_array("events");
	if (follow_past(a, tell_past, &l, &past, &error)) {
		emit_drop();
		return complain(NULL, &error);
	}
	emit_close();
	emit_object("lost");
	emit_uint("bans", past.bans_lost, NULL);
	emit_uint("others", past.said_lost, NULL);
	emit_close();
	emit_close();
	if (!o->json)
		emit_reach(&past, &place);
	return emit_end();
}

/* --- the verb --------------------------------------------------------------------------------- */

static int run_events(struct options *o)
{
	struct episode_settings by;
	int code = read_settings(o, &by);

	if (!code)
		code = several_fit(o, o->n_args);
	if (code)
		return code;
	if (o->journal && !events_journal())
		return gave_up("events",
			       "--journal: /run/systemd/journal/socket is not there: start "
			       "systemd-journald, or leave --journal out");
	if (o->replay && !o->follow)
		return run_replay(o, &by);
	if (o->policy || o->replay)
		return misused("events", "-c POLICY is for --replay, and that for no interface");
	if (!o->n_args)
		return misused("events", "it wants one interface, or with --follow some or all");
	if (o->follow)
		return follow(o, &by);
	if (o->exec || o->journal || o->least || o->quiet_ns)
		return misused("events", "--exec, --journal, --least and --quiet are for --follow "
					 "and --replay");
	if (o->n_args != 1 || several_all(o))
		return misused("events", "it wants one interface, or with --follow some or all");
	return with_pacer(o, show_past);
}

static const struct option_row events_options[] = {
    {"follow", 'f', NULL, "tell each event as it happens, until it is ended", OPTION_FLAG(follow)},
    {"exec", 0, "COMMAND", "run it for each, with the event as JSON on its stdin",
     OPTION_TEXT(exec)},
    {"journal", 0, NULL, "hand each to systemd's journal, too", OPTION_FLAG(journal)},
    {"least", 0, "N", "packets beyond the ordinary before a start is told: 100 unless said",
     OPTION_TEXT(least)},
    {"quiet", 0, "TIME", "it is over after so long without more than the ordinary: 10s unless said",
     OPTION_TIME(quiet_ns)},
    {"replay", 0, "FILE", "those of a capture, judged by -c POLICY", OPTION_TEXT(replay)},
    {"policy", 'c', "POLICY", "of a capture: the policy's file; - is stdin", OPTION_TEXT(policy)},
    {0},
};

const struct verb verb_events = {"events",
				 "IFACE...|all",
				 "when an attack began and ended, who was banned, who changed what",
				 events_options,
				 run_events,
				 .group = VERBS_LOOK,
				 .example =
				     "xdp-pacer events eth0 --follow --exec 'mail -s pacer root'"};
