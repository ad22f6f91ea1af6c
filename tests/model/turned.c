/* SPDX-License-Identifier: GPL-2.0-only */
#include <assert.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "scenario.h"
#include "turned.h"

#define SETS	    2
#define OF	    2 /* CPUs, and packets of each */
#define LIMIT	    2
#define WINDOW_NS   100
#define ODD_INVERSE 0x0e8b2f51u /* of PACER_HASH_ODD, modulo 2^32 */

/* Where the key is under the old secret and under the new one: its set, and its tag. */
struct place {
	uint32_t set, tag;
};

/* All times lie within one window, so that no key is entitled to more than LIMIT. */
struct turned {
	const char *name;
	struct place key[KEYS][2];
	struct packet before[AROUND]; /* by the old secret alone */
	struct packet cpu[OF][OF];    /* by both */
	struct packet after[AROUND];
	bool together; /* a key's two places are one record */
	unsigned int most, smallest;
	bool contended; /* is anything ever? */
	uint64_t states_min;
	void (*spoil)(struct pacer_rule *r);
	const char *finds;
};

static struct {
	const struct turned *scenario;
	struct pacer_line lines[LINES];
	struct pacer_policy policy;
	uint64_t secret[2][PACER_SECRETS];
	struct pacer_state state;
	struct packet admitted[LOG_MAX];
	unsigned int before, n, contended, most, smallest;
	char fault[EXPLORE_FAULT_MAX];
} s;

#define FAULT(...) (snprintf(s.fault, sizeof(s.fault), __VA_ARGS__), s.fault)

static enum pacer_reason judge(const struct packet *p)
{
	struct pacer_state own = s.state; /* this CPU's */
	struct pacer_walk w = {.state = &own, .now_ns = p->now_ns};
	uint32_t i;

	w.pkt.family = PACER_FAMILY_4;
	for (i = 0; i < 2; i++) {
		const struct place *at = &s.scenario->key[p->key][i];
		uint32_t place = at->set ? 1u << 31 : 0;

		/* Both secrets read words of their own, and change nothing of them. */
		w.pkt.key[i ? PACER_WORD_PORTS : PACER_WORD_SADDR] =
		    pacer_hash_fold(place * ODD_INVERSE);
		w.pkt.key[i ? PACER_WORD_META : PACER_WORD_DADDR] = pacer_hash_fold(at->tag);
	}
	return pacer_outcome_reason(judge_parsed(&w));
}

static void judge_in_turn(const struct packet *p, enum pacer_reason *reason)
{
	*reason = judge(p);
	if (*reason == PACER_ADMIT)
		s.admitted[s.n++] = *p;
}

static unsigned int admitted(uint32_t key)
{
	unsigned int sum = 0, i;

	for (i = 0; i < s.n; i++)
		sum += s.admitted[i].key == key;
	return sum;
}

static int width(void *arg, size_t offset)
{
	(void)arg;
	return offset % sizeof(struct pacer_line) == offsetof(struct pacer_line, head_ns) ? 8 : 4;
}

static void run(void *arg, int cpu)
{
	const struct packet *p = s.scenario->cpu[cpu];
	int i;

	(void)arg;
	for (i = 0; i < OF && p[i].key; i++) {
		uint64_t note[EXPLORE_NOTE_WORDS] = {p[i].key, p[i].now_ns};

		note[2] = judge(&p[i]);
		explore_note(note, 0);
		explore_forget();
	}
}

static const char *check_admitted(void)
{
	uint32_t key;

	for (key = 1; key < KEYS; key++)
		if (admitted(key) > LIMIT)
			return FAULT("G1: key %u has %u in a window, limit %u", key, admitted(key),
				     LIMIT);
	return NULL;
}

static const char *check_note(const struct explore_note *note)
{
	enum pacer_reason reason = (enum pacer_reason)note->word[2];

	if (reason == PACER_DENY_CONTENDED) {
		s.contended++;
		return NULL;
	}
	if (reason != PACER_ADMIT && reason != PACER_DENY_WINDOW)
		return FAULT("key %" PRIu64 " denied for reason %d", note->word[0], (int)reason);
	if (reason == PACER_DENY_WINDOW && admitted(note->word[0]) < LIMIT)
		return FAULT("G2: key %" PRIu64 " denied without a ground", note->word[0]);
	return NULL;
}

static const char *check_released(void)
{
	uint32_t i;

	for (i = 0; i < LINES; i++)
		if (s.lines[i].lock & PACER_LOCK_HELD)
			return FAULT("line %u is left held", i);
	return NULL;
}

static const char *check_after(void)
{
	const struct packet *p = s.scenario->after;
	enum pacer_reason reason;
	int i;

	for (i = 0; i < AROUND && p[i].key; i++) {
		judge_in_turn(&p[i], &reason);
		if (reason == PACER_DENY_CONTENDED && !s.scenario->together)
			return FAULT("contended with nobody");
	}
	return check_admitted();
}

static const char *check(void *arg, const struct explore_note *notes, int n)
{
	const char *fault = check_released();
	unsigned int contended = s.contended;
	int i;

	(void)arg;
	s.n = s.before;
	for (i = 0; i < n; i++)
		if (notes[i].word[2] == PACER_ADMIT)
			s.admitted[s.n++] = (struct packet){notes[i].word[0], notes[i].word[1], 0};
	for (i = 0; i < n && !fault; i++)
		fault = check_note(&notes[i]);
	if (s.n - s.before > s.most)
		s.most = s.n - s.before;
	if (contended == s.contended && s.n - s.before < s.smallest)
		s.smallest = s.n - s.before;
	if (!fault)
		fault = check_admitted();
	return fault ? fault : check_after();
}

/* One limit as it is loaded; `turn` makes it what a rotation makes of it. */
static void load(const struct turned *sc)
{
	struct pacer_rule *r = &s.policy.rule[0];
	struct pacer_limiter *t = &r->limiter[0];
	enum pacer_window_error error;

	memset(&s, 0, sizeof(s));
	s.scenario = sc;
	s.smallest = ~0u;
	s.policy.rules.word[0] = 1;
	r->n_limiters = 1;
	*t = (struct pacer_limiter){
	    .kind = PACER_LIMITER_WINDOW, .sets = SETS, .shared = 1, .key_id = 1};
	memset(t->mask4, 0xff, sizeof(t->mask4));
	error = pacer_window_profile(&t->window, PACER_COST_PACKETS, LIMIT, WINDOW_NS, 1, 0);
	assert(error == PACER_WINDOW_OK);
	(void)error;
	pacer_window_widen(&t->window);
	t->units = t->window.units;
	t->idle_ns = t->window.ring_ns;
	assert((2 * SETS + 1) * pacer_stride(t) <= PACER_LINE_UNITS * LINES);
	s.secret[0][0] = s.secret[0][PACER_KEY_WORDS + 2 + 1] = 1ull << 32;
	s.secret[1][2] = s.secret[1][PACER_KEY_WORDS + 2 + 3] = 1ull << 32;
	s.state = (struct pacer_state){
	    .table = {s.lines, LINES}, .policy = &s.policy, .secret = (const __u64 *)s.secret[0]};
}

static void turn(void)
{
	struct pacer_rule *r = &s.policy.rule[0];

	r->limiter[1] = r->limiter[0];
	r->limiter[1].until_ns = 1000000;
	r->limiter[0].secret = 1;
	r->n_limiters = 2;
	if (s.scenario->spoil)
		s.scenario->spoil(r);
}

static void explore_turned(const struct turned *sc, struct explore_result *result)
{
	struct explore_model model = {
	    .name = sc->name,
	    .cpus = OF,
	    .memory = s.lines,
	    .bytes = sizeof(s.lines),
	    .width = width,
	    .run = run,
	    .check = check,
	};
	enum pacer_reason reason;
	int i;

	load(sc);
	for (i = 0; i < AROUND && sc->before[i].key; i++) {
		judge_in_turn(&sc->before[i], &reason);
		assert(reason == PACER_ADMIT);
	}
	s.before = s.n;
	turn();
	explore(&model, result);
	printf("%s\n  %" PRIu64 " states, %" PRIu64
	       " ends, %.2g interleavings, %u to %u admitted\n",
	       sc->name, result->states, result->ends, result->interleavings, s.smallest, s.most);
	if (result->faults) {
		printf("  %" PRIu64 " faulty; the shortest: %s\n", result->faults, result->fault);
		explore_print(stdout, &result->shortest);
	}
}

/* The old limit is not asked any more. */
static void forget_old(struct pacer_rule *r)
{
	r->limiter[1].until_ns = 1;
}

/* The new limit takes the old one's records for idle before they are. */
static void idle_apart(struct pacer_rule *r)
{
	r->limiter[0].idle_ns = 50;
}

/* Of the key 1 under both secrets: sets apart; those of 2 are the other way round. */
#define CROSSED                                                                                 \
	{                                                                                       \
		[1] = {{0, 1}, {1, 2}}, [2] = {{1, 3}, {0, 4}}, [3] = {{0, 5}, {1, 6}}, [4] = { \
			{0, 7},                                                                 \
			{0, 7}                                                                  \
		}                                                                               \
	}

/* clang-format off */
static const struct turned sound[] = {
    {
	.name = "two secrets: two keys, each where the other was",
	.key = CROSSED,
	.before = {{1, 1000}, {2, 1001}},
	.cpu = {{{1, 1010}, {1, 1011}}, {{2, 1010}, {2, 1012}}},
	.after = {{1, 1020}, {2, 1020}},
	.most = 2,
	.smallest = 2,
	.contended = true,
	.states_min = 10000,
    },
    {
	.name = "two secrets: two keys, each where the other comes to be",
	.key = CROSSED,
	.cpu = {{{1, 1010}, {2, 1011}}, {{2, 1010}}},
	.after = {{1, 1020}, {2, 1020}, {1, 1021}, {2, 1022}},
	.most = 3,
	.smallest = 3,
	.contended = true,
	.states_min = 10000,
    },
    {
	.name = "two secrets: one key on two CPUs",
	.key = CROSSED,
	.before = {{1, 1000}},
	.cpu = {{{1, 1010}, {1, 1011}}, {{1, 1010}, {1, 1012}}},
	.after = {{1, 1020}},
	.most = 1,
	.smallest = 1,
	.contended = true,
	.states_min = 1000,
    },
    {
	.name = "two secrets: a key whose two places are one",
	.key = CROSSED,
	.cpu = {{{4, 1010}, {4, 1011}}, {{4, 1010}, {1, 1012}}}, /* contended with itself */
	.after = {{4, 1020}, {1, 1021}},
	.together = true,
	.most = 1,
	.smallest = ~0u,
	.contended = true,
	.states_min = 100,
    },
};

static const struct turned faulty[] = {
    {
	.name = "fault: the old secret is not asked",
	.key = CROSSED,
	.before = {{1, 1000}, {1, 1001}},
	.cpu = {{{1, 1010}}, {{2, 1010}}},
	.spoil = forget_old,
	.finds = "G1: key 1 has 3",
    },
    {
	.name = "fault: the two secrets' tiers do not agree when a record is idle",
	.key = CROSSED,
	.before = {{1, 1000}, {1, 1001}},
	.cpu = {{{2, 1060}}, {{1, 1060}, {1, 1061}}},
	.spoil = idle_apart,
	.finds = "G1: key 1 has",
    },
};
/* clang-format on */

void test_turned(void **unused)
{
	static struct explore_result result;
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(sound) / sizeof(*sound); i++) {
		explore_turned(&sound[i], &result);
		assert_int_equal(result.faults, 0);
		assert_true(result.states >= sound[i].states_min && result.ends > 0);
		assert_int_equal(s.most, sound[i].most);
		assert_int_equal(s.smallest, sound[i].smallest);
		assert_int_equal(s.contended > 0, sound[i].contended);
	}
}

void test_turned_finds_faults(void **unused)
{
	static struct explore_result result;
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(faulty) / sizeof(*faulty); i++) {
		explore_turned(&faulty[i], &result);
		assert_true(result.faults > 0);
		assert_non_null(strstr(result.fault, faulty[i].finds));
	}
}
