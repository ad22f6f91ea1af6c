/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How packets are told of shares that change. Wherever the agent waits for them, and so wherever it
 * may die, no key is judged by more than it had and than it is to have; in the end each is judged
 * by what it is to have.
 */
#include "applied.h"

#include <stdlib.h>

#include "limit.h"
#include "live/fleet_shares.h"
#include "live/grace.h"
#include "live/host.h"

#define KEYS	 14u
#define UNTIL_NS (1ull << 50)
#define TICK_NS	 (1ull << PACER_SHARE_TICK)

static struct pacer_control control;
static struct attached a = {.ifname = "none", .control = &control};
static struct fleet_limit limit;
static struct pacer_packet key[KEYS];
static uint64_t old[KEYS], new[KEYS];
static uint32_t graces, narrowed;
static bool steady;	     /* no lane of the next change gets another key */
static uint32_t grace_fails; /* at which wait of the next change, from 1; 0: none fails */

static uint64_t judged_at(uint32_t k, uint64_t now_ns)
{
	struct pacer_state state = {.share = control.share, .lanes = control.lanes};
	const struct pacer_walk walk = {.state = &state, .now_ns = now_ns, .pkt = key[k]};

	return pacer_walk_share(&walk, &limit.limiter);
}

static uint64_t judged(uint32_t k)
{
	return judged_at(k, 1000);
}

/* In the place of the kernel's: packets would be judged by this for a while. */
int grace(const char *ifname, struct policy_error *err)
{
	bool less = true, done = true;

	for (uint32_t k = 0; k < KEYS; k++) {
		uint64_t is = judged(k);

		less &= is <= old[k] && is <= new[k];
		assert_true(!steady || is >= (old[k] < new[k] ? old[k] : new[k]));
		done &= is == new[k];
	}
	assert_true(less || done);
	graces++;
	narrowed += less && !done;
	if (grace_fails && !--grace_fails)
		return policy_fail(err, 0, "%s: it cannot be waited for", ifname);
	return 0;
}

static struct fleet_held some_shares(void)
{
	struct fleet_held to = {.units = draw() % 101, .until_ns = UNTIL_NS};
	uint32_t first = draw();

	for (uint32_t i = 0; i < PACER_LANES; i++)
		if (draw() & 1)
			to.lane[i] =
			    (struct fleet_lane){true, key[(first + 3 * i) % KEYS], draw() % 101};
	return to;
}

/* Lanes that stay have their keys, mostly; in some runs any key may be in any lane. */
static void keep_keys(struct fleet_held *to, const struct fleet_held *was)
{
	for (uint32_t i = 0; i < PACER_LANES; i++) {
		bool taken = false;

		for (uint32_t n = 0; n < PACER_LANES; n++)
			taken |= n != i && to->lane[n].is &&
				 fleet_same_key(&limit, &to->lane[n].key, &was->lane[i].key);
		if (was->lane[i].is && to->lane[i].is && !taken)
			to->lane[i].key = was->lane[i].key;
	}
}

static bool keeps_keys(const struct fleet_held *was, const struct fleet_held *to)
{
	for (uint32_t i = 0; i < PACER_LANES; i++)
		if (was->lane[i].is && to->lane[i].is &&
		    !fleet_same_key(&limit, &was->lane[i].key, &to->lane[i].key))
			return false;
	return true;
}

/* Whose reserve packets go on with in the end. */
static void is_of(uint64_t member, uint64_t floor)
{
	assert_int_equal(pacer_share_floor_of(control.share[limit.at].floor),
			 floor ? pacer_share_mark(member) : 0);
}

static void hold(const struct fleet_held *to)
{
	for (uint32_t k = 0; k < KEYS; k++) {
		old[k] = judged(k);
		new[k] = fleet_judged_by(&limit, to, &key[k]);
	}
	assert_int_equal(fleet_hold(&a, &limit, to, &error), 0);
	for (uint32_t k = 0; k < KEYS; k++)
		assert_int_equal(judged(k), new[k]);
}

static int begin(void **unused)
{
	(void)unused;
	say_again();
	say("clock: exact\nmemory: 64Ki\nfleet: {store: 'http://a', name: f}\nrules:\n- name: a\n  "
	    "limits: [{key: src+dport, packets: 100, window: 1s, fleet: yes}]\n");
	if (load(doc.s))
		fail_msg("%s", error.text);
	memset(&control, 0, sizeof(control));
	limit = (struct fleet_limit){.limiter = now.bin.rule[0].limiter[0], .at = 3};
	limit.limiter.share = limit.at;
	limit.id = limit.limiter.share_id;
	for (uint32_t k = 0; k < KEYS; k++) {
		key[k] = (struct pacer_packet){.family = k & 1 ? PACER_FAMILY_6 : PACER_FAMILY_4,
					       .proto = 17};
		key[k].key[PACER_WORD_SADDR] = 0x0a000000 + k / 4;
		key[k].key[PACER_WORD_PORTS] = k & 2 ? 53 : 123;
		key[k].key[PACER_WORD_META] = 17;
	}
	memset(old, 0, sizeof(old));
	memset(new, 0, sizeof(new));
	graces = narrowed = grace_fails = 0;
	steady = false;
	return 0;
}

/* Nor has any less than both, where each lane keeps its key: what it need not lose is not denied.
 */
static void no_key_has_more_on_the_way(void **unused)
{
	struct fleet_held was = {0}, to;
	uint32_t kept = 0;

	(void)unused;
	for (uint32_t i = 0; i < 20000; i++) {
		to = some_shares();
		if (draw() % 8)
			keep_keys(&to, &was);
		steady = i && keeps_keys(&was, &to);
		kept += steady;
		hold(&to);
		was = to;
	}
	assert_true(narrowed > 10000 && graces > 40000 && kept > 10000 && kept < 19000);
}

/* A key begins to have a lane, and the others lose no more than it takes from them. */
static void a_first_lane(void **unused)
{
	struct fleet_held to = {.units = 100, .until_ns = UNTIL_NS};

	(void)unused;
	hold(&to);
	to.units = 95;
	to.lane[0] = (struct fleet_lane){true, key[5], 5};
	steady = true;
	hold(&to);
	assert_true(narrowed > 0);
}

/*
 * Nobody knows when packets have seen the change: the agent goes by what it held before, and may
 * give the rest back. So no key has more than that, nor more than it was to have; it is tried
 * again.
 */
static void a_wait_that_fails(void **unused)
{
	struct fleet_held was = {0}, to;
	uint32_t failed = 0;
	uint64_t floor;

	(void)unused;
	for (uint32_t i = 0; i < 20000; i++) {
		if (i % 500 == 0) { /* the place is another's */
			limit.id += 32;
			limit.limiter.share_id = limit.id;
		}
		to = some_shares();
		for (uint32_t n = 0; n < PACER_LANES && draw() & 1; n++)
			to.lane[n].is = false;
		if (draw() % 8)
			keep_keys(&to, &was);
		for (uint32_t k = 0; k < KEYS; k++) {
			old[k] = judged(k);
			new[k] = fleet_judged_by(&limit, &to, &key[k]);
		}
		to.floor = draw() % 101;
		to.member = 1 + draw() % 3;
		floor = fleet_held(&a, &limit).floor;
		grace_fails = 1 + draw() % 4;
		if (!fleet_hold(&a, &limit, &to, &error)) {
			is_of(to.member, to.floor);
			was = to;
			continue;
		}
		assert_string_equal(error.text, "none: it cannot be waited for");
		for (uint32_t k = 0; k < KEYS; k++)
			assert_true(judged(k) <= old[k] && judged(k) <= new[k]);
		assert_true(fleet_held(&a, &limit).floor <= floor &&
			    fleet_held(&a, &limit).floor <= to.floor);
		failed++;
		grace_fails = 0;
		if (draw() & 1) { /* by then it may be to have other ones */
			to = some_shares();
			keep_keys(&to, &was);
		}
		hold(&to);
		was = to;
	}
	assert_in_range(failed, 5000, 19000);
}

static void what_is_held_is_told(void **unused)
{
	struct fleet_held to, held;

	(void)unused;
	for (uint32_t i = 0; i < 200; i++) {
		to = some_shares();
		hold(&to);
		held = fleet_held(&a, &limit);
		assert_true(held.is);
		assert_int_equal(held.units, to.units);
		for (uint32_t n = 0; n < PACER_LANES; n++) {
			assert_int_equal(held.lane[n].is, to.lane[n].is);
			if (!to.lane[n].is)
				continue;
			assert_int_equal(held.lane[n].units, to.lane[n].units);
			assert_true(fleet_same_key(&limit, &held.lane[n].key, &to.lane[n].key));
		}
	}
}

/* How many hosts there are, and when the store answered; of a place that is another's nothing. */
static void what_was_said_is_told(void **unused)
{
	static const uint64_t answered_ns[] = {1, 12345678901234, 7777777777777777, 1ull << 50};
	struct fleet_held to = {.units = 40, .until_ns = UNTIL_NS}, held;

	(void)unused;
	hold(&to);
	for (uint32_t i = 0; i < ARRAY(answered_ns); i++) {
		fleet_say(&a, &limit, 3 + i, answered_ns[i]);
		held = fleet_held(&a, &limit);
		assert_int_equal(held.members, 3 + i);
		assert_in_range(held.answered_ns, answered_ns[i] - answered_ns[i] % TICK_NS,
				answered_ns[i]);
	}
	limit.id += 32;
	fleet_say(&a, &limit, 9, 5ull << 40);
	assert_false(fleet_held(&a, &limit).is);
	limit.id -= 32;
	assert_int_equal(fleet_held(&a, &limit).members, held.members);
}

/* One step where no key has a lane: as before there were any. */
static void without_lanes_it_is_one_step(void **unused)
{
	struct fleet_held to = {.units = 40, .until_ns = UNTIL_NS};

	(void)unused;
	hold(&to); /* it takes its place first */
	graces = 0;
	to.units = 70;
	hold(&to);
	assert_int_equal(graces, 1);
}

/* The place of another limit, whose lanes are nobody's. */
static void another_limits_lanes_are_gone(void **unused)
{
	struct fleet_held to = {.units = 40, .until_ns = UNTIL_NS};

	(void)unused;
	to.lane[2] = (struct fleet_lane){true, key[5], 90};
	hold(&to);
	assert_int_equal(judged(5), 90);
	limit.id += 32;
	limit.limiter.share_id = limit.id;
	assert_int_equal(judged(5), 0);
	to.lane[2].is = false;
	hold(&to);
	assert_int_equal(judged(5), 40);
}

/* Of others than those that are named: the limit that was there finds nothing when it comes back.
 */
static void places_of_others_are_emptied(void **unused)
{
	struct fleet_held to = {.units = 40, .floor = 9, .until_ns = UNTIL_NS};
	uint64_t id[PACER_SHARES] = {0};

	(void)unused;
	to.lane[2] = (struct fleet_lane){true, key[5], 90};
	hold(&to);
	id[limit.at] = limit.id;
	assert_false(fleet_clear(&a, id));
	assert_int_equal(judged(5), 90);
	for (int other = 0; other < 2; other++) {
		hold(&to);
		id[limit.at] = other ? limit.id + 32 : 0;
		assert_true(fleet_clear(&a, id));
		assert_false(fleet_held(&a, &limit).is);
		assert_int_equal(judged(5), 0);
		assert_int_equal(judged(4), 0);
		control.share[limit.at].id = limit.id; /* as if it came back */
		assert_int_equal(fleet_held(&a, &limit).floor, 0);
		assert_int_equal(judged(5), 0);
	}
}

/* Uses count until they have cooled down, those on lease too; of a share that was lowered all do.
 */
static void uses_are_hot(void **unused)
{
	static struct pacer_throttle_state throttle[PACER_THROTTLES];
	static const char text[] =
	    "clock: exact\nmemory: 64Ki\nfleet: {store: 'http://a', name: f}\nrules:\n- name: a\n  "
	    "limits: [{key: all, uses: 100, cooldown: 1h, max_cooldown: 61m, threshold: 40, fleet: "
	    "yes}]\n";
	struct pacer_throttle_lease lease = {0};
	struct attached with = {.ifname = "none", .control = &control, .throttle = throttle};
	const struct pacer_throttle_profile *profile;
	uint64_t now_ns = host_now_ns();
	uint32_t part = 40, used = 0, least = 0;

	(void)unused;
	assert_true(fleet_hot(&with, &limit) == UINT64_MAX); /* of a window */
	say_again();
	say("%s", text);
	if (load(doc.s))
		fail_msg("%s", error.text);
	limit.limiter = now.bin.rule[0].limiter[0];
	profile = &limit.limiter.throttle;
	assert_int_equal(fleet_hot(&with, &limit), 0);
	while (used < 25 && pacer_throttle_take_of(profile, part, &throttle[limit.limiter.base],
						   &lease, now_ns, 1) == PACER_THROTTLE_ADMIT)
		used++;
	assert_int_equal(used, 25);
	assert_int_equal(fleet_hot(&with, &limit), used + lease.left);
	least = used + lease.left;
	part = 10; /* nothing more is let through, and nothing is forgotten */
	lease.left = 0;
	assert_int_not_equal(
	    pacer_throttle_take_of(profile, part, &throttle[limit.limiter.base], &lease, now_ns, 1),
	    PACER_THROTTLE_ADMIT);
	assert_int_equal(fleet_hot(&with, &limit), least);
	throttle[limit.limiter.base].lock |= PACER_LOCK_HELD; /* by who never lets go */
	assert_true(fleet_hot(&with, &limit) == UINT64_MAX);
	throttle[limit.limiter.base].lock &= ~PACER_LOCK_HELD;
	for (uint32_t i = 0; i < PACER_THROTTLE_BUCKETS; i++) /* an hour and more ago */
		if (throttle[limit.limiter.base].bucket[i].until_ns)
			throttle[limit.limiter.base].bucket[i].until_ns = 1;
	if (now_ns > profile->cooldown_ns + 1)
		assert_int_equal(fleet_hot(&with, &limit), 0);
}

/*
 * Packets may be judged a while after their clock was read, and the coarse one is a tick behind. A
 * share is over so long before its end, and not much sooner.
 */
static void it_ends_before_its_end(void **unused)
{
	const struct fleet_held to = {.units = 40, .until_ns = UNTIL_NS};
	uint64_t over_ns = UNTIL_NS - PACER_IDLE_SLACK_NS - RESOLUTION;

	(void)unused;
	control.resolution_ns = RESOLUTION;
	hold(&to);
	for (uint32_t k = 0; k < KEYS; k++) {
		assert_int_equal(judged_at(k, over_ns), 0);
		assert_int_equal(judged_at(k, UNTIL_NS - 1), 0);
		assert_int_equal(judged_at(k, over_ns - TICK_NS), 40);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(no_key_has_more_on_the_way, begin),
	    cmocka_unit_test_setup(a_first_lane, begin),
	    cmocka_unit_test_setup(a_wait_that_fails, begin),
	    cmocka_unit_test_setup(what_is_held_is_told, begin),
	    cmocka_unit_test_setup(what_was_said_is_told, begin),
	    cmocka_unit_test_setup(without_lanes_it_is_one_step, begin),
	    cmocka_unit_test_setup(another_limits_lanes_are_gone, begin),
	    cmocka_unit_test_setup(places_of_others_are_emptied, begin),
	    cmocka_unit_test_setup(uses_are_hot, begin),
	    cmocka_unit_test_setup(it_ends_before_its_end, begin),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
