/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * serve: a pacer as a service: puts it on, says when it is there, saves what it holds from time to
 * time and at the end. The pacer itself does not need it: it goes on when this ends, however it
 * ends.
 */
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/notify.h"
#include "cli/output.h"
#include "cli/several.h"
#include "config/file_lock.h"
#include "config/text.h"
#include "live/attach.h"
#include "live/copies.h"
#include "live/detach.h"
#include "live/host.h"
#include "live/load_trial.h"
#include "live/pinned.h"
#include "live/save.h"
#include "live/serve.h"
#include "live/state_file.h"
#include "plan/keymask.h"
#include "sets/texts.h"

#define EVERY_NS (10 * 60 * 1000000000ull)
#define LOOK_NS	 2000000000ull /* at whether the pacer is still there */

static const char *begun_text(enum served served)
{
	switch (served) {
	case SERVED_LOADED:
		return "loaded, with new state";
	case SERVED_RESTORED:
		return "loaded, with the state that was saved";
	case SERVED_TAKEN_OVER:
		return "taken over as it was";
	}
	return "?";
}

/* The policy was put in force on the pacer that is there, and where its state is, too. */
static void emit_applied(const struct attached *a, const struct restored *restored)
{
	if (restored->bans_left_out)
		emit_uint("bans_left_out", restored->bans_left_out,
			  "bans that it has no room for, and which end: %zu\n",
			  restored->bans_left_out);
	output_also(a);
}

static const char *begun_name(enum served served)
{
	return served == SERVED_LOADED	   ? "loaded"
	       : served == SERVED_RESTORED ? "restored"
					   : "taken_over";
}

/*
 * Of a pacer that is there, which is taken over, or of the state that was saved. A load that has
 * lapsed, or may lapse in a moment, gives its place up.
 */
static void keep_values(const char *ifname, const char *file, struct policy *policy)
{
	struct policy_error unused;
	struct attached there;
	struct state saved;
	bool stays = false;

	if (!attached_find(ifname, &there, &unused)) {
		copies_keep_values(&there, policy);
		stays = !load_trial_pending(&there) && !load_trial_lapsed(&there);
		attached_release(&there);
	}
	if (!stays && !state_read(file, &saved, &unused)) {
		keymask_keep_values(policy, saved.bin);
		state_free(&saved);
	}
}

/* Signals wait from when all is read: before, one ends it, as it waits for a pipe. */
static int begin(const char *ifname, const struct options *o, struct attached *a)
{
	struct policy_error error = {0}, why;
	struct attach_options load = o->load;
	static struct set_texts sets;
	struct output_sets counted;
	struct policy *policy;
	struct restored restored;
	enum served served;
	int code, result;
	char *text;

	if (read_site_mode("serve", o->mode, &load.mode))
		return EXIT_WRONG;
	load.mode_given = o->mode != NULL;
	code = read_policy(o->policy, &text, &policy);
	if (code)
		return code;
	if (policy->n_sets)
		keep_values(ifname, o->state, policy);
	result = set_texts_read(policy, &sets, &error) ||
			 output_sets(policy, &sets, &counted, &error) ||
			 output_memory_error(policy, 1, counted.all_bytes, &error)
		     ? -1
		     : 0;
	code = result ? 0 : until_ended(ENDS_OF_SERVICE);
	if (!result && !code)
		result = serve_begin(ifname, &load, text, policy, &sets, o->state, a, &served,
				     &restored, &why, &error);
	set_texts_free(&sets);
	if (!result && !code && served != SERVED_LOADED)
		memory_noted(a, policy, o->state, served == SERVED_RESTORED);
	policy_free(policy);
	free(text);
	if (result)
		return complain(error.line ? o->policy : NULL, &error);
	if (code)
		return code;
	change_noted(a);
	joined_noted(a);
	tags_noted(a);
	if (*why.text)
		complaint("%s", why.text);
	if (state_place(o->state, &error))
		complaint("%s", error.text);
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", ifname, "%s: ", printable(ifname).text);
	emit_string("pacer", begun_name(served), "the pacer is %s%s\n", begun_text(served),
		    served == SERVED_TAKEN_OVER && !strcmp(a->mode, "skb") ? ", in skb mode" : "");
	if (served == SERVED_RESTORED)
		output_restored(&restored);
	else if (served == SERVED_TAKEN_OVER && !*why.text)
		emit_applied(a, &restored);
	emit_close();
	code = emit_end_line();
	(void)flushed(); /* where it cannot be told it serves nevertheless, and fails at the end */
	if (code)
		attached_release(a);
	return code;
}

static void save_now(struct attached *a, const char *file)
{
	struct policy_error error = {0};
	struct saved saved;

	if (save_running(a, file, &saved, &error))
		complaint("%s", error.text);
	else
		(void)notify_status("its state was saved: %" PRIu64 " bytes", saved.bytes);
}

/* Of an interface with another name by now the pacer goes on. */
static void say_ended(const char *ifname, int ifindex, const struct policy_error *why)
{
	char name[IF_NAMESIZE];

	if (if_indextoname((unsigned int)ifindex, name) && strcmp(name, ifname))
		complaint("%s: it is no longer served: its name is %s now, and its pacer goes on "
			  "there: serve %s",
			  ifname, name, name);
	else
		complaint("it is no longer served: %s", why->text);
}

static bool has_no_interface(const struct attached *a)
{
	char name[IF_NAMESIZE];

	return !if_indextoname((unsigned int)a->ifindex, name) && errno == ENXIO;
}

/*
 * Where the interface has gone: for the next of that name. A pacer that was taken off is somebody's
 * wish, and what he saved may be in the file.
 */
static void save_last(struct attached *a, const char *file)
{
	struct policy_error error = {0};
	struct saved saved;

	if (has_no_interface(a) && save_gone(a, file, &saved, &error))
		complaint("its state was not saved at the end: %s", error.text);
}

/* Finds it again if it is another by now. As attached_next. */
static int follow(const char *ifname, struct attached *a, const char *file,
		  struct policy_error *error)
{
	if (attached_same(ifname, a))
		return 0;
	save_last(a, file);
	return attached_next(ifname, a, error);
}

/* Where it cannot be told who paces the interface, that is said once, and it is looked at again. */
static void say_unseen(int followed, bool *unseen, const struct policy_error *why)
{
	if (followed < 0 && !*unseen)
		complaint("%s; it is served on, and looked for again every 2 s", why->text);
	*unseen = followed < 0;
}

/*
 * Until a signal comes. False: nobody paces the interface any more, which is somebody else's wish,
 * and *a is released. A pacer that took the place of the other is served as that was.
 */
static bool attend(const char *ifname, struct attached *a, const struct options *o)
{
	uint64_t every_ns = o->every_ns ? o->every_ns : EVERY_NS;
	uint64_t due_ns = host_now_ns() + every_ns;
	struct policy_error error = {0};
	bool stopped = false, unseen = false;

	while (!stopped) {
		uint64_t now_ns = host_now_ns(), left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
		int ifindex = a->ifindex, followed;

		stopped = ends_wait(left_ns && left_ns < LOOK_NS ? left_ns : LOOK_NS);
		(void)notify_again();
		followed = follow(ifname, a, o->state, &error);
		if (followed > 0) {
			if (!stopped)
				say_ended(ifname, ifindex, &error);
			attached_release(a);
			return false;
		}
		say_unseen(followed, &unseen, &error);
		if (!stopped && !unseen && host_now_ns() >= due_ns) {
			save_now(a, o->state);
			due_ns = host_now_ns() + every_ns;
		}
	}
	return true;
}

/* Where it could not be taken off, as while a policy is on trial: the file is of now, all the same.
 */
static void save_at_least(struct attached *a, const char *file)
{
	struct policy_error error = {0};
	struct saved saved;

	if (!attached_still(a, &error) && !save_running(a, file, &saved, &error))
		complaint("its state was saved, and the pacer goes on");
}

static int end_failed(struct attached *a, const struct options *o, const struct policy_error *why)
{
	complaint("%s: %s",
		  o->and_unload	     ? "it was not saved and taken off"
		  : attached_gone(a) ? "its state was not saved at the end"
				     : "its state was not saved at the end, and the pacer goes on",
		  why->text);
	if (o->and_unload)
		save_at_least(a, o->state);
	return EXIT_FAILED;
}

/* For the next of that name. Nobody here can tell whether it is in another network namespace. */
static int end_gone(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	struct saved saved;

	if (save_gone(a, o->state, &saved, &error)) {
		complaint("its state was not saved at the end: %s", error.text);
		return EXIT_FAILED;
	}
	complaint(
	    "%s has gone, and its state was saved; if it is in another network namespace, its "
	    "pacer goes on there",
	    a->ifname);
	return EXIT_DONE;
}

static int end(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	struct saved saved;

	(void)notify_stopping("saving its state");
	if (o->and_unload ? save_and_unload(a, o->state, &saved, &error)
			  : save_running(a, o->state, &saved, &error))
		return has_no_interface(a) ? end_gone(a, o) : end_failed(a, o, &error);
	return detach_left(a->ifname, &saved.left, &error) ? complain(NULL, &error) : EXIT_DONE;
}

static int run_serve(struct options *o)
{
	struct attached a = {0};
	int code;

	if (o->n_args != 1 || several_all(o) || !o->policy || !o->state)
		return misused("serve", "it wants one interface, -c POLICY and --state FILE");
	code = misused_stream("serve", o->state);
	if (!code)
		code = begin(o->args[0], o, &a);
	if (code)
		return code;
	file_lock_ends_after(FILE_LOCK_LAST_MS); /* all that it waits for from now on is to save */
	(void)notify_ready("pacing");
	if (!attend(o->args[0], &a, o))
		return EXIT_DONE;
	code = end(&a, o);
	attached_release(&a);
	return code;
}

static const struct option_row serve_options[] = {
    OPTION_POLICY,
    {"state", 0, "FILE", "where its state is saved and restored from", OPTION_TEXT(state),
     .needed = true},
    {"every", 0, "TIME", "how often it is saved: 10m unless said", OPTION_TIME(every_ns)},
    {"and-unload", 0, NULL, "take the pacer off at the end", OPTION_FLAG(and_unload)},
    {"mode", 'm', "native|skb|hw", "where to attach: native unless said", OPTION_TEXT(mode)},
    {"pin", 0, NULL, "pins for other tools that ban sources, under " PINNED_AT,
     OPTION_FLAG(load.pin)},
    {"direct", 0, NULL, "not through the libxdp dispatcher", OPTION_FLAG(load.direct)},
    {0},
};

const struct verb verb_serve = {"serve",
				"IFACE",
				"put it on and save its state until stopped, for a service",
				serve_options,
				run_serve,
				.group = VERBS_ARG,
				.example = "xdp-pacer serve eth0 -c eth0.yaml --state eth0.state"};
