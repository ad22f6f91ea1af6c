/* SPDX-License-Identifier: GPL-2.0-only */
/* check: what a policy would take and promise, before anything is loaded. */
#include <bpf/libbpf.h>
#include <stdlib.h>

#include "cmd.h"
#include "output.h"

static int run_check(struct options *o)
{
	struct compile_host host = {loader_resolution(), loader_now(), libbpf_num_possible_cpus()};
	static struct pacer_policy bin;
	static struct plan plan;
	struct policy_error error = {0};
	struct policy *policy;
	char *text;
	int code;

	if (o->n_args || !o->policy)
		return misused("check", "it wants -c POLICY");
	code = read_policy(o->policy, &text, &policy);
	if (code)
		return code;
	if (output_memory_error(policy, &error) ||
	    compile_policy(policy, NULL, &host, &bin, &plan, &error))
		code = complain(o->policy, &error);
	else if (o->json)
		code = print_json(output_check_json(policy, &bin, &plan));
	else
		code = output_check(policy, &bin, &plan);
	policy_free(policy);
	free(text);
	return code;
}

static const struct option_row check_options[] = {OPTION_POLICY, {0}};

const struct verb verb_check = {"check", "",
				"validate a policy; print memory, ceilings and error bounds",
				check_options, run_check};
