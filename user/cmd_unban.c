/* SPDX-License-Identifier: GPL-2.0-only */
/* unban: lift a key's ban, or all of them. */
#include <stdio.h>
#include <string.h>

#include "bans.h"
#include "cmd.h"
#include "text.h"

static int lift(struct attached *a, const struct options *o)
{
	const char *key = strcmp(o->args[1], "all") ? o->args[1] : NULL;
	const char *rule = o->n_args == 3 ? o->args[2] : NULL;
	struct policy *policy = change_policy(a);
	size_t n = bans_lift(a, policy, key, rule);

	policy_free(policy);
	if (!n && key) {
		complaint("%s: %s is not banned%s%s: see `xdp-pacer status %s` for the keys as "
			  "they are written",
			  a->ifname, key, rule ? " under " : "", rule ? rule : "", a->ifname);
		return EXIT_FAILED;
	}
	if (n)
		change_made();
	if (o->json)
		return print_json(json_pack("{s:o, s:o, s:I}", "interface", json_text(a->ifname),
					    "key", json_text(o->args[1]), "lifted", (json_int_t)n));
	printf("%s: %zu ban%s lifted\n", printable(a->ifname).text, n, units_plural(n));
	return EXIT_DONE;
}

static int run_unban(struct options *o)
{
	if (o->n_args != 2 && o->n_args != 3)
		return misused("unban", "it wants IFACE KEY [RULE], or IFACE all [RULE]");
	return with_pacer(o, lift);
}

const struct verb verb_unban = {"unban", "IFACE KEY|all [RULE]", "lift bans before their time",
				NULL, run_unban};
