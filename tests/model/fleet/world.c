/* SPDX-License-Identifier: GPL-2.0-only */
#include "world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/member.c"
#define least least_of_record
#include "fleet/record.c"
#undef least

enum planted planted;
uint64_t world_read_ns;

#define NOW   (1ull << 16) /* of every host's clock, in every state */
#define TICK  4		   /* of true time */
#define TICKS 6		   /* of the memory, at most */
#define LANES FLEET_LANES_MAX
#define WALK  160 /* actions of a run at random */
#define KEY   "key"

enum stage { NONE, SENT, DONE }; /* of a message: DONE: its answer is on its way */

struct message {
	struct fleet_request request; /* of a FETCH that is done, `record` is what was read */
	uint64_t token;		      /* of the datapath for which it was sent */
	uint64_t spent;		      /* by the store's clock, since it was sent */
	struct fleet_answer answer;
	uint64_t read_revision;
	uint64_t live[WORLD_HOSTS], lives;
	uint64_t stage;
};

struct host {
	struct fleet_member m;
	struct fleet_share s;
	struct fleet_picture has; /* the datapath */
	uint64_t token;		  /* of the datapath: how often it began anew */
	uint64_t turned;	  /* its policy is the changed one */
	uint64_t left;		  /* it has given all up, its session too */
	struct message now, late;
	/* The largest value in force in each of the last ticks; of the datapath before, too. */
	uint64_t value[LANES][TICKS], before[LANES][TICKS];
};

struct key {
	uint64_t session, revision, token, left;
};

struct world {
	struct key key[WORLD_HOSTS];
	struct fleet_record record;
	uint64_t record_revision, revision;
	uint64_t lost, late, doubled, restarts, reboots, removals, leaves, wants, drops, turns;
	uint64_t backs;
	struct host host[WORLD_HOSTS]; /* last: of those that there are not, nothing is kept */
};

enum action {
	STEP,	     /* the agent goes on */
	CARRY,	     /* its request comes to the store */
	CARRY_TWICE, /* and once more later */
	CARRY_LOST,  /* and its answer is lost */
	CARRY_BACK,  /* and it looks as if the store had gone back */
	ANSWER,	     /* the answer comes to the agent */
	GIVE_UP,     /* the agent waits no more */
	CARRY_LATE,  /* a request that was given up comes to the store */
	DROP_LATE,
	NUDGE,
	RESTART,
	REBOOT,
	QUIT,	 /* the agent is told to give all up */
	FORGO,	 /* the policy has the limit no more */
	TAKE_UP, /* and again */
	WANT_LESS,
	WANT_MORE,
	TURN,	   /* the policy has the other limit and reserve */
	STEP_COLD, /* STEP, and nothing was admitted of late */
	HOST_ACTIONS
};

static const char *const action_name[] = {
    "step",
    "carry",
    "carry twice",
    "carry, answer lost",
    "carry, it went back",
    "answer",
    "give up",
    "carry late",
    "drop late",
    "nudge",
    "restart",
    "reboot",
    "quit",
    "forgo",
    "take up",
    "want less",
    "want more",
    "turn",
    "step cold",
};

#define REMOVE	(WORLD_HOSTS * HOST_ACTIONS)
#define TIME	(REMOVE + 1)
#define ACTIONS (TIME + 1)

static struct {
	const struct world_scenario *sc;
	struct world_result *result;
	struct place {
		size_t undos;  /* those that were kept when it was come to */
		uint16_t next; /* the action to be tried */
	} * path;
	uint32_t room;
	struct undo *undo;
	size_t undos, undo_room, words;
	uint64_t *seen, slots;
	int memory_ticks;
} x;

/* --- the normal form -------------------------------------------------------------------------- */

/*
 * Revisions of records are told by their order. Sessions, the revisions of a host's key, and the
 * names of what cools, are only ever the same or not; such a name is above all revisions, since a
 * new one is the revision of a record.
 */
#define COOLS_ABOVE 1024
struct names {
	uint64_t name[64];
	uint32_t n;
};

static struct names records, sessions, keys[WORLD_HOSTS], coolings;
static bool collecting;

static void named(struct names *names, uint64_t *r)
{
	uint32_t i;

	if (!*r)
		return;
	for (i = 0; i < names->n && names->name[i] != *r; i++)
		;
	if (!collecting)
		*r = i + 1;
	else if (i == names->n) {
		assert(i < 64);
		names->name[names->n++] = *r;
	}
}

static void record_revs(struct fleet_record *record)
{
	for (uint32_t i = 0; i < record->slots; i++) {
		named(&sessions, &record->slot[i].session);
		for (uint32_t k = 0; k < LANES; k++) {
			uint64_t *since = &record->slot[i].cell[k].since;

			named(&coolings, since);
			if (*since && !collecting)
				*since += COOLS_ABOVE;
		}
	}
}

static void message_revs(struct message *g, int i)
{
	bool key = g->request.op == FLEET_RENEW || g->request.op == FLEET_LEAVE;

	if (g->stage == NONE)
		return;
	named(key ? &keys[i] : &records, &g->request.follows);
	named(key ? &keys[i] : &records, &g->answer.revision);
	named(&sessions, &g->request.session);
	named(&sessions, &g->answer.session);
	named(&records, &g->read_revision);
	record_revs(&g->request.record);
	for (uint64_t k = 0; k < g->lives; k++)
		named(&sessions, &g->live[k]);
}

static void all_revs(struct world *w)
{
	for (int i = 0; i < x.sc->hosts; i++)
		named(&sessions, &w->key[i].session);
	named(&records, &w->record_revision);
	record_revs(&w->record);
	for (int i = 0; i < x.sc->hosts; i++) {
		struct host *h = &w->host[i];

		named(&keys[i], &w->key[i].revision);
		named(&sessions, &h->m.session);
		named(&keys[i], &h->m.revision);
		named(h->m.flight == FLEET_RENEW || h->m.flight == FLEET_LEAVE ? &keys[i]
									       : &records,
		      &h->m.flight_follows);
		named(&records, &h->s.revision);
		named(&records, &h->s.doubt);
		named(&sessions, &h->s.dead);
		record_revs(&h->s.record);
		message_revs(&h->now, i);
		message_revs(&h->late, i);
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;

	return p < q ? -1 : p > q;
}

/* What is over is over: a deadline is now, at the earliest. */
static void deadline(uint64_t *t)
{
	if (*t && *t < NOW)
		*t = NOW;
}

static void forget_message(struct message *g)
{
	struct fleet_request *r = &g->request;

	if (g->stage == NONE) {
		memset(g, 0, sizeof(*g));
		return;
	}
	if (g->spent > x.sc->ttl)
		g->spent = x.sc->ttl;
	if (r->op != FLEET_RENEW && r->op != FLEET_LEAVE)
		g->spent = g->token = 0;
	if (r->op != FLEET_WRITE && !(g->stage == DONE && g->read_revision))
		memset(&r->record, 0, sizeof(r->record));
	r->number = 0;
	g->answer.number = 0;
	g->answer.read = NULL;
	g->answer.live = NULL;
	g->answer.record = NULL;
}

/* The longest time for which anything of the record cools yet. */
static uint64_t cools_ns(const struct fleet_record *record)
{
	uint64_t left_ns = 0;

	for (uint32_t i = 0; i < record->slots; i++)
		for (uint32_t k = 0; k < LANES; k++)
			left_ns = most(left_ns, record->slot[i].cell[k].left_ns);
	return left_ns ? fleet_over(left_ns) : 0;
}

/* What makes no difference to what the member will do is the same in all states. */
static void forget_host(struct host *h)
{
	struct fleet_member *m = &h->m;
	struct fleet_share *s = &h->s;

	if (m->renewed_ns && m->renewed_ns + lasts_ns(m) <= NOW) /* and it is long due */
		m->renewed_ns = NOW - lasts_ns(m);
	deadline(&m->retry_ns);
	if (m->read_ns <= NOW)
		m->read_ns = 0;
	if (clean_at(m, s) <= NOW)
		m->begun_ns = NOW - fleet_over(s->params.memory_ns);
	deadline(&s->applied.until_ns);
	if (m->session || m->hurry)
		m->retry_ns = 0;
	if (m->flight != FLEET_RENEW && !PACER_FAULT(COOLS_SINCE_SENT))
		m->flight_ns = 0;
	if (m->flight == FLEET_RENEW && m->flight_ns + lasts_ns(m) <= NOW)
		m->flight_ns = NOW - lasts_ns(m);
	if (m->flight == FLEET_IDLE)
		m->flight_follows = m->flight_share = 0;
	m->number = 0;
	m->share = NULL;
	if (s->got_ns)
		s->got_ns = most(s->got_ns, NOW - cools_ns(&s->record));
	if (!s->revision)
		s->got_ns = 0;
	if (s->revision > s->doubt)
		s->doubt = 0;
	for (uint32_t k = 0; k < LANES; k++)
		s->hot[k] *= s->give[k];
}

/* Can the request not be done any more, whatever happens? */
static bool doomed(const struct world *w, int i, const struct message *g)
{
	const struct fleet_request *r = &g->request;

	if (r->op == FLEET_RENEW || r->op == FLEET_LEAVE)
		return g->spent >= x.sc->ttl || (r->follows && r->follows != w->key[i].revision);
	if (r->op == FLEET_WRITE)
		return (r->follows && r->follows != w->record_revision) ||
		       r->session != w->key[i].session;
	return true;
}

/* Of a request that cannot be done, nothing but that makes a difference. */
static void forget_doomed(const struct world *w, struct host *h)
{
	struct message *g = &h->now;

	if (g->stage == SENT && g->request.op == FLEET_WRITE && doomed(w, h - w->host, g)) {
		memset(&g->request.record, 0, sizeof(g->request.record));
	}
	if (h->late.stage != NONE && doomed(w, h - w->host, &h->late))
		memset(&h->late, 0, sizeof(h->late));
}

/* Of a cell that cools, how long it does; and of one that does not cool any more in the store, as
 * it did, nothing. */
static void forget_cell(const struct world *w, uint64_t id, uint32_t lane, struct fleet_cell *c)
{
	bool cools = false;

	for (uint32_t i = 0; i < w->record.slots; i++)
		cools |= w->record.slot[i].id == id && c->since &&
			 w->record.slot[i].cell[lane].since == c->since;
	if (PACER_FAULT(COOLS_BY_UNITS))
		cools = c->cool;
	if (cools)
		*c = (struct fleet_cell){.cool = c->cool, .left_ns = c->left_ns, .since = c->since};
	else
		memset(c, 0, sizeof(*c));
}

/* A member that will read the record before it uses it knows of it but what it has itself, what
 * cools, and by what the reserve is found that it is to have. */
static void forget_record(const struct world *w, struct host *h)
{
	struct fleet_record *record = &h->s.record;
	const struct fleet_slot *own;
	uint32_t kept = 0;

	if (h->s.revision == w->record_revision ||
	    (h->m.flight == FLEET_IDLE && !(h->m.stale && h->m.read_ns <= NOW)))
		return;
	if (h->now.stage == DONE)
		return;
	own = mine(&h->m, record);
	for (uint32_t i = 0; i < record->slots; i++) {
		struct fleet_slot slot = {.id = record->slot[i].id};
		bool used = x.sc->reserve;

		if (x.sc->reserve) {
			slot.session = record->slot[i].session;
			slot.limit = record->slot[i].limit;
			slot.reserve = record->slot[i].reserve;
		}

		for (uint32_t k = 0; k < LANES; k++) {
			slot.cell[k] = record->slot[i].cell[k];
			forget_cell(w, slot.id, k, &slot.cell[k]);
			used |= slot.cell[k].cool;
		}
		if (own == &record->slot[i])
			record->slot[kept++] = *own;
		else if (used)
			record->slot[kept++] = slot;
	}
	memset(&record->slot[kept], 0, (FLEET_MEMBERS_MAX - kept) * sizeof(record->slot[0]));
	record->slots = kept;
	h->s.dead = 0;
}

static void normalize(struct world *w)
{
	w->revision = 0;
	for (int i = 0; i < x.sc->hosts; i++) {
		w->host[i].m.share = &w->host[i].s;
		forget_doomed(w, &w->host[i]);
		forget_record(w, &w->host[i]);
		forget_host(&w->host[i]);
		forget_message(&w->host[i].now);
		forget_message(&w->host[i].late);
	}
	records.n = sessions.n = coolings.n = 0;
	for (int i = 0; i < WORLD_HOSTS; i++)
		keys[i].n = 0;
	collecting = true;
	all_revs(w);
	qsort(records.name, records.n, sizeof(records.name[0]), by_value);
	collecting = false;
	all_revs(w);
	w->revision = 64; /* above all */
}

/* --- the store -------------------------------------------------------------------------------- */

static bool live(const struct world *w, uint64_t session)
{
	for (int i = 0; i < x.sc->hosts; i++)
		if (session && w->key[i].session == session)
			return true;
	return false;
}

static bool renew(struct world *w, int i, const struct message *g)
{
	struct key *key = &w->key[i];

	if (g->request.follows != key->revision || g->spent >= x.sc->ttl)
		return false;
	key->revision = ++w->revision;
	if (!key->session) {
		key->session = key->revision;
		key->token = g->token;
	}
	key->left = x.sc->ttl - g->spent;
	return true;
}

static bool write_record(struct world *w, int i, const struct message *g)
{
	const struct fleet_request *r = &g->request;

	if (r->follows != w->record_revision || r->session != w->key[i].session)
		return false;
	w->record = r->record;
	w->record_revision = ++w->revision;
	return true;
}

static void carry(struct world *w, int i, struct message *g)
{
	struct fleet_answer *a = &g->answer;

	memset(a, 0, sizeof(*a));
	switch (g->request.op) {
	case FLEET_RENEW:
		a->done = renew(w, i, g);
		break;
	case FLEET_LEAVE:
		a->done = g->request.follows == w->key[i].revision;
		if (a->done) {
			memset(&w->key[i], 0, sizeof(w->key[i]));
			w->host[i].left = true;
		}
		break;
	case FLEET_WRITE:
		a->done = write_record(w, i, g);
		a->revision = w->record_revision;
		break;
	case FLEET_FETCH:
		a->done = true;
		break;
	case FLEET_IDLE:
		break;
	}
	if (g->request.op == FLEET_FETCH || g->request.op == FLEET_RENEW) {
		g->request.record = w->record;
		g->read_revision = w->record_revision;
		g->lives = 0;
		for (int k = 0; k < x.sc->hosts; k++)
			if (w->key[k].session)
				g->live[g->lives++] = w->key[k].session;
	}
	if (g->request.op != FLEET_RENEW && g->request.op != FLEET_LEAVE)
		return;
	a->session = w->key[i].session;
	a->revision = w->key[i].revision;
	a->mine = w->key[i].session && w->key[i].token == g->token;
}

/* --- hosts ------------------------------------------------------------------------------------ */

static uint64_t charge(const struct host *h, uint32_t lane)
{
	uint64_t now = 0, before = 0;

	for (int j = 0; j < x.memory_ticks; j++) {
		now = most(now, h->value[lane][j]);
		before = most(before, h->before[lane][j]);
	}
	return now + before;
}

static void apply(struct host *h, const struct fleet_picture *picture, bool cold)
{
	uint64_t hot[LANES];

	h->has = *picture;
	for (uint32_t k = 0; k < LANES; k++) {
		uint64_t value = judged_by(picture, k);

		h->value[k][0] = most(h->value[k][0], value);
		for (int j = 0; cold && j < TICKS; j++)
			h->value[k][j] = least(h->value[k][j], value);
		hot[k] = charge(h, k);
	}
	fleet_applied(&h->m, 0, picture, x.sc->hot ? hot : NULL);
}

/* Returns false where there is nothing to do. */
static bool step(struct world *w, int i, bool cold)
{
	static struct fleet_request request;
	struct fleet_picture picture;
	struct host *h = &w->host[i];
	uint32_t share;
	uint64_t wake_ns;

	memset(&request, 0, sizeof(request));
	h->m.share = &h->s;
	switch (fleet_next(&h->m, NOW, &share, &picture, &request, &wake_ns)) {
	case FLEET_WAIT:
		return !cold; /* it may have noticed that the datapath fell back */
	case FLEET_APPLY:
		apply(h, &picture, cold);
		return true;
	case FLEET_SEND:
		break;
	}
	if (cold)
		return false;
	memset(&h->now, 0, sizeof(h->now));
	h->now.request = request;
	h->now.token = h->token;
	h->now.stage = SENT;
	return true;
}

static void answer(struct host *h)
{
	struct message *g = &h->now;
	struct fleet_answer a = g->answer;
	struct fleet_read read = {.revision = g->read_revision, .record = &g->request.record};

	a.number = h->m.number;
	a.read = &read;
	a.live = g->live;
	a.lives = g->lives;
	a.record = &g->request.record;
	fleet_answered(&h->m, NOW, &a);
	memset(g, 0, sizeof(*g));
}

/*
 * The agent goes on until it waits. If it began anew on the way, all would be as if the answer had
 * been lost, or the request.
 */
static void settle(struct world *w, int i)
{
	struct host *h = &w->host[i];

	h->m.share = &h->s;
	for (int n = 0; n < 4; n++)
		step(w, i, false);
}

/* A request that nobody waits for any more: it may be done later, or never. */
static void keep_late(struct world *w, struct host *h)
{
	if (h->now.stage == SENT && h->late.stage == NONE && w->late) {
		w->late--;
		h->late = h->now;
	}
	memset(&h->now, 0, sizeof(h->now));
}

static bool reboot(struct world *w, struct host *h)
{
	for (uint32_t k = 0; k < LANES; k++)
		for (int j = 0; j < TICKS; j++)
			if (h->before[k][j])
				return false; /* one at a time */
	keep_late(w, h);
	memcpy(h->before, h->value, sizeof(h->before));
	memset(h->value, 0, sizeof(h->value));
	memset(&h->has, 0, sizeof(h->has));
	h->s.applied = h->has;
	h->s.floor = 0;
	h->left = false;
	h->token++;
	h->m.begun_ns = NOW;
	fleet_start(&h->m);
	return true;
}

/* As one that is new, on a datapath that is judged as it was told last. */
static bool take_up(struct host *h)
{
	struct fleet_share fresh = {
	    .params = h->s.params, .applied = h->has, .floor = h->has.floor};

	if (!fleet_left(&h->m, &h->s) || h->now.stage != NONE)
		return false;
	fresh.want[0] = x.sc->limit;
	memcpy(fresh.want_key, h->s.want_key, sizeof(fresh.want_key));
	h->s = fresh;
	fleet_nudge(&h->m);
	return true;
}

static bool set_want(struct world *w, struct host *h, uint64_t want)
{
	uint32_t lane = x.sc->lane;

	if (!w->wants || h->s.want[lane] == want)
		return false;
	w->wants--;
	h->s.want[lane] = want;
	return true;
}

static void set_policy(struct host *h, bool turned)
{
	bool other = turned && x.sc->lowered;

	h->turned = turned;
	h->s.params.limit = other ? x.sc->lowered : x.sc->limit;
	h->s.params.reserve = turned ? x.sc->lowered_reserve : x.sc->reserve;
}

/* The store says that something has changed. */
static bool nudge(const struct world *w, struct host *h)
{
	bool news = h->s.revision != w->record_revision;

	for (uint32_t n = 0; n < h->s.record.slots; n++)
		news |= h->s.record.slot[n].session && !live(w, h->s.record.slot[n].session);
	if (!news || h->m.stale)
		return false;
	fleet_nudge(&h->m);
	return true;
}

/* What becomes of a request that is on its way. */
static bool act_on_request(struct world *w, int i, enum action what)
{
	struct host *h = &w->host[i];

	switch (what) {
	case CARRY_TWICE:
		if (h->now.stage != SENT || h->late.stage != NONE || !w->doubled)
			return false;
		w->doubled--;
		h->late = h->now;
		/* fall through */
	case CARRY:
		if (h->now.stage != SENT)
			return false;
		carry(w, i, &h->now);
		h->now.stage = DONE;
		if (!x.sc->slow)
			answer(h);
		return true;
	case CARRY_LOST:
		if (h->now.stage != SENT || !w->lost || x.sc->slow)
			return false;
		w->lost--;
		carry(w, i, &h->now);
		memset(&h->now, 0, sizeof(h->now));
		fleet_lost(&h->m);
		return true;
	case CARRY_BACK:
		if (h->now.stage != SENT || !w->backs ||
		    (h->now.request.op != FLEET_RENEW && h->now.request.op != FLEET_FETCH))
			return false;
		w->backs--;
		carry(w, i, &h->now);
		h->now.answer.back = true;
		answer(h);
		return true;
	case ANSWER:
		if (h->now.stage != DONE)
			return false;
		answer(h);
		return true;
	case GIVE_UP:
		if (h->now.stage == NONE || !w->lost)
			return false;
		w->lost--;
		keep_late(w, h);
		fleet_lost(&h->m);
		return true;
	case CARRY_LATE:
		if (h->late.stage == NONE)
			return false;
		carry(w, i, &h->late);
		/* fall through */
	case DROP_LATE:
		if (h->late.stage == NONE)
			return false;
		memset(&h->late, 0, sizeof(h->late));
		return true;
	default: /* not of a request */
		return false;
	}
}

static bool act_on_host(struct world *w, int i, enum action what)
{
	struct host *h = &w->host[i];

	h->m.share = &h->s;
	switch (what) {
	case STEP:
		return x.sc->lazy && step(w, i, false);
	case STEP_COLD:
		return x.sc->lazy && x.sc->hot && step(w, i, true);
	case CARRY_TWICE:
	case CARRY:
	case CARRY_LOST:
	case CARRY_BACK:
	case ANSWER:
	case GIVE_UP:
	case CARRY_LATE:
	case DROP_LATE:
		return act_on_request(w, i, what);
	case NUDGE:
		return nudge(w, h);
	case RESTART:
		if (!w->restarts)
			return false;
		w->restarts--;
		keep_late(w, h);
		h->s.applied = h->has;
		h->s.floor = h->has.floor;
		h->left = false;
		fleet_start(&h->m);
		return true;
	case REBOOT:
		if (!w->reboots)
			return false;
		w->reboots--;
		return reboot(w, h);
	case QUIT:
		if (!w->leaves || h->m.leaving)
			return false;
		w->leaves--;
		fleet_leave(&h->m);
		return true;
	case FORGO:
		if (!w->drops || h->s.leaving || h->m.leaving)
			return false;
		w->drops--;
		h->s.leaving = true;
		return true;
	case TAKE_UP:
		return take_up(h);
	case WANT_LESS:
		return set_want(w, h, 0);
	case WANT_MORE:
		return set_want(w, h, x.sc->limit);
	case TURN:
		if (!w->turns)
			return false;
		w->turns--;
		set_policy(h, !h->turned);
		return true;
	case HOST_ACTIONS:
		break;
	}
	return false;
}

/* --- time ------------------------------------------------------------------------------------- */

static void pass(uint64_t *t, uint64_t ns)
{
	if (*t)
		*t = *t > ns + 1 ? *t - ns : 1;
}

static void pass_host(struct host *h, uint64_t ns)
{
	pass(&h->m.renewed_ns, ns);
	pass(&h->m.retry_ns, ns);
	pass(&h->m.read_ns, ns);
	pass(&h->m.begun_ns, ns);
	pass(&h->m.flight_ns, ns);
	pass(&h->s.got_ns, ns);
	pass(&h->s.applied.until_ns, ns);
	pass(&h->has.until_ns, ns);
	for (uint32_t k = 0; k < LANES; k++) {
		memmove(&h->value[k][1], h->value[k], (TICKS - 1) * sizeof(h->value[k][0]));
		memmove(&h->before[k][1], h->before[k], (TICKS - 1) * sizeof(h->before[k][0]));
		h->value[k][0] = judged_by(&h->has, k);
		h->before[k][0] = 0;
		for (int j = x.memory_ticks; j < TICKS; j++)
			h->value[k][j] = h->before[k][j] = 0;
	}
	if (!h->has.until_ns || h->has.until_ns > NOW)
		return;
	h->has.until_ns = 0;
	for (uint32_t k = 0; k < LANES; k++) {
		h->has.value[k] = h->has.floor;
		h->has.own[k] = false;
	}
	memset(h->has.key, 0, sizeof(h->has.key));
}

static void tick(struct world *w)
{
	for (int i = 0; i < x.sc->hosts; i++) {
		struct host *h = &w->host[i];
		struct key *key = &w->key[i];

		pass_host(h, x.sc->rate[i]);
		h->now.spent += x.sc->store_rate;
		h->late.spent += x.sc->store_rate;
		if (key->session && key->left <= x.sc->store_rate)
			memset(key, 0, sizeof(*key));
		else if (key->session)
			key->left -= x.sc->store_rate;
	}
}

/* Somebody takes the record away. */
static bool take_away(struct world *w)
{
	if (!w->removals || !w->record_revision)
		return false;
	w->removals--;
	memset(&w->record, 0, sizeof(w->record));
	w->record_revision = 0;
	return true;
}

static bool act(struct world *w, int action)
{
	if (action == TIME)
		tick(w);
	else if (action == REMOVE)
		return take_away(w);
	else if (action / HOST_ACTIONS >= x.sc->hosts ||
		 !act_on_host(w, action / HOST_ACTIONS, action % HOST_ACTIONS))
		return false;
	for (int i = 0; i < x.sc->hosts && !x.sc->lazy; i++)
		settle(w, i);
	return true;
}

/* --- what has to hold ------------------------------------------------------------------------- */

static bool sound(const struct world *w)
{
	struct world_result *r = x.result;

	for (uint32_t k = 0; k <= x.sc->lane; k++) {
		uint64_t sum = 0, used = 0;

		for (int i = 0; i < x.sc->hosts; i++) {
			sum += charge(&w->host[i], k);
			used += judged_by(&w->host[i].has, k);
		}
		r->used = most(r->used, used);
		if (sum > x.sc->limit) {
			snprintf(r->fault, sizeof(r->fault),
				 "lane %u: %d admitted within the memory, of %d", k, (int)sum,
				 (int)x.sc->limit);
			return false;
		}
	}
	return true;
}

/* --- the exploration -------------------------------------------------------------------------- */

static uint64_t hash(const struct world *w)
{
	const uint64_t *word = (const uint64_t *)w;
	uint64_t a = 0x9e3779b97f4a7c15ull, b = 0xbf58476d1ce4e5b9ull;

	for (size_t i = 0; i < x.words; i++) {
		if (!word[i])
			continue;
		a = (a ^ (word[i] + i * 0xd6e8feb86659fd93ull)) * 0x9fb21c651e98df25ull;
		a ^= a >> 29;
		b = (b + a) * 0xd6e8feb86659fd93ull;
		b ^= b >> 32;
	}
	return (a ^ b) | 1ull << 63;
}

/* The last byte of what is kept of a state: how many actions led to it, where that is bounded. */
#define DEEP 0xffull

static bool enter(uint64_t state, uint32_t depth)
{
	uint64_t i;

	state = (state & ~DEEP) | (x.sc->deep ? depth : 0);

	if (2 * (x.result->states + 1) > x.slots) {
		uint64_t *old = x.seen, n = x.slots;

		x.slots = n ? 2 * n : 1 << 16;
		x.seen = calloc(x.slots, sizeof(*x.seen));
		assert(x.seen);
		for (i = 0; i < n; i++)
			if (old[i]) {
				uint64_t at = old[i] >> 8 & (x.slots - 1);

				while (x.seen[at])
					at = (at + 1) & (x.slots - 1);
				x.seen[at] = old[i];
			}
		free(old);
	}
	for (i = state >> 8 & (x.slots - 1); x.seen[i]; i = (i + 1) & (x.slots - 1)) {
		if ((x.seen[i] ^ state) & ~DEEP)
			continue;
		if ((x.seen[i] & DEEP) <= (state & DEEP))
			return false;
		x.seen[i] = state; /* it was come to by a longer way */
		return true;
	}
	x.seen[i] = state;
	x.result->states++;
	return true;
}

static void tell(uint32_t depth)
{
	struct world_result *r = x.result;
	size_t at = 0;

	for (uint32_t d = 0; d < depth && at < sizeof(r->trace) - 40; d++) {
		int action = x.path[d].next - 1;

		if (action >= REMOVE)
			at += snprintf(r->trace + at, sizeof(r->trace) - at, "  %s\n",
				       action == TIME ? "a tick" : "the record is taken away");
		else
			at += snprintf(r->trace + at, sizeof(r->trace) - at, "  host %d: %s\n",
				       action / HOST_ACTIONS, action_name[action % HOST_ACTIONS]);
	}
	r->trace_length = depth;
}

static void begin(struct world *w)
{
	const struct world_scenario *sc = x.sc;

	memset(w, 0, sizeof(*w));
	for (int i = 0; i < sc->hosts; i++) {
		struct host *h = &w->host[i];

		h->m.id = i + 1;
		h->m.ttl_ns = sc->ttl;
		h->m.begun_ns = 1;
		h->m.shares = 1;
		h->m.share = &h->s;
		h->token = 1;
		h->s.params.limit = sc->smaller && i == sc->hosts - 1 ? sc->smaller : sc->limit;
		h->s.params.memory_ns = sc->memory;
		h->s.params.reserve = sc->reserve;
		h->s.params.counts_hot = sc->hot;
		h->s.want[0] = sc->limit;
		if (sc->lane)
			memcpy(h->s.want_key[1], KEY, sizeof(KEY));
		fleet_start(&h->m);
	}
	if (!sc->removals) {
		w->record.memory_ns = sc->memory;
		w->record_revision = ++w->revision;
	}
	if (sc->lane) /* so there is a lane when all have joined */
		w->host[0].s.want[1] = sc->limit;
	w->lost = sc->lost;
	w->late = sc->late;
	w->doubled = sc->doubled;
	w->restarts = sc->restarts;
	w->reboots = sc->reboots;
	w->removals = sc->removals;
	w->leaves = sc->leaves;
	w->drops = sc->drops;
	w->wants = sc->wants;
	w->turns = sc->turns;
	w->backs = sc->backs;
	normalize(w);
}

/* A way back: the words that differ in the state before. */
struct undo {
	uint64_t was;
	uint32_t at;
};

/* Keeps what leads from `to` back to `from`. */
static void keep_undo(const struct world *from, const struct world *to)
{
	const uint64_t *was = (const uint64_t *)from, *is = (const uint64_t *)to;

	for (size_t i = 0; i < x.words; i++) {
		if (was[i] == is[i])
			continue;
		if (x.undos == x.undo_room) {
			x.undo_room = x.undo_room ? 2 * x.undo_room : 1 << 16;
			x.undo = realloc(x.undo, x.undo_room * sizeof(*x.undo));
			assert(x.undo);
		}
		x.undo[x.undos++] = (struct undo){was[i], i};
	}
}

static void go_back(struct world *w, size_t to)
{
	while (x.undos > to) {
		x.undos--;
		((uint64_t *)w)[x.undo[x.undos].at] = x.undo[x.undos].was;
	}
}

static void deepen(uint32_t depth)
{
	if (depth < x.room)
		return;
	while (depth >= x.room)
		x.room = x.room ? 2 * x.room : 1 << 12;
	x.path = realloc(x.path, x.room * sizeof(*x.path));
	assert(x.path);
}

/* Every member has joined, and has what it is to have. */
static void join_all(struct world *w)
{
	for (int round = 0; round < 12; round++)
		for (int i = 0; i < x.sc->hosts; i++) {
			act(w, i * HOST_ACTIONS + NUDGE);
			settle(w, i);
			act(w, i * HOST_ACTIONS + CARRY);
			act(w, i * HOST_ACTIONS + ANSWER);
			normalize(w);
			if (round > 3 && round % 2)
				act(w, TIME);
		}
	normalize(w);
}

static void search(void)
{
	static struct world now, then;
	uint32_t depth = 0;

	begin(&now);
	deepen(0);
	x.path[0] = (struct place){0, 0};
	if (x.sc->deep)
		join_all(&now);
	enter(hash(&now), 0);
	for (;;) {
		if (x.path[depth].next == ACTIONS || (x.sc->deep && depth == x.sc->deep)) {
			if (!depth)
				return;
			go_back(&now, x.path[depth--].undos);
			continue;
		}
		memcpy(&then, &now, x.words * sizeof(uint64_t));
		if (!act(&then, x.path[depth].next++))
			continue;
		normalize(&then);
		x.result->steps++;
		if (!enter(hash(&then), depth + 1))
			continue;
		deepen(++depth);
		x.path[depth] = (struct place){x.undos, 0};
		keep_undo(&now, &then);
		memcpy(&now, &then, x.words * sizeof(uint64_t));
		x.result->depth = depth > x.result->depth ? depth : x.result->depth;
		if (!sound(&now)) {
			tell(depth);
			return;
		}
	}
}

static uint64_t random_state;

static uint64_t draw(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % n;
}

/*
 * Time for all to settle: what was on its way is lost, each policy is the changed one, and each
 * host that is there has what it is to have.
 */
static void settle_all(struct world *w)
{
	for (int i = 0; i < x.sc->hosts; i++) {
		struct host *h = &w->host[i];

		h->m.share = &h->s;
		memset(&h->late, 0, sizeof(h->late));
		if (h->now.stage != NONE)
			fleet_lost(&h->m);
		memset(&h->now, 0, sizeof(h->now));
		set_policy(h, true);
		h->s.want[0] = x.sc->limit;
	}
	for (int round = 0; round < 60; round++) {
		for (int i = 0; i < x.sc->hosts; i++) {
			act(w, i * HOST_ACTIONS + NUDGE);
			settle(w, i);
			act(w, i * HOST_ACTIONS + CARRY);
			act(w, i * HOST_ACTIONS + ANSWER);
			settle(w, i);
			normalize(w);
		}
		if (round % 2)
			act(w, TIME);
	}
}

/* Who has left keeps nothing, but where its number was another's: one datapath's of before. */
static bool settled(struct world *w)
{
	uint64_t limit = x.sc->lowered ? x.sc->lowered : x.sc->limit;
	uint64_t sum = 0, here = 0, gone = 0, kept = 0;

	settle_all(w);
	for (int i = 0; i < x.sc->hosts; i++) {
		const struct host *h = &w->host[i];
		const struct fleet_slot *slot = fleet_slot_of(&w->record, h->m.id);

		sum += charge(h, 0);
		if (!h->m.leaving && !h->s.leaving) {
			here++;
			continue;
		}
		gone += charge(h, 0) + h->has.floor;
		gone += slot && (h->left || (h->m.left && !h->m.taken)) ? slot->reserve : 0;
		kept += slot ? slot->reserve : 0;
	}
	if (!gone && sum <= limit && (!here || kept || sum == limit))
		return true;
	snprintf(x.result->fault, sizeof(x.result->fault),
		 "settled, %d have %d of %d, and who has left %d, %d wrongly", (int)here, (int)sum,
		 (int)limit, (int)(kept + gone), (int)gone);
	return false;
}

/* Runs at random, from the beginning each: they come to what is far from it sooner. */
static void walk(void)
{
	static struct world now, then;

	deepen(WALK);
	random_state = 0x9e3779b97f4a7c15ull;
	for (uint32_t run = 0; run < x.sc->walks; run++) {
		begin(&now);
		if (run % 2)
			join_all(&now);
		for (uint32_t d = 0; d < (run % 2 ? WALK / 4 : WALK);) {
			int action = (int)draw(ACTIONS);

			memcpy(&then, &now, x.words * sizeof(uint64_t));
			if (!act(&then, action))
				continue;
			normalize(&then);
			memcpy(&now, &then, x.words * sizeof(uint64_t));
			x.path[d++].next = action + 1;
			x.result->steps++;
			if (!sound(&now)) {
				tell(d);
				return;
			}
		}
		if (x.sc->turns && !settled(&now)) {
			tell(run % 2 ? WALK / 4 : WALK);
			return;
		}
	}
}

void world_explore(const struct world_scenario *scenario, struct world_result *result)
{
	assert(scenario->hosts <= WORLD_HOSTS && scenario->memory / TICK < TICKS);
	memset(result, 0, sizeof(*result));
	x.sc = scenario;
	x.result = result;
	x.memory_ticks = (scenario->memory + TICK - 1) / TICK;
	x.undos = 0;
	x.words = offsetof(struct world, host[0]) / sizeof(uint64_t) +
		  scenario->hosts * sizeof(struct host) / sizeof(uint64_t);
	planted = scenario->fault;
	world_read_ns = scenario->paced ? 2 : 0; /* with two members, a tick or two */
	if (scenario->walks)
		walk();
	else
		search();
	planted = FAULT_NONE;
	free(x.seen);
	x.seen = NULL;
	x.slots = 0;
}
