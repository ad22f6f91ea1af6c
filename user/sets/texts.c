/* SPDX-License-Identifier: GPL-2.0-only */
#include "sets/texts.h"

#include <string.h>

static int no_memory(struct policy_error *error)
{
	return policy_fail(error, POLICY_NO_MEMORY, "no memory for the policy's sets");
}

/* A prefix that is written twice is one. */
static int read_list(const struct policy_set *set, struct set_text *text,
		     struct policy_error *error)
{
	struct set_entry one, other;

	*text = (struct set_text){.timeouts = 0};
	for (size_t i = 0; i < set->n_of; i++) {
		struct set_entry e = set_entry_of(&set->of[i], 1, 0);

		if (set_list_add(&text->list, &e)) {
			set_text_free(text);
			return no_memory(error);
		}
	}
	if (!set_list_sort(&text->list, &one, &other))
		return 0;
	set_text_free(text);
	return no_memory(error);
}

/* --- values --------------------------------------------------------------------------------- */

/* The values of the set that the policy names, in the order of their numbers. */
int set_texts_known(const struct policy *policy, size_t number, struct set_names *names)
{
	*names = (struct set_names){NULL, 0, NULL, 0};
	for (size_t i = 0; i < policy->n_set_values; i++) {
		const char *name = policy->set_value[i].name;

		if (policy->set_value[i].set == number &&
		    set_names_add(names, (struct set_word){name, strlen(name)}) < 0) {
			set_names_free(names);
			return -1;
		}
	}
	return 0;
}

/* What a value of the policy was meant to be. */
static int no_such_value(const struct policy *policy, size_t number, const char *name,
			 const struct set_text *text, struct policy_error *error)
{
	struct policy_nearest nearest = {.wrong = name};
	uint32_t known = 0;

	for (size_t i = 0; i < policy->n_set_values; i++)
		known += policy->set_value[i].set == number;
	for (uint32_t i = known; i < text->names.n; i++)
		policy_nearest(&nearest, text->names.name[i]);
	return policy_fail(error, 0,
			   "no prefix of set %s has the value %s%s%s%s: see match and allow",
			   policy->set[number].name, name, nearest.name ? " (did you mean " : "",
			   nearest.name ? nearest.name : "", nearest.name ? "?)" : "");
}

static int number_values(const struct policy *policy, size_t number, uint32_t known,
			 struct set_text *text, struct policy_error *error)
{
	bool seen[PACER_SET_VALUES_MAX] = {false};
	bool named = policy_set_named(policy, &policy->set[number]);

	for (size_t i = 0; i < text->list.n; i++) {
		struct set_entry *e = &text->list.entry[i];

		if (e->value <= known)
			seen[e->value - 1] = true;
		else if (!named)
			e->value = (uint16_t)(known + 1);
	}
	for (uint32_t i = 0; i < known; i++)
		if (!seen[i])
			return no_such_value(policy, number, text->names.name[i], text, error);
	memcpy(text->set, policy->set[number].name, sizeof(text->set));
	text->about = (struct set_about){text->set, &text->names, known};
	text->list.about = named ? &text->about : NULL;
	return 0;
}

/* For who shows keys. */
static void learn(const struct set_text *text)
{
	if (!text->list.about)
		return;
	set_words_learn(text->about.set, SET_WORD_NONE);
	for (uint32_t i = 0; i < text->names.n; i++)
		set_words_learn(text->about.set, text->names.name[i]);
}

int set_texts_read_one(const struct policy *policy, size_t number, const char *file,
		       struct set_text *text, struct policy_error *error)
{
	const struct policy_set *set = &policy->set[number];
	struct set_names known = {NULL, 0, NULL, 0};
	struct set_source source = {file ? file : set->file, set->value, &known};
	int result;

	if (!file && !set->file[0])
		return read_list(set, text, error);
	if (set_texts_known(policy, number, &known))
		result = no_memory(error);
	else
		result = set_read_file(source.name, &source, text, error);
	if (!result && set->value && number_values(policy, number, known.n, text, error)) {
		set_text_free(text);
		error->file = source.name;
		result = -1;
	}
	if (!result)
		learn(text);
	set_names_free(&known);
	return result;
}

/* --- families ------------------------------------------------------------------------------- */

enum { FOUR = 1, SIX = 2 };

static unsigned int family_bit(int family)
{
	return family == 4 ? FOUR : SIX;
}

/* A set without a prefix may get some of either. */
static unsigned int families_of_set(const struct set_list *list)
{
	/* They are sorted: IPv4 comes first. */
	return list->n
		   ? family_bit(list->entry[0].family) | family_bit(list->entry[list->n - 1].family)
		   : FOUR | SIX;
}

/* Of which families an address can be that a match's src or dst has. */
static unsigned int families_of(const struct policy_match *m, bool dst,
				const struct set_texts *texts, const struct policy_set_use **by)
{
	const struct prefix *prefix = dst ? m->dst : m->src;
	size_t n = dst ? m->n_dst : m->n_src;
	unsigned int families = 0;

	for (size_t i = 0; i < n; i++)
		families |= family_bit(prefix[i].family);
	for (size_t i = 0; i < m->n_sets; i++)
		if (m->set[i].dst == dst && !m->set[i].not ) {
			families |= families_of_set(&texts->text[m->set[i].set].list);
			*by = &m->set[i];
		}
	return families ? families : FOUR | SIX;
}

/* That of a protocol, or of a header's field, which the other family has not. */
static unsigned int families_of_proto(const struct policy_match *m)
{
	unsigned int families = m->n_proto ? 0 : FOUR | SIX;

	if (m->n_icmp_type || m->n_icmp_code)
		return FOUR;
	if (m->n_icmpv6_type || m->n_icmpv6_code)
		return SIX;
	for (size_t i = 0; i < m->n_proto; i++) {
		const struct range *r = &m->proto[i];

		families |= r->low != r->high || (r->low != 1 && r->low != 58) ? FOUR | SIX
			    : r->low == 1				       ? FOUR
									       : SIX;
	}
	return families;
}

static int check_families(const struct policy_rule *rule, const struct set_texts *texts,
			  struct policy_error *error)
{
	const struct policy_set_use *by = NULL;
	unsigned int src = families_of(&rule->match, false, texts, &by);
	unsigned int dst = families_of(&rule->match, true, texts, &by);
	unsigned int proto = families_of_proto(&rule->match), set;

	if (!by || src & dst & proto)
		return 0;
	set = by->dst ? dst : src;
	return policy_fail(
	    error, by->line,
	    "rule %s: match.%s is of IPv%d alone, as set @%s is, and the rest of the match "
	    "of IPv%d: no packet can match: use a set of the other family",
	    rule->name, by->dst ? "dst" : "src", set == FOUR ? 4 : 6, by->name,
	    set == FOUR ? 6 : 4);
}

/* --- all of them ---------------------------------------------------------------------------- */

int set_texts_read(const struct policy *policy, struct set_texts *texts, struct policy_error *error)
{
	int result = 0;

	texts->n = 0;
	for (size_t i = 0; i < policy->n_sets && !result; i++) {
		result = set_texts_read_one(policy, i, NULL, &texts->text[i], error);
		texts->n += !result;
	}
	for (size_t r = 0; r < policy->n_rules && !result; r++)
		result = check_families(&policy->rule[r], texts, error);
	if (result)
		set_texts_free(texts);
	return result;
}

void set_texts_free(struct set_texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		set_text_free(&texts->text[i]);
	texts->n = 0;
}
