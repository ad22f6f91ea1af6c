/* SPDX-License-Identifier: GPL-2.0-only */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "lease.h"

#define ALL_MAX (2 * LEASE_AROUND + CPUS * LEASE_PACKETS)
#define UNDONE	PACER_REASON_COUNT
#define LAST	(LEASE_THROTTLES - 1)
#define BUCKETS PACER_THROTTLE_BLOCK /* of the ring: what a scenario may touch; and the last */

/* What a packet came to; the words of a note. */
struct use {
	uint64_t now_ns, reason;
	uint32_t limiter, cpu;		  /* limit: the throttle that denied it */
	uint64_t reached_ns;		  /* the latest time read by any CPU by then */
	uint64_t at_ns[LEASE_THROTTLES];  /* on the clock of use */
	uint32_t bucket[LEASE_THROTTLES]; /* that it is counted in */
	uint32_t left[LEASE_THROTTLES];	  /* on lease, after it */
};

_Static_assert(sizeof(struct use) == EXPLORE_NOTE_WORDS * sizeof(uint64_t), "a note's words");

static struct memory {
	uint64_t turn[4]; /* of a CPU: read when it reads its clock */
	struct pacer_throttle_lease lease[CPUS][LEASE_THROTTLES];
	struct pacer_line line;
	struct pacer_throttle_state throttle[LEASE_THROTTLES];
} m, initial;

static struct {
	const struct lease_scenario *scenario;
	struct outcome *outcome;
	struct pacer_policy policy;
	struct pacer_throttle_profile profile[LEASE_THROTTLES];
	uint32_t throttles;
	uint64_t secret[PACER_SECRETS];
	struct use log[ALL_MAX];
	int before, end, logged; /* end: of what the CPUs did at once */
	uint64_t reached_ns[2];	 /* by what is over: before the CPUs start, and since */
	uint64_t now_ns[CPUS], since[CPUS];
	char fault[EXPLORE_FAULT_MAX];
} l;

#define FAULT(...) (snprintf(l.fault, sizeof(l.fault), __VA_ARGS__), l.fault)

static enum pacer_reason reason_of(enum pacer_throttle_result result)
{
	return result == PACER_THROTTLE_ADMIT  ? PACER_ADMIT
	       : result == PACER_THROTTLE_BUSY ? PACER_DENY_CONTENDED
					       : PACER_DENY_THROTTLE;
}

/* The throttles in their order, each a use; what was used before a denial is undone. */
static void judge_alone(const struct lease_packet *p, struct use *u)
{
	struct pacer_throttle_lease *lease = m.lease[u->cpu];
	uint32_t k;

	u->reason = PACER_ADMIT;
	for (k = 0; k < l.throttles && u->reason == PACER_ADMIT; k++) {
		u->limiter = k;
		u->reason = reason_of(
		    pacer_throttle_take(&l.profile[k], &m.throttle[k], &lease[k], p->now_ns, 1));
	}
	if (u->reason == PACER_ADMIT && p->undo)
		u->reason = UNDONE;
	else if (u->reason != PACER_ADMIT)
		k--;
	while (u->reason != PACER_ADMIT && k--)
		pacer_throttle_undo(&l.profile[k], &m.throttle[k], &lease[k]);
}

static void judge_by_pace(const struct lease_packet *p, struct use *u)
{
	struct pacer_state state = {.table = {&m.line, 1},
				    .policy = &l.policy,
				    .secret = (const __u64 *)l.secret,
				    .throttle = m.throttle,
				    .lease = m.lease[u->cpu]};
	struct pacer_walk w = {.state = &state, .now_ns = p->now_ns};
	__u32 outcome, limiter;

	w.pkt.family = PACER_FAMILY_4;
	w.pkt.key[PACER_WORD_DADDR] = 1;
	w.pkt.len_bytes = 100;
	outcome = judge_parsed(&w);
	limiter = pacer_outcome_limiter(outcome);
	u->reason = pacer_outcome_reason(outcome);
	u->limiter = limiter - (limiter && l.scenario->window);
}

static void judge(const struct lease_packet *p, uint32_t cpu, struct use *u)
{
	uint32_t k;

	*u = (struct use){.now_ns = p->now_ns, .cpu = cpu};
	if (l.scenario->pace)
		judge_by_pace(p, u);
	else
		judge_alone(p, u);
	for (k = 0; k < l.throttles; k++) {
		const struct pacer_throttle_lease *lease = &m.lease[cpu][k];

		u->at_ns[k] = lease->seen_ns;
		u->bucket[k] = lease->bucket;
		u->left[k] = lease->left;
	}
}

/* Outside of the exploration. */
static void judge_in_turn(const struct lease_packet *p)
{
	struct use *u = &l.log[l.logged++];

	assert(l.logged <= ALL_MAX);
	judge(p, p->cpu, u);
	l.reached_ns[0] = pacer_later(l.reached_ns[0], p->now_ns);
	u->reached_ns = l.reached_ns[0];
}

static int width(void *arg, size_t offset)
{
	size_t in;

	(void)arg;
	if (offset % 8)
		return 4;
	if (offset < offsetof(struct memory, line))
		return 8;
	if (offset < offsetof(struct memory, throttle))
		return offset - offsetof(struct memory, line) ==
			       offsetof(struct pacer_line, head_ns)
			   ? 8
			   : 4;
	in = (offset - offsetof(struct memory, throttle)) % sizeof(m.throttle[0]);
	if (in >= offsetof(struct pacer_throttle_state, bucket))
		return (in - offsetof(struct pacer_throttle_state, bucket)) %
				   sizeof(struct pacer_throttle_bucket) ==
			       offsetof(struct pacer_throttle_bucket, count)
			   ? 4
			   : 8;
	return in >= offsetof(struct pacer_throttle_state, seen_ns) &&
		       in < offsetof(struct pacer_throttle_state, block)
		   ? 8
		   : 4;
}

static void start(void *arg)
{
	(void)arg;
	l.logged = l.before;
	l.reached_ns[1] = l.reached_ns[0];
	memset(l.now_ns, 0, sizeof(l.now_ns));
	memset(l.since, 0, sizeof(l.since));
}

/* A lease's use goes to no shared memory: the step at which the clock is read tells when it is. */
static void run(void *arg, int cpu)
{
	const struct lease_packet *p = l.scenario->cpu[cpu];
	struct use u;
	int i, k;

	(void)arg;
	for (i = 0; i < LEASE_PACKETS && p[i].now_ns; i++) {
		l.now_ns[cpu] = p[i].now_ns;
		l.since[cpu] = explore_steps(cpu);
		(void)pacer_load64((const __u64 *)&m.turn[cpu]);
		judge(&p[i], cpu, &u);
		for (k = 0; k < CPUS; k++)
			if (l.now_ns[k] && explore_steps(k) > l.since[k])
				l.reached_ns[1] = pacer_later(l.reached_ns[1], l.now_ns[k]);
		u.reached_ns = l.reached_ns[1];
		explore_note((const uint64_t *)&u, 1);
		if (!l.scenario->finds)
			explore_forget();
	}
}

/* ---- what has to hold ---- */

/* Uses i of throttle k lie within `span` before times[i], all of them included. */
static const char *check_times(const uint64_t times[ALL_MAX], uint32_t k, uint64_t span,
			       const char *clock)
{
	uint32_t limit = l.scenario->throttle[k].limit, sum;
	int i, j;

	for (i = 0; i < l.logged; i++) {
		if (l.log[i].reason != PACER_ADMIT)
			continue;
		for (j = 0, sum = 0; j < l.logged; j++)
			sum += l.log[j].reason == PACER_ADMIT && times[j] <= times[i] &&
			       times[i] - times[j] < span;
		if (sum > limit)
			return FAULT("G1: throttle %u has %u uses to %" PRIu64 " on the %s clock",
				     k, sum, times[i], clock);
	}
	return NULL;
}

static const char *check_uses(uint32_t k)
{
	const struct pacer_throttle_params *p = &l.scenario->throttle[k];
	uint64_t used[ALL_MAX], real[ALL_MAX];
	bool prompt = true;
	const char *fault;
	int i;

	for (i = 0; i < l.logged; i++) {
		used[i] = l.log[i].at_ns[k];
		real[i] = l.log[i].reached_ns;
		prompt &= l.log[i].reason != PACER_ADMIT || real[i] <= used[i] + p->resolution_ns;
	}
	fault = check_times(used, k, p->cooldown_ns + p->resolution_ns, "throttle's");
	if (!fault && prompt)
		fault = check_times(real, k, p->cooldown_ns, "real");
	return fault;
}

/* Did, or may, the packet take a use of throttle k? */
static bool took(const struct use *u, uint32_t k)
{
	return u->reason == PACER_ADMIT || u->reason == UNDONE ||
	       (u->reason != PACER_DENY_WINDOW && u->limiter > k);
}

/*
 * Uses that CPU c may have held of throttle k beside lease - 1 when packet i was denied: the one it
 * was just making, and one that it undid and could not hand back.
 */
static uint32_t held_by(uint32_t c, uint32_t k, int i)
{
	uint32_t sum = 0;
	int j;

	for (j = i - 1; j >= 0 && l.log[j].cpu != c; j--)
		;
	if (j >= 0 && l.log[j].reason != PACER_ADMIT)
		sum += l.log[j].left[k] >= l.profile[k].lease;
	for (j = i + 1; i < l.end && j < l.end && l.log[j].cpu != c; j++)
		;
	return sum + (i < l.end && j < l.end && took(&l.log[j], k));
}

/* The header's bound for the denial i by throttle k, on the CPU's own clock. */
static const char *check_denial(uint32_t k, int i)
{
	const struct pacer_throttle_params *p = &l.scenario->throttle[k];
	uint64_t now_ns = pacer_later(l.log[i].now_ns, l.log[i].at_ns[k]);
	uint64_t open_ns = p->max_cooldown_ns - p->cooldown_ns;
	uint64_t slack_ns = p->lease_ns < open_ns ? p->lease_ns : open_ns;
	uint64_t cool_ns = p->cooldown_ns + p->resolution_ns + slack_ns;
	uint64_t far_ns = pacer_throttle_sum(p->max_cooldown_ns, p->resolution_ns);
	uint32_t near = pacer_throttle_elsewhere(p), far = near, c;
	int j;

	for (c = 0; c < CPUS; c++)
		if (c != l.log[i].cpu) {
			near += held_by(c, k, i);
			far += held_by(c, k, i);
		}
	for (j = 0; j < i; j++) {
		if (l.log[j].reason != PACER_ADMIT)
			continue;
		near += pacer_throttle_sum(l.log[j].at_ns[k], cool_ns) > now_ns;
		far += pacer_throttle_sum(l.log[j].at_ns[k], far_ns) > now_ns;
	}
	if (far >= p->limit && p->limit < near + p->threshold)
		return NULL;
	return FAULT("G2: throttle %u denied at %" PRIu64 ", %u within max_cooldown, %u within "
		     "cooldown",
		     k, now_ns, far, near);
}

/* Is the denial one for which throttle k has to have a ground? */
static bool denied_by(const struct use *u, uint32_t k)
{
	return u->reason == PACER_DENY_THROTTLE && u->limiter == k;
}

static uint32_t counted(uint32_t k, uint64_t bucket)
{
	uint32_t sum = 0, c;
	int i;

	for (i = 0; i < l.logged; i++)
		sum += l.log[i].reason == PACER_ADMIT && l.log[i].bucket[k] == bucket;
	for (c = 0; c < CPUS; c++)
		sum += m.lease[c][k].bucket == bucket ? m.lease[c][k].left : 0;
	return sum;
}

/* Every bucket that is not back holds what was used out of it and what is on lease. */
static const char *check_state(uint32_t k)
{
	const struct pacer_throttle_state *t = &m.throttle[k];
	uint32_t held = 0, block[PACER_THROTTLE_BLOCKS] = {0};
	uint64_t number;

	if (t->lock & PACER_LOCK_HELD)
		return FAULT("throttle %u is left held", k);
	for (number = t->head; number < t->tail; number++) {
		uint32_t count = t->bucket[pacer_throttle_ring_index(number)].count;

		if (count != counted(k, number))
			return FAULT("throttle %u: bucket %" PRIu64 " holds %d, of which %u were "
				     "used or are on lease",
				     k, number, (int)count, counted(k, number));
		held += count;
		block[pacer_throttle_block(number)] += count;
	}
	if (held != t->held || memcmp(block, t->block, sizeof(block)) != 0)
		return FAULT("throttle %u: %d held, %u in its buckets", k, (int)t->held, held);
	if (t->tail - t->head > l.profile[k].buckets)
		return FAULT("throttle %u has more buckets than it may need", k);
	return NULL;
}

static const char *check_window(void)
{
	uint32_t admitted = 0;
	int i;

	for (i = 0; i < l.logged; i++)
		admitted += l.log[i].reason == PACER_ADMIT;
	if (m.line.lock & PACER_LOCK_HELD)
		return FAULT("the window's record is left held");
	if (l.scenario->window && m.line.running != admitted)
		return FAULT("the window counts %u of %u", m.line.running, admitted);
	return NULL;
}

static const char *check_log(uint32_t k)
{
	const char *fault = check_uses(k);
	int i;

	for (i = l.before; i < l.logged && !fault; i++)
		if (denied_by(&l.log[i], k))
			fault = check_denial(k, i);
	return fault;
}

static const char *check_all(void)
{
	const char *fault = check_window();
	uint32_t k;

	for (k = 0; k < l.throttles && !fault; k++) {
		fault = check_log(k);
		if (!fault)
			fault = check_state(k);
	}
	return fault;
}

/* At every state: never more in buckets than the limit. */
static const char *invariant(void *arg)
{
	uint32_t k;

	(void)arg;
	if (l.scenario->still &&
	    memcmp(&m.line, &initial.line, sizeof(m) - offsetof(struct memory, line)) != 0)
		return FAULT("a denied packet wrote");
	for (k = 0; k < l.throttles; k++)
		if (!(m.throttle[k].lock & PACER_LOCK_HELD) &&
		    m.throttle[k].held > l.scenario->throttle[k].limit)
			return FAULT("throttle %u holds %d", k, (int)m.throttle[k].held);
	return NULL;
}

static void tally_end(void)
{
	struct outcome *o = l.outcome;
	unsigned int admitted = 0, contended = 0;
	int i;

	for (i = l.before; i < l.logged; i++) {
		admitted += l.log[i].reason == PACER_ADMIT;
		contended += l.log[i].reason == PACER_DENY_CONTENDED;
	}
	if (admitted > o->most)
		o->most = admitted;
	if (contended)
		o->contended++;
	else if (admitted < o->smallest)
		o->smallest = admitted;
}

static const char *check(void *arg, const struct explore_note *notes, int n)
{
	const struct lease_packet *p = l.scenario->after;
	uint64_t reached_ns = l.reached_ns[0];
	const char *fault;
	int i;

	(void)arg;
	l.logged = l.before;
	for (i = 0; i < n; i++)
		memcpy(&l.log[l.logged++], notes[i].word, sizeof(struct use));
	l.end = l.logged;
	tally_end();
	fault = check_all();
	l.reached_ns[0] = l.reached_ns[1];
	for (i = 0; i < LEASE_AROUND && p[i].now_ns && !fault; i++) {
		judge_in_turn(&p[i]);
		if (l.log[l.logged - 1].reason == PACER_DENY_CONTENDED)
			fault = FAULT("contended with nobody");
	}
	l.reached_ns[0] = reached_ns;
	return fault ? fault : check_all();
}

/* ---- */

static void setup_rule(const struct lease_scenario *sc)
{
	struct pacer_rule *r = &l.policy.rule[0];
	enum pacer_window_error window;
	struct pacer_limiter *t = r->limiter;
	uint32_t k;

	l.policy.rules.word[0] = 1;
	if (sc->window) {
		window = pacer_window_profile(&t->window, PACER_COST_PACKETS, sc->window,
					      LEASE_WINDOW_NS, 1, 0);
		assert(window == PACER_WINDOW_OK);
		(void)window;
		pacer_window_widen(&t->window);
		t->units = t->window.units;
		t->kind = PACER_LIMITER_WINDOW;
		t->shared = 1;
		t->idle_ns = t->window.ring_ns;
		t++;
	}
	for (k = 0; k < l.throttles; k++, t++) {
		t->kind = PACER_LIMITER_THROTTLE;
		t->base = k;
		t->throttle = l.profile[k];
	}
	r->n_limiters = t - r->limiter;
}

static void setup(const struct lease_scenario *sc)
{
	enum pacer_throttle_error error;
	int i;

	memset(&l, 0, sizeof(l));
	memset(&m, 0, sizeof(m));
	l.scenario = sc;
	while (l.throttles <= LAST && sc->throttle[l.throttles].limit) {
		error =
		    pacer_throttle_configure(&l.profile[l.throttles], &sc->throttle[l.throttles]);
		assert(error == PACER_THROTTLE_OK);
		(void)error;
		l.throttles++;
	}
	setup_rule(sc);
	for (i = 0; i < LEASE_AROUND && sc->before[i].now_ns; i++)
		judge_in_turn(&sc->before[i]);
	l.before = l.end = l.logged;
	initial = m;
}

void lease_explore(const struct lease_scenario *sc, struct outcome *outcome)
{
	enum { STATE = offsetof(struct pacer_throttle_state, bucket[BUCKETS]) };
	enum { LAST_BUCKET = sizeof(struct pacer_throttle_bucket) };
	struct explore_span spans[] = {
	    {0, offsetof(struct memory, throttle) + STATE},
	    {offsetof(struct memory, throttle[1]) - LAST_BUCKET, LAST_BUCKET + STATE},
	    {offsetof(struct memory, throttle[2]) - LAST_BUCKET, LAST_BUCKET},
	    {0, 0},
	};
	struct explore_model model = {
	    .name = sc->name,
	    .memory = &m,
	    .bytes = sizeof(m),
	    .spans = spans,
	    .width = width,
	    .start = start,
	    .run = run,
	    .invariant = invariant,
	    .check = check,
	};

	while (model.cpus < CPUS && sc->cpu[model.cpus][0].now_ns)
		model.cpus++;
	plant(sc->fault);
	setup(sc);
	if (l.throttles == 1) {
		spans[1].bytes = LAST_BUCKET;
		spans[2].bytes = 0;
	}
	memset(outcome, 0, sizeof(*outcome));
	outcome->smallest = ~0u;
	l.outcome = outcome;
	explore(&model, &outcome->explored);
	plant(FAULT_NONE);
}
