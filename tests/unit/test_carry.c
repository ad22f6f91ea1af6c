/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State on another clock. A pacer is at work under random traffic and changes, and then there are
 * two of it: one goes on, the other is carried.
 *
 * Where all that it remembers lies behind the new clock's beginning, both say the same of every
 * packet that follows. Where some of it lies before, the carried one lets nothing pass that the
 * other denies, and denies no more than carry.h says.
 */
#include "applied.h"
#include "parsed.h"
#include "plan/carry.h"

#define LINES	  2048
#define SOURCES	  24
#define THROTTLES 8 /* of which these policies have fewer */

/* A pacer: its policy, its state, and by how much its clock is ahead of the first one's. */
struct world {
	struct pacer_policy bin;
	struct pacer_line lines[LINES];
	struct pacer_throttle_state throttle[PACER_THROTTLES];
	struct pacer_throttle_lease lease[PACER_THROTTLES];
	int64_t by_ns;
};

static struct world one, other, probe;
static bool exact; /* the clock of the policies */
static __u64 secret[2 * PACER_SECRETS];
static uint64_t last_ns[SOURCES]; /* when each was admitted last */

/* Policies, and what each may be changed to. */
static const char *const limits[] = {
    "{key: src, packets: 5, window: 1s, entries: 2}",
    "{key: src, packets: 3, window: 1s, entries: 8, slots: 4}",
    "{key: src, packets: 300, window: 1s, slots: 40}",
    "{key: src, packets: 5, window: 1s, slots: 10, entries: 16}, {key: src, gap: 1150ms}",
    "{key: src, packets: 5, window: 200ms, slots: 4, entries: 16}, {key: src, gap: 1s}",
    "{key: src, packets: 5, window: 10s, slots: 2, entries: 16}, {key: src, gap: 400ms}",
    "{key: src, gap: 300ms}",
    "{key: src, gap: 700ms, rows: 1}",
    "{key: src, rate: 3/s, burst: 4, entries: 8}",
    "{key: src, rate: 2/s, burst: 6, entries: 16}",
    "{key: src, rate: 2Kbit/s, burst: 1600}",
    "{key: all, uses: 12, cooldown: 1s, threshold: 3, max_cooldown: 1400ms}",
    "{key: all, uses: 6, cooldown: 1s, threshold: 2, max_cooldown: 1400ms}",
    "{key: all, uses: 6, cooldown: 300ms, threshold: 2}",
    "{key: src, packets: 4, window: 1s}, {key: src+dport, packets: 2, window: 600ms}",
    "{key: 'src/[32,24],[64,56]', packets: 3, window: 1s, wider: x3}",
};

static const char *text_of(const char *of, bool bans)
{
	say_again();
	say("clock: %s\nmemory: 64Ki\n%srules:\n- name: a\n  limits: [%s]\n%s",
	    exact ? "exact" : "coarse", bans ? "bans: 64\n" : "", of,
	    !bans || strstr(of, "all") ? "" /* whom would it ban? */
	    : draw() % 2	       ? "  ban: 2s\n"
				       : "  ban: {for: 500ms, grow: x3, up_to: 5s, forget: 6s}\n");
	return doc.s;
}

static struct pacer_packet packet(uint32_t src, uint32_t dport)
{
	struct pacer_packet pkt = {.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 100};

	pkt.key[PACER_WORD_SADDR] = src << 4;
	pkt.key[PACER_WORD_PORTS] = dport;
	return pkt;
}

/* At this time of the first clock. */
static enum pacer_reason judge(struct world *w, uint64_t at_ns, struct pacer_packet pkt)
{
	struct pacer_state state = {.table = {w->lines, LINES},
				    .policy = &w->bin,
				    .secret = secret,
				    .throttle = w->throttle,
				    .lease = w->lease};
	struct pacer_walk walk = {
	    .state = &state, .now_ns = (uint64_t)((int64_t)at_ns + w->by_ns), .pkt = pkt};

	if (!(w->bin.flags & PACER_CLOCK_EXACT))
		walk.now_ns -= walk.now_ns % RESOLUTION;
	return pacer_outcome_reason(judge_parsed(&walk));
}

/* Another policy, as a tool applies it. */
static void change(const char *of, bool bans)
{
	now.bin = one.bin;
	if (apply(text_of(of, bans)))
		return; /* there is no room for it beside what drains */
	time_draining();
	for (size_t i = 0; i < now.plan.n_limits; i++) {
		const struct plan_limit *l = &now.plan.limit[i];
		const struct pacer_limiter *t = &now.bin.rule[l->rule].limiter[l->limiter];

		if (l->state == PLAN_NEW && compile_in_lines(t))
			memset(&one.lines[t->base], 0,
			       compile_limiter_lines(t) * sizeof(*one.lines));
		else if (l->state == PLAN_NEW)
			memset(&one.throttle[t->base], 0, sizeof(*one.throttle));
	}
	one.bin = now.bin;
}

static void work(uint32_t packets)
{
	for (uint32_t i = 0; i < packets; i++) {
		uint32_t src = draw() % SOURCES;

		host.now_ns += draw() % 8 ? draw() % (30 * MS) : draw() % (400 * MS);
		if (judge(&one, host.now_ns, packet(src, draw() % 2)) == PACER_ADMIT)
			last_ns[src] = host.now_ns;
	}
}

/* At work for a while, with some changes or with none. */
static void begin(size_t which, uint32_t changes, bool bans)
{
	memset(&one, 0, sizeof(one));
	memset(last_ns, 0, sizeof(last_ns));
	for (size_t i = 0; i < ARRAY(secret); i++)
		secret[i] = draw();
	host.now_ns = 100000 * SECOND + draw() % SECOND;
	exact = draw() % 2;
	if (load(text_of(limits[which], bans)))
		fail_msg("%s\n%s", error.text, doc.s);
	assert_true(now.plan.lines <= LINES);
	one.bin = now.bin;
	work(30 + draw() % 60);
	while (changes--) {
		which = (which + (draw() % 2 ? 1 : draw())) %
			ARRAY(limits); /* often of the same kind */
		change(limits[which], bans);
		work(draw() % 40);
	}
	memset(one.lease, 0, sizeof(one.lease)); /* the CPUs' are over with their boot */
}

static void fork_at(int64_t by_ns)
{
	for (size_t i = 0; i < one.bin.rule[0].n_limiters; i++)
		assert_true(compile_in_lines(&one.bin.rule[0].limiter[i]) ||
			    one.bin.rule[0].limiter[i].base < THROTTLES);
	other = one;
	other.by_ns = by_ns;
	carry(&other.bin, other.lines, LINES, other.throttle, by_ns,
	      (uint64_t)((int64_t)host.now_ns + by_ns));
}

/* --- all of it lies behind the beginning ------------------------------------------------------ */

static void test_as_if_nothing_had_happened(void **unused)
{
	uint32_t denied = 0, retired = 0, banned = 0;

	(void)unused;
	for (uint32_t i = 0; i < 600; i++) {
		bool bans = draw() % 4 == 0;
		int64_t by_ns = (int64_t)(draw() % 2000000 * RESOLUTION);

		begin(i % ARRAY(limits), draw() % 3, bans);
		fork_at(draw() % 2 ? by_ns : -(int64_t)(by_ns % (int64_t)(99000 * SECOND)));
		retired += other.bin.rule[0].n_limiters > 1;
		for (uint32_t p = 0; p < 150; p++) {
			struct pacer_packet pkt = packet(draw() % SOURCES, draw() % 2);
			enum pacer_reason a, b;

			host.now_ns += draw() % 8 ? draw() % (30 * MS) : draw() % (400 * MS);
			a = judge(&one, host.now_ns, pkt);
			b = judge(&other, host.now_ns, pkt);
			denied += a != PACER_ADMIT;
			banned += a == PACER_DENY_BAN;
			if (a != b)
				fail_msg(
				    "%u, packet %u, by %lld ns: %s, and %s on the other clock\n%s",
				    i, p, (long long)other.by_ns, pacer_reason_name(a),
				    pacer_reason_name(b), doc.s);
		}
	}
	assert_true(denied > 10000 && retired > 50 && banned > 500);
}

/* --- some of it lies before ------------------------------------------------------------------- */

/* How many of so many packets of a key pass at this time. */
static uint32_t admitted(const struct world *w, uint64_t at_ns, struct pacer_packet pkt, uint32_t n)
{
	uint32_t passed = 0;

	memcpy(&probe.bin, &w->bin, sizeof(probe.bin));
	memcpy(probe.lines, w->lines, now.plan.lines * sizeof(*probe.lines));
	memcpy(probe.throttle, w->throttle, THROTTLES * sizeof(*probe.throttle));
	memset(probe.lease, 0, THROTTLES * sizeof(*probe.lease));
	probe.by_ns = w->by_ns;
	while (n--)
		passed += judge(&probe, at_ns, pkt) == PACER_ADMIT;
	return passed;
}

/* From when on it admits what the other admits at at_ns: see carry.h. */
static uint64_t no_later_than(uint64_t at_ns)
{
	uint64_t beginning_ns = (uint64_t)(1 - other.by_ns), from_ns = at_ns;

	for (uint32_t k = 0; k < other.bin.rule[0].n_limiters; k++) {
		const struct pacer_limiter *t = &other.bin.rule[0].limiter[k];
		uint32_t kind = pacer_limiter_kind_of(t);

		if (kind == PACER_LIMITER_WINDOW && t->window.ring)
			from_ns = pacer_later(from_ns, at_ns + t->window.slot_ns);
		if (kind == PACER_LIMITER_THROTTLE)
			from_ns = pacer_later(from_ns, beginning_ns + t->throttle.cooldown_ns);
		if (kind == PACER_LIMITER_RATE && t->rate.begin_ns)
			from_ns = pacer_later(from_ns, beginning_ns + t->rate.burst_ns);
		from_ns = pacer_later(from_ns, beginning_ns + t->gap_ns);
	}
	return from_ns + (exact ? 0 : RESOLUTION);
}

/* A moment before the gap is over, if there is one and this is still to come. */
static uint64_t gap_ends(uint32_t src)
{
	uint64_t gap_ns = 0;

	for (uint32_t k = 0; k < one.bin.rule[0].n_limiters; k++)
		gap_ns = pacer_later(gap_ns, one.bin.rule[0].limiter[k].gap_ns);
	return gap_ns && last_ns[src] ? pacer_later(last_ns[src] + gap_ns - 1, host.now_ns)
				      : host.now_ns;
}

static void test_what_lies_before_the_beginning(void **unused)
{
	uint32_t less = 0, passed = 0;

	(void)unused;
	for (uint32_t i = 0; i < 300; i++) {
		uint64_t back_ns = RESOLUTION + (draw() % 4 ? draw() % (3 * SECOND) : 0);

		begin(i % ARRAY(limits), draw() % 2, draw() % 4 == 0);
		fork_at(-(int64_t)((host.now_ns - back_ns) / RESOLUTION * RESOLUTION));
		for (uint32_t k = 0; k < 3 * SOURCES; k++) {
			struct pacer_packet pkt = packet(k % SOURCES, draw() % 2);
			uint64_t at_ns = k < SOURCES	   ? host.now_ns
					 : k < 2 * SOURCES ? gap_ends(k % SOURCES)
							   : host.now_ns + draw() % (2 * SECOND);
			uint32_t n = 1 + draw() % 6, later, a = admitted(&one, at_ns, pkt, n);
			uint32_t b = admitted(&other, at_ns, pkt, n);

			less += b < a;
			passed += a;
			if (b > a)
				fail_msg(
				    "%u, source %u, %llu ns after the beginning: %u pass, and %u "
				    "may\n%s",
				    i, k % SOURCES, (unsigned long long)at_ns + other.by_ns, b, a,
				    doc.s);
			at_ns = no_later_than(at_ns);
			later = admitted(&one, at_ns, pkt,
					 n); /* a change may have its time meanwhile */
			b = admitted(&other, at_ns, pkt, n);
			if (b < a && b < later)
				fail_msg(
				    "%u, source %u: %u pass %llu ns after the beginning, and %u "
				    "have to\n%s",
				    i, k % SOURCES, b, (unsigned long long)at_ns + other.by_ns, a,
				    doc.s);
		}
	}
	assert_true(less && passed > 10000);
}

/* Behind a long gap the window is over for long: none of its slots counts any more. */
static void test_a_gap_behind_a_window(void **unused)
{
	static const struct {
		const char *limit;
		uint32_t n;
	} rows[] = {
	    {"{key: src, packets: 5, window: 1s, slots: 10}, {key: src, gap: 10h}", 5},
	    {"{key: src, packets: 300, window: 1s, slots: 10}, {key: src, gap: 10h}", 300},
	};
	static const uint32_t passed[] = {11, 256, 257, 258, 513, 65537, 200000};

	(void)unused;
	exact = true;
	for (size_t i = 0; i < ARRAY(rows) * ARRAY(passed); i++) {
		const uint32_t n = rows[i % ARRAY(rows)].n;
		struct pacer_limiter *t = &one.bin.rule[0].limiter[0];
		uint64_t begin_ns = 100000 * SECOND, at_ns, gap_ns;

		memset(&one, 0, sizeof(one));
		assert_int_equal(load(text_of(rows[i % ARRAY(rows)].limit, false)), 0);
		one.bin = now.bin;
		assert_int_equal(one.bin.rule[0].n_limiters, 1);
		gap_ns = t->gap_ns;
		t->gap_ns = 0;
		for (uint32_t k = 0; k < n; k++)
			assert_int_equal(judge(&one, begin_ns + k % 9 * 100 * MS, packet(1, 1)),
					 PACER_ADMIT);
		t->gap_ns = gap_ns;
		at_ns = begin_ns + 800 * MS + passed[i / ARRAY(rows)] * (uint64_t)t->window.slot_ns;
		host.now_ns = at_ns;
		fork_at(1 - (int64_t)at_ns);
		other.bin.rule[0].limiter[0].gap_ns = 0;
		assert_int_equal(admitted(&other, at_ns + 1, packet(1, 1), n + 1), n);
		teardown(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_as_if_nothing_had_happened),
	    TEST(test_what_lies_before_the_beginning),
	    TEST(test_a_gap_behind_a_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
