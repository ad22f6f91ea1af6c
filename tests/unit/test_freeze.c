/* SPDX-License-Identifier: GPL-2.0-only */
/* A pacer that stands still for a save, and what becomes of one that stays so. */
#include "changed.h"

#include "live/freeze.h"
#include "rule.h"
#include "short.h"

/* --- frozen for a save ---------------------------------------------------------------------- */

static void begin_to_freeze(void)
{
	begin("allow: [192.0.2.1]\n" SMALL RULE(WINDOW) POOL("veth1"));
	change_to("allow: [192.0.2.1]\n" SMALL RULE(WINDOW) POOL("veth1"));
	graces = 0;
}

static void refuse_the_next(void)
{
	kernel_refuses = 2;
}

/* No limit lets anything through; the allow-list goes on; it ends by itself. */
static void test_frozen(void **unused)
{
	uint32_t before, frozen;

	(void)unused;
	begin_to_freeze();
	before = copies_in_force(&pacer);
	assert_int_equal(freeze(&pacer, &error), 0);
	frozen = copies_in_force(&pacer);
	assert_int_equal(frozen, before ^ 1);
	assert_int_equal(graces, 2);
	assert_int_equal(in_force()->rule[0].n_limiters, 0);
	assert_int_equal(in_force()->rule[0].says, PACER_SAYS_DENY);
	assert_int_equal(in_force()->rule[0].over, PACER_OVER_DROP); /* a pool would take it */
	assert_non_null(allowed_in(frozen, 1));
	kernel_now_ns += FREEZE_NS - 1;
	assert_int_equal(freeze_longer(&pacer, &error), 0);
	kernel_now_ns += FREEZE_NS - 1;
	assert_int_equal(copies_in_force(&pacer), frozen);
	kernel_now_ns++;
	assert_int_equal(copies_in_force(&pacer), before);
	assert_int_equal(freeze_longer(&pacer, &error), -1);
	assert_string_equal(error.text, "eth0: it took too long, and packets have been let through "
					"again meanwhile: try again");
	assert_int_equal(copies_in_force(&pacer), before);
	/* between one look at the clock and the next */
	assert_int_equal(freeze(&pacer, &error), 0);
	kernel_now_ns += FREEZE_NS - 1;
	clock_step_ns = 1;
	assert_int_equal(freeze_longer(&pacer, &error), -1);
	clock_step_ns = 0;
}

/* Whoever froze it was killed since: a change does not wait for the end of that. */
static void test_changed_where_it_was_left_frozen(void **unused)
{
	uint64_t at_ns;

	(void)unused;
	begin_to_freeze();
	assert_int_equal(freeze(&pacer, &error), 0);
	at_ns = kernel_now_ns;
	change_to(SMALL RULE(TO_DST));
	assert_true(kernel_now_ns == at_ns);
	assert_int_equal(in_force()->rule[0].says, PACER_SAYS_LIMITS);
}

/* Nor in the largest table, which has an entry for every number. */
static void test_frozen_of_the_largest_table(void **unused)
{
	struct pacer_state state;
	struct pacer_walk w = {
	    .state = &state, .now_ns = 2000, .pkt = {.family = PACER_FAMILY_4, .len_bytes = 100}};
	struct pacer_line first;

	(void)unused;
	begin_to_freeze();
	state = (struct pacer_state){.secret = control->secret[0]};
	pacer.n_lines = PACER_LINES_MAX;
	pacer.lines[0].head_ns = 1000;
	first = pacer.lines[0];
	assert_int_equal(freeze(&pacer, &error), 0);
	state.table = (struct pacer_table){pacer.lines, PACER_LINES_MAX};
	state.policy = in_force();
	assert_int_equal(pacer_outcome_reason(pacer_judge_rule(&w)), PACER_DENY_VERDICT);
	assert_memory_equal(&pacer.lines[0], &first, sizeof(first));
	assert_int_equal(in_force()->rule[0].brief.shape & PACER_SHORT_KIND, PACER_SHORT_VERDICT);
}

#define POOLING                                                                               \
	SMALL "else: pool p\nrules:\n"                                                        \
	      "- {name: v, match: {proto: udp}, verdict: pool p}\n"                           \
	      "- {name: d, match: {proto: tcp, dport: 22}, verdict: pass}\n"                  \
	      "- name: s\n  match: {proto: tcp, dport: 53}\n  over: pass\n  limits: [" WINDOW \
	      "]\n"                                                                           \
	      "- name: l\n  match: {proto: tcp}\n  limits: [" WINDOW "]\n" POOL("veth1")

/* No target gets a packet that is not in the file; all else is said as before. */
static void test_frozen_pools(void **unused)
{
	uint32_t before;

	(void)unused;
	begin(POOLING);
	before = copies_in_force(&pacer);
	assert_int_equal(in_force()->rule[0].over, PACER_OVER_POOL);
	assert_int_equal(in_force()->else_over, PACER_OVER_POOL);
	assert_int_equal(freeze(&pacer, &error), 0);
	assert_int_not_equal(copies_in_force(&pacer), before);
	assert_int_equal(in_force()->rule[0].says, PACER_SAYS_DENY);
	assert_int_equal(in_force()->rule[0].over, PACER_OVER_DROP);
	assert_int_equal(in_force()->rule[1].says, PACER_SAYS_PASS);
	assert_int_equal(in_force()->rule[2].over, PACER_OVER_PASS);
	assert_int_equal(in_force()->rule[3].over, PACER_OVER_DROP);
	assert_int_equal(in_force()->else_says, PACER_SAYS_DENY);
	assert_int_equal(in_force()->else_over, PACER_OVER_DROP);
	thaw(&pacer);
	assert_int_equal(in_force()->rule[0].over, PACER_OVER_POOL);
	assert_int_equal(in_force()->else_over, PACER_OVER_POOL);
}

/* Whatever fails, the policy before is in force, and nothing waits to be confirmed. */
static void not_frozen(uint32_t before, const char *says)
{
	assert_int_equal(freeze(&pacer, &error), -1);
	assert_non_null(strstr(error.text, says));
	assert_int_equal(copies_in_force(&pacer), before);
	assert_int_equal(copies_pending_ns(&pacer), 0);
	assert_int_equal(in_force()->rule[0].over, PACER_OVER_POOL);
	kernel_refuses = 0;
	grace_hook = NULL;
	kernel_fails_at = 0;
}

static void test_not_frozen(void **unused)
{
	const struct allow_entry listed = entry(1, 0);
	uint32_t before;

	(void)unused;
	begin_to_freeze();
	before = copies_in_force(&pacer);
	kernel_refuses = 2;
	not_frozen(before, "cannot tell when its CPUs are done");
	grace_hook = refuse_the_next;
	not_frozen(before, "cannot tell when its CPUs are done");
	assert_int_equal(allow_del(&pacer, &listed.prefix, &error), 0); /* the copies differ */
	kernel_changes = 0;
	kernel_fails_at = 1;
	not_frozen(before, "allow-list cannot be written");
	assert_int_equal(freeze(&pacer, &error), 0);
	thaw(&pacer);
	assert_int_equal(in_force()->rule[0].over, PACER_OVER_POOL);
	try_out("allow: [192.0.2.1]\n" SMALL RULE(WINDOW));
	assert_int_equal(freeze(&pacer, &error), -1);
	assert_non_null(strstr(error.text, "a policy waits to be confirmed"));
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_frozen),
	    CASE(test_changed_where_it_was_left_frozen),
	    CASE(test_frozen_of_the_largest_table),
	    CASE(test_frozen_pools),
	    CASE(test_not_frozen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
