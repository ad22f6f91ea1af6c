/* SPDX-License-Identifier: GPL-2.0-only */
/* A change on trial, which gives way unless it is confirmed, in a kernel made of memory. */
#include "changed.h"

#include "live/draining.h"
#include "live/freeze.h"
#include "live/successor.h"
#include "live/trial.h"
#include "record.h"
#include "short.h"

/* --- a trial, which gives way unless it is confirmed ---------------------------------------- */

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

/* Nor is it where the trial's value was larger. */
static void test_what_drains_is_no_larger_after_a_trial(void **unused)
{
	const struct pacer_limiter *t;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(SMALL RULE(TO_DST));
	try_out(SMALL RULE("{key: src, packets: 12, window: 1s, entries: 64}"));
	t = &rule_before()->limiter[1];
	assert_int_equal(in_force()->rule[0].limiter[0].base, t->base);
	assert_int_equal(kind_of_limiter(&in_force()->rule[0].limiter[0])
			     ->value(&in_force()->rule[0].limiter[0]),
			 12);
	assert_int_equal(kind_of_limiter(t)->value(t), 9);
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

/* A load that lapsed is known by its text, to the last letter, and nothing is set in that. */
static void test_a_load_that_lapsed(void **unused)
{
	char text[] = "bans=100", *bans = text;
	uint64_t serial;

	(void)unused;
	begin(LOAD_NOTHING);
	serial = in_force()->serial;
	assert_true(load_trial_lapsed(&pacer));
	assert_int_equal(change_set(&pacer, &bans, 1, 0, NULL, &plan, &error), -1);
	assert_non_null(strstr(error.text, "eth0: its load was not confirmed in time"));
	assert_true(load_trial_lapsed(&pacer) && in_force()->serial == serial);
	copies[0].text[2]++;
	assert_false(load_trial_lapsed(&pacer));
	assert_int_equal(load_trial_stands(&pacer, &error), 0);
	strcpy(copies[0].text, LOAD_NOTHING " ");
	assert_false(load_trial_lapsed(&pacer));
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_a_trial_of_a_target),
	    CASE(test_a_value_has_its_generation),
	    CASE(test_each_value_has_its_generation),
	    CASE(test_an_entry_stays_held),
	    CASE(test_a_trial_gives_way),
	    CASE(test_a_trial_is_in_force_at_once),
	    CASE(test_a_trial_ends_the_short_way),
	    CASE(test_a_trial_brings_back_what_is_draining),
	    CASE(test_what_drains_is_no_looser_after_a_trial),
	    CASE(test_what_drains_is_no_larger_after_a_trial),
	    CASE(test_a_trial_is_confirmed),
	    CASE(test_a_trial_is_confirmed_too_late),
	    CASE(test_a_trial_ends_while_it_is_confirmed),
	    CASE(test_a_trial_ends_while_it_is_frozen),
	    CASE(test_a_change_outlasts_the_tick_after_a_trial),
	    CASE(test_a_trial_the_other_way_round),
	    CASE(test_a_serial_comes_once),
	    CASE(test_a_serial_comes_once_after_a_tidy),
	    CASE(test_a_trial_is_not_tidied),
	    CASE(test_what_is_frozen_is_not_confirmed),
	    CASE(test_a_load_that_lapsed),
	    CASE(test_an_end_for_what_was_cut_off),
	    CASE(test_a_trial_goes_by_the_exact_clock),
	    CASE(test_a_gap_is_tried_beside_a_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
