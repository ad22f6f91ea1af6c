/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Another secret for the hash: what a rotation makes of limits, and of bans; that no limit is
 * passed across any is in test_across_changes.c, among all other changes.
 */
#include "applied.h"
#include "ban.h"
#include "parsed.h"
#include "live/rotate.h"

#define WIN   "{key: src, packets: 9, window: 1s}"
#define SMALL "{key: src, packets: 9, window: 1s, entries: 12}" /* 6 sets */
#define GAP   "{key: src, gap: 5ms, rows: 1}"
#define ALL   "{key: all, packets: 9, window: 1s}"
#define USES  "{key: all, uses: 100, cooldown: 1s}"

static __u64 secret[2][PACER_SECRETS];

static struct {
	void (*act)(void); /* what another does, before the access of this number */
	uint32_t at, steps;
} other;

void pacer_step(const volatile void *p)
{
	void (*act)(void) = other.act;

	(void)p;
	if (!act || other.steps++ != other.at)
		return;
	other.act = NULL; /* it has steps of its own */
	act();
	other.act = act;
}

static void draw_secrets(void)
{
	uint32_t i;

	for (i = 0; i < 2 * PACER_SECRETS; i++)
		secret[i / PACER_SECRETS][i % PACER_SECRETS] = draw();
}

static const struct pacer_limiter *limiter(uint32_t k)
{
	return &now.bin.rule[0].limiter[k];
}

/* ---- limits ---- */

static void test_limiters(void **unused)
{
	static const struct {
		const char *limits, *limiters;
	} cases[] = {
	    {WIN, "Rw~ Rw-"}, {SMALL, "Rw+ Rw-"},
	    {GAP, "Sg~ Sg-"}, {ALL, "Rw="},
	    {USES, "T="},     {WIN ", " GAP ", " ALL ", " USES, "Rw~ Sg~ Rw= Rw- Sg- T="},
	};
	uint32_t i, k;

	(void)unused;
	for (i = 0; i < ARRAY(cases); i++) {
		assert_int_equal(load(rule_of("clock: exact", cases[i].limits)), 0);
		assert_int_equal(now.bin.secret, 0);
		assert_int_equal(rotate(), 0);
		assert_string_equal(limiters_text(0), cases[i].limiters);
		assert_true(now.bin.secret == 1 && now.plan.rotated);
		for (k = 0; k < now.bin.rule[0].n_limiters; k++) {
			const struct pacer_limiter *t = limiter(k);

			assert_true(!compile_hashed(t) || t->secret == !t->until_ns);
			assert_true(!t->until_ns || t->until_ns == COMPILE_UNTIL_SET);
		}
		/* and nothing but a rotation changes it again */
		time_draining();
		assert_int_equal(apply(doc.s), 0);
		assert_true(now.bin.secret == 1 && !now.plan.rotated);
		assert_null(strpbrk(limiters_text(0), "+~"));
		assert_memory_equal(before.bin.rule[0].limiter, now.bin.rule[0].limiter,
				    sizeof(now.bin.rule[0].limiter));
	}
}

/* The two limits of one limit: the same but for the secret and the end, in the same lines if large.
 */
static void test_lines(void **unused)
{
	struct pacer_limiter a, b;
	uint64_t used;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	used = now.plan.lines_used;
	assert_int_equal(rotate(), 0);
	assert_int_equal(now.plan.lines_used, used);
	a = *limiter(0);
	b = *limiter(1);
	b.secret = 1;
	b.until_ns = 0;
	assert_memory_equal(&a, &b, sizeof(a));

	assert_int_equal(load(rule_of("clock: exact", SMALL)), 0);
	used = now.plan.lines_used;
	assert_int_equal(rotate(), 0);
	assert_int_equal(now.plan.lines_used, 2 * used);
	assert_true(limiter(0)->sets == limiter(1)->sets &&
		    limiter(0)->shared == limiter(1)->shared);
	assert_true(limiter(0)->base >= limiter(1)->base + compile_limiter_lines(limiter(1)));
}

/* Neither of the two may take the other's records for idle before their time. */
static void test_idle(void **unused)
{
	uint64_t idle_ns;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	idle_ns = limiter(0)->idle_ns;
	assert_int_equal(rotate(), 0);
	time_draining();
	assert_int_equal(apply(rule_of("clock: exact", WIN ", {key: src, gap: 1m}")), 0);
	assert_string_equal(limiters_text(0), "Rgw= Rw-");
	assert_true(limiter(0)->idle_ns > 60 * SECOND);
	assert_true(limiter(1)->idle_ns == limiter(0)->idle_ns);
	assert_int_equal(apply(rule_of("clock: exact", WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw+ Rgw- Rw-");
	assert_true(limiter(1)->idle_ns == limiter(2)->idle_ns &&
		    limiter(1)->idle_ns > 60 * SECOND);
	time_draining();
	host.now_ns += 62 * SECOND;
	assert_int_equal(apply(rule_of("clock: exact", WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw=");
	assert_true(limiter(0)->idle_ns == idle_ns);
}

/* With a change of policy in one step, the old ones hold what they would hold without a rotation.
 */
static void test_with_a_change(void **unused)
{
	struct compile_previous previous;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN ", " GAP)), 0);
	previous =
	    (struct compile_previous){now.policy, &now.bin, now.plan.lines, true, false, false};
	assert_int_equal(apply_after(rule_of("clock: exact", "{key: src, packets: 5, window: 1s}, "
							     "{key: dst, packets: 9, window: 1s}"),
				     &previous),
			 0);
	assert_string_equal(limiters_text(0), "Rw~ Rw+ Sg- Rw-");
	assert_true(limiter(0)->secret && limiter(1)->secret && !limiter(2)->secret &&
		    !limiter(3)->secret);
	assert_true(limiter(0)->window.limit == 5 && limiter(3)->window.limit == 5);
}

/* A limit under the old secret is no other's past: it would have its lines without its secret. */
static void test_no_successor(void **unused)
{
	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	assert_int_equal(rotate(), 0);
	time_draining();
	assert_int_equal(apply(rule_of("clock: exact", WIN ", {key: src, packets: 5, window: 1s}")),
			 0);
	assert_string_equal(limiters_text(0), "Rw= Rw+ Rw-");
	/* but one record for all is the same under both */
	assert_int_equal(load(rule_of("clock: exact", ALL ", " WIN)), 0);
	assert_int_equal(apply(rule_of("clock: exact", WIN)), 0);
	time_draining();
	assert_int_equal(rotate(), 0);
	time_draining();
	assert_int_equal(apply(rule_of("clock: exact", ALL ", " WIN)), 0);
	assert_string_equal(limiters_text(0), "Rw= Rw= Rw-");
}

#define OF(n) "{key: src, packets: " #n ", window: 1s}"

/* The one that a rotation left takes the value that the one in force gets: it counts what came
 * before, by that value, too.
 */
static void test_values(void **unused)
{
	static const struct {
		const char *from, *to, *limiters;
		uint32_t value;	 /* of what was left */
		uint32_t left;	 /* which it is */
		const char *via; /* NULL, or a change in between */
	} cases[] = {
	    {OF(9), OF(4), "Rw= Rw-", 4, 1, NULL},
	    {OF(9), OF(20), "Rw= Rw-", 20, 1, NULL},
	    {OF(9), OF(9), "Rw= Rw-", 9, 1, NULL},
	    {SMALL, "{key: src, packets: 4, window: 1s, entries: 12}", "Rw= Rw-", 4, 1, NULL},
	    {OF(9) ", " GAP, OF(4) ", " GAP, "Rw= Sg= Rw- Sg-", 4, 2, NULL},
	    {OF(9) ", " ALL, OF(4) ", " ALL, "Rw= Rw= Rw-", 4, 2, NULL},
	    /* another limit's value, another key's, another shape's are not its own */
	    {OF(9), OF(9) ", " OF(4), "Rw= Rw+ Rw-", 9, 2, NULL},
	    {OF(9), OF(20) ", " OF(4), "Rw+ Rw= Rw-", 4, 2, NULL},
	    {OF(9), OF(20) ", {key: dst, packets: 4, window: 1s}", "Rw+ Rw+ Rw- Rw-", 9, 3, NULL},
	    {OF(9) ", {key: dst, packets: 8, window: 1s}",
	     OF(9) ", {key: dst, packets: 3, window: 1s}", "Rw= Rw= Rw- Rw-", 9, 2, NULL},
	    {OF(9), "{key: src, packets: 4, window: 2s}", "Rw+ Rw- Rw-", 9, 2, NULL},
	    {OF(9) ", {key: dst, packets: 9, window: 1s}",
	     OF(9) ", {key: dst, packets: 3, window: 1s}", "Rw= Rw= Rw- Rw-", 9, 2, NULL},
	    {OF(5) ", " OF(9), OF(4) ", " OF(9), "Rw= Rw= Rw- Rw-", 9, 3, NULL},
	    {"{key: src, packets: 9, window: 1s, slots: 5}, " OF(9),
	     "{key: src, packets: 4, window: 1s, slots: 5}, " OF(9), "Rw= Rw= Rw- Rw-", 9, 3, NULL},
	    /* what came since is no twin; a lower value counts whatever goes with it */
	    {OF(9), "{key: dst, packets: 3, window: 1s}, " OF(9), "Rw= Rw= Rw-", 9, 2,
	     "{key: dst, packets: 9, window: 1s}, " OF(9)},
	    {OF(9), OF(4) ", " OF(9), "Rw= Rw= Rw-", 9, 2, OF(5) ", " OF(9)},
	    {OF(9), "{key: src, packets: 4, window: 1s, slots: 5}, " OF(8), "Rw= Rw= Rw-", 8, 2,
	     "{key: src, packets: 9, window: 1s, slots: 5}, " OF(9)},
	    {OF(9), OF(4), "Rw= Rw- Rw-", 4, 2, OF(9) ", {key: dst, packets: 9, window: 1s}"},
	};

	(void)unused;
	for (uint32_t i = 0; i < ARRAY(cases); i++) {
		const struct pacer_limiter *left;

		assert_int_equal(load(rule_of("clock: exact", cases[i].from)), 0);
		assert_int_equal(rotate(), 0);
		time_draining();
		host.now_ns += MS;
		if (cases[i].via)
			assert_int_equal(apply(rule_of("clock: exact", cases[i].via)), 0);
		assert_int_equal(apply(rule_of("clock: exact", cases[i].to)), 0);
		assert_string_equal(limiters_text(0), cases[i].limiters);
		left = limiter(cases[i].left);
		assert_int_equal(left->window.limit, cases[i].value);
		assert_true(!left->secret && left->until_ns);
		assert_true(left->generation == (cases[i].value != 9));
	}
}

/* A longer gap is kept for as long as it needs, a shorter one as it was: of either kind. */
static void test_gaps(void **unused)
{
	static const struct {
		const char *from, *to;
		uint64_t gap_ns, more_ns;
	} cases[] = {
	    {"{key: src, gap: 50ms, rows: 1}", "{key: src, gap: 90ms, rows: 1}", 90 * MS, 40 * MS},
	    {"{key: src, gap: 50ms, rows: 1}", "{key: src, gap: 50ms, rows: 1}", 50 * MS, 0},
	    {"{key: src, gap: 50ms, rows: 1}", "{key: src, gap: 20ms, rows: 1}", 50 * MS, 0},
	    {OF(9) ", {key: src, gap: 9s}", OF(9) ", {key: src, gap: 19s}", 19 * SECOND,
	     10 * SECOND},
	};

	(void)unused;
	for (uint32_t i = 0; i < ARRAY(cases); i++) {
		uint64_t until_ns;

		assert_int_equal(load(rule_of("clock: exact", cases[i].from)), 0);
		assert_int_equal(rotate(), 0);
		time_draining();
		until_ns = compile_drained_ns(&now.bin);
		assert_int_equal(apply(rule_of("clock: exact", cases[i].to)), 0);
		assert_int_equal(limiter(now.bin.rule[0].n_limiters - 1)->gap_ns, cases[i].gap_ns);
		time_draining();
		assert_true(limiter(now.bin.rule[0].n_limiters - 1)->until_ns ==
			    until_ns + cases[i].more_ns);
	}
}

/* Bans are asked under both secrets until the tools have moved them, if their table goes on. */
static void test_moving(void **unused)
{
	static const char *const size[] = {"bans: 64", "bans: 128", ""};
	struct compile_previous previous;
	uint32_t i;

	(void)unused;
	for (i = 0; i < 6; i++) {
		say_again();
		say("bans: 64\nrules:\n- {name: a, ban: 9s, limits: [" WIN "]}\n");
		assert_int_equal(load(doc.s), 0);
		previous = (struct compile_previous){now.policy, &now.bin, now.plan.lines,
						     i < 3,	 false,	   false};
		say_again();
		say("%s\nrules:\n- {name: a, %slimits: [" WIN "]}\n", size[i % 3],
		    i % 3 < 2 ? "ban: 9s, " : "");
		assert_int_equal(apply_after(doc.s, &previous), 0);
		assert_int_equal(now.bin.bans.moving, !i);
		time_draining();
		host.now_ns += 9 * SECOND;
		assert_int_equal(rotate(), i ? 0 : -1);
		assert_true(i || strstr(error.text, "wait for room"));
		assert_int_equal(now.bin.bans.moving, i % 3 < 2);
	}
}

/* Not before the old secret is out of use; then the first one's place is used again. */
static void test_twice(void **unused)
{
	uint64_t until_ns;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	assert_int_equal(rotate(), 0);
	assert_true(compile_drained_ns(&now.bin) == COMPILE_UNTIL_SET);
	assert_int_equal(rotate(), -1);
	assert_non_null(strstr(error.text, "cut off"));
	time_draining();
	until_ns = compile_drained_ns(&now.bin);
	assert_true(until_ns == host.now_ns + limiter(1)->idle_ns);
	assert_int_equal(rotate(), -1);
	assert_non_null(strstr(error.text, "needed for another 1."));
	host.now_ns = until_ns + RESOLUTION;
	assert_int_equal(rotate(), -1);
	host.now_ns++;
	assert_int_equal(rotate(), 0);
	assert_string_equal(limiters_text(0), "Rw~ Rw-");
	assert_true(now.bin.secret == 0 && limiter(0)->secret == 0 && limiter(1)->secret == 1);
	/* a limit that was draining before, under the secret that now is the old one, counts as
	 * well
	 */
	assert_int_equal(load(rule_of("clock: exact", WIN)), 0);
	assert_int_equal(apply(rule_of("clock: exact", GAP)), 0);
	time_draining();
	assert_int_equal(rotate(), 0);
	assert_string_equal(limiters_text(0), "Sg~ Rw- Sg-");
	time_draining();
	host.now_ns += 100 * MS;
	assert_int_equal(rotate(), -1);
	host.now_ns += 2 * SECOND;
	assert_int_equal(rotate(), 0);
}

static void test_refused(void **unused)
{
	uint32_t i;

	(void)unused;
	say_again();
	say("rules:\n- name: a\n  limits:\n");
	for (i = 1; i <= 5; i++)
		say("  - {key: src, packets: 9, window: %us}\n", i);
	assert_int_equal(load(doc.s), 0);
	assert_int_equal(rotate(), -1);
	assert_non_null(
	    strstr(error.text, "rule a: a rule holds up to 8 limits, and a new secret"));
	assert_int_equal(load(rule_of("memory: 1K", SMALL)), 0);
	assert_int_equal(rotate(), -1);
	assert_non_null(strstr(error.text, "no room"));
}

/* ---- what a rotation costs the honest ---- */

#define LINES 1024u
#define KEYS  2000u

static struct pacer_line lines[LINES];

static enum pacer_reason judge(uint32_t key)
{
	struct pacer_state state = {
	    .table = {lines, LINES}, .policy = &now.bin, .secret = secret[0]};
	struct pacer_walk walk = {.state = &state, .now_ns = host.now_ns};

	walk.pkt = (struct pacer_packet){.family = PACER_FAMILY_4, .len_bytes = 100};
	walk.pkt.key[PACER_WORD_SADDR] = key;
	return pacer_outcome_reason(judge_parsed(&walk));
}

/*
 * A key is denied for nothing only where its two places fall together: as often as is said, and not
 * after the old secret's end; all others have what they are entitled to.
 */
static void false_denials(const char *limits, uint32_t shared)
{
	uint32_t i, k, contended = 0, sets = 0, wrong = 0, after = 0;

	for (i = 0; i < 400; i++) {
		memset(lines, 0, sizeof(lines));
		draw_secrets();
		host.now_ns = SECOND;
		assert_int_equal(load(rule_of("clock: exact\nmemory: 64K", limits)), 0);
		sets = limiter(0)->sets;
		for (k = 0; k < 10; k++)
			assert_true(judge(k) == PACER_ADMIT || shared);
		host.now_ns += 60 * MS;
		assert_int_equal(rotate(), 0);
		assert_non_null(strchr(limiters_text(0), '~'));
		time_draining();
		for (k = 0; k < 20; k++) { /* those of before, and as many that are new */
			enum pacer_reason reason = judge(k);

			contended += reason == PACER_DENY_CONTENDED;
			wrong += reason != PACER_ADMIT && reason != PACER_DENY_CONTENDED;
		}
		host.now_ns = compile_drained_ns(&now.bin) + SECOND;
		for (k = 0; k < 20; k++)
			after += judge(k) != PACER_ADMIT;
	}
	print_message("of 8000 keys in %u sets %u contended, %u shared, %u after\n", sets,
		      contended, wrong, after);
	assert_true(contended > 0 && contended < 8000 * 2 / sets);
	assert_true(wrong <= shared && after <= shared);
}

static void test_false_denials(void **unused)
{
	(void)unused;
	false_denials("{key: src, packets: 9, window: 1s, entries: 200}", 0);
	false_denials("{key: src, gap: 50ms, rows: 1, entries: 700}", 500);
}

/* ---- bans ---- */

#define BANS_MAX 256u

static struct pacer_table table = {lines, LINES};
static struct pacer_bans bans;

struct banned {
	struct pacer_ban_key key;
	uint64_t until_ns;
};

static struct banned banned[BANS_MAX];
static uint32_t n_banned;

static struct pacer_ban_ask ask(const struct pacer_ban_key *key, uint32_t which)
{
	struct pacer_ban_ask q = {&table, &bans, host.now_ns, {0, 0}, *key, 0};
	const __u64 *by = secret[which];

	q.hash = key->key_id & PACER_KEY_V6
		     ? pacer_hash_words(by, PACER_HASH_FAMILY6, key->word, PACER_KEY_WORDS)
		     : pacer_hash_words(by, PACER_HASH_FAMILY4, key->word, 4);
	return q;
}

static int is_banned(const struct pacer_ban_key *key, uint32_t which)
{
	struct pacer_ban_ask q = ask(key, which);

	return pacer_ban_maybe(&table, &bans, q.hash, q.now_ns) && pacer_ban_find(&q);
}

static struct pacer_ban_key any_key(void)
{
	struct pacer_ban_key key = {1 + draw() % 3, PACER_KEY_ID(0, 32, 64, 0, 0), {draw(), 0}};

	if (draw() & 1)
		key.key_id |= PACER_KEY_V6;
	key.word[1] = draw() & 1 ? draw() : 0;
	return key;
}

static void ban_some(uint32_t n, uint32_t which)
{
	while (n--) {
		struct banned b = {any_key(), host.now_ns + between(1, 100) * SECOND};
		struct pacer_ban_ask q = ask(&b.key, which);

		if (pacer_ban_add(&q, b.until_ns) == PACER_BANNED)
			banned[n_banned++] = b;
	}
}

static void begin_bans(uint32_t sets)
{
	memset(lines, 0, sizeof(lines));
	bans =
	    (struct pacer_bans){.base = 1, .sets = sets, .filter = 1 + 4 * sets, .filter_mask = 63};
	n_banned = 0;
	host.now_ns = SECOND;
	draw_secrets();
}

/* Each is banned until its time by one of the secrets, by the new one alone if none was left. */
static void assert_bans(size_t left)
{
	uint32_t i, old = 0;

	for (i = 0; i < n_banned; i++) {
		host.now_ns = banned[i].until_ns - 1;
		old += !is_banned(&banned[i].key, 1);
		assert_true(is_banned(&banned[i].key, 0) || is_banned(&banned[i].key, 1));
		host.now_ns++;
		assert_true(!is_banned(&banned[i].key, 0) && !is_banned(&banned[i].key, 1));
	}
	assert_true(old <= left);
	host.now_ns = SECOND;
}

/* Those that run and are not where the new secret has them. */
static size_t waiting(void)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < bans.sets * PACER_BAN_WAYS; i++) {
		const struct pacer_line *line = &lines[bans.base + i];
		struct pacer_ban_key key = {line->ban_rule, line->ban_key_id, {0}};
		struct pacer_ban_ask q;

		memcpy(key.word, line->ban_key, sizeof(key.word));
		q = ask(&key, 1);
		n += line->ban_until_ns > host.now_ns &&
		     pacer_ban_set(&bans, q.hash, 0) != bans.base + i - i % PACER_BAN_WAYS &&
		     pacer_ban_set(&bans, q.hash, 1) != bans.base + i - i % PACER_BAN_WAYS;
	}
	return n;
}

static void test_bans(void **unused)
{
	static const uint32_t sets[] = {1, 2, 16, 32};
	uint32_t i, moved = 0, stuck = 0;
	size_t left;

	(void)unused;
	for (i = 0; i < 2000; i++) {
		uint32_t n = sets[i % 4];

		begin_bans(n);
		ban_some(draw() % (n * 6), 0);
		ban_some(draw() % n, 1); /* since the switch */
		left = rotate_bans(&table, &bans, secret, 1, host.now_ns);
		assert_int_equal(left, waiting());
		/* what is left has no room: all that a ban left behind was used */
		assert_int_equal(rotate_bans(&table, &bans, secret, 1, host.now_ns), left);
		assert_bans(left);
		moved += !left && n_banned > 4;
		stuck += !!left;
		/* as they run out, there is room */
		host.now_ns += between(1, 99) * SECOND;
		left = rotate_bans(&table, &bans, secret, 1, host.now_ns);
		assert_int_equal(left, waiting());
		host.now_ns += 100 * SECOND;
		assert_int_equal(rotate_bans(&table, &bans, secret, 1, host.now_ns), 0);
	}
	assert_true(moved > 300 && stuck > 300);
}

/* Cut off at any entry, both secrets together still know every ban; and it can be taken up again.
 */
static void test_bans_cut_off(void **unused)
{
	uint32_t i;

	(void)unused;
	for (i = 0; i < 500; i++) {
		struct pacer_bans some;
		size_t left;

		begin_bans(16);
		ban_some(30, 0);
		/* the first sets alone: as far as it came */
		some = bans;
		for (some.sets = 1; some.sets < 16; some.sets++) {
			struct pacer_line copy[LINES];

			memcpy(copy, lines, sizeof(copy));
			left = rotate_bans(&table, &bans, secret, 1, host.now_ns);
			assert_bans(left);
			/* and a half of that: some lines of before, in both places or in one */
			if (draw() & 1)
				break;
			memcpy(lines, copy, sizeof(copy));
		}
		left = rotate_bans(&table, &bans, secret, 1, host.now_ns);
		assert_bans(left);
	}
}

/* A ban that is lifted comes back in neither place, nor does a longer one under the new secret end.
 */
static void test_bans_lifted(void **unused)
{
	struct pacer_ban_ask q;
	uint32_t i, k;

	(void)unused;
	for (i = 0; i < 300; i++) {
		begin_bans(32);
		ban_some(20, 0);
		for (k = 0; k < n_banned; k += 2) {
			q = ask(&banned[k].key, 1);
			banned[k].until_ns += 5 * SECOND;
			if (pacer_ban_add(&q, banned[k].until_ns) != PACER_BANNED)
				banned[k].until_ns -= 5 * SECOND;
		}
		assert_bans(rotate_bans(&table, &bans, secret, 1, host.now_ns));
	}
}

/* A ban's note goes with it: its number in a row, and whether somebody said so. */
static void test_notes_move(void **unused)
{
	const uint32_t note = 3u << PACER_BAN_ROW | PACER_BAN_OUTSIDE;
	uint32_t i, found = 0;

	(void)unused;
	begin_bans(16);
	ban_some(20, 0);
	for (i = 0; i < bans.sets * PACER_BAN_WAYS; i++)
		lines[bans.base + i].ban_note = lines[bans.base + i].ban_until_ns ? note : 0;
	assert_bans(rotate_bans(&table, &bans, secret, 1, host.now_ns));
	for (i = 0; i < bans.sets * PACER_BAN_WAYS; i++)
		if (lines[bans.base + i].ban_until_ns) {
			assert_int_equal(lines[bans.base + i].ban_note, note);
			found++;
		}
	assert_int_equal(found, n_banned);
}

/* As `ban del` does, entry for entry. */
static void lift_it(void)
{
	uint32_t i, lifted = 0;

	for (i = 0; i < bans.sets * PACER_BAN_WAYS; i++)
		lifted += pacer_ban_lift(&lines[bans.base + i], &banned[0].key, host.now_ns);
	assert_true(lifted <= 2);
}

/* Others that end with the first, where the new secret has them. */
static void ban_until_the_same(uint32_t n)
{
	while (n--) {
		struct banned b = {any_key(), banned[0].until_ns};
		struct pacer_ban_ask q = ask(&b.key, 1);

		if (pacer_ban_add(&q, b.until_ns) == PACER_BANNED)
			banned[n_banned++] = b;
	}
}

/* A ban that is lifted while it is on its way, be it at any access, is in neither place; and no
 * other ban with it.
 */
static void test_lifted_on_the_way(void **unused)
{
	uint32_t steps = 1, i, k, n = 0;

	(void)unused;
	for (i = 0; i < steps; i++, n++) {
		oracle_seed(83);
		do {
			begin_bans(4);
			ban_some(1, 0);
			ban_until_the_same(6);
		} while (!waiting() || n_banned < 7);
		other.act = lift_it;
		other.at = i;
		other.steps = 0;
		(void)rotate_bans(&table, &bans, secret, 1, host.now_ns);
		other.act = NULL;
		steps = other.steps;
		assert_false(is_banned(&banned[0].key, 0) || is_banned(&banned[0].key, 1));
		for (k = 1; k < n_banned; k++)
			assert_true(is_banned(&banned[k].key, 1));
	}
	assert_in_range(n, 50, 1000);
}

/* A packet that is judged while bans wait asks for them under both secrets, and bans under the new
 * one. Nobody does, once all have moved.
 */
static void test_packets_while_bans_move(void **unused)
{
	uint32_t key;

	(void)unused;
	memset(lines, 0, sizeof(lines));
	draw_secrets();
	host.now_ns = SECOND;
	say_again();
	say("clock: exact\nmemory: 64K\nbans: 64\nrules:\n- name: a\n  ban: 50s\n  limits: [{key: "
	    "src, "
	    "packets: 1, window: 1s, entries: 64}]\n");
	assert_int_equal(load(doc.s), 0);
	for (key = 1; key <= 4; key++) {
		assert_int_equal(judge(key), PACER_ADMIT);
		assert_int_equal(judge(key), PACER_DENY_WINDOW);
	}
	host.now_ns += 5 * SECOND;
	assert_int_equal(rotate(), 0);
	time_draining();
	assert_true(now.bin.bans.moving && now.bin.secret == 1);
	for (key = 1; key <= 4; key++)
		assert_int_equal(judge(key), PACER_DENY_BAN);
	assert_int_equal(judge(5), PACER_ADMIT);
	assert_int_equal(judge(5), PACER_DENY_WINDOW);
	now.bin.bans.moving = 0;
	assert_int_equal(judge(5), PACER_DENY_BAN);
	for (key = 1; key <= 4; key++)
		assert_int_equal(judge(key), PACER_ADMIT);
}

/* A rule of one limit that was rotated, and whose old limit is gone: by the new secret. */
static void test_one_limiter_of_the_new_secret(void **unused)
{
	uint64_t old_ns;

	(void)unused;
	memset(lines, 0, sizeof(lines));
	draw_secrets();
	host.now_ns = SECOND;
	assert_int_equal(load(rule_of("clock: exact\nmemory: 64K",
				      "{key: src, packets: 1, window: 60s, entries: 64}")),
			 0);
	assert_int_equal(rotate(), 0);
	time_draining();
	assert_int_equal(judge(1), PACER_ADMIT);
	assert_int_equal(judge(1), PACER_DENY_WINDOW);
	old_ns = compile_drained_ns(&now.bin);
	host.now_ns = old_ns - 50 * SECOND;
	assert_int_equal(judge(2), PACER_ADMIT);
	host.now_ns = old_ns + 1;
	assert_int_equal(apply(doc.s), 0);
	assert_string_equal(limiters_text(0), "Rw=");
	assert_true(now.bin.rule[0].plain);
	assert_int_equal(judge(2), PACER_DENY_WINDOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_limiters),
	    TEST(test_lines),
	    TEST(test_idle),
	    TEST(test_with_a_change),
	    TEST(test_no_successor),
	    TEST(test_values),
	    TEST(test_gaps),
	    TEST(test_moving),
	    TEST(test_twice),
	    TEST(test_refused),
	    TEST(test_false_denials),
	    TEST(test_bans),
	    TEST(test_bans_cut_off),
	    TEST(test_notes_move),
	    TEST(test_bans_lifted),
	    TEST(test_lifted_on_the_way),
	    TEST(test_packets_while_bans_move),
	    TEST(test_one_limiter_of_the_new_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
