/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bans and elements of sets that other hosts said: which are read at all, and which come into the
 * packets' table, in a kernel made of memory.
 */
#include "applied.h"
#include "calls.h"
#include "kernel.h"
#include "stays.h"

#include "ban.h"
#include "live/bans.h"
#include "live/change.h"
#include "live/copies.h"
#include "live/fleet_bans.h"
#include "live/fleet_sets.h"

#define FLEET "fleet: {store: 'http://a', name: f, bans: yes}\n"
#define SMALL "memory: 1M\nclock: exact\n"
#define RULES                                                                           \
	"rules:\n- name: a\n  ban: {for: 50s, fleet: yes}\n  limits: [{key: src, "      \
	"packets: 9, window: 1s, entries: 64}]\n- name: b\n  limits: [{key: dst, gap: " \
	"1s, entries: 64}]\n"
#define WITH_BANS "bans: 64\n" SMALL FLEET RULES
#define TRIAL_NS  (10 * SECOND)

static struct attached pacer;
static struct pacer_control control;
static struct pacer_copy *copies;
static struct pacer_throttle_state *throttles;
static struct fleet_bans which;
static struct plan plan;

static void begin(const char *text)
{
	struct policy *policy = parse(text);

	kernel_now_ns = 100 * SECOND;
	host = (struct compile_host){RESOLUTION, kernel_now_ns, KERNEL_CPUS};
	copies = calloc(2, sizeof(*copies));
	throttles = calloc(PACER_THROTTLES, sizeof(*throttles));
	assert_true(copies && throttles);
	assert_int_equal(compile_policy(policy, NULL, &host, &copies[0].policy, &plan, &error), 0);
	which = fleet_bans_of(policy);
	policy_free(policy);
	memcpy(copies[0].text, text, strlen(text));
	control = (struct pacer_control){.resolution_ns = RESOLUTION,
					 .secret_ready = PACER_SECRET_OF_TOOLS};
	for (uint32_t k = 0; k < 2 * PACER_SECRETS; k++) /* else all keys had the same places */
		control.secret[k / PACER_SECRETS][k % PACER_SECRETS] =
		    0x9e3779b97f4a7c15ull * (k + 1);
	kernel_map_new(KERNEL_COUNTS, sizeof(uint32_t),
		       KERNEL_CPUS * sizeof(struct pacer_counters));
	kernel_map_new(KERNEL_LEASES, sizeof(uint32_t),
		       KERNEL_CPUS * sizeof(struct pacer_throttle_lease));
	kernel_map_new(KERNEL_ALLOW4, sizeof(struct pacer_allow4),
		       sizeof(struct pacer_allow_value));
	kernel_map_new(KERNEL_ALLOW6, sizeof(struct pacer_allow6),
		       sizeof(struct pacer_allow_value));
	pacer = (struct attached){.ifname = "eth0",
				  .counts_fd = KERNEL_COUNTS,
				  .allow4_fd = KERNEL_ALLOW4,
				  .allow6_fd = KERNEL_ALLOW6,
				  .leases_fd = KERNEL_LEASES,
				  .control = &control,
				  .copy = copies,
				  .n_lines = plan.lines,
				  .throttle = throttles};
	pacer.lines = aligned_alloc(64, plan.lines * sizeof(struct pacer_line));
	assert_non_null(pacer.lines);
	memset(pacer.lines, 0, plan.lines * sizeof(struct pacer_line));
}

static int end(void **unused)
{
	(void)unused;
	for (int fd = KERNEL_COUNTS; fd <= KERNEL_ALLOW6; fd++)
		kernel_map_new(fd, 4, 4);
	free(pacer.lines);
	free(copies);
	free(throttles);
	return 0;
}

static struct pacer_ban_key source(uint8_t last, uint32_t len)
{
	uint32_t word[4] = {0xc0000200 + last};

	return pacer_ban_source(PACER_FAMILY_4, word, len);
}

/* A key of rule a, which counts by sources. */
static struct pacer_ban_key key_of(uint8_t last)
{
	struct pacer_ban_key key = {copies[0].policy.rule[0].id,
				    copies[0].policy.rule[0].limiter[0].key_id,
				    {0xc0000200 + last}};

	return key;
}

static bool put(struct pacer_ban_key key, uint64_t until_ns)
{
	struct fleet_ban ban = {key, until_ns, !until_ns};

	assert_int_equal(fleet_bans_set(&pacer, &ban, 1, &error), 0);
	return ban.done;
}

static uint64_t left_ns;

static void note_left(const struct ban *ban, void *unused)
{
	(void)unused;
	left_ns = ban->left_ns;
}

static size_t banned(void)
{
	left_ns = 0;
	return bans_each(&pacer, NULL, note_left, NULL);
}

/* --- what is read ------------------------------------------------------------------------------
 */

static void test_keys_as_text(void **unused)
{
	struct pacer_ban_key again, key;
	char text[FLEET_BAN_TEXT], bad[FLEET_BAN_TEXT + 2];

	(void)unused;
	begin(WITH_BANS);
	for (int i = 0; i < 3; i++) {
		key = i == 0 ? key_of(7) : i == 1 ? source(7, 32) : source(0, 24);
		fleet_bans_text(&key, text);
		assert_true(fleet_bans_read(&which, text, &again));
		assert_memory_equal(&key, &again, sizeof(key));
		for (size_t n = 0; n < strlen(text); n++) { /* cut off */
			snprintf(bad, sizeof(bad), "%.*s", (int)n, text);
			assert_false(fleet_bans_read(&which, bad, &again));
		}
		snprintf(bad, sizeof(bad), "%s0", text);
		assert_false(fleet_bans_read(&which, bad, &again));
		for (size_t n = 0; n < strlen(text); n++) { /* no digit */
			snprintf(bad, sizeof(bad), "%s", text);
			bad[n] = n & 1 ? 'A' : 'g';
			assert_false(fleet_bans_read(&which, bad, &again));
		}
	}
}

static bool reads(struct pacer_ban_key key)
{
	struct pacer_ban_key again;
	char text[FLEET_BAN_TEXT];

	fleet_bans_text(&key, text);
	return fleet_bans_read(&which, text, &again);
}

/* What nobody could have banned here: another rule, everybody, a prefix with bits behind it. */
static void test_keys_of_others(void **unused)
{
	struct pacer_ban_key key;

	(void)unused;
	begin(WITH_BANS);
	key = key_of(7);
	key.rule = copies[0].policy.rule[1].id; /* whose bans are its own */
	assert_false(reads(key));
	key = source(0, 24);
	key.word[0] |= 1;
	assert_false(reads(key));
	key = source(0, 0);
	assert_false(reads(key));
	key = source(7, 32);
	assert_true(reads(key));
	which.sources = false;
	assert_false(reads(key));
}

static void test_elements_as_text(void **unused)
{
	static const struct fleet_sets sets = {.set = {{.name = "drop"}, {.name = "geo"}}, .n = 2};
	static const char *const bad[] = {
	    "drop",
	    "dro/192.0.2.1",
	    "dropped/192.0.2.1",
	    "/192.0.2.1",
	    "drop/192.0.2.1/32",
	    "drop/192.0.2.1/24",
	    "drop/2001:DB8::1",
	    "drop/",
	};
	struct set_entry entry;
	size_t set;

	(void)unused;
	begin(WITH_BANS);
	assert_true(fleet_sets_read(&sets, "drop/192.0.2.1", &set, &entry) && set == 0);
	assert_true(fleet_sets_read(&sets, "geo/2001:db8::/32", &set, &entry) && set == 1);
	assert_true(entry.family == 6 && entry.len == 32);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (fleet_sets_read(&sets, bad[i], &set, &entry))
			fail_msg("%s is read", bad[i]);
}

/* --- what is put in ----------------------------------------------------------------------------
 */

/* A ban has the end that was said last, sooner or later than before. */
static void test_ends(void **unused)
{
	(void)unused;
	begin(WITH_BANS);
	assert_true(put(key_of(7), kernel_now_ns + 60 * SECOND));
	assert_true(banned() == 1 && left_ns == 60 * SECOND);
	assert_true(put(key_of(7), kernel_now_ns + 90 * SECOND));
	assert_true(banned() == 1 && left_ns == 90 * SECOND);
	assert_true(put(key_of(7), kernel_now_ns + 20 * SECOND));
	assert_true(banned() == 1 && left_ns == 20 * SECOND);
	assert_true(put(key_of(7), PACER_NEVER));
	assert_true(banned() == 1 && left_ns == PACER_NEVER);
	assert_true(put(key_of(7), 0));
	assert_int_equal(banned(), 0);
	assert_true(put(key_of(7), 0)); /* as it is lifted already */
}

static void test_no_place_for_it(void **unused)
{
	struct pacer_ban_key key;

	(void)unused;
	begin(WITH_BANS);
	key = key_of(7);
	key.key_id = copies[0].policy.rule[1].limiter[0].key_id; /* not what the rule counts by */
	assert_false(put(key, kernel_now_ns + SECOND));
	assert_false(put(key_of(7), kernel_now_ns)); /* it has ended */
	for (uint32_t i = 0; i < PACER_BAN_LENGTHS; i++)
		assert_true(put(source(0, 24 - i), kernel_now_ns + 60 * SECOND));
	assert_false(put(source(7, 32), kernel_now_ns + 60 * SECOND)); /* of one length more */
	assert_true(put(source(0, 24), kernel_now_ns + 60 * SECOND));
	assert_int_equal(banned(), PACER_BAN_LENGTHS);
}

static void test_no_table(void **unused)
{
	struct pacer_ban_key key;

	(void)unused;
	begin(SMALL "rules:\n- name: a\n  limits: [{key: src, packets: 9, window: 1s, entries: "
		    "64}]\n");
	key = key_of(7);
	assert_false(put(key, kernel_now_ns + SECOND));
	assert_true(put(key, 0));
}

/* Where the policy on trial gives way, the one before bans as well. */
static void test_during_a_trial(void **unused)
{
	(void)unused;
	begin(WITH_BANS);
	assert_int_equal(
	    change_apply(&pacer, "bans: 128\n" SMALL FLEET RULES, NULL, TRIAL_NS, &plan, &error),
	    0);
	assert_true(put(key_of(7), kernel_now_ns + 60 * SECOND));
	assert_int_equal(banned(), 1);
	assert_int_equal(copies_in_force(&pacer), 1);
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(copies_in_force(&pacer), 0);
	assert_true(banned() == 1 && left_ns == 50 * SECOND);
}

/* What cannot be changed is not, and it is said. */
static void test_a_policy_that_cannot_be_read(void **unused)
{
	struct fleet_ban ban;

	(void)unused;
	begin(WITH_BANS);
	ban = (struct fleet_ban){key_of(7), kernel_now_ns + SECOND, false};
	copies[0].text[0] = '[';
	assert_int_equal(fleet_bans_set(&pacer, &ban, 1, &error), -1);
	assert_string_equal(error.text, "eth0: no memory for its policy");
	assert_int_equal(banned(), 0);
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_keys_as_text),	 CASE(test_keys_of_others),
	    CASE(test_elements_as_text), CASE(test_ends),
	    CASE(test_no_place_for_it),	 CASE(test_no_table),
	    CASE(test_during_a_trial),	 CASE(test_a_policy_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
