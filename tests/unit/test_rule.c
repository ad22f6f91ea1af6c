/* SPDX-License-Identifier: GPL-2.0-only */
/* The whole judgement of a packet: rules, limits and their keys, all charged or none. */
#include <sys/mman.h>

#include "oracle.h"

#include "parsed.h"

#define START  1000000ull
#define WINDOW 1000ull
#define LINES  4096u

/* A policy of one rule that matches everything, unless the test says more. */
static struct pacer_policy policy;
static struct pacer_line lines[LINES] __attribute__((aligned(4096)));
static struct pacer_line before[LINES];
static __u64 secret[2 * PACER_SECRETS]; /* two */
static struct pacer_throttle_state throttle[PACER_THROTTLES], throttle_before[PACER_THROTTLES];
static struct pacer_throttle_lease lease[2][PACER_THROTTLES]; /* of two CPUs */
static struct pacer_state state = {.table = {lines, LINES},
				   .policy = &policy,
				   .secret = secret,
				   .throttle = throttle,
				   .lease = lease[0]};
static uint32_t lines_used;

static void begin(void)
{
	uint32_t i;

	oracle_seed(31);
	memset(&policy, 0, sizeof(policy));
	memset(lines, 0, sizeof(lines));
	for (i = 0; i < PACER_SECRETS; i++) {
		secret[i] = draw();
		secret[PACER_SECRETS + i] = secret[i] * 0x9e3779b97f4a7c15ull + i;
	}
	policy.rules.word[0] = 1;
	lines_used = 0;
	memset(throttle, 0, sizeof(throttle));
	memset(lease, 0, sizeof(lease));
	state.lease = lease[0];
}

/* ---- keys ---- */

enum { FLOW, SRC, SRC24, SRC_DPORT, DST, ALL };

static const struct {
	uint32_t mask4[4], mask6[PACER_KEY_WORDS];
} keys[] = {
    [FLOW] = {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u}},
    [SRC] = {{~0u, 0, 0, 0}, {~0u, ~0u, ~0u, ~0u}},
    [SRC24] = {{0xffffff00, 0, 0, 0}, {~0u, 0xffffff00}},
    [SRC_DPORT] = {{~0u, 0, 0xffff, ~0u}, {~0u, ~0u, ~0u, ~0u, 0, 0, 0, 0, 0xffff, ~0u}},
    [DST] = {{0, ~0u, 0, 0}, {0, 0, 0, 0, ~0u, ~0u, ~0u, ~0u}},
    [ALL] = {{0}, {0}},
};

/* Add a limit of records (limit) or a sketch (limit 0) to the rule. */
static struct pacer_limiter *limiter(uint32_t rule, int key, uint32_t limit, uint64_t gap_ns)
{
	struct pacer_rule *r = &policy.rule[rule];
	struct pacer_limiter *t = &r->limiter[r->n_limiters++];

	*t = (struct pacer_limiter){.kind = limit ? PACER_LIMITER_WINDOW : PACER_LIMITER_GAP,
				    .rows = 2,
				    .base = lines_used,
				    .sets = 128,
				    .shared = limit ? 32 : 0,
				    .key_id = key != ALL,
				    .gap_ns = gap_ns,
				    .units = PACER_LINE_UNITS};
	memcpy(t->mask4, keys[key].mask4, sizeof(t->mask4));
	memcpy(t->mask6, keys[key].mask6, sizeof(t->mask6));
	lines_used += limit ? 2 * t->sets + t->shared : t->sets;
	assert_true(lines_used <= LINES);
	if (!limit)
		return t;
	assert_int_equal(pacer_window_profile(&t->window, PACER_COST_PACKETS, limit, WINDOW, 10, 0),
			 PACER_WINDOW_OK);
	t->units = t->window.units;
	t->idle_ns = pacer_later(t->window.ring_ns, t->window.slot_ns + 1 + gap_ns);
	return t;
}

static struct pacer_packet packet4(uint32_t saddr, uint32_t daddr, uint16_t sport, uint16_t dport)
{
	return (struct pacer_packet){.key = {[PACER_WORD_SADDR] = saddr,
					     [PACER_WORD_DADDR] = daddr,
					     [PACER_WORD_PORTS] = (uint32_t)sport << 16 | dport,
					     [PACER_WORD_META] = 17},
				     .len_bytes = 100,
				     .vlan = PACER_VLAN_NONE,
				     .family = PACER_FAMILY_4,
				     .proto = 17};
}

static struct pacer_packet packet6(uint32_t site, uint32_t host, uint32_t dst, uint16_t dport)
{
	return (struct pacer_packet){
	    .key = {0x20010db8, site, 0, host, 0x20010db8, 0, 0, dst, 40000u << 16 | dport, 17},
	    .len_bytes = 100,
	    .vlan = PACER_VLAN_NONE,
	    .family = PACER_FAMILY_6,
	    .proto = 17};
}

static uint32_t judge(const struct pacer_packet *pkt, uint64_t now_ns)
{
	struct pacer_walk walk = {.state = &state, .pkt = *pkt, .now_ns = now_ns};

	return judge_parsed(&walk);
}

static enum pacer_reason reason_of(const struct pacer_packet *pkt, uint64_t now_ns)
{
	return pacer_outcome_reason(judge(pkt, now_ns));
}

static void judged(const struct pacer_packet *pkt, uint64_t now_ns, enum pacer_reason reason,
		   uint32_t rule, uint32_t limiter_index)
{
	uint32_t outcome = judge(pkt, now_ns);

	assert_int_equal(pacer_outcome_reason(outcome), reason);
	assert_int_equal(pacer_outcome_rule(outcome), rule);
	assert_int_equal(pacer_outcome_limiter(outcome), limiter_index);
}

/* Are a and b one key? With a limit of 1, the second tells. */
static void same_key(int key, const struct pacer_packet *a, const struct pacer_packet *b, int same)
{
	begin();
	limiter(0, key, 1, 0);
	assert_int_equal(reason_of(a, START), PACER_ADMIT);
	assert_int_equal(reason_of(b, START), same ? PACER_DENY_WINDOW : PACER_ADMIT);
	begin();
	limiter(0, key, 0, 100);
	assert_int_equal(reason_of(a, START), PACER_ADMIT);
	assert_int_equal(reason_of(b, START), same ? PACER_DENY_GAP : PACER_ADMIT);
}

/* Columns: flow, src, src/24 (or /56), src+dport, dst, all. */
static void test_keys4(void **unused)
{
	struct pacer_packet base = packet4(0xc0000201, 0xc6336401, 1000, 53), tcp = base;
	const struct {
		struct pacer_packet pkt;
		int same[6];
	} rows[] = {
	    {packet4(0xc0000201, 0xc6336401, 1000, 53), {1, 1, 1, 1, 1, 1}},
	    {packet4(0xc0000202, 0xc6336401, 1000, 53), {0, 0, 1, 0, 1, 1}},
	    {packet4(0xc0000301, 0xc6336401, 1000, 53), {0, 0, 0, 0, 1, 1}},
	    {packet4(0xc0000201, 0xc6336402, 1000, 53), {0, 1, 1, 1, 0, 1}},
	    {packet4(0xc0000201, 0xc6336401, 1001, 53), {0, 1, 1, 1, 1, 1}},
	    {packet4(0xc0000201, 0xc6336401, 1000, 54), {0, 1, 1, 0, 1, 1}},
	};
	size_t i, k;

	(void)unused;
	for (i = 0; i < ARRAY(rows); i++)
		for (k = FLOW; k <= ALL; k++)
			same_key(k, &base, &rows[i].pkt, rows[i].same[k]);
	tcp.key[PACER_WORD_META] = tcp.proto = 6;
	same_key(FLOW, &base, &tcp, 0);
	same_key(SRC, &base, &tcp, 1);
}

static void test_keys6(void **unused)
{
	struct pacer_packet base = packet6(0x11, 1, 9, 53);
	const struct {
		struct pacer_packet pkt;
		int same[6];
	} rows[] = {
	    {packet6(0x11, 1, 9, 53), {1, 1, 1, 1, 1, 1}},
	    {packet6(0x11, 2, 9, 53), {0, 0, 1, 0, 1, 1}},
	    {packet6(0x12, 1, 9, 53), {0, 0, 1, 0, 1, 1}}, /* /56: the last 8 bits are not in */
	    {packet6(0x111, 1, 9, 53), {0, 0, 0, 0, 1, 1}},
	    {packet6(0x11, 1, 8, 53), {0, 1, 1, 1, 0, 1}},
	    {packet6(0x11, 1, 9, 54), {0, 1, 1, 0, 1, 1}},
	};
	size_t i, k;

	(void)unused;
	for (i = 0; i < ARRAY(rows); i++)
		for (k = FLOW; k <= ALL; k++)
			same_key(k, &base, &rows[i].pkt, rows[i].same[k]);
}

/* Later fragments: one key a datagram, which no port pair shares. */
static void test_fragments(void **unused)
{
	struct pacer_packet whole = packet4(1, 2, 0x1234, 0x5678), a = whole, b, c;

	(void)unused;
	a.fragment = PACER_FRAG_LATER;
	a.key[PACER_WORD_META] |= PACER_META_FRAGMENT;
	b = c = a;
	c.key[PACER_WORD_PORTS] = 0x12345679;
	same_key(FLOW, &a, &b, 1);
	same_key(FLOW, &a, &c, 0);
	same_key(FLOW, &a, &whole, 0);
	same_key(SRC_DPORT, &a, &whole, 0);
	same_key(SRC, &a, &whole, 1);
	same_key(SRC, &a, &c, 1);
	same_key(DST, &c, &whole, 1);
}

/* ---- rules ---- */

/* Values below `bound` match the rules of `under`, those from it on `over`. */
static void split(struct pacer_dim *d, uint32_t bound, uint64_t under, uint64_t over)
{
	uint32_t i;

	*d = (struct pacer_dim){0};
	for (i = 0; i <= PACER_BOUNDS_MAX; i++) {
		d->bound[i] = i ? 0xffffffff : bound;
		d->mask[i].word[0] = i ? over : under;
	}
}

static void test_no_rule(void **unused)
{
	struct pacer_packet pkt = packet4(1, 2, 3, 53);

	(void)unused;
	begin();
	limiter(0, ALL, 1, 0);
	policy.rules.word[0] = 0;
	judged(&pkt, START, PACER_NO_RULE, PACER_RULES_MAX, 0);
	judged(&pkt, START, PACER_NO_RULE, PACER_RULES_MAX, 0);
	policy.rules.word[0] = 1;
	policy.dims = 1u << PACER_DIM_DPORT;
	split(&policy.dim[PACER_DIM_DPORT], 54, 0, ~0ull);
	pacer_classify_index(&policy);
	judged(&pkt, START, PACER_NO_RULE, PACER_RULES_MAX, 0);
	memset(before, 0, sizeof(before));
	assert_memory_equal(lines, before, sizeof(lines));
	pkt.key[PACER_WORD_PORTS]++;
	judged(&pkt, START, PACER_ADMIT, 0, 0);
	judged(&pkt, START, PACER_DENY_WINDOW, 0, 0);
	policy.rules.word[0] = 0;
	pkt.family = PACER_FAMILY_NONE;
	judged(&pkt, START, PACER_NOT_IP, PACER_RULES_MAX, 0);
}

/* The first rule that matches counts, and no other. */
static void test_first_rule(void **unused)
{
	struct pacer_packet dns = packet4(1, 2, 3, 53), web = packet4(1, 2, 3, 80);

	(void)unused;
	begin();
	policy.rules.word[0] = 1ull << 3 | 1ull << 63;
	policy.dims = 1u << PACER_DIM_DPORT;
	split(&policy.dim[PACER_DIM_DPORT], 54, ~0ull, ~0ull << 4);
	pacer_classify_index(&policy);
	limiter(3, ALL, 1, 0);
	limiter(63, ALL, 2, 0);
	judged(&dns, START, PACER_ADMIT, 3, 0);
	judged(&dns, START, PACER_DENY_WINDOW, 3, 0);
	judged(&web, START, PACER_ADMIT, 63, 0);
	judged(&web, START, PACER_ADMIT, 63, 0);
	judged(&web, START, PACER_DENY_WINDOW, 63, 0);
}

static void test_no_limiters(void **unused)
{
	struct pacer_packet pkt = packet4(1, 2, 3, 53);

	(void)unused;
	begin();
	judged(&pkt, START, PACER_ADMIT, 0, 0);
	limiter(0, ALL, 1, 0)->kind = PACER_LIMITER_NONE;
	judged(&pkt, START, PACER_ADMIT, 0, 0);
	judged(&pkt, START, PACER_ADMIT, 0, 0);
}

/* When a packet is let in again by a rule that has a verdict: now, or never. */
static void test_when_by_a_verdict(void **unused)
{
	struct pacer_walk walk = {.state = &state, .pkt = packet4(1, 2, 3, 53), .now_ns = START};

	(void)unused;
	begin();
	policy.rule[0].says = PACER_SAYS_PASS;
	assert_int_equal(pacer_rule_when(&walk), START);
	policy.rule[0].says = PACER_SAYS_DENY;
	assert_int_equal(pacer_rule_when(&walk), PACER_NEVER);
}

/* ---- limits ---- */

static void test_limiters(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000002, 2, 3, 53);
	struct pacer_packet c = packet4(0x0b000001, 2, 3, 53);

	(void)unused;
	begin();
	limiter(0, SRC, 0, 100);
	limiter(0, SRC24, 3, 0);
	limiter(0, ALL, 4, 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	judged(&a, START + 99, PACER_DENY_GAP, 0, 0);
	judged(&b, START + 99, PACER_ADMIT, 0, 0);
	judged(&a, START + 100, PACER_ADMIT, 0, 0);
	judged(&b, START + 199, PACER_DENY_WINDOW, 0, 1);
	judged(&c, START + 199, PACER_ADMIT, 0, 0);
	judged(&c, START + 299, PACER_DENY_WINDOW, 0, 2);
	judged(&b, START + 1099, PACER_DENY_WINDOW, 0, 1);
	judged(&b, START + 1100, PACER_ADMIT, 0, 0);
}

/* The packet is denied, and not a byte of any state is another than before. */
static void denied_uncharged(const struct pacer_packet *pkt, uint64_t now_ns,
			     enum pacer_reason reason, uint32_t limiter_index)
{
	memcpy(before, lines, sizeof(lines));
	judged(pkt, now_ns, reason, 0, limiter_index);
	assert_memory_equal(before, lines, sizeof(lines));
}

static void test_uncharged(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000002, 2, 3, 53);
	int i;

	(void)unused;
	begin();
	limiter(0, SRC, 5, 0);
	limiter(0, DST, 0, 10);
	limiter(0, ALL, 4, 0);
	for (i = 0; i < 4; i++)
		judged(&a, START + 10 * i, PACER_ADMIT, 0, 0);
	for (i = 0; i < 9; i++)
		denied_uncharged(&a, START + 31 + i, PACER_DENY_GAP, 1);
	for (i = 0; i < 100; i++) {
		denied_uncharged(&a, START + 41 + i, PACER_DENY_WINDOW, 2);
		denied_uncharged(&b, START + 41 + i, PACER_DENY_WINDOW, 2);
	}
	/* the source has 1 of its 5 left, and used none of it on what was denied */
	policy.rule[0].limiter[2].window.limit = 100;
	judged(&a, START + 200, PACER_ADMIT, 0, 0);
	denied_uncharged(&a, START + 300, PACER_DENY_WINDOW, 0);
}

/* The last line that this limiter of the first rule, or one after it, has used. */
static struct pacer_line *last_used(uint32_t limiter_from)
{
	struct pacer_line *used = NULL;

	for (uint32_t i = policy.rule[0].limiter[limiter_from].base; i < LINES; i++)
		if (lines[i].lock)
			used = &lines[i];
	assert_non_null(used);
	return used;
}

/* A later limit is contended: those before it are locked by then, and are given back as they were.
 */
static void test_uncharged_contended(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53);
	struct pacer_line *all;

	(void)unused;
	begin();
	limiter(0, SRC, 5, 0);
	limiter(0, FLOW, 0, 10);
	limiter(0, SRC24, 5, 10);
	limiter(0, ALL, 5, 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	all = last_used(3);
	all->lock |= PACER_LOCK_HELD;
	denied_uncharged(&a, START + 50, PACER_DENY_CONTENDED, 3);
	all->lock &= ~PACER_LOCK_HELD;
	judged(&a, START + 50, PACER_ADMIT, 0, 0);
}

/* The same where the packet is the first of its key: what it took is as good as never used. */
static void test_uncharged_first(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000002, 2, 3, 53);
	struct pacer_line *all;
	uint32_t i;

	(void)unused;
	begin();
	limiter(0, SRC, 1, 10);
	limiter(0, ALL, 5, 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	all = last_used(1);
	all->lock |= PACER_LOCK_HELD;
	judged(&b, START + 50, PACER_DENY_CONTENDED, 0, 1);
	all->lock &= ~PACER_LOCK_HELD;
	for (i = 0; i < LINES; i++)
		assert_false(lines[i].lock & PACER_LOCK_HELD);
	judged(&b, START + 50, PACER_ADMIT, 0, 0);
	judged(&b, START + 60, PACER_DENY_WINDOW, 0, 0);
}

static void test_missing_table(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53);

	(void)unused;
	begin();
	limiter(0, SRC, 5, 0);
	limiter(0, ALL, 5, 0)->base = LINES;
	denied_uncharged(&a, START, PACER_DENY_NO_STATE, 1);
	policy.rule[0].limiter[0].base = LINES;
	denied_uncharged(&a, START, PACER_DENY_NO_STATE, 0);
}

/* A draining limit is asked and charged until its time is up, and not from then on. */
static void test_until(void **unused)
{
	struct pacer_packet a = packet4(1, 2, 3, 53);

	(void)unused;
	begin();
	limiter(0, SRC, 2, 0)->until_ns = START + 500;
	limiter(0, ALL, 5, 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	judged(&a, START + 498, PACER_ADMIT, 0, 0);
	denied_uncharged(&a, START + 499, PACER_DENY_WINDOW, 0);
	memcpy(before, lines, sizeof(lines));
	judged(&a, START + 500, PACER_ADMIT, 0, 0);
	assert_memory_equal(before, lines, policy.rule[0].limiter[1].base * sizeof(*lines));
	judged(&a, START + 501, PACER_ADMIT, 0, 0);
	judged(&a, START + 502, PACER_ADMIT, 0, 0);
	denied_uncharged(&a, START + 503, PACER_DENY_WINDOW, 1);
}

/* A gap for all is one for IPv4 and IPv6 together, whatever the secret makes of their keys. */
static void test_gap_for_all(void **unused)
{
	struct pacer_packet four = packet4(1, 2, 3, 53), six = packet6(1, 2, 9, 53);
	uint64_t seed;

	(void)unused;
	for (seed = 0; seed < 100; seed++) {
		begin();
		oracle_seed(seed);
		for (uint32_t i = 0; i < PACER_SECRETS; i++)
			secret[i] = draw();
		limiter(0, ALL, 0, 100)->rows = 1;
		policy.rule[0].limiter[0].sets = 1;
		judged(&four, START, PACER_ADMIT, 0, 0);
		judged(&six, START + 99, PACER_DENY_GAP, 0, 0);
		judged(&six, START + 100, PACER_ADMIT, 0, 0);
		judged(&four, START + 199, PACER_DENY_GAP, 0, 0);
	}
}

static void test_bytes(void **unused)
{
	struct pacer_packet a = packet4(1, 2, 3, 53);
	struct pacer_limiter *t;

	(void)unused;
	begin();
	t = limiter(0, SRC, 1, 0);
	assert_int_equal(pacer_window_profile(&t->window, PACER_COST_BYTES, 3000, WINDOW, 10, 0),
			 PACER_WINDOW_OK);
	t->units = t->window.units;
	a.len_bytes = 1500;
	judged(&a, START, PACER_ADMIT, 0, 0);
	a.len_bytes = 1501;
	judged(&a, START, PACER_DENY_WINDOW, 0, 0);
	a.len_bytes = 1500;
	judged(&a, START, PACER_ADMIT, 0, 0);
	a.len_bytes = 1;
	judged(&a, START + WINDOW, PACER_DENY_WINDOW, 0, 0);
}

/* As many limits as there may be: each of them can deny, and is the one that is named. */
static void test_eight_limiters(void **unused)
{
	struct pacer_packet a = packet4(1, 2, 3, 53);
	uint32_t i, low;

	(void)unused;
	for (low = 0; low < PACER_LIMITERS_MAX; low++) {
		begin();
		for (i = 0; i < PACER_LIMITERS_MAX; i++)
			limiter(0, i % (ALL + 1), i == low ? 1 : 2, 0);
		judged(&a, START, PACER_ADMIT, 0, 0);
		denied_uncharged(&a, START + 1, PACER_DENY_WINDOW, low);
	}
}

/* A packet over a limit is denied by reading alone, whichever limit it is: memory that nobody may
 * write to does as well.
 */
static void test_denied_reads_only(void **unused)
{
	struct pacer_packet a = packet4(1, 2, 3, 53);
	uint32_t i, low, flags;

	(void)unused;
	for (flags = 0; flags <= PACER_MONITOR; flags++)
		for (low = 0; low < PACER_LIMITERS_MAX; low++) {
			begin();
			policy.flags = flags;
			for (i = 0; i < PACER_LIMITERS_MAX; i++)
				limiter(0, i % (ALL + 1), i == low ? 1 : 2, 0);
			judged(&a, START, PACER_ADMIT, 0, 0);
			assert_int_equal(mprotect(lines, sizeof(lines), PROT_READ), 0);
			judged(&a, START + 1, PACER_DENY_WINDOW, 0, low);
			assert_int_equal(mprotect(lines, sizeof(lines), PROT_READ | PROT_WRITE), 0);
		}
}

/* Monitor mode, and what is done with packets over the limit, change no judgement. */
static void test_monitor(void **unused)
{
	static struct pacer_line enforced[LINES];
	enum pacer_reason reason[500];
	uint32_t i, round, denied = 0;

	(void)unused;
	for (round = 0; round < 2; round++) {
		begin();
		limiter(0, SRC, 10, 5);
		limiter(0, ALL, 20, 0);
		policy.flags = round ? PACER_MONITOR | PACER_UNPARSED_DROP : 0;
		policy.rule[0].over = round ? PACER_OVER_PASS : PACER_OVER_DROP;
		for (i = 0; i < ARRAY(reason); i++) {
			struct pacer_packet p = packet4(draw() % 8, 2, 3, 53);
			enum pacer_reason now = reason_of(&p, START + 9 * i);

			assert_true(!round || now == reason[i]);
			reason[i] = now;
			denied += now != PACER_ADMIT;
		}
		assert_true(!round || !memcmp(enforced, lines, sizeof(lines)));
		memcpy(enforced, lines, sizeof(lines));
	}
	assert_true(denied > 100);
}

/* ---- throttles ---- */

#define COOLDOWN 1000ull

/* A limit that is a throttle: of `limit` uses, in buckets of as many, for two CPUs. */
static void throttle_limiter(uint32_t rule, uint32_t index, uint32_t limit, uint32_t lease_n)
{
	struct pacer_throttle_params params = {limit,	 limit,	       2,  lease_n,
					       COOLDOWN, 2 * COOLDOWN, 50, 0};
	struct pacer_rule *r = &policy.rule[rule];
	struct pacer_limiter *t = &r->limiter[r->n_limiters++];

	t->kind = PACER_LIMITER_THROTTLE;
	t->base = index;
	assert_int_equal(pacer_throttle_configure(&t->throttle, &params), PACER_THROTTLE_OK);
}

/* Uses that are in buckets and not on lease. */
static uint32_t used(uint32_t index)
{
	return throttle[index].held - lease[0][index].left - lease[1][index].left;
}

/* A rule whose only limit, and one whose first limits, are throttles. */
static void test_throttle(void **unused)
{
	struct pacer_packet a = packet4(1, 2, 3, 53), b = packet6(1, 2, 3, 53);
	uint32_t i;

	(void)unused;
	begin();
	throttle_limiter(0, 3, 5, 1);
	for (i = 0; i < 5; i++)
		judged(i & 1 ? &b : &a, START + i, PACER_ADMIT, 0, 0);
	memcpy(throttle_before, throttle, sizeof(throttle));
	judged(&a, START + 5, PACER_DENY_THROTTLE, 0, 0);
	judged(&b, START + COOLDOWN + 3, PACER_DENY_THROTTLE, 0, 0);
	assert_memory_equal(throttle, throttle_before, sizeof(throttle));
	judged(&b, START + COOLDOWN + 4, PACER_ADMIT, 0, 0);
	begin();
	throttle_limiter(0, 0, 3, 1);
	throttle_limiter(0, PACER_THROTTLES - 1, 2, 1);
	judged(&a, START, PACER_ADMIT, 0, 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	judged(&a, START + 1, PACER_DENY_THROTTLE, 0, 1);
	assert_int_equal(used(0), 2);
	assert_int_equal(used(PACER_THROTTLES - 1), 2);
}

/* Two CPUs, a lease each: what one has on lease is used by it alone. */
static void test_throttle_leases(void **unused)
{
	struct pacer_packet a = packet4(1, 2, 3, 53);

	(void)unused;
	begin();
	throttle_limiter(0, 0, 4, 3);
	judged(&a, START, PACER_ADMIT, 0, 0);
	state.lease = lease[1];
	judged(&a, START + 1, PACER_ADMIT, 0, 0);
	judged(&a, START + 2, PACER_DENY_THROTTLE, 0, 0);
	state.lease = lease[0];
	judged(&a, START + 3, PACER_ADMIT, 0, 0);
	judged(&a, START + 4, PACER_ADMIT, 0, 0);
	judged(&a, START + 5, PACER_DENY_THROTTLE, 0, 0);
	assert_int_equal(used(0), 4);
}

/* The second throttle denies when the window is locked and the first has made its use, which is
 * given back, with a lease and without.
 */
static void test_throttle_undone(void **unused)
{
	struct pacer_packet a = packet4(1, 2, 3, 53);
	uint32_t lease_n, i;

	(void)unused;
	for (lease_n = 1; lease_n <= 3; lease_n++) {
		begin();
		limiter(0, SRC, 8, 0);
		throttle_limiter(0, 0, 6, lease_n);
		throttle_limiter(0, 1, 6, 1);
		for (i = 0; i < 5; i++) {
			judged(&a, START + i, PACER_ADMIT, 0, 0);
			throttle[1].lock |= PACER_LOCK_HELD;
			denied_uncharged(&a, START + i, PACER_DENY_CONTENDED, 2);
			denied_uncharged(&a, START + i, PACER_DENY_CONTENDED, 2);
			throttle[1].lock &= ~PACER_LOCK_HELD;
			assert_int_equal(used(0), i + 1);
			assert_int_equal(used(1), i + 1);
		}
		judged(&a, START + 5, PACER_ADMIT, 0, 0);
		denied_uncharged(&a, START + 6, PACER_DENY_THROTTLE, 1);
	}
}

/* A window denies: no throttle is charged. A throttle denies: nor is the window. */
static void test_throttle_uncharged(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000002, 2, 3, 53);
	uint32_t i;

	(void)unused;
	begin();
	limiter(0, SRC, 2, 0);
	throttle_limiter(0, 0, 3, 2);
	judged(&a, START, PACER_ADMIT, 0, 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	memcpy(throttle_before, throttle, sizeof(throttle));
	for (i = 0; i < 10; i++)
		denied_uncharged(&a, START + 1, PACER_DENY_WINDOW, 0);
	assert_memory_equal(throttle, throttle_before, sizeof(throttle));
	judged(&b, START + 1, PACER_ADMIT, 0, 0);
	memcpy(throttle_before, throttle, sizeof(throttle));
	for (i = 0; i < 10; i++)
		denied_uncharged(&b, START + 2, PACER_DENY_THROTTLE, 1);
	assert_memory_equal(throttle, throttle_before, sizeof(throttle));
}

static void test_throttle_until_and_missing(void **unused)
{
	struct pacer_packet a = packet4(1, 2, 3, 53);

	(void)unused;
	begin();
	throttle_limiter(0, 0, 1, 1);
	policy.rule[0].limiter[0].until_ns = START + 20;
	judged(&a, START, PACER_ADMIT, 0, 0);
	judged(&a, START + 19, PACER_DENY_THROTTLE, 0, 0);
	judged(&a, START + 20, PACER_ADMIT, 0, 0);
	assert_int_equal(throttle[0].held, 1);
	begin();
	throttle_limiter(0, 0, 1, 1);
	memset(&policy.rule[0].limiter[0].throttle, 0, sizeof(struct pacer_throttle_profile));
	judged(&a, START, PACER_DENY_THROTTLE, 0, 0);
}

/* ---- bans ---- */

#define TTL 5000ull

/* The rule bans, in a table of so many sets; its limits' keys are told apart. */
static void bans(uint32_t rule, uint32_t sets)
{
	static const uint32_t key_id[] = {
	    [FLOW] =
		PACER_KEY_ID(PACER_KEY_SPORT | PACER_KEY_DPORT | PACER_KEY_PROTO, 32, 63, 32, 63),
	    [SRC] = PACER_KEY_ID(0, 32, 63, 0, 0),
	    [SRC24] = PACER_KEY_ID(0, 24, 56, 0, 0),
	    [SRC_DPORT] = PACER_KEY_ID(PACER_KEY_DPORT | PACER_KEY_PROTO, 32, 63, 0, 0),
	    [DST] = PACER_KEY_ID(0, 0, 0, 32, 63),
	    [ALL] = 0,
	};
	struct pacer_rule *r = &policy.rule[rule];
	uint32_t i, k;

	r->ban_ns = TTL;
	r->id = 100 + rule;
	for (i = 0; i < r->n_limiters; i++)
		for (k = 0; k < ARRAY(keys); k++)
			if (!memcmp(r->limiter[i].mask4, keys[k].mask4, sizeof(keys[k].mask4)))
				r->limiter[i].key_id = key_id[k];
	policy.bans = (struct pacer_bans){.base = lines_used,
					  .sets = sets,
					  .filter = lines_used + sets * PACER_BAN_WAYS,
					  .filter_mask = 15};
	assert_true(policy.bans.filter + 16 <= LINES);
}

static void fares(const struct pacer_packet *pkt, uint64_t now_ns, enum pacer_reason reason,
		  uint32_t limiter_index, enum pacer_event event)
{
	uint32_t outcome = judge(pkt, now_ns);

	assert_int_equal(pacer_outcome_reason(outcome), reason);
	assert_int_equal(pacer_outcome_limiter(outcome), limiter_index);
	assert_int_equal(pacer_outcome_event(outcome), event);
}

#define NOTHING PACER_EVENT_COUNT

/* The first denial bans, until the time is up and not a moment longer; nobody but its key. */
static void test_ban(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000002, 2, 3, 53);
	uint64_t t;

	(void)unused;
	begin();
	limiter(0, SRC, 0, 100);
	bans(0, 8);
	fares(&a, START, PACER_ADMIT, 0, NOTHING);
	fares(&a, START + 99, PACER_DENY_GAP, 0, PACER_BANNED);
	for (t = START + 99; t < START + 99 + TTL; t += 49) {
		memcpy(before, lines, sizeof(lines));
		fares(&a, t, PACER_DENY_BAN, 0, NOTHING);
		assert_memory_equal(before, lines, sizeof(lines));
	}
	fares(&a, START + 98 + TTL, PACER_DENY_BAN, 0, NOTHING);
	fares(&b, START + 98 + TTL, PACER_ADMIT, 0, NOTHING);
	fares(&a, START + 99 + TTL, PACER_ADMIT, 0, NOTHING);
	fares(&a, START + 100 + TTL, PACER_DENY_GAP, 0, PACER_BANNED);
}

/* Who is denied on account of all is not banned for it. */
static void test_ban_not_by_all(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53);

	(void)unused;
	begin();
	limiter(0, SRC, 5, 0);
	limiter(0, ALL, 1, 0);
	throttle_limiter(0, 0, 1, 1);
	bans(0, 8);
	fares(&a, START, PACER_ADMIT, 0, NOTHING);
	fares(&a, START + 1, PACER_DENY_WINDOW, 1, NOTHING);
	policy.rule[0].limiter[1].window.limit = 9;
	fares(&a, START + 2, PACER_DENY_THROTTLE, 2, NOTHING);
	fares(&a, START + COOLDOWN, PACER_ADMIT, 0, NOTHING);
}

static struct pacer_line *locked_line(uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = from; i < to; i++)
		if (lines[i].lock)
			return &lines[i];
	fail();
	return NULL;
}

/* Nor for want of a lock, or of state. */
static void test_ban_not_by_failure(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53);
	struct pacer_line *line;

	(void)unused;
	begin();
	limiter(0, SRC, 5, 0);
	limiter(0, SRC24, 5, 0);
	bans(0, 8);
	fares(&a, START, PACER_ADMIT, 0, NOTHING);
	line = locked_line(policy.rule[0].limiter[1].base, policy.bans.base);
	line->lock |= PACER_LOCK_HELD;
	fares(&a, START + 1, PACER_DENY_CONTENDED, 1, NOTHING);
	line->lock &= ~PACER_LOCK_HELD;
	fares(&a, START + 2, PACER_ADMIT, 0, NOTHING);
	policy.rule[0].limiter[1].base = LINES;
	fares(&a, START + 3, PACER_DENY_NO_STATE, 1, NOTHING);
	policy.rule[0].n_limiters = 1;
	fares(&a, START + 4, PACER_ADMIT, 0, NOTHING);
}

/* The key of the limit that denied is banned: a host, or the whole of its network. */
static void test_ban_of_the_limiter(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000002, 2, 3, 53);
	struct pacer_packet c = packet4(0x0a000101, 2, 3, 53);

	(void)unused;
	begin();
	limiter(0, SRC, 0, 100);
	limiter(0, SRC24, 3, 0);
	bans(0, 8);
	fares(&a, START, PACER_ADMIT, 0, NOTHING);
	fares(&a, START + 1, PACER_DENY_GAP, 0, PACER_BANNED);
	fares(&b, START + 2, PACER_ADMIT, 0, NOTHING);
	fares(&b, START + 102, PACER_ADMIT, 0, NOTHING);
	fares(&b, START + 202, PACER_DENY_WINDOW, 1, PACER_BANNED);
	fares(&b, START + 203, PACER_DENY_BAN, 1, NOTHING);
	fares(&a, START + 204, PACER_DENY_BAN, 0, NOTHING); /* by the first that holds */
	fares(&c, START + 205, PACER_ADMIT, 0, NOTHING);
	fares(&a, START + 1 + TTL, PACER_DENY_BAN, 1, NOTHING);
	fares(&b, START + 202 + TTL, PACER_ADMIT, 0, NOTHING);
}

/* A ban is of a rule, a kind of key, and a family: the words alone are not enough. */
static void test_ban_of_the_rule_and_family(void **unused)
{
	struct pacer_packet dns = packet4(0x0a000000, 2, 3, 53),
			    web = packet4(0x0a000000, 2, 3, 80);
	struct pacer_packet six = {.key = {0x0a000000},
				   .len_bytes = 100,
				   .vlan = PACER_VLAN_NONE,
				   .family = PACER_FAMILY_6,
				   .proto = 17};

	(void)unused;
	begin();
	memset(secret, 0, sizeof(secret)); /* all in one set and in the same cells */
	policy.rules.word[0] = 3;
	policy.dims = 1u << PACER_DIM_DPORT;
	split(&policy.dim[PACER_DIM_DPORT], 54, 1, 2);
	pacer_classify_index(&policy);
	limiter(0, SRC, 0, 100);
	limiter(1, SRC, 0, 100);
	bans(0, 1);
	bans(1, 1);
	fares(&dns, START, PACER_ADMIT, 0, NOTHING);
	fares(&dns, START + 1, PACER_DENY_GAP, 0, PACER_BANNED);
	fares(&dns, START + 2, PACER_DENY_BAN, 0, NOTHING);
	fares(&web, START + 3, PACER_ADMIT, 0, NOTHING);
	fares(&six, START + 200, PACER_ADMIT, 0, NOTHING);
	fares(&six, START + 201, PACER_DENY_GAP, 0, PACER_BANNED);
	policy.rule[0].limiter[0].key_id = PACER_KEY_ID(0, 24, 56, 0, 0); /* 10.0.0.0/24 */
	fares(&dns, START + 400, PACER_ADMIT, 0, NOTHING);
}

/* A set that is full: told, and nobody is banned who was not, nor forgotten who was. */
static void test_ban_full(void **unused)
{
	uint32_t i;

	(void)unused;
	begin();
	limiter(0, SRC, 1, 0);
	bans(0, 1);
	for (i = 0; i < 8; i++) {
		struct pacer_packet p = packet4(0x0a000001 + i, 2, 3, 53);

		fares(&p, START, PACER_ADMIT, 0, NOTHING);
		fares(&p, START + 1, PACER_DENY_WINDOW, 0,
		      i < PACER_BAN_WAYS ? PACER_BANNED : PACER_BANS_FULL);
	}
	for (i = 0; i < 8; i++) {
		struct pacer_packet p = packet4(0x0a000001 + i, 2, 3, 53);

		fares(&p, START + TTL, i < PACER_BAN_WAYS ? PACER_DENY_BAN : PACER_ADMIT, 0,
		      NOTHING);
	}
	policy.bans.sets = 0; /* no table: nobody is */
	for (i = 0; i < 2; i++) {
		struct pacer_packet p = packet4(0x0a000001, 2, 3, 53);

		fares(&p, START + TTL, i ? PACER_DENY_WINDOW : PACER_ADMIT, 0,
		      i ? PACER_BANS_FULL : NOTHING);
	}
}

/* While bans are moved, one that stands under either secret holds; a new one is the policy's. */
static void test_ban_moving(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000002, 2, 3, 53);

	(void)unused;
	begin();
	limiter(0, SRC, 1, 0);
	bans(0, 8);
	fares(&a, START, PACER_ADMIT, 0, NOTHING);
	fares(&a, START, PACER_DENY_WINDOW, 0, PACER_BANNED);
	policy.secret = 1;
	policy.bans.moving = 1;
	fares(&a, START + 1, PACER_DENY_BAN, 0, NOTHING);
	fares(&b, START + 1, PACER_ADMIT, 0, NOTHING);
	fares(&b, START + 1, PACER_DENY_WINDOW, 0, PACER_BANNED);
	policy.bans.moving = 0;
	fares(&b, START + 2, PACER_DENY_BAN, 0, NOTHING);
	fares(&a, START + 2, PACER_DENY_WINDOW, 0, PACER_BANNED);
}

/* Bans that grow, under a secret that is not the first: their row and their end are found by it. */
static void test_ban_grows_by_the_policys_secret(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53);
	struct pacer_walk w = {.state = &state, .pkt = a};
	uint64_t now_ns = START;

	(void)unused;
	begin();
	limiter(0, SRC, 1, 0);
	bans(0, 8);
	policy.secret = 1;
	policy.rule[0].ban_grow = 2;
	policy.rule[0].ban_max_ns = 100 * TTL;
	policy.rule[0].ban_forget_ns = 10 * WINDOW;
	for (uint64_t length_ns = TTL; length_ns <= 4 * TTL; length_ns *= 2) {
		fares(&a, now_ns, PACER_ADMIT, 0, NOTHING);
		fares(&a, now_ns, PACER_DENY_WINDOW, 0, PACER_BANNED);
		fares(&a, now_ns + length_ns - 1, PACER_DENY_BAN, 0, NOTHING);
		w.now_ns = now_ns;
		assert_int_equal(pacer_walk_key_until(&w, 0), now_ns + length_ns);
		now_ns += length_ns + 2 * WINDOW;
	}
}

/* A limit's keys are hashed with the secret that it names, alone and among others. */
static void test_secret_of_the_limiter(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53);
	uint32_t limiters;

	(void)unused;
	for (limiters = 1; limiters <= 2; limiters++) {
		begin();
		limiter(0, SRC, 1, 0);
		if (limiters == 2)
			limiter(0, ALL, 100, 0);
		judged(&a, START, PACER_ADMIT, 0, 0);
		judged(&a, START, PACER_DENY_WINDOW, 0, 0);
		policy.rule[0].limiter[0].secret = 1;
		judged(&a, START, PACER_ADMIT, 0, 0);
		judged(&a, START, PACER_DENY_WINDOW, 0, 0);
	}
}

/* Long runs of sources that are banned now and then: exactly who was, exactly as long. */
static void test_ban_runs(void **unused)
{
	uint64_t until[64], now;
	uint32_t round, i, s, banned = 0;

	(void)unused;
	for (round = 0; round < 20; round++) {
		begin();
		oracle_seed(90 + round);
		limiter(0, SRC, between(1, 5), 0);
		bans(0, 32);
		memset(until, 0, sizeof(until));
		for (i = 0, now = START; i < 5000; i++) {
			struct pacer_packet p = packet4(s = draw() % ARRAY(until), 2, 3, 53);
			uint32_t outcome;

			now += draw() % 40;
			outcome = judge(&p, now);
			assert_int_equal(pacer_outcome_reason(outcome) == PACER_DENY_BAN,
					 now < until[s]);
			assert_int_equal(pacer_outcome_event(outcome) != NOTHING,
					 pacer_outcome_reason(outcome) == PACER_DENY_WINDOW);
			banned += pacer_outcome_event(outcome) == PACER_BANNED;
			if (pacer_outcome_event(outcome) == PACER_BANNED)
				until[s] = now + TTL;
		}
	}
	assert_true(banned > 1000);
}

/* ---- rates beside other limits ---- */

/* A limit of 128 sets of a rate of one in 100 ns, with this burst. */
static struct pacer_limiter *rate_limiter(int key, uint32_t burst)
{
	struct pacer_limiter *t = limiter(0, key, 0, 0);

	t->kind = PACER_LIMITER_RATE;
	t->units = 1;
	t->idle_ns = 1;
	lines_used -= t->sets;
	t->sets = key == ALL ? 0 : t->sets; /* as the loader has it: one for all */
	t->shared = key == ALL ? 1 : 32;
	lines_used += (2 * t->sets + t->shared + 3) / 4;
	assert_int_equal(pacer_rate_profile(&t->rate, PACER_COST_PACKETS, 1, 100, burst, 0),
			 PACER_RATE_OK);
	return t;
}

/* Whoever denies, nobody is charged: not the rate by the window, nor the window by the rate. */
static void test_rate_uncharged(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000002, 2, 3, 53);
	uint32_t i;

	(void)unused;
	begin();
	rate_limiter(SRC, 2);
	limiter(0, ALL, 3, 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	for (i = 0; i < 5; i++)
		denied_uncharged(&a, START + 99, PACER_DENY_RATE, 0);
	judged(&b, START + 99, PACER_ADMIT, 0, 0);
	for (i = 0; i < 5; i++)
		denied_uncharged(&b, START + 99, PACER_DENY_WINDOW, 1);
	policy.rule[0].limiter[1].window.limit = 9;
	judged(&b, START + 99, PACER_ADMIT, 0, 0); /* its second: the denials were none of it */
	judged(&b, START + 99, PACER_DENY_RATE, 0, 0);
	judged(&a, START + 100, PACER_ADMIT, 0, 0);
}

/* IPv4 and IPv6 are apart in a key of addresses, and together in the key of all. */
static void test_rate_families(void **unused)
{
	struct pacer_packet four = packet4(0x20010db8, 2, 3, 53), six = packet6(0, 0, 0, 53);

	(void)unused;
	begin();
	rate_limiter(SRC, 1);
	judged(&four, START, PACER_ADMIT, 0, 0);
	judged(&six, START, PACER_ADMIT, 0, 0);
	judged(&four, START, PACER_DENY_RATE, 0, 0);
	judged(&six, START, PACER_DENY_RATE, 0, 0);
	begin();
	rate_limiter(ALL, 1);
	judged(&four, START, PACER_ADMIT, 0, 0);
	judged(&six, START, PACER_DENY_RATE, 0, 0);
	judged(&six, START + 100, PACER_ADMIT, 0, 0);
	judged(&four, START + 199, PACER_DENY_RATE, 0, 0);
}

/* A denial by the key's own rate bans it; one by the rate of all does not. */
static void test_rate_bans(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000002, 2, 3, 53);

	(void)unused;
	begin();
	rate_limiter(SRC, 1);
	rate_limiter(ALL, 2);
	bans(0, 8);
	fares(&a, START, PACER_ADMIT, 0, NOTHING);
	fares(&a, START + 1, PACER_DENY_RATE, 0, PACER_BANNED);
	fares(&a, START + TTL, PACER_DENY_BAN, 0, NOTHING);
	fares(&b, START + TTL, PACER_ADMIT, 0, NOTHING);
	fares(&a, START + 1 + TTL, PACER_ADMIT, 0, NOTHING);
	b.key[PACER_WORD_SADDR]++;
	fares(&b, START + 1 + TTL, PACER_DENY_RATE, 1, NOTHING);
}

/* ---- long runs: every limit keeps its promise to every key, and no denial is charged ----
 *
 * The tables have room for all, so that a denial is a key's own.
 */

#define SOURCES 24

struct tally {
	struct oracle_deque closed[SOURCES + 1], wide[SOURCES + 1];
};

static struct oracle_deque *of(struct oracle_deque *d, uint32_t key, uint64_t interval)
{
	d[key].interval = interval;
	return &d[key];
}

/* The limits' own keys of source s: itself, its eighth, everyone. */
static uint32_t key_in(uint32_t limiter_index, uint32_t s)
{
	return limiter_index == 0 ? s : limiter_index == 1 ? s / 8 : SOURCES;
}

static void run_packet(struct tally *tally, uint32_t s, uint64_t now)
{
	struct pacer_packet p = packet4(0x0a000000 + (s / 8 << 8) + s, 2, 3, 53);
	uint32_t outcome = judge(&p, now);
	uint32_t i;

	for (i = 0; i < 3; i++) {
		const struct pacer_window *w = &policy.rule[0].limiter[i].window;
		struct oracle_deque *closed = of(tally[i].closed, key_in(i, s), WINDOW);
		struct oracle_deque *wide = of(tally[i].wide, key_in(i, s), w->ring_ns - 1);

		if (pacer_outcome_reason(outcome) == PACER_ADMIT) {
			assert_true(deque_add(closed, now, 1) <= w->limit);
			deque_add(wide, now, 1);
		} else if (i == pacer_outcome_limiter(outcome)) {
			assert_int_equal(pacer_outcome_reason(outcome), PACER_DENY_WINDOW);
			assert_true(deque_total(wide, now) >= w->limit);
		}
	}
}

static void test_runs(void **unused)
{
	static struct tally tally[3];
	uint32_t round, i, k;
	uint64_t now;

	(void)unused;
	for (round = 0; round < 30; round++) {
		begin();
		oracle_seed(round);
		limiter(0, SRC, between(1, 10), 0);
		limiter(0, SRC24, between(5, 40), 0);
		limiter(0, ALL, between(10, 100), 0);
		for (i = 0, now = START; i < 3000; i++) {
			now += draw() % 200 ? draw() % 30 : draw() % (3 * WINDOW);
			run_packet(tally, draw() % (draw() & 1 ? 4 : SOURCES), now);
		}
		for (i = 0; i < 3; i++)
			for (k = 0; k <= SOURCES; k++) {
				deque_free(&tally[i].closed[k]);
				deque_free(&tally[i].wide[k]);
			}
	}
}

/* ---- a limit that is prolonged, or cut short, beside a packet ---- */

/* That before one of the steps a packet takes. */
struct meanwhile {
	uint32_t step; /* 0: before the first */
	uint64_t until_ns;
};

static void next_step(uint32_t *step, const struct meanwhile *m)
{
	if ((*step)++ == m->step)
		policy.rule[0].limiter[1].until_ns = m->until_ns;
}

/* Steps 0 to 5: as pacer_limit_many of three limits. */
static enum pacer_reason in_steps(const struct pacer_walk *w, const struct meanwhile *m)
{
	struct pacer_holds *holds = &state.scratch.holds;
	uint32_t held, step = 0, said;

	next_step(&step, m);
	pacer_limit_request(w, holds);
	next_step(&step, m);
	said = pacer_limit_ask(w, holds);
	for (held = 0; said == PACER_ADMIT; held++) {
		next_step(&step, m);
		if (held == 3)
			break;
		said = (uint32_t)pacer_walk_lock(w, &policy.rule[0], held, held == 2, holds);
		if (said != PACER_ADMIT)
			break;
	}
	pacer_limit_end(w, holds, held, said == PACER_ADMIT);
	return said;
}

/* The second is of that kind. The last one's entries are locked, if that is to deny at last. */
static void three_limits(enum pacer_limiter_kind kind, uint64_t until_ns, bool denies)
{
	const struct pacer_limiter *last;
	uint32_t i;

	begin();
	limiter(0, SRC, 9, 0);
	if (kind == PACER_LIMITER_THROTTLE)
		throttle_limiter(0, 3, 9, 1);
	else if (kind == PACER_LIMITER_RATE)
		rate_limiter(SRC, 9);
	else
		limiter(0, SRC, kind == PACER_LIMITER_GAP ? 0 : 9, 100);
	policy.rule[0].limiter[1].until_ns = until_ns;
	last = limiter(0, SRC, 9, 0);
	for (i = 0; denies && i < 2 * last->sets + last->shared; i++)
		lines[last->base + i].lock |= PACER_LOCK_HELD;
}

/* It is asked of the packet at each step, or at none: as it was when that was found out. */
static void test_prolonged_meanwhile(void **unused)
{
	static const enum pacer_limiter_kind kinds[] = {PACER_LIMITER_GAP, PACER_LIMITER_WINDOW,
							PACER_LIMITER_RATE, PACER_LIMITER_THROTTLE};
	static const uint64_t until_ns[] = {START, START + 1};
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53);
	struct pacer_walk walk = {.state = &state, .pkt = a, .now_ns = START};

	(void)unused;
	for (uint32_t run = 0; run < 4 * 2 * 2 * 6; run++) {
		bool longer = run & 1, denies = run & 2;
		enum pacer_limiter_kind kind = kinds[run / 4 % 4];
		struct meanwhile m = {run / 16, until_ns[longer]};
		enum pacer_reason is;

		three_limits(kind, until_ns[longer == (m.step < 2)], denies);
		is = in_steps(&walk, &(struct meanwhile){99, 0});
		assert_int_equal(is, denies ? PACER_DENY_CONTENDED : PACER_ADMIT);
		memcpy(before, lines, sizeof(lines));
		memcpy(throttle_before, throttle, sizeof(throttle));
		three_limits(kind, until_ns[!longer], denies);
		assert_int_equal(in_steps(&walk, &m), is);
		assert_memory_equal(lines, before, sizeof(lines));
		assert_memory_equal(throttle, throttle_before, sizeof(throttle));
	}
}

/* ---- bans from outside ---- */

static void ban_key(const struct pacer_ban_key *key, uint32_t which, uint64_t until_ns)
{
	struct pacer_ban_ask q = {&state.table, &policy.bans, START, {0, 0}, *key, 1};

	q.hash = pacer_ban_hash(key, secret + which * PACER_SECRETS);
	assert_int_equal(pacer_ban_add(&q, until_ns), PACER_BANNED);
}

/*
 * Between asking all limits and locking the first, its lock word may come to be the same again:
 * after 512 changes. What is judged and counted then is what the entry holds by now.
 */
static void locked_after_512_changes(uint32_t limit, int last, enum pacer_reason reason)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53);
	struct pacer_walk walk = {.state = &state, .pkt = a, .now_ns = START};
	const struct pacer_limiter *t = &policy.rule[0].limiter[0];
	struct pacer_holds holds = {0};
	struct pacer_found found = {0};
	struct pacer_ask q;
	uint32_t i;

	begin();
	limiter(0, SRC, limit, 0);
	limiter(0, DST, 100000, 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	pacer_limit_request(&walk, &holds);
	assert_int_equal(pacer_limit_ask(&walk, &holds), PACER_ADMIT);
	assert_int_equal(holds.quick, 3);
	for (i = 0; i < 512; i++)
		judged(&a, START, PACER_ADMIT, 0, 0);
	q = pacer_walk_ask(&walk, t, pacer_walk_hash(&walk, t, 0));
	pacer_record_locate(&q, &found);
	assert_int_equal(found.word, holds.at[0].word);
	assert_int_equal(pacer_quick_lock(&walk, t, &holds.at[0], &holds.seen[0], last), reason);
	assert_int_equal(found.ring.head->lock & PACER_LOCK_HELD,
			 !last && reason == PACER_ADMIT ? PACER_LOCK_HELD : 0);
	if (!last && reason == PACER_ADMIT)
		pacer_quick_commit(&walk, t, &holds.at[0], &holds.seen[0]);
	for (i = 0; i < limit - 513 - (reason == PACER_ADMIT); i++)
		judged(&a, START, PACER_ADMIT, 0, 0);
	judged(&a, START, PACER_DENY_WINDOW, 0, 0);
}

static void test_locked_after_512_changes(void **unused)
{
	(void)unused;
	locked_after_512_changes(513, 0, PACER_DENY_WINDOW);
	locked_after_512_changes(513, 1, PACER_DENY_WINDOW);
	locked_after_512_changes(520, 0, PACER_ADMIT);
	locked_after_512_changes(520, 1, PACER_ADMIT);
}

/*
 * Another CPU counts a packet of the same keys, after this one found that all limits would admit
 * it: each limit is looked for and judged anew, and both packets count.
 */
static void test_another_packet_meanwhile(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53);
	struct pacer_walk walk = {.state = &state, .pkt = a, .now_ns = START};

	(void)unused;
	for (uint32_t rates = 0; rates < 2; rates++)
		for (uint32_t together = 0; together < 2; together++) {
			struct pacer_holds holds = {0};
			uint32_t i;

			begin();
			for (i = 0; i < 2; i++)
				if (rates)
					rate_limiter(i ? DST : SRC, 9);
				else
					limiter(0, i ? DST : SRC, 9, 0);
			judged(&a, START, PACER_ADMIT, 0, 0);
			if (together) {
				pacer_limit_request(&walk, &holds);
				assert_int_equal(pacer_limit_ask(&walk, &holds), PACER_ADMIT);
				assert_int_equal(holds.quick, 3);
			}
			judged(&a, START, PACER_ADMIT, 0, 0);
			for (i = 0; i < 2 && together; i++)
				assert_int_equal(
				    pacer_walk_lock(&walk, &policy.rule[0], i, i == 1, &holds),
				    PACER_ADMIT);
			if (together)
				pacer_limit_end(&walk, &holds, 2, 1);
			else
				judged(&a, START, PACER_ADMIT, 0, 0);
			if (together)
				assert_memory_equal(lines, before, sizeof(lines));
			else
				memcpy(before, lines, sizeof(lines));
		}
}

/* Another source whose key is looked for in the same place, from this address on. */
static struct pacer_packet beside(const struct pacer_limiter *t, const struct pacer_packet *of,
				  uint32_t saddr)
{
	struct pacer_walk walk = {.state = &state, .pkt = *of};
	uint32_t at = pacer_set_index(t, pacer_walk_hash(&walk, t, t->secret));

	for (;; saddr++) {
		walk.pkt.key[PACER_WORD_SADDR] = saddr;
		if (pacer_set_index(t, pacer_walk_hash(&walk, t, t->secret)) == at)
			return walk.pkt;
	}
}

/* Its entry may be another key's by then: it is looked for from its own place on. */
static void test_another_key_meanwhile(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b, c;
	struct pacer_walk walk = {.state = &state, .pkt = a, .now_ns = START};

	(void)unused;
	for (uint32_t together = 0; together < 2; together++) {
		struct pacer_holds holds = {0};
		const struct pacer_limiter *t;

		begin();
		t = limiter(0, SRC, 9, 0);
		b = beside(t, &a, 0x0b000000);
		c = beside(t, &a, b.key[PACER_WORD_SADDR] + 1);
		judged(&b, START, PACER_ADMIT, 0, 0);
		if (together) {
			uint32_t first;

			judged(&a, START, PACER_ADMIT, 0, 0);
			pacer_limit_request(&walk, &holds);
			first = holds.at[0].index;
			assert_int_equal(pacer_limit_ask(&walk, &holds), PACER_ADMIT);
			assert_int_equal(holds.at[0].index, first + t->units);
			memset(pacer_entry_at(&state.table, first + t->units), 0,
			       t->units * sizeof(union pacer_unit));
		}
		judged(&c, START, PACER_ADMIT, 0, 0);
		if (together) {
			assert_int_equal(pacer_walk_lock(&walk, &policy.rule[0], 0, 1, &holds),
					 PACER_ADMIT);
			pacer_limit_end(&walk, &holds, 1, 1);
			assert_memory_equal(lines, before, sizeof(lines));
		} else {
			judged(&a, START, PACER_ADMIT, 0, 0);
			memcpy(before, lines, sizeof(lines));
		}
	}
}

/* A key of which all bits are 0 is not taken for the word of an entry that nobody uses. */
static void test_a_hash_of_nothing(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53);
	const struct pacer_limiter *t;

	(void)unused;
	begin();
	memset(secret, 0, sizeof(secret));
	t = limiter(0, SRC, 2, 0);
	limiter(0, DST, 9, 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	assert_int_not_equal(pacer_lock_tag(lines[t->base].lock), 0);
	judged(&a, START, PACER_ADMIT, 0, 0);
	judged(&a, START, PACER_DENY_WINDOW, 0, 0);
}

/* A source is: under each rule and under none, by so many bits of its address, and its family. */
static void test_banned_sources(void **unused)
{
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000002, 2, 3, 53);
	struct pacer_packet c = packet4(0x0b000001, 2, 3, 53);
	struct pacer_packet d = packet6(1, 7, 2, 53), e = packet6(1, 8, 2, 53),
			    f = packet6(2, 7, 2, 53);
	struct pacer_packet like_a = packet6(0, 0, 0, 53);
	struct pacer_ban_key key;

	(void)unused;
	begin();
	limiter(0, SRC, 9, 0);
	bans(0, 8);
	policy.rule[0].ban_ns = 0;
	policy.flags |= PACER_SOURCES_BANNED;
	fares(&a, START, PACER_ADMIT, 0, NOTHING); /* there were some, and none runs */
	policy.flags &= ~PACER_SOURCES_BANNED;
	key = pacer_ban_source(PACER_FAMILY_4, a.key, 32);
	ban_key(&key, 0, START + 100);
	fares(&a, START, PACER_ADMIT, 0, NOTHING); /* nothing says that there are any */
	policy.flags |= PACER_SOURCES_BANNED;
	fares(&a, START, PACER_ADMIT, 0, NOTHING);
	policy.bans.len4[2] = 32;
	fares(&a, START + 99, PACER_DENY_BAN, 0, NOTHING);
	assert_int_equal(pacer_outcome_rule(judge(&a, START + 99)), PACER_RULES_MAX);
	fares(&b, START + 99, PACER_ADMIT, 0, NOTHING);
	fares(&a, START + 100, PACER_ADMIT, 0, NOTHING);

	key = pacer_ban_source(PACER_FAMILY_4, b.key, 30);
	ban_key(&key, 0, PACER_NEVER);
	policy.bans.len4[0] = 30;
	fares(&a, START + 101, PACER_DENY_BAN, 0, NOTHING);
	fares(&b, START + 101, PACER_DENY_BAN, 0, NOTHING);
	fares(&c, START + 101, PACER_ADMIT, 0, NOTHING);
	key = pacer_ban_source(PACER_FAMILY_4, c.key, 30);
	assert_true(pacer_ban_raise(&(struct pacer_ban_ask){&state.table, &policy.bans, START,
							    pacer_ban_hash(&key, secret), key, 1},
				    PACER_NEVER));
	fares(&c, START + 101, PACER_ADMIT, 0, NOTHING); /* the filter says maybe: it is not */

	key = pacer_ban_source(PACER_FAMILY_6, d.key, 64);
	/* Else a list of bans would show another prefix, or one of IPv4. */
	assert_int_equal(key.key_id, PACER_KEY_ID(0, 0, 64, 0, 0) | PACER_KEY_V6);
	ban_key(&key, 0, PACER_NEVER);
	fares(&d, START + 101, PACER_ADMIT, 0, NOTHING);
	policy.bans.len6[3] = 64;
	fares(&d, START + 102, PACER_DENY_BAN, 0, NOTHING);
	fares(&e, START + 102, PACER_DENY_BAN, 0, NOTHING);
	fares(&f, START + 102, PACER_ADMIT, 0, NOTHING);
	memset(like_a.key, 0, sizeof(like_a.key));
	like_a.key[0] = a.key[0];
	policy.bans.len6[0] = 30;
	fares(&like_a, START + 102, PACER_ADMIT, 0, NOTHING);

	policy.rules.word[0] = 0;
	fares(&d, START + 103, PACER_DENY_BAN, 0, NOTHING);
	fares(&f, START + 103, PACER_NO_RULE, 0, NOTHING);
}

/* A key, under a rule that bans nobody; and by the other secret, while bans are being moved. */
static void test_banned_keys(void **unused)
{
	static __u64 two[2 * PACER_SECRETS];
	struct pacer_packet a = packet4(0x0a000001, 2, 3, 53), b = packet4(0x0a000001, 2, 4, 53);
	struct pacer_walk walk = {.state = &state, .pkt = a, .now_ns = START};
	struct pacer_ban_key key;

	(void)unused;
	begin();
	limiter(0, SRC, 9, 0);
	limiter(0, FLOW, 9, 0);
	bans(0, 8);
	policy.rule[0].ban_ns = 0;
	key = pacer_walk_ban_ask(&walk, &policy.rule[0].limiter[1], 0).key;
	ban_key(&key, 0, START + 100);
	fares(&a, START, PACER_ADMIT, 0, NOTHING);
	policy.rule[0].outside = 1;
	fares(&a, START + 99, PACER_DENY_BAN, 1, NOTHING);
	fares(&b, START + 99, PACER_ADMIT, 0, NOTHING);
	assert_int_equal(pacer_rule_when(&walk), START + 100);
	fares(&a, START + 100, PACER_ADMIT, 0, NOTHING);
	for (uint32_t i = 0; i < 2 * PACER_SECRETS; i++)
		two[i] = i < PACER_SECRETS ? secret[i] : draw();
	state.secret = two;
	ban_key(&key, 0, START + 300);
	policy.secret = 1;
	fares(&a, START + 200, PACER_ADMIT, 0, NOTHING);
	assert_int_equal(pacer_rule_when(&walk), 0);
	policy.bans.moving = 1;
	fares(&a, START + 200, PACER_DENY_BAN, 1, NOTHING);
	assert_int_equal(pacer_rule_when(&walk), START + 300);
	policy.bans.sets = 0; /* no table: no ban, and no end of one */
	assert_int_equal(pacer_rule_when(&walk), 0);
	policy.bans.sets = 8;
	key = pacer_ban_source(PACER_FAMILY_4, b.key, 32);
	ban_key(&key, 0, START + 400);
	policy.flags |= PACER_SOURCES_BANNED;
	policy.bans.len4[0] = 32;
	fares(&b, START + 399, PACER_DENY_BAN, 0, NOTHING);
	fares(&b, START + 400, PACER_ADMIT, 0, NOTHING);
	state.secret = secret;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_keys4),
	    cmocka_unit_test(test_keys6),
	    cmocka_unit_test(test_fragments),
	    cmocka_unit_test(test_no_rule),
	    cmocka_unit_test(test_first_rule),
	    cmocka_unit_test(test_no_limiters),
	    cmocka_unit_test(test_when_by_a_verdict),
	    cmocka_unit_test(test_limiters),
	    cmocka_unit_test(test_uncharged),
	    cmocka_unit_test(test_uncharged_contended),
	    cmocka_unit_test(test_uncharged_first),
	    cmocka_unit_test(test_missing_table),
	    cmocka_unit_test(test_until),
	    cmocka_unit_test(test_gap_for_all),
	    cmocka_unit_test(test_bytes),
	    cmocka_unit_test(test_eight_limiters),
	    cmocka_unit_test(test_denied_reads_only),
	    cmocka_unit_test(test_monitor),
	    cmocka_unit_test(test_runs),
	    cmocka_unit_test(test_throttle),
	    cmocka_unit_test(test_throttle_leases),
	    cmocka_unit_test(test_throttle_undone),
	    cmocka_unit_test(test_throttle_uncharged),
	    cmocka_unit_test(test_throttle_until_and_missing),
	    cmocka_unit_test(test_rate_uncharged),
	    cmocka_unit_test(test_rate_families),
	    cmocka_unit_test(test_rate_bans),
	    cmocka_unit_test(test_ban),
	    cmocka_unit_test(test_ban_not_by_all),
	    cmocka_unit_test(test_ban_not_by_failure),
	    cmocka_unit_test(test_ban_of_the_limiter),
	    cmocka_unit_test(test_ban_of_the_rule_and_family),
	    cmocka_unit_test(test_ban_full),
	    cmocka_unit_test(test_ban_runs),
	    cmocka_unit_test(test_ban_moving),
	    cmocka_unit_test(test_secret_of_the_limiter),
	    cmocka_unit_test(test_ban_grows_by_the_policys_secret),
	    cmocka_unit_test(test_locked_after_512_changes),
	    cmocka_unit_test(test_prolonged_meanwhile),
	    cmocka_unit_test(test_another_packet_meanwhile),
	    cmocka_unit_test(test_another_key_meanwhile),
	    cmocka_unit_test(test_a_hash_of_nothing),
	    cmocka_unit_test(test_banned_sources),
	    cmocka_unit_test(test_banned_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
