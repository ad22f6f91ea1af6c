/* SPDX-License-Identifier: GPL-2.0-only */
/* The lock word, with another CPU that acts between the steps. */
#include "oracle.h"

#define PACER_STEP_HOOK
#include "lock.h"

#define HELD PACER_LOCK_HELD

/* What the other CPU does to the word before step number `at` of this one. */
static struct {
	uint32_t *lock;
	uint32_t steps, at, becomes;
	int always; /* changes the word before every step of this CPU but its first */
} other;

void pacer_step(const volatile void *p)
{
	assert_ptr_equal(p, other.lock);
	if (other.always && other.steps)
		*other.lock += PACER_LOCK_SEQ_ONE;
	else if (!other.always && other.steps == other.at)
		*other.lock = other.becomes;
	other.steps++;
}

static void alone(uint32_t *lock)
{
	memset(&other, 0, sizeof(other));
	other.lock = lock;
	other.at = UINT32_MAX;
}

static void test_layout(void **unused)
{
	(void)unused;
	assert_int_equal(PACER_LOCK_HELD, 1u << 0);
	assert_int_equal(PACER_LOCK_CURSOR, 0x3fu << 1);
	assert_int_equal(PACER_LOCK_SEQ, 0x1ffu << 7);
	assert_int_equal(PACER_LOCK_SEQ_ONE, 1u << 7);
	assert_int_equal(PACER_LOCK_HELD ^ PACER_LOCK_CURSOR ^ PACER_LOCK_SEQ, 0xffff);
	assert_int_equal(pacer_lock_tag(0xbeef0000), 0xbeef);
	assert_int_equal(pacer_lock_tag(0x0000ffff), 0);
	assert_int_equal(pacer_lock_cursor(0xffffff81), 0);
	assert_int_equal(pacer_lock_cursor(0x0000007e), 63);
	assert_true(PACER_LOCK_ANY > 0xffff);
	assert_true(PACER_RING_MAX - 1 <= 63);
}

static void test_set(void **unused)
{
	static const uint32_t words[] = {0, 1, 0xffff, 0xffffffff, 0x12345678, 0xffff0000};
	uint32_t i, tag, cursor;

	(void)unused;
	for (i = 0; i < ARRAY(words); i++)
		for (cursor = 0; cursor < 64; cursor++)
			for (tag = 0; tag < 65536; tag += 257) {
				uint32_t word = pacer_lock_set(words[i], tag, cursor);

				assert_int_equal(pacer_lock_tag(word), tag);
				assert_int_equal(pacer_lock_cursor(word), cursor);
				assert_int_equal(word & 0xff81, words[i] & 0xff81);
			}
}

/* 512 changes bring the sequence round; nothing else of the word has changed. */
static void test_sequence_wraps(void **unused)
{
	uint32_t start = pacer_lock_set(0xff00, 0xffff, 63), lock = start, word, i;

	(void)unused;
	for (i = 1; i <= 1024; i++) {
		alone(&lock);
		assert_int_equal(pacer_lock_take(&lock, 0xffff, &word), PACER_LOCK_TAKEN);
		assert_int_equal(lock, word);
		assert_int_equal(word & HELD, HELD);
		pacer_lock_release(&lock, word);
		assert_int_equal(lock & ~PACER_LOCK_SEQ, start & ~PACER_LOCK_SEQ);
		assert_int_equal(lock >> 7 & 0x1ff, ((start >> 7 & 0x1ff) + i) & 0x1ff);
		assert_int_equal(lock == start, i % 512 == 0);
	}
}

static void test_take_cancel_release(void **unused)
{
	uint32_t lock = pacer_lock_set(0x180, 7, 9), word = 0, was = lock;

	(void)unused;
	alone(&lock);
	assert_int_equal(pacer_lock_take(&lock, 7, &word), PACER_LOCK_TAKEN);
	assert_int_equal(word, was | HELD);
	assert_int_equal(lock, was | HELD);
	assert_int_equal(other.steps, 2);
	pacer_lock_cancel(&lock, word);
	assert_int_equal(lock, was);
	assert_int_equal(pacer_lock_take(&lock, PACER_LOCK_ANY, &word), PACER_LOCK_TAKEN);
	pacer_lock_release(&lock, pacer_lock_set(word, 8, 10));
	assert_int_equal(lock, pacer_lock_set(0x200, 8, 10));
}

static void test_busy(void **unused)
{
	static const uint32_t tags[] = {7, PACER_LOCK_ANY};
	uint32_t was = pacer_lock_set(HELD, 7, 9), lock, word, i;

	(void)unused;
	for (i = 0; i < ARRAY(tags); i++) {
		lock = was;
		word = 0xabcd;
		alone(&lock);
		assert_int_equal(pacer_lock_take(&lock, tags[i], &word), PACER_LOCK_BUSY);
		assert_int_equal(other.steps, PACER_SPINS);
		assert_int_equal(lock, was);
		assert_int_equal(word, 0xabcd);
	}
}

/* Another CPU is always a step ahead: as many tries, and then no more. */
static void test_busy_exchange(void **unused)
{
	uint32_t lock = pacer_lock_set(0, 7, 9), word = 0xabcd;

	(void)unused;
	alone(&lock);
	other.always = 1;
	assert_int_equal(pacer_lock_take(&lock, PACER_LOCK_ANY, &word), PACER_LOCK_BUSY);
	assert_int_equal(other.steps, 2 * PACER_SPINS);
	assert_false(lock & HELD);
	assert_int_equal(word, 0xabcd);
}

static void test_let_go(void **unused)
{
	uint32_t lock, word = 0, at;

	(void)unused;
	for (at = 0; at <= PACER_SPINS; at++) {
		lock = pacer_lock_set(HELD, 7, 9);
		alone(&lock);
		other.at = at;
		other.becomes = pacer_lock_set(0x80, 7, 10);
		assert_int_equal(pacer_lock_take(&lock, 7, &word),
				 at < PACER_SPINS ? PACER_LOCK_TAKEN : PACER_LOCK_BUSY);
		assert_int_equal(lock, at < PACER_SPINS ? other.becomes | HELD
							: pacer_lock_set(HELD, 7, 9));
		assert_true(at == PACER_SPINS || word == lock);
	}
}

static void test_other(void **unused)
{
	static const uint32_t tags[] = {0, 6, 8, 0xffff};
	uint32_t lock, word, i, held;

	(void)unused;
	for (held = 0; held < 2; held++)
		for (i = 0; i < ARRAY(tags); i++) {
			lock = pacer_lock_set(held, 7, 9);
			alone(&lock);
			assert_int_equal(pacer_lock_take(&lock, tags[i], &word), PACER_LOCK_OTHER);
			assert_int_equal(other.steps, 1);
			assert_int_equal(lock, pacer_lock_set(held, 7, 9));
		}
}

/* It becomes another's while this CPU waits, or between its look and its exchange. */
static void test_becomes_other(void **unused)
{
	uint32_t lock, word, held;

	(void)unused;
	for (held = 0; held < 2; held++) {
		lock = pacer_lock_set(held, 7, 9);
		alone(&lock);
		other.at = held ? 5 : 1;
		other.becomes = pacer_lock_set(0x80, 8, 9);
		assert_int_equal(pacer_lock_take(&lock, 7, &word), PACER_LOCK_OTHER);
		assert_int_equal(lock, other.becomes);
	}
}

static void test_no_memory(void **unused)
{
	uint32_t word = 0;

	(void)unused;
	alone(&word);
	assert_int_equal(pacer_lock_spin(NULL, 7, &word), PACER_LOCK_OTHER);
	assert_int_equal(pacer_lock_spin(&word, 7, NULL), PACER_LOCK_OTHER);
	assert_int_equal(word, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_layout),	   cmocka_unit_test(test_set),
	    cmocka_unit_test(test_sequence_wraps), cmocka_unit_test(test_take_cancel_release),
	    cmocka_unit_test(test_busy),	   cmocka_unit_test(test_busy_exchange),
	    cmocka_unit_test(test_let_go),	   cmocka_unit_test(test_other),
	    cmocka_unit_test(test_becomes_other),  cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
