/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/fleet_shares.h"

#include "live/copies.h"
#include "live/grace.h"
#include "live/host.h"
#include "live/still.h"
#include "plan/shares.h"
#include "limit.h"
#include "table.h"

/* A packet is judged that long after its clock was read, at most (common/table.h). */
#define LATE_NS PACER_IDLE_SLACK_NS

static bool is_there(const struct fleet_limit *into, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (into[i].id == id)
			return true;
	return false;
}

size_t fleet_limits(const struct attached *a, struct fleet_limit *into)
{
	const struct pacer_policy *p = &a->copy[copies_in_force(a)].policy;
	uint64_t now_ns = host_now_ns();
	size_t n = 0;

	for (int draining = 0; draining < 2; draining++)
		for (size_t r = 0; r < PACER_RULES_MAX; r++)
			for (size_t k = 0;
			     pacer_rules_has(&p->rules, r) && k < p->rule[r].n_limiters; k++) {
				const struct pacer_limiter *t = &p->rule[r].limiter[k];

				if (!(t->kind & PACER_LIMITER_FLEET) || !t->until_ns != !draining ||
				    (draining && t->until_ns <= now_ns) || n == PACER_SHARES ||
				    is_there(into, n, t->share_id))
					continue;
				into[n++] = (struct fleet_limit){
				    .id = t->share_id,
				    .at = t->share & (PACER_SHARES - 1),
				    .draining = draining,
				    .rule = r,
				    .counter = p->rule[r].counter,
				    .limiter = *t,
				};
			}
	return n;
}

static struct pacer_share *share_of(const struct attached *a, const struct fleet_limit *limit)
{
	return &a->control->share[limit->at];
}

static struct pacer_lanes *lanes_of(const struct attached *a, const struct fleet_limit *limit)
{
	return &a->control->lanes[limit->at];
}

/* Word i of a lane's key, or its family, as the packet path has it. */
static uint32_t key_word(const struct fleet_limit *limit, const struct pacer_packet *pkt,
			 uint32_t i)
{
	const struct pacer_walk walk = {.pkt = *pkt};

	if (i < PACER_KEY_WORDS)
		return pacer_walk_key_word(&walk, &limit->limiter, i);
	return pacer_walk_key_is4(&walk, &limit->limiter) ? PACER_FAMILY_4 : PACER_FAMILY_6;
}

/* Ports and the protocol stand in two places of a packet. */
static struct pacer_packet packet_of(const struct pacer_lanes *lanes, uint32_t lane)
{
	struct pacer_packet pkt = {.family = (uint8_t)lanes->key[PACER_KEY_WORDS][lane]};

	for (uint32_t i = 0; i < PACER_KEY_WORDS; i++)
		pkt.key[i] = lanes->key[i][lane];
	pkt.proto = pkt.key[PACER_WORD_META] & 0xff;
	return pkt;
}

struct fleet_held fleet_held(const struct attached *a, const struct fleet_limit *limit)
{
	const struct pacer_share *share = share_of(a, limit);
	const struct pacer_lanes *lanes = lanes_of(a, limit);
	uint64_t word = pacer_load64(&share->word), said = pacer_load64(&share->said);
	uint32_t floor = pacer_share_value(pacer_load64(&share->floor));
	struct fleet_held held = {
	    .is = true,
	    .units = shares_units_of(&limit->limiter, pacer_share_value(word)),
	    .floor = shares_units_of(&limit->limiter, floor),
	    .until_ns = pacer_share_until(word),
	    .members = said & 0xffff,
	    .answered_ns = said >> 16 << PACER_SHARE_TICK,
	};

	if (pacer_load64(&share->id) != limit->id)
		return (struct fleet_held){.is = false};
	for (uint32_t i = 0; i < PACER_LANES; i++)
		if (pacer_load(&lanes->used) >> i & 1) {
			held.lane[i].is = true;
			held.lane[i].key = packet_of(lanes, i);
			held.lane[i].units = shares_units_of(
			    &limit->limiter, pacer_share_value(pacer_load64(&lanes->word[i])));
		}
	return held;
}

bool fleet_same_key(const struct fleet_limit *limit, const struct pacer_packet *a,
		    const struct pacer_packet *b)
{
	for (uint32_t i = 0; i <= PACER_KEY_WORDS; i++)
		if (key_word(limit, a, i) != key_word(limit, b, i))
			return false;
	return true;
}

uint64_t fleet_judged_by(const struct fleet_limit *limit, const struct fleet_held *held,
			 const struct pacer_packet *pkt)
{
	for (uint32_t i = 0; i < PACER_LANES; i++)
		if (held->lane[i].is && fleet_same_key(limit, &held->lane[i].key, pkt))
			return held->lane[i].units;
	return held->units;
}

static void put(__u64 *to, uint64_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELEASE);
}

static void put_used(struct pacer_lanes *lanes, uint32_t used)
{
	__atomic_store_n(&lanes->used, used, __ATOMIC_RELEASE);
}

static void empty(struct pacer_share *share, struct pacer_lanes *lanes)
{
	put(&share->id, 0);
	put_used(lanes, 0);
	put(&share->word, 0);
	put(&share->floor, 0);
	put(&share->said, 0);
}

void fleet_forget(const struct attached *a)
{
	for (uint32_t i = 0; i < PACER_SHARES; i++)
		empty(&a->control->share[i], &a->control->lanes[i]);
}

bool fleet_clear(const struct attached *a, const uint64_t id[PACER_SHARES])
{
	bool any = false;

	for (uint32_t i = 0; i < PACER_SHARES; i++) {
		struct pacer_share *share = &a->control->share[i];

		if (!share->id || share->id == id[i])
			continue;
		empty(share, &a->control->lanes[i]);
		any = true;
	}
	return any;
}

/* The place of another limit: nobody is judged by it any more before it is this one's. */
static int take_place(const struct attached *a, struct pacer_share *share,
		      struct pacer_lanes *lanes, uint64_t id, struct policy_error *error)
{
	if (share->id == id)
		return 0;
	empty(share, lanes);
	if (grace(a->ifname, error))
		return -1;
	put(&share->id, id);
	return 0;
}

/* A change of what packets are told. */
struct holding {
	const struct fleet_limit *limit;
	struct pacer_share *share;
	struct pacer_lanes *lanes;
	const struct fleet_held *to;
	uint64_t until_ns;
};

static uint64_t word_of(const struct holding *h, uint64_t units)
{
	return pacer_share_word(shares_value(&h->limit->limiter, units), h->until_ns);
}

/* The less of what is there and what is to be. */
static uint64_t less_of(const struct holding *h, uint64_t word, uint64_t units)
{
	uint32_t value = pacer_share_value(word);

	if (shares_units_of(&h->limit->limiter, value) <= units)
		return pacer_share_word(value, h->until_ns);
	return word_of(h, units);
}

/* By which the key is judged. */
static uint64_t word_by(const struct holding *h, const struct pacer_packet *key)
{
	for (uint32_t i = 0; i < PACER_LANES; i++) {
		const struct pacer_packet its = packet_of(h->lanes, i);

		if (h->lanes->used >> i & 1 && fleet_same_key(h->limit, key, &its))
			return h->lanes->word[i];
	}
	return h->share->word;
}

static void begin_lane(struct holding *h, uint32_t i, uint64_t word)
{
	for (uint32_t k = 0; k <= PACER_KEY_WORDS; k++)
		__atomic_store_n(&h->lanes->key[k][i], key_word(h->limit, &h->to->lane[i].key, k),
				 __ATOMIC_RELAXED);
	put(&h->lanes->word[i], word);
	put_used(h->lanes, h->lanes->used | 1u << i);
}

/* Has a lane another key than it is to have? So it may have where its end has passed meanwhile. */
static bool renamed(const struct holding *h)
{
	for (uint32_t i = 0; i < PACER_LANES; i++) {
		const struct pacer_packet was = packet_of(h->lanes, i);

		if (h->lanes->used >> i & 1 && h->to->lane[i].is &&
		    !fleet_same_key(h->limit, &was, &h->to->lane[i].key))
			return true;
	}
	return false;
}

/* No lanes, and no key has more than any had, or is to have. */
static int end_lanes(struct holding *h, const char *ifname, struct policy_error *error)
{
	uint64_t least = less_of(h, h->share->word, h->to->units);

	for (uint32_t i = 0; i < PACER_LANES; i++) {
		uint32_t value = pacer_share_value(h->lanes->word[i]);

		if (h->lanes->used >> i & 1)
			least = less_of(h, least, shares_units_of(&h->limit->limiter, value));
		if (h->to->lane[i].is)
			least = less_of(h, least, h->to->lane[i].units);
	}
	put(&h->share->word, least);
	put_used(h->lanes, 0);
	return grace(ifname, error);
}

/*
 * Each key has no more than it is to have, and no more than before, if that has not ended. Lanes go
 * on until this is so of all packets.
 */
static void narrow(struct holding *h)
{
	for (uint32_t i = 0; i < PACER_LANES; i++) {
		const struct pacer_packet key = packet_of(h->lanes, i);
		uint64_t units = fleet_judged_by(h->limit, h->to, &key);

		if (h->lanes->used >> i & 1)
			put(&h->lanes->word[i], less_of(h, h->lanes->word[i], units));
	}
	for (uint32_t i = 0; i < PACER_LANES; i++) {
		const struct fleet_lane *lane = &h->to->lane[i];

		if (lane->is && !(h->lanes->used >> i & 1))
			begin_lane(h, i, less_of(h, word_by(h, &lane->key), lane->units));
	}
	put(&h->share->word, less_of(h, h->share->word, h->to->units));
}

static void widen(struct holding *h)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < PACER_LANES; i++)
		if (h->to->lane[i].is) {
			put(&h->lanes->word[i], word_of(h, h->to->lane[i].units));
			used |= 1u << i;
		}
	put(&h->share->word, word_of(h, h->to->units));
	put_used(h->lanes, used);
}

/* As before it was widened: no key has more than before, nor than it is to have. */
static void narrow_again(struct holding *h, const struct pacer_lanes *lanes, uint64_t word)
{
	put(&h->share->word, word);
	for (uint32_t i = 0; i < PACER_LANES; i++)
		put(&h->lanes->word[i], lanes->word[i]);
	put_used(h->lanes, lanes->used);
}

/* The last step. Where it cannot be waited for, the caller goes on by what it held before. */
static int widen_and_wait(struct holding *h, const char *ifname, struct policy_error *error)
{
	const struct pacer_lanes were = *h->lanes;
	uint64_t word = less_of(h, h->share->word, h->to->units);

	widen(h);
	if (!grace(ifname, error))
		return 0;
	narrow_again(h, &were, word);
	return -1;
}

int fleet_hold(const struct attached *a, const struct fleet_limit *limit,
	       const struct fleet_held *to, struct policy_error *error)
{
	struct holding h = {limit, share_of(a, limit), lanes_of(a, limit), to, 0};
	uint64_t early_ns = LATE_NS + copies_resolution_ns(a);
	uint32_t value = shares_value(&limit->limiter, to->floor);
	uint64_t floor = pacer_share_floor(value, to->member);
	bool lanes = h.lanes->used;

	for (uint32_t i = 0; i < PACER_LANES; i++)
		lanes |= to->lane[i].is;
	if (take_place(a, h.share, h.lanes, limit->id, error))
		return -1;
	h.until_ns = to->until_ns > early_ns ? to->until_ns - early_ns : 0;
	if (value < pacer_share_value(h.share->floor))
		put(&h.share->floor, floor);
	if (renamed(&h) && end_lanes(&h, a->ifname, error))
		return -1;
	if (lanes) {
		narrow(&h);
		if (grace(a->ifname, error))
			return -1;
	}
	if (widen_and_wait(&h, a->ifname, error))
		return -1;
	put(&h.share->floor, floor);
	for (uint32_t i = 0; i < PACER_LANES; i++) /* nobody reads these now */
		if (!(h.lanes->used >> i & 1))
			put(&h.lanes->word[i], 0);
	return 0;
}

uint64_t fleet_hot(const struct attached *a, const struct fleet_limit *limit)
{
	const struct pacer_limiter *t = &limit->limiter;
	struct pacer_throttle_state state;

	if (pacer_limiter_kind_of(t) != PACER_LIMITER_THROTTLE || t->base >= PACER_THROTTLES ||
	    !still_copy(&a->throttle[t->base], &state, sizeof(state)))
		return UINT64_MAX;
	return t->throttle.limit - pacer_throttle_free(&t->throttle, &state, host_now_ns());
}

void fleet_say(const struct attached *a, const struct fleet_limit *limit, uint32_t members,
	       uint64_t answered_ns)
{
	struct pacer_share *share = share_of(a, limit);

	if (pacer_load64(&share->id) == limit->id)
		put(&share->said, pacer_share_said(members, answered_ns));
}
