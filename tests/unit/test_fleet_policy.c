/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What another policy changes for a fleet's agent that runs. The limits are this test's, and so is
 * what packets are judged by.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/fleet_policy.h"
#include "plan/shares.h"
#include "live/host.h"

#define S 1000000000ull

static struct fleet_limit limits[PACER_SHARES]; /* of the policy in force */
static size_t n_limits;
static uint64_t now_ns;
static struct fleet_held held; /* of each */
static struct fleet_divided of;
static struct fleet_member m;
static struct policy_error error;

size_t fleet_limits(const struct attached *a, struct fleet_limit *into)
{
	(void)a;
	memcpy(into, limits, n_limits * sizeof(*into));
	return n_limits;
}

struct fleet_held fleet_held(const struct attached *a, const struct fleet_limit *limit)
{
	(void)a;
	(void)limit;
	return held;
}

static size_t n_told; /* places that were told, and what */
static uint8_t told_at[8];
static uint64_t told_units, told_of;
static int hold_fails; /* the place where it does */
static size_t n_said;  /* places that were told what the store said */

int fleet_hold(const struct attached *a, const struct fleet_limit *limit,
	       const struct fleet_held *to, struct policy_error *e)
{
	(void)a;
	if (limit->at == hold_fails)
		return policy_fail(e, 0, "no");
	told_at[n_told++] = limit->at;
	told_units = to->units;
	told_of = to->member;
	return 0;
}

static uint64_t stays[PACER_SHARES]; /* what places keep */
static bool empties, grace_fails;
static size_t graces;

bool fleet_clear(const struct attached *a, const uint64_t id[PACER_SHARES])
{
	(void)a;
	memcpy(stays, id, sizeof(stays));
	return empties;
}

int grace(const char *ifname, struct policy_error *e)
{
	(void)ifname;
	graces++;
	return grace_fails ? policy_fail(e, 0, "no") : 0;
}

void fleet_say(const struct attached *a, const struct fleet_limit *limit, uint32_t members,
	       uint64_t answered_ns)
{
	(void)a;
	(void)limit;
	assert_true(members == 2 && answered_ns == 3);
	n_said++;
}

bool fleet_same_key(const struct fleet_limit *limit, const struct pacer_packet *a,
		    const struct pacer_packet *b)
{
	(void)limit;
	return a == b;
}

uint64_t host_now_ns(void)
{
	return now_ns;
}

/* Any difference alone counts, and no two of them make up for each other. Files are of no fleet. */
static void test_another_fleet(void **unused)
{
	static const struct policy_fleet was = {
	    .store = {"http://b"}, .n_stores = 1, .name = "b", .ca = "b", .cert = "b", .key = "b"};
	static const char *const other[] = {"a", "c"};

	(void)unused;
	assert_false(fleet_is_another(&was, &was));
	for (int which = 1; which < 1 << 5; which++)
		for (int signs = 0; signs < 1 << 5; signs++) {
			bool files = which >> 2, name_or_store = which & 3;
			struct policy_fleet is = was;
			char *const of[] = {&is.store[0][7], is.name, is.ca, is.cert, is.key};

			for (int i = 0; i < 5; i++)
				if (which >> i & 1)
					of[i][0] = other[signs >> i & 1][0];
			assert_int_equal(fleet_is_another(&was, &is), name_or_store);
			assert_int_equal(fleet_is_called_otherwise(&was, &is), files);
		}
}

static void test_the_same_fleet(void **unused)
{
	struct policy_fleet was = {.store = {"http://b"}, .n_stores = 1, .name = "b"}, is = was;

	(void)unused;
	is.line = 7;
	is.local = is.bans = true;
	assert_false(fleet_is_another(&was, &is));
}

static const struct policy_fleet edge = {
    .on = true, .store = {"http://b"}, .n_stores = 1, .name = "edge", .local = true};

static struct fleet_limit window(uint64_t id, uint8_t at, uint32_t units, bool draining)
{
	struct fleet_limit limit = {
	    .id = id << 8 ^ shares_fleet(&edge), .at = at, .draining = draining};

	limit.limiter.kind = PACER_LIMITER_WINDOW;
	limit.limiter.window.limit = units;
	limit.limiter.share_ns = S;
	return limit;
}

static void divide(void)
{
	assert_int_equal(fleet_divide(&of, &m, NULL, &edge, &error), 0);
	assert_int_equal(m.shares, of.n);
}

/* Has the member units of it in the store? */
static void takes_part(struct fleet_share *s, bool does)
{
	s->read = true;
	memset(&s->record, 0, sizeof(s->record));
	if (does)
		fleet_add_slot(&s->record, m.id)->session = m.session;
}

static int begin(void **unused)
{
	(void)unused;
	memset(&of, 0, sizeof(of));
	free(m.share);
	m = (struct fleet_member){.id = 1, .session = 7};
	held = (struct fleet_held){.is = false};
	now_ns = 100 * S;
	limits[0] = window(1, 5, 160, false);
	n_limits = 1;
	divide();
	takes_part(&m.share[0], true);
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	free(m.share);
	return 0;
}

/* What is known of a limit stays, and what it is now counts. */
static void test_another_value(void **unused)
{
	(void)unused;
	assert_int_equal(m.share[0].params.limit, 160);
	assert_int_equal(m.share[0].params.reserve, 10);
	assert_int_equal(m.share[0].want[0], 160);
	m.share[0].want[0] = 40;
	of.demand[0].want = 40;
	limits[1] = limits[0];
	limits[0] = window(2, 6, 80, false);
	n_limits = 2;
	divide();
	assert_false(m.share[0].read);
	assert_true(m.share[1].read);
	assert_int_equal(m.share[1].want[0], 40);
	assert_int_equal(of.demand[1].want, 40);
	assert_int_equal(of.id[1], 1 << 8);
	limits[1] = window(1, 5, 320, false);
	divide();
	assert_true(m.share[1].read);
	assert_int_equal(m.share[1].params.limit, 320);
	assert_int_equal(m.share[1].want[0], 320);
	now_ns += 1000 * S;
	assert_false(fleet_is_over(&of, &m, NULL));
}

/* A limit that drains has its share; one that has drained gives it to others, and is forgotten. */
static void test_a_limit_that_is_gone(void **unused)
{
	(void)unused;
	limits[0] = window(2, 6, 80, false);
	limits[1] = window(1, 5, 160, true);
	n_limits = 2;
	divide();
	now_ns += 10 * S;
	assert_false(fleet_is_over(&of, &m, NULL));
	assert_false(m.share[1].leaving);
	n_limits = 1;				    /* it has drained */
	assert_false(fleet_is_over(&of, &m, NULL)); /* which is looked at once a second */
	now_ns += S;
	assert_true(fleet_is_over(&of, &m, NULL));
	divide();
	assert_int_equal(of.n, 2);
	assert_int_equal(of.past, 1);
	assert_true(m.share[1].leaving && m.share[1].read);
	assert_int_equal(of.id[1], 1 << 8);
	now_ns += S;
	assert_false(fleet_is_over(&of, &m, NULL));
	divide(); /* another policy meanwhile */
	assert_true(m.share[1].leaving && m.share[1].read);
	takes_part(&m.share[1], false);
	now_ns += S;
	assert_true(fleet_is_over(&of, &m, NULL));
	divide();
	assert_int_equal(of.n, 1);
	assert_int_equal(of.past, 0);
	now_ns += 1000 * S;
	assert_false(fleet_is_over(&of, &m, NULL));
}

/* A value of another size is in the same record: one share writes it, and both are told. */
static void test_another_unit(void **unused)
{
	const struct fleet_picture p = {.value = {70}, .floor = 10};

	(void)unused;
	limits[2] = window(1, 5, 160, true);
	limits[1] = window(3, 7, 160, false);
	limits[0] = window(1, 6, 80, false);
	limits[0].id |= 3;
	n_limits = 3;
	divide();
	assert_int_equal(of.n, 2);
	assert_int_equal(of.twins, 1);
	assert_int_equal(of.past, 0);
	assert_int_equal(of.id[0], 1 << 8);
	assert_int_equal(m.share[0].params.limit, 80);
	assert_false(m.share[0].read || m.share[0].leaving);
	n_told = 0;
	hold_fails = -1;
	m.id = 77;
	divide();
	assert_int_equal(fleet_tell(&of, NULL, 1, &p, &error), 0);
	assert_int_equal(n_told, 1);
	assert_int_equal(told_of, 77); /* whose reserve it is */
	assert_int_equal(told_at[0], 7);
	assert_int_equal(fleet_tell(&of, NULL, 0, &p, &error), 0);
	assert_int_equal(n_told, 3);
	assert_int_equal(told_at[1], 6);
	assert_int_equal(told_at[2], 5);
	assert_int_equal(told_units, 70);
	n_said = 0;
	fleet_say_all(&of, NULL, 2, 3);
	assert_int_equal(n_said, 3); /* of the twin, too */
	for (hold_fails = 5; hold_fails <= 6; hold_fails++)
		assert_int_equal(fleet_tell(&of, NULL, 0, &p, &error), -1);
	now_ns += S;
	assert_false(fleet_is_over(&of, &m, NULL));
	n_limits = 2; /* it has drained: nothing is left, as the other has it */
	now_ns += S;
	assert_true(fleet_is_over(&of, &m, NULL));
	divide();
	assert_int_equal(of.n, 2);
	assert_int_equal(of.twins, 0);
	assert_int_equal(of.past, 0);
	now_ns += S;
	assert_false(fleet_is_over(&of, &m, NULL));
	limits[0] = window(1, 5, 160, false); /* back at once */
	divide();
	assert_int_equal(of.n, 2);
	assert_int_equal(of.past, 0);
}

/* It comes back before its share was left: as where an agent begins on a datapath at work. */
static void test_a_limit_that_comes_back(void **unused)
{
	(void)unused;
	limits[0] = window(2, 6, 80, false);
	divide();
	assert_true(m.share[1].leaving);
	limits[1] = window(1, 5, 160, false);
	n_limits = 2;
	held = (struct fleet_held){.is = true, .units = 70, .floor = 10, .until_ns = 103 * S};
	held.lane[1].units = 30; /* of no key */
	held.lane[2].is = true;
	held.lane[2].units = 90;
	divide();
	assert_int_equal(of.n, 2);
	assert_int_equal(of.past, 0);
	assert_false(m.share[1].leaving || m.share[1].read);
	assert_int_equal(m.share[1].applied.value[0], 70);
	assert_int_equal(m.share[1].applied.until_ns, 103 * S);
	assert_int_equal(m.share[1].floor, 10);
	assert_int_equal(m.share[1].want[0], 160);
}

/* What a key has for itself may be less than the rest: no more than that is told to be had. */
static void test_a_limit_that_comes_back_with_keys(void **unused)
{
	(void)unused;
	limits[0] = window(2, 6, 80, false);
	divide();
	limits[1] = window(1, 5, 160, false);
	n_limits = 2;
	held = (struct fleet_held){.is = true, .units = 70, .until_ns = 103 * S};
	held.lane[0].is = held.lane[3].is = true;
	held.lane[0].units = 60;
	held.lane[3].units = 20;
	divide();
	assert_int_equal(m.share[1].applied.value[0], 20);
	assert_int_equal(m.share[1].applied.value[FLEET_LANES_MAX - 1], 20);
}

/* What was not read yet is not known to be left; what cannot be read is given up. */
static void test_a_limit_that_cannot_be_left(void **unused)
{
	(void)unused;
	n_limits = 0;
	m.share[0].read = false;
	divide();
	assert_true(m.share[0].leaving);
	m.share[0].trouble = FLEET_CROWDED;
	now_ns += S;
	assert_false(fleet_is_over(&of, &m, NULL));
	m.share[0].trouble = FLEET_STRANGE;
	now_ns += S;
	assert_true(fleet_is_over(&of, &m, NULL));
	divide();
	assert_int_equal(of.n, 0);
}

/* How many places keep their shares. */
static size_t n_stay(void)
{
	size_t n = 0;

	for (size_t i = 0; i < PACER_SHARES; i++)
		n += stays[i] != 0;
	return n;
}

/*
 * A place keeps the share of a limit that is there, drains there, or is left; and of one that is
 * there before one that is left. Those that it had elsewhere are emptied.
 */
static void test_places_of_others_are_emptied(void **unused)
{
	const uint64_t id = limits[0].id;

	(void)unused;
	assert_int_equal(stays[5], id);
	assert_int_equal(n_stay(), 1);
	limits[0].at = 6; /* it moves */
	divide();
	assert_int_equal(stays[6], id);
	assert_int_equal(n_stay(), 1);
	takes_part(&m.share[0], true);
	limits[1] = window(1, 6, 160, true); /* it drains beside its twin */
	limits[0] = window(1, 7, 80, false);
	limits[0].id |= 3;
	n_limits = 2;
	divide();
	assert_int_equal(of.twins, 1);
	assert_int_equal(stays[6], id);
	assert_int_equal(stays[7], limits[0].id);
	assert_int_equal(n_stay(), 2);
	n_limits = 1; /* it has drained */
	divide();
	assert_int_equal(stays[7], limits[0].id);
	assert_int_equal(n_stay(), 1);
	takes_part(&m.share[0], true);
	n_limits = 0;
	divide();
	assert_int_equal(of.past, 1);
	assert_int_equal(stays[7], limits[0].id);
	limits[0] = window(2, 7, 80, false); /* another takes its place */
	n_limits = 1;
	divide();
	assert_int_equal(of.past, 1);
	assert_int_equal(stays[7], limits[0].id);
	assert_int_equal(n_stay(), 1);
	limits[0] = window(2, 7, 80, true); /* the place is one's that is in force */
	limits[1] = limits[0];
	limits[0] = window(3, 7, 80, false);
	n_limits = 2;
	divide();
	assert_int_equal(stays[7], limits[0].id);
}

/* What drains at the place of another is told nothing there: the other has it. */
static void test_a_place_of_two(void **unused)
{
	const struct fleet_picture p = {.value = {70}, .floor = 10};

	(void)unused;
	limits[1] = window(2, 5, 80, true);
	limits[2] = window(3, 7, 80, true);
	limits[3] = window(1, 5, 80, true); /* a twin */
	limits[3].id |= 3;
	n_limits = 4;
	divide();
	assert_int_equal(of.twins, 1);
	assert_int_equal(stays[5], limits[0].id);
	n_told = 0;
	hold_fails = -1;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(fleet_tell(&of, NULL, i, &p, &error), 0);
	assert_int_equal(n_told, 2);
	assert_int_equal(told_at[0], 5);
	assert_int_equal(told_at[1], 7);
}

/* Packets from before are waited for once, however often places are emptied until then. */
static void test_packets_of_before_are_waited_for(void **unused)
{
	const struct attached a = {.ifname = "none"};

	(void)unused;
	graces = 0;
	assert_int_equal(fleet_settle(&of, &a, &error), 0);
	assert_int_equal(graces, 0);
	empties = true;
	divide();
	empties = false;
	divide();
	assert_int_equal(graces, 0);
	grace_fails = true;
	assert_int_equal(fleet_settle(&of, &a, &error), -1);
	grace_fails = false;
	assert_int_equal(fleet_settle(&of, &a, &error), 0);
	assert_int_equal(fleet_settle(&of, &a, &error), 0);
	assert_int_equal(graces, 2);
}

/* At the agent's end no packet has anything to use, whatever its limit's share has come to. */
static void test_nothing_is_told_to_all(void **unused)
{
	(void)unused;
	limits[1] = window(1, 5, 160, true);
	limits[0] = window(1, 6, 80, false);
	limits[0].id |= 3;
	n_limits = 2;
	divide();
	memset(stays, 0, sizeof(stays));
	n_told = 0;
	hold_fails = -1;
	assert_int_equal(fleet_tell_nothing(&of, NULL, &error), 0);
	assert_int_equal(n_told, 0); /* they have none */
	assert_int_equal(n_stay(), 2);
	held = (struct fleet_held){.is = true, .units = 70, .floor = 10, .until_ns = 103 * S};
	told_units = 1;
	assert_int_equal(fleet_tell_nothing(&of, NULL, &error), 0);
	assert_int_equal(n_told, 2);
	assert_int_equal(told_at[0], 6);
	assert_int_equal(told_at[1], 5);
	assert_int_equal(told_units, 0);
	for (hold_fails = 5; hold_fails <= 6; hold_fails++) {
		n_told = 0;
		assert_int_equal(fleet_tell_nothing(&of, NULL, &error), -1);
		assert_int_equal(n_told, 1); /* the other all the same */
	}
	hold_fails = -1;
}

/* Units of a limit that the policy has not: its share is left, as of one that it has no more. */
static void test_units_of_before_are_given_back(void **unused)
{
	const struct talk_lost lost = {3 << 8, 2 * S}, odd = {3 << 8 | 1, 2 * S};

	(void)unused;
	assert_false(fleet_give_back(&of, &m, &edge, &odd));
	m.went_back = true;
	assert_false(fleet_give_back(&of, &m, &edge, &lost));
	m.went_back = false;
	assert_true(fleet_give_back(&of, &m, &edge, &lost));
	assert_int_equal(of.n, 2);
	assert_int_equal(m.shares, 2);
	assert_int_equal(of.past, 1);
	assert_int_equal(of.id[1], lost.id);
	assert_true(m.share[0].read && m.share[1].leaving && !m.share[1].read);
	assert_int_equal(m.share[1].params.limit, FLEET_UNITS_MAX);
	assert_int_equal(m.share[1].params.memory_ns, 2 * S);
	assert_int_equal(m.share[1].params.reserve, 0);
	assert_int_not_equal(of.look_ns, UINT64_MAX);
	assert_false(fleet_give_back(&of, &m, &edge, &lost)); /* it is known */
	divide();					      /* another policy meanwhile */
	assert_int_equal(of.past, 1);
	assert_int_equal(of.id[1], lost.id);
	assert_int_equal(n_stay(), 2); /* its own, and one where none is */
	takes_part(&m.share[1], true);
	m.share[1].record.slot[0].cell[0].held = 30;
	now_ns += S;
	assert_false(fleet_is_over(&of, &m, NULL));
	takes_part(&m.share[1], false);
	now_ns += S;
	assert_true(fleet_is_over(&of, &m, NULL));
	divide();
	assert_int_equal(of.n, 1);
	limits[1] = window(3, 9, 60, false);
	n_limits = 2;
	assert_true(fleet_give_back(&of, &m, &edge, &lost));
	divide(); /* the policy has it again */
	assert_int_equal(of.n, 2);
	assert_int_equal(of.past, 0);
	assert_false(m.share[1].leaving);
}

/* Beyond the room for those that are left, they are left one after the other. */
static void test_no_room_for_units_of_before(void **unused)
{
	const struct talk_lost lost = {3 << 8, 2 * S};

	(void)unused;
	for (int k = 1; k <= 2; k++) {
		for (n_limits = 0; n_limits < PACER_SHARES; n_limits++)
			limits[n_limits] =
			    window(k * 1000 + n_limits, (uint8_t)n_limits, 160, false);
		divide();
	}
	assert_int_equal(of.n, FLEET_DIVIDED);
	assert_false(fleet_give_back(&of, &m, &edge, &lost));
	assert_int_equal(of.n, FLEET_DIVIDED);
}

static void all_limits(uint64_t id)
{
	for (n_limits = 0; n_limits < PACER_SHARES; n_limits++)
		limits[n_limits] = window(id + n_limits, (uint8_t)n_limits, 160, false);
	divide();
}

/* Of more past ones than there is room for, those that have been so for longer are forgotten. */
static void test_many_that_are_gone(void **unused)
{
	(void)unused;
	all_limits(1000);
	assert_int_equal(of.past, 1);
	all_limits(2000);
	assert_int_equal(of.n, FLEET_DIVIDED);
	assert_int_equal(of.past, PACER_SHARES);
	for (size_t i = 0; i < PACER_SHARES; i++) {
		assert_int_equal(of.id[i], (2000 + i) << 8);
		assert_false(m.share[i].leaving);
		assert_int_equal(of.id[PACER_SHARES + i], (1000 + i) << 8);
		assert_true(m.share[PACER_SHARES + i].leaving);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_another_fleet),
	    cmocka_unit_test(test_the_same_fleet),
	    cmocka_unit_test_setup_teardown(test_another_value, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_a_limit_that_is_gone, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_another_unit, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_a_limit_that_comes_back, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_a_limit_that_comes_back_with_keys, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_a_limit_that_cannot_be_left, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_places_of_others_are_emptied, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_a_place_of_two, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_packets_of_before_are_waited_for, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_nothing_is_told_to_all, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_units_of_before_are_given_back, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_no_room_for_units_of_before, begin, NULL),
	    cmocka_unit_test_setup_teardown(test_many_that_are_gone, begin, NULL),
	};

	return cmocka_run_group_tests_name("fleet_policy", tests, NULL, end);
}
