/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/flood.h"

#include <math.h>

/*
 * Beyond, a Poisson variable is as good as normal. Not much beyond, exp(-mean) is too small for a
 * double: a sum of such terms is nothing, whatever the mean.
 */
#define EXACT_UPTO 700
#define STEPS	   64 /* of a bisection */
#define PPS_MOST   1e12

double flood_solve(double (*of)(double x, const void *arg), const void *arg, double high,
		   double wanted)
{
	double low = 0;

	for (int i = 0; i < STEPS; i++) {
		double middle = (low + high) / 2;

		if (of(middle, arg) <= wanted)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t flood_lines_of(double lines)
{
	return lines < (double)LINES_NEVER ? (uint64_t)ceil(lines) : LINES_NEVER;
}

/* The chance that a Poisson variable is `least` or more. */
static double tail(double mean, const void *arg)
{
	double least = *(const double *)arg;
	double term = exp(-mean), below = 0;

	if (least > EXACT_UPTO)
		return erfc((least - mean) / sqrt(2 * mean)) / 2;
	for (int i = 0; i < (int)least; i++) {
		below += term;
		term *= mean / (i + 1);
	}
	return 1 - below;
}

/*
 * The most packets a span that a shared record may get. Where what was used comes back bit by bit
 * it is a queue with a fixed time of service: its backlog exceeds b with about exp(-x * b), where
 * load = x / (exp(x) - 1).
 */
static double most_shared(const struct flood_terms *terms)
{
	double half = floor(terms->allowed / 2), one = 1, x;

	if (!terms->refills)
		return flood_solve(tail, half < 1 ? &one : &half, half + 1, FLOOD_DENIED);
	if (half < 1)
		return FLOOD_DENIED;
	x = -log(FLOOD_DENIED) / half;
	return x / expm1(x);
}

/*
 * Of so many keys that come to a set while one of them holds a record: how many find both of them
 * taken. Erlang's loss formula, for two servers.
 */
static double overflow(double keys, const void *none)
{
	double both = keys * keys / 2;

	(void)none;
	return keys * both / (1 + keys + both);
}

uint64_t entries_flood(const struct pacer_limiter *t, const struct flood_terms *terms, uint64_t pps)
{
	double live = (double)pps * terms->live_ns / 1e9;
	double a_set;

	if (!t->key_id)
		return flood_lines_of((double)t->units / PACER_LINE_UNITS);
	/* Those of a span that overflow, where `live` keys are on the sets. */
	a_set =
	    flood_solve(overflow, NULL, 1e9, most_shared(terms) * terms->live_ns / terms->span_ns);
	return flood_lines_of(3 * ceil(live / a_set) * t->units / PACER_LINE_UNITS);
}

uint64_t flood_lines(const struct pacer_limiter *t, uint64_t pps)
{
	const struct limit_kind *kind = kind_of_limiter(t);

	return kind && kind->flood ? kind->flood(t, pps) : 0;
}

static double lines_at(double pps, const void *arg)
{
	return (double)flood_lines(arg, (uint64_t)pps);
}

uint64_t flood_withstood(const struct pacer_limiter *t)
{
	uint64_t lines = compile_limiter_lines(t);
	return (uint64_t)flood_solve(lines_at, t, PPS_MOST, (double)lines);
}
