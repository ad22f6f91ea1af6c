/* SPDX-License-Identifier: GPL-2.0-only */
/* load, unload: put a pacer on an interface, take it off. */
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "output.h"

/* What status says of it, and whose place it took. */
static int show_loaded(struct attached *a, const struct options *o,
		       const struct loader_replaced *replaced)
{
	json_t *out;

	if (!replaced->program_id)
		return show_status(a, o);
	if (o->json) {
		out = output_status_json(a);
		json_object_set_new(out, "replaced",
				    json_pack("{s:I, s:I, s:s}", "program_id",
					      (json_int_t)replaced->program_id, "abi",
					      (json_int_t)replaced->abi, "state", "new"));
		return print_json(out);
	}
	printf("%s: took the place of program %u, ABI %u: its state is new, and what that one had "
	       "counted, banned and allowed is gone\n",
	       a->ifname, replaced->program_id, replaced->abi);
	return show_status(a, o);
}

static int load(const char *ifname, struct options *o, char **text, struct policy **policy)
{
	struct loader_replaced replaced;
	struct attached a;
	int code;

	struct compile_host host = {loader_resolution(), loader_now(), libbpf_num_possible_cpus()};
	static struct pacer_policy bin;
	static struct plan plan;
	struct policy_error error = {0};
	struct loader_policy begin;

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
	if (loader_load(ifname, &o->load, &begin, &a, &replaced, &error))
		return complain(NULL, &error);
	code = show_loaded(&a, o, &replaced);
	loader_release(&a);
	return code;
}

int cmd_load(int argc, char **argv)
{
	struct options o;
	struct policy *policy;
	char *text;
	int code = parse_options(argc, argv, "cmdor", &o);

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
	return code;
}

static int unload(const char *ifname, const struct options *o)
{
	struct policy_error error = {0};

	if (loader_unload(ifname, &error))
		return complain(NULL, &error);
	if (o->json)
		return print_json(json_pack("{s:s, s:b}", "interface", ifname, "attached", 0));
	printf("%s: the pacer is off\n", ifname);
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
	return unload(o.args[0], &o);
}
