/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a second policy judges beside the one in force, on state of its own, and changes no
 * verdict (common/beside.h): it is begun, read, put in force with its state, or ended.
 *
 * What it begins with is a copy of what the pacer holds, as `save` and `load --restore` would carry
 * it over: limits that it has in common with the policy in force go on, what it drops drains, and
 * bans, what was allowed by hand and what was added to sets by hand go on. The copy is taken when
 * both programs have been verified; of what is admitted from then until they are in place, some is
 * missing. From then on it counts what it would admit itself. Whom other tools ban (pinned.h) both
 * look up in the same maps: these are the tools', and not state.
 *
 * Two programs stand for it (bpf/shadow.bpf.c): one in the place of the pacer's, over its very
 * maps, and the shadow's. Each change of the interface's program is one step: a tool that is killed
 * leaves the one or the other, whole, and at most a pin that `clean` and the next load remove
 * (pins.h). Under libxdp's dispatcher it is two, as an upgrade is: for a moment both judge.
 *
 * Functions return 0, or -1 with *error filled: then what is in force is what was. They hold the
 * lock of changes (copies.h). One thread.
 */
#ifndef PACER_LIVE_SHADOW_H
#define PACER_LIVE_SHADOW_H

#include "live/attached.h"
#include "live/restore.h"
#include "sets/texts.h"

/* What it is to be; plan and restored are filled. */
struct shadow_begin {
	const char *text;
	const struct policy *policy; /* of the text */
	const struct set_texts *sets;
	struct plan *plan;
	struct restored *restored;
};

/*
 * Begins one beside the pacer, which has none, and no policy on trial that may give way to another.
 * *now is the same pacer as it is then.
 */
int shadow_begin(struct attached *a, const struct shadow_begin *begin, struct attached *now,
		 struct policy_error *error);
/* Puts the shadow's policy in force, with its state. *now is the pacer then. */
int shadow_promote(struct attached *a, struct attached *now, struct policy_error *error);
/* Ends the shadow. */
int shadow_stop(struct attached *a, struct attached *now, struct policy_error *error);

#endif
