/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <pthread.h>
#include <sched.h>

#include "throttle_oracle.h"

typedef struct pacer_throttle_state state_t;
typedef struct pacer_throttle_lease lease_t;

static uint32_t buckets(const state_t *state)
{
	return state->tail - state->head;
}

/* ---- configuration ---- */

static void test_configure(void **unused)
{
	static const struct {
		params_t params;
		int error;
		uint32_t buckets;
	} rows[] = {
	    {{500, 50, 1, 1, 600, 660, 0, 0}, PACER_THROTTLE_OK, 20},
	    {{500, 500, 1, 1, 600, 660, 0, 0}, PACER_THROTTLE_OK, 11},
	    {{500, 50, 1, 1, 600, FOREVER, 0, 0}, PACER_THROTTLE_OK, 11},
	    {{500, 50, 1, 50, 600, 660, 9, 0}, PACER_THROTTLE_OK, 20},
	    {{500, 50, 2, 26, 600, 660, 9, 0}, PACER_THROTTLE_OK, 30},
	    {{500, 50, 1, 1, 600, 660, 0, 1}, PACER_THROTTLE_OK, 21},
	    {{100000, 1000, 2, 100, 10000, 11000, 9, 4}, PACER_THROTTLE_OK, 122},
	    {{UINT32_MAX, UINT32_MAX, 1, 1, 1, 2, 0, 0}, PACER_THROTTLE_OK, 2},
	    {{239, 1, 1, 1, 1, 2, 0, 0}, PACER_THROTTLE_OK, 240},
	    {{240, 1, 1, 1, 1, 2, 0, 0}, PACER_THROTTLE_BAD_BUCKETS, 0},
	    {{1, 1, 1, 1, 240, 241, 0, 0}, PACER_THROTTLE_BAD_BUCKETS, 0},
	    {{1, 1, 1, 1, FOREVER - 1, FOREVER, 0, 0}, PACER_THROTTLE_BAD_BUCKETS, 0},
	    {{0, 0, 1, 1, 1, 2, 0, 0}, PACER_THROTTLE_BAD_LIMIT, 0},
	    {{5, 0, 1, 1, 1, 2, 0, 0}, PACER_THROTTLE_BAD_THRESHOLD, 0},
	    {{5, 6, 1, 1, 1, 2, 0, 0}, PACER_THROTTLE_BAD_THRESHOLD, 0},
	    {{5, 5, 1, 1, 0, 2, 0, 0}, PACER_THROTTLE_BAD_COOLDOWN, 0},
	    {{5, 5, 1, 1, 2, FOREVER, 0, FOREVER - 1}, PACER_THROTTLE_BAD_COOLDOWN, 0},
	    {{5, 5, 1, 1, 2, 2, 0, 0}, PACER_THROTTLE_BAD_MAX_COOLDOWN, 0},
	    {{5, 5, 1, 1, 2, 1, 0, 0}, PACER_THROTTLE_BAD_MAX_COOLDOWN, 0},
	    {{5, 5, 0, 1, 2, 3, 0, 0}, PACER_THROTTLE_BAD_CPUS, 0},
	    {{5, 5, 1, 0, 2, 3, 0, 0}, PACER_THROTTLE_BAD_LEASE, 0},
	    {{5, 4, 1, 5, 2, 3, 0, 0}, PACER_THROTTLE_BAD_LEASE, 0},
	    {{5, 4, 3, 3, 2, 3, 0, 0}, PACER_THROTTLE_BAD_LEASE, 0},
	    {{5, 4, UINT32_MAX, 4, 2, 3, 0, 0}, PACER_THROTTLE_BAD_LEASE, 0},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		profile_t profile = {0}, zero = {0};

		assert_int_equal(pacer_throttle_configure(&profile, &rows[i].params),
				 rows[i].error);
		assert_int_equal(profile.buckets, rows[i].buckets);
		if (rows[i].error)
			assert_memory_equal(&profile, &zero, sizeof(zero));
	}
}

static void test_lease_max_is_the_largest(void **unused)
{
	(void)unused;
	oracle_seed(1);
	for (int i = 0; i < 20000; i++) {
		params_t params = alone(between(1, 3000), 0, between(1, 1000), 0);
		profile_t profile;
		uint32_t max;

		params.threshold = between(1, params.limit);
		params.cpus = between(1, 9);
		params.max_cooldown_ns = params.cooldown_ns + between(1, 300);
		params.resolution_ns = between(0, 9);
		max = pacer_throttle_lease_max(params);
		params.lease = max ? max : 1;
		assert_int_equal(!pacer_throttle_configure(&profile, &params), max != 0);
		params.lease = max + 1;
		if (max)
			assert_int_not_equal(pacer_throttle_configure(&profile, &params),
					     PACER_THROTTLE_OK);
	}
}

static void test_unconfigured_denies(void **unused)
{
	static profile_t profile;
	static state_t state;
	lease_t lease = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_free(&profile, &state, START), 0);
	assert_int_not_equal(pacer_throttle_use(&profile, &state, START, 1), PACER_THROTTLE_ADMIT);
	assert_int_not_equal(pacer_throttle_take(&profile, &state, &lease, START, 1),
			     PACER_THROTTLE_ADMIT);
}

/* ---- timelines, one caller ---- */

struct event {
	uint64_t now;
	uint32_t n;
	int result;
	uint32_t free; /* after */
};

static void play(params_t params, const struct event *event, size_t events)
{
	profile_t profile = configured(params);
	state_t *state = calloc(1, sizeof(*state));

	for (size_t i = 0; i < events; i++) {
		assert_int_equal(pacer_throttle_use(&profile, state, event[i].now, event[i].n),
				 event[i].result);
		assert_int_equal(pacer_throttle_free(&profile, state, event[i].now), event[i].free);
	}
	free(state);
}

#define ADMIT PACER_THROTTLE_ADMIT
#define FULL  PACER_THROTTLE_FULL
#define MANY  PACER_THROTTLE_MANY

static void test_a_bucket_comes_back_after_its_last_use(void **unused)
{
	static const struct event line[] = {
	    {100, 2, ADMIT, 2}, {104, 1, ADMIT, 1}, {105, 1, ADMIT, 0}, {109, 1, FULL, 0},
	    {113, 1, FULL, 0},	{114, 1, ADMIT, 2}, {115, 4, MANY, 3},	{124, 0, ADMIT, 4},
	};

	(void)unused;
	play(alone(4, 3, 10, 15), line, ARRAY(line));
}

static void test_all_or_nothing(void **unused)
{
	static const struct event line[] = {
	    {100, 3, ADMIT, 2}, {101, 3, FULL, 2},  {101, 2, ADMIT, 0},
	    {109, 1, FULL, 0},	{111, 3, ADMIT, 2},
	};

	(void)unused;
	play(alone(5, 4, 10, 15), line, ARRAY(line));
}

static void test_time_that_runs_back_is_the_latest_seen(void **unused)
{
	static const struct event line[] = {
	    {100, 1, ADMIT, 1}, {50, 1, ADMIT, 0},  {60, 1, FULL, 0},  {109, 1, FULL, 0},
	    {110, 1, ADMIT, 1}, {100, 1, ADMIT, 0}, {119, 1, FULL, 0}, {120, 2, ADMIT, 0},
	};

	(void)unused;
	play(alone(2, 2, 10, 20), line, ARRAY(line));
}

static void test_times_near_the_end_of_the_clock(void **unused)
{
	static const struct event line[] = {
	    {0, 2, ADMIT, 0},		{FOREVER - 20, 2, ADMIT, 0},
	    {FOREVER - 11, 1, FULL, 0}, {FOREVER - 10, 2, ADMIT, 0},
	    {FOREVER, 2, ADMIT, 0},
	};

	(void)unused;
	play(alone(2, 2, 10, 20), line, ARRAY(line));
	play(alone(2, 2, 10, FOREVER), line, ARRAY(line));
}

/* Buckets of one use each, of more blocks than one: a later call finds all of them free at once. */
static void test_all_that_has_cooled_is_free_at_once(void **unused)
{
	profile_t profile = configured(alone(160, 80, 1000, 1010));
	state_t *state = calloc(1, sizeof(*state));

	(void)unused;
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(pacer_throttle_use(&profile, state, START + 10 * i, 1), ADMIT);
	assert_int_equal(buckets(state), 100);
	assert_int_equal(pacer_throttle_free(&profile, state, START + 1180), 60 + 19);
	assert_int_equal(pacer_throttle_use(&profile, state, START + 1990, 80), ADMIT);
	assert_int_equal(state->held, 80);
	free(state);
}

/* Requirement B where the article's rule breaks it: a burst, then all are free at 600, not 660. */
static void test_a_burst_comes_back_at_once(void **unused)
{
	profile_t profile = configured(alone(500, 50, 600, 660));
	struct article article = {500, 50, 500, 600, 60, 0, 0, {{0, 0}}};
	state_t *state = calloc(1, sizeof(*state));

	(void)unused;
	for (int i = 0; i < 500; i++) {
		assert_int_equal(pacer_throttle_use(&profile, state, START, 1), ADMIT);
		assert_true(article_use(&article, START));
	}
	assert_int_equal(pacer_throttle_free(&profile, state, START + 599), 0);
	assert_int_equal(pacer_throttle_free(&profile, state, START + 600), 500);
	article_release(&article, START + 659);
	assert_int_equal(article.free, 0);
	free(state);
}

/* "use 451 keys very rapidly, then use just one or two keys a minute": 20 buckets. */
static void test_the_articles_example(void **unused)
{
	profile_t profile = configured(alone(500, 50, 600000, 660000));
	struct article article = {500, 50, 500, 600000, 60000, 0, 0, {{0, 0}}};
	state_t *state = calloc(1, sizeof(*state));
	uint32_t most = 0, most_article = 0;

	(void)unused;
	for (int i = 0; i < 451; i++) {
		assert_int_equal(pacer_throttle_use(&profile, state, START, 1), ADMIT);
		assert_true(article_use(&article, START));
	}
	for (uint64_t t = 60000; t < 6000000; t += t % 120000 ? 30000 : 60000) {
		(void)!pacer_throttle_use(&profile, state, START + t, 1);
		(void)article_use(&article, START + t);
		if (buckets(state) > most)
			most = buckets(state);
		if (article.tail - article.head > most_article)
			most_article = article.tail - article.head;
	}
	assert_int_equal(most_article, 20);
	assert_in_range(most, 19, 20);
	free(state);
}

/* What fills all 20: the oldest bucket is used once more just before it closes. */
static void test_the_bound_of_the_example_is_reached(void **unused)
{
	profile_t profile = configured(alone(500, 50, 600, 660));
	state_t *state = calloc(1, sizeof(*state));

	(void)unused;
	assert_int_equal(pacer_throttle_use(&profile, state, START, 1), ADMIT);
	assert_int_equal(pacer_throttle_use(&profile, state, START + 59, 1), ADMIT);
	for (int i = 0; i < 450; i++)
		assert_int_equal(pacer_throttle_use(&profile, state, START + 60, 1), ADMIT);
	for (int t = 60; t <= 600; t += 60)
		assert_int_equal(pacer_throttle_use(&profile, state, START + t, 1), ADMIT);
	assert_int_equal(buckets(state), 20);
	assert_int_equal(profile.buckets, 20);
	free(state);
}

static void test_requirement_b_leaves_nothing_behind(void **unused)
{
	static const struct event line[] = {
	    {100, 1, ADMIT, 9},
	    {109, 1, ADMIT, 8},
	    {118, 1, ADMIT, 7},
	    {128, 0, ADMIT, 10},
	};

	(void)unused;
	play(alone(10, 5, 10, FOREVER), line, ARRAY(line));
}

/* ---- property runs, one caller, against the oracle ---- */

struct faults {
	uint32_t over, a, b, buckets, told; /* told: pacer_throttle_free out of its bounds */
};

enum engine { OURS, ARTICLE };

/* Requirements A and B on the denial of n uses at t, where `truth` are free. */
static void judge_denial(struct faults *f, const struct oracle *o, const params_t *p, uint64_t t,
			 uint32_t n, uint32_t truth)
{
	if (truth < n)
		return;
	f->a += oracle_within(o, t, p->max_cooldown_ns) + n <= p->limit;
	f->b += truth >= p->threshold + n - 1;
}

static void judge_free(struct faults *f, const struct oracle *o, const params_t *p, uint64_t t,
		       uint32_t told, uint32_t truth)
{
	f->told += told > truth || truth - told >= p->threshold ||
		   told + oracle_within(o, t, p->max_cooldown_ns) < p->limit;
}

static struct faults run_alone(enum engine engine, params_t p, int calls)
{
	static struct oracle oracle;
	static struct article article;
	static state_t state;
	profile_t profile = configured(p);
	struct faults f = {0};
	uint64_t t = START;

	oracle.uses = 0;
	memset(&state, 0, sizeof(state));
	article = (struct article){.limit = p.limit,
				   .threshold = p.threshold,
				   .free = p.limit,
				   .cooldown = p.cooldown_ns,
				   .open = p.max_cooldown_ns - p.cooldown_ns};
	for (int i = 0; i < calls && oracle.uses < ORACLE_USES_MAX - p.limit; i++) {
		uint32_t n = draw() % 4 ? 1 : between(1, engine == OURS ? p.threshold : 1), truth;
		int admit;

		t += step(&p);
		truth = p.limit - oracle_within(&oracle, t, p.cooldown_ns);
		if (engine == OURS) {
			uint64_t back = draw() % 8 ? 0 : between(0, p.cooldown_ns);

			judge_free(&f, &oracle, &p, t, pacer_throttle_free(&profile, &state, t),
				   truth);
			state.seen_ns = t; /* what the oracle has seen */
			admit = !pacer_throttle_use(&profile, &state, t - back, n);
			f.buckets += buckets(&state) > profile.buckets;
		} else {
			admit = article_use(&article, t);
		}
		if (!admit)
			judge_denial(&f, &oracle, &p, t, n, truth);
		for (; admit && n; n--)
			oracle.time[oracle.uses++] = t;
		f.over += oracle_within(&oracle, t, p.cooldown_ns) > p.limit;
	}
	return f;
}

enum requirement { A, B, AB };

static params_t draw_params(enum requirement requirement)
{
	params_t p;
	profile_t profile;

	do {
		p = alone(between(1, draw() % 2 ? 12 : 300), 0, between(1, draw() % 2 ? 20 : 5000),
			  FOREVER);
		p.threshold = requirement == A ? p.limit : between(1, p.limit);
		if (requirement != B)
			p.max_cooldown_ns =
			    p.cooldown_ns + between(1, draw() % 2 ? p.cooldown_ns : 4);
	} while (pacer_throttle_configure(&profile, &p) != PACER_THROTTLE_OK);
	return p;
}

static void test_property_alone(void **unused)
{
	(void)unused;
	oracle_seed(2);
	for (int i = 0; i < 600; i++) {
		struct faults f = run_alone(OURS, draw_params(i % 3), 1000);

		assert_int_equal(f.over, 0);
		assert_int_equal(f.a, 0);
		assert_int_equal(f.b, 0);
		assert_int_equal(f.told, 0);
		assert_int_equal(f.buckets, 0);
	}
}

/* The article's rule keeps G1 and A, and breaks B, and so AB. The same run as above. */
static void test_the_articles_rule_breaks_b(void **unused)
{
	uint32_t broken = 0;

	(void)unused;
	oracle_seed(2);
	for (int i = 0; i < 600; i++) {
		params_t p = draw_params(AB);
		struct faults f = run_alone(ARTICLE, p, 1000);

		assert_int_equal(f.over, 0);
		assert_int_equal(f.a, 0);
		broken += f.b;
	}
	print_message("    false denials outside requirement B: %u\n", broken);
	assert_int_not_equal(broken, 0);
}

/* ---- property runs, several CPUs with leases ---- */

enum fault {
	NONE,
	COOL_FROM_THE_LEASE,  /* a bucket cools from when it was leased from, not the lease's end */
	NO_RESOLUTION,	      /* the clock's resolution is not added to the cooldown */
	HAND_BACK_TWICE,      /* what was handed back is still held */
	NO_END,		      /* a lease is used after its end */
	HAND_BACK_TO_ANOTHER, /* to the newest bucket, not to the lease's */
	FORFEIT		      /* nothing is handed back */
};

struct cpus {
	params_t params;
	profile_t profile;
	state_t state;
	lease_t lease[CPUS];
	struct oracle oracle;
	enum fault fault;
};

static int faulty_take(struct cpus *s, lease_t *lease, uint64_t now, uint32_t n)
{
	lease_t before = *lease;
	int result;

	if (s->fault == NO_END && lease->left)
		lease->until_ns = FOREVER;
	if (s->fault == HAND_BACK_TO_ANOTHER && lease->left)
		lease->bucket = s->state.tail - 1;
	if (s->fault == FORFEIT && now > lease->until_ns)
		lease->left = 0;
	result = pacer_throttle_take(&s->profile, &s->state, lease, now, n);
	if (s->fault == COOL_FROM_THE_LEASE && lease->left > before.left)
		s->state.bucket[lease->bucket % PACER_THROTTLE_RING].until_ns = lease->seen_ns;
	if (s->fault == HAND_BACK_TWICE && result == FULL && !lease->left)
		lease->left = before.left;
	return result;
}

/* The bounds that the header states for a denial of n uses with leases. */
static void judge_denial_leased(struct faults *f, const struct oracle *o, const params_t *p,
				uint64_t t, uint32_t n)
{
	uint64_t h = (uint64_t)(p->cpus - 1) * (p->lease - 1);
	uint64_t slack = smallest(p->lease_ns, p->max_cooldown_ns - p->cooldown_ns);
	uint32_t used = oracle_within(o, t, p->cooldown_ns + slack + 2 * p->resolution_ns);
	uint64_t far = pacer_throttle_sum(p->max_cooldown_ns, 2 * p->resolution_ns);

	f->a += oracle_within(o, t, far) + h + n <= p->limit;
	f->b += p->limit >= used + p->threshold + h + n - 1;
}

static struct faults run_cpus(struct cpus *s, int calls)
{
	const params_t *p = &s->params;
	struct faults f = {0};
	uint64_t t = START;
	uint32_t awake = CPUS;

	s->profile = configured(*p);
	if (s->fault == NO_RESOLUTION)
		s->profile.cooldown_ns -= p->resolution_ns;
	memset(&s->state, 0, sizeof(s->state));
	memset(s->lease, 0, sizeof(s->lease));
	s->oracle.uses = 0;
	for (int i = 0; i < calls && s->oracle.uses < ORACLE_USES_MAX - p->limit; i++) {
		uint32_t n = draw() % 8 ? 1 : between(1, p->threshold);
		int result;

		t += draw() % 4 ? 0 : step(p);
		if (draw() % 64 == 0) /* the others go quiet, with what they have */
			awake = between(1, p->cpus);
		result = faulty_take(s, &s->lease[draw() % smallest(awake, p->cpus)],
				     t - between(0, p->resolution_ns), n);
		if (result == FULL)
			judge_denial_leased(&f, &s->oracle, p, t, n);
		for (; result == ADMIT && n; n--)
			s->oracle.time[s->oracle.uses++] = t;
		f.over += oracle_within(&s->oracle, t, p->cooldown_ns) > p->limit;
		f.buckets += buckets(&s->state) > s->profile.buckets;
	}
	t += p->cooldown_ns + smallest(p->lease_ns, p->max_cooldown_ns - p->cooldown_ns) +
	     2 * p->resolution_ns;
	f.told += pacer_throttle_free(&s->profile, &s->state, t) != p->limit; /* nothing leaks */
	return f;
}

static params_t draw_params_leased(void)
{
	params_t p;
	profile_t profile;
	uint32_t max;

	do {
		p = draw_params(draw() % 3);
		p.cpus = between(1, CPUS);
		p.lease_ns = draw() % 4 ? between(0, smallest(2 * p.cooldown_ns, 400)) : 0;
		p.resolution_ns = draw() % 2 ? between(0, 20) : 0;
		max = pacer_throttle_lease_max(p);
		p.lease = max ? between(1, max) : 1;
	} while (pacer_throttle_configure(&profile, &p) != PACER_THROTTLE_OK);
	return p;
}

static struct faults run_many(enum fault fault, int runs)
{
	static struct cpus s;
	struct faults all = {0};

	oracle_seed(3);
	s.fault = fault;
	for (int i = 0; i < runs; i++) {
		struct faults f;

		s.params = draw_params_leased();
		f = run_cpus(&s, 1500);
		all.over += f.over;
		all.a += f.a;
		all.b += f.b;
		all.told += f.told;
		all.buckets += f.buckets;
	}
	return all;
}

static void test_property_leases(void **unused)
{
	struct faults f = run_many(NONE, 1000);

	(void)unused;
	assert_int_equal(f.over, 0);
	assert_int_equal(f.a, 0);
	assert_int_equal(f.b, 0);
	assert_int_equal(f.told, 0);
	assert_int_equal(f.buckets, 0);
}

/* The same run finds every fault that is planted. */
static void test_planted_faults_are_found(void **unused)
{
	struct faults f;

	(void)unused;
	for (int fault = COOL_FROM_THE_LEASE; fault < FORFEIT; fault++) {
		f = run_many(fault, 200);
		print_message("    fault %d: over-admitted %u times\n", fault, f.over);
		assert_int_not_equal(f.over, 0);
	}
	f = run_many(FORFEIT, 200);
	print_message("    nothing handed back: %u false denials outside A, %u outside B\n", f.a,
		      f.b);
	assert_int_equal(f.over, 0);
	assert_int_not_equal(f.a, 0);
	assert_int_not_equal(f.b, 0);
}

/* ---- leases, timelines ---- */

static void test_a_lease_is_used_alone_and_handed_back(void **unused)
{
	profile_t profile = configured((params_t){10, 6, 2, 4, 100, 200, 10, 0});
	state_t *state = calloc(1, sizeof(*state)), *before = calloc(1, sizeof(*before));
	lease_t a = {0}, b = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START, 1), ADMIT);
	assert_int_equal(pacer_throttle_free(&profile, state, START), 6);
	*before = *state;
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START + 10, 1), ADMIT);
	assert_memory_equal(state, before, sizeof(*state));
	assert_int_equal(pacer_throttle_take(&profile, state, &b, START + 10, 1), ADMIT);
	assert_int_equal(pacer_throttle_free(&profile, state, START + 10), 4); /* bucket is full */
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START + 11, 1), ADMIT);
	assert_int_equal(a.left, 1); /* of the 2 handed back: all that the bucket then has */
	assert_int_equal(pacer_throttle_free(&profile, state, START + 11), 4);
	free(before);
	free(state);
}

static void test_refusals_write_nothing_shared(void **unused)
{
	profile_t profile = configured((params_t){4, 4, 2, 2, 100, 200, 10, 0});
	state_t *state = calloc(1, sizeof(*state)), *before = calloc(1, sizeof(*before));
	lease_t a = {0}, b = {0};

	(void)unused;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pacer_throttle_take(&profile, state, &a, START, 1), ADMIT);
		assert_int_equal(pacer_throttle_take(&profile, state, &b, START, 1), ADMIT);
	}
	*before = *state;
	for (int i = 0; i < 109; i++) {
		assert_int_equal(pacer_throttle_take(&profile, state, &a, START + i, 1), FULL);
		assert_int_equal(pacer_throttle_take(&profile, state, &b, START + i, 2), FULL);
		assert_int_equal(pacer_throttle_use(&profile, state, START + i, 1), FULL);
	}
	assert_memory_equal(state, before, sizeof(*state));
	free(before);
	free(state);
}

static void test_more_than_the_threshold_is_never_given(void **unused)
{
	profile_t profile = configured((params_t){9, 4, 1, 4, 100, 200, 10, 0});
	state_t *state = calloc(1, sizeof(*state)), *before = calloc(1, sizeof(*before));
	lease_t lease = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_take(&profile, state, &lease, START, 5), MANY);
	assert_memory_equal(state, before, sizeof(*state));
	assert_int_equal(pacer_throttle_take(&profile, state, &lease, START, 4), ADMIT);
	free(before);
	free(state);
}

static void test_a_held_lock_is_given_up(void **unused)
{
	profile_t profile = configured((params_t){4, 4, 2, 2, 100, 200, 10, 0});
	state_t *state = calloc(1, sizeof(*state));
	lease_t lease = {0};

	(void)unused;
	state->lock = PACER_LOCK_HELD;
	assert_int_equal(pacer_throttle_take(&profile, state, &lease, START, 1),
			 PACER_THROTTLE_BUSY);
	state->lock = 0;
	assert_int_equal(pacer_throttle_take(&profile, state, &lease, START, 1), ADMIT);
	assert_int_equal(state->lock & PACER_LOCK_HELD, 0);
	free(state);
}

/* A CPU with a lease sleeps until its bucket's number is another's place: nothing is handed back.
 */
static void test_a_sleeper_hands_back_to_no_other_bucket(void **unused)
{
	profile_t profile = configured((params_t){16, 8, 2, 4, 10, 11, 0, 0});
	state_t *state = calloc(1, sizeof(*state));
	lease_t sleeper = {0}, other = {0};
	uint64_t t = START;

	(void)unused;
	assert_int_equal(pacer_throttle_take(&profile, state, &sleeper, t, 1), ADMIT);
	for (uint32_t i = 0; i < PACER_THROTTLE_RING; i++, t += 10)
		assert_int_equal(pacer_throttle_take(&profile, state, &other, t + 10, 1), ADMIT);
	assert_int_equal(state->tail - 1 - sleeper.bucket, PACER_THROTTLE_RING);
	assert_int_equal(state->held, 4);
	assert_int_equal(sleeper.left, 3);
	assert_int_equal(pacer_throttle_take(&profile, state, &sleeper, t, 1), ADMIT);
	assert_int_equal(state->held, 8);
	free(state);
}

static void test_a_cpu_that_is_behind_uses_at_the_latest_time_seen(void **unused)
{
	profile_t profile = configured((params_t){8, 4, 2, 2, 100, 200, 10, 0});
	state_t *state = calloc(1, sizeof(*state));
	lease_t ahead = {0}, behind = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_take(&profile, state, &ahead, START + 50, 1), ADMIT);
	assert_int_equal(pacer_throttle_take(&profile, state, &behind, START, 1), ADMIT);
	assert_int_equal(behind.seen_ns, START + 50);
	assert_int_equal(behind.until_ns, START + 60);
	free(state);
}

/* What this CPU has seen counts, though no other has: by then the first bucket has cooled down. */
static void test_a_cpu_whose_clock_runs_back_is_not_refused(void **unused)
{
	profile_t profile = configured((params_t){4, 2, 2, 2, 100, 200, 50, 0});
	state_t *state = calloc(1, sizeof(*state));
	lease_t a = {0}, b = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_take(&profile, state, &b, START, 2), ADMIT);
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START + 60, 1), ADMIT);
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START + 105, 1), ADMIT);
	assert_int_equal(a.left, 0);
	assert_int_equal(state->seen_ns, START + 60);
	assert_false(pacer_throttle_refuses(&profile, state, &a, START + 95));
	assert_true(pacer_throttle_refuses(&profile, state, &b, START + 95));
	state->seen_ns = START + 105; /* what any CPU has seen counts for all of them */
	assert_false(pacer_throttle_refuses(&profile, state, &b, START + 95));
	free(state);
}

static void test_an_ended_lease_stays_ended_when_time_runs_back(void **unused)
{
	profile_t profile = configured((params_t){8, 4, 2, 3, 100, 200, 10, 0});
	state_t *state = calloc(1, sizeof(*state));
	lease_t lease = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_take(&profile, state, &lease, START, 1), ADMIT);
	assert_int_equal(pacer_throttle_take(&profile, state, &lease, START + 10, 1), ADMIT);
	state->lock |= PACER_LOCK_HELD;
	assert_int_equal(pacer_throttle_take(&profile, state, &lease, START + 11, 1),
			 PACER_THROTTLE_BUSY);
	assert_int_equal(pacer_throttle_take(&profile, state, &lease, START + 10, 1),
			 PACER_THROTTLE_BUSY);
	free(state);
}

/* ---- undo, and the question beforehand ---- */

static void test_undo_gives_back(void **unused)
{
	profile_t profile = configured((params_t){10, 6, 2, 3, 100, 200, 10, 0});
	state_t *state = calloc(1, sizeof(*state));
	lease_t a = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START, 1), ADMIT);
	pacer_throttle_undo(&profile, state, &a); /* nothing of the lease is used: it goes back */
	assert_int_equal(a.left, 0);
	assert_int_equal(pacer_throttle_free(&profile, state, START), 10);
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START, 1), ADMIT);
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START, 1), ADMIT);
	pacer_throttle_undo(&profile, state, &a);
	assert_int_equal(a.left, 2);
	assert_int_equal(pacer_throttle_free(&profile, state, START), 7);
	free(state);
}

/* The lock is not had: the use stays with the CPU, to be made or handed back when it comes again.
 */
static void test_undo_contended(void **unused)
{
	profile_t profile = configured((params_t){4, 4, 2, 1, 100, 200, 10, 0});
	state_t *state = calloc(1, sizeof(*state));
	lease_t a = {0};

	(void)unused;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pacer_throttle_take(&profile, state, &a, START, 1), ADMIT);
		state->lock |= PACER_LOCK_HELD;
		pacer_throttle_undo(&profile, state, &a);
		state->lock &= ~PACER_LOCK_HELD;
		assert_int_equal(a.left, 1);
		assert_int_equal(state->held, 1);
		assert_false(pacer_throttle_refuses(&profile, state, &a, START + i));
		assert_int_equal(pacer_throttle_take(&profile, state, &a, START + i, 1), ADMIT);
		assert_int_equal(state->held, 1);
		pacer_throttle_undo(&profile, state, &a);
		assert_int_equal(a.left, 0);
		assert_int_equal(state->held, 0);
	}
	free(state);
}

/* What could not be handed back is in the lease: a packet at that reading is not refused for it. */
static void test_undone_and_used_again(void **unused)
{
	profile_t profile = configured((params_t){4, 4, 2, 1, 100, 200, 10, 0});
	state_t *state = calloc(1, sizeof(*state));
	lease_t a = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START, 1), ADMIT);
	state->lock |= PACER_LOCK_HELD;
	pacer_throttle_undo(&profile, state, &a);
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START, 1), ADMIT);
	assert_int_equal(a.left, 0);
	assert_int_equal(state->held, 1);
	free(state);
}

/* Two CPUs undo beside each other for ever, each bucket one use: the empty ones use the ring up,
 * and uses then share. None is forgotten, and all come back.
 */
static void test_undo_leaves_empty_buckets(void **unused)
{
	profile_t profile = configured((params_t){4, 1, 2, 1, 100, 200, 10, 0});
	state_t *state = calloc(1, sizeof(*state));
	lease_t a = {0}, b = {0};

	(void)unused;
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(pacer_throttle_take(&profile, state, &a, START, 1), ADMIT);
		assert_int_equal(pacer_throttle_take(&profile, state, &b, START, 1), ADMIT);
		pacer_throttle_undo(&profile, state, &a);
		pacer_throttle_undo(&profile, state, &b);
		assert_int_equal(state->held, 0);
	}
	assert_int_equal(buckets(state), PACER_THROTTLE_BUCKETS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pacer_throttle_take(&profile, state, &a, START + 60 + i, 1),
				 ADMIT);
	assert_int_equal(pacer_throttle_take(&profile, state, &a, START + 162, 1), FULL);
	assert_int_equal(pacer_throttle_free(&profile, state, START + 163), 4);
	free(state);
}

/* Whatever the state and the time: what refuses, a take refuses, and it writes nothing. Between
 * callers that undo every other use nothing leaks, and G1 holds for those that they keep.
 */
static void test_refuses_and_undo_at_length(void **unused)
{
	static state_t state, before;
	static struct oracle oracle;
	uint32_t refused = 0, undone = 0;

	(void)unused;
	oracle_seed(5);
	for (int run = 0; run < 200; run++) {
		params_t p = draw_params_leased();
		profile_t profile = configured(p);
		lease_t lease[CPUS] = {{0}};
		uint64_t t = START;

		memset(&state, 0, sizeof(state));
		oracle.uses = 0;
		for (int i = 0; i < 800; i++) {
			lease_t *l = &lease[draw() % p.cpus];
			uint64_t now = t - between(0, p.resolution_ns);
			int refuses, result;

			before = state;
			refuses = pacer_throttle_refuses(&profile, &state, l, now);
			assert_memory_equal(&state, &before, sizeof(state));
			result = pacer_throttle_take(&profile, &state, l, now, 1);
			assert_int_equal(!refuses || result == FULL, 1);
			refused += refuses;
			if (result == ADMIT && draw() % 2) {
				pacer_throttle_undo(&profile, &state, l);
				undone++;
			} else if (result == ADMIT) {
				oracle.time[oracle.uses++] = t;
			}
			assert_true(oracle_within(&oracle, t, p.cooldown_ns) <= p.limit);
			assert_true(buckets(&state) <= PACER_THROTTLE_BUCKETS);
			t += draw() % 4 ? 0 : step(&p);
		}
		t += p.cooldown_ns + smallest(p.lease_ns, p.max_cooldown_ns - p.cooldown_ns) +
		     2 * p.resolution_ns;
		assert_int_equal(pacer_throttle_free(&profile, &state, t), p.limit);
	}
	assert_true(refused > 1000 && undone > 1000);
}

/* ---- a change of policy ---- */

/* A block whose last bucket has cooled down holds a lease of the last policy's that has not. */
static void test_a_long_lease_outlasts_its_policy(void **unused)
{
	profile_t leased = configured((params_t){40, 2, 1, 2, 100, 200, 90, 0});
	profile_t bare = configured((params_t){40, 2, 1, 1, 100, 200, 0, 0});
	state_t *state = calloc(1, sizeof(*state));
	lease_t a = {0}, b = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_take(&leased, state, &a, START, 1), ADMIT);
	for (int i = 0; i < 30; i++)
		assert_int_equal(pacer_throttle_take(&bare, state, &b, START, 1), ADMIT);
	assert_int_equal(buckets(state), PACER_THROTTLE_BLOCK);
	assert_int_equal(pacer_throttle_take(&leased, state, &a, START + 90, 1), ADMIT);
	assert_int_equal(pacer_throttle_free(&bare, state, START + 189), 8);
	assert_int_equal(pacer_throttle_free(&bare, state, START + 190), 40);
	free(state);
}

static void test_a_change_of_policy_keeps_what_was_used(void **unused)
{
	profile_t first = configured(alone(10, 5, 100, 200));
	profile_t lower = configured(alone(4, 2, 100, 200));
	profile_t longer = configured(alone(10, 5, 300, 400));
	state_t *state = calloc(1, sizeof(*state));

	(void)unused;
	for (int i = 0; i < 6; i++)
		assert_int_equal(pacer_throttle_use(&first, state, START, 1), ADMIT);
	assert_int_equal(pacer_throttle_free(&first, state, START + 99), 4);
	assert_int_equal(pacer_throttle_use(&lower, state, START + 99, 1), FULL);
	assert_int_equal(pacer_throttle_free(&lower, state, START + 100), 4);
	assert_int_equal(pacer_throttle_free(&longer, state, START + 299), 4);
	assert_int_equal(pacer_throttle_free(&longer, state, START + 300), 10);
	free(state);
}

/* A profile that needs more buckets than the last one left: uses share, and none is forgotten. */
static void test_a_full_ring_shares(void **unused)
{
	profile_t first = configured(alone(230, 1, 100, 200));
	profile_t second = configured(alone(450, 2, 100, 200));
	state_t *state = calloc(1, sizeof(*state));

	(void)unused;
	for (int i = 0; i < 230; i++)
		assert_int_equal(pacer_throttle_use(&first, state, START, 1), ADMIT);
	for (int i = 0; i < 220; i++)
		assert_int_equal(pacer_throttle_use(&second, state, START + 50, 1), ADMIT);
	assert_int_equal(buckets(state), PACER_THROTTLE_BUCKETS);
	assert_int_equal(pacer_throttle_use(&second, state, START + 99, 1), FULL);
	assert_int_equal(pacer_throttle_free(&second, state, START + 100),
			 229); /* one shares with 50 */
	assert_int_equal(pacer_throttle_use(&second, state, START + 100, 1), ADMIT);
	assert_int_equal(pacer_throttle_free(&second, state, START + 149), 228);
	assert_int_equal(pacer_throttle_free(&second, state, START + 150), 449);
	free(state);
}

/* Where uses share a bucket, that is full or has closed, none are leased beside. */
static void test_a_full_ring_leases_nothing(void **unused)
{
	profile_t first = configured(alone(239, 1, 100, 200));
	profile_t second = configured((params_t){500, 4, 1, 4, 1000, 1100, 10, 0});
	state_t *state = calloc(1, sizeof(*state)), *closed = calloc(1, sizeof(*closed));
	lease_t lease = {0}, at_closed;

	(void)unused;
	for (int i = 0; i < 239; i++)
		assert_int_equal(pacer_throttle_use(&first, state, START, 1), ADMIT);
	assert_int_equal(pacer_throttle_take(&second, state, &lease, START + 200, 1), ADMIT);
	assert_int_equal(buckets(state), PACER_THROTTLE_BUCKETS);
	assert_int_equal(lease.left, 3);
	*closed = *state;
	at_closed = lease;
	assert_int_equal(pacer_throttle_take(&second, state, &lease, START + 250, 4), ADMIT);
	assert_int_equal(pacer_throttle_take(&second, state, &lease, START + 250, 1), ADMIT);
	assert_int_equal(lease.left, 0); /* the bucket has 6, and takes 4 */
	assert_int_equal(state->held, 239 + 6);
	assert_int_equal(pacer_throttle_take(&second, closed, &at_closed, START + 300, 1), ADMIT);
	assert_int_equal(at_closed.left, 0); /* it has 2, and closed at 299 */
	assert_int_equal(closed->held, 239 + 2);
	free(closed);
	free(state);
}

/* ---- a pool: numbers go round, none comes again before it has cooled down ---- */

static void test_numbers_go_round(void **unused)
{
	static state_t state;
	static uint64_t last[12];
	profile_t profile = configured((params_t){12, 4, 3, 1, 100, 130, 20, 0});
	lease_t lease[3] = {0};
	uint32_t next = 0, given = 0;
	uint64_t t = START;

	(void)unused;
	oracle_seed(4);
	for (int i = 0; i < 100000; i++) {
		lease_t *l = &lease[draw() % 3];

		t += draw() % 2 ? 0 : between(0, 30);
		if (pacer_throttle_take(&profile, &state, l, t, 1) != ADMIT)
			continue;
		assert_int_equal(l->number, next);
		assert_true(t - last[next] >= 100);
		last[next] = t;
		next = (next + 1) % 12;
		given++;
	}
	assert_true(given > 1200);
}

static void test_numbers_go_round_by_several(void **unused)
{
	profile_t profile = configured(alone(5, 3, 10, 20));
	profile_t lower = configured(alone(2, 2, 10, 20));
	state_t *state = calloc(1, sizeof(*state));

	(void)unused;
	assert_int_equal(pacer_throttle_use(&profile, state, START, 3), ADMIT);
	assert_int_equal(state->next, 3);
	assert_int_equal(pacer_throttle_use(&profile, state, START + 10, 3), ADMIT);
	assert_int_equal(state->next, 1);
	assert_int_equal(pacer_throttle_use(&profile, state, START + 20, 3), ADMIT);
	assert_int_equal(pacer_throttle_use(&lower, state, START + 30, 1), ADMIT);
	assert_int_equal(state->next, 1);
	free(state);
}

/* The limit was lowered to just the number that would come next. */
static void test_no_number_is_beyond_a_lowered_limit(void **unused)
{
	profile_t profile = configured(alone(5, 3, 10, 20));
	profile_t lower = configured(alone(3, 3, 10, 20));
	state_t *state = calloc(1, sizeof(*state));
	lease_t lease = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_use(&profile, state, START, 3), ADMIT);
	assert_int_equal(state->next, 3);
	assert_int_equal(pacer_throttle_take(&lower, state, &lease, START + 10, 1), ADMIT);
	assert_int_equal(lease.number, 0);
	assert_int_equal(state->next, 1);
	free(state);
}

/* ---- several threads, as they fall ---- */

#define THREADS	     4
#define THREAD_TAKES 30000

static struct {
	profile_t profile;
	state_t state;
	uint64_t clock;
	uint64_t used[THREADS * THREAD_TAKES];
	uint32_t uses;
} shared;

static enum pacer_throttle_result take_now(lease_t *lease)
{
	uint64_t now = __sync_add_and_fetch(&shared.clock, 1);

	return pacer_throttle_take(&shared.profile, &shared.state, lease, START + now, 1);
}

static void *hammer(void *unused)
{
	lease_t lease = {0};

	for (int i = 0; i < THREAD_TAKES; i++) {
		enum pacer_throttle_result result;

		/* A thread that has the lock may wait for long on a busy machine: not for this
		 * one's CPU. */
		while ((result = take_now(&lease)) == PACER_THROTTLE_BUSY)
			sched_yield();
		if (result)
			continue;
		shared.used[__sync_fetch_and_add(&shared.uses, 1)] = lease.seen_ns;
	}
	return unused;
}

/* However late a thread comes with its time, G1 holds on the clock of use. */
static void test_threads(void **unused)
{
	pthread_t thread[THREADS];

	(void)unused;
	shared.profile = configured((params_t){400, 100, THREADS, 10, 1000, 1100, 50, 0});
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	qsort(shared.used, shared.uses, sizeof(shared.used[0]), by_time);
	for (uint32_t i = 400; i < shared.uses; i++)
		assert_true(shared.used[i] - shared.used[i - 400] >= 1000);
	assert_true(shared.uses > THREADS * THREAD_TAKES / 4);
	assert_int_equal(pacer_throttle_free(&shared.profile, &shared.state, 2 * START), 400);
}

/* ---- every state that small parameters can reach ---- */

#define TICK	(1u << 20) /* the present, in a state that is unpacked */
#define SET	(1u << 19)
#define WORDS	4
#define HISTORY 16

struct key {
	uint64_t word[WORDS];
};

/* What a key stands for, times being relative to the present. */
struct world {
	params_t params;
	profile_t profile;
	state_t state;
	lease_t lease[CPUS];
	uint32_t made[HISTORY]; /* uses i ticks ago */
	int history;
	int one_caller; /* pacer_throttle_use instead of leases */
};

static struct key set[SET], stack[SET];
static uint8_t taken[SET];
static uint32_t keys, depth;

struct packer {
	struct key *key;
	uint32_t at;
};

static void pack(struct packer *p, uint64_t value, uint32_t bits)
{
	assert_true(value < 1u << bits && p->at + bits <= 64 * WORDS);
	for (uint32_t i = 0; i < bits; i++, p->at++)
		p->key->word[p->at / 64] |= (value >> i & 1) << p->at % 64;
}

static uint64_t unpack(struct packer *p, uint32_t bits)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < bits; i++, p->at++)
		value |= (p->key->word[p->at / 64] >> p->at % 64 & 1) << i;
	return value;
}

/* Times up to `base` are all alike; FOREVER is 15. */
static uint64_t relative(uint64_t t, uint64_t base)
{
	if (t > base + 14)
		return 15;
	return t > base ? t - base : 0;
}

static uint64_t absolute(uint64_t rel, uint64_t base)
{
	return rel == 15 ? FOREVER : base + rel;
}

static struct key pack_world(const struct world *w)
{
	struct key key = {{0}};
	struct packer p = {&key, 0};
	uint64_t lag = TICK - w->params.resolution_ns;

	for (int i = 0; i < w->history; i++)
		pack(&p, w->made[i], 3);
	pack(&p, relative(w->state.seen_ns, lag), 2);
	for (uint32_t i = 0; i < w->params.cpus && !w->one_caller; i++) {
		const lease_t *l = &w->lease[i];
		uint64_t there = l->bucket - w->state.head;

		pack(&p, relative(l->seen_ns, lag), 2);
		pack(&p, l->left, 3);
		pack(&p, l->left ? relative(l->until_ns, lag - 1) : 0, 4);
		pack(&p, !l->left ? 0 : there < buckets(&w->state) ? there : 15, 4);
	}
	pack(&p, buckets(&w->state), 4);
	for (uint64_t i = w->state.head; i < w->state.tail; i++) {
		const struct pacer_throttle_bucket *b = &w->state.bucket[i % PACER_THROTTLE_RING];

		pack(&p, b->count, 3);
		pack(&p, relative(b->close_ns, lag - 1), 4);
		pack(&p, relative(b->until_ns, lag - w->profile.cooldown_ns), 4);
	}
	return key;
}

static void unpack_world(struct world *w, const struct key *key)
{
	struct key copy = *key;
	struct packer p = {&copy, 0};
	uint64_t lag = TICK - w->params.resolution_ns;
	state_t *s = &w->state;
	uint64_t count;

	for (int i = 0; i < w->history; i++)
		w->made[i] = unpack(&p, 3);
	s->lock = s->held = 0;
	memset(s->block, 0, sizeof(s->block));
	s->head = 1000 + (key->word[0] ^ key->word[1]) % PACER_THROTTLE_RING;
	s->seen_ns = absolute(unpack(&p, 2), lag);
	for (uint32_t i = 0; i < w->params.cpus && !w->one_caller; i++) {
		lease_t *l = &w->lease[i];
		uint64_t there;

		l->seen_ns = absolute(unpack(&p, 2), lag);
		l->left = unpack(&p, 3);
		l->until_ns = absolute(unpack(&p, 4), lag - 1);
		there = unpack(&p, 4);
		l->bucket = there == 15 ? 0 : s->head + there;
	}
	s->tail = s->head + unpack(&p, 4);
	for (uint64_t i = s->head; i < s->tail; i++) {
		struct pacer_throttle_bucket *b = &s->bucket[i % PACER_THROTTLE_RING];

		b->count = 0;
		count = unpack(&p, 3);
		pacer_throttle_count(s, i, count);
		b->close_ns = absolute(unpack(&p, 4), lag - 1);
		b->until_ns = absolute(unpack(&p, 4), lag - w->profile.cooldown_ns);
	}
}

static void visit(const struct key *key)
{
	uint64_t hash = 0;
	uint32_t at;

	for (int i = 0; i < WORDS; i++)
		hash = (hash ^ key->word[i] ^ hash >> 29) * 0x9e3779b97f4a7c15ull;
	for (at = hash >> 45; taken[at]; at = (at + 1) % SET)
		if (!memcmp(&set[at], key, sizeof(*key)))
			return;
	taken[at] = 1;
	set[at] = *key;
	assert_true(++keys < SET / 2 && depth < SET);
	stack[depth++] = *key;
}

static uint32_t made_within(const struct world *w, uint64_t ticks)
{
	uint32_t sum = 0;

	for (int i = 0; i < w->history && (uint64_t)i < ticks; i++)
		sum += w->made[i];
	return sum;
}

/* One use, denied: the header's bounds. */
static void check_denial(const struct world *w)
{
	const params_t *p = &w->params;
	uint64_t h = (uint64_t)(p->cpus - 1) * (p->lease - 1), r = p->resolution_ns;
	uint64_t slack = smallest(p->lease_ns, p->max_cooldown_ns - p->cooldown_ns - 1);

	if (p->max_cooldown_ns != FOREVER)
		assert_true(made_within(w, p->max_cooldown_ns + 2 * r) + h >= p->limit);
	assert_true(p->limit < made_within(w, p->cooldown_ns + slack + 2 * r) + p->threshold + h);
}

static void follow_use(struct world *w, const struct key *key, uint32_t cpu, uint32_t lag)
{
	struct key next;
	int result;

	unpack_world(w, key);
	result = w->one_caller
		     ? pacer_throttle_use(&w->profile, &w->state, TICK - lag, 1)
		     : pacer_throttle_take(&w->profile, &w->state, &w->lease[cpu], TICK - lag, 1);
	if (result == ADMIT)
		w->made[0]++;
	else
		check_denial(w);
	assert_true(made_within(w, w->params.cooldown_ns) <= w->params.limit);
	next = pack_world(w);
	visit(&next);
}

static void follow_tick(struct world *w, const struct key *key)
{
	struct key next;
	state_t *s = &w->state;

	unpack_world(w, key);
	memmove(w->made + 1, w->made, (HISTORY - 1) * sizeof(w->made[0]));
	w->made[0] = 0;
	s->seen_ns--;
	for (uint32_t i = 0; i < w->params.cpus; i++) {
		w->lease[i].seen_ns--;
		w->lease[i].until_ns--;
	}
	for (uint64_t i = s->head; i < s->tail; i++) {
		struct pacer_throttle_bucket *b = &s->bucket[i % PACER_THROTTLE_RING];

		b->close_ns -= b->close_ns != FOREVER;
		b->until_ns--;
	}
	next = pack_world(w);
	visit(&next);
}

/* Every reachable state; returns the most buckets in one. */
static uint32_t explore(params_t params, int one_caller)
{
	static struct world w;
	struct key start;
	uint32_t most = 0;
	uint64_t ticks = params.max_cooldown_ns == FOREVER ? params.cooldown_ns + params.lease_ns
							   : params.max_cooldown_ns;

	memset(&w, 0, sizeof(w));
	w.params = params;
	w.profile = configured(params);
	w.one_caller = one_caller;
	w.history = ticks + 2 * params.resolution_ns;
	assert_true(w.history < HISTORY);
	memset(taken, 0, sizeof(taken));
	keys = depth = 0;
	start = pack_world(&w);
	visit(&start);
	while (depth) {
		struct key key = stack[--depth];

		unpack_world(&w, &key);
		if (buckets(&w.state) > most)
			most = buckets(&w.state);
		for (uint32_t i = 0; i < (one_caller ? 1 : params.cpus); i++)
			for (uint32_t lag = 0; lag <= params.resolution_ns; lag++)
				follow_use(&w, &key, i, lag);
		follow_tick(&w, &key);
	}
	assert_true(most <= w.profile.buckets);
	return most;
}

static void test_every_state_of_one_caller(void **unused)
{
	uint32_t sets = 0, reached = 0, below = 0;
	uint64_t states = 0;

	(void)unused;
	for (uint32_t limit = 1; limit <= 6; limit++)
		for (uint32_t threshold = 1; threshold <= limit; threshold++)
			for (uint32_t cooldown = 1; cooldown <= 6; cooldown++)
				for (uint32_t open = 0; open <= 4; open++) {
					params_t p = alone(limit, threshold, cooldown,
							   open ? cooldown + open : FOREVER);
					uint32_t most = explore(p, 1);

					states += keys;
					sets++;
					reached += most == configured(p).buckets;
					if (most == configured(p).buckets) /* as the header says */
						assert_true(
						    (limit - 1) % threshold >=
						    (open ? (cooldown + open - 1) / open : 1));
					below += most + 1 == configured(p).buckets;
				}
	print_message("    %u parameters, %llu states: bound reached by %u, missed by one by %u\n",
		      sets, (unsigned long long)states, reached, below);
	assert_int_not_equal(reached, 0);
}

static void test_every_state_with_leases(void **unused)
{
	static const params_t rows[] = {
	    {3, 2, 2, 2, 2, 3, 0, 0},	    {3, 3, 2, 2, 2, 4, 1, 0},
	    {4, 3, 2, 3, 2, 4, 1, 0},	    {4, 4, 2, 3, 3, 5, 2, 0},
	    {4, 2, 2, 2, 3, 5, 1, 0},	    {3, 3, 2, 3, 2, 4, 2, 1},
	    {3, 2, 2, 2, 2, 4, 1, 1},	    {3, 3, 3, 2, 2, 3, 1, 0},
	    {3, 2, 2, 2, 2, FOREVER, 1, 0}, {4, 3, 2, 2, 2, FOREVER, 2, 0},
	    {4, 4, 1, 4, 3, 6, 2, 1},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		uint32_t most = explore(rows[i], 0);

		print_message("    parameters %zu: %u states, %u of %u buckets\n", i, keys, most,
			      configured(rows[i]).buckets);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_configure),
	    cmocka_unit_test(test_lease_max_is_the_largest),
	    cmocka_unit_test(test_unconfigured_denies),
	    cmocka_unit_test(test_a_bucket_comes_back_after_its_last_use),
	    cmocka_unit_test(test_all_or_nothing),
	    cmocka_unit_test(test_time_that_runs_back_is_the_latest_seen),
	    cmocka_unit_test(test_times_near_the_end_of_the_clock),
	    cmocka_unit_test(test_all_that_has_cooled_is_free_at_once),
	    cmocka_unit_test(test_a_burst_comes_back_at_once),
	    cmocka_unit_test(test_the_articles_example),
	    cmocka_unit_test(test_the_bound_of_the_example_is_reached),
	    cmocka_unit_test(test_requirement_b_leaves_nothing_behind),
	    cmocka_unit_test(test_property_alone),
	    cmocka_unit_test(test_the_articles_rule_breaks_b),
	    cmocka_unit_test(test_property_leases),
	    cmocka_unit_test(test_planted_faults_are_found),
	    cmocka_unit_test(test_a_lease_is_used_alone_and_handed_back),
	    cmocka_unit_test(test_refusals_write_nothing_shared),
	    cmocka_unit_test(test_more_than_the_threshold_is_never_given),
	    cmocka_unit_test(test_a_held_lock_is_given_up),
	    cmocka_unit_test(test_a_sleeper_hands_back_to_no_other_bucket),
	    cmocka_unit_test(test_a_cpu_that_is_behind_uses_at_the_latest_time_seen),
	    cmocka_unit_test(test_a_cpu_whose_clock_runs_back_is_not_refused),
	    cmocka_unit_test(test_an_ended_lease_stays_ended_when_time_runs_back),
	    cmocka_unit_test(test_undo_gives_back),
	    cmocka_unit_test(test_undo_contended),
	    cmocka_unit_test(test_undone_and_used_again),
	    cmocka_unit_test(test_undo_leaves_empty_buckets),
	    cmocka_unit_test(test_refuses_and_undo_at_length),
	    cmocka_unit_test(test_a_long_lease_outlasts_its_policy),
	    cmocka_unit_test(test_a_change_of_policy_keeps_what_was_used),
	    cmocka_unit_test(test_a_full_ring_shares),
	    cmocka_unit_test(test_a_full_ring_leases_nothing),
	    cmocka_unit_test(test_numbers_go_round),
	    cmocka_unit_test(test_numbers_go_round_by_several),
	    cmocka_unit_test(test_no_number_is_beyond_a_lowered_limit),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_every_state_of_one_caller),
	    cmocka_unit_test(test_every_state_with_leases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
