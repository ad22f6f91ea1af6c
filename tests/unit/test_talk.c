/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a member is told of the store when it reads what is new alone: as much as if it had read
 * all. In place of etcd is a small store that answers as store.h says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/json.h"
#include "fleet/talk.h"
#include "starved.h"

#define S     1000000000ull
#define KEYS  2048
#define OWN   "member/0000000000000001"
#define LIMIT "limit/0000000000000007"

static struct {
	char key[TALK_KEY], *value;
	size_t beyond; /* bytes of the key from a byte of 0 on */
	uint64_t created, revision;
} lies[KEYS];
static size_t n_lies, sent; /* sent: keys that it has answered with */
static uint64_t revision, now;
static bool starving;
static const char *wrong;		       /* is answered once, in the place of the record */
static uint64_t wrong_by;		       /* and its revision is less by that, once */
static enum store_result reads, writes, drops; /* STORE_DONE: as it should be */

static uint64_t clock_ns(void)
{
	return now;
}

static size_t place(const char *key)
{
	size_t i = 0;

	while (i < n_lies && (lies[i].beyond || strcmp(lies[i].key, key) != 0))
		i++;
	return i;
}

static void put(const char *key, const char *value)
{
	size_t i = place(key);

	assert_true(i < KEYS);
	revision++;
	if (i == n_lies) {
		snprintf(lies[n_lies++].key, TALK_KEY, "%s", key);
		lies[i].created = revision;
		lies[i].beyond = 0;
	} else {
		free(lies[i].value);
	}
	lies[i].value = strdup(value);
	lies[i].revision = revision;
}

/* Of a key that goes on behind a byte of 0. */
static void put_beyond(const char *key, const char *value)
{
	assert_true(n_lies < KEYS);
	memset(&lies[n_lies], 0, sizeof(*lies));
	snprintf(lies[n_lies].key, TALK_KEY, "%s", key);
	lies[n_lies].key[strlen(key) + 1] = 'x';
	lies[n_lies].beyond = 2;
	lies[n_lies].value = strdup(value);
	lies[n_lies].created = lies[n_lies].revision = ++revision;
	n_lies++;
}

static void take_away(const char *key)
{
	size_t i = place(key);

	assert_true(i < n_lies);
	revision++;
	free(lies[i].value);
	lies[i] = lies[--n_lies];
}

static void member(uint64_t id)
{
	char key[TALK_KEY];

	snprintf(key, sizeof(key), "member/%016llx", (unsigned long long)id);
	put(key, "{}");
}

static void answer(size_t i, struct store_snapshot *to)
{
	struct store_entry *entry = &to->at[to->n++];

	*entry = (struct store_entry){malloc(TALK_KEY),
				      strlen(lies[i].key) + lies[i].beyond,
				      strdup(lies[i].value),
				      strlen(lies[i].value),
				      lies[i].created,
				      lies[i].revision,
				      0};
	memcpy(entry->key, lies[i].key, TALK_KEY);
	sent++;
	if (strcmp(lies[i].key, LIMIT) != 0)
		return;
	entry->revision -= wrong_by;
	wrong_by = 0;
	if (!wrong)
		return;
	free(entry->value);
	entry->value = strdup(wrong);
	entry->len = strlen(wrong);
	wrong = NULL;
}

static enum store_result read_news(struct store *s, const struct store_news *news,
				   struct store_snapshot *to)
{
	(void)s;
	if (reads != STORE_DONE)
		return reads;
	*to = (struct store_snapshot){.at = calloc(n_lies + 1, sizeof(*to->at)),
				      .revision = revision};
	for (size_t i = 0; i < n_lies; i++) {
		bool first = !strncmp(lies[i].key, "limit/", 6);

		to->firsts += first;
		to->lasts += !first;
		if ((!lies[i].beyond && !strcmp(lies[i].key, news->own)) ||
		    (first ? lies[i].revision > news->first : lies[i].created > news->last))
			answer(i, to);
	}
	memory.on = starving; /* it is the reader who has none */
	return STORE_DONE;
}

static enum store_result hold(struct store *s, const char *key, const char *value, uint64_t follows,
			      uint32_t ttl_s, struct store_snapshot *to)
{
	size_t i = place(key);
	bool done = follows == (i < n_lies ? lies[i].revision : 0);

	(void)s;
	(void)ttl_s;
	if (done)
		put(key, value);
	*to = (struct store_snapshot){.revision = revision};
	return done ? STORE_DONE : STORE_REFUSED;
}

static const char *why(const struct store *s)
{
	(void)s;
	return "";
}

static enum store_result drop(struct store *s, const char *key, uint64_t follows)
{
	size_t i = place(key);

	(void)s;
	if (drops != STORE_DONE)
		return drops;
	if (i == n_lies || lies[i].revision != follows)
		return STORE_REFUSED;
	take_away(key);
	return STORE_DONE;
}

static enum store_result write_key(struct store *s, const char *key, const char *value,
				   uint64_t follows, const char *guard, uint64_t created,
				   uint64_t *written)
{
	size_t i = place(key);

	(void)s;
	if (writes != STORE_DONE)
		return writes;
	assert_string_equal(guard, OWN);
	assert_int_equal(lies[place(OWN)].created, created);
	if (follows != (i < n_lies ? lies[i].revision : 0))
		return STORE_REFUSED;
	put(key, value);
	*written = revision;
	return STORE_DONE;
}

static int seen; /* by who watches */
static unsigned int watches, hung_up;
static bool tells; /* of what was written to the own key, as a watch does that is well */
static uint64_t told;

static int watch(struct store *s, const struct store_under *what, size_t n, uint64_t after,
		 uint32_t wait_ms)
{
	size_t own = place(OWN);
	bool news = tells && own < n_lies && lies[own].revision > told;

	(void)s;
	(void)after;
	(void)wait_ms;
	watches++;
	assert_string_equal(what[n - 1].under, OWN);
	assert_false(what[n - 1].ends_only);
	if (news)
		told = lies[own].revision;
	return seen < 0 ? seen : seen | (news ? 1 << (n - 1) : 0);
}

static void hang_up(struct store *s)
{
	(void)s;
	hung_up++;
	told = revision;
}

static const struct store_kind small = {.hold = hold,
					.read = read_news,
					.write = write_key,
					.drop = drop,
					.watch = watch,
					.hang_up = hang_up,
					.why = why};
static const uint64_t share_id[] = {7};
static struct fleet_share share;
static struct fleet_member m;
static struct talk t;

static int begin(void **state)
{
	(void)state;
	while (n_lies)
		take_away(lies[0].key);
	talk_free(&t);
	revision = 100;
	now = 1000 * S;
	reads = writes = drops = STORE_DONE;
	wrong = NULL;
	wrong_by = 0;
	seen = 0;
	tells = true;
	told = 0;
	hung_up = 0;
	share = (struct fleet_share){.params = {.limit = 100, .memory_ns = S}};
	m = (struct fleet_member){.id = 1, .ttl_ns = 10 * S, .share = &share, .shares = 1};
	t = (struct talk){.kind = &small,
			  .member = &m,
			  .token = {1, "boot", 1},
			  .ttl_s = 10,
			  .now_ns = clock_ns,
			  .share_id = share_id};
	fleet_start(&m);
	return 0;
}

static struct fleet_request request;

/* What is next, once all is applied. */
static enum fleet_next next_step(void)
{
	struct fleet_picture picture;
	uint64_t wake_ns;
	uint32_t number;

	for (;;) {
		enum fleet_next next = fleet_next(&m, now, &number, &picture, &request, &wake_ns);

		if (next != FLEET_APPLY)
			return next;
		fleet_applied(&m, number, &picture, NULL);
	}
}

/* The next request; which is of that kind, and how many keys it is answered with. */
static size_t send(enum fleet_op op)
{
	assert_int_equal(next_step(), FLEET_SEND);
	assert_int_equal(request.op, op);
	sent = 0;
	assert_true(talk_send(&t, &request));
	return sent;
}

static void settle(void)
{
	for (int i = 0; next_step() == FLEET_SEND; i++) {
		assert_true(i < 20);
		assert_true(talk_send(&t, &request));
	}
}

/* The same, where memory runs out at that allocation of what is said or learnt. */
static bool starved_send(uint32_t at, bool from_the_first)
{
	bool told;

	starved_from(at, false);
	starving = true;
	memory.on = from_the_first;
	told = talk_send(&t, &request);
	starving = memory.on = false;
	return told;
}

/* A record in which these members take part, by the sessions that they have. */
static struct fleet_record record_with(const uint64_t *id, size_t n)
{
	struct fleet_record r = {.memory_ns = S};
	char key[TALK_KEY];

	for (size_t i = 0; i < n; i++) {
		struct fleet_slot *slot = fleet_add_slot(&r, id[i]);

		snprintf(key, sizeof(key), "member/%016llx", (unsigned long long)id[i]);
		slot->session = lies[place(key)].created;
		slot->limit = 100;
		slot->cell[0].held = 100 / n;
		slot->cell[0].want = 100;
	}
	return r;
}

static void put_record(const struct fleet_record *r)
{
	char *text = fleet_write_record(r);

	put(LIMIT, text);
	free(text);
}

static void record_of(const uint64_t *id, size_t n)
{
	struct fleet_record r = record_with(id, n);

	put_record(&r);
}

/* At rest a renewal is answered with the session alone, whatever there is. */
static void what_is_known_is_not_read_again(void **state)
{
	(void)state;
	for (uint64_t id = 2; id <= 1000; id++)
		member(id);
	assert_int_equal(send(FLEET_RENEW), 1000);
	record_of((uint64_t[]){1, 2, 3}, 3);
	now += 4 * S;
	assert_int_equal(send(FLEET_RENEW), 2); /* its own, and the record */
	assert_int_equal(share.record.slots, 3);
	assert_true(share.sure);
	now += 4 * S;
	assert_int_equal(send(FLEET_RENEW), 1);
	assert_int_equal(share.record.slots, 3);
	member(1001);
	member(1000); /* renewed */
	now += 4 * S;
	assert_int_equal(send(FLEET_RENEW), 2);
	assert_int_equal(t.members, 1001);
	assert_true(share.sure);
}

/* The sessions that it knows are those that there are: so its cells come to be free. */
static void who_is_gone_is_noticed(void **state)
{
	(void)state;
	member(2);
	member(3);
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1, 2, 3}, 3);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_int_equal(share.dead, 0);
	take_away("member/0000000000000003");
	now += 4 * S;
	(void)send(FLEET_RENEW); /* they are counted ... */
	assert_int_equal(t.members, 2);
	now += 4 * S;
	(void)send(FLEET_RENEW); /* ... and read */
	assert_int_equal(share.dead, 103 - 1);
}

/* The same where it came back meanwhile: another session, and no fewer keys. */
static void who_came_back_is_another(void **state)
{
	(void)state;
	member(2);
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1, 2}, 2);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	take_away("member/0000000000000002");
	member(2);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_int_equal(share.dead, 101);
}

/* Many do not read all members at once: each has its turn within 16 ms a member. */
static void many_read_all_by_turns(void **state)
{
	size_t early = 0, late = 0;

	for (uint64_t host = 0; host < 50; host++) {
		(void)begin(state);
		t.token.id = m.id = 1 + host * 0x123456789abcdef;
		for (uint64_t id = 2; id <= 1000; id++)
			member(id);
		(void)send(FLEET_RENEW);
		take_away("member/0000000000000003");
		now += 4 * S;
		assert_int_equal(send(FLEET_RENEW), 1);
		now += 4 * S;
		early += send(FLEET_RENEW) == 999;
		now += 8 * S;
		late += send(FLEET_RENEW) == 999;
	}
	assert_in_range(early, 5, 25); /* a quarter */
	assert_in_range(late, 20, 45); /* the others */
}

/* A record that has gone is read as gone at once, and a store that has forgotten is believed. */
static void what_is_not_there_is_noticed_at_once(void **state)
{
	(void)state;
	member(2);
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1, 2}, 2);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_true(share.sure);
	take_away(LIMIT);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_false(share.sure);
	assert_int_equal(share.revision, 0);
}

static void a_store_that_went_back_is_noticed(void **state)
{
	(void)state;
	member(2);
	(void)send(FLEET_RENEW);
	revision += 50;
	record_of((uint64_t[]){1, 2}, 2);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	revision = 110; /* all is there, as it was before */
	lies[place(OWN)].revision = 103;
	lies[place(LIMIT)].revision = 105;
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_true(m.went_back);
	assert_false(share.sure);
	assert_true(now < fleet_end_ns(&m));
	assert_false(fleet_holds(&m, &share, now)); /* though the session lasts */
}

/* What is known of it is worth nothing: a share is not had by it, nor is a record written. */
static void goes_back(void)
{
	share.want[0] = 100;
	member(2);
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1, 2}, 2);
	now += 4 * S;
	settle();
	assert_true(share.sure && share.applied.value[0]);
	revision -= 1;
	lies[place(OWN)].revision = revision - 1;
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_true(m.went_back && t.back);
	t.back = false;
}

/* Nothing but its session, for as long as the agent runs. */
static void renews_alone(void)
{
	struct fleet_picture picture;
	uint64_t wake_ns;
	uint32_t number;

	for (int k = 0; k < 20; k++) {
		now += 4 * S;
		(void)send(FLEET_RENEW);
		fleet_nudge(&m); /* no record is read, and nobody wakes for that */
		assert_int_equal(fleet_next(&m, now, &number, &picture, &request, &wake_ns),
				 FLEET_WAIT);
		assert_true(wake_ns > now + S);
		assert_int_equal(share.trouble, FLEET_WENT_BACK);
		assert_false(share.sure || share.applied.value[0] || share.applied.until_ns);
		assert_true(now < fleet_end_ns(&m));
	}
}

/*
 * Others get what it had, as its session of before ends once its datapath has fallen back. It keeps
 * one that is in no record, for what is no share.
 */
static void who_saw_it_go_back_has_a_session(void **state)
{
	uint64_t before;

	(void)state;
	goes_back();
	before = m.session;
	(void)send(FLEET_LEAVE);
	assert_false(share.applied.value[0] || share.applied.until_ns);
	assert_int_equal(place(OWN), n_lies);
	assert_int_equal(next_step(), FLEET_WAIT);
	revision += 50; /* as others write, which are as far again as it was */
	renews_alone();
	assert_true(m.session && m.session != before);
	assert_int_equal(m.session, lies[place(OWN)].created);
}

/* Where the older copy has no session of its own, there is none to end. */
static void who_saw_it_go_back_had_none_there(void **state)
{
	(void)state;
	goes_back();
	take_away(OWN);
	m.stale = false;
	(void)send(FLEET_LEAVE);
	assert_int_equal(m.session, 0);
	(void)send(FLEET_RENEW);
	renews_alone();
}

/* A session of this host that it does not know of. */
static void put_own(void)
{
	char *session = fleet_write_session(&t.token);

	if (place(OWN) < n_lies)
		take_away(OWN);
	put(OWN, session);
	free(session);
}

/* What it finds there may be of before: whether its renewal was done is not known, or it went back
 * once more. */
static void who_saw_it_go_back_finds_a_session(void **state)
{
	(void)state;
	goes_back();
	(void)send(FLEET_LEAVE);
	now += 4 * S;
	assert_int_equal(next_step(), FLEET_SEND);
	fleet_lost(&m);
	for (int k = 0; k < 2; k++) {
		put_own();
		(void)send(FLEET_RENEW);
		(void)send(FLEET_LEAVE);
		now += 4 * S;
		(void)send(FLEET_RENEW);
		renews_alone();
		now += 4 * S;
	}
}

/* Once more: there may be records that have the session of since. */
static void who_saw_it_go_back_twice(void **state)
{
	(void)state;
	goes_back();
	(void)send(FLEET_LEAVE);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	t.back = true;
	now += 4 * S;
	(void)send(FLEET_RENEW);
	t.back = false;
	(void)send(FLEET_LEAVE);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	renews_alone();
}

/* Who ends takes its session away, and is done. */
static void who_saw_it_go_back_leaves(void **state)
{
	(void)state;
	goes_back();
	(void)send(FLEET_LEAVE);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	fleet_leave(&m);
	(void)send(FLEET_LEAVE);
	assert_true(fleet_gone(&m));
	assert_int_equal(place(OWN), n_lies);
	now += 60 * S;
	assert_int_equal(next_step(), FLEET_WAIT);
}

/* Who has none asks for none. */
static void who_saw_it_go_back_leaves_without_a_session(void **state)
{
	(void)state;
	goes_back();
	(void)send(FLEET_LEAVE);
	fleet_leave(&m);
	now += 60 * S;
	assert_int_equal(next_step(), FLEET_WAIT);
	assert_true(fleet_gone(&m));
}

/* One record says so of all: the session ends, by which they are had. */
static void all_shares_went_back(void **state)
{
	static const uint64_t ids[] = {8, 7};
	static struct fleet_share two[2];

	(void)state;
	two[0] = two[1] = share;
	m.share = two;
	m.shares = 2;
	t.share_id = ids;
	member(2);
	put("limit/0000000000000009", "{}");
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1, 2}, 2);
	put("limit/0000000000000008", lies[place(LIMIT)].value);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_true(two[0].sure && two[1].sure);
	lies[place(LIMIT)].revision = two[1].revision - 1;
	take_away("limit/0000000000000009");
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_false(t.back);
	(void)send(FLEET_LEAVE);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(two[i].trouble, FLEET_WENT_BACK);
		assert_false(two[i].sure || two[i].applied.value[0]);
	}
}

/* It is said, and mended by the next answer, though nobody writes the record. */
static void a_record_that_came_wrong_once(void **state)
{
	static const char *const values[] = {
	    "what?",
	    "{\"v\":9}",
	    NULL /* of another time */,
	};

	for (size_t i = 0; i < 3; i++) {
		struct fleet_record r;
		char *other;

		(void)begin(state);
		member(2);
		(void)send(FLEET_RENEW);
		r = record_with((uint64_t[]){1, 2}, 2);
		put_record(&r);
		r.memory_ns = 2 * S;
		other = fleet_write_record(&r);
		wrong = values[i] ? values[i] : other;
		now += 4 * S;
		(void)send(FLEET_RENEW);
		assert_null(wrong);
		free(other);
		assert_true(share.trouble > FLEET_CROWDED && !share.sure);
		assert_int_equal(*t.why != 0, values[i] != NULL);
		now += 4 * S;
		assert_int_equal(send(FLEET_RENEW), 2); /* its own, and the record */
		assert_int_equal(share.trouble, FLEET_WELL);
		assert_string_equal(t.why, "");
		assert_true(share.sure);
		now += 4 * S;
		assert_int_equal(send(FLEET_RENEW), 1);
	}
}

/* One that is wrong goes on to be, and is said as it is by now. */
static void a_record_that_is_wrong(void **state)
{
	(void)state;
	put(LIMIT, "what?");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send(FLEET_RENEW), 2);
		assert_int_equal(share.trouble, FLEET_STRANGE);
		now += 4 * S;
	}
}

/* Where its revision came wrong, each write is refused: it is read anew then. */
static void a_revision_that_came_wrong_once(void **state)
{
	(void)state;
	member(2);
	share.want[0] = 100;
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){2}, 1);
	wrong_by = 1;
	now += 4 * S;
	(void)send(FLEET_RENEW);
	(void)send(FLEET_WRITE);
	assert_true(t.refused);
	assert_int_equal(send(FLEET_FETCH), 1); /* what is new, which may do */
	assert_true(share.revision < lies[place(LIMIT)].revision);
	now += 4 * S;
	settle();
	assert_int_equal(share.revision, lies[place(LIMIT)].revision);
	assert_non_null(fleet_slot_of(&share.record, 1));
}

/* Where it is refused for something else, the record is read anew once. */
static void a_write_that_is_refused(void **state)
{
	static const size_t keys[] = {1, 2, 1, 1};

	(void)state;
	member(2);
	share.want[0] = 100;
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){2}, 1);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	writes = STORE_REFUSED;
	(void)send(FLEET_WRITE);
	request.op = FLEET_FETCH;
	for (size_t i = 0; i < 4; i++) {
		sent = 0;
		assert_true(talk_send(&t, &request));
		assert_int_equal(sent, keys[i]);
	}
}

/* Who knows only that has to give its shares up, too: others may have written since. */
static void a_store_that_went_back_and_on_is_noticed(void **state)
{
	(void)state;
	member(2);
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1, 2}, 2);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_true(share.sure && !t.back);
	revision -= 1; /* the record is as it was */
	lies[place(OWN)].revision = revision - 1;
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_true(t.back);
	assert_true(m.went_back);
	assert_int_equal(share.trouble, FLEET_WENT_BACK);
	assert_false(fleet_holds(&m, &share, now));
}

/* Of a store that went on since, its record alone says so, once all is read. */
static void a_record_that_went_back_is_noticed(void **state)
{
	(void)state;
	member(2);
	put("limit/0000000000000008", "{}");
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1, 2}, 2);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_true(share.sure && !t.back);
	lies[place(LIMIT)].revision = share.revision - 1;
	take_away("limit/0000000000000008");
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_false(t.back);
	assert_true(m.went_back);
	assert_int_equal(share.trouble, FLEET_WENT_BACK);
	assert_false(fleet_holds(&m, &share, now));
}

/* Who shares none goes on, and is told so. It is not lost where the answer is. */
static void a_store_that_went_back_without_shares(void **state)
{
	(void)state;
	m.shares = 0;
	(void)send(FLEET_RENEW);
	revision += 50;
	member(2);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_false(t.back);
	revision = 20;
	take_away(OWN);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_true(t.back);
	assert_false(m.went_back);
	t.back = false;
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_true(m.session && !t.back);
}

/* What comes as an answer to another request is none. */
static void another_answer_is_none(void **state)
{
	struct fleet_answer late = {.done = true, .session = 5, .mine = true};

	(void)state;
	(void)send(FLEET_RENEW);
	fleet_answered(&m, now, &late);
	now += 4 * S;
	assert_int_equal(next_step(), FLEET_SEND);
	late.number = request.number - 1;
	fleet_answered(&m, now, &late);
	assert_int_equal(m.session, 101);
	assert_int_equal(m.flight, FLEET_RENEW);
	assert_true(talk_send(&t, &request));
}

/* As by a renewal that had no answer. */
static void write_own(void)
{
	char *text = strdup(lies[place(OWN)].value);

	put(OWN, text);
	free(text);
}

static void takes_part(void)
{
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1}, 1);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	fleet_leave(&m);
	for (int i = 0; i < 200; i++) { /* it gives its share up */
		while (next_step() != FLEET_SEND)
			now += S;
		if (request.op == FLEET_LEAVE)
			return;
		assert_true(talk_send(&t, &request));
	}
	fail();
}

/* A renewal that is due gives way to what is given back, as long as that can be. */
static void who_leaves_gives_back_first(void **state)
{
	(void)state;
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1}, 1);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	now += 4 * S; /* the next is due */
	fleet_leave(&m);
	(void)send(FLEET_WRITE);
	(void)send(FLEET_LEAVE);
	assert_true(m.left);
}

/* Without a session nothing can be given back. */
static void who_leaves_for_long_renews(void **state)
{
	(void)state;
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1}, 1);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	fleet_leave(&m);
	now += 6 * S;
	assert_int_equal(next_step(), FLEET_SEND);
	assert_int_equal(request.op, FLEET_WRITE);
	now += S;
	writes = STORE_UNKNOWN;
	assert_false(talk_send(&t, &request));
	(void)send(FLEET_RENEW);
}

/* A cell of which the datapath has nothing is given up once it is told of another end. */
static void who_leaves_with_nothing_renews(void **state)
{
	struct fleet_picture nothing;
	uint64_t wake_ns;
	uint32_t number;

	(void)state;
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1}, 1);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	fleet_leave(&m);
	assert_int_equal(fleet_next(&m, now, &number, &nothing, &request, &wake_ns), FLEET_APPLY);
	m.share[0].applied = nothing; /* as it was already */
	assert_int_equal(next_step(), FLEET_WAIT);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	(void)send(FLEET_WRITE);
	(void)send(FLEET_LEAVE);
	assert_true(m.left);
}

static void who_leaves_is_gone(void **state)
{
	(void)state;
	takes_part();
	assert_true(talk_send(&t, &request));
	assert_true(m.left);
	assert_int_equal(place(OWN), n_lies);
	assert_int_equal(next_step(), FLEET_WAIT);
}

/* A renewal without an answer was done all the same; or another took the key away. */
static void who_leaves_looks_again(void **state)
{
	for (int there = 0; there < 2; there++) {
		(void)begin(state);
		takes_part();
		if (there)
			write_own();
		else
			take_away(OWN);
		assert_true(talk_send(&t, &request));
		assert_int_equal(m.left, !there);
		assert_false(m.taken);
		if (there)
			(void)send(FLEET_RENEW);
		if (there)
			(void)send(FLEET_LEAVE);
		assert_true(m.left);
		assert_int_equal(place(OWN), n_lies);
	}
}

/* Without an answer it is not known whether it is gone: it asks again. */
static void who_leaves_without_an_answer_asks_again(void **state)
{
	for (int looks = 0; looks < 2; looks++) {
		(void)begin(state);
		takes_part();
		write_own();
		reads = drops = STORE_UNKNOWN;
		if (looks) /* the key was not dropped, and why not is not told */
			drops = STORE_REFUSED;
		assert_false(talk_send(&t, &request));
		assert_false(m.left);
		reads = drops = STORE_DONE;
		(void)send(FLEET_FETCH);
		(void)send(FLEET_LEAVE);
		(void)send(FLEET_RENEW);
		(void)send(FLEET_LEAVE);
		assert_true(m.left);
	}
}

/* Who has no share, as nobody can read what is there, has none to give up. */
static void who_has_no_share_leaves(void **state)
{
	(void)state;
	put(LIMIT, "no record");
	(void)send(FLEET_RENEW);
	assert_int_equal(share.trouble, FLEET_STRANGE);
	assert_int_equal(next_step(), FLEET_WAIT);
	fleet_leave(&m);
	(void)send(FLEET_LEAVE);
	assert_true(m.left);
	assert_string_equal(lies[place(LIMIT)].value, "no record");
}

/* Nor is it another's for want of memory. */
static void who_leaves_without_memory_asks_again(void **state)
{
	uint32_t n = 0;
	bool told;

	json_count_failures();
	do {
		(void)begin(state);
		takes_part();
		write_own();
		told = starved_send(++n, false);
		assert_false(m.left || m.taken);
		assert_int_equal(m.session, 101);
	} while (memory.n >= n);
	assert_true(told);
}

/* A session or a record is written whole, or not at all. */
static void no_memory_to_say(void **state)
{
	(void)state;
	assert_int_equal(next_step(), FLEET_SEND);
	assert_false(starved_send(1, true));
	assert_int_equal(n_lies, 0);
	assert_int_equal(next_step(), FLEET_SEND);
	assert_true(talk_send(&t, &request));
	assert_int_equal(next_step(), FLEET_SEND);
	assert_int_equal(request.op, FLEET_WRITE);
	assert_false(starved_send(1, true));
	assert_int_equal(place(LIMIT), n_lies);
	(void)send(FLEET_FETCH);
	(void)send(FLEET_WRITE);
	assert_true(place(LIMIT) < n_lies);
}

/* Its own session is not believed to be there because it was. */
static void its_own_end_is_noticed(void **state)
{
	(void)state;
	(void)send(FLEET_RENEW);
	assert_int_equal(m.session, 101);
	take_away(OWN);
	now += 4 * S;
	(void)send(FLEET_RENEW); /* refused: it follows what is gone */
	assert_int_equal(m.session, 0);
	(void)send(FLEET_RENEW);
	assert_int_equal(m.session, revision);
}

/* For want of memory nothing looks strange, or like another's: it is not told, and asked again. */
static void no_memory_is_no_news(void **state)
{
	uint32_t n = 0, lost = 0;
	bool told;

	json_count_failures();
	do {
		(void)begin(state);
		member(2);
		(void)send(FLEET_RENEW);
		record_of((uint64_t[]){1, 2}, 2);
		now += 4 * S;
		assert_int_equal(next_step(), FLEET_SEND);
		told = starved_send(++n, false);
		assert_false(m.taken);
		assert_int_equal(share.trouble, FLEET_WELL);
		assert_string_equal(t.why, "");
		assert_int_equal(share.sure, told);
		assert_string_equal(talk_why(&t), "no memory for what the store has");
		lost += !told;
	} while (memory.n >= n); /* until there was enough */
	assert_true(told);
	assert_in_range(lost, 20, 500);
}

/* Until there is memory for what was found, it is asked for again. */
static void no_memory_for_the_first_look(void **state)
{
	uint32_t n = 0;
	bool told;

	json_count_failures();
	do {
		(void)begin(state);
		assert_int_equal(next_step(), FLEET_SEND);
		told = starved_send(++n, false);
		assert_int_equal(m.session, told ? 101 : 0);
	} while (memory.n >= n);
	assert_true(told);
}

/* The same where the store does not answer. */
static void no_answer_is_no_news(void **state)
{
	(void)state;
	reads = STORE_UNKNOWN;
	assert_int_equal(next_step(), FLEET_SEND);
	assert_false(talk_send(&t, &request));
	assert_int_equal(m.session, 0);
	assert_int_equal(t.members, 0);
	reads = STORE_DONE;
	(void)send(FLEET_RENEW); /* refused: it was written, and follows itself */
	assert_int_equal(m.session, 101);
}

/* What the packets of a key are judged by is not what another key had in the same place. */
static void a_lane_goes_to_another_key(void **state)
{
	struct fleet_record r;

	(void)send(FLEET_RENEW);
	(void)state;
	for (char key = 'a'; key <= 'b'; key++) {
		memset(share.want_key, 0, sizeof(share.want_key));
		share.want_key[1][0] = key;
		share.want[0] = share.want[1] = 100;
		r = record_with((uint64_t[]){1}, 1);
		r.key[1][0] = key;
		r.slot[0].cell[1] = (struct fleet_cell){.held = 100, .want = 100, .own = true};
		put_record(&r);
		now += key == 'a' ? 4 * S : S;
		fleet_nudge(&m);
		(void)send(key == 'a' ? FLEET_RENEW : FLEET_FETCH); /* with the same end */
		assert_int_equal(next_step(), FLEET_WAIT);
		assert_true(share.applied.own[1]);
		assert_int_equal(share.applied.key[1][0], key);
		assert_int_equal(share.applied.value[1], 100);
	}
}

/*
 * While a write may yet be done, nothing is given up. So where another lacks units, and there is
 * nothing else to say, the record is written as it is.
 */
static void what_others_lack_ends_a_doubt(void **state)
{
	struct fleet_record r;

	(void)state;
	member(2);
	share.want[0] = 100;
	(void)send(FLEET_RENEW);
	r = record_with((uint64_t[]){1, 2}, 2);
	r.slot[0].cell[0] = (struct fleet_cell){.held = 80, .cool = 10, .left_ns = S, .want = 100};
	r.slot[1].cell[0].held = 10;
	put_record(&r);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_int_equal(next_step(), FLEET_WAIT);
	assert_int_equal(share.applied.value[0], 80); /* what cools does so once at a time */
	share.want[0] = 90;
	assert_int_equal(next_step(), FLEET_SEND);
	writes = STORE_UNKNOWN;
	assert_false(talk_send(&t, &request));
	writes = STORE_DONE;
	share.want[0] = 100;
	now += 2 * S;
	(void)send(FLEET_FETCH);
	(void)send(FLEET_WRITE);
	assert_int_equal(share.record.slot[0].cell[0].held, 80);
	(void)send(FLEET_WRITE);
	assert_int_equal(share.applied.value[0], 50);
	assert_int_equal(share.record.slot[0].cell[0].held, 50);
}

/* Until there is nothing to be done. */
/* A write without an answer that was done: what it gave up is given, and can be taken again. */
static void what_was_given_unanswered_is_given(void **state)
{
	struct fleet_record r;

	(void)state;
	member(2);
	share.want[0] = 100;
	(void)send(FLEET_RENEW);
	r = record_with((uint64_t[]){1, 2}, 2);
	r.slot[0].cell[0] = (struct fleet_cell){.held = 80, .want = 100};
	r.slot[1].cell[0].held = 10;
	put_record(&r);
	fleet_nudge(&m);
	now += S;
	(void)send(FLEET_FETCH);
	assert_int_equal(next_step(), FLEET_SEND);
	assert_int_equal(request.op, FLEET_WRITE);
	assert_int_equal(request.record.slot[0].cell[0].held, 50);
	put_record(&request.record);
	writes = STORE_UNKNOWN;
	assert_false(talk_send(&t, &request));
	writes = STORE_DONE;
	(void)send(FLEET_FETCH);
	r = record_with((uint64_t[]){1}, 1); /* the other has gone */
	r.slot[0].cell[0].held = 50;
	put_record(&r);
	fleet_nudge(&m);
	now += S;
	settle();
	assert_int_equal(share.applied.value[0], 100);
}

/*
 * A limit may come to the policy long after the agent began. What its datapath of before admitted
 * counts for the limit's time all the same, so the reserve of before waits for that.
 */
static void a_reserve_waits_for_the_time_of_its_limit(void **state)
{
	struct fleet_record r;

	(void)state;
	member(2);
	m.begun_ns = now;
	m.shares = 0;
	settle();
	now += 60 * S;
	settle();
	share = (struct fleet_share){.params = {.limit = 100, .memory_ns = 600 * S, .reserve = 10},
				     .want[0] = 100};
	m.shares = 1;
	r = record_with((uint64_t[]){1, 2}, 2);
	r.memory_ns = 600 * S;
	r.slot[0].session = 0;
	r.slot[0].reserve = r.slot[0].cell[0].held = 10;
	r.slot[1].cell[0].held = 90;
	put_record(&r);
	fleet_nudge(&m);
	now += S;
	settle();
	assert_true(share.sure);
	assert_int_equal(share.floor, 10);
	assert_int_equal(share.applied.value[0], 0);
	assert_int_equal(share.applied.floor, 0);
	now = m.begun_ns + 600 * S;
	settle();
	assert_int_equal(share.applied.value[0], 0);
	now = m.begun_ns + fleet_over(600 * S);
	settle();
	assert_int_equal(share.applied.value[0], 10);
	assert_int_equal(share.applied.floor, 10);
}

/* A limit that its policy has no more: others get what it had, its reserve with it. */
static void a_share_that_is_left(void **state)
{
	const struct fleet_slot *slot;
	struct fleet_record r;

	(void)state;
	member(2);
	share.params.reserve = 10;
	share.want[0] = 100;
	(void)send(FLEET_RENEW);
	r = record_with((uint64_t[]){1, 2}, 2);
	r.slot[0].reserve = 10;
	put_record(&r);
	fleet_nudge(&m);
	now += S;
	settle();
	assert_int_equal(share.applied.value[0], 50);
	share.leaving = true;
	assert_false(fleet_left(&m, &share));
	settle();
	assert_true(fleet_left(&m, &share));
	assert_int_equal(share.applied.value[0], 0);
	assert_int_equal(share.applied.floor, 0);
	slot = fleet_slot_of(&share.record, 1);
	assert_int_equal(slot->session, 0);
	assert_int_equal(slot->reserve, 0);
	assert_int_equal(slot->cell[0].held, 0);
	assert_int_equal(slot->cell[0].cool, 50);
	assert_int_equal(slot->cell[0].want, 0);
	now += 4 * S; /* and it does not come back */
	settle();
	assert_int_equal(fleet_slot_of(&share.record, 1)->session, 0);
}

/* The same where what it keeps is of a session before, which it has lost. */
static void a_share_that_is_left_without_its_session(void **state)
{
	const struct fleet_slot *slot;
	struct fleet_record r;

	(void)state;
	member(2);
	share.params.reserve = 10;
	(void)send(FLEET_RENEW);
	r = record_with((uint64_t[]){1, 2}, 2);
	r.slot[0].session = 7;
	r.slot[0].reserve = 10;
	put_record(&r);
	fleet_nudge(&m);
	now += S;
	(void)send(FLEET_FETCH);
	share.leaving = true;
	assert_false(fleet_left(&m, &share));
	settle();
	assert_true(fleet_left(&m, &share));
	slot = fleet_slot_of(&share.record, 1);
	assert_int_equal(slot->session, 0);
	assert_int_equal(slot->reserve, 0);
	assert_int_equal(slot->cell[0].held, 0);
	assert_int_equal(slot->cell[0].cool, 50);
}

/* It has half of the limit, and as much of that is in the record for when it is cut off. */
static void has_half(uint64_t reserve)
{
	struct fleet_record r;

	member(2);
	share.params.limit = 1600;
	share.params.reserve = reserve;
	share.want[0] = 1600;
	(void)send(FLEET_RENEW);
	r = record_with((uint64_t[]){1, 2}, 2);
	for (int i = 0; i < 2; i++) {
		r.slot[i].limit = 1600;
		r.slot[i].reserve = reserve;
		r.slot[i].cell[0].held = 800;
		r.slot[i].cell[0].want = 1600;
	}
	put_record(&r);
	fleet_nudge(&m);
	now += S;
	settle();
	now += S;
	settle();
	assert_int_equal(share.applied.value[0], 800);
	assert_int_equal(share.applied.floor, reserve);
}

/* A limit that is lowered, or cut_off: deny, lowers what is kept: the packets first. */
static void a_reserve_is_lowered(void **state)
{
	static const struct {
		uint64_t limit, reserve, to;
	} rows[] = {{1600, 100, 800}, {1600, 0, 800}, {320, 20, 220}, {80, 5, 5}};
	const struct fleet_slot *slot;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)begin(state);
		has_half(100);
		share.params.limit = rows[i].limit;
		share.params.reserve = rows[i].reserve;
		if (i)
			assert_int_equal(next_step(), FLEET_SEND);
		assert_int_equal(share.applied.floor, rows[i].reserve);
		if (i)
			assert_true(talk_send(&t, &request));
		settle();
		slot = fleet_slot_of(&share.record, 1);
		assert_int_equal(slot->reserve, rows[i].reserve);
		assert_int_equal(share.floor, rows[i].reserve);
		now += 2 * S;
		settle();
		assert_in_range(slot->cell[0].held, rows[i].reserve, rows[i].limit / 2);
	}
}

/* While the write that lowers it may yet be done, the packets do not have it again. */
static void a_reserve_is_lowered_in_doubt(void **state)
{
	(void)state;
	has_half(100);
	share.params.reserve = 0;
	assert_int_equal(next_step(), FLEET_SEND);
	writes = STORE_UNKNOWN;
	assert_false(talk_send(&t, &request));
	share.params.reserve = 100;
	now += S;
	(void)send(FLEET_FETCH);
	assert_int_equal(share.applied.floor, 0);
	assert_int_equal(fleet_slot_of(&share.record, 1)->reserve, 100);
	writes = STORE_DONE;
	(void)send(FLEET_WRITE); /* as it is: one of the two is done */
	settle();
	assert_int_equal(share.applied.floor, 100);
}

/*
 * Where a datapath before may have used it, it cools. That the time for that passes while the write
 * is under way gives the packets no more.
 */
static void a_reserve_of_before_is_lowered(void **state)
{
	struct fleet_record r;

	(void)state;
	member(2);
	m.begun_ns = now;
	share.params = (struct fleet_params){.limit = 100, .memory_ns = 2 * S, .reserve = 5};
	share.want[0] = 100;
	(void)send(FLEET_RENEW);
	r = record_with((uint64_t[]){1, 2}, 2);
	r.memory_ns = 2 * S;
	r.slot[0].reserve = 10;
	put_record(&r);
	fleet_nudge(&m);
	(void)send(FLEET_FETCH);
	assert_int_equal(next_step(), FLEET_SEND);
	assert_int_equal(request.op, FLEET_WRITE);
	assert_int_equal(request.record.slot[0].reserve, 5);
	assert_int_equal(request.record.slot[0].cell[0].held, 45);
	assert_int_equal(request.record.slot[0].cell[0].cool, 5);
	now += 3 * S;
	assert_int_equal(next_step(), FLEET_WAIT);
	assert_int_equal(share.applied.value[0], 40);
	assert_int_equal(share.applied.floor, 5);
	assert_true(talk_send(&t, &request));
	settle();
	now += 4 * S;
	settle();
	assert_int_equal(share.applied.value[0], 50);
	assert_int_equal(share.applied.floor, 5);
}

/*
 * The same where the packets have nothing, as it has just begun: what it holds is not given up with
 * the reserve, though the first write is not done.
 */
static void a_reserve_of_before_cools_alone(void **state)
{
	const struct fleet_cell *c;
	struct fleet_record r;

	(void)state;
	member(2);
	m.begun_ns = now;
	share.params = (struct fleet_params){.limit = 1600, .memory_ns = 60 * S, .reserve = 99};
	share.want[0] = 1600;
	(void)send(FLEET_RENEW);
	r = record_with((uint64_t[]){1}, 1);
	r.memory_ns = 60 * S;
	r.slot[0].limit = r.slot[0].cell[0].want = r.slot[0].cell[0].held = 1600;
	r.slot[0].reserve = 100;
	put_record(&r);
	fleet_nudge(&m);
	share.doubt = revision; /* as where it reads all this at first */
	now += S;
	(void)send(FLEET_FETCH);
	assert_int_equal(share.applied.value[0], 0);
	assert_int_equal(next_step(), FLEET_SEND);
	assert_int_equal(request.op, FLEET_WRITE);
	writes = STORE_UNKNOWN;
	assert_false(talk_send(&t, &request));
	writes = STORE_DONE;
	settle();
	c = &fleet_slot_of(&share.record, 1)->cell[0];
	assert_int_equal(c->held, 1599);
	assert_int_equal(c->cool, 1);
	assert_int_equal(share.applied.value[0], 1500);
}

/* It has begun just now and has all; what is kept may have been used before that. */
static void has_begun(uint64_t reserve)
{
	struct fleet_record r;

	member(2);
	m.begun_ns = now;
	share.params.limit = share.want[0] = 1600;
	share.params.memory_ns = 60 * S;
	share.params.reserve = reserve;
	(void)send(FLEET_RENEW);
	r = record_with((uint64_t[]){1, 2}, 2);
	r.memory_ns = 60 * S;
	r.slot[0].limit = r.slot[1].limit = 1600;
	r.slot[0].reserve = reserve;
	r.slot[0].cell[0].held = r.slot[0].cell[0].want = 1600;
	r.slot[1].cell[0].held = r.slot[1].cell[0].want = 0;
	put_record(&r);
	fleet_nudge(&m);
	now += S;
	settle();
	assert_int_equal(share.applied.value[0], 1600 - reserve);
}

/* Who leaves soon after it began gives all back as well. */
static void who_leaves_soon_gives_back(void **state)
{
	for (uint64_t reserve = 0; reserve <= 1600; reserve += 800) {
		const struct fleet_slot *slot;

		(void)begin(state);
		has_begun(reserve);
		fleet_leave(&m);
		for (int i = 0; i < 4 && !m.left; i++) {
			assert_int_equal(next_step(), FLEET_SEND);
			assert_true(talk_send(&t, &request));
		}
		assert_true(m.left);
		slot = fleet_slot_of(&share.record, 1);
		assert_int_equal(slot->reserve, 0);
		assert_int_equal(slot->cell[0].held, 0);
		assert_int_equal(slot->cell[0].cool, 1600);
	}
}

/* What the agent before it had is in the store: it is asked for, to be given back. */
static void who_leaves_before_an_answer_gives_back(void **state)
{
	(void)state;
	has_begun(0);
	fleet_start(&m);
	fleet_leave(&m);
	for (int i = 0; i < 8 && !fleet_gone(&m); i++) {
		while (next_step() != FLEET_SEND)
			now += S;
		assert_true(talk_send(&t, &request));
	}
	assert_true(m.left && now <= 1005 * S);
	assert_int_equal(fleet_slot_of(&share.record, 1)->cell[0].held, 0);
}

/* With its number taken it has nothing there. */
static void who_leaves_without_a_session_is_gone(void **state)
{
	(void)state;
	put(OWN, "another's");
	assert_false(fleet_gone(&m));
	(void)send(FLEET_RENEW);
	fleet_leave(&m);
	assert_true(fleet_gone(&m));
	assert_int_equal(next_step(), FLEET_WAIT);
}

/* Its session is lost, and what it keeps is not given back with that: it asks for another first. */
static void who_leaves_without_its_session_gives_back(void **state)
{
	const struct fleet_slot *slot;

	(void)state;
	has_half(100);
	take_away(OWN);
	now += 20 * S;
	fleet_leave(&m);
	assert_false(fleet_gone(&m));
	assert_int_equal(fleet_kept(&m, &share), 100);
	settle();
	assert_true(m.left);
	slot = fleet_slot_of(&share.record, 1);
	assert_int_equal(slot->reserve, 0);
	assert_int_equal(slot->cell[0].held, 0);
	assert_int_equal(place(OWN), n_lies);
	assert_int_equal(fleet_kept(&m, &share), 0);
}

/* Where it cannot know, it may be all that the policy says. */
static void what_is_kept_before_an_answer(void **state)
{
	(void)state;
	share.params.reserve = 10;
	assert_int_equal(fleet_kept(&m, &share), 10);
	put(OWN, "another's");
	(void)send(FLEET_RENEW);
	assert_int_equal(fleet_kept(&m, &share), 0);
	share.trouble = FLEET_STRANGE;
	share.read = false;
	assert_int_equal(fleet_kept(&m, &share), 0);
}

/*
 * An agent that begins lowers nothing that is in force, before the store has said what there is.
 * Then, or when the session of before has ended, what it knows itself counts.
 */
static void who_begins_lets_the_datapath_go_on(void **state)
{
	for (int leaves = 0; leaves < 2; leaves++) {
		(void)begin(state);
		m.begun_ns = now;
		share.params.reserve = 10;
		share.params.memory_ns = 60 * S;
		share.floor = share.applied.floor = 20;
		share.applied.value[0] = 80;
		share.applied.until_ns = now + 5 * S;
		if (leaves)
			fleet_leave(&m);
		assert_int_equal(next_step(), FLEET_SEND);
		fleet_lost(&m);
		assert_int_equal(share.applied.value[0], leaves ? 0 : 80);
		assert_int_equal(share.applied.floor, leaves ? 0 : 20);
		now += 6 * S;
		assert_int_equal(next_step(), FLEET_SEND);
		assert_int_equal(share.applied.value[0], leaves ? 0 : 10);
		assert_int_equal(share.applied.floor, leaves ? 0 : 10);
		assert_true(talk_send(&t, &request));
		(void)next_step();
		assert_int_equal(share.applied.floor, 0);
	}
}

/*
 * Another gets its part as soon, but for what is kept. Of a throttle all of it cools: what was used
 * before is not counted as hot.
 */
static void what_others_lack_is_given_soon(void **state)
{
	static const uint64_t cold[FLEET_LANES_MAX] = {0};

	for (uint64_t reserve = 0; reserve <= 100; reserve += 100) {
		struct fleet_picture picture;
		struct fleet_record r;
		uint64_t wake_ns;
		uint32_t number;

		(void)begin(state);
		share.params.counts_hot = true;
		has_begun(reserve);
		fleet_copy(&r, &share.record);
		r.slot[1].cell[0].want = 1600;
		put_record(&r);
		now += S;
		fleet_nudge(&m);
		(void)send(FLEET_FETCH);
		assert_int_equal(fleet_next(&m, now, &number, &picture, &request, &wake_ns),
				 FLEET_APPLY);
		fleet_applied(&m, 0, &picture, cold);
		assert_int_equal(next_step(), FLEET_SEND);
		assert_int_equal(request.op, FLEET_WRITE);
		assert_int_equal(request.record.slot[0].reserve, reserve);
		assert_int_equal(request.record.slot[0].cell[0].held, picture.value[0] + reserve);
		assert_in_range(picture.value[0], 700, 850);
		assert_int_equal(request.record.slot[0].cell[0].cool,
				 1600 - request.record.slot[0].cell[0].held);
	}
}

/* What is kept is not given up where the time for it passes before that is written. */
static void what_is_kept_is_not_given(void **state)
{
	struct fleet_picture picture;
	struct fleet_record r;
	uint64_t wake_ns;
	uint32_t number;

	(void)state;
	has_begun(400);
	fleet_copy(&r, &share.record);
	r.slot[1].cell[0].want = 1600;
	r.slot[1].cell[0].held = r.slot[1].reserve = 1000; /* of a larger limit before */
	put_record(&r);
	fleet_nudge(&m);
	now += S;
	m.begun_ns = now + S / 2 - fleet_over(60 * S);
	(void)send(FLEET_FETCH);
	assert_int_equal(fleet_next(&m, now, &number, &picture, &request, &wake_ns), FLEET_APPLY);
	fleet_applied(&m, 0, &picture, NULL);
	assert_int_equal(picture.value[0], 100);
	now += S;
	assert_int_equal(next_step(), FLEET_SEND);
	assert_int_equal(request.op, FLEET_WRITE);
	assert_int_equal(request.record.slot[0].cell[0].held, 400);
	assert_int_equal(request.record.slot[0].cell[0].cool, 1200);
}

/* A write that may yet be done is seen to before the session goes: it may take some again. */
static void who_leaves_in_doubt_writes_first(void **state)
{
	struct fleet_record r;

	(void)state;
	share.want[0] = 100;
	(void)send(FLEET_RENEW);
	r = record_with((uint64_t[]){1}, 1);
	r.slot[0].cell[0].held = 0;
	put_record(&r);
	fleet_nudge(&m);
	now += S;
	(void)send(FLEET_FETCH);
	assert_int_equal(next_step(), FLEET_SEND);
	assert_int_equal(request.record.slot[0].cell[0].held, 100);
	writes = STORE_UNKNOWN;
	assert_false(talk_send(&t, &request));
	writes = STORE_DONE;
	fleet_leave(&m);
	(void)send(FLEET_FETCH);
	(void)send(FLEET_WRITE);
	assert_int_equal(share.record.slot[0].cell[0].held, 0);
	(void)send(FLEET_LEAVE);
	assert_true(m.left);
}

/* What it holds can be kept: others need not give up anything for that. */
static void a_reserve_is_of_what_it_holds(void **state)
{
	(void)state;
	has_half(0);
	share.params.reserve = 100;
	settle();
	assert_int_equal(share.applied.floor, 100);
	assert_int_equal(share.applied.value[0], 800);
	assert_int_equal(fleet_slot_of(&share.record, 1)->reserve, 100);
	assert_int_equal(fleet_slot_of(&share.record, 1)->cell[0].held, 800);
}

/* Who leaves keeps nothing, neither in the record nor for its packets. */
static void who_leaves_keeps_no_reserve(void **state)
{
	const struct fleet_slot *slot;

	(void)state;
	has_half(100);
	fleet_leave(&m);
	for (int i = 0; !m.left; i++) {
		assert_true(i < 10);
		while (next_step() != FLEET_SEND)
			now += S;
		assert_int_equal(share.applied.floor, 0);
		assert_int_equal(share.applied.value[0], 0);
		assert_true(talk_send(&t, &request));
	}
	slot = fleet_slot_of(&share.record, 1);
	assert_int_equal(slot->reserve, 0);
	assert_int_equal(slot->cell[0].held, 0);
	assert_int_equal(slot->cell[0].cool, 800);
}

/* A write that may yet be done is seen to before it is left, and one that is not there is none. */
static void a_share_that_is_left_in_doubt(void **state)
{
	(void)state;
	member(2);
	share.want[0] = 100;
	(void)send(FLEET_RENEW);
	record_of((uint64_t[]){1, 2}, 2);
	fleet_nudge(&m);
	now += S;
	settle();
	share.want[0] = 90;
	assert_int_equal(next_step(), FLEET_SEND);
	writes = STORE_UNKNOWN;
	assert_false(talk_send(&t, &request));
	writes = STORE_DONE;
	share.leaving = true;
	now += S;
	settle();
	assert_true(fleet_left(&m, &share));
	assert_int_equal(fleet_slot_of(&share.record, 1)->session, 0);
	(void)begin(state);
	share.leaving = true;
	settle();
	assert_true(fleet_left(&m, &share));
	assert_int_equal(place(LIMIT), n_lies);
}

/*
 * The write by which it joins has no answer, and the record is as it was: the write may be done
 * yet. So it is seen to before the share counts as left, and before the session goes.
 */
static void a_share_that_is_left_while_it_joins(void **state)
{
	for (int leaves = 0; leaves < 2; leaves++) {
		struct fleet_record r;
		char *late;

		(void)begin(state);
		member(2);
		share.params.reserve = 10;
		r = record_with((uint64_t[]){2}, 1);
		r.slot[0].cell[0].held = 50;
		put_record(&r);
		(void)send(FLEET_RENEW);
		assert_int_equal(next_step(), FLEET_SEND);
		assert_int_equal(request.op, FLEET_WRITE);
		late = fleet_write_record(&request.record);
		writes = STORE_UNKNOWN;
		assert_false(talk_send(&t, &request));
		writes = STORE_DONE;
		share.leaving = true;
		if (leaves)
			fleet_leave(&m);
		(void)send(FLEET_FETCH);
		assert_false(fleet_left(&m, &share));
		assert_int_equal(next_step(), FLEET_SEND);
		put(LIMIT, late); /* now it is */
		free(late);
		do {
			(void)talk_send(&t, &request);
			now += S;
		} while (next_step() == FLEET_SEND);
		assert_true(fleet_left(&m, &share));
		assert_int_equal(m.left, leaves);
		assert_int_equal(fleet_slot_of(&share.record, 1)->session, 0);
		assert_int_equal(fleet_slot_of(&share.record, 1)->reserve, 0);
	}
}

/* What others divide, and this host does not, is told of; but not what it has left itself. */
static void others_limits_are_counted(void **state)
{
	(void)state;
	member(2);
	m.shares = 0;
	settle();
	record_of((uint64_t[]){1}, 1);
	now += 4 * S;
	settle();
	assert_int_equal(t.strangers, 0);
	record_of((uint64_t[]){1, 2}, 2);
	now += 4 * S;
	settle();
	assert_int_equal(t.strangers, 1);
}

/*
 * Of a limit that the policy has no more, an agent before this one was killed before it gave its
 * units back: they are found, by its session or a reserve, and given back as of a share that is
 * left.
 */
static void units_of_a_limit_that_is_gone(void **state)
{
	for (int reserve = 0; reserve < 2; reserve++) {
		struct fleet_record r;

		(void)begin(state);
		member(2);
		m.shares = 0;
		settle();
		assert_int_equal(t.lost.id, 0);
		r = record_with((uint64_t[]){2, 1}, 2);
		if (reserve) {
			fleet_slot_of(&r, 1)->session = 0;
			fleet_slot_of(&r, 1)->reserve = 10;
		}
		put_record(&r);
		now += 4 * S;
		settle();
		assert_int_equal(t.lost.id, 7);
		assert_int_equal(t.lost.memory_ns, S);
		share = (struct fleet_share){
		    .params = {.limit = FLEET_UNITS_MAX, .memory_ns = t.lost.memory_ns},
		    .leaving = true};
		m.shares = 1;
		fleet_nudge(&m);
		for (int i = 0; i < 4; i++) {
			settle();
			now += 2 * S;
		}
		assert_int_equal(t.lost.id, 0);
		assert_true(fleet_left(&m, &share));
		assert_int_equal(fleet_slot_of(&share.record, 2)->cell[0].held, 50);
		m.shares = 0;
		now += 4 * S;
		settle();
		assert_int_equal(t.lost.id, 0);
		assert_true(m.session);
	}
}

/* What is not this host's, or under a key that is none of a limit's, is nothing to give back. */
static void units_that_are_not_its_own(void **state)
{
	struct fleet_record r;
	char *text;

	(void)state;
	member(2);
	m.shares = 0;
	settle();
	r = record_with((uint64_t[]){2, 1}, 2);
	fleet_slot_of(&r, 1)->session = 0;
	put_record(&r);
	now += 4 * S;
	settle();
	assert_int_equal(t.lost.id, 0);
	r = record_with((uint64_t[]){2, 1}, 2);
	text = fleet_write_record(&r);
	put("limit/7", text);
	free(text);
	now += 4 * S;
	settle();
	assert_int_equal(t.lost.id, 0);
	take_away("limit/7");
	text = fleet_write_session(&(struct fleet_token){1, "boot", 2});
	put(OWN, text); /* the session is another's by now */
	free(text);
	put_record(&r);
	now += 4 * S;
	settle();
	assert_true(m.taken);
	assert_int_equal(t.lost.id, 0);
}

/* A key that goes on behind a byte of 0 is neither a record nor a session of this host. */
static void a_key_with_a_byte_of_0(void **state)
{
	uint64_t session;

	(void)state;
	member(2);
	settle();
	record_of((uint64_t[]){1, 2}, 2);
	now += 4 * S;
	settle();
	session = m.session;
	assert_int_equal(share.trouble, FLEET_WELL);
	put_beyond(LIMIT, "what?");
	put_beyond(OWN, "who?");
	for (int i = 0; i < 3; i++) {
		now += 4 * S;
		settle();
		assert_int_equal(share.trouble, FLEET_WELL);
		assert_int_equal(m.session, session);
		assert_int_equal(share.record.slots, 2);
	}
	while (n_lies)
		free(lies[--n_lies].value);
}

/* Beyond as many members as a limit is divided among, one has no share, and says so. */
static void one_too_many_has_none(void **state)
{
	static struct fleet_record r;
	char *text;

	(void)state;
	(void)send(FLEET_RENEW);
	r = (struct fleet_record){.memory_ns = S};
	for (uint64_t id = 2; r.slots < FLEET_MEMBERS_MAX; id++) {
		struct fleet_slot *slot = fleet_add_slot(&r, id);

		member(id);
		slot->session = revision;
		slot->limit = 100;
	}
	text = fleet_write_record(&r);
	put(LIMIT, text);
	free(text);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	for (int i = 0; i < 3; i++) {
		static struct fleet_request request;
		struct fleet_picture picture;
		uint64_t wake_ns;
		uint32_t number;

		assert_int_equal(fleet_next(&m, now, &number, &picture, &request, &wake_ns),
				 FLEET_WAIT);
	}
	assert_int_equal(share.trouble, FLEET_CROWDED);
	assert_int_equal(share.applied.value[0], 0);
	r.slot[5].session = 0; /* which counts for nothing any more */
	text = fleet_write_record(&r);
	put(LIMIT, text);
	free(text);
	now += 4 * S;
	(void)send(FLEET_RENEW);
	assert_int_equal(share.trouble, FLEET_WELL);
	{
		static struct fleet_request request;
		struct fleet_picture picture;
		uint64_t wake_ns;
		uint32_t number;

		assert_int_equal(fleet_next(&m, now, &number, &picture, &request, &wake_ns),
				 FLEET_SEND);
		assert_int_equal(request.op, FLEET_WRITE);
		assert_non_null(fleet_slot_of(&request.record, 1));
		assert_int_equal(request.record.slots, FLEET_MEMBERS_MAX);
	}
}

/* A proxy that lets no watch through is asked once a second, and that is said once. */
static void a_store_that_cannot_be_watched(void **state)
{
	const uint64_t begun = now;
	unsigned int said = 0;

	(void)state;
	watches = 0;
	seen = -1;
	assert_int_equal(talk_watch(&t, 0, 1), -1);
	assert_false(talk_unwatched(&t)); /* it may have ended */
	now += S / 10;
	assert_int_equal(talk_watch(&t, 0, 1), -1); /* and begun */
	for (; now < begun + 20 * S; now += S / 10) {
		int is = talk_watch(&t, 0, 1);

		assert_true(is == -1 || is == TALK_LATER);
		if (is == -1)
			said += talk_unwatched(&t);
		assert_in_range(said, now > begun + 4 * S, now > begun + 3 * S);
		if (now == begun + 3 * S)
			(void)send(FLEET_RENEW);
	}
	assert_in_range(watches, 20, 22);
}

/* One that is watched for long between is said anew, and is watched at once. */
static void a_store_that_hangs_up_now_and_then(void **state)
{
	(void)state;
	for (int k = 0; k < 3; k++) {
		watches = 0;
		seen = -1;
		assert_int_equal(talk_watch(&t, 0, 1), -1);
		assert_false(talk_unwatched(&t));
		now += 1;
		seen = TALK_ITEMS;
		assert_int_equal(talk_watch(&t, 1, 1), TALK_ITEMS);
		assert_int_equal(watches, 2);
		now += 16 * S;
	}
	seen = -1;
	assert_int_equal(talk_watch(&t, 0, 1), -1);
	now += 1;
	(void)send(FLEET_RENEW);
	now += 1;
	assert_int_equal(talk_watch(&t, 0, 1), -1);
	assert_true(talk_unwatched(&t));
	now += 16 * S;
	assert_int_equal(talk_watch(&t, 0, 1), -1);
	now += 1;
	fleet_nudge(&m);
	(void)next_step();
	assert_true(talk_send(&t, &request));
	now += 1;
	assert_int_equal(talk_watch(&t, 0, 1), -1);
	assert_true(talk_unwatched(&t));
}

/* For so long, ten looks a second, renewing as it is due. Returns how often it was begun anew. */
static unsigned int watch_for(uint64_t ns, uint64_t items)
{
	uint64_t end_ns = now + ns;
	unsigned int anew = 0;

	while (now < end_ns) {
		int is;

		while (next_step() == FLEET_SEND)
			assert_true(talk_send(&t, &request));
		now += S / 10;
		is = talk_watch(&t, items, 1);
		anew += is == -1;
		assert_true(is == 0 || is == -1);
	}
	return anew;
}

/* One that tells of all is heard of by each renewal, and of that alone the caller has nothing. */
static void a_watch_that_is_well(void **state)
{
	(void)state;
	for (uint64_t items = 0; items < 2; items++) {
		assert_int_equal(watch_for(60 * S, items), 0);
		assert_in_range(t.heard_ns, now - 4 * S, now);
		assert_int_equal(hung_up, 0);
	}
	seen = TALK_ITEMS;
	assert_int_equal(talk_watch(&t, 1, 1), TALK_ITEMS);
}

/*
 * One whose connection is dead says nothing, while calls are answered: it is asked anew within ten
 * seconds, and what it did not tell does not count as nothing. Where that helps nothing, it is
 * said, and it is tried for ever.
 */
static void a_watch_that_says_nothing(void **state)
{
	uint64_t dead_ns;

	(void)state;
	for (uint64_t items = 0; items < 2; items++) {
		(void)begin(state);
		(void)watch_for(20 * S, items);
		tells = false;
		dead_ns = now;
		while (!watch_for(S / 10, items))
			assert_in_range(now - dead_ns, 0, 10 * S);
		assert_in_range(now - dead_ns, 5 * S, 10 * S);
		assert_int_equal(hung_up, 1);
		assert_in_range(t.heard_ns, dead_ns - 4 * S, dead_ns);
		assert_false(talk_unwatched(&t));
		tells = true; /* the next one is well */
		assert_int_equal(watch_for(60 * S, items), 0);
		assert_in_range(t.heard_ns, now - 4 * S, now);
		assert_int_equal(hung_up, 1);
		tells = false;
		while (hung_up < 3)
			(void)watch_for(S / 10, items);
		assert_true(talk_unwatched(&t));
	}
}

/* Nor is it hung up while it tells of something, nor where what was renewed is before it begins. */
static void a_watch_that_begins(void **state)
{
	(void)state;
	(void)send(FLEET_RENEW);
	told = revision;
	now += 6 * S;
	assert_int_equal(talk_watch(&t, 1, 1), 0);
	assert_int_equal(t.heard_ns, 0);
	(void)send(FLEET_RENEW);
	tells = false;
	now += 6 * S;
	seen = TALK_ITEMS;
	assert_int_equal(talk_watch(&t, 1, 1), TALK_ITEMS);
	seen = 0;
	assert_int_equal(talk_watch(&t, 1, 1), -1);
	assert_int_equal(hung_up, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_store_that_cannot_be_watched, begin),
    cmocka_unit_test_setup(a_store_that_hangs_up_now_and_then, begin),
    cmocka_unit_test_setup(a_watch_that_is_well, begin),
    cmocka_unit_test_setup(a_watch_that_says_nothing, begin),
    cmocka_unit_test_setup(a_watch_that_begins, begin),
    cmocka_unit_test_setup(what_is_known_is_not_read_again, begin),
    cmocka_unit_test_setup(who_is_gone_is_noticed, begin),
    cmocka_unit_test_setup(who_came_back_is_another, begin),
    cmocka_unit_test_setup(many_read_all_by_turns, begin),
    cmocka_unit_test_setup(what_is_not_there_is_noticed_at_once, begin),
    cmocka_unit_test_setup(a_store_that_went_back_is_noticed, begin),
    cmocka_unit_test_setup(who_saw_it_go_back_has_a_session, begin),
    cmocka_unit_test_setup(who_saw_it_go_back_had_none_there, begin),
    cmocka_unit_test_setup(who_saw_it_go_back_finds_a_session, begin),
    cmocka_unit_test_setup(who_saw_it_go_back_twice, begin),
    cmocka_unit_test_setup(who_saw_it_go_back_leaves, begin),
    cmocka_unit_test_setup(who_saw_it_go_back_leaves_without_a_session, begin),
    cmocka_unit_test_setup(all_shares_went_back, begin),
    cmocka_unit_test_setup(a_record_that_came_wrong_once, begin),
    cmocka_unit_test_setup(a_record_that_is_wrong, begin),
    cmocka_unit_test_setup(a_revision_that_came_wrong_once, begin),
    cmocka_unit_test_setup(a_write_that_is_refused, begin),
    cmocka_unit_test_setup(a_store_that_went_back_and_on_is_noticed, begin),
    cmocka_unit_test_setup(a_record_that_went_back_is_noticed, begin),
    cmocka_unit_test_setup(a_store_that_went_back_without_shares, begin),
    cmocka_unit_test_setup(its_own_end_is_noticed, begin),
    cmocka_unit_test_setup(another_answer_is_none, begin),
    cmocka_unit_test_setup(who_leaves_gives_back_first, begin),
    cmocka_unit_test_setup(who_leaves_for_long_renews, begin),
    cmocka_unit_test_setup(who_leaves_with_nothing_renews, begin),
    cmocka_unit_test_setup(who_leaves_is_gone, begin),
    cmocka_unit_test_setup(who_leaves_looks_again, begin),
    cmocka_unit_test_setup(who_leaves_without_memory_asks_again, begin),
    cmocka_unit_test_setup(who_leaves_without_an_answer_asks_again, begin),
    cmocka_unit_test_setup(who_has_no_share_leaves, begin),
    cmocka_unit_test_setup(no_memory_to_say, begin),
    cmocka_unit_test_setup(no_memory_for_the_first_look, begin),
    cmocka_unit_test_setup(no_answer_is_no_news, begin),
    cmocka_unit_test_setup(a_lane_goes_to_another_key, begin),
    cmocka_unit_test_setup(what_others_lack_ends_a_doubt, begin),
    cmocka_unit_test_setup(no_memory_is_no_news, begin),
    cmocka_unit_test_setup(what_was_given_unanswered_is_given, begin),
    cmocka_unit_test_setup(a_reserve_waits_for_the_time_of_its_limit, begin),
    cmocka_unit_test_setup(a_share_that_is_left, begin),
    cmocka_unit_test_setup(a_share_that_is_left_without_its_session, begin),
    cmocka_unit_test_setup(a_reserve_is_lowered, begin),
    cmocka_unit_test_setup(a_reserve_is_lowered_in_doubt, begin),
    cmocka_unit_test_setup(a_reserve_of_before_is_lowered, begin),
    cmocka_unit_test_setup(a_reserve_of_before_cools_alone, begin),
    cmocka_unit_test_setup(who_leaves_soon_gives_back, begin),
    cmocka_unit_test_setup(who_leaves_before_an_answer_gives_back, begin),
    cmocka_unit_test_setup(who_leaves_without_a_session_is_gone, begin),
    cmocka_unit_test_setup(who_leaves_without_its_session_gives_back, begin),
    cmocka_unit_test_setup(what_is_kept_before_an_answer, begin),
    cmocka_unit_test_setup(who_begins_lets_the_datapath_go_on, begin),
    cmocka_unit_test_setup(what_others_lack_is_given_soon, begin),
    cmocka_unit_test_setup(what_is_kept_is_not_given, begin),
    cmocka_unit_test_setup(a_reserve_is_of_what_it_holds, begin),
    cmocka_unit_test_setup(who_leaves_keeps_no_reserve, begin),
    cmocka_unit_test_setup(who_leaves_in_doubt_writes_first, begin),
    cmocka_unit_test_setup(a_share_that_is_left_in_doubt, begin),
    cmocka_unit_test_setup(a_share_that_is_left_while_it_joins, begin),
    cmocka_unit_test_setup(others_limits_are_counted, begin),
    cmocka_unit_test_setup(units_of_a_limit_that_is_gone, begin),
    cmocka_unit_test_setup(units_that_are_not_its_own, begin),
    cmocka_unit_test_setup(a_key_with_a_byte_of_0, begin),
    cmocka_unit_test_setup(one_too_many_has_none, begin),
};

int main(void)
{
	int failed = cmocka_run_group_tests_name("talk", tests, NULL, NULL);

	(void)begin(NULL);
	return failed;
}
