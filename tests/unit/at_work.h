/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a pacer at work in a kernel made of memory, whose policies change: packets, changes and
 * restarts of it, and an oracle that looks at each packet that is admitted. Of each rule, each kind
 * of limit and each key, no window admits more than the loosest of the policies that were in force
 * in it would.
 *
 * To be linked as kernel.h says.
 */
#ifndef PACER_TEST_AT_WORK_H
#define PACER_TEST_AT_WORK_H

#include "killed.h"
#include "variants.h"

#include <sys/random.h>

#include "live/allow_maps.h"
#include "live/change.h"
#include "live/copies.h"
#include "live/restore.h"
#include "live/state_file.h"

struct pacer_walk;

static uint32_t to_pool(const struct pacer_walk *w);

#define PACER_TO_POOL(frame, walk)    ((void)(frame), to_pool(walk))
#define PACER_POOL_STATE	      struct pacer_pool
#define PACER_POOL_TURN(pool)	      (&(pool)->turn)
#define PACER_POOL_THROTTLE(pool, at) (&throttles[(pool)->state[(at) & (PACER_TARGETS_MAX - 1)]])
#include "pool.h"
#include "parsed.h"

#define SOURCES	 3u
#define UDP	 17u
#define LEASED	 32u  /* throttles that there are at a time, at most */
#define LOOKBACK 400u /* admissions of a key, of which windows of rates are looked at */
#define QUIET_NS (120 * SECOND)

/* What is run, and how it went. */
static struct {
	const char *name; /* how it is run again, alone */
	bool told;	  /* all that is done */
	bool broken;	  /* a limit was passed */
	bool lost;	  /* the state of what was */
	uint32_t done, refused, killed;
	uint64_t lapses_ns; /* when a policy on trial does, by the oracle's clock; 0: none is */
} work;

/* --- time ---------------------------------------------------------------------------------------
 */

#define EPOCH_NS (1000 * SECOND)

/* The clock of packets begins anew with each boot. The oracle's and that of the day go on. */
static struct {
	uint32_t n;
	uint64_t before_ns; /* the oracle's clock when it was 0 */
	bool believed;	    /* the clock of the day */
} boot;

/* When packets of each CPU last read the exact clock: the coarse one is not before that. */
static uint64_t seen_ns[KERNEL_CPUS];

static uint64_t now_ns(void)
{
	return boot.before_ns + kernel_now_ns;
}

struct clocks clocks_read(void)
{
	struct clocks c = {.mono_ns = kernel_now_ns,
			   .boot_ns = kernel_now_ns,
			   .real_ns = EPOCH_NS + now_ns(),
			   .believed = boot.believed};

	snprintf(c.boot_id, sizeof(c.boot_id), "boot-%" PRIu32, boot.n);
	return c;
}

/* What secrets are drawn from is of the seed, too. */
ssize_t getrandom(void *to, size_t n, unsigned int flags)
{
	uint64_t *word = to;

	(void)flags;
	assert_int_equal(n % sizeof(*word), 0);
	for (size_t i = 0; i < n / sizeof(*word); i++)
		word[i] = draw();
	return (ssize_t)n;
}

/* --- what is leased -----------------------------------------------------------------------------
 */

static struct pacer_throttle_lease lease[KERNEL_CPUS][PACER_THROTTLES];
static struct pacer_pool_lease pool_lease[KERNEL_CPUS][2][PACER_POOLS_MAX];

/* The tools read and write leases by throttle, packets by CPU. */
static void put_leases(void)
{
	struct pacer_throttle_lease value[KERNEL_CPUS];

	for (uint32_t i = 0; i < LEASED; i++) {
		for (uint32_t cpu = 0; cpu < KERNEL_CPUS; cpu++)
			value[cpu] = lease[cpu][i];
		assert_int_equal(bpf_map_update_elem(KERNEL_LEASES, &i, value, 0), 0);
	}
}

static inline void take_leases(void)
{
	struct pacer_throttle_lease value[KERNEL_CPUS];

	for (uint32_t i = 0; i < LEASED; i++) {
		assert_int_equal(bpf_map_lookup_elem(KERNEL_LEASES, &i, value), 0);
		for (uint32_t cpu = 0; cpu < KERNEL_CPUS; cpu++)
			lease[cpu][i] = value[cpu];
	}
}

/* Those of a copy's pools are gone when its targets are put in. */
static void forget_pool_leases(uint32_t copy)
{
	for (uint32_t cpu = 0; cpu < KERNEL_CPUS; cpu++)
		memset(pool_lease[cpu][copy], 0, sizeof(pool_lease[cpu][copy]));
}

static void no_leases(void)
{
	targets_hook = forget_pool_leases;
	forget_pool_leases(0);
	forget_pool_leases(1);
	memset(lease, 0, sizeof(lease));
	put_leases();
}

/* --- a pacer at work ----------------------------------------------------------------------------
 */

static uint32_t in_force(void)
{
	return (uint32_t)strtoul(copies[copies_in_force(&pacer)].text + 2, NULL, 10);
}

/* --- what was done, and what was admitted -------------------------------------------------------
 */

#define NO_TARGET VARIANT_TARGETS

static struct {
	uint64_t at_ns;
	uint32_t variant;
} since[4096]; /* from when on each policy was in force, as packets could see it */
static uint32_t n_since;

/* A packet: the port that it comes from tells its flow. */
struct sent {
	uint32_t source, port, flow;
};

#define FIRST_FLOW 5u

static struct {
	uint64_t at_ns;
	uint32_t source, target; /* NO_TARGET: it was not sent to a pool */
	uint32_t rule;
	bool opens; /* its flow had no packet before */
} admitted[1 << 17];
static uint32_t n_admitted;
static uint32_t last_flow; /* that had a packet */

static void look(void)
{
	uint32_t now_in_force = in_force();

	if (n_since && since[n_since - 1].variant == now_in_force)
		return;
	assert_true(n_since < ARRAY(since));
	since[n_since].at_ns =
	    work.lapses_ns && work.lapses_ns < now_ns() ? work.lapses_ns : now_ns();
	since[n_since++].variant = now_in_force;
	work.lapses_ns = 0;
}

/* Nothing was done yet. Its policies are the caller's. */
static void begin_work(const char *name, bool told)
{
	memset(&work, 0, sizeof(work));
	work.name = name;
	work.told = told;
	boot.n = 0;
	boot.before_ns = 0;
	boot.believed = true;
	memset(seen_ns, 0, sizeof(seen_ns));
	n_variants = n_since = n_admitted = 0;
	last_flow = FIRST_FLOW;
}

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
	va_list args;

	if (!work.told)
		return;
	va_start(args, format);
	printf("%.6f ", (double)now_ns() / 1e9);
	vprintf(format, args);
	va_end(args);
}

/* Of a limit of this kind and key, a window from the i-th admission on has n, and may have `most`.
 */
static void compare(const struct asked *q, uint32_t i, uint64_t n, double most)
{
	static const char *const names[] = {"window", "rate", "gap", "uses", "target"};

	if (work.broken || (double)n <= most + 1e-6)
		return;
	work.broken = true;
	printf("%s: %" PRIu64 " from %.6f to %.6f s, and policies in force allow %.2f\n",
	       names[q->of], n, (double)admitted[i].at_ns / 1e9, (double)now_ns() / 1e9, most);
	printf("again, alone: %s\n", work.name);
}

/* --- the oracle ---------------------------------------------------------------------------------
 */

/* For so long all of a rule's rates remember what they let through. */
static uint64_t memory_of(const struct variant *v, uint32_t rule)
{
	uint64_t burst_ns = QUIET_NS;

	for (uint32_t i = 0; i < v->n; i++)
		if (v->limit[i].kind == LIMIT_RATE && v->limit[i].rule == rule &&
		    burst_ns > v->limit[i].value * SECOND / v->limit[i].speed)
			burst_ns = v->limit[i].value * SECOND / v->limit[i].speed;
	/* under the coarse clock a burst is a tick smaller */
	return PACER_IDLE_SLACK_NS + burst_ns - (v->coarse ? RESOLUTION : 0);
}

#define PACES 9u

/* Limits of one kind, key and pace go on with each other's state. */
static uint32_t pace_of(const struct limit *l)
{
	uint32_t pace = 0;

	if (l->kind == LIMIT_RATE)
		return 31 - (uint32_t)__builtin_clz((uint32_t)l->speed);
	while (l->kind != LIMIT_GAP && times_ns[pace] != l->window_ms * MS)
		pace++;
	return pace;
}

/* What the loosest of the policies that were in force since some time admits. */
struct loosest {
	double of_time[TIMES];	    /* by the time of the limit that each asks first */
	double alike;		    /* by limits of just the time that is looked at */
	double forgotten;	    /* by policies that those after them know nothing of */
	double unknown;		    /* by limits that those of another key did not wait for */
	bool wider;		    /* those of the policies that were looked at last count more */
	const struct variant *next; /* the policy that was looked at last, which came after */
	uint64_t later[2][PACES]; /* the loosest value after that, of this key and of wider ones */
};

static double sum_of_loosest(const struct loosest *l);

static uint64_t looseness_of(const struct limit *l)
{
	return l->kind == LIMIT_GAP ? UINT64_MAX - l->value : l->value;
}

/* Is a limit that counts them looser in a policy after this one? */
static bool is_raised(const struct loosest *l, const struct variant *v, const struct asked *q)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (bounds(&v->limit[i], q) &&
		    l->later[is_wider(&v->limit[i], q)][pace_of(&v->limit[i])] >
			looseness_of(&v->limit[i]))
			return true;
	return false;
}

static void take_later(struct loosest *l, const struct variant *v, const struct asked *q)
{
	for (uint32_t i = 0; i < v->n; i++) {
		const struct limit *t = &v->limit[i];
		uint64_t *to = &l->later[is_wider(t, q)][pace_of(t)];

		if (bounds(t, q) && *to < looseness_of(t))
			*to = looseness_of(t);
	}
}

static bool has(const struct variant *v, const struct limit *t)
{
	for (uint32_t k = 0; k < v->n; k++)
		if (v->limit[k].kind == t->kind && v->limit[k].by == t->by &&
		    v->limit[k].of_new == t->of_new && v->limit[k].rule == t->rule &&
		    pace_of(&v->limit[k]) == pace_of(t))
			return true;
	return false;
}

/*
 * Of the limits that bind in the policy that came after the i-th: was one there by then, if of
 * another value, and did not count at first in the window from from_ns on?
 */
static bool came_before(const struct loosest *l, uint32_t i, uint64_t from_ns,
			const struct asked *q)
{
	for (uint32_t k = 0; k < l->next->n; k++) {
		const struct limit *t = &l->next->limit[k];

		if (!bounds(t, q) || is_wider(t, q) != l->wider ||
		    !has(&variant[since[i].variant], t))
			continue;
		for (uint32_t j = i; since[j].at_ns > from_ns && j--;)
			if (!has(&variant[since[j].variant], t))
				return true;
	}
	return false;
}

/*
 * A limit of another key, or of new flows beside one of all, that came a moment before another one
 * was raised, does not know what that let through before: docs/limits.md. So that comes on top.
 */
static void part_from_later(struct loosest *l, uint32_t i, uint64_t from_ns, const struct asked *q,
			    struct most most)
{
	const struct variant *v = &variant[since[i].variant];
	struct loosest step = {0};

	if (most.most == 0) /* it denies all */
		return;
	if (l->next)
		take_later(&step, l->next, q);
	if (most.wider != l->wider &&
	    (is_raised(l, v, q) || (is_raised(&step, v, q) && came_before(l, i, from_ns, q))))
		*l = (struct loosest){.unknown = sum_of_loosest(l)};
	l->wider = most.wider;
	if (l->next)
		take_later(l, l->next, q);
	l->next = v;
}

/* The i-th. */
static void take_loosest(struct loosest *l, uint32_t i, uint64_t from_ns, const struct asked *q,
			 bool long_ago)
{
	const struct variant *v = &variant[since[i].variant];
	struct most most = most_of(v, q, false);

	part_from_later(l, i, from_ns, q, most);
	l->of_time[most.time] = fmax(l->of_time[most.time], most.most);
	l->alike = fmax(l->alike, most_of(v, q, true).most);
	if (long_ago)
		l->forgotten = fmax(l->forgotten, most.most);
}

/* What a limit of one time admits comes on top of what one of another did, where one took the
 * other's place: docs/limits.md. Those of one time know of each other.
 */
static double sum_of_loosest(const struct loosest *l)
{
	double sum = 0;

	for (uint32_t i = 0; i < TIMES; i++)
		sum += l->of_time[i];
	return fmin(sum, l->alike) + l->forgotten + l->unknown;
}

/*
 * A rate is forgotten where its rule has denied for longer than a quarter of a second and the
 * shortest of the bursts before: as docs/limits.md says, what it admitted by then may be in such a
 * window, too.
 */
static double most_since(uint64_t from_ns, const struct asked *q)
{
	uint64_t end_ns = now_ns(), denied_ns = 0;
	struct loosest loosest = {0};
	bool long_ago = false;

	for (uint32_t i = n_since; i-- && sum_of_loosest(&loosest) < INFINITY;) {
		const struct variant *v = &variant[since[i].variant];

		if (says_of(v, q->rule) != ASKS)
			denied_ns += end_ns - since[i].at_ns;
		else if (q->of == OF_RATE && denied_ns > memory_of(v, q->rule))
			long_ago = true;
		else
			denied_ns = 0;
		take_loosest(&loosest, i, from_ns, q, long_ago);
		end_ns = since[i].at_ns;
		if (end_ns < from_ns)
			break;
	}
	return sum_of_loosest(&loosest);
}

static uint32_t address_of(uint32_t source)
{
	return 0x0a000001 + source;
}

/* Of 31 bits: a source has one of its own, and two share one. */
static uint32_t prefix_of(uint32_t source)
{
	return address_of(source) & ~1u;
}

static bool counts(const struct asked *q, uint32_t i)
{
	uint32_t source = admitted[n_admitted - 1].source;

	if (q->by == BY_TARGET)
		return admitted[i].target == q->target;
	if (admitted[i].target != NO_TARGET || admitted[i].rule != q->rule ||
	    (q->of_new && !admitted[i].opens))
		return false;
	if (q->by == BY_PREFIX)
		return prefix_of(admitted[i].source) == prefix_of(source);
	return q->by == BY_DESTINATION || admitted[i].source == source;
}

/* The window of so long that ends now, with where it begins. */
static void check_window(struct asked q)
{
	uint64_t n = 0;
	uint32_t first = n_admitted - 1;

	if (most_since(now_ns(), &q) == INFINITY)
		return;
	for (uint32_t i = n_admitted; i-- && now_ns() - admitted[i].at_ns <= q.span_ns;)
		if (counts(&q, i)) {
			n++;
			first = i;
		}
	compare(&q, first, n, most_since(admitted[first].at_ns, &q));
}

/* The time since the key's packet before this. */
static void check_gap(struct asked q)
{
	uint32_t i = n_admitted - 1;

	while (i && !counts(&q, --i))
		;
	if (i == n_admitted - 1 || !counts(&q, i))
		return;
	q.span_ns = now_ns() - admitted[i].at_ns;
	compare(&q, i, 2, most_since(admitted[i].at_ns, &q));
}

/* Windows of all lengths that end now. */
static void check_rate(struct asked q)
{
	uint64_t n = 0;

	for (uint32_t i = n_admitted; i-- && n < LOOKBACK && !work.broken;) {
		double most;

		if (!counts(&q, i))
			continue;
		q.span_ns = now_ns() - admitted[i].at_ns;
		most = most_since(admitted[i].at_ns, &q);
		if (most == INFINITY) /* and of all that are longer */
			return;
		compare(&q, i, ++n, most);
	}
}

static void check_each(struct asked q)
{
	q.of = OF_WINDOW;
	for (uint32_t i = 0; i < TIMES; i++) {
		q.span_ns = times_ns[i];
		check_window(q);
	}
	q.of = OF_GAP;
	check_gap(q);
	q.of = OF_RATE;
	check_rate(q);
}

static void check_source(void)
{
	struct asked q = {.rule = admitted[n_admitted - 1].rule};

	for (q.by = BY_SOURCE; q.by <= BY_DESTINATION; q.by++) {
		q.of_new = false;
		check_each(q);
		q.of_new = true;
		if (admitted[n_admitted - 1].opens)
			check_each(q);
	}
	q = (struct asked){.of = OF_USES, .by = BY_DESTINATION, .rule = q.rule};
	for (uint32_t i = 0; i < TIMES; i++) {
		q.span_ns = times_ns[i] - 1;
		check_window(q);
	}
}

/* The window of uses is open where it begins. */
static void check_target(uint32_t target)
{
	for (uint32_t i = 0; i < TIMES; i++)
		check_window((struct asked){.of = OF_TARGETS,
					    .by = BY_TARGET,
					    .target = target,
					    .span_ns = times_ns[i] - 1});
}

/* --- packets ------------------------------------------------------------------------------------
 */

static uint32_t judged_on; /* a CPU */
static uint32_t sent_to;   /* a target, by the last packet that was sent to one */

static uint32_t to_pool(const struct pacer_walk *w)
{
	struct pacer_policy *p = &copies[copies_in_force(&pacer)].policy;
	uint32_t number = p->rule[w->rule].pool;
	struct pacer_pool *pool = &p->pool[number];
	struct pacer_pool_lease *l = &pool_lease[judged_on][copies_in_force(&pacer)][number];

	if (pacer_pool_next(&pool->throttle, pool->n, pool, l, w->now_ns) != PACER_THROTTLE_ADMIT)
		return PACER_POOL_SPENT;
	sent_to = pool->target[l->target];
	return PACER_REDIRECTED;
}

/* As clock.bpf.h and copy_in_force do; the coarse one is as far behind as it may be. */
static uint64_t packets_ns(uint32_t cpu, bool exact)
{
	if (control->in_force >> 1)
		seen_ns[cpu] = kernel_now_ns;
	return exact ? kernel_now_ns
		     : pacer_later(kernel_now_ns - kernel_now_ns % RESOLUTION, seen_ns[cpu]);
}

/* Of the policy in force, PACER_SETS_MAX each; NULL: none. */
static const struct pacer_set *judged_sets, *judged_hands;

static uint32_t judge(uint32_t cpu, struct sent p)
{
	struct pacer_policy *policy = &copies[copies_in_force(&pacer)].policy;
	struct pacer_state state = {.table = {pacer.lines, (uint32_t)pacer.n_lines},
				    .policy = policy,
				    .secret = (const __u64 *)control->secret,
				    .throttle = throttles,
				    .lease = lease[cpu],
				    .set = judged_sets,
				    .hand = judged_hands};
	struct pacer_walk walk = {.state = &state,
				  .pkt = {.key = {[PACER_WORD_SADDR] = address_of(p.source),
						  [PACER_WORD_DADDR] = 0x0a000100,
						  [PACER_WORD_PORTS] = p.flow << 16 | p.port,
						  [PACER_WORD_META] = UDP},
					  .len_bytes = PACKET_BYTES,
					  .vlan = PACER_VLAN_NONE,
					  .family = PACER_FAMILY_4,
					  .proto = UDP},
				  .now_ns = packets_ns(cpu, policy->flags & PACER_CLOCK_EXACT)};

	judged_on = cpu;
	look();
	return judge_parsed(&walk);
}

static void note(struct sent p, uint32_t rule, uint32_t target)
{
	assert_true(n_admitted < ARRAY(admitted));
	admitted[n_admitted].at_ns = now_ns();
	admitted[n_admitted].source = p.source;
	admitted[n_admitted].rule = rule;
	admitted[n_admitted].opens = p.flow > last_flow;
	admitted[n_admitted++].target = target;
	if (p.flow > last_flow)
		last_flow = p.flow;
}

static bool packet_of(uint32_t cpu, struct sent p)
{
	uint32_t outcome = judge(cpu, p), rule = rule_for(&variant[in_force()], p.port);

	if (rule == NO_RULE || pacer_outcome_reason(outcome) != PACER_ADMIT)
		return false;
	note(p, rule, NO_TARGET);
	if (!work.broken)
		check_source();
	return true;
}

static inline bool packet(uint32_t cpu, uint32_t source)
{
	return packet_of(cpu, (struct sent){source, RULE_PORT, FIRST_FLOW});
}

/* The same of one for a pool. */
static inline bool packet_to_pool(uint32_t cpu, uint32_t pool)
{
	const struct variant *v = &variant[in_force()];
	struct sent p = {0, POOL_PORT + pool, FIRST_FLOW};

	look();
	if (v->says != ASKS || pool >= v->n_pools ||
	    pacer_outcome_event(judge(cpu, p)) != PACER_REDIRECTED)
		return false;
	note(p, 0, sent_to);
	if (!work.broken)
		check_target(sent_to);
	return true;
}

/* --- changes ------------------------------------------------------------------------------------
 */

static const char *what_drains(const struct pacer_limiter *t)
{
	static char text[64];

	text[0] = 0;
	if (t->until_ns)
		snprintf(text, sizeof(text), " until %.6f", (double)t->until_ns / 1e9);
	return text;
}

static void tell_limits_of(const struct pacer_policy *p)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &p->rule[r].limiter[k];

			if (p->rule[r].id == compile_name_id("b"))
				continue;
			printf("  %s %" PRIu64 " at line %" PRIu32 ", secret %u, gap %.3f%s",
			       kind_of_limiter(t)->name, kind_of_limiter(t)->value(t), t->base,
			       t->secret, (double)t->gap_ns / 1e9, what_drains(t));
			if (t->kind == PACER_LIMITER_RATE && t->rate.begin_ns)
				printf(", begins %.6f", (double)t->rate.begin_ns / 1e9);
			printf("\n");
		}
}

static void tell_targets_of(const struct pacer_policy *p)
{
	for (uint32_t i = 0; i < PACER_POOLS_MAX; i++)
		for (uint32_t k = 0; k < p->pool[i].n; k++)
			printf("  pool %u: xsk:%u has state %u, %u each\n", i, p->pool[i].target[k],
			       p->pool[i].state[k], p->pool[i].throttle.limit);
	for (size_t i = 0; i < ARRAY(p->draining); i++)
		if (p->draining[i].until_ns)
			printf("  xsk:%u had state %u, which counts until %.6f\n",
			       p->draining[i].target, p->draining[i].state,
			       (double)p->draining[i].until_ns / 1e9);
}

/* What is told of a pacer. */
static void tell_limits(uint32_t copy)
{
	tell("in copy %" PRIu32 "%s, by the %s clock\n", copy,
	     copy == copies_in_force(&pacer) ? ", in force" : "",
	     copies[copy].policy.flags & PACER_CLOCK_EXACT ? "exact" : "coarse");
	if (!work.told)
		return;
	tell_limits_of(&copies[copy].policy);
	tell_targets_of(&copies[copy].policy);
}

static void load_text(const char *text)
{
	put_on(text);
	for (uint32_t i = 0; i < 2 * PACER_SECRETS; i++)
		control->secret[i / PACER_SECRETS][i % PACER_SECRETS] = draw();
	no_leases();
	tell("loaded\n%s", text);
	tell_limits(0);
}

static inline void load_first(const struct variant *v)
{
	load_text(text_of(v));
}

static uint32_t kill_at; /* the next change, as it writes for that time (killed.h); 0: never */

struct change {
	const char *what, *text;
	uint64_t confirm_ns;
	int (*run)(const struct change *c);
};

static int run_change(const void *change)
{
	const struct change *c = change;

	return c->run(c);
}

static void run_or_kill(const struct change *c)
{
	uint32_t at = kill_at;
	int result = 0;

	kill_at = 0;
	if (at && kill_in(at, run_change, c, &result)) {
		work.killed++;
		tell("%s: killed as it wrote for the %" PRIu32 ". time\n", c->what, at);
	} else {
		result = at ? result : c->run(c);
		work.done += result >= 0;
		work.refused += result < 0;
		tell("%s: %s\n", c->what, result < 0 ? error.text : "done");
	}
	tell_limits(0);
	tell_limits(1);
}

static int apply_change(const struct change *c)
{
	return change_apply(&pacer, c->text, NULL, c->confirm_ns, &plan, &error);
}

static int confirm_change(const struct change *c)
{
	(void)c;
	return change_confirm(&pacer, &error);
}

static int rotate_change(const struct change *c)
{
	(void)c;
	return change_rotate(&pacer, &plan, &error);
}

/* confirm_ns 0: not on trial */
static void change_to_text(const char *text, uint64_t confirm_ns)
{
	tell("%s for %.3f s\n%s", confirm_ns ? "tried" : "applied", (double)confirm_ns / 1e9, text);
	run_or_kill(&(struct change){"apply", text, confirm_ns, apply_change});
	look();
	if (copies_pending_ns(&pacer))
		work.lapses_ns = now_ns() + copies_pending_ns(&pacer);
}

static inline void change_to(const struct variant *v, uint64_t confirm_ns)
{
	change_to_text(text_of(v), confirm_ns);
}

static inline void confirm_it(void)
{
	run_or_kill(&(struct change){"confirm", NULL, 0, confirm_change});
	if (!copies_pending_ns(&pacer))
		work.lapses_ns = 0;
}

static inline void rotate_it(void)
{
	run_or_kill(&(struct change){"rotate", NULL, 0, rotate_change});
}

/* --- restarts -----------------------------------------------------------------------------------
 */

static char saved[] = "/tmp/pacer-at-work-XXXXXX";

static void save_and_read(struct state *s)
{
	struct state taken;
	uint64_t bytes;

	kernel_counters_new(KERNEL_COUNTS, KERNEL_CPUS * sizeof(struct pacer_counters),
			    PACER_COUNTERS_MAX);
	kernel_counters_new(KERNEL_SET_HITS, KERNEL_CPUS * sizeof(struct pacer_set_count),
			    PACER_SET_COUNTERS);
	pacer.set_hits_fd = KERNEL_SET_HITS;
	assert_int_equal(state_init(&taken, pacer.n_lines), 0);
	kernel_no_lock = EMFILE; /* who takes it has the lock, and lets it go when all is taken */
	if (state_take_all(&pacer, &taken, &error))
		fail_msg("%s: %s", work.name, error.text);
	kernel_no_lock = 0;
	if (state_write(saved, &taken, &bytes, &error) || state_read(saved, s, &error))
		fail_msg("%s: %s", work.name, error.text);
	state_free(&taken);
}

/* A new pacer that begins with it. */
static void go_on(const struct state *s, const struct pacer_policy *bin, const char *text)
{
	(void)end(NULL);
	put_on_as(bin, text, s->n_lines);
	control->secret_ready = s->secret_ready;
	memcpy(control->secret, s->secret, sizeof(control->secret));
	memcpy(pacer.lines, s->lines, s->n_lines * sizeof(*s->lines));
	memcpy(throttles, s->throttle, PACER_THROTTLES * sizeof(*throttles));
	assert_int_equal(allow_maps_write(&pacer, 0, &s->allow, &error), 0);
	no_leases();
}

/*
 * Saved, and off_ns later loaded again with what was saved. boot_ns: where the clock of packets
 * begins after a boot; 0: the machine stays on. No packet comes at time 0, which is none, of the
 * coarse clock either.
 */
static void restart_with(const char *text, uint64_t off_ns, uint64_t boot_ns)
{
	static struct pacer_policy bin;
	struct policy *policy;
	struct restored what;
	struct clocks at;
	struct state s;
	int result;

	look();
	work.lapses_ns = 0;
	put_leases();
	save_and_read(&s);
	if (boot_ns) {
		boot.before_ns = now_ns() + off_ns;
		boot.n++;
		kernel_now_ns = boot_ns;
	} else {
		kernel_now_ns += off_ns;
	}
	for (uint32_t cpu = 0; cpu < KERNEL_CPUS; cpu++)
		seen_ns[cpu] = kernel_now_ns;
	host.now_ns = kernel_now_ns;
	at = clocks_read();
	policy = parse(text);
	result = restore_plan(&s, policy, &at, &host, &bin, &plan, &what, &error);
	policy_free(policy);
	tell("%s, and restored\n%s", boot_ns ? "booted" : "taken off", text);
	tell("restore: %s\n", result ? error.text : "done");
	if (result) /* its policy cannot take the state over: nothing is known of what was before */
		work.lost = true;
	else
		go_on(&s, &bin, text);
	state_free(&s);
	look();
	tell_limits(0);
}

static inline void restart(const struct variant *v, uint64_t off_ns, uint64_t boot_ns)
{
	restart_with(text_of(v), off_ns, boot_ns);
}

/* How many, or from where on, if that is said there. */
static inline uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 10) : otherwise;
}

/* Run all of a test, with a file to save to. */
static inline int with_saved(int (*tests)(void))
{
	int file = mkstemp(saved), result;

	if (file < 0)
		return 2;
	close(file);
	setvbuf(stdout, NULL, _IOLBF, 0);
	result = tests();
	unlink(saved);
	return result;
}

#endif
