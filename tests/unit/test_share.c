/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shares of a fleet's limits: a limit of which a host has the share v admits what a plain limit of
 * v admits, packet by packet, while v changes, ends and falls back. And the words that shares are
 * in.
 */
#include "applied.h"

#include "parsed.h"
#include "plan/drift.h"
#include "plan/shares.h"
#include "share.h"
#include "short.h"

#define LINES 1024u
#define ID    0x1234567890abcdefull
#define AT    5u /* its place */

enum {
	PLACED = PACER_SHARES / 2
}; /* limits of a policy; with those that it retires, all there are */

struct world {
	struct pacer_policy policy;
	struct pacer_line lines[LINES];
	struct pacer_throttle_state throttle[PACER_THROTTLES];
	struct pacer_throttle_lease lease[PACER_THROTTLES];
};

static struct world fleet, plain;
static struct pacer_share share[PACER_SHARES];
static struct pacer_lanes lanes[PACER_SHARES];
static __u64 secret[2][PACER_SECRETS];

static struct pacer_state state_of(struct world *w, const struct pacer_share *shares)
{
	return (struct pacer_state){.table = {w->lines, LINES},
				    .policy = &w->policy,
				    .secret = secret[0],
				    .throttle = w->throttle,
				    .lease = w->lease,
				    .share = shares,
				    .lanes = shares ? lanes : NULL};
}

static enum pacer_reason judge(struct world *w, const struct pacer_share *shares, uint64_t now_ns,
			       const struct pacer_packet *pkt)
{
	struct pacer_state state = state_of(w, shares);
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns, .pkt = *pkt};

	return pacer_outcome_reason(judge_parsed(&walk));
}

static uint64_t when(struct world *w, const struct pacer_share *shares, uint64_t now_ns,
		     const struct pacer_packet *pkt)
{
	struct pacer_state state = state_of(w, shares);
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns, .pkt = *pkt};

	return pacer_rule_when(&walk);
}

/* The policy's first limit is a fleet's in one world, and its own in the other. */
static void begin(const char *limits)
{
	say_again();
	say("clock: exact\nmemory: 64Ki\nrules:\n- name: a\n  limits:\n%s", limits);
	if (load(doc.s))
		fail_msg("%s: %s", limits, error.text);
	memset(&fleet, 0, sizeof(fleet));
	memset(&plain, 0, sizeof(plain));
	memset(share, 0, sizeof(share));
	memset(lanes, 0, sizeof(lanes));
	fleet.policy = plain.policy = now.bin;
	fleet.policy.rule[0].plain = PACER_PLAIN_NOT;
	fleet.policy.rule[0].limiter[0].kind |= PACER_LIMITER_FLEET;
	fleet.policy.rule[0].limiter[0].share = AT;
	fleet.policy.rule[0].limiter[0].share_id = ID;
	share[AT].id = ID;
	for (uint32_t i = 0; i < PACER_SECRETS; i++)
		secret[0][i] = draw();
}

/* As a part of what the first limit has. */
static uint32_t value_of(uint32_t part, uint32_t of)
{
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];

	if (!part)
		return 0;
	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_RATE:
		return pacer_share_of_time(t->rate.unit_ns * of / part, t->rate.unit_frac);
	case PACER_LIMITER_THROTTLE:
		return (uint64_t)t->throttle.limit * part / of;
	default:
		return (uint64_t)t->window.limit * part / of;
	}
}

static void make_plain(uint32_t value)
{
	struct pacer_limiter *t = &plain.policy.rule[0].limiter[0];

	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_RATE:
		t->rate.unit_ns = pacer_share_time_ns(value);
		t->rate.unit_frac = pacer_share_time_frac(value);
		break;
	case PACER_LIMITER_THROTTLE:
		t->throttle.limit = value;
		break;
	default:
		t->window.limit = value;
	}
}

static const char *const pool[] = {
    "  - {key: src, packets: 12, window: 20ms, slots: 4}\n",
    "  - {key: src, packets: 300, window: 40ms, slots: 30}\n",
    "  - {key: src, bytes: 40000, window: 9ms, slots: 10}\n",
    "  - {key: all, packets: 40, window: 30ms}\n",
    "  - {key: src, rate: 500/s, burst: 16}\n",
    "  - {key: src, rate: 10Mbit/s, burst: 40000}\n",
    "  - {key: all, uses: 30, cooldown: 40ms, max_cooldown: 60ms, threshold: 10}\n",
    "  - {key: src, packets: 12, window: 20ms}\n  - {key: all, packets: 90, window: 30ms}\n",
    ("  - {key: src, rate: 500/s, burst: 16}\n"
     "  - {key: all, uses: 60, cooldown: 40ms, max_cooldown: 60ms, threshold: 9}\n"),
};

#define PACKETS 4000u

static void a_share_is_a_plain_limit_of_its_value(void **unused)
{
	uint32_t admitted = 0, denied = 0, none = 0, ended = 0;

	(void)unused;
	for (uint32_t run = 0; run < 8 * ARRAY(pool); run++) {
		uint64_t now_ns = 1000000000, until_ns = 0;
		uint32_t value = 0, floor = 0;

		begin(pool[run % ARRAY(pool)]);
		if (run / ARRAY(pool) & 1) { /* of new flows, which all packets are */
			fleet.policy.rule[0].limiter[0].kind |= PACER_LIMITER_NEW;
			plain.policy.rule[0].limiter[0].kind |= PACER_LIMITER_NEW;
			plain.policy.rule[0].plain = PACER_PLAIN_NOT;
		}
		for (uint32_t i = 0; i < PACKETS; i++) {
			struct pacer_packet pkt = {.family = PACER_FAMILY_4, .proto = 17};
			enum pacer_reason is, was;
			uint32_t counts;

			pkt.key[PACER_WORD_SADDR] = between(1, 3);
			pkt.len_bytes = between(60, 1514);
			now_ns += draw() % 8 ? draw() % 400000 : draw() % 30000000;
			if (!(draw() % 64)) { /* another share, or another floor */
				value = value_of(draw() % 5, 4);
				until_ns = now_ns + draw() % 200000000;
				share[AT].word = pacer_share_word(value, until_ns);
				until_ns = pacer_share_until(share[AT].word);
			}
			if (!(draw() % 256)) {
				floor = draw() & 1 ? value_of(1, 4) : 0;
				share[AT].floor = pacer_share_floor(floor, draw());
			}
			counts = now_ns < until_ns ? value : floor;
			ended += now_ns >= until_ns;
			make_plain(counts);
			is = judge(&fleet, share, now_ns, &pkt);
			was = counts ? judge(&plain, NULL, now_ns, &pkt) : PACER_DENY_SHARE;
			assert_int_equal(is, was);
			if (is == PACER_ADMIT)
				admitted++;
			else if (is == PACER_DENY_SHARE)
				none++;
			else
				denied++;
			assert_int_equal(when(&fleet, share, now_ns, &pkt),
					 counts ? when(&plain, NULL, now_ns, &pkt) : PACER_NEVER);
		}
	}
	assert_true(admitted > 50000 && denied > 20000 && none > 20000 && ended > 20000);
}

static const char *const keyed[] = {
    "  - {key: src, packets: 12, window: 20ms, slots: 4}\n",
    "  - {key: 'src/24,48', packets: 30, window: 40ms}\n",
    "  - {key: src+dst+proto+sport+dport, packets: 12, window: 30ms}\n",
    "  - {key: dst, rate: 500/s, burst: 16}\n",
    "  - {key: dst+dport, bytes: 40000, window: 9ms, slots: 10}\n",
};

/* Few keys, that differ in one part each, of both families. */
static struct pacer_packet some_packet(void)
{
	struct pacer_packet pkt = {.family = draw() & 1 ? PACER_FAMILY_4 : PACER_FAMILY_6,
				   .len_bytes = between(60, 1514),
				   .proto = draw() & 1 ? 17 : 6};

	pkt.key[PACER_WORD_SADDR] = 0xc0000200u + (draw() & 1) * 256;
	pkt.key[PACER_WORD_DADDR] = 0xc6336401u + (draw() & 1);
	if (pkt.family == PACER_FAMILY_6) {
		pkt.key[PACER_WORD_SADDR + 1] = (draw() & 1) << 20;
		pkt.key[PACER_WORD_DADDR + 1] = draw() & 1;
	}
	pkt.key[PACER_WORD_PORTS] = 1000u << 16 | (53 + (draw() & 1));
	pkt.key[PACER_WORD_META] = pkt.proto;
	return pkt;
}

static uint32_t lane_word(const struct pacer_packet *pkt, uint32_t i)
{
	const struct pacer_limiter *t = &fleet.policy.rule[0].limiter[0];
	bool four = pkt->family == PACER_FAMILY_4;

	if (i == PACER_KEY_WORDS)
		return pkt->family;
	if (four && (i == PACER_WORD_SADDR || i == PACER_WORD_DADDR))
		return pkt->key[i] & t->mask4[i / 4];
	return pkt->key[i] & t->mask6[i];
}

static bool lane_is_of(uint32_t lane, const struct pacer_packet *pkt)
{
	bool same = lanes[AT].used >> lane & 1;

	for (uint32_t i = 0; i <= PACER_KEY_WORDS; i++)
		same &= lanes[AT].key[i][lane] == lane_word(pkt, i);
	return same;
}

/* Of some key that has none: as the agent does. */
static void set_lane(uint32_t lane, uint32_t value, uint64_t until_ns)
{
	struct pacer_packet pkt = some_packet();

	lanes[AT].used &= ~(1u << lane);
	for (uint32_t i = 0; i < PACER_LANES; i++)
		if (lane_is_of(i, &pkt))
			return;
	for (uint32_t i = 0; i <= PACER_KEY_WORDS; i++)
		lanes[AT].key[i][lane] = lane_word(&pkt, i);
	lanes[AT].word[lane] = pacer_share_word(value, until_ns);
	lanes[AT].used |= 1u << lane;
}

/* A key with a lane is judged by that alone, whatever other keys have. */
static void a_key_has_its_lane(void **unused)
{
	uint32_t by_lane = 0, admitted = 0, none = 0;

	(void)unused;
	for (uint32_t run = 0; run < 8 * ARRAY(keyed); run++) {
		uint64_t now_ns = 1000000000, until_ns = 1ull << 50;

		begin(keyed[run % ARRAY(keyed)]);
		share[AT].word = pacer_share_word(value_of(1, 4), until_ns);
		for (uint32_t i = 0; i < PACKETS; i++) {
			struct pacer_packet pkt = some_packet();
			uint32_t value = value_of(1, 4), found = 0;
			enum pacer_reason is;

			now_ns += draw() % 8 ? draw() % 100000 : draw() % 10000000;
			if (!(draw() % 64))
				set_lane(draw() % PACER_LANES, value_of(draw() % 5, 4), until_ns);
			for (uint32_t k = 0; k < PACER_LANES; k++)
				if (lane_is_of(k, &pkt)) {
					value = pacer_share_value(lanes[AT].word[k]);
					found++;
				}
			assert_true(found <= 1);
			make_plain(value);
			is = judge(&fleet, share, now_ns, &pkt);
			assert_int_equal(is, value ? judge(&plain, NULL, now_ns, &pkt)
						   : PACER_DENY_SHARE);
			by_lane += found;
			admitted += found && is == PACER_ADMIT;
			none += is == PACER_DENY_SHARE;
		}
	}
	assert_true(by_lane > 20000 && admitted > 5000 && none > 1000);
}

/* It ends as the share does, falls back to the same floor, and is of one limit. */
static void a_lane_ends_with_the_share(void **unused)
{
	struct pacer_packet pkt = some_packet();
	uint64_t end_ns;

	(void)unused;
	begin(keyed[0]);
	for (uint32_t i = 0; i <= PACER_KEY_WORDS; i++)
		lanes[AT].key[i][7] = lane_word(&pkt, i);
	lanes[AT].used = 1u << 7;
	share[AT].word = pacer_share_word(0, 1ull << 50);
	lanes[AT].word[7] = pacer_share_word(9, 1ull << 40);
	end_ns = pacer_share_until(lanes[AT].word[7]);
	assert_int_equal(judge(&fleet, share, end_ns - 1, &pkt), PACER_ADMIT);
	assert_int_equal(judge(&fleet, share, end_ns, &pkt), PACER_DENY_SHARE);
	share[AT].floor = 3;
	assert_int_equal(judge(&fleet, share, end_ns, &pkt), PACER_ADMIT);
	share[AT].id = ID + 1;
	assert_int_equal(judge(&fleet, share, end_ns - 1, &pkt), PACER_DENY_SHARE);
}

static void a_share_is_of_one_limit(void **unused)
{
	struct pacer_packet pkt = {.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 60};

	(void)unused;
	begin(pool[0]);
	share[AT].word = pacer_share_word(3, 1ull << 40);
	assert_int_equal(judge(&fleet, share, 1000, &pkt), PACER_ADMIT);
	share[AT].id = ID + 1; /* of another */
	assert_int_equal(judge(&fleet, share, 1001, &pkt), PACER_DENY_SHARE);
	share[AT].id = ID;
	fleet.policy.rule[0].limiter[0].share = AT + 1;
	assert_int_equal(judge(&fleet, share, 1002, &pkt), PACER_DENY_SHARE);
	fleet.policy.rule[0].limiter[0].share = AT;
	assert_int_equal(judge(&fleet, share, 1003, &pkt), PACER_ADMIT);
	assert_int_equal(judge(&fleet, share, 1004, &pkt), PACER_ADMIT);
	assert_int_equal(judge(&fleet, share, 1005, &pkt), PACER_DENY_WINDOW);
	/* Without shares, as where a capture is replayed, all of it is here. */
	assert_int_equal(judge(&fleet, NULL, 1006, &pkt), PACER_ADMIT);
}

/* Every boundary is exact: up to the end, and from it on. */
static void it_ends_when_it_says(void **unused)
{
	struct pacer_packet pkt = {.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 60};
	uint64_t end_ns;

	(void)unused;
	begin(pool[0]);
	share[AT].word = pacer_share_word(9, 123456789012345);
	end_ns = pacer_share_until(share[AT].word);
	assert_true(end_ns <= 123456789012345 && end_ns + (1u << 24) > 123456789012345);
	assert_int_equal(judge(&fleet, share, end_ns - 1, &pkt), PACER_ADMIT);
	assert_int_equal(judge(&fleet, share, end_ns, &pkt), PACER_DENY_SHARE);
	share[AT].floor = 2; /* what it has admitted counts */
	assert_int_equal(judge(&fleet, share, end_ns, &pkt), PACER_ADMIT);
	assert_int_equal(judge(&fleet, share, end_ns, &pkt), PACER_DENY_WINDOW);
}

/* Theirs is another than that of plain limits, as these have no share to read; a gap has none. */
static void a_short_way_of_its_own(void **unused)
{
	struct pacer_limiter *t = fleet.policy.rule[0].limiter;

	(void)unused;
	begin("  - {key: src, packets: 12, window: 20ms}\n");
	assert_int_equal(pacer_short_kind_of(&plain.policy, plain.policy.rule), PACER_SHORT_NARROW);
	assert_int_equal(pacer_short_kind_of(&fleet.policy, fleet.policy.rule),
			 PACER_SHORT_PART_NARROW);
	t->gap_ns = 1;
	assert_int_equal(pacer_short_kind_of(&fleet.policy, fleet.policy.rule), PACER_SHORT_NONE);
	begin("  - {key: src, rate: 500/s, burst: 16}\n");
	assert_int_equal(pacer_short_kind_of(&plain.policy, plain.policy.rule), PACER_SHORT_RATE);
	assert_int_equal(pacer_short_kind_of(&fleet.policy, fleet.policy.rule),
			 PACER_SHORT_PART_RATE);
}

static void words(void **unused)
{
	(void)unused;
	assert_int_equal(pacer_share_word(0, 0), 0);
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t value = draw() & PACER_SHARE_VALUE_MAX;
		uint64_t until_ns = ((uint64_t)draw() << 32 | draw()) >> draw() % 64;
		uint64_t word = pacer_share_word(value, until_ns), end_ns = pacer_share_until(word);

		if (until_ns > PACER_SHARE_END_MAX)
			until_ns = PACER_SHARE_END_MAX;
		assert_int_equal(pacer_share_value(word), value);
		assert_true(end_ns <= until_ns && until_ns - end_ns < 1u << PACER_SHARE_TICK);
	}
}

/* Of a floor packets see the value alone, and tools whose it is. */
static void floors(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t value = i ? draw() & PACER_SHARE_VALUE_MAX : 0;
		uint64_t member = ((uint64_t)draw() << 32 | draw()) >> draw() % 64;
		uint64_t floor = pacer_share_floor(value, member), of = pacer_share_floor_of(floor);
		struct pacer_share s = {.id = ID, .floor = floor};

		assert_int_equal(pacer_share_now(&s, ID, 0, 1), value);
		assert_int_equal(of, value ? pacer_share_mark(member) : 0);
		assert_true(!value == !of && !value == !floor);
		assert_int_not_equal(pacer_share_mark(member), pacer_share_mark(member + 1));
	}
}

/* Of a rate's unit: never shorter, and by 2^-24 at most longer. */
static void times(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i < 100000; i++) {
		uint64_t ns = (((uint64_t)draw() << 32 | draw()) & (PACER_RATE_UNIT_NS_MAX - 1)) >>
			      draw() % 43;
		uint32_t frac = draw(), value = pacer_share_of_time(ns, frac);
		unsigned __int128 is = (unsigned __int128)ns << 32 | frac;
		unsigned __int128 told = (unsigned __int128)pacer_share_time_ns(value) << 32 |
					 pacer_share_time_frac(value);

		assert_true(value && value <= PACER_SHARE_VALUE_MAX);
		assert_true(told >= is && told - is <= is >> (PACER_SHARE_TIME_BITS - 1));
	}
	assert_true(pacer_share_of_time(0, 0) > 0);
	assert_int_equal(pacer_share_of_time(UINT64_MAX, 0), PACER_SHARE_VALUE_MAX);
}

#define FLEET                                                                                    \
	"clock: exact\nmemory: 64Ki\nfleet: {store: 'http://a', name: f}\nrules:\n- name: a\n  " \
	"limits:\n"

static const struct pacer_limiter *of_fleet(const char *limits, size_t k)
{
	say_again();
	say(FLEET "%s", limits);
	if (load(doc.s))
		fail_msg("%s: %s", limits, error.text);
	return &now.bin.rule[0].limiter[k];
}

/* The time of a fleet's limit is longer than a plain one's by what hosts' clocks may differ. */
static void clocks_that_drift(void **unused)
{
	static const char *const limits[] = {
	    "  - {key: src, packets: 100, window: 1h, fleet: %s}\n",
	    "  - {key: src, rate: 100/h, burst: 100, fleet: %s}\n",
	    "  - {key: all, uses: 100, cooldown: 1h, max_cooldown: 2h, fleet: %s}\n",
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(limits); i++) {
		uint64_t time_ns[2], open_ns[2];

		for (int k = 0; k < 2; k++) {
			const struct pacer_limiter *t;
			char text[128];

			snprintf(text, sizeof(text), limits[i], k ? "yes" : "no");
			t = of_fleet(text, 0);
			time_ns[k] = i == 0   ? t->window.ring_ns
				     : i == 1 ? t->rate.unit_ns
					      : t->throttle.cooldown_ns;
			open_ns[k] = i < 2 ? 0 : t->throttle.open_ns;
		}
		assert_true(time_ns[1] > time_ns[0] + (time_ns[0] >> (DRIFT_SHIFT + 1)));
		assert_true(time_ns[1] < time_ns[0] + (time_ns[0] >> (DRIFT_SHIFT - 1)));
		assert_true(open_ns[1] >= open_ns[0]);
	}
	/* Without an end there is none to make longer. */
	assert_true(
	    of_fleet("  - {key: all, uses: 100, cooldown: 1h, threshold: 9, fleet: yes}\n", 0)
		->throttle.open_ns > UINT64_MAX / 2);
}

/* A limit is the same on all hosts but for its value. */
static void who_shares_with_whom(void **unused)
{
	static const struct {
		const char *limit;
		bool same; /* as the first */
	} limits[] = {
	    {"  - {key: src, packets: 100, window: 1s, fleet: yes}\n", true},
	    {"  - {key: src, packets: 200, window: 1s, fleet: yes}\n", true},
	    {"  - {key: src, packets: 200, window: 1s, slots: 20, fleet: yes}\n", true},
	    {"  - {key: src, packets: 100, window: 2s, fleet: yes}\n", false},
	    {"  - {key: dst, packets: 100, window: 1s, fleet: yes}\n", false},
	    {"  - {key: src, bytes: 100, window: 1s, fleet: yes}\n", false},
	    {"  - {key: src, rate: 100/s, burst: 100, fleet: yes}\n", false},
	};
	uint64_t id = of_fleet(limits[0].limit, 0)->share_id;

	(void)unused;
	for (size_t i = 0; i < ARRAY(limits); i++) {
		const struct pacer_limiter *t = of_fleet(limits[i].limit, 0);

		assert_int_equal(t->share_id == id, limits[i].same);
		assert_true(t->kind & PACER_LIMITER_FLEET && t->share < PACER_SHARES);
		assert_true((__u32)t->share_id); /* pacer_limiter_whole */
		assert_int_equal(now.bin.rule[0].plain, PACER_PLAIN_NOT);
	}
	/* Values of other units are not its: but the agent's limit is the same. */
	id = of_fleet("  - {key: src, bytes: 50M, window: 1s, fleet: yes}\n", 0)->share_id;
	assert_int_equal(
	    (of_fleet("  - {key: src, bytes: 50G, window: 1s, fleet: yes}\n", 0)->share_id ^ id) &
		~31ull,
	    0);
	assert_true(now.bin.rule[0].limiter[0].share_id != id);
	id = of_fleet(limits[0].limit, 0)->share_id;
	/* Twins are two limits, and a plain one beside them is none. */
	assert_int_equal(of_fleet("  - {key: src, packets: 9, window: 1s, fleet: yes}\n"
				  "  - {key: src, packets: 8, window: 1s}\n"
				  "  - {key: src, packets: 7, window: 1s, slots: 3, fleet: yes}\n",
				  0)
			     ->share_id,
			 id);
	assert_int_equal(now.bin.rule[0].limiter[1].share_id, 0);
	assert_true(now.bin.rule[0].limiter[2].share_id != id);
	assert_true(now.bin.rule[0].limiter[2].share != now.bin.rule[0].limiter[0].share);
}

#define SAME(store, name, window)                                                           \
	"clock: exact\nmemory: 1M\nfleet: {store: [" store "], name: " name "}\nrules:\n- " \
	"name: a\n  limits: [{key: src, packets: 90, entries: 64, window: " window          \
	", fleet: yes}]\n"
#define OF_NONE                                         \
	"clock: exact\nmemory: 1M\nrules:\n- name: a\n" \
	"  limits: [{key: src, packets: 90, entries: 64, window: 5s}]\n"

/* What the ids of the policy's only rule are without the fleet of it. */
static uint64_t of_limit(size_t k)
{
	return now.bin.rule[0].limiter[k].share_id ^ shares_fleet(&now.policy->fleet);
}

/*
 * Packets of one fleet's limit are not judged by what another's was told, even where it is the same
 * limit. In their stores it has one name, however a host reaches it.
 */
static void of_another_fleet_it_is_another(void **unused)
{
	static const struct {
		const char *policy;
		bool same; /* as the first */
	} of[] = {
	    {SAME("'http://a:1', 'http://b:1'", "f", "1s"), true},
	    {SAME("'http://a:1', 'http://b:1'", "g", "1s"), false},
	    {SAME("'http://a:1'", "f", "1s"), false},
	    {SAME("'http://a:1', 'http://c:1'", "f", "1s"), false},
	    {SAME("'http://c:1', 'http://b:1'", "f", "1s"), false},
	};
	uint64_t id, limit;

	(void)unused;
	assert_int_equal(load(of[0].policy), 0);
	id = now.bin.rule[0].limiter[0].share_id;
	limit = of_limit(0);
	for (size_t i = 0; i < ARRAY(of); i++) {
		assert_int_equal(load(of[i].policy), 0);
		assert_int_equal(now.bin.rule[0].limiter[0].share_id == id, of[i].same);
		assert_int_equal(of_limit(0), limit);
		assert_int_equal(shares_fleet(&now.policy->fleet) & SHARES_UNIT_MASK, 0);
	}
}

/* What drains, or rests, is of the policy's fleet as well, and has its place. */
static void what_drains_moves_with_the_fleet(void **unused)
{
	static const char *const other[] = {
	    SAME("'http://a:1'", "g", "1s"), SAME("'http://b:1'", "g", "1s"),
	    SAME("'http://b:1'", "j", "1s"), SAME("'http://c:1'", "k", "1s"),
	    SAME("'http://c:1'", "l", "1s")};
	const struct pacer_limiter *t = now.bin.rule[0].limiter;
	uint64_t limit;
	uint8_t at;

	(void)unused;
	assert_int_equal(load(SAME("'http://a:1'", "f", "1s")), 0);
	limit = of_limit(0);
	at = t[0].share;
	for (size_t i = 0; i < ARRAY(other); i++) {
		assert_int_equal(apply(other[i]), 0); /* it goes on */
		assert_int_equal(of_limit(0), limit);
		assert_int_equal(t[0].share, at);
	}
	assert_int_equal(apply(SAME("'http://a:1'", "h", "2s")), 0);
	assert_true(t[1].until_ns);
	assert_int_equal(of_limit(1), limit);
	assert_int_equal(t[1].share, at);
	assert_true(of_limit(0) != limit && t[0].share != at);
	assert_int_equal(apply(OF_NONE), 0);
	assert_int_equal(t[0].share_id, 0);
	assert_int_equal(of_limit(2), limit);
	assert_int_equal(apply(SAME("'http://a:1'", "i", "3s")), 0);
	assert_int_equal(of_limit(3), limit);
	assert_int_equal(t[3].share, at);
	assert_int_equal(apply("clock: exact\nmemory: 1M\nrules: [{name: a, verdict: drop}]\n"), 0);
	for (t = now.bin.rule[1].limiter; t->until_ns && t->share_id != limit;) /* it rests */
		t++;
	assert_int_equal(t->share_id, limit);
}

#define BY_BOTH(limits)                                                                   \
	"clock: exact\nmemory: 1M\nfleet: {store: 'http://a', name: f}\nrules:\n- name: " \
	"a\n  limits: [" limits "]\n"
#define OWN(n)	  "{key: src, packets: " #n ", entries: 64, window: 60s}"
#define FLEETS(n) "{key: src, packets: " #n ", entries: 64, window: 60s, fleet: yes}"

/*
 * A fleet's limit is longer by the drift of clocks than the host's own, and else the same: where
 * one is raised beside the other, its old value holds for its time.
 */
static void raised_beside_a_twin(void **unused)
{
	static const char *const changes[][2] = {
	    {BY_BOTH(FLEETS(50)), BY_BOTH(FLEETS(100) ", " OWN(50))},
	    {BY_BOTH(OWN(50)), BY_BOTH(OWN(100) ", " FLEETS(50))},
	    {BY_BOTH(FLEETS(50) ", " OWN(50)), BY_BOTH(FLEETS(100) ", " OWN(50))},
	    {BY_BOTH(FLEETS(50) ", " OWN(50)), BY_BOTH(FLEETS(50) ", " OWN(100))},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(changes); i++) {
		assert_int_equal(load(changes[i][0]), 0);
		assert_int_equal(apply(changes[i][1]), 0);
		assert_int_equal(now.plan.n_draining, 1);
	}
}

/* Places are chosen by ids, of which some want the same one. */
static void each_has_a_place(void **unused)
{
	enum { RULES = PACER_SHARES / 2 };
	bool taken[PACER_SHARES] = {false};

	(void)unused;
	say_again();
	say("clock: exact\nmemory: 64Ki\nfleet: {store: 'http://a', name: f}\nrules:\n");
	for (int r = 0; r < RULES; r++)
		say("- {name: r%d, limits: [{key: all, packets: 9, window: 1s, fleet: yes}]}\n", r);
	assert_int_equal(load(doc.s), 0);
	for (int r = 0; r < RULES; r++) {
		uint8_t at = now.bin.rule[r].limiter[0].share;

		assert_false(taken[at]);
		taken[at] = true;
	}
}

/* So many rules that some find their place taken; in this order or in the other. */
static void say_rules(bool back, const char *window)
{
	say_again();
	say("clock: exact\nmemory: 64Ki\nfleet: {store: 'http://a', name: f}\nrules:\n");
	for (int i = 0; i < PLACED; i++)
		say("- {name: r%d, limits: [{key: all, packets: 9, window: %s, fleet: yes}]}\n",
		    back ? PLACED - 1 - i : i, window);
}

/*
 * A change leaves each limit its place, in whatever order the rules come: the word of another limit
 * that it finds there else gives it no share, until the agent has written it anew. What drains
 * keeps its place before the new limits find theirs.
 */
static void each_keeps_its_place(void **unused)
{
	static const char *const windows[] = {"1s", "2s"};

	(void)unused;
	for (size_t drains = 0; drains < ARRAY(windows); drains++) {
		uint8_t at[PLACED];

		say_rules(false, "1s");
		assert_int_equal(load(doc.s), 0);
		for (int r = 0; r < PLACED; r++)
			at[r] = now.bin.rule[r].limiter[0].share;
		say_rules(true, windows[drains]);
		assert_int_equal(apply(doc.s), 0);
		for (int r = 0; r < PLACED; r++) {
			const struct pacer_rule *rule = &now.bin.rule[r];

			assert_int_equal(rule->n_limiters, 1 + drains);
			assert_int_equal(rule->limiter[drains].share, at[PLACED - 1 - r]);
		}
	}
}

/* By 1/1,024, for the clocks, and what cools lasts for as long as it may count anywhere. */
static void it_counts_for_longer(void **unused)
{
	const struct pacer_limiter *t;

	(void)unused;
	t = of_fleet("  - {key: src, packets: 9, window: 1s, slots: 1, fleet: yes}\n", 0);
	assert_int_equal(t->window.slot_ns, SECOND + SECOND / 1024 + 1);
	assert_int_equal(t->share_ns, SECOND);
	t = of_fleet("  - {key: src, rate: 10/s, burst: 20, fleet: yes}\n", 0);
	assert_true(t->rate.unit_ns == (SECOND + SECOND / 1024 + 1) / 10);
	assert_true(t->share_ns > 2 * SECOND + 2 * SECOND / 512 - 9 &&
		    t->share_ns > t->rate.burst_ns + (t->rate.burst_ns >> 10));
	t = of_fleet("  - {key: all, uses: 90, cooldown: 1s, fleet: yes}\n", 0);
	assert_int_equal(t->throttle.cooldown_ns, SECOND + SECOND / 1024 + 1);
	assert_true(t->share_ns > t->throttle.cooldown_ns + t->throttle.lease_ns);
	t = of_fleet("  - {key: all, uses: 90000, cooldown: 1s, fleet: yes}\n", 0);
	assert_true(t->throttle.lease_ns > 0);
	assert_true(t->share_ns > t->throttle.cooldown_ns + t->throttle.lease_ns);
}

/* Shares of all units admit no more than all, and units are never told to be fewer than they are.
 */
static void units_and_values(void **unused)
{
	static const char *const limits[] = {
	    "  - {key: src, packets: 100, window: 1s, fleet: yes}\n",
	    "  - {key: src, bytes: 5G, window: 1s, fleet: yes}\n",
	    "  - {key: src, rate: 7/m, burst: 9, fleet: yes}\n",
	    "  - {key: src, rate: 2/h, burst: 1, fleet: yes}\n",
	    "  - {key: src, rate: 1/h, burst: 1, fleet: yes}\n", /* there is something to divide */
	    "  - {key: src, rate: 1/h, burst: 1024, fleet: yes}\n",
	    "  - {key: src, rate: 100/s, burst: 2, fleet: yes}\n",
	    "  - {key: src, rate: 90/s, burst: 1023, fleet: yes}\n",
	    "  - {key: src, rate: 90/s, burst: 1024, fleet: yes}\n",
	    "  - {key: src, rate: 10Gbit/s, burst: 1M, fleet: yes}\n",
	    "  - {key: all, uses: 90, cooldown: 1s, fleet: yes}\n",
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(limits); i++) {
		const struct pacer_limiter *t = of_fleet(limits[i], 0);
		uint64_t all = shares_units(t);

		assert_true(all > 0);
		assert_int_equal(shares_value(t, 0), 0);
		assert_int_equal(shares_units_of(t, 0), 0);
		assert_true(shares_units_of(t, shares_value(t, all)) <= all);
		assert_int_equal(shares_value(t, 2 * all), shares_value(t, all));
		assert_true(shares_units_of(t, shares_value(t, all)) >= all - (all >> 20));
		for (uint32_t n = 0; n < 1000; n++) {
			uint64_t units = ((uint64_t)draw() << 32 | draw()) % all + 1;
			uint32_t value = shares_value(t, units);

			if (pacer_limiter_kind_of(t) != PACER_LIMITER_RATE) {
				assert_true((uint64_t)value << t->window.cost_shift <= units ||
					    pacer_limiter_kind_of(t) == PACER_LIMITER_THROTTLE);
				assert_true(value <= units);
			} else if (value) { /* an hour is no shorter than so many units take */
				unsigned __int128 time =
				    (unsigned __int128)pacer_share_time_ns(value) << 32 |
				    pacer_share_time_frac(value);

				assert_true(time * units >= (unsigned __int128)shares_span_ns(t)
								<< 32 ||
					    units == all);
			}
			if (value)
				assert_true(shares_units_of(t, value) +
						(1u << t->window.cost_shift) >
					    units / 2);
		}
	}
}

/* By a share of that value, in ns; 0: none. How many packets at once it lets through. */
static uint32_t at_once(const struct pacer_limiter *t, uint32_t value)
{
	struct pacer_fine time = {pacer_share_time_ns(value), pacer_share_time_frac(value)};
	struct pacer_fine unit = {t->rate.unit_ns, t->rate.unit_frac}, tat = {SECOND, 0};
	uint32_t n = 0;

	if (!value)
		return 0;
	for (;; n++) {
		tat = pacer_fine_sum(tat, pacer_fine_above(time, unit) ? time : unit);
		if (!pacer_rate_fits(&t->rate, tat, SECOND))
			return n;
	}
}

/*
 * A rate is divided among as many hosts as it has parts: each of these lets a packet through, and
 * of one more no equal part does. All of it lets the burst through, also one of a single packet.
 */
static void a_part_of_a_rate_is_a_packet(void **unused)
{
	static const struct {
		const char *limit;
		uint64_t least;
	} rows[] = {
	    {"  - {key: all, rate: 100/s, burst: 1, fleet: yes}\n", 1},
	    {"  - {key: all, rate: 100/s, burst: 2, fleet: yes}\n", 1},
	    {"  - {key: all, rate: 100/s, burst: 3, fleet: yes}\n", 2},
	    {"  - {key: all, rate: 100/s, burst: 10, fleet: yes}\n", 9},
	    {"  - {key: all, rate: 7/m, burst: 9, fleet: yes}\n", 8},
	    {"  - {key: all, rate: 2/h, burst: 9, fleet: yes}\n", 2}, /* none is slower than 73 m */
	    {"  - {key: src, rate: 100k/s, burst: 1023, fleet: yes}\n", 1022},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		const struct pacer_limiter *t = of_fleet(rows[i].limit, 0);
		uint64_t all = shares_units(t), parts = shares_parts(t);

		assert_in_range(parts, rows[i].least, rows[i].least + 1);
		assert_true(at_once(t, shares_value(t, all)) > 0);
		assert_true(parts == 1 || at_once(t, shares_value(t, all / parts + 1)) > 0);
		assert_int_equal(at_once(t, shares_value(t, all / (parts + 2))), 0);
	}
}

/* Of how many equal parts each lets a packet through; of bytes, the largest. */
static void parts_that_let_a_packet_through(void **unused)
{
	static const struct {
		const char *limit;
		uint64_t parts;
	} rows[] = {
	    {"  - {key: src, packets: 5, window: 1s, fleet: yes}\n", 5},
	    {"  - {key: src, bytes: 4000, window: 1s, fleet: yes}\n", 2},
	    {"  - {key: src, bytes: 1000, window: 1s, fleet: yes}\n", 0},
	    {"  - {key: src, rate: 1M/s, burst: 5000, fleet: yes}\n", 4999},
	    {"  - {key: src, rate: 1Mbit/s, burst: 1514, fleet: yes}\n", 1},
	    {"  - {key: src, rate: 1Mbit/s, burst: 16000, fleet: yes}\n", 10},
	    {"  - {key: all, uses: 3, cooldown: 1s, threshold: 1, fleet: yes}\n", 3},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++)
		assert_int_equal(shares_parts(of_fleet(rows[i].limit, 0)), rows[i].parts);
}

/* Where hosts' policies differ in the value, the smaller holds: the units of both mean the same. */
static void units_are_the_same_of_any_burst(void **unused)
{
	static const char *const limits[] = {
	    "  - {key: src, rate: 100/s, burst: 1, fleet: yes}\n",
	    "  - {key: src, rate: 200/s, burst: 2, fleet: yes}\n",
	    "  - {key: src, rate: 100k/s, burst: 1000, fleet: yes}\n",
	    "  - {key: src, rate: 200k/s, burst: 2000, fleet: yes}\n",
	};
	uint64_t id = of_fleet(limits[0], 0)->share_id, fewer = 0;

	(void)unused;
	for (size_t i = 0; i < ARRAY(limits); i++) {
		const struct pacer_limiter *t = of_fleet(limits[i], 0);
		uint32_t value = shares_value(t, fewer ? fewer : shares_units(t));

		assert_int_equal(t->share_id, id);
		if (fewer) /* of the host with the larger limit, by the smaller */
			assert_true(pacer_share_time_ns(value) >= 3600 * SECOND / fewer);
		fewer = shares_units(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_share_is_a_plain_limit_of_its_value),
	    cmocka_unit_test(a_key_has_its_lane),
	    cmocka_unit_test(a_lane_ends_with_the_share),
	    cmocka_unit_test(a_share_is_of_one_limit),
	    cmocka_unit_test(it_ends_when_it_says),
	    cmocka_unit_test(a_short_way_of_its_own),
	    cmocka_unit_test(words),
	    cmocka_unit_test(floors),
	    cmocka_unit_test(times),
	    cmocka_unit_test(clocks_that_drift),
	    cmocka_unit_test(who_shares_with_whom),
	    cmocka_unit_test(of_another_fleet_it_is_another),
	    cmocka_unit_test(what_drains_moves_with_the_fleet),
	    cmocka_unit_test(raised_beside_a_twin),
	    cmocka_unit_test(each_has_a_place),
	    cmocka_unit_test(each_keeps_its_place),
	    cmocka_unit_test(it_counts_for_longer),
	    cmocka_unit_test(units_and_values),
	    cmocka_unit_test(a_part_of_a_rate_is_a_packet),
	    cmocka_unit_test(parts_that_let_a_packet_through),
	    cmocka_unit_test(units_are_the_same_of_any_burst),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
