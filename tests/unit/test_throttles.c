/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Throttles of rules and of pools, and bans, as they are compiled: profiles and leases, what does
 * not fit, which state each goes on with. The last tests let uses be made across changes of policy
 * and count them over every window.
 */
#include "applied.h"
#include "example.h"
#include "parsed.h"
#include "plan/kinds.h"
#include "plan/throttles.h"

static void test_the_example(void **unused)
{
	const struct pacer_rule *rule = &now.bin.rule[0];
	const struct pacer_pool *pool = &now.bin.pool[0];

	(void)unused;
	assert_int_equal(load(example), 0);
	assert_string_equal(limiters_text(0), "Rgw+ Rw+ T+");
	assert_int_equal(rule->limiter[2].throttle.limit, 100000);
	assert_int_equal(rule->limiter[2].throttle.threshold, 1000);
	assert_int_equal(rule->limiter[2].key_id, 0);
	assert_int_equal(rule->ban_ns, 30 * SECOND);
	assert_int_equal(rule->over, PACER_OVER_DROP);
	assert_int_equal(pool->n, 2);
	assert_int_equal(pool->kind, PACER_TARGET_INTERFACE);
	assert_int_equal(pool->throttle.limit, 500);
	assert_int_equal(pool->throttle.threshold, 25); /* 50 of both together */
	assert_int_equal(pool->throttle.cooldown_ns, 600 * SECOND + RESOLUTION);
	assert_int_equal(now.plan.n_pools, 1);
	assert_string_equal(now.plan.pool[0].name, "scrub");
	assert_string_equal(now.plan.pool[0].target[1].name, "veth2");
	/* three states, all different */
	assert_true(pool->state[0] != pool->state[1] && pool->state[0] != rule->limiter[2].base &&
		    pool->state[1] != rule->limiter[2].base);
}

/* ---- keys and names ---- */

static void test_key_ids(void **unused)
{
	static const struct {
		const char *key;
		uint32_t id;
	} cases[] = {
	    {"all", 0},
	    {"src", PACER_KEY_ID(0, 32, 64, 0, 0)},
	    {"src/32,128", PACER_KEY_ID(0, 32, 128, 0, 0)},
	    {"src/24,56", PACER_KEY_ID(0, 24, 56, 0, 0)},
	    {"dst/24,56", PACER_KEY_ID(0, 0, 0, 24, 56)},
	    {"src/24,56+dport", PACER_KEY_ID(PACER_KEY_DPORT, 24, 56, 0, 0)},
	    {"flow", PACER_KEY_ID(7, 32, 128, 32, 128)},
	    {"dst/16,48+src/24,56+vlan", PACER_KEY_ID(PACER_KEY_VLAN, 24, 56, 16, 48)},
	    {"src/32,128+dst/32,128+ttl", PACER_KEY_ID(PACER_KEY_TTL, 32, 128, 32, 128)},
	};
	const struct policy_limit *written;
	struct policy_key key;
	char limit[64];

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		snprintf(limit, sizeof(limit), "{key: \"%s\", gap: 1ms}", cases[i].key);
		assert_int_equal(load(rule_of("", limit)), 0);
		assert_int_equal(now.bin.rule[0].limiter[0].key_id, cases[i].id);
		key = compile_key_of(cases[i].id);
		written = &now.policy->rule[0].limit[0];
		assert_true(policy_key_same(&key, &written->key));
	}
}

/* Found by search: two names with one hash. */
static void test_rule_ids(void **unused)
{
	(void)unused;
	assert_int_equal(load("rules:\n- {name: a, limits: [{key: src, gap: 1s}]}\n"
			      "- {name: b, limits: [{key: src, gap: 1s}]}\n"),
			 0);
	assert_true(now.bin.rule[0].id && now.bin.rule[1].id);
	assert_int_not_equal(now.bin.rule[0].id, now.bin.rule[1].id);
	assert_int_equal(compile_name_id("a"), 0xe40c292c); /* FNV-1a as published */
	assert_int_equal(compile_name_id("costarring"), compile_name_id("liquid"));
	assert_int_equal(load("rules:\n- {name: costarring, limits: [{key: src, gap: 1s}]}\n"
			      "- {name: liquid, limits: [{key: src, gap: 1s}]}\n"),
			 -1);
	assert_int_equal(error.line, 3);
	assert_non_null(
	    strstr(error.text, "rule liquid: its name and costarring have the same hash"));
}

/* ---- profiles ---- */

static const struct pacer_throttle_profile *throttle_of(const char *head, const char *limit)
{
	if (load(rule_of(head, limit)))
		fail_msg("%s: %s", limit, error.text);
	assert_int_equal(now.bin.rule[0].limiter[0].kind, PACER_LIMITER_THROTTLE);
	return &now.bin.rule[0].limiter[0].throttle;
}

static void test_profiles(void **unused)
{
	const struct pacer_throttle_profile *p;
	static const char both[] = "{key: all, uses: 1000, cooldown: 10s, max_cooldown: 11s, "
				   "threshold: 100}";

	(void)unused;
	p = throttle_of("clock: exact", both);
	assert_true(p->cooldown_ns == 10 * SECOND && p->open_ns == SECOND - 1);
	assert_int_equal(p->lease, 26); /* h is 25, a quarter of the threshold */
	assert_int_equal(throttle_elsewhere(p, 2), 25);
	assert_int_equal(p->lease_ns, 100 * MS);
	assert_int_equal(p->buckets, 10 + 14); /* of 75 uses at least */
	assert_int_equal(compile_limiter_memory_ns(&now.bin.rule[0].limiter[0]),
			 10 * SECOND + 100 * MS);
	p = throttle_of("clock: coarse", both);
	assert_true(p->cooldown_ns == 10 * SECOND + RESOLUTION);
	host.cpus = 1; /* nothing to lease from each other */
	p = throttle_of("clock: exact", both);
	assert_int_equal(p->lease, 1);
	assert_int_equal(p->lease_ns, 0);
	assert_int_equal(p->buckets, 20);
	host.cpus = 512; /* 100 / (4 * 511) */
	assert_int_equal(throttle_of("clock: exact", both)->lease, 1);
	host.cpus = 2;
	p = throttle_of("clock: exact", "{key: all, uses: 1M, cooldown: 1s}");
	assert_int_equal(p->lease, 256);
	assert_int_equal(p->lease_ns, 10 * MS);
	p = throttle_of("clock: exact", "{key: all, uses: 1M, cooldown: 1h}");
	assert_int_equal(p->lease_ns, 100 * MS); /* as long as a change remembers it */
	p = throttle_of("clock: coarse", "{key: all, uses: 1M, cooldown: 1s}");
	assert_int_equal(p->lease_ns, 4 * RESOLUTION);
	p = throttle_of("clock: exact",
			"{key: all, uses: 1M, cooldown: 1s, max_cooldown: 1005ms, threshold: 30k}");
	assert_int_equal(p->lease_ns, 5 * MS - 1); /* a bucket's time */
	p = throttle_of("", "{key: all, uses: 500, cooldown: 10s, threshold: 50}");
	assert_true(p->open_ns > UINT64_MAX / 2); /* no requirement A */
	/* all buckets are needed: there is no room to lease */
	p = throttle_of("clock: exact", "{key: all, uses: 2300, cooldown: 10s, max_cooldown: 11s, "
					"threshold: 10}");
	assert_int_equal(p->buckets, 240);
	assert_int_equal(p->lease, 1);
}

/* A tick is a 16th of the time that a bucket is open, at most. */
static void test_clocks(void **unused)
{
	static const struct {
		const char *limit;
		bool exact;
	} cases[] = {
	    {"{key: all, uses: 9, cooldown: 1s, max_cooldown: 1064ms}", false},
	    {"{key: all, uses: 9, cooldown: 1s, max_cooldown: 1063ms}", true},
	    {"{key: all, uses: 9, cooldown: 64ms, threshold: 1}", false},
	    {"{key: all, uses: 9, cooldown: 63ms, threshold: 1}", true},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		assert_int_equal(load(rule_of("", cases[i].limit)), 0);
		assert_int_equal(!!(now.bin.flags & PACER_CLOCK_EXACT), cases[i].exact);
	}
	assert_int_equal(load("rules: []\npools: [{name: a, targets: x, each: 1, cooldown: 1s}]\n"),
			 0);
	assert_false(now.bin.flags & PACER_CLOCK_EXACT);
	assert_int_equal(
	    load("rules: []\npools: [{name: a, targets: x, each: 1, cooldown: 100ms}]\n"), 0);
	assert_true(now.bin.flags & PACER_CLOCK_EXACT);
	/* a pool's states know of times of either clock */
	assert_int_equal(now.bin.pool[0].throttle.cooldown_ns, 100 * MS + RESOLUTION);
}

static void test_too_many_buckets(void **unused)
{
	static const struct {
		const char *limit, *says;
	} cases[] = {
	    {"{key: all, uses: 1000, cooldown: 10s, max_cooldown: 11s, threshold: 2}",
	     "rules[0].limits[0]: 510 buckets would be needed and there are 240: write threshold: "
	     "5 or more"},
	    {"{key: all, uses: 1000, cooldown: 10s, max_cooldown: 10001ms, threshold: 100}",
	     "10010 buckets would be needed and there are 240: write max_cooldown: 10.043478261s "
	     "or "
	     "more"},
	    {"{key: all, uses: 1000, cooldown: 10s, max_cooldown: 10050ms, threshold: 10}",
	     "300 buckets would be needed and there are 240: write threshold: 25 or more, or "
	     "max_cooldown: 10.071428572s or more"},
	    {"{key: all, uses: 1000, cooldown: 10s, max_cooldown: 10001ms, threshold: 1}",
	     "11000 buckets would be needed and there are 240: write a larger threshold and a "
	     "larger "
	     "max_cooldown"},
	    {"{key: all, uses: 241, cooldown: 10s, threshold: 1}", "threshold: 2 or more"},
	    /* where one of the two takes all buckets, it is the one to be changed */
	    {"{key: all, uses: 1000, cooldown: 12s, max_cooldown: 12050ms, threshold: 10}",
	     "340 buckets would be needed and there are 240: write max_cooldown: 12.085714286s or "
	     "more"},
	    {"{key: all, uses: 2400, cooldown: 10s, max_cooldown: 11s, threshold: 10}",
	     "250 buckets would be needed and there are 240: write threshold: 11 or more"},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		assert_int_equal(load(rule_of("clock: exact", cases[i].limit)), -1);
		if (!strstr(error.text, cases[i].says))
			fail_msg("%s\nnot %s", error.text, cases[i].says);
		assert_int_equal(error.line, 4);
	}
	/* what it says would do, does, and less does not */
	assert_int_equal(load(rule_of("clock: exact", "{key: all, uses: 1000, cooldown: 10s, "
						      "max_cooldown: 11s, threshold: 5}")),
			 0);
	assert_int_equal(load(rule_of("clock: exact", "{key: all, uses: 1000, cooldown: 10s, "
						      "max_cooldown: 11s, threshold: 4}")),
			 -1);
	assert_int_equal(
	    load(rule_of("clock: exact", "{key: all, uses: 1000, cooldown: 10s, "
					 "max_cooldown: 10043478261ns, threshold: 100}")),
	    0);
	assert_int_equal(
	    load(rule_of("clock: exact", "{key: all, uses: 1000, cooldown: 10s, "
					 "max_cooldown: 10043478260ns, threshold: 100}")),
	    -1);
	/* on a coarse clock uses count for longer */
	assert_int_equal(load(rule_of("clock: coarse", cases[2].limit)), -1);
	assert_non_null(strstr(error.text,
			       "301 buckets would be needed and there are 240: write threshold: "
			       "26 or more, or max_cooldown: 10.071457143s or more"));
	/* of a pool the threshold is of all targets */
	host.resolution_ns = 0;
	assert_int_equal(load("rules: []\npools:\n- {name: a, targets: [x, y], each: 1000, "
			      "cooldown: 10s, max_cooldown: 11s, threshold: 4}\n"),
			 -1);
	assert_int_equal(error.line, 3);
	assert_non_null(strstr(error.text, "pools[0]: 510 buckets would be needed and there are "
					   "240: write threshold: 10 or more"));
}

/* What is written without threshold and max_cooldown fits, whatever the uses and the CPUs. */
static void test_defaults_fit(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i < 80; i++) {
		host.cpus = between(1, 1024);
		say_again();
		say("clock: %s\nrules:\n- {name: a, limits: [{key: all, uses: %llu, cooldown: "
		    "%llums}]}\npools:\n- {name: p, targets: [a, b, c], each: %llu, cooldown: "
		    "%llus}\n",
		    i & 1 ? "exact" : "coarse", (unsigned long long)magnitude(1, POLICY_USES_MAX),
		    (unsigned long long)magnitude(20, 100000000),
		    (unsigned long long)magnitude(1, POLICY_USES_MAX / 3),
		    (unsigned long long)magnitude(1, 1000000));
		if (load(doc.s))
			fail_msg("%s\n%s", doc.s, error.text);
	}
}

/* ---- states ---- */

static void test_draining(void **unused)
{
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[1];
	uint32_t base;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", "{key: src, gap: 1s}, "
						      "{key: all, uses: 100, cooldown: 1s}")),
			 0);
	base = t->base;
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, gap: 1s}")), 0);
	assert_string_equal(limiters_text(0), "Sg= T-");
	assert_int_equal(now.plan.n_draining, 1);
	assert_true(t->base == base && t->until_ns == COMPILE_UNTIL_SET);
	time_draining();
	assert_true(t->until_ns ==
		    host.now_ns + SECOND); /* a threshold of one: nothing is leased */
	/* another cooldown beside it until its end: another state */
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, gap: 1s}, "
						       "{key: all, uses: 200, cooldown: 2s}")),
			 0);
	assert_string_equal(limiters_text(0), "Sg= T+ T-");
	assert_int_not_equal(now.bin.rule[0].limiter[1].base, base);
	/* the same: the state that it had */
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, gap: 1s}, {key: all, uses: 200, "
						       "cooldown: 2s}, {key: all, uses: 90, "
						       "cooldown: 1s}")),
			 0);
	assert_string_equal(limiters_text(0), "Sg= T= T=");
	assert_int_equal(now.bin.rule[0].limiter[2].base, base);
	assert_int_equal(now.bin.rule[0].limiter[2].until_ns, 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, gap: 1s}")), 0);
	time_draining();
	host.now_ns += 3 * SECOND;
	assert_int_equal(apply(rule_of("clock: exact", "{key: src, gap: 1s}")), 0);
	assert_string_equal(limiters_text(0), "Sg=");
}

/* A tick of the clock is a part of the cooldown, and that of the shape. */
static void test_clock_of_a_state(void **unused)
{
	static const char uses[] = "{key: all, uses: 100, cooldown: 1s}";

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", uses)), 0);
	assert_int_equal(apply(rule_of("clock: coarse", uses)), 0);
	assert_string_equal(limiters_text(0), "T+ T-");
	assert_int_equal(load(rule_of("clock: coarse", uses)), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: all, uses: 100, cooldown: 1004ms}")),
			 0);
	assert_string_equal(limiters_text(0), "T=");
}

/* What two CPUs may still have on lease is no more than the new limit, or the state is another. */
static void test_leases_of_a_state(void **unused)
{
	static const char uses[] = "{key: all, uses: 90, cooldown: 1s, threshold: 30}";

	(void)unused;
	assert_int_equal(throttle_of("clock: exact", uses)->lease, 8);
	assert_int_equal(apply(rule_of("clock: exact", "{key: all, uses: 14, cooldown: 1s}")), 0);
	assert_string_equal(limiters_text(0), "T=");
	assert_int_equal(load(rule_of("clock: exact", uses)), 0);
	assert_int_equal(apply(rule_of("clock: exact", "{key: all, uses: 13, cooldown: 1s}")), 0);
	assert_string_equal(limiters_text(0), "T+ T-");
}

static void test_states_run_out(void **unused)
{
	bool seen[PACER_THROTTLES] = {false};
	uint32_t n = 0;

	(void)unused;
	say_again();
	say("clock: exact\nrules:\n");
	for (uint32_t i = 0; i < 32; i++)
		say("- {name: r%u, limits: [{key: all, uses: 9, cooldown: 1s}]}\n", i);
	say("pools:\n");
	for (uint32_t i = 0; i < PACER_THROTTLES - 32; i++) {
		say(i % 32 ? ", cpu:%u" : "- {each: 1, cooldown: 1s, targets: [cpu:%u", i);
		if (i % 32 == 31)
			say("], name: p%u}\n", i / 32);
	}
	assert_int_equal(load(doc.s), 0);
	for (uint32_t i = 0; i < 32; i++)
		seen[now.bin.rule[i].limiter[0].base] = true;
	for (uint32_t i = 0; i < now.policy->n_pools; i++)
		for (uint32_t k = 0; k < 32; k++)
			seen[now.bin.pool[i].state[k]] = true;
	for (uint32_t i = 0; i < PACER_THROTTLES; i++)
		n += seen[i];
	assert_int_equal(n, PACER_THROTTLES);
	say("- {name: one, each: 1, cooldown: 1s, targets: veth1}\n");
	assert_int_equal(load(doc.s), -1);
	assert_int_equal(error.line, 36 + (PACER_THROTTLES - 32) / 32);
	assert_non_null(strstr(error.text, "throttles are needed: limits by uses, targets of"));
}

/* ---- pools ---- */

#define POOL(name, targets) \
	"- {name: " name ", targets: [" targets "], each: 5, cooldown: 1s, threshold: 1}\n"

/* For how long a use counts of a target that left such a pool, with what a lease may be. */
#define COUNTS (SECOND + RESOLUTION + SECOND / 10)

static int apply_pools(const char *pools)
{
	say_again();
	say("rules: []\npools:%s\n%s", *pools ? "" : " []", pools);
	return apply(doc.s);
}

static uint32_t draining_throttles(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < PACER_THROTTLES; i++)
		n += !!now.bin.draining[i].until_ns;
	return n;
}

/* A target's state goes with it, from pool to pool and through a time in none. */
static void test_targets_go_on(void **unused)
{
	uint32_t x, y;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" POOL("a", "x, y")), 0);
	x = now.bin.pool[0].state[0];
	y = now.bin.pool[0].state[1];
	assert_int_equal(now.plan.pool[0].state[0], PLAN_NEW);
	assert_int_equal(apply_pools(POOL("b", "z") POOL("a", "y, x")), 0);
	assert_int_equal(now.bin.pool[1].state[0], y);
	assert_int_equal(now.bin.pool[1].state[1], x);
	assert_int_equal(now.plan.pool[1].state[0], PLAN_KEPT);
	assert_true(now.bin.pool[0].state[0] != x && now.bin.pool[0].state[0] != y);
	assert_int_equal(now.plan.pool[0].state[0], PLAN_NEW);
	assert_int_equal(apply_pools(POOL("b", "x")), 0);
	assert_int_equal(now.bin.pool[0].state[0], x);
	assert_int_equal(draining_throttles(), 2); /* y and z */
	assert_true(now.bin.draining[y].until_ns == COMPILE_UNTIL_SET);
	time_draining();
	assert_int_equal(now.bin.draining[y].until_ns, host.now_ns + COUNTS);
	/* while y's uses count, it comes back with them; nobody else gets its state */
	host.now_ns += COUNTS - 1;
	assert_int_equal(apply_pools(POOL("b", "w, v, y, u")), 0);
	assert_int_equal(now.bin.pool[0].state[2], y);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(i == 2 ||
			    (now.bin.pool[0].state[i] != y && now.bin.pool[0].state[i] != x));
	assert_int_equal(draining_throttles(), 2); /* x and z */
	time_draining();
	/* a CPU of the same number is another target than a socket */
	assert_int_equal(apply_pools(POOL("c", "cpu:1")), 0);
	x = now.bin.pool[0].state[0];
	time_draining();
	assert_int_equal(apply_pools(POOL("c", "xsk:1")), 0);
	assert_int_not_equal(now.bin.pool[0].state[0], x);
	time_draining();
	/* and later it is as if they had never been */
	host.now_ns += 2 * SECOND;
	assert_int_equal(apply_pools(""), 0);
	time_draining();
	host.now_ns += 2 * SECOND;
	assert_int_equal(apply_pools(POOL("a", "x")), 0);
	assert_int_equal(now.plan.pool[0].state[0], PLAN_NEW);
	assert_int_equal(draining_throttles(), 0);
}

/* Targets of two kinds may have one number: each has its own state, also when it is back. */
static void test_targets_of_one_number(void **unused)
{
	uint32_t cpu, xsk;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" POOL("a", "cpu:1") POOL("b", "xsk:1")), 0);
	cpu = now.bin.pool[0].state[0];
	xsk = now.bin.pool[1].state[0];
	assert_int_not_equal(cpu, xsk);
	assert_int_equal(apply_pools(POOL("a", "cpu:1")), 0);
	time_draining();
	assert_int_equal(apply_pools(""), 0);
	time_draining();
	assert_int_equal(draining_throttles(), 2);
	assert_int_equal(apply_pools(POOL("b", "xsk:1")), 0);
	assert_int_equal(now.bin.pool[0].state[0], xsk);
	now.bin.draining[xsk].until_ns = 0;
	assert_int_equal(apply_pools(POOL("a", "cpu:1")), 0);
	assert_int_equal(now.bin.pool[0].state[0], cpu);
}

/* A state that is in a pool is the target's, whatever a trial left beside it. */
static void test_the_pools_state_is_the_targets(void **unused)
{
	uint32_t x;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" POOL("a", "x")), 0);
	x = now.bin.pool[0].state[0];
	now.bin.draining[x + 5] = (struct pacer_draining){.until_ns = UINT64_MAX / 2,
							  .memory_ns = 1,
							  .kind = now.bin.pool[0].kind,
							  .target = now.bin.pool[0].target[0],
							  .state = (uint16_t)(x + 5)};
	assert_int_equal(apply_pools(POOL("b", "x")), 0);
	assert_int_equal(now.bin.pool[0].state[0], x);
}

/* The place of a target that has cooled down, and had a longer cooldown, tells nothing of the next
 * target that has its state. */
static void test_the_next_of_a_state(void **unused)
{
	static const char *const pairs[][2] = {
	    {"- {name: a, targets: [x], each: 5, cooldown: 60s, threshold: 1}\n", POOL("a", "y")},
	    {"- {name: a, targets: ['cpu:1'], each: 5, cooldown: 60s, threshold: 1}\n",
	     POOL("a", "xsk:1")},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(pairs); i++) {
		uint32_t state;

		assert_int_equal(load("rules: []\npools: []\n"), 0);
		assert_int_equal(apply_pools(pairs[i][0]), 0);
		state = now.bin.pool[0].state[0];
		assert_int_equal(apply_pools(""), 0);
		time_draining();
		host.now_ns += 3600 * SECOND;
		assert_int_equal(apply_pools(pairs[i][1]), 0);
		assert_int_equal(now.bin.pool[0].state[0], state);
		compile_keep_targets(&before.bin, &now.bin, host.now_ns);
		assert_int_equal(before.bin.draining[state].memory_ns, COUNTS);
		assert_false(before.bin.draining[state].unused);
	}
}

/* A change that was cut off before its switch was timed: what it gave up still counts. */
static void test_targets_cut_off(void **unused)
{
	uint32_t x;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" POOL("a", "x")), 0);
	x = now.bin.pool[0].state[0];
	assert_int_equal(apply_pools(""), 0);
	host.now_ns += 3600 * SECOND;
	assert_int_equal(apply_pools(""), 0);
	assert_true(now.bin.draining[x].until_ns == COMPILE_UNTIL_SET);
	assert_int_equal(apply_pools(POOL("b", "x")), 0);
	assert_int_equal(now.bin.pool[0].state[0], x);
}

/* An unconfirmed policy gives way: the one before has to know of the targets that it had not. */
static void test_targets_given_back(void **unused)
{
	struct pacer_policy *old = &before.bin;
	uint32_t z;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" POOL("a", "x, y")), 0);
	assert_int_equal(apply_pools(POOL("a", "x, z")), 0);
	z = now.bin.pool[0].state[1];
	compile_keep_targets(old, &now.bin, 60 * SECOND);
	compile_keep_targets(old, &now.bin, 60 * SECOND); /* once is enough */
	assert_true(old->draining[z].until_ns == 60 * SECOND + COUNTS);
	assert_int_equal(old->draining[z].state, z);
}

/* ... and where it had one before, that counts until it has cooled down from the other policy. */
static void test_targets_given_back_later(void **unused)
{
	struct pacer_policy *old = &before.bin;
	uint32_t y;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" POOL("a", "x, y")), 0);
	y = now.bin.pool[0].state[1];
	assert_int_equal(apply_pools(POOL("a", "x")), 0);
	time_draining();
	assert_int_equal(now.bin.draining[y].until_ns, SECOND + COUNTS);
	assert_int_equal(apply_pools(POOL("a", "x, y")), 0);
	assert_int_equal(now.bin.pool[0].state[1], y);
	compile_keep_targets(old, &now.bin, 60 * SECOND);
	assert_true(old->draining[y].until_ns == 60 * SECOND + COUNTS);
	assert_int_equal(old->draining[y].state, y);
}

/* ... and where it has long to cool from before, that stays, whatever the other policy made of it.
 */
static void test_the_longer_time_is_kept(void **unused)
{
	static struct pacer_policy into, from;
	struct pacer_draining was = {
	    .until_ns = 100 * SECOND, .memory_ns = 10 * SECOND, .state = 3};

	(void)unused;
	into.draining[3] = was;
	from.pool[0].n = 1;
	from.pool[0].state[0] = 3;
	from.pool[0].throttle.cooldown_ns = SECOND;
	compile_keep_targets(&into, &from, 98 * SECOND);
	was.unused = true; /* that one takes uses back earlier */
	assert_memory_equal(&into.draining[3], &was, sizeof(was));
	compile_keep_targets(&into, &from, 99 * SECOND);
	assert_true(into.draining[3].until_ns == 100 * SECOND + SECOND / 10);
	assert_true(into.draining[3].memory_ns == 10 * SECOND);
	from.pool[0].throttle.cooldown_ns =
	    20 * SECOND; /* what is gone does not come back by that */
	compile_keep_targets(&into, &from, 99 * SECOND);
	assert_true(into.draining[3].unused);
}

#define COOLING(targets, cooldown) \
	"- {name: a, targets: [" targets "], each: 5, cooldown: " cooldown ", threshold: 1}\n"

/* The state of x, which the change to such a pool keeps, or which begins spent. */
static uint32_t cools(const char *pools, bool spent)
{
	assert_int_equal(apply_pools(pools), 0);
	assert_int_equal(now.plan.pool[0].spent[0], spent);
	assert_int_equal(now.plan.pool[0].state[0], spent ? PLAN_NEW : PLAN_KEPT);
	time_draining();
	return now.bin.pool[0].state[0];
}

/* A shorter cooldown takes uses back; while they would count, a longer one begins as if all were
 * used. */
static void test_a_cooldown_that_is_back(void **unused)
{
	uint32_t x;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" COOLING("x, y", "10s")), 0);
	x = now.bin.pool[0].state[0];
	assert_int_equal(cools(COOLING("x, y", "1s"), false), x);
	assert_true(compile_shortens_targets(&before.bin, &now.bin));
	assert_int_equal(now.bin.draining[x].until_ns, host.now_ns + 9 * SECOND + COUNTS);
	assert_int_not_equal(cools(COOLING("y, x", "1s"), false), x);
	assert_false(compile_shortens_targets(&before.bin, &now.bin));
	host.now_ns += 9 * SECOND + COUNTS - 1;
	assert_int_not_equal(cools(COOLING("x, y", "2s"), true), x);
	assert_true(compile_shortens_targets(&before.bin, &now.bin));
	assert_int_equal(draining_throttles(), 2); /* what was under the longest is not in them */
	/* later it goes on */
	x = now.bin.pool[0].state[0];
	assert_int_equal(cools(COOLING("x, y", "1s"), false), x);
	host.now_ns += 9 * SECOND + COUNTS;
	assert_int_equal(cools(COOLING("x, y", "10s"), false), x);
	assert_false(compile_shortens_targets(&before.bin, &now.bin));
	assert_int_equal(cools(COOLING("x, y", "20s"), false), x);
	assert_int_equal(draining_throttles(), 0);
}

/* ... also in another pool, and through a time in none, where only the first has taken none back.
 */
static void test_a_cooldown_that_is_back_elsewhere(void **unused)
{
	uint32_t x;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" COOLING("x", "10s")), 0);
	x = now.bin.pool[0].state[0];
	assert_int_equal(apply_pools(""), 0);
	time_draining();
	assert_int_equal(cools(COOLING("x", "10s"), false), x);
	assert_int_equal(draining_throttles(), 0);
	assert_int_equal(apply_pools(""), 0);
	time_draining();
	assert_int_equal(cools(COOLING("x", "1s"), false), x);
	assert_int_equal(draining_throttles(), 1);
	assert_int_equal(apply_pools(""), 0);
	time_draining();
	assert_int_equal(now.bin.draining[x].until_ns, host.now_ns + 9 * SECOND + COUNTS);
	assert_int_not_equal(cools(COOLING("x", "1s"), true), x);
}

/* The longest is what counts, whatever has begun spent in between. */
static void test_the_longest_cooldown_counts(void **unused)
{
	uint32_t x;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" COOLING("x", "30s")), 0);
	(void)cools(COOLING("x", "3s"), false);
	x = cools(COOLING("x", "5s"), true);
	assert_int_equal(now.bin.draining[x].until_ns, host.now_ns + 29 * SECOND + COUNTS);
	assert_int_equal(draining_throttles(), 1);
	host.now_ns += 6 * SECOND;
	assert_int_not_equal(cools(COOLING("x", "30s"), true), x);
	assert_int_equal(draining_throttles(), 0);
	(void)cools(COOLING("x", "3s"), false);
	assert_int_equal(apply_pools(""), 0);
	time_draining();
	(void)cools(COOLING("x", "3s"), true);
	(void)cools(COOLING("x", "30s"), true);
}

/* ... and whichever of two states a trial that took it from none has left. */
static void test_a_target_that_was_tried_again(void **unused)
{
	struct pacer_policy *old = &before.bin;

	(void)unused;
	for (int low = 0; low < 2; low++) {
		uint32_t x, y;

		assert_int_equal(load("rules: []\npools:\n" COOLING("y", "1ms")), 0);
		assert_int_equal(apply_pools(COOLING("x, y", "30s")), 0);
		time_draining();
		x = now.bin.pool[0].state[0];
		assert_int_equal(apply_pools(COOLING("x, y", "3s")), 0);
		time_draining();
		assert_int_equal(apply_pools(low ? "" : COOLING("y", "3s")), 0);
		time_draining();
		host.now_ns += low ? 0 : SECOND;
		if (low) /* y's place is free, below that of x */
			now.bin.draining[now.bin.draining[0].target == now.bin.draining[x].target]
			    .until_ns = 0;
		y = cools(COOLING("x", "3s"), true);
		assert_true(low ? y < x : y > x);
		compile_keep_targets(old, &now.bin, host.now_ns + SECOND);
		now.bin = *old;
		(void)cools(COOLING("x", "30s"), true);
	}
}

/* ... and where two trials took it from none: what it got is in two states, and neither has all. */
static void test_a_target_that_was_tried_twice(void **unused)
{
	struct pacer_policy *old = &before.bin;
	uint32_t first, second, x;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" COOLING("x", "30s")), 0);
	(void)cools(COOLING("x", "3s"), false);
	assert_int_equal(apply_pools(""), 0);
	time_draining();
	first = cools(COOLING("x", "60s"), true);
	compile_keep_targets(old, &now.bin, host.now_ns + SECOND);
	now.bin = *old;
	second = cools(COOLING("x", "5s"), true);
	compile_keep_targets(old, &now.bin, host.now_ns + 30 * SECOND);
	now.bin = *old;
	host.now_ns += 32 * SECOND; /* the cooldown that was shortened is over */
	x = cools(COOLING("x", "5s"), true);
	assert_int_not_equal(x, first);
	assert_int_not_equal(x, second);
}

/* ... and where an unconfirmed policy had the longer one. */
static void test_a_cooldown_that_was_tried(void **unused)
{
	struct pacer_policy *old = &before.bin;
	uint32_t x;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" COOLING("x", "1s")), 0);
	x = cools(COOLING("x", "10s"), false);
	assert_false(compile_shortens_targets(old, &now.bin));
	compile_keep_targets(old, &now.bin, 60 * SECOND);
	assert_true(old->draining[x].until_ns == 69 * SECOND + COUNTS);
	now.bin = *old;
	assert_int_not_equal(cools(COOLING("x", "10s"), true), x);
}

/* ... whatever a later policy lets through, up to when all is free at once. */
static void test_spent(void **unused)
{
	struct pacer_throttle_state state = {0};
	struct pacer_throttle_lease lease = {0};
	const struct pacer_throttle_profile *each = &now.bin.pool[0].throttle;

	(void)unused;
	assert_int_equal(load("rules: []\npools:\n- {name: a, targets: [x], each: 5, cooldown: 1s, "
			      "threshold: 2}\n"),
			 0);
	throttle_spend(&state, each, 5 * SECOND);
	assert_int_equal(pacer_throttle_take_of(each, UINT32_MAX, &state, &lease, 6 * SECOND, 1),
			 PACER_THROTTLE_FULL);
	assert_true(pacer_throttle_when(each, &state) == 6 * SECOND + RESOLUTION);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(pacer_throttle_use(each, &state, 6 * SECOND + RESOLUTION, 1),
				 PACER_THROTTLE_ADMIT);
	assert_int_equal(state.held, 5);
}

/* Three pools of 32 targets each, the CPUs from this one on. */
static const char *full_pools(uint32_t from)
{
	say_again();
	say("rules: []\npools:\n");
	for (uint32_t i = 0; i < 3; i++) {
		say("- {name: p%u, each: 5, cooldown: 1s, threshold: 32, targets: [", i);
		for (uint32_t k = 0; k < 32; k++)
			say("%scpu:%u", k ? ", " : "", from + i * 32 + k);
		say("]}\n");
	}
	return doc.s;
}

/* States are for others once what they knew has cooled down, whatever was refused meanwhile. */
static void test_states_come_back(void **unused)
{
	(void)unused;
	assert_int_equal(load(full_pools(0)), 0);
	assert_int_equal(apply_pools(""), 0);
	time_draining();
	assert_int_equal(draining_throttles(), 96);
	host.now_ns += COUNTS - 1;
	assert_int_equal(apply(full_pools(96)), -1);
	assert_non_null(strstr(error.text, "more than 128 throttles are needed"));
	host.now_ns++;
	assert_int_equal(apply(full_pools(96)), 0);
	assert_int_equal(draining_throttles(), 0);
}

/* A pool of the same name goes on where it was, if that is still a target. */
static void test_turns(void **unused)
{
	(void)unused;
	assert_int_equal(load("rules: []\npools:\n" POOL("a", "x, y, z") POOL("b", "w")), 0);
	assert_int_equal(now.bin.pool[0].turn, 0);
	now.bin.pool[0].turn = 2;
	assert_int_equal(apply_pools(POOL("b", "w, u, v") POOL("a", "z, y, x")), 0);
	assert_int_equal(now.bin.pool[1].turn, 2);
	assert_int_equal(now.bin.pool[0].turn, 0);
	assert_int_equal(apply_pools(POOL("a", "z, y")), 0);
	assert_int_equal(now.bin.pool[0].turn, 0);
}

static void test_over(void **unused)
{
	(void)unused;
	assert_int_equal(load("rules:\n- {name: a, limits: [{key: src, gap: 1s}], over: pool q}\n"
			      "pools:\n" POOL("p", "x") POOL("q", "y")),
			 0);
	assert_int_equal(now.bin.rule[0].over, PACER_OVER_POOL);
	assert_int_equal(now.bin.rule[0].pool, 1);
}

/* ---- bans ---- */

static const char *banning(const char *head, const char *ban)
{
	say_again();
	say("%s\nrules:\n- {name: a, limits: [{key: src, gap: 1s}]%s}\n", head, ban);
	return doc.s;
}

static void test_bans(void **unused)
{
	const struct pacer_bans *bans = &now.bin.bans;
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];
	struct pacer_bans was;

	(void)unused;
	/* where the policy says how large it is, for bans from outside */
	assert_int_equal(load(banning("bans: 9", "")), 0);
	assert_true(bans->sets == 3 && !now.bin.rule[0].ban_ns && now.bin.rule[0].plain);
	assert_int_equal(load(banning("", "")), 0);
	assert_true(!bans->sets && !now.bin.rule[0].ban_ns && !compile_ban_lines(bans));
	assert_int_equal(apply(banning("", ", ban: 10s")), 0);
	assert_int_equal(bans->sets, 4096);
	assert_int_equal(bans->filter_mask, 16383);
	assert_int_equal(now.plan.bans, PLAN_NEW);
	assert_int_equal(compile_ban_lines(bans), 2 * 16384 + 1);
	assert_int_equal(now.plan.lines_used, compile_limiter_lines(t) + 2 * 16384 + 1);
	assert_int_equal(now.bin.rule[0].ban_ns, 10 * SECOND + RESOLUTION);
	assert_true(bans->base >= t->base + compile_limiter_lines(t) ||
		    bans->base + 2 * 16384 + 1 <= t->base);
	assert_true(bans->base + 2 * 16384 + 1 <= now.plan.lines);
	assert_int_equal(bans->filter, bans->base + 16384);
	/* bans go on, whatever else changes */
	was = *bans;
	assert_int_equal(apply("rules:\n- {name: b, limits: [{key: dst, gap: 1s}], ban: 1s}\n"), 0);
	assert_memory_equal(bans, &was, sizeof(was));
	assert_int_equal(now.plan.bans, PLAN_KEPT);
	t = &now.bin.rule[0].limiter[0];
	assert_true(bans->base >= t->base + compile_limiter_lines(t) ||
		    bans->base + 2 * 16384 + 1 <= t->base);
	/* another size is another table */
	assert_int_equal(apply(banning("bans: 10", ", ban: 10s")), 0);
	assert_int_equal(bans->sets, 3);
	assert_int_equal(bans->filter_mask, 15);
	assert_int_equal(now.plan.bans, PLAN_NEW);
	assert_true(bans->base + 29 <= was.base || bans->base >= was.base + 2 * 16384 + 1);
}

static void test_no_room_for_bans(void **unused)
{
	(void)unused;
	assert_int_equal(load(banning("memory: 1Mi", ", ban: 1s")), -1);
	assert_non_null(strstr(error.text, "bans: no room for the table of 16384: 2097216 bytes "
					   "wanted, 1048576 free together: write fewer or raise "
					   "memory"));
	assert_int_equal(load(banning("memory: 1Mi\nbans: 2k", ", ban: 1s")), 0);
}

/* ---- uses across changes of policy ---- */

#define USED_LINES  1024u
#define USED_EVENTS 16384u
#define USED_CPUS   2u
#define USED_KINDS  4u /* windows and throttles, of two lengths */

static const uint64_t used_ns[USED_KINDS] = {20 * MS, 50 * MS, 20 * MS, 50 * MS};
static struct pacer_line used_lines[USED_LINES];
static struct pacer_throttle_state used_state[PACER_THROTTLES];
static struct pacer_throttle_lease used_lease[USED_CPUS][PACER_THROTTLES];
static __u64 used_secret[PACER_SECRETS];

struct use {
	uint64_t time_ns;
	uint32_t epoch;
};

/*
 * Of each thing that is limited: its uses, and what each epoch allows of it in each time. What an
 * epoch of a shorter time allows comes on top of that.
 */
struct used {
	struct use at[USED_EVENTS];
	uint64_t limit[128][USED_KINDS], on_top[128][USED_KINDS];
	uint32_t n;
};

/* No time holds more uses than the largest limit of the epochs that it spans. */
static void add_use(struct used *u, uint32_t epoch)
{
	assert_true(u->n < USED_EVENTS);
	u->at[u->n++] = (struct use){host.now_ns, epoch};
	for (uint32_t k = 0; k < USED_KINDS; k++) {
		uint64_t most = 0, on_top = 0;
		uint32_t i = u->n;

		while (i && host.now_ns - u->at[i - 1].time_ns < used_ns[k])
			i--;
		for (uint32_t e = u->at[i].epoch; e <= epoch; e++) {
			most = u->limit[e][k] > most ? u->limit[e][k] : most;
			on_top = u->on_top[e][k] > on_top ? u->on_top[e][k] : on_top;
		}
		if (u->n - i > most + on_top)
			fail_msg("%u within %llu ms, epochs %u to %u: the limit is %llu\n%s",
				 u->n - i, (unsigned long long)(used_ns[k] / MS), u->at[i].epoch,
				 epoch, (unsigned long long)(most + on_top), doc.s);
	}
}

static void forget_leases(uint32_t state)
{
	for (uint32_t cpu = 0; cpu < USED_CPUS; cpu++)
		memset(&used_lease[cpu][state], 0, sizeof(used_lease[cpu][state]));
}

static void clear_state(uint32_t state)
{
	memset(&used_state[state], 0, sizeof(used_state[state]));
	forget_leases(state);
}

/* As the CLI does after a change. */
static void begin_states(void)
{
	for (size_t i = 0; i < now.plan.n_limits; i++) {
		const struct plan_limit *l = &now.plan.limit[i];
		const struct pacer_limiter *t = &now.bin.rule[l->rule].limiter[l->limiter];

		if (l->state == PLAN_NEW && t->kind == PACER_LIMITER_THROTTLE)
			clear_state(t->base);
		else if (l->state == PLAN_NEW)
			memset(&used_lines[t->base], 0,
			       compile_limiter_lines(t) * sizeof(*used_lines));
	}
	for (size_t i = 0; i < now.plan.n_pools; i++)
		for (size_t k = 0; k < now.plan.pool[i].n; k++) {
			uint32_t state = now.bin.pool[i].state[k];

			forget_leases(state); /* each copy's pools have their own */
			if (now.plan.pool[i].state[k] == PLAN_NEW)
				clear_state(state);
			if (now.plan.pool[i].spent[k])
				throttle_spend(&used_state[state], &now.bin.pool[i].throttle,
					       host.now_ns);
		}
	time_draining();
}

static uint64_t clock_ns(void)
{
	return now.bin.flags & PACER_CLOCK_EXACT ? host.now_ns
						 : host.now_ns - host.now_ns % RESOLUTION;
}

static void begin_uses(struct used *u, uint32_t n)
{
	memset(used_lines, 0, sizeof(used_lines));
	for (uint32_t i = 0; i < PACER_THROTTLES; i++)
		clear_state(i);
	for (uint32_t i = 0; i < n; i++)
		u[i].n = 0;
}

static const char *const limits_of_all[] = {
    "{key: all, uses: 40, cooldown: 20ms, threshold: 20}",
    "{key: all, uses: 60, cooldown: 20ms, max_cooldown: 25ms, threshold: 20}",
    "{key: all, uses: 12, cooldown: 20ms, threshold: 1}",
    "{key: all, uses: 90, cooldown: 50ms, max_cooldown: 60ms, threshold: 30}",
    "{key: all, uses: 70, cooldown: 50ms}",
    "{key: all, packets: 30, window: 20ms, slots: 4}",
    "{key: all, packets: 50, window: 20ms, slots: 4}",
    "{key: all, packets: 80, window: 50ms, slots: 5}",
};

static const char *text_of_all(void)
{
	uint32_t n = between(1, 3);

	say_again();
	say("memory: 64Ki\nclock: %s\nrules:\n- name: a\n  limits:\n",
	    draw() & 1 ? "exact" : "coarse");
	while (n--)
		say("  - %s\n", limits_of_all[draw() % ARRAY(limits_of_all)]);
	return doc.s;
}

static void limits_of_epoch(struct used *u, uint32_t epoch)
{
	for (uint32_t k = 0; k < USED_KINDS; k++) {
		u->limit[epoch][k] = UINT64_MAX;
		for (size_t i = 0; i < now.policy->rule[0].n_limits; i++) {
			const struct policy_limit *l = &now.policy->rule[0].limit[i];
			bool uses = l->kind == LIMIT_THROTTLE;
			uint64_t time_ns = uses ? l->throttle.cooldown_ns : l->window_ns;
			uint64_t limit = uses ? l->throttle.uses : l->limit;

			if (uses == (k > 1) && time_ns == used_ns[k] && limit < u->limit[epoch][k])
				u->limit[epoch][k] = limit;
		}
	}
}

static uint32_t pace_all(struct used *u, uint32_t packets, uint32_t epoch)
{
	uint32_t n = 0;

	while (packets--) {
		uint32_t cpu = draw() % USED_CPUS;
		struct pacer_state state = {.table = {used_lines, USED_LINES},
					    .policy = &now.bin,
					    .secret = used_secret,
					    .throttle = used_state,
					    .lease = used_lease[cpu]};
		struct pacer_walk walk = {
		    .state = &state,
		    .pkt = {.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 100}};

		host.now_ns += draw() % 30 ? draw() % (MS / 4) : draw() % (30 * MS);
		walk.now_ns = clock_ns();
		if (pacer_outcome_reason(judge_parsed(&walk)) != PACER_ADMIT)
			continue;
		add_use(u, epoch);
		n++;
	}
	return n;
}

/* A rule's throttles hold beside its windows, on two CPUs, across every change. */
static void test_paced_across_changes(void **unused)
{
	static struct used u;
	uint32_t n = 0;

	(void)unused;
	for (uint32_t i = 0; i < PACER_SECRETS; i++)
		used_secret[i] = draw();
	for (uint32_t i = 0; i < 80; i++) {
		begin_uses(&u, 1);
		assert_int_equal(load(text_of_all()), 0);
		begin_states();
		limits_of_epoch(&u, 0);
		for (uint32_t e = 0; e < 100;) {
			n += pace_all(&u, draw() % 200, e);
			if (apply(text_of_all()))
				continue;
			begin_states();
			limits_of_epoch(&u, ++e);
		}
	}
	assert_true(n > 200000);
}

#define TARGETS 5u

static const char *text_of_pools(void)
{
	uint32_t left = TARGETS, target = draw() % TARGETS, pool = 0;

	say_again();
	say("clock: %s\nrules: []\npools:\n", draw() & 1 ? "exact" : "coarse");
	while (left && pool < 3 && draw() % 4) {
		uint32_t n = between(1, left), each = 10 * (uint32_t)between(1, 3);
		bool is_short = draw() & 1;

		/* some so tight that they add little to what a longer time holds */
		if (is_short && draw() & 1)
			each /= 10;
		say("- {name: p%u, each: %u, cooldown: %s, threshold: %u, targets: [",
		    (uint32_t)draw() % 2 + 2 * pool++, each, is_short ? "20ms" : "50ms",
		    n * (uint32_t)between(1, each < 10 ? each : 10));
		for (uint32_t i = 0; i < n; i++, left--)
			say("%sveth%u", i ? ", " : "", target++ % TARGETS);
		say("]}\n");
	}
	if (!pool)
		say("  []\n");
	return doc.s;
}

static void limits_of_targets(struct used u[TARGETS], uint32_t epoch)
{
	for (uint32_t i = 0; i < TARGETS; i++) {
		memset(u[i].limit[epoch], 0, sizeof(u[i].limit[epoch]));
		memset(u[i].on_top[epoch], 0, sizeof(u[i].on_top[epoch]));
	}
	for (size_t i = 0; i < now.policy->n_pools; i++)
		for (size_t k = 0; k < now.policy->pool[i].n; k++) {
			const struct policy_pool *p = &now.policy->pool[i];
			struct used *of = &u[p->target[k].name[4] - '0'];
			uint64_t cooldown_ns = p->throttle.cooldown_ns;

			for (uint32_t w = 0; w < USED_KINDS; w++)
				if (cooldown_ns >= used_ns[w])
					of->limit[epoch][w] = p->each;
				else /* in so many of its times */
					of->on_top[epoch][w] =
					    p->each * (1 + (used_ns[w] - 1) / cooldown_ns);
		}
}

static uint32_t use_targets(struct used u[TARGETS], uint32_t packets, uint32_t epoch)
{
	uint32_t n = 0;

	while (packets-- && now.policy->n_pools) {
		uint32_t at = draw() % now.policy->n_pools, cpu = draw() % USED_CPUS;
		const struct pacer_pool *p = &now.bin.pool[at];
		uint32_t k = draw() % p->n;

		host.now_ns += draw() % 30 ? draw() % (MS / 4) : draw() % (30 * MS);
		if (pacer_throttle_take(&p->throttle, &used_state[p->state[k]],
					&used_lease[cpu][p->state[k]], clock_ns(),
					1) != PACER_THROTTLE_ADMIT)
			continue;
		add_use(&u[now.policy->pool[at].target[k].name[4] - '0'], epoch);
		n++;
	}
	return n;
}

/* No target gets more than `each`, from whatever pools, on two CPUs, across every change. */
static void test_targets_across_changes(void **unused)
{
	static struct used u[TARGETS];
	uint32_t n = 0;

	(void)unused;
	for (uint32_t i = 0; i < 80; i++) {
		begin_uses(u, TARGETS);
		assert_int_equal(load(text_of_pools()), 0);
		begin_states();
		limits_of_targets(u, 0);
		for (uint32_t e = 0; e < 100;) {
			/* often it is changed before a cooldown is over */
			n += use_targets(u, draw() % (draw() & 1 ? 300 : 100), e);
			host.now_ns += draw() % (10 * MS);
			if (apply(text_of_pools()))
				continue;
			begin_states();
			limits_of_targets(u, ++e);
		}
	}
	assert_true(n > 200000);
}

/* For the next reading of a capture: a threshold that was not written goes with the uses. */
static void test_retuned(void **unused)
{
	static const struct {
		enum policy_threshold is;
		uint64_t uses, threshold, value, now_uses, now_threshold;
	} rows[] = {
	    {THRESHOLD_USES, 10, 10, 50, 50, 50},
	    {THRESHOLD_USES, 1, 1, 7, 7, 7},
	    {THRESHOLD_HUNDREDTH, 1, 1, 107, 107, 2},
	    {THRESHOLD_HUNDREDTH, 1000, 10, 250, 250, 3},
	    {THRESHOLD_HUNDREDTH, 901, 10, 2000, 2000, 20},
	    {THRESHOLD_WRITTEN, 1000, 50, 400, 400, 50}, /* it stays */
	    {THRESHOLD_WRITTEN, 1000, 50, 20, 50, 50},	 /* and there are no fewer uses */
	    {THRESHOLD_WRITTEN, 2000, 20, 17, 20, 20},	 /* though it is the hundredth */
	    {THRESHOLD_WRITTEN, 5, 1, 273, 273, 1},
	    {THRESHOLD_WRITTEN, 1, 1, 60, 60, 1}, /* though it is all of them */
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct policy_limit from = {.kind = LIMIT_THROTTLE}, to;

		from.throttle.uses = rows[i].uses;
		from.throttle.threshold = rows[i].threshold;
		from.throttle.threshold_is = rows[i].is;
		to = from;
		limit_kind_of(&from)->retune(&to, &from, rows[i].value, NULL);
		assert_int_equal(to.throttle.uses, rows[i].now_uses);
		assert_int_equal(to.throttle.threshold, rows[i].now_threshold);
	}
}

/* The same of a window whose units were too few: a narrow record becomes a wide one, bytes get
 * larger units. */
static void test_windows_retuned(void **unused)
{
	struct policy_limit from = {.kind = LIMIT_WINDOW, .cost = PACER_COST_PACKETS}, to = from;
	const struct limit_kind *kind = limit_kind_of(&from);
	struct pacer_limiter t = {.kind = PACER_LIMITER_WINDOW};
	uint64_t most;

	(void)unused;
	assert_int_equal(pacer_window_profile(&t.window, PACER_COST_PACKETS, 20, 1000000, 10, 0),
			 PACER_WINDOW_OK);
	most = pacer_window_limit_max(&t.window);
	kind->retune(&to, &from, 21, NULL);
	assert_int_equal(to.limit, 21);
	kind->retune(&to, &from, 21, &t);
	assert_int_equal(to.limit, most + 1);
	pacer_window_widen(&t.window);
	kind->retune(&to, &from, 21, &t);
	assert_int_equal(to.limit, 21); /* nothing counts more packets */
	from.cost = PACER_COST_BYTES;
	t.window.cost_shift = 3;
	kind->retune(&to, &from, 21, &t);
	assert_int_equal(to.limit, (pacer_window_limit_max(&t.window) + 1ull) << 3);
}

/* A rate is the policy's up to the resolution that its burst is kept in, and never with a longer
 * burst. */
static void test_rate_is_the_policys(void **unused)
{
	const struct policy_limit limit = {.kind = LIMIT_RATE,
					   .cost = PACER_COST_PACKETS,
					   .rate = {.amount = 1000, .per_ns = 1000000000},
					   .burst = 50};
	const struct limit_kind *kind = limit_kind_of(&limit);
	struct pacer_limiter t = {.kind = PACER_LIMITER_RATE};

	(void)unused;
	assert_int_equal(pacer_rate_profile(&t.rate, PACER_COST_PACKETS, 1000, 1000000000, 50, 0),
			 PACER_RATE_OK);
	assert_true(kind->is(&limit, &t, 0));
	t.rate.burst_ns -= 7;
	assert_true(kind->is(&limit, &t, 7));
	assert_false(kind->is(&limit, &t, 6));
	t.rate.burst_ns += 8;
	assert_false(kind->is(&limit, &t, 7));
}

/* A rate whose bursts begin at nothing has waited once a whole burst has come together. */
static void test_rate_has_waited(void **unused)
{
	struct pacer_limiter t = {.kind = PACER_LIMITER_RATE, .rate = {.burst_ns = 50}};
	const struct limit_kind *kind = kind_of_limiter(&t);

	(void)unused;
	assert_true(kind->has_waited(&t, 1));
	t.rate.begin_ns = 100;
	assert_false(kind->has_waited(&t, 99));
	assert_false(kind->has_waited(&t, 100));
	assert_false(kind->has_waited(&t, 150));
	assert_true(kind->has_waited(&t, 151));
	kind->beside(&t, 99); /* what is over sooner lets it begin no earlier */
	assert_int_equal(t.rate.begin_ns, 100);
	kind->beside(&t, 101);
	assert_int_equal(t.rate.begin_ns, 101);
}

/* What is said of leases of before takes nothing from what is leased now. */
static void test_leases_are_the_larger(void **unused)
{
	struct pacer_limiter t = {.kind = PACER_LIMITER_THROTTLE, .throttle = {.lease = 9}};

	(void)unused;
	throttle_lease_lasts(&t, 12);
	assert_int_equal(throttle_leased(&t, SECOND), 12);
	throttle_lease_lasts(&t, 4);
	assert_int_equal(throttle_leased(&t, SECOND), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_the_example),
	    TEST(test_key_ids),
	    TEST(test_rule_ids),
	    TEST(test_profiles),
	    TEST(test_clocks),
	    TEST(test_too_many_buckets),
	    TEST(test_defaults_fit),
	    TEST(test_draining),
	    TEST(test_clock_of_a_state),
	    TEST(test_leases_of_a_state),
	    TEST(test_states_run_out),
	    TEST(test_targets_go_on),
	    TEST(test_targets_of_one_number),
	    TEST(test_the_pools_state_is_the_targets),
	    TEST(test_the_next_of_a_state),
	    TEST(test_targets_cut_off),
	    TEST(test_targets_given_back),
	    TEST(test_targets_given_back_later),
	    TEST(test_the_longer_time_is_kept),
	    TEST(test_a_cooldown_that_is_back),
	    TEST(test_a_cooldown_that_is_back_elsewhere),
	    TEST(test_the_longest_cooldown_counts),
	    TEST(test_a_target_that_was_tried_again),
	    TEST(test_a_target_that_was_tried_twice),
	    TEST(test_a_cooldown_that_was_tried),
	    TEST(test_spent),
	    TEST(test_states_come_back),
	    TEST(test_turns),
	    TEST(test_over),
	    TEST(test_retuned),
	    TEST(test_windows_retuned),
	    TEST(test_rate_is_the_policys),
	    TEST(test_rate_has_waited),
	    TEST(test_leases_are_the_larger),
	    TEST(test_bans),
	    TEST(test_no_room_for_bans),
	    TEST(test_paced_across_changes),
	    TEST(test_targets_across_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
