/* SPDX-License-Identifier: GPL-2.0-only */
/* ban: keys that are denied until a time, whoever says so. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/comes_back.h"
#include "cli/each_line.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "config/text.h"
#include "live/bans.h"
#include "live/copies.h"

/* --- what is to be banned, or let off -------------------------------------------------------- */

struct wishes {
	struct ban_wish *wish; /* whose keys are copies */
	size_t n, room;
};

static void free_wishes(struct wishes *w)
{
	while (w->n)
		free((char *)w->wish[--w->n].key);
	free(w->wish);
}

static int add_wish(void *to, const char *key, uint64_t for_ns, int line)
{
	struct wishes *w = to;
	size_t room = w->room ? 2 * w->room : 256;
	struct ban_wish *more;
	char *copy;

	if (w->n == w->room) {
		more = realloc(w->wish, room * sizeof(*more));
		if (!more)
			return gave_up("ban", "no memory");
		w->wish = more;
		w->room = room;
	}
	copy = strdup(key);
	if (!copy)
		return gave_up("ban", "no memory");
	w->wish[w->n++] = (struct ban_wish){copy, for_ns, line, NULL, 0};
	return EXIT_DONE;
}

static int read_wishes(const struct options *o, struct wishes *w)
{
	bool add = !strcmp(o->args[1], "add");

	*w = (struct wishes){0};
	if (!strcmp(o->args[2], "-"))
		return each_line(add, o->for_ns, add_wish, w);
	return add_wish(w, o->args[2], o->for_ns, 0);
}

/* --- add, del, list -------------------------------------------------------------------------- */

static void emit_done(const struct attached *a, const char *name, const char *said,
		      const struct bans_done *done)
{
	emit_object("");
	emit_string("interface", a->ifname, "%s: ", printable(a->ifname).text);
	emit_uint(name, done->done, said, done->done, units_plural(done->done));
	emit_uint("left_out", done->left_out, NULL);
}

static int emit_done_end(const struct attached *a)
{
	output_also(a);
	emit_close();
	return emit_end();
}

static const char *which_key(const struct wishes *w, size_t which)
{
	return which < w->n ? w->wish[which].key : "";
}

/* What comes into force later, unless it is said to be banned there. */
static int complain_of(const struct attached *a, const struct wishes *w,
		       const struct bans_lack *lack, const char *where)
{
	if (!lack->n)
		return EXIT_DONE;
	complaint("%s: %zu of %zu keys %s banned now, and not %s: %s is the first: %.300s",
		  a->ifname, lack->n, w->n, lack->n == 1 ? "is" : "are", where,
		  which_key(w, lack->which), lack->why.text);
	return EXIT_FAILED;
}

static int complain_of_room(const struct attached *a, const struct wishes *w,
			    const struct bans_done *done)
{
	if (!done->left_out)
		return EXIT_DONE;
	complaint("%s: there was no room for %zu of %zu keys, of which %s is the first: raise bans "
		  "in the policy",
		  a->ifname, done->left_out, w->n, which_key(w, done->which));
	return EXIT_FAILED;
}

static int add_wishes(struct attached *a, const struct options *o, const struct wishes *w)
{
	struct policy_error error = {0};
	struct bans_done done = {0};
	int code = bans_add(a, o->rule, w->wish, w->n, &done, &error);

	if (code == BANS_WRONG) {
		error.line = done.which < w->n ? w->wish[done.which].line : 0;
		return error.line ? complain("-", &error) : misused("ban", "%s", error.text);
	}
	if (code) {
		if (done.done)
			change_noted(a);
		(void)complain_of_room(a, w, &done);
		return complain(NULL, &error);
	}
	change_noted(a);
	emit_begin(o->json);
	emit_done(a, "banned", "%zu key%s banned\n", &done);
	emit_uint("left_out_before", done.before.n, NULL);
	emit_uint("left_out_in_shadow", done.in_shadow.n, NULL);
	code = emit_done_end(a);
	if (complain_of_room(a, w, &done))
		code = EXIT_FAILED;
	if (complain_of(a, w, &done.before, "under the policy before, which may come back"))
		code = EXIT_FAILED;
	return complain_of(a, w, &done.in_shadow, "in its shadow") ? EXIT_FAILED : code;
}

static int add(struct attached *a, const struct options *o)
{
	struct wishes w;
	int code = read_wishes(o, &w);

	if (!code)
		code = add_wishes(a, o, &w);
	free_wishes(&w);
	return code;
}

static int not_banned(const struct attached *a, const struct options *o, const struct wishes *w,
		      const struct bans_done *done)
{
	char more[64] = "";

	if (done->left_out > 1)
		snprintf(more, sizeof(more), ", nor %s %zu other%s",
			 done->left_out == 2 ? "is" : "are", done->left_out - 1,
			 units_plural(done->left_out - 1));
	complaint("%s: %s is not banned%s%s%s: see `xdp-pacer ban %s list` for the keys as they "
		  "are written",
		  a->ifname, which_key(w, done->which), o->rule ? " under " : "",
		  o->rule ? o->rule : "", more, a->ifname);
	return EXIT_FAILED;
}

/* False where that cannot be seen, too. */
static bool lacks_rule(const struct attached *a, const char *rule)
{
	struct policy_error unused;
	struct policy *policy = copies_policy(a, copies_in_force(a), &unused);
	bool lacks = policy;

	for (size_t i = 0; policy && i < policy->n_rules; i++)
		lacks &= strcmp(policy->rule[i].name, rule) != 0;
	policy_free(policy);
	return lacks;
}

/* w NULL: of all keys. No wish at all is of none, and has no memory that says so. */
static int lift(struct attached *a, const struct options *o, const struct wishes *w)
{
	static const struct ban_wish none;
	const struct ban_wish *wish = !w ? NULL : w->n ? w->wish : &none;
	struct policy_error error = {0};
	struct bans_done done = {0};
	int code;

	if (bans_lift(a, o->rule, wish, w ? w->n : 0, &done, &error)) {
		if (done.done)
			change_noted(a);
		return complain(NULL, &error);
	}
	if (w && done.left_out && !done.done && !done.of_shadow)
		return not_banned(a, o, w, &done);
	if (!w && o->rule && !done.done && !done.of_shadow && lacks_rule(a, o->rule))
		return misused("ban", "%s: its policy has no rule %s", a->ifname, o->rule);
	change_noted(a);
	emit_begin(o->json);
	emit_done(a, "lifted", "%zu ban%s lifted", &done);
	emit_uint("lifted_in_shadow", done.of_shadow,
		  done.of_shadow != done.done && a->shadow_id ? "; %zu in its shadow" : NULL,
		  done.of_shadow);
	emit_text("\n");
	code = emit_done_end(a);
	if (done.done)
		say_bans_come_back(a, o->rule);
	return w && done.left_out ? not_banned(a, o, w, &done) : code;
}

static int del(struct attached *a, const struct options *o)
{
	struct wishes w;
	int code;

	if (!strcmp(o->args[2], "all"))
		return lift(a, o, NULL);
	code = read_wishes(o, &w);
	if (!code)
		code = lift(a, o, &w);
	free_wishes(&w);
	return code;
}

static int list(struct attached *a, const struct options *o)
{
	size_t n;

	emit_begin(o->json);
	n = output_bans(a, "", 0, SIZE_MAX);
	if (!n)
		emit_text("%s: no key is banned\n", printable(a->ifname).text);
	return emit_end();
}

static int run_ban(struct options *o)
{
	bool adds, dels, lists;

	if (o->n_args > 1 && no_word(&verb_ban, o->args[1]))
		return EXIT_WRONG;
	adds = o->n_args == 3 && !strcmp(o->args[1], "add");
	dels = o->n_args == 3 && !strcmp(o->args[1], "del") && !o->for_ns;
	lists = o->n_args == 2 && !strcmp(o->args[1], "list") && !o->for_ns && !o->rule;
	if (!adds && !dels && !lists)
		return misused("ban", "it wants IFACE add|del KEY, or IFACE list");
	return with_pacer(o, adds ? add : dels ? del : list);
}

static const struct option_row ban_options[] = {
    {"for", 0, "TIME", "of add: until that time has passed, else until it is lifted",
     OPTION_TIME(for_ns)},
    {"rule", 0, "RULE", "under this rule alone; KEY is one of its limits' keys", OPTION_TEXT(rule)},
    {0},
};

static const struct word_row ban_words[] = {
    {"add", "KEY|-", "ban a source, or many: a KEY [--for TIME] on each line of stdin", false},
    {"del", "KEY|all|-", "lift the key's bans, or all", false},
    {"list", "", "show each ban, its rule and how long it lasts", true},
    {0},
};

const struct verb verb_ban = {"ban",
			      "IFACE... add|del|list [KEY]",
			      "deny keys until a time, and lift bans",
			      ban_options,
			      run_ban,
			      .group = VERBS_CHANGE,
			      .interfaces = INTERFACES_LEAD,
			      .words = ban_words,
			      .example = "xdp-pacer ban eth0 add 192.0.2.1 --for 1h"};
