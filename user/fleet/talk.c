/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/talk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/exchange.h"

#define PAUSE_NS      4000000ull /* for each member: a write, and what leads to it */
#define PAUSE_MEMBERS 128

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

static bool make_room(struct talk *t)
{
	uint32_t n = t->member->shares;

	if (n <= t->room)
		return true;
	talk_free(t);
	t->record = calloc(n, sizeof(*t->record));
	t->read = calloc(n, sizeof(*t->read));
	t->room = t->record && t->read ? n : 0;
	return t->room;
}

void talk_free(struct talk *t)
{
	free(t->record);
	free(t->read);
	t->record = NULL;
	t->read = NULL;
	t->room = 0;
}

static void read_records(struct talk *t, const struct store_snapshot *now)
{
	char key[KEY_TEXT], why[FLEET_WHY];

	t->why[0] = 0;
	for (uint32_t i = 0; i < t->member->shares; i++) {
		const struct store_entry *entry;
		struct fleet_read *read = &t->read[i];

		key_text(key, LIMITS, t->share_id[i]);
		entry = store_find(now, key);
		*read = (struct fleet_read){0};
		if (!entry)
			continue;
		read->revision = entry->revision;
		read->trouble = fleet_read_record(entry->value, entry->len, &t->record[i], why);
		if (read->trouble == FLEET_WELL)
			read->record = &t->record[i];
		else
			snprintf(t->why, sizeof(t->why), "%s: %.80s", key, why);
	}
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

/* Limits that others divide, and this host does not: their policies differ from its own. */
static uint32_t count_strangers(const struct talk *t, const struct store_snapshot *now,
				const uint64_t *live, uint32_t lives)
{
	static struct fleet_record record;
	char key[KEY_TEXT], why[FLEET_WHY];
	uint32_t n = 0;

	for (size_t i = 0; i < now->n; i++) {
		bool known = !begins(now->at[i].key, LIMITS), used = false;

		for (uint32_t k = 0; k < t->member->shares && !known; k++) {
			key_text(key, LIMITS, t->share_id[k]);
			known = !strcmp(key, now->at[i].key);
		}
		if (known ||
		    fleet_read_record(now->at[i].value, now->at[i].len, &record, why) != FLEET_WELL)
			continue;
		for (uint32_t s = 0; s < record.slots; s++)
			for (uint32_t l = 0; l < lives; l++)
				used |= record.slot[s].session && record.slot[s].session == live[l];
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

/* What was found, to the member. */
static bool tell(struct talk *t, const struct store_snapshot *now, struct fleet_answer *answer)
{
	uint64_t *live = calloc(now->n + 1, sizeof(*live));
	char key[KEY_TEXT];

	if (!live || !make_room(t)) {
		free(live);
		return false;
	}
	key_text(key, MEMBERS, t->token.id);
	find_session(t, now, key, answer);
	read_records(t, now);
	answer->read = t->read;
	answer->live = live;
	answer->lives = t->members = read_members(now, live);
	t->strangers = count_strangers(t, now, live, t->members);
	t->revision = now->revision;
	fleet_answered(t->member, t->now_ns(), answer);
	free(live);
	return true;
}

static enum store_result look(struct talk *t, const struct fleet_request *r,
			      struct store_snapshot *now)
{
	char key[KEY_TEXT], *session;
	enum store_result result;

	if (r->op != FLEET_RENEW)
		return t->kind->read(t->store, now);
	key_text(key, MEMBERS, t->token.id);
	session = fleet_write_session(&t->token);
	if (!session)
		return STORE_UNKNOWN;
	result = t->kind->hold(t->store, key, session, r->follows, t->ttl_s, now);
	free(session);
	return result;
}

static bool send_look(struct talk *t, const struct fleet_request *r)
{
	struct fleet_answer answer = {.number = r->number};
	struct store_snapshot now = {0};
	enum store_result result = look(t, r, &now);
	bool told = false;

	if (result != STORE_UNKNOWN) {
		answer.done = result == STORE_DONE;
		told = tell(t, &now, &answer);
	}
	store_snapshot_free(&now);
	return told;
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
	if (answer.done && answer.revision > t->revision)
		t->revision = answer.revision;
	fleet_answered(t->member, t->now_ns(), &answer);
	return true;
}

/* Where the key was not dropped, it has changed since, or is gone already. */
static bool send_leave(struct talk *t, const struct fleet_request *r)
{
	struct fleet_answer answer = {.number = r->number};
	struct store_snapshot now = {0};
	char key[KEY_TEXT];
	enum store_result result;

	key_text(key, MEMBERS, t->token.id);
	result = t->kind->drop(t->store, key, r->follows);
	answer.done = result == STORE_DONE;
	if (result == STORE_REFUSED && t->kind->read(t->store, &now) == STORE_DONE)
		find_session(t, &now, key, &answer);
	else if (result != STORE_DONE)
		return false;
	store_snapshot_free(&now);
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

int talk_watch(struct talk *t, uint64_t items, uint32_t wait_ms)
{
	static const struct store_under what[] = {
	    {LIMITS, false}, {MEMBERS, true}, {EXCHANGE_ITEMS, false}};
	uint64_t after = items && items < t->revision ? items : t->revision;

	return t->kind->watch(t->store, what, items ? 3 : 2, after, wait_ms);
}

uint64_t talk_pause_ns(bool refused, uint32_t members, uint32_t chance)
{
	uint64_t most_ns = (uint64_t)(members < PAUSE_MEMBERS ? members : PAUSE_MEMBERS) * PAUSE_NS;

	return refused ? most_ns * chance >> 32 : 0;
}

void talk_guard(const struct talk *t, char key[TALK_KEY])
{
	key_text(key, MEMBERS, t->token.id);
}

const char *talk_why(const struct talk *t)
{
	return t->kind->why(t->store);
}
