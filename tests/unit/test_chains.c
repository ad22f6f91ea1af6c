/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chains of a few changes of one limit, or of the targets of pools, under a source that never
 * rests: values that come back, policies on trial that lapse, rules that rest, other secrets,
 * restarts. What each admits at a change is small, so that a limit that forgets what another let
 * through shows at once. After a silence all of each limit is there.
 *
 * And chains of a few limits of one kind, which differ in what they count (new flows or all, by a
 * source or its prefix), in their rule, or in their shape alone.
 *
 * A chain is what its family and its seed make of it. Of some families one of the changes is
 * killed, each time the chain is run as it writes once more (killed.h). One that fails says how it
 * is run again, alone, and is printed then. CHAINS=5000 runs so many of each family instead of a
 * few, from the seed FROM on, and FAMILY=pools no others (`make sequences`).
 */
#include "at_work.h"

#define SEEDS	80u /* of each family, unless CHAINS says how many */
#define SEVERAL 30u /* ... of those of several limits */
#define CHANGES 8u  /* at most */
#define SWEEPS	16u /* of chains that kill a change there is one for so many others */

/* What the limits of a policy differ in, beside their values and times. */
enum among {
	ALONE,
	FLOWS, /* whether they count new flows, or all packets */
	KEYS,  /* source, or prefix */
	RULES, /* the rule that they are of; and rules come and go, and change places and matches */
	SHAPES, /* their shapes alone: those of one key and time may outdo each other */
};

static const struct family {
	const char *name;
	enum of of; /* of those that differ so: drawn for each chain */
	enum among among;
	bool kills; /* one of the changes, wherever it may be */
} families[] = {
    {"rates", OF_RATE, ALONE, false},	      {"windows", OF_WINDOW, ALONE, false},
    {"uses", OF_USES, ALONE, false},	      {"gaps", OF_GAP, ALONE, false},
    {"pools", OF_TARGETS, ALONE, false},      {"rates-killed", OF_RATE, ALONE, true},
    {"uses-killed", OF_USES, ALONE, true},    {"windows-killed", OF_WINDOW, ALONE, true},
    {"gaps-killed", OF_GAP, ALONE, true},     {"pools-killed", OF_TARGETS, ALONE, true},
    {"flows", OF_WINDOW, FLOWS, false},	      {"keys", OF_WINDOW, KEYS, false},
    {"rules", OF_WINDOW, RULES, false},	      {"beside", OF_WINDOW, SHAPES, false},
    {"flows-killed", OF_WINDOW, FLOWS, true}, {"keys-killed", OF_WINDOW, KEYS, true},
    {"rules-killed", OF_WINDOW, RULES, true}, {"beside-killed", OF_WINDOW, SHAPES, true},
};

#define FEW 3u

/*
 * The chain that is run. Its policies take their values and times from a few, so that they come
 * back, and that what a change lets through is not lost in what the loosest of many may.
 */
static const struct family *family;
static enum of of_chain;
static struct limit few[FEW];
static uint32_t n_values, n_times; /* of them, 0: any */
static uint64_t beside;		   /* see struct variant */
static uint32_t targets;	   /* that pools may have, a bit for each */

/* --- policies -----------------------------------------------------------------------------------
 */

#define PICK(of) ((of)[draw() % ARRAY(of)])

static uint64_t any_time_ms(void)
{
	return PICK(times_ns) / MS;
}

/* Limits of packets and of bytes that stand beside each other are two, and none is the tighter. */
static void draw_where(struct limit *l)
{
	l->bytes = false;
	l->of_new = family->among == FLOWS && l->kind != LIMIT_THROTTLE && draw() % 2;
	l->rule = family->among == RULES && draw() % 2;
	if (family->among != KEYS)
		return;
	l->wider_key = false;
	l->by = draw() % 2 ? BY_PREFIX : BY_SOURCE;
}

static struct limit any_limit(enum of of)
{
	static const uint64_t speeds[] = {2, 5, 25, 250}, bursts[] = {2, 3, 20, 200};
	static const uint64_t packets[] = {3, 20, 250, 300}, gaps_ms[] = {10, 50, 300, 1000};
	static const uint64_t uses[] = {2, 10, 40, 200};
	struct limit l = {.by = BY_SOURCE, .wider_key = draw() % 8 == 0, .roomy = draw() % 8 == 0};

	l.speed = PICK(speeds);
	l.window_ms = any_time_ms();
	switch (of) {
	case OF_RATE:
		l.kind = LIMIT_RATE;
		l.value = PICK(bursts);
		break;
	case OF_WINDOW:
		l.kind = LIMIT_WINDOW;
		l.value = PICK(packets);
		l.slots = draw() % 2 ? 5 : 10;
		break;
	case OF_GAP:
		l.kind = LIMIT_GAP;
		l.value = PICK(gaps_ms);
		l.roomy = false;
		break;
	default: /* and each of a pool's targets */
		l.kind = LIMIT_THROTTLE;
		l.by = BY_DESTINATION;
		l.value = PICK(uses);
	}
	if (n_values && of == of_chain)
		l.value = few[draw() % n_values].value;
	if (n_times) {
		l.speed = few[draw() % n_times].speed;
		l.window_ms = few[draw() % n_times].window_ms;
	}
	l.threshold = draw() % 2 ? l.value : (l.value + 9) / 10;
	l.bytes = (of == OF_RATE || of == OF_WINDOW) && draw() % 4 == 0;
	if (family->among != ALONE)
		draw_where(&l);
	return l;
}

static enum of any_of(void)
{
	static const enum of each[] = {OF_WINDOW, OF_RATE, OF_GAP, OF_USES};

	if (family->among == ALONE)
		return family->of;
	if (family->among == SHAPES) /* a key has one gap */
		return each[draw() % 2];
	/* to clear a throttle is thousands of writes, to be killed at */
	return each[draw() % (family->among == RULES && !family->kills ? 4 : 3)];
}

static void draw_few(void)
{
	static const uint32_t some[] = {1, 1, 3, 7};

	of_chain = any_of();
	n_values = n_times = 0;
	for (uint32_t i = 0; i < FEW; i++)
		few[i] = any_limit(of_chain);
	n_values = (uint32_t)between(0, FEW);
	n_times = family->among == SHAPES ? 1 : (uint32_t)between(0, FEW);
	targets = PICK(some);
	beside = draw() % 2 ? 5 : 0;
}

/* Of the two rules' places, and of what falls under them. */
static void any_matches(struct variant *v)
{
	v->second.first = family->among == RULES && draw() % 2;
	v->second.of_all = family->among == RULES && draw() % 3 == 0;
	v->narrow = family->among == RULES && draw() % 2;
}

/* Each target is in one of them, or in none. */
static void any_pools(struct variant *v)
{
	uint32_t n = (uint32_t)between(1, VARIANT_POOLS), last = 0;

	v->n_pools = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct limit each = any_limit(OF_TARGETS);
		struct pool *p = &v->pool[v->n_pools];
		uint32_t end = i + 1 < n ? (uint32_t)between(last, VARIANT_TARGETS)
					 : VARIANT_TARGETS - draw() % 2;

		*p = (struct pool){.each = each.value, .cooldown_ms = each.window_ms};
		for (; last < end; last++)
			p->targets |= targets & 1u << last;
		p->threshold = (uint32_t)__builtin_popcount(p->targets) * each.threshold;
		v->n_pools += p->targets != 0;
	}
}

static void add_limit(struct variant *v, enum of of)
{
	struct limit *l = &v->limit[v->n++];

	*l = any_limit(of);
	l->wider_key = v->limit[0].wider_key;
}

/* What a limit counts, and where rules are two. Or one goes, and another gets its value. */
static void vary_where(struct variant *v, struct limit *of, const struct limit *with)
{
	if (v->n > 1 && v->limit[v->n - 1].kind == of->kind && draw() % 2) {
		of->value = v->limit[--v->n].value;
		of->threshold = v->limit[v->n].threshold;
	} else if (v->n < VARIANT_LIMITS && draw() % 2) {
		add_limit(v, of_chain);
	} else if (family->among != RULES || draw() % 2) {
		of->by = with->by;
		of->of_new = with->of_new;
		of->rule = with->rule;
	} else {
		any_matches(v);
	}
}

/* One that says something else of one thing than the last one did. */
static void vary(struct variant *v)
{
	struct limit with = any_limit(of_chain), *of = &v->limit[draw() % (v->n ? v->n : 1)];

	if (draw() % 4 == 0) {
		v->coarse = !v->coarse;
	} else if (v->n > 1 && draw() % 2) {
		*of = v->limit[--v->n];
	} else if (family->among != ALONE && draw() % 2) {
		vary_where(v, of, &with);
	} else if (of_chain == OF_TARGETS) {
		if (v->n_pools && draw() % 2)
			v->pool[draw() % v->n_pools].cooldown_ms = with.window_ms;
		else
			any_pools(v);
	} else if (of->kind != with.kind) { /* a gap beside a window */
		of->value = any_limit(OF_GAP).value;
	} else if (draw() % 2) {
		of->value = with.value;
		of->threshold = with.threshold;
	} else {
		of->speed = with.speed;
		of->window_ms = with.window_ms;
	}
}

/* One, or two rates of one key, or a window with a gap, another window, or both. */
static void any_limits(struct variant *v)
{
	if (of_chain == OF_TARGETS) {
		any_pools(v);
		return;
	}
	add_limit(v, of_chain);
	if ((of_chain == OF_RATE || of_chain == OF_WINDOW) && draw() % 4 == 0)
		add_limit(v, of_chain);
	if (v->n == 2 && v->limit[1].window_ms == v->limit[0].window_ms && of_chain == OF_WINDOW)
		v->n = 1;
	if (of_chain == OF_WINDOW && draw() % 4 == 0)
		add_limit(v, OF_GAP);
}

/* Up to three, and perhaps a gap beside windows. */
static void any_several(struct variant *v)
{
	uint32_t n = (uint32_t)between(1, 3);

	for (uint32_t i = 0; i < n; i++)
		add_limit(v, of_chain);
	if (of_chain == OF_WINDOW && draw() % 4 == 0)
		add_limit(v, OF_GAP);
	any_matches(v);
}

/* Of uses, and of gaps of one key, a rule has one. */
static bool is_double(const struct limit *a, const struct limit *b)
{
	return a->kind == b->kind && a->rule == b->rule &&
	       (a->kind == LIMIT_THROTTLE ||
		(a->kind == LIMIT_GAP && a->by == b->by && a->of_new == b->of_new));
}

/* Rules are there that have limits. */
static void leave_out_doubles(struct variant *v)
{
	for (uint32_t i = 1, k; i < v->n; i++) {
		for (k = 0; k < i && !is_double(&v->limit[i], &v->limit[k]); k++)
			;
		if (k < i)
			v->limit[i--] = v->limit[--v->n];
	}
	v->second.there = has_limits(v, 1);
}

/* None of bytes may be smaller than a frame. */
static void say_bytes(struct variant *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		v->limit[i].bytes &= v->limit[i].value * PACKET_BYTES >= POLICY_FRAME_MAX;
}

/* Often one that was there before, or nearly. */
static struct variant *any_variant(void)
{
	struct variant *v = &variant[n_variants];
	bool again = n_variants && draw() % 3;

	assert_true(n_variants < VARIANTS);
	if (again) {
		*v = variant[draw() % n_variants];
		v->says = v->second.says = ASKS;
	}
	if (again && draw() % 2) {
		vary(v);
	} else if (!again) {
		*v = (struct variant){.says = ASKS, .beside = beside};
		v->coarse = draw() % 4 == 0;
		if (family->among == ALONE)
			any_limits(v);
		else
			any_several(v);
	}
	if (family->among != ALONE)
		leave_out_doubles(v);
	say_bytes(v);
	n_variants++;
	return v;
}

/* --- packets ------------------------------------------------------------------------------------
 */

/* Where a packet's flow is known, limits of new flows alone hold nothing back. */
static bool packet_of_flow(uint32_t cpu, bool known)
{
	const struct variant *v = &variant[in_force()];
	struct sent p = {0, RULE_PORT, known ? last_flow : last_flow + 1};
	bool all = false;

	for (uint32_t i = 0; i < v->n; i++)
		all |= !v->limit[i].of_new;
	return (all || !known) && packet_of(cpu, p);
}

/* From one of the two that send; or what it sends. */
static bool packet_from(uint32_t sender)
{
	uint32_t cpu = (uint32_t)between(0, KERNEL_CPUS - 1);

	if (of_chain == OF_TARGETS)
		return packet_to_pool(cpu, sender);
	switch (family->among) {
	case FLOWS:
		return packet_of_flow(cpu, sender);
	case KEYS: /* of one prefix */
		return packet(cpu, 1 + sender);
	case RULES:
		return packet_of(cpu, (struct sent){0, RULE_PORT + sender, FIRST_FLOW});
	default:
		return packet(cpu, 0);
	}
}

/* As many at once as there are, from CPUs in no order. */
static void all_that_may(void)
{
	uint32_t first = (uint32_t)(draw() % 2);
	bool both = family->among != ALONE && family->among != SHAPES;

	while (packet_from(first))
		;
	while (both && packet_from(1 - first))
		;
}

static void traffic(uint64_t for_ns)
{
	uint64_t end_ns = kernel_now_ns + for_ns;

	while (kernel_now_ns < end_ns) {
		uint64_t step_ns = between(MS / 2, 10 * MS);

		kernel_now_ns = step_ns < end_ns - kernel_now_ns ? kernel_now_ns + step_ns : end_ns;
		all_that_may();
	}
}

static void traffic_meanwhile(void)
{
	take_leases();
	traffic(between(1, 20 * MS));
	put_leases();
}

static uint64_t any_while(void)
{
	switch (draw() % 4) {
	case 0:
		return between(1, 20 * MS);
	case 1:
		return between(100 * MS, 700 * MS);
	case 2:
		return between(SECOND, 3 * SECOND);
	default:
		return between(3 * SECOND, 7 * SECOND);
	}
}

/*
 * Until a little before, or after, one of the limits in force begins or is over, which is when
 * changes have most to know; or any while.
 */
static uint64_t while_to_an_end(void)
{
	const struct pacer_policy *policy = &copies[copies_in_force(&pacer)].policy;
	const struct pacer_rule *rule = &policy->rule[family->among == RULES && draw() % 2];
	uint64_t at_ns = 0, most_ns = kernel_now_ns + 30 * SECOND;

	for (size_t k = 0, turn = draw(); k < rule->n_limiters && !at_ns; k++) {
		const struct pacer_limiter *t = &rule->limiter[(turn + k) % rule->n_limiters];
		bool rate = pacer_limiter_kind_of(t) == PACER_LIMITER_RATE;

		at_ns = rate && draw() % 2 ? t->rate.begin_ns : t->until_ns;
		if (at_ns <= kernel_now_ns + 100 * MS || at_ns > most_ns)
			at_ns = 0;
	}
	return at_ns ? at_ns - kernel_now_ns + between(0, 300 * MS) - 50 * MS : any_while();
}

/* --- changes ------------------------------------------------------------------------------------
 */

/* ... which ends by itself, is confirmed, or goes on as the next change comes. */
static void try(void)
{
	uint64_t confirm_ns = between(100, 3000) * (family->kills ? 10 : 1) * MS,
		 for_ns = between(0, confirm_ns);
	bool confirmed = draw() % 3 == 0;

	change_to(any_variant(), confirm_ns);
	take_leases();
	traffic(draw() % 4 ? for_ns : confirm_ns + 1);
	put_leases();
	if (confirmed && copies_pending_ns(&pacer))
		confirm_it();
}

static void rest(void)
{
	struct variant *v = any_variant();

	if (family->among != RULES || draw() % 2)
		v->says = draw() % 2 ? DENIES : GONE;
	else
		v->second.says = draw() % 2 ? DENIES : GONE;
	change_to(v, 0);
}

static void restart_any(void)
{
	const struct variant *v = draw() % 2 ? any_variant() : &variant[in_force()];
	bool booted = draw() % 2;

	restart(v, draw() % 2 ? between(1, 300 * MS) : between(1, 4 * SECOND),
		booted ? between(RESOLUTION, 20 * SECOND) : 0);
}

static void change_any(void)
{
	look();
	put_leases();
	grace_hook = draw() % 2 ? traffic_meanwhile : NULL;
	switch (draw() % 10) {
	case 0:
	case 1:
	case 2:
		try();
		break;
	case 3:
		rest();
		break;
	case 4:
		rotate_it();
		break;
	case 5:
		restart_any();
		break;
	default:
		change_to(any_variant(), 0);
	}
	grace_hook = NULL;
	take_leases();
	look();
}

/* --- chains -------------------------------------------------------------------------------------
 */

/* All that a policy has after a silence, of a source or of all targets. */
static uint64_t all_of(const struct variant *v)
{
	uint32_t rule = rule_for(v, RULE_PORT);
	uint64_t all = 0;

	for (uint32_t i = 0; i < v->n_pools; i++)
		all += v->pool[i].each * (uint64_t)__builtin_popcount(v->pool[i].targets);
	for (uint32_t i = 0; i < v->n; i++) {
		uint64_t n = v->limit[i].kind == LIMIT_GAP ? 1 : v->limit[i].value;

		if (v->limit[i].rule == rule)
			all = all && all < n ? all : n;
	}
	/* of a burst the coarse clock lets less through: it is a tick shorter */
	return v->coarse && of_chain == OF_RATE ? 0 : all;
}

static void check_rest(void)
{
	struct variant *v = any_variant();
	uint64_t n = 0;

	kernel_now_ns += copies_pending_ns(&pacer) + QUIET_NS;
	put_leases();
	change_to(v, 0);
	if (in_force() != (uint32_t)(v - variant))
		fail_msg("%s: after a silence: %s", work.name, error.text);
	take_leases();
	kernel_now_ns += 2 * QUIET_NS; /* a rate's burst builds when the one before it is over */
	for (uint32_t i = 0; i < v->n_pools; i++)
		while (packet_to_pool(0, i))
			n++;
	while (v->n && packet_of(0, (struct sent){0, RULE_PORT, last_flow + 1}))
		n++;
	if (n >= all_of(v) || work.broken)
		return;
	work.broken = true;
	printf("%" PRIu64 " of %" PRIu64 " are there after a silence\nagain, alone: %s\n", n,
	       all_of(v), work.name);
}

/* True: it broke no limit. kill: see kill_at, of the last change or the one before it. */
static bool chain(const struct family *of, uint64_t seed, uint32_t kill, bool told)
{
	static char name[96];
	uint64_t changes, doomed;

	family = of;
	snprintf(name, sizeof(name), "CHAIN='%s %" PRIu64 " %" PRIu32 "' build/unit/test_chains",
		 of->name, seed, kill);
	begin_work(name, told);
	oracle_seed(seed);
	changes = between(2, of->kills ? 4 : CHANGES);
	doomed = of->kills ? changes - 1 - draw() % 2 : changes;
	draw_few();
	load_first(any_variant());
	for (uint64_t i = 0; i < changes && !work.broken && !work.lost; i++) {
		traffic(draw() % 2 ? any_while() : while_to_an_end());
		if (draw() % 8 == 0)
			kernel_now_ns += any_while();
		kill_at = i == doomed ? kill : 0;
		change_any();
	}
	kill_at = 0;
	if (!work.lost)
		traffic(of->kills ? 8 * SECOND : 4 * SECOND);
	if (!work.broken && !work.lost)
		check_rest();
	(void)end(NULL);
	return !work.broken;
}

static uint64_t chains_of(const struct family *of)
{
	return from_environment("CHAINS", of->among == ALONE ? SEEDS : SEVERAL);
}

/* Changes are made, and not all refused. */
static void test_chains(void **state)
{
	const struct family *of = *state;
	uint64_t from = from_environment("FROM", 1), n = chains_of(of);
	uint64_t done = 0, refused = 0, broken = 0;

	for (uint64_t seed = from; seed < from + n; seed++) {
		broken += !chain(of, seed, 0, false);
		done += work.done;
		refused += work.refused;
	}
	assert_int_equal(broken, 0);
	if (done < n || refused > done / 4)
		fail_msg("%" PRIu64 " chains: %" PRIu64 " changes, and %" PRIu64 " refused", n,
			 done, refused);
}

/*
 * Each chain again and again, until the change writes less often than that. One that clears much
 * writes hundreds of times.
 */
static void test_kills(void **state)
{
	uint64_t from = from_environment("FROM", 1), n = chains_of(*state);
	uint64_t kills = 0, broken = 0;

	for (uint64_t seed = from; seed < from + (n + SWEEPS - 1) / SWEEPS; seed++)
		for (uint32_t kill = 1; !broken && (kill == 1 || work.killed);
		     kill += 1 + kill / 4) {
			broken += !chain(*state, seed, kill, false);
			kills += work.killed;
		}
	assert_int_equal(broken, 0);
	if (!KILLED_AT_STORES)
		print_message("skipped: a change is killed at each store on x86-64 alone\n");
	else if (!kills)
		fail_msg("no change was killed");
}

/*
 * A rate of other entries, and wait_ns later a trial of the one before, which is killed. What is in
 * force has the bursts that a key can have built, and no more.
 */
static bool killed_trial_admits(uint64_t wait_ns, uint32_t kill)
{
	const struct variant of_rate = {
	    .says = ASKS,
	    .n = 1,
	    .limit = {{.kind = LIMIT_RATE, .by = BY_SOURCE, .value = 20, .speed = 1}}};

	family = &families[0];
	of_chain = family->of;
	begin_work("test_a_trial_is_killed", false);
	for (n_variants = 0; n_variants < 3; n_variants++)
		variant[n_variants] = of_rate;
	variant[1].limit[0].roomy = true;
	load_first(&variant[0]);
	traffic(3 * SECOND);
	change_to(&variant[1], 0);
	traffic(wait_ns);
	kill_at = kill;
	change_to(&variant[2], 60 * SECOND);
	kill_at = 0;
	traffic(40 * SECOND);
	(void)end(NULL);
	return !work.broken;
}

static void test_a_trial_is_killed(void **unused)
{
	static const uint64_t waits_ns[] = {SECOND, 30 * SECOND, 45 * SECOND};

	(void)unused;
	for (size_t i = 0; i < ARRAY(waits_ns); i++)
		for (uint32_t kill = 1; kill == 1 || work.killed; kill++)
			if (!killed_trial_admits(waits_ns[i], kill))
				fail_msg("killed as it wrote for the %" PRIu32 ". time", kill);
}

/*
 * A trial holds by the looser of two windows of a key and time, which has the other one's value,
 * and not by the tighter one, which it leaves out or loosens. What it lets through is not forgotten
 * as it lapses, and both are there again.
 */
static void test_a_tighter_window_comes_back(void **unused)
{
	static const struct {
		uint64_t slots; /* of the tighter one: may the other go on with its state? */
		bool tried;
	} cases[] = {{10, false}, {5, false}, {10, true}};
	const struct limit loose = {
	    .kind = LIMIT_WINDOW, .by = BY_SOURCE, .value = 250, .window_ms = 1000, .slots = 5};

	(void)unused;
	family = &families[1];
	of_chain = family->of;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		struct limit tight = loose;

		begin_work("test_a_tighter_window_comes_back", false);
		tight.value = 20;
		tight.slots = cases[i].slots;
		variant[0] = (struct variant){.says = ASKS, .n = 2, .limit = {loose, tight}};
		variant[1] = variant[0];
		variant[1].n = 1 + cases[i].tried;
		variant[1].limit[0].value = 20;
		variant[1].limit[1].value = 250;
		n_variants = 2;
		load_first(&variant[0]);
		traffic(3 * SECOND);
		change_to(&variant[1], 2500 * MS);
		traffic(5 * SECOND);
		(void)end(NULL);
		assert_int_equal(work.done, 1);
		assert_false(work.broken);
	}
}

/* NULL: there is none of that name. */
static const struct family *family_of(const char *name)
{
	for (size_t f = 0; f < ARRAY(families); f++)
		if (!strcmp(name, families[f].name))
			return &families[f];
	return NULL;
}

/* In these a trial let a limit be passed as it ended; few others show it. */
static void test_chains_that_failed(void **unused)
{
	static const uint64_t seeds[] = {508, 870};

	(void)unused;
	for (size_t i = 0; i < ARRAY(seeds); i++)
		assert_true(chain(family_of("beside"), seeds[i], 0, false));
}

static int run_again(const char *which)
{
	const struct family *of;
	uint32_t kill = 0;
	char name[16];
	uint64_t seed;

	if (sscanf(which, "%15s %" SCNu64 " %" SCNu32, name, &seed, &kill) < 2)
		return 2;
	of = family_of(name);
	return of ? !chain(of, seed, kill, true) : 2;
}

#define CASE(f, test)                                                    \
	{                                                                \
		families[f].name, test, NULL, NULL, (void *)&families[f] \
	}

static int tests(void)
{
	const struct CMUnitTest all[] = {
	    CASE(0, test_chains),
	    CASE(1, test_chains),
	    CASE(2, test_chains),
	    CASE(3, test_chains),
	    CASE(4, test_chains),
	    CASE(5, test_kills),
	    CASE(6, test_kills),
	    CASE(7, test_kills),
	    CASE(8, test_kills),
	    CASE(9, test_kills),
	    CASE(10, test_chains),
	    CASE(11, test_chains),
	    CASE(12, test_chains),
	    CASE(13, test_chains),
	    CASE(14, test_kills),
	    CASE(15, test_kills),
	    CASE(16, test_kills),
	    CASE(17, test_kills),
	    cmocka_unit_test(test_chains_that_failed),
	    cmocka_unit_test(test_a_trial_is_killed),
	    cmocka_unit_test(test_a_tighter_window_comes_back),
	};

	cmocka_set_test_filter(getenv("FAMILY"));
	return getenv("CHAIN") ? run_again(getenv("CHAIN"))
			       : cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
	return with_saved(tests);
}
