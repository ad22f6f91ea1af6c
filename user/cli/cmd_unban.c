/* SPDX-License-Identifier: GPL-2.0-only */
/* unban: lift the ban of a key, or all bans. */
#include <string.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "config/text.h"
#include "live/bans.h"

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
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname, "%s: ", printable(a->ifname).text);
	emit_string("key", o->args[1], NULL);
	emit_uint("lifted", n, "%zu ban%s lifted\n", n, units_plural(n));
	emit_close();
	return emit_end();
}

static int run_unban(struct options *o)
{
	if (o->n_args != 2 && o->n_args != 3)
		return misused("unban", "it wants IFACE KEY [RULE], or IFACE all [RULE]");
	return with_pacer(o, lift);
}

static const struct word_row unban_words[] = {
    {"KEY", "[RULE]", "as `status` writes it: of this rule, or of every one"},
    {"all", "[RULE]", "every ban: of this rule, or of every one"},
    {0},
};

const struct verb verb_unban = {"unban",
				"IFACE KEY|all [RULE]",
				"lift bans before their time",
				NULL,
				run_unban,
				.group = VERBS_CHANGE,
				.words = unban_words,
				.example = "xdp-pacer unban eth0 192.0.2.1"};
