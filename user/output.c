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

#include "bans.h"
#include "cmd.h"
#include "text.h"
#include "window.h"

#define TEXT	   64
#define BANS_SHOWN 32 /* lines of status */

static const char *const reason_texts[] = {
#define REASON_TEXT(name, verdict, id, text) [PACER_##name] = text,
    PACER_REASONS(REASON_TEXT)
#undef REASON_TEXT
};

static const char *const event_names[] = {
#define EVENT_NAME(name, id, text) [PACER_##name] = id,
    PACER_EVENTS(EVENT_NAME)
#undef EVENT_NAME
};

static const char *const event_texts[] = {
#define EVENT_TEXT(name, id, text) [PACER_##name] = text,
    PACER_EVENTS(EVENT_TEXT)
#undef EVENT_TEXT
};

/* --- status --------------------------------------------------------------------------------- */

static struct policy *policy_in_force(const struct attached *a)
{
	const char *text = a->copy[change_in_force(a)].text;
	struct policy_error error = {0};
	struct policy *policy = policy_parse(text, strnlen(text, PACER_DOC_MAX), &error);

	if (error.line == POLICY_NO_MEMORY)
		result_lacks();
	return policy;
}

uint64_t output_memory_bytes(uint64_t lines)
{
	long cpus = libbpf_num_possible_cpus();
	uint64_t of_cpu = PACER_COUNTERS_MAX * sizeof(struct pacer_counters) +
			  PACER_THROTTLES * sizeof(struct pacer_throttle_lease);

	return lines * sizeof(struct pacer_line) + 2 * sizeof(struct pacer_copy) +
	       sizeof(struct pacer_control) +
	       PACER_THROTTLES * sizeof(struct pacer_throttle_state) +
	       (cpus > 0 ? cpus : 1) * of_cpu;
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

static uint64_t memory_of(const struct attached *a)
{
	return output_memory_bytes(a->n_lines) + a->mapped[LOADER_SAMPLERS] +
	       a->mapped[LOADER_HEADS];
}

static void add_ban(const struct ban *ban, void *arg)
{
	json_array_append_new(arg, json_pack("{s:s, s:s, s:I}", "key", ban->key, "rule", ban->rule,
					     "left_ns", (json_int_t)ban->left_ns));
}

static json_t *bans_json(const struct attached *a, const struct policy *policy)
{
	json_t *keys = json_array();
	size_t n = bans_each(a, policy, add_ban, keys);

	return json_pack("{s:I, s:I, s:o}", "banned", (json_int_t)n, "room",
			 (json_int_t)bans_room(a), "keys", keys);
}

static void print_ban(const struct ban *ban, void *arg)
{
	size_t *n = arg;

	if ((*n)++ < BANS_SHOWN)
		printf("            %-40s %-16s %.1f s left\n", ban->key, ban->rule,
		       ban->left_ns / 1e9);
}

static void print_bans(const struct attached *a, const struct policy *policy)
{
	size_t n;

	if (!bans_room(a))
		return;
	n = bans_each(a, policy, NULL, NULL);
	printf("  banned    %zu key%s of %zu at most\n", n, units_plural(n), bans_room(a));
	n = 0;
	bans_each(a, policy, print_ban, &n);
	if (n > BANS_SHOWN)
		printf("            and %zu more: see --json\n", n - BANS_SHOWN);
}

json_t *output_status_json(const struct attached *a)
{
	const struct pacer_policy *p = &a->copy[change_in_force(a)].policy;
	struct policy *policy = policy_in_force(a);
	json_t *rules = json_array();
	json_t *bans, *out;

	for (size_t i = 0; policy && i < policy->n_rules; i++)
		json_array_append_new(rules, json_string(policy->rule[i].name));
	bans = bans_json(a, policy);
	policy_free(policy);
	out = json_pack(
	    "{s:o, s:s, s:s, s:i, s:i, s:s, s:s, s:I, s:o, s:I, s:I, s:i, s:i, s:o, s:I, s:s}",
	    "interface", json_text(a->ifname), "attach", a->dispatcher ? "dispatcher" : "direct",
	    "attach_mode", a->mode, "program_id", (int)a->prog_id, "abi",
	    (int)a->control->abi_version, "mode", p->flags & PACER_MONITOR ? "monitor" : "enforce",
	    "clock", p->flags & PACER_CLOCK_EXACT ? "exact" : "coarse", "serial",
	    (json_int_t)p->serial, "rules", rules, "memory_bytes", (json_int_t)memory_of(a),
	    "state_bytes", (json_int_t)(a->n_lines * sizeof(struct pacer_line)), "allowed",
	    (int)change_allowed(a), "retired_limits", (int)retired(p), "bans", bans,
	    "confirm_within_ns", (json_int_t)change_pending(a), "secret_of",
	    change_weak_secret(a) ? "program" : "tools");
	return out;
}

int output_status(const struct attached *a)
{
	const struct pacer_policy *p = &a->copy[change_in_force(a)].policy;
	struct policy *policy = policy_in_force(a);
	uint64_t pending_ns = change_pending(a);
	char memory[TEXT];

	printf("%s: paced %s, %s mode, program %u, ABI %u\n", printable(a->ifname).text,
	       a->dispatcher ? "under the libxdp dispatcher" : "directly", a->mode, a->prog_id,
	       a->control->abi_version);
	printf("  policy    serial %llu, %s, %s clock, %zu rule%s:", p->serial,
	       p->flags & PACER_MONITOR ? "monitor (nothing is dropped)" : "enforced",
	       p->flags & PACER_CLOCK_EXACT ? "exact" : "coarse", policy ? policy->n_rules : 0,
	       units_plural(policy ? policy->n_rules : 0));
	for (size_t i = 0; policy && i < policy->n_rules; i++)
		printf(" %s", policy->rule[i].name);
	printf("\n  memory    %s\n", units_size_round(memory_of(a), memory, sizeof(memory)));
	printf("  allowed   %u prefix%s\n", change_allowed(a), change_allowed(a) == 1 ? "" : "es");
	if (retired(p))
		printf("  retired   %zu limit%s of the policy before, until the windows have "
		       "passed\n",
		       retired(p), units_plural(retired(p)));
	print_bans(a, policy);
	if (change_weak_secret(a))
		printf(
		    "  secret    drawn without a tool: `xdp-pacer rotate %s` draws a better one\n",
		    a->ifname);
	if (pending_ns)
		printf("  PENDING   rolls back in %.1f s unless confirmed\n", pending_ns / 1e9);
	policy_free(policy);
	return 0;
}

/* --- stats ---------------------------------------------------------------------------------- */

static void add_counters(struct pacer_counters *sum, const struct pacer_counters *c)
{
	for (int r = 0; r < PACER_REASON_COUNT; r++) {
		sum->by[r].packets += c->by[r].packets;
		sum->by[r].bytes += c->by[r].bytes;
	}
	for (int e = 0; e < PACER_EVENT_COUNT; e++)
		sum->events[e] += c->events[e];
}

static void read_counters(const struct attached *a, uint32_t slot, struct pacer_counters *sum)
{
	int cpus = libbpf_num_possible_cpus();
	struct pacer_counters *each = calloc(cpus > 0 ? cpus : 1, sizeof(*each));

	memset(sum, 0, sizeof(*sum));
	if (!each || cpus <= 0)
		result_lacks();
	if (each && cpus > 0 && !bpf_map_lookup_elem(a->counts_fd, &slot, each))
		for (int cpu = 0; cpu < cpus; cpu++)
			add_counters(sum, &each[cpu]);
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
			json_object_set_new(out, pacer_reason_name(r),
					    json_integer(c->by[r].packets));
	return out;
}

static json_t *events_json(const struct pacer_counters *c)
{
	json_t *out = json_object();

	for (int e = 0; e < PACER_EVENT_COUNT; e++)
		json_object_set_new(out, event_names[e], json_integer(c->events[e]));
	return out;
}

static json_t *rule_json(const char *name, const struct pacer_counters *c)
{
	struct pacer_count admit = of_verdict(c, PACER_VERDICT_ADMIT);
	struct pacer_count deny = of_verdict(c, PACER_VERDICT_DENY);

	return json_pack("{s:s, s:I, s:I, s:o, s:o, s:{s:I, s:I}}", "name", name, "matched",
			 (json_int_t)(admit.packets + deny.packets), "admitted",
			 (json_int_t)admit.packets, "denied", denied_json(c), "events",
			 events_json(c), "bytes", "admitted", (json_int_t)admit.bytes, "denied",
			 (json_int_t)deny.bytes);
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
			json_object_set_new(reasons, pacer_reason_name(r),
					    json_integer(none.by[r].packets));
	return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "interface",
			 json_text(a->ifname), "mode",
			 p->flags & PACER_MONITOR ? "monitor" : "enforce", "packets",
			 (json_int_t)t.packets, "admitted", (json_int_t)t.admitted, "denied",
			 (json_int_t)t.denied, "unparsed", (json_int_t)t.unparsed, "passed",
			 (json_int_t)t.passed, "no_limit", reasons, "rules", rules);
}

static void print_reasons(const struct pacer_counters *c, enum pacer_verdict verdict)
{
	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (pacer_verdict_of(r) == verdict && c->by[r].packets)
			printf("  %-24s %14llu  %-11s %s\n", "", c->by[r].packets,
			       pacer_reason_name(r), reason_texts[r]);
}

static void print_events(const struct pacer_counters *c)
{
	for (int e = 0; e < PACER_EVENT_COUNT; e++)
		if (c->events[e])
			printf("  %-24s %14llu  %-11s %s\n", "", c->events[e], event_names[e],
			       event_texts[e]);
}

int output_stats(const struct attached *a)
{
	const struct pacer_policy *p = &a->copy[change_in_force(a)].policy;
	struct policy *policy = policy_in_force(a);
	struct pacer_counters c;

	printf("%s: %s\n", printable(a->ifname).text,
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
		print_events(&c);
	}
	policy_free(policy);
	read_counters(a, 0, &c);
	printf("  %-24s %14llu\n", "(no limit)", of_verdict(&c, PACER_VERDICT_PASS).packets);
	print_reasons(&c, PACER_VERDICT_PASS);
	printf("  %-24s %14llu\n", "(unparsed)", of_verdict(&c, PACER_VERDICT_UNPARSED).packets);
	print_reasons(&c, PACER_VERDICT_UNPARSED);
	return 0;
}
