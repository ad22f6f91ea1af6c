/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A change of a rule with several limits of mixed kinds, under a source that never rests. Of each
 * limit the value changes, or nothing. The rule rests before the change, or the change is on trial,
 * or a limit is added.
 *
 * Limits of packets and of bytes are mixed, too: each packet has as many bytes.
 *
 * No window as long as a limit's time has more packets than the loosest of the policies that were
 * in force in it allows, but for one where limits' times differ. A policy allows what its tightest
 * limit does. A limit that begins anew knows nothing of what came before (docs/limits.md): one that
 * is added, a rate after a rest, or one that is lowered on trial. There it holds for windows that
 * are no longer than each limit of the first policy remembers.
 *
 * A run is what its mode and its seed make of it. One that fails says how it is run again, alone,
 * and is printed then. MIXES=5000 runs so many of each mode, from the seed FROM on.
 */
#include "at_work.h"

#define SEEDS	80u	      /* of each mode, unless MIXES says how many */
#define LONGEST (11 * SECOND) /* of the windows that are looked at */

static const struct mode {
	const char *name;
	bool rests; /* the rule denies, or is not there, for a moment before */
	bool tries; /* the change lapses, and the first policy is in force again */
	bool adds;  /* a limit */
} modes[] = {{"plain", false, false, false},
	     {"rests", true, false, false},
	     {"tries", false, true, false},
	     {"adds", false, false, true},
	     {"rests-and-adds", true, false, true}};

#define PICK(of) ((of)[draw() % ARRAY(of)])

/* --- the oracle ---------------------------------------------------------------------------------
 */

static double most_of_policy(const struct variant *v, uint64_t span_ns)
{
	double least = INFINITY;

	if (v->says != ASKS)
		return 0;
	for (uint32_t i = 0; i < v->n; i++)
		least = fmin(least, most_of_limit(&v->limit[i], span_ns).most);
	return least;
}

/* By the policies that were in force since then. */
static double loosest(uint64_t from_ns, uint64_t span_ns)
{
	double most = 0;

	for (uint32_t i = n_since; i--;) {
		most = fmax(most, most_of_policy(&variant[since[i].variant], span_ns));
		if (since[i].at_ns < from_ns)
			break;
	}
	return most;
}

static uint64_t memory_of_limit(const struct limit *l)
{
	if (l->kind == LIMIT_RATE)
		return l->value * SECOND / l->speed;
	return (l->kind == LIMIT_GAP ? l->value : l->window_ms) * MS;
}

static uint64_t longest_ns;  /* of the windows that are looked at */
static uint64_t shortest_ns; /* that a limit remembers */

/*
 * Of the first policy: what the limit remembers that does so for longest, or, where limits begin
 * anew, for least. In a longer time what one policy allows may follow what the other did.
 */
static void set_longest(const struct variant *v, const struct mode *mode)
{
	bool anew = mode->adds || mode->tries;
	uint64_t most_ns = 0, least_ns = LONGEST;

	for (uint32_t i = 0; i < v->n; i++) {
		uint64_t memory_ns = memory_of_limit(&v->limit[i]);

		anew |= mode->rests && v->limit[i].kind == LIMIT_RATE;
		most_ns = memory_ns > most_ns ? memory_ns : most_ns;
		least_ns = memory_ns < least_ns ? memory_ns : least_ns;
	}
	shortest_ns = least_ns;
	longest_ns = anew ? least_ns : most_ns < LONGEST ? most_ns : LONGEST;
}

/* All windows that end now. They begin with the first of the packets of a moment. */
static void check(void)
{
	for (uint32_t i = n_admitted; i-- && !work.broken;) {
		uint64_t from_ns = admitted[i].at_ns, span_ns = now_ns() - from_ns;
		uint64_t n = n_admitted - i;
		double most;

		if (span_ns > longest_ns)
			break;
		if (i && admitted[i - 1].at_ns == from_ns)
			continue;
		/* a time of one limit may begin in the middle of another's: that is one packet */
		most = loosest(from_ns, span_ns) + (span_ns > shortest_ns);
		if ((double)n <= most + 1e-6)
			continue;
		work.broken = true;
		printf("%" PRIu64 " from %.6f to %.6f s, and policies in force allow %.2f\n"
		       "again, alone: %s\n",
		       n, (double)from_ns / 1e9, (double)now_ns() / 1e9, most, work.name);
	}
}

/* --- packets ------------------------------------------------------------------------------------
 */

static bool is_admitted(void)
{
	uint32_t cpu = (uint32_t)(draw() % KERNEL_CPUS);
	struct sent p = {0, RULE_PORT, FIRST_FLOW};

	if (pacer_outcome_reason(judge(cpu, p)) != PACER_ADMIT || variant[in_force()].says != ASKS)
		return false;
	note(p, 0, NO_TARGET);
	return true;
}

static void traffic(uint64_t for_ns)
{
	uint64_t end_ns = kernel_now_ns + for_ns;

	while (kernel_now_ns < end_ns && !work.broken) {
		uint64_t step_ns = between(5 * MS, 25 * MS);
		uint32_t before = n_admitted;

		kernel_now_ns +=
		    step_ns < end_ns - kernel_now_ns ? step_ns : end_ns - kernel_now_ns;
		while (is_admitted())
			;
		if (n_admitted > before)
			check();
	}
}

/* --- policies -----------------------------------------------------------------------------------
 */

static void any_value(struct limit *l)
{
	static const uint64_t packets[] = {2, 5, 10, 20, 50, 100, 200},
			      gaps_ms[] = {10, 50, 300, 1000};

	l->value = l->kind == LIMIT_GAP ? PICK(gaps_ms) : PICK(packets);
	/*
	 * Leases of two uses at most, and no fewer than CPUs may hold of them: a throttle that is
	 * lowered below that begins anew (docs/limits.md).
	 */
	if (l->kind == LIMIT_THROTTLE && l->value < KERNEL_CPUS)
		l->value = KERNEL_CPUS;
	if (l->bytes && l->value * PACKET_BYTES < POLICY_FRAME_MAX)
		l->value = POLICY_FRAME_MAX / PACKET_BYTES + 1;
	l->threshold = (l->value + 19) / 20;
}

static struct limit any_limit(void)
{
	static const enum policy_limit_kind kinds[] = {LIMIT_WINDOW, LIMIT_WINDOW, LIMIT_WINDOW,
						       LIMIT_RATE,   LIMIT_GAP,	   LIMIT_THROTTLE};
	static const uint64_t speeds[] = {2, 5, 25}, slots[] = {10, 10, 20};
	struct limit l = {.kind = PICK(kinds),
			  .speed = PICK(speeds),
			  .window_ms = PICK(times_ns) / MS,
			  .slots = PICK(slots)};

	l.bytes = (l.kind == LIMIT_WINDOW || l.kind == LIMIT_RATE) && draw() % 3 == 0;
	l.by = l.kind == LIMIT_THROTTLE ? BY_DESTINATION : draw() % 2 ? BY_PREFIX : BY_SOURCE;
	any_value(&l);
	return l;
}

/* One of them would be left out, or refused. */
static bool is_double(const struct limit *a, const struct limit *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == LIMIT_THROTTLE)
		return true;
	return a->by == b->by && a->bytes == b->bytes &&
	       (a->kind == LIMIT_GAP || (a->kind == LIMIT_WINDOW && a->window_ms == b->window_ms) ||
		(a->kind == LIMIT_RATE && a->speed == b->speed));
}

static void any_limits(struct variant *v, uint32_t n)
{
	while (v->n < n) {
		struct limit *l = &v->limit[v->n++];

		*l = any_limit();
		for (uint32_t i = 0; i + 1 < v->n; i++)
			if (is_double(l, &v->limit[i])) {
				v->n--;
				break;
			}
	}
}

/* The first, the second, and one that rests. */
static void draw_policies(const struct mode *mode)
{
	uint32_t n = (uint32_t)between(1, 3);

	variant[0] = (struct variant){.says = ASKS, .beside = 5};
	any_limits(&variant[0], n + mode->adds);
	variant[1] = variant[0];
	for (uint32_t i = 0; i < variant[1].n; i++)
		if (draw() % 3)
			any_value(&variant[1].limit[i]);
	variant[0].n = n;
	set_longest(&variant[0], mode);
	variant[2] = (struct variant){.says = draw() % 2 ? DENIES : GONE, .beside = 5};
	n_variants = 3;
}

/* --- runs ---------------------------------------------------------------------------------------
 */

static void change(uint32_t to, uint64_t confirm_ns)
{
	put_leases();
	change_to(&variant[to], confirm_ns);
	take_leases();
}

/* True: it broke no limit. */
static bool run(const struct mode *mode, uint64_t seed, bool told)
{
	static char name[96];

	snprintf(name, sizeof(name), "MIX='%s %" PRIu64 "' build/unit/test_mixes", mode->name,
		 seed);
	begin_work(name, told);
	oracle_seed(seed);
	draw_policies(mode);
	load_first(&variant[0]);
	traffic(between(0, 3 * SECOND));
	if (draw() % 2) { /* all of each limit is there again */
		kernel_now_ns += 12 * SECOND;
		traffic(between(1, 300 * MS));
	}
	if (mode->rests) {
		change(2, 0);
		traffic(between(1, 200 * MS));
	}
	change(1, mode->tries ? between(100 * MS, 2 * SECOND) : 0);
	traffic(12 * SECOND);
	(void)end(NULL);
	return !work.broken;
}

/* Changes are made; a trial that would leave two rates to begin twice is refused. */
static void test_mixes(void **state)
{
	const struct mode *mode = *state;
	uint64_t from = from_environment("FROM", 1), n = from_environment("MIXES", SEEDS);
	uint64_t broken = 0, refused = 0;

	for (uint64_t seed = from; seed < from + n; seed++) {
		broken += !run(mode, seed, false);
		refused += work.refused;
	}
	assert_int_equal(broken, 0);
	if (refused > (mode->tries ? n / 50 : 0))
		fail_msg("%" PRIu64 " changes of %" PRIu64 " are refused", refused, n);
}

static int run_again(const char *which)
{
	char name[20];
	uint64_t seed;

	if (sscanf(which, "%19s %" SCNu64, name, &seed) != 2)
		return 2;
	for (size_t i = 0; i < ARRAY(modes); i++)
		if (!strcmp(name, modes[i].name))
			return !run(&modes[i], seed, true);
	return 2;
}

#define CASE(m)                                                            \
	{                                                                  \
		modes[m].name, test_mixes, NULL, NULL, (void *)(&modes[m]) \
	}

static int tests(void)
{
	const struct CMUnitTest all[] = {CASE(0), CASE(1), CASE(2), CASE(3), CASE(4)};

	return getenv("MIX") ? run_again(getenv("MIX")) : cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
	return with_saved(tests);
}
