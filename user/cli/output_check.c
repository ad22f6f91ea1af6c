/* SPDX-License-Identifier: GPL-2.0-only */
/* What a policy would take and promise, before anything is loaded. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "plan/sampling.h"
#include "config/text.h"
#include "plan/throttles.h"

#define TEXT 64

/* 1 - sum over subsets of the key's r cells, as recency.h places them: others fall on a line by
 * Poisson, and each spares j given cells of seven with C(7-j, r) / C(7, r).
 */
double output_false_delay(const struct pacer_tier *t, double keys)
{
	double load = keys / (t->sets ? t->sets : 1);

	if (t->rows == 1)
		return 1 - exp(-load / PACER_CELLS);
	return 1 - 2 * exp(-load * (1 - 15.0 / 21)) + exp(-load * (1 - 10.0 / 21));
}

static uint64_t records_of(const struct pacer_tier *t)
{
	return t->kind == PACER_TIER_SKETCH ? (uint64_t)t->sets * PACER_CELLS
					    : 2ull * t->sets + t->shared;
}

/* Packets a second that all keys of a gap together can reach: one a cell or record a gap. */
static double ceiling_of(const struct pacer_tier *t)
{
	return records_of(t) * 1e9 / t->gap_ns;
}

/*
 * For how long a key that is silent has its record for itself, and after how long at the latest the
 * record is anybody's: it is idle so long after the current slot began, in which its last admission
 * was. The coarse clock may be its resolution behind at either end.
 */
static uint64_t kept_ns(const struct pacer_tier *t, uint64_t resolution_ns)
{
	return t->idle_ns - t->window.slot_ns - resolution_ns;
}

static uint64_t newcomer_ns(const struct pacer_tier *t, uint64_t resolution_ns)
{
	return t->idle_ns + resolution_ns;
}

static json_t *window_json(const struct policy_limit *l, const struct pacer_tier *t,
			   uint64_t resolution_ns)
{
	json_t *out = json_pack(
	    "{s:s, s:I, s:s, s:I, s:i, s:I, s:I, s:f, s:i, s:I}", "kind", "window", "limit",
	    (json_int_t)l->limit, "unit", l->cost == PACER_COST_BYTES ? "bytes" : "packets",
	    "window_ns", (json_int_t)l->window_ns, "slots", (int)l->slots, "slot_ns",
	    (json_int_t)t->window.slot_ns, "false_denial_beyond_ns", (json_int_t)t->window.ring_ns,
	    "sustains", (double)l->window_ns / t->window.ring_ns, "unit_bytes",
	    l->cost == PACER_COST_BYTES ? 1 << t->window.cost_shift : 0, "records",
	    (json_int_t)records_of(t));

	json_object_set_new(out, "kept_ns",
			    t->sets ? json_integer(kept_ns(t, resolution_ns)) : json_null());
	json_object_set_new(out, "newcomer_after_ns",
			    t->sets ? json_integer(newcomer_ns(t, resolution_ns)) : json_null());
	return out;
}

static json_t *gap_json(const struct policy_limit *l, const struct pacer_tier *t)
{
	json_t *chances = json_array();
	static const double keys[] = {1000, 65536, 1048576};
	json_t *out;

	for (size_t i = 0; t->kind == PACER_TIER_SKETCH && i < 3; i++)
		json_array_append_new(chances, json_pack("{s:I, s:f}", "keys", (json_int_t)keys[i],
							 "chance", output_false_delay(t, keys[i])));
	out = json_pack("{s:s, s:I, s:I, s:I, s:s, s:I, s:f, s:o}", "kind", "gap", "gap_ns",
			(json_int_t)l->gap_ns, "effective_gap_ns", (json_int_t)t->gap_ns,
			"prolonged_by_ns", (json_int_t)compile_gap_more_ns(t), "state",
			t->kind == PACER_TIER_SKETCH ? "sketch" : "record", "cells",
			(json_int_t)records_of(t), "ceiling_pps", ceiling_of(t), "false_delay",
			chances);
	return out;
}

/* What a denial may be wrong by, of a throttle of a rule or of one target. */
static void throttle_set_json(json_t *out, const struct policy_throttle *throttle,
			      const struct pacer_throttle_profile *p, uint32_t cpus)
{
	uint32_t h = throttle_elsewhere(p, cpus);

	json_object_set_new(out, "uses", json_integer(p->limit));
	json_object_set_new(out, "cooldown_ns", json_integer(throttle->cooldown_ns));
	json_object_set_new(out, "effective_cooldown_ns", json_integer(p->cooldown_ns));
	json_object_set_new(out, "max_cooldown_ns",
			    throttle->max_cooldown_ns == UINT64_MAX
				? json_null()
				: json_integer(throttle->max_cooldown_ns));
	json_object_set_new(out, "threshold", json_integer(p->threshold));
	json_object_set_new(out, "buckets", json_integer(p->buckets));
	json_object_set_new(out, "buckets_max", json_integer(PACER_THROTTLE_BUCKETS));
	json_object_set_new(out, "cpus", json_integer(cpus));
	json_object_set_new(out, "lease", json_integer(p->lease));
	json_object_set_new(out, "lease_ns", json_integer(p->lease_ns));
	json_object_set_new(out, "leased_elsewhere", json_integer(h));
	json_object_set_new(out, "false_denial_free_below", json_integer(p->threshold + h));
}

static uint64_t throttle_bytes(uint32_t cpus)
{
	return sizeof(struct pacer_throttle_state) + cpus * sizeof(struct pacer_throttle_lease);
}

static json_t *throttle_json(const struct policy_limit *l, const struct pacer_tier *t,
			     uint32_t cpus)
{
	json_t *out = json_pack("{s:s}", "kind", "throttle");

	throttle_set_json(out, &l->throttle, &t->throttle, cpus);
	return out;
}

static json_t *rate_json(const struct policy_limit *l, const struct pacer_tier *t)
{
	char text[TEXT];

	return json_pack("{s:s, s:s, s:I, s:I, s:s, s:I, s:I, s:I, s:I}", "kind", "rate", "rate",
			 units_rate_text(&l->rate, text, sizeof(text)), "amount",
			 (json_int_t)l->rate.amount, "per_ns", (json_int_t)l->rate.per_ns, "unit",
			 l->rate.bytes ? "bytes" : "packets", "burst", (json_int_t)l->burst,
			 "effective_burst_ns", (json_int_t)t->rate.burst_ns, "entries",
			 (json_int_t)(2ull * t->sets), "shared", (json_int_t)t->shared);
}

static json_t *limit_json(const struct policy_limit *l, const struct pacer_tier *t,
			  const struct plan *plan)
{
	switch (l->kind) {
	case LIMIT_GAP:
		return gap_json(l, t);
	case LIMIT_WINDOW:
		return window_json(l, t, plan->resolution_ns);
	case LIMIT_RATE:
		return rate_json(l, t);
	case LIMIT_THROTTLE:
		break;
	}
	return throttle_json(l, t, plan->cpus);
}

/* A gap in a window's record has none: it is the window's, and is counted once. */
static uint64_t limit_bytes(const struct policy_limit *l, const struct pacer_tier *t, uint32_t cpus)
{
	if (t->kind == PACER_TIER_THROTTLE)
		return throttle_bytes(cpus);
	if (l->kind == LIMIT_GAP && t->kind == PACER_TIER_RECORD)
		return 0;
	return compile_tier_lines(t) * sizeof(struct pacer_line);
}

static json_t *pools_json(const struct policy *policy, const struct pacer_policy *bin,
			  const struct plan *plan)
{
	json_t *out = json_array(), *one, *targets;
	char text[TEXT];

	for (size_t i = 0; i < policy->n_pools; i++) {
		const struct policy_pool *pool = &policy->pool[i];

		targets = json_array();
		for (size_t k = 0; k < pool->n; k++)
			json_array_append_new(targets, json_string(policy_target_text(
							   &pool->target[k], text, sizeof(text))));
		one = json_pack("{s:s, s:o, s:I}", "name", pool->name, "targets", targets,
				"state_bytes", (json_int_t)(pool->n * throttle_bytes(plan->cpus)));
		throttle_set_json(one, &pool->throttle, &bin->pool[i].throttle, plan->cpus);
		json_array_append_new(out, one);
	}
	return out;
}

/*
 * A key raises two cells of its line, any of 32 pairs (ban.h), as do keys banned, which fall on the
 * line by Poisson. Of those one spares a given cell with 3/4; both with 17/32 where the two cells
 * are one to three apart, with 18/32 where they are four.
 */
double output_ban_maybe(const struct pacer_bans *bans, double keys)
{
	double load = keys / (bans->filter_mask + 1.0);

	return 1 - 2 * exp(-load / 4) + 0.75 * exp(-load * 15 / 32) + 0.25 * exp(-load * 14 / 32);
}

static uint64_t bans_of(const struct pacer_bans *bans)
{
	return (uint64_t)bans->sets * PACER_BAN_WAYS;
}

static json_t *bans_json(const struct policy *policy, const struct pacer_bans *bans)
{
	json_t *rules = json_object();

	if (!bans->sets) {
		json_decref(rules);
		return json_null();
	}
	for (size_t r = 0; r < policy->n_rules; r++)
		if (policy->rule[r].ban_ns)
			json_object_set_new(rules, policy->rule[r].name,
					    json_integer(policy->rule[r].ban_ns));
	return json_pack("{s:I, s:I, s:I, s:f, s:o}", "entries", (json_int_t)bans_of(bans),
			 "filter_cells", (json_int_t)(8 * (bans->filter_mask + 1ull)),
			 "state_bytes", (json_int_t)(compile_ban_lines(bans) * 64),
			 "maybe_when_full", output_ban_maybe(bans, bans_of(bans)), "rules_ns",
			 rules);
}

static uint64_t memory_of(const struct pacer_policy *bin, const struct plan *plan)
{
	return output_memory_bytes(plan->lines) + sampling_bytes(&bin->sampling, plan->cpus);
}

/* What the memory is taken for. Together it is all of it. */
enum part { PART_LIMITS, PART_BANS, PART_FREE, PART_THROTTLES, PART_SAMPLES, PART_REST, PARTS };

static const struct {
	const char *name, *text;
} part_of[PARTS] = {
    [PART_LIMITS] = {"limits", "state of the limits but throttles"},
    [PART_BANS] = {"bans", "the table of bans"},
    [PART_FREE] = {"free", "free, for later changes of policy"},
    [PART_THROTTLES] = {"throttles", "states and leases of throttles and of targets of pools, "
				     "however many there are"},
    [PART_SAMPLES] = {"samples", "samples, of each CPU"},
    [PART_REST] = {"rest", "the policy, twice, and counters of each CPU"},
};

static void find_parts(const struct pacer_policy *bin, const struct plan *plan,
		       uint64_t bytes[PARTS])
{
	uint64_t bans = compile_ban_lines(&bin->bans), line = sizeof(struct pacer_line);

	bytes[PART_LIMITS] = (plan->lines_used - bans) * line;
	bytes[PART_BANS] = bans * line;
	bytes[PART_FREE] = (plan->lines - plan->lines_used) * line;
	bytes[PART_THROTTLES] = PACER_THROTTLES * throttle_bytes(plan->cpus);
	bytes[PART_SAMPLES] = sampling_bytes(&bin->sampling, plan->cpus);
	bytes[PART_REST] =
	    memory_of(bin, plan) - plan->lines * line - bytes[PART_THROTTLES] - bytes[PART_SAMPLES];
}

static json_t *parts_json(const struct pacer_policy *bin, const struct plan *plan)
{
	json_t *out = json_object();
	uint64_t bytes[PARTS];

	find_parts(bin, plan, bytes);
	for (int i = 0; i < PARTS; i++)
		json_object_set_new(out, part_of[i].name, json_integer((json_int_t)bytes[i]));
	return out;
}

static json_t *sample_json(const struct policy *policy, const struct pacer_sampling *s,
			   unsigned int cpus)
{
	const struct policy_sample *p = &policy->sample;

	if (!p->on)
		return json_null();
	return json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:i, s:I}", "of", sampling_of_text(p->of),
			 "replacement", p->without_replacement ? "without" : "with", "k", (int)p->k,
			 "packets", (json_int_t)p->packets, "window_ns", (json_int_t)p->window_ns,
			 "tick_ns", p->packets ? (json_int_t)0 : (json_int_t)1 << s->tick_shift,
			 "snap_bytes", (int)p->snap_bytes, "memory_bytes",
			 (json_int_t)sampling_bytes(s, cpus));
}

json_t *output_check_json(const struct policy *policy, const struct pacer_policy *bin,
			  const struct plan *plan)
{
	json_t *limits = json_array();

	for (size_t i = 0; i < plan->n_limits; i++) {
		const struct plan_limit *at = &plan->limit[i];
		const struct policy_limit *l = &policy->rule[at->rule].limit[at->limit];
		const struct pacer_tier *t = &bin->rule[at->rule].tier[at->tier];
		json_t *one = limit_json(l, t, plan);
		char key[TEXT];

		json_object_set_new(one, "rule", json_string(policy->rule[at->rule].name));
		json_object_set_new(one, "limit_index", json_integer(at->limit));
		json_object_set_new(one, "key",
				    json_string(policy_key_text(&l->key, key, sizeof(key))));
		json_object_set_new(one, "state_bytes",
				    json_integer(limit_bytes(l, t, plan->cpus)));
		json_array_append_new(limits, one);
	}
	return json_pack("{s:I, s:o, s:I, s:I, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "memory_bytes",
			 (json_int_t)memory_of(bin, plan), "memory_parts_bytes",
			 parts_json(bin, plan), "state_bytes", (json_int_t)(plan->lines * 64),
			 "state_used_bytes", (json_int_t)(plan->lines_used * 64), "clock",
			 bin->flags & PACER_CLOCK_EXACT ? "exact" : "coarse", "resolution_ns",
			 (json_int_t)plan->resolution_ns, "rules", (json_int_t)policy->n_rules,
			 "limits", limits, "pools", pools_json(policy, bin, plan), "bans",
			 bans_json(policy, &bin->bans), "sample",
			 sample_json(policy, &bin->sampling, plan->cpus));
}

static void print_window(const struct policy_limit *l, const struct pacer_tier *t,
			 uint64_t resolution_ns)
{
	char window[TEXT], ring[TEXT];

	printf("    never more than %" PRIu64 " %s in any %s\n", l->limit,
	       l->cost == PACER_COST_BYTES ? "bytes" : "packets",
	       units_duration_text(l->window_ns, window, sizeof(window)));
	printf("    denied wrongly only what would not fit into %s; a steady flow gets at least "
	       "%.1f%%\n",
	       units_duration_text(t->window.ring_ns, ring, sizeof(ring)),
	       100.0 * l->window_ns / t->window.ring_ns);
	if (t->window.cost_shift)
		printf("    counted in units of %u bytes, rounded up for each packet\n",
		       1u << t->window.cost_shift);
	if (!t->sets)
		return;
	printf("    %llu records of %u bytes: exact for that many sources less "
	       "collisions; beyond, the rest share %u\n",
	       2ull * t->sets, 16 * t->units, t->shared);
	units_duration_text(kept_ns(t, resolution_ns), window, sizeof(window));
	units_duration_text(newcomer_ns(t, resolution_ns), ring, sizeof(ring));
	printf("    a key silent for longer than %s is a newcomer again: its record is its own for "
	       "%s after its last admitted packet\n",
	       ring, window);
}

static void print_rate(const struct policy_limit *l, const struct pacer_tier *t)
{
	char text[TEXT];

	printf("    never more than %" PRIu64 " %s%s, and %s, in any time\n", l->burst,
	       l->rate.bytes ? "byte" : "packet", units_plural(l->burst),
	       units_rate_text(&l->rate, text, sizeof(text)));
	if (t->sets)
		printf("    %llu entries of 16 bytes: exact for that many sources less collisions; "
		       "beyond, the rest share %u\n",
		       2ull * t->sets, t->shared);
}

static void print_gap(const struct policy_limit *l, const struct pacer_tier *t)
{
	char gap[TEXT], effective[TEXT];

	printf("    at least %s between two packets of a key (kept as %s",
	       units_duration_text(l->gap_ns, gap, sizeof(gap)),
	       units_duration_text(t->gap_ns, effective, sizeof(effective)));
	if (compile_gap_more_ns(t))
		printf(", and for up to %s more",
		       units_duration_text(compile_gap_more_ns(t), gap, sizeof(gap)));
	printf(")\n");
	printf("    ceiling of all keys together: %.0f packets a second\n", ceiling_of(t));
	if (t->kind == PACER_TIER_SKETCH)
		printf("    %" PRIu64 " cells, %u a key; chance of a false delay with 1000 keys a "
		       "gap %.2g, with 65536 %.2g, with 1048576 %.2g\n",
		       records_of(t), t->rows, output_false_delay(t, 1000),
		       output_false_delay(t, 65536), output_false_delay(t, 1048576));
	else
		printf("    in the window's record: no memory of its own\n");
}

/* Behind what is never passed: when there is a refusal all the same. throttle.h has the bound. */
static void print_throttle(const char *refused, const struct policy_throttle *throttle,
			   const struct pacer_throttle_profile *p, uint32_t cpus)
{
	bool within = throttle->max_cooldown_ns != UINT64_MAX, below = p->threshold < p->limit;
	uint64_t resolution_ns = p->cooldown_ns - throttle->cooldown_ns;
	uint32_t h = throttle_elsewhere(p, cpus);
	char text[TEXT];

	printf("    %s wrongly only while", refused);
	if (below)
		printf(" fewer than %u uses are free", p->threshold + h);
	if (within)
		printf("%s %u or more lie within %s", below ? " and" : "", p->limit - h,
		       units_duration_text(throttle->max_cooldown_ns + 2 * resolution_ns, text,
					   sizeof(text)));
	printf("\n    a CPU leases %u at a time", p->lease);
	if (p->lease > 1)
		printf(" for up to %s: what that adds, %u uses that other CPUs hold, is in these "
		       "numbers, and a use may come back so much later",
		       units_duration_text(p->lease_ns, text, sizeof(text)), h);
	printf("\n    up to %u buckets of the %u that there are\n", p->buckets,
	       PACER_THROTTLE_BUCKETS);
}

static void print_limit(const struct policy_limit *l, const struct pacer_tier *t,
			const struct plan *plan)
{
	uint64_t bytes = limit_bytes(l, t, plan->cpus);
	char text[TEXT];

	switch (l->kind) {
	case LIMIT_GAP:
		print_gap(l, t);
		break;
	case LIMIT_WINDOW:
		print_window(l, t, plan->resolution_ns);
		break;
	case LIMIT_RATE:
		print_rate(l, t);
		break;
	case LIMIT_THROTTLE:
		printf("    never more than %u packets in any %s\n", t->throttle.limit,
		       units_duration_text(l->throttle.cooldown_ns, text, sizeof(text)));
		print_throttle("denied", &l->throttle, &t->throttle, plan->cpus);
	}
	if (bytes)
		printf("    %s of state\n", units_size_round(bytes, text, sizeof(text)));
}

static void print_pool(const struct policy_pool *pool, const struct pacer_pool *bin, uint32_t cpus)
{
	char text[TEXT];

	printf("\n  pool %s, in turns to", pool->name);
	for (size_t k = 0; k < pool->n; k++)
		printf("%s %s", k ? "," : "",
		       printable(policy_target_text(&pool->target[k], text, sizeof(text))).text);
	printf("\n    never more than %" PRIu64 " packets to one of them in any %s\n", pool->each,
	       units_duration_text(pool->throttle.cooldown_ns, text, sizeof(text)));
	print_throttle("each is passed over", &pool->throttle, &bin->throttle, cpus);
	printf("    %s of state\n",
	       units_size_round(pool->n * throttle_bytes(cpus), text, sizeof(text)));
}

static void print_bans(const struct policy *policy, const struct pacer_bans *bans)
{
	char text[TEXT];

	if (!bans->sets)
		return;
	printf("\n  bans:");
	for (size_t r = 0, n = 0; r < policy->n_rules; r++)
		if (policy->rule[r].ban_ns)
			printf("%s %s for %s", n++ ? "," : "", policy->rule[r].name,
			       units_duration_text(policy->rule[r].ban_ns, text, sizeof(text)));
	printf("\n    up to %" PRIu64 " keys at once; a change of that number begins anew\n",
	       bans_of(bans));
	printf("    a key that was never banned is looked up in the table with a chance of %.2g at "
	       "most, when the table is full\n",
	       output_ban_maybe(bans, bans_of(bans)));
	printf("    %s of state\n",
	       units_size_round(compile_ban_lines(bans) * 64, text, sizeof(text)));
}

static void print_sample(const struct policy *policy, const struct pacer_sampling *s,
			 unsigned int cpus)
{
	const struct policy_sample *p = &policy->sample;
	char window[TEXT];

	if (!p->on)
		return;
	if (p->packets)
		printf("\n  sample: %u of the last %u packets (%s) of each CPU, %s replacement\n",
		       p->k, p->packets, sampling_of_text(p->of),
		       p->without_replacement ? "without" : "with");
	else
		printf("\n  sample: %u of the packets (%s) of the last %s, with replacement; in "
		       "ticks of %.3g s, up to two more\n",
		       p->k, sampling_of_text(p->of),
		       units_duration_text(p->window_ns, window, sizeof(window)),
		       (double)(1ull << s->tick_shift) / 1e9);
	printf("    uniform; merging the CPUs adds no error\n    %s beside the state, %u CPU%s\n",
	       units_size_round(sampling_bytes(s, cpus), window, sizeof(window)), cpus,
	       units_plural(cpus));
}

static void print_memory(const struct pacer_policy *bin, const struct plan *plan)
{
	uint64_t bytes[PARTS], all = memory_of(bin, plan);
	char text[TEXT];
	int width = snprintf(NULL, 0, "%" PRIu64, all);

	find_parts(bin, plan, bytes);
	printf("memory    %" PRIu64 " bytes (%s) in all, taken at load:\n", all,
	       units_size_round(all, text, sizeof(text)));
	for (int i = 0; i < PARTS; i++)
		if (bytes[i])
			printf("          %*" PRIu64 " %s\n", width, bytes[i], part_of[i].text);
}

int output_check(const struct policy *policy, const struct pacer_policy *bin,
		 const struct plan *plan)
{
	char a[TEXT];

	printf("policy    valid: %zu rule%s, %s\n", policy->n_rules, units_plural(policy->n_rules),
	       policy->monitor ? "monitor (nothing is dropped)" : "enforced");
	print_memory(bin, plan);
	if (bin->flags & PACER_CLOCK_EXACT)
		printf("clock     exact\n");
	else
		printf("clock     coarse: %s, which windows, gaps and cooldowns grow by\n",
		       units_duration_text(plan->resolution_ns, a, sizeof(a)));
	for (size_t i = 0; i < plan->n_limits; i++) {
		const struct plan_limit *at = &plan->limit[i];
		const struct policy_limit *l = &policy->rule[at->rule].limit[at->limit];
		const struct pacer_tier *t = &bin->rule[at->rule].tier[at->tier];

		printf("\n  %s, limit %zu, by %s\n", policy->rule[at->rule].name, at->limit,
		       policy_key_text(&l->key, a, sizeof(a)));
		print_limit(l, t, plan);
	}
	for (size_t i = 0; i < policy->n_pools; i++)
		print_pool(&policy->pool[i], &bin->pool[i], plan->cpus);
	print_bans(policy, &bin->bans);
	print_sample(policy, &bin->sampling, plan->cpus);
	return 0;
}

int output_memory_error(const struct policy *policy, struct policy_error *error)
{
	uint64_t free_bytes = 0;
	char line[128], want[TEXT], have[TEXT];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &free_bytes) == 1)
			break;
	if (f)
		fclose(f);
	free_bytes *= 1024;
	if (!free_bytes || policy->memory_bytes <= free_bytes)
		return 0;
	return policy_fail(
	    error, 0,
	    "memory: %s of state is more than the %s that this machine has free: lower it",
	    units_size_round(policy->memory_bytes, want, sizeof(want)),
	    units_size_round(free_bytes, have, sizeof(have)));
}
