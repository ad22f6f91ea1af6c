/* SPDX-License-Identifier: GPL-2.0-only */
/* check: what a policy would take and promise, before anything is loaded. */
#include <stdlib.h>

#include "cmd.h"
#include "output.h"

int cmd_check(int argc, char **argv)
{
	struct policy_error error = {0};
	int cpus = loader_cpus(&error);
	struct compile_host host = {loader_resolution(), loader_now(), cpus};
	static struct pacer_policy bin;
	static struct plan plan;
	struct policy *policy;
	struct options o;
	char *text;
	int code = parse_options(argc, argv, "c", &o);

	if (code)
		return code;
	if (o.n_args || !o.policy)
		return misused("check", "it wants -c POLICY");
	if (cpus < 0)
		return complain(NULL, &error);
	code = read_policy(o.policy, &text, &policy);
	if (code)
		return code;
	if (output_memory_error(policy, &error) ||
	    compile_policy(policy, NULL, &host, &bin, &plan, &error))
		code = complain(o.policy, &error);
	else if (o.json)
		code = print_json(output_check_json(policy, &bin, &plan));
	else
		code = output_check(policy, &bin, &plan);
	policy_free(policy);
	free(text);
	return code;
}
