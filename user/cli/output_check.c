/* SPDX-License-Identifier: GPL-2.0-only */
/* What a policy would take and promise, before anything is loaded. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "inspect/lockout.h"
#include "plan/compile.h"
#include "plan/figures.h"
#include "plan/flood.h"
#include "plan/sampling.h"
#include "config/text.h"
#include "fleet/record.h"
#include "plan/shares.h"
#include "sets/set_maps.h"
#include "sets/texts.h"
#include "plan/throttles.h"

#define TEXT	    64
#define RESERVE_DEN 16 /* as fleet_policy.c has it */

static uint64_t memory_of(const struct pacer_policy *bin, const struct plan *plan,
			  uint64_t set_bytes)
{
	return output_memory_bytes(plan->lines) + sampling_bytes(&bin->sampling, plan->cpus) +
	       set_bytes;
}

/* What the memory is used for. The parts add up to all of it. */
enum part {
	PART_LIMITS,
	PART_BANS,
	PART_FLOWS,
	PART_FREE,
	PART_THROTTLES,
	PART_SAMPLES,
	PART_SETS,
	PART_REST,
	PARTS
};

static const struct {
	const char *name, *text;
} part_of[PARTS] = {
    [PART_LIMITS] = {"limits", "state of the limits, without throttles"},
    [PART_BANS] = {"bans", "the table of bans"},
    [PART_FLOWS] = {"flows", "the table of flows"},
    [PART_FREE] = {"free", "free, for later changes of policy"},
    [PART_THROTTLES] = {"throttles", "states and leases of throttles and of targets of pools, "
				     "however many there are"},
    [PART_SAMPLES] = {"samples", "samples, of each CPU"},
    [PART_SETS] = {"sets", "sets of prefixes; twice that while one is replaced"},
    [PART_REST] = {"rest", "the policy, twice, counters of each CPU, and notes for events"},
};

static void find_parts(const struct pacer_policy *bin, const struct plan *plan, uint64_t set_bytes,
		       uint64_t bytes[PARTS])
{
	uint64_t bans = compile_ban_lines(&bin->bans), flows = compile_flow_lines(&bin->flows);
	uint64_t line = sizeof(struct pacer_line);

	bytes[PART_LIMITS] = (plan->lines_used - bans - flows) * line;
	bytes[PART_FLOWS] = flows * line;
	bytes[PART_BANS] = bans * line;
	bytes[PART_FREE] = (plan->lines - plan->lines_used) * line;
	bytes[PART_THROTTLES] = PACER_THROTTLES * figures_throttle_bytes(plan->cpus);
	bytes[PART_SAMPLES] = sampling_bytes(&bin->sampling, plan->cpus);
	bytes[PART_SETS] = set_bytes;
	bytes[PART_REST] = memory_of(bin, plan, 0) - plan->lines * line - bytes[PART_THROTTLES] -
			   bytes[PART_SAMPLES];
}

/* --- what is shown -------------------------------------------------------------------------- */

/* A fact's text is complete: it is no format. */
static void emit_fact(const struct fact *fact)
{
	const char *text = *fact->text ? "%s" : NULL;

	switch (fact->is) {
	case FACT_UINT:
		emit_uint(fact->name, fact->value, text, fact->text);
		break;
	case FACT_REAL:
		emit_real(fact->name, fact->real, text, fact->text);
		break;
	case FACT_STRING:
		emit_string(fact->name, fact->string, text, fact->text);
		break;
	case FACT_NULL:
		emit_null(fact->name, text, fact->text);
		break;
	case FACT_ARRAY:
		emit_array(fact->name);
		break;
	case FACT_OBJECT:
		emit_object(fact->name);
		break;
	case FACT_CLOSE:
		emit_close();
		break;
	}
}

static void emit_facts(const struct facts *facts)
{
	for (size_t i = 0; i < facts->n; i++)
		emit_fact(&facts->at[i]);
	if (facts->full)
		result_lacks();
}

/* Of a limit that a fleet divides: what lets no packet through is nothing to have. */
static void emit_hosts(const struct policy_limit *l, const struct pacer_limiter *t)
{
	uint64_t parts = shares_parts(t);

	if (parts >= FLEET_MEMBERS_MAX)
		emit_uint("fleet_hosts_max", FLEET_MEMBERS_MAX, NULL);
	else if (l->cost == PACER_COST_BYTES)
		emit_uint("fleet_hosts_max", parts,
			  "    divided among %" PRIu64
			  " hosts at most: of one more, none has enough for a packet of %u bytes\n",
			  parts, POLICY_FRAME_MAX);
	else if (l->kind == LIMIT_RATE)
		emit_uint(
		    "fleet_hosts_max", parts,
		    "    divided among %" PRIu64
		    " hosts at most: of one more, none has enough of its burst for a packet\n",
		    parts);
	else
		emit_uint("fleet_hosts_max", parts,
			  "    divided among %" PRIu64 " hosts at most: one more has none of it\n",
			  parts);
}

static void emit_cut_off(const struct pacer_limiter *t, bool local)
{
	if (!local)
		emit_string("cut_off", "deny",
			    "    a host that cannot reach the store denies from 10 s on\n");
	else if (shares_parts(t) < RESERVE_DEN)
		emit_string(
		    "cut_off", "local",
		    "    a host that cannot reach the store keeps a sixteenth of it at most, "
		    "which is less than a packet: it denies\n");
	else
		emit_string(
		    "cut_off", "local",
		    "    a host that cannot reach the store keeps a sixteenth of it, and less "
		    "where there are more than 8\n");
}

/* What samples do not show of a limit's packets, or keys; NULL: they show all of it. */
static const char *not_in_samples(const struct policy_limit *l)
{
	if (l->of_new)
		return "which packets open a flow";
	if (l->key.parts & KEY_VALUES)
		return "values of sets";
	return l->key.parts & KEY_PART_TTL ? "the TTL" : NULL;
}

/* Keys that come to some hosts more than to others: their samples have to show them. */
static void emit_by_demand(const struct policy *policy, const struct policy_limit *l)
{
	const char *hidden = not_in_samples(l);

	if (hidden)
		emit_flag("fleet_keys_by_demand", false,
			  "    each host has an equal part of each key: samples do not show %s\n",
			  hidden);
	else if (policy->sample.on)
		emit_flag(
		    "fleet_keys_by_demand", true,
		    "    up to %u keys of which more comes to some hosts have more there, some "
		    "windows later\n",
		    PACER_LANES);
	else
		emit_flag("fleet_keys_by_demand", false,
			  "    a key of which more comes to one host has no more there, since "
			  "nothing is sampled: write sample\n");
}

static void emit_state(uint64_t bytes)
{
	char text[TEXT];

	emit_uint("state_bytes", bytes, bytes ? "    %s of state\n" : NULL,
		  units_size_round(bytes, text, sizeof(text)));
}

static void emit_limit(const struct policy *policy, const struct pacer_policy *bin,
		       const struct plan *plan, const struct plan_limit *at)
{
	const struct policy_limit *l = &policy->rule[at->rule].limit[at->limit];
	const struct pacer_limiter *t = &bin->rule[at->rule].limiter[at->limiter];
	const char *rule = policy->rule[at->rule].name;
	struct kind_subject of = {l, t, plan};
	uint64_t bytes = figures_limit_bytes(l, t, plan->cpus);
	struct facts facts = {0};
	char text[POLICY_KEY_TEXT];

	emit_object("");
	emit_string("rule", rule, "\n  %s, ", rule);
	emit_uint("limit_index", l->item, "limit %u", l->item);
	policy_rung_text(l, text, sizeof(text));
	if (l->ladder.rungs)
		emit_uint("rung", l->rung + 1u, "%s", text);
	else
		emit_null("rung", NULL);
	policy_key_text(&l->key, text, sizeof(text));
	emit_string("key", text, ", by %s\n", text);
	emit_string("kind", limit_kind_of(l)->name, NULL);
	limit_kind_of(l)->facts(&of, &facts);
	emit_facts(&facts);
	emit_string("of", l->of_new ? "new" : "all",
		    l->of_new ? "    counts the packets that open a flow, and lets the others by\n"
			      : NULL);
	if (bytes && t->key_id)
		emit_uint("withstands_pps", flood_withstood(t),
			  "    withstands a flood of %.3g Mpps of spoofed sources: newcomers get "
			  "99%% and more\n",
			  (double)flood_withstood(t) / 1e6);
	if (l->fleet) {
		uint64_t left_ns = t->share_ns + (t->share_ns >> 9);

		emit_string(
		    "fleet", policy->fleet.name,
		    "    one limit of all hosts of fleet %s: a host of n has the nth part of "
		    "it at least\n",
		    policy->fleet.name);
		emit_hosts(l, t);
		emit_uint("fleet_moves_ns", left_ns,
			  "    what changes hands is nobody's for %s; on each host it counts 0.1%% "
			  "longer, for its clock\n",
			  units_duration_text(left_ns, text, sizeof(text)));
		if (t->key_id)
			emit_by_demand(policy, l);
		emit_cut_off(t, policy->fleet.local);
	} else {
		emit_null("fleet", NULL);
	}
	emit_state(bytes);
	emit_close();
}

static void emit_pool(const struct policy_pool *pool, const struct pacer_pool *bin, uint32_t cpus)
{
	uint64_t bytes = pool->n * figures_throttle_bytes(cpus);
	struct facts facts = {0};
	char text[TEXT];

	emit_object("");
	emit_string("name", pool->name, "\n  pool %s, in turns to", pool->name);
	emit_array("targets");
	for (size_t k = 0; k < pool->n; k++) {
		policy_target_text(&pool->target[k], text, sizeof(text));
		emit_string("", text, "%s %s", k ? "," : "", printable(text).text);
	}
	emit_close();
	emit_text("\n");
	throttle_facts(" to one of them", "each is passed over", &pool->throttle, &bin->throttle,
		       cpus, &facts);
	emit_facts(&facts);
	emit_state(bytes);
	emit_close();
}

/* The n-th of the rules that ban. */
static void emit_ban(const struct policy_rule *rule, size_t n)
{
	char text[TEXT];

	emit_uint(rule->name, rule->ban_ns, "%s %s for %s", n ? "," : "", rule->name,
		  units_duration_text(rule->ban_ns, text, sizeof(text)));
	if (rule->ban_fleet)
		emit_text(" on all hosts of the fleet");
	if (!rule->ban_grow)
		return;
	emit_text(", each time x%u up to %s", rule->ban_grow,
		  units_duration_text(rule->ban_max_ns, text, sizeof(text)));
	emit_text(" (%s without a ban, and it begins anew)",
		  units_duration_text(rule->ban_forget_ns, text, sizeof(text)));
}

static void emit_bans(const struct policy *policy, const struct pacer_bans *bans)
{
	uint64_t bytes = compile_ban_lines(bans) * sizeof(struct pacer_line), entries;
	double maybe;

	if (!bans->sets) {
		emit_null("bans", NULL);
		return;
	}
	entries = figures_bans(bans);
	maybe = figures_ban_maybe(bans, entries);
	emit_object("bans");
	emit_text("\n  bans:");
	emit_object("rules_ns");
	for (size_t r = 0, n = 0; r < policy->n_rules; r++)
		if (policy->rule[r].ban_ns)
			emit_ban(&policy->rule[r], n++);
		else if (!n && r + 1 == policy->n_rules)
			emit_text(" from outside alone (`xdp-pacer ban`)");
	emit_close();
	emit_uint("entries", entries,
		  "\n    up to %" PRIu64
		  " keys at once; a change of this number keeps bans as far as it has room\n",
		  entries);
	emit_uint("filter_cells", 8 * (bans->filter_mask + 1ull), NULL);
	emit_real("maybe_when_full", maybe,
		  "    a key that was never banned is looked up in the table with a chance of %.2g "
		  "at most, when the table is full\n",
		  maybe);
	emit_state(bytes);
	emit_close();
}

/* How many new flows a second push out those that are silent, before they are idle. */
static void emit_flows(const struct policy *policy, const struct pacer_flows *flows)
{
	uint64_t bytes = compile_flow_lines(flows) * sizeof(struct pacer_line);
	uint64_t entries = compile_flow_lines(flows);
	double per_s = (double)entries / ((double)policy->flow_idle_ns / 1e9);
	char text[TEXT];

	if (!flows->sets) {
		emit_null("flows", NULL);
		return;
	}
	emit_object("flows");
	emit_uint("entries", entries, "\n  flows:\n    up to %" PRIu64 " are known, each ",
		  entries);
	emit_uint("idle_ns", policy->flow_idle_ns,
		  "until it is silent for %s: then it is new again\n",
		  units_duration_text(policy->flow_idle_ns, text, sizeof(text)));
	emit_real("sooner_beyond_per_s", per_s,
		  "    beyond %.3g new ones a second the most silent are new again sooner; a new "
		  "one is never taken for a known one\n",
		  per_s);
	emit_state(bytes);
	emit_close();
}

static void emit_sample(const struct policy *policy, const struct pacer_sampling *s,
			unsigned int cpus)
{
	const struct policy_sample *p = &policy->sample;
	const char *replacement = p->without_replacement ? "without" : "with";
	uint64_t tick_ns = p->packets ? 0 : 1ull << s->tick_shift;
	uint64_t bytes = sampling_bytes(s, cpus);
	char text[TEXT];

	if (!p->on) {
		emit_null("sample", NULL);
		return;
	}
	emit_object("sample");
	emit_uint("k", p->k, "\n  sample: %u of the ", p->k);
	emit_uint("packets", p->packets, p->packets ? "last %u " : NULL, p->packets);
	emit_string("of", sampling_of_text(p->of), "packets (%s) of ", sampling_of_text(p->of));
	emit_uint("window_ns", p->window_ns, p->packets ? NULL : "the last %s, ",
		  units_duration_text(p->window_ns, text, sizeof(text)));
	emit_text("%s", p->packets ? "each CPU, " : "");
	emit_string("replacement", replacement, "%s replacement", replacement);
	emit_uint("tick_ns", tick_ns,
		  p->packets ? NULL : "; counted in ticks of %.3g s, up to two ticks more",
		  tick_ns / 1e9);
	emit_text("\n    uniform; merging the CPUs adds no error\n");
	emit_uint("snap_bytes", p->snap_bytes, NULL);
	emit_uint("memory_bytes", bytes, "    %s beside the state, %u CPU%s\n",
		  units_size_round(bytes, text, sizeof(text)), cpus, units_plural(cpus));
	emit_close();
}

static void look_at_values(const struct set_list *list, struct output_values *values)
{
	const char *one, *other;

	if (!list->about)
		return;
	values->n = list->about->names->n;
	if (!set_words_clash(list->about, &one, &other))
		return;
	snprintf(values->one, sizeof(values->one), "%s", one);
	snprintf(values->other, sizeof(values->other), "%s", other);
}

int output_sets(const struct policy *policy, const struct set_texts *texts,
		struct output_sets *sets, struct policy_error *error)
{
	*sets = (struct output_sets){.all_bytes = 0};
	for (size_t i = 0; i < policy->n_sets; i++) {
		const struct set_list *list = &texts->text[i].list;

		sets->prefixes[i] = list->n;
		sets->bytes[i] = set_maps_lines(list) * sizeof(union pacer_set_line);
		sets->all_bytes += sets->bytes[i];
		if (policy_set_keyed(policy, policy->set[i].name))
			look_at_values(list, &sets->values[i]);
		if (!sets->bytes[i])
			return policy_fail(error, POLICY_NO_MEMORY,
					   "what set %s takes cannot be seen: %s",
					   policy->set[i].name, strerror(errno));
	}
	return 0;
}

/* Of a set whose values keys have. */
static void emit_values(const char *name, const struct output_values *values)
{
	emit_uint("values", values->n,
		  values->n
		      ? "    %u values that keys have; what is in no prefix has the value none\n"
		      : NULL,
		  values->n);
	if (values->one[0])
		emit_text(
		    "    %s and %s of set %s count together: their names have the same hash\n",
		    values->one, values->other, name);
}

static void emit_sets(const struct policy *policy, const struct output_sets *sets)
{
	char text[TEXT];

	emit_array("sets");
	for (size_t i = 0; i < policy->n_sets; i++) {
		const struct policy_set *set = &policy->set[i];

		emit_object("");
		emit_string("name", set->name, "\n  set %s", set->name);
		if (set->file[0])
			emit_string("file", set->file, " of %s", printable(set->file).text);
		else
			emit_null("file", NULL);
		emit_uint("prefixes", sets->prefixes[i], ": %" PRIu64 " prefixes\n",
			  sets->prefixes[i]);
		emit_uint("memory_bytes", sets->bytes[i], "    %s beside the state\n",
			  units_size_round(sets->bytes[i], text, sizeof(text)));
		emit_values(set->name, &sets->values[i]);
		emit_close();
	}
	emit_close();
}

static void emit_memory(const struct pacer_policy *bin, const struct plan *plan, uint64_t set_bytes)
{
	static const struct emit_column columns[] = {{"", true}, {"", false}, {0}};
	uint64_t bytes[PARTS], all = memory_of(bin, plan, set_bytes);
	char text[TEXT];

	find_parts(bin, plan, set_bytes, bytes);
	emit_uint("memory_bytes", all, "memory    %" PRIu64 " bytes (%s) in all, taken at load:\n",
		  all, units_size_round(all, text, sizeof(text)));
	emit_object("memory_parts_bytes");
	emit_table(columns, 10);
	for (int i = 0; i < PARTS; i++) {
		if (bytes[i])
			emit_row();
		emit_uint(part_of[i].name, bytes[i], bytes[i] ? "%" PRIu64 : NULL, bytes[i]);
		if (bytes[i])
			emit_text("%s", part_of[i].text);
	}
	emit_table_end();
	emit_close();
	emit_uint("state_bytes", plan->lines * sizeof(struct pacer_line), NULL);
	emit_uint("state_used_bytes", plan->lines_used * sizeof(struct pacer_line), NULL);
}

static void emit_clock(bool exact, uint64_t resolution_ns)
{
	const char *clock = exact ? "exact" : "coarse";
	char text[TEXT];

	emit_string("clock", clock, "clock     %s", clock);
	emit_uint("resolution_ns", resolution_ns,
		  exact ? NULL : ": %s, which is added to windows, gaps and cooldowns",
		  units_duration_text(resolution_ns, text, sizeof(text)));
	emit_text("\n");
}

const char *output_says(enum pacer_says says, enum pacer_over over, const char *pool, char *buf,
			size_t size)
{
	if (says == PACER_SAYS_DENY && over == PACER_OVER_POOL)
		snprintf(buf, size, "pool %s", pool);
	else
		snprintf(buf, size, "%s", says == PACER_SAYS_DENY ? "drop" : "pass");
	return buf;
}

/* Of rules that have one, and of packets of no rule. */
static void emit_verdicts(const struct policy *policy)
{
	const char *text, *pool = policy->else_pool_name;
	char buf[TEXT];

	emit_array("verdicts");
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_rule *rule = &policy->rule[r];

		if (!rule->says)
			continue;
		text = output_says(rule->says, rule->over, rule->pool_name, buf, sizeof(buf));
		emit_object("");
		emit_string("rule", rule->name, "\n  %s, without limits: ", rule->name);
		emit_string("verdict", text, "%s\n", text);
		emit_close();
	}
	emit_close();
	text = output_says(policy->else_says, policy->else_over, pool, buf, sizeof(buf));
	emit_string("else", text,
		    policy->else_says ? "\n  packets of no rule: %s (ARP and what else is not IP "
					"passes)\n"
				      : NULL,
		    text);
}

static void warn_of_file(const char *of, const char *name, const char *file)
{
	char text[2 * POLICY_PATH_MAX];

	if (!*file || *file == '/')
		return;
	snprintf(text, sizeof(text),
		 "%s%s: %s is looked for in the folder in which a command runs, and the service "
		 "runs in /: name the whole path",
		 of, name, file);
	emit_string("", text, "  warning: %s\n", printable(text).text);
}

/* Does the rule say that its packets are no longer? */
static bool is_short(const struct policy_match *m, uint64_t bytes)
{
	for (size_t i = 0; i < m->n_len; i++)
		if (m->len[i].high > bytes)
			return false;
	return m->n_len || m->n_payload_len;
}

/* What the longest packets never fit into. The ones that open a flow are short. */
static void warn_of_bytes(const struct policy *policy, const struct pacer_policy *bin,
			  const struct plan_limit *at)
{
	const struct policy_rule *rule = &policy->rule[at->rule];
	const struct policy_limit *l = &rule->limit[at->limit];
	uint64_t bytes = limit_kind_of(l)->value(&bin->rule[at->rule].limiter[at->limiter]);
	char text[512], rung[POLICY_KEY_TEXT] = "";

	if (l->cost != PACER_COST_BYTES || bytes >= POLICY_FRAME_MAX || l->of_new ||
	    is_short(&rule->match, bytes))
		return;
	policy_rung_text(l, rung, sizeof(rung));
	snprintf(text, sizeof(text),
		 "rule %s, limit %u%s: no packet of more than %" PRIu64
		 " bytes fits, and those of Ethernet have up to %u: make bytes and window larger",
		 rule->name, l->item, rung, bytes, POLICY_FRAME_MAX);
	emit_string("", text, "  warning: %s\n", text);
}

/* etcdctl takes several in one; here it is the name of a host. */
static void warn_of_store(const char *store)
{
	char text[POLICY_PATH_MAX + 128];

	if (!strchr(store, ','))
		return;
	snprintf(text, sizeof(text),
		 "fleet.store: %s is taken for one address: of several write a list, as "
		 "[https://10.0.0.1:2379, https://10.0.0.2:2379]",
		 store);
	emit_string("", text, "  warning: %s\n", printable(text).text);
}

static const char no_table[] = "fleet: bans: yes shares nothing, as there is no table of bans: no "
			       "rule bans: bans: N makes one";

static void emit_warnings(const struct policy *policy, const struct pacer_policy *bin,
			  const struct plan *plan)
{
	const struct policy_fleet *fleet = &policy->fleet;
	const char *text;

	emit_array("warnings");
	for (size_t i = 0; (text = lockout_warning(policy, bin, i)); i++)
		emit_string("", text, "  warning: %s\n", text);
	for (size_t i = 0; i < plan->n_limits; i++)
		warn_of_bytes(policy, bin, &plan->limit[i]);
	for (size_t i = 0; i < policy->n_sets; i++)
		warn_of_file("set ", policy->set[i].name, policy->set[i].file);
	for (size_t i = 0; i < fleet->n_stores; i++)
		warn_of_store(fleet->store[i]);
	warn_of_file("fleet.cert", "", fleet->cert);
	warn_of_file("fleet.key", "", fleet->key);
	warn_of_file("fleet.ca", "", fleet->ca);
	if (fleet->bans && !policy_bans(policy))
		emit_string("", no_table, "  warning: %s\n", no_table);
	emit_close();
}

void output_check(const struct policy *policy, const struct output_sets *sets,
		  const struct pacer_policy *bin, const struct plan *plan)
{
	emit_uint("rules", policy->n_rules, "policy    valid: %zu rule%s, %s\n", policy->n_rules,
		  units_plural(policy->n_rules),
		  policy->monitor ? "monitor (nothing is dropped)" : "enforced");
	emit_memory(bin, plan, sets->all_bytes);
	if (policy->withstand)
		emit_uint("withstand_pps", policy->withstand,
			  "          made for a flood of %.3g Mpps\n",
			  (double)policy->withstand / 1e6);
	emit_clock(bin->flags & PACER_CLOCK_EXACT, plan->resolution_ns);
	emit_array("limits");
	for (size_t i = 0; i < plan->n_limits; i++)
		emit_limit(policy, bin, plan, &plan->limit[i]);
	emit_close();
	emit_verdicts(policy);
	emit_warnings(policy, bin, plan);
	emit_array("pools");
	for (size_t i = 0; i < policy->n_pools; i++)
		emit_pool(&policy->pool[i], &bin->pool[i], plan->cpus);
	emit_close();
	emit_sets(policy, sets);
	emit_bans(policy, &bin->bans);
	emit_flows(policy, &bin->flows);
	emit_sample(policy, &bin->sampling, plan->cpus);
}

int output_memory_error(const struct policy *policy, uint64_t times, uint64_t set_bytes,
			struct policy_error *error)
{
	uint64_t free_bytes = 0, bytes;
	char line[128], want[TEXT], have[TEXT];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &free_bytes) == 1)
			break;
	if (f)
		fclose(f);
	free_bytes *= 1024;
	if (compile_memory(policy, NULL, &bytes, error))
		return -1;
	if (!free_bytes || bytes + set_bytes <= free_bytes / times)
		return 0;
	if (bytes <= free_bytes / times)
		return policy_fail(error, 0,
				   "sets: %s beside the state are more than the %s that this "
				   "machine has free: divide them, or lower memory",
				   units_size_round(set_bytes * times, want, sizeof(want)),
				   units_size_round(free_bytes, have, sizeof(have)));
	return policy_fail(
	    error, 0, "%s: %s of state is more than the %s that this machine has free: lower it",
	    policy->withstand ? "withstand" : "memory",
	    units_size_round(bytes * times, want, sizeof(want)),
	    units_size_round(free_bytes, have, sizeof(have)));
}
