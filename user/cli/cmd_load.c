/* SPDX-License-Identifier: GPL-2.0-only */
/* load, unload: put a pacer on an interface, take it off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "config/text.h"
#include "live/attach.h"
#include "live/attached.h"
#include "live/copies.h"
#include "live/detach.h"
#include "live/host.h"
#include "live/load_trial.h"
#include "live/pinned.h"
#include "live/restore.h"
#include "live/state_file.h"
#include "plan/compile.h"
#include "plan/keymask.h"
#include "plan/throttles.h"

/* 0, or the exit code. */
int read_site_mode(const char *verb, const char *text, enum site_mode *mode)
{
	for (enum site_mode m = SITE_NATIVE; text && m <= SITE_HW; m++)
		if (!strcmp(text, site_mode_name(m))) {
			*mode = m;
			return 0;
		}
	return text ? misused(verb, "there is no mode %s: native, skb or hw", text) : 0;
}

/* What status says, and which pacer it replaced. */
static void emit_loaded(struct attached *a, const struct options *o,
			const struct attach_replaced *replaced, const struct restored *restored)
{
	emit_object("");
	output_status(a);
	if (replaced->program_id) {
		emit_object("replaced");
		emit_uint("program_id", replaced->program_id, "%s: took the place of program %u, ",
			  printable(a->ifname).text, replaced->program_id);
		emit_uint("abi", replaced->abi, "ABI %u: ", replaced->abi);
		emit_string("state", restored ? "restored" : "new",
			    restored ? "its state is that of the file\n"
				     : "its state is new, and the counts, bans and allow-list of "
				       "that one are gone\n");
		output_partners_of(a->ifname, replaced->map_id, "that one's goes on with ", "\n");
		emit_close();
	}
	if (restored)
		output_restored(restored);
	if (o->confirm_ns)
		emit_text(load_trial_lapsed(a)
			      ? "nobody confirmed it in time, and it is taken off: load %s again\n"
			      : "confirm it, or it is taken off: xdp-pacer confirm %s\n",
			  printable(a->ifname).text);
	emit_close();
}

static int show_loaded(struct attached *a, const struct options *o,
		       const struct attach_replaced *replaced, const struct restored *restored)
{
	if (o->n_args == 1)
		emit_begin(o->json);
	else
		emit_many_begin(o->json);
	for (int i = 0; i < o->n_args; i++) {
		if (o->n_args > 1)
			emit_many_next(o->args[i], false);
		emit_loaded(&a[i], o, &replaced[i], restored);
	}
	return o->n_args == 1 ? emit_end() : emit_many_end();
}

static int make_way(const struct options *o, struct policy_error *error)
{
	int result = 0;

	for (int i = 0; i < o->n_args && !result; i++)
		result = load_trial_make_way(o->args[i], error);
	return result;
}

/* Each waits for its own to end, or to be confirmed. */
static void watch_trial(const struct attached *a, const struct options *o)
{
	struct policy_error error;

	for (int i = 0; i < o->n_args && o->confirm_ns; i++)
		if (load_trial_watch(&a[i], &error))
			complaint("%s", error.text);
}

/*
 * Who takes a pacer's place waits for changes of others, and for others that take its place: under
 * a dispatcher two of them would leave two pacers.
 */
static int attach_all(const struct options *o, const struct attach_options *load,
		      const struct object_begin *begin, struct attached *a,
		      struct attach_replaced *replaced, struct policy_error *error)
{
	int fd = -1, result;

	/* Who waits for a trial to end takes the pacer off under the lock. */
	if (make_way(o, error) || (o->confirm_ns && copies_may_lock(error)) ||
	    (load->replace && (fd = copies_lock(error)) < 0))
		return -1;
	result = attach_pacers((const char *const *)o->args, (size_t)o->n_args, load, begin, a,
			       replaced, error);
	if (fd >= 0)
		close(fd);
	return result;
}

/* All of the interfaces, or none. restored NULL: they begin with no state. */
static int attach(const struct options *o, const struct object_begin *begin,
		  const struct restored *restored)
{
	struct attached *a = calloc((size_t)o->n_args, sizeof(*a));
	struct attach_replaced *replaced = calloc((size_t)o->n_args, sizeof(*replaced));
	struct attach_options load = o->load;
	struct policy_error error = {0};
	int code = EXIT_FAILED;

	if (!a || !replaced) {
		code = gave_up("load", "no memory");
	} else if (read_site_mode("load", o->mode, &load.mode)) {
		code = EXIT_WRONG;
	} else if (attach_all(o, &load, begin, a, replaced, &error)) {
		code = complain(NULL, &error);
	} else {
		for (int i = 0; i < o->n_args; i++) {
			change_noted(&a[i]);
			joined_noted(&a[i]);
			tags_noted(&a[i]);
			if (restored)
				memory_noted(&a[i], begin->policy, NULL, true);
		}
		watch_trial(a, o);
		code = show_loaded(a, o, replaced, restored);
		for (int i = 0; i < o->n_args; i++)
			attached_release(&a[i]);
	}
	free(replaced);
	free(a);
	return code;
}

/*
 * What a load on trial gives way to; 0, or -1 with *error filled. A policy may follow that as long
 * as nobody has taken the pacer off: what targets got on trial counts then.
 */
static int add_nothing(struct object_begin *begin, const struct compile_host *host,
		       struct policy_error *error)
{
	struct policy *nothing = policy_parse(LOAD_NOTHING, strlen(LOAD_NOTHING), error);
	static struct pacer_policy bin;
	static struct plan plan;
	int result;

	if (!nothing)
		return -1;
	result = compile_policy(nothing, NULL, host, &bin, &plan, error);
	policy_free(nothing);
	if (!result)
		throttle_leave_targets(begin->bin, host->now_ns, &bin);
	bin.serial = 0;
	begin->other = &bin;
	begin->other_text = LOAD_NOTHING;
	return result;
}

/* The policy's text and the policy, watching alone. 0, or the exit code. */
static int monitor(const struct options *o, char **text, struct policy *policy)
{
	struct policy_error error = {0};
	char *monitored = policy_set(*text, strlen(*text), "mode", "monitor", &error);

	if (!monitored)
		return complain(o->policy, &error);
	free(*text);
	*text = monitored;
	policy->monitor = true;
	return EXIT_DONE;
}

/* Its sets are read. state NULL: it begins with none. */
static int load_with(const struct options *o, const char *text, const struct policy *policy,
		     const struct set_texts *sets, struct state *state)
{
	struct policy_error error = {0};
	int cpus = host_cpus(&error);
	const struct clocks now = clocks_read();
	struct compile_host host = {host_resolution_ns(), now.mono_ns, cpus};
	static struct pacer_policy bin;
	static struct plan plan;
	struct output_sets counted;
	struct restored restored;
	struct object_begin begin;

	if (cpus < 0 || output_sets(policy, sets, &counted, &error))
		return complain(NULL, &error);
	if (output_memory_error(policy, o->shared ? 1 : (uint64_t)o->n_args, counted.all_bytes,
				&error) ||
	    (state ? restore_plan(state, policy, &now, &host, &bin, &plan, &restored, &error)
		   : compile_policy(policy, NULL, &host, &bin, &plan, &error)))
		return complain(o->policy, &error);
	begin = (struct object_begin){.policy = policy,
				      .bin = &bin,
				      .plan = &plan,
				      .sets = sets,
				      .text = text,
				      .lines = plan.lines,
				      .shared = o->shared,
				      .resolution_ns = host.resolution_ns,
				      .tools = o->load.pin,
				      .restored = state,
				      .confirm_ns = o->confirm_ns};
	if (o->confirm_ns && add_nothing(&begin, &host, &error))
		return complain(NULL, &error);
	return attach(o, &begin, state ? &restored : NULL);
}

static int load(const struct options *o, char **text, struct policy **policy, struct state *state)
{
	struct policy_error error = {0};
	static struct set_texts sets;
	int unlike = o->monitor ? monitor(o, text, *policy) : EXIT_DONE, code;

	if (unlike)
		return unlike;
	if (state)
		keymask_keep_values(*policy, state->bin);
	if (set_texts_read(*policy, &sets, &error))
		return complain(o->policy, &error);
	code = load_with(o, *text, *policy, &sets, state);
	set_texts_free(&sets);
	return code;
}

/* 0, or the exit code. */
static int check_names(const struct options *o)
{
	if (o->n_args < 1 || !o->policy)
		return misused("load", "it wants one interface or more, and -c POLICY");
	if (o->shared && o->n_args < 2)
		return misused("load", "--shared wants two interfaces or more");
	if (o->restore && o->n_args > 1)
		return misused("load",
			       "--restore wants one interface: a file is one pacer's state");
	if (o->confirm_ns && o->load.replace)
		return misused("load", "the pacer that --replace takes off cannot come back: try a "
				       "policy with `apply --confirm-within`");
	for (int i = 0; i < o->n_args; i++)
		for (int k = 0; k < i; k++)
			if (!strcmp(o->args[i], o->args[k]))
				return misused("load", "%s is named twice", o->args[i]);
	return o->restore ? misused_stream("load", o->restore) : EXIT_DONE;
}

static int load_restored(const struct options *o, char **text, struct policy **policy)
{
	struct policy_error error = {0};
	struct state state;
	int code;

	if (state_read(o->restore, &state, &error))
		return complain(NULL, &error);
	code = load(o, text, policy, &state);
	state_free(&state);
	return code;
}

static int run_load(struct options *o)
{
	struct policy *policy;
	char *text;
	int code = check_names(o);

	if (!code)
		code = read_policy(o->policy, &text, &policy);
	if (code)
		return code;
	code = o->restore ? load_restored(o, &text, &policy) : load(o, &text, &policy, NULL);
	policy_free(policy);
	free(text);
	return code;
}

static const struct option_row load_options[] = {
    OPTION_POLICY,
    {"mode", 'm', "native|skb|hw", "where to attach: native unless said", OPTION_TEXT(mode)},
    {"monitor", 0, NULL, "judge and count, and let everything pass", OPTION_FLAG(monitor)},
    {"shared", 0, NULL, "one state for all of these interfaces: a limit holds over them together",
     OPTION_FLAG(shared)},
    {"direct", 0, NULL, "not through the libxdp dispatcher", OPTION_FLAG(load.direct)},
    {"replace", 0, NULL, "take the place of a pacer of any version", OPTION_FLAG(load.replace)},
    {"pin", 0, NULL, "pins for other tools that ban sources, under " PINNED_AT,
     OPTION_FLAG(load.pin)},
    {"restore", 0, "FILE", "go on with the state that `save` wrote", OPTION_TEXT(restore)},
    OPTION_CONFIRM("it is taken off again unless confirmed by then"),
    {0},
};

const struct verb verb_load = {"load",
			       "IFACE...",
			       "attach the pacer to an interface, or to several",
			       load_options,
			       run_load,
			       .group = VERBS_ARG,
			       .example = "xdp-pacer load eth0 -c policy.yaml --monitor"};

/* last NULL: its counters cannot be read, and why says why not. */
static int show_last(const struct attached *last, const char *ifname, const struct options *o,
		     struct policy_error *why)
{
	static struct reading counted;
	bool known = last && !reading_count(last, &counted, why);

	emit_begin(o->json);
	emit_object("");
	emit_string("interface", ifname, "%s: ", printable(ifname).text);
	emit_flag("attached", false, "the pacer is off%s\n", known ? "; what it had counted:" : "");
	if (last)
		output_partners(last, "  state shared with ", ", which goes on with it\n");
	if (known) {
		output_stats(ifname, "last", &counted, NULL, NULL, false);
		reading_free(&counted);
	} else {
		emit_null("last", "  what it had counted cannot be read: %s\n", why->text);
	}
	emit_close();
	return emit_end();
}

/* The counters are there for as long as they are looked at; those of another version cannot be. */
static int unload(const char *ifname, const struct options *o)
{
	struct policy_error error = {0}, why = {0};
	struct pins_left left;
	struct attached last;
	bool known = !attached_find(ifname, &last, &why);
	int code;

	if (detach_pacer(ifname, &left, &error)) {
		code = complain(NULL, &error);
	} else {
		if (known)
			change_noted(&last); /* for whoever follows it */
		else
			change_made();
		code = show_last(known ? &last : NULL, ifname, o, &why);
		if (detach_left(ifname, &left, &error))
			code = complain(NULL, &error);
	}
	if (known)
		attached_release(&last);
	return code;
}

static int run_unload(struct options *o)
{
	if (o->n_args != 1)
		return misused("unload", "it wants one interface or more");
	return unload(o->args[0], o);
}

const struct verb verb_unload = {"unload",
				 "IFACE...",
				 "detach it and remove what it left",
				 NULL,
				 run_unload,
				 .group = VERBS_ARG,
				 .interfaces = INTERFACES_ONLY,
				 .any_version = true,
				 .example = "xdp-pacer unload eth0"};
