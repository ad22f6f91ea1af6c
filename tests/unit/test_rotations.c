/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Values that change while a rotation of the secret goes on: a source gets as many packets as it
 * gets without the rotation. Of a rule with two windows, one by prefix and one by source, and with
 * a gap that comes, goes or changes beside them.
 */
#include "at_work.h"

#define SPAN_MS 10000
#define BY(which, most)                                                                     \
	{                                                                                   \
		.kind = LIMIT_WINDOW, .by = (which), .value = (most), .window_ms = SPAN_MS, \
		.slots = 10                                                                 \
	}
#define GAP(ms)                                                   \
	{                                                         \
		.kind = LIMIT_GAP, .by = BY_SOURCE, .value = (ms) \
	}
#define WINDOWS(prefix, source) BY(BY_PREFIX, prefix), BY(BY_SOURCE, source)
#define TWO(prefix, source)                                                \
	{                                                                  \
		.says = ASKS, .n = 2, .limit = { WINDOWS(prefix, source) } \
	}
#define NOBODY(prefix, source)                                               \
	{                                                                    \
		.says = DENIES, .n = 2, .limit = { WINDOWS(prefix, source) } \
	}
#define THREE(prefix, source, gap)                                                   \
	{                                                                            \
		.says = ASKS, .n = 3, .limit = { WINDOWS(prefix, source), GAP(gap) } \
	}

static const struct sequence {
	const char *name;
	struct variant change[4]; /* the first one is loaded; then comes the rotation */
	uint32_t n;
	uint32_t more; /* packets that the last one lets through at once */
} sequences[] = {
    {"lowered", {TWO(100, 200), TWO(100, 40)}, 2, 0},
    {"raised", {TWO(100, 200), TWO(150, 200)}, 2, 50},
    {"one raised, one lowered", {TWO(100, 200), TWO(200, 90)}, 2, 0},
    {"lowered, and raised again", {TWO(100, 200), TWO(40, 200), TWO(120, 200)}, 3, 20},
    {"a gap comes before", {TWO(100, 200), THREE(100, 200, 10), THREE(200, 90, 10)}, 3, 0},
    {"a gap is shortened before",
     {THREE(100, 200, 11), THREE(100, 200, 10), THREE(200, 90, 10)},
     3,
     0},
    {"a gap comes, and all is raised",
     {TWO(100, 200), THREE(100, 200, 10), THREE(130, 200, 10)},
     3,
     30},
    {"denied before", {TWO(100, 200), NOBODY(100, 200), TWO(100, 91), TWO(200, 90)}, 4, 0},
};

/* As many as get through in so long a time. */
static uint32_t send_for(uint64_t for_ns)
{
	uint64_t end_ns = kernel_now_ns + for_ns;
	uint32_t n = 0;

	while (kernel_now_ns < end_ns) {
		kernel_now_ns += 12 * MS;
		while (packet(0, 0))
			n++;
	}
	return n;
}

static void run(const struct sequence *s, bool rotates)
{
	uint32_t n;

	begin_work(s->name, false);
	n_variants = s->n;
	memcpy(variant, s->change, s->n * sizeof(*variant));
	load_first(&variant[0]);
	kernel_now_ns += 2 * SPAN_MS * MS;
	assert_int_equal(send_for(2 * SECOND), 100);
	/* A rule that denies does so before the rotation. */
	for (uint32_t i = 1; i < s->n; i++) {
		if (rotates && i == 1 + (variant[1].says == DENIES))
			rotate_it();
		change_to(&variant[i], 0);
		if (i + 1 < s->n)
			assert_int_equal(send_for(100 * MS), 0);
	}
	n = send_for(3 * SECOND);
	if (n != s->more || work.broken || work.refused)
		fail_msg("%s%s: %u more, expected %u", s->name, rotates ? ", rotated" : "", n,
			 s->more);
	(void)end(NULL);
}

static void test_rotations(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(sequences); i++) {
		run(&sequences[i], false);
		run(&sequences[i], true);
	}
}

static int tests(void)
{
	const struct CMUnitTest all[] = {cmocka_unit_test(test_rotations)};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
	return with_saved(tests);
}
