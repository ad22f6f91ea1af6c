/* SPDX-License-Identifier: GPL-2.0-only */
/* The pools, with their targets. */
#include <stdio.h>
#include <string.h>

#include "config/limits.h"
#include "config/parts.h"
#include "config/units.h"
#include "config/writers.h"

enum pool_field {
	FIELD_POOL_NAME,
	FIELD_TARGETS,
	FIELD_EACH,
	FIELD_POOL_COOLDOWN,
	FIELD_POOL_MAX_COOLDOWN,
	FIELD_POOL_THRESHOLD,
	POOL_FIELDS
};

static int read_pool_name(struct source *s, const struct place *at, const yaml_node_t *node,
			  void *into)
{
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	return doc_name(s, at, doc_line(node), text, ((struct policy_pool *)into)->name);
}

/* The kernel takes any other byte in an interface's name. */
static bool names_interface(const char *text)
{
	return !text[strcspn(text, "/: \t\n\v\f\r")] && strcmp(text, ".") && strcmp(text, "..");
}

static int one_target(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_target *target = into;
	unsigned int most = POLICY_TARGET_MAX;
	struct range number;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (!strncmp(text, "cpu:", 4) || !strncmp(text, "xsk:", 4)) {
		target->kind = *text == 'c' ? PACER_TARGET_CPU : PACER_TARGET_SOCKET;
		if (target->kind == PACER_TARGET_SOCKET)
			most = PACER_SOCKETS_MAX - 1;
		if (units_range(text + 4, most, &number) || number.low != number.high)
			return doc_fail(s, doc_line(node), at,
					"\"%s\" will not do: write %.4s0 to %.4s%u",
					doc_shown(text).text, text, text, most);
		target->number = number.low;
		return 0;
	}
	if (!names_interface(text))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is no target: write an interface, cpu:1 or xsk:0",
				doc_shown(text).text);
	if (strlen(text) >= POLICY_TARGET_NAME)
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is too long for an interface: at most %d",
				doc_shown(text).text, POLICY_TARGET_NAME - 1);
	memcpy(target->name, text, strlen(text) + 1);
	return 0;
}

static int read_targets(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct policy_pool *pool = into;
	struct list list = {one_target, pool->target, sizeof(pool->target[0]), PACER_TARGETS_MAX,
			    &pool->n};

	if (doc_list(s, at, node, &list))
		return -1;
	if (!pool->n)
		return doc_fail(s, doc_line(node), at,
				"the list is empty: a pool has 1 to %u targets", PACER_TARGETS_MAX);
	return 0;
}

#define POOL_FIELD(name, how, field)                                                              \
	static int read_##name(struct source *s, const struct place *at, const yaml_node_t *node, \
			       void *into)                                                        \
	{                                                                                         \
		return how(s, at, node, &((struct policy_pool *)into)->field);                    \
	}

POOL_FIELD(each, limits_uses, each)
POOL_FIELD(pool_threshold, limits_uses, throttle.threshold)
POOL_FIELD(pool_cooldown, doc_duration, throttle.cooldown_ns)
POOL_FIELD(pool_max_cooldown, doc_duration, throttle.max_cooldown_ns)

static bool write_targets(const void *from, size_t i, char *buf, size_t size)
{
	const struct policy_pool *pool = from;

	if (i < pool->n)
		policy_target_text(&pool->target[i], buf, size);
	return i < pool->n;
}

WRITE_NUMBER(each, policy_pool, true, p->each)
WRITE_TIME(pool_cooldown, policy_pool, true, p->throttle.cooldown_ns)
WRITE_TIME(pool_max_cooldown, policy_pool, p->throttle.max_cooldown_ns != UINT64_MAX,
	   p->throttle.max_cooldown_ns)
WRITE_NUMBER(pool_threshold, policy_pool, true, p->throttle.threshold)

static const struct field pool_field[POOL_FIELDS] = {
    [FIELD_POOL_NAME] = {"name", read_pool_name, "NAME", "that rules name behind over: pool", 0,
			 FIELD_NEEDED, NULL},
    [FIELD_TARGETS] = {"targets", read_targets, "TARGET...",
		       "1 to 32 interfaces, or CPUs as cpu:1, or sockets as xsk:0", 0, FIELD_NEEDED,
		       write_targets},
    [FIELD_EACH] = {"each", read_each, "N", "packets that a target gets in any cooldown, at most",
		    0, FIELD_NEEDED, write_each},
    [FIELD_POOL_COOLDOWN] = {"cooldown", read_pool_cooldown, "TIME",
			     "after which a use of a target is free again", 0, FIELD_NEEDED,
			     write_pool_cooldown},
    [FIELD_POOL_MAX_COOLDOWN] = {"max_cooldown", read_pool_max_cooldown, "TIME", "as of a throttle",
				 0, 0, write_pool_max_cooldown},
    [FIELD_POOL_THRESHOLD] = {"threshold", read_pool_threshold, "N",
			      "as of a throttle; of all targets together", 0, 0,
			      write_pool_threshold},
};

const struct fields parts_pool = {"a pool", pool_field, POOL_FIELDS};

const char *policy_target_text(const struct policy_target *target, char *buf, size_t size)
{
	if (target->kind == PACER_TARGET_INTERFACE)
		snprintf(buf, size, "%s", target->name);
	else
		snprintf(buf, size, "%s:%u", target->kind == PACER_TARGET_CPU ? "cpu" : "xsk",
			 target->number);
	return buf;
}

static bool same_target(const struct policy_target *a, const struct policy_target *b)
{
	return a->kind == b->kind && a->number == b->number && !strcmp(a->name, b->name);
}

/* All of one kind, and each in no other place, of this pool or one before it. */
static int MUST_USE check_targets(struct source *s, const struct place *at,
				  const yaml_node_t *targets, const struct policy_pool *pool)
{
	static const char *const kinds[] = {"an interface", "a CPU", "a socket"};
	const struct policy_pool *other;
	struct place list = {at, "targets", 0}, item = {&list, NULL, 0};
	char text[32];
	size_t i, k;

	for (i = 0; i < pool->n; i++) {
		item.index = i;
		policy_target_text(&pool->target[i], text, sizeof(text));
		if (pool->target[i].kind != pool->target[0].kind)
			return doc_fail(s, doc_line(targets), &item,
					"%s is %s, and the first target %s: a pool is of one kind",
					text, kinds[pool->target[i].kind],
					kinds[pool->target[0].kind]);
		for (other = pool - at->index; other <= pool; other++)
			for (k = 0; k < (other == pool ? i : other->n); k++)
				if (same_target(&other->target[k], &pool->target[i]))
					return doc_fail(
					    s, doc_line(targets), &item,
					    "%s is a target of pool %s already: a target "
					    "is in one place of one pool",
					    text, other->name);
	}
	return 0;
}

static int MUST_USE check_pool(struct source *s, const struct place *at, const yaml_node_t **seen,
			       const struct policy_pool *pool)
{
	static const char *const example[POOL_FIELDS] = {
	    [FIELD_POOL_NAME] = "scrub",
	    [FIELD_TARGETS] = "[veth1, veth2]",
	    [FIELD_EACH] = "500",
	    [FIELD_POOL_COOLDOWN] = "10m",
	};
	const struct policy_pool *other = pool - at->index;
	struct place place = {at, "name", 0};
	enum pool_field f;

	for (f = 0; f < POOL_FIELDS; f++)
		if (example[f] && !seen[f])
			return doc_fail(s, pool->line, at,
					"%s is missing: write %s: %s, for example",
					pool_field[f].name, pool_field[f].name, example[f]);
	for (; other < pool; other++)
		if (!strcmp(other->name, pool->name))
			return doc_fail(s, doc_line(seen[FIELD_POOL_NAME]), &place,
					"\"%s\" is the name of the pool in line %d, too",
					pool->name, other->line);
	return 0;
}

static int read_pool(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	const yaml_node_t *seen[POOL_FIELDS] = {0};
	struct policy_pool *pool = into;
	struct place each = {at, "each", 0};

	pool->line = doc_line(node);
	if (doc_fields(s, at, node, &parts_pool, pool, seen) || check_pool(s, at, seen, pool) ||
	    check_targets(s, at, seen[FIELD_TARGETS], pool))
		return -1;
	pool->throttle.uses = pool->n * pool->each;
	if (pool->throttle.uses > POLICY_USES_MAX)
		return doc_fail(
		    s, doc_line(seen[FIELD_EACH]), &each,
		    "%llu of all targets together are more than can be counted: at most "
		    "%llu",
		    (unsigned long long)pool->throttle.uses, POLICY_USES_MAX);
	limits_complete_throttle(&pool->throttle);
	return limits_check_throttle(s, at, &pool->throttle, doc_line(seen[FIELD_POOL_THRESHOLD]),
				     doc_line(seen[FIELD_POOL_MAX_COOLDOWN]));
}

int parts_read_pools(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy *policy = into;
	struct list list = {read_pool, policy->pool, sizeof(policy->pool[0]), PACER_POOLS_MAX,
			    &policy->n_pools};

	if (node->type != YAML_SEQUENCE_NODE)
		return doc_fail(s, doc_line(node), at, "expected a list of pools, or [] for none");
	return doc_list(s, at, node, &list);
}

static size_t pool_named(const struct policy *policy, const char *name)
{
	size_t i = 0;

	while (i < policy->n_pools && strcmp(policy->pool[i].name, name))
		i++;
	return i;
}

/* What is to be done names a pool: which one? */
static int MUST_USE find_pool(struct source *s, const struct policy *policy, int line,
			      const struct place *at, const char *name, size_t *pool)
{
	char names[200] = "";
	size_t i;

	for (i = 0; i < policy->n_pools; i++)
		doc_append(names, sizeof(names), "%s%s", i ? ", " : "", policy->pool[i].name);
	*pool = pool_named(policy, name);
	if (*pool < policy->n_pools)
		return 0;
	return doc_fail(s, line, at, "there is no pool %s: %s%s", name,
			i ? "there are " : "add it to pools:", names);
}

/* The pools that rules and else name; they may stand behind the rules. */
int parts_find_pools(struct source *s, struct policy *policy)
{
	struct place rules = {NULL, "rules", 0}, at = {&rules, NULL, 0}, over = {&at, NULL, 0};
	struct place other = {NULL, "else", 0};

	for (size_t r = 0; r < policy->n_rules; r++) {
		struct policy_rule *rule = &policy->rule[r];

		at.index = r;
		over.name = rule->says ? "verdict" : "over";
		if (rule->over == PACER_OVER_POOL &&
		    find_pool(s, policy, rule->over_line, &over, rule->pool_name, &rule->pool))
			return -1;
	}
	if (policy->else_over != PACER_OVER_POOL)
		return 0;
	return find_pool(s, policy, policy->else_line, &other, policy->else_pool_name,
			 &policy->else_pool);
}
