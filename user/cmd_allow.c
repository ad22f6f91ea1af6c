/* SPDX-License-Identifier: GPL-2.0-only */
/* allow: the sources that no rule limits. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "text.h"

static uint64_t left_ns(uint64_t until_ns, uint64_t now_ns)
{
	return until_ns > now_ns ? until_ns - now_ns : 0;
}

static void print_entry(const struct allow_entry *entry, uint64_t now_ns, void *arg)
{
	json_t *array = *(json_t **)arg;
	char prefix[64], left[32];

	units_prefix_text(&entry->prefix, prefix, sizeof(prefix));
	if (array) {
		json_array_append_new(
		    array,
		    json_pack("{s:s, s:I, s:b, s:b, s:I}", "prefix", prefix, "left_ns",
			      (json_int_t)left_ns(allow_until_ns(entry), now_ns), "of_policy",
			      entry->of_policy, "by_hand", entry->by_hand, "hand_left_ns",
			      (json_int_t)left_ns(entry->hand_until_ns, now_ns)));
		return;
	}
	printf("%-44s%s", prefix,
	       entry->of_policy && entry->by_hand ? "of the policy, by hand"
	       : entry->of_policy		  ? "of the policy"
						  : "by hand");
	if (left_ns(entry->hand_until_ns, now_ns))
		printf(", %s left",
		       allow_left_text(left_ns(entry->hand_until_ns, now_ns), left, sizeof(left)));
	printf("\n");
}

static int list(struct attached *a, const struct options *o)
{
	json_t *array = o->json ? json_array() : NULL;
	struct policy_error error = {0};

	if (!change_allow_each(a, print_entry, &array, &error))
		return array ? print_json(array) : EXIT_DONE;
	json_decref(array);
	return complain(NULL, &error);
}

static int change(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	bool add = !strcmp(o->args[1], "add");
	struct allow_entry entry = {.hand_until_ns = o->for_ns ? loader_now() + o->for_ns : 0};

	if (units_prefix(o->args[2], &entry.prefix))
		return misused("allow",
			       "%s is not a prefix such as 192.0.2.0/24 or 2001:db8::/32 "
			       "with its host bits 0",
			       o->args[2]);
	if (add ? change_allow_add(a, &entry, &error) : change_allow_del(a, &entry.prefix, &error))
		return complain(NULL, &error);
	change_made();
	if (o->json)
		return print_json(json_pack("{s:o, s:s, s:b}", "interface", json_text(a->ifname),
					    "prefix", o->args[2], "allowed", add));
	printf("%s: %s is %s the allow-list\n", printable(a->ifname).text, o->args[2],
	       add ? "on" : "off");
	return EXIT_DONE;
}

static int run_allow(struct options *o)
{
	bool listing = o->n_args == 2 && !strcmp(o->args[1], "list");

	if (!listing && !(o->n_args == 3 && (!strcmp(o->args[1], "add") ||
					     (!strcmp(o->args[1], "del") && !o->for_ns))))
		return misused("allow", "it wants IFACE add|del PREFIX, or IFACE list");
	return with_pacer(o, listing ? list : change);
}

static const struct option_row allow_options[] = {
    {"for", 0, "TIME", "of add: take it off after that time", OPTION_TIME(for_ns)},
    {0},
};

const struct verb verb_allow = {"allow", "IFACE add|del|list [PREFIX]",
				"sources that no rule limits", allow_options, run_allow};
