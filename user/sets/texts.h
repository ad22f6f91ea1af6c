/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the sets that a policy names, read from their files and lists.
 *
 * Memory: the lists, until set_texts_free. One thread.
 */
#ifndef PACER_SET_TEXTS_H
#define PACER_SET_TEXTS_H

#include "abi.h"
#include "sets/build.h"
#include "sets/read.h"

struct set_texts {
	struct set_text text[PACER_SETS_MAX]; /* as in the policy */
	size_t n;
};

/*
 * 0, or -1 with *error filled: of a set's file it has the file, of a rule that no packet can match
 * since a set is of the wrong family the policy's line. Then there is nothing to free.
 */
int set_texts_read(const struct policy *policy, struct set_texts *texts,
		   struct policy_error *error);
/*
 * One set of them, sorted: of the policy's file or, where that is not NULL, of another ("-":
 * stdin). Values that the policy names have their numbers; all others are 1 more than these, but
 * where their texts are kept (policy_set_named): then each has its own, and the list leads to their
 * names.
 */
int set_texts_read_one(const struct policy *policy, size_t number, const char *file,
		       struct set_text *text, struct policy_error *error);
void set_texts_free(struct set_texts *texts);

/*
 * The values of the set that the policy names, with their numbers: to be freed with set_names_free.
 * 0; -1: no memory.
 */
int set_texts_known(const struct policy *policy, size_t number, struct set_names *names);

#endif
