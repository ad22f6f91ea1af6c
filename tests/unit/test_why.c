/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why: what the random runs of tests/prog/test_fake.c seldom meet: uses that CPUs hold on lease,
 * and what a host without a share of a fleet's limit is told.
 */
#include "oracle.h"

#include "inspect/why.h"
#include "plan/shares.h"
#include "share.h"

#define START	 1000000000ull
#define COOLDOWN 1000000000ull
#define POLICY	 "rules:\n- name: a\n  limits: [{key: all, uses: 100, cooldown: 1s, threshold: 40}]\n"

static struct pacer_policy bin;
static struct policy *policy;
static struct pacer_throttle_state throttle[PACER_THROTTLES];
static struct pacer_throttle_lease lease[2][PACER_THROTTLES];
static __u64 secret[2 * PACER_SECRETS];

static struct pacer_state state_of(uint32_t cpu)
{
	return (struct pacer_state){
	    .policy = &bin, .secret = secret, .throttle = throttle, .lease = lease[cpu]};
}

static struct pacer_walk walk_at(struct pacer_state *state, uint64_t now_ns)
{
	return (struct pacer_walk){
	    .state = state, .now_ns = now_ns, .pkt = {.family = PACER_FAMILY_4, .len_bytes = 60}};
}

static enum pacer_reason pace(uint32_t cpu, uint64_t now_ns)
{
	struct pacer_state state = state_of(cpu);
	struct pacer_walk walk = walk_at(&state, now_ns);

	walk.rule = PACER_RULES_MAX;
	return pacer_outcome_reason(pacer_judge(&walk));
}

/* And the state is what it was. */
static struct why ask(uint32_t cpu, uint64_t now_ns)
{
	static struct pacer_throttle_state before[PACER_THROTTLES];
	static struct pacer_throttle_lease leases_before[2][PACER_THROTTLES];
	struct pacer_state state = state_of(cpu);
	struct pacer_walk walk = walk_at(&state, now_ns);
	struct why why;

	memcpy(before, throttle, sizeof(before));
	memcpy(leases_before, lease, sizeof(lease));
	why_packet(&walk, policy, 0, &why);
	assert_memory_equal(before, throttle, sizeof(before));
	assert_memory_equal(leases_before, lease, sizeof(lease));
	return why;
}

static void load(const char *text)
{
	struct compile_host host = {1 << 20, 1, 2};
	struct policy_error error = {0};
	static struct plan plan;

	memset(throttle, 0, sizeof(throttle));
	memset(lease, 0, sizeof(lease));
	policy = policy_parse(text, strlen(text), &error);
	if (!policy || compile_policy(policy, NULL, &host, &bin, &plan, &error))
		fail_msg("%s", error.text);
}

static int setup(void **unused)
{
	(void)unused;
	load(POLICY);
	assert_true(bin.rule[0].limiter[0].throttle.lease > 2);
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	policy_free(policy);
	return 0;
}

static void spend(uint64_t now_ns)
{
	while (pace(0, now_ns) == PACER_ADMIT)
		;
}

/* What one CPU has left is no other's. */
static void test_on_lease(void **unused)
{
	uint64_t when_ns;
	struct why why;

	(void)unused;
	assert_int_equal(pace(1, START), PACER_ADMIT);
	spend(START);
	why = ask(0, START);
	assert_int_equal(why.reason, PACER_DENY_THROTTLE);
	when_ns = why.when_ns; /* the uses on lease might be made until the lease ends */
	assert_true(when_ns >= START + COOLDOWN && when_ns < START + 2 * COOLDOWN);
	assert_int_equal(why.limit[0].held.used, why.limit[0].held.max);
	why = ask(1, START);
	assert_int_equal(why.reason, PACER_ADMIT);
	assert_int_equal(why.limit[0].when_ns, 0);
	assert_true(why.limit[0].held.leased > 0);
	assert_int_equal(why.limit[0].held.max - why.limit[0].held.used, why.limit[0].held.leased);
	assert_int_equal(pace(1, START), PACER_ADMIT);
	assert_int_equal(pace(0, when_ns - 1), PACER_DENY_THROTTLE);
	assert_int_equal(pace(0, when_ns), PACER_ADMIT);
}

/* Its lease is over, and what was left of it has cooled and is another's: only the try tells. */
static void test_after_a_lease(void **unused)
{
	uint64_t now_ns = START + 2 * COOLDOWN;
	struct why why;

	(void)unused;
	assert_int_equal(pace(1, START), PACER_ADMIT);
	spend(now_ns);
	why = ask(1, now_ns);
	assert_int_equal(why.reason, PACER_DENY_THROTTLE);
	assert_int_equal(why.limit[0].held.leased, 0);
	assert_true(why.when_ns > now_ns);
	assert_int_equal(pace(1, now_ns), PACER_DENY_THROTTLE);
}

/* A row of limits that a fleet divides: its kind, and what it holds of a host's half. */
static const struct {
	const char *limit;
	uint64_t max;
} divided[] = {
    {"{key: src, packets: 8, window: 1s, fleet: yes}", 4},
    {"{key: all, uses: 8, cooldown: 1s, fleet: yes}", 4},
    {"{key: src, rate: 8/s, burst: 8, fleet: yes}", 8}, /* its burst's time is that of all */
};

static struct why ask_shared(const struct pacer_share *share, uint64_t now_ns)
{
	static struct pacer_line lines[64];
	struct pacer_state state = state_of(0);
	struct pacer_walk walk = walk_at(&state, now_ns);
	struct why why;

	state.table = (struct pacer_table){lines, 64};
	state.share = share;
	why_packet(&walk, policy, 0, &why);
	assert_int_equal(why.n, 1);
	return why;
}

/* Without a share it never passes, and not because of what came. Then it ends, and then it is back.
 */
static void test_a_share(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(divided) / sizeof(*divided); i++) {
		static struct pacer_share share[PACER_SHARES];
		const struct pacer_limiter *t = &bin.rule[0].limiter[0];
		struct why why;
		char text[256];

		snprintf(
		    text, sizeof(text),
		    "clock: exact\nmemory: 4Ki\nfleet: {store: [http://127.0.0.1:2379], name: a}\n"
		    "rules:\n- {name: a, limits: [%s]}\n",
		    divided[i].limit);
		load(text);
		assert_true(t->kind & PACER_LIMITER_FLEET);
		share[t->share] = (struct pacer_share){.id = t->share_id};
		for (int has = 0; has < 2; has++) {
			uint64_t until_ns = START + 1000000000;
			uint32_t half = shares_value(t, shares_units(t) / 2);

			share[t->share].word = pacer_share_word(has ? half : 0, until_ns);
			why = ask_shared(share, START);
			assert_int_equal(why.limit[0].unshared, !has);
			assert_int_equal(why.reason, has ? PACER_ADMIT : PACER_DENY_SHARE);
			assert_int_equal(why.limit[0].when_ns == PACER_NEVER, !has);
			assert_int_equal(why.limit[0].held.max,
					 has || divided[i].max == 8 ? divided[i].max : 0);
			assert_true(ask_shared(share, until_ns).limit[0].unshared);
		}
		policy_free(policy);
		policy = NULL;
	}
}

/* What a rule says by itself has no time at which it would pass. */
static void test_a_verdict(void **unused)
{
	struct why why;

	(void)unused;
	load("rules:\n- {name: a, verdict: drop}\n");
	why = ask(0, START);
	assert_int_equal(why.reason, PACER_DENY_VERDICT);
	assert_true(why.when_ns == PACER_NEVER);
	assert_int_equal(why.n, 0);
}

/* Nor has what no rule takes. */
static void test_no_rule(void **unused)
{
	struct why why;

	(void)unused;
	load("else: drop\nrules:\n- {name: a, match: {proto: udp}, verdict: pass}\n");
	why = ask(0, START);
	assert_int_equal(why.reason, PACER_DENY_VERDICT);
	assert_true(why.when_ns == PACER_NEVER && why.rule == PACER_RULES_MAX && !why.n);
}

/* What holds for packets without a rule says nothing of one that has a rule. */
static void test_a_limit_beside_else(void **unused)
{
	struct why why;

	(void)unused;
	load("else: drop\nrules:\n"
	     "- {name: a, limits: [{key: all, uses: 1, cooldown: 1s}]}\n");
	why = ask(0, START);
	assert_true(why.reason == PACER_ADMIT && why.when_ns == START);
	assert_int_equal(pace(0, START), PACER_ADMIT);
	why = ask(0, START);
	assert_int_equal(why.reason, PACER_DENY_THROTTLE);
	assert_int_equal(why.when_ns, why.limit[0].when_ns);
	assert_true(why.when_ns < START + 2 * COOLDOWN);
	assert_int_equal(pace(0, why.when_ns - 1), PACER_DENY_THROTTLE);
	assert_int_equal(pace(0, why.when_ns), PACER_ADMIT);
}

/* Two limits may have one state, and others have one each: the packet uses each state for both. */
static void test_two_throttles(void **unused)
{
	(void)unused;
	for (int same = 0; same < 2; same++) {
		struct pacer_rule *rule = &bin.rule[0];
		uint64_t now_ns = START;

		load("rules:\n- name: a\n  limits: [{key: all, uses: 99, cooldown: 1s, "
		     "threshold: 40}, {key: all, uses: 90, cooldown: 2s, threshold: 40}]\n");
		assert_int_equal(rule->n_limiters, 2);
		if (same)
			rule->limiter[1] = rule->limiter[0];
		for (uint32_t i = 0; i < 120; i++, now_ns += COOLDOWN / 90) {
			struct why why = ask(i & 1, now_ns);

			assert_int_equal(pace(i & 1, now_ns), why.reason);
		}
		policy_free(policy);
		policy = NULL;
	}
}

/* A limit of new flows is not asked of a packet of a known one, and takes nothing of it. */
static void test_of_new_flows(void **unused)
{
	struct pacer_state state = state_of(0);
	struct pacer_walk walk = walk_at(&state, START);
	struct why why;

	(void)unused;
	load("flows: 4096\nrules: [{name: a, limits: [{key: all, uses: 9, cooldown: 1s, of: "
	     "new}]}]\n");
	spend(START);
	why_packet(&walk, policy, 0, &why);
	assert_int_equal(why.reason, PACER_DENY_THROTTLE);
	assert_false(why.limit[0].unasked);
	walk.pkt.key[PACER_WORD_META] |= PACER_META_KNOWN;
	why_packet(&walk, policy, 0, &why);
	assert_int_equal(why.reason, PACER_ADMIT);
	assert_true(why.limit[0].unasked);
	bin.rule[0].limiter[0].until_ns = START; /* it has drained, and is asked of nobody */
	why_packet(&walk, policy, 0, &why);
	assert_false(why.limit[0].unasked);
}

/* What a gap knows of a key is of cells that others may have raised, and of all keys of one cell.
 */
static void test_what_a_gap_is_held_by(void **unused)
{
	static const struct {
		const char *key;
		enum held_by by;
	} rows[] = {{"src", HELD_BY_CELLS}, {"all", HELD_BY_ONE}};
	static struct pacer_line lines[4096];

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct pacer_state state = state_of(0);
		struct pacer_walk walk = walk_at(&state, START);
		char text[128];
		struct why why;

		snprintf(text, sizeof(text),
			 "memory: 64Ki\nrules: [{name: a, limits: [{key: %s, gap: 1ms}]}]\n",
			 rows[i].key);
		load(text);
		state.table = (struct pacer_table){lines, ARRAY(lines)};
		why_packet(&walk, policy, 0, &why);
		assert_int_equal(why.limit[0].held.by, rows[i].by);
		policy_free(policy);
		policy = NULL;
	}
}

static struct pacer_line ban_lines[4096];

/* Bans what the walk comes from, or its key, by that secret; which ban in a row it is. */
static void ban(struct pacer_walk *walk, uint32_t of, bool source, uint32_t row, uint64_t until_ns)
{
	struct pacer_ban_ask q = pacer_walk_ban_ask(walk, &bin.rule[0].limiter[0], of);

	if (source) {
		q.key = pacer_ban_source(walk->pkt.family, walk->pkt.key,
					 walk->pkt.family == PACER_FAMILY_4 ? 32 : 128);
		q.hash = pacer_ban_hash(&q.key, secret + of * PACER_SECRETS);
	}
	q.note = row << PACER_BAN_ROW;
	assert_int_equal(pacer_ban_add(&q, until_ns), PACER_BANNED);
}

/* While bans move to another secret, they are asked for by both, and the later end counts. */
static void test_while_bans_move(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i < 2 * PACER_SECRETS; i++)
		secret[i] = 0x9e3779b97f4a7c15ull * (i + 1);
	load("memory: 64Ki\nbans: 64\nrules:\n- {name: a, ban: {for: 10s, grow: x2, up_to: 1h, "
	     "forget: 1d}, "
	     "limits: [{key: src, packets: 9, window: 1s, entries: 64}]}\n");
	bin.bans.len4[0] = 32;
	bin.bans.len6[0] = 128;
	bin.flags |= PACER_SOURCES_BANNED;
	/* By which secret, of a source or a key; it moves, or not; of either family; in a row, or
	 * entered when bans did not grow. */
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t of = i & 1, row = i & 16 ? 0 : 3;
		bool source = i & 2, moving = i & 4;
		struct pacer_state state = state_of(0);
		struct pacer_walk walk = walk_at(&state, START);
		struct why why;

		memset(ban_lines, 0, sizeof(ban_lines));
		state.table = (struct pacer_table){ban_lines, 4096};
		bin.bans.moving = moving;
		if (i & 8)
			walk.pkt.family = PACER_FAMILY_6;
		ban(&walk, of, source, row, START + 1000);
		why_packet(&walk, policy, 0, &why);
		assert_int_equal(why.reason, of && !moving ? PACER_ADMIT : PACER_DENY_BAN);
		if (of && !moving)
			continue;
		assert_int_equal(why.denied, source ? -1 : 0);
		assert_true(why.when_ns >= START + 1000 && why.when_ns < START + 2000);
		assert_true(source ? why.source_ns : why.limit[0].banned_ns);
		assert_int_equal(why.limit[0].ban_row, source ? 0 : row);
		assert_int_equal(why.limit[0].ban_next_ns, source || !row ? 0 : 80000000000);
	}
}

static struct why ask_banned(struct pacer_walk *walk, uint64_t by_tool_ns)
{
	struct why why;

	why_packet_banned(walk, policy, 0, by_tool_ns, &why);
	return why;
}

/* What is asked once a ban is over, of the pacer's or of another tool, counts from its end on. */
static void test_after_a_ban(void **unused)
{
	static const struct {
		const char *says;
		uint64_t when_ns; /* the ban's end, or what the rule says then */
	} rows[] = {
	    {"limits: [{key: src, rate: 6/m, burst: 2}]", START + 30000000000},
	    {"over: pass, limits: [{key: src, rate: 6/m, burst: 2}]", START + 22500000000},
	    {"verdict: pass", START + 22500000000},
	    {"verdict: drop", PACER_NEVER},
	};
	uint64_t until_ns = START + 22500000000;

	(void)unused;
	for (uint32_t i = 0; i < 2 * PACER_SECRETS; i++)
		secret[i] = 0x9e3779b97f4a7c15ull * (i + 1);
	for (size_t i = 0; i < 2 * ARRAY(rows); i++) {
		bool own = i & 1;
		uint64_t when_ns = rows[i / 2].when_ns;
		struct pacer_state state = state_of(0);
		struct pacer_walk walk = walk_at(&state, START);
		char text[160];
		struct why why;

		snprintf(text, sizeof(text),
			 "clock: exact\nmemory: 64Ki\nbans: 64\nrules:\n- {name: a, %s}\n",
			 rows[i / 2].says);
		load(text);
		memset(ban_lines, 0, sizeof(ban_lines));
		state.table = (struct pacer_table){ban_lines, 4096};
		bin.bans.len4[0] = 32;
		bin.flags |= PACER_SOURCES_BANNED;
		if (i < 4) /* it begins meanwhile */
			bin.rule[0].limiter[0].rate.begin_ns = START + 20000000000;
		if (own)
			ban(&walk, 0, true, 0, until_ns);
		why = ask_banned(&walk, own ? 0 : until_ns);
		assert_int_equal(why.reason, PACER_DENY_BAN);
		assert_int_equal(why.denied, -1);
		/* A ban of the pacer's own ends some ns later. */
		assert_true(why.when_ns == when_ns ||
			    (own && why.when_ns > when_ns && why.when_ns < when_ns + 1000));
		policy_free(policy);
		policy = NULL;
	}
}

/* A key whose value cannot be known, as its set cannot be read, has no place in the limit. */
static void test_a_value_that_is_unknown(void **unused)
{
	struct pacer_state state = state_of(0);
	struct pacer_walk walk = walk_at(&state, START);
	struct why why;

	(void)unused;
	load("sets: [{name: geo, file: geo.txt, value: 2}]\nrules: [{name: a, limits: [{key: "
	     "'value(geo, src)', packets: 9, window: 1s, entries: 64}, {key: src, packets: 9, "
	     "window: 1s, entries: 64}]}]\n");
	why_key(&walk, policy, 0, "192.0.2.1", 32, &why);
	assert_int_equal(why.n, 1);
	assert_string_equal(why.limit[0].key, "192.0.2.1");
	assert_int_equal(why.reason, PACER_ADMIT);
}

/* A limit that is draining denies no longer than it lasts. */
static void test_draining(void **unused)
{
	struct why why;

	(void)unused;
	load(POLICY);
	spend(START);
	assert_true(ask(0, START).when_ns > START + 9);
	bin.rule[0].limiter[0].until_ns = START + 9;
	why = ask(0, START);
	assert_int_equal(why.reason, PACER_DENY_THROTTLE);
	assert_true(why.when_ns == START + 9 && why.limit[0].draining_ns == START + 9);
	bin.rule[0].limiter[0].until_ns = START + 9 * COOLDOWN;
	assert_true(ask(0, START).when_ns < START + 9 * COOLDOWN); /* nor longer than it would */
	bin.rule[0].limiter[0].until_ns = START + 9;
	assert_int_equal(pace(0, START + 8), PACER_DENY_THROTTLE);
	assert_int_equal(pace(0, START + 9), PACER_ADMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_on_lease, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_after_a_lease, setup, teardown),
	    cmocka_unit_test(test_a_share),
	    cmocka_unit_test_teardown(test_a_verdict, teardown),
	    cmocka_unit_test_teardown(test_draining, teardown),
	    cmocka_unit_test_teardown(test_no_rule, teardown),
	    cmocka_unit_test_teardown(test_a_limit_beside_else, teardown),
	    cmocka_unit_test(test_two_throttles),
	    cmocka_unit_test_teardown(test_of_new_flows, teardown),
	    cmocka_unit_test_teardown(test_what_a_gap_is_held_by, teardown),
	    cmocka_unit_test_teardown(test_while_bans_move, teardown),
	    cmocka_unit_test(test_after_a_ban),
	    cmocka_unit_test_teardown(test_a_value_that_is_unknown, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
