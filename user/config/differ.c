/* SPDX-License-Identifier: GPL-2.0-only */
/* Two policies, field by field: each as a list of what its fields are, and what only one has. */
#include <stdlib.h>
#include <string.h>

#include "config/limits.h"
#include "config/parts.h"

#define PATH_TEXT  128
#define RULES_TEXT (PACER_RULES_MAX * (POLICY_NAME_MAX + 2))

/* A value, where it stands, and its place in the order of the policy. */
struct told {
	char field[PATH_TEXT], value[FIELD_TEXT];
	size_t at;
	bool gone; /* the other policy has the same */
};

struct telling {
	struct told *told;
	size_t n, room;
	bool no_memory;
};

static struct told *tell(struct telling *t)
{
	size_t room = t->room ? 2 * t->room : 256;
	struct told *more;

	if (t->n == t->room) {
		more = realloc(t->told, room * sizeof(*more));
		if (!more) {
			t->no_memory = true;
			return NULL;
		}
		t->told = more;
		t->room = room;
	}
	t->told[t->n] = (struct told){.at = t->n};
	return &t->told[t->n++];
}

static void tell_name(struct telling *t, const char *of, const char *name)
{
	struct told *told = tell(t);

	if (!told)
		return;
	doc_append(told->field, sizeof(told->field), "%s", of);
	doc_append(told->value, sizeof(told->value), "%s", name);
}

static void tell_part(struct telling *t, enum policy_part part, const char *prefix,
		      const void *from)
{
	const struct fields *fields = parts_fields(part);

	for (size_t f = 0; f < fields->n; f++) {
		char value[FIELD_TEXT];

		if (!fields->field[f].write)
			continue;
		for (size_t i = 0; fields->field[f].write(from, i, value, sizeof(value)); i++) {
			struct told *told = tell(t);

			if (!told)
				return;
			doc_append(told->field, sizeof(told->field), "%s%s", prefix,
				   fields->field[f].name);
			memcpy(told->value, value, sizeof(value));
		}
	}
}

static const struct policy_rule *rule_named(const struct policy *policy, const char *name)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		if (!strcmp(policy->rule[r].name, name))
			return &policy->rule[r];
	return NULL;
}

static bool has_pool(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->n_pools; i++)
		if (!strcmp(policy->pool[i].name, name))
			return true;
	return false;
}

static bool has_set(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->n_sets; i++)
		if (!strcmp(policy->set[i].name, name))
			return true;
	return false;
}

static void tell_rule(struct telling *t, const struct policy_rule *rule,
		      const struct policy_rule *other)
{
	struct policy_match match = rule->match;
	char prefix[PATH_TEXT] = "";

	parts_match_agree(&match, &other->match);
	doc_append(prefix, sizeof(prefix), "%s.", rule->name);
	tell_part(t, POLICY_RULE, prefix, rule);
	*prefix = 0;
	doc_append(prefix, sizeof(prefix), "%s.match.", rule->name);
	tell_part(t, POLICY_MATCH, prefix, &match);
	for (size_t i = 0; i < rule->n_limits; i++) {
		if (rule->limit[i].rung) /* it is told with the first of its ladder */
			continue;
		*prefix = 0;
		doc_append(prefix, sizeof(prefix), "%s.limits[%u].", rule->name,
			   rule->limit[i].item);
		tell_part(t, POLICY_LIMIT, prefix, &rule->limit[i]);
	}
}

/* Of what the other has not at all, the name alone. */
static void tell_all(struct telling *t, const struct policy *policy, const struct policy *other)
{
	tell_part(t, POLICY_WHOLE, "", policy);
	tell_part(t, POLICY_SAMPLE, "sample.", &policy->sample);
	tell_part(t, POLICY_FLEET, "fleet.", &policy->fleet);
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_rule *same;

		tell_name(t, "rules", policy->rule[r].name);
		same = rule_named(other, policy->rule[r].name);
		if (same)
			tell_rule(t, &policy->rule[r], same);
	}
	for (size_t i = 0; i < policy->n_pools; i++) {
		char prefix[PATH_TEXT] = "";

		tell_name(t, "pools", policy->pool[i].name);
		doc_append(prefix, sizeof(prefix), "pools.%s.", policy->pool[i].name);
		if (has_pool(other, policy->pool[i].name))
			tell_part(t, POLICY_POOL, prefix, &policy->pool[i]);
	}
	for (size_t i = 0; i < policy->n_sets; i++) {
		char prefix[PATH_TEXT] = "";

		tell_name(t, "sets", policy->set[i].name);
		doc_append(prefix, sizeof(prefix), "sets.%s.", policy->set[i].name);
		if (has_set(other, policy->set[i].name))
			tell_part(t, POLICY_SET, prefix, &policy->set[i]);
	}
}

static int by_text(const void *a, const void *b)
{
	const struct told *one = a, *other = b;
	int field = strcmp(one->field, other->field);

	return field ? field : strcmp(one->value, other->value);
}

static int by_place(const void *a, const void *b)
{
	const struct told *one = a, *other = b;

	return one->at < other->at ? -1 : one->at > other->at;
}

/* Drops what is in both. */
static void keep_rest(struct telling *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (!t->told[i].gone)
			t->told[n++] = t->told[i];
	t->n = n;
	if (n)
		qsort(t->told, n, sizeof(*t->told), by_place);
}

/* In the order of their texts. An item that a list has twice says nothing more. */
static void each_once(struct telling *t)
{
	size_t n = 0;

	if (t->n)
		qsort(t->told, t->n, sizeof(*t->told), by_text);
	for (size_t i = 0; i < t->n; i++)
		if (!n || by_text(&t->told[n - 1], &t->told[i]))
			t->told[n++] = t->told[i];
	t->n = n;
}

static void drop_common(struct telling *one, struct telling *other)
{
	size_t i = 0, k = 0;

	each_once(one);
	each_once(other);
	while (i < one->n && k < other->n) {
		int order = by_text(&one->told[i], &other->told[k]);

		if (!order)
			one->told[i].gone = other->told[k].gone = true;
		i += order <= 0;
		k += order >= 0;
	}
	keep_rest(one);
	keep_rest(other);
}

/* The only value that is left of that field, or NULL. */
static struct told *only_one(struct telling *t, const char *field)
{
	struct told *found = NULL;

	for (size_t i = 0; i < t->n; i++) {
		if (strcmp(t->told[i].field, field))
			continue;
		if (found)
			return NULL;
		found = &t->told[i];
	}
	return found;
}

static bool has_rules_left(const struct telling *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->told[i].field, "rules"))
			return true;
	return false;
}

static void order_of(const struct policy *policy, char text[RULES_TEXT])
{
	*text = 0;
	for (size_t r = 0; r < policy->n_rules; r++)
		doc_append(text, RULES_TEXT, "%s%s", r ? ", " : "", policy->rule[r].name);
}

/* What is left, a value in the place of another where each is the only one of its field. */
static void report(struct telling *one, struct telling *other,
		   void (*each)(const struct policy_difference *, void *), void *arg)
{
	for (size_t i = 0; i < one->n; i++) {
		struct told *mine = &one->told[i], *theirs = NULL;

		if (only_one(one, mine->field) && strcmp(mine->field, "rules") &&
		    strcmp(mine->field, "pools") && strcmp(mine->field, "sets"))
			theirs = only_one(other, mine->field);
		if (theirs)
			theirs->gone = true;
		each(&(struct policy_difference){mine->field, mine->value,
						 theirs ? theirs->value : NULL},
		     arg);
	}
	for (size_t i = 0; i < other->n; i++)
		if (!other->told[i].gone)
			each(&(struct policy_difference){other->told[i].field, NULL,
							 other->told[i].value},
			     arg);
}

int policy_diff(const struct policy *one, const struct policy *other,
		void (*each)(const struct policy_difference *difference, void *arg), void *arg)
{
	struct telling a = {0}, b = {0};
	char order[RULES_TEXT], order_other[RULES_TEXT];
	bool failed;

	tell_all(&a, one, other);
	tell_all(&b, other, one);
	failed = a.no_memory || b.no_memory;
	if (!failed) {
		drop_common(&a, &b);
		report(&a, &b, each, arg);
		order_of(one, order);
		order_of(other, order_other);
		if (!has_rules_left(&a) && !has_rules_left(&b) && strcmp(order, order_other))
			each(&(struct policy_difference){"rules' order", order, order_other}, arg);
	}
	free(a.told);
	free(b.told);
	return failed ? -1 : 0;
}

bool policy_field(enum policy_part part, size_t i, struct policy_field *field)
{
	const struct fields *fields = parts_fields(part);
	const struct field *f = &fields->field[i];

	if (i >= fields->n)
		return false;
	*field = (struct policy_field){f->name, f->value, f->help,
				       part == POLICY_LIMIT ? limits_kind_of(f) : "any",
				       f->flags & FIELD_NEEDED};
	return true;
}

const char *policy_part_name(enum policy_part part)
{
	return parts_fields(part)->of;
}
