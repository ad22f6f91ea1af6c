/* SPDX-License-Identifier: GPL-2.0-only */
/* The rules: names, verdicts, what is done with what is over a limit, bans. */
#include <stdio.h>
#include <string.h>

#include "config/headers.h"
#include "config/limits.h"
#include "config/parts.h"
#include "config/units.h"
#include "config/writers.h"

static int read_name(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	return doc_name(s, at, doc_line(node), text, ((struct policy_rule *)into)->name);
}

static int MUST_USE read_action(struct source *s, const struct place *at, const yaml_node_t *node,
				enum pacer_over *over, char pool_name[POLICY_NAME_MAX])
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (!strcmp(text, "pool"))
		return doc_fail(s, doc_line(node), at, "which pool is missing: write pool NAME");
	if (!strncmp(text, "pool ", 5)) {
		*over = PACER_OVER_POOL;
		return doc_name(s, at, doc_line(node), text + 5 + strspn(text + 5, " "), pool_name);
	}
	if (strcmp(text, "drop") && strcmp(text, "pass"))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is not known: write drop, pass or pool NAME",
				doc_shown(text).text);
	*over = *text == 'd' ? PACER_OVER_DROP : PACER_OVER_PASS;
	return 0;
}

static int read_over(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_rule *rule = into;

	rule->over_line = doc_line(node);
	return read_action(s, at, node, &rule->over, rule->pool_name);
}

/* What passes is not denied first. */
int parts_read_says(struct source *s, const struct place *at, const yaml_node_t *node,
		    enum pacer_says *says, enum pacer_over *over, char pool_name[POLICY_NAME_MAX])
{
	if (read_action(s, at, node, over, pool_name))
		return -1;
	*says = *over == PACER_OVER_PASS ? PACER_SAYS_PASS : PACER_SAYS_DENY;
	if (*over == PACER_OVER_PASS)
		*over = PACER_OVER_DROP;
	return 0;
}

static int read_verdict(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct policy_rule *rule = into;

	rule->over_line = doc_line(node);
	rule->limit[0].key = KEY_SRC(32, 128);
	return parts_read_says(s, at, node, &rule->says, &rule->over, rule->pool_name);
}

static int read_ban_for(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	return doc_duration(s, at, node, &((struct policy_rule *)into)->ban_ns);
}

const char *parts_action_name(enum pacer_over over)
{
	return over == PACER_OVER_POOL ? "pool " : over == PACER_OVER_PASS ? "pass" : "drop";
}

WRITER(over, policy_rule, !p->says, "%s%s", parts_action_name(p->over),
       p->over == PACER_OVER_POOL ? p->pool_name : "")
WRITER(verdict, policy_rule, p->says, "%s%s",
       p->says == PACER_SAYS_PASS ? "pass" : parts_action_name(p->over),
       p->over == PACER_OVER_POOL ? p->pool_name : "")

/* As it is written: a time, or how it grows, and whose it is. */
static bool write_ban(const void *from, size_t i, char *buf, size_t size)
{
	const struct policy_rule *p = from;
	char first[32], up_to[32], forget[32], grow[128] = "";

	if (i || !p->ban_ns)
		return false;
	units_duration_text(p->ban_ns, first, sizeof(first));
	units_duration_text(p->ban_max_ns, up_to, sizeof(up_to));
	units_duration_text(p->ban_forget_ns, forget, sizeof(forget));
	if (p->ban_grow)
		snprintf(grow, sizeof(grow), ", grow: x%u, up_to: %s, forget: %s", p->ban_grow,
			 up_to, forget);
	if (p->ban_grow || p->ban_fleet)
		snprintf(buf, size, "{for: %s%s%s}", first, grow,
			 p->ban_fleet ? ", fleet: yes" : "");
	else
		snprintf(buf, size, "%s", first);
	return true;
}

static int read_grow(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_rule *rule = into;
	struct range range;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (*text != 'x' || units_range(text + 1, PACER_BAN_GROW_MAX, &range) ||
	    range.low != range.high || range.low < 2)
		return doc_fail(s, doc_line(node), at, "\"%s\" will not do: write x2 to x%u",
				doc_shown(text).text, PACER_BAN_GROW_MAX);
	rule->ban_grow = range.low;
	return 0;
}

static int read_up_to(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return doc_duration(s, at, node, &((struct policy_rule *)into)->ban_max_ns);
}

static int read_forget(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	return doc_duration(s, at, node, &((struct policy_rule *)into)->ban_forget_ns);
}

static int read_ban_fleet(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	return doc_yes(s, at, node, &((struct policy_rule *)into)->ban_fleet);
}

enum ban_field { BAN_FOR, BAN_GROW, BAN_UP_TO, BAN_FORGET, BAN_FLEET, BAN_FIELDS };

static const struct field ban_field[BAN_FIELDS] = {
    [BAN_FOR] = {.name = "for", .read = read_ban_for},
    [BAN_GROW] = {.name = "grow", .read = read_grow},
    [BAN_UP_TO] = {.name = "up_to", .read = read_up_to},
    [BAN_FORGET] = {.name = "forget", .read = read_forget},
    [BAN_FLEET] = {.name = "fleet", .read = read_ban_fleet},
};

/* A time, or {for: 30s, grow: x4, up_to: 1d, forget: 7d, fleet: yes}. */
static int read_ban(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct fields fields = {"a ban", ban_field, BAN_FIELDS};
	const yaml_node_t *seen[BAN_FIELDS] = {0};
	const struct policy_rule *rule = into;
	char up_to[32], first[32];

	if (node->type != YAML_MAPPING_NODE)
		return read_ban_for(s, at, node, into);
	if (doc_fields(s, at, node, &fields, into, seen))
		return -1;
	if (!seen[BAN_FOR])
		return doc_fail(s, doc_line(node), at, "the time is missing: write for: 30s");
	if (!seen[BAN_GROW] != !seen[BAN_UP_TO] || !seen[BAN_GROW] != !seen[BAN_FORGET])
		return doc_fail(s, doc_line(node), at,
				"grow, up_to and forget go together: write {for: 30s, grow: x4, "
				"up_to: 1d, forget: 7d}");
	if (!seen[BAN_GROW] || rule->ban_max_ns > rule->ban_ns)
		return 0;
	units_duration_text(rule->ban_max_ns, up_to, sizeof(up_to));
	units_duration_text(rule->ban_ns, first, sizeof(first));
	return doc_fail(s, doc_line(seen[BAN_UP_TO]), at,
			"up_to %s is not more than for %s: no ban would grow", up_to, first);
}

enum rule_field {
	FIELD_NAME,
	FIELD_MATCH,
	FIELD_LIMITS,
	FIELD_VERDICT,
	FIELD_OVER,
	FIELD_BAN,
	RULE_FIELDS
};

static const struct field rule_field[RULE_FIELDS] = {
    [FIELD_NAME] = {"name", read_name, "NAME",
		    "for people, counters and `set`: 1 to 31 letters, digits, _ and -", 0,
		    FIELD_NEEDED, NULL},
    [FIELD_MATCH] = {"match", parts_read_match, "MATCH",
		     "what of a packet has to be so; every packet unless said", 0, 0, NULL},
    [FIELD_LIMITS] = {"limits", limits_read, "[LIMIT...]",
		      "1 to 8, all of which a packet has to be within; or a verdict", 0, 0, NULL},
    [FIELD_VERDICT] = {"verdict", read_verdict, "drop|pass|pool NAME",
		       "what is done with every packet of the rule, without limits", 0, 0,
		       write_verdict},
    [FIELD_OVER] = {"over", read_over, "drop|pass|pool NAME",
		    "what is done with a packet over a limit; drop unless said", 0, 0, write_over},
    [FIELD_BAN] = {"ban", read_ban, "TIME|BAN",
		   "a key that a limit denies is denied everything for so long", 0, 0, write_ban},
};

const struct fields parts_rule = {"a rule", rule_field, RULE_FIELDS};

/* The family that has one key: 4, 6, or 0. */
static int one_key_of(const struct policy_key *key)
{
	if (key->parts & ~(KEY_PART_SRC | KEY_PART_DST))
		return 0; /* also of values: there are some of either */
	if (!key->src4 && !key->dst4)
		return 4;
	return !key->src6 && !key->dst6 ? 6 : 0;
}

/* A ban is of a key: one that is the same for all would ban everybody. */
static int MUST_USE check_ban(struct source *s, const struct place *at, const yaml_node_t *ban,
			      const struct policy_rule *rule)
{
	struct place place = {at, "ban", 0};
	size_t i, keyed = 0;

	for (i = 0; i < rule->n_limits && ban; i++) {
		const struct policy_key *key = &rule->limit[i].key;

		if (!key->parts)
			continue;
		keyed++;
		if (one_key_of(key))
			return doc_fail(
			    s, doc_line(ban), &place,
			    "limits[%u] has one key for all of IPv%d, whom it would ban "
			    "together: give that a length above 0",
			    rule->limit[i].item, one_key_of(key));
	}
	if (!ban || keyed)
		return 0;
	return doc_fail(
	    s, doc_line(ban), &place,
	    "every limit of the rule has the key all, whose denials ban nobody: add a limit "
	    "by src, say");
}

/* What is not IP has no addresses to be told apart by. */
static int MUST_USE check_keys(struct source *s, const struct place *at,
			       const struct policy_rule *rule)
{
	struct place list = {at, "limits", 0}, item = {&list, NULL, 0};

	for (size_t i = 0; i < rule->n_limits && headers_of_frames(&rule->match); i++) {
		item.index = rule->limit[i].item;
		if (rule->limit[i].key.parts & ~KEY_PART_VLAN)
			return doc_fail(
			    s, rule->limit[i].line, &item,
			    "ether_type names frames that are not IP, which have no "
			    "addresses: write key: all, or a verdict in place of limits");
	}
	return 0;
}

static int read_rule(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const enum rule_field of_limits[] = {FIELD_LIMITS, FIELD_OVER, FIELD_BAN};
	const yaml_node_t *seen[RULE_FIELDS] = {0};
	struct policy_rule *rule = into, *other = rule - at->index;
	struct place place = {at, "name", 0};

	rule->line = doc_line(node);
	if (doc_fields(s, at, node, &parts_rule, rule, seen))
		return -1;
	if (!seen[FIELD_NAME])
		return doc_fail(s, rule->line, at,
				"the name is missing: write name: dns, for example");
	if (!seen[FIELD_LIMITS] && !seen[FIELD_VERDICT])
		return doc_fail(s, rule->line, at,
				"the limits are missing: write limits: and a list, or verdict: "
				"drop or pass");
	for (size_t f = 0; seen[FIELD_VERDICT] && f < ARRAY(of_limits); f++)
		if (seen[of_limits[f]])
			return doc_fail(s, doc_line(seen[of_limits[f]]), at,
					"%s and verdict are both written: a rule with a verdict "
					"has no limits, nor what follows from them",
					rule_field[of_limits[f]].name);
	for (; other < rule; other++)
		if (!strcmp(other->name, rule->name))
			return doc_fail(s, doc_line(seen[FIELD_NAME]), &place,
					"\"%s\" is the name of the rule in line %d, too",
					rule->name, other->line);
	return check_keys(s, at, rule) ? -1 : check_ban(s, at, seen[FIELD_BAN], rule);
}

int parts_read_rules(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	struct list list = {read_rule, NULL, sizeof(policy->rule[0]), PACER_RULES_MAX,
			    &policy->n_rules};
	int result;

	if (node->type != YAML_SEQUENCE_NODE)
		return doc_fail(s, doc_line(node), at, "expected a list of rules, or [] for none");
	result = doc_list_new(s, at, node, &list);
	policy->rule = list.items;
	return result;
}
