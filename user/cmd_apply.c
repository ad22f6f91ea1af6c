/* SPDX-License-Identifier: GPL-2.0-only */
/* apply, confirm, set: change the policy of a pacer at work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "output.h"

static int report(const char *ifname, const struct options *o, const struct plan *plan)
{
	size_t kept = 0, fresh = 0;
	char text[64];

	for (size_t i = 0; i < plan->n_limits; i++) {
		kept += plan->limit[i].state == PLAN_KEPT;
		fresh += plan->limit[i].state == PLAN_NEW || plan->limit[i].state == PLAN_MOVED;
	}
	if (o->json)
		return print_json(json_pack(
		    "{s:s, s:{s:I, s:I, s:I}, s:I}", "interface", ifname, "limits", "kept",
		    (json_int_t)kept, "new", (json_int_t)fresh, "retired",
		    (json_int_t)plan->n_retired, "confirm_within_ns", (json_int_t)o->confirm_ns));
	printf("%s: the policy is in force: %zu limit%s kept their state, %zu new, %zu retired\n",
	       ifname, kept, units_plural(kept), fresh, plan->n_retired);
	if (o->confirm_ns)
		printf("confirm it within %s: xdp-pacer confirm %s\n",
		       units_duration_text(o->confirm_ns, text, sizeof(text)), ifname);
	if (plan->rotated)
		printf("it has a new secret, as the program had drawn the one before itself\n");
	return EXIT_DONE;
}

int cmd_apply(int argc, char **argv)
{
	struct policy_error error = {0};
	static struct plan plan;
	struct policy *policy;
	struct attached a;
	struct options o;
	uint64_t memory;
	char *text;
	int code = parse_options(argc, argv, "ct", &o);

	if (code)
		return code;
	if (o.n_args != 1 || !o.policy)
		return misused("apply", "it wants one interface and -c POLICY");
	code = read_policy(o.policy, &text, &policy);
	if (code)
		return code;
	memory = policy->memory_bytes;
	policy_free(policy);
	if (loader_find(o.args[0], &a, &error)) {
		free(text);
		return complain(NULL, &error);
	}
	if (memory != POLICY_MEMORY_DEFAULT && memory / sizeof(struct pacer_line) != a.n_lines)
		fprintf(stderr,
			"xdp-pacer: %s: memory stays as it was at load: unload and load to "
			"change it\n",
			o.args[0]);
	code = change_apply(&a, text, o.confirm_ns, &plan, &error);
	loader_release(&a);
	free(text);
	if (code)
		return complain(error.line ? o.policy : NULL, &error);
	return report(o.args[0], &o, &plan);
}

static int confirm(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};

	if (change_confirm(a, &error))
		return complain(NULL, &error);
	if (o->json)
		return print_json(json_pack("{s:s, s:b}", "interface", a->ifname, "confirmed", 1));
	printf("%s: the policy is confirmed\n", a->ifname);
	return EXIT_DONE;
}

int cmd_confirm(int argc, char **argv)
{
	struct options o;
	int code = parse_options(argc, argv, "", &o);

	if (code)
		return code;
	if (o.n_args != 1)
		return misused("confirm", "it wants one interface");
	return with_pacer(&o, confirm);
}

static int set(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	static struct plan plan;
	int result = change_set(a, o->args + 1, o->n_args - 1, &plan, &error);

	if (!result)
		return report(a->ifname, o, &plan);
	if (result == CHANGE_WRONG)
		error.line = 0; /* of a text that nobody sees */
	return complain(result == CHANGE_WRONG || error.line ? "set" : NULL, &error);
}

int cmd_set(int argc, char **argv)
{
	struct options o;
	int code = parse_options(argc, argv, "", &o);

	if (code)
		return code;
	if (o.n_args < 2)
		return misused("set", "it wants one interface and RULE.FIELD=VALUE");
	return with_pacer(&o, set);
}
