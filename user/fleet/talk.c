/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/talk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/exchange.h"
#include "fleet/json.h"

#define WATCH_AGAIN_NS	1000000000ull
#define UNWATCHED_NS	15000000000ull /* from one to the next of what is a row */
#define SILENT_NS	5000000000ull /* a watch tells of a renewal within that, or is not trusted */
#define RECOUNT_NS	16000000ull   /* between members who read all others anew, */
#define RECOUNT_MEMBERS 64	      /* where there are more than that */

#define KEY_TEXT TALK_KEY
#define MEMBERS	 TALK_LAST
#define LIMITS	 TALK_FIRST

static void key_text(char key[KEY_TEXT], const char *of, uint64_t id)
{
	snprintf(key, KEY_TEXT, "%s%016" PRIx64, of, id);
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static void free_records(struct talk *t)
{
	free(t->record);
	free(t->read);
	t->record = NULL;
	t->read = NULL;
	t->room = 0;
}

static bool make_room(struct talk *t)
{
	uint32_t n = t->member->shares;

	if (n <= t->room)
		return true;
	free_records(t);
	t->record = calloc(n, sizeof(*t->record));
	t->read = calloc(n, sizeof(*t->read));
	t->room = t->record && t->read ? n : 0;
	return t->room;
}

void talk_free(struct talk *t)
{
	free_records(t);
	store_snapshot_free(&t->all);
}

/* --- what is known -----------------------------------------------------------------------------
 */

static size_t count(const struct store_snapshot *all, const char *of)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += begins(all->at[i].key, of);
	return n;
}

static struct store_entry *known(const struct store_snapshot *all, const struct store_entry *news)
{
	size_t len = news->key_len;

	for (size_t i = 0; i < all->n; i++)
		if (all->at[i].key_len == len && !memcmp(all->at[i].key, news->key, len))
			return &all->at[i];
	return NULL;
}

static void forget(struct store_snapshot *all, const char *which)
{
	size_t kept = 0;

	for (size_t i = 0; i < all->n; i++)
		if (begins(all->at[i].key, which)) {
			free(all->at[i].key);
			free(all->at[i].value);
		} else {
			all->at[kept++] = all->at[i];
		}
	all->n = kept;
}

/* Puts the news in the place of what was known of their keys. *news is empty then. */
static bool merge(struct store_snapshot *all, struct store_snapshot *news)
{
	struct store_entry *at = realloc(all->at, (all->n + news->n + 1) * sizeof(*at));
	size_t n = all->n;

	if (!at)
		return false;
	all->at = at;
	for (size_t i = 0; i < news->n; i++) {
		struct store_entry *was = n ? known(all, &news->at[i]) : NULL;

		if (was) {
			free(was->key);
			free(was->value);
		}
		*(was ? was : &all->at[all->n++]) = news->at[i];
	}
	news->n = 0;
	all->revision = news->revision;
	return true;
}

/* The host's turn among those who want to know who is gone. */
static uint64_t turn_ns(const struct talk *t, uint64_t members)
{
	uint64_t turn = (t->token.id ^ t->token.id >> 32) * 0x9e3779b97f4a7c15ull >> 32;

	return members > RECOUNT_MEMBERS ? (turn * members >> 32) * RECOUNT_NS : 0;
}

/*
 * Adds the news to what is known. False: there is no memory, or that is not enough: a record has
 * gone, or the store has gone back. Then all is to be read.
 */
static bool learn(struct talk *t, const struct store_news *asked, struct store_snapshot *news)
{
	bool back = news->revision < t->all.revision;

	t->back |= back;
	forget(&t->all, asked->last ? asked->own : MEMBERS);
	if (back || !merge(&t->all, news) || count(&t->all, LIMITS) != news->firsts) {
		store_snapshot_free(&t->all);
		return false;
	}
	t->members = (uint32_t)news->lasts;
	if (count(&t->all, MEMBERS) == news->lasts)
		t->recount_ns = 0;
	else if (!t->recount_ns)
		t->recount_ns = t->now_ns() + turn_ns(t, news->lasts) + 1;
	return true;
}

/*
 * A record that takes a share away may have come wrong once, and of one that nobody writes there is
 * no news that would mend it.
 */
static bool doubts(const struct talk *t)
{
	bool doubtful = t->doubtful;

	for (uint32_t i = 0; i < t->member->shares; i++)
		doubtful |= t->member->share[i].trouble > FLEET_CROWDED;
	return doubtful;
}

/* What is to be read: what is new, all members where some are gone, and all records in doubt. */
static struct store_news news_of(const struct talk *t, const char *own)
{
	bool recount = t->recount_ns && t->now_ns() >= t->recount_ns;

	return (struct store_news){own, doubts(t) ? 0 : t->all.revision,
				   recount ? 0 : t->all.revision};
}

static void read_records(struct talk *t, const struct store_snapshot *now)
{
	char key[KEY_TEXT], why[FLEET_WHY];

	t->why[0] = 0;
	t->doubtful = false;
	for (uint32_t i = 0; i < t->member->shares; i++) {
		const struct store_entry *entry;
		struct fleet_read *read = &t->read[i];

		key_text(key, LIMITS, t->share_id[i]);
		entry = store_find(now, key);
		*read = (struct fleet_read){0};
		if (!entry)
			continue;
		read->revision = entry->revision;
		t->doubtful |= t->share_id[i] == t->refused_id && entry->revision == t->refused_at;
		read->trouble = fleet_read_record(entry->value, entry->len, &t->record[i], why);
		if (read->trouble == FLEET_WELL)
			read->record = &t->record[i];
		else
			snprintf(t->why, sizeof(t->why), "%s: %.80s", key, why);
	}
	t->refused_at = 0;
}

/* Who is there; in *live, which has room for all. */
static uint32_t read_members(const struct store_snapshot *now, uint64_t *live)
{
	uint32_t n = 0;

	for (size_t i = 0; i < now->n; i++)
		if (begins(now->at[i].key, MEMBERS))
			live[n++] = now->at[i].created;
	return n;
}

/* Units in the record are this host's: by its session, or a reserve, which needs none. */
static bool has_some(const struct talk *t, struct fleet_record *record,
		     const struct fleet_answer *answer)
{
	const struct fleet_slot *slot = fleet_slot_of(record, t->token.id);

	return answer->mine && slot && (slot->session == answer->session || slot->reserve);
}

/* Its key is that of a limit's record, and no other. */
static void note_lost(struct talk *t, const struct store_entry *entry,
		      const struct fleet_record *record)
{
	uint64_t id = strtoull(entry->key + strlen(LIMITS), NULL, 16);
	char key[KEY_TEXT];

	key_text(key, LIMITS, id);
	if (store_is_of(entry, key))
		t->lost = (struct talk_lost){id, record->memory_ns};
}

/*
 * Limits that others divide, and this host does not: their policies differ from its own. In
 * t->lost, one of which it has units all the same.
 */
static uint32_t look_at_strangers(struct talk *t, const struct store_snapshot *now,
				  const struct fleet_answer *answer)
{
	static struct fleet_record record;
	char key[KEY_TEXT], why[FLEET_WHY];
	uint32_t n = 0;

	t->lost.id = 0;

	for (size_t i = 0; i < now->n; i++) {
		bool known = !begins(now->at[i].key, LIMITS), used = false;

		for (uint32_t k = 0; k < t->member->shares && !known; k++) {
			key_text(key, LIMITS, t->share_id[k]);
			known = store_is_of(&now->at[i], key);
		}
		if (known ||
		    fleet_read_record(now->at[i].value, now->at[i].len, &record, why) != FLEET_WELL)
			continue;
		if (has_some(t, &record, answer))
			note_lost(t, &now->at[i], &record);
		for (uint32_t s = 0; s < record.slots; s++)
			for (uint32_t l = 0; l < answer->lives; l++)
				used |= record.slot[s].id != t->token.id &&
					record.slot[s].session &&
					record.slot[s].session == answer->live[l];
		n += used;
	}
	return n;
}

static void find_session(const struct talk *t, const struct store_snapshot *now, const char *key,
			 struct fleet_answer *answer)
{
	const struct store_entry *entry = store_find(now, key);

	if (!entry)
		return;
	answer->session = entry->created;
	answer->revision = entry->revision;
	answer->mine = fleet_is_session_of(entry->value, entry->len, &t->token);
}

/* What is known, to the member; but not what only looks strange for want of memory. */
static bool tell(struct talk *t, const char *own, struct fleet_answer *answer)
{
	const struct store_snapshot *all = &t->all;
	uint64_t *live = calloc(all->n + 1, sizeof(*live));

	(void)json_lacked();
	if (!live || !make_room(t)) {
		free(live);
		return false;
	}
	find_session(t, all, own, answer);
	read_records(t, all);
	answer->read = t->read;
	answer->back = t->back;
	answer->live = live;
	answer->lives = read_members(all, live);
	t->strangers = look_at_strangers(t, all, answer);
	if (json_lacked()) {
		t->why[0] = 0;
		free(live);
		return false;
	}
	t->revision = all->revision;
	fleet_answered(t->member, t->now_ns(), answer);
	free(live);
	return true;
}

static enum store_result renew(struct talk *t, const struct fleet_request *r, const char *own)
{
	char *session = fleet_write_session(&t->token);
	enum store_result result = STORE_UNKNOWN;
	struct store_snapshot now = {0};

	if (session)
		result = t->kind->hold(t->store, own, session, r->follows, t->ttl_s, &now);
	store_snapshot_free(&now);
	free(session);
	return result;
}

/* What is new, or all of it if that is not enough; both are of one moment. */
static bool look(struct talk *t, const char *own)
{
	struct store_snapshot now = {0};
	struct store_news news = news_of(t, own);
	bool learned = false;

	for (int turn = 0; turn < 2 && !learned; turn++) {
		if (t->kind->read(t->store, &news, &now) != STORE_DONE)
			break;
		learned = learn(t, &news, &now);
		store_snapshot_free(&now);
		news.first = news.last = 0;
	}
	return learned;
}

/* It was done: what is watched has to tell of it. */
static void expect_told(struct talk *t, uint64_t sent_ns)
{
	if (t->untold_ns)
		return;
	t->untold_ns = t->now_ns();
	t->untold_sent_ns = sent_ns;
}

/*
 * A renewal is done, and then it is read what there is: not in one transaction, in which a store
 * would count its keys while nobody else may write. What has changed between the two is no matter,
 * since the session is known by what was read.
 */
static bool send_look(struct talk *t, const struct fleet_request *r)
{
	struct fleet_answer answer = {.number = r->number};
	enum store_result result = STORE_DONE;
	uint64_t sent_ns = t->now_ns();
	char own[KEY_TEXT];

	key_text(own, MEMBERS, t->token.id);
	if (r->op == FLEET_RENEW)
		result = renew(t, r, own);
	if (result == STORE_UNKNOWN || !look(t, own))
		return false;
	if (r->op == FLEET_RENEW && result == STORE_DONE)
		expect_told(t, sent_ns);
	answer.done = result == STORE_DONE;
	return tell(t, own, &answer);
}

static bool send_write(struct talk *t, const struct fleet_request *r)
{
	struct fleet_answer answer = {.number = r->number, .record = &r->record};
	char key[KEY_TEXT], guard[KEY_TEXT], *text = fleet_write_record(&r->record);
	enum store_result result = STORE_UNKNOWN;

	key_text(key, LIMITS, t->share_id[r->share]);
	key_text(guard, MEMBERS, t->token.id);
	if (text)
		result = t->kind->write(t->store, key, text, r->follows, guard, r->session,
					&answer.revision);
	free(text);
	if (result == STORE_UNKNOWN)
		return false;
	answer.done = result == STORE_DONE;
	t->refused = !answer.done;
	t->refused_id = t->share_id[r->share];
	t->refused_at = t->refused ? r->follows : 0;
	if (answer.done)
		t->revision = answer.revision;
	fleet_answered(t->member, t->now_ns(), &answer);
	return true;
}

/* Where the key was not dropped, it has changed since, or is gone already. */
static bool send_leave(struct talk *t, const struct fleet_request *r)
{
	struct fleet_answer answer = {.number = r->number};
	char key[KEY_TEXT];
	enum store_result result;

	key_text(key, MEMBERS, t->token.id);
	result = t->kind->drop(t->store, key, r->follows);
	answer.done = result == STORE_DONE;
	(void)json_lacked();
	if (result == STORE_REFUSED && look(t, key))
		find_session(t, &t->all, key, &answer);
	else if (result != STORE_DONE)
		return false;
	if (json_lacked()) /* it may be this host's still */
		return false;
	fleet_answered(t->member, t->now_ns(), &answer);
	return true;
}

bool talk_send(struct talk *t, const struct fleet_request *r)
{
	uint64_t sent_ns = t->now_ns();
	bool told = false;

	t->calls++;
	t->refused = false;
	switch (r->op) {
	case FLEET_RENEW:
	case FLEET_FETCH:
		told = send_look(t, r);
		break;
	case FLEET_WRITE:
		told = send_write(t, r);
		break;
	case FLEET_LEAVE:
		told = send_leave(t, r);
		break;
	case FLEET_IDLE:
		break;
	}
	if (!told) {
		fleet_lost(t->member);
		return false;
	}
	t->answered_ns = t->now_ns();
	t->took_ns = t->answered_ns - sent_ns;
	return true;
}

/* A store that ends and begins hangs up once: it is watched again at once. */
static void missed(struct talk *t, uint64_t at_ns)
{
	if (!t->missed_ns || at_ns - t->missed_ns > UNWATCHED_NS) {
		t->unwatched_ns = at_ns;
		t->unwatched_told = false;
	} else {
		t->watch_ns = at_ns + WATCH_AGAIN_NS;
	}
	t->missed_ns = at_ns;
}

bool talk_unwatched(struct talk *t)
{
	if (t->unwatched_told || t->answered_ns - t->took_ns <= t->unwatched_ns)
		return false;
	t->unwatched_told = true;
	return true;
}

/* All that was written before that renewal was sent was told by then. */
static void hear(struct talk *t)
{
	if (t->untold_ns)
		t->heard_ns = t->untold_sent_ns;
	t->untold_ns = 0;
}

static bool is_silent(const struct talk *t)
{
	return t->untold_ns && t->now_ns() - t->untold_ns > SILENT_NS;
}

int talk_watch(struct talk *t, uint64_t items, uint32_t wait_ms)
{
	char own[KEY_TEXT];
	struct store_under what[4] = {{LIMITS, false}, {MEMBERS, true}, {EXCHANGE_ITEMS, false}};
	uint64_t after = items && items < t->revision ? items : t->revision;
	size_t n = items ? 3 : 2;
	int told = 1 << n, seen;

	if (t->now_ns() < t->watch_ns)
		return TALK_LATER;
	key_text(own, MEMBERS, t->token.id);
	what[n] = (struct store_under){own, false};
	if (!t->watching) /* what was done by now may be before what it begins from */
		t->untold_ns = 0;
	seen = t->kind->watch(t->store, what, n + 1, after, wait_ms);
	if (seen > 0 && seen & told)
		hear(t);
	if (!seen && is_silent(t)) {
		t->kind->hang_up(t->store);
		seen = -1;
	}
	t->watching = seen >= 0;
	if (seen < 0)
		missed(t, t->now_ns());
	return seen < 0 ? seen : seen & (told - 1);
}

void talk_guard(const struct talk *t, char key[TALK_KEY])
{
	key_text(key, MEMBERS, t->token.id);
}

const char *talk_why(const struct talk *t)
{
	const char *why = t->kind->why(t->store);

	return *why ? why : "no memory for what the store has";
}
