/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/member.h"

#include <string.h>

#include "port.h"

#define PAUSE_NS 4000000ull /* for each member: a write, and what leads to it */
#define TURNS	 4	    /* at a slow store, of which one is for what is of no limit */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct fleet_slot *mine(const struct fleet_member *m, struct fleet_record *record)
{
	struct fleet_slot *slot = fleet_slot_of(record, m->id);

	return slot && slot->session && slot->session == m->session ? slot : NULL;
}

static uint64_t lasts_ns(const struct fleet_member *m)
{
	return PACER_FAULT(CLOCKS_EQUAL) ? m->ttl_ns : fleet_within(m->ttl_ns);
}

uint64_t fleet_end_ns(const struct fleet_member *m)
{
	return m->session && m->renewed_ns ? m->renewed_ns + lasts_ns(m) : 0;
}

bool fleet_holds(const struct fleet_member *m, const struct fleet_share *s, uint64_t now_ns)
{
	return s->sure && now_ns < fleet_end_ns(m);
}

static bool in_doubt(const struct fleet_share *s)
{
	return s->revision <= s->doubt && !PACER_FAULT(RAISE_IN_DOUBT);
}

void fleet_start(struct fleet_member *m)
{
	m->number = m->session = m->revision = m->renewed_ns = m->retry_ns = m->read_ns = 0;
	m->flight = FLEET_IDLE;
	m->taken = m->went_back = m->leaving = m->left = m->stale = m->answered = false;
	m->afresh = false;
	m->hurry = true;
	for (uint32_t i = 0; i < m->shares; i++) {
		struct fleet_share *s = &m->share[i];

		s->revision = s->got_ns = s->doubt = s->dead = 0;
		s->read = s->sure = s->leaving = false;
		s->trouble = FLEET_WELL;
		memset(s->give, 0, sizeof(s->give));
		memset(&s->record, 0, sizeof(s->record));
	}
}

/* --- the datapath ---------------------------------------------------------------------------- */

/* When what another datapath of this host admitted is over. */
static uint64_t clean_at(const struct fleet_member *m, const struct fleet_share *s)
{
	return m->begun_ns + fleet_over(s->params.memory_ns);
}

static bool clean(const struct fleet_member *m, const struct fleet_share *s, uint64_t now_ns)
{
	return now_ns >= clean_at(m, s) || PACER_FAULT(RESERVE_UNCLEAN);
}

/* What it is to keep without a session, as the policy says and so many members allow; who leaves
 * keeps nothing. */
static uint64_t reserve_of(const struct fleet_member *m, const struct fleet_share *s,
			   const struct fleet_record *record)
{
	return m->leaving || s->leaving ? 0 : least(s->params.reserve, fleet_reserve_most(record));
}

uint64_t fleet_reserve(const struct fleet_member *m, const struct fleet_share *s)
{
	return reserve_of(m, s, &s->record);
}

/* The reserve that the datapath may use: no more than is in the record, and than it is to have. */
static uint64_t floor_of(const struct fleet_member *m, const struct fleet_share *s)
{
	return PACER_FAULT(RESERVE_LOWERED_FIRST) ? s->floor : least(s->floor, fleet_reserve(m, s));
}

/* By which value the datapath judges the lane's key. */
static uint64_t judged_by(const struct fleet_picture *p, uint32_t lane)
{
	return p->value[p->own[lane] ? lane : 0];
}

/* The end has come: the datapath has fallen back, and what was to be given up is given up. */
static void fall_back(struct fleet_share *s, uint64_t now_ns)
{
	if (now_ns < s->applied.until_ns)
		return;
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) {
		s->applied.value[k] = s->applied.floor;
		s->applied.own[k] = false;
		s->give[k] = false;
	}
	memset(s->applied.key, 0, sizeof(s->applied.key));
	s->applied.until_ns = 0;
}

static bool winding_down(const struct fleet_record *record, uint32_t lane)
{
	if (!lane)
		return false;
	for (uint32_t i = 0; i < record->slots; i++)
		if (record->slot[i].cell[lane].own && record->slot[i].cell[lane].want)
			return false;
	return true;
}

/* What the lane is to come to: its goal, or what lane 0 has where nobody needs it any more. */
static uint64_t surplus(const struct fleet_record *record, const struct fleet_slot *slot,
			uint32_t lane)
{
	const struct fleet_cell *c = &slot->cell[lane];

	if (!winding_down(record, lane))
		return fleet_surplus(record, slot, lane);
	return c->held > slot->cell[0].held ? c->held - slot->cell[0].held : 0;
}

/* How much of a cell is to be given up now; `record` is of now. */
static uint64_t giving(const struct fleet_member *m, const struct fleet_share *s,
		       const struct fleet_record *record, const struct fleet_slot *slot,
		       uint32_t lane)
{
	const struct fleet_cell *c = &slot->cell[lane];

	if (m->flight != FLEET_IDLE || m->stale || s->give[lane] || in_doubt(s) ||
	    PACER_FAULT(GIVE_UNAPPLIED))
		return 0;
	if (m->leaving || s->leaving)
		return c->held;
	if (c->cool && !s->params.counts_hot) /* a cell cools once at a time */
		return 0;
	return surplus(record, slot, lane);
}

/* For how long its record has been known, in true time. */
static uint64_t known_ns(const struct fleet_share *s, uint64_t now_ns)
{
	return PACER_FAULT(COOLS_FAST) ? now_ns - s->got_ns : fleet_surely(now_ns - s->got_ns);
}

/* The record as it is by now. */
static void now_of(const struct fleet_share *s, uint64_t now_ns, struct fleet_record *record)
{
	fleet_copy(record, &s->record);
	fleet_age(record, known_ns(s, now_ns));
}

/* What may yet be in the store has not come from it. */
static bool writing(const struct fleet_member *m, const struct fleet_share *s)
{
	return m->flight == FLEET_WRITE && s == &m->share[m->flight_share];
}

/* What the datapath is to have of one lane. */
static uint64_t value_of(const struct fleet_member *m, const struct fleet_share *s,
			 const struct fleet_record *record, const struct fleet_slot *slot,
			 uint32_t lane, uint64_t now_ns)
{
	uint64_t held = slot->cell[lane].held, has = judged_by(&s->applied, lane);
	uint64_t give = giving(m, s, record, slot, lane);

	if (!clean(m, s, now_ns))
		held -= slot->reserve;
	if (s->give[lane] || in_doubt(s) || writing(m, s))
		return least(held, has);
	return held > give ? held - give : 0;
}

/* Before the first answer the datapath goes on as an agent before this one has told it. */
static bool goes_on(const struct fleet_member *m, const struct fleet_share *s)
{
	return !m->answered && !m->leaving && !s->leaving;
}

static uint64_t floor_by_now(const struct fleet_member *m, const struct fleet_share *s,
			     uint64_t now_ns)
{
	if (goes_on(m, s))
		return least(s->applied.floor, floor_of(m, s));
	return clean(m, s, now_ns) ? floor_of(m, s) : 0;
}

static void paint(const struct fleet_member *m, const struct fleet_share *s, uint64_t now_ns,
		  struct fleet_picture *p, struct fleet_record *record)
{
	struct fleet_slot *slot;

	*p = s->applied;
	if (goes_on(m, s) && now_ns < p->until_ns)
		return;
	memset(p, 0, sizeof(*p));
	p->floor = floor_by_now(m, s, now_ns);
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
		p->value[k] = p->floor;
	now_of(s, now_ns, record);
	slot = mine(m, record);
	if (!slot || !fleet_holds(m, s, now_ns))
		return;
	p->until_ns = fleet_end_ns(m);
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) {
		p->own[k] = k && slot->cell[k].own;
		if (p->own[k])
			memcpy(p->key[k], record->key[k], FLEET_KEY_TEXT);
		if (!k || p->own[k])
			p->value[k] = value_of(m, s, record, slot, k, now_ns);
	}
}

static bool differs(const struct fleet_member *m, const struct fleet_picture *a,
		    const struct fleet_picture *b)
{
	if (a->floor != b->floor || a->until_ns < b->until_ns ||
	    a->until_ns - b->until_ns > m->ttl_ns / 8)
		return true;
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
		if (a->own[k] != b->own[k] || judged_by(a, k) != judged_by(b, k) ||
		    strcmp(a->key[k], b->key[k]) != 0)
			return true;
	return false;
}

void fleet_applied(struct fleet_member *m, uint32_t share, const struct fleet_picture *picture,
		   const uint64_t *hot)
{
	struct fleet_share *s = &m->share[share];
	const struct fleet_slot *slot = mine(m, &s->record);
	/* What it lacks besides, as long as what is kept may have been used before. */
	uint64_t kept = slot && !clean(m, s, picture->until_ns) ? slot->reserve : 0;

	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) {
		s->hot[k] = hot && s->params.counts_hot ? hot[k] : UINT64_MAX;
		if (slot && picture->until_ns && !in_doubt(s) && !writing(m, s) &&
		    (!k || (slot->cell[k].own && picture->own[k])) &&
		    picture->value[k] + kept < slot->cell[k].held &&
		    (kept || picture->floor == floor_of(m, s) || /* else it may lack that alone */
		     picture->value[k] < judged_by(&s->applied, k)))
			s->give[k] = true;
	}
	s->applied = *picture;
}

/* --- the record ------------------------------------------------------------------------------- */

/* The member's slot with its session, made where there is none. NULL: there is no place. */
static struct fleet_slot *join(const struct fleet_member *m, const struct fleet_share *s,
			       struct fleet_record *record, bool *changed)
{
	struct fleet_slot *slot = fleet_slot_of(record, m->id);

	if (!slot) {
		if (record->slots == FLEET_MEMBERS_MAX)
			return NULL;
		slot = fleet_add_slot(record, m->id);
	}
	if (slot->session != m->session) {
		if (slot->session && !PACER_FAULT(RESUME_CELLS))
			fleet_end_session(record, slot);
		slot->session = m->session;
		*changed = true;
	}
	if (slot->limit != s->params.limit) {
		slot->limit = s->params.limit;
		*changed = true;
	}
	return slot;
}

/* Units that a cell lacks to hold so large a reserve. */
static uint64_t lacks(const struct fleet_cell *c, uint64_t reserve)
{
	return reserve > c->held ? reserve - c->held : 0;
}

/* Is so much free as its cells lack to hold so large a reserve? */
static bool can_hold(const struct fleet_record *record, const struct fleet_slot *slot,
		     uint64_t reserve)
{
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
		if ((!k || slot->cell[k].own) &&
		    fleet_free(record, slot, k) < lacks(&slot->cell[k], reserve))
			return PACER_FAULT(RESERVE_ON_CREDIT);
	return true;
}

/*
 * Sets aside what it is to keep when it is cut off, in each lane or in none: of what it holds, as
 * far as that goes. Where that and what is free is not enough, the others are told that it is due.
 */
static void set_aside(const struct fleet_member *m, const struct fleet_share *s,
		      struct fleet_record *record, struct fleet_slot *slot, bool *changed)
{
	uint64_t reserve = reserve_of(m, s, record), due = 0;

	if (slot->reserve < reserve && !can_hold(record, slot, reserve)) {
		due = reserve;
	} else if (slot->reserve < reserve) {
		for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
			if (!k || slot->cell[k].own)
				fleet_raise(slot, k, lacks(&slot->cell[k], reserve));
		slot->reserve = reserve;
		*changed = true;
	}
	*changed |= slot->due != due;
	slot->due = due;
}

/* What a datapath before this one may have used of its reserve: this one has not had it. */
static void cool_reserve(struct fleet_record *record, struct fleet_slot *slot, uint64_t units)
{
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
		if (!k || slot->cell[k].own)
			fleet_lower(record, slot, k, slot->cell[k].held - units, UINT64_MAX);
}

/*
 * Sets less aside, once the datapath has no more. Its cells stay as they are, and are given up like
 * all else. From now on the write may be done, so the datapath has no more until that is known.
 */
static void set_less_aside(const struct fleet_member *m, struct fleet_share *s, uint64_t now_ns,
			   struct fleet_record *record, struct fleet_slot *slot, bool *changed)
{
	uint64_t reserve = most(reserve_of(m, s, record), s->applied.floor);

	if (PACER_FAULT(RESERVE_LOWERED_FIRST))
		reserve = reserve_of(m, s, record);
	if (slot->reserve <= reserve)
		return;
	if (!clean(m, s, now_ns) && !PACER_FAULT(RESERVE_FORGOTTEN))
		cool_reserve(record, slot, slot->reserve - reserve);
	if (!PACER_FAULT(RESERVE_RAISED_AGAIN) && !PACER_FAULT(RESERVE_LOWERED_FIRST))
		s->floor = least(s->floor, reserve);
	slot->reserve = reserve;
	*changed = true;
}

/* Takes part in the lane, with the same units as until now. */
static void take_part(struct fleet_slot *slot, uint32_t lane)
{
	slot->cell[lane] = slot->cell[0];
	slot->cell[lane].want = 0;
	slot->cell[lane].own = true;
	if (PACER_FAULT(LANE_COLD))
		slot->cell[lane].cool = 0;
}

static uint32_t lane_of(const struct fleet_record *record, const char *key)
{
	for (uint32_t k = 1; k < FLEET_LANES_MAX; k++)
		if (!strcmp(record->key[k], key))
			return k;
	return 0;
}

/* Units of want that the member says of the lane's key. */
static uint64_t wanted(const struct fleet_share *s, const struct fleet_record *record,
		       uint32_t lane)
{
	if (!lane)
		return s->want[0];
	for (uint32_t i = 1; i < FLEET_LANES_MAX; i++)
		if (s->want_key[i][0] && !strcmp(s->want_key[i], record->key[lane]))
			return s->want[i];
	return 0;
}

/* A lane for each key that needs one, as far as there are any. */
static void open_lanes(const struct fleet_share *s, struct fleet_record *record)
{
	for (uint32_t i = 1; i < FLEET_LANES_MAX; i++) {
		uint32_t lane = 0;

		if (s->want_key[i][0] && s->want[i] && !lane_of(record, s->want_key[i]))
			lane = lane_of(record, "");
		if (lane)
			memcpy(record->key[lane], s->want_key[i], FLEET_KEY_TEXT);
	}
}

/* Goes back to what lane 0 says, where nobody needs the lane and that is not too much. */
static void step_out(struct fleet_record *record, struct fleet_slot *slot, uint32_t lane,
		     bool *changed)
{
	struct fleet_cell was = slot->cell[lane];

	if (was.cool || was.held > slot->cell[0].held || !winding_down(record, lane))
		return;
	memset(&slot->cell[lane], 0, sizeof(slot->cell[lane]));
	if (fleet_sum(record, lane) > fleet_limit(record) && !PACER_FAULT(STEP_OUT_FULL))
		slot->cell[lane] = was;
	else
		*changed = true;
}

static void settle_lanes(const struct fleet_share *s, struct fleet_record *record,
			 struct fleet_slot *slot, bool *changed)
{
	open_lanes(s, record);
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) {
		uint64_t want = wanted(s, record, k);

		if (k && !record->key[k][0])
			continue;
		if (k && !slot->cell[k].own && (want || !winding_down(record, k))) {
			take_part(slot, k);
			*changed = true;
		}
		if ((!k || slot->cell[k].own) && slot->cell[k].want != want) {
			slot->cell[k].want = want;
			*changed = true;
		}
		if (k && slot->cell[k].own && !want)
			step_out(record, slot, k, changed);
	}
}

/* What a datapath before may have used is not counted as hot: until that is over all of it is. */
static void give_up(const struct fleet_member *m, const struct fleet_share *s, uint64_t now_ns,
		    struct fleet_record *record, struct fleet_slot *slot, bool *changed)
{
	bool all = !clean(m, s, now_ns);
	uint64_t kept = all ? slot->reserve : 0;

	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) {
		uint64_t to = most(s->applied.value[k] + kept, slot->reserve);

		if (PACER_FAULT(GIVE_UNAPPLIED) && fleet_surplus(record, slot, k)) {
			fleet_lower(record, slot, k, fleet_goal(record, slot, k), UINT64_MAX);
			*changed = true;
		}
		if (!s->give[k] || (k && !slot->cell[k].own) ||
		    s->applied.value[k] >= slot->cell[k].held)
			continue;
		to = least(to, slot->cell[k].held);
		fleet_lower(record, slot, k, to, all ? UINT64_MAX : s->hot[k]);
		*changed = true;
	}
}

static void take(const struct fleet_share *s, struct fleet_record *record, struct fleet_slot *slot,
		 bool *changed)
{
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) {
		struct fleet_cell *c = &slot->cell[k];
		uint64_t goal = fleet_goal(record, slot, k), units;

		if ((k && (!c->own || winding_down(record, k))) || s->give[k] || c->held >= goal)
			continue;
		units = least(goal - c->held, fleet_free(record, slot, k));
		if (PACER_FAULT(RAISE_OVER))
			units = goal - c->held;
		if (!units)
			continue;
		fleet_raise(slot, k, units);
		*changed = true;
	}
}

/* Has all been given up, the reserve with it? */
static bool gave(const struct fleet_slot *slot)
{
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
		if ((!k || slot->cell[k].own) && slot->cell[k].held)
			return false;
	return true;
}

/*
 * Is something to be given up there, maybe of a session before? Or may a write yet be done that
 * takes some again? The one that makes a record takes nothing.
 */
static bool to_leave(const struct fleet_member *m, const struct fleet_share *s,
		     struct fleet_record *record)
{
	const struct fleet_slot *slot = fleet_slot_of(record, m->id);

	return mine(m, record) || (slot && slot->reserve) || (s->revision && in_doubt(s));
}

/* The slot is nobody's once it holds nothing. While a write may yet be done, the record is
 * written as it is, for that to end. */
static void leave(const struct fleet_share *s, struct fleet_record *record, struct fleet_slot *slot,
		  bool *changed)
{
	if (gave(slot))
		fleet_end_session(record, slot);
	*changed |= !slot->session || in_doubt(s);
}

static void end_dead(const struct fleet_share *s, struct fleet_request *r, bool *changed)
{
	for (uint32_t i = 0; s->dead && i < r->record.slots; i++)
		if (r->record.slot[i].session == s->dead) {
			fleet_end_session(&r->record, &r->record.slot[i]);
			*changed = true;
			return;
		}
}

/*
 * Is there something to be raised or given up, if only nothing were in doubt?
 */
static bool held_back(const struct fleet_member *m, const struct fleet_share *s,
		      const struct fleet_record *record, const struct fleet_slot *slot)
{
	if (!in_doubt(s))
		return false;
	if (least(slot->reserve, reserve_of(m, s, record)) > s->floor)
		return true;
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
		if ((!k || slot->cell[k].own) && (slot->cell[k].held > judged_by(&s->applied, k) ||
						  fleet_surplus(record, slot, k)))
			return true;
	return false;
}

/* Writes the record anew if there is something to say. */
static bool compose(struct fleet_member *m, uint32_t share, uint64_t now_ns,
		    struct fleet_request *r)
{
	struct fleet_share *s = &m->share[share];
	struct fleet_slot *slot;
	bool changed = false;

	if (s->revision)
		now_of(s, now_ns, &r->record);
	else
		fleet_begin(&r->record, s->params.memory_ns, m->ttl_ns);
	fleet_tidy(&r->record);
	end_dead(s, r, &changed);
	if (s->leaving && !to_leave(m, s, &r->record))
		return false;
	slot = join(m, s, &r->record, &changed);
	if (!slot) {
		s->trouble = FLEET_CROWDED;
		return false;
	}
	set_less_aside(m, s, now_ns, &r->record, slot, &changed);
	give_up(m, s, now_ns, &r->record, slot, &changed);
	if (s->leaving) {
		leave(s, &r->record, slot, &changed);
	} else if (m->leaving) {
		changed |= in_doubt(s); /* a write before may take some again */
	} else {
		set_aside(m, s, &r->record, slot, &changed);
		settle_lanes(s, &r->record, slot, &changed);
		take(s, &r->record, slot, &changed);
	}
	if (!changed && !held_back(m, s, &r->record, slot))
		return false;
	fleet_name(&r->record, s->revision);
	r->op = FLEET_WRITE;
	r->share = share;
	r->follows = s->revision;
	r->session = m->session;
	return true;
}

/* --- requests ----------------------------------------------------------------------------------
 */

static bool send_request(struct fleet_member *m, uint64_t now_ns, struct fleet_request *r)
{
	r->number = ++m->number;
	m->flight = r->op;
	m->flight_ns = now_ns;
	m->flight_follows = r->follows;
	m->flight_share = r->share;
	return true;
}

static bool gave_all(const struct fleet_member *m)
{
	for (uint32_t i = 0; i < m->shares; i++) {
		const struct fleet_slot *slot = mine(m, &m->share[i].record);

		if (slot && !gave(slot))
			return false;
	}
	return true;
}

/* When the session is to be renewed, or asked for. */
static uint64_t renew_at(const struct fleet_member *m)
{
	if (m->hurry)
		return 0;
	return m->session ? m->renewed_ns + m->ttl_ns / 3 : m->retry_ns;
}

/* When it goes before all else. Who leaves gives back first, but can give nothing without it. */
static uint64_t renew_first_at(const struct fleet_member *m)
{
	return m->leaving && m->session && !m->hurry ? m->renewed_ns + m->ttl_ns / 3 * 2
						     : renew_at(m);
}

static bool send_renewal(struct fleet_member *m, uint64_t now_ns, struct fleet_request *r)
{
	r->op = FLEET_RENEW;
	r->follows = m->revision;
	return send_request(m, now_ns, r);
}

/* The first write that is wanted, or before it a read of what has changed meanwhile. */
static bool send_write(struct fleet_member *m, uint64_t now_ns, bool unread,
		       struct fleet_request *r)
{
	for (uint32_t i = 0; i < m->shares; i++)
		if (m->share[i].read && m->share[i].trouble <= FLEET_CROWDED &&
		    compose(m, i, now_ns, r)) {
			if (unread)
				r->op = FLEET_FETCH;
			return send_request(m, now_ns, r);
		}
	return false;
}

/*
 * Between two renewals of which the second is due as the first is answered: a write, which is one
 * call beside three and three; or once in a while what hosts share beside their limits. What there
 * is to read a renewal has read.
 */
static bool take_turn(struct fleet_member *m, uint64_t now_ns, struct fleet_request *r)
{
	m->turn = false;
	m->turns = (m->turns + 1) % TURNS;
	if (!m->turns)
		return false;
	return (now_ns < fleet_end_ns(m) && send_write(m, now_ns, false, r)) ||
	       send_renewal(m, now_ns, r);
}

static bool next_request(struct fleet_member *m, uint64_t now_ns, struct fleet_request *r)
{
	r->op = FLEET_IDLE;
	r->session = r->follows = 0;
	r->share = 0;
	if (now_ns >= renew_first_at(m) && !(m->leaving && fleet_gone(m)))
		return m->turn ? take_turn(m, now_ns, r) : send_renewal(m, now_ns, r);
	if (now_ns >= fleet_end_ns(m))
		return false;
	if (m->stale && now_ns >= m->read_ns) {
		r->op = FLEET_FETCH;
		return send_request(m, now_ns, r);
	}
	if (send_write(m, now_ns, m->stale, r))
		return true;
	if (m->leaving && gave_all(m)) {
		r->op = FLEET_LEAVE;
		r->follows = m->revision;
		return send_request(m, now_ns, r);
	}
	/* What is still to be given may wait for that: the datapath is told again. */
	return m->leaving && now_ns >= renew_at(m) && send_renewal(m, now_ns, r);
}

/*
 * Of a store that has gone back: the session of before ends, as there may be records that have it,
 * and one is kept that none has.
 */
static bool next_after_back(struct fleet_member *m, uint64_t now_ns, struct fleet_request *r)
{
	r->session = r->follows = 0;
	r->share = 0;
	if (m->session && (!m->afresh || m->leaving)) {
		r->op = FLEET_LEAVE;
		r->follows = m->revision;
		return send_request(m, now_ns, r);
	}
	return !m->leaving && now_ns >= renew_at(m) && send_renewal(m, now_ns, r);
}

/* When something changes by itself. */
static uint64_t wake_at(const struct fleet_member *m, uint64_t now_ns)
{
	uint64_t at = renew_at(m);

	if (m->stale && !m->went_back)
		at = least(at, m->read_ns);
	for (uint32_t i = 0; i < m->shares; i++) {
		const struct fleet_share *s = &m->share[i];

		if (s->applied.until_ns > now_ns)
			at = least(at, s->applied.until_ns);
		if (clean_at(m, s) > now_ns)
			at = least(at, clean_at(m, s));
		for (uint32_t n = 0; n < s->record.slots; n++)
			for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) {
				uint64_t left = s->record.slot[n].cell[k].left_ns;

				if (left && s->got_ns + fleet_over(left) > now_ns)
					at = least(at, s->got_ns + fleet_over(left));
			}
	}
	return most(at, now_ns + 1);
}

enum fleet_next fleet_next(struct fleet_member *m, uint64_t now_ns, uint32_t *share,
			   struct fleet_picture *picture, struct fleet_request *request,
			   uint64_t *wake_ns)
{
	for (uint32_t i = 0; i < m->shares; i++) {
		struct fleet_share *s = &m->share[i];

		fall_back(s, now_ns);
		paint(m, s, now_ns, picture, &request->record);
		if (!differs(m, picture, &s->applied))
			continue;
		*share = i;
		return FLEET_APPLY;
	}
	if (m->flight == FLEET_IDLE && !m->left &&
	    (m->went_back ? next_after_back(m, now_ns, request) : next_request(m, now_ns, request)))
		return FLEET_SEND;
	*wake_ns = wake_at(m, now_ns);
	return FLEET_WAIT;
}

/* --- answers -----------------------------------------------------------------------------------
 */

/* It is another session, or none: what the last one had is lost. */
static void change_session(struct fleet_member *m, uint64_t session)
{
	m->session = session;
	m->afresh = false;
	m->renewed_ns = 0;
	for (uint32_t i = 0; i < m->shares; i++) {
		m->share[i].sure = false;
		memset(m->share[i].give, 0, sizeof(m->share[i].give));
	}
}

static void renewed(struct fleet_member *m, uint64_t now_ns, const struct fleet_answer *a)
{
	uint64_t session = a->mine ? a->session : 0;

	m->answered = true;
	m->taken = a->session && !a->mine;
	if (session != m->session)
		change_session(m, session);
	m->revision = session ? a->revision : 0;
	m->afresh |= m->went_back && a->done; /* one of before is not renewed then */
	m->retry_ns = now_ns + m->ttl_ns / 4;
	m->hurry = !a->done && !m->taken;
	if (a->done)
		m->renewed_ns = PACER_FAULT(END_FROM_ANSWER) ? now_ns : m->flight_ns;
	m->turn = a->done && now_ns >= renew_at(m) && now_ns - m->flight_ns < m->ttl_ns / 7 * 3;
	m->turns = m->turn ? m->turns : 0;
}

/* Are the cells in the store, for this session? */
static void confirm(struct fleet_member *m, struct fleet_share *s)
{
	const struct fleet_slot *slot = mine(m, &s->record);

	s->sure = slot != NULL;
	if (!slot) {
		memset(s->give, 0, sizeof(s->give));
		return;
	}
	for (uint32_t k = 0; k < FLEET_LANES_MAX; k++) /* an unanswered write may have done it */
		s->give[k] &= s->applied.value[k] < slot->cell[k].held;
	if (!in_doubt(s))
		s->floor = slot->reserve;
	s->trouble = fleet_limit(&s->record) < s->params.limit ? FLEET_SMALLER : FLEET_WELL;
}

/* *at: where the one before was found. They come in much the same order as members of a record. */
static bool is_live(const struct fleet_answer *a, uint64_t session, uint32_t *at)
{
	for (uint32_t i = 0; i < a->lives; i++) {
		*at = *at + 1 < a->lives ? *at + 1 : 0;
		if (a->live[*at] == session)
			return true;
	}
	return false;
}

static uint64_t first_dead(const struct fleet_member *m, const struct fleet_share *s,
			   const struct fleet_answer *a)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->record.slots; i++) {
		const struct fleet_slot *slot = &s->record.slot[i];

		if (slot->session && slot->id != m->id && !is_live(a, slot->session, &at))
			return slot->session;
	}
	return 0;
}

static enum fleet_trouble trouble_of(const struct fleet_share *s, const struct fleet_read *read)
{
	if (read->trouble != FLEET_WELL || !read->revision)
		return read->trouble;
	return read->record->memory_ns != s->params.memory_ns ? FLEET_OTHER_WINDOW : FLEET_WELL;
}

static bool is_back(const struct fleet_share *s, const struct fleet_read *read,
		    const struct fleet_answer *a)
{
	return a->back || (trouble_of(s, read) == FLEET_WELL && read->revision &&
			   read->revision < s->revision);
}

/* Nothing that is known of the store can be relied on: no share goes on, and none begins. */
static void look_back(struct fleet_member *m, const struct fleet_answer *a)
{
	for (uint32_t i = 0; i < m->shares; i++)
		m->went_back |= is_back(&m->share[i], &a->read[i], a);
	m->afresh &= !a->back;
}

static void fetched_one(struct fleet_member *m, struct fleet_share *s, uint64_t now_ns,
			const struct fleet_read *read, const struct fleet_answer *a)
{
	s->trouble =
	    m->went_back && !PACER_FAULT(BACK_TRUSTING) ? FLEET_WENT_BACK : trouble_of(s, read);
	if (s->trouble != FLEET_WELL) {
		s->sure = false;
		return;
	}
	if (!s->read && !PACER_FAULT(START_TRUSTING))
		s->doubt = read->revision;
	s->read = true;
	if (read->revision != s->revision) {
		s->revision = read->revision;
		if (read->revision)
			fleet_take(&s->record, read->record, known_ns(s, now_ns));
		else
			memset(&s->record, 0, sizeof(s->record));
		s->got_ns = PACER_FAULT(COOLS_SINCE_SENT) ? m->flight_ns : now_ns;
	}
	s->dead = first_dead(m, s, a);
	confirm(m, s);
}

static void written(struct fleet_member *m, uint64_t now_ns, const struct fleet_answer *a)
{
	struct fleet_share *s = &m->share[m->flight_share];

	if (!a->done) { /* a copy of the request may have been done before */
		s->doubt = most(s->doubt, m->flight_follows);
		m->stale = true;
		m->read_ns = 0;
		return;
	}
	fleet_take(&s->record, a->record, known_ns(s, now_ns));
	s->revision = a->revision;
	s->got_ns = now_ns;
	s->dead = 0;
	memset(s->give, 0, sizeof(s->give));
	confirm(m, s);
}

uint64_t fleet_kept(const struct fleet_member *m, struct fleet_share *s)
{
	const struct fleet_slot *slot = fleet_slot_of(&s->record, m->id);

	if (s->trouble > FLEET_CROWDED)
		return 0;
	if (!s->read)
		return s->params.reserve;
	return slot ? slot->reserve : 0;
}

/* It could give that back by another session. */
static bool keeps_some(const struct fleet_member *m)
{
	for (uint32_t i = 0; i < m->shares; i++)
		if (fleet_kept(m, &m->share[i]))
			return true;
	return false;
}

void fleet_answered(struct fleet_member *m, uint64_t now_ns, const struct fleet_answer *answer)
{
	if (m->flight == FLEET_IDLE || answer->number != m->number)
		return;
	if (m->flight == FLEET_RENEW || m->flight == FLEET_LEAVE)
		renewed(m, now_ns, answer);
	if (m->flight == FLEET_RENEW || m->flight == FLEET_FETCH) {
		m->stale = false;
		m->read_ns = now_ns + answer->lives * FLEET_READ_NS;
		look_back(m, answer);
		for (uint32_t i = 0; i < m->shares; i++)
			fetched_one(m, &m->share[i], now_ns, &answer->read[i], answer);
	}
	if (m->flight == FLEET_WRITE)
		written(m, now_ns, answer);
	m->left = m->leaving && fleet_gone(m);
	m->flight = FLEET_IDLE;
}

void fleet_lost(struct fleet_member *m)
{
	if (m->flight == FLEET_WRITE) {
		struct fleet_share *s = &m->share[m->flight_share];

		s->doubt = most(s->doubt, m->flight_follows);
	}
	m->stale = true;
	m->read_ns = 0;
	m->flight = FLEET_IDLE;
}

void fleet_nudge(struct fleet_member *m)
{
	m->stale = true;
}

uint64_t fleet_pause_ns(uint32_t members, uint32_t chance)
{
	return members * (PAUSE_NS >> 8) * chance >> 24;
}

bool fleet_left(const struct fleet_member *m, struct fleet_share *s)
{
	if (!s->leaving)
		return false;
	return s->trouble > FLEET_CROWDED || (s->read && !to_leave(m, s, &s->record));
}

void fleet_leave(struct fleet_member *m)
{
	m->leaving = true;
}

/* Before the first answer there may be what an agent before this one had. */
bool fleet_gone(const struct fleet_member *m)
{
	return m->left || (!m->session && m->answered && (m->taken || !keeps_some(m)));
}
