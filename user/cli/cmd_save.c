/* SPDX-License-Identifier: GPL-2.0-only */
/* save: what a pacer holds to a file, for `load --restore`. */
#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/several.h"
#include "config/text.h"
#include "live/detach.h"
#include "live/save.h"

static int report(const struct attached *a, const struct options *o, const char *file,
		  const struct saved *saved)
{
	change_made();
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname, "%s: ", printable(a->ifname).text);
	emit_string("file", file, "its state is in %s, ", printable(file).text);
	emit_uint("bytes", saved->bytes, "%s bytes", thousands(saved->bytes).text);
	emit_flag("exact", saved->exact,
		  saved->exact ? ": to the last packet\n"
			       : ": what was let through since the save began may not be in it\n");
	emit_flag("attached", !o->and_unload, o->and_unload ? "the pacer is off\n" : NULL);
	emit_close();
	return emit_end();
}

static int save(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	struct saved saved;
	int code;

	if (o->and_unload ? save_and_unload(a, o->args[1], &saved, &error)
			  : save_running(a, o->args[1], &saved, &error))
		return complain(NULL, &error);
	code = report(a, o, o->args[1], &saved);
	return detach_left(a->ifname, &saved.left, &error) ? complain(NULL, &error) : code;
}

static int run_save(struct options *o)
{
	int code;

	if (o->n_args != 2 || several_all(o))
		return misused("save", "it wants one interface and a file");
	code = misused_stream("save", o->args[1]);
	return code ? code : with_pacer(o, save);
}

static const struct option_row save_options[] = {
    {"and-unload", 0, NULL, "admit nothing from the save on, and take the pacer off",
     OPTION_FLAG(and_unload)},
    {0},
};

const struct verb verb_save = {"save",
			       "IFACE FILE",
			       "write what it holds to a file, for load --restore",
			       save_options,
			       run_save,
			       .group = VERBS_ARG,
			       .example = "xdp-pacer save eth0 /var/lib/xdp-pacer/eth0.state"};
