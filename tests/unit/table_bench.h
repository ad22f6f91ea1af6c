/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: a limit's limit in a table of its own, asked as packets ask it. Include it once. */
#ifndef TABLE_BENCH_H
#define TABLE_BENCH_H

#include <stdbool.h>

#include "oracle.h"

#define PACER_STEP_HOOK
#include "limit.h"

#define SECOND 1000000000ull
#define START  1000000ull
#define BASE   3u /* lines before the limit's, which it must not touch */

/* A limit in a table that ends with it. */
struct bench {
	struct pacer_limiter limiter;
	struct pacer_table table;
	uint32_t bytes;
};

static int wide; /* records are, all of them */

/* What befalls a reader before its `interrupt_at`th access from now on; 0: nothing. */
static uint32_t interrupt_at;
static void (*interrupt)(void);

void pacer_step(const volatile void *p)
{
	(void)p;
	if (interrupt_at && !--interrupt_at)
		interrupt();
}

static inline struct pacer_limiter records(uint64_t limit, uint64_t window_ns, uint32_t slots,
					   uint64_t gap_ns, uint32_t sets, uint32_t shared)
{
	struct pacer_limiter t = {.kind = PACER_LIMITER_WINDOW,
				  .base = BASE,
				  .sets = sets,
				  .shared = shared,
				  .gap_ns = gap_ns};
	uint64_t unit;

	assert_int_equal(
	    pacer_window_profile(&t.window, PACER_COST_BYTES, limit, window_ns, slots, 0),
	    PACER_WINDOW_OK);
	if (wide)
		pacer_window_widen(&t.window);
	t.last_shift = pacer_last_shift(t.window.slot_ns);
	t.units = t.window.units;
	unit = 1ull << t.last_shift;
	t.idle_ns = pacer_later(t.window.ring_ns, t.window.slot_ns + unit + gap_ns);
	return t;
}

static inline struct pacer_limiter sketch(uint64_t gap_ns, uint32_t rows, uint32_t lines)
{
	return (struct pacer_limiter){.kind = PACER_LIMITER_GAP,
				      .base = BASE,
				      .rows = rows,
				      .sets = lines,
				      .key_id = 1,
				      .gap_ns = gap_ns,
				      .units = PACER_LINE_UNITS};
}

static inline struct pacer_limiter rates(enum pacer_cost cost, uint64_t amount, uint64_t per_ns,
					 uint64_t burst, uint32_t sets, uint32_t shared)
{
	struct pacer_limiter t = {.kind = PACER_LIMITER_RATE,
				  .base = BASE,
				  .sets = sets,
				  .shared = shared,
				  .units = 1,
				  .idle_ns = 1};

	assert_int_equal(pacer_rate_profile(&t.rate, cost, amount, per_ns, burst, 0),
			 PACER_RATE_OK);
	return t;
}

static inline uint32_t limiter_lines(const struct pacer_limiter *t)
{
	if (t->kind == PACER_LIMITER_GAP)
		return t->sets;
	return ((2 * t->sets + t->shared) * pacer_stride(t) + PACER_LINE_UNITS - 1) /
	       PACER_LINE_UNITS;
}

static inline void bench_up(struct bench *b, const struct pacer_limiter *t)
{
	b->limiter = *t;
	b->table.n = BASE + limiter_lines(t);
	b->bytes = b->table.n * sizeof(struct pacer_line);
	b->table.lines = aligned_alloc(64, b->bytes);
	assert_non_null(b->table.lines);
	memset(b->table.lines, 0, b->bytes);
}

/* Nothing before the limit is touched and no lock is left held. */
static inline void bench_whole(const struct bench *b)
{
	uint32_t i, k;

	for (i = 0; i < BASE; i++)
		for (k = 0; k < PACER_LINE_WORDS; k++)
			assert_int_equal(b->table.lines[i].word[k], 0);
	for (i = 4 * BASE; i + pacer_stride(&b->limiter) <= 4 * b->table.n;
	     i += pacer_stride(&b->limiter))
		assert_false(b->table.lines[i / 4].unit[i % 4].entry.lock & PACER_LOCK_HELD);
}

static inline void bench_down(struct bench *b)
{
	bench_whole(b);
	free(b->table.lines);
}

static inline struct pacer_ask question(struct bench *b, struct pacer_hash hash, uint64_t now_ns,
					uint32_t cost)
{
	return pacer_ask_of(&b->table, &b->limiter, now_ns, hash, cost);
}

/* Lock, judge and count, whatever a look would have found; only where it looked is of use. */
static inline enum pacer_reason take(struct bench *b, struct pacer_hash hash, uint64_t now_ns,
				     uint32_t cost)
{
	struct pacer_ask q = question(b, hash, now_ns, cost);
	struct pacer_hold hold = {0};
	enum pacer_reason reason;

	(void)pacer_entry_check(&q, &hold);
	reason = pacer_entry_reserve(&q, &hold);
	if (reason == PACER_ADMIT)
		pacer_entry_commit(&q, &hold);
	return reason;
}

/* As a packet goes: a look, and a lock if the look did not deny. With one CPU the two agree. */
static inline enum pacer_reason ask(struct bench *b, struct pacer_hash hash, uint64_t now_ns,
				    uint32_t cost)
{
	struct pacer_ask q = question(b, hash, now_ns, cost);
	struct pacer_hold hold = {0};
	enum pacer_reason peeked = pacer_entry_check(&q, &hold), taken;

	if (peeked != PACER_ADMIT && draw() & 1)
		return peeked;
	taken = pacer_entry_reserve(&q, &hold);
	if (taken == PACER_ADMIT)
		pacer_entry_commit(&q, &hold);
	assert_int_equal(peeked, taken);
	return taken;
}

/* How many packets of the key pass at now_ns. */
static inline uint32_t drain(struct bench *b, struct pacer_hash hash, uint64_t now_ns)
{
	uint32_t n = 0;

	while (ask(b, hash, now_ns, 1) == PACER_ADMIT)
		n++;
	return n;
}

static inline struct pacer_entry *record(struct bench *b, uint32_t i)
{
	uint32_t at = 4 * BASE + i * pacer_stride(&b->limiter);

	return &b->table.lines[at / 4].unit[at % 4].entry;
}

/* A narrow record's. */
static inline __u64 *cells(struct bench *b, uint32_t i)
{
	return ((union pacer_unit *)record(b, i))[1].cell64;
}

static inline uint32_t record_bytes(const struct pacer_limiter *t)
{
	return pacer_stride(t) * sizeof(union pacer_unit);
}

static inline struct pacer_hash key(uint32_t tag)
{
	return (struct pacer_hash){tag & 1, tag};
}

/* One set of two and one shared record; 10 in 1000 ns, in 10 slots: the ring forgets after 1100. */
static inline void one_set(struct bench *b, uint64_t gap_ns)
{
	struct pacer_limiter t = records(10, 1000, 10, gap_ns, 1, 1);

	bench_up(b, &t);
	assert_int_equal(b->limiter.idle_ns, 1100);
}

/* With record i held, the packet is denied as contended and no byte of the table changes. */
static inline void held_denies(struct bench *b, uint32_t i, struct pacer_hash hash, uint64_t now_ns)
{
	struct pacer_ask q = question(b, hash, now_ns, 1);
	struct pacer_hold hold = {0};
	struct pacer_line *before = malloc(b->bytes);

	record(b, i)->lock |= PACER_LOCK_HELD;
	memcpy(before, b->table.lines, b->bytes);
	assert_int_equal(take(b, hash, now_ns, 1), PACER_DENY_CONTENDED);
	assert_memory_equal(before, b->table.lines, b->bytes);
	(void)pacer_entry_check(&q, &hold);
	assert_memory_equal(before, b->table.lines, b->bytes);
	record(b, i)->lock &= ~PACER_LOCK_HELD;
	free(before);
}

/* A packet that was reserved and is cancelled leaves the limit's first line as it was. */
static inline void cancel_changes_nothing(const struct pacer_limiter *t)
{
	struct pacer_hold hold = {0};
	struct pacer_line before;
	struct pacer_ask q;
	struct bench b;

	bench_up(&b, t);
	assert_int_equal(ask(&b, key(2), START, 1), PACER_ADMIT);
	before = b.table.lines[BASE];
	q = question(&b, key(2), START + 100, 1);
	assert_int_equal(pacer_entry_check(&q, &hold), PACER_ADMIT);
	assert_int_equal(pacer_entry_reserve(&q, &hold), PACER_ADMIT);
	assert_true(b.table.lines[BASE].lock & PACER_LOCK_HELD);
	pacer_entry_cancel(&q, &hold);
	assert_memory_equal(&before, &b.table.lines[BASE], sizeof(before));
	bench_down(&b);
}

/* A packet that is denied under the lock leaves not a bit changed. */
static inline void denial_changes_nothing(const struct pacer_limiter *t)
{
	struct pacer_line *before;
	struct bench b;

	bench_up(&b, t);
	assert_true(drain(&b, key(2), START) > 0);
	before = malloc(b.bytes);
	memcpy(before, b.table.lines, b.bytes);
	assert_int_not_equal(take(&b, key(2), START + 1, 1), PACER_ADMIT);
	assert_memory_equal(before, b.table.lines, b.bytes);
	free(before);
	bench_down(&b);
}

/* Records are narrow where they may be, or all of them wide. */
static inline int narrow_where_it_may(void **unused)
{
	(void)unused;
	wide = 0;
	return 0;
}

static inline int always_wide(void **unused)
{
	(void)unused;
	wide = 1;
	return 0;
}

#define EITHER(test)                                           \
	{#test, test, narrow_where_it_may, NULL, NULL},        \
	{                                                      \
#test " (wide)", test, always_wide, NULL, NULL \
	}

#endif
