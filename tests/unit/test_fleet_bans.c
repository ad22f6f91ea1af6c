/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bans and elements of sets that other hosts said: which are read at all, and which come into the
 * packets' table, in a kernel made of memory.
 */
#include "banning.h"

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
#define NO_BANS	  "rules:\n- {name: a, limits: [{key: src, gap: 1s, entries: 64}]}\n"

static struct fleet_bans which;

static void begin(const char *text)
{
	struct policy *policy = parse(text);

	which = fleet_bans_of(policy);
	policy_free(policy);
	begin_with(text);
}

static struct pacer_ban_key source(uint8_t last, uint32_t len)
{
	uint32_t word[4] = {0xc0000200 + last};

	return pacer_ban_source(PACER_FAMILY_4, word, len);
}

static struct pacer_ban_key source6(uint32_t len)
{
	uint32_t word[4] = {0x20010db8};

	return pacer_ban_source(PACER_FAMILY_6, word, len);
}

/* A key of rule a, which counts by sources. */
static struct pacer_ban_key key_of(uint8_t last)
{
	struct pacer_ban_key key = {copies[0].policy.rule[0].id,
				    copies[0].policy.rule[0].limiter[0].key_id,
				    {0xc0000200 + last}};

	return key;
}

struct looked {
	struct pacer_ban_key key;
	uint64_t until_ns;
};

static void note_end(const struct pacer_ban_key *key, uint64_t until_ns, void *arg)
{
	struct looked *looked = arg;

	if (!memcmp(key, &looked->key, sizeof(*key)))
		looked->until_ns = until_ns;
}

/* What is to be done to it as it is by now. */
static struct fleet_ban seen_now(struct pacer_ban_key key, uint64_t until_ns)
{
	struct looked looked = {key, 0};

	fleet_bans_each(&pacer, &which, note_end, &looked);
	return (struct fleet_ban){
	    .key = key, .until_ns = until_ns, .was_ns = looked.until_ns, .done = !until_ns};
}

static uint32_t walks; /* through a table, for the lengths of its prefixes */

void __real_ban_notes_lengths(const struct pacer_line *lines, const struct pacer_policy *p,
			      uint64_t now_ns, uint8_t *len4, uint8_t *len6);
void __wrap_ban_notes_lengths(const struct pacer_line *lines, const struct pacer_policy *p,
			      uint64_t now_ns, uint8_t *len4, uint8_t *len6);
void __wrap_ban_notes_lengths(const struct pacer_line *lines, const struct pacer_policy *p,
			      uint64_t now_ns, uint8_t *len4, uint8_t *len6)
{
	walks++;
	__real_ban_notes_lengths(lines, p, now_ns, len4, len6);
}

static bool put(struct pacer_ban_key key, uint64_t until_ns)
{
	struct fleet_ban ban = seen_now(key, until_ns);

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

/* Packets are asked about what a fleet bans here: the policy says that there is such a ban.
 */
static void test_what_is_banned_is_looked_for(void **unused)
{
	const struct pacer_policy *p;
	uint64_t end_ns;

	(void)unused;
	begin(WITH_BANS);
	p = &copies[0].policy;
	end_ns = kernel_now_ns + 60 * SECOND;
	assert_true(put(source(0, 24), end_ns));
	assert_true(p->flags & PACER_SOURCES_BANNED);
	assert_int_equal(p->bans.len4[0], 24);
	assert_true(put(source(0, 24), 0));
	assert_false(p->flags & PACER_SOURCES_BANNED);
	assert_true(put(key_of(7), end_ns));
	assert_true(p->rule[0].outside);
}

static void test_keys_as_text(void **unused)
{
	struct pacer_ban_key again, key;
	char text[FLEET_BAN_TEXT], bad[FLEET_BAN_TEXT + 2];

	(void)unused;
	begin(WITH_BANS);
	for (int i = 0; i < 5; i++) {
		key = i == 0   ? key_of(7)
		      : i == 1 ? source(7, 32)
		      : i == 2 ? source(0, 24)
			       : source6(i == 3 ? 32 : 128);
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
	key = source(7, 33);
	assert_false(reads(key));
	key = source(7, 34); /* 33 is a set's value in an address's place */
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

/* A ban that is lifted ends the key's row, also where that is kept in its other set. */
static void test_lifted_with_its_row(void **unused)
{
	struct pacer_ban_places at;
	struct pacer_table table;
	struct pacer_ban_ask q;
	struct fleet_ban ban;

	(void)unused;
	begin(WITH_BANS);
	table = (struct pacer_table){pacer.lines, pacer.n_lines};
	q = (struct pacer_ban_ask){&table,    &copies[0].policy.bans, kernel_now_ns, {0, 0},
				   key_of(7), 3 << PACER_BAN_ROW};
	q.hash = pacer_ban_hash(&q.key, control->secret[0]);
	at = pacer_ban_places(q.bans, q.hash);
	for (uint32_t i = 0; i < 2; i++)
		assert_true(
		    pacer_ban_enter(&pacer.lines[at.set[i]], &q, q.now_ns + (i ? 60 : 1) * SECOND));
	ban = (struct fleet_ban){.key = q.key, .was_ns = q.now_ns + 60 * SECOND};
	q.now_ns = kernel_now_ns += 2 * SECOND;
	assert_int_equal(fleet_bans_set(&pacer, &ban, 1, &error), 0);
	assert_true(ban.done);
	assert_int_equal(banned(), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(pacer.lines[at.set[i]].ban_until_ns, 0);
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
	for (uint32_t i = 0; i < PACER_BAN_LENGTHS; i++)
		assert_true(put(source6(32 + i), kernel_now_ns + 60 * SECOND));
	assert_false(put(source6(128), kernel_now_ns + 60 * SECOND));
	assert_int_equal(banned(), 2 * PACER_BAN_LENGTHS);
}

/* A table may be large, and the lock is held: it is walked once for each length that is new. */
static void test_many_at_once(void **unused)
{
	struct fleet_ban ban[20];

	(void)unused;
	begin(WITH_BANS);
	walks = 0;
	for (uint32_t i = 0; i < ARRAY(ban); i++)
		ban[i] = seen_now(i & 1 ? source6(32) : source((uint8_t)i, 32),
				  kernel_now_ns + (60 + i) * SECOND);
	assert_int_equal(fleet_bans_set(&pacer, ban, ARRAY(ban), &error), 0);
	for (uint32_t i = 0; i < ARRAY(ban); i++)
		assert_true(ban[i].done || ban[i].changed);
	assert_int_equal(banned(), ARRAY(ban) / 2 + 1);
	assert_int_equal(walks, 2);
}

/* While bans move to another secret, one that has not yet moved is lifted as well. */
static void test_while_bans_move(void **unused)
{
	(void)unused;
	begin(WITH_BANS);
	assert_true(put(key_of(7), kernel_now_ns + 60 * SECOND));
	copies[0].policy.secret = 1;
	copies[0].policy.bans.moving = 1;
	assert_true(put(key_of(7), 0));
	assert_int_equal(banned(), 0);
}

static void test_no_lock(void **unused)
{
	struct fleet_ban ban;

	(void)unused;
	begin(WITH_BANS);
	ban = seen_now(key_of(7), kernel_now_ns + SECOND);
	kernel_no_lock = true;
	assert_int_equal(fleet_bans_set(&pacer, &ban, 1, &error), -1);
	kernel_no_lock = false;
	assert_int_equal(banned(), 0);
}

/* It was banned, banned for longer or lifted here after the agent's look: so it stays. */
static void test_changed_since_the_look(void **unused)
{
	const uint64_t ends_s[][2] = {{0, 20}, {20, 40}, {20, 0}};

	(void)unused;
	for (size_t i = 0; i < sizeof(ends_s) / sizeof(*ends_s); i++)
		for (int lifts = 0; lifts < 2; lifts++) {
			struct fleet_ban ban;

			begin(WITH_BANS);
			if (ends_s[i][0])
				assert_true(put(key_of(7), kernel_now_ns + ends_s[i][0] * SECOND));
			ban = seen_now(key_of(7), lifts ? 0 : kernel_now_ns + 5 * SECOND);
			assert_true(put(key_of(7),
					ends_s[i][1] ? kernel_now_ns + ends_s[i][1] * SECOND : 0));
			assert_int_equal(fleet_bans_set(&pacer, &ban, 1, &error), 0);
			assert_true(ban.changed && !ban.done);
			assert_int_equal(banned(), ends_s[i][1] != 0);
			assert_true(left_ns == ends_s[i][1] * SECOND);
			end(NULL);
		}
}

/* Of two ends the later one counts: one that was made meanwhile and is shorter gives way. */
static void test_shorter_since_the_look(void **unused)
{
	struct fleet_ban ban;

	(void)unused;
	begin(WITH_BANS);
	ban = seen_now(key_of(7), kernel_now_ns + 5 * SECOND);
	assert_true(put(key_of(7), kernel_now_ns + 3 * SECOND));
	assert_int_equal(fleet_bans_set(&pacer, &ban, 1, &error), 0);
	assert_true(!ban.changed && ban.done && banned() == 1 && left_ns == 5 * SECOND);
}

static uint64_t told_ns[2];
static size_t n_told;

static void note_told(const struct pacer_ban_key *key, uint64_t until_ns, void *arg)
{
	if (!memcmp(key, arg, sizeof(*key)) && n_told < 2)
		told_ns[n_told++] = until_ns;
}

/* Two CPUs may have entered a key twice: both are told by the end that counts. */
static void test_entered_twice(void **unused)
{
	struct pacer_ban_places at;
	struct pacer_table table;
	struct pacer_ban_ask q;

	(void)unused;
	begin(WITH_BANS);
	assert_true(put(key_of(8), kernel_now_ns + 90 * SECOND));
	table = (struct pacer_table){pacer.lines, pacer.n_lines};
	q = (struct pacer_ban_ask){&table, &copies[0].policy.bans, kernel_now_ns, {0, 0}, key_of(7),
				   0};
	q.hash = pacer_ban_hash(&q.key, control->secret[0]);
	at = pacer_ban_places(q.bans, q.hash);
	for (uint32_t i = 0; i < 2; i++)
		assert_true(pacer_ban_enter(&pacer.lines[at.set[i]], &q,
					    q.now_ns + (i ? 60 : 61) * SECOND));
	n_told = 0;
	fleet_bans_each(&pacer, &which, note_told, &q.key);
	assert_int_equal(n_told, 2);
	assert_true(told_ns[0] == told_ns[1] && told_ns[0] == q.now_ns + 61 * SECOND);
}

/* What has ended since is as it was looked at. */
static void test_ended_since_the_look(void **unused)
{
	struct fleet_ban ban;

	(void)unused;
	begin(WITH_BANS);
	assert_true(put(key_of(7), kernel_now_ns + SECOND));
	ban = seen_now(key_of(7), kernel_now_ns + 5 * SECOND);
	kernel_now_ns += SECOND;
	assert_int_equal(fleet_bans_set(&pacer, &ban, 1, &error), 0);
	assert_true(!ban.changed && ban.done && banned() == 1);
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

/* The policy that may come back bans it. */
static void test_during_a_trial_without_a_table(void **unused)
{
	(void)unused;
	begin(WITH_BANS);
	assert_int_equal(change_apply(&pacer, SMALL NO_BANS, NULL, TRIAL_NS, &plan, &error), 0);
	assert_false(put(key_of(7), kernel_now_ns + 60 * SECOND));
	assert_int_equal(banned(), 0);
	assert_int_equal(copies_in_force(&pacer), 1);
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(copies_in_force(&pacer), 0);
	assert_true(banned() == 1 && left_ns == 50 * SECOND);
}

/* A trial of a policy with the same table, which has the ban once. */
static void test_during_a_trial(void **unused)
{
	(void)unused;
	begin(WITH_BANS);
	assert_int_equal(change_apply(&pacer, "bans: 64\n" SMALL FLEET RULES "else: drop\n", NULL,
				      TRIAL_NS, &plan, &error),
			 0);
	assert_int_equal(copies[0].policy.bans.base, copies[1].policy.bans.base);
	assert_true(put(key_of(7), kernel_now_ns + 60 * SECOND));
	assert_true(banned() == 1 && left_ns == 60 * SECOND);
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(copies_in_force(&pacer), 0);
	assert_true(banned() == 1 && left_ns == 50 * SECOND);
	assert_true(put(key_of(7), 0));
	assert_int_equal(banned(), 0);
}

/* What cannot be changed is not, and it is said. */
static void test_a_policy_that_cannot_be_read(void **unused)
{
	struct fleet_ban ban;

	(void)unused;
	begin(WITH_BANS);
	ban = seen_now(key_of(7), kernel_now_ns + SECOND);
	copies[0].text[0] = '[';
	assert_int_equal(fleet_bans_set(&pacer, &ban, 1, &error), -1);
	assert_string_equal(error.text, "eth0: no memory for its policy");
	assert_int_equal(banned(), 0);
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_what_is_banned_is_looked_for),
	    CASE(test_keys_as_text),
	    CASE(test_keys_of_others),
	    CASE(test_elements_as_text),
	    CASE(test_ends),
	    CASE(test_lifted_with_its_row),
	    CASE(test_while_bans_move),
	    CASE(test_no_lock),
	    CASE(test_changed_since_the_look),
	    CASE(test_shorter_since_the_look),
	    CASE(test_entered_twice),
	    CASE(test_ended_since_the_look),
	    CASE(test_no_place_for_it),
	    CASE(test_many_at_once),
	    CASE(test_no_table),
	    CASE(test_during_a_trial_without_a_table),
	    CASE(test_during_a_trial),
	    CASE(test_a_policy_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
