/* SPDX-License-Identifier: GPL-2.0-only */
/* Bans: the exact table and the filter before it, against a list of who is banned until when. */
#include <math.h>

#include "oracle.h"

#include "ban.h"

#define START	   1000000ull
#define SETS_MAX   64u
#define LINES_MAX  (SETS_MAX * PACER_BAN_WAYS)
#define FILTER_MAX 512u /* lines */
#define KEYS	   400u

static struct pacer_line lines[LINES_MAX + FILTER_MAX + 1];
static struct pacer_table table = {lines, ARRAY(lines)};
static struct pacer_bans bans;

/* What is asked about a key, but for the time; and the truth of it. */
static struct {
	struct pacer_ban_key key;
	struct pacer_hash hash;
	uint64_t until;
} who[KEYS];

static void begin(uint32_t sets, uint32_t filter_lines)
{
	memset(lines, 0, sizeof(lines));
	bans = (struct pacer_bans){.base = 0,
				   .sets = sets,
				   .filter = sets * PACER_BAN_WAYS,
				   .filter_mask = filter_lines - 1};
	assert_true(bans.filter + filter_lines < ARRAY(lines)); /* and the last one's end */
}

static struct pacer_ban_ask ask(uint32_t k, uint64_t now)
{
	return (struct pacer_ban_ask){&table, &bans, now, who[k].hash, who[k].key, 0};
}

/* Groups of eight keys with one hash, as they are in a collision: the words differ in one place, or
 * not even they do, but the rule, the key's kind or the family.
 */
static void draw_keys(void)
{
	uint32_t k, i;

	for (k = 0; k < KEYS; k++) {
		uint32_t first = k & ~7u, in = k & 7;

		if (!in) {
			who[k].hash = (struct pacer_hash){draw(), draw()};
			who[k].key = (struct pacer_ban_key){
			    .rule = draw() % 3, .key_id = PACER_KEY_ID(0, 32, 64, 0, 0)};
			for (i = 0; i < (draw() & 1 ? PACER_KEY_WORDS : 4); i++)
				who[k].key.word[i] = draw();
		} else {
			who[k].hash = who[first].hash;
			who[k].key = who[first].key;
		}
		who[k].until = 0;
		if (in == 1)
			who[k].key.rule++;
		if (in == 2)
			who[k].key.key_id = PACER_KEY_ID(0, 24, 56, 0, 0);
		if (in == 3)
			who[k].key.key_id |= PACER_KEY_V6;
		if (in == 4)
			who[k].key.word[0] ^= 1;
		if (in == 5)
			who[k].key.word[3] ^= 1u << 31;
		if (in == 6)
			who[k].key.word[PACER_KEY_WORDS - 1] ^= 256;
		if (in == 7)
			who[k].key.rule ^= 1u << 31;
	}
}

/* The i-th line where the key may stand: by both halves of the hash, those of one set twice. */
static struct pacer_line *line_of(const struct pacer_bans *b, struct pacer_hash hash, uint32_t i)
{
	uint64_t place = i < PACER_BAN_WAYS ? hash.home : (uint32_t)(hash.mark * PACER_HASH_ODD);

	return &lines[b->base + (place * b->sets >> 32) * PACER_BAN_WAYS + i % PACER_BAN_WAYS];
}

/* Has one of the key's sets an entry that has run out, or a ban of the key's that runs? */
static int has_room(uint32_t k, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < PACER_BAN_PLACES; i++)
		if (line_of(&bans, who[k].hash, i)->ban_until_ns <= now)
			return 1;
	return who[k].until > now;
}

static int lift(uint32_t k, uint64_t now)
{
	uint32_t i;
	int lifted = 0;

	for (i = 0; i < PACER_BAN_PLACES; i++)
		lifted += pacer_ban_lift(line_of(&bans, who[k].hash, i), &who[k].key, now);
	return lifted;
}

typedef int find_fn(const struct pacer_ban_ask *q);

struct faults {
	uint32_t wrongly, forgotten, banned, full;
};

static int banned(find_fn *find, uint32_t k, uint64_t now)
{
	struct pacer_ban_ask q = ask(k, now);

	return pacer_ban_maybe(&table, &bans, q.hash, now) && find(&q);
}

static void ban(struct faults *f, find_fn *find, uint32_t k, uint64_t now, uint64_t ttl)
{
	struct pacer_ban_ask q = ask(k, now);
	int room = has_room(k, now);
	enum pacer_event event = pacer_ban_add(&q, now + ttl);

	assert_int_equal(event, room ? PACER_BANNED : PACER_BANS_FULL);
	f->full += !room;
	if (!room)
		return;
	f->banned++;
	if (who[k].until < now + ttl)
		who[k].until = now + ttl;
	f->forgotten += !banned(find, k, now) || !banned(find, k, who[k].until - 1);
	f->wrongly += banned(find, k, who[k].until);
}

/* Long runs. Who is banned is banned again by a shorter and a longer ban too. */
static struct faults run(find_fn *find, uint32_t rounds)
{
	struct faults f = {0};
	uint32_t round, i, k;
	uint64_t now;

	oracle_seed(71);
	for (round = 0; round < rounds; round++) {
		begin(between(1, SETS_MAX), 1u << between(0, 9));
		draw_keys();
		for (i = 0, now = START; i < 4000; i++) {
			now += draw() % 50 ? draw() % 20 : draw() % 3000;
			k = draw() % KEYS;
			if (draw() % 4 == 0)
				ban(&f, find, k, now, between(1, draw() & 1 ? 100 : 5000));
			if (draw() % 16 == 0) {
				assert_int_equal(lift(k, now) > 0, who[k].until > now);
				who[k].until = 0;
			}
			k = draw() & 1 ? k : draw() % KEYS;
			f.wrongly += banned(find, k, now) && who[k].until <= now;
			f.forgotten += !banned(find, k, now) && who[k].until > now;
		}
	}
	return f;
}

static void test_runs(void **unused)
{
	struct faults f = run(pacer_ban_find, 60);

	(void)unused;
	print_message("    %u bans, %u where there was no room\n", f.banned, f.full);
	assert_int_equal(f.wrongly, 0);
	assert_int_equal(f.forgotten, 0);
	assert_true(f.banned > 10000 && f.full > 500);
}

/* How many of n keys at once find no room in a table of so many sets. */
static uint32_t without_room(uint32_t sets, uint32_t n)
{
	uint32_t i, full = 0;

	begin(sets, FILTER_MAX);
	for (i = 0; i < n; i++) {
		struct pacer_ban_ask q = {&table,	    &bans,	     START,
					  {draw(), draw()}, {1, 0x200, {i}}, 0};

		full += pacer_ban_add(&q, START + 10) != PACER_BANNED;
	}
	return full;
}

/* Of one set, every sixteenth key would find it full when the table is three fifths full. */
static void test_room(void **unused)
{
	uint32_t i, full = 0, n = LINES_MAX * 3 / 5;

	(void)unused;
	oracle_seed(73);
	for (i = 0; i < 200; i++)
		full += without_room(SETS_MAX, n);
	print_message("    %u keys of %u\n", full, 200 * n);
	assert_true(full < 200 * n / 500);
	assert_int_equal(without_room(1, 10), 10 - PACER_BAN_WAYS);
}

/* ---- faults that the same run finds ---- */

static int find_by(const struct pacer_ban_ask *q, int rule, int key_id, uint32_t words, int time)
{
	uint32_t place, i;

	for (place = 0; place < PACER_BAN_PLACES; place++) {
		struct pacer_line *line = line_of(q->bans, q->hash, place);
		uint32_t differs = (rule && line->ban_rule != q->key.rule) ||
				   (key_id && line->ban_key_id != q->key.key_id);

		for (i = 0; i < words; i++)
			differs |= line->ban_key[i] ^ q->key.word[i];
		if (!differs && (time ? line->ban_until_ns > q->now_ns : line->ban_until_ns))
			return 1;
	}
	return 0;
}

static int fault_rule(const struct pacer_ban_ask *q)
{
	return find_by(q, 0, 1, PACER_KEY_WORDS, 1);
}

static int fault_key_id(const struct pacer_ban_ask *q)
{
	return find_by(q, 1, 0, PACER_KEY_WORDS, 1);
}

static int fault_words(const struct pacer_ban_ask *q)
{
	return find_by(q, 1, 1, 4, 1);
}

static int fault_time(const struct pacer_ban_ask *q)
{
	return find_by(q, 1, 1, PACER_KEY_WORDS, 0);
}

static int fault_filter_alone(const struct pacer_ban_ask *q)
{
	(void)q;
	return 1;
}

static int fault_first_way(const struct pacer_ban_ask *q)
{
	return pacer_ban_holds(line_of(q->bans, q->hash, 0), q);
}

static void test_planted_faults_are_found(void **unused)
{
	static find_fn *const wrongly[] = {fault_rule, fault_key_id, fault_words, fault_time,
					   fault_filter_alone};
	struct faults f;
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(wrongly); i++) {
		f = run(wrongly[i], 5);
		print_message("    fault %zu: banned wrongly %u times\n", i, f.wrongly);
		assert_int_not_equal(f.wrongly, 0);
		assert_int_equal(f.forgotten, 0);
	}
	f = run(fault_first_way, 5);
	assert_int_equal(f.wrongly, 0);
	assert_int_not_equal(f.forgotten, 0);
}

/* ---- timelines ---- */

static void one_key(uint32_t sets)
{
	begin(sets, 1);
	memset(who, 0, sizeof(who));
	who[0].key = (struct pacer_ban_key){7, 0x200, {1, 2, 3, 4}};
}

static void test_until_exactly_then(void **unused)
{
	struct pacer_ban_ask q;

	(void)unused;
	one_key(1);
	q = ask(0, START);
	assert_false(pacer_ban_maybe(&table, &bans, q.hash, START));
	assert_int_equal(pacer_ban_add(&q, START + 10), PACER_BANNED);
	for (q.now_ns = START; q.now_ns < START + 10; q.now_ns++) {
		assert_true(pacer_ban_maybe(&table, &bans, q.hash, q.now_ns));
		assert_true(pacer_ban_find(&q));
	}
	assert_false(pacer_ban_maybe(&table, &bans, q.hash, START + 10));
	assert_false(pacer_ban_find(&q));
}

/* Where the last ban ends, rounded up, in the line after the filter's: till then somebody is. */
static void test_none_is_banned(void **unused)
{
	const uint64_t until = START + 5 * PACER_BAN_STEP_NS,
		       last = until | (PACER_BAN_STEP_NS - 1);
	struct pacer_ban_ask q;

	(void)unused;
	one_key(1);
	q = ask(0, START);
	assert_true(pacer_ban_none(&table, &bans, START));
	assert_int_equal(pacer_ban_add(&q, until), PACER_BANNED);
	assert_int_equal(lines[bans.filter + bans.filter_mask + 1].word64[0], last);
	assert_false(pacer_ban_none(&table, &bans, START));
	assert_int_equal(pacer_ban_add(&q, START + 1), PACER_BANNED); /* takes nothing back */
	assert_false(pacer_ban_none(&table, &bans, until - 1));
	assert_false(pacer_ban_none(&table, &bans, last - 1));
	assert_true(pacer_ban_none(&table, &bans, last));
	bans.sets = 0;
	assert_true(pacer_ban_none(&table, &bans, START));
}

/* The ban was lifted at its last moment, and not when it was over. */
static void test_lifted_while_it_runs(void **unused)
{
	struct pacer_ban_ask q;

	(void)unused;
	one_key(1);
	q = ask(0, START);
	assert_int_equal(pacer_ban_add(&q, START + 10), PACER_BANNED);
	assert_false(pacer_ban_lift(&lines[0], &q.key, START + 10));
	assert_int_equal(lines[0].ban_until_ns, START + 10);
	assert_true(pacer_ban_lift(&lines[0], &q.key, START + 9));
	assert_false(pacer_ban_find(&q));
}

/* Other keys' bans in so many lines of the set from this line on. */
static void fill(uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++) {
		lines[i].ban_key[0] = 99 + i;
		lines[i].ban_until_ns = START + 1000;
	}
}

/* A key of two sets: its ban is lengthened where it stands, however full that set is. */
static void test_its_own_entry_comes_first(void **unused)
{
	for (uint32_t own = 0; own < 2; own++) {
		struct pacer_ban_places at;
		struct pacer_ban_ask q;

		(void)unused;
		one_key(8);
		who[0].hash = (struct pacer_hash){0, 1u << 31};
		q = ask(0, START);
		at = pacer_ban_places(&bans, q.hash);
		assert_int_not_equal(at.set[0], at.set[1]);
		fill(at.set[!own], PACER_BAN_WAYS);
		assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANNED);
		assert_int_equal(lines[at.set[own]].ban_until_ns, START + 100);
		fill(at.set[own] + 1, PACER_BAN_WAYS - 1);
		for (uint32_t i = 0; i < PACER_BAN_WAYS; i++)
			lines[at.set[!own] + i].ban_until_ns = 0;
		assert_int_equal(pacer_ban_add(&q, START + 200), PACER_BANNED);
		assert_int_equal(lines[at.set[own]].ban_until_ns, START + 200);
		for (uint32_t i = 0; i < PACER_BAN_WAYS; i++)
			assert_int_equal(lines[at.set[!own] + i].ban_until_ns, 0);
	}
}

/* The set with more room is held by other CPUs: the ban goes into the other one. */
static void test_the_other_set_is_tried(void **unused)
{
	for (uint32_t held = 0; held < 2; held++) {
		struct pacer_ban_places at;
		struct pacer_ban_ask q;

		(void)unused;
		one_key(8);
		who[0].hash = (struct pacer_hash){0, 1u << 31};
		q = ask(0, START);
		at = pacer_ban_places(&bans, q.hash);
		fill(at.set[!held], 2);
		for (uint32_t i = 0; i < PACER_BAN_WAYS; i++)
			lines[at.set[held] + i].ban_lock |= PACER_LOCK_HELD;
		assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANNED);
		assert_int_equal(lines[at.set[!held] + 2].ban_until_ns, START + 100);
	}
}

/* A CPU whose clock is behind bans the key as well: the ban does not end sooner for that. */
static void test_a_clock_behind_shortens_nothing(void **unused)
{
	struct pacer_ban_ask ahead, behind;

	(void)unused;
	one_key(1);
	ahead = ask(0, START);
	behind = ask(0, START - 30);
	assert_int_equal(pacer_ban_add(&ahead, START + 100), PACER_BANNED);
	assert_int_equal(pacer_ban_add(&behind, START + 70), PACER_BANNED);
	ahead.now_ns = START + 99;
	assert_true(pacer_ban_find(&ahead));
	assert_int_equal(pacer_ban_add(&ahead, START + 199), PACER_BANNED);
	ahead.now_ns = START + 198;
	assert_true(pacer_ban_find(&ahead));
	ahead.now_ns = START + 199;
	assert_false(pacer_ban_find(&ahead));
}

/* While another CPU holds an entry's lock, and has changed nothing yet, the ban is in force; once
 * it has begun to write, nobody is banned by the entry.
 */
static void test_a_held_entry(void **unused)
{
	struct pacer_ban_ask q;
	struct pacer_line *line;

	(void)unused;
	one_key(1);
	q = ask(0, START);
	assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANNED);
	line = &lines[bans.base];
	assert_int_equal(line->ban_key_id, q.key.key_id);
	line->ban_lock |= PACER_LOCK_HELD;
	assert_true(pacer_ban_find(&q));
	line->ban_until_ns = 0;
	assert_false(pacer_ban_find(&q));
	line->ban_lock &= ~PACER_LOCK_HELD;
}

/* A tool lets go what another one held as it was killed, and never what a packet holds. */
static void test_only_what_a_tool_held_is_freed(void **unused)
{
	static const struct {
		uint32_t before, after;
	} rows[] = {
	    {0, 0},
	    {PACER_BAN_BY_TOOL, PACER_BAN_BY_TOOL},
	    {PACER_LOCK_SEQ_ONE, PACER_LOCK_SEQ_ONE},
	    {PACER_LOCK_HELD, PACER_LOCK_HELD},
	    {PACER_LOCK_HELD | PACER_LOCK_SEQ_ONE, PACER_LOCK_HELD | PACER_LOCK_SEQ_ONE},
	    {PACER_LOCK_HELD | PACER_BAN_BY_TOOL, PACER_LOCK_SEQ_ONE},
	    {PACER_LOCK_HELD | PACER_BAN_BY_TOOL | PACER_LOCK_SEQ, 0},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pacer_line line = {.ban_lock = rows[i].before, .ban_until_ns = START};

		pacer_ban_free(&line);
		assert_int_equal(line.ban_lock, rows[i].after);
		assert_int_equal(line.ban_until_ns, START);
	}
}

/* Every entry that has room is held: the key is not banned, and that is told. */
static void test_contended_is_told(void **unused)
{
	struct pacer_ban_ask q;
	uint32_t way;

	(void)unused;
	one_key(1);
	q = ask(0, START);
	for (way = 0; way < PACER_BAN_WAYS; way++)
		lines[way].ban_lock |= PACER_LOCK_HELD;
	assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANS_FULL);
	assert_false(pacer_ban_find(&q));
	lines[PACER_BAN_WAYS - 1].ban_lock = 0;
	assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANNED);
	assert_true(pacer_ban_find(&q));
}

static void test_no_table_bans_nobody(void **unused)
{
	struct pacer_ban_ask q;

	(void)unused;
	one_key(1);
	q = ask(0, START);
	bans.sets = 0;
	assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANS_FULL);
	bans.sets = 1;
	bans.filter = ARRAY(lines);
	assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANS_FULL);
	assert_false(pacer_ban_maybe(&table, &bans, q.hash, START));
	bans.base = ARRAY(lines);
	assert_false(pacer_ban_find(&q));
}

/* Two cells a key, never one twice. */
static void test_cells(void **unused)
{
	uint32_t mark, pairs[8][8] = {{0}};

	(void)unused;
	for (mark = 0; mark < 65536; mark++) {
		struct pacer_ttl_key cells = pacer_ban_cells((struct pacer_hash){0, mark});

		assert_int_not_equal(cells.first & 7, cells.second & 7);
		pairs[cells.first & 7][cells.second & 7]++;
	}
	for (mark = 0; mark < 8; mark++) /* four distances, each as likely */
		assert_int_equal(pairs[mark][(mark + 1) & 7] + pairs[mark][(mark + 2) & 7] +
				     pairs[mark][(mark + 3) & 7] + pairs[mark][(mark + 4) & 7],
				 65536 / 8);
}

/*
 * The chance of a look into the table for a key that was never banned, with n bans in L lines of
 * eight cells. A ban raises a given cell of its line with a chance of 1/4, and both of a given pair
 * with p: 1/32 for three quarters of the keys, 2/32 for those whose cells are opposite. So of all
 * bans, none is on the first cell with (1 - 1/4L)^n, none on either with (1 - (1/2 - p)/L)^n.
 */
static double chance(double n, double lines_n)
{
	double either = 0.75 * pow(1 - (0.5 - 1 / 32.0) / lines_n, n) +
			0.25 * pow(1 - (0.5 - 2 / 32.0) / lines_n, n);

	return 1 - 2 * pow(1 - 0.25 / lines_n, n) + either;
}

/* Were a key's cells anywhere. Lines cost no more than this: once a key shares its line with a ban,
 * it is one of 28 pairs and not of millions.
 */
static double chance_apart(double n, double cells)
{
	return pow(1 - pow(1 - 2 / cells, n), 2);
}

#define CHANCE_LINES 128u

static double told_maybe(uint32_t bans_n, uint32_t rounds, uint32_t asks)
{
	uint32_t round, n, maybe = 0;

	for (round = 0; round < rounds; round++) {
		begin(SETS_MAX, CHANCE_LINES);
		for (n = 0; n < bans_n; n++) {
			struct pacer_hash hash = {draw(), draw()};

			assert_true(pacer_ttl_raise(pacer_ban_filter(&table, &bans, hash)->word64,
						    7, pacer_ban_cells(hash), START + 1));
		}
		for (n = 0; n < asks; n++)
			maybe += pacer_ban_maybe(&table, &bans, (struct pacer_hash){draw(), draw()},
						 START);
	}
	return (double)maybe / rounds / asks;
}

/* Fixed seeds, a million questions to a thousand filters: within 3 % and 5 standard deviations. */
static void test_chance_of_maybe(void **unused)
{
	static const uint32_t load[] = {16, 64, 128, 256, 1024};
	uint32_t i;

	(void)unused;
	for (i = 0; i < ARRAY(load); i++) {
		double expected = chance(load[i], CHANCE_LINES), told;

		oracle_seed(72 + i);
		told = told_maybe(load[i], 1000, 1000);
		print_message(
		    "    %u bans in %u cells: maybe %.5f, by the formula %.5f; were cells "
		    "apart %.5f\n",
		    load[i], 8 * CHANCE_LINES, told, expected,
		    chance_apart(load[i], 8 * CHANCE_LINES));
		assert_true(fabs(told - expected) < 0.03 * expected + 5 * sqrt(expected / 1e6));
	}
}

/* --- bans that grow -------------------------------------------------------------------------- */

/* The truth of a key: its last ban's end and number in a row. */
static struct {
	uint64_t until;
	uint32_t row;
} truth[KEYS];

static uint64_t true_length(const struct pacer_rule *r, uint32_t before)
{
	double ns = (double)(r->ban_ns - r->ban_tick_ns) * pow(r->ban_grow, before);

	return (ns < (double)r->ban_max_ns ? (uint64_t)ns : r->ban_max_ns) + r->ban_tick_ns;
}

/* As long as nobody takes a line, a ban is as long as the ones before it say. */
static void test_grows(void **unused)
{
	struct pacer_rule r = {.ban_ns = 103,
			       .ban_tick_ns = 3,
			       .ban_grow = 3,
			       .ban_max_ns = 2000,
			       .ban_forget_ns = 500};
	uint64_t now = START;
	uint32_t rows[9] = {0};

	(void)unused;
	oracle_seed(90);
	begin(64, 64);
	draw_keys();
	memset(truth, 0, sizeof(truth));
	for (uint32_t step = 0; step < 30000; step++) {
		uint32_t k = 8 * (draw() % 8); /* few, of hashes of their own */
		struct pacer_ban_ask q;
		uint64_t until;

		now += between(1, 60);
		if (truth[k].until > now)
			continue;
		if (!(draw() % 40)) {
			r.ban_grow = between(2, 5); /* a changed value counts at once */
			r.ban_max_ns = between(500, 3000);
		}
		truth[k].row =
		    truth[k].until && now - truth[k].until < r.ban_forget_ns ? truth[k].row + 1 : 1;
		truth[k].until = now + true_length(&r, truth[k].row - 1);
		rows[truth[k].row < 8 ? truth[k].row : 8]++;
		q = ask(k, now);
		until = pacer_ban_grown(&q, &r, pacer_ban_row(&q, &r));
		assert_int_equal(until, truth[k].until);
		assert_int_equal(q.note, truth[k].row << PACER_BAN_ROW);
		assert_int_equal(pacer_ban_add(&q, until), PACER_BANNED);
		assert_int_equal(pacer_ban_until(&q), until);
	}
	for (uint32_t i = 1; i <= 8; i++)
		assert_true(rows[i] > 20);
}

/* At the first moment that is forgotten, and the last that is not. */
static void test_forgets_exactly_then(void **unused)
{
	const struct pacer_rule r = {
	    .ban_ns = 100, .ban_grow = 4, .ban_max_ns = 1000, .ban_forget_ns = 50};
	struct pacer_ban_ask q;

	(void)unused;
	begin(4, 4);
	draw_keys();
	q = ask(0, START);
	assert_int_equal(pacer_ban_grown(&q, &r, pacer_ban_row(&q, &r)), START + 100);
	assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANNED);
	q = ask(0, START + 149);
	assert_int_equal(pacer_ban_grown(&q, &r, pacer_ban_row(&q, &r)), START + 149 + 400);
	q = ask(0, START + 150);
	assert_int_equal(pacer_ban_grown(&q, &r, pacer_ban_row(&q, &r)), START + 150 + 100);
	/* Lifted: its next ban is the first of a row. One by hand leaves the row as it is. */
	q = ask(0, START + 120);
	q.note = PACER_BAN_OUTSIDE;
	assert_int_equal(pacer_ban_add(&q, START + 130), PACER_BANNED);
	q = ask(0, START + 131);
	assert_int_equal(pacer_ban_grown(&q, &r, pacer_ban_row(&q, &r)), START + 131 + 400);
	assert_int_equal(pacer_ban_add(&q, START + 531), PACER_BANNED);
	for (uint32_t i = 0; i < PACER_BAN_PLACES; i++)
		(void)!pacer_ban_lift(line_of(&bans, q.hash, i), &q.key, START + 132);
	q = ask(0, START + 133);
	assert_int_equal(pacer_ban_grown(&q, &r, pacer_ban_row(&q, &r)), START + 133 + 100);
}

/* Of a ban that runs, and that another CPU has begun: the same number in the row. An entry that is
 * being written says nothing.
 */
static void test_row_of_one_that_runs(void **unused)
{
	const struct pacer_rule r = {
	    .ban_ns = 100, .ban_grow = 4, .ban_max_ns = 10000, .ban_forget_ns = 50};
	struct pacer_ban_ask q;

	(void)unused;
	one_key(1);
	q = ask(0, START);
	q.note = 3 << PACER_BAN_ROW;
	assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANNED);
	assert_int_equal(pacer_ban_row(&q, &r), 2);
	q.now_ns = START + 99;
	assert_int_equal(pacer_ban_row(&q, &r), 2);
	q.now_ns = START + 100;
	assert_int_equal(pacer_ban_row(&q, &r), 3);
	lines[0].ban_lock |= PACER_LOCK_HELD;
	assert_int_equal(pacer_ban_row(&q, &r), 0);
	q.now_ns = START + 99;
	assert_int_equal(pacer_ban_row(&q, &r), 0);
}

/* A ban that runs is banned from outside, too, once that is said; and by nothing else. */
static void test_note_of_one_that_runs(void **unused)
{
	struct pacer_ban_ask q;

	(void)unused;
	one_key(1);
	q = ask(0, START);
	q.note = 3 << PACER_BAN_ROW;
	assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANNED);
	q.note = 7 << PACER_BAN_ROW;
	assert_int_equal(pacer_ban_add(&q, START + 101), PACER_BANNED);
	assert_int_equal(lines[0].ban_note, 3 << PACER_BAN_ROW);
	q.note = PACER_BAN_OUTSIDE;
	assert_int_equal(pacer_ban_add(&q, START + 102), PACER_BANNED);
	assert_int_equal(lines[0].ban_note, 3 << PACER_BAN_ROW | PACER_BAN_OUTSIDE);
	/* It has run out. From outside: its row goes on. */
	lines[0].ban_note = 3 << PACER_BAN_ROW;
	q.now_ns = START + 102;
	assert_int_equal(pacer_ban_add(&q, START + 200), PACER_BANNED);
	assert_int_equal(lines[0].ban_note, 3 << PACER_BAN_ROW | PACER_BAN_OUTSIDE);
}

/* No row makes a time that wraps, and none is longer than the longest. */
static void test_length_never_wraps(void **unused)
{
	static const uint64_t first[] = {1, 999, 30000000000, (1ull << 56) - 1};

	(void)unused;
	for (size_t i = 0; i < ARRAY(first); i++)
		for (uint32_t grow = 2; grow <= PACER_BAN_GROW_MAX; grow++) {
			const struct pacer_rule r = {
			    .ban_ns = first[i], .ban_grow = grow, .ban_max_ns = 1ull << 56};
			uint64_t last = 0;

			for (uint32_t row = 0; row <= 100; row++) {
				uint64_t ns = pacer_ban_length(&r, row);

				assert_true(ns >= last && ns <= r.ban_max_ns);
				last = ns;
			}
			assert_int_equal(last, r.ban_max_ns);
		}
	for (uint32_t row = PACER_BAN_ROW_MAX - 1; row <= PACER_BAN_ROW_MAX;
	     row++) { /* nor its number */
		const struct pacer_rule r = {.ban_ns = 7, .ban_grow = 2, .ban_max_ns = 99};
		struct pacer_ban_ask q = {.now_ns = 1};

		assert_int_equal(pacer_ban_grown(&q, &r, row), 1 + 99);
		assert_int_equal(q.note >> PACER_BAN_ROW, PACER_BAN_ROW_MAX);
	}
}

/* A line is taken of the key whose ban ended first, and never one whose ban runs. */
static void test_oldest_goes_first(void **unused)
{
	struct pacer_ban_ask q;

	(void)unused;
	begin(1, 1);
	for (uint32_t k = 0; k < 6; k++) {
		who[k].hash = (struct pacer_hash){0, 0};
		who[k].key = (struct pacer_ban_key){1, 0x200, {k + 1}};
	}
	for (uint32_t k = 0; k < 4; k++) {
		q = ask(k, START);
		assert_int_equal(pacer_ban_add(&q, START + (k == 2 ? 10 : 20 + k)), PACER_BANNED);
	}
	q = ask(4, START + 22);
	assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANNED);
	assert_int_equal(lines[2].ban_key[0], 5);
	q = ask(5, START + 22);
	assert_int_equal(pacer_ban_add(&q, START + 100), PACER_BANNED);
	assert_int_equal(lines[0].ban_key[0], 6);
	assert_int_equal(lines[3].ban_key[0], 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_runs),
	    cmocka_unit_test(test_room),
	    cmocka_unit_test(test_planted_faults_are_found),
	    cmocka_unit_test(test_until_exactly_then),
	    cmocka_unit_test(test_none_is_banned),
	    cmocka_unit_test(test_lifted_while_it_runs),
	    cmocka_unit_test(test_its_own_entry_comes_first),
	    cmocka_unit_test(test_the_other_set_is_tried),
	    cmocka_unit_test(test_a_clock_behind_shortens_nothing),
	    cmocka_unit_test(test_a_held_entry),
	    cmocka_unit_test(test_only_what_a_tool_held_is_freed),
	    cmocka_unit_test(test_contended_is_told),
	    cmocka_unit_test(test_no_table_bans_nobody),
	    cmocka_unit_test(test_cells),
	    cmocka_unit_test(test_chance_of_maybe),
	    cmocka_unit_test(test_grows),
	    cmocka_unit_test(test_forgets_exactly_then),
	    cmocka_unit_test(test_row_of_one_that_runs),
	    cmocka_unit_test(test_note_of_one_that_runs),
	    cmocka_unit_test(test_length_never_wraps),
	    cmocka_unit_test(test_oldest_goes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
