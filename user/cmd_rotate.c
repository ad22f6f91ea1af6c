/* SPDX-License-Identifier: GPL-2.0-only */
/* rotate: another secret for the hash of a pacer at work. */
#include <stdio.h>

#include "cmd.h"
#include "text.h"

/* For how long the old secret is asked beside the new one. */
static uint64_t left_ns(const struct attached *a)
{
	uint64_t until_ns = compile_drained_ns(&a->copy[change_in_force(a)].policy);
	uint64_t now_ns = loader_now();

	return until_ns > now_ns ? until_ns - now_ns : 0;
}

static int report(const struct attached *a, const struct options *o, const struct plan *plan)
{
	bool moving = a->copy[change_in_force(a)].policy.bans.moving;
	uint64_t left = left_ns(a);
	size_t kept = 0;

	for (size_t i = 0; i < plan->n_limits; i++)
		kept += plan->limit[i].state == PLAN_KEPT;
	change_made();
	if (o->json)
		return print_json(json_pack(
		    "{s:o, s:{s:I, s:I}, s:I, s:b}", "interface", json_text(a->ifname), "limits",
		    "rotated", (json_int_t)(plan->n_limits - kept), "kept", (json_int_t)kept,
		    "old_secret_ns", (json_int_t)left, "bans_waiting", moving));
	printf("%s: a new secret is in force: %zu limit%s hashed with it, %zu without need of it\n",
	       printable(a->ifname).text, plan->n_limits - kept,
	       units_plural(plan->n_limits - kept), kept);
	if (left)
		printf("the old one is asked beside it for another %.1f s\n", left / 1e9);
	if (moving)
		printf("some bans wait for room in their table; each change moves what it can\n");
	return EXIT_DONE;
}

static int rotate(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	static struct plan plan;
	int code = change_rotate(a, &plan, &error);

	if (code < 0)
		return gave_up("rotate", error.text);
	if (code == CHANGE_LASTS)
		complaint("%s", error.text);
	return report(a, o, &plan);
}

static int run_rotate(struct options *o)
{
	if (o->n_args != 1)
		return misused("rotate", "it wants one interface");
	return with_pacer(o, rotate);
}

const struct verb verb_rotate = {
    "rotate", "IFACE", "draw another secret for the hash, keeping every limit", NULL, run_rotate};
