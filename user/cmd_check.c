/* SPDX-License-Identifier: GPL-2.0-only */
/* check: what a policy would take and promise, before anything is loaded. */
#include <stdlib.h>

#include "cmd.h"
#include "output.h"
#include "targets.h"

/*
 * A policy is valid whatever this machine has, but load would refuse it here: said of each target
 * that is not there. `missing` NULL: as text.
 */
static void find_missing(const struct policy *policy, json_t *missing)
{
	bool first = true;
	char name[64];

	for (size_t i = 0; i < policy->n_pools; i++)
		for (size_t k = 0; k < policy->pool[i].n; k++) {
			const struct policy_target *target = &policy->pool[i].target[k];
			const char *lack = targets_lack(target);

			if (!lack)
				continue;
			policy_target_text(target, name, sizeof(name));
			if (missing)
				json_array_append_new(missing,
						      json_pack("{s:s, s:s, s:s}", "pool",
								policy->pool[i].name, "target",
								name, "why", lack));
			else
				printf("%shere      pool %s: %s: %s on this machine: load would "
				       "refuse the policy\n",
				       first ? "\n" : "", policy->pool[i].name, name, lack);
			first = false;
		}
}

static int show(const struct policy *policy, const struct pacer_policy *bin,
		const struct plan *plan, bool json)
{
	json_t *out, *missing;
	int code;

	if (!json) {
		code = output_check(policy, bin, plan);
		find_missing(policy, NULL);
		return code;
	}
	out = output_check_json(policy, bin, plan);
	missing = json_array();
	find_missing(policy, missing);
	json_object_set_new(out, "missing_targets", missing);
	return print_json(out);
}

static int run_check(struct options *o)
{
	struct policy_error error = {0};
	int cpus = loader_cpus(&error);
	struct compile_host host = {loader_resolution(), loader_now(), cpus};
	static struct pacer_policy bin;
	static struct plan plan;
	struct policy *policy;
	char *text;
	int code;

	if (o->n_args || !o->policy)
		return misused("check", "it wants -c POLICY");
	if (cpus < 0)
		return complain(NULL, &error);
	code = read_policy(o->policy, &text, &policy);
	if (code)
		return code;
	if (output_memory_error(policy, &error) ||
	    compile_policy(policy, NULL, &host, &bin, &plan, &error))
		code = complain(o->policy, &error);
	else
		code = show(policy, &bin, &plan, o->json);
	policy_free(policy);
	free(text);
	return code;
}

static const struct option_row check_options[] = {OPTION_POLICY, {0}};

const struct verb verb_check = {"check", "",
				"validate a policy; print memory, ceilings and error bounds",
				check_options, run_check};
