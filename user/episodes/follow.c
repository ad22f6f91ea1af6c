/* SPDX-License-Identifier: GPL-2.0-only */
#include "episodes/follow.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "estimate/estimate_key.h"
#include "estimate/judged.h"
#include "key.h"
#include "live/copies.h"
#include "live/day.h"
#include "live/host.h"
#include "live/reading.h"
#include "live/snapshot.h"
#include "plan/compile.h"
#include "inspect/occupancy.h"

#define UNSPOKEN_NS 2000000000ull  /* a tool speaks of its change within this time */
#define TORN_NS	    60000000000ull /* what is lost again and again is told as often */
#define NAME	    64

/* --- what counters cannot tell ---------------------------------------------------------------- */

static void lose(struct follow *f, const char *rule, const char *what, uint64_t n)
{
	struct event event = {
	    .kind = EVENT_LOST, .told_ns = f->last_ns, .rule = rule, .what = what, .n = n};

	if (n)
		f->tell(&event, f->arg);
}

static struct event event_of_ban(const struct note_ban *ban)
{
	return (struct event){.kind = EVENT_BAN,
			      .told_ns = ban->time_ns,
			      .rule = ban->rule,
			      .key = ban->key,
			      .until_ns = ban->until_ns};
}

static void tell_bans(struct follow *f)
{
	uint64_t noted = notes_noted(f->a), first = notes_first(noted, PACER_NOTES), lost = 0;

	if (f->reach.noted < first) {
		lost = first - f->reach.noted;
		f->reach.noted = first;
	}
	for (; f->reach.noted < noted; f->reach.noted++) {
		struct note_ban ban;
		struct event event;

		if (!notes_ban(f->a, f->policy, f->reach.noted, &ban)) {
			lost++;
			continue;
		}
		event = event_of_ban(&ban);
		f->tell(&event, f->arg);
	}
	lose(f, NULL, "bans", lost);
}

/* "name", or "user 1000" of one who has none. */
static const char *user_name(uint32_t uid, char *buf)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(buf, NAME, "%.*s", NAME - 1, user->pw_name);
	else
		snprintf(buf, NAME, "user %u", uid);
	return buf;
}

/* Room for the names in an event. */
struct names {
	char who[NAME], rule[POLICY_NAME_MAX];
};

/* What is said of an episode begins with its rule. */
static void take_rule(struct event *event, struct names *names)
{
	const char *end = strstr(event->what, ": ");

	if (!end || (size_t)(end - event->what) >= sizeof(names->rule))
		return;
	snprintf(names->rule, sizeof(names->rule), "%.*s", (int)(end - event->what), event->what);
	event->rule = names->rule;
	event->what = end + 2;
}

static struct event event_of_saying(const struct note_said *said, struct names *names)
{
	static const enum event_kind kinds[] = {
	    [NOTE_CHANGE] = EVENT_CHANGE, [NOTE_START] = EVENT_START, [NOTE_END] = EVENT_END};
	struct event event = {.kind = said->what <= NOTE_END ? kinds[said->what] : EVENT_CHANGE,
			      .told_ns = said->time_ns,
			      .what = said->text};

	if (event.kind != EVENT_CHANGE) {
		take_rule(&event, names);
		return event;
	}
	event.who = user_name(said->uid, names->who);
	event.pid = said->pid;
	return event;
}

/* A note has its number a moment after it is counted: the last ones are waited for. */
static bool is_being_written(struct follow *f, uint64_t said)
{
	if (f->reach.said + PACER_SAID / 2 < said)
		return false;
	if (!f->unread_ns)
		f->unread_ns = f->last_ns;
	if (f->last_ns - f->unread_ns < UNSPOKEN_NS)
		return true;
	f->unread_ns = 0;
	return false;
}

/* Of what other followers have said of episodes, nothing: they are told here as well. */
static void tell_sayings(struct follow *f)
{
	uint64_t said = notes_said(f->a), first = notes_first(said, PACER_SAID), lost = 0;

	if (f->reach.said < first) {
		lost = first - f->reach.said;
		f->reach.said = first;
	}
	for (; f->reach.said < said; f->reach.said++) {
		struct note_said saying;
		struct names names;
		struct event event;

		if (!notes_saying(f->a, f->reach.said, &saying)) {
			if (is_being_written(f, said))
				break;
			lost++;
			continue;
		}
		f->unread_ns = 0;
		if (saying.what != NOTE_CHANGE)
			continue;
		event = event_of_saying(&saying, &names);
		f->tell(&event, f->arg);
		f->changed_ns = 0;
	}
	lose(f, NULL, "changes", lost);
}

static void tell_unspoken(struct follow *f)
{
	struct event event = {.kind = EVENT_CHANGE,
			      .told_ns = f->last_ns,
			      .what = "the policy, and no tool says that it did so"};

	if (!f->changed_ns || f->last_ns - f->changed_ns < UNSPOKEN_NS)
		return;
	f->changed_ns = 0;
	f->tell(&event, f->arg);
}

/* --- what is noted for who comes later -------------------------------------------------------- */

/*
 * Has somebody else noted this of the rule's episode already, among the first `said` notes? Its end
 * only if it has a start.
 */
static bool is_noted(const struct follow *f, const struct event *e, enum note_what what,
		     const char *before, uint64_t said)
{
	uint64_t first = notes_first(said, PACER_SAID);

	for (; said > first; said--) {
		struct note_said saying;

		if (notes_saying(f->a, said - 1, &saying) && saying.what != NOTE_CHANGE &&
		    !strncmp(saying.text, before, strlen(before)))
			return what == NOTE_END
				   ? saying.what == NOTE_END
				   : saying.what == NOTE_START && saying.time_ns >= e->began_ns;
	}
	return what == NOTE_END;
}

static void note_episode(struct follow *f, const struct event *e)
{
	enum note_what what = e->kind == EVENT_START ? NOTE_START : NOTE_END;
	char text[PACER_SAID_TEXT], before[POLICY_NAME_MAX + 4];
	uint64_t said;

	if (!f->a->log)
		return;
	snprintf(before, sizeof(before), "%s: ", e->rule);
	snprintf(text, sizeof(text),
		 "%s%llu of %llu packets denied%s%s%s in %.1f s, most by %s%s%s", before,
		 (unsigned long long)e->so_far.denied, (unsigned long long)e->so_far.matched,
		 e->lets_through ? " (" : "", e->lets_through ? e->lets_through : "",
		 e->lets_through ? " lets them through)" : "",
		 ((e->ended_ns ? e->ended_ns : e->told_ns) - e->began_ns) / 1e9,
		 pacer_reason_name(e->so_far.most), e->crowd ? "; sources: " : "",
		 e->crowd ? crowd_kind_name(e->crowd->kind) : "");
	do {
		said = notes_said(f->a);
	} while (!is_noted(f, e, what, before, said) && !notes_say_next(f->a, said, what, text));
}

static void told(const struct event *event, void *arg)
{
	struct follow *f = arg;

	f->tell(event, f->arg);
	if (event->kind == EVENT_START || event->kind == EVENT_END)
		note_episode(f, event);
}

/* --- bans that found no room ------------------------------------------------------------------ */

static void tell_unbanned(struct follow *f, size_t rule)
{
	struct follow_full *full = &f->full[f->counter[rule]];
	struct event event = {.kind = EVENT_BANS_FULL,
			      .told_ns = f->last_ns,
			      .rule = f->policy->rule[rule].name,
			      .n = full->read - full->told};

	if (event.n)
		f->tell(&event, f->arg);
	full->told = full->read;
}

/* Before another rule has the counters, or there are none. */
static void tell_all_unbanned(struct follow *f)
{
	for (size_t r = 0; r < f->policy->n_rules; r++)
		tell_unbanned(f, r);
}

static void take_full(struct follow *f, size_t rule, uint64_t now)
{
	struct follow_full *full = &f->full[f->counter[rule]];

	if (!full->known || now < full->read) /* since when, nobody knows; or it is a new one */
		full->told = full->read = now;
	full->known = true;
	if (now > full->read) {
		if (!full->grew_ns || f->last_ns - full->grew_ns > EPISODE_QUIET_NS)
			full->news_ns = full->apart_ns = 0;
		full->grew_ns = f->last_ns;
		full->read = now;
	}
	if (full->read == full->told || f->last_ns < full->news_ns)
		return;
	tell_unbanned(f, rule);
	full->apart_ns = full->apart_ns ? 2 * full->apart_ns : EPISODE_NEWS_NS;
	if (full->apart_ns > EPISODE_NEWS_MOST_NS)
		full->apart_ns = EPISODE_NEWS_MOST_NS;
	full->news_ns = f->last_ns + full->apart_ns;
}

/* --- the policy ------------------------------------------------------------------------------- */

static uint64_t word_of(const struct attached *a)
{
	return __atomic_load_n(&a->control->in_force, __ATOMIC_ACQUIRE);
}

static uint64_t serial_of(const struct attached *a, uint32_t copy)
{
	return pacer_load64((const __u64 *)&a->copy[copy].policy.serial);
}

static void tell_losses(struct follow *f)
{
	for (size_t r = 0; r < f->policy->n_rules; r++) {
		uint32_t c = f->counter[r];
		uint64_t lost = notes_lost(f->a, c);

		lose(f, f->policy->rule[r].name, "bans", lost - f->reach.lost[c]);
		f->reach.lost[c] = lost;
	}
}

static void tell_roll_back(struct follow *f, uint32_t copy)
{
	struct event event = {.kind = EVENT_ROLLED_BACK,
			      .told_ns = f->last_ns,
			      .what = "the policy before is in force again"};

	if (f->word >> 1 && f->last_ns >= f->word >> 1 && copy != (f->word & 1)) {
		f->changed_ns = 0;
		f->tell(&event, f->arg);
	}
}

static int take_policy(struct follow *f, uint32_t copy, uint64_t serial, struct policy_error *error)
{
	struct policy *policy = copies_policy(f->a, copy, error), *before = f->policy;

	if (!policy)
		return -1;
	for (size_t r = 0; r < policy->n_rules; r++)
		f->counter[r] = f->a->copy[copy].policy.rule[r].counter;
	f->copy = copy;
	f->serial = serial;
	f->policy = policy;
	detector_policy(&f->detector, policy, f->counter);
	if (before)
		policy_free(before);
	return 0;
}

static int follow_policy(struct follow *f, struct policy_error *error)
{
	uint32_t copy = copies_in_force(f->a);
	uint64_t serial = serial_of(f->a, copy);

	if (copy == f->copy && serial == f->serial) {
		f->word = word_of(f->a);
		return 0;
	}
	f->changed_ns = f->last_ns;
	tell_losses(f); /* before another rule has its counters */
	tell_all_unbanned(f);
	tell_roll_back(f, copy);
	f->word = word_of(f->a);
	attached_sampled(f->a);
	return take_policy(f, copy, serial, error);
}

/* --- counters --------------------------------------------------------------------------------- */

/* 1: another policy came into force meanwhile, whose rules may have these counters. */
static int read_counters(struct follow *f, struct pacer_counters *counters,
			 struct policy_error *error)
{
	for (size_t r = 0; r < f->policy->n_rules; r++)
		if (reading_counters(f->a, f->counter[r], &counters[r]))
			return policy_fail(error, 0, "%s: its counters cannot be read: %s",
					   f->a->ifname, strerror(errno));
	return copies_in_force(f->a) != f->copy || serial_of(f->a, f->copy) != f->serial;
}

/* --- the sample ------------------------------------------------------------------------------- */

static size_t rule_of(const struct follow *f, const struct pacer_sample_item *item)
{
	for (size_t r = 0; r < f->policy->n_rules; r++)
		if (item->rule && f->counter[r] == item->rule)
			return r;
	return PACER_RULES_MAX;
}

static struct crowd_packet packet_of(const struct follow *f, const struct judged_by *by,
				     const struct pacer_sample_item *item)
{
	bool denied = pacer_verdict_of(item->reason) == PACER_VERDICT_DENY;
	struct crowd_packet p = {.time_ns = item->time_ns,
				 .rule = denied ? rule_of(f, item) : PACER_RULES_MAX,
				 .reason = item->reason,
				 .by = KEY_SRC(32, 128),
				 .pkt = estimate_packet(item)};
	const struct pacer_limiter *t;
	int limiter;

	p.seen = p.pkt;
	limiter = judged_limiter(by, p.rule, item, &p.seen);
	if (limiter < 0) /* it goes by its source */
		return p;
	t = &by->bin->rule[p.rule].limiter[limiter];
	p.by = compile_key_of(t->key_id);
	p.limits = needed_limits(&f->policy->rule[p.rule], t, p.reason);
	return p;
}

/* What could not be read is told at first, and once a minute. */
static void tell_torn(struct follow *f)
{
	if (f->torn_ns && f->last_ns - f->torn_ns < TORN_NS)
		return;
	f->torn_ns = f->last_ns;
	lose(f, NULL, "samples", 1);
}

static void tell_detected(struct follow *f)
{
	static struct sample sample; /* large; one thread */
	struct crowd_packet packet[PACER_SAMPLE_K];
	struct judged_by by;
	struct policy_error unused;
	uint64_t seed;

	if (!f->a->copy[f->copy].policy.sampling.reasons || !f->a->sampler) {
		detector_tell(&f->detector, NULL, 0, 0);
		return;
	}
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed) ||
	    sample_read(f->a, seed, &sample, &unused)) {
		tell_torn(f);
		detector_tell(&f->detector, NULL, 0, 0);
		return;
	}
	judged_open(f->a, &f->a->copy[f->copy].policy, &by);
	for (uint32_t i = 0; i < sample.rows; i++)
		packet[i] = packet_of(f, &by, &sample.row[i].item);
	judged_close(&by);
	detector_tell(&f->detector, packet, sample.rows, sample.n);
	sample_free(&sample);
}

/* --- tables ----------------------------------------------------------------------------------- */

static void look_at_table(struct follow *f, size_t rule, size_t limit)
{
	const struct pacer_limiter *t =
	    occupancy_limiter(&f->a->copy[f->copy].policy.rule[rule],
			      &f->policy->rule[rule].limit[limit], f->a->control->resolution_ns);
	uint64_t used, shared, capacity, unused;

	if (!t || !t->sets) /* one record for all keys is no table */
		return;
	used = occupancy_used(t, f->a->lines, f->a->n_lines, f->last_ns, false, &capacity);
	shared = occupancy_used(t, f->a->lines, f->a->n_lines, f->last_ns, true, &unused);
	detector_table(&f->detector, rule, limit, used, shared, capacity, f->last_ns);
}

static void look_at_tables(struct follow *f)
{
	if (f->last_ns - f->slow_ns < FOLLOW_TABLES_NS)
		return;
	f->slow_ns = f->last_ns;
	for (size_t r = 0; r < f->policy->n_rules; r++)
		for (size_t l = 0; l < f->policy->rule[r].n_limits; l++)
			look_at_table(f, r, l);
	tell_losses(f);
}

/* --- a round ---------------------------------------------------------------------------------- */

int follow_open(struct follow *f, struct attached *a, const struct episode_settings *by,
		event_tell *tell, void *arg, struct policy_error *error)
{
	uint32_t copy = copies_in_force(a);

	*f = (struct follow){.a = a, .tell = tell, .arg = arg, .last_ns = host_now_ns()};
	detector_open(&f->detector, by, told, f);
	f->detector.behind_ns = a->control->resolution_ns;
	f->reach.noted = notes_noted(a);
	f->reach.said = notes_said(a);
	for (uint32_t c = 0; c < PACER_COUNTERS_MAX; c++)
		f->reach.lost[c] = notes_lost(a, c);
	f->word = word_of(a);
	return take_policy(f, copy, serial_of(a, copy), error);
}

/* The number of the first that is younger, among the n that were noted. */
static uint64_t first_ban_since(const struct follow *f, uint64_t n, uint64_t since_ns)
{
	uint64_t first = notes_first(n, PACER_NOTES);
	struct note_ban ban;

	for (; n > first; n--)
		if (notes_ban(f->a, f->policy, n - 1, &ban) && ban.time_ns <= since_ns)
			return n;
	return 0;
}

static uint64_t first_saying_since(const struct follow *f, uint64_t n, uint64_t since_ns)
{
	uint64_t first = notes_first(n, PACER_SAID);
	struct note_said saying;

	for (; n > first; n--)
		if (notes_saying(f->a, n - 1, &saying) && saying.time_ns <= since_ns)
			return n;
	return 0;
}

void follow_since(struct follow *f, uint64_t since_ns)
{
	f->reach.noted = first_ban_since(f, f->reach.noted, since_ns);
	f->reach.said = first_saying_since(f, f->reach.said, since_ns);
	if (!f->reach.noted && !f->reach.said) /* all of it is younger */
		memset(f->reach.lost, 0, sizeof(f->reach.lost));
}

static void take_greater(uint64_t *a, uint64_t b)
{
	if (*a < b)
		*a = b;
}

static struct follow_state *find_state(struct follow_states *s, uint32_t id)
{
	for (size_t i = 0; i < FOLLOW_STATES; i++)
		if (s->at[i].id == id)
			return &s->at[i];
	return NULL;
}

void follow_remember(struct follow_states *s, uint32_t id, const struct follow *f)
{
	struct follow_state *at = find_state(s, id);

	if (!at) {
		at = &s->at[s->n++ % FOLLOW_STATES];
		*at = (struct follow_state){.id = id};
	}
	take_greater(&at->reach.noted, f->reach.noted);
	take_greater(&at->reach.said, f->reach.said);
	for (uint32_t c = 0; c < PACER_COUNTERS_MAX; c++)
		take_greater(&at->reach.lost[c], f->reach.lost[c]);
}

bool follow_go_on(struct follow *f, struct follow_states *s, uint32_t id)
{
	const struct follow_state *at = find_state(s, id);

	if (at)
		f->reach = at->reach;
	return at;
}

static void tell_notes(struct follow *f)
{
	tell_sayings(f);
	tell_bans(f);
}

void follow_notes(struct follow *f)
{
	tell_notes(f);
	tell_losses(f);
	tell_all_unbanned(f);
}

void follow_changes_since(struct attached *a, struct follow_states *s, event_tell *tell, void *arg)
{
	struct follow f = {.a = a, .tell = tell, .arg = arg, .last_ns = host_now_ns()};

	if (!follow_go_on(&f, s, a->control_id))
		return;
	tell_sayings(&f);
	follow_remember(s, a->control_id, &f);
}

/* A round that comes late has a longer time to look back on, which the detector is told. */
static void tell_late(struct follow *f, uint64_t now_ns)
{
	uint64_t rounds = (now_ns - f->last_ns) / FOLLOW_EVERY_NS;

	f->last_ns = now_ns;
	if (rounds > 10)
		lose(f, NULL, "readings of the counters", rounds - 1);
}

int follow_round(struct follow *f, struct policy_error *error)
{
	static struct pacer_counters counters[PACER_RULES_MAX];
	int result;

	tell_late(f, host_now_ns());
	result = follow_policy(f, error);
	if (!result)
		result = read_counters(f, counters, error);
	if (result)
		return result < 0 ? -1 : 0; /* the next round finds the new policy */
	tell_notes(f);
	tell_unspoken(f);
	for (size_t r = 0; r < f->policy->n_rules; r++)
		take_full(f, r, counters[r].events[PACER_BANS_FULL]);
	f->detector.day_ns = day_minus_now_ns();
	if (detector_read(&f->detector, counters, f->last_ns))
		tell_detected(f);
	look_at_tables(f);
	return 0;
}

void follow_close(struct follow *f)
{
	detector_stop(&f->detector);
	policy_free(f->policy);
	f->policy = NULL;
}

/* --- the past --------------------------------------------------------------------------------- */

struct past {
	struct note_ban ban;
	struct note_said saying;
	bool has_ban, has_saying;
	uint64_t noted, said; /* the numbers of the next */
};

static void next_ban(const struct attached *a, const struct policy *policy, uint64_t n,
		     struct past *p, struct follow_past *sum)
{
	while (!p->has_ban && p->noted < n) {
		p->has_ban = notes_ban(a, policy, p->noted++, &p->ban);
		sum->bans_lost += !p->has_ban;
	}
}

static void next_saying(const struct attached *a, uint64_t n, struct past *p,
			struct follow_past *sum)
{
	while (!p->has_saying && p->said < n) {
		p->has_saying = notes_saying(a, p->said++, &p->saying);
		sum->said_lost += !p->has_saying;
	}
}

static void tell_older(struct past *p, event_tell *tell, void *arg, struct follow_past *sum)
{
	bool ban = p->has_ban && (!p->has_saying || p->ban.time_ns <= p->saying.time_ns);
	struct names names;
	struct event event;

	if (ban) {
		event = event_of_ban(&p->ban);
		if (!sum->bans++)
			sum->bans_since_ns = event.told_ns;
		p->has_ban = false;
	} else {
		event = event_of_saying(&p->saying, &names);
		if (!sum->said++)
			sum->said_since_ns = event.told_ns;
		p->has_saying = false;
	}
	tell(&event, arg);
}

int follow_past(struct attached *a, event_tell *tell, void *arg, struct follow_past *sum,
		struct policy_error *error)
{
	uint64_t noted = notes_noted(a), said = notes_said(a);
	struct past p = {.noted = notes_first(noted, PACER_NOTES),
			 .said = notes_first(said, PACER_SAID)};
	struct policy *policy = copies_policy(a, copies_in_force(a), error);

	if (!policy)
		return -1;
	*sum = (struct follow_past){.bans_lost = p.noted, .said_lost = p.said};
	for (uint32_t i = 0; i < PACER_COUNTERS_MAX; i++)
		sum->bans_lost += notes_lost(a, i);
	for (;;) {
		next_ban(a, policy, noted, &p, sum);
		next_saying(a, said, &p, sum);
		if (!p.has_ban && !p.has_saying)
			break;
		tell_older(&p, tell, arg, sum);
	}
	policy_free(policy);
	return 0;
}
