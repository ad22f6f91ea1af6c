/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a change of policy clears, keeps and times, in a kernel made of memory: when it does so is
 * seen by what befalls within its grace periods.
 */
#include "applied.h"
#include "kernel.h"

#include "change.h"

#define JUDGING_NS (5 * SECOND) /* how long a packet may be judged by what was in force */
#define DIRT	   0xa5

static struct attached pacer;
static struct pacer_control control;
static struct pacer_copy *copies;
static struct pacer_throttle_state *throttles;
static struct plan plan;

/* --- what else of the tools a change calls -------------------------------------------------- */

uint64_t loader_now(void)
{
	return kernel_now_ns;
}

uint64_t loader_resolution(void)
{
	return RESOLUTION;
}

bool loader_gone(const struct attached *attached)
{
	(void)attached;
	return false;
}

int targets_put(const struct target_maps *maps, uint32_t copy, const struct plan *wanted,
		struct policy_error *why)
{
	(void)maps;
	(void)copy;
	(void)wanted;
	(void)why;
	return 0;
}

int loader_cpus(struct policy_error *why)
{
	(void)why;
	return KERNEL_CPUS;
}

int samples_make(const struct sample_maps *maps, const struct pacer_sampling *sampling, int cpus,
		 struct samples_made *made, struct policy_error *why)
{
	(void)maps;
	(void)sampling;
	(void)cpus;
	(void)why;
	*made = (struct samples_made){false, false};
	return 0;
}

void samples_undo(const struct sample_maps *maps, const struct samples_made *made)
{
	(void)maps;
	(void)made;
}

/* --- a pacer at work ------------------------------------------------------------------------ */

static struct pacer_policy *in_force(void)
{
	return &copies[change_in_force(&pacer)].policy;
}

static void make_maps(void)
{
	kernel_map_new(KERNEL_COUNTS, sizeof(uint32_t),
		       KERNEL_CPUS * sizeof(struct pacer_counters));
	kernel_map_new(KERNEL_LEASES, sizeof(uint32_t),
		       KERNEL_CPUS * sizeof(struct pacer_throttle_lease));
	kernel_map_new(KERNEL_ALLOW4, sizeof(struct pacer_allow4),
		       sizeof(struct pacer_allow_value));
	kernel_map_new(KERNEL_ALLOW6, sizeof(struct pacer_allow6),
		       sizeof(struct pacer_allow_value));
}

/* Loaded with this policy, all that it does not use being as a pacer before left it. */
static void begin(const char *text)
{
	struct policy *policy = parse(text);

	kernel_now_ns = 100 * SECOND;
	graces = 0;
	grace_hook = NULL;
	host = (struct compile_host){RESOLUTION, kernel_now_ns, KERNEL_CPUS};
	copies = calloc(2, sizeof(*copies));
	throttles = calloc(PACER_THROTTLES, sizeof(*throttles));
	assert_true(copies && throttles);
	assert_int_equal(compile_policy(policy, NULL, &host, &copies[0].policy, &plan, &error), 0);
	policy_free(policy);
	memcpy(copies[0].text, text, strlen(text));
	control = (struct pacer_control){.resolution_ns = RESOLUTION,
					 .secret_ready = PACER_SECRET_OF_TOOLS};
	make_maps();
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
	make_maps();
	free(pacer.lines);
	free(copies);
	free(throttles);
	pacer.lines = NULL;
	copies = NULL;
	throttles = NULL;
	return 0;
}

static void change_to(const char *text)
{
	if (change_apply(&pacer, text, 0, &plan, &error))
		fail_msg("%d: %s", error.line, error.text);
}

/* All memory of limits, throttles and leases, whoever uses it. */
static void soil(void)
{
	uint8_t lease[KERNEL_CPUS * sizeof(struct pacer_throttle_lease)];
	uint8_t count[KERNEL_CPUS * sizeof(struct pacer_counters)];

	memset(lease, DIRT, sizeof(lease));
	memset(count, DIRT, sizeof(count));
	memset(pacer.lines, DIRT, pacer.n_lines * sizeof(struct pacer_line));
	memset(throttles, DIRT, PACER_THROTTLES * sizeof(*throttles));
	for (uint32_t i = 0; i < PACER_THROTTLES; i++)
		assert_int_equal(bpf_map_update_elem(KERNEL_LEASES, &i, lease, 0), 0);
	for (uint32_t i = 0; i < PACER_COUNTERS_MAX; i++)
		assert_int_equal(bpf_map_update_elem(KERNEL_COUNTS, &i, count, 0), 0);
}

/* Every byte is this. */
static void assert_bytes(const void *from, size_t n, uint8_t byte)
{
	const uint8_t *p = from;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(p[i], byte);
}

static void assert_lines(uint64_t base, uint64_t lines, uint8_t byte)
{
	assert_true(lines > 0 && base + lines <= pacer.n_lines);
	assert_bytes(&pacer.lines[base], lines * sizeof(*pacer.lines), byte);
}

static void assert_tier(const struct pacer_tier *t, uint8_t byte)
{
	assert_lines(t->base, compile_tier_lines(t), byte);
}

/* A throttle's state, and what each CPU has leased of it. */
static void assert_throttle(uint32_t index, uint8_t byte)
{
	assert_bytes(&throttles[index], sizeof(*throttles), byte);
	assert_bytes(kernel_value(KERNEL_LEASES, &index),
		     KERNEL_CPUS * sizeof(struct pacer_throttle_lease), byte);
}

#define SMALL	 "memory: 1M\nclock: exact\n"
#define WINDOW	 "{key: src, packets: 9, window: 1s, entries: 64}"
#define TO_DST	 "{key: dst, packets: 5, window: 2s, entries: 64}"
#define USES	 "{key: all, uses: 9, cooldown: 1s, max_cooldown: 2s, threshold: 9}"
#define RULE(of) "rules:\n- name: a\n  limits: [" of "]\n"

/* --- what begins at zero -------------------------------------------------------------------- */

static void test_new_limits_begin_at_zero(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	soil();
	change_to(SMALL RULE(WINDOW ", " TO_DST));
	assert_tier(&in_force()->rule[0].tier[0], DIRT);
	assert_tier(&in_force()->rule[0].tier[1], 0);
}

static void test_new_throttles_begin_at_zero(void **unused)
{
	uint32_t kept, made;

	(void)unused;
	begin(SMALL RULE(USES));
	soil();
	change_to(SMALL RULE(USES) "- name: b\n  limits: [" USES "]\n");
	kept = in_force()->rule[0].tier[0].base;
	made = in_force()->rule[1].tier[0].base;
	assert_int_not_equal(kept, made);
	assert_throttle(kept, DIRT);
	assert_throttle(made, 0);
}

#define POOL(of)                                                                         \
	"  over: pool p\npools:\n- {name: p, targets: [" of "], each: 9, cooldown: 1s, " \
	"max_cooldown: 2s, threshold: 9}\n"

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
	change_to(SMALL RULE(WINDOW ", " TO_DST) BANS("128"));
	is = &in_force()->bans;
	assert_int_not_equal(is->base, was.base);
	assert_lines(is->base, (uint64_t)is->sets * PACER_BAN_WAYS, 0);
	assert_lines(is->filter, is->filter_mask + 1, 0);
	assert_lines(was.base, compile_ban_lines(&was), DIRT); /* packets may be judged by it yet */
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
	begin(SMALL RULE(WINDOW) BANS("64"));
	grace_hook = soil;
	change_to(SMALL RULE(WINDOW ", " TO_DST ", " USES) BANS("128"));
	assert_int_equal(graces, 1);
	assert_tier(&in_force()->rule[0].tier[1], 0);
	assert_throttle(in_force()->rule[0].tier[2].base, 0);
	assert_lines(in_force()->bans.base, compile_ban_lines(&in_force()->bans), 0);
}

static const struct pacer_tier *retired(void)
{
	for (size_t k = 0; k < in_force()->rule[0].n_tiers; k++)
		if (in_force()->rule[0].tier[k].until_ns)
			return &in_force()->rule[0].tier[k];
	fail_msg("nothing is retired");
	return NULL;
}

/* A packet that came before the change was put in force is judged, and counted, only now. */
static void judge_late(void)
{
	kernel_now_ns += JUDGING_NS;
}

static void judge_late_by_the_retired(void)
{
	if (graces == 2)
		assert_true(retired()->until_ns == COMPILE_UNTIL_SET);
	judge_late();
}

static void test_retired_last_from_the_last_packet_on(void **unused)
{
	uint64_t begun_ns;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	begun_ns = kernel_now_ns;
	grace_hook = judge_late_by_the_retired;
	change_to(SMALL RULE(TO_DST));
	assert_int_equal(graces, 2);
	assert_true(kernel_now_ns == begun_ns + 2 * JUDGING_NS);
	assert_true(retired()->until_ns == kernel_now_ns + compile_tier_memory_ns(retired()));
}

/* The same of a pool's target that goes: what it got counts until it has cooled down. */
static void test_former_targets_last_from_the_last_packet_on(void **unused)
{
	const struct pacer_former *former;

	(void)unused;
	begin(SMALL RULE(WINDOW) POOL("veth1, veth2"));
	grace_hook = judge_late;
	change_to(SMALL RULE(WINDOW) POOL("veth1"));
	assert_int_equal(graces, 2);
	former = &in_force()->former[0];
	assert_true(former->memory_ns >= SECOND);
	assert_true(former->until_ns == kernel_now_ns + former->memory_ns);
}

/* --- a trial, which gives way unless it is confirmed ---------------------------------------- */

#define TRIAL_NS (30 * SECOND)

static void try_out(const char *text)
{
	if (change_apply(&pacer, text, TRIAL_NS, &plan, &error))
		fail_msg("%d: %s", error.line, error.text);
	assert_true(change_pending(&pacer) == TRIAL_NS);
}

static const struct pacer_rule *rule_before(void)
{
	return &copies[change_in_force(&pacer) ^ 1].policy.rule[0];
}

/* With no tool's help: and what it admitted counts on beside the limits that come back. */
static void test_a_trial_gives_way(void **unused)
{
	const struct pacer_rule *rule;
	const struct pacer_tier *t;
	uint64_t end_ns;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	assert_true(in_force()->rule[0].plain);
	try_out(SMALL RULE(TO_DST));
	rule = rule_before();
	end_ns = kernel_now_ns + TRIAL_NS;
	kernel_now_ns = end_ns - 1;
	assert_ptr_not_equal(in_force()->rule, rule);
	kernel_now_ns = end_ns;
	assert_ptr_equal(in_force()->rule, rule);
	assert_int_equal(rule->n_tiers, 2);
	assert_false(rule->plain);
	t = &rule->tier[1];
	assert_int_equal(t->mask4[1], 0xffffffff);
	assert_true(t->until_ns == end_ns + compile_tier_memory_ns(t));
}

/* The limit that was just retired is in the policy tried: should that give way, it is needed for as
 * long again.
 */
static void test_a_trial_brings_back_what_is_retired(void **unused)
{
	const struct pacer_tier *t;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(SMALL RULE(TO_DST));
	t = retired();
	assert_true(t->until_ns == kernel_now_ns + compile_tier_memory_ns(t));
	try_out(SMALL RULE(TO_DST ", " WINDOW));
	assert_int_equal(rule_before()->n_tiers, 2);
	t = &rule_before()->tier[1];
	assert_true(t->until_ns == kernel_now_ns + TRIAL_NS + compile_tier_memory_ns(t));
}

static void test_a_trial_is_confirmed(void **unused)
{
	const struct pacer_rule *rule;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	try_out(SMALL RULE(TO_DST));
	rule = in_force()->rule;
	kernel_now_ns += TRIAL_NS - 1;
	assert_int_equal(change_confirm(&pacer, &error), 0);
	kernel_now_ns += TRIAL_NS;
	assert_ptr_equal(in_force()->rule, rule);
	assert_int_equal(change_pending(&pacer), 0);
	assert_int_equal(change_confirm(&pacer, &error), -1);
}

static void test_a_trial_is_confirmed_too_late(void **unused)
{
	const struct pacer_rule *rule;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	rule = in_force()->rule;
	try_out(SMALL RULE(TO_DST));
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(change_confirm(&pacer, &error), -1);
	assert_ptr_equal(in_force()->rule, rule);
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_new_limits_begin_at_zero),
	    CASE(test_new_throttles_begin_at_zero),
	    CASE(test_new_targets_begin_at_zero),
	    CASE(test_bans_that_move_begin_at_zero),
	    CASE(test_new_rules_count_from_zero),
	    CASE(test_cleared_after_the_last_writer),
	    CASE(test_retired_last_from_the_last_packet_on),
	    CASE(test_former_targets_last_from_the_last_packet_on),
	    CASE(test_a_trial_gives_way),
	    CASE(test_a_trial_brings_back_what_is_retired),
	    CASE(test_a_trial_is_confirmed),
	    CASE(test_a_trial_is_confirmed_too_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
