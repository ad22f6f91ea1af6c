/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "pool.h"
#include "throttle_oracle.h"

#define FEW   6 /* targets of the random runs */
#define ADMIT PACER_THROTTLE_ADMIT
#define FULL  PACER_THROTTLE_FULL
#define BUSY  PACER_THROTTLE_BUSY

typedef struct pacer_throttle_lease lease_t;
typedef struct pacer_pool_state pool_t;

static size_t pool_bytes(uint32_t targets)
{
	return sizeof(pool_t) + targets * sizeof(struct pacer_pool_target);
}

/* On pages of its own, all of them zero. */
static pool_t *pool_map(void)
{
	void *pool = mmap(NULL, pool_bytes(PACER_POOL_TARGETS), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pool, MAP_FAILED);
	return pool;
}

static void pool_protect(pool_t *pool, int how)
{
	assert_int_equal(mprotect(pool, pool_bytes(PACER_POOL_TARGETS), how), 0);
}

static void pool_unmap(pool_t *pool)
{
	munmap(pool, pool_bytes(PACER_POOL_TARGETS));
}

/* ---- timelines ---- */

#define NONE -1

struct call {
	uint64_t after; /* START */
	uint32_t times;
	int target; /* the first; the others follow in the rotation */
};

static void play(params_t params, uint32_t targets, const struct call *call, size_t calls)
{
	profile_t each = configured(params);
	struct pacer_pool_lease lease = {0};
	pool_t *pool = pool_map();

	for (size_t i = 0; i < calls; i++)
		for (uint32_t j = 0; j < call[i].times; j++) {
			int result =
			    pacer_pool_next(&each, targets, pool, &lease, START + call[i].after);

			assert_int_equal(result, call[i].target == NONE ? FULL : ADMIT);
			if (result == ADMIT)
				assert_int_equal(lease.target, (call[i].target + j) % targets);
		}
	pool_unmap(pool);
}

static void test_the_rotation(void **unused)
{
	static const struct call line[] = {
	    {0, 6, 0},	{0, 2, NONE},  {9, 2, NONE}, {10, 2, 0}, {15, 4, 2},	{19, 1, NONE},
	    {20, 2, 0}, {24, 3, NONE}, {25, 4, 2},   {60, 6, 0}, {69, 1, NONE},
	};

	(void)unused;
	play(alone(2, 1, 10, 20), 3, line, ARRAY(line));
}

/* 500 uses of a key in 10 minutes, three keys: the original challenge. */
static void test_the_challenge(void **unused)
{
	static const struct call line[] = {
	    {0, 1499, 0},      {0, 1, 2},	  {0, 3, NONE},
	    {599999, 1, NONE}, {600000, 1500, 0}, {600000, 1, NONE},
	};

	(void)unused;
	play(alone(500, 50, 600000, 660000), 3, line, ARRAY(line));
}

static void test_one_target(void **unused)
{
	static const struct call line[] = {{0, 2, 0}, {9, 1, NONE}, {10, 2, 0}, {10, 1, NONE}};

	(void)unused;
	play(alone(2, 1, 10, 20), 1, line, ARRAY(line));
}

static void test_time_that_runs_back_is_the_latest_seen(void **unused)
{
	profile_t each = configured(alone(1, 1, 10, 20));
	struct pacer_pool_lease lease = {0};
	pool_t *pool = pool_map();

	(void)unused;
	assert_int_equal(pacer_pool_next(&each, 2, pool, &lease, START), ADMIT);
	assert_int_equal(pacer_pool_next(&each, 2, pool, &lease, START - 50), ADMIT);
	assert_int_equal(lease.lease.seen_ns, START);
	assert_int_equal(pacer_pool_next(&each, 2, pool, &lease, 0), FULL);
	assert_int_equal(pacer_pool_next(&each, 2, pool, &lease, START + 9), FULL);
	assert_int_equal(pacer_pool_next(&each, 2, pool, &lease, START + 10), ADMIT);
	pool_unmap(pool);
}

static void test_unconfigured_gives_none(void **unused)
{
	static const profile_t zero;
	profile_t each = configured(alone(1, 1, 10, 20));
	struct pacer_pool_lease lease = {0};
	pool_t *pool = pool_map();

	(void)unused;
	assert_int_equal(pacer_pool_next(&zero, 4, pool, &lease, START), FULL);
	assert_int_equal(pacer_pool_next(&zero, 0, pool, &lease, START), FULL);
	assert_int_equal(pacer_pool_next(&each, 0, pool, &lease, START), FULL);
	pool_unmap(pool);
}

static void test_threshold_of_a_total(void **unused)
{
	(void)unused;
	assert_int_equal(pacer_pool_threshold(50, 1), 50);
	assert_int_equal(pacer_pool_threshold(50, 3), 16);
	assert_int_equal(pacer_pool_threshold(50, 50), 1);
	assert_int_equal(pacer_pool_threshold(50, 64), 1);
}

/* ---- against the source's rotation: one exact throttle, and a cycle through the keys ---- */

static void run_beside_the_source(uint32_t targets, params_t params, int calls)
{
	static struct oracle all;
	profile_t each = configured(params);
	struct pacer_pool_lease lease = {0};
	pool_t *pool = pool_map();
	uint64_t t = START;
	uint32_t next = 0;

	all.uses = 0;
	for (int i = 0; i < calls; i++) {
		int result;

		t += step(&params);
		result = pacer_pool_next(&each, targets, pool, &lease, t);
		if (oracle_within(&all, t, params.cooldown_ns) >= targets * params.limit) {
			assert_int_equal(result, FULL);
			continue;
		}
		assert_int_equal(result, ADMIT);
		assert_int_equal(lease.target, next);
		next = (next + 1) % targets;
		all.time[all.uses++] = t;
	}
	pool_unmap(pool);
}

static void test_it_is_the_sources_rotation(void **unused)
{
	(void)unused;
	oracle_seed(1);
	for (int i = 0; i < 400; i++) {
		uint64_t cooldown = between(1, draw() % 2 ? 20 : 5000);
		uint32_t each = between(1, draw() % 4 ? 4 : 100);

		run_beside_the_source(between(1, draw() % 4 ? 5 : PACER_POOL_TARGETS),
				      alone(each, 1, cooldown, 2 * cooldown), 4000);
	}
}

/* ---- what the one throttle's numbers do not survive ---- */

static void test_one_throttle_deals_hot_numbers_when_raised(void **unused)
{
	profile_t two = configured(alone(2, 1, 10, 20)), four = configured(alone(4, 1, 10, 20));
	struct pacer_throttle_state *state = calloc(1, sizeof(*state));
	struct pacer_pool_lease own = {0};
	pool_t *pool = pool_map();
	lease_t lease = {0};

	(void)unused;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pacer_throttle_take(&two, state, &lease, START, 1), ADMIT);
	assert_int_equal(pacer_throttle_take(&four, state, &lease, START + 1, 1), ADMIT);
	assert_int_equal(lease.number, 0); /* one target's twice, of 4 targets with one use each */

	two.limit = four.limit = 1; /* the same, a throttle a target: two targets become four */
	for (int i = 0; i < 2; i++)
		assert_int_equal(pacer_pool_next(&two, 2, pool, &own, START), ADMIT);
	for (uint32_t i = 2; i < 4; i++) {
		assert_int_equal(pacer_pool_next(&four, 4, pool, &own, START + 1), ADMIT);
		assert_int_equal(own.target, i);
	}
	assert_int_equal(pacer_pool_next(&four, 4, pool, &own, START + 1), FULL);
	pool_unmap(pool);
	free(state);
}

static void test_one_throttle_deals_hot_numbers_when_taken_back(void **unused)
{
	profile_t two = configured(alone(2, 1, 10, 20));
	struct pacer_throttle_state *state = calloc(1, sizeof(*state));
	lease_t lease = {0};

	(void)unused;
	assert_int_equal(pacer_throttle_take(&two, state, &lease, START, 1), ADMIT);
	assert_int_equal(pacer_throttle_take(&two, state, &lease, START, 1), ADMIT);
	assert_int_equal(lease.number, 1);
	pacer_throttle_undo(&two, state, &lease);
	assert_int_equal(pacer_throttle_take(&two, state, &lease, START, 1), ADMIT);
	assert_int_equal(lease.number, 0); /* which is hot, as 1 is not */
	free(state);
}

/* ---- random runs of several CPUs against every use of every target ---- */

enum fault {
	SOUND,
	FORFEIT,	    /* nothing is handed back */
	HAND_BACK_TO_OTHER, /* to the target whose turn it is */
	USE_FOR_OTHER,	    /* a lease is used for the next target */
	NO_END,		    /* a lease is used after its end */
	REST_LONG,	    /* twice as long as until the first bucket comes back */
	REST_ALWAYS	    /* also where a target was only busy or just taken */
};

struct faults {
	uint32_t over;	    /* admitted above `each` */
	uint32_t a, b, sum; /* denied outside the header's bounds; sum: of all targets together */
	uint32_t buckets, leaked;
};

struct run {
	params_t params;
	profile_t each;
	uint32_t targets;
	pool_t *pool;
	struct pacer_pool_lease lease[CPUS];
	struct oracle used[FEW];
	enum fault fault;
};

static int faulty_next(struct run *r, struct pacer_pool_lease *lease, uint64_t now)
{
	uint64_t before = lease->resume_ns;
	int result;

	if (r->fault == NO_END && lease->lease.left)
		lease->lease.until_ns = FOREVER;
	if (r->fault == FORFEIT && now > lease->lease.until_ns)
		lease->lease.left = 0;
	if (r->fault == HAND_BACK_TO_OTHER && now > lease->lease.until_ns)
		lease->target = r->pool->turn;
	result = pacer_pool_next(&r->each, r->targets, r->pool, lease, now);
	if (r->fault == USE_FOR_OTHER && result == ADMIT && draw() % 2)
		lease->target = (lease->target + 1) % r->targets;
	if (r->fault == REST_LONG && lease->resume_ns != before && lease->resume_ns > now)
		lease->resume_ns += lease->resume_ns - now + 3;
	if (r->fault == REST_ALWAYS && result == ADMIT && !lease->lease.left)
		pacer_pool_rest(&r->each, r->targets, lease, now + r->each.cooldown_ns);
	return result;
}

/* The header's bounds of a denial. */
static void judge_denial(struct faults *f, const struct run *r, uint64_t t)
{
	const params_t *p = &r->params;
	uint64_t h = (uint64_t)(p->cpus - 1) * (p->lease - 1);
	uint64_t slack = smallest(p->lease_ns, p->max_cooldown_ns - p->cooldown_ns);
	uint64_t far = pacer_throttle_sum(p->max_cooldown_ns, 2 * p->resolution_ns);
	uint64_t near = p->cooldown_ns + slack + 2 * p->resolution_ns;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->targets; i++) {
		uint32_t idle = p->limit - smallest(p->limit, oracle_within(&r->used[i], t, near));

		f->a += oracle_within(&r->used[i], t, far) + h < p->limit;
		f->b += idle >= p->threshold + h;
		sum += idle;
	}
	f->sum += sum > (uint64_t)r->targets * (p->threshold - 1) + h;
}

static void judge_end(struct faults *f, const struct run *r, uint64_t t)
{
	const params_t *p = &r->params;

	t += p->cooldown_ns + smallest(p->lease_ns, p->max_cooldown_ns - p->cooldown_ns) +
	     2 * p->resolution_ns;
	for (uint32_t i = 0; i < r->targets; i++)
		f->leaked +=
		    pacer_throttle_free(&r->each, &r->pool->target[i].throttle, t) != p->limit;
}

static void run_cpus(struct run *r, struct faults *f, int calls)
{
	const params_t *p = &r->params;
	uint32_t awake = CPUS;
	uint64_t t = START;

	r->each = configured(*p);
	memset(r->pool, 0, pool_bytes(r->targets));
	memset(r->lease, 0, sizeof(r->lease));
	for (uint32_t i = 0; i < r->targets; i++)
		r->used[i].uses = 0;
	for (int i = 0; i < calls; i++) {
		struct pacer_pool_lease *lease;
		int result;

		t += draw() % 4 ? 0 : step(p);
		if (draw() % 64 == 0) /* the others go quiet, with what they have */
			awake = between(1, p->cpus);
		lease = &r->lease[draw() % smallest(awake, p->cpus)];
		result = faulty_next(r, lease, t - between(0, p->resolution_ns));
		assert_int_not_equal(result, BUSY);
		if (result == ADMIT) {
			struct oracle *used = &r->used[lease->target];

			used->time[used->uses++] = t;
			f->over += oracle_within(used, t, p->cooldown_ns) > p->limit;
		} else {
			judge_denial(f, r, t);
		}
	}
	for (uint32_t i = 0; i < r->targets; i++) {
		const struct pacer_throttle_state *s = &r->pool->target[i].throttle;

		f->buckets += s->tail - s->head > r->each.buckets;
	}
	judge_end(f, r, t);
}

static params_t draw_params(void)
{
	params_t p;
	profile_t profile;
	uint32_t max;

	do {
		uint32_t kind = draw() % 3;

		p = alone(between(1, draw() % 2 ? 12 : 300), 0, between(1, draw() % 2 ? 20 : 5000),
			  FOREVER);
		p.threshold = kind ? between(1, p.limit) : p.limit;
		if (kind != 1)
			p.max_cooldown_ns =
			    p.cooldown_ns + between(1, draw() % 2 ? p.cooldown_ns : 4);
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
	static struct run r;
	struct faults all = {0};

	oracle_seed(3);
	r.fault = fault;
	r.pool = pool_map();
	for (int i = 0; i < runs; i++) {
		r.params = draw_params();
		r.targets = between(1, FEW);
		run_cpus(&r, &all, 2000);
	}
	pool_unmap(r.pool);
	return all;
}

static void test_property(void **unused)
{
	struct faults f = run_many(SOUND, 1500);

	(void)unused;
	assert_int_equal(f.over, 0);
	assert_int_equal(f.a, 0);
	assert_int_equal(f.b, 0);
	assert_int_equal(f.sum, 0);
	assert_int_equal(f.buckets, 0);
	assert_int_equal(f.leaked, 0);
}

/* The same runs find what is planted: too much admitted, or denied outside the bounds. */
static void test_planted_faults_are_found(void **unused)
{
	static const struct {
		enum fault fault;
		const char *name;
		bool over;
	} rows[] = {
	    {FORFEIT, "nothing handed back", false},
	    {HAND_BACK_TO_OTHER, "handed back to another target", true},
	    {USE_FOR_OTHER, "a lease used for another target", true},
	    {NO_END, "a lease used after its end", true},
	    {REST_LONG, "rests too long", false},
	    {REST_ALWAYS, "rests though not all are spent", false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct faults f = run_many(rows[i].fault, 300);

		print_message("    %s: %u admitted above the limit, %u, %u, %u denied outside "
			      "the bounds\n",
			      rows[i].name, f.over, f.a, f.b, f.sum);
		assert_true(rows[i].over ? f.over : !f.over && f.a && f.b && f.sum);
	}
}

/* ---- every schedule of small parameters ---- */

#define DEEP 11

struct world {
	params_t params;
	profile_t each;
	uint64_t now;
	struct pacer_pool_lease lease[2];
	struct {
		uint64_t time[DEEP];
		uint32_t uses;
	} used[2];
	_Alignas(64) unsigned char pool[sizeof(pool_t) + 2 * sizeof(struct pacer_pool_target)];
};

static uint64_t schedules, refused;

static uint32_t within(const struct world *w, int target, uint64_t width)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->used[target].uses; i++)
		n += w->now - w->used[target].time[i] < width;
	return n;
}

static void check_refusal(const struct world *w)
{
	const params_t *p = &w->params;
	uint32_t h = (p->cpus - 1) * (p->lease - 1), sum = 0;
	uint64_t r = 2 * p->resolution_ns;
	uint64_t slack = smallest(p->lease_ns, p->max_cooldown_ns - p->cooldown_ns);

	refused++;
	for (int i = 0; i < 2; i++) {
		uint32_t idle =
		    p->limit - smallest(p->limit, within(w, i, p->cooldown_ns + slack + r));

		assert_true(within(w, i, p->max_cooldown_ns + r) + h >= p->limit);
		assert_true(idle < p->threshold + h);
		sum += idle;
	}
	assert_true(sum <= 2 * (p->threshold - 1) + h);
}

static void follow(const struct world *from, int depth);

static void follow_use(const struct world *from, uint32_t cpu, uint64_t lag, int depth)
{
	struct world *w = malloc(sizeof(*w));
	int result;

	assert_non_null(w);
	*w = *from;
	result = pacer_pool_next(&w->each, 2, (pool_t *)w->pool, &w->lease[cpu], w->now - lag);
	if (result == ADMIT) {
		uint32_t at = w->lease[cpu].target;

		w->used[at].time[w->used[at].uses++] = w->now;
		assert_true(within(w, at, w->params.cooldown_ns) <= w->params.limit);
	} else {
		assert_int_equal(result, FULL);
		check_refusal(w);
	}
	follow(w, depth - 1);
	free(w);
}

static void follow(const struct world *from, int depth)
{
	struct world *w;

	schedules += !depth;
	if (!depth)
		return;
	for (uint32_t cpu = 0; cpu < from->params.cpus; cpu++)
		for (uint64_t lag = 0; lag <= from->params.resolution_ns; lag++)
			follow_use(from, cpu, lag, depth);
	w = malloc(sizeof(*w));
	assert_non_null(w);
	*w = *from;
	w->now++;
	follow(w, depth - 1);
	free(w);
}

static void test_every_schedule(void **unused)
{
	static const struct {
		params_t params;
		int depth;
	} rows[] = {
	    {{1, 1, 2, 1, 2, 3, 0, 0}, DEEP}, {{2, 1, 2, 1, 2, 3, 0, 0}, DEEP},
	    {{2, 2, 2, 2, 2, 3, 0, 0}, DEEP}, {{2, 2, 2, 2, 2, 4, 1, 0}, DEEP},
	    {{3, 2, 2, 2, 2, 3, 1, 0}, DEEP}, {{2, 2, 2, 2, 3, 5, 2, 0}, DEEP},
	    {{1, 1, 2, 1, 2, 3, 0, 1}, 8},    {{2, 2, 2, 2, 2, 4, 1, 1}, 8},
	    {{3, 3, 1, 3, 2, 4, 2, 1}, 10},
	};
	static struct world w;

	(void)unused;
	schedules = refused = 0;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		memset(&w, 0, sizeof(w));
		w.params = rows[i].params;
		w.each = configured(w.params);
		w.now = START;
		follow(&w, rows[i].depth);
	}
	print_message("    %llu schedules, %llu refusals\n", (unsigned long long)schedules,
		      (unsigned long long)refused);
	assert_true(refused > 1000);
}

/* ---- rest ---- */

/* While every target is spent, a CPU that knows it touches nothing that is shared. */
static void test_a_refusal_at_rest_touches_nothing_shared(void **unused)
{
	profile_t each = configured((params_t){4, 2, 2, 2, 100, 200, 10, 0});
	struct pacer_pool_lease a = {0}, b = {0};
	pool_t *pool = pool_map();
	uint64_t t;

	(void)unused;
	for (uint32_t i = 0; i < 4 * PACER_POOL_TARGETS; i++)
		assert_int_equal(pacer_pool_next(&each, PACER_POOL_TARGETS, pool, &a, START),
				 ADMIT);
	pool_protect(pool, PROT_READ);
	assert_int_equal(pacer_pool_next(&each, PACER_POOL_TARGETS, pool, &a, START), FULL);
	assert_int_equal(pacer_pool_next(&each, PACER_POOL_TARGETS, pool, &b, START + 9), FULL);
	pool_protect(pool, PROT_NONE);
	for (t = START; t < START + 100; t++) {
		assert_int_equal(pacer_pool_next(&each, PACER_POOL_TARGETS, pool, &a, t), FULL);
		assert_int_equal(pacer_pool_next(&each, PACER_POOL_TARGETS, pool, &b, t), FULL);
	}
	pool_protect(pool, PROT_READ | PROT_WRITE);
	assert_int_equal(pacer_pool_next(&each, PACER_POOL_TARGETS, pool, &b, START + 109), FULL);
	assert_int_equal(pacer_pool_next(&each, PACER_POOL_TARGETS, pool, &b, START + 110), ADMIT);
	pool_unmap(pool);
}

/* A change that may free a use is seen at once. */
static void test_a_change_ends_the_rest(void **unused)
{
	profile_t each = configured(alone(2, 1, 100, 200));
	profile_t more = configured(alone(3, 1, 100, 200));
	profile_t sooner = configured(alone(2, 1, 50, 200));
	struct pacer_pool_lease a = {0}, b;
	pool_t *pool = pool_map();

	(void)unused;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pacer_pool_next(&each, 2, pool, &a, START), ADMIT);
	assert_int_equal(pacer_pool_next(&each, 2, pool, &a, START), FULL);
	assert_int_equal(a.resume_ns, START + 100);
	b = a;
	assert_int_equal(pacer_pool_next(&sooner, 2, pool, &b, START + 49), FULL);
	assert_int_equal(pacer_pool_next(&sooner, 2, pool, &b, START + 50), ADMIT);
	b = a;
	assert_int_equal(pacer_pool_next(&each, 3, pool, &b, START + 1), ADMIT);
	assert_int_equal(b.target, 2);
	b = a;
	assert_int_equal(pacer_pool_next(&more, 2, pool, &b, START + 1), ADMIT);
	pool_unmap(pool);
}

/* A target whose first bucket came back, and which is spent still since its limit was lowered, says
 * nothing of when it is free: nobody rests for the others' sake.
 */
static void test_a_target_that_cannot_tell_lets_nobody_rest(void **unused)
{
	profile_t four = configured(alone(4, 2, 100, 200)), one = configured(alone(1, 1, 100, 200));
	static const struct {
		uint64_t after;
		uint32_t target;
	} uses[] = {{0, 0}, {0, 0}, {50, 0}, {50, 0}, {90, 1}};
	struct pacer_pool_lease lease = {0};
	pool_t *pool = pool_map();

	(void)unused;
	for (size_t i = 0; i < ARRAY(uses); i++) {
		pool->turn = uses[i].target;
		assert_int_equal(pacer_pool_next(&four, 2, pool, &lease, START + uses[i].after),
				 ADMIT);
		assert_int_equal(lease.target, uses[i].target);
	}
	assert_int_equal(pacer_pool_next(&one, 2, pool, &lease, START + 100), FULL);
	assert_int_equal(pacer_pool_next(&one, 2, pool, &lease, START + 149), FULL);
	assert_int_equal(pacer_pool_next(&one, 2, pool, &lease, START + 150), ADMIT);
	assert_int_equal(lease.target, 0);
	pool_unmap(pool);
}

/* ---- leases ---- */

static void test_two_cpus_lease_different_targets(void **unused)
{
	profile_t each = configured((params_t){40, 20, 2, 5, 1000, 2000, 100, 0});
	struct pacer_pool_lease a = {0}, b = {0};
	pool_t *pool = pool_map();

	(void)unused;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 5; i++) {
			assert_int_equal(pacer_pool_next(&each, 4, pool, &a, START), ADMIT);
			assert_int_equal(pacer_pool_next(&each, 4, pool, &b, START), ADMIT);
			assert_int_equal(a.target, 2 * round);
			assert_int_equal(b.target, 2 * round + 1);
		}
	pool_protect(pool, PROT_READ | PROT_WRITE);
	assert_int_equal(pacer_pool_next(&each, 4, pool, &a, START), ADMIT);
	pool_protect(pool, PROT_NONE); /* the rest of a lease is the CPU's own */
	for (int i = 0; i < 4; i++)
		assert_int_equal(pacer_pool_next(&each, 4, pool, &a, START + 100), ADMIT);
	pool_unmap(pool);
}

static void test_a_rest_goes_back_to_its_target(void **unused)
{
	profile_t each = configured((params_t){10, 6, 2, 4, 100, 200, 10, 0});
	struct pacer_pool_lease a = {0};
	pool_t *pool = pool_map();

	(void)unused;
	assert_int_equal(pacer_pool_next(&each, 2, pool, &a, START), ADMIT);
	assert_int_equal(pacer_throttle_free(&each, &pool->target[0].throttle, START), 6);
	assert_int_equal(pacer_pool_next(&each, 2, pool, &a, START + 11), ADMIT);
	assert_int_equal(a.target, 1);
	assert_int_equal(pacer_throttle_free(&each, &pool->target[0].throttle, START + 11), 9);
	assert_int_equal(pacer_throttle_free(&each, &pool->target[1].throttle, START + 11), 6);
	pool_unmap(pool);
}

/* ... also where all targets are said to be spent, as by a policy that came between and is gone. */
static void test_a_rest_goes_back_from_a_spent_pool(void **unused)
{
	profile_t each = configured((params_t){10, 6, 2, 4, 100, 200, 10, 0});
	struct pacer_pool_lease a = {0};
	pool_t *pool = pool_map();

	(void)unused;
	assert_int_equal(pacer_pool_next(&each, 2, pool, &a, START), ADMIT);
	pacer_pool_rest(&each, 2, &a, START + 1000);
	assert_int_equal(pacer_pool_next(&each, 2, pool, &a, START + 11), ADMIT);
	assert_int_equal(pacer_throttle_free(&each, &pool->target[0].throttle, START + 11), 9);
	pool_unmap(pool);
}

/* A lease of a target that is no longer in the pool is not used. */
static void test_a_target_goes(void **unused)
{
	profile_t each = configured((params_t){10, 6, 2, 4, 100, 200, 10, 0});
	struct pacer_pool_lease a = {0};
	pool_t *pool = pool_map();

	(void)unused;
	pool->turn = 2;
	assert_int_equal(pacer_pool_next(&each, 3, pool, &a, START), ADMIT);
	assert_int_equal(a.target, 2);
	assert_int_equal(a.lease.left, 3);
	assert_int_equal(pacer_pool_next(&each, 2, pool, &a, START), ADMIT);
	assert_int_equal(a.target, 0);
	assert_int_equal(pacer_throttle_free(&each, &pool->target[2].throttle, START), 9);
	pool->turn = 7; /* of a pool that was larger */
	a.lease.left = 0;
	assert_int_equal(pacer_pool_next(&each, 2, pool, &a, START), ADMIT);
	assert_int_equal(a.target, 0);
	pool_unmap(pool);
}

static void test_held_targets_are_passed_over(void **unused)
{
	profile_t each = configured((params_t){4, 4, 2, 2, 100, 200, 10, 0});
	struct pacer_pool_lease lease = {0};
	pool_t *pool = pool_map();

	(void)unused;
	pool->target[0].throttle.lock = PACER_LOCK_HELD;
	assert_int_equal(pacer_pool_next(&each, 3, pool, &lease, START), ADMIT);
	assert_int_equal(lease.target, 1);
	pool->turn = 0;
	lease = (struct pacer_pool_lease){0};
	pool->target[1].throttle.lock |= PACER_LOCK_HELD; /* two are waited for, no third */
	assert_int_equal(pacer_pool_next(&each, 3, pool, &lease, START), BUSY);
	assert_int_equal(lease.resume_ns, 0);
	pool->target[1].throttle.lock &= ~PACER_LOCK_HELD;
	assert_int_equal(pacer_pool_next(&each, 3, pool, &lease, START), ADMIT);
	pool->target[1].throttle.lock |= PACER_LOCK_HELD;
	assert_int_equal(lease.lease.left, 1); /* which cannot be handed back now */
	assert_int_equal(pacer_pool_next(&each, 3, pool, &lease, START + 11), BUSY);
	assert_int_equal(lease.lease.left, 1);
	pool->target[1].throttle.lock &= ~PACER_LOCK_HELD;
	assert_int_equal(pacer_pool_next(&each, 3, pool, &lease, START + 11), ADMIT);
	pool_unmap(pool);
}

/*
 * The clock of a CPU that found its target held does not go back either: what is left of a lease
 * that has ended is not used, or its target would be used more often than it may.
 */
static void test_a_lease_that_has_ended_stays_so(void **unused)
{
	profile_t each = configured((params_t){4, 4, 2, 2, 100, 200, 10, 0});
	struct pacer_pool_lease lease = {0};
	pool_t *pool = pool_map();

	(void)unused;
	assert_int_equal(pacer_pool_next(&each, 1, pool, &lease, START), ADMIT);
	assert_int_equal(lease.lease.left, 1);
	pool->target[0].throttle.lock |= PACER_LOCK_HELD;
	assert_int_equal(pacer_pool_next(&each, 1, pool, &lease, START + 20), BUSY);
	assert_true(lease.lease.seen_ns == START + 20);
	pool->target[0].throttle.lock &= ~PACER_LOCK_HELD;
	assert_int_equal(pacer_pool_next(&each, 1, pool, &lease, START + 5), ADMIT);
	assert_int_equal(lease.lease.left, 1); /* a new one, for which the rest was handed back */
	assert_true(lease.lease.until_ns == START + 30);
	assert_int_equal(pool->target[0].throttle.held, 3);
	pool_unmap(pool);
}

/* ---- several threads, as they fall ---- */

#define THREADS	       4
#define THREAD_CALLS   30000
#define THREAD_TARGETS 3u

static struct {
	profile_t each;
	pool_t *pool;
	uint64_t clock;
	uint64_t used[THREAD_TARGETS][THREADS * THREAD_CALLS];
	uint32_t uses[THREAD_TARGETS];
} shared;

static void *hammer(void *unused)
{
	struct pacer_pool_lease lease = {0};

	for (int i = 0; i < THREAD_CALLS; i++) {
		uint64_t now = __sync_add_and_fetch(&shared.clock, 1);
		uint32_t target;

		if (pacer_pool_next(&shared.each, THREAD_TARGETS, shared.pool, &lease, START + now))
			continue;
		target = lease.target;
		shared.used[target][__sync_fetch_and_add(&shared.uses[target], 1)] =
		    lease.lease.seen_ns;
	}
	return unused;
}

static void test_threads(void **unused)
{
	pthread_t thread[THREADS];

	(void)unused;
	shared.pool = pool_map();
	shared.each = configured((params_t){150, 60, THREADS, 10, 1000, 1100, 50, 0});
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	for (uint32_t k = 0; k < THREAD_TARGETS; k++) {
		uint64_t *used = shared.used[k];

		qsort(used, shared.uses[k], sizeof(*used), by_time);
		for (uint32_t i = 150; i < shared.uses[k]; i++)
			assert_true(used[i] - used[i - 150] >= 1000);
		assert_true(shared.uses[k] > THREADS * THREAD_CALLS / 20);
		assert_int_equal(
		    pacer_throttle_free(&shared.each, &shared.pool->target[k].throttle, 2 * START),
		    150);
	}
	pool_unmap(shared.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_rotation),
	    cmocka_unit_test(test_the_challenge),
	    cmocka_unit_test(test_one_target),
	    cmocka_unit_test(test_time_that_runs_back_is_the_latest_seen),
	    cmocka_unit_test(test_unconfigured_gives_none),
	    cmocka_unit_test(test_threshold_of_a_total),
	    cmocka_unit_test(test_it_is_the_sources_rotation),
	    cmocka_unit_test(test_one_throttle_deals_hot_numbers_when_raised),
	    cmocka_unit_test(test_one_throttle_deals_hot_numbers_when_taken_back),
	    cmocka_unit_test(test_property),
	    cmocka_unit_test(test_planted_faults_are_found),
	    cmocka_unit_test(test_every_schedule),
	    cmocka_unit_test(test_a_refusal_at_rest_touches_nothing_shared),
	    cmocka_unit_test(test_a_change_ends_the_rest),
	    cmocka_unit_test(test_a_target_that_cannot_tell_lets_nobody_rest),
	    cmocka_unit_test(test_two_cpus_lease_different_targets),
	    cmocka_unit_test(test_a_rest_goes_back_to_its_target),
	    cmocka_unit_test(test_a_rest_goes_back_from_a_spent_pool),
	    cmocka_unit_test(test_a_target_goes),
	    cmocka_unit_test(test_held_targets_are_passed_over),
	    cmocka_unit_test(test_a_lease_that_has_ended_stays_so),
	    cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
