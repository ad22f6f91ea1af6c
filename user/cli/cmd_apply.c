/* SPDX-License-Identifier: GPL-2.0-only */
/* apply, confirm, set: change the policy of a pacer at work. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/new_file.h"
#include "cli/output.h"
#include "config/text.h"
#include "live/attached.h"
#include "live/change.h"
#include "live/copies.h"
#include "plan/plan.h"

/* `saved`: the file that has the change, too; NULL: none. */
static int report(const struct attached *a, const struct options *o, const struct plan *plan,
		  const char *saved)
{
	size_t kept = 0, fresh;
	char text[64];

	for (size_t i = 0; i < plan->n_limits; i++)
		kept += plan->limit[i].state == PLAN_KEPT;
	fresh = plan->n_limits - kept;
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname,
		    "%s: the policy is in force: ", printable(a->ifname).text);
	emit_object("limits");
	emit_uint("kept", kept, "%zu limit%s kept %s state, ", kept, units_plural(kept),
		  kept == 1 ? "its" : "their");
	emit_uint("new", fresh, "%zu new, ", fresh);
	emit_uint("retired", plan_retired(plan), "%zu retired\n", plan_retired(plan));
	emit_close();
	if (plan->bans_left_out)
		emit_uint("bans_left_out", plan->bans_left_out,
			  o->confirm_ns /* else they are back with the policy before */
			      ? "bans that it has no room for, and which end if it is confirmed: "
				"%zu\n"
			      : "bans that it has no room for, and which end: %zu\n",
			  plan->bans_left_out);
	emit_uint("confirm_within_ns", o->confirm_ns,
		  o->confirm_ns ? "confirm it within %s: xdp-pacer confirm %s\n" : NULL,
		  units_duration_text(o->confirm_ns, text, sizeof(text)),
		  printable(a->ifname).text);
	if (saved)
		emit_string("saved", saved, "written into %s\n", printable(saved).text);
	output_also(a);
	emit_close();
	if (plan->rotated)
		emit_text("it has a new secret: the program itself had drawn the old one\n");
	return emit_end();
}

/* The policy is in force, even if there is a complaint. */
static int in_force(const struct attached *a, const struct options *o, const struct plan *plan,
		    int code, const struct policy_error *error)
{
	if (code == CHANGE_LASTS)
		complaint("%s", error->text);
	return report(a, o, plan, o->save);
}

static int read_sets(const struct attached *a, struct policy *policy, struct set_texts *sets,
		     struct policy_error *error)
{
	copies_keep_values(a, policy);
	return set_texts_read(policy, sets, error);
}

static int run_apply(struct options *o)
{
	struct policy_error error = {0};
	static struct plan plan;
	static struct set_texts sets;
	struct policy *policy;
	struct attached a;
	char *text;
	int code;

	if (o->n_args != 1 || !o->policy)
		return misused("apply", "it wants one interface or more, and -c POLICY");
	code = read_policy(o->policy, &text, &policy);
	if (code)
		return code;
	if (attached_find(o->args[0], &a, &error)) {
		code = complain(NULL, &error);
	} else if (read_sets(&a, policy, &sets, &error)) {
		attached_release(&a);
		code = complain(o->policy, &error);
	} else {
		memory_noted(&a, policy, NULL, false);
		code = change_apply(&a, text, &sets, o->confirm_ns, &plan, &error);
		set_texts_free(&sets);
		if (code >= 0) {
			change_noted(&a);
			tags_noted(&a);
		}
		code = code < 0 ? complain(error.line ? o->policy : NULL, &error)
				: in_force(&a, o, &plan, code, &error);
		attached_release(&a);
	}
	policy_free(policy);
	free(text);
	return code;
}

static const struct option_row apply_options[] = {
    OPTION_POLICY,
    OPTION_CONFIRM("the policy before comes back unless confirmed by then"),
    {0},
};

const struct verb verb_apply = {"apply",
				"IFACE...",
				"change the policy in place, keeping state",
				apply_options,
				run_apply,
				.group = VERBS_CHANGE,
				.interfaces = INTERFACES_ONLY,
				.example = "xdp-pacer apply eth0 -c new.yaml --confirm-within 60s"};

static int confirm(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};

	if (change_confirm(a, &error))
		return complain(NULL, &error);
	change_noted(a);
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname, "%s: ", printable(a->ifname).text);
	emit_flag("confirmed", true, "the policy is confirmed\n");
	output_also(a);
	emit_close();
	return emit_end();
}

static int run_confirm(struct options *o)
{
	if (o->n_args != 1)
		return misused("confirm", "it wants one interface or more");
	return with_pacer(o, confirm);
}

const struct verb verb_confirm = {"confirm",
				  "IFACE...",
				  "keep what was loaded, applied or set on trial",
				  NULL,
				  run_confirm,
				  .group = VERBS_CHANGE,
				  .interfaces = INTERFACES_ONLY,
				  .example = "xdp-pacer confirm eth0"};

/* The file's text with the same values, which is a policy, too; NULL, and *code is the exit code.
 */
static char *assigned(const struct options *o, int *code)
{
	struct policy_error error = {0};
	struct policy *policy;
	char *text, *next;

	*code = read_policy(o->save, &text, &policy);
	if (*code)
		return NULL;
	for (int i = 1; i < o->n_args && text; i++) {
		next = policy_assign(text, o->args[i], &error);
		free(text);
		text = next;
	}
	policy_free(policy);
	policy = text ? policy_parse(text, strlen(text), &error) : NULL;
	if (policy) {
		policy_free(policy);
		return text;
	}
	free(text);
	*code = complain(o->save, &error);
	return NULL;
}

struct saving {
	const char *name;
	struct new_file file;
	char *text;
};

static int not_saved(const struct saving *s, int err, struct policy_error *error)
{
	return policy_fail(error, 0, "%.200s: cannot be written: %s: nothing is changed", s->name,
			   err == EINVAL ? "it is no file" : strerror(err));
}

static void end_saving(struct saving *s)
{
	free(s->text);
	new_file_drop(&s->file);
}

/* 0, or the exit code. */
static int prepare_file(const struct options *o, struct saving *s)
{
	struct policy_error error = {0};
	int code, err = new_file_hold(&s->file, o->save);

	s->text = assigned(o, &code);
	if (s->text && !err)
		return EXIT_DONE;
	if (s->text) {
		(void)not_saved(s, err, &error);
		code = complain(NULL, &error);
	}
	end_saving(s);
	return code;
}

static int write_file(void *saving, struct policy_error *error)
{
	struct saving *s = saving;
	int err = new_file_write(&s->file, s->text);

	return err ? not_saved(s, err, error) : 0;
}

static int set(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	struct saving s = {.name = o->save, .file = {.fd = -1}};
	const struct change_first first = {write_file, &s};
	static struct plan plan;
	int result, err;

	result = o->save ? prepare_file(o, &s) : 0;
	if (result)
		return result;
	result = change_set(a, o->args + 1, o->n_args - 1, o->confirm_ns, o->save ? &first : NULL,
			    &plan, &error);
	if (result < 0) {
		end_saving(&s);
		if (result == CHANGE_WRONG)
			error.line = 0; /* the line is of a text that the operator does not see */
		return complain(result == CHANGE_WRONG || error.line ? "set" : NULL, &error);
	}
	change_noted(a);
	err = o->save ? new_file_commit(&s.file) : 0;
	if (!err) {
		end_saving(&s);
		return in_force(a, o, &plan, result, &error);
	}
	complaint("%s: the change is in force, but %s: %s", o->save,
		  s.file.written ? "may not outlast a power failure there" : "was not written",
		  err == ESTALE ? "the file was changed meanwhile: say it again" : strerror(err));
	end_saving(&s); /* where a signal waited, it has been said */
	return EXIT_FAILED;
}

static int run_set(struct options *o)
{
	if (o->n_args < 2)
		return misused("set", "it wants one interface or more, and RULE.FIELD=VALUE");
	if (o->save && o->confirm_ns)
		return misused("set", "what is on trial is not saved: confirm it, and say it again "
				      "with --save");
	if (o->save && !strcmp(o->save, "-"))
		return misused("set", "--save wants the policy's file");
	return with_pacer(o, set);
}

static const struct option_row set_options[] = {
    OPTION_CONFIRM("the values before come back unless confirmed by then"),
    {"save", 0, "FILE", "write them into the policy's file, too", OPTION_TEXT(save)},
    {0},
};

const struct verb verb_set = {"set",
			      "IFACE... RULE.FIELD=VALUE...",
			      "change values of the policy in place",
			      set_options,
			      run_set,
			      .group = VERBS_CHANGE,
			      .interfaces = INTERFACES_LEAD,
			      .example = "xdp-pacer set eth0 dns.packets=300 mode=enforce"};
