/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy's text to the plan and back: what is read is compiled or refused with one line, reads
 * the same a second time, can have a value set, and can be changed into another while it is at
 * work.
 */
#include "fuzz.h"
#include "plan/compile.h"

static struct pacer_policy bin, next;
static struct plan plan, next_plan;

static void told(const struct policy_error *error)
{
	HOLDS_TOLD(error->text);
}

static void differs(const struct policy_difference *difference, void *arg)
{
	(void)difference;
	(void)arg;
	HOLDS(!"a text differs from itself");
}

static struct policy *read_it(const char *text)
{
	struct policy_error error = {0};
	struct policy *policy = policy_parse(text, strlen(text), &error);

	if (!policy)
		told(&error);
	return policy;
}

static int compile(const struct policy *policy, const struct compile_previous *previous,
		   struct pacer_policy *to, struct plan *with)
{
	struct compile_host host = {4000000, 5000000000, 2};
	struct policy_error error = {0};
	int result = compile_policy(policy, previous, &host, to, with, &error);

	if (result)
		told(&error);
	return result;
}

/* After the text and a zero byte: PATH=VALUE; after another: the policy that replaces it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	char *text = fuzz_text(&in), *assignment = fuzz_text(&in), *other = fuzz_text(&in);
	struct policy *policy = read_it(text), *again, *successor;
	struct policy_error error = {0};
	char *set;

	if (policy) {
		again = read_it(text);
		HOLDS(again && !policy_diff(policy, again, differs, NULL));
		policy_free(again);
		set = policy_assign(text, assignment, &error);
		if (set)
			policy_free(read_it(set));
		else
			told(&error);
		free(set);
		if (!compile(policy, NULL, &bin, &plan)) {
			struct compile_previous previous = {policy,
							    &bin,
							    plan.lines,
							    strlen(other) % 2,
							    strlen(other) % 3 == 0,
							    strlen(other) % 5 == 0};

			successor = read_it(*other ? other : text);
			if (successor)
				(void)compile(successor, &previous, &next, &next_plan);
			policy_free(successor);
		}
	}
	policy_free(policy);
	free(text);
	free(assignment);
	free(other);
	return 0;
}
