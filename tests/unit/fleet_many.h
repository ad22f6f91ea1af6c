/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: many hosts of a fleet and its store: user/fleet as it runs, on a virtual clock, with a
 * store that takes 2 ms for a call. So a run takes no time, and is the same each time. One limit,
 * of which the hosts use all of their shares.
 *
 * begin() makes the hosts, step_of() lets them run, end() frees them. It asserts in each step that
 * all shares together are at most the limit.
 */
#ifndef FLEET_MANY_H
#define FLEET_MANY_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/heavy.h"
#include "fleet/member.h"

#define MS	  1000000ull
#define S	  (1000 * MS)
#define CALL_NS	  (2 * MS)   /* half of it to the store */
#define NEWS_NS	  (1 * MS)   /* until a change is told */
#define LOOK_NS	  (250 * MS) /* of an agent, at what came */
#define TTL_NS	  (10 * S)
#define LIMIT	  10000
#define WINDOW_NS (1 * S)

#define KEY "192.0.2.7"

/* A record as it was, or is to be: hosts read it as long as they have it. */
struct version {
	struct fleet_record record;
	uint32_t users;
};

struct host {
	struct fleet_member m;
	struct fleet_share share;
	struct fleet_demand demand;
	struct fleet_heavy heavy;
	uint64_t rate; /* of the key, now */
	struct version *writes;
	uint64_t follows, number, for_session;
	enum fleet_op op;
	uint64_t at_ns;	     /* when it goes on */
	uint64_t carried_ns; /* when its request is at the store; 0: it is not on its way */
	uint64_t answered_ns;
	struct fleet_answer answer;
	uint64_t came;			      /* units, ever */
	uint64_t waits;			      /* how often it had time for something else */
	uint64_t pause_ns;		      /* until then it asks nothing */
	uint64_t read_revision, read_members; /* what it has read before */
	/* What the store has of it. */
	uint64_t session, revision, end_ns;
	struct version *read;
	struct fleet_read was;
};

static struct host *hosts;
static uint64_t *live, *due_ns, n_live; /* due_ns: of each host, when something happens */
static uint64_t joins;			/* sessions that were made */
static uint32_t n_hosts;
static bool by_key;
static struct version *record;
static uint64_t record_revision, revision, now, calls, bytes;
static uint64_t slow_ns; /* what each call takes longer */

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t latest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t state = 0x9e3779b97f4a7c15ull;

static uint32_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20);
}

static uint64_t next_of(const struct host *h)
{
	if (h->carried_ns || h->answered_ns)
		return h->carried_ns ? h->carried_ns : h->answered_ns;
	return h->at_ns > h->pause_ns ? h->at_ns : h->pause_ns;
}

/* --- the store ---------------------------------------------------------------------------------
 */

static struct version *hold(struct version *v)
{
	if (v)
		v->users++;
	return v;
}

static void drop(struct version *v)
{
	if (v && !--v->users)
		free(v);
}

/* About what an answer takes as JSON: sessions that are new, and the record if it is. */
static uint64_t size_of_news(const struct host *h)
{
	uint64_t cells = 0;

	for (uint32_t i = 0; record && i < record->record.slots; i++)
		cells += 1 + record->record.slot[i].cell[1].own;
	return 500 + 350 * (joins - h->read_members) +
	       (h->read_revision == record_revision ? 0 : 4 * (100 + 50 * cells) / 3);
}

static void tell_all(const struct host *but)
{
	for (uint32_t i = 0; i < n_hosts; i++) {
		if (&hosts[i] == but || !hosts[i].m.session)
			continue;
		fleet_nudge(&hosts[i].m); /* before it is to read, nothing is new to it */
		hosts[i].at_ns =
		    earliest(hosts[i].at_ns, latest(now + NEWS_NS, hosts[i].m.read_ns));
		due_ns[i] = next_of(&hosts[i]);
	}
}

/* Nobody's session ends in a run, so the sessions that there were are those that there are. */
static void look(struct host *h)
{
	struct fleet_answer *a = &h->answer;

	bytes += size_of_news(h);
	h->read_revision = record_revision;
	h->read_members = joins;
	h->read = hold(record);
	h->was = (struct fleet_read){record_revision, record ? &record->record : NULL, FLEET_WELL};
	a->read = &h->was;
	a->session = h->session;
	a->revision = h->revision;
	a->mine = true;
	a->lives = (uint32_t)n_live;
	a->live = live;
}

static void write_record(struct host *h)
{
	struct fleet_answer *a = &h->answer;

	bytes += h->writes->record.slots * 50ull;
	a->done = h->follows == record_revision && h->for_session == h->session;
	if (!a->done)
		return;
	drop(record);
	record = hold(h->writes);
	a->revision = record_revision = ++revision;
	a->record = &h->writes->record;
	tell_all(h);
}

static void renew(struct host *h)
{
	h->revision = ++revision;
	if (!h->session) {
		h->session = live[n_live++] = h->revision;
		joins++;
	}
	h->answer.done = true;
	look(h);
}

static uint64_t calls_of(const struct host *h)
{
	return h->op == FLEET_RENEW ? 3 : 1; /* a grant, a transaction, a read */
}

static void carry(struct host *h)
{
	h->answer = (struct fleet_answer){.number = h->number};
	h->carried_ns = 0;
	h->answered_ns = now + CALL_NS / 2 + calls_of(h) * slow_ns / 2;
	calls += calls_of(h);
	if (h->op == FLEET_RENEW)
		renew(h);
	else if (h->op == FLEET_FETCH)
		look(h);
	else
		write_record(h);
}

/* --- a host ------------------------------------------------------------------------------------
 */

static void ask(struct host *h)
{
	const struct fleet_seen seen = {KEY, h->rate * WINDOW_NS / S};

	if (by_key)
		fleet_heavy(&h->heavy, &h->share, h->m.id, &seen, 1, now);
	else if (fleet_demand_is_due(&h->demand, h->m.session ? n_hosts : 0, now))
		h->share.want[0] =
		    fleet_demand(&h->demand, h->share.want[0], h->came, WINDOW_NS, LIMIT, 1, now);
}

static void send_on(struct host *h, const struct fleet_request *r)
{
	h->op = r->op;
	h->number = r->number;
	h->follows = r->follows;
	h->for_session = r->session;
	if (r->op == FLEET_WRITE) {
		h->writes = malloc(sizeof(*h->writes));
		assert(h->writes);
		h->writes->users = 1;
		h->writes->record = r->record;
	}
	h->carried_ns = now + CALL_NS / 2 + calls_of(h) * slow_ns / 2;
	h->at_ns = UINT64_MAX;
}

/* Of many, only the looks that can change anything: the rest cost the run time. */
static uint64_t next_look(const struct host *h)
{
	uint64_t at_ns = now + LOOK_NS;

	while (n_hosts > 8 && !fleet_demand_is_due(&h->demand, n_hosts, at_ns))
		at_ns += LOOK_NS;
	return at_ns;
}

static void go_on(struct host *h)
{
	static struct fleet_request request;
	struct fleet_picture picture;
	uint64_t wake_ns = 0;
	uint32_t share;

	ask(h);
	for (;;) {
		switch (fleet_next(&h->m, now, &share, &picture, &request, &wake_ns)) {
		case FLEET_APPLY:
			fleet_applied(&h->m, share, &picture, NULL);
			continue;
		case FLEET_SEND:
			send_on(h, &request);
			return;
		case FLEET_WAIT:
			h->waits++;
			h->at_ns = earliest(next_look(h), wake_ns);
			return;
		}
	}
}

static void event(struct host *h)
{
	if (h->carried_ns) {
		carry(h);
	} else if (h->answered_ns) {
		bool refused = h->op == FLEET_WRITE && !h->answer.done;
		uint32_t members = h->answer.lives ? h->answer.lives : n_hosts, chance = draw();

		h->answered_ns = 0;
		h->pause_ns = now + (refused ? fleet_pause_ns(members, chance) : 0);
		fleet_answered(&h->m, now, &h->answer);
		drop(h->read);
		drop(h->writes);
		h->read = h->writes = NULL;
		h->at_ns = now;
	} else {
		go_on(h);
	}
}

static void run_until(uint64_t end_ns)
{
	for (;;) {
		uint32_t first = 0;

		for (uint32_t i = 1; i < n_hosts; i++)
			if (due_ns[i] < due_ns[first])
				first = i;
		if (due_ns[first] > end_ns)
			break;
		now = due_ns[first] > now ? due_ns[first] : now;
		event(&hosts[first]);
		due_ns[first] = next_of(&hosts[first]);
	}
	now = end_ns;
}

static void end(void)
{
	for (uint32_t i = 0; i < n_hosts; i++) {
		drop(hosts[i].read);
		drop(hosts[i].writes);
	}
	drop(record);
	free(hosts);
	free(live);
	free(due_ns);
	record = NULL;
	hosts = NULL;
	live = due_ns = NULL;
	n_hosts = 0;
}

static void begin(uint32_t n, uint64_t reserve)
{
	end();
	n_hosts = n;
	hosts = calloc(n, sizeof(*hosts));
	live = calloc(n, sizeof(*live));
	due_ns = calloc(n, sizeof(*due_ns));
	assert(hosts && live && due_ns);
	now = 1000 * S;
	record_revision = calls = bytes = n_live = joins = 0;
	revision = 1;
	for (uint32_t i = 0; i < n; i++) {
		struct host *h = &hosts[i];

		h->m.id = i + 1;
		h->m.ttl_ns = TTL_NS;
		h->m.shares = 1;
		h->m.share = &h->share;
		h->share.params = (struct fleet_params){
		    .limit = LIMIT, .memory_ns = WINDOW_NS, .reserve = reserve};
		h->share.want[0] = LIMIT;
		h->at_ns = now + (uint64_t)i * TTL_NS / 3 / n; /* renewals are spread */
		fleet_start(&h->m);
		due_ns[i] = h->at_ns;
	}
}

static uint64_t share_of(const struct host *h)
{
	const struct fleet_picture *p = &h->share.applied;
	uint32_t lane = 0;

	for (uint32_t k = 1; k < FLEET_LANES_MAX && by_key; k++)
		if (p->own[k] && !strcmp(p->key[k], KEY))
			lane = k;
	return now < p->until_ns ? p->value[lane] : p->floor;
}

/* Units a second that come to a host, since_ns after the beginning. */
typedef uint64_t comes(uint32_t host, uint64_t since_ns);

/* What is used in a step, of the units of all that may be. */
static uint64_t step_of(comes *to, uint64_t since_ns, uint64_t step_ns)
{
	uint64_t used = 0, all = 0;

	run_until(now + step_ns);
	for (uint32_t i = 0; i < n_hosts; i++) {
		uint64_t rate = to(i, since_ns), share = share_of(&hosts[i]);

		hosts[i].came += rate * step_ns / S;
		hosts[i].rate = rate;
		used += rate < share ? rate : share;
		all += share;
	}
	assert(all <= LIMIT);
	return used;
}

#endif
