/* SPDX-License-Identifier: GPL-2.0-only */
/* rotate: another secret for the hash of a pacer at work. */
#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "config/text.h"
#include "live/change.h"
#include "live/copies.h"
#include "live/host.h"
#include "plan/compile.h"

/* For how long lookups use the old secret, too. */
static uint64_t left_ns(const struct attached *a)
{
	uint64_t until_ns = compile_drained_ns(&a->copy[copies_in_force(a)].policy);
	uint64_t now_ns = host_now_ns();

	return until_ns > now_ns ? until_ns - now_ns : 0;
}

static int report(struct attached *a, const struct options *o, const struct plan *plan)
{
	bool moving = a->copy[copies_in_force(a)].policy.bans.moving;
	uint64_t left = left_ns(a);
	size_t kept = 0;

	for (size_t i = 0; i < plan->n_limits; i++)
		kept += plan->limit[i].state == PLAN_KEPT;
	change_noted(a);
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname,
		    "%s: a new secret is in force: ", printable(a->ifname).text);
	emit_object("limits");
	emit_uint("rotated", plan->n_limits - kept, "%zu limit%s hashed with it, ",
		  plan->n_limits - kept, units_plural(plan->n_limits - kept));
	emit_uint("kept", kept, "%zu do%s not need it\n", kept, kept == 1 ? "es" : "");
	emit_close();
	emit_uint("old_secret_ns", left,
		  left ? "the old one is used beside it for another %.1f s\n" : NULL, left / 1e9);
	emit_flag("bans_waiting", moving,
		  moving ? "some bans wait for room in their table; each change moves what it can\n"
			 : NULL);
	output_also(a);
	emit_close();
	return emit_end();
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
		return misused("rotate", "it wants one interface or more");
	return with_pacer(o, rotate);
}

const struct verb verb_rotate = {"rotate",
				 "IFACE...",
				 "draw another secret for the hash, keeping every limit",
				 NULL,
				 run_rotate,
				 .group = VERBS_CHANGE,
				 .interfaces = INTERFACES_ONLY,
				 .example = "xdp-pacer rotate eth0"};
