/* SPDX-License-Identifier: GPL-2.0-only */
/* allow: the sources that no rule limits. */
#include <string.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "config/text.h"
#include "live/allow.h"
#include "live/host.h"
#include "live/in_shadow.h"

static uint64_t left_ns(uint64_t until_ns, uint64_t now_ns)
{
	return until_ns > now_ns ? until_ns - now_ns : 0;
}

static void emit_entry(const struct allow_entry *entry, uint64_t now_ns, void *arg)
{
	uint64_t hand_ns = left_ns(entry->hand_until_ns, now_ns);
	bool by_hand = entry->by_hand && (!entry->hand_until_ns || hand_ns);
	char prefix[64], left[32];
	size_t *n = arg;

	(*n)++;
	units_prefix_text(&entry->prefix, prefix, sizeof(prefix));
	emit_row();
	emit_object("");
	emit_string("prefix", prefix, "%s", prefix);
	emit_uint("left_ns", left_ns(allow_until_ns(entry), now_ns), NULL);
	emit_flag("of_policy", entry->of_policy, NULL);
	emit_flag("by_hand", by_hand, "%s%s%s", entry->of_policy ? "of the policy" : "",
		  entry->of_policy && by_hand ? ", " : "", by_hand ? "by hand" : "");
	emit_uint("hand_left_ns", hand_ns, hand_ns ? "%s left" : NULL,
		  allow_left_text(hand_ns, left, sizeof(left)));
	emit_close();
}

static int list(struct attached *a, const struct options *o)
{
	static const struct emit_column columns[] = {{"", false}, {"", false}, {"", true}, {0}};
	struct policy_error error = {0};
	size_t n = 0;
	int failed;

	emit_begin(o->json);
	emit_array("");
	emit_table(columns, 0);
	failed = allow_each(a, emit_entry, &n, &error);
	if (failed) {
		emit_drop();
		return complain(NULL, &error);
	}
	emit_table_end();
	emit_close();
	if (!n)
		emit_text("%s: no source is on the allow-list\n", printable(a->ifname).text);
	return emit_end();
}

static int change(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	bool add = !strcmp(o->args[1], "add");
	struct allow_entry entry = {.hand_until_ns = o->for_ns ? host_now_ns() + o->for_ns : 0};
	struct prefix four;
	char text[64];
	int result;

	if (units_prefix(o->args[2], &entry.prefix))
		return misused("allow",
			       "%s is not a prefix such as 192.0.2.0/24 or 2001:db8::/32 "
			       "with its host bits 0",
			       o->args[2]);
	if (add && units_prefix_mapped(&entry.prefix, &four))
		return misused(
		    "allow",
		    "%s is an IPv4 address in the form of IPv6, and no packet has it: write %s",
		    o->args[2], units_prefix_text(&four, text, sizeof(text)));
	result = add ? allow_add(a, &entry, &error) : allow_del(a, &entry.prefix, &error);
	if (!result || result == IN_SHADOW_FAILED)
		change_noted(a);
	if (result)
		return complain(NULL, &error);
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname, "%s: ", printable(a->ifname).text);
	emit_string("prefix", o->args[2], "%s is ", o->args[2]);
	emit_flag("allowed", add, "%s the allow-list\n", add ? "on" : "off");
	output_also(a);
	emit_close();
	return emit_end();
}

static int run_allow(struct options *o)
{
	bool listing = o->n_args == 2 && !strcmp(o->args[1], "list") && !o->for_ns;

	if (o->n_args > 1 && no_word(&verb_allow, o->args[1]))
		return EXIT_WRONG;
	if (!listing && !(o->n_args == 3 && (!strcmp(o->args[1], "add") ||
					     (!strcmp(o->args[1], "del") && !o->for_ns))))
		return misused("allow", "it wants IFACE add|del PREFIX, or IFACE list");
	return with_pacer(o, listing ? list : change);
}

static const struct option_row allow_options[] = {
    {"for", 0, "TIME", "of add: take it off after that time", OPTION_TIME(for_ns)},
    {0},
};

static const struct word_row allow_words[] = {
    {"add", "PREFIX", "put it on the list; with --for TIME it goes off by itself", false},
    {"del", "PREFIX", "take it off, also where the policy had put it on", false},
    {"list", "", "show each prefix, why it is there and for how long", true},
    {0},
};

const struct verb verb_allow = {"allow",
				"IFACE... add|del|list [PREFIX]",
				"sources that no rule limits",
				allow_options,
				run_allow,
				.group = VERBS_CHANGE,
				.interfaces = INTERFACES_LEAD,
				.words = allow_words,
				.example = "xdp-pacer allow eth0 add 192.0.2.0/24 --for 10m"};
