/* SPDX-License-Identifier: GPL-2.0-only */
/* The state that `withstand` asks for, beside what becomes of newcomers in such a flood. */
#include "oracle.h"
#include "floods.h"
#include "plan/figures.h"
#include "starved.h"

#define PPS	   100000u
#define EVER_NEW   (1u << 28) /* sources: none comes twice */
#define ENOUGH	   0.99
#define TOO_LITTLE 4 /* a fourth of the state is not enough */

static double passes(struct floods *f, enum floods_kind kind)
{
	assert_true(f->sent[kind] > 0);
	return (double)f->passed[kind] / (double)f->sent[kind];
}

/* Under a flood of PPS, with so many lines; the worse of newcomers and sparse sources. */
static double newcomers_get(const char *limit, uint64_t part)
{
	static struct floods f;
	struct pacer_limiter *t;
	uint64_t lines;
	double a, b;

	memset(&f, 0, sizeof(f));
	floods_open(&f, "64Mi", limit);
	t = &f.bin->rule[0].limiter[0];
	lines = flood_lines(t, PPS) / part;
	assert_in_range(lines, 1, f.plan->lines);
	kind_of_limiter(t)->size(t, lines);
	f.rate = strtoull(limit + strcspn(limit, "0123456789"), NULL, 10);
	floods_run(&f, PPS, EVER_NEW, 3);
	a = passes(&f, NEWCOMER);
	b = passes(&f, SPARSELY);
	if (part == 1 && f.rate > 1) /* else each of their packets is a newcomer's */
		assert_true(passes(&f, ESTABLISHED) > 0.999);
	floods_close(&f);
	return a < b ? a : b;
}

static void test_newcomers(void **unused)
{
	static const char *const limits[] = {
	    "packets: 1, window: 1s",	  "packets: 10, window: 1s", "packets: 100, window: 1s",
	    "packets: 20, window: 300ms", "rate: 1/s, burst: 1",     "rate: 10/s, burst: 10",
	    "rate: 50/s, burst: 5",	  "bytes: 100K, window: 1s",
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(limits); i++) {
		double enough = newcomers_get(limits[i], 1);
		double less = newcomers_get(limits[i], TOO_LITTLE);

		print_message("%s: %.4f; with a fourth of it: %.4f\n", limits[i], enough, less);
		if (enough < ENOUGH)
			fail_msg("%s: %f of newcomers' packets pass", limits[i], enough);
		if (!strstr(limits[i], "bytes") && less > ENOUGH)
			fail_msg("%s: a fourth of the state would be enough: %f", limits[i], less);
	}
}

static int compiled(const char *text, struct pacer_policy *bin, struct plan *plan,
		    const struct compile_previous *previous, struct policy_error *error)
{
	const struct compile_host host = {.now_ns = 1, .cpus = 2};
	struct policy *policy = policy_parse(text, strlen(text), error);
	int result;

	assert_non_null(policy);
	result = compile_policy(policy, previous, &host, bin, plan, error);
	policy_free(policy);
	return result;
}

static double lines_of(int packets)
{
	static const char format[] =
	    "rules: [{name: a, limits: [{key: src, packets: %d, window: 1s}]}]";
	static struct pacer_policy bin;
	struct policy_error error = {0};
	struct plan plan;
	char text[128];

	snprintf(text, sizeof(text), format, packets);
	assert_int_equal(compiled(text, &bin, &plan, NULL, &error), 0);
	return (double)flood_lines(&bin.rule[0].limiter[0], PPS * 100ull);
}

/*
 * A limit of a few packets more asks for a little less state. Of many packets the chance is that of
 * a curve instead of a sum: a step there would take memory for nothing, or give a user's greater
 * limit too little of it, and let its newcomers be dropped in a flood.
 */
static void test_no_step(void **unused)
{
	double was = lines_of(300), now;

	(void)unused;
	for (int packets = 306; packets < 3000; packets += 6, was = now) {
		now = lines_of(packets);
		assert_true(now > 1000);
		if (now > was || now < was * 0.96)
			fail_msg("packets: %d: %.0f lines, after %.0f", packets, now, was);
	}
}

/* Each limit that says nothing of its entries withstands it, and none has less than usual. */
static void test_sized(void **unused)
{
	static const uint64_t rates[] = {1000, 100000, 10000000, 50000000};
	static struct pacer_policy bin, usual;
	struct policy_error error = {0};
	char text[256];
	struct plan plan;

	(void)unused;
	assert_int_equal(compiled("rules: [{name: a, limits: [{key: src, packets: 9, window: 1s}, "
				  "{key: dst, rate: 10/s, burst: 9}]}]",
				  &usual, &plan, NULL, &error),
			 0);
	for (size_t i = 0; i < ARRAY(rates); i++) {
		snprintf(text, sizeof(text),
			 "withstand: %" PRIu64 "pps\n"
			 "rules: [{name: a, limits: [{key: src, packets: 9, window: 1s}, "
			 "{key: dst, rate: 10/s, burst: 9}, {key: src/24,48, packets: 9, window: "
			 "1s, entries: 1000}]}]",
			 rates[i]);
		assert_int_equal(compiled(text, &bin, &plan, NULL, &error), 0);
		for (int k = 0; k < 2; k++) {
			const struct pacer_limiter *t = &bin.rule[0].limiter[k];

			assert_true(flood_withstood(t) >= rates[i]);
			assert_true(t->base + compile_limiter_lines(t) <= plan.lines);
		}
		assert_int_equal(bin.rule[0].limiter[2].sets, 500);
	}
	snprintf(text, sizeof(text),
		 "withstand: 1pps\nrules: [{name: a, limits: [{key: src, "
		 "packets: 9, window: 1s}, {key: dst, rate: 10/s, burst: 9}]}]");
	assert_int_equal(compiled(text, &bin, &plan, NULL, &error), 0);
	for (int k = 0; k < 2; k++)
		assert_in_range(bin.rule[0].limiter[k].sets, usual.rule[0].limiter[k].sets - 1,
				usual.rule[0].limiter[k].sets + 1);
	/* Bans have their place beside the limits. */
	assert_int_equal(compiled("withstand: 1Mpps\nbans: 50k\nrules: [{name: a, ban: 9s, limits: "
				  "[{key: src, packets: 9, window: 1s}]}]",
				  &bin, &plan, NULL, &error),
			 0);
	assert_true(flood_withstood(&bin.rule[0].limiter[0]) >= 1000000);
	assert_true(bin.bans.sets > 0);
	assert_true(compile_ban_lines(&bin.bans) + compile_limiter_lines(&bin.rule[0].limiter[0]) <=
		    plan.lines);
}

/* Who has no keys, or entries of its own, asks for none; and bans may take more than all is
 * usually. */
static void test_asks_for_nothing(void **unused)
{
	static struct pacer_policy bin;
	const struct pacer_limiter *t = bin.rule[0].limiter;
	struct policy_error error = {0};
	struct plan plan;

	(void)unused;
	assert_int_equal(
	    compiled("withstand: 1Mpps\nrules: [{name: a, limits: [{key: all, packets: "
		     "9, window: 1s}, {key: all, uses: 9, cooldown: 1s}]}]",
		     &bin, &plan, NULL, &error),
	    0);
	assert_true(plan.lines_used == compile_limiter_lines(t) && plan.lines < 64);
	assert_int_equal(
	    compiled("withstand: 1Mpps\nrules: [{name: a, limits: [{key: src, packets: "
		     "9, window: 1s, entries: 1000}]}]",
		     &bin, &plan, NULL, &error),
	    0);
	assert_int_equal(t->sets, 500);
	assert_true(plan.lines < 2 * compile_limiter_lines(t));
	assert_int_equal(compiled("withstand: 1kpps\nbans: 2M\nrules: [{name: a, limits: [{key: "
				  "src, packets: 9, window: 1s}]}]",
				  &bin, &plan, NULL, &error),
			 0);
	assert_true(compile_ban_lines(&bin.bans) > POLICY_MEMORY_DEFAULT / 64);
	assert_in_range(flood_withstood(t), 1000, 10000);
}

/* What no table can withstand is refused, with the limit that takes the most. */
static void test_too_much(void **unused)
{
	static struct pacer_policy bin;
	struct policy_error error = {0};
	struct plan plan;

	(void)unused;
	assert_int_equal(
	    compiled("withstand: 10Mpps\nrules:\n- {name: a, limits: [{key: src, "
		     "rate: 10/s, burst: 9}]}\n- {name: b, limits: [{key: src, packets: "
		     "1, window: 1h}]}",
		     &bin, &plan, NULL, &error),
	    -1);
	assert_int_equal(error.line, 4);
	assert_non_null(strstr(error.text, "withstand: against such a flood this limit of rule b"));
	/* Less than the largest table, of which a quarter is left for changes. */
	assert_int_equal(
	    compiled("withstand: 80Gpps\nrules: [{name: a, limits: [{key: src, gap: 1ms}]}]", &bin,
		     &plan, NULL, &error),
	    -1);
	assert_non_null(strstr(
	    error.text, "takes 50 GiB of state, and all limits and bans together may take 48Gi: "));
}

/* A change leaves what is kept as it is, whatever another value would have asked for. */
static void test_change(void **unused)
{
	static const char format[] = "withstand: 1Mpps\nrules: [{name: a, limits: [{key: src, "
				     "packets: %d, window: 1s}]}]";
	static struct pacer_policy old, bin;
	struct policy_error error = {0};
	struct plan plan;
	struct compile_previous previous = {.bin = &old};
	char text[256];

	(void)unused;
	snprintf(text, sizeof(text), format, 10);
	assert_int_equal(compiled(text, &old, &plan, NULL, &error), 0);
	previous.policy = policy_parse(text, strlen(text), &error);
	previous.lines = plan.lines;
	snprintf(text, sizeof(text), format, 1);
	assert_int_equal(compiled(text, &bin, &plan, &previous, &error), 0);
	assert_int_equal(plan.limit[0].state, PLAN_KEPT);
	assert_int_equal(bin.rule[0].limiter[0].sets, old.rule[0].limiter[0].sets);
	policy_free((struct policy *)previous.policy);
}

/* What it will take, before it is loaded; without memory that is said, and nothing is told. */
static void test_foretold(void **unused)
{
	const char *const text =
	    "withstand: 1Mpps\nrules: [{name: a, limits: [{key: src, gap: 1s}]}]\n";
	struct policy_error error = {0};
	struct policy *policy = policy_parse(text, strlen(text), &error);
	uint64_t bytes = 0;
	int result = -1;

	(void)unused;
	assert_non_null(policy);
	for (uint32_t at = 1; result; at++) {
		starved_from(at, false);
		memory.on = true;
		result = compile_memory(policy, NULL, &bytes, &error);
		memory.on = false;
		if (result)
			assert_int_equal(error.line, POLICY_NO_MEMORY);
		assert_true(at < 50);
	}
	assert_true(bytes > 1 << 20);
	policy_free(policy);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_newcomers),	     cmocka_unit_test(test_sized),
	    cmocka_unit_test(test_asks_for_nothing), cmocka_unit_test(test_too_much),
	    cmocka_unit_test(test_change),	     cmocka_unit_test(test_foretold),
	    cmocka_unit_test(test_no_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
