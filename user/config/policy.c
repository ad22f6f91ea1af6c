/* SPDX-License-Identifier: GPL-2.0-only */
/* What a policy says, asked of its structs. */
#include <stdio.h>
#include <string.h>

#include "config/policy.h"
#include "parse.h"

bool policy_bans(const struct policy *policy)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		if (policy->rule[r].ban_ns)
			return true;
	return policy->bans_said;
}

bool policy_rule_opens(const struct policy_rule *rule)
{
	for (size_t i = 0; i < rule->n_limits; i++)
		if (rule->limit[i].of_new)
			return true;
	return false;
}

/* What matches on flags is TCP. */
static bool is_of_tcp(const struct policy_match *m)
{
	for (size_t i = 0; i < m->n_proto; i++)
		if (m->proto[i].low != PACER_IPPROTO_TCP || m->proto[i].high != PACER_IPPROTO_TCP)
			return m->n_flags;
	return m->n_proto || m->n_flags;
}

bool policy_rule_keeps_flows(const struct policy_rule *rule)
{
	return policy_rule_opens(rule) && !is_of_tcp(&rule->match);
}

bool policy_flows(const struct policy *policy)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		if (policy_rule_keeps_flows(&policy->rule[r]))
			return true;
	return false;
}

static const struct policy_key_part_name parts[] = {
    {KEY_PART_SRC, "src"},     {KEY_PART_DST, "dst"},	  {KEY_PART_PROTO, "proto"},
    {KEY_PART_SPORT, "sport"}, {KEY_PART_DPORT, "dport"}, {KEY_PART_VLAN, "vlan"},
    {KEY_PART_TTL, "ttl"},
};

/* Before the others, as they stand in the place of src and dst. */
static size_t values_text(const struct policy_key *key, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = 0;
	for (int i = 0; i < 2; i++)
		if (key->parts & (i ? KEY_PART_DST_VALUE : KEY_PART_SRC_VALUE))
			len += (size_t)snprintf(buf + len, size - len, "%svalue(%s, %s)",
						len ? "+" : "", key->set[i][0] ? key->set[i] : "?",
						i ? "dst" : "src");
	return len;
}

bool policy_set_keyed(const struct policy *policy, const char *set)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t i = 0; i < policy->rule[r].n_limits; i++) {
			const struct policy_key *key = &policy->rule[r].limit[i].key;

			if (!strcmp(key->set[0], set) || !strcmp(key->set[1], set))
				return true;
		}
	return false;
}

bool policy_set_named(const struct policy *policy, const struct policy_set *set)
{
	return (set->fleet && set->value) || set->counted || policy_set_keyed(policy, set->name);
}

const struct policy_key_part_name *policy_key_part_named(const char *name)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(parts[i].name, name))
			return &parts[i];
	return NULL;
}

const char *policy_key_text(const struct policy_key *key, char *buf, size_t size)
{
	static const struct policy_key flow = KEY_FLOW;
	bool whole = policy_key_same(key, &flow);
	char text[POLICY_KEY_TEXT] = "";
	size_t len = values_text(key, text, sizeof(text));

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !whole; i++) {
		enum policy_key_part part = parts[i].part;

		if (!(key->parts & part))
			continue;
		len +=
		    snprintf(text + len, sizeof(text) - len, "%s%s", len ? "+" : "", parts[i].name);
		if (part == KEY_PART_SRC || part == KEY_PART_DST)
			len += snprintf(text + len, sizeof(text) - len, "/%u,%u",
					part == KEY_PART_SRC ? key->src4 : key->dst4,
					part == KEY_PART_SRC ? key->src6 : key->dst6);
	}
	snprintf(buf, size, "%s", whole ? "flow" : len ? text : "all");
	return buf;
}
