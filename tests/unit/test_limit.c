/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a denied packet would pass, of limits of every kind, one or several to a rule: against the
 * judgement itself, on copies of the state. At `when` it is admitted; a ns before it is denied.
 */
#include "applied.h"

#include "parsed.h"

#define LINES	1024u
#define SOURCES 9u

/* All that a judgement reads or writes. */
struct world {
	struct pacer_line lines[LINES];
	struct pacer_throttle_state throttle[PACER_THROTTLES];
	struct pacer_throttle_lease lease[PACER_THROTTLES];
};

static struct world here, there;
static __u64 secret[2][PACER_SECRETS];

static struct pacer_walk walk_in(struct world *w, struct pacer_state *state, uint64_t now_ns,
				 const struct pacer_packet *pkt)
{
	*state = (struct pacer_state){.table = {w->lines, LINES},
				      .policy = &now.bin,
				      .secret = secret[0],
				      .throttle = w->throttle,
				      .lease = w->lease};
	return (struct pacer_walk){.state = state, .now_ns = now_ns, .pkt = *pkt};
}

static enum pacer_reason judge(struct world *w, uint64_t now_ns, const struct pacer_packet *pkt)
{
	struct pacer_state state;
	struct pacer_walk walk = walk_in(w, &state, now_ns, pkt);

	return pacer_outcome_reason(judge_parsed(&walk));
}

static uint64_t when(struct world *w, uint64_t now_ns, const struct pacer_packet *pkt)
{
	struct pacer_state state;
	struct pacer_walk walk = walk_in(w, &state, now_ns, pkt);
	struct parsed frame = {*pkt, now_ns};

	if (now.bin.rule[0].opens)
		walk.pkt.key[PACER_WORD_META] |= pacer_path_flow(&frame, &walk, 0);
	return pacer_rule_when(&walk);
}

static bool admitted_at(uint64_t now_ns, const struct pacer_packet *pkt)
{
	there = here;
	return judge(&there, now_ns, pkt) == PACER_ADMIT;
}

static void begin(const char *text)
{
	assert_int_equal(load(text), 0);
	assert_true(now.plan.lines <= LINES);
	memset(&here, 0, sizeof(here));
	for (uint32_t i = 0; i < PACER_SECRETS; i++)
		secret[0][i] = draw();
}

/* What a rule's denials rest on: each kind alone, and together. */
static const char *const pool[] = {
    "{key: src, gap: 3ms}",
    "{key: src, gap: 700us, rows: 1}",
    "{key: all, gap: 90us}",
    "{key: src, packets: 3, window: 20ms, slots: 4}",
    "{key: src, packets: 300, window: 400ms, slots: 30}",
    "{key: src, bytes: 4000, window: 9ms, slots: 10}",
    "{key: src, bytes: 5G, window: 100ms, slots: 3}",
    "{key: \"src/24,56\", packets: 9, window: 15ms, slots: 1}",
    "{key: all, packets: 40, window: 30ms}",
    "{key: src, rate: 500/s, burst: 4}",
    "{key: src, rate: 7/s, burst: 2}",
    "{key: src, rate: 10Mbit/s, burst: 4000}",
    "{key: all, rate: 3kpps, burst: 20}",
    "{key: src, rate: 333/m, burst: 3, entries: 3}",
    "{key: all, uses: 30, cooldown: 40ms}",
    "{key: all, uses: 7, cooldown: 3ms, max_cooldown: 4ms, threshold: 2}",
    "{key: src, packets: 2, window: 8ms, entries: 3}, {key: src, gap: 1ms}",
};

static const char *policy_text(uint32_t run)
{
	uint32_t i, n = run < ARRAY(pool) ? 1 : between(1, 3);

	say_again();
	say("clock: exact\nmemory: 64Ki\nbans: 8\nrules:\n- name: a\n");
	if (run >= ARRAY(pool) && !(draw() % 3)) /* what is of all bans nobody */
		say("  ban: %s\n  limits:\n  - {key: src, packets: 50, window: 40ms}\n",
		    draw() & 1 ? "5ms" : "80us");
	else
		say("  limits:\n");
	for (i = 0; i < n; i++) {
		char one[160];

		snprintf(one, sizeof(one), "%s",
			 pool[run < ARRAY(pool) ? run : draw() % ARRAY(pool)]);
		if (strstr(one, "}, {")) { /* two limits of one key */
			*strstr(one, "}, {") = 0;
			say("  - %s}\n  - %s\n", one, "{key: src, gap: 1ms}");
		} else {
			say("  - %s\n", one);
		}
	}
	return doc.s;
}

static struct pacer_packet random_packet(void)
{
	struct pacer_packet pkt = {.family = draw() & 1 ? PACER_FAMILY_4 : PACER_FAMILY_6,
				   .proto = 17,
				   .len_bytes = draw() % 4 ? between(60, 1514) : 60};

	pkt.key[PACER_WORD_SADDR] = draw() % 4 ? 1 : between(1, SOURCES);
	return pkt;
}

/* What a denial says of itself is so. Returns the time, or PACER_NEVER. */
static uint64_t check_denial(uint64_t now_ns, const struct pacer_packet *pkt)
{
	uint64_t at_ns = when(&here, now_ns, pkt);

	if (at_ns == PACER_NEVER) { /* it costs more than the limit */
		assert_false(admitted_at(now_ns + (1ull << 60), pkt));
		return at_ns;
	}
	if (at_ns <= now_ns)
		fail_msg("denied at %llu, and the time is %llu\n%s", (unsigned long long)now_ns,
			 (unsigned long long)at_ns, doc.s);
	if (admitted_at(at_ns - 1, pkt))
		fail_msg("admitted a ns before %llu\n%s", (unsigned long long)at_ns, doc.s);
	if (!admitted_at(at_ns, pkt))
		fail_msg("denied at %llu (%s), the time told at %llu\n%s",
			 (unsigned long long)at_ns, pacer_reason_name(judge(&there, at_ns, pkt)),
			 (unsigned long long)now_ns, doc.s);
	return at_ns;
}

/* One of the rule's limits is draining: until soon, and when that is over, until soon again. */
static void drain(struct pacer_limiter *t, uint64_t now_ns)
{
	if (t && t->until_ns <= now_ns)
		t->until_ns = now_ns + magnitude(1, 30 * MS);
}

/* Each of the rule's rates begins soon, and when it has begun, mostly soon again. */
static void begin_rates(struct pacer_rule *rule, uint64_t now_ns)
{
	for (uint32_t k = 0; k < rule->n_limiters; k++) {
		struct pacer_limiter *t = &rule->limiter[k];

		if (t->kind == PACER_LIMITER_RATE && t->rate.begin_ns <= now_ns && draw() % 8)
			t->rate.begin_ns = now_ns + magnitude(1, 30 * MS);
	}
}

static bool begins_between(const struct pacer_rule *rule, uint64_t now_ns, uint64_t at_ns)
{
	for (uint32_t k = 0; k < rule->n_limiters; k++) {
		const struct pacer_limiter *t = &rule->limiter[k];

		if (t->kind == PACER_LIMITER_RATE && t->rate.begin_ns > now_ns &&
		    t->rate.begin_ns <= at_ns)
			return true;
	}
	return false;
}

static uint64_t next_time(uint64_t now_ns, uint64_t at_ns)
{
	if (at_ns && at_ns != PACER_NEVER && draw() % 8 == 0)
		return at_ns;
	return now_ns + (draw() % 3 ? magnitude(0, 300000) : magnitude(0, 30 * MS));
}

static void test_when(void **unused)
{
	uint32_t by[PACER_REASON_COUNT] = {0}, run, i, drained = 0, begun = 0;

	(void)unused;
	oracle_seed(91);
	for (run = 0; run < 500; run++) {
		uint64_t now_ns = SECOND + draw() % SECOND, at_ns = 0;
		struct pacer_rule *rule = &now.bin.rule[0];
		struct pacer_limiter *drains = NULL;

		begin(policy_text(run % 300));
		if (run >= 300)
			drains = &rule->limiter[draw() % rule->n_limiters];
		for (i = 0; i < 300; i++) {
			struct pacer_packet pkt = random_packet();
			enum pacer_reason reason;

			now_ns = next_time(now_ns, at_ns);
			drain(drains, now_ns);
			if (run >= 400)
				begin_rates(rule, now_ns);
			reason = judge(&here, now_ns, &pkt);
			by[reason]++;
			at_ns = reason == PACER_ADMIT ? 0 : check_denial(now_ns, &pkt);
			drained += drains && at_ns == drains->until_ns;
			begun += at_ns != PACER_NEVER && begins_between(rule, now_ns, at_ns);
		}
	}
	assert_true(drained > 1000 && begun > 1000);
	assert_true(by[PACER_ADMIT] > 1000 && by[PACER_DENY_GAP] > 1000);
	assert_true(by[PACER_DENY_WINDOW] > 1000 && by[PACER_DENY_RATE] > 1000);
	assert_true(by[PACER_DENY_THROTTLE] > 1000 && by[PACER_DENY_BAN] > 1000);
	assert_int_equal(by[PACER_DENY_NO_STATE] + by[PACER_DENY_CONTENDED], 0);
}

/* Of several limits, whichever is last; of a ban, its end. */
static void test_timeline(void **unused)
{
	struct pacer_packet pkt = {.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 100};

	(void)unused;
	oracle_seed(92);
	begin("clock: exact\nmemory: 64Ki\nbans: 8\nrules:\n- name: a\n  limits:\n"
	      "  - {key: src, packets: 2, window: 10ms, slots: 5}\n"
	      "  - {key: src, rate: 10/s, burst: 3}\n");
	assert_int_equal(when(&here, SECOND, &pkt), 0);
	assert_int_equal(judge(&here, SECOND, &pkt), PACER_ADMIT);
	assert_int_equal(judge(&here, SECOND, &pkt), PACER_ADMIT);
	/* The window's first slot is forgotten after five more; the rate has one left. */
	assert_int_equal(when(&here, SECOND, &pkt), SECOND + 12 * MS);
	assert_int_equal(judge(&here, SECOND + 12 * MS, &pkt), PACER_ADMIT);
	assert_int_equal(when(&here, SECOND + 12 * MS, &pkt), SECOND + 100 * MS);
	pkt.len_bytes = 1 << 21;
	begin("clock: exact\nmemory: 64Ki\nrules:\n- name: a\n  limits:\n"
	      "  - {key: src, bytes: 9000, window: 1s}\n");
	assert_true(when(&here, SECOND, &pkt) == PACER_NEVER);
}

#define RULE "clock: exact\nmemory: 64Ki\nbans: 8\nrules:\n- name: a\n"

static const struct pacer_packet one = {.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 100};

static struct pacer_limiter *limiter_of(uint32_t kind)
{
	struct pacer_rule *rule = &now.bin.rule[0];
	uint32_t k;

	for (k = 0; k < rule->n_limiters && rule->limiter[k].kind != kind; k++)
		;
	assert_true(k < rule->n_limiters);
	return &rule->limiter[k];
}

/* Packets until one is denied: then, of that. */
static uint64_t denied(uint64_t now_ns)
{
	while (judge(&here, now_ns, &one) == PACER_ADMIT)
		;
	return check_denial(now_ns, &one);
}

/* As one rate drains, the other one begins: with nothing of its burst, whichever is asked first. */
static void test_begins_as_another_ends(void **unused)
{
	(void)unused;
	oracle_seed(93);
	for (uint32_t drains = 0; drains < 2; drains++) {
		struct pacer_limiter *t = now.bin.rule[0].limiter;

		begin(RULE "  limits:\n  - {key: src, rate: 5/s, burst: 2}\n"
			   "  - {key: src, rate: 5/s, burst: 3}\n");
		t[drains].until_ns = t[!drains].rate.begin_ns = SECOND + 50 * MS;
		assert_in_range(denied(SECOND), SECOND + 250 * MS, SECOND + 250 * MS + 1);
	}
}

/* The packet waits for a window, or for its ban, and a rate that admits it now begins meanwhile. */
static void test_begins_meanwhile(void **unused)
{
	(void)unused;
	begin(RULE "  limits:\n  - {key: src, packets: 2, window: 20ms, slots: 4}\n"
		   "  - {key: src, rate: 5/s, burst: 9}\n");
	limiter_of(PACER_LIMITER_RATE)->rate.begin_ns = SECOND + 24 * MS;
	assert_in_range(denied(SECOND), SECOND + 224 * MS, SECOND + 224 * MS + 1);
	begin(RULE "  ban: 40ms\n  limits:\n  - {key: src, packets: 2, window: 2ms, slots: 4}\n"
		   "  - {key: src, rate: 5/s, burst: 9}\n");
	limiter_of(PACER_LIMITER_RATE)->rate.begin_ns = SECOND + 24 * MS;
	assert_in_range(denied(SECOND), SECOND + 224 * MS, SECOND + 224 * MS + 1);
}

/* ... and as it is over, the next one has begun, down to the last: in either order. */
static void test_each_begins_meanwhile(void **unused)
{
	struct pacer_limiter *t = now.bin.rule[0].limiter;
	uint32_t n, k, nth;

	(void)unused;
	for (uint32_t up = 0; up < 2; up++) {
		say_again();
		say(RULE "  limits:\n  - {key: src, gap: 20ms}\n");
		for (n = 0; n < PACER_LIMITERS_MAX - 1; n++)
			say("  - {key: src, rate: 5/s, burst: %u}\n", 9 + n);
		begin(doc.s);
		assert_int_equal(now.bin.rule[0].n_limiters, n + 1);
		for (k = nth = 0; k <= n; k++)
			if (t[k].kind == PACER_LIMITER_RATE)
				t[k].rate.begin_ns =
				    SECOND + 10 * MS + (up ? nth++ : n - ++nth) * 190 * MS;
		assert_int_equal(nth, n);
		assert_in_range(denied(SECOND), SECOND + 1350 * MS, SECOND + 1350 * MS + 1);
	}
}

/*
 * What a CPU is told that has a lease, while a gap asks it to wait until so long after that; the
 * other uses are gone by then, and the limit is another one. Returns how long after.
 */
static uint64_t denied_on_lease(uint64_t after_ns, uint32_t limit)
{
	struct pacer_throttle_lease lease, *mine;
	struct pacer_packet other = one;
	struct pacer_limiter *t;
	uint64_t spent_ns;

	begin(RULE "  limits:\n  - {key: src, gap: 1ms}\n"
		   "  - {key: all, uses: 100, cooldown: 1s, threshold: 40}\n");
	t = limiter_of(PACER_LIMITER_THROTTLE);
	mine = &here.lease[t->base];
	assert_int_equal(judge(&here, SECOND, &one), PACER_ADMIT);
	assert_true(mine->left > 1 && mine->until_ns > SECOND);
	lease = *mine;
	spent_ns = after_ns ? lease.until_ns : SECOND;
	memset(mine, 0, sizeof(*mine)); /* another CPU's */
	for (uint32_t i = 1; i <= 200; i++) {
		other.key[PACER_WORD_SADDR] = i;
		(void)judge(&here, spent_ns, &other);
	}
	assert_int_equal(here.throttle[t->base].held, 100);
	*mine = lease;
	t->throttle.limit = limit;
	limiter_of(PACER_LIMITER_GAP)->gap_ns = lease.until_ns - SECOND + after_ns;
	return check_denial(spent_ns, &one) - lease.until_ns;
}

/* A CPU has what it leased until that ends, and hands it back then: of a limit as it is by then. */
static void test_on_lease(void **unused)
{
	(void)unused;
	oracle_seed(94);
	assert_int_equal(denied_on_lease(0, 100), 0);
	assert_int_equal(denied_on_lease(1, 100), 1);
	assert_int_equal(denied_on_lease(0, 50), 0);
	assert_true(denied_on_lease(1, 59) > SECOND); /* the second bucket's, too */
}

/* --- limits of new flows -----------------------------------------------------------------------
 */

#define NEW_FLOWS \
	"clock: exact\nmemory: 64Ki\nbans: 8\nflows: 64\nflow_idle: %s\nrules:\n- name: a\n"

/* A flow that is known is forgotten while its packet waits for a window, or for its ban. */
static void test_forgotten_meanwhile(void **unused)
{
	static const struct {
		const char *idle, *rest;
		uint64_t after_ns;
	} rows[] = {
	    {"5ms", "{key: src, packets: 3, window: 20ms, slots: 4}", 1000 * MS},
	    {"25ms", "{key: src, packets: 3, window: 20ms, slots: 4}", 1000 * MS},
	    {"26ms", "{key: src, packets: 3, window: 20ms, slots: 4}", 25 * MS},
	    {"26ms", "{key: src, packets: 3, window: 20ms, slots: 4}\n  ban: 30ms", 1000 * MS},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		say_again();
		say(NEW_FLOWS, rows[i].idle);
		say("  limits:\n  - {key: src, rate: 1/s, burst: 1, of: new}\n  - %s\n",
		    rows[i].rest);
		begin(doc.s);
		assert_in_range(denied(SECOND), SECOND + rows[i].after_ns,
				SECOND + rows[i].after_ns + 1);
	}
}

/* Of TCP a packet says so itself, and no silence makes it a SYN. */
static void test_of_tcp(void **unused)
{
	struct pacer_packet pkt = one;

	(void)unused;
	say_again();
	say(NEW_FLOWS, "5ms");
	say("  limits:\n  - {key: src, packets: 3, window: 20ms, slots: 4}\n"
	    "  - {key: src, rate: 1/s, burst: 1, of: new}\n");
	begin(doc.s);
	pkt.proto = PACER_IPPROTO_TCP;
	assert_int_equal(judge(&here, SECOND, &pkt), PACER_ADMIT); /* a SYN, as far as is known */
	pkt.key[PACER_WORD_META] |= PACER_META_KNOWN;
	while (judge(&here, SECOND, &pkt) == PACER_ADMIT)
		;
	assert_int_equal(check_denial(SECOND, &pkt), SECOND + 25 * MS);
}

/* Another CPU has just taken the line of the flow that was known: it is forgotten already. */
static void test_forgotten_just_now(void **unused)
{
	struct pacer_packet pkt = one;

	(void)unused;
	say_again();
	say(NEW_FLOWS, "26ms");
	say("  limits:\n  - {key: src, packets: 3, window: 20ms, slots: 4}\n"
	    "  - {key: src, rate: 1/s, burst: 3, of: new}\n");
	begin(doc.s);
	for (uint32_t i = 1; i <= 3; i++) {
		pkt.key[PACER_WORD_PORTS] = i;
		assert_int_equal(judge(&here, SECOND, &pkt), PACER_ADMIT);
	}
	pkt.key[PACER_WORD_PORTS] = 4;
	pkt.key[PACER_WORD_META] |= PACER_META_KNOWN;
	assert_in_range(when(&here, SECOND, &pkt), SECOND + 1000 * MS, SECOND + 1000 * MS + 1);
}

static const char *const pool_new[] = {
    "{key: src, gap: 3ms, of: new}",
    "{key: src, packets: 3, window: 20ms, slots: 4, of: new}",
    "{key: all, packets: 9, window: 30ms, of: new}",
    "{key: src, rate: 100/s, burst: 4, of: new}",
    "{key: src+dport, rate: 30/s, burst: 1, of: new}",
    "{key: all, uses: 30, cooldown: 40ms, of: new}",
};

/* Some of the limits are of new flows. */
static void say_new(uint32_t run)
{
	uint32_t i, at = draw() % ARRAY(pool_new), other = draw() % 5 + 1;

	say_again();
	say(NEW_FLOWS, run & 1 ? "3ms" : "17ms");
	say("%s  limits:\n", run % 3 ? "" : "  ban: 5ms\n");
	if (run % 3 == 0) /* what is of all bans nobody */
		say("  - {key: src, packets: 50, window: 40ms}\n");
	for (i = 0; i < 2; i++)
		say("  - %s\n", pool_new[(at + i * other) % ARRAY(pool_new)]);
	for (i = draw() % 2; i < 2; i++)
		say("  - %s\n", pool[draw() % (ARRAY(pool) - 1)]);
}

/* Few flows, of few sources: mostly known, and then silent for long. */
static void test_new_flows(void **unused)
{
	uint64_t by[2] = {0};
	uint32_t later = 0;

	(void)unused;
	oracle_seed(95);
	for (uint32_t run = 0; run < 400; run++) {
		uint64_t now_ns = SECOND + draw() % SECOND, at_ns = 0;

		say_new(run);
		begin(doc.s);
		for (uint32_t i = 0; i < 300; i++) {
			struct pacer_packet pkt = random_packet();
			struct pacer_state state;
			struct pacer_walk walk;

			pkt.key[PACER_WORD_PORTS] = between(1, 3);
			now_ns = next_time(now_ns, at_ns);
			walk = walk_in(&here, &state, now_ns, &pkt);
			at_ns = 0;
			if (pacer_outcome_reason(judge_parsed(&walk)) != PACER_ADMIT) {
				bool known = walk.pkt.key[PACER_WORD_META] & PACER_META_KNOWN;

				at_ns = check_denial(now_ns, &pkt);
				by[known]++;
				later += known && at_ns - now_ns >= now.bin.flows.idle_ns;
			}
		}
	}
	assert_true(by[0] > 1000 && by[1] > 1000 && later > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_timeline),
	    cmocka_unit_test(test_when),
	    cmocka_unit_test(test_begins_as_another_ends),
	    cmocka_unit_test(test_begins_meanwhile),
	    cmocka_unit_test(test_each_begins_meanwhile),
	    cmocka_unit_test(test_on_lease),
	    cmocka_unit_test(test_forgotten_meanwhile),
	    cmocka_unit_test(test_of_tcp),
	    cmocka_unit_test(test_forgotten_just_now),
	    cmocka_unit_test(test_new_flows),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
