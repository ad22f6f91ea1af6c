/* SPDX-License-Identifier: GPL-2.0-only */
/* show: the policy in force, as a text that loads, or where it differs from a file. */
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "config/policy.h"
#include "config/text.h"
#include "live/shown.h"

static int show_text(const struct attached *a, struct shown *shown)
{
	struct policy_error error = {0};

	if (shown_text(shown, &error))
		return complain(NULL, &error);
	if (strlen(shown->text) >= PACER_DOC_MAX)
		complaint("%s: the policy has %zu bytes with what is allowed by hand: one of more "
			  "than %u cannot be loaded",
			  a->ifname, strlen(shown->text), PACER_DOC_MAX - 1);
	emit_object("");
	emit_string("interface", a->ifname, NULL);
	emit_uint("serial", shown->serial, NULL);
	emit_uint("confirm_within_ns", shown->pending_ns, NULL);
	emit_uint("allowed_for_a_time", shown->n_timed, NULL);
	emit_string("policy", shown->text, "%s", shown->text);
	emit_close();
	return emit_end();
}

static void emit_side(const char *name, const char *value)
{
	if (value)
		emit_string(name, value, "%s", printable(value).text);
	else
		emit_null(name, "-");
}

static void count_difference(const struct policy_difference *d, void *n)
{
	(void)d;
	++*(size_t *)n;
}

static void emit_difference(const struct policy_difference *d, void *arg)
{
	(void)arg;
	emit_row();
	emit_object("");
	emit_string("field", d->field, "%s", d->field);
	emit_side("in_force", d->one);
	emit_side("file", d->other);
	emit_close();
}

static int show_diff(const struct attached *a, const char *file, const struct policy *now,
		     const struct policy *other)
{
	static const struct emit_column columns[] = {
	    {"FIELD", false}, {"IN FORCE", false}, {"IN THE FILE", false}, {0}};
	size_t n = 0;

	if (policy_diff(now, other, count_difference, &n))
		result_lacks();
	emit_object("");
	emit_string("interface", a->ifname, NULL);
	emit_string("file", file, NULL);
	emit_array("differences");
	if (n) {
		emit_table(columns, 0);
		if (policy_diff(now, other, emit_difference, NULL))
			result_lacks();
		emit_table_end();
	} else {
		emit_text("%s: the policy in force is that of %s\n", printable(a->ifname).text,
			  printable(file).text);
	}
	emit_close();
	emit_close();
	return emit_end();
}

/* What is allowed by hand counts. */
static int diff(const struct attached *a, const char *file, const struct shown *shown)
{
	struct policy *other = NULL;
	char *text = NULL;
	int code = read_policy(file, &text, &other);

	if (!code)
		code = show_diff(a, file, shown->policy, other);
	policy_free(other);
	free(text);
	return code;
}

static int show(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	struct shown shown;
	int code;

	if (shown_policy(a, &shown, &error))
		return complain(NULL, &error);
	if (shown.n_timed && !o->json)
		complaint("%s: %zu prefix%s allowed for a time %s left out: see `xdp-pacer allow "
			  "%s list`",
			  a->ifname, shown.n_timed, shown.n_timed == 1 ? "" : "es",
			  shown.n_timed == 1 ? "is" : "are", a->ifname);
	emit_begin(o->json);
	code = o->diff ? diff(a, o->diff, &shown) : show_text(a, &shown);
	shown_free(&shown);
	return code;
}

static int run_show(struct options *o)
{
	if (o->n_args != 1)
		return misused("show", "it wants one interface or more");
	return with_pacer(o, show);
}

static const struct option_row show_options[] = {
    {"diff", 0, "FILE", "what differs in this policy's file; - is stdin", OPTION_TEXT(diff)},
    {0},
};

const struct verb verb_show = {"show",
			       "IFACE...",
			       "the policy in force, as YAML that loads",
			       show_options,
			       run_show,
			       .group = VERBS_LOOK,
			       .interfaces = INTERFACES_ONLY,
			       .example = "xdp-pacer show eth0 --diff policy.yaml"};
