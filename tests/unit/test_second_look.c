/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who reads what packets or tools may write meanwhile looks twice, and takes no copy of which half
 * is old and half new: with a writer that begins before any access of the reader's and ends before
 * any later one.
 */
#include "oracle.h"

#include <string.h>
#include <time.h>

#include "ban.h"
#include "live/ban_notes.h"
#include "live/host.h"
#include "live/notes.h"
#include "live/still.h"
#include "lock.h"
#include "parse.h"

#define NEVER UINT32_MAX
#define OLD   1
#define NEW   2

uint64_t host_now_ns(void)
{
	return 77;
}

uint64_t host_resolution_ns(void)
{
	return 1;
}

void host_wait_until(uint64_t until_ns)
{
	(void)until_ns;
}

int host_cpus(struct policy_error *why)
{
	(void)why;
	return 1;
}

/* The writer: it begins before the access of one number, and ends before that of another. */
static struct {
	void (*begin)(void), (*end)(void);
	uint32_t from, to, steps;
} writer;

void pacer_step(const volatile void *p);

void pacer_step(const volatile void *p)
{
	uint32_t step = writer.steps++;

	(void)p;
	if (step == writer.from && writer.begin)
		writer.begin();
	if (step == writer.to && writer.end)
		writer.end();
}

static void writes(void (*begin)(void), void (*end)(void), uint32_t from, uint32_t to)
{
	writer.begin = begin;
	writer.end = end;
	writer.from = from;
	writer.to = to;
	writer.steps = 0;
}

static uint64_t now_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	*ts = (struct timespec){(time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000)};
	return 0;
}

/* --- state that begins with a lock word ------------------------------------------------------- */

#define WORDS 6u

static struct state {
	uint32_t lock, unused;
	uint64_t word[WORDS];
} live, copy;

static void is_old(void)
{
	live = (struct state){.lock = 0xabcd0000};
	for (uint32_t i = 0; i < WORDS; i++)
		live.word[i] = OLD;
	memset(&copy, 0, sizeof(copy));
}

static void take_and_write_half(void)
{
	live.lock |= PACER_LOCK_HELD;
	for (uint32_t i = 0; i < WORDS; i += 2)
		live.word[i] = NEW;
}

static void write_half_and_release(void)
{
	for (uint32_t i = 1; i < WORDS; i += 2)
		live.word[i] = NEW;
	pacer_lock_release(&live.lock, live.lock);
}

/* The lock's sequence is the same again after 512 changes, which take a millisecond. */
static void change_512_times(void)
{
	for (uint32_t i = 0; i < WORDS; i++)
		live.word[i] = NEW;
	now_ns += 1000000;
}

static uint64_t of_one_moment(void)
{
	for (uint32_t i = 1; i < WORDS; i++)
		assert_int_equal(copy.word[i], copy.word[0]);
	assert_true(copy.word[0] == OLD || copy.word[0] == NEW);
	return copy.word[0];
}

static void test_state_beside_a_writer(void **unused)
{
	uint32_t from, to, old = 0, new = 0;

	(void)unused;
	for (from = 0; from < WORDS + 4; from++)
		for (to = from; to < from + 2 * WORDS + 8; to++) {
			is_old();
			writes(take_and_write_half, write_half_and_release, from, to);
			assert_true(still_copy(&live, &copy, sizeof(live)));
			if (of_one_moment() == OLD)
				old++;
			else
				new ++;
			assert_int_equal(copy.lock, copy.word[0] == OLD
							? 0xabcd0000
							: 0xabcd0000 + PACER_LOCK_SEQ_ONE);
		}
	assert_true(old > 0 && new > 100);
}

static void take(void)
{
	live.lock |= PACER_LOCK_HELD;
}

static void cancel(void)
{
	pacer_lock_cancel(&live.lock, live.lock);
}

/* Who takes the lock and changes nothing gives it back as it was: the copy has nobody hold it. */
static void test_state_that_is_taken_for_nothing(void **unused)
{
	(void)unused;
	for (uint32_t from = 0; from < WORDS + 4; from++)
		for (uint32_t to = from; to < WORDS + 4; to++) {
			is_old();
			writes(take, cancel, from, to);
			assert_true(still_copy(&live, &copy, sizeof(live)));
			assert_int_equal(of_one_moment(), OLD);
			assert_int_equal(copy.lock, 0xabcd0000);
		}
}

static void test_state_that_changes_512_times(void **unused)
{
	uint32_t from;

	(void)unused;
	for (from = 0; from < WORDS + 4; from++) {
		is_old();
		writes(change_512_times, NULL, from, NEVER);
		assert_true(still_copy(&live, &copy, sizeof(live)));
		assert_int_equal(of_one_moment(), from < WORDS + 3 ? NEW : OLD);
	}
}

static void test_state_that_is_never_still(void **unused)
{
	(void)unused;
	for (uint32_t from = 0; from < WORDS + 2; from++) {
		is_old();
		writes(take_and_write_half, NULL, from, NEVER);
		assert_false(still_copy(&live, &copy, sizeof(live)));
	}
}

/* --- bans ---------------------------------------------------------------------------------------
 */

static struct pacer_line entry;

static void take_entry(void)
{
	entry.ban_lock = pacer_lock_next(entry.ban_lock) | PACER_LOCK_HELD;
	entry.ban_until_ns = 0; /* while its key is written */
}

static void write_half(void)
{
	take_entry();
	entry.ban_key[0] = NEW;
}

static uint64_t new_until_ns;

static void release_entry(void)
{
	entry.ban_key[0] = NEW;
	entry.ban_key[PACER_KEY_WORDS - 1] = NEW;
	entry.ban_until_ns = new_until_ns;
	pacer_lock_release(&entry.ban_lock, entry.ban_lock);
}

static uint32_t old_bans, new_bans, no_bans;

static void read_beside_the_writer(void)
{
	struct pacer_line got;
	bool is_new;

	if (!ban_notes_read(&entry, 50, &got)) {
		no_bans++;
		return;
	}
	is_new = got.ban_key[0] == NEW;
	if (got.ban_key[PACER_KEY_WORDS - 1] != got.ban_key[0] ||
	    got.ban_until_ns != (is_new ? new_until_ns : 100))
		fail_msg("half a ban: %u and %u until %llu", got.ban_key[0],
			 got.ban_key[PACER_KEY_WORDS - 1], got.ban_until_ns);
	old_bans += !is_new;
	new_bans += is_new;
}

#define BAN_LOOKS 11u /* at the lock, at each word, at the lock, and at the time */

/* The reader takes the old ban, the new one, which may end at the same time, or none. */
static void test_ban_beside_a_writer(void **unused)
{
	static void (*const begins[])(void) = {take_entry, write_half};
	uint32_t from, to;

	(void)unused;
	for (uint32_t of = 0; of < 4; of++) {
		old_bans = new_bans = no_bans = 0;
		new_until_ns = of & 1 ? 200 : 100;
		for (from = 0; from < BAN_LOOKS + 1; from++)
			for (to = from; to < BAN_LOOKS + 2; to++) {
				entry = (struct pacer_line){.ban_until_ns = 100};
				for (uint32_t i = 0; i < PACER_KEY_WORDS; i++)
					entry.ban_key[i] = OLD;
				writes(begins[of / 2], release_entry, from, to);
				read_beside_the_writer();
				assert_true(from < BAN_LOOKS || writer.steps == BAN_LOOKS);
			}
		assert_true(old_bans > 0 && new_bans > 0 && no_bans > 0);
	}
}

/* --- notes --------------------------------------------------------------------------------------
 */

static struct pacer_log log_;
static const struct attached pacer = {.ifname = "eth0", .log = &log_};

/* Another note takes the place of the first. */
static void take_place(void)
{
	log_.note[0].number = log_.saying[0].number = 0;
	log_.note[0].time_ns = log_.saying[0].time_ns = NEW;
}

static void release_place(void)
{
	log_.note[0].number = PACER_NOTES + 1;
	log_.saying[0].number = PACER_SAID + 1;
}

static void is_noted(uint32_t from, uint32_t to)
{
	memset(&log_, 0, sizeof(log_));
	log_.note[0].number = log_.saying[0].number = 1;
	log_.note[0].time_ns = log_.saying[0].time_ns = OLD;
	writes(take_place, release_place, from, to);
}

static void test_notes_beside_a_writer(void **unused)
{
	static const char text[] = "rules: [{name: a, limits: [{key: src, gap: 1s}]}]\n";
	struct policy_error error;
	struct policy *policy = policy_parse(text, strlen(text), &error);
	struct note_said said;
	struct note_ban ban;

	(void)unused;
	assert_non_null(policy);
	for (uint32_t from = 0; from < 3; from++)
		for (uint32_t to = from; to < 4; to++) {
			is_noted(from, to);
			assert_int_equal(notes_ban(&pacer, policy, 0, &ban), from == 2);
			assert_true(from < 2 || ban.time_ns == OLD);
			is_noted(from, to);
			assert_int_equal(notes_saying(&pacer, 0, &said), from == 2);
			assert_true(from < 2 || said.time_ns == OLD);
		}
	policy_free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_state_beside_a_writer),
	    cmocka_unit_test(test_state_that_is_taken_for_nothing),
	    cmocka_unit_test(test_state_that_changes_512_times),
	    cmocka_unit_test(test_state_that_is_never_still),
	    cmocka_unit_test(test_ban_beside_a_writer),
	    cmocka_unit_test(test_notes_beside_a_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
