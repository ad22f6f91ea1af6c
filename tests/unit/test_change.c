/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a change of policy clears, keeps and times, in a kernel made of memory: when it does so is
 * seen by what befalls within its grace periods.
 */
#include "changed.h"

#include "ban.h"
#include "live/draining.h"
#include "live/fleet_shares.h"

/* --- a fleet's shares ----------------------------------------------------------------------- */

#define FLEET(store, name)                                                                        \
	"fleet: {store: [" store "], name: " name "}\n"                                           \
	"rules:\n- name: a\n  limits: [{key: src, packets: 160, window: 1s, entries: 64, fleet: " \
	"yes}]\n"

/* What a host has in one fleet, its reserve too, is nothing in another, or in none. */
static void test_another_fleet_has_no_shares(void **unused)
{
	static const char *const other[] = {
	    SMALL FLEET("\"http://a:1\"", "two"), SMALL FLEET("\"http://b:1\"", "one"),
	    SMALL RULE(WINDOW), SMALL FLEET("\"http://a:1\"", "one")};

	(void)unused;
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		const bool same = i == 3;
		const struct fleet_held told = {
		    .units = 80, .floor = 10, .until_ns = UINT64_MAX / 2};
		struct fleet_limit limit[PACER_SHARES];
		struct fleet_held held;

		(void)end(NULL);
		begin(SMALL FLEET("\"http://a:1\"", "one"));
		assert_int_equal(fleet_limits(&pacer, limit), 1);
		assert_int_equal(fleet_hold(&pacer, limit, &told, &error), 0);
		change_to(other[i]);
		held = fleet_held(&pacer, limit);
		assert_int_equal(held.is, same);
		assert_int_equal(held.floor, same ? 10 : 0);
		change_to(SMALL FLEET("\"http://a:1\"", "two"));
		assert_false(fleet_held(&pacer, limit).is);
	}
}

/* What the agent of the fleet in force has told packets of its first limit. */
static void tell(struct fleet_limit *limit)
{
	const struct fleet_held told = {.units = 160, .floor = 10, .until_ns = UINT64_MAX / 2};
	struct fleet_limit limits[PACER_SHARES];

	assert_true(fleet_limits(&pacer, limits) > 0);
	*limit = limits[0];
	assert_int_equal(fleet_hold(&pacer, limit, &told, &error), 0);
}

/* Any floor: who goes on by another pacer looks for its own (live/fleet_reserve.h). */
static bool has_floors(void)
{
	for (uint32_t i = 0; i < PACER_SHARES; i++)
		if (pacer.control->share[i].floor)
			return true;
	return false;
}

/* It takes the reserve of the fleet before once that cannot come back. */
static void test_a_trial_of_no_fleet(void **unused)
{
	struct fleet_limit limit;

	(void)unused;
	for (int confirmed = 0; confirmed < 2; confirmed++) {
		(void)end(NULL);
		begin(SMALL FLEET("\"http://a:1\"", "one"));
		tell(&limit);
		try_out(SMALL RULE(WINDOW));
		assert_true(has_floors());
		if (confirmed)
			assert_int_equal(change_confirm(&pacer, &error), 0);
		kernel_now_ns += TRIAL_NS;
		assert_int_equal(change_confirm(&pacer, &error),
				 -1); /* it has given way, or stays */
		assert_int_equal(fleet_held(&pacer, &limit).floor, confirmed ? 0 : 10);
		assert_int_equal(has_floors(), !confirmed);
	}
	(void)end(NULL);
	begin(SMALL FLEET("\"http://a:1\"", "one"));
	tell(&limit);
	try_out(SMALL FLEET("\"http://a:1\"", "one") "mode: monitor\n");
	assert_int_equal(change_confirm(&pacer, &error), 0);
	assert_int_equal(fleet_held(&pacer, &limit).floor, 10);
}

/* It may have been told by an agent that was killed, as of a trial that gave way to this policy. */
static void test_what_was_told_of_a_trial_beside_no_fleet(void **unused)
{
	static const char *const next[] = {SMALL RULE(WINDOW),
					   SMALL FLEET("\"http://a:1\"", "one")};
	struct fleet_limit limit;

	(void)unused;
	for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
		(void)end(NULL);
		begin(SMALL RULE(WINDOW));
		try_out(SMALL FLEET("\"http://a:1\"", "one"));
		tell(&limit);
		kernel_now_ns += TRIAL_NS;
		assert_true(has_floors());
		change_to(next[i]);
		assert_false(has_floors());
	}
}

/*
 * A trial gives way by the packets' clock, while nobody takes back what its fleet's agent has told,
 * its reserve least of all: none of it is of the fleet that is in force again.
 */
static void test_a_trial_of_another_fleet_leaves_no_shares(void **unused)
{
	static const char *const tried[] = {FLEET("\"http://a:1\"", "two"),
					    FLEET("\"http://b:1\"", "one")};

	(void)unused;
	for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
		struct fleet_limit limit, limits[PACER_SHARES];
		char text[512];

		(void)end(NULL);
		begin(SMALL FLEET("\"http://a:1\"", "one"));
		snprintf(text, sizeof(text), SMALL "%s", tried[i]);
		assert_int_equal(change_apply(&pacer, text, NULL, TRIAL_NS, &plan, &error), 0);
		tell(&limit);
		assert_int_equal(fleet_held(&pacer, &limit).units, 160);
		kernel_now_ns += TRIAL_NS;
		assert_int_equal(fleet_limits(&pacer, limits), 1);
		assert_false(fleet_held(&pacer, &limits[0]).is);
		assert_int_equal(limits[0].at, limit.at);
		tell(&limit);
		assert_int_equal(fleet_held(&pacer, &limit).units, 160);
	}
}

/* What was tried beside the limit, or in a rule that was not there, is of that fleet from then on.
 */
static void test_what_a_trial_leaves_is_of_the_fleet(void **unused)
{
	static const char *const tried[] = {
	    SMALL "fleet: {store: [\"http://a:1\"], name: %s}\n"
		  "rules:\n- {name: a, limits: [{key: src, packets: 160, window: 1s, entries: 64, "
		  "fleet: yes}, {key: dst, packets: 160, window: 2s, entries: 64, fleet: yes}]}\n",
	    SMALL "fleet: {store: [\"http://a:1\"], name: %s}\n"
		  "rules:\n- {name: b, limits: [{key: src, packets: 160, window: 1s, entries: 64, "
		  "fleet: yes}]}\n",
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
		uint64_t left[2] = {0};

		for (int other = 0; other < 2; other++) {
			char text[512];

			(void)end(NULL);
			begin(SMALL FLEET("\"http://a:1\"", "one"));
			snprintf(text, sizeof(text), tried[i], other ? "two" : "one");
			assert_int_equal(change_apply(&pacer, text, NULL, TRIAL_NS, &plan, &error),
					 0);
			kernel_now_ns += TRIAL_NS;
			for (size_t r = 0; r < PACER_RULES_MAX; r++)
				for (size_t k = 0; k < in_force()->rule[r].n_limiters; k++)
					if (in_force()->rule[r].limiter[k].until_ns)
						left[other] =
						    in_force()->rule[r].limiter[k].share_id;
		}
		assert_true(left[0] && left[0] == left[1]);
	}
}

/*
 * Nobody tells a share of what a trial of a fleet leaves in a policy of none, in a rule of it or in
 * one that it lacks: it goes on by all of its value, as a limit of one host, and denies nothing
 * else.
 */
static void test_a_trial_of_a_fleet_leaves_limits_of_one_host(void **unused)
{
	static const char *const old[] = {SMALL RULE(TO_DST),
					  SMALL "rules:\n- name: b\n  limits: [" TO_DST "]\n"};

	(void)unused;
	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
		const struct pacer_limiter *left = NULL;

		(void)end(NULL);
		begin(old[i]);
		assert_int_equal(change_apply(&pacer, SMALL FLEET("\"http://a:1\"", "one"), NULL,
					      TRIAL_NS, &plan, &error),
				 0);
		assert_true(in_force()->rule[0].limiter[0].kind & PACER_LIMITER_FLEET);
		kernel_now_ns += TRIAL_NS;
		for (size_t r = 0; r < PACER_RULES_MAX; r++)
			for (size_t k = 0; k < in_force()->rule[r].n_limiters; k++)
				if (in_force()->rule[r].limiter[k].until_ns)
					left = &in_force()->rule[r].limiter[k];
		assert_non_null(left);
		assert_int_equal(left->kind, PACER_LIMITER_WINDOW);
		assert_int_equal(left->share_id, 0);
		assert_int_equal(left->window.limit, 160);
		assert_true(left->until_ns > kernel_now_ns);
	}
}

/* --- what begins at zero -------------------------------------------------------------------- */

static void test_new_limits_begin_at_zero(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	soil();
	change_to(SMALL RULE(WINDOW ", " TO_DST));
	assert_limiter(&in_force()->rule[0].limiter[0], DIRT);
	assert_limiter(&in_force()->rule[0].limiter[1], 0);
}

static void test_new_throttles_begin_at_zero(void **unused)
{
	uint32_t kept, made;

	(void)unused;
	begin(SMALL RULE(USES));
	soil();
	change_to(SMALL RULE(USES) "- name: b\n  limits: [" USES "]\n");
	kept = in_force()->rule[0].limiter[0].base;
	made = in_force()->rule[1].limiter[0].base;
	assert_int_not_equal(kept, made);
	assert_throttle(kept, DIRT);
	assert_throttle(made, 0);
}

static void test_new_targets_begin_at_zero(void **unused)
{
	const struct pacer_pool *pool;

	(void)unused;
	begin(SMALL RULE(WINDOW) POOL("veth1"));
	soil();
	change_to(SMALL RULE(WINDOW) POOL("veth1, veth2"));
	pool = &in_force()->pool[0];
	assert_int_equal(pool->n, 2);
	assert_throttle(pool->state[0], DIRT);
	assert_throttle(pool->state[1], 0);
}

#define BANS(n) "  ban: 1s\nbans: " n "\n"

static void test_bans_that_move_begin_at_zero(void **unused)
{
	struct pacer_bans was;
	const struct pacer_bans *is;

	(void)unused;
	begin(SMALL RULE(WINDOW) BANS("64"));
	soil();
	was = in_force()->bans;
	change_to(SMALL RULE(WINDOW ", " TO_DST) BANS("64"));
	assert_memory_equal(&in_force()->bans, &was, sizeof(was));
	assert_lines(was.base, compile_ban_lines(&was), DIRT);
	memset(&pacer.lines[was.base], 0,
	       (uint64_t)was.sets * PACER_BAN_WAYS * sizeof(*pacer.lines));
	change_to(SMALL RULE(WINDOW ", " TO_DST) BANS("128"));
	is = &in_force()->bans;
	assert_int_not_equal(is->base, was.base);
	assert_lines(is->base, (uint64_t)is->sets * PACER_BAN_WAYS, 0);
	assert_lines(is->filter, is->filter_mask + 1, 0);
	assert_lines(was.filter, was.filter_mask + 1, DIRT); /* packets may be judged by it yet */
}

/* What is banned in a table on trial would be lost with it: none goes beside one of another size.
 */
static void test_a_trial_keeps_the_size_of_the_bans(void **unused)
{
	static const char *const first[] = {SMALL RULE(WINDOW) BANS("64"), SMALL RULE(WINDOW)};
	static const char larger[] = SMALL RULE(WINDOW) BANS("128");

	(void)unused;
	begin(first[0]);
	assert_int_equal(change_apply(&pacer, larger, NULL, TRIAL_NS, &plan, &error), -1);
	assert_non_null(strstr(error.text, "on trial the table keeps its size"));
	assert_int_equal(in_force()->bans.sets * PACER_BAN_WAYS, 64);
	assert_int_equal(change_apply(&pacer, first[1], NULL, TRIAL_NS, &plan, &error), 0);
	assert_int_equal(in_force()->bans.sets, 0);
	(void)end(NULL);
	begin(first[1]);
	assert_int_equal(change_apply(&pacer, larger, NULL, TRIAL_NS, &plan, &error), 0);
	assert_int_equal(in_force()->bans.sets * PACER_BAN_WAYS, 128);
}

static void test_new_rules_count_from_zero(void **unused)
{
	const struct pacer_rule *rule;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	soil();
	change_to(SMALL RULE(WINDOW) "- name: b\n  limits: [" WINDOW "]\n");
	rule = in_force()->rule;
	assert_bytes(kernel_value(KERNEL_COUNTS, &rule[0].counter),
		     KERNEL_CPUS * sizeof(struct pacer_counters), DIRT);
	assert_bytes(kernel_value(KERNEL_COUNTS, &rule[1].counter),
		     KERNEL_CPUS * sizeof(struct pacer_counters), 0);
}

/* --- when ----------------------------------------------------------------------------------- */

/* A packet that is judged by the policy before last writes to what that used, until the first grace
 * period is over.
 */
static void test_cleared_after_the_last_writer(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	grace_hook = soil;
	change_to(SMALL RULE(WINDOW ", " TO_DST ", " USES) BANS("128"));
	assert_int_equal(graces, 1);
	assert_limiter(&in_force()->rule[0].limiter[1], 0);
	assert_throttle(in_force()->rule[0].limiter[2].base, 0);
	assert_lines(in_force()->bans.base, compile_ban_lines(&in_force()->bans), 0);
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* The same where membarrier is forbidden, by a map of maps; the tool leaves no map open. */
static void test_cleared_after_the_last_writer_by_a_map(void **unused)
{
	int before = descriptors();

	(void)unused;
	begin(SMALL RULE(WINDOW));
	grace_hook = soil;
	kernel_refuses = 1;
	change_to(SMALL RULE(WINDOW ", " TO_DST ", " USES) BANS("128"));
	assert_int_equal(graces, 1);
	assert_limiter(&in_force()->rule[0].limiter[1], 0);
	assert_lines(in_force()->bans.base, compile_ban_lines(&in_force()->bans), 0);
	assert_int_equal(descriptors(), before);
}

/* Where nothing tells, nothing that a packet may still use is overwritten, and no policy changes.
 */
static void test_nothing_tells_of_the_last_writer(void **unused)
{
	struct pacer_policy before;

	(void)unused;
	begin(SMALL RULE(WINDOW) BANS("64"));
	before = *in_force();
	memset(pacer.lines, DIRT, pacer.n_lines * sizeof(struct pacer_line));
	kernel_refuses = 2;
	assert_int_equal(change_apply(&pacer, SMALL RULE(WINDOW ", " TO_DST ", " USES) BANS("128"),
				      NULL, 0, &plan, &error),
			 -1);
	assert_non_null(strstr(error.text, "cannot tell when its CPUs are done"));
	assert_int_equal(graces, 0);
	assert_memory_equal(in_force(), &before, sizeof(before));
	assert_bytes(pacer.lines, pacer.n_lines * sizeof(struct pacer_line), DIRT);
}

/* A packet that came before the change was put in force is judged, and counted, only now. */
static void judge_late(void)
{
	kernel_now_ns += JUDGING_NS;
}

static void judge_late_by_the_draining(void)
{
	if (graces == 2)
		assert_true(draining()->until_ns == COMPILE_UNTIL_SET);
	judge_late();
}

static void test_draining_last_from_the_last_packet_on(void **unused)
{
	uint64_t begun_ns;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	begun_ns = kernel_now_ns;
	grace_hook = judge_late_by_the_draining;
	change_to(SMALL RULE(TO_DST));
	assert_int_equal(graces, 2);
	assert_true(kernel_now_ns == begun_ns + 2 * JUDGING_NS);
	assert_true(draining()->until_ns == kernel_now_ns + compile_limiter_memory_ns(draining()));
}

/* What the coarse clock reads may be before its end for that long. */
static void test_draining_last_for_the_coarse_clock(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(SMALL RULE(TO_DST));
	control->resolution_ns = 4000000;
	kernel_now_ns = draining()->until_ns + control->resolution_ns;
	assert_false(draining_expired(&pacer, draining()));
	kernel_now_ns++;
	assert_true(draining_expired(&pacer, draining()));
}

/* The same of a pool's target that goes: what it got counts until it has cooled down. */
static void test_draining_targets_last_from_the_last_packet_on(void **unused)
{
	const struct pacer_draining *draining;
	uint32_t gone;

	(void)unused;
	begin(SMALL RULE(WINDOW) POOL("veth1, veth2"));
	gone = in_force()->pool[0].state[1];
	grace_hook = judge_late;
	change_to(SMALL RULE(WINDOW) POOL("veth1"));
	assert_int_equal(graces, 2);
	draining = &in_force()->draining[gone];
	assert_true(draining->memory_ns >= SECOND);
	assert_true(draining->until_ns == kernel_now_ns + draining->memory_ns);
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_another_fleet_has_no_shares),
	    CASE(test_a_trial_of_no_fleet),
	    CASE(test_what_was_told_of_a_trial_beside_no_fleet),
	    CASE(test_a_trial_of_another_fleet_leaves_no_shares),
	    CASE(test_what_a_trial_leaves_is_of_the_fleet),
	    CASE(test_a_trial_of_a_fleet_leaves_limits_of_one_host),
	    CASE(test_new_limits_begin_at_zero),
	    CASE(test_new_throttles_begin_at_zero),
	    CASE(test_new_targets_begin_at_zero),
	    CASE(test_bans_that_move_begin_at_zero),
	    CASE(test_a_trial_keeps_the_size_of_the_bans),
	    CASE(test_new_rules_count_from_zero),
	    CASE(test_cleared_after_the_last_writer),
	    CASE(test_cleared_after_the_last_writer_by_a_map),
	    CASE(test_nothing_tells_of_the_last_writer),
	    CASE(test_draining_last_from_the_last_packet_on),
	    CASE(test_draining_last_for_the_coarse_clock),
	    CASE(test_draining_targets_last_from_the_last_packet_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
