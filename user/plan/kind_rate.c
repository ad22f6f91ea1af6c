/* SPDX-License-Identifier: GPL-2.0-only */
/* A rate with a burst. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/text.h"
#include "config/units.h"
#include "plan/carry.h"
#include "plan/compile.h"
#include "plan/flood.h"
#include "rule.h"
#include "rate.h"
#include "table.h"

/* Does it let a packet through, the burst being a tick of the clock shorter? */
static bool opens(const struct pacer_rate *rate)
{
	uint32_t cost = rate->cost == PACER_COST_BYTES ? POLICY_FRAME_MAX : 1;

	return pacer_rate_check(rate, (struct pacer_fine){0, 0}, 1, cost);
}

static int profile(const struct policy_limit *limit, const struct terms *terms, const char *path,
		   struct pacer_limiter *t, struct policy_error *error)
{
	t->units = 1;
	t->idle_ns = PACER_IDLE_SLACK_NS; /* after its TAT, an entry holds nothing */
	if (pacer_rate_profile(&t->rate, limit->cost, limit->rate.amount, limit->rate.per_ns,
			       limit->burst, terms->resolution_ns) == PACER_RATE_OK &&
	    opens(&t->rate))
		return 0;
	return policy_fail(error, limit->line,
			   "%s.burst: a tick of the coarse clock shorter, it lets no packet "
			   "through: write more, or clock: exact",
			   path);
}

/* A burst that is a tick shorter is a packet shorter, at the least. */
static uint64_t fine_ns(const struct policy_limit *limit)
{
	(void)limit;
	return 0;
}

static uint64_t *value_of(struct policy_limit *limit)
{
	return &limit->burst;
}

static uint64_t span_ns(const struct policy_limit *limit)
{
	return (uint64_t)((u128)limit->burst * limit->rate.per_ns / limit->rate.amount);
}

/* No policy has a burst of bytes that is smaller than a frame. */
static void retune(struct policy_limit *limit, const struct policy_limit *from, uint64_t value,
		   const struct pacer_limiter *beyond)
{
	(void)beyond;
	limit->burst = from->rate.bytes && value < POLICY_FRAME_MAX ? POLICY_FRAME_MAX : value;
}

/*
 * The time of the largest burst that it has had in these entries: a key that had all of that is so
 * far ahead, though the burst is smaller now. In bytes that the packet path does not read.
 */
static uint64_t peak_ns(const struct pacer_limiter *t)
{
	uint64_t peak_ns = 0;

	memcpy(&peak_ns, t->rate.unused, sizeof(t->rate.unused));
	return pacer_later(t->rate.burst_ns, peak_ns);
}

static void put_peak(struct pacer_limiter *t, uint64_t peak_ns)
{
	if (peak_ns <= t->rate.burst_ns)
		peak_ns = 0;
	if (peak_ns >= PACER_RATE_BURST_NS_MAX) /* in 7 bytes */
		peak_ns = PACER_RATE_BURST_NS_MAX - 1;
	memcpy(t->rate.unused, &peak_ns, sizeof(t->rate.unused));
}

void compile_keep_peak(struct pacer_limiter *t, const struct pacer_limiter *from)
{
	if (pacer_limiter_kind_of(t) == PACER_LIMITER_RATE)
		put_peak(t, pacer_later(peak_ns(t), peak_ns(from)));
}

/* So far ahead a TAT may be, and its fraction. */
static uint64_t memory_ns(const struct pacer_limiter *t)
{
	return peak_ns(t) + 1 + t->idle_ns;
}

static uint64_t flood(const struct pacer_limiter *t, uint64_t pps)
{
	double frame = t->rate.cost == PACER_COST_BYTES ? POLICY_FRAME_MAX : 1;
	double packet_ns = frame * ((double)t->rate.unit_ns + t->rate.unit_frac / 4294967296.0);
	struct flood_terms terms = {.live_ns = packet_ns + (double)t->idle_ns,
				    .span_ns = packet_ns,
				    .allowed = (double)t->rate.burst_ns / packet_ns,
				    .refills = true};

	return entries_flood(t, &terms, pps);
}

static u128 unit_of(const struct pacer_limiter *t)
{
	return (u128)t->rate.unit_ns << 32 | t->rate.unit_frac;
}

/* A TAT is a time at one rate. */
static bool same_time(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	return a->rate.unit_ns == b->rate.unit_ns && a->rate.unit_frac == b->rate.unit_frac &&
	       a->rate.cost == b->rate.cost;
}

/* --- since when it counts -------------------------------------------------------------------- */

/*
 * In the bytes that are free in a limiter, which the packet path does not read, in ticks of 66 us:
 * from then on it has counted all that its rule let through. 0: from the load on.
 */
#define SINCE_SHIFT    16
#define SINCE_SET      ((1ull << 46) - 1) /* from a change on that is still to be in force */
#define SINCE_BACK     (1ull << 46)	  /* beside that: it drained, and had counted before */
#define SINCE_OWES     (1ull << 47)	  /* ... see owe */
#define MARGIN	       0.99		  /* for the precision of a double */
#define SINCE_FORMERLY 1ull		  /* before this clock began */
#define PRECISION      1e-9		  /* of a burst at two speeds */

static uint64_t word_of(const struct pacer_limiter *t)
{
	uint64_t word = 0;

	memcpy(&word, t->unused, sizeof(t->unused));
	return word;
}

static void put_word(struct pacer_limiter *t, uint64_t word)
{
	memcpy(t->unused, &word, sizeof(t->unused));
}

static uint64_t since_of(const struct pacer_limiter *t)
{
	return word_of(t) & SINCE_SET;
}

static void put_since(struct pacer_limiter *t, uint64_t since)
{
	put_word(t, since | (word_of(t) & ~SINCE_SET));
}

static void begins(struct pacer_limiter *t)
{
	put_word(t, SINCE_SET);
	put_peak(t, 0);
}

bool compile_rates_begin(const struct pacer_rule *rule)
{
	for (size_t k = 0; k < rule->n_limiters; k++)
		if (pacer_limiter_kind_of(&rule->limiter[k]) == PACER_LIMITER_RATE &&
		    since_of(&rule->limiter[k]) == SINCE_SET)
			return true;
	return false;
}

void compile_counts_from(struct pacer_limiter *t, uint64_t at_ns)
{
	if (pacer_limiter_kind_of(t) == PACER_LIMITER_RATE)
		put_since(t, (at_ns >> SINCE_SHIFT) + 1 + SINCE_FORMERLY);
}

void compile_say_since(struct pacer_limiter *t, uint64_t now_ns)
{
	if (since_of(t) == SINCE_SET)
		compile_counts_from(t, now_ns);
}

static void carry_since(struct pacer_limiter *t, int64_t by_ns)
{
	uint64_t since = since_of(t);
	__int128 to = ((__int128)since << SINCE_SHIFT) + by_ns;

	if (!since || since == SINCE_SET)
		return;
	if (to > 0)
		since = (uint64_t)(to >> SINCE_SHIFT) + 1 + SINCE_FORMERLY;
	put_since(t, to > 0 && since < SINCE_SET ? since : SINCE_FORMERLY);
}

/*
 * Has `t`, which goes on, not counted what `old` has let through, so that their bursts add up? Say
 * that it has come d after the old one, and d before that ends; x is the time before, a and b are
 * the rates. The old one and t together admit up to burst_b + b x + burst_a + a d of a key. That is
 * within burst_b + b (x + d), which the old one alone would, if (b - a) d >= burst_a. Where t is
 * the faster one, burst_b + b (x + d) + burst_a is within burst_a + a (x + d), if (a - b) d >=
 * burst_b.
 */
static bool is_younger(const struct pacer_limiter *t, const struct pacer_limiter *old,
		       uint64_t now_ns)
{
	uint64_t since = since_of(t), since_ns = since << SINCE_SHIFT;
	uint64_t end_ns =
	    old->until_ns == COMPILE_UNTIL_SET ? now_ns + memory_ns(old) : old->until_ns;
	double d, unit = (double)unit_of(t), old_unit = (double)unit_of(old);

	if (since == SINCE_SET)
		return true;
	if (!since ||
	    (since != SINCE_FORMERLY && since <= since_of(old) && !(word_of(old) & SINCE_BACK)))
		return false;
	if (t->rate.cost != old->rate.cost || end_ns <= since_ns)
		return true;
	d = (double)(end_ns - since_ns) * MARGIN;
	return unit > old_unit ? d * (unit - old_unit) < ((double)peak_ns(t) + 1) * old_unit
			       : d * (old_unit - unit) < ((double)peak_ns(old) + 1) * unit;
}

static u128 allowance(const struct pacer_limiter *t)
{
	return (u128)t->rate.burst_ns << 32 | t->rate.burst_frac;
}

static bool same_shape(struct pacer_limiter *t, const struct pacer_limiter *old,
		       const struct compile_host *host)
{
	(void)host;
	t->rate.begin_ns = old->rate.begin_ns;
	put_peak(t, peak_ns(old));
	put_word(t, word_of(old));
	if (old->until_ns) /* it may end before the change is in force, and has to count anew */
		put_word(t, word_of(t) | SINCE_SET | SINCE_BACK);
	return same_time(t, old);
}

static void take_value(struct pacer_limiter *t, const struct pacer_limiter *from)
{
	uint64_t most_ns = pacer_later(peak_ns(t), peak_ns(from));

	__atomic_store_n(&t->rate.burst_ns, from->rate.burst_ns, __ATOMIC_RELEASE);
	__atomic_store_n(&t->rate.burst_frac, from->rate.burst_frac, __ATOMIC_RELEASE);
	put_peak(t, most_ns);
}

static uint64_t value(const struct pacer_limiter *t)
{
	return unit_of(t) ? (uint64_t)(allowance(t) / unit_of(t)) : 0;
}

/* It begins when the others, which may have let their bursts through, are over (rate.h). */
static void beside(struct pacer_limiter *t, uint64_t end_ns)
{
	if (t->rate.begin_ns < end_ns)
		__atomic_store_n(&t->rate.begin_ns, end_ns, __ATOMIC_RELEASE);
}

/* From then on no key is without its burst for that. */
static bool has_waited(const struct pacer_limiter *t, uint64_t at_ns)
{
	return !t->rate.begin_ns ||
	       (t->rate.begin_ns < at_ns && at_ns - t->rate.begin_ns >= t->rate.burst_ns + 1);
}

/* In packets or bytes, and parts of one: under the coarse clock a burst is a tick smaller. */
static double burst(const struct pacer_limiter *t)
{
	return (double)allowance(t) / (double)unit_of(t);
}

/*
 * As t begins, a key has none of the burst. If it had used a larger one of about this speed before,
 * or one that may have been, in bytes beside packets, it owes the difference. A key that never
 * rests pays nothing back, and would have the difference once more if the burst grew. Where the
 * speeds are a factor of two apart, the time in which a burst as large builds makes up for it. What
 * was larger in the same entries before is paid: the rate before lasts for that (peak_ns).
 */
static void owe(struct pacer_limiter *t, const struct pacer_limiter *before)
{
	u128 unit = unit_of(t), unit_before = unit_of(before);
	bool near = unit < 2 * unit_before && unit_before < 2 * unit;
	bool owed = word_of(before) & SINCE_OWES;

	if (t->rate.cost != before->rate.cost ||
	    (near && (owed || burst(before) > burst(t) * (1 + PRECISION))))
		put_word(t, word_of(t) | SINCE_OWES);
}

static bool owes(const struct pacer_limiter *t)
{
	return word_of(t) & SINCE_OWES;
}

/*
 * One that began before the clock does is as if it had always been there, where its burst has come
 * back to everybody. For how long it has been is not known then.
 */
void compile_carry_rate(struct pacer_limiter *t, int64_t by_ns, uint64_t now_ns)
{
	__int128 begin_ns = (__int128)t->rate.begin_ns + by_ns;

	carry_since(t, by_ns);
	if (!t->rate.begin_ns)
		return;
	if (begin_ns < 1 && begin_ns + t->rate.burst_ns + 1 <= (__int128)now_ns) {
		t->rate.begin_ns = 0;
		put_word(t, word_of(t) | SINCE_OWES);
	} else {
		t->rate.begin_ns = carry_time(t->rate.begin_ns, by_ns);
	}
}

static bool is_waiting(const struct pacer_limiter *t)
{
	return pacer_limiter_kind_of(t) == PACER_LIMITER_RATE && !t->until_ns &&
	       t->rate.begin_ns == COMPILE_UNTIL_SET;
}

bool compile_rate_waits(const struct pacer_limiter *t)
{
	return is_waiting(t);
}

bool compile_rate_builds(const struct pacer_limiter *t, uint64_t now_ns)
{
	return pacer_limiter_kind_of(t) == PACER_LIMITER_RATE && !t->until_ns &&
	       t->rate.begin_ns <= now_ns && !has_waited(t, now_ns);
}

/* Nobody knows yet when it begins: it is in time if its burst is spent when the trial ends. */
void compile_begin_by(struct pacer_limiter *t, uint64_t until_ns)
{
	if (is_waiting(t))
		t->rate.begin_ns = until_ns;
}

/* Where it begins no earlier than the trial ends, nobody has waited in vain: all have counted. */
void compile_begin_as(struct pacer_limiter *t, const struct pacer_limiter *from, uint64_t until_ns)
{
	uint64_t begin_ns = from->rate.begin_ns < until_ns ? from->rate.begin_ns : 0;

	if (pacer_limiter_kind_of(t) == PACER_LIMITER_RATE && t->rate.begin_ns == until_ns)
		__atomic_store_n(&t->rate.begin_ns, begin_ns, __ATOMIC_RELEASE);
}

/* Does the first wait for the second? */
static bool waits_for(const struct pacer_limiter *t, const struct pacer_limiter *draining)
{
	return is_waiting(t) && pacer_limiter_kind_of(draining) == PACER_LIMITER_RATE &&
	       draining->until_ns;
}

/* All that the rate waits for ends at one time: it can begin but once. */
static uint64_t end_of(const struct pacer_rule *rule, const struct pacer_limiter *t,
		       uint64_t now_ns)
{
	uint64_t end_ns = 0;

	for (size_t i = 0; i < rule->n_limiters; i++) {
		const struct pacer_limiter *at = &rule->limiter[i];
		uint64_t at_ns =
		    at->until_ns == COMPILE_UNTIL_SET ? now_ns + memory_ns(at) : at->until_ns;

		if (waits_for(t, at))
			end_ns = pacer_later(end_ns, at_ns);
	}
	return end_ns;
}

/*
 * Whoever is killed in between leaves limits in force for longer, and never a rate that does not
 * begin beside one that ends: what ends too early is put off first, then the rate is told when it
 * begins, and last comes the end of what has none yet.
 */
void compile_begin_rates(struct pacer_rule *rule, uint64_t now_ns)
{
	uint64_t end_ns[PACER_LIMITERS_MAX] = {0};

	for (size_t k = 0; k < rule->n_limiters; k++) {
		struct pacer_limiter *t = &rule->limiter[k];

		for (size_t i = 0; i < rule->n_limiters; i++)
			if (waits_for(t, &rule->limiter[i]))
				end_ns[i] = end_of(rule, t, now_ns);
	}
	for (size_t i = 0; i < rule->n_limiters; i++)
		if (end_ns[i] && rule->limiter[i].until_ns != COMPILE_UNTIL_SET)
			__atomic_store_n(&rule->limiter[i].until_ns, end_ns[i], __ATOMIC_RELEASE);
	for (size_t k = 0; k < rule->n_limiters; k++)
		if (is_waiting(&rule->limiter[k]))
			__atomic_store_n(&rule->limiter[k].rate.begin_ns,
					 end_of(rule, &rule->limiter[k], now_ns), __ATOMIC_RELEASE);
	for (size_t i = 0; i < rule->n_limiters; i++)
		if (end_ns[i])
			__atomic_store_n(&rule->limiter[i].until_ns, end_ns[i], __ATOMIC_RELEASE);
	for (size_t i = 0; i < rule->n_limiters; i++)
		compile_say_since(&rule->limiter[i], now_ns);
}

/* On an exact clock. */
static void tune(struct pacer_limiter *t, uint64_t value)
{
	u128 span = unit_of(t) * value;

	t->rate.burst_ns = (uint64_t)(span >> 32);
	t->rate.burst_frac = (uint32_t)span;
}

static uint64_t most(const struct pacer_limiter *t)
{
	uint64_t n = PACER_RATE_BURST_NS_MAX / (t->rate.unit_ns + 1);

	return n < UINT32_MAX ? n : UINT32_MAX;
}

static uint64_t enough(const struct pacer_limiter *t, uint32_t len_bytes)
{
	return value(t) + pacer_rate_cost(&t->rate, len_bytes);
}

static bool is(const struct policy_limit *limit, const struct pacer_limiter *t,
	       uint64_t resolution_ns)
{
	struct pacer_limiter wanted;

	return pacer_rate_profile(&wanted.rate, limit->cost, limit->rate.amount, limit->rate.per_ns,
				  limit->burst, 0) == PACER_RATE_OK &&
	       same_time(&wanted, t) && t->rate.burst_ns <= wanted.rate.burst_ns &&
	       wanted.rate.burst_ns - t->rate.burst_ns <= resolution_ns;
}

static void text(const struct policy_limit *limit, char *buf, size_t size)
{
	char rate[32];

	snprintf(buf, size, "%s, burst %" PRIu64, units_rate_text(&limit->rate, rate, sizeof(rate)),
		 limit->burst);
}

static void per(const struct policy_limit *limit, char *buf, size_t size)
{
	char rate[32];

	snprintf(buf, size, " at %s", units_rate_text(&limit->rate, rate, sizeof(rate)));
}

static void facts(const struct kind_subject *of, struct facts *to)
{
	const struct policy_limit *l = of->limit;
	const struct pacer_limiter *t = of->limiter;
	const char *unit = l->rate.bytes ? "byte" : "packet";
	char text[64];

	units_rate_text(&l->rate, text, sizeof(text));
	facts_uint(to, "burst", l->burst, "    never more than %" PRIu64 " %s%s, ", l->burst, unit,
		   units_plural(l->burst));
	facts_string(to, "rate", text, "and %s, in any time\n", text);
	facts_uint(to, "amount", l->rate.amount, NULL);
	facts_uint(to, "per_ns", l->rate.per_ns, NULL);
	facts_string(to, "unit", limit_unit(l), NULL);
	facts_uint(to, "effective_burst_ns", t->rate.burst_ns, NULL);
	facts_uint(to, "entries", 2ull * t->sets,
		   t->sets ? "    %llu entries of %zu bytes: exact for that many sources less "
			     "collisions; beyond, the rest "
			   : NULL,
		   2ull * t->sets, sizeof(struct pacer_entry));
	facts_uint(to, "shared", t->shared, t->sets ? "share %u\n" : NULL, t->shared);
}

static u128 fine(struct pacer_fine t)
{
	return (u128)t.ns << 32 | t.frac;
}

static void held(const struct pacer_walk *w, const struct pacer_limiter *t, struct limit_held *held)
{
	struct pacer_ask q = pacer_walk_ask(w, t, pacer_walk_hash(w, t, t->secret));
	u128 now = fine((struct pacer_fine){q.now_ns, 0}), tat, ahead;
	struct pacer_found f = {0};

	if (!entries_find(&q, &f, held))
		return;
	tat = fine(pacer_rate_read(&f.ring));
	ahead = tat > now ? tat - now : 0;
	held->unit = t->rate.cost == PACER_COST_BYTES ? "bytes" : "packets";
	held->max = value(t);
	held->used = held->max;
	if (ahead < allowance(t) && unit_of(t)) /* which is not 0 */
		held->used -= (uint64_t)((allowance(t) - ahead) / unit_of(t));
	held->asked = pacer_rate_cost(&t->rate, q.len_bytes);
}

const struct limit_kind kind_rate = {
    .name = "rate",
    .limit = LIMIT_RATE,
    .limiter = PACER_LIMITER_RATE,
    .reason = PACER_DENY_RATE,
    .counts_bytes = true,
    .keeps_times = true,
    .refills = true,
    .profile = profile,
    .fine_ns = fine_ns,
    .value_of = value_of,
    .span_ns = span_ns,
    .retune = retune,
    .is = is,
    .text = text,
    .value_is = "burst of ",
    .per = per,
    .facts = facts,
    .held = held,
    .lines = entries_lines,
    .wanted = entries_wanted,
    .flood = flood,
    .size = entries_size,
    .hashed = entries_hashed,
    .memory_ns = memory_ns,
    .same_shape = same_shape,
    .allowance = allowance,
    .take_value = take_value,
    .same_time = same_time,
    .begins = begins,
    .is_younger = is_younger,
    .beside = beside,
    .has_waited = has_waited,
    .owe = owe,
    .owes = owes,
    .value = value,
    .tune = tune,
    .most = most,
    .enough = enough,
};
