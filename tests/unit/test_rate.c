/* SPDX-License-Identifier: GPL-2.0-only */
/* The rate with a burst, against an exact bucket that keeps whole numbers only. */
#include "oracle.h"

#include <stdbool.h>

#include "rate.h"

#define START 1000000ull
#define NS_S  1000000000ull
#define NS_H  (3600 * NS_S)

typedef unsigned __int128 wide;

/*
 * The exact bucket. Its level is the cost that has not drained yet, times per_ns, so that a ns
 * drains `amount`. After an admission the level is the largest, over all windows that end now, of
 * (cost of the window) * per_ns - amount * (its length): the promise is that this is at most
 * burst * per_ns.
 */
struct bucket {
	uint64_t amount, per_ns, burst, resolution_ns;
	uint64_t last_ns, units; /* units: admitted since the level was last 0 */
	wide level;
};

static void bucket_drain(struct bucket *b, uint64_t now_ns)
{
	wide drained = (wide)(now_ns - b->last_ns) * b->amount;

	b->level = b->level > drained ? b->level - drained : 0;
	if (!b->level)
		b->units = 0;
	b->last_ns = now_ns;
}

static bool bucket_holds(const struct bucket *b, uint64_t cost)
{
	return b->level + (wide)cost * b->per_ns <= (wide)b->burst * b->per_ns;
}

/* A denial may be false by twice the clock's resolution, and by 2^-32 ns for each unit since the
 * level was 0, of this packet and of the burst.
 */
static bool bucket_may_deny(const struct bucket *b, uint64_t cost)
{
	wide slack_ns32 = ((wide)b->resolution_ns << 33) + b->units + cost + b->burst;
	wide slack = slack_ns32 * b->amount;

	return ((b->level + (wide)cost * b->per_ns) << 32) + slack > ((wide)b->burst * b->per_ns)
									 << 32;
}

static void bucket_add(struct bucket *b, uint64_t cost)
{
	b->level += (wide)cost * b->per_ns;
	b->units += cost;
}

struct paced {
	struct pacer_rate rate;
	struct pacer_fine tat;
};

static bool pass(struct paced *p, uint64_t now_ns, uint32_t cost)
{
	struct pacer_fine tat = pacer_rate_tat(&p->rate, p->tat, now_ns);

	if (!pacer_rate_check(&p->rate, tat, now_ns, cost))
		return false;
	p->tat = pacer_rate_next(&p->rate, tat, now_ns, cost);
	return true;
}

static struct paced paced(enum pacer_cost cost, uint64_t amount, uint64_t per_ns, uint64_t burst)
{
	struct paced p = {0};

	assert_int_equal(pacer_rate_profile(&p.rate, cost, amount, per_ns, burst, 0),
			 PACER_RATE_OK);
	return p;
}

/* ---- a timeline ---- */

/* 10 a second with a burst of 3: three at once, then one every 100 ms; after a pause three again.
 */
static void test_timeline(void **unused)
{
	static const struct {
		uint64_t ms;
		bool admitted;
	} series[] = {
	    {0, true},	  {0, true},	{0, true},    {0, false},   {99, false},   {100, true},
	    {100, false}, {199, false}, {200, true},  {550, true},  {550, true},   {550, true},
	    {550, false}, {649, false}, {650, true},  {651, false}, {900, true},   {900, true},
	    {900, false}, {9000, true}, {9000, true}, {9000, true}, {9000, false},
	};
	struct paced p = paced(PACER_COST_PACKETS, 10, NS_S, 3);

	(void)unused;
	for (size_t i = 0; i < ARRAY(series); i++)
		assert_int_equal(pass(&p, START + series[i].ms * 1000000, 1), series[i].admitted);
}

/* The algorithm as I.371 has it, "TAT - t <= tau" with tau of the whole burst, lets a packet more
 * pass at once; of packets of 1,000 and a burst of 1,500 bytes it would let two.
 */
static void test_own_cost_counts(void **unused)
{
	struct paced p = paced(PACER_COST_BYTES, 1000, NS_S, 1500);

	(void)unused;
	assert_true(pass(&p, START, 1000));
	assert_false(pass(&p, START, 1000));
	assert_true(pass(&p, START, 500));
	assert_false(pass(&p, START, 1));
	assert_true(pass(&p, START + NS_S / 1000, 1));
}

/* ---- profiles ---- */

static void test_profile(void **unused)
{
	struct pacer_rate r;

	(void)unused;
	assert_int_equal(pacer_rate_profile(&r, PACER_COST_PACKETS, 1000, NS_S, 50, 0), 0);
	assert_int_equal(r.unit_ns, 1000000);
	assert_int_equal(r.unit_frac, 0);
	assert_int_equal(r.burst_ns, 50000000);
	/* A third: 333333333.3 ns, rounded up in its last place. */
	assert_int_equal(pacer_rate_profile(&r, PACER_COST_PACKETS, 3, NS_S, 3, 0), 0);
	assert_int_equal(r.unit_ns, 333333333);
	assert_int_equal(r.unit_frac, 0x55555556);
	assert_int_equal(r.burst_ns, 1000000000);
	assert_int_equal(r.burst_frac, 2);
	/* 100 Gbit/s: 0.08 ns a byte. */
	assert_int_equal(pacer_rate_profile(&r, PACER_COST_BYTES, 12500000000ull, NS_S, 65536, 0),
			 0);
	assert_int_equal(r.unit_ns, 0);
	assert_int_equal(r.unit_frac, 343597384);
	/* One an hour. */
	assert_int_equal(pacer_rate_profile(&r, PACER_COST_PACKETS, 1, NS_H, 24, 4000000), 0);
	assert_int_equal(r.unit_ns, NS_H);
	assert_int_equal(r.burst_ns, 24 * NS_H - 4000000);
}

/* The time of a unit is rounded up to 2^-32 ns, and where it has so few places it is exact. */
static void test_unit(void **unused)
{
	static const struct {
		uint64_t amount, per_ns, unit_ns;
		uint32_t unit_frac;
	} units[] = {
	    {1024, NS_S, 976562, 0x80000000}, /* a half is left */
	    {4096, NS_S, 244140, 0xa0000000},
	    {2, 1, 0, 0x80000000},
	    {1ull << 33, (1ull << 33) - 2, 0, 0xffffffff}, /* 2^-32 less than a whole one */
	    {1ull << 33, (1ull << 33) - 1, 1, 0},	   /* half of that: up to a whole one */
	    {(1ull << 62) - 1, 1, 0, 1},
	    {16, PACER_RATE_PER_NS_MAX, PACER_RATE_UNIT_NS_MAX, 0}, /* the longest of both */
	};
	struct pacer_rate r;

	(void)unused;
	for (size_t i = 0; i < ARRAY(units); i++) {
		memset(&r, 0xff, sizeof(r)); /* what was there does not count */
		assert_int_equal(pacer_rate_profile(&r, PACER_COST_PACKETS, units[i].amount,
						    units[i].per_ns, 1, 0),
				 0);
		assert_int_equal(r.unit_ns, units[i].unit_ns);
		assert_int_equal(r.unit_frac, units[i].unit_frac);
		assert_int_equal(r.burst_ns, units[i].unit_ns);
		assert_int_equal(r.burst_frac, units[i].unit_frac);
		assert_int_equal(r.begin_ns, 0);
	}
}

/* As many of the longest units as fit into 2.28 years, and one more. */
static void test_longest_burst(void **unused)
{
	const uint64_t most = PACER_RATE_BURST_NS_MAX / (PACER_RATE_UNIT_NS_MAX + 1);
	struct pacer_rate r;

	(void)unused;
	assert_int_equal(
	    pacer_rate_profile(&r, PACER_COST_PACKETS, 16, PACER_RATE_PER_NS_MAX, most, 0), 0);
	assert_int_equal(r.burst_ns, most * PACER_RATE_UNIT_NS_MAX);
	assert_int_equal(
	    pacer_rate_profile(&r, PACER_COST_PACKETS, 16, PACER_RATE_PER_NS_MAX, most + 1, 0),
	    PACER_RATE_BAD_BURST);
}

static void test_bad_profile(void **unused)
{
	static const struct {
		uint64_t amount, per_ns, burst, resolution_ns;
		enum pacer_rate_error error;
	} bad[] = {
	    {0, NS_S, 1, 0, PACER_RATE_BAD_RATE},
	    {1, 0, 1, 0, PACER_RATE_BAD_RATE},
	    {1ull << 62, NS_S, 1, 0, PACER_RATE_BAD_RATE},
	    {1, PACER_RATE_PER_NS_MAX + 1, 1, 0, PACER_RATE_BAD_RATE},
	    {1000, NS_S, 0, 0, PACER_RATE_BAD_BURST},
	    {1000, NS_S, 1ull << 32, 0, PACER_RATE_BAD_BURST},
	    {1, NS_H, PACER_RATE_BURST_NS_MAX / NS_H + 1, 0, PACER_RATE_BAD_BURST},
	    {1000, NS_S, 4, 4000000, PACER_RATE_BAD_CLOCK},
	    {1000, NS_S, 3, 4000000, PACER_RATE_BAD_CLOCK},
	};
	struct pacer_rate r;

	(void)unused;
	for (size_t i = 0; i < ARRAY(bad); i++)
		assert_int_equal(pacer_rate_profile(&r, PACER_COST_PACKETS, bad[i].amount,
						    bad[i].per_ns, bad[i].burst,
						    bad[i].resolution_ns),
				 bad[i].error);
	assert_int_equal(pacer_rate_profile(&r, PACER_COST_PACKETS, 1000, NS_S, 5, 4000000), 0);
}

static void test_cost(void **unused)
{
	struct paced packets = paced(PACER_COST_PACKETS, 10, NS_S, 3);
	struct paced bytes = paced(PACER_COST_BYTES, 1000000, NS_S, 65536);

	(void)unused;
	assert_int_equal(pacer_rate_cost(&packets.rate, 1500), 1);
	assert_int_equal(pacer_rate_cost(&bytes.rate, 1500), 1500);
	assert_int_equal(pacer_rate_cost(&bytes.rate, ~0u), PACER_RATE_COST_MAX);
}

/* ---- random runs ---- */

static void draw_profile(struct paced *p, struct bucket *b, uint64_t resolution_ns)
{
	static const uint64_t per[] = {NS_S, 60 * NS_S, NS_H};

	do {
		*b = (struct bucket){.amount = magnitude(1, 20000000000ull),
				     .per_ns = per[between(0, ARRAY(per) - 1)],
				     .burst = magnitude(1, 1 << 20),
				     .resolution_ns = resolution_ns};
		*p = (struct paced){0};
	} while (pacer_rate_profile(&p->rate, PACER_COST_BYTES, b->amount, b->per_ns, b->burst,
				    resolution_ns));
}

/* A step in time as long as the burst may take, or less, or none. */
static uint64_t draw_step(const struct bucket *b)
{
	uint64_t burst_ns = (wide)b->burst * b->per_ns / b->amount;

	switch (between(0, 3)) {
	case 0:
		return 0;
	case 1:
		return magnitude(0, burst_ns + 2);
	case 2:
		return between(0, 2 * burst_ns / b->burst + 2);
	}
	return between(0, 2 * burst_ns + 2);
}

static uint32_t draw_cost(const struct bucket *b)
{
	return between(0, 3) ? between(1, b->burst) : magnitude(1, b->burst + 2);
}

/*
 * No window holds more than burst + rate * its length, a denial is false only by the rounding, and
 * `when` is right to the ns: denied one before, admitted then.
 */
static void test_random(void **unused)
{
	uint64_t denied = 0, admitted = 0;

	(void)unused;
	oracle_seed(7);
	for (int run = 0; run < 2000; run++) {
		uint64_t now_ns = START + magnitude(0, 1ull << 60);
		struct paced p;
		struct bucket b;

		draw_profile(&p, &b, 0);
		b.last_ns = now_ns;
		for (int i = 0; i < 200; i++) {
			uint32_t cost = draw_cost(&b);
			uint64_t when = pacer_rate_when(&p.rate, p.tat, now_ns, cost);
			struct paced then = p;

			if (when == UINT64_MAX)
				assert_true(cost > b.burst);
			else if (when)
				assert_false(pass(&then, when - 1, cost));
			if (when != UINT64_MAX)
				assert_true(pass(&then, when, cost));
			now_ns += draw_step(&b);
			bucket_drain(&b, now_ns);
			if (pass(&p, now_ns, cost)) {
				assert_true(when <= now_ns);
				assert_true(bucket_holds(&b, cost));
				bucket_add(&b, cost);
				admitted++;
			} else {
				assert_true(when > now_ns);
				assert_true(bucket_may_deny(&b, cost));
				denied++;
			}
		}
	}
	assert_true(admitted > 50000 && denied > 50000);
}

/* The bucket's level is what it says: against every window of a short run. */
static void test_oracle(void **unused)
{
	(void)unused;
	oracle_seed(8);
	for (int run = 0; run < 300; run++) {
		struct bucket b = {.amount = between(1, 9), .per_ns = between(1, 50)};
		uint64_t time[30], cost[30], now = 0;

		for (int j = 0; j < 30; j++) {
			wide most = 0, sum = 0;

			now += between(0, 20);
			time[j] = now;
			cost[j] = between(1, 5);
			bucket_drain(&b, now);
			bucket_add(&b, cost[j]);
			for (int i = j; i >= 0; i--) {
				wide drained = (wide)b.amount * (now - time[i]);

				sum += (wide)cost[i] * b.per_ns;
				if (sum > drained && sum - drained > most)
					most = sum - drained;
			}
			assert_true(b.level == most);
		}
	}
}

/* On a clock of ticks: the promise holds on the clock that is exact. */
static void test_coarse(void **unused)
{
	const uint64_t tick = 4000000;
	uint64_t passed = 0;

	(void)unused;
	oracle_seed(9);
	for (int run = 0; run < 1000; run++) {
		uint64_t now_ns = START + draw() % NS_S;
		struct paced p;
		struct bucket b;

		draw_profile(&p, &b, tick);
		b.last_ns = now_ns;
		for (int i = 0; i < 300; i++) {
			uint32_t cost = draw_cost(&b);

			now_ns += between(0, 2) ? magnitude(0, 3 * tick) : draw_step(&b);
			bucket_drain(&b, now_ns);
			if (pass(&p, now_ns / tick * tick, cost)) {
				assert_true(bucket_holds(&b, cost));
				bucket_add(&b, cost);
				passed++;
			} else {
				assert_true(bucket_may_deny(&b, cost));
			}
		}
	}
	assert_true(passed > 30000);
}

/* A clock that runs back denies more, never less: what is admitted then counts at the time of the
 * latest admission.
 */
static void test_backward(void **unused)
{
	(void)unused;
	oracle_seed(10);
	for (int run = 0; run < 500; run++) {
		uint64_t now_ns = START + NS_S, latest = 0;
		struct paced p;
		struct bucket b;

		draw_profile(&p, &b, 0);
		for (int i = 0; i < 200; i++) {
			uint32_t cost = draw_cost(&b);
			uint64_t back = between(0, 2) ? 0 : magnitude(0, now_ns / 2);

			now_ns += draw_step(&b);
			if (!pass(&p, now_ns - back, cost))
				continue;
			if (now_ns - back > latest)
				latest = now_ns - back;
			bucket_drain(&b, latest);
			assert_true(bucket_holds(&b, cost));
			bucket_add(&b, cost);
		}
	}
}

/* From its idle time on, an entry is as good as none. */
static void test_idle(void **unused)
{
	(void)unused;
	oracle_seed(11);
	for (int run = 0; run < 2000; run++) {
		uint64_t now_ns = START, idle_ns;
		struct paced p, fresh;
		struct bucket b;

		draw_profile(&p, &b, 0);
		for (int i = 0; i < 20; i++)
			(void)pass(&p, now_ns += draw_step(&b), draw_cost(&b));
		idle_ns = pacer_rate_idle_ns(p.tat);
		fresh = (struct paced){.rate = p.rate};
		for (int i = 0; i < 20; i++) {
			uint32_t cost = draw_cost(&b);

			assert_int_equal(pass(&p, idle_ns, cost), pass(&fresh, idle_ns, cost));
		}
	}
}

/* At begin_ns no key has any of its burst, whatever it sent before; then it builds at the rate. */
static void test_begin(void **unused)
{
	struct paced p = paced(PACER_COST_PACKETS, 10, NS_S, 5);
	uint64_t begin_ns = START + 100 * NS_S, unit_ns = NS_S / 10;

	(void)unused;
	p.rate.begin_ns = begin_ns;
	for (int sent = 0; sent < 3; sent++) { /* nothing, some and all of its burst before */
		struct paced q = p;

		for (int i = 0; i < 3 * sent; i++)
			(void)pass(&q, begin_ns - 1, 1);
		assert_false(pass(&q, begin_ns, 1));
		assert_false(pass(&q, begin_ns + unit_ns - 1, 1));
		for (int i = 0; i < 3; i++)
			assert_true(pass(&q, begin_ns + 3 * unit_ns, 1));
		assert_false(pass(&q, begin_ns + 3 * unit_ns, 1));
		for (int i = 0; i < 5; i++)
			assert_true(pass(&q, begin_ns + 99 * unit_ns, 1));
		assert_false(pass(&q, begin_ns + 99 * unit_ns, 1));
	}
}

/* When a packet passes, beside a beginning: from now on, and not a moment later. */
static void test_when_it_begins(void **unused)
{
	uint32_t before = 0, after = 0;

	(void)unused;
	oracle_seed(11);
	for (int run = 0; run < 20000; run++) {
		uint64_t now_ns = (1ull << 57) + magnitude(0, 1ull << 40), when, at;
		uint32_t cost;
		struct paced p;
		struct bucket b;

		draw_profile(&p, &b, 0);
		cost = draw_cost(&b);
		p.tat.ns = now_ns - p.rate.burst_ns + between(0, 3 * p.rate.burst_ns);
		p.rate.begin_ns = now_ns - p.rate.burst_ns + between(0, 3 * p.rate.burst_ns);
		when = pacer_rate_when(&p.rate, p.tat, now_ns, cost);
		if (when == UINT64_MAX)
			continue;
		at = when > now_ns ? when : now_ns;
		before += at < p.rate.begin_ns;
		after += at >= p.rate.begin_ns;
		assert_true(pass(&(struct paced){p.rate, p.tat}, at, cost));
		if (at == now_ns)
			continue;
		assert_false(pass(&(struct paced){p.rate, p.tat}, at - 1, cost));
		for (int i = 0; i < 20; i++)
			assert_false(pass(&(struct paced){p.rate, p.tat},
					  now_ns + draw() % (at - now_ns), cost));
	}
	assert_true(before > 1000 && after > 1000);
}

/*
 * A packet of a limit that a fleet divides takes the span of this host's share, but no less than
 * the limit's own; and where its share has gone meanwhile, the whole burst.
 */
static void test_of_a_share(void **unused)
{
	const uint64_t slower_ns = 7 * NS_S, faster_ns = NS_S / 1000;
	struct pacer_limiter t = {.kind = PACER_LIMITER_RATE};
	struct pacer_ask q = {.limiter = &t, .now_ns = START, .part = PACER_SHARE_WHOLE};
	uint64_t own_ns;

	(void)unused;
	assert_int_equal(pacer_rate_profile(&t.rate, PACER_COST_PACKETS, 10, NS_S, 20, 0), 0);
	own_ns = pacer_rate_asked(&q).ns;
	assert_int_equal(own_ns, NS_S / 10);
	q.part = pacer_share_of_time(slower_ns, 0);
	assert_in_range(pacer_rate_asked(&q).ns, slower_ns, slower_ns + slower_ns / 1000);
	q.part = pacer_share_of_time(faster_ns, 0);
	assert_int_equal(pacer_rate_asked(&q).ns, own_ns);
	q.part = 0;
	assert_int_equal(pacer_rate_asked(&q).ns, t.rate.burst_ns);
	assert_int_equal(pacer_rate_asked(&q).frac, t.rate.burst_frac);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_timeline),	  cmocka_unit_test(test_own_cost_counts),
	    cmocka_unit_test(test_profile),	  cmocka_unit_test(test_unit),
	    cmocka_unit_test(test_longest_burst), cmocka_unit_test(test_bad_profile),
	    cmocka_unit_test(test_cost),	  cmocka_unit_test(test_oracle),
	    cmocka_unit_test(test_random),	  cmocka_unit_test(test_coarse),
	    cmocka_unit_test(test_backward),	  cmocka_unit_test(test_idle),
	    cmocka_unit_test(test_begin),	  cmocka_unit_test(test_when_it_begins),
	    cmocka_unit_test(test_of_a_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
