/* SPDX-License-Identifier: GPL-2.0-only */
/* sets: the policy's sets of prefixes, and changes of them by hand. */
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
#include "live/allowlist.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/in_shadow.h"
#include "live/sets.h"
#include "sets/texts.h"

/* --- what is to be added or taken out -------------------------------------------------------- */

struct wishes {
	struct set_hand add;
	struct set_list del;
	bool adds; /* a line may have a value behind the prefix */
};

static void free_wishes(struct wishes *w)
{
	set_hand_free(&w->add);
	set_list_free(&w->del);
}

/* The value behind the element on a line of stdin; cuts it off. NULL: there is none. */
static char *cut_value(char *text)
{
	char *value = text + strcspn(text, " \t");

	if (!*value)
		return NULL;
	*value = 0;
	return value + 1;
}

/* One element, that has a value or not: of a range, each prefix. 0, or the exit code. */
static int take_wish(struct wishes *w, const char *text, const char *value, uint64_t for_ns,
		     int line)
{
	uint64_t until_ns = for_ns ? host_now_ns() + for_ns : SET_HAND_STAYS;
	struct policy_error error = {0};
	size_t from = w->del.n;

	if (set_read_element(text, 1, line, &w->del, &error)) {
		if (error.line == POLICY_NO_MEMORY)
			return gave_up("sets", error.text);
		return line ? complain("-", &error) : misused("sets", "%s", error.text);
	}
	for (size_t i = from; i < w->del.n; i++)
		if (set_hand_add_named(&w->add, &w->del.entry[i], until_ns, value))
			return gave_up("sets", "no memory");
	return EXIT_DONE;
}

/* The name of a value, as one in a file: without the blanks around it. false: it will not do. */
static bool read_value(const char *text, char value[SET_NAME_MAX + 1])
{
	struct set_word name = set_trim((struct set_word){text, strlen(text)});

	if (!set_name_fits(name))
		return false;
	snprintf(value, SET_NAME_MAX + 1, "%.*s", (int)name.n, name.at);
	return true;
}

static int add_wish(void *to, const char *element, uint64_t for_ns, int line)
{
	struct wishes *w = to;
	char *text = strdup(element), *behind = NULL, value[SET_NAME_MAX + 1];
	int code;

	if (!text)
		return gave_up("sets", "no memory");
	if (w->adds)
		behind = cut_value(text);
	if (behind && !read_value(behind, value)) {
		struct policy_error error = {0};

		policy_explain(&error, line, "no value '%s': " SET_NAME_TODO, behind);
		code = complain("-", &error);
	} else {
		code = take_wish(w, text, behind ? value : NULL, for_ns, line);
	}
	free(text);
	return code;
}

static int read_wishes(const struct options *o, struct wishes *w)
{
	char value[SET_NAME_MAX + 1];

	*w = (struct wishes){.adds = !strcmp(o->args[1], "add")};
	if (o->n_args > 4 && !read_value(o->args[4], value))
		return misused("sets", "no value '%s': " SET_NAME_TODO, o->args[4]);
	if (strcmp(o->args[3], "-") != 0)
		return take_wish(w, o->args[3], o->n_args > 4 ? value : NULL, o->for_ns, 0);
	if (o->n_args > 4)
		return misused("sets", "of what stdin has, the value stands behind each prefix");
	return each_line(!strcmp(o->args[1], "add"), o->for_ns, add_wish, w);
}

/* --- changes --------------------------------------------------------------------------------- */

/* What was not done; in force it may be. */
static int say_failed(struct attached *a, int result, const struct policy_error *error)
{
	if (result == IN_SHADOW_FAILED)
		change_noted(a);
	return complain(NULL, error);
}

/* Of n prefixes, and of so many of its shadow's set. */
static int say_done(struct attached *a, const struct options *o, const char *name, const char *said,
		    size_t n, enum sets_shadow shadow, size_t of_shadow)
{
	change_noted(a);
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname, "%s: ", printable(a->ifname).text);
	emit_string("set", o->args[2], "set %s: ", o->args[2]);
	emit_uint(name, n, said, n, n == 1 ? "" : "es");
	if (shadow == SETS_NO_SHADOW)
		emit_null("in_shadow", "\n");
	else if (shadow == SETS_IN_SHADOW && of_shadow != n)
		emit_flag("in_shadow", true, "; %zu in its shadow\n", of_shadow);
	else
		emit_flag("in_shadow", shadow == SETS_IN_SHADOW,
			  shadow == SETS_IN_SHADOW ? "; the same in its shadow\n"
						   : "; its shadow's set stays as it is\n");
	output_also(a);
	emit_close();
	return emit_end();
}

static int add(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	enum sets_shadow shadow;
	struct wishes w;
	int code = read_wishes(o, &w), result;

	if (!code && w.add.n > SET_HAND_MAX) {
		complaint("%s: set %s: %zu prefixes at once are more than the %u that a set takes "
			  "by hand: replace it",
			  a->ifname, o->args[2], w.add.n, SET_HAND_MAX);
		code = EXIT_FAILED;
	}
	if (!code) {
		result = sets_add(a, o->args[2], &w.add, &shadow, &error);
		code = result ? say_failed(a, result, &error)
			      : say_done(a, o, "added", "%zu prefix%s added", w.add.n, shadow,
					 w.add.n);
	}
	free_wishes(&w);
	return code;
}

/* A wider prefix may have what was asked for. */
static int not_in(const struct attached *a, const struct options *o, const struct wishes *w,
		  const struct sets_done *done)
{
	struct prefix prefix = set_entry_prefix(&w->del.entry[done->which]);
	char text[64], more[64] = "";

	if (done->left_out > 1)
		snprintf(more, sizeof(more), ", nor %s %zu other%s",
			 done->left_out == 2 ? "is" : "are", done->left_out - 1,
			 units_plural(done->left_out - 1));
	complaint("%s: %s is no prefix of set %s%s: see `xdp-pacer sets %s show %s`", a->ifname,
		  units_prefix_text(&prefix, text, sizeof(text)), o->args[2], more, a->ifname,
		  o->args[2]);
	return EXIT_FAILED;
}

static int del(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	struct set_entry one, other;
	struct sets_done done = {0};
	enum sets_shadow shadow;
	struct wishes w;
	int code = read_wishes(o, &w), result;

	if (!code && set_list_sort(&w.del, &one, &other))
		code = gave_up("sets", "no memory");
	if (!code) {
		result = sets_del(a, o->args[2], &w.del, &done, &shadow, &error);
		code = result ? say_failed(a, result, &error) : EXIT_DONE;
	}
	if (!code && (done.done || done.of_shadow || !done.left_out)) { /* of nothing, too */
		code = say_done(a, o, "taken_out", "%zu prefix%s taken out", done.done, shadow,
				done.of_shadow);
		if (done.done)
			say_set_comes_back(a, o->args[2]);
	}
	if (!code && done.left_out)
		code = not_in(a, o, &w, &done);
	free_wishes(&w);
	return code;
}

/* The values of a set have the numbers that its policy gives them. 0, or the exit code. */
static int read_file(const struct attached *a, const struct options *o, struct set_text *text,
		     uint64_t *serial)
{
	uint32_t copy = copies_in_force(a);
	struct policy_error error = {0};
	struct policy *policy;
	size_t i = 0;
	int code = EXIT_DONE;

	*serial = a->copy[copy].policy.serial;
	policy = copies_policy(a, copy, &error);
	if (!policy)
		return complain(NULL, &error);
	while (i < policy->n_sets && strcmp(policy->set[i].name, o->args[2]))
		i++;
	if (i == policy->n_sets) {
		struct set_source source = {o->args[3], 0, NULL};

		/* It may be of the policy before a trial; what is wrong with it is said later. */
		code = set_read_file(o->args[3], &source, text, &error) ? 1 : 0;
	} else {
		code = set_texts_read_one(policy, i, o->args[3], text, &error) ? 1 : 0;
	}
	policy_free(policy);
	return code ? complain(o->args[3], &error) : EXIT_DONE;
}

static int replace(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	struct set_text text = {.timeouts = 0};
	enum sets_shadow shadow;
	uint64_t serial;
	int code = read_file(a, o, &text, &serial), result;

	if (code)
		return code;
	result = sets_replace(a, o->args[2], &text.list, serial, &shadow, &error);
	code = result ? say_failed(a, result, &error)
		      : say_done(a, o, "prefixes", "%zu prefix%s in it now", text.list.n, shadow,
				 text.list.n);
	if (!result)
		say_set_comes_back(a, o->args[2]);
	set_text_free(&text);
	return code;
}

/* --- what there is --------------------------------------------------------------------------- */

static void emit_info(const struct sets_info *info, void *arg)
{
	const struct policy_set *set = info->set;
	uint64_t n = (uint64_t)info->prefixes[0] + info->prefixes[1];
	char text[32];
	size_t *sets = arg;

	(*sets)++;
	emit_row();
	emit_object("");
	emit_string("name", set->name, "%s", set->name);
	emit_uint("prefixes", n, "%s", thousands(n).text);
	emit_uint("by_hand", info->added, "%s", info->added ? thousands(info->added).text : "");
	emit_uint("memory_bytes", info->bytes, "%s",
		  units_size_round(info->bytes, text, sizeof(text)));
	if (info->counted) {
		emit_uint("packets", info->count.packets, "%s",
			  thousands(info->count.packets).text);
		emit_uint("bytes", info->count.bytes, "%s", thousands(info->count.bytes).text);
	} else {
		emit_null("packets", "-");
		emit_null("bytes", "-");
	}
	if (set->file[0])
		emit_string("file", set->file, "%s", printable(set->file).text);
	else
		emit_null("file", "of the policy");
	emit_close();
}

static int list(struct attached *a, const struct options *o)
{
	static const struct emit_column columns[] = {
	    {"SET", false},    {"PREFIXES", true}, {"BY HAND", true}, {"MEMORY", true},
	    {"PACKETS", true}, {"BYTES", true},	   {"FROM", false},   {0}};
	struct policy_error error = {0};
	size_t n = 0;
	int failed;

	emit_begin(o->json);
	emit_array("");
	emit_table(columns, 0);
	failed = sets_each(a, emit_info, &n, &error);
	if (failed || !n) {
		emit_drop();
		if (failed)
			return complain(NULL, &error);
		emit_begin(o->json);
		emit_array("");
		emit_text("%s: its policy has no sets\n", printable(a->ifname).text);
	} else {
		emit_table_end();
	}
	emit_close();
	return emit_end();
}

static const char *prefix_text(const struct set_entry *e, char *text, size_t size)
{
	struct prefix prefix = set_entry_prefix(e);

	return units_prefix_text(&prefix, text, size);
}

static void emit_hand(const struct set_hand *hand)
{
	uint64_t now_ns = host_now_ns();
	char text[64], left[32];

	emit_array("by_hand");
	for (size_t i = 0; i < hand->n; i++) {
		const struct set_hand_entry *h = &hand->entry[i];
		uint64_t left_ns = h->until_ns == SET_HAND_STAYS ? 0 : h->until_ns - now_ns;
		const char *value = set_hand_value(hand, h);

		if (h->until_ns <= now_ns)
			continue;
		emit_row();
		emit_object("");
		emit_string("prefix", prefix_text(&h->e, text, sizeof(text)), "%s", text);
		emit_uint("left_ns", left_ns, left_ns ? "by hand, %s left" : "by hand",
			  allow_left_text(left_ns, left, sizeof(left)));
		if (value)
			emit_string("value", value, "%s", printable(value).text);
		else
			emit_null("value", "%s", "");
		emit_close();
	}
	emit_close();
}

/* Of a set that keys have or a fleet shares; of others the kernel does not know them all. */
static const char *value_of(const struct set_names *names, const struct set_entry *e)
{
	uint32_t at = e->value - 1u; /* of value 0, which is none, it is beyond all */

	return at < names->n ? names->name[at] : NULL;
}

static int show(struct attached *a, const struct options *o)
{
	static const struct emit_column columns[] = {{"", false}, {"", false}, {"", false}, {0}};
	static const size_t widths[] = {20, 0, 0};
	struct policy_error error = {0};
	struct set_names names;
	struct set_list list;
	struct set_hand hand;
	char text[64];

	if (sets_take_named(a, o->args[2], &list, &names, &hand, &error))
		return complain(NULL, &error);
	emit_begin(o->json);
	emit_object("");
	emit_string("set", o->args[2], NULL);
	emit_table_at_once(columns, widths, 0);
	emit_array("prefixes");
	for (size_t i = 0; i < list.n && !stdout_failed(); i++) {
		const char *value = value_of(&names, &list.entry[i]);

		emit_row();
		emit_string("", prefix_text(&list.entry[i], text, sizeof(text)), "%s", text);
		emit_text("%s", value ? printable(value).text : "");
		emit_skip(1);
	}
	emit_close();
	emit_array("values");
	for (size_t i = 0; i < list.n && names.n; i++)
		emit_string("", value_of(&names, &list.entry[i]), NULL);
	emit_close();
	emit_hand(&hand);
	emit_table_end();
	if (!list.n && !hand.n)
		emit_text("%s: set %s has no prefix\n", printable(a->ifname).text, o->args[2]);
	emit_close();
	set_list_free(&list);
	set_names_free(&names);
	set_hand_free(&hand);
	return emit_end();
}

/* --- the verb -------------------------------------------------------------------------------- */

static const struct {
	const char *word;
	int n_args;
	bool timed;
	int (*run)(struct attached *a, const struct options *o);
} word_of[] = {
    {"list", 2, false, list}, {"show", 3, false, show}, {"add", 4, true, add},
    {"add", 5, true, add},    {"del", 4, false, del},	{"replace", 4, false, replace},
};

static int run_sets(struct options *o)
{
	if (o->n_args > 1 && no_word(&verb_sets, o->args[1]))
		return EXIT_WRONG;
	for (size_t i = 0; i < sizeof(word_of) / sizeof(*word_of); i++)
		if (o->n_args == word_of[i].n_args && !strcmp(o->args[1], word_of[i].word) &&
		    (word_of[i].timed || !o->for_ns))
			return with_pacer(o, word_of[i].run);
	return misused("sets", "it wants IFACE list, IFACE show SET, IFACE add SET PREFIX [VALUE], "
			       "IFACE del SET PREFIX, or IFACE replace SET FILE");
}

static const struct option_row sets_options[] = {
    {"for", 0, "TIME", "of add: it goes out by itself after that time", OPTION_TIME(for_ns)},
    {0},
};

static const struct word_row sets_words[] = {
    {"list", "", "show each set: how large it is, and what had an address in it", true},
    {"show", "SET", "show its prefixes", true},
    {"add", "SET PREFIX|- [VALUE]",
     "put a prefix in, or many: a PREFIX [VALUE] [--for TIME] on each line of stdin", false},
    {"del", "SET PREFIX|-", "take prefixes out, whoever put them in", false},
    {"replace", "SET FILE|-", "nothing but the prefixes of a file, at once", false},
    {0},
};

const struct verb verb_sets = {"sets",
			       "IFACE... list|show|add|del|replace [SET] [PREFIX|FILE]",
			       "sets of prefixes that rules match on",
			       sets_options,
			       run_sets,
			       .group = VERBS_CHANGE,
			       .interfaces = INTERFACES_LEAD,
			       .words = sets_words,
			       .example = "xdp-pacer sets eth0 add drop 192.0.2.0/24 --for 1h"};
