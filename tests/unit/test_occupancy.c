/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which limit carries out a limit, against what the compiler says, across changes of policy; and
 * how full a table is, against a count of all of it.
 */
#include "applied.h"
#include "rule.h"
#include "plan/flood.h"
#include "plan/kinds.h"
#include "inspect/occupancy.h"

#define LINES 131072

/* Every limit is found where it was compiled to, alone or as a guest, and entries of no other kind.
 */
static void assert_found(const struct applied *p)
{
	for (size_t i = 0; i < p->plan.n_limits; i++) {
		const struct plan_limit *at = &p->plan.limit[i];
		const struct policy_limit *limit = &p->policy->rule[at->rule].limit[at->limit];
		const struct pacer_rule *rule = &p->bin.rule[at->rule];
		bool table = limit->kind == LIMIT_WINDOW || limit->kind == LIMIT_RATE;
		const struct pacer_limiter *want = table ? &rule->limiter[at->limiter] : NULL;

		for (size_t k = 0; k < rule->n_limiters; k++)
			if ((limit_is(limit, &rule->limiter[k], RESOLUTION) ||
			     limit_is_guest(limit, &rule->limiter[k], RESOLUTION)) !=
			    (k == at->limiter))
				fail_msg("limit %zu: compiled to %u, and %zu\n%s", at->limit,
					 at->limiter, k, doc.s);
		if (occupancy_limiter(rule, limit, RESOLUTION) != want)
			fail_msg("limit %zu: tier %td, compiled to %d\n%s", at->limit,
				 occupancy_limiter(rule, limit, RESOLUTION) - rule->limiter,
				 want ? (int)at->limiter : -1, doc.s);
	}
}

static void say_limit(uint32_t i)
{
	static const char *const keys[] = {"src/32,64", "src/24,56", "dst",
					   "all",	"flow",	     "src+dport"};
	const char *key = keys[draw() % 6];
	uint32_t n = (uint32_t)between(100, 4000) * 8 + i; /* no two limits are alike */
	uint32_t s = (uint32_t)between(1, 60);

	switch (draw() % 5) {
	case 0:
		say("  - {key: '%s', packets: %u, window: %us, slots: %u}\n", key, n, s,
		    (uint32_t)between(1, 58));
		break;
	case 1:
		say("  - {key: '%s', bytes: %uK, window: %us}\n", key, n, s);
		break;
	case 2:
		say("  - {key: '%s', rate: %u/s, burst: %u}\n", key, n, (uint32_t)between(50, 500));
		break;
	case 3:
		say("  - {key: '%s', gap: %uus}\n", key, n);
		break;
	default:
		say("  - {key: all, uses: %u, cooldown: %us}\n", n, s);
	}
}

static void say_policy(void)
{
	uint32_t n = (uint32_t)between(1, 5);

	say_again();
	say("memory: 4Mi\nclock: %s\nrules:\n- name: a\n  limits:\n",
	    draw() & 1 ? "exact" : "coarse");
	for (uint32_t i = 0; i < n; i++)
		say_limit(i);
}

/* Also where limits went on, were draining, or moved under another secret. */
static void test_found_across_changes(void **unused)
{
	uint32_t changed = 0, rotated = 0;

	(void)unused;
	for (uint32_t run = 0; run < 300; run++) {
		say_policy();
		if (load(doc.s))
			continue;
		assert_found(&now);
		for (uint32_t i = 0; i < 3; i++) {
			host.now_ns += between(1, 60 * SECOND);
			if (draw() & 1) {
				rotated += !rotate();
			} else {
				say_policy();
				changed += !apply(doc.s);
			}
			time_draining();
			assert_found(&now);
		}
	}
	assert_true(changed > 100 && rotated > 100);
}

/* On either clock: a rate's burst is what it says, or a tick of the coarse clock less. */
static void test_found_by_its_burst(void **unused)
{
	static const char *const clocks[] = {"exact", "coarse"};

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		const struct policy_limit *limit;
		struct pacer_limiter *t;
		uint64_t burst_ns;

		say_again();
		say("clock: %s\nrules:\n- {name: a, limits: [{key: src, rate: 100/s, burst: "
		    "10}]}\n",
		    clocks[i]);
		assert_int_equal(load(doc.s), 0);
		limit = &now.policy->rule[0].limit[0];
		t = &now.bin.rule[0].limiter[0];
		assert_true(limit_is(limit, t, RESOLUTION));
		burst_ns = t->rate.burst_ns + i * RESOLUTION;
		t->rate.burst_ns = burst_ns + 1;
		assert_false(limit_is(limit, t, RESOLUTION));
		t->rate.burst_ns = burst_ns;
		assert_true(limit_is(limit, t, RESOLUTION));
		t->rate.burst_ns = burst_ns - RESOLUTION;
		assert_true(limit_is(limit, t, RESOLUTION));
		t->rate.burst_ns--;
		assert_false(limit_is(limit, t, RESOLUTION));
	}
}

static const struct pacer_limiter *limiter_of(const char *limit)
{
	rule_of("memory: 8Mi\nclock: exact", limit);
	assert_int_equal(load(doc.s), 0);
	return &now.bin.rule[0].limiter[0];
}

/* Each entry for itself, and those behind the sets, by the layout that table.h states. */
static uint64_t count_all(const struct pacer_limiter *t, const struct pacer_line *lines,
			  bool shared)
{
	uint64_t from = shared ? 2ull * t->sets : 0, n = shared ? t->shared : 2ull * t->sets,
		 used = 0;

	for (uint64_t i = from; i < from + n; i++) {
		uint64_t unit = i * t->units;
		const struct pacer_line *line = &lines[t->base + unit / PACER_LINE_UNITS];

		used +=
		    !pacer_record_idle(t, &line->unit[unit % PACER_LINE_UNITS].entry, host.now_ns);
	}
	return used;
}

/* Entries that hold something, that have held something, and that were never used. */
static void fill(const struct pacer_limiter *t, struct pacer_line *lines, uint32_t share)
{
	for (uint64_t i = 0; i < 2ull * t->sets + t->shared; i++) {
		uint64_t unit = i * t->units;
		struct pacer_entry *e =
		    &lines[t->base + unit / PACER_LINE_UNITS].unit[unit % PACER_LINE_UNITS].entry;

		if (draw() % 100 < share)
			e->head_ns = host.now_ns;
		else
			e->head_ns = draw() & 1 ? 0 : host.now_ns - t->idle_ns;
	}
}

static void test_how_full(void **unused)
{
	static const char *const limits[] = {
	    "{key: src, packets: 300, window: 1s}",
	    "{key: src, packets: 300, window: 1s, entries: 3000}",
	    "{key: src, packets: 100000, window: 1s}",
	    "{key: src, packets: 100000, window: 1s, slots: 40, entries: 9000}",
	    "{key: src, rate: 10/s, burst: 5}",
	    "{key: src, rate: 10/s, burst: 5, entries: 100}",
	};
	struct pacer_line *lines = aligned_alloc(64, LINES * sizeof(*lines));
	uint32_t exact = 0;

	(void)unused;
	assert_non_null(lines);
	host.now_ns = 1000000 * SECOND;
	for (uint32_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		for (uint32_t share = 0; share <= 100; share += 20)
			for (uint32_t shared = 0; shared < 2; shared++) {
				const struct pacer_limiter *t = limiter_of(limits[i]);
				uint64_t capacity, got, all;

				fill(t, lines, share);
				got =
				    occupancy_used(t, lines, LINES, host.now_ns, shared, &capacity);
				all = count_all(t, lines, shared);
				assert_int_equal(capacity, shared ? t->shared : 2 * t->sets);
				exact += t->sets <= OCCUPANCY_SETS;
				if ((shared ? t->shared : t->sets) <= OCCUPANCY_SETS)
					assert_int_equal(got, all);
				else
					assert_in_range(got + capacity / 60, all,
							all + 2 * (capacity / 60));
				assert_true(got <= capacity);
			}
	assert_true(exact > 30);
	free(lines);
}

/* The table is the kernel's, and the limit may be half written: nothing beyond the table is read.
 */
static void test_beyond_the_table(void **unused)
{
	struct pacer_line line[2] = {0};
	struct pacer_limiter t = *limiter_of("{key: src, rate: 10/s, burst: 5}");
	uint64_t capacity;

	(void)unused;
	line[1].unit[0].entry.head_ns = host.now_ns;
	t.base = 1;
	assert_int_equal(occupancy_used(&t, line, 2, host.now_ns, false, &capacity) > 0, true);
	t.base = UINT32_MAX;
	assert_int_equal(occupancy_used(&t, line, 2, host.now_ns, true, &capacity), 0);
	t.sets = 0;
	assert_int_equal(occupancy_used(&t, line, 2, host.now_ns, false, &capacity), 0);
	assert_int_equal(capacity, 0);
}

/* One rule with two limits that differ in one thing: each is carried out by its own limiter alone.
 */
static void test_limits_that_are_alike(void **unused)
{
	static const struct {
		const char *one, *other;
	} rows[] = {
	    {"key: src, packets: 9, window: 1s", "key: src, packets: 8, window: 1s"},
	    {"key: src, packets: 9, window: 1s", "key: src, packets: 9, window: 2s"},
	    {"key: src, packets: 9, window: 1s", "key: src, packets: 9, window: 1s, slots: 9"},
	    {"key: src, packets: 9, window: 1s", "key: src, bytes: 9, window: 1s"},
	    {"key: src, packets: 9, window: 1s", "key: dst, packets: 9, window: 1s"},
	    {"key: src, packets: 9, window: 1s", "key: src, packets: 9, window: 1s, of: new"},
	    {"key: src, packets: 9, window: 1s", "key: src, packets: 9, window: 1s, fleet: yes"},
	    {"key: 'value(g, src)', packets: 9, window: 1s",
	     "key: 'value(h, src)', packets: 9, window: 1s"},
	    {"key: src, rate: 10/s, burst: 99", "key: src, rate: 11/s, burst: 99"},
	    {"key: src, rate: 10/s, burst: 99", "key: src, rate: 10/s, burst: 98"},
	    {"key: src, rate: 10/s, burst: 98", "key: src, rate: 10/s, burst: 99"},
	    {"key: src, rate: 10/s, burst: 9K", "key: src, rate: 10B/s, burst: 9K"},
	    {"key: all, uses: 9, cooldown: 1s", "key: all, uses: 9, cooldown: 2s"},
	    {"key: all, uses: 9, cooldown: 1s", "key: all, uses: 8, cooldown: 1s"},
	    {"key: src, gap: 1s", "key: src, gap: 2s"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		say_again();
		say("clock: coarse\nfleet: {store: 'http://a', name: f}\nsets:\n"
		    "- {name: g, file: /g, value: 2}\n- {name: h, file: /h, value: 2}\nrules:\n"
		    "- name: a\n  limits: [{%s}, {%s}]\n",
		    rows[i].one, rows[i].other);
		assert_int_equal(load(doc.s), 0);
		assert_int_equal(now.bin.rule[0].n_limiters, 2);
		assert_found(&now);
	}
}

/* What a limit counts, in words. */
static void test_units(void **unused)
{
	static const struct {
		const char *limit, *unit;
	} rows[] = {
	    {"key: src, packets: 9, window: 1s", "packets"},
	    {"key: src, bytes: 9, window: 1s", "bytes"},
	    {"key: src, packets: 9, window: 1s, of: new", "new flows"},
	    {"key: src, bytes: 9, window: 1s, of: new", "bytes of new flows"},
	    {"key: src, rate: 10/s, burst: 9, of: new", "new flows"},
	    {"key: src, rate: 10B/s, burst: 9K, of: new", "bytes of new flows"},
	    {"key: src, gap: 1s", "packets"},
	    {"key: src, gap: 1s, of: new", "new flows"},
	    {"key: all, uses: 9, cooldown: 1s", "uses"},
	    {"key: all, uses: 9, cooldown: 1s, of: new", "uses by new flows"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		say_again();
		say("rules: [{name: a, limits: [{%s}]}]\n", rows[i].limit);
		assert_int_equal(load(doc.s), 0);
		assert_string_equal(limit_unit(&now.policy->rule[0].limit[0]), rows[i].unit);
	}
}

/* As a rule has it that is a verdict: no limit, so nothing of it is anywhere. */
static void test_no_limit(void **unused)
{
	struct pacer_limiter none = {.kind = PACER_LIMITER_NONE},
			     throttle = {.kind = PACER_LIMITER_THROTTLE};

	(void)unused;
	assert_int_equal(flood_lines(&throttle, 1000000), 0); /* it is of all packets */
	assert_null(kind_of_limiter(&none));
	assert_int_equal(compile_limiter_lines(&none), 0);
	assert_int_equal(compile_limiter_memory_ns(&none), 0);
	assert_false(compile_hashed(&none) || compile_in_lines(&none));
	assert_int_equal(flood_lines(&none, 1000000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_found_across_changes),
	    TEST(test_found_by_its_burst),
	    TEST(test_how_full),
	    TEST(test_limits_that_are_alike),
	    TEST(test_units),
	    TEST(test_no_limit),
	    TEST(test_beyond_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
