/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sequences of changes at random, of a pacer at work in a kernel made of memory: policies that are
 * applied, tried, confirmed and left to lapse, rules that deny or are gone for a while, other
 * secrets, and state that is saved and goes on after a restart or another boot, with packets in
 * between and within the grace periods. No limit is passed (at_work.h); and once all is over, a key
 * has all of its limit.
 *
 * A sequence is what its family, its clock and its seed make of it. One that fails says how it is
 * run again, alone, and is printed then. SEQUENCES=5000 runs so many of each instead of a few, from
 * the seed FROM on, and FAMILY=rates no others (`make sequences`).
 */
#include "at_work.h"

#define CHANGES 40u
#define SEEDS	2u /* of each family and clock, unless SEQUENCES says how many */

enum clock { EXACT, COARSE, EITHER };

static const struct family {
	const char *name;
	uint32_t n_kinds;
	enum policy_limit_kind kind[4];
	uint32_t most; /* limits of a policy */
} families[] = {
    {"any", 4, {LIMIT_WINDOW, LIMIT_RATE, LIMIT_GAP, LIMIT_THROTTLE}, 3},
    {"rates", 1, {LIMIT_RATE}, 2},
    {"windows", 1, {LIMIT_WINDOW}, 2},
    {"uses", 1, {LIMIT_THROTTLE}, 1},
    {"gaps", 2, {LIMIT_GAP, LIMIT_WINDOW}, 3},
};

static const char *const clocks[] = {"exact", "coarse", "either"};

/* The sequence that is run. */
static struct {
	const struct family *family;
	enum clock clock;
	uint64_t seed;
	bool alone;   /* policies of one limit */
	bool keys;    /* of both keys */
	bool rests;   /* rules that deny, or are gone */
	bool rotates; /* other secrets */
	bool restarts;
} run;

static struct limit any_limit(void)
{
	static const uint64_t speed[] = {2, 10, 50, 250}, uses[] = {9, 50, 200, 1000};
	struct limit l = {.kind = run.family->kind[draw() % run.family->n_kinds]};

	l.by = run.keys && draw() % 3 == 0 ? BY_DESTINATION : BY_SOURCE;
	switch (l.kind) {
	case LIMIT_WINDOW: /* in narrow entries and in wide ones */
		l.value = draw() % 3 ? between(2, 20) : between(200, 320);
		l.slots = draw() % 2 ? 5 : 10;
		l.window_ms = draw() % 4 ? 1000 : 3000;
		break;
	case LIMIT_RATE: /* the coarse clock lets none of a burst of 1 through */
		l.value = draw() % 3 ? between(2, 30) : 3;
		l.speed = speed[draw() % ARRAY(speed)];
		break;
	case LIMIT_GAP:
		l.value = 10 * between(1, 6);
		break;
	default:
		l.value = uses[draw() % ARRAY(uses)];
		l.threshold = draw() % 2 ? l.value : (l.value + 9) / 10;
		l.window_ms = 1000;
		l.by = BY_DESTINATION;
	}
	return l;
}

/* Rates may stand beside each other; what else is of one key and time is looked at one at a time.
 */
static bool alike(const struct limit *a, const struct limit *b)
{
	return a->kind == b->kind && a->by == b->by && a->kind != LIMIT_RATE &&
	       a->window_ms == b->window_ms;
}

static bool has_alike(const struct variant *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (alike(&v->limit[i], &v->limit[k]))
				return true;
	return false;
}

/* One of the last few, with another value or a limit less. */
static void vary(struct variant *v)
{
	uint32_t back = (uint32_t)between(1, n_variants < 4 ? n_variants : 4);
	struct limit *at, with;

	*v = variant[n_variants - back];
	at = &v->limit[draw() % v->n];
	if (draw() % 2) {
		with = any_limit();
		if (with.kind == at->kind)
			*at = with;
	}
	if (v->n > 1 && draw() % 5 == 0)
		v->limit[0] = v->limit[--v->n];
}

static struct variant *any_variant(void)
{
	struct variant *v = &variant[n_variants];

	assert_true(n_variants < ARRAY(variant));
	if (n_variants && draw() % 3) {
		vary(v);
	} else {
		v->n = (uint32_t)between(1, run.family->most);
		for (uint32_t i = 0; i < v->n; i++)
			v->limit[i] = any_limit();
	}
	if (run.alone || has_alike(v))
		v->n = 1;
	v->says = run.rests && draw() % 5 == 0 ? DENIES + draw() % 2 : ASKS;
	v->coarse = run.clock == EITHER ? draw() % 2 : run.clock == COARSE;
	v->beside = between(2, 12);
	n_variants++;
	return v;
}

static const char *name_of_run(void)
{
	static char name[96];

	snprintf(name, sizeof(name), "SEQUENCE='%s %s %" PRIu64 "' build/unit/test_sequences",
		 run.family->name, clocks[run.clock], run.seed);
	return name;
}

/* --- packets and changes ------------------------------------------------------------------------
 */

/* One by one and in bursts, dense and after silence. */
static void traffic(uint64_t for_ns)
{
	uint64_t end_ns = kernel_now_ns + for_ns;

	while (kernel_now_ns < end_ns) {
		uint64_t burst = draw() % 4 ? 1 : between(1, 40);
		uint32_t source = (uint32_t)between(0, SOURCES - 1);
		uint32_t cpu = (uint32_t)between(0, KERNEL_CPUS - 1);

		kernel_now_ns += draw() % 8 ? between(MS / 20, 4 * MS) : between(MS, 300 * MS);
		while (burst-- && packet(cpu, source))
			;
	}
}

static void traffic_meanwhile(void)
{
	take_leases();
	traffic(draw() % 3 ? between(1, 3 * MS) : between(MS, 600 * MS));
	put_leases();
}

static void apply_any(void)
{
	const struct variant *v = any_variant();

	change_to(v, draw() % 3 ? 0 : between(50, 2500) * MS);
}

/* False: the trial goes on. */
static bool end_trial(void)
{
	if (draw() % 2)
		confirm_it();
	else if (draw() % 2)
		traffic(copies_pending_ns(&pacer) + between(1, 100 * MS));
	put_leases();
	return !copies_pending_ns(&pacer);
}

static void change_any(void)
{
	look();
	put_leases();
	grace_hook = draw() % 2 ? traffic_meanwhile : NULL;
	if (copies_pending_ns(&pacer) && !end_trial())
		return;
	if (run.rotates && draw() % 4 == 0)
		rotate_it();
	else
		apply_any();
	grace_hook = NULL;
	take_leases();
	look();
}

/* The machine is off for a while, or only the pacer is, and begins as it was, or with another. */
static void restart_any(void)
{
	bool booted = draw() % 2;
	const struct variant *v = draw() % 3 ? any_variant() : &variant[in_force()];
	uint64_t off_ns = between(0, draw() % 2 ? 300 * MS : 5 * SECOND);

	restart(v, off_ns, booted ? between(RESOLUTION, draw() % 2 ? 100 * MS : 20 * SECOND) : 0);
}

/* --- sequences
 * ------------------------------------------------------------------------------------ */

/* After a long silence, all of a limit is there. */
static void check_rest(void)
{
	struct variant *v = any_variant();
	uint64_t n = 0, least;

	v->says = ASKS;
	v->n = 1;
	kernel_now_ns += copies_pending_ns(&pacer) + QUIET_NS;
	put_leases();
	if (change_apply(&pacer, text_of(v), NULL, 0, &plan, &error))
		fail_msg("%s: after a silence: %s", work.name, error.text);
	take_leases();
	kernel_now_ns += QUIET_NS;
	while (n < v->limit[0].value && packet(0, 0))
		n++;
	least = v->limit[0].kind == LIMIT_GAP ? 1 : v->limit[0].value;
	if (v->coarse && v->limit[0].kind == LIMIT_RATE) /* it is a tick shorter */
		least = 0;
	if (n >= least || work.broken) /* by a window that it passed */
		return;
	work.broken = true;
	printf("%" PRIu64 " of %" PRIu64 " are there after a silence\nagain, alone: %s\n", n, least,
	       work.name);
}

static uint64_t last_secret[2][PACER_SECRETS]; /* of the last pacer */

/* True: it broke no limit. */
static bool sequence(const struct family *family, enum clock clock, uint64_t seed, bool told)
{
	memset(&run, 0, sizeof(run));
	run.family = family;
	run.clock = clock;
	run.seed = seed;
	begin_work(name_of_run(), told);
	oracle_seed(seed);
	run.alone = draw() % 4 == 0;
	run.keys = draw() % 4 == 0;
	run.rests = draw() % 4 != 0;
	run.rotates = draw() % 2;
	run.restarts = draw() % 2;
	boot.believed = draw() % 2;
	any_variant()->says = ASKS;
	load_first(&variant[0]);
	for (uint32_t i = 0; i < CHANGES && !work.broken && !work.lost; i++) {
		traffic(between(MS, draw() % 3 ? 800 * MS : 5 * SECOND));
		if (run.restarts && draw() % 4 == 0)
			restart_any();
		else
			change_any();
	}
	if (!work.broken && !work.lost)
		check_rest();
	memcpy(last_secret, control->secret, sizeof(last_secret));
	(void)end(NULL);
	return !work.broken;
}

/* One that broke a limit once can be run again: all that is random in it comes from its seed. */
static void test_again(void **state)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		uint64_t secret[2][PACER_SECRETS], ended_ns;
		uint32_t n;

		(void)sequence(*state, EXACT, seed, false);
		memcpy(secret, last_secret, sizeof(secret));
		ended_ns = now_ns();
		n = n_admitted;
		(void)sequence(*state, EXACT, seed, false);
		assert_memory_equal(secret, last_secret, sizeof(secret));
		assert_int_equal(ended_ns, now_ns());
		assert_int_equal(n, n_admitted);
	}
}

/* Sequences in which a key once had too much. */
static void test_that_were_broken(void **unused)
{
	(void)unused;
	/* a burst is raised that would still build if it had been as large */
	assert_true(sequence(&families[0], EXACT, 77698, false));
	assert_true(sequence(&families[0], COARSE, 77996, false));
	assert_true(sequence(&families[1], EXACT, 77613, false));
	/* a burst is lowered while it builds, and raised again */
	assert_true(sequence(&families[0], EITHER, 78010, false));
	assert_true(sequence(&families[1], EXACT, 78186, false));
}

static void test_sequences(void **state)
{
	const struct family *family = *state;
	uint64_t from = from_environment("FROM", 1), n = from_environment("SEQUENCES", SEEDS);
	uint32_t broken = 0;

	for (enum clock clock = EXACT; clock <= EITHER; clock++)
		for (uint64_t seed = from; seed < from + n; seed++)
			broken += !sequence(family, clock, seed, false);
	assert_int_equal(broken, 0);
}

static int run_again(const char *which)
{
	char family[16], clock[16];
	uint64_t seed;

	if (sscanf(which, "%15s %15s %" SCNu64, family, clock, &seed) != 3)
		return 2;
	for (size_t f = 0; f < ARRAY(families); f++)
		for (enum clock c = EXACT; c <= EITHER; c++)
			if (!strcmp(family, families[f].name) && !strcmp(clock, clocks[c]))
				return !sequence(&families[f], c, seed, true);
	return 2;
}

#define CASE(f)                                                                    \
	{                                                                          \
		families[f].name, test_sequences, NULL, NULL, (void *)&families[f] \
	}

static int tests(void)
{
	const struct CMUnitTest all[] = {CASE(0),
					 CASE(1),
					 CASE(2),
					 CASE(3),
					 CASE(4),
					 {"again", test_again, NULL, NULL, (void *)&families[0]},
					 cmocka_unit_test(test_that_were_broken)};

	cmocka_set_test_filter(getenv("FAMILY"));
	return getenv("SEQUENCE") ? run_again(getenv("SEQUENCE"))
				  : cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
	return with_saved(tests);
}
