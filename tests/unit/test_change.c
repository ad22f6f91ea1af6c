/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a change of policy clears, keeps and times, in a kernel made of memory: when it does so is
 * seen by what befalls within its grace periods.
 */
#include "paced.h"

#include "ban.h"
#include "live/allow.h"
#include "live/bans.h"
#include "live/change.h"
#include "live/copies.h"
#include "live/draining.h"
#include "live/fleet_shares.h"
#include "live/freeze.h"
#include "live/host.h"
#include "live/in_shadow.h"
#include "live/secret.h"
#include "live/successor.h"
#include "live/trial.h"
#include "plan/resting.h"
#include "record.h"
#include "rule.h"
#include "short.h"

#define JUDGING_NS (5 * SECOND) /* how long a packet may be judged by what was in force */
#define DIRT	   0xa4

/* --- a pacer at work ------------------------------------------------------------------------ */

static struct pacer_policy *in_force(void)
{
	return &copies[copies_in_force(&pacer)].policy;
}

/* Loaded with this policy, all that it does not use being as a pacer before left it. */
static void begin(const char *text)
{
	graces = 0;
	grace_hook = NULL;
	kernel_refuses = 0;
	kernel_map_of_maps = -1;
	put_on(text);
}

/* As `apply` reads them. */
static const struct set_texts no_sets;

static void change_to(const char *text)
{
	if (change_apply(&pacer, text, &no_sets, 0, &plan, &error))
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

static void assert_limiter(const struct pacer_limiter *t, uint8_t byte)
{
	assert_lines(t->base, compile_limiter_lines(t), byte);
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

/* --- a fleet's shares ----------------------------------------------------------------------- */

#define FLEET(store, name)                                                                        \
	"fleet: {store: [" store "], name: " name "}\n"                                           \
	"rules:\n- name: a\n  limits: [{key: src, packets: 160, window: 1s, entries: 64, fleet: " \
	"yes}]\n"

/*
 * What a host has in one fleet, its reserve too, is nothing in another. A policy of none takes
 * nothing away: it may give way.
 */
static void test_another_fleet_has_no_shares(void **unused)
{
	static const char *const other[] = {
	    SMALL FLEET("\"http://a:1\"", "two"), SMALL FLEET("\"http://b:1\"", "one"),
	    SMALL RULE(WINDOW), SMALL FLEET("\"http://a:1\"", "one")};

	(void)unused;
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		const bool same = i >= 2;
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

#define FLEET_TRIAL_NS (30 * SECOND)

/* What the agent of the fleet in force has told packets of its first limit. */
static void tell(struct fleet_limit *limit)
{
	const struct fleet_held told = {.units = 160, .floor = 10, .until_ns = UINT64_MAX / 2};
	struct fleet_limit limits[PACER_SHARES];

	assert_true(fleet_limits(&pacer, limits) > 0);
	*limit = limits[0];
	assert_int_equal(fleet_hold(&pacer, limit, &told, &error), 0);
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
		assert_int_equal(change_apply(&pacer, text, NULL, FLEET_TRIAL_NS, &plan, &error),
				 0);
		tell(&limit);
		assert_int_equal(fleet_held(&pacer, &limit).units, 160);
		kernel_now_ns += FLEET_TRIAL_NS;
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
			assert_int_equal(
			    change_apply(&pacer, text, NULL, FLEET_TRIAL_NS, &plan, &error), 0);
			kernel_now_ns += FLEET_TRIAL_NS;
			for (size_t r = 0; r < PACER_RULES_MAX; r++)
				for (size_t k = 0; k < in_force()->rule[r].n_limiters; k++)
					if (in_force()->rule[r].limiter[k].until_ns)
						left[other] =
						    in_force()->rule[r].limiter[k].share_id;
		}
		assert_true(left[0] && left[0] == left[1]);
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
	memset(&pacer.lines[was.base], 0,
	       (uint64_t)was.sets * PACER_BAN_WAYS * sizeof(*pacer.lines));
	change_to(SMALL RULE(WINDOW ", " TO_DST) BANS("128"));
	is = &in_force()->bans;
	assert_int_not_equal(is->base, was.base);
	assert_lines(is->base, (uint64_t)is->sets * PACER_BAN_WAYS, 0);
	assert_lines(is->filter, is->filter_mask + 1, 0);
	assert_lines(was.filter, was.filter_mask + 1, DIRT); /* packets may be judged by it yet */
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

static const struct pacer_limiter *draining(void)
{
	for (size_t k = 0; k < in_force()->rule[0].n_limiters; k++)
		if (in_force()->rule[0].limiter[k].until_ns)
			return &in_force()->rule[0].limiter[k];
	fail_msg("nothing is retired");
	return NULL;
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

/* --- a trial, which gives way unless it is confirmed ---------------------------------------- */

#define TRIAL_NS (30 * SECOND)

static void try_out(const char *text)
{
	if (change_apply(&pacer, text, &no_sets, TRIAL_NS, &plan, &error))
		fail_msg("%d: %s", error.line, error.text);
	assert_true(copies_pending_ns(&pacer) == TRIAL_NS);
}

static const struct pacer_rule *rule_before(void)
{
	return &copies[copies_in_force(&pacer) ^ 1].policy.rule[0];
}

/* What a target got on trial counts behind that, too, which does not have the target. */
static void test_a_trial_of_a_target(void **unused)
{
	const struct pacer_draining *draining;
	uint32_t state;

	(void)unused;
	begin(SMALL RULE(WINDOW) POOL("veth1"));
	try_out(SMALL RULE(WINDOW) POOL("veth1, veth2"));
	state = in_force()->pool[0].state[1];
	draining = &copies[copies_in_force(&pacer) ^ 1].policy.draining[state];
	assert_int_equal(draining->state, state);
	assert_int_equal(draining->target, in_force()->pool[0].target[1]);
	assert_true(draining->memory_ns >= SECOND);
	assert_true(draining->until_ns == kernel_now_ns + TRIAL_NS + draining->memory_ns);
}

/* What a killed change left without an end gets one, though the next one finds no room. */
static void test_an_end_for_what_was_cut_off(void **unused)
{
#define THREE_OF(key)                                        \
	"{key: " key ", packets: 9, window: 1s}, {key: " key \
	", packets: 9, window: 2s}, {key: " key ", packets: 9, window: 3s}"
	struct pacer_rule *rule;

	(void)unused;
	begin("memory: 9M\nclock: exact\n" RULE(THREE_OF("src")));
	change_to("memory: 9M\nclock: exact\n" RULE(THREE_OF("dst")));
	rule = &copies[copies_in_force(&pacer)].policy.rule[0];
	for (size_t k = 3; k < 6; k++)
		rule->limiter[k].until_ns = COMPILE_UNTIL_SET;
	assert_int_equal(change_apply(&pacer,
				      "memory: 9M\nclock: exact\n" RULE(THREE_OF("src+dst")), NULL,
				      0, &plan, &error),
			 -1);
	assert_non_null(strstr(error.text, "a rule holds up to 8 limits"));
	for (size_t k = 3; k < 6; k++)
		assert_in_range(rule->limiter[k].until_ns, 1, kernel_now_ns + 5 * SECOND);
#undef THREE_OF
}

/* The coarse clock's times are before the truth: nothing for an exact policy to go back to. */
static void test_a_trial_goes_by_the_exact_clock(void **unused)
{
#define COARSE "memory: 1M\nclock: coarse\n"
	(void)unused;
	begin(SMALL RULE("{key: src, gap: 50ms}"));
	try_out(COARSE RULE("{key: src, gap: 50ms}"));
	assert_true(in_force()->flags & PACER_CLOCK_EXACT);
	assert_int_equal(change_confirm(&pacer, &error), 0);
	change_to(COARSE RULE("{key: src, gap: 60ms}"));
	assert_false(in_force()->flags & PACER_CLOCK_EXACT);
	try_out(SMALL RULE("{key: src, gap: 50ms}"));
	assert_true(in_force()->flags & PACER_CLOCK_EXACT);
#undef COARSE
}

/* A gap that comes to a window goes with the trial: what it let through would count nowhere. */
static void test_a_gap_is_tried_beside_a_window(void **unused)
{
	static const char with_gap[] = SMALL RULE(WINDOW ", {key: src, gap: 50ms}");
	uint32_t base;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	base = in_force()->rule[0].limiter[0].base;
	try_out(with_gap);
	assert_int_not_equal(in_force()->rule[0].limiter[0].base, base);
	assert_int_equal(rule_before()->n_limiters, 2);
	assert_true(rule_before()->limiter[1].gap_ns);
	(void)end(NULL);
	begin(SMALL RULE(WINDOW));
	base = in_force()->rule[0].limiter[0].base;
	change_to(with_gap);
	assert_int_equal(in_force()->rule[0].limiter[0].base, base);
}

/* Every entry's word, as if its last packet had filled it under this generation; its key's tag. */
static void fill_words(const struct pacer_limiter *t, uint32_t generation)
{
	for (uint32_t i = 0; i < 2 * t->sets + t->shared; i++) {
		uint32_t at = t->base * PACER_LINE_UNITS + i * t->units;
		struct pacer_entry *entry =
		    &pacer.lines[at / PACER_LINE_UNITS].unit[at % PACER_LINE_UNITS].entry;

		entry->lock = (i + 1) << 16;
		entry->last = 9u << PACER_LAST_OFF | 5u << PACER_LAST_FULL | (generation + 1);
	}
}

/* How many entries say that of this generation, with all else as it was. */
static uint32_t speak(const struct pacer_limiter *t, uint32_t generation)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 2 * t->sets + t->shared; i++) {
		uint32_t at = t->base * PACER_LINE_UNITS + i * t->units;
		const struct pacer_entry *entry =
		    &pacer.lines[at / PACER_LINE_UNITS].unit[at % PACER_LINE_UNITS].entry;

		assert_int_equal(entry->lock, (i + 1) << 16);
		assert_int_equal(entry->last & ~PACER_LAST_GENERATION,
				 9u << PACER_LAST_OFF | 5u << PACER_LAST_FULL);
		n += (entry->last & PACER_LAST_GENERATION) == generation + 1;
	}
	return n;
}

/* An entry that was full is not full by another value, which gets a generation of its own; where
 * that was in use three values before, no entry speaks for it any more. The same value keeps its.
 */
static void test_a_value_has_its_generation(void **unused)
{
	static const char *const values[] = {"8", "9", "7", "7", "8", "9", "3"};
	const struct pacer_limiter *t;
	char text[256];

	(void)unused;
	begin(SMALL RULE("{key: src, packets: 5, window: 60s}"));
	t = &in_force()->rule[0].limiter[0];
	assert_int_equal(t->generation, 0);
	for (uint32_t i = 0, last = 0; i < ARRAY(values); i++) {
		bool same = i && !strcmp(values[i], values[i - 1]);
		uint32_t next = same ? last : (last + 1) % PACER_GENERATIONS, all;

		fill_words(t, next);
		all = speak(t, next);
		assert_true(all > 1);
		snprintf(text, sizeof(text), SMALL RULE("{key: src, packets: %s, window: 60s}"),
			 values[i]);
		change_to(text);
		t = &in_force()->rule[0].limiter[0];
		assert_int_equal(t->generation, next);
		assert_int_equal(in_force()->shape & PACER_SHORT_KIND, PACER_SHORT_NARROW);
		assert_true(in_force()->rule[0].brief.key == (next + 1ull) << 32);
		assert_int_equal(speak(t, next), same ? all : 0);
		last = next;
	}
}

/* So it is of each limit of each rule. */
static void test_each_value_has_its_generation(void **unused)
{
	static const char two[] = SMALL RULE(
	    "{key: src, packets: 5, window: 60s, entries: 8}, "
	    "{key: dst, packets: %u, window: 60s, entries: 8}") "- {name: z, limits: [{key: "
								"src+dst, packets: %u, window: "
								"60s, entries: 8}]}\n";
	char text[512];

	(void)unused;
	snprintf(text, sizeof(text), two, 5, 5);
	begin(text);
	for (uint32_t i = 0; i < 2; i++) {
		const struct pacer_limiter *t = &in_force()->rule[i].limiter[!i];

		fill_words(t, 1);
		assert_true(speak(t, 1) > 1);
		snprintf(text, sizeof(text), two, 8, 5 + 3 * i);
		change_to(text);
		t = &in_force()->rule[i].limiter[!i];
		assert_int_equal(t->generation, 1);
		assert_int_equal(speak(t, 1), 0);
	}
}

/* A packet that holds an entry holds up the change; for good, it ends it. */
static void test_an_entry_stays_held(void **unused)
{
	struct pacer_policy before;
	const struct pacer_limiter *t;

	(void)unused;
	begin(SMALL RULE("{key: src, packets: 5, window: 60s}"));
	t = &in_force()->rule[0].limiter[0];
	fill_words(t, 1); /* of three values ago */
	pacer.lines[t->base].unit[0].entry.lock |= PACER_LOCK_HELD;
	before = *in_force();
	assert_int_equal(change_apply(&pacer, SMALL RULE("{key: src, packets: 8, window: 60s}"),
				      NULL, 0, &plan, &error),
			 -1);
	assert_string_equal(error.text, "eth0: an entry stays held: is the machine overloaded? "
					"Try again");
	assert_memory_equal(in_force(), &before, sizeof(before));
}

/* With no tool's help: and what it admitted counts on beside the limits that come back. */
static void test_a_trial_gives_way(void **unused)
{
	const struct pacer_rule *rule;
	const struct pacer_limiter *t;
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
	assert_int_equal(rule->n_limiters, 2);
	assert_false(rule->plain);
	t = &rule->limiter[1];
	assert_int_equal(t->mask4[1], 0xffffffff);
	assert_true(t->until_ns == end_ns + compile_limiter_memory_ns(t));
}

static bool was_pending;

void __real_successor_free(struct successor *s);
void __wrap_successor_free(struct successor *s);

/* The first thing that takes time once a trial's limits count in the policy before. */
void __wrap_successor_free(struct successor *s)
{
	was_pending = copies_pending_ns(&pacer);
	__real_successor_free(s);
}

/* A tool that is killed there leaves no limits of a policy that never came into force. */
static void test_a_trial_is_in_force_at_once(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	was_pending = false;
	try_out(SMALL RULE(TO_DST));
	assert_true(was_pending);
}

/* The policy that comes back has a second limit then, which the short way would not ask. */
static void test_a_trial_ends_the_short_way(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(SMALL RULE("{key: src, packets: 8, window: 1s, entries: 64}"));
	assert_int_equal(in_force()->shape & PACER_SHORT_KIND, PACER_SHORT_NARROW);
	try_out(SMALL RULE(TO_DST));
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(in_force()->rule[0].n_limiters, 2);
	assert_int_equal(in_force()->shape & PACER_SHORT_KIND, PACER_SHORT_NONE);
}

/* The limit that was just draining is in the policy tried: should that give way, it is needed for
 * as long again.
 */
static void test_a_trial_brings_back_what_is_draining(void **unused)
{
	const struct pacer_limiter *t;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(SMALL RULE(TO_DST));
	t = draining();
	assert_true(t->until_ns == kernel_now_ns + compile_limiter_memory_ns(t));
	try_out(SMALL RULE(TO_DST ", " WINDOW));
	assert_int_equal(rule_before()->n_limiters, 2);
	t = &rule_before()->limiter[1];
	assert_true(t->until_ns == kernel_now_ns + TRIAL_NS + compile_limiter_memory_ns(t));
}

/* What drains, and the trial goes on with, comes back with the tighter value and the longer gap. */
static void test_what_drains_is_no_looser_after_a_trial(void **unused)
{
	static const struct {
		const char *was, *tried, *gap;
		uint64_t value; /* of the two, that comes back; a burst is a tick shorter */
	} cases[] = {
	    {WINDOW, "{key: src, packets: 5, window: 1s, entries: 64}", "100ms", 5},
	    {WINDOW, "{key: src, packets: 5, window: 1s, entries: 64}", "5s", 5},
	    {"{key: src, rate: 1/s, burst: 9}", "{key: src, rate: 1/s, burst: 5}", "100ms", 4},
	    {"{key: all, uses: 90, cooldown: 5s}", "{key: all, uses: 60, cooldown: 5s}", "100ms",
	     60},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		const struct pacer_limiter *t, *now_is;
		char text[512];

		snprintf(text, sizeof(text), "memory: 1M\nclock: coarse\n" RULE("%s"),
			 cases[i].was);
		begin(text);
		snprintf(text, sizeof(text), "memory: 1M\nclock: coarse\n" RULE("%s"), TO_DST);
		change_to(text);
		snprintf(text, sizeof(text),
			 "memory: 1M\nclock: coarse\n" RULE("%s, {key: src, gap: %s}"),
			 cases[i].tried, cases[i].gap);
		try_out(text);
		now_is = in_force()->rule[0].limiter;
		t = &rule_before()->limiter[1];
		while (now_is->kind != t->kind || now_is->base != t->base)
			now_is++;
		assert_int_equal(kind_of_limiter(t)->value(t), cases[i].value);
		assert_int_equal(t->generation, now_is->generation);
		assert_true(t->gap_ns == now_is->gap_ns && t->idle_ns == now_is->idle_ns);
		end(NULL);
	}
	begin(SMALL RULE(WINDOW));
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
	assert_int_equal(copies_pending_ns(&pacer), 0);
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

/* Its time passes after the look at whether it is pending. */
static void test_a_trial_ends_while_it_is_confirmed(void **unused)
{
	const struct pacer_rule *rule;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	rule = in_force()->rule;
	try_out(SMALL RULE(TO_DST));
	kernel_now_ns += TRIAL_NS - 1;
	clock_step_ns = 1;
	assert_int_equal(change_confirm(&pacer, &error), -1);
	clock_step_ns = 0;
	assert_non_null(strstr(error.text, "the time to confirm has passed and the policy before"));
	assert_ptr_equal(in_force()->rule, rule);
	assert_int_equal(copies_pending_ns(&pacer), 0);
}

/* Its time passes between one look at the clock and the next. */
static void begin_to_end(uint64_t looks)
{
	begin(SMALL RULE(WINDOW));
	try_out(SMALL RULE(TO_DST));
	kernel_now_ns += TRIAL_NS - looks;
	clock_step_ns = 1;
}

/* A policy that lapses as it is frozen does not stay. */
static void test_a_trial_ends_while_it_is_frozen(void **unused)
{
	(void)unused;
	for (uint64_t looks = 0; looks < 4; looks++) {
		const struct pacer_rule *tried;
		int result;

		begin_to_end(looks);
		tried = copies[copies_put_last(&pacer, &(uint64_t){0})].policy.rule;
		result = freeze(&pacer, &error);
		clock_step_ns = 0;
		if (!result)
			thaw(&pacer);
		else
			assert_non_null(strstr(error.text, "a policy waits to be confirmed"));
		kernel_now_ns += 2;
		assert_ptr_not_equal(in_force()->rule, tried);
		end(NULL);
	}
}

#define ROUGHLY "memory: 1M\nclock: coarse\n"

/*
 * As it gives way, so do CPUs' readings of the coarse clock reach its end, while the word has its
 * time: for a tick that stays, whoever changes something.
 */
static void test_a_change_outlasts_the_tick_after_a_trial(void **unused)
{
	static const struct {
		uint64_t since_ns, waits_ns;
	} cases[] = {{0, RESOLUTION}, {1, RESOLUTION - 1}, {RESOLUTION - 1, 1}, {RESOLUTION, 0}};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		uint64_t at_ns;

		begin(ROUGHLY RULE(WINDOW));
		try_out(ROUGHLY RULE(TO_DST));
		at_ns = kernel_now_ns += TRIAL_NS + cases[i].since_ns;
		change_to(ROUGHLY RULE(WINDOW ", " TO_DST));
		assert_int_equal(kernel_now_ns, at_ns + cases[i].waits_ns);
		end(NULL);
	}
	/* nor does one wait that ends a trial itself, or comes where there was none */
	begin(ROUGHLY RULE(WINDOW));
	change_to(ROUGHLY RULE(TO_DST));
	try_out(ROUGHLY RULE(WINDOW));
	assert_int_equal(change_confirm(&pacer, &error), 0);
	assert_int_equal(kernel_now_ns, 100 * SECOND);
}

/*
 * Of two limits one is lowered, and so grows as the trial ends, and the other one has another
 * value, or another time from packet to packet, that has counted nothing from before: neither goes
 * on.
 */
static void test_a_trial_the_other_way_round(void **unused)
{
#define BY_PORT "{key: src+dport, packets: "
#define GAPS	", window: 1s, entries: 64}, {key: src, gap: "
	static const struct {
		const char *was, *is;
		bool trial;
		uint32_t draining;
	} cases[] = {
	    {"{key: src, packets: 250, window: 1s}, " BY_PORT "25, window: 1s}",
	     "{key: src, packets: 25, window: 1s}, " BY_PORT "250, window: 1s}", true, 2},
	    {"{key: src, packets: 250" GAPS "20ms}", "{key: src, packets: 100" GAPS "5ms}", true,
	     1},
	    {"{key: src, packets: 100, window: 1s, entries: 64}",
	     "{key: src, packets: 200" GAPS "20ms}", false, 1},
	    {"{key: src, packets: 250" GAPS "20ms}", "{key: src, packets: 200" GAPS "30ms}", true,
	     0},
	    {"{key: src, packets: 50, window: 1s, entries: 64}", /* which rests */
	     "{key: src, packets: 250" GAPS "20ms}", false, 1},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		char text[512];

		snprintf(text, sizeof(text), SMALL RULE("%s"), cases[i].was);
		begin(text);
		if (i == ARRAY(cases) - 1)
			change_to(SMALL "rules:\n- name: a\n  verdict: drop\n");
		snprintf(text, sizeof(text), SMALL RULE("%s"), cases[i].is);
		if (cases[i].trial)
			try_out(text);
		else
			change_to(text);
		assert_int_equal(plan.n_draining, cases[i].draining);
		end(NULL);
	}
	begin(SMALL RULE(WINDOW));
#undef BY_PORT
#undef GAPS
}

/* The serial that somebody saw on trial is no other policy's: they are told apart by it alone. */
static void test_a_serial_comes_once(void **unused)
{
	uint64_t tried;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	try_out(SMALL RULE(TO_DST));
	tried = in_force()->serial;
	assert_int_equal(tried, 2);
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(in_force()->serial, 1);
	change_to(SMALL RULE(WINDOW ", " TO_DST));
	assert_int_equal(in_force()->serial, tried + 1);
}

/* Nor is it that of the policy that came back, once it is written anew by itself. */
static void test_a_serial_comes_once_after_a_tidy(void **unused)
{
	uint32_t copy;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	try_out(SMALL RULE(TO_DST));
	kernel_now_ns += 2 * TRIAL_NS; /* the trial's limit has expired */
	copy = copies_in_force(&pacer);
	change_tidy(&pacer);
	assert_int_not_equal(copies_in_force(&pacer), copy);
	assert_int_equal(in_force()->serial, 3);
	change_to(SMALL RULE(TO_DST));
	assert_int_equal(in_force()->serial, 4);
	kernel_now_ns += TRIAL_NS;
	copy = copies_in_force(&pacer);
	change_tidy(&pacer);
	assert_int_not_equal(copies_in_force(&pacer), copy);
	assert_int_equal(in_force()->serial, 4); /* it is the same policy */
}

/* A trial is not written anew: it would be in force for good, and nobody has confirmed it. */
static void test_a_trial_is_not_tidied(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	control->secret_ready = PACER_SECRET_OF_TOOLS;
	try_out(SMALL RULE(TO_DST));
	kernel_now_ns += TRIAL_NS / 2; /* what the trial retired has expired */
	assert_true(draining_any_expired(&pacer, in_force()));
	change_tidy(&pacer);
	assert_true(copies_pending_ns(&pacer) == TRIAL_NS / 2);
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(in_force()->serial, 1);
}

/* What a save left frozen is nobody's policy. */
static void test_what_is_frozen_is_not_confirmed(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	assert_int_equal(freeze(&pacer, &error), 0);
	assert_int_equal(change_confirm(&pacer, &error), -1);
	assert_string_equal(error.text, "eth0: no policy waits to be confirmed");
	assert_true(copies_pending_ns(&pacer) > 0);
}

/* A load that lapsed is known by its text, to the last letter. */
static void test_a_load_that_lapsed(void **unused)
{
	(void)unused;
	begin(LOAD_NOTHING);
	assert_true(load_trial_lapsed(&pacer));
	copies[0].text[2]++;
	assert_false(load_trial_lapsed(&pacer));
	strcpy(copies[0].text, LOAD_NOTHING " ");
	assert_false(load_trial_lapsed(&pacer));
}

/* --- what has expired ----------------------------------------------------------------------- */

#define SECONDS(n) "{key: src, packets: 9, window: " #n "s, entries: 64}"
#define FIVE	   SECONDS(1) ", " SECONDS(2) ", " SECONDS(3) ", " SECONDS(4) ", " SECONDS(5)
#define THREE	   SECONDS(6) ", " SECONDS(7) ", " SECONDS(8)
#define FOUR	   THREE ", " SECONDS(9)

/* The rate that comes back begins when what the trial's one let through is over: its burst is spent
 * then.
 */
static void test_a_trial_of_a_rate(void **unused)
{
	const struct pacer_limiter *tried;
	uint64_t end_ns;

	(void)unused;
	begin(SMALL RULE("{key: src, rate: 10/m, burst: 50}"));
	try_out(SMALL RULE("{key: src, rate: 20/m, burst: 50}"));
	tried = &in_force()->rule[0].limiter[0];
	end_ns = kernel_now_ns + TRIAL_NS + compile_limiter_memory_ns(tried);
	assert_int_equal(rule_before()->n_limiters, 2);
	assert_true(rule_before()->limiter[0].rate.begin_ns == end_ns);
	assert_true(rule_before()->limiter[1].until_ns == end_ns);
	/* and that of the trial when the one before is over */
	assert_int_equal(in_force()->rule[0].n_limiters, 2);
	assert_true(tried->rate.begin_ns == in_force()->rule[0].limiter[1].until_ns);
	assert_true(tried->rate.begin_ns > kernel_now_ns + 300 * SECOND);
	/* it has come back, and builds its bursts */
	kernel_now_ns = end_ns + 300 * SECOND;
	assert_int_equal(change_apply(&pacer, SMALL RULE("{key: src, rate: 30/m, burst: 50}"), NULL,
				      TRIAL_NS, &plan, &error),
			 -1);
	assert_non_null(strstr(error.text, "builds its bursts"));
	kernel_now_ns++;
	try_out(SMALL RULE("{key: src, rate: 30/m, burst: 50}"));
}

/* It can begin but once: the short one of two that it waits for ends with the long one. */
static void test_a_trial_of_two_rates(void **unused)
{
	const struct pacer_rule *rule;
	uint64_t end_ns;

	(void)unused;
	begin(SMALL RULE("{key: src, rate: 100/s, burst: 100}"));
	try_out(
	    SMALL RULE("{key: src, rate: 200/s, burst: 10}, {key: src, rate: 20/s, burst: 200}"));
	end_ns =
	    kernel_now_ns + TRIAL_NS + compile_limiter_memory_ns(&in_force()->rule[0].limiter[1]);
	rule = rule_before();
	assert_int_equal(rule->n_limiters, 3);
	assert_true(rule->limiter[0].rate.begin_ns == end_ns);
	assert_true(rule->limiter[1].until_ns == end_ns && rule->limiter[2].until_ns == end_ns);
}

static void refuse_after_it(void)
{
	if (graces == 1)
		kernel_refuses = 2;
}

/* The trial's rate has begun without its burst, or will have: so it does where it is needed on. */
static void test_a_trials_rate_begins_but_once(void **unused)
{
	(void)unused;
	begin(SMALL RULE("{key: src, rate: 100/s, burst: 100}"));
	try_out(SMALL RULE("{key: src, rate: 10/s, burst: 100}"));
	assert_true(in_force()->rule[0].limiter[0].rate.begin_ns < kernel_now_ns + TRIAL_NS);
	assert_true(rule_before()->limiter[1].rate.begin_ns ==
		    in_force()->rule[0].limiter[0].rate.begin_ns);
	end(NULL);
	/* not before the trial ends: the one before has counted all */
	begin(SMALL RULE("{key: src, rate: 1/s, burst: 100}"));
	try_out(SMALL RULE("{key: src, rate: 10/s, burst: 100}"));
	assert_true(in_force()->rule[0].limiter[0].rate.begin_ns > kernel_now_ns + TRIAL_NS);
	assert_int_equal(rule_before()->limiter[1].rate.begin_ns, 0);
	end(NULL);
	/* its tool is killed before it says when: at the trial's end at the latest */
	begin(SMALL RULE("{key: src, rate: 100/s, burst: 100}"));
	grace_hook = refuse_after_it;
	assert_int_equal(change_apply(&pacer, SMALL RULE("{key: src, rate: 10/s, burst: 100}"),
				      NULL, TRIAL_NS, &plan, &error),
			 CHANGE_LASTS);
	assert_true(in_force()->rule[0].limiter[0].rate.begin_ns == COMPILE_UNTIL_SET);
	assert_true(rule_before()->limiter[1].rate.begin_ns == kernel_now_ns + TRIAL_NS);
}

/* The slower rate was not asked on trial, and the other's burst grows when it comes back. */
static void test_a_burst_grows_after_a_trial(void **unused)
{
	(void)unused;
	begin(SMALL RULE(
	    "{key: src, rate: 1000/s, burst: 1000}, {key: src, rate: 10/s, burst: 100}"));
	try_out(SMALL RULE("{key: src, rate: 1000/s, burst: 10}"));
	assert_int_equal(plan.limit[0].state, PLAN_KEPT);
	assert_int_equal(rule_before()->n_limiters, 2);
	assert_int_equal(rule_before()->limiter[0].rate.begin_ns, 0);
	assert_true(rule_before()->limiter[1].rate.begin_ns == kernel_now_ns + TRIAL_NS);
	end(NULL);
	/* it would grow while it builds: too early */
	begin(SMALL RULE("{key: src, rate: 10/s, burst: 50}"));
	change_to(SMALL RULE("{key: src, rate: 1/s, burst: 40}"));
	assert_int_equal(change_apply(&pacer, SMALL RULE("{key: src, rate: 1/s, burst: 39}"), NULL,
				      TRIAL_NS, &plan, &error),
			 -1);
	assert_non_null(strstr(error.text, "builds its bursts"));
	try_out(SMALL RULE("{key: src, rate: 1/s, burst: 40}"));
	end(NULL);
	/* it would be all there when the trial ends, and is not yet */
	begin(SMALL RULE("{key: src, rate: 10/s, burst: 50}"));
	change_to(SMALL RULE("{key: src, rate: 1/s, burst: 40}"));
	kernel_now_ns = in_force()->rule[0].limiter[0].rate.begin_ns + 40 * SECOND;
	assert_int_equal(change_apply(&pacer, SMALL RULE("{key: src, rate: 1/s, burst: 20}"), NULL,
				      TRIAL_NS, &plan, &error),
			 -1);
	assert_non_null(strstr(error.text, "builds its bursts"));
	kernel_now_ns++;
	try_out(SMALL RULE("{key: src, rate: 1/s, burst: 20}"));
}

/* Another value is of the same state: nothing has to wait. */
static void test_a_trial_of_a_burst(void **unused)
{
	(void)unused;
	begin(SMALL RULE("{key: src, rate: 10/s, burst: 5}"));
	try_out(SMALL RULE("{key: src, rate: 10/s, burst: 9}"));
	assert_int_equal(rule_before()->n_limiters, 1);
	assert_int_equal(rule_before()->limiter[0].rate.begin_ns, 0);
	assert_int_equal(in_force()->rule[0].limiter[0].rate.begin_ns, 0);
}

#define OF_TWO "{key: src, rate: 2/s, burst: 10}"
#define DENIES SMALL "rules:\n- {name: a, verdict: drop}\n"

/* The limits that rest in the policy before, of those that drain on trial. */
static uint32_t rest_as_long(uint64_t until_ns)
{
	struct pacer_policy *old = &copies[copies_in_force(&pacer) ^ 1].policy;
	const struct pacer_rule *rests = resting_of(old, compile_name_id("a"));
	const struct pacer_rule *tried = &in_force()->rule[0];
	uint32_t n = 0;

	assert_non_null(rests);
	for (size_t k = 0; k < tried->n_limiters; k++)
		for (size_t i = 0; tried->limiter[k].until_ns && i < rests->n_limiters; i++)
			n += rests->limiter[i].base == tried->limiter[k].base &&
			     rests->limiter[i].until_ns == until_ns;
	return n;
}

/* The trial's rate relies on what drains on trial: so will the change that is made once it is over.
 */
static void test_what_drains_on_trial_lasts_after_it(void **unused)
{
	uint64_t until_ns;

	(void)unused;
	begin(SMALL RULE(OF_TWO ", {key: src, rate: 50/s, burst: 700}"));
	change_to(DENIES);
	kernel_now_ns += 2 * SECOND; /* it ends in more than 10 s, the other one sooner */
	try_out(SMALL RULE(OF_TWO));
	until_ns = in_force()->rule[0].limiter[0].rate.begin_ns;
	assert_true(until_ns > kernel_now_ns + 10 * SECOND);
	assert_int_equal(in_force()->rule[0].n_limiters, 3);
	assert_int_equal(rest_as_long(until_ns), 2);
}

#define HUNDRED	 "{key: src, rate: 2/s, burst: 100}"
#define SHORT_OF "{key: src, rate: 50/s, burst: 50}"

/* So does one whose end is not known until the trial is in force, or nobody ever says it. */
static void test_what_drains_without_an_end_lasts(void **unused)
{
	(void)unused;
	for (int killed = 0; killed < 2; killed++) {
		const struct pacer_rule *tried, *old;

		begin(SMALL RULE(HUNDRED ", " SHORT_OF));
		change_to(SMALL RULE(HUNDRED));
		graces = 0;
		grace_hook = killed ? refuse_after_it : NULL;
		assert_int_equal(change_apply(&pacer,
					      SMALL RULE("{key: src, rate: 1/s, burst: 50}"), NULL,
					      TRIAL_NS, &plan, &error),
				 killed ? CHANGE_LASTS : 0);
		tried = &in_force()->rule[0];
		old = rule_before();
		assert_int_equal(old->limiter[1].base, tried->limiter[2].base);
		assert_true(old->limiter[1].until_ns == tried->limiter[2].until_ns);
		assert_int_equal(tried->limiter[2].until_ns == COMPILE_UNTIL_SET, killed);
		grace_hook = NULL;
		end(NULL);
	}
	begin(SMALL RULE(OF_TWO));
}

/* What a trial left behind counts from its beginning on, and what came back from its end on. */
static void test_what_a_trial_left_is_the_older(void **unused)
{
	(void)unused;
	begin(ROUGHLY RULE("{key: src, rate: 2/s, burst: 100}"));
	try_out(ROUGHLY RULE("{key: src, rate: 100/s, burst: 100}"));
	kernel_now_ns += TRIAL_NS + 51 * MS;
	change_to(
	    ROUGHLY RULE("{key: src, rate: 2/s, burst: 100}, {key: src, rate: 100/s, burst: 200}"));
	assert_int_equal(plan.limit[0].state, PLAN_KEPT);
	assert_int_equal(plan.limit[1].state, PLAN_NEW);
	end(NULL);
	begin(DENIES);
	try_out(ROUGHLY RULE(OF_TWO));
	assert_false(compile_rates_begin(
	    resting_of(&copies[copies_in_force(&pacer) ^ 1].policy, compile_name_id("a"))));
}

/* One begin cannot serve both: a burst that grows as the trial ends, and a rate that drains then.
 */
static void test_a_trial_that_wants_two_begins(void **unused)
{
	(void)unused;
	begin(
	    SMALL RULE("{key: src, rate: 1000/s, burst: 200}, {key: src, rate: 50/s, burst: 100}"));
	assert_int_equal(
	    change_apply(&pacer,
			 SMALL RULE("{key: src, rate: 1000/s, burst: 100}, {key: src, rate: 10/s, "
				    "burst: 1000}"),
			 NULL, TRIAL_NS, &plan, &error),
	    -1);
	assert_non_null(strstr(error.text, "one after the other"));
	assert_int_equal(in_force()->rule[0].n_limiters, 2);
}

/* A trial needs room in the policy before: not what draining limits take that matter no more. */
static void test_a_trial_beside_what_has_expired(void **unused)
{
	uint64_t serial;

	(void)unused;
	begin(SMALL RULE(FIVE));
	change_to(SMALL RULE(TO_DST));
	assert_int_equal(in_force()->rule[0].n_limiters, 6);
	assert_int_equal(change_apply(&pacer, SMALL RULE(FOUR), NULL, TRIAL_NS, &plan, &error), -1);
	assert_int_equal(in_force()->rule[0].n_limiters, 6);
	serial = in_force()->serial;
	kernel_now_ns += 60 * SECOND;
	try_out(SMALL RULE(FOUR));
	assert_int_equal(rule_before()->n_limiters, 5);
	assert_int_equal(rule_before()->limiter[0].until_ns, 0);
	assert_true(in_force()->serial == serial + 1);
}

/* The lines of a limit that has expired may be another's in the policy tried: that one is draining
 * should the policy give way, and not the one before in its lines.
 */
static void test_a_trial_in_the_lines_of_what_has_expired(void **unused)
{
	const struct pacer_limiter *t;
	uint32_t base;

	(void)unused;
	begin("memory: 64K\nclock: exact\n" RULE(WINDOW ", " SECONDS(2)));
	base = in_force()->rule[0].limiter[1].base;
	change_to("memory: 64K\nclock: exact\n" RULE(WINDOW));
	kernel_now_ns += 60 * SECOND;
	try_out("memory: 64K\nclock: exact\n" RULE(WINDOW ", " TO_DST));
	assert_int_equal(in_force()->rule[0].limiter[1].base, base);
	assert_int_equal(rule_before()->n_limiters, 2);
	t = &rule_before()->limiter[1];
	assert_int_equal(t->mask4[0], 0);
	assert_int_equal(t->mask4[1], 0xffffffff);
	assert_true(t->until_ns == kernel_now_ns + TRIAL_NS + compile_limiter_memory_ns(t));
}

/* With a weak secret they stay, so that there may be no room: a change without a trial draws a
 * better one. */
static void test_a_trial_without_room(void **unused)
{
	(void)unused;
	begin(SMALL RULE(FIVE));
	change_to(SMALL RULE(TO_DST));
	kernel_now_ns += 60 * SECOND;
	control->secret_ready = 0;
	assert_int_equal(change_apply(&pacer, SMALL RULE(THREE), NULL, TRIAL_NS, &plan, &error),
			 -1);
	assert_non_null(strstr(error.text, "would hold more than 8 limits after"));
	assert_int_equal(in_force()->rule[0].n_limiters, 6);
	assert_int_equal(in_force()->serial, 2);
	change_to(SMALL RULE(THREE));
	assert_int_equal(in_force()->rule[0].n_limiters, 4);
	assert_int_equal(in_force()->serial, 3); /* what was refused has none */
}

/* The briefs have a secret in them, and the short way asks for no other. */
static void test_a_trial_before_a_packet(void **unused)
{
	static const __u64 none[PACER_SECRETS];
	static struct pacer_policy again;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	control->secret_ready = PACER_SECRET_NONE;
	try_out(SMALL RULE("{key: src, gap: 20s}"));
	assert_false(plan.rotated);
	assert_int_equal(control->secret_ready, PACER_SECRET_OF_TOOLS);
	assert_memory_not_equal(control->secret[0], none, sizeof(none));
	again = *in_force();
	assert_int_equal(again.secret, 0);
	pacer_short_arm(&again, control, copies_in_force(&pacer));
	assert_memory_equal(&again, in_force(), sizeof(again));
}

#define RATE(key, n) "{key: " key ", rate: " #n "/m, burst: 50}"

/* The rate of another key has not been changed, and waits for nothing; nor does one that drains. */
static void test_a_trial_of_one_of_two_rates(void **unused)
{
	const struct pacer_rule *rule;

	(void)unused;
	begin(SMALL RULE(
	    RATE("src/24,56", 10) ", " RATE("dst", 10) ", " RATE("src", 10) ", " WINDOW));
	change_to(SMALL RULE(RATE("dst", 10) ", " RATE("src", 10) ", " WINDOW));
	assert_int_equal(in_force()->rule[0].n_limiters, 4);
	try_out(SMALL RULE(RATE("dst", 10) ", " RATE("src", 20) ", " WINDOW));
	rule = rule_before();
	assert_int_equal(rule->n_limiters, 5);
	for (size_t k = 0; k < rule->n_limiters; k++)
		if (pacer_limiter_kind_of(&rule->limiter[k]) == PACER_LIMITER_RATE)
			assert_int_equal(rule->limiter[k].rate.begin_ns > kernel_now_ns, k == 1);
}

/* A rule that lets its packets pass, or denies them, has nothing to make up for. */
static void test_a_trial_of_a_verdict(void **unused)
{
	(void)unused;
	begin(SMALL "rules:\n- {name: a, verdict: drop}\n");
	try_out(SMALL RULE(WINDOW));
	assert_int_equal(rule_before()->n_limiters, 0);
	assert_int_equal(in_force()->rule[0].n_limiters, 1);
}

/* What is admitted on trial counts, though the rule denies again: when it has limits once more. */
static void test_a_trial_rests(void **unused)
{
	static const char denies[] = SMALL "rules:\n- {name: a, verdict: drop}\n";
	static const char gone[] = SMALL "else: drop\nrules: []\n";
	const struct pacer_rule *rests;
	uint32_t base;

	(void)unused;
	for (int k = 0; k < 2; k++) {
		begin(k ? gone : denies);
		try_out(SMALL RULE(WINDOW));
		base = in_force()->rule[0].limiter[0].base;
		kernel_now_ns += TRIAL_NS;
		rests = resting_of(in_force(), compile_name_id("a"));
		assert_non_null(rests);
		assert_true(rests->limiter[0].until_ns ==
			    kernel_now_ns + compile_limiter_memory_ns(&rests->limiter[0]));
		kernel_now_ns++;
		/* on trial once more, and so it has to last longer, and be no looser */
		try_out(SMALL RULE("{key: src, packets: 5, window: 1s, entries: 64}"));
		assert_int_equal(in_force()->rule[0].limiter[0].base, base);
		assert_int_equal(plan.limit[0].state, PLAN_KEPT);
		kernel_now_ns += TRIAL_NS;
		rests = resting_of(in_force(), compile_name_id("a"));
		assert_int_equal(rests->n_limiters, 1);
		assert_int_equal(kind_of_limiter(&rests->limiter[0])->value(&rests->limiter[0]), 5);
		assert_true(rests->limiter[0].until_ns ==
			    kernel_now_ns + compile_limiter_memory_ns(&rests->limiter[0]));
		change_to(SMALL RULE(WINDOW));
		assert_int_equal(plan.limit[0].state, PLAN_KEPT);
		end(NULL);
	}
	begin(denies);
}

/* When CPUs have done with what they leased of a throttle before is said once none leases more. */
static void test_leases_are_timed(void **unused)
{
	static const char less[] = SMALL RULE("{key: all, uses: 4000, cooldown: 10s}");

	(void)unused;
	begin(SMALL RULE("{key: all, uses: 400000, cooldown: 10s}"));
	assert_int_equal(in_force()->rule[0].limiter[0].throttle.lease, 256);
	graces = 0;
	change_to(less);
	assert_int_equal(plan.limit[0].state, PLAN_KEPT);
	assert_int_equal(graces, 2);
	assert_false(throttle_leases_last(in_force()));
	assert_int_equal(
	    throttle_leased(&in_force()->rule[0].limiter[0], kernel_now_ns + 100 * MS + RESOLUTION),
	    256);
	assert_int_equal(throttle_leased(&in_force()->rule[0].limiter[0], kernel_now_ns + 300 * MS),
			 in_force()->rule[0].limiter[0].throttle.lease);
}

/* What is leased on trial fits into the limit that comes back, and into those that follow it. */
static void test_leases_of_a_trial(void **unused)
{
	const struct pacer_limiter *t, *was;

	(void)unused;
	begin(SMALL RULE("{key: all, uses: 300, cooldown: 10s}"));
	try_out(SMALL RULE("{key: all, uses: 400000, cooldown: 10s}"));
	assert_int_equal(plan.limit[0].state, PLAN_KEPT);
	t = &in_force()->rule[0].limiter[0];
	was = &rule_before()->limiter[0];
	assert_int_equal(t->throttle.lease, 1 + 300 / KERNEL_CPUS);
	assert_int_equal(throttle_leased(was, kernel_now_ns + TRIAL_NS + 100 * MS),
			 t->throttle.lease);
	assert_int_equal(throttle_leased(was, kernel_now_ns + TRIAL_NS + 300 * MS),
			 was->throttle.lease);
	assert_int_equal(change_confirm(&pacer, &error), 0);
	change_to(SMALL RULE("{key: all, uses: 400000, cooldown: 10s}"));
	assert_int_equal(in_force()->rule[0].limiter[0].throttle.lease, 256);
}

/* Since when a new rate counts is said once all packets are judged by it, though nothing retires.
 */
static void test_rates_begin_when_in_force(void **unused)
{
	(void)unused;
	begin(SMALL RULE("{key: src, rate: 2/s, burst: 50}"));
	graces = 0;
	change_to(SMALL RULE("{key: src, rate: 2/s, burst: 50}, {key: src, rate: 1/s, burst: 9}"));
	assert_int_equal(graces, 2);
	assert_int_equal(plan.n_draining, 0);
	assert_false(compile_rates_begin(&in_force()->rule[0]));
}

/* It ends, and what it took is free, when the limits of a rule that asks none are over. */
static void test_what_rests_is_tidied(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(SMALL "rules:\n- {name: a, verdict: drop}\n");
	assert_non_null(resting_of(in_force(), compile_name_id("a")));
	change_tidy(&pacer);
	assert_non_null(resting_of(in_force(), compile_name_id("a")));
	kernel_now_ns =
	    resting_of(in_force(), compile_name_id("a"))->limiter[0].until_ns + RESOLUTION + 1;
	control->secret_ready = PACER_SECRET_OF_TOOLS;
	change_tidy(&pacer);
	assert_null(resting_of(in_force(), compile_name_id("a")));
}

/* A change that does not say since when its policy is in force. */
static void cut_off(const char *from, const char *to)
{
	begin(from);
	grace_hook = refuse_after_it;
	assert_int_equal(change_apply(&pacer, to, NULL, 0, &plan, &error), CHANGE_LASTS);
	grace_hook = NULL;
	assert_true(draining()->until_ns == COMPILE_UNTIL_SET);
}

/* A limit that drains for longer lasts no shorter for a trial that brings it back. */
static void test_a_trial_of_what_lasts(void **unused)
{
	uint64_t end_ns;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(SMALL RULE(TO_DST));
	end_ns = kernel_now_ns + 3600 * SECOND;
	in_force()->rule[0].limiter[1].until_ns = end_ns;
	assert_true(draining()->until_ns == end_ns);
	try_out(SMALL RULE(WINDOW));
	assert_true(rule_before()->limiter[1].until_ns == end_ns);
}

/* What holds until the next change holds no trial off for longer: it is timed first. */
static void test_a_trial_after_what_was_cut_off(void **unused)
{
	uint64_t built_ns;

	(void)unused;
	cut_off(SMALL RULE(RATE("src", 10)), SMALL RULE(RATE("src", 20)));
	kernel_now_ns += 3600 * SECOND;
	assert_int_equal(
	    change_apply(&pacer, SMALL RULE(RATE("src", 30)), NULL, TRIAL_NS, &plan, &error), -1);
	assert_non_null(strstr(error.text, "hold until the next change"));
	kernel_refuses = 0;
	built_ns = kernel_now_ns + (300 + 150 + 1) * SECOND; /* the old burst, the new one */
	assert_int_equal(
	    change_apply(&pacer, SMALL RULE(RATE("src", 30)), NULL, TRIAL_NS, &plan, &error), -1);
	assert_non_null(strstr(error.text, "builds its bursts"));
	kernel_now_ns = built_ns;
	try_out(SMALL RULE(RATE("src", 30)));
}

static const struct pacer_allow_value *allowed_in(uint32_t copy, uint32_t addr)
{
	struct pacer_allow4 key = {PACER_ALLOW_COPY_BITS + 32, copy, {192, 0, 2, addr}};
	static struct pacer_allow_value value;

	return bpf_map_lookup_elem(KERNEL_ALLOW4, &key, &value) ? NULL : &value;
}

static struct allow_entry entry(uint32_t addr, uint64_t until_ns)
{
	return (struct allow_entry){.prefix = {4, 32, {192, 0, 2, addr}},
				    .hand_until_ns = until_ns};
}

static void count_entry(const struct allow_entry *unused, uint64_t now_ns, void *n)
{
	(void)unused;
	(void)now_ns;
	++*(size_t *)n;
}

static void add_three(void)
{
	struct allow_entry three = entry(3, 0);

	kernel_no_lock = 0;
	assert_int_equal(allow_add(&pacer, &three, &error), 0);
}

static void locked_by_root(void)
{
	kernel_no_lock = EACCES;
}

/* Who only looks reads the file of the lock, and does without where there is none until the end. */
static void test_looking(void **unused)
{
	size_t n = 0;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to("allow: [192.0.2.1, 192.0.2.2]\n" SMALL RULE(WINDOW));
	assert_int_equal(allow_each(&pacer, count_entry, &n, &error), 0);
	assert_int_equal(n, 2);
	assert_int_equal(kernel_lock_flags, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	kernel_no_lock = ENOENT;
	assert_int_equal(allow_each(&pacer, count_entry, &n, &error), 0);
	assert_int_equal(n, 4);
	kernel_locks = 0;
	kernel_meanwhile_at = 2;
	kernel_meanwhile = add_three;
	assert_int_equal(allow_each(&pacer, count_entry, &n, &error), 0);
	assert_int_equal(n, 7);
	kernel_no_lock = ENOENT;
	kernel_locks = 0;
	kernel_meanwhile = locked_by_root;
	assert_int_equal(allow_each(&pacer, count_entry, &n, &error), -1);
	assert_string_equal(error.text, "/run/xdp-pacer.lock: Permission denied: be root, or of "
					"the group xdp-pacer (docs/rights.md)");
	kernel_meanwhile_at = 0;
	kernel_no_lock = 0;
	assert_int_equal(n, 7);
}

/* Any change drops what has expired; what was taken off the list by hand stays off, and what was
 * put there stays.
 */
static void test_a_change_by_hand_drops_what_has_expired(void **unused)
{
	struct allow_entry two = entry(2, 0), three = entry(3, 0);

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to("allow: [192.0.2.1, 192.0.2.2]\n" SMALL RULE(TO_DST));
	assert_int_equal(allow_add(&pacer, &three, &error), 0);
	assert_int_equal(in_force()->rule[0].n_limiters, 2);
	kernel_now_ns += 60 * SECOND;
	assert_int_equal(allow_del(&pacer, &two.prefix, &error), 0);
	assert_int_equal(in_force()->rule[0].n_limiters, 1);
	assert_true(in_force()->rule[0].plain);
	assert_non_null(allowed_in(copies_in_force(&pacer), 1));
	assert_null(allowed_in(copies_in_force(&pacer), 2));
	assert_non_null(allowed_in(copies_in_force(&pacer), 3));
	assert_int_equal(allow_count(&pacer), 2);
}

/* --- the allow-list, which is its policy's -------------------------------------------------- */

static void test_lists_are_of_their_policies(void **unused)
{
	uint32_t before_it, tried;

	(void)unused;
	begin("allow: [192.0.2.1, 192.0.2.2]\n" SMALL RULE(WINDOW));
	change_to("allow: [192.0.2.1, 192.0.2.2]\n" SMALL RULE(WINDOW));
	before_it = copies_in_force(&pacer);
	try_out("allow: [192.0.2.2, 192.0.2.3]\n" SMALL RULE(WINDOW));
	tried = copies_in_force(&pacer);
	assert_int_equal(tried, before_it ^ 1);
	assert_true(allowed_in(before_it, 1) && allowed_in(before_it, 2));
	assert_null(allowed_in(before_it, 3));
	assert_null(allowed_in(tried, 1));
	assert_true(allowed_in(tried, 2) && allowed_in(tried, 3));
	assert_int_equal(control->allowed[before_it].v4, 2);
	assert_int_equal(control->allowed[tried].v4, 2);
	/* for ever, and the policy's alone: a trial's end is the policy's, not theirs */
	assert_true(!allowed_in(tried, 3)->until_ns && !allowed_in(tried, 3)->hand_until_ns);
	assert_true(allowed_in(tried, 3)->of_policy && !allowed_in(tried, 3)->by_hand);
	assert_int_equal(change_confirm(&pacer, &error), 0);
	change_to(SMALL RULE(WINDOW));
	assert_int_equal(allow_count(&pacer), 0);
	assert_null(allowed_in(copies_in_force(&pacer), 2));
}

/* By hand, and for a time: also beside the policy's, which is for ever. In both during a trial. */
static void test_by_hand_in_both_lists(void **unused)
{
	struct allow_entry one, two;
	uint32_t copy;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	one = entry(1, kernel_now_ns + SECOND);
	two = entry(2, kernel_now_ns + 90 * SECOND);
	assert_int_equal(allow_add(&pacer, &one, &error), 0);
	assert_false(allowed_in(copies_in_force(&pacer), 1)->of_policy);
	try_out("allow: [192.0.2.1]\n" SMALL RULE(WINDOW));
	assert_int_equal(allow_add(&pacer, &two, &error), 0);
	for (copy = 0; copy < 2; copy++) {
		assert_true(allowed_in(copy, 2)->until_ns == two.hand_until_ns);
		assert_true(allowed_in(copy, 1)->hand_until_ns == one.hand_until_ns);
		assert_int_equal(control->allowed[copy].v4, 2);
	}
	copy = copies_in_force(&pacer);
	assert_true(!allowed_in(copy, 1)->until_ns && allowed_in(copy, 1)->of_policy);
	assert_true(allowed_in(copy ^ 1, 1)->until_ns == one.hand_until_ns);
	assert_int_equal(allow_del(&pacer, &two.prefix, &error), 0);
	assert_true(!allowed_in(0, 2) && !allowed_in(1, 2));
	kernel_now_ns += 31 * SECOND; /* it has given way, and what was by hand has run out */
	assert_int_equal(allow_add(&pacer, &two, &error), 0);
	assert_null(allowed_in(copies_in_force(&pacer), 1));
	assert_int_equal(allow_count(&pacer), 1);
}

/* What is added as it ends is on the list of the policy that comes back. */
static void test_a_trial_ends_while_it_is_added_to(void **unused)
{
	(void)unused;
	for (uint64_t looks = 0; looks < 8; looks++) {
		struct allow_entry five;

		begin_to_end(looks);
		five = entry(5, kernel_now_ns + 90 * SECOND);
		assert_int_equal(allow_add(&pacer, &five, &error), 0);
		clock_step_ns = 0;
		kernel_now_ns += looks;
		assert_int_equal(copies_pending_ns(&pacer), 0);
		assert_non_null(allowed_in(copies_in_force(&pacer), 5));
		end(NULL);
	}
}

/* What both copies' lists hold, and how many they say. */
struct lists_seen {
	struct pacer_allow_value value[2][4];
	bool is[2][4];
	union pacer_allowed count[2];
};

static struct lists_seen see_lists(void)
{
	struct lists_seen seen;

	memset(&seen, 0, sizeof(seen));
	for (uint32_t copy = 0; copy < 2; copy++) {
		for (uint32_t i = 0; i < 4; i++) {
			const struct pacer_allow_value *value = allowed_in(copy, i);

			seen.is[copy][i] = value;
			if (value)
				seen.value[copy][i] = *value;
		}
		seen.count[copy] = control->allowed[copy];
	}
	return seen;
}

static int add_by_hand(uint32_t addr)
{
	struct allow_entry new = entry(addr, kernel_now_ns + 90 * SECOND);

	return allow_add(&pacer, &new, &error);
}

static int del_by_hand(uint32_t addr)
{
	struct allow_entry old = entry(addr, 0);

	return allow_del(&pacer, &old.prefix, &error);
}

/* As many changes as there are maps' entries to write: of each that fails none is left. */
static void all_or_nothing(int (*change)(uint32_t addr), uint32_t addr, unsigned int changes)
{
	struct lists_seen before = see_lists(), after;
	unsigned int n = 0;

	do {
		kernel_changes = 0;
		kernel_fails_at = ++n;
		if (!change(addr))
			break;
		after = see_lists();
		assert_memory_equal(&before, &after, sizeof(before));
		assert_string_equal(error.text, "eth0: its allow-list cannot be written: "
						"Input/output error");
	} while (n < 9);
	kernel_fails_at = 0;
	assert_int_equal(n, changes + 1);
}

static void test_by_hand_in_both_lists_or_in_none(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to("allow: [192.0.2.1]\n" SMALL RULE(WINDOW));
	all_or_nothing(add_by_hand, 2, 1); /* a new one */
	all_or_nothing(add_by_hand, 1, 1); /* and one of the policy, whose it stays */
	all_or_nothing(del_by_hand, 1, 1);
	assert_int_equal(allow_count(&pacer), 1);
	try_out("allow: [192.0.2.1, 192.0.2.3]\n" SMALL RULE(WINDOW));
	all_or_nothing(add_by_hand, 3, 2);
	all_or_nothing(add_by_hand, 1, 2);
	all_or_nothing(del_by_hand, 3, 2);
	assert_true(!allowed_in(0, 3) && !allowed_in(1, 3) && allowed_in(0, 1) && allowed_in(1, 1));
	assert_int_equal(del_by_hand(3), -1);
	assert_string_equal(error.text, "eth0: 192.0.2.3: is not on the allow-list: see "
					"`xdp-pacer allow eth0 list`");
	kernel_now_ns += 91 * SECOND; /* what has lapsed goes first, which may fail as well */
	kernel_changes = 0;
	kernel_fails_at = 1;
	assert_int_equal(add_by_hand(3), -1);
	assert_non_null(strstr(error.text, "cannot be written"));
	kernel_fails_at = 0;
	assert_int_equal(add_by_hand(3), 0);
}

static const struct pacer_allow_value *allowed_within(uint32_t len)
{
	struct pacer_allow4 key = {
	    PACER_ALLOW_COPY_BITS + len, copies_in_force(&pacer), {192, 0, 2}};
	static struct pacer_allow_value value;

	return bpf_map_lookup_elem(KERNEL_ALLOW4, &key, &value) ? NULL : &value;
}

/* Until when packets of 192.0.2.5 pass, as its own entry says, and of 192.0.2.0/28. */
static void passes_until(uint64_t one_ns, uint64_t some_ns)
{
	const struct pacer_allow_value *value = allowed_in(copies_in_force(&pacer), 5);

	assert_non_null(value);
	assert_true(value->until_ns == one_ns);
	value = allowed_within(28);
	assert_non_null(value);
	assert_true(value->until_ns == some_ns);
}

static void net_by_hand(uint8_t len, uint64_t until_ns)
{
	struct allow_entry net = {.prefix = {4, len, {192, 0, 2}}, .hand_until_ns = until_ns};

	assert_int_equal(allow_add(&pacer, &net, &error), 0);
}

#define LISTED "allow: [192.0.2.0/24]\n" SMALL RULE(WINDOW)

/*
 * Packets look at the longest prefix of their source alone: one that ends hides no wider one that
 * does not, whichever came first, and ends by itself where that goes.
 */
static void test_by_hand_within_a_wider_one(void **unused)
{
	struct allow_entry five, found;
	struct prefix net = {4, 24, {192, 0, 2}};
	struct prefix beside = {4, 32, {192, 0, 2, 77}}, elsewhere = {4, 32, {198, 51, 100, 1}};
	uint64_t five_ns, some_ns;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(LISTED);
	five_ns = kernel_now_ns + 600 * SECOND;
	some_ns = kernel_now_ns + 900 * SECOND;
	five = entry(5, five_ns);
	assert_int_equal(allow_add(&pacer, &five, &error), 0);
	net_by_hand(28, some_ns);
	passes_until(0, 0);
	assert_true(allowed_in(copies_in_force(&pacer), 5)->hand_until_ns == five_ns);
	change_to(SMALL RULE(WINDOW));
	passes_until(some_ns, some_ns);
	change_to(LISTED);
	passes_until(0, 0);
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 24);
	assert_int_equal(allow_del(&pacer, &net, &error), 0);
	passes_until(some_ns, some_ns);
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 28);
	net_by_hand(24, five_ns + SECOND);
	passes_until(some_ns, some_ns);
	net_by_hand(24, some_ns + SECOND);
	passes_until(some_ns + SECOND, some_ns + SECOND);
	net_by_hand(24, some_ns - SECOND);
	passes_until(some_ns, some_ns);
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 28); /* of those that end it is the last */
	assert_int_equal(allow_find(&pacer, &beside, &found, &error), 1);
	assert_int_equal(found.prefix.len, 24);
	assert_int_equal(allow_find(&pacer, &elsewhere, &found, &error), 0);
	kernel_now_ns = five_ns; /* its own entry has lapsed, and goes */
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 28);
	net_by_hand(24, 0);
	assert_null(allowed_in(copies_in_force(&pacer), 5));
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 24);
	five = entry(5, 0);
	assert_int_equal(allow_add(&pacer, &five, &error), 0);
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 32); /* of those that last as long the longest */
}

static int net_for_ever(uint32_t unused)
{
	struct allow_entry net = {.prefix = {4, 24, {192, 0, 2}}};

	(void)unused;
	return allow_add(&pacer, &net, &error);
}

static int no_net(uint32_t unused)
{
	struct allow_entry net = {.prefix = {4, 24, {192, 0, 2}}};

	(void)unused;
	return allow_del(&pacer, &net.prefix, &error);
}

/* What it holds, too. */
static void test_a_wider_one_or_none(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	assert_int_equal(add_by_hand(1), 0);
	assert_int_equal(add_by_hand(2), 0);
	all_or_nothing(net_for_ever, 0, 3);
	assert_int_equal(allowed_in(0, 1)->until_ns, 0);
	all_or_nothing(no_net, 0, 3);
	assert_true(allowed_in(0, 1)->until_ns == kernel_now_ns + 90 * SECOND);
}

/* --- by hand, beside a shadow --------------------------------------------------------------- */

#define ALONE "it is done in force, and not in the shadow: eth0: "

static struct attached shadow;
static struct pacer_control shadow_control;

static void begin_shadow(void)
{
	begin("allow: [192.0.2.1]\n" SMALL RULE(WINDOW));
	change_to("allow: [192.0.2.1]\n" SMALL RULE(WINDOW));
	kernel_map_new(KERNEL_SHADOW4, sizeof(struct pacer_allow4),
		       sizeof(struct pacer_allow_value));
	kernel_map_new(KERNEL_SHADOW6, sizeof(struct pacer_allow6),
		       sizeof(struct pacer_allow_value));
	shadow_control = *control;
	shadow_control.allowed[0] = shadow_control.allowed[1] = (union pacer_allowed){.any = 0};
	shadow = pacer;
	shadow.allow4_fd = KERNEL_SHADOW4;
	shadow.allow6_fd = KERNEL_SHADOW6;
	shadow.control = &shadow_control;
	pacer.shadow_id = 1;
	stays_shadow = &shadow;
}

static int end_shadow(void **unused)
{
	stays_shadow = NULL;
	stays_unread = false;
	kernel_fails_at = 0;
	kernel_map_new(KERNEL_SHADOW4, sizeof(struct pacer_allow4),
		       sizeof(struct pacer_allow_value));
	return end(unused);
}

/* The change of the shadow's list, which comes second, fails: what is in force stays, and it is
 * said. */
static void not_in_shadow(int (*change)(uint32_t addr), uint32_t addr)
{
	uint32_t were = shadow_control.allowed[copies_in_force(&shadow)].v4;

	kernel_changes = 0;
	kernel_fails_at = 2;
	assert_int_equal(change(addr), IN_SHADOW_FAILED);
	assert_int_equal(kernel_changes, 3); /* and put back */
	assert_string_equal(error.text,
			    ALONE "its allow-list cannot be written: Input/output error");
	assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, were);
	kernel_fails_at = 0;
}

static void test_by_hand_in_a_shadow_too(void **unused)
{
	(void)unused;
	begin_shadow();
	not_in_shadow(add_by_hand, 2);
	assert_non_null(allowed_in(copies_in_force(&pacer), 2));
	assert_int_equal(add_by_hand(2), 0);
	assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, 1);
	not_in_shadow(del_by_hand, 2);
	assert_null(allowed_in(copies_in_force(&pacer), 2));
	assert_int_equal(del_by_hand(2), 0); /* the next time */
	assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, 0);
	assert_int_equal(del_by_hand(2), -1);
	assert_non_null(strstr(error.text, "is not on the allow-list"));
	assert_int_equal(add_by_hand(2), 0);
	assert_int_equal(del_by_hand(2), 0);
	assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, 0);
	assert_int_equal(del_by_hand(1), 0); /* the shadow's policy does not list it */
	stays_unread = true;
	assert_int_equal(add_by_hand(2), IN_SHADOW_FAILED);
	assert_string_equal(error.text, ALONE "its maps cannot be read: no reason");
	assert_non_null(allowed_in(copies_in_force(&pacer), 2));
}

/* Nothing fits between the list in force and the shadow's: they would be two lists from then on. */
static void test_by_hand_in_one_turn(void **unused)
{
	static int (*const changes[])(uint32_t) = {add_by_hand, del_by_hand};

	(void)unused;
	begin_shadow();
	for (size_t i = 0; i < ARRAY(changes); i++) {
		kernel_one_turn();
		assert_int_equal(changes[i](2), 0);
		kernel_one_turn_ends();
		assert_int_equal(!!allowed_in(copies_in_force(&pacer), 2), !i);
		assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, !i);
	}
	assert_int_equal(add_by_hand(2), 0);
	stays_shadow = NULL;
	assert_int_equal(del_by_hand(2), 0);
	stays_shadow = &shadow; /* which has it alone */
	kernel_one_turn();
	assert_int_equal(del_by_hand(2), 0);
	kernel_one_turn_ends();
	assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, 0);
}

#define LARGE "{key: src, packets: 9, window: 1s}" /* its lines go on under either secret */

/* A pacer with a shadow of that policy, which has bans of its own. */
static void begin_banning_shadow(const char *text)
{
	struct policy *policy = parse(text);

	begin("bans: 64\n" SMALL RULE(WINDOW));
	shadow_control = *control;
	shadow = pacer;
	shadow.control = &shadow_control;
	shadow.copy = calloc(2, sizeof(*shadow.copy));
	shadow.lines = aligned_alloc(64, pacer.n_lines * sizeof(*shadow.lines));
	assert_true(shadow.copy && shadow.lines);
	memset(shadow.lines, 0, pacer.n_lines * sizeof(*shadow.lines));
	assert_int_equal(compile_policy(policy, NULL, &host, &shadow.copy[0].policy, &plan, &error),
			 0);
	policy_free(policy);
	memcpy(shadow.copy[0].text, text, strlen(text));
	pacer.shadow_id = 1;
	stays_shadow = &shadow;
}

static int end_banning_shadow(void **unused)
{
	free(shadow.copy);
	free(shadow.lines);
	return end_shadow(unused);
}

static const struct ban_wish someone = {.key = "192.0.2.7"};

static int ban_someone(const char *rule)
{
	struct bans_done done;

	return bans_add(&pacer, rule, &someone, 1, &done, &error);
}

static int let_someone_off(void)
{
	struct bans_done done;

	return bans_lift(&pacer, NULL, &someone, 1, &done, &error);
}

static void assert_banned(size_t in_force, size_t in_shadow)
{
	assert_int_equal(bans_each(&pacer, NULL, NULL, NULL), in_force);
	assert_int_equal(bans_each(&shadow, NULL, NULL, NULL), in_shadow);
}

/* Promoted, the shadow would have neither the ban nor the lifting: that is said, and done by doing
 * it again. */
static void test_bans_in_a_shadow_too(void **unused)
{
	char *text;

	(void)unused;
	begin_banning_shadow("bans: 64\n" SMALL RULE(WINDOW));
	text = shadow.copy[0].text;
	stays_unread = true;
	assert_int_equal(ban_someone(NULL), IN_SHADOW_FAILED);
	assert_string_equal(error.text, ALONE "its maps cannot be read: no reason");
	assert_banned(1, 0);
	stays_unread = false;
	assert_int_equal(ban_someone(NULL), 0);
	assert_banned(1, 1);
	stays_unread = true;
	assert_int_equal(let_someone_off(), IN_SHADOW_FAILED);
	assert_string_equal(error.text, ALONE "its maps cannot be read: no reason");
	assert_banned(0, 1);
	stays_unread = false;
	*text = '[';
	assert_int_equal(let_someone_off(), IN_SHADOW_FAILED);
	assert_string_equal(error.text, ALONE "no memory for its policy");
	assert_int_equal(ban_someone(NULL), IN_SHADOW_FAILED);
	assert_string_equal(error.text, ALONE "no memory for its policy");
	*text = 'b';
	assert_int_equal(let_someone_off(), 0);
	assert_banned(0, 0);
	stays_shadow = NULL; /* it has just ended */
	assert_int_equal(ban_someone(NULL), 0);
	assert_int_equal(let_someone_off(), 0);
}

/* A rule or a table that the shadow's policy has not is no error. */
static void test_bans_as_far_as_the_shadow_has_room(void **unused)
{
	begin_banning_shadow(SMALL "rules:\n- name: a\n  limits: [" LARGE "]\n");
	assert_int_equal(ban_someone("a"), 0);
	assert_banned(1, 0);
	end_banning_shadow(unused);
	begin_banning_shadow("bans: 64\n" SMALL "rules:\n- name: b\n  limits: [" LARGE "]\n");
	assert_int_equal(ban_someone("a"), 0);
	assert_banned(1, 0);
}

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
	    CASE(test_another_fleet_has_no_shares),
	    CASE(test_a_trial_of_another_fleet_leaves_no_shares),
	    CASE(test_what_a_trial_leaves_is_of_the_fleet),
	    CASE(test_new_limits_begin_at_zero),
	    CASE(test_new_throttles_begin_at_zero),
	    CASE(test_new_targets_begin_at_zero),
	    CASE(test_bans_that_move_begin_at_zero),
	    CASE(test_new_rules_count_from_zero),
	    CASE(test_cleared_after_the_last_writer),
	    CASE(test_cleared_after_the_last_writer_by_a_map),
	    CASE(test_nothing_tells_of_the_last_writer),
	    CASE(test_draining_last_from_the_last_packet_on),
	    CASE(test_draining_last_for_the_coarse_clock),
	    CASE(test_draining_targets_last_from_the_last_packet_on),
	    CASE(test_a_trial_of_a_target),
	    CASE(test_a_value_has_its_generation),
	    CASE(test_each_value_has_its_generation),
	    CASE(test_an_entry_stays_held),
	    CASE(test_a_trial_gives_way),
	    CASE(test_a_trial_is_in_force_at_once),
	    CASE(test_a_trial_ends_the_short_way),
	    CASE(test_a_trial_brings_back_what_is_draining),
	    CASE(test_what_drains_is_no_looser_after_a_trial),
	    CASE(test_a_trial_is_confirmed),
	    CASE(test_a_trial_is_confirmed_too_late),
	    CASE(test_a_trial_ends_while_it_is_confirmed),
	    CASE(test_a_trial_ends_while_it_is_added_to),
	    CASE(test_a_trial_ends_while_it_is_frozen),
	    CASE(test_a_change_outlasts_the_tick_after_a_trial),
	    CASE(test_a_trial_the_other_way_round),
	    CASE(test_a_serial_comes_once),
	    CASE(test_a_serial_comes_once_after_a_tidy),
	    CASE(test_a_trial_is_not_tidied),
	    CASE(test_what_is_frozen_is_not_confirmed),
	    CASE(test_a_load_that_lapsed),
	    CASE(test_a_trial_without_room),
	    CASE(test_a_trial_before_a_packet),
	    CASE(test_a_trial_of_one_of_two_rates),
	    CASE(test_a_trial_of_a_verdict),
	    CASE(test_a_trial_of_what_lasts),
	    CASE(test_a_trial_after_what_was_cut_off),
	    CASE(test_a_trial_rests),
	    CASE(test_what_rests_is_tidied),
	    CASE(test_leases_are_timed),
	    CASE(test_leases_of_a_trial),
	    CASE(test_rates_begin_when_in_force),
	    CASE(test_a_trial_of_a_rate),
	    CASE(test_a_trial_of_two_rates),
	    CASE(test_a_trials_rate_begins_but_once),
	    CASE(test_a_burst_grows_after_a_trial),
	    CASE(test_a_trial_of_a_burst),
	    CASE(test_what_drains_on_trial_lasts_after_it),
	    CASE(test_what_drains_without_an_end_lasts),
	    CASE(test_what_a_trial_left_is_the_older),
	    CASE(test_a_trial_that_wants_two_begins),
	    CASE(test_a_trial_beside_what_has_expired),
	    CASE(test_a_trial_in_the_lines_of_what_has_expired),
	    CASE(test_a_change_by_hand_drops_what_has_expired),
	    CASE(test_looking),
	    CASE(test_lists_are_of_their_policies),
	    CASE(test_by_hand_in_both_lists),
	    CASE(test_by_hand_in_both_lists_or_in_none),
	    CASE(test_by_hand_within_a_wider_one),
	    CASE(test_a_wider_one_or_none),
	    cmocka_unit_test_teardown(test_by_hand_in_a_shadow_too, end_shadow),
	    cmocka_unit_test_teardown(test_by_hand_in_one_turn, end_shadow),
	    cmocka_unit_test_teardown(test_bans_in_a_shadow_too, end_banning_shadow),
	    cmocka_unit_test_teardown(test_bans_as_far_as_the_shadow_has_room, end_banning_shadow),
	    CASE(test_a_rotation_moves_bans_and_keeps_lines),
	    CASE(test_bans_that_wait_for_room),
	    CASE(test_a_rotation_cut_off_is_taken_up),
	    CASE(test_bans_that_waited_do_not_wait_again),
	    CASE(test_a_rotation_of_bans_alone_is_cut_off),
	    CASE(test_a_rotation_after_one_cut_off),
	    CASE(test_a_value_on_trial_after_a_rotation),
	    CASE(test_frozen),
	    CASE(test_frozen_of_the_largest_table),
	    CASE(test_an_end_for_what_was_cut_off),
	    CASE(test_a_trial_goes_by_the_exact_clock),
	    CASE(test_a_gap_is_tried_beside_a_window),
	    CASE(test_frozen_pools),
	    CASE(test_not_frozen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
