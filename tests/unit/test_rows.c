/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bans that grow, of a rule whose policy changes. While a key's ban runs each packet of it is
 * refused for it, and no packet of another key is. A ban is as long as its number in the row says,
 * by the policy in force, and the row goes on where the next ban begins within `forget` of the end
 * of the last one. It ends where the ban is lifted.
 *
 * Changes take values, limits and the verdict, on trial or for good, killed or not; the secret is
 * changed, the pacer taken off or the machine booted, its table of another size. Where a row may
 * be lost it goes on or begins: where the table is nearly full of others, and where a ban ended
 * before the secret's change had moved it (xdp-pacer-policy(5), Bans), or before the state went to
 * another table.
 *
 * A run is what its seed makes of it. One that fails says how it is run again, alone, and is
 * printed then. ROWS=5000 makes so many, from the seed FROM on.
 */
#include "at_work.h"

#include "live/bans.h"

#define RUNS 40u /* unless ROWS says how many */
#define KEYS 5u	 /* sources and their prefixes */

#define PICK(of) ((of)[draw() % ARRAY(of)])

/* --- the oracle ---------------------------------------------------------------------------------
 */

static struct key {
	bool by_prefix;
	uint32_t word;
	uint64_t end_ns; /* of the last ban; 0: there was none, or it was lifted */
	uint32_t row;	 /* the last one's number */
	bool unsure;	 /* whether the row is still known */
} key[KEYS];
static uint32_t n_keys;
static bool crowded; /* others want its entries */

static uint64_t n_bans, n_grown; /* that the runs had */

static struct key *key_of(bool by_prefix, uint32_t source)
{
	uint32_t word = by_prefix ? prefix_of(source) : address_of(source), i = 0;

	while (i < n_keys && (key[i].by_prefix != by_prefix || key[i].word != word))
		i++;
	if (i == n_keys) {
		assert_true(n_keys < KEYS);
		key[n_keys++] = (struct key){.by_prefix = by_prefix, .word = word};
	}
	return &key[i];
}

static void broke(const struct key *k, const char *what, uint64_t is, uint64_t due)
{
	if (work.broken)
		return;
	work.broken = true;
	printf("%.6f s: %s%08" PRIx32 ": %s: %" PRIu64 ", and %" PRIu64 " is due\n"
	       "again, alone: %s\n",
	       (double)now_ns() / 1e9, k->by_prefix ? "prefix " : "", k->word, what, is, due,
	       work.name);
}

/* The entry of the key whose ban ends last, by the oracle's clock; 0: it has none. */
static uint64_t entered(const struct key *k, uint32_t *row)
{
	const struct pacer_policy *p = &copies[copies_in_force(&pacer)].policy;
	uint64_t end_ns = 0;

	for (size_t i = 0; i < (size_t)p->bans.sets * PACER_BAN_WAYS; i++) {
		const struct pacer_line *line = &pacer.lines[p->bans.base + i];

		if (line->ban_rule != p->rule[0].id || line->ban_key[0] != k->word ||
		    (compile_key_of(line->ban_key_id).src4 == 31) != k->by_prefix ||
		    line->ban_until_ns <= end_ns)
			continue;
		end_ns = line->ban_until_ns;
		*row = line->ban_note >> PACER_BAN_ROW;
	}
	return end_ns ? boot.before_ns + end_ns : 0;
}

static uint64_t length_of(const struct bans *b, uint32_t row)
{
	uint64_t ns = b->for_ms * MS;

	for (uint32_t i = 1; i < row && b->grow && ns < b->up_to_ms * MS; i++)
		ns *= b->grow;
	return b->grow && ns > b->up_to_ms * MS ? b->up_to_ms * MS : ns;
}

/*
 * Has the last ban been over for as long, to within what clocks may differ by? -1: it may be. One
 * that ended before a boot may count as ended with it.
 */
static int is_forgotten(const struct key *k, const struct bans *b)
{
	uint64_t over_ns = now_ns() - k->end_ns, forget_ns = b->forget_ms * MS;

	if (!k->end_ns)
		return 1;
	if (over_ns > forget_ns + 3 * RESOLUTION)
		return now_ns() - boot.before_ns > forget_ns + 3 * RESOLUTION ? 1 : -1;
	return over_ns + 3 * RESOLUTION > forget_ns ? -1 : 0;
}

/* A limit by this key has denied a packet, and so the key is banned from now on. */
static void begins(struct key *k, const struct bans *b)
{
	int forgotten = is_forgotten(k, b);
	uint32_t row = 0, due = b->grow && forgotten != 1 ? k->row + 1 : 1;
	uint64_t end_ns = entered(k, &row), length_ns;

	if (!end_ns) {
		if (!crowded)
			broke(k, "it has no ban", 0, 1);
		return;
	}
	if (b->grow && row != due &&
	    (!row || row > due || !(k->unsure || crowded || forgotten < 0)))
		broke(k, "the ban's number in the row", row, due);
	length_ns = length_of(b, row);
	if (end_ns < now_ns() + length_ns || end_ns > now_ns() + length_ns + 2 * RESOLUTION)
		broke(k, "the ban's length in ns", end_ns - now_ns(), length_ns);
	k->end_ns = end_ns;
	k->row = row;
	k->unsure = false;
	n_bans++;
	n_grown += row > 1;
}

/* By which the limiter bans; NULL: it has no key. That of a limit that is gone does so for a while.
 */
static struct key *key_by(const struct pacer_limiter *t, uint32_t source)
{
	return t->key_id ? key_of(compile_key_of(t->key_id).src4 == 31, source) : NULL;
}

static void packet_and_ban(void)
{
	struct sent s = {(uint32_t)(draw() % SOURCES), RULE_PORT, FIRST_FLOW};
	uint32_t outcome = judge((uint32_t)(draw() % KERNEL_CPUS), s);
	const struct pacer_rule *rule = &copies[copies_in_force(&pacer)].policy.rule[0];
	const struct variant *v = &variant[in_force()];
	enum pacer_reason why = pacer_outcome_reason(outcome);
	struct key *banned = NULL, *k;

	if (v->says != ASKS)
		return;
	for (uint32_t i = 0; v->bans.for_ms && i < rule->n_limiters; i++) {
		k = key_by(&rule->limiter[i], s.source);
		banned = k && k->end_ns > now_ns() ? k : banned;
	}
	if (banned && why != PACER_DENY_BAN)
		broke(banned, "not refused for its ban, but for the reason", why, PACER_DENY_BAN);
	if (!banned && why == PACER_DENY_BAN)
		broke(key_of(false, s.source), "refused for no ban", 1, 0);
	if (why == PACER_DENY_BAN || !pacer_bans(why) || !v->bans.for_ms)
		return;
	k = key_by(&rule->limiter[pacer_outcome_limiter(outcome)], s.source);
	if (k)
		begins(k, &v->bans);
}

static void traffic(uint64_t for_ns)
{
	uint64_t end_ns = kernel_now_ns + for_ns;

	while (kernel_now_ns < end_ns && !work.broken) {
		kernel_now_ns += between(1 * MS, draw() % 8 ? 30 * MS : 400 * MS);
		for (uint64_t n = between(1, 6); n && !work.broken; n--)
			packet_and_ban();
	}
}

/* --- policies -----------------------------------------------------------------------------------
 */

static void any_limits(struct variant *v)
{
	const uint64_t value = between(2, 4);
	const struct limit may[] = {
	    {.kind = LIMIT_WINDOW, .value = value, .window_ms = 1000, .slots = 10},
	    {.kind = LIMIT_WINDOW,
	     .by = BY_PREFIX,
	     .value = value + 2,
	     .window_ms = 1000,
	     .slots = 10},
	    {.kind = LIMIT_RATE, .value = value, .speed = 5},
	    {.kind = LIMIT_GAP, .by = BY_PREFIX, .value = 20},
	    {.kind = LIMIT_THROTTLE,
	     .by = BY_DESTINATION,
	     .value = 30,
	     .window_ms = 1000,
	     .threshold = 2},
	};
	uint64_t which = between(1, 15) | (draw() % 2) << 4;

	for (size_t i = 0; i < ARRAY(may); i++)
		if (which >> i & 1 && v->n < VARIANT_LIMITS)
			v->limit[v->n++] = may[i];
}

static struct variant *any_policy(uint32_t room)
{
	static const uint64_t lengths[] = {100, 300, 1000}, ups[] = {2000, 5000},
			      forgets[] = {500, 2000, 6000};
	struct variant *v = &variant[n_variants++];

	assert_true(n_variants <= VARIANTS);
	*v = (struct variant){.says = ASKS, .beside = 5, .bans_room = room};
	v->bans =
	    (struct bans){PICK(lengths), draw() % 4 ? between(2, 4) : 0, PICK(ups), PICK(forgets)};
	if (draw() % 12 == 0)
		v->bans.for_ms = v->bans.grow = 0;
	if (n_variants > 1 && draw() % 10 == 0)
		v->says = draw() % 2 ? DENIES : GONE;
	any_limits(v);
	return v;
}

/* --- what is done -------------------------------------------------------------------------------
 */

static void rows_may_be_lost(bool running)
{
	for (uint32_t i = 0; i < n_keys; i++)
		key[i].unsure |= running || key[i].end_ns <= now_ns();
}

static void change(uint32_t room)
{
	uint64_t confirm_ns = draw() % 2 ? between(50 * MS, SECOND) : 0;

	if (draw() % 6 == 0)
		kill_at = (uint32_t)between(1, 60);
	put_leases();
	change_to(any_policy(room), confirm_ns);
	take_leases();
	if (!confirm_ns)
		return;
	traffic(confirm_ns / 2);
	if (draw() % 2) {
		put_leases();
		confirm_it();
		take_leases();
	}
	traffic(confirm_ns);
}

/* What is killed before the bans are moved goes on as they are. */
static void change_secret(void)
{
	if (draw() % 3 == 0)
		kill_at = (uint32_t)between(1, 80);
	rows_may_be_lost(kill_at);
	put_leases();
	rotate_it();
	take_leases();
}

static void begin_anew(uint32_t room)
{
	bool other = room != variant[in_force()].bans_room || draw() % 2;
	const struct variant *v = other ? any_policy(room) : &variant[in_force()];

	rows_may_be_lost(false);
	restart(v, between(1, 500 * MS), draw() % 2 ? between(10 * MS, 3 * SECOND) : 0);
	rows_may_be_lost(false);
}

/* By hand: some of the keys. */
static void lift(void)
{
	struct bans_done done;
	struct ban_wish wish = {0};
	char text[24];

	look();
	for (uint32_t i = 0; i < n_keys; i++) {
		struct key *k = &key[i];
		bool runs = k->end_ns > now_ns();

		if (draw() % 2)
			continue;
		snprintf(text, sizeof(text), "%u.%u.%u.%u%s", k->word >> 24, k->word >> 16 & 0xff,
			 k->word >> 8 & 0xff, k->word & 0xff, k->by_prefix ? "/31" : "");
		wish.key = text;
		tell("lifted: %s\n", text);
		if (bans_lift(&pacer, NULL, &wish, 1, &done, &error))
			fail_msg("%s: %s", work.name, error.text);
		if (runs && variant[in_force()].bans.for_ms && done.done != 1)
			broke(k, "bans that are lifted", done.done, 1);
		if (runs)
			k->end_ns = 0;
	}
}

/* Keys of another rule want places of the table. */
static void crowd(void)
{
	struct ban_wish wish = {.for_ns = between(SECOND, 5 * SECOND)};
	struct bans_done done;
	char text[24];

	crowded = true;
	tell("crowded\n");
	for (uint64_t n = between(10, 40); n; n--) {
		bool left_out = false;

		snprintf(text, sizeof(text), "198.51.100.%u", (unsigned int)(draw() % 200));
		wish.key = text;
		wish.left_out = &left_out;
		if (bans_add(&pacer, "b", &wish, 1, &done, &error))
			tell("ban %s: %s\n", text, error.text);
	}
}

/* --- runs ---------------------------------------------------------------------------------------
 */

/* True: no ban was wrong. */
static bool run(uint64_t seed, bool told)
{
	static char name[64];
	uint32_t room = 64;

	snprintf(name, sizeof(name), "ROW=%" PRIu64 " build/unit/test_rows", seed);
	begin_work(name, told);
	oracle_seed(seed);
	n_keys = 0;
	crowded = false;
	load_first(any_policy(room));
	traffic(3 * SECOND);
	for (uint64_t n = between(3, 7); n && !work.broken && !work.lost; n--) {
		switch (draw() % 9) {
		case 0:
			change_secret();
			break;
		case 1:
		case 2:
			room = draw() % 3 ? 64 : 128;
			begin_anew(room);
			break;
		case 3:
		case 4:
			lift();
			break;
		case 5:
			crowd();
			break;
		default:
			change(room);
		}
		traffic(between(1, 4 * SECOND));
	}
	(void)end(NULL);
	return !work.broken;
}

static void test_rows(void **unused)
{
	uint64_t from = from_environment("FROM", 1), n = from_environment("ROWS", RUNS);
	uint64_t broken = 0, lost = 0, refused = 0, done = 0, killed = 0;

	(void)unused;
	n_bans = n_grown = 0;
	for (uint64_t seed = from; seed < from + n; seed++) {
		broken += !run(seed, false);
		lost += work.lost;
		refused += work.refused;
		done += work.done;
		killed += work.killed;
	}
	print_message("# %" PRIu64 " bans, %" PRIu64 " of them grown; %" PRIu64 " changes, %" PRIu64
		      " killed, %" PRIu64 " refused; %" PRIu64 " states lost\n",
		      n_bans, n_grown, done, killed, refused, lost);
	assert_int_equal(broken, 0);
	assert_true(n_grown > n_bans / 10 && n_bans > 10 * n && lost < n / 10 && refused < done);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {cmocka_unit_test(test_rows)};
	const char *which = getenv("ROW");

	if (which)
		return !run(strtoull(which, NULL, 10), true);
	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
	return with_saved(tests);
}
