/* SPDX-License-Identifier: GPL-2.0-only */
/* shadow: a second policy beside the one in force, that changes no verdict. */
#include <stdlib.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "cli/shadow_show.h"
#include "config/text.h"
#include "live/copies.h"
#include "live/shadow.h"

/* --- what it has found ---------------------------------------------------------------------- */

static int show(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	struct attached shadow;
	int failed;

	if (attached_shadow(a, &shadow, &error))
		return complain(NULL, &error);
	emit_begin(o->json);
	failed = shadow_show(&shadow, "", SHADOW_WHOLE, &error);
	attached_release(&shadow);
	if (failed) {
		emit_drop();
		return complain(NULL, &error);
	}
	return emit_end();
}

/* --- begin ---------------------------------------------------------------------------------- */

static int begun(const struct attached *a, const struct options *o, const struct plan *plan,
		 const struct restored *restored)
{
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname, "%s: ", printable(a->ifname).text);
	emit_flag("shadow", true,
		  "a shadow judges beside the policy in force, and drops nothing\n");
	emit_uint("memory_bytes", output_memory_bytes(plan->lines), NULL);
	emit_uint("limits_kept", restored->limits_kept,
		  "limits that go on with a copy of their state: %zu, ", restored->limits_kept);
	emit_uint("limits_new", restored->limits_new, "that begin anew: %zu, ",
		  restored->limits_new);
	emit_uint("limits_draining", restored->limits_draining, "that drain: %zu\n",
		  restored->limits_draining);
	emit_uint("bans_left_out", restored->bans_left_out,
		  restored->bans_left_out ? "bans that it has no room for: %zu\n" : NULL,
		  restored->bans_left_out);
	emit_text("what would change: xdp-pacer shadow %s\n", printable(a->ifname).text);
	emit_close();
	return emit_end();
}

/* The file has been read, and so have its sets. */
static int begin_with(struct attached *a, const struct options *o, const struct shadow_begin *begin)
{
	struct policy_error error = {0}, unused;
	struct attached now, shadow;
	int code;

	if (shadow_begin(a, begin, &now, &error))
		return complain(error.line ? o->policy : NULL, &error);
	change_noted(&now);
	if (!attached_shadow(&now, &shadow, &unused)) {
		tags_noted(&shadow);
		attached_release(&shadow);
	}
	code = begun(&now, o, begin->plan, begin->restored);
	attached_release(&now);
	return code;
}

static int begin_policy(struct attached *a, const struct options *o, const char *text,
			const struct policy *policy)
{
	static struct set_texts sets;
	static struct plan plan;
	struct restored restored;
	struct output_sets counted;
	struct policy_error error = {0};
	int code;

	if (set_texts_read(policy, &sets, &error))
		return complain(o->policy, &error);
	if (output_sets(policy, &sets, &counted, &error))
		code = complain(NULL, &error);
	else if (output_memory_error(policy, 1, counted.all_bytes, &error))
		code = complain(o->policy, &error);
	else
		code =
		    begin_with(a, o, &(struct shadow_begin){text, policy, &sets, &plan, &restored});
	set_texts_free(&sets);
	return code;
}

static int begin(struct attached *a, const struct options *o)
{
	struct policy *policy;
	char *text;
	int code = read_policy(o->policy, &text, &policy);

	if (code)
		return code;
	copies_keep_values(a, policy);
	code = begin_policy(a, o, text, policy);
	policy_free(policy);
	free(text);
	return code;
}

/* --- end ------------------------------------------------------------------------------------ */

/* What it had counted is there for as long as it is looked at. */
static int ended(const struct attached *a, const struct options *o, const struct attached *shadow,
		 const char *said)
{
	enum shadow_part part = o->promote ? SHADOW_PROMOTED : SHADOW_COUNTS;
	struct policy_error unused;

	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname, "%s: %s\n", printable(a->ifname).text, said);
	emit_flag("shadow", false, NULL);
	emit_flag("promoted", o->promote, NULL);
	if (!shadow || shadow_show(shadow, "last", part, &unused))
		emit_null("last", "  what it had counted cannot be read\n");
	emit_close();
	return emit_end();
}

static int end(struct attached *a, const struct options *o)
{
	struct policy_error error = {0}, unused;
	struct attached shadow, now;
	bool known = !attached_shadow(a, &shadow, &unused);
	int code;

	if (o->promote ? shadow_promote(a, &now, &error) : shadow_stop(a, &now, &error)) {
		code = complain(NULL, &error);
	} else {
		change_noted(&now);
		if (o->promote)
			tags_noted(&now);
		code = ended(&now, o, known ? &shadow : NULL,
			     o->promote ? "the shadow's policy is in force, with its state; beside "
					  "the one before it had counted:"
					: "the shadow is off; it had counted:");
		attached_release(&now);
	}
	if (known)
		attached_release(&shadow);
	return code;
}

static int run_shadow(struct options *o)
{
	int wishes = (o->policy != NULL) + o->promote + o->stop;

	if (o->n_args != 1)
		return misused("shadow", "it wants one interface or more");
	if (wishes > 1)
		return misused("shadow",
			       "it wants one of -c POLICY, --promote and --stop, or none");
	return with_pacer(o, o->policy ? begin : wishes ? end : show);
}

static const struct option_row shadow_options[] = {
    {"policy", 'c', "POLICY", "begin: the policy to be tried; - is stdin", OPTION_TEXT(policy)},
    {"promote", 0, NULL, "put it in force, with the state that it has", OPTION_FLAG(promote)},
    {"stop", 0, NULL, "end it", OPTION_FLAG(stop)},
    {0},
};

const struct verb verb_shadow = {"shadow",
				 "IFACE...",
				 "try a policy beside the one in force, changing no verdict",
				 shadow_options,
				 run_shadow,
				 .group = VERBS_CHANGE,
				 .interfaces = INTERFACES_ONLY,
				 .example = "xdp-pacer shadow eth0 -c new.yaml"};
