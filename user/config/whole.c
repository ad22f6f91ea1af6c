/* SPDX-License-Identifier: GPL-2.0-only */
/* The whole of a policy, of which the other parts are fields. */
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/limits.h"
#include "config/parts.h"
#include "config/units.h"
#include "config/writers.h"

static int read_mode(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct choice modes[] = {{"enforce", 0}, {"monitor", 1}, {NULL, 0}};
	struct policy *policy = into;
	int monitor;

	if (doc_choose(s, at, node, modes, &monitor))
		return -1;
	policy->monitor = monitor;
	return 0;
}

static int read_unparsed(struct source *s, const struct place *at, const yaml_node_t *node,
			 void *into)
{
	static const struct choice verdicts[] = {{"pass", 0}, {"drop", 1}, {NULL, 0}};
	struct policy *policy = into;
	int drop;

	if (doc_choose(s, at, node, verdicts, &drop))
		return -1;
	policy->unparsed_drop = drop;
	return 0;
}

static int read_clock(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct choice clocks[] = {
	    {"auto", CLOCK_AUTO}, {"exact", CLOCK_EXACT}, {"coarse", CLOCK_COARSE}, {NULL, 0}};
	struct policy *policy = into;
	int value;

	if (doc_choose(s, at, node, clocks, &value))
		return -1;
	policy->clock = (enum policy_clock)value;
	return 0;
}

static int read_else(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;

	policy->else_line = doc_line(node);
	return parts_read_says(s, at, node, &policy->else_says, &policy->else_over,
			       policy->else_pool_name);
}

static int read_memory(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	struct policy *policy = into;
	const char *text;
	char most[32];

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (units_size(text, &policy->memory_bytes))
		return doc_fail(s, doc_line(node), at, "\"%s\" is not a size: write 64Mi or 1Gi",
				doc_shown(text).text);
	if (policy->memory_bytes > POLICY_MEMORY_MAX)
		return doc_fail(s, doc_line(node), at, "%s is too much: at most %s",
				doc_shown(text).text,
				units_size_text(POLICY_MEMORY_MAX, most, sizeof(most)));
	return doc_more_than_zero(s, at, node, policy->memory_bytes);
}

static int read_withstand(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	struct policy *policy = into;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (units_rate(text, &policy->withstand))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is no number of packets a second: write 10Mpps",
				doc_shown(text).text);
	if (policy->withstand > POLICY_WITHSTAND_MAX)
		return doc_fail(s, doc_line(node), at, "%s is too much: at most %uGpps",
				doc_shown(text).text,
				(unsigned int)(POLICY_WITHSTAND_MAX / 1000000000));
	return doc_more_than_zero(s, at, node, policy->withstand);
}

static int read_count(struct source *s, const struct place *at, const yaml_node_t *node,
		      unsigned int most, uint64_t *n)
{
	if (doc_count(s, at, node, n))
		return -1;
	if (*n > most)
		return doc_fail(s, doc_line(node), at, "%llu is too much: at most %u",
				(unsigned long long)*n, most);
	return 0;
}

static int read_bans(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;

	policy->bans_said = true;
	return read_count(s, at, node, POLICY_BANS_MAX, &policy->bans);
}

static int read_flows(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return read_count(s, at, node, POLICY_FLOWS_MAX, &((struct policy *)into)->flows);
}

static int read_flow_idle(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	return doc_duration(s, at, node, &((struct policy *)into)->flow_idle_ns);
}

/* Prefixes and sets, as they come. */
static int MUST_USE split_allow(struct source *s, const struct place *at,
				const struct address *item, size_t n, struct policy *policy)
{
	for (size_t i = 0; i < n; i++) {
		const struct policy_set_use *use = &item[i].use;

		if (!use->name[0])
			policy->allow[policy->n_allow++] = item[i].prefix;
		else if (use->not )
			return doc_fail(s, use->line, at,
					"\"!@%s\" will not do: the list has who is let through: "
					"write @%s, or leave it out",
					use->name, use->name);
		else if (policy->n_allow_sets == PACER_SETS_MAX)
			return doc_fail(s, use->line, at, "it names %u sets at the most",
					PACER_SETS_MAX);
		else
			policy->allow_set[policy->n_allow_sets++] = *use;
	}
	return 0;
}

static int read_allow(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	size_t n = 0;
	struct list list = {address_read, NULL, sizeof(struct address), POLICY_ALLOW_MAX, &n};
	int result = doc_list_new(s, at, node, &list);

	if (!result) {
		policy->allow = calloc(n ? n : 1, sizeof(*policy->allow));
		result =
		    policy->allow ? split_allow(s, at, list.items, n, policy) : doc_no_memory(s);
	}
	free(list.items);
	return result;
}

static bool write_allow(const void *from, size_t i, char *buf, size_t size)
{
	const struct policy *p = from;

	if (i < p->n_allow)
		units_prefix_text(&p->allow[i], buf, size);
	else if (i - p->n_allow < p->n_allow_sets)
		address_use_text(&p->allow_set[i - p->n_allow], buf, size);
	else
		return false;
	return true;
}

WRITER(mode, policy, true, "%s", p->monitor ? "monitor" : "enforce")
WRITER(unparsed, policy, true, "%s", p->unparsed_drop ? "drop" : "pass")
WRITER(else, policy, true, "%s%s",
       p->else_says == PACER_SAYS_DENY ? parts_action_name(p->else_over) : "pass",
       p->else_over == PACER_OVER_POOL ? p->else_pool_name : "")
WRITER(clock, policy, true, "%s",
       p->clock == CLOCK_EXACT	  ? "exact"
       : p->clock == CLOCK_COARSE ? "coarse"
				  : "auto")
WRITER(memory, policy, !p->withstand, "%s",
       units_size_text(p->memory_bytes, (char[FIELD_TEXT]){0}, FIELD_TEXT))
WRITER(withstand, policy, p->withstand, "%s",
       units_rate_text(&(struct units_rate){p->withstand, 1000000000, 0}, (char[FIELD_TEXT]){0},
		       FIELD_TEXT))
WRITE_NUMBER(bans, policy, policy_bans(p), p->bans)
WRITE_NUMBER(flows, policy, policy_flows(p), p->flows)
WRITE_TIME(flow_idle, policy, policy_flows(p), p->flow_idle_ns)

enum whole_field {
	FIELD_MODE,
	FIELD_ALLOW,
	FIELD_UNPARSED,
	FIELD_ELSE,
	FIELD_CLOCK,
	FIELD_MEMORY,
	FIELD_WITHSTAND,
	FIELD_RULES,
	FIELD_POOLS,
	FIELD_SETS,
	FIELD_BANS,
	FIELD_FLOWS,
	FIELD_FLOW_IDLE,
	FIELD_SAMPLE,
	FIELD_OF_FLEET,
	POLICY_FIELDS
};

static const struct field whole_field[POLICY_FIELDS] = {
    [FIELD_MODE] = {"mode", read_mode, "enforce|monitor",
		    "monitor counts what it would deny, and denies nothing; enforce unless said", 0,
		    0, write_mode},
    [FIELD_ALLOW] = {"allow", read_allow, "PREFIX|@NAME...", "sources that no rule limits", 0, 0,
		     write_allow},
    [FIELD_UNPARSED] = {"unparsed", read_unparsed, "drop|pass",
			"what is done with truncated frames and bad headers; drop unless said", 0,
			0, write_unparsed},
    [FIELD_ELSE] =
	{"else", read_else, "drop|pass|pool NAME",
	 "what is done with IPv4 and IPv6 packets that no rule matches; pass unless said", 0, 0,
	 write_else},
    [FIELD_CLOCK] = {"clock", read_clock, "auto|exact|coarse",
		     "auto takes the exact one where the policy needs it; auto unless said", 0, 0,
		     write_clock},
    [FIELD_MEMORY] = {"memory", read_memory, "SIZE", "of state, taken at load; 64Mi unless said", 0,
		      0, write_memory},
    [FIELD_WITHSTAND] = {"withstand", read_withstand, "Npps",
			 "packets a second of a flood of spoofed sources, which the memory is made "
			 "for; in place of memory",
			 0, 0, write_withstand},
    [FIELD_RULES] = {"rules", parts_read_rules, "[RULE...]",
		     "of which the first that matches judges the packet, up to 256", 0,
		     FIELD_NEEDED, NULL},
    [FIELD_POOLS] = {"pools", parts_read_pools, "[POOL...]",
		     "targets to which packets over a limit go", 0, 0, NULL},
    [FIELD_SETS] = {"sets", parts_read_sets, "[SET...]", "addresses that matches name as @NAME", 0,
		    0, NULL},
    [FIELD_BANS] = {"bans", read_bans, "N",
		    "keys that can be banned at once; 16384 where a rule bans", 0, 0, write_bans},
    [FIELD_FLOWS] = {"flows", read_flows, "N",
		     "flows that limits of new ones remember; 65536 unless said", 0, 0,
		     write_flows},
    [FIELD_FLOW_IDLE] = {"flow_idle", read_flow_idle, "TIME",
			 "of silence after which a flow is a new one; 2m unless said", 0, 0,
			 write_flow_idle},
    [FIELD_SAMPLE] = {"sample", parts_read_sample, "SAMPLE",
		      "a sample of the packets that is kept for `sample` and `estimate`", 0, 0,
		      NULL},
    [FIELD_OF_FLEET] = {"fleet", parts_read_fleet, "FLEET",
			"the store by which hosts divide the limits that say fleet: yes", 0, 0,
			NULL},
};

const struct fields *parts_fields(enum policy_part part)
{
	static const struct fields whole = {"a policy", whole_field, POLICY_FIELDS};
	static const struct fields *const parts[POLICY_PARTS] = {
	    [POLICY_WHOLE] = &whole,	     [POLICY_RULE] = &parts_rule,
	    [POLICY_MATCH] = &parts_match,   [POLICY_LIMIT] = &limits_fields,
	    [POLICY_POOL] = &parts_pool,     [POLICY_SET] = &parts_set,
	    [POLICY_SAMPLE] = &parts_sample, [POLICY_FLEET] = &parts_fleet,
	};

	return parts[part];
}

static int MUST_USE read_root(struct source *s, struct policy *policy)
{
	const yaml_node_t *root = yaml_document_get_root_node(&s->doc);
	const yaml_node_t *seen[POLICY_FIELDS] = {0};

	policy->memory_bytes = POLICY_MEMORY_DEFAULT;
	policy->bans = POLICY_BANS_DEFAULT;
	policy->flows = POLICY_FLOWS_DEFAULT;
	policy->flow_idle_ns = POLICY_FLOW_IDLE_NS;
	if (doc_fields(s, NULL, root, parts_fields(POLICY_WHOLE), policy, seen))
		return -1;
	if (!seen[FIELD_RULES])
		return doc_fail(s, doc_line(root), NULL,
				"the rules are missing: write rules: and a list, or rules: []");
	if (seen[FIELD_WITHSTAND] && seen[FIELD_MEMORY])
		return doc_fail(s, doc_line(seen[FIELD_MEMORY]), NULL,
				"memory and withstand both say how much state there is: write one");
	return parts_find_pools(s, policy) || parts_find_sets(s, policy)
		   ? -1
		   : parts_find_fleet(s, policy);
}

struct policy *policy_parse(const char *text, size_t len, struct policy_error *error)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	struct source s;
	int result;

	if (doc_open(&s, text, len, error)) {
		free(policy);
		return NULL;
	}
	if (policy) {
		policy->unparsed_drop = true; /* no host takes such frames */
		result = read_root(&s, policy);
	} else {
		result = doc_no_memory(&s);
	}
	doc_close(&s);
	if (!result)
		return policy;
	policy_free(policy);
	return NULL;
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	free(policy->rule);
	free(policy->allow);
	free(policy->set);
	free(policy);
}
