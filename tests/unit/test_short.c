/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The short way beside the way for all: packets of few sources in small tables, at times that also
 * run backwards, under limits of every kind that has a short way, with bans and while the limit is
 * changed. Both have the same outcome, count the same, and leave the same table, packet by packet.
 */
#include "oracle.h"

#include "abi.h"

struct pacer_walk;
static int is_allowed(const struct pacer_walk *w);
static enum pacer_event to_pool(const struct pacer_walk *w);

#define PACER_IS_ALLOWED(frame, walk, exact) ((void)(frame), (void)(exact), is_allowed(walk))
#define PACER_TO_POOL(frame, walk)	     ((void)(frame), to_pool(walk))
#include "path.h"
#include "share.h"

#define START	1000000000ull
#define LINES	128u
#define COUNTER 5u
#define BANS	64u /* the first of their lines */
#define RUNS	60
#define PACKETS 4000

/* Ethernet, IPv4, UDP. */
static const uint8_t usual[60] = {
    2,	0,  0, 0, 0,   1, 2, 0, 0,   0,	 0,   2, 0x08, 0x00, 0x45, 0,  0, 46, 0, 0, 0,	  0,
    64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0,	   53, 0, 26, 0, 0, 0xab,
};

static uint8_t udp4[60];

/* One of the two: what it is judged by, and what it has. */
struct side {
	struct pacer_policy policy;
	struct pacer_line lines[LINES];
	struct pacer_counters counters[PACER_COUNTERS_MAX];
	struct pacer_throttle_state throttle;
	struct pacer_throttle_lease lease;
	struct pacer_state state;
	enum pacer_action action; /* of its last packet */
	uint64_t pooled;	  /* packets that its pool was asked for, and which */
};

static struct side armed, plain;
static struct pacer_sampler samplers[2];
static bool denied; /* the last packet, by the short way */
static struct pacer_control control;
static uint32_t seen[PACER_REASON_COUNT], passed; /* by the short way */
static uint32_t acts[PACER_REDIRECT + 1];	  /* with packets that were denied by it */
static struct pacer_share share[PACER_SHARES];	  /* of a fleet's limits */
static struct pacer_lanes lanes[PACER_SHARES];

/* Source 3, where there is a list. */
static int is_allowed(const struct pacer_walk *w)
{
	return control.allowed[0].any && w->pkt.family == PACER_FAMILY_4 &&
	       w->pkt.key[PACER_WORD_SADDR] == 0xc0000203;
}

static enum pacer_event to_pool(const struct pacer_walk *w)
{
	struct side *s = w->state == &armed.state ? &armed : &plain;

	s->pooled = s->pooled * 31 + w->now_ns + w->rule;
	return PACER_REDIRECTED + s->pooled % 3;
}

static void put_policy(const struct pacer_limiter *t, uint64_t ban_ns)
{
	struct pacer_policy *p = &plain.policy;

	memset(p, 0, sizeof(*p));
	p->rules.word[0] = 1;
	p->bans =
	    (struct pacer_bans){.base = BANS, .sets = 4, .filter = BANS + 16, .filter_mask = 7};
	p->rule[0] = (struct pacer_rule){.counter = COUNTER,
					 .n_limiters = 1,
					 .plain = t->kind & PACER_LIMITER_FLEET ? PACER_PLAIN_NOT
						  : ban_ns ? PACER_PLAIN_BANNING
							   : PACER_PLAIN,
					 .id = 77,
					 .ban_ns = ban_ns};
	p->rule[0].limiter[0] = *t;
	armed.policy = *p;
	pacer_short_arm(&armed.policy, &control, 0);
}

static void begin(struct side *s)
{
	memset(s->lines, 0, sizeof(s->lines));
	memset(s->counters, 0, sizeof(s->counters));
	s->state = (struct pacer_state){.table = {s->lines, LINES},
					.policy = &s->policy,
					.secret = control.secret[0],
					.throttle = &s->throttle,
					.lease = &s->lease,
					.sampler = &samplers[s == &plain],
					.share = share,
					.lanes = lanes,
					.counters = s->counters};
	memset(&s->throttle, 0, sizeof(s->throttle));
	memset(&s->lease, 0, sizeof(s->lease));
	memset(s->state.sampler, 0, sizeof(*s->state.sampler));
	pacer_sampler_init(s->state.sampler, 5);
	s->pooled = 0;
}

static uint32_t go(struct side *s, uint32_t len_bytes, uint64_t now_ns)
{
	struct pacer_frame frame = {udp4, udp4 + sizeof(udp4), len_bytes, now_ns};
	struct pacer_walk walk = {.state = &s->state};
	uint32_t outcome;

	s->action = pacer_path(&frame, &walk, &outcome);
	return outcome;
}

/* Would the short way alone decide? It is asked first: then nothing may have changed. */
static void note_short(uint32_t len_bytes, uint64_t now_ns)
{
	static struct side copy;
	struct pacer_frame frame = {udp4, udp4 + sizeof(udp4), len_bytes, now_ns};
	struct pacer_walk walk = {.state = &copy.state};
	uint32_t outcome;

	copy = armed;
	copy.state.table.lines = copy.lines;
	copy.state.policy = &copy.policy;
	copy.state.counters = copy.counters;
	copy.state.throttle = &copy.throttle;
	copy.state.lease = &copy.lease;
	outcome = pacer_path_either(&frame, &walk, &copy.policy, copy.policy.shape);
	denied = pacer_outcome_denied(outcome);
	if (outcome != PACER_UNDECIDED) {
		seen[pacer_outcome_reason(outcome)]++;
		return;
	}
	denied = false;
	passed++;
	assert_false(memcmp(copy.lines, armed.lines, sizeof(copy.lines)));
	assert_false(memcmp(copy.counters, armed.counters, sizeof(copy.counters)));
}

/* Now and then a fragment, another protocol, or a length that is just too small or too large. */
static void vary_frame(uint32_t len_bytes)
{
	static const uint8_t proto[] = {17, 6, 1, 132, 89};
	uint32_t total = draw() % 8   ? 46
			 : draw() % 2 ? 18 + draw() % 8
				      : len_bytes - 18 + draw() % 6;

	udp4[16] = total >> 8;
	udp4[17] = total;
	udp4[20] = draw() % 4 ? 0 : draw() % 2 ? 0x20 : 0x40;
	udp4[21] = draw() % 8 ? 0 : 3;
	udp4[23] = proto[draw() % 2 ? 0 : draw() % ARRAY(proto)];
	udp4[14] = draw() % 16 ? 0x45 : 0x46;
}

/* Of windows that a fleet divides, the other way does not say for how long they stay full. */
static void hush(const struct pacer_limiter *t, struct pacer_line *lines_of)
{
	for (uint32_t i = 0; i < 2 * t->sets + t->shared; i++) {
		uint32_t at = t->base * PACER_LINE_UNITS + i * t->units;

		lines_of[at / PACER_LINE_UNITS].unit[at % PACER_LINE_UNITS].entry.last = 0;
	}
}

static void expect_same_lines(void)
{
	static struct pacer_line a[LINES], b[LINES];

	memcpy(a, armed.lines, sizeof(a));
	memcpy(b, plain.lines, sizeof(b));
	for (uint32_t r = 0; r < 4; r++) {
		const struct pacer_limiter *t = &plain.policy.rule[r].limiter[0];

		if (t->kind == (PACER_LIMITER_WINDOW | PACER_LIMITER_FLEET)) {
			hush(t, a);
			hush(t, b);
		}
	}
	assert_false(memcmp(a, b, sizeof(a)));
}

/* Now and then while bans move to another secret. */
static void send(uint32_t source, uint32_t len_bytes, uint64_t now_ns)
{
	udp4[29] = source;
	armed.policy.bans.moving = plain.policy.bans.moving = !(draw() % 16);
	note_short(len_bytes, now_ns);
	assert_int_equal(go(&armed, len_bytes, now_ns), go(&plain, len_bytes, now_ns));
	assert_int_equal(armed.action, plain.action);
	acts[armed.action] += denied;
	assert_int_equal(armed.pooled, plain.pooled);
	expect_same_lines();
	assert_memory_equal(&armed.throttle, &plain.throttle, sizeof(armed.throttle));
	assert_memory_equal(&armed.lease, &plain.lease, sizeof(armed.lease));
	assert_false(memcmp(armed.counters, plain.counters, sizeof(armed.counters)));
}

/* What there is beside the rules of a policy, and how the loader says it of them. */
static void put_more(void)
{
	struct pacer_policy *p = &plain.policy;

	p->flags |= draw() % 4 ? 0 : PACER_MONITOR;
	control.allowed[0].v4 = draw() % 2;
	p->sampling = (struct pacer_sampling){
	    .id = draw(), .window = 40, .k = 8, .form = draw() % 2, .tick_shift = 16};
	p->sampling.reasons = draw() % 3 ? draw() : 0;
	for (uint32_t i = 0; i < 64 && p->rules.word[0] >> i; i++) {
		p->rule[i].over = draw() % 3;
		if (p->rule[i].over || p->flags & PACER_MONITOR)
			p->rule[i].plain = PACER_PLAIN_NOT;
	}
	armed.policy = *p;
	pacer_short_arm(&armed.policy, &control, 0);
}

/* Of all that was sent. */
static void expect_samples(void)
{
	assert_memory_equal(&samplers[0], &samplers[1], sizeof(samplers[0]));
}

/* --- limits ---------------------------------------------------------------------------------- */

static struct pacer_limiter source_limiter(uint8_t kind, uint32_t units)
{
	return (struct pacer_limiter){.kind = kind,
				      .sets = 3,
				      .shared = 2,
				      .units = units,
				      .src_only = 1,
				      .key_id = PACER_KEY_ID(0, 32, 64, 0, 0),
				      .mask4 = {~0u}};
}

static struct pacer_limiter window(bool wide, uint32_t limit, uint64_t gap_ns)
{
	struct pacer_limiter t = source_limiter(PACER_LIMITER_WINDOW, 0);

	assert_int_equal(
	    pacer_window_profile(&t.window, PACER_COST_PACKETS, limit, 1000000, 1 + draw() % 10, 0),
	    PACER_WINDOW_OK);
	if (wide)
		pacer_window_widen(&t.window);
	t.units = t.window.units;
	t.gap_ns = gap_ns;
	t.last_shift = draw() % 3;
	t.idle_ns = t.window.ring_ns + gap_ns + t.window.slot_ns;
	return t;
}

static struct pacer_limiter rate(enum pacer_cost cost)
{
	struct pacer_limiter t = source_limiter(PACER_LIMITER_RATE, 1);

	assert_int_equal(cost == PACER_COST_PACKETS
			     ? pacer_rate_profile(&t.rate, cost, 7, 1000000, 3, 0)
			     : pacer_rate_profile(&t.rate, cost, 900, 1000000, 400, 0),
			 PACER_RATE_OK);
	t.rate.begin_ns = 1;
	t.idle_ns = t.rate.burst_ns + 1;
	return t;
}

static struct pacer_limiter sketch(uint64_t gap_ns, uint8_t rows)
{
	struct pacer_limiter t = source_limiter(PACER_LIMITER_GAP, PACER_LINE_UNITS);

	t.gap_ns = gap_ns;
	t.rows = rows;
	return t;
}

/* --- limits that a fleet divides ---------------------------------------------------------------
 */

#define PLACE 5 /* of the share of rule 0's limit; of rule i's: i more */
#define ID    0x1234567800000001ull

/* The limit as one of a fleet. */
static struct pacer_limiter divided(struct pacer_limiter t, uint32_t i)
{
	t.kind |= PACER_LIMITER_FLEET;
	t.share = PLACE + i;
	t.share_id = ID + i;
	return t;
}

/* None, a few units or all of them; of a rate the time of a unit, some of them a shorter one than
 * the limit has.
 */
static uint32_t some_value(const struct pacer_limiter *t)
{
	uint32_t parts = draw() % 6;

	if (!parts || t->kind != (PACER_LIMITER_RATE | PACER_LIMITER_FLEET))
		return parts;
	return pacer_share_of_time(t->rate.unit_ns * (1 + draw() % 8) / 3, draw());
}

/* Another share, end, floor or lane; or another limit has the place. */
static void vary_share(const struct pacer_limiter *t, uint64_t now_ns)
{
	struct pacer_share *s = &share[t->share];
	struct pacer_lanes *l = &lanes[t->share];
	uint32_t i = draw() % PACER_LANES;
	uint64_t until_ns = now_ns + draw() % (1ull << 25);

	s->id = draw() % 16 ? t->share_id : 1;
	if (draw() % 2)
		s->word = pacer_share_word(some_value(t), until_ns);
	if (!(draw() % 4))
		s->floor = some_value(t);
	if (draw() % 2)
		return;
	l->used = draw() % 3 ? l->used & ~(1u << i) : 0;
	if (draw() % 4) { /* no two of one key */
		uint32_t source = draw() % 8;

		for (uint32_t k = 0; k < PACER_LANES; k++)
			if ((l->key[0][k] & 0xff) == source)
				l->used &= ~(1u << k);
		l->key[PACER_WORD_SADDR][i] = (0xc0000200 | source) & t->mask4[0];
		l->key[PACER_WORD_DADDR][i] = (0xc6336400 | draw() % 3) & t->mask4[1];
		l->key[PACER_WORD_PORTS][i] = (52 + draw() % 3) & t->mask4[2];
		l->key[PACER_WORD_META][i] = 17 & t->mask4[3];
		l->key[PACER_KEY_WORDS][i] = draw() % 8 ? PACER_FAMILY_4 : PACER_FAMILY_6;
		l->word[i] = pacer_share_word(some_value(t), until_ns);
		l->used |= 1u << i;
	}
}

/* --- runs ------------------------------------------------------------------------------------ */

static uint64_t later(uint64_t now_ns)
{
	if (!(draw() % 50))
		return now_ns - draw() % 300000; /* a CPU whose clock is behind */
	return now_ns + (draw() % 30 ? draw() % 20000 : draw() % 3000000);
}

/* New keys are hashed by the other secret; who is banned stays in his place under the one before.
 */
static void rotate(void)
{
	struct pacer_policy *p = &plain.policy;

	p->secret ^= 1;
	p->rule[0].limiter[0].secret = p->secret;
	armed.policy = *p;
	pacer_short_arm(&armed.policy, &control, 0);
}

static bool rotates; /* now and then */

static void run(const struct pacer_limiter *t, uint64_t ban_ns)
{
	uint64_t now_ns = START;
	uint32_t i;

	put_policy(t, ban_ns);
	begin(&armed);
	begin(&plain);
	for (i = 0; i < PACKETS / RUNS; i++) {
		uint32_t sources = 1 + draw() % 12, len_bytes = 60 + draw() % 3 * 20;

		now_ns = later(now_ns);
		vary_frame(len_bytes);
		if (rotates && !(draw() % 64))
			rotate();
		send(1 + draw() % sources, len_bytes, now_ns);
	}
	memcpy(udp4, usual, sizeof(udp4));
}

static void expect_seen(enum pacer_reason reason)
{
	if (!seen[reason])
		fail_msg("the short way never said %s", pacer_reason_name(reason));
}

static void begin_counting(void)
{
	oracle_seed(19);
	memcpy(udp4, usual, sizeof(udp4));
	for (uint32_t i = 0; i < PACER_SECRETS; i++)
		control.secret[0][i] = (__u64)draw() << 32 | draw();
	memset(seen, 0, sizeof(seen));
	memset(acts, 0, sizeof(acts));
	control.allowed[0].any = 0;
	passed = 0;
}

static void test_windows(void **unused)
{
	(void)unused;
	begin_counting();
	for (int i = 0; i < 4 * RUNS; i++) {
		struct pacer_limiter t =
		    window(i & 1, 1 + draw() % 6, i & 2 ? 1000 + draw() % 90000 : 0);

		run(&t, 0);
	}
	expect_seen(PACER_ADMIT);
	expect_seen(PACER_DENY_WINDOW);
	expect_seen(PACER_DENY_GAP);
	assert_true(passed > 0);
}

static void test_rates(void **unused)
{
	(void)unused;
	begin_counting();
	for (int i = 0; i < 2 * RUNS; i++) {
		struct pacer_limiter t = rate(i & 1 ? PACER_COST_BYTES : PACER_COST_PACKETS);

		run(&t, 0);
	}
	expect_seen(PACER_ADMIT);
	expect_seen(PACER_DENY_RATE);
}

/* Of both rows, and a gap longer than the clock has been running. */
static void test_sketches(void **unused)
{
	(void)unused;
	begin_counting();
	for (int i = 0; i < 2 * RUNS; i++) {
		struct pacer_limiter t =
		    sketch(draw() % 8 ? 1000 + draw() % 90000 : 2 * START, 1 + (i & 1));

		run(&t, 0);
	}
	expect_seen(PACER_ADMIT);
	expect_seen(PACER_DENY_GAP);
}

/* Of the key of all packets, too, a refusal is told by looking alone: whoever has the lock. */
static void test_refused_of_all(void **unused)
{
	struct pacer_limiter t = sketch(1000000, 1);

	(void)unused;
	t.key_id = 0;
	t.mask4[0] = 0;
	t.sets = 1;
	for (uint32_t n = 0; n < 32; n++) {
		for (uint32_t i = 0; i < PACER_SECRETS; i++)
			control.secret[0][i] = (__u64)draw() << 32 | draw();
		put_policy(&t, 0);
		begin(&armed);
		assert_int_equal(pacer_outcome_reason(go(&armed, 60, 5000000)), PACER_ADMIT);
		armed.lines[0].lock |= PACER_LOCK_HELD;
		note_short(60, 5500000);
		assert_true(denied);
		assert_int_equal(pacer_outcome_reason(go(&armed, 60, 5500000)), PACER_DENY_GAP);
		armed.lines[0].lock &= ~PACER_LOCK_HELD;
		assert_int_equal(pacer_outcome_reason(go(&armed, 60, 6000000)), PACER_ADMIT);
	}
}

/* Rules that ban: a refusal is left to the other way, and who is banned is known here. */
static void test_bans(void **unused)
{
	(void)unused;
	begin_counting();
	for (uint32_t i = 0; i < PACER_SECRETS; i++)
		control.secret[1][i] = (__u64)draw() << 32 | draw();
	for (int i = 0; i < 3 * RUNS; i++) {
		struct pacer_limiter t = i % 4 == 3 ? sketch(1000 + draw() % 90000, 2)
					 : i % 4    ? window(i % 4 - 1, 1 + draw() % 6, 0)
						    : rate(PACER_COST_PACKETS);

		rotates = draw() % 2;
		run(&t, 1 + draw() % 400000);
	}
	rotates = false;
	expect_seen(PACER_ADMIT);
	expect_seen(PACER_DENY_BAN);
	assert_int_equal(seen[PACER_DENY_WINDOW] + seen[PACER_DENY_RATE] + seen[PACER_DENY_GAP], 0);
}

/*
 * Windows and rates of a fleet, alone and with bans, an allow-list and samples: by a share that
 * changes, ends and is taken away meanwhile, and by those of keys.
 */
static void test_shares(void **unused)
{
	(void)unused;
	begin_counting();
	for (int i = 0; i < 4 * RUNS; i++) {
		struct pacer_limiter t =
		    divided(i % 3 == 2 ? rate(i & 1 ? PACER_COST_BYTES : PACER_COST_PACKETS)
				       : window(i % 3, 1 + draw() % 6, 0),
			    0);
		uint64_t now_ns = START;

		put_policy(&t, draw() % 3 ? 0 : 1 + draw() % 400000);
		if (i % 4 == 3)
			put_more();
		assert_true(armed.policy.shape & PACER_SHORT_PART);
		begin(&armed);
		begin(&plain);
		memset(lanes, 0, sizeof(lanes));
		for (uint32_t k = 0; k < PACKETS / RUNS; k++) {
			uint32_t len_bytes = 60 + draw() % 3 * 20;

			if (!(draw() % 8))
				vary_share(&t, now_ns);
			armed.state.share = plain.state.share = draw() % 32 ? share : NULL;
			now_ns = later(now_ns);
			vary_frame(len_bytes);
			send(1 + draw() % 6, len_bytes, now_ns);
		}
		expect_samples();
	}
	memcpy(udp4, usual, sizeof(udp4));
	expect_seen(PACER_ADMIT);
	expect_seen(PACER_ALLOWED);
	expect_seen(PACER_DENY_WINDOW);
	expect_seen(PACER_DENY_RATE);
	expect_seen(PACER_DENY_BAN);
	expect_seen(PACER_DENY_SHARE);
	assert_true(acts[PACER_PASS] && acts[PACER_DROP] && acts[PACER_REDIRECT]);
}

/* --- where it decides --------------------------------------------------------------------------
 */

/* Of the source and more, so that a packet has to be found by all of it. */
static struct pacer_limiter of_flows(struct pacer_limiter t)
{
	t.src_only = 0;
	t.mask4[1] = ~0u;
	t.mask4[2] = 0xffff;
	t.mask4[3] = PACER_META_PROTO;
	t.key_id = PACER_KEY_ID(PACER_KEY_DPORT | PACER_KEY_PROTO, 32, 64, 32, 64);
	return t;
}

/* The only key of the table has an entry of its own, in any set: its second packet is decided. */
static void decides(const char *what, const struct pacer_limiter *t)
{
	put_policy(t, 0);
	share[t->share] = (struct pacer_share){.id = t->share_id,
					       .word = pacer_share_word(5, PACER_SHARE_END_MAX)};
	if (t->kind == (PACER_LIMITER_RATE | PACER_LIMITER_FLEET))
		share[t->share].word = pacer_share_word(
		    pacer_share_of_time(t->rate.unit_ns, t->rate.unit_frac), PACER_SHARE_END_MAX);
	for (uint32_t source = 1; source <= 24; source++) {
		begin(&armed);
		begin(&plain);
		udp4[29] = source;
		assert_int_equal(go(&armed, 60, START) & 0xff, PACER_ADMIT);
		passed = 0;
		note_short(60, START + 2000);
		if (passed)
			fail_msg("%s: of source %u it decides nothing", what, source);
	}
}

/* Each kind of limit. What it left for no reason would go the long way, and nobody would see it. */
static void test_decides(void **unused)
{
	const struct {
		const char *what;
		struct pacer_limiter t;
	} rows[] = {
	    {"narrow", window(false, 4, 0)},	{"narrow, gap", window(false, 4, 9000)},
	    {"wide", window(true, 4, 0)},	{"wide, gap", window(true, 4, 9000)},
	    {"rate", rate(PACER_COST_PACKETS)},
	};

	(void)unused;
	begin_counting();
	memset(lanes, 0, sizeof(lanes));
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct pacer_limiter t = rows[i].t;

		t.sets = 6;
		decides(rows[i].what, &t);
		if (t.gap_ns)
			continue;
		t = of_flows(t);
		decides(rows[i].what, &t);
		t = divided(rows[i].t, 0);
		t.sets = 6;
		decides(rows[i].what, &t);
		t = of_flows(t);
		decides(rows[i].what, &t);
	}
	memcpy(udp4, usual, sizeof(udp4));
}

/* --- what there is beside rules --------------------------------------------------------------- */

static struct pacer_limiter throttle(void)
{
	struct pacer_limiter t = {.kind = PACER_LIMITER_THROTTLE};
	struct pacer_throttle_params by = {.limit = 5 + draw() % 10,
					   .threshold = 3,
					   .cooldown_ns = 900000,
					   .max_cooldown_ns = 1000000,
					   .cpus = 1,
					   .lease = 1};

	assert_int_equal(pacer_throttle_configure(&t.throttle, &by), PACER_THROTTLE_OK);
	return t;
}

static void run_more(const struct pacer_limiter *t, uint64_t ban_ns)
{
	uint64_t now_ns = START;

	put_policy(t, ban_ns);
	put_more();
	begin(&armed);
	begin(&plain);
	for (uint32_t k = 0; k < PACKETS / RUNS; k++) {
		uint32_t len_bytes = 60 + draw() % 3 * 20;

		now_ns = later(now_ns);
		vary_frame(len_bytes);
		if (t->kind & PACER_LIMITER_FLEET && !(draw() % 8)) {
			vary_share(t, now_ns);
			lanes[t->share].used = 0; /* all its packets have one key */
		}
		send(1 + draw() % 8, len_bytes, now_ns);
	}
	memcpy(udp4, usual, sizeof(udp4));
	expect_samples();
}

/* Samples, an allow-list, monitor mode, over: pass and pool, and rules that ban beside them. */
static void test_more(void **unused)
{
	(void)unused;
	begin_counting();
	for (int i = 0; i < 4 * RUNS; i++) {
		struct pacer_limiter t = i % 4 == 3   ? rate(PACER_COST_BYTES)
					 : i % 8 == 6 ? divided(throttle(), 0)
					 : i % 4 == 2 ? throttle()
						      : window(i & 1, 1 + draw() % 6, 0);

		run_more(&t, draw() % 3 ? 0 : 1 + draw() % 400000);
	}
	expect_seen(PACER_ADMIT);
	expect_seen(PACER_ALLOWED);
	expect_seen(PACER_DENY_WINDOW);
	expect_seen(PACER_DENY_RATE);
	expect_seen(PACER_DENY_THROTTLE);
	expect_seen(PACER_DENY_SHARE);
	expect_seen(PACER_DENY_BAN);
	assert_true(acts[PACER_PASS] && acts[PACER_DROP] && acts[PACER_REDIRECT]);
}

/* --- several limits --------------------------------------------------------------------------- */

/* Of any kind, and where it is the source's, the destination's or a flow's. */
static struct pacer_limiter one_of_many(uint32_t i)
{
	struct pacer_limiter t = i % 5 == 0 ? window(draw() % 2, 2 + draw() % 9, 0)
				 : i % 5 == 1
				     ? rate(draw() % 2 ? PACER_COST_BYTES : PACER_COST_PACKETS)
				 : i % 5 == 2 ? sketch(1000 + draw() % 30000, 1 + draw() % 2)
				 : i % 5 == 3 ? throttle()
					      : divided(window(draw() % 2, 2 + draw() % 9, 0), 0);

	t.base = i % 5 == 3 ? 0 : i * 12; /* a throttle has the one state */
	if (i % 5 == 3 || draw() % 2)
		return t;
	t.src_only = 0;
	t.mask4[0] = draw() % 2 ? ~0u : 0;
	t.mask4[1] = ~0u;
	t.mask4[2] = draw() % 2 ? ~0u : 0;
	if (!(draw() % 8))
		t.until_ns = START + draw() % 2000000;
	return t;
}

static void put_many(void)
{
	struct pacer_limiter t = one_of_many(0);
	struct pacer_rule *rule = &plain.policy.rule[0];
	uint32_t first = draw();

	put_policy(&t, 0);
	rule->plain = PACER_PLAIN_NOT;
	rule->n_limiters = 2 + draw() % 3;
	for (uint32_t i = 0; i < rule->n_limiters; i++) {
		rule->limiter[i] = one_of_many((first + i) % 5);
		rule->limiter[i].key_id += i;
	}
	plain.policy.flags = draw() % 4 ? 0 : PACER_CLOCK_EXACT;
	put_more();
}

/* All of them are asked, and counted in, or none: as on the way for all. */
static void test_many(void **unused)
{
	(void)unused;
	begin_counting();
	for (int i = 0; i < 4 * RUNS; i++) {
		const struct pacer_rule *rule = &plain.policy.rule[0];
		uint64_t now_ns = START;

		put_many();
		assert_true(armed.policy.shape & PACER_SHORT_MANY);
		begin(&armed);
		begin(&plain);
		memset(lanes, 0, sizeof(lanes));
		for (uint32_t k = 0; k < PACKETS / RUNS; k++) {
			uint32_t len_bytes = 60 + draw() % 3 * 20;

			now_ns = later(now_ns);
			vary_frame(len_bytes);
			udp4[33] = draw() % 3; /* to */
			for (uint32_t l = 0; l < rule->n_limiters && !(draw() % 8); l++)
				if (rule->limiter[l].kind & PACER_LIMITER_FLEET)
					vary_share(&rule->limiter[l], now_ns);
			send(1 + draw() % 8, len_bytes, now_ns);
		}
		expect_samples();
	}
	memcpy(udp4, usual, sizeof(udp4));
	expect_seen(PACER_ADMIT);
	expect_seen(PACER_ALLOWED);
	expect_seen(PACER_DENY_GAP);
	expect_seen(PACER_DENY_WINDOW);
	expect_seen(PACER_DENY_RATE);
	expect_seen(PACER_DENY_THROTTLE);
	expect_seen(PACER_DENY_SHARE);
	assert_true(passed > 0);
	assert_true(acts[PACER_PASS] && acts[PACER_DROP] && acts[PACER_REDIRECT]);
}

/* --- the expression alone -------------------------------------------------------------------- */

/* What it says of source 1 now: it needs nothing but the set's entries. */
static enum pacer_reason closed(uint64_t now_ns)
{
	const struct pacer_rule *rule = &armed.policy.rule[0];
	const struct pacer_short *s = &rule->brief;
	struct pacer_brief b = {now_ns, 60, 192u << 24 | 2 << 8 | 1, {0, 0}};
	struct pacer_hash hash = pacer_short_hash(s, b.source);
	uint32_t set = pacer_reduce(hash.home, s->sets);
	struct pacer_line *line = pacer_short_line(s, s->shape, &armed.state.table, set);

	assert_non_null(line);
	return pacer_short_closed(rule, s->shape, line, set, hash.mark, &b);
}

/* Who has filled a window is refused by it, up to the nanosecond before it opens. */
static void test_closed_until(void **unused)
{
	(void)unused;
	begin_counting();
	for (int i = 0; i < 2 * RUNS; i++) {
		uint32_t limit = 1 + draw() % 6, k;
		struct pacer_limiter t = window(i & 1, limit, 0);
		uint64_t now_ns = START, open_ns;

		put_policy(&t, 0);
		begin(&armed);
		begin(&plain);
		for (k = 0; k < limit; k++) {
			assert_int_equal(closed(now_ns), PACER_ADMIT);
			send(1, 60, now_ns);
			now_ns += k + 1 < limit ? draw() % (t.window.slot_ns / 2) : 0;
		}
		open_ns = now_ns;
		while (closed(open_ns) == PACER_DENY_WINDOW)
			open_ns += t.window.slot_ns / 7 + 1;
		assert_true(open_ns > START + t.window.ring_ns - t.window.slot_ns);
		assert_int_equal(pacer_outcome_reason(go(&plain, 60, open_ns)), PACER_ADMIT);
	}
}

/* --- a limit that is changed ----------------------------------------------------------------- */

static void forget(struct side *s, const struct pacer_limiter *t)
{
	for (uint32_t i = 0; i < 2 * t->sets + t->shared; i++) {
		uint32_t at = t->base * PACER_LINE_UNITS + i * t->units;

		assert_true(pacer_record_forget(
		    &s->lines[at / PACER_LINE_UNITS].unit[at % PACER_LINE_UNITS].entry,
		    t->generation));
	}
}

/* The value counts at once, looser or tighter, whatever entries say of the values before. */
static void test_changed(void **unused)
{
	(void)unused;
	begin_counting();
	for (int i = 0; i < 2 * RUNS; i++) {
		struct pacer_limiter t = window(i & 1, 1 + draw() % 6, 0);
		uint64_t now_ns = START;

		put_policy(&t, 0);
		begin(&armed);
		begin(&plain);
		for (uint32_t k = 0; k < PACKETS / RUNS; k++) {
			if (!(draw() % 12)) {
				t.window.limit = 1 + draw() % 6;
				t.generation = (t.generation + 1) % PACER_GENERATIONS;
				forget(&armed, &t);
				forget(&plain, &t);
				put_policy(&t, 0);
			}
			now_ns = later(now_ns);
			send(1 + draw() % 8, 60, now_ns);
		}
	}
	expect_seen(PACER_DENY_WINDOW);
}

/* An entry that a CPU holds is not changed; one of another generation needs no change. */
static void test_forget_held(void **unused)
{
	struct pacer_entry entry = {.lock = 5u << 16, .last = 7u << PACER_LAST_OFF | 2};

	(void)unused;
	assert_true(pacer_record_forget(&entry, 0));
	assert_int_equal(entry.last & PACER_LAST_GENERATION, 2);
	entry.lock |= PACER_LOCK_HELD;
	assert_true(pacer_record_forget(&entry, 0));
	assert_false(pacer_record_forget(&entry, 1));
	assert_int_equal(entry.last & PACER_LAST_GENERATION, 2);
	entry.lock &= ~PACER_LOCK_HELD;
	assert_true(pacer_record_forget(&entry, 1));
	assert_int_equal(entry.last, 7u << PACER_LAST_OFF);
	assert_int_equal(entry.lock, 5u << 16);
}

/* --- who has no short way ----------------------------------------------------------------------
 */

static uint32_t shape_with(void (*change)(struct pacer_policy *p))
{
	struct pacer_limiter t = window(false, 3, 0);

	put_policy(&t, 0);
	change(&armed.policy);
	pacer_short_arm(&armed.policy, &control, 0);
	return armed.policy.shape;
}

static void nothing(struct pacer_policy *p)
{
	(void)p;
}

static void match(struct pacer_policy *p)
{
	p->dims = 1u << PACER_DIM_PROTO;
}

static void more(struct pacer_policy *p)
{
	p->dims = PACER_DIMS_MORE;
}

static void sets(struct pacer_policy *p)
{
	p->dims = PACER_DIMS_SETS;
}

static void sample(struct pacer_policy *p)
{
	p->sampling.reasons = 1;
}

static void monitor(struct pacer_policy *p)
{
	p->flags = PACER_MONITOR;
	p->rule[0].plain = PACER_PLAIN_NOT;
}

static void over_pool(struct pacer_policy *p)
{
	p->rule[0].over = PACER_OVER_POOL;
	p->rule[0].plain = PACER_PLAIN_NOT;
}

static void else_passes(struct pacer_policy *p)
{
	p->dims = 1u << PACER_DIM_PROTO;
	p->else_says = PACER_SAYS_DENY;
	p->else_over = PACER_OVER_PASS;
}

static void a_throttle(struct pacer_policy *p)
{
	p->rule[0].limiter[0].kind = PACER_LIMITER_THROTTLE;
}

static void throttle_of_values(struct pacer_policy *p)
{
	a_throttle(p);
	p->rule[0].limiter[0].value[0] = 1;
}

static void second_limit(struct pacer_policy *p)
{
	p->rule[0].n_limiters = 2;
}

static void second_of_values(struct pacer_policy *p)
{
	second_limit(p);
	p->rule[0].limiter[1].value[1] = 1;
}

static void second_of_new(struct pacer_policy *p)
{
	second_limit(p);
	p->rule[0].limiter[1].kind = PACER_LIMITER_RATE | PACER_LIMITER_NEW;
}

static void second_bans(struct pacer_policy *p)
{
	second_limit(p);
	p->rule[0].ban_ns = 1;
}

static void second_over(struct pacer_policy *p)
{
	second_limit(p);
	p->rule[0].over = PACER_OVER_PASS;
}

static void second_matched(struct pacer_policy *p)
{
	second_limit(p);
	match(p);
}

static void flow(struct pacer_policy *p)
{
	p->rule[0].limiter[0].src_only = 0;
}

static void flow_bans(struct pacer_policy *p)
{
	p->rule[0].limiter[0].src_only = 0;
	p->rule[0].plain = PACER_PLAIN_BANNING;
}

static void draining(struct pacer_policy *p)
{
	p->rule[0].limiter[0].until_ns = START;
}

static void other_secret(struct pacer_policy *p)
{
	p->rule[0].limiter[0].secret = 1;
}

static void of_a_fleet(struct pacer_policy *p)
{
	p->rule[0].limiter[0].kind |= PACER_LIMITER_FLEET;
}

static void gap_of_a_fleet(struct pacer_policy *p)
{
	of_a_fleet(p);
	p->rule[0].limiter[0].gap_ns = 1;
}

/* Records of a size between narrow ones and wide ones. */
static void odd_of_a_fleet(struct pacer_policy *p)
{
	of_a_fleet(p);
	p->rule[0].limiter[0].units = PACER_NARROW_UNITS + 1;
}

static void of_new_flows(struct pacer_policy *p)
{
	p->rule[0].limiter[0].kind |= PACER_LIMITER_NEW;
}

static void of_a_fleet_sampled(struct pacer_policy *p)
{
	of_a_fleet(p);
	sample(p);
}

/* Rules of sources, and one of flows that passes what it denies. */
static void flow_passes_over(struct pacer_policy *p)
{
	p->dims = 1u << PACER_DIM_PROTO;
	p->rule[1] = p->rule[2] = p->rule[0];
	p->rule[1].limiter[0].src_only = 0;
	p->rule[1].over = PACER_OVER_PASS;
}

static void flow_passes_over_banned(struct pacer_policy *p)
{
	flow_passes_over(p);
	p->rule[1].outside = 1;
}

static void no_rule(struct pacer_policy *p)
{
	p->rules.word[0] = 0;
}

static void test_kinds(void **unused)
{
	void (*const none[])(struct pacer_policy *) = {
	    more,	    sets,      draining,      throttle_of_values, other_secret,
	    gap_of_a_fleet, flow_bans, of_new_flows,  second_of_values,	  second_of_new,
	    second_bans,    no_rule,   odd_of_a_fleet};
	const uint32_t part = PACER_SHORT_PART | PACER_SHORT_PART_NARROW;
	const uint32_t first = PACER_SHORT_FIRST | PACER_SHORT_NARROW;
	const uint32_t wide = PACER_SHORT_ALONE | PACER_SHORT_WIDE;
	struct pacer_limiter t = window(true, 3, 0);

	(void)unused;
	begin_counting();
	assert_int_equal(shape_with(nothing), PACER_SHORT_ALONE | PACER_SHORT_NARROW);
	for (size_t i = 0; i < ARRAY(none); i++)
		assert_int_equal(shape_with(none[i]), PACER_SHORT_NONE);
	assert_int_equal(shape_with(flow), PACER_SHORT_RULED);
	assert_int_equal(shape_with(match), PACER_SHORT_RULED);
	assert_int_equal(shape_with(a_throttle), PACER_SHORT_RULED);
	assert_int_equal(shape_with(second_limit), PACER_SHORT_MANY);
	assert_int_equal(shape_with(second_over), PACER_SHORT_MANY | PACER_SHORT_OVER);
	assert_int_equal(shape_with(second_matched), PACER_SHORT_NONE);
	assert_int_equal(shape_with(of_a_fleet), part);
	assert_int_equal(shape_with(of_a_fleet_sampled), part | PACER_SHORT_SAMPLES);
	assert_int_equal(shape_with(sample), first | PACER_SHORT_SAMPLES);
	assert_int_equal(shape_with(monitor), first | PACER_SHORT_OVER);
	assert_int_equal(shape_with(over_pool), first | PACER_SHORT_OVER);
	assert_int_equal(shape_with(else_passes), PACER_SHORT_RULED | PACER_SHORT_OVER);
	assert_int_equal(shape_with(flow_passes_over), PACER_SHORT_RULED | PACER_SHORT_OVER);
	/* The same while the ban is there: the rule has its short way back before the policy has.
	 */
	assert_int_equal(shape_with(flow_passes_over_banned), PACER_SHORT_RULED | PACER_SHORT_OVER);
	assert_int_equal(armed.policy.rule[1].brief.shape, PACER_SHORT_NONE);
	put_policy(&t, 0);
	assert_int_equal(armed.policy.shape, wide);
	control.raw_ip = 1; /* frames without Ethernet */
	pacer_short_reshape(&armed.policy, &control, 0);
	assert_int_equal(armed.policy.shape, PACER_SHORT_NONE);
	control.raw_ip = 0;
	control.tools = 1; /* other tools ban sources */
	pacer_short_arm(&armed.policy, &control, 0);
	assert_int_equal(armed.policy.shape, PACER_SHORT_NONE);
	assert_true(armed.policy.flags & PACER_TOOLS);
	control.tools = 0;
	pacer_short_arm(&armed.policy, &control, 0);
	assert_false(armed.policy.flags & PACER_TOOLS);
	control.allowed[1].v6 = 1; /* the other copy's list */
	pacer_short_reshape(&armed.policy, &control, 0);
	assert_int_equal(armed.policy.shape, wide);
	pacer_short_reshape(&armed.policy, &control, 1);
	assert_int_equal(armed.policy.shape,
			 PACER_SHORT_FIRST | PACER_SHORT_WIDE | PACER_SHORT_ALLOWS);
	control.allowed[1].v6 = 0;
	armed.policy.flags = PACER_CLOCK_EXACT;
	armed.policy.rule[0].plain = PACER_PLAIN_BANNING;
	pacer_short_reshape(&armed.policy, &control, 0);
	assert_int_equal(armed.policy.shape, wide | PACER_SHORT_WATCH | PACER_SHORT_EXACT);
	armed.policy.flags = PACER_SOURCES_BANNED;
	pacer_short_reshape(&armed.policy, &control, 0);
	assert_int_equal(armed.policy.shape, PACER_SHORT_NONE);
}

/* As an object has it that no tool has put a policy into: `ip link` attaches it so. */
static void test_not_armed(void **unused)
{
	struct pacer_limiter t = window(true, 3, 0);

	(void)unused;
	put_policy(&t, 0);
	memset(&armed.policy.rule[0].brief, 0, sizeof(armed.policy.rule[0].brief));
	armed.policy.rule[0].counter = 1;
	armed.policy.shape = PACER_SHORT_NONE;
	pacer_short_reshape(&armed.policy, &control, 0);
	assert_int_equal(armed.policy.shape, PACER_SHORT_NONE);
	assert_int_equal(armed.policy.rule[0].brief.shape, 0);
	pacer_short_arm(&armed.policy, &control, 0);
	assert_int_not_equal(armed.policy.shape, PACER_SHORT_NONE);
}

/* --- rules that match ------------------------------------------------------------------------ */

/* Ports 0 to 52, 53, and from 54 on; the last rule is for all. */
static void put_ports(struct pacer_policy *p)
{
	struct pacer_dim *d = &p->dim[PACER_DIM_DPORT];

	p->rules.word[0] = 15;
	p->dims = 1u << PACER_DIM_DPORT | (draw() % 2 ? PACER_DIMS_MANY : 0);
	memset(d->bound, 0xff, sizeof(d->bound));
	d->bound[0] = 53;
	d->bound[1] = 54;
	d->mask[0].word[0] = 9; /* below 53: rules 0 and 3 */
	d->mask[1].word[0] = 10;
	d->mask[2].word[0] = 12;
	p->ruled_out[PACER_PORTS_NONE].word[0] = 7;
	pacer_classify_index(p);
}

/* A rule of each kind, by the packet's port; some ban, one has a verdict, one two limits. */
static void put_rules(void)
{
	struct pacer_policy *p = &plain.policy;
	struct pacer_limiter t[4] = {window(draw() & 1, 1 + draw() % 3, draw() % 2 * 30000),
				     rate(PACER_COST_PACKETS), sketch(50000, 2),
				     window(draw() & 1, 3, 0)};
	uint64_t ban_ns = draw() % 2 ? 200000 : 0;

	put_policy(&t[0], ban_ns);
	for (uint32_t i = 0; i < 4; i++) {
		t[i].base = 12 * i;
		if (!(draw() % 3)) { /* keyed by more than the source */
			t[i].src_only = 0;
			t[i].mask4[1] = ~0u;
			t[i].mask4[2] = 0xffff;
			t[i].mask4[3] = PACER_META_PROTO;
			t[i].mask6[PACER_WORD_PORTS] = t[i].mask4[2];
			t[i].mask6[PACER_WORD_META] = t[i].mask4[3];
			t[i].key_id =
			    PACER_KEY_ID(PACER_KEY_DPORT | PACER_KEY_PROTO, 32, 64, 32, 64);
		}
		if ((i == 1 || !t[i].gap_ns) && !(draw() % 3))
			t[i] = divided(t[i], i);
		if (i)
			p->rule[i] = p->rule[0];
		p->rule[i].counter = COUNTER + i;
		p->rule[i].id = 77 + i;
		p->rule[i].n_limiters = 1;
		p->rule[i].limiter[0] = t[i];
		p->rule[i].ban_ns = t[i].src_only ? ban_ns : 0;
		p->rule[i].plain = t[i].kind & PACER_LIMITER_FLEET ? PACER_PLAIN_NOT
				   : p->rule[i].ban_ns		   ? PACER_PLAIN_BANNING
								   : PACER_PLAIN;
	}
	if (!(draw() % 4)) {
		p->rule[1].says = draw() % 2 ? PACER_SAYS_PASS : PACER_SAYS_DENY;
		p->rule[1].plain = PACER_PLAIN_VERDICT;
		p->rule[1].ban_ns = 0;
		p->rule[1].n_limiters = 0;
	} else if (!(draw() % 4)) {
		p->rule[1].plain = PACER_PLAIN_NOT;
	}
	put_ports(p);
	p->rules.word[0] = draw() % 2 ? 15 : 7; /* of other protocols: no rule */
	p->else_says = draw() % 2 ? PACER_SAYS_DENY : 0;
	p->else_over = draw() % 2 ? PACER_OVER_PASS : PACER_OVER_DROP;
	p->flags = draw() % 4 ? 0 : PACER_CLOCK_EXACT;
	armed.policy = *p;
	pacer_short_arm(&armed.policy, &control, 0);
	assert_true(armed.policy.shape & PACER_SHORT_RULED);
}

static void test_rules(void **unused)
{
	(void)unused;
	begin_counting();
	for (int i = 0; i < 2 * RUNS; i++) {
		uint64_t now_ns = START;

		put_rules();
		if (i & 1)
			put_more();
		begin(&armed);
		begin(&plain);
		memset(lanes, 0, sizeof(lanes));
		for (uint32_t k = 0; k < PACKETS / 4; k++) {
			uint32_t len_bytes =
			    draw() % 64 ? 60 + draw() % 3 : PACER_SHORT_LEN_MAX + 1;

			vary_frame(len_bytes);
			udp4[33] = draw() % 3; /* to */
			udp4[37] = 52 + draw() % 3;
			now_ns = later(now_ns);
			if (!(draw() % 8))
				vary_share(&plain.policy.rule[draw() % 4].limiter[0], now_ns);
			send(1 + draw() % 8, len_bytes, now_ns);
		}
		expect_samples();
	}
	memcpy(udp4, usual, sizeof(udp4));
	assert_true(acts[PACER_PASS] && acts[PACER_DROP] && acts[PACER_REDIRECT]);
	expect_seen(PACER_ADMIT);
	expect_seen(PACER_ALLOWED);
	expect_seen(PACER_NO_RULE);
	expect_seen(PACER_DENY_GAP);
	expect_seen(PACER_DENY_WINDOW);
	expect_seen(PACER_DENY_RATE);
	expect_seen(PACER_DENY_BAN);
	expect_seen(PACER_DENY_SHARE);
	expect_seen(PACER_DENY_VERDICT);
}

/* A rule whose limits have become two is left to the way for all, and the others are not. */
static void test_rule_without(void **unused)
{
	(void)unused;
	begin_counting();
	do
		put_rules();
	while (armed.policy.rule[0].brief.shape == PACER_SHORT_NONE);
	armed.policy.rule[0].n_limiters = 2;
	pacer_short_reshape(&armed.policy, &control, 0);
	assert_int_equal(armed.policy.rule[0].brief.shape, PACER_SHORT_NONE);
}

/*
 * A ban from outside takes the short way from a rule of flows while a packet is on it: no line is
 * looked at, least of all one beyond the limit's, where another limit's key has the same tag.
 */
static void test_shape_gone(void **unused)
{
	struct pacer_limiter t = divided(window(false, 5, 0), 0);
	const __u64 rest = 53ull << 32 | 17 << 24;
	struct pacer_line others;
	__u32 set[4] = {0};

	(void)unused;
	begin_counting();
	t.sets = 4; /* 4 lines, and 2 of shared records */
	t.shared = 4;
	t.src_only = 0;
	put_policy(&t, 0);
	begin(&armed);
	memset(lanes, 0, sizeof(lanes));
	share[t.share] = (struct pacer_share){.id = t.share_id,
					      .word = pacer_share_word(5, PACER_SHARE_END_MAX)};
	armed.policy.rule[0].outside = 1;
	pacer_short_reshape(&armed.policy, &control, 0);
	for (uint32_t i = 1; i < 100; i++) {
		const struct pacer_rule *rule = &armed.policy.rule[0];
		struct pacer_short_key k = {(__u64)i << 32 | 1, rest};
		struct pacer_hash hash = pacer_short_hash_of(rule, &k, control.secret[0]);
		struct pacer_walk w = {.state = &armed.state};

		set[pacer_reduce(hash.home, 4)]++;
		others = (struct pacer_line){
		    .lock = pacer_tag(hash) << 16, .head_ns = 900, .running = 3};
		armed.lines[6] = others;
		assert_int_equal(pacer_path_ruled_part(&w, rule, k.addresses, rest | 100, START),
				 PACER_UNDECIDED);
		assert_memory_equal(&armed.lines[6], &others, sizeof(others));
	}
	assert_true(set[3] > 0); /* whose place is line 6, of wide records */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_windows),	   cmocka_unit_test(test_rates),
	    cmocka_unit_test(test_sketches),	   cmocka_unit_test(test_bans),
	    cmocka_unit_test(test_refused_of_all), cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_decides),	   cmocka_unit_test(test_more),
	    cmocka_unit_test(test_closed_until),   cmocka_unit_test(test_changed),
	    cmocka_unit_test(test_rules),	   cmocka_unit_test(test_many),
	    cmocka_unit_test(test_rule_without),   cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_forget_held),	   cmocka_unit_test(test_not_armed),
	    cmocka_unit_test(test_shape_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
