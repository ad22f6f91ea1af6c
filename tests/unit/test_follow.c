/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a follower tells of a pacer at work: changes, bans, losses and episodes, whoever else
 * follows it. The pacer is a few arrays here, what befalls while it is read befalls every time, and
 * the clock stands between two rounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "episodes/follow.h"
#include "live/copies.h"
#include "live/day.h"
#include "live/host.h"
#include "live/snapshot.h"
#include "plan/compile.h"

#define MS 1000000ull
#define S  1000000000ull

#define OF(name) "rules: [{name: " name ", limits: [{key: src/32,128, packets: 10, window: 1s}]}]\n"

static const struct episode_settings usual = {EPISODE_LEAST, EPISODE_QUIET_NS};

/* --- the pacer ------------------------------------------------------------------------------- */

static struct pacer_copy copies[2];
static struct pacer_control control;
static struct pacer_log notes;
static struct pacer_sampler sampler;
static struct attached pacer;
static struct pacer_counters counts[4];
static uint64_t now_ns;
static bool no_counters, no_chance;
static void (*befalls)(void); /* while counters are read */

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	(void)fd;
	if (befalls)
		befalls();
	errno = EPERM;
	if (no_counters)
		return -EPERM;
	memcpy(value, &counts[*(const uint32_t *)key], sizeof(*counts));
	return 0;
}

int host_cpus(struct policy_error *error)
{
	(void)error;
	return 1;
}

uint64_t host_resolution_ns(void)
{
	return 4 * MS;
}

uint64_t host_now_ns(void)
{
	return now_ns;
}

void host_wait_until(uint64_t until_ns)
{
	(void)until_ns;
}

static int64_t day_ns;

int64_t day_minus_now_ns(void)
{
	return day_ns;
}

ssize_t getrandom(void *to, size_t n, unsigned int flags)
{
	(void)flags;
	memset(to, 1, n);
	return no_chance ? -1 : (ssize_t)n;
}

static void (*meanwhile)(void); /* while a note is made */

FILE *__wrap_fopen(const char *path, const char *how);

/* Of who makes the note. */
FILE *__wrap_fopen(const char *path, const char *how)
{
	(void)path;
	(void)how;
	if (meanwhile)
		meanwhile();
	return NULL;
}

static struct pacer_sample_item items[3]; /* of which all are in the sample, if there is one */
static uint32_t n_items;

int sample_read(const struct attached *a, uint64_t seed, struct sample *sample,
		struct policy_error *error)
{
	(void)seed;
	*sample = (struct sample){.copy = &a->copy[0], .n = n_items, .rows = n_items};
	for (uint32_t i = 0; i < n_items; i++)
		sample->row[i].item = items[i];
	return n_items ? 0 : policy_fail(error, 0, "torn");
}

void sample_free(struct sample *sample)
{
	(void)sample;
}

/* As an apply does it: into the copy that is not in force, and then that is. */
static void apply(const char *text, uint32_t counter)
{
	uint32_t next = copies_in_force(&pacer) ^ 1;

	memset(&copies[next], 0, sizeof(copies[next]));
	copies[next].policy.rule[0].counter = counter;
	copies[next].policy.serial = copies[next ^ 1].policy.serial + 1;
	snprintf(copies[next].text, sizeof(copies[next].text), "%s", text);
	control.in_force = next;
}

/* --- what is told ---------------------------------------------------------------------------- */

static char told[1 << 17];

static char who[64];	     /* has made the last change */
static int64_t began_day_ns; /* of what began */

static void note(const struct event *e, void *arg)
{
	size_t at = strlen(told);

	if (e->who)
		snprintf(who, sizeof(who), "%s", e->who);
	if (e->kind == EVENT_START || e->kind == EVENT_END)
		assert_int_equal(e->began_day_ns, began_day_ns);
	assert_ptr_equal(arg, told);
	snprintf(told + at, sizeof(told) - at, "%s%s%s%s%s", event_name(e->kind),
		 e->rule ? " of " : "", e->rule ? e->rule : "", e->what ? ": " : "",
		 e->what ? e->what : "");
	at = strlen(told);
	if (e->n)
		snprintf(told + at, sizeof(told) - at, " %llu", (unsigned long long)e->n);
	at = strlen(told);
	snprintf(told + at, sizeof(told) - at, ";");
}

static struct policy_error error;
static struct follow follower, other;

static void open_it(struct follow *f)
{
	if (follow_open(f, &pacer, &usual, note, told, &error))
		fail_msg("%s", error.text);
}

/* After so long. */
static void round_after(uint64_t ns)
{
	now_ns += ns;
	if (follow_round(&follower, &error))
		fail_msg("%s", error.text);
}

static void tells(const char *what)
{
	assert_string_equal(told, what);
	*told = 0;
}

static int setup(void **unused)
{
	(void)unused;
	memset(copies, 0, sizeof(copies));
	memset(&notes, 0, sizeof(notes));
	memset(counts, 0, sizeof(counts));
	control = (struct pacer_control){.in_force = 1};
	pacer =
	    (struct attached){.ifname = "eth0", .control = &control, .copy = copies, .log = &notes};
	now_ns = 1000 * S;
	day_ns = began_day_ns = 0;
	no_counters = no_chance = false;
	befalls = NULL;
	n_items = 0;
	*told = 0;
	apply(OF("a"), 1);
	open_it(&follower);
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	if (follower.policy)
		follow_close(&follower);
	return 0;
}

/* --- bans and changes ------------------------------------------------------------------------ */

static void ban(uint64_t number)
{
	struct pacer_note *at = &notes.note[number % PACER_NOTES];

	at->rule = compile_name_id("a");
	at->time_ns = now_ns;
	at->number = (uint32_t)number + 1;
	notes.noted = number + 1;
}

static void test_bans(void **unused)
{
	(void)unused;
	ban(0);
	round_after(100 * MS);
	tells("ban of a;");
	ban(2); /* whose predecessor is being written */
	round_after(100 * MS);
	tells("ban of a;lost: bans 1;");
	for (uint64_t i = 3; i < 8 + PACER_NOTES; i++)
		ban(i);
	round_after(100 * MS);
	assert_non_null(strstr(told, "lost: bans 5;"));
	*told = 0;
	round_after(100 * MS);
	tells("");
}

static void test_changes(void **unused)
{
	(void)unused;
	notes_say(&pacer, NOTE_CHANGE, "one");
	notes_say(&pacer, NOTE_START, "a: of another follower");
	round_after(100 * MS);
	tells("change: one;");
	notes.said++; /* it is being written */
	notes_say(&pacer, NOTE_CHANGE, "two");
	notes.saying[3].uid = 4000000001; /* who has no name */
	round_after(100 * MS);
	tells(""); /* it is waited for, as long as a tool may take to speak */
	round_after(1900 * MS);
	tells("lost: readings of the counters 18;");
	round_after(200 * MS);
	assert_string_equal(who, "user 4000000001");
	tells("change: two;lost: changes 1;");
	notes_say(&pacer, NOTE_CHANGE, "three");
	notes.saying[4].number = 0;
	round_after(100 * MS);
	tells("");
	notes.saying[4].number = 5;
	round_after(100 * MS);
	tells("change: three;");
	for (uint32_t i = 0; i < PACER_SAID + 3; i++)
		notes_say(&pacer, NOTE_CHANGE, "");
	round_after(100 * MS);
	assert_non_null(strstr(told, ";lost: changes 3;"));
}

/* Of a pacer that took the place of another: what is younger than the last look at that. */
static void test_noted_before_it_was_found(void **unused)
{
	static const uint64_t old = PACER_SAID + 2;

	(void)unused;
	ban(0);
	notes_say(&pacer, NOTE_CHANGE, "old");
	now_ns += 1;
	ban(1);
	notes_say(&pacer, NOTE_CHANGE, "young");
	follow_close(&follower);
	open_it(&follower);
	follow_since(&follower, now_ns - 1);
	follow_notes(&follower);
	tells("change: young;ban of a;");
	round_after(100 * MS);
	tells(""); /* once */
	for (uint64_t i = 0; i < old; i++)
		notes_say(&pacer, NOTE_CHANGE, "");
	follow_since(&follower, 0);
	follow_notes(&follower);
	assert_non_null(strstr(told, "ban of a;ban of a;"));
	*told = 0;
	follow_since(&follower, now_ns);
	follow_notes(&follower);
	tells("");
	follower.reach.said = notes_said(&pacer);
	follow_since(&follower, now_ns - 1); /* some are written over */
	follow_notes(&follower);
	assert_non_null(strstr(told, ";lost: changes 4;"));
}

/* The losses of a state that is as young as that, too; of an older one it is not known since when
 * they are. */
static void test_lost_before_it_was_found(void **unused)
{
	(void)unused;
	notes.lost[1] = 3;
	follow_close(&follower);
	open_it(&follower);
	ban(0);
	follow_since(&follower, now_ns - 1);
	follow_notes(&follower);
	tells("ban of a;lost of a: bans 3;");
	notes.lost[1] = 5; /* before it is let go */
	follow_notes(&follower);
	tells("lost of a: bans 2;");
	follow_since(&follower, now_ns); /* it banned before */
	follow_notes(&follower);
	tells("");
	notes.noted = 0;
	notes_say(&pacer, NOTE_CHANGE, "old");
	open_it(&other);
	follow_since(&other, now_ns);
	follow_notes(&other);
	tells("");
	follow_close(&other);
}

/* Of a state that comes back, what was not told yet, whoever of those that follow it told it. */
static void test_goes_on(void **unused)
{
	static struct follow_states states;

	(void)unused;
	memset(&states, 0, sizeof(states));
	open_it(&other);
	ban(0);
	notes_say(&pacer, NOTE_CHANGE, "told");
	round_after(100 * MS);
	tells("change: told;ban of a;");
	notes.lost[1] = 3;
	round_after(1000 * MS);
	tells("lost of a: bans 3;");
	follow_remember(&states, 7, &follower);
	follow_remember(&states, 7, &other); /* who was not so far */
	follow_close(&other);
	follow_close(&follower);
	ban(1);
	notes_say(&pacer, NOTE_CHANGE, "meanwhile");
	notes.lost[1] = 5;
	open_it(&follower);
	assert_false(follow_go_on(&follower, &states, 8));
	assert_true(follow_go_on(&follower, &states, 7));
	round_after(100 * MS);
	tells("change: meanwhile;ban of a;lost of a: bans 2;");
	follow_remember(&states, 7, &follower); /* who is further */
	follow_close(&follower);
	open_it(&follower);
	assert_true(follow_go_on(&follower, &states, 7));
	round_after(1000 * MS);
	tells("");
	for (uint32_t id = 8; id < 7 + FOLLOW_STATES; id++)
		follow_remember(&states, id, &follower);
	assert_true(follow_go_on(&follower, &states, 7));
	follow_remember(&states, 7 + FOLLOW_STATES, &follower);
	assert_false(follow_go_on(&follower, &states, 7)); /* long ago */
	assert_true(follow_go_on(&follower, &states, 8));
}

/* Who let it go tells the changes that were noted since, once. */
static void test_changes_since(void **unused)
{
	static struct follow_states states;

	(void)unused;
	memset(&states, 0, sizeof(states));
	pacer.control_id = 7;
	notes_say(&pacer, NOTE_CHANGE, "told");
	round_after(100 * MS);
	tells("change: told;");
	follow_changes_since(&pacer, &states, note, told); /* of a state that nobody let go */
	tells("");
	follow_remember(&states, pacer.control_id, &follower);
	follow_close(&follower);
	notes_say(&pacer, NOTE_CHANGE, "unload");
	ban(0);
	follow_changes_since(&pacer, &states, note, told);
	tells("change: unload;");
	follow_changes_since(&pacer, &states, note, told);
	tells("");
	open_it(&follower);
	assert_true(follow_go_on(&follower, &states, pacer.control_id));
	round_after(100 * MS);
	tells("ban of a;");
}

/* A policy's rules are counted as its copy says, not as the one before has them. */
static void test_counted_by_its_copy(void **unused)
{
	(void)unused;
	apply(OF("b"), 2);
	round_after(100 * MS);
	counts[2].by[PACER_DENY_WINDOW].packets = 500;
	round_after(100 * MS);
	assert_non_null(strstr(told, "start of b"));
}

/* A change of which no tool speaks. */
static void test_unspoken(void **unused)
{
	static const char unspoken[] = "change: the policy, and no tool says that it did so;";

	(void)unused;
	apply(OF("a"), 1);
	round_after(100 * MS);
	round_after(1000 * MS);
	round_after(999 * MS);
	tells("");
	round_after(1 * MS);
	tells(unspoken);
	round_after(5 * S);
	assert_null(strstr(told, "change"));
	*told = 0;
	apply(OF("b"), 2);
	round_after(100 * MS);
	notes_say(&pacer, NOTE_CHANGE, "by a tool");
	round_after(100 * MS);
	round_after(900 * MS);
	round_after(900 * MS);
	round_after(900 * MS);
	tells("change: by a tool;");
	copies[copies_in_force(&pacer)].policy.serial++; /* twice, into the same copy */
	round_after(100 * MS);
	round_after(900 * MS);
	round_after(900 * MS);
	round_after(900 * MS);
	tells(unspoken);
}

/* On trial, until nobody confirmed. */
static void test_roll_back(void **unused)
{
	uint32_t trial;

	(void)unused;
	apply(OF("b"), 2);
	trial = control.in_force;
	copies_put_in_force(&pacer, trial, now_ns + S);
	notes_say(&pacer, NOTE_CHANGE, "on trial");
	round_after(100 * MS);
	tells("change: on trial;");
	round_after(900 * MS - 1);
	tells("");
	round_after(1);
	tells("rolled_back: the policy before is in force again;");
	copies_put_in_force(&pacer, trial, now_ns + S); /* and once more, confirmed */
	round_after(100 * MS);
	copies_put_in_force(&pacer, trial, 0);
	round_after(100 * MS);
	copies_put_in_force(&pacer, trial ^ 1,
			    0); /* by another's change, and that is told as such */
	round_after(5 * S);
	assert_null(strstr(told, "rolled_back"));
	copies_put_in_force(&pacer, trial, now_ns + S); /* before its end, as well */
	round_after(100 * MS);
	copies_put_in_force(&pacer, trial ^ 1, 0);
	round_after(100 * MS);
	assert_null(strstr(told, "rolled_back"));
}

/* --- what cannot be read --------------------------------------------------------------------- */

static void changes(void)
{
	befalls = NULL;
	apply(OF("b"), 1);
	counts[1].by[PACER_DENY_WINDOW].packets = 5;
}

static void once_more(void)
{
	befalls = NULL;
	copies[copies_in_force(&pacer)].policy.serial++;
}

static void test_another_policy_meanwhile(void **unused)
{
	(void)unused;
	ban(0);
	counts[1].by[PACER_DENY_WINDOW].packets = 500;
	befalls = changes; /* what was read may be of either */
	round_after(100 * MS);
	tells("");
	befalls = once_more;
	round_after(100 * MS);
	tells("");
	round_after(100 * MS);
	tells("ban of ?;");
	assert_string_equal(follower.policy->rule[0].name, "b");
}

static void test_unreadable(void **unused)
{
	(void)unused;
	no_counters = true;
	assert_int_equal(follow_round(&follower, &error), -1);
	assert_string_equal(error.text,
			    "eth0: its counters cannot be read: Operation not permitted");
	no_counters = false;
	apply("rules: [{", 2);
	for (int i = 0; i < 2; i++) /* until it can be read, and the one before stays */
		assert_int_equal(follow_round(&follower, &error), -1);
	assert_string_equal(follower.policy->rule[0].name, "a");
	apply(OF("c"), 1);
	round_after(100 * MS);
	assert_string_equal(follower.policy->rule[0].name, "c");
	follow_close(&follower);
	apply("rules: [{", 2);
	assert_int_equal(follow_open(&follower, &pacer, &usual, note, told, &error), -1);
	assert_null(follower.policy);
	assert_int_equal(follow_past(&pacer, note, told, &(struct follow_past){0}, &error), -1);
}

static void test_late(void **unused)
{
	(void)unused;
	round_after(1099 * MS);
	tells("");
	round_after(1100 * MS);
	tells("lost: readings of the counters 10;");
}

/* --- what found no room ---------------------------------------------------------------------- */

/* Each rule's own, though the next has its counters. */
static void test_losses(void **unused)
{
	(void)unused;
	counts[1].events[PACER_BANS_FULL] = 7; /* since when, nobody knows */
	round_after(100 * MS);
	tells("");
	counts[1].events[PACER_BANS_FULL] = 9;
	notes.lost[1] = 3;
	round_after(900 * MS);
	tells("bans_full of a 2;");
	round_after(100 * MS);
	tells("lost of a: bans 3;");
	notes.lost[1] = 8;
	counts[1].events[PACER_BANS_FULL] = 0;
	apply(OF("b"), 1);
	notes_say(&pacer, NOTE_CHANGE, "b");
	round_after(100 * MS);
	tells("lost of a: bans 5;change: b;");
	round_after(1000 * MS);
	tells("");
}

/* So many find no room in a round, for so long: what is told, and when. */
static void fill_for(uint64_t ns, uint64_t every_round)
{
	for (; ns; ns -= 100 * MS) {
		counts[1].events[PACER_BANS_FULL] += every_round;
		round_after(100 * MS);
	}
}

/* The first at once; then, while it goes on, ever more rarely, and none is left out. */
static void test_bans_without_room(void **unused)
{
	(void)unused;
	round_after(100 * MS);
	fill_for(100 * MS, 3);
	tells("bans_full of a 3;");
	fill_for(4900 * MS, 1);
	tells("");
	fill_for(100 * MS, 1);
	tells("bans_full of a 50;");
	fill_for(9900 * MS, 1);
	tells("");
	fill_for(100 * MS, 1);
	tells("bans_full of a 100;");
	fill_for(600000 * MS, 1); /* after 20, 40, 80 and 160 s; and 300 */
	tells("bans_full of a 200;bans_full of a 400;bans_full of a 800;bans_full of a 1600;"
	      "bans_full of a 3000;");
	fill_for(299900 * MS, 1);
	tells("");
	fill_for(100 * MS, 0);
	tells("bans_full of a 2999;");
	fill_for(9800 * MS, 0); /* ten seconds later it is the same */
	fill_for(100 * MS, 1);
	tells("");
	fill_for(10000 * MS, 0);
	fill_for(100 * MS, 1); /* and after more than ten another */
	tells("bans_full of a 2;");
	fill_for(5000 * MS, 1);
	tells("bans_full of a 50;");
	fill_for(300 * MS, 1);
	follow_notes(&follower);
	tells("bans_full of a 3;");
	follow_notes(&follower);
	tells("");
	fill_for(200 * MS, 1);
	apply(OF("b"), 1);
	notes_say(&pacer, NOTE_CHANGE, "b");
	round_after(100 * MS);
	tells("bans_full of a 2;change: b;");
	counts[1].events[PACER_BANS_FULL] = 1; /* of another pacer, which it had before */
	round_after(100 * MS);
	fill_for(10000 * MS, 1);
	tells("bans_full of b 93;"); /* ten seconds after the 50 */
}

/* --- episodes -------------------------------------------------------------------------------- */

static void deny(uint64_t packets)
{
	counts[1].by[PACER_DENY_WINDOW].packets += packets;
}

/* What was said of episodes, but for the numbers. */
static void noted(const char *what)
{
	char all[400] = "";
	struct note_said said;

	for (uint64_t i = 0; i < notes_said(&pacer); i++)
		if (notes_saying(&pacer, i, &said) && said.what != NOTE_CHANGE)
			snprintf(all + strlen(all), sizeof(all) - strlen(all), "%d %.3s;",
				 said.what, said.text);
	assert_string_equal(all, what);
}

/* When it began is told by the clock of the day as it was then, though that is set meanwhile. */
static void test_began_on_one_day(void **unused)
{
	(void)unused;
	round_after(100 * MS);
	day_ns = began_day_ns = 7;
	deny(500);
	round_after(100 * MS);
	tells("start of a;");
	day_ns = -9;
	for (int i = 0; i < 120; i++)
		round_after(100 * MS);
	tells("end of a;");
}

static void others_round(void)
{
	meanwhile = NULL;
	if (follow_round(&other, &error))
		fail_msg("%s", error.text);
}

/* Whoever follows, an episode is noted once: also where the other notes it between a look and a
 * note. */
static void test_noted_once(void **unused)
{
	(void)unused;
	notes_say(&pacer, NOTE_START, "a: whose end nobody saw");
	notes_say(&pacer, NOTE_START, "ab: of another rule");
	notes.said++; /* and one that is being written */
	open_it(&other);
	for (int episode = 0; episode < 2; episode++)
		for (int i = 0; i < 120; i++) {
			if (i == 1)
				deny(500);
			meanwhile = episode ? others_round : NULL;
			round_after(100 * MS);
			others_round();
		}
	noted("1 a: ;1 ab:;1 a: ;2 a: ;1 a: ;2 a: ;");
	deny(500);
	round_after(100 * MS);
	assert_int_equal(follow_round(&other, &error), 0);
	noted("1 a: ;1 ab:;1 a: ;2 a: ;1 a: ;2 a: ;1 a: ;");
	*told = 0;
	other.a = &(struct attached){.ifname = "eth0"}; /* which is gone: nothing can be noted */
	follow_close(&other);
	for (uint32_t i = 0; i < PACER_SAID; i++) /* its start is no more */
		notes_say(&pacer, NOTE_CHANGE, "");
	tells("end of a;");
	follow_close(&follower);
	tells("end of a;");
	noted("");
}

/* What lets through all that is denied stands in the note, too. */
static void test_noted_what_passes(void **unused)
{
	static const char *const texts[] = {OF("a"), "mode: monitor\n" OF("a")};
	static const char *const want[] = {"a: 500 of 500 packets denied in ",
					   "a: 500 of 500 packets denied (mode: monitor lets them "
					   "through) in "};
	struct note_said said;

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		apply(texts[i], 1);
		round_after(100 * MS);
		deny(500);
		round_after(100 * MS);
		assert_true(notes_saying(&pacer, notes_said(&pacer) - 1, &said));
		if (strncmp(said.text, want[i], strlen(want[i])) != 0)
			fail_msg("%s", said.text);
		for (int k = 0; k < 120; k++)
			round_after(100 * MS);
	}
}

static void test_sampled(void **unused)
{
	static const uint32_t reasons = 1u << PACER_DENY_WINDOW;
	struct note_said said;

	(void)unused;
	for (uint32_t i = 0; i < 3; i++) /* the last two are of no rule, or of none any more */
		items[i] = (struct pacer_sample_item){
		    .time_ns = now_ns, .rule = i == 2 ? 3 : !i, .reason = PACER_DENY_WINDOW};
	round_after(100 * MS);
	copies[0].policy.sampling.reasons = reasons; /* for which there is no memory yet */
	deny(500);
	round_after(100 * MS);
	tells("start of a;");
	assert_true(notes_saying(&pacer, 0, &said));
	assert_null(strstr(said.text, "sources"));
	pacer.sampler = &sampler;
	no_chance = true;
	deny(500);
	round_after(1000 * MS);
	tells("lost: samples 1;");
	no_chance = false;
	for (int i = 0; i < 59; i++) { /* it cannot be read: that is told once a minute */
		deny(5000);
		round_after(1000 * MS);
	}
	assert_null(strstr(told, "lost: samples"));
	deny(5000);
	round_after(1000 * MS);
	assert_non_null(strstr(told, "lost: samples 1;"));
	*told = 0;
	n_items = 3;
	for (uint32_t i = 0; i < 3; i++)
		items[i].time_ns = now_ns;
	deny(5000);
	round_after(1000 * MS);
	assert_int_equal(follower.detector.rule[0].crowd.samples, 1);
	items[0].reason = PACER_ADMIT;
	deny(5000);
	round_after(1000 * MS);
	assert_int_equal(follower.detector.rule[0].crowd.samples, 0);
	items[0].reason = PACER_DENY_WINDOW;
	deny(5000);
	round_after(1000 * MS);
	follow_close(&follower);
	assert_true(notes_saying(&pacer, notes_said(&pacer) - 1, &said));
	if (!strstr(said.text, "; sources: one"))
		fail_msg("%s", said.text);
}

/* --- the past -------------------------------------------------------------------------------- */

static void test_past(void **unused)
{
	struct follow_past past;

	(void)unused;
	assert_int_equal(follow_past(&pacer, note, told, &past, &error), 0);
	tells("");
	assert_true(!past.bans && !past.said && !past.bans_lost && !past.said_lost);
	notes_say(&pacer, NOTE_END, "a: 5 of 6");
	now_ns += 1;
	ban(1);
	notes_say(&pacer, NOTE_CHANGE, "later than a ban of the same moment");
	now_ns += 1;
	notes_say(&pacer, 7, "of a version to come");
	notes_say(&pacer, NOTE_START, "no rule is named");
	notes_say(&pacer, NOTE_START,
		  "a-name-that-no-rule-can-have-since-it-is-much-too-long-for-one: 5 of 6");
	notes.said++;
	ban(3);
	now_ns += 1;
	ban(4);
	notes.lost[2] = 10;
	assert_int_equal(follow_past(&pacer, note, told, &past, &error), 0);
	tells("end of a: 5 of 6;ban of a;change: later than a ban of the same moment;ban of a;"
	      "change: of a version to come;start: no rule is named;"
	      "start: a-name-that-no-rule-can-have-since-it-is-much-too-long-for-one: 5 of 6;"
	      "ban of a;");
	assert_int_equal(past.bans, 3);
	assert_int_equal(past.bans_lost, 12);
	assert_int_equal(past.bans_since_ns, 1000 * S + 1);
	assert_int_equal(past.said, 5);
	assert_int_equal(past.said_lost, 1);
	assert_int_equal(past.said_since_ns, 1000 * S);
	now_ns += 1;
	notes_say(&pacer, NOTE_CHANGE, "later than all bans");
	assert_int_equal(follow_past(&pacer, note, told, &past, &error), 0);
	assert_int_equal(past.said, 6);
	assert_non_null(strstr(told, "ban of a;change: later than all bans;"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_bans),
	    CASE(test_changes),
	    CASE(test_noted_before_it_was_found),
	    CASE(test_goes_on),
	    CASE(test_changes_since),
	    CASE(test_lost_before_it_was_found),
	    CASE(test_unspoken),
	    CASE(test_counted_by_its_copy),
	    CASE(test_roll_back),
	    CASE(test_another_policy_meanwhile),
	    CASE(test_unreadable),
	    CASE(test_late),
	    CASE(test_losses),
	    CASE(test_bans_without_room),
	    CASE(test_began_on_one_day),
	    CASE(test_noted_once),
	    CASE(test_noted_what_passes),
	    CASE(test_sampled),
	    CASE(test_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
