/* SPDX-License-Identifier: GPL-2.0-only */
/* A limit's table: keys, sets and shared entries, against one exact deque or bucket a key. */
#include "table_bench.h"

/* ---- one set, by hand ---- */

static void test_own_while_live(void **unused)
{
	struct bench b;
	uint32_t i;

	(void)unused;
	one_set(&b, 0);
	assert_int_equal(drain(&b, key(7), START), 10);
	assert_int_equal(drain(&b, key(8), START + 1), 10);
	for (i = 0; i < 1100; i += 50) { /* others share what is left, all of them together */
		assert_int_equal(drain(&b, key(100 + i), START + 2 + i), i ? 0 : 10);
		assert_int_equal(pacer_lock_tag(record(&b, 0)->lock) +
				     pacer_lock_tag(record(&b, 1)->lock),
				 7 + 8);
	}
	assert_int_equal(pacer_lock_tag(record(&b, 2)->lock), 0);
	assert_int_equal(drain(&b, key(7), START + 1099), 0);
	assert_int_equal(drain(&b, key(7), START + 1100), 10);
	bench_down(&b);
}

static void test_idle_reused(void **unused)
{
	struct bench b;

	(void)unused;
	one_set(&b, 0);
	assert_int_equal(drain(&b, key(7), START), 10);
	assert_int_equal(ask(&b, key(8), START, 1), PACER_ADMIT);
	assert_int_equal(drain(&b, key(9), START + 1100), 10);
	assert_int_equal(drain(&b, key(10), START + 1100), 10);
	assert_int_equal(pacer_lock_tag(record(&b, 0)->lock) + pacer_lock_tag(record(&b, 1)->lock),
			 9 + 10);
	assert_int_equal(record(&b, 2)->head_ns, 0);
	bench_down(&b);
}

/* The overflow is one record for all, in count and in gap. */
static void test_overflow_shares(void **unused)
{
	struct bench b;

	(void)unused;
	one_set(&b, 5);
	assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(2), START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(3), START, 6), PACER_ADMIT);
	assert_int_equal(ask(&b, key(4), START, 1), PACER_DENY_GAP);
	assert_int_equal(ask(&b, key(4), START + 5, 5), PACER_DENY_WINDOW);
	assert_int_equal(ask(&b, key(4), START + 5, 4), PACER_ADMIT);
	assert_int_equal(ask(&b, key(3), START + 10, 1), PACER_DENY_WINDOW);
	assert_int_equal(ask(&b, key(1), START + 10, 9), PACER_ADMIT);
	bench_down(&b);
}

/* From shared to own: the count comes along, and so does the gap. */
static void test_brought_along(void **unused)
{
	struct pacer_hash k = key(3);
	struct bench b;

	(void)unused;
	one_set(&b, 5);
	assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(2), START + 600, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, k, START + 900, 9), PACER_ADMIT);
	assert_int_equal(ask(&b, k, START + 1098, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, k, START + 1102, 1), PACER_DENY_GAP);
	assert_int_equal(take(&b, k, START + 1102, 1), PACER_DENY_GAP);
	assert_int_equal(take(&b, k, START + 1105, 1), PACER_DENY_WINDOW);
	assert_int_equal(pacer_lock_tag(record(&b, 0)->lock), 3);
	assert_int_equal(record(&b, 0)->head_ns, START + 900 + 100);
	assert_int_equal(take(&b, k, START + 1999, 1), PACER_DENY_WINDOW);
	assert_int_equal(take(&b, k, START + 2000, 9), PACER_ADMIT);
	assert_int_equal(take(&b, k, START + 2005, 1), PACER_DENY_WINDOW);
	bench_down(&b);
}

/*
 * Who takes an idle record has no gap since a packet of whoever had it: the record has no last
 * admission, wherever in its slot that was.
 */
static void test_no_last_of_another(void **unused)
{
	struct pacer_limiter t = records(10, 1000, 10, 50, 1, 1);
	struct pacer_hold hold = {0};
	struct pacer_ask q;
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	assert_int_equal(take(&b, key(7), START, 1), PACER_ADMIT);
	assert_int_equal(take(&b, key(7), START + 90, 1), PACER_ADMIT);
	assert_int_equal(record(&b, 0)->last >> PACER_LAST_OFF << t.last_shift, 90);
	q = question(&b, key(8), START + 90 + t.idle_ns, 1);
	assert_int_equal(pacer_record_enter(&q, &hold), PACER_LOCK_TAKEN);
	assert_int_equal(pacer_lock_tag(hold.word), 8);
	assert_int_equal(record(&b, 0)->head_ns, 0);
	assert_int_equal(record(&b, 0)->last, 0);
	pacer_lock_cancel(&record(&b, 0)->lock, hold.word);
	bench_down(&b);
}

/* Two keys of one set and one tag count in one record; they must have shared one before, too. */
static void test_same_tag(void **unused)
{
	struct pacer_hash one = {0, 0x00010007}, other = {1, 0xffff0007};
	struct pacer_limiter t = records(10, 1000, 10, 0, 1, 64);
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(2), START, 1), PACER_ADMIT);
	assert_int_equal(drain(&b, other, START + 1090), 10);
	take(&b, one, START + 1100, 1); /* takes a record with the tag of both */
	assert_int_equal(drain(&b, other, START + 1101), 0);
	bench_down(&b);
}

/* The lock word is the same again after 512 changes, when what was read is long out of date. */
static void test_pass_after_512_changes(void **unused)
{
	struct pacer_limiter t = records(513, 1000, 10, 0, 1, 64);
	struct pacer_found found = {0};
	struct pacer_seen seen = {0};
	struct pacer_ask q;
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
	q = question(&b, key(1), START, 1);
	pacer_record_locate(&q, &found);
	assert_int_equal(pacer_entry_read(&q, &found, &seen), PACER_ADMIT);
	assert_int_equal(drain(&b, key(1), START), 512);
	assert_int_equal(found.ring.head->lock, found.word);
	assert_int_equal(pacer_entry_commit_seen(&q, &found, &seen), PACER_UNDECIDED);
	assert_int_equal(drain(&b, key(1), START), 0);
	bench_down(&b);
}

/* The same, where a narrow record's total and last admission are the same as well: 52 windows later
 * only the time tells, and the window is full.
 */
static void test_pass_52_windows_later(void **unused)
{
	struct pacer_found found = {0};
	struct pacer_seen seen = {0};
	struct pacer_ask q;
	struct bench b;
	uint32_t i, k;

	(void)unused;
	one_set(&b, 0);
	assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
	q = question(&b, key(1), START, 1);
	pacer_record_locate(&q, &found);
	assert_int_equal(pacer_entry_read(&q, &found, &seen), PACER_ADMIT);
	for (i = 0; i < 52; i++)
		for (k = 0; k < (i ? 10 : 2); k++)
			assert_int_equal(ask(&b, key(1), START + (i + 1) * 1100, 1), PACER_ADMIT);
	assert_int_equal(found.ring.head->lock, found.word);
	assert_int_equal(pacer_load(&found.ring.head->last) >> PACER_LAST_OFF,
			 seen.last >> PACER_LAST_OFF);
	assert_true(wide || pacer_ring_running(&found.ring) == seen.running);
	assert_int_equal(pacer_entry_commit_seen(&q, &found, &seen), PACER_UNDECIDED);
	bench_down(&b);
}

static struct bench *interrupted;

/* 512 packets, one a gap, the last one just before the reader's. */
static void come_between(void)
{
	uint32_t i;

	for (i = 0; i < 512; i++)
		assert_int_equal(ask(interrupted, key(1), START + 875 + i * 10, 1), PACER_ADMIT);
}

/* The same, as they come between any two of the reads: then the latest of them still has a gap. */
static void test_read_across_512_changes(void **unused)
{
	struct pacer_limiter t = records(2000, SECOND / 10, 10, 10, 1, 64);
	uint32_t at, came = 0;

	(void)unused;
	for (at = 1; came == at - 1; at++) {
		struct pacer_found found = {0};
		struct pacer_seen seen = {0};
		struct pacer_ask q;
		struct bench b;
		int reason;

		bench_up(&b, &t);
		assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
		q = question(&b, key(1), START + 875 + 511 * 10 + 9, 1);
		pacer_record_locate(&q, &found);
		interrupted = &b;
		interrupt = come_between;
		interrupt_at = at;
		reason = pacer_entry_read(&q, &found, &seen);
		came += !interrupt_at;
		interrupt_at = 0;
		if (came == at) {
			assert_int_equal(found.ring.head->lock, found.word);
			if (reason == PACER_ADMIT)
				assert_int_equal(pacer_entry_commit_seen(&q, &found, &seen),
						 PACER_UNDECIDED);
		}
		bench_down(&b);
	}
	assert_true(came > 3);
}

/* The ring turns twice, and then holds little. */
static void turn(void)
{
	assert_int_equal(ask(interrupted, key(1), START + 1700, 6), PACER_ADMIT);
	assert_int_equal(ask(interrupted, key(1), START + 3000, 1), PACER_ADMIT);
}

/* Before and after it the packet fits: what is read across it denies nothing. */
static void test_denied_by_nothing_torn(void **unused)
{
	uint32_t at, came = 0;

	(void)unused;
	for (at = 1; came == at - 1; at++) {
		struct pacer_hold hold;
		struct pacer_ask q;
		struct bench b;

		one_set(&b, 0);
		assert_int_equal(ask(&b, key(1), START, 5), PACER_ADMIT);
		assert_int_equal(ask(&b, key(1), START + 500, 5), PACER_ADMIT);
		q = question(&b, key(1), START + 1100, 1);
		interrupted = &b;
		interrupt = turn;
		interrupt_at = at;
		assert_int_equal(pacer_entry_check(&q, &hold), PACER_ADMIT);
		came += !interrupt_at;
		interrupt_at = 0;
		bench_down(&b);
	}
	assert_true(came > 3);
}

/* The window was full, and is open; a packet is admitted. */
static void admit_one(void)
{
	assert_int_equal(ask(interrupted, key(1), START + 1100, 1), PACER_ADMIT);
}

/* Nor does a refusal that is one expression, and looks at nothing twice. */
static void test_closed_by_nothing_torn(void **unused)
{
	uint32_t at, came = 0;

	(void)unused;
	for (at = 1; came == at - 1; at++) {
		struct pacer_closed closed = {0, 0};
		struct pacer_short s;
		struct bench b;

		one_set(&b, 0);
		assert_int_equal(ask(&b, key(1), START, 10), PACER_ADMIT);
		s = (struct pacer_short){.slot_ns = b.limiter.window.slot_ns};
		interrupted = &b;
		interrupt = admit_one;
		interrupt_at = at;
		pacer_record_closed(&s, 0, record(&b, 0),
				    pacer_closed_of(&b.limiter) | pacer_tag(key(1)) << 16,
				    START + 1100, &closed);
		came += !interrupt_at;
		interrupt_at = 0;
		assert_false(closed.window >> 63);
		pacer_record_closed(&s, 0, record(&b, 0),
				    pacer_closed_of(&b.limiter) | pacer_tag(key(1)) << 16,
				    START + 1099, &closed);
		assert_int_equal(closed.window >> 63, came != at);
		bench_down(&b);
	}
	assert_int_equal(came, 2);
}

static uint32_t come_back_n;

/* The idle record's key comes back, so often that the lock word is the same as before. */
static void come_back(void)
{
	struct pacer_ask q = question(interrupted, key(7), START + 2 * SECOND, 1);
	struct pacer_hold hold = {0};
	uint32_t i;

	for (i = 0; i < 512; i++) {
		(void)pacer_entry_check(&q, &hold);
		if (pacer_entry_reserve(&q, &hold) != PACER_ADMIT)
			continue; /* the lock is held */
		pacer_entry_commit(&q, &hold);
		come_back_n++;
	}
}

/* Whenever it does so while another takes its record for idle: it never gets more than its limit.
 */
static void test_taken_across_512_changes(void **unused)
{
	struct pacer_limiter t = records(2000, SECOND, 10, 0, 1, 64);
	uint32_t at, came = 0, whole = 0;

	(void)unused;
	for (at = 1; came == at - 1; at++) {
		struct bench b;

		bench_up(&b, &t);
		assert_int_equal(ask(&b, key(8), START, 1), PACER_ADMIT);
		assert_int_equal(ask(&b, key(7), START, 1), PACER_ADMIT);
		assert_int_equal(ask(&b, key(8), START + 2 * SECOND, 1), PACER_ADMIT);
		assert_int_equal(pacer_lock_tag(record(&b, 1)->lock), 7);
		interrupted = &b;
		interrupt = come_back;
		come_back_n = 0;
		interrupt_at = at;
		(void)take(&b, key(9), START + 2 * SECOND, 1);
		came += !interrupt_at;
		interrupt_at = 0;
		whole += come_back_n == 512;
		assert_true(come_back_n + drain(&b, key(7), START + 2 * SECOND) <= 2000);
		bench_down(&b);
	}
	assert_true(came > 10 && whole > 3);
}

/* Marks whose lower half is 0 or 1 have one tag, so one shared record. */
static void test_same_tag_zero(void **unused)
{
	struct pacer_limiter t = records(10, 1000, 10, 0, 1, 1u << 17);
	struct pacer_hash zero = {0, 0}, one = {0, 1};

	(void)unused;
	assert_int_equal(pacer_tag(zero), 1);
	assert_int_equal(pacer_tag(one), 1);
	assert_int_equal(pacer_shared_index(&t, zero), pacer_shared_index(&t, one));
}

/*
 * The key's record goes to another as soon as it may, and then the clock is behind by so much. Up
 * to the slack nothing is admitted beyond the limit; further back the key gets its limit once more,
 * as what it had is forgotten, and no more than that.
 */
static void test_backward_beyond_the_slack(void **unused)
{
	static const struct {
		uint64_t back;
		uint32_t held; /* in the closed window that ends then */
	} cases[] = {
	    {0, 10},
	    {1, 10},
	    {PACER_IDLE_SLACK_NS, 10},
	    {PACER_IDLE_SLACK_NS + 99, 10},
	    {PACER_IDLE_SLACK_NS + 100, 20},
	    {PACER_IDLE_SLACK_NS + 1100, 20},
	};
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++) {
		uint64_t later = START + 1100 + PACER_IDLE_SLACK_NS, then = later - cases[i].back;
		struct bench b;

		one_set(&b, 0);
		b.limiter.idle_ns += PACER_IDLE_SLACK_NS;
		assert_int_equal(drain(&b, key(7), START), 10);
		assert_int_equal(drain(&b, key(8), later - 1),
				 10); /* beside it, not in its place */
		assert_int_equal(pacer_lock_tag(record(&b, 0)->lock), 7);
		assert_int_equal(ask(&b, key(9), later, 1), PACER_ADMIT);
		assert_int_equal(pacer_lock_tag(record(&b, 0)->lock), 9);
		assert_int_equal(drain(&b, key(7), then) + (then <= START + 1000 ? 10 : 0),
				 cases[i].held);
		assert_int_equal(drain(&b, key(7), then), 0);
		assert_int_equal(drain(&b, key(7), START), 0);
		bench_down(&b);
	}
}

/* sets == 0: one record for every key. */
static void test_untagged(void **unused)
{
	struct pacer_limiter t = records(10, 1000, 10, 0, 0, 1);
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	assert_int_equal(ask(&b, (struct pacer_hash){0, 0}, START, 4), PACER_ADMIT);
	assert_int_equal(ask(&b, (struct pacer_hash){~0u, ~0u}, START + 1000, 6), PACER_ADMIT);
	assert_int_equal(drain(&b, key(5), START + 1099), 0);
	assert_int_equal(drain(&b, key(5), START + 1100), 4);
	assert_int_equal(pacer_lock_tag(record(&b, 0)->lock), 0);
	bench_down(&b);
}

/* A record of several lines: the neighbours' lines stay as they are. */
static void test_wide_neighbours(void **unused)
{
	static const uint32_t slots[] = {10, 11, 26, 27, 42, 43, 58};
	struct pacer_entry *first, before[16];
	struct bench b;
	uint64_t now;
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(slots); i++) {
		struct pacer_limiter t = records(10, slots[i] * 10, slots[i], 0, 1, 1);

		bench_up(&b, &t);
		assert_int_equal(ask(&b, key(2), START, 3), PACER_ADMIT);
		first = pacer_lock_tag(record(&b, 0)->lock) ? record(&b, 0) : record(&b, 1);
		memcpy(before, first, record_bytes(&t));
		for (now = START; now < START + 5 * t.window.ring_ns; now += 7)
			ask(&b, key(3), now, 1);
		assert_memory_equal(before, first, record_bytes(&t));
		assert_int_equal(drain(&b, key(2), START + t.window.ring_ns - 1), 7);
		bench_down(&b);
	}
}

/* ---- failures that have a verdict ---- */

/* A table that ends too soon denies; nothing is held or counted afterwards. */
static void test_missing_lines(void **unused)
{
	struct pacer_limiter t = records(10, 1000, 10, 0, 1, 1);
	struct bench b;
	uint32_t n;

	(void)unused;
	bench_up(&b, &t);
	for (n = 0; n < BASE + limiter_lines(&t); n++) {
		memset(b.table.lines, 0, b.bytes);
		b.table.n = n;
		assert_int_equal(ask(&b, key(2), START, 1), PACER_DENY_NO_STATE);
		assert_int_equal(take(&b, key(2), START, 1), PACER_DENY_NO_STATE);
		assert_int_equal(take(&b, key(3), START, 1), PACER_DENY_NO_STATE);
		b.table.n = BASE + limiter_lines(&t);
		bench_whole(&b);
		assert_int_equal(record(&b, 0)->head_ns + record(&b, 1)->head_ns, 0);
		assert_int_equal(cells(&b, 0)[0] | cells(&b, 1)[0], 0);
	}
	assert_int_equal(drain(&b, key(2), START), 10);
	bench_down(&b);
}

static void test_missing_untagged(void **unused)
{
	struct pacer_limiter t = records(10, 1000, 10, 0, 0, 1),
			     longer = records(10, 5800, 58, 0, 0, 1);
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	b.table.n = BASE;
	assert_int_equal(ask(&b, key(2), START, 1), PACER_DENY_NO_STATE);
	assert_int_equal(take(&b, key(2), START, 1), PACER_DENY_NO_STATE);
	bench_down(&b);
	bench_up(&b, &longer); /* of four lines, each missing */
	for (b.table.n = BASE; b.table.n < BASE + limiter_lines(&longer); b.table.n++) {
		assert_int_equal(ask(&b, key(2), START, 1), PACER_DENY_NO_STATE);
		assert_int_equal(take(&b, key(2), START, 1), PACER_DENY_NO_STATE);
	}
	assert_int_equal(drain(&b, key(2), START), 10);
	bench_down(&b);
}

static void test_held(void **unused)
{
	struct bench b;

	(void)unused;
	one_set(&b, 0);
	assert_int_equal(ask(&b, key(2), START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(3), START, 1), PACER_ADMIT);
	assert_int_equal(ask(&b, key(4), START, 1), PACER_ADMIT);
	assert_int_equal(pacer_lock_tag(record(&b, 0)->lock), 2);
	held_denies(&b, 0, key(2), START + 1); /* its own */
	held_denies(&b, 1, key(3), START + 1);
	held_denies(&b, 0, key(4), START + 1);		   /* the door of its set */
	held_denies(&b, 2, key(4), START + 1);		   /* the shared one */
	assert_int_equal(drain(&b, key(3), START + 1), 9); /* who is not concerned passes */
	bench_down(&b);
}

/* What is just being changed is not judged by a look: the lock tells. */
static void test_held_peek(void **unused)
{
	struct pacer_hold hold = {0};
	struct pacer_ask q;
	struct bench b;

	(void)unused;
	one_set(&b, 0);
	assert_int_equal(drain(&b, key(2), START), 10);
	q = question(&b, key(2), START, 1);
	assert_int_equal(pacer_entry_check(&q, &hold), PACER_DENY_WINDOW);
	record(&b, 0)->lock |= PACER_LOCK_HELD;
	assert_int_equal(pacer_entry_check(&q, &hold), PACER_ADMIT);
	record(&b, 0)->lock &= ~PACER_LOCK_HELD;
	bench_down(&b);
}

/* An idle record that cannot be filled, the shared one being held, is nobody's and let go. */
static void test_held_while_adopting(void **unused)
{
	struct bench b;

	(void)unused;
	one_set(&b, 0);
	record(&b, 2)->lock |= PACER_LOCK_HELD;
	assert_int_equal(take(&b, key(2), START, 1), PACER_DENY_CONTENDED);
	record(&b, 2)->lock &= ~PACER_LOCK_HELD;
	bench_whole(&b);
	assert_int_equal(pacer_lock_tag(record(&b, 0)->lock), 0);
	assert_int_equal(record(&b, 0)->head_ns, 0);
	assert_int_equal(drain(&b, key(2), START), 10);
	bench_down(&b);
}

/* A cancelled packet is not counted. */
static void test_cancel(void **unused)
{
	struct pacer_limiter t = records(10, 1000, 10, 5, 1, 1);

	(void)unused;
	cancel_changes_nothing(&t);
}

/* A cancelled packet that was its key's first leaves a record that was never used, even for a clock
 * that is behind: nothing of the record's last owner is left.
 */
static void test_cancel_first(void **unused)
{
	struct pacer_hold hold = {0};
	struct pacer_ask q;
	struct bench b;

	(void)unused;
	one_set(&b, 5);
	assert_int_equal(take(&b, key(2), START, 10), PACER_ADMIT);
	assert_int_equal(take(&b, key(3), START + 600, 10), PACER_ADMIT);
	q = question(&b, key(4), START + 1100, 1);
	assert_int_equal(pacer_entry_check(&q, &hold), PACER_ADMIT);
	assert_int_equal(pacer_entry_reserve(&q, &hold), PACER_ADMIT);
	pacer_entry_cancel(&q, &hold);
	assert_int_equal(pacer_lock_tag(record(&b, 0)->lock), 4);
	assert_int_equal(ask(&b, key(4), START + 1, 10), PACER_ADMIT);
	bench_down(&b);
}

/* A packet that is denied under the lock leaves not a bit changed. */
static void test_denied_writes_nothing(void **unused)
{
	struct pacer_limiter own = records(10, 1000, 10, 0, 1, 1);
	struct pacer_limiter all = records(10, 1000, 10, 5, 0, 1);

	(void)unused;
	denial_changes_nothing(&own);
	denial_changes_nothing(&all);
}

/* ---- long runs with many keys ---- */

#define KEYS_MAX 400

struct actor {
	struct pacer_hash hash;
	struct oracle_deque closed;
	uint64_t last;
};

struct run {
	struct bench bench;
	uint32_t n;
	struct actor key[KEYS_MAX];
	struct oracle_deque all; /* of all keys, over (t - (m+1) T, t] */
	uint64_t now, last, admitted, denied_window, denied_gap;
};

/* tags: how many different ones there are */
static void run_begin(struct run *r, const struct pacer_limiter *t, uint32_t n, uint32_t tags)
{
	uint32_t i;

	memset(r, 0, sizeof(*r));
	bench_up(&r->bench, t);
	r->n = n;
	r->now = START;
	r->all.interval = t->window.ring_ns - 1;
	for (i = 0; i < n; i++) {
		r->key[i].hash = (struct pacer_hash){draw(), (uint32_t)draw() << 16};
		r->key[i].hash.mark |= (1 + draw() % tags) & 0xffff;
		r->key[i].closed.interval = (t->window.ring - 1) * t->window.slot_ns;
	}
}

static void run_end(struct run *r)
{
	uint32_t i;

	for (i = 0; i < r->n; i++)
		deque_free(&r->key[i].closed);
	deque_free(&r->all);
	bench_down(&r->bench);
}

/* Admitted: the key has no more than its limit. Denied: all keys together would have had more. */
static void run_packet(struct run *r, struct actor *a)
{
	const struct pacer_limiter *t = &r->bench.limiter;
	uint64_t unit = (1ull << t->last_shift) - 1;
	uint32_t cost = draw() % 8 ? 1 : between(1, t->window.limit);

	switch (ask(&r->bench, a->hash, r->now, cost)) {
	case PACER_ADMIT:
		assert_true(deque_add(&a->closed, r->now, cost) <= t->window.limit);
		assert_true(!a->last || r->now - a->last >= t->gap_ns);
		deque_add(&r->all, r->now, cost);
		a->last = r->last = r->now;
		r->admitted++;
		return;
	case PACER_DENY_WINDOW:
		assert_true(deque_total(&r->all, r->now) + cost > t->window.limit);
		r->denied_window++;
		return;
	case PACER_DENY_GAP:
		assert_true(t->gap_ns && r->last && r->now < r->last + unit + t->gap_ns);
		r->denied_gap++;
		return;
	default:
		fail_msg("another reason");
	}
}

static uint64_t random_step(const struct run *r)
{
	const struct pacer_limiter *t = &r->bench.limiter;
	uint64_t slot = t->window.slot_ns;

	switch (draw() % 32) {
	case 0 ... 11:
		return 0;
	case 12 ... 15:
		return 1;
	case 16 ... 22:
		return draw() % (slot / 2 + 1);
	case 23 ... 25:
		return slot - draw() % 2;
	case 26:
		return t->gap_ns;
	case 27:
		return t->gap_ns ? t->gap_ns - 1 : 0;
	case 28:
		return between(1, t->window.ring) * slot - draw() % 2;
	case 29:
		return draw() % 8 ? slot : t->idle_ns - draw() % 2;
	}
	return draw() % (2 * slot);
}

/* Some keys are hot for a while, then others: sets fill and drain. */
static void run_packets(struct run *r, uint32_t packets)
{
	uint32_t i, from = 0, hot = r->n;

	for (i = 0; i < packets; i++) {
		if (!(draw() % 32)) {
			hot = between(1, draw() & 1 ? r->n : 3 < r->n ? 3 : r->n);
			from = draw() % r->n;
		}
		r->now += random_step(r);
		run_packet(r, &r->key[draw() % 8 ? (from + draw() % hot) % r->n : 0]);
	}
}

static struct pacer_limiter random_limiter(uint32_t slots_max, int with_gap, uint64_t window_max)
{
	uint32_t slots = between(1, slots_max), sets = between(1, 4);
	uint64_t window = slots * between(2, window_max / slots);
	uint64_t gap = with_gap ? between(1, draw() & 1 ? window / 8 + 1 : window * 2) : 0;

	return records(between(1, 12), window, slots, gap, sets, between(1, draw() & 1 ? 1 : 3));
}

static void random_runs(uint32_t slots_max, int with_gap, uint64_t window_max)
{
	uint64_t admitted = 0, denied_window = 0, denied_gap = 0;
	static struct run r;
	int i;

	for (i = 0; i < 250; i++) {
		struct pacer_limiter t = random_limiter(slots_max, with_gap, window_max);

		run_begin(&r, &t, between(1, 30), draw() & 1 ? 3 : 65536);
		run_packets(&r, 2500);
		admitted += r.admitted;
		denied_window += r.denied_window;
		denied_gap += r.denied_gap;
		run_end(&r);
	}
	assert_true(admitted > 10000 && denied_window > 10000);
	assert_int_equal(denied_gap > 10000, with_gap);
}

/* Few keys of few tags, in one set with several shared records: keys that come to count in one
 * record after they were counted elsewhere.
 */
static void test_runs_same_tag(void **unused)
{
	static struct run r;
	int i, k;

	(void)unused;
	oracle_seed(10);
	for (i = 0; i < 300; i++) {
		uint32_t slots = between(1, 4);
		struct pacer_limiter t =
		    records(between(2, 4), slots * 50, slots, i & 1 ? 3 : 0, 1, between(2, 8));

		run_begin(&r, &t, between(4, 6), 3);
		for (k = 0; k < 2500; k++) {
			r.now += draw() % 3 ? 0 : random_step(&r);
			run_packet(&r, &r.key[draw() % r.n]);
		}
		run_end(&r);
	}
}

static void test_runs(void **unused)
{
	(void)unused;
	oracle_seed(11);
	random_runs(10, 0, 3000);
}

static void test_runs_gap(void **unused)
{
	(void)unused;
	oracle_seed(12);
	random_runs(10, 1, 3000);
}

static void test_runs_wide(void **unused)
{
	(void)unused;
	oracle_seed(13);
	random_runs(PACER_SLOTS_MAX, 0, 6000);
}

static void test_runs_wide_gap(void **unused)
{
	(void)unused;
	oracle_seed(14);
	random_runs(PACER_SLOTS_MAX, 1, 6000);
}

/* Slots of minutes, whose last admission is kept in units of more than a ns. */
static void test_runs_long(void **unused)
{
	(void)unused;
	oracle_seed(15);
	random_runs(2, 0, 1ull << 44);
	random_runs(2, 1, 1ull << 44);
}

/* The watched key against floods of hundreds of keys that come and go. */
static void test_flood(void **unused)
{
	static struct run r;
	uint32_t i, k, round;

	(void)unused;
	oracle_seed(16);
	for (round = 0; round < 60; round++) {
		struct pacer_limiter t =
		    records(5, 1000, between(1, 10), round & 1 ? 7 : 0, between(1, 4), 1);

		run_begin(&r, &t, KEYS_MAX, 65536);
		for (i = 0; i < 60; i++) {
			for (k = draw() & 1 ? 120 : 0; k; k--) {
				r.now += draw() % 4;
				run_packet(&r, &r.key[draw() % KEYS_MAX]);
				run_packet(&r, &r.key[0]);
			}
			for (k = 0; k < 12; k++) { /* it drains, and only the watched key asks */
				r.now += draw() % 200;
				run_packet(&r, &r.key[0]);
			}
		}
		run_end(&r);
	}
}

/* ---- whom a key does not disturb ---- */

/* The watched key fares as it does alone: same verdicts, same record. */
static void undisturbed(const struct pacer_limiter *t, uint32_t packets)
{
	struct pacer_hash watched = {0, 0x12340001};
	uint32_t bytes = record_bytes(t), i;
	struct bench crowd, alone;
	uint64_t now = START;

	bench_up(&crowd, t);
	bench_up(&alone, t);
	for (i = 0; i < packets; i++) {
		if (!(i % 16)) {
			enum pacer_reason reason = take(&alone, watched, now, 1);

			assert_int_equal(take(&crowd, watched, now, 1), reason);
			assert_memory_equal(record(&crowd, 0), record(&alone, 0), bytes);
			now += draw() % (t->window.slot_ns / 2);
		} else {
			ask(&crowd, (struct pacer_hash){draw(), draw() | 2}, now, 1);
		}
	}
	bench_down(&crowd);
	bench_down(&alone);
}

static void test_undisturbed(void **unused)
{
	static const uint32_t slots[] = {1, 2, 10, 11, 30, 58};
	size_t i;

	(void)unused;
	oracle_seed(17);
	for (i = 0; i < ARRAY(slots); i++) {
		struct pacer_limiter t = records(8, slots[i] * 100, slots[i], 0, 1, 1);
		struct pacer_limiter g = records(8, slots[i] * 100, slots[i], 20, 1, 1);

		undisturbed(&t, 20000);
		undisturbed(&g, 20000);
	}
}

/* Keys of other sets do not meet at all. */
static void test_sets_apart(void **unused)
{
	struct pacer_limiter t = records(10, 1000, 10, 0, 64, 16);
	struct bench b;
	uint64_t i;

	(void)unused;
	bench_up(&b, &t);
	for (i = 0; i < 64; i++) /* all of one tag */
		assert_int_equal(drain(&b, (struct pacer_hash){(i << 26) | 5, 5}, START), 10);
	for (i = 0; i < 64; i++)
		assert_int_equal(drain(&b, (struct pacer_hash){(i << 26) | 9, 9}, START), 10);
	bench_down(&b);
}

/* ---- rates ---- */

typedef unsigned __int128 bucket;

/*
 * Per key an exact bucket of (cost * per_ns), which drains `amount` a ns; `units`: admitted since
 * it was last empty, each of which is rounded up by less than 2^-32 ns.
 */
struct pail {
	uint64_t last_ns, units;
	bucket level;
};

static void pail_drain(struct pail *p, uint64_t now_ns, uint64_t amount)
{
	bucket drained = (bucket)(now_ns - p->last_ns) * amount;

	p->level = p->level > drained ? p->level - drained : 0;
	p->units = p->level ? p->units : 0;
	p->last_ns = now_ns;
}

#define PAILS 40u

struct rate_run {
	struct bench bench;
	uint64_t amount, per_ns, burst, now, admitted, denied;
	uint32_t n;
	struct pacer_hash hash[PAILS];
	struct pail key[PAILS], all;
};

static void rate_begin(struct rate_run *r, uint32_t sets, uint32_t shared, uint32_t tags)
{
	struct pacer_limiter t;

	memset(r, 0, sizeof(*r));
	r->amount = between(1, 5000);
	r->per_ns = between(1, 100000);
	r->burst = between(1, draw() & 1 ? 4 : 3000);
	t = rates(PACER_COST_BYTES, r->amount, r->per_ns, r->burst, sets, shared);
	bench_up(&r->bench, &t);
	memset(&r->bench.table.lines[r->bench.table.n - 1].unit[(2 * sets + shared - 1) % 4 + 1],
	       0xa5, 16 * (3 - (2 * sets + shared - 1) % 4)); /* what is left of its last line */
	r->now = START;
	r->n = between(1, PAILS);
	for (uint32_t i = 0; i < PAILS; i++) {
		r->hash[i] = (struct pacer_hash){draw(), (uint32_t)draw() << 16};
		r->hash[i].mark |= (1 + draw() % tags) & 0xffff;
		r->key[i].last_ns = START;
	}
	r->all.last_ns = START;
}

static void rate_end(struct rate_run *r)
{
	uint32_t used = 2 * r->bench.limiter.sets + r->bench.limiter.shared;
	const uint8_t *rest = (const uint8_t *)&r->bench.table.lines[BASE] + 16 * used;

	for (uint32_t i = 0; i < (4 - used % 4) % 4 * 16; i++)
		assert_int_equal(rest[i], 0xa5);
	if (used % 4) /* for bench_down, which looks for locks in it */
		memset((void *)rest, 0, (4 - used % 4) * 16);
	bench_down(&r->bench);
}

static bool pail_holds(const struct rate_run *r, const struct pail *p, uint64_t cost)
{
	return p->level + (bucket)cost * r->per_ns <= (bucket)r->burst * r->per_ns;
}

/* A denial is the bucket's, but for what rounding adds. */
static bool pail_may_deny(const struct rate_run *r, const struct pail *p, uint64_t cost)
{
	return ((p->level + (bucket)cost * r->per_ns) << 32) +
		   (bucket)(p->units + cost + r->burst) * r->amount >
	       ((bucket)r->burst * r->per_ns) << 32;
}

static void rate_packet(struct rate_run *r, uint32_t k, bool own)
{
	uint32_t cost = between(1, draw() % 4 ? 1 + r->burst / 4 : r->burst + 1);
	struct pail *p[2] = {&r->key[k], &r->all};

	for (int i = 0; i < 2; i++)
		pail_drain(p[i], r->now, r->amount);
	switch (ask(&r->bench, r->hash[k], r->now, cost)) {
	case PACER_ADMIT:
		assert_true(pail_holds(r, p[0], cost));
		for (int i = 0; i < 2; i++) {
			p[i]->level += (bucket)cost * r->per_ns;
			p[i]->units += cost;
		}
		r->admitted++;
		return;
	case PACER_DENY_RATE: /* by its own doing, or by that of all together */
		assert_true(pail_may_deny(r, own ? p[0] : p[1], cost));
		r->denied++;
		return;
	default:
		fail_msg("another reason");
	}
}

static void rate_packets(struct rate_run *r, uint32_t packets, bool own)
{
	uint64_t full_ns = r->bench.limiter.rate.burst_ns + 1;

	for (uint32_t i = 0; i < packets; i++) {
		r->now += draw() % 3	? 0
			  : draw() % 40 ? draw() % (1 + full_ns / 4)
					: draw() % (3 * full_ns);
		rate_packet(r, draw() % (draw() & 1 ? 2 : r->n) % r->n, own);
	}
}

/* Random keys in a table that is too small for them: no key is ever over its rate and burst. */
static void test_rate_runs(void **unused)
{
	static struct rate_run r;
	uint64_t admitted = 0, denied = 0;

	(void)unused;
	oracle_seed(51);
	for (uint32_t i = 0; i < 400; i++) {
		rate_begin(&r, between(1, 4), between(1, 3), draw() & 1 ? 3 : 65536);
		rate_packets(&r, 2000, false);
		admitted += r.admitted;
		denied += r.denied;
		rate_end(&r);
	}
	assert_true(admitted > 100000 && denied > 100000);
}

/* In a table with room for each, a key is denied by its own doing only, to 2^-32 ns a unit. */
static void test_rate_own(void **unused)
{
	static struct rate_run r;
	uint64_t admitted = 0, denied = 0;

	(void)unused;
	oracle_seed(52);
	for (uint32_t i = 0; i < 200; i++) {
		rate_begin(&r, PAILS, 1, 65536);
		for (uint32_t k = 0; k < PAILS; k++) /* a set each */
			r.hash[k].home = (uint32_t)(((uint64_t)k << 32) / PAILS) + 1;
		rate_packets(&r, 2000, true);
		admitted += r.admitted;
		denied += r.denied;
		rate_end(&r);
	}
	assert_true(admitted > 50000 && denied > 50000);
}

/* Four to a line: two sets, each key's own; what is left of the last line belongs to nobody. */
static void test_rate_neighbours(void **unused)
{
	struct pacer_limiter t = rates(PACER_COST_PACKETS, 1, 1000, 3, 2, 1);
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	assert_int_equal(b.table.n, BASE + 2);
	for (uint32_t i = 0; i < 4; i++) {
		struct pacer_hash hash = {i << 30, i + 1}; /* first or second of set 0 or 1 */

		assert_int_equal(drain(&b, hash, START), 3);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(pacer_load64(&record(&b, i)->tat_ns), START + 3000);
	assert_int_equal(record(&b, 4)->tat_ns, 0);
	assert_int_equal(drain(&b, (struct pacer_hash){0, 9}, START), 3); /* the shared one */
	assert_int_equal(record(&b, 4)->tat_ns, START + 3000);
	assert_int_equal(drain(&b, (struct pacer_hash){0, 10}, START), 0);
	for (uint32_t i = 5; i < 8; i++) {
		assert_int_equal(record(&b, i)->tat_ns, 0);
		assert_int_equal(record(&b, i)->lock, 0);
	}
	bench_down(&b);
}

/* A key that was counted in the shared entry takes that along; an entry is idle after its TAT. */
static void test_rate_brought_along(void **unused)
{
	struct pacer_limiter t = rates(PACER_COST_PACKETS, 1, 1000, 3, 1, 1);
	struct pacer_hold hold = {0};
	struct pacer_ask q;
	struct bench b;

	(void)unused;
	t.idle_ns = 500;
	bench_up(&b, &t);
	assert_int_equal(ask(&b, key(1), START, 1), PACER_ADMIT);
	assert_int_equal(drain(&b, key(2), START), 3);
	assert_int_equal(drain(&b, key(3), START + 1499),
			 3); /* shared: the first is not idle yet */
	assert_int_equal(record(&b, 2)->tat_ns, START + 4499);
	q = question(&b, key(3), START + 1500, 1);
	assert_int_equal(pacer_entry_check(&q, &hold), PACER_DENY_RATE);
	assert_int_equal(pacer_lock_tag(record(&b, 0)->lock), 1); /* a look takes nothing */
	assert_int_equal(ask(&b, key(3), START + 2499, 1), PACER_ADMIT);
	assert_int_equal(pacer_lock_tag(record(&b, 0)->lock), 3);
	assert_int_equal(record(&b, 0)->tat_ns, START + 5499);
	assert_int_equal(record(&b, 2)->tat_ns, START + 4499);
	assert_int_equal(ask(&b, key(3), START + 2499, 1), PACER_DENY_RATE);
	bench_down(&b);
}

/* A fraction of a ns is kept, and is part of what a lock compares. */
static void test_rate_fraction(void **unused)
{
	struct pacer_limiter t = rates(PACER_COST_PACKETS, 3, 1, 3, 1, 1); /* three a ns */
	struct pacer_ask q;
	struct pacer_found f = {0};
	struct pacer_seen seen = {0};
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	assert_int_equal(drain(&b, key(1), START), 3);
	assert_int_equal(record(&b, 0)->tat_ns, START + 1);
	assert_int_equal(record(&b, 0)->tat_frac, 2);
	q = question(&b, key(1), START + 1, 1);
	pacer_record_locate(&q, &f);
	assert_int_equal(pacer_entry_read(&q, &f, &seen), PACER_ADMIT);
	record(&b, 0)->tat_frac++;
	assert_int_equal(pacer_entry_commit_seen(&q, &f, &seen), PACER_UNDECIDED);
	record(&b, 0)->tat_frac--;
	record(&b, 0)->tat_ns++;
	assert_int_equal(pacer_entry_commit_seen(&q, &f, &seen), PACER_UNDECIDED);
	record(&b, 0)->tat_ns--;
	assert_int_equal(pacer_entry_commit_seen(&q, &f, &seen), PACER_ADMIT);
	bench_down(&b);
}

/* A denied packet writes nothing, and a missing table denies. */
static void test_rate_denied(void **unused)
{
	struct pacer_limiter t = rates(PACER_COST_PACKETS, 1, 1000, 3, 1, 1);
	static struct pacer_line was[BASE + 1];
	struct bench b;

	(void)unused;
	bench_up(&b, &t);
	assert_int_equal(drain(&b, key(1), START), 3);
	memcpy(was, b.table.lines, sizeof(was));
	for (uint64_t at = START; at < START + 1000; at += 111)
		assert_int_equal(take(&b, key(1), at, 1), PACER_DENY_RATE);
	assert_int_equal(take(&b, key(1), START / 2, 1), PACER_DENY_RATE); /* and a clock behind */
	assert_memory_equal(was, b.table.lines, sizeof(was));
	b.table.n = BASE;
	assert_int_equal(take(&b, key(1), START + 1000, 1), PACER_DENY_NO_STATE);
	b.table.n = BASE + 1;
	assert_int_equal(take(&b, key(1), START + 1000, 1), PACER_ADMIT);
	bench_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    EITHER(test_own_while_live),
	    EITHER(test_pass_after_512_changes),
	    EITHER(test_pass_52_windows_later),
	    EITHER(test_taken_across_512_changes),
	    EITHER(test_denied_by_nothing_torn),
	    EITHER(test_closed_by_nothing_torn),
	    EITHER(test_read_across_512_changes),
	    EITHER(test_idle_reused),
	    EITHER(test_overflow_shares),
	    EITHER(test_brought_along),
	    EITHER(test_no_last_of_another),
	    EITHER(test_same_tag),
	    EITHER(test_same_tag_zero),
	    EITHER(test_backward_beyond_the_slack),
	    EITHER(test_untagged),
	    EITHER(test_wide_neighbours),
	    EITHER(test_missing_lines),
	    EITHER(test_missing_untagged),
	    EITHER(test_held),
	    EITHER(test_held_peek),
	    EITHER(test_held_while_adopting),
	    EITHER(test_cancel),
	    EITHER(test_runs),
	    EITHER(test_runs_same_tag),
	    EITHER(test_cancel_first),
	    EITHER(test_denied_writes_nothing),
	    EITHER(test_runs_gap),
	    EITHER(test_runs_wide),
	    EITHER(test_runs_wide_gap),
	    EITHER(test_runs_long),
	    EITHER(test_flood),
	    EITHER(test_undisturbed),
	    EITHER(test_sets_apart),
	    cmocka_unit_test(test_rate_runs),
	    cmocka_unit_test(test_rate_own),
	    cmocka_unit_test(test_rate_neighbours),
	    cmocka_unit_test(test_rate_brought_along),
	    cmocka_unit_test(test_rate_fraction),
	    cmocka_unit_test(test_rate_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
