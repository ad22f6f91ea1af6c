/* SPDX-License-Identifier: GPL-2.0-only */
/* clean: removes what tools that were killed left behind. */
#include <errno.h>
#include <linux/capability.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "config/text.h"
#include "live/host.h"
#include "live/pinned.h"
#include "live/pins.h"
#include "live/state_file.h"

#define STATES "/var/lib/xdp-pacer"
/* To see whose pins are, and who uses them: without these some would be left, and not be told. */
#define RIGHTS \
	(CAP_TO_MASK(CAP_SYS_ADMIN) | CAP_TO_MASK(CAP_SYS_PTRACE) | CAP_TO_MASK(CAP_DAC_OVERRIDE))

struct found {
	const char *kind, *folder;
	const struct options *o;
	struct policy_error *error; /* of the first that stays */
	size_t n;
};

static void show(const char *name, int cause, void *arg)
{
	struct found *f = arg;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", f->folder, name);
	if (cause) {
		if (!*f->error->text && cause == EAGAIN)
			policy_explain(f->error, 0,
				       "%s stays: a process has its program open, or a network "
				       "namespace could not be looked into: do it again",
				       path);
		else if (!*f->error->text && cause != ENOENT)
			policy_explain(f->error, 0, "%s cannot be removed: %s%s", path,
				       strerror(cause), pins_advice(cause));
		return;
	}
	f->n++;
	emit_object("");
	emit_string("kind", f->kind, "%s ", f->o->dry_run ? "found" : "removed");
	emit_string("path", path, "%s: %s\n", f->kind, printable(path).text);
	emit_close();
}

/* The folder that is meant unless one is named is there once something was saved. */
static int clean_saves(const struct options *o, struct found *saves)
{
	if (!o->state && access(STATES, F_OK) && errno == ENOENT)
		return 0;
	return state_clean(o->state ? o->state : STATES, o->dry_run, show, saves, saves->error);
}

static int run_clean(struct options *o)
{
	struct policy_error error = {0};
	char dispatchers[PATH_MAX / 2], ours[PATH_MAX / 2];
	struct found pins = {"pins of a dispatcher that no interface carries", dispatchers, o,
			     &error, 0};
	struct found shadows = {"a shadow that no interface has", ours, o, &error, 0};
	struct found pinned = {"pins for other tools that no interface needs", ours, o, &error, 0};
	struct found saves = {"a save that was cut off", "", o, &error, 0};
	size_t found;
	int code;

	if (o->n_args)
		return misused("clean", "it wants no interface");
	if (!host_may(RIGHTS))
		return gave_up(
		    "clean",
		    "not all that is left could be seen: run as root, outside of containers");
	snprintf(dispatchers, sizeof(dispatchers), "%s/xdp/", pins_bpffs());
	snprintf(ours, sizeof(ours), "%s/" PINS_OURS "/", pins_bpffs());
	emit_begin(o->json);
	emit_object("");
	emit_array("found");
	if (clean_saves(o, &saves)) { /* at first: nothing has been removed by then */
		emit_drop();
		return complain(NULL, &error);
	}
	pins_clean(PINS_DISPATCHERS, o->dry_run, show, &pins);
	pins_clean(PINS_SHADOWS, o->dry_run, show, &shadows);
	pinned_clean(o->dry_run, show, &pinned);
	if (pins_hidden() && !*error.text)
		policy_explain(&error, 0,
			       "clean: what is pinned cannot be seen, as %s is hidden here, or not "
			       "mounted: do it outside `ip netns exec`",
			       pins_bpffs());
	emit_close();
	found = pins.n + shadows.n + pinned.n + saves.n;
	if (found && !o->dry_run)
		change_made();
	emit_flag("removed", !o->dry_run && found,
		  found || *error.text ? NULL : "nothing was left behind\n");
	emit_close();
	code = emit_end();
	return *error.text ? complain(NULL, &error) : code;
}

static const struct option_row clean_options[] = {
    {"dry-run", 'n', NULL, "say what there is, and leave it", OPTION_FLAG(dry_run)},
    {"state", 0, "FOLDER", "where states are saved: " STATES " unless said", OPTION_TEXT(state)},
    {0},
};

const struct verb verb_clean = {"clean",
				"",
				"remove what killed tools left behind",
				clean_options,
				run_clean,
				.group = VERBS_ARG,
				.example = "xdp-pacer clean --dry-run"};
