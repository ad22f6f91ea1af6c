/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits of new flows: which packets open one, what is remembered and for how long, and that the
 * table errs to one side alone: a new flow is never taken for a known one.
 */
#include "oracle.h"

#include "applied.h"
#include "path.h"

#define LINES 4096u

static struct pacer_line lines[LINES];
static __u64 secret[2 * PACER_SECRETS];

/* Of a packet: Ethernet, IPv4, and what a flow is told by. */
struct said {
	uint32_t src;
	uint16_t sport;
	uint8_t proto, flags;
	uint16_t frag, vlan; /* vlan 0: untagged */
	uint16_t cut;	     /* bytes of the transport's header; 0: all 20 */
};

static size_t frame_of(const struct said *s, uint8_t *b)
{
	size_t at = 12, n = s->cut ? s->cut : 20, total = 20 + n;

	memset(b, 0, 64);
	if (s->vlan) {
		b[at] = 0x81;
		b[at + 2] = (uint8_t)(s->vlan >> 8);
		b[at + 3] = (uint8_t)s->vlan;
		at += 4;
	}
	b[at] = 8;
	b += at + 2;
	b[0] = 0x45;
	b[3] = (uint8_t)total;
	b[5] = 7; /* the datagram's number */
	b[6] = (uint8_t)(s->frag >> 8);
	b[7] = (uint8_t)s->frag;
	b[8] = 64;
	b[9] = s->proto;
	for (int i = 0; i < 4; i++)
		b[12 + i] = (uint8_t)(s->src >> (24 - 8 * i));
	b[16] = 198;
	b[19] = 1;
	b[20] = (uint8_t)(s->sport >> 8);
	b[21] = (uint8_t)s->sport;
	b[23] = 53;
	b[33] = s->flags;
	return at + 2 + total;
}

/* What the policy in `now` says of it. *known: the limits of new flows were not asked. */
static enum pacer_reason judged(const struct said *s, uint64_t now_ns, bool *known)
{
	struct pacer_state state = {.table = {lines, LINES}, .policy = &now.bin, .secret = secret};
	struct pacer_walk walk = {.state = &state};
	uint8_t b[80];
	size_t n = frame_of(s, b);
	struct pacer_frame frame = {b, b + n, (uint32_t)n, now_ns};
	__u32 outcome;

	(void)pacer_path(&frame, &walk, &outcome);
	if (known)
		*known = walk.pkt.key[PACER_WORD_META] & PACER_META_KNOWN;
	return pacer_outcome_reason(outcome);
}

static bool opens(const struct said *s, uint64_t now_ns)
{
	bool known;

	assert_int_equal(judged(s, now_ns, &known), PACER_ADMIT);
	return !known;
}

static void begin(const char *text, bool same_hash)
{
	host.resolution_ns = 0;
	assert_int_equal(load(text), 0);
	assert_true(now.plan.lines <= LINES);
	memset(lines, 0, sizeof(lines));
	for (size_t i = 0; i < ARRAY(secret); i++)
		secret[i] = same_hash ? 0 : draw();
}

#define HEAD "memory: 256Ki\nflows: 64\nflow_idle: 10s\n"
#define AT_ALL \
	HEAD "rules: [{name: a, limits: [{key: all, packets: 1000k, window: 1s, of: new}]}]\n"
#define AT_ONE HEAD "rules: [{name: a, limits: [{key: all, packets: 1, window: 60s, of: new}]}]\n"

/* --- what opens a flow ------------------------------------------------------------------------ */

/* Of a packet whose ports could not be read, as behind headers that are too many, it is not known.
 */
static void test_unknown_ports(void **unused)
{
	(void)unused;
	for (uint32_t ports = PACER_PORTS_READ; ports <= PACER_PORTS_ANY; ports++) {
		const struct pacer_packet pkt = {.family = PACER_FAMILY_6, .ports = ports};

		assert_int_equal(pacer_flow_told(&pkt), ports < PACER_PORTS_UNKNOWN);
	}
}

static void test_opens(void **unused)
{
	/* Each twice: does the first packet open a flow, and the second? */
	static const struct {
		struct said of;
		bool first, second;
	} rows[] = {
	    {{1, 1, 6, 0x02, 0, 0, 0}, true, true},   /* SYN, and again */
	    {{1, 1, 6, 0x12, 0, 0, 0}, false, false}, /* its answer */
	    {{1, 1, 6, 0x10, 0, 0, 0}, false, false},
	    {{1, 1, 6, 0x00, 0, 0, 0}, false, false},
	    {{1, 1, 6, 0x04, 0, 0, 0}, false, false},
	    {{1, 1, 6, 0xc2, 0, 0, 0}, true, true},  /* with ECN's flags */
	    {{1, 1, 6, 0x03, 0, 0, 0}, true, true},  /* and FIN */
	    {{1, 1, 6, 0x10, 0, 0, 13}, true, true}, /* no flags to be read */
	    {{1, 1, 6, 0x10, 0, 0, 14}, false, false},
	    {{1, 1, 6, 0x10, 1, 0, 0}, true, true}, /* a later fragment */
	    {{1, 1, 17, 0, 0, 0, 0}, true, false},
	    {{1, 2, 17, 0, 0, 0, 0}, true, false},
	    {{2, 1, 17, 0, 0, 0, 0}, true, false},
	    {{1, 1, 17, 0, 0, 5, 0}, true, false}, /* in a VLAN, and in another */
	    {{1, 1, 17, 0, 0, 6, 0}, true, false},
	    {{1, 3, 17, 0, 0x2000, 0, 0}, true, false}, /* a first fragment has ports */
	    {{1, 1, 17, 0, 3, 0, 0}, true, true},	/* a later one has none */
	    {{1, 1, 132, 0, 0, 0, 0}, true, false},
	    {{1, 1, 1, 0, 0, 0, 0}, true, false}, /* ICMP: of two addresses */
	    {{1, 9, 1, 0, 0, 0, 0}, false, false},
	    {{1, 1, 1, 0, 2, 0, 0}, true, true},
	    {{3, 1, 1, 0, 0, 0, 0}, true, false},
	    {{1, 1, 47, 0, 0, 0, 0}, true, false},
	};

	(void)unused;
	begin(AT_ALL, false);
	for (size_t i = 0; i < ARRAY(rows); i++) {
		uint64_t now_ns = SECOND + i * MS;

		if (opens(&rows[i].of, now_ns) != rows[i].first ||
		    opens(&rows[i].of, now_ns + 1) != rows[i].second)
			fail_msg("row %zu", i);
	}
}

/* IPv6 has flows of its own; a frame that is not IP opens one each time. */
static void test_others(void **unused)
{
	static const char text[] =
	    HEAD "rules:\n- {name: arp, match: {ether_type: arp}, limits: [{key: all, packets: 1, "
		 "window: 1h, of: new}]}\n- {name: a, limits: [{key: all, packets: 9, window: 1h, "
		 "of: new}]}\n";
	uint8_t b[80] = {[12] = 0x86, 0xdd, 0x60, [19] = 8, 17, [22] = 0x20, [55] = 53, [59] = 8};
	static const uint8_t arp[60] = {[12] = 8, 6};
	struct pacer_state state = {.table = {lines, LINES}, .policy = &now.bin, .secret = secret};
	struct pacer_walk walk = {.state = &state};
	__u32 outcome;

	(void)unused;
	begin(text, false);
	for (uint32_t i = 0; i < 20; i++) {
		struct pacer_frame frame = {b, b + 62, 62, SECOND + i};

		b[22 + 15] = (uint8_t)(i / 2); /* the source: each twice */
		(void)pacer_path(&frame, &walk, &outcome);
		assert_int_equal(pacer_outcome_reason(outcome),
				 i < 18 ? PACER_ADMIT : PACER_DENY_WINDOW);
	}
	for (uint32_t i = 0; i < 3; i++) {
		struct pacer_frame frame = {arp, arp + 60, 60, SECOND + i};

		(void)pacer_path(&frame, &walk, &outcome);
		assert_int_equal(pacer_outcome_reason(outcome),
				 i ? PACER_DENY_WINDOW : PACER_ADMIT);
	}
}

/* --- what is remembered ----------------------------------------------------------------------- */

/* Who was denied is new with each packet: by a limit of new flows, and by one of all packets. */
static void test_denied(void **unused)
{
	const struct said a = {1, 1, 17, 0, 0, 0, 0}, b = {2, 1, 17, 0, 0, 0, 0};

	(void)unused;
	begin(AT_ONE, false);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(judged(&a, SECOND + i, NULL), PACER_ADMIT);
		assert_int_equal(judged(&b, SECOND + i, NULL), PACER_DENY_WINDOW);
	}
	begin(HEAD "rules: [{name: a, limits: [{key: all, packets: 9, window: 60s, of: new}, "
		   "{key: src, gap: 1s}]}]\n",
	      false);
	assert_true(opens(&a, SECOND));
	assert_true(opens(&b, SECOND));
	assert_int_equal(judged(&(struct said){1, 2, 17, 0, 0, 0, 0}, SECOND + 1, NULL),
			 PACER_DENY_GAP);
	assert_true(opens(&(struct said){1, 2, 17, 0, 0, 0, 0}, 2 * SECOND));
	assert_false(opens(&(struct said){1, 2, 17, 0, 0, 0, 0}, 3 * SECOND));
}

/* The same of one that was denied under the lock, when reading had let it through. */
static void test_contended(void **unused)
{
	const struct said a = {1, 1, 17, 0, 0, 0, 0};
	uint32_t *lock;

	(void)unused;
	begin(AT_ALL, false);
	lock = &lines[now.bin.rule[0].limiter[0].base].unit[0].entry.lock;
	*lock |= PACER_LOCK_HELD;
	assert_int_equal(judged(&a, SECOND, NULL), PACER_DENY_CONTENDED);
	*lock &= ~PACER_LOCK_HELD;
	assert_true(opens(&a, SECOND + 1));
	assert_false(opens(&a, SECOND + 2));
}

/* A known flow is charged where all packets count, and nowhere else. */
static void test_uncharged(void **unused)
{
	const struct said a = {1, 1, 17, 0, 0, 0, 0};

	(void)unused;
	begin(HEAD "rules: [{name: a, limits: [{key: src, packets: 1, window: 60s, of: new}, "
		   "{key: src, packets: 5, window: 60s}]}]\n",
	      false);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(judged(&a, SECOND + i, NULL), PACER_ADMIT);
	assert_int_equal(judged(&a, SECOND + 5, NULL), PACER_DENY_WINDOW);
}

/* Until it has been silent for flow_idle, and not a nanosecond longer. */
static void test_idle(void **unused)
{
	const struct said a = {1, 1, 17, 0, 0, 0, 0};
	uint64_t idle_ns = 10 * SECOND, at_ns = SECOND;

	(void)unused;
	begin(AT_ALL, false);
	assert_int_equal(now.bin.flows.idle_ns, idle_ns);
	assert_true(opens(&a, at_ns));
	assert_false(opens(&a, at_ns += idle_ns - 1));
	assert_false(opens(&a, at_ns += idle_ns - 1));
	assert_true(opens(&a, at_ns += idle_ns));
	assert_false(opens(&a, at_ns += idle_ns / 16 - 1)); /* not noted again */
	assert_true(opens(&a, at_ns += idle_ns - idle_ns / 16 + 1));
	/* Another CPU's clock is behind; and a time that no packet had. */
	assert_false(opens(&a, at_ns - PACER_FLOW_AHEAD_NS + 1));
	assert_true(opens(&a, at_ns - PACER_FLOW_AHEAD_NS));
	assert_false(opens(&a, at_ns += idle_ns - 1)); /* which does not take back the flow's */
	host.resolution_ns = RESOLUTION;
	assert_int_equal(load("clock: coarse\n" AT_ALL), 0);
	assert_int_equal(now.bin.flows.idle_ns, idle_ns - RESOLUTION);
}

/* A set has four lines: who was silent longest makes room. */
static void test_evicted(void **unused)
{
	const struct said a = {1, 1, 17, 0, 0, 0, 0};
	uint64_t now_ns = SECOND;

	(void)unused;
	begin("memory: 256Ki\nflows: 4\nflow_idle: 10s\nrules: [{name: a, limits: [{key: all, "
	      "packets: 1000k, window: 1s, of: new}]}]\n",
	      false);
	assert_true(opens(&a, now_ns));
	for (uint32_t i = 0; i < 300; i++) { /* after a sixteenth of the time it is noted again */
		struct said other = {2, (uint16_t)i, 17, 0, 0, 0, 0};

		now_ns += SECOND;
		assert_true(opens(&other, now_ns));
		assert_false(opens(&a, now_ns + 1));
	}
	for (uint32_t i = 0; i < 300; i++) /* the first segments of TCP are told by their flags */
		assert_true(opens(&(struct said){3, (uint16_t)i, 6, 2, 0, 0, 0}, ++now_ns));
	assert_false(opens(&a, ++now_ns));
	for (uint32_t i = 300; i < 304; i++)
		assert_true(opens(&(struct said){2, (uint16_t)i, 17, 0, 0, 0, 0}, ++now_ns));
	assert_true(opens(&a, ++now_ns));
}

/* Each of the four is known, whichever line it got. */
static void test_all_of_a_set(void **unused)
{
	(void)unused;
	begin("memory: 256Ki\nflows: 4\nflow_idle: 10s\nrules: [{name: a, limits: [{key: all, "
	      "packets: 1000k, window: 1s, of: new}]}]\n",
	      false);
	for (uint64_t now_ns = SECOND; now_ns < SECOND + 8; now_ns += 4)
		for (uint16_t i = 0; i < PACER_FLOW_WAYS; i++)
			assert_true(opens(&(struct said){1, i, 17, 0, 0, 0, 0}, now_ns + i) ==
				    (now_ns == SECOND));
}

/* A flow of IPv6 may have the words of one of IPv4. In a table of one set it is not that one. */
static void test_families(void **unused)
{
	struct pacer_state state = {.table = {lines, LINES}, .policy = &now.bin, .secret = secret};
	struct pacer_walk walk = {
	    .state = &state, .pkt = {.family = PACER_FAMILY_4, .proto = 17}, .now_ns = SECOND};

	(void)unused;
	begin("memory: 256Ki\nflows: 4\nflow_idle: 10s\nrules: [{name: a, limits: [{key: all, "
	      "packets: 1000k, window: 1s, of: new}]}]\n",
	      false);
	assert_int_equal(pacer_flow_keep(&walk), 1);
	assert_true(pacer_flow_known(&walk, now.bin.rule[0].id));
	walk.pkt.family = PACER_FAMILY_6;
	assert_false(pacer_flow_known(&walk, now.bin.rule[0].id));
}

/* Rules do not share what they know. */
static void test_rules(void **unused)
{
	const struct said in = {1, 1, 17, 0, 0, 7, 0};
	struct said out = in;

	(void)unused;
	begin(HEAD
	      "rules:\n- {name: a, match: {ttl: 64, len: 0-54}, limits: [{key: all, packets: 9, "
	      "window: 1h, of: new}]}\n- {name: b, limits: [{key: all, packets: 9, window: 1h, "
	      "of: new}]}\n",
	      false);
	out.cut = 8;
	assert_true(opens(&in, SECOND));
	assert_false(opens(&in, SECOND + 1));
	assert_true(opens(&out, SECOND + 2));
	assert_false(opens(&in, SECOND + 3));
	assert_false(opens(&out, SECOND + 4));
}

/*
 * Many flows in a table far too small, and an oracle with room for all: what is taken for known was
 * let through less than flow_idle ago. Also where all have one hash.
 */
static void one_side(bool same_hash)
{
	static uint64_t let_ns[2][512];
	uint64_t now_ns = SECOND, known_n = 0, again = 0;

	memset(let_ns, 0, sizeof(let_ns));
	begin("memory: 256Ki\nflows: 32\nflow_idle: 1s\nrules: [{name: a, limits: [{key: src, "
	      "packets: 12, window: 1s, of: new}, {key: all, packets: 900, window: 1s}]}]\n",
	      same_hash);
	for (uint32_t i = 0; i < 60000; i++) {
		uint32_t flow = draw() & 1 ? draw() % 8 : draw() % 512, tcp = draw() % 8 == 0;
		struct said s = {flow % 7, (uint16_t)flow, tcp ? 6 : 17, 0x02, 0, 0, 0};
		enum pacer_reason reason;
		bool known;

		now_ns += draw() % (4 * MS);
		reason = judged(&s, now_ns, &known);
		if (tcp)
			assert_false(known);
		if (known && (!let_ns[tcp][flow] || now_ns - let_ns[tcp][flow] >= SECOND))
			fail_msg("%u: flow %u is new, and was taken for a known one", i, flow);
		known_n += known;
		again +=
		    !known && !tcp && let_ns[tcp][flow] && now_ns - let_ns[tcp][flow] < SECOND / 2;
		if (reason == PACER_ADMIT)
			let_ns[tcp][flow] = now_ns;
	}
	assert_true(known_n > 1000);
	assert_true(again > 100); /* it does err, to its side */
}

static void test_one_side(void **unused)
{
	(void)unused;
	one_side(false);
	one_side(true);
}

/*
 * Whoever chooses the flows does not choose their sets. These have the same sum of their words;
 * each set has about as many of them as any.
 */
static void test_sets_are_the_secrets(void **unused)
{
	struct pacer_state state = {.policy = &now.bin, .secret = secret};
	struct pacer_walk walk = {.state = &state, .pkt.family = PACER_FAMILY_4};
	uint32_t in[16] = {0};

	(void)unused;
	begin(AT_ALL, false);
	assert_int_equal(now.bin.flows.sets, ARRAY(in));
	for (uint32_t i = 0; i < 64 * ARRAY(in); i++) {
		walk.pkt.key[PACER_WORD_SADDR] = 0x0a000000 + i;
		walk.pkt.key[PACER_WORD_DADDR] = 0xc6336401 - i;
		in[(pacer_flow_set(&walk) - now.bin.flows.base) / PACER_FLOW_WAYS]++;
	}
	for (size_t i = 0; i < ARRAY(in); i++)
		assert_in_range(in[i], 16, 192);
}

/* Another CPU has the flow's line in hand, or has changed it meanwhile: nobody waits. */
static void test_held(void **unused)
{
	const struct said a = {1, 1, 17, 0, 0, 0, 0};
	struct pacer_line *own = NULL;

	(void)unused;
	begin(AT_ALL, false);
	assert_true(opens(&a, SECOND));
	for (uint32_t i = 0; i < compile_flow_lines(&now.bin.flows); i++)
		if (lines[now.bin.flows.base + i].flow_seen_ns)
			own = &lines[now.bin.flows.base + i];
	assert_non_null(own);
	assert_false(opens(&a, SECOND + 1));
	own->flow_lock |= PACER_LOCK_HELD;
	assert_true(opens(&a, SECOND + 2));
	own->flow_lock &= ~PACER_LOCK_HELD;
	assert_false(opens(&a, SECOND + 3));
	own->flow_key[PACER_WORD_META] ^= 1;
	assert_true(opens(&a, SECOND + 4));
}

/* --- the policy ------------------------------------------------------------------------------- */

static void test_table(void **unused)
{
	static const char *const none[] = {
	    "rules: [{name: a, match: {proto: tcp}, limits: [{key: src, gap: 1s, of: new}]}]\n",
	    "rules: [{name: a, match: {flags: syn}, limits: [{key: src, gap: 1s, of: new}]}]\n",
	    "rules: [{name: a, limits: [{key: src, gap: 1s, of: all}]}]\n",
	};
	static const char both[] = "rules: [{name: a, match: {proto: [tcp, udp]}, limits: [{key: "
				   "src, gap: 1s, of: new}]}]\n";

	(void)unused;
	for (size_t i = 0; i < ARRAY(none); i++) {
		assert_int_equal(load(none[i]), 0);
		assert_int_equal(now.bin.flows.sets, 0);
		assert_int_equal(now.bin.rule[0].opens, i < 2);
	}
	assert_int_equal(load(both), 0);
	assert_int_equal(compile_flow_lines(&now.bin.flows), 65536);
	assert_true(now.bin.dims & PACER_DIMS_MORE && now.bin.flags & PACER_KEYS_MORE);
	assert_int_equal(now.bin.rule[0].plain, PACER_PLAIN_NOT);
	/* Shorter than a tick of the clock, nothing is known for certain: each packet opens one. */
	assert_int_equal(
	    load("clock: coarse\nflow_idle: 1ms\nrules: [{name: a, limits: [{key: src, "
		 "gap: 1s, of: new}]}]\n"),
	    0);
	assert_true(now.bin.flows.sets && now.bin.flows.idle_ns == 0);
	assert_int_equal(load("memory: 1Mi\nrules: [{name: a, limits: [{key: src, gap: 1s, of: "
			      "new}]}]\n"),
			 -1);
	assert_non_null(strstr(error.text, "flows: no room for the table of 65536"));
	/* A gap goes with a window of its key that counts the same packets. */
	assert_int_equal(load("rules: [{name: a, limits: [{key: src, packets: 9, window: 10s, of: "
			      "new}, {key: src, gap: 1s, of: new}]}]\n"),
			 0);
	assert_int_equal(now.bin.rule[0].n_limiters, 1);
	assert_int_equal(load("rules: [{name: a, limits: [{key: src, packets: 9, window: 10s, of: "
			      "new}, {key: src, gap: 1s}]}]\n"),
			 0);
	assert_int_equal(now.bin.rule[0].n_limiters, 2);
}

#define WITH(flows, limits) "memory: 8Mi\n" flows "\nrules: [{name: a, limits: [" limits "]}]\n"
#define NEW		    "{key: src, packets: 9, window: 10s, of: new}"
#define PLAIN		    "{key: src, packets: 9, window: 10s}"

#define DST10 "{key: dst, packets: 9, window: 10s}"
#define DST20 "{key: dst, packets: 9, window: 20s}"

/* A table keeps its place as long as its size; it stays for a limit that still drains. */
static void test_change(void **unused)
{
	struct pacer_flows was;

	(void)unused;
	assert_int_equal(load(WITH("flows: 400", NEW)), 0);
	was = now.bin.flows;
	assert_int_equal(apply(WITH("flows: 400\nflow_idle: 5s", NEW ", {key: dst, gap: 1s}")), 0);
	assert_int_equal(now.plan.flows, PLAN_KEPT);
	assert_int_equal(now.bin.flows.base, was.base);
	assert_int_equal(now.bin.flows.idle_ns, 5 * SECOND - RESOLUTION);
	assert_int_equal(apply(WITH("flows: 800", NEW)), 0);
	assert_int_equal(now.plan.flows, PLAN_NEW);
	time_draining();
	host.now_ns += 60 * SECOND;
	assert_true(now.bin.flows.base >= was.base + 400 || now.bin.flows.base + 800 <= was.base);
	was = now.bin.flows;
	/* Of all packets it begins anew beside the other, which goes on for its window. */
	assert_int_equal(apply(WITH("", PLAIN)), 0);
	assert_int_equal(now.bin.rule[0].n_limiters, 2);
	assert_true(now.bin.rule[0].opens);
	assert_memory_equal(&now.bin.flows, &was, sizeof(was));
	time_draining();
	host.now_ns += 60 * SECOND;
	assert_int_equal(apply(WITH("", PLAIN)), 0);
	assert_int_equal(now.bin.rule[0].n_limiters, 1);
	assert_false(now.bin.rule[0].opens || now.bin.flows.sets);
	/* It stays for no limit of all packets that drains, and is there for one of new flows. */
	assert_int_equal(load(WITH("flows: 400", DST10 ", " NEW)), 0);
	was = now.bin.flows;
	assert_int_equal(apply(WITH("", DST20 ", " PLAIN)), 0);
	assert_int_equal(now.plan.n_draining, 2);
	assert_memory_equal(&now.bin.flows, &was, sizeof(was));
	assert_int_equal(load(WITH("flows: 400", DST10 ", " NEW)), 0);
	assert_int_equal(apply(WITH("", DST10 ", " PLAIN)), 0);
	time_draining();
	host.now_ns += 60 * SECOND;
	assert_int_equal(apply(WITH("", DST20 ", " PLAIN)), 0);
	assert_int_equal(now.plan.n_draining, 1);
	assert_int_equal(now.bin.flows.sets, 0);
	/* A longer gap of new flows alone is no tighter one: what gets looser is so at once. */
	assert_int_equal(
	    load(WITH("flows: 400", "{key: src, gap: 2s, rows: 1}, {key: src, gap: 2s, of: new}")),
	    0);
	assert_int_equal(
	    apply(WITH("flows: 400", "{key: src, gap: 1s, rows: 1}, {key: src, gap: 2s, of: "
				     "new}")),
	    0);
	assert_int_equal(now.plan.n_draining, 0);
	assert_int_equal(now.bin.rule[0].n_limiters, 2);
}

/* It stays where it is, behind a table of bans, and what is new lies beside it. */
static void test_place(void **unused)
{
	static const char with_bans[] =
	    "memory: 8Mi\nflows: 400\nbans: 64\nrules: [{name: a, ban: 1m, limits: [%s]}]\n";
	struct pacer_flows was;
	char text[256];

	(void)unused;
	snprintf(text, sizeof(text), with_bans, NEW);
	assert_int_equal(load(text), 0);
	was = now.bin.flows;
	assert_true(was.base > 0);
	snprintf(text, sizeof(text), with_bans,
		 NEW ", {key: dst, packets: 9, window: 1s, entries: 16}");
	assert_int_equal(apply(text), 0);
	assert_int_equal(now.bin.flows.base, was.base);
	for (uint32_t k = 0; k < now.bin.rule[0].n_limiters; k++) {
		const struct pacer_limiter *t = &now.bin.rule[0].limiter[k];

		assert_true(t->base >= was.base + compile_flow_lines(&was) ||
			    t->base + compile_limiter_lines(t) <= was.base);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_unknown_ports),
	    TEST(test_opens),
	    TEST(test_others),
	    TEST(test_denied),
	    TEST(test_contended),
	    TEST(test_uncharged),
	    TEST(test_idle),
	    TEST(test_evicted),
	    TEST(test_all_of_a_set),
	    TEST(test_families),
	    TEST(test_rules),
	    TEST(test_one_side),
	    TEST(test_sets_are_the_secrets),
	    TEST(test_held),
	    TEST(test_table),
	    TEST(test_change),
	    TEST(test_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
