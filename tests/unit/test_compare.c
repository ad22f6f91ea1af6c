/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two policies compared over frames whose outcomes are given here: what is counted for whom, which
 * limits are one, in which order keys stand, from when to when it was; and a judge that fails.
 */
#include "oracle.h"

#include "offline/compare.h"

#define FRAMES (2 * PACER_RULES_MAX)

/*
 * A frame's source, and by which limiter of its rule each policy denies it, from 1 on; 0: none. Or
 * what both say of it.
 */
struct given {
	uint64_t time_ns;
	uint32_t source, rule, denies[2];
	enum pacer_reason both; /* ADMIT: as above */
};

static struct given given[FRAMES];
static uint32_t n_given, next, fails_at;
static struct replay *const first = (struct replay *)&given[0], *const second =
								    (struct replay *)&given[1];
static uint32_t opened, told;

struct replay *replay_open(const struct policy *policy, const struct pacer_policy *bin,
			   uint64_t lines, bool kernel, struct policy_error *error)
{
	(void)policy;
	(void)bin;
	(void)lines;
	(void)kernel;
	(void)error;
	return opened++ % 2 ? second : first;
}

void replay_close(struct replay *r)
{
	(void)r;
}

/* Each of the two judges is told of once, before any frame. */
void capture_tell(struct capture *c, struct replay *replay)
{
	(void)c;
	assert_int_equal(next, 0);
	told += replay == first ? 1 : 16;
}

int capture_next(struct capture *c, struct replay_frame *frame)
{
	(void)c;
	if (next == n_given)
		return 0;
	*frame = (struct replay_frame){.time_ns = given[next++].time_ns};
	return 1;
}

int replay_judge(struct replay *r, const struct replay_frame *frame, struct replay_judged *judged,
		 struct policy_error *error)
{
	const struct given *g = &given[next - 1];
	uint32_t limiter = g->denies[r == second];

	(void)frame;
	if (next == fails_at && r == second)
		return policy_fail(error, 0, "replay: the kernel is gone");
	*judged = (struct replay_judged){
	    .outcome = pacer_outcome_under(
		limiter ? pacer_outcome(PACER_DENY_WINDOW, limiter - 1) : g->both, g->rule)};
	judged->pkt.family = PACER_FAMILY_4;
	judged->pkt.key[PACER_WORD_SADDR] = g->source;
	judged->pkt.key[PACER_WORD_DADDR] = 7;
	return 0;
}

/* --- comparing ------------------------------------------------------------------------------ */

struct compared {
	struct policy *policy[2];
	struct judge judge[2];
	struct comparison *c;
};

static struct compared compared_open(const char *const text[2])
{
	struct policy_error error = {0};
	struct compared it = {.c = calloc(1, sizeof(*it.c))};

	opened = told = next = n_given = fails_at = 0;
	for (int i = 0; i < 2; i++) {
		it.policy[i] = policy_parse(text[i], strlen(text[i]), &error);
		if (!it.policy[i] ||
		    judge_open(&it.judge[i], "a policy", it.policy[i], false, &error))
			fail_msg("%s", error.text);
	}
	return it;
}

static void compared_read(struct compared *it)
{
	struct policy_error error = {0};
	struct capture capture = {0};

	assert_int_equal(compare_open(it->c, it->judge, &error), 0);
	assert_int_equal(compare_read(it->c, &capture, &error), 0);
	assert_int_equal(told, 17);
}

static void compared_close(struct compared *it)
{
	compare_close(it->c);
	for (int i = 0; i < 2; i++) {
		judge_close(&it->judge[i]);
		policy_free(it->policy[i]);
	}
	free(it->c);
}

static void give(uint64_t time_ns, uint32_t source, uint32_t rule, uint32_t one, uint32_t other)
{
	assert_true(n_given < FRAMES);
	given[n_given++] = (struct given){time_ns, source, rule, {one, other}, PACER_ADMIT};
}

/* A frame of no rule, of which both policies say this. */
static void give_both(enum pacer_reason reason)
{
	give(1, 10, PACER_RULES_MAX, 0, 0);
	given[n_given - 1].both = reason;
}

#define BOTH "{key: src, packets: 3, window: 1s}, {key: dst, packets: 3, window: 1s}"

#define RULES "rules: [{name: a, limits: [" BOTH "]}]"

static const char *const same[2] = {RULES, RULES};

/* What is denied of a key counts for each policy, and that by it alone apart. */
static void test_counts(void **unused)
{
	struct compared it = compared_open(same);
	const struct compare_note *note;

	(void)unused;
	for (int i = 0; i < 5; i++)
		give(1, 10, 0, 1, i < 3);
	give(1, 10, 0, 0, 1);
	give(1, 10, 0, 0, 0);
	give(1, 20, 0, 1, 1);		    /* the same by both: it does not differ */
	give(1, 30, PACER_RULES_MAX, 0, 1); /* by no rule: it counts, under no key */
	compared_read(&it);
	assert_int_equal(it.c->packets, 9);
	assert_int_equal(it.c->denied[0], 6);
	assert_int_equal(it.c->denied[1], 6);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(it.c->stopped[i], 6);
		assert_int_equal(it.c->only[i], 2);
	}
	assert_int_equal(compare_sort(it.c), 1);
	note = tally_note_at(&it.c->keys, 0);
	assert_int_equal(note->pkt.key[PACER_WORD_SADDR], 10);
	assert_int_equal(note->denied[0], 5);
	assert_int_equal(note->denied[1], 4);
	assert_int_equal(note->only[0], 2);
	assert_int_equal(note->only[1], 1);
	assert_int_equal(it.c->keys.n, 2);
	compared_close(&it);
	it = compared_open(same);
	give(1, 20, 0, 1, 1);
	compared_read(&it);
	assert_int_equal(compare_sort(it.c), 0);
	compared_close(&it);
}

/* Compares the frames that are given: how many are denied, stopped, and stopped alone. */
static void compares(struct compared *it, const uint64_t denied[2], const uint64_t stopped[2],
		     const uint64_t only[2])
{
	compared_read(it);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(it->c->denied[i], denied[i]);
		assert_int_equal(it->c->stopped[i], stopped[i]);
		assert_int_equal(it->c->only[i], only[i]);
	}
}

#define PASSING "rules: [{name: a, over: pass, limits: [" BOTH "]}]"

/* What one lets through though it denies it fares as what it admits does. */
static void test_lets_through(void **unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		int stops = i % 2;
		const char *let = i / 2 ? PASSING : "mode: monitor\n" RULES;
		const char *const text[2] = {stops ? let : RULES, stops ? RULES : let};
		struct compared it = compared_open(text);
		const struct compare_note *note;

		for (int k = 0; k < 5; k++)
			give(1, 10, 0, 1, 1);
		/* Stopped by one alone, by another key; and denied, but let through. */
		give(1, 10, 0, 2 * !stops, 2 * stops);
		give(1, 20, 0, stops, !stops);
		compares(&it, (uint64_t[]){6, 6}, (uint64_t[]){6 * !stops, 6 * stops},
			 (uint64_t[]){6 * !stops, 6 * stops});
		assert_int_equal(compare_sort(it.c), 2);
		note = tally_note_at(&it.c->keys, 0);
		assert_int_equal(note->denied[0], 5);
		assert_int_equal(note->denied[1], 5);
		assert_int_equal(note->only[stops], 5);
		assert_int_equal(note->only[!stops], 0);
		compared_close(&it);
	}
}

/* Nor does it matter why both let it through. */
static void test_both_let_through(void **unused)
{
	static const char *const text[2] = {PASSING, "mode: monitor\n" PASSING};
	struct compared it = compared_open(text);

	(void)unused;
	give(1, 10, 0, 1, 0);
	give(1, 10, 0, 1, 1);
	compares(&it, (uint64_t[]){2, 1}, (uint64_t[]){0, 0}, (uint64_t[]){0, 0});
	assert_int_equal(compare_sort(it.c), 0);
	compared_close(&it);
}

#define POOLS "pools: [{name: p, targets: [\"cpu:0\"], each: 5, cooldown: 1s}]\n"

/* Of no rule: what else does with it, a source that is banned, and what cannot be read. */
static void test_of_no_rule(void **unused)
{
	static const char *const texts[][2] = {
	    {"else: drop\nunparsed: drop\n" RULES, "else: drop\nunparsed: pass\n" RULES},
	    {"else: drop\nunparsed: drop\n" RULES, "mode: monitor\nunparsed: drop\n" RULES},
	    {POOLS "else: pool p\nunparsed: drop\n" RULES,
	     POOLS "else: drop\nunparsed: drop\n" RULES},
	};
	static const uint64_t stopped[][2] = {{4, 3}, {4, 0}, {4, 4}};

	(void)unused;
	for (size_t i = 0; i < ARRAY(texts); i++) {
		struct compared it = compared_open(texts[i]);

		give_both(PACER_DENY_VERDICT);
		give_both(PACER_DENY_BAN);
		give_both(PACER_BAD_HEADER);
		give_both(PACER_TOO_DEEP);
		give_both(PACER_ALLOWED);
		give_both(PACER_NO_RULE);
		compared_read(&it);
		for (int k = 0; k < 2; k++) {
			assert_int_equal(it.c->denied[k], 2);
			assert_int_equal(it.c->stopped[k], stopped[i][k]);
		}
		assert_int_equal(it.c->only[0], stopped[i][0] - stopped[i][1]);
		assert_int_equal(it.c->only[1], 0);
		assert_int_equal(compare_sort(it.c), 0);
		compared_close(&it);
	}
}

/* The greatest difference stands first, whoever denied alone; of equal ones the lesser key. */
static void test_order(void **unused)
{
	static const uint32_t want[] = {42, 41, 3, 4, 5, 6, 7, 8, 9};
	struct compared it = compared_open(same);

	(void)unused;
	for (uint32_t source = 9; source >= 3; source--)
		give(1, source, 0, source & 1, !(source & 1));
	for (int i = 0; i < 2; i++)
		give(1, 41, 0, i, !i);
	for (int i = 0; i < 3; i++)
		give(1, 42, 0, 0, 1);
	give(1, 99, 0, 1, 1);
	compared_read(&it);
	assert_int_equal(compare_sort(it.c), ARRAY(want));
	for (uint32_t i = 0; i < ARRAY(want); i++) {
		const struct compare_note *note = tally_note_at(&it.c->keys, i);

		assert_int_equal(note->pkt.key[PACER_WORD_SADDR], want[i]);
	}
	compared_close(&it);
}

/* A capture's times may run backwards: the span is from the first to the last of all. */
static void test_times(void **unused)
{
	static const uint64_t at[] = {50, 30, 90, 40, 70};
	struct compared it = compared_open(same);

	(void)unused;
	for (size_t i = 0; i < ARRAY(at); i++)
		give(at[i], 10, 0, 0, 0);
	compared_read(&it);
	assert_int_equal(it.c->first_ns, 30);
	assert_int_equal(it.c->last_ns, 90);
	compared_close(&it);
}

/* Limits are one if their rules have the same name and their keys are the same, wherever they
 * stand. There may be more of them than a byte counts. */
static void test_kinds(void **unused)
{
	enum { KINDS = PACER_RULES_MAX * 3 / 2 };
	static char text[2][PACER_RULES_MAX * 128];
	uint32_t seen[PACER_RULES_MAX] = {0};
	const char *const texts[2] = {text[0], text[1]};
	struct compared it;

	(void)unused;
	for (uint32_t n = 0; n < 2; n++) {
		size_t at = 0;

		at += (size_t)sprintf(text[n], "memory: 64Mi\nrules:\n");
		for (uint32_t i = 0; i < PACER_RULES_MAX; i++) /* the other way round */
			at += (size_t)sprintf(
			    text[n] + at,
			    "  - {name: r%u, match: {dport: 1}, limits: [{key: %s, packets: 3, "
			    "window: 1s, entries: 16}]}\n",
			    n ? PACER_RULES_MAX - 1 - i : i, n && i % 2 ? "dst" : "src");
	}
	it = compared_open(texts);
	for (uint32_t i = 0; i < PACER_RULES_MAX; i++) {
		give(1, 10, i, 1, 0);
		give(1, 10, PACER_RULES_MAX - 1 - i, 0, 1);
	}
	compared_read(&it);
	/* Half of the rules have another key. */
	assert_int_equal(compare_sort(it.c), KINDS);
	assert_int_equal(it.c->n_kinds, KINDS);
	for (uint32_t i = 0; i < KINDS; i++) {
		const struct compare_note *note = tally_note_at(&it.c->keys, i);
		const struct compare_kind *kind = compare_kind_at(it.c, i);
		uint32_t rule = (uint32_t)atoi(kind->rule + 1);
		char by[POLICY_KEY_TEXT];
		bool of_source;

		policy_key_text(&kind->key, by, sizeof(by));
		of_source = !strncmp(by, "src", 3);
		seen[rule] += of_source ? 1 : 16;
		assert_int_equal(note->denied[0], of_source);
		assert_int_equal(note->denied[1], rule % 2 || !of_source);
	}
	for (uint32_t i = 0; i < PACER_RULES_MAX; i++)
		assert_int_equal(seen[i], i % 2 ? 1 : 17);
	compared_close(&it);
}

/* A frame that cannot be judged ends it, with what is wrong; no frame is counted by half. */
static void test_fails(void **unused)
{
	struct compared it = compared_open(same);
	struct policy_error error = {0};
	struct capture capture = {0};

	(void)unused;
	for (int i = 0; i < 3; i++)
		give(1, 10, 0, 1, 0);
	fails_at = 2;
	assert_int_equal(compare_open(it.c, it.judge, &error), 0);
	assert_int_equal(compare_read(it.c, &capture, &error), -1);
	assert_string_equal(error.text, "replay: the kernel is gone");
	assert_int_equal(it.c->packets, 1);
	assert_int_equal(it.c->denied[0], 1);
	compared_close(&it);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_counts),
	    cmocka_unit_test(test_lets_through),
	    cmocka_unit_test(test_both_let_through),
	    cmocka_unit_test(test_of_no_rule),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_times),
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
