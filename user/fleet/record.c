/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/record.h"

#include <string.h>

#include "port.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void fleet_begin(struct fleet_record *record, uint64_t memory_ns, uint64_t ttl_ns)
{
	memset(record, 0, sizeof(*record));
	record->memory_ns = memory_ns;
	if (PACER_FAULT(BEGIN_EMPTY))
		return;
	record->slots = 1;
	record->slot[0].cell[0].cool = FLEET_UNITS_MAX;
	record->slot[0].cell[0].left_ns = memory_ns + 2 * ttl_ns;
}

static bool is_twice(const struct fleet_record *record, const struct fleet_slot *slot)
{
	for (const struct fleet_slot *s = record->slot; s < slot; s++)
		if (s->id == slot->id)
			return true;
	return false;
}

static const char *unsound_slot(const struct fleet_record *record, const struct fleet_slot *slot)
{
	if (slot->limit > FLEET_UNITS_MAX || slot->reserve > FLEET_UNITS_MAX ||
	    slot->due > FLEET_UNITS_MAX)
		return "it has a limit that is too large";
	if (slot->session && !slot->id)
		return "it has a session of nobody";
	for (uint32_t i = 0; i < FLEET_LANES_MAX; i++) {
		const struct fleet_cell *c = &slot->cell[i];

		if (c->held > FLEET_UNITS_MAX || c->cool > FLEET_UNITS_MAX ||
		    c->want > FLEET_UNITS_MAX || c->left_ns > 2 * FLEET_MEMORY_MAX)
			return "it has a share that is too large";
		if ((i == 0 || c->own) && c->held < slot->reserve)
			return "it has a share below its reserve";
		if (i && c->own && !record->key[i][0])
			return "it has a share of no key";
	}
	return NULL;
}

const char *fleet_unsound(const struct fleet_record *record)
{
	const char *why = NULL;
	uint64_t most = 0;

	if (!record->memory_ns || record->memory_ns > FLEET_MEMORY_MAX)
		return "its window is out of range";
	if (record->slots > FLEET_MEMBERS_MAX)
		return "it has too many members";
	for (uint32_t i = 0; i < record->slots && !why; i++) {
		const struct fleet_slot *slot = &record->slot[i];

		why = unsound_slot(record, slot);
		if (i && slot->id <= most && is_twice(record, slot)) /* they are in order, mostly */
			why = "it has a member twice";
		most = slot->id > most ? slot->id : most;
	}
	return why;
}

void fleet_copy(struct fleet_record *to, const struct fleet_record *from)
{
	uint32_t over = to->slots > from->slots ? to->slots - from->slots : 0;

	memset(&to->slot[from->slots], 0, over * sizeof(to->slot[0]));
	memcpy(to, from, offsetof(struct fleet_record, slot));
	memcpy(to->slot, from->slot, from->slots * sizeof(to->slot[0]));
}

/* Moves together, in their order, the slots whose members have one in `from`. How many? */
static uint32_t keep_common(struct fleet_record *to, const struct fleet_record *from)
{
	uint32_t kept = 0, at = 0;

	for (uint32_t i = 0; i < to->slots; i++) {
		while (at < from->slots && from->slot[at].id < to->slot[i].id)
			at++;
		if (at < from->slots && from->slot[at].id == to->slot[i].id)
			to->slot[kept++] = to->slot[i];
	}
	return kept;
}

static void remember(struct fleet_slot *slot, const struct fleet_slot *was, uint64_t ns)
{
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) {
		struct fleet_cell *c = &slot->cell[k];
		const struct fleet_cell *w = &was->cell[k];
		bool same = c->since && c->since == w->since;

		if (PACER_FAULT(COOLS_BY_UNITS))
			same = c->cool == w->cool;
		if (same)
			c->left_ns = least(c->left_ns, w->left_ns - least(w->left_ns, ns));
	}
}

void fleet_take(struct fleet_record *to, const struct fleet_record *from, uint64_t ns)
{
	static const struct fleet_slot none;
	uint32_t before = to->slots, kept = keep_common(to, from);

	memcpy(to, from, offsetof(struct fleet_record, slot));
	for (uint32_t i = from->slots; i--;) { /* from the last on: what is kept lies before it */
		bool has = kept && to->slot[kept - 1].id == from->slot[i].id;
		const struct fleet_slot was = has ? to->slot[--kept] : none;

		to->slot[i] = from->slot[i];
		remember(&to->slot[i], &was, ns);
	}
	if (before > from->slots)
		memset(&to->slot[from->slots], 0, (before - from->slots) * sizeof(to->slot[0]));
}

void fleet_age(struct fleet_record *record, uint64_t ns)
{
	for (uint32_t i = 0; i < record->slots; i++)
		for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) {
			struct fleet_cell *c = &record->slot[i].cell[k];

			c->left_ns -= least(c->left_ns, ns);
			if (!c->left_ns || !c->cool)
				c->cool = c->left_ns = c->since = 0;
		}
}

struct fleet_slot *fleet_slot_of(struct fleet_record *record, uint64_t id)
{
	for (uint32_t i = 0; i < record->slots; i++)
		if (record->slot[i].id == id)
			return &record->slot[i];
	return NULL;
}

struct fleet_slot *fleet_add_slot(struct fleet_record *record, uint64_t id)
{
	uint32_t at = record->slots++;

	for (; at && record->slot[at - 1].id > id; at--)
		record->slot[at] = record->slot[at - 1];
	memset(&record->slot[at], 0, sizeof(record->slot[at]));
	record->slot[at].id = id;
	return &record->slot[at];
}

uint64_t fleet_limit(const struct fleet_record *record)
{
	uint64_t limit = 0;

	for (uint32_t i = 0; i < record->slots; i++) {
		const struct fleet_slot *s = &record->slot[i];

		if (s->session)
			limit = limit ? least(limit, s->limit) : s->limit;
	}
	return limit;
}

uint64_t fleet_reserves(const struct fleet_record *record, bool absent)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < record->slots; i++)
		if (!absent || !record->slot[i].session)
			sum += record->slot[i].reserve;
	return sum;
}

uint64_t fleet_reserve_most(const struct fleet_record *record)
{
	uint64_t limit = fleet_limit(record), gone = fleet_reserves(record, true);
	uint64_t rest = limit - least(limit, gone), each = limit, members = 0;

	for (uint32_t i = 0; i < record->slots; i++)
		members += record->slot[i].session != 0;
	while (members * each > rest / FLEET_RESERVES_DEN)
		each /= 2;
	return members ? each : UINT64_MAX;
}

/* The cell by which the member's packets of the lane's key are judged. */
static const struct fleet_cell *judging(const struct fleet_slot *slot, uint32_t lane)
{
	return &slot->cell[slot->cell[lane].own ? lane : 0];
}

uint64_t fleet_charge(const struct fleet_slot *slot, uint32_t lane)
{
	const struct fleet_cell *c = judging(slot, lane);

	return c->held + c->cool;
}

uint64_t fleet_sum(const struct fleet_record *record, uint32_t lane)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < record->slots; i++)
		sum += fleet_charge(&record->slot[i], lane);
	return sum;
}

static uint64_t room(const struct fleet_record *record, uint32_t lane)
{
	uint64_t limit = fleet_limit(record), sum = fleet_sum(record, lane);

	return sum < limit ? limit - sum : 0;
}

uint64_t fleet_free(const struct fleet_record *record, const struct fleet_slot *slot, uint32_t lane)
{
	uint64_t free = room(record, lane);

	if (lane || PACER_FAULT(RAISE_ONE_LANE))
		return free;
	for (uint32_t k = 1; k < FLEET_LANES_MAX; k++)
		if (!slot->cell[k].own && record->key[k][0])
			free = least(free, room(record, k));
	return free;
}

/* Does the slot take what is divided in this lane? */
static bool divides(const struct fleet_slot *slot, uint32_t lane)
{
	return slot->session && (!lane || slot->cell[lane].own);
}

/* What it has before all else is divided. */
static uint64_t keeps(const struct fleet_slot *slot)
{
	return slot->due > slot->reserve ? slot->due : slot->reserve;
}

static uint64_t need(const struct fleet_slot *slot, uint32_t lane)
{
	uint64_t want = slot->cell[lane].want;

	return want > keeps(slot) ? want - keeps(slot) : 0;
}

/* What is to be divided in a lane: n members share `rest` after those are served who need `fair` or
 * less; where all are, `rest` is left of it.
 */
struct division {
	uint64_t fair, rest;
	uint32_t n;
	bool all;
	/* Where fewer units are left than members: who needs more than `least` has one, and of
	 * those who need as much, the first `ones`. */
	bool scarce;
	uint64_t least;
	uint64_t ones; /* else: the first of all have one more */
};

/* The units of a lane without the reserves, and what those hold who do not divide. */
static uint64_t divisible(const struct fleet_record *record, uint32_t lane, uint32_t *n)
{
	uint64_t units = fleet_limit(record);

	*n = 0;
	for (uint32_t i = 0; i < record->slots; i++) {
		const struct fleet_slot *s = &record->slot[i];
		bool in = divides(s, lane);

		*n += in;
		units -= least(units, in ? keeps(s) : fleet_charge(s, lane));
	}
	return units;
}

/* How many need more than that. */
static uint64_t needier(const struct fleet_record *record, uint32_t lane, uint64_t than)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < record->slots; i++)
		n += divides(&record->slot[i], lane) && need(&record->slot[i], lane) > than;
	return n;
}

/* Single units go to those who need most, and stay where they are between those who need the same.
 */
static void share_out(const struct fleet_record *record, uint32_t lane, struct division *d)
{
	uint64_t most = FLEET_UNITS_MAX;

	d->ones = d->n ? d->rest % d->n : 0;
	d->scarce = !d->all && d->rest < d->n;
	if (!d->scarce)
		return;
	while (d->least < most) {
		uint64_t at = d->least + (most - d->least) / 2;

		if (needier(record, lane, at) <= d->rest)
			most = at;
		else
			d->least = at + 1;
	}
	d->ones = d->rest - needier(record, lane, d->least);
}

static struct division divide(const struct fleet_record *record, uint32_t lane)
{
	struct division d = {0};
	uint32_t members, open;
	uint64_t units = divisible(record, lane, &members), served;

	d.fair = members ? units / members : 0;
	for (uint32_t round = 0; round <= FLEET_MEMBERS_MAX; round++) {
		served = open = 0;
		for (uint32_t i = 0; i < record->slots; i++) {
			const struct fleet_slot *s = &record->slot[i];

			if (!divides(s, lane))
				continue;
			if (need(s, lane) <= d.fair)
				served += need(s, lane);
			else
				open++;
		}
		d.rest = units - served;
		d.all = !open;
		d.n = open ? open : members;
		if (!open || d.rest / open == d.fair)
			break;
		d.fair = d.rest / open;
	}
	share_out(record, lane, &d);
	return d;
}

static bool has_one(const struct division *d, uint64_t needed, uint32_t *rank)
{
	if (d->scarce && needed != d->least)
		return needed > d->least;
	return (*rank)++ < d->ones;
}

/* The goal of a slot; rank: of those before it, how many might get a part of the rest, too. */
static uint64_t goal_of(const struct division *d, const struct fleet_slot *slot, uint32_t lane,
			uint32_t *rank)
{
	uint64_t goal = keeps(slot), needed = need(slot, lane);

	if (!divides(slot, lane) || !d->n) /* who takes part is one of n */
		return goal;
	if (needed <= d->fair)
		goal += needed;
	if (d->all || needed > d->fair)
		goal += d->rest / d->n + has_one(d, needed, rank);
	return goal;
}

uint64_t fleet_goal(const struct fleet_record *record, const struct fleet_slot *slot, uint32_t lane)
{
	const struct division d = divide(record, lane);
	uint32_t rank = 0;

	for (const struct fleet_slot *s = record->slot; s < slot; s++)
		(void)goal_of(&d, s, lane, &rank);
	return goal_of(&d, slot, lane, &rank);
}

uint64_t fleet_surplus(const struct fleet_record *record, const struct fleet_slot *slot,
		       uint32_t lane)
{
	const struct division d = divide(record, lane);
	uint64_t goal = 0, held = slot->cell[lane].held;
	uint64_t limit = fleet_limit(record), lacking = 0, coming = 0, sum = 0;
	uint32_t rank = 0;

	for (uint32_t i = 0; i < record->slots; i++) {
		const struct fleet_slot *s = &record->slot[i];
		const struct fleet_cell *c = judging(s, lane);
		uint64_t its = goal_of(&d, s, lane, &rank);

		if (s == slot)
			goal = its;
		lacking += its > c->held ? its - c->held : 0;
		sum += c->held;
	}
	if (held <= goal)
		return 0;
	if (sum < limit) /* free, or cooling: it comes by itself */
		coming = limit - sum;
	else
		lacking += sum - limit;
	return lacking > coming ? least(held - goal, lacking - coming) : 0;
}

void fleet_lower(struct fleet_record *record, struct fleet_slot *slot, uint32_t lane, uint64_t to,
		 uint64_t hot)
{
	struct fleet_cell *c = &slot->cell[lane];

	hot = least(hot, c->held);
	if (hot > to && !PACER_FAULT(LOWER_COLD)) {
		c->cool += hot - to;
		c->left_ns = record->memory_ns;
		c->since = 0;
	}
	c->held = to;
}

void fleet_raise(struct fleet_slot *slot, uint32_t lane, uint64_t units)
{
	slot->cell[lane].held += units;
}

void fleet_name(struct fleet_record *record, uint64_t follows)
{
	for (uint32_t i = 0; i < record->slots; i++)
		for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
			if (record->slot[i].cell[k].cool && !record->slot[i].cell[k].since)
				record->slot[i].cell[k].since = follows;
}

void fleet_end_session(struct fleet_record *record, struct fleet_slot *slot)
{
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) {
		struct fleet_cell *c = &slot->cell[k];

		if (k && !c->own)
			continue;
		if (PACER_FAULT(END_COLD))
			c->held = slot->reserve;
		else
			fleet_lower(record, slot, k, slot->reserve, UINT64_MAX);
		c->want = 0;
	}
	if (PACER_FAULT(END_TAKES_RESERVE))
		for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
			slot->cell[k].held = 0;
	slot->session = slot->due = 0;
}

static bool counts(const struct fleet_slot *slot)
{
	bool any = slot->session || slot->reserve;

	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
		any |= slot->cell[k].held || slot->cell[k].cool;
	return any;
}

/* Without a session, a share of its own that is the reserve says no more than lane 0 does. */
static void step_back(struct fleet_slot *slot)
{
	for (uint32_t k = 1; k < FLEET_LANES_MAX; k++)
		if (!slot->session && !slot->cell[k].cool && !slot->cell[0].cool)
			memset(&slot->cell[k], 0, sizeof(slot->cell[k]));
}

void fleet_tidy(struct fleet_record *record)
{
	uint32_t kept = 0;
	bool used;

	for (uint32_t i = 0; i < record->slots; i++)
		step_back(&record->slot[i]);

	for (uint32_t i = 0; i < record->slots; i++)
		if (counts(&record->slot[i])) {
			if (kept != i)
				record->slot[kept] = record->slot[i];
			kept++;
		}
	memset(&record->slot[kept], 0, (record->slots - kept) * sizeof(record->slot[0]));
	record->slots = kept;
	for (uint32_t k = 1; k < FLEET_LANES_MAX; k++) {
		used = false;
		for (uint32_t i = 0; i < record->slots; i++)
			used |= record->slot[i].cell[k].own;
		if (!used)
			memset(record->key[k], 0, sizeof(record->key[k]));
	}
}
