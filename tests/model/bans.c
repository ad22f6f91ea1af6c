/* SPDX-License-Identifier: GPL-2.0-only */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "bans.h"

/* The tables leave out what is 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))
#define BAN_KEYS 7
#define OPS_MAX	 (BAN_AROUND + CPUS * BAN_OPS)

/* Keys 1 and 2 differ in every part; 3, 4 and 5 are what a torn read of the two would be. */
static const struct pacer_ban_key keys[BAN_KEYS] = {
    [1] = {1, 0x200, {10, 11}}, [2] = {2, 0x240, {20, 21}}, [3] = {1, 0x200, {10, 21}},
    [4] = {1, 0x240, {20, 21}}, [5] = {2, 0x200, {10, 11}}, [6] = {1, 0x200, {30, 31}},
};

/* What an operation came to; the words of a note. */
struct done {
	uint64_t op, key, now_ns, result, cpu, until_ns, unused[2];
};

_Static_assert(sizeof(struct done) == EXPLORE_NOTE_WORDS * sizeof(uint64_t), "a note's words");

#define SET 2 /* its first line */

static struct pacer_line lines[SET + PACER_BAN_WAYS]; /* the filter, the last end, the set */

static struct {
	const struct ban_scenario *scenario;
	struct outcome *outcome;
	struct pacer_table table;
	struct pacer_bans bans;
	struct done log[OPS_MAX];
	int before, logged;
	char fault[EXPLORE_FAULT_MAX];
} b;

#define FAULT(...) (snprintf(b.fault, sizeof(b.fault), __VA_ARGS__), b.fault)

static const struct pacer_rule growing = {
    .ban_ns = BAN_TTL_NS, .ban_grow = 2, .ban_max_ns = BAN_LONGEST_NS, .ban_forget_ns = 500};

static struct pacer_ban_ask ask_of(uint32_t key, uint64_t now_ns)
{
	/* Cells of their own in the filter, but for 4 and 5, which it has to let pass with 2. */
	static const uint32_t mark[BAN_KEYS] = {
	    [1] = 0, [2] = 1, [3] = 2, [4] = 1, [5] = 1, [6] = 4};

	return (struct pacer_ban_ask){&b.table, &b.bans, now_ns, {0, mark[key]}, keys[key], 0};
}

static uint32_t lift(uint32_t key, uint64_t now_ns)
{
	uint32_t way, lifted = 0;

	for (way = 0; way < PACER_BAN_WAYS; way++)
		lifted += pacer_ban_lift(&lines[SET + way], &keys[key], now_ns);
	return lifted;
}

static void act(const struct ban_step *step, int cpu, struct done *d)
{
	struct pacer_ban_ask q = ask_of(step->key, step->now_ns);
	uint64_t until_ns = step->now_ns + BAN_TTL_NS;

	*d = (struct done){step->op, step->key, step->now_ns, 0, cpu, 0};
	if (step->op == BAN_GROW)
		until_ns = pacer_ban_grown(&q, &growing, pacer_ban_row(&q, &growing));
	d->until_ns = until_ns;
	if (step->op == BAN_ADD || step->op == BAN_GROW)
		d->result = pacer_ban_add(&q, until_ns) == PACER_BANNED;
	else if (step->op == BAN_FIND)
		d->result =
		    pacer_ban_maybe(&b.table, &b.bans, q.hash, q.now_ns) && pacer_ban_find(&q);
	else
		d->result = lift(step->key, step->now_ns);
}

static void run(void *arg, int cpu)
{
	const struct ban_step *step = b.scenario->cpu[cpu];
	struct done d;
	int i;

	(void)arg;
	for (i = 0; i < BAN_OPS && step[i].op; i++) {
		act(&step[i], cpu, &d);
		explore_note((const uint64_t *)&d, 1);
		if (!b.scenario->finds)
			explore_forget();
	}
}

/* The longest that such an operation bans for; 0: it does not ban. */
static uint64_t bans_for(uint64_t op)
{
	return op == BAN_ADD ? BAN_TTL_NS : op == BAN_GROW ? BAN_LONGEST_NS : 0;
}

/* Did anyone, at any time, ask for a ban of this key that lasts beyond now_ns? */
static bool asked(uint32_t key, uint64_t now_ns)
{
	const struct ban_scenario *sc = b.scenario;
	const struct ban_step *step;
	int i;

	for (i = 0; i < b.before; i++)
		if (bans_for(b.log[i].op) && b.log[i].key == key && b.log[i].until_ns > now_ns)
			return true;
	for (i = 0; i < CPUS * BAN_OPS; i++) {
		step = &sc->cpu[i / BAN_OPS][i % BAN_OPS];
		if (bans_for(step->op) && step->key == key &&
		    step->now_ns + bans_for(step->op) > now_ns)
			return true;
	}
	return false;
}

static const char *check_entry(const struct pacer_line *line)
{
	struct pacer_ban_ask q;
	uint32_t key, i;

	for (key = 1; key < BAN_KEYS; key++)
		if (line->ban_rule == keys[key].rule && line->ban_key_id == keys[key].key_id &&
		    !memcmp(line->ban_key, keys[key].word, sizeof(keys[key].word)))
			break;
	if (key == BAN_KEYS || !asked(key, line->ban_until_ns - 1))
		return FAULT("an entry bans what nobody banned (key %u)", key % BAN_KEYS);
	q = ask_of(key, 0);
	for (i = 0; i < 2; i++) {
		struct pacer_ttl_key cell = pacer_ban_cells(q.hash);
		uint64_t until_ns = lines[0].word64[(i ? cell.second : cell.first) & 7];

		if (until_ns < line->ban_until_ns)
			return FAULT("key %u is banned until %" PRIu64
				     ", by the filter until %" PRIu64,
				     key, (uint64_t)line->ban_until_ns, until_ns);
	}
	if (lines[1].word64[0] < line->ban_until_ns)
		return FAULT("key %u is banned until %" PRIu64 ", and the last ban ends before",
			     key, (uint64_t)line->ban_until_ns);
	return NULL;
}

static const char *invariant(void *arg)
{
	const char *fault = NULL;
	uint32_t way;

	(void)arg;
	for (way = SET; way < SET + PACER_BAN_WAYS && !fault; way++)
		if (!(lines[way].ban_lock & PACER_LOCK_HELD) && lines[way].ban_until_ns)
			fault = check_entry(&lines[way]);
	return fault;
}

static bool find_now(uint32_t key, uint64_t now_ns)
{
	struct pacer_ban_ask q = ask_of(key, now_ns);

	return pacer_ban_maybe(&b.table, &b.bans, q.hash, now_ns) && pacer_ban_find(&q);
}

/* The end of the last ban of the key that was entered; 0 if there was none, if it was lifted, or if
 * some clock has reached it, so that its entry may be another's.
 */
static uint64_t ends(uint32_t key)
{
	uint64_t until_ns = 0, now_ns = 0;
	int i;

	for (i = 0; i < b.logged; i++)
		now_ns = pacer_later(now_ns, b.log[i].now_ns);

	for (i = 0; i < b.logged; i++) {
		const struct done *d = &b.log[i];

		if (d->key == key && d->op == BAN_LIFT)
			return 0;
		if (d->key == key && bans_for(d->op) && d->result && d->until_ns > until_ns)
			until_ns = d->until_ns;
	}
	return until_ns > now_ns ? until_ns : 0;
}

static const char *check_done(const struct done *d, int i)
{
	bool put_off = false, own = false;
	int k;

	if (d->op == BAN_FIND && d->result && !asked(d->key, d->now_ns))
		return FAULT("key %" PRIu64 " was found banned, and nobody banned it", d->key);
	if (d->op != BAN_FIND || d->result || !ends(d->key))
		return NULL;
	for (k = 0; k < b.logged; k++) {
		const struct done *add = &b.log[k];

		if (add->op != BAN_ADD || add->key != d->key || !add->result)
			continue;
		own |= k < i && add->cpu == d->cpu && add->now_ns + BAN_TTL_NS > d->now_ns;
		put_off |= add->cpu != d->cpu && add->now_ns > 1000;
	}
	/* it may be read just when another CPU puts its end off */
	return own && !put_off ? FAULT("key %" PRIu64 " is forgotten by who banned it", d->key)
			       : NULL;
}

/* The row that key 1's bans have come to, and when the last of them ends. */
static const char *check_row(void)
{
	const struct ban_scenario *sc = b.scenario;
	uint64_t until_ns = 0;
	uint32_t row = 0, way;

	for (way = SET; way < SET + PACER_BAN_WAYS && sc->row; way++)
		if (pacer_ban_is(&lines[way], &keys[1]) && lines[way].ban_until_ns > until_ns) {
			until_ns = lines[way].ban_until_ns;
			row = lines[way].ban_note >> PACER_BAN_ROW;
		}
	if (!sc->row ||
	    (row == sc->row && until_ns >= sc->until_ns && until_ns <= sc->until_max_ns))
		return NULL;
	return FAULT("key 1 has its ban no. %u in a row, until %" PRIu64, row, until_ns);
}

static void tally_end(void)
{
	unsigned int banned = 0;
	int i;

	for (i = b.before; i < b.logged; i++)
		banned += bans_for(b.log[i].op) && b.log[i].result;
	if (banned > b.outcome->most)
		b.outcome->most = banned;
	if (banned < b.outcome->smallest)
		b.outcome->smallest = banned;
}

static const char *check(void *arg, const struct explore_note *notes, int n)
{
	const char *fault = invariant(NULL);
	uint32_t i;

	(void)arg;
	b.logged = b.before;
	for (i = 0; i < (uint32_t)n; i++)
		memcpy(&b.log[b.logged++], notes[i].word, sizeof(struct done));
	tally_end();
	for (i = b.before; i < (uint32_t)b.logged && !fault; i++)
		fault = check_done(&b.log[i], i);
	for (i = SET; i < SET + PACER_BAN_WAYS && !fault; i++)
		if (lines[i].ban_lock & PACER_LOCK_HELD)
			fault = FAULT("entry %u is left held", i);
	for (i = 1; i < BAN_KEYS && !fault; i++) {
		uint64_t until_ns = ends(i);

		if (until_ns && !find_now(i, until_ns - 1))
			fault = FAULT("key %u is forgotten before its ban ends", i);
		if (until_ns && find_now(i, until_ns))
			fault = FAULT("key %u is banned beyond its time", i);
		if (!until_ns && !asked(i, 0) && find_now(i, 1))
			fault = FAULT("key %u is banned for another", i);
	}
	return fault ? fault : check_row();
}

void bans_explore(const struct ban_scenario *sc, struct outcome *outcome)
{
	struct explore_model model = {
	    .name = sc->name,
	    .memory = lines,
	    .bytes = sizeof(lines),
	    .run = run,
	    .invariant = invariant,
	    .check = check,
	};

	memset(&b, 0, sizeof(b));
	memset(lines, 0, sizeof(lines));
	plant(sc->fault);
	b.scenario = sc;
	b.table = (struct pacer_table){lines, ARRAY(lines)};
	b.bans = (struct pacer_bans){.base = SET, .sets = 1, .filter = 0, .filter_mask = 0};
	for (; b.logged < BAN_AROUND && sc->before[b.logged].op; b.logged++)
		act(&sc->before[b.logged], CPUS, &b.log[b.logged]);
	b.before = b.logged;
	while (model.cpus < CPUS && sc->cpu[model.cpus][0].op)
		model.cpus++;
	memset(outcome, 0, sizeof(*outcome));
	outcome->smallest = ~0u;
	b.outcome = outcome;
	explore(&model, &outcome->explored);
	plant(FAULT_NONE);
}

/* ---- the tables ---- */

/* A ban is lifted, and its entry becomes another key's, until the same time. */
#define SAME_TIME_BEFORE                                \
	{                                               \
		{BAN_ADD, 1, 1000}, {BAN_ADD, 2, 1000}, \
		{                                       \
			BAN_LIFT, 2, 1000               \
		}                                       \
	}
#define SAME_TIME                                \
	{                                        \
		{{BAN_FIND, 4, 1001}},           \
		{                                \
			{BAN_LIFT, 1, 1000},     \
			{                        \
				BAN_ADD, 2, 1000 \
			}                        \
		}                                \
	}

/* clang-format off */
#define FULL_SET {{BAN_ADD, 2, 1000}, {BAN_ADD, 3, 1000}, {BAN_ADD, 4, 1000}, {BAN_ADD, 6, 1000}}
/* clang-format on */

const struct ban_scenario ban_sound[] = {
    {
	.name = "ban, one key twice, its finder",
	.cpu = {{{BAN_ADD, 1, 1000}, {BAN_FIND, 1, 1010}},
		{{BAN_FIND, 1, 1001}, {BAN_ADD, 1, 1001}, {BAN_FIND, 1, 1100}}},
	.most = 2,
	.smallest = 2,
	.states_min = 200000,
    },
    {
	.name = "ban, one key twice at one time: it is banned from the first on",
	.cpu = {{{BAN_ADD, 1, 1000}, {BAN_FIND, 1, 1010}},
		{{BAN_ADD, 1, 1000}, {BAN_FIND, 1, 1001}, {BAN_FIND, 1, 1100}}},
	.most = 2,
	.smallest = 2,
	.states_min = 200000,
    },
    {
	.name = "ban, an entry changes hands: neither key, and none between, is misread",
	.before = {{BAN_ADD, 1, 900}, {BAN_ADD, 3, 1000}, {BAN_ADD, 4, 1000}, {BAN_ADD, 6, 1000}},
	.cpu = {{{BAN_ADD, 2, 1001}, {BAN_FIND, 2, 1002}},
		{{BAN_FIND, 5, 999}, {BAN_FIND, 1, 1002}, {BAN_FIND, 5, 1002}}},
	.most = 1,
	.smallest = 1,
	.states_min = 60000,
    },
    {
	.name = "ban, two keys for one entry that has run out",
	.before = {{BAN_ADD, 3, 900}, {BAN_ADD, 4, 1000}, {BAN_ADD, 6, 1000}, {BAN_ADD, 5, 1000}},
	.cpu = {{{BAN_ADD, 1, 1001}, {BAN_FIND, 1, 1002}},
		{{BAN_ADD, 2, 1001}, {BAN_FIND, 2, 1002}}},
	.most = 1,
	.smallest = 1,
	.states_min = 80000,
    },
    {
	.name = "ban, two keys, an empty set",
	.cpu = {{{BAN_ADD, 1, 1000}, {BAN_FIND, 2, 1001}},
		{{BAN_ADD, 2, 1000}, {BAN_FIND, 1, 1001}}},
	.most = 2,
	.smallest = 2,
	.states_min = 100000,
    },
    {
	.name = "ban, a full set bans nobody and forgets nobody",
	.before = FULL_SET,
	.cpu = {{{BAN_ADD, 1, 1001}, {BAN_FIND, 1, 1002}},
		{{BAN_ADD, 5, 1001}, {BAN_FIND, 2, 1099}, {BAN_FIND, 6, 1099}}},
	.most = 0,
	.smallest = 0,
	.states_min = 30000,
    },
    {
	.name = "ban, clocks apart: the later end holds",
	.before = {{BAN_ADD, 1, 1000}},
	.cpu = {{{BAN_ADD, 1, 990}, {BAN_FIND, 1, 1001}}, {{BAN_ADD, 1, 1010}}},
	.most = 2,
	.smallest = 2,
	.states_min = 10000,
    },
    {
	.name = "ban, lifted beside its finder and another's",
	.before = {{BAN_ADD, 1, 1000}, {BAN_ADD, 2, 1000}},
	.cpu = {{{BAN_LIFT, 1, 1001}, {BAN_FIND, 1, 1002}},
		{{BAN_ADD, 6, 1001}, {BAN_FIND, 2, 1002}, {BAN_FIND, 1, 1003}}},
	.most = 1,
	.smallest = 1,
	.states_min = 20000,
    },
    {
	.name = "ban, lifted beside who bans the entry's next key",
	.before = {{BAN_ADD, 1, 900}, {BAN_ADD, 3, 1000}, {BAN_ADD, 4, 1000}, {BAN_ADD, 6, 1000}},
	.cpu = {{{BAN_LIFT, 1, 999}}, {{BAN_ADD, 2, 1000}, {BAN_FIND, 2, 1001}}},
	.most = 1,
	.smallest = 1,
	.states_min = 5000,
    },
    {
	.name =
	    "ban, lifted, and its entry another key's until the same time: none between is misread",
	.before = SAME_TIME_BEFORE,
	.cpu = SAME_TIME,
	.most = 1,
	.smallest = 1,
	.states_min = 1000,
    },
    {
	.name = "ban that grows, of a key twice at once: one step, and an end of one of both",
	.before = {{BAN_GROW, 1, 900}},
	.cpu = {{{BAN_GROW, 1, 1001}, {BAN_FIND, 1, 1100}},
		{{BAN_GROW, 1, 1005}, {BAN_FIND, 1, 1100}}},
	.most = 2,
	.smallest = 2,
	.row = 2,
	.until_ns = 1201,
	.until_max_ns = 1205,
	.states_min = 10000,
    },
    {
	.name = "ban that grows, while others' take its set: its row is its own or begins anew",
	.before = {{BAN_GROW, 1, 900}, {BAN_ADD, 3, 1000}, {BAN_ADD, 4, 1000}},
	.cpu = {{{BAN_ADD, 2, 1001}, {BAN_FIND, 2, 1002}},
		{{BAN_GROW, 1, 1001}, {BAN_FIND, 1, 1100}}},
	.most = 2,
	.smallest = 2,
	.row = 2,
	.until_ns = 1201,
	.until_max_ns = 1201,
	.states_min = 10000,
    },
};

const size_t ban_sound_n = ARRAY(ban_sound);

const struct ban_scenario ban_faulty[] = {
    {
	.name = "fault: an entry is read without its claim",
	.before = {{BAN_ADD, 1, 900}, {BAN_ADD, 3, 1000}, {BAN_ADD, 5, 1000}, {BAN_ADD, 6, 1000}},
	.fault = FAULT_BAN_READ_ONCE,
	.cpu = {{{BAN_ADD, 2, 1001}}, {{BAN_FIND, 4, 999}}},
	.finds = "key 4 was found banned",
    },
    {
	.name = "fault: an entry is read by its time alone",
	.before = SAME_TIME_BEFORE,
	.fault = FAULT_BAN_READ_BY_TIME,
	.cpu = SAME_TIME,
	.finds = "key 4 was found banned",
    },
    {
	.name = "fault: an entry is written without its claim",
	.fault = FAULT_BAN_UNLOCKED,
	.cpu = {{{BAN_ADD, 1, 1000}}, {{BAN_ADD, 2, 1000}}},
	.finds = "an entry bans what nobody banned",
    },
    {
	.name = "fault: an entry is taken without a second look",
	.fault = FAULT_BAN_JUDGED_ONCE,
	.cpu = {{{BAN_ADD, 1, 1000}}, {{BAN_ADD, 2, 1000}}},
	.finds = "is forgotten before its ban ends",
    },
    {
	.name = "fault: the filter is raised after the entry",
	.fault = FAULT_BAN_FILTER_LATE,
	.cpu = {{{BAN_ADD, 1, 1000}}, {{BAN_FIND, 1, 1001}}},
	.finds = "key 1 is banned until",
    },
    {
	.name = "fault: a full set forgets",
	.before = FULL_SET,
	.fault = FAULT_BAN_EVICTS,
	.cpu = {{{BAN_ADD, 1, 1001}}, {{BAN_FIND, 2, 1002}}},
	.finds = "is forgotten before its ban ends",
    },
    {
	.name = "fault: a ban that another CPU enters counts as one before",
	.before = {{BAN_GROW, 1, 900}},
	.fault = FAULT_BAN_ROW_TWICE,
	.cpu = {{{BAN_GROW, 1, 1001}}, {{BAN_GROW, 1, 1005}}},
	.row = 2,
	.until_ns = 1201,
	.until_max_ns = 1205,
	.finds = "key 1 has its ban no. ",
    },
};

const size_t ban_faulty_n = ARRAY(ban_faulty);
