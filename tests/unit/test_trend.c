/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters over time, from readings that are made up: what grew, over what span, for which rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "live/trend.h"

#define SECOND 1000000000ull

static struct trend trend;
static struct reading reading;

static void rules(const char *names)
{
	char text[512] = "rules: [", one[96];
	struct policy_error error = {0};

	for (; *names; names++) {
		snprintf(one, sizeof(one), "{name: %c, limits: [{key: src, gap: 1ms}]},", *names);
		strcat(text, one);
	}
	strcat(text, "]");
	policy_free(reading.policy);
	reading.policy = policy_parse(text, strlen(text), &error);
	if (!reading.policy)
		fail_msg("%s", error.text);
}

/* A reading at that time, of so many packets of 100 bytes each: of no rule, and of each rule. */
static void take(uint64_t at_ns, const uint64_t *packets)
{
	reading.now_ns = at_ns;
	for (size_t i = 0; i <= reading.policy->n_rules; i++) {
		struct pacer_counters *c = i ? &reading.rule[i - 1] : &reading.none;

		memset(c, 0, sizeof(*c));
		c->by[i ? PACER_DENY_GAP : PACER_NO_RULE] =
		    (struct pacer_count){packets[i], 100 * packets[i]};
		c->events[PACER_BANNED] = packets[i] / 10;
	}
	assert_int_equal(trend_add(&trend, &reading), 0);
}

#define TAKE(at_ns, ...) take(at_ns, (const uint64_t[]){__VA_ARGS__})

static uint64_t gaps(const struct trend_grown *g)
{
	return g->by.by[PACER_DENY_GAP].packets;
}

static int begin(void **unused)
{
	(void)unused;
	reading.control_id = 7;
	rules("ab");
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	trend_free(&trend);
	policy_free(reading.policy);
	reading = (struct reading){0};
	return 0;
}

static void one_reading_has_no_rate(void **unused)
{
	struct trend_grown g;

	(void)unused;
	assert_int_equal(trend_over(&trend, TREND_ALL, SECOND).span_ns, 0);
	TAKE(SECOND, 1, 2, 3);
	g = trend_step(&trend, 0, 0);
	assert_int_equal(g.span_ns, 0);
	assert_int_equal(trend_over(&trend, TREND_ALL, 60 * SECOND).span_ns, 0);
	assert_true(trend_rate(&g, 5) == 0);
}

static void a_rate_is_of_what_was_read(void **unused)
{
	struct trend_grown g;

	(void)unused;
	TAKE(10 * SECOND, 1, 20, 300);
	TAKE(12 * SECOND, 2, 24, 310);
	TAKE(13 * SECOND, 2, 25, 340);
	g = trend_step(&trend, 1, 0);
	assert_int_equal(g.span_ns, SECOND);
	assert_int_equal(gaps(&g), 30);
	assert_int_equal(g.by.by[PACER_DENY_GAP].bytes, 3000);
	assert_int_equal(g.by.events[PACER_BANNED], 3);
	g = trend_step(&trend, 1, 1);
	assert_int_equal(g.span_ns, 2 * SECOND);
	assert_true(trend_rate(&g, gaps(&g)) == 5);
	assert_int_equal(trend_step(&trend, 1, 2).span_ns, 0);
	g = trend_over(&trend, TREND_ALL, 60 * SECOND);
	assert_int_equal(g.span_ns, 3 * SECOND);
	assert_int_equal(gaps(&g), 45);
	assert_int_equal(g.by.by[PACER_NO_RULE].packets, 1);
	assert_int_equal(trend_over(&trend, 2, 60 * SECOND).by.by[PACER_NO_RULE].packets, 1);
}

/* Never more than was asked for, but for one step. */
static void a_span_is_not_longer_than_asked(void **unused)
{
	(void)unused;
	for (uint64_t i = 1; i <= 5; i++)
		TAKE(i * SECOND, 0, i, 0);
	assert_int_equal(trend_over(&trend, 0, 3 * SECOND).span_ns, 3 * SECOND);
	assert_int_equal(trend_over(&trend, 0, 3 * SECOND - 1).span_ns, 2 * SECOND);
	assert_int_equal(trend_over(&trend, 0, 1).span_ns, SECOND);
}

/* By its name, wherever another policy puts it; what that brings begins then. */
static void a_rule_is_followed(void **unused)
{
	struct trend_grown g;

	(void)unused;
	TAKE(1 * SECOND, 0, 10, 100);
	TAKE(2 * SECOND, 0, 11, 107);
	rules("xba");
	TAKE(3 * SECOND, 0, 1000, 120, 12);
	g = trend_step(&trend, 1, 0);
	assert_int_equal(gaps(&g), 13);
	g = trend_over(&trend, 2, 60 * SECOND);
	assert_int_equal(gaps(&g), 2);
	assert_int_equal(g.span_ns, 2 * SECOND);
	assert_int_equal(trend_step(&trend, 0, 0).span_ns, 0);
	TAKE(4 * SECOND, 0, 1004, 120, 12);
	g = trend_over(&trend, 0, 60 * SECOND);
	assert_int_equal(gaps(&g), 4);
	assert_int_equal(g.span_ns, SECOND);
	g = trend_over(&trend, TREND_ALL, 60 * SECOND);
	assert_int_equal(gaps(&g), 4 + 20 + 2);
	rules("b");
	TAKE(5 * SECOND, 0, 121);
	assert_int_equal(trend.rows, 2);
	g = trend_over(&trend, 0, 60 * SECOND);
	assert_int_equal(gaps(&g), 21);
}

static void less_than_before_begins_anew(void **unused)
{
	(void)unused;
	TAKE(1 * SECOND, 5, 10, 100);
	TAKE(2 * SECOND, 5, 3, 101);
	assert_int_equal(trend_step(&trend, 0, 0).span_ns, 0);
	assert_int_equal(trend_step(&trend, 1, 0).span_ns, SECOND);
	TAKE(3 * SECOND, 5, 8, 101);
	assert_int_equal(trend_over(&trend, 0, 60 * SECOND).span_ns, SECOND);
	assert_int_equal(trend_over(&trend, 1, 60 * SECOND).span_ns, 2 * SECOND);
}

/* Fewer bytes alone, or fewer events, are less, too. */
static void anything_less_begins_anew(void **unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		TAKE(1 * SECOND, 5, 10, 100);
		reading.now_ns = 2 * SECOND;
		if (i)
			reading.rule[1].events[PACER_BANNED]--;
		else
			reading.rule[1].by[PACER_DENY_GAP].bytes--;
		assert_int_equal(trend_add(&trend, &reading), 0);
		assert_int_equal(trend_step(&trend, 0, 0).span_ns, SECOND);
		assert_int_equal(trend_step(&trend, 1, 0).span_ns, 0);
		trend_free(&trend);
	}
}

/* A reading that is not later than the last has no span to it. */
static void a_time_that_stands_begins_anew(void **unused)
{
	(void)unused;
	TAKE(2 * SECOND, 5, 10, 100);
	TAKE(2 * SECOND, 6, 11, 101);
	assert_int_equal(trend_kept(&trend), 1);
	TAKE(1 * SECOND, 7, 12, 102);
	assert_int_equal(trend_kept(&trend), 1);
	TAKE(3 * SECOND, 8, 13, 103);
	assert_int_equal(trend_over(&trend, TREND_ALL, 60 * SECOND).span_ns, 2 * SECOND);
}

/* All of another pacer is its own, also where it has counted more. */
static void another_pacer_begins_anew(void **unused)
{
	(void)unused;
	TAKE(1 * SECOND, 5, 10, 100);
	reading.control_id = 8;
	TAKE(2 * SECOND, 6, 11, 101);
	assert_int_equal(trend_kept(&trend), 1);
	assert_int_equal(trend_over(&trend, TREND_ALL, 60 * SECOND).span_ns, 0);
	TAKE(3 * SECOND, 6, 12, 101);
	assert_int_equal(trend_over(&trend, TREND_ALL, 60 * SECOND).span_ns, SECOND);
}

static void the_ring_turns(void **unused)
{
	struct trend_grown g;

	(void)unused;
	for (uint64_t i = 1; i <= 3 * TREND_POINTS + 7; i++)
		TAKE(i * SECOND, 0, i * i, 0);
	assert_int_equal(trend_kept(&trend), TREND_POINTS);
	for (uint64_t ago = 0; ago + 1 < TREND_POINTS; ago++) {
		uint64_t i = 3 * TREND_POINTS + 7 - ago;

		g = trend_step(&trend, 0, ago);
		assert_int_equal(gaps(&g), i * i - (i - 1) * (i - 1));
	}
	assert_int_equal(trend_step(&trend, 0, TREND_POINTS - 1).span_ns, 0);
	g = trend_over(&trend, 0, 10000 * SECOND);
	assert_int_equal(g.span_ns, (TREND_POINTS - 1) * SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(one_reading_has_no_rate, begin, end),
	    cmocka_unit_test_setup_teardown(a_rate_is_of_what_was_read, begin, end),
	    cmocka_unit_test_setup_teardown(a_span_is_not_longer_than_asked, begin, end),
	    cmocka_unit_test_setup_teardown(a_rule_is_followed, begin, end),
	    cmocka_unit_test_setup_teardown(less_than_before_begins_anew, begin, end),
	    cmocka_unit_test_setup_teardown(another_pacer_begins_anew, begin, end),
	    cmocka_unit_test_setup_teardown(the_ring_turns, begin, end),
	    cmocka_unit_test_setup_teardown(anything_less_begins_anew, begin, end),
	    cmocka_unit_test_setup_teardown(a_time_that_stands_begins_anew, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
