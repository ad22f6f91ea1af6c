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

int set_texts_read_one(const struct policy_set *set, struct set_text *text,
		       struct policy_error *error)
{
	struct set_source source = {set->file, 0};

	return set->file[0] ? set_read_file(set->file, &source, text, error)
			    : read_list(set, text, error);
}

int set_texts_read(const struct policy *policy, struct set_texts *texts, struct policy_error *error)
{
	texts->n = 0;
	for (size_t i = 0; i < policy->n_sets; i++) {
		if (set_texts_read_one(&policy->set[i], &texts->text[i], error)) {
			set_texts_free(texts);
			return -1;
		}
		texts->n++;
	}
	return 0;
}

void set_texts_free(struct set_texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		set_text_free(&texts->text[i]);
	texts->n = 0;
}
