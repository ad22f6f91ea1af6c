/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Items that a fleet shares: what the operator of a host did last is undone by nothing that was
 * before it, though the host hears of that later. What was before are words of its own that it has
 * not read yet, or to which it got no answer, and what others said.
 *
 * Each way that a fault took, and then an operator at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/shared.h"

#define S      1000000000ull
#define BEGUN  (1000 * S)
#define RUNS   20000u
#define EVENTS 60

static struct shared host;
static struct shared_batch batch;
static uint64_t now;

/* --- one way at a time --------------------------------------------------------------------------
 */

static const struct shared_word lifted = {.left_ns = 0};

/* A host that has read a store in which nothing is. */
static int begin(void **unused)
{
	(void)unused;
	now = BEGUN;
	shared_asked(&host, 6);
	shared_list(&host);
	shared_listed(&host, now);
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	shared_free(&host);
	return 0;
}

/* until_ns 0: it is not there */
static void look(const char *text, uint64_t until_ns)
{
	struct shared_value value = {.by = text ? SHARED_BY_HAND : SHARED_PLAIN};

	snprintf(value.text, sizeof(value.text), "%s", text ? text : "");
	if (until_ns)
		shared_here(&host, "k", text ? &value : NULL, until_ns, now);
	shared_looked(&host, now);
	now += S / 5;
}

static void lift(void)
{
	look(NULL, 0);
	look(NULL, 0); /* one look may miss it */
}

static void tell(uint64_t revision)
{
	shared_batch(&host, now, &batch);
	assert_int_equal(batch.n, 1);
	shared_told(&host, &batch, revision);
}

/* ... and it had no answer. What it says. */
static struct shared_word tell_in_vain(void)
{
	shared_batch(&host, now, &batch);
	assert_int_equal(batch.n, 1);
	shared_lost(&host, &batch);
	return batch.at[0].word;
}

static void hear(const struct shared_word *word, uint64_t revision)
{
	shared_there(&host, "k", word, revision, now);
}

static void read_one(const struct shared_word *word, uint64_t revision)
{
	shared_asked(&host, revision);
	hear(word, revision);
}

static void read_all(const struct shared_word *word, uint64_t revision)
{
	shared_asked(&host, revision);
	shared_list(&host);
	hear(word, revision);
	shared_listed(&host, now);
}

/* As exchange.c keeps them of sets, which a policy brings anew. */
static bool keeps(const struct shared_item *item, void *arg)
{
	const struct shared *s = arg;
	bool tells = item->todo == SHARED_TELL;

	return (tells && (!item->here_ns || (!item->begun && item->here.by == SHARED_BY_HAND))) ||
	       (item->lifted && !item->here_ns && item->revision > s->known);
}

/* Another policy, with which the element was there. */
static void policy(const char *text, uint64_t until_ns)
{
	shared_begin(&host, keeps, &host);
	host.found = SHARED_STAYS;
	look(text, until_ns);
	host.found = SHARED_MADE;
}

/* Nothing is taken, and what is here is told. */
static void assert_tells(uint64_t left_ns, uint64_t follows)
{
	size_t i = 0;

	assert_null(shared_take(&host, &i));
	shared_batch(&host, now, &batch);
	assert_int_equal(batch.n, 1);
	assert_int_equal(batch.at[0].word.left_ns, left_ns);
	assert_int_equal(batch.at[0].follows, follows);
}

static void test_lifted_by_two_and_made_again(void **unused)
{
	(void)unused;
	look(NULL, now + 60 * S);
	tell(7);
	shared_asked(&host, 7);
	lift();
	hear(&lifted, 8); /* this host's own is refused */
	look(NULL, 0);
	look(NULL, now + 600 * S);
	read_one(&lifted, 8);
	assert_tells(600 * S - S / 5, 8);
}

static void test_a_lifting_is_taken_and_it_is_made_again(void **unused)
{
	size_t i = 0;

	(void)unused;
	look(NULL, now + 60 * S);
	tell(7);
	shared_asked(&host, 7);
	look(NULL, now + 90 * S);
	hear(&lifted, 8); /* as that is refused */
	shared_taken(&host, shared_take(&host, &i), true);
	look(NULL, 0);
	look(NULL, now + 600 * S);
	read_one(&lifted, 8);
	assert_tells(600 * S - S / 5, 8);
}

/* A word that follows the same keeps a late write from being done. */
static void test_a_lifting_in_doubt_and_made_again_alike(void **unused)
{
	(void)unused;
	look(NULL, SHARED_NEVER);
	tell(7);
	shared_asked(&host, 7);
	lift();
	(void)tell_in_vain();
	look(NULL, SHARED_NEVER);
	assert_tells(SHARED_NEVER, 7);
	read_one(&lifted, 8);
	assert_tells(SHARED_NEVER, 8);
}

static void test_a_lifting_in_doubt_that_was_done(void **unused)
{
	(void)unused;
	look(NULL, now + 60 * S);
	tell(7);
	shared_asked(&host, 7);
	lift();
	(void)tell_in_vain();
	look(NULL, now + 600 * S);
	read_one(&lifted, 8);
	assert_tells(600 * S - S / 5, 8);
}

static void test_a_value_in_doubt_that_was_done(void **unused)
{
	struct shared_word was;

	(void)unused;
	look("B", SHARED_NEVER);
	was = tell_in_vain();
	look("C", SHARED_NEVER);
	read_one(&was, 8);
	assert_tells(SHARED_NEVER, 8);
	assert_string_equal(batch.at[0].word.value.text, "C");
}

static void test_an_end_in_doubt_that_was_made_shorter(void **unused)
{
	struct shared_word was;

	(void)unused;
	look("B", SHARED_NEVER);
	was = tell_in_vain();
	look("B", now + 60 * S);
	read_one(&was, 8);
	assert_tells(60 * S - S / 5, 8);
}

/* What is alike need not be told, and what another said instead counts. */
static void test_a_word_in_doubt_that_was_done(void **unused)
{
	struct shared_word was;
	size_t i = 0;

	(void)unused;
	look("B", SHARED_NEVER);
	was = tell_in_vain();
	read_one(&was, 8);
	shared_batch(&host, now, &batch);
	assert_int_equal(batch.n, 0);
	assert_null(shared_take(&host, &i));
	look("C", now + 60 * S);
	(void)tell_in_vain();
	snprintf(was.value.text, sizeof(was.value.text), "A");
	read_one(&was, 9);
	i = 0;
	assert_non_null(shared_take(&host, &i));
}

static void test_lifted_then_a_policy_and_made_again(void **unused)
{
	(void)unused;
	look("B", SHARED_NEVER);
	tell(7);
	shared_asked(&host, 7);
	lift();
	tell(8);
	policy("B", SHARED_NEVER);
	read_all(&lifted, 8);
	assert_tells(SHARED_NEVER, 8);
}

static void test_changed_then_a_policy(void **unused)
{
	struct shared_word was;

	(void)unused;
	look("B", SHARED_NEVER);
	tell(7);
	was = batch.at[0].word;
	shared_asked(&host, 7);
	look("C", SHARED_NEVER);
	policy("C", SHARED_NEVER);
	read_all(&was, 7);
	assert_tells(SHARED_NEVER, 7);
	assert_string_equal(batch.at[0].word.value.text, "C");
}

static void test_a_policy_and_taken_out_before_all_is_read(void **unused)
{
	struct shared_word was;

	(void)unused;
	look("B", SHARED_NEVER);
	tell(7);
	was = batch.at[0].word;
	shared_asked(&host, 7);
	policy("B", SHARED_NEVER);
	lift();
	look(NULL, 0);
	read_all(&was, 7);
	assert_tells(0, 7);
}

/* --- an operator at random ----------------------------------------------------------------------
 */

enum fate { DONE, LOST, DONE_AND_LOST, FATES };

static struct {
	struct shared_word said;
	uint64_t revision, at_ns, gone_ns;
} store; /* its word on the item */

static uint64_t here_ns, seed, read_to;
static bool undone, in_doubt;

static uint64_t draw(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % n;
}

static void pass(uint64_t ns)
{
	now += ns;
	if (store.gone_ns <= now)
		memset(&store, 0, sizeof(store));
	if (here_ns <= now)
		here_ns = 0;
}

static void look_at_it(void)
{
	if (here_ns)
		shared_here(&host, "k", NULL, here_ns, now);
	shared_looked(&host, now);
}

static struct shared_word word_now(void)
{
	struct shared_word word = store.said;

	shared_age(&word, now - store.at_ns);
	return word;
}

/* No other host says anything: whatever is taken undoes what was done here, but for a longer end.
 */
static void take(void)
{
	struct shared_item *item;
	size_t i = 0;

	while ((item = shared_take(&host, &i))) {
		undone |= !item->here_ns || item->there_ns < item->here_ns;
		here_ns = item->there_ns;
		shared_taken(&host, item, true);
	}
}

static void read_store(uint64_t revision)
{
	struct shared_word word = word_now();

	shared_asked(&host, revision);
	if (store.revision > read_to)
		shared_there(&host, "k", &word, store.revision, now);
	read_to = revision;
	in_doubt = false;
	take();
}

/* After one in doubt the store is read first: of two in doubt the first one is not known again. */
static void tell_store(uint64_t *revision, enum fate fate)
{
	struct shared_word word;

	if (in_doubt)
		return;
	shared_batch(&host, now, &batch);
	if (!batch.n)
		return;
	word = word_now();
	if (fate == LOST) {
		shared_lost(&host, &batch);
	} else if (batch.at[0].follows != store.revision) {
		if (store.revision)
			shared_there(&host, "k", &word, store.revision, now);
		else
			shared_absent(&host, "k", now);
		take();
	} else {
		store.said = batch.at[0].word;
		store.revision = ++*revision;
		store.at_ns = now;
		store.gone_ns = batch.ttl_s ? now + batch.ttl_s * S : SHARED_NEVER;
		if (fate == DONE)
			shared_told(&host, &batch, store.revision);
		else
			shared_lost(&host, &batch);
	}
	in_doubt = fate != DONE;
}

static void do_something(uint64_t *revision)
{
	switch (draw(5)) {
	case 0: /* or it is taken out */
		here_ns = draw(2) ? 0 : draw(4) ? now + (20 + draw(60)) * S : SHARED_NEVER;
		look_at_it();
		look_at_it();
		break;
	case 1:
	case 2:
		tell_store(revision, (enum fate)draw(FATES));
		break;
	case 3:
		read_store(*revision);
		break;
	default:
		pass(draw(8) ? S / 5 : draw(20) * S);
	}
}

static void test_an_operator_at_random(void **unused)
{
	(void)unused;
	for (uint32_t run = 0; run < RUNS && !undone; run++) {
		uint64_t revision = 6;

		memset(&store, 0, sizeof(store));
		seed = 0x9e3779b97f4a7c15 * (run + 1);
		here_ns = 0;
		read_to = 6;
		in_doubt = false;
		begin(NULL);
		for (int i = 0; i < EVENTS && !undone; i++)
			do_something(&revision);
		end(NULL);
		if (undone)
			fail_msg("run %u: what was done last is undone", run);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_lifted_by_two_and_made_again),
	    CASE(test_a_lifting_is_taken_and_it_is_made_again),
	    CASE(test_a_lifting_in_doubt_and_made_again_alike),
	    CASE(test_a_lifting_in_doubt_that_was_done),
	    CASE(test_a_value_in_doubt_that_was_done),
	    CASE(test_an_end_in_doubt_that_was_made_shorter),
	    CASE(test_a_word_in_doubt_that_was_done),
	    CASE(test_lifted_then_a_policy_and_made_again),
	    CASE(test_changed_then_a_policy),
	    CASE(test_a_policy_and_taken_out_before_all_is_read),
	    cmocka_unit_test(test_an_operator_at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
