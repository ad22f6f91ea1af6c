/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the bouncer has a pacer ban and lift: whatever fails on the way, it has in the end what is
 * decided. The pacer is a list of keys here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bouncer/place.h"
#include "bouncer/say.h"
#include "live/bans.h"
#include "live/host.h"
#include "starved.h"

#define S	   1000000000ull
#define BANNED_MAX 8

/* --- the pacer ------------------------------------------------------------------------------- */

static struct {
	char key[64];
	uint64_t until_ns;
	bool rule, tool; /* it is one of a rule, or another tool's */
} banned[BANNED_MAX];
static size_t n_banned, room, table;
static const char *wrong; /* no key with this in it can be banned */
static bool add_fails, lift_fails, shadow_fails;
static uint64_t now_ns;
static char said[1000];

uint64_t host_now_ns(void)
{
	return now_ns;
}

void bouncer_say(const char *format, ...)
{
	size_t at = strlen(said);
	va_list args;

	va_start(args, format);
	vsnprintf(said + at, sizeof(said) - at, format, args);
	va_end(args);
	snprintf(said + strlen(said), sizeof(said) - strlen(said), ";");
}

static size_t find(const char *key)
{
	size_t i = 0;

	while (i < n_banned && strcmp(banned[i].key, key) != 0)
		i++;
	return i;
}

int bans_add(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
	     struct bans_done *done, struct policy_error *error)
{
	(void)a;
	assert_null(rule);
	*done = (struct bans_done){0};
	for (size_t i = 0; wrong && i < n; i++)
		if (strstr(wish[i].key, wrong)) {
			done->which = i;
			policy_explain(error, 0, "%s: it is wrong", wish[i].key);
			return BANS_WRONG;
		}
	if (add_fails)
		return policy_fail(error, 0, "it cannot ban");
	for (size_t i = 0; i < n; i++) {
		size_t at = find(wish[i].key);

		if (at == n_banned && n_banned == room) {
			done->left_out++;
			*wish[i].left_out = true;
			continue;
		}
		n_banned += at == n_banned;
		snprintf(banned[at].key, sizeof(banned[at].key), "%s", wish[i].key);
		assert_int_equal(wish[i].for_ns, 0);
		if (banned[at].until_ns < wish[i].until_ns)
			banned[at].until_ns = wish[i].until_ns;
		done->done++;
	}
	return shadow_fails ? policy_fail(error, 0, "its shadow cannot ban") : 0;
}

size_t bans_room(const struct attached *a)
{
	(void)a;
	return table;
}

static uint32_t begun;

uint32_t bans_begun(const struct attached *a)
{
	(void)a;
	return begun;
}

int bans_lift(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
	      struct bans_done *done, struct policy_error *error)
{
	(void)a;
	assert_string_equal(rule, "");
	*done = (struct bans_done){0};
	if (lift_fails)
		return policy_fail(error, 0, "it cannot lift");
	for (size_t i = 0; i < n; i++) {
		size_t at = find(wish[i].key);

		if (at == n_banned || banned[at].until_ns > wish[i].until_ns)
			continue;
		banned[at] = banned[--n_banned];
		memset(&banned[n_banned], 0, sizeof(banned[n_banned]));
		done->done++;
	}
	return 0;
}

static unsigned int looks;

size_t bans_each(const struct attached *a, const struct policy *policy,
		 void (*each)(const struct ban *, void *), void *arg)
{
	struct ban ban = {.in_force = true};

	(void)a;
	assert_null(policy);
	looks++;
	for (size_t i = 0; i < n_banned; i++) {
		snprintf(ban.key, sizeof(ban.key), "%s", banned[i].key);
		ban.left_ns =
		    banned[i].until_ns == PACER_NEVER ? PACER_NEVER : banned[i].until_ns - now_ns;
		snprintf(ban.rule, sizeof(ban.rule), "%s", banned[i].rule ? "?" : "");
		ban.tool = banned[i].tool;
		each(&ban, arg);
	}
	return n_banned;
}

/* --- what is decided ------------------------------------------------------------------------- */

static struct attached pacer = {.ifname = "eth0"};
static struct place place;
static struct policy_error error;

/* From now on, in any order: for so many seconds each. */
static struct ban_pieces pieces_of(const char *const *keys, uint64_t for_s)
{
	struct decisions d = {calloc(BANNED_MAX, sizeof(*d.at)), 0};
	struct ban_pieces is;

	for (; keys[d.n]; d.n++) {
		assert_int_equal(units_prefix_masked(keys[d.n], &d.at[d.n].prefix), 0);
		d.at[d.n].until_ns = now_ns + for_s * S;
	}
	assert_int_equal(decisions_bans(&d, now_ns, &is), 0);
	decisions_free(&d);
	return is;
}

static int bring(const char *const *keys, uint64_t for_s)
{
	struct ban_pieces is = pieces_of(keys, for_s);
	int result;

	memory.on = true;
	result = place_bring(&pacer, &place, &is, &error);
	memory.on = false;
	return result;
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_KEYS	  ((const char *const[]){NULL})

static void says(const char *what)
{
	assert_string_equal(said, what);
	*said = 0;
}

/* These are banned, and no others, until then. */
static void has(const char *const *keys, uint64_t until_ns)
{
	size_t n = 0;

	for (; keys[n]; n++) {
		size_t at = find(keys[n]);

		if (at == n_banned)
			fail_msg("%s is not banned", keys[n]);
		assert_int_equal(banned[at].until_ns, until_ns);
	}
	assert_int_equal(n_banned, n);
}

static int setup(void **unused)
{
	(void)unused;
	n_banned = 0;
	memset(banned, 0, sizeof(banned));
	room = BANNED_MAX;
	table = 64;
	wrong = NULL;
	add_fails = lift_fails = shadow_fails = false;
	now_ns = 1000 * S;
	*said = 0;
	starved_from(0, false);
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	place_free(&place);
	return 0;
}

static void test_what_changes(void **unused)
{
	(void)unused;
	assert_int_equal(bring(KEYS("192.0.2.1", "2001:db8::1"), 100), 0);
	has(KEYS("192.0.2.1", "2001:db8::1"), 1100 * S);
	says("eth0: 2 banned, 0 lifted;");
	now_ns += 10 * S;
	assert_int_equal(bring(KEYS("192.0.2.1", "2001:db8::1"), 86),
			 0); /* less by 4 s: the same */
	says("");
	assert_int_equal(bring(KEYS("192.0.2.1"), 20), 0); /* sooner */
	has(KEYS("192.0.2.1"), 1030 * S);
	says("eth0: 1 banned, 2 lifted;");
	now_ns += 30 * S; /* it has ended: nothing is lifted, and nothing banned that has */
	n_banned = 0;
	assert_int_equal(bring(NO_KEYS, 0), 0);
	says("");
}

/* By hand, or by another tool: until then. */
static void ban_by_hand(const char *key, uint64_t until_ns)
{
	size_t at = find(key);

	assert_true(at < n_banned);
	banned[at].until_ns = until_ns;
}

/* What others ban for longer is not the bouncer's to lift, and is not counted. */
static void test_longer_by_another(void **unused)
{
	(void)unused;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.3"), 100), 0);
	ban_by_hand("192.0.2.1", 9000 * S);
	ban_by_hand("192.0.2.3", PACER_NEVER);
	*said = 0;
	assert_int_equal(bring(KEYS("192.0.2.3"), 20), 0); /* which ends sooner now */
	says("eth0: 1 banned, 1 lifted;");
	assert_int_equal(n_banned, 2);
	assert_int_equal(banned[find("192.0.2.1")].until_ns, 9000 * S);
	assert_true(banned[find("192.0.2.3")].until_ns == PACER_NEVER);
}

/*
 * A bouncer that begins anew may hear of an end that is sooner by what an answer is under way. So
 * may one that goes on, each time: the pacer has the first of them.
 */
static void test_ends_that_wander(void **unused)
{
	(void)unused;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	place_free(&place);
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 96), 0);
	has(KEYS("192.0.2.1", "192.0.2.2"), 1100 * S);
	assert_int_equal(bring(KEYS("192.0.2.2"), 96), 0);
	has(KEYS("192.0.2.2"), 1100 * S);
	assert_int_equal(bring(KEYS("192.0.2.2", "192.0.2.3"), 100), 0);
	assert_int_equal(bring(KEYS("192.0.2.2", "192.0.2.3"), 97), 0);
	assert_int_equal(bring(KEYS("192.0.2.2", "192.0.2.3"), 94), 0); /* sooner by 6 s in all */
	assert_int_equal(banned[find("192.0.2.3")].until_ns, 1094 * S);
	assert_int_equal(bring(NO_KEYS, 0), 0);
	has(NO_KEYS, 0);
}

/* A ban that ends between two looks at the clock is none. */
static void test_ended_meanwhile(void **unused)
{
	struct ban_pieces is = pieces_of(KEYS("192.0.2.1", "192.0.2.2"), 100);

	(void)unused;
	is.at[0].until_ns = now_ns;
	assert_int_equal(place_bring(&pacer, &place, &is, &error), 0);
	has(KEYS("192.0.2.2"), 1100 * S);
}

static void test_no_room(void **unused)
{
	(void)unused;
	room = 1;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.3"), 100), 0);
	says("eth0: 1 banned, 0 lifted;"
	     "eth0: there was no room for 2 of 3 bans: raise bans in the policy;");
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.3"), 100), 0);
	says(""); /* once */
	room = 8;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.3"), 100), 0);
	has(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.3"), 1100 * S);
	says("eth0: 2 banned, 0 lifted;");
}

/* It is known whether all is banned. */
static void test_what_it_lacks(void **unused)
{
	(void)unused;
	assert_false(place_lacks(&place));
	room = 1;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	assert_true(place_lacks(&place));
	room = BANNED_MAX;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	assert_false(place_lacks(&place));
	wrong = ".0/24";
	assert_int_equal(bring(KEYS("192.0.2.1", "198.51.100.0/24"), 100), 0);
	assert_true(place_lacks(&place));
	wrong = "::1";
	assert_int_equal(bring(KEYS("192.0.2.1", "2001:db8::1"), 100), 0);
	assert_true(place_lacks(&place));
	assert_int_equal(bring(KEYS("192.0.2.1"), 100), 0);
	assert_false(place_lacks(&place));
}

/* A table of another size is empty at first. */
static void test_another_table(void **unused)
{
	(void)unused;
	room = 1;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	room = BANNED_MAX;
	table = 128;
	n_banned = 0;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	has(KEYS("192.0.2.1", "192.0.2.2"), 1100 * S);
}

/* So is one of the same size, that came after another one. */
static void test_a_table_that_began_anew(void **unused)
{
	(void)unused;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	begun++;
	n_banned = 0;
	*said = 0;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	has(KEYS("192.0.2.1", "192.0.2.2"), 1100 * S);
	says("");					/* nothing else is decided */
	banned[find("192.0.2.1")] = banned[--n_banned]; /* by hand */
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	has(KEYS("192.0.2.2"), 1100 * S);
}

/* By hand, as by `ban del`. */
static void lift_by_hand(const char *key)
{
	banned[find(key)] = banned[n_banned - 1];
	banned[--n_banned].until_ns = 0;
}

/* Another program over the same state, as by `upgrade`, or while there was none to be seen. */
static void test_the_same_state(void **unused)
{
	(void)unused;
	pacer.prog_id = 1;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.3"), 100), 0);
	lift_by_hand("192.0.2.1");
	pacer.prog_id = 2;
	*said = 0;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	has(KEYS("192.0.2.2"), 1100 * S); /* it stays lifted, and what is decided no more goes */
	says("eth0: 0 banned, 1 lifted;");
}

/* Another state may have come from the one before, as by a shadow that is promoted: with its bans.
 */
static void test_another_state(void **unused)
{
	(void)unused;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.3"), 100), 0);
	pacer.control_id++;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.3"), 100), 0);
	has(KEYS("192.0.2.1", "192.0.2.3"), 1100 * S);
	pacer.control_id++; /* or empty, with a table of the same room */
	n_banned = 0;
	assert_int_equal(bring(KEYS("192.0.2.1"), 100), 0);
	has(KEYS("192.0.2.1"), 1100 * S);
}

/* And again before it could be told: of none is forgotten what it may have. */
static void test_states_one_after_the_other(void **unused)
{
	(void)unused;
	room = 2;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	pacer.control_id++;
	lift_fails = true;
	assert_int_equal(bring(KEYS("192.0.2.2", "192.0.2.3"), 100), -1);
	lift_fails = false;
	pacer.control_id++;
	assert_int_equal(bring(KEYS("192.0.2.3"), 100), 0);
	has(KEYS("192.0.2.3"), 1100 * S);
}

/* By a fleet's agent that begins later, or with a state that was saved before: until then. */
static void comes_back(const char *key, uint64_t until_ns)
{
	size_t at = find(key);

	assert_true(n_banned < BANNED_MAX);
	n_banned += at == n_banned;
	snprintf(banned[at].key, sizeof(banned[at].key), "%s", key);
	if (banned[at].until_ns < until_ns)
		banned[at].until_ns = until_ns;
}

static void another_state_of(const char *const *before, const char *const *keys)
{
	assert_int_equal(bring(before, 100), 0);
	pacer.control_id++;
	n_banned = 0;
	memset(banned, 0, sizeof(banned));
	assert_int_equal(bring(keys, 100), 0);
	*said = 0;
}

/* What is decided no more is lifted whenever it comes back, until its end. */
static void test_it_comes_back(void **unused)
{
	(void)unused;
	another_state_of(KEYS("192.0.2.1", "192.0.2.2", "2001:db8::1"), KEYS("192.0.2.2"));
	for (int times = 0; times < 3; times++) {
		now_ns += 30 * S;
		comes_back("192.0.2.1", 1102 * S); /* the store had it under way */
		comes_back("2001:db8::1", 1096 * S);
		assert_int_equal(bring(KEYS("192.0.2.2"), 100 - 30 * (times + 1ull)), 0);
		has(KEYS("192.0.2.2"), 1100 * S);
		says("eth0: 0 banned, 2 lifted;");
		assert_int_equal(bring(KEYS("192.0.2.2"), 100 - 30 * (times + 1ull)), 0);
		says("");
		pacer.control_id++; /* with all that it has */
		assert_int_equal(bring(KEYS("192.0.2.2"), 100 - 30 * (times + 1ull)), 0);
		*said = 0;
	}
	now_ns += 10 * S;
	looks = 0;
	assert_int_equal(bring(NO_KEYS, 0), 0);
	assert_int_equal(place.lifted.n, 0); /* they have ended */
	assert_int_equal(bring(NO_KEYS, 0), 0);
	assert_int_equal(looks, 0);
}

/* So is what ends sooner now, and that is banned again until then. */
static void test_it_comes_back_for_longer(void **unused)
{
	(void)unused;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 50), 0);
	*said = 0;
	for (int times = 0; times < 2; times++) {
		comes_back("192.0.2.1", 1100 * S);
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 50), 0);
		has(KEYS("192.0.2.1", "192.0.2.2"), 1050 * S);
		says("eth0: 1 banned, 1 lifted;");
	}
	assert_int_equal(bring(KEYS("192.0.2.2"), 50), 0);
	has(KEYS("192.0.2.2"), 1050 * S);
	comes_back("192.0.2.1", 1100 * S); /* the later end is what is remembered */
	assert_int_equal(bring(KEYS("192.0.2.2"), 50), 0);
	has(KEYS("192.0.2.2"), 1050 * S);
}

/* What somebody else bans since ends at another time, or is none of a source. */
static void test_banned_by_another_since(void **unused)
{
	static const uint64_t ends[] = {1094 * S,    1106 * S, 5000 * S,
					PACER_NEVER, 1100 * S, 1100 * S};

	(void)unused;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		setup(unused);
		another_state_of(KEYS("192.0.2.1"), NO_KEYS);
		comes_back("192.0.2.1", ends[i]);
		banned[0].rule = i == 4;
		banned[0].tool = i == 5;
		assert_int_equal(bring(NO_KEYS, 0), 0);
		has(KEYS("192.0.2.1"), ends[i]);
		says("");
		place_free(&place);
	}
}

/* Nor is what is decided told again then. */
static void test_banned_for_longer_since(void **unused)
{
	(void)unused;
	assert_int_equal(bring(KEYS("192.0.2.1"), 100), 0);
	assert_int_equal(bring(KEYS("192.0.2.1"), 50), 0);
	ban_by_hand("192.0.2.1", 9000 * S);
	*said = 0;
	assert_int_equal(bring(KEYS("192.0.2.1"), 50), 0);
	has(KEYS("192.0.2.1"), 9000 * S);
	says("");
}

/* What is decided anew is not taken for what was lifted. */
static void test_decided_again(void **unused)
{
	(void)unused;
	another_state_of(KEYS("192.0.2.1", "192.0.2.2"), NO_KEYS);
	assert_int_equal(bring(KEYS("192.0.2.1"), 100), 0);
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 103), 0);
	*said = 0;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 103), 0);
	says("");
	assert_int_equal(n_banned, 2);
}

/* Whatever fails meanwhile. */
static void test_it_comes_back_and_fails(void **unused)
{
	bool *const each[] = {&add_fails, &lift_fails, &shadow_fails};

	for (size_t i = 0; i < 3; i++) {
		setup(unused);
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
		assert_int_equal(bring(KEYS("192.0.2.1"), 50), 0);
		comes_back("192.0.2.1", 1100 * S);
		comes_back("192.0.2.2", 1100 * S);
		*each[i] = true;
		assert_int_equal(bring(KEYS("192.0.2.1"), 50), -1);
		*each[i] = false;
		assert_int_equal(bring(KEYS("192.0.2.1"), 50), 0);
		has(KEYS("192.0.2.1"), 1050 * S);
		comes_back("192.0.2.2", 1100 * S);
		assert_int_equal(bring(KEYS("192.0.2.1"), 50), 0);
		has(KEYS("192.0.2.1"), 1050 * S);
		place_free(&place);
	}
}

static void test_it_comes_back_without_memory(void **unused)
{
	int result = -1;

	for (uint32_t at = 1; result; at++) {
		setup(unused);
		another_state_of(KEYS("192.0.2.1", "192.0.2.2"), KEYS("192.0.2.2"));
		comes_back("192.0.2.1", 1100 * S);
		starved_from(at, false);
		result = bring(KEYS("192.0.2.2"), 100);
		starved_from(0, false);
		assert_int_equal(bring(KEYS("192.0.2.2"), 100), 0);
		has(KEYS("192.0.2.2"), 1100 * S);
		comes_back("192.0.2.1", 1100 * S);
		assert_int_equal(bring(KEYS("192.0.2.2"), 100), 0);
		has(KEYS("192.0.2.2"), 1100 * S);
		place_free(&place);
		assert_true(at < 100);
	}
}

/*
 * A trial's table has no room for what the one before has, which comes back: what is decided no
 * more meanwhile is lifted there, too.
 */
static void test_left_out_of_a_trial(void **unused)
{
	for (int later = 0; later < 2; later++) {
		setup(unused);
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
		n_banned = 1; /* the trial's */
		room = 1;
		table = 32;
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
		if (later)
			assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
		n_banned = 2; /* both tables are lifted from */
		*said = 0;
		assert_int_equal(bring(KEYS("192.0.2.1"), 100), 0);
		says("eth0: 0 banned, 1 lifted;");
		table = 64;
		room = BANNED_MAX;
		assert_int_equal(bring(KEYS("192.0.2.1"), 100), 0);
		has(KEYS("192.0.2.1"), 1100 * S);
		place_free(&place);
	}
}

/* What ends sooner meanwhile does so there, too. */
static void test_left_out_and_sooner(void **unused)
{
	(void)unused;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	n_banned = 1;
	room = 1;
	table = 32;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
	n_banned = 2;
	table = 64;
	room = BANNED_MAX;
	assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 50), 0);
	has(KEYS("192.0.2.1", "192.0.2.2"), 1050 * S);
}

/* What somebody lifted by hand stays so, while others find no room or are refused. */
static void test_lifted_by_hand(void **unused)
{
	for (int refused = 0; refused < 2; refused++) {
		setup(unused);
		room = 2;
		wrong = refused ? ".0/24" : NULL;
		assert_int_equal(
		    bring(KEYS("192.0.2.1", "192.0.2.2", refused ? "10.1.2.0/24" : "192.0.2.3"),
			  100),
		    0);
		has(KEYS("192.0.2.1", "192.0.2.2"), 1100 * S);
		banned[find("192.0.2.1")] = banned[--n_banned];
		room = refused ? 2 : 1;
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2",
					    refused ? "10.1.2.0/24" : "192.0.2.3", "192.0.2.4"),
				       100),
				 0);
		if (refused)
			has(KEYS("192.0.2.2", "192.0.2.4"), 1100 * S);
		else
			has(KEYS("192.0.2.2"), 1100 * S);
		room = BANNED_MAX;
		wrong = NULL;
		assert_int_equal(
		    bring(KEYS("192.0.2.2", refused ? "10.1.2.0/24" : "192.0.2.3", "192.0.2.4"),
			  100),
		    0);
		has(KEYS("192.0.2.2", refused ? "10.1.2.0/24" : "192.0.2.3", "192.0.2.4"),
		    1100 * S);
		place_free(&place);
	}
}

/* Each length that cannot be banned is said once, until it can. */
static void test_wrong_lengths(void **unused)
{
	(void)unused;
	wrong = ".0/";
	assert_int_equal(bring(KEYS("10.0.0.0/16", "192.0.2.0/24", "198.51.100.0/24"), 100), 0);
	says("eth0: 1 ban of this length is left out: 10.0.0.0/16: it is wrong;"
	     "eth0: 2 bans of this length are left out: 192.0.2.0/24: it is wrong;");
	assert_int_equal(bring(KEYS("10.0.0.0/16", "192.0.2.0/24", "198.51.100.0/24"), 100), 0);
	says("");
	wrong = ".0/16";
	assert_int_equal(bring(KEYS("10.0.0.0/16", "192.0.2.0/24"), 100), 0);
	says("eth0: 1 banned, 0 lifted;");
	wrong = ".0/";
	assert_int_equal(bring(KEYS("10.0.0.0/16", "192.0.2.0/24", "198.51.100.0/24"), 100), 0);
	says("eth0: 1 ban of this length is left out: 198.51.100.0/24: it is wrong;");
	assert_int_equal(bring(NO_KEYS, 100), 0);
	says("eth0: 0 banned, 1 lifted;");
	assert_int_equal(bring(KEYS("10.0.0.0/16"), 100), 0);
	says("eth0: 1 ban of this length is left out: 10.0.0.0/16: it is wrong;");
}

/* One length of one family cannot be banned, whatever room there is: the others are. */
static void test_wrong_length(void **unused)
{
	(void)unused;
	wrong = ".0/24";
	assert_int_equal(
	    bring(KEYS("192.0.2.0/24", "198.51.100.0/24", "192.0.2.1", "10.0.0.0/16", "2001::/32"),
		  100),
	    0);
	has(KEYS("192.0.2.1", "10.0.0.0/16", "2001::/32"), 1100 * S);
	says("eth0: 2 bans of this length are left out: 192.0.2.0/24: it is wrong;"
	     "eth0: 3 banned, 0 lifted;");
	wrong = "::/32";
	assert_int_equal(bring(KEYS("192.0.2.1", "2001::/32"), 100), 0);
	says("eth0: 0 banned, 1 lifted;");
	wrong = NULL;
	assert_int_equal(bring(KEYS("192.0.2.1", "2001::/32"), 100), 0);
	has(KEYS("192.0.2.1", "2001::/32"), 1100 * S);
	wrong = "."; /* and nothing is left that can be banned */
	assert_int_equal(bring(KEYS("192.0.2.7"), 100), 0);
	has(NO_KEYS, 0);
}

/* Of two prefixes of one length the one that can be banned is, also beside others that were there
 * before. */
static void test_wrong_family(void **unused)
{
	(void)unused;
	wrong = "2001::/32";
	assert_int_equal(bring(KEYS("10.0.0.0/16"), 100), 0);
	assert_int_equal(bring(KEYS("10.0.0.0/16", "192.0.2.1", "2001::/32"), 100), 0);
	has(KEYS("10.0.0.0/16", "192.0.2.1"), 1100 * S);
	assert_int_equal(bring(KEYS("10.0.0.0/16", "192.0.2.1", "2001::/32"), 100), 0);
	has(KEYS("10.0.0.0/16", "192.0.2.1"), 1100 * S);
	wrong = NULL;
	assert_int_equal(bring(KEYS("10.0.0.0/16", "192.0.2.1", "2001::/32"), 100), 0);
	has(KEYS("10.0.0.0/16", "192.0.2.1", "2001::/32"), 1100 * S);
}

/* Whatever fails, the next that does not has all that is decided banned, and nothing else. */
static void test_fails(void **unused)
{
	bool *const each[] = {&add_fails, &lift_fails, &shadow_fails};

	for (size_t i = 0; i < 3; i++) {
		setup(unused);
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2"), 100), 0);
		*each[i] = true;
		assert_int_equal(bring(KEYS("192.0.2.2", "192.0.2.3"), 100), -1);
		assert_non_null(strstr(error.text, "cannot"));
		*each[i] = false;
		assert_int_equal(bring(KEYS("192.0.2.4"), 100), 0);
		has(KEYS("192.0.2.4"), 1100 * S);
		place_free(&place);
	}
}

/* What somebody has lifted by hand stays lifted: after a failure, no more is told than failed. */
static void test_lifted_by_hand_stays_lifted(void **unused)
{
	bool *const each[] = {&add_fails, &lift_fails, &shadow_fails};

	for (size_t i = 0; i < 3; i++) {
		setup(unused);
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.9"), 100), 0);
		banned[find("192.0.2.2")] = banned[--n_banned];
		*each[i] = true;
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.3"), 100), -1);
		*each[i] = false;
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.3"), 100), 0);
		has(KEYS("192.0.2.1", "192.0.2.3"), 1100 * S);
		place_free(&place);
	}
}

/* state: another one is there when memory runs out. */
static void goes_on_without_memory(void **unused, bool state)
{
	int result = -1;

	for (uint32_t at = 1; result; at++) {
		setup(unused);
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.9"), 100), 0);
		n_banned = room = 2; /* the last is left out of a trial's table */
		table = 32;
		assert_int_equal(bring(KEYS("192.0.2.1", "192.0.2.2", "192.0.2.9"), 100), 0);
		n_banned = 3;
		room = BANNED_MAX;
		pacer.control_id += state;
		starved_from(at, false);
		*error.text = 0;
		result = bring(KEYS("192.0.2.2", "192.0.2.3"), 100);
		if (result)
			assert_string_equal(error.text, "eth0: no memory");
		starved_from(0, false);
		assert_int_equal(bring(KEYS("192.0.2.3", "192.0.2.4"), 100), 0);
		has(KEYS("192.0.2.3", "192.0.2.4"), 1100 * S);
		place_free(&place);
		assert_true(at < 100);
	}
}

static void test_without_memory(void **unused)
{
	goes_on_without_memory(unused, false);
	goes_on_without_memory(unused, true);
	/* And where that it failed cannot be kept either. */
	setup(unused);
	assert_int_equal(bring(KEYS("192.0.2.1"), 100), 0);
	starved_from(3, true);
	assert_int_equal(bring(KEYS("192.0.2.2"), 100), -1);
	starved_from(0, false);
	assert_int_equal(bring(KEYS("192.0.2.2"), 100), 0);
	has(KEYS("192.0.2.2"), 1100 * S);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_what_changes),
	    CASE(test_longer_by_another),
	    CASE(test_ends_that_wander),
	    CASE(test_ended_meanwhile),
	    CASE(test_no_room),
	    CASE(test_what_it_lacks),
	    CASE(test_wrong_length),
	    CASE(test_another_table),
	    CASE(test_a_table_that_began_anew),
	    CASE(test_the_same_state),
	    CASE(test_another_state),
	    CASE(test_states_one_after_the_other),
	    CASE(test_lifted_by_hand),
	    CASE(test_wrong_lengths),
	    CASE(test_wrong_family),
	    CASE(test_fails),
	    CASE(test_lifted_by_hand_stays_lifted),
	    CASE(test_without_memory),
	    CASE(test_it_comes_back),
	    CASE(test_it_comes_back_for_longer),
	    CASE(test_banned_by_another_since),
	    CASE(test_banned_for_longer_since),
	    CASE(test_decided_again),
	    CASE(test_it_comes_back_and_fails),
	    CASE(test_it_comes_back_without_memory),
	    CASE(test_left_out_of_a_trial),
	    CASE(test_left_out_and_sooner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
