/* SPDX-License-Identifier: GPL-2.0-only */
/* The slot window, against the source's series and its two exact solutions. */
#include "oracle.h"

#include "window_oracle.h"

#define MS     1000000ull
#define SECOND (1000 * MS)
#define START  1000

/* A record with the most lines one can have. */
struct ring {
	struct pacer_line line[1 + PACER_EXTRA_MAX];
	struct pacer_table table;
	struct pacer_ring at;
	uint32_t cursor;
};

static void ring_empty(struct ring *r, uint32_t running)
{
	memset(r, 0, sizeof(*r));
	r->table = (struct pacer_table){r->line, ARRAY(r->line)};
	r->at = (struct pacer_ring){&r->table,	       r->line, &r->line->unit[0].entry,
				    &r->line->unit[1], 0,	0};
	r->line[0].running = running; /* of which a narrow record has the lowest byte */
}

static uint32_t look(const struct pacer_window *w, struct ring *r, uint64_t now_ns)
{
	r->at.narrow = pacer_window_narrow(w);
	return pacer_window_total(w, &r->at, r->cursor, now_ns);
}

static uint32_t add(const struct pacer_window *w, struct ring *r, uint64_t now_ns, uint32_t cost)
{
	r->at.narrow = pacer_window_narrow(w);
	r->cursor = pacer_window_add(w, &r->at, r->cursor, now_ns, cost);
	return look(w, r, now_ns);
}

static int add_if_fits(const struct pacer_window *w, struct ring *r, uint64_t now_ns, uint32_t cost)
{
	uint32_t total = look(w, r, now_ns);

	if ((uint64_t)total + cost > w->limit)
		return 0;
	assert_int_equal(add(w, r, now_ns, cost), total + cost);
	return 1;
}

static struct pacer_window profile(enum pacer_cost cost, uint64_t limit, uint64_t window_ns,
				   uint32_t slots)
{
	struct pacer_window w = {0};

	assert_int_equal(pacer_window_profile(&w, cost, limit, window_ns, slots, 0),
			 PACER_WINDOW_OK);
	return w;
}

/* ---- the source's series ---- */

static const struct {
	uint64_t time;
	uint32_t cost, total;
} series[] = {
    {1000, 1, 1}, {1010, 3, 4}, {1050, 1, 5}, {1100, 4, 9}, {1200, 1, 5}, {1300, 1, 2},
};

static void test_series_multimap(void **unused)
{
	struct oracle_multimap m = {.interval = 100};
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(series); i++)
		assert_int_equal(multimap_add(&m, series[i].time, series[i].cost), series[i].total);
	free(m.event);
}

static void test_series_deque(void **unused)
{
	struct oracle_deque d = {.interval = 100};
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(series); i++)
		assert_int_equal(deque_add(&d, series[i].time, series[i].cost), series[i].total);
	deque_free(&d);
}

static void test_series_slots(void **unused)
{
	struct pacer_window w = profile(PACER_COST_PACKETS, 100, 100, 10);
	struct ring r;
	size_t i;

	(void)unused;
	ring_empty(&r, 0);
	assert_int_equal(w.slot_ns, 10);
	for (i = 0; i < ARRAY(series); i++)
		assert_int_equal(add(&w, &r, series[i].time, series[i].cost), series[i].total);
}

/* ---- its walk through ten slots ---- */

static const struct {
	uint64_t time;
	uint32_t cost, before,
	    total; /* before: with the cost, until what is too old is taken off */
} walk[] = {
    {6500 * MS, 2, 2, 2},    {8800 * MS, 6, 8, 8},   {12700 * MS, 1, 9, 9},
    {17000 * MS, 3, 12, 10}, {32000 * MS, 0, 10, 0},
};

static void test_walk_exact(void **unused)
{
	struct oracle_multimap m = {.interval = 9 * SECOND};
	struct oracle_deque d = {.interval = 9 * SECOND};
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(walk); i++) {
		assert_int_equal(d.total + walk[i].cost, walk[i].before);
		assert_int_equal(deque_add(&d, walk[i].time, walk[i].cost), walk[i].total);
		assert_int_equal(multimap_add(&m, walk[i].time, walk[i].cost), walk[i].total);
	}
	deque_free(&d);
	free(m.event);
}

static void test_walk_source(void **unused)
{
	struct oracle_slots s = {.width = SECOND, .n = 10};
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(walk); i++) {
		assert_int_equal(s.total + walk[i].cost, walk[i].before);
		assert_int_equal(slots_add(&s, walk[i].time, walk[i].cost), walk[i].total);
	}
}

static void test_walk_slots(void **unused)
{
	struct pacer_window w = profile(PACER_COST_PACKETS, 100, 9 * SECOND, 9);
	uint64_t last = walk[0].time;
	struct ring r;
	size_t i;

	(void)unused;
	ring_empty(&r, 0);
	assert_int_equal(w.slot_ns, SECOND);
	assert_int_equal(w.ring, 10);
	for (i = 0; i < ARRAY(walk); i++) {
		assert_int_equal(look(&w, &r, last) + walk[i].cost, walk[i].before);
		if (walk[i].cost)
			add(&w, &r, walk[i].time, walk[i].cost);
		assert_int_equal(look(&w, &r, walk[i].time), walk[i].total);
		last = walk[i].time;
	}
}

/* ---- decay and the edges of time ---- */

static void test_decay(void **unused)
{
	static const struct {
		uint64_t now;
		uint32_t total;
	} rows[] = {
	    {1000, 7}, {1025, 7}, {1099, 7}, {1100, 7}, {1109, 7}, {1110, 6},
	    {1119, 6}, {1120, 4}, {1129, 4}, {1130, 0}, {2000, 0}, {UINT64_MAX, 0},
	};
	struct pacer_window w = profile(PACER_COST_PACKETS, 10, 100, 10);
	struct pacer_line before;
	struct ring r;
	size_t i;

	(void)unused;
	ring_empty(&r, 12345);
	assert_int_equal(look(&w, &r, 1), 0);
	add(&w, &r, 1000, 1);
	add(&w, &r, 1019, 2);
	add(&w, &r, 1020, 4);
	before = r.line[0];
	for (i = 0; i < ARRAY(rows); i++)
		assert_int_equal(look(&w, &r, rows[i].now), rows[i].total);
	assert_memory_equal(&before, &r.line[0], sizeof(before));
}

static void test_backward_clock(void **unused)
{
	struct pacer_window w = profile(PACER_COST_PACKETS, 3, 100, 10);
	struct ring r;

	(void)unused;
	ring_empty(&r, 0);
	assert_true(add_if_fits(&w, &r, 1000, 1));
	assert_true(add_if_fits(&w, &r, 1055, 1));
	assert_true(add_if_fits(&w, &r, 1, 1)); /* counts as 1050, where the slot began */
	assert_int_equal(r.line[0].head_ns, 1050);
	assert_false(add_if_fits(&w, &r, 1, 1));
	assert_false(add_if_fits(&w, &r, 1109, 1));
	assert_int_equal(look(&w, &r, 1110), 2);
	assert_int_equal(look(&w, &r, 1159), 2);
	assert_int_equal(look(&w, &r, 1160), 0);
}

static void test_long_silence(void **unused)
{
	static const uint64_t silence[] = {110, 111, 119, 1000, 1ull << 32, 1ull << 40, 1ull << 63};
	struct pacer_window w = profile(PACER_COST_PACKETS, 3, 100, 10);
	struct ring r;
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(silence); i++) {
		ring_empty(&r, 0);
		assert_true(add_if_fits(&w, &r, START, 3));
		assert_false(add_if_fits(&w, &r, START + 109, 1));
		assert_true(add_if_fits(&w, &r, START + silence[i], 2));
		assert_int_equal(r.line[0].head_ns, START + silence[i]);
		assert_int_equal(look(&w, &r, START + silence[i] + 109), 2);
		assert_int_equal(look(&w, &r, START + silence[i] + 110), 0);
	}
}

static void test_running_total_wraps(void **unused)
{
	struct pacer_window w = profile(PACER_COST_BYTES, PACER_LIMIT_MAX, 100, 10);
	uint64_t now = START, i;
	struct ring r;

	(void)unused;
	ring_empty(&r, 0);
	assert_int_equal(w.cost_shift, 0);
	for (i = 0; i < 50; i++, now += 110) { /* fifty times 2^31: it wraps 25 times */
		assert_true(add_if_fits(&w, &r, now, PACER_LIMIT_MAX - 1));
		assert_true(add_if_fits(&w, &r, now + 50, 1));
		assert_false(add_if_fits(&w, &r, now + 100, 1));
		assert_int_equal(look(&w, &r, now + 100), PACER_LIMIT_MAX);
		now += 50;
	}
}

/* The same of a byte, in every slot of the largest ring that it is used for. */
static void test_narrow_wraps(void **unused)
{
	struct pacer_window w = profile(PACER_COST_PACKETS, PACER_NARROW_LIMIT,
					PACER_NARROW_SLOTS * 10, PACER_NARROW_SLOTS);
	uint64_t now = START, i;
	struct ring r;

	(void)unused;
	ring_empty(&r, 77);
	assert_true(pacer_window_narrow(&w));
	for (i = 0; i < 5000; i++, now += 10) { /* 17 a slot: 15 slots hold 255 */
		uint32_t slots = i < w.ring ? i + 1 : w.ring;

		assert_true(add_if_fits(&w, &r, now, 17));
		assert_int_equal(look(&w, &r, now), 17 * slots);
		assert_false(add_if_fits(&w, &r, now, PACER_NARROW_LIMIT - 17 * slots + 1));
	}
}

/* ---- profiles ---- */

static void test_profile_errors(void **unused)
{
	static const struct {
		enum pacer_cost cost;
		uint64_t limit, window, slots, resolution;
		enum pacer_window_error error;
	} rows[] = {
	    {0, 0, SECOND, 10, 0, PACER_WINDOW_BAD_LIMIT},
	    {1, 0, SECOND, 10, 0, PACER_WINDOW_BAD_LIMIT},
	    {0, 1, SECOND, 10, 0, PACER_WINDOW_OK},
	    {0, PACER_LIMIT_MAX, SECOND, 10, 0, PACER_WINDOW_OK},
	    {0, PACER_LIMIT_MAX + 1ull, SECOND, 10, 0, PACER_WINDOW_BAD_LIMIT},
	    {0, UINT64_MAX, SECOND, 10, 0, PACER_WINDOW_BAD_LIMIT},
	    {1, PACER_LIMIT_MAX + 1ull, SECOND, 10, 0, PACER_WINDOW_OK},
	    {1, (1ull << 47) - 1, SECOND, 10, 0, PACER_WINDOW_OK},
	    {1, 1ull << 47, SECOND, 10, 0, PACER_WINDOW_BAD_LIMIT},
	    {1, UINT64_MAX, SECOND, 10, 0, PACER_WINDOW_BAD_LIMIT},
	    {0, 1, 0, 10, 0, PACER_WINDOW_BAD_TIME},
	    {0, 1, 0, 0, 1, PACER_WINDOW_BAD_TIME},
	    {0, 1, PACER_WINDOW_NS_MAX, 10, PACER_WINDOW_NS_MAX, PACER_WINDOW_OK},
	    {0, 1, PACER_WINDOW_NS_MAX + 1, 10, 0, PACER_WINDOW_BAD_TIME},
	    {0, 1, SECOND, 10, PACER_WINDOW_NS_MAX + 1, PACER_WINDOW_BAD_TIME},
	    {0, 1, UINT64_MAX, 10, UINT64_MAX, PACER_WINDOW_BAD_TIME},
	    {0, 1, SECOND, 0, 0, PACER_WINDOW_BAD_SLOTS},
	    {0, 1, SECOND, 1, 0, PACER_WINDOW_OK},
	    {0, 1, SECOND, PACER_SLOTS_MAX, 0, PACER_WINDOW_OK},
	    {0, 1, SECOND, PACER_SLOTS_MAX + 1, 0, PACER_WINDOW_BAD_SLOTS},
	    {0, 1, 1, 1, 0, PACER_WINDOW_OK},
	    {0, 1, 9, 9, 0, PACER_WINDOW_OK},
	    {0, 1, 9, 10, 0, PACER_WINDOW_BAD_SLOTS},
	};
	struct pacer_window w;
	size_t i;

	(void)unused;
	assert_int_equal(PACER_SLOTS_MAX, 58);
	for (i = 0; i < ARRAY(rows); i++)
		assert_int_equal(pacer_window_profile(&w, rows[i].cost, rows[i].limit,
						      rows[i].window, rows[i].slots,
						      rows[i].resolution),
				 rows[i].error);
}

static void test_profile_lines(void **unused)
{
	static const struct {
		uint32_t slots, extra;
	} rows[] = {{1, 0}, {10, 0}, {11, 1}, {26, 1}, {27, 2}, {42, 2}, {43, 3}, {58, 3}};
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(rows); i++) {
		struct pacer_window w = profile(0, 256, SECOND, rows[i].slots);

		assert_int_equal(w.extra_lines, rows[i].extra);
		assert_int_equal(w.units, 4 * (1 + rows[i].extra));
		assert_int_equal(profile(0, 255, SECOND, rows[i].slots).units,
				 rows[i].slots <= 14 ? 2 : w.units);
	}
	assert_int_equal(PACER_NARROW_SLOTS, 14);
	assert_int_equal(profile(0, 255, SECOND, 14).units, 2);
	assert_int_equal(profile(0, 255, SECOND, 15).units, 8);
}

/* Bytes are rounded up a packet and the limit down, never the other way. */
static void test_scaled_cost(void **unused)
{
	static const struct {
		uint64_t limit;
		uint32_t len, shift, cost;
	} rows[] = {
	    {PACER_LIMIT_MAX, 1500, 0, 1500}, {1ull << 31, 1500, 1, 750},
	    {1ull << 31, 1501, 1, 751},	      {(1ull << 32) + 1, 1, 2, 1},
	    {(1ull << 47) - 1, 65535, 16, 1}, {(1ull << 47) - 1, 65536, 16, 1},
	    {(1ull << 47) - 1, 65537, 16, 2}, {(1ull << 47) - 1, 1u << 31, 16, 1u << 15},
	    {(1ull << 47) - 1, 0, 16, 0},
	};
	struct pacer_window w;
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(rows); i++) {
		w = profile(PACER_COST_BYTES, rows[i].limit, SECOND, 10);
		assert_int_equal(w.cost_shift, rows[i].shift);
		assert_int_equal(w.limit, rows[i].limit >> rows[i].shift);
		assert_int_equal(pacer_window_cost(&w, rows[i].len), rows[i].cost);
	}
	w = profile(PACER_COST_PACKETS, 5, SECOND, 10);
	assert_int_equal(pacer_window_cost(&w, 1500), 1);
}

/* Windows of every size in slots of every number; a fifth of them on a clock with a resolution. */
static struct pacer_window random_profile(enum pacer_cost cost, uint64_t limit, uint64_t window_max,
					  uint64_t *span)
{
	uint32_t slots = draw() & 1 ? between(1, PACER_SLOTS_MAX) : between(1, 4);
	uint64_t window = magnitude(slots, window_max);
	uint64_t resolution = draw() % 5 ? 0 : magnitude(1, window);
	struct pacer_window w = {0};

	if (!(draw() % 3)) /* one that the slots divide, or just not */
		window = window / slots * slots + draw() % 2;
	assert_int_equal(pacer_window_profile(&w, cost, limit, window, slots, resolution),
			 PACER_WINDOW_OK);
	assert_true(w.slot_ns * slots >= window + resolution);
	assert_true(w.ring_ns == w.slot_ns * (slots + 1));
	assert_int_equal(pacer_window_narrow(&w),
			 w.limit <= PACER_NARROW_LIMIT && slots <= PACER_NARROW_SLOTS);
	if (draw() & 1)
		pacer_window_widen(&w);
	*span = window + resolution;
	return w;
}

static void slots_are(const struct pacer_window *w, uint64_t ns)
{
	unsigned __int128 exact = (unsigned __int128)ns / w->slot_ns;

	if (pacer_window_slots(w, ns) != (exact < w->ring ? exact : w->ring))
		fail_msg("%llu ns in slots of %llu: %u", (unsigned long long)ns,
			 (unsigned long long)w->slot_ns, pacer_window_slots(w, ns));
}

static void test_slots_exact(void **unused)
{
	uint64_t span;
	int i, k;

	(void)unused;
	oracle_seed(7);
	for (i = 0; i < 30000; i++) {
		struct pacer_window w = random_profile(0, 1, PACER_WINDOW_NS_MAX - 1, &span);

		for (k = 0; k <= w.ring + 1; k++) {
			slots_are(&w, k * w.slot_ns);
			slots_are(&w, k * w.slot_ns + 1);
			slots_are(&w, k * w.slot_ns + w.slot_ns - 1);
		}
		for (k = 0; k < 20; k++)
			slots_are(&w, between(0, w.ring_ns + 2));
		slots_are(&w, UINT64_MAX);
		slots_are(&w, draw());
	}
}

static void test_slots_extremes(void **unused)
{
	struct pacer_window w = {0};
	uint32_t slots, k;

	(void)unused;
	for (slots = 1; slots <= PACER_SLOTS_MAX; slots++) {
		assert_int_equal(
		    pacer_window_profile(&w, 0, 1, PACER_WINDOW_NS_MAX, slots, PACER_WINDOW_NS_MAX),
		    PACER_WINDOW_OK);
		for (k = 1; k <= w.ring; k++) {
			slots_are(&w, k * w.slot_ns - 1);
			slots_are(&w, k * w.slot_ns);
		}
		w = profile(0, 1, slots, slots);
		for (k = 0; k <= 2u * w.ring + 4; k++)
			slots_are(&w, k);
	}
}

/* ---- long runs against the deque ---- */

struct run {
	struct pacer_window w;
	uint64_t limit, now;
	struct ring ring;
	struct oracle_deque closed; /* as costs are: G1 */
	struct oracle_deque wide;   /* in units, over (t - (m+1) T, t]: G2 */
	uint64_t admitted, denied;
};

static void run_begin(struct run *r, const struct pacer_window *w, uint64_t span, uint64_t limit)
{
	*r = (struct run){.w = *w, .limit = limit, .now = 1 + (draw() >> between(2, 63))};
	ring_empty(&r->ring, draw());
	r->closed.interval = span;
	r->wide.interval = w->ring_ns - 1;
}

static void run_end(struct run *r)
{
	deque_free(&r->closed);
	deque_free(&r->wide);
}

/* A packet at r->now: is what is done with it within the promises? */
static void run_packet(struct run *r, uint32_t len_bytes)
{
	uint32_t cost = pacer_window_cost(&r->w, len_bytes);
	uint64_t real = r->w.cost == PACER_COST_BYTES ? len_bytes : 1;

	if (add_if_fits(&r->w, &r->ring, r->now, cost)) {
		r->admitted++;
		deque_add(&r->wide, r->now, cost);
		if (deque_add(&r->closed, r->now, real) > r->limit)
			fail_msg("G1: %u slots of %llu ns, at %llu", r->w.ring - 1u,
				 (unsigned long long)r->w.slot_ns, (unsigned long long)r->now);
		return;
	}
	r->denied++;
	if (deque_total(&r->wide, r->now) + cost <= r->w.limit)
		fail_msg("G2: %u slots of %llu ns, at %llu", r->w.ring - 1u,
			 (unsigned long long)r->w.slot_ns, (unsigned long long)r->now);
}

/* The next time: nothing, a little, or by an edge of the slot, the ring or the window. */
static uint64_t random_step(struct run *r)
{
	uint64_t slot = r->w.slot_ns, in = r->now - r->ring.line[0].head_ns, edge;

	switch (draw() % 16) {
	case 0 ... 3:
		return 0;
	case 4:
		return 1;
	case 5 ... 8:
		return draw() % slot;
	case 9:
		return draw() % (r->w.ring_ns / 16 + 2);
	case 10:
		return r->closed.interval + draw() % 3 - 1;
	case 11:
		deque_expire(&r->closed, r->now);
		return r->closed.first < r->closed.end /* the oldest leaves the window */
			   ? r->closed.event[r->closed.first].time + r->closed.interval + 1 -
				 r->now - draw() % 2
			   : 1;
	case 12 ... 14:
		edge = between(1, r->w.ring) * slot + draw() % 3 - 1;
		return edge > in ? edge - in : 0;
	}
	return draw() % 8 ? draw() % (2 * slot) : draw() % (3 * r->w.ring_ns);
}

static uint32_t random_len(const struct run *r)
{
	uint64_t part = r->limit / between(1, 20);

	return 1 + draw() % (part < (1ull << 31) - 1 ? part + 1 : (1ull << 31) - 1);
}

static void random_runs(enum pacer_cost cost, uint64_t limit_max, uint64_t window_max)
{
	uint64_t span, admitted = 0, denied = 0;
	static struct run r;
	int i, k;

	for (i = 0; i < 2500; i++) {
		uint64_t limit = magnitude(1, limit_max);
		struct pacer_window w = random_profile(cost, limit, window_max, &span);

		run_begin(&r, &w, span, limit);
		for (k = 0; k < 600 && r.now < 1ull << 63; k++) {
			r.now += random_step(&r);
			run_packet(&r, random_len(&r));
		}
		admitted += r.admitted;
		denied += r.denied;
		run_end(&r);
	}
	assert_true(admitted > 100000);
	assert_true(denied > 100000);
}

static void test_runs_packets(void **unused)
{
	(void)unused;
	oracle_seed(1);
	random_runs(PACER_COST_PACKETS, 30, 1ull << 40);
}

static void test_runs_tiny(void **unused)
{
	(void)unused;
	oracle_seed(2);
	random_runs(PACER_COST_PACKETS, 20, 200);
}

static void test_runs_huge(void **unused)
{
	(void)unused;
	oracle_seed(3);
	random_runs(PACER_COST_PACKETS, 20, PACER_WINDOW_NS_MAX - 1);
}

static void test_runs_bytes(void **unused)
{
	(void)unused;
	oracle_seed(4);
	random_runs(PACER_COST_BYTES, PACER_LIMIT_MAX, 1ull << 36);
}

static void test_runs_scaled(void **unused)
{
	(void)unused;
	oracle_seed(5);
	random_runs(PACER_COST_BYTES, 1ull << 36, 1ull << 36);
}

/* On a clock that sometimes goes back: such a time counts as the latest that was seen. */
static void run_backward(struct run *r)
{
	uint64_t seen = 1, back, now_ns;
	int k;

	for (k = 0; k < 500; k++) {
		r->now += random_step(r);
		back = draw() % 4 ? 0 : draw() % (2 * r->closed.interval);
		now_ns = back < r->now ? r->now - back : 1;
		if (!add_if_fits(&r->w, &r->ring, now_ns, 1)) {
			r->denied++;
			continue;
		}
		seen = now_ns > seen ? now_ns : seen;
		assert_true(deque_add(&r->closed, seen, 1) <= r->limit);
		r->admitted++;
	}
}

static void test_runs_backward(void **unused)
{
	uint64_t span, limit, denied = 0;
	static struct run r;
	int i;

	(void)unused;
	oracle_seed(6);
	for (i = 0; i < 300; i++) {
		struct pacer_window w;

		limit = between(1, 20);
		w = random_profile(0, limit, 1ull << 30, &span);
		run_begin(&r, &w, span, limit);
		run_backward(&r);
		assert_true(r.admitted);
		denied += r.denied;
		run_end(&r);
	}
	assert_true(denied > 10000);
}

/* ---- the source's shortened window ---- */

/* Random traffic above the limit; returns the most that any closed second held. */
static uint64_t most_in_a_second(const struct pacer_window *w, uint64_t seed)
{
	struct oracle_deque second = {.interval = SECOND};
	uint64_t most = 0, now = START, total;
	struct ring r;
	int i;

	oracle_seed(seed);
	ring_empty(&r, 0);
	for (i = 0; i < 60000; i++) {
		now += draw() % 100 ? draw() % (2 * MS) : draw() % SECOND;
		if (!add_if_fits(w, &r, now, 1))
			continue;
		total = deque_add(&second, now, 1);
		most = total > most ? total : most;
	}
	deque_free(&second);
	return most;
}

/* 300 a second kept as 300 in nine slots of 0.1 s: they forget after 0.8 to 0.9 s. */
static void test_shortened(void **unused)
{
	struct pacer_window shortened = profile(PACER_COST_PACKETS, 300, 800 * MS, 8);
	struct pacer_window whole = profile(PACER_COST_PACKETS, 300, SECOND, 10);
	uint64_t seed;

	(void)unused;
	assert_int_equal(shortened.slot_ns, 100 * MS);
	assert_int_equal(shortened.ring_ns, 900 * MS);
	for (seed = 0; seed < 4; seed++) {
		assert_true(most_in_a_second(&shortened, seed) > 300);
		assert_int_equal(most_in_a_second(&whole, seed), 300);
	}
}

/* The same in five lines: twice the limit within 0.9 s. */
static void test_shortened_edge(void **unused)
{
	struct pacer_window shortened = profile(PACER_COST_PACKETS, 300, 800 * MS, 8);
	struct pacer_window whole = profile(PACER_COST_PACKETS, 300, SECOND, 10);
	struct ring r;

	(void)unused;
	ring_empty(&r, 0);
	assert_true(add_if_fits(&shortened, &r, SECOND, 300));
	assert_true(add_if_fits(&shortened, &r, SECOND + 900 * MS, 300));
	ring_empty(&r, 0);
	assert_true(add_if_fits(&whole, &r, SECOND, 300));
	assert_false(add_if_fits(&whole, &r, SECOND + 900 * MS, 1));
	assert_false(add_if_fits(&whole, &r, 2 * SECOND, 1));
	assert_true(add_if_fits(&whole, &r, 2 * SECOND + 100 * MS, 300));
}

/* ---- what a sustained flow gets ---- */

static void test_sustained(void **unused)
{
	uint64_t now, end, admitted, limit = 40;
	uint32_t slots, most = 60;
	struct ring r;

	(void)unused;
	for (slots = 1; slots <= PACER_SLOTS_MAX; slots++) {
		struct pacer_window w = profile(PACER_COST_PACKETS, limit, slots * 1000, slots);
		uint64_t step = slots * 1000 / (3 * limit);

		ring_empty(&r, 0);
		end = START + most * w.ring_ns;
		for (now = START, admitted = 0; now < end; now += step)
			admitted += add_if_fits(&w, &r, now, 1);
		/* m / (m + 1) of limit * time / window, but for what the last ring is short of */
		assert_true(admitted >= (most - 1) * limit);
		assert_true(admitted <= (most * (slots + 1) / slots + 2) * limit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_series_multimap), cmocka_unit_test(test_series_deque),
	    cmocka_unit_test(test_series_slots),    cmocka_unit_test(test_walk_exact),
	    cmocka_unit_test(test_walk_source),	    cmocka_unit_test(test_walk_slots),
	    cmocka_unit_test(test_decay),	    cmocka_unit_test(test_backward_clock),
	    cmocka_unit_test(test_long_silence),    cmocka_unit_test(test_running_total_wraps),
	    cmocka_unit_test(test_narrow_wraps),    cmocka_unit_test(test_profile_errors),
	    cmocka_unit_test(test_profile_lines),   cmocka_unit_test(test_scaled_cost),
	    cmocka_unit_test(test_slots_exact),	    cmocka_unit_test(test_slots_extremes),
	    cmocka_unit_test(test_runs_packets),    cmocka_unit_test(test_runs_tiny),
	    cmocka_unit_test(test_runs_huge),	    cmocka_unit_test(test_runs_bytes),
	    cmocka_unit_test(test_runs_scaled),	    cmocka_unit_test(test_runs_backward),
	    cmocka_unit_test(test_shortened),	    cmocka_unit_test(test_shortened_edge),
	    cmocka_unit_test(test_sustained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
