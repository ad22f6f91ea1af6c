/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Items that hosts share, on their way to a store and back, where the store refuses a batch, does
 * not answer, or memory runs out: what this host has to say is said in the end, once, and what
 * another said meanwhile counts. In place of etcd is a store of one key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/codec.h"
#include "fleet/exchange.h"
#include "fleet/json.h"
#include "starved.h"

#define S   1000000000ull
#define KEY "ban/someone"

/* The library's does not ask this program's malloc(). */
char *strdup(const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = malloc(n);

	return copy ? memcpy(copy, text, n) : NULL;
}

static struct {
	char *value; /* NULL: the key is not there */
	uint64_t revision, lease;
} lies;
static uint64_t revision, now, age_s;
static enum store_result lists, puts_result, ages; /* STORE_DONE: as it should be */
static unsigned int asked;			   /* ages */
static uint64_t call_ns;			   /* that each of those takes */
static uint32_t granted_s;			   /* by the last write that was asked for */
static bool odd_one, elsewhere;
static bool doubtful; /* a write is done, and has no answer */
static size_t beyond; /* keys that go on behind a byte of 0 follow the one, and say it is lifted */
static size_t crowd;  /* so many other keys are there, each with a lease, but that two have one */
static struct exchange x;

static uint64_t clock_ns(void)
{
	return now;
}

static void put(const char *value, uint64_t lease)
{
	free(lies.value);
	lies.value = value ? strdup(value) : NULL;
	lies.revision = ++revision;
	lies.lease = lease;
}

static void other_writes(const struct shared_word *word, uint64_t lease)
{
	char *text = fleet_write_item(word);

	put(text, lease);
	free(text);
}

/* What another host has said of it: left_ns 0, it was lifted. */
static void other_says(uint64_t left_ns, uint64_t lease)
{
	other_writes(&(struct shared_word){.left_ns = left_ns}, lease);
}

/* So many keys of a list come at once; 0: all. The store as it was at the first page is kept. */
static size_t page_size;
static unsigned int pages;
static bool compacted;	  /* and that is forgotten */
static uint64_t wrong_by; /* how much too high the revision of a list is */
static uint64_t still_ns; /* this host stands still while the store answers */
static struct {
	char *value;
	uint64_t revision, lies_revision, lease;
} then;

static void keep(void)
{
	free(then.value);
	then.value = lies.value ? strdup(lies.value) : NULL;
	then.revision = revision;
	then.lies_revision = lies.revision;
	then.lease = lies.lease;
}

#define KEY_MAX 64

/* Key i of len bytes; the first has those with a byte of 0 behind it. */
static size_t key_of(size_t i, char key[KEY_MAX])
{
	memset(key, 0, KEY_MAX);
	if (!i || i > crowd)
		snprintf(key, KEY_MAX, "%s", elsewhere ? "x" : EXCHANGE_ITEMS KEY);
	else
		snprintf(key, KEY_MAX, EXCHANGE_ITEMS KEY "-%04zu", i - 1);
	if (i <= crowd)
		return strlen(key);
	snprintf(key + strlen(key) + 1, KEY_MAX / 2, "%04zu", i);
	return strlen(key) + 5;
}

static void add(struct store_snapshot *to, const char *key, size_t len, uint64_t written,
		uint64_t lease)
{
	const char *value =
	    strlen(key) < len ? "{\"is\":\"item\",\"v\":1,\"left_ms\":0}" : then.value;
	struct store_entry *entry = &to->at[to->n++];

	*entry = (struct store_entry){malloc(len + 1), len,	strdup(value), strlen(value),
				      written,	       written, lease};
	memcpy(entry->key, key, len + 1);
}

/* As a store sorts keys. */
static bool is_behind(const char *key, size_t len, const char *other, size_t other_len)
{
	int is = memcmp(key, other, len < other_len ? len : other_len);

	return is > 0 || (!is && len > other_len);
}

/* What was written after that revision, from behind that key on. */
static void answer(const struct store_list *list, struct store_snapshot *to)
{
	size_t most = page_size ? page_size : 1 + crowd + beyond;

	*to = (struct store_snapshot){.at = calloc(1 + crowd + beyond, sizeof(*to->at)),
				      .revision = then.revision};
	if (!then.value || then.lies_revision <= list->after)
		return;
	for (size_t k = 0; k <= crowd + beyond; k++) {
		size_t i = !k ? 0 : k <= beyond ? crowd + k : k - beyond; /* in their order */
		char key[KEY_MAX];
		size_t len = key_of(i, key);

		if (list->behind && !is_behind(key, len, list->behind, list->behind_len))
			continue;
		to->more = to->n == most;
		if (to->more)
			return;
		add(to, key, len, i ? then.revision : then.lies_revision,
		    i ? 9 + (i > 1 ? i - 1 : 1) : then.lease);
	}
}

static enum store_result list_page(struct store *s, const struct store_list *list,
				   struct store_snapshot *to)
{
	bool was_on = memory.on;

	(void)s;
	pages++;
	assert_string_equal(list->under, EXCHANGE_ITEMS);
	assert_int_equal(list->at != 0, list->behind != NULL);
	if (lists != STORE_DONE || (compacted && list->at) || (list->at && list->at > revision))
		return STORE_UNKNOWN;
	memory.on = false;
	if (!list->at)
		keep();
	assert_true(!list->at || list->at == then.revision);
	answer(list, to);
	to->revision += wrong_by;
	now += still_ns;
	memory.on = was_on;
	return STORE_DONE;
}

static enum store_result put_keys(struct store *s, const struct store_put *puts, size_t n,
				  uint32_t ttl_s, const char *guard, uint64_t created, uint64_t *at,
				  struct store_snapshot *to)
{
	(void)s;
	granted_s = ttl_s;
	assert_int_equal(n, 1);
	assert_string_equal(puts[0].key, EXCHANGE_ITEMS KEY);
	assert_string_equal(guard, "guard");
	memset(to, 0, sizeof(*to));
	if (puts_result != STORE_DONE)
		return puts_result;
	if (created != 1 || puts[0].follows != (lies.value ? lies.revision : 0)) {
		bool was_on = memory.on;

		memory.on = false;
		keep();
		answer(&(struct store_list){0}, to);
		memory.on = was_on;
		return STORE_REFUSED;
	}
	put(puts[0].value, 9);
	*at = revision;
	return doubtful ? STORE_UNKNOWN : STORE_DONE;
}

static enum store_result age(struct store *s, uint64_t lease, uint64_t *age_ns, uint64_t *left_ns)
{
	(void)s;
	assert_in_range(lease, 9, crowd < 200 ? 200 : 9 + crowd);
	asked++;
	now += call_ns;
	*age_ns = age_s == UINT64_MAX ? age_s : age_s * S;
	*left_ns = age_s == UINT64_MAX ? 0 : 3600 * S - *age_ns;
	return ages;
}

static enum exchange_is is_ours(const char *key, const struct shared_value *value, void *arg)
{
	(void)value;
	(void)arg;
	assert_memory_equal(key, KEY, strlen(KEY));
	return odd_one ? EXCHANGE_ODD_ONE : EXCHANGE_OURS;
}

static bool stay;

static bool stays(const struct shared_item *item, void *arg)
{
	(void)arg;
	assert_string_equal(item->key, KEY);
	return stay;
}

static uint64_t term;

static uint64_t term_of(const struct store *s)
{
	(void)s;
	return term;
}

static const struct store_kind small = {
    .list = list_page, .put = put_keys, .age = age, .term = term_of};

static int begin(void **unused)
{
	(void)unused;
	put(NULL, 0);
	revision = 100;
	now = 1000 * S;
	age_s = asked = crowd = beyond = call_ns = page_size = pages = 0;
	compacted = false;
	wrong_by = 0;
	lists = puts_result = ages = STORE_DONE;
	odd_one = stay = false;
	x = (struct exchange){
	    .kind = &small, .now_ns = clock_ns, .is_ours = is_ours, .stays = stays};
	json_count_failures();
	exchange_begin(&x);
	assert_true(exchange_step(&x, "guard", 1));
	assert_false(exchange_waits(&x));
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	exchange_free(&x);
	free(lies.value);
	free(then.value);
	lies.value = then.value = NULL;
	return 0;
}

static void here(uint64_t until_ns)
{
	shared_here(&x.items, KEY, NULL, until_ns, now);
	shared_looked(&x.items, now);
}

static bool step(void)
{
	return exchange_step(&x, "guard", 1);
}

/* Until all is read. Returns in how many steps. */
static unsigned int read_all(void)
{
	unsigned int steps = 0;

	while (x.stale) {
		assert_true(steps++ < 100);
		assert_true(step());
	}
	return steps;
}

/* How long the store says that it lasts; 0: it was lifted. */
static uint64_t there_s(void)
{
	struct shared_word word;

	assert_non_null(lies.value);
	assert_null(fleet_read_item(lies.value, strlen(lies.value), &word));
	return word.left_ns / S;
}

/* This host has nothing to say any more; its item is the only one. */
static struct shared_item *only(void)
{
	assert_int_equal(x.items.n, 1);
	return &x.items.at[0];
}

/* Another wrote first: of the two ends the later counts, and that is said. */
static void test_another_wrote_first(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	other_says(50 * S, 9);
	age_s = 10;
	assert_true(step());
	assert_int_equal(asked, 1);
	assert_int_equal(only()->there_ns, now + 40 * S); /* less what it is old */
	assert_int_equal(only()->todo, SHARED_TELL);
	assert_true(step());
	assert_int_equal(there_s(), 100);
	assert_false(exchange_waits(&x));
}

static void test_another_wrote_a_later_end(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	other_says(500 * S, 0);
	assert_true(step());
	assert_int_equal(only()->todo, SHARED_TAKE);
	assert_int_equal(only()->there_ns, now + 500 * S);
	assert_int_equal(there_s(), 500);
}

/* What it followed is gone: it follows nothing then. */
static void test_it_is_gone(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	assert_true(step());
	here(now + 200 * S);
	put(NULL, 0);
	assert_true(step());
	assert_int_equal(only()->todo, SHARED_TELL);
	assert_true(step());
	assert_int_equal(there_s(), 200);
}

/* In its place lies what this host cannot read: it is passed over, told, and not overwritten. */
static void test_no_item_in_its_place(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	put("what?", 0);
	assert_true(step());
	assert_non_null(strstr(x.odd, "it is no item"));
	assert_int_equal(x.items.count.left_out, 1);
	assert_false(exchange_waits(&x));
	assert_string_equal(lies.value, "what?");
}

static void test_one_that_is_not_as_ours(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	other_says(50 * S, 0);
	odd_one = true;
	assert_true(step());
	assert_non_null(strstr(x.odd, "the hosts' policies are the same"));
	assert_int_equal(x.items.count.left_out, 1);
}

/*
 * What was lifted, and forgotten with that, is made again: it follows the lifting, which had been
 * read by then. One that comes from another meanwhile counts.
 */
static void test_what_was_lifted_is_made_again(void **unused)
{
	(void)unused;
	for (int meanwhile = 0; meanwhile < 2; meanwhile++) {
		here(now + 100 * S);
		assert_true(step());
		shared_looked(&x.items, now);
		shared_looked(&x.items, now);
		assert_true(step());
		assert_int_equal(there_s(), 0);
		x.stale = true;
		read_all();
		shared_looked(&x.items, now);
		assert_int_equal(x.items.n, 0);
		if (meanwhile)
			other_says(0, 0);
		here(now + 100 * S);
		assert_true(step());
		assert_int_equal(only()->todo, meanwhile ? SHARED_TAKE : SHARED_TELL);
		if (meanwhile)
			continue;
		assert_true(step());
		assert_int_equal(there_s(), 100);
		assert_false(exchange_waits(&x));
	}
}

/*
 * So it is where another policy came just before, and all is read again, which takes long: how old
 * each lease is has to be asked. Nor does what is made while an agent reads for the first time give
 * way to what had been lifted before.
 */
static void test_what_was_lifted_is_made_while_all_is_read(void **unused)
{
	for (int made = 0; made < 3; made++) { /* before it is asked for, or while */
		(void)end(unused);
		(void)begin(unused);
		other_says(0, 9);
		if (made < 2) {
			x.stale = true;
			(void)read_all();
			exchange_begin(&x);
		} else {
			exchange_free(&x);
			exchange_begin(&x);
		}
		crowd = 300;
		call_ns = S / 100;
		shared_looked(&x.items, now);
		if (made) {
			assert_true(step());
			assert_true(x.stale);
		}
		here(now + 100 * S);
		(void)read_all();
		crowd = 0;
		assert_int_equal(x.items.at[0].todo, SHARED_TELL);
		assert_true(step());
		assert_in_range(there_s(), 95, 100);
	}
}

/* A page was read, and a policy comes before its words are heard: what it lifts is lifted here. */
static void test_a_policy_before_what_was_read_is_heard(void **unused)
{
	for (int shared = 0; shared < 2; shared++) {
		(void)end(unused);
		(void)begin(unused);
		if (shared) {
			here(now + 100 * S);
			assert_true(step());
			other_says(0, 9);
			x.stale = x.away = true;
			ages = STORE_UNKNOWN;
			(void)step();
			ages = STORE_DONE;
		} else {
			other_says(0, 9);
			exchange_free(&x);
			exchange_begin(&x);
			crowd = 300;
			call_ns = S / 100;
			here(now + 100 * S);
			assert_true(step());
			assert_true(x.stale);
		}
		exchange_begin(&x);
		x.items.found = SHARED_STAYS;
		here(now + 100 * S);
		(void)read_all();
		crowd = 0;
		assert_int_equal(x.items.n, 1);
		assert_int_equal(x.items.at[0].todo, SHARED_TAKE);
	}
}

/* As long as a word is to be heard, so is what follows it. */
static void test_lies_as_long_as_what_it_follows(void **unused)
{
	static const struct {
		struct shared_word word; /* before it was made here */
		uint32_t least_s, most_s;
	} row[] = {{{.left_ns = 0}, 3560, 3561},
		   {{.left_ns = 10 * S, .lies_ns = 3600 * S}, 3560, 3561},
		   {{.left_ns = 10 * S}, 100, 103}};

	(void)unused;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		end(unused);
		begin(unused);
		other_writes(&row[i].word, 9);
		x.stale = true;
		(void)read_all();
		if (row[i].word.left_ns)
			shared_taken(&x.items, only(), true);
		now += 40 * S;
		age_s = 40;
		shared_looked(&x.items, now);
		here(now + 100 * S);
		assert_true(step());
		assert_int_equal(only()->todo, SHARED_TELL);
		assert_true(step());
		assert_int_equal(there_s(), 100);
		assert_in_range(granted_s, row[i].least_s, row[i].most_s);
	}
}

/*
 * Another policy: what was lifted just before is told yet. What is not there any more is lifted
 * only if such things stay where they lie.
 */
static void test_another_policy(void **unused)
{
	static const struct {
		bool before, stays, theirs, lifted;
	} row[] = {{true, false, false, true},
		   {false, true, false, true},
		   {false, false, false, false},
		   {false, true, true, false},
		   {true, false, true, false}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		(void)end(unused);
		(void)begin(unused);
		stay = row[i].stays;
		here(now + 100 * S);
		assert_true(step());
		for (int k = 0; k < 2 && row[i].before; k++)
			shared_looked(&x.items, now);
		odd_one = row[i].theirs;
		exchange_begin(&x);
		odd_one = false;
		(void)read_all();
		for (int k = 0; k < 2; k++)
			shared_looked(&x.items, now);
		assert_true(step());
		assert_int_equal(there_s(), row[i].lifted ? 0 : 100);
	}
}

/* And what was not told before that is told after it, if such things stay where they lie. */
static void test_another_policy_before_it_was_told(void **unused)
{
	for (int stays_there = 0; stays_there < 2; stays_there++) {
		(void)end(unused);
		(void)begin(unused);
		stay = stays_there;
		here(now + 100 * S);
		assert_int_equal(only()->todo, SHARED_TELL);
		exchange_begin(&x);
		(void)read_all();
		assert_true(step());
		if (stays_there)
			assert_int_equal(there_s(), 100);
		else
			assert_null(lies.value);
	}
}

/* It is told, and that is read. */
static void tell_and_read(uint64_t until_ns)
{
	here(until_ns);
	assert_true(step());
	x.stale = true;
	(void)read_all();
}

/* Another policy, whose first look finds it so. */
static void follow_with(uint64_t until_ns)
{
	exchange_begin(&x);
	x.items.first = true;
	here(until_ns);
	x.items.first = false;
}

/* A write has no answer: it was done, or it was not. */
static void write_in_doubt(bool done)
{
	char *before = lies.value ? strdup(lies.value) : NULL;
	uint64_t was = lies.revision;

	doubtful = true;
	assert_false(step());
	doubtful = false;
	assert_true(lies.revision > was);
	if (!done) {
		free(lies.value);
		lies.value = before;
		lies.revision = was;
	} else {
		free(before);
	}
}

/*
 * What was made shorter while the store did not answer is so for all, though another policy came
 * before the store was back, whose look finds it anew. What was tried of it without an answer was
 * not the last; what another said meanwhile counts.
 */
static void test_made_shorter_before_another_policy(void **unused)
{
	static const struct {
		bool tried, done, meanwhile;
	} row[] = {{false, false, false},
		   {true, false, false},
		   {true, true, false},
		   {false, false, true},
		   {true, true, true}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		(void)end(unused);
		(void)begin(unused);
		tell_and_read(now + 300 * S);
		here(now + 100 * S);
		if (row[i].tried)
			write_in_doubt(row[i].done);
		here(now + 40 * S);
		if (row[i].meanwhile)
			other_says(200 * S, 9);
		follow_with(now + 40 * S);
		(void)read_all();
		assert_int_equal(only()->todo, row[i].meanwhile ? SHARED_TAKE : SHARED_TELL);
		assert_true(step());
		assert_int_equal(there_s(), row[i].meanwhile ? 200 : 40);
	}
}

/* A write that had no answer is done later, when the word before it has been read once more. */
static void test_a_write_is_done_late(void **unused)
{
	for (int policy = 0; policy < 2; policy++) {
		char *late;

		(void)end(unused);
		(void)begin(unused);
		tell_and_read(now + 300 * S);
		here(now + 100 * S);
		write_in_doubt(true);
		late = lies.value;
		lies.value = strdup(then.value);
		lies.revision = revision = then.revision;
		here(now + 40 * S);
		if (policy)
			follow_with(now + 40 * S);
		(void)read_all();
		put(late, 9);
		free(late);
		assert_true(step()); /* refused */
		assert_int_equal(only()->todo, SHARED_TELL);
		assert_true(step());
		assert_int_equal(there_s(), 40);
	}
}

/* What this host has told, and not read again, is known through policies: it was made shorter. */
static void test_told_before_other_policies(void **unused)
{
	for (int policies = 1; policies < 4; policies++) {
		(void)end(unused);
		(void)begin(unused);
		here(now + 300 * S);
		assert_true(step());
		assert_true(lies.revision > x.items.heard);
		here(now + 40 * S);
		for (int i = 0; i < policies; i++)
			follow_with(now + 40 * S);
		(void)read_all();
		assert_true(step());
		assert_int_equal(there_s(), 40);
	}
}

/* What was read of another's, and not taken yet, is none that this host has changed: it is taken.
 */
static void test_a_policy_before_it_is_taken(void **unused)
{
	for (int pages = 0; pages < 2; pages++) { /* and more of the list is not read yet */
		(void)end(unused);
		(void)begin(unused);
		tell_and_read(now + 60 * S);
		other_says(300 * S, 9);
		x.stale = true;
		crowd = pages ? 3 : 0;
		page_size = 1;
		assert_true(step());
		assert_int_equal(x.at != 0, pages);
		assert_int_equal(x.items.at[0].todo, SHARED_TAKE);
		follow_with(now + 60 * S);
		(void)read_all();
		crowd = 0;
		assert_int_equal(x.items.at[0].todo, SHARED_TAKE);
		assert_true(x.items.at[0].there_ns == now + 300 * S);
	}
}

/* What is remembered of it waits for the first look, and no longer. */
static void test_what_is_remembered_is_looked_for(void **unused)
{
	for (int found = 0; found < 2; found++) {
		(void)end(unused);
		(void)begin(unused);
		tell_and_read(now + 300 * S);
		here(now + 100 * S);
		write_in_doubt(true);
		here(now + 40 * S);
		exchange_begin(&x);
		for (int look = 0; look < 3; look++) { /* that cannot be made */
			shared_same(&x.items, "ban/");
			shared_looked(&x.items, now);
			assert_int_equal(x.items.n, 1);
		}
		x.items.first = true;
		if (found)
			here(now + 40 * S);
		else
			shared_looked(&x.items, now);
		x.items.first = false;
		assert_int_equal(x.items.n, found);
		(void)read_all();
		assert_int_equal(only()->todo, found ? SHARED_TELL : SHARED_TAKE);
		if (!found)
			continue;
		assert_true(step());
		assert_int_equal(there_s(), 40);
	}
}

/*
 * While this host reads for the first time, its packets ban for a minute whom another has banned
 * for an hour: that was made in ignorance of the other, and the longer one counts.
 */
static void test_made_in_ignorance_while_all_is_read(void **unused)
{
	(void)unused;
	exchange_free(&x);
	exchange_begin(&x);
	crowd = 40;
	call_ns = S / 10;
	other_says(3600 * S, 9);
	shared_looked(&x.items, now);
	assert_true(step());
	assert_true(x.stale && x.items.known > x.items.heard);
	here(now + 60 * S);
	(void)read_all();
	crowd = 0;
	assert_int_equal(x.items.at[0].todo, SHARED_TAKE);
}

/* What another lifts after the policy came is lifted, though the first look comes behind that. */
static void test_a_first_look_that_is_late(void **unused)
{
	for (int late = 0; late < 2; late++) {
		(void)end(unused);
		(void)begin(unused);
		tell_and_read(now + 300 * S);
		other_says(0, 9);
		exchange_begin(&x);
		if (late)
			(void)read_all();
		x.items.first = true;
		x.items.found = SHARED_STAYS;
		here(now + 300 * S);
		x.items.first = false;
		x.items.found = SHARED_MADE;
		(void)read_all();
		(void)step();
		assert_int_equal(only()->todo, SHARED_TAKE);
		assert_int_equal(there_s(), 0);
	}
}

/*
 * A list was asked for, and its end did not come. What another policy's look finds first was there
 * before: it gives way to what that list says.
 */
static void test_a_policy_after_a_list_without_an_end(void **unused)
{
	for (int asks = 0; asks < 2; asks++) { /* before the policy came, or after */
		(void)end(unused);
		(void)begin(unused);
		tell_and_read(now + 40 * S);
		other_says(300 * S, 9);
		x.stale = x.away = true;
		ages = STORE_UNKNOWN;
		if (asks)
			exchange_begin(&x);
		assert_false(step());
		assert_true(x.items.known > x.items.heard);
		ages = STORE_DONE;
		if (!asks)
			exchange_begin(&x);
		x.items.first = true;
		here(now + 41 * S);
		x.items.first = false;
		(void)read_all();
		assert_int_equal(only()->todo, SHARED_TAKE);
		assert_true(only()->there_ns == now + 300 * S);
	}
}

/* What the operator did is not lost with the policy, though a policy brings such things anew. */
static void test_by_hand_before_another_policy(void **unused)
{
	static const struct shared_value value = {.text = "B", .by = SHARED_BY_HAND};

	(void)end(unused);
	(void)begin(unused);
	stay = false;
	shared_here(&x.items, KEY, &value, now + 100 * S, now);
	shared_looked(&x.items, now);
	exchange_begin(&x); /* it was not told yet */
	assert_int_equal(only()->todo, SHARED_TELL);
	(void)read_all();
	assert_true(step());
	shared_looked(&x.items, now);
	shared_looked(&x.items, now);
	assert_true(step());
	assert_true(only()->lifted);
	shared_looked(&x.items, now);
	exchange_begin(&x); /* it was not read yet */
	assert_true(only()->lifted);
	(void)read_all();
	shared_looked(&x.items, now);
	assert_int_equal(x.items.n, 0);
}

/* The session has ended: nothing is as it was not, and nothing is written. */
static void test_a_session_that_ended(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	assert_true(exchange_step(&x, "guard", 2));
	assert_null(lies.value);
	assert_true(exchange_waits(&x));
	x.items.on_trial = only()->filed = true; /* the policy that brought it */
	assert_false(exchange_waits(&x));
	x.items.on_trial = false;
	assert_true(step());
	assert_int_equal(there_s(), 100);
	here(now + 200 * S); /* the same of what is there */
	assert_true(exchange_step(&x, "guard", 2));
	assert_int_equal(there_s(), 100);
	assert_int_equal(only()->todo, SHARED_TELL);
	assert_true(step());
	assert_int_equal(there_s(), 200);
}

/* No answer: all is read again, and what was not written is written then. */
static void test_no_answer(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	puts_result = STORE_UNKNOWN;
	assert_false(step());
	assert_true(only()->doubt && x.stale && x.away);
	puts_result = STORE_DONE;
	lists = STORE_UNKNOWN;
	assert_false(step());
	lists = STORE_DONE;
	assert_true(step());
	assert_true(step());
	assert_int_equal(there_s(), 100);
	assert_false(only()->doubt);
}

/* How old it is cannot be asked: it does not count as fresh. */
static void test_an_age_that_is_not_told(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	other_says(500 * S, 9);
	ages = STORE_UNKNOWN;
	assert_false(step());
	assert_int_equal(only()->there_ns, 0);
	assert_false(step()); /* nor of all that there is */
	assert_int_equal(only()->there_ns, 0);
	ages = STORE_DONE;
	age_s = 499;
	assert_true(step());
	assert_int_equal(only()->there_ns, now + S);
}

/* A word that was lifted an hour ago may be gone: all is read anew. */
static void test_after_an_hour(void **unused)
{
	(void)unused;
	here(now + 9000 * S);
	assert_true(step());
	put(NULL, 0);
	exchange_missed(&x);
	assert_true(step());
	assert_int_equal(only()->todo, SHARED_NOTHING); /* nobody said that it was lifted */
	now += 3300 * S;
	exchange_missed(&x);
	assert_true(step());
	assert_int_equal(only()->todo, SHARED_TAKE);
	assert_int_equal(only()->there_ns, 0);
}

/* Then what has ended here, and lies there yet by the lease of longer ones, does not come back. */
static void test_ended_within_the_hour(void **unused)
{
	(void)unused;
	other_says(10 * S, 9);
	x.stale = true;
	assert_true(step());
	shared_taken(&x.items, only(), true);
	age_s = 3300;
	now += age_s * S;
	shared_looked(&x.items, now);
	assert_int_equal(x.items.n, 0);
	exchange_quiet(&x, now);
	x.stale = true; /* as another item came, which was seen at once */
	assert_true(step());
	assert_int_equal(asked, 1);
	assert_int_equal(x.items.n, 0);
}

/*
 * One of 60 s that a watch sees, where this host stood still for so long before it reads, or while
 * it does: how long it lasts here, in seconds.
 */
static uint64_t lasts_s(uint64_t before_s, uint64_t within_s)
{
	end(NULL);
	begin(NULL);
	now += 600 * S;
	exchange_quiet(&x, now);
	other_says(60 * S, 9);
	age_s = before_s + within_s;
	now += before_s * S;
	still_ns = within_s * S;
	x.stale = true;
	exchange_quiet(&x, now); /* the watch saw another change */
	assert_true(step());
	still_ns = 0;
	return (only()->there_ns - now) / S;
}

/* A watch does not tell who stood still: that is known by the clock, and then it is asked. */
static void test_stood_still(void **unused)
{
	(void)unused;
	assert_int_equal(lasts_s(45, 0), 15);
	assert_int_equal(asked, 1);
	assert_int_equal(lasts_s(0, 45), 15);
	assert_int_equal(asked, 1);
	assert_int_equal(lasts_s(1, 1), 60);
	assert_int_equal(asked, 0);
}

/*
 * A watch that was heard of long ago alone proves nothing since; what was read does, however long
 * ago the watch was heard of.
 */
static void test_a_watch_that_is_silent(void **unused)
{
	uint64_t heard_ns = now;

	(void)unused;
	for (int read = 0; read < 2; read++) {
		now += 8 * S;
		if (read) {
			x.stale = true;
			(void)read_all();
		}
		exchange_quiet(&x, heard_ns);
		asked = 0;
		other_says(60 * S, 9);
		age_s = 1;
		x.stale = true;
		(void)read_all();
		assert_int_equal(asked, !read);
	}
}

/* No memory is not the store's fault, and loses nothing. */
static void test_no_memory(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	memory.on = true;
	starved_from(1, true);
	assert_false(step());
	assert_true(x.starved);
	assert_false(step()); /* it reads first */
	memory.on = false;
	assert_true(x.starved);
	(void)read_all();
	assert_false(x.starved);
	assert_true(step());
	assert_int_equal(there_s(), 100);
}

/* The store has gone back, and nothing is heard of it until the caller begins anew. */
static void goes_back(size_t n)
{
	assert_true(step());
	assert_true(x.back && x.stale);
	assert_false(x.at || x.behind || x.page.revision);
	assert_int_equal(x.items.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(x.items.at[i].todo, SHARED_NOTHING);
	exchange_free(&x);
	assert_false(x.back);
	exchange_begin(&x);
	(void)read_all();
	assert_false(x.back);
	assert_int_equal(x.revision, revision);
}

/*
 * A revision that came too high once hides nothing that is written next: neither of a page alone,
 * nor of the first of several, nor where a policy comes before the next.
 */
static void test_a_revision_that_came_too_high(void **unused)
{
	for (int i = 0; i < 3; i++) {
		(void)end(unused);
		(void)begin(unused);
		wrong_by = 50;
		crowd = i == 1 ? 3 : 0;
		page_size = i == 1 ? 2 : 0;
		other_says(100 * S, 0);
		exchange_missed(&x);
		assert_true(step());
		if (i == 1)
			assert_false(step()); /* the next one would be of a moment to come */
		assert_int_equal(x.revision, i == 1 ? 100 : revision + wrong_by);
		wrong_by = crowd = page_size = 0;
		other_says(500 * S, 0);
		for (size_t k = 0; k < x.items.n; k++)
			shared_taken(&x.items, &x.items.at[k], true);
		if (i == 2)
			exchange_begin(&x);
		exchange_missed(&x);
		goes_back(x.items.n);
		assert_int_equal(only()->there_ns, now + 500 * S);
	}
}

/* What a store from an older copy has not is not lifted, but told again. */
static void test_a_store_from_an_older_copy(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	assert_true(step());
	exchange_missed(&x);
	(void)read_all();
	put(NULL, 0);
	revision = 90;
	exchange_missed(&x);
	goes_back(1);
	here(now + 100 * S);
	assert_true(step());
	assert_int_equal(there_s(), 100);
}

/* Each lease is asked once, however many there are: none counts as fresh. */
static void test_each_lease_is_asked(void **unused)
{
	(void)unused;
	crowd = 5000;
	other_says(500 * S, 9);
	age_s = 10;
	exchange_missed(&x);
	assert_true(step());
	assert_int_equal(asked, 5000);
	assert_int_equal(x.items.n, 1 + crowd);
	for (size_t i = 0; i <= crowd; i++)
		assert_int_equal(x.items.at[i].there_ns, now + 490 * S);
}

/*
 * Nor where that takes long: the session can be renewed each second, and what ends meanwhile has
 * its end by its own age.
 */
static void test_each_lease_is_asked_by_pages(void **unused)
{
	uint64_t began = now;

	(void)unused;
	crowd = 3000;
	page_size = 1000;
	other_says(500 * S, 9);
	age_s = 10;
	call_ns = S / 200;
	exchange_missed(&x);
	while (x.stale) {
		uint64_t at_ns = now;

		assert_true(step());
		assert_in_range(now - at_ns, 0, S);
	}
	assert_int_equal(asked, 3000);
	assert_int_equal(now - began, 15 * S);
	assert_int_equal(x.items.n, 1 + crowd);
	for (size_t i = 0; i <= crowd; i++)
		assert_in_range(x.items.at[i].there_ns, began + 490 * S, began + 505 * S);
	assert_int_equal(x.items.at[crowd].there_ns, now + 490 * S);
}

/* Of three. */
static void read_first_page(void)
{
	crowd = 250;
	page_size = 100;
	other_says(500 * S, 9);
	exchange_missed(&x);
	assert_true(step());
}

/* Much is read by pages, which are of one moment; what changes meanwhile is read then. */
static void test_pages(void **unused)
{
	(void)unused;
	read_first_page();
	assert_int_equal(x.items.n, 100);
	assert_true(step());
	crowd = 0;
	other_says(0, 9); /* the first one was lifted */
	crowd = 250;
	age_s = 7; /* of what is asked from now on */
	assert_true(step());
	assert_int_equal(x.items.n, 251);
	assert_int_equal(x.items.at[0].there_ns, now + 500 * S);
	assert_int_equal(x.items.at[250].there_ns, now + 493 * S);
	assert_true(x.stale);
	assert_int_equal(read_all(), 4);
	assert_int_equal(x.items.at[0].there_ns, 0);
	assert_int_equal(x.revision, revision);
	assert_null(x.behind);
}

/*
 * A key with a byte of 0 is not that of the name before it: it is passed over, and that is said.
 * So is a page that is full of such keys, and what follows them is read.
 */
static void test_keys_with_a_byte_of_0(void **unused)
{
	(void)unused;
	for (size_t size = 0; size <= 4; size += 2) {
		(void)end(unused);
		(void)begin(unused);
		page_size = size;
		beyond = 7;
		crowd = 3;
		other_says(500 * S, 9);
		revision++; /* the others are later */
		exchange_missed(&x);
		(void)read_all();
		assert_int_equal(pages, 2 + (size ? (11 + size - 1) / size : 0));
		assert_int_equal(x.items.n, 1 + crowd);
		for (size_t i = 0; i <= crowd; i++)
			assert_int_equal(x.items.at[i].there_ns, now + 500 * S);
		assert_int_equal(x.strange, beyond);
		assert_string_equal(x.odd, EXCHANGE_ITEMS KEY
				    " in the store is passed over: there its key goes on behind a "
				    "byte of 0: remove it there");
		assert_int_equal(asked, 3); /* of no key that is none */
	}
}

/* The moment of the first page is forgotten before the last: it begins anew, and ends. */
static void test_pages_of_a_store_that_is_compacted(void **unused)
{
	(void)unused;
	read_first_page();
	compacted = true;
	assert_false(step());
	assert_false(x.at || x.behind);
	compacted = false;
	asked = pages = 0;
	(void)read_all();
	assert_int_equal(x.items.n, 251);
	assert_int_equal(asked, 250 - 99); /* what is known is not asked again */
	assert_int_equal(pages, 4);
}

/* What was lifted while nobody looked is so once all pages were read, and not before. */
static void test_pages_without_one(void **unused)
{
	(void)unused;
	crowd = 250;
	page_size = 100;
	other_says(9000 * S, 9);
	exchange_missed(&x);
	(void)read_all();
	for (size_t i = 0; i < x.items.n; i++)
		shared_taken(&x.items, &x.items.at[i], true);
	crowd = 150;
	now += 3300 * S; /* all of it is read again */
	exchange_missed(&x);
	assert_true(step());
	for (size_t i = 0; i < x.items.n; i++)
		assert_int_equal(x.items.at[i].todo, SHARED_NOTHING);
	assert_true(step());
	for (size_t i = 0; i < x.items.n; i++)
		assert_int_equal(x.items.at[i].todo, i <= 150 ? SHARED_NOTHING : SHARED_TAKE);
	(void)read_all();
}

/*
 * A store that is slow to tell them is asked for a second at a time, so that a session is renewed
 * meanwhile. Nothing counts as fresh for that, and none is asked twice.
 */
static void test_leases_that_take_long_to_ask(void **unused)
{
	unsigned int steps = 0;

	(void)unused;
	crowd = 300;
	other_says(500 * S, 9);
	age_s = 10;
	call_ns = S / 100;
	exchange_missed(&x);
	while (x.stale) {
		uint64_t began = now;

		assert_int_equal(x.items.n, steps < 3 ? 0 : 1 + crowd);
		assert_true(step());
		assert_in_range(now - began, 0, S);
		steps++;
	}
	assert_int_equal(steps, 4); /* and what is new since; one lease is of two keys */
	assert_int_equal(asked, 300);
	assert_int_equal(x.items.n, 1 + crowd);
	for (size_t i = 0; i <= crowd; i++)
		assert_int_equal(x.items.at[i].there_ns, 1490 * S + (i < 2 ? i + 1 : i) * call_ns);
	assert_int_equal(x.n_ages, 0);
}

/* The same of what a batch was refused for: it is told again, and what is asked meanwhile counts.
 */
static void test_a_refusal_that_takes_long(void **unused)
{
	(void)unused;
	crowd = 150;
	here(now + 100 * S);
	other_says(500 * S, 200); /* the last lease */
	age_s = 10;
	call_ns = S / 100;
	assert_true(step());
	assert_int_equal(asked, 100);
	assert_int_equal(only()->todo, SHARED_TELL);
	assert_int_equal(only()->there_ns, 0);
	assert_true(step());
	assert_int_equal(asked, 150);
	assert_int_equal(only()->todo, SHARED_TAKE);
	assert_int_equal(only()->there_ns, now + 490 * S);
	assert_int_equal(there_s(), 500);
}

/* A page that is read meanwhile is new: what was not asked of it counts as fresh. */
static void test_a_page_before_all_is_asked(void **unused)
{
	(void)unused;
	crowd = 150;
	here(now + 100 * S);
	other_says(500 * S, 200);
	age_s = 10;
	call_ns = S / 100;
	assert_true(step());
	assert_int_equal(asked, 100);
	exchange_quiet(&x, now);
	x.stale = true;
	assert_true(step());
	assert_int_equal(asked, 100);
	assert_int_equal(x.items.at[0].there_ns, now + 500 * S);
}

/* What has no lease, or one that was asked in time, need not wait for the others. */
static void test_a_refusal_that_can_be_told(void **unused)
{
	for (uint64_t lease = 0; lease <= 9; lease += 9) {
		(void)end(unused);
		(void)begin(unused);
		crowd = 150;
		here(now + 100 * S);
		other_says(500 * S, lease);
		age_s = 10;
		call_ns = S / 100;
		assert_true(step());
		assert_int_equal(asked, 100);
		assert_int_equal(only()->todo, SHARED_TAKE);
		assert_int_equal(only()->there_ns, lease ? 1490 * S + call_ns : now + 500 * S);
	}
}

/* Nor has what is gone an age: it is told as what nobody has said. */
static void test_a_refusal_of_what_is_gone(void **unused)
{
	(void)unused;
	here(now + 100 * S);
	assert_true(step());
	here(now + 200 * S);
	crowd = 150;
	call_ns = S / 100;
	other_says(500 * S, 9);
	elsewhere = true;
	assert_true(step());
	elsewhere = false;
	assert_int_equal(asked, 100);
	assert_int_equal(only()->there_ns, 0);
	assert_int_equal(only()->todo, SHARED_TELL);
	put(NULL, 0);
	assert_true(step());
	assert_int_equal(there_s(), 199); /* the calls took a second of it */
}

/* Another leader keeps all for as long again: what has ended is lifted there, by who told it. */
static void test_another_leader(void **unused)
{
	for (uint64_t next = 2; next <= 3; next++) { /* the first that is heard of is no other */
		(void)end(unused);
		(void)begin(unused);
		term = 2;
		exchange_look(&x);
		here(now + 100 * S);
		assert_true(step());
		assert_int_equal(there_s(), 100);
		term = next;
		exchange_look(&x);
		now += 103 * S;
		shared_looked(&x.items, now);
		assert_int_equal(exchange_waits(&x), next == 3);
		assert_true(step());
		assert_int_equal(there_s(), next == 3 ? 0 : 100);
	}
}

/* What lasts is no older for it; what was lifted, or is over by its age, is not there. */
static void test_ends(void **unused)
{
	static const struct {
		uint64_t left_ns, age_s, there_ns;
	} rows[] = {
	    {SHARED_NEVER, 90, SHARED_NEVER},
	    {50 * S, 60, 0},
	    {50 * S, UINT64_MAX, 0}, /* its lease is over */
	    {0, 1, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		(void)end(unused);
		(void)begin(unused);
		assert_true(step()); /* there is nothing to say */
		other_says(500 * S, 9);
		exchange_missed(&x);
		assert_true(step());
		other_says(rows[i].left_ns, 9);
		age_s = rows[i].age_s;
		exchange_missed(&x);
		assert_true(exchange_step(&x, "guard", 0)); /* without a session it reads, too */
		assert_true(exchange_step(&x, "guard", 0));
		assert_int_equal(only()->there_ns, rows[i].there_ns);
	}
}

/* A key that does not lie where it was looked for. */
static void test_a_key_of_another_kind(void **unused)
{
	(void)unused;
	other_says(50 * S, 9);
	elsewhere = true;
	exchange_missed(&x);
	assert_true(step());
	elsewhere = false;
	assert_int_equal(x.items.n, 0);
}

static bool starved_step(uint32_t at)
{
	bool well;

	starved_from(at, false);
	memory.on = true;
	well = step();
	memory.on = false;
	assert_true(well || x.starved);
	return well;
}

/* What another said is not lost where there was no memory to read it, nor taken for another thing:
 * by the reading of all, and by what refuses a batch. */
static void test_no_memory_to_read(void **unused)
{
	for (int by_batch = 0; by_batch < 2; by_batch++) {
		bool well = false;

		for (uint32_t i = 1; !well; i++) {
			(void)end(unused);
			(void)begin(unused);
			other_says(500 * S, 9);
			age_s = 10;
			if (by_batch)
				here(now + 100 * S);
			else
				exchange_missed(&x);
			well = starved_step(i);
			if (!well)
				assert_true(i < 100 && step());
			if (!x.items.n || !only()->revision)
				assert_true(step());
			assert_int_equal(only()->there_ns, now + 490 * S);
			assert_int_equal(only()->todo, SHARED_TAKE);
			assert_int_equal(x.strange, 0);
			assert_int_equal(x.items.count.left_out, 0);
		}
		assert_true(memory.n > 10);
	}
}

/* Nor is a page passed over where there was none to go on behind it. */
static void test_no_memory_between_pages(void **unused)
{
	bool well = false;

	for (uint32_t i = 1; !well; i++) {
		(void)end(unused);
		(void)begin(unused);
		crowd = 2;
		page_size = 1;
		other_says(500 * S, 9);
		exchange_missed(&x);
		well = starved_step(i);
		assert_true(i < 100);
		(void)read_all();
		assert_int_equal(x.items.n, 1 + crowd);
		for (size_t k = 0; k <= crowd; k++)
			assert_int_equal(x.items.at[k].there_ns, now + 500 * S);
	}
	assert_true(memory.n > 5);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_another_wrote_first),
	    CASE(test_another_wrote_a_later_end),
	    CASE(test_it_is_gone),
	    CASE(test_no_item_in_its_place),
	    CASE(test_one_that_is_not_as_ours),
	    CASE(test_what_was_lifted_is_made_again),
	    CASE(test_what_was_lifted_is_made_while_all_is_read),
	    CASE(test_a_policy_before_what_was_read_is_heard),
	    CASE(test_lies_as_long_as_what_it_follows),
	    CASE(test_another_policy),
	    CASE(test_another_policy_before_it_was_told),
	    CASE(test_by_hand_before_another_policy),
	    CASE(test_made_shorter_before_another_policy),
	    CASE(test_a_policy_after_a_list_without_an_end),
	    CASE(test_a_write_is_done_late),
	    CASE(test_told_before_other_policies),
	    CASE(test_a_policy_before_it_is_taken),
	    CASE(test_what_is_remembered_is_looked_for),
	    CASE(test_made_in_ignorance_while_all_is_read),
	    CASE(test_a_first_look_that_is_late),
	    CASE(test_a_session_that_ended),
	    CASE(test_no_answer),
	    CASE(test_an_age_that_is_not_told),
	    CASE(test_after_an_hour),
	    CASE(test_ended_within_the_hour),
	    CASE(test_stood_still),
	    CASE(test_a_watch_that_is_silent),
	    CASE(test_no_memory),
	    CASE(test_no_memory_to_read),
	    CASE(test_no_memory_between_pages),
	    CASE(test_a_revision_that_came_too_high),
	    CASE(test_a_store_from_an_older_copy),
	    CASE(test_each_lease_is_asked),
	    CASE(test_each_lease_is_asked_by_pages),
	    CASE(test_pages),
	    CASE(test_pages_of_a_store_that_is_compacted),
	    CASE(test_keys_with_a_byte_of_0),
	    CASE(test_pages_without_one),
	    CASE(test_leases_that_take_long_to_ask),
	    CASE(test_a_refusal_that_takes_long),
	    CASE(test_a_page_before_all_is_asked),
	    CASE(test_a_refusal_that_can_be_told),
	    CASE(test_a_refusal_of_what_is_gone),
	    CASE(test_another_leader),
	    CASE(test_ends),
	    CASE(test_a_key_of_another_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
