/* SPDX-License-Identifier: GPL-2.0-only */
/* Another secret for the hash of a pacer at work, and what it is for its bans. */
#include "changed.h"

#include "ban.h"

/* --- another secret ------------------------------------------------------------------------- */

#define BANNING(of) "bans: 64\nrules:\n- name: a\n  ban: 50s\n  limits: [" of "]\n"

static uint32_t ban_some(uint32_t n)
{
	struct pacer_table table = {pacer.lines, pacer.n_lines};
	uint32_t banned = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct pacer_ban_ask q = {&table, &in_force()->bans, kernel_now_ns,
					  {0, 0}, {1, 1, {i + 1}},   0};

		q.hash = pacer_hash_words(control->secret[in_force()->secret], PACER_HASH_FAMILY4,
					  q.key.word, 4);
		banned += pacer_ban_add(&q, kernel_now_ns + 50 * SECOND) == PACER_BANNED;
	}
	return banned;
}

static uint32_t banned_by(uint32_t secret, uint32_t n)
{
	struct pacer_table table = {pacer.lines, pacer.n_lines};
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct pacer_ban_ask q = {&table, &in_force()->bans, kernel_now_ns,
					  {0, 0}, {1, 1, {i + 1}},   0};

		q.hash =
		    pacer_hash_words(control->secret[secret], PACER_HASH_FAMILY4, q.key.word, 4);
		found += pacer_ban_maybe(&table, q.bans, q.hash, q.now_ns) && pacer_ban_find(&q);
	}
	return found;
}

static bool moving_in_grace;

/* Until packets judged by the policy before are through, they may ban under the secret before. */
static void look_at_moving(void)
{
	moving_in_grace = in_force()->secret == 1 && in_force()->bans.moving;
}

/* Bans are where the new secret has them, and the limit's lines hold what they held. */
static void test_a_rotation_moves_bans_and_keeps_lines(void **unused)
{
	(void)unused;
	begin(SMALL BANNING(LARGE));
	memset(control->secret, 0x55, sizeof(control->secret));
	control->secret[0][PACER_HASH_FAMILY4] = 7;
	memset(&pacer.lines[in_force()->rule[0].limiter[0].base], DIRT,
	       compile_limiter_lines(&in_force()->rule[0].limiter[0]) * sizeof(*pacer.lines));
	assert_int_equal(ban_some(3), 3);
	grace_hook = look_at_moving;
	assert_int_equal(change_rotate(&pacer, &plan, &error), 0);
	assert_true(moving_in_grace && in_force()->secret == 1);
	assert_int_equal(in_force()->bans.moving, 0);
	assert_int_equal(banned_by(1, 3), 3);
	assert_int_equal(in_force()->rule[0].n_limiters, 2);
	assert_int_equal(in_force()->rule[0].limiter[1].secret, 0);
	assert_limiter(&in_force()->rule[0].limiter[0], DIRT);
	assert_int_equal(change_rotate(&pacer, &plan, &error), -1);
	assert_non_null(strstr(error.text, "needed for another"));
	grace_hook = NULL;
	kernel_now_ns += 60 * SECOND;
	assert_int_equal(change_rotate(&pacer, &plan, &error), 0);
}

/* A table that is full: what would have to move waits, and is asked for under both secrets. */
static void test_bans_that_wait_for_room(void **unused)
{
	uint32_t waited = 0;

	for (uint32_t i = 0; i < 20; i++) {
		begin(SMALL "bans: 8\nrules:\n- name: a\n  ban: 50s\n  limits: [" LARGE "]\n");
		for (uint32_t k = 0; k < PACER_SECRETS; k++)
			control->secret[0][k] = 0x9e3779b97f4a7c15ull * (i + k + 1);
		assert_int_equal(ban_some(60), 8);
		assert_int_equal(change_rotate(&pacer, &plan, &error), 0);
		assert_int_equal(in_force()->bans.moving, banned_by(1, 60) < 8);
		assert_true(banned_by(0, 60) + banned_by(1, 60) >= 8);
		waited += in_force()->bans.moving;
		end(unused);
	}
	assert_in_range(waited, 10, 20); /* of 256, one does not */
}

static void ban_by_the_old_secret(void)
{
	uint32_t secret = in_force()->secret;

	in_force()->secret = 0;
	assert_int_equal(ban_some(3), 3);
	in_force()->secret = secret;
}

/* What was cut off before the bans had moved is taken up by the next change, whatever it is: when
 * the last packet is through that may ban under the secret before.
 */
static void test_a_rotation_cut_off_is_taken_up(void **unused)
{
	(void)unused;
	begin(SMALL BANNING(LARGE));
	for (uint32_t k = 0; k < 2 * PACER_SECRETS; k++)
		control->secret[k / PACER_SECRETS][k % PACER_SECRETS] =
		    0x9e3779b97f4a7c15ull * (k + 1);
	in_force()->secret = in_force()->rule[0].limiter[0].secret = 1;
	in_force()->bans.moving = 1;
	grace_hook = ban_by_the_old_secret;
	graces = 0;
	assert_int_equal(banned_by(0, 3) + banned_by(1, 3), 0);
	change_to(SMALL BANNING(LARGE ", " TO_DST));
	assert_true(graces > 0);
	assert_int_equal(in_force()->bans.moving, 0);
	assert_int_equal(banned_by(1, 3), 3);
}

/* Where nothing but bans waits for the packets of before, a wait that fails is told, too. */
static void test_a_rotation_of_bans_alone_is_cut_off(void **unused)
{
	(void)unused;
	begin(SMALL "bans: 64\nrules:\n- {name: a, verdict: drop}\n");
	graces = 0;
	grace_hook = refuse_after_it;
	assert_int_equal(change_rotate(&pacer, &plan, &error), CHANGE_LASTS);
	grace_hook = NULL;
	kernel_refuses = 0;
	assert_int_equal(in_force()->secret, 1);
	assert_int_equal(in_force()->bans.moving, 1);
	change_to(SMALL "bans: 64\nrules:\n- {name: a, verdict: drop}\n");
	assert_int_equal(in_force()->bans.moving, 0);
}

/* Those that waited move before the next rotation, which is not refused for them. */
static void test_bans_that_waited_do_not_wait_again(void **unused)
{
	(void)unused;
	begin(SMALL BANNING(LARGE));
	in_force()->secret = in_force()->rule[0].limiter[0].secret = 1;
	in_force()->bans.moving = 1;
	if (change_rotate(&pacer, &plan, &error))
		fail_msg("%s", error.text);
	assert_int_equal(in_force()->secret, 0);
	assert_int_equal(in_force()->bans.moving, 0);
}

/* One that was cut off before its limits were timed is timed then, and not refused for that. */
static void test_a_rotation_after_one_cut_off(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	assert_int_equal(change_rotate(&pacer, &plan, &error), 0);
	assert_true(in_force()->rule[0].limiter[1].until_ns);
	in_force()->rule[0].limiter[1].until_ns = COMPILE_UNTIL_SET;
	assert_int_equal(change_rotate(&pacer, &plan, &error), -1);
	assert_non_null(strstr(error.text, "needed for another"));
}

/* What it left takes a value on trial in the trial alone, which reads the same entries. */
static void test_a_value_on_trial_after_a_rotation(void **unused)
{
	const struct pacer_rule *rule;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	assert_int_equal(change_rotate(&pacer, &plan, &error), 0);
	try_out(SMALL RULE("{key: src, packets: 4, window: 1s, entries: 64}"));
	rule = &in_force()->rule[0];
	assert_int_equal(rule->limiter[1].window.limit, 4);
	assert_int_equal(rule_before()->limiter[1].window.limit, 9);
	for (uint32_t k = 0; k < 2; k++)
		assert_int_equal(rule->limiter[k].base, rule_before()->limiter[k].base);
	assert_true(rule->limiter[1].generation != rule_before()->limiter[1].generation);
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_a_rotation_moves_bans_and_keeps_lines),
	    CASE(test_bans_that_wait_for_room),
	    CASE(test_a_rotation_cut_off_is_taken_up),
	    CASE(test_bans_that_waited_do_not_wait_again),
	    CASE(test_a_rotation_of_bans_alone_is_cut_off),
	    CASE(test_a_rotation_after_one_cut_off),
	    CASE(test_a_value_on_trial_after_a_rotation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
