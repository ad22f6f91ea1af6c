/* SPDX-License-Identifier: GPL-2.0-only */
/* The recency sketch and the TTL filter, against the time at which each key was really seen. */
#include "oracle.h"

#define PACER_STEP_HOOK
#include "recency.h"

#define START 1000000ull

/* Another CPU, that raises the cell by one between this CPU's steps. */
static __u64 *contended;

void pacer_step(const volatile void *p)
{
	if (p == contended)
		++*contended;
}

/* ---- the pair of cells ---- */

static void test_pair_distinct(void **unused)
{
	static const uint32_t edges[] = {0, 1, 9362, 9363, 10922, 10923, 32768, 65534, 65535};
	uint32_t low, k;

	(void)unused;
	for (low = 0; low < 65536; low++)
		for (k = 0; k < ARRAY(edges); k++) {
			uint32_t mark = edges[k] << 16 | low, swapped = low << 16 | edges[k];

			assert_true(pacer_recency_cell(mark, 0) < PACER_CELLS);
			assert_true(pacer_recency_cell(mark, 1) < PACER_CELLS);
			assert_true(pacer_recency_cell(mark, 0) != pacer_recency_cell(mark, 1));
			assert_true(pacer_recency_cell(swapped, 0) !=
				    pacer_recency_cell(swapped, 1));
		}
}

/* Of 65536 halves as many to each cell as to another, but for one: the first cell comes from the
 * lower half alone, the distance to the second from the upper half alone.
 */
static void test_pair_equal(void **unused)
{
	uint32_t a[7] = {0}, distance[7] = {0}, i, d;

	(void)unused;
	assert_int_equal(PACER_CELLS, 7);
	for (i = 0; i < 65536; i++) {
		a[pacer_recency_cell(i, 0)]++;
		assert_int_equal(pacer_recency_cell(i | 0xffff0000, 0), pacer_recency_cell(i, 0));
		d = pacer_recency_cell(i << 16 | 12345, 1) + 7 - pacer_recency_cell(12345, 0);
		assert_int_equal(
		    (pacer_recency_cell(i << 16 | 54321, 1) + 7 - pacer_recency_cell(54321, 0)) % 7,
		    d % 7);
		distance[d % 7]++;
	}
	assert_int_equal(distance[0], 0);
	for (i = 0; i < 7; i++) {
		assert_in_range(a[i], 65536 / 7, 65536 / 7 + 1);
		if (i)
			assert_in_range(distance[i], 65536 / 6, 65536 / 6 + 1);
	}
}

/* All 42 ordered pairs by chance: chi-square of 41 degrees, above 95 with a chance of 3e-6. */
static void test_pair_chance(void **unused)
{
	uint32_t n[7][7] = {{0}}, i, k, mark;
	double chi = 0, expected = 10000;

	(void)unused;
	oracle_seed(51);
	for (i = 0; i < 42 * 10000; i++) {
		mark = draw();
		n[pacer_recency_cell(mark, 0)][pacer_recency_cell(mark, 1)]++;
	}
	for (i = 0; i < 7; i++)
		for (k = 0; k < 7; k++)
			chi += i == k ? 0 : (n[i][k] - expected) * (n[i][k] - expected) / expected;
	for (i = 0; i < 7; i++)
		assert_int_equal(n[i][i], 0);
	assert_true(chi < 95);
}

/* ---- the gap ---- */

static void test_gap_open(void **unused)
{
	static const struct {
		uint64_t last, now, gap;
		int open;
	} rows[] = {
	    {0, 1, 100, 1},	  {0, 1, UINT64_MAX, 1}, {1000, 1099, 100, 0},
	    {1000, 1100, 100, 1}, {1000, 999, 100, 0},	 {1000, 1, 1, 0},
	    {1000, 1000, 0, 1},	  {1000, 1000, 1, 0},	 {UINT64_MAX, 1, 100, 0},
	    {1000, 999, 0, 1},	  {UINT64_MAX, 1, 0, 1}, {1000, 0, 1, 0},
	};
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(rows); i++)
		assert_int_equal(pacer_gap_open(rows[i].last, rows[i].now, rows[i].gap),
				 rows[i].open);
}

/* A line, and what is known of it. */
struct bench {
	struct pacer_line line;
	uint64_t raised[PACER_CELLS]; /* when, 0: never */
	uint32_t by[PACER_CELLS];     /* by which key */
	uint32_t rows;
	uint64_t gap;
};

static int ask(struct bench *b, uint32_t who, uint32_t mark, uint64_t now)
{
	uint64_t last = pacer_recency_estimate(&b->line, mark, b->rows);
	uint32_t i;

	if (!pacer_gap_open(last, now, b->gap))
		return 0;
	pacer_recency_raise(&b->line, mark, b->rows, now);
	for (i = 0; i < b->rows; i++) {
		uint32_t cell = pacer_recency_cell(mark, i);

		if (b->raised[cell] < now) {
			b->raised[cell] = now;
			b->by[cell] = who;
		}
	}
	return 1;
}

/* A denial that the key's own past does not account for is the work of others on all its cells. */
static void denial_is_true(const struct bench *b, uint32_t who, uint32_t mark, uint64_t last,
			   uint64_t now)
{
	uint32_t i, cell;

	if (last && now - last < b->gap)
		return;
	for (i = 0; i < b->rows; i++) {
		cell = pacer_recency_cell(mark, i);
		assert_true(b->raised[cell] && now - b->raised[cell] < b->gap);
		assert_int_not_equal(b->by[cell], who);
	}
}

static void gap_runs(uint32_t rows)
{
	uint64_t now, admitted = 0, wrong = 0;
	uint32_t i, k, n, who, mark[20];
	static struct oracle_seen seen;
	struct bench b;

	for (i = 0; i < 300; i++) {
		memset(&b, 0, sizeof(b));
		memset(&seen, 0, sizeof(seen));
		b.rows = rows;
		b.gap = between(1, 300);
		n = between(1, 20);
		for (k = 0; k < n; k++)
			mark[k] = draw();
		for (k = 0, now = START; k < 2000; k++) {
			now += draw() % 8 ? draw() % (b.gap / 4 + 2) : b.gap - draw() % 2;
			who = draw() % n;
			assert_true(pacer_recency_estimate(&b.line, mark[who], rows) >=
				    seen.last[who]);
			if (!ask(&b, who, mark[who], now)) {
				denial_is_true(&b, who, mark[who], seen.last[who], now);
				wrong += !seen.last[who] || now - seen.last[who] >= b.gap;
				continue;
			}
			assert_true(!seen.last[who] || now - seen.last[who] >= b.gap);
			seen.last[who] = now;
			admitted++;
		}
	}
	assert_true(admitted > 10000 && wrong > 1000);
}

static void test_gap_one_row(void **unused)
{
	(void)unused;
	oracle_seed(52);
	gap_runs(1);
}

static void test_gap_two_rows(void **unused)
{
	(void)unused;
	oracle_seed(53);
	gap_runs(2);
}

/* However many keys there are: a cell admits one a gap, and with one row all cells do. */
static void test_ceiling(void **unused)
{
	struct oracle_deque d = {.interval = 999};
	uint64_t now, most = 0, total;
	uint32_t rows, i;
	struct bench b;

	(void)unused;
	oracle_seed(54);
	for (rows = 1; rows <= 2; rows++, most = 0) {
		memset(&b, 0, sizeof(b));
		b.rows = rows;
		b.gap = 1000;
		for (i = 0, now = START; i < 200000; i++, now += draw() % 20)
			if (ask(&b, i, draw(), now)) {
				total = deque_add(&d, now, 1);
				assert_true(total <= PACER_CELLS);
				most = total > most ? total : most;
			}
		assert_true(most >= (rows == 1 ? PACER_CELLS : PACER_CELLS - 2));
		deque_free(&d);
	}
}

/* A key without cells in common with another never waits for it. */
static void test_lone_key(void **unused)
{
	struct bench b = {.rows = 2, .gap = 100};
	uint64_t now;

	(void)unused;
	for (now = START; now < START + 100000; now += 100) {
		assert_true(ask(&b, 0, 0, now));
		assert_false(ask(&b, 0, 0, now + 99));
	}
}

/* The clock goes back: no admission, no cell is lowered. */
static void test_gap_backward(void **unused)
{
	struct bench b = {.rows = 2, .gap = 100};
	struct pacer_line before;

	(void)unused;
	assert_true(ask(&b, 0, 0, START));
	assert_false(ask(&b, 0, 0, START - 500));
	assert_false(ask(&b, 0, 0, START + 99));
	before = b.line;
	pacer_recency_raise(&b.line, 0, 2, START - 1);
	assert_memory_equal(&before, &b.line, sizeof(before));
	pacer_recency_raise(&b.line, 0, 2, START + 1);
	assert_int_equal(pacer_recency_estimate(&b.line, 0, 2), START + 1);
}

/* The estimate is the earliest of the key's cells; with one row, the first alone. */
static void test_estimate(void **unused)
{
	struct pacer_line line = {0};
	uint32_t a = pacer_recency_cell(0x12345678, 0), b = pacer_recency_cell(0x12345678, 1);

	(void)unused;
	line.cell[a] = 30;
	line.cell[b] = 20;
	assert_int_equal(pacer_recency_estimate(&line, 0x12345678, 2), 20);
	assert_int_equal(pacer_recency_estimate(&line, 0x12345678, 1), 30);
	line.cell[b] = 40;
	assert_int_equal(pacer_recency_estimate(&line, 0x12345678, 2), 30);
	line.cell[a] = 0;
	pacer_recency_raise(&line, 0x12345678, 1, 50);
	assert_int_equal(line.cell[a], 50);
	assert_int_equal(line.cell[b], 40);
	assert_int_equal(line.lock, 0);
}

/* ---- the filter ---- */

#define CELLS 64u
#define KEYS  40u

/* Cells hold insertion times: may a key whose entries live for ttl_ns be live? 0 is certain. */
static int ttl_inserted_live(const __u64 *cells, __u32 mask, struct pacer_ttl_key key, __u64 now_ns,
			     __u64 ttl_ns)
{
	__u64 seen_ns = pacer_ttl_estimate(cells, mask, key);

	return seen_ns && (seen_ns >= now_ns || now_ns - seen_ns < ttl_ns);
}

static int filter_live(const __u64 *cells, struct pacer_ttl_key key, uint64_t now, uint64_t ttl,
		       int expiry)
{
	return expiry ? pacer_ttl_expiry_live(cells, CELLS - 1, key, now)
		      : ttl_inserted_live(cells, CELLS - 1, key, now, ttl);
}

/* An exact table of expiry times beside the filter: what that says is expired is. */
static void filter_runs(int expiry)
{
	uint64_t now, ttl, expires[KEYS], certain = 0, spared = 0;
	struct pacer_ttl_key key[KEYS];
	__u64 cells[CELLS];
	uint32_t i, k, who;

	for (i = 0; i < 100; i++) {
		memset(cells, 0, sizeof(cells));
		memset(expires, 0, sizeof(expires));
		ttl = between(1, 500);
		for (k = 0; k < KEYS; k++)
			key[k] = (struct pacer_ttl_key){draw(), draw()};
		for (k = 0, now = START; k < 3000; k++, now += draw() % 40) {
			who = draw() % KEYS;
			if (!filter_live(cells, key[who], now, ttl, expiry)) {
				assert_true(expires[who] <= now);
				certain++;
			} else {
				spared += expires[who] <= now;
			}
			if (draw() % 8)
				continue;
			ttl = expiry ? between(1, 500) : ttl;
			assert_true(
			    pacer_ttl_raise(cells, CELLS - 1, key[who], expiry ? now + ttl : now));
			expires[who] = now + ttl > expires[who] ? now + ttl : expires[who];
			assert_true(filter_live(cells, key[who], now, ttl, expiry));
			assert_true(filter_live(cells, key[who], now + ttl - 1, ttl, expiry));
		}
	}
	assert_true(certain > 10000); /* it is of use */
	assert_true(spared > 100);    /* and "live" is a maybe */
}

static void test_filter_inserted(void **unused)
{
	(void)unused;
	oracle_seed(55);
	filter_runs(0);
}

static void test_filter_expiry(void **unused)
{
	(void)unused;
	oracle_seed(56);
	filter_runs(1);
}

/* At the tick: live until now + ttl - 1, expired from now + ttl on. */
static void test_filter_edges(void **unused)
{
	struct pacer_ttl_key key = {3, 9}, other = {3, 10};
	__u64 cells[CELLS] = {0}, expiry[CELLS] = {0};

	(void)unused;
	assert_false(filter_live(cells, key, 1, UINT64_MAX, 0));
	assert_false(filter_live(expiry, key, 1, 0, 1));
	assert_true(pacer_ttl_raise(cells, CELLS - 1, key, START));
	assert_true(pacer_ttl_raise(expiry, CELLS - 1, key, START + 100));
	assert_true(filter_live(cells, key, START + 99, 100, 0));
	assert_true(filter_live(expiry, key, START + 99, 0, 1));
	assert_false(filter_live(cells, key, START + 100, 100, 0));
	assert_false(filter_live(expiry, key, START + 100, 0, 1));
	assert_false(filter_live(cells, other, START, 100, 0)); /* one cell is not enough */
	assert_false(filter_live(expiry, other, START, 0, 1));
	assert_true(filter_live(cells, key, 1, 100, 0)); /* a clock that is behind */
	assert_true(filter_live(expiry, key, 1, 0, 1));
	assert_true(pacer_ttl_raise(expiry, CELLS - 1, key, START + 50));
	assert_true(filter_live(expiry, key, START + 99, 0, 1)); /* never lowered */
}

/* Every cell raised by others: every key is a maybe, as if there were no filter. */
static void test_filter_saturated(void **unused)
{
	__u64 cells[CELLS] = {0};
	uint32_t i;

	(void)unused;
	oracle_seed(57);
	for (i = 0; i < CELLS; i++)
		assert_true(
		    pacer_ttl_raise(cells, CELLS - 1, (struct pacer_ttl_key){i, i + 1}, START));
	for (i = 0; i < 10000; i++) {
		struct pacer_ttl_key key = {draw(), draw()};

		assert_true(filter_live(cells, key, START + 99, 100, 0));
		assert_true(filter_live(cells, key, START - 1, 0, 1));
	}
}

/* A cell that others change at every step is given up, and not lowered; one look more than it takes
 * to reach the time is enough.
 */
static void test_filter_contended(void **unused)
{
	struct pacer_ttl_key keys[] = {{3, 9}, {9, 3}};
	__u64 cells[CELLS];
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(keys); i++) {
		memset(cells, 0, sizeof(cells));
		contended = &cells[9];
		assert_false(pacer_ttl_raise(cells, CELLS - 1, keys[i], START));
		assert_int_equal(cells[9], 2 * PACER_SPINS);
		assert_true(pacer_ttl_raise(cells, CELLS - 1, keys[i], 2 * PACER_SPINS + 100));
		assert_in_range(cells[9], 2 * PACER_SPINS + 100, 2 * PACER_SPINS + 101);
		contended = NULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pair_distinct),    cmocka_unit_test(test_pair_equal),
	    cmocka_unit_test(test_pair_chance),	     cmocka_unit_test(test_gap_open),
	    cmocka_unit_test(test_gap_one_row),	     cmocka_unit_test(test_gap_two_rows),
	    cmocka_unit_test(test_ceiling),	     cmocka_unit_test(test_lone_key),
	    cmocka_unit_test(test_gap_backward),     cmocka_unit_test(test_estimate),
	    cmocka_unit_test(test_filter_inserted),  cmocka_unit_test(test_filter_expiry),
	    cmocka_unit_test(test_filter_edges),     cmocka_unit_test(test_filter_saturated),
	    cmocka_unit_test(test_filter_contended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
