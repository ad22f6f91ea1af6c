/* SPDX-License-Identifier: GPL-2.0-only */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "scenario.h"

#define ODD_INVERSE 0x0e8b2f51u /* of PACER_HASH_ODD, modulo 2^32 */

_Static_assert(ODD_INVERSE *PACER_HASH_ODD == 1, "keys come to the places asked for");

/* What a packet came to; the words of a note. `reached_ns`: the latest of the times with which
 * any CPU had gone to the shared memory by then, which the real time cannot be before.
 */
struct entry {
	uint64_t key, now_ns, len_bytes, reason, limiter, reached_ns, index[LIMITERS];
};

_Static_assert(sizeof(struct entry) == EXPLORE_NOTE_WORDS * sizeof(uint64_t), "a note's words");

static struct {
	const struct scenario *scenario;
	struct outcome *outcome;
	struct pacer_line lines[LINES], initial[LINES];
	uint32_t used; /* lines */
	struct pacer_policy policy;
	uint64_t secret[PACER_SECRETS];
	struct pacer_state state;
	struct entry
	    log[LOG_MAX]; /* in order of commitment; those before, the CPUs', those after */
	int before, logged;
	uint64_t reached_ns[2];		/* by what is over: before the CPUs start, and since */
	uint64_t now_ns[CPUS];		/* of the packet that the CPU is at */
	uint64_t since[CPUS];		/* the CPU's accesses when it began with that */
	uint64_t index[CPUS][LIMITERS]; /* the record of each limit that the CPU was at last */
	char fault[EXPLORE_FAULT_MAX];
} s;

#define FAULT(...) (snprintf(s.fault, sizeof(s.fault), __VA_ARGS__), s.fault)

static uint32_t amount(const struct limits *l)
{
	return l->amount ? l->amount : 1;
}

static void limiter_take_lines(struct pacer_limiter *t)
{
	s.used +=
	    ((2 * t->sets + t->shared) * pacer_stride(t) + PACER_LINE_UNITS - 1) / PACER_LINE_UNITS;
}

static void rate_setup(struct pacer_limiter *t, const struct limits *l)
{
	enum pacer_rate_error error =
	    pacer_rate_profile(&t->rate, l->cost, amount(l), l->window_ns, l->limit, 0);

	assert(error == PACER_RATE_OK);
	(void)error;
	t->idle_ns = l->slack_ns;
	t->units = 1;
	limiter_take_lines(t);
}

static void limiter_setup(struct pacer_limiter *t, const struct limits *l)
{
	enum pacer_window_error error;

	t->kind = l->kind;
	t->rows = l->rows;
	t->base = s.used;
	t->sets = l->sets;
	t->shared = l->shared;
	t->gap_ns = l->gap_ns;
	t->mask4[0] = t->mask4[1] = l->all ? 0 : ~0u;
	t->key_id = !l->all;
	if (l->kind == PACER_LIMITER_GAP) {
		t->units = PACER_LINE_UNITS;
		s.used += l->sets;
		return;
	}
	if (l->kind == PACER_LIMITER_RATE) {
		rate_setup(t, l);
		return;
	}
	error = pacer_window_profile(&t->window, l->cost, l->limit, l->window_ns, l->slots, 0);
	assert(error == PACER_WINDOW_OK);
	(void)error;
	if (!l->narrow)
		pacer_window_widen(&t->window);
	t->idle_ns =
	    pacer_later(t->window.ring_ns, l->gap_ns ? l->gap_ns + t->window.slot_ns + 1 : 0);
	t->idle_ns += l->slack_ns;
	t->units = t->window.units;
	limiter_take_lines(t);
}

static void judge(const struct packet *p, struct entry *e)
{
	const struct scenario *sc = s.scenario;
	struct pacer_state own = s.state; /* this CPU's */
	struct pacer_walk w = {.state = &own, .now_ns = p->now_ns};
	__u32 outcome;

	w.pkt.family = PACER_FAMILY_4;
	w.pkt.key[PACER_WORD_SADDR] = pacer_hash_fold(sc->key[p->key].home * ODD_INVERSE);
	w.pkt.key[PACER_WORD_DADDR] = pacer_hash_fold(sc->key[p->key].mark);
	w.pkt.len_bytes = p->len_bytes;
	outcome = sc->judge ? sc->judge(&w) : judge_parsed(&w);
	*e = (struct entry){.key = p->key,
			    .now_ns = p->now_ns,
			    .len_bytes = p->len_bytes,
			    .reason = pacer_outcome_reason(outcome),
			    .limiter = pacer_outcome_limiter(outcome)};
}

/* Outside of the exploration, by one CPU. */
static void judge_in_turn(const struct packet *p)
{
	struct entry *e = &s.log[s.logged++];

	assert(s.logged <= LOG_MAX);
	judge(p, e);
	s.reached_ns[0] = pacer_later(s.reached_ns[0], p->now_ns);
	e->reached_ns = s.reached_ns[0];
}

static const struct pacer_limiter *limiter_of(size_t offset)
{
	uint32_t line = offset / sizeof(struct pacer_line);
	uint32_t limiter = s.policy.rule[0].n_limiters;

	while (limiter-- && line < s.policy.rule[0].limiter[limiter].base)
		;
	return &s.policy.rule[0].limiter[limiter];
}

/* The same, or more, of an access to a narrow record: a cell, or eight of them to be copied. */
static int width_narrow(size_t offset)
{
	offset %= PACER_NARROW_UNITS * sizeof(union pacer_unit);
	if (offset < sizeof(struct pacer_entry))
		return offset == offsetof(struct pacer_entry, head_ns) ? 8 : 4;
	return offset % 8 ? 1 : 8;
}

/* Of an access: times have 8 bytes, a record's head and all cells of a sketch. */
static int width(void *arg, size_t offset)
{
	const struct pacer_limiter *t = limiter_of(offset);

	(void)arg;
	if (t->kind == PACER_LIMITER_WINDOW && pacer_window_narrow(&t->window))
		return width_narrow(offset);
	if (t->kind == PACER_LIMITER_RATE)
		return offset % sizeof(struct pacer_entry) == offsetof(struct pacer_entry, tat_ns)
			   ? 8
			   : 4;
	offset %= sizeof(struct pacer_line);
	if (offset % 8)
		return 4;
	if (t->kind == PACER_LIMITER_GAP)
		return offset ? 8 : 4;
	return offset == offsetof(struct pacer_line, head_ns) ? 8 : 4;
}

/* Of the first unit of an entry, or of a sketch's line: as pacer_hold has it. */
static uint32_t index_of(const struct pacer_limiter *t, uint32_t unit)
{
	return unit - (unit - PACER_LINE_UNITS * t->base) % pacer_stride(t);
}

static union pacer_unit *unit_at(struct pacer_line *lines, uint32_t index)
{
	return &lines[index / PACER_LINE_UNITS].unit[index % PACER_LINE_UNITS];
}

static struct pacer_entry *entry_at(struct pacer_line *lines, uint32_t index)
{
	return &unit_at(lines, index)->entry;
}

/* Who admits lets go of the record that counted the packet, and then goes to no other of its limit.
 */
static void accessed(void *arg, int cpu, size_t offset)
{
	const struct pacer_limiter *t = limiter_of(offset);

	(void)arg;
	s.index[cpu][t - s.policy.rule[0].limiter] = index_of(t, offset / sizeof(union pacer_unit));
}

static void start(void *arg)
{
	(void)arg;
	s.logged = s.before;
	s.reached_ns[1] = s.reached_ns[0];
	memset(s.now_ns, 0, sizeof(s.now_ns));
	memset(s.since, 0, sizeof(s.since));
}

static void run(void *arg, int cpu)
{
	const struct packet *p = s.scenario->cpu[cpu];
	struct entry e;
	int i, k;

	(void)arg;
	for (i = 0; i < PACKETS && p[i].key; i++) {
		s.now_ns[cpu] = p[i].now_ns;
		s.since[cpu] = explore_steps(cpu);
		judge(&p[i], &e);
		for (k = 0; k < CPUS; k++)
			if (s.now_ns[k] && explore_steps(k) > s.since[k])
				s.reached_ns[1] = pacer_later(s.reached_ns[1], s.now_ns[k]);
		for (k = 0; k < LIMITERS && e.reason == PACER_ADMIT; k++)
			e.index[k] = s.index[cpu][k];
		if (s.scenario->ahead && e.reason == PACER_ADMIT)
			e.reached_ns = s.reached_ns[1];
		explore_note((const uint64_t *)&e, e.reason == PACER_ADMIT);
		if (!s.scenario->finds) /* of a fault, the shortest interleaving is asked */
			explore_forget();
	}
}

static uint64_t limiter_key(const struct limits *l, const struct entry *e)
{
	return l->all ? 0 : e->key;
}

static uint32_t limiter_cost(const struct limits *l, const struct entry *e)
{
	return l->cost == PACER_COST_BYTES ? e->len_bytes : 1;
}

/* The times that the admissions count at: no key's own runs backwards. 0: not admitted. */
static void count_times(const struct limits *l, uint64_t at_ns[LOG_MAX])
{
	int i, j;

	for (i = 0; i < s.logged; i++) {
		at_ns[i] = 0;
		if (s.log[i].reason != PACER_ADMIT)
			continue;
		at_ns[i] = s.log[i].now_ns;
		for (j = 0; j < i; j++)
			if (limiter_key(l, &s.log[j]) == limiter_key(l, &s.log[i]))
				at_ns[i] = pacer_later(at_ns[i], at_ns[j]);
	}
}

/* G1 of a rate for the admission i: whichever window ends with it. */
static const char *check_bucket(const struct limits *l, const uint64_t at_ns[LOG_MAX], int i)
{
	const struct entry *e = &s.log[i];
	uint64_t now_ns = s.scenario->ahead ? pacer_later(at_ns[i], e->reached_ns) : at_ns[i],
		 sum = 0;
	int j;

	for (j = i; j >= 0; j--) {
		if (!at_ns[j] || limiter_key(l, &s.log[j]) != limiter_key(l, e))
			continue;
		sum += limiter_cost(l, &s.log[j]);
		if (sum * l->window_ns > l->limit * l->window_ns + amount(l) * (now_ns - at_ns[j]))
			return FAULT("G1: key %" PRIu64 " has %" PRIu64 " from %" PRIu64
				     " to %" PRIu64 ", over its rate with a burst of %u",
				     e->key, sum, at_ns[j], now_ns, l->limit);
	}
	return NULL;
}

/* G1 for the admission i. */
static const char *check_admission(const struct limits *l, const uint64_t at_ns[LOG_MAX], int i)
{
	const struct entry *e = &s.log[i];
	uint64_t now_ns = s.scenario->ahead ? pacer_later(at_ns[i], e->reached_ns) : at_ns[i];
	uint64_t sum = limiter_cost(l, e);
	int j;

	if (l->kind == PACER_LIMITER_RATE)
		return check_bucket(l, at_ns, i);
	for (j = 0; j < i; j++) {
		if (!at_ns[j] || limiter_key(l, &s.log[j]) != limiter_key(l, e))
			continue;
		if (now_ns - at_ns[j] < l->gap_ns)
			return FAULT("G1: key %" PRIu64 " admitted at %" PRIu64 " and %" PRIu64
				     ", gap %" PRIu64,
				     e->key, at_ns[j], now_ns, l->gap_ns);
		if (now_ns - at_ns[j] <= l->window_ns)
			sum += limiter_cost(l, &s.log[j]);
	}
	if (l->limit && sum > l->limit)
		return FAULT("G1: key %" PRIu64 " has %" PRIu64 " in the window to %" PRIu64
			     ", limit %u",
			     e->key, sum, now_ns, l->limit);
	return NULL;
}

/* G2 of a rate: all that was admitted, in its order, has to leave too little for the packet. */
static const char *check_bucket_denial(const struct limits *l, int i)
{
	const struct entry *e = &s.log[i];
	uint64_t tat = 0, now = e->now_ns * amount(l); /* in units of ns / amount */
	int j;

	for (j = 0; j < s.logged; j++) {
		const struct entry *a = &s.log[j];

		if (a->reason == PACER_ADMIT &&
		    (s.scenario->shares || limiter_key(l, a) == limiter_key(l, e)))
			tat = pacer_later(tat, a->now_ns * amount(l)) +
			      limiter_cost(l, a) * l->window_ns;
	}
	if (pacer_later(tat, now) + limiter_cost(l, e) * l->window_ns >
	    now + l->limit * l->window_ns)
		return NULL;
	return FAULT("G2: key %" PRIu64 " denied at %" PRIu64 " without a ground (rate)", e->key,
		     e->now_ns);
}

/* G2 for the denial i: is there something in the log for which the limit may have denied it? */
static const char *check_denial(const struct limits *l, const struct pacer_limiter *t,
				const uint64_t at_ns[LOG_MAX], int i)
{
	const struct entry *e = &s.log[i];
	bool gap = e->reason == PACER_DENY_GAP;
	uint64_t sum = limiter_cost(l, e);
	int j;

	if (l->kind == PACER_LIMITER_RATE)
		return check_bucket_denial(l, i);
	for (j = 0; j < s.logged; j++) {
		if (!at_ns[j] ||
		    (!s.scenario->shares && limiter_key(l, &s.log[j]) != limiter_key(l, e)))
			continue;
		if (gap && at_ns[j] + l->gap_ns > e->now_ns)
			return NULL;
		if (at_ns[j] + t->window.ring_ns > e->now_ns)
			sum += limiter_cost(l, &s.log[j]);
	}
	if (gap || sum <= l->limit)
		return FAULT("G2: key %" PRIu64 " denied at %" PRIu64 " without a ground (%s)",
			     e->key, e->now_ns, gap ? "gap" : "window");
	return NULL;
}

static const char *check_log(uint32_t limiter)
{
	const struct limits *l = &s.scenario->limiter[limiter];
	const struct pacer_limiter *t = &s.policy.rule[0].limiter[limiter];
	uint64_t at_ns[LOG_MAX];
	const char *fault = NULL;
	int i;

	count_times(l, at_ns);
	for (i = 0; i < s.logged && !fault; i++) {
		const struct entry *e = &s.log[i];

		if (e->reason == PACER_ADMIT)
			fault = check_admission(l, at_ns, i);
		else if (e->reason == PACER_DENY_CONTENDED)
			continue;
		else if (e->reason != PACER_DENY_GAP && e->reason != PACER_DENY_WINDOW &&
			 e->reason != PACER_DENY_RATE)
			return FAULT("key %" PRIu64 " denied for reason %" PRIu64, e->key,
				     e->reason);
		else if (e->limiter == limiter)
			fault = check_denial(l, t, at_ns, i);
	}
	return fault;
}

static uint64_t counted(uint32_t limiter, uint32_t index)
{
	uint64_t sum = 0;
	int i;

	for (i = s.before; i < s.logged; i++)
		if (s.log[i].reason == PACER_ADMIT && s.log[i].index[limiter] == index)
			sum += limiter_cost(&s.scenario->limiter[limiter], &s.log[i]);
	return sum;
}

static uint32_t running_at(const struct pacer_limiter *t, struct pacer_line *lines, uint32_t index)
{
	return pacer_window_narrow(&t->window) ? unit_at(lines, index + 1)->cell[0]
					       : lines[index / PACER_LINE_UNITS].running;
}

static uint32_t running_mask(const struct pacer_limiter *t)
{
	return pacer_window_narrow(&t->window) ? 0xff : ~0u;
}

/*
 * What a record's cum has grown by is what was admitted in it; one that changed hands may have
 * begun with what the shared record held at some moment.
 */
static const char *check_running(uint32_t limiter, uint32_t index)
{
	const struct pacer_limiter *t = &s.policy.rule[0].limiter[limiter];
	uint32_t shared = PACER_LINE_UNITS * t->base + 2 * t->sets * pacer_stride(t);
	uint32_t grown = running_at(t, s.lines, index) - running_at(t, s.initial, index);
	uint32_t begun = grown - (uint32_t)counted(limiter, index);

	if (!(begun & running_mask(t)))
		return NULL;
	begun += running_at(t, s.initial, index) - running_at(t, s.initial, shared);
	if (pacer_lock_tag(entry_at(s.lines, index)->lock) !=
		pacer_lock_tag(entry_at(s.initial, index)->lock) &&
	    (begun & running_mask(t)) <= counted(limiter, shared))
		return NULL;
	return FAULT("record %u counts %u, of which %" PRIu64 " were admitted in it", index,
		     grown & running_mask(t), counted(limiter, index));
}

static const char *check_lines(uint32_t limiter, bool running)
{
	const struct pacer_limiter *t = &s.policy.rule[0].limiter[limiter];
	bool sketch = t->kind == PACER_LIMITER_GAP;
	uint32_t n = sketch ? t->sets : 2 * t->sets + t->shared;
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t index = PACER_LINE_UNITS * t->base + i * pacer_stride(t);
		const char *fault = t->kind != PACER_LIMITER_WINDOW || !running
					? NULL
					: check_running(limiter, index);

		if (entry_at(s.lines, index)->lock & PACER_LOCK_HELD)
			return FAULT("entry %u is left held", index);
		if (fault)
			return fault;
	}
	return NULL;
}

/* At every state: no key has both records of its set; and where nothing may be written, it is not.
 */
static const char *invariant(void *arg)
{
	uint32_t i, k;

	(void)arg;
	if (s.scenario->still && memcmp(s.lines, s.initial, sizeof(s.lines)) != 0)
		return FAULT("a denied packet wrote");
	for (i = 0; i < s.policy.rule[0].n_limiters; i++) {
		const struct pacer_limiter *t = &s.policy.rule[0].limiter[i];

		for (k = 0; t->kind != PACER_LIMITER_GAP && k < t->sets; k++) {
			uint32_t first = PACER_LINE_UNITS * t->base + 2 * k * pacer_stride(t);
			uint32_t second = first + pacer_stride(t);
			uint32_t tag = pacer_lock_tag(entry_at(s.lines, first)->lock);

			if (tag && tag == pacer_lock_tag(entry_at(s.lines, second)->lock))
				return FAULT("tag %u has both records of set %u", tag, k);
		}
	}
	return NULL;
}

static unsigned int tally(enum pacer_reason reason)
{
	unsigned int n = 0;
	int i;

	for (i = s.before; i < s.logged; i++)
		n += s.log[i].reason == reason;
	return n;
}

static void tally_end(void)
{
	struct outcome *o = s.outcome;
	unsigned int admitted = tally(PACER_ADMIT);

	if (admitted > o->most)
		o->most = admitted;
	if (tally(PACER_DENY_CONTENDED))
		o->contended++;
	else if (admitted < o->smallest)
		o->smallest = admitted;
}

/* `cum`: none but the CPUs' packets have been judged, so that it is known where. */
static const char *check_all(bool running)
{
	const char *fault = NULL;
	uint32_t i;

	for (i = 0; i < s.policy.rule[0].n_limiters && !fault; i++) {
		fault = check_lines(i, running);
		if (!fault)
			fault = check_log(i);
	}
	return fault ? fault : invariant(NULL);
}

static const char *check(void *arg, const struct explore_note *notes, int n)
{
	const struct packet *p = s.scenario->after;
	const char *fault;
	uint64_t reached_ns = s.reached_ns[0];
	int i;

	(void)arg;
	s.logged = s.before;
	for (i = 0; i < n; i++)
		memcpy(&s.log[s.logged++], notes[i].word, sizeof(struct entry));
	tally_end();
	fault = check_all(true);
	s.reached_ns[0] = s.reached_ns[1];
	for (i = 0; i < AROUND && p[i].key && !fault; i++) {
		judge_in_turn(&p[i]);
		if (s.log[s.logged - 1].reason == PACER_DENY_CONTENDED)
			fault = FAULT("contended with nobody");
	}
	s.reached_ns[0] = reached_ns;
	return fault ? fault : check_all(false);
}

static unsigned int run_in_turn(int first, int step, int cpus)
{
	unsigned int admitted;
	uint64_t reached_ns = s.reached_ns[0];
	int i, k;

	for (k = 0; k < cpus; k++)
		for (i = 0; i < PACKETS && s.scenario->cpu[first + k * step][i].key; i++)
			judge_in_turn(&s.scenario->cpu[first + k * step][i]);
	admitted = tally(PACER_ADMIT);
	assert(!tally(PACER_DENY_CONTENDED));
	memcpy(s.lines, s.initial, sizeof(s.lines));
	s.logged = s.before;
	s.reached_ns[0] = reached_ns;
	return admitted;
}

static void setup(const struct scenario *sc)
{
	struct pacer_rule *r = &s.policy.rule[0];
	int i;

	memset(&s, 0, sizeof(s));
	s.scenario = sc;
	s.policy.rules.word[0] = 1;
	for (i = 0; i < LIMITERS && sc->limiter[i].kind != PACER_LIMITER_NONE; i++)
		limiter_setup(&r->limiter[r->n_limiters++], &sc->limiter[i]);
	if (sc->spoil)
		sc->spoil(r);
	assert(s.used <= LINES);
	s.secret[0] = 1ull << 32;
	s.secret[PACER_KEY_WORDS + 2 + 1] = 1ull << 32;
	s.state = (struct pacer_state){
	    .table = {s.lines, s.used}, .policy = &s.policy, .secret = (const __u64 *)s.secret};
	for (i = 0; i < AROUND && sc->before[i].key; i++) {
		judge_in_turn(&sc->before[i]);
		assert(s.log[i].reason == PACER_ADMIT);
	}
	s.before = s.logged;
	memcpy(s.initial, s.lines, sizeof(s.lines));
}

void scenario_explore(const struct scenario *sc, struct outcome *outcome)
{
	struct explore_model model = {
	    .name = sc->name,
	    .memory = s.lines,
	    .width = width,
	    .access = accessed,
	    .start = start,
	    .run = run,
	    .invariant = invariant,
	    .check = check,
	};

	while (model.cpus < CPUS && sc->cpu[model.cpus][0].key)
		model.cpus++;
	setup(sc);
	memset(outcome, 0, sizeof(*outcome));
	outcome->smallest = ~0u;
	s.outcome = outcome;
	model.bytes = s.used * sizeof(s.lines[0]);
	outcome->in_turn[0] = run_in_turn(0, 1, model.cpus);
	outcome->in_turn[1] = run_in_turn(model.cpus - 1, -1, model.cpus);
	explore(&model, &outcome->explored);
}
