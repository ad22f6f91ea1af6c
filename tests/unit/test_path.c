/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of a packet on the host that the core itself is: frames in memory. What is done with a
 * packet of each outcome, which counters that moves, and what a sample holds of it.
 */
#include "oracle.h"

static int allow_all, tool_bans; /* everybody */
static int bans_asked(void);

#define PACER_IS_ALLOWED(frame, walk, exact) ((void)(frame), (void)(walk), (void)(exact), allow_all)
#define PACER_BANNED_BY_TOOL(walk)	     ((void)(walk), bans_asked())
#include "path.h"

#define START	1000000ull
#define LINES	64u
#define COUNTER 5u

/* Ethernet, IPv4, UDP: 192.0.2.1 port 4660 to 198.51.100.2 port 53. */
static const uint8_t udp4[60] = {
    2,	0,  0, 0, 0,   1, 2, 0, 0,   0,	 0,   2, 0x08, 0x00, 0x45, 0,  0, 46, 0, 0, 0,	  0,
    64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0,	   53, 0, 26, 0, 0, 0xab,
};

static struct pacer_policy policy;
static struct pacer_line lines[LINES];
static __u64 secret[2 * PACER_SECRETS]; /* two */
static struct pacer_counters counters[PACER_COUNTERS_MAX], expected[PACER_COUNTERS_MAX];
static struct pacer_sampler sampler;
static struct pacer_heads heads;
static struct pacer_state state = {.table = {lines, LINES},
				   .policy = &policy,
				   .secret = secret,
				   .counters = counters,
				   .sampler = &sampler,
				   .heads = &heads};

static bool more_meanwhile;

/* A trial may begin just then that has the policy ask for more. */
static int bans_asked(void)
{
	if (more_meanwhile)
		policy.dims |= PACER_DIMS_MORE;
	return tool_bans;
}

/* One rule for all: a packet of a source in 1000 ns. */
static void begin(void)
{
	struct pacer_rule *r = &policy.rule[0];
	struct pacer_limiter *t = &r->limiter[0];
	uint32_t i;

	oracle_seed(71);
	allow_all = 0;
	tool_bans = 0;
	more_meanwhile = false;
	memset(&policy, 0, sizeof(policy));
	memset(lines, 0, sizeof(lines));
	memset(counters, 0, sizeof(counters));
	memset(expected, 0, sizeof(expected));
	memset(&sampler, 0, sizeof(sampler));
	memset(&heads, 0, sizeof(heads));
	pacer_sampler_init(&sampler, 1);
	for (i = 0; i < 2 * PACER_SECRETS; i++)
		secret[i] = draw();
	policy.rules.word[0] = 1;
	*r = (struct pacer_rule){.counter = COUNTER, .n_limiters = 1, .plain = 1};
	*t = (struct pacer_limiter){.kind = PACER_LIMITER_GAP,
				    .rows = 2,
				    .sets = LINES,
				    .key_id = 1,
				    .gap_ns = 1000,
				    .units = PACER_LINE_UNITS,
				    .src_only = 1,
				    .mask4 = {~0u}};
}

/* Run n bytes of it: what is done, the outcome without its limit, and exactly these counters. */
static void goes(const uint8_t *b, uint32_t n, uint64_t now_ns, enum pacer_action action,
		 uint32_t slot, enum pacer_reason reason)
{
	struct pacer_frame frame = {b, b + n, n, now_ns};
	struct pacer_walk walk = {.state = &state};
	uint32_t outcome, done = pacer_path(&frame, &walk, &outcome);

	assert_int_equal(done, action);
	assert_int_equal(pacer_outcome_reason(outcome), reason);
	assert_int_equal(pacer_outcome_rule(outcome), slot ? 0 : PACER_RULES_MAX);
	expected[slot].by[reason].packets++;
	expected[slot].by[reason].bytes += n;
	assert_memory_equal(counters, expected, sizeof(counters));
}

static void udp(uint64_t now_ns, enum pacer_action action, uint32_t slot, enum pacer_reason reason)
{
	goes(udp4, sizeof(udp4), now_ns, action, slot, reason);
}

/* The same by the fast way and, where the rule is not plain, by the long one. */
static void test_limit(void **unused)
{
	int plain;

	(void)unused;
	for (plain = 0; plain < 2; plain++) {
		begin();
		policy.rule[0].plain = plain;
		udp(START, PACER_PASS, COUNTER, PACER_ADMIT);
		udp(START + 999, PACER_DROP, COUNTER, PACER_DENY_GAP);
		udp(START + 1000, PACER_PASS, COUNTER, PACER_ADMIT);
	}
}

/* A key is looked for under the secret that its limit names: under the other one it is new. */
static void test_secret(void **unused)
{
	struct pacer_limiter *t = &policy.rule[0].limiter[0];
	int narrow;

	(void)unused;
	for (narrow = 0; narrow < 2; narrow++) {
		enum pacer_reason denial = narrow ? PACER_DENY_WINDOW : PACER_DENY_GAP;

		begin();
		if (narrow) {
			t->kind = PACER_LIMITER_WINDOW;
			t->gap_ns = 0;
			t->sets = 16;
			t->shared = 16;
			assert_int_equal(
			    pacer_window_profile(&t->window, PACER_COST_PACKETS, 1, 1000, 10, 0),
			    PACER_WINDOW_OK);
			t->units = t->window.units;
			t->idle_ns = pacer_later(t->window.ring_ns, t->window.slot_ns + 1);
		}
		udp(START, PACER_PASS, COUNTER, PACER_ADMIT);
		udp(START, PACER_DROP, COUNTER, denial);
		t->secret = 1;
		udp(START, PACER_PASS, COUNTER, PACER_ADMIT);
		udp(START, PACER_DROP, COUNTER, denial);
	}
}

/* What is done with a denial: the policy's mode and the rule say. */
static void test_over(void **unused)
{
	(void)unused;
	begin();
	policy.rule[0].plain = 0;
	udp(START, PACER_PASS, COUNTER, PACER_ADMIT);
	policy.flags = PACER_MONITOR;
	udp(START, PACER_PASS, COUNTER, PACER_DENY_GAP);
	policy.flags = 0;
	policy.rule[0].over = PACER_OVER_PASS;
	udp(START, PACER_PASS, COUNTER, PACER_DENY_GAP);
	policy.rule[0].over = PACER_OVER_POOL; /* whose targets are all spent */
	expected[COUNTER].events[PACER_POOL_SPENT]++;
	udp(START, PACER_DROP, COUNTER, PACER_DENY_GAP);
	policy.flags = PACER_MONITOR;
	udp(START, PACER_PASS, COUNTER, PACER_DENY_GAP);
}

static void test_before_limits(void **unused)
{
	uint8_t arp[60];

	(void)unused;
	memcpy(arp, udp4, sizeof(arp));
	arp[13] = 0x06;
	begin();
	goes(arp, sizeof(arp), START, PACER_PASS, 0, PACER_NOT_IP);
	goes(udp4, 30, START, PACER_PASS, 0, PACER_TRUNCATED);
	policy.flags = PACER_UNPARSED_DROP;
	goes(udp4, 30, START, PACER_DROP, 0, PACER_TRUNCATED);
	policy.flags |= PACER_MONITOR;
	goes(udp4, 30, START, PACER_PASS, 0, PACER_TRUNCATED);
	policy.flags = 0;
	policy.rules.word[0] = 0;
	udp(START, PACER_PASS, 0, PACER_NO_RULE);
	policy.rules.word[0] = 1;
	allow_all = 1;
	udp(START, PACER_PASS, 0, PACER_ALLOWED);
}

/* Whom other tools ban: asked where the policy says so, of no frame that is not IP, and after the
 * allow-list.
 */
static void test_tools(void **unused)
{
	uint8_t arp[60];

	(void)unused;
	memcpy(arp, udp4, sizeof(arp));
	arp[13] = 0x06;
	begin();
	tool_bans = 1;
	udp(START, PACER_PASS, COUNTER, PACER_ADMIT);
	policy.flags = PACER_TOOLS;
	udp(START, PACER_DROP, 0, PACER_DENY_BAN);
	goes(arp, sizeof(arp), START, PACER_PASS, 0, PACER_NOT_IP);
	goes(udp4, 30, START, PACER_PASS, 0, PACER_TRUNCATED);
	allow_all = 1;
	udp(START, PACER_PASS, 0, PACER_ALLOWED);
	allow_all = 0;
	policy.flags |= PACER_MONITOR;
	udp(START, PACER_PASS, 0, PACER_DENY_BAN);
	policy.flags = PACER_TOOLS;
	policy.rules.word[0] = 0;
	udp(START, PACER_DROP, 0, PACER_DENY_BAN);
	tool_bans = 0;
	udp(START, PACER_PASS, 0, PACER_NO_RULE);
	policy.rules.word[0] = 1;
	udp(START, PACER_DROP, COUNTER, PACER_DENY_GAP);
}

/* A packet whose rule is not looked for in its frame is judged by the rule that it says itself. */
static void test_more_meanwhile(void **unused)
{
	(void)unused;
	for (int later = 0; later < 2; later++) {
		struct pacer_frame frame = {udp4, udp4 + sizeof(udp4), sizeof(udp4), START};

		begin();
		policy.flags = PACER_TOOLS;
		policy.rules.word[0] = 2; /* the first is for others, and passes them */
		policy.rule[1] = policy.rule[0];
		policy.rule[0] = (struct pacer_rule){.counter = COUNTER, .says = PACER_SAYS_PASS};
		more_meanwhile = later;
		for (int again = 0; again < 2; again++) {
			struct pacer_walk walk = {.state = &state};
			uint32_t outcome;

			policy.dims = 0;
			assert_int_equal(pacer_path(&frame, &walk, &outcome),
					 again ? PACER_DROP : PACER_PASS);
			assert_int_equal(pacer_outcome_rule(outcome), 1);
		}
		assert_int_equal(!!policy.dims, later);
	}
}

/* Tags beyond those that are read: passed to a stack by no policy but one that only looks on. */
static void test_too_deep(void **unused)
{
	uint8_t tagged[12 + 4 * (PACER_PARSE_TAGS + 1) + sizeof(udp4) - 12];
	uint32_t i;

	(void)unused;
	begin();
	memcpy(tagged, udp4, 12);
	for (i = 0; i <= PACER_PARSE_TAGS; i++)
		memcpy(tagged + 12 + 4 * i, "\x81\x00\x00\x64", 4);
	memcpy(tagged + 12 + 4 * i, udp4 + 12, sizeof(udp4) - 12);
	goes(tagged, sizeof(tagged), START, PACER_DROP, 0, PACER_TOO_DEEP);
	policy.flags = PACER_MONITOR;
	goes(tagged, sizeof(tagged), START, PACER_PASS, 0, PACER_TOO_DEEP);
}

/* Headers that go on beyond the frame's beginning: told as an event, by the long way. */
static void test_part(void **unused)
{
	uint8_t frag[sizeof(udp4)];

	(void)unused;
	begin();
	memcpy(frag, udp4, sizeof(frag));
	frag[17] = 22;	 /* the datagram ends within the ports ... */
	frag[20] = 0x20; /* ... and goes on in a fragment */
	expected[COUNTER].events[PACER_READ_IN_PART]++;
	goes(frag, sizeof(frag), START, PACER_PASS, COUNTER, PACER_ADMIT);
}

/* No counters, no sampler: the way is the same. */
static void test_bare(void **unused)
{
	struct pacer_state bare = {.table = {lines, LINES}, .policy = &policy, .secret = secret};
	struct pacer_frame frame = {udp4, udp4 + sizeof(udp4), sizeof(udp4), START};
	struct pacer_walk walk = {.state = &bare};
	uint32_t outcome;

	(void)unused;
	begin();
	policy.sampling = (struct pacer_sampling){.id = 1, .window = 10, .reasons = ~0u, .k = 1};
	assert_int_equal(pacer_path(&frame, &walk, &outcome), PACER_PASS);
	assert_int_equal(pacer_path(&frame, &walk, &outcome), PACER_DROP);
	policy.rule[0].plain = 0;
	assert_int_equal(pacer_path(&frame, &walk, &outcome), PACER_DROP);
	assert_int_equal(pacer_outcome_reason(outcome), PACER_DENY_GAP);
}

/* A window of one packet: each one sampled stands in it. */
static const struct pacer_sample_item *last_sample(void)
{
	return pacer_sampler_item(&sampler, &policy.sampling, sampler.first + sampler.place);
}

static void test_sample(void **unused)
{
	struct pacer_packet pkt = {.key = {0xc0000201}, .family = PACER_FAMILY_4};
	const struct pacer_sample_item *item;

	(void)unused;
	begin();
	policy.sampling = (struct pacer_sampling){
	    .id = 1, .window = 1, .reasons = 1u << PACER_DENY_GAP, .k = 1, .snap = 100};
	udp(START, PACER_PASS, COUNTER, PACER_ADMIT);
	assert_int_equal(sampler.seq, 0);
	udp(START + 7, PACER_DROP, COUNTER, PACER_DENY_GAP);
	assert_true(sampler.seq && sampler.seq % 2 == 0);
	item = last_sample();
	assert_int_equal(item->time_ns, START + 7);
	assert_int_equal(item->saddr[0], 0xc0000201);
	assert_int_equal(item->daddr[0], 0xc6336402);
	assert_int_equal(item->sport, 0x1234);
	assert_int_equal(item->dport, 53);
	assert_int_equal(item->len_bytes, sizeof(udp4));
	assert_int_equal(item->family, PACER_FAMILY_4);
	assert_int_equal(item->proto, 17);
	assert_int_equal(item->rule, COUNTER);
	assert_int_equal(item->reason, PACER_DENY_GAP);
	assert_int_equal(item->key,
			 pacer_limiter_hash(&policy.rule[0].limiter[0], &pkt, secret).home);
	assert_memory_equal(heads.at[sampler.first + sampler.place], udp4, sizeof(udp4));
}

/* The beginning of a long packet is kept, too: all that is to be kept of it, and no more. */
static void test_sample_long(void **unused)
{
	static const uint32_t snaps[] = {1, 16, 60, 64, 65, 100, 127, PACER_SNAP_MAX};
	static uint8_t big[400];
	const uint8_t *kept;

	(void)unused;
	for (size_t i = 0; i < sizeof(snaps) / sizeof(*snaps); i++) {
		begin();
		for (size_t k = 0; k < sizeof(big); k++)
			big[k] = (uint8_t)(k + 1);
		memcpy(big, udp4, 42);
		policy.sampling = (struct pacer_sampling){
		    .id = 1, .window = 1, .reasons = 1u << PACER_ADMIT, .k = 1, .snap = snaps[i]};
		goes(big, sizeof(big), START, PACER_PASS, COUNTER, PACER_ADMIT);
		kept = (const uint8_t *)heads.at[sampler.first + sampler.place];
		assert_memory_equal(kept, big, snaps[i]);
	}
}

/* Who is banned is noted with when that ends, as long as a note of the rule is due. */
static void test_note(void **unused)
{
	static struct pacer_log log;
	struct pacer_walk walk = {.state = &state, .now_ns = START};
	__u32 outcome = pacer_outcome_under(PACER_DENY_GAP, 0);

	(void)unused;
	begin();
	policy.rule[0].id = 77;
	policy.rule[0].ban_ns = 500;
	walk.pkt = (struct pacer_packet){.key = {0xc0000201}, .family = PACER_FAMILY_4};
	assert_int_equal(pacer_path_note(&walk, outcome), 0); /* nobody has a log */
	state.log = &log;
	for (int i = 0; i < 3 * (int)PACER_NOTE_BURST; i++)
		assert_int_equal(pacer_path_note(&walk, outcome), 0);
	state.log = NULL;
	assert_int_equal(log.noted, PACER_NOTE_BURST);
	assert_int_equal(log.note[0].rule, 77);
	assert_int_equal(log.note[0].time_ns, START);
	assert_int_equal(log.note[0].until_ns, START + 500);
	assert_int_equal(log.note[0].key[0], 0xc0000201);
}

/*
 * The note's key is as the ban has it: under the limit's masks, and with the value of a set in the
 * place of the address, where both families have one key.
 */
static void test_note_key(void **unused)
{
	static const struct {
		uint32_t family, value, mask6, key_id, words[4]; /* 0, 4, 8 and 9 of IPv6 */
	} rows[] = {
	    {PACER_FAMILY_4, 0, 0, 5, {0x0a010200, 0x0a020000, 0x35, 0x00330011}},
	    {PACER_FAMILY_4, 2, 0, 5, {0xbeef, 0x0a020000, 0x35, 0x00330011}},
	    {PACER_FAMILY_6, 2, 0, 5, {0xbeef, 0, 0x35, 0x00330011}},
	    {PACER_FAMILY_6, 2, ~0u, 5 | PACER_KEY_V6, {0xbeef, 0x0a020304, 0x35, 0x00330011}},
	    {PACER_FAMILY_6, 0, ~0u, 5 | PACER_KEY_V6, {0x0a010203, 0x0a020304, 0x35, 0x00330011}},
	};
	static struct pacer_log log;
	struct pacer_walk walk = {.state = &state, .now_ns = START, .value = {0xcafe, 0xbeef}};
	struct pacer_limiter *t = &policy.rule[0].limiter[1];

	(void)unused;
	begin();
	state.log = &log;
	policy.rule[0].id = 77;
	*t = (struct pacer_limiter){.key_id = 5, .mask4 = {0xffffff00, 0xffff0000}};
	t->mask6[PACER_WORD_PORTS] = 0x0000ffff;
	t->mask6[PACER_WORD_META] = 0x00ff00ff;
	walk.pkt.key[PACER_WORD_SADDR] = 0x0a010203;
	walk.pkt.key[PACER_WORD_DADDR] = 0x0a020304;
	walk.pkt.key[PACER_WORD_PORTS] = 0x04000035;
	walk.pkt.key[PACER_WORD_META] = 0x11332211;
	for (uint32_t i = 0; i < ARRAY(rows); i++) {
		const uint32_t *w = rows[i].words, *key = log.note[i].key;
		bool six = rows[i].key_id & PACER_KEY_V6;

		walk.pkt.family = (uint8_t)rows[i].family;
		t->value[0] = (uint8_t)rows[i].value;
		t->mask6[PACER_WORD_SADDR] = t->mask6[PACER_WORD_DADDR] = rows[i].mask6;
		assert_int_equal(pacer_path_note(&walk, pacer_outcome(PACER_DENY_GAP, 1)), 0);
		assert_int_equal(log.note[i].rule, 77);
		assert_int_equal(log.note[i].key_id, rows[i].key_id);
		assert_int_equal(key[0], w[0]);
		assert_int_equal(key[six ? PACER_WORD_DADDR : 1], w[1]);
		assert_int_equal(key[six ? PACER_WORD_PORTS : 2], w[2]);
		assert_int_equal(key[six ? PACER_WORD_META : 3], w[3]);
		assert_int_equal(key[6], 0);
	}
	state.log = NULL;
}

/* The key is that of the limit which denied. */
static void test_sample_limiter(void **unused)
{
	struct pacer_packet pkt = {.key = {0xc0000201}, .family = PACER_FAMILY_4};
	struct pacer_limiter *t = policy.rule[0].limiter;

	(void)unused;
	begin();
	t[1] = t[0];
	t[0].gap_ns = 10;
	t[0].mask4[0] = 0xffffff00;
	t[0].sets = t[1].sets = t[1].base = LINES / 2;
	policy.rule[0].n_limiters = 2;
	policy.rule[0].plain = 0;
	policy.sampling =
	    (struct pacer_sampling){.id = 1, .window = 1, .reasons = 1u << PACER_DENY_GAP, .k = 1};
	udp(START, PACER_PASS, COUNTER, PACER_ADMIT);
	udp(START + 20, PACER_DROP, COUNTER, PACER_DENY_GAP);
	assert_int_equal(last_sample()->key, pacer_limiter_hash(&t[1], &pkt, secret).home);
}

/* Of a packet under no rule there is no key; and the time of one that is not judged is asked for.
 */
static void test_sample_unjudged(void **unused)
{
	const struct pacer_sample_item *item;

	(void)unused;
	begin();
	allow_all = 1;
	policy.sampling =
	    (struct pacer_sampling){.id = 1, .window = 1, .reasons = 1u << PACER_ALLOWED, .k = 1};
	udp(START + 3, PACER_PASS, 0, PACER_ALLOWED);
	item = last_sample();
	assert_int_equal(item->time_ns, START + 3);
	assert_int_equal(item->reason, PACER_ALLOWED);
	assert_int_equal(item->rule, 0);
	assert_int_equal(item->key, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_limit),	   cmocka_unit_test(test_secret),
	    cmocka_unit_test(test_over),	   cmocka_unit_test(test_before_limits),
	    cmocka_unit_test(test_too_deep),	   cmocka_unit_test(test_tools),
	    cmocka_unit_test(test_part),	   cmocka_unit_test(test_bare),
	    cmocka_unit_test(test_sample),	   cmocka_unit_test(test_sample_unjudged),
	    cmocka_unit_test(test_sample_limiter), cmocka_unit_test(test_sample_long),
	    cmocka_unit_test(test_note),	   cmocka_unit_test(test_note_key),
	    cmocka_unit_test(test_more_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
