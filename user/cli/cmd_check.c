/* SPDX-License-Identifier: GPL-2.0-only */
/* check: what a policy would take and promise, before anything is loaded. */
#include <stdlib.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "config/text.h"
#include "live/host.h"
#include "live/targets.h"
#include "plan/compile.h"
#include "sets/texts.h"

/* A policy can be valid and still be refused by load, where this machine lacks a target. */
static void emit_missing(const struct policy *policy)
{
	const char *before = "\n";
	char name[64];

	emit_array("missing_targets");
	for (size_t i = 0; i < policy->n_pools; i++)
		for (size_t k = 0; k < policy->pool[i].n; k++) {
			const struct policy_target *target = &policy->pool[i].target[k];
			const char *pool = policy->pool[i].name, *lack = targets_lack(target);

			if (!lack)
				continue;
			policy_target_text(target, name, sizeof(name));
			emit_object("");
			emit_string("pool", pool, "%shere      pool %s: ", before, pool);
			emit_string("target", name, "%s: ", printable(name).text);
			emit_string("why", lack,
				    "%s on this machine: load would refuse the policy\n", lack);
			emit_close();
			before = "";
		}
	emit_close();
}

static int show(const struct policy *policy, const struct output_sets *sets,
		const struct pacer_policy *bin, const struct plan *plan, bool json)
{
	emit_begin(json);
	emit_object("");
	output_check(policy, sets, bin, plan);
	emit_missing(policy);
	emit_close();
	return emit_end();
}

static int run_check(struct options *o)
{
	struct policy_error error = {0};
	int cpus = host_cpus(&error);
	struct compile_host host = {host_resolution_ns(), host_now_ns(), cpus};
	static struct pacer_policy bin;
	static struct plan plan;
	static struct set_texts texts;
	struct output_sets sets;
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
	if (set_texts_read(policy, &texts, &error) || output_sets(policy, &texts, &sets, &error) ||
	    output_memory_error(policy, 1, sets.all_bytes, &error) ||
	    compile_policy(policy, NULL, &host, &bin, &plan, &error))
		code = complain(o->policy, &error);
	else
		code = show(policy, &sets, &bin, &plan, o->json);
	set_texts_free(&texts);
	policy_free(policy);
	free(text);
	return code;
}

static const struct option_row check_options[] = {OPTION_POLICY, {0}};

const struct verb verb_check = {"check",
				"",
				"validate a policy; print memory, ceilings and error bounds",
				check_options,
				run_check,
				.group = VERBS_FIND,
				.example = "xdp-pacer check -c policy.yaml"};
