/* SPDX-License-Identifier: GPL-2.0-only */
#include "output.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "window.h"

#define TEXT 64

static const char *const reason_names[] = {
#define REASON_NAME(name, verdict, id, text) [PACER_##name] = id,
    PACER_REASONS(REASON_NAME)
#undef REASON_NAME
};

static const char *const reason_texts[] = {
#define REASON_TEXT(name, verdict, id, text) [PACER_##name] = text,
    PACER_REASONS(REASON_TEXT)
#undef REASON_TEXT
};

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* --- status --------------------------------------------------------------------------------- */

static struct policy *policy_in_force(const struct attached *a)
{
	const char *text = a->copy[change_in_force(a)].text;
	struct policy_error error;

	return policy_parse(text, strnlen(text, PACER_DOC_MAX), &error);
}

/* Memory that the pacer holds, in bytes. */
static uint64_t memory_bytes(uint64_t lines)
{
	long cpus = libbpf_num_possible_cpus();

	return lines * sizeof(struct pacer_line) + 2 * sizeof(struct pacer_copy) +
	       sizeof(struct pacer_control) +
	       (cpus > 0 ? cpus : 1) * PACER_COUNTERS_MAX * sizeof(struct pacer_counters);
}

static size_t retired(const struct pacer_policy *p)
{
	uint64_t now_ns = loader_now();
	size_t n = 0;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_tiers; k++)
			n += p->rule[r].tier[k].until_ns > now_ns;
	return n;
}

json_t *output_status_json(const struct attached *a)
{
	const struct pacer_policy *p = &a->copy[change_in_force(a)].policy;
	struct policy *policy = policy_in_force(a);
	json_t *rules = json_array();
	json_t *out;

	for (size_t i = 0; policy && i < policy->n_rules; i++)
		json_array_append_new(rules, json_string(policy->rule[i].name));
	policy_free(policy);
	out = json_pack(
	    "{s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:I, s:o, s:I, s:I, s:i, s:i, s:I}", "interface",
	    a->ifname, "attach", a->dispatcher ? "dispatcher" : "direct", "mode", a->mode,
	    "program_id", (int)a->prog_id, "abi", (int)a->control->abi_version, "policy",
	    p->flags & PACER_MONITOR ? "monitor" : "enforce", "clock",
	    p->flags & PACER_CLOCK_EXACT ? "exact" : "coarse", "serial", (json_int_t)p->serial,
	    "rules", rules, "memory_bytes", (json_int_t)memory_bytes(a->n_lines), "state_bytes",
	    (json_int_t)(a->n_lines * sizeof(struct pacer_line)), "allowed",
	    (int)(a->control->allowed4 + a->control->allowed6), "retired_limits", (int)retired(p),
	    "confirm_within_ns", (json_int_t)change_pending(a));
	return out;
}

int output_status(const struct attached *a)
{
	const struct pacer_policy *p = &a->copy[change_in_force(a)].policy;
	struct policy *policy = policy_in_force(a);
	uint64_t pending_ns = change_pending(a);
	char memory[TEXT];

	printf("%s: paced %s, %s mode, program %u\n", a->ifname,
	       a->dispatcher ? "under the libxdp dispatcher" : "directly", a->mode, a->prog_id);
	printf("  policy    serial %llu, %s, %s clock, %zu rule%s:", p->serial,
	       p->flags & PACER_MONITOR ? "monitor (nothing is dropped)" : "enforced",
	       p->flags & PACER_CLOCK_EXACT ? "exact" : "coarse", policy ? policy->n_rules : 0,
	       plural(policy ? policy->n_rules : 0));
	for (size_t i = 0; policy && i < policy->n_rules; i++)
		printf(" %s", policy->rule[i].name);
	printf("\n  memory    %s\n",
	       units_size_round(memory_bytes(a->n_lines), memory, sizeof(memory)));
	printf("  allowed   %u prefix%s\n", a->control->allowed4 + a->control->allowed6,
	       a->control->allowed4 + a->control->allowed6 == 1 ? "" : "es");
	if (retired(p))
		printf("  retired   %zu limit%s of the policy before, until the windows have "
		       "passed\n",
		       retired(p), plural(retired(p)));
	if (pending_ns)
		printf("  PENDING   rolls back in %.1f s unless confirmed\n", pending_ns / 1e9);
	policy_free(policy);
	return 0;
}

/* --- stats ---------------------------------------------------------------------------------- */

static void read_counters(const struct attached *a, uint32_t slot, struct pacer_counters *sum)
{
	int cpus = libbpf_num_possible_cpus();
	struct pacer_counters *each = calloc(cpus > 0 ? cpus : 1, sizeof(*each));

	memset(sum, 0, sizeof(*sum));
	if (each && cpus > 0 && !bpf_map_lookup_elem(a->counts_fd, &slot, each))
		for (int cpu = 0; cpu < cpus; cpu++)
			for (int r = 0; r < PACER_REASON_COUNT; r++) {
				sum->by[r].packets += each[cpu].by[r].packets;
				sum->by[r].bytes += each[cpu].by[r].bytes;
			}
	free(each);
}

static struct pacer_count of_verdict(const struct pacer_counters *c, enum pacer_verdict verdict)
{
	struct pacer_count sum = {0, 0};

	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (pacer_verdict_of(r) == verdict) {
			sum.packets += c->by[r].packets;
			sum.bytes += c->by[r].bytes;
		}
	return sum;
}

static json_t *denied_json(const struct pacer_counters *c)
{
	json_t *out = json_object();

	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (pacer_verdict_of(r) == PACER_VERDICT_DENY)
			json_object_set_new(out, reason_names[r], json_integer(c->by[r].packets));
	return out;
}

static json_t *rule_json(const char *name, const struct pacer_counters *c)
{
	struct pacer_count admit = of_verdict(c, PACER_VERDICT_ADMIT);
	struct pacer_count deny = of_verdict(c, PACER_VERDICT_DENY);

	return json_pack("{s:s, s:I, s:I, s:o, s:{s:I, s:I}}", "name", name, "matched",
			 (json_int_t)(admit.packets + deny.packets), "admitted",
			 (json_int_t)admit.packets, "denied", denied_json(c), "bytes", "admitted",
			 (json_int_t)admit.bytes, "denied", (json_int_t)deny.bytes);
}

struct totals {
	uint64_t packets, admitted, denied, unparsed, passed;
};

static void add_totals(struct totals *t, const struct pacer_counters *c)
{
	t->admitted += of_verdict(c, PACER_VERDICT_ADMIT).packets;
	t->denied += of_verdict(c, PACER_VERDICT_DENY).packets;
	t->unparsed += of_verdict(c, PACER_VERDICT_UNPARSED).packets;
	t->passed += of_verdict(c, PACER_VERDICT_PASS).packets;
	t->packets = t->admitted + t->denied + t->unparsed + t->passed;
}

json_t *output_stats_json(const struct attached *a)
{
	const struct pacer_policy *p = &a->copy[change_in_force(a)].policy;
	struct policy *policy = policy_in_force(a);
	struct pacer_counters none, c;
	struct totals t = {0};
	json_t *rules = json_array(), *reasons = json_object();

	read_counters(a, 0, &none);
	add_totals(&t, &none);
	for (size_t i = 0; policy && i < policy->n_rules; i++) {
		read_counters(a, p->rule[i].counter, &c);
		add_totals(&t, &c);
		json_array_append_new(rules, rule_json(policy->rule[i].name, &c));
	}
	policy_free(policy);
	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (pacer_verdict_of(r) == PACER_VERDICT_PASS ||
		    pacer_verdict_of(r) == PACER_VERDICT_UNPARSED)
			json_object_set_new(reasons, reason_names[r],
					    json_integer(none.by[r].packets));
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "interface", a->ifname,
			 "mode", p->flags & PACER_MONITOR ? "monitor" : "enforce", "packets",
			 (json_int_t)t.packets, "admitted", (json_int_t)t.admitted, "denied",
			 (json_int_t)t.denied, "unparsed", (json_int_t)t.unparsed, "passed",
			 (json_int_t)t.passed, "no_limit", reasons, "rules", rules);
}

static void print_reasons(const struct pacer_counters *c, enum pacer_verdict verdict)
{
	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (pacer_verdict_of(r) == verdict && c->by[r].packets)
			printf("  %-24s %14llu  %-10s %s\n", "", c->by[r].packets, reason_names[r],
			       reason_texts[r]);
}

int output_stats(const struct attached *a)
{
	const struct pacer_policy *p = &a->copy[change_in_force(a)].policy;
	struct policy *policy = policy_in_force(a);
	struct pacer_counters c;

	printf("%s: %s\n", a->ifname,
	       p->flags & PACER_MONITOR ? "monitor: what is denied passes all the same"
					: "enforced");
	printf("  %-24s %14s  %14s  %14s\n", "RULE", "MATCHED", "ADMITTED", "DENIED");
	for (size_t i = 0; policy && i < policy->n_rules; i++) {
		struct pacer_count admit, deny;

		read_counters(a, p->rule[i].counter, &c);
		admit = of_verdict(&c, PACER_VERDICT_ADMIT);
		deny = of_verdict(&c, PACER_VERDICT_DENY);
		printf("  %-24s %14llu  %14llu  %14llu\n", policy->rule[i].name,
		       admit.packets + deny.packets, admit.packets, deny.packets);
		print_reasons(&c, PACER_VERDICT_DENY);
	}
	policy_free(policy);
	read_counters(a, 0, &c);
	printf("  %-24s %14llu\n", "(no limit)", of_verdict(&c, PACER_VERDICT_PASS).packets);
	print_reasons(&c, PACER_VERDICT_PASS);
	printf("  %-24s %14llu\n", "(unparsed)", of_verdict(&c, PACER_VERDICT_UNPARSED).packets);
	print_reasons(&c, PACER_VERDICT_UNPARSED);
	return 0;
}

/* --- check ---------------------------------------------------------------------------------- */

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

static json_t *window_json(const struct policy_limit *l, const struct pacer_tier *t)
{
	return json_pack(
	    "{s:s, s:I, s:s, s:I, s:i, s:I, s:I, s:f, s:i, s:I}", "kind", "window", "limit",
	    (json_int_t)l->limit, "unit", l->cost == PACER_COST_BYTES ? "bytes" : "packets",
	    "window_ns", (json_int_t)l->window_ns, "slots", (int)l->slots, "slot_ns",
	    (json_int_t)t->window.slot_ns, "false_denial_beyond_ns", (json_int_t)t->window.ring_ns,
	    "sustains", (double)l->window_ns / t->window.ring_ns, "unit_bytes",
	    l->cost == PACER_COST_BYTES ? 1 << t->window.cost_shift : 0, "records",
	    (json_int_t)records_of(t));
}

static json_t *gap_json(const struct policy_limit *l, const struct pacer_tier *t)
{
	json_t *chances = json_array();
	static const double keys[] = {1000, 65536, 1048576};
	json_t *out;

	for (size_t i = 0; t->kind == PACER_TIER_SKETCH && i < 3; i++)
		json_array_append_new(chances, json_pack("{s:I, s:f}", "keys", (json_int_t)keys[i],
							 "chance", output_false_delay(t, keys[i])));
	out = json_pack("{s:s, s:I, s:I, s:s, s:I, s:f, s:o}", "kind", "gap", "gap_ns",
			(json_int_t)l->gap_ns, "effective_gap_ns", (json_int_t)t->gap_ns, "state",
			t->kind == PACER_TIER_SKETCH ? "sketch" : "record", "cells",
			(json_int_t)records_of(t), "ceiling_pps", ceiling_of(t), "false_delay",
			chances);
	return out;
}

json_t *output_check_json(const struct policy *policy, const struct pacer_policy *bin,
			  const struct plan *plan)
{
	json_t *limits = json_array();

	for (size_t i = 0; i < plan->n_limits; i++) {
		const struct plan_limit *at = &plan->limit[i];
		const struct policy_limit *l = &policy->rule[at->rule].limit[at->limit];
		const struct pacer_tier *t = &bin->rule[at->rule].tier[at->tier];
		json_t *one = l->kind == LIMIT_GAP ? gap_json(l, t) : window_json(l, t);
		char key[TEXT];

		json_object_set_new(one, "rule", json_string(policy->rule[at->rule].name));
		json_object_set_new(one, "limit_index", json_integer(at->limit));
		json_object_set_new(one, "key",
				    json_string(policy_key_text(&l->key, key, sizeof(key))));
		json_object_set_new(one, "state_bytes", json_integer(compile_tier_lines(t) * 64));
		json_array_append_new(limits, one);
	}
	return json_pack("{s:I, s:I, s:I, s:s, s:I, s:I, s:o}", "memory_bytes",
			 (json_int_t)memory_bytes(plan->lines), "state_bytes",
			 (json_int_t)(plan->lines * 64), "state_used_bytes",
			 (json_int_t)(plan->lines_used * 64), "clock",
			 bin->flags & PACER_CLOCK_EXACT ? "exact" : "coarse", "resolution_ns",
			 (json_int_t)plan->resolution_ns, "rules", (json_int_t)policy->n_rules,
			 "limits", limits);
}

static void print_window(const struct policy_limit *l, const struct pacer_tier *t)
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
	if (t->sets)
		printf("    %llu records of %u bytes: exact for that many sources less "
		       "collisions; beyond, the rest share %u\n",
		       2ull * t->sets, 64 * (1 + t->window.extra_lines), t->shared);
}

static void print_gap(const struct policy_limit *l, const struct pacer_tier *t)
{
	char gap[TEXT], effective[TEXT];

	printf("    at least %s between two packets of a key (kept as %s)\n",
	       units_duration_text(l->gap_ns, gap, sizeof(gap)),
	       units_duration_text(t->gap_ns, effective, sizeof(effective)));
	printf("    ceiling of all keys together: %.0f packets a second\n", ceiling_of(t));
	if (t->kind == PACER_TIER_SKETCH)
		printf("    %" PRIu64 " cells, %u a key; chance of a false delay with 1000 keys a "
		       "gap %.2g, with 65536 %.2g, with 1048576 %.2g\n",
		       records_of(t), t->rows, output_false_delay(t, 1000),
		       output_false_delay(t, 65536), output_false_delay(t, 1048576));
	else
		printf("    in the window's record: no memory of its own\n");
}

int output_check(const struct policy *policy, const struct pacer_policy *bin,
		 const struct plan *plan)
{
	char a[TEXT], b[TEXT];

	printf("policy    valid: %zu rule%s, %s\n", policy->n_rules, plural(policy->n_rules),
	       policy->monitor ? "monitor (nothing is dropped)" : "enforced");
	printf(
	    "memory    %s in all, taken at load: %s of state, of which this policy uses %.0f%%\n",
	    units_size_round(memory_bytes(plan->lines), a, sizeof(a)),
	    units_size_round(plan->lines * 64, b, sizeof(b)),
	    plan->lines ? 100.0 * plan->lines_used / plan->lines : 0);
	if (bin->flags & PACER_CLOCK_EXACT)
		printf("clock     exact\n");
	else
		printf("clock     coarse: %s, which windows and gaps grow by\n",
		       units_duration_text(plan->resolution_ns, a, sizeof(a)));
	for (size_t i = 0; i < plan->n_limits; i++) {
		const struct plan_limit *at = &plan->limit[i];
		const struct policy_limit *l = &policy->rule[at->rule].limit[at->limit];
		const struct pacer_tier *t = &bin->rule[at->rule].tier[at->tier];

		printf("\n  %s, limit %zu, by %s\n", policy->rule[at->rule].name, at->limit,
		       policy_key_text(&l->key, a, sizeof(a)));
		if (l->kind == LIMIT_GAP)
			print_gap(l, t);
		else
			print_window(l, t);
		printf("    %s of state\n",
		       units_size_round(compile_tier_lines(t) * 64, b, sizeof(b)));
	}
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
	error->line = 0;
	snprintf(error->text, sizeof(error->text),
		 "memory: %s of state is more than the %s that this machine has free: lower it",
		 units_size_round(policy->memory_bytes, want, sizeof(want)),
		 units_size_round(free_bytes, have, sizeof(have)));
	return -1;
}
