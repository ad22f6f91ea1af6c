/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much of a fleet's limit its hosts use, and what that costs the store: user/fleet as it runs,
 * on a virtual clock, with a store that takes 2 ms for a call. So a run takes no time, and has the
 * same figures each time. Hosts use all of their shares: what a limiter's own slots cost is not in
 * it.
 *
 *   fleet            a row of JSON for each: how demand lies, and of how many hosts
 *   fleet HOSTS      the store's load by so many hosts that join at once, and then rest
 */
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/heavy.h"
#include "fleet/member.h"
#include "fleet/talk.h"

#define MS	  1000000ull
#define S	  (1000 * MS)
#define CALL_NS	  (2 * MS)   /* half of it to the store */
#define NEWS_NS	  (1 * MS)   /* until a change is told */
#define LOOK_NS	  (250 * MS) /* of an agent, at what came */
#define STEP_NS	  (10 * MS)  /* in which demand and use are counted */
#define TTL_NS	  (10 * S)
#define LIMIT	  10000
#define WINDOW_NS (1 * S)
#define SETTLE_NS (60 * S) /* a new limit waits for its window and 20 s */
#define MOVE_NS	  (30 * S)

#define KEY "192.0.2.7"

/* Of all packets, or of one key, which needs a lane. */
enum lie { EVEN, SKEWED, MOVING, KEY_ALONE, KEY_SKEWED, KEY_MOVING };

struct host {
	struct fleet_member m;
	struct fleet_share share;
	struct fleet_demand demand;
	struct fleet_heavy heavy;
	uint64_t rate; /* of the key, now */
	struct fleet_request request;
	uint64_t at_ns;	     /* when it goes on */
	uint64_t carried_ns; /* when its request is at the store; 0: it is not on its way */
	uint64_t answered_ns;
	struct fleet_answer answer;
	uint64_t came;	   /* units, ever */
	uint64_t pause_ns; /* until then it asks nothing */
	/* What the store has of it. */
	uint64_t session, revision, end_ns;
	struct fleet_record read;
	struct fleet_read was;
};

static struct host *hosts;
static uint64_t *live;
static uint32_t n_hosts;
static bool by_key;
static struct fleet_record record;
static uint64_t record_revision, revision, now, calls, bytes;

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t state = 0x9e3779b97f4a7c15ull;

static uint32_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20);
}

/* --- the store ---------------------------------------------------------------------------------
 */

/* Its size as JSON, about: what an answer with all records and sessions takes. */
static uint64_t size_of_all(void)
{
	return 100 + 150ull * n_hosts + 200 + 165ull * (1 + by_key) * record.slots;
}

static void tell_all(const struct host *but)
{
	for (uint32_t i = 0; i < n_hosts; i++) {
		if (&hosts[i] == but || !hosts[i].m.session)
			continue;
		fleet_nudge(&hosts[i].m);
		hosts[i].at_ns = earliest(hosts[i].at_ns, now + NEWS_NS);
	}
}

static void look(struct host *h)
{
	struct fleet_answer *a = &h->answer;

	h->read = record;
	h->was =
	    (struct fleet_read){record_revision, record_revision ? &h->read : NULL, FLEET_WELL};
	a->read = &h->was;
	a->session = h->session;
	a->revision = h->revision;
	a->mine = true;
	a->lives = 0;
	for (uint32_t i = 0; i < n_hosts; i++)
		if (hosts[i].session && now < hosts[i].end_ns)
			live[a->lives++] = hosts[i].session;
	a->live = live; /* of now: nobody's ends in a run */
	bytes += size_of_all();
}

static void write_record(struct host *h)
{
	struct fleet_answer *a = &h->answer;

	a->done = h->request.follows == record_revision && h->request.session == h->session;
	if (!a->done)
		return;
	record = h->request.record;
	a->revision = record_revision = ++revision;
	a->record = &h->request.record;
	tell_all(h);
}

static void carry(struct host *h)
{
	struct fleet_request *r = &h->request;

	h->answer = (struct fleet_answer){.number = r->number};
	h->carried_ns = 0;
	h->answered_ns = now + CALL_NS / 2;
	calls += 1 + (r->op == FLEET_RENEW);
	switch (r->op) {
	case FLEET_RENEW:
		h->revision = ++revision;
		h->session = h->session ? h->session : h->revision;
		h->end_ns = now + TTL_NS;
		h->answer.done = true;
		look(h);
		break;
	case FLEET_FETCH:
		look(h);
		break;
	case FLEET_WRITE:
		write_record(h);
		break;
	default:
		break;
	}
}

/* --- a host ------------------------------------------------------------------------------------
 */

static void ask(struct host *h)
{
	const struct fleet_seen seen = {KEY, h->rate * WINDOW_NS / S};

	if (by_key)
		fleet_heavy(&h->heavy, &h->share, h->m.id, &seen, 1, now);
	else
		h->share.want[0] =
		    fleet_demand(&h->demand, h->share.want[0], h->came, WINDOW_NS, LIMIT, now);
}

static void go_on(struct host *h)
{
	struct fleet_picture picture;
	uint64_t wake_ns = 0;
	uint32_t share;

	ask(h);
	for (;;) {
		switch (fleet_next(&h->m, now, &share, &picture, &h->request, &wake_ns)) {
		case FLEET_APPLY:
			fleet_applied(&h->m, share, &picture, NULL);
			continue;
		case FLEET_SEND:
			h->carried_ns = now + CALL_NS / 2;
			h->at_ns = UINT64_MAX;
			return;
		case FLEET_WAIT:
			h->at_ns = earliest(now + LOOK_NS, wake_ns);
			return;
		}
	}
}

static uint64_t next_of(const struct host *h)
{
	if (h->carried_ns || h->answered_ns)
		return h->carried_ns ? h->carried_ns : h->answered_ns;
	return h->at_ns > h->pause_ns ? h->at_ns : h->pause_ns;
}

static void event(struct host *h)
{
	if (h->carried_ns) {
		carry(h);
	} else if (h->answered_ns) {
		bool refused = h->request.op == FLEET_WRITE && !h->answer.done;

		h->answered_ns = 0;
		h->pause_ns =
		    now +
		    talk_pause_ns(refused, h->answer.lives ? h->answer.lives : n_hosts, draw());
		fleet_answered(&h->m, now, &h->answer);
		h->at_ns = now;
	} else {
		go_on(h);
	}
}

static void run_until(uint64_t end_ns)
{
	for (;;) {
		struct host *first = &hosts[0];

		for (uint32_t i = 1; i < n_hosts; i++)
			if (next_of(&hosts[i]) < next_of(first))
				first = &hosts[i];
		if (next_of(first) > end_ns)
			break;
		now = next_of(first) > now ? next_of(first) : now;
		event(first);
	}
	now = end_ns;
}

static void begin(uint32_t n)
{
	n_hosts = n;
	free(hosts);
	free(live);
	hosts = calloc(n, sizeof(*hosts));
	live = calloc(n, sizeof(*live));
	assert(hosts && live);
	memset(&record, 0, sizeof(record));
	now = 1000 * S;
	record_revision = calls = bytes = 0;
	revision = 1;
	for (uint32_t i = 0; i < n; i++) {
		struct host *h = &hosts[i];

		h->m.id = i + 1;
		h->m.ttl_ns = TTL_NS;
		h->m.shares = 1;
		h->m.share = &h->share;
		h->share.params = (struct fleet_params){.limit = LIMIT, .memory_ns = WINDOW_NS};
		h->share.want[0] = LIMIT;
		h->at_ns = now + (uint64_t)i * TTL_NS / 3 / n; /* renewals are spread */
		fleet_start(&h->m);
	}
}

/* --- demand ------------------------------------------------------------------------------------
 */

/* Units a second that come to a host: twice the limit to all. */
static uint64_t comes(enum lie lie, uint32_t i, uint64_t since_ns)
{
	bool moving = lie == MOVING || lie == KEY_MOVING;
	uint32_t heavy = moving ? since_ns / MOVE_NS % n_hosts : 0;

	if (lie == KEY_ALONE)
		return i == heavy ? 2 * LIMIT : 0;
	if (lie == EVEN || n_hosts == 1)
		return 2 * LIMIT / n_hosts;
	return i == heavy ? 2 * LIMIT * 9 / 10 : 2 * LIMIT / 10 / (n_hosts - 1);
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

/* What is used in a step, of the units of all that may be. */
static uint64_t step(enum lie lie, uint64_t since_ns)
{
	uint64_t used = 0, all = 0;

	run_until(now + STEP_NS);
	for (uint32_t i = 0; i < n_hosts; i++) {
		uint64_t rate = comes(lie, i, since_ns), share = share_of(&hosts[i]);

		hosts[i].came += rate * STEP_NS / S;
		hosts[i].rate = rate;
		used += rate < share ? rate : share;
		all += share;
	}
	assert(all <= LIMIT);
	return used;
}

static void measure(const char *name, enum lie lie, uint32_t n)
{
	const uint64_t steps = 180 * S / STEP_NS;
	uint64_t used = 0, settled = 0, n_settled = 0, most_calls = 0, begun;

	by_key = lie >= KEY_ALONE;
	begin(n);
	for (begun = now; now - begun < SETTLE_NS;)
		step(lie, 0);
	calls = 0;
	begun = now;
	for (uint64_t i = 0, before = 0; i < steps; i++) {
		uint64_t of = step(lie, now - begun);

		used += of;
		if ((now - begun) % MOVE_NS > MOVE_NS / 2) {
			settled += of;
			n_settled++;
		}
		if (i % (S / STEP_NS) == S / STEP_NS - 1) {
			most_calls = calls - before > most_calls ? calls - before : most_calls;
			before = calls;
		}
	}
	printf("{\"part\":\"fleet\",\"name\":\"%s\",\"hosts\":%u,\"used\":%.4f,\"settled\":%.4f,"
	       "\"calls_per_s\":%.2f,\"most_calls_per_s\":%.2f}\n",
	       name, n, (double)used / steps / LIMIT, (double)settled / n_settled / LIMIT,

	       (double)calls / ((double)steps * STEP_NS / S) / n, (double)most_calls / n);
	fflush(stdout);
}

/* Many that join within a third of a session's time. */
static void load(uint32_t n)
{
	uint64_t begun, joined = 0, most = 0;

	begin(n);
	begun = now;
	for (uint64_t before = 0; now - begun < 300 * S && !joined; before = calls) {
		uint32_t sure = 0;

		run_until(now + S);
		most = calls - before > most ? calls - before : most;
		for (uint32_t i = 0; i < n; i++)
			sure += share_of(&hosts[i]) > 0;
		joined = sure == n ? (now - begun) / S : 0;
	}
	run_until(now + 120 * S);
	calls = bytes = 0;
	run_until(now + 60 * S);
	printf("{\"part\":\"fleet\",\"name\":\"many\",\"hosts\":%u,\"joined_s\":%" PRIu64
	       ",\"most_calls_per_s\":%" PRIu64
	       ",\"calls_per_s\":%.2f,\"MB_per_s\":%.3f,\"record_bytes\":%d}\n",
	       n, joined, most, calls / 60.0, bytes / 60.0 / 1e6, 200 + 165 * (int)record.slots);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum lie lie;
	} rows[] = {{"even", EVEN},
		    {"skewed", SKEWED},
		    {"moving", MOVING},
		    {"a key, of one host", KEY_ALONE},
		    {"a key, skewed", KEY_SKEWED},
		    {"a key, moving", KEY_MOVING}};

	if (argc > 1) {
		load((uint32_t)atoi(argv[1]));
		return 0;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t n = 1; n <= 8; n *= 2)
			measure(rows[i].name, rows[i].lie, n);
	free(hosts);
	free(live);
	return 0;
}
