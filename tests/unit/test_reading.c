/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Figures are of one policy, whenever another comes into force while they are read; so are those of
 * a shadow, and the text that is shown. The kernel is a few arrays here, and what befalls between
 * two of its answers befalls every time. What cannot be read is said not to be, whichever it is.
 */
#include "oracle.h"
#include "starved.h"
#include "stays.h"

#include "live/allow.h"
#include "live/copies.h"
#include "live/fleet_shares.h"
#include "live/host.h"
#include "live/reading.h"
#include "live/sets_maps.h"
#include "live/shadow_reading.h"
#include "live/shown.h"
#include "plan/compile.h"

#define CPUS 2

static struct pacer_copy copies[2];
static struct pacer_control control;
static const struct attached pacer = {.ifname = "eth0", .control = &control, .copy = copies};
static uint64_t counts[4]; /* of each pacer_rule.counter */
static uint32_t answers;
static void (*befalls)(uint32_t answer); /* before each answer */
static bool fails;
static uint32_t fail_at; /* the answer that is none, from 1; 0: none */
static bool no_cpus;

#define COUNTS	0
#define CHANGES 1 /* of a shadow: 2 packets of each kind and each reason, on each CPU */

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	struct pacer_counters *each = value;
	struct pacer_changes *changes = value;

	if (befalls)
		befalls(answers);
	answers++;
	errno = EPERM;
	if (fails || answers == fail_at)
		return -EPERM;
	for (int cpu = 0; cpu < CPUS && fd == CHANGES; cpu++)
		for (size_t c = 0; c < PACER_CHANGE_COUNT; c++)
			for (size_t r = 0; r < PACER_CHANGE_REASONS; r++)
				changes[cpu].by[c][r] = (struct pacer_count){2, 3};
	for (int cpu = 0; cpu < CPUS && fd == COUNTS; cpu++) {
		each[cpu].by[PACER_ADMIT].packets = counts[*(const uint32_t *)key];
		each[cpu].by[PACER_ADMIT].bytes = 60 * counts[*(const uint32_t *)key];
		each[cpu].events[PACER_REDIRECTED] = 2 * counts[*(const uint32_t *)key];
	}
	return 0;
}

int sets_maps_count(const struct attached *a, uint32_t copy, uint32_t number, int cpus,
		    struct pacer_set_count *sum)
{
	(void)a;
	(void)copy;
	assert_int_equal(cpus, CPUS);
	*sum = (struct pacer_set_count){10 + number, 0};
	errno = EPERM;
	return ++answers == fail_at ? -1 : 0;
}

int sets_maps_prefixes(const struct attached *a, uint32_t copy, uint32_t number, uint64_t *prefixes)
{
	(void)a;
	(void)copy;
	*prefixes = 20 + number;
	errno = EPERM;
	return ++answers == fail_at ? -1 : 0;
}

bool sets_maps_counted(const struct attached *a, uint32_t copy, uint32_t number,
		       const struct policy *policy)
{
	(void)a;
	(void)copy;
	(void)policy;
	return number == 0;
}

void sets_maps_learn(const struct attached *a, uint32_t copy, uint32_t number, const char *name)
{
	(void)a;
	(void)copy;
	(void)number;
	(void)name;
}

static struct fleet_limit shared[PACER_SHARES];
static size_t n_shared;
static struct fleet_held held;

size_t fleet_limits(const struct attached *a, struct fleet_limit *into)
{
	(void)a;
	memcpy(into, shared, n_shared * sizeof(*into));
	return n_shared;
}

struct fleet_held fleet_held(const struct attached *a, const struct fleet_limit *limit)
{
	(void)a;
	(void)limit;
	return held;
}

void fleet_forget(const struct attached *a)
{
	(void)a;
}

static struct allow_entry allowed[1];
static size_t n_allowed;

int allow_each(const struct attached *a,
	       void (*each)(const struct allow_entry *, uint64_t now_ns, void *), void *arg,
	       struct policy_error *error)
{
	(void)a;
	if (befalls)
		befalls(answers);
	if (++answers == fail_at)
		return policy_fail(error, 0, "eth0: its allow-list cannot be read");
	for (size_t i = 0; i < n_allowed; i++)
		each(&allowed[i], 0, arg);
	return 0;
}

int host_cpus(struct policy_error *error)
{
	return no_cpus ? policy_fail(error, 0, "the number of CPUs is not known") : CPUS;
}

uint64_t host_resolution_ns(void)
{
	return 4000000;
}

uint64_t host_now_ns(void)
{
	return 1000000000;
}

void host_wait_until(uint64_t until_ns)
{
	(void)until_ns;
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
	fails = no_cpus = false;
	fail_at = 0;
	n_shared = n_allowed = 0;
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

/* The sums of all CPUs, and what else is told of the policy; `flags` are its own. */
static void assert_told(uint32_t flags, uint64_t pending_ns)
{
	struct policy_error error = {0};
	static struct reading f;

	copies[0].policy.flags = flags;
	control.in_force = pending_ns ? (host_now_ns() + pending_ns) << 1 : 0;
	assert_int_equal(reading_take(&pacer, &f, &error), 0);
	assert_of_one_policy(&f);
	assert_int_equal(f.rule[0].by[PACER_ADMIT].bytes, CPUS * 60 * 100);
	assert_int_equal(f.rule[0].events[PACER_REDIRECTED], CPUS * 2 * 100);
	assert_int_equal(f.monitor, !!(flags & PACER_MONITOR));
	assert_int_equal(f.exact, !!(flags & PACER_CLOCK_EXACT));
	assert_int_equal(f.pending_ns, pending_ns);
	reading_free(&f);
}

static void test_what_is_told(void **unused)
{
	(void)unused;
	assert_told(0, 0);
	assert_told(PACER_MONITOR, 0);
	assert_told(PACER_CLOCK_EXACT, 5);
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
	copies[0].policy.bans.sets = READING_BANS / PACER_BAN_WAYS + 1; /* too many to be counted */
	assert_int_equal(reading_take(&banning, &f, &error), 0);
	assert_false(f.bans_counted);
	assert_int_equal(f.ban_room, READING_BANS + PACER_BAN_WAYS);
	reading_free(&f);
}

/* --- sets, tables and shares ------------------------------------------------------------------ */

#define SETS                                                                                \
	"sets: [{name: s1, of: [192.0.2.1]}, {name: s2, of: [192.0.2.2]}]\nallow: ['@s1', " \
	"'@s2']\n"
#define LIMITS                                                                                   \
	"rules:\n- name: a\n  limits: [{key: all, packets: 9, window: 2s}, {key: src, packets: " \
	"5, window: 1s, entries: 64}]\n"

/* That policy is in force, as it is compiled; lines to be freed. */
static struct attached compiled(const char *text)
{
	static struct plan plan;
	struct compile_host host = {host_resolution_ns(), host_now_ns(), CPUS};
	uint32_t copy = copies_in_force(&pacer);
	struct attached a = pacer;
	struct policy_error error;
	struct policy *policy = policy_parse(text, strlen(text), &error);

	if (!policy || compile_policy(policy, NULL, &host, &copies[copy].policy, &plan, &error))
		fail_msg("%s", error.text);
	policy_free(policy);
	strcpy(copies[copy].text, text);
	a.n_lines = plan.lines;
	a.lines = aligned_alloc(64, plan.lines * sizeof(*a.lines));
	assert_non_null(a.lines);
	memset(a.lines, 0, plan.lines * sizeof(*a.lines));
	return a;
}

static void test_sets(void **unused)
{
	struct attached a = compiled(SETS LIMITS);
	struct policy_error error = {0};
	static struct reading f;

	(void)unused;
	for (fail_at = 1;; fail_at++) {
		answers = 0;
		if (!reading_take(&a, &f, &error))
			break;
		assert_string_equal(error.text,
				    "eth0: its counters cannot be read: Operation not permitted");
	}
	assert_int_equal(fail_at, 7); /* none, a rule, two of each set */
	assert_true(f.set[0].counted && !f.set[1].counted);
	assert_true(f.set[0].count.packets == 10 && f.set[1].count.packets == 11);
	assert_true(f.set[0].prefixes == 20 && f.set[1].prefixes == 21);
	/* One record for all keys is no table. */
	assert_int_equal(f.n_tables, 1);
	assert_true(f.table[0].limit == 1 && f.table[0].capacity >= 64);
	reading_free(&f);
	no_cpus = true;
	assert_int_equal(reading_take(&a, &f, &error), -1);
	assert_null(f.policy);
	free(a.lines);
}

static void test_shares(void **unused)
{
	struct attached a = compiled(LIMITS);
	const struct pacer_rule *rule = &copies[copies_in_force(&a)].policy.rule[0];
	struct policy_error error = {0};
	static struct reading f;

	(void)unused;
	n_shared = 4;
	for (size_t i = 0; i < n_shared; i++)
		shared[i] = (struct fleet_limit){.limiter = rule->limiter[1]};
	shared[0].draining = true;
	shared[1].rule = 1;		/* of a policy that has just come */
	shared[2].limiter.until_ns = 1; /* as this one, which is no limit of the policy */
	held = (struct fleet_held){.units = 7, .floor = 3, .members = 2, .until_ns = UINT64_MAX};
	held.lane[0].is = held.lane[PACER_LANES - 1].is = true;
	assert_int_equal(reading_take(&a, &f, &error), 0);
	assert_true(f.n_shares == 1 && f.share[0].limit == 1 && f.share[0].all == 5);
	assert_true(!f.share[0].units && !f.share[0].members); /* no agent has said any */
	reading_free(&f);
	held.is = true;
	assert_int_equal(reading_take(&a, &f, &error), 0);
	assert_true(f.share[0].units == 7 && f.share[0].lanes == 2 && f.share[0].members == 2);
	reading_free(&f);
	held.until_ns = host_now_ns(); /* it has ended */
	assert_int_equal(reading_take(&a, &f, &error), 0);
	assert_true(f.share[0].units == 3 && !f.share[0].lanes);
	reading_free(&f);
	free(a.lines);
}

/* --- a shadow's ------------------------------------------------------------------------------- */

/* libyaml loses a few bytes where memory runs out within it. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static void test_shadow(void **unused)
{
	static struct pacer_shadow said;
	struct attached s = pacer;
	struct policy_error error = {0};
	static struct shadow_reading r;

	(void)unused;
	s.changes_fd = CHANGES;
	s.shadowed = &said;
	said.since_ns = 77;
	copies[0].policy.flags = PACER_MONITOR;
	for (fail_at = 1;; fail_at++) {
		answers = 0;
		if (!shadow_read(&s, &r, &error))
			break;
		assert_null(r.policy);
		assert_string_equal(error.text, "eth0: what its shadow has counted cannot be read: "
						"Operation not permitted");
	}
	assert_int_equal(fail_at, 3);
	fail_at = 0;
	assert_true(r.monitor && r.since_ns == 77);
	assert_int_equal(shadow_sum(&r, 0).packets, 2 * 2 * CPUS * PACER_CHANGE_REASONS);
	assert_int_equal(shadow_sum(&r, 0).bytes, 2 * 3 * CPUS * PACER_CHANGE_REASONS);
	shadow_reading_free(&r);
	no_cpus = true;
	assert_int_equal(shadow_read(&s, &r, &error), -1);
	assert_null(r.policy);
	no_cpus = false;
	if (__lsan_disable)
		__lsan_disable();
	for (uint32_t n = 1, done = 0; !done; n++) {
		error.text[0] = 0;
		starved_from(n, false);
		memory.on = true;
		done = !shadow_read(&s, &r, &error);
		memory.on = false;
		if (!done && !strstr(error.text, "memory"))
			fail_msg("allocation %u: %s", n, error.text);
	}
	if (__lsan_enable)
		__lsan_enable();
	shadow_reading_free(&r);
}

/* What no rule denies passes, and what a rule denies goes where that says. */
static void test_shadow_passes(void **unused)
{
	struct pacer_policy *bin = &copies[0].policy;

	(void)unused;
	memset(bin, 0, sizeof(*bin));
	bin->rule[1].over = PACER_OVER_PASS;
	assert_true(shadow_passes(bin, 0, PACER_ADMIT));
	assert_false(shadow_passes(bin, 0, PACER_DENY_VERDICT));
	assert_true(shadow_passes(bin, 1, PACER_DENY_VERDICT));
	assert_false(shadow_passes(bin, PACER_RULES_MAX, PACER_DENY_VERDICT));
	bin->else_over = PACER_OVER_PASS;
	assert_true(shadow_passes(bin, PACER_RULES_MAX, PACER_DENY_VERDICT));
	assert_false(shadow_passes(bin, PACER_RULES_MAX, PACER_DENY_BAN));
	bin->flags = PACER_MONITOR;
	assert_true(shadow_passes(bin, 0, PACER_DENY_VERDICT));
}

/* --- the text that is shown ------------------------------------------------------------------- */

#define SHOWN "allow: [192.0.2.1]\nrules: []"

static void assert_shows(const char *text)
{
	struct policy_error error = {0};
	struct shown shown;

	if (shown_policy(&pacer, &shown, &error) || shown_text(&shown, &error))
		fail_msg("%s", error.text);
	assert_string_equal(shown.text, text);
	shown_free(&shown);
}

/* A policy as long as there are, and one that is longer by what is allowed by hand. */
static void test_shown_whole(void **unused)
{
	static char text[PACER_DOC_MAX];
	char *copy = copies[copies_in_force(&pacer)].text;
	struct policy_error error = {0};
	struct shown shown;

	(void)unused;
	allowed[0] = (struct allow_entry){.prefix = {4, 32, {192, 0, 2, 1}}, .of_policy = true};
	n_allowed = 1;
	memset(text, '#', sizeof(text) - 1);
	memcpy(text, SHOWN "\n", strlen(SHOWN "\n"));
	strcpy(copy, text);
	assert_shows(text);
	strcpy(&text[PACER_DOC_MAX - 2], "\n");
	copy[PACER_DOC_MAX - 2] = 0;
	assert_shows(text);
	copy[PACER_DOC_MAX - 2] = '#';
	allowed[0].prefix = (struct prefix){4, 25, {192, 0, 2, 128}};
	assert_int_equal(shown_policy(&pacer, &shown, &error), 0);
	assert_int_equal(shown.policy->n_allow, 1);
	assert_memory_equal(shown.policy->allow, &allowed[0].prefix, sizeof(struct prefix));
	assert_int_equal(shown_text(&shown, &error), 0);
	assert_int_equal(strlen(shown.text), PACER_DOC_MAX - 1 + strlen("28/25"));
	assert_int_equal(strncmp(shown.text, "allow: [192.0.2.128/25]\nrules: []\n#", 35), 0);
	shown_free(&shown);
}

static void test_shown(void **unused)
{
	uint32_t copy = copies_in_force(&pacer);
	struct policy_error error = {0};
	struct shown shown;

	(void)unused;
	allowed[0] = (struct allow_entry){.prefix = {4, 32, {192, 0, 2, 1}}, .of_policy = true};
	n_allowed = 1;
	strcpy(copies[copy].text, "\xef\xbb\xbf" SHOWN); /* with the mark, without an end */
	assert_shows(SHOWN "\n");
	strcpy(copies[copy].text, SHOWN "\n");
	assert_shows(SHOWN "\n");
	n_allowed = 0; /* taken off */
	assert_shows("allow: []\nrules: []\n");
	fail_at = 1;
	answers = 0;
	assert_int_equal(shown_policy(&pacer, &shown, &error), -1);
	fail_at = 0;
	befalls = once;
	when = answers;
	assert_int_equal(shown_policy(&pacer, &shown, &error), 0); /* of the one after */
	assert_non_null(strstr(shown.text, "name: b"));
	shown_free(&shown);
	befalls = twice; /* into the same copy */
	when = answers;
	assert_int_equal(shown_policy(&pacer, &shown, &error), 0);
	assert_non_null(strstr(shown.text, "name: c"));
	shown_free(&shown);
	befalls = always;
	assert_int_equal(shown_policy(&pacer, &shown, &error), -1);
	assert_string_equal(error.text, "eth0: its policy changes all the while: try again");
}

static void test_shown_without_memory(void **unused)
{
	struct policy_error error = {0};
	struct shown shown;

	(void)unused;
	if (__lsan_disable)
		__lsan_disable();
	for (uint32_t n = 1, done = 0; !done; n++) {
		starved_from(n, true);
		memory.on = true;
		done = !shown_policy(&pacer, &shown, &error);
		if (done && shown_text(&shown, &error)) {
			shown_free(&shown);
			done = 0;
		}
		memory.on = false;
		if (!done && !strstr(error.text, "memory"))
			fail_msg("allocation %u: %s", n, error.text);
	}
	if (__lsan_enable)
		__lsan_enable();
	shown_free(&shown);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_at_rest),
	    TEST(test_what_is_told),
	    TEST(test_changes_meanwhile),
	    TEST(test_changes_without_end),
	    TEST(test_cannot_be_read),
	    TEST(test_bans),
	    TEST(test_sets),
	    TEST(test_shares),
	    TEST(test_shadow),
	    TEST(test_shadow_passes),
	    TEST(test_shown),
	    TEST(test_shown_whole),
	    TEST(test_shown_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
