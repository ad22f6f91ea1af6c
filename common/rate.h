/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: a rate with a burst: cost admitted in any window of length W is at
 * most burst + rate * W.
 *
 * Source: the generic cell rate algorithm, ITU-T I.371, annex A, in its virtual
 * scheduling form; the vocabulary is RFC 2697's. A key has one number, the
 * theoretical arrival time (TAT): when it would have its whole burst again. A
 * packet that costs c is admitted at t if
 *
 *   max(TAT, t) + c / rate - t <= burst / rate
 *
 * and TAT is then max(TAT, t) + c / rate. I.371 writes the limit as TAT - t <=
 * tau, for cells of one size, with tau = (burst - 1) / rate. Packets differ in
 * size, and TAT - t <= burst / rate would let the last packet pass on top of
 * the burst. So the packet's own cost counts here.
 *
 * Why the promise holds. Let the first packet of a window be admitted at a and
 * the last at b, b - a <= W. Each admission moves TAT by its cost's time or more.
 * Before the first, max(TAT, a) >= a; after the last, TAT <= b + burst / rate. So
 * all their costs' times together are at most b - a + burst / rate.
 *
 * Precision. Times are ns and fractions of 2^-32 ns. The time of a unit of cost
 * is rounded up to such a fraction, so a rate is never exceeded. Each unit
 * loses less than 2^-32 ns.
 *
 * The clock. On a clock of resolution r, two readings may be r closer together
 * than the packets were. The burst's time is r shorter to make up for it. A
 * time that runs backwards is further from TAT, and so it denies more.
 *
 * Error: a denial may be false because of the rounding above, the clock's
 * resolution, and keys that share an entry (table.h).
 *
 * Beginning. Where the state of a limit begins anew beside the old one (another
 * secret, other entries, another rate), the old one is asked until what it holds of a
 * silent key is over: until begin_ns. A key that is not silent has used its burst of
 * the old one and maybe not of the new, and would have it once more. So at begin_ns no
 * key has any of its burst: from then on a TAT counts as begin_ns + burst / rate at
 * least. Before, the old one bounds what is admitted, by burst + rate * W; from then
 * on the new one does, by rate * W alone. The same holds for a limit that comes back
 * when one on trial gives way, which it has not counted under. The error: a key that
 * has not used its burst builds it anew, at its rate, from begin_ns on.
 *
 * Concurrency: pacer_rate_check and _when are pure. pacer_rate_next is stored
 * under the entry's lock (table.h).
 *
 * Memory: 16 bytes for each key, with its lock and its tag.
 */
#ifndef PACER_RATE_H
#define PACER_RATE_H

#include "abi.h"
#include "table.h"

#define PACER_RATE_UNIT_NS_MAX	(1ull << 42) /* the longest time of a unit of cost: 73 minutes */
#define PACER_RATE_COST_MAX	(1u << 20)   /* of one packet */
#define PACER_RATE_BURST_NS_MAX (1ull << 56) /* 2.28 years */
#define PACER_RATE_PER_NS_MAX	(1ull << 46) /* the longest time in a rate's definition */

enum pacer_rate_error {
	PACER_RATE_OK,
	PACER_RATE_BAD_RATE,  /* 0, slower than a unit in 73 minutes, or faster than 2^32 a ns */
	PACER_RATE_BAD_BURST, /* 0, or longer than 2.28 years at this rate */
	PACER_RATE_BAD_CLOCK  /* the burst's time is within the clock's resolution */
};

/* A time, or a span of it: ns and 2^-32 ns. */
struct pacer_fine {
	__u64 ns;
	__u32 frac;
};

PACER_INLINE struct pacer_fine pacer_fine_sum(struct pacer_fine a, struct pacer_fine b)
{
	__u64 frac = (__u64)a.frac + b.frac;

	return (struct pacer_fine){a.ns + b.ns + (frac >> 32), (__u32)frac};
}

/* a - b; a is not before b. */
PACER_INLINE struct pacer_fine pacer_fine_less(struct pacer_fine a, struct pacer_fine b)
{
	__u64 frac = (__u64)a.frac - b.frac;

	return (struct pacer_fine){a.ns - b.ns - (frac >> 63), (__u32)frac};
}

/*
 * Is a longer, or later, than b? Both are below 2^63 ns. By the sign of the difference, since a
 * branch is one more path to verify.
 */
PACER_INLINE int pacer_fine_above(struct pacer_fine a, struct pacer_fine b)
{
	return (int)((b.ns - a.ns - (((__u64)b.frac - a.frac) >> 63)) >> 63);
}

/* The time of `cost` units, up to PACER_RATE_COST_MAX, of that long each: below 2^63 ns. */
PACER_INLINE struct pacer_fine pacer_rate_span(struct pacer_fine unit, __u32 cost)
{
	__u64 low = (__u64)cost * unit.frac;

	return (struct pacer_fine){cost * unit.ns + (low >> 32), (__u32)low};
}

/* The same of the rate's own. */
PACER_INLINE struct pacer_fine pacer_rate_time(const struct pacer_rate *rate, __u32 cost)
{
	return pacer_rate_span((struct pacer_fine){rate->unit_ns, rate->unit_frac}, cost);
}

/* The cost of a packet of `len_bytes`. */
PACER_INLINE __u32 pacer_rate_cost(const struct pacer_rate *rate, __u32 len_bytes)
{
	if (rate->cost == PACER_COST_PACKETS)
		return 1;
	return len_bytes < PACER_RATE_COST_MAX ? len_bytes : PACER_RATE_COST_MAX;
}

/* The TAT that counts at now_ns. */
PACER_INLINE struct pacer_fine pacer_rate_tat(const struct pacer_rate *rate, struct pacer_fine tat,
					      __u64 now_ns)
{
	struct pacer_fine spent = {rate->begin_ns + rate->burst_ns, rate->burst_frac};

	return rate->begin_ns && now_ns >= rate->begin_ns && pacer_fine_above(spent, tat) ? spent
											  : tat;
}

/* From when on a packet's time counts that is admitted at now_ns. */
PACER_INLINE struct pacer_fine pacer_rate_from(struct pacer_fine tat, __u64 now_ns)
{
	struct pacer_fine now = {now_ns, 0};

	return pacer_fine_above(tat, now) ? tat : now;
}

/* The key's theoretical arrival time if a packet of this cost is admitted at now_ns. */
PACER_INLINE struct pacer_fine pacer_rate_next(const struct pacer_rate *rate, struct pacer_fine tat,
					       __u64 now_ns, __u32 cost)
{
	return pacer_fine_sum(pacer_rate_from(tat, now_ns), pacer_rate_time(rate, cost));
}

/* May it be that, if a packet is admitted at now_ns? */
PACER_INLINE int pacer_rate_fits(const struct pacer_rate *rate, struct pacer_fine next,
				 __u64 now_ns)
{
	struct pacer_fine burst = {rate->burst_ns, rate->burst_frac};

	return !pacer_fine_above(pacer_fine_less(next, (struct pacer_fine){now_ns, 0}), burst);
}

/* May a packet of this cost be admitted at now_ns? */
PACER_INLINE int pacer_rate_check(const struct pacer_rate *rate, struct pacer_fine tat,
				  __u64 now_ns, __u32 cost)
{
	struct pacer_fine next = pacer_rate_next(rate, tat, now_ns, cost);

	return pacer_rate_fits(rate, next, now_ns);
}

/* When a packet of this time is within the burst, whatever begins. 0: at any time. */
PACER_INLINE __u64 pacer_rate_due(const struct pacer_rate *rate, struct pacer_fine tat,
				  struct pacer_fine time)
{
	struct pacer_fine burst = {rate->burst_ns, rate->burst_frac};
	struct pacer_fine due = pacer_fine_sum(tat, time);

	if (!pacer_fine_above(due, burst))
		return 0;
	due = pacer_fine_less(due, burst);
	return due.ns + !!due.frac;
}

/*
 * The earliest time, in whole ns, at which a packet of this time is admitted from now_ns on if
 * nothing else comes: exact. PACER_NEVER: it costs more than the burst. 0: at any time.
 */
PACER_INLINE __u64 pacer_rate_when_fits(const struct pacer_rate *rate, struct pacer_fine tat,
					__u64 now_ns, struct pacer_fine time)
{
	struct pacer_fine burst = {rate->burst_ns, rate->burst_frac};
	__u64 due_ns = pacer_rate_due(rate, pacer_rate_tat(rate, tat, now_ns), time);

	if (pacer_fine_above(time, burst))
		return PACER_NEVER;
	if (!rate->begin_ns || now_ns >= rate->begin_ns ||
	    pacer_later(due_ns, now_ns) < rate->begin_ns)
		return due_ns;
	return pacer_rate_due(rate, pacer_rate_tat(rate, tat, rate->begin_ns), time);
}

/* The same of a packet of this cost. */
PACER_INLINE __u64 pacer_rate_when(const struct pacer_rate *rate, struct pacer_fine tat,
				   __u64 now_ns, __u32 cost)
{
	return pacer_rate_when_fits(rate, tat, now_ns, pacer_rate_time(rate, cost));
}

/* From `ns` on, an entry with this TAT holds nothing that matters: its key has its whole burst. */
PACER_INLINE __u64 pacer_rate_idle_ns(struct pacer_fine tat)
{
	return tat.ns + !!tat.frac;
}

/* The time of a unit of cost at `amount` units in per_ns, rounded up. 0: out of range. */
PACER_INLINE PACER_MUST_USE int pacer_rate_unit(struct pacer_rate *rate, __u64 amount, __u64 per_ns)
{
	__u64 rest, frac = 0;
	int i;

	if (!amount || amount >> 62 || !per_ns || per_ns > PACER_RATE_PER_NS_MAX)
		return 0;
	rate->unit_ns = per_ns / amount;
	rest = per_ns % amount;
	for (i = 0; i < 32; i++) { /* 32 binary places of rest / amount */
		rest <<= 1;
		frac = frac << 1 | (rest >= amount);
		if (rest >= amount)
			rest -= amount;
	}
	frac += rest != 0;
	rate->unit_ns += frac >> 32;
	rate->unit_frac = (__u32)frac;
	return rate->unit_ns <= PACER_RATE_UNIT_NS_MAX;
}

/*
 * Fills *rate from the operator's units: `amount` packets or bytes every `per_ns`, and a burst, on
 * a clock of `resolution_ns`. For the loader: it divides.
 */
PACER_INLINE PACER_MUST_USE enum pacer_rate_error
pacer_rate_profile(struct pacer_rate *rate, enum pacer_cost cost, __u64 amount, __u64 per_ns,
		   __u64 burst, __u64 resolution_ns)
{
	struct pacer_fine span;
	__u64 low, high;

	__builtin_memset(rate, 0, sizeof(*rate));
	rate->cost = cost;
	if (!pacer_rate_unit(rate, amount, per_ns))
		return PACER_RATE_BAD_RATE;
	if (!burst || burst >> 32)
		return PACER_RATE_BAD_BURST;
	low = burst * rate->unit_frac;
	high = rate->unit_ns + 1;
	if (burst > PACER_RATE_BURST_NS_MAX / high)
		return PACER_RATE_BAD_BURST;
	span = (struct pacer_fine){burst * rate->unit_ns + (low >> 32), (__u32)low};
	if (!pacer_fine_above(span, (struct pacer_fine){resolution_ns, 0}))
		return PACER_RATE_BAD_CLOCK;
	span = pacer_fine_less(span, (struct pacer_fine){resolution_ns, 0});
	rate->burst_ns = span.ns;
	rate->burst_frac = span.frac;
	return PACER_RATE_OK;
}

/* --- of a key, in its entry of the table ----------------------------------------------------- */

PACER_INLINE struct pacer_fine pacer_rate_read(const struct pacer_ring *r)
{
	return (struct pacer_fine){pacer_load64(&r->head->tat_ns), pacer_load(&r->head->tat_frac)};
}

/*
 * A refusal as one expression, as record.h has it: the packet is refused where an entry's TAT is
 * later than this, and the key's. In whole nanoseconds, so that it refuses a little too few.
 */
PACER_INLINE __u64 pacer_rate_left_by(const struct pacer_rate *rate, __u64 now_ns,
				      struct pacer_fine time)
{
	return now_ns + rate->burst_ns + 1 - time.ns;
}

PACER_INLINE __u64 pacer_rate_left(const struct pacer_rate *rate, __u64 now_ns, __u32 len_bytes)
{
	return pacer_rate_left_by(rate, now_ns,
				  pacer_rate_time(rate, pacer_rate_cost(rate, len_bytes)));
}

/*
 * Is the entry the key's, and its TAT later? Then the highest bit of closed->window is set. The TAT
 * never goes back either, and is read first.
 */
PACER_INLINE void pacer_rate_closed(struct pacer_entry *entry, __u64 key, __u64 left_ns,
				    struct pacer_closed *closed)
{
	__u64 ahead_ns = left_ns - pacer_load64(&entry->tat_ns);
	__u32 lock;

	PACER_BARRIER();
	lock = pacer_load(&entry->lock);
	closed->window |= ahead_ns & (((lock & (__u32)PACER_CLOSED_BITS) ^ key) - 1);
}

/*
 * The time of the packet, by what counts of the rate: a share may be of a faster one. 0 comes when
 * a share is gone since the packet was judged by it: it takes the whole burst.
 */
PACER_INLINE struct pacer_fine pacer_rate_asked(const struct pacer_ask *q)
{
	const struct pacer_rate *rate = &q->limiter->rate;
	__u32 cost = pacer_rate_cost(rate, q->len_bytes);
	struct pacer_fine unit, part;

	if (q->part == PACER_SHARE_WHOLE)
		return pacer_rate_time(rate, cost);
	if (!q->part)
		return (struct pacer_fine){rate->burst_ns, rate->burst_frac};
	unit = (struct pacer_fine){rate->unit_ns, rate->unit_frac};
	part = (struct pacer_fine){pacer_share_time_ns(q->part), pacer_share_time_frac(q->part)};
	return pacer_rate_span(pacer_fine_above(part, unit) ? part : unit, cost);
}

/* The key's theoretical arrival time if the packet is admitted. */
PACER_INLINE struct pacer_fine pacer_rate_after(const struct pacer_ask *q, struct pacer_fine tat)
{
	struct pacer_fine from = pacer_rate_from(tat, q->now_ns);

	return pacer_fine_sum(from, pacer_rate_asked(q));
}

/* Does the entry admit the packet? Read only. */
PACER_INLINE enum pacer_reason pacer_rate_judge(const struct pacer_ask *q,
						const struct pacer_ring *r, struct pacer_seen *seen)
{
	const struct pacer_rate *rate = &q->limiter->rate;
	struct pacer_fine tat = pacer_rate_read(r);

	*seen = (struct pacer_seen){.head_ns = tat.ns, .last = tat.frac};
	tat = pacer_rate_tat(rate, tat, q->now_ns);
	return pacer_rate_fits(rate, pacer_rate_after(q, tat), q->now_ns) ? PACER_ADMIT
									  : PACER_DENY_RATE;
}

/* Under the lock: is the entry still as it was when it was judged? */
PACER_INLINE int pacer_rate_same(const struct pacer_ring *r, const struct pacer_seen *seen)
{
	struct pacer_fine tat = pacer_rate_read(r);

	return tat.ns == seen->head_ns && tat.frac == seen->last;
}

/* Counts the judged packet. Only for the holder. */
PACER_INLINE void pacer_rate_admit(const struct pacer_ask *q, const struct pacer_ring *r,
				   const struct pacer_seen *seen)
{
	const struct pacer_rate *rate = &q->limiter->rate;
	struct pacer_fine tat = {seen->head_ns, seen->last};
	struct pacer_fine next;

	tat = pacer_rate_tat(rate, tat, q->now_ns);
	next = pacer_rate_after(q, tat);
	pacer_store(&r->head->tat_frac, next.frac);
	pacer_store64(&r->head->tat_ns, next.ns);
}

#endif
