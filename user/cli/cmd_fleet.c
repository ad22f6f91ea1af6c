/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fleet: the agent of a fleet (docs/fleet.md). It carries what the member decides to the store and
 * to the packets, and decides nothing itself. Packets never wait for it: what they are judged by
 * ends by itself when it does not go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/fleet_items.h"
#include "cli/fleet_keys.h"
#include "cli/fleet_number.h"
#include "cli/fleet_policy.h"
#include "cli/notify.h"
#include "cli/several.h"
#include "config/cause.h"
#include "config/file_lock.h"
#include "config/text.h"
#include "config/whole_path.h"
#include "estimate/heaviest.h"
#include "fleet/talk.h"
#include "live/clocks.h"
#include "live/copies.h"
#include "live/fleet_shares.h"
#include "live/host.h"
#include "live/reading.h"
#include "live/sole_agent.h"
#include "plan/shares.h"

#define SECOND_NS  1000000000ull
#define TTL_S	   10
#define TIMEOUT_MS 2000
#define LEAVE_MS   4000 /* for what is to be given back at the end */
#define LOOK_MS	   250	/* at signals, and at whether the policy has changed */
#define ITEMS_MS   100	/* where bans or sets are shared; a tenth of it while there are many */

/* Why the store has not answered since it did last, of each of its endpoints. */
struct outage {
	char why[STORE_ENDPOINTS_MAX][STORE_WHY];
	uint32_t n;
};

struct agent {
	const char *ifname;
	struct attached a;
	uint64_t serial;   /* of the policy that `of` is of, */
	uint64_t since_ns; /* and since when it is in force, at the latest */
	uint32_t copy;
	struct policy_fleet fleet;
	struct fleet_divided of;
	struct fleet_member member;
	struct talk talk;
	struct fleet_items items;
	const struct store_kind *kind;
	struct fleet_number number;
	int sole_fd;			/* one agent has the state; -1: another has it, or nobody */
	uint64_t retry_ns, leave_by_ns; /* leave_by_ns 0: it goes on */
	bool moved;			/* its policy is of this fleet no more: it leaves */
	bool anew;			/* it ends with all that it has, to begin by other files */
	bool slow;			/* a renewal takes a third of the session, or more */
	char said[STORE_WHY];		/* the last complaint, which is not said twice */
	struct outage down, unshared;	/* of its limits; of what hosts share */
};

/* --- what is said ---------------------------------------------------------------------------- */

static void tell(const struct agent *g, const char *text)
{
	char own[IF_NAMESIZE + 2];
	bool named;

	snprintf(own, sizeof(own), "%s: ", g->ifname);
	named = !strncmp(text, own, strlen(own));
	complaint("%s%s", named ? "" : own, printable(text).text);
}

/* Once, until something else is. */
__attribute__((format(printf, 2, 3))) static void say(struct agent *g, const char *format, ...)
{
	char text[sizeof(g->said)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!strcmp(text, g->said))
		return;
	snprintf(g->said, sizeof(g->said), "%s", text);
	tell(g, text);
	(void)notify_status("%s", printable(text).text);
}

/* Its endpoints are asked one after the other. Is this cause none of those before? */
static bool is_news(struct outage *o, const char *why)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (cause_same(o->why[i], why))
			return false;
	if (o->n < STORE_ENDPOINTS_MAX)
		snprintf(o->why[o->n++], STORE_WHY, "%s", why);
	return true;
}

/* Each cause is said once, until the store answers. */
static void say_down(struct agent *g, const char *why)
{
	if (is_news(&g->down, why))
		say(g, "%s", why);
}

/* Likewise, until it answers to what hosts share. What its limits lack is not said once more. */
static void say_unshared(struct agent *g, const char *why)
{
	if (is_news(&g->unshared, why) && is_news(&g->down, why))
		tell(g, why);
}

/* The name of a rule of the fleet's policy, for a line. */
static struct printable rule_name(const struct agent *g, size_t rule)
{
	struct policy_error unused = {0};
	struct policy *policy = copies_policy(&g->a, copies_in_force(&g->a), &unused);
	struct printable name =
	    printable(policy && !g->moved && rule < policy->n_rules ? policy->rule[rule].name
								    : "that is gone");

	policy_free(policy);
	return name;
}

static const char *trouble_text(enum fleet_trouble trouble)
{
	static const char *const texts[] = {
	    [FLEET_WELL] = "",
	    [FLEET_SMALLER] = "another member's policy has a smaller limit, which holds: see that "
			      "their policies are the same",
	    [FLEET_CROWDED] = "it has no share: a limit is divided among 1,024 members at most",
	    [FLEET_OTHER_VERSION] =
		"it has no share: its record is of another version of xdp-pacer: "
		"upgrade the hosts one after the other, or give the fleet "
		"another name",
	    [FLEET_STRANGE] = "it has no share: what lies in its place in the store is no record: "
			      "stop the agents of hosts that are cut off, then remove it",
	    [FLEET_UNSOUND] = "it has no share: the numbers in its record are not possible: "
			      "stop the agents of hosts that are cut off, then remove it",
	    [FLEET_OTHER_WINDOW] = "it has no share: in the store it counts for another time",
	    [FLEET_WENT_BACK] = "the store has forgotten what it had: stop the members for their "
				"session's time and the longest window, then start them",
	};

	return texts[trouble];
}

/* A limit of which not each member has enough for a packet; NULL: there is none. */
static const struct fleet_limit *scarce(const struct agent *g)
{
	for (uint32_t i = 0; i < g->member.shares; i++) {
		const struct fleet_share *s = &g->member.share[i];

		if (s->sure && !s->leaving &&
		    shares_parts(&g->of.limit[i].limiter) < g->talk.members)
			return &g->of.limit[i];
	}
	return NULL;
}

static void say_scarce(struct agent *g, const struct fleet_limit *limit)
{
	const uint64_t units = shares_units(&limit->limiter), parts = shares_parts(&limit->limiter);

	if (units < g->talk.members)
		say(g,
		    "a limit of rule %s: it has fewer units (%" PRIu64 ") than members (%u): those "
		    "without one deny, until another gives one up: raise the limit, or leave "
		    "fleet: yes out",
		    rule_name(g, limit->rule).text, units, g->talk.members);
	else
		say(g,
		    "a limit of rule %s: it has room for fewer packets (%" PRIu64
		    ") at once than members (%u): an equal part lets none of them through: "
		    "raise the limit, or leave fleet: yes out",
		    rule_name(g, limit->rule).text, parts, g->talk.members);
}

/* Does the part that this host keeps for when it is cut off let a packet through? */
static bool keeps_a_packet(const struct agent *g, uint32_t i)
{
	const struct pacer_limiter *t = &g->of.limit[i].limiter;
	uint64_t parts = shares_parts(t), units = shares_units(t);

	return parts && fleet_reserve(&g->member, &g->member.share[i]) >= (units - 1) / parts + 1;
}

/* A limit of which too little can be kept for that; NULL: there is none. */
static const struct fleet_limit *keeps_none(const struct agent *g)
{
	for (uint32_t i = 0; i < g->member.shares && g->fleet.local; i++) {
		const struct fleet_share *s = &g->member.share[i];

		if (s->sure && !s->leaving && !keeps_a_packet(g, i))
			return &g->of.limit[i];
	}
	return NULL;
}

/* Of members that are gone, a quarter of a limit or more. */
static bool is_kept(const struct fleet_share *s)
{
	return fleet_reserves(&s->record, true) >= (fleet_limit(&s->record) + 3) / 4;
}

/* A limit of which too much is kept for hosts that are cut off. False: there is none. */
static bool say_kept(struct agent *g)
{
	for (uint32_t i = 0; i < g->member.shares; i++) {
		const struct fleet_share *s = &g->member.share[i];
		const uint64_t gone = fleet_reserves(&s->record, true);
		const uint64_t all = fleet_reserves(&s->record, false);

		if (!s->sure || s->leaving || !is_kept(s))
			continue;
		say(g,
		    "a limit of rule %s: of its %" PRIu64 " units %" PRIu64
		    " are kept for members that may be cut off, %" PRIu64
		    " of them for those that are not there: see \"cut_off\" in docs/fleet.md",
		    rule_name(g, g->of.limit[i].rule).text, fleet_limit(&s->record), all, gone);
		return true;
	}
	return false;
}

static void say_state(struct agent *g)
{
	const struct fleet_member *m = &g->member;
	const struct fleet_limit *few;
	enum fleet_trouble worst = FLEET_WELL;
	size_t rule = 0, n = g->of.n - g->of.past;

	for (uint32_t i = 0; i < m->shares; i++)
		if (m->share[i].trouble > worst && !m->share[i].leaving) {
			worst = m->share[i].trouble;
			rule = g->of.limit[i].rule;
		}
	if (m->taken)
		say(g,
		    "another host, or this one before it was loaded anew, has its number in fleet "
		    "%s: this waits until that is gone; if both are up, remove the file of "
		    "--state on one of them",
		    g->fleet.name);
	else if (worst != FLEET_WELL)
		say(g, "a limit of rule %s: %s%s%s", rule_name(g, rule).text, trouble_text(worst),
		    *g->talk.why ? ": " : "", g->talk.why);
	else if ((few = scarce(g)))
		say_scarce(g, few);
	else if (say_kept(g))
		return;
	else if ((few = keeps_none(g)))
		say(g,
		    "a limit of rule %s: this host has no reserve of it that lets a packet "
		    "through "
		    "(cut_off: local), since it is too small for %u member%s: it denies when it is "
		    "cut off",
		    rule_name(g, few->rule).text, g->talk.members, g->talk.members == 1 ? "" : "s");
	else if (g->talk.strangers)
		say(g,
		    "%u limit%s in use by others of fleet %s: not in this policy: see that "
		    "their policies are the same",
		    g->talk.strangers, g->talk.strangers == 1 ? " is" : "s are", g->fleet.name);
	else if (g->slow)
		say(g,
		    "the store is slow: to renew the session of 10 s takes more than 3 s: shares, "
		    "bans and sets change late, from 4 s on not at all, and from 5 s on shares "
		    "lapse: look at its load, and at the way to it");
	else if (m->session)
		say(g, "%zu limit%s divided in fleet %s of %u member%s", n,
		    n == 1 ? " is" : "s are", g->fleet.name, g->talk.members,
		    g->talk.members == 1 ? "" : "s");
}

/* --- the policy ------------------------------------------------------------------------------ */

static const char *const no_fleet = "its policy is of no fleet: write fleet: {store: [...], "
				    "name: edge} into it";

static int read_fleet(struct agent *g, struct policy_error *error)
{
	struct policy *policy = copies_policy(&g->a, copies_in_force(&g->a), error);
	const char *why = NULL;

	if (!policy)
		return -1;
	g->anew = g->talk.store && policy->fleet.on &&
		  !fleet_is_another(&g->fleet, &policy->fleet) &&
		  fleet_is_called_otherwise(&g->fleet, &policy->fleet);
	if (!policy->fleet.on)
		why = no_fleet;
	else if (g->talk.store && fleet_is_another(&g->fleet, &policy->fleet))
		why = "its fleet is another now: start the agent again";
	else if (g->anew)
		why = "its policy names other files for TLS: start the agent again within 10 s";
	else
		g->fleet = policy->fleet;
	if (!why)
		fleet_items_begin(&g->items, &g->a, policy, g->copy, g->serial);
	policy_free(policy);
	return why ? policy_fail(error, 0, "%s: %s", g->ifname, why) : 0;
}

/* Gives back what it has, for LEAVE_MS at most. */
static void leave(struct agent *g)
{
	if (g->leave_by_ns)
		return;
	g->leave_by_ns = host_now_ns() + LEAVE_MS * 1000000ull;
	fleet_leave(&g->member);
	(void)notify_stopping("giving its shares back");
}

static bool changed(const struct agent *g)
{
	uint32_t copy = copies_in_force(&g->a);

	return copy != g->copy || g->a.copy[copy].policy.serial != g->serial;
}

/* As the policy in force has it. */
static int follow(struct agent *g, struct policy_error *error)
{
	attached_sampled(&g->a);
	g->copy = copies_in_force(&g->a);
	g->serial = g->a.copy[g->copy].policy.serial;
	g->since_ns = host_now_ns();
	if (read_fleet(g, error))
		return -1;
	if (fleet_divide(&g->of, &g->member, &g->a, &g->fleet, error))
		return -1;
	fleet_nudge(&g->member);
	return 0;
}

/* --- the store ------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	return host_now_ns();
}

static int open_store(struct agent *g)
{
	struct store_options o = {.endpoints = g->fleet.n_stores, .timeout_ms = TIMEOUT_MS};
	static char ca[PATH_MAX], cert[PATH_MAX], key[PATH_MAX]; /* which errors name, whole */
	char prefix[64], why[STORE_WHY];

	for (size_t i = 0; i < o.endpoints; i++)
		o.endpoint[i] = g->fleet.store[i];
	o.ca = *g->fleet.ca ? whole_path(g->fleet.ca, ca, sizeof(ca)) : NULL;
	o.cert = *g->fleet.cert ? whole_path(g->fleet.cert, cert, sizeof(cert)) : NULL;
	o.key = *g->fleet.key ? whole_path(g->fleet.key, key, sizeof(key)) : NULL;
	snprintf(prefix, sizeof(prefix), "/xdp-pacer/%s/", g->fleet.name);
	o.prefix = prefix;
	o.first = TALK_FIRST;
	o.last = TALK_LAST;
	g->kind = &store_etcd;
	g->talk.store = g->kind->open(&o, why);
	if (!g->talk.store)
		return gave_up("fleet", why);
	g->talk.kind = g->items.exchange.kind = g->kind;
	g->items.exchange.store = g->talk.store;
	g->talk.member = &g->member;
	g->talk.ttl_s = TTL_S;
	g->talk.now_ns = now_ns;
	g->talk.share_id = g->of.id;
	return EXIT_DONE;
}

/* --- demand ---------------------------------------------------------------------------------- */

static uint8_t cost_of(const struct pacer_limiter *t)
{
	enum pacer_limiter_kind kind = pacer_limiter_kind_of(t);

	return kind == PACER_LIMITER_WINDOW ? t->window.cost
	       : kind == PACER_LIMITER_RATE ? t->rate.cost
					    : PACER_COST_PACKETS;
}

/* Packets or bytes that came to the limit's rule: what the limit counts of them. */
static int count(const struct agent *g, const struct fleet_limit *limit, uint64_t *counted)
{
	bool bytes = cost_of(&limit->limiter) == PACER_COST_BYTES;
	struct pacer_counters sum;

	*counted = 0;
	if (reading_counters(&g->a, limit->counter, &sum))
		return -1;
	for (size_t i = 0; i < PACER_REASON_COUNT; i++)
		*counted += bytes ? sum.by[i].bytes : sum.by[i].packets;
	return 0;
}

/* What a limit of all packets together needs here. */
static void ask_for_all(const struct agent *g, size_t i, struct fleet_demand *d)
{
	struct fleet_share *s = &g->member.share[i];
	uint64_t at_ns = host_now_ns(), counted;

	if (!fleet_demand_is_due(d, g->talk.members, at_ns) || count(g, &g->of.limit[i], &counted))
		return;
	s->want[0] = fleet_demand(d, s->want[0], counted, shares_span_ns(&g->of.limit[i].limiter),
				  s->params.limit, g->talk.members, at_ns);
}

/*
 * What single keys need here beyond equal parts. Where admitted packets are not sampled, a key that
 * is denied some is taken to use all that it has.
 */
static void ask_for_keys(struct agent *g, size_t i)
{
	const struct fleet_limit *limit = &g->of.limit[i];
	const struct heaviest_of of = {&limit->limiter, limit->counter, cost_of(&limit->limiter),
				       shares_span_ns(&limit->limiter)};
	struct heaviest_key key[HEAVIEST_MAX];
	struct fleet_seen seen[HEAVIEST_MAX];
	struct fleet_held held;
	struct policy_error error = {0};
	size_t n = 0;
	int found;

	if (host_now_ns() < g->of.heavy[i].due_ns)
		return;
	held = fleet_held(&g->a, limit);
	found = heaviest_read(&g->a, &of, key, &error);
	if (found < 0)
		say(g, "%s", error.text);
	for (int k = 0; k < found; k++) {
		if (!fleet_key_text(limit, &key[k].pkt, seen[n].key))
			continue;
		seen[n].units = key[k].units;
		if (!heaviest_of_admitted(&g->a))
			seen[n].units += fleet_judged_by(limit, &held, &key[k].pkt);
		n++;
	}
	fleet_heavy(&g->of.heavy[i], &g->member.share[i], g->member.id, seen, n, host_now_ns());
}

static void ask_for(struct agent *g, size_t i)
{
	if (g->of.limit[i].limiter.key_id)
		ask_for_keys(g, i);
	else
		ask_for_all(g, i, &g->of.demand[i]);
}

/* --- the loop -------------------------------------------------------------------------------- */

/*
 * What the limit has admitted within its time, where that is known: a policy that is new may count
 * some of it in other places. It is looked whether the policy is new after that was read.
 */
static uint64_t hot_of(struct agent *g, uint32_t share)
{
	uint64_t memory_ns = fleet_over(g->member.share[share].params.memory_ns);
	uint64_t hot = fleet_hot(&g->a, &g->of.limit[share]);

	if (g->member.share[share].leaving || g->moved) /* another may count in its place */
		return UINT64_MAX;
	return host_now_ns() - g->since_ns > memory_ns && !changed(g) ? hot : UINT64_MAX;
}

/*
 * No packet is, of a limit that has left the policy and whose place is another's by now, nor of a
 * fleet before.
 */
static bool is_judged_by(const struct agent *g, uint32_t share)
{
	return !g->moved &&
	       (!g->member.share[share].leaving || fleet_held(&g->a, &g->of.limit[share]).is);
}

static bool apply(struct agent *g, uint32_t share, const struct fleet_picture *p)
{
	uint64_t hot[FLEET_LANES_MAX];
	struct policy_error error = {0};

	if (fleet_settle(&g->of, &g->a, &error) ||
	    (is_judged_by(g, share) && fleet_tell(&g->of, &g->a, share, p, &error))) {
		say(g, "%s", error.text);
		return false;
	}
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) /* a throttle has no lanes */
		hot[k] = k ? UINT64_MAX : hot_of(g, share);
	fleet_applied(&g->member, share, p, hot);
	return true;
}

static bool stopped(struct agent *g, uint32_t wait_ms)
{
	if (g->leave_by_ns)
		(void)poll(NULL, 0, (int)wait_ms);
	else if (ends_wait(wait_ms * 1000000ull))
		leave(g);
	return g->leave_by_ns && (fleet_gone(&g->member) || host_now_ns() >= g->leave_by_ns);
}

/* Of shares it is said with them. */
static void went_back(struct agent *g)
{
	g->talk.back = false;
	if (!g->items.any)
		return;
	fleet_items_anew(&g->items);
	if (!g->member.went_back)
		say(g, "the store has forgotten what it had: what this host shares is told again");
}

static void ask(struct agent *g, const struct fleet_request *request)
{
	const uint64_t sent_ns = host_now_ns();
	uint32_t chance;

	if (talk_send(&g->talk, request)) {
		if (request->op == FLEET_RENEW)
			g->slow = host_now_ns() - sent_ns > g->member.ttl_ns / 3;
		g->down.n = 0;
		if (g->talk.back)
			went_back(g);
		if (g->talk.lost.id &&
		    fleet_give_back(&g->of, &g->member, &g->fleet, &g->talk.lost))
			fleet_nudge(&g->member);
		fleet_say_all(&g->of, &g->a, g->talk.members, g->talk.answered_ns);
		if (g->talk.refused && getrandom(&chance, sizeof(chance), 0) == sizeof(chance))
			g->retry_ns = host_now_ns() + fleet_pause_ns(g->talk.members, chance);
		if (!g->leave_by_ns)
			say_state(g);
		return;
	}
	say_down(g, talk_why(&g->talk));
	g->retry_ns = host_now_ns() + SECOND_NS / 2;
}

static void unwatched(struct agent *g)
{
	exchange_missed(&g->items.exchange);
	if (talk_unwatched(&g->talk))
		tell(g, talk_why(&g->talk));
}

/* Until there is something to do, or LOOK_MS have passed. */
static void wait_for(struct agent *g, uint64_t wake_ns)
{
	uint64_t at_ns = host_now_ns(), ms = wake_ns > at_ns ? (wake_ns - at_ns) / 1000000 + 1 : 1;
	struct exchange *items = &g->items.exchange;
	int seen;

	if (ms > LOOK_MS)
		ms = LOOK_MS;
	if (g->items.any && ms > ITEMS_MS)
		ms = exchange_waits(items) ? ITEMS_MS / 10 : ITEMS_MS;
	seen = talk_watch(&g->talk, g->items.any ? items->revision : 0, (uint32_t)ms);
	if (seen > 0 && seen & TALK_RECORDS)
		fleet_nudge(&g->member);
	if (seen > 0 && seen & TALK_ITEMS)
		items->stale = true;
	if (seen >= 0)
		exchange_quiet(items, g->talk.heard_ns);
	else if (seen != TALK_LATER)
		unwatched(g);
	if (seen < 0)
		(void)stopped(g, (uint32_t)ms);
}

/* The bans that are shared, where nothing else is to be done. False: the store did not answer. */
static bool share_items(struct agent *g)
{
	struct policy_error error = {0};
	bool live = host_now_ns() < fleet_end_ns(&g->member);
	char guard[TALK_KEY];
	bool well;

	g->items.answered_ns = g->talk.answered_ns;
	talk_guard(&g->talk, guard);
	well = fleet_items_step(&g->items, &g->a, guard, live ? g->member.session : 0, &error);
	if (g->items.exchange.back)
		went_back(g);
	if (g->items.exchange.odd[0])
		say(g, "%s", g->items.exchange.odd);
	g->items.exchange.odd[0] = 0;
	if (well) {
		if (!exchange_waits(
			&g->items.exchange)) /* to read may do where to write does not */
			g->unshared.n = 0;
		return true;
	}
	say_unshared(g, *error.text ? error.text
			: g->items.exchange.starved
			    ? "no memory for what hosts share: it is tried again"
			    : talk_why(&g->talk));
	g->retry_ns = host_now_ns() + SECOND_NS / 2;
	return false;
}

/* One thing that is to be done. False: it could not be, and is tried again later. */
static void step(struct agent *g)
{
	static struct fleet_request request;
	struct fleet_picture picture;
	uint64_t at_ns = host_now_ns(), wake_ns = 0;
	uint32_t share;

	if (g->retry_ns > at_ns) {
		(void)stopped(g, (uint32_t)((g->retry_ns - at_ns) / 1000000 + 1));
		return;
	}
	g->retry_ns = 0;
	switch (fleet_next(&g->member, at_ns, &share, &picture, &request, &wake_ns)) {
	case FLEET_APPLY:
		if (!apply(g, share, &picture))
			g->retry_ns = at_ns + SECOND_NS / 2;
		break;
	case FLEET_SEND:
		ask(g, &request);
		break;
	case FLEET_WAIT:
		if (g->moved || share_items(g))
			wait_for(g, wake_ns);
		break;
	}
}

/* Who leaves has nothing to use any more, whatever the store has said, or has not. */
static void tell_nothing(struct agent *g)
{
	struct policy_error error = {0};

	if (fleet_tell_nothing(&g->of, &g->a, &error))
		say(g, "%s", error.text);
}

/* Units that stay its own without a session, by what the store said; else none is known. */
static uint64_t kept_for_sure(const struct agent *g, uint32_t i)
{
	struct fleet_share *s = &g->member.share[i];

	return s->read ? fleet_kept(&g->member, s) : 0;
}

/* Of what the store has not told, an agent before this one may have kept some. */
static const char *kept_before(const struct agent *g)
{
	for (uint32_t i = 0; i < g->member.shares; i++)
		if (!g->member.share[i].read && fleet_kept(&g->member, &g->member.share[i]))
			return ", but for a reserve of before (cut_off: local), which stays its "
			       "own: once the store answers, start its agent, and stop it";
	return "";
}

/* The pacer's; 0: it cannot be found, as its agent will say. */
static uint32_t state_of(const char *ifname)
{
	struct policy_error unsaid;
	struct attached a;
	uint32_t control_id;

	if (attached_find(ifname, &a, &unsaid))
		return 0;
	control_id = a.control_id;
	attached_release(&a);
	return control_id;
}

/* What an agent of the next pacer finds, and nobody else has until it gives it back. */
static void say_stays(struct agent *g)
{
	if (g->member.taken || state_of(g->ifname))
		return;
	for (uint32_t i = 0; i < g->member.shares; i++)
		if (kept_for_sure(g, i)) {
			say(g,
			    "of a limit of rule %s %" PRIu64 " units stay its own (cut_off: "
			    "local) until an agent is started and stopped here: load its policy "
			    "for that",
			    rule_name(g, g->of.limit[i].rule).text, kept_for_sure(g, i));
			return;
		}
}

/* What was not given back, and who gets it when. */
static void say_rest(struct agent *g)
{
	uint32_t i = 0;

	if (g->member.taken) {
		say(g, "its number is another's, or this host's from before the pacer was loaded "
		       "anew: what is in the store by that number stays; if it is this host's, "
		       "start its agent, and stop it");
		return;
	}
	while (i < g->member.shares && !kept_for_sure(g, i))
		i++;
	if (i < g->member.shares)
		say(g,
		    "its shares were not given back within %d s: of a limit of rule %s %" PRIu64
		    " units stay its own (cut_off: local), and others have the rest a window after "
		    "its session, which ends in %d s at most: once the store answers, start its "
		    "agent, and stop it",
		    LEAVE_MS / 1000, rule_name(g, g->of.limit[i].rule).text, kept_for_sure(g, i),
		    TTL_S);
	else if (!g->member.answered)
		say(g,
		    "the store never answered, so that nothing was given back: what an agent "
		    "before "
		    "this one had, others have a window after its session, which ends in %d s at "
		    "most%s",
		    TTL_S, kept_before(g));
	else if (!fleet_gone(&g->member))
		say(g,
		    "its shares were not given back within %d s: others have them a window after "
		    "its session, which ends in %d s at most%s",
		    LEAVE_MS / 1000, TTL_S, kept_before(g));
}

/* False: it goes on no more, and *error says why. What it has of a fleet before is given back. */
static bool keep_up(struct agent *g, struct policy_error *error)
{
	if (g->moved)
		return true;
	if (changed(g) && follow(g, error)) {
		if (error->line == POLICY_NO_MEMORY || (g->anew && !g->leave_by_ns))
			return false;
		g->moved = true;
		tell_nothing(g); /* it may have told something since the policy took it away */
		leave(g);
		return true;
	}
	return !fleet_is_over(&g->of, &g->member, &g->a) ||
	       !fleet_divide(&g->of, &g->member, &g->a, &g->fleet, error);
}

static int attend(struct agent *g)
{
	struct policy_error error = {0};

	while (!stopped(g, 0)) {
		(void)notify_again();
		if (!attached_goes_on(&g->a)) { /* its shares are of the state, and so stay */
			tell(g, "the pacer was taken off or replaced: start its agent again");
			say_stays(g);
			return EXIT_FAILED;
		}
		if (!keep_up(g, &error))
			return complain(NULL, &error);
		if (!g->moved)
			fleet_items_look(&g->items, &g->a);
		for (size_t i = 0; i < g->of.n - g->of.past && !g->leave_by_ns; i++)
			ask_for(g, i);
		step(g);
	}
	tell_nothing(g);
	say_rest(g);
	return g->moved ? complain(NULL, &error) : EXIT_DONE;
}

static int begin(struct agent *g, const struct options *o)
{
	struct policy_error error = {0};
	struct clocks clocks = clocks_read();
	int code;

	code = fleet_number(o->state, g->ifname, &g->number);
	if (code)
		return code;
	code = fleet_number_alone(&g->number, g->ifname, g->a.control_id);
	if (code)
		return code;
	g->member.id = g->number.id;
	g->sole_fd = sole_agent(&g->a, &error);
	file_lock_briefly(true); /* from now on: its session is to be renewed meanwhile */
	if (g->sole_fd < 0 || follow(g, &error)) /* which writes where another agent would */
		return complain(NULL, &error);
	g->talk.token.id = g->number.id;
	if (!clocks.boot_id[0])
		return gave_up("fleet",
			       "the kernel does not say which boot this is: see that /proc "
			       "is mounted");
	snprintf(g->talk.token.boot, sizeof(g->talk.token.boot), "%s", clocks.boot_id);
	g->talk.token.datapath = g->a.control_id;
	g->member.ttl_ns = TTL_S * SECOND_NS;
	g->member.begun_ns = host_now_ns();
	fleet_start(&g->member);
	return open_store(g);
}

static int run_one(struct options *o, int ready)
{
	static struct agent g = {.sole_fd = -1};
	struct policy_error error = {0};
	int code = until_ended(ENDS_OF_SERVICE);

	if (code)
		return code;
	g.ifname = o->args[0];
	if (attached_find(g.ifname, &g.a, &error))
		return complain(NULL, &error);
	code = begin(&g, o);
	if (!code) {
		if (ready < 0)
			(void)notify_ready(NULL);
		else
			(void)!write(ready, "", 1);
		code = attend(&g);
		g.kind->close(g.talk.store);
	}
	talk_free(&g.talk);
	free(g.member.share);
	fleet_items_free(&g.items);
	if (g.sole_fd >= 0)
		close(g.sole_fd);
	fleet_number_free(&g.number);
	attached_release(&g.a);
	return code;
}

/* --- several interfaces: a process for each state ----------------------------------------------
 */

#define AGENTS_MAX  64
#define AGAIN_MIN_S 1 /* until one that has failed is begun again: twice as long each time ... */
#define AGAIN_MAX_S 8
#define WELL_S	    60 /* ... until it has worked for that long */
#define GONE_S	    10 /* all ends where none works, and no pacer is found for that long */

struct several {
	char *ifname[AGENTS_MAX];
	uint32_t control_id[AGENTS_MAX]; /* of the state that was found there last; 0: none */
	pid_t child[AGENTS_MAX];	 /* its agent; 0: it has none, or that of another */
	int code[AGENTS_MAX];		 /* of one that has ended */
	uint64_t begun_ns[AGENTS_MAX];	 /* when it was begun last, */
	uint64_t ended_ns[AGENTS_MAX];	 /* ... when it ended, */
	uint64_t again_s[AGENTS_MAX];	 /* ... and how long it waits then until it is again */
	uint64_t seen_ns;   /* when one ended last, or a pacer was found that has none; */
	uint64_t looked_ns; /* ... it is looked once a second */
	size_t n, begun;    /* interfaces, and agents in the first place */
	int ready[2];
};

/* What shares its state with one before, or with one that has an agent, has the agent of that. */
static const char *has_agent_of(const struct several *s, size_t i)
{
	for (size_t k = 0; k < s->n; k++)
		if (k != i && s->control_id[k] == s->control_id[i] && (s->child[k] || k < i))
			return s->ifname[k];
	return NULL;
}

/* False: there is no process for it. */
static bool start(struct several *s, struct options *o, size_t i)
{
	const pid_t parent = getpid();
	pid_t child = fork();

	if (!child) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			exit(EXIT_FAILED); /* that ended before */
		close(s->ready[0]);
		o->args[0] = s->ifname[i];
		o->n_args = 1;
		exit(run_one(o, s->ready[1]));
	}
	if (child < 0)
		return false;
	s->child[i] = child;
	s->begun_ns[i] = host_now_ns();
	return true;
}

static bool start_all(struct several *s, struct options *o)
{
	for (; s->n < (size_t)o->n_args; s->n++) {
		const char *other;

		s->ifname[s->n] = o->args[s->n];
		s->control_id[s->n] = state_of(s->ifname[s->n]);
		s->again_s[s->n] = AGAIN_MIN_S;
		other = s->control_id[s->n] ? has_agent_of(s, s->n) : NULL;
		if (other)
			complaint("%s: has the pacer of %s: one agent is for both", s->ifname[s->n],
				  other);
		else if (!start(s, o, s->n))
			return false;
		else
			s->begun++;
	}
	return true;
}

static void end_all(const struct several *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->child[i])
			kill(s->child[i], SIGTERM);
}

/* Notes how it ended, and when it may be begun again. */
static void note_end(struct several *s, size_t i, int status)
{
	uint64_t now_ns = host_now_ns();

	if (WIFSIGNALED(status))
		complaint("%s: its agent was ended by signal %d", s->ifname[i], WTERMSIG(status));
	s->child[i] = 0;
	s->code[i] = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
	if (now_ns - s->begun_ns[i] >= WELL_S * SECOND_NS)
		s->again_s[i] = AGAIN_MIN_S;
	s->ended_ns[i] = s->seen_ns = now_ns;
}

/* Takes note of those that have ended. Returns how many there are still. */
static size_t take_ended(struct several *s)
{
	size_t left = 0;

	for (size_t i = 0; i < s->n; i++) {
		int status;

		if (s->child[i] && waitpid(s->child[i], &status, WNOHANG) == s->child[i])
			note_end(s, i, status);
		left += s->child[i] != 0;
	}
	return left;
}

/* The worst of those that have ended. */
static int worst(const struct several *s)
{
	int code = EXIT_DONE;

	for (size_t i = 0; i < s->n; i++)
		if (s->code[i] > code)
			code = s->code[i];
	return code;
}

/* Is there a state on it that no agent has? */
static bool wants_agent(struct several *s, size_t i)
{
	uint32_t control_id = state_of(s->ifname[i]);

	if (control_id != s->control_id[i]) /* it did not end by a fault */
		s->again_s[i] = AGAIN_MIN_S;
	s->control_id[i] = control_id;
	return control_id && !has_agent_of(s, i);
}

/* Those that have ended, and of states that are new here, once there is a pacer. */
static void begin_again(struct several *s, struct options *o)
{
	const uint64_t now_ns = host_now_ns();

	if (now_ns - s->looked_ns < SECOND_NS)
		return;
	s->looked_ns = now_ns;
	for (size_t i = 0; i < s->n; i++) {
		if (s->child[i] || !wants_agent(s, i))
			continue;
		s->seen_ns = now_ns;
		if (now_ns - s->ended_ns[i] < s->again_s[i] * SECOND_NS)
			continue;
		if (s->again_s[i] < AGAIN_MAX_S)
			s->again_s[i] *= 2;
		if (start(s, o, i))
			continue;
		complaint("%s: its agent cannot be begun: %s", s->ifname[i], strerror(errno));
		s->ended_ns[i] = now_ns;
	}
}

/* May one be begun again? None is where their pacers are gone for good. */
static bool one_waits(const struct several *s)
{
	return host_now_ns() - s->seen_ns < GONE_S * SECOND_NS;
}

/* Who is told to end now has not failed for those that were to be begun again. */
static void forget_waiting(struct several *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->child[i])
			s->code[i] = EXIT_DONE;
}

/* Has each said that it is ready? A byte each; none is waited for. */
static bool all_ready(const struct several *s, size_t *ready)
{
	char said[AGENTS_MAX];
	ssize_t n = read(s->ready[0], said, sizeof(said));

	*ready += n > 0 ? (size_t)n : 0;
	return *ready == s->begun;
}

/*
 * One that cannot begin ends all, so that nobody takes the rest for the whole. One that ends later,
 * as its pacer was taken off, leaves the others at work, and is begun again where one is there: so
 * is each, where all have ended.
 */
static int run_several(struct options *o)
{
	const struct timespec look = {0, LOOK_MS * 1000000};
	int code = until_ended(ENDS_OF_SERVICE);
	struct several s = {0};
	bool told = false, ending = false;
	size_t ready = 0;
	sigset_t one_ended;

	if (code)
		return code;
	sigemptyset(&one_ended);
	sigaddset(&one_ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &one_ended, NULL);
	if (pipe2(s.ready, O_CLOEXEC | O_NONBLOCK) || !start_all(&s, o)) {
		int why = errno;

		end_all(&s);
		while (take_ended(&s))
			(void)sigtimedwait(&one_ended, NULL, &look);
		return gave_up("fleet", strerror(why));
	}
	while (take_ended(&s) || (told && !ending && one_waits(&s))) {
		if (ending)
			(void)sigtimedwait(&one_ended, NULL, &look);
		else if ((ending = ends_wait(LOOK_MS * 1000000ull)) && told)
			forget_waiting(&s);
		(void)notify_again();
		if (!told && all_ready(&s, &ready)) {
			(void)notify_ready(NULL);
			told = true;
		}
		ending |= !told && worst(&s);
		if (ending)
			end_all(&s);
		else if (told)
			begin_again(&s, o);
	}
	close(s.ready[0]);
	close(s.ready[1]);
	if (told && !ending) {
		complaint("fleet: none of them has had a pacer of this version for %d s: load its "
			  "policy, and start the agent again",
			  GONE_S);
		return EXIT_FAILED;
	}
	return worst(&s);
}

/* NULL: none is. */
static const char *named_twice(const struct options *o)
{
	for (int i = 1; i < o->n_args; i++)
		for (int k = 0; k < i; k++)
			if (!strcmp(o->args[i], o->args[k]))
				return o->args[i];
	return NULL;
}

static int run_fleet(struct options *o)
{
	struct stat folder;
	const char *twice;

	if (!o->n_args || o->n_args > AGENTS_MAX || several_all(o))
		return misused("fleet", "it wants an interface, or several, up to %d", AGENTS_MAX);
	twice = named_twice(o);
	if (twice)
		return misused("fleet", "%s is named twice", twice);
	if (o->state && misused_stream("fleet", o->state))
		return EXIT_WRONG;
	if (o->n_args == 1)
		return run_one(o, -1);
	if (o->state && (stat(o->state, &folder) || !S_ISDIR(folder.st_mode)))
		return misused("fleet", "of several interfaces each has a number: --state names a "
					"folder that is there, for their files");
	return run_several(o);
}

static const struct option_row fleet_options[] = {
    {"state", 0, "FILE",
     "where this host's number is, or a folder for IFACE.member; " FLEET_STATE_DIR " unless said",
     OPTION_TEXT(state)},
    {0},
};

const struct verb verb_fleet = {"fleet",
				"IFACE...",
				"divide limits among hosts until stopped, for a service",
				fleet_options,
				run_fleet,
				.group = VERBS_ARG,
				.example = "xdp-pacer fleet eth0"};
