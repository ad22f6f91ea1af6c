/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * common/sampler.h: a CPU's samplers under one policy after the other, against an oracle that keeps
 * every packet; and user/sampling.c, which makes them of a policy.
 */
#include "oracle.h"

#include "sampler.h"
#include "sampling.h"

#define EVENTS_MAX 20000

static struct pacer_sampler sampler;
static uint64_t times[EVENTS_MAX];
static uint32_t n_times;

/* ---- against the oracle ---- */

static struct pacer_sampling random_sampling(uint64_t id)
{
	struct pacer_sampling by = {.id = id, .reasons = 1, .form = draw() % 3};

	by.k = draw() & 1 ? PACER_SAMPLE_K : between(1, PACER_SAMPLE_K);
	by.tick_shift = draw() % 8;
	by.window = by.form == PACER_SAMPLE_TIME ? between(2, 66) : magnitude(1, 3000);
	return by;
}

/* Packet number i bears it in every field that can hold it. */
static struct pacer_sample_item item_of(uint32_t i)
{
	return (struct pacer_sample_item){.time_ns = times[i], .saddr = {i}, .len_bytes = ~i};
}

static void add(const struct pacer_sampling *by, uint64_t now_ns)
{
	struct pacer_sample_item item;
	uint64_t took;

	assert_true(n_times < EVENTS_MAX);
	times[n_times++] = now_ns;
	if (!pacer_sampler_due(&sampler, by, now_ns))
		return;
	item = item_of(n_times - 1);
	pacer_sample_write_begin(&sampler.seq);
	pacer_sampler_take(&sampler, by, &item);
	pacer_sample_write_end(&sampler.seq);
	for (took = sampler.took; took; took &= took - 1) {
		uint32_t place = pacer_sampler_place(&sampler, pacer_sampler_lowest(took));

		assert_int_equal(pacer_sampler_item(&sampler, by, place)->saddr[0], n_times - 1);
	}
}

/* The first packet of the window at that tick. */
static uint32_t first_of(const struct pacer_sampling *by, uint64_t tick)
{
	uint64_t last = n_times ? times[n_times - 1] >> by->tick_shift : 0;
	uint32_t i = 0;

	if (by->form != PACER_SAMPLE_TIME)
		return n_times > by->window ? n_times - by->window : 0;
	tick = tick > last ? tick : last;
	while (i < n_times && tick - (times[i] >> by->tick_shift) >= by->window)
		i++;
	return i;
}

static void check(const struct pacer_sampling *by, uint64_t tick)
{
	struct pacer_sample_item out[PACER_SAMPLE_K];
	struct pacer_sample_rng rng = {draw()};
	uint32_t first = first_of(by, tick), n = n_times - first, k = n ? by->k : 0;
	uint32_t got = pacer_sampler_draw(&sampler, by, &rng, tick, out);

	assert_int_equal(pacer_sampler_n(&sampler, by, tick), n);
	if (by->form == PACER_SAMPLE_LAST_WOR && n < k)
		k = n;
	assert_int_equal(got, k);
	for (uint32_t j = 0; j < got; j++) {
		struct pacer_sample_item item = item_of(out[j].saddr[0]);

		assert_true(out[j].saddr[0] >= first && out[j].saddr[0] < n_times);
		assert_memory_equal(&out[j], &item, sizeof(item));
		for (uint32_t i = 0; i < j && by->form == PACER_SAMPLE_LAST_WOR; i++)
			assert_true(out[i].saddr[0] != out[j].saddr[0]);
	}
}

/* Bursts, steady packets, and silence of every length. */
static uint64_t next_time(uint64_t now_ns, uint32_t pattern)
{
	if (pattern == 0)
		return now_ns + draw() % 4;
	if (pattern == 1)
		return now_ns + (draw() % 50 ? 0 : magnitude(1, 1 << 14));
	return now_ns + (draw() % 8 ? draw() % 200 : magnitude(1, 1 << 16));
}

/* One policy after the other on one sampler: what another one left does not show. */
static void test_oracle(void **state)
{
	uint64_t now_ns = 1;

	(void)state;
	oracle_seed(71);
	memset(&sampler, 0xa5, sizeof(sampler));
	pacer_sampler_init(&sampler, 9);
	for (uint32_t run = 0; run < 400; run++) {
		struct pacer_sampling by = random_sampling(run + 1);
		uint32_t packets = magnitude(1, 4000), pattern = draw() % 3;
		struct pacer_sample_item out[PACER_SAMPLE_K];
		struct pacer_sample_rng rng = {run};
		uint64_t tick = now_ns >> by.tick_shift;

		n_times = 0;
		assert_int_equal(pacer_sampler_n(&sampler, &by, 0), 0);
		assert_int_equal(pacer_sampler_draw(&sampler, &by, &rng, tick, out), 0);
		for (uint32_t i = 0; i < packets; i++) {
			now_ns = next_time(now_ns, pattern);
			add(&by, now_ns);
			if (draw() % 64 == 0)
				check(&by, now_ns >> by.tick_shift);
		}
		for (uint32_t i = 0; i < 70; i++)
			check(&by, (now_ns >> by.tick_shift) + i);
		assert_true(sampler.seq % 2 == 0 && sampler.burst.ticks % 2 == 0);
	}
}

/* From the clock's first moment on, when nothing can have expired. */
static void test_from_zero(void **state)
{
	struct pacer_sampling by = {
	    .id = 1, .reasons = 1, .form = PACER_SAMPLE_TIME, .k = 3, .window = 40};

	(void)state;
	pacer_sampler_init(&sampler, 1);
	n_times = 0;
	for (uint64_t tick = 0; tick < 300; tick++) {
		add(&by, tick);
		check(&by, tick);
	}
}

/* A copy of the last tick's end, with a tick that its ring knows of and the rest does not. */
static void test_behind(void **state)
{
	static struct pacer_sampler now;
	struct pacer_sampling by = {
	    .id = 1, .reasons = 1, .form = PACER_SAMPLE_TIME, .k = 64, .window = 10};

	(void)state;
	pacer_sampler_init(&sampler, 1);
	n_times = 0;
	for (uint64_t tick = 1; tick < 200; tick += 1 + tick % 3) {
		for (uint32_t i = 0; i < 5; i++)
			add(&by, tick);
		now = sampler;
		sampler.burst.count = 0;
		n_times -= 5;
		check(&by, tick);
		sampler.tick[(tick + 1) % PACER_SAMPLER_TICKS] =
		    (struct pacer_sampler_tick){tick + 1, now.burst.N + 5};
		check(&by, tick);
		check(&by, tick + 10); /* only what it does not know of is active */
		n_times += 5;
		sampler = now;
	}
}

/* Ticks of another length from before, which the window of today would hold. */
static void test_stale_ticks(void **state)
{
	struct pacer_sampling by = {
	    .id = 1, .reasons = 1, .form = PACER_SAMPLE_TIME, .k = 4, .window = 10};

	(void)state;
	pacer_sampler_init(&sampler, 1);
	for (uint64_t tick = 100; tick < 110; tick++)
		add(&by, tick);
	by.id = 2;
	by.tick_shift = 4;
	n_times = 0;
	for (uint32_t i = 0; i < 5; i++)
		add(&by, 50 << 4);
	add(&by, 112 << 4);
	check(&by, 112);
}

static void test_lowest(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(pacer_sampler_lowest(1ull << i), i);
		assert_int_equal(pacer_sampler_lowest(~0ull << i), i);
	}
}

/* ---- of a policy ---- */

static struct pacer_policy bin, previous;

static struct pacer_sampling compiled(const struct policy_sample *sample, uint64_t now_ns)
{
	return sampling_compile(sample, &bin, &previous, 4000000, now_ns);
}

/* The window's ticks are at least as long as was asked for, and two more at most. */
static void test_ticks(void **state)
{
	struct policy_sample sample = {.on = true, .k = 5};

	(void)state;
	oracle_seed(72);
	for (uint32_t i = 0; i < 100000; i++) {
		uint64_t resolution_ns = draw() & 1 ? 4000000 : 0, window_ns, tick_ns;
		struct pacer_sampling s;

		sample.window_ns = magnitude(1, 1ull << 62);
		s = sampling_compile(&sample, &bin, NULL, resolution_ns, 1);
		window_ns = sample.window_ns + resolution_ns;
		tick_ns = 1ull << s.tick_shift;
		assert_true(s.form == PACER_SAMPLE_TIME && s.window < PACER_SAMPLER_TICKS);
		assert_true((s.window - 1) * (__uint128_t)tick_ns >= window_ns);
		assert_true((s.window - 2) * (__uint128_t)tick_ns <= window_ns);
		assert_true(s.window >= 34 || !s.tick_shift);
	}
}

static void test_reasons(void **state)
{
	struct policy_sample sample = {.on = true, .k = 5, .packets = 9};
	uint32_t denied, admitted;

	(void)state;
	sample.of = SAMPLE_DENIED;
	denied = compiled(&sample, 1).reasons;
	sample.of = SAMPLE_ADMITTED;
	admitted = compiled(&sample, 1).reasons;
	sample.of = SAMPLE_ALL;
	assert_int_equal(admitted, 1u << PACER_ADMIT);
	assert_true(denied >> PACER_DENY_WINDOW & 1 && denied >> PACER_DENY_NO_STATE & 1);
	assert_int_equal(compiled(&sample, 1).reasons,
			 denied | admitted | 1u << PACER_NO_RULE | 1u << PACER_ALLOWED);
	sample.on = false;
	assert_int_equal(compiled(&sample, 1).reasons, 0);
}

static void test_forms(void **state)
{
	struct policy_sample sample = {.on = true, .k = 7, .packets = 9, .snap_bytes = 60};
	struct pacer_sampling s;

	(void)state;
	s = compiled(&sample, 3);
	assert_true(s.form == PACER_SAMPLE_LAST && s.window == 9 && s.k == 7 && s.snap == 60);
	sample.without_replacement = true;
	assert_int_equal(compiled(&sample, 3).form, PACER_SAMPLE_LAST_WOR);
	assert_int_equal(sampling_bytes(&s, 3),
			 3 * (sizeof(struct pacer_sampler) + sizeof(struct pacer_heads)));
	s.snap = 0;
	assert_int_equal(sampling_bytes(&s, 3), 3 * sizeof(struct pacer_sampler));
	s.reasons = 0;
	assert_int_equal(sampling_bytes(&s, 3), 0);
}

/* What of a change begins anew. */
static void test_ids(void **state)
{
	struct policy_sample sample = {.on = true, .k = 7, .packets = 9}, other;

	(void)state;
	memset(&bin, 0, sizeof(bin));
	bin.rule[0].counter = 1;
	previous = bin;
	previous.sampling = compiled(&sample, 10);
	assert_int_equal(previous.sampling.id, 10);
	assert_int_equal(compiled(&sample, 20).id, 10);
	for (int i = 0; i < 5; i++) {
		other = sample;
		other.k += i == 0;
		other.packets += i == 1;
		other.without_replacement = i == 2;
		other.snap_bytes = i == 3;
		other.of = i == 4 ? SAMPLE_ALL : other.of;
		assert_int_equal(compiled(&other, 20).id, 20);
	}
	bin.rule[0].counter = 0;
	assert_int_equal(compiled(&sample, 20).id, 10);
	bin.rule[3].counter = 2;
	assert_int_equal(compiled(&sample, 20).id, 20);
	memset(&bin, 0, sizeof(bin));
	memset(&previous, 0, sizeof(previous));
	assert_int_equal(compiled(&sample, 20).id, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_oracle),  cmocka_unit_test(test_from_zero),
	    cmocka_unit_test(test_behind),  cmocka_unit_test(test_stale_ticks),
	    cmocka_unit_test(test_lowest),  cmocka_unit_test(test_ticks),
	    cmocka_unit_test(test_reasons), cmocka_unit_test(test_forms),
	    cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
