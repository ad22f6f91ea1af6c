/* SPDX-License-Identifier: GPL-2.0-only */
#include "estimate/heaviest.h"

#include <stdlib.h>

#include "estimate.h"
#include "estimate/estimate_key.h"
#include "estimate/estimator.h"
#include "inspect/tally.h"
#include "live/copies.h"
#include "live/host.h"
#include "key.h"

static const struct pacer_sampling *sampling_of(const struct attached *a)
{
	return &a->copy[copies_in_force(a)].policy.sampling;
}

bool heaviest_of_admitted(const struct attached *a)
{
	return sampling_of(a)->reasons >> PACER_ADMIT & 1;
}

struct reading_of {
	const struct heaviest_of *of;
	struct policy_key kind;
	uint64_t since_ns;
};

static bool is_judged(enum pacer_reason reason)
{
	return reason == PACER_ADMIT || reason == PACER_DENY_SHARE || reason == PACER_DENY_WINDOW ||
	       reason == PACER_DENY_RATE;
}

/* A number of the limit's key; 0: the packet is not of it, or not of late. */
static uint64_t number_of(const struct pacer_sample_item *item, const void *arg)
{
	const struct reading_of *r = arg;
	struct pacer_packet pkt = estimate_packet(item);
	struct tally_key key = tally_key_of(r->of->limiter, &r->kind, &pkt);
	uint64_t sum = key.family;

	if (item->rule != r->of->counter || item->time_ns < r->since_ns || !is_judged(item->reason))
		return 0;
	for (size_t i = 0; i < PACER_KEY_WORDS; i++)
		sum = pacer_estimate_mix(sum ^ key.word[i]);
	return sum | 1;
}

/* Since when its samples are, at_ns at the earliest: of a window of packets, since the oldest. */
static uint64_t since(const struct drawn *drawn, uint64_t at_ns)
{
	uint64_t oldest_ns = drawn->now_ns, window_ns = drawn->by.window << drawn->by.tick_shift;

	if (drawn->by.form != PACER_SAMPLE_LAST)
		return oldest_ns - at_ns > window_ns ? oldest_ns - window_ns : at_ns;
	for (uint32_t c = 0; c < drawn->cpus; c++)
		for (uint32_t i = 0; i < drawn->part[c].k; i++) {
			uint64_t ns = drawn->item[(size_t)c * PACER_SAMPLE_K + i].time_ns;

			oldest_ns = ns < oldest_ns ? ns : oldest_ns;
		}
	return oldest_ns > at_ns ? oldest_ns : at_ns;
}

/* The mean length of the key's packets in the samples, or 1. */
static double cost_of(const struct drawn *drawn, const struct pooled_key *key, uint8_t cost)
{
	uint64_t number = drawn->key[(size_t)key->part * PACER_SAMPLE_K + key->item];
	uint64_t bytes = 0, n = 0;

	if (cost != PACER_COST_BYTES)
		return 1;
	for (uint32_t c = 0; c < drawn->cpus; c++)
		for (uint32_t i = 0; i < drawn->part[c].k; i++) {
			size_t at = (size_t)c * PACER_SAMPLE_K + i;

			bytes += drawn->key[at] == number ? drawn->item[at].len_bytes : 0;
			n += drawn->key[at] == number;
		}
	return n ? (double)bytes / (double)n : 0;
}

/* A part of a unit wants one. */
static uint64_t whole(double units)
{
	uint64_t down = (uint64_t)units;

	return down + (units > (double)down);
}

static int take(const struct heaviest_of *of, const struct drawn *drawn, struct pooled *pooled,
		uint64_t since_ns, struct heaviest_key key[HEAVIEST_MAX])
{
	static struct pooled_key found[HEAVIEST_MAX + 1]; /* and what is not of the limit */
	double n = (double)pooled_read(pooled, 1, ESTIMATE_DELTA).n;
	uint32_t most = pooled_keys(pooled, ESTIMATE_DELTA, found, HEAVIEST_MAX + 1);
	uint64_t late_ns = drawn->now_ns - since_ns;
	int taken = 0;

	for (uint32_t i = 0; i < most && taken < HEAVIEST_MAX && late_ns; i++) {
		const struct pacer_sample_item *item = drawn_item(drawn, &found[i]);
		size_t at = (size_t)found[i].part * PACER_SAMPLE_K + found[i].item;
		double units = found[i].share.value * n * cost_of(drawn, &found[i], of->cost) *
			       (double)of->span_ns / (double)late_ns;

		if (!drawn->key[at])
			continue;
		key[taken++] = (struct heaviest_key){estimate_packet(item),
						     units < 1e18 ? whole(units) : (uint64_t)1e18};
	}
	return taken;
}

int heaviest_read(const struct attached *a, const struct heaviest_of *of,
		  struct heaviest_key key[HEAVIEST_MAX], struct policy_error *error)
{
	const struct pacer_sampling *by = sampling_of(a);
	struct reading_of r = {of, compile_key_of(of->limiter->key_id),
			       host_now_ns() - HEAVIEST_SPAN_NS};
	struct pooled *pooled;
	struct drawn drawn;
	int taken = -1;

	if (!by->reasons || !a->sampler || pacer_limiter_valued(of->limiter) ||
	    r.kind.parts & KEY_PART_TTL || of->limiter->kind & PACER_LIMITER_NEW)
		return 0;
	if (drawn_take(a, by, number_of, &r, &drawn, error))
		return -1;
	pooled = pooled_open(drawn.part, drawn.cpus, by->form == PACER_SAMPLE_LAST);
	if (pooled)
		taken = take(of, &drawn, pooled, since(&drawn, r.since_ns), key);
	else
		policy_explain(error, POLICY_NO_MEMORY, "%s: no memory", a->ifname);
	pooled_close(pooled);
	drawn_free(&drawn);
	return taken;
}
