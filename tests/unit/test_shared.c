/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Items that a fleet shares: a word at a time, and many runs of three hosts and a store at random,
 * with writes that are lost, late and doubled, agents that begin anew and are away. Whatever came
 * before, once nothing happens any more all hosts have what the store says, and what was lifted
 * last is nowhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <cmocka.h>

#include "fleet/shared.h"

#define S      1000000000ull
#define BEGUN  (1000 * S)
#define HOSTS  3
#define KEYS   4
#define VALUED 2 /* keys from this one on have values */
#define RUNS   3000
#define EVENTS 120

/* What the store says of a plain item. */
#define WORD(left) (&(struct shared_word){.left_ns = (left)})

static uint64_t now;
static bool no_secret; /* there are no random numbers */

ssize_t __real_getrandom(void *to, size_t n, unsigned int flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags);

ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags)
{
	return no_secret ? -1 : __real_getrandom(to, n, flags);
}

/* --- a word at a time --------------------------------------------------------------------------
 */

static void look(struct shared *s, const char *key, uint64_t until_ns)
{
	if (key)
		shared_here(s, key, NULL, until_ns, now);
	shared_looked(s, now);
}

/* A host that has read an empty store. */
static void read_nothing(struct shared *s)
{
	now = BEGUN;
	memset(s, 0, sizeof(*s));
	shared_list(s);
	shared_listed(s, now);
}

static struct shared_batch batch_of(struct shared *s)
{
	struct shared_batch b;

	shared_batch(s, now, &b);
	return b;
}

/* The host has it until then, and the store heard so. */
static void says(struct shared *s, uint64_t until_ns, uint64_t revision)
{
	struct shared_batch b;

	look(s, "k", until_ns);
	b = batch_of(s);
	shared_told(s, &b, revision);
}

static void test_a_ban_is_told_and_its_lifting(void **unused)
{
	struct shared_batch b;
	struct shared s;

	(void)unused;
	read_nothing(&s);
	look(&s, "k", now + 30 * S);
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].follows, 0);
	assert_int_equal(b.at[0].word.left_ns, 30 * S);
	assert_true(b.ttl_s > 30 && b.ttl_s < 35);
	shared_told(&s, &b, 7);
	look(&s, "k", now + 30 * S);
	assert_int_equal(batch_of(&s).n, 0);
	look(&s, NULL, 0); /* one look can miss it */
	assert_int_equal(batch_of(&s).n, 0);
	look(&s, NULL, 0);
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].follows, 7);
	assert_int_equal(b.at[0].word.left_ns, 0);
	assert_int_equal(b.ttl_s, SHARED_LIFTED_S);
	assert_int_equal(s.count.told, 1);
	shared_free(&s);
}

static void test_nothing_is_told_before_all_was_read(void **unused)
{
	struct shared s = {0};

	(void)unused;
	now = BEGUN;
	look(&s, "k", now + 30 * S);
	assert_int_equal(batch_of(&s).n, 0);
	shared_list(&s);
	shared_there(&s, "k", WORD(0), 5, now); /* lifted while this host was away */
	shared_listed(&s, now);
	assert_int_equal(batch_of(&s).n, 0);
	assert_int_equal(s.at[0].todo, SHARED_TAKE);
	assert_int_equal(s.at[0].there_ns, 0);
	assert_int_equal(s.count.late, 0);
	shared_free(&s);
}

/* It is told when it is confirmed; if it gives way, nothing of it was told. */
static void test_what_a_trial_brings_is_not_told(void **unused)
{
	(void)unused;
	for (int confirmed = 0; confirmed < 2; confirmed++) {
		struct shared_batch b;
		struct shared s;

		read_nothing(&s);
		s.on_trial = s.first = true;
		s.found = SHARED_FILED;
		look(&s, "k", SHARED_NEVER);
		s.first = false;
		s.found = SHARED_MADE; /* by hand */
		shared_here(&s, "k", NULL, SHARED_NEVER, now);
		look(&s, "by hand", SHARED_NEVER);
		b = batch_of(&s);
		assert_int_equal(b.n, 1);
		assert_string_equal(s.at[b.at[0].item].key, "by hand");
		shared_told(&s, &b, 7);
		assert_false(shared_tells(&s, &s.at[0]));
		s.on_trial = false;
		if (confirmed) {
			assert_true(shared_tells(&s, &s.at[0]));
			b = batch_of(&s);
			assert_int_equal(b.n, 1);
			assert_string_equal(s.at[b.at[0].item].key, "k");
		} else {
			shared_begin(&s, NULL, NULL);
			shared_list(&s);
			shared_there(&s, "by hand", WORD(SHARED_NEVER), 7, now);
			shared_listed(&s, now);
			look(&s, NULL, 0);
			look(&s, NULL, 0);
			assert_int_equal(batch_of(&s).n, 0);
		}
		shared_free(&s);
	}
}

/* It was changed here after the word had been heard: so it is told, and not overwritten. */
static void test_a_change_here_before_a_word_is_taken(void **unused)
{
	(void)unused;
	for (int heard = 0; heard < 2; heard++)
		for (int lifted = 0; lifted < 2; lifted++) {
			struct shared s;

			read_nothing(&s);
			says(&s, now + 5 * S, 7);
			s.known = 8;
			s.heard = heard ? 8 : 7;
			shared_there(&s, "k", WORD(90 * S), 8, now);
			assert_int_equal(s.at[0].todo, SHARED_TAKE);
			look(&s, "k", now + 5 * S);
			assert_int_equal(s.at[0].todo, SHARED_TAKE);
			for (int i = 0; i < 2; i++)
				look(&s, lifted ? NULL : "k", now + 600 * S);
			assert_int_equal(s.at[0].todo, heard ? SHARED_TELL : SHARED_TAKE);
			if (heard) {
				struct shared_batch b = batch_of(&s);

				assert_int_equal(b.at[0].follows, 8);
				assert_int_equal(b.at[0].word.left_ns, lifted ? 0 : 600 * S);
			}
			shared_free(&s);
		}
}

/* What ends no later than the word and says the same gives way to it; so does what lay beneath. */
static void test_what_is_beneath_a_word_is_taken_over(void **unused)
{
	static const struct shared_value a = {"a", SHARED_BY_FILE}, b = {"b", SHARED_BY_HAND};
	struct shared_word word = {.value = b, .left_ns = 90 * S};
	struct shared s;

	(void)unused;
	for (int longer = 0; longer < 2; longer++) { /* made by a rule meanwhile */
		read_nothing(&s);
		s.known = s.heard = 8;
		shared_there(&s, "k", WORD(90 * S), 8, now);
		look(&s, "k", now + (longer ? 95 : 60) * S);
		assert_int_equal(s.at[0].todo, longer ? SHARED_TELL : SHARED_TAKE);
		shared_free(&s);
	}
	for (int ended = 0; ended < 2; ended++) {
		read_nothing(&s);
		shared_here(&s, "k", &b, now + 5 * S, now);
		s.known = s.heard = 8;
		shared_there(&s, "k", &word, 8, now);
		assert_int_equal(s.at[0].todo, SHARED_TAKE);
		now += ended ? 6 * S : S;
		shared_here(&s, "k", &a, ended ? SHARED_NEVER : now + 9 * S, now);
		assert_int_equal(s.at[0].todo, ended ? SHARED_TAKE : SHARED_TELL);
		shared_free(&s);
	}
}

/* Its end is no lifting, though no look has seen it: the later word of another host holds. */
static void test_an_end_lifts_no_later_word(void **unused)
{
	(void)unused;
	for (int lost = 0; lost < 2; lost++) {
		struct shared_batch b;
		struct shared s;

		read_nothing(&s);
		look(&s, "k", now + S);
		b = batch_of(&s);
		assert_int_equal(b.n, 1);
		if (lost)
			shared_lost(&s, &b);
		now += S;
		shared_there(&s, "k", WORD(600 * S), 8, now);
		assert_int_equal(s.at[0].todo, SHARED_TAKE);
		shared_free(&s);
	}
}

/* So who was away, and has it longer by a word from before, does not tell that again. */
static void test_what_follows_a_lifting_for_long_says_so(void **unused)
{
	struct shared_batch b;
	struct shared s, away;

	(void)unused;
	read_nothing(&s);
	says(&s, now + 24 * 3600 * S, 7);
	look(&s, NULL, 0);
	look(&s, NULL, 0);
	b = batch_of(&s);
	shared_told(&s, &b, 8);
	for (int hours = 2; hours < 4; hours++) { /* it is made, and then made longer */
		look(&s, "k", now + hours * 3600 * S);
		b = batch_of(&s);
		assert_int_equal(b.at[0].word.left_ns, hours * 3600 * S);
		assert_true(b.at[0].word.lies_ns > b.at[0].word.left_ns);
		memset(&away, 0, sizeof(away));
		look(&away, "k", now + 24 * 3600 * S);
		shared_list(&away);
		shared_there(&away, "k", &b.at[0].word, 9, now);
		shared_listed(&away, now);
		assert_int_equal(away.at[0].todo, SHARED_TAKE);
		shared_free(&away);
		shared_told(&s, &b, 7 + (uint64_t)hours);
	}
	shared_free(&s);

	read_nothing(&s); /* what was only made longer follows nothing */
	says(&s, now + 2 * 3600 * S, 7);
	look(&s, "k", now + 3 * 3600 * S);
	assert_int_equal(batch_of(&s).at[0].word.lies_ns, 0);
	shared_free(&s);
}

static void test_what_ends_by_itself_is_not_lifted(void **unused)
{
	struct shared s;

	(void)unused;
	read_nothing(&s);
	says(&s, now + 10 * S, 7);
	now += 10 * S - SHARED_LEAST_NS / 2; /* nor while it is there, though not for long */
	for (int looks = 0; looks < 3; looks++) {
		look(&s, "k", BEGUN + 10 * S);
		assert_int_equal(batch_of(&s).n, 0);
		assert_int_equal(s.n, 1);
	}
	now = BEGUN + 10 * S;
	look(&s, NULL, 0);
	look(&s, NULL, 0);
	assert_int_equal(batch_of(&s).n, 0);
	assert_int_equal(s.n, 0);
	shared_free(&s);
}

/* What waits to be taken is not told to be as short as what a rule bans here meanwhile. */
static void test_what_waits_is_not_said_otherwise(void **unused)
{
	struct shared s;
	size_t i = 0;

	(void)unused;
	read_nothing(&s);
	shared_there(&s, "k", WORD(3600 * S), 5, now);
	look(&s, "k", now + 20 * S);
	assert_int_equal(batch_of(&s).n, 0);
	assert_non_null(shared_take(&s, &i));
	shared_free(&s);
}

/* When it ends by itself, that is told. */
static void end_is_told(struct shared *s, uint64_t revision, uint64_t left_ns)
{
	struct shared_batch b;

	now += left_ns;
	look(s, NULL, 0);
	assert_int_equal(batch_of(s).n, 0); /* on other hosts it may run yet */
	now += SHARED_SLACK_NS;
	look(s, NULL, 0);
	b = batch_of(s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].follows, revision);
	assert_int_equal(b.at[0].word.left_ns, 0);
	assert_true(b.at[0].word.lies_ns == SHARED_LIFTED_S * S); /* it is no lifting */
	assert_int_equal(b.ttl_s, SHARED_LIFTED_S);
	shared_told(s, &b, revision + 1);
	now += SHARED_SLACK_NS;
	look(s, NULL, 0);
	assert_int_equal(batch_of(s).n, 0);
}

/* Who is away for a moment hears of a shorter end all the same, as of a lifting. */
static void test_a_shorter_end_is_told(void **unused)
{
	struct shared_batch b;
	struct shared s;

	(void)unused;
	read_nothing(&s);
	says(&s, now + 50 * S, 7);
	look(&s, "k", now + 3 * S);
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].word.left_ns, 3 * S);
	assert_int_equal(b.ttl_s, SHARED_LIFTED_S);
	shared_told(&s, &b, 8);
	end_is_told(&s, 8, 3 * S);
	shared_free(&s);
}

/* It lies as long as it lasts, if that is longer than an hour. */
static void test_a_shorter_end_that_is_far(void **unused)
{
	struct shared_batch b;
	struct shared s;

	(void)unused;
	read_nothing(&s);
	says(&s, now + 9 * SHARED_LIFTED_S * S, 7);
	look(&s, "k", now + 2 * SHARED_LIFTED_S * S);
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_true(b.ttl_s > 2 * SHARED_LIFTED_S);
	shared_free(&s);
}

/* Told, and lifted at once. */
static void told_and_lifted(struct shared *s)
{
	struct shared_batch b;

	read_nothing(s);
	says(s, now + 86400 * S, 7);
	look(s, NULL, 0);
	look(s, NULL, 0);
	b = batch_of(s);
	shared_told(s, &b, 8);
}

/* Told for 3 s, 100 s after what it follows. Returns for how long that lies. */
static uint32_t told_anew(struct shared *s, uint64_t revision)
{
	struct shared_batch b;

	now += 100 * S;
	look(s, "k", now + 3 * S);
	b = batch_of(s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].follows, revision);
	assert_int_equal(b.at[0].word.left_ns, 3 * S);
	shared_told(s, &b, revision + 1);
	return b.ttl_s;
}

/*
 * What follows a lifting lies there for as long as that would, and so does what follows it: who
 * was away meanwhile does not say again what was lifted.
 */
static void test_a_lifting_is_heard_through_what_follows(void **unused)
{
	struct shared_batch b;
	struct shared s;

	(void)unused;
	told_and_lifted(&s); /* by this host, that knows of it yet */
	assert_in_range(told_anew(&s, 8), SHARED_LIFTED_S - 100, SHARED_LIFTED_S - 98);
	look(&s, "k", now + 9 * S); /* made longer while it runs */
	b = batch_of(&s);
	assert_in_range(b.ttl_s, SHARED_LIFTED_S - 100, SHARED_LIFTED_S - 97);
	shared_told(&s, &b, 10);
	end_is_told(&s, 10, 9 * S);
	shared_free(&s);

	read_nothing(&s); /* by another, just now */
	look(&s, "k", now + 3 * S);
	shared_there(&s, "k", WORD(0), 8, now);
	shared_taken(&s, &s.at[0], true);
	assert_in_range(told_anew(&s, 8), SHARED_LIFTED_S - 100, SHARED_LIFTED_S - 98);
	shared_free(&s);

	read_nothing(&s); /* whoever by: as the store says for how long it lies */
	shared_asked(&s, 8);
	look(&s, "k", now + 500 * S);
	shared_there(&s, "other", WORD(0), 8, now); /* nothing is known of it */
	shared_there(&s, "k", WORD(0), 8, now);
	assert_int_equal(s.n, 1);
	b = batch_of(&s);
	assert_int_equal(b.at[0].follows, 8);
	assert_int_equal(b.ttl_s, SHARED_LIFTED_S);
	shared_lies(&s, "k", 8, now + 700 * S);
	shared_lies(&s, "k", 7, now + 900 * S);
	shared_lies(&s, "other", 8, now + 900 * S);
	b = batch_of(&s);
	assert_in_range(b.ttl_s, 700, 701);
	shared_lies(&s, "k", 8, now + 90000 * S);
	b = batch_of(&s);
	assert_int_equal(b.ttl_s, SHARED_LIFTED_S);
	shared_lies(&s, "k", 8, now + 700 * S);
	b = batch_of(&s);
	assert_in_range(b.ttl_s, 700, 701);
	shared_absent(&s, "k", now);
	b = batch_of(&s);
	assert_in_range(b.ttl_s, 500, 502);
	shared_free(&s);
}

/*
 * What the store says of a lifting reaches this host while it reads all that there is, after it was
 * made here: at the agent's start (revision 0), or when another policy came, up to whose look the
 * store was known to the revision `known`. Is it told all the same?
 */
static bool tells_of(uint64_t known, bool asked, enum shared_found found,
		     const struct shared_word *word, bool *takes)
{
	struct shared s = {0};
	size_t i = 0;
	bool tells;

	now = BEGUN;
	shared_asked(&s, known);
	shared_heard(&s);
	shared_begin(&s, NULL, NULL);
	look(&s, NULL, 0);
	if (asked)
		shared_asked(&s, 20);
	s.found = found;
	look(&s, "k", now + 60 * S);
	shared_asked(&s, 20);
	shared_list(&s);
	shared_there(&s, "k", word, 10, now);
	shared_listed(&s, now);
	tells = batch_of(&s).n == 1;
	*takes = shared_take(&s, &i) != NULL;
	shared_free(&s);
	return tells;
}

/* Else it gives way to that. */
static bool outlasts(uint64_t known, bool asked, enum shared_found found,
		     const struct shared_word *word)
{
	bool takes, tells = tells_of(known, asked, found, word, &takes);

	assert_int_equal(tells, !takes);
	return tells;
}

/* What was made after a lifting is not lost for that the lifting is read once more. */
static void test_what_is_made_after_a_lifting_that_was_read(void **unused)
{
	const struct shared_word lifted = {.left_ns = 0};
	const struct shared_word ended = {.left_ns = 0, .lies_ns = 3000 * S};

	(void)unused;
	assert_true(outlasts(10, false, SHARED_MADE, &lifted)); /* under another policy */
	assert_true(outlasts(10, false, SHARED_STAYS, &lifted));
	assert_true(outlasts(10, false, SHARED_STAYS, &ended));
	assert_false(outlasts(10, false, SHARED_FILED, &lifted)); /* the file is older */
	assert_false(outlasts(10, true, SHARED_FILED, &lifted));
	assert_false(outlasts(9, false, SHARED_MADE, &lifted)); /* it was lifted since */
	assert_false(outlasts(9, false, SHARED_STAYS, &lifted));
	assert_true(outlasts(9, false, SHARED_MADE, &ended));	/* but an end ends nothing new */
	assert_false(outlasts(0, false, SHARED_MADE, &lifted)); /* an agent that begins */
	assert_false(outlasts(0, false, SHARED_MADE, &ended));
	assert_true(outlasts(0, true, SHARED_MADE, &lifted)); /* and that takes long to read */
	assert_true(outlasts(0, true, SHARED_MADE, &ended));
}

/*
 * What was changed here after a word that had been read counts over it, though it ends before: that
 * is found by another policy's look, which knows nothing of either. So it is with one for ever.
 */
static void test_what_is_made_shorter_after_a_word_that_was_read(void **unused)
{
	const struct shared_word longer = {.left_ns = 300 * S}, never = {.left_ns = SHARED_NEVER};
	const struct shared_word alike = {.left_ns = 61 * S};
	bool takes;

	(void)unused;
	for (uint64_t known = 9; known <= 10; known++) {
		assert_int_equal(outlasts(known, false, SHARED_MADE, &longer), known == 10);
		assert_int_equal(outlasts(known, false, SHARED_MADE, &never), known == 10);
		assert_int_equal(outlasts(known, false, SHARED_STAYS, &longer), known == 10);
		assert_int_equal(outlasts(known, false, SHARED_STAYS, &never), known == 10);
		assert_false(outlasts(known, false, SHARED_FILED, &longer));
	}
	assert_false(tells_of(10, false, SHARED_MADE, &alike, &takes)); /* nothing is to be told */
	assert_false(takes);
	assert_false(outlasts(0, false, SHARED_MADE, &longer)); /* an agent that begins */
	assert_false(outlasts(0, true, SHARED_MADE, &longer));	/* what it asked for is not heard */
	assert_false(outlasts(9, true, SHARED_MADE, &longer));
}

/*
 * A value of a file that comes while this host reads, of which it has not heard what another host
 * did by hand: that counts.
 */
static void test_a_value_that_was_not_heard(void **unused)
{
	const struct shared_value file = {"XY", SHARED_BY_FILE};
	const struct shared_word by_hand = {{"AB", SHARED_BY_HAND}, SHARED_NEVER, 0};
	struct shared s = {0};

	(void)unused;
	now = BEGUN;
	shared_looked(&s, now);
	shared_asked(&s, 10);
	shared_here(&s, "k", &file, SHARED_NEVER, now);
	shared_looked(&s, now);
	shared_there(&s, "k", &by_hand, 9, now);
	assert_int_equal(s.at[0].todo, SHARED_TAKE);
	shared_free(&s);
}

/* What could not be taken counts as not read, as what was not taken yet. */
static void test_what_had_no_room_counts_as_unread(void **unused)
{
	struct shared s;
	size_t i = 0;

	(void)unused;
	read_nothing(&s);
	shared_asked(&s, 7);
	shared_heard(&s);
	says(&s, now + 60 * S, 7);
	look(&s, "k", now + 60 * S);
	shared_asked(&s, 9);
	shared_heard(&s);
	shared_there(&s, "k", WORD(600), 9, now);
	shared_taken(&s, shared_take(&s, &i), false);
	shared_begin(&s, NULL, NULL);
	assert_true(s.known == 8 && s.heard == 8 && s.before == 8);
	shared_free(&s);
}

/*
 * What was made again after a lifting is later than that through a policy, though another word
 * counts as unread with it. One that has ended, a moment before what is here, is not unread.
 */
static void test_made_again_before_another_policy(void **unused)
{
	for (int untaken = 0; untaken < 2; untaken++) {
		struct shared s;

		(void)unused;
		read_nothing(&s);
		shared_asked(&s, 20);
		shared_heard(&s);
		look(&s, "k", now + 60 * S);
		if (untaken) {
			shared_there(&s, "y", WORD(60), 10, now);
		} else {
			shared_here(&s, "y", NULL, now + 2 * S, now);
			shared_there(&s, "y", WORD(1), 10, now);
			now += S + S / 2;
			shared_here(&s, "y", NULL, now + S / 2, now);
			look(&s, "k", BEGUN + 60 * S);
		}
		shared_begin(&s, NULL, NULL);
		assert_int_equal(s.known, untaken ? 9 : 20);
		assert_int_equal(s.n, 1);
		s.first = true;
		look(&s, "k", BEGUN + 60 * S);
		shared_list(&s);
		shared_there(&s, "k", WORD(0), 18, now);
		shared_listed(&s, now);
		assert_int_equal(s.at[0].todo, SHARED_TELL);
		shared_free(&s);
	}
}

/* ... nor is what was made after this host's own lifting, which it reads later. */
static void test_what_is_made_after_its_own_lifting(void **unused)
{
	struct shared_batch b;
	struct shared s;
	size_t i = 0;

	(void)unused;
	read_nothing(&s);
	says(&s, now + 60 * S, 7);
	shared_asked(&s, 7);
	look(&s, NULL, 0);
	says(&s, 0, 8);
	look(&s, NULL, 0);
	look(&s, "k", now + 60 * S);
	shared_asked(&s, 8);
	shared_there(&s, "k", WORD(0), 8, now);
	assert_null(shared_take(&s, &i));
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].follows, 8);
	assert_int_equal(b.at[0].word.left_ns, 60 * S);
	shared_told(&s, &b, 9);
	look(&s, NULL, 0);
	says(&s, 0, 10);
	look(&s, NULL, 0);
	assert_int_equal(s.n, 1);
	shared_asked(&s, 10);
	look(&s, NULL, 0);
	assert_int_equal(s.n, 0); /* it is known no longer than that */
	shared_free(&s);
}

/* Another policy comes before what others lifted is taken: that is taken yet. */
static void test_what_was_not_taken_counts_as_unread(void **unused)
{
	struct shared s;
	size_t i = 0;

	(void)unused;
	read_nothing(&s);
	shared_asked(&s, 7);
	says(&s, now + 60 * S, 7);
	shared_asked(&s, 9);
	shared_there(&s, "k", WORD(0), 8, now);
	assert_int_equal(s.at[0].todo, SHARED_TAKE);
	shared_begin(&s, NULL, NULL);
	assert_int_equal(s.known, 7);
	s.found = SHARED_STAYS;
	look(&s, "k", BEGUN + 60 * S);
	shared_list(&s);
	shared_there(&s, "k", WORD(0), 8, now);
	assert_non_null(shared_take(&s, &i));
	s.at[0].revision = 0; /* it was not listed: there is no word that could be read again */
	shared_begin(&s, NULL, NULL);
	assert_int_equal(s.known, 7);
	shared_free(&s);
}

/* A word that is to be heard for an hour, of 50 s that follow a lifting, was written so long ago.
 */
static struct shared_word lying(uint64_t age_s)
{
	struct shared_word word = {.left_ns = 50 * S, .lies_ns = SHARED_LIFTED_S * S};

	shared_age(&word, age_s * S);
	return word;
}

/* Whoever makes it longer says of it that it is to be heard for as long. */
static void test_another_host_follows_what_follows(void **unused)
{
	struct shared_word word = lying(10);
	struct shared_batch b;
	struct shared s;

	(void)unused;
	read_nothing(&s);
	shared_there(&s, "k", &word, 8, now);
	shared_taken(&s, &s.at[0], true);
	shared_lies(&s, "k", 8, now + 3600 * S); /* the store keeps it for longer than it has to */
	shared_lies(&s, "k", 8, now + 3590 * S);
	now += 10 * S;
	look(&s, "k", now + 100 * S);
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].follows, 8);
	assert_in_range(b.ttl_s, 3580, 3581);
	assert_true(b.at[0].word.lies_ns == b.ttl_s * S);
	shared_told(&s, &b, 9);
	end_is_told(&s, 9, 100 * S);
	shared_free(&s);

	read_nothing(&s); /* but a word that is to be heard until its end has no such time */
	shared_there(&s, "k", WORD(50 * S), 8, now);
	shared_taken(&s, &s.at[0], true);
	shared_lies(&s, "k", 8, now + 3600 * S);
	look(&s, "k", now + 100 * S);
	b = batch_of(&s);
	assert_in_range(b.ttl_s, 100, 103);
	assert_int_equal(b.at[0].word.lies_ns, 0);
	shared_free(&s);
}

/* A host that begins, with an item that was lifted while it was away, reads that word. */
static void begins_with_lifted(struct shared *s, const struct shared_word *word)
{
	now = BEGUN;
	memset(s, 0, sizeof(*s));
	look(s, "k", now + 7200 * S);
	shared_list(s);
	shared_there(s, "k", word, 8, now);
	shared_listed(s, now);
}

static void test_who_was_away_takes_what_follows(void **unused)
{
	struct shared_word word = lying(10);
	struct shared s;

	(void)unused;
	assert_true(word.left_ns == 40 * S && word.lies_ns == 3590 * S);
	begins_with_lifted(&s, &word);
	assert_int_equal(s.at[0].todo, SHARED_TAKE);
	assert_int_equal(s.at[0].there_ns, now + 40 * S);
	shared_free(&s);

	word = lying(3600); /* nothing is to be heard of it any more */
	assert_true(word.left_ns == SHARED_OVER && !word.lies_ns);
	word = lying(50); /* it has ended, and whoever wrote it told nobody */
	assert_true(!word.left_ns && word.lies_ns == 3550 * S);
	shared_age(&word, 50 * S);
	assert_true(!word.left_ns && word.lies_ns == 3500 * S);
	begins_with_lifted(&s, &word);
	assert_int_equal(s.at[0].todo, SHARED_TAKE);
	assert_int_equal(s.at[0].there_ns, 0);
	shared_free(&s);

	word = lying(10); /* but what was made here since is later */
	read_nothing(&s);
	look(&s, "k", now + 100 * S);
	shared_there(&s, "k", &word, 8, now);
	assert_int_equal(batch_of(&s).n, 1);
	assert_int_equal(batch_of(&s).at[0].follows, 8);
	shared_free(&s);

	word = (struct shared_word){.left_ns = 50 * S}; /* nothing was lifted before that */
	begins_with_lifted(&s, &word);
	assert_int_equal(batch_of(&s).n, 1);
	shared_free(&s);
	shared_age(&word, 50 * S);
	assert_true(word.left_ns == SHARED_OVER);
	begins_with_lifted(&s, &word);
	assert_int_equal(batch_of(&s).n, 1);
	shared_free(&s);
}

/* The end of another host's item, with which one follows that was made here. */
static void end_comes(struct shared *s, const struct shared_word *word)
{
	shared_there(s, "k", word, 8, now);
	assert_int_equal(s->at[0].todo, SHARED_TELL);
	assert_int_equal(batch_of(s).at[0].follows, 8);
	assert_int_equal(batch_of(s).at[0].word.left_ns, 900 * S);
	shared_free(s);
}

/*
 * An end is no lifting: one that was made here since, and is not told yet, stays. What this host
 * had by an earlier word does not.
 */
static void test_an_end_lifts_nothing_new(void **unused)
{
	const struct shared_word end = {.lies_ns = 3600 * S};
	struct shared s;

	(void)unused;
	read_nothing(&s);
	look(&s, "k", now + 900 * S);
	end_comes(&s, &end);

	read_nothing(&s);
	shared_there(&s, "k", WORD(6 * S), 7, now);
	shared_taken(&s, &s.at[0], true);
	now += 7 * S;
	look(&s, "k", now + 900 * S);
	end_comes(&s, &end);

	read_nothing(&s);
	says(&s, now + 900 * S, 7);
	shared_there(&s, "k", &end, 8, now);
	assert_int_equal(s.at[0].todo, SHARED_TAKE);
	shared_free(&s);

	read_nothing(&s); /* nor does a lifting of what has ended follow it */
	says(&s, now + 900 * S, 7);
	look(&s, NULL, 0);
	look(&s, NULL, 0);
	assert_int_equal(s.at[0].todo, SHARED_TELL);
	shared_there(&s, "k", &end, 8, now);
	assert_int_equal(s.at[0].todo, SHARED_NOTHING);
	shared_free(&s);

	read_nothing(&s); /* and a lifting lifts all */
	look(&s, "k", now + 900 * S);
	shared_there(&s, "k", WORD(0), 8, now);
	assert_int_equal(s.at[0].todo, SHARED_TAKE);
	shared_free(&s);
}

/* What has ended by itself is followed by no longer a word than any. */
static void test_an_end_is_not_heard_of(void **unused)
{
	struct shared_batch b;
	struct shared s;

	(void)unused;
	read_nothing(&s);
	says(&s, now + 10 * S, 7);
	now += 10 * S;
	look(&s, "k", now + 10 * S);
	b = batch_of(&s);
	assert_int_equal(b.at[0].follows, 7);
	assert_in_range(b.ttl_s, 10, 13);
	shared_free(&s);
}

/* One that is told for 10 s, in a store that then begins all leases anew. */
static void told_and_renewed(struct shared *s)
{
	read_nothing(s);
	says(s, now + 10 * S, 7);
	shared_renewed(s);
}

/* Then it would come back with who joins: so it is lifted when it has ended, and no sooner. */
static void test_what_a_store_keeps_beyond_its_end_is_lifted(void **unused)
{
	struct shared_batch b;
	struct shared s;

	(void)unused;
	told_and_renewed(&s);
	now += 11 * S; /* others' clocks may say otherwise yet */
	look(&s, NULL, 0);
	assert_int_equal(batch_of(&s).n, 0);
	now += S;
	look(&s, NULL, 0);
	look(&s, NULL, 0);
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].follows, 7);
	assert_int_equal(b.at[0].word.left_ns, 0);
	shared_lost(&s, &b);
	look(&s, NULL, 0);
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	shared_told(&s, &b, 9);
	look(&s, NULL, 0);
	assert_int_equal(s.n, 0);
	shared_free(&s);
}

static void test_what_goes_on_is_not_lifted(void **unused)
{
	static const struct {
		uint64_t here_s, other_s; /* it is banned again, here or by another host */
		enum shared_todo todo;
	} rows[] = {{30, 0, SHARED_TELL}, {0, 30, SHARED_TAKE}, {30, 40, SHARED_TAKE}};

	(void)unused;
	for (int ended = 0; ended < 2; ended++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
			uint64_t here_ns, other_ns = rows[i].other_s * S;
			struct shared s;

			told_and_renewed(&s);
			now += ended ? 13 * S : 5 * S;
			look(&s, NULL, 0);
			here_ns = rows[i].here_s ? now + rows[i].here_s * S : 0;
			if (here_ns)
				look(&s, "k", here_ns);
			if (other_ns)
				shared_there(&s, "k", WORD(other_ns), 9, now);
			assert_int_equal(s.at[0].todo, rows[i].todo);
			if (rows[i].todo == SHARED_TELL) {
				struct shared_batch b = batch_of(&s);

				assert_int_equal(b.at[0].follows, 7);
				assert_int_equal(b.at[0].word.left_ns, 30 * S);
				shared_told(&s, &b, 11);
			} else {
				shared_taken(&s, &s.at[0], true);
			}
			now += 50 * S; /* which is told by a lease of its own, or by another */
			look(&s, NULL, 0);
			look(&s, NULL, 0);
			assert_int_equal(s.n, 0);
			shared_free(&s);
		}
}

static void test_one_without_an_end(void **unused)
{
	struct shared_batch b;
	struct shared s;
	size_t i = 0;

	(void)unused;
	read_nothing(&s);
	shared_here(&s, "never", NULL, SHARED_NEVER, now);
	shared_here(&s, "soon", NULL, now + 9 * S, now);
	shared_looked(&s, now);
	b = batch_of(&s); /* not in one write: the store keeps one of them for ever */
	assert_int_equal(b.n, 1);
	assert_int_equal(b.ttl_s, 0);
	assert_true(b.at[0].word.left_ns == SHARED_NEVER);
	shared_told(&s, &b, 3);
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].word.left_ns, 9 * S);
	shared_told(&s, &b, 4);
	shared_there(&s, "other", WORD(SHARED_NEVER), 5, now);
	shared_taken(&s, shared_take(&s, &i), true);
	assert_null(shared_take(&s, &i));
	assert_true(s.at[2].here_ns == SHARED_NEVER);
	shared_free(&s);
}

/* "k" is banned here, and nobody knows whether the store was told. */
static void in_doubt(struct shared *s)
{
	struct shared_batch b;

	read_nothing(s);
	look(s, "k", now + 60 * S);
	b = batch_of(s);
	shared_lost(s, &b);
}

static void test_the_longer_end_of_two_is_told(void **unused)
{
	struct shared_batch b;
	struct shared s;
	size_t i = 0;

	(void)unused;
	in_doubt(&s);
	shared_there(&s, "k", WORD(20 * S), 9, now); /* of another host */
	assert_null(shared_take(&s, &i));
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].follows, 9);
	shared_told(&s, &b, 10);
	i = 0;
	shared_there(&s, "k", WORD(90 * S), 11, now);
	assert_non_null(shared_take(&s, &i));
	shared_free(&s);
}

/* An end that grows bit by bit is told once it is that much later than the store's. */
static void test_an_end_that_creeps_is_told(void **unused)
{
	struct shared s;

	(void)unused;
	read_nothing(&s);
	says(&s, now + 60 * S, 7);
	shared_there(&s, "k", WORD(58 * S), 9, now); /* as much as the same */
	look(&s, "k", now + 60 * S);
	assert_int_equal(batch_of(&s).n, 0);
	look(&s, "k", now + 62 * S);
	assert_int_equal(batch_of(&s).n, 1);
	shared_free(&s);
}

/* The write may yet be done: only a word that follows the same keeps it from that. */
static void test_what_is_in_doubt_is_lifted_all_the_same(void **unused)
{
	struct shared_batch b;
	struct shared s;

	(void)unused;
	in_doubt(&s);
	look(&s, NULL, 0);
	look(&s, NULL, 0);
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.at[0].follows, 0);
	assert_int_equal(b.at[0].word.left_ns, 0);
	shared_free(&s);
}

/* After so long that a lifting leaves no word, what is not there any more was lifted. */
static void test_what_is_not_listed_was_lifted(void **unused)
{
	struct shared s;
	size_t i = 0;

	(void)unused;
	read_nothing(&s);
	says(&s, now + 7200 * S, 7);
	now += 4000 * S;
	shared_list(&s);
	shared_listed(&s, now);
	assert_ptr_equal(shared_take(&s, &i), &s.at[0]);
	assert_int_equal(s.at[0].there_ns, 0);
	shared_free(&s);
}

static void test_no_room_here_is_counted_and_no_lifting(void **unused)
{
	struct shared s;
	size_t i = 0;

	(void)unused;
	read_nothing(&s);
	shared_there(&s, "k", WORD(20 * S), 9, now);
	shared_taken(&s, shared_take(&s, &i), false);
	for (int k = 0; k < 4; k++)
		look(&s, NULL, 0);
	assert_int_equal(batch_of(&s).n, 0);
	assert_int_equal(s.count.left_out, 1);
	shared_free(&s);
}

/* Under another policy it may have a place: it is taken again, and counted once. */
static void test_no_room_here_is_no_room_for_ever(void **unused)
{
	struct shared s;
	size_t i = 0;

	(void)unused;
	read_nothing(&s);
	shared_there(&s, "k", WORD(20 * S), 9, now);
	shared_again(&s, now);
	shared_taken(&s, shared_take(&s, &i), false);
	for (int k = 0; k < 3; k++) {
		i = 0;
		assert_null(shared_take(&s, &i));
		shared_again(&s, now);
		i = 0;
		assert_ptr_equal(shared_take(&s, &i), &s.at[0]);
		shared_taken(&s, &s.at[0], k == 2);
	}
	assert_int_equal(s.count.left_out, 1);
	assert_int_equal(s.count.taken, 1);
	shared_again(&s, now); /* it is here */
	i = 0;
	assert_null(shared_take(&s, &i));
	shared_free(&s);

	read_nothing(&s); /* nor is what was made here since */
	shared_there(&s, "k", WORD(20 * S), 9, now);
	i = 0;
	shared_taken(&s, shared_take(&s, &i), false);
	says(&s, now + 30 * S, 10);
	shared_again(&s, now);
	i = 0;
	assert_null(shared_take(&s, &i));
	shared_free(&s);

	read_nothing(&s); /* nor what has ended meanwhile */
	shared_there(&s, "k", WORD(20 * S), 9, now);
	i = 0;
	shared_taken(&s, shared_take(&s, &i), false);
	shared_again(&s, now + 20 * S);
	i = 0;
	assert_null(shared_take(&s, &i));
	shared_free(&s);
}

/* Many at once: a burst, and then so many a second; what waits is counted once. */
static void test_the_number_a_second_is_bounded(void **unused)
{
	struct shared s;
	char key[16];
	size_t told = 0;

	(void)unused;
	read_nothing(&s);
	for (int i = 0; i < 2500; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		shared_here(&s, key, NULL, now + 100 * S, now);
	}
	shared_looked(&s, now);
	for (struct shared_batch b = batch_of(&s); b.n; b = batch_of(&s)) {
		told += b.n;
		shared_told(&s, &b, told);
	}
	assert_int_equal(told, SHARED_BURST);
	assert_int_equal(s.count.late, 2500 - SHARED_BURST);
	for (int second = 1; second <= 3; second++) {
		now += S;
		for (struct shared_batch b = batch_of(&s); b.n; b = batch_of(&s)) {
			told += b.n;
			shared_told(&s, &b, 2500 + told);
		}
		assert_int_equal(told, SHARED_BURST + SHARED_PER_S * second);
	}
	assert_int_equal(s.count.late, 2500 - SHARED_BURST);
	assert_int_equal(s.count.told, 2500);
	shared_free(&s);
}

/*
 * What is lost is told again, but behind all that waits: each has been in a batch after as many as
 * there are. Else, with a store that is slow, the first of many bans would be all that it hears of.
 */
static void test_each_has_its_turn(void **unused)
{
	enum { ROUNDS = 3, N = ROUNDS * SHARED_BATCH };
	bool been[N] = {false};
	struct shared_batch b;
	struct shared s;
	char key[16];

	(void)unused;
	read_nothing(&s);
	for (int i = 0; i < N; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		shared_here(&s, key, NULL, now + 100 * S, now);
	}
	shared_looked(&s, now);
	for (int again = 0; again < 2; again++) {
		memset(been, 0, sizeof(been));
		for (int round = 0; round < ROUNDS; round++) {
			now += S;
			b = batch_of(&s);
			assert_int_equal(b.n, SHARED_BATCH);
			for (size_t i = 0; i < b.n; i++) {
				assert_false(been[b.at[i].item]);
				been[b.at[i].item] = true;
			}
			shared_lost(&s, &b);
		}
	}
	shared_free(&s);
}

/* Once, however often they are looked at: what is more than at the look before. */
static void test_more_than_are_known_are_counted(void **unused)
{
	static const struct {
		unsigned more, left_out;
	} looks[] = {{5, 5}, {5, 5}, {7, 7}, {3, 7}, {4, 8}, {0, 8}};
	struct shared s;
	uint64_t lacked = 0;
	char key[16];

	(void)unused;
	read_nothing(&s);
	for (size_t n = 0; n < sizeof(looks) / sizeof(looks[0]); n++) {
		for (unsigned i = 0; i < SHARED_MAX + looks[n].more; i++) {
			snprintf(key, sizeof(key), "k%u", i);
			shared_here(&s, key, NULL, now + 100 * S, now);
		}
		shared_counted(&s, &lacked);
		shared_looked(&s, now);
		assert_int_equal(s.n, SHARED_MAX);
		assert_int_equal(s.count.left_out, looks[n].left_out);
	}
	shared_there(&s, "k", WORD(20 * S), 9, now); /* nor is there room for another host's */
	assert_int_equal(s.count.left_out, 9);
	shared_free(&s);
}

/* What could not be looked at is as it was; of the rest, two looks without it say that it is gone.
 */
static void test_the_same_as_at_the_last_look(void **unused)
{
	struct shared_batch b;
	struct shared s;

	(void)unused;
	read_nothing(&s);
	shared_here(&s, "set/a/1", NULL, now + 100 * S, now);
	shared_here(&s, "set/a/2", NULL, now + 100 * S, now);
	shared_here(&s, "set/b/1", NULL, now + 100 * S, now);
	shared_looked(&s, now);
	b = batch_of(&s);
	assert_int_equal(b.n, 3);
	shared_told(&s, &b, 7);
	for (int i = 0; i < 3; i++) {
		shared_same(&s, "set/a/");
		shared_looked(&s, now);
	}
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_string_equal(s.at[b.at[0].item].key, "set/b/1");
	assert_int_equal(b.at[0].word.left_ns, 0);
	shared_free(&s);
}

/* --- values ---------------------------------------------------------------------------------- */

static struct shared_value of(const char *text, enum shared_by by)
{
	struct shared_value value = {.by = by};

	snprintf(value.text, sizeof(value.text), "%s", text);
	return value;
}

static void look_at(struct shared *s, const char *text, enum shared_by by, uint64_t until_ns)
{
	const struct shared_value value = of(text, by);

	shared_here(s, "k", &value, until_ns, now);
	shared_looked(s, now);
}

static void said(struct shared *s, uint64_t revision, const char *text, enum shared_by by,
		 uint64_t left_ns)
{
	const struct shared_word word = {of(text, by), left_ns, 0};

	shared_there(s, "k", &word, revision, now);
}

/* What is told next is this, and follows that revision. */
static void assert_told(struct shared *s, const char *text, enum shared_by by, uint64_t follows)
{
	struct shared_batch b = batch_of(s);

	assert_int_equal(b.n, 1);
	assert_string_equal(b.at[0].word.value.text, text);
	assert_int_equal(b.at[0].word.value.by, by);
	assert_int_equal(b.at[0].follows, follows);
	shared_told(s, &b, follows + 1);
}

static void test_a_value_is_told_and_its_change(void **unused)
{
	struct shared s;

	(void)unused;
	read_nothing(&s);
	look_at(&s, "A", SHARED_BY_FILE, SHARED_NEVER);
	assert_told(&s, "A", SHARED_BY_CHANGE, 0); /* the file came while the agent ran */
	look_at(&s, "A", SHARED_BY_FILE, SHARED_NEVER);
	assert_int_equal(batch_of(&s).n, 0);
	look_at(&s, "B", SHARED_BY_FILE, SHARED_NEVER);
	assert_told(&s, "B", SHARED_BY_CHANGE, 1);
	look_at(&s, "B", SHARED_BY_HAND, SHARED_NEVER); /* it counts before what lies within it */
	assert_told(&s, "B", SHARED_BY_HAND, 2);
	look_at(&s, "", SHARED_BY_HAND, now + 9 * S);
	assert_told(&s, "", SHARED_BY_HAND, 3);
	look_at(&s, "B", SHARED_BY_FILE, SHARED_NEVER); /* what lay beside is over */
	assert_told(&s, "B", SHARED_BY_CHANGE, 4);
	shared_free(&s);
}

/* Another policy's file is one with which a host begins; what comes after it, by hand, is not. */
static void test_what_a_policy_brings(void **unused)
{
	for (int found = SHARED_MADE; found <= SHARED_FILED; found++) {
		struct shared s = {0};

		(void)unused;
		now = BEGUN;
		shared_asked(&s, 7);
		s.found = (enum shared_found)found;
		look_at(&s, "A", SHARED_BY_FILE, SHARED_NEVER);
		shared_listed(&s, now);
		assert_told(&s, "A", found == SHARED_MADE ? SHARED_BY_CHANGE : SHARED_BY_FILE, 0);
		shared_free(&s);
	}
}

/* A host that begins with this, while the store says that: does the host tell its own? */
static bool begun_tells(const char *here, enum shared_by by, const char *there, enum shared_by its)
{
	struct shared s = {0};
	size_t i = 0;
	bool tells;

	now = BEGUN;
	look_at(&s, here, by, SHARED_NEVER);
	shared_list(&s);
	said(&s, 7, there, its, SHARED_NEVER);
	shared_listed(&s, now);
	tells = batch_of(&s).n == 1;
	assert_int_equal(!tells, shared_take(&s, &i) != NULL);
	shared_free(&s);
	return tells;
}

static void test_who_begins_compares(void **unused)
{
	(void)unused;
	assert_true(begun_tells("A", SHARED_BY_FILE, "B", SHARED_BY_FILE));
	assert_false(begun_tells("B", SHARED_BY_FILE, "A", SHARED_BY_FILE));
	assert_false(begun_tells("A", SHARED_BY_FILE, "B", SHARED_BY_CHANGE));
	assert_false(begun_tells("A", SHARED_BY_FILE, "B", SHARED_BY_HAND));
	assert_true(begun_tells("B", SHARED_BY_HAND, "A", SHARED_BY_FILE));
	assert_false(begun_tells("A", SHARED_BY_HAND, "B", SHARED_BY_CHANGE));
	assert_false(begun_tells("A", SHARED_BY_HAND, "B", SHARED_BY_HAND));
	assert_true(begun_tells("B", SHARED_BY_HAND, "B", SHARED_BY_FILE));
}

struct side {
	const char *text;
	enum shared_by by; /* SHARED_BY_FILE: it begins with that */
	uint64_t left_ns;
};

/* Two hosts that do not know of each other: the first is heard first. What both have then. */
static void settle_two(const struct side *first, const struct side *second, char got[SHARED_VALUE])
{
	struct shared s[2] = {0};
	const struct side *of_host[2] = {first, second};
	struct shared_word word = {0};
	uint64_t revision = 0;

	now = BEGUN;
	for (int h = 0; h < 2; h++) {
		bool begins = of_host[h]->by == SHARED_BY_FILE;

		if (!begins)
			shared_listed(&s[h], now);
		look_at(&s[h], of_host[h]->text,
			of_host[h]->by == SHARED_BY_HAND ? SHARED_BY_HAND : SHARED_BY_FILE,
			of_host[h]->left_ns == SHARED_NEVER ? SHARED_NEVER
							    : now + of_host[h]->left_ns);
		shared_listed(&s[h], now);
	}
	for (int turn = 0; turn < 6; turn++) {
		struct shared *of_turn = &s[turn % 2];
		struct shared_batch b = batch_of(of_turn);
		struct shared_item *item;
		size_t i = 0;

		if (b.n && b.at[0].follows == revision) {
			word = b.at[0].word;
			shared_told(of_turn, &b, ++revision);
		} else {
			shared_there(of_turn, "k", &word, revision, now);
		}
		while ((item = shared_take(of_turn, &i)))
			shared_taken(of_turn, item, true);
	}
	assert_string_equal(s[0].at[0].here.text, s[1].at[0].here.text);
	assert_true(s[0].at[0].here_ns == s[1].at[0].here_ns);
	snprintf(got, SHARED_VALUE, "%s", word.value.text);
	assert_string_equal(s[0].at[0].here.text, word.value.text);
	shared_free(&s[0]);
	shared_free(&s[1]);
}

/* The same one of two, whichever is heard first: by whom, then the end, then the bytes. */
static void test_of_two_the_same_counts_in_either_order(void **unused)
{
	static const struct {
		struct side one, other;
		const char *counts;
	} rows[] = {
	    {{"A", SHARED_BY_FILE, SHARED_NEVER}, {"B", SHARED_BY_FILE, SHARED_NEVER}, "A"},
	    {{"AS10", SHARED_BY_FILE, SHARED_NEVER}, {"AS9", SHARED_BY_FILE, SHARED_NEVER}, "AS10"},
	    {{"Ã©", SHARED_BY_FILE, SHARED_NEVER}, {"z", SHARED_BY_FILE, SHARED_NEVER}, "z"},
	    {{"A", SHARED_BY_FILE, SHARED_NEVER}, {"B", SHARED_BY_CHANGE, SHARED_NEVER}, "B"},
	    {{"A", SHARED_BY_FILE, SHARED_NEVER}, {"B", SHARED_BY_HAND, 60 * S}, "B"},
	    {{"A", SHARED_BY_CHANGE, SHARED_NEVER}, {"B", SHARED_BY_CHANGE, SHARED_NEVER}, "A"},
	    {{"A", SHARED_BY_CHANGE, SHARED_NEVER}, {"B", SHARED_BY_HAND, 60 * S}, "B"},
	    {{"A", SHARED_BY_HAND, 60 * S}, {"B", SHARED_BY_HAND, 90 * S}, "B"},
	    {{"A", SHARED_BY_HAND, SHARED_NEVER}, {"B", SHARED_BY_HAND, SHARED_NEVER}, "A"},
	    {{"", SHARED_BY_HAND, SHARED_NEVER}, {"B", SHARED_BY_HAND, SHARED_NEVER}, ""},
	};
	char got[SHARED_VALUE];

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		settle_two(&rows[i].one, &rows[i].other, got);
		assert_string_equal(got, rows[i].counts);
		settle_two(&rows[i].other, &rows[i].one, got);
		assert_string_equal(got, rows[i].counts);
	}
}

/* What this host cannot read lies there: it is not asked for again and again. */
static void test_what_is_barred_is_told_no_more(void **unused)
{
	struct shared s;

	(void)unused;
	read_nothing(&s);
	look_at(&s, "A", SHARED_BY_HAND, SHARED_NEVER);
	assert_int_equal(batch_of(&s).n, 1);
	shared_barred(&s, "k");
	shared_barred(&s, "other");
	look_at(&s, "A", SHARED_BY_HAND, SHARED_NEVER);
	assert_int_equal(batch_of(&s).n, 0);
	assert_int_equal(s.count.left_out, 1);
	look_at(&s, "B", SHARED_BY_HAND, SHARED_NEVER);
	assert_int_equal(batch_of(&s).n, 1);
	shared_free(&s);
}

/* --- hosts and a store ------------------------------------------------------------------------ */

static const char *const key_of[KEYS] = {"a", "b", "c", "d"};

static struct {
	/* Of each key: the store's word, written at `at_ns`, kept until `gone_ns`. */
	struct {
		uint64_t revision, at_ns, gone_ns;
		struct shared_word said;
	} word[KEYS];
	uint64_t revision;
	struct host {
		struct shared s;
		uint64_t table[KEYS]; /* the packets': its end; 0: none */
		char value[KEYS];     /* and its value */
		char file[KEYS];      /* what the set itself has; 0: nothing */
		uint64_t read;	      /* the revision up to which it has read; 0: none */
		bool looked;	      /* since its policy is in force */
		struct shared_batch late;
		int late_key[SHARED_BATCH];
	} host[HOSTS];
	/* Of each key: when a host banned it last, when one lifted it last. */
	uint64_t banned_ns[KEYS], lifted_ns[KEYS], longest_ns[KEYS];
} w;

static uint64_t state;

static uint64_t draw(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % n;
}

static int number(const char *key)
{
	return key[0] - 'a';
}

static void expire(void)
{
	for (int k = 0; k < KEYS; k++) {
		if (w.word[k].gone_ns <= now)
			memset(&w.word[k], 0, sizeof(w.word[k]));
		for (int h = 0; h < HOSTS; h++)
			if (w.host[h].table[k] <= now)
				w.host[h].table[k] = 0;
	}
}

/* As packets see it: its end, or 0. */
static uint64_t seen(const struct host *h, int k, struct shared_value *value)
{
	*value = (struct shared_value){.by = SHARED_PLAIN};
	if (k < VALUED)
		return h->table[k];
	value->by = h->table[k] ? SHARED_BY_HAND : SHARED_BY_FILE;
	value->text[0] = h->table[k] ? h->value[k] : h->file[k];
	return h->table[k] ? h->table[k] : h->file[k] ? SHARED_NEVER : 0;
}

static uint64_t end_of(const struct host *h, int k)
{
	struct shared_value unused;

	return seen(h, k, &unused);
}

static void look_at_all(struct host *h)
{
	for (int k = 0; k < KEYS; k++) {
		struct shared_value value;
		uint64_t until_ns = seen(h, k, &value);

		h->s.found = h->looked || k < VALUED ? SHARED_MADE
			     : h->table[k]	     ? SHARED_STAYS
						     : SHARED_FILED;
		if (until_ns)
			shared_here(&h->s, key_of[k], k < VALUED ? NULL : &value, until_ns, now);
	}
	shared_looked(&h->s, now);
	h->looked = true;
}

static void take_all(struct host *h)
{
	struct shared_item *item;
	size_t i = 0;

	while ((item = shared_take(&h->s, &i))) {
		int k = number(item->key);
		bool file = item->there_ns && item->there.by && item->there.by != SHARED_BY_HAND;

		assert_true(!item->there_ns || !item->there.by == (k < VALUED));
		h->table[k] = file ? 0 : item->there_ns;
		h->value[k] = item->there.text[0];
		if (file || !item->there_ns)
			h->file[k] = file ? item->there.text[0] : 0;
		shared_taken(&h->s, item, true);
	}
}

/* The store's word, as it is by now. */
static struct shared_word word_of(int k)
{
	struct shared_word word = w.word[k].said;

	shared_age(&word, now - w.word[k].at_ns);
	return word;
}

static void say(struct host *h, int k)
{
	struct shared_word word = word_of(k);

	shared_there(&h->s, key_of[k], &word, w.word[k].revision, now);
}

static void read_store(struct host *h)
{
	bool all = !h->read;

	shared_asked(&h->s, w.revision);
	if (all)
		shared_list(&h->s);
	for (int k = 0; k < KEYS; k++)
		if (w.word[k].revision > h->read)
			say(h, k);
	if (all)
		shared_listed(&h->s, now);
	h->read = w.revision;
}

/* The store does it, or refuses. */
static bool write_all(const struct shared_batch *b, const int *key)
{
	for (size_t i = 0; i < b->n; i++)
		if (w.word[key[i]].revision != b->at[i].follows)
			return false;
	w.revision++;
	for (size_t i = 0; i < b->n; i++) {
		w.word[key[i]].revision = w.revision;
		w.word[key[i]].said = b->at[i].word;
		w.word[key[i]].at_ns = now;
		w.word[key[i]].gone_ns = b->ttl_s ? now + b->ttl_s * S : SHARED_NEVER;
	}

	return true;
}

enum fate { DONE, LOST, DONE_AND_LOST, LATE, FATES };

static void tell(struct host *h, enum fate fate)
{
	struct shared_batch b;
	int key[SHARED_BATCH];

	shared_batch(&h->s, now, &b);
	if (!b.n)
		return;
	for (size_t i = 0; i < b.n; i++)
		key[i] = number(h->s.at[b.at[i].item].key);
	if (fate == LATE) {
		h->late = b;
		memcpy(h->late_key, key, sizeof(key));
	}
	if (fate == DONE_AND_LOST)
		(void)write_all(&b, key);
	if (fate != DONE) {
		shared_lost(&h->s, &b);
	} else if (write_all(&b, key)) {
		shared_told(&h->s, &b, w.revision);
	} else {
		for (size_t i = 0; i < b.n; i++)
			if (w.word[key[i]].revision)
				say(h, key[i]);
			else
				shared_absent(&h->s, key_of[key[i]], now);
	}
}

/* The time that is left counts from when it is done. */
static void write_late(struct host *h)
{
	if (write_all(&h->late, h->late_key))
		for (size_t i = 0; i < h->late.n; i++)
			if (now + h->late.at[i].word.left_ns > w.longest_ns[h->late_key[i]])
				w.longest_ns[h->late_key[i]] = now + h->late.at[i].word.left_ns;
	h->late.n = 0;
}

static void ban(struct host *h, int k)
{
	uint64_t until_ns = now + (5 + draw(60)) * S;

	if (k >= VALUED && draw(2)) {
		h->file[k] = (char)('A' + draw(3));
		return;
	}
	if (k >= VALUED) {
		h->table[k] = draw(3) ? until_ns : SHARED_NEVER;
		h->value[k] = (char)(draw(4) ? 'A' + draw(3) : 0);
		return;
	}
	if (h->table[k] < until_ns)
		h->table[k] = until_ns;
	if (until_ns > w.longest_ns[k])
		w.longest_ns[k] = until_ns;
	w.banned_ns[k] = now;
}

static void lift(struct host *h, int k)
{
	if (!end_of(h, k))
		return;
	h->table[k] = 0;
	h->file[k] = 0;
	w.lifted_ns[k] = now;
}

/* All that the store has stays for longer, and hosts know. */
static void another_leader(void)
{
	for (int k = 0; k < KEYS; k++)
		w.word[k].gone_ns +=
		    w.word[k].gone_ns && w.word[k].gone_ns < SHARED_NEVER / 2 ? 60 * S : 0;
	for (int h = 0; h < HOSTS; h++)
		shared_renewed(&w.host[h].s);
}

/* The agent does; or its policy, of which it knows all that there was before. */
static void begin_anew(struct host *h, bool agent)
{
	if (agent)
		shared_free(&h->s);
	else
		shared_begin(&h->s, NULL, NULL);
	h->read = 0;
	h->looked = false;
}

static void event(void)
{
	struct host *h = &w.host[draw(HOSTS)];
	int k = (int)draw(KEYS);

	switch (draw(10)) {
	case 0:
		ban(h, k);
		break;
	case 1:
		lift(h, k);
		break;
	case 2:
	case 3:
		look_at_all(h);
		break;
	case 4:
		if (h->s.whole)
			tell(h, draw(FATES));
		break;
	case 5:
		read_store(h);
		take_all(h);
		break;
	case 6:
		write_late(h);
		break;
	case 7:
		now += draw(4) * S;
		expire();
		break;
	case 8:
		another_leader();
		break;
	default:
		if (draw(10))
			break;
		begin_anew(h, draw(2));
		break;
	}
}

/*
 * Nothing happens any more: every host but one that is away looks, reads and tells, until there is
 * nothing left.
 */
static void settle(const struct host *away)
{
	for (int h = 0; h < HOSTS; h++)
		write_late(&w.host[h]);
	for (int round = 0; round < 12; round++)
		for (int i = 0; i < HOSTS; i++) {
			struct host *h = &w.host[i];

			if (h == away)
				continue;
			look_at_all(h);
			look_at_all(h);
			read_store(h);
			take_all(h);
			tell(h, DONE);
			read_store(h);
			take_all(h);
		}
}

static void agrees(int run, int i, int k, uint64_t end_ns)
{
	const struct host *h = &w.host[i];
	struct shared_value value;
	uint64_t here_ns = seen(h, k, &value);

	if ((here_ns < end_ns && end_ns - here_ns > SHARED_SLACK_NS) ||
	    (here_ns > end_ns && here_ns - end_ns > SHARED_SLACK_NS))
		fail_msg("run %d: host %d has %s for %lld s, the store for %lld s", run, i,
			 key_of[k], (long long)(here_ns - now) / (long long)S,
			 (long long)(end_ns - now) / (long long)S);
	if (strcmp(value.text, w.word[k].said.value.text) != 0 ||
	    (value.by == SHARED_BY_HAND) != (w.word[k].said.value.by == SHARED_BY_HAND))
		fail_msg("run %d: host %d has %s with %s of %d, the store with %s of %d", run, i,
			 key_of[k], value.text, value.by, w.word[k].said.value.text,
			 w.word[k].said.value.by);
}

static void all_agree(int run)
{
	for (int k = 0; k < KEYS; k++) {
		const uint64_t left_ns = w.word[k].said.left_ns;
		uint64_t end_ns = left_ns == SHARED_NEVER ? SHARED_NEVER
				  : left_ns		  ? w.word[k].at_ns + left_ns
							  : 0;

		if (end_ns <= now + SHARED_SLACK_NS + SHARED_LEAST_NS)
			continue;
		for (int h = 0; h < HOSTS; h++)
			agrees(run, h, k, end_ns);
		assert_true(k >= VALUED || end_ns <= w.longest_ns[k] + SHARED_SLACK_NS);
	}
	for (int k = 0; k < KEYS; k++)
		for (int h = 0; h < HOSTS && !w.word[k].said.left_ns; h++)
			if (end_of(&w.host[h], k) > now + SHARED_SLACK_NS + SHARED_LEAST_NS)
				fail_msg("run %d: host %d has %s, which the store has not", run, h,
					 key_of[k]);
}

static void begin(int run)
{
	for (int h = 0; h < HOSTS; h++)
		shared_free(&w.host[h].s);
	memset(&w, 0, sizeof(w));
	w.revision = 1;
	state = 0x9e3779b97f4a7c15ull * (run + 1);
	now = BEGUN;
}

static void test_all_come_to_the_same(void **unused)
{
	size_t taken = 0;

	(void)unused;
	for (int run = 0; run < RUNS; run++) {
		begin(run);
		for (int i = 0; i < EVENTS; i++)
			event();
		settle(NULL);
		all_agree(run);
		taken += w.host[0].s.count.taken;
	}
	assert_true(taken > RUNS);
	begin(0);
}

static void run_and_settle(int run)
{
	begin(run);
	for (int i = 0; i < EVENTS; i++)
		event();
	settle(NULL);
}

/* After any run, what one host lifts once all have settled is nowhere. */
static void test_what_is_lifted_is_nowhere(void **unused)
{
	int lifted = 0;

	(void)unused;
	for (int run = 0; run < RUNS; run++) {
		run_and_settle(run);
		for (int k = 0; k < KEYS; k++) {
			struct host *h = &w.host[draw(HOSTS)];

			lifted += end_of(h, k) != 0;
			lift(h, k);
			settle(NULL);
			for (int i = 0; i < HOSTS; i++)
				if (end_of(&w.host[i], k) > now + SHARED_SLACK_NS + SHARED_LEAST_NS)
					fail_msg("run %d: host %d has %s again", run, i, key_of[k]);
		}
	}
	assert_true(lifted > RUNS);
	begin(0);
}

/*
 * What was lifted while a host was away is made again for a short time, and then longer by another
 * host; the host that was away begins anew, while that runs or after its end. It has what it had
 * before nowhere, whichever of the others goes on.
 */
static void test_what_was_lifted_stays_so(void **unused)
{
	(void)unused;
	for (int run = 0; run < RUNS; run++) {
		struct host *away = &w.host[draw(HOSTS)], *first, *second;
		uint64_t end_ns;

		begin(run);
		first = &w.host[(away - w.host + 1) % HOSTS];
		second = &w.host[(away - w.host + 2) % HOSTS];
		away->table[0] = now + 3000 * S;
		settle(NULL);
		lift(first, 0);
		settle(away);
		now += (1 + draw(100)) * S;
		first->table[0] = now + (10 + draw(50)) * S;
		settle(away);
		end_ns = second->table[0] += draw(100) * S;
		settle(away);
		now += draw(300) * S;
		expire();
		begin_anew(away, true);
		settle(draw(2) ? first : second);
		if (away->table[0] > (end_ns > now ? end_ns : now) + SHARED_SLACK_NS)
			fail_msg("run %d: what was lifted is there again, for %lld s", run,
				 (long long)(away->table[0] - now) / (long long)S);
	}
	begin(0);
}

/* And what one host makes anew after that is everywhere, though another policy has just come. */
static void test_what_is_made_again_is_everywhere(void **unused)
{
	(void)unused;
	for (int run = 0; run < RUNS; run++) {
		run_and_settle(run);
		for (int k = 0; k < VALUED; k++) {
			struct host *h = &w.host[draw(HOSTS)];

			lift(h, k);
			settle(NULL);
			if (run % 2)
				begin_anew(h, false);
			if (run % 4 == 3)
				look_at_all(h);
			h->table[k] = now + 60 * S;
			settle(NULL);
			for (int i = 0; i < HOSTS; i++)
				if (end_of(&w.host[i], k) < now + 60 * S - SHARED_SLACK_NS)
					fail_msg("run %d: host %d has not %s", run, i, key_of[k]);
		}
	}
	begin(0);
}

/* Nothing comes of what is over, of what nobody knows, nor of a key that has no room. */
static void test_what_is_of_no_account(void **unused)
{
	char far[SHARED_KEY + 1] = "";
	struct shared_batch b;
	struct shared s;
	uint64_t lacked = 0;

	(void)unused;
	read_nothing(&s);
	look(&s, "k", now);
	look(&s, "k", now + SHARED_LEAST_NS - 1); /* it would be over when others hear of it */
	shared_absent(&s, "k", now);
	shared_barred(&s, "k");
	assert_int_equal(s.n, 0);
	memset(far, 'x', sizeof(far) - 1);
	look(&s, far, now + S);
	assert_int_equal(s.n, 0);
	shared_counted(&s, &lacked);
	assert_int_equal(s.count.left_out, 1);
	look(&s, "k", now + (SHARED_NEVER - now) / 2); /* three centuries */
	b = batch_of(&s);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.ttl_s, UINT32_MAX);
	shared_told(&s, &b, 7);
	shared_barred(&s, "k"); /* it has been told */
	assert_int_equal(s.count.left_out, 1);
	shared_there(&s, "k", WORD(5 * S), 8, now);
	now += 6 * S; /* it ended there, and nobody lifted it */
	shared_list(&s);
	shared_listed(&s, now);
	assert_int_equal(s.at[0].todo, SHARED_TAKE);
	assert_int_equal(s.at[0].there_ns, now - S);
	shared_free(&s);
}

/* Strangers choose their addresses, and not the places where these come to lie. */
static void test_each_has_its_secret(void **unused)
{
	struct shared a, b;

	(void)unused;
	read_nothing(&a);
	read_nothing(&b);
	look(&a, "x", now + S);
	look(&b, "x", now + S);
	assert_memory_not_equal(&a.keyed, &b.keyed, sizeof(a.keyed));
	shared_free(&a);
	no_secret = true;
	read_nothing(&a);
	shared_there(&a, "x", WORD(S), 1, now);
	assert_true(a.starved && !a.n);
	no_secret = false;
	shared_there(&a, "x", WORD(S), 1, now);
	assert_true(!a.starved && a.n == 1);
	shared_free(&a);
	shared_free(&b);
}

/* A store may have keys of any length. */
static void test_a_key_that_is_too_long(void **unused)
{
	char key[4 * SHARED_KEY];
	struct shared s;

	(void)unused;
	read_nothing(&s);
	look(&s, "x", now + S);
	for (size_t len = SHARED_KEY - 1; len < sizeof(key); len++) {
		memset(key, 'k', len);
		key[len] = 0;
		shared_there(&s, key, WORD(S), 1, now);
		assert_int_equal(shared_knows(&s, key, 1), len < SHARED_KEY);
		shared_absent(&s, key, now);
		shared_barred(&s, key);
	}
	assert_int_equal(s.n, 2);
	shared_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_has_its_secret),
	    cmocka_unit_test(test_a_key_that_is_too_long),
	    cmocka_unit_test(test_a_ban_is_told_and_its_lifting),
	    cmocka_unit_test(test_nothing_is_told_before_all_was_read),
	    cmocka_unit_test(test_what_a_trial_brings_is_not_told),
	    cmocka_unit_test(test_a_change_here_before_a_word_is_taken),
	    cmocka_unit_test(test_what_is_beneath_a_word_is_taken_over),
	    cmocka_unit_test(test_an_end_lifts_no_later_word),
	    cmocka_unit_test(test_what_follows_a_lifting_for_long_says_so),
	    cmocka_unit_test(test_what_ends_by_itself_is_not_lifted),
	    cmocka_unit_test(test_what_waits_is_not_said_otherwise),
	    cmocka_unit_test(test_a_shorter_end_is_told),
	    cmocka_unit_test(test_a_shorter_end_that_is_far),
	    cmocka_unit_test(test_a_lifting_is_heard_through_what_follows),
	    cmocka_unit_test(test_what_is_made_after_a_lifting_that_was_read),
	    cmocka_unit_test(test_what_is_made_after_its_own_lifting),
	    cmocka_unit_test(test_what_is_made_shorter_after_a_word_that_was_read),
	    cmocka_unit_test(test_a_value_that_was_not_heard),
	    cmocka_unit_test(test_what_had_no_room_counts_as_unread),
	    cmocka_unit_test(test_made_again_before_another_policy),
	    cmocka_unit_test(test_what_was_not_taken_counts_as_unread),
	    cmocka_unit_test(test_another_host_follows_what_follows),
	    cmocka_unit_test(test_who_was_away_takes_what_follows),
	    cmocka_unit_test(test_an_end_lifts_nothing_new),
	    cmocka_unit_test(test_an_end_is_not_heard_of),
	    cmocka_unit_test(test_what_a_store_keeps_beyond_its_end_is_lifted),
	    cmocka_unit_test(test_what_goes_on_is_not_lifted),
	    cmocka_unit_test(test_one_without_an_end),
	    cmocka_unit_test(test_the_longer_end_of_two_is_told),
	    cmocka_unit_test(test_an_end_that_creeps_is_told),
	    cmocka_unit_test(test_what_is_in_doubt_is_lifted_all_the_same),
	    cmocka_unit_test(test_what_is_not_listed_was_lifted),
	    cmocka_unit_test(test_no_room_here_is_counted_and_no_lifting),
	    cmocka_unit_test(test_no_room_here_is_no_room_for_ever),
	    cmocka_unit_test(test_the_number_a_second_is_bounded),
	    cmocka_unit_test(test_each_has_its_turn),
	    cmocka_unit_test(test_more_than_are_known_are_counted),
	    cmocka_unit_test(test_the_same_as_at_the_last_look),
	    cmocka_unit_test(test_a_value_is_told_and_its_change),
	    cmocka_unit_test(test_what_a_policy_brings),
	    cmocka_unit_test(test_who_begins_compares),
	    cmocka_unit_test(test_of_two_the_same_counts_in_either_order),
	    cmocka_unit_test(test_what_is_barred_is_told_no_more),
	    cmocka_unit_test(test_what_is_of_no_account),
	    cmocka_unit_test(test_all_come_to_the_same),
	    cmocka_unit_test(test_what_is_lifted_is_nowhere),
	    cmocka_unit_test(test_what_was_lifted_stays_so),
	    cmocka_unit_test(test_what_is_made_again_is_everywhere),
	};

	return cmocka_run_group_tests_name("shared", tests, NULL, NULL);
}
