/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Figures are of one policy, whenever another comes into force while they are read. The kernel is a
 * few arrays here, and what befalls between two of its answers befalls every time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "live/copies.h"
#include "live/host.h"
#include "live/reading.h"
#include "stays.h"

#define CPUS 2

static struct pacer_copy copies[2];
static struct pacer_control control;
static const struct attached pacer = {.ifname = "eth0", .control = &control, .copy = copies};
static uint64_t counts[4]; /* of each pacer_rule.counter */
static uint32_t answers;
static void (*befalls)(uint32_t answer); /* before each answer */
static bool fails;

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	struct pacer_counters *each = value;

	(void)fd;
	if (befalls)
		befalls(answers);
	answers++;
	errno = EPERM;
	if (fails)
		return -EPERM;
	for (int cpu = 0; cpu < CPUS; cpu++)
		each[cpu].by[PACER_ADMIT].packets = counts[*(const uint32_t *)key];
	return 0;
}

int host_cpus(struct policy_error *error)
{
	(void)error;
	return CPUS;
}

uint64_t host_resolution_ns(void)
{
	return 4000000;
}

uint64_t host_now_ns(void)
{
	return 1000000000;
}

/* As an apply does it: into the copy that is not in force, and then that is. */
static void apply(const char *rule, uint32_t counter, uint64_t count)
{
	uint32_t next = copies_in_force(&pacer) ^ 1;
	uint64_t serial = copies[next ^ 1].policy.serial + 1;

	copies[next].policy.rule[0].counter = counter;
	copies[next].policy.serial = serial;
	snprintf(copies[next].text, sizeof(copies[next].text),
		 "rules: [{name: %s, limits: [{key: all, packets: 5, window: 1s}]}]\n", rule);
	counts[counter] = count;
	control.in_force = next;
}

static int setup(void **unused)
{
	(void)unused;
	memset(copies, 0, sizeof(copies));
	control.in_force = 1;
	answers = 0;
	befalls = NULL;
	fails = false;
	apply("a", 1, 100);
	return 0;
}

static void assert_of_one_policy(const struct reading *f)
{
	const char *name = f->policy->rule[0].name;
	uint64_t want = CPUS * (*name == 'a' ? 100 : *name == 'b' ? 7 : 3);

	if (f->rule[0].by[PACER_ADMIT].packets != want)
		fail_msg("rule %s has %llu", name, f->rule[0].by[PACER_ADMIT].packets);
}

static uint32_t when;

static void once(uint32_t answer)
{
	if (answer == when)
		apply("b", 2, 7);
}

/* The second one's rule has the counters of the one before, and its copy. */
static void twice(uint32_t answer)
{
	if (answer != when)
		return;
	apply("b", 2, 7);
	apply("c", 1, 3);
}

static void always(uint32_t answer)
{
	apply(answer & 1 ? "a" : "c", 1 + (answer & 1), answer);
}

static void test_at_rest(void **unused)
{
	struct policy_error error = {0};
	static struct reading f;

	(void)unused;
	assert_int_equal(reading_take(&pacer, &f, &error), 0);
	assert_string_equal(f.policy->rule[0].name, "a");
	assert_of_one_policy(&f);
	assert_int_equal(answers, 2);
	reading_free(&f);
}

static void test_changes_meanwhile(void **unused)
{
	void (*const changes[])(uint32_t) = {once, twice};
	struct policy_error error = {0};
	static struct reading f;

	for (size_t i = 0; i < 2; i++)
		for (when = 0; when < 2; when++) {
			setup(unused);
			befalls = changes[i];
			assert_int_equal(reading_take(&pacer, &f, &error), 0);
			assert_of_one_policy(&f);
			assert_int_equal(*f.policy->rule[0].name, i ? 'c' : 'b');
			assert_int_equal(answers, 4);
			reading_free(&f);
		}
}

static void test_changes_without_end(void **unused)
{
	struct policy_error error = {0};
	static struct reading f;

	(void)unused;
	befalls = always;
	assert_int_equal(reading_take(&pacer, &f, &error), -1);
	assert_non_null(strstr(error.text, "eth0: its policy changes faster"));
	assert_null(f.policy);
	assert_int_equal(answers, 2 * FIGURES_TRIES);
}

static void test_cannot_be_read(void **unused)
{
	struct policy_error error = {0};
	static struct reading f;

	(void)unused;
	fails = true;
	assert_int_equal(reading_take(&pacer, &f, &error), -1);
	assert_string_equal(error.text,
			    "eth0: its counters cannot be read: Operation not permitted");
	fails = false;
	strcpy(copies[0].text, "rules: [{");
	assert_int_equal(reading_take(&pacer, &f, &error), -1);
	assert_non_null(strstr(error.text, "eth0: its policy cannot be read: "));
}

/* By the rule's name; of sources, under none; and of a rule that the policy has no more. */
static void test_bans(void **unused)
{
	static struct pacer_line lines[2 * PACER_BAN_WAYS];
	struct attached banning = pacer;
	struct policy_error error = {0};
	static struct reading f;

	(void)unused;
	copies[0].policy.bans.sets = 2;
	banning.lines = lines;
	banning.n_lines = 2 * PACER_BAN_WAYS;
	for (size_t i = 0; i < 6; i++)
		lines[i].ban_until_ns = PACER_NEVER;
	lines[0].ban_rule = lines[5].ban_rule = PACER_BAN_SOURCE;
	lines[1].ban_rule = lines[2].ban_rule = lines[4].ban_rule = compile_name_id("a");
	lines[3].ban_rule = compile_name_id("gone");
	assert_int_equal(reading_take(&banning, &f, &error), 0);
	assert_true(f.bans_counted);
	assert_int_equal(f.ban_room, 2 * PACER_BAN_WAYS);
	assert_int_equal(f.bans_of_sources, 2);
	assert_int_equal(f.bans[0], 3);
	assert_int_equal(f.bans_of_gone, 1);
	reading_free(&f);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_at_rest),
	    TEST(test_changes_meanwhile),
	    TEST(test_changes_without_end),
	    TEST(test_cannot_be_read),
	    TEST(test_bans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
