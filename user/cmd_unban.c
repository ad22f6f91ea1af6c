/* SPDX-License-Identifier: GPL-2.0-only */
/* unban: lift a key's ban, or all of them. */
#include <stdio.h>
#include <string.h>

#include "bans.h"
#include "cmd.h"

static int lift(struct attached *a, const struct options *o)
{
	const char *key = strcmp(o->args[1], "all") ? o->args[1] : NULL;
	const char *rule = o->n_args == 3 ? o->args[2] : NULL;
	struct policy *policy = change_policy(a);
	size_t n = bans_lift(a, policy, key, rule);

	policy_free(policy);
	if (!n && key) {
		fprintf(stderr,
			"xdp-pacer: %s: %s is not banned%s%s: see `xdp-pacer status %s` for the "
			"keys as they are written\n",
			a->ifname, key, rule ? " under " : "", rule ? rule : "", a->ifname);
		return EXIT_FAILED;
	}
	if (o->json)
		return print_json(json_pack("{s:s, s:s, s:I}", "interface", a->ifname, "key",
					    o->args[1], "lifted", (json_int_t)n));
	printf("%s: %zu ban%s lifted\n", a->ifname, n, units_plural(n));
	return EXIT_DONE;
}

int cmd_unban(int argc, char **argv)
{
	struct options o;
	int code = parse_options(argc, argv, "", &o);

	if (code)
		return code;
	if (o.n_args != 2 && o.n_args != 3)
		return misused("unban", "it wants IFACE KEY [RULE], or IFACE all [RULE]");
	return with_pacer(&o, lift);
}
