/* SPDX-License-Identifier: GPL-2.0-only */
/* load, unload: put a pacer on an interface, take it off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "output.h"

static int load(const char *ifname, struct options *o, char **text, struct policy **policy)
{
	struct policy_error error = {0};
	int cpus = loader_cpus(&error);
	struct compile_host host = {loader_resolution(), loader_now(), cpus};
	static struct pacer_policy bin;
	static struct plan plan;
	struct loader_policy begin;

	if (cpus < 0)
		return complain(NULL, &error);
	if (o->monitor) {
		char *monitored = policy_set(*text, strlen(*text), "mode", "monitor", &error);

		if (!monitored)
			return complain(o->policy, &error);
		free(*text);
		*text = monitored;
		(*policy)->monitor = true;
	}
	if (output_memory_error(*policy, &error) ||
	    compile_policy(*policy, NULL, &host, &bin, &plan, &error))
		return complain(o->policy, &error);
	begin = (struct loader_policy){*policy, &bin, &plan, *text, plan.lines, host.resolution_ns};
	if (loader_load(ifname, &o->load, &begin, &error))
		return complain(NULL, &error);
	return EXIT_DONE;
}

int cmd_load(int argc, char **argv)
{
	struct options o;
	struct policy *policy;
	char *text;
	int code = parse_options(argc, argv, "cmdo", &o);

	if (code)
		return code;
	if (o.n_args != 1 || !o.policy)
		return misused("load", "it wants one interface and -c POLICY");
	code = read_policy(o.policy, &text, &policy);
	if (code)
		return code;
	code = load(o.args[0], &o, &text, &policy);
	policy_free(policy);
	free(text);
	return code ? code : with_pacer(&o, show_status);
}

static int unload(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};

	if (loader_unload(a, &error))
		return complain(NULL, &error);
	if (o->json)
		return print_json(json_pack("{s:s, s:b}", "interface", a->ifname, "attached", 0));
	printf("%s: the pacer is off\n", a->ifname);
	return EXIT_DONE;
}

int cmd_unload(int argc, char **argv)
{
	struct options o;
	int code = parse_options(argc, argv, "", &o);

	if (code)
		return code;
	if (o.n_args != 1)
		return misused("unload", "it wants one interface");
	return with_pacer(&o, unload);
}
