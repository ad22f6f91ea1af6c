/* SPDX-License-Identifier: GPL-2.0-only */
/* apply, confirm, set: change the policy of a pacer at work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "output.h"
#include "text.h"

static int report(const char *ifname, const struct options *o, const struct plan *plan)
{
	size_t kept = 0, fresh = 0;
	char text[64];

	for (size_t i = 0; i < plan->n_limits; i++) {
		kept += plan->limit[i].state == PLAN_KEPT;
		fresh += plan->limit[i].state == PLAN_NEW || plan->limit[i].state == PLAN_MOVED;
	}
	change_made();
	if (o->json)
		return print_json(json_pack(
		    "{s:o, s:{s:I, s:I, s:I}, s:I}", "interface", json_text(ifname), "limits",
		    "kept", (json_int_t)kept, "new", (json_int_t)fresh, "retired",
		    (json_int_t)plan->n_retired, "confirm_within_ns", (json_int_t)o->confirm_ns));
	printf("%s: the policy is in force: %zu limit%s kept their state, %zu new, %zu retired\n",
	       printable(ifname).text, kept, units_plural(kept), fresh, plan->n_retired);
	if (o->confirm_ns)
		printf("confirm it within %s: xdp-pacer confirm %s\n",
		       units_duration_text(o->confirm_ns, text, sizeof(text)),
		       printable(ifname).text);
	if (plan->rotated)
		printf("it has a new secret, as the program had drawn the one before itself\n");
	return EXIT_DONE;
}

/* It is in force, whatever else there is to say. */
static int in_force(const char *ifname, const struct options *o, const struct plan *plan, int code,
		    const struct policy_error *error)
{
	if (code == CHANGE_LASTS)
		complaint("%s", error->text);
	return report(ifname, o, plan);
}

static int run_apply(struct options *o)
{
	struct policy_error error = {0};
	static struct plan plan;
	struct policy *policy;
	struct attached a;
	uint64_t memory;
	char *text;
	int code;

	if (o->n_args != 1 || !o->policy)
		return misused("apply", "it wants one interface and -c POLICY");
	code = read_policy(o->policy, &text, &policy);
	if (code)
		return code;
	memory = policy->memory_bytes;
	policy_free(policy);
	if (loader_find(o->args[0], &a, &error)) {
		free(text);
		return complain(NULL, &error);
	}
	if (memory != POLICY_MEMORY_DEFAULT && memory / sizeof(struct pacer_line) != a.n_lines)
		complaint("%s: memory stays as it was at load: unload and load to change it",
			  o->args[0]);
	code = change_apply(&a, text, o->confirm_ns, &plan, &error);
	loader_release(&a);
	free(text);
	if (code < 0)
		return complain(error.line ? o->policy : NULL, &error);
	return in_force(o->args[0], o, &plan, code, &error);
}

static const struct option_row apply_options[] = {
    OPTION_POLICY,
    {"confirm-within", 0, "TIME", "the policy before comes back unless confirmed by then",
     OPTION_TIME(confirm_ns)},
    {0},
};

const struct verb verb_apply = {"apply", "IFACE", "change the policy in place, keeping state",
				apply_options, run_apply};

static int confirm(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};

	if (change_confirm(a, &error))
		return complain(NULL, &error);
	change_made();
	if (o->json)
		return print_json(
		    json_pack("{s:o, s:b}", "interface", json_text(a->ifname), "confirmed", 1));
	printf("%s: the policy is confirmed\n", printable(a->ifname).text);
	return EXIT_DONE;
}

static int run_confirm(struct options *o)
{
	if (o->n_args != 1)
		return misused("confirm", "it wants one interface");
	return with_pacer(o, confirm);
}

const struct verb verb_confirm = {
    "confirm", "IFACE", "keep a policy that was applied --confirm-within", NULL, run_confirm};

static int set(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	static struct plan plan;
	int result = change_set(a, o->args + 1, o->n_args - 1, &plan, &error);

	if (result >= 0)
		return in_force(a->ifname, o, &plan, result, &error);
	if (result == CHANGE_WRONG)
		error.line = 0; /* of a text that nobody sees */
	return complain(result == CHANGE_WRONG || error.line ? "set" : NULL, &error);
}

static int run_set(struct options *o)
{
	if (o->n_args < 2)
		return misused("set", "it wants one interface and RULE.FIELD=VALUE");
	return with_pacer(o, set);
}

const struct verb verb_set = {"set", "IFACE RULE.FIELD=VALUE...",
			      "change values of the policy in place", NULL, run_set};
