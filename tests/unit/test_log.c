/* SPDX-License-Identifier: GPL-2.0-only */
/* Notes of bans: what they say, how many a rule may write, and what is lost. */
#include <stdlib.h>

#include "oracle.h"

#include "log.h"

#define S 1000000000ull

static struct pacer_log *begin(void **state)
{
	*state = calloc(1, sizeof(struct pacer_log));
	return *state;
}

static int end(void **state)
{
	free(*state);
	return 0;
}

static const struct pacer_rule rule = {.counter = 3, .id = 77, .ban_ns = 30 * S};
static const struct pacer_ban_key four = {77, 24, {0x0a010200}};
static const struct pacer_ban_key six = {77, 56 | PACER_KEY_V6, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};

/* Of a ban that lasts for the rule's time. */
static void note(struct pacer_log *log, const struct pacer_rule *of,
		 const struct pacer_ban_key *key, uint64_t now_ns)
{
	if (pacer_log_may(log, of->counter, now_ns))
		pacer_log_ban(log, key, now_ns, now_ns + of->ban_ns);
}

static void what_is_noted(void **state)
{
	struct pacer_log *log = begin(state);
	const struct pacer_note *n = log->note;

	note(log, &rule, &four, S);
	note(log, &rule, &six, 2 * S);
	assert_int_equal(log->noted, 2);
	assert_int_equal(n[0].number, 1);
	assert_int_equal(n[0].rule, 77);
	assert_int_equal(n[0].time_ns, S);
	assert_int_equal(n[0].until_ns, 31 * S);
	assert_int_equal(n[0].key_id, 24);
	assert_memory_equal(n[0].key, four.word, sizeof(four.word));
	assert_int_equal(n[1].number, 2);
	assert_int_equal(n[1].key_id, 56 | PACER_KEY_V6);
	assert_memory_equal(n[1].key, six.word, sizeof(six.word));
}

/* Of random bursts: in no time are there more than the burst and its rate; the others are lost. */
static void how_many(void **state)
{
	struct pacer_log *log = begin(state);
	uint64_t now_ns = S, offered = 0, times[4000], n = 0;

	oracle_seed(3);
	while (offered < 20000 && n < 4000) {
		now_ns += between(1, 10) == 1 ? between(1, S) : between(1, 1000000);
		for (uint64_t k = between(1, 50); k; k--) {
			uint64_t before = log->noted;

			note(log, &rule, &four, now_ns);
			offered++;
			if (log->noted != before && n < 4000)
				times[n++] = now_ns;
		}
	}
	assert_int_equal(log->noted + log->lost[3], offered);
	assert_true(log->lost[3] > 0 && log->noted > 300);
	for (uint64_t i = 0; i < n; i++)
		for (uint64_t j = i + 1; j < n; j += 7)
			assert_true(j - i + 1 <= PACER_NOTE_BURST +
						     (times[j] - times[i]) / PACER_NOTE_EVERY_NS +
						     1);
}

/* One rule's flood leaves the notes of another to be written. */
static void rules_apart(void **state)
{
	struct pacer_rule other = rule, none = rule;
	struct pacer_log *log = begin(state);

	other.counter = 4;
	none.counter = PACER_COUNTERS_MAX;
	for (int i = 0; i < 100; i++)
		note(log, &rule, &four, S);
	assert_int_equal(log->noted, PACER_NOTE_BURST);
	assert_int_equal(log->lost[3], 100 - PACER_NOTE_BURST);
	note(log, &other, &four, S);
	note(log, &none, &four, S);
	assert_int_equal(log->noted, PACER_NOTE_BURST + 1);
	assert_int_equal(log->lost[4], 0);
	note(log, &rule, &four, S - S / 2); /* a clock that is behind */
	assert_int_equal(log->noted, PACER_NOTE_BURST + 1);
	note(log, &rule, &four, 2 * S);
	assert_int_equal(log->noted, PACER_NOTE_BURST + 2);
}

/* The oldest is written over. */
static void round_and_round(void **state)
{
	struct pacer_log *log = begin(state);

	for (uint64_t i = 0; i < PACER_NOTES + 5; i++)
		note(log, &rule, &four, S + i * PACER_NOTE_EVERY_NS);
	assert_int_equal(log->noted, PACER_NOTES + 5);
	assert_int_equal(log->note[4].number, PACER_NOTES + 5);
	assert_int_equal(log->note[5].number, 6);
	assert_int_equal(log->lost[3], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(what_is_noted, end),
	    cmocka_unit_test_teardown(how_many, end),
	    cmocka_unit_test_teardown(rules_apart, end),
	    cmocka_unit_test_teardown(round_and_round, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
